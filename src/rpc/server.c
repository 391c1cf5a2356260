/* server.c - the daemon's sockets: ROUTER and PUB; see peer.h
 *
 * Connections. libzmq names a message's connection by its descriptor, and its monitor tells of
 * descriptors accepted and closed. Descriptors are used again, so each ACCEPTED gets a number. One
 * thread of libzmq accepts, reads and closes: it says ACCEPTED before it hands out a connection's
 * first message. Hence, once the monitor has been read to its end, the slot of a message's
 * descriptor is that of its connection or of a later one, and a slot to which a first message has
 * bound its routing id is right without a look at the monitor. A first message that is read only
 * after another connection has got the descriptor passes for that one's; the routing ids that
 * libzmq gives grow, so a newer one puts the slot right.
 */
#include "rpc/wire.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/keys_impl.h"
#include "util/fnv.h"

#define SUBSCRIPTION_MAX 64 /* bytes; a follower sends nothing else */

struct connection { /* a descriptor's latest */
    int number;
    bool open;
    uint64_t id; /* as of id_of(); 0: it has sent nothing yet */
};

#define SENDERS 4096u /* whose descriptors are remembered; a power of 2 */

struct sender {
    uint64_t id; /* as of id_of(); 0: nobody */
    int fd;
};

struct rpc_server {
    enum rpc_server_kind kind;
    zsock_t *socket, *monitor;
    struct rpc_auth *auth; /* borrowed */
    struct wire_message message;
    struct rpc_counts counts;
    struct VEC(struct connection) connections; /* by descriptor */
    struct sender senders[SENDERS];            /* by the end of the id */
    struct VEC(int) gone;
    size_t gone_told; /* of `gone` */
    int last_number;
    char endpoint[256];
};

/* ---- binding --------------------------------------------------------------------------------- */

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcmp(host, "localhost") == 0;
}

/* "tcp://[::1]:*" without what is around the host. */
static void host_of(const char *endpoint, char ret[256])
{
    const char *host = endpoint + strlen("tcp://"), *end = strrchr(host, ':');

    if (*host == '[' && end > host && end[-1] == ']') {
        host++;
        end--;
    }
    snprintf(ret, 256, "%.*s", (int)(end - host), host);
}

/* Without keys nobody from outside may come. */
static int check_open_bind(const char *endpoint, struct spec_error *err)
{
    char host[256];

    if (strncmp(endpoint, "ipc://", 6) == 0)
        return 0;
    host_of(endpoint, host);
    if (is_loopback(host))
        return 0;
    snprintf(err->text, sizeof err->text,
             "endpoint \"%.200s\" can be reached from other machines and there are no keys "
             "(pliant.security.keys); accepted: loopback addresses, ipc://, or --insecure-bind",
             endpoint);
    return -EACCES;
}

/* libzmq asks no resolver for what is bound. */
static const char *numeric(const char *endpoint, char ret[256])
{
    static const char localhost[] = "tcp://localhost:";

    if (strncmp(endpoint, localhost, sizeof localhost - 1) != 0)
        return endpoint;
    snprintf(ret, 256, "tcp://127.0.0.1:%s", endpoint + sizeof localhost - 1);
    return ret;
}

/* libzmq takes the path of an ipc endpoint from whoever listens there, in silence. */
static int check_unused(const char *endpoint)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd, r = 0;

    if (strncmp(endpoint, "ipc://", 6) != 0 || strlen(endpoint + 6) >= sizeof at.sun_path)
        return 0;
    strcpy(at.sun_path, endpoint + 6);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0 || errno == EAGAIN)
        r = -EADDRINUSE;
    close(fd);
    return r;
}

static int bind_error(const char *endpoint, int error, struct spec_error *err)
{
    snprintf(err->text, sizeof err->text, "endpoint \"%.200s\": %s", endpoint, zmq_strerror(error));
    return -error;
}

/* A descriptor a connection: at its limit libzmq would refuse peers and spin. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int64_t size_max_of(enum rpc_server_kind kind)
{
    switch (kind) {
    case RPC_AGENTS:
        return message_size_max(MESSAGE_ERROR, MESSAGE_REPLY - 1);
    case RPC_CLIENTS:
        return message_size_max(MESSAGE_REPLY, MESSAGE_EVENT - 1);
    case RPC_EVENTS:
        break;
    }
    return SUBSCRIPTION_MAX;
}

static int open_socket(struct rpc_server *s, const char *endpoint, int queue)
{
    size_t n = sizeof s->endpoint;
    char copy[256];
    void *socket;

    s->socket =
        wire_socket(s->kind == RPC_EVENTS ? ZMQ_PUB : ZMQ_ROUTER, queue, size_max_of(s->kind));
    if (!s->socket)
        return -errno;
    socket = zsock_resolve(s->socket);
    if (s->kind != RPC_EVENTS)
        zsock_set_router_mandatory(s->socket, 1);
    zsock_set_ipv6(s->socket, strchr(endpoint, '[') != NULL);
    if (s->auth)
        rpc_auth_apply(s->auth, s->kind, s->socket);
    s->monitor = wire_monitor(s->socket, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                                             ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                                             ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                             ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    if (!s->monitor || zmq_bind(socket, numeric(endpoint, copy)) < 0 ||
        zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, s->endpoint, &n) < 0)
        return -errno;
    return 0;
}

int rpc_server_open(enum rpc_server_kind kind, const char *endpoint, struct rpc_auth *auth,
                    bool insecure, int queue, struct rpc_server **ret, struct spec_error *err)
{
    struct rpc_server *s;
    int r = wire_check_endpoint(endpoint, err);

    if (r == 0 && !auth && !insecure)
        r = check_open_bind(endpoint, err);
    if (r < 0)
        return r;
    assert(queue > 0); /* 0 would be no bound */
    raise_descriptors();
    s = mem_zero(NULL, 1, sizeof *s);
    if (!s)
        return bind_error(endpoint, ENOMEM, err);
    s->kind = kind;
    s->auth = auth;
    wire_message_init(&s->message);
    r = check_unused(endpoint);
    if (r == 0)
        r = open_socket(s, endpoint, queue);
    if (r < 0) {
        rpc_server_close(&s);
        return bind_error(endpoint, -r, err);
    }
    *ret = s;
    return 0;
}

void rpc_server_close(struct rpc_server **s)
{
    struct rpc_server *old = *s;

    if (!old)
        return;
    *s = NULL;
    wire_close(&old->socket, &old->monitor, &old->message);
    vec_free(NULL, &old->connections);
    vec_free(NULL, &old->gone);
    mem_free(NULL, old);
}

const char *rpc_server_endpoint(const struct rpc_server *s)
{
    return s->endpoint;
}

void *rpc_server_socket(const struct rpc_server *s)
{
    return zsock_resolve(s->socket);
}

void *rpc_server_monitor(const struct rpc_server *s)
{
    return zsock_resolve(s->monitor);
}

void rpc_server_counts(const struct rpc_server *s, struct rpc_counts *ret)
{
    *ret = s->counts;
}

/* ---- connections ----------------------------------------------------------------------------- */

static int next_number(struct rpc_server *s)
{
    s->last_number = s->last_number == INT_MAX ? 1 : s->last_number + 1;
    return s->last_number;
}

static void tell_gone(struct rpc_server *s, int number)
{
    int *at = vec_push(NULL, &s->gone);

    if (at) /* without memory the silence will show it */
        *at = number;
}

static void accepted(struct rpc_server *s, size_t fd)
{
    while (s->connections.n <= fd)
        if (!vec_push(NULL, &s->connections))
            return;
    s->connections.v[fd] = (struct connection){.number = next_number(s), .open = true};
}

static void disconnected(struct rpc_server *s, size_t fd)
{
    struct connection *c = fd < s->connections.n ? &s->connections.v[fd] : NULL;

    if (!c || !c->open)
        return;
    c->open = false;
    tell_gone(s, c->number);
}

static void read_monitor(struct rpc_server *s)
{
    uint16_t event;
    uint32_t value;

    while (wire_event(s->monitor, &event, &value) > 0) {
        if (event == ZMQ_EVENT_ACCEPTED)
            accepted(s, value);
        else if (event == ZMQ_EVENT_DISCONNECTED)
            disconnected(s, value);
        else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
            s->counts.denied++;
        else
            s->counts.faults++;
    }
}

int rpc_server_gone(struct rpc_server *s, int *ret_connection)
{
    read_monitor(s);
    if (s->gone_told == s->gone.n) {
        s->gone_told = s->gone.n = 0;
        return 0;
    }
    *ret_connection = s->gone.v[s->gone_told++];
    return 1;
}

/* An id of libzmq's is a zero byte and a number of 32 bits that grows; one that the peer chose is
 * summed up. */
#define ID_GIVEN (UINT64_C(1) << 32)
#define ID_CHOSEN (UINT64_C(1) << 63)

static uint64_t id_of(const struct rpc_id *id)
{
    uint32_t given;

    if (id->size != 1 + sizeof given || id->bytes[0] != 0)
        return fnv_add(FNV_START, id->bytes, id->size) | ID_CHOSEN;
    memcpy(&given, id->bytes + 1, sizeof given);
    return ntohl(given) | ID_GIVEN;
}

static bool is_newer(uint64_t id, uint64_t than)
{
    return !(id & ID_CHOSEN) && !(than & ID_CHOSEN) && (uint32_t)(id - than) < UINT32_MAX / 2;
}

/* The number of a connection by the descriptor and the routing id of its message. */
static int number_of(struct rpc_server *s, size_t fd, uint64_t id)
{
    struct connection *c = fd < s->connections.n ? &s->connections.v[fd] : NULL;

    if (c && c->open && c->id == id)
        return c->number;
    read_monitor(s);
    c = fd < s->connections.n ? &s->connections.v[fd] : NULL;
    if (!c || (c->id != 0 && c->id != id && !is_newer(id, c->id)))
        return -1; /* of a connection before the one that has the descriptor now */
    c->id = id;
    if (!c->open)
        tell_gone(s, c->number); /* again, behind its last message */
    return c->number;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* libzmq looks the descriptor up among texts. It is the same for all messages of an id that libzmq
 * gave. */
static int descriptor_of(struct rpc_server *s, uint64_t id)
{
    struct sender *at = &s->senders[id % SENDERS];

    if (at->id == id && !(id & ID_CHOSEN))
        return at->fd;
    *at = (struct sender){.id = id, .fd = zmq_msg_get(&s->message.header, ZMQ_SRCFD)};
    return at->fd;
}

static void name_sender(struct rpc_server *s, struct rpc_message *ret)
{
    const char *key = s->auth ? zmq_msg_gets(&s->message.header, "User-Id") : NULL;
    size_t n = zmq_msg_size(&s->message.id);
    uint64_t id;
    int fd;

    ret->from.size = (uint8_t)n; /* libzmq: at most 255 */
    memcpy(ret->from.bytes, zmq_msg_data(&s->message.id), ret->from.size);
    id = id_of(&ret->from);
    fd = descriptor_of(s, id);
    ret->connection = fd < 0 ? -1 : number_of(s, (size_t)fd, id);
    *ret->key = '\0';
    if (key)
        snprintf(ret->key, sizeof ret->key, "%s", key);
    if (s->auth)
        ret->role = rpc_auth_role(s->auth, ret->key);
    else
        ret->role = s->kind == RPC_AGENTS ? ROLE_AGENT : ROLE_OPERATOR;
}

int rpc_receive(struct rpc_server *s, struct rpc_message *ret)
{
    if (s->kind == RPC_EVENTS || !wire_receive(rpc_server_socket(s), true, &s->message, ret))
        return 0;
    name_sender(s, ret);
    s->counts.received++;
    s->counts.faults += ret->fault != MESSAGE_GOOD;
    return 1;
}

int rpc_send(struct rpc_server *s, const struct rpc_id *to, const struct message_header *h,
             const struct json *body)
{
    int r = wire_send(rpc_server_socket(s), to, h, body);

    s->counts.sent += r == 0;
    s->counts.dropped_full += r == -EAGAIN;
    s->counts.dropped_gone += r == -EHOSTUNREACH;
    return r;
}

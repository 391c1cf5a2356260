/* link.c - who connects: DEALER and SUB; and what each program begins with; see peer.h */
#include "rpc/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "rpc/keys_impl.h"
#include "util/alloc.h"

#define SOCKETS_MAX 16384 /* of the process: a simulated agent each */

struct rpc_link {
    zsock_t *socket, *monitor; /* monitor: of a watched link */
    struct wire_message message;
    uint64_t sequence; /* of the last request */
    bool keys;         /* it has an identity */
    bool connected;    /* once at least, as far as the monitor has been read */
    char endpoint[256];
};

static int open_socket(struct rpc_link *l, const struct rpc_link_config *cfg)
{
    int64_t size_max = message_size_max(MESSAGE_ERROR, MESSAGE_EVENT);

    l->socket = wire_socket(cfg->events ? ZMQ_SUB : ZMQ_DEALER, cfg->queue, size_max);
    if (!l->socket)
        return -errno;
    zsock_set_ipv6(l->socket, strchr(cfg->endpoint, '[') != NULL);
    if (cfg->identity)
        rpc_identity_apply(cfg->identity, l->socket);
    if (cfg->events)
        zsock_set_subscribe(l->socket, "");
    if (cfg->watched && !(l->monitor = wire_monitor(l->socket, ZMQ_EVENT_HANDSHAKE_SUCCEEDED)))
        return -errno;
    return zmq_connect(zsock_resolve(l->socket), cfg->endpoint) < 0 ? -errno : 0;
}

int rpc_link_open(const struct rpc_link_config *cfg, struct rpc_link **ret, struct spec_error *err)
{
    struct rpc_link *l;
    int r = wire_check_endpoint(cfg->endpoint, err);

    if (r < 0)
        return r;
    l = mem_zero(NULL, 1, sizeof *l);
    r = l ? 0 : -ENOMEM;
    if (r == 0) {
        wire_message_init(&l->message);
        snprintf(l->endpoint, sizeof l->endpoint, "%s", cfg->endpoint);
        l->keys = cfg->identity != NULL;
        r = open_socket(l, cfg);
    }
    if (r < 0) {
        rpc_link_close(&l);
        snprintf(err->text, sizeof err->text, "endpoint \"%.200s\": %s", cfg->endpoint,
                 zmq_strerror(-r));
        return r;
    }
    *ret = l;
    return 0;
}

void rpc_link_close(struct rpc_link **l)
{
    struct rpc_link *old = *l;

    if (!old)
        return;
    *l = NULL;
    wire_close(&old->socket, &old->monitor, &old->message);
    mem_free(NULL, old);
}

void *rpc_link_socket(const struct rpc_link *l)
{
    return zsock_resolve(l->socket);
}

int rpc_link_fd(const struct rpc_link *l)
{
    return (int)zsock_fd(l->socket);
}

bool rpc_link_renewed(struct rpc_link *l)
{
    bool renewed = false;
    uint16_t event;
    uint32_t value;

    while (wire_event(l->monitor, &event, &value) > 0) {
        renewed |= l->connected;
        l->connected = true;
    }
    return renewed;
}

int rpc_link_watch_fd(const struct rpc_link *l)
{
    return (int)zsock_fd(l->monitor);
}

int rpc_link_receive(struct rpc_link *l, struct rpc_message *ret)
{
    ret->connection = -1;
    ret->role = ROLE_NONE;
    *ret->key = '\0';
    ret->from.size = 0;
    return wire_receive(rpc_link_socket(l), false, &l->message, ret);
}

int rpc_link_send(struct rpc_link *l, const struct message_header *h, const struct json *body)
{
    return wire_send(rpc_link_socket(l), NULL, h, body);
}

/* ---- request and reply ----------------------------------------------------------------------- */

/* Wait until the link is ready for `events`, up to the instant `end_ms`. 0, -ETIMEDOUT. */
static int wait_for(struct rpc_link *l, short events, int64_t end_ms)
{
    zmq_pollitem_t item = {.socket = rpc_link_socket(l), .events = events};
    int64_t left_ms = end_ms - zclock_mono();

    if (left_ms <= 0)
        return -ETIMEDOUT;
    if (zmq_poll(&item, 1, left_ms) < 0 && errno != EINTR)
        return -errno;
    return 0;
}

static int send_request(struct rpc_link *l, const struct message_header *h, const struct json *body,
                        int64_t end_ms)
{
    int r = rpc_link_send(l, h, body);

    while (r == -EAGAIN) {
        r = wait_for(l, ZMQ_POLLOUT, end_ms);
        if (r == 0)
            r = rpc_link_send(l, h, body);
    }
    return r;
}

/* The next message with this sequence. */
static int receive_answer(struct rpc_link *l, uint64_t sequence, int64_t end_ms,
                          struct rpc_message *ret)
{
    int r = 0;

    while (r == 0) {
        while (rpc_link_receive(l, ret) > 0)
            if (ret->fault != MESSAGE_NOT_OURS && ret->header.sequence == sequence &&
                (ret->header.type == MESSAGE_REPLY || ret->header.type == MESSAGE_ERROR))
                return 0;
        r = wait_for(l, ZMQ_POLLIN, end_ms);
    }
    return r;
}

static void copy_member(const struct doc *map, const char *key, char *ret, size_t size)
{
    const struct doc *d = doc_get(map, key);

    snprintf(ret, size, "%s", d && d->kind == DOC_STRING ? d->text : "");
}

static int read_answer(const struct rpc_message *m, struct doc_file *ret_reply,
                       struct rpc_refusal *ret_error, struct spec_error *err)
{
    int r;

    if (m->fault != MESSAGE_GOOD) {
        snprintf(err->text, sizeof err->text, "the answer is no message of this protocol (%s)",
                 message_fault_code(m->fault));
        return -EBADMSG;
    }
    r = message_body(ret_reply, &m->header, m->body, m->size, err);
    if (r != MESSAGE_GOOD)
        return r < 0 ? r : -EBADMSG;
    if (m->header.type == MESSAGE_REPLY)
        return 0;
    copy_member(ret_reply->root, "code", ret_error->code, sizeof ret_error->code);
    copy_member(ret_reply->root, "text", ret_error->text, sizeof ret_error->text);
    return -EPROTO;
}

int rpc_call(struct rpc_link *l, enum message_type type, const struct json *body, int timeout_ms,
             struct doc_file *ret_reply, struct rpc_refusal *ret_error, struct spec_error *err)
{
    struct message_header h = {.type = (uint16_t)type, .sequence = ++l->sequence};
    int64_t end_ms = zclock_mono() + timeout_ms;
    struct rpc_message answer;
    int r = send_request(l, &h, body, end_ms);

    if (r == 0)
        r = receive_answer(l, h.sequence, end_ms, &answer);
    if (r == 0)
        return read_answer(&answer, ret_reply, ret_error, err);
    if (r == -ETIMEDOUT)
        snprintf(err->text, sizeof err->text, "%.200s: no answer within %d ms (%s)", l->endpoint,
                 timeout_ms, l->keys ? "is it there, and does it know our key?" : "is it there?");
    else
        snprintf(err->text, sizeof err->text, "%.200s: %s", l->endpoint, zmq_strerror(-r));
    zsock_set_linger(l->socket, 0); /* what nobody waits for shall not be done later */
    return r;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* A socket in the place of standard output would get what somebody prints. */
static void fill_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* libzmq's thread takes memory that ours gives back: an arena of its own would be grown and trimmed
 * all the time. */
void rpc_prepare_process(void)
{
    mallopt(M_ARENA_MAX, 1);
    fill_standard_descriptors();
    signal(SIGPIPE, SIG_IGN);
    zsys_handler_set(NULL);
    zsys_set_max_sockets(SOCKETS_MAX);
    zsys_set_io_threads(1);   /* more would break the order that server.c relies on */
    zsys_set_logstream(NULL); /* we say ourselves what is wrong */
}

int rpc_signals_open(const sigset_t *also)
{
    static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,  SIGABRT,
                               SIGTRAP, SIGSYS, SIGTSTP, SIGTTIN, SIGTTOU};
    sigset_t taken;
    int fd;

    sigfillset(&taken);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!also || sigismember(also, kept[i]) != 1)
            sigdelset(&taken, kept[i]);
    sigprocmask(SIG_SETMASK, &taken, NULL);
    fd = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

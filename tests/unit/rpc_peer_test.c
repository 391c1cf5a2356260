/* rpc_peer_test.c - the daemon's sockets and those who connect, over ipc and TCP */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "rpc/peer.h"

#define QUEUE 1000
#define WAIT_MS 60000 /* for what must happen; nearly always it takes a few ms */

static const struct rpc_id *const all_peers = NULL;

static void setup(void)
{
    rpc_prepare_process();
}

TestSuite(peer, .init = setup);

/* ---- helpers --------------------------------------------------------------------------------- */

static struct rpc_server *serve(enum rpc_server_kind kind, const char *endpoint, int queue)
{
    struct rpc_server *s;
    struct spec_error err = {""};
    int r = -EADDRINUSE;

    for (int i = 0; r == -EADDRINUSE && i < 1000; i++) {
        r = rpc_server_open(kind, endpoint, NULL, false, queue, &s, &err);
        if (r == -EADDRINUSE)
            poll(NULL, 0, 10); /* libzmq's thread still closes the one before */
    }
    cr_assert(eq(int, r, 0), "%s", err.text);
    return s;
}

static struct rpc_link *link_queue(const struct rpc_server *s, bool events, int queue)
{
    struct rpc_link_config cfg = {
        .endpoint = rpc_server_endpoint(s), .events = events, .queue = queue};
    struct spec_error err = {""};
    struct rpc_link *l;

    cr_assert(eq(int, rpc_link_open(&cfg, &l, &err), 0), "%s", err.text);
    return l;
}

static struct rpc_link *link_to(const struct rpc_server *s)
{
    return link_queue(s, false, QUEUE);
}

static struct json body_of(const char *text)
{
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "text", text);
    json_end(&j, '}');
    return j;
}

static int send_text(struct rpc_link *l, enum message_type type, uint64_t sequence,
                     const char *text)
{
    struct message_header h = {.type = (uint16_t)type, .sequence = sequence};
    struct json j = body_of(text);
    int r = rpc_link_send(l, &h, &j);

    json_free(&j);
    return r;
}

static int answer_text(struct rpc_server *s, const struct rpc_id *to, enum message_type type,
                       uint64_t sequence, const char *text)
{
    struct message_header h = {.type = (uint16_t)type, .epoch = 7, .sequence = sequence};
    struct json j = body_of(text);
    int r = rpc_send(s, to, &h, &j);

    json_free(&j);
    return r;
}

static bool wait_readable(void *socket, int ms)
{
    zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};

    return zmq_poll(&item, 1, ms) > 0;
}

/* The next message, or the test fails. */
static struct rpc_message next(struct rpc_server *s)
{
    struct rpc_message m;

    while (!rpc_receive(s, &m))
        cr_assert(wait_readable(rpc_server_socket(s), WAIT_MS), "no message came");
    return m;
}

static struct rpc_message link_next(struct rpc_link *l)
{
    struct rpc_message m;

    while (!rpc_link_receive(l, &m))
        cr_assert(wait_readable(rpc_link_socket(l), WAIT_MS), "no message came");
    return m;
}

static int next_gone(struct rpc_server *s)
{
    int connection = -1;

    while (!rpc_server_gone(s, &connection))
        cr_assert(wait_readable(rpc_server_monitor(s), WAIT_MS), "no connection went");
    return connection;
}

static bool has_body(const struct rpc_message *m, const char *text)
{
    struct json want = body_of(text);
    bool same = m->size == want.n && memcmp(m->body, want.v, want.n) == 0;

    json_free(&want);
    return same;
}

/* ---- there and back -------------------------------------------------------------------------- */

static void go_there_and_back(const char *endpoint, const char *bound_prefix)
{
    struct rpc_server *s = serve(RPC_AGENTS, endpoint, QUEUE);
    struct rpc_link *l = link_to(s);
    struct rpc_message m;

    cr_expect(strncmp(rpc_server_endpoint(s), bound_prefix, strlen(bound_prefix)) == 0, "%s",
              rpc_server_endpoint(s));
    cr_assert(eq(int, send_text(l, MESSAGE_HELLO, 1, "there"), 0));
    m = next(s);
    cr_expect(eq(int, (int)m.fault, MESSAGE_GOOD));
    cr_expect(eq(int, (int)m.role, ROLE_AGENT));
    cr_expect(eq(int, (int)m.header.type, MESSAGE_HELLO));
    cr_expect(gt(int, m.connection, 0));
    cr_expect(strlen(m.key) == 0);
    cr_expect(has_body(&m, "there"));
    cr_assert(eq(int, answer_text(s, &m.from, MESSAGE_WELCOME, 1, "back"), 0));
    m = link_next(l);
    cr_expect(eq(int, (int)m.header.type, MESSAGE_WELCOME));
    cr_expect(eq(u64, m.header.epoch, 7));
    cr_expect(has_body(&m, "back"));
    rpc_link_close(&l);
    rpc_server_close(&s);
}

Test(peer, carries_messages_over_tcp)
{
    go_there_and_back("tcp://127.0.0.1:*", "tcp://127.0.0.1:");
    go_there_and_back("tcp://localhost:*", "tcp://127.0.0.1:");
}

Test(peer, carries_messages_over_ipc)
{
    char dir[] = "/tmp/rpc-peer-XXXXXX", endpoint[64];

    cr_assert(mkdtemp(dir) != NULL);
    snprintf(endpoint, sizeof endpoint, "ipc://%s/agents", dir);
    go_there_and_back(endpoint, endpoint);
    snprintf(endpoint, sizeof endpoint, "%s/agents", dir);
    unlink(endpoint);
    rmdir(dir);
}

Test(peer, takes_who_is_on_the_clients_socket_without_keys_for_an_operator)
{
    struct rpc_server *s = serve(RPC_CLIENTS, "tcp://127.0.0.1:*", QUEUE);
    struct rpc_link *l = link_to(s);

    send_text(l, MESSAGE_PING, 1, "");
    cr_expect(eq(int, (int)next(s).role, ROLE_OPERATOR));
    rpc_link_close(&l);
    rpc_server_close(&s);
}

Test(peer, keeps_the_order_of_each_sender)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    struct rpc_link *links[4];
    uint64_t seen[4] = {0};
    struct rpc_counts counts;

    for (size_t i = 0; i < 4; i++)
        links[i] = link_to(s);
    for (uint64_t n = 1; n <= 200; n++)
        for (size_t i = 0; i < 4; i++)
            cr_assert(eq(int, send_text(links[i], MESSAGE_TASKS, i << 32 | n, "x"), 0));
    for (int k = 0; k < 800; k++) {
        struct rpc_message m = next(s);

        cr_assert(eq(u64, m.header.sequence & UINT32_MAX, ++seen[m.header.sequence >> 32]));
    }
    rpc_server_counts(s, &counts);
    cr_expect(eq(u64, counts.received, 800));
    cr_expect(eq(u64, counts.faults, 0));
    for (size_t i = 0; i < 4; i++)
        rpc_link_close(&links[i]);
    rpc_server_close(&s);
}

Test(peer, sends_events_to_all_who_follow)
{
    struct rpc_server *s = serve(RPC_EVENTS, "tcp://127.0.0.1:*", QUEUE);
    struct rpc_link *a = link_queue(s, true, QUEUE), *b = link_queue(s, true, QUEUE);
    struct rpc_message m;
    uint64_t sequence = 0, first;
    int ready = 0;

    while (ready < 2) { /* until both have subscribed */
        cr_assert(eq(int, answer_text(s, all_peers, MESSAGE_EVENT, ++sequence, "e"), 0));
        ready = wait_readable(rpc_link_socket(a), 10) + wait_readable(rpc_link_socket(b), 10);
    }
    first = link_next(a).header.sequence;
    for (uint64_t n = first + 1; n <= sequence; n++)
        cr_expect(eq(u64, link_next(a).header.sequence, n));
    m = link_next(b);
    cr_expect(has_body(&m, "e"));
    cr_expect(eq(int, rpc_receive(s, &m), 0), "nobody can send to it");
    rpc_link_close(&a);
    rpc_link_close(&b);
    rpc_server_close(&s);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* What arrives here is written into `seen`, in order, without gaps but those that -EAGAIN told. */
Test(peer, drops_and_counts_what_a_peer_does_not_read)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", 10);
    struct rpc_link *l = link_queue(s, false, 10);
    struct rpc_counts counts;
    struct rpc_message m;
    struct rpc_id id;
    char *text = calloc(1, 100001);
    uint64_t sent = 0, got = 0, last = 0;

    cr_assert(text != NULL);
    memset(text, 'x', 100000);
    send_text(l, MESSAGE_HELLO, 1, "");
    id = next(s).from;
    for (uint64_t n = 1; n <= 2000; n++)
        sent += answer_text(s, &id, MESSAGE_DEPLOY, n, text) == 0;
    rpc_server_counts(s, &counts);
    cr_expect(eq(u64, counts.sent, sent));
    cr_expect(eq(u64, counts.sent + counts.dropped_full, 2000));
    cr_expect(gt(u64, counts.dropped_full, 1000), "200 MB are not kept for a peer");
    while (got < sent) { /* it wakes up: all that was taken comes, whole and in order */
        m = link_next(l);
        cr_expect(eq(int, (int)m.fault, MESSAGE_GOOD));
        cr_expect(gt(u64, m.header.sequence, last));
        last = m.header.sequence;
        got++;
    }
    cr_expect(eq(int, answer_text(s, &id, MESSAGE_DEPLOY, 9999, "again"), 0));
    m = link_next(l);
    cr_expect(has_body(&m, "again"));
    free(text);
    rpc_link_close(&l);
    rpc_server_close(&s);
}

Test(peer, says_when_its_own_queue_is_full)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", 10);
    struct rpc_link *l;
    int r = 0;

    l = link_queue(s, false, 10);
    rpc_server_close(&s); /* nobody is there */
    for (uint64_t n = 1; n <= 10000 && r == 0; n++)
        r = send_text(l, MESSAGE_HEARTBEAT, n, "");
    cr_expect(eq(int, r, -EAGAIN));
    rpc_link_close(&l);
}

Test(peer, never_waits_for_a_follower_that_does_not_read)
{
    struct rpc_server *s = serve(RPC_EVENTS, "tcp://127.0.0.1:*", 10);
    struct rpc_link *l = link_queue(s, true, 10);
    struct rpc_message m;
    uint64_t sequence = 0, last = 0;
    char *text = calloc(1, 100001);

    cr_assert(text != NULL);
    memset(text, 'x', 100000);
    while (!wait_readable(rpc_link_socket(l), 10))
        answer_text(s, all_peers, MESSAGE_EVENT, ++sequence, "");
    for (int i = 0; i < 2000; i++)
        cr_assert(eq(int, answer_text(s, all_peers, MESSAGE_EVENT, ++sequence, text), 0));
    do { /* the gap is seen by the next one that comes through */
        answer_text(s, all_peers, MESSAGE_EVENT, ++sequence, "");
        m = link_next(l);
        cr_expect(eq(int, (int)m.fault, MESSAGE_GOOD));
        cr_expect(gt(u64, m.header.sequence, last));
        last = m.header.sequence;
    } while (last <= 2000);
    free(text);
    rpc_link_close(&l);
    rpc_server_close(&s);
}

Test(peer, does_not_send_what_is_longer_than_its_type_may_be)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    struct rpc_link *l = link_to(s);
    char text[2000];
    struct json broken;
    struct message_header h = {.type = MESSAGE_HELLO};

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    cr_expect(eq(int, send_text(l, MESSAGE_HEARTBEAT, 1, text), -EMSGSIZE));
    cr_expect(eq(int, send_text(l, (enum message_type)99, 1, ""), -EMSGSIZE));
    cr_expect(eq(int, send_text(l, MESSAGE_DRAIN, 1, text), 0));
    json_init(&broken, NULL);
    broken.error = -ENOMEM;
    cr_expect(eq(int, rpc_link_send(l, &h, &broken), -ENOMEM));
    json_free(&broken);
    cr_expect(eq(int, (int)next(s).header.type, MESSAGE_DRAIN));
    rpc_link_close(&l);
    rpc_server_close(&s);
}

/* ---- connections ----------------------------------------------------------------------------- */

Test(peer, tells_which_connection_has_gone)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    struct rpc_link *a = link_to(s), *b = link_to(s);
    struct rpc_counts counts;
    struct rpc_message m;
    struct rpc_id id_a, id_b;
    int of_a, of_b, none;

    send_text(a, MESSAGE_HELLO, 1, "a");
    m = next(s);
    of_a = m.connection;
    id_a = m.from;
    send_text(b, MESSAGE_HELLO, 1, "b");
    m = next(s);
    of_b = m.connection;
    id_b = m.from;
    cr_expect(ne(int, of_a, of_b));
    send_text(a, MESSAGE_HEARTBEAT, 2, "");
    cr_expect(eq(int, next(s).connection, of_a));
    cr_expect(eq(int, rpc_server_gone(s, &none), 0));
    rpc_link_close(&a);
    cr_expect(eq(int, next_gone(s), of_a));
    cr_expect(eq(int, rpc_server_gone(s, &none), 0));
    cr_expect(eq(int, answer_text(s, &id_b, MESSAGE_RESYNC, 1, ""), 0));
    while (answer_text(s, &id_a, MESSAGE_RESYNC, 1, "") != -EHOSTUNREACH)
        rpc_receive(s, &m);
    rpc_server_counts(s, &counts);
    cr_expect(eq(u64, counts.dropped_gone, 1));
    rpc_link_close(&b);
    cr_expect(eq(int, next_gone(s), of_b));
    rpc_server_close(&s);
}

/* Descriptors come again at once; numbers do not. After the last message of a connection there is
 * word that it has gone, even if the message was read late. */
Test(peer, tells_connections_apart_that_get_the_same_descriptor)
{
    enum { ROUNDS = 300 };
    const int patient_ms = WAIT_MS;
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    bool gone[ROUNDS + 2] = {false};
    int connection, left = ROUNDS, last = 0;
    struct rpc_message m;

    for (int i = 0; i < ROUNDS; i++) {
        struct rpc_link *l = link_to(s);

        send_text(l, MESSAGE_HELLO, 1, "");
        zmq_setsockopt(rpc_link_socket(l), ZMQ_LINGER, &patient_ms, sizeof patient_ms);
        rpc_link_close(&l); /* what is queued still goes out */
        if (i % 3 == 0)
            continue; /* and is read later, with others */
        m = next(s);
        cr_assert(le(int, m.connection, ROUNDS));
        if (m.connection > 0)
            gone[m.connection] = false;
        last = m.connection > last ? m.connection : last;
        left--;
        while (rpc_server_gone(s, &connection) > 0)
            gone[connection] = true;
    }
    for (; left > 0; left--) {
        m = next(s);
        if (m.connection > 0)
            gone[m.connection] = false;
    }
    for (int i = 1; i <= ROUNDS; i++)
        while (!gone[i])
            gone[next_gone(s)] = true;
    cr_expect(gt(int, last, ROUNDS / 2));
    rpc_server_close(&s);
}

/* The descriptor of one whose only message was not read yet goes to another at once. */
Test(peer, is_not_led_astray_by_late_messages)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    struct rpc_link *late = link_to(s), *l;
    struct rpc_message m;
    int number, none;

    send_text(late, MESSAGE_GOODBYE, 1, "");
    cr_assert(wait_readable(rpc_server_socket(s), WAIT_MS));
    rpc_link_close(&late);
    next_gone(s);
    l = link_to(s);
    cr_assert(wait_readable(rpc_server_monitor(s), WAIT_MS), "the new one has been accepted");
    cr_expect(eq(int, (int)next(s).header.type, MESSAGE_GOODBYE));
    while (rpc_server_gone(s, &none)) /* perhaps the late one's once more */
        ;
    for (uint64_t i = 1; i <= 3; i++) {
        send_text(l, MESSAGE_HELLO, i, "");
        m = next(s);
        cr_expect(eq(int, (int)m.header.type, MESSAGE_HELLO));
        cr_expect(eq(int, m.connection, 2));
    }
    number = m.connection;
    rpc_link_close(&l);
    cr_expect(eq(int, next_gone(s), number));
    rpc_server_close(&s);
}

static size_t open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    cr_assert(dir != NULL);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static uint16_t port_of(const struct rpc_server *s)
{
    return (uint16_t)atoi(strrchr(rpc_server_endpoint(s), ':') + 1);
}

/* A plain TCP connection that says `bytes`. */
static int connect_raw(const struct rpc_server *s, const void *bytes, size_t n)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port_of(s)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert(eq(int, connect(fd, (struct sockaddr *)&to, sizeof to), 0));
    if (n > 0)
        cr_assert(eq(i64, send(fd, bytes, n, MSG_NOSIGNAL), (int64_t)n));
    return fd;
}

Test(peer, keeps_nothing_of_connections_that_come_and_go)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    size_t descriptors = 0;
    size_t before = 0;
    struct rpc_message m;

    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < 20; i++)
            close(connect_raw(s, "GET / HTTP/1.1\r\n\r\n", i % 2 ? 18 : 0));
        for (int i = 0; i < 20; i++)
            next_gone(s);
        while (rpc_receive(s, &m)) /* libzmq frees what has gone when it is asked for messages */
            ;
        if (round == 9) {
            descriptors = open_descriptors();
            before = mallinfo2().uordblks;
        }
    }
    cr_expect(lt(sz, mallinfo2().uordblks, before + 400 * 1024), "a KiB each");
    for (int i = 0; i < 1000 && open_descriptors() > descriptors + 2; i++)
        poll(NULL, 0, 10);
    cr_expect(le(sz, open_descriptors(), descriptors + 2));
    rpc_server_close(&s);
}

/* ---- what is broken -------------------------------------------------------------------------- */

/* A DEALER without our manners. */
struct raw {
    void *context, *socket;
};

static struct raw raw_named(const struct rpc_server *s, const char *name)
{
    struct raw raw = {.context = zmq_ctx_new()};

    raw.socket = zmq_socket(raw.context, ZMQ_DEALER);
    if (*name)
        zmq_setsockopt(raw.socket, ZMQ_ROUTING_ID, name, strlen(name));
    cr_assert(eq(int, zmq_connect(raw.socket, rpc_server_endpoint(s)), 0));
    return raw;
}

static struct raw raw_to(const struct rpc_server *s)
{
    return raw_named(s, "");
}

static void raw_close(struct raw *raw)
{
    int none = 0;

    zmq_setsockopt(raw->socket, ZMQ_LINGER, &none, sizeof none);
    zmq_close(raw->socket);
    zmq_ctx_term(raw->context);
}

static void raw_send(struct raw *raw, const void *bytes, size_t n, bool more)
{
    cr_assert(eq(int, zmq_send(raw->socket, bytes, n, more ? ZMQ_SNDMORE : 0), (int)n));
}

Test(peer, reports_messages_that_are_none)
{
    enum { BIG = 2000 };
    static char big[BIG];
    struct message_header h = {.type = MESSAGE_HEARTBEAT, .sequence = 5};
    uint8_t good[MESSAGE_HEADER], other[MESSAGE_HEADER], unknown[MESSAGE_HEADER];
    const struct {
        const void *frames[4];
        size_t sizes[4], n;
        enum message_fault want;
    } rows[] = {
        {{"x"}, {1}, 1, MESSAGE_NOT_OURS},
        {{""}, {0}, 1, MESSAGE_NOT_OURS},
        {{good}, {MESSAGE_HEADER}, 1, MESSAGE_MALFORMED},
        {{good, "{}", "{}"}, {MESSAGE_HEADER, 2, 2}, 3, MESSAGE_MALFORMED},
        {{"", good, "{}"}, {0, MESSAGE_HEADER, 2}, 3, MESSAGE_NOT_OURS},
        {{good, "{}", "", ""}, {MESSAGE_HEADER, 2, 0, 0}, 4, MESSAGE_MALFORMED},
        {{"x", "{}"}, {1, 2}, 2, MESSAGE_NOT_OURS},
        {{big, "{}"}, {MESSAGE_HEADER, 2}, 2, MESSAGE_NOT_OURS},
        {{other, "{}"}, {MESSAGE_HEADER, 2}, 2, MESSAGE_OTHER_VERSION},
        {{other}, {MESSAGE_HEADER}, 1, MESSAGE_OTHER_VERSION},
        {{unknown, "{}"}, {MESSAGE_HEADER, 2}, 2, MESSAGE_UNKNOWN_TYPE},
        {{good, big}, {MESSAGE_HEADER, BIG}, 2, MESSAGE_TOO_LARGE},
        {{good, "{}"}, {MESSAGE_HEADER, 2}, 2, MESSAGE_GOOD},
        {{good, ""}, {MESSAGE_HEADER, 0}, 2, MESSAGE_GOOD},
    };
    enum { N = sizeof rows / sizeof *rows };
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    struct raw raw = raw_to(s);
    struct rpc_counts counts;

    message_pack(good, &h);
    memcpy(other, good, sizeof other);
    other[4] = 9;
    h.type = 77;
    message_pack(unknown, &h);
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < rows[i].n; k++)
            raw_send(&raw, rows[i].frames[k], rows[i].sizes[k], k + 1 < rows[i].n);
    for (size_t i = 0; i < N; i++) {
        struct rpc_message m = next(s);

        cr_expect(eq(int, (int)m.fault, (int)rows[i].want), "row %zu", i);
        cr_expect(eq(u64, m.header.sequence, m.fault == MESSAGE_NOT_OURS ? 0 : 5), "row %zu", i);
        if (m.fault != MESSAGE_NOT_OURS)
            cr_expect(eq(int, answer_text(s, &m.from, MESSAGE_ERROR, 5, "no"), 0));
    }
    rpc_server_counts(s, &counts);
    cr_expect(eq(u64, counts.received, N));
    cr_expect(eq(u64, counts.faults, N - 2));
    raw_close(&raw);
    rpc_server_close(&s);
}

Test(peer, stays_with_the_first_of_two_that_call_themselves_the_same)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    struct message_header h = {.type = MESSAGE_HEARTBEAT, .sequence = 1};
    uint8_t header[MESSAGE_HEADER];
    struct raw a = raw_named(s, "same"), b;
    struct rpc_link *l = link_to(s);
    struct rpc_message m;

    message_pack(header, &h);
    raw_send(&a, header, sizeof header, true);
    raw_send(&a, "{}", 2, false);
    m = next(s);
    cr_expect(eq(int, m.from.size, 4));
    cr_expect(gt(int, m.connection, 0));
    b = raw_named(s, "same");
    raw_send(&b, "x", 1, false);
    raw_send(&a, header, sizeof header, true);
    raw_send(&a, "{}", 2, false);
    cr_expect(eq(int, (int)next(s).fault, MESSAGE_GOOD));
    send_text(l, MESSAGE_HEARTBEAT, 9, "");
    cr_expect(eq(u64, next(s).header.sequence, 9));
    raw_close(&a);
    raw_close(&b);
    rpc_link_close(&l);
    rpc_server_close(&s);
}

Test(peer, sees_nothing_of_half_messages)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    struct message_header h = {.type = MESSAGE_HEARTBEAT};
    uint8_t header[MESSAGE_HEADER];
    struct rpc_message m;
    struct raw raw = raw_to(s);
    struct rpc_link *l = link_to(s);

    message_pack(header, &h);
    raw_send(&raw, header, sizeof header, false);
    cr_expect(eq(int, (int)next(s).fault, MESSAGE_MALFORMED));
    raw_send(&raw, header, sizeof header, true);
    raw_close(&raw);
    next_gone(s);
    send_text(l, MESSAGE_HEARTBEAT, 3, "whole");
    m = next(s);
    cr_expect(eq(u64, m.header.sequence, 3));
    cr_expect(has_body(&m, "whole"));
    cr_expect(eq(int, rpc_receive(s, &m), 0));
    rpc_link_close(&l);
    rpc_server_close(&s);
}

Test(peer, cuts_off_who_sends_frames_beyond_all_limits)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    struct message_header h = {.type = MESSAGE_HELLO};
    uint8_t header[MESSAGE_HEADER];
    struct raw raw = raw_to(s);
    struct rpc_message m;
    size_t n = (17u << 20);
    char *big = calloc(1, n);

    cr_assert(big != NULL);
    message_pack(header, &h);
    raw_send(&raw, header, sizeof header, true);
    raw_send(&raw, big, n, false);
    next_gone(s);
    cr_expect(eq(int, rpc_receive(s, &m), 0));
    free(big);
    raw_close(&raw);
    rpc_server_close(&s);
}

Test(peer, counts_who_speaks_something_else)
{
    /* ZMTP 3.0's greeting and the begin of a READY that never ends */
    static const char greeting[64] = {'\xff', 0,      0, 0, 0,   0,   0,   0,
                                      1,      '\x7f', 3, 0, 'N', 'U', 'L', 'L'};
    char half[70];
    struct rpc_server *s = serve(RPC_CLIENTS, "tcp://127.0.0.1:*", QUEUE);
    struct rpc_counts counts = {0};
    struct rpc_link *l = link_to(s);
    struct rpc_message m;

    memcpy(half, greeting, sizeof greeting);
    memcpy(half + sizeof greeting, "\x04\x19\x05READ", 6);
    close(connect_raw(s, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12));
    close(connect_raw(s, "hello\n", 6));
    close(connect_raw(s, half, sizeof half));
    for (int i = 0; i < 3; i++)
        next_gone(s);
    rpc_server_counts(s, &counts);
    cr_expect(ge(u64, counts.faults, 2));
    send_text(l, MESSAGE_PING, 1, "still there");
    m = next(s);
    cr_expect(has_body(&m, "still there"));
    rpc_link_close(&l);
    rpc_server_close(&s);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

Test(peer, binds_without_keys_only_where_others_cannot_reach)
{
    static const struct {
        const char *endpoint;
        int want;
    } rows[] = {
        {"tcp://127.0.0.1:*", 0},
        {"tcp://127.3.2.1:*", 0},
        {"tcp://localhost:*", 0},
        {"tcp://0.0.0.0:*", -EACCES},
        {"tcp://*:*", -EACCES},
        {"tcp://10.1.2.3:4000", -EACCES},
        {"tcp://128.0.0.1:4000", -EACCES},
        {"tcp://[::]:*", -EACCES},
        {"tcp://[::ffff:10.1.2.3]:*", -EACCES},
        {"tcp://localhost.example.org:*", -EACCES},
        {"tcp://lo:*", -EACCES},
        {"tcp://:4000", -EINVAL},
        {"tcp://127.0.0.1", -EINVAL},
        {"tcp://127.0.0.1:", -EINVAL},
        {"ipc://", -EINVAL},
        {"inproc://x", -EINVAL},
        {"udp://127.0.0.1:4000", -EINVAL},
        {"127.0.0.1:4000", -EINVAL},
        {"", -EINVAL},
        {"tcp://127.0.0.1:99999", -EINVAL},
        {"ipc:///nonexistent/dir/socket", -ENOENT},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rpc_server *s = NULL;
        struct spec_error err = {""};
        int r = rpc_server_open(RPC_AGENTS, rows[i].endpoint, NULL, false, 10, &s, &err);

        cr_expect(eq(int, r, rows[i].want), "%s: %s", rows[i].endpoint, err.text);
        if (r < 0)
            cr_expect(strstr(err.text, rows[i].endpoint) != NULL, "%s", err.text);
        if (r == -EACCES)
            cr_expect(strstr(err.text, "--insecure-bind") != NULL, "%s", err.text);
        rpc_server_close(&s);
    }
}

Test(peer, binds_everywhere_if_told_so)
{
    struct rpc_server *s = NULL;
    struct spec_error err = {""};

    cr_assert(eq(int, rpc_server_open(RPC_AGENTS, "tcp://0.0.0.0:*", NULL, true, 10, &s, &err), 0),
              "%s", err.text);
    rpc_server_close(&s);
    cr_assert(
        eq(int, rpc_server_open(RPC_AGENTS, "inproc://x", NULL, true, 10, &s, &err), -EINVAL));
}

Test(peer, says_when_an_endpoint_is_taken)
{
    struct rpc_server *a = serve(RPC_AGENTS, "tcp://127.0.0.1:*", 10), *b = NULL;
    struct spec_error err = {""};

    cr_expect(eq(int,
                 rpc_server_open(RPC_AGENTS, rpc_server_endpoint(a), NULL, false, 10, &b, &err),
                 -EADDRINUSE));
    cr_expect(strstr(err.text, "in use") != NULL, "%s", err.text);
    rpc_server_close(&a);
}

Test(peer, says_what_is_wrong_with_an_endpoint_to_connect_to)
{
    static const char *const bad[] = {"", "tcp://", "tcp://127.0.0.1", "inproc://x", "localhost:1"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rpc_link_config cfg = {.endpoint = bad[i], .queue = 10};
        struct spec_error err = {""};
        struct rpc_link *l = NULL;

        cr_expect(eq(int, rpc_link_open(&cfg, &l, &err), -EINVAL), "%s", bad[i]);
        cr_expect(strstr(err.text, "accepted: tcp://HOST:PORT, ipc://PATH") != NULL, "%s",
                  err.text);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A service in a process of its own: answers each request, but for what it is told. */
static void run_service(struct rpc_server *s)
{
    struct rpc_message m;
    struct json j;
    struct message_header h;

    alarm(60);
    for (;;) {
        m = next(s);
        h = (struct message_header){.type = MESSAGE_REPLY, .sequence = m.header.sequence};
        json_init(&j, NULL);
        json_begin(&j, NULL, '{');
        if (m.header.type ==
            MESSAGE_LIST) { /* late news, then another's answer, then the right one */
            answer_text(s, &m.from, MESSAGE_HEARTBEAT, h.sequence, "");
            answer_text(s, &m.from, MESSAGE_REPLY, h.sequence - 1, "late");
        } else if (m.header.type == MESSAGE_CANCEL) {
            h.type = MESSAGE_ERROR;
            json_string(&j, "code", "not-found");
            json_string(&j, "text", "no such job");
        }
        json_uint(&j, "sequence", h.sequence);
        json_end(&j, '}');
        if (m.header.type == MESSAGE_NODES)
            j.v[0] = '[';
        if (m.header.type != MESSAGE_LOGS)
            rpc_send(s, &m.from, &h, &j);
        json_free(&j);
    }
}

static pid_t start_service(char endpoint[256])
{
    int ends[2];
    pid_t pid;
    ssize_t n;

    cr_assert(eq(int, pipe(ends), 0));
    pid = fork();
    if (pid == 0) {
        struct rpc_server *s = serve(RPC_CLIENTS, "tcp://127.0.0.1:*", QUEUE);

        n = write(ends[1], rpc_server_endpoint(s), strlen(rpc_server_endpoint(s)) + 1);
        run_service(s);
    }
    n = read(ends[0], endpoint, 256);
    close(ends[0]);
    close(ends[1]);
    cr_assert(pid > 0 && n > 0);
    return pid;
}

static int call(struct rpc_link *l, enum message_type type, int timeout_ms, struct doc_file *reply,
                struct rpc_refusal *refusal)
{
    struct json body = body_of("");
    struct spec_error err = {""};
    int r = rpc_call(l, type, &body, timeout_ms, reply, refusal, &err);

    if (r == -ETIMEDOUT || r == -EBADMSG)
        cr_expect(strlen(err.text) > 0);
    json_free(&body);
    return r;
}

static int64_t sequence_in(const struct doc_file *reply)
{
    struct spec_error err;
    int64_t sequence = 0;

    doc_int(reply, reply->root, "sequence", 0, DOC_INTEGER_MAX, &sequence, &err);
    return sequence;
}

Test(peer, calls_and_gets_the_answer_to_this_call)
{
    char endpoint[256];
    pid_t service = start_service(endpoint);
    struct rpc_link_config cfg = {.endpoint = endpoint, .queue = 10};
    struct doc_file reply = {0};
    struct rpc_refusal refusal;
    struct spec_error err;
    struct rpc_link *l;

    cr_assert(eq(int, rpc_link_open(&cfg, &l, &err), 0));
    cr_expect(eq(int, call(l, MESSAGE_PING, WAIT_MS, &reply, &refusal), 0));
    cr_expect(eq(i64, sequence_in(&reply), 1));
    cr_expect(eq(int, call(l, MESSAGE_LIST, WAIT_MS, &reply, &refusal), 0));
    cr_expect(eq(i64, sequence_in(&reply), 2));
    cr_expect(eq(int, call(l, MESSAGE_CANCEL, WAIT_MS, &reply, &refusal), -EPROTO));
    cr_expect(strcmp(refusal.code, "not-found") == 0);
    cr_expect(strcmp(refusal.text, "no such job") == 0);
    cr_expect(eq(int, call(l, MESSAGE_LOGS, 50, &reply, &refusal), -ETIMEDOUT));
    cr_expect(eq(int, call(l, MESSAGE_NODES, WAIT_MS, &reply, &refusal), -EBADMSG));
    cr_expect(eq(int, call(l, MESSAGE_PING, WAIT_MS, &reply, &refusal), 0));
    cr_expect(eq(i64, sequence_in(&reply), 6));
    doc_free(&reply);
    rpc_link_close(&l);
    kill(service, SIGKILL);
    waitpid(service, NULL, 0);
}

Test(peer, gives_up_a_call_when_nobody_is_there)
{
    struct rpc_link_config cfg = {.endpoint = "tcp://127.0.0.1:1", .queue = 10};
    struct doc_file reply = {0};
    struct rpc_refusal refusal;
    struct spec_error err;
    struct rpc_link *l;

    cr_assert(eq(int, rpc_link_open(&cfg, &l, &err), 0));
    for (int i = 0; i < 20; i++) /* more than the queue holds */
        cr_expect(eq(int, call(l, MESSAGE_PING, 10, &reply, &refusal), -ETIMEDOUT));
    doc_free(&reply);
    rpc_link_close(&l);
}

Test(peer, connects_again_by_itself)
{
    struct rpc_server *s = serve(RPC_AGENTS, "tcp://127.0.0.1:*", QUEUE);
    struct rpc_link *l = link_to(s);
    char endpoint[256];
    struct rpc_message m;

    snprintf(endpoint, sizeof endpoint, "%s", rpc_server_endpoint(s));
    send_text(l, MESSAGE_HELLO, 1, "first");
    m = next(s);
    cr_expect(has_body(&m, "first"));
    rpc_server_close(&s);
    for (int i = 0; i < 1000 && !s; i++) { /* the old socket's port comes free in a moment */
        struct spec_error err;

        if (rpc_server_open(RPC_AGENTS, endpoint, NULL, false, QUEUE, &s, &err) < 0)
            poll(NULL, 0, 10);
    }
    cr_assert(s != NULL);
    do /* what was on its way when the connection broke is lost */
        send_text(l, MESSAGE_HELLO, 1, "second");
    while (!wait_readable(rpc_server_socket(s), 100));
    m = next(s);
    cr_expect(has_body(&m, "second"));
    rpc_link_close(&l);
    rpc_server_close(&s);
}

static bool says_renewed(struct rpc_link *l)
{
    for (int i = 0; i < WAIT_MS / 10; i++) {
        if (rpc_link_renewed(l))
            return true;
        poll(NULL, 0, 10);
    }
    return false;
}

Test(peer, tells_of_a_new_connection_after_one_that_broke)
{
    char dir[] = "/tmp/pliant-peer-XXXXXX", endpoint[64];
    struct rpc_link_config cfg = {.endpoint = endpoint, .watched = true, .queue = QUEUE};
    struct rpc_server *s;
    struct spec_error err = {""};
    struct rpc_link *l;

    cr_assert(ne(ptr, mkdtemp(dir), NULL));
    snprintf(endpoint, sizeof endpoint, "ipc://%s/s", dir);
    cr_assert(eq(int, rpc_link_open(&cfg, &l, &err), 0), "%s", err.text);
    s = serve(RPC_AGENTS, endpoint, QUEUE);
    send_text(l, MESSAGE_HELLO, 1, "first");
    next(s);
    cr_expect(not(rpc_link_renewed(l)), "the first connection is none");
    for (int life = 2; life <= 3; life++) {
        rpc_server_close(&s);
        s = serve(RPC_AGENTS, endpoint, QUEUE);
        cr_expect(says_renewed(l), "life %d", life);
        cr_expect(not(rpc_link_renewed(l)), "life %d is told once", life);
    }
    rpc_link_close(&l);
    rpc_server_close(&s);
    unlink(endpoint + strlen("ipc://"));
    rmdir(dir);
}

/* ---- the process ----------------------------------------------------------------------------- */

Test(process, fills_the_standard_descriptors_and_leaves_signals_alone)
{
    struct sigaction before, after, pipe_action;
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        for (int fd = 0; fd <= 2; fd++)
            close(fd);
        sigaction(SIGTERM, NULL, &before);
        rpc_prepare_process();
        for (int fd = 0; fd <= 2; fd++)
            if (fcntl(fd, F_GETFD) < 0)
                _exit(10 + fd);
        sigaction(SIGTERM, NULL, &after);
        sigaction(SIGPIPE, NULL, &pipe_action);
        if (after.sa_handler != before.sa_handler)
            _exit(20);
        _exit(pipe_action.sa_handler == SIG_IGN ? 0 : 21);
    }
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_expect(eq(int, WEXITSTATUS(status), 0));
}

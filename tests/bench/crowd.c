/* crowd.c - see crowd.h */
#include "crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define INCARNATION 1000u
#define FRAME_MORE 1u
#define FRAME_LONG 2u
#define FRAME_COMMAND 4u
#define GREETING 64u
#define READ_BYTES 65536u
#define EVENTS 256

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: crowd: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static void append(struct crowd_bytes *b, const void *bytes, size_t n)
{
    must(vec_room(NULL, b, n), "memory");
    memcpy(b->v + b->n, bytes, n);
    b->n += n;
}

static void drop_front(struct crowd_bytes *b, size_t n)
{
    memmove(b->v, b->v + n, b->n - n);
    b->n -= n;
}

static void append_frame(struct crowd_bytes *b, uint8_t flags, const void *bytes, size_t n)
{
    uint8_t head[9] = {flags, (uint8_t)n};

    if (n > UINT8_MAX) {
        head[0] |= FRAME_LONG;
        for (size_t i = 0; i < 8; i++)
            head[1 + i] = (uint8_t)((uint64_t)n >> (56 - 8 * i));
    }
    append(b, head, n > UINT8_MAX ? 9 : 2);
    append(b, bytes, n);
}

/* Version 3.0, mechanism NULL; then the command that says what we are. */
static void append_greeting(struct crowd_bytes *b)
{
    static const uint8_t greeting[GREETING] = {0xff, 0,    0, 0, 0,   0,   0,   0,
                                               1,    0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const char ready[] = "\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\0";

    append(b, greeting, sizeof greeting);
    append_frame(b, FRAME_COMMAND, ready, sizeof ready - 1);
}

/* ---- saying --------------------------------------------------------------------------------- */

void crowd_say(struct crowd *c, uint32_t i, enum message_type type, const char *body, size_t n)
{
    struct crowd_agent *a = &c->v[i];
    uint8_t header[MESSAGE_HEADER];

    message_pack(header, &(struct message_header){.type = (uint16_t)type,
                                                  .epoch = INCARNATION,
                                                  .sequence = ++a->sequence});
    append_frame(&a->out, FRAME_MORE, header, sizeof header);
    append_frame(&a->out, 0, body, n);
}

static void watch(struct crowd *c, uint32_t i, int op)
{
    struct crowd_agent *a = &c->v[i];
    struct epoll_event e = {.events = EPOLLIN | (a->waits ? EPOLLOUT : 0u), .data.u32 = i};

    must(epoll_ctl(c->epoll, op, a->fd, &e) == 0, "epoll");
}

static void leave(struct crowd *c, uint32_t i)
{
    struct crowd_agent *a = &c->v[i];

    if (a->fd < 0)
        return;
    close(a->fd);
    a->fd = -1;
    c->n_connected--;
}

void crowd_flush(struct crowd *c, uint32_t i)
{
    struct crowd_agent *a = &c->v[i];
    ssize_t n = a->fd < 0 || a->out.n == 0 ? 0 : send(a->fd, a->out.v, a->out.n, MSG_NOSIGNAL);
    bool waits;

    if (a->fd < 0)
        return;
    if (n < 0 && errno != EAGAIN) {
        leave(c, i);
        return;
    }
    drop_front(&a->out, n > 0 ? (size_t)n : 0);
    waits = a->out.n > 0;
    if (waits != a->waits) {
        a->waits = waits;
        watch(c, i, EPOLL_CTL_MOD);
    }
}

static void write_state(struct json *j, const struct crowd_task *t, const char *state,
                        const char *end)
{
    char text[512];
    int n = snprintf(text, sizeof text, "{%s,\"slot\":%u,\"state\":\"%s\",\"pid\":%u%s%s}", t->name,
                     t->slot, state, 1000 + t->slot, end ? ",\"end\":" : "", end ? end : "");

    json_raw(j, NULL, text, (size_t)n);
}

static void begin_states(struct json *j)
{
    json_init(j, NULL);
    json_begin(j, NULL, '{');
    json_begin(j, "tasks", '[');
}

static void end_states(struct crowd *c, uint32_t i, struct json *j)
{
    json_end(j, ']');
    json_end(j, '}');
    crowd_say(c, i, MESSAGE_TASKS, j->v, j->n);
    crowd_flush(c, i);
    json_free(j);
}

void crowd_tell(struct crowd *c, const char *state, const char *end)
{
    struct json j;

    for (uint32_t s = 0; s < c->slots; s++)
        for (uint32_t i = 0; i < c->n; i++)
            if (s < c->v[i].tasks.n) {
                begin_states(&j);
                write_state(&j, &c->v[i].tasks.v[s], state, end);
                end_states(c, i, &j);
            }
}

static void say_hello(struct crowd *c, uint32_t i)
{
    struct crowd_agent *a = &c->v[i];
    char name[32];
    struct json j;

    a->sequence = 0;
    snprintf(name, sizeof name, "n%u", i);
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_raw(&j, "protocol", "[1,1]", 5);
    json_string(&j, "node", name);
    json_id(&j, "incarnation", INCARNATION);
    json_uint(&j, "slots", c->slots);
    json_string(&j, "address", "127.0.0.1");
    json_begin(&j, "tasks", '[');
    for (size_t t = 0; t < a->tasks.n; t++)
        write_state(&j, &a->tasks.v[t], "running", NULL);
    json_end(&j, ']');
    json_end(&j, '}');
    crowd_say(c, i, MESSAGE_HELLO, j.v, j.n);
    json_free(&j);
}

/* ---- hearing -------------------------------------------------------------------------------- */

/* pliantd begins an element with the four members that name a task: from there to `behind`. */
static char *next_name(const char **at, const char *behind)
{
    const char *first = strstr(*at, "{\"job\":"), *last = first ? strstr(first, behind) : NULL;

    if (!last)
        return NULL;
    *at = last + strlen(behind);
    return strndup(first + 1, (size_t)(last - first - 1));
}

void crowd_give(struct crowd *c, uint32_t i, const char *name, uint32_t slot)
{
    struct crowd_task *t = vec_push(NULL, &c->v[i].tasks);

    must(t != NULL, "memory");
    *t = (struct crowd_task){.name = strdup(name), .slot = slot};
    c->n_tasks++;
}

static void deploy(struct crowd *c, uint32_t i, const char *body)
{
    struct crowd_agent *a = &c->v[i];
    char *name;
    struct json j;

    begin_states(&j);
    while ((name = next_name(&body, ",\"slot\":"))) {
        crowd_give(c, i, name, (uint32_t)atoi(body));
        free(name);
        write_state(&j, &a->tasks.v[a->tasks.n - 1], "running", NULL);
    }
    if (!c->hold)
        end_states(c, i, &j);
    json_free(&j);
}

static void stop(struct crowd *c, uint32_t i, const char *body)
{
    static const char end[] = "{\"how\":\"stopped\",\"code\":0}";
    struct crowd_agent *a = &c->v[i];
    char *name;
    struct json j;

    begin_states(&j);
    while ((name = next_name(&body, ",\"stop_timeout_ms\":"))) {
        for (size_t t = 0; t < a->tasks.n; t++)
            if (strcmp(a->tasks.v[t].name, name) == 0)
                write_state(&j, &a->tasks.v[t], "ended", end);
        free(name);
    }
    end_states(c, i, &j);
}

static void forget(struct crowd *c, uint32_t i, const char *body)
{
    struct crowd_agent *a = &c->v[i];
    char *name;

    while ((name = next_name(&body, "}"))) {
        for (size_t t = 0; t < a->tasks.n; t++)
            if (strcmp(a->tasks.v[t].name, name) == 0) {
                free(a->tasks.v[t].name);
                a->tasks.v[t] = a->tasks.v[--a->tasks.n];
                c->n_tasks--;
                break;
            }
        free(name);
    }
}

static void take(struct crowd *c, uint32_t i, uint16_t type, const char *body)
{
    switch ((unsigned)type) {
    case MESSAGE_WELCOME:
        c->n_welcome++;
        return;
    case MESSAGE_HEARTBEAT:
        c->n_beats++;
        return;
    case MESSAGE_DEPLOY:
        deploy(c, i, body);
        return;
    case MESSAGE_STOP:
        stop(c, i, body);
        return;
    case MESSAGE_FORGET:
        forget(c, i, body);
        return;
    case MESSAGE_RESYNC:
        say_hello(c, i);
        return;
    case MESSAGE_ERROR:
        c->n_errors++;
        return;
    default:
        return;
    }
}

struct frame {
    uint8_t flags;
    char *bytes;
    size_t n, all; /* all: with what is in front */
};

static bool frame_at(const struct crowd_bytes *b, size_t at, struct frame *ret)
{
    const uint8_t *v = (const uint8_t *)b->v + at;
    size_t left = b->n - at, head;

    if (left < 2)
        return false;
    ret->flags = v[0];
    head = v[0] & FRAME_LONG ? 9 : 2;
    if (left < head)
        return false;
    ret->n = v[1];
    for (size_t i = 2; i < head; i++)
        ret->n = ret->n << 8 | v[i];
    ret->bytes = b->v + at + head;
    ret->all = head + ret->n;
    return left >= ret->all;
}

/* The messages in what has come; the end of the last may be missing. */
static void take_all(struct crowd *c, uint32_t i)
{
    struct crowd_agent *a = &c->v[i];
    struct frame header, body;
    struct message_header h;
    size_t at = 0;

    if (!a->greeted && a->in.n < GREETING)
        return;
    at = a->greeted ? 0 : GREETING;
    a->greeted = true;
    while (frame_at(&a->in, at, &header)) {
        if (header.flags & FRAME_COMMAND) { /* READY: libzmq wants no message before its own */
            at += header.all;
            say_hello(c, i);
            continue;
        }
        if (!frame_at(&a->in, at + header.all, &body))
            break;
        at += header.all + body.all;
        if (message_unpack(header.bytes, header.n, body.n, &h) == MESSAGE_GOOD) {
            char saved = body.bytes[body.n]; /* there is room behind the last, see hear() */

            body.bytes[body.n] = '\0';
            take(c, i, h.type, body.bytes);
            body.bytes[body.n] = saved;
        }
    }
    drop_front(&a->in, at);
}

static void hear(struct crowd *c, uint32_t i)
{
    struct crowd_agent *a = &c->v[i];
    ssize_t n;

    must(vec_room(NULL, &a->in, READ_BYTES + 1), "memory");
    n = recv(a->fd, a->in.v + a->in.n, READ_BYTES, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        leave(c, i);
        return;
    }
    a->in.n += n > 0 ? (size_t)n : 0;
    take_all(c, i);
    if (a->in.n == 0)
        vec_free(NULL, &a->in);
}

void crowd_pump(struct crowd *c, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(c->epoll, events, EVENTS, timeout_ms);

    for (int k = 0; k < n; k++) {
        uint32_t i = events[k].data.u32;

        if (events[k].events & EPOLLOUT)
            crowd_flush(c, i);
        if (c->v[i].fd >= 0 && events[k].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            hear(c, i);
        if (c->v[i].fd >= 0 && c->v[i].out.n > 0 && !c->v[i].waits)
            crowd_flush(c, i);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

void crowd_open(struct crowd *c, uint32_t n, uint32_t slots)
{
    struct rlimit files;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    *c = (struct crowd){.n = n, .slots = slots, .v = bench_alloc(n, sizeof *c->v)};
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    must(c->epoll >= 0, "epoll");
    for (uint32_t i = 0; i < n; i++)
        c->v[i].fd = -1;
}

static void connect_one(struct crowd *c, uint32_t i, const struct sockaddr_in *to)
{
    struct crowd_agent *a = &c->v[i];
    int one = 1;

    leave(c, i);
    a->in.n = a->out.n = 0;
    a->greeted = a->waits = false;
    a->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(a->fd >= 0 && connect(a->fd, (const struct sockaddr *)to, sizeof *to) == 0, "connect");
    fcntl(a->fd, F_SETFL, O_NONBLOCK);
    setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->n_connected++;
    watch(c, i, EPOLL_CTL_ADD);
    append_greeting(&a->out);
    crowd_flush(c, i);
}

void crowd_connect(struct crowd *c, const char *endpoint)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    to.sin_port = htons((uint16_t)atoi(strrchr(endpoint, ':') + 1));
    c->n_welcome = 0;
    for (uint32_t i = 0; i < c->n; i++)
        connect_one(c, i, &to);
}

void crowd_close(struct crowd *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        leave(c, i);
        for (size_t t = 0; t < c->v[i].tasks.n; t++)
            free(c->v[i].tasks.v[t].name);
        vec_free(NULL, &c->v[i].tasks);
        vec_free(NULL, &c->v[i].in);
        vec_free(NULL, &c->v[i].out);
    }
    free(c->v);
    close(c->epoll);
}

/* session.c - the link with the daemon; see agent.h and docs/protocol.md */
#include "agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rpc/log.h"
#include "util/prng.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_LAST_MS 5000
#define ANSWER_MS 2000 /* a daemon that is there answers HELLO within so long */
#define QUEUE 10000    /* messages */
#define A_TURN 256     /* messages taken in before others get their turn */
#define STALE_EXIT 1

#define HEARTBEAT_INTERVAL_MS 5000 /* until WELCOME says more */
#define HEARTBEAT_TIMEOUT_MS 15000

/* ---- sending ------------------------------------------------------------------------------------
 */

struct json *session_body(struct agent *a)
{
    json_reset(&a->body);
    json_begin(&a->body, NULL, '{');
    return &a->body;
}

static void send_now(struct agent *a, enum message_type type, const struct json *body)
{
    struct session *s = &a->session;
    struct message_header h = {
        .type = (uint16_t)type, .epoch = a->incarnation, .sequence = ++s->sent};
    int r = rpc_link_send(s->link, &h, body);

    if (r == -ENOMEM)
        must(NULL);
    if (r < 0) /* the daemon sees the gap and asks for HELLO */
        say(SAY_WARN, "msg=\"a message was dropped\" type=%s error=\"%s\"",
            message_kind((uint16_t)type)->name, strerror(-r));
    a->again = true; /* sending may swallow the edge of what came in */
}

void session_send(struct agent *a, enum message_type type, const struct json *body)
{
    if (a->session.state == SESSION_UP)
        send_now(a, type, body);
}

static void write_labels(const struct agent *a, struct json *j)
{
    json_begin(j, "labels", '{');
    for (size_t i = 0; i < a->opts->labels.n; i++)
        json_member(j, a->opts->labels.v[i].key, a->opts->labels.v[i].value);
    json_end(j, '}');
}

/* All that we know: the beginning of a session. */
static void say_hello(struct agent *a)
{
    const struct agent_options *o = a->opts;
    struct session *s = &a->session;
    struct json *j = session_body(a);

    json_begin(j, "protocol", '[');
    json_int(j, NULL, MESSAGE_VERSION);
    json_int(j, NULL, MESSAGE_VERSION);
    json_end(j, ']');
    json_string(j, "node", o->node);
    json_id(j, "incarnation", a->incarnation);
    json_int(j, "slots", o->slots);
    json_string(j, "zone", o->zone);
    json_string(j, "domain", o->domain);
    write_labels(a, j);
    json_string(j, "address", o->address);
    json_string(j, "host", o->host);
    json_int(j, "pid", getpid());
    json_bool(j, "keep_tasks", o->keep_tasks);
    json_id(j, "epoch", s->epoch);
    drain_write(a, j, "drain");
    tasks_write(a, j, true);
    json_end(j, '}');
    s->state = SESSION_HELLO;
    s->sent = s->heard = 0;
    s->beat_at_ms = PLIANT_NEVER;
    s->lost_at_ms = a->now_ms + (ANSWER_MS > s->backoff_ms ? ANSWER_MS : s->backoff_ms);
    send_now(a, MESSAGE_HELLO, j);
}

/* ---- the link
 * -------------------------------------------------------------------------------------- */

/* The descriptors are edge-triggered and only hints: every turn receives. */
static void link_ready(struct agent *a, void *self, uint32_t events)
{
    (void)a;
    (void)self;
    (void)events;
}

static void close_link(struct agent *a)
{
    source_leave(a, &a->session.source); /* the descriptors are ZeroMQ's */
    source_leave(a, &a->session.watch);
    rpc_link_close(&a->session.link);
}

static void tell_keeper_endpoint(struct agent *a, const char *endpoint)
{
    struct keeper_message m = {.op = KEEPER_ENDPOINT};

    snprintf(m.text, sizeof m.text, "%s", endpoint);
    keep_tell(a, &m, -1);
}

static void tell_keeper_patience(struct agent *a)
{
    struct keeper_message m = {.op = KEEPER_ORPHAN_TIMEOUT,
                               .timeout_ms = a->session.orphan_timeout_ms};

    keep_tell(a, &m, -1);
}

/* A delay that grows, and varies by a half so that not all agents come at once. */
static int64_t next_backoff(struct session *s)
{
    struct prng chance = {.state = s->jitter};
    int64_t ms = s->backoff_ms / 2 + (int64_t)prng_below(&chance, (uint64_t)s->backoff_ms + 1);

    s->jitter = chance.state;
    s->backoff_ms *= 2;
    if (s->backoff_ms > BACKOFF_LAST_MS)
        s->backoff_ms = BACKOFF_LAST_MS;
    return ms;
}

static void open_link(struct agent *a)
{
    struct session *s = &a->session;
    struct rpc_link_config cfg = {.endpoint = a->opts->endpoints.v[s->endpoint],
                                  .identity = s->identity,
                                  .watched = true,
                                  .queue = QUEUE};
    struct spec_error err;
    int r = rpc_link_open(&cfg, &s->link, &err);

    if (r == -ENOMEM)
        must(NULL);
    if (r < 0) {
        say(SAY_ERROR, "msg=\"cannot connect\" endpoint=%s error=%s", cfg.endpoint,
            log_quoted(err.text).v);
        s->endpoint = (s->endpoint + 1) % a->opts->endpoints.n;
        s->open_at_ms = a->now_ms + next_backoff(s);
        return;
    }
    s->open_at_ms = PLIANT_NEVER;
    source_open(a, &s->source, rpc_link_fd(s->link), EPOLLIN, link_ready, NULL);
    source_open(a, &s->watch, rpc_link_watch_fd(s->link), EPOLLIN, link_ready, NULL);
    say_hello(a);
}

/* Nothing was heard for too long. One that never answered gives way to the next alternative. */
static void lose(struct agent *a)
{
    struct session *s = &a->session;

    if (s->state == SESSION_UP)
        say(SAY_WARN, "msg=\"the daemon is silent\" endpoint=%s",
            a->opts->endpoints.v[s->endpoint]);
    else
        s->endpoint = (s->endpoint + 1) % a->opts->endpoints.n;
    close_link(a);
    if (s->orphaned_at_ms == PLIANT_NEVER)
        s->orphaned_at_ms = instant_after(a->now_ms, s->orphan_timeout_ms);
    s->state = SESSION_DOWN;
    s->beat_at_ms = s->lost_at_ms = PLIANT_NEVER;
    s->open_at_ms = a->now_ms + next_backoff(s);
}

void session_start(struct agent *a)
{
    a->session.state = SESSION_DOWN;
    a->session.backoff_ms = BACKOFF_FIRST_MS;
    a->session.heartbeat_interval_ms = HEARTBEAT_INTERVAL_MS;
    a->session.heartbeat_timeout_ms = HEARTBEAT_TIMEOUT_MS;
    a->session.orphan_timeout_ms = a->opts->orphan_timeout_ms;
    a->session.beat_at_ms = a->session.lost_at_ms = PLIANT_NEVER;
    a->session.orphaned_at_ms = instant_after(a->now_ms, a->opts->orphan_timeout_ms);
    a->session.open_at_ms = a->now_ms;
    a->session.jitter = a->incarnation ^ (uint64_t)getpid() << 48;
}

void session_stop(struct agent *a)
{
    struct session *s = &a->session;
    struct json *j = session_body(a);

    if (s->state == SESSION_UP) {
        json_string(j, "node", a->opts->node);
        json_id(j, "incarnation", a->incarnation);
        json_string(j, "why", *a->leaving.why ? a->leaving.why : "the agent ends");
        json_end(j, '}');
        send_now(a, MESSAGE_GOODBYE, j);
    }
    if (s->link)
        close_link(a);
}

/* ---- what the daemon says
 * ----------------------------------------------------------------------------- */

static void read_duration(struct agent *a, const struct doc *body, const char *key, int64_t *ret)
{
    struct spec_error err;
    int64_t ms;

    if (doc_int(&a->in, body, key, 1, DOC_INTEGER_MAX, &ms, &err) == 0)
        *ret = ms;
}

static void welcomed(struct agent *a, const struct message_header *h, const struct doc *body)
{
    struct session *s = &a->session;

    read_duration(a, body, "heartbeat_interval_ms", &s->heartbeat_interval_ms);
    read_duration(a, body, "heartbeat_timeout_ms", &s->heartbeat_timeout_ms);
    read_duration(a, body, "orphan_timeout_ms", &s->orphan_timeout_ms);
    s->state = SESSION_UP;
    s->epoch = h->epoch;
    s->heard = h->sequence;
    s->backoff_ms = BACKOFF_FIRST_MS;
    s->orphaned_at_ms = PLIANT_NEVER;
    s->beat_at_ms = a->now_ms + s->heartbeat_interval_ms;
    s->lost_at_ms = a->now_ms + s->heartbeat_timeout_ms;
    say(SAY_INFO,
        "msg=\"in session\" node=%s incarnation=%" PRIu64 " epoch=%" PRIu64 " endpoint=%s",
        a->opts->node, a->incarnation, h->epoch, a->opts->endpoints.v[s->endpoint]);
    tell_keeper_endpoint(a, a->opts->endpoints.v[s->endpoint]);
    tell_keeper_patience(a);
    worker_say_again(a);
}

static void refused(struct agent *a, const struct doc *body)
{
    const char *code = "", *text = "";
    struct spec_error err;

    doc_string(&a->in, body, "code", AGENT_NAME_MAX, &code, &err);
    doc_string(&a->in, body, "text", 4096, &text, &err);
    if (strcmp(code, "not-registered") == 0) { /* a daemon that was started again */
        if (a->session.state == SESSION_UP)
            say_hello(a);
        return;
    }
    say(SAY_WARN, "msg=\"the daemon refuses\" code=%s text=%s", log_quoted(code).v,
        log_quoted(text).v);
    if (strcmp(code, "stale") == 0) {
        snprintf(a->leaving.why, sizeof a->leaving.why, "a newer one is there");
        agent_end(a, STALE_EXIT);
    }
}

/* Differences, in order and in a session only. */
static void take_in(struct agent *a, enum message_type type, const struct doc *body)
{
    switch ((unsigned)type) {
    case MESSAGE_FORGET:
        tasks_forget(a, body);
        return;
    case MESSAGE_DEPLOY:
        tasks_deploy(a, body);
        return;
    case MESSAGE_STOP:
        tasks_stop(a, body);
        return;
    case MESSAGE_CHECKPOINT:
        worker_checkpoint(a, body);
        return;
    case MESSAGE_REPORT_TAKEN:
        worker_report_taken(a, body);
        return;
    case MESSAGE_RELEASED:
        worker_released(a, body);
        return;
    case MESSAGE_NOTICE:
        worker_notice(a, body);
        return;
    case MESSAGE_RESERVE_PORT:
        ports_reserve(a, body);
        return;
    case MESSAGE_READ_LOG:
        logs_read(a, body);
        return;
    case MESSAGE_DISCARD:
        exchange_discard(a, body);
        return;
    case MESSAGE_RESYNC:
        say_hello(a);
        return;
    case MESSAGE_HEARTBEAT:
        return;
    default:
        say(SAY_WARN, "msg=\"a message that is none of an agent's\" type=%u", (unsigned)type);
    }
}

static void take_message(struct agent *a, const struct rpc_message *m)
{
    struct session *s = &a->session;
    const struct message_header *h = &m->header;
    struct spec_error err;

    if (m->fault != MESSAGE_GOOD || message_body(&a->in, h, m->body, m->size, &err) != 0) {
        say(SAY_WARN, "msg=\"a broken message from the daemon\" fault=%s",
            log_quoted(m->fault == MESSAGE_GOOD ? err.text : message_fault_code(m->fault)).v);
        return;
    }
    if (h->type == MESSAGE_ERROR) {
        refused(a, a->in.root);
        return;
    }
    if (h->epoch < s->epoch) {
        say(SAY_WARN, "msg=\"an old daemon speaks\" epoch=%" PRIu64 " newest=%" PRIu64, h->epoch,
            s->epoch);
        return;
    }
    if (h->type == MESSAGE_WELCOME) {
        welcomed(a, h, a->in.root);
        return;
    }
    if (h->type == MESSAGE_RESYNC && s->state != SESSION_HELLO) {
        say_hello(a);
        return;
    }
    if (s->state != SESSION_UP)
        return; /* of the session before: HELLO has said what there is */
    s->lost_at_ms = a->now_ms + s->heartbeat_timeout_ms;
    if (h->sequence != s->heard + 1) {
        say(SAY_WARN, "msg=\"messages from the daemon got lost\" expected=%" PRIu64 " got=%" PRIu64,
            s->heard + 1, h->sequence);
        say_hello(a);
        return;
    }
    s->heard = h->sequence;
    take_in(a, (enum message_type)h->type, a->in.root);
}

/* The connection broke and is back before it was missed. The daemon waits only 2 s for a word. */
static void meet_again(struct agent *a)
{
    if (!a->session.link || !rpc_link_renewed(a->session.link))
        return;
    say(SAY_INFO, "msg=\"connected again\"");
    say_hello(a);
}

void session_receive(struct agent *a)
{
    struct rpc_message m;

    meet_again(a);
    for (int i = 0; a->session.link && a->exit_code < 0; i++) {
        if (i == A_TURN) {
            a->again = true;
            return;
        }
        if (rpc_link_receive(a->session.link, &m) != 1)
            return;
        take_message(a, &m);
    }
}

/* ---- deadlines
 * ------------------------------------------------------------------------------------------ */

static void beat(struct agent *a)
{
    struct json *j = session_body(a);

    json_end(j, '}');
    send_now(a, MESSAGE_HEARTBEAT, j);
    a->session.beat_at_ms = a->now_ms + a->session.heartbeat_interval_ms;
}

static void orphaned(struct agent *a)
{
    a->session.orphaned_at_ms = PLIANT_NEVER;
    if (tasks_living(a) == 0)
        return;
    say(SAY_WARN, "msg=\"no daemon for too long: tasks are stopped\"");
    tasks_stop_all(a, INT64_MAX, 0);
}

void session_expire(struct agent *a)
{
    struct session *s = &a->session;

    if (a->now_ms >= s->lost_at_ms)
        lose(a);
    if (a->now_ms >= s->open_at_ms)
        open_link(a);
    if (a->now_ms >= s->beat_at_ms)
        beat(a);
    if (a->now_ms >= s->orphaned_at_ms)
        orphaned(a);
}

int64_t session_next_deadline(const struct agent *a)
{
    const struct session *s = &a->session;

    return sooner(sooner(s->open_at_ms, s->beat_at_ms), sooner(s->lost_at_ms, s->orphaned_at_ms));
}

void session_postpone(struct agent *a, int64_t ms)
{
    struct session *s = &a->session;

    if (s->lost_at_ms != PLIANT_NEVER)
        s->lost_at_ms = instant_after(s->lost_at_ms, ms);
    if (s->orphaned_at_ms != PLIANT_NEVER)
        s->orphaned_at_ms = instant_after(s->orphaned_at_ms, ms);
}

/* ---- in a process of its own
 * ------------------------------------------------------------------------------ */

int session_goodbye_for(int argc, char **argv)
{
    struct rpc_link_config cfg = {.queue = 10};
    struct rpc_identity *identity = NULL;
    struct rpc_link *link = NULL;
    struct message_header h = {.type = MESSAGE_GOODBYE, .sequence = 1};
    struct spec_error err;
    struct json j;
    int r = -EINVAL;

    if (argc < 3)
        return 2;
    cfg.endpoint = argv[0];
    h.epoch = strtoull(argv[2], NULL, 10);
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "node", argv[1]);
    json_id(&j, "incarnation", h.epoch);
    json_string(&j, "why", "the agent has ended");
    json_end(&j, '}');
    if (argc < 5 || rpc_identity_read(argv[3], argv[4], &identity, &err) == 0) {
        cfg.identity = identity;
        r = rpc_link_open(&cfg, &link, &err);
        if (r == 0)
            r = rpc_link_send(link, &h, &j);
        if (link)
            rpc_link_close(&link);
    }
    rpc_identity_free(&identity);
    json_free(&j);
    return r == 0 ? 0 : 3;
}

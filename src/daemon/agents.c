/* agents.c - sessions with agents: a HELLO says all that an agent knows, what follows are
 * differences
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/agents_impl.h"
#include "util/ascii.h"

static const struct pliant_alloc *const hash_alloc = NULL;

#define RESYNC_MS 1000 /* from one RESYNC to the next */

static struct daemon_node *node_of_peer(struct daemon *d, const struct rpc_id *peer)
{
    struct daemon_node *node;

    HASH_FIND(by_peer, d->sessions, peer->bytes, peer->size, node);
    return node;
}

/* The session that a message belongs to. Whoever chose the name of another's connection as its own
 * has not its key. */
static struct daemon_node *node_of_message(struct daemon *d, const struct rpc_message *m)
{
    struct daemon_node *node = node_of_peer(d, &m->from);

    return node && *m->key && strcmp(m->key, node->key) != 0 ? NULL : node;
}

/* ---- short messages ------------------------------------------------------------------------- */

static void empty_body(struct json *j)
{
    json_init(j, NULL);
    json_begin(j, NULL, '{');
    json_end(j, '}');
}

/* To a peer that may have no session. */
static void send_error(struct daemon *d, const struct rpc_message *m, const char *code,
                       const char *text)
{
    struct daemon_node *node = node_of_peer(d, &m->from);
    const struct message_header h = {.type = MESSAGE_ERROR, .epoch = d->epoch};
    struct json j;

    error_body(&j, code, text, (enum message_type)m->header.type);
    if (node)
        send_now(d, node, MESSAGE_ERROR, &j);
    else
        rpc_send(d->agents_end, &m->from, &h, &j);
    json_free(&j);
}

static void malformed(struct daemon *d, const struct rpc_message *m, const struct spec_error *err)
{
    if (may_complain(d, m))
        log_line(4, "msg=\"malformed message of an agent\" type=%s error=%s",
                 message_kind(m->header.type)->name, log_quoted(err->text).v);
    send_error(d, m, "malformed", err->text);
}

static void resync(struct daemon *d, struct daemon_node *node)
{
    struct json j;

    if (d->clock.awake_ms < node->resynced_at_ms + RESYNC_MS)
        return;
    node->resynced_at_ms = d->clock.awake_ms;
    empty_body(&j);
    outbox_to_node(d, node, MESSAGE_RESYNC, &j);
    json_free(&j);
}

void agents_resync(struct daemon *d)
{
    for (struct daemon_node *node = d->sessions; node; node = node->by_peer.next) {
        node->resynced_at_ms = 0;
        resync(d, node);
    }
}

/* One that beats faster than it was told to is not answered faster. */
static void heartbeat(struct daemon *d, struct daemon_node *node)
{
    struct json j = {.v = (char[]){'{', '}'}, .n = 2};

    if (d->clock.awake_ms < node->answer_at_ms)
        return;
    node->answer_at_ms = d->clock.awake_ms + d->opts.heartbeat_interval_ms / 4;
    send_now(d, node, MESSAGE_HEARTBEAT, &j);
}

/* ---- HELLO ---------------------------------------------------------------------------------- */

struct hello {
    const char *name;
    uint64_t incarnation, epoch;
    struct node_drain drain;
};

#define NODE_NAMES "visible ASCII characters but \" \\ /"

static int read_id(const struct doc_file *f, const struct doc *map, const char *key, uint64_t *ret,
                   struct spec_error *err)
{
    const char *text;
    char *end;
    int r = doc_string(f, map, key, 20, &text, err);

    if (r < 0)
        return r == -ENOENT ? doc_error(f, map, err, "%s: missing", key) : r;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9')
        return doc_error(f, doc_get(map, key), err, "accepted: a number in decimal digits");
    return 0;
}

static int read_hello(struct daemon *d, const struct doc_file *f, struct hello *ret,
                      struct spec_error *err)
{
    int r = doc_string(f, f->root, "node", PLIANT_NAME_MAX, &ret->name, err);

    if (r == -ENOENT)
        return doc_error(f, f->root, err, "node: missing; accepted: its name");
    if (r == 0 && !ascii_is_plain(ret->name))
        return doc_error(f, doc_get(f->root, "node"), err, "accepted: " NODE_NAMES);
    if (r == 0)
        r = read_id(f, f->root, "incarnation", &ret->incarnation, err);
    if (r == 0 && doc_get(f->root, "epoch"))
        r = read_id(f, f->root, "epoch", &ret->epoch, err);
    if (r == 0)
        r = node_read_drain(d, f, doc_get(f->root, "drain"), &ret->drain, err);
    return r;
}

/* All of it is read before anything changes. */
static int check_hello(struct daemon *d, const struct doc_file *f, struct hello *ret,
                       struct spec_error *err)
{
    struct daemon_node *scratch = node_new("", 0);
    int r = read_hello(d, f, ret, err);

    if (r == 0)
        r = node_read(f, f->root, scratch, err);
    node_free(scratch);
    return r;
}

static void bind_session(struct daemon *d, struct daemon_node *node, const struct rpc_message *m)
{
    struct daemon_node *other = node_of_peer(d, &m->from);

    if (other && other != node)
        node_await(d, other, GONE_MS); /* one connection speaks for one node */
    if (node->state == NODE_UP)
        HASH_DELETE(by_peer, d->sessions, node);
    outbox_forget_node(d, node);
    deploy_forget_node(d, node);
    node->state = NODE_UP;
    node->peer = m->from;
    node->connection = m->connection;
    node->seq_in = m->header.sequence;
    node->seq_out = 0;
    node->behind = false;
    node->answer_at_ms = d->clock.awake_ms;
    HASH_ADD_KEYPTR(by_peer, d->sessions, node->peer.bytes, node->peer.size, node);
    need(node->by_peer.tbl);
    node_heard(d, node);
}

static void welcome(struct daemon *d, struct daemon_node *node)
{
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_int(&j, "protocol", MESSAGE_VERSION);
    json_int(&j, "heartbeat_interval_ms", d->opts.heartbeat_interval_ms);
    json_int(&j, "heartbeat_timeout_ms", d->opts.heartbeat_timeout_ms);
    json_int(&j, "orphan_timeout_ms", d->opts.orphan_timeout_ms);
    json_end(&j, '}');
    outbox_to_node(d, node, MESSAGE_WELCOME, &j);
    json_free(&j);
}

static void take_over_drain(struct daemon *d, struct daemon_node *node,
                            const struct node_drain *drain)
{
    if (drain->there)
        node_drain(d, node, drain->reason, drain->end_at_ms, false);
    else if (!node->drained_by_operator)
        node_undrain(d, node);
}

static bool is_free_for(struct daemon *d, const char *key, const char *name)
{
    const struct daemon_node *node = node_find(d, name), *other = node_of_key(d, key);

    if (node && *node->key && strcmp(node->key, key) != 0)
        return false;
    return !other || other == node;
}

/* A key speaks for one node: the one that its certificate names; or the first that it said it is,
 * for as long as that is up or awaited. */
static bool may_speak_for(struct daemon *d, const struct rpc_message *m, const char *name)
{
    enum rpc_claim claim = *m->key ? rpc_auth_claim(d->auth, m->key, name) : RPC_CLAIM_OWN;

    if (claim == RPC_CLAIM_OWN || (claim == RPC_CLAIM_FREE && is_free_for(d, m->key, name)))
        return true;
    if (may_complain(d, m))
        log_line(4, "msg=\"an agent says that it is another's node\" node=%s key=%s",
                 log_quoted(name).v, log_quoted(m->key).v);
    send_error(d, m, "forbidden", "this key does not speak for a node of this name");
    return false;
}

/* Of a name that is known: NULL when this HELLO is of a life that is over. */
static bool is_current(struct daemon *d, const struct rpc_message *m, const struct hello *h,
                       struct daemon_node **at)
{
    struct daemon_node *node = *at;

    if (!node || h->incarnation == node->incarnation)
        return true;
    if (h->incarnation < node->incarnation) {
        if (may_complain(d, m))
            log_line(4,
                     "msg=\"an old life of a node is refused\" node=%s incarnation=%" PRIu64
                     " newest=%" PRIu64,
                     log_quoted(h->name).v, h->incarnation, node->incarnation);
        send_error(d, m, "stale", "a newer incarnation of this node is there");
        return false;
    }
    node_lose(d, node, "a newer incarnation has come");
    *at = NULL;
    return true;
}

/* "protocol":[FIRST,LAST] of the versions that the agent speaks; absent: this one. */
static bool speaks_ours(const struct doc_file *f)
{
    const struct doc *range = doc_get(f->root, "protocol");
    const struct doc *first = range ? range->child : NULL, *last = first ? first->next : NULL;

    return !range || range->kind == DOC_NULL ||
           (last && first->kind == DOC_NUMBER && last->kind == DOC_NUMBER &&
            first->number <= MESSAGE_VERSION && last->number >= MESSAGE_VERSION);
}

/* The node that says HELLO, with what it says of itself. */
static struct daemon_node *introduce(struct daemon *d, const struct hello *h,
                                     const struct doc_file *f, struct daemon_node *known)
{
    struct daemon_node *node = known ? known : node_new(h->name, h->incarnation);
    uint32_t n_slots = node->n_slots;
    struct spec_error err;

    node_read(f, f->root, node, &err); /* it was read before, so it is fine */
    if (known)
        node->n_slots = n_slots; /* a life has the slots that it began with */
    else {
        node_add(d, node);
        slots_of_new_node(d, node);
    }
    d->share_slots = true; /* it can be granted, again */
    return node;
}

static void begin_session(struct daemon *d, const struct rpc_message *m, const struct hello *h,
                          struct daemon_node *node, const char *change)
{
    bool was_up = node->state == NODE_UP;

    agents_of(d)->hellos++;
    bind_session(d, node, m);
    welcome(d, node);
    node_store(d, node);
    if (!was_up)
        node_tell(d, node, change, NULL);
    if (h->epoch > d->epoch && may_complain(d, m))
        log_line(4,
                 "msg=\"an agent has seen a newer daemon; is this state directory the right "
                 "one?\" node=%s epoch=%" PRIu64,
                 log_quoted(h->name).v, h->epoch);
    take_over_drain(d, node, &h->drain);
    groups_node_back(d, node);
    results_node_back(d, node);
}

static void take_hello(struct daemon *d, const struct rpc_message *m, const struct doc_file *f)
{
    struct hello h = {0};
    struct spec_error err;
    struct daemon_node *known, *node;

    if (check_hello(d, f, &h, &err) < 0) {
        malformed(d, m, &err);
        return;
    }
    if (!speaks_ours(f)) {
        send_error(d, m, "version", "this agent speaks no version of the protocol that is known");
        return;
    }
    if (!may_speak_for(d, m, h.name))
        return;
    known = node_find(d, h.name);
    if (!is_current(d, m, &h, &known))
        return;
    node = introduce(d, &h, f, known);
    node_take_key(d, node, m->key);
    begin_session(d, m, &h, node, known ? "back" : "up");
    if (reported_take(d, node, f, true, &err) < 0)
        malformed(d, m, &err);
    else
        reported_missing(d, node);
}

static void take_drain(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                       const struct doc_file *f)
{
    struct spec_error err;
    struct node_drain drain;

    if (node_read_drain(d, f, f->root, &drain, &err) < 0)
        malformed(d, m, &err);
    else
        node_drain(d, node, drain.reason, drain.end_at_ms, false);
}

/* ---- other messages ------------------------------------------------------------------------- */

static void take_tasks(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                       const struct doc_file *f)
{
    struct spec_error err;

    if (reported_take(d, node, f, false, &err) < 0)
        malformed(d, m, &err);
}

static void take_goodbye(struct daemon *d, const struct rpc_message *m, const struct doc_file *f)
{
    struct hello h = {0};
    struct spec_error err;
    struct daemon_node *node;
    const struct doc *why = doc_get(f->root, "why");

    if (read_hello(d, f, &h, &err) < 0) {
        malformed(d, m, &err);
        return;
    }
    if (!may_speak_for(d, m, h.name))
        return;
    node = node_find(d, h.name);
    if (node && node->incarnation == h.incarnation)
        node_lose(d, node, why && why->kind == DOC_STRING ? why->text : "it said goodbye");
}

/* Each element of a list is given to its task's job, if that lives. */
static void take_parts(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                       const struct doc_file *f)
{
    const struct doc *parts = NULL;
    struct spec_error err;
    struct named n;
    int r = doc_optional(doc_container(f, f->root, "parts", DOC_LIST, &parts, &err));

    (void)node;
    for (const struct doc *p = parts ? parts->child : NULL; p && r == 0; p = p->next) {
        r = named_read(d, f, p, &n, &err);
        if (r == 0 && n.task.vertex.v && !n.job->ended_unix_ms)
            checkpoints_part(d, n.job, f, p);
    }
    if (r < 0)
        malformed(d, m, &err);
}

static void take_usage(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                       const struct doc_file *f)
{
    const struct doc *tasks = NULL;
    struct spec_error err;
    struct named n;
    int r = doc_optional(doc_container(f, f->root, "tasks", DOC_LIST, &tasks, &err));

    for (const struct doc *t = tasks ? tasks->child : NULL; t && r == 0; t = t->next) {
        int64_t rss = 0, cpu = 0;

        r = named_read(d, f, t, &n, &err);
        if (r == 0)
            r = doc_optional(doc_int(f, t, "rss_bytes", 0, DOC_INTEGER_MAX, &rss, &err));
        if (r == 0)
            r = doc_optional(doc_int(f, t, "cpu_ms", 0, DOC_INTEGER_MAX, &cpu, &err));
        if (r == 0 && n.known && n.known->node == node) {
            n.known->rss_bytes = (uint64_t)rss;
            n.known->cpu_ms = (uint64_t)cpu;
        }
    }
    if (r < 0)
        malformed(d, m, &err);
}

static void take_end_of_data(struct daemon *d, struct daemon_node *node,
                             const struct rpc_message *m, const struct doc_file *f)
{
    struct pliant_task_info info;
    struct spec_error err;
    struct named n;

    (void)node;
    if (named_read(d, f, f->root, &n, &err) < 0)
        malformed(d, m, &err);
    else if (named_believed(&n, &info))
        job_fact(d, n.job,
                 &(struct pliant_event){.kind = PLIANT_EV_TASK_END_OF_DATA, .task = n.task});
}

/* Of a live task of a worker group. */
static void take_of_group(struct daemon *d, const struct rpc_message *m, const struct doc_file *f,
                          void (*take)(struct daemon *d, struct daemon_job *job,
                                       const struct pliant_task *task, const struct doc_file *f,
                                       const struct doc *body))
{
    struct pliant_task_info info;
    struct spec_error err;
    struct named n;

    if (named_read(d, f, f->root, &n, &err) < 0)
        malformed(d, m, &err);
    else if (named_believed(&n, &info) && n.job->group)
        take(d, n.job, &n.task, f, f->root);
}

static void take_report(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                        const struct doc_file *f)
{
    (void)node;
    take_of_group(d, m, f, group_report);
}

static void take_enter(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                       const struct doc_file *f)
{
    (void)node;
    take_of_group(d, m, f, group_enter);
}

static void take_port(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                      const struct doc_file *f)
{
    (void)m;
    group_port(d, node, f, f->root);
}

static void take_withdrawal(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                            const struct doc_file *f)
{
    (void)m, (void)f;
    if (!node->drained_by_operator)
        node_undrain(d, node);
}

static void take_log(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                     const struct doc_file *f)
{
    (void)node, (void)m;
    requests_log(d, f, f->root);
}

static void take_discarded(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                           const struct doc_file *f)
{
    (void)node, (void)m;
    results_discarded(d, f->root);
}

static void dispatch(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                     const struct doc_file *f)
{
    static const struct {
        enum message_type type;
        void (*take)(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                     const struct doc_file *f);
    } rows[] = {
        {MESSAGE_TASKS, take_tasks},
        {MESSAGE_DRAIN, take_drain},
        {MESSAGE_PARTS, take_parts},
        {MESSAGE_DRAIN_WITHDRAWN, take_withdrawal},
        {MESSAGE_USAGE, take_usage},
        {MESSAGE_END_OF_DATA, take_end_of_data},
        {MESSAGE_LOG, take_log},
        {MESSAGE_REPORT, take_report},
        {MESSAGE_ENTER, take_enter},
        {MESSAGE_PORT, take_port},
        {MESSAGE_DISCARDED, take_discarded},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == m->header.type)
            rows[i].take(d, node, m, f);
}

/* The order of a session's messages: a gap is a loss, whatever it was. */
static void check_sequence(struct daemon *d, struct daemon_node *node, const struct rpc_message *m)
{
    bool gap = m->header.sequence != node->seq_in + 1;

    node->seq_in = m->header.sequence;
    if (!gap && !node->behind)
        return;
    if (gap && may_complain(d, m))
        log_line(4, "msg=\"messages of an agent were lost\" node=%s", log_quoted(node->name).v);
    node->behind = true;
    resync(d, node);
}

/* While the store fails only signs of life are taken. */
static void take_life_only(struct daemon *d, struct daemon_node *node, const struct rpc_message *m)
{
    if (m->header.type == MESSAGE_HEARTBEAT && node) {
        node_heard(d, node);
        heartbeat(d, node);
    } else if (m->header.type == MESSAGE_HELLO)
        send_error(d, m, "unavailable", "the store cannot be written; try again");
}

void agents_take(struct daemon *d, const struct rpc_message *m)
{
    struct daemon_node *node = node_of_message(d, m);
    struct doc_file *f = &agents_of(d)->body;
    struct spec_error err;
    int r;

    if (d->store_failed) {
        take_life_only(d, node, m);
        return;
    }
    if (node && m->header.type != MESSAGE_HELLO) {
        node_heard(d, node);
        check_sequence(d, node, m);
    }
    if (node && m->header.type == MESSAGE_HEARTBEAT) {
        heartbeat(d, node);
        return;
    }
    r = message_body(f, &m->header, m->body, m->size, &err);
    need(r != -ENOMEM ? d : NULL);
    if (r != 0)
        malformed(d, m, &err);
    else if (m->header.type == MESSAGE_HELLO)
        take_hello(d, m, f);
    else if (m->header.type == MESSAGE_GOODBYE)
        take_goodbye(d, m, f);
    else if (node)
        dispatch(d, node, m, f);
    else if (m->header.type != MESSAGE_ERROR) /* no error about errors */
        send_error(d, m, "not-registered", "say HELLO first");
}

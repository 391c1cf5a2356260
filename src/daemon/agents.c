/* agents.c - sessions with agents: who they are, what they report, whether they live
 *
 * A HELLO says all that the agent knows; what it says is compared with what the cores believe, and
 * each difference becomes a fact or an order. Later messages are differences. A node is lost when
 * nothing was heard of it for long enough in awake time: `lost_at_ms` is looked at only when the
 * earliest of them may have come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

static const struct pliant_alloc *const hash_alloc = NULL;

#define GONE_MS 2000     /* from a connection's end to the node's, without another HELLO */
#define RESYNC_MS 1000   /* from one RESYNC to the next */
#define SLOTS_MAX 100000 /* of a node */
#define TEXT_MAX_BYTES 1024
#define CAUSE_BYTES 400

struct agents {
    struct doc_file body;
    int64_t next_loss_ms; /* awake time; no node is lost before */
    uint64_t hellos;
};

static struct agents *agents_of(struct daemon *d)
{
    if (!d->agents) {
        d->agents = need(calloc(1, sizeof *d->agents));
        d->agents->next_loss_ms = PLIANT_NEVER;
    }
    return d->agents;
}

struct daemon_node *node_find(struct daemon *d, const char *name)
{
    struct daemon_node *node;

    HASH_FIND_STR(d->nodes, name, node);
    return node;
}

static struct daemon_node *node_of_peer(struct daemon *d, const struct rpc_id *peer)
{
    struct daemon_node *node;

    HASH_FIND(by_peer, d->sessions, peer->bytes, peer->size, node);
    return node;
}

static struct daemon_job *job_of(struct daemon *d, const char *id)
{
    struct daemon_job *job;

    HASH_FIND_STR(d->jobs, id, job);
    return job;
}

/* ---- short messages --------------------------------------------------------------------------
 */

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

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "code", code);
    json_string(&j, "text", text);
    json_int(&j, "of", m->header.type);
    json_end(&j, '}');
    if (node)
        send_now(d, node, MESSAGE_ERROR, &j);
    else
        rpc_send(d->agents_end, &m->from, &h, &j);
    json_free(&j);
}

static void malformed(struct daemon *d, const struct rpc_message *m, const struct spec_error *err)
{
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

static void heartbeat(struct daemon *d, struct daemon_node *node)
{
    struct json j = {.v = (char[]){'{', '}'}, .n = 2};

    send_now(d, node, MESSAGE_HEARTBEAT, &j);
}

/* ---- liveness --------------------------------------------------------------------------------
 */

static void lose_at(struct daemon *d, struct daemon_node *node, int64_t at_ms)
{
    struct agents *a = agents_of(d);

    node->lost_at_ms = at_ms;
    if (at_ms < a->next_loss_ms)
        a->next_loss_ms = at_ms;
}

static int64_t patience(const struct daemon *d, const struct daemon_node *node, int64_t usual_ms)
{
    return node->keep_tasks ? d->opts.orphan_timeout_ms : usual_ms;
}

static void heard(struct daemon *d, struct daemon_node *node)
{
    node->heard_at_ms = d->clock.awake_ms;
    lose_at(d, node, d->clock.awake_ms + patience(d, node, d->opts.heartbeat_timeout_ms));
}

/* Known, and without a session: it is waited for. */
void node_await(struct daemon *d, struct daemon_node *node, int64_t usual_ms)
{
    if (node->state == NODE_UP)
        HASH_DELETE(by_peer, d->sessions, node);
    node->state = NODE_AWAITED;
    node->connection = -1;
    outbox_forget_node(d, node);
    deploy_forget_node(d, node);
    lose_at(d, node, d->clock.awake_ms + patience(d, node, usual_ms));
}

int64_t agents_next_deadline(const struct daemon *d)
{
    return d->agents ? d->agents->next_loss_ms : PLIANT_NEVER;
}

/* ---- events of nodes -------------------------------------------------------------------------
 */

static void tell_node(struct daemon *d, const struct daemon_node *node, const char *change,
                      const char *cause)
{
    struct json *j = events_begin(d, "node", NULL);

    json_string(j, "node", node->name);
    json_string(j, "change", change);
    json_uint(j, "slots", node->n_slots);
    json_string(j, "cause", cause);
    events_end(d);
    log_line(6, "msg=\"node %s\" node=%s incarnation=%" PRIu64 " slots=%u cause=%s", change,
             log_quoted(node->name).v, node->incarnation, (unsigned)node->n_slots,
             log_quoted(cause).v);
}

/* ---- what is stored of a node ----------------------------------------------------------------
 */

static void write_drain(const struct daemon *d, const struct daemon_node *node, struct json *j)
{
    if (!node->draining)
        return;
    json_begin(j, "drain", '{');
    json_string(j, "reason", pliant_drain_reason_name(node->drain_reason));
    json_bool(j, "by_operator", node->drained_by_operator);
    if (node->drain_end_at_ms != PLIANT_NEVER)
        json_int(j, "deadline_unix_ms", clock_to_unix(&d->clock, node->drain_end_at_ms));
    json_end(j, '}');
}

static void store_about(struct daemon *d, const struct daemon_node *node)
{
    struct json j;
    char *about;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_uint(&j, "slots", node->n_slots);
    json_bool(&j, "keep_tasks", node->keep_tasks);
    json_string(&j, "address", node->address);
    json_string(&j, "host", node->host);
    json_string(&j, "zone", node->zone);
    json_string(&j, "domain", node->domain);
    json_int(&j, "pid", node->pid);
    json_begin(&j, "labels", '{');
    for (size_t i = 0; i < node->n_labels; i++)
        json_member(&j, node->labels[i].key, node->labels[i].value);
    json_end(&j, '}');
    write_drain(d, node, &j);
    json_end(&j, '}');
    about = need_json(&j);
    store_node_put(
        d->store,
        &(struct store_node){.name = node->name, .incarnation = node->incarnation, .about = about});
    free(about);
}

/* ---- what is read of a node, from a HELLO or from the store ----------------------------------
 */

static int read_text(const struct doc_file *f, const struct doc *map, const char *key, char **at,
                     struct spec_error *err)
{
    const struct doc *value = doc_get(map, key);
    const char *text = NULL;
    int r = 0;

    if (value && value->kind != DOC_NULL)
        r = doc_string(f, map, key, PLIANT_NAME_MAX, &text, err);
    if (r < 0)
        return r;
    free(*at);
    *at = text && *text ? need_text(text) : NULL;
    return 0;
}

static void free_labels(struct daemon_node *node)
{
    for (size_t i = 0; i < node->n_labels; i++) {
        free((char *)node->labels[i].key);
        free((char *)node->labels[i].value);
    }
    free(node->labels);
    node->labels = NULL;
    node->n_labels = 0;
}

static int read_labels(const struct doc_file *f, const struct doc *map, struct daemon_node *node,
                       struct spec_error *err)
{
    const struct doc *labels = NULL;
    int r = doc_optional(doc_container(f, map, "labels", DOC_MAP, &labels, err));

    if (r < 0)
        return r;
    free_labels(node);
    if (!labels || labels->n == 0)
        return 0;
    node->labels = need(calloc(labels->n, sizeof *node->labels));
    for (const struct doc *l = labels->child; l; l = l->next) {
        if (l->kind != DOC_STRING || !*l->key || strlen(l->key) > PLIANT_NAME_MAX ||
            strlen(l->text) > PLIANT_NAME_MAX)
            return doc_error(f, l, err, "accepted: a text of at most %u bytes", PLIANT_NAME_MAX);
        node->labels[node->n_labels++] =
            (struct pliant_label){.key = need_text(l->key), .value = need_text(l->text)};
    }
    return 0;
}

static int read_about(const struct doc_file *f, const struct doc *map, struct daemon_node *node,
                      struct spec_error *err)
{
    int64_t slots = node->n_slots, pid = 0;
    bool keep_tasks = false;
    int r = doc_int(f, map, "slots", 0, SLOTS_MAX, &slots, err);

    if (r == -ENOENT)
        r = doc_error(f, map, err, "slots: missing");
    if (r == 0)
        r = doc_optional(doc_bool(f, map, "keep_tasks", &keep_tasks, err));
    if (r == 0)
        r = doc_optional(doc_int(f, map, "pid", 0, INT32_MAX, &pid, err));
    if (r == 0)
        r = read_text(f, map, "address", &node->address, err);
    if (r == 0)
        r = read_text(f, map, "host", &node->host, err);
    if (r == 0)
        r = read_text(f, map, "zone", &node->zone, err);
    if (r == 0)
        r = read_text(f, map, "domain", &node->domain, err);
    if (r == 0)
        r = read_labels(f, map, node, err);
    node->n_slots = (uint32_t)slots;
    node->keep_tasks = keep_tasks;
    node->pid = pid;
    return r;
}

/* ---- drains ----------------------------------------------------------------------------------
 */

struct drain {
    bool there;
    enum pliant_drain_reason reason;
    int64_t end_at_ms;
    bool by_operator;
};

static int read_reason(const struct doc_file *f, const struct doc *map,
                       enum pliant_drain_reason *ret, struct spec_error *err)
{
    const char *text = pliant_drain_reason_name(PLIANT_DRAIN_PREEMPTION);
    int r = doc_optional(doc_string(f, map, "reason", PLIANT_NAME_MAX, &text, err));

    for (int i = PLIANT_DRAIN_PREEMPTION; r == 0 && i <= PLIANT_DRAIN_IDLE; i++) {
        *ret = (enum pliant_drain_reason)i;
        if (strcmp(text, pliant_drain_reason_name(*ret)) == 0)
            return 0;
    }
    return r < 0 ? r
                 : doc_error(f, doc_get(map, "reason"), err,
                             "accepted: preemption, scale-down, upgrade, idle");
}

/* `map` may be absent or null. */
static int read_drain(const struct daemon *d, const struct doc_file *f, const struct doc *map,
                      struct drain *ret, struct spec_error *err)
{
    const struct doc *deadline;
    int64_t unix_ms;
    int r;

    *ret = (struct drain){.end_at_ms = PLIANT_NEVER};
    if (!map || map->kind == DOC_NULL)
        return 0;
    if (map->kind != DOC_MAP)
        return doc_error(f, map, err, "accepted: a map, or null");
    ret->there = true;
    r = read_reason(f, map, &ret->reason, err);
    if (r == 0)
        r = doc_optional(doc_bool(f, map, "by_operator", &ret->by_operator, err));
    deadline = doc_get(map, "deadline_unix_ms");
    if (r < 0 || !deadline || deadline->kind == DOC_NULL)
        return r;
    r = doc_as_int(f, deadline, 0, DOC_INTEGER_MAX, &unix_ms, err);
    if (r < 0)
        return r;
    ret->end_at_ms = clock_of_unix(&d->clock, unix_ms);
    if (ret->end_at_ms < d->clock.now_ms)
        ret->end_at_ms = d->clock.now_ms;
    return 0;
}

void node_drain(struct daemon *d, struct daemon_node *node, enum pliant_drain_reason reason,
                int64_t end_at_ms, bool by_operator)
{
    if (node->draining && node->drain_reason == reason && node->drain_end_at_ms == end_at_ms)
        return;
    node->draining = true;
    node->drained_by_operator = by_operator;
    node->drain_reason = reason;
    node->drain_end_at_ms = end_at_ms;
    slots_of_drained_node(d, node);
    store_about(d, node);
    tell_node(d, node, "draining", pliant_drain_reason_name(reason));
}

void node_undrain(struct daemon *d, struct daemon_node *node)
{
    if (!node->draining)
        return;
    node->draining = node->drained_by_operator = false;
    node->drain_end_at_ms = PLIANT_NEVER;
    slots_of_drained_node(d, node);
    store_about(d, node);
    tell_node(d, node, "undrained", NULL);
}

static void take_drain(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                       const struct doc_file *f)
{
    struct spec_error err;
    struct drain drain;

    if (read_drain(d, f, f->root, &drain, &err) < 0)
        malformed(d, m, &err);
    else
        node_drain(d, node, drain.reason, drain.end_at_ms, false);
}

/* ---- a node comes and goes -------------------------------------------------------------------
 */

static struct daemon_node *node_new(const char *name, uint64_t incarnation)
{
    struct daemon_node *node = need(calloc(1, sizeof *node));

    node->name = need_text(name);
    node->incarnation = incarnation;
    node->state = NODE_AWAITED;
    node->connection = -1;
    node->drain_end_at_ms = PLIANT_NEVER;
    return node;
}

static void node_free(struct daemon_node *node)
{
    free_labels(node);
    vec_free(NULL, &node->tenants);
    free(node->slots);
    free(node->name);
    free(node->address);
    free(node->host);
    free(node->zone);
    free(node->domain);
    free(node);
}

static void node_add(struct daemon *d, struct daemon_node *node)
{
    HASH_ADD_KEYPTR(hh, d->nodes, node->name, strlen(node->name), node);
    need(node->hh.tbl);
}

/* A task is over, for whatever reason: nobody waits for it any more. */
static void task_over(struct daemon *d, struct daemon_task *t)
{
    const struct pliant_task task = {
        .vertex = {t->key.vertex}, .subtask = t->key.subtask, .attempt = t->key.attempt};
    struct daemon_job *job = t->job;

    job_task_remove(t);
    if (job->sched && !job->ended_unix_ms)
        checkpoints_task_over(d, job, &task);
}

static bool has_given_up(const struct daemon_node *node, const struct daemon_job *job)
{
    for (const struct daemon_task *t = node->tasks; t; t = t->next)
        if (t->job == job && t->given_up)
            return true;
    return false;
}

/* The last task of a life that the job gave up may have ended. */
static void close_life(struct daemon *d, struct daemon_node *node, struct daemon_job *job)
{
    struct daemon_life *life;

    if (!job->lives || has_given_up(node, job))
        return;
    HASH_FIND_STR(job->lives, node->name, life);
    if (!life || !life->open)
        return;
    life->open = false;
    job_lives_put(d, job);
    slots_given_up(d, job, node, true);
}

static void close_lives(struct daemon *d, struct daemon_node *node)
{
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next)
        if (job->sched)
            close_life(d, node, job);
}

void node_lose(struct daemon *d, struct daemon_node *node, const char *why)
{
    tell_node(d, node, "lost", why);
    node_await(d, node, 0);
    slots_of_lost_node(d, node);
    while (node->tasks)
        task_over(d, node->tasks);
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next) {
        struct daemon_life *life = NULL;

        if (job->lives)
            HASH_FIND_STR(job->lives, node->name, life);
        if (life && life->open) {
            life->open = false;
            job_lives_put(d, job);
        }
    }
    store_node_delete(d->store, node->name);
    HASH_DEL(d->nodes, node);
    node_free(node);
}

void agents_close(struct daemon *d)
{
    struct daemon_node *node, *next;

    HASH_CLEAR(by_peer, d->sessions);
    HASH_ITER (hh, d->nodes, node, next) {
        HASH_DEL(d->nodes, node);
        vec_free(NULL, &node->deploy);
        vec_free(NULL, &node->stop);
        vec_free(NULL, &node->forget);
        node_free(node);
    }
    if (!d->agents)
        return;
    doc_free(&d->agents->body);
    free(d->agents);
    d->agents = NULL;
}

void agents_gone(struct daemon *d)
{
    int connection;

    while (rpc_server_gone(d->agents_end, &connection) == 1)
        for (struct daemon_node *node = d->sessions; node; node = node->by_peer.next)
            if (node->connection == connection) {
                node_await(d, node, GONE_MS);
                tell_node(d, node, "awaited", "the connection is gone");
                break;
            }
}

void agents_expire(struct daemon *d)
{
    struct agents *a = agents_of(d);
    struct daemon_node *node, *next;
    int64_t first_ms = PLIANT_NEVER;

    if (d->clock.awake_ms < a->next_loss_ms)
        return;
    HASH_ITER (hh, d->nodes, node, next) {
        if (node->lost_at_ms <= d->clock.awake_ms)
            node_lose(d, node, node->state == NODE_UP ? "no sign of life" : "it did not come back");
        else if (node->lost_at_ms < first_ms)
            first_ms = node->lost_at_ms;
    }
    a->next_loss_ms = first_ms;
}

/* ---- tasks as agents name them ---------------------------------------------------------------
 */

struct named {
    const char *id, *vertex;
    uint32_t subtask, attempt;
    struct daemon_job *job;  /* NULL: unknown */
    struct pliant_task task; /* unset where the job or the vertex is unknown */
    struct daemon_task *known;
};

static int read_name(struct daemon *d, const struct doc_file *f, const struct doc *map,
                     struct named *ret, struct spec_error *err)
{
    int64_t subtask, attempt;
    int r;

    *ret = (struct named){0};
    if (map->kind != DOC_MAP)
        return doc_error(f, map, err, "accepted: a map");
    r = doc_string(f, map, "job", PLIANT_NAME_MAX, &ret->id, err);
    if (r == 0)
        r = doc_string(f, map, "vertex", PLIANT_NAME_MAX, &ret->vertex, err);
    if (r == 0)
        r = doc_int(f, map, "subtask", 0, UINT32_MAX, &subtask, err);
    if (r == 0)
        r = doc_int(f, map, "attempt", 0, UINT32_MAX, &attempt, err);
    if (r == -ENOENT)
        r = doc_error(f, map, err, "accepted: job, vertex, subtask, attempt");
    if (r < 0)
        return r;
    ret->subtask = (uint32_t)subtask;
    ret->attempt = (uint32_t)attempt;
    ret->job = job_of(d, ret->id);
    if (ret->job && ret->job->sched)
        ret->task =
            (struct pliant_task){.vertex = pliant_job_vertex_find(ret->job->spec.job, ret->vertex),
                                 .subtask = ret->subtask,
                                 .attempt = ret->attempt};
    if (ret->task.vertex.v)
        ret->known = job_task(ret->job, &ret->task);
    return 0;
}

/* What the core believes of it; false: it knows no such attempt. */
static bool believed(const struct named *n, struct pliant_task_info *ret)
{
    return n->task.vertex.v && !n->job->ended_unix_ms &&
           pliant_task_info(n->job->sched, n->task.vertex, n->subtask, ret) &&
           ret->attempt == n->attempt;
}

static bool is_over(enum pliant_task_state state)
{
    return state == PLIANT_TASK_FINISHED || state == PLIANT_TASK_CANCELED ||
           state == PLIANT_TASK_FAILED;
}

/* ---- how a task ended ------------------------------------------------------------------------
 */

enum how { HOW_EXITED, HOW_KILLED, HOW_NOT_STARTED, HOW_STOPPED };

struct end {
    enum how how;
    int64_t code;
    const char *signal, *cause;
    bool oom, port_in_use;
};

static int read_how(const struct doc_file *f, const struct doc *map, enum how *ret,
                    struct spec_error *err)
{
    static const char *const words[] = {"exited", "killed", "not-started", "stopped"};
    const char *text = "";
    int r = doc_optional(doc_string(f, map, "how", PLIANT_NAME_MAX, &text, err));

    for (size_t i = 0; r == 0 && i < sizeof words / sizeof *words; i++) {
        *ret = (enum how)i;
        if (strcmp(text, words[i]) == 0)
            return 0;
    }
    return r < 0 ? r
                 : doc_error(f, map, err, "how: accepted: exited, killed, not-started, stopped");
}

static int read_optional_text(const struct doc_file *f, const struct doc *map, const char *key,
                              const char **ret, struct spec_error *err)
{
    const struct doc *value = doc_get(map, key);

    if (!value || value->kind == DOC_NULL)
        return 0;
    return doc_as_string(f, value, TEXT_MAX_BYTES, ret, err);
}

static int read_end(const struct doc_file *f, const struct doc *state, struct end *ret,
                    struct spec_error *err)
{
    const struct doc *map = NULL;
    int r = doc_container(f, state, "end", DOC_MAP, &map, err);

    *ret = (struct end){.signal = "", .cause = ""};
    if (r == -ENOENT)
        return doc_error(f, state, err, "end: missing, and it has ended");
    if (r == 0)
        r = read_how(f, map, &ret->how, err);
    if (r == 0)
        r = doc_optional(doc_int(f, map, "code", INT32_MIN, INT32_MAX, &ret->code, err));
    if (r == 0)
        r = read_optional_text(f, map, "signal", &ret->signal, err);
    if (r == 0)
        r = read_optional_text(f, map, "cause", &ret->cause, err);
    if (r == 0)
        r = doc_optional(doc_bool(f, map, "oom", &ret->oom, err));
    if (r == 0)
        r = doc_optional(doc_bool(f, map, "port_in_use", &ret->port_in_use, err));
    return r;
}

static void say_cause(const struct end *end, char ret[CAUSE_BYTES])
{
    const char *colon = *end->cause ? ": " : "";

    if (end->oom)
        snprintf(ret, CAUSE_BYTES, "out of memory (OOM killer)%s%s", colon, end->cause);
    else if (end->how == HOW_NOT_STARTED)
        snprintf(ret, CAUSE_BYTES, "not started%s%s", colon, end->cause);
    else if (end->how == HOW_STOPPED)
        snprintf(ret, CAUSE_BYTES, "stopped by its agent%s%s", colon, end->cause);
    else if (end->how == HOW_KILLED)
        snprintf(ret, CAUSE_BYTES, "killed by SIG%s%s%s", *end->signal ? end->signal : "?", colon,
                 end->cause);
    else
        snprintf(ret, CAUSE_BYTES, "exit code %" PRId64 "%s%s", end->code, colon, end->cause);
}

/* How it ended, as the core is to see it. What ends while it is being canceled was canceled, also
 * with code 0: it may not have done its work. */
static void end_fact(struct daemon *d, const struct named *n, enum pliant_task_state believed_state,
                     const struct end *end)
{
    char cause[CAUSE_BYTES] = "";
    struct pliant_event ev = {.kind = PLIANT_EV_TASK_CANCELED, .task = n->task};
    enum pliant_task_state state = PLIANT_TASK_CANCELED;

    if (believed_state != PLIANT_TASK_CANCELING) {
        state = PLIANT_TASK_FAILED;
        if (end->how == HOW_EXITED && end->code == 0) {
            state = PLIANT_TASK_FINISHED;
            ev.kind = PLIANT_EV_TASK_FINISHED;
        }
    }
    if (state == PLIANT_TASK_FAILED) {
        say_cause(end, cause);
        ev = (struct pliant_event){
            .kind = PLIANT_EV_TASK_FAILED,
            .failure = {.task = n->task, .recoverable = true, .cause = cause}};
    }
    job_fact(d, n->job, &ev);
    tell_task(d, n->job, n->known, state, *cause ? cause : NULL);
}

/* ---- one reported state ----------------------------------------------------------------------
 */

enum reported { SAID_STARTING, SAID_INITIALIZING, SAID_RUNNING, SAID_STOPPING, SAID_ENDED };

static int read_reported(const struct doc_file *f, const struct doc *map, enum reported *ret,
                         struct spec_error *err)
{
    static const char *const words[] = {"starting", "initializing", "running", "stopping", "ended"};
    const char *text = "";
    int r = doc_optional(doc_string(f, map, "state", PLIANT_NAME_MAX, &text, err));

    for (size_t i = 0; r == 0 && i < sizeof words / sizeof *words; i++) {
        *ret = (enum reported)i;
        if (strcmp(text, words[i]) == 0)
            return 0;
    }
    return r < 0 ? r
                 : doc_error(f, map, err,
                             "state: accepted: starting, initializing, running, stopping, ended");
}

static void alive(struct daemon *d, const struct named *n, enum pliant_task_state believed_state,
                  enum reported said, bool hello)
{
    struct pliant_event ev = {.task = n->task};

    if (believed_state == PLIANT_TASK_CANCELING) {
        if (hello && said != SAID_STOPPING) /* the STOP may have been lost */
            stop_task(d, n->job, n->known);
        return;
    }
    if (said == SAID_RUNNING && believed_state != PLIANT_TASK_RUNNING) {
        ev.kind = PLIANT_EV_TASK_RUNNING;
        tell_task(d, n->job, n->known, PLIANT_TASK_RUNNING, NULL);
    } else if (said == SAID_INITIALIZING && believed_state != PLIANT_TASK_RUNNING &&
               believed_state != PLIANT_TASK_INITIALIZING) {
        ev.kind = PLIANT_EV_TASK_INITIALIZING;
        tell_task(d, n->job, n->known, PLIANT_TASK_INITIALIZING, NULL);
    } else
        return;
    n->known->since_unix_ms = d->clock.unix_ms;
    job_fact(d, n->job, &ev);
}

/* Nobody wants it: its job is unknown or over, or its attempt is. */
static void unwanted(struct daemon *d, struct daemon_node *node, const struct named *n,
                     enum reported said, bool hello)
{
    struct daemon_job *job = n->job;
    bool given_up = n->known && n->known->given_up;

    if (said == SAID_ENDED) {
        forget_task(d, node, n->id, n->vertex, n->subtask, n->attempt);
        if (n->known && n->known->node == node)
            task_over(d, n->known);
        if (given_up)
            close_life(d, node, job);
        return;
    }
    if (hello || said != SAID_STOPPING)
        stop_stray(d, node, n->id, n->vertex, n->subtask, n->attempt,
                   given_up ? 0 : options_duration_ms(&d->opts.all, "pliant.agent.stop-timeout"));
}

static int take_state(struct daemon *d, struct daemon_node *node, const struct doc_file *f,
                      const struct doc *map, bool hello, struct spec_error *err)
{
    struct pliant_task_info info;
    struct named n;
    struct end end;
    enum reported said = SAID_STARTING;
    int64_t pid = 0;
    int r = read_name(d, f, map, &n, err);

    if (r == 0)
        r = read_reported(f, map, &said, err);
    if (r == 0)
        r = doc_optional(doc_int(f, map, "pid", 0, INT32_MAX, &pid, err));
    if (r == 0 && said == SAID_ENDED)
        r = read_end(f, map, &end, err);
    if (r < 0 || (n.job && n.job->damaged))
        return r;
    if (n.known && n.known->node == node) {
        n.known->pid = pid;
        n.known->seen = agents_of(d)->hellos;
    }
    if (!believed(&n, &info) || is_over(info.state) || !n.known || n.known->node != node ||
        n.known->given_up) {
        unwanted(d, node, &n, said, hello);
        return 0;
    }
    if (said != SAID_ENDED) {
        alive(d, &n, info.state, said, hello);
        return 0;
    }
    end_fact(d, &n, info.state, &end);
    forget_task(d, node, n.id, n.vertex, n.subtask, n.attempt);
    task_over(d, n.known);
    return 0;
}

static int take_states(struct daemon *d, struct daemon_node *node, const struct doc_file *f,
                       bool hello, struct spec_error *err)
{
    const struct doc *tasks = NULL;
    int r = doc_optional(doc_container(f, f->root, "tasks", DOC_LIST, &tasks, err));

    for (const struct doc *t = tasks ? tasks->child : NULL; t && r == 0; t = t->next)
        r = take_state(d, node, f, t, hello, err);
    return r;
}

/* ---- reconciling -----------------------------------------------------------------------------
 */

/* The agent does not have a task that the core believes to be there. */
static void missing(struct daemon *d, struct daemon_task *t)
{
    const struct pliant_task task = {
        .vertex = {t->key.vertex}, .subtask = t->key.subtask, .attempt = t->key.attempt};
    struct named n = {
        .job = t->job, .task = task, .subtask = task.subtask, .attempt = task.attempt, .known = t};
    struct pliant_event ev = {.kind = PLIANT_EV_TASK_CANCELED, .task = task};
    struct pliant_task_info info;
    struct pliant_counts counts;

    if (believed(&n, &info) && !is_over(info.state) && !t->given_up) {
        if (info.state == PLIANT_TASK_SCHEDULED || info.state == PLIANT_TASK_DEPLOYING) {
            pliant_counts(t->job->sched, &counts);
            deploy_task(d, t->job, &task, info.slot, counts.checkpoint);
            return;
        }
        if (info.state != PLIANT_TASK_CANCELING)
            ev = (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                       .failure = {.task = task,
                                                   .recoverable = true,
                                                   .cause = "the agent no longer has it"}};
        job_fact(d, t->job, &ev);
    }
    task_over(d, t);
}

static void reconcile_missing(struct daemon *d, struct daemon_node *node)
{
    uint64_t hello = agents_of(d)->hellos;

    for (struct daemon_task *t = node->tasks, *next; t; t = next) {
        next = t->next;
        if (t->seen != hello)
            missing(d, t);
    }
    close_lives(d, node);
}

/* ---- HELLO -----------------------------------------------------------------------------------
 */

struct hello {
    const char *name;
    uint64_t incarnation, epoch;
    struct drain drain;
};

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

    if (r == -ENOENT || (r == 0 && !*ret->name))
        return doc_error(f, f->root, err, "node: missing; accepted: its name");
    if (r == 0)
        r = read_id(f, f->root, "incarnation", &ret->incarnation, err);
    if (r == 0 && doc_get(f->root, "epoch"))
        r = read_id(f, f->root, "epoch", &ret->epoch, err);
    if (r == 0)
        r = read_drain(d, f, doc_get(f->root, "drain"), &ret->drain, err);
    return r;
}

/* All of it is read before anything changes. */
static int check_hello(struct daemon *d, const struct doc_file *f, struct hello *ret,
                       struct spec_error *err)
{
    struct daemon_node scratch = {0};
    int r = read_hello(d, f, ret, err);

    if (r == 0)
        r = read_about(f, f->root, &scratch, err);
    free(scratch.address);
    free(scratch.host);
    free(scratch.zone);
    free(scratch.domain);
    free_labels(&scratch);
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
    HASH_ADD_KEYPTR(by_peer, d->sessions, node->peer.bytes, node->peer.size, node);
    need(node->by_peer.tbl);
    heard(d, node);
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

static void take_over_drain(struct daemon *d, struct daemon_node *node, const struct drain *drain)
{
    if (drain->there)
        node_drain(d, node, drain->reason, drain->end_at_ms, false);
    else if (!node->drained_by_operator)
        node_undrain(d, node);
}

/* Of a name that is known: NULL when this HELLO is of a life that is over. */
static bool is_current(struct daemon *d, const struct rpc_message *m, const struct hello *h,
                       struct daemon_node **at)
{
    struct daemon_node *node = *at;

    if (!node || h->incarnation == node->incarnation)
        return true;
    if (h->incarnation < node->incarnation) {
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

static void take_hello(struct daemon *d, const struct rpc_message *m, const struct doc_file *f)
{
    struct hello h = {0};
    struct spec_error err;
    struct daemon_node *node;
    bool is_new, was_up;
    uint32_t n_slots;

    if (check_hello(d, f, &h, &err) < 0) {
        malformed(d, m, &err);
        return;
    }
    node = node_find(d, h.name);
    if (!is_current(d, m, &h, &node))
        return;
    if (h.epoch > d->epoch)
        log_line(4,
                 "msg=\"an agent has seen a newer daemon; is this state directory the right "
                 "one?\" node=%s epoch=%" PRIu64,
                 log_quoted(h.name).v, h.epoch);
    is_new = !node;
    if (is_new) {
        node = node_new(h.name, h.incarnation);
        node_add(d, node);
    }
    was_up = node->state == NODE_UP;
    n_slots = node->n_slots;
    read_about(f, f->root, node, &err);
    if (!is_new)
        node->n_slots = n_slots; /* a life has the slots that it began with */
    agents_of(d)->hellos++;
    bind_session(d, node, m);
    welcome(d, node);
    if (is_new)
        slots_of_new_node(d, node);
    else
        d->share_slots = true; /* it can be granted again */
    store_about(d, node);
    if (!was_up)
        tell_node(d, node, is_new ? "up" : "back", NULL);
    take_over_drain(d, node, &h.drain);
    if (take_states(d, node, f, true, &err) < 0)
        malformed(d, m, &err);
    else
        reconcile_missing(d, node);
}

/* ---- other messages --------------------------------------------------------------------------
 */

static void take_tasks(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                       const struct doc_file *f)
{
    struct spec_error err;

    if (take_states(d, node, f, false, &err) < 0)
        malformed(d, m, &err);
}

static void take_goodbye(struct daemon *d, const struct rpc_message *m, const struct doc_file *f)
{
    struct hello h = {0};
    struct spec_error err;
    struct daemon_node *node;
    const char *why = "it said goodbye";

    if (read_hello(d, f, &h, &err) < 0 || read_optional_text(f, f->root, "why", &why, &err) < 0) {
        malformed(d, m, &err);
        return;
    }
    node = node_find(d, h.name);
    if (node && node->incarnation == h.incarnation)
        node_lose(d, node, why);
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
        r = read_name(d, f, p, &n, &err);
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

        r = read_name(d, f, t, &n, &err);
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
    if (read_name(d, f, f->root, &n, &err) < 0)
        malformed(d, m, &err);
    else if (believed(&n, &info))
        job_fact(d, n.job,
                 &(struct pliant_event){.kind = PLIANT_EV_TASK_END_OF_DATA, .task = n.task});
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

static void dispatch(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                     const struct doc_file *f)
{
    static const struct {
        enum message_type type;
        void (*take)(struct daemon *d, struct daemon_node *node, const struct rpc_message *m,
                     const struct doc_file *f);
    } rows[] = {
        {MESSAGE_TASKS, take_tasks}, {MESSAGE_DRAIN, take_drain},
        {MESSAGE_PARTS, take_parts}, {MESSAGE_DRAIN_WITHDRAWN, take_withdrawal},
        {MESSAGE_USAGE, take_usage}, {MESSAGE_END_OF_DATA, take_end_of_data},
        {MESSAGE_LOG, take_log},
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
    if (gap)
        log_line(4, "msg=\"messages of an agent were lost\" node=%s", log_quoted(node->name).v);
    node->behind = true;
    resync(d, node);
}

/* While the store fails only signs of life are taken. */
static void take_life_only(struct daemon *d, struct daemon_node *node, const struct rpc_message *m)
{
    if (m->header.type == MESSAGE_HEARTBEAT && node) {
        heard(d, node);
        heartbeat(d, node);
    } else if (m->header.type == MESSAGE_HELLO)
        send_error(d, m, "unavailable", "the store cannot be written; try again");
}

void agents_take(struct daemon *d, const struct rpc_message *m)
{
    struct daemon_node *node = node_of_peer(d, &m->from);
    struct doc_file *f = &agents_of(d)->body;
    struct spec_error err;
    int r;

    if (d->store_failed) {
        take_life_only(d, node, m);
        return;
    }
    if (node && m->header.type != MESSAGE_HELLO) {
        heard(d, node);
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
    else if (!node)
        send_error(d, m, "not-registered", "say HELLO first");
    else
        dispatch(d, node, m, f);
}

/* ---- from the store --------------------------------------------------------------------------
 */

int node_of_store(struct daemon *d, const struct store_node *row, struct spec_error *err)
{
    struct daemon_node *node = node_new(row->name, row->incarnation);
    struct doc_file f = {0};
    struct drain drain = {0};
    int r = doc_parse(row->name, row->about, strlen(row->about), 1, &f, err);

    if (r == 0)
        r = read_about(&f, f.root, node, err);
    if (r == 0)
        r = read_drain(d, &f, doc_get(f.root, "drain"), &drain, err);
    doc_free(&f);
    if (r < 0) {
        node_free(node);
        return r;
    }
    node->draining = drain.there;
    node->drained_by_operator = drain.by_operator;
    node->drain_reason = drain.reason;
    node->drain_end_at_ms = drain.there ? drain.end_at_ms : PLIANT_NEVER;
    node_add(d, node);
    node_await(d, node, d->opts.heartbeat_timeout_ms);
    return 0;
}

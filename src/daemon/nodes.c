/* nodes.c - nodes as the daemon knows them: what they are, whether they live, how they go
 *
 * A node is lost when nothing was heard of it for long enough in awake time; `lost_at_ms` of all of
 * them is looked at only when the earliest may have come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/agents_impl.h"

static const struct pliant_alloc *const hash_alloc = NULL;

#define SLOTS_MAX 100000 /* of a node */
#define SAME_MS 1000     /* so near, two ends of a drain are the same */

struct agents *agents_of(struct daemon *d)
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

/* ---- liveness ------------------------------------------------------------------------------- */

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

void node_heard(struct daemon *d, struct daemon_node *node)
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

/* ---- events of nodes ------------------------------------------------------------------------ */

void node_tell(struct daemon *d, const struct daemon_node *node, const char *change,
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

/* ---- what is stored of a node --------------------------------------------------------------- */

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

void node_store(struct daemon *d, const struct daemon_node *node)
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
    if (*node->key)
        json_string(&j, "key", node->key);
    json_labels(&j, "labels", node->labels, node->n_labels);
    write_drain(d, node, &j);
    json_end(&j, '}');
    about = need_json(&j);
    store_node_put(
        d->store,
        &(struct store_node){.name = node->name, .incarnation = node->incarnation, .about = about});
    free(about);
}

/* ---- what is read of a node, from a HELLO or from the store --------------------------------- */

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

int node_read(const struct doc_file *f, const struct doc *map, struct daemon_node *node,
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

/* ---- drains --------------------------------------------------------------------------------- */

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
int node_read_drain(const struct daemon *d, const struct doc_file *f, const struct doc *map,
                    struct node_drain *ret, struct spec_error *err)
{
    const struct doc *deadline;
    int64_t unix_ms;
    int r;

    *ret = (struct node_drain){.end_at_ms = PLIANT_NEVER};
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

/* An instant that came over the wall clock twice differs a little. */
static bool same_instant(int64_t a_ms, int64_t b_ms)
{
    if (a_ms == PLIANT_NEVER || b_ms == PLIANT_NEVER)
        return a_ms == b_ms;
    return a_ms - b_ms < SAME_MS && b_ms - a_ms < SAME_MS;
}

void node_drain(struct daemon *d, struct daemon_node *node, enum pliant_drain_reason reason,
                int64_t end_at_ms, bool by_operator)
{
    if (node->draining && node->drain_reason == reason &&
        same_instant(node->drain_end_at_ms, end_at_ms))
        return;
    node->draining = true;
    node->drained_by_operator = by_operator;
    node->drain_reason = reason;
    node->drain_end_at_ms = end_at_ms;
    slots_of_drained_node(d, node);
    node_store(d, node);
    node_tell(d, node, "draining", pliant_drain_reason_name(reason));
}

void node_undrain(struct daemon *d, struct daemon_node *node)
{
    if (!node->draining)
        return;
    node->draining = node->drained_by_operator = false;
    node->drain_end_at_ms = PLIANT_NEVER;
    slots_of_drained_node(d, node);
    node_store(d, node);
    groups_node_undrained(d, node);
    node_tell(d, node, "undrained", NULL);
}

/* ---- a node comes and goes ------------------------------------------------------------------ */

struct daemon_node *node_new(const char *name, uint64_t incarnation)
{
    struct daemon_node *node = need(calloc(1, sizeof *node));

    node->name = need_text(name);
    node->incarnation = incarnation;
    node->state = NODE_AWAITED;
    node->connection = -1;
    node->drain_end_at_ms = PLIANT_NEVER;
    return node;
}

void node_free(struct daemon_node *node)
{
    free_labels(node);
    vec_free(NULL, &node->tenants);
    vec_free(NULL, &node->deploy);
    vec_free(NULL, &node->stop);
    vec_free(NULL, &node->forget);
    vec_free(NULL, &node->discard);
    vec_free(NULL, &node->peers);
    free(node->slots);
    free(node->name);
    free(node->address);
    free(node->host);
    free(node->zone);
    free(node->domain);
    free(node);
}

struct daemon_node *node_of_key(const struct daemon *d, const char *key)
{
    struct daemon_node *node;

    HASH_FIND(by_key, d->keyed, key, strlen(key), node);
    return node;
}

static void release_key(struct daemon *d, struct daemon_node *node)
{
    if (*node->key)
        HASH_DELETE(by_key, d->keyed, node);
    *node->key = '\0';
}

void node_take_key(struct daemon *d, struct daemon_node *node, const char *key)
{
    struct daemon_node *other = node_of_key(d, key);

    if (other == node || !*key)
        return;
    if (other)
        release_key(d, other);
    release_key(d, node);
    snprintf(node->key, sizeof node->key, "%s", key);
    HASH_ADD_KEYPTR(by_key, d->keyed, node->key, strlen(node->key), node);
    need(node->by_key.tbl);
}

void node_add(struct daemon *d, struct daemon_node *node)
{
    HASH_ADD_KEYPTR(hh, d->nodes, node->name, strlen(node->name), node);
    need(node->hh.tbl);
}

/* A task is over, for whatever reason: nobody waits for it any more. */
void node_task_over(struct daemon *d, struct daemon_task *t)
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
    if (!node_has_open_life(node, job) || has_given_up(node, job))
        return;
    job_life(job, node->name)->open = false;
    job_lives_put(d, job);
    slots_given_up(d, job, node, true);
}

void node_close_lives(struct daemon *d, struct daemon_node *node)
{
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next)
        if (job->sched)
            close_life(d, node, job);
}

void node_lose(struct daemon *d, struct daemon_node *node, const char *why)
{
    node_tell(d, node, "lost", why);
    node_await(d, node, 0);
    slots_of_lost_node(d, node);
    groups_node_lost(d, node);
    while (node->tasks)
        node_task_over(d, node->tasks);
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next) {
        if (!node_has_open_life(node, job))
            continue;
        job_life(job, node->name)->open = false;
        job_lives_put(d, job);
    }
    store_node_delete(d->store, node->name);
    release_key(d, node);
    HASH_DEL(d->nodes, node);
    node_free(node);
}

void agents_close(struct daemon *d)
{
    struct daemon_node *node, *next;

    HASH_CLEAR(by_peer, d->sessions);
    HASH_CLEAR(by_key, d->keyed);
    HASH_ITER (hh, d->nodes, node, next) {
        HASH_DEL(d->nodes, node);
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
                node_tell(d, node, "awaited", "the connection is gone");
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

/* ---- from the store ------------------------------------------------------------------------- */

int node_of_store(struct daemon *d, const struct store_node *row, struct spec_error *err)
{
    struct daemon_node *node = node_new(row->name, row->incarnation);
    struct doc_file f = {0};
    struct node_drain drain = {0};
    const char *key = "";
    int r = doc_parse(row->name, row->about, strlen(row->about), 1, &f, err);

    if (r == 0)
        r = node_read(&f, f.root, node, err);
    if (r == 0)
        r = node_read_drain(d, &f, doc_get(f.root, "drain"), &drain, err);
    if (r == 0)
        r = doc_optional(doc_string(&f, f.root, "key", RPC_KEY - 1, &key, err));
    if (r < 0) {
        doc_free(&f);
        node_free(node);
        return r;
    }
    node_take_key(d, node, key);
    doc_free(&f);
    node->draining = drain.there;
    node->drained_by_operator = drain.by_operator;
    node->drain_reason = drain.reason;
    node->drain_end_at_ms = drain.there ? drain.end_at_ms : PLIANT_NEVER;
    node_add(d, node);
    node_await(d, node, d->opts.heartbeat_timeout_ms);
    return 0;
}

/* requests.c - what clients ask for (docs/protocol.md)
 *
 * A request is taken in whole: its event is stepped at once, so the core's refusal is known when
 * the reply is written. The reply leaves after the commit. Only a savepoint and a log are waited
 * for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/requests_impl.h"
#include "daemon/status.h"
#include "sim/sentence.h"

#define PATH_BYTES_MAX 4096u
#define KEEP_BYTES (1u << 20) /* of memory that a large request or reply needed */

struct waiting_reply {
    struct reply_to to;
    struct waiting_reply *next;
};

struct requests *requests_of(struct daemon *d)
{
    if (!d->requests)
        d->requests = need(calloc(1, sizeof *d->requests));
    return d->requests;
}

void requests_close(struct daemon *d)
{
    if (!d->requests)
        return;
    doc_free(&d->requests->body);
    json_free(&d->requests->reply);
    vec_free(NULL, &d->requests->logs);
    free(d->requests);
    d->requests = NULL;
}

/* ---- answers -------------------------------------------------------------------------------- */

struct json *call_begin(struct call *c)
{
    struct json *j = &requests_of(c->d)->reply;

    json_reset(j);
    json_begin(j, NULL, '{');
    return j;
}

void call_end(struct call *c)
{
    struct json *j = &requests_of(c->d)->reply;

    json_end(j, '}');
    need(j->error ? NULL : j);
    outbox_reply(c->d, &c->to, j);
    if (j->cap > KEEP_BYTES)
        json_free(j);
}

static void done(struct call *c)
{
    call_begin(c);
    call_end(c);
}

void refuse(struct call *c, const char *code, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    outbox_refuse(c->d, &c->to, code, "%s", text);
}

/* ---- what requests say ---------------------------------------------------------------------- */

/* Is it there, and not null? */
static bool call_has(const struct call *c, const char *key)
{
    const struct doc *at = doc_get(c->body, key);

    return at && at->kind != DOC_NULL;
}

bool call_needs(struct call *c, const char *key, const char *what)
{
    if (call_has(c, key))
        return true;
    refuse(c, "invalid", "%s: %s: missing; needed: %s", c->f->name, key, what);
    return false;
}

static bool fine(struct call *c, int r, const struct spec_error *err)
{
    need(r != -ENOMEM ? c : NULL);
    if (r == 0)
        return true;
    refuse(c, "invalid", "%s", err->text);
    return false;
}

bool call_string(struct call *c, const char *key, size_t max, const char **ret)
{
    struct spec_error err;

    return !call_has(c, key) || fine(c, doc_string(c->f, c->body, key, max, ret, &err), &err);
}

bool call_int(struct call *c, const char *key, int64_t min, int64_t max, int64_t *ret)
{
    struct spec_error err;

    return !call_has(c, key) || fine(c, doc_int(c->f, c->body, key, min, max, ret, &err), &err);
}

bool call_bool(struct call *c, const char *key, bool *ret)
{
    struct spec_error err;

    return !call_has(c, key) || fine(c, doc_bool(c->f, c->body, key, ret, &err), &err);
}

bool call_job(struct call *c, struct daemon_job **ret)
{
    const char *name = NULL;
    struct spec_error err;

    if (!call_needs(c, "job", "the id of a job, a prefix of it, or its name") ||
        !call_string(c, "job", PLIANT_NAME_MAX, &name))
        return false;
    *ret = job_find(c->d, name, &err);
    if (!*ret)
        refuse(c, "not-found", "%s", err.text);
    return *ret != NULL;
}

static void refuse_damaged(struct call *c, const struct daemon_job *job)
{
    refuse(c, "refused", "%s: the job is damaged, its journal cannot be read; it is left alone: %s",
           job->id, job->damaged);
}

/* The same, and it has not ended. */
static bool call_live_job(struct call *c, struct daemon_job **ret)
{
    char word[STATUS_WORD_MAX];

    if (!call_job(c, ret))
        return false;
    if ((*ret)->damaged)
        refuse_damaged(c, *ret);
    else if (!(*ret)->sched || (*ret)->ended_unix_ms)
        refuse(c, "refused", "%s: the job has ended: %s", (*ret)->id,
               status_word(c->d, *ret, word));
    else
        return true;
    return false;
}

/* A job whose documents can be shown: it lives, or they were kept. */
static bool shown_job(struct call *c, struct daemon_job **ret)
{
    if (!call_job(c, ret))
        return false;
    if (!(*ret)->damaged)
        return true;
    refuse_damaged(c, *ret);
    return false;
}

/* ---- wishes, which the core may refuse ------------------------------------------------------ */

void requests_refused(struct daemon *d, struct daemon_job *job, const struct pliant_action *act)
{
    struct requests *r = requests_of(d);
    struct pliant_event none = {0};
    struct view view = {.job = job->spec.job, .event = &none};
    char text[sizeof r->refusal] = "";
    FILE *out;
    const char *reason;

    if (r->stepping != job)
        return;
    out = fmemopen(text, sizeof text, "w");
    if (out) {
        sentence_of_refusal(out, &view, act);
        fclose(out);
    }
    reason = strstr(text, ": "); /* in front is the event's name, which the client knows */
    r->refused = true;
    snprintf(r->refusal, sizeof r->refusal, "%s", reason ? reason + 2 : text);
}

/* What happened before comes first, so that a refusal in between is meant for this wish. */
static bool step_wish(struct call *c, struct daemon_job *job, const struct pliant_event *ev)
{
    struct requests *r = requests_of(c->d);

    jobs_run(c->d);
    r->stepping = job;
    r->refused = false;
    job_fact(c->d, job, ev);
    jobs_run(c->d);
    r->stepping = NULL;
    return !r->refused;
}

/* True: done; else it has been refused. */
static bool wish(struct call *c, struct daemon_job *job, const struct pliant_event *ev)
{
    if (step_wish(c, job, ev))
        return true;
    refuse(c, "refused", "%s: %s", job->id, requests_of(c->d)->refusal);
    return false;
}

/* ---- savepoints are waited for -------------------------------------------------------------- */

static void wait_for_savepoint(struct call *c, struct daemon_job *job)
{
    struct waiting_reply *w = need(calloc(1, sizeof *w));

    *w = (struct waiting_reply){.to = c->to, .next = job->waiting};
    job->waiting = w;
}

static struct waiting_reply *next_waiting(struct daemon_job *job)
{
    struct waiting_reply *w = job->waiting;

    if (w)
        job->waiting = w->next;
    return w;
}

void requests_savepoint_ended(struct daemon *d, struct daemon_job *job, const char *path,
                              const char *cause)
{
    for (struct waiting_reply *w; (w = next_waiting(job)); free(w)) {
        struct call c = {.d = d, .to = w->to};

        if (path) {
            json_string(call_begin(&c), "savepoint", path);
            call_end(&c);
        } else {
            refuse(&c, "refused", "%s: the savepoint failed: %s", job->id,
                   cause && *cause ? cause : "no cause was given");
        }
    }
}

void requests_of_ended_job(struct daemon *d, struct daemon_job *job)
{
    requests_savepoint_ended(d, job, NULL, "the job has ended");
}

static bool savepoint_dir(struct call *c, const char **ret)
{
    if (!call_string(c, "dir", PATH_BYTES_MAX, ret))
        return false;
    if (!*ret || **ret == '/')
        return true;
    refuse(c, "invalid", "dir: \"%.200s\"; accepted: an absolute path", *ret);
    return false;
}

static void savepoint(struct call *c, struct pliant_event *ev)
{
    struct daemon_job *job;

    if (!savepoint_dir(c, &ev->savepoint.dir) || !call_bool(c, "cancel", &ev->savepoint.cancel) ||
        !call_bool(c, "drain", &ev->savepoint.drain) || !call_live_job(c, &job))
        return;
    jobs_run(c->d); /* one that ends just now is not the one that is asked for */
    if (!job->sched || job->ended_unix_ms) {
        refuse(c, "refused", "%s: the job has ended", job->id);
        return;
    }
    wait_for_savepoint(c, job);
    if (step_wish(c, job, ev))
        return;
    free(next_waiting(job));
    refuse(c, "refused", "%s: %s", job->id, requests_of(c->d)->refusal);
}

static void stop_job(struct call *c)
{
    savepoint(c, &(struct pliant_event){.kind = PLIANT_EV_STOP});
}

static void take_savepoint(struct call *c)
{
    savepoint(c, &(struct pliant_event){.kind = PLIANT_EV_SAVEPOINT_REQUESTED});
}

/* ---- other wishes --------------------------------------------------------------------------- */

static void take_checkpoint(struct call *c)
{
    struct daemon_job *job;

    if (call_live_job(c, &job) &&
        wish(c, job, &(struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_REQUESTED}))
        done(c);
}

/* One that has ended is not canceled again: who asks twice gets the same answer. */
static void cancel(struct call *c)
{
    struct daemon_job *job;
    char word[STATUS_WORD_MAX];

    if (!shown_job(c, &job))
        return;
    if (job->sched && !job->ended_unix_ms &&
        !wish(c, job, &(struct pliant_event){.kind = PLIANT_EV_CANCEL}))
        return;
    json_string(call_begin(c), "job_status", status_word(c->d, job, word));
    call_end(c);
}

static bool bounds_of_vertex(struct call *c, const struct daemon_job *job, const struct doc *at,
                             struct pliant_bounds *bounds)
{
    pliant_vertex_id v = pliant_job_vertex_find(job->spec.job, at->key);
    struct spec_error err;
    int r;

    if (v.v == 0) {
        refuse(c, "invalid", "vertices: \"%.128s\": the job has no such vertex", at->key);
        return false;
    }
    if (at->kind != DOC_MAP) {
        doc_error(c->f, at, &err, "is %s; accepted: {\"min\":N,\"max\":N}",
                  doc_kind_name(at->kind));
        return fine(c, -EINVAL, &err);
    }
    r = doc_optional(
        doc_int(c->f, at, "min", 1, PLIANT_MAX_PARALLELISM, &bounds[v.v - 1].min, &err));
    if (r == 0)
        r = doc_optional(
            doc_int(c->f, at, "max", 1, PLIANT_MAX_PARALLELISM, &bounds[v.v - 1].max, &err));
    return fine(c, r, &err);
}

static void removed(struct call *c, const char *id, bool it_was_there)
{
    struct json *j = call_begin(c);

    json_string(j, "job", id);
    json_bool(j, "removed", it_was_there);
    call_end(c);
}

/* All of an id may be asked for again after it was removed; a name then means nothing, or another
 * job. */
static bool is_removed(struct call *c)
{
    const char *id = NULL;
    struct spec_error err;

    return call_has(c, "job") &&
           doc_string(c->f, c->body, "job", PLIANT_NAME_MAX, &id, &err) == 0 && job_is_id(id) &&
           !job_find(c->d, id, &err);
}

static void remove_job(struct call *c)
{
    struct daemon_job *job;
    bool force = false;

    if (!call_bool(c, "force", &force))
        return;
    if (is_removed(c)) {
        removed(c, doc_get(c->body, "job")->text, false);
        return;
    }
    if (!call_job(c, &job))
        return;
    if (job->damaged && !force) {
        refuse(c, "refused",
               "%s: the job is damaged; with --force what can be read of it is lost too, and what "
               "still runs of it is stopped: %s",
               job->id, job->damaged);
        return;
    }
    if (!job->damaged && !job->ended_unix_ms) {
        refuse(c, "refused", "%s: the job has not ended; cancel or stop it first", job->id);
        return;
    }
    log_line(6, "msg=\"job removed\" job=%s name=%s damaged=%s", job->id, log_quoted(job->name).v,
             job->damaged ? "yes" : "no");
    job_remove(c->d, job);
    removed(c, job->id, true);
}

/* The core wants the bounds of all vertices; those that are not named keep theirs. */
static struct pliant_bounds *present_bounds(const struct daemon_job *job)
{
    uint32_t n = pliant_job_vertices(job->spec.job);
    struct pliant_bounds *bounds = need(calloc(n, sizeof *bounds));

    for (uint32_t i = 0; i < n; i++) {
        uint32_t min, max;

        pliant_vertex_bounds(job->sched, (pliant_vertex_id){i + 1}, &min, &max);
        bounds[i] = (struct pliant_bounds){
            .vertex = pliant_job_vertex_name(job->spec.job, (pliant_vertex_id){i + 1}),
            .min = min,
            .max = max};
    }
    return bounds;
}

static void scale(struct call *c)
{
    const struct doc *vertices;
    struct pliant_bounds *bounds;
    struct spec_error err;
    struct daemon_job *job;
    bool good = true;

    if (!call_needs(c, "vertices", "a map of vertices to {\"min\":N,\"max\":N}") ||
        !fine(c, doc_container(c->f, c->body, "vertices", DOC_MAP, &vertices, &err), &err) ||
        !call_live_job(c, &job))
        return;
    bounds = present_bounds(job);
    for (const struct doc *at = vertices->child; at && good; at = at->next)
        good = bounds_of_vertex(c, job, at, bounds);
    if (good)
        good = wish(c, job,
                    &(struct pliant_event){
                        .kind = PLIANT_EV_REQUIREMENTS,
                        .requirements = {.v = bounds, .n = pliant_job_vertices(job->spec.job)}});
    free(bounds);
    if (!good)
        return;
    job->scan_slots = true; /* another minimum alone is not declared */
    done(c);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static bool node_of(struct call *c, struct daemon_node **ret)
{
    const char *name = NULL;

    if (!call_needs(c, "node", "the name of a node") ||
        !call_string(c, "node", PLIANT_NAME_MAX, &name))
        return false;
    *ret = node_find(c->d, name);
    if (!*ret)
        refuse(c, "not-found", "%s: no such node", name);
    return *ret != NULL;
}

static bool drain_reason(struct call *c, enum pliant_drain_reason *ret)
{
    const char *word = NULL;

    if (!call_string(c, "reason", PLIANT_NAME_MAX, &word))
        return false;
    *ret = PLIANT_DRAIN_UPGRADE;
    if (!word)
        return true;
    for (enum pliant_drain_reason r = PLIANT_DRAIN_PREEMPTION; r <= PLIANT_DRAIN_IDLE; r++)
        if (strcmp(word, pliant_drain_reason_name(r)) == 0) {
            *ret = r;
            return true;
        }
    refuse(c, "invalid", "reason: \"%s\"; accepted: %s | %s | %s | %s", word,
           pliant_drain_reason_name(PLIANT_DRAIN_PREEMPTION),
           pliant_drain_reason_name(PLIANT_DRAIN_SCALE_DOWN),
           pliant_drain_reason_name(PLIANT_DRAIN_UPGRADE),
           pliant_drain_reason_name(PLIANT_DRAIN_IDLE));
    return false;
}

static void drain_node(struct call *c)
{
    enum pliant_drain_reason reason;
    struct daemon_node *node;
    int64_t in_ms = 0;

    if (!drain_reason(c, &reason) || !call_int(c, "deadline_ms", 0, DOC_INTEGER_MAX / 2, &in_ms) ||
        !node_of(c, &node))
        return;
    node_drain(c->d, node, reason,
               call_has(c, "deadline_ms") ? c->d->clock.now_ms + in_ms : PLIANT_NEVER, true);
    done(c);
}

static void undrain_node(struct call *c)
{
    struct daemon_node *node;

    if (!node_of(c, &node))
        return;
    node_undrain(c->d, node);
    done(c);
}

static void nodes(struct call *c)
{
    status_nodes(c->d, call_begin(c));
    call_end(c);
}

/* ---- documents ------------------------------------------------------------------------------ */

/* What the daemon has done since its start. Dropped: agents that do not read. */
static void counts(struct daemon *d, struct json *j)
{
    struct rpc_counts agents, clients;

    rpc_server_counts(d->agents_end, &agents);
    rpc_server_counts(d->clients_end, &clients);
    json_begin(j, "counts", '{');
    json_uint(j, "turns", d->turns);
    json_uint(j, "commits", store_commits(d->store));
    json_uint(j, "steps", d->steps);
    json_uint(j, "received", agents.received + clients.received);
    json_uint(j, "sent", agents.sent + clients.sent);
    json_uint(j, "dropped", agents.dropped_full);
    json_uint(j, "faults", agents.faults + clients.faults);
    json_uint(j, "denied", agents.denied + clients.denied);
    json_end(j, '}');
}

static void ping(struct call *c)
{
    struct daemon *d = c->d;
    struct json *j = call_begin(c);

    json_string(j, "version", pliant_version());
    json_begin(j, "protocol", '[');
    json_int(j, NULL, MESSAGE_VERSION);
    json_int(j, NULL, MESSAGE_VERSION);
    json_end(j, ']');
    json_id(j, "epoch", d->epoch);
    json_int(j, "pid", getpid());
    json_int(j, "uptime_ms", d->clock.now_ms - d->started_at_ms);
    json_string(j, "state", d->store_failed ? "store-failed" : "ok");
    json_begin(j, "endpoints", '{');
    json_string(j, "agents", rpc_server_endpoint(d->agents_end));
    json_string(j, "clients", rpc_server_endpoint(d->clients_end));
    json_string(j, "events", rpc_server_endpoint(d->events_end));
    json_end(j, '}');
    counts(d, j);
    call_end(c);
}

static void list(struct call *c)
{
    bool ended = false;
    struct json *j;

    if (!call_bool(c, "ended", &ended))
        return;
    j = call_begin(c);
    json_begin(j, "jobs", '[');
    for (struct daemon_job *job = c->d->jobs; job; job = job->hh.next)
        if (ended || !job->ended_unix_ms)
            status_row(c->d, job, j);
    json_end(j, ']');
    call_end(c);
}

static void show(struct call *c,
                 void (*put)(struct daemon *d, struct daemon_job *job, struct json *j))
{
    struct daemon_job *job;

    if (!shown_job(c, &job))
        return;
    put(c->d, job, call_begin(c));
    call_end(c);
}

static void status(struct call *c)
{
    show(c, status_members);
}

static void tasks_of(struct call *c)
{
    show(c, status_tasks);
}

static void rescales(struct call *c)
{
    show(c, status_rescales);
}

static void failures(struct call *c)
{
    show(c, status_failures);
}

static void checkpoints(struct call *c)
{
    show(c, status_checkpoints);
}

/* What comes later in the stream says what has changed since. */
static void snapshot(struct call *c)
{
    struct json *j = call_begin(c);

    json_id(j, "sequence", c->d->event_sequence);
    json_begin(j, "jobs", '[');
    for (struct daemon_job *job = c->d->jobs; job; job = job->hh.next)
        if (job->sched && !job->ended_unix_ms)
            status_of_job(c->d, job, NULL, j);
    json_end(j, ']');
    status_nodes(c->d, j);
    call_end(c);
}

static void shut_down(struct call *c)
{
    bool stop_jobs = false;

    if (!call_bool(c, "stop_jobs", &stop_jobs))
        return;
    c->d->stop_jobs = c->d->stop_jobs || stop_jobs;
    c->d->ending = true;
    done(c);
}

/* ---- dispatching ---------------------------------------------------------------------------- */

static const struct handler {
    enum message_type type;
    void (*take)(struct call *c);
} handlers[] = {
    {MESSAGE_PING, ping},
    {MESSAGE_SUBMIT, submit},
    {MESSAGE_LIST, list},
    {MESSAGE_STATUS, status},
    {MESSAGE_SCALE, scale},
    {MESSAGE_CANCEL, cancel},
    {MESSAGE_STOP_JOB, stop_job},
    {MESSAGE_SAVEPOINT, take_savepoint},
    {MESSAGE_TAKE_CHECKPOINT, take_checkpoint},
    {MESSAGE_DRAIN_NODE, drain_node},
    {MESSAGE_UNDRAIN_NODE, undrain_node},
    {MESSAGE_NODES, nodes},
    {MESSAGE_TASKS_OF, tasks_of},
    {MESSAGE_RESCALES, rescales},
    {MESSAGE_FAILURES, failures},
    {MESSAGE_CHECKPOINTS, checkpoints},
    {MESSAGE_LOGS, logs},
    {MESSAGE_RECORD, record},
    {MESSAGE_SHUTDOWN, shut_down},
    {MESSAGE_SNAPSHOT, snapshot},
    {MESSAGE_REMOVE, remove_job},
};

static const struct handler *handler_of(uint16_t type)
{
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (handlers[i].type == type)
            return &handlers[i];
    return NULL;
}

/* The reactor has seen that the frames are fine and that the peer's role allows the type. */
void requests_take(struct daemon *d, const struct rpc_message *m)
{
    struct requests *r = requests_of(d);
    struct call c = {.d = d,
                     .f = &r->body,
                     .to = {.peer = m->from,
                            .sequence = m->header.sequence,
                            .of = (enum message_type)m->header.type}};
    const struct handler *handler = handler_of(m->header.type);
    struct spec_error err;
    int fault;

    if (!handler) {
        refuse(&c, message_fault_code(MESSAGE_UNKNOWN_TYPE), "type %u: not a request",
               m->header.type);
        return;
    }
    fault = message_body(&r->body, &m->header, m->body, m->size, &err);
    need(fault != -ENOMEM ? r : NULL);
    if (fault != MESSAGE_GOOD) {
        refuse(&c, message_fault_code(MESSAGE_MALFORMED), "%s", err.text);
        return;
    }
    c.body = r->body.root;
    handler->take(&c);
    if (m->size > KEEP_BYTES)
        doc_free(&r->body);
}

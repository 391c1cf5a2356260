/* logs.c - LOGS: forwarded to the agent that has them
 *
 * A task that lives is on a known node. Of one that has ended nobody remembers where it was: all
 * agents are asked, and the first that has the log answers.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/requests_impl.h"
#include "daemon/status.h"
#include "spec/json_doc.h"

#define ANSWER_MS 10000
#define PIECE_BYTES_MAX (512 * 1024)

struct log_of {
    struct daemon_job *job;
    const char *vertex, *stream;
    int64_t subtask, attempt, offset, max;
};

/* ---- which attempt -------------------------------------------------------------------------- */

struct last_attempts {
    struct VEC(uint32_t) of_subtask; /* 0: none yet */
};

void logs_note_attempt(struct daemon_job *job, const struct pliant_task *task)
{
    uint32_t n = pliant_job_vertices(job->spec.job);
    struct last_attempts *last;

    if (!job->attempts)
        job->attempts = need(calloc(n, sizeof *job->attempts));
    last = &job->attempts[task->vertex.v - 1];
    while (last->of_subtask.n <= task->subtask)
        need(vec_push(NULL, &last->of_subtask));
    if (last->of_subtask.v[task->subtask] < task->attempt)
        last->of_subtask.v[task->subtask] = task->attempt;
}

void logs_free(struct daemon_job *job)
{
    for (uint32_t i = 0; job->attempts && i < pliant_job_vertices(job->spec.job); i++)
        vec_free(NULL, &job->attempts[i].of_subtask);
    free(job->attempts);
    job->attempts = NULL;
}

void logs_write_attempts(const struct daemon_job *job, struct json *j)
{
    json_begin(j, "attempts", '{');
    for (uint32_t v = 1; job->attempts && v <= pliant_job_vertices(job->spec.job); v++) {
        const struct last_attempts *last = &job->attempts[v - 1];

        json_begin(j, pliant_job_vertex_name(job->spec.job, (pliant_vertex_id){v}), '[');
        for (size_t i = 0; i < last->of_subtask.n; i++)
            json_uint(j, NULL, last->of_subtask.v[i]);
        json_end(j, ']');
    }
    json_end(j, '}');
}

static bool last_deployed(struct log_of *log)
{
    pliant_vertex_id v = pliant_job_vertex_find(log->job->spec.job, log->vertex);
    const struct last_attempts *last =
        log->job->attempts && v.v ? &log->job->attempts[v.v - 1] : NULL;

    if (last && (size_t)log->subtask < last->of_subtask.n)
        log->attempt = last->of_subtask.v[log->subtask];
    return log->attempt > 0;
}

static bool is_of(const struct pliant_failure_item *item, const struct log_of *log)
{
    const char *name = pliant_job_vertex_name(log->job->spec.job, item->task.vertex);

    return name && strcmp(name, log->vertex) == 0 && item->task.subtask == log->subtask;
}

/* After a restart of the daemon, what failed last is what people look for. */
static bool last_of_failures(struct log_of *log)
{
    const struct pliant_failure *f;

    for (size_t i = 0; (f = pliant_failure_at(log->job->sched, i)); i++)
        for (uint32_t k = 0; k < f->n; k++)
            if (is_of(&f->items[k], log)) {
                log->attempt = f->items[k].task.attempt;
                return true;
            }
    return false;
}

/* The documents of a job that has ended have the table. */
static bool last_of_documents(struct daemon *d, struct log_of *log)
{
    const char *text = job_final(d, log->job);
    const struct doc *at = NULL;
    struct doc_file f = {0};
    struct spec_error err;

    if (!text || doc_parse(log->job->id, text, strlen(text), 1, &f, &err) < 0)
        return false;
    at = doc_get(f.root, "attempts");
    at = at ? doc_get(at, log->vertex) : NULL;
    at = at ? at->child : NULL;
    for (int64_t i = 0; at && i < log->subtask; i++)
        at = at->next;
    if (at)
        doc_as_int(&f, at, 0, UINT32_MAX, &log->attempt, &err);
    doc_free(&f);
    return log->attempt > 0;
}

static bool last_attempt(struct daemon *d, struct log_of *log)
{
    if (!log->job->sched)
        return last_of_documents(d, log);
    return last_deployed(log) || last_of_failures(log);
}

/* ---- asking --------------------------------------------------------------------------------- */

static void write_question(struct json *j, uint64_t id, const struct log_of *log)
{
    json_begin(j, NULL, '{');
    json_id(j, "request", id);
    json_string(j, "job", log->job->id);
    json_string(j, "vertex", log->vertex);
    json_int(j, "subtask", log->subtask);
    json_int(j, "attempt", log->attempt);
    json_string(j, "stream", log->stream);
    json_int(j, "offset", log->offset);
    json_int(j, "max", log->max);
    json_end(j, '}');
}

static const struct daemon_task *living(const struct log_of *log)
{
    struct pliant_task task = {.subtask = (uint32_t)log->subtask,
                               .attempt = (uint32_t)log->attempt};

    if (!log->job->sched)
        return NULL;
    task.vertex = pliant_job_vertex_find(log->job->spec.job, log->vertex);
    return job_task(log->job, &task);
}

static uint32_t ask(struct daemon *d, uint64_t id, const struct log_of *log)
{
    const struct daemon_task *task = living(log);
    uint32_t asked = 0;
    struct json j;

    json_init(&j, NULL);
    write_question(&j, id, log);
    for (struct daemon_node *node = d->nodes; node; node = node->hh.next)
        if (node->state == NODE_UP && (!task || task->node == node)) {
            outbox_to_node(d, node, MESSAGE_READ_LOG, &j);
            asked++;
        }
    json_free(&j);
    return asked;
}

static bool read_question(struct call *c, struct log_of *log)
{
    *log = (struct log_of){.stream = "stdout", .max = PIECE_BYTES_MAX};
    if (!call_needs(c, "vertex", "the id of a vertex") ||
        !call_string(c, "vertex", PLIANT_NAME_MAX, &log->vertex) ||
        !call_needs(c, "subtask", "a number from 0") ||
        !call_int(c, "subtask", 0, PLIANT_MAX_PARALLELISM - 1, &log->subtask) ||
        !call_int(c, "attempt", 1, UINT32_MAX, &log->attempt) ||
        !call_string(c, "stream", PLIANT_NAME_MAX, &log->stream) ||
        !call_int(c, "offset", -DOC_INTEGER_MAX, DOC_INTEGER_MAX, &log->offset) ||
        !call_int(c, "max", 1, DOC_INTEGER_MAX, &log->max) || !call_job(c, &log->job))
        return false;
    if (log->max > PIECE_BYTES_MAX)
        log->max = PIECE_BYTES_MAX;
    if (strcmp(log->stream, "stdout") == 0 || strcmp(log->stream, "stderr") == 0)
        return true;
    refuse(c, "invalid", "stream: \"%s\"; accepted: stdout | stderr", log->stream);
    return false;
}

void logs(struct call *c)
{
    struct requests *r = requests_of(c->d);
    struct log_request *request;
    struct log_of log;
    uint32_t asked;

    if (!read_question(c, &log))
        return;
    if (log.attempt == 0 && !last_attempt(c->d, &log)) {
        refuse(c, "not-found", "%s: no task %s/%" PRId64 " is known", log.job->id, log.vertex,
               log.subtask);
        return;
    }
    asked = ask(c->d, ++r->last_log, &log);
    if (asked == 0) {
        refuse(c, "not-found", "%s: no node that could have the log is connected", log.job->id);
        return;
    }
    request = need(vec_push(NULL, &r->logs));
    *request = (struct log_request){.id = r->last_log,
                                    .to = c->to,
                                    .end_at_ms = c->d->clock.awake_ms + ANSWER_MS,
                                    .asked = asked};
}

/* ---- answers -------------------------------------------------------------------------------- */

static struct log_request *find_request(struct requests *r, const char *id)
{
    char *end;
    uint64_t n = strtoull(id, &end, 10);

    for (size_t i = 0; *id && !*end && i < r->logs.n; i++)
        if (r->logs.v[i].id == n)
            return &r->logs.v[i];
    return NULL;
}

static void forget_request(struct requests *r, struct log_request *request)
{
    *request = r->logs.v[--r->logs.n];
}

static void pass_on(struct call *c, const struct doc *log)
{
    static const char *const members[] = {"data", "offset", "next", "size", "ended"};
    struct json *j = call_begin(c);

    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        json_doc(j, members[i], doc_get(log, members[i]));
    call_end(c);
}

void requests_log(struct daemon *d, const struct doc_file *f, const struct doc *log)
{
    struct requests *r = requests_of(d);
    const char *id, *error = NULL;
    struct log_request *request;
    struct spec_error err;
    struct call c = {.d = d};

    if (doc_string(f, log, "request", 24, &id, &err) < 0)
        return;
    request = find_request(r, id);
    if (!request)
        return; /* too late, or another agent was faster */
    c.to = request->to;
    if (doc_string(f, log, "error", 1024, &error, &err) == 0) {
        if (--request->asked > 0)
            return;
        refuse(&c, "not-found", "%s", error);
    } else {
        pass_on(&c, log);
    }
    forget_request(r, request);
}

void requests_expire(struct daemon *d)
{
    struct requests *r = requests_of(d);

    for (size_t i = 0; i < r->logs.n;) {
        struct call c = {.d = d, .to = r->logs.v[i].to};

        if (r->logs.v[i].end_at_ms > d->clock.awake_ms) {
            i++;
            continue;
        }
        refuse(&c, "not-found", "no agent has answered in %d s", ANSWER_MS / 1000);
        forget_request(r, &r->logs.v[i]);
    }
}

int64_t requests_next_deadline(const struct daemon *d)
{
    int64_t first = PLIANT_NEVER;

    for (size_t i = 0; d->requests && i < d->requests->logs.n; i++)
        if (d->requests->logs.v[i].end_at_ms < first)
            first = d->requests->logs.v[i].end_at_ms;
    return first;
}

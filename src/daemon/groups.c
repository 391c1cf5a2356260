/* groups.c - worker groups: what is kept of one, what its workers report, what is due */
#include "daemon/groups_impl.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "spec/json_doc.h"

#define NOTE_CALLS "group-calls"    /* reports that are over */
#define NOTE_METRICS "group-report" /* rank 0's, until its report is over */
#define MISSING_MAX 200             /* bytes of a list of ranks */

/* ---- what is kept --------------------------------------------------------------------------- */

struct group *group_new(const struct daemon_job *job, const char *run_dir)
{
    struct group *g = need(calloc(1, sizeof *g));
    const char *metric = options_text(&job->options, "worker-group.checkpoint.score-attribute");
    int64_t kept = job->config->group.num_to_keep;

    g->run_dir = need_text(run_dir);
    g->lease = -1;
    g->score_metric = *metric ? need_text(metric) : NULL;
    g->keep = (struct run_keep){.num_to_keep = kept > 0 ? (uint32_t)kept : 0,
                                .score_metric = g->score_metric,
                                .score_min = job->config->group.score_order == PLIANT_SCORE_MIN};
    g->prepared_by_ms = g->stop_at_ms = PLIANT_NEVER;
    collective_begin(&g->collective, 0);
    barrier_resize(&g->reports, 0);
    return g;
}

void group_free(struct daemon_job *job)
{
    struct group *g = job->group;

    if (!g)
        return;
    launch_free(g);
    collective_free(&g->collective);
    barrier_free(&g->reports);
    for (size_t i = 0; i < g->registered.n; i++)
        free(g->registered.v[i].name);
    vec_free(NULL, &g->registered);
    run_free(&g->run);
    run_lease_let_go(&g->lease);
    free(g->bytes);
    free(g->metrics);
    free(g->taken_error);
    free(g->failed);
    free(g->score_metric);
    free(g->run_dir);
    free(g);
    job->group = NULL;
}

/* ---- messages and notes ---------------------------------------------------------------------- */

struct json *group_body(struct json *j, const struct daemon_job *job,
                        const struct pliant_task *task)
{
    json_init(j, NULL);
    json_begin(j, NULL, '{');
    json_string(j, "job", job->id);
    json_string(j, "vertex", pliant_job_vertex_name(job->spec.job, task->vertex));
    json_uint(j, "subtask", task->subtask);
    json_uint(j, "attempt", task->attempt);
    return j;
}

void group_send(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                enum message_type type, const struct json *body)
{
    const struct daemon_task *known = job_task(job, task);

    if (known && known->node->state == NODE_UP)
        outbox_to_node(d, known->node, type, body); /* else its HELLO says what it waits for */
}

bool group_note(struct daemon *d, const struct daemon_job *job, const char *key, struct doc_file *f)
{
    struct spec_error err;
    const char *text;

    *f = (struct doc_file){0};
    return store_note_get(d->store, job->id, key, &text) == 0 &&
           doc_parse(key, text, strlen(text), 1, f, &err) == 0;
}

void group_put_note(struct daemon *d, const struct daemon_job *job, const char *key, struct json *j)
{
    char *text;

    json_end(j, '}');
    text = need_json(j);
    store_note_put(d->store, job->id, key, text);
    free(text);
}

char *group_text(const struct doc *value)
{
    return value && value->kind == DOC_STRING ? need_text(value->text) : NULL;
}

/* Of this attempt; else the note says nothing. */
static bool attempt_note(struct daemon *d, const struct daemon_job *job, const char *key,
                         struct doc_file *f)
{
    struct spec_error err;
    int64_t attempt;

    return group_note(d, job, key, f) &&
           doc_int(f, f->root, "attempt", 0, UINT32_MAX, &attempt, &err) == 0 &&
           attempt == job->group->attempt;
}

/* What a daemon before this one has told. */
static void recall(struct daemon *d, struct daemon_job *job)
{
    struct group *g = job->group;
    struct spec_error err;
    struct doc_file f;

    if (attempt_note(d, job, NOTE_CALLS, &f)) {
        doc_int(&f, f.root, "taken", 0, DOC_INTEGER_MAX, &g->taken, &err);
        g->taken_error = group_text(doc_get(f.root, "error"));
    }
    doc_free(&f);
    if (attempt_note(d, job, NOTE_METRICS, &f)) {
        doc_int(&f, f.root, "call", 0, DOC_INTEGER_MAX, &g->metrics_call, &err);
        g->metrics = need(json_doc_text(doc_get(f.root, "metrics"), "{}"));
    }
    doc_free(&f);
    if (attempt_note(d, job, NOTE_COLLECTIVE, &f))
        collectives_recall(job, &f);
    doc_free(&f);
}

void group_hear(struct daemon *d, struct daemon_job *job, const struct pliant_task *task)
{
    struct group *g = job->group;
    uint32_t n = pliant_parallelism(job->sched, task->vertex);

    if (g->attempt == task->attempt && g->reports.n == n)
        return;
    g->attempt = task->attempt;
    g->taken = g->metrics_call = 0;
    free(g->taken_error);
    free(g->metrics);
    g->taken_error = g->metrics = NULL;
    free(g->bytes);
    g->bytes = need(calloc((size_t)n + 1, sizeof *g->bytes));
    barrier_resize(&g->reports, n); /* [W-CKP-9] */
    collective_begin(&g->collective, n);
    recall(d, job);
}

/* ---- reports -------------------------------------------------------------------------------- */

struct report {
    int64_t call, bytes;
    const char *checkpoint; /* NULL: metrics only */
    const struct doc *metrics;
};

static int read_report(const struct doc_file *f, const struct doc *at, struct report *ret,
                       struct spec_error *err)
{
    const struct doc *checkpoint = doc_get(at, "checkpoint");
    int r;

    *ret = (struct report){0};
    r = doc_int(f, at, "call", 1, DOC_INTEGER_MAX, &ret->call, err);
    if (r == -ENOENT)
        r = doc_error(f, at, err, "call: missing");
    if (r == 0 && checkpoint && checkpoint->kind != DOC_NULL)
        r = doc_as_string(f, checkpoint, NAME_MAX, &ret->checkpoint, err);
    if (r == 0 && doc_get(at, "bytes") && doc_get(at, "bytes")->kind != DOC_NULL)
        r = doc_int(f, at, "bytes", 0, DOC_INTEGER_MAX, &ret->bytes, err);
    if (r == 0)
        r = doc_optional(doc_container(f, at, "metrics", DOC_MAP, &ret->metrics, err));
    return r;
}

static void answer_report(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                          int64_t call, const char *error)
{
    struct json j;

    json_int(group_body(&j, job, task), "call", call);
    if (error)
        json_string(&j, "error", error);
    json_end(&j, '}');
    group_send(d, job, task, MESSAGE_REPORT_TAKEN, &j);
    json_free(&j);
}

/* It is lost with this daemon, unless it stands in the store [W-CKP-5]. */
static void keep_metrics(struct daemon *d, struct daemon_job *job, const struct report *r)
{
    struct group *g = job->group;
    struct json j;

    free(g->metrics);
    g->metrics = need(json_doc_text(r->metrics, "{}"));
    g->metrics_call = r->call;
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_uint(&j, "attempt", g->attempt);
    json_int(&j, "call", r->call);
    json_raw(&j, "metrics", g->metrics, strlen(g->metrics));
    group_put_note(d, job, NOTE_METRICS, &j);
}

void group_report(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                  const struct doc_file *f, const struct doc *at)
{
    struct group *g = job->group;
    struct spec_error err;
    struct report r;

    if (read_report(f, at, &r, &err) < 0) {
        log_line(4, "msg=\"a report can't be read\" job=%s error=%s", job->id,
                 log_quoted(err.text).v);
        return;
    }
    group_hear(d, job, task);
    if (task->subtask >= g->reports.n)
        return;
    if (r.call <= g->taken) { /* the answer was lost */
        answer_report(d, job, task, r.call, r.call == g->taken ? g->taken_error : NULL);
        return;
    }
    if (!barrier_enter(&g->reports, task->subtask, d->clock.now_ms,
                       job->config->group.collective_warn_interval_ms))
        return; /* said again */
    groups_wake(d, g->reports.warn_at_ms);
    g->bytes[task->subtask] = (uint64_t)r.bytes;
    if (task->subtask == 0)
        keep_metrics(d, job, &r);
    job_fact(d, job,
             &(struct pliant_event){
                 .kind = PLIANT_EV_REPORT,
                 .report = {.task = *task, .call = (uint64_t)r.call, .path = r.checkpoint}});
}

uint64_t group_bytes(const struct group *g)
{
    uint64_t sum = 0;

    for (uint32_t rank = 0; rank < g->reports.n; rank++)
        sum += g->bytes[rank];
    return sum;
}

int64_t group_waited_ms(const struct daemon *d, const struct barrier *b)
{
    return b->since_ms < d->clock.now_ms ? d->clock.now_ms - b->since_ms : 0;
}

static void put_calls(struct daemon *d, const struct daemon_job *job)
{
    const struct group *g = job->group;
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_uint(&j, "attempt", g->attempt);
    json_int(&j, "taken", g->taken);
    json_string(&j, "error", g->taken_error);
    group_put_note(d, job, NOTE_CALLS, &j);
}

/* All ranks' calls of one number are over at once; this is the first of them. */
static void advance(struct daemon *d, struct daemon_job *job, int64_t call)
{
    struct group *g = job->group;

    g->taken = call;
    free(g->taken_error);
    g->taken_error = g->failed;
    g->failed = NULL;
    barrier_clear(&g->reports);
    put_calls(d, job);
}

void group_report_taken(struct daemon *d, struct daemon_job *job, const struct pliant_action *act)
{
    struct group *g = job->group;
    int64_t call = (int64_t)act->report.call;

    group_hear(d, job, &act->report.task);
    if (call > g->taken)
        advance(d, job, call);
    answer_report(d, job, &act->report.task, call, g->taken_error);
}

/* ---- what is due ---------------------------------------------------------------------------- */

void groups_wake(struct daemon *d, int64_t at_ms)
{
    if (at_ms < d->groups_at_ms)
        d->groups_at_ms = at_ms;
}

int64_t groups_next_deadline(const struct daemon *d)
{
    return d->groups_at_ms;
}

static void warn_of_reports(struct daemon *d, struct daemon_job *job)
{
    struct group *g = job->group;
    char missing[MISSING_MAX];

    if (g->reports.warn_at_ms > d->clock.now_ms)
        return;
    g->reports.warn_at_ms = d->clock.now_ms + job->config->group.collective_warn_interval_ms;
    log_line(4, "msg=\"a report waits for other ranks\" job=%s call=%lld waited_ms=%lld missing=%s",
             job->id, (long long)g->taken + 1, (long long)group_waited_ms(d, &g->reports),
             log_quoted(barrier_missing(&g->reports, missing, sizeof missing)).v);
}

void groups_expire(struct daemon *d)
{
    if (d->clock.now_ms < d->groups_at_ms)
        return;
    d->groups_at_ms = PLIANT_NEVER;
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next) {
        if (!job->group || !job->sched || job->ended_unix_ms)
            continue;
        warn_of_reports(d, job);
        groups_wake(d, job->group->reports.warn_at_ms);
        collectives_due(d, job);
        launch_due(d, job);
    }
}

/* groups.c - worker groups: the run with its checkpoints, and the reports that make them
 *
 *     STORAGE_PATH/NAME/          the run (manifest.h): what it has registered is what it is, for
 * this _manifest.json          job and for any later one of the same identity CHECKPOINT/ files of
 * all ranks
 *
 * The manifest says what an attempt starts from, not the core: whatever was registered before a
 * crash of this daemon is registered, also if the core has not heard of it. It is told then.
 */
#include "daemon/groups_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spec/json_doc.h"

#define NOTE_CALLS "group-calls"    /* reports that are over */
#define NOTE_METRICS "group-report" /* rank 0's, until its report is over */
#define MISSING_MAX 200             /* bytes of a list of ranks */

/* ---- the run -------------------------------------------------------------------------------- */

static int needed(const char *key, const struct daemon_job *job, struct spec_error *err)
{
    snprintf(err->text, sizeof err->text,
             "%s: worker_group.%s: missing; needed: storage-path and name say which run this is",
             job->file, key);
    return -EINVAL;
}

static int run_dir_of(const struct daemon_job *job, char ret[PATH_MAX], struct spec_error *err)
{
    const char *storage = job_path_option(job, "worker-group.storage-path");
    const char *name = options_text(&job->options, "worker-group.name");
    char cwd[PATH_MAX] = "";

    if (!*storage)
        return needed("storage-path", job, err);
    if (!*name)
        return needed("name", job, err);
    if (!run_name_fine(name)) {
        snprintf(err->text, sizeof err->text,
                 "%s: worker_group.name: \"%.200s\"; accepted: the name of a directory, not "
                 "beginning with . or _",
                 job->file, name);
        return -EINVAL;
    }
    if (*storage != '/' && !getcwd(cwd, sizeof cwd))
        return -errno;
    if (snprintf(ret, PATH_MAX, "%s%s%s/%s", cwd, *cwd ? "/" : "", storage, name) < PATH_MAX)
        return 0;
    snprintf(err->text, sizeof err->text, "%s: worker_group.storage-path: too long for a path",
             job->file);
    return -ENAMETOOLONG;
}

/* -EUCLEAN: it can't be read, which is an error and no new run [W-DRV-2, W-DRV-4]. */
static int read_run(struct daemon *d, struct daemon_job *job, struct group *g,
                    struct spec_error *err)
{
    int r = run_read(g->run_dir, &g->run, err);

    if (r == -ENOENT) {
        g->run.created_unix_ms = d->clock.unix_ms;
        return 0;
    }
    if (r < 0)
        return r;
    g->resumed =
        job->submitted_unix_ms == 0; /* else the job was recovered, and the run may be its */
    if (!g->resumed || !job->config->group.require_new_run)
        return 0;
    snprintf(err->text, sizeof err->text,
             "%s: worker_group.require-new-run: %.400s is a run already, with %zu checkpoints",
             job->file, g->run_dir, g->run.results.n); /* [W-DRV-3] */
    return -EINVAL;
}

int group_check(const struct daemon_job *job, struct spec_error *err)
{
    char run_dir[PATH_MAX];

    return pliant_job_is_group(job->spec.job) ? run_dir_of(job, run_dir, err) : 0;
}

static struct group *group_new(const struct daemon_job *job, const char *run_dir)
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

int group_open(struct daemon *d, struct daemon_job *job, struct spec_error *err)
{
    char run_dir[PATH_MAX], owner[128];
    struct group *g;
    int r;

    if (!pliant_job_is_group(job->spec.job))
        return 0;
    r = run_dir_of(job, run_dir, err);
    if (r < 0)
        return r;
    job->group = g = group_new(job, run_dir);
    snprintf(owner, sizeof owner, "job %s of pliantd with pid %d\n", job->id, (int)getpid());
    r = run_lease_take(run_dir, owner, &g->lease, err); /* [W-DRV-5] */
    if (r == 0)
        r = read_run(d, job, g, err);
    need(r != -ENOMEM ? g : NULL);
    if (r < 0)
        group_free(job);
    return r;
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

static char *path_in_run(const struct group *g, const char *name)
{
    char *path;

    return need(asprintf(&path, "%s/%s", g->run_dir, name) < 0 ? NULL : path);
}

char *group_restore_dir(const struct daemon_job *job)
{
    const struct run_checkpoint *latest = run_latest(&job->group->run);

    return latest ? path_in_run(job->group, latest->dir) : need_text("");
}

const char *group_run_dir(const struct daemon_job *job)
{
    return job->group->run_dir;
}

void group_write_resumed(struct daemon *d, const struct daemon_job *job, struct json *j)
{
    const struct group *g = job->group;
    const struct run_checkpoint *latest = g ? run_latest(&g->run) : NULL;

    if (!g || !g->resumed)
        return;
    json_begin(j, "resumed", '{');
    json_string(j, "run", g->run_dir);
    json_string(j, "checkpoint", latest ? latest->dir : NULL);
    json_int(j, "age_ms", d->clock.unix_ms - g->run.created_unix_ms);
    json_end(j, '}');
}

/* ---- what the core knows of the run --------------------------------------------------------- */

/* Copies the name. */
static void note_registered(struct group *g, const struct registered *r)
{
    struct registered *at = need(vec_push(NULL, &g->registered));

    *at = *r;
    at->name = need_text(r->name);
}

/* The name below the run's directory, or NULL. */
static const char *name_in_run(const struct group *g, const char *path)
{
    size_t n = strlen(g->run_dir);

    return strncmp(path, g->run_dir, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

void group_note_row(struct daemon_job *job, const struct store_checkpoint *row)
{
    const char *name = row->path ? name_in_run(job->group, row->path) : NULL;

    if (name)
        note_registered(job->group, &(struct registered){.id = row->id,
                                                         .savepoint = row->savepoint,
                                                         .name = (char *)name,
                                                         .bytes = row->bytes,
                                                         .at_unix_ms = row->triggered_unix_ms});
}

struct rows {
    struct daemon_job *job;
    uint64_t last_id;
};

static int take_row(void *ctx, const struct store_checkpoint *row)
{
    struct rows *rows = ctx;

    if (row->id > rows->last_id)
        rows->last_id = row->id;
    if (strcmp(row->status, "completed") == 0)
        group_note_row(rows->job, row);
    return 0;
}

static bool core_knows(const struct group *g, const char *name)
{
    for (size_t i = 0; i < g->registered.n; i++)
        if (strcmp(g->registered.v[i].name, name) == 0)
            return true;
    return false;
}

static void put_row(struct daemon *d, const struct daemon_job *job, const struct registered *r,
                    const char *status, const char *cause)
{
    char *path = path_in_run(job->group, r->name);

    store_checkpoint_put(d->store, &(struct store_checkpoint){.job = job->id,
                                                              .id = r->id,
                                                              .savepoint = r->savepoint,
                                                              .status = status,
                                                              .path = path,
                                                              .cause = cause,
                                                              .bytes = r->bytes,
                                                              .triggered_unix_ms = r->at_unix_ms,
                                                              .ended_unix_ms = d->clock.unix_ms});
    free(path);
}

/* A run that was there before, or a registration that was written but not journaled [W-DRV-1]. */
static void tell_latest(struct daemon *d, struct daemon_job *job, uint64_t last_id)
{
    struct group *g = job->group;
    const struct run_checkpoint *latest = run_latest(&g->run);
    struct registered r = {.id = last_id + 1, .at_unix_ms = d->clock.unix_ms};

    if (!latest || core_knows(g, latest->dir))
        return;
    r.name = latest->dir;
    log_line(6,
             "msg=\"the run goes on from its checkpoint\" job=%s run=%s checkpoint=%s age_ms=%lld",
             job->id, log_quoted(g->run_dir).v, log_quoted(latest->dir).v,
             (long long)(d->clock.unix_ms - g->run.created_unix_ms)); /* [W-DRV-3] */
    note_registered(g, &r);
    put_row(d, job, &r, "completed", NULL);
    job_fact(
        d, job,
        &(struct pliant_event){
            .kind = PLIANT_EV_CHECKPOINT_COMPLETED,
            .checkpoint = {.id = r.id, .own_accord = true, .triggered_at_ms = d->clock.now_ms}});
}

void group_begin(struct daemon *d, struct daemon_job *job)
{
    struct group *g = job->group;
    struct pliant_counts counts;
    struct spec_error err;
    struct rows rows;

    if (!g)
        return;
    pliant_counts(job->sched, &counts);
    rows = (struct rows){.job = job, .last_id = counts.checkpoint};
    if (job->n_steps > 0)
        store_checkpoints(d->store, job->id, take_row, &rows, &err);
    tell_latest(d, job, rows.last_id);
    if (job->n_steps > 0)
        launch_recover(d, job);
}

/* ---- small helpers -------------------------------------------------------------------------- */

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

/* What was decoded, as JSON of its own. */
char *json_of(const struct doc *value, const char *if_none)
{
    struct json j;

    if (!value || value->kind == DOC_NULL)
        return need_text(if_none);
    json_init(&j, NULL);
    json_doc(&j, NULL, value);
    return need_json(&j);
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
        g->metrics = json_of(doc_get(f.root, "metrics"), "{}");
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
    g->metrics = json_of(r->metrics, "{}");
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

/* ---- registrations -------------------------------------------------------------------------- */

static uint64_t total_bytes(const struct group *g)
{
    uint64_t sum = 0;

    for (uint32_t rank = 0; rank < g->reports.n; rank++)
        sum += g->bytes[rank];
    return sum;
}

static bool is_in_run(const struct group *g, const char *name)
{
    for (size_t i = 0; i < g->run.results.n; i++)
        if (strcmp(g->run.results.v[i].dir, name) == 0)
            return true;
    return false;
}

/* Those that were let go of have no directory any more. */
static void subsume(struct daemon *d, const struct daemon_job *job)
{
    struct group *g = job->group;
    size_t left = 0;

    for (size_t i = 0; i < g->registered.n; i++) {
        struct registered *at = &g->registered.v[i];

        if (is_in_run(g, at->name)) {
            g->registered.v[left++] = *at;
            continue;
        }
        put_row(d, job, at, "subsumed", NULL);
        free(at->name);
    }
    g->registered.n = left;
}

static int64_t waited_ms(const struct daemon *d, const struct barrier *b)
{
    return b->since_ms < d->clock.now_ms ? d->clock.now_ms - b->since_ms : 0;
}

static void tell(struct daemon *d, const struct daemon_job *job, const struct registered *r,
                 const char *status, const char *cause)
{
    char *path = path_in_run(job->group, r->name);
    struct json *j = events_begin(d, "checkpoint", job);

    json_id(j, "id", r->id);
    json_string(j, "status", status);
    json_string(j, "path", path);
    json_int(j, "duration_ms", waited_ms(d, &job->group->reports));
    json_uint(j, "bytes", r->bytes);
    json_string(j, "cause", cause);
    events_end(d);
    free(path);
}

static int write_into_run(struct group *g, const char *name, int64_t call, struct spec_error *err)
{
    const struct run_checkpoint *latest = run_latest(&g->run);
    int r;

    if (latest && strcmp(latest->dir, name) == 0)
        return 0; /* it was, before this daemon */
    r = run_register(g->run_dir, &g->run, &g->keep, name,
                     g->metrics && g->metrics_call == call ? g->metrics : "{}", err);
    need(r != -ENOMEM ? g : NULL);
    return r;
}

static void registration_failed(struct daemon *d, struct daemon_job *job,
                                const struct registered *r, const char *cause)
{
    struct group *g = job->group;

    log_line(4, "msg=\"a checkpoint can't be registered\" job=%s checkpoint=%s cause=%s", job->id,
             log_quoted(r->name).v, log_quoted(cause).v);
    free(g->failed);
    g->failed = need_text(cause);
    put_row(d, job, r, "failed", cause);
    tell(d, job, r, "failed", cause);
    job_fact(d, job,
             &(struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_FAILED,
                                    .checkpoint = {.id = r->id, .counts = true, .cause = cause}});
}

static void registered(struct daemon *d, struct daemon_job *job, const struct registered *r)
{
    char *path = path_in_run(job->group, r->name);

    note_registered(job->group, r);
    put_row(d, job, r, "completed", NULL);
    subsume(d, job);
    tell(d, job, r, "completed", NULL);
    checkpoints_reported(d, job, path, r->bytes);
    job_fact(
        d, job,
        &(struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                               .checkpoint = {.id = r->id, .triggered_at_ms = d->clock.now_ms}});
    free(path);
}

void group_register(struct daemon *d, struct daemon_job *job, const struct pliant_action *act)
{
    const struct registered r = {.id = act->registered.id,
                                 .name = (char *)act->registered.path,
                                 .bytes = total_bytes(job->group),
                                 .at_unix_ms =
                                     d->clock.unix_ms - waited_ms(d, &job->group->reports)};
    struct spec_error err;

    if (write_into_run(job->group, r.name, (int64_t)act->registered.call, &err) < 0)
        registration_failed(d, job, &r, err.text);
    else
        registered(d, job, &r);
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
             job->id, (long long)g->taken + 1, (long long)waited_ms(d, &g->reports),
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

/* group_run.c - the run of a worker group: where it is, what it has registered
 *
 *     STORAGE_PATH/NAME/      the run (manifest.h), of this job and of any later one of that name
 *         _manifest.json      what it has registered
 *         CHECKPOINT/         files of all ranks
 *
 * The manifest says what an attempt starts from, not the core: whatever was registered before a
 * crash of this daemon is registered, also if the core has not heard of it. It is told then.
 */
#include "daemon/groups_impl.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- where it is ---------------------------------------------------------------------------- */

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
    if (*storage != '/' && !getcwd(cwd, sizeof cwd)) {
        int r = -errno;

        snprintf(err->text, sizeof err->text, "%s: worker_group.storage-path: %s", job->file,
                 strerror(-r));
        return r;
    }
    if (snprintf(ret, PATH_MAX, "%s%s%s/%s", cwd, *cwd ? "/" : "", storage, name) < PATH_MAX)
        return 0;
    snprintf(err->text, sizeof err->text, "%s: worker_group.storage-path: too long for a path",
             job->file);
    return -ENAMETOOLONG;
}

int group_check(const struct daemon_job *job, struct spec_error *err)
{
    char run_dir[PATH_MAX];

    return pliant_job_is_group(job->spec.job) ? run_dir_of(job, run_dir, err) : 0;
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

/* ---- registrations -------------------------------------------------------------------------- */

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

static void tell(struct daemon *d, const struct daemon_job *job, const struct registered *r,
                 const char *status, const char *cause)
{
    char *path = path_in_run(job->group, r->name);
    struct json *j = events_begin(d, "checkpoint", job);

    json_id(j, "id", r->id);
    json_string(j, "status", status);
    json_string(j, "path", path);
    json_int(j, "duration_ms", group_waited_ms(d, &job->group->reports));
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
                                 .bytes = group_bytes(job->group),
                                 .at_unix_ms =
                                     d->clock.unix_ms - group_waited_ms(d, &job->group->reports)};
    struct spec_error err;

    if (write_into_run(job->group, r.name, (int64_t)act->registered.call, &err) < 0)
        registration_failed(d, job, &r, err.text);
    else
        registered(d, job, &r);
}

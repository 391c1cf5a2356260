/* checkpoints_kept.c - checkpoints that are there: to start from, to be shown, to be let go
 *
 * A directory that came to nothing, or that retention lets go, is deleted after the commit that
 * makes a later checkpoint the one to start from: no core needs it any more, and no worker is still
 * writing there.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/checkpoints_impl.h"
#include "daemon/manifest.h"
#include "store/directory.h"

#define SHOWN_MAX 200 /* rows of a document */

struct checkpoints *checkpoints_of(struct daemon_job *job)
{
    if (!job->checkpoints)
        job->checkpoints = need(calloc(1, sizeof *job->checkpoints));
    return job->checkpoints;
}

/* The directory of all checkpoints of the job. */
int checkpoints_root(const struct daemon *d, const struct daemon_job *job, char ret[PATH_MAX])
{
    const char *dir = job_path_option(job, "execution.checkpointing.dir");
    int n = *dir ? snprintf(ret, PATH_MAX, "%s/%s", dir, job->id)
                 : snprintf(ret, PATH_MAX, "%s/checkpoints/%s", d->opts.state_dir, job->id);

    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* ---- directories that came to nothing ------------------------------------------------------- */

void checkpoints_note_stale(struct checkpoints *c, char *dir)
{
    char **at;

    if (!dir)
        return;
    at = need(vec_push(NULL, &c->stale));
    *at = dir;
}

/* It is used again. */
void checkpoints_forget_stale(struct checkpoints *c, const char *dir)
{
    for (size_t i = 0; i < c->stale.n;)
        if (strcmp(c->stale.v[i], dir) == 0) {
            free(c->stale.v[i]);
            c->stale.v[i] = c->stale.v[--c->stale.n];
        } else {
            i++;
        }
}

static void remove_dir(const struct daemon_job *job, const char *dir)
{
    int r = directory_remove(dir);

    if (r < 0)
        log_line(4, "msg=\"a directory can't be deleted\" job=%s dir=%s error=%s", job->id,
                 log_quoted(dir).v, log_quoted(strerror(-r)).v);
}

void checkpoints_remove_stale(const struct daemon_job *job, struct checkpoints *c)
{
    for (size_t i = 0; i < c->stale.n; i++) {
        remove_dir(job, c->stale.v[i]);
        free(c->stale.v[i]);
    }
    c->stale.n = 0;
}

/* ---- after a restart of the daemon ---------------------------------------------------------- */

/* What the store knows; rows come newest first. */
struct found {
    struct daemon *d;
    struct checkpoints *c;
    bool group;
    struct VEC(struct pending) pending; /* dir: a copy */
    struct VEC(struct pending) gone;    /* completed, but no longer there */
};

static int find_row(void *ctx, const struct store_checkpoint *row)
{
    struct found *found = ctx;
    struct pending p = {.id = row->id,
                        .savepoint = row->savepoint,
                        .dir = need_text(row->path),
                        .triggered_at_ms = found->d->clock.now_ms,
                        .triggered_unix_ms = row->triggered_unix_ms};
    struct pending *at;
    struct kept *kept;

    if (strcmp(row->status, "pending") != 0 && found->group) {
        free(p.dir); /* it stands in the manifest of the run (groups.c) */
    } else if (strcmp(row->status, "pending") == 0) {
        at = need(vec_push(NULL, &found->pending));
        *at = p;
    } else if (strcmp(row->status, "completed") == 0 && !row->savepoint && p.dir &&
               manifest_exists(p.dir)) {
        kept = need(vec_push(NULL, &found->c->kept));
        *kept = (struct kept){.id = row->id, .dir = p.dir};
    } else if (strcmp(row->status, "completed") == 0 && !row->savepoint) {
        at = need(vec_push(NULL, &found->gone));
        *at = p;
    } else {
        free(p.dir);
    }
    return 0;
}

static void oldest_first(struct checkpoints *c)
{
    for (size_t i = 0, k = c->kept.n; i + 1 < k; i++) {
        struct kept swap = c->kept.v[i];

        c->kept.v[i] = c->kept.v[--k];
        c->kept.v[k] = swap;
    }
}

static bool is_kept(const struct checkpoints *c, const char *dir)
{
    for (size_t i = 0; i < c->kept.n; i++)
        if (strcmp(c->kept.v[i].dir, dir) == 0)
            return true;
    return false;
}

/* Directories that no row stands for: the daemon died between making and storing, or deleting. */
static void find_stale(struct daemon *d, struct daemon_job *job)
{
    struct checkpoints *c = checkpoints_of(job);
    char root[PATH_MAX], path[PATH_MAX];
    struct dirent *entry;
    DIR *dir = checkpoints_root(d, job, root) == 0 ? opendir(root) : NULL;

    while (dir && (entry = readdir(dir))) {
        char *real;

        if (strncmp(entry->d_name, "chk-", 4) != 0 ||
            snprintf(path, sizeof path, "%s/%s", root, entry->d_name) >= PATH_MAX)
            continue;
        real = realpath(path, NULL);
        if (real && !is_kept(c, real))
            checkpoints_note_stale(c, real);
        else
            free(real);
    }
    if (dir)
        closedir(dir);
}

static bool pends_savepoint(const struct found *found)
{
    for (size_t i = 0; i < found->pending.n; i++)
        if (found->pending.v[i].savepoint)
            return true;
    return false;
}

void checkpoints_lost(struct daemon *d, struct daemon_job *job)
{
    struct found found = {.d = d, .c = checkpoints_of(job), .group = job->group != NULL};
    struct spec_error err;

    if (store_checkpoints(d->store, job->id, find_row, &found, &err) < 0)
        return;
    oldest_first(found.c);
    find_stale(d, job);
    if (pliant_state(job->sched) == PLIANT_STOP_WITH_SAVEPOINT && !pends_savepoint(&found))
        checkpoints_finish_tasks(d, job); /* it was there, and the word may have been lost */
    for (size_t i = 0; i < found.pending.n; i++) {
        struct pending *p = need(calloc(1, sizeof *p));

        *p = found.pending.v[i];
        p->next = found.c->pending;
        found.c->pending = p;
        checkpoints_fail(d, job, p, false, "the daemon was started again");
    }
    for (size_t i = 0; i < found.gone.n; i++) {
        checkpoints_put_row(d, job, &found.gone.v[i], "subsumed", 0, NULL);
        free(found.gone.v[i].dir);
    }
    vec_free(NULL, &found.pending);
    vec_free(NULL, &found.gone);
}

/* ---- what there is to start from ------------------------------------------------------------ */

const char *checkpoints_path(struct daemon *d, struct daemon_job *job, uint64_t id)
{
    const struct checkpoints *c = checkpoints_of(job);

    (void)d;
    for (size_t i = c->kept.n; i-- > 0;)
        if (c->kept.v[i].id == id)
            return manifest_exists(c->kept.v[i].dir) ? c->kept.v[i].dir : NULL;
    return NULL;
}

/* The manifest that a job restores from, read once. NULL: it can't be had. */
static const struct manifest *restored(struct daemon *d, struct daemon_job *job, uint64_t id)
{
    struct checkpoints *c = checkpoints_of(job);
    struct spec_error err;
    const char *dir;

    if (c->restored && c->restored_id == id)
        return manifest_of(c->restored);
    manifest_close(&c->restored);
    dir = checkpoints_path(d, job, id);
    if (!dir)
        return NULL;
    if (manifest_open(dir, &c->restored, &err) < 0) {
        log_line(3, "msg=\"a manifest can't be read\" job=%s cause=%s", job->id,
                 log_quoted(err.text).v);
        return NULL;
    }
    c->restored_id = id;
    return manifest_of(c->restored);
}

uint32_t checkpoints_parallelism(struct daemon *d, struct daemon_job *job, uint64_t id,
                                 pliant_vertex_id vertex)
{
    const struct manifest *m = restored(d, job, id);

    return m ? manifest_parallelism(m, pliant_job_vertex_name(job->spec.job, vertex)) : 0;
}

bool checkpoints_has_part(struct daemon *d, struct daemon_job *job, uint64_t id,
                          pliant_vertex_id vertex, uint32_t subtask)
{
    const struct manifest *m = restored(d, job, id);

    return m && manifest_has_part(m, pliant_job_vertex_name(job->spec.job, vertex), subtask);
}

/* ---- retention ------------------------------------------------------------------------------ */

static void let_go(struct daemon *d, const struct daemon_job *job, struct kept *kept)
{
    checkpoints_put_row(d, job, &(struct pending){.id = kept->id, .dir = kept->dir}, "subsumed", 0,
                        NULL);
    remove_dir(job, kept->dir);
    free(kept->dir);
}

/* The core starts from the latest that it knows; that one stays, whatever its age. */
static void tidy(struct daemon *d, struct daemon_job *job)
{
    struct checkpoints *c = job->checkpoints;
    size_t surplus, left = 0;
    struct pliant_counts counts;

    pliant_counts(job->sched, &counts);
    surplus = c->kept.n > (size_t)job->config->checkpoints_retained
                  ? c->kept.n - (size_t)job->config->checkpoints_retained
                  : 0;
    for (size_t i = 0; i < c->kept.n; i++)
        if (i < surplus && c->kept.v[i].id != counts.checkpoint)
            let_go(d, job, &c->kept.v[i]);
        else
            c->kept.v[left++] = c->kept.v[i];
    c->kept.n = left;
    checkpoints_remove_stale(job, c);
}

void checkpoints_tidy(struct daemon *d)
{
    if (!d->tidy_after_commit)
        return;
    d->tidy_after_commit = false;
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next)
        if (job->sched && !job->ended_unix_ms && job->checkpoints && job->checkpoints->kept.n > 0)
            tidy(d, job);
}

/* ---- the document --------------------------------------------------------------------------- */

struct shown {
    struct json *j;
    uint32_t n;
};

static void write_unix(struct json *j, const char *key, int64_t unix_ms)
{
    if (unix_ms > 0)
        json_int(j, key, unix_ms);
    else
        json_null(j, key);
}

static int show_row(void *ctx, const struct store_checkpoint *row)
{
    struct shown *shown = ctx;
    struct json *j = shown->j;

    json_begin(j, NULL, '{');
    json_id(j, "id", row->id);
    json_string(j, "kind", row->savepoint ? "savepoint" : "checkpoint");
    json_string(j, "status", row->status);
    json_string(j, "path", row->path);
    json_uint(j, "bytes", row->bytes);
    write_unix(j, "triggered_unix_ms", row->triggered_unix_ms);
    write_unix(j, "ended_unix_ms", row->ended_unix_ms);
    json_string(j, "cause", row->cause);
    json_end(j, '}');
    return ++shown->n < SHOWN_MAX ? 0 : 1;
}

void checkpoints_write(struct daemon *d, struct daemon_job *job, struct json *j)
{
    struct shown shown = {.j = j};
    struct spec_error err;

    json_begin(j, "checkpoints", '[');
    store_checkpoints(d->store, job->id, show_row, &shown, &err);
    json_end(j, ']');
}

/* checkpoints.c - checkpoints and savepoints of graph jobs, from the trigger to the manifest
 *
 *     DIR/JOB/chk-ID/                 DIR: execution.checkpointing.dir, else STATE/checkpoints
 *     DIR/savepoint-JOB[0..6]-ID/     DIR: as asked for, else execution.checkpointing.savepoint-dir
 *         VERTEX/SUBTASK-PARALLELISM/ each subtask's part
 *         _manifest.json              written when all parts are there; then it is one
 *
 * The core says when one is due and for how long it waits. A directory that came to nothing, or
 * that retention lets go, is deleted after the commit that makes a later checkpoint the one to
 * start from: no core needs it any more, and no worker is still writing there.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/manifest.h"
#include "store/directory.h"

#define SHOWN_MAX 200 /* rows of a document */

struct part {
    struct pliant_task task;
    uint64_t bytes;
    bool written;
};

struct pending {
    uint64_t id;
    bool savepoint;
    bool then_finish; /* it is the savepoint of a stop */
    bool is_whole;    /* a checkpoint with its manifest, of which the core is being told */
    char *dir;
    int64_t triggered_at_ms, triggered_unix_ms;
    struct VEC(struct part) parts; /* by vertex and subtask */
    size_t n_missing;
    struct pending *next;
};

struct kept {
    uint64_t id;
    char *dir;
};

struct checkpoints {
    struct pending *pending;      /* at most one of each kind */
    struct VEC(struct kept) kept; /* completed, no savepoints, oldest first */
    struct VEC(char *) stale;     /* directories that came to nothing */
    struct manifest_read *restored;
    uint64_t restored_id; /* whose manifest that is */
};

static struct checkpoints *of(struct daemon_job *job)
{
    if (!job->checkpoints)
        job->checkpoints = need(calloc(1, sizeof *job->checkpoints));
    return job->checkpoints;
}

static void pending_free(struct pending *p)
{
    vec_free(NULL, &p->parts);
    free(p->dir);
    free(p);
}

/* ---- where ---------------------------------------------------------------------------------- */

/* The directory of all checkpoints of the job. */
static int root_of(const struct daemon *d, const struct daemon_job *job, char ret[PATH_MAX])
{
    const char *dir = job_path_option(job, "execution.checkpointing.dir");
    int n = *dir ? snprintf(ret, PATH_MAX, "%s/%s", dir, job->id)
                 : snprintf(ret, PATH_MAX, "%s/checkpoints/%s", d->opts.state_dir, job->id);

    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int place_of(const struct daemon *d, const struct daemon_job *job, const struct pending *p,
                    const char *dir, char ret[PATH_MAX])
{
    char root[PATH_MAX];
    int n;

    if (!p->savepoint) {
        if (root_of(d, job, root) < 0)
            return -ENAMETOOLONG;
        n = snprintf(ret, PATH_MAX, "%s/chk-%" PRIu64, root, p->id);
    } else {
        if (!dir || !*dir)
            dir = job_path_option(job, "execution.checkpointing.savepoint-dir");
        n = snprintf(ret, PATH_MAX, "%s/savepoint-%.6s-%" PRIu64, dir, job->id, p->id);
    }
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static const char *vertex_name(const struct daemon_job *job, pliant_vertex_id v)
{
    return pliant_job_vertex_name(job->spec.job, v);
}

/* ---- directories that came to nothing ------------------------------------------------------- */

static void note_stale(struct checkpoints *c, char *dir)
{
    char **at;

    if (!dir)
        return;
    at = need(vec_push(NULL, &c->stale));
    *at = dir;
}

/* It is used again. */
static void forget_stale(struct checkpoints *c, const char *dir)
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

static void remove_stale(const struct daemon_job *job, struct checkpoints *c)
{
    for (size_t i = 0; i < c->stale.n; i++) {
        remove_dir(job, c->stale.v[i]);
        free(c->stale.v[i]);
    }
    c->stale.n = 0;
}

/* Of a job that has ended nobody writes any more. */
void checkpoints_free(struct daemon_job *job)
{
    struct checkpoints *c = job->checkpoints;

    if (!c)
        return;
    while (c->pending) {
        struct pending *p = c->pending;

        c->pending = p->next;
        note_stale(c, p->dir);
        p->dir = NULL;
        pending_free(p);
    }
    if (job->ended_unix_ms)
        remove_stale(job, c);
    for (size_t i = 0; i < c->kept.n; i++)
        free(c->kept.v[i].dir);
    for (size_t i = 0; i < c->stale.n; i++)
        free(c->stale.v[i]);
    vec_free(NULL, &c->kept);
    vec_free(NULL, &c->stale);
    manifest_close(&c->restored);
    free(c);
    job->checkpoints = NULL;
}

/* ---- making them ---------------------------------------------------------------------------- */

/* Old files of the same name are of a checkpoint that the core has never heard of. */
static int make_dirs(struct daemon *d, struct daemon_job *job, struct pending *p, const char *dir)
{
    char path[PATH_MAX], part[PATH_MAX];
    int r = place_of(d, job, p, dir, path);

    if (r == 0 && p->savepoint && manifest_exists(path))
        r = -EEXIST; /* nobody's savepoint is written over */
    if (r == 0)
        r = directory_remove(path);
    if (r == 0)
        r = directory_make(path);
    if (r < 0)
        return r;
    p->dir = realpath(path, NULL);
    if (!p->dir)
        return -errno;
    forget_stale(of(job), p->dir);
    for (size_t i = 0; i < p->parts.n && r == 0; i++) {
        struct pliant_task task = p->parts.v[i].task;

        if (snprintf(part, sizeof part, "%s/%s/%" PRIu32 "-%" PRIu32, p->dir,
                     vertex_name(job, task.vertex), task.subtask,
                     pliant_parallelism(job->sched, task.vertex)) >= PATH_MAX)
            return -ENAMETOOLONG;
        r = directory_make(part);
    }
    return r;
}

/* ---- what becomes of one -------------------------------------------------------------------- */

static void put_row(struct daemon *d, const struct daemon_job *job, const struct pending *p,
                    const char *status, uint64_t bytes, const char *cause)
{
    store_checkpoint_put(
        d->store, &(struct store_checkpoint){
                      .job = job->id,
                      .id = p->id,
                      .savepoint = p->savepoint,
                      .status = status,
                      .path = p->dir,
                      .cause = cause,
                      .bytes = bytes,
                      .triggered_unix_ms = p->triggered_unix_ms,
                      .ended_unix_ms = strcmp(status, "pending") == 0 ? 0 : d->clock.unix_ms});
}

/* Of a savepoint the core tells. */
static void tell(struct daemon *d, const struct daemon_job *job, const struct pending *p,
                 const char *status, uint64_t bytes, const char *cause)
{
    struct json *j;

    if (p->savepoint)
        return;
    j = events_begin(d, "checkpoint", job);
    json_id(j, "id", p->id);
    json_string(j, "status", status);
    json_string(j, "path", p->dir);
    json_int(j, "duration_ms", d->clock.now_ms - p->triggered_at_ms);
    json_uint(j, "bytes", bytes);
    json_string(j, "cause", cause);
    events_end(d);
}

static struct pending *pending_of(const struct daemon_job *job, uint64_t id)
{
    struct pending *p = job->checkpoints ? job->checkpoints->pending : NULL;

    while (p && p->id != id)
        p = p->next;
    return p;
}

static void unlink_pending(struct checkpoints *c, const struct pending *p)
{
    struct pending **at = &c->pending;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
}

/* Over, without a fact: the core has given it up by itself, or will be told. */
static void drop(struct daemon *d, struct daemon_job *job, struct pending *p, const char *cause)
{
    struct checkpoints *c = of(job);

    unlink_pending(c, p);
    put_row(d, job, p, "failed", 0, cause);
    tell(d, job, p, "failed", 0, cause);
    log_line(4, "msg=\"%s failed\" job=%s id=%" PRIu64 " cause=%s",
             p->savepoint ? "savepoint" : "checkpoint", job->id, p->id, log_quoted(cause).v);
    note_stale(c, p->dir);
    p->dir = NULL;
    pending_free(p);
}

static void fail(struct daemon *d, struct daemon_job *job, struct pending *p, bool counts,
                 const char *cause)
{
    const struct pliant_event ev = {.kind = p->savepoint ? PLIANT_EV_SAVEPOINT_FAILED
                                                         : PLIANT_EV_CHECKPOINT_FAILED,
                                    .checkpoint = {.id = p->id, .counts = counts, .cause = cause}};

    job_fact(d, job, &ev);
    drop(d, job, p, cause);
}

/* ---- completed ------------------------------------------------------------------------------ */

static uint64_t total_bytes(const struct pending *p)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->parts.n; i++)
        sum += p->parts.v[i].bytes;
    return sum;
}

static int write_manifest(struct daemon_job *job, const struct pending *p, struct spec_error *err)
{
    uint32_t n = pliant_job_vertices(job->spec.job);
    struct manifest_vertex *vertices = need(calloc(n, sizeof *vertices));
    struct manifest_part *parts = need(calloc(p->parts.n + 1, sizeof *parts));
    struct json j;
    int r;

    for (uint32_t i = 0; i < n; i++)
        vertices[i] = (struct manifest_vertex){
            .name = vertex_name(job, (pliant_vertex_id){i + 1}),
            .parallelism = pliant_parallelism(job->sched, (pliant_vertex_id){i + 1})};
    for (size_t i = 0; i < p->parts.n; i++)
        parts[i] = (struct manifest_part){.vertex = p->parts.v[i].task.vertex.v - 1,
                                          .subtask = p->parts.v[i].task.subtask,
                                          .bytes = p->parts.v[i].bytes};
    json_init(&j, NULL);
    manifest_write(&j, &(struct manifest){.id = p->id,
                                          .savepoint = p->savepoint,
                                          .job = job->id,
                                          .vertices = vertices,
                                          .n_vertices = n,
                                          .parts = parts,
                                          .n_parts = p->parts.n});
    r = manifest_replace(p->dir, &j, err);
    json_free(&j);
    free(vertices);
    free(parts);
    return r;
}

/* The entries of directories that were made for it survive a power loss. */
static int sync_dirs(const struct daemon_job *job, const struct pending *p)
{
    char path[PATH_MAX];
    uint32_t last = 0;
    int r = 0;

    for (size_t i = 0; i < p->parts.n && r == 0; i++) {
        if (p->parts.v[i].task.vertex.v == last)
            continue;
        last = p->parts.v[i].task.vertex.v;
        snprintf(path, sizeof path, "%s/%s", p->dir, vertex_name(job, (pliant_vertex_id){last}));
        r = directory_sync(path);
    }
    if (r == 0) {
        snprintf(path, sizeof path, "%s/..", p->dir);
        r = directory_sync(path);
    }
    return r;
}

static void tell_core(struct daemon *d, struct daemon_job *job, const struct pending *p)
{
    struct pliant_state_size *sizes = need(calloc(p->parts.n + 1, sizeof *sizes));

    for (size_t i = 0; i < p->parts.n; i++)
        sizes[i] = (struct pliant_state_size){.vertex = p->parts.v[i].task.vertex,
                                              .subtask = p->parts.v[i].task.subtask,
                                              .bytes = p->parts.v[i].bytes};
    job_fact(d, job,
             &(struct pliant_event){.kind = p->savepoint ? PLIANT_EV_SAVEPOINT_COMPLETED
                                                         : PLIANT_EV_CHECKPOINT_COMPLETED,
                                    .checkpoint = {.id = p->id,
                                                   .triggered_at_ms = p->triggered_at_ms,
                                                   .path = p->savepoint ? p->dir : NULL,
                                                   .sizes = sizes,
                                                   .n_sizes = p->parts.n}});
    free(sizes);
}

static void keep(struct daemon *d, struct checkpoints *c, struct pending *p)
{
    struct kept *kept = need(vec_push(NULL, &c->kept));

    *kept = (struct kept){.id = p->id, .dir = p->dir};
    p->dir = NULL;
    d->tidy_after_commit = true;
}

/* A process that goes on for ever finishes when it is told to [S-SWS-1]. */
static void finish_tasks(struct daemon *d, struct daemon_job *job)
{
    struct daemon_task *task, *next;

    HASH_ITER (hh, job->tasks, task, next)
        if (!task->given_up)
            stop_task(d, job, task);
}

static void savepoint_completed(struct daemon *d, struct daemon_job *job, struct pending *p)
{
    put_row(d, job, p, "completed", total_bytes(p), NULL);
    unlink_pending(of(job), p);
    if (p->then_finish)
        finish_tasks(d, job);
    pending_free(p);
}

/* The core has taken the word that it is whole. One that it has given up meanwhile, because the job
 * restarts, is none: the job does not start from it. */
void checkpoints_told(struct daemon *d, struct daemon_job *job, uint64_t id)
{
    struct pending *p = pending_of(job, id);
    struct pliant_counts counts;

    if (!p || !p->is_whole)
        return;
    pliant_counts(job->sched, &counts);
    if (counts.checkpoint != id) {
        drop(d, job, p, "the job was no longer executing");
        return;
    }
    put_row(d, job, p, "completed", total_bytes(p), NULL);
    tell(d, job, p, "completed", total_bytes(p), NULL);
    unlink_pending(of(job), p);
    keep(d, of(job), p);
    pending_free(p);
}

static void complete(struct daemon *d, struct daemon_job *job, struct pending *p)
{
    struct spec_error err;
    int r = sync_dirs(job, p);

    if (r < 0)
        snprintf(err.text, sizeof err.text, "%s: %s", p->dir, strerror(-r));
    else
        r = write_manifest(job, p, &err);
    if (r < 0) {
        fail(d, job, p, true, err.text);
        return;
    }
    tell_core(d, job, p);
    if (p->savepoint)
        savepoint_completed(d, job, p);
    else
        p->is_whole = true;
}

/* ---- the trigger ---------------------------------------------------------------------------- */

static int by_task(const void *a, const void *b)
{
    const struct pliant_task *x = &((const struct part *)a)->task;
    const struct pliant_task *y = &((const struct part *)b)->task;

    if (x->vertex.v != y->vertex.v)
        return x->vertex.v < y->vertex.v ? -1 : 1;
    return x->subtask < y->subtask ? -1 : x->subtask > y->subtask;
}

/* Is it a running task of the job's present graph? */
static bool takes_part(const struct daemon_job *job, const struct daemon_task *task)
{
    struct pliant_task_info info;

    return task->job == job && !task->stopping &&
           pliant_task_info(job->sched, (pliant_vertex_id){task->key.vertex}, task->key.subtask,
                            &info) &&
           info.attempt == task->key.attempt && info.state == PLIANT_TASK_RUNNING;
}

/* Those on nodes that can be asked; the others show as a difference to what the core counts. */
static void gather_parts(struct daemon *d, const struct daemon_job *job, struct pending *p)
{
    for (struct daemon_node *node = d->nodes; node; node = node->hh.next)
        for (struct daemon_task *task = node->tasks; task && node->state == NODE_UP;
             task = task->next) {
            struct part *part;

            if (!takes_part(job, task))
                continue;
            part = need(vec_push(NULL, &p->parts));
            part->task = (struct pliant_task){.vertex = {task->key.vertex},
                                              .subtask = task->key.subtask,
                                              .attempt = task->key.attempt};
        }
    if (p->parts.n > 0)
        qsort(p->parts.v, p->parts.n, sizeof *p->parts.v, by_task);
    p->n_missing = p->parts.n;
}

static bool ask_node(const struct daemon_job *job, const struct pending *p,
                     const struct daemon_node *node, struct json *j)
{
    bool any = false;

    json_reset(j);
    json_begin(j, NULL, '{');
    json_string(j, "job", job->id);
    if (job->group)
        json_null(j, "id");
    else
        json_id(j, "id", p->id);
    json_bool(j, "savepoint", p->savepoint);
    json_string(j, "dir", p->dir);
    json_begin(j, "tasks", '[');
    for (const struct daemon_task *task = node->tasks; task; task = task->next) {
        if (!takes_part(job, task))
            continue;
        any = true;
        json_begin(j, NULL, '{');
        json_string(j, "vertex", vertex_name(job, (pliant_vertex_id){task->key.vertex}));
        json_uint(j, "subtask", task->key.subtask);
        json_uint(j, "attempt", task->key.attempt);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
    return any;
}

static void ask(struct daemon *d, const struct daemon_job *job, const struct pending *p)
{
    struct json j;

    json_init(&j, NULL);
    for (struct daemon_node *node = d->nodes; node; node = node->hh.next)
        if (node->state == NODE_UP && ask_node(job, p, node, &j))
            outbox_to_node(d, node, MESSAGE_CHECKPOINT, &j);
    json_free(&j);
}

/* The core gives up one that takes too long, and one that it lets another follow. */
static void drop_given_up(struct daemon *d, struct daemon_job *job, bool savepoint_follows,
                          bool checkpoint_follows)
{
    struct pending *p = of(job)->pending, *next;

    for (; p; p = next) {
        next = p->next;
        if ((p->savepoint ? savepoint_follows : checkpoint_follows) ||
            d->clock.now_ms - p->triggered_at_ms >= job->config->checkpoint_timeout_ms)
            drop(d, job, p, "it took longer than execution.checkpointing.timeout");
    }
}

/* Parts of some subtasks of a vertex, where the others have finished. With another parallelism a
 * subtask could then own key groups of both, and would begin anew with those that were finished. */
static bool vertex_is_split(const struct daemon_job *job, const struct pending *p)
{
    for (size_t i = 0, first; i < p->parts.n;) {
        pliant_vertex_id vertex = p->parts.v[i].task.vertex;

        first = i;
        while (i < p->parts.n && p->parts.v[i].task.vertex.v == vertex.v)
            i++;
        if (i - first < pliant_parallelism(job->sched, vertex))
            return true;
    }
    return false;
}

static const char *why_not_whole(const struct daemon_job *job, const struct pending *p)
{
    struct pliant_counts counts;

    pliant_counts(job->sched, &counts);
    if (p->parts.n < counts.tasks_running || p->parts.n == 0)
        return "not all tasks run on nodes that are connected";
    return vertex_is_split(job, p) ? "some tasks of a vertex have finished, and others have not"
                                   : NULL;
}

void checkpoints_trigger(struct daemon *d, struct daemon_job *job, const struct pliant_action *act)
{
    struct checkpoints *c = of(job);
    struct pending *p;
    char cause[PATH_MAX + 128];
    const char *why_not;
    int r;

    drop_given_up(d, job, act->flag[1], !act->flag[1]);
    p = need(calloc(1, sizeof *p));
    *p = (struct pending){.id = act->checkpoint.id,
                          .savepoint = act->flag[1],
                          .then_finish = act->flag[0] == PLIANT_CHECKPOINT_STOP,
                          .triggered_at_ms = d->clock.now_ms,
                          .triggered_unix_ms = d->clock.unix_ms,
                          .next = c->pending};
    c->pending = p;
    if (job->group) {
        put_row(d, job, p, "pending", 0, NULL);
        ask(d, job, p); /* the workers report one when they can */
        return;
    }
    gather_parts(d, job, p);
    why_not = why_not_whole(job, p);
    if (why_not) {
        fail(d, job, p, false, why_not);
        return;
    }
    r = make_dirs(d, job, p, act->checkpoint.dir);
    if (r < 0) {
        snprintf(cause, sizeof cause, "no directory for it: %s", strerror(-r));
        fail(d, job, p, true, cause);
        return;
    }
    put_row(d, job, p, "pending", 0, NULL);
    ask(d, job, p);
}

void checkpoints_reported(struct daemon *d, struct daemon_job *job, const char *path,
                          uint64_t bytes)
{
    struct checkpoints *c = of(job);

    drop_given_up(d, job, false, false);
    while (c->pending) {
        struct pending *p = c->pending;

        free(p->dir);
        p->dir = need_text(path);
        put_row(d, job, p, "completed", bytes, NULL);
        tell(d, job, p, "completed", bytes, NULL);
        tell_core(d, job, p);
        group_note_row(job, &(struct store_checkpoint){.id = p->id,
                                                       .savepoint = p->savepoint,
                                                       .path = path,
                                                       .bytes = bytes,
                                                       .triggered_unix_ms = p->triggered_unix_ms});
        unlink_pending(c, p);
        if (p->then_finish)
            finish_tasks(d, job);
        pending_free(p);
    }
}

/* ---- parts ---------------------------------------------------------------------------------- */

static struct part *part_of(const struct pending *p, const struct pliant_task *task)
{
    const struct part key = {.task = *task};
    struct part *part =
        p->parts.n > 0 ? bsearch(&key, p->parts.v, p->parts.n, sizeof key, by_task) : NULL;

    return part && part->task.attempt == task->attempt ? part : NULL;
}

/* False: it is not what docs/protocol.md says, or of a task that the job does not have. */
static bool read_part(const struct daemon_job *job, const struct doc_file *f, const struct doc *at,
                      struct pliant_task *ret, uint64_t *ret_id)
{
    const char *vertex, *id;
    struct spec_error err;
    int64_t subtask, attempt;

    if (doc_string(f, at, "vertex", PLIANT_NAME_MAX, &vertex, &err) < 0 ||
        doc_int(f, at, "subtask", 0, UINT32_MAX, &subtask, &err) < 0 ||
        doc_int(f, at, "attempt", 0, UINT32_MAX, &attempt, &err) < 0 ||
        doc_string(f, at, "id", 20, &id, &err) < 0)
        return false;
    *ret = (struct pliant_task){.vertex = pliant_job_vertex_find(job->spec.job, vertex),
                                .subtask = (uint32_t)subtask,
                                .attempt = (uint32_t)attempt};
    *ret_id = strtoull(id, NULL, 10);
    return ret->vertex.v != 0;
}

static void part_failed(struct daemon *d, struct daemon_job *job, struct pending *p,
                        const struct pliant_task *task, const char *cause)
{
    char text[PLIANT_CAUSE_MAX];

    snprintf(text, sizeof text, "%s/%" PRIu32 ": %s", vertex_name(job, task->vertex), task->subtask,
             cause);
    fail(d, job, p, true, text);
}

void checkpoints_part(struct daemon *d, struct daemon_job *job, const struct doc_file *f,
                      const struct doc *at)
{
    const char *cause = "it could not write its part";
    struct pliant_task task;
    struct spec_error err;
    struct pending *p;
    struct part *part;
    int64_t bytes = 0;
    bool ok = false;
    uint64_t id;

    if (!read_part(job, f, at, &task, &id))
        return;
    drop_given_up(d, job, false, false);
    p = pending_of(job, id);
    part = p ? part_of(p, &task) : NULL;
    if (!part || part->written)
        return; /* late, or said twice */
    doc_bool(f, at, "ok", &ok, &err);
    if (!ok) {
        doc_string(f, at, "cause", MANIFEST_BYTES_MAX, &cause, &err);
        part_failed(d, job, p, &task, cause);
        return;
    }
    doc_int(f, at, "bytes", 0, DOC_INTEGER_MAX, &bytes, &err);
    part->bytes = (uint64_t)bytes;
    part->written = true;
    if (--p->n_missing == 0)
        complete(d, job, p);
}

/* One that fails counts against the job already; its checkpoint does not as well. */
void checkpoints_task_over(struct daemon *d, struct daemon_job *job, const struct pliant_task *task)
{
    struct pending *p = job->checkpoints ? job->checkpoints->pending : NULL, *next;
    char text[PLIANT_NAME_MAX + 64];

    for (; p; p = next) {
        const struct part *part = part_of(p, task);

        next = p->next;
        if (!part || part->written)
            continue;
        snprintf(text, sizeof text, "%s/%" PRIu32 " ended before it had written its part",
                 vertex_name(job, task->vertex), task->subtask);
        fail(d, job, p, false, text);
    }
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
    struct checkpoints *c = of(job);
    char root[PATH_MAX], path[PATH_MAX];
    struct dirent *entry;
    DIR *dir = root_of(d, job, root) == 0 ? opendir(root) : NULL;

    while (dir && (entry = readdir(dir))) {
        char *real;

        if (strncmp(entry->d_name, "chk-", 4) != 0 ||
            snprintf(path, sizeof path, "%s/%s", root, entry->d_name) >= PATH_MAX)
            continue;
        real = realpath(path, NULL);
        if (real && !is_kept(c, real))
            note_stale(c, real);
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
    struct found found = {.d = d, .c = of(job), .group = job->group != NULL};
    struct spec_error err;

    if (store_checkpoints(d->store, job->id, find_row, &found, &err) < 0)
        return;
    oldest_first(found.c);
    find_stale(d, job);
    if (pliant_state(job->sched) == PLIANT_STOP_WITH_SAVEPOINT && !pends_savepoint(&found))
        finish_tasks(d, job); /* it was there, and the word may have been lost */
    for (size_t i = 0; i < found.pending.n; i++) {
        struct pending *p = need(calloc(1, sizeof *p));

        *p = found.pending.v[i];
        p->next = found.c->pending;
        found.c->pending = p;
        fail(d, job, p, false, "the daemon was started again");
    }
    for (size_t i = 0; i < found.gone.n; i++) {
        put_row(d, job, &found.gone.v[i], "subsumed", 0, NULL);
        free(found.gone.v[i].dir);
    }
    vec_free(NULL, &found.pending);
    vec_free(NULL, &found.gone);
}

/* ---- what there is to start from ------------------------------------------------------------ */

const char *checkpoints_path(struct daemon *d, struct daemon_job *job, uint64_t id)
{
    const struct checkpoints *c = of(job);

    (void)d;
    for (size_t i = c->kept.n; i-- > 0;)
        if (c->kept.v[i].id == id)
            return manifest_exists(c->kept.v[i].dir) ? c->kept.v[i].dir : NULL;
    return NULL;
}

/* The manifest that a job restores from, read once. NULL: it can't be had. */
static const struct manifest *restored(struct daemon *d, struct daemon_job *job, uint64_t id)
{
    struct checkpoints *c = of(job);
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

    return m ? manifest_parallelism(m, vertex_name(job, vertex)) : 0;
}

bool checkpoints_has_part(struct daemon *d, struct daemon_job *job, uint64_t id,
                          pliant_vertex_id vertex, uint32_t subtask)
{
    const struct manifest *m = restored(d, job, id);

    return m && manifest_has_part(m, vertex_name(job, vertex), subtask);
}

/* ---- retention ------------------------------------------------------------------------------ */

static void let_go(struct daemon *d, const struct daemon_job *job, struct kept *kept)
{
    put_row(d, job, &(struct pending){.id = kept->id, .dir = kept->dir}, "subsumed", 0, NULL);
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
    remove_stale(job, c);
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

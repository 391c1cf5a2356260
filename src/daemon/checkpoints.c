/* checkpoints.c - checkpoints and savepoints of graph jobs, from the trigger to the manifest
 *
 *     DIR/JOB/chk-ID/                 DIR: execution.checkpointing.dir, else STATE/checkpoints
 *     DIR/savepoint-JOB[0..6]-ID/     DIR: as asked for, else execution.checkpointing.savepoint-dir
 *         VERTEX/SUBTASK-PARALLELISM/ each subtask's part
 *         _manifest.json              written when all parts are there; then it is one
 *
 * The core says when one is due and for how long it waits. What there is of earlier ones is in
 * checkpoints_kept.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/checkpoints_impl.h"
#include "daemon/manifest.h"
#include "store/directory.h"

static void pending_free(struct pending *p)
{
    vec_free(NULL, &p->parts);
    free(p->dir);
    free(p);
}

/* ---- where ---------------------------------------------------------------------------------- */

static int place_of(const struct daemon *d, const struct daemon_job *job, const struct pending *p,
                    const char *dir, char ret[PATH_MAX])
{
    char root[PATH_MAX];
    int n;

    if (!p->savepoint) {
        if (checkpoints_root(d, job, root) < 0)
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

/* Of a job that has ended nobody writes any more. */
void checkpoints_free(struct daemon_job *job)
{
    struct checkpoints *c = job->checkpoints;

    if (!c)
        return;
    while (c->pending) {
        struct pending *p = c->pending;

        c->pending = p->next;
        checkpoints_note_stale(c, p->dir);
        p->dir = NULL;
        pending_free(p);
    }
    if (job->ended_unix_ms)
        checkpoints_remove_stale(job, c);
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
    checkpoints_forget_stale(checkpoints_of(job), p->dir);
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

void checkpoints_put_row(struct daemon *d, const struct daemon_job *job, const struct pending *p,
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
    struct checkpoints *c = checkpoints_of(job);

    unlink_pending(c, p);
    checkpoints_put_row(d, job, p, "failed", 0, cause);
    tell(d, job, p, "failed", 0, cause);
    log_line(4, "msg=\"%s failed\" job=%s id=%" PRIu64 " cause=%s",
             p->savepoint ? "savepoint" : "checkpoint", job->id, p->id, log_quoted(cause).v);
    checkpoints_note_stale(c, p->dir);
    p->dir = NULL;
    pending_free(p);
}

void checkpoints_fail(struct daemon *d, struct daemon_job *job, struct pending *p, bool counts,
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
void checkpoints_finish_tasks(struct daemon *d, struct daemon_job *job)
{
    struct daemon_task *task, *next;

    HASH_ITER (hh, job->tasks, task, next)
        if (!task->given_up)
            stop_task(d, job, task);
}

static void savepoint_completed(struct daemon *d, struct daemon_job *job, struct pending *p)
{
    checkpoints_put_row(d, job, p, "completed", total_bytes(p), NULL);
    unlink_pending(checkpoints_of(job), p);
    if (p->then_finish)
        checkpoints_finish_tasks(d, job);
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
    checkpoints_put_row(d, job, p, "completed", total_bytes(p), NULL);
    tell(d, job, p, "completed", total_bytes(p), NULL);
    unlink_pending(checkpoints_of(job), p);
    keep(d, checkpoints_of(job), p);
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
        checkpoints_fail(d, job, p, true, err.text);
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
    struct pending *p = checkpoints_of(job)->pending, *next;

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
    struct checkpoints *c = checkpoints_of(job);
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
        checkpoints_put_row(d, job, p, "pending", 0, NULL);
        ask(d, job, p); /* the workers report one when they can */
        return;
    }
    gather_parts(d, job, p);
    why_not = why_not_whole(job, p);
    if (why_not) {
        checkpoints_fail(d, job, p, false, why_not);
        return;
    }
    r = make_dirs(d, job, p, act->checkpoint.dir);
    if (r < 0) {
        snprintf(cause, sizeof cause, "no directory for it: %s", strerror(-r));
        checkpoints_fail(d, job, p, true, cause);
        return;
    }
    checkpoints_put_row(d, job, p, "pending", 0, NULL);
    ask(d, job, p);
}

void checkpoints_reported(struct daemon *d, struct daemon_job *job, const char *path,
                          uint64_t bytes)
{
    struct checkpoints *c = checkpoints_of(job);

    drop_given_up(d, job, false, false);
    while (c->pending) {
        struct pending *p = c->pending;

        free(p->dir);
        p->dir = need_text(path);
        checkpoints_put_row(d, job, p, "completed", bytes, NULL);
        tell(d, job, p, "completed", bytes, NULL);
        tell_core(d, job, p);
        group_note_row(job, &(struct store_checkpoint){.id = p->id,
                                                       .savepoint = p->savepoint,
                                                       .path = path,
                                                       .bytes = bytes,
                                                       .triggered_unix_ms = p->triggered_unix_ms});
        unlink_pending(c, p);
        if (p->then_finish)
            checkpoints_finish_tasks(d, job);
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
    checkpoints_fail(d, job, p, true, text);
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
        checkpoints_fail(d, job, p, false, text);
    }
}

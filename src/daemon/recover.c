/* recover.c - from the store to where the last daemon was
 *
 * Nodes come first, waited for as if their connections had just gone. Each job that lives is
 * restored from its last snapshot and replays the steps behind it; the actions are dropped. Then
 * the slots get their owners, and the tasks that the cores believe in become known again. How the
 * world differs by now the agents tell, in their HELLOs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "spec/recording.h"

/* ---- nodes ---------------------------------------------------------------------------------- */

static int take_node(void *ctx, const struct store_node *row)
{
    struct daemon *d = ctx;
    struct spec_error err;

    if (node_of_store(d, row, &err) == 0)
        slots_of_new_node(d, node_find(d, row->name));
    else
        log_line(4, "msg=\"a stored node cannot be read\" node=%s error=%s",
                 log_quoted(row->name).v, log_quoted(err.text).v);
    return 0;
}

/* ---- jobs ----------------------------------------------------------------------------------- */

/* What is left of a job that has ended, or that cannot be understood. */
static struct daemon_job *job_of_row(const struct store_job *row)
{
    struct daemon_job *job = need(calloc(1, sizeof *job));

    memcpy(job->id, row->id, sizeof job->id);
    job->name = need_text(row->name);
    job->order = row->order;
    job->submitted_unix_ms = row->submitted_unix_ms;
    job->ended_unix_ms = row->ended_unix_ms;
    job->options_json = row->ended_unix_ms ? NULL : need_text(row->options);
    job->deadline_ms = PLIANT_NEVER;
    return job;
}

static void damaged(struct daemon_job *job, const char *why)
{
    job->damaged = need_text(why);
    log_line(3,
             "msg=\"a job cannot be recovered; it is kept out, its tasks are left alone\" "
             "job=%s error=%s",
             job->id, log_quoted(why).v);
}

struct job_list {
    struct VEC(struct daemon_job *) jobs;
};

static int take_job(void *ctx, const struct store_job *row)
{
    struct daemon_job **at = need(vec_push(NULL, &((struct job_list *)ctx)->jobs));
    struct spec_error err;

    if (row->ended_unix_ms) {
        *at = job_of_row(row);
    } else if (job_of_store(row, at, &err) < 0) {
        *at = job_of_row(row);
        damaged(*at, err.text);
    }
    return 0;
}

/* ---- replay --------------------------------------------------------------------------------- */

struct replay {
    struct daemon_job *job;
    struct recording_decoder *decoder;
    int64_t last_ms;
    struct spec_error err;
};

static int replay_step(void *ctx, const struct store_step *step)
{
    struct replay *r = ctx;
    struct pliant_actions acts;
    struct pliant_event ev;
    int error = recording_event_decode(r->decoder, step->event, step->event_size, (uint32_t)step->n,
                                       &ev, &r->err);

    if (error < 0)
        return error;
    error = pliant_step(r->job->sched, step->at_ms, &ev, &acts);
    if (error < 0)
        snprintf(r->err.text, sizeof r->err.text, "step %" PRIu64 " cannot be taken", step->n);
    r->job->n_steps = step->n;
    r->last_ms = step->at_ms;
    return error;
}

/* The core as of the last snapshot, or as it began. */
static int restore(struct daemon *d, struct daemon_job *job, struct spec_error *err)
{
    struct pliant_error why;
    const void *bytes;
    size_t size;
    int r = store_snapshot_get(d->store, job->id, &job->n_snapshot, &bytes, &size);

    if (r < 0)
        return r;
    job->n_steps = job->n_snapshot;
    r = job->n_snapshot > 0
            ? pliant_restore(job->config, job->spec.job, bytes, size, &job->sched, &why)
            : pliant_sched_new(job->config, job->spec.job, &job->sched, &why);
    if (r == -EINVAL)
        snprintf(err->text, sizeof err->text, "%s", why.text);
    return r;
}

static int replay(struct daemon *d, struct daemon_job *job, struct spec_error *err)
{
    struct replay r = {.job = job};
    int error = restore(d, job, err);

    if (error < 0)
        return error;
    error = recording_decoder_new(job->id, job->spec.job, &r.decoder);
    need(error != -ENOMEM ? d : NULL);
    error = store_steps(d->store, job->id, job->n_snapshot, replay_step, &r, err);
    recording_decoder_free(&r.decoder);
    if (error < 0 && *r.err.text)
        *err = r.err;
    clock_not_before(&d->clock, r.last_ms);
    return error;
}

static void recover_job(struct daemon *d, struct daemon_job *job)
{
    struct pliant_counts counts;
    struct spec_error err = {"cannot be read"};
    int r;

    if (job->ended_unix_ms || job->damaged)
        return;
    r = group_open(d, job, &err);
    if (r == 0)
        r = replay(d, job, &err);
    need(r != -ENOMEM ? d : NULL);
    if (r < 0) {
        pliant_sched_destroy(&job->sched);
        group_free(job);
        damaged(job, err.text);
        return;
    }
    if (job->n_steps == 0)
        return;
    pliant_counts(job->sched, &counts);
    job->declared = counts.desired;
    job->declared_min = counts.minimal;
}

/* ---- lives that were given up --------------------------------------------------------------- */

static void read_lives(struct daemon *d, struct daemon_job *job)
{
    struct doc_file f = {0};
    struct spec_error err;
    const char *text;

    if (store_note_get(d->store, job->id, "lives", &text) < 0)
        return;
    if (doc_parse("lives", text, strlen(text), 1, &f, &err) == 0)
        for (const struct doc *c = f.root->child; c; c = c->next) {
            struct daemon_life *life = job_life(job, c->key);

            if (c->n != 2)
                continue;
            life->given_up = (uint32_t)c->child->number;
            life->open = c->child->next->truth;
        }
    doc_free(&f);
}

/* ---- slots and tasks ------------------------------------------------------------------------ */

struct stray_slot {
    char *node;
    uint32_t slot;
};

struct slot_walk {
    struct daemon *d;
    struct VEC(struct stray_slot) strays; /* of nodes or jobs that are no more */
};

static int take_slot(void *ctx, const struct store_slot *row)
{
    struct slot_walk *w = ctx;
    struct daemon_node *node = node_find(w->d, row->node);
    struct daemon_job *job;
    struct stray_slot *stray;

    HASH_FIND_STR(w->d->jobs, row->job, job);
    if (node && row->slot < node->n_slots && job && !job->ended_unix_ms) {
        node->slots[row->slot] = (struct daemon_slot){.job = job, .index = row->index};
        return 0;
    }
    stray = need(vec_push(NULL, &w->strays));
    *stray = (struct stray_slot){.node = need_text(row->node), .slot = row->slot};
    return 0;
}

static int recover_slots(struct daemon *d, struct spec_error *err)
{
    struct slot_walk w = {.d = d};
    int r = store_slots(d->store, take_slot, &w, err);

    for (size_t i = 0; i < w.strays.n; i++) {
        store_slot_put(
            d->store, &(struct store_slot){.node = w.strays.v[i].node, .slot = w.strays.v[i].slot});
        free(w.strays.v[i].node);
    }
    vec_free(NULL, &w.strays);
    return r;
}

static void recover_task(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                         pliant_slot_id slot)
{
    pliant_node_id id = pliant_slot_node(job->sched, slot);
    struct daemon_node *node = node_find(d, pliant_node_name(job->sched, id));
    uint32_t real;

    if (!node || job_incarnation(job, node) != pliant_node_incarnation(job->sched, id))
        return; /* lost, as slots_recovered() tells the job */
    real = slots_find(d, node, job, pliant_slot_index(job->sched, slot));
    if (real != UINT32_MAX)
        job_task_add(job, task, node, real); /* since when, its agent tells */
}

static void recover_attempts(struct daemon *d, struct daemon_job *job, pliant_vertex_id vertex,
                             uint32_t subtask)
{
    struct pliant_task_info info;

    for (uint32_t i = 0; pliant_attempt_info(job->sched, vertex, subtask, i, &info); i++)
        if (info.slot.v)
            recover_task(d, job,
                         &(struct pliant_task){
                             .vertex = vertex, .subtask = subtask, .attempt = info.attempt},
                         info.slot);
}

static void recover_tasks(struct daemon *d, struct daemon_job *job)
{
    for (uint32_t v = 1; v <= pliant_job_vertices(job->spec.job); v++)
        for (uint32_t i = 0; i < pliant_parallelism(job->sched, (pliant_vertex_id){v}); i++)
            recover_attempts(d, job, (pliant_vertex_id){v}, i);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void recover_clock(struct daemon *d)
{
    const char *text;

    if (store_note_get(d->store, "", "boot", &text) == 0)
        clock_go_on(&d->clock, text);
    if (store_note_get(d->store, "", "clock", &text) == 0)
        clock_not_before(&d->clock, strtoll(text, NULL, 10));
}

static void store_clock(struct daemon *d)
{
    char note[CLOCK_NOTE];

    clock_note(&d->clock, note);
    store_note_put(d->store, "", "boot", note);
}

/* By a clock that was wrong then, or is now, it may end only later: it has just ended then. */
static void keep_ended(struct daemon *d, struct daemon_job *job)
{
    int64_t at_ms = clock_of_unix(&d->clock, job->ended_unix_ms);

    job->ended_at_ms = at_ms < d->clock.now_ms ? at_ms : d->clock.now_ms;
    job_kept(d, job);
}

static int by_end(const struct daemon_job *a, const struct daemon_job *b)
{
    if (a->ended_at_ms != b->ended_at_ms)
        return a->ended_at_ms < b->ended_at_ms ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int recover_jobs(struct daemon *d, struct spec_error *err)
{
    struct job_list list = {0};
    int r = store_jobs(d->store, take_job, &list, err);

    for (size_t i = 0; i < list.jobs.n; i++) {
        recover_job(d, list.jobs.v[i]);
        job_register(d, list.jobs.v[i]);
        if (list.jobs.v[i]->ended_unix_ms)
            keep_ended(d, list.jobs.v[i]);
    }
    HASH_SRT(by_end, d->kept, by_end);
    vec_free(NULL, &list.jobs);
    return r;
}

static void go_on(struct daemon *d, struct daemon_job *job)
{
    read_lives(d, job);
    recover_tasks(d, job);
    checkpoints_lost(d, job);
    group_begin(d, job);
    if (job->n_steps == 0)
        job_fact(d, job, &(struct pliant_event){.kind = PLIANT_EV_START});
}

int daemon_recover(struct daemon *d, struct spec_error *err)
{
    int r = store_next_epoch(d->store, &d->epoch, err);

    if (r == 0) {
        recover_clock(d);
        results_recover(d);
        r = store_nodes(d->store, take_node, d, err);
    }
    if (r == 0)
        r = recover_jobs(d, err);
    if (r == 0)
        r = recover_slots(d, err);
    if (r < 0)
        return r;
    store_clock(d);
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next)
        if (job->sched)
            go_on(d, job);
    slots_recovered(d);
    log_line(6, "msg=recovered epoch=%" PRIu64 " jobs=%u nodes=%u", d->epoch, HASH_COUNT(d->jobs),
             HASH_COUNT(d->nodes));
    return 0;
}

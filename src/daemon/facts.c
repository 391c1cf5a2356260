/* facts.c - what has happened, on its way into the cores: journal, step, deadlines
 *
 * Facts wait in one queue for all jobs and are taken in their order. What a fact says is copied
 * into blocks that are given back when the queue is empty. Cores are kept in a heap by their
 * deadlines.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "spec/recording.h"

#define BLOCK_BYTES 65536u

struct block {
    struct block *next;
    size_t n, cap;
    alignas(max_align_t) char bytes[];
};

struct fact {
    struct daemon_job *job;
    struct pliant_event ev;
};

struct fact_queue {
    struct VEC(struct fact) facts;
    size_t first; /* not yet taken */
    struct block *blocks;
    struct VEC(struct daemon_job *) heap; /* of jobs that live, by deadline_ms */
    struct json event, actions;
};

/* ---- copies of what facts say --------------------------------------------------------------- */

static void *block_take(struct fact_queue *q, size_t n)
{
    struct block *b = q->blocks;

    n = (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (!b || n > b->cap - b->n) {
        size_t cap = n > BLOCK_BYTES ? n : BLOCK_BYTES;

        b = need(malloc(sizeof *b + cap));
        *b = (struct block){.next = q->blocks, .cap = cap};
        q->blocks = b;
    }
    b->n += n;
    return b->bytes + b->n - n;
}

static void blocks_free(struct fact_queue *q)
{
    while (q->blocks) {
        struct block *b = q->blocks;

        q->blocks = b->next;
        free(b);
    }
}

static void *copied(struct fact_queue *q, const void *v, size_t n)
{
    return n > 0 ? memcpy(block_take(q, n), v, n) : NULL;
}

static const char *text(struct fact_queue *q, const char *s)
{
    return s ? copied(q, s, strlen(s) + 1) : NULL;
}

static void copy_node_up(struct fact_queue *q, struct pliant_event *ev)
{
    size_t n = ev->node_up.n_labels;
    struct pliant_label *labels = copied(q, ev->node_up.labels, n * sizeof *labels);

    ev->node_up.name = text(q, ev->node_up.name);
    ev->node_up.zone = text(q, ev->node_up.zone);
    ev->node_up.domain = text(q, ev->node_up.domain);
    for (size_t i = 0; i < n; i++)
        labels[i] =
            (struct pliant_label){.key = text(q, labels[i].key), .value = text(q, labels[i].value)};
    ev->node_up.labels = labels;
}

static void copy_requirements(struct fact_queue *q, struct pliant_event *ev)
{
    size_t n = ev->requirements.n;
    struct pliant_bounds *bounds = copied(q, ev->requirements.v, n * sizeof *bounds);

    for (size_t i = 0; i < n; i++)
        bounds[i].vertex = text(q, bounds[i].vertex);
    ev->requirements.v = bounds;
}

static void copy_checkpoint(struct fact_queue *q, struct pliant_event *ev)
{
    ev->checkpoint.path = text(q, ev->checkpoint.path);
    ev->checkpoint.cause = text(q, ev->checkpoint.cause);
    ev->checkpoint.sizes =
        copied(q, ev->checkpoint.sizes, ev->checkpoint.n_sizes * sizeof *ev->checkpoint.sizes);
}

static void copy_outputs(struct fact_queue *q, struct pliant_event *ev)
{
    size_t n = ev->finished.n_outputs;
    struct pliant_output *outputs = copied(q, ev->finished.outputs, n * sizeof *outputs);

    for (size_t i = 0; i < n; i++)
        outputs[i].bytes = copied(q, outputs[i].bytes, outputs[i].n * sizeof *outputs[i].bytes);
    ev->finished.outputs = outputs;
}

static void copy_texts(struct fact_queue *q, struct pliant_event *ev)
{
    switch (ev->kind) {
    case PLIANT_EV_NODE_UP:
        copy_node_up(q, ev);
        return;
    case PLIANT_EV_NODE_DRAINING:
        ev->draining.name = text(q, ev->draining.name);
        return;
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
    case PLIANT_EV_NODE_LOST:
        ev->node.name = text(q, ev->node.name);
        return;
    case PLIANT_EV_SLOTS_GRANTED:
        ev->granted.name = text(q, ev->granted.name);
        return;
    case PLIANT_EV_SLOTS_RECLAIMED:
        ev->reclaimed.name = text(q, ev->reclaimed.name);
        return;
    case PLIANT_EV_SLOTS_RESERVED:
    case PLIANT_EV_SLOTS_REFUSED:
    case PLIANT_EV_CREATION_FAILED:
        ev->plan.cause = text(q, ev->plan.cause);
        return;
    case PLIANT_EV_TASK_FINISHED:
        copy_outputs(q, ev);
        return;
    case PLIANT_EV_TASK_FAILED:
    case PLIANT_EV_GLOBAL_FAILURE:
        ev->failure.cause = text(q, ev->failure.cause);
        return;
    case PLIANT_EV_REPORT:
        ev->report.path = text(q, ev->report.path);
        return;
    case PLIANT_EV_CHECKPOINT_COMPLETED:
    case PLIANT_EV_CHECKPOINT_FAILED:
    case PLIANT_EV_SAVEPOINT_COMPLETED:
    case PLIANT_EV_SAVEPOINT_FAILED:
        copy_checkpoint(q, ev);
        return;
    case PLIANT_EV_REQUIREMENTS:
        copy_requirements(q, ev);
        return;
    case PLIANT_EV_SAVEPOINT_REQUESTED:
    case PLIANT_EV_STOP:
        ev->savepoint.dir = text(q, ev->savepoint.dir);
        return;
    case PLIANT_EV_TICK:
    case PLIANT_EV_START:
    case PLIANT_EV_TASK_INITIALIZING:
    case PLIANT_EV_TASK_RUNNING:
    case PLIANT_EV_TASK_END_OF_DATA:
    case PLIANT_EV_TASK_CANCELED:
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_CANCEL:
    case PLIANT_EV_SUSPEND:
    case PLIANT_EVENTS:
        return;
    }
}

void job_fact(struct daemon *d, struct daemon_job *job, const struct pliant_event *ev)
{
    struct fact *fact = need(vec_push(NULL, &d->facts->facts));

    *fact = (struct fact){.job = job, .ev = *ev};
    copy_texts(d->facts, &fact->ev);
}

/* ---- the heap of deadlines ------------------------------------------------------------------ */

static void heap_set(struct fact_queue *q, size_t at, struct daemon_job *job)
{
    q->heap.v[at] = job;
    job->at = at;
}

static void heap_up(struct fact_queue *q, size_t at)
{
    struct daemon_job *job = q->heap.v[at];

    for (; at > 0 && job->deadline_ms < q->heap.v[(at - 1) / 2]->deadline_ms; at = (at - 1) / 2)
        heap_set(q, at, q->heap.v[(at - 1) / 2]);
    heap_set(q, at, job);
}

static void heap_down(struct fact_queue *q, size_t at)
{
    struct daemon_job *job = q->heap.v[at];

    for (size_t child; (child = 2 * at + 1) < q->heap.n; at = child) {
        if (child + 1 < q->heap.n &&
            q->heap.v[child + 1]->deadline_ms < q->heap.v[child]->deadline_ms)
            child++;
        if (q->heap.v[child]->deadline_ms >= job->deadline_ms)
            break;
        heap_set(q, at, q->heap.v[child]);
    }
    heap_set(q, at, job);
}

static void set_deadline(struct fact_queue *q, struct daemon_job *job, int64_t at_ms)
{
    job->deadline_ms = at_ms;
    heap_up(q, job->at);
    heap_down(q, job->at);
}

void facts_watch(struct daemon *d, struct daemon_job *job)
{
    struct daemon_job **at = need(vec_push(NULL, &d->facts->heap));

    *at = job;
    job->at = d->facts->heap.n - 1;
    set_deadline(d->facts, job, pliant_next_deadline(job->sched));
}

void facts_unwatch(struct daemon *d, struct daemon_job *job)
{
    struct fact_queue *q = d->facts;
    struct daemon_job *last = q->heap.v[--q->heap.n];

    if (last == job)
        return;
    heap_set(q, job->at, last);
    set_deadline(q, last, last->deadline_ms);
}

int64_t jobs_next_deadline(const struct daemon *d)
{
    if (d->facts->first < d->facts->facts.n)
        return d->clock.now_ms;
    return d->facts->heap.n > 0 ? d->facts->heap.v[0]->deadline_ms : PLIANT_NEVER;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void journal(struct daemon *d, struct daemon_job *job)
{
    const struct fact_queue *q = d->facts;
    const struct store_step step = {.n = ++job->n_steps,
                                    .at_ms = d->clock.now_ms,
                                    .event = q->event.v,
                                    .event_size = q->event.n,
                                    .actions = q->actions.v,
                                    .actions_size = q->actions.n};
    int r = store_step_put(d->store, job->id, &step);

    if (r == 0)
        return;
    log_line(3, "msg=\"a step cannot be journaled\" job=%s error=%d", job->id, r);
    _Exit(4); /* what was committed holds; the next daemon goes on from there */
}

static void snapshot_if_due(struct daemon *d, struct daemon_job *job)
{
    void *bytes;
    size_t size;
    char at[24];

    if (!job->sched || job->n_steps - job->n_snapshot < (uint64_t)d->opts.snapshot_every)
        return;
    need(pliant_snapshot(job->sched, &bytes, &size) == 0 ? job : NULL);
    snprintf(at, sizeof at, "%" PRId64, d->clock.now_ms);
    store_note_put(d->store, "", "clock", at);
    if (store_snapshot_put(d->store, job->id, job->n_steps, bytes, size) == 0)
        job->n_snapshot = job->n_steps;
    pliant_bytes_free(job->config->alloc, bytes);
}

static void step(struct daemon *d, struct daemon_job *job, const struct pliant_event *ev)
{
    struct fact_queue *q = d->facts;
    struct pliant_actions acts;
    int r;

    json_reset(&q->event);
    json_reset(&q->actions);
    recording_write_event(&q->event, NULL, job->spec.job, ev); /* names, as they were before it */
    r = pliant_step(job->sched, d->clock.now_ms, ev, &acts);
    need(r != -ENOMEM ? job : NULL);
    if (r < 0) {
        log_line(3, "msg=\"an event is malformed\" job=%s event=%s", job->id,
                 pliant_event_name(ev->kind));
        return;
    }
    recording_write_actions(&q->actions, NULL, job->spec.job, job->sched, &acts);
    need(q->event.error == 0 && q->actions.error == 0 ? job : NULL);
    journal(d, job);
    d->steps++;
    if (ev->kind == PLIANT_EV_CHECKPOINT_COMPLETED)
        checkpoints_told(d, job, ev->checkpoint.id);
    actions_carry_out(d, job, &acts);
    if (job->ended_unix_ms)
        return;
    set_deadline(q, job, pliant_next_deadline(job->sched));
    snapshot_if_due(d, job);
}

static void take_facts(struct daemon *d)
{
    struct fact_queue *q = d->facts;

    while (q->first < q->facts.n) {
        struct fact fact = q->facts.v[q->first++];

        if (fact.job->sched && !fact.job->ended_unix_ms)
            step(d, fact.job, &fact.ev);
    }
    q->facts.n = q->first = 0;
    blocks_free(q);
}

static void tick_those_due(struct daemon *d)
{
    struct fact_queue *q = d->facts;

    while (q->heap.n > 0 && q->heap.v[0]->deadline_ms <= d->clock.now_ms) {
        struct daemon_job *job = q->heap.v[0];

        step(d, job, &(struct pliant_event){.kind = PLIANT_EV_TICK});
        if (!job->ended_unix_ms && job->deadline_ms <= d->clock.now_ms)
            set_deadline(q, job, d->clock.now_ms + 1); /* one step a turn is enough */
    }
}

void jobs_run(struct daemon *d)
{
    while (jobs_next_deadline(d) <= d->clock.now_ms && !store_failed(d->store)) {
        take_facts(d);
        tick_those_due(d);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

void facts_open(struct daemon *d)
{
    d->facts = need(calloc(1, sizeof *d->facts));
    json_init(&d->facts->event, NULL);
    json_init(&d->facts->actions, NULL);
}

void facts_close(struct daemon *d)
{
    if (!d->facts)
        return;
    blocks_free(d->facts);
    vec_free(NULL, &d->facts->facts);
    vec_free(NULL, &d->facts->heap);
    json_free(&d->facts->event);
    json_free(&d->facts->actions);
    free(d->facts);
    d->facts = NULL;
}

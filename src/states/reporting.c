/* reporting.c - the reports of a group's workers: taken by the set, their checkpoint registered
 *
 * A set is one call of every rank. It is over at once where no rank has a checkpoint [W-CKP-3];
 * else the host writes the manifest, and then it is over. One registration at a time; it outlives
 * the attempt, since every rank has reported.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "states/sched.h"

static uint32_t n_ranks(const struct pliant_sched *s)
{
    return s->graph.exists ? s->graph.parallelism[0] : 0;
}

static bool complete(const struct pliant_sched *s)
{
    return s->registration.id == 0 && n_ranks(s) > 0 && s->reports.n_ready == n_ranks(s);
}

/* ---- a set ------------------------------------------------------------------------------ */

/* Of the ranks that have a checkpoint, the first; n: none has. */
static uint32_t first_with_path(const struct pliant_sched *s)
{
    uint32_t rank = 0;

    while (rank < n_ranks(s) && !reports_first(&s->reports, rank)->path)
        rank++;
    return rank;
}

/* A rank whose path is another one than that of `first`; n: none. */
static uint32_t differing(const struct pliant_sched *s, uint32_t first)
{
    const char *path = reports_first(&s->reports, first)->path;

    for (uint32_t rank = first + 1; rank < n_ranks(s); rank++) {
        const char *other = reports_first(&s->reports, rank)->path;

        if (other && strcmp(other, path) != 0)
            return rank;
    }
    return n_ranks(s);
}

/* The checkpoint holds what was done before the first of them came. */
static int64_t reported_at_ms(const struct pliant_sched *s)
{
    int64_t first_ms = s->clock.now_ms;

    for (uint32_t rank = 0; rank < n_ranks(s); rank++)
        if (reports_first(&s->reports, rank)->at_ms < first_ms)
            first_ms = reports_first(&s->reports, rank)->at_ms;
    return first_ms;
}

static void note_calls(struct pliant_sched *s)
{
    struct registration *r = &s->registration;

    r->calls.n = 0;
    if (!vec_reserve(s->alloc, &r->calls, n_ranks(s))) {
        sched_no_memory(s);
        return;
    }
    for (uint32_t rank = 0; rank < n_ranks(s); rank++)
        r->calls.v[r->calls.n++] =
            (struct report_call){{{1}, rank, s->graph.vertices[0].tasks[rank].attempt},
                                 reports_first(&s->reports, rank)->call};
}

/* Whoever has ended in the meantime, or is to end, waits for nothing. */
void reports_tell_taken(struct pliant_sched *s)
{
    struct registration *r = &s->registration;

    for (size_t i = 0; i < r->calls.n; i++) {
        const struct task *task = execution_current(&s->graph, r->calls.v[i].task);
        struct pliant_action *act;

        if (!task || !task_live(task) || task->state == PLIANT_TASK_CANCELING)
            continue;
        act = emit(s, PLIANT_ACT_REPORT_TAKEN);
        act->report.task = r->calls.v[i].task;
        act->report.call = r->calls.v[i].call;
    }
    r->calls.n = 0;
}

static void begin_registration(struct pliant_sched *s, uint32_t rank)
{
    struct registration *r = &s->registration;
    struct pliant_action *act = emit(s, PLIANT_ACT_REGISTER);

    r->id = ++s->checkpoints.last_id;
    r->reported_at_ms = reported_at_ms(s);
    deadline_arm(&r->expiry, &s->clock,
                 instant_after(s->clock.now_ms, s->cfg.checkpoint_timeout_ms));
    act->registered.id = r->id;
    act->registered.path = outbox_text(s, reports_first(&s->reports, rank)->path);
    act->registered.call = reports_first(&s->reports, 0)->call; /* whose metrics count [W-CKP-5] */
}

/* [W-CKP-2] */
static struct state paths_differ(struct pliant_sched *s, uint32_t a, uint32_t b)
{
    struct failure failure = {.class = {.recoverable = false},
                              .why = WHY(PLIANT_REASON_CHECKPOINT_PATHS_DIFFER)};
    char cause[PLIANT_CAUSE_MAX];

    snprintf(cause, sizeof cause,
             "checkpoints of one report are in different places: rank %u in %.180s, rank %u in "
             "%.180s",
             a, reports_first(&s->reports, a)->path, b, reports_first(&s->reports, b)->path);
    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = PLIANT_REASON_CHECKPOINT_PATHS_DIFFER,
                                                    .cause = cause});
    reports_over(s);
    return sched_ops(s)->on_failure(s, &failure);
}

/* Workers are up long before they work: they load, and restore. A start takes until the first
 * report, less what lies between that and the second; all of it where the first came so soon that
 * it cannot have been the end of such a step. */
static void measure_start(struct pliant_sched *s)
{
    struct executing *e = &s->state.executing;
    int64_t now_ms = s->clock.now_ms, first_ms = e->first_report_at_ms, loaded_ms, step_ms;

    if (s->state.id != PLIANT_EXECUTING || e->running_since_ms == PLIANT_UNSET || e->start_measured)
        return;
    if (first_ms == PLIANT_UNSET) {
        e->first_report_at_ms = now_ms;
        return;
    }
    loaded_ms = first_ms - e->running_since_ms;
    step_ms = now_ms - first_ms;
    if (loaded_ms >= step_ms / 2)
        loaded_ms = loaded_ms > step_ms ? loaded_ms - step_ms : 0;
    worth_restarted(&s->policy.worth, e->running_since_ms - s->deployed_at_ms + loaded_ms);
    e->start_measured = true;
}

static struct state consume(struct pliant_sched *s)
{
    uint32_t first = first_with_path(s);
    bool has_path = first < n_ranks(s);

    if (has_path && differing(s, first) < n_ranks(s))
        return paths_differ(s, first, differing(s, first));
    note_calls(s);
    measure_start(s);
    if (has_path)
        begin_registration(s, first);
    else
        reports_tell_taken(s);
    reports_take(&s->reports, n_ranks(s));
    return STAY;
}

struct state reports_consume(struct pliant_sched *s)
{
    struct state next = STAY;

    while (!s->no_memory && complete(s) && next.id == STATE_STAY)
        next = consume(s);
    return next;
}

/* ---- events ----------------------------------------------------------------------------- */

struct state report_came(struct pliant_sched *s, const struct pliant_event *ev, bool *ret_ignored)
{
    const struct task *task = execution_current(&s->graph, ev->report.task);
    int added;

    *ret_ignored = true;
    if (!s->job->worker_group || !task || !task_live(task) || task->state == PLIANT_TASK_CANCELING)
        return STAY;
    added = reports_add(&s->reports, ev->report.task.subtask, ev->report.call, ev->report.path,
                        s->clock.now_ms);
    if (added < 0)
        sched_no_memory(s);
    *ret_ignored = added == 0;
    return added > 0 ? reports_consume(s) : STAY;
}

static void end_registration(struct pliant_sched *s)
{
    s->registration.id = 0;
    deadline_clear(&s->registration.expiry);
}

/* One that is not the first of its run tells how often they come. */
static void note_gap(struct pliant_sched *s)
{
    const struct checkpoint_facts *last = &s->checkpoints;
    const struct executing *e = &s->state.executing;

    if (s->state.id == PLIANT_EXECUTING && e->running_since_ms != PLIANT_UNSET &&
        last->completed_id && last->completed_at_ms >= e->running_since_ms)
        worth_reported(&s->policy.worth, s->clock.now_ms - last->completed_at_ms);
}

bool registration_ended(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct registration *r = &s->registration;

    if (r->id == 0 || ev->checkpoint.own_accord || ev->checkpoint.id != r->id)
        return false;
    if (ev->kind == PLIANT_EV_CHECKPOINT_COMPLETED) {
        note_gap(s);
        checkpoint_note_completed(s, r->id, r->reported_at_ms, ev);
    }
    end_registration(s);
    return true;
}

/* Its host says nothing: as if the manifest could not be written. */
void registration_expired(struct pliant_sched *s)
{
    end_registration(s);
    reports_tell_taken(s);
}

void reports_over(struct pliant_sched *s)
{
    reports_drop(&s->reports);
    s->registration.calls.n = 0;
}

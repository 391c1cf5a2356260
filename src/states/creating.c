/* creating.c - CreatingExecutionGraph: a plan was made, the host builds the graph and holds the
 * slots
 *
 * Left for
 *   Executing                       when the host is ready and every slot of the plan is free
 *                                   [S-CEG-4, S-CEG-6]
 *   WaitingForResources             when one is not  [S-CEG-5]; with a worker group also when the
 *                                   creation failed, which its launches' budget pays
 *   RetryingExecutionGraphCreation  when the creation failed and its budget allows  [S-CEG-12]
 *   Finished                        when it failed for good  [S-CEG-2, S-CEG-3]; on a cancel or a
 *                                   global failure  [S-GEN-9, S-CEG-10]
 *
 * The workers of a group come up before it is left for Executing: launching.c.
 *
 * New slots and requirements do not restart the plan; Executing looks again  [S-CEG-8].
 */
#include "graph/ranks.h"
#include "states/sched.h"

static struct state creation_failed(struct pliant_sched *s, enum pliant_reason reason,
                                    bool recoverable, const char *cause)
{
    bool new_attempt;
    struct why why = WHY(reason);

    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = (uint8_t)reason,
                                                    .recoverable = recoverable,
                                                    .cause = cause});
    if (s->job->worker_group && recoverable && reason == PLIANT_REASON_CREATION_FAILED)
        return launch_refused(s, why, cause);
    failure_archive(s); /* [S-HIST-6] */
    if (timeline_exception(&s->timeline, cause) < 0)
        sched_no_memory(s);
    if (!recoverable)
        return finished(s, PLIANT_JOB_FAILED, why);
    if (restart_strategy_notify(&s->creation_retry, s->alloc, &s->prng, s->clock.now_ms,
                                &new_attempt) < 0)
        sched_no_memory(s);
    else if (restart_strategy_can_restart(&s->creation_retry, s->clock.now_ms))
        return retrying(s, restart_strategy_backoff_ms(&s->creation_retry, s->clock.now_ms), why);
    return finished(s, PLIANT_JOB_FAILED, why);
}

/* Slots first, then the graph runs: a checkpoint cannot start before [S-CEG-7]. */
static struct state plan_ready(struct pliant_sched *s)
{
    if (!plan_holds(s))
        return waiting(s, false, WHY(PLIANT_REASON_SLOTS_GONE));
    if (execution_begin(&s->graph, &s->pool, s->plan.parallelism, s->plan.group_slots,
                        s->plan.unit_slots.v) < 0) {
        sched_no_memory(s);
        return STAY;
    }
    previous_capture(s);
    timeline_assign(&s->timeline, s->plan.parallelism, s->plan.group_slots);
    if (!s->job->worker_group)
        return executing(s, WHY(PLIANT_REASON_PLAN_READY));
    ranks_take_seats(&s->pool, s->plan.unit_slots.v, (uint32_t)s->plan.unit_slots.n);
    return launch_begin(s);
}

static struct state on_plan(struct pliant_sched *s, const struct pliant_event *ev)
{
    if (deadline_armed(&s->state.creating.failed) || ev->plan.plan != s->state.creating.plan) {
        s->events_ignored++;
        return STAY;
    }
    if (ev->kind == PLIANT_EV_SLOTS_RESERVED)
        return plan_ready(s);
    if (ev->kind == PLIANT_EV_SLOTS_REFUSED)
        return waiting(s, false, WHY(PLIANT_REASON_SLOTS_GONE));
    return creation_failed(s, PLIANT_REASON_CREATION_FAILED, ev->plan.recoverable,
                           cause_or_missing(ev->plan.cause));
}

static size_t deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    list[0] = &s->state.creating.failed;
    return 1;
}

static struct state on_due(struct pliant_sched *s, struct deadline *due)
{
    deadline_clear(due);
    return creation_failed(s, PLIANT_REASON_NOT_ENOUGH_RESOURCES, true,
                           "not enough resources available for scheduling");
}

static void enter(struct pliant_sched *s, enum pliant_state from)
{
    struct creating *c = &s->state.creating;
    struct pliant_action *act;

    (void)from;
    c->failed = DEADLINE_NONE;
    c->launch = (struct launch){.timeout = DEADLINE_NONE,
                                .winding = {.down = DEADLINE_NONE, .give_up = DEADLINE_NONE}};
    c->plan = s->plan.serial;
    if (s->plan.unit_slots.n == 0) {
        deadline_arm(&c->failed, &s->clock, s->clock.now_ms);
        return;
    }
    act = emit(s, PLIANT_ACT_RESERVE);
    act->reserve.plan = c->plan;
    act->reserve.n = (uint32_t)s->plan.unit_slots.n;
    act->reserve.slots = (const pliant_slot_id *)s->plan.unit_slots.v;
    act->reserve.restore = s->checkpoints.completed_id;
}

static struct state on_failure(struct pliant_sched *s, const struct failure *failure)
{
    if (s->job->worker_group && failure->class.recoverable)
        return launch_refused(s, failure->why, pliant_reason_name(failure->why.reason));
    return failure_without_graph(s, failure);
}

struct state creating(struct pliant_sched *s, struct why why)
{
    if (!plan_compute(s)) /* before the transition; without one, it fails after it */
        s->plan.unit_slots.n = 0;
    return (struct state){.id = PLIANT_CREATING_EXECUTION_GRAPH, .why = why};
}

const struct state_ops creating_ops = {
    .status = PLIANT_JOB_CREATED,
    .may_follow = BIT(PLIANT_WAITING_FOR_RESOURCES) | BIT(PLIANT_RESTARTING),
    .enter = enter,
    .deadlines = deadlines,
    .on_due = on_due,
    .on_plan = on_plan,
    .on_cancel = cancel_without_graph,
    .on_failure = on_failure,
};

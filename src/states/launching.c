/* launching.c - CreatingExecutionGraph of a worker group: its workers come up, all or none
 * [W-GRP-1]
 *
 * Left for
 *   Executing            when all are up
 *   WaitingForResources  when one could not be started or was lost, when a node is taken back, or
 * at worker-group.start-timeout; the others are stopped first. A failure is charged to the
 * launches' budget, and the next launch waits a back-off [W-GRP-2, W-GRP-4] Finished when all have
 * finished already; when the budget is exhausted or the failure is final; on a cancel. Never before
 * all are down
 *
 * The timeout runs from the grant of the slots, which is when the host has prepared them: what that
 * takes is bounded by the host [W-GRP-3]. A drain for another reason than preemption, new slots and
 * requirements are news for Executing.
 */
#include <stdio.h>

#include "states/sched.h"

static struct launch *launch_of(struct pliant_sched *s)
{
    return &s->state.creating.launch;
}

/* ---- giving up -------------------------------------------------------------------------- */

/* Count it; what follows, and after which wait? */
static void charge(struct pliant_sched *s, struct launch *l)
{
    s->group.failed_in_row++;
    l->backoff_ms = budget_launch_backoff_ms(s->group.failed_in_row);
    l->then = LAUNCH_AGAIN;
    if (budget_charge(&s->failover.budgets.launches))
        return;
    l->then = LAUNCH_FAILS;
    l->why.reason = PLIANT_REASON_LAUNCH_BUDGET_EXHAUSTED;
    s->group.end = PLIANT_REASON_LAUNCH_BUDGET_EXHAUSTED;
}

static void stop_workers(struct pliant_sched *s)
{
    struct launch *l = launch_of(s);

    l->phase = LAUNCH_GIVEN_UP;
    l->why.node.v = 0; /* it may be another node's row when all are down */
    deadline_clear(&l->timeout);
    winding_begin(s, &l->winding, 0, NULL);
}

/* Nobody failed: a node is taken back, or the user wants no more of it. */
static void give_up(struct pliant_sched *s, enum launch_end then, struct why why)
{
    struct launch *l = launch_of(s);

    l->then = then;
    l->why = why;
    l->backoff_ms = 0;
    stop_workers(s);
}

static void note_exception(struct pliant_sched *s, const char *cause)
{
    if (timeline_exception(&s->timeline, cause) < 0)
        sched_no_memory(s);
}

static struct state on_failure(struct pliant_sched *s, const struct failure *failure)
{
    struct launch *l = launch_of(s);

    if (l->phase == LAUNCH_GIVEN_UP)
        return STAY; /* recorded */
    l->why = failure->why;
    if (failure->class.recoverable) {
        charge(s, l);
    } else {
        l->then = LAUNCH_FAILS;
        s->group.end = PLIANT_REASON_NOT_RECOVERABLE;
    }
    note_exception(s, pliant_reason_name(failure->why.reason));
    stop_workers(s);
    return STAY;
}

static struct state timed_out(struct pliant_sched *s)
{
    struct failure failure = {.class = {.recoverable = true},
                              .why = WHY(PLIANT_REASON_LAUNCH_TIMEOUT)};
    char cause[96];

    snprintf(cause, sizeof cause, "%u of %u workers were up after %lld ms", s->graph.n_running,
             s->graph.n_tasks, (long long)s->cfg.group.start_timeout_ms);
    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = PLIANT_REASON_LAUNCH_TIMEOUT,
                                                    .recoverable = true,
                                                    .cause = cause});
    return on_failure(s, &failure);
}

static struct state wait_again(struct pliant_sched *s, const struct launch *l)
{
    struct state next = waiting(s, false, l->why);

    next.waiting.hold_ms = l->backoff_ms;
    next.why.detail = l->backoff_ms;
    return next;
}

static struct state all_down(struct pliant_sched *s)
{
    const struct launch l = *launch_of(s);

    if (l.then == LAUNCH_AGAIN)
        return wait_again(s, &l);
    return finished(s, l.then == LAUNCH_FAILS ? PLIANT_JOB_FAILED : PLIANT_JOB_CANCELED, l.why);
}

struct state launch_refused(struct pliant_sched *s, struct why why, const char *cause)
{
    struct launch l = {.why = why};

    charge(s, &l);
    failure_archive(s); /* [S-HIST-6] */
    note_exception(s, cause);
    if (l.then == LAUNCH_AGAIN)
        return wait_again(s, &l);
    return finished(s, PLIANT_JOB_FAILED, l.why);
}

/* ---- coming up -------------------------------------------------------------------------- */

static struct state all_ended(struct pliant_sched *s)
{
    if (s->graph.n_finished == s->graph.n_tasks) /* [W-STA-1] */
        return finished(s, PLIANT_JOB_FINISHED, WHY(PLIANT_REASON_ALL_FINISHED));
    give_up(s, LAUNCH_AGAIN, WHY(PLIANT_REASON_LAUNCH_FAILED));
    return STAY;
}

static struct state on_tasks(struct pliant_sched *s)
{
    struct launch *l = launch_of(s);

    if (l->phase == LAUNCH_GIVEN_UP)
        winding_look(s, &l->winding);
    else if (s->graph.n_live == 0)
        return all_ended(s);
    else if (s->graph.n_running + s->graph.n_finished == s->graph.n_tasks)
        return executing(s, WHY(PLIANT_REASON_LAUNCHED));
    return STAY;
}

static struct state on_drain(struct pliant_sched *s, struct pool_node *node)
{
    struct why why = WHY(PLIANT_REASON_DRAIN);

    if (launch_of(s)->phase == LAUNCH_STARTING && node->n_used > 0 && node->draining &&
        node->drain_reason == PLIANT_DRAIN_PREEMPTION) {
        why.node = node_id(node);
        give_up(s, LAUNCH_AGAIN, why);
    }
    return STAY;
}

static struct state on_cancel(struct pliant_sched *s)
{
    struct launch *l = launch_of(s);
    struct why why = WHY(PLIANT_REASON_CANCEL_REQUESTED);

    if (l->phase == LAUNCH_STARTING) {
        give_up(s, LAUNCH_CANCELED, why);
    } else {
        l->then = LAUNCH_CANCELED;
        l->why = why;
    }
    return STAY;
}

/* ---- time, entry, exit ------------------------------------------------------------------ */

static size_t deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    struct launch *l = launch_of(s);

    list[0] = &l->timeout;
    return 1 + winding_deadlines(&l->winding, list + 1);
}

static struct state on_due(struct pliant_sched *s, struct deadline *due)
{
    struct launch *l = launch_of(s);

    if (due == &l->timeout)
        return timed_out(s);
    if (due == &l->winding.down)
        return all_down(s);
    winding_give_up(s, &l->winding);
    return STAY;
}

/* It is up, so the next one is another attempt. */
static void leave(struct pliant_sched *s, const struct state *next)
{
    if (next->id != PLIANT_EXECUTING)
        return;
    s->group.relaunch = false;
    s->group.failed_in_row = 0;
}

struct state launch_begin(struct pliant_sched *s)
{
    struct launch *l = launch_of(s);

    l->phase = LAUNCH_STARTING;
    s->group.attempt += !s->group.relaunch; /* [W-STA-2] */
    s->group.relaunch = true;
    deadline_arm(&l->timeout, &s->clock,
                 instant_after(s->clock.now_ms, s->cfg.group.start_timeout_ms));
    deploy_scheduled(s);
    return STAY;
}

const struct state_ops launching_ops = {
    .status = PLIANT_JOB_CREATED,
    .has_graph = true,
    .leave = leave,
    .deadlines = deadlines,
    .on_due = on_due,
    .on_drain = on_drain,
    .on_tasks = on_tasks,
    .on_failure = on_failure,
    .on_cancel = on_cancel,
};

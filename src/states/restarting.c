/* restarting.c - Restarting: all tasks go down, then the job comes up again
 *
 * The back-off runs from the moment when all are down [S-RST-1].
 * Left for
 *   CreatingExecutionGraph  after a rescale whose target can still be had  [S-RST-4, S-RST-5]
 *   WaitingForResources     otherwise; always after a failure  [S-RST-3]
 *   Canceling               on a cancel  [S-RST-7]
 *
 * Failures are recorded only [S-RST-6]; slots and requirements count when it is left [S-RST-9].
 */
#include "states/sched.h"

static struct state go_on(struct pliant_sched *s)
{
    if (!s->state.restarting.has_target)
        return waiting(s, false, WHY(PLIANT_REASON_BACKOFF_OVER));
    if (achievable_is_target(s))
        return creating(s, WHY(PLIANT_REASON_TARGET_REACHABLE));
    return waiting(s, true, WHY(PLIANT_REASON_TARGET_UNREACHABLE));
}

static size_t deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    return winding_deadlines(&s->state.restarting.winding, list);
}

static struct state on_due(struct pliant_sched *s, struct deadline *due)
{
    struct winding *w = &s->state.restarting.winding;

    if (due == &w->down) {
        worth_stopped(&s->policy.worth, s->clock.now_ms - s->entered_at_ms - w->delay_ms);
        return go_on(s);
    }
    winding_give_up(s, w);
    return STAY;
}

static struct state on_tasks(struct pliant_sched *s)
{
    winding_look(s, &s->state.restarting.winding);
    return STAY;
}

static void enter(struct pliant_sched *s, enum pliant_state from)
{
    struct restarting *r = &s->state.restarting;

    (void)from;
    s->restarts++;
    s->rescales += failures_empty(&s->failures); /* [S-RST-8] */
    winding_begin(s, &r->winding, r->winding.delay_ms, NULL);
}

static void leave(struct pliant_sched *s, const struct state *next)
{
    (void)next;
    if (s->state.restarting.winding.archived)
        failure_archive(s); /* what came after the tasks were down [S-HIST-2] */
}

struct state restarting(struct pliant_sched *s, int64_t backoff_ms, bool target, struct why why)
{
    if (!budget_charge(&s->failover.budgets.resets)) { /* [W-BUD-7] */
        why.reason = s->group.end = PLIANT_REASON_RESET_LIMIT_REACHED;
        return failing(s, why);
    }
    return (struct state){
        .id = PLIANT_RESTARTING,
        .why = why,
        .restarting = {.has_target = target, .winding = {.delay_ms = backoff_ms}}};
}

const struct state_ops restarting_ops = {
    .status = PLIANT_JOB_RESTARTING,
    .has_graph = true,
    .may_follow = BIT(PLIANT_EXECUTING) | BIT(PLIANT_STOP_WITH_SAVEPOINT),
    .enter = enter,
    .leave = leave,
    .deadlines = deadlines,
    .on_due = on_due,
    .on_tasks = on_tasks,
    .on_failure = failure_recorded_only,
    .on_cancel = cancel_with_graph,
};

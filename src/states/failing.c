/* failing.c - Failing: the job can't go on, its tasks go down
 *
 * Left for
 *   Finished   with FAILED when all are down  [S-FLG-2]
 *   Canceling  on a cancel  [S-FLG-3]
 */
#include "states/sched.h"

static size_t deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    return winding_deadlines(&s->state.failing.winding, list);
}

static struct state on_due(struct pliant_sched *s, struct deadline *due)
{
    struct winding *w = &s->state.failing.winding;
    struct why why = s->state.why;

    if (due == &w->down)
        return finished(s, PLIANT_JOB_FAILED, why);
    winding_give_up(s, w);
    return STAY;
}

static struct state on_tasks(struct pliant_sched *s)
{
    winding_look(s, &s->state.failing.winding);
    return STAY;
}

static void enter(struct pliant_sched *s, enum pliant_state from)
{
    (void)from;
    record_close(s, PLIANT_RESCALE_JOB_FAILED); /* [S-TML-11] */
    winding_begin(s, &s->state.failing.winding, 0, NULL);
}

struct state failing(struct pliant_sched *s, struct why why)
{
    (void)s;
    return (struct state){.id = PLIANT_FAILING, .why = why};
}

const struct state_ops failing_ops = {
    .status = PLIANT_JOB_FAILING,
    .has_graph = true,
    .may_follow = BIT(PLIANT_EXECUTING) | BIT(PLIANT_STOP_WITH_SAVEPOINT),
    .enter = enter,
    .deadlines = deadlines,
    .on_due = on_due,
    .on_tasks = on_tasks,
    .on_failure = failure_recorded_only,
    .on_cancel = cancel_with_graph,
};

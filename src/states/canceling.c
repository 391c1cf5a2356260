/* canceling.c - Canceling: the user wants the job gone, its tasks go down
 *
 * Left for
 *   Finished  when all are down: CANCELED, or FINISHED if all had finished first  [S-CAN-2]
 *
 * A second cancel is ignored [S-CAN-1]. Tasks that were told before are not told again, and the
 * time they have goes on from then.
 */
#include "states/sched.h"

static size_t deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    return winding_deadlines(&s->state.canceling.winding, list);
}

static struct state on_due(struct pliant_sched *s, struct deadline *due)
{
    struct winding *w = &s->state.canceling.winding;

    if (due != &w->down) {
        winding_give_up(s, w);
        return STAY;
    }
    if (s->graph.n_finished == s->graph.n_tasks)
        return finished(s, PLIANT_JOB_FINISHED, WHY(PLIANT_REASON_ALL_FINISHED));
    return finished(s, PLIANT_JOB_CANCELED, WHY(PLIANT_REASON_ALL_CANCELED));
}

static struct state on_tasks(struct pliant_sched *s)
{
    winding_look(s, &s->state.canceling.winding);
    return STAY;
}

static void enter(struct pliant_sched *s, enum pliant_state from)
{
    struct canceling *c = &s->state.canceling;
    struct deadline give_up = c->winding.give_up;

    (void)from;
    record_close(s, PLIANT_RESCALE_JOB_CANCELED); /* [S-TML-11] */
    winding_begin(s, &c->winding, 0, deadline_armed(&give_up) ? &give_up : NULL);
}

struct state canceling(struct pliant_sched *s, struct why why)
{
    const struct deadline *give_up = winding_of(&s->state);

    return (struct state){.id = PLIANT_CANCELING,
                          .why = why,
                          .canceling.winding.give_up = give_up ? *give_up : DEADLINE_NONE};
}

const struct state_ops canceling_ops = {
    .status = PLIANT_JOB_CANCELLING,
    .has_graph = true,
    .may_follow = BIT(PLIANT_EXECUTING) | BIT(PLIANT_RESTARTING) | BIT(PLIANT_FAILING) |
                  BIT(PLIANT_STOP_WITH_SAVEPOINT),
    .enter = enter,
    .deadlines = deadlines,
    .on_due = on_due,
    .on_tasks = on_tasks,
    .on_failure = failure_recorded_only,
};

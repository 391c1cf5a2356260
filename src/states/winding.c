/* winding.c - tasks going down: what Restarting, Failing and Canceling share
 *
 * Cancels are sent once; a task that does not confirm within task.cancellation.timeout takes its
 * node along, so that none of these states lasts for ever [S-FLG-4]. */
#include "states/sched.h"

static void cancel_tasks(struct pliant_sched *s)
{
    for (uint32_t v = 0; v < s->job->n_vertices; v++)
        for (uint32_t i = 0; i < s->graph.parallelism[v]; i++)
            task_stop(s, v, i, true);
}

void winding_begin(struct pliant_sched *s, struct winding *w, int64_t delay_ms,
                   const struct deadline *give_up)
{
    *w = (struct winding){.delay_ms = delay_ms, .down = DEADLINE_NONE, .give_up = DEADLINE_NONE};
    if (give_up)
        w->give_up = *give_up;
    else if (s->cfg.cancellation_timeout_ms > 0 && s->graph.n_live > 0)
        deadline_arm(&w->give_up, &s->clock,
                     instant_after(s->clock.now_ms, s->cfg.cancellation_timeout_ms));
    reports_over(s);
    cancel_tasks(s);
    winding_look(s, w);
}

void winding_look(struct pliant_sched *s, struct winding *w)
{
    if (s->graph.n_live > 0 || w->archived)
        return;
    w->archived = true;
    failure_archive(s); /* [S-GEN-11] */
    deadline_clear(&w->give_up);
    deadline_arm(&w->down, &s->clock, instant_after(s->clock.now_ms, w->delay_ms));
}

void winding_give_up(struct pliant_sched *s, struct winding *w)
{
    struct failure unused;

    deadline_clear(&w->give_up);
    for (uint32_t v = 0; v < s->job->n_vertices; v++)
        for (uint32_t i = 0; i < s->graph.parallelism[v]; i++)
            task_give_up(s, v, i, &unused);
    winding_look(s, w);
}

size_t winding_deadlines(struct winding *w, struct deadline *list[])
{
    list[0] = &w->down;
    list[1] = &w->give_up;
    return 2;
}

const struct deadline *winding_of(const struct state *state)
{
    const struct winding *w = NULL;

    if (state->id == PLIANT_RESTARTING)
        w = &state->restarting.winding;
    else if (state->id == PLIANT_FAILING)
        w = &state->failing.winding;
    return w && deadline_armed(&w->give_up) ? &w->give_up : NULL;
}

/* winding.c - tasks going down: what Restarting, Failing and Canceling share
 *
 * Cancels are sent once; a task that does not confirm within task.cancellation.timeout takes its
 * node along, so that none of these states lasts for ever [S-FLG-4]. */
#include "states/sched.h"

static void cancel_tasks(struct pliant_sched *s)
{
    for (uint32_t v = 0; v < s->job->n_vertices; v++)
        for (uint32_t i = 0; i < s->graph.parallelism[v]; i++) {
            struct task *task = &s->graph.vertices[v].tasks[i];

            if (task->state == PLIANT_TASK_CREATED) /* nobody has to confirm it */
                execution_move(&s->graph, &s->pool, task, PLIANT_TASK_CANCELED, s->clock.now_ms);
            if (!task_live(task) || task->state == PLIANT_TASK_CANCELING)
                continue;
            execution_move(&s->graph, &s->pool, task, PLIANT_TASK_CANCELING, s->clock.now_ms);
            emit(s, PLIANT_ACT_CANCEL)->task = (struct pliant_task){{v + 1}, i, task->attempt};
        }
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
        for (uint32_t i = 0; i < s->graph.parallelism[v]; i++) {
            struct task *task = &s->graph.vertices[v].tasks[i];
            struct pool_node *node;

            if (!task_live(task))
                continue;
            node = pool_node(&s->pool, s->pool.slots.v[task->slot].node);
            emit(s, PLIANT_ACT_GIVE_UP_NODE)->node.node = node_id(node);
            node_gone(s, node, &unused);
        }
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

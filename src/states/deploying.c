/* deploying.c - tasks that have their slots are started; Executing and launches share it */
#include "states/sched.h"

void deploy_attempt(struct pliant_sched *s, uint32_t v, uint32_t subtask, struct task *attempt)
{
    int64_t *time = execution_time(&s->graph, v, subtask, attempt);
    struct pliant_action *act;

    execution_move(&s->graph, &s->pool, attempt, PLIANT_TASK_DEPLOYING, s->clock.now_ms);
    if (time)
        *time = s->clock.now_ms;
    act = emit(s, PLIANT_ACT_DEPLOY);
    act->deploy.task = (struct pliant_task){{v + 1}, subtask, attempt->attempt};
    act->deploy.slot.v = attempt->slot + 1;
    act->deploy.restore = s->checkpoints.completed_id; /* the latest [W-CKP-10] */
}

static void deploy(struct pliant_sched *s, uint32_t v, uint32_t subtask)
{
    deploy_attempt(s, v, subtask, &s->graph.vertices[v].tasks[subtask]);
}

void deploy_tasks(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    if (!vec_reserve(s->alloc, &s->actions, s->actions.n + n))
        sched_no_memory(s);
    for (size_t k = 0; k < n; k++)
        deploy(s, tasks[k].value, tasks[k].minor);
}

/* What runs already is left alone. */
void deploy_scheduled(struct pliant_sched *s)
{
    if (!vec_reserve(s->alloc, &s->actions, s->actions.n + s->graph.n_tasks))
        sched_no_memory(s);
    for (uint32_t k = 0; k < s->job->n_vertices; k++) {
        uint32_t v = s->job->topological[k];

        for (uint32_t i = 0; i < s->graph.parallelism[v]; i++) {
            if (s->graph.vertices[v].tasks[i].state != PLIANT_TASK_SCHEDULED)
                continue;
            deploy(s, v, i);
            s->deployed_at_ms = s->clock.now_ms;
        }
    }
}

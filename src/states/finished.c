/* finished.c - Finished: the archive; nothing moves it any more  [S-FIN-1]
 *
 * With a globally terminal status all slots are given back at once, since other jobs may be
 * waiting for them; a suspended job keeps its slots for the scheduler that goes on  [S-FIN-2].
 */
#include "states/sched.h"

/* The end is the job's real one, whatever state it was in [S-TML-11]. */
static enum pliant_rescale_end end_of(const struct state *state)
{
    if (state->why.reason == PLIANT_REASON_CREATION_FAILED ||
        state->why.reason == PLIANT_REASON_NOT_ENOUGH_RESOURCES)
        return PLIANT_RESCALE_EXCEPTION_OCCURRED; /* [S-TML-10] */
    if (state->finished.status == PLIANT_JOB_FAILED)
        return PLIANT_RESCALE_JOB_FAILED;
    if (state->finished.status == PLIANT_JOB_CANCELED)
        return PLIANT_RESCALE_JOB_CANCELED;
    if (state->finished.status == PLIANT_JOB_SUSPENDED)
        return PLIANT_RESCALE_JOB_SUSPENDED;
    return PLIANT_RESCALE_JOB_FINISHED;
}

/* Only a suspend finds tasks that live: they are told to stop, and nobody waits for them. */
static void abandon_tasks(struct pliant_sched *s)
{
    struct winding unused;

    winding_begin(s, &unused, 0, NULL);
    for (uint32_t v = 0; v < s->job->n_vertices; v++)
        for (uint32_t i = 0; i < s->graph.parallelism[v]; i++) {
            for (struct task *a = &s->graph.vertices[v].tasks[i]; a;
                 a = execution_next(&s->graph, a))
                if (task_live(a))
                    execution_move(&s->graph, &s->pool, a, PLIANT_TASK_CANCELED, s->clock.now_ms);
            execution_rank(&s->graph, v, i);
        }
}

static void enter(struct pliant_sched *s, enum pliant_state from)
{
    enum pliant_job_status status = s->state.finished.status;
    struct pliant_action *act;

    (void)from;
    deadline_clear(&s->idle_check);
    s->registration.id = 0;
    deadline_clear(&s->registration.expiry);
    record_close(s, end_of(&s->state));
    if (status != PLIANT_JOB_SUSPENDED)
        release_all(s);
    pool_keep_returning(&s->pool, s->clock.now_ms); /* a suspended job keeps all */
    act = emit(s, PLIANT_ACT_ARCHIVED);
    act->status.from = act->status.to = (uint8_t)status;
}

struct state finished(struct pliant_sched *s, enum pliant_job_status status, struct why why)
{
    if (s->graph.exists && s->graph.n_live > 0)
        abandon_tasks(s);
    else if (s->graph.exists)
        failure_archive(s); /* [S-GEN-11] */
    return (struct state){.id = PLIANT_FINISHED, .why = why, .finished.status = status};
}

const struct state_ops finished_ops = {
    .may_follow = (BIT(PLIANT_STATES) - 1) & ~BIT(PLIANT_FINISHED),
    .enter = enter,
};

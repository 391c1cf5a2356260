/* worth_view.c - what a rescale or a move looks like from Executing, for the policy `worth` */
#include "states/sched.h"

#define MISSED_MAX (INT64_MAX / 1024)

/* Slots that this parallelism takes. */
static uint64_t units(const struct pliant_sched *s, const uint32_t *parallelism)
{
    const struct pliant_job *job = s->job;
    uint64_t all = 0;

    for (uint32_t g = 0; g < job->n_groups; g++) {
        uint32_t most = 0;

        for (uint32_t m = job->group_first[g]; m < job->group_first[g + 1]; m++)
            if (parallelism[job->group_members[m]] > most)
                most = parallelism[job->group_members[m]];
        all += most;
    }
    return all;
}

/* Work that a restart would throw away. Who has no checkpoints does without it anyhow; a group has
 * them if it ever reported one. */
static int64_t unsafe_ms(const struct pliant_sched *s)
{
    int64_t from = s->state.executing.running_since_ms;
    bool has_them = s->job->worker_group ? s->checkpoints.completed_id != 0 : checkpointing_on(s);

    if (from == PLIANT_UNSET || !has_them)
        return 0;
    if (s->checkpoints.completed_id && s->checkpoints.completed_at_ms > from)
        from = s->checkpoints.completed_at_ms;
    return s->clock.now_ms - from;
}

/* As far after the last as that was after the one before; the first also after the start. */
static int64_t report_in_ms(const struct pliant_sched *s)
{
    const struct worth *w = &s->policy.worth;
    int64_t from = s->state.executing.running_since_ms, now_ms = s->clock.now_ms;

    if (from == PLIANT_UNSET || w->reports_ms == PLIANT_UNSET)
        return PLIANT_UNSET;
    if (s->checkpoints.completed_at_ms >= from)
        return instant_after(s->checkpoints.completed_at_ms, w->reports_ms) - now_ms;
    return instant_after(instant_after(from, worth_restart_ms(w, &s->policy.limits)),
                         w->reports_ms) -
           now_ms;
}

/* Idle slot-ms since the last change, no more than can be told apart. */
static int64_t missed_since(const struct executing *e, int64_t now_ms)
{
    double missed = (double)e->idle_slots * (double)(now_ms - e->changed_at_ms);

    return missed < (double)MISSED_MAX - (double)e->missed ? (int64_t)missed
                                                           : MISSED_MAX - e->missed;
}

struct worth_view worth_view(struct pliant_sched *s)
{
    const struct executing *e = &s->state.executing;
    int64_t started_ms = s->clock.now_ms - s->entered_at_ms;
    bool running = e->running_since_ms != PLIANT_UNSET;
    bool possible = achievable(s, s->pool.n_offered);

    return (struct worth_view){
        .p = s->graph.n_units,
        .q = possible ? units(s, s->scratch) : 0,
        .running = running,
        .left_ms = running ? 0 : worth_left_ms(&s->policy.worth, &s->policy.limits, started_ms),
        .unsafe_ms = unsafe_ms(s),
        .report_in_ms = report_in_ms(s),
        .since_arrival_ms = s->clock.now_ms - e->changed_at_ms,
        .missed = e->missed + missed_since(e, s->clock.now_ms),
        .can_checkpoint = checkpointing_on(s)};
}

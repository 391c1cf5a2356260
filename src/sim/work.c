/* work.c - see work.h */
#include "sim/work.h"

/* ---- speed -------------------------------------------------------------------------------- */

static double from_table(const struct job_progress *s, uint32_t p)
{
    struct job_point left = {0}, right;

    for (size_t i = 0; i < s->n_points; i++) {
        right = s->points[i];
        if (p <= right.parallelism)
            return left.speedup + (right.speedup - left.speedup) * (p - left.parallelism) /
                                      (right.parallelism - left.parallelism);
        left = right;
    }
    return left.speedup;
}

double work_speed(const struct job_progress *speedup, uint32_t p)
{
    switch (speedup->kind) {
    case JOB_SPEEDUP_LINEAR:
        break;
    case JOB_SPEEDUP_AMDAHL:
        return p == 0 ? 0 : p / (1 + speedup->serial * (p - 1));
    case JOB_SPEEDUP_TABLE:
        return from_table(speedup, p);
    }
    return p;
}

/* ---- time --------------------------------------------------------------------------------- */

/* Time goes on to at_ms with all as it is. */
static void pass(struct work *w, int64_t at_ms)
{
    int64_t from_ms = w->now_ms > w->pause_until_ms ? w->now_ms : w->pause_until_ms;

    w->state_ms[w->state] += at_ms - w->now_ms;
    if (w->running && at_ms > from_ms) {
        w->working_ms += at_ms - from_ms;
        w->done += work_speed(w->speedup, w->parallelism) * (double)(at_ms - from_ms);
    }
    w->now_ms = at_ms;
}

/* ---- what happens ------------------------------------------------------------------------- */

static uint32_t smallest_parallelism(const struct work *w, const struct pliant_sched *sched)
{
    uint32_t smallest = UINT32_MAX;

    for (uint32_t v = 1; v <= pliant_job_vertices(w->job); v++) {
        uint32_t p = pliant_parallelism(sched, (pliant_vertex_id){v});

        smallest = p < smallest ? p : smallest;
    }
    return smallest;
}

static void restart(struct work *w, enum pliant_reason reason)
{
    w->restarts++;
    w->restarts_by[reason]++;
    w->lost += w->done - w->covered;
    w->done = w->covered;
}

static void change_state(struct work *w, const struct pliant_action *a,
                         const struct pliant_sched *sched)
{
    w->state = (enum pliant_state)a->flag[1];
    if (w->state == PLIANT_RESTARTING)
        restart(w, (enum pliant_reason)a->flag[2]);
    if (w->state == PLIANT_EXECUTING)
        w->parallelism = smallest_parallelism(w, sched);
    else
        w->pause_until_ms = 0; /* with its tasks the checkpoint is over */
}

static void begin_checkpoint(struct work *w, const struct pliant_action *a)
{
    bool savepoint = a->flag[1];

    w->pause_until_ms = w->now_ms + w->checkpoint_ms;
    if (savepoint)
        return; /* no restart begins from it */
    w->pending = a->checkpoint.id;
    w->pending_covers = w->done;
}

static void on_action(struct work *w, const struct pliant_action *a,
                      const struct pliant_sched *sched)
{
    if (a->kind == PLIANT_ACT_STATE_CHANGED)
        change_state(w, a, sched);
    else if (a->kind == PLIANT_ACT_CHECKPOINT)
        begin_checkpoint(w, a);
}

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct work *w = (struct work *)o;
    struct pliant_counts counts;

    pliant_counts(step->sched, &counts);
    pass(w, step->at_ms);
    if (step->event->kind == PLIANT_EV_CHECKPOINT_COMPLETED && w->pending != 0 &&
        counts.checkpoint == w->pending)
        w->covered = w->pending_covers;
    for (size_t i = 0; i < step->actions->n; i++)
        on_action(w, &step->actions->v[i], step->sched);
    w->running = w->state == PLIANT_EXECUTING && counts.tasks_running > 0 &&
                 counts.tasks_running == counts.tasks_live;
    return 0;
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    (void)sched;
    pass((struct work *)o, end_ms);
    return 0;
}

void work_init(struct work *w, const struct pliant_job *job, const struct job_progress *speedup,
               int64_t checkpoint_ms)
{
    *w = (struct work){.observer = {on_step, on_end},
                       .job = job,
                       .speedup = speedup,
                       .checkpoint_ms = checkpoint_ms};
}

uint64_t work_forced(const struct work *w)
{
    return w->restarts - w->restarts_by[PLIANT_REASON_RESCALE] -
           w->restarts_by[PLIANT_REASON_RECLAIM];
}

/* work.h - how much a job got done in a run: the progress model
 *
 * An observer, never an input of the run. The job works with speed(p) while it is in Executing,
 * all of its tasks run and no checkpoint or savepoint is being taken; p is the smallest
 * parallelism of a vertex. A checkpoint covers the work up to its trigger and is taken for
 * checkpoint_ms from there, whoever asked for it. A restart, for whatever reason, throws away the
 * work since the trigger of the last completed checkpoint. What a restart costs in time is a
 * matter of the simulated cluster's latencies.
 *
 * Units   ms; work is speed times ms: with linear speed, slots times ms
 * Owner   borrows job and speed-up
 */
#ifndef PLIANT_SIM_WORK_H
#define PLIANT_SIM_WORK_H

#include "sim/observer.h"
#include "spec/job_spec.h"

struct work {
    struct sim_observer observer;
    const struct pliant_job *job;
    const struct job_progress *speedup;
    int64_t checkpoint_ms;

    double done;                                    /* by now, covered by a checkpoint or not */
    double lost;                                    /* was done, and thrown away */
    uint64_t restarts, restarts_by[PLIANT_REASONS]; /* by the reason for leaving Executing */
    int64_t state_ms[PLIANT_STATES];
    int64_t working_ms;

    /* how it goes on from now_ms */
    int64_t now_ms;
    enum pliant_state state;
    uint32_t parallelism; /* of the present run or the last */
    bool running;         /* all tasks are */
    int64_t pause_until_ms;
    double covered;
    uint64_t pending; /* the checkpoint that is being taken, and what it will cover */
    double pending_covers;
};

void work_init(struct work *w, const struct pliant_job *job, const struct job_progress *speedup,
               int64_t checkpoint_ms);

/* Restarts that were not the scheduler's choice: after a failure or a loss, or before one. */
uint64_t work_forced(const struct work *w);

/* Work per second with p subtasks. Below the first point of a table: straight up from 0. */
double work_speed(const struct job_progress *speedup, uint32_t p);

#endif

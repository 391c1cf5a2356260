/* observer.h - whoever watches a simulated run: timeline, totals, chart, recording
 *
 * The simulator calls every observer after each step, in order, with what went in and what came
 * out. Observers never influence the run.
 *
 * Owner   arguments are borrowed for the call
 * Errors  0 or -errno (full disk, closed pipe): the run stops with it
 */
#ifndef PLIANT_SIM_OBSERVER_H
#define PLIANT_SIM_OBSERVER_H

#include <pliant/pliant.h>

struct sim_step {
    int64_t at_ms;
    const struct pliant_event *event;
    const struct pliant_actions *actions;
    const struct pliant_sched *sched;
    uint32_t trace_line; /* the line of the trace that the event came from; 0: simulated */
};

struct sim_observer {
    int (*on_step)(struct sim_observer *o, const struct sim_step *step);
    /* The run is over at end_ms (the sched is in its last state). */
    int (*on_end)(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched);
};

#endif

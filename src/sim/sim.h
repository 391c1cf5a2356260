/* sim.h - one job on one simulated cluster, from the first event of a trace to an instant
 *
 * The driver of the core: it feeds the trace's events, answers the scheduler's actions as a
 * cluster would after the latencies that it was given, and jumps from one instant to the next.
 * Each step has one event. At one instant: answers that cost no time come right after the step
 * that asked for them; then the next event of the trace, in file order; then answers that were
 * on their way; the scheduler's own timers run at the start of whichever step comes first.
 *
 * The job is submitted at t = 0 to the cluster that is there at that instant: node and
 * requirement events that lead the trace at t = 0 come before START.
 *
 * Units   milliseconds of the trace
 * Owner   everything in a setup is borrowed for the call
 * Errors  -EINVAL with *err (the trace); -ENOMEM; an observer's error as it is, with err->text
 *         empty
 */
#ifndef PLIANT_SIM_SIM_H
#define PLIANT_SIM_SIM_H

#include "sim/host.h"
#include "sim/observer.h"
#include "spec/options.h"
#include "spec/trace.h"

struct sim_setup {
    const struct pliant_config *cfg;
    const struct job_spec *job;
    struct sim_latency latency;
    struct trace *trace; /* at its first event; NULL: `events` instead */
    const struct trace_event *events;
    size_t n_events;
    bool trace_savepoints;   /* the trace says how the savepoint of a stop ends */
    uint64_t trace_launches; /* of a worker group: so many launches wait for the trace's word */
    int64_t until_ms;        /* what is due then still runs */
    struct sim_observer *const *observers;
    size_t n_observers;
};

/* What the options pliant.sim.* say. */
struct sim_latency sim_latency_of(const struct options *options);

/* 0, or -EINVAL with *err: the config cannot run the job. Before anything is written. */
int sim_check_job(const struct job_spec *job, const struct pliant_config *cfg,
                  struct spec_error *err);

int sim_run(const struct sim_setup *setup, struct spec_error *err);

#endif

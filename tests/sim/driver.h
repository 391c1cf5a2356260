/* driver.h - a job as text, simulated by a list of events, with one observer
 *
 *     struct driver d;
 *     driver_read(&d, JOB);
 *     driver_set(&d, "jobmanager.scheduler", "default");
 *     driver_run(&d, events, n_events, until_ms, &watch.observer);
 *     driver_free(&d);
 *
 * What is refused fails the test.
 */
#ifndef PLIANT_TESTS_DRIVER_H
#define PLIANT_TESTS_DRIVER_H

#include "sim/sim.h"

struct driver {
    struct doc_file doc;
    struct job_spec job;
    struct pliant_config cfg; /* defaults at first; resolved by driver_run() */
};

void driver_read(struct driver *d, const char *job);
void driver_set(struct driver *d, const char *option, const char *value);
/* Failures restart after this, without an end. */
void driver_restarts_after(struct driver *d, const char *delay);
/* Deploying takes 5 ms, canceling 20. */
void driver_run(struct driver *d, const struct trace_event *events, size_t n_events,
                int64_t until_ms, struct sim_observer *observer);
void driver_free(struct driver *d);

/* An observer's on_end that has nothing to do. */
int driver_no_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched);

#endif

/* tape.h - what a trace says about the cluster, in memory, to be played many times
 *
 * Kept: nodes that come, drain and go, and failures. What else a trace may have (checkpoints,
 * news of tasks, users' wishes) belongs to one job in one run and is only counted: on a tape
 * different schedulers are compared.
 *
 * A tape does not change once it is read: several threads may play it at the same time.
 *
 * Shapes  steps[]: the slots of all nodes that are up, those that drain too, from each instant at
 *         which that number changes; the first at 0
 * Owner   tape_free() frees all of it, with the events' strings
 * Errors  -EINVAL with *err, -ENOMEM, the errno of reading
 */
#ifndef PLIANT_SIM_TAPE_H
#define PLIANT_SIM_TAPE_H

#include "sim/bound.h"
#include "spec/trace.h"

struct tape {
    char *name; /* the trace's, or its file's without folder and suffix */
    struct VEC(struct trace_event) events;
    struct VEC(struct bound_step) steps;
    int64_t end_ms;    /* of the last event, kept or not */
    uint64_t left_out; /* events */
    struct VEC(void *) blocks;
};

/* All of a trace that is at its first event; `path` is for its name. */
int tape_record(struct trace *trace, const char *path, struct tape *ret, struct spec_error *err);

/* The same of a file. `rules` names the job, so that failures of its tasks can be checked. */
int tape_read(const char *path, const struct trace_rules *rules, struct tape *ret,
              struct spec_error *err);
void tape_free(struct tape *tape);

#endif

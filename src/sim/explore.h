/* explore.h - random runs against the invariants, and the small run that is left of a bad one
 *
 * Run k draws a world and its events from seed + k. After every step: the model's rules,
 * pliant_check(), deadlines that lie ahead; a scheduler that was restored from a snapshot does
 * the same; timers that are due before an event do what they do in a step of their own. After the
 * last step faults stop, and the job must get going; then the events are fed once more, and every
 * action must be the same.
 *
 * A run that fails is shrunk: events are left out as long as the same rule breaks. What remains
 * is written as a recording that `pliant-sim replay` reads.
 *
 * Owner   plain values
 * Errors  -ENOMEM, or the errno of writing the recording
 */
#ifndef PLIANT_SIM_EXPLORE_H
#define PLIANT_SIM_EXPLORE_H

#include <pliant/pliant.h>

struct explore_options {
    uint64_t seed;
    uint64_t runs;
    uint32_t steps;
    const char *dir; /* for the recording of a bad run */
    /* One rule more, asked after every step: NULL, or what is broken. May be NULL. */
    const char *(*rule)(void *ctx, const struct pliant_sched *sched);
    /* Called now and then, with the runs that are done; may be NULL. */
    void (*progress)(void *ctx, uint64_t runs);
    void *ctx; /* of both */
};

struct explore_result {
    uint64_t runs, steps;
    uint64_t hash; /* of all actions of all runs, as text */
    bool bad;      /* the rest is about the first bad run, the last that was made */
    uint64_t seed;
    uint32_t step;    /* of the run, from 0 */
    const char *rule; /* that is broken */
    char detail[256];
    size_t events, events_left; /* before and after it was shrunk */
    char path[1024];            /* of the recording */
};

int explore(const struct explore_options *options, struct explore_result *ret);

#endif

/* bound.h - the most work that any scheduler could have done on a trace
 *
 * The clairvoyant bound: it knows the whole trace. At each change of the offered slots it may go
 * on with the slots it has, if as many are offered (which ones is ignored), restart with any
 * number that is offered then, at the price of restart_ms without work (the first start too), or
 * run nothing. Nothing is ever lost, checkpoints cost nothing, and a node that drains counts until
 * it is down.
 *
 * Exact, in O(changes x slots) time and O(changes + slots) memory.
 *
 * Shapes  steps[n] in order of time, one for each change; offered[i] holds until the next one
 *         speed[n_speeds] by slots: work per second with exactly so many, 0 where the job does
 *         not run with them; slots beyond the last are of no use
 *         runs ascending, they don't overlap
 * Units   ms, slots; work is speed times ms
 * Owner   bound_runs_free() frees what bound_find() filled
 * Errors  -ENOMEM
 */
#ifndef PLIANT_SIM_BOUND_H
#define PLIANT_SIM_BOUND_H

#include <stdint.h>

#include "util/vec.h"

struct bound_step {
    int64_t at_ms;
    uint64_t offered;
};

/* Started at from_ms with so many slots, at work from_ms + restart_ms .. to_ms. */
struct bound_run {
    int64_t from_ms, to_ms;
    uint32_t slots;
};

struct bound_runs VEC(struct bound_run);

struct bound_problem {
    const struct bound_step *steps;
    size_t n_steps;
    int64_t end_ms; /* not before the last step */
    int64_t restart_ms;
    const double *speed;
    uint32_t n_speeds;
};

/* `ret_runs`, if not NULL, is one choice that does so much. */
int bound_find(const struct bound_problem *problem, double *ret_work, struct bound_runs *ret_runs);
void bound_runs_free(struct bound_runs *runs);

#endif

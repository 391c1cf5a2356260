/* sweep.h - which options suit a cluster: a search over those that say when to rescale
 *
 * From each policy that a job can be run with, one option after the other is moved to the value of
 * a coarse grid that gets the most work done, until none helps any more; then the same with values
 * near those found. A move has to gain something, so that of two options that make no difference
 * the default stays.
 *
 * Owner   plain values
 * Errors  those of compare_run(); -EINVAL: -D fixes the policy
 */
#ifndef PLIANT_SIM_SWEEP_H
#define PLIANT_SIM_SWEEP_H

#include "sim/compare.h"
#include "util/duration.h"

enum sweep_option {
    SWEEP_INTERVAL,
    SWEEP_COOLDOWN,
    SWEEP_STABILIZATION,
    SWEEP_MAX_DELAY,
    SWEEP_ACTIVE_CHECKPOINT,
    SWEEP_MIN_INTERVAL, /* of an automatic interval */
    SWEEP_MAX_INTERVAL,
    SWEEP_OPTIONS,
};

/* Each set of options runs with its checkpoint interval and with others around it. */
#define SWEEP_RUNS 5

struct sweep_point {
    const struct compare_policy *policy;
    int64_t values[SWEEP_OPTIONS]; /* ms, or 0 and 1; PLIANT_UNSET: the default */
    double share;                  /* of the bound, the mean of all cells */
    struct compare_result sum;     /* of all runs: SWEEP_RUNS for each cell */
};

#define SWEEP_STARTS 3

struct sweep {
    struct sweep_point own;                  /* what the job's own options come to */
    struct compare_own set;                  /* and what they say */
    struct sweep_point starts[SWEEP_STARTS]; /* policies with nothing else set; Flink's first */
    size_t n_starts;
    struct sweep_point best;
    size_t tried; /* sets of options */
};

/* `base` has all but policies and results; its progress is told how many sets were tried. What -D
 * says is not searched; the policy and who chooses the checkpoint interval must be left to it. */
int sweep(const struct compare *base, struct sweep *ret, struct spec_error *err);

struct sweep_texts {
    char v[SWEEP_OPTIONS][DURATION_TEXT_MAX];
};

/* A point's policy with the options that it sets; `buf` holds their texts. */
struct compare_policy sweep_policy(const struct sweep_point *point, struct sweep_texts *buf);

#endif

/* restart_strategy.h - may the job restart after this failure, and after which delay?
 *
 * On each failure that is decided on: notify, then ask. One instance serves the runtime, a
 * second one the creation of graphs [S-OPT-2].
 *
 * Pure: a plain value; the failure-rate window is an array of its own.
 * Units   ms
 * Owner   restart_strategy_init() allocates the window, _free() frees it
 * Source  S-POL-1..6, S-FAIL-3
 */
#ifndef PLIANT_FAILOVER_RESTART_STRATEGY_H
#define PLIANT_FAILOVER_RESTART_STRATEGY_H

#include "util/alloc.h"
#include "util/prng.h"

struct restart_strategy {
    struct pliant_restart_config cfg; /* its kind is never UNSET */
    int64_t count;                    /* fixed-delay: failures; exponential: attempts since reset */
    int64_t next_at_ms;               /* exponential: the planned restart; PLIANT_NEVER: none */
    int64_t *window;                  /* failure-rate: times of the last n + 1 failures, a ring */
    int64_t window_cap;               /* allocated; grows up to max_failures + 1 */
    int64_t window_n, window_first;
};

/* 0 or -ENOMEM. *cfg is resolved: kind is not UNSET, parameters are in bounds. */
int restart_strategy_init(struct restart_strategy *r, const struct pliant_restart_config *cfg,
                          const struct pliant_alloc *a);
/* Room for n failures in an empty window, for whoever fills it. 0 or -ENOMEM. */
int restart_strategy_reserve(struct restart_strategy *r, const struct pliant_alloc *a, int64_t n);
void restart_strategy_free(struct restart_strategy *r, const struct pliant_alloc *a);

/* A failure at now_ms. Writes whether it is a new attempt (false: merged into the restart that
 * is planned already) [S-POL-4]. 0 or -ENOMEM (the window could not grow). */
int restart_strategy_notify(struct restart_strategy *r, const struct pliant_alloc *a,
                            struct prng *prng, int64_t now_ms, bool *ret_new_attempt);

bool restart_strategy_can_restart(const struct restart_strategy *r, int64_t now_ms);
int64_t restart_strategy_backoff_ms(const struct restart_strategy *r, int64_t now_ms);

/* "fixed-delay (attempts 3, delay 1000 ms)", for whoever it refuses a restart. */
#define RESTART_STRATEGY_TEXT 128
void restart_strategy_text(const struct restart_strategy *r, char text[RESTART_STRATEGY_TEXT]);

#endif

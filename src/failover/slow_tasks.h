/* slow_tasks.h - which attempts of a vertex take suspiciously long?
 *
 * The baseline is the median of the quickest finished ones (by time per byte of input), times a
 * factor. An attempt that has run for at least the lower bound and is no better than that is slow.
 *
 * Units   ms, bytes
 * Errors  -ENOMEM
 * Source  section 6.1 of the rules of failover
 */
#ifndef PLIANT_FAILOVER_SLOW_TASKS_H
#define PLIANT_FAILOVER_SLOW_TASKS_H

#include <pliant/pliant.h>

#define SLOW_BYTES_UNKNOWN (-1)

struct slow_limits {
    double ratio;      /* of the tasks that must have finished, 0 <= ratio < 1 */
    double multiplier; /* > 0 */
    int64_t lower_bound_ms;
};

/* The current attempts of the tasks; several may be of one task, of which one at most finished. */
struct slow_attempt {
    enum pliant_task_state state;
    int64_t time_ms; /* from deployment to the end, or until now; 0: not deployed yet */
    int64_t bytes;   /* of input, or SLOW_BYTES_UNKNOWN */
};

/* Have enough of its tasks finished, and not all? Else none is slow. */
bool slow_tasks_comparable(const struct slow_limits *limits, uint32_t n_tasks, uint32_t n_finished);

/* slow[i] says it of attempt i. `n_tasks` is the parallelism of the vertex. */
int slow_tasks_find(const struct slow_limits *limits, uint32_t n_tasks,
                    const struct slow_attempt *attempts, size_t n, const struct pliant_alloc *a,
                    bool *slow);

#endif

/* batch.h - the parallelism of a vertex of a batch job, and who reads what, from sizes
 *
 * When all that a vertex reads is written, its parallelism follows from how much there is: about
 * `volume` bytes a task, within bounds, cut where the data can be cut.
 *
 * Shapes  bytes[p * subpartitions + s] of an input, or NULL where only sums[s], over the
 *         partitions, were kept: enough for inputs of which batch_needs_matrix() is false
 * Units   bytes, int64_t
 * Owner   batch_plan_free()
 * Errors  -EINVAL: what no scheduler could run (bounds that contradict, inputs that don't match);
 *         -ENOMEM
 * Source  section 5 of the rules of failover
 */
#ifndef PLIANT_ALLOCATOR_BATCH_H
#define PLIANT_ALLOCATOR_BATCH_H

#include <pliant/job.h>

#include "util/vec.h"

struct batch_limits {
    int64_t volume;   /* wanted for a task, >= 1 */
    int64_t min, max; /* parallelism of any vertex, 1 <= min <= max */
    int64_t default_source_parallelism;
    double skew_factor;     /* > 0 */
    int64_t skew_threshold; /* > 0 */
};

struct batch_vertex {
    int64_t parallelism; /* fixed: sources only; -1: not */
    int64_t min;         /* -1: none */
    int64_t max;
};

struct batch_input {
    enum pliant_pattern pattern;
    uint32_t partitions, subpartitions;
    const int64_t *bytes; /* or NULL */
    const int64_t *sums;  /* where `bytes` is NULL */
    bool broadcast;
    bool single;  /* subpartition 0 holds all, and is what everybody reads */
    bool inter;   /* keys are correlated across inputs: what one side splits the other doubles */
    bool intra;   /* records of one key stay together */
    int64_t type; /* inputs of one logical side share it */
};

/* Partitions p0..p1, of each the subpartitions s0..s1; all are included. */
struct batch_range {
    uint32_t p0, p1, s0, s1;
};

struct batch_plan {
    uint32_t parallelism;
    /* What task k reads of input i: ranges[first[i * (parallelism + 1) + k] ..
     * first[... + 1] - 1], by p0, then s0. */
    struct VEC(struct batch_range) ranges;
    uint32_t *first; /* NULL without inputs */
};

/* Decide. `inputs` are in the order of the vertex's edges. */
int batch_decide(const struct batch_limits *limits, const struct batch_vertex *vertex,
                 const struct batch_input *inputs, size_t n_inputs, const struct pliant_alloc *a,
                 struct batch_plan *ret);

/* What the tasks of a vertex with a fixed parallelism read. */
int batch_distribute(uint32_t parallelism, const struct batch_input *inputs, size_t n_inputs,
                     const struct pliant_alloc *a, struct batch_plan *ret);

void batch_plan_free(struct batch_plan *plan, const struct pliant_alloc *a);

/* Are the sizes of single partitions looked at, or only their sums? */
bool batch_needs_matrix(const struct batch_input *input);

/* How many subpartitions a producer writes for a consumer [5.2]. */
uint32_t batch_subpartitions(enum pliant_pattern pattern, bool broadcast, uint32_t producers,
                             int64_t consumer_parallelism, int64_t consumer_max);

#endif

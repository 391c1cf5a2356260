/* regions.h - pipelined regions: tasks that run, fail and restart together
 *
 * Tasks joined by pipelined connections form a component; components that wait for each other's
 * blocking results in a circle could never be scheduled one after the other, so each strongly
 * connected set of them is one region.
 *
 * Shapes  of_task[tasks]: the region of a task. Regions are numbered in a topological order: what a
 *         region reads from another one comes from a lower number. members: the tasks of region r
 *         are members[first[r] .. first[r + 1] - 1], ascending
 * Cost    O(tasks + pointwise connections + edges x parallelism), no recursion
 * Owner   regions_free()
 * Errors  -ENOMEM
 * Source  section 1.3 of the rules of failover
 */
#ifndef PLIANT_GRAPH_REGIONS_H
#define PLIANT_GRAPH_REGIONS_H

#include "graph/topology.h"

struct regions {
    const struct pliant_alloc *alloc;
    uint32_t n, n_tasks;
    uint32_t *of_task;         /* [n_tasks] */
    uint32_t *first, *members; /* [n + 1], [n_tasks] */
    size_t cap;                /* where regions are added: of n_tasks, and of n */
};

/* None, of no tasks. */
int regions_begin(struct regions *r, const struct pliant_alloc *a);
/* The next `n` tasks are a region each. What they read is made by earlier ones. */
int regions_add_single(struct regions *r, uint32_t n);

int regions_init(struct regions *r, const struct topology *t, const struct pliant_alloc *a);
void regions_free(struct regions *r);

#endif

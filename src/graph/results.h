/* results.h - which results of blocking edges are there, and on which node
 *
 * A result is what one attempt of a producer writes for one edge. It is tracked from the moment the
 * attempt gets its slot until the attempt fails or is canceled, is reset, its node is lost, or the
 * result is released. Only a tracked one can be read again.
 *
 * Shapes  by partition: first_partition[edge] + producer's subtask; a pipelined edge has none
 * Owner   results_free(); the topology is borrowed
 * Errors  -ENOMEM
 * Source  sections 1.4 and 2 of the rules of failover
 */
#ifndef PLIANT_GRAPH_RESULTS_H
#define PLIANT_GRAPH_RESULTS_H

#include "graph/topology.h"

struct results {
    const struct topology *topology;
    const struct pliant_alloc *alloc;
    uint32_t n_partitions;
    size_t cap_tasks, cap_partitions;
    uint32_t *first_partition; /* [edges] */
    bool *tracked;             /* [partitions] */
    uint64_t *holder;          /* [tasks] `arrival` of the node of the attempt that made them */
};

/* A vertex has got its tasks. */
int results_add(struct results *r, uint32_t vertex);
/* All vertices that have tasks. */
int results_init(struct results *r, const struct topology *t, const struct pliant_alloc *a);
void results_free(struct results *r);

static inline uint32_t results_partitions(const struct results *r)
{
    return r->n_partitions;
}

/* Of a pipelined edge never. */
static inline bool results_tracked(const struct results *r, uint32_t edge, uint32_t producer)
{
    const struct pliant_edge_spec *spec = &r->topology->job->edges[edge];

    return spec->exchange == PLIANT_BLOCKING &&
           producer < topology_parallelism(r->topology, spec->from) &&
           r->tracked[r->first_partition[edge] + producer];
}

/* A task (flat) has its slot, on this node. */
void results_begin(struct results *r, uint32_t task, uint64_t holder);
/* What it wrote for an edge, or for all, is not there any more. */
void results_forget(struct results *r, uint32_t edge, uint32_t producer);
void results_forget_task(struct results *r, uint32_t task);

#endif

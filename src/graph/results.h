/* results.h - which results of blocking edges are there, and on which node each is
 *
 * A result is what one attempt of a producer writes for one edge. It is tracked from the moment the
 * attempt gets its slot until the attempt fails or is canceled, is reset, its node is lost, or the
 * result is released. Only a tracked one can be read again.
 *
 * Where results outlive their nodes (pliant.results.outlive-nodes) none is on one, and losing a
 * node loses nothing of what has finished.
 *
 * Shapes  by partition: first_partition[edge] + producer's subtask; a pipelined edge has none.
 *         Nodes are rows of the pool
 * Cost    what a task begins or loses: its edges; to find what is on a node: what is there
 * Owner   results_free(); the topology is borrowed
 * Errors  -ENOMEM
 * Source  sections 1.4 and 2 of the rules of failover
 */
#ifndef PLIANT_GRAPH_RESULTS_H
#define PLIANT_GRAPH_RESULTS_H

#include "graph/topology.h"
#include "util/sort.h"

/* Where a task's tracked results are, all on one node. */
struct held {
    uint32_t node;          /* row, and one; 0: it has none */
    uint32_t before, after; /* tasks in the node's list, and one; 0: none */
};

struct results {
    const struct topology *topology;
    const struct pliant_alloc *alloc;
    bool outlive; /* none is on a node */
    uint32_t n_partitions;
    size_t cap_tasks, cap_partitions, cap_nodes;
    uint32_t *first_partition; /* [edges] */
    bool *tracked;             /* [partitions] */
    struct held *held;         /* [tasks] */
    uint32_t *first_on;        /* [cap_nodes] the first task of a node's list, and one */
};

/* A vertex has got its tasks. */
int results_add(struct results *r, uint32_t vertex);
/* All vertices that have tasks. */
int results_init(struct results *r, const struct topology *t, bool outlive,
                 const struct pliant_alloc *a);
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
int results_begin(struct results *r, uint32_t task, uint32_t node);
/* What it wrote for an edge, or for all, is not there any more. */
void results_forget(struct results *r, uint32_t edge, uint32_t producer);
void results_forget_task(struct results *r, uint32_t task);

/* How many results are on a node; which: by edge (`major`), then producer (`minor`), with the task
 * (`value`). items[] has room for twice as many. */
size_t results_count_on(const struct results *r, uint32_t node);
void results_list_on(const struct results *r, uint32_t node, struct sort_item *items, size_t n);

/* For who reads a snapshot, where tracked[] is there already: where the task's results are. */
int results_put(struct results *r, uint32_t task, uint32_t node);
/* Each task is in the list where it should be. */
bool results_listed(const struct results *r);

#endif

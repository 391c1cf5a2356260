/* topology.h - which tasks an edge connects, at given parallelisms
 *
 * Tasks are numbered flat: task = first_task[vertex] + subtask. Nothing is stored for each
 * connection: of a pointwise edge the neighbours of a subtask are a range, of an all-to-all edge
 * they are everybody.
 *
 * A blocking edge's partitions (one for each producer) fall into groups that the same consumers
 * read: all of an all-to-all edge, those of one consumer where producers are at least as many, else
 * each producer's own. Groups are numbered flat as well: first_group[edge] + number.
 *
 * Shapes  first_task[n_vertices + 1]; in_edges, out_edges by vertex, in declaration order
 * Owner   topology_free(); the job is borrowed
 * Errors  -ENOMEM
 * Source  sections 1.1 and 1.4 of the rules of failover
 */
#ifndef PLIANT_GRAPH_TOPOLOGY_H
#define PLIANT_GRAPH_TOPOLOGY_H

#include "graph/job.h"

struct topology {
    const struct pliant_job *job;
    const struct pliant_alloc *alloc;
    uint32_t *first_task;
    uint32_t *in_first, *in_edges;   /* [n_vertices + 1] into [n_edges] */
    uint32_t *out_first, *out_edges; /* the same */
    uint32_t *first_group;           /* [n_edges + 1]; a pipelined edge has none */
    uint32_t *vertex_of;             /* [tasks], index */
    uint8_t *patterns;               /* [n_edges] enum pliant_pattern, as it holds */
};

struct range {
    uint32_t first, end; /* end is excluded */
};

/* `rewire`: a pointwise edge between different parallelisms is all-to-all [S-CEG-11]. */
int topology_init(struct topology *t, const struct pliant_job *job, const uint32_t *parallelism,
                  bool rewire, const struct pliant_alloc *a);
void topology_free(struct topology *t);

static inline uint32_t topology_tasks(const struct topology *t)
{
    return t->first_task[t->job->n_vertices];
}

static inline bool topology_all_to_all(const struct topology *t, uint32_t edge)
{
    return t->patterns[edge] == PLIANT_ALL_TO_ALL;
}

static inline uint32_t topology_parallelism(const struct topology *t, uint32_t vertex)
{
    return t->first_task[vertex + 1] - t->first_task[vertex];
}

/* Subtasks at the other end of an edge. */
struct range topology_consumers(const struct topology *t, uint32_t edge, uint32_t producer);
struct range topology_producers(const struct topology *t, uint32_t edge, uint32_t consumer);

/* The same of a pointwise edge between any two parallelisms. */
struct range pointwise_consumers(uint32_t producers, uint32_t consumers, uint32_t producer);
struct range pointwise_producers(uint32_t producers, uint32_t consumers, uint32_t consumer);

/* Groups of a blocking edge. */
uint32_t topology_group_read(const struct topology *t, uint32_t edge, uint32_t consumer);
struct range topology_group_producers(const struct topology *t, uint32_t edge, uint32_t group);
struct range topology_group_consumers(const struct topology *t, uint32_t edge, uint32_t group);

#endif

/* topology.h - which tasks an edge connects, at given parallelisms
 *
 * Vertices get their tasks all at once, or one after the other as their inputs get done. Tasks are
 * numbered flat, in the order in which they came: task = first_task[vertex] + subtask. Nothing is
 * stored for each connection: of a pointwise edge the neighbours of a subtask are a range, of an
 * all-to-all edge they are everybody. An edge is wired once both ends have tasks; before, nobody is
 * anybody's neighbour. The ranges of a pointwise edge follow from the parallelisms, or are given:
 * cut from data.
 *
 * A blocking edge's partitions (one for each producer) fall into groups that the same consumers
 * read: all of an all-to-all edge, those of one consumer where producers are at least as many, else
 * each producer's own; with given ranges, those of consumers whose ranges overlap. Groups are
 * numbered flat as well: first_group[edge] + number.
 *
 * Shapes  by vertex and by edge; in_edges, out_edges by vertex, in declaration order
 * Owner   topology_free(); the job is borrowed
 * Errors  -ENOMEM
 * Source  sections 1.1 and 1.4 of the rules of failover
 */
#ifndef PLIANT_GRAPH_TOPOLOGY_H
#define PLIANT_GRAPH_TOPOLOGY_H

#include "graph/job.h"

struct range {
    uint32_t first, end; /* end is excluded */
};

/* A pointwise edge with given ranges. */
struct wiring {
    struct range *producers; /* [consumers] neither end ever goes back */
    struct range *consumers; /* [producers] */
    uint32_t *group_of;      /* [consumers] number within the edge */
    struct wired_group {
        struct range producers, consumers;
    } * groups; /* [n_groups] */
    uint32_t n_groups;
};

struct topology {
    const struct pliant_job *job;
    const struct pliant_alloc *alloc;
    uint32_t n_tasks, n_groups;
    uint32_t *first_task, *parallelism; /* [n_vertices]; 0: it has no tasks yet */
    uint32_t *in_first, *in_edges;      /* [n_vertices + 1] into [n_edges] */
    uint32_t *out_first, *out_edges;    /* the same */
    uint32_t *first_group;              /* [n_edges]; a pipelined edge has no groups */
    uint32_t *vertex_of;                /* [tasks], index */
    size_t vertex_of_cap;
    uint8_t *patterns;       /* [n_edges] enum pliant_pattern, as it holds */
    struct wiring **wirings; /* [n_edges] NULL: as the parallelisms say */
};

/* No vertex has tasks. */
int topology_begin(struct topology *t, const struct pliant_job *job, const struct pliant_alloc *a);
/* Tasks for a vertex that has none. `ranges`: for each edge that ends there (in the order of
 * in_edges) the producers that each task reads, or NULL for what follows from the parallelisms;
 * NULL: that for all. Ranges that leave a producer out, or go back, make the edge all-to-all: who
 * may read more than he does is safe. */
int topology_add(struct topology *t, uint32_t vertex, uint32_t parallelism,
                 const struct range *const *ranges);

/* All vertices. `rewire`: a pointwise edge between different parallelisms is all-to-all
 * [S-CEG-11]. */
int topology_init(struct topology *t, const struct pliant_job *job, const uint32_t *parallelism,
                  bool rewire, const struct pliant_alloc *a);
void topology_free(struct topology *t);

static inline uint32_t topology_tasks(const struct topology *t)
{
    return t->n_tasks;
}

static inline bool topology_all_to_all(const struct topology *t, uint32_t edge)
{
    return t->patterns[edge] == PLIANT_ALL_TO_ALL;
}

static inline uint32_t topology_parallelism(const struct topology *t, uint32_t vertex)
{
    return t->parallelism[vertex];
}

static inline bool topology_wired(const struct topology *t, uint32_t edge)
{
    return t->parallelism[t->job->edges[edge].from] > 0 &&
           t->parallelism[t->job->edges[edge].to] > 0;
}

/* Subtasks at the other end of an edge; none while it is not wired. */
struct range topology_consumers(const struct topology *t, uint32_t edge, uint32_t producer);
struct range topology_producers(const struct topology *t, uint32_t edge, uint32_t consumer);

/* The same of a pointwise edge between any two parallelisms. */
struct range pointwise_consumers(uint32_t producers, uint32_t consumers, uint32_t producer);
struct range pointwise_producers(uint32_t producers, uint32_t consumers, uint32_t consumer);

/* Groups of a blocking edge that is wired. */
uint32_t topology_group_read(const struct topology *t, uint32_t edge, uint32_t consumer);
struct range topology_group_producers(const struct topology *t, uint32_t edge, uint32_t group);
struct range topology_group_consumers(const struct topology *t, uint32_t edge, uint32_t group);

#endif

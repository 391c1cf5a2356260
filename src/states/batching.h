/* batching.h - batch jobs: a vertex gets its tasks when all that it reads has been written
 *
 * Sources at the start, the others once all tasks of all producers have finished, in the same step.
 * How many tasks, and what each of them reads, follows from the sizes that the producers reported
 * (allocator/batch.h); where the job fixes the parallelism, or nothing is to be decided, the shares
 * are equal ones. Once decided nothing of it changes, whoever restarts and writes something else.
 *
 * Who reads which partitions, for inputs, releases and restarts: of an all-to-all edge everybody
 * reads all of them, also where a skewed subpartition was split and some read less; that is safe.
 * Of a pointwise edge each task reads a range of them.
 *
 * Shapes  by vertex, by edge
 * Owner   batching_free()
 * Source  section 5 of the rules of failover
 */
#ifndef PLIANT_STATES_BATCHING_H
#define PLIANT_STATES_BATCHING_H

#include <pliant/pliant.h>

#include "allocator/batch.h"
#include "graph/sizes.h"
#include "util/vec.h"

struct batching_vertex {
    bool decided;
    uint32_t n_open;        /* tasks that have not finished */
    uint32_t missing;       /* edges from producers with open tasks, or without tasks yet */
    struct batch_plan plan; /* inputs in the order of topology.in_edges */
    int64_t *input_bytes;   /* [tasks]; -1: unknown, of sources [6.1] */
};

struct batching {
    const struct pliant_alloc *alloc;
    struct batching_vertex *vertices; /* NULL: no graph, or another way: nothing is decided */
    struct sizes *sizes; /* [edges] from when the producer has its tasks until the consumer has */
    struct VEC(uint32_t) order; /* vertices that have their tasks, as they got them */
    struct VEC(uint32_t) ready; /* to be decided in this step */
    int64_t total;              /* bytes in all of `sizes` */
    uint32_t n_vertices, n_edges;
};

struct pliant_sched;
struct state;

void batching_init(struct batching *b, const struct pliant_alloc *a);
void batching_free(struct batching *b);
/* Key groups: as the job says, else as many as any vertex may have tasks [5.2]. */
uint32_t batching_max_parallelism(const struct pliant_sched *s, uint32_t v);

/* A graph without tasks begins, or is read. */
void batching_begin(struct pliant_sched *s);
void batching_end(struct pliant_sched *s);
void batching_decide_sources(struct pliant_sched *s);

/* TASK_FINISHED: take note of what it wrote, if the task is current. */
void batching_wrote(struct pliant_sched *s, const struct pliant_event *ev);
/* A task has finished, or what it has made does not count any more. */
void batching_task_done(struct pliant_sched *s, uint32_t vertex);
void batching_task_undone(struct pliant_sched *s, uint32_t vertex);
/* Decide what can be decided: STAY, or the state after a failure. */
struct state batching_look(struct pliant_sched *s);

/* Subpartitions of what a vertex writes; it has tasks. */
uint32_t batching_subpartitions(const struct pliant_sched *s, uint32_t edge);
/* What a task reads of an edge that ends at its vertex, which is decided. */
const struct batch_range *batching_reads(const struct pliant_sched *s, uint32_t edge,
                                         uint32_t subtask, size_t *ret_n);

/* Bytes that a task reads, or -1: unknown [6.1]. */
static inline int64_t batching_input_bytes(const struct batching *b, uint32_t v, uint32_t subtask)
{
    return b->vertices ? b->vertices[v].input_bytes[subtask] : -1;
}

/* For who reads a snapshot: this vertex has got its tasks like this; the plan and input_bytes pass
 * to the vertex. */
void batching_restore(struct pliant_sched *s, uint32_t v, struct batch_plan plan,
                      int64_t *input_bytes);
/* ... and this is what a producer wrote. -EINVAL: it is not; -ENOMEM. */
int batching_restore_sizes(struct pliant_sched *s, struct sizes *z, uint32_t partition,
                           const uint8_t *packed, size_t n);
/* The first broken invariant, or NULL. */
const char *batching_check(const struct pliant_sched *s);

#endif

/* job.h - what shall run: vertices joined by edges
 *
 * A job is built once from a description, checked whole, and never changes. Several
 * schedulers may borrow one job.
 *
 * Shapes  vertices[n_vertices] in declaration order: vertex i gets id i + 1
 * Units   parallelism is a count of subtasks, 1..PLIANT_MAX_PARALLELISM;
 *         max_parallelism is the number of key groups
 * Owner   pliant_job_new() copies everything; the caller owns the job
 * Source  sections 1 and 2 of the allocator's rules; S-PAR-8, S-GEN-14; sections 0 and 1 of the
 *         worker groups' rules
 */
#ifndef PLIANT_JOB_H
#define PLIANT_JOB_H

#include <pliant/config.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLIANT_MAX_PARALLELISM 32768u
#define PLIANT_MAX_VERTICES 100000u
#define PLIANT_WORKER_VERTEX "worker" /* the id of a worker group's vertex */
#define PLIANT_NAME_MAX 128u          /* bytes of a name of a vertex, group, node, zone, label */

/* Ids are distinct types, so that a node cannot be passed for a slot. v == 0 is "none". */
#define PLIANT_ID(name)                                                                            \
    typedef struct name {                                                                          \
        uint32_t v;                                                                                \
    } name
PLIANT_ID(pliant_vertex_id);
PLIANT_ID(pliant_node_id);
PLIANT_ID(pliant_slot_id);

enum pliant_pattern { PLIANT_ALL_TO_ALL, PLIANT_POINTWISE };
enum pliant_exchange { PLIANT_PIPELINED, PLIANT_BLOCKING };

/* How records find their subpartition; what AdaptiveBatch may do with an edge follows from it
 * [5.3]. */
enum pliant_partitioner {
    PLIANT_PARTITIONER_DEFAULT, /* all-to-all: hash; pointwise: rescale */
    PLIANT_PARTITIONER_HASH,
    PLIANT_PARTITIONER_CUSTOM,
    PLIANT_PARTITIONER_REBALANCE,
    PLIANT_PARTITIONER_BROADCAST,
    PLIANT_PARTITIONER_FORWARD, /* this and the next: pointwise */
    PLIANT_PARTITIONER_RESCALE,
};

struct pliant_vertex_spec {
    const char *id;          /* unique; letters, digits, '.', '_', '-' */
    int64_t parallelism;     /* wanted; 0: not fixed. AdaptiveBatch decides it, others take 1 */
    int64_t min_parallelism; /* 0: 1 */
    int64_t max_parallelism; /* 0: derived from parallelism [S-PAR-8] */
    const char *slot_sharing_group; /* NULL: "default" */
    bool no_concurrent_attempts;    /* never run twice at a time: not by speculation either */
};

struct pliant_edge_spec {
    uint32_t from, to; /* index of a vertex, from 0 */
    enum pliant_pattern pattern;
    enum pliant_exchange exchange;
    enum pliant_partitioner partitioner;
    uint32_t input;  /* edges of one logical input of their consumer (a union) share a number, from
                      * 1; 0: an input of its own */
    bool splittable; /* records of one key may be read by several tasks: the side of a join that a
                      * skewed key is split on */
};

struct pliant_job_spec {
    const char *name; /* NULL: "job" */
    const struct pliant_vertex_spec *vertices;
    size_t n_vertices;
    const struct pliant_edge_spec *edges;
    size_t n_edges;
    bool worker_group; /* ranks that start and stop together: one vertex,
                        * PLIANT_WORKER_VERTEX, and no edges; subtask i of it
                        * is rank i, and its max_parallelism is its parallelism */
};

struct pliant_job; /* opaque */

/* Check and copy a description.
 * Errors: -EINVAL (*err says which vertex or edge, and what is accepted), -ENOMEM;
 * *ret is then untouched. `alloc` NULL: the C library's. `err` may be NULL. */
PLIANT_API int pliant_job_new(const struct pliant_job_spec *spec, const struct pliant_alloc *alloc,
                              struct pliant_job **ret, struct pliant_error *err);

/* Free *job and set it to NULL. Fine on NULL. */
PLIANT_API void pliant_job_destroy(struct pliant_job **job);

/* Can a scheduler with this (resolved) config run the job? S-GEN-14 and the bounds that
 * depend on the mode. 0, or -EINVAL with *err. pliant_sched_new() asks the same. */
PLIANT_API int pliant_job_check(const struct pliant_job *job, const struct pliant_config *cfg,
                                struct pliant_error *err);

/* Of an id or a name that is not the job's: NULL, unset, 0. Texts live as long as the job. */
PLIANT_API const char *pliant_job_name(const struct pliant_job *job);
PLIANT_API bool pliant_job_is_group(const struct pliant_job *job); /* a worker group */
/* It has edges, all of them blocking: AdaptiveBatch is its scheduler, unless one is named. */
PLIANT_API bool pliant_job_is_batch(const struct pliant_job *job);
PLIANT_API uint32_t pliant_job_vertices(const struct pliant_job *job); /* ids are 1..this */
PLIANT_API uint32_t pliant_job_groups(const struct pliant_job *job);
PLIANT_API const char *pliant_job_vertex_name(const struct pliant_job *job,
                                              pliant_vertex_id vertex);
PLIANT_API pliant_vertex_id pliant_job_vertex_find(const struct pliant_job *job, const char *name);
PLIANT_API uint32_t pliant_job_vertex_parallelism(const struct pliant_job *job,
                                                  pliant_vertex_id vertex);
PLIANT_API uint32_t pliant_job_vertex_max_parallelism(const struct pliant_job *job,
                                                      pliant_vertex_id vertex);
PLIANT_API const char *pliant_job_vertex_group(const struct pliant_job *job,
                                               pliant_vertex_id vertex);

PLIANT_API size_t pliant_job_edges(const struct pliant_job *job);
/* Edge i in declaration order, or NULL behind the last. Borrowed. */
PLIANT_API const struct pliant_edge_spec *pliant_job_edge(const struct pliant_job *job, size_t i);

/* Key groups `first`..`last` (inclusive) of `subtask` at `parallelism` with `max_parallelism`
 * key groups [S-LOC-2]. Needs 1 <= parallelism <= max and subtask < parallelism: -EINVAL. */
PLIANT_API int pliant_key_group_range(uint32_t max_parallelism, uint32_t parallelism,
                                      uint32_t subtask, uint32_t *first, uint32_t *last);

#ifdef __cplusplus
}
#endif
#endif /* PLIANT_JOB_H */

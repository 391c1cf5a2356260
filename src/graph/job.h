/* job.h - the job as the core sees it: checked, flat, never changing
 *
 * Shapes  vertices by index (id - 1) in declaration order; groups by index in order of first
 *         appearance; topological[] is an order of vertex indices in which every edge points
 *         forward, ties by index [S-EXE-1]
 * Owner   the job owns all that it points to; freed by pliant_job_destroy()
 */
#ifndef PLIANT_GRAPH_JOB_H
#define PLIANT_GRAPH_JOB_H

#include <pliant/job.h>

#include "util/alloc.h"

struct job_vertex {
    const char *name;
    uint32_t parallelism, min_parallelism, max_parallelism;
    bool fixed;   /* the job says its parallelism; else that is 1 */
    bool has_max; /* ... its maximum; else that follows from its parallelism */
    bool no_concurrent_attempts;
    uint32_t group;
};

struct pliant_job {
    const struct pliant_alloc *alloc;
    const char *name;
    bool worker_group;
    struct job_vertex *vertices;
    uint32_t n_vertices;
    const char **groups; /* names */
    uint32_t n_groups;
    uint32_t *group_of;      /* [n_vertices], the same as vertices[].group, for the allocator */
    uint32_t *topological;   /* [n_vertices] */
    uint32_t *group_first;   /* [n_groups + 1] into group_members: the vertices of each group */
    uint32_t *group_members; /* [n_vertices] by group, then declaration order */
    struct pliant_edge_spec *edges;
    size_t n_edges;
    uint64_t fingerprint; /* of all of the above, so that a snapshot finds its job */
    /* inside job.c: hash of name -> vertex, and its memory [n_vertices] */
    struct job_name *names, *name_entries;
    char *strings; /* all names, one after the other */
};

#endif

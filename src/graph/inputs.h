/* inputs.h - which regions may start?
 *
 * A region can start when every partition that it reads from outside is consumable: of a blocking
 * edge, when all producers of the group have finished. What it reads from its own tasks counts for
 * nothing.
 *
 * Shapes  by region, by group (topology.h), by task
 * Cost    of a task that finishes or is reset: the groups it writes; where the last producer of a
 *         group is concerned, its readers too
 * Owner   inputs_free(); topology and regions are borrowed
 * Errors  -ENOMEM
 * Source  section 1.4 of the rules of failover
 */
#ifndef PLIANT_GRAPH_INPUTS_H
#define PLIANT_GRAPH_INPUTS_H

#include "graph/regions.h"

struct inputs {
    const struct topology *topology;
    const struct regions *regions;
    const struct pliant_alloc *alloc;
    size_t cap_tasks, cap_groups, cap_regions;
    bool *finished;           /* [tasks] */
    uint32_t *open_producers; /* [groups] outside of their readers' regions, not finished */
    uint32_t *open_reads;     /* [regions] (task, edge) that wait for such a group */
};

/* The regions of all that is there; nobody has finished yet. */
int inputs_init(struct inputs *in, const struct topology *t, const struct regions *r,
                const struct pliant_alloc *a);
/* A vertex has got its tasks, and they their regions; what it reads is wired. */
int inputs_add(struct inputs *in, uint32_t vertex);
void inputs_free(struct inputs *in);

static inline bool inputs_ready(const struct inputs *in, uint32_t region)
{
    return in->open_reads[region] == 0;
}

/* A task has finished: `ready` is called for each region that waited for nothing else. */
void inputs_finished(struct inputs *in, uint32_t task, void (*ready)(void *ctx, uint32_t region),
                     void *ctx);

/* What a task wrote cannot be read any more, or soon will not be; `waits` is called for each
 * region that has to wait for it and was ready before. */
void inputs_unfinished(struct inputs *in, uint32_t task, void (*waits)(void *ctx, uint32_t region),
                       void *ctx);

#endif

/* restart_set.h - a task failed, or several: which regions restart?
 *
 * From the failed task's region: a region that restarts needs its inputs again, so the producers of
 * results that are not available restart too; and what it made will be made anew, so everybody who
 * reads that restarts. Regions whose tasks were not started are walked through as well.
 *
 * The search keeps marks from one call to the next, so that its cost follows the regions that it
 * visits and their connections, not the job. An all-to-all edge is looked at once in each
 * direction; what one of several tasks has led to is not walked again for the next.
 *
 * Owner   restart_search_free(); topology and regions are borrowed; found[] is valid until the next
 *         call
 * Errors  -ENOMEM
 * Source  section 2 of the rules of failover
 */
#ifndef PLIANT_FAILOVER_RESTART_SET_H
#define PLIANT_FAILOVER_RESTART_SET_H

#include "graph/regions.h"

struct restart_search {
    const struct topology *topology;
    const struct regions *regions;
    const struct pliant_alloc *alloc;
    uint32_t *region_marks;                   /* [regions]: the call that visited it */
    uint32_t *edge_in_marks, *edge_out_marks; /* [edges] all-to-all edges, in both directions */
    size_t cap;                               /* of regions */
    uint32_t call;
    uint32_t *found; /* [regions], in the order of the search */
    uint32_t n_found;
};

int restart_search_init(struct restart_search *s, const struct topology *t, const struct regions *r,
                        const struct pliant_alloc *a);
/* Regions were added. */
int restart_search_add(struct restart_search *s);
void restart_search_free(struct restart_search *s);

/* Can the partition that this producer (a flat task) wrote on a blocking edge be read again? */
typedef bool restart_available(const void *ctx, uint32_t edge, uint32_t producer);

/* Fill found[] with the regions that are involved. */
void restart_search(struct restart_search *s, uint32_t failed_task, restart_available *available,
                    const void *ctx);

/* The same of several tasks that failed together: the regions of all, each once, in the order in
 * which searches of their own would come upon them. */
void restart_search_begin(struct restart_search *s);
void restart_search_go_on(struct restart_search *s, uint32_t failed_task,
                          restart_available *available, const void *ctx);

#endif

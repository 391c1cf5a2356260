/* releases.h - when may blocking results be released?
 *
 * When the last task of a region finishes, each group of partitions that it reads and whose readers
 * have all finished is released. A reset task makes its region unfinished; when it finishes again,
 * its groups are reported again.
 *
 * Shapes  by region, by group (topology.h)
 * Cost    of an event that ends a region: its tasks and what is released; else O(1)
 * Owner   releases_free(); topology and regions are borrowed
 * Errors  -ENOMEM
 * Source  section 1.4 of the rules of failover
 */
#ifndef PLIANT_GRAPH_RELEASES_H
#define PLIANT_GRAPH_RELEASES_H

#include "graph/regions.h"

struct releases {
    const struct topology *topology;
    const struct regions *regions;
    const struct pliant_alloc *alloc;
    uint32_t n_regions; /* that are counted */
    size_t cap_tasks, cap_groups, cap_regions;
    bool *finished;         /* [tasks] */
    uint32_t *open_tasks;   /* [regions] that have not finished */
    uint32_t *open_readers; /* [groups] tasks that read it, in unfinished regions */
};

int releases_init(struct releases *l, const struct topology *t, const struct regions *r,
                  const struct pliant_alloc *a);
/* Regions were added, and what they read is wired. */
int releases_add(struct releases *l);
void releases_free(struct releases *l);

/* A task has finished: `release` is called for each group that nobody will read any more. */
void releases_finished(struct releases *l, uint32_t task,
                       void (*release)(void *ctx, uint32_t edge, struct range producers),
                       void *ctx);

/* A task was reset, or is not finished for another reason. */
void releases_unfinished(struct releases *l, uint32_t task);

#endif

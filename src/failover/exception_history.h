/* exception_history.h - what failed: the present incarnation's failures, and past entries
 *
 * Failures of one incarnation are collected in order; when its graph is down they become one
 * entry: the first is its root, the others are concurrent to it [S-HIST-1]. Entries form a
 * bounded FIFO [S-HIST-3]; an entry keeps at most FAILURES_KEPT failures and counts the rest.
 *
 * Labels are put on each as it comes, by rules that it does not own [P-FO-5].
 *
 * Owner   texts are copied; failures_free()
 * Errors  -ENOMEM, nothing changed
 */
#ifndef PLIANT_FAILOVER_EXCEPTION_HISTORY_H
#define PLIANT_FAILOVER_EXCEPTION_HISTORY_H

#include <pliant/pliant.h>

#include "failover/labels.h"
#include "util/vec.h"

#define FAILURES_KEPT 64u

struct failure_entry {
    struct VEC(struct pliant_failure_item) items;
    uint64_t n_more;
    struct pliant_failure view; /* of the above, for the outside */
    struct failure_entry *next_dead;
};

struct failures {
    const struct pliant_alloc *alloc;
    const struct label_rules *rules; /* NULL: no labels */
    const struct pliant_job *job;    /* whose vertices failures name, where there are rules */
    struct failure_entry present;
    struct failure_entry **ring; /* [size], made when first needed */
    uint32_t size, n, first;     /* entries; first = the oldest */
    struct failure_entry *dead;  /* evicted, but an action of this step may show them */
};

void failures_init(struct failures *f, const struct pliant_alloc *a, uint32_t size);
void failures_free(struct failures *f);
/* The step is over: free what was evicted in it. */
void failures_bury(struct failures *f);

/* Copies the texts of *item; NULL is "". Its labels are found anew. */
int failures_add(struct failures *f, const struct pliant_failure_item *item);

/* The same in front of all others. */
int failures_add_first(struct failures *f, const struct pliant_failure_item *item);

static inline bool failures_empty(const struct failures *f)
{
    return f->present.items.n == 0;
}

/* Is there a present failure of the same attempt? */
bool failures_has(const struct failures *f, const struct pliant_failure_item *item);

/* The present failures become an entry; *ret is it, or NULL if there was none, or no history is
 * kept. Valid until the next call. */
int failures_archive(struct failures *f, const struct pliant_failure **ret);

/* The same with the first n of the present failures only; the others stay. */
int failures_split(struct failures *f, uint32_t n, const struct pliant_failure **ret);

/* One more entry, empty, for whoever fills it and then calls failures_show(); NULL: no memory. The
 * oldest goes when there are too many. */
struct failure_entry *failures_append(struct failures *f);
void failures_show(struct failure_entry *entry);

/* The labels that an item has to have; how many. */
uint32_t failures_labels_of(const struct failures *f, const struct pliant_failure_item *item,
                            struct pliant_label ret[LABEL_KEYS_MAX]);
/* Put them on an item that has none yet, and whose texts are ours. */
int failures_label(const struct failures *f, struct pliant_failure_item *item);

/* Entry i, newest first, or NULL. */
const struct pliant_failure *failures_at(const struct failures *f, size_t i);

#endif

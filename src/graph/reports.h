/* reports.h - what the workers of a group have reported and nobody has taken yet
 *
 * Each rank's calls wait in the order in which it made them. When every rank has one waiting, one
 * of each is a set: it is taken as a whole. Normally a rank waits for its call to be taken before
 * it makes the next one; one that does not is served all the same.
 *
 * Owner   paths are copied; reports_free()
 * Errors  -ENOMEM, nothing changed
 * Source  W-CKP-1..5, W-CKP-9
 */
#ifndef PLIANT_GRAPH_REPORTS_H
#define PLIANT_GRAPH_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/vec.h"

#define REPORTS_PATH_MAX 4096u /* bytes of a path */

struct report {
    uint64_t call;
    char *path; /* NULL: metrics only */
    int64_t at_ms;
};

struct rank_reports {
    struct VEC(struct report) waiting;
    uint64_t last_call; /* seen in this attempt */
};

struct reports {
    const struct pliant_alloc *alloc;
    struct VEC(struct rank_reports) ranks; /* rows beyond the present ranks wait for nothing */
    uint32_t n_ready;                      /* ranks with one waiting at least */
};

void reports_init(struct reports *r, const struct pliant_alloc *a);
void reports_free(struct reports *r);
/* The attempt is over: what waits is dropped, calls are counted from the start. */
void reports_drop(struct reports *r);
/* 1: it waits; 0: not a new call. */
int reports_add(struct reports *r, uint32_t rank, uint64_t call, const char *path, int64_t at_ms);
/* The first that waits of a rank, or NULL. */
const struct report *reports_first(const struct reports *r, uint32_t rank);
/* The first of each of the ranks 0..n-1 is taken; every one has one. */
void reports_take(struct reports *r, uint32_t n);

#endif

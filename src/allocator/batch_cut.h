/* batch_cut.h - between the files of batch: cutting lists of slices into pieces
 *
 * A slice is an amount of data that is read whole. Lists of one length are cut at the same places;
 * position k of all of them is always taken together. A slice that stands at several positions
 * counts once within a piece.
 *
 * Source  section 5.5 of the rules of failover
 */
#ifndef PLIANT_ALLOCATOR_BATCH_CUT_H
#define PLIANT_ALLOCATOR_BATCH_CUT_H

#include "allocator/batch.h"

struct slice {
    struct batch_range range;
    int64_t bytes;
    uint32_t piece; /* the one that it was last counted in */
};

/* at[list * n + k] indexes slices[]. */
struct slice_lists {
    struct VEC(struct slice) slices;
    struct VEC(uint32_t) at;
    uint32_t n_lists, n;
    uint32_t stamp; /* of the last piece counted */
};

void slice_lists_free(struct slice_lists *l, const struct pliant_alloc *a);

/* One list of amounts, by their running sums: sums[0] = 0, sums[k + 1] - sums[k] is slice k's. Cuts
 * without looking at each slice. The rest as below. */
uint32_t batch_cut_sums(const int64_t *sums, uint32_t n, int64_t min, int64_t max, int64_t volume,
                        uint32_t *bounds);

/* Where pieces begin, so that there are min..max of them of about `volume` bytes: bounds[0] = 0,
 * bounds[pieces] = n. `bounds` has room for n + 1. 0: there is no way. */
uint32_t batch_cut(struct slice_lists *l, int64_t min, int64_t max, int64_t volume,
                   uint32_t *bounds);

#endif

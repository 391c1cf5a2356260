/* batch_cut.c - see batch_cut.h
 *
 * The number of pieces is not a monotone function of the limit, only nearly so, and the searches
 * below are bisections all the same: their exact form is the rule. */
#include "allocator/batch_cut.h"

#include <assert.h>

#define NOTHING (-1) /* what a search answers that found nothing; as a limit it cuts everywhere */

void slice_lists_free(struct slice_lists *l, const struct pliant_alloc *a)
{
    vec_free(a, &l->slices);
    vec_free(a, &l->at);
}

/* ---- pieces -----------------------------------------------------------------------------------
 */

static struct slice *slice_at(const struct slice_lists *l, uint32_t list, uint32_t k)
{
    return &l->slices.v[l->at.v[(size_t)list * l->n + k]];
}

static int64_t all_bytes(const struct slice_lists *l, uint32_t k)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < l->n_lists; i++)
        sum += slice_at(l, i, k)->bytes;
    return sum;
}

/* Without the slices that the present piece has already. */
static int64_t new_bytes(const struct slice_lists *l, uint32_t k)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < l->n_lists; i++)
        if (slice_at(l, i, k)->piece != l->stamp)
            sum += slice_at(l, i, k)->bytes;
    return sum;
}

static void take(const struct slice_lists *l, uint32_t k)
{
    for (uint32_t i = 0; i < l->n_lists; i++)
        slice_at(l, i, k)->piece = l->stamp;
}

/* Greedy, from the left. `bounds` NULL: only the number of pieces. */
static uint32_t split(struct slice_lists *l, int64_t limit, uint32_t *bounds)
{
    uint32_t pieces = 0;
    int64_t sum = 0;

    for (uint32_t k = 0; k < l->n; k++) {
        int64_t more = new_bytes(l, k);

        if (k > 0 && sum <= limit && more <= limit - sum) {
            sum += more;
        } else {
            if (bounds)
                bounds[pieces] = k;
            pieces++;
            l->stamp++;
            sum = all_bytes(l, k);
        }
        take(l, k);
    }
    if (bounds)
        bounds[pieces] = l->n;
    return pieces;
}

/* ---- searches for a limit ---------------------------------------------------------------------
 */

enum wish { AT_LEAST, AT_MOST, EXACTLY };

static bool meets(struct slice_lists *l, int64_t limit, enum wish wish, int64_t pieces)
{
    int64_t got = split(l, limit, NULL);

    switch (wish) {
    case AT_LEAST:
        return got >= pieces;
    case AT_MOST:
        return got <= pieces;
    case EXACTLY:
        break;
    }
    return got == pieces;
}

static int64_t middle(int64_t lo, int64_t hi)
{
    return lo + (hi - lo) / 2;
}

static int64_t smallest(struct slice_lists *l, int64_t lo, int64_t hi, enum wish wish,
                        int64_t pieces)
{
    if (!meets(l, hi, wish, pieces))
        return NOTHING;
    while (lo <= hi) {
        int64_t mid = middle(lo, hi);

        if (meets(l, mid, wish, pieces))
            hi = mid - 1;
        else
            lo = mid + 1;
    }
    return hi + 1;
}

static int64_t largest(struct slice_lists *l, int64_t lo, int64_t hi, enum wish wish,
                       int64_t pieces)
{
    if (!meets(l, lo, wish, pieces))
        return NOTHING;
    while (lo <= hi) {
        int64_t mid = middle(lo, hi);

        if (meets(l, mid, wish, pieces))
            lo = mid + 1;
        else
            hi = mid - 1;
    }
    return lo - 1;
}

static int64_t find_limit(struct slice_lists *l, int64_t min, int64_t max, int64_t volume,
                          int64_t pieces)
{
    int64_t least = INT64_MAX, sum = 0, limit;

    for (uint32_t k = 0; k < l->n; k++) {
        int64_t bytes = all_bytes(l, k);

        least = bytes < least ? bytes : least;
        sum += bytes;
    }
    if (pieces > max)
        return smallest(l, volume, sum, AT_MOST, max);
    least = volume < least ? volume : least;
    limit = largest(l, least, volume, AT_LEAST, min);
    return smallest(l, least, limit, EXACTLY, split(l, limit, NULL));
}

/* ---- the cut ----------------------------------------------------------------------------------
 */

/* By count alone. */
static uint32_t cut_evenly(uint32_t n, int64_t min, int64_t max, uint32_t *bounds)
{
    uint64_t pieces = (uint64_t)max < n ? (uint64_t)max : n;

    if ((int64_t)n < min)
        return 0;
    for (uint64_t k = 0; k <= pieces; k++)
        bounds[k] = (uint32_t)(k * n / pieces);
    return (uint32_t)pieces;
}

uint32_t batch_cut(struct slice_lists *l, int64_t min, int64_t max, int64_t volume,
                   uint32_t *bounds)
{
    uint32_t pieces;

    assert(l->n > 0);
    pieces = split(l, volume, bounds);
    if (pieces >= min && pieces <= max)
        return pieces;
    pieces = split(l, find_limit(l, min, max, volume, pieces), bounds);
    if (pieces >= min && pieces <= max)
        return pieces;
    return cut_evenly(l->n, min, max, bounds);
}

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

/* What is cut: lists of slices, or one list's running sums. */
struct cutting {
    struct slice_lists *lists; /* or NULL */
    const int64_t *sums;
    uint32_t n;
};

static int64_t size_at(const struct cutting *c, uint32_t k)
{
    return c->lists ? all_bytes(c->lists, k) : c->sums[k + 1] - c->sums[k];
}

/* Greedy, from the left; no further than to `enough` pieces. `bounds` NULL: only how many. */
static uint32_t split_lists(struct slice_lists *l, int64_t limit, uint32_t enough, uint32_t *bounds)
{
    uint32_t pieces = 0;
    int64_t sum = 0;

    for (uint32_t k = 0; k < l->n && pieces < enough; k++) {
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
    return pieces;
}

/* How many slices from k on are within the limit; n slices are left. Pieces are mostly about as
 * long as the one before: look there first, then further off in steps that double. */
static uint32_t piece_length(const int64_t *sums, uint32_t n, int64_t limit, uint32_t guess)
{
    uint32_t fits = 1, too_long = n + 1, step = 1;

    if (guess > n)
        guess = n;
    if (guess > 1 && sums[guess] - sums[0] <= limit) {
        for (fits = guess; step <= n - fits && sums[fits + step] - sums[0] <= limit; step *= 2)
            fits += step;
        too_long = step <= n - fits ? fits + step : n + 1;
    } else if (guess > 1) {
        for (too_long = guess; step < too_long && sums[too_long - step] - sums[0] > limit;
             step *= 2)
            too_long -= step;
        fits = step < too_long ? too_long - step : 1;
    }
    while (too_long - fits > 1) {
        uint32_t mid = fits + (too_long - fits) / 2;

        if (sums[mid] - sums[0] <= limit)
            fits = mid;
        else
            too_long = mid;
    }
    return fits;
}

static uint32_t split_sums(const int64_t *sums, uint32_t n, int64_t limit, uint32_t enough,
                           uint32_t *bounds)
{
    uint32_t pieces = 0, length = 1;

    for (uint32_t k = 0; k < n && pieces < enough; k += length) {
        if (bounds)
            bounds[pieces] = k;
        pieces++;
        length = piece_length(sums + k, n - k, limit, length);
    }
    return pieces;
}

static uint32_t count_pieces(const struct cutting *c, int64_t limit, uint32_t enough)
{
    return c->lists ? split_lists(c->lists, limit, enough, NULL)
                    : split_sums(c->sums, c->n, limit, enough, NULL);
}

static uint32_t split(const struct cutting *c, int64_t limit, uint32_t *bounds)
{
    uint32_t pieces = c->lists ? split_lists(c->lists, limit, UINT32_MAX, bounds)
                               : split_sums(c->sums, c->n, limit, UINT32_MAX, bounds);

    bounds[pieces] = c->n;
    return pieces;
}

/* ---- searches for a limit ---------------------------------------------------------------------
 */

enum wish { AT_LEAST, AT_MOST, EXACTLY };

static bool meets(const struct cutting *c, int64_t limit, enum wish wish, int64_t pieces)
{
    int64_t enough = pieces < UINT32_MAX ? pieces + (wish != AT_LEAST) : UINT32_MAX;
    int64_t got = count_pieces(c, limit, (uint32_t)enough);

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

static int64_t smallest(const struct cutting *c, int64_t lo, int64_t hi, enum wish wish,
                        int64_t pieces)
{
    if (!meets(c, hi, wish, pieces))
        return NOTHING;
    while (lo <= hi) {
        int64_t mid = middle(lo, hi);

        if (meets(c, mid, wish, pieces))
            hi = mid - 1;
        else
            lo = mid + 1;
    }
    return hi + 1;
}

static int64_t largest(const struct cutting *c, int64_t lo, int64_t hi, enum wish wish,
                       int64_t pieces)
{
    if (!meets(c, lo, wish, pieces))
        return NOTHING;
    while (lo <= hi) {
        int64_t mid = middle(lo, hi);

        if (meets(c, mid, wish, pieces))
            lo = mid + 1;
        else
            hi = mid - 1;
    }
    return lo - 1;
}

/* Where sides of a join are combined a slice counts many times: no more than fits. */
static int64_t all_together(const struct cutting *c)
{
    int64_t sum = 0;

    if (!c->lists)
        return c->sums[c->n];
    for (uint32_t k = 0; k < c->n; k++) {
        int64_t more = size_at(c, k);

        if (more > INT64_MAX - 1 - sum)
            return INT64_MAX - 1;
        sum += more;
    }
    return sum;
}

static int64_t smallest_size(const struct cutting *c)
{
    int64_t least = INT64_MAX;

    for (uint32_t k = 0; k < c->n; k++)
        least = size_at(c, k) < least ? size_at(c, k) : least;
    return least;
}

static int64_t find_limit(const struct cutting *c, int64_t min, int64_t max, int64_t volume,
                          int64_t pieces)
{
    int64_t least, limit;

    if (pieces > max)
        return smallest(c, volume, all_together(c), AT_MOST, max);
    least = smallest_size(c);
    least = volume < least ? volume : least;
    limit = largest(c, least, volume, AT_LEAST, min);
    return smallest(c, least, limit, EXACTLY, count_pieces(c, limit, UINT32_MAX));
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

static uint32_t cut(const struct cutting *c, int64_t min, int64_t max, int64_t volume,
                    uint32_t *bounds)
{
    uint32_t pieces;

    assert(c->n > 0);
    pieces = split(c, volume, bounds);
    if (pieces >= min && pieces <= max)
        return pieces;
    pieces = split(c, find_limit(c, min, max, volume, pieces), bounds);
    if (pieces >= min && pieces <= max)
        return pieces;
    return cut_evenly(c->n, min, max, bounds);
}

uint32_t batch_cut(struct slice_lists *l, int64_t min, int64_t max, int64_t volume,
                   uint32_t *bounds)
{
    return cut(&(struct cutting){.lists = l, .n = l->n}, min, max, volume, bounds);
}

uint32_t batch_cut_sums(const int64_t *sums, uint32_t n, int64_t min, int64_t max, int64_t volume,
                        uint32_t *bounds)
{
    return cut(&(struct cutting){.sums = sums, .n = n}, min, max, volume, bounds);
}

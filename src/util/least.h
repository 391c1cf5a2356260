/* least.h - numbers in a row: which is the first one that is not above a limit?
 *
 * Cost    put, first: O(log n); get, lowest: O(1)
 * Owner   least_free()
 * Errors  false: no memory, nothing changed
 */
#ifndef PLIANT_UTIL_LEAST_H
#define PLIANT_UTIL_LEAST_H

#include "util/alloc.h"

#define LEAST_NOTHING UINT32_MAX /* of a place where no number is */

struct least {
    uint32_t *v;     /* v[1] is the lowest of all; below v[i] are v[2 * i] and v[2 * i + 1] */
    size_t n_leaves; /* a power of two, or 0 */
};

void least_free(const struct pliant_alloc *a, struct least *l);
/* Room for n places; numbers stay. */
bool least_room(const struct pliant_alloc *a, struct least *l, size_t n);
void least_put(struct least *l, size_t at, uint32_t number);
/* The first place whose number is at most that; there must be one. */
size_t least_first(const struct least *l, uint32_t at_most);

static inline uint32_t least_get(const struct least *l, size_t at)
{
    return l->v[l->n_leaves + at];
}

static inline uint32_t least_lowest(const struct least *l)
{
    return l->n_leaves > 0 ? l->v[1] : LEAST_NOTHING;
}

#endif

/* number_map.h - a number for each of some keys of 32 bits
 *
 * Open addressing. Keys are ids of the caller, small and dense as a rule: these sit side by side
 * in the order of their value; any others are scattered.
 *
 * Owner   number_map_free() with the allocator of number_map_init()
 * Errors  -ENOMEM
 */
#ifndef PLIANT_ALLOCATOR_NUMBER_MAP_H
#define PLIANT_ALLOCATOR_NUMBER_MAP_H

#include "util/alloc.h"

#define NUMBER_NONE UINT32_MAX /* the number of a key that has none; never given to one */

struct number_cell {
    uint32_t key, number;
};

struct number_map {
    struct number_cell *cells;
    unsigned bits; /* of them there are 2^bits */
};

/* Room for n different keys. */
int number_map_init(struct number_map *m, uint32_t n, const struct pliant_alloc *a);
void number_map_free(struct number_map *m, const struct pliant_alloc *a);

/* The cell of `key`, or the empty cell where it belongs (its number is NUMBER_NONE): fill in
 * both to add it. */
static inline struct number_cell *number_map_cell(const struct number_map *m, uint32_t key)
{
    uint32_t mask = (UINT32_C(1) << m->bits) - 1;
    uint32_t high = (key >> m->bits) * UINT32_C(0x9e3779b1);
    uint32_t at = (key ^ high >> (32 - m->bits)) & mask;

    while (m->cells[at].number != NUMBER_NONE && m->cells[at].key != key)
        at = (at + 1) & mask;
    return &m->cells[at];
}

#endif

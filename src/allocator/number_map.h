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
    uint32_t n;    /* keys */
    unsigned bits; /* there are 2^bits cells, at least twice as many as keys */
};

/* An empty map that has room for n keys before it grows; n < 2^30. */
int number_map_init(struct number_map *m, uint32_t n, const struct pliant_alloc *a);
void number_map_free(struct number_map *m, const struct pliant_alloc *a);

/* Twice the cells. Nothing has changed on error. */
int number_map_grow(struct number_map *m, const struct pliant_alloc *a);

/* The cell of `key`, or the empty cell where it belongs. */
static inline struct number_cell *number_map_cell(const struct number_map *m, uint32_t key)
{
    uint32_t mask = (UINT32_C(1) << m->bits) - 1;
    uint32_t high = (key >> m->bits) * UINT32_C(0x9e3779b1);
    uint32_t at = (key ^ high >> (32 - m->bits)) & mask;

    while (m->cells[at].number != NUMBER_NONE && m->cells[at].key != key)
        at = (at + 1) & mask;
    return &m->cells[at];
}

/* NUMBER_NONE if it has none. */
static inline uint32_t number_map_get(const struct number_map *m, uint32_t key)
{
    return number_map_cell(m, key)->number;
}

/* The number of `key`: `number` if it has none yet. NUMBER_NONE: no memory. */
static inline uint32_t number_map_put(struct number_map *m, uint32_t key, uint32_t number,
                                      const struct pliant_alloc *a)
{
    struct number_cell *cell;

    if (m->n >= UINT32_C(1) << (m->bits - 1) && number_map_grow(m, a) < 0)
        return NUMBER_NONE;
    cell = number_map_cell(m, key);
    if (cell->number == NUMBER_NONE) {
        *cell = (struct number_cell){key, number};
        m->n++;
    }
    return cell->number;
}

#endif

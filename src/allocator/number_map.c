/* number_map.c - see number_map.h */
#include "allocator/number_map.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { BITS_LEAST = 4 };

static struct number_cell *empty_cells(unsigned bits, const struct pliant_alloc *a)
{
    size_t n = (size_t)1 << bits;
    struct number_cell *cells = mem_resize(a, NULL, n, sizeof *cells);

    if (cells)
        memset(cells, 0xff, n * sizeof *cells); /* number: NUMBER_NONE */
    return cells;
}

int number_map_init(struct number_map *m, uint32_t n, const struct pliant_alloc *a)
{
    assert(n < UINT32_C(1) << 30);
    *m = (struct number_map){.bits = BITS_LEAST};
    while (UINT32_C(1) << m->bits < 2 * n)
        m->bits++;
    m->cells = empty_cells(m->bits, a);
    return m->cells ? 0 : -ENOMEM;
}

void number_map_free(struct number_map *m, const struct pliant_alloc *a)
{
    mem_free(a, m->cells);
    m->cells = NULL;
}

int number_map_grow(struct number_map *m, const struct pliant_alloc *a)
{
    struct number_map grown = {.n = m->n, .bits = m->bits + 1};

    assert(grown.bits < 32);
    grown.cells = empty_cells(grown.bits, a);
    if (!grown.cells)
        return -ENOMEM;
    for (size_t i = 0; i < (size_t)1 << m->bits; i++)
        if (m->cells[i].number != NUMBER_NONE)
            *number_map_cell(&grown, m->cells[i].key) = m->cells[i];
    number_map_free(m, a);
    *m = grown;
    return 0;
}

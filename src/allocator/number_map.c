/* number_map.c - see number_map.h */
#include "allocator/number_map.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int number_map_init(struct number_map *m, uint32_t n, const struct pliant_alloc *a)
{
    size_t size;

    assert(n < UINT32_C(1) << 30);
    m->bits = 4;
    while (UINT32_C(1) << m->bits < 2 * n)
        m->bits++;
    size = (size_t)1 << m->bits;
    m->cells = mem_resize(a, NULL, size, sizeof *m->cells);
    if (!m->cells)
        return -ENOMEM;
    memset(m->cells, 0xff, size * sizeof *m->cells);
    return 0;
}

void number_map_free(struct number_map *m, const struct pliant_alloc *a)
{
    mem_free(a, m->cells);
    m->cells = NULL;
}

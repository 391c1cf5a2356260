/* least.c - see least.h */
#include "util/least.h"

enum { LEAVES_FIRST = 16 };

void least_free(const struct pliant_alloc *a, struct least *l)
{
    mem_free(a, l->v);
    *l = (struct least){0};
}

static uint32_t lower(const struct least *l, size_t i)
{
    return l->v[2 * i] < l->v[2 * i + 1] ? l->v[2 * i] : l->v[2 * i + 1];
}

bool least_room(const struct pliant_alloc *a, struct least *l, size_t n)
{
    struct least grown = {.n_leaves = l->n_leaves > 0 ? l->n_leaves : LEAVES_FIRST};

    if (n <= l->n_leaves)
        return true;
    while (grown.n_leaves < n)
        grown.n_leaves *= 2;
    grown.v = mem_resize(a, NULL, 2 * grown.n_leaves, sizeof *grown.v);
    if (!grown.v)
        return false;
    for (size_t i = 0; i < grown.n_leaves; i++)
        grown.v[grown.n_leaves + i] = i < l->n_leaves ? least_get(l, i) : LEAST_NOTHING;
    for (size_t i = grown.n_leaves - 1; i > 0; i--)
        grown.v[i] = lower(&grown, i);
    least_free(a, l);
    *l = grown;
    return true;
}

void least_put(struct least *l, size_t at, uint32_t number)
{
    size_t i = l->n_leaves + at;

    l->v[i] = number;
    for (i /= 2; i > 0 && l->v[i] != lower(l, i); i /= 2)
        l->v[i] = lower(l, i);
}

size_t least_first(const struct least *l, uint32_t at_most)
{
    size_t i = 1;

    while (i < l->n_leaves)
        i = l->v[2 * i] <= at_most ? 2 * i : 2 * i + 1;
    return i - l->n_leaves;
}

/* vec.h - a growing array of one type
 *
 *     struct tasks VEC(struct task);       { struct task *v; size_t n, cap; }
 *     if (!vec_reserve(a, &tasks, n)) return -ENOMEM;   room for n in all, exact
 *     if (!vec_push(a, &tasks)) ...;       one more, zeroed, amortized O(1); NULL: no memory
 *     if (!vec_room(a, &tasks, k)) ...;    room for k more, amortized as well
 *     vec_free(a, &tasks);
 *
 * Owner   the array belongs to the vec; free it with the same allocator.
 */
#ifndef PLIANT_UTIL_VEC_H
#define PLIANT_UTIL_VEC_H

#include "util/alloc.h"

#define VEC(type)                                                                                  \
    {                                                                                              \
        type *v;                                                                                   \
        size_t n, cap;                                                                             \
    }

#define vec_reserve(a, vec, want)                                                                  \
    ((want) <= (vec)->cap ||                                                                       \
     vec_grow_into((a), (void **)&(vec)->v, &(vec)->cap, (want), sizeof *(vec)->v))

#define vec_room(a, vec, more)                                                                     \
    ((more) <= (vec)->cap - (vec)->n ||                                                            \
     vec_grow_into((a), (void **)&(vec)->v, &(vec)->cap, vec_grown((vec)->cap, (vec)->n + (more)), \
                   sizeof *(vec)->v))

#define vec_push(a, vec)                                                                           \
    (vec_room((a), (vec), 1) ? vec_zeroed(&(vec)->v[(vec)->n++], sizeof *(vec)->v) : NULL)

#define vec_free(a, vec) (mem_free((a), (vec)->v), (vec)->v = NULL, (vec)->n = 0, (vec)->cap = 0)

/* By how much to grow, so that growing again and again costs little. */
static inline size_t vec_grown(size_t cap, size_t want)
{
    size_t grown = cap < 8 ? 8 : cap + cap / 2;

    return grown < want ? want : grown;
}

/* Arrays that grow together: each gets room for new_cap objects, from old_cap on zeroed. `array` is
 * the address of a pointer. false: no memory, the old array is kept. */
bool array_grow(const struct pliant_alloc *a, void *array, size_t old_cap, size_t new_cap,
                size_t size);

/* One array that grows alone: room for `want` objects in all, new ones zeroed; growing again and
 * again costs little. As above. */
bool array_reserve(const struct pliant_alloc *a, void *array, size_t *cap, size_t want,
                   size_t size);

/* Make room for `want` objects; false: no memory, the old array is kept. */
bool vec_grow_into(const struct pliant_alloc *a, void **v, size_t *cap, size_t want, size_t size);
void *vec_zeroed(void *ptr, size_t size);

#endif

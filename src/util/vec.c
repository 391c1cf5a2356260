/* vec.c - see vec.h */
#include "util/vec.h"

#include <string.h>

bool vec_grow_into(const struct pliant_alloc *a, void **v, size_t *cap, size_t want, size_t size)
{
    void *grown = mem_resize(a, *v, want, size);

    if (!grown)
        return false;
    *v = grown;
    *cap = want;
    return true;
}

void *vec_zeroed(void *ptr, size_t size)
{
    return memset(ptr, 0, size);
}

bool array_grow(const struct pliant_alloc *a, void *array, size_t old_cap, size_t new_cap,
                size_t size)
{
    void *v;

    memcpy(&v, array, sizeof v);
    v = mem_resize(a, v, new_cap, size);
    if (!v)
        return false;
    memset((char *)v + old_cap * size, 0, (new_cap - old_cap) * size);
    memcpy(array, &v, sizeof v);
    return true;
}

bool array_reserve(const struct pliant_alloc *a, void *array, size_t *cap, size_t want, size_t size)
{
    size_t grown = vec_grown(*cap, want);

    if (want <= *cap)
        return true;
    if (!array_grow(a, array, *cap, grown, size))
        return false;
    *cap = grown;
    return true;
}

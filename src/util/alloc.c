/* alloc.c - see alloc.h */
#include "util/alloc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "util/utf8.h"

void *mem_resize(const struct pliant_alloc *a, void *ptr, size_t n, size_t size)
{
    assert(n > 0 && size > 0);
    if (n > SIZE_MAX / size)
        return NULL;
    if (!a || !a->resize)
        return realloc(ptr, n * size);
    return a->resize(a->ctx, ptr, n * size);
}

void *mem_zero(const struct pliant_alloc *a, size_t n, size_t size)
{
    void *ptr = mem_resize(a, NULL, n, size);

    return ptr ? memset(ptr, 0, n * size) : NULL;
}

void mem_free(const struct pliant_alloc *a, void *ptr)
{
    if (!ptr)
        return;
    if (!a || !a->resize)
        free(ptr);
    else
        a->resize(a->ctx, ptr, 0);
}

char *mem_text(const struct pliant_alloc *a, const char *s, size_t max)
{
    const char *end = memchr(s, '\0', max + 1);
    size_t n = end ? (size_t)(end - s) : max + 1;
    char *copy;

    if (n > max)
        n = utf8_cut(s, max);
    copy = mem_resize(a, NULL, n + 1, 1);
    if (!copy)
        return NULL;
    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

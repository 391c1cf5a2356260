/* failing_alloc.h - an allocation hook of which the k-th call fails
 *
 *     FAILING_ALLOC(f, 3);                 the third fails; 0: none
 *     ... thing_init(&thing, &f.hook) ...
 *     cr_assert(eq(sz, f.live, 0));        nothing leaked
 */
#ifndef PLIANT_TESTS_FAILING_ALLOC_H
#define PLIANT_TESTS_FAILING_ALLOC_H

#include <pliant/config.h>

#include <stdlib.h>

struct failing_alloc {
    struct pliant_alloc hook;
    size_t fail_at, calls; /* freeing is no call */
    size_t live;           /* blocks */
};

static inline void *failing_alloc_resize(void *ctx, void *ptr, size_t size)
{
    struct failing_alloc *f = ctx;
    void *got;

    if (size == 0) {
        f->live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (++f->calls == f->fail_at)
        return NULL;
    got = realloc(ptr, size);
    f->live += !ptr && got;
    return got;
}

#define FAILING_ALLOC(name, k)                                                                     \
    struct failing_alloc name = {.hook = {.resize = failing_alloc_resize, .ctx = &name},           \
                                 .fail_at = (k)}

#endif

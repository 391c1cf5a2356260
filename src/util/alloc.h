/* alloc.h - every allocation of the core, through the host's hook
 *
 * Owner   whoever called mem_resize() frees with mem_free() on the same hook.
 * Errors  NULL: no memory; a resized block is then unchanged.
 */
#ifndef PLIANT_UTIL_ALLOC_H
#define PLIANT_UTIL_ALLOC_H

#include <pliant/config.h>

/* Like realloc() for n objects of `size` bytes; never called with n == 0. Checks n * size. */
void *mem_resize(const struct pliant_alloc *a, void *ptr, size_t n, size_t size);
void *mem_zero(const struct pliant_alloc *a, size_t n, size_t size);
void mem_free(const struct pliant_alloc *a, void *ptr);
/* A copy of at most `max` bytes of s, never cut within a UTF-8 sequence. */
char *mem_text(const struct pliant_alloc *a, const char *s, size_t max);

#endif

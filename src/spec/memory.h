/* memory.h - where the memory of decoded files comes from
 *
 * NULL is the C library. A test sets a hook of its own to let the k-th allocation fail; nobody
 * else touches it, and never between an allocation and its end.
 */
#ifndef PLIANT_SPEC_MEMORY_H
#define PLIANT_SPEC_MEMORY_H

#include "util/alloc.h"

extern const struct pliant_alloc *spec_memory;

#endif

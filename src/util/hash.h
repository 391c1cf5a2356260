/* hash.h - uthash (name -> thing), with memory that may fail
 *
 * A function that adds to or deletes from a table has a `hash_alloc` in scope: the hook that the
 * table's memory comes from. An addition that found no memory leaves the element out, and its
 * `hh.tbl` NULL. Tables are asked, never walked for a decision: their order is nobody's business.
 */
#ifndef PLIANT_UTIL_HASH_H
#define PLIANT_UTIL_HASH_H

#include "util/alloc.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) mem_resize(hash_alloc, NULL, 1, (size))
#define uthash_free(block, size) mem_free(hash_alloc, (block))

#include <uthash.h>

#endif

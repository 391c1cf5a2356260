/* sort.h - sort by number in linear time, without allocating
 *
 * Radix sort: stable, the same cost for any input of one size, nothing to compare.
 */
#ifndef PLIANT_UTIL_SORT_H
#define PLIANT_UTIL_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_item {
    uint64_t major; /* ascending by this */
    uint32_t minor; /* then by this; equal items keep their order */
    uint32_t value; /* comes along */
};

/* Sort items[n] in place; `scratch` has room for n. n <= UINT32_MAX. */
void sort_items(struct sort_item *items, struct sort_item *scratch, size_t n);

#endif

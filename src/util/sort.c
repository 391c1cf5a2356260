/* sort.c - see sort.h
 *
 * Least significant digit first. Digits in which all items agree are skipped, so small numbers
 * cost few passes; a short list is sorted by insertion, where passes would cost more.
 */
#include "util/sort.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { SHORT = 32, BITS = 11, VALUES = 1 << BITS, MINOR_DIGITS = 3, MAJOR_DIGITS = 6 };

static bool sorts_after(const struct sort_item *a, const struct sort_item *b)
{
    return a->major != b->major ? a->major > b->major : a->minor > b->minor;
}

static void sort_short(struct sort_item *items, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct sort_item item = items[i];
        size_t at = i;

        for (; at > 0 && sorts_after(&items[at - 1], &item); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* Digit `digit` of the 32 + 64 bits to sort by; the lower three are the minor number's. */
static inline uint32_t digit_of(uint64_t major, uint32_t minor, unsigned digit)
{
    uint64_t bits = digit < MINOR_DIGITS ? minor : major;
    unsigned shift = (digit < MINOR_DIGITS ? digit : digit - MINOR_DIGITS) * BITS;

    return (uint32_t)(bits >> shift) & (VALUES - 1);
}

static void starts_from_counts(uint32_t *counts)
{
    uint32_t start = 0;

    for (size_t i = 0; i < VALUES; i++) {
        uint32_t n = counts[i];

        counts[i] = start;
        start += n;
    }
}

static void sort_by_digit(const struct sort_item *from, struct sort_item *to, size_t n,
                          unsigned digit)
{
    uint32_t at[VALUES] = {0};

    for (size_t i = 0; i < n; i++)
        at[digit_of(from[i].major, from[i].minor, digit)]++;
    starts_from_counts(at);
    for (size_t i = 0; i < n; i++)
        to[at[digit_of(from[i].major, from[i].minor, digit)]++] = from[i];
}

static void swap(struct sort_item **a, struct sort_item **b)
{
    struct sort_item *was_a = *a;

    *a = *b;
    *b = was_a;
}

void sort_items(struct sort_item *items, struct sort_item *scratch, size_t n)
{
    struct sort_item *from = items, *to = scratch;
    uint64_t major_differs = 0;
    uint32_t minor_differs = 0;

    assert(n <= UINT32_MAX);
    if (n <= SHORT) {
        sort_short(items, n);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        major_differs |= items[i].major ^ items[0].major;
        minor_differs |= items[i].minor ^ items[0].minor;
    }
    for (unsigned digit = 0; digit < MINOR_DIGITS + MAJOR_DIGITS; digit++) {
        if (digit_of(major_differs, minor_differs, digit) == 0)
            continue;
        sort_by_digit(from, to, n, digit);
        swap(&from, &to);
    }
    if (from != items)
        memcpy(items, from, n * sizeof *items);
}

/* nearest.c - see nearest.h */
#include "util/nearest.h"

#include <string.h>

#include "util/ascii.h"

#define LENGTH_MAX 160 /* longer names are like nothing */

void nearest_start(struct nearest *n, const char *name)
{
    n->name = name;
    n->best = NULL;
    n->length = strlen(name);
    n->distance = n->length / 4 + 2; /* a quarter of the letters may differ, and one more */
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

/* Distance of a[0..n_a) and b[0..n_b), or anything >= limit when it is not below it. Rows of the
 * usual table, three of them: swaps look two rows back. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b, size_t limit)
{
    size_t rows[3][LENGTH_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= n_b; j++)
        last[j] = before[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t best = row[0] = i, *spare = before;

        for (size_t j = 1; j <= n_b; j++) {
            char x = ascii_lower(a[i - 1]), y = ascii_lower(b[j - 1]);

            row[j] = smallest(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == ascii_lower(b[j - 2]) && y == ascii_lower(a[i - 2]) &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
            best = row[j] < best ? row[j] : best;
        }
        if (best >= limit)
            return limit;
        before = last;
        last = row;
        row = spare;
    }
    return last[n_b];
}

void nearest_offer(struct nearest *n, const char *candidate)
{
    size_t length = strlen(candidate), d;
    size_t gap = length > n->length ? length - n->length : n->length - length;

    if (length > LENGTH_MAX || n->length > LENGTH_MAX || gap >= n->distance)
        return;
    d = distance(n->name, n->length, candidate, length, n->distance);
    /* a name of which nothing is left is no likeness */
    if (d >= n->distance || d >= n->length)
        return;
    n->distance = d;
    n->best = candidate;
}

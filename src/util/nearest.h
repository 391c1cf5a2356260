/* nearest.h - "did you mean ...?": the known name most like a wrong one
 *
 *     struct nearest n;
 *     nearest_start(&n, wrong);
 *     for (...) nearest_offer(&n, known[i]);
 *     if (n.best) ...                      the first of the nearest, or NULL: none is near
 *
 * Likeness is the number of letters to insert, delete, change or swap with their neighbour.
 * Pure: no memory.
 * Owner   names are borrowed
 */
#ifndef PLIANT_UTIL_NEAREST_H
#define PLIANT_UTIL_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *name, *best;
    size_t length, distance; /* of `name`; of what `best` must undercut */
};

void nearest_start(struct nearest *n, const char *name);
void nearest_offer(struct nearest *n, const char *candidate);

#endif

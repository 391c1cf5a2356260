/* sizes.h - what the finished producers of a blocking edge wrote
 *
 * The sums over the producers are kept ready. What one of them wrote is kept as well until the
 * consumer is decided, packed (small numbers take few bytes): a producer that runs once more writes
 * something else, and a consumer that looks at single partitions gets the matrix.
 *
 * Shapes  sums[n_subpartitions]; rows by producer
 * Units   bytes, int64_t: each sum is within what fits, see sizes_put()
 * Owner   sizes_free()
 * Errors  -ENOMEM
 * Source  sections 5.3 and 5.12 of the rules of failover
 */
#ifndef PLIANT_GRAPH_SIZES_H
#define PLIANT_GRAPH_SIZES_H

#include <pliant/pliant.h>

#include "util/alloc.h"

struct sizes_row {
    uint8_t *packed; /* NULL: it wrote nothing, or has not finished */
    uint32_t n;
};

struct sizes {
    const struct pliant_alloc *alloc;
    uint32_t n_partitions, n_subpartitions; /* 0: not begun */
    struct sizes_row *rows;
    int64_t *sums;
    int64_t total;
};

int sizes_init(struct sizes *z, uint32_t partitions, uint32_t subpartitions,
               const struct pliant_alloc *a);
void sizes_free(struct sizes *z);

/* A producer has written this, and nothing else: bytes[n_subpartitions], or NULL for nothing. The
 * caller sees to it that the total stays below 2^63. */
int sizes_put(struct sizes *z, uint32_t partition, const uint64_t *bytes);
int64_t sizes_of(const struct sizes *z, uint32_t partition);

/* bytes[partition * n_subpartitions + subpartition]; into an array of zeros. */
void sizes_matrix(const struct sizes *z, int64_t *bytes);

/* For who reads a snapshot: a packed row as it was. -EINVAL: it is none. */
int sizes_put_packed(struct sizes *z, uint32_t partition, const uint8_t *packed, uint32_t n);

#endif

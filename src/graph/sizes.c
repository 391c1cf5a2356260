/* sizes.c - see sizes.h
 *
 * A row is packed as its numbers in groups of 7 bits, the lowest first; the high bit says that the
 * number goes on. */
#include "graph/sizes.h"

#include <errno.h>
#include <string.h>

int sizes_init(struct sizes *z, uint32_t partitions, uint32_t subpartitions,
               const struct pliant_alloc *a)
{
    *z = (struct sizes){.alloc = a, .n_partitions = partitions, .n_subpartitions = subpartitions};
    z->rows = mem_zero(a, partitions, sizeof *z->rows);
    z->sums = mem_zero(a, subpartitions, sizeof *z->sums);
    if (z->rows && z->sums)
        return 0;
    sizes_free(z);
    return -ENOMEM;
}

void sizes_free(struct sizes *z)
{
    for (uint32_t p = 0; z->rows && p < z->n_partitions; p++)
        mem_free(z->alloc, z->rows[p].packed);
    mem_free(z->alloc, z->rows);
    mem_free(z->alloc, z->sums);
    *z = (struct sizes){0};
}

/* ---- packing ---------------------------------------------------------------------------- */

static size_t packed_size(uint64_t number)
{
    size_t n = 1;

    while (number >>= 7)
        n++;
    return n;
}

static uint8_t *pack(uint8_t *at, uint64_t number)
{
    for (; number > 0x7f; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

static const uint8_t *unpack(const uint8_t *at, int64_t *ret)
{
    uint64_t number = 0;

    for (unsigned shift = 0;; shift += 7) {
        if (shift < 56)
            number |= (uint64_t)(*at & 0x7f) << shift;
        if (!(*at++ & 0x80))
            break;
    }
    *ret = (int64_t)number;
    return at;
}

/* Is it a row of so many numbers, that one task may have written? */
static bool is_packed(const uint8_t *packed, uint32_t n, uint32_t numbers)
{
    const uint8_t *at = packed, *end = packed + n;
    uint64_t sum = 0;
    int64_t bytes;

    if (n == 0 || end[-1] & 0x80)
        return false;
    for (; numbers > 0 && at < end; numbers--) {
        const uint8_t *first = at;

        at = unpack(at, &bytes);
        if (at - first > 8) /* of 7 bits */
            return false;
        sum += (uint64_t)bytes;
        if (sum > PLIANT_BYTES_MAX)
            return false;
    }
    return numbers == 0 && at == end;
}

/* ---- rows ------------------------------------------------------------------------------- */

static void count_row(struct sizes *z, const struct sizes_row *row, int64_t sign)
{
    const uint8_t *at = row->packed;
    int64_t bytes;

    for (uint32_t s = 0; at && s < z->n_subpartitions; s++) {
        at = unpack(at, &bytes);
        z->sums[s] += sign * bytes;
        z->total += sign * bytes;
    }
}

static void replace(struct sizes *z, uint32_t partition, struct sizes_row row)
{
    count_row(z, &z->rows[partition], -1);
    mem_free(z->alloc, z->rows[partition].packed);
    z->rows[partition] = row;
    count_row(z, &row, 1);
}

int sizes_put(struct sizes *z, uint32_t partition, const uint64_t *bytes)
{
    struct sizes_row row = {0};
    size_t n = 0;
    bool any = false;
    uint8_t *at;

    for (uint32_t s = 0; bytes && s < z->n_subpartitions; s++) {
        n += packed_size(bytes[s]);
        any |= bytes[s] > 0;
    }
    if (any) {
        row = (struct sizes_row){mem_resize(z->alloc, NULL, n, 1), (uint32_t)n};
        if (!row.packed)
            return -ENOMEM;
    }
    at = row.packed;
    for (uint32_t s = 0; at && s < z->n_subpartitions; s++)
        at = pack(at, bytes[s]);
    replace(z, partition, row);
    return 0;
}

int sizes_put_packed(struct sizes *z, uint32_t partition, const uint8_t *packed, uint32_t n)
{
    uint8_t *copy;

    if (!is_packed(packed, n, z->n_subpartitions))
        return -EINVAL;
    copy = mem_resize(z->alloc, NULL, n, 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, packed, n);
    replace(z, partition, (struct sizes_row){copy, n});
    return 0;
}

int64_t sizes_of(const struct sizes *z, uint32_t partition)
{
    const uint8_t *at = z->rows[partition].packed;
    int64_t bytes, sum = 0;

    for (uint32_t s = 0; at && s < z->n_subpartitions; s++) {
        at = unpack(at, &bytes);
        sum += bytes;
    }
    return sum;
}

void sizes_matrix(const struct sizes *z, int64_t *bytes)
{
    for (uint32_t p = 0; p < z->n_partitions; p++, bytes += z->n_subpartitions) {
        const uint8_t *at = z->rows[p].packed;

        for (uint32_t s = 0; at && s < z->n_subpartitions; s++)
            at = unpack(at, &bytes[s]);
    }
}

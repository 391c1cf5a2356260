/* fnv.h - FNV-1a in 64 bits: a sum that tells whether two texts are the same, not one of secrets
 *
 *     uint64_t sum = fnv_add(FNV_START, a, n_a);
 *     sum = fnv_add(sum, b, n_b);            as if b stood right behind a
 */
#ifndef PLIANT_UTIL_FNV_H
#define PLIANT_UTIL_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t fnv_add(uint64_t sum, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < n; i++)
        sum = (sum ^ byte[i]) * UINT64_C(0x100000001b3);
    return sum;
}

#endif

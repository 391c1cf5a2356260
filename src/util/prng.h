/* prng.h - chance that can be repeated: splitmix64, its state is one number */
#ifndef PLIANT_UTIL_PRNG_H
#define PLIANT_UTIL_PRNG_H

#include <stdint.h>

struct prng {
    uint64_t state;
};

/* The next 64 bits. */
static inline uint64_t prng_next(struct prng *p)
{
    uint64_t z = p->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* An even draw from 0..n-1, n > 0: values of the uneven rest are drawn again. */
static inline uint64_t prng_below(struct prng *p, uint64_t n)
{
    uint64_t rest = (UINT64_MAX % n + 1) % n, x;

    do
        x = prng_next(p);
    while (x > UINT64_MAX - rest);
    return x % n;
}

#endif

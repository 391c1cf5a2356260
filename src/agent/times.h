/* times.h - the agent's clocks
 *
 *     monotonic_ms()  drives timers; stands still during a suspend
 *     unix_ms()       for instants that leave the machine
 */
#ifndef PLIANT_AGENT_TIMES_H
#define PLIANT_AGENT_TIMES_H

#include <limits.h>
#include <stdint.h>
#include <time.h>

#include "util/deadline.h"

static inline int64_t clock_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int64_t monotonic_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

static inline int64_t unix_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

static inline int64_t sooner(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* For poll() and its like: -1 waits for ever. */
static inline int poll_timeout(int64_t at_ms, int64_t now_ms)
{
    if (at_ms == PLIANT_NEVER)
        return -1;
    if (at_ms <= now_ms)
        return 0;
    return at_ms - now_ms > INT_MAX ? INT_MAX : (int)(at_ms - now_ms);
}

#endif

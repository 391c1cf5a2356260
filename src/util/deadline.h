/* deadline.h - instants at which something is due
 *
 * A timer is a field of the state or phase that made it and dies with it. Timers that are due
 * run in the order of (due, made), so each remembers when it was made, as a serial number.
 *
 * Units   milliseconds; PLIANT_NEVER is "not armed"
 */
#ifndef PLIANT_UTIL_DEADLINE_H
#define PLIANT_UTIL_DEADLINE_H

#include <pliant/config.h>

struct clock {
    int64_t now_ms;
    uint64_t made; /* serial of the last timer made */
};

struct deadline {
    int64_t at_ms;
    uint64_t made;
};

#define DEADLINE_NONE ((struct deadline){.at_ms = PLIANT_NEVER})

/* start + duration, PLIANT_NEVER where that is beyond all time. duration >= 0. */
static inline int64_t instant_after(int64_t start_ms, int64_t duration_ms)
{
    return start_ms > PLIANT_NEVER - duration_ms ? PLIANT_NEVER : start_ms + duration_ms;
}

/* Arm for an instant; one that is past is due now [S-STM-1]. */
static inline void deadline_arm(struct deadline *d, struct clock *clock, int64_t at_ms)
{
    d->at_ms = at_ms < clock->now_ms ? clock->now_ms : at_ms;
    d->made = ++clock->made;
}

static inline bool deadline_armed(const struct deadline *d)
{
    return d->at_ms != PLIANT_NEVER;
}

static inline void deadline_clear(struct deadline *d)
{
    d->at_ms = PLIANT_NEVER;
}

static inline bool deadline_before(const struct deadline *a, const struct deadline *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->made < b->made;
}

#endif

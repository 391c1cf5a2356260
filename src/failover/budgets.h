/* budgets.h - what a worker group may fail and be restarted
 *
 * A budget counts first, then it says whether that was too much: limit 0 fails at the first event,
 * limit n at the one after the n-th, BUDGET_UNLIMITED never. Counts never go back.
 *
 * Pure: plain values. Source: sections 2.1 and 8 of the worker groups' rules, W-BUD-1..7, W-GRP-4
 */
#ifndef PLIANT_FAILOVER_BUDGETS_H
#define PLIANT_FAILOVER_BUDGETS_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_UNLIMITED (-1)
#define BUDGET_LAUNCH_BACKOFF_MS 1000 /* after the first launch that fails; then twice as long */
#define BUDGET_LAUNCH_BACKOFF_MAX_MS 60000 /* ... up to this */

struct budget {
    int64_t limit;
    uint64_t charged;
};

/* Each error batch charges one of the first three, by one. */
struct budgets {
    struct budget workers, preemptions, launches;
    struct budget resets; /* restarts and resizes of any cause */
};

/* One more; is that still allowed? */
static inline bool budget_charge(struct budget *b)
{
    b->charged++;
    return b->limit < 0 || b->charged <= (uint64_t)b->limit;
}

/* The wait after the n-th launch in a row that failed, n >= 1 [W-GRP-4]. */
static inline int64_t budget_launch_backoff_ms(uint32_t n)
{
    return n > 6 ? BUDGET_LAUNCH_BACKOFF_MAX_MS : (int64_t)BUDGET_LAUNCH_BACKOFF_MS << (n - 1);
}

#endif

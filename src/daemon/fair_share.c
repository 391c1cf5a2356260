/* fair_share.c - how many slots each job may have
 *
 * Minimums first, in the order of the claims. A minimum that does not fit into what is left is
 * passed over, so that one job that asks for too much does not keep the others waiting; as soon as
 * it fits it goes before theirs. What is left rises like water: all have the same level, but nobody
 * less than the minimum that he got nor more than he desires.
 */
#include "daemon/daemon.h"

static uint32_t at_level(const struct share_claim *c, uint32_t level)
{
    if (level > c->desired)
        level = c->desired;
    return level > c->minimal ? level : c->minimal;
}

static uint64_t give_minimums(struct share_claim *claims, size_t n, uint64_t slots)
{
    for (size_t i = 0; i < n; i++) {
        claims[i].satisfied = claims[i].minimal <= slots;
        claims[i].target = claims[i].satisfied ? claims[i].minimal : 0;
        slots -= claims[i].target;
    }
    return slots;
}

/* Slots that it takes to lift all claims to a level. */
static uint64_t cost(const struct share_claim *claims, size_t n, uint32_t level)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (claims[i].satisfied)
            sum += at_level(&claims[i], level) - claims[i].minimal;
    return sum;
}

static uint32_t highest_level(const struct share_claim *claims, size_t n, uint64_t left)
{
    uint32_t low = 0, high = UINT32_MAX;

    while (low < high) {
        uint32_t level = low + (high - low) / 2 + 1;

        if (cost(claims, n, level) <= left)
            low = level;
        else
            high = level - 1;
    }
    return low;
}

/* What does not suffice for one slot more for everybody: first for those who have it already. */
static uint64_t give_rest(struct share_claim *claims, size_t n, uint32_t level, uint64_t left,
                          bool holders)
{
    for (size_t i = 0; i < n && left > 0; i++) {
        struct share_claim *c = &claims[i];

        if (!c->satisfied || c->target != level || c->desired <= level ||
            (c->held > level) != holders)
            continue;
        c->target++;
        left--;
    }
    return left;
}

void fair_share(struct share_claim *claims, size_t n, uint32_t slots)
{
    uint64_t left = give_minimums(claims, n, slots);
    uint32_t level = highest_level(claims, n, left);

    left -= cost(claims, n, level);
    for (size_t i = 0; i < n; i++)
        if (claims[i].satisfied)
            claims[i].target = at_level(&claims[i], level);
    left = give_rest(claims, n, level, left, true);
    left = give_rest(claims, n, level, left, false);
    for (size_t i = 0; i < n && left > 0; i++)
        if (!claims[i].satisfied) {
            claims[i].target = (uint32_t)left;
            left = 0;
        }
}

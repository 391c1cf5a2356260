/* fair_share_test.c - minimums in order, the rest evenly */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "daemon/daemon.h"
#include "util/prng.h"

#define MAX_CLAIMS 6

Test(fair_share, gives_minimums_in_order_and_the_rest_evenly)
{
    static const struct {
        const char *why;
        uint32_t slots;
        struct share_claim claims[MAX_CLAIMS]; /* minimal, desired, held, expected target */
    } rows[] = {
        {"one job gets all it wants", 10, {{1, 4, 0, 4, true}}},
        {"a reactive job gets everything", 10, {{1, UINT32_MAX, 0, 10, true}}},
        {"two of the same share evenly", 10, {{1, 100, 0, 5, true}, {1, 100, 0, 5, true}}},
        {"who wants less leaves the rest", 10, {{1, 3, 0, 3, true}, {1, 100, 0, 7, true}}},
        {"a minimum counts first", 10, {{1, 100, 0, 3, true}, {7, 100, 0, 7, true}}},
        {"the odd slot goes to the first", 5, {{1, 9, 0, 3, true}, {1, 9, 0, 2, true}}},
        {"... or to who has it", 5, {{1, 9, 2, 2, true}, {1, 9, 3, 3, true}}},
        {"in the order of submission",
         5,
         {{2, 9, 0, 2, true}, {3, 9, 0, 3, true}, {1, 9, 0, 0, false}}},
        {"a minimum that does not fit waits", 5, {{8, 9, 0, 1, false}, {4, 4, 0, 4, true}}},
        {"... and goes first once it fits", 9, {{8, 8, 0, 8, true}, {4, 4, 0, 1, false}}},
        {"only one of those who wait gets what is left",
         5,
         {{8, 9, 0, 5, false}, {7, 7, 0, 0, false}}},
        {"no slots", 0, {{1, 4, 0, 0, false}}},
        {"nothing wanted", 4, {{0, 0, 0, 0, true}, {1, 1, 0, 1, true}}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct share_claim claims[MAX_CLAIMS];
        size_t n = 0;

        while (n < MAX_CLAIMS && (rows[i].claims[n].desired || rows[i].claims[n].satisfied))
            n++;
        memcpy(claims, rows[i].claims, sizeof claims);
        fair_share(claims, n, rows[i].slots);
        for (size_t k = 0; k < n; k++) {
            cr_expect(eq(u32, claims[k].target, rows[i].claims[k].target), "%s: claim %zu",
                      rows[i].why, k);
            cr_expect(eq(int, claims[k].satisfied, rows[i].claims[k].satisfied), "%s: claim %zu",
                      rows[i].why, k);
        }
    }
}

static size_t draw(struct prng *p, struct share_claim *claims, size_t max)
{
    size_t n = 1 + (size_t)prng_below(p, max);

    for (size_t i = 0; i < n; i++) {
        uint32_t minimal = (uint32_t)prng_below(p, 20);

        claims[i] = (struct share_claim){.minimal = minimal,
                                         .desired = minimal + (uint32_t)prng_below(p, 40),
                                         .held = (uint32_t)prng_below(p, 30)};
        if (prng_below(p, 8) == 0)
            claims[i].desired = UINT32_MAX;
    }
    return n;
}

static uint64_t sum_of_targets(const struct share_claim *claims, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += claims[i].target;
    return sum;
}

/* In order, each minimum that fits into what the earlier ones left. */
static void expect_minimums(const struct share_claim *claims, size_t n, uint64_t slots)
{
    for (size_t i = 0; i < n; i++) {
        bool fits = claims[i].minimal <= slots;

        cr_assert(eq(int, claims[i].satisfied, fits));
        if (!fits)
            continue;
        slots -= claims[i].minimal;
        cr_assert(claims[i].target >= claims[i].minimal && claims[i].target <= claims[i].desired);
    }
}

/* Nobody could get one more without somebody who has not more losing one. */
static void expect_fair(const struct share_claim *claims, size_t n)
{
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            bool wants = claims[a].satisfied && claims[a].target < claims[a].desired;
            bool spares = claims[b].satisfied && claims[b].target > claims[b].minimal;

            cr_assert(not(wants && spares && claims[b].target > claims[a].target + 1));
        }
}

Test(fair_share, is_fair_and_wastes_nothing)
{
    struct prng p = {7};
    struct share_claim claims[12], again[12];

    for (int round = 0; round < 20000; round++) {
        size_t n = draw(&p, claims, 12);
        uint32_t slots = (uint32_t)prng_below(&p, 300);
        bool hungry = false;

        memcpy(again, claims, sizeof again);
        fair_share(claims, n, slots);
        fair_share(again, n, slots);
        cr_assert(eq(int, memcmp(claims, again, n * sizeof *claims), 0));
        expect_minimums(claims, n, slots);
        expect_fair(claims, n);
        for (size_t i = 0; i < n; i++)
            hungry = hungry || claims[i].target < claims[i].desired;
        cr_assert(sum_of_targets(claims, n) <= slots);
        cr_assert(hungry == false || sum_of_targets(claims, n) == slots);
    }
}

Test(fair_share, another_slot_never_takes_one_away_from_a_satisfied_job)
{
    struct prng p = {8};
    struct share_claim claims[8], more[8];

    for (int round = 0; round < 5000; round++) {
        size_t n = draw(&p, claims, 8);
        uint32_t slots = 200 + (uint32_t)prng_below(&p, 100); /* all minimums fit */

        for (size_t i = 0; i < n; i++)
            claims[i].held = 0;
        memcpy(more, claims, sizeof more);
        fair_share(claims, n, slots);
        fair_share(more, n, slots + 1);
        for (size_t i = 0; i < n; i++)
            cr_assert(more[i].target >= claims[i].target);
    }
}

/* restart_strategy_test.c - the four strategies, with worked numbers */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <signal.h>

#include "failing_alloc.h"
#include "failover/restart_strategy.h"

enum { MERGED = 0, NEW = 1, ASKED = 2 };

/* A failure at an instant (or only a question), and what the strategy says then. */
struct row {
    int64_t at_ms;
    int attempt; /* MERGED, NEW, or ASKED: no failure */
    bool can_restart;
    int64_t backoff_ms;
};

static void play(const struct pliant_restart_config *cfg, const struct row *rows, size_t n)
{
    FAILING_ALLOC(f, 0);
    struct prng prng = {1};
    struct restart_strategy r;

    cr_assert(eq(int, restart_strategy_init(&r, cfg, &f.hook), 0));
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &rows[i];
        bool new_attempt;

        if (row->attempt != ASKED) {
            cr_assert(
                eq(int, restart_strategy_notify(&r, &f.hook, &prng, row->at_ms, &new_attempt), 0));
            cr_expect(eq(int, new_attempt, row->attempt), "row %zu", i);
        }
        cr_expect(eq(int, restart_strategy_can_restart(&r, row->at_ms), row->can_restart),
                  "row %zu", i);
        cr_expect(eq(i64, restart_strategy_backoff_ms(&r, row->at_ms), row->backoff_ms), "row %zu",
                  i);
    }
    restart_strategy_free(&r, &f.hook);
    cr_assert(eq(sz, f.live, 0));
}

#define PLAY(cfg, rows) play((cfg), (rows), sizeof(rows) / sizeof(rows)[0])

/* ---- none, fixed-delay ------------------------------------------------------------------- */

Test(restart_strategy, none_never_restarts) /* [S-POL-1] */
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_NONE};
    static const struct row rows[] = {{0, ASKED, false, 0}, {0, NEW, false, 0}, {9, NEW, false, 0}};

    PLAY(&cfg, rows);
}

Test(restart_strategy, fixed_delay_of_one_attempt_allows_one_restart) /* [S-POL-2] */
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FIXED_DELAY,
                                                     .fixed = {1, 1000}};
    static const struct row rows[] = {
        {0, ASKED, true, 1000},        {0, NEW, true, 1000},
        {500, ASKED, true, 1000},      {500, NEW, false, 1000}, /* nothing merges */
        {INT64_MAX, NEW, false, 1000},                          /* time heals nothing */
    };

    PLAY(&cfg, rows);
}

Test(restart_strategy, fixed_delay_of_no_attempts_allows_none) /* [S-POL-2] */
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FIXED_DELAY};
    static const struct row rows[] = {{0, NEW, false, 0}};

    PLAY(&cfg, rows);
}

/* ---- failure-rate -------------------------------------------------------------------------- */

Test(restart_strategy, failure_rate_refuses_at_exactly_one_interval) /* [S-POL-3] */
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FAILURE_RATE,
                                                     .rate = {2, 60000, 1000}};
    static const struct row rows[] = {
        {0, ASKED, true, 1000},     {0, NEW, true, 1000}, {100, NEW, true, 1000},
        {60000, NEW, false, 1000},  /* 0, 100, 60000: one interval apart */
        {60001, ASKED, true, 1000}, /* the question is asked afresh */
        {60100, NEW, false, 1000},  /* 100, 60000, 60100 */
        {120001, NEW, true, 1000},  /* 60000: those refused count too */
        {120100, NEW, false, 1000}, /* 60100 */
    };

    PLAY(&cfg, rows);
}

Test(restart_strategy, failure_rate_keeps_failures_of_one_instant) /* [S-POL-3] */
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FAILURE_RATE,
                                                     .rate = {1, 10, 7}};
    static const struct row rows[] = {
        {5, NEW, true, 7}, {5, NEW, false, 7}, {15, NEW, false, 7}, {26, NEW, true, 7}};

    PLAY(&cfg, rows);
}

/* The window is a ring that grows: against the plain list of all failures. */
Test(restart_strategy, failure_rate_remembers_the_last_failures_of_any_number) /* [S-POL-3] */
{
    for (int64_t max = 1; max <= 40; max++) {
        struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FAILURE_RATE,
                                            .rate = {max, 100, 0}};
        struct prng prng = {(uint64_t)max};
        struct restart_strategy r;
        int64_t times[200], t = 0;
        bool new_attempt;

        restart_strategy_init(&r, &cfg, NULL);
        for (int64_t i = 0; i < 200; i++) {
            bool want;

            t += (int64_t)prng_below(&prng, 1 + (uint64_t)(300 / max));
            times[i] = t;
            want = i < max || t - times[i - max] > 100;
            restart_strategy_notify(&r, NULL, &prng, t, &new_attempt);
            cr_expect(eq(int, restart_strategy_can_restart(&r, t), want), "max %d, failure %d",
                      (int)max, (int)i);
        }
        cr_expect(le(i64, r.window_cap, max + 1));
        restart_strategy_free(&r, NULL);
    }
}

Test(restart_strategy, failure_rate_takes_memory_for_what_it_saw_not_for_the_option)
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FAILURE_RATE,
                                                     .rate = {INT64_MAX, INT64_MAX, 0}};
    struct prng prng = {1};
    struct restart_strategy r;
    bool new_attempt;

    restart_strategy_init(&r, &cfg, NULL);
    for (int64_t i = 0; i < 100; i++)
        restart_strategy_notify(&r, NULL, &prng, i, &new_attempt);
    cr_assert(restart_strategy_can_restart(&r, 100));
    cr_assert(lt(i64, r.window_cap, 200));
    restart_strategy_free(&r, NULL);
}

Test(restart_strategy, failure_rate_is_unchanged_when_memory_ends)
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FAILURE_RATE,
                                                     .rate = {100, 60000, 0}};

    for (size_t k = 1; k <= 4; k++) {
        FAILING_ALLOC(f, k);
        struct prng prng = {1};
        struct restart_strategy r, before;
        bool new_attempt = false;
        int rc = restart_strategy_init(&r, &cfg, &f.hook);

        for (int64_t t = 0; rc == 0; t++) {
            before = r;
            new_attempt = false;
            rc = restart_strategy_notify(&r, &f.hook, &prng, t, &new_attempt);
            if (rc < 0) {
                cr_expect(not(new_attempt));
                cr_expect(eq(i64, r.window_n, before.window_n));
                cr_expect(eq(ptr, r.window, before.window));
                cr_expect(eq(i64, r.window_cap, before.window_cap));
            }
        }
        cr_expect(eq(int, rc, -ENOMEM), "allocation %zu", k);
        restart_strategy_free(&r, &f.hook);
        cr_expect(eq(sz, f.live, 0));
    }
}

/* ---- exponential-delay --------------------------------------------------------------------- */

/* The defaults, but for the jitter. */
static struct pliant_restart_config exponential(double jitter)
{
    struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_EXPONENTIAL_DELAY};

    cfg.exponential.initial_ms = 1000;
    cfg.exponential.max_ms = 60000;
    cfg.exponential.multiplier = 1.5;
    cfg.exponential.reset_ms = 3600000;
    cfg.exponential.jitter = jitter;
    cfg.exponential.attempts = INT32_MAX;
    return cfg;
}

Test(restart_strategy, exponential_delay_merges_up_to_the_planned_restart) /* [S-POL-4] */
{
    struct pliant_restart_config cfg = exponential(0);
    static const struct row rows[] = {
        {0, NEW, true, 1000},      {400, MERGED, true, 600}, /* what is left of it */
        {1000, MERGED, true, 0},                             /* at the planned instant still */
        {1001, NEW, true, 1500},   {2501, ASKED, true, 0},
        {9000, ASKED, true, 0}, /* never negative */
        {9000, NEW, true, 2250},   {20000, NEW, true, 3375},
        {30000, NEW, true, 5062}, /* 5062.5 is cut, not rounded */
        {40000, NEW, true, 7593}, /* from 1.5^5 afresh: 7593.75, not 5062 * 1.5 */
        {50000, NEW, true, 11390},
    };

    PLAY(&cfg, rows);
}

Test(restart_strategy, exponential_delay_starts_again_after_a_quiet_time) /* [S-POL-4] */
{
    struct pliant_restart_config cfg = exponential(0);
    static const struct row rows[] = {
        {0, NEW, true, 1000},                 /* restart at 1000 */
        {3600999, NEW, true, 1500},           /* 3599999 after it; restart at 3602499 */
        {3602499 + 3600000, NEW, true, 1000}, /* exactly one threshold after the restart */
    };

    PLAY(&cfg, rows);
}

Test(restart_strategy, exponential_delay_counts_attempts_until_a_reset) /* [S-POL-4] */
{
    struct pliant_restart_config cfg = exponential(0);
    static const struct row rows[] = {
        {0, NEW, true, 1000},
        {500, MERGED, true, 500}, /* merged failures do not count */
        {2000, NEW, true, 1500},
        {5000, NEW, false, 2250},
        {6000, MERGED, false, 1250},
        {8000, NEW, false, 3375}, /* refused ones count on */
        {8000 + 3375 + 3600000, NEW, true, 1000},
    };

    cfg.exponential.attempts = 2;
    PLAY(&cfg, rows);
}

Test(restart_strategy, exponential_delay_is_never_below_initial_or_above_maximum) /* [S-POL-4] */
{
    struct pliant_restart_config cfg = exponential(0);
    static const struct row rows[] = {
        {0, NEW, true, 1000}, {5000, NEW, true, 1200}, {10000, NEW, true, 1200}};

    cfg.exponential.max_ms = 1200;
    PLAY(&cfg, rows);
}

Test(restart_strategy, exponential_delay_has_no_limit_at_the_largest_number_of_attempts)
{
    struct pliant_restart_config cfg = exponential(0);
    struct restart_strategy r;

    restart_strategy_init(&r, &cfg, NULL);
    r.count = INT64_C(1) << 40;
    cr_assert(restart_strategy_can_restart(&r, 0));
    r.cfg.exponential.attempts = INT32_MAX - 1;
    cr_assert(not(restart_strategy_can_restart(&r, 0)));
}

Test(restart_strategy, jitter_is_an_even_whole_number_within_its_reach) /* [S-POL-5] */
{
    enum { LOW = 2025, HIGH = 2475, DRAWS = 45000 }; /* the third: 2250 +- 225 */
    static int seen[HIGH - LOW + 1];
    struct pliant_restart_config cfg = exponential(0.1);
    struct prng prng = {99};

    cfg.exponential.reset_ms = INT64_MAX;
    for (int i = 0; i < DRAWS; i++) {
        struct restart_strategy r;
        int64_t backoff_ms;
        bool new_attempt;

        restart_strategy_init(&r, &cfg, NULL);
        for (int64_t t = 0; t < 30000; t += 10000)
            restart_strategy_notify(&r, NULL, &prng, t, &new_attempt);
        backoff_ms = restart_strategy_backoff_ms(&r, 20000);
        cr_assert(ge(i64, backoff_ms, LOW));
        cr_assert(le(i64, backoff_ms, HIGH));
        seen[backoff_ms - LOW]++;
    }
    for (int i = 0; i <= HIGH - LOW; i++) { /* 100 each, give or take 10 */
        cr_expect(gt(int, seen[i], 50), "%d ms", LOW + i);
        cr_expect(lt(int, seen[i], 150), "%d ms", LOW + i);
    }
}

Test(restart_strategy, jitter_comes_from_the_seed_and_only_for_new_attempts) /* [S-POL-5] */
{
    struct pliant_restart_config with = exponential(0.1), without = exponential(0);
    struct restart_strategy a, b, none;
    struct prng pa = {5}, pb = {5}, untouched = {5};
    bool new_attempt;

    restart_strategy_init(&a, &with, NULL);
    restart_strategy_init(&b, &with, NULL);
    restart_strategy_init(&none, &without, NULL);
    restart_strategy_notify(&a, NULL, &pa, 0, &new_attempt);
    restart_strategy_notify(&b, NULL, &pb, 0, &new_attempt);
    cr_assert(eq(i64, a.next_at_ms, b.next_at_ms));
    restart_strategy_notify(&a, NULL, &pa, 10, &new_attempt);
    cr_assert(not(new_attempt));
    cr_assert(eq(u64, pa.state, pb.state));
    restart_strategy_notify(&none, NULL, &untouched, 0, &new_attempt);
    cr_assert(eq(u64, untouched.state, 5));
}

/* The reference's fault: from here on its sum overflows, and the back-off falls to 1 s. */
Test(restart_strategy, jitter_leaves_the_92nd_attempt_and_all_later_at_the_maximum)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct pliant_restart_config cfg = exponential(seed % 2 ? 0.1 : 1.0);
        struct prng prng = {seed};
        struct restart_strategy r;
        bool new_attempt;
        int64_t t = 0;

        restart_strategy_init(&r, &cfg, NULL);
        for (int attempt = 1; attempt <= 2000; attempt++, t += 100000) {
            restart_strategy_notify(&r, NULL, &prng, t, &new_attempt);
            cr_assert(new_attempt);
            if (attempt >= 92)
                cr_expect(eq(i64, restart_strategy_backoff_ms(&r, t), 60000), "seed %d, attempt %d",
                          (int)seed, attempt);
        }
    }
}

Test(restart_strategy, survives_numbers_at_their_ends)
{
    static const int64_t instants[] = {INT64_MIN, INT64_MIN + 1, -1,       0,
                                       1,         INT64_MAX - 1, INT64_MAX};
    static const double multipliers[] = {1.0000001, 1.5, 1e300};
    static const double jitters[] = {0, 0.5, 1};
    enum { INSTANTS = sizeof instants / sizeof instants[0] };

    for (int i = 0; i < 9; i++) {
        struct pliant_restart_config cfg = exponential(jitters[i / 3]);
        struct prng prng = {1};
        struct restart_strategy r;
        bool new_attempt;

        cfg.exponential.max_ms = INT64_MAX;
        cfg.exponential.reset_ms = INT64_MAX;
        cfg.exponential.initial_ms = i % 2 ? 1 : INT64_MAX;
        cfg.exponential.multiplier = multipliers[i % 3];
        restart_strategy_init(&r, &cfg, NULL);
        for (int k = 0; k < INSTANTS; k++) {
            restart_strategy_notify(&r, NULL, &prng, instants[k], &new_attempt);
            for (int q = k; q < INSTANTS; q++)
                cr_expect(ge(i64, restart_strategy_backoff_ms(&r, instants[q]), 0));
        }
        r.count = INT64_MAX;
        r.next_at_ms = -1;
        restart_strategy_notify(&r, NULL, &prng, 0, &new_attempt);
        cr_expect(new_attempt);
        cr_expect(eq(i64, r.count, INT64_MAX));
    }
}

Test(restart_strategy, merges_what_fails_before_a_restart_beyond_all_time)
{
    struct pliant_restart_config cfg = exponential(0);
    static const struct row rows[] = {
        {1, NEW, true, INT64_MAX - 1},
        {2, MERGED, true, INT64_MAX - 2},
    };

    cfg.exponential.initial_ms = cfg.exponential.max_ms = INT64_MAX;
    PLAY(&cfg, rows);
}

Test(restart_strategy, failure_rate_survives_instants_at_their_ends)
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FAILURE_RATE,
                                                     .rate = {1, INT64_MAX, 5}};
    static const struct row rows[] = {{INT64_MIN, NEW, true, 5}, {-2, NEW, false, 5},
                                      {-1, ASKED, false, 5},     {0, ASKED, true, 5},
                                      {0, NEW, false, 5},        {INT64_MAX, NEW, false, 5}};

    PLAY(&cfg, rows);
}

/* ---- which one ------------------------------------------------------------------------------ */

Test(restart_strategy, must_have_been_chosen, .signal = SIGABRT) /* [S-POL-6]: by the options */
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_UNSET};
    struct restart_strategy r;

    restart_strategy_init(&r, &cfg, NULL);
}

Test(restart_strategy, exponential_delay_must_not_be_asked_before_a_failure, .signal = SIGABRT)
{
    struct pliant_restart_config cfg = exponential(0);
    struct restart_strategy r;

    restart_strategy_init(&r, &cfg, NULL);
    restart_strategy_backoff_ms(&r, 0);
}

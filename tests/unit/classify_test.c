/* classify_test.c - which budget pays for a failure, and what it buys */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>

#include "failing_alloc.h"
#include "failover/classify.h"

static const struct failure_class ordinary = {.recoverable = true};
static const struct failure_class drained = {.recoverable = true, .drain = true};
static const struct failure_class fatal = {.recoverable = false};
static const struct failure_class fatal_drained = {.recoverable = false, .drain = true};

/* One restart after 1 s is what the strategy allows. */
static struct failover failover(int64_t drain_max_moves)
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FIXED_DELAY,
                                                     .fixed = {1, 1000}};
    struct failover f = {.drain_max_moves = drain_max_moves};

    restart_strategy_init(&f.strategy, &cfg, NULL);
    return f;
}

static struct failover_decision decide(struct failover *f, const struct failure_class *failure)
{
    struct prng prng = {1};
    struct failover_decision d;

    cr_assert(eq(int, failover_decide(f, NULL, &prng, 0, failure, &d), 0));
    return d;
}

static void expect_restart(struct failover_decision d, int64_t backoff_ms)
{
    cr_expect(eq(int, d.action, FAILOVER_RESTART));
    cr_expect(eq(i64, d.backoff_ms, backoff_ms));
    cr_expect(eq(int, d.why, PLIANT_REASON_NONE));
}

static void expect_fail(struct failover_decision d, enum pliant_reason why)
{
    cr_expect(eq(int, d.action, FAILOVER_FAIL));
    cr_expect(eq(int, d.why, why));
}

Test(classify, asks_the_strategy_after_telling_it) /* [S-FAIL-1, S-FAIL-3, S-FAIL-5] */
{
    struct failover f = failover(-1);

    expect_restart(decide(&f, &ordinary), 1000);
    cr_assert(eq(i64, f.strategy.count, 1));
    expect_fail(decide(&f, &ordinary), PLIANT_REASON_RESTARTS_SUPPRESSED);
    cr_assert(eq(i64, f.strategy.count, 2));
    cr_assert(eq(u64, f.drain_moves, 0));
}

Test(classify, charges_nothing_for_what_cannot_be_recovered) /* [S-FAIL-1, S-FAIL-2] */
{
    struct failover f = failover(-1);

    expect_fail(decide(&f, &fatal), PLIANT_REASON_NOT_RECOVERABLE);
    expect_fail(decide(&f, &fatal_drained), PLIANT_REASON_NOT_RECOVERABLE);
    cr_assert(eq(i64, f.strategy.count, 0));
    cr_assert(eq(u64, f.drain_moves, 0));
}

Test(classify, pays_drains_from_their_own_budget) /* [S-DRN-8, S-DRN-9] */
{
    struct failover f = failover(2);

    expect_restart(decide(&f, &drained), 0);
    expect_restart(decide(&f, &drained), 0);
    expect_fail(decide(&f, &drained), PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED);
    cr_assert(eq(u64, f.drain_moves, 2));
    cr_assert(eq(i64, f.strategy.count, 0));
    expect_restart(decide(&f, &ordinary), 1000);
}

Test(classify, knows_budgets_of_no_drain_and_of_any_number) /* [S-DRN-8] */
{
    struct failover none = failover(0), any = failover(-1);

    expect_fail(decide(&none, &drained), PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED);
    for (int i = 0; i < 1000; i++)
        expect_restart(decide(&any, &drained), 0);
    cr_assert(eq(u64, any.drain_moves, 1000));
}

Test(classify, decides_nothing_without_memory)
{
    static const struct pliant_restart_config cfg = {.kind = PLIANT_RESTART_FAILURE_RATE,
                                                     .rate = {100, 60000, 0}};
    FAILING_ALLOC(hook, 2);
    struct prng prng = {1};
    struct failover f = {.drain_max_moves = -1};
    struct failover_decision d = {.why = PLIANT_REASON_STARTED};
    int rc = 0;

    restart_strategy_init(&f.strategy, &cfg, &hook.hook);
    for (int64_t t = 0; t < 100 && rc == 0; t++) {
        d.why = PLIANT_REASON_STARTED;
        rc = failover_decide(&f, &hook.hook, &prng, t, &ordinary, &d);
    }
    cr_assert(eq(int, rc, -ENOMEM));
    cr_assert(eq(int, d.why, PLIANT_REASON_STARTED));
    restart_strategy_free(&f.strategy, &hook.hook);
    cr_assert(eq(sz, hook.live, 0));
}

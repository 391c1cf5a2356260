/* policy_test.c - is the rescale worth it now? */
#include <criterion/criterion.h>

#include "transition/policy.h"

static struct rescale_answer ask(enum pliant_rescale_policy kind, struct rescale_offer offer)
{
    return rescale_policy_ask(&(struct rescale_policy){.kind = kind}, &offer);
}

Test(policy, parallelism_change_and_torchrun_always_say_now)
{
    static const int64_t instants[] = {0, 1, PLIANT_NEVER};

    for (size_t i = 0; i < sizeof instants / sizeof instants[0]; i++) {
        struct rescale_offer offer = {.now_ms = instants[i], .can_checkpoint = true};

        cr_expect_eq(ask(PLIANT_POLICY_PARALLELISM_CHANGE, offer).verdict, RESCALE_NOW);
        cr_expect_eq(ask(PLIANT_POLICY_TORCHRUN, offer).verdict, RESCALE_NOW);
    }
}

Test(policy, never_waits_for_nothing)
{
    struct rescale_answer answer = ask(PLIANT_POLICY_NEVER, (struct rescale_offer){.now_ms = 5});

    cr_expect_eq(answer.verdict, RESCALE_NOT_YET);
    cr_expect_eq(answer.again_at_ms, PLIANT_NEVER);
}

Test(policy, immediate_wants_a_checkpoint_that_began_at_or_after_the_change)
{
    static const struct {
        bool can, has;
        int64_t at_ms;
        enum rescale_verdict want;
    } rows[] = {{false, false, 0, RESCALE_NOW},
                {true, false, 0, RESCALE_AFTER_CHECKPOINT},
                {true, true, 99, RESCALE_AFTER_CHECKPOINT},
                {true, true, 100, RESCALE_NOW},
                {true, true, 101, RESCALE_NOW}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_eq(
            ask(PLIANT_POLICY_IMMEDIATE, (struct rescale_offer){.now_ms = 200,
                                                                .first_change_at_ms = 100,
                                                                .can_checkpoint = rows[i].can,
                                                                .has_checkpoint = rows[i].has,
                                                                .checkpoint_at_ms = rows[i].at_ms})
                .verdict,
            rows[i].want, "row %zu", i);
}

Test(policy, ray_elastic_looks_once_a_minute_from_the_start_of_the_run)
{
    static const struct {
        int64_t now_ms;
        enum rescale_verdict want;
        int64_t again_at_ms;
    } rows[] = {{1000, RESCALE_NOT_YET, 61000},   {1001, RESCALE_NOT_YET, 61000},
                {60999, RESCALE_NOT_YET, 61000},  {61000, RESCALE_NOW, PLIANT_NEVER},
                {61001, RESCALE_NOT_YET, 121000}, {121000, RESCALE_NOW, PLIANT_NEVER}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rescale_answer answer =
            ask(PLIANT_POLICY_RAY_ELASTIC,
                (struct rescale_offer){.now_ms = rows[i].now_ms, .entered_at_ms = 1000});

        cr_expect_eq(answer.verdict, rows[i].want, "row %zu", i);
        cr_expect_eq(answer.again_at_ms, rows[i].again_at_ms, "row %zu", i);
    }
}

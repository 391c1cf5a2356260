/* policy_test.c - is the rescale worth it now? */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "transition/policy.h"

Test(policy, parallelism_change_always_says_now)
{
    static const struct rescale_policy policy = {.kind = PLIANT_POLICY_PARALLELISM_CHANGE};
    static const int64_t instants[] = {INT64_MIN, -1, 0, 1, PLIANT_NEVER};

    for (size_t i = 0; i < sizeof instants / sizeof instants[0]; i++) {
        struct rescale_offer offer = {.now_ms = instants[i]};
        struct rescale_answer answer = rescale_policy_ask(&policy, &offer);

        cr_expect(answer.now, "row %zu", i);
        cr_expect(eq(i64, answer.again_at_ms, PLIANT_NEVER), "row %zu", i);
    }
}

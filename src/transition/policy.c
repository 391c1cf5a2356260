/* policy.c - see policy.h */
#include "transition/policy.h"

#include <assert.h>

static struct rescale_answer answer(const struct rescale_policy *policy)
{
    switch (policy->kind) {
    case PLIANT_POLICY_PARALLELISM_CHANGE: /* a GO means that the parallelism would change */
        break;
    }
    return (struct rescale_answer){.now = true, .again_at_ms = PLIANT_NEVER};
}

struct rescale_answer rescale_policy_ask(const struct rescale_policy *policy,
                                         const struct rescale_offer *offer)
{
    struct rescale_answer a = answer(policy);

    assert(a.now || a.again_at_ms > offer->now_ms); /* or the host would ask without end */
    return a;
}

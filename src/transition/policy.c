/* policy.c - see policy.h */
#include "transition/policy.h"

#include <assert.h>

#include "util/deadline.h"

static struct rescale_answer now(void)
{
    return (struct rescale_answer){.verdict = RESCALE_NOW, .again_at_ms = PLIANT_NEVER};
}

static struct rescale_answer not_before(int64_t at_ms)
{
    return (struct rescale_answer){.verdict = RESCALE_NOT_YET, .again_at_ms = at_ms};
}

/* One that began after the change, so that the restart throws nothing away. */
static struct rescale_answer after_checkpoint(const struct rescale_offer *offer)
{
    if (!offer->can_checkpoint ||
        (offer->has_checkpoint && offer->checkpoint_at_ms >= offer->first_change_at_ms))
        return now();
    return (struct rescale_answer){.verdict = RESCALE_AFTER_CHECKPOINT,
                                   .again_at_ms = PLIANT_NEVER};
}

/* Looks come at whole intervals from the start of this run. */
static struct rescale_answer at_next_look(const struct rescale_offer *offer)
{
    int64_t since_look = (offer->now_ms - offer->entered_at_ms) % RAY_ELASTIC_LOOK_MS;

    if (since_look == 0 && offer->now_ms > offer->entered_at_ms)
        return now();
    return not_before(instant_after(offer->now_ms, RAY_ELASTIC_LOOK_MS - since_look));
}

/* Less, or as much in another shape, is nothing that a gain could be reckoned for. */
static struct rescale_answer weigh(const struct rescale_policy *policy,
                                   const struct rescale_offer *offer)
{
    struct rescale_answer a = now();

    if (offer->view.q <= offer->view.p)
        return after_checkpoint(offer);
    a.why = worth_judge(&policy->worth, &policy->limits, &offer->view, offer->now_ms);
    switch (a.why.reason) {
    case PLIANT_JUDGED_GAIN:
        return a;
    case PLIANT_JUDGED_CHECKPOINT:
        a.verdict = RESCALE_AFTER_CHECKPOINT;
        return a;
    case PLIANT_JUDGED_REPORT:
    case PLIANT_JUDGED_SETTLES:
    case PLIANT_JUDGED_STARTING:
    case PLIANT_JUDGED_COST:
    case PLIANT_JUDGED_NOT:
        a.verdict = RESCALE_NOT_YET;
        a.again_at_ms = instant_after(offer->now_ms, a.why.again_in_ms);
        return a;
    }
    return a;
}

static struct rescale_answer answer(const struct rescale_policy *policy,
                                    const struct rescale_offer *offer)
{
    switch (policy->kind) {
    case PLIANT_POLICY_PARALLELISM_CHANGE: /* a GO means that the parallelism would change */
    case PLIANT_POLICY_TORCHRUN:
        return now();
    case PLIANT_POLICY_NEVER:
        return not_before(PLIANT_NEVER);
    case PLIANT_POLICY_IMMEDIATE:
        return after_checkpoint(offer);
    case PLIANT_POLICY_RAY_ELASTIC:
        return at_next_look(offer);
    case PLIANT_POLICY_WORTH:
        return weigh(policy, offer);
    }
    return now();
}

struct rescale_answer rescale_policy_ask(const struct rescale_policy *policy,
                                         const struct rescale_offer *offer)
{
    struct rescale_answer a = answer(policy, offer);

    assert(a.verdict != RESCALE_NOT_YET || a.again_at_ms > offer->now_ms); /* no endless asking */
    return a;
}

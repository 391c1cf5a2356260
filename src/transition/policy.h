/* policy.h - is the rescale that the manager would make worth a restart now?
 *
 * The layer above the transition manager: asked in Executing when the manager says GO. On
 * "now" the host calls manager_go() and restarts; on "not now" the manager keeps its phase,
 * and the host asks the manager to trigger at again_at_ms, or earlier when something changes.
 *
 * A policy sees only what the offer says and what it keeps in struct rescale_policy: both are
 * where a policy that weighs gain against cost gets its numbers, with the callers as they are.
 *
 * Pure: plain values, no pointers kept; copy, compare, dump.
 * Units   ms
 * Source  design: two layers, `parallelism-change` is the one of the reference
 */
#ifndef PLIANT_TRANSITION_POLICY_H
#define PLIANT_TRANSITION_POLICY_H

#include <pliant/config.h>

struct rescale_policy {
    enum pliant_rescale_policy kind;
};

/* The rescale in question. */
struct rescale_offer {
    int64_t now_ms;
};

struct rescale_answer {
    bool now;
    int64_t again_at_ms; /* not now: later than the offer; PLIANT_NEVER: when something changes */
};

struct rescale_answer rescale_policy_ask(const struct rescale_policy *policy,
                                         const struct rescale_offer *offer);

#endif

/* policy.h - is the rescale that the manager would make worth a restart now?
 *
 * The layer above the transition manager: asked in Executing when the manager says GO. On NOW the
 * host calls manager_go() and restarts; on AFTER_CHECKPOINT it takes a checkpoint, whose completion
 * is a trigger; on NOT_YET the manager keeps its phase, and the host asks the manager to trigger at
 * again_at_ms. In both cases the question comes again earlier when something changes.
 *
 * A policy sees only what the offer says and what it keeps in struct rescale_policy.
 *
 * Pure: plain values, no pointers kept; copy, compare, dump.
 * Units   ms
 * Source  design: two layers, `parallelism-change` is the one of the reference
 */
#ifndef PLIANT_TRANSITION_POLICY_H
#define PLIANT_TRANSITION_POLICY_H

#include "transition/worth.h"

#define RAY_ELASTIC_LOOK_MS 60000 /* Ray Train's interval between two looks at the cluster */

struct rescale_policy {
    enum pliant_rescale_policy kind;
    struct worth worth; /* what the job has seen */
    struct worth_limits limits;
};

/* The rescale in question. */
struct rescale_offer {
    int64_t now_ms;
    int64_t entered_at_ms;      /* Executing */
    int64_t first_change_at_ms; /* the manager's: what it has waited since */
    bool can_checkpoint;        /* checkpointing is on */
    bool has_checkpoint;        /* one has completed, ... */
    int64_t checkpoint_at_ms;   /* ... and was triggered then */
    struct worth_view view;     /* for `worth` */
};

enum rescale_verdict { RESCALE_NOW, RESCALE_AFTER_CHECKPOINT, RESCALE_NOT_YET };

struct rescale_answer {
    enum rescale_verdict verdict;
    int64_t again_at_ms; /* NOT_YET: later than the offer; PLIANT_NEVER: when something changes */
    struct worth_judgement why; /* of `worth` */
};

struct rescale_answer rescale_policy_ask(const struct rescale_policy *policy,
                                         const struct rescale_offer *offer);

#endif

/* classify.h - one failure, one decision: may the job restart, after which delay?
 *
 * The order is the rule [S-FAIL-1]: what cannot be recovered fails the job and costs nothing
 * [S-FAIL-2]; what a drain caused is paid from the drain budget, and the restart strategy
 * neither asked nor told [S-DRN-8, S-DRN-9]; all else is told to the restart strategy, which
 * is then asked [S-FAIL-3]. Call it once per failure that is decided on, never for one that
 * is merely recorded.
 *
 * A worker group has budgets of its own instead, one for each kind of failure; the restart strategy
 * gives the back-off after a worker's failure, and its limit is not asked [W-BUD-1].
 *
 * Pure: a plain value, but for the strategy's window.
 * Units   ms; budgets are counts of moves
 * Owner   the strategy within is freed by restart_strategy_free()
 * Source  S-FAIL-1..5, S-DRN-8, S-DRN-9, W-BUD-1..3, W-CLS-1..3
 */
#ifndef PLIANT_FAILOVER_CLASSIFY_H
#define PLIANT_FAILOVER_CLASSIFY_H

#include <pliant/pliant.h>

#include "failover/budgets.h"
#include "failover/restart_strategy.h"

struct failover {
    struct restart_strategy strategy;
    uint64_t drain_moves;    /* charged so far, those refused not among them */
    int64_t drain_max_moves; /* < 0: no limit */
    bool group;              /* of a worker group: its budgets pay */
    struct budgets budgets;
};

struct failure_class {
    bool recoverable;
    bool drain; /* a drain's move, or the loss of a draining node that had not been moved yet */
    /* what only a worker group asks for */
    bool moved;     /* the move */
    bool preempted; /* a preemption death: on a node that drains because its provider wants it */
    bool doomed;    /* the worker's node, or its failure domain, is about to be taken back */
    bool launch;    /* a launch is to be tried again, with another port */
};

enum failover_action { FAILOVER_RESTART, FAILOVER_FAIL };

struct failover_decision {
    enum failover_action action;
    int64_t backoff_ms;     /* RESTART */
    bool new_attempt;       /* RESTART: not merged into one that is planned already [S-FAIL-4] */
    enum pliant_reason why; /* FAIL: NOT_RECOVERABLE, RESTARTS_SUPPRESSED, ..._BUDGET_EXHAUSTED;
                             * RESTART: NONE */
};

/* Decide, and charge the budget that pays. 0, or -ENOMEM with nothing charged. */
int failover_decide(struct failover *f, const struct pliant_alloc *a, struct prng *prng,
                    int64_t now_ms, const struct failure_class *failure,
                    struct failover_decision *ret);

#endif

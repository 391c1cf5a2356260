/* classify.c - see classify.h */
#include "failover/classify.h"

static struct failover_decision restart_after(int64_t backoff_ms)
{
    return (struct failover_decision){
        .action = FAILOVER_RESTART, .backoff_ms = backoff_ms, .new_attempt = true};
}

static struct failover_decision fail(enum pliant_reason why)
{
    return (struct failover_decision){.action = FAILOVER_FAIL, .why = why};
}

static struct failover_decision charge_drain(struct failover *f)
{
    if (f->drain_max_moves >= 0 && f->drain_moves >= (uint64_t)f->drain_max_moves)
        return fail(PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED);
    f->drain_moves++;
    return restart_after(0);
}

/* ---- worker groups ------------------------------------------------------------------------ */

static struct failover_decision charge(struct budget *b, enum pliant_reason exhausted)
{
    return budget_charge(b) ? restart_after(0) : fail(exhausted);
}

/* The strategy is told, so that it knows how long to wait. */
static int charge_workers(struct failover *f, const struct pliant_alloc *a, struct prng *prng,
                          int64_t now_ms, struct failover_decision *ret)
{
    bool new_attempt;
    int rc = restart_strategy_notify(&f->strategy, a, prng, now_ms, &new_attempt);

    if (rc < 0)
        return rc;
    *ret = charge(&f->budgets.workers, PLIANT_REASON_WORKER_BUDGET_EXHAUSTED);
    if (ret->action == FAILOVER_RESTART)
        ret->backoff_ms = restart_strategy_backoff_ms(&f->strategy, now_ms);
    return 0;
}

static int decide_group(struct failover *f, const struct pliant_alloc *a, struct prng *prng,
                        int64_t now_ms, const struct failure_class *failure,
                        struct failover_decision *ret)
{
    if (failure->moved)
        *ret = charge_drain(f);
    else if (failure->preempted) /* [W-CLS-1] */
        *ret = charge(&f->budgets.preemptions, PLIANT_REASON_PREEMPTION_BUDGET_EXHAUSTED);
    else if (failure->launch)
        *ret = charge(&f->budgets.launches, PLIANT_REASON_LAUNCH_BUDGET_EXHAUSTED);
    else
        return charge_workers(f, a, prng, now_ms, ret);
    return 0;
}

/* ---- all ---------------------------------------------------------------------------------- */

int failover_decide(struct failover *f, const struct pliant_alloc *a, struct prng *prng,
                    int64_t now_ms, const struct failure_class *failure,
                    struct failover_decision *ret)
{
    bool new_attempt; /* where the whole job restarts it makes no difference [S-FAIL-4] */
    int rc;

    if (!failure->recoverable) { /* [S-FAIL-1, S-FAIL-2] */
        *ret = fail(PLIANT_REASON_NOT_RECOVERABLE);
        return 0;
    }
    if (f->group)
        return decide_group(f, a, prng, now_ms, failure, ret);
    if (failure->drain) { /* [S-DRN-8, S-DRN-9] */
        *ret = charge_drain(f);
        return 0;
    }
    rc = restart_strategy_notify(&f->strategy, a, prng, now_ms, &new_attempt); /* [S-FAIL-3] */
    if (rc < 0)
        return rc;
    *ret = restart_strategy_can_restart(&f->strategy, now_ms)
               ? restart_after(restart_strategy_backoff_ms(&f->strategy, now_ms))
               : fail(PLIANT_REASON_RESTARTS_SUPPRESSED);
    ret->new_attempt = new_attempt;
    return 0;
}

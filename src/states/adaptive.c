/* adaptive.c - the adaptive way: parallelism follows the slots
 *
 * A failure restarts the whole job, by Restarting; with pliant.adaptive.failover: region only the
 * regions that it touches, as long as there are slots for them.
 */
#include "states/drains.h"
#include "states/seating.h"

static struct state start(struct pliant_sched *s)
{
    record_open(s, true, PLIANT_TRIGGER_INITIAL_SCHEDULE); /* [S-CRE-4] */
    return waiting(s, false, WHY(PLIANT_REASON_STARTED));
}

/* ---- regions ---------------------------------------------------------------------------- */

static void find(struct pliant_sched *s)
{
    if (s->cfg.adaptive_failover != PLIANT_FAILOVER_REGION || s->job->worker_group)
        return;
    regional_find(s, true);
    s->regional.on &= s->regional.regions.n > 1; /* [P-REG-1] */
}

static void begin(struct pliant_sched *s)
{
    find(s);
    deploy_scheduled(s); /* [S-EXE-1] */
}

static bool nothing_is_lost(const void *ctx, uint32_t edge, uint32_t producer)
{
    (void)ctx, (void)edge, (void)producer;
    return true; /* pipelined results are never read again, and there are no others */
}

static struct state look(struct pliant_sched *s)
{
    return regional_pending(&s->regional) ? regional_look(s) : STAY;
}

/* ---- whose way? ------------------------------------------------------------------------- */

static bool of_tasks(enum pliant_reason reason)
{
    return reason == PLIANT_REASON_TASK_FAILED || reason == PLIANT_REASON_NODE_LOST;
}

/* Are there regions that need not restart? [P-REG-1] */
static bool spares_some(struct pliant_sched *s)
{
    struct regional *r = &s->regional;
    uint32_t touched = 0;

    for (size_t f = 0; f < r->fallen.n; f++) {
        uint32_t region = r->regions.of_task[r->fallen.v[f]];

        /* a region's mark of the last search would do as well, but it is the search's own */
        if (r->owner[region].plan == 0) {
            r->owner[region].plan = UINT32_MAX;
            touched++;
        }
    }
    for (size_t f = 0; f < r->fallen.n; f++) {
        uint32_t region = r->regions.of_task[r->fallen.v[f]];

        if (r->owner[region].plan == UINT32_MAX)
            r->owner[region].plan = 0;
    }
    return touched < r->regions.n;
}

static bool takes(struct pliant_sched *s, const struct failure *failure)
{
    return s->regional.on && of_tasks(failure->why.reason) && !failure->class.drain &&
           !s->state.executing.drain.pending && spares_some(s);
}

static struct state whole_job(struct pliant_sched *s, const struct failure *failure)
{
    s->regional.fallen.n = 0;
    return failure_decide(s, failure);
}

static struct state failed(struct pliant_sched *s, const struct failure *failure)
{
    enum pliant_job_status before = pliant_job_status(s);
    struct failover_decision decision = {0};
    struct state next;

    if (s->job->worker_group)
        return collateral_failed(s, failure);
    if (s->regional.on && of_tasks(failure->why.reason) && s->regional.fallen.n == 0)
        return STAY; /* only what was going down already */
    if (!takes(s, failure))
        return whole_job(s, failure);
    next = failure_charge(s, failure, &decision);
    if (next.id != STATE_STAY || s->no_memory)
        return next;
    checkpointing_abort(s, &s->state.executing.checkpointing, failure->why.reason); /* [P-REG-5] */
    regional_plan(s, failure, decision.backoff_ms, false);
    tell_status(s, before); /* [P-REG-2] */
    return regional_look(s);
}

/* ---- a plan is carried out -------------------------------------------------------------- */

/* Each task gets a slot, its own where that is there; false: there are too few [P-REG-4]. */
static bool seat(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    if (seating_needs(s, tasks, n) > pool_n_open(&s->pool))
        return false;
    for (size_t k = 0; k < n; k++)
        execution_reset(&s->graph, tasks[k].value, tasks[k].minor);
    seating_take(s, tasks, n);
    return !s->no_memory;
}

static struct state for_want_of_slots(struct pliant_sched *s, uint32_t serial)
{
    /* the node may be forgotten by now */
    struct why why = WHY(s->regional.plans.v[serial - s->regional.base].reason);

    record_restart(s, PLIANT_TRIGGER_RECOVERABLE_FAILOVER);
    return restarting(s, 0, false, why);
}

static struct state carry_out(struct pliant_sched *s, uint32_t serial)
{
    size_t n;
    struct sort_item *tasks = regional_tasks(s, serial, &n);

    if (!tasks)
        return STAY;
    if (!seat(s, tasks, n))
        return s->no_memory ? STAY : for_want_of_slots(s, serial);
    deploy_tasks(s, tasks, n);
    s->regional.restarts += n > 0;
    regional_finish(s, serial);
    return STAY;
}

/* ---- the whole job ---------------------------------------------------------------------- */

static struct state restart(struct pliant_sched *s, const struct failure *failure,
                            const struct failover_decision *decision)
{
    struct why why = failure->why;

    s->group.port_retried = failure->class.launch;
    why.detail = decision->backoff_ms;
    record_restart(s, failure->class.drain ? PLIANT_TRIGGER_DRAIN
                                           : PLIANT_TRIGGER_RECOVERABLE_FAILOVER);
    return restarting(s, decision->backoff_ms, false, why);
}

/* A job that could not come up again stays until the end, as a lower bound that is raised stops
 * nobody either [S-DRN-5, S-EXE-14]. Slots that only others of the pool wait for are not used until
 * their end: the job gets smaller now. Slots that are lost at the end are. */
static bool fits(const struct pliant_sched *s)
{
    if (s->pool.n_offered < s->bounds.minimal)
        return false;
    return s->graph.n_units <= s->pool.n_offered || !drain_any(s);
}

const struct way adaptive_way = {
    .rescales = true,
    .start = start,
    .find = find,
    .begin = begin,
    .look = look,
    .resources = executing_change,
    .task_down = regional_task_down,
    .available = nothing_is_lost,
    .failed = failed,
    .carry_out = carry_out,
    .restart = restart,
    .move = drain_restart,
    .fits = fits,
};

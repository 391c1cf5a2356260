/* waiting.c - WaitingForResources: hold the job until its slots are there
 *
 * Left for
 *   CreatingExecutionGraph  when the transition manager says so  [S-WFR-2..5]
 *                           or the wait is over                  [S-WFR-8]
 *   Finished                on a cancel or a global failure      [S-GEN-9]
 */
#include "states/sched.h"

static bool reaches_target(const struct pliant_sched *s)
{
    for (uint32_t v = 0; v < s->job->n_vertices; v++) {
        uint32_t want = s->bounds.vertices[v].want;

        if (s->scratch[v] < (s->target[v] < want ? s->target[v] : want))
            return false;
    }
    return true;
}

/* Over all slots [S-WFR-15]; after a rescale "desired" is what it aimed at, of the free ones
 * [S-WFR-13]. */
static struct outlook outlook(struct pliant_sched *s)
{
    struct outlook now = {.sufficient = s->pool.n_offered >= s->bounds.minimal};

    if (s->state.waiting.has_target)
        now.desired = achievable(s, pool_n_open(&s->pool)) && reaches_target(s);
    else
        now.desired = s->pool.n_offered >= s->bounds.desired;
    return now;
}

static struct state go(struct pliant_sched *s, enum pliant_reason reason)
{
    struct why why = WHY(reason);

    why.since_at_ms = s->state.waiting.manager.first_change_at_ms;
    manager_go(&s->state.waiting.manager);
    return creating(s, why);
}

static struct state verdict(struct pliant_sched *s, enum verdict verdict, struct outlook now)
{
    if (verdict == VERDICT_STAY)
        return STAY;
    return go(s,
              now.desired ? PLIANT_REASON_DESIRED_RESOURCES : PLIANT_REASON_SUFFICIENT_RESOURCES);
}

static struct state consult(struct pliant_sched *s)
{
    struct manager *m = &s->state.waiting.manager;
    struct outlook now;

    if (s->state.waiting.hold_ms > 0 && deadline_armed(&s->state.waiting.check))
        return STAY; /* it comes, and sees all */
    now = outlook(s);
    manager_on_change(m, &s->clock, now);
    return verdict(s, manager_on_trigger(m, &s->clock, now), now);
}

static size_t deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    struct waiting *w = &s->state.waiting;

    list[0] = &w->manager.phase_end;
    list[1] = &w->manager.evaluation;
    list[2] = &w->timeout;
    list[3] = &w->check;
    return 4;
}

static struct state on_due(struct pliant_sched *s, struct deadline *due)
{
    struct waiting *w = &s->state.waiting;
    struct outlook now;

    if (due == &w->timeout) {
        struct why why = WHY(PLIANT_REASON_RESOURCE_TIMEOUT);

        why.since_at_ms = s->entered_at_ms;
        return creating(s, why);
    }
    if (due == &w->check) {
        deadline_clear(due);
        return consult(s);
    }
    now = outlook(s);
    return verdict(s, manager_on_deadline(&w->manager, &s->clock, due, now), now);
}

/* The order of making is that of running at one instant: the end of the cooldown (0 ms), the
 * timeout, the first check [S-WFR-11]. */
static void enter(struct pliant_sched *s, enum pliant_state from)
{
    struct waiting *w = &s->state.waiting;
    struct manager_timing timing = {.stabilization_ms = w->has_target
                                                            ? s->cfg.rescale_stabilization_ms
                                                            : s->cfg.submission_stabilization_ms};

    (void)from;
    w->manager = manager_start(timing, &s->clock);
    w->timeout = w->check = DEADLINE_NONE;
    if (s->cfg.resource_wait_ms >= 0) /* [S-WFR-9] */
        deadline_arm(&w->timeout, &s->clock,
                     instant_after(s->clock.now_ms, s->cfg.resource_wait_ms));
    deadline_arm(&w->check, &s->clock, instant_after(s->clock.now_ms, w->hold_ms));
    if (w->hold_ms == 0)
        return;
    record_close(s, PLIANT_RESCALE_EXCEPTION_OCCURRED); /* [S-TML-10] */
    record_open(s, false, PLIANT_TRIGGER_RECOVERABLE_FAILOVER);
}

struct state waiting(struct pliant_sched *s, bool has_target, struct why why)
{
    declare(s); /* before the transition [S-WFR-1] */
    return (struct state){
        .id = PLIANT_WAITING_FOR_RESOURCES, .why = why, .waiting.has_target = has_target};
}

const struct state_ops waiting_ops = {
    .status = PLIANT_JOB_CREATED,
    .may_follow = BIT(PLIANT_CREATED) | BIT(PLIANT_CREATING_EXECUTION_GRAPH) |
                  BIT(PLIANT_RETRYING_EXECUTION_GRAPH_CREATION) | BIT(PLIANT_RESTARTING),
    .enter = enter,
    .deadlines = deadlines,
    .on_due = on_due,
    .on_resources = consult,
    .on_requirements = consult,
    .on_cancel = cancel_without_graph,
    .on_failure = failure_without_graph,
};

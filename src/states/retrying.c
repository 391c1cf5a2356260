/* retrying.c - RetryingExecutionGraphCreation: the creation failed, try again after a back-off
 *
 * The budget is one of its own; the runtime's restart strategy is not touched [S-RTY-2].
 * Left for
 *   WaitingForResources  after the back-off, with the earlier run still known  [S-RTY-1]
 *   Finished             on a cancel or a global failure  [S-GEN-9]
 */
#include "states/sched.h"

static size_t deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    list[0] = &s->state.retrying.backoff;
    return 1;
}

static struct state on_due(struct pliant_sched *s, struct deadline *due)
{
    deadline_clear(due);
    return waiting(s, false, WHY(PLIANT_REASON_BACKOFF_OVER));
}

static void enter(struct pliant_sched *s, enum pliant_state from)
{
    struct retrying *r = &s->state.retrying;

    (void)from;
    s->creation_retries++;
    /* at least a millisecond: a creation that fails at once would be tried for ever in one step */
    deadline_arm(&r->backoff, &s->clock,
                 instant_after(s->clock.now_ms, r->backoff_ms > 0 ? r->backoff_ms : 1));
    record_close(s, PLIANT_RESCALE_EXCEPTION_OCCURRED); /* [S-TML-10] */
    record_open(s, false, PLIANT_TRIGGER_RECOVERABLE_FAILOVER);
}

struct state retrying(struct pliant_sched *s, int64_t backoff_ms, struct why why)
{
    (void)s;
    why.detail = backoff_ms;
    return (struct state){.id = PLIANT_RETRYING_EXECUTION_GRAPH_CREATION,
                          .why = why,
                          .retrying = {.backoff_ms = backoff_ms, .backoff = DEADLINE_NONE}};
}

const struct state_ops retrying_ops = {
    .status = PLIANT_JOB_CREATED,
    .may_follow = BIT(PLIANT_CREATING_EXECUTION_GRAPH),
    .enter = enter,
    .deadlines = deadlines,
    .on_due = on_due,
    .on_cancel = cancel_without_graph,
    .on_failure = failure_without_graph,
};

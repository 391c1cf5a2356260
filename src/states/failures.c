/* failures.c - the one failure path: record, classify, decide; and the cancel beside it */
#include "failover/group_error.h"
#include "states/sched.h"

void failure_record(struct pliant_sched *s, const struct pliant_failure_item *item)
{
    if (failures_add(&s->failures, item) < 0)
        sched_no_memory(s);
}

/* What a worker group ends with is one error of all its ranks, in front of theirs. */
static void record_end_of_group(struct pliant_sched *s)
{
    enum pliant_reason end = s->group.end;
    char text[PLIANT_CAUSE_MAX + 1];

    s->group.end = PLIANT_REASON_NONE;
    group_error_text(&s->failures.present, end, text, sizeof text);
    if (failures_add_first(&s->failures, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                                       .reason = (uint8_t)end,
                                                                       .cause = text}) < 0)
        sched_no_memory(s);
}

void failure_archive(struct pliant_sched *s)
{
    const struct pliant_failure *entry;

    if (s->group.end != PLIANT_REASON_NONE)
        record_end_of_group(s);
    if (failures_archive(&s->failures, &entry) < 0)
        sched_no_memory(s);
    if (entry)
        emit(s, PLIANT_ACT_FAILURE)->failure.entry = entry;
}

/* A rescale that was under way ends with the root of it all [S-TML-11]. */
static void note_exception(struct pliant_sched *s)
{
    const struct pliant_failure_item *root = s->failures.present.items.v;

    if (failures_empty(&s->failures)) /* there was no memory for it */
        return;
    if (timeline_exception(&s->timeline,
                           *root->cause ? root->cause : pliant_reason_name(root->reason)) < 0)
        sched_no_memory(s);
}

/* The budget that ended the job is news of its own; what led to it is recorded already. */
static struct state give_up_job(struct pliant_sched *s, const struct failure *failure,
                                enum pliant_reason why)
{
    struct why end = failure->why;

    if (why == PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED)
        failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                        .reason = (uint8_t)why,
                                                        .cause = "drain budget exhausted"});
    if (end.reason != PLIANT_REASON_STOPPING_FAILED)
        end.reason = why;
    note_exception(s);
    if (s->way->gives_up)
        s->way->gives_up(s, failure, why);
    if (s->failover.group)
        s->group.end = why;
    return failing(s, end);
}

struct state failure_charge(struct pliant_sched *s, const struct failure *failure,
                            struct failover_decision *ret)
{
    if (failover_decide(&s->failover, s->alloc, &s->prng, s->clock.now_ms, &failure->class, ret) <
        0) {
        sched_no_memory(s);
        return STAY;
    }
    return ret->action == FAILOVER_FAIL ? give_up_job(s, failure, ret->why) : STAY;
}

struct state failure_decide(struct pliant_sched *s, const struct failure *failure)
{
    struct failover_decision decision = {0};
    struct state next = failure_charge(s, failure, &decision);

    if (next.id != STATE_STAY || s->no_memory)
        return next;
    return s->way->restart(s, failure, &decision);
}

struct state failure_recorded_only(struct pliant_sched *s, const struct failure *failure)
{
    (void)s, (void)failure;
    return STAY;
}

struct state failure_without_graph(struct pliant_sched *s, const struct failure *failure)
{
    failure_archive(s); /* [S-HIST-6] */
    return finished(s, PLIANT_JOB_FAILED, failure->why);
}

struct state cancel_without_graph(struct pliant_sched *s)
{
    return finished(s, PLIANT_JOB_CANCELED, WHY(PLIANT_REASON_CANCEL_REQUESTED));
}

struct state cancel_with_graph(struct pliant_sched *s)
{
    return canceling(s, WHY(PLIANT_REASON_CANCEL_REQUESTED));
}

void task_over(struct pliant_sched *s, uint32_t v, uint32_t subtask, struct task *attempt,
               enum pliant_task_state state, bool input_lost)
{
    if (task_has_rivals(attempt)) {
        speculation_over(s, v, subtask, attempt, state, input_lost);
        return;
    }
    execution_move(&s->graph, &s->pool, attempt, state, s->clock.now_ms);
    speculation_note_end(s, v, subtask);
    s->way->task_down(s, v, subtask);
}

/* ---- going down ------------------------------------------------------------------------- */

void attempt_stop(struct pliant_sched *s, uint32_t v, uint32_t subtask, struct task *attempt)
{
    execution_move(&s->graph, &s->pool, attempt, PLIANT_TASK_CANCELING, s->clock.now_ms);
    emit(s, PLIANT_ACT_CANCEL)->task = (struct pliant_task){{v + 1}, subtask, attempt->attempt};
}

/* Nobody has to confirm the end of what has no slot. */
void task_stop(struct pliant_sched *s, uint32_t v, uint32_t subtask, bool unstarted)
{
    for (struct task *a = &s->graph.vertices[v].tasks[subtask]; a; a = execution_next(&s->graph, a))
        if (task_seated(a) && a->state != PLIANT_TASK_CANCELING)
            attempt_stop(s, v, subtask, a);
        else if (a->state == PLIANT_TASK_CREATED && (unstarted || a->rival))
            execution_move(&s->graph, &s->pool, a, PLIANT_TASK_CANCELED, s->clock.now_ms);
    speculation_rank(s, v, subtask);
}

static const struct task *first_canceling(const struct execution *g, const struct task *attempt)
{
    while (attempt && attempt->state != PLIANT_TASK_CANCELING)
        attempt = execution_next(g, attempt);
    return attempt;
}

void task_give_up(struct pliant_sched *s, uint32_t v, uint32_t subtask, struct failure *ret)
{
    const struct task *attempt;

    while ((attempt = first_canceling(&s->graph, &s->graph.vertices[v].tasks[subtask]))) {
        struct pool_node *node = pool_node(&s->pool, s->pool.slots.v[attempt->slot].node);

        emit(s, PLIANT_ACT_GIVE_UP_NODE)->node.node = node_id(node);
        node_gone(s, node, ret);
    }
}

/* ---- the loss of a node ----------------------------------------------------------------- */

static void fail_attempt(struct pliant_sched *s, const struct pool_node *node, uint32_t v,
                         uint32_t subtask, struct task *attempt, enum pliant_reason reason)
{
    if (task_goes_down(s, attempt)) {
        task_over(s, v, subtask, attempt, PLIANT_TASK_CANCELED, false);
        return;
    }
    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = (uint8_t)reason,
                                                    .recoverable = true,
                                                    .task = {{v + 1}, subtask, attempt->attempt},
                                                    .node = node->name});
    task_over(s, v, subtask, attempt, PLIANT_TASK_FAILED, false);
}

/* An attempt of the task that lives in the slot, or NULL. */
static struct task *attempt_in(struct pliant_sched *s, uint32_t v, uint32_t subtask, uint32_t row)
{
    struct task *a =
        subtask < s->graph.parallelism[v] ? &s->graph.vertices[v].tasks[subtask] : NULL;

    while (a && !(task_seated(a) && a->slot == row))
        a = execution_next(&s->graph, a);
    return a;
}

static void fail_slot(struct pliant_sched *s, const struct pool_node *node, uint32_t row,
                      enum pliant_reason reason)
{
    const struct pliant_job *job = s->job;
    struct pool_slot slot = s->pool.slots.v[row];

    for (uint32_t m = job->group_first[slot.group]; m < job->group_first[slot.group + 1]; m++) {
        uint32_t v = job->group_members[m];
        struct task *attempt = attempt_in(s, v, slot.subtask, row);

        if (attempt)
            fail_attempt(s, node, v, slot.subtask, attempt, reason);
    }
}

bool node_gone(struct pliant_sched *s, struct pool_node *node, struct failure *ret)
{
    bool drain = node->draining, used = node->n_used > 0;
    enum pliant_reason reason = drain ? PLIANT_REASON_DRAINING_NODE_LOST : PLIANT_REASON_NODE_LOST;

    *ret = (struct failure){
        .class = {.recoverable = true,
                  .drain = drain,
                  .preempted = drain && node->drain_reason == PLIANT_DRAIN_PREEMPTION},
        .why = {.reason = reason, .node = node_id(node), .since_at_ms = PLIANT_NEVER}};
    for (uint32_t row = node->first_slot; node->n_used > 0 && row != POOL_NONE;
         row = s->pool.slots.v[row].next)
        if (s->pool.slots.v[row].live > 0)
            fail_slot(s, node, row, reason);
    if (s->way->node_lost)
        used |= s->way->node_lost(s, node, reason);
    pool_lose(&s->pool, node);
    return used;
}

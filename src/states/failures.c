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

void task_over(struct pliant_sched *s, uint32_t v, uint32_t subtask, enum pliant_task_state state)
{
    execution_move(&s->graph, &s->pool, &s->graph.vertices[v].tasks[subtask], state,
                   s->clock.now_ms);
    s->way->task_down(s, v, subtask);
}

/* ---- the loss of a node ----------------------------------------------------------------- */

static void fail_task(struct pliant_sched *s, const struct pool_node *node, uint32_t v,
                      uint32_t subtask, enum pliant_reason reason)
{
    struct task *task = &s->graph.vertices[v].tasks[subtask];

    if (task->state == PLIANT_TASK_CANCELING && regional_pending(&s->regional)) {
        task_over(s, v, subtask, PLIANT_TASK_CANCELED); /* it was going down: no news [3.1] */
        return;
    }
    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = (uint8_t)reason,
                                                    .recoverable = true,
                                                    .task = {{v + 1}, subtask, task->attempt},
                                                    .node = node->name});
    task_over(s, v, subtask, PLIANT_TASK_FAILED);
}

static void fail_slot(struct pliant_sched *s, const struct pool_node *node, uint32_t row,
                      enum pliant_reason reason)
{
    const struct pliant_job *job = s->job;
    struct pool_slot slot = s->pool.slots.v[row];

    for (uint32_t m = job->group_first[slot.group]; m < job->group_first[slot.group + 1]; m++) {
        uint32_t v = job->group_members[m];

        if (slot.subtask < s->graph.parallelism[v] &&
            task_seated(&s->graph.vertices[v].tasks[slot.subtask]) &&
            s->graph.vertices[v].tasks[slot.subtask].slot == row)
            fail_task(s, node, v, slot.subtask, reason);
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

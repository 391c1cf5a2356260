/* machine.c - one step: timers that are due, the event, timers that it made due; and the one place
 * where a transition is carried out
 *
 * The flow of an event: machine_step() -> deliver() changes the data (pool, graph, bounds) ->
 * the state's reaction returns the next state -> settle() leaves, assigns, enters.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "allocator/requirements.h"
#include "states/drains.h"
#include "states/sched.h"

/* More timers than this at one instant would be a loop of our own making. */
#define DUE_MAX 100000u

static const struct state_ops *const OPS[PLIANT_STATES] = {
    [PLIANT_CREATED] = &created_ops,
    [PLIANT_WAITING_FOR_RESOURCES] = &waiting_ops,
    [PLIANT_CREATING_EXECUTION_GRAPH] = &creating_ops,
    [PLIANT_RETRYING_EXECUTION_GRAPH_CREATION] = &retrying_ops,
    [PLIANT_EXECUTING] = &executing_ops,
    [PLIANT_RESTARTING] = &restarting_ops,
    [PLIANT_FAILING] = &failing_ops,
    [PLIANT_CANCELING] = &canceling_ops,
    [PLIANT_STOP_WITH_SAVEPOINT] = &stopping_ops,
    [PLIANT_FINISHED] = &finished_ops,
};

const struct state_ops *state_ops(enum pliant_state id)
{
    return OPS[id];
}

const struct state_ops *sched_ops(const struct pliant_sched *s)
{
    bool launching = s->state.id == PLIANT_CREATING_EXECUTION_GRAPH &&
                     s->state.creating.launch.phase != LAUNCH_NONE;

    return launching ? &launching_ops : OPS[s->state.id];
}

static const struct state_ops *ops(const struct pliant_sched *s)
{
    return sched_ops(s);
}

/* ---- transitions ------------------------------------------------------------------------ */

static void tell_change(struct pliant_sched *s, const struct state *next)
{
    struct pliant_action *act = emit(s, PLIANT_ACT_STATE_CHANGED);

    act->flag[0] = s->state.id;
    act->flag[1] = next->id;
    act->flag[2] = (uint8_t)next->why.reason;
    act->change.slots = s->pool.n_offered;
    act->change.node = next->why.node;
    act->change.since_at_ms = next->why.since_at_ms;
    act->change.detail = next->why.detail;
}

/* Consecutive states may show the same status; then nobody is told [S-GEN-8]. */
void tell_status(struct pliant_sched *s, enum pliant_job_status before)
{
    enum pliant_job_status now = pliant_job_status(s);
    struct pliant_action *act;

    if (now == before)
        return;
    act = emit(s, PLIANT_ACT_STATUS_CHANGED);
    act->status.from = (uint8_t)before;
    act->status.to = (uint8_t)now;
}

/* The only place where the state changes [S-GEN-1]. */
static void settle(struct pliant_sched *s, struct state next)
{
    enum pliant_state from = s->state.id;
    const struct state_ops *old = ops(s);
    enum pliant_job_status before = pliant_job_status(s);

    if (next.id == STATE_STAY || s->no_memory)
        return;
    assert(next.id != from && (OPS[next.id]->may_follow & BIT(from))); /* [S-GEN-3] */
    if (old->leave)
        old->leave(s, &next);
    record_span(s); /* [S-TML-12] */
    tell_change(s, &next);
    s->state = next;
    s->entered_at_ms = s->clock.now_ms;
    if (old->has_graph && !OPS[next.id]->has_graph) {
        reports_over(s);
        scheduling_end(s);
        regional_end(s);
        execution_end(&s->graph);
    }
    tell_status(s, before);
    if (OPS[next.id]->enter)
        OPS[next.id]->enter(s, from);
}

/* ---- timers ----------------------------------------------------------------------------- */

size_t machine_deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    size_t n = ops(s)->deadlines ? ops(s)->deadlines(s, list) : 0;

    list[n++] = &s->idle_check;
    list[n++] = &s->registration.expiry;
    assert(n <= DEADLINES_MAX);
    return n;
}

static struct deadline *earliest(struct pliant_sched *s)
{
    struct deadline *list[DEADLINES_MAX];
    size_t n = machine_deadlines(s, list);
    struct deadline *first = list[0];

    for (size_t i = 1; i < n; i++)
        if (deadline_before(list[i], first))
            first = list[i];
    return first;
}

int64_t machine_next_deadline(const struct pliant_sched *s)
{
    return earliest((struct pliant_sched *)(uintptr_t)s)->at_ms;
}

/* A plan counts its slots as taken, so nothing is given back while one is out. */
static void check_idle(struct pliant_sched *s)
{
    if (s->state.id != PLIANT_CREATING_EXECUTION_GRAPH)
        release_idle(s);
    deadline_arm(&s->idle_check, &s->clock,
                 instant_after(s->clock.now_ms, s->cfg.slot_idle_timeout_ms));
}

static void give_up_registration(struct pliant_sched *s)
{
    registration_expired(s);
    settle(s, reports_consume(s));
}

/* In the order of (due, made); what a timer makes due at once runs as well. */
static void run_due(struct pliant_sched *s)
{
    for (uint32_t rounds = 0; !s->no_memory; rounds++) {
        struct deadline *due = earliest(s);

        if (due->at_ms > s->clock.now_ms)
            return;
        assert(rounds < DUE_MAX);
        if (due == &s->idle_check)
            check_idle(s);
        else if (due == &s->registration.expiry)
            give_up_registration(s);
        else
            settle(s, ops(s)->on_due(s, due));
    }
}

/* ---- news of nodes ---------------------------------------------------------------------- */

static void ignored(struct pliant_sched *s)
{
    s->events_ignored++;
}

static void added_slots(struct pliant_sched *s)
{
    if (ops(s)->on_resources)
        settle(s, ops(s)->on_resources(s));
}

/* The node that an event means, if it is the life that is up; else NULL. */
static struct pool_node *current_node(struct pliant_sched *s, const char *name,
                                      uint64_t incarnation)
{
    struct pool_node *node = pool_find(&s->pool, name);

    if (node && (incarnation == 0 || incarnation == node->incarnation))
        return node;
    ignored(s);
    return NULL;
}

/* Did it keep to the end that its notice named? */
static void note_drained(struct pliant_sched *s, const struct pool_node *node)
{
    if (node->draining)
        worth_drained(&s->policy.worth,
                      s->clock.now_ms < node->drain_end_at_ms - s->cfg.drain_lead_ms);
}

static void lose(struct pliant_sched *s, struct pool_node *node)
{
    struct failure failure;
    bool drained = node->draining || node->n_reclaimed > 0;

    note_drained(s, node);
    if (node_gone(s, node, &failure)) {
        settle(s, ops(s)->on_failure(s, &failure));
        if (ops(s)->on_tasks)
            settle(s, ops(s)->on_tasks(s));
    }
    if (drained && ops(s)->on_drain_over)
        settle(s, ops(s)->on_drain_over(s));
}

static void node_lost(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pool_node *node = current_node(s, ev->node.name, ev->node.incarnation);

    if (node)
        lose(s, node);
}

static void drain_withdrawn(struct pliant_sched *s, struct pool_node *node)
{
    pool_drain(&s->pool, node, false, s->clock.now_ms);
    line_node(s, node);
    if (ops(s)->on_drain_over)
        settle(s, ops(s)->on_drain_over(s));
    added_slots(s); /* [S-DRN-10] */
}

static void node_up(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pool_node *node = pool_find(&s->pool, ev->node_up.name);

    if (node && ev->node_up.incarnation == node->incarnation && node->draining) {
        drain_withdrawn(s, node);
        return;
    }
    if (node && ev->node_up.incarnation <= node->incarnation) {
        ignored(s);
        return;
    }
    if (node)
        lose(s, node); /* it came back before anyone saw it go */
    if (s->state.id == PLIANT_FINISHED)
        return; /* with that: the last that lived was an attempt that nobody needed */
    if (pool_join(&s->pool, s->clock.now_ms, ev->node_up.incarnation, ev->node_up.name,
                  ev->node_up.zone, ev->node_up.domain, ev->node_up.labels, ev->node_up.n_labels,
                  ev->node_up.slots, &node) < 0)
        sched_no_memory(s);
    else if (ev->node_up.slots > 0)
        added_slots(s);
}

static void slots_granted(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pool_node *node = current_node(s, ev->granted.name, ev->granted.incarnation);

    if (!node || ev->granted.slots == 0)
        return;
    if (pool_grant(&s->pool, node, s->clock.now_ms, ev->granted.slots) < 0)
        sched_no_memory(s);
    else if (!node->draining)
        added_slots(s);
}

/* Free slots go back at once; others are vacated by a move, as for a drain. Only those are news
 * for a move that is pending already. */
static void slots_reclaimed(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pool_node *node = current_node(s, ev->reclaimed.name, ev->reclaimed.incarnation);
    int64_t end = ev->reclaimed.deadline_at_ms;
    uint32_t before;

    if (!node)
        return;
    before = node->n_reclaimed;
    if (end == PLIANT_NEVER)
        end = instant_after(s->clock.now_ms, DRAIN_DEFAULT_MS);
    if (pool_reclaim(&s->pool, node, ev->reclaimed.slots, s->clock.now_ms, end) < 0)
        sched_no_memory(s);
    line_node(s, node);
    if (!s->no_memory && node->n_reclaimed > before && ops(s)->on_drain)
        settle(s, ops(s)->on_drain(s, node));
}

static void node_withdrawn(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pool_node *node = current_node(s, ev->node.name, ev->node.incarnation);

    if (node && node->draining)
        drain_withdrawn(s, node);
    else if (node)
        ignored(s);
}

/* The end is an instant; a later notice never moves it later [S-DRN-3]. */
static void node_draining(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pool_node *node = current_node(s, ev->draining.name, ev->draining.incarnation);
    int64_t end = ev->draining.deadline_at_ms;

    if (!node)
        return;
    if (end == PLIANT_NEVER)
        end = instant_after(s->clock.now_ms, DRAIN_DEFAULT_MS);
    if (node->draining && end >= node->drain_end_at_ms) {
        ignored(s);
        return;
    }
    node->drain_reason = ev->draining.reason;
    node->drain_notice_at_ms = s->clock.now_ms;
    node->drain_end_at_ms = end;
    pool_drain(&s->pool, node, true, s->clock.now_ms);
    line_node(s, node);
    if (ops(s)->on_drain)
        settle(s, ops(s)->on_drain(s, node));
}

/* ---- news of tasks ---------------------------------------------------------------------- */

static void tasks_changed(struct pliant_sched *s)
{
    if (ops(s)->on_tasks)
        settle(s, ops(s)->on_tasks(s));
}

/* A task that is told to stop no longer comes up [S-GEN-7: no graph, no such task]. */
static bool may_become(const struct task *task, enum pliant_task_state state)
{
    if (!task || !task_seated(task))
        return false;
    if (state == PLIANT_TASK_INITIALIZING)
        return task->state == PLIANT_TASK_DEPLOYING;
    if (state == PLIANT_TASK_RUNNING)
        return task->state == PLIANT_TASK_DEPLOYING || task->state == PLIANT_TASK_INITIALIZING;
    return true;
}

static void task_became(struct pliant_sched *s, struct pliant_task id, enum pliant_task_state state)
{
    struct task *task = execution_current(&s->graph, id);

    if (!may_become(task, state)) {
        ignored(s);
        return;
    }
    if (state == PLIANT_TASK_FINISHED)
        execution_end_of_data(&s->graph, task);
    if (state >= PLIANT_TASK_FINISHED) {
        task_over(s, id.vertex.v - 1, id.subtask, task, state, false);
    } else {
        execution_move(&s->graph, &s->pool, task, state, s->clock.now_ms);
        speculation_rank(s, id.vertex.v - 1, id.subtask);
    }
    tasks_changed(s);
}

static void task_end_of_data(struct pliant_sched *s, struct pliant_task id)
{
    struct task *task = execution_current(&s->graph, id);

    if (!task || task->state != PLIANT_TASK_RUNNING || task->end_of_data) {
        ignored(s);
        return;
    }
    execution_end_of_data(&s->graph, task);
    tasks_changed(s);
}

static enum pliant_reason reason_of(const struct failure_class *class)
{
    if (class->preempted)
        return PLIANT_REASON_PREEMPTED;
    return class->launch ? PLIANT_REASON_PORT_IN_USE : PLIANT_REASON_TASK_FAILED;
}

static void task_failed(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pliant_task id = ev->failure.task;
    struct task *task = execution_current(&s->graph, id);
    const struct pool_node *node;
    struct failure failure;

    if (!task || !task_seated(task)) {
        ignored(s);
        return;
    }
    if (task_goes_down(s, task)) {
        task_became(s, id, PLIANT_TASK_CANCELED);
        return;
    }
    node = pool_node(&s->pool, s->pool.slots.v[task->slot].node);
    failure = (struct failure){.class = failure_class_of(s, ev, node),
                               .why = {.node = node_id(node), .since_at_ms = PLIANT_NEVER},
                               .input_lost = ev->failure.input_lost,
                               .edge = ev->failure.edge,
                               .producer = ev->failure.producer};
    failure.why.reason = reason_of(&failure.class);
    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = (uint8_t)failure.why.reason,
                                                    .recoverable = ev->failure.recoverable,
                                                    .exit_code = ev->failure.exit_code,
                                                    .task = id,
                                                    .node = node->name,
                                                    .cause = cause_or_missing(ev->failure.cause)});
    task_over(s, id.vertex.v - 1, id.subtask, task, PLIANT_TASK_FAILED, ev->failure.input_lost);
    settle(s, ops(s)->on_failure(s, &failure));
    tasks_changed(s);
}

/* Who was not told to stop has failed, where others go on without him. */
static void task_canceled(struct pliant_sched *s, struct pliant_task id)
{
    const struct task *task = execution_current(&s->graph, id);

    if (!s->regional.on || !task || !task_seated(task) || task->state == PLIANT_TASK_CANCELING)
        task_became(s, id, PLIANT_TASK_CANCELED);
    else
        task_failed(s, &(struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                              .failure = {.task = id,
                                                          .recoverable = true,
                                                          .cause = "it was canceled by others"}});
}

static void global_failure(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct failure failure = {.class = {.recoverable = ev->failure.recoverable},
                              .why = WHY(PLIANT_REASON_GLOBAL_FAILURE)};

    if (!ops(s)->on_failure) {
        ignored(s);
        return;
    }
    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = PLIANT_REASON_GLOBAL_FAILURE,
                                                    .recoverable = ev->failure.recoverable,
                                                    .cause = cause_or_missing(ev->failure.cause)});
    settle(s, ops(s)->on_failure(s, &failure));
}

/* ---- wishes ----------------------------------------------------------------------------- */

static void refused_requirement(void *ctx, uint32_t vertex, enum pliant_reason reason)
{
    emit_refused(ctx, reason, vertex == REQUIREMENTS_NO_VERTEX ? 0 : vertex + 1);
}

/* Stored and declared first, then the state is told [S-REQ-4]. */
static void requirements(struct pliant_sched *s, const struct pliant_event *ev)
{
    int changed;

    if (s->state.id == PLIANT_FINISHED || !s->way->rescales ||
        s->cfg.mode == PLIANT_MODE_REACTIVE) {
        emit_refused(s,
                     s->state.id == PLIANT_FINISHED ? PLIANT_REASON_JOB_ENDED
                     : s->way->rescales             ? PLIANT_REASON_REACTIVE_MODE
                                                    : PLIANT_REASON_FIXED_PARALLELISM,
                     0);
        return;
    }
    changed = requirements_apply(&s->bounds, s->job, ev->requirements.v, ev->requirements.n,
                                 s->alloc, refused_requirement, s);
    if (changed == -ENOMEM)
        sched_no_memory(s);
    if (changed <= 0)
        return;
    declare(s);
    if (s->state.id != PLIANT_CREATED) { /* an epoch begins with the start [S-TML-4] */
        record_span(s);
        record_close(s, PLIANT_RESCALE_REQUIREMENTS_UPDATED);
        record_open(s, true, PLIANT_TRIGGER_UPDATE_REQUIREMENT);
    }
    if (ops(s)->on_requirements)
        settle(s, ops(s)->on_requirements(s));
}

static void start(struct pliant_sched *s)
{
    if (ops(s)->on_start)
        settle(s, ops(s)->on_start(s));
    else
        emit_refused(s, PLIANT_REASON_ALREADY_STARTED, 0); /* [S-CRE-2] */
}

static void request(struct pliant_sched *s, const struct pliant_event *ev)
{
    if (ops(s)->on_request)
        settle(s, ops(s)->on_request(s, ev));
    else
        emit_refused(s,
                     s->state.id == PLIANT_FINISHED ? PLIANT_REASON_JOB_ENDED
                                                    : PLIANT_REASON_NOT_EXECUTING,
                     0);
}

static void cancel(struct pliant_sched *s)
{
    if (ops(s)->on_cancel)
        settle(s, ops(s)->on_cancel(s));
    else
        ignored(s);
}

static void suspend(struct pliant_sched *s)
{
    if (s->state.id == PLIANT_FINISHED)
        ignored(s);
    else
        settle(s, finished(s, PLIANT_JOB_SUSPENDED, WHY(PLIANT_REASON_SUSPEND_REQUESTED)));
}

/* ---- the step --------------------------------------------------------------------------- */

static void plan_answer(struct pliant_sched *s, const struct pliant_event *ev)
{
    if (ops(s)->on_plan)
        settle(s, ops(s)->on_plan(s, ev));
    else
        ignored(s);
}

/* Who is stopped now is not sent on before: nothing that it would do is in the checkpoint. */
static void registered(struct pliant_sched *s, const struct pliant_event *ev)
{
    if (ev->kind == PLIANT_EV_CHECKPOINT_COMPLETED && ops(s)->on_registered)
        settle(s, ops(s)->on_registered(s));
    reports_tell_taken(s);
    settle(s, reports_consume(s));
}

/* A worker group's checkpoints are facts of its run: one that exists is the one to restore from,
 * even before the start. Only a launch that was planned is not changed any more. */
static bool concerns_run(const struct pliant_sched *s, const struct pliant_event *ev)
{
    return s->job->worker_group && s->state.id != PLIANT_FINISHED &&
           s->state.id != PLIANT_CREATING_EXECUTION_GRAPH && ev->checkpoint.own_accord &&
           ev->kind == PLIANT_EV_CHECKPOINT_COMPLETED;
}

static void checkpoint_news(struct pliant_sched *s, const struct pliant_event *ev)
{
    if (registration_ended(s, ev))
        registered(s, ev);
    else if (ops(s)->on_checkpoint)
        settle(s, ops(s)->on_checkpoint(s, ev));
    else if (concerns_run(s, ev))
        checkpoint_note_completed(s, ev->checkpoint.id, ev->checkpoint.triggered_at_ms, ev);
    else
        ignored(s);
}

static void report(struct pliant_sched *s, const struct pliant_event *ev)
{
    bool not_current;

    settle(s, report_came(s, ev, &not_current));
    if (not_current)
        ignored(s);
}

/* Slots that come after the end are not the job's [S-FIN-1]. */
static bool comes_too_late(const struct pliant_sched *s, const struct pliant_event *ev)
{
    return s->state.id == PLIANT_FINISHED &&
           (ev->kind == PLIANT_EV_NODE_UP || ev->kind == PLIANT_EV_SLOTS_GRANTED ||
            ev->kind == PLIANT_EV_SLOTS_RECLAIMED);
}

static bool changes_nodes(const struct pliant_event *ev)
{
    return ev->kind == PLIANT_EV_NODE_UP || ev->kind == PLIANT_EV_NODE_DRAINING ||
           ev->kind == PLIANT_EV_NODE_DRAIN_WITHDRAWN || ev->kind == PLIANT_EV_NODE_LOST;
}

static void deliver(struct pliant_sched *s, const struct pliant_event *ev)
{
    if (comes_too_late(s, ev)) {
        ignored(s);
        return;
    }
    if (changes_nodes(ev))
        worth_changed(&s->policy.worth, &s->policy.limits, s->clock.now_ms);
    switch (ev->kind) {
    case PLIANT_EV_TICK:
    case PLIANT_EVENTS:
        return;
    case PLIANT_EV_START:
        start(s);
        return;
    case PLIANT_EV_NODE_UP:
        node_up(s, ev);
        return;
    case PLIANT_EV_NODE_DRAINING:
        node_draining(s, ev);
        return;
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
        node_withdrawn(s, ev);
        return;
    case PLIANT_EV_NODE_LOST:
        node_lost(s, ev);
        return;
    case PLIANT_EV_SLOTS_GRANTED:
        slots_granted(s, ev);
        return;
    case PLIANT_EV_SLOTS_RECLAIMED:
        slots_reclaimed(s, ev);
        return;
    case PLIANT_EV_SLOTS_RESERVED:
    case PLIANT_EV_SLOTS_REFUSED:
    case PLIANT_EV_CREATION_FAILED:
        plan_answer(s, ev);
        return;
    case PLIANT_EV_TASK_INITIALIZING:
        task_became(s, ev->task, PLIANT_TASK_INITIALIZING);
        return;
    case PLIANT_EV_TASK_RUNNING:
        task_became(s, ev->task, PLIANT_TASK_RUNNING);
        return;
    case PLIANT_EV_TASK_END_OF_DATA:
        task_end_of_data(s, ev->task);
        return;
    case PLIANT_EV_TASK_FINISHED:
        batching_wrote(s, ev);
        task_became(s, ev->finished.task, PLIANT_TASK_FINISHED);
        return;
    case PLIANT_EV_TASK_CANCELED:
        task_canceled(s, ev->task);
        return;
    case PLIANT_EV_TASK_FAILED:
        task_failed(s, ev);
        return;
    case PLIANT_EV_GLOBAL_FAILURE:
        global_failure(s, ev);
        return;
    case PLIANT_EV_REPORT:
        report(s, ev);
        return;
    case PLIANT_EV_CHECKPOINT_COMPLETED:
    case PLIANT_EV_CHECKPOINT_FAILED:
    case PLIANT_EV_SAVEPOINT_COMPLETED:
    case PLIANT_EV_SAVEPOINT_FAILED:
        checkpoint_news(s, ev);
        return;
    case PLIANT_EV_REQUIREMENTS:
        requirements(s, ev);
        return;
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_SAVEPOINT_REQUESTED:
    case PLIANT_EV_STOP:
        request(s, ev);
        return;
    case PLIANT_EV_CANCEL:
        cancel(s);
        return;
    case PLIANT_EV_SUSPEND:
        suspend(s);
        return;
    }
}

int machine_step(struct pliant_sched *s, int64_t now_ms, const struct pliant_event *ev)
{
    if (s->no_memory)
        return -ENOMEM;
    outbox_clear(s);
    pool_bury(&s->pool);
    failures_bury(&s->failures);
    timeline_bury(&s->timeline);
    s->clock.now_ms = now_ms;
    run_due(s);
    if (!s->no_memory)
        deliver(s, ev);
    line_watch(s);
    run_due(s);
    line_watch(s);
    if (s->state.id == PLIANT_EXECUTING)
        declare(s); /* slots may have been closed, attempts have ended */
    return_reclaimed(s);
    return s->no_memory ? -ENOMEM : 0;
}

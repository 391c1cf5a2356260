/* executing.c - Executing: the job runs; is a change of the cluster worth a restart?
 *
 * Left for
 *   Restarting         when the transition manager and the rescale policy say so  [S-EXE-11];
 *                      when a drain moves the job (drains.c);
 *                      after a failure that may restart  [S-FAIL-1]
 *   Failing            after a failure that may not
 *   Canceling          on a cancel
 *   StopWithSavepoint  on a wish that can be carried out  [S-EXE-17]
 *   Finished           when every task is over  [S-EXE-16]
 *
 * With jobmanager.scheduler: default there is no rescale, and failures restart regions within it.
 */
#include <assert.h>

#include "states/drains.h"
#include "states/sched.h"

/* ---- is it time for a rescale? ---------------------------------------------------------- */

/* Slots in use count; without another parallelism to be had there is nothing to do
 * [S-EXE-4, S-EXE-5]. */
static struct outlook outlook(struct pliant_sched *s)
{
    bool differs = achievable_differs(s);

    return (struct outlook){.sufficient = differs,
                            .desired = differs && s->pool.n_offered >= s->bounds.desired};
}

static struct state rescale(struct pliant_sched *s)
{
    struct executing *e = &s->state.executing;
    struct why why = {.reason = PLIANT_REASON_RESCALE,
                      .since_at_ms = e->manager.first_change_at_ms,
                      .detail = (int64_t)e->trigger_checkpoint};
    bool possible = target_aim(s);

    assert(possible); /* what was sufficient a moment ago [S-EXE-12] */
    (void)possible;
    manager_go(&e->manager);
    timeline_refresh(&s->timeline, &s->bounds); /* [S-TML-7] */
    return restarting(s, 0, true, why);
}

/* Its completion is a trigger, and the policy is asked again. One that is pending ends first. */
static void checkpoint_for_policy(struct pliant_sched *s)
{
    struct executing *e = &s->state.executing;

    if (e->wants_checkpoint && checkpoint_trigger(s, &e->checkpointing, PLIANT_CHECKPOINT_RESCALE))
        e->wants_checkpoint = false;
}

static struct rescale_answer ask_policy(struct pliant_sched *s)
{
    struct rescale_offer offer = {.now_ms = s->clock.now_ms,
                                  .entered_at_ms = s->entered_at_ms,
                                  .first_change_at_ms =
                                      s->state.executing.manager.first_change_at_ms,
                                  .can_checkpoint = checkpointing_on(s),
                                  .has_checkpoint = s->checkpoints.completed_id != 0,
                                  .checkpoint_at_ms = s->checkpoints.triggered_at_ms,
                                  .view = worth_view(s)};
    struct rescale_answer answer = rescale_policy_ask(&s->policy, &offer);

    if (answer.why.reason != PLIANT_JUDGED_NOT)
        record_judged(s, &(struct pliant_judged){.judgement = answer.why.reason,
                                                 .from = (uint32_t)offer.view.p,
                                                 .to = (uint32_t)offer.view.q,
                                                 .gain = answer.why.gain,
                                                 .cost = answer.why.cost});
    return answer;
}

/* The manager would go: ask the policy. While a drain is pending the move judges [S-DRN-7]. */
static struct state verdict(struct pliant_sched *s, enum verdict verdict)
{
    struct executing *e = &s->state.executing;
    struct rescale_answer answer;

    if (verdict == VERDICT_STAY || e->drain.pending || e->collateral.held ||
        regional_pending(&s->regional)) /* [P-REG-5] */
        return STAY;
    answer = ask_policy(s);
    e->wants_checkpoint = answer.verdict == RESCALE_AFTER_CHECKPOINT;
    if (answer.verdict == RESCALE_NOW)
        return rescale(s);
    deadline_arm(&e->again, &s->clock, answer.again_at_ms);
    checkpoint_for_policy(s);
    return STAY;
}

/* What the manager did shows in its wish for a checkpoint, and in the history: a change that
 * brings nothing closes the record [S-TML-9]. */
static struct state manager_done(struct pliant_sched *s, enum verdict v)
{
    struct executing *e = &s->state.executing;

    if (manager_take_checkpoint_wish(&e->manager))
        checkpoint_wish(s, &e->checkpointing);
    if (e->manager.phase == MANAGER_IDLING && s->timeline.open) {
        record_span(s);
        record_close(s, PLIANT_RESCALE_NO_CHANGE);
    }
    return verdict(s, v);
}

static struct state trigger(struct pliant_sched *s)
{
    struct executing *e = &s->state.executing;

    if (!s->way->rescales)
        return STAY;
    return manager_done(s, manager_on_trigger(&e->manager, &s->clock, outlook(s)));
}

static void change(struct pliant_sched *s)
{
    struct outlook now = outlook(s);

    if (now.sufficient && !s->timeline.open) /* [S-TML-5] */
        record_open(s, false, PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE);
    manager_on_change(&s->state.executing.manager, &s->clock, now);
}

/* For `worth` alone; the others never ask what was missed. */
static void note_change(struct pliant_sched *s)
{
    struct executing *e = &s->state.executing;
    struct worth_view v;
    uint64_t idle_slots;

    if (s->policy.kind != PLIANT_POLICY_WORTH)
        return;
    v = worth_view(s);
    idle_slots = v.q > v.p ? v.q - v.p : 0;
    if (idle_slots > e->idle_slots)
        worth_arrived(&s->policy.worth, s->clock.now_ms);
    e->missed = idle_slots > 0 ? v.missed : 0;
    e->idle_slots = idle_slots;
    e->changed_at_ms = s->clock.now_ms;
}

/* New slots or requirements: a change, never a trigger by itself [S-EXE-6]; the first one arms the
 * countdown of failed checkpoints [S-EXE-7]. */
struct state executing_change(struct pliant_sched *s)
{
    struct executing *e = &s->state.executing;
    struct state next;

    note_change(s);
    change(s);
    if (e->countdown < 0)
        e->countdown = s->cfg.max_checkpoint_failures;
    next = manager_done(s, VERDICT_STAY);
    return next.id == STATE_STAY ? drain_consider(s) : next;
}

/* The manager's answer to what already was there at the entry [S-EXE-3]. */
static struct state first_check(struct pliant_sched *s)
{
    change(s);
    return trigger(s);
}

/* ---- checkpoints ------------------------------------------------------------------------ */

static struct state too_many_failed(struct pliant_sched *s)
{
    struct failure failure = {.class = {.recoverable = true},
                              .why = WHY(PLIANT_REASON_TOO_MANY_CHECKPOINT_FAILURES)};

    failure_record(s, &(struct pliant_failure_item){
                          .at_ms = s->clock.now_ms,
                          .reason = PLIANT_REASON_TOO_MANY_CHECKPOINT_FAILURES,
                          .recoverable = true,
                          .cause = "more checkpoints failed in a row than are tolerable"});
    return failure_decide(s, &failure);
}

static struct state checkpoint_done(struct pliant_sched *s, uint64_t id, bool covers_drain)
{
    struct executing *e = &s->state.executing;
    struct state next = covers_drain ? drain_checkpoint_done(s) : STAY;

    if (next.id != STATE_STAY)
        return next;
    e->trigger_checkpoint = id;
    next = trigger(s);
    if (next.id == STATE_STAY) {
        e->countdown = -1; /* [S-EXE-8] */
        e->trigger_checkpoint = 0;
    }
    return next;
}

/* An armed countdown goes down; at zero the failure acts as a trigger [S-EXE-9]. */
static struct state checkpoint_failed(struct pliant_sched *s,
                                      const struct pending_checkpoint *failed)
{
    struct executing *e = &s->state.executing;
    struct state next;

    if (s->cfg.tolerable_failed_checkpoints >= 0 &&
        e->checkpointing.failed_in_row > s->cfg.tolerable_failed_checkpoints)
        return too_many_failed(s);
    next = drain_checkpoint_failed(s, failed);
    if (next.id != STATE_STAY || e->countdown < 0 || --e->countdown > 0)
        return next;
    e->countdown = -1;
    return trigger(s);
}

/* cancel-with-savepoint, or one that a user asked for [S-GEN-18]. */
static struct state savepoint_ended(struct pliant_sched *s, const struct pending_checkpoint *ended,
                                    const char *path, const char *cause)
{
    emit_savepoint_ended(s, path, cause);
    if (!ended->cancel_after)
        return path ? checkpoint_done(s, ended->id, false) : STAY;
    if (path)
        return canceling(s, WHY(PLIANT_REASON_CANCEL_REQUESTED));
    checkpointing_resume(s, &s->state.executing.checkpointing);
    return STAY;
}

static struct state on_news(struct pliant_sched *s, enum checkpoint_news news,
                            const struct pending_checkpoint *ended, const struct pliant_event *ev)
{
    struct state next;

    switch (news) {
    case CHECKPOINT_NOT_CURRENT:
        return STAY;
    case CHECKPOINT_DONE:
        next = checkpoint_done(s, s->checkpoints.completed_id, true);
        break;
    case CHECKPOINT_FAILED_COUNTS:
        next = checkpoint_failed(s, ended);
        break;
    case CHECKPOINT_FAILED_HARMLESS:
        next = drain_checkpoint_failed(s, ended);
        break;
    case SAVEPOINT_DONE:
        next = savepoint_ended(s, ended, ev->checkpoint.path ? ev->checkpoint.path : "", NULL);
        break;
    case SAVEPOINT_FAILED:
        next = savepoint_ended(s, ended, NULL, ev ? ev->checkpoint.cause : "the savepoint expired");
        break;
    }
    if (next.id == STATE_STAY) {
        checkpointing_look(s, &s->state.executing.checkpointing);
        checkpoint_for_policy(s);
    }
    return next;
}

static struct state on_checkpoint(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pending_checkpoint ended;
    enum checkpoint_news news =
        checkpointing_on_event(s, &s->state.executing.checkpointing, ev, &ended);

    s->events_ignored += news == CHECKPOINT_NOT_CURRENT;
    return on_news(s, news, &ended, ev);
}

/* Its workers reported one, and it is in the manifest. */
static struct state on_registered(struct pliant_sched *s)
{
    return on_news(s, CHECKPOINT_DONE, NULL, NULL);
}

/* ---- users' wishes ---------------------------------------------------------------------- */

static enum pliant_reason why_no_savepoint(const struct pliant_sched *s,
                                           const struct pliant_event *ev)
{
    bool reports = s->job->worker_group; /* into the run's own directory, by itself */

    if (!checkpointing_on(s) && !reports)
        return PLIANT_REASON_CHECKPOINTING_OFF;
    if (!ev->savepoint.dir && !s->cfg.has_savepoint_dir && !reports)
        return PLIANT_REASON_NO_SAVEPOINT_DIR;
    if (s->state.executing.checkpointing.savepoint.exists)
        return PLIANT_REASON_CHECKPOINT_PENDING;
    if (!sched_all_running(s))
        return PLIANT_REASON_TASKS_NOT_RUNNING;
    return PLIANT_REASON_NONE;
}

static struct state request_savepoint(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct checkpointing *c = &s->state.executing.checkpointing;
    enum pliant_reason refusal = why_no_savepoint(s, ev);

    if (refusal != PLIANT_REASON_NONE) {
        emit_refused(s, refusal, 0);
        return STAY;
    }
    if (ev->kind == PLIANT_EV_STOP)
        return stopping(s, c, ev->savepoint.dir, ev->savepoint.drain);
    savepoint_trigger(s, c, PLIANT_CHECKPOINT_USER, ev->savepoint.dir, false);
    c->savepoint.cancel_after = ev->savepoint.cancel;
    if (ev->savepoint.cancel)
        checkpointing_stop(c);
    return STAY;
}

static struct state request_checkpoint(struct pliant_sched *s)
{
    struct checkpointing *c = &s->state.executing.checkpointing;

    if (!checkpointing_on(s))
        emit_refused(s, PLIANT_REASON_CHECKPOINTING_OFF, 0);
    else if (c->checkpoint.exists)
        emit_refused(s, PLIANT_REASON_CHECKPOINT_PENDING, 0);
    else if (!checkpoint_trigger(s, c, PLIANT_CHECKPOINT_USER))
        emit_refused(s, PLIANT_REASON_TASKS_NOT_RUNNING, 0);
    return STAY;
}

static struct state on_request(struct pliant_sched *s, const struct pliant_event *ev)
{
    return ev->kind == PLIANT_EV_CHECKPOINT_REQUESTED ? request_checkpoint(s)
                                                      : request_savepoint(s, ev);
}

/* ---- tasks ------------------------------------------------------------------------------ */

static void work_begins(struct pliant_sched *s)
{
    s->state.executing.running_since_ms = s->clock.now_ms;
    worth_running(&s->policy.worth, &s->policy.limits, s->clock.now_ms);
}

/* All tasks run for the first time: the restart is over, and the question may have another answer.
 */
static void note_running(struct pliant_sched *s)
{
    struct executing *e = &s->state.executing;

    if (e->running_since_ms != PLIANT_UNSET || !execution_all_running(&s->graph))
        return;
    work_begins(s);
    if (!s->job->worker_group) /* whose workers are of use when they report */
        worth_restarted(&s->policy.worth, s->clock.now_ms - s->deployed_at_ms);
    checkpointing_running(s, &e->checkpointing);
    if (s->policy.kind == PLIANT_POLICY_WORTH && deadline_armed(&e->again))
        deadline_arm(&e->again, &s->clock, s->clock.now_ms);
}

static struct state on_tasks(struct pliant_sched *s)
{
    bool pending = regional_pending(&s->regional);
    struct state next;

    if (s->graph.n_live == 0 && s->state.executing.collateral.held)
        return collateral_over(s);
    next = s->way->look(s);
    if (next.id != STATE_STAY || pending)
        return next.id == STATE_STAY ? drain_consider(s) : next;
    if (s->graph.n_live == 0)
        return s->graph.n_finished == s->graph.n_tasks
                   ? finished(s, PLIANT_JOB_FINISHED, WHY(PLIANT_REASON_ALL_FINISHED))
                   : finished(s, PLIANT_JOB_CANCELED, WHY(PLIANT_REASON_ALL_CANCELED));
    note_running(s);
    checkpointing_look(s, &s->state.executing.checkpointing);
    checkpoint_for_policy(s);
    return drain_consider(s);
}

/* A drain goes before the restart of a region [P-REG-8]. */
static struct state on_drain(struct pliant_sched *s, struct pool_node *node)
{
    struct state next = drain_began(s, node);

    if (next.id == STATE_STAY && s->state.executing.drain.pending && s->way->rescales &&
        regional_pending(&s->regional))
        return drain_move(s);
    return next;
}

static struct state on_failure(struct pliant_sched *s, const struct failure *failure)
{
    return s->way->failed(s, failure);
}

static struct state on_resources(struct pliant_sched *s)
{
    return s->way->resources(s);
}

/* ---- time ------------------------------------------------------------------------------- */

static size_t deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    struct executing *e = &s->state.executing;

    list[0] = &e->manager.phase_end;
    list[1] = &e->manager.evaluation;
    list[2] = &e->check;
    list[3] = &e->again;
    list[4] = &e->drain.move;
    list[5] = &e->drain.limit;
    list[6] = &e->collateral.end;
    list[7] = &s->regional.due;
    list[8] = &s->regional.give_up;
    list[9] = &s->scheduling.line.timeout;
    return 10 + speculation_deadlines(&s->speculation, list + 10) +
           checkpointing_deadlines(&e->checkpointing, list + 13);
}

static struct state on_due(struct pliant_sched *s, struct deadline *due)
{
    struct executing *e = &s->state.executing;
    struct pending_checkpoint ended;
    struct state next;

    if (due == &e->manager.phase_end || due == &e->manager.evaluation)
        return manager_done(s, manager_on_deadline(&e->manager, &s->clock, due, outlook(s)));
    if (due == &e->drain.move || due == &e->drain.limit)
        return drain_due(s, due);
    if (due == &e->checkpointing.retry && drain_asks_again(s)) {
        deadline_clear(due);
        return drain_consider(s);
    }
    if (due == &e->collateral.end)
        return collateral_over(s);
    if (due == &s->regional.due || due == &s->regional.give_up)
        return regional_on_due(s, due);
    if (due == &s->scheduling.line.timeout)
        return line_timed_out(s);
    if (speculation_owns(&s->speculation, due)) {
        next = speculation_on_due(s, due);
        return next.id == STATE_STAY ? on_tasks(s) : next;
    }
    if (due == &e->check || due == &e->again) {
        deadline_clear(due);
        return due == &e->check ? first_check(s) : trigger(s);
    }
    return on_news(s, checkpointing_on_due(s, &e->checkpointing, due, &ended), &ended, NULL);
}

/* ---- entry, exit ------------------------------------------------------------------------ */

static void enter(struct pliant_sched *s, enum pliant_state from)
{
    struct executing *e = &s->state.executing;
    struct manager_timing timing = {.cooldown_ms = s->cfg.cooldown_ms,
                                    .stabilization_ms = s->cfg.executing_stabilization_ms,
                                    .max_trigger_delay_ms = s->cfg.max_trigger_delay_ms};

    e->check = e->again = DEADLINE_NONE;
    e->collateral = (struct collateral){.end = DEADLINE_NONE};
    e->countdown = -1;
    e->trigger_checkpoint = 0;
    e->wants_checkpoint = false;
    e->running_since_ms = e->first_report_at_ms = PLIANT_UNSET;
    e->start_measured = from == PLIANT_STOP_WITH_SAVEPOINT;
    e->changed_at_ms = s->clock.now_ms;
    e->idle_slots = 0;
    e->missed = 0;
    e->judged = (struct pliant_judged){.judgement = PLIANT_JUDGED_NOT};
    worth_enter(&s->policy.worth, &s->policy.limits, s->clock.now_ms, s->graph.n_units);
    e->manager = s->way->rescales ? manager_start(timing, &s->clock) : manager_none();
    if (from == PLIANT_STOP_WITH_SAVEPOINT) {
        s->deployed_at_ms = s->clock.now_ms;
        checkpointing_resume(s, &e->checkpointing); /* [S-SWS-7] */
        if (execution_all_running(&s->graph))
            work_begins(s);
    } else {
        record_span(s);
        record_close(s, PLIANT_RESCALE_SUCCEEDED); /* [S-TML-8] */
        e->checkpointing = checkpointing_start(s);
        s->way->begin(s);
        note_running(s); /* a worker group's, before */
    }
    if (s->way->rescales)
        deadline_arm(&e->check, &s->clock, s->clock.now_ms);
    drain_enter(s);
    speculation_enter(s);
}

static enum worth_end end_of_run(enum pliant_reason why)
{
    if (why == PLIANT_REASON_RESCALE)
        return WORTH_RESCALED;
    return why == PLIANT_REASON_DRAIN || why == PLIANT_REASON_RECLAIM ? WORTH_MOVED : WORTH_LOST;
}

static void note_end(struct pliant_sched *s, const struct state *next)
{
    int64_t since = s->state.executing.running_since_ms;

    if (next->id == PLIANT_RESTARTING)
        worth_ended(&s->policy.worth, &s->policy.limits, s->clock.now_ms,
                    since == PLIANT_UNSET ? 0 : s->clock.now_ms - since,
                    end_of_run(next->why.reason));
    worth_leave(&s->policy.worth, &s->policy.limits, s->clock.now_ms);
}

/* Whoever asked for a savepoint gets an answer, however the run ends [S-GEN-18]. */
static void leave(struct pliant_sched *s, const struct state *next)
{
    note_end(s, next);
    regional_drop(s);
    scheduling_leave(s);
    speculation_leave(s);
    if (s->state.executing.checkpointing.savepoint.exists)
        emit_savepoint_ended(s, NULL, pliant_reason_name(next->why.reason));
}

struct state executing(struct pliant_sched *s, struct why why)
{
    (void)s;
    return (struct state){.id = PLIANT_EXECUTING, .why = why};
}

/* The same graph goes on, after a savepoint that failed [S-SWS-2]. */
struct state executing_again(struct pliant_sched *s, const struct checkpointing *c, struct why why)
{
    struct state next = executing(s, why);

    next.executing.checkpointing = *c;
    return next;
}

const struct state_ops executing_ops = {
    .status = PLIANT_JOB_RUNNING,
    .has_graph = true,
    .may_follow = BIT(PLIANT_CREATED) | BIT(PLIANT_CREATING_EXECUTION_GRAPH) |
                  BIT(PLIANT_STOP_WITH_SAVEPOINT),
    .enter = enter,
    .leave = leave,
    .deadlines = deadlines,
    .on_due = on_due,
    .on_resources = on_resources,
    .on_requirements = executing_change,
    .on_drain = on_drain,
    .on_drain_over = drain_over,
    .on_tasks = on_tasks,
    .on_failure = on_failure,
    .on_checkpoint = on_checkpoint,
    .on_registered = on_registered,
    .on_cancel = cancel_with_graph,
    .on_request = on_request,
};

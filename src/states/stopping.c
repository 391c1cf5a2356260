/* stopping.c - StopWithSavepoint: one last savepoint, then the job is to finish
 *
 * Left for
 *   Finished    when the savepoint is there and all tasks have finished  [S-SWS-1, S-SWS-6]
 *   Executing   when the savepoint failed and nothing else did  [S-SWS-2]
 *   Restarting  when a task failed and the savepoint too, if the job may restart  [S-SWS-3]
 *   Failing     when a task failed after the savepoint was there  [S-SWS-5], or may not restart
 *   Canceling   on a cancel, which does not wait  [S-SWS-8]
 *
 * What is decided before the savepoint's end is known waits for it, and the first decision holds
 * [S-SWS-4]. Slots, requirements and drains count when it is left [S-SWS-9, S-DRN-11].
 */
#include <stdio.h>

#include "states/sched.h"

#define CAUSE_SIZE (SCHED_TEXT_MAX + 64)

/* ---- decisions -------------------------------------------------------------------------- */

/* Who stopped the job and does not get there wants to know at least where the savepoint is. */
static void cause_with_path(const struct pliant_sched *s, enum pliant_reason reason,
                            char cause[CAUSE_SIZE])
{
    snprintf(cause, CAUSE_SIZE, "%s, savepoint at %s", pliant_reason_name(reason),
             s->savepoint_path ? s->savepoint_path : "");
}

/* The savepoint exists: whoever restarted the job now would go on behind its back [S-SWS-5]. */
static struct state fail_after_savepoint(struct pliant_sched *s)
{
    struct failure wrapped = {.class = {.recoverable = false}, .why = s->state.stopping.why};
    char cause[CAUSE_SIZE];

    cause_with_path(s, PLIANT_REASON_STOPPING_FAILED, cause);
    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = PLIANT_REASON_STOPPING_FAILED,
                                                    .cause = cause});
    wrapped.why.reason = PLIANT_REASON_STOPPING_FAILED;
    return failure_decide(s, &wrapped);
}

static struct state decide_failure(struct pliant_sched *s)
{
    struct stopping *st = &s->state.stopping;

    if (st->savepoint_done)
        return fail_after_savepoint(s);
    return failure_decide(s, &(struct failure){.class = st->failure, .why = st->why});
}

static struct state finish(struct pliant_sched *s)
{
    return finished(s, PLIANT_JOB_FINISHED,
                    WHY(s->state.stopping.savepoint_done ? PLIANT_REASON_SAVEPOINT_DONE
                                                         : PLIANT_REASON_ALL_FINISHED));
}

/* ---- news ------------------------------------------------------------------------------- */

static struct state on_failure(struct pliant_sched *s, const struct failure *failure)
{
    struct stopping *st = &s->state.stopping;

    if (st->decided != STOPPING_GOES_ON)
        return STAY; /* recorded [S-SWS-4] */
    st->decided = STOPPING_FAILED;
    st->failure = failure->class;
    st->why = failure->why;
    st->why.node.v = 0; /* it may be forgotten, and its id another's, when this is told */
    return st->savepoint_done ? decide_failure(s) : STAY;
}

/* Down, but not all finished: as if the job had failed. */
static struct state not_finished(struct pliant_sched *s)
{
    struct failure failure = {.class = {.recoverable = true},
                              .why = WHY(PLIANT_REASON_GLOBAL_FAILURE)};

    failure_record(s, &(struct pliant_failure_item){
                          .at_ms = s->clock.now_ms,
                          .reason = PLIANT_REASON_GLOBAL_FAILURE,
                          .recoverable = true,
                          .cause = "the job did not reach FINISHED during stop-with-savepoint"});
    return on_failure(s, &failure);
}

static struct state on_tasks(struct pliant_sched *s)
{
    struct stopping *st = &s->state.stopping;

    if (s->graph.n_live > 0 || st->decided != STOPPING_GOES_ON)
        return STAY;
    if (s->graph.n_finished < s->graph.n_tasks)
        return not_finished(s);
    st->decided = STOPPING_FINISHED;
    return st->savepoint_done ? finish(s) : STAY;
}

static struct state savepoint_done(struct pliant_sched *s, const char *path)
{
    struct stopping *st = &s->state.stopping;

    st->savepoint_done = true;
    s->savepoint_path = mem_text(s->alloc, path ? path : "", SCHED_TEXT_MAX);
    if (!s->savepoint_path)
        sched_no_memory(s);
    if (st->decided == STOPPING_FAILED)
        return decide_failure(s);
    return st->decided == STOPPING_FINISHED ? finish(s) : STAY;
}

/* A disk can cause it: whoever asked is told, and a job that has finished has finished. */
static struct state savepoint_failed(struct pliant_sched *s, const char *cause)
{
    struct stopping *st = &s->state.stopping;

    emit_savepoint_ended(s, NULL, cause);
    st->answered = true;
    if (st->decided == STOPPING_FINISHED)
        return finish(s);
    if (st->decided == STOPPING_FAILED)
        return decide_failure(s);
    return executing_again(s, &st->checkpointing, WHY(PLIANT_REASON_SAVEPOINT_FAILED));
}

/* Checkpoints that were pending still become the ones to restore from; nothing else follows. */
static struct state on_checkpoint(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pending_checkpoint ended;
    enum checkpoint_news news =
        checkpointing_on_event(s, &s->state.stopping.checkpointing, ev, &ended);

    s->events_ignored += news == CHECKPOINT_NOT_CURRENT;
    if (news == SAVEPOINT_DONE)
        return savepoint_done(s, ev->checkpoint.path);
    return news == SAVEPOINT_FAILED ? savepoint_failed(s, ev->checkpoint.cause) : STAY;
}

/* ---- time, entry, exit ------------------------------------------------------------------ */

static size_t deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX])
{
    return checkpointing_deadlines(&s->state.stopping.checkpointing, list);
}

static struct state on_due(struct pliant_sched *s, struct deadline *due)
{
    struct pending_checkpoint ended;
    enum checkpoint_news news =
        checkpointing_on_due(s, &s->state.stopping.checkpointing, due, &ended);

    return news == SAVEPOINT_FAILED ? savepoint_failed(s, "the savepoint expired") : STAY;
}

static void answer_failed(struct pliant_sched *s, enum pliant_reason reason)
{
    const struct failure_entry *failed = &s->failures.present;
    const char *cause = failed->items.n > 0 ? failed->items.v[0].cause : "";
    char text[CAUSE_SIZE];

    if (s->state.stopping.savepoint_done) {
        cause_with_path(s, reason, text);
        cause = text;
    }
    emit_savepoint_ended(s, NULL, *cause ? cause : pliant_reason_name(reason));
}

/* Whoever asked gets one answer, however the state is left: the path only if the savepoint is there
 * and the job has finished [S-SWS-1]. */
static void leave(struct pliant_sched *s, const struct state *next)
{
    if (!s->state.stopping.answered && next->why.reason == PLIANT_REASON_SAVEPOINT_DONE)
        emit_savepoint_ended(s, s->savepoint_path, NULL);
    else if (!s->state.stopping.answered)
        answer_failed(s, next->why.reason);
    mem_free(s->alloc, s->savepoint_path);
    s->savepoint_path = NULL;
}

struct state stopping(struct pliant_sched *s, const struct checkpointing *c, const char *dir,
                      bool drain)
{
    struct state next = {.id = PLIANT_STOP_WITH_SAVEPOINT,
                         .why = WHY(PLIANT_REASON_STOP_REQUESTED),
                         .stopping = {.checkpointing = *c}};

    checkpointing_stop(&next.stopping.checkpointing);
    savepoint_trigger(s, &next.stopping.checkpointing, PLIANT_CHECKPOINT_STOP, dir, drain);
    return next;
}

const struct state_ops stopping_ops = {
    .status = PLIANT_JOB_RUNNING,
    .has_graph = true,
    .may_follow = BIT(PLIANT_EXECUTING),
    .leave = leave,
    .deadlines = deadlines,
    .on_due = on_due,
    .on_tasks = on_tasks,
    .on_failure = on_failure,
    .on_checkpoint = on_checkpoint,
    .on_cancel = cancel_with_graph,
};

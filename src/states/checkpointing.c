/* checkpointing.c - see checkpointing.h */
#include "states/checkpointing.h"

#include <assert.h>

#include "states/sched.h"

static const struct pending_checkpoint NONE_PENDING = {.expiry = {.at_ms = PLIANT_NEVER}};

/* ---- periodic --------------------------------------------------------------------------- */

static bool periodic(const struct pliant_sched *s, const struct checkpointing *c)
{
    return checkpointing_on(s) && s->cfg.checkpoint_periodic && !c->stopped;
}

/* The first instant at which the minimum pause since the last one is over. */
static int64_t after_pause(const struct pliant_sched *s, const struct checkpointing *c)
{
    if (c->ended_at_ms == PLIANT_UNSET)
        return s->clock.now_ms;
    return instant_after(c->ended_at_ms, s->cfg.checkpoint_min_pause_ms);
}

static bool finds_pace(const struct pliant_sched *s)
{
    return s->cfg.checkpoint_pace == PLIANT_CHECKPOINT_PACE_AUTO;
}

static void arm_trigger(struct pliant_sched *s, struct checkpointing *c)
{
    int64_t now_ms = s->clock.now_ms;

    if (periodic(s, c))
        deadline_arm(&c->trigger, &s->clock,
                     finds_pace(s)
                         ? worth_next_checkpoint(&s->policy.worth, &s->policy.limits, now_ms)
                         : instant_after(now_ms, s->cfg.checkpoint_interval_ms));
}

struct checkpointing checkpointing_start(struct pliant_sched *s)
{
    struct checkpointing c = {.ended_at_ms = PLIANT_UNSET,
                              .trigger = DEADLINE_NONE,
                              .retry = DEADLINE_NONE,
                              .checkpoint = NONE_PENDING,
                              .savepoint = NONE_PENDING};

    arm_trigger(s, &c);
    return c;
}

void checkpointing_stop(struct checkpointing *c)
{
    c->stopped = true;
    c->overdue = false;
    deadline_clear(&c->trigger);
    deadline_clear(&c->retry);
}

void checkpointing_resume(struct pliant_sched *s, struct checkpointing *c)
{
    c->stopped = false;
    arm_trigger(s, c);
    checkpointing_look(s, c);
}

void checkpointing_abort(struct pliant_sched *s, struct checkpointing *c, enum pliant_reason why)
{
    if (c->checkpoint.exists)
        c->ended_at_ms = s->clock.now_ms;
    if (c->savepoint.exists) {
        emit_savepoint_ended(s, NULL, pliant_reason_name(why));
        if (c->savepoint.cancel_after)
            checkpointing_resume(s, c);
    }
    c->checkpoint = c->savepoint = NONE_PENDING;
}

void checkpointing_running(struct pliant_sched *s, struct checkpointing *c)
{
    if (!finds_pace(s))
        return;
    c->overdue = false;
    arm_trigger(s, c);
}

/* ---- taking one ------------------------------------------------------------------------- */

static bool can_take(const struct pliant_sched *s, const struct checkpointing *c)
{
    return !c->checkpoint.exists && sched_all_running(s) &&
           (s->graph.n_finished == 0 || s->cfg.checkpoints_after_finish);
}

static void take(struct pliant_sched *s, struct pending_checkpoint *pending,
                 enum pliant_checkpoint_cause cause, const char *dir, bool savepoint, bool drain)
{
    struct pliant_action *act = emit(s, PLIANT_ACT_CHECKPOINT);

    *pending = (struct pending_checkpoint){.exists = true,
                                           .id = ++s->checkpoints.last_id,
                                           .triggered_at_ms = s->clock.now_ms,
                                           .expiry = DEADLINE_NONE};
    deadline_arm(&pending->expiry, &s->clock,
                 instant_after(s->clock.now_ms, s->cfg.checkpoint_timeout_ms));
    act->flag[0] = (uint8_t)cause;
    act->flag[1] = savepoint;
    act->flag[2] = drain;
    act->checkpoint.id = pending->id;
    act->checkpoint.dir = outbox_text(s, dir);
}

bool checkpoint_trigger(struct pliant_sched *s, struct checkpointing *c,
                        enum pliant_checkpoint_cause cause)
{
    if (!can_take(s, c))
        return false;
    deadline_clear(&c->retry);
    c->overdue = false;
    take(s, &c->checkpoint, cause, NULL, false, false);
    arm_trigger(s, c);
    return true;
}

void savepoint_trigger(struct pliant_sched *s, struct checkpointing *c,
                       enum pliant_checkpoint_cause cause, const char *dir, bool drain)
{
    assert(!c->savepoint.exists);
    take(s, &c->savepoint, cause, dir, true, drain);
}

/* Only if enabled, nothing is pending and the parallelism would change; a pause that is not over
 * puts the request off once [S-EXE-19]. */
void checkpoint_wish(struct pliant_sched *s, struct checkpointing *c)
{
    if (!s->cfg.active_checkpoint || !checkpointing_on(s) || !can_take(s, c) ||
        !achievable_differs(s))
        return;
    if (after_pause(s, c) <= s->clock.now_ms)
        checkpoint_trigger(s, c, PLIANT_CHECKPOINT_RESCALE);
    else if (!deadline_armed(&c->retry))
        deadline_arm(&c->retry, &s->clock, after_pause(s, c));
}

/* The interval is over; the minimum pause may not be. */
static void on_interval(struct pliant_sched *s, struct checkpointing *c)
{
    if (after_pause(s, c) > s->clock.now_ms)
        deadline_arm(&c->trigger, &s->clock, after_pause(s, c));
    else
        c->overdue = !checkpoint_trigger(s, c, PLIANT_CHECKPOINT_PERIODIC);
}

static void on_retry(struct pliant_sched *s, struct checkpointing *c)
{
    if (can_take(s, c) && after_pause(s, c) <= s->clock.now_ms && achievable_differs(s))
        checkpoint_trigger(s, c, PLIANT_CHECKPOINT_RESCALE);
}

void checkpointing_look(struct pliant_sched *s, struct checkpointing *c)
{
    if (c->overdue && periodic(s, c) && can_take(s, c)) {
        c->overdue = false;
        deadline_arm(&c->trigger, &s->clock, after_pause(s, c));
    }
    if (!c->end_of_data && checkpointing_on(s) && s->cfg.checkpoints_after_finish && !c->stopped &&
        s->graph.n_tasks > 0 && s->graph.n_end_of_data == s->graph.n_tasks)
        c->end_of_data = checkpoint_trigger(s, c, PLIANT_CHECKPOINT_END_OF_DATA);
}

/* ---- what became of it ------------------------------------------------------------------ */

static struct pending_checkpoint end_pending(struct pliant_sched *s, struct checkpointing *c,
                                             struct pending_checkpoint *pending)
{
    struct pending_checkpoint ended = *pending;

    *pending = NONE_PENDING;
    if (pending == &c->checkpoint)
        c->ended_at_ms = s->clock.now_ms;
    return ended;
}

void checkpoint_note_completed(struct pliant_sched *s, uint64_t id, int64_t triggered_at_ms,
                               const struct pliant_event *ev)
{
    struct checkpoint_facts *facts = &s->checkpoints;

    if (id > facts->last_id)
        facts->last_id = id;
    facts->completed_id = id;
    facts->completed_at_ms = s->clock.now_ms;
    facts->triggered_at_ms = triggered_at_ms;
    facts->duration_ms = s->clock.now_ms - triggered_at_ms;
    worth_checkpointed(&s->policy.worth, facts->duration_ms);
    previous_sizes(s, ev->checkpoint.sizes, ev->checkpoint.n_sizes);
}

static enum checkpoint_news completed(struct pliant_sched *s, struct checkpointing *c,
                                      const struct pliant_event *ev,
                                      struct pending_checkpoint *ret_ended)
{
    if (ev->checkpoint.own_accord) {
        int64_t began = ev->checkpoint.triggered_at_ms;

        c->ended_at_ms = s->clock.now_ms;
        checkpoint_note_completed(s, ev->checkpoint.id,
                                  began < s->clock.now_ms ? began : s->clock.now_ms, ev);
    } else if (c->checkpoint.exists && c->checkpoint.id == ev->checkpoint.id) {
        *ret_ended = end_pending(s, c, &c->checkpoint);
        checkpoint_note_completed(s, ret_ended->id, ret_ended->triggered_at_ms, ev);
    } else {
        return CHECKPOINT_NOT_CURRENT;
    }
    c->failed_in_row = 0;
    return CHECKPOINT_DONE;
}

static enum checkpoint_news failed(struct pliant_sched *s, struct checkpointing *c,
                                   const struct pliant_event *ev,
                                   struct pending_checkpoint *ret_ended)
{
    if (!ev->checkpoint.own_accord) {
        if (!c->checkpoint.exists || c->checkpoint.id != ev->checkpoint.id)
            return CHECKPOINT_NOT_CURRENT;
        *ret_ended = end_pending(s, c, &c->checkpoint);
    }
    if (!ev->checkpoint.counts)
        return CHECKPOINT_FAILED_HARMLESS;
    c->failed_in_row++;
    return CHECKPOINT_FAILED_COUNTS;
}

static enum checkpoint_news savepoint_ended(struct pliant_sched *s, struct checkpointing *c,
                                            const struct pliant_event *ev,
                                            struct pending_checkpoint *ret_ended)
{
    if (!c->savepoint.exists ||
        (!ev->checkpoint.own_accord && c->savepoint.id != ev->checkpoint.id))
        return CHECKPOINT_NOT_CURRENT;
    *ret_ended = end_pending(s, c, &c->savepoint);
    return ev->kind == PLIANT_EV_SAVEPOINT_COMPLETED ? SAVEPOINT_DONE : SAVEPOINT_FAILED;
}

enum checkpoint_news checkpointing_on_event(struct pliant_sched *s, struct checkpointing *c,
                                            const struct pliant_event *ev,
                                            struct pending_checkpoint *ret_ended)
{
    *ret_ended = NONE_PENDING;
    if (ev->kind == PLIANT_EV_CHECKPOINT_COMPLETED)
        return completed(s, c, ev, ret_ended);
    if (ev->kind == PLIANT_EV_CHECKPOINT_FAILED)
        return failed(s, c, ev, ret_ended);
    return savepoint_ended(s, c, ev, ret_ended);
}

/* ---- time ------------------------------------------------------------------------------- */

size_t checkpointing_deadlines(struct checkpointing *c, struct deadline *list[])
{
    list[0] = &c->trigger;
    list[1] = &c->retry;
    list[2] = &c->checkpoint.expiry;
    list[3] = &c->savepoint.expiry;
    return 4;
}

enum checkpoint_news checkpointing_on_due(struct pliant_sched *s, struct checkpointing *c,
                                          struct deadline *due,
                                          struct pending_checkpoint *ret_ended)
{
    *ret_ended = NONE_PENDING;
    if (due == &c->trigger) {
        deadline_clear(due);
        on_interval(s, c);
        return CHECKPOINT_NOT_CURRENT;
    }
    if (due == &c->retry) {
        deadline_clear(due);
        on_retry(s, c);
        return CHECKPOINT_NOT_CURRENT;
    }
    if (due == &c->savepoint.expiry) {
        *ret_ended = end_pending(s, c, &c->savepoint);
        return SAVEPOINT_FAILED;
    }
    assert(due == &c->checkpoint.expiry);
    *ret_ended = end_pending(s, c, &c->checkpoint);
    c->failed_in_row++;
    return CHECKPOINT_FAILED_COUNTS;
}

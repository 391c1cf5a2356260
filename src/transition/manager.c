/* manager.c - see manager.h
 *
 *     Cooldown     its end: Idling, or Stabilizing when a change was remembered
 *     Idling       sufficient at a change: Stabilizing
 *     Stabilizing  desired at a trigger: GO; "stable": Stabilized
 *     Stabilized   at a trigger: GO when sufficient, else Idling
 *
 * The evaluation timer is a trigger too.
 */
#include "transition/manager.h"

#include <assert.h>

/* No phase keeps a timer of the one before it [S-STM-2]. */
static void enter(struct manager *m, enum manager_phase phase)
{
    m->phase = phase;
    deadline_clear(&m->phase_end);
    deadline_clear(&m->evaluation);
}

static void plan_evaluation(struct manager *m, struct clock *clock, int64_t change_at_ms)
{
    deadline_arm(&m->evaluation, clock,
                 instant_after(change_at_ms, m->timing.max_trigger_delay_ms));
}

static void enter_idling(struct manager *m)
{
    enter(m, MANAGER_IDLING);
    m->first_change_at_ms = PLIANT_NEVER;
}

/* Both delays run from the first change, though it may lie back in the cooldown [S-STM-7]. */
static void enter_stabilizing(struct manager *m, struct clock *clock, int64_t change_at_ms)
{
    enter(m, MANAGER_STABILIZING);
    m->first_change_at_ms = change_at_ms;
    deadline_arm(&m->phase_end, clock, instant_after(change_at_ms, m->timing.stabilization_ms));
    plan_evaluation(m, clock, change_at_ms);
    m->wants_checkpoint = true;
}

static void enter_stabilized(struct manager *m, struct clock *clock)
{
    enter(m, MANAGER_STABILIZED);
    plan_evaluation(m, clock, m->first_change_at_ms);
    m->wants_checkpoint = true;
}

struct manager manager_none(void)
{
    return (struct manager){.phase = MANAGER_IDLING,
                            .first_change_at_ms = PLIANT_NEVER,
                            .phase_end = DEADLINE_NONE,
                            .evaluation = DEADLINE_NONE};
}

struct manager manager_start(struct manager_timing timing, struct clock *clock)
{
    struct manager m = {.timing = timing, .first_change_at_ms = PLIANT_NEVER};

    assert(timing.stabilization_ms >= 0 && timing.max_trigger_delay_ms >= 0); /* [S-STM-11] */
    if (timing.cooldown_ms < 0)
        m.timing.cooldown_ms = 0;
    enter(&m, MANAGER_COOLDOWN);
    deadline_arm(&m.phase_end, clock, instant_after(clock->now_ms, m.timing.cooldown_ms));
    return m;
}

void manager_on_change(struct manager *m, struct clock *clock, struct outlook outlook)
{
    switch (m->phase) {
    case MANAGER_COOLDOWN: /* judged now, never again [S-STM-5] */
        if (outlook.sufficient && m->first_change_at_ms == PLIANT_NEVER)
            m->first_change_at_ms = clock->now_ms;
        return;
    case MANAGER_IDLING:
        if (outlook.sufficient)
            enter_stabilizing(m, clock, clock->now_ms);
        return;
    case MANAGER_STABILIZING:
        m->wants_checkpoint = true;
        if (!deadline_armed(&m->evaluation))
            plan_evaluation(m, clock, clock->now_ms);
        return;
    case MANAGER_STABILIZED:                 /* the next trigger asks afresh anyway [S-STM-8] ... */
        if (!deadline_armed(&m->evaluation)) /* ... one that the host declined is over */
            plan_evaluation(m, clock, clock->now_ms);
        return;
    case MANAGER_TRANSITIONING:
        return;
    }
}

enum verdict manager_on_trigger(struct manager *m, struct clock *clock, struct outlook outlook)
{
    (void)clock; /* inputs look alike; a trigger plans nothing */
    switch (m->phase) {
    case MANAGER_STABILIZING: /* losing what suffices does not end the phase [S-STM-6] */
        return outlook.desired ? VERDICT_GO : VERDICT_STAY;
    case MANAGER_STABILIZED:
        if (outlook.sufficient)
            return VERDICT_GO;
        enter_idling(m);
        return VERDICT_STAY;
    case MANAGER_COOLDOWN: /* lost, not remembered [S-STM-4] */
    case MANAGER_IDLING:
    case MANAGER_TRANSITIONING: /* once in its life [S-STM-3] */
        return VERDICT_STAY;
    }
    return VERDICT_STAY;
}

/* The end of Cooldown, or "stable". */
static void end_phase(struct manager *m, struct clock *clock)
{
    assert(m->phase == MANAGER_COOLDOWN || m->phase == MANAGER_STABILIZING);
    if (m->phase == MANAGER_STABILIZING)
        enter_stabilized(m, clock);
    else if (m->first_change_at_ms != PLIANT_NEVER)
        enter_stabilizing(m, clock, m->first_change_at_ms);
    else
        enter_idling(m);
}

enum verdict manager_on_deadline(struct manager *m, struct clock *clock, struct deadline *due,
                                 struct outlook outlook)
{
    if (due == &m->phase_end) {
        end_phase(m, clock);
        return VERDICT_STAY;
    }
    assert(due == &m->evaluation);
    deadline_clear(due);
    return manager_on_trigger(m, clock, outlook);
}

void manager_go(struct manager *m)
{
    assert(m->phase == MANAGER_STABILIZING || m->phase == MANAGER_STABILIZED);
    enter(m, MANAGER_TRANSITIONING);
    m->wants_checkpoint = false;
}

bool manager_take_checkpoint_wish(struct manager *m)
{
    bool wish = m->wants_checkpoint;

    m->wants_checkpoint = false;
    return wish;
}

const char *manager_phase_name(enum manager_phase phase)
{
    switch (phase) {
    case MANAGER_COOLDOWN:
        return "Cooldown";
    case MANAGER_IDLING:
        return "Idling";
    case MANAGER_STABILIZING:
        return "Stabilizing";
    case MANAGER_STABILIZED:
        return "Stabilized";
    case MANAGER_TRANSITIONING:
        return "Transitioning";
    }
    return "";
}

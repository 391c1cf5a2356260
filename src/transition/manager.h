/* manager.h - the state-transition manager: when should the host state go on?
 *
 * A host state (WaitingForResources, Executing) owns one, made when the state is entered, gone
 * when it is left. It answers once in its life. It never looks at slots: it is told, at each
 * input, what the host would answer to "sufficient?" and "desired?" (the outlook).
 *
 * A verdict of GO is a question to the host's rescale policy: manager_go() takes the
 * transition; if the host does not call it, the phase stays, and the question comes again at
 * the next trigger or change.
 *
 * Pure: plain values, no pointers; copy, compare, dump.
 * Units   durations and instants in ms; stabilization and max_trigger_delay >= 0; a negative
 *         cooldown acts as 0
 * Source  S-STM-1..12
 */
#ifndef PLIANT_TRANSITION_MANAGER_H
#define PLIANT_TRANSITION_MANAGER_H

#include "util/deadline.h"

enum manager_phase {
    MANAGER_COOLDOWN,
    MANAGER_IDLING,
    MANAGER_STABILIZING,
    MANAGER_STABILIZED,
    MANAGER_TRANSITIONING,
};

struct manager_timing {
    int64_t cooldown_ms, stabilization_ms, max_trigger_delay_ms;
};

struct outlook {
    bool sufficient, desired;
};

enum verdict { VERDICT_STAY, VERDICT_GO };

struct manager {
    enum manager_phase phase;
    struct manager_timing timing;
    int64_t first_change_at_ms; /* the change that started it all; PLIANT_NEVER: none yet */
    bool wants_checkpoint;      /* since the host last took it [S-EXE-19] */
    struct deadline phase_end;  /* Cooldown: its end; Stabilizing: "stable" */
    struct deadline evaluation; /* Stabilizing, Stabilized: ask as if triggered */
};

/* In Cooldown, with its timer made. */
/* One that never does anything. */
struct manager manager_none(void);
struct manager manager_start(struct manager_timing timing, struct clock *clock);

/* Something about resources or requirements may have changed. */
void manager_on_change(struct manager *m, struct clock *clock, struct outlook outlook);

/* Evaluate now. */
enum verdict manager_on_trigger(struct manager *m, struct clock *clock, struct outlook outlook);

/* `due` is &m->phase_end or &m->evaluation, and its time has come. */
enum verdict manager_on_deadline(struct manager *m, struct clock *clock, struct deadline *due,
                                 struct outlook outlook);

/* The host goes on: Transitioning, no timer left. */
void manager_go(struct manager *m);

/* Was a checkpoint asked for since the last call? (on entering Stabilizing, on a change in it,
 * on entering Stabilized) */
bool manager_take_checkpoint_wish(struct manager *m);

const char *manager_phase_name(enum manager_phase phase);

#endif

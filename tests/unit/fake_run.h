/* fake_run.h - a run as reports see it, made up step by step: no scheduler behind it
 *
 * Fills the views of a script; the reports' own code takes it from there.
 */
#ifndef PLIANT_TESTS_FAKE_RUN_H
#define PLIANT_TESTS_FAKE_RUN_H

#include "sim/view.h"

#define FAKE_CHANGES 3

struct fake_change {
    enum pliant_state from, to;
    enum pliant_reason reason;
    int64_t since, detail; /* since 0: PLIANT_NEVER */
    uint32_t node;
};

static inline struct fake_change fake_change(enum pliant_state from, enum pliant_state to,
                                             enum pliant_reason reason)
{
    return (struct fake_change){.from = from, .to = to, .reason = reason};
}

struct fake_step {
    int64_t at_ms;
    enum pliant_event_kind event;
    uint64_t id; /* of a checkpoint */
    uint32_t nodes, draining, offered, used, parallelism;
    struct fake_change changes[FAKE_CHANGES]; /* up to the first without a reason */
    uint32_t aim;                             /* of a rescale; 0: none */
    bool ignored;
};

/* Two nodes of two slots; one joins late, the first is lost. As measured on the reference. */
extern const struct fake_step fake_grow_and_lose[];
extern const size_t fake_grow_and_lose_n;

struct pliant_job *fake_job(const char *name);

/* What a step's view points at. */
struct fake {
    struct view *view;
    struct pliant_event event;
    struct pliant_action actions[FAKE_CHANGES + 1];
    struct pliant_actions list;
};

/* Fill f->view with a step. The event and more actions may be put in before it is shown. */
void fake_take(struct fake *f, struct view *view, const struct fake_step *step);
struct pliant_action *fake_action(struct fake *f, enum pliant_action_kind kind);

#endif

/* manager_test.c - the state-transition manager, rule by rule and consequence by consequence
 *
 * Most tests are scripts: at an instant something happens, then the manager is in a phase.
 * Timers that are due run before what happens. Cooldown 30, stabilization 60 and trigger
 * delay 20 unless a test says otherwise.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <signal.h>

#include "transition/manager.h"

static const struct manager_timing usual = {30, 60, 20};

struct host {
    struct clock clock;
    struct manager manager;
    struct outlook outlook;
    bool declines; /* its policy says "not now" */
    int asked;
};

enum what {
    END,
    LOOK, /* nothing happens */
    CHANGE,
    TRIGGER,
    CHECK, /* change, then trigger */
    NONE,
    SUFFICIENT,
    DESIRED, /* the outlook from now on */
    DECLINE,
    AGREE, /* the policy from now on */
};

struct step {
    int64_t at_ms;
    enum what what;
    enum manager_phase then;
};

static void obey(struct host *h, enum verdict verdict)
{
    if (verdict != VERDICT_GO)
        return;
    h->asked++;
    if (!h->declines)
        manager_go(&h->manager);
}

static void run_timers(struct host *h, int64_t until_ms)
{
    struct manager *m = &h->manager;

    for (;;) {
        struct deadline *due =
            deadline_before(&m->evaluation, &m->phase_end) ? &m->evaluation : &m->phase_end;

        if (!deadline_armed(due) || due->at_ms > until_ms)
            break;
        h->clock.now_ms = due->at_ms;
        obey(h, manager_on_deadline(m, &h->clock, due, h->outlook));
    }
    h->clock.now_ms = until_ms;
}

static void happen(struct host *h, enum what what)
{
    switch (what) {
    case END:
    case LOOK:
        break;
    case CHECK:
        happen(h, CHANGE);
        happen(h, TRIGGER);
        break;
    case CHANGE:
        manager_on_change(&h->manager, &h->clock, h->outlook);
        break;
    case TRIGGER:
        obey(h, manager_on_trigger(&h->manager, &h->clock, h->outlook));
        break;
    case NONE:
    case SUFFICIENT:
    case DESIRED:
        h->outlook = (struct outlook){.sufficient = what != NONE, .desired = what == DESIRED};
        break;
    case DECLINE:
    case AGREE:
        h->declines = what == DECLINE;
        break;
    }
}

static struct host play(struct manager_timing timing, const struct step *steps)
{
    struct host h = {0};

    h.manager = manager_start(timing, &h.clock);
    for (size_t i = 0; steps[i].what != END; i++) {
        run_timers(&h, steps[i].at_ms);
        happen(&h, steps[i].what);
        cr_expect(eq(str, (char *)manager_phase_name(h.manager.phase),
                     (char *)manager_phase_name(steps[i].then)),
                  "step %zu, at %d", i, (int)steps[i].at_ms);
    }
    return h;
}

#define PLAY(timing, ...) play((timing), (const struct step[]){__VA_ARGS__, {0, END, 0}})

/* clang-format off */ /* scripts are tables, one step a line */

#define COOLDOWN MANAGER_COOLDOWN
#define IDLING MANAGER_IDLING
#define STABILIZING MANAGER_STABILIZING
#define STABILIZED MANAGER_STABILIZED
#define TRANSITIONING MANAGER_TRANSITIONING

/* ---- the rules -------------------------------------------------------------------------- */

Test(manager, plans_for_now_what_is_overdue) /* [S-STM-1] */
{
    struct host h = PLAY(((struct manager_timing){100, 20, 30}),
                         {0, SUFFICIENT, COOLDOWN},
                         {10, CHANGE, COOLDOWN});

    h.clock.now_ms = 100;
    manager_on_deadline(&h.manager, &h.clock, &h.manager.phase_end, h.outlook);
    cr_assert(eq(i64, h.manager.phase_end.at_ms, 100));
    cr_assert(eq(i64, h.manager.evaluation.at_ms, 100));
    cr_assert(deadline_before(&h.manager.phase_end, &h.manager.evaluation));
}

Test(manager, drops_the_timers_of_a_phase_that_it_left) /* [S-STM-2] */
{
    /* the evaluation of the first Stabilized, due at 130, finds the second Stabilizing */
    PLAY(((struct manager_timing){0, 10, 100}),
         {30, SUFFICIENT, IDLING},
         {30, CHANGE, STABILIZING},
         {40, NONE, STABILIZED},
         {50, TRIGGER, IDLING},
         {125, SUFFICIENT, IDLING},
         {125, CHANGE, STABILIZING},
         {125, DESIRED, STABILIZING},
         {134, LOOK, STABILIZING},
         {135, LOOK, STABILIZED},
         {224, LOOK, STABILIZED},
         {225, LOOK, TRANSITIONING});
}

Test(manager, keeps_no_timer_in_idling_and_transitioning) /* [S-STM-2] */
{
    struct host idling = PLAY(usual, {30, LOOK, IDLING});
    struct host gone = PLAY(usual, {30, DESIRED, IDLING}, {31, CHECK, TRANSITIONING});

    cr_assert(not(deadline_armed(&idling.manager.phase_end)));
    cr_assert(not(deadline_armed(&idling.manager.evaluation)));
    cr_assert(not(deadline_armed(&gone.manager.phase_end)));
    cr_assert(not(deadline_armed(&gone.manager.evaluation)));
}

Test(manager, transitions_once_in_its_life) /* [S-STM-3] */
{
    struct host h =
        PLAY(usual,
             {30, DESIRED, IDLING},
             {31, CHECK, TRANSITIONING},
             {32, CHECK, TRANSITIONING},
             {33, TRIGGER, TRANSITIONING},
             {1000, CHANGE, TRANSITIONING});

    cr_assert(eq(int, h.asked, 1));
}

Test(manager, forgets_triggers_in_cooldown_and_idling) /* [S-STM-4] */
{
    PLAY(usual,
         {0, DESIRED, COOLDOWN},
         {10, CHANGE, COOLDOWN},
         {11, TRIGGER, COOLDOWN},
         {29, LOOK, COOLDOWN},
         {29, NONE, COOLDOWN},
         {30, LOOK, STABILIZING});
    PLAY(usual,
         {30, DESIRED, IDLING},
         {31, TRIGGER, IDLING},
         {32, CHANGE, STABILIZING},
         {51, LOOK, STABILIZING});
}

Test(manager, judges_a_change_in_cooldown_when_it_comes_and_never_again) /* [S-STM-5] */
{
    PLAY(usual, {10, CHANGE, COOLDOWN}, {11, DESIRED, COOLDOWN}, {1000, LOOK, IDLING});
    PLAY(usual,
         {10, SUFFICIENT, COOLDOWN},
         {10, CHANGE, COOLDOWN},
         {11, NONE, COOLDOWN},
         {30, LOOK, STABILIZING});
}

Test(manager, stays_stabilizing_when_resources_go) /* [S-STM-6] */
{
    PLAY(usual,
         {30, SUFFICIENT, IDLING},
         {40, CHANGE, STABILIZING},
         {41, NONE, STABILIZING},
         {42, CHECK, STABILIZING},
         {99, TRIGGER, STABILIZING},
         {100, LOOK, IDLING}); /* Stabilized's evaluation is overdue by then */
}

Test(manager, passes_stabilizing_at_once_when_its_time_went_by_in_cooldown) /* [S-STM-7] */
{
    struct host h = PLAY(((struct manager_timing){100, 50, 80}),
                         {10, SUFFICIENT, COOLDOWN},
                         {10, CHANGE, COOLDOWN},
                         {99, LOOK, COOLDOWN},
                         {100, LOOK, TRANSITIONING});

    cr_assert(eq(int, h.asked, 1));
    PLAY(((struct manager_timing){100, 50, 95}), /* only S went by */
         {10, SUFFICIENT, COOLDOWN},
         {10, CHANGE, COOLDOWN},
         {100, LOOK, STABILIZED},
         {104, LOOK, STABILIZED},
         {105, LOOK, TRANSITIONING});
}

Test(manager, ignores_changes_when_stabilized) /* [S-STM-8] */
{
    PLAY(((struct manager_timing){0, 10, 100}),
         {20, SUFFICIENT, IDLING},
         {20, CHANGE, STABILIZING},
         {30, LOOK, STABILIZED},
         {40, CHANGE, STABILIZED},
         {119, CHANGE, STABILIZED},
         {120, LOOK, TRANSITIONING});
}

Test(manager, goes_right_after_cooldown_for_desired_without_trigger_delay) /* [S-STM-9] */
{
    PLAY(((struct manager_timing){30, 60, 0}),
         {0, DESIRED, COOLDOWN},
         {0, CHECK, COOLDOWN},
         {29, LOOK, COOLDOWN},
         {30, LOOK, TRANSITIONING});
}

Test(manager, refuses_a_negative_stabilization, .signal = SIGABRT) /* [S-STM-11] */
{
    struct clock clock = {0};

    manager_start((struct manager_timing){0, -1, 0}, &clock);
}

Test(manager, refuses_a_negative_trigger_delay, .signal = SIGABRT) /* [S-STM-11] */
{
    struct clock clock = {0};

    manager_start((struct manager_timing){0, 0, -1}, &clock);
}

Test(manager, takes_a_negative_cooldown_as_none)
{
    PLAY(((struct manager_timing){-5, 10, 10}), {0, LOOK, IDLING});
}

Test(manager, minds_no_order_of_first_check_and_end_of_no_cooldown) /* [S-STM-12] */
{
    struct host check_first = {.outlook = {true, true}};

    check_first.manager = manager_start((struct manager_timing){0, 60, 0}, &check_first.clock);
    happen(&check_first, CHECK);
    cr_assert(eq(int, check_first.manager.phase, COOLDOWN));
    run_timers(&check_first, 0);
    cr_assert(eq(int, check_first.manager.phase, TRANSITIONING));

    PLAY(((struct manager_timing){0, 60, 0}), {0, DESIRED, IDLING}, {0, CHECK, TRANSITIONING});
}

/* ---- consequences, in the order of section 3 -------------------------------------------- */

Test(manager, measures_from_the_first_change) /* 1: within the cooldown, too */
{
    PLAY(((struct manager_timing){30, 60, 40}),
         {10, DESIRED, COOLDOWN},
         {10, CHANGE, COOLDOWN},
         {49, LOOK, STABILIZING},
         {50, LOOK, TRANSITIONING});
    PLAY(((struct manager_timing){30, 60, 200}),
         {10, SUFFICIENT, COOLDOWN},
         {10, CHANGE, COOLDOWN},
         {69, LOOK, STABILIZING},
         {70, LOOK, STABILIZED},
         {209, LOOK, STABILIZED},
         {210, LOOK, TRANSITIONING});
}

Test(manager, counts_the_first_sufficient_change_of_the_cooldown) /* 2 */
{
    PLAY(((struct manager_timing){30, 60, 200}),
         {5, CHANGE, COOLDOWN}, /* not sufficient */
         {10, SUFFICIENT, COOLDOWN},
         {10, CHANGE, COOLDOWN},
         {20, CHANGE, COOLDOWN},
         {69, LOOK, STABILIZING},
         {70, LOOK, STABILIZED});
}

Test(manager, forgets_an_insufficient_change_in_idling) /* 3 */
{
    PLAY(usual, {40, CHANGE, IDLING}, {41, DESIRED, IDLING}, {9999, LOOK, IDLING});
}

Test(manager, needs_a_new_change_after_falling_back_to_idling) /* 4 */
{
    PLAY(usual,
         {30, SUFFICIENT, IDLING},
         {40, CHANGE, STABILIZING},
         {50, NONE, STABILIZING},
         {100, LOOK, IDLING},
         {101, DESIRED, IDLING},
         {900, TRIGGER, IDLING},
         {901, CHECK, TRANSITIONING});
}

Test(manager, remembers_no_first_change_when_idling)
{
    struct host h = PLAY(usual, {30, SUFFICIENT, IDLING}, {40, CHANGE, STABILIZING});

    cr_assert(eq(i64, h.manager.first_change_at_ms, 40));
    happen(&h, NONE);
    run_timers(&h, 100);
    cr_assert(eq(int, h.manager.phase, IDLING));
    cr_assert(eq(i64, h.manager.first_change_at_ms, PLIANT_NEVER));
}

Test(manager, plans_another_evaluation_only_after_one_in_vain) /* 5 */
{
    PLAY(((struct manager_timing){0, 100, 20}),
         {0, SUFFICIENT, IDLING},
         {0, CHANGE, STABILIZING},
         {15, CHANGE, STABILIZING}, /* one is pending for 20 */
         {20, DESIRED, STABILIZING}, /* it was in vain */
         {40, LOOK, STABILIZING}, /* 15 + 20 was never planned */
         {50, CHANGE, STABILIZING},
         {60, CHANGE, STABILIZING},
         {69, LOOK, STABILIZING},
         {70, LOOK, TRANSITIONING});
    PLAY(((struct manager_timing){0, 100, 200}), /* the stabilization does not restart */
         {0, SUFFICIENT, IDLING},
         {0, CHANGE, STABILIZING},
         {90, CHANGE, STABILIZING},
         {100, LOOK, STABILIZED});
}

Test(manager, asks_desired_in_stabilizing_and_sufficient_in_stabilized) /* 6 */
{
    PLAY(((struct manager_timing){0, 100, 200}),
         {0, SUFFICIENT, IDLING},
         {0, CHECK, STABILIZING},
         {99, TRIGGER, STABILIZING},
         {100, LOOK, STABILIZED},
         {101, TRIGGER, TRANSITIONING});
}

Test(manager, plans_nothing_for_changes_when_stabilized) /* 7 */
{
    struct host h = PLAY(((struct manager_timing){0, 10, 100}),
                         {0, SUFFICIENT, IDLING},
                         {0, CHANGE, STABILIZING},
                         {10, CHANGE, STABILIZED});

    cr_assert(eq(i64, h.manager.evaluation.at_ms, 100));
    cr_assert(not(deadline_armed(&h.manager.phase_end)));
}

Test(manager, decides_at_the_latest_when_both_delays_are_over) /* 8 */
{
    PLAY(((struct manager_timing){0, 50, 80}), /* D >= S: at f + D, on sufficient */
         {5, SUFFICIENT, IDLING},
         {5, CHANGE, STABILIZING},
         {84, LOOK, STABILIZED},
         {85, LOOK, TRANSITIONING});
    PLAY(((struct manager_timing){0, 80, 50}), /* D < S: at f + D if desired ... */
         {5, DESIRED, IDLING},
         {5, CHANGE, STABILIZING},
         {54, LOOK, STABILIZING},
         {55, LOOK, TRANSITIONING});
    PLAY(((struct manager_timing){0, 80, 50}), /* ... else at f + S */
         {5, SUFFICIENT, IDLING},
         {5, CHANGE, STABILIZING},
         {84, LOOK, STABILIZING},
         {85, LOOK, TRANSITIONING});
    PLAY(((struct manager_timing){0, 50, 50}), /* S = D: "stable" first, sufficient decides */
         {5, SUFFICIENT, IDLING},
         {5, CHANGE, STABILIZING},
         {54, LOOK, STABILIZING},
         {55, LOOK, TRANSITIONING});
}

Test(manager, goes_in_the_instant_of_the_change_without_trigger_delay) /* 9 */
{
    struct host h = PLAY(((struct manager_timing){0, 60, 0}),
                         {10, DESIRED, IDLING},
                         {10, CHANGE, STABILIZING}, /* through a timer */
                         {10, LOOK, TRANSITIONING});

    cr_assert(eq(int, h.asked, 1));
    PLAY(((struct manager_timing){0, 60, 0}),
         {10, SUFFICIENT, IDLING},
         {10, CHANGE, STABILIZING},
         {69, LOOK, STABILIZING},
         {70, LOOK, TRANSITIONING});
}

Test(manager, needs_no_time_at_all_when_all_delays_are_zero) /* 10 */
{
    static const struct manager_timing none;
    struct host h;

    PLAY(none, {10, SUFFICIENT, IDLING}, {10, CHANGE, STABILIZING}, {10, LOOK, TRANSITIONING});
    h = PLAY(none, {10, SUFFICIENT, IDLING}, {10, CHANGE, STABILIZING});
    happen(&h, NONE);
    run_timers(&h, 10);
    cr_assert(eq(int, h.manager.phase, IDLING));
}

Test(manager, starts_no_cooldown_when_it_falls_back) /* 11 */
{
    PLAY(usual,
         {30, SUFFICIENT, IDLING},
         {30, CHANGE, STABILIZING},
         {89, NONE, STABILIZING},
         {90, LOOK, IDLING},
         {90, DESIRED, IDLING},
         {91, CHECK, TRANSITIONING});
}

/* ---- what the reference tests, where it is not said above ------------------------------- */

Test(manager, loses_a_trigger_at_the_end_of_cooldown_before_its_timer_ran)
{
    struct host h = PLAY(usual, {10, DESIRED, COOLDOWN}, {10, CHANGE, COOLDOWN});

    h.clock.now_ms = 30; /* a host that takes the event first */
    happen(&h, TRIGGER);
    cr_assert(eq(int, h.manager.phase, COOLDOWN));
    h.manager.timing.max_trigger_delay_ms = 100;
    run_timers(&h, 30);
    cr_assert(eq(int, h.manager.phase, STABILIZING));
    happen(&h, TRIGGER);
    cr_assert(eq(int, h.manager.phase, TRANSITIONING));
}

Test(manager, does_nothing_for_a_trigger_without_change_in_every_calm_phase)
{
    struct host h = PLAY(usual,
                         {0, DESIRED, COOLDOWN},
                         {15, TRIGGER, COOLDOWN},
                         {30, TRIGGER, IDLING},
                         {99, TRIGGER, IDLING});

    cr_assert(eq(int, h.asked, 0));
}

Test(manager, goes_for_a_desired_change_of_cooldown_idling_and_stabilized)
{
    static const struct manager_timing late = {30, 60, 500};

    PLAY(late,
         {10, DESIRED, COOLDOWN},
         {10, CHANGE, COOLDOWN},
         {30, LOOK, STABILIZING},
         {31, TRIGGER, TRANSITIONING});
    PLAY(late, {30, DESIRED, IDLING}, {40, CHANGE, STABILIZING}, {41, TRIGGER, TRANSITIONING});
    PLAY(late,
         {30, SUFFICIENT, IDLING},
         {40, CHANGE, STABILIZING},
         {100, DESIRED, STABILIZED},
         {101, CHANGE, STABILIZED},
         {102, TRIGGER, TRANSITIONING});
}

Test(manager, evaluates_desired_without_a_trigger_after_the_trigger_delay)
{
    PLAY(usual,
         {30, DESIRED, IDLING},
         {40, CHANGE, STABILIZING},
         {59, LOOK, STABILIZING},
         {60, LOOK, TRANSITIONING});
}

Test(manager, stays_idling_after_insufficient_changes)
{
    PLAY(usual, {10, CHANGE, COOLDOWN}, {30, LOOK, IDLING}, {500, TRIGGER, IDLING});
    PLAY(usual, {40, CHANGE, IDLING}, {41, TRIGGER, IDLING}, {500, LOOK, IDLING});
}

Test(manager, takes_sufficient_after_the_trigger_delay_only_when_stabilized)
{
    PLAY(usual,
         {30, SUFFICIENT, IDLING},
         {40, CHANGE, STABILIZING},
         {60, LOOK, STABILIZING},
         {99, LOOK, STABILIZING});
    PLAY(((struct manager_timing){30, 60, 90}),
         {30, SUFFICIENT, IDLING},
         {40, CHANGE, STABILIZING},
         {100, LOOK, STABILIZED},
         {129, LOOK, STABILIZED},
         {130, LOOK, TRANSITIONING});
}

Test(manager, counts_triggers_for_sufficient_only_when_stabilized)
{
    static const struct manager_timing late = {30, 60, 500};

    PLAY(late,
         {10, SUFFICIENT, COOLDOWN},
         {10, CHECK, COOLDOWN},
         {31, TRIGGER, STABILIZING},
         {70, TRIGGER, TRANSITIONING});
    PLAY(late,
         {30, SUFFICIENT, IDLING},
         {40, CHECK, STABILIZING},
         {99, TRIGGER, STABILIZING},
         {100, TRIGGER, TRANSITIONING});
    PLAY(late,
         {30, SUFFICIENT, IDLING},
         {40, CHANGE, STABILIZING},
         {101, CHANGE, STABILIZED},
         {102, TRIGGER, TRANSITIONING});
}

Test(manager, honours_a_later_desired_change_before_stabilization_ends)
{
    PLAY(usual,
         {30, SUFFICIENT, IDLING},
         {40, CHANGE, STABILIZING},
         {61, DESIRED, STABILIZING},
         {65, CHANGE, STABILIZING},
         {70, TRIGGER, TRANSITIONING});
}

Test(manager, takes_what_came_back_when_stabilized)
{
    PLAY(((struct manager_timing){30, 60, 500}),
         {30, SUFFICIENT, IDLING},
         {40, CHANGE, STABILIZING},
         {50, NONE, STABILIZING},
         {51, CHECK, STABILIZING},
         {100, LOOK, STABILIZED},
         {110, SUFFICIENT, STABILIZED},
         {110, CHANGE, STABILIZED},
         {120, TRIGGER, TRANSITIONING});
}

Test(manager, goes_idling_for_a_trigger_without_resources_when_stabilized)
{
    PLAY(((struct manager_timing){30, 60, 500}),
         {30, SUFFICIENT, IDLING},
         {40, CHANGE, STABILIZING},
         {100, NONE, STABILIZED},
         {110, CHANGE, STABILIZED},
         {120, TRIGGER, IDLING},
         {999, LOOK, IDLING});
}

/* ---- a host whose policy declines ------------------------------------------------------- */

Test(manager, keeps_its_phase_when_the_host_declines)
{
    struct host h =
        PLAY(((struct manager_timing){0, 60, 500}),
             {0, DECLINE, IDLING},
             {0, DESIRED, IDLING},
             {0, CHECK, STABILIZING},
             {1, TRIGGER, STABILIZING},
             {60, TRIGGER, STABILIZED},
             {61, AGREE, STABILIZED},
             {62, TRIGGER, TRANSITIONING});

    cr_assert(eq(int, h.asked, 4));
}

Test(manager, asks_again_after_the_next_change_when_the_host_declined)
{
    PLAY(((struct manager_timing){0, 60, 10}),
         {0, DECLINE, IDLING},
         {0, DESIRED, IDLING},
         {0, CHANGE, STABILIZING},
         {20, AGREE, STABILIZING}, /* declined at 10 */
         {30, CHANGE, STABILIZING},
         {39, LOOK, STABILIZING},
         {40, LOOK, TRANSITIONING});
    PLAY(((struct manager_timing){0, 60, 10}),
         {0, DECLINE, IDLING},
         {0, SUFFICIENT, IDLING},
         {0, CHANGE, STABILIZING},
         {60, AGREE, STABILIZED}, /* declined at 60 */
         {99, LOOK, STABILIZED},
         {100, CHANGE, STABILIZED},
         {105, CHANGE, STABILIZED},
         {110, LOOK, TRANSITIONING});
}

Test(manager, falls_back_when_resources_go_after_the_host_declined)
{
    PLAY(((struct manager_timing){0, 60, 10}),
         {0, DECLINE, IDLING},
         {0, SUFFICIENT, IDLING},
         {0, CHANGE, STABILIZING},
         {60, NONE, STABILIZED},
         {70, TRIGGER, IDLING});
}

/* ---- wishes for a checkpoint ------------------------------------------------------------ */

static bool wish_after(struct host *h, int64_t at_ms, enum what what)
{
    run_timers(h, at_ms);
    happen(h, what);
    return manager_take_checkpoint_wish(&h->manager);
}

Test(manager, asks_for_a_checkpoint_when_it_may_be_of_use) /* [S-EXE-19] */
{
    struct host h = {.outlook = {true, false}};

    h.manager = manager_start((struct manager_timing){30, 60, 500}, &h.clock);
    cr_expect(not(wish_after(&h, 10, CHANGE)), "in Cooldown");
    cr_expect(wish_after(&h, 30, LOOK), "on entering Stabilizing");
    cr_expect(not(wish_after(&h, 31, TRIGGER)), "taken already");
    cr_expect(wish_after(&h, 32, CHANGE), "on a change in Stabilizing");
    cr_expect(wish_after(&h, 70, LOOK), "on entering Stabilized");
    cr_expect(not(wish_after(&h, 71, CHANGE)), "on a change in Stabilized");
    happen(&h, NONE);
    cr_expect(not(wish_after(&h, 72, TRIGGER)), "on falling back to Idling");
    cr_expect(not(wish_after(&h, 73, CHANGE)), "in Idling");
    happen(&h, DESIRED);
    cr_expect(not(wish_after(&h, 74, CHECK)), "none is of use when it goes at once");
    cr_expect(eq(int, h.manager.phase, TRANSITIONING));
}

/* ---- numbers at their ends --------------------------------------------------------------- */

Test(manager, survives_delays_beyond_all_time)
{
    static const struct manager_timing endless = {0, PLIANT_NEVER, PLIANT_NEVER};

    PLAY(endless,
         {5, DESIRED, IDLING},
         {5, CHANGE, STABILIZING},
         {PLIANT_NEVER - 1, CHANGE, STABILIZING},
         {PLIANT_NEVER - 1, TRIGGER, TRANSITIONING});
    PLAY(((struct manager_timing){PLIANT_NEVER, 0, 0}), {PLIANT_NEVER - 1, LOOK, COOLDOWN});
    PLAY(((struct manager_timing){INT64_MIN, 0, 0}), {0, LOOK, IDLING});
}

Test(manager, names_its_phases)
{
    cr_assert(eq(str, (char *)manager_phase_name(COOLDOWN), "Cooldown"));
    cr_assert(eq(str, (char *)manager_phase_name((enum manager_phase)99), ""));
}

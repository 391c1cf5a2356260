/* executing_test.c - Executing: deployment, failures, and whether a change is worth a restart
 *
 * Cooldown 30 s, stabilization 60 s unless a test says otherwise. Most jobs want 4 and begin
 * with 2.
 */
#include <criterion/criterion.h>

#include "states/sched.h"
#include "world.h"

#define ADAPTIVE "jobmanager.adaptive-scheduler."
#define COOLDOWN ADAPTIVE "executing.cooldown-after-rescaling"
#define STABLE ADAPTIVE "executing.resource-stabilization-timeout"
#define DELAY ADAPTIVE "rescale-trigger.max-delay"
#define MAX_FAILURES ADAPTIVE "rescale-trigger.max-checkpoint-failures"
#define AT_ONCE ADAPTIVE "submission.resource-stabilization-timeout", "0 s"
#define FIXED "restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.attempts", "9"
#define NO_RESTARTS "restart-strategy.type", "none"
/* Checkpoints that the host takes of its own accord. */
#define CHECKPOINTS                                                                                \
    "execution.checkpointing.interval", "10 s", "pliant.checkpoint.periodic", "false"

static const pliant_vertex_id one = {1};

/* Runs with 2 of 4 since time 0; no cooldown; stable after 10 s; only a trigger rescales. */
static struct world patient(void)
{
    return world_running((struct world_spec){.options = {AT_ONCE, COOLDOWN, "0 s", STABLE, "10 s",
                                                         DELAY, "1 h", CHECKPOINTS, FIXED}},
                         2);
}

static void expect_state(const struct world *w, enum pliant_state state)
{
    cr_expect_eq(pliant_state(w->s), state, "at %lld it is in %s", (long long)w->now_ms,
                 pliant_state_name(pliant_state(w->s)));
}

/* ---- deployment ------------------------------------------------------------------------- */

Test(executing, deploys_in_topological_order) /* [S-EXE-1] */
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "sink", .parallelism = 2},
        {.id = "map", .parallelism = 2},
        {.id = "source", .parallelism = 1},
        {.id = "other-source", .parallelism = 2},
    };
    static const struct pliant_edge_spec edges[] = {
        {1, 0, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED},
        {2, 1, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED},
        {3, 1, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED},
    };
    static const struct pliant_task want[] = {{{3}, 0, 1}, {{4}, 0, 1}, {{4}, 1, 1}, {{2}, 0, 1},
                                              {{2}, 1, 1}, {{1}, 0, 1}, {{1}, 1, 1}};
    struct world w = world_new(
        (struct world_spec){.vertices = vertices, .n_vertices = 4, .edges = edges, .n_edges = 3});

    w.runs = false;
    world_node(&w, "n1", 2);
    world_start(&w);
    cr_assert_eq(world_count(&w, PLIANT_ACT_DEPLOY), 7);
    for (size_t i = 0; i < 7; i++) {
        const struct pliant_task *got = &world_action(&w, PLIANT_ACT_DEPLOY, i)->deploy.task;

        cr_expect(got->vertex.v == want[i].vertex.v && got->subtask == want[i].subtask &&
                      got->attempt == want[i].attempt,
                  "deploy %zu is of vertex %u, subtask %u", i, got->vertex.v, got->subtask);
    }
    world_free(&w);
}

Test(executing, leaves_alone_what_runs_when_entered_again) /* [S-EXE-1] */
{
    struct world w = world_running((struct world_spec){.options = {CHECKPOINTS}}, 4);

    w.runs = false;
    world_stop(&w);
    world_savepoint(&w, false);
    expect_state(&w, PLIANT_EXECUTING);
    cr_expect_eq(world_count(&w, PLIANT_ACT_DEPLOY), 0);
    cr_expect_eq(world_counts(&w).tasks_running, 4);
    world_free(&w);
}

Test(executing, a_task_that_cannot_be_deployed_has_failed) /* [S-EXE-2, S-FAIL-9] */
{
    struct world w = world_new((struct world_spec){.options = {FIXED}});
    struct pliant_task_info info;

    w.runs = w.cancels = false;
    world_node(&w, "n1", 4);
    world_start(&w);
    cr_assert(pliant_task_info(w.s, one, 2, &info));
    cr_expect_eq(info.state, PLIANT_TASK_DEPLOYING);
    world_fail_task(&w, 1, 2, true);
    expect_state(&w, PLIANT_RESTARTING);
    cr_assert(pliant_task_info(w.s, one, 2, &info));
    cr_expect_eq(info.state, PLIANT_TASK_FAILED);
    cr_expect_eq(world_count(&w, PLIANT_ACT_CANCEL), 3);
    world_free(&w);
}

Test(executing, its_manager_has_the_configured_times) /* [S-STM-9] */
{
    static const struct {
        const char *options[7];
        int64_t cooldown, stable, delay;
    } rows[] = {
        {{NULL}, 30000, 60000, 0},
        {{"execution.checkpointing.interval", "7 s"}, 30000, 60000, 21000},
        {{"execution.checkpointing.interval", "7 s", MAX_FAILURES, "4"}, 30000, 60000, 35000},
        {{"execution.checkpointing.interval", "7 s", DELAY, "5 s"}, 30000, 60000, 5000},
        {{COOLDOWN, "1 s", STABLE, "2 s"}, 1000, 2000, 0},
        {{ADAPTIVE "scaling-interval.min", "4 s"}, 4000, 60000, 0}, /* the old name [S-OPT-3] */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world_spec spec = {0};
        struct world w;
        const struct manager_timing *timing;

        for (size_t k = 0; k < 6; k++)
            spec.options[k] = rows[i].options[k];
        w = world_running(spec, 4);
        timing = &w.s->state.executing.manager.timing;
        cr_expect_eq(timing->cooldown_ms, rows[i].cooldown, "row %zu", i);
        cr_expect_eq(timing->stabilization_ms, rows[i].stable, "row %zu", i);
        cr_expect_eq(timing->max_trigger_delay_ms, rows[i].delay, "row %zu", i);
        world_free(&w);
    }
}

Test(executing, refuses_negative_times) /* [S-STM-11] */
{
    static const char *const keys[] = {STABLE, DELAY,
                                       ADAPTIVE "submission.resource-stabilization-timeout"};
    struct pliant_config cfg;

    pliant_config_init(&cfg);
    for (size_t i = 0; i < 3; i++)
        cr_expect_lt(pliant_config_set(&cfg, keys[i], "-1 ms", NULL), 0, "%s", keys[i]);
}

/* ---- when a rescale begins -------------------------------------------------------------- */

Test(executing, looks_at_what_came_before_the_entry) /* [S-EXE-3] */
{
    for (int what = 0; what < 2; what++) {
        struct world w = world_new((struct world_spec){.options = {AT_ONCE}});

        w.reserves = false;
        world_node(&w, "n1", 2);
        world_start(&w);
        if (what == 0)
            world_node(&w, "n2", 2);
        else
            world_bounds(&w, 1, 1);
        w.reserves = true;
        world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
        cr_expect_eq(pliant_parallelism(w.s, one), 2);
        world_to(&w, 29999);
        expect_state(&w, PLIANT_EXECUTING);
        world_to(&w, 30000); /* the end of the cooldown; no event has come since */
        cr_expect_eq(pliant_parallelism(w.s, one), what == 0 ? 4 : 1);
        cr_expect_eq(w.s->rescales, 1);
        world_free(&w);
    }
}

Test(executing, the_first_look_arms_no_countdown) /* [S-EXE-3, S-EXE-7] */
{
    struct world w = world_new((struct world_spec){
        .options = {AT_ONCE, COOLDOWN, "0 s", STABLE, "0 s", DELAY, "1 h", CHECKPOINTS}});

    w.reserves = false;
    world_node(&w, "n1", 2);
    world_start(&w);
    world_node(&w, "n2", 1);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    for (int i = 0; i < 5; i++)
        world_checkpoint_failed(&w, true);
    expect_state(&w, PLIANT_EXECUTING);
    world_free(&w);
}

Test(executing, more_slots_that_change_no_parallelism_are_nothing) /* [S-EXE-4] */
{
    struct world w = world_running(
        (struct world_spec){.options = {COOLDOWN, "0 s", STABLE, "0 s", CHECKPOINTS}}, 4);

    world_node(&w, "n2", 4);
    world_to(&w, 100000);
    world_checkpoint(&w);
    expect_state(&w, PLIANT_EXECUTING);
    cr_expect_eq(w.s->state.executing.manager.phase, MANAGER_IDLING);
    world_free(&w);
}

Test(executing, one_vertex_that_would_change_is_enough) /* [S-EXE-4] */
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 1, .slot_sharing_group = "x"},
        {.id = "b", .parallelism = 9, .slot_sharing_group = "y"},
    };
    struct world w =
        world_running((struct world_spec){.vertices = vertices,
                                          .n_vertices = 2,
                                          .options = {AT_ONCE, COOLDOWN, "0 s", STABLE, "0 s"}},
                      3);

    world_node(&w, "n2", 1);
    cr_expect_eq(pliant_parallelism(w.s, one), 1);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){2}), 3);
    world_free(&w);
}

Test(executing, counts_the_slots_in_use) /* [S-EXE-5] */
{
    struct world w = world_running((struct world_spec){.options = {AT_ONCE, COOLDOWN, "0 s"}}, 2);

    world_node(&w, "n2", 2); /* 2 in use and 2 free are the 4 that are desired */
    cr_expect_eq(pliant_parallelism(w.s, one), 4);
    cr_expect_eq(w.now_ms, 0);
    world_free(&w);
}

Test(executing, slots_and_wishes_are_never_a_trigger) /* [S-EXE-6, S-STM-8] */
{
    struct world w = patient();

    world_node(&w, "n2", 1);
    world_to(&w, 20000);
    cr_assert_eq(w.s->state.executing.manager.phase, MANAGER_STABILIZED);
    world_node(&w, "n3", 1); /* all that is desired */
    expect_state(&w, PLIANT_EXECUTING);
    world_bounds(&w, 2, 4);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 3599999);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 3600000); /* the delay runs from the first change */
    cr_expect_eq(pliant_parallelism(w.s, one), 4);
    world_free(&w);
}

Test(executing, a_change_counts_by_what_it_finds) /* [S-EXE-4, S-STM-5] */
{
    struct world w = world_running(
        (struct world_spec){.options = {AT_ONCE, COOLDOWN, "30 s", STABLE, "0 s"}}, 2);

    world_bounds(&w, 1, 2); /* seen in the cooldown, and nothing to gain by it */
    world_node(&w, "n2", 2);
    world_to(&w, 40000);
    expect_state(&w, PLIANT_EXECUTING);
    cr_expect_eq(w.s->state.executing.manager.phase, MANAGER_IDLING);
    world_free(&w);
}

Test(executing, a_free_slot_that_is_lost_is_no_change) /* [S-STM-6] */
{
    struct world w = patient();

    world_node(&w, "n2", 2);
    world_to(&w, 5000);
    world_lose(&w, "n2");
    cr_expect_str_eq(world_emitted(&w), "");
    cr_expect_eq(w.s->state.executing.manager.phase, MANAGER_STABILIZING, "the view stays");
    world_to(&w, 10000);
    cr_expect_eq(w.s->state.executing.manager.phase, MANAGER_STABILIZED);
    world_checkpoint(&w);
    expect_state(&w, PLIANT_EXECUTING);
    cr_expect_eq(w.s->state.executing.manager.phase, MANAGER_IDLING, "seen at the next trigger");
    world_free(&w);
}

Test(executing, never_rescales_to_what_cannot_be_had) /* [S-EXE-12] */
{
    struct world w = patient();

    world_node(&w, "n2", 2);
    world_to(&w, 10000);
    world_lose(&w, "n2");
    world_bounds(&w, 3, 4); /* nothing is achievable: there are 2 */
    world_checkpoint(&w);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 4000000);
    expect_state(&w, PLIANT_EXECUTING);
    world_free(&w);
}

Test(executing, a_rescale_says_what_it_aims_at_and_why) /* [S-EXE-11, S-RST-2, S-RST-8] */
{
    struct world w = patient();

    world_to(&w, 1000);
    world_node(&w, "n2", 1);
    world_to(&w, 12000);
    world_node(&w, "n3", 5);
    w.cancels = w.reserves = false;
    world_checkpoint(&w);
    expect_state(&w, PLIANT_RESTARTING);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_RESCALE);
    cr_expect_eq(w.changed.change.slots, 8);
    cr_expect_eq(w.changed.change.since_at_ms, 1000, "the first change that led here");
    cr_expect_eq(w.changed.change.detail, (int64_t)world_counts(&w).checkpoint);
    cr_expect_eq(w.s->target[0], 4, "what is achievable at this moment");
    cr_expect_eq(w.s->state.restarting.winding.delay_ms, 0);
    cr_expect(failures_empty(&w.s->failures));
    cr_expect_eq(world_counts(&w).rescales, 1);
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    expect_state(&w, PLIANT_CREATING_EXECUTION_GRAPH);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_TARGET_REACHABLE, "without WaitingForResources");
    world_free(&w);
}

Test(executing, a_rescale_by_time_names_no_checkpoint) /* [S-EXE-11] */
{
    struct world w = world_running(
        (struct world_spec){.options = {AT_ONCE, COOLDOWN, "0 s", CHECKPOINTS, DELAY, "5 s"}}, 2);

    w.cancels = false;
    world_checkpoint(&w);
    world_node(&w, "n2", 2);
    world_to(&w, 5000);
    expect_state(&w, PLIANT_RESTARTING);
    cr_expect_eq(w.changed.change.detail, 0);
    world_free(&w);
}

Test(executing, a_cooldown_counts_from_each_entry) /* [S-SWS-2] */
{
    struct world w = world_running((struct world_spec){.options = {AT_ONCE, FIXED}}, 2);

    world_to(&w, 40000);
    world_fail_task(&w, 1, 0, true);
    world_to(&w, 41000); /* back-off 1 s; a new manager */
    expect_state(&w, PLIANT_EXECUTING);
    world_node(&w, "n2", 2);
    world_to(&w, 70999);
    cr_expect_eq(pliant_parallelism(w.s, one), 2);
    world_to(&w, 71000);
    cr_expect_eq(pliant_parallelism(w.s, one), 4);
    world_free(&w);
}

/* ---- requirements ----------------------------------------------------------------------- */

Test(executing, a_minimum_raised_to_what_runs_changes_nothing) /* [S-EXE-13] */
{
    struct world w = patient();

    world_bounds(&w, 2, 4);
    cr_expect_str_eq(world_emitted(&w), "declare rescale_opened rescale_closed",
                     "what is needed is another number");
    world_to(&w, 20000);
    world_checkpoint(&w);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 4000000);
    expect_state(&w, PLIANT_EXECUTING);
    world_free(&w);
}

Test(executing, a_minimum_raised_above_what_is_there_lets_the_job_run) /* [S-EXE-14] */
{
    struct world w = patient();

    world_bounds(&w, 3, 4);
    world_to(&w, 20000);
    world_checkpoint(&w);
    world_to(&w, 4000000);
    expect_state(&w, PLIANT_EXECUTING);
    world_node(&w, "n2", 1);
    world_to(&w, 4010000);
    world_checkpoint(&w);
    cr_expect_eq(pliant_parallelism(w.s, one), 3, "enough for the new minimum");
    world_free(&w);
}

Test(executing, a_lowered_maximum_scales_down_and_gives_back) /* [S-EXE-15, S-IDL-1] */
{
    struct world w = world_new((struct world_spec){.options = {"slot.idle.timeout", "50 s"}});
    const struct pliant_action *release = NULL;

    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_start(&w);
    world_to(&w, 40000);
    world_bounds(&w, 1, 2);
    cr_expect_eq(world_action(&w, PLIANT_ACT_DECLARE, 0)->declare.desired, 2);
    cr_expect_eq(pliant_parallelism(w.s, one), 2, "desired is met: without delay");
    cr_expect_eq(w.s->rescales, 1);
    cr_expect_eq(world_counts(&w).slots, 4, "not by the restart");
    world_to(&w, 89999);
    cr_expect_eq(world_counts(&w).slots, 4, "idle since 40 s only");
    world_to(&w, 100000); /* the check at 100 s */
    cr_expect_eq(world_counts(&w).slots, 2);
    release = world_action(&w, PLIANT_ACT_RELEASE, 0);
    cr_expect(!release || release->release.n == 2);
    cr_expect_eq(pliant_parallelism(w.s, one), 2);
    expect_state(&w, PLIANT_EXECUTING);
    world_free(&w);
}

Test(executing, an_update_that_changes_nothing_does_nothing) /* [S-REQ-1, S-EXE-7] */
{
    struct world w = patient();

    world_bounds(&w, 1, 4);
    cr_expect_str_eq(world_emitted(&w), "");
    cr_expect_eq(w.s->state.executing.countdown, -1);
    world_free(&w);
}

Test(executing, an_update_is_stored_and_declared_before_it_is_judged) /* [S-REQ-4] */
{
    struct world w =
        world_running((struct world_spec){.options = {COOLDOWN, "0 s", STABLE, "0 s"}}, 4);

    w.cancels = false;
    world_bounds(&w, 1, 3);
    cr_expect_str_eq(world_emitted(&w),
                     "declare rescale_opened state_changed status_changed cancel");
    cr_expect_eq(pliant_rescale_at(w.s, 0)->trigger, PLIANT_TRIGGER_UPDATE_REQUIREMENT);
    world_free(&w);
}

Test(executing, new_resources_are_told_apart_from_new_wishes) /* [S-STM-10] */
{
    struct world w = patient();

    world_node(&w, "n2", 1);
    cr_expect_eq(pliant_rescale_at(w.s, 0)->trigger, PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE);
    world_bounds(&w, 1, 5);
    cr_expect_eq(pliant_rescale_at(w.s, 0)->trigger, PLIANT_TRIGGER_UPDATE_REQUIREMENT);
    world_free(&w);
}

Test(executing, in_reactive_mode_takes_no_requirements_but_shows_bounds) /* [S-REQ-2] */
{
    struct world w = world_running(
        (struct world_spec){.max_parallelism = 20, .options = {"scheduler-mode", "reactive"}}, 3);
    uint32_t min, max;

    world_bounds(&w, 1, 2);
    cr_expect_str_eq(world_emitted(&w), "refused");
    cr_expect_eq(w.actions[0].flag[0], PLIANT_REASON_REACTIVE_MODE);
    pliant_vertex_bounds(w.s, one, &min, &max);
    cr_expect(min == 1 && max == 20);
    world_free(&w);
}

/* ---- checkpoints as triggers ------------------------------------------------------------ */

Test(executing, a_completed_checkpoint_triggers) /* [S-EXE-8] */
{
    struct world w = patient();

    world_node(&w, "n2", 1);
    world_to(&w, 9999);
    world_checkpoint(&w);
    expect_state(&w, PLIANT_EXECUTING); /* Stabilizing, not all that is desired */
    world_to(&w, 10000);
    world_checkpoint(&w);
    cr_expect_eq(pliant_parallelism(w.s, one), 3);
    world_free(&w);
}

Test(executing, a_completed_checkpoint_triggers_at_once_with_all_it_wants) /* [S-EXE-8] */
{
    struct world w = patient();

    world_node(&w, "n2", 2);
    world_to(&w, 1);
    world_checkpoint(&w);
    cr_expect_eq(pliant_parallelism(w.s, one), 4);
    world_free(&w);
}

Test(executing, a_savepoint_triggers_as_well) /* [S-EXE-8] */
{
    struct world w = patient();

    world_event(
        &w, (struct pliant_event){.kind = PLIANT_EV_SAVEPOINT_REQUESTED, .savepoint.dir = "there"});
    world_node(&w, "n2", 2);
    w.cancels = false;
    world_savepoint(&w, true);
    cr_expect_str_eq(world_emitted(&w), "savepoint_ended state_changed status_changed cancel");
    cr_expect_eq(w.changed.change.detail, (int64_t)w.savepoint, "it let the rescale go on");
    world_free(&w);
}

/* What happens, letter by letter, and what is left of the countdown of 3. */
Test(executing, counts_failed_checkpoints_after_a_change) /* [S-EXE-7..10, S-EXE-20] */
{
    static const struct {
        const char *story; /* n: a node; r: requirements; f: failed; h: harmless; c: completed */
        int64_t left;      /* -1: not armed */
        enum pliant_state state;
    } rows[] = {
        {"", -1, PLIANT_EXECUTING},
        {"ffff", -1, PLIANT_EXECUTING}, /* before any change [S-EXE-10] */
        {"n", 3, PLIANT_EXECUTING},
        {"r", 3, PLIANT_EXECUTING},
        {"nf", 2, PLIANT_EXECUTING},
        {"nfn", 2, PLIANT_EXECUTING}, /* armed by the first change only */
        {"nffr", 1, PLIANT_EXECUTING},
        {"nff", 1, PLIANT_EXECUTING},
        {"nfff", 0, PLIANT_RESTARTING},
        {"nfhhhff", 0, PLIANT_RESTARTING},
        {"nhhhhh", 3, PLIANT_EXECUTING}, /* what does not count is not counted [S-EXE-20] */
        {"nffh", 1, PLIANT_EXECUTING},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_running(
            (struct world_spec){.options = {AT_ONCE, COOLDOWN, "0 s", STABLE, "0 s", DELAY, "1 h",
                                            CHECKPOINTS, MAX_FAILURES, "3"}},
            2);
        char name[] = "n2";

        w.cancels = false;
        for (const char *c = rows[i].story; *c; c++) {
            if (*c == 'n') {
                world_node(&w, name, 1);
                name[1]++;
            } else if (*c == 'r') {
                world_bounds(&w, 1, 5 + w.now_ms);
            } else if (*c == 'c') {
                world_checkpoint(&w);
            } else {
                world_checkpoint_failed(&w, *c == 'f');
            }
            world_to(&w, w.now_ms + 1);
        }
        expect_state(&w, rows[i].state);
        if (rows[i].state == PLIANT_EXECUTING)
            cr_expect_eq(w.s->state.executing.countdown, rows[i].left, "%s: %lld", rows[i].story,
                         (long long)w.s->state.executing.countdown);
        world_free(&w);
    }
}

Test(executing, a_countdown_may_be_spent_for_nothing_in_the_cooldown) /* [S-EXE-9, S-STM-4] */
{
    struct world w = world_running(
        (struct world_spec){.options = {AT_ONCE, STABLE, "0 s", DELAY, "1 h", CHECKPOINTS}}, 2);

    world_node(&w, "n2", 2);
    cr_expect_eq(w.s->state.executing.countdown, 2);
    world_checkpoint_failed(&w, true);
    world_checkpoint_failed(&w, true);
    cr_expect_eq(w.s->state.executing.countdown, -1, "cleared by its own trigger");
    world_to(&w, 40000);
    for (int i = 0; i < 4; i++)
        world_checkpoint_failed(&w, true);
    expect_state(&w, PLIANT_EXECUTING);
    world_node(&w, "n3", 1); /* armed again */
    world_checkpoint_failed(&w, true);
    expect_state(&w, PLIANT_EXECUTING);
    world_checkpoint_failed(&w, true);
    cr_expect_eq(pliant_parallelism(w.s, one), 4);
    world_free(&w);
}

Test(executing, a_completed_checkpoint_clears_the_countdown) /* [S-EXE-8] */
{
    struct world w = patient();

    world_node(&w, "n2", 1);
    world_checkpoint_failed(&w, true);
    cr_expect_eq(w.s->state.executing.countdown, 1);
    world_checkpoint(&w); /* Stabilizing, not all that is desired: nothing happens */
    cr_expect_eq(w.s->state.executing.countdown, -1);
    world_to(&w, 20000);
    for (int i = 0; i < 5; i++)
        world_checkpoint_failed(&w, true);
    expect_state(&w, PLIANT_EXECUTING);
    world_node(&w, "n3", 1);
    cr_expect_eq(w.s->state.executing.countdown, 2, "the next change arms it again");
    world_free(&w);
}

Test(executing, failures_before_all_tasks_run_do_not_count) /* [S-EXE-20] */
{
    struct world w =
        world_new((struct world_spec){.options = {AT_ONCE, COOLDOWN, "0 s", STABLE, "0 s", DELAY,
                                                  "1 h", CHECKPOINTS, MAX_FAILURES, "1"}});

    w.runs = false;
    world_node(&w, "n1", 2);
    world_start(&w);
    world_node(&w, "n2", 2);
    for (int i = 0; i < 10; i++) /* "not all required tasks are running" */
        world_event(&w,
                    (struct pliant_event){
                        .kind = PLIANT_EV_CHECKPOINT_FAILED,
                        .checkpoint = {.own_accord = true, .counts = false, .cause = "not all"}});
    expect_state(&w, PLIANT_EXECUTING);
    cr_expect_eq(w.s->state.executing.countdown, 1);
    world_free(&w);
}

Test(executing, results_come_one_after_another) /* [S-EXE-18] */
{
    struct world w = patient();

    w.cancels = false;
    world_node(&w, "n2", 2);
    world_checkpoint(&w);
    expect_state(&w, PLIANT_RESTARTING);
    world_checkpoint(&w); /* at the same instant, but the state has gone on */
    cr_expect_str_eq(world_emitted(&w), "");
    cr_expect_eq(world_counts(&w).events_ignored, 1);
    world_free(&w);
}

/* ---- the end of tasks, failures --------------------------------------------------------- */

Test(executing, ends_as_its_tasks_end) /* [S-EXE-16] */
{
    static const struct {
        const char *ends; /* of each of the 4: F finished, C canceled */
        enum pliant_job_status status;
        enum pliant_reason reason;
    } rows[] = {
        {"FFFF", PLIANT_JOB_FINISHED, PLIANT_REASON_ALL_FINISHED},
        {"CCCC", PLIANT_JOB_CANCELED, PLIANT_REASON_ALL_CANCELED},
        {"FFFC", PLIANT_JOB_CANCELED, PLIANT_REASON_ALL_CANCELED},
        {"CFFF", PLIANT_JOB_CANCELED, PLIANT_REASON_ALL_CANCELED},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_running((struct world_spec){.options = {FIXED}}, 4);

        for (uint32_t t = 0; t < 4; t++) {
            expect_state(&w, PLIANT_EXECUTING);
            world_task(&w,
                       rows[i].ends[t] == 'F' ? PLIANT_EV_TASK_FINISHED : PLIANT_EV_TASK_CANCELED,
                       1, t);
        }
        cr_expect_str_eq(world_emitted(&w), "state_changed status_changed release archived");
        expect_state(&w, PLIANT_FINISHED);
        cr_expect_eq(pliant_job_status(w.s), rows[i].status, "%s", rows[i].ends);
        cr_expect_eq(w.changed.flag[2], rows[i].reason);
        world_free(&w);
    }
}

Test(executing, a_failure_is_decided_by_the_strategy) /* [S-FAIL-1, S-RST-2] */
{
    static const struct {
        bool global, recoverable, may_restart;
        enum pliant_state state;
        enum pliant_reason reason;
    } rows[] = {
        {false, true, true, PLIANT_RESTARTING, PLIANT_REASON_TASK_FAILED},
        {true, true, true, PLIANT_RESTARTING, PLIANT_REASON_GLOBAL_FAILURE},
        {false, false, true, PLIANT_FAILING, PLIANT_REASON_NOT_RECOVERABLE},
        {true, false, true, PLIANT_FAILING, PLIANT_REASON_NOT_RECOVERABLE},
        {false, true, false, PLIANT_FAILING, PLIANT_REASON_RESTARTS_SUPPRESSED},
        {true, true, false, PLIANT_FAILING, PLIANT_REASON_RESTARTS_SUPPRESSED},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_running(
            (struct world_spec){.options = {"restart-strategy.type",
                                            rows[i].may_restart ? "fixed-delay" : "none",
                                            "restart-strategy.fixed-delay.delay", "8 s"}},
            4);

        w.cancels = false;
        if (rows[i].global)
            world_fail(&w, rows[i].recoverable);
        else
            world_fail_task(&w, 1, 1, rows[i].recoverable);
        expect_state(&w, rows[i].state);
        cr_expect_eq(w.changed.flag[2], rows[i].reason, "row %zu: %s", i,
                     pliant_reason_name(w.changed.flag[2]));
        cr_expect_eq(w.changed.change.detail, rows[i].state == PLIANT_RESTARTING ? 8000 : 0);
        cr_expect_eq(world_count(&w, PLIANT_ACT_CANCEL), rows[i].global ? 4 : 3, "all tasks");
        world_free(&w);
    }
}

Test(executing, a_lost_node_is_one_failure) /* [S-FAIL-5] */
{
    struct world w = world_new((struct world_spec){
        .options = {"restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.attempts",
                    "1", "restart-strategy.fixed-delay.delay", "0 s", AT_ONCE}});

    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_start(&w);
    world_lose(&w, "n1");
    expect_state(&w, PLIANT_EXECUTING);
    cr_expect_eq(world_counts(&w).restarts, 1);
    cr_expect_eq(pliant_parallelism(w.s, one), 2);
    cr_expect_eq(pliant_failure_at(w.s, 0)->n, 2, "both of its tasks are recorded");
    cr_expect_eq(w.s->failover.strategy.count, 1);
    world_free(&w);
}

Test(executing, news_that_is_not_current_changes_nothing) /* [S-GEN-4, S-GEN-6] */
{
    static const struct pliant_task strange[] = {{{1}, 0, 0}, {{1}, 0, 2}, {{1}, 4, 1},
                                                 {{2}, 0, 1}, {{0}, 0, 1}, {{1}, UINT32_MAX, 1}};
    static const enum pliant_event_kind kinds[] = {
        PLIANT_EV_TASK_INITIALIZING, PLIANT_EV_TASK_RUNNING,  PLIANT_EV_TASK_END_OF_DATA,
        PLIANT_EV_TASK_FINISHED,     PLIANT_EV_TASK_CANCELED, PLIANT_EV_TASK_FAILED};
    struct world w = world_running((struct world_spec){.options = {FIXED}}, 4);
    uint64_t ignored = 0;

    for (size_t k = 0; k < 6; k++)
        for (size_t i = 0; i < 6; i++) {
            struct pliant_event ev = {.kind = kinds[k]};

            if (kinds[k] == PLIANT_EV_TASK_FAILED)
                ev.failure.task = strange[i];
            else
                ev.task = strange[i];
            world_event(&w, ev);
            cr_expect_str_eq(world_emitted(&w), "");
            cr_expect_eq(world_counts(&w).events_ignored, ++ignored);
        }
    cr_expect_eq(world_counts(&w).tasks_running, 4);
    cr_expect(failures_empty(&w.s->failures), "nothing is recorded");
    world_free(&w);
}

Test(executing, a_task_goes_forward_only)
{
    static const struct {
        enum pliant_event_kind first, then;
        bool taken;
    } rows[] = {
        {PLIANT_EV_TICK, PLIANT_EV_TASK_INITIALIZING, true},
        {PLIANT_EV_TICK, PLIANT_EV_TASK_RUNNING, true},
        {PLIANT_EV_TICK, PLIANT_EV_TASK_END_OF_DATA, false},
        {PLIANT_EV_TASK_INITIALIZING, PLIANT_EV_TASK_INITIALIZING, false},
        {PLIANT_EV_TASK_INITIALIZING, PLIANT_EV_TASK_RUNNING, true},
        {PLIANT_EV_TASK_RUNNING, PLIANT_EV_TASK_INITIALIZING, false},
        {PLIANT_EV_TASK_RUNNING, PLIANT_EV_TASK_RUNNING, false},
        {PLIANT_EV_TASK_RUNNING, PLIANT_EV_TASK_END_OF_DATA, true},
        {PLIANT_EV_TASK_RUNNING, PLIANT_EV_TASK_FINISHED, true},
        {PLIANT_EV_TASK_FINISHED, PLIANT_EV_TASK_RUNNING, false},
        {PLIANT_EV_TASK_FINISHED, PLIANT_EV_TASK_FINISHED, false},
        {PLIANT_EV_TASK_FINISHED, PLIANT_EV_TASK_CANCELED, false},
        {PLIANT_EV_TASK_CANCELED, PLIANT_EV_TASK_FINISHED, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_new((struct world_spec){0});
        uint64_t ignored;

        w.runs = false;
        world_node(&w, "n1", 4);
        world_start(&w);
        world_task(&w, rows[i].first, 1, 0);
        ignored = world_counts(&w).events_ignored;
        world_task(&w, rows[i].then, 1, 0);
        cr_expect_eq(world_counts(&w).events_ignored - ignored, !rows[i].taken, "row %zu", i);
        world_fail_task(&w, 1, 1, true);
        world_free(&w);
    }
}

Test(executing, end_of_data_twice_is_news_once)
{
    struct world w = world_running((struct world_spec){0}, 4);

    world_task(&w, PLIANT_EV_TASK_END_OF_DATA, 1, 0);
    world_task(&w, PLIANT_EV_TASK_END_OF_DATA, 1, 0);
    cr_expect_eq(world_counts(&w).events_ignored, 1);
    world_free(&w);
}

/* ---- users' wishes ---------------------------------------------------------------------- */

Test(executing, cancels_all_tasks)
{
    struct world w = world_running((struct world_spec){0}, 4);

    w.cancels = false;
    world_plain(&w, PLIANT_EV_CANCEL);
    expect_state(&w, PLIANT_CANCELING);
    cr_expect_str_eq(world_emitted(&w), "state_changed status_changed cancel");
    cr_expect_eq(world_count(&w, PLIANT_ACT_CANCEL), 4);
    world_free(&w);
}

Test(executing, stops_with_a_savepoint) /* [S-EXE-17] */
{
    struct world w = world_running(
        (struct world_spec){.options = {"execution.checkpointing.interval", "10 s"}}, 4);
    const struct pliant_action *act;

    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_STOP,
                                          .savepoint = {.dir = "there", .drain = true}});
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    cr_expect_str_eq(world_emitted(&w), "checkpoint state_changed");
    act = world_action(&w, PLIANT_ACT_CHECKPOINT, 0);
    cr_expect_eq(act->flag[0], PLIANT_CHECKPOINT_STOP);
    cr_expect(act->flag[1], "a savepoint");
    cr_expect(act->flag[2], "the sources emit their end first");
    cr_expect_str_eq(act->checkpoint.dir, "there");
    world_to(&w, 500000);
    cr_expect_eq(w.checkpoint, 0, "periodic ones are stopped");
    world_free(&w);
}

Test(executing, says_why_it_does_not_stop) /* [S-EXE-17, S-GEN-6] */
{
    static const struct {
        const char *options[5];
        const char *dir;
        bool runs, pending;
        enum pliant_reason reason;
    } rows[] = {
        {{NULL}, "there", true, false, PLIANT_REASON_CHECKPOINTING_OFF},
        {{CHECKPOINTS}, NULL, true, false, PLIANT_REASON_NO_SAVEPOINT_DIR},
        {{CHECKPOINTS}, "there", false, false, PLIANT_REASON_TASKS_NOT_RUNNING},
        {{CHECKPOINTS}, "there", true, true, PLIANT_REASON_CHECKPOINT_PENDING},
    };
    static const enum pliant_event_kind kinds[] = {PLIANT_EV_STOP, PLIANT_EV_SAVEPOINT_REQUESTED};

    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct world_spec spec = {0};
        struct world w;

        for (size_t k = 0; k < 4; k++)
            spec.options[k] = rows[i / 2].options[k];
        w = world_new(spec);
        w.runs = rows[i / 2].runs;
        world_node(&w, "n1", 4);
        world_start(&w);
        if (rows[i / 2].pending)
            world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SAVEPOINT_REQUESTED,
                                                  .savepoint.dir = "there"});
        world_event(&w,
                    (struct pliant_event){.kind = kinds[i % 2], .savepoint.dir = rows[i / 2].dir});
        cr_expect_str_eq(world_emitted(&w), "refused", "row %zu", i);
        cr_expect_eq(w.actions[0].flag[0], rows[i / 2].reason, "row %zu: %s", i,
                     pliant_reason_name(w.actions[0].flag[0]));
        expect_state(&w, PLIANT_EXECUTING);
        world_free(&w);
    }
}

Test(executing, a_configured_directory_will_do) /* [S-EXE-17] */
{
    struct world w = world_running(
        (struct world_spec){.options = {CHECKPOINTS, "execution.checkpointing.savepoint-dir", "d"}},
        4);

    world_plain(&w, PLIANT_EV_STOP);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    cr_expect_null(world_action(&w, PLIANT_ACT_CHECKPOINT, 0)->checkpoint.dir, "the host knows it");
    world_free(&w);
}

Test(executing, says_what_comes_next)
{
    struct world w = patient();
    struct pliant_next next;

    world_node(&w, "n2", 1);
    pliant_next(w.s, &next);
    cr_expect_eq(next.decision, PLIANT_REASON_RESCALE);
    cr_expect_eq(next.at_ms, 10000);
    cr_expect_str_eq(next.phase, "Stabilizing");
    world_drain(&w, "n1", 60000);
    pliant_next(w.s, &next);
    cr_expect_eq(next.decision, PLIANT_REASON_DRAIN);
    cr_expect_eq(next.at_ms, 55000);
    world_free(&w);
}

Test(executing, says_when_the_policy_is_asked_again)
{
    struct world w = world_running(
        (struct world_spec){.options = {"pliant.rescale.policy", "ray-elastic"}, .parallelism = 4},
        2);
    int64_t started = w.now_ms;
    struct pliant_next next;

    world_node(&w, "n2", 1);
    pliant_next(w.s, &next);
    cr_expect_eq(next.decision, PLIANT_REASON_RESCALE);
    cr_expect_eq(next.at_ms, started + 60000, "%lld", (long long)next.at_ms);
    cr_expect_geq(next.at_ms, pliant_next_deadline(w.s));
    world_to(&w, next.at_ms - 1);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 2u);
    world_to(&w, next.at_ms);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 3u);
    world_free(&w);
}

/* Losses are weighed against the work in which they came, also that of tasks that were to stop. */
Test(executing, counts_on_the_work_of_tasks_that_go_on_when_a_savepoint_failed)
{
    struct world w = world_running(
        (struct world_spec){.options = {"execution.checkpointing.interval", "10 s"}}, 4);
    double before;

    world_to(&w, 5000);
    world_stop(&w);
    world_to(&w, 20000);
    world_savepoint(&w, false);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    before = w.s->policy.worth.losses.risk;
    cr_assert_gt(before, 0);
    world_to(&w, 80000);
    world_node(&w, "n2", 1); /* a change: what was is added up */
    cr_expect_gt(w.s->policy.worth.losses.risk, before);
    world_free(&w);
}

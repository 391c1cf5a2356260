/* waiting_test.c - WaitingForResources: how long the job is held, and what lets it go
 *
 * Unless a test says otherwise: parallelism 4, minimum 1, wait timeout 5 min, stabilization 10 s.
 */
#include <criterion/criterion.h>

#include "states/sched.h"
#include "world.h"

#define ADAPTIVE "jobmanager.adaptive-scheduler."
#define WAIT ADAPTIVE "submission.resource-wait-timeout"
#define STABLE ADAPTIVE "submission.resource-stabilization-timeout"
#define RESCALE_STABLE ADAPTIVE "rescale.resource-stabilization-timeout"
#define COOLDOWN ADAPTIVE "executing.cooldown-after-rescaling"
#define EXECUTING_STABLE ADAPTIVE "executing.resource-stabilization-timeout"

static void expect_waiting(const struct world *w)
{
    cr_expect_eq(pliant_state(w->s), PLIANT_WAITING_FOR_RESOURCES, "at %lld it is in %s",
                 (long long)w->now_ms, pliant_state_name(pliant_state(w->s)));
}

/* It went on to CreatingExecutionGraph at this instant and not before, for this reason. */
static void expect_goes(struct world *w, int64_t at_ms, enum pliant_reason reason)
{
    w->reserves = false;
    if (at_ms > w->now_ms) {
        world_to(w, at_ms - 1);
        expect_waiting(w);
        world_to(w, at_ms);
    }
    cr_expect_eq(pliant_state(w->s), PLIANT_CREATING_EXECUTION_GRAPH, "at %lld it is in %s",
                 (long long)at_ms, pliant_state_name(pliant_state(w->s)));
    cr_expect_eq(w->changed.flag[2], reason, "%s", pliant_reason_name(w->changed.flag[2]));
}

Test(waiting, declares_on_entry_what_has_changed_only) /* [S-WFR-1] */
{
    struct world w =
        world_new((struct world_spec){.options = {"restart-strategy.type", "fixed-delay",
                                                  "restart-strategy.fixed-delay.attempts", "5"}});

    world_start(&w);
    cr_assert_eq(world_count(&w, PLIANT_ACT_DECLARE), 1);
    cr_expect_eq(world_action(&w, PLIANT_ACT_DECLARE, 0)->declare.desired, 4);
    cr_expect_lt(world_action(&w, PLIANT_ACT_DECLARE, 0),
                 world_action(&w, PLIANT_ACT_STATE_CHANGED, 0), "before the transition");
    world_node(&w, "n1", 4);
    world_fail_task(&w, 1, 0, true);
    cr_expect_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_to(&w, 1000);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Restarting > WaitingForResources > CreatingExecutionGraph > "
                             "Executing"));
    cr_expect_eq(world_count(&w, PLIANT_ACT_DECLARE), 0, "the same is not declared again");
    world_bounds(&w, 1, 5);
    cr_expect_eq(world_count(&w, PLIANT_ACT_DECLARE), 1);
    world_bounds(&w, 3, 5); /* who shares slots out has to know what is needed */
    cr_assert_eq(world_count(&w, PLIANT_ACT_DECLARE), 1);
    cr_expect_eq(world_action(&w, PLIANT_ACT_DECLARE, 0)->declare.min, 3);
    world_free(&w);
}

Test(waiting, goes_at_once_with_all_it_wants) /* [S-WFR-2, S-STM-12] */
{
    struct world w = world_new((struct world_spec){0});

    w.reserves = false;
    world_node(&w, "n1", 3);
    world_node(&w, "n2", 1);
    world_start(&w);
    expect_goes(&w, 0, PLIANT_REASON_DESIRED_RESOURCES);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, 4);
    world_free(&w);
}

Test(waiting, any_slot_fits_any_group) /* [S-PAR-9] */
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 2, .slot_sharing_group = "large"},
        {.id = "b", .parallelism = 2, .slot_sharing_group = "small"},
    };
    static const struct pliant_label gpu = {"profile", "gpu"};
    struct world w = world_new((struct world_spec){.vertices = vertices, .n_vertices = 2});

    w.reserves = false;
    world_start(&w);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                          .node_up = {"n1", 1, 3, "zone-a", "rack-1", &gpu, 1}});
    expect_waiting(&w);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                          .node_up = {.name = "n2", .incarnation = 1, .slots = 1}});
    expect_goes(&w, 0, PLIANT_REASON_DESIRED_RESOURCES);
    world_free(&w);
}

Test(waiting, goes_with_enough_when_stable) /* [S-WFR-3] */
{
    struct world w = world_new((struct world_spec){.min_parallelism = 2});

    world_start(&w);
    world_node(&w, "n1", 1);
    world_to(&w, 1000);
    world_node(&w, "n2", 1); /* sufficient from here on */
    world_to(&w, 5000);
    world_node(&w, "n3", 1);
    expect_goes(&w, 11000, PLIANT_REASON_SUFFICIENT_RESOURCES);
    cr_expect_eq(w.changed.change.since_at_ms, 1000);
    cr_expect_eq(w.changed.change.slots, 3);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, 3);
    world_free(&w);
}

Test(waiting, counts_stabilization_from_the_entry_if_enough_is_there) /* [S-WFR-3] */
{
    struct world w = world_new((struct world_spec){0});

    world_node(&w, "n1", 2);
    world_start(&w);
    expect_goes(&w, 10000, PLIANT_REASON_SUFFICIENT_RESOURCES);
    world_free(&w);
}

Test(waiting, goes_when_the_rest_comes_during_stabilization) /* [S-WFR-4] */
{
    struct world w = world_new((struct world_spec){0});

    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 4000);
    expect_waiting(&w);
    w.reserves = false;
    world_node(&w, "n2", 2);
    expect_goes(&w, 4000, PLIANT_REASON_DESIRED_RESOURCES);
    world_free(&w);
}

Test(waiting, begins_anew_when_slots_were_lost) /* [S-WFR-5] */
{
    struct world w = world_new((struct world_spec){.min_parallelism = 2});

    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 5000);
    world_lose(&w, "n1");
    world_to(&w, 11000);
    expect_waiting(&w);
    world_node(&w, "n2", 1);
    world_to(&w, 12000);
    world_node(&w, "n3", 1);
    expect_goes(&w, 22000, PLIANT_REASON_SUFFICIENT_RESOURCES);
    world_free(&w);
}

Test(waiting, asks_for_enough_only_at_the_end_of_stabilization) /* [S-WFR-5, S-STM-6] */
{
    struct world w = world_new((struct world_spec){.min_parallelism = 2});

    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 5000);
    world_lose(&w, "n1");
    world_to(&w, 9000);
    world_node(&w, "n2", 2);
    expect_goes(&w, 10000, PLIANT_REASON_SUFFICIENT_RESOURCES);
    world_free(&w);
}

Test(waiting, does_nothing_without_enough) /* [S-WFR-6, S-WFR-7] */
{
    struct world w = world_new((struct world_spec){.min_parallelism = 3});

    world_node(&w, "n1", 1);
    world_start(&w);
    world_to(&w, 200000);
    world_node(&w, "n2", 1);
    world_to(&w, 299999);
    expect_waiting(&w);
    cr_expect_eq(pliant_next_deadline(w.s), 300000, "no change restarts the wait");
    world_free(&w);
}

Test(waiting, waits_in_full_on_each_visit) /* [S-WFR-7] */
{
    struct world w = world_new((struct world_spec){.options = {STABLE, "1 h"}});

    world_node(&w, "n1", 2);
    world_start(&w);
    expect_goes(&w, 300000, PLIANT_REASON_RESOURCE_TIMEOUT);
    world_to(&w, 310000);
    world_plan(&w, PLIANT_EV_SLOTS_REFUSED, true);
    expect_goes(&w, 610000, PLIANT_REASON_RESOURCE_TIMEOUT);
    cr_expect_eq(w.changed.change.since_at_ms, 310000);
    world_free(&w);
}

Test(waiting, goes_with_what_it_has_when_time_is_up) /* [S-WFR-8] */
{
    struct world w = world_new((struct world_spec){.options = {STABLE, "1 h"}});

    world_node(&w, "n1", 3);
    world_start(&w);
    expect_goes(&w, 300000, PLIANT_REASON_RESOURCE_TIMEOUT);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, 3);
    world_free(&w);
}

Test(waiting, ends_the_job_when_time_is_up_and_too_little_is_there) /* [S-WFR-8, S-CEG-2] */
{
    struct world w = world_new((struct world_spec){.min_parallelism = 3});

    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 300000);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Finished"));
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(world_count(&w, PLIANT_ACT_DEPLOY), 0);
    world_free(&w);
}

Test(waiting, for_ever_if_the_timeout_is_negative) /* [S-WFR-9] */
{
    struct world w =
        world_new((struct world_spec){.min_parallelism = 3, .options = {WAIT, "-1 ms"}});

    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 100 * 3600000LL);
    expect_waiting(&w);
    world_free(&w);
}

Test(waiting, not_at_all_if_the_timeout_is_zero) /* [S-WFR-8, S-WFR-11] */
{
    struct world w = world_new((struct world_spec){.options = {WAIT, "0 s"}});

    world_start(&w);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Finished"));
    world_free(&w);
    w = world_new((struct world_spec){.options = {WAIT, "0 s"}});
    world_node(&w, "n1", 4);
    w.reserves = false;
    world_start(&w);
    expect_goes(&w, 0, PLIANT_REASON_RESOURCE_TIMEOUT); /* the timer precedes the first check */
    world_free(&w);
}

Test(waiting, a_lowered_minimum_releases_the_job) /* [S-WFR-10] */
{
    struct world w = world_new((struct world_spec){.min_parallelism = 3});

    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 7000);
    world_bounds(&w, 2, 4);
    expect_goes(&w, 17000, PLIANT_REASON_SUFFICIENT_RESOURCES);
    world_free(&w);
}

Test(waiting, a_lowered_maximum_releases_the_job_at_once) /* [S-WFR-10, S-REQ-4] */
{
    struct world w = world_new((struct world_spec){.min_parallelism = 3});

    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 7000);
    w.reserves = false;
    world_bounds(&w, 1, 2);
    cr_expect_str_eq(world_emitted(&w),
                     "declare rescale_closed rescale_opened state_changed reserve",
                     "declared before the state learns of it");
    expect_goes(&w, 7000, PLIANT_REASON_DESIRED_RESOURCES);
    world_free(&w);
}

Test(waiting, the_first_of_two_due_timers_wins) /* [S-WFR-11, S-GEN-4] */
{
    static const struct {
        const char *wait, *stable;
        enum pliant_reason reason;
    } rows[] = {
        {"10 s", "10 s", PLIANT_REASON_RESOURCE_TIMEOUT}, /* made before */
        {"10001 ms", "10 s", PLIANT_REASON_SUFFICIENT_RESOURCES},
        {"10 s", "10001 ms", PLIANT_REASON_RESOURCE_TIMEOUT},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w =
            world_new((struct world_spec){.options = {WAIT, rows[i].wait, STABLE, rows[i].stable}});

        world_node(&w, "n1", 2);
        world_start(&w);
        expect_goes(&w, 10000, rows[i].reason);
        cr_expect_eq(world_count(&w, PLIANT_ACT_RESERVE), 1, "row %zu", i);
        world_to(&w, 400000);
        cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph"),
                  "row %zu: the other one is dropped", i);
        world_free(&w);
    }
}

Test(waiting, late_by_hours_still_goes_once) /* [S-WFR-11] */
{
    struct world w = world_new((struct world_spec){0});

    w.reserves = false;
    world_node(&w, "n1", 2);
    world_start(&w);
    w.now_ms = 50 * 3600000LL;
    world_plain(&w, PLIANT_EV_TICK);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph"));
    /* the end of stabilization makes a timer for the time of the step, which is later than 300 s */
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_RESOURCE_TIMEOUT);
    world_free(&w);
}

Test(waiting, leaves_no_timer_behind) /* [S-WFR-12] */
{
    for (int way = 0; way < 3; way++) {
        struct world w = world_new((struct world_spec){0});

        world_node(&w, "n1", 2);
        world_start(&w);
        world_to(&w, 100);
        if (way == 0)
            world_plain(&w, PLIANT_EV_CANCEL);
        else if (way == 1)
            world_plain(&w, PLIANT_EV_SUSPEND);
        else
            world_fail(&w, true);
        cr_expect_eq(pliant_state(w.s), PLIANT_FINISHED);
        cr_expect_eq(pliant_next_deadline(w.s), PLIANT_NEVER, "way %d", way);
        world_to(&w, 1000000);
        cr_expect(world_went(&w, "Created > WaitingForResources > Finished"));
        world_free(&w);
    }
}

/* A rescale from 2 to 4 of 8 wanted; then slots are lost while the tasks go down: it waits, and
 * remembers 4. Restarted at t. */
static struct world waiting_for_target(int64_t *t)
{
    struct world w = world_running((struct world_spec){.parallelism = 8,
                                                       .options = {RESCALE_STABLE, "20 s", COOLDOWN,
                                                                   "0 s", EXECUTING_STABLE, "0 s"}},
                                   2);

    w.cancels = w.reserves = false;
    world_node(&w, "n2", 2);
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_to(&w, w.now_ms + 1000);
    world_lose(&w, "n2");
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    expect_waiting(&w);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_TARGET_UNREACHABLE);
    *t = w.now_ms;
    return w;
}

Test(waiting, after_a_rescale_for_its_target) /* [S-WFR-13, S-RST-5] */
{
    int64_t t;
    struct world w = waiting_for_target(&t);

    world_to(&w, t + 12000); /* the submission's stabilization is over */
    expect_waiting(&w);
    world_node(&w, "n3", 1);
    expect_waiting(&w);
    world_node(&w, "n4", 1); /* 4 of the 8 that are wanted, but all that the rescale aimed at */
    expect_goes(&w, t + 12000, PLIANT_REASON_DESIRED_RESOURCES);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, 4);
    world_free(&w);
}

Test(waiting, after_a_rescale_not_longer_than_its_stabilization) /* [S-WFR-14] */
{
    int64_t t;
    struct world w = waiting_for_target(&t);

    world_to(&w, t + 5000);
    world_node(&w, "n3", 1);
    expect_goes(&w, t + 20000, PLIANT_REASON_SUFFICIENT_RESOURCES);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, 3);
    world_free(&w);
}

Test(waiting, one_of_two_targeted_slots_waits_for_the_other) /* [S-WFR-14] */
{
    for (int comes = 0; comes < 2; comes++) {
        struct world w =
            world_running((struct world_spec){.parallelism = 2,
                                              .options = {RESCALE_STABLE, "20 s", COOLDOWN, "0 s",
                                                          EXECUTING_STABLE, "0 s"}},
                          1);
        int64_t t = w.now_ms;

        w.cancels = w.reserves = false;
        world_node(&w, "n2", 1);
        world_lose(&w, "n2");
        world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
        expect_waiting(&w);
        world_to(&w, t + 19000);
        if (comes)
            world_node(&w, "n2", 1);
        expect_goes(&w, comes ? t + 19000 : t + 20000,
                    comes ? PLIANT_REASON_DESIRED_RESOURCES : PLIANT_REASON_SUFFICIENT_RESOURCES);
        cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, comes ? 2 : 1);
        world_free(&w);
    }
}

Test(waiting, the_target_is_capped_by_the_present_bounds) /* [S-WFR-13] */
{
    int64_t t;
    struct world w = waiting_for_target(&t);

    world_bounds(&w, 1, 3);
    expect_waiting(&w);
    world_bounds(&w, 1, 2);
    expect_goes(&w, t, PLIANT_REASON_DESIRED_RESOURCES);
    world_free(&w);
}

Test(waiting, the_target_is_of_every_vertex) /* [S-WFR-13] */
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 1, .slot_sharing_group = "x"},
        {.id = "b", .parallelism = 4, .slot_sharing_group = "y"},
    };
    struct world w = world_running((struct world_spec){.vertices = vertices,
                                                       .n_vertices = 2,
                                                       .options = {RESCALE_STABLE, "20 s", COOLDOWN,
                                                                   "0 s", EXECUTING_STABLE, "0 s"}},
                                   2);
    int64_t t = w.now_ms;

    w.cancels = w.reserves = false;
    world_node(&w, "n2", 2); /* to a 1, b 3 */
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_lose(&w, "n2");
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    expect_waiting(&w);
    world_node(&w, "n3", 1); /* a 1, b 2 */
    expect_waiting(&w);
    world_node(&w, "n4", 1);
    expect_goes(&w, t, PLIANT_REASON_DESIRED_RESOURCES);
    world_free(&w);
}

Test(waiting, the_rescale_s_stabilization_is_the_submission_s_by_default) /* [S-WFR-13] */
{
    struct world w = world_running(
        (struct world_spec){.parallelism = 8,
                            .options = {STABLE, "3 s", COOLDOWN, "0 s", EXECUTING_STABLE, "0 s"}},
        2);
    int64_t t = w.now_ms;

    w.cancels = w.reserves = false;
    world_node(&w, "n2", 2);
    world_lose(&w, "n2");
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    expect_goes(&w, t + 3000, PLIANT_REASON_SUFFICIENT_RESOURCES);
    world_free(&w);
}

Test(waiting, after_a_failure_knows_no_target) /* [S-WFR-13, S-RST-3] */
{
    struct world w =
        world_running((struct world_spec){.parallelism = 8,
                                          .options = {RESCALE_STABLE, "20 s",
                                                      "restart-strategy.type", "fixed-delay",
                                                      "restart-strategy.fixed-delay.delay", "0 s"}},
                      4);
    int64_t t = w.now_ms;

    w.reserves = false;
    world_fail_task(&w, 1, 0, true);
    expect_waiting(&w);
    expect_goes(&w, t + 10000, PLIANT_REASON_SUFFICIENT_RESOURCES);
    world_free(&w);
}

Test(waiting, counts_all_slots_and_plans_with_the_free_ones) /* [S-WFR-15] */
{
    struct world w = world_running((struct world_spec){.parallelism = 2}, 1);

    world_node(&w, "n2", 1);
    /* the old run's slot is one of all slots, not one of the free */
    cr_expect(achievable(w.s, w.s->pool.n_offered));
    cr_expect_eq(w.s->scratch[0], 2);
    cr_expect(achievable(w.s, pool_n_open(&w.s->pool)));
    cr_expect_eq(w.s->scratch[0], 1);
    cr_expect(plan_compute(w.s));
    cr_expect_eq(w.s->plan.unit_slots.n, 1);
    cr_expect_eq(pliant_slot_node(w.s, (pliant_slot_id){w.s->plan.unit_slots.v[0]}).v, 2);
    world_free(&w);
}

Test(waiting, its_manager_has_no_cooldown_and_no_delay) /* [S-WFR-2, S-WFR-3] */
{
    struct world w = world_new((struct world_spec){.options = {STABLE, "3 s"}});
    const struct manager_timing *timing;

    world_start(&w);
    timing = &w.s->state.waiting.manager.timing;
    cr_expect_eq(timing->cooldown_ms, 0);
    cr_expect_eq(timing->stabilization_ms, 3000);
    cr_expect_eq(timing->max_trigger_delay_ms, 0);
    world_free(&w);
}

Test(waiting, in_reactive_mode_starts_with_whatever_is_enough) /* [S-OPT-4] */
{
    struct world w = world_new((struct world_spec){.options = {"scheduler-mode", "reactive"}});

    w.reserves = false;
    world_start(&w);
    world_to(&w, 3600000);
    expect_waiting(&w);
    world_node(&w, "n1", 1);
    expect_goes(&w, 3600000, PLIANT_REASON_SUFFICIENT_RESOURCES);
    world_free(&w);
}

Test(waiting, says_what_comes_next)
{
    struct world w = world_new((struct world_spec){0});
    struct pliant_next next;

    world_start(&w);
    pliant_next(w.s, &next);
    cr_expect_eq(next.decision, PLIANT_REASON_RESOURCE_TIMEOUT);
    cr_expect_eq(next.at_ms, 300000);
    cr_expect_str_eq(next.phase, "Idling");
    world_node(&w, "n1", 1);
    pliant_next(w.s, &next);
    cr_expect_eq(next.decision, PLIANT_REASON_SUFFICIENT_RESOURCES);
    cr_expect_eq(next.at_ms, 10000);
    cr_expect_str_eq(next.phase, "Stabilizing");
    world_free(&w);
}

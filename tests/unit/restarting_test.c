/* restarting_test.c - Restarting: down, a pause, and up again */
#include <criterion/criterion.h>

#include "states/sched.h"
#include "world.h"

#define ADAPTIVE "jobmanager.adaptive-scheduler."
#define COOLDOWN ADAPTIVE "executing.cooldown-after-rescaling"
#define STABLE ADAPTIVE "executing.resource-stabilization-timeout"
#define AT_ONCE                                                                                    \
    ADAPTIVE "submission.resource-stabilization-timeout", "0 s", COOLDOWN, "0 s", STABLE, "0 s"
#define FIXED                                                                                      \
    "restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.attempts", "9",          \
        "restart-strategy.fixed-delay.delay", "8 s"

static const pliant_vertex_id one = {1};

/* One of 4 tasks has failed at 0; the other three have not gone down yet. */
static struct world failed(void)
{
    struct world w = world_running((struct world_spec){.options = {FIXED}}, 4);

    w.cancels = w.reserves = false;
    world_fail_task(&w, 1, 0, true);
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    return w;
}

/* A rescale from 2 to 4 has begun at 0; no task has gone down yet. */
static struct world rescaling(void)
{
    struct world w = world_running((struct world_spec){.parallelism = 6, .options = {AT_ONCE}}, 2);

    w.cancels = w.reserves = false;
    world_node(&w, "n2", 2);
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    return w;
}

static void expect_state(const struct world *w, enum pliant_state state)
{
    cr_expect_eq(pliant_state(w->s), state, "at %lld it is in %s", (long long)w->now_ms,
                 pliant_state_name(pliant_state(w->s)));
}

static void all_down(struct world *w)
{
    world_all_tasks(w, PLIANT_EV_TASK_CANCELED);
}

Test(restarting, cancels_all_tasks_on_entry) /* [S-FAIL-4] */
{
    struct world w = failed();

    cr_expect_str_eq(world_emitted(&w), "rescale_opened state_changed status_changed cancel");
    cr_expect_eq(world_count(&w, PLIANT_ACT_CANCEL), 3);
    for (uint32_t i = 1; i < 4; i++) {
        struct pliant_task_info info;

        cr_expect_eq(world_action(&w, PLIANT_ACT_CANCEL, i - 1)->task.subtask, i);
        cr_assert(pliant_task_info(w.s, one, i, &info));
        cr_expect_eq(info.state, PLIANT_TASK_CANCELING);
    }
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_RESTARTING);
    world_free(&w);
}

Test(restarting, gives_every_task_its_next_attempt)
{
    struct world w = failed();
    uint64_t ignored;

    w.cancels = w.reserves = true;
    all_down(&w);
    world_to(&w, 8000);
    expect_state(&w, PLIANT_EXECUTING);
    for (uint32_t i = 0; i < 4; i++) {
        struct pliant_task_info info;

        cr_assert(pliant_task_info(w.s, one, i, &info));
        cr_expect_eq(info.attempt, 2);
    }
    ignored = world_counts(&w).events_ignored;
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                          .failure = {.task = {one, 1, 1}, .recoverable = true}});
    cr_expect_eq(world_counts(&w).events_ignored, ignored + 1, "news of the attempt before");
    expect_state(&w, PLIANT_EXECUTING);
    world_free(&w);
}

Test(restarting, counts_its_back_off_from_the_last_task_down) /* [S-RST-1, S-RST-2, S-RST-3] */
{
    struct world w = failed();

    world_to(&w, 20000); /* longer than the back-off */
    expect_state(&w, PLIANT_RESTARTING);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 1);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 2);
    cr_expect_neq(pliant_next_deadline(w.s), 28000);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 3);
    cr_expect_eq(pliant_next_deadline(w.s), 28000);
    world_to(&w, 27999);
    expect_state(&w, PLIANT_RESTARTING);
    world_to(&w, 28000);
    cr_expect_eq(w.states[w.n_states - 2], PLIANT_WAITING_FOR_RESOURCES, "after a failure always");
    world_free(&w);
}

Test(restarting, after_a_rescale_does_not_back_off) /* [S-RST-2, S-RST-4] */
{
    struct world w = rescaling();

    cr_expect_eq(w.changed.change.detail, 0);
    world_to(&w, 5000);
    all_down(&w);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Restarting > CreatingExecutionGraph"));
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, 4);
    world_free(&w);
}

Test(restarting, after_a_rescale_waits_if_the_target_is_out_of_reach) /* [S-RST-4, S-RST-5] */
{
    static const struct {
        uint32_t more; /* slots that come in between */
        bool lost;     /* ... after those that the rescale was for have gone */
        int64_t max;
        enum pliant_state state;
    } rows[] = {
        {0, false, 6, PLIANT_CREATING_EXECUTION_GRAPH},
        {0, true, 6, PLIANT_WAITING_FOR_RESOURCES},
        {2, true, 6, PLIANT_CREATING_EXECUTION_GRAPH}, /* others will do */
        {1, true, 6, PLIANT_WAITING_FOR_RESOURCES},
        {1, false, 6, PLIANT_WAITING_FOR_RESOURCES}, /* more than aimed at is not it either */
        {1, false, 4, PLIANT_CREATING_EXECUTION_GRAPH},
        {0, false, 3, PLIANT_WAITING_FOR_RESOURCES},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = rescaling();

        if (rows[i].lost)
            world_lose(&w, "n2");
        if (rows[i].more > 0)
            world_node(&w, "n3", rows[i].more);
        if (rows[i].max != 6)
            world_bounds(&w, 1, rows[i].max);
        expect_state(&w, PLIANT_RESTARTING);
        all_down(&w);
        cr_expect_eq(w.states[5], rows[i].state, "row %zu: %s", i, pliant_state_name(w.states[5]));
        world_free(&w);
    }
}

Test(restarting, a_slot_of_the_old_run_is_not_free_while_its_task_lives) /* [S-RST-5] */
{
    struct world w = rescaling();

    cr_expect_not(achievable_is_target(w.s), "all slots are 4, the free ones 2");
    cr_expect(achievable(w.s, w.s->pool.n_offered));
    cr_expect_eq(w.s->scratch[0], w.s->target[0]);
    world_free(&w);
}

Test(restarting, a_node_lost_on_the_way_down_is_recorded_only) /* [S-RST-6, S-FAIL-5] */
{
    struct world w = failed();

    world_lose(&w, "n1");
    expect_state(&w, PLIANT_RESTARTING);
    cr_expect_eq(pliant_next_deadline(w.s), 8000, "its tasks are down");
    cr_expect_eq(w.s->failover.strategy.count, 1);
    cr_expect_eq(pliant_failure_at(w.s, 0)->n, 4);
    world_free(&w);
}

Test(restarting, records_failures_only) /* [S-RST-6, S-FAIL-3] */
{
    struct world w = failed();

    world_fail_task(&w, 1, 1, false); /* not even one that cannot be recovered from */
    cr_expect_str_eq(world_emitted(&w), "");
    world_fail(&w, false);
    cr_expect_str_eq(world_emitted(&w), "");
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 2);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 3);
    cr_expect_str_eq(world_emitted(&w), "failure");
    cr_expect_eq(pliant_failure_at(w.s, 0)->n, 3);
    cr_expect_eq(w.s->failover.strategy.count, 1, "the strategy was told of one");
    cr_expect_eq(pliant_next_deadline(w.s), 8000, "and the back-off is its");
    world_to(&w, 1000);
    world_fail(&w, false);
    expect_state(&w, PLIANT_RESTARTING);
    cr_expect_eq(pliant_next_deadline(w.s), 8000);
    world_to(&w, 8000);
    expect_state(&w, PLIANT_CREATING_EXECUTION_GRAPH);
    world_free(&w);
}

Test(restarting, can_be_canceled_on_the_way_down) /* [S-RST-7] */
{
    struct world w = failed();

    world_plain(&w, PLIANT_EV_CANCEL);
    expect_state(&w, PLIANT_CANCELING);
    cr_expect_str_eq(world_emitted(&w), "state_changed status_changed rescale_closed",
                     "nobody is told twice");
    all_down(&w);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    world_free(&w);
}

Test(restarting, can_be_canceled_when_all_is_down) /* [S-RST-7] */
{
    struct world w = failed();

    all_down(&w);
    world_to(&w, 3000);
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Restarting > Canceling > Finished"));
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    cr_expect_eq(pliant_next_deadline(w.s), PLIANT_NEVER, "the back-off is gone");
    world_free(&w);
}

Test(restarting, a_canceled_restart_makes_one_entry_when_all_is_down) /* [S-HIST-1, S-HIST-2] */
{
    struct world w = failed();

    world_plain(&w, PLIANT_EV_CANCEL);
    cr_expect_eq(world_count(&w, PLIANT_ACT_FAILURE), 0, "three tasks live");
    world_fail_task(&w, 1, 1, true);
    all_down(&w);
    cr_assert_not_null(pliant_failure_at(w.s, 0));
    cr_expect_eq(pliant_failure_at(w.s, 0)->n, 2);
    cr_expect_null(pliant_failure_at(w.s, 1));
    world_free(&w);
}

Test(restarting, counts_restarts_and_rescales) /* [S-RST-8] */
{
    struct world w = rescaling();

    cr_expect_eq(world_counts(&w).restarts, 1);
    cr_expect_eq(world_counts(&w).rescales, 1);
    world_free(&w);
    w = failed();
    cr_expect_eq(world_counts(&w).restarts, 1);
    cr_expect_eq(world_counts(&w).rescales, 0);
    w.cancels = w.reserves = true;
    all_down(&w);
    world_to(&w, 8000);
    world_fail(&w, true);
    cr_expect_eq(world_counts(&w).restarts, 2, "on every entry");
    cr_expect_eq(world_counts(&w).rescales, 0);
    world_free(&w);
}

Test(restarting, a_failure_does_not_spoil_the_next_rescale_s_count) /* [S-RST-8, S-CEG-6] */
{
    struct world w = world_running((struct world_spec){.options = {AT_ONCE, FIXED}}, 2);

    world_fail_task(&w, 1, 0, true);
    world_to(&w, 8000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_node(&w, "n2", 2);
    cr_expect_eq(world_counts(&w).restarts, 2);
    cr_expect_eq(world_counts(&w).rescales, 1, "the failures of the run before are archived");
    world_free(&w);
}

Test(restarting, slots_and_wishes_have_no_effect_at_once) /* [S-RST-9, S-WFR-1] */
{
    struct world w = failed();

    world_node(&w, "n2", 2);
    cr_expect_str_eq(world_emitted(&w), "");
    world_bounds(&w, 1, 6);
    cr_expect_str_eq(world_emitted(&w), "declare rescale_closed rescale_opened");
    cr_expect_eq(world_counts(&w).desired, 6);
    expect_state(&w, PLIANT_RESTARTING);
    all_down(&w);
    world_to(&w, 7999);
    expect_state(&w, PLIANT_RESTARTING);
    world_to(&w, 8000);
    expect_state(&w, PLIANT_CREATING_EXECUTION_GRAPH);
    cr_expect_eq(world_count(&w, PLIANT_ACT_DECLARE), 0);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, 6, "both count on leaving");
    world_free(&w);
}

Test(restarting, a_minimum_raised_on_the_way_is_the_next_plan_s) /* [S-RST-9] */
{
    struct world w = failed();

    world_bounds(&w, 5, 6);
    all_down(&w);
    world_to(&w, 8000);
    expect_state(&w, PLIANT_WAITING_FOR_RESOURCES);
    world_to(&w, 9000);
    world_node(&w, "n2", 2);
    expect_state(&w, PLIANT_CREATING_EXECUTION_GRAPH);
    world_free(&w);
}

Test(restarting, suspends_as_suspended) /* [S-RST-10, S-GEN-12] */
{
    for (int down = 0; down < 2; down++) {
        struct world w = failed();

        if (down)
            all_down(&w);
        world_plain(&w, PLIANT_EV_SUSPEND);
        cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_SUSPENDED, "down: %d", down);
        cr_expect_eq(world_count(&w, PLIANT_ACT_FAILURE), 0, "a suspended graph archives nothing");
        cr_expect_eq(pliant_next_deadline(w.s), PLIANT_NEVER);
        world_free(&w);
    }
}

Test(restarting, tasks_that_finish_first_are_down_too) /* [S-RST-11] */
{
    struct world w = failed();

    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 1);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 2);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 3);
    expect_state(&w, PLIANT_RESTARTING); /* a graph that is being canceled ends as canceled */
    world_to(&w, 8000);
    expect_state(&w, PLIANT_CREATING_EXECUTION_GRAPH);
    world_free(&w);
}

Test(restarting, a_rescale_whose_tasks_all_finish_goes_on_as_well) /* [S-RST-11] */
{
    struct world w = rescaling();

    world_all_tasks(&w, PLIANT_EV_TASK_FINISHED);
    expect_state(&w, PLIANT_CREATING_EXECUTION_GRAPH);
    world_free(&w);
}

Test(restarting, tasks_told_to_stop_do_not_come_up)
{
    struct world w = failed();

    world_task(&w, PLIANT_EV_TASK_RUNNING, 1, 1);
    world_task(&w, PLIANT_EV_TASK_INITIALIZING, 1, 1);
    cr_expect_eq(world_counts(&w).events_ignored, 2);
    world_free(&w);
}

Test(restarting, gives_up_nodes_that_do_not_confirm) /* [S-FLG-4] */
{
    struct world w =
        world_new((struct world_spec){.options = {FIXED, "task.cancellation.timeout", "30 s"}});

    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_start(&w);
    w.cancels = w.reserves = false;
    world_fail_task(&w, 1, 0, true);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 1);
    world_to(&w, 29999);
    cr_expect_eq(world_counts(&w).nodes, 2);
    world_to(&w, 30000);
    cr_expect_eq(world_count(&w, PLIANT_ACT_GIVE_UP_NODE), 1);
    cr_expect_eq(world_counts(&w).nodes, 1, "the one with the tasks that hang");
    cr_expect_eq(pliant_next_deadline(w.s), 38000, "and then the back-off");
    world_free(&w);
}

Test(restarting, preemptions_do_not_use_up_the_failure_budget) /* [S-DRN-8] */
{
    struct world w =
        world_running((struct world_spec){.options = {"restart-strategy.type", "fixed-delay",
                                                      "restart-strategy.fixed-delay.attempts", "1",
                                                      "restart-strategy.fixed-delay.delay", "0 s"}},
                      4);
    char name[] = "n1";

    for (int i = 0; i < 5; i++) {
        char next[] = {'n', (char)(name[1] + 1), '\0'};

        world_node(&w, next, 4);
        world_drain(&w, name, 60000);
        expect_state(&w, PLIANT_EXECUTING);
        world_lose(&w, name);
        name[1]++;
        world_to(&w, w.now_ms + 1000);
    }
    cr_expect_eq(world_counts(&w).drain_moves, 5);
    cr_expect_eq(world_counts(&w).restarts, 5);
    cr_expect_eq(w.s->failover.strategy.count, 0);
    world_fail_task(&w, 1, 0, true);
    expect_state(&w, PLIANT_EXECUTING);
    world_fail_task(&w, 1, 0, true);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED, "the second failure, not the seventh");
    world_free(&w);
}

Test(restarting, says_what_comes_next)
{
    struct world w = failed();
    struct pliant_next next;

    pliant_next(w.s, &next);
    cr_expect_eq(next.decision, PLIANT_REASON_BACKOFF_OVER);
    cr_expect_eq(next.at_ms, 180000, "tasks may take this long to stop");
    all_down(&w);
    pliant_next(w.s, &next);
    cr_expect_eq(next.at_ms, 8000);
    world_free(&w);
}

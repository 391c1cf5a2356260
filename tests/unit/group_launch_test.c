/* group_launch_test.c - the workers of a group come up together, and go down together */
#include <criterion/criterion.h>
#include <string.h>

#include "world.h"

#define TIMEOUT "worker-group.start-timeout"

/* n workers on a node of n slots, started; they come up only where the test says so. */
static struct world launching(struct world_spec spec, uint32_t n)
{
    struct world w;

    spec.worker_group = true;
    spec.parallelism = n;
    spec.min_parallelism = spec.min_parallelism ? spec.min_parallelism : n;
    w = world_new(spec);
    w.runs = false;
    world_node(&w, "n1", n);
    world_start(&w);
    return w;
}

static uint32_t attempt_of(const struct world *w, uint32_t rank)
{
    struct pliant_task_info info = {0};

    pliant_task_info(w->s, (pliant_vertex_id){1}, rank, &info);
    return info.attempt;
}

Test(group_launch, executes_when_all_workers_are_up) /* [W-GRP-1] */
{
    struct world w = launching((struct world_spec){0}, 3);

    cr_expect_eq(world_count(&w, PLIANT_ACT_DEPLOY), 3);
    for (uint32_t rank = 0; rank < 3; rank++) {
        cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
        world_task(&w, PLIANT_EV_TASK_RUNNING, 1, rank);
    }
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_LAUNCHED);
    cr_expect_eq(pliant_group_attempt(w.s), 1u);
    world_free(&w);
}

Test(group_launch, one_worker_that_does_not_start_takes_all_down) /* [W-GRP-1, W-STA-4] */
{
    struct world w = launching((struct world_spec){0}, 3);

    w.cancels = false;
    world_task(&w, PLIANT_EV_TASK_RUNNING, 1, 0);
    world_die(&w, 1, PLIANT_DEATH_ERROR, "no such file");
    cr_expect_eq(world_count(&w, PLIANT_ACT_CANCEL), 2);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    cr_expect_eq(world_counts(&w).launch_failures, 1u);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 0);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH, "one lives");
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 2);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    cr_expect_eq(world_counts(&w).slots_used, 0u);
    world_free(&w);
}

Test(group_launch, is_given_up_at_one_timeout_for_the_whole_group) /* [W-GRP-2, W-GRP-3] */
{
    struct world w = launching((struct world_spec){0}, 2);

    world_to(&w, 59000);
    world_task(&w, PLIANT_EV_TASK_RUNNING, 1, 0); /* which gives the other no more time */
    world_to(&w, 59999);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_to(&w, 60000);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_LAUNCH_TIMEOUT);
    cr_expect_eq(world_counts(&w).launch_failures, 1u);
    cr_expect_str_eq(pliant_failure_at(w.s, 0)->items[0].cause,
                     "1 of 2 workers were up after 60000 ms");
    world_free(&w);
}

/* The host answers RESERVE when the environment is there. */
Test(group_launch, is_timed_from_the_grant_of_the_slots) /* [W-GRP-3] */
{
    struct world w = world_new((struct world_spec){
        .worker_group = true, .parallelism = 2, .min_parallelism = 2, .options = {TIMEOUT, "5 s"}});

    w.reserves = w.runs = false;
    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 100000);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    world_to(&w, 104999);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_to(&w, 105000);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    world_free(&w);
}

Test(group_launch, waits_twice_as_long_after_each_failure_in_a_row) /* [W-GRP-4] */
{
    static const int64_t waits_ms[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct world w = launching((struct world_spec){0}, 2);

    for (size_t i = 0; i < sizeof waits_ms / sizeof *waits_ms; i++) {
        int64_t failed_at_ms = w.now_ms;

        cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
        world_die(&w, 0, PLIANT_DEATH_ERROR, "no");
        cr_assert_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
        world_node(&w, "other", 1); /* which does not end the wait */
        world_lose(&w, "other");
        world_to(&w, failed_at_ms + waits_ms[i] - 1);
        cr_assert_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES, "%zu", i);
        world_to(&w, failed_at_ms + waits_ms[i]);
    }
    w.runs = true;
    world_all_tasks(&w, PLIANT_EV_TASK_RUNNING);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(group_launch, counts_failures_in_a_row_anew_once_it_ran) /* [W-GRP-4] */
{
    struct world w =
        launching((struct world_spec){.options = {"worker-group.max-failures", "-1"}}, 1);

    world_die(&w, 0, PLIANT_DEATH_ERROR, "no");
    world_to(&w, 1000);
    world_task(&w, PLIANT_EV_TASK_RUNNING, 1, 0);
    world_die(&w, 0, PLIANT_DEATH_ERROR, "no"); /* a worker failure */
    cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_die(&w, 0, PLIANT_DEATH_ERROR, "no");
    world_to(&w, 1999);
    cr_assert_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    world_to(&w, 2000);
    cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_free(&w);
}

Test(group_launch, what_is_tried_again_is_the_same_attempt) /* [W-STA-2, W-STA-3] */
{
    struct world w =
        launching((struct world_spec){.options = {"worker-group.max-failures", "1"}}, 2);
    struct pliant_task first = {{1}, 0, attempt_of(&w, 0)};

    cr_expect_eq(pliant_group_attempt(w.s), 1u);
    world_die(&w, 0, PLIANT_DEATH_ERROR, "no");
    world_to(&w, 1000);
    cr_expect_eq(pliant_group_attempt(w.s), 1u, "a launch that is tried again");
    cr_expect_gt(attempt_of(&w, 0), first.attempt, "but its tasks differ");
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING, .task = first});
    cr_expect_eq(world_counts(&w).tasks_running, 0u, "news of the one before");
    world_all_tasks(&w, PLIANT_EV_TASK_RUNNING);
    world_die(&w, 0, PLIANT_DEATH_ERROR, "no");
    cr_expect_eq(pliant_group_attempt(w.s), 2u, "a restart");
    world_free(&w);
}

Test(group_launch, all_ranks_have_one_attempt_number)
{
    struct world w = launching((struct world_spec){.min_parallelism = 1}, 4);

    world_lose(&w, "n1");
    world_node(&w, "n2", 2); /* two ranks only */
    world_to(&w, 1000);
    world_die(&w, 0, PLIANT_DEATH_ERROR, "no");
    world_node(&w, "n3", 2);
    world_to(&w, 3000);
    cr_assert_eq(world_counts(&w).tasks, 4u);
    for (uint32_t rank = 0; rank < 4; rank++)
        cr_expect_eq(attempt_of(&w, rank), 3u, "rank %u", rank);
    world_free(&w);
}

Test(group_launch, the_launches_budget_ends_the_job) /* [W-BUD-2] */
{
    struct world w = launching(
        (struct world_spec){.options = {"worker-group.controller-failure-limit", "1"}}, 2);

    world_die(&w, 0, PLIANT_DEATH_ERROR, "no such file");
    world_to(&w, 1000);
    world_die(&w, 1, PLIANT_DEATH_ERROR, "no such file");
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_str_eq(pliant_failure_at(w.s, 0)->items[0].cause,
                     "ControllerError: rank 1: no such file");
    cr_expect_eq(world_counts(&w).failures_charged, 0u);
    world_free(&w);
}

Test(group_launch, a_creation_that_fails_is_a_launch_that_fails)
{
    struct world w = world_new(
        (struct world_spec){.worker_group = true, .parallelism = 2, .min_parallelism = 2});

    w.reserves = false;
    world_node(&w, "n1", 2);
    world_start(&w);
    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    cr_expect_eq(world_counts(&w).launch_failures, 1u);
    world_to(&w, 1000);
    world_fail(&w, true);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    cr_expect_eq(world_counts(&w).launch_failures, 2u);
    world_to(&w, 3000);
    world_plan(&w, PLIANT_EV_CREATION_FAILED, false);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    world_free(&w);
}

Test(group_launch, a_final_failure_ends_the_job_when_all_are_down) /* [W-STA-5] */
{
    struct world w = launching((struct world_spec){0}, 2);

    w.cancels = false;
    world_fail(&w, false);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(world_counts(&w).launch_failures, 0u);
    world_free(&w);
}

Test(group_launch, a_cancel_stops_the_workers_first) /* [W-BUD-4, W-STA-6] */
{
    struct world w = launching((struct world_spec){0}, 2);

    w.cancels = false;
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_expect_eq(world_count(&w, PLIANT_ACT_CANCEL), 2);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    cr_expect_eq(world_counts(&w).launch_failures, 0u);
    world_free(&w);
}

Test(group_launch, a_cancel_while_it_restarts_starts_nothing_more) /* [W-STA-6] */
{
    struct world w =
        launching((struct world_spec){.options = {"worker-group.max-failures", "5"}}, 2);

    world_all_tasks(&w, PLIANT_EV_TASK_RUNNING);
    w.cancels = false;
    world_die(&w, 0, PLIANT_DEATH_CRASH, "segfault");
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_plain(&w, PLIANT_EV_CANCEL);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 1);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    cr_expect_eq(pliant_group_attempt(w.s), 1u);
    world_free(&w);
}

Test(group_launch, a_node_that_is_taken_back_meanwhile_costs_nothing)
{
    struct world w = launching((struct world_spec){.min_parallelism = 1}, 2);

    world_node(&w, "n2", 1);
    world_drain(&w, "n1", 90000);
    cr_expect_eq(world_counts(&w).launch_failures, 0u);
    cr_expect_eq(pliant_group_attempt(w.s), 1u);
    world_to(&w, 1);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    cr_expect_eq(world_counts(&w).tasks, 1u);
    cr_expect_str_eq(
        pliant_node_name(
            w.s, pliant_slot_node(w.s, world_action(&w, PLIANT_ACT_DEPLOY, 0)
                                           ? world_action(&w, PLIANT_ACT_DEPLOY, 0)->deploy.slot
                                           : (pliant_slot_id){3})),
        "n2");
    world_free(&w);
}

Test(group_launch, all_ranks_that_end_well_end_the_job) /* [W-STA-1] */
{
    struct world w = launching((struct world_spec){0}, 3);

    world_all_tasks(&w, PLIANT_EV_TASK_RUNNING);
    world_drain(&w, "n1", 90000); /* a notice makes no difference */
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 1);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 0);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING, "some are waited for");
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 2);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FINISHED);
    cr_expect_eq(world_counts(&w).preemptions_charged, 0u);
    world_free(&w);
}

Test(group_launch, workers_may_be_done_before_the_others_are_up) /* [W-STA-1] */
{
    struct world w = launching((struct world_spec){0}, 2);

    world_task(&w, PLIANT_EV_TASK_RUNNING, 1, 0);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 0);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 1);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FINISHED);
    world_free(&w);
}

Test(group_launch, starts_at_once_with_what_is_there) /* [W-ELA-1, W-ELA-2, W-ELA-6] */
{
    struct world w = world_new((struct world_spec){.worker_group = true,
                                                   .parallelism = 8,
                                                   .min_parallelism = 3,
                                                   .options = {"worker-group.max-failures", "-1"}});

    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 24 * 3600000);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES, "below min it waits");
    world_node(&w, "n2", 3);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING, "no waiting for max");
    cr_expect_eq(world_counts(&w).tasks, 5u);
    world_lose(&w, "n1");
    cr_expect_eq(world_counts(&w).tasks, 3u, "a failure chooses afresh");
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(group_launch, waits_no_longer_than_resource_wait_timeout) /* [W-ELA-2] */
{
    struct world w =
        world_new((struct world_spec){.worker_group = true,
                                      .parallelism = 2,
                                      .min_parallelism = 2,
                                      .options = {"worker-group.resource-wait-timeout", "10 min"}});

    world_start(&w);
    world_to(&w, 599999);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    world_to(&w, 600000);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    world_free(&w);
}

Test(group_launch, a_resize_is_a_new_attempt_and_costs_nothing) /* [W-ELA-5, W-BUD-4, W-STA-2] */
{
    struct world w =
        world_new((struct world_spec){.worker_group = true,
                                      .parallelism = 4,
                                      .min_parallelism = 1,
                                      .options = {"pliant.rescale.policy", "torchrun"}});

    world_node(&w, "n1", 2);
    world_start(&w);
    cr_assert_eq(world_counts(&w).tasks, 2u);
    world_node(&w, "n2", 2);
    world_to(&w, 1);
    cr_expect_eq(world_counts(&w).tasks, 4u);
    cr_expect_eq(pliant_group_attempt(w.s), 2u);
    cr_expect_eq(world_counts(&w).failures_charged, 0u);
    cr_expect_eq(world_counts(&w).rescales, 1u);
    world_free(&w);
}

/* Partial failover in the adaptive scheduler: P-REG-1 to P-REG-8 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <string.h>

#include "graph_world.h"

#define REGION "pliant.adaptive.failover", "region"

static const struct pliant_vertex_spec chain[] = {{.id = "a", .parallelism = 4},
                                                  {.id = "b", .parallelism = 4}};
static const struct pliant_edge_spec pointwise = {0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED};
static const struct pliant_edge_spec shuffle = {0, 1, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED};

/* a:i -> b:i: four regions, in four slots of n1, and some more of n2. */
static struct world running(const char *delay, uint32_t spare_slots)
{
    struct world w = world_new((struct world_spec){
        .vertices = chain,
        .n_vertices = 2,
        .edges = &pointwise,
        .n_edges = 1,
        .options = {REGION, FIXED_DELAY("100", delay), CHECKPOINTS, LONG_IDLE}});

    world_start(&w);
    world_node(&w, "n1", 4);
    world_to(&w, w.now_ms + 60000);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    if (spare_slots)
        world_node(&w, "n2", spare_slots);
    return w;
}

Test(regional, a_failure_restarts_its_region_in_its_slot_and_nothing_else)
{
    struct world w = running("1 s", 0);
    uint32_t before = attempt_of(&w, 1, 0);
    struct pliant_task_info was, is;

    pliant_task_info(w.s, (pliant_vertex_id){1}, 2, &was);
    world_fail_task(&w, 1, 2, true);                          /* [P-REG-1, P-REG-6] */
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_CANCEL), 1)); /* b:2 */
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING)); /* [P-REG-2] */
    world_to(&w, w.now_ms + 999);
    cr_assert(eq(int, state_of(&w, 1, 2), PLIANT_TASK_FAILED));
    world_to(&w, w.now_ms + 1);
    cr_assert(eq(int, state_of(&w, 1, 2), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(eq(u32, attempt_of(&w, 1, i), before + (i == 2)));
        cr_assert(eq(u32, attempt_of(&w, 2, i), before + (i == 2)));
    }
    pliant_task_info(w.s, (pliant_vertex_id){1}, 2, &is);
    cr_assert(eq(u32, is.slot.v, was.slot.v), "it keeps its slot [P-REG-4]");
    cr_assert(eq(u64, world_counts(&w).region_restarts, 1)); /* [P-REG-7] */
    cr_assert(eq(u64, world_counts(&w).restarts, 0));
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 3); /* by somebody else */
    cr_assert(eq(int, state_of(&w, 2, 3), PLIANT_TASK_CANCELED));
    world_to(&w, w.now_ms + 1000);
    cr_assert(eq(u32, attempt_of(&w, 1, 3), before + 1));
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    world_free(&w);
}

Test(regional, a_job_of_one_region_or_without_the_option_restarts_whole)
{
    struct world w = world_new((struct world_spec){.vertices = chain,
                                                   .n_vertices = 2,
                                                   .edges = &shuffle,
                                                   .n_edges = 1,
                                                   .options = {REGION, FIXED_DELAY("9", "1 s")}});

    world_start(&w);
    world_node(&w, "n1", 4);
    world_to(&w, 60000);
    world_fail_task(&w, 1, 2, true);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_RESTARTING)); /* [P-REG-1] */
    world_free(&w);

    w = world_new((struct world_spec){.vertices = chain,
                                      .n_vertices = 2,
                                      .edges = &pointwise,
                                      .n_edges = 1,
                                      .options = {FIXED_DELAY("9", "1 s")}});
    world_start(&w);
    world_node(&w, "n1", 4);
    world_to(&w, 60000);
    world_fail_task(&w, 1, 2, true);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_RESTARTING));
    world_free(&w);
}

Test(regional, cancelling_and_the_delay_run_side_by_side)
{
    struct world w = running("1 s", 0);

    w.cancels = false;
    world_fail_task(&w, 1, 2, true);
    world_to(&w, w.now_ms + 5000); /* [P-REG-3] */
    cr_assert(eq(int, state_of(&w, 2, 2), PLIANT_TASK_CANCELING));
    world_task(&w, PLIANT_EV_TASK_CANCELED, 2, 2);
    cr_assert(eq(int, state_of(&w, 2, 2), PLIANT_TASK_RUNNING), "at once: the delay is over");
    world_free(&w);
}

Test(regional, two_failures_close_together_make_two_plans_and_a_failure_while_cancelling_none)
{
    struct world w = running("1 s", 0);
    int64_t t0 = w.now_ms;

    w.cancels = false;
    world_fail_task(&w, 1, 0, true);
    world_to(&w, t0 + 400);
    world_fail_task(&w, 2, 0, true); /* was CANCELING: it becomes CANCELED, no new failure [3.1] */
    cr_assert(eq(int, state_of(&w, 2, 0), PLIANT_TASK_CANCELED));
    world_fail_task(&w, 2, 1, true);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 1);
    world_to(&w, t0 + 1000);
    cr_assert(eq(int, state_of(&w, 1, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, state_of(&w, 1, 1), PLIANT_TASK_CANCELED));
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    world_to(&w, t0 + 1400); /* [3.10] */
    cr_assert(eq(int, state_of(&w, 1, 1), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    cr_assert(eq(u32, pliant_failure_at(w.s, 0)->n, 2), "one entry, the second concurrent [3.6]");
    cr_assert(eq(u64, world_counts(&w).region_restarts, 2));
    world_free(&w);
}

Test(regional, the_strategy_that_allows_no_more_fails_the_job)
{
    struct world w = world_new((struct world_spec){.vertices = chain,
                                                   .n_vertices = 2,
                                                   .edges = &pointwise,
                                                   .n_edges = 1,
                                                   .options = {REGION, FIXED_DELAY("1", "1 s")}});

    world_start(&w);
    world_node(&w, "n1", 4);
    world_to(&w, 60000);
    world_fail_task(&w, 1, 0, true);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    world_fail_task(&w, 1, 1, true); /* [P-REG-3]: told and asked once per failure */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED));
    world_free(&w);
}

Test(regional, what_is_not_recoverable_or_concerns_the_whole_job_goes_the_whole_jobs_way)
{
    struct world w = running("1 s", 0);

    world_fail(&w, true);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_RESTARTING));
    world_free(&w);
    w = running("1 s", 0);
    world_fail_task(&w, 1, 0, false);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED));
    world_free(&w);
}

Test(regional, lost_slots_are_replaced_by_free_ones)
{
    struct world w = running("1 s", 0);
    uint32_t before = attempt_of(&w, 1, 0);

    world_free(&w);
    /* two nodes of two: the loss of one touches two regions, a third node has room for both */
    w = world_new((struct world_spec){.vertices = chain,
                                      .n_vertices = 2,
                                      .edges = &pointwise,
                                      .n_edges = 1,
                                      .options = {REGION, FIXED_DELAY("9", "1 s"), LONG_IDLE}});
    world_start(&w);
    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_to(&w, 60000);
    world_node(&w, "n3", 2);
    world_lose(&w, "n2"); /* [P-REG-4] */
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    cr_assert(eq(u32, world_counts(&w).tasks_running, 4));
    world_to(&w, w.now_ms + 1000);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    cr_assert(eq(u32, world_counts(&w).tasks_running, 8));
    for (uint32_t i = 0; i < 4; i++)
        cr_assert(eq(u32, attempt_of(&w, 1, i), attempt_of(&w, 2, i)));
    cr_assert(attempt_of(&w, 1, 0) + attempt_of(&w, 1, 1) + attempt_of(&w, 1, 2) +
                  attempt_of(&w, 1, 3) ==
              4 * before + 2);
    world_free(&w);
}

Test(regional, without_slots_the_whole_job_restarts_when_the_set_is_due_charged_once)
{
    struct world w = world_new((struct world_spec){.vertices = chain,
                                                   .n_vertices = 2,
                                                   .edges = &pointwise,
                                                   .n_edges = 1,
                                                   .options = {REGION, FIXED_DELAY("1", "1 s")}});

    world_start(&w);
    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_to(&w, 60000);
    world_lose(&w, "n2");
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    world_to(&w, w.now_ms + 1000);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES)); /* [P-REG-4] */
    cr_assert(eq(u64, world_counts(&w).restarts, 1));
    world_to(&w, w.now_ms + 60000);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    cr_assert(eq(u32, pliant_parallelism(w.s, (pliant_vertex_id){1}), 2));
    world_free(&w);
}

Test(regional, no_rescale_starts_and_no_checkpoint_is_taken_while_a_region_is_pending)
{
    struct world w =
        world_new((struct world_spec){.vertices = chain,
                                      .n_vertices = 2,
                                      .edges = &pointwise,
                                      .n_edges = 1,
                                      .options = {REGION, FIXED_DELAY("9", "1 min"), CHECKPOINTS,
                                                  "jobmanager.adaptive-scheduler.executing."
                                                  "cooldown-after-rescaling",
                                                  "0 s",
                                                  "jobmanager.adaptive-scheduler.executing."
                                                  "resource-stabilization-timeout",
                                                  "0 s", LONG_IDLE}});
    uint64_t pending;

    world_start(&w);
    world_node(&w, "n1", 2);
    world_to(&w, 60000);
    world_to(&w, w.now_ms + 11000);
    pending = w.checkpoint;
    cr_assert(gt(u64, pending, 0));
    world_fail_task(&w, 1, 0, true);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, true); /* aborted: not current [P-REG-5] */
    cr_assert(eq(u64, world_counts(&w).checkpoint, 0));
    world_node(&w, "n2", 2);
    world_to(&w, w.now_ms + 59000);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    cr_assert(eq(u64, w.checkpoint, pending));
    w.runs = false;
    world_to(&w, w.now_ms + 1000);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    w.runs = true;
    world_all_tasks(&w, PLIANT_EV_TASK_RUNNING);
    world_to(&w, w.now_ms + 20000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, true);
    cr_assert(eq(u32, pliant_parallelism(w.s, (pliant_vertex_id){1}), 4),
              "the change was noted, and is carried out afterwards");
    world_free(&w);
}

Test(regional, a_drain_and_a_cancel_go_before_a_pending_region)
{
    struct world w = running("1 min", 4);

    world_fail_task(&w, 1, 0, true);
    world_drain(&w, "n1", 100000); /* [P-REG-8] */
    cr_assert(eq(u64, world_counts(&w).drain_moves, 1));
    cr_assert(not(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED)));
    world_to(&w, w.now_ms + 120000);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    cr_assert(eq(u64, world_counts(&w).region_restarts, 0));
    world_free(&w);

    w = running("1 min", 0);
    world_fail_task(&w, 1, 0, true);
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_CANCELED));
    world_free(&w);
}

Test(regional, a_cancel_that_nobody_confirms_takes_its_node_along)
{
    struct world w = running("1 s", 4);

    w.cancels = false;
    world_fail_task(&w, 1, 0, true);
    world_to(&w, w.now_ms + 400000); /* task.cancellation.timeout is 3 min [S-FLG-4] */
    cr_assert(eq(u64, world_counts(&w).region_restarts, 2), "its own, and those that were there");
    cr_assert(eq(u32, world_counts(&w).tasks_running, 8));
    w.cancels = true;
    world_free(&w);
}

Test(regional, all_tasks_may_finish_while_another_region_restarts)
{
    struct world w = running("1 s", 0);

    world_fail_task(&w, 1, 0, true);
    for (uint32_t i = 1; i < 4; i++) {
        world_task(&w, PLIANT_EV_TASK_FINISHED, 1, i);
        world_task(&w, PLIANT_EV_TASK_FINISHED, 2, i);
    }
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    world_to(&w, w.now_ms + 1000);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 0);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 2, 0);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

Test(regional, one_failure_of_a_job_of_100_regions_restarts_two_of_200_tasks)
{
    static const struct pliant_vertex_spec wide[] = {{.id = "a", .parallelism = 100},
                                                     {.id = "b", .parallelism = 100}};
    struct world w = world_new((struct world_spec){.vertices = wide,
                                                   .n_vertices = 2,
                                                   .edges = &pointwise,
                                                   .n_edges = 1,
                                                   .options = {REGION, FIXED_DELAY("9", "0 s")}});
    uint32_t anew = 0, first;

    world_start(&w);
    world_node(&w, "n1", 100);
    world_to(&w, 60000);
    first = attempt_of(&w, 1, 0);
    world_fail_task(&w, 2, 17, true);
    for (uint32_t i = 0; i < 100; i++)
        anew += (attempt_of(&w, 1, i) != first) + (attempt_of(&w, 2, i) != first);
    cr_assert(eq(u32, anew, 2));
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    world_free(&w);
}

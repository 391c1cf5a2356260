/* creating_test.c - CreatingExecutionGraph: from a plan to a run, or back */
#include <criterion/criterion.h>

#include "states/sched.h"
#include "world.h"

#define ADAPTIVE "jobmanager.adaptive-scheduler."
#define RETRY ADAPTIVE "retry-execution-graph-creation.restart-strategy."
#define FIXED "restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.delay", "1 s"

/* In CreatingExecutionGraph at 0, with a plan for the slots of n1 and of n2. */
static struct world planned(struct world_spec spec, uint32_t n1, uint32_t n2)
{
    struct world w = world_new(spec);

    w.reserves = false;
    world_node(&w, "n1", n1);
    if (n2 > 0)
        world_node(&w, "n2", n2);
    world_start(&w);
    cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    return w;
}

Test(creating, follows_its_plan) /* [S-CEG-1] */
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 2, .slot_sharing_group = "x"},
        {.id = "b", .parallelism = 3, .slot_sharing_group = "y"},
        {.id = "c", .parallelism = 1, .slot_sharing_group = "y"},
    };
    struct world w = planned((struct world_spec){.vertices = vertices, .n_vertices = 3}, 3, 2);
    pliant_slot_id slots[5];

    cr_assert_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.n, 5);
    for (size_t i = 0; i < 5; i++)
        slots[i] = world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.slots[i];
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    for (uint32_t v = 1; v <= 3; v++)
        cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){v}), vertices[v - 1].parallelism);
    for (uint32_t i = 0; i < 3; i++) {
        struct pliant_task_info info;

        cr_assert(pliant_task_info(w.s, (pliant_vertex_id){2}, i, &info));
        cr_expect_eq(info.slot.v, slots[2 + i].v, "units are groups, then subtasks");
        cr_expect_eq(info.attempt, 1);
    }
    world_free(&w);
}

Test(creating, keeps_max_parallelism_as_submitted) /* [S-CEG-1, S-PAR-8] */
{
    struct world w = world_running(
        (struct world_spec){.parallelism = 100,
                            .options = {FIXED, "restart-strategy.fixed-delay.attempts", "9"}},
        1);

    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 1);
    world_bounds(&w, 1, 257); /* 256 is derived from 100, never from the 1 that runs */
    cr_assert_eq(world_count(&w, PLIANT_ACT_REFUSED), 1);
    cr_expect_eq(w.actions[0].flag[0], PLIANT_REASON_ABOVE_MAX_PARALLELISM);
    world_bounds(&w, 1, 256);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REFUSED), 0);
    world_node(&w, "n2", 500);
    world_fail_task(&w, 1, 0, true);
    world_to(&w, w.now_ms + 1000);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 256);
    world_bounds(&w, 1, 257);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REFUSED), 1);
    world_free(&w);
}

Test(creating, fails_the_job_without_enough_slots) /* [S-CEG-2, S-HIST-6] */
{
    struct world w = world_new((struct world_spec){.options = {FIXED}});
    const struct pliant_failure *entry;

    world_start(&w);
    world_to(&w, 300000);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Finished"));
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_NOT_ENOUGH_RESOURCES);
    cr_expect_eq(world_count(&w, PLIANT_ACT_RESERVE), 0);
    entry = pliant_failure_at(w.s, 0);
    cr_assert_not_null(entry);
    cr_expect_str_eq(entry->items[0].cause, "not enough resources available for scheduling");
    world_free(&w);
}

Test(creating, an_error_ends_the_job_and_asks_no_restart_strategy) /* [S-CEG-3, S-RTY-3, S-OPT-2] */
{
    struct world w = planned((struct world_spec){.options = {FIXED}}, 4, 0);

    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    cr_expect_str_eq(world_emitted(&w),
                     "failure state_changed status_changed rescale_closed release "
                     "archived");
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_CREATION_FAILED);
    cr_expect_eq(w.s->failover.strategy.count, 0, "the runtime budget is untouched");
    cr_expect_eq(world_counts(&w).creation_retries, 0);
    cr_expect_str_eq(pliant_failure_at(w.s, 0)->items[0].cause, "no such checkpoint");
    world_free(&w);
}

Test(creating, reserves_all_or_nothing) /* [S-CEG-4, S-CEG-5] */
{
    struct world w = planned((struct world_spec){.options = {FIXED}}, 3, 1);

    world_lose(&w, "n2");
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH, "seen when it reserves");
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_SLOTS_GONE);
    cr_expect_eq(world_counts(&w).slots_used, 0);
    cr_expect_eq(world_count(&w, PLIANT_ACT_DEPLOY), 0);
    cr_expect_eq(world_counts(&w).restarts, 0, "no restart is counted");
    cr_expect_eq(w.s->failover.strategy.count, 0);
    cr_expect_null(pliant_failure_at(w.s, 0));
    world_to(&w, 10000);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 3, "the rest will do");
    world_free(&w);
}

Test(creating, finds_each_way_a_slot_can_be_gone) /* [S-CEG-4, S-DRN-11]; known trouble 066 */
{
    for (int way = 0; way < 5; way++) {
        struct world w = planned((struct world_spec){0}, 2, 2);

        if (way == 0)
            world_lose(&w, "n2");
        else if (way == 1)
            world_drain(&w, "n2", 60000);
        else if (way < 4)
            world_node(&w, "n2", 2); /* another life, in other rows until the step is over */
        if (way == 3)
            world_lose(&w, "n1");
        if (way == 2)
            cr_expect_eq(w.s->pool.slots.n, 6);
        world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
        cr_expect_eq(w.states[3], way == 4 ? PLIANT_EXECUTING : PLIANT_WAITING_FOR_RESOURCES,
                     "way %d", way);
        world_free(&w);
    }
}

Test(creating, goes_back_to_waiting_when_the_host_has_no_slots) /* [S-CEG-5]; known trouble 066 */
{
    struct world w = planned((struct world_spec){.options = {FIXED}}, 4, 0);
    uint32_t first = w.plan;

    world_plan(&w, PLIANT_EV_SLOTS_REFUSED, true);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > "
                             "WaitingForResources > CreatingExecutionGraph"));
    cr_expect_neq(w.plan, first, "a new plan");
    cr_expect_eq(world_counts(&w).restarts, 0);
    world_free(&w);
}

Test(creating, keeps_the_run_before_when_slots_were_lost) /* [S-CEG-5, S-LOC-1, S-LOC-7] */
{
    struct world w = world_new(
        (struct world_spec){.options = {FIXED, "execution.state-recovery.from-local", "true",
                                        "execution.checkpointing.interval", "1 h"}});
    struct pliant_task_info before[3], now;

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 2);
    world_node(&w, "n3", 1);
    world_start(&w);
    for (uint32_t i = 0; i < 3; i++)
        pliant_task_info(w.s, (pliant_vertex_id){1}, i + 1, &before[i]);
    world_checkpoint(&w);
    w.reserves = false;
    world_fail_task(&w, 1, 3, true);
    world_to(&w, 1000);
    cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_lose(&w, "n1");    /* where subtask 0 was */
    world_node(&w, "n0", 1); /* in the same rows */
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Restarting > WaitingForResources > CreatingExecutionGraph > "
                             "WaitingForResources > CreatingExecutionGraph"));
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(pliant_task_info(w.s, (pliant_vertex_id){1}, i + 1, &now));
        cr_expect_eq(now.slot.v, before[i].slot.v, "subtask %u kept its slot", i + 1);
        cr_expect_eq(now.attempt, 2);
    }
    world_free(&w);
}

Test(creating, runs_in_this_order) /* [S-CEG-6, S-CEG-7] */
{
    struct world w =
        planned((struct world_spec){.options = {"execution.checkpointing.interval", "1 s"}}, 4, 0);

    world_to(&w, 60000);
    cr_expect_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 0, "none before there are slots");
    w.runs = false;
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    cr_expect_str_eq(world_emitted(&w), "state_changed status_changed rescale_closed deploy");
    cr_expect_eq(world_count(&w, PLIANT_ACT_DEPLOY), 4);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_PLAN_READY);
    cr_expect(failures_empty(&w.s->failures));
    world_all_tasks(&w, PLIANT_EV_TASK_RUNNING);
    world_to(&w, 60999);
    cr_expect_eq(w.checkpoint, 0);
    world_to(&w, 61000);
    cr_expect_neq(w.checkpoint, 0, "periodic ones begin with the run");
    world_free(&w);
}

Test(creating, is_not_restarted_by_changes) /* [S-CEG-8, S-EXE-3] */
{
    struct world w = planned(
        (struct world_spec){
            .parallelism = 8,
            .options = {FIXED, ADAPTIVE "submission.resource-stabilization-timeout", "0 s"}},
        4, 0);
    uint32_t plan = w.plan;

    world_node(&w, "n2", 2);
    cr_expect_str_eq(world_emitted(&w), "");
    world_bounds(&w, 2, 6);
    cr_expect_str_eq(world_emitted(&w), "declare rescale_closed rescale_opened",
                     "stored, declared");
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    cr_expect_eq(w.plan, plan);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 4);
    w.reserves = true;
    world_to(&w, 30000);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 6, "looked at after the entry");
    world_free(&w);
}

Test(creating, is_left_at_once_by_a_cancel_and_the_late_answer_is_dropped) /* [S-CEG-10, S-GEN-4] */
{
    static const enum pliant_event_kind late[] = {PLIANT_EV_SLOTS_RESERVED, PLIANT_EV_SLOTS_REFUSED,
                                                  PLIANT_EV_CREATION_FAILED};

    for (size_t i = 0; i < 3; i++) {
        struct world w = planned((struct world_spec){0}, 4, 0);

        world_plain(&w, PLIANT_EV_CANCEL);
        cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
        world_plan(&w, late[i], true);
        cr_expect_str_eq(world_emitted(&w), "");
        cr_expect_eq(world_counts(&w).events_ignored, 1);
        cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
        world_free(&w);
    }
}

Test(creating, drops_late_answers_to_an_earlier_plan) /* [S-GEN-4]; background tasks one by one */
{
    static const enum pliant_event_kind late[] = {PLIANT_EV_SLOTS_RESERVED, PLIANT_EV_SLOTS_REFUSED,
                                                  PLIANT_EV_CREATION_FAILED};

    for (size_t i = 0; i < 3; i++) {
        struct world w = planned((struct world_spec){0}, 4, 0);
        uint32_t first = w.plan;

        world_plan(&w, PLIANT_EV_SLOTS_REFUSED, true);
        cr_assert_neq(w.plan, first);
        world_event(&w, (struct pliant_event){.kind = late[i], .plan.plan = first});
        cr_expect_str_eq(world_emitted(&w), "");
        cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
        cr_expect_eq(world_counts(&w).events_ignored, 1);
        world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
        cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
        world_free(&w);
    }
}

Test(creating, an_uneven_pointwise_edge_becomes_all_to_all) /* [S-CEG-11] */
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 4, .slot_sharing_group = "x"},
        {.id = "b", .parallelism = 4, .slot_sharing_group = "y"},
        {.id = "c", .parallelism = 2, .slot_sharing_group = "y"},
    };
    static const struct pliant_edge_spec edges[] = {
        {0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED},
        {1, 2, PLIANT_POINTWISE, PLIANT_PIPELINED},
        {0, 2, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED},
    };
    struct world w = world_new((struct world_spec){
        .vertices = vertices, .n_vertices = 3, .edges = edges, .n_edges = 3, .options = {FIXED}});

    cr_expect_eq(pliant_job_edges(w.job), 3);
    cr_expect_null(pliant_job_edge(w.job, 3));
    cr_expect_eq(pliant_job_edge(w.job, 1)->from, 1);
    cr_expect_eq(pliant_edge_pattern(w.s, 0), PLIANT_POINTWISE, "no graph: as the job says");
    world_node(&w, "n1", 8);
    world_start(&w);
    cr_expect_eq(pliant_edge_pattern(w.s, 0), PLIANT_POINTWISE, "4 to 4");
    cr_expect_eq(pliant_edge_pattern(w.s, 1), PLIANT_ALL_TO_ALL, "4 to 2");
    cr_expect_eq(pliant_edge_pattern(w.s, 2), PLIANT_ALL_TO_ALL);
    world_lose(&w, "n1");
    world_node(&w, "n2", 5);
    world_to(&w, 60000); /* 2 and 3 */
    cr_expect_eq(pliant_edge_pattern(w.s, 0), PLIANT_ALL_TO_ALL, "2 to 3");
    cr_expect_eq(pliant_edge_pattern(w.s, 2), PLIANT_ALL_TO_ALL, "2 to 2, as the job says");
    world_bounds(&w, 1, 2);
    world_to(&w, 200000);
    cr_assert_eq(pliant_parallelism(w.s, (pliant_vertex_id){2}), 2);
    cr_expect_eq(pliant_edge_pattern(w.s, 0), PLIANT_POINTWISE, "made anew for each graph");
    cr_expect_eq(pliant_edge_pattern(w.s, 1), PLIANT_POINTWISE, "2 to 2");
    world_free(&w);
}

Test(creating, a_retry_policy_of_its_own_is_asked) /* [S-CEG-12, S-OPT-1, S-OPT-2] */
{
    struct world w = planned(
        (struct world_spec){.options = {RETRY "type", "fixed-delay", RETRY "fixed-delay.attempts",
                                        "2", RETRY "fixed-delay.delay", "3 s"}},
        4, 0);

    for (int i = 0; i < 2; i++) {
        world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
        cr_expect_eq(pliant_state(w.s), PLIANT_RETRYING_EXECUTION_GRAPH_CREATION);
        cr_expect_eq(w.changed.flag[2], PLIANT_REASON_CREATION_FAILED);
        cr_expect_eq(w.changed.change.detail, 3000);
        world_to(&w, w.now_ms + 3000);
        cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    }
    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED, "its budget is used up");
    cr_expect_eq(world_counts(&w).restarts, 0);
    world_free(&w);
}

Test(creating, an_unrecoverable_error_is_not_tried_again) /* [S-CEG-12] */
{
    struct world w = planned((struct world_spec){.options = {RETRY "type", "fixed-delay"}}, 4, 0);

    world_plan(&w, PLIANT_EV_CREATION_FAILED, false);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(w.s->creation_retry.count, 0, "nor charged");
    world_free(&w);
}

Test(creating, too_few_slots_are_a_creation_failure_too) /* [S-CEG-12] */
{
    struct world w = world_new((struct world_spec){
        .options = {RETRY "type", "fixed-delay", RETRY "fixed-delay.delay", "3 s"}});

    world_start(&w);
    world_to(&w, 300000);
    cr_expect_eq(pliant_state(w.s), PLIANT_RETRYING_EXECUTION_GRAPH_CREATION);
    world_to(&w, 303000);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    world_node(&w, "n1", 4);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(creating, spreads_over_nodes_by_one_at_most) /* six subtasks, three nodes of four slots; known
                                                     trouble 079 */
{
    static const char *const spread[] = {"nodes", "domains"};

    for (size_t k = 0; k < 2; k++) {
        struct world w = world_new((struct world_spec){
            .parallelism = 6, .options = {"pliant.placement.spread", spread[k]}});
        uint32_t on[4] = {0};

        world_node(&w, "n1", 4);
        world_node(&w, "n2", 4);
        world_node(&w, "n3", 4);
        world_start(&w);
        for (uint32_t i = 0; i < 6; i++) {
            struct pliant_task_info info;

            cr_assert(pliant_task_info(w.s, (pliant_vertex_id){1}, i, &info));
            on[pliant_slot_node(w.s, info.slot).v]++;
        }
        cr_expect(on[1] == 2 && on[2] == 2 && on[3] == 2, "%s: %u %u %u", spread[k], on[1], on[2],
                  on[3]);
        world_free(&w);
    }
}

Test(creating, nodes_of_one_failure_domain_count_as_one)
{
    static const char *const domains[] = {"rack-1", "rack-1", "rack-2", ""};
    struct world w = world_new(
        (struct world_spec){.parallelism = 3, .options = {"pliant.placement.spread", "domains"}});
    static const char *const names[] = {"n1", "n2", "n3", "n4"};
    uint32_t on[5] = {0};

    for (size_t i = 0; i < 4; i++)
        world_event(
            &w,
            (struct pliant_event){
                .kind = PLIANT_EV_NODE_UP,
                .node_up = {.name = names[i], .incarnation = 1, .slots = 2, .domain = domains[i]}});
    world_start(&w);
    for (uint32_t i = 0; i < 3; i++) {
        struct pliant_task_info info;

        cr_assert(pliant_task_info(w.s, (pliant_vertex_id){1}, i, &info));
        on[pliant_slot_node(w.s, info.slot).v]++;
    }
    cr_expect_eq(on[1] + on[2], 1);
    cr_expect_eq(on[3], 1);
    cr_expect_eq(on[4], 1, "without a domain it is one of its own");
    world_free(&w);
}

/* jobmanager.scheduler: default. Scheduling by region, tracked results, region failover: sections
 * 1.4, 2 and 3 of the rules of failover */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <string.h>

#include "graph_world.h"

#define DEFAULT "jobmanager.scheduler", "default"

static const struct pliant_vertex_spec two[] = {{.id = "a", .parallelism = 2},
                                                {.id = "b", .parallelism = 2}};
static const struct pliant_vertex_spec three[] = {
    {.id = "a", .parallelism = 2}, {.id = "b", .parallelism = 2}, {.id = "c", .parallelism = 2}};
static const struct pliant_edge_spec blocking_all[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
static const struct pliant_edge_spec blocking_pointwise[] = {
    {0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING}};
static const struct pliant_edge_spec pipelined[] = {{0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED}};
/* a:i -> b:i pipelined, b => c blocking */
static const struct pliant_edge_spec mixed[] = {{0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED},
                                                {1, 2, PLIANT_POINTWISE, PLIANT_BLOCKING}};
/* a => b => c */
static const struct pliant_edge_spec stages[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                                 {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};

#define WORLD(v, e, ...) world_new(GRAPH(v, e, DEFAULT, __VA_ARGS__))

/* The task could not read what a:producer wrote for edge 0. */
static void fail_to_read(struct world *w, uint32_t vertex, uint32_t subtask, uint32_t producer)
{
    struct pliant_task task = {{vertex}, subtask, attempt_of(w, vertex, subtask)};

    world_event(w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                         .failure = {.task = task,
                                                     .recoverable = true,
                                                     .cause = "partition not found",
                                                     .input_lost = true,
                                                     .edge = 0,
                                                     .producer = producer}});
}

/* ---- start ------------------------------------------------------------------------------ */

Test(scheduling, a_job_starts_at_once_with_all_its_tasks_and_waits_for_no_other_slots)
{
    struct world w = WORLD(two, blocking_pointwise, FIXED_DELAY("9", "1 s"));

    world_start(&w); /* [P-SCHED-1] */
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    cr_assert(eq(u32, world_counts(&w).tasks, 4));
    cr_assert(eq(u32, world_counts(&w).tasks_live, 0));
    cr_assert(eq(u32, world_counts(&w).desired, 2)); /* [P-SCHED-7] */
    cr_assert(eq(u32, world_counts(&w).minimal, 2));
    world_node(&w, "n1", 1);
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING), "one region fits");
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_CREATED));
    world_node(&w, "n2", 1);
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_RUNNING));
    cr_assert(world_went(&w, "Created > Executing"));
    world_free(&w);
}

Test(scheduling, a_region_starts_when_all_that_it_reads_from_outside_is_consumable)
{
    struct world w = WORLD(two, blocking_all, FIXED_DELAY("9", "1 s"));

    world_node(&w, "n1", 4);
    world_start(&w);
    expect_states(&w, A, PLIANT_TASK_RUNNING);
    expect_states(&w, B, PLIANT_TASK_CREATED);
    finish(&w, A, 0);
    expect_states(&w, B, PLIANT_TASK_CREATED); /* [P-SCHED-2] */
    finish(&w, A, 1);
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    finish_vertex(&w, B);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);

    w = WORLD(two, blocking_pointwise, FIXED_DELAY("9", "1 s"));
    world_node(&w, "n1", 4);
    world_start(&w);
    finish(&w, A, 1);
    cr_assert(eq(int, state_of(&w, B, 0), PLIANT_TASK_CREATED));
    cr_assert(eq(int, state_of(&w, B, 1), PLIANT_TASK_RUNNING));
    world_free(&w);
}

Test(scheduling, all_tasks_of_a_region_start_together_in_the_slots_of_their_units)
{
    static const struct pliant_vertex_spec apart[] = {
        {.id = "a", .parallelism = 2, .slot_sharing_group = "one"},
        {.id = "b", .parallelism = 2, .slot_sharing_group = "two"}};
    struct world w = WORLD(apart, pipelined, FIXED_DELAY("9", "1 s"));

    world_start(&w);
    cr_assert(eq(u32, world_counts(&w).desired, 4));
    world_node(&w, "n1", 3);
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, state_of(&w, B, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_CREATED), "not half of it [P-SCHED-3]");
    cr_assert(eq(int, state_of(&w, B, 1), PLIANT_TASK_CREATED));
    world_free(&w);

    w = WORLD(two, pipelined, FIXED_DELAY("9", "1 s")); /* one group: a:i and b:i share a slot */
    world_start(&w);
    cr_assert(eq(u32, world_counts(&w).desired, 2));
    world_node(&w, "n1", 2);
    cr_assert(eq(u32, world_counts(&w).tasks_running, 4));
    cr_assert(eq(u32, info_of(&w, A, 1).slot.v, info_of(&w, B, 1).slot.v));
    world_free(&w);
}

Test(scheduling, a_task_takes_the_free_slot_that_was_idle_for_longest)
{
    struct world w = WORLD(two, blocking_pointwise, FIXED_DELAY("9", "1 s"));

    world_node(&w, "n1", 3);
    world_start(&w);
    cr_assert(eq(u32, info_of(&w, A, 0).slot.v, 1));
    cr_assert(eq(u32, info_of(&w, A, 1).slot.v, 2));
    finish(&w, A, 0);
    cr_assert(eq(u32, info_of(&w, B, 0).slot.v, 3));
    finish(&w, A, 1);
    cr_assert(eq(u32, info_of(&w, B, 1).slot.v, 1));
    world_free(&w);
}

Test(scheduling, regions_that_share_a_unit_share_its_slot)
{
    static const struct pliant_edge_spec join[] = {{0, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                                   {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
    struct world w = WORLD(three, join, FIXED_DELAY("9", "1 s"));

    world_node(&w, "n1", 2);
    world_start(&w);
    expect_states(&w, A, PLIANT_TASK_RUNNING);
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    cr_assert(eq(u32, world_counts(&w).slots_used, 2));
    finish_vertex(&w, A);
    finish_vertex(&w, B);
    expect_states(&w, C, PLIANT_TASK_RUNNING);
    world_free(&w);
}

Test(scheduling, slots_that_do_not_come_in_time_are_a_failure_like_any_other)
{
    struct world w = WORLD(two, pipelined, FIXED_DELAY("1", "1 s"));
    struct pliant_next next;

    world_start(&w);
    world_node(&w, "n1", 1);
    pliant_next(w.s, &next);
    cr_assert(eq(int, next.decision, PLIANT_REASON_NOT_ENOUGH_RESOURCES));
    cr_assert(eq(i64, next.at_ms, 300000));
    world_to(&w, 299999);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    world_to(&w, 300000); /* [P-SCHED-4] */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING), "the other region runs on");
    world_to(&w, 301000);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    cr_assert(
        eq(int, pliant_failure_at(w.s, 0)->items[0].reason, PLIANT_REASON_NOT_ENOUGH_RESOURCES));
    world_to(&w, 601000); /* it asked again at 301000 */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED));
    world_free(&w);
}

Test(scheduling, where_tasks_end_only_what_is_not_there_is_waited_for_in_vain)
{
    static const struct pliant_vertex_spec wide[] = {{.id = "a", .parallelism = 3},
                                                     {.id = "b", .parallelism = 2}};
    struct world w = WORLD(wide, blocking_all, FIXED_DELAY("9", "1 s"), LONG_IDLE);
    struct pliant_next next;

    world_start(&w);
    world_to(&w, 100000);
    world_node(&w, "n1", 1);
    pliant_next(w.s, &next);
    cr_assert(eq(i64, next.at_ms, PLIANT_NEVER), "one after the other they will run");
    cr_assert(eq(int, next.decision, PLIANT_REASON_NONE));
    world_to(&w, 4000000); /* [P-SCHED-4] */
    cr_assert(eq(u64, world_counts(&w).restarts, 0));
    finish(&w, A, 0);
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_RUNNING));
    world_lose(&w, "n1");
    cr_assert(eq(u64, world_counts(&w).restarts, 1));
    world_to(&w, 4299999);
    cr_assert(eq(u64, world_counts(&w).restarts, 1));
    world_to(&w, 4300000); /* a:2, that waited when the slot went */
    cr_assert(eq(u64, world_counts(&w).restarts, 2));
    world_free(&w);
}

/* a and b are sources and share slots; c => d */
Test(scheduling, those_in_line_find_their_way_past_others_and_into_slots_of_their_unit)
{
    static const struct pliant_vertex_spec mixed_groups[] = {
        {.id = "a", .parallelism = 2},
        {.id = "b", .parallelism = 2},
        {.id = "c", .parallelism = 1, .slot_sharing_group = "x"},
        {.id = "d", .parallelism = 1, .slot_sharing_group = "y"}};
    static const struct pliant_edge_spec edges[] = {{2, 3, PLIANT_POINTWISE, PLIANT_PIPELINED},
                                                    {0, 3, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                                    {1, 3, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
    struct world w = WORLD(mixed_groups, edges, FIXED_DELAY("9", "1 s"), LONG_IDLE);

    world_start(&w);
    world_node(&w, "n1", 1);
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, state_of(&w, B, 0), PLIANT_TASK_RUNNING), "in the slot of its unit");
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_CREATED));
    finish(&w, A, 0);
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_CREATED), "b:0 is still there");
    finish(&w, B, 0);
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, state_of(&w, B, 1), PLIANT_TASK_RUNNING));
    finish(&w, B, 1);
    finish(&w, A, 1);
    cr_assert(eq(int, state_of(&w, C, 0), PLIANT_TASK_CREATED), "c and d need two slots");
    world_node(&w, "n2", 1);
    cr_assert(eq(int, state_of(&w, C, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, state_of(&w, D, 0), PLIANT_TASK_RUNNING));
    world_free(&w);
}

/* What it needs is counted as units get slots and lose them, and compared with what it is after
 * each step. */
Test(scheduling, a_region_in_line_needs_as_many_slots_as_its_units_have_not)
{
    static const struct pliant_vertex_spec singles_first[] = {{.id = "a", .parallelism = 3},
                                                              {.id = "b", .parallelism = 3},
                                                              {.id = "c", .parallelism = 3}};
    static const struct pliant_edge_spec one_region[] = {
        {1, 2, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED}};
    struct world w = WORLD(singles_first, one_region, FIXED_DELAY("9", "0 s"), LONG_IDLE);

    world_start(&w);
    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_RUNNING));
    world_lose(&w, "n2");
    finish(&w, A, 0);
    cr_assert(eq(int, state_of(&w, A, 2), PLIANT_TASK_RUNNING));
    world_node(&w, "n3", 1);
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_RUNNING), "it passes by, the region needs 2");
    expect_states(&w, B, PLIANT_TASK_CREATED);
    world_node(&w, "n4", 1);
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    expect_states(&w, C, PLIANT_TASK_RUNNING);
    cr_assert(eq(u32, world_counts(&w).slots_used, 3));
    world_free(&w);
}

static void expect_read(const struct world *w, size_t edge, uint32_t subtask,
                        struct pliant_read want)
{
    struct pliant_read got = {9, 9, 9, 9};

    cr_assert(eq(sz, pliant_reads(w->s, edge, subtask, NULL, 0), 1));
    cr_assert(eq(sz, pliant_reads(w->s, edge, subtask, &got, 1), 1));
    cr_assert(got.p0 == want.p0 && got.p1 == want.p1 && got.s0 == want.s0 && got.s1 == want.s1,
              "edge %zu, subtask %u: [%u, %u, %u, %u]", edge, subtask, got.p0, got.p1, got.s0,
              got.s1);
}

Test(scheduling, says_what_a_task_reads_and_writes) /* [5.2, 5.6] */
{
    static const struct pliant_vertex_spec uneven[] = {
        {.id = "a", .parallelism = 2}, {.id = "b", .parallelism = 5}, {.id = "c"}};
    static const struct pliant_edge_spec edges[] = {{0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING},
                                                    {0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                                    {1, 2, PLIANT_POINTWISE, PLIANT_BLOCKING},
                                                    {0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED}};
    struct world w = WORLD(uneven, edges, FIXED_DELAY("9", "1 s"));

    cr_assert(eq(u32, pliant_subpartitions(w.s, 0, 0), 0)); /* no tasks yet */
    cr_assert(eq(sz, pliant_reads(w.s, 0, 0, NULL, 0), 0));
    world_start(&w);
    cr_assert(eq(u32, pliant_parallelism(w.s, (pliant_vertex_id){C}), 1)); /* not fixed: 1 */
    cr_assert(eq(u32, pliant_subpartitions(w.s, 0, 0), 3));
    cr_assert(eq(u32, pliant_subpartitions(w.s, 0, 1), 2));
    cr_assert(eq(u32, pliant_subpartitions(w.s, 0, 2), 0));
    cr_assert(eq(u32, pliant_subpartitions(w.s, 1, 1), 5));
    cr_assert(eq(u32, pliant_subpartitions(w.s, 2, 4), 1));
    cr_assert(eq(u32, pliant_subpartitions(w.s, 3, 0), 0));
    for (uint32_t k = 0; k < 5; k++) {
        expect_read(&w, 0, k, (struct pliant_read){k / 3, k / 3, k % (3 - k / 3), k % (3 - k / 3)});
        expect_read(&w, 1, k, (struct pliant_read){0, 1, k, k});
    }
    expect_read(&w, 2, 0, (struct pliant_read){0, 4, 0, 0});
    cr_assert(eq(sz, pliant_reads(w.s, 0, 5, NULL, 0), 0));
    cr_assert(eq(sz, pliant_reads(w.s, 3, 0, NULL, 0), 0));
    cr_assert(eq(sz, pliant_reads(w.s, 4, 0, NULL, 0), 0));
    world_free(&w);
}

Test(scheduling, parallelism_is_fixed_and_edges_are_wired_as_the_job_says)
{
    static const struct pliant_vertex_spec uneven[] = {{.id = "a", .parallelism = 4},
                                                       {.id = "b", .parallelism = 2}};
    struct world w = WORLD(uneven, blocking_pointwise, FIXED_DELAY("9", "1 s"));
    const struct pliant_action *refused;

    world_node(&w, "n1", 9);
    world_start(&w);
    cr_assert(eq(int, pliant_edge_pattern(w.s, 0), PLIANT_POINTWISE));
    finish(&w, A, 2);
    finish(&w, A, 3);
    cr_assert(eq(int, state_of(&w, B, 1), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, state_of(&w, B, 0), PLIANT_TASK_CREATED));
    world_bounds(&w, 1, 2); /* [P-SCHED-5] */
    refused = world_action(&w, PLIANT_ACT_REFUSED, 0);
    cr_assert(refused && refused->flag[0] == PLIANT_REASON_FIXED_PARALLELISM);
    world_node(&w, "n2", 9);
    world_to(&w, 600000);
    cr_assert(eq(u64, world_counts(&w).rescales, 0));
    cr_assert(eq(u32, pliant_parallelism(w.s, (pliant_vertex_id){A}), 4));
    world_free(&w);
}

/* ---- results ---------------------------------------------------------------------------- */

Test(scheduling, results_that_nobody_will_read_any_more_are_released)
{
    struct world w = WORLD(two, blocking_pointwise, FIXED_DELAY("9", "1 s"));
    const struct pliant_action *act;

    world_node(&w, "n1", 4);
    world_start(&w);
    finish_vertex(&w, A);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 0));
    finish(&w, B, 1); /* [P-SCHED-6] */
    act = world_action(&w, PLIANT_ACT_RELEASE_RESULT, 0);
    cr_assert(act != NULL);
    cr_assert(eq(u32, act->result.edge, 0));
    cr_assert(eq(u32, act->result.producer.vertex.v, A));
    cr_assert(eq(u32, act->result.producer.subtask, 1));
    cr_assert(eq(u32, act->result.producer.attempt, 1));
    world_free(&w);

    w = WORLD(two, blocking_pointwise, FIXED_DELAY("9", "1 s"),
              "jobmanager.partition.release-during-job-execution", "false");
    world_node(&w, "n1", 4);
    world_start(&w);
    finish_vertex(&w, A);
    finish(&w, B, 1);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 0));
    world_free(&w);
}

Test(scheduling, finished_producers_restart_only_when_their_results_are_not_available)
{
    struct world w = WORLD(two, blocking_all, FIXED_DELAY("99", "0 s"));

    world_node(&w, "n1", 4);
    world_start(&w);
    finish_vertex(&w, A);
    world_fail_task(&w, B, 0, true); /* [P-SET-2] */
    expect_states(&w, A, PLIANT_TASK_FINISHED);
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    cr_assert(eq(u32, attempt_of(&w, A, 0), 1));
    cr_assert(eq(u32, attempt_of(&w, B, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, B, 1), 1), "b:1 is another region");

    fail_to_read(&w, B, 1, 0); /* [P-SET-3]: a:0 again, and with it all that read it */
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 1));
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_FINISHED));
    expect_states(&w, B, PLIANT_TASK_CREATED);
    finish(&w, A, 0);
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    world_free(&w);
}

Test(scheduling, a_result_that_was_released_is_made_anew)
{
    struct world w = WORLD(three, stages, FIXED_DELAY("99", "0 s"));

    world_node(&w, "n1", 4);
    world_start(&w);
    finish_vertex(&w, A);
    finish_vertex(&w, B);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 2)); /* a's */
    expect_states(&w, C, PLIANT_TASK_RUNNING);
    /* c:0 fails to read b:0: b:0 needs a again */
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                          .failure = {.task = {{C}, 0, attempt_of(&w, C, 0)},
                                                      .recoverable = true,
                                                      .input_lost = true,
                                                      .edge = 1,
                                                      .producer = 0}});
    expect_states(&w, A, PLIANT_TASK_RUNNING); /* [P-SET-2] */
    expect_states(&w, B, PLIANT_TASK_CREATED);
    expect_states(&w, C, PLIANT_TASK_CREATED);
    finish_vertex(&w, A);
    finish_vertex(&w, B);
    expect_states(&w, C, PLIANT_TASK_RUNNING);
    finish_vertex(&w, C);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

Test(scheduling, a_result_that_is_lost_with_its_node_is_made_anew_if_somebody_waits_for_it)
{
    struct world w = WORLD(two, blocking_all, FIXED_DELAY("99", "0 s"));

    world_start(&w);
    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    finish(&w, A, 0);
    world_lose(&w, "n1"); /* [P-SET-6] */
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 1));
    world_node(&w, "n3", 1);
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    finish_vertex(&w, A);
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    cr_assert(eq(u64, world_counts(&w).restarts, 1));
    world_free(&w);

    /* who runs has it open, and says so if it can't read on */
    w = WORLD(two, blocking_all, FIXED_DELAY("99", "0 s"), LONG_IDLE);
    world_start(&w);
    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_drain(&w, "n2", 0);
    world_withdraw(&w, "n2");
    finish_vertex(&w, A);
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    world_free(&w);
}

Test(scheduling, results_that_outlive_nodes_are_not_made_anew)
{
    struct world w = WORLD(two, blocking_all, FIXED_DELAY("99", "0 s"), LONG_IDLE,
                           "pliant.results.outlive-nodes", "true");

    world_start(&w);
    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    finish(&w, A, 0);
    world_lose(&w, "n1");
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_FINISHED));
    cr_assert(eq(u64, world_counts(&w).restarts, 0));
    world_lose(&w, "n2");
    cr_assert(eq(u32, attempt_of(&w, A, 0), 1));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 2), "it had not finished");
    world_node(&w, "n3", 2);
    finish(&w, A, 1);
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    world_drain(&w, "n3", 0);
    world_node(&w, "n4", 2);
    world_lose(&w, "n3");
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    expect_states(&w, A, PLIANT_TASK_FINISHED);
    fail_to_read(&w, B, 0, 0); /* it is not there after all */
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 2));
    world_free(&w);
}

Test(scheduling, a_result_is_lost_with_its_own_node_only)
{
    struct world w = WORLD(two, blocking_all, FIXED_DELAY("99", "0 s"), LONG_IDLE);

    world_start(&w);
    world_node(&w, "n1", 0); /* it is offered nothing of this one yet */
    world_node(&w, "n2", 2);
    finish(&w, A, 0);
    world_lose(&w, "n1");
    cr_assert(eq(u32, attempt_of(&w, A, 0), 1));
    world_lose(&w, "n2");
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    world_free(&w);
}

/* ---- failures --------------------------------------------------------------------------- */

Test(scheduling, a_failure_restarts_its_region_and_what_reads_from_it)
{
    struct world w = WORLD(three, mixed, FIXED_DELAY("99", "1 s"));

    world_node(&w, "n1", 8);
    world_start(&w);
    finish(&w, A, 0);
    finish(&w, B, 0);
    cr_assert(eq(int, state_of(&w, C, 0), PLIANT_TASK_RUNNING));
    world_fail_task(&w, B, 1, true); /* [P-SET-1] */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_CANCEL), 1)); /* a:1 */
    world_to(&w, 1000);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 2));
    cr_assert(eq(u32, attempt_of(&w, B, 1), 2));
    cr_assert(eq(u32, attempt_of(&w, C, 1), 1), "not started: walked through only [P-SET-4]");
    cr_assert(eq(u32, attempt_of(&w, A, 0), 1));
    cr_assert(eq(u32, attempt_of(&w, C, 0), 1));
    cr_assert(eq(u64, world_counts(&w).restarts, 1));
    cr_assert(eq(u64, world_counts(&w).region_restarts, 1));
    world_free(&w);
}

Test(scheduling, a_task_that_somebody_else_stops_has_failed)
{
    struct world w = WORLD(two, blocking_pointwise, FIXED_DELAY("9", "1 s"));
    const struct pliant_failure *entry;

    world_node(&w, "n1", 4);
    world_start(&w);
    world_task(&w, PLIANT_EV_TASK_CANCELED, A, 0);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    world_to(&w, 1000);
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 1));
    entry = pliant_failure_at(w.s, 0);
    cr_assert(ne(ptr, (void *)(uintptr_t)entry, NULL));
    cr_assert(eq(str, (char *)(uintptr_t)entry->items[0].cause, "it was canceled by others"));
    world_free(&w);
}

Test(scheduling, finished_tasks_of_a_region_that_restarts_restart_too)
{
    struct world w = WORLD(three, mixed, FIXED_DELAY("99", "0 s"));

    world_node(&w, "n1", 8);
    world_start(&w);
    finish(&w, A, 0);
    world_fail_task(&w, B, 0, true); /* [P-SET-1] */
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    world_free(&w);
}

Test(scheduling, full_and_global_failures_restart_every_task)
{
    struct world w = WORLD(three, mixed, FIXED_DELAY("99", "0 s"),
                           "jobmanager.execution.failover-strategy", "full");

    world_node(&w, "n1", 8);
    world_start(&w);
    world_fail_task(&w, B, 0, true); /* [P-SET-5] */
    for (uint32_t v = A; v <= C; v++)
        for (uint32_t i = 0; i < 2; i++)
            cr_assert(eq(u32, attempt_of(&w, v, i), 2), "%u:%u", v, i);
    world_free(&w);

    w = WORLD(three, mixed, FIXED_DELAY("99", "0 s"));
    world_node(&w, "n1", 8);
    world_start(&w);
    world_fail(&w, true); /* [P-FO-7] */
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    for (uint32_t v = A; v <= C; v++)
        for (uint32_t i = 0; i < 2; i++)
            cr_assert(eq(u32, attempt_of(&w, v, i), 2), "%u:%u", v, i);
    world_free(&w);
}

Test(scheduling, of_overlapping_plans_the_later_one_owns_a_task)
{
    struct world w = WORLD(three, mixed, FIXED_DELAY("99", "1 s"));

    world_node(&w, "n1", 8);
    world_start(&w);
    finish(&w, A, 0);
    finish(&w, B, 0);
    world_fail_task(&w, C, 0, true); /* plan 1: c:0 */
    world_to(&w, 400);
    world_fail(&w, true); /* plan 2: all [P-FO-3] */
    world_to(&w, 1000);
    cr_assert(eq(u32, attempt_of(&w, C, 0), 1), "the earlier plan has nothing left");
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    world_to(&w, 1400);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    cr_assert(eq(u32, attempt_of(&w, C, 0), 2), "restarted once");
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    world_free(&w);
}

/* a:0 and a:1 have finished on n1 and n2; b:0 and b:1 read them, on n3 and n4. b:1 hangs. */
static struct world reading_apart(void)
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 2, .slot_sharing_group = "1"},
        {.id = "b", .parallelism = 2, .slot_sharing_group = "2"}};
    struct world w = WORLD(vertices, blocking_all, FIXED_DELAY("99", "0 s"), LONG_IDLE);

    world_start(&w);
    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_node(&w, "n3", 1);
    world_node(&w, "n4", 1);
    finish_vertex(&w, A);
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    cr_assert(eq(str, (char *)pliant_node_name(w.s, pliant_slot_node(w.s, info_of(&w, B, 1).slot)),
                 "n4"));
    w.cancels = false;
    return w;
}

Test(scheduling, a_plan_discards_no_result_that_a_task_of_a_later_plan_still_reads) /* [P-FO-3] */
{
    struct world w = reading_apart();

    fail_to_read(&w, B, 0, 0); /* plan 1: a:0, b:0, b:1 */
    cr_assert(eq(int, state_of(&w, B, 1), PLIANT_TASK_CANCELING));
    world_lose(&w, "n2"); /* plan 2: a:1, b:0, b:1 */
    world_to(&w, w.now_ms + 1000);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 0));
    expect_states(&w, A, PLIANT_TASK_FINISHED);
    world_lose(&w, "n1"); /* plan 3: the same, of whom plan 1 has a:0 yet */
    cr_assert(eq(u32, attempt_of(&w, A, 0), 1));
    world_task(&w, PLIANT_EV_TASK_CANCELED, B, 1);
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2), "all plans are carried out");
    cr_assert(eq(u32, attempt_of(&w, A, 1), 2));
    w.cancels = true;
    finish_vertex(&w, A);
    finish_vertex(&w, B);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);

    w = reading_apart();
    fail_to_read(&w, B, 0, 0);
    world_lose(&w, "n2");
    world_task(&w, PLIANT_EV_TASK_CANCELED, B, 1);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 1));
    cr_assert(eq(u32, world_action(&w, PLIANT_ACT_RELEASE_RESULT, 0)->result.producer.subtask, 0));
    expect_states(&w, A, PLIANT_TASK_RUNNING);
    w.cancels = true;
    world_free(&w);
}

Test(scheduling, who_hangs_is_given_up_in_the_time_of_the_first_plan_that_waits) /* [S-FLG-4] */
{
    struct world w = reading_apart();
    int64_t began_ms = w.now_ms;

    fail_to_read(&w, B, 0, 0);
    world_to(&w, began_ms + 100000);
    world_lose(&w, "n2");
    world_to(&w, began_ms + 179999);
    cr_assert(eq(u32, world_counts(&w).nodes, 3));
    world_to(&w, began_ms + 180000);
    cr_assert(eq(u32, world_counts(&w).nodes, 2), "n4 is given up");
    expect_states(&w, A, PLIANT_TASK_RUNNING);
    w.cancels = true;
    world_free(&w);
}

/* Two regions, exponential back-off 1 s: worked in 3.10. */
Test(scheduling, two_failures_close_together_are_one_attempt_where_the_strategy_merges_them)
{
    struct world w = WORLD(two, pipelined, "restart-strategy.type", "exponential-delay",
                           "restart-strategy.exponential-delay.initial-backoff", "1 s",
                           "restart-strategy.exponential-delay.jitter-factor", "0");

    world_node(&w, "n1", 2);
    world_start(&w);
    world_fail_task(&w, A, 0, true);
    world_to(&w, 400);
    world_fail_task(&w, B, 1, true);
    cr_assert(eq(u64, world_counts(&w).restarts, 1)); /* [P-FO-10] */
    world_to(&w, 999);
    cr_assert(eq(u32, world_counts(&w).tasks_running, 0));
    world_to(&w, 1000);
    cr_assert(eq(u32, world_counts(&w).tasks_running, 4));
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    cr_assert(eq(u32, pliant_failure_at(w.s, 0)->n, 2), "concurrent [P-FO-6]");
    cr_assert(pliant_failure_at(w.s, 1) == NULL);
    world_free(&w);

    w = WORLD(two, pipelined, FIXED_DELAY("99", "1 s"));
    world_node(&w, "n1", 2);
    world_start(&w);
    world_fail_task(&w, A, 0, true);
    world_to(&w, 400);
    world_fail_task(&w, B, 1, true);
    cr_assert(eq(u64, world_counts(&w).restarts, 2));
    world_to(&w, 1000);
    cr_assert(eq(u32, world_counts(&w).tasks_running, 2));
    world_to(&w, 1400);
    cr_assert(eq(u32, world_counts(&w).tasks_running, 4));
    cr_assert(eq(u32, pliant_failure_at(w.s, 0)->n, 1), "an entry each [P-FO-6]");
    cr_assert(eq(u32, pliant_failure_at(w.s, 1)->n, 1));
    cr_assert(eq(u32, pliant_failure_at(w.s, 1)->items[0].task.vertex.v, A));
    world_free(&w);
}

Test(scheduling, failures_of_tasks_that_still_wait_are_concurrent_to_what_takes_them_over)
{
    struct world w = WORLD(two, pipelined, FIXED_DELAY("99", "1 s"));
    const struct pliant_failure *last;

    world_node(&w, "n1", 2);
    world_start(&w);
    world_fail_task(&w, A, 0, true);
    world_to(&w, 400);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_GLOBAL_FAILURE,
                                          .failure = {.recoverable = true, .cause = "all of it"}});
    world_to(&w, 1400);
    last = pliant_failure_at(w.s, 0); /* [P-FO-6] */
    cr_assert(eq(u32, last->n, 2));
    cr_assert(last->items[0].task.vertex.v == 0);
    cr_assert(eq(u32, last->items[1].task.vertex.v, A));
    cr_assert(eq(u32, pliant_failure_at(w.s, 1)->n, 1));
    world_fail_task(&w, A, 0, true);
    world_to(&w, 1800);
    world_fail_task(&w, B, 1, true);
    world_to(&w, 3000);
    cr_assert(eq(u32, pliant_failure_at(w.s, 0)->n, 1), "not those of others");
    world_free(&w);

    w = WORLD(two, pipelined, FIXED_DELAY("2", "1 min"));
    world_node(&w, "n1", 2);
    world_start(&w);
    world_fail_task(&w, A, 0, true);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_GLOBAL_FAILURE,
                                          .failure = {.recoverable = true, .cause = "all of it"}});
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_GLOBAL_FAILURE,
                                          .failure = {.recoverable = true, .cause = "again"}});
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED));
    last = pliant_failure_at(w.s, 0);
    cr_assert(eq(u32, last->n, 2), "once, though two entries tell it [P-FO-6]");
    cr_assert(eq(u32, last->items[1].task.vertex.v, A));
    world_free(&w);
}

Test(scheduling, the_delay_and_the_cancelling_run_side_by_side)
{
    struct world w = WORLD(two, pipelined, FIXED_DELAY("99", "1 s"));

    world_node(&w, "n1", 2);
    world_start(&w);
    w.cancels = false;
    world_fail_task(&w, A, 0, true);
    world_to(&w, 5000); /* [P-FO-2] */
    cr_assert(eq(int, state_of(&w, B, 0), PLIANT_TASK_CANCELING));
    world_fail_task(&w, B, 0, true); /* it was going down: no news [P-FO-1] */
    cr_assert(eq(int, state_of(&w, B, 0), PLIANT_TASK_RUNNING), "at once: the delay is over");
    cr_assert(eq(u64, world_counts(&w).restarts, 1));
    world_free(&w);
}

Test(scheduling, a_job_that_fails_says_why)
{
    struct world w = WORLD(two, pipelined, FIXED_DELAY("1", "0 s"));
    const struct pliant_failure *last;

    world_node(&w, "n1", 2);
    world_start(&w);
    world_fail_task(&w, A, 0, true);
    world_fail_task(&w, A, 1, true); /* [P-FO-9] */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED));
    last = pliant_failure_at(w.s, 0);
    cr_assert(eq(int, last->items[0].reason, PLIANT_REASON_RESTARTS_SUPPRESSED));
    cr_assert(last->items[0].task.vertex.v == 0);
    cr_assert(eq(str, (char *)last->items[0].cause,
                 "Recovery is suppressed by fixed-delay (attempts 1, delay 0 ms): it broke"));
    cr_assert(eq(u32, last->n, 2), "with the current attempt that failed [P-FO-6]");
    cr_assert(eq(str, (char *)pliant_failure_at(w.s, 1)->items[0].cause, "it broke"));
    world_free(&w);

    w = WORLD(two, pipelined, FIXED_DELAY("1", "0 s"));
    world_node(&w, "n1", 2);
    world_start(&w);
    world_fail_task(&w, A, 0, false); /* [P-FO-9] */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED));
    cr_assert(eq(str, (char *)pliant_failure_at(w.s, 0)->items[0].cause,
                 "The failure is not recoverable: it broke"));
    world_free(&w);
}

Test(scheduling, a_cancel_stops_what_runs_and_forgets_what_waits)
{
    struct world w = WORLD(two, blocking_all, FIXED_DELAY("99", "1 min"));

    world_node(&w, "n1", 2);
    world_start(&w);
    world_fail_task(&w, A, 0, true);
    world_plain(&w, PLIANT_EV_CANCEL); /* [P-FO-8] */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_CANCELED));
    world_to(&w, 120000);
    world_free(&w);

    w = WORLD(two, blocking_all, FIXED_DELAY("99", "1 min"));
    world_start(&w); /* nothing runs yet */
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_CANCELED));
    world_free(&w);
}

/* ---- checkpoints ------------------------------------------------------------------------ */

Test(scheduling, a_region_is_restored_from_the_latest_checkpoint)
{
    struct world w = WORLD(two, pipelined, FIXED_DELAY("99", "0 s"), CHECKPOINTS);
    const struct pliant_action *act;

    world_node(&w, "n1", 2);
    world_start(&w);
    world_to(&w, 10000);
    cr_assert(eq(u64, w.checkpoint, 1));
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, true);
    world_to(&w, 20000);
    cr_assert(eq(u64, w.checkpoint, 2));
    world_fail_task(&w, A, 0, true); /* [P-FO-4]: the pending one is given up */
    act = world_action(&w, PLIANT_ACT_DEPLOY, 0);
    cr_assert(act && act->deploy.restore == 1);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, true);
    cr_assert(eq(u64, world_counts(&w).checkpoint, 1));
    world_free(&w);
}

Test(scheduling, a_stop_that_fails_with_a_task_goes_on_with_its_region_restarted)
{
    struct world w = WORLD(two, pipelined, FIXED_DELAY("99", "1 s"), CHECKPOINTS);

    world_node(&w, "n1", 2);
    world_start(&w);
    world_stop(&w);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_STOP_WITH_SAVEPOINT));
    world_fail_task(&w, A, 0, true);
    world_savepoint(&w, false);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    world_to(&w, w.now_ms + 1000);
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, B, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 1));
    cr_assert(eq(u32, world_counts(&w).tasks_running, 4));
    world_stop(&w);
    world_savepoint(&w, true);
    world_all_tasks(&w, PLIANT_EV_TASK_FINISHED);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

/* ---- drains ----------------------------------------------------------------------------- */

Test(scheduling, regions_leave_a_draining_node_and_the_others_stay)
{
    struct world w = WORLD(two, pipelined, FIXED_DELAY("99", "1 s"), LONG_IDLE);

    world_start(&w);
    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_node(&w, "n3", 1);
    world_drain(&w, "n1", 60000); /* without checkpoints: at once, there is room */
    cr_assert(eq(u64, world_counts(&w).drain_moves, 1)); /* [P-SCHED-9] */
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 1));
    cr_assert(eq(u32, world_counts(&w).tasks_running, 4));
    world_lose(&w, "n1");
    cr_assert(eq(u64, world_counts(&w).drain_moves, 1));
    world_free(&w);

    w = WORLD(two, pipelined, FIXED_DELAY("99", "1 s"), LONG_IDLE);
    world_start(&w);
    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_drain(&w, "n1", 60000);
    world_to(&w, 54999);
    cr_assert(eq(u32, world_counts(&w).tasks_running, 4));
    world_to(&w, 55000); /* the end less the lead */
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_CREATED));
    world_node(&w, "n3", 1);
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 1));
    world_free(&w);
}

/* b:0 keeps the slot, since there is no other one; a:0 may come back to it when the node stays. */
Test(scheduling, a_unit_is_at_home_again_when_a_drain_is_withdrawn)
{
    static const struct pliant_vertex_spec ones[] = {{.id = "a", .parallelism = 1},
                                                     {.id = "b", .parallelism = 1}};
    struct world w = world_new((struct world_spec){
        .vertices = ones, .n_vertices = 2, .options = {DEFAULT, FIXED_DELAY("9", "1 s")}});

    world_start(&w);
    world_node(&w, "n1", 1);
    world_fail_task(&w, A, 0, true);
    world_drain(&w, "n1", 600000);
    world_to(&w, 2000);
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_CREATED), "nothing starts on such a node");
    world_withdraw(&w, "n1");
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, B, 0), 1));
    world_free(&w);
}

/* ---- bad input -------------------------------------------------------------------------- */

/* a:0 and x:0 share a slot; e reads a and c. */
static const struct pliant_vertex_spec apart[] = {
    {.id = "a", .parallelism = 1, .slot_sharing_group = "1"},
    {.id = "x", .parallelism = 1, .slot_sharing_group = "1"},
    {.id = "c", .parallelism = 1, .slot_sharing_group = "2"},
    {.id = "e", .parallelism = 1, .slot_sharing_group = "3"}};
static const struct pliant_edge_spec into_e[] = {{0, 3, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                                 {2, 3, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};

Test(scheduling, a_plan_gives_up_no_node_of_a_task_that_a_later_plan_restarts) /* [S-FLG-4] */
{
    struct world w = WORLD(apart, into_e, FIXED_DELAY("99", "1 s"), LONG_IDLE);
    int64_t began_ms;

    world_start(&w);
    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_node(&w, "n3", 1);
    began_ms = w.now_ms;
    w.cancels = false;
    world_drain(&w, "n1", 600000); /* moves a:0 and x:0; the latter hangs */
    world_task(&w, PLIANT_EV_TASK_CANCELED, A, 0);
    world_to(&w, began_ms + 10000);
    world_fail_task(&w, C, 0, true); /* restarts a:0 too: e has yet to read what it writes */
    world_to(&w, began_ms + 12000);
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    world_node(&w, "n4", 4);
    world_to(&w, began_ms + 100000);
    world_drain(&w, "n3", 600000); /* now a:0 hangs as well */
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_CANCELING));
    world_to(&w, began_ms + 190000);
    cr_assert(eq(u32, world_counts(&w).nodes, 3), "n1 is given up");
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_CANCELING));
    world_to(&w, began_ms + 290000);
    cr_assert(eq(u32, world_counts(&w).nodes, 2), "then n3");
    w.cancels = true;
    world_free(&w);
}

Test(scheduling, jobs_that_another_scheduler_must_run_are_refused)
{
    static const struct {
        const struct pliant_edge_spec *edges;
        size_t n;
        const char *scheduler, *says;
    } table[] = {
        {mixed, 2, "adaptive", "jobmanager.scheduler: default"}, /* [P-SCHED-8] */
        {stages, 2, "adaptive", "jobmanager.scheduler: adaptive"},
        {mixed, 2, "default", NULL},
        {stages, 2, "default", NULL},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct pliant_job_spec spec = {
            .vertices = three, .n_vertices = 3, .edges = table[i].edges, .n_edges = table[i].n};
        struct pliant_error err = {0};
        struct pliant_config cfg;
        struct pliant_job *job;
        int r;

        pliant_config_init(&cfg);
        pliant_config_set(&cfg, "jobmanager.scheduler", table[i].scheduler, NULL);
        cr_assert(eq(int, pliant_config_resolve(&cfg, NULL), 0));
        cr_assert(eq(int, pliant_job_new(&spec, NULL, &job, NULL), 0));
        r = pliant_job_check(job, &cfg, &err);
        cr_assert(eq(int, r != 0, table[i].says != NULL));
        if (table[i].says)
            cr_assert(strstr(err.text, table[i].says) != NULL, "%s", err.text);
        pliant_job_destroy(&job);
    }
}

Test(scheduling, a_failure_that_names_no_edge_of_the_job_is_malformed)
{
    struct world w = WORLD(two, blocking_all, FIXED_DELAY("9", "1 s"));
    struct pliant_event ev = {
        .kind = PLIANT_EV_TASK_FAILED,
        .failure = {.task = {{A}, 0, 1}, .recoverable = true, .input_lost = true, .edge = 1}};
    struct pliant_actions acts;

    world_node(&w, "n1", 2);
    world_start(&w);
    cr_assert(lt(int, pliant_step(w.s, w.now_ms, &ev, &acts), 0));
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    world_free(&w);
}

Test(scheduling, one_failure_of_100_regions_restarts_two_of_200_tasks)
{
    static const struct pliant_vertex_spec wide[] = {{.id = "a", .parallelism = 100},
                                                     {.id = "b", .parallelism = 100}};
    struct world w = WORLD(wide, pipelined, FIXED_DELAY("9", "0 s"));
    uint32_t anew = 0;

    world_node(&w, "n1", 100);
    world_start(&w);
    world_fail_task(&w, B, 17, true);
    for (uint32_t i = 0; i < 100; i++)
        anew += (attempt_of(&w, A, i) != 1) + (attempt_of(&w, B, i) != 1);
    cr_assert(eq(u32, anew, 2));
    world_free(&w);
}

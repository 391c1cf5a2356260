/* Speculative execution: sections 6.1 to 6.3 of the rules of failover. Who is slow is tested by
 * vectors (slow_tasks) */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <string.h>

#include "graph_world.h"

#define SPECULATIVE                                                                                \
    "jobmanager.scheduler", "default", "execution.batch.speculative.enabled", "true",              \
        "slow-task-detector.execution-time.baseline-lower-bound", "10 s", "slot.idle.timeout",     \
        "1 h"
#define MAX(n) "execution.batch.speculative.max-concurrent-executions", n
#define BLOCK(duration) "execution.batch.speculative.block-slow-node-duration", duration

static const struct pliant_vertex_spec one[] = {{.id = "a", .parallelism = 4}};
static const struct pliant_vertex_spec never_twice[] = {
    {.id = "a", .parallelism = 4, .no_concurrent_attempts = true}};
static const struct pliant_vertex_spec two[] = {{.id = "a", .parallelism = 4},
                                                {.id = "b", .parallelism = 4}};
static const struct pliant_edge_spec all_to_all[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
static const struct pliant_edge_spec pipelined[] = {{0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED}};

#define OF(v, ...)                                                                                 \
    ((struct world_spec){.vertices = (v),                                                          \
                         .n_vertices = sizeof(v) / sizeof *(v),                                    \
                         .options = {SPECULATIVE, __VA_ARGS__}})
#define WITH_EDGE(v, e, ...)                                                                       \
    ((struct world_spec){.vertices = (v),                                                          \
                         .n_vertices = sizeof(v) / sizeof *(v),                                    \
                         .edges = (e),                                                             \
                         .n_edges = 1,                                                             \
                         .options = {SPECULATIVE, __VA_ARGS__}})

/* ---- a world ---------------------------------------------------------------------------- */

static struct pliant_task_info attempt(const struct world *w, uint32_t vertex, uint32_t subtask,
                                       uint32_t i)
{
    struct pliant_task_info info = {.attempt = 0};

    pliant_attempt_info(w->s, (pliant_vertex_id){vertex}, subtask, i, &info);
    return info;
}

static uint32_t n_attempts(const struct world *w, uint32_t vertex, uint32_t subtask)
{
    struct pliant_task_info unused;
    uint32_t n = 0;

    while (pliant_attempt_info(w->s, (pliant_vertex_id){vertex}, subtask, n, &unused))
        n++;
    return n;
}

static const char *node_of(const struct world *w, uint32_t vertex, uint32_t subtask, uint32_t i)
{
    return pliant_node_name(w->s, pliant_slot_node(w->s, attempt(w, vertex, subtask, i).slot));
}

static void expect_attempt(const struct world *w, uint32_t vertex, uint32_t subtask, uint32_t i,
                           uint32_t number, enum pliant_task_state state)
{
    struct pliant_task_info info = attempt(w, vertex, subtask, i);

    cr_assert(eq(u32, info.attempt, number), "attempt %u of %u:%u", i, vertex, subtask);
    cr_assert(eq(int, info.state, state), "attempt %u is %s", number,
              pliant_task_state_name(info.state));
}

static void tell(struct world *w, enum pliant_event_kind kind, uint32_t vertex, uint32_t subtask,
                 uint32_t number)
{
    world_event(w, (struct pliant_event){.kind = kind, .task = {{vertex}, subtask, number}});
}

static void fail_attempt(struct world *w, uint32_t vertex, uint32_t subtask, uint32_t number,
                         bool recoverable)
{
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                         .failure = {.task = {{vertex}, subtask, number},
                                                     .recoverable = recoverable,
                                                     .cause = "it broke"}});
}

/* Four nodes with a slot each; the tasks of `a` run on them in order. */
static struct world started(struct world_spec spec)
{
    static const char *const names[] = {"n1", "n2", "n3", "n4"};
    struct world w = world_new(spec);

    for (size_t i = 0; i < 4; i++)
        world_node(&w, names[i], 1);
    world_start(&w);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert(eq(int, attempt(&w, A, i, 0).state, PLIANT_TASK_RUNNING));
    return w;
}

/* Three have finished after 8 s; a:3 on the node n4 is slow from 12 s on. */
static struct world with_a_slow_task(struct world_spec spec)
{
    struct world w = started(spec);

    world_to(&w, 8000);
    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, A, i);
    world_to(&w, 11999);
    return w;
}

/* ... and has a second attempt, elsewhere. */
static struct world speculating(struct world_spec spec)
{
    struct world w = with_a_slow_task(spec);

    world_to(&w, 12000);
    cr_assert(ge(u32, n_attempts(&w, A, 3), 2));
    return w;
}

/* ---- 6.1 -------------------------------------------------------------------------------- */

Test(speculation, slow_tasks_are_looked_for_at_every_interval) /* [P-SPEC-1] */
{
    struct world w = with_a_slow_task(OF(one, "slow-task-detector.check-interval", "5 s"));

    world_to(&w, 14999);
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 0));
    world_to(&w, 15000);
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 1));
    cr_assert(eq(i64, pliant_next_deadline(w.s), 20000));
    world_task(&w, PLIANT_EV_TASK_FINISHED, A, 3);
    world_free(&w);
}

Test(speculation, who_is_slow_is_measured_by_those_that_have_finished) /* [P-SPEC-2] */
{
    struct world w = with_a_slow_task(OF(one, NULL));

    cr_assert(eq(u32, world_counts(&w).slow_tasks, 0), "12 s is 1.5 times their 8 s");
    world_to(&w, 12000);
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 1));
    world_free(&w);

    w = started(OF(one, NULL));
    world_to(&w, 8000);
    world_task(&w, PLIANT_EV_TASK_FINISHED, A, 0);
    world_task(&w, PLIANT_EV_TASK_FINISHED, A, 1);
    world_to(&w, 60000);
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 0), "two of four are too few");
    world_free(&w);

    w = started(OF(one, NULL));
    world_to(&w, 1000);
    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, A, i);
    world_to(&w, 9999);
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 0), "the lower bound is 10 s");
    world_to(&w, 10000);
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 1));
    world_free(&w);
}

Test(speculation, nobody_looks_unless_it_is_asked_for_and_safe) /* [P-SPEC-3] */
{
    static const struct {
        const struct pliant_edge_spec *edge;
        const char *key, *value;
    } rows[] = {
        {NULL, "execution.batch.speculative.enabled", "false"},
        {NULL, "execution.checkpointing.interval", "1 h"}, /* both would restore the same state */
        {pipelined, "pliant.seed", "1"},                   /* its consumers read along */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world_spec spec = {.vertices = two,
                                  .n_vertices = 2,
                                  .edges = rows[i].edge,
                                  .n_edges = rows[i].edge != NULL,
                                  .options = {SPECULATIVE, rows[i].key, rows[i].value}};
        struct world w = world_new(spec);

        world_node(&w, "n1", 8);
        world_node(&w, "n2", 8);
        world_start(&w);
        for (uint32_t k = 0; k < 3; k++)
            world_task(&w, PLIANT_EV_TASK_FINISHED, A, k);
        world_to(&w, 100000);
        cr_expect(eq(u32, world_counts(&w).slow_tasks, 0), "row %zu", i);
        cr_expect(eq(u32, n_attempts(&w, A, 3), 1), "row %zu", i);
        world_free(&w);
    }
}

/* ---- 6.2 -------------------------------------------------------------------------------- */

Test(speculation, a_slow_task_gets_another_attempt_on_another_node) /* [P-SPEC-4] */
{
    struct world w = speculating(OF(one, NULL));

    expect_attempt(&w, A, 3, 0, 1, PLIANT_TASK_RUNNING);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_RUNNING);
    cr_assert(eq(str, (char *)node_of(&w, A, 3, 0), "n4"));
    cr_assert(ne(str, (char *)node_of(&w, A, 3, 1), "n4"));
    cr_assert(eq(u32, world_counts(&w).tasks_live, 2));
    cr_assert(eq(u32, world_counts(&w).tasks_running, 1));
    cr_assert(eq(u32, world_counts(&w).slots_used, 2));
    world_to(&w, 60000);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 2), "no more than two at a time");
    world_free(&w);
}

Test(speculation, the_nodes_of_slow_tasks_are_blocked_for_a_time) /* [P-SPEC-5] */
{
    struct world w = with_a_slow_task(OF(two, BLOCK("30 s"), MAX("1")));
    struct pliant_blocked blocked = {0};
    const struct pliant_action *act;

    world_to(&w, 12000);
    act = world_action(&w, PLIANT_ACT_BLOCK_NODE, 0);
    cr_assert_not_null(act);
    cr_assert(eq(str, (char *)pliant_node_name(w.s, act->blocked.node), "n4"));
    cr_assert(eq(i64, act->blocked.until_at_ms, 42000));
    cr_assert(eq(u32, world_counts(&w).blocked_nodes, 1));
    cr_assert(eq(sz, pliant_blocked(w.s, NULL, 0), 1));
    cr_assert(eq(sz, pliant_blocked(w.s, &blocked, 1), 1));
    cr_assert(eq(str, (char *)pliant_node_name(w.s, blocked.node), "n4"));
    cr_assert(eq(i64, blocked.until_at_ms, 42000));
    cr_assert(eq(int, attempt(&w, A, 3, 0).state, PLIANT_TASK_RUNNING), "it runs on");
    world_to(&w, 15000);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_BLOCK_NODE), 0), "told once");
    world_task(&w, PLIANT_EV_TASK_FINISHED, A, 3);
    world_to(&w, 44999);
    cr_assert(eq(u32, world_counts(&w).blocked_nodes, 1), "the later end counts");
    world_to(&w, 45000);
    cr_assert(eq(u32, world_counts(&w).blocked_nodes, 0));
    world_free(&w);
}

Test(speculation, by_the_default_scheduler_too_attempts_and_closed_slots_are_made_up_for)
{
    struct world w = with_a_slow_task(OF(one, BLOCK("30 s"), FIXED_DELAY("9", "10 s")));

    cr_assert(eq(u32, world_counts(&w).desired, 4));
    world_to(&w, 12000);
    cr_assert(eq(u32, world_counts(&w).desired, 5), "a:3 runs twice");
    cr_assert_not_null(world_action(&w, PLIANT_ACT_DECLARE, 0));
    fail_attempt(&w, A, 3, 1, true);
    cr_assert(eq(u32, world_counts(&w).desired, 5), "and now n4 is free and closed");
    world_free(&w);
}

Test(speculation, free_slots_of_blocked_nodes_are_not_used_until_the_block_ends) /* [P-SPEC-5] */
{
    struct world w = with_a_slow_task(OF(one, BLOCK("30 s"), MAX("1"), FIXED_DELAY("9", "0 s")));

    world_to(&w, 12000);
    world_lose(&w, "n1");
    world_lose(&w, "n2");
    world_lose(&w, "n3");
    world_fail_task(&w, A, 3, true);
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_CREATED);
    cr_assert(eq(u32, world_counts(&w).slots_offered, 1), "the slot of n4");
    world_to(&w, 41999);
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_CREATED);
    world_to(&w, 42000);
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_RUNNING);
    cr_assert(eq(str, (char *)node_of(&w, A, 3, 0), "n4"));
    world_free(&w);
}

Test(speculation, no_node_is_blocked_for_no_time) /* [P-SPEC-5] */
{
    struct world w = with_a_slow_task(OF(one, BLOCK("0 s")));

    world_to(&w, 12000);
    cr_assert(eq(u32, world_counts(&w).blocked_nodes, 0));
    cr_assert(eq(u32, n_attempts(&w, A, 3), 2));
    world_free(&w);
}

Test(speculation, a_task_that_may_not_run_twice_has_one_attempt_and_a_blocked_node) /* [P-SPEC-6] */
{
    struct world w = with_a_slow_task(OF(never_twice, NULL));

    world_to(&w, 20000);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 1));
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 1));
    cr_assert(eq(u32, world_counts(&w).blocked_nodes, 1));
    world_free(&w);
}

Test(speculation, there_are_as_many_attempts_at_a_time_as_the_option_says) /* [P-SPEC-7] */
{
    struct world w = with_a_slow_task(OF(one, MAX("3"), FIXED_DELAY("9", "1 s")));

    world_to(&w, 12000);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 3));
    expect_attempt(&w, A, 3, 2, 3, PLIANT_TASK_RUNNING);
    fail_attempt(&w, A, 3, 2, true);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 2));
    world_to(&w, 13000);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 3));
    expect_attempt(&w, A, 3, 2, 4, PLIANT_TASK_RUNNING);
    world_free(&w);
}

Test(speculation, an_attempt_waits_for_a_slot_behind_all_that_have_none) /* [P-SPEC-8] */
{
    static const struct pliant_vertex_spec apart[] = {
        {.id = "a", .parallelism = 4}, {.id = "b", .parallelism = 4, .slot_sharing_group = "b"}};
    struct world w = with_a_slow_task(OF(apart, NULL));

    expect_attempt(&w, B, 2, 0, 1, PLIANT_TASK_RUNNING); /* in the slots of a:0 to a:2 */
    expect_attempt(&w, B, 3, 0, 1, PLIANT_TASK_CREATED);
    world_to(&w, 12000);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_CREATED);
    cr_assert(eq(u32, world_counts(&w).tasks_live, 4));
    world_node(&w, "n5", 1);
    expect_attempt(&w, B, 3, 0, 1, PLIANT_TASK_RUNNING);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_CREATED);
    world_node(&w, "n6", 1);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_RUNNING);
    world_free(&w);
}

/* ---- 6.3 -------------------------------------------------------------------------------- */

Test(speculation, the_first_to_finish_is_the_result_and_the_others_are_canceled) /* [P-SPEC-9] */
{
    struct world w = speculating(OF(one, NULL));

    w.cancels = false;
    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 2);
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_FINISHED);
    expect_attempt(&w, A, 3, 1, 1, PLIANT_TASK_CANCELING);
    cr_assert(eq(u32, world_action(&w, PLIANT_ACT_CANCEL, 0)->task.attempt, 1));
    cr_assert(eq(u64, world_counts(&w).effective_speculations, 1)); /* [P-SPEC-15] */
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING), "it waits for the other one");
    tell(&w, PLIANT_EV_TASK_CANCELED, A, 3, 1);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    cr_assert(eq(u64, world_counts(&w).effective_speculations, 1));
    cr_assert(eq(u64, world_counts(&w).restarts, 0));
    world_free(&w);

    w = speculating(OF(one, NULL));
    w.cancels = false;
    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 1);
    expect_attempt(&w, A, 3, 0, 1, PLIANT_TASK_FINISHED);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_CANCELING);
    cr_assert(eq(u64, world_counts(&w).effective_speculations, 0), "the original one was first");
    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 2); /* it came too late */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    cr_assert(eq(u64, world_counts(&w).effective_speculations, 0));
    world_free(&w);
}

Test(speculation,
     an_attempt_that_waits_for_a_slot_is_dropped_when_another_one_finishes) /* [P-SPEC-9] */
{
    struct world w = with_a_slow_task(OF(one, NULL));

    world_lose(&w, "n1");
    world_lose(&w, "n2");
    world_lose(&w, "n3");
    world_to(&w, 12000);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_CREATED);
    world_task(&w, PLIANT_EV_TASK_FINISHED, A, 3);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_CANCEL), 0));
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

Test(speculation, a_failure_of_one_is_local_while_another_one_can_finish) /* [P-SPEC-10] */
{
    for (uint32_t number = 1; number <= 2; number++) {
        struct world w = speculating(OF(one, FIXED_DELAY("9", "10 s"), MAX("2")));
        const struct pliant_failure *entry;

        fail_attempt(&w, A, 3, number, true);
        cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
        cr_assert(eq(u32, n_attempts(&w, A, 3), 1));
        expect_attempt(&w, A, 3, 0, 3 - number, PLIANT_TASK_RUNNING);
        cr_assert(eq(u64, world_counts(&w).restarts, 1), "the counter counts it");
        cr_assert(eq(u64, world_counts(&w).region_restarts, 0));
        cr_assert(eq(sz, world_count(&w, PLIANT_ACT_CANCEL), 0));
        entry = pliant_failure_at(w.s, 0);
        cr_assert_not_null(entry);
        cr_assert(eq(u32, entry->n, 1));
        cr_assert(eq(u32, entry->items[0].task.attempt, number));
        world_free(&w);
    }
}

Test(speculation, a_local_failure_can_end_the_job) /* [P-SPEC-11] */
{
    struct world w = speculating(OF(one, FIXED_DELAY("9", "10 s")));

    fail_attempt(&w, A, 3, 2, false);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED), "not recoverable");
    world_free(&w);

    w = speculating(OF(one, FIXED_DELAY("1", "10 s")));
    fail_attempt(&w, A, 3, 2, true);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    world_to(&w, 13000);
    fail_attempt(&w, A, 3, 3, true);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED), "one restart was allowed");
    world_free(&w);
}

Test(speculation, the_failure_of_the_last_one_restarts_the_task) /* [P-SPEC-10] */
{
    struct world w = speculating(OF(one, FIXED_DELAY("9", "1 s")));

    fail_attempt(&w, A, 3, 1, true);
    fail_attempt(&w, A, 3, 2, true);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    world_to(&w, 13000);
    expect_attempt(&w, A, 3, 0, 3, PLIANT_TASK_RUNNING); /* [P-SPEC-14] */
    cr_assert(eq(u64, world_counts(&w).region_restarts, 1));
    world_free(&w);
}

/* All of A has finished, and of B all but subtask 3. */
static struct world with_a_slow_consumer(void)
{
    struct world w = started(WITH_EDGE(two, all_to_all, FIXED_DELAY("9", "1 s")));

    for (uint32_t i = 0; i < 4; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, A, i);
    world_to(&w, 8000);
    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, B, i);
    return w;
}

/* This attempt of b:3 cannot read what a:1 made. */
static void lose_input(struct world *w, uint32_t attempt)
{
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                         .failure = {.task = {{B}, 3, attempt},
                                                     .recoverable = true,
                                                     .cause = "partition not found",
                                                     .input_lost = true,
                                                     .edge = 0,
                                                     .producer = 1}});
}

Test(speculation, a_partition_error_of_one_restarts_all_of_it) /* [P-SPEC-12] */
{
    struct world w = with_a_slow_consumer();

    world_to(&w, 12000);
    cr_assert(eq(u32, n_attempts(&w, B, 3), 2));
    lose_input(&w, 2);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    world_to(&w, 13000);
    expect_attempt(&w, A, 1, 0, 2, PLIANT_TASK_RUNNING);
    expect_attempt(&w, B, 3, 0, 3, PLIANT_TASK_CREATED); /* it waits for a:1 */
    cr_assert(eq(u32, n_attempts(&w, B, 3), 1));
    world_free(&w);
}

Test(speculation, an_attempt_that_waits_goes_with_the_one_that_could_not_read) /* [P-SPEC-12] */
{
    struct world w = with_a_slow_consumer();

    world_drain(&w, "n1", 600000); /* with the results, and no slot for others */
    world_drain(&w, "n2", 600000);
    world_drain(&w, "n3", 600000);
    world_to(&w, 12000);
    expect_attempt(&w, B, 3, 1, 2, PLIANT_TASK_CREATED);
    lose_input(&w, 1);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    world_node(&w, "n5", 1);
    world_to(&w, 13000);
    expect_attempt(&w, A, 1, 0, 2, PLIANT_TASK_RUNNING);
    expect_attempt(&w, B, 3, 0, 3, PLIANT_TASK_CREATED);
    cr_assert(eq(u32, n_attempts(&w, B, 3), 1));
    world_free(&w);
}

Test(speculation, the_best_attempt_is_what_is_seen) /* [P-SPEC-13] */
{
    struct world w = with_a_slow_task(OF(one, FIXED_DELAY("9", "1 s")));

    w.runs = false;
    world_to(&w, 12000);
    expect_attempt(&w, A, 3, 0, 1, PLIANT_TASK_RUNNING);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_DEPLOYING);
    fail_attempt(&w, A, 3, 1, true);
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_DEPLOYING);
    cr_assert(eq(u32, world_counts(&w).tasks_running, 0));
    world_to(&w, 24000); /* it is slow as well */
    expect_attempt(&w, A, 3, 1, 3, PLIANT_TASK_DEPLOYING);
    tell(&w, PLIANT_EV_TASK_INITIALIZING, A, 3, 3);
    expect_attempt(&w, A, 3, 0, 3, PLIANT_TASK_INITIALIZING);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_DEPLOYING);
    tell(&w, PLIANT_EV_TASK_RUNNING, A, 3, 2);
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_RUNNING);
    tell(&w, PLIANT_EV_TASK_RUNNING, A, 3, 3);
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_RUNNING); /* the earlier of equals */
    cr_assert(eq(u32, world_counts(&w).tasks_running, 1));
    world_free(&w);
}

Test(speculation, the_last_attempt_that_waits_for_a_slot_waits_like_any_other_task) /* [P-SPEC-8] */
{
    struct world w = with_a_slow_task(OF(one, FIXED_DELAY("9", "1 s"), BLOCK("10 min"),
                                         "slot.request.timeout", "1 min", MAX("3")));

    world_lose(&w, "n1");
    world_lose(&w, "n2");
    world_lose(&w, "n3");
    world_to(&w, 12000);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 3));
    fail_attempt(&w, A, 3, 1, true);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 1), "one that waits is enough");
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_CREATED);
    world_to(&w, 71999);
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_CREATED);
    world_to(&w, 72000); /* not within a minute: a failure like any other */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    world_to(&w, 73000);
    expect_attempt(&w, A, 3, 0, 4, PLIANT_TASK_CREATED);
    world_node(&w, "n5", 1);
    expect_attempt(&w, A, 3, 0, 4, PLIANT_TASK_RUNNING);
    world_free(&w);
}

Test(speculation, a_restart_discards_all_attempts) /* [P-SPEC-14] */
{
    struct world w = speculating(OF(one, FIXED_DELAY("9", "1 s"), MAX("3"), BLOCK("0 s")));

    cr_assert(eq(u32, n_attempts(&w, A, 3), 3));
    w.cancels = false;
    world_fail(&w, true);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_CANCEL), 3));
    world_to(&w, 20000);
    expect_attempt(&w, A, 3, 0, 1, PLIANT_TASK_CANCELING);
    for (uint32_t number = 3; number >= 1; number--)
        tell(&w, PLIANT_EV_TASK_CANCELED, A, 3, number);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 1));
    expect_attempt(&w, A, 3, 0, 4, PLIANT_TASK_RUNNING);
    expect_attempt(&w, A, 0, 0, 2, PLIANT_TASK_RUNNING);
    world_free(&w);
}

Test(speculation,
     what_a_speculative_attempt_won_is_uncounted_when_the_task_restarts) /* [P-SPEC-15] */
{
    struct world w = speculating(WITH_EDGE(two, all_to_all, FIXED_DELAY("9", "1 s")));

    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 2);
    cr_assert(eq(u64, world_counts(&w).effective_speculations, 1));
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                          .failure = {.task = {{B}, 0, 1},
                                                      .recoverable = true,
                                                      .input_lost = true,
                                                      .edge = 0,
                                                      .producer = 3}});
    world_to(&w, 13000);
    expect_attempt(&w, A, 3, 0, 3, PLIANT_TASK_RUNNING);
    cr_assert(eq(u64, world_counts(&w).effective_speculations, 0));
    world_free(&w);
}

/* a:0 to a:2 have finished, a:3 is slow and has another attempt; b waits. */
static struct world speculating_in_a(struct world_spec spec)
{
    struct world w = speculating(spec);

    w.runs = false;
    return w;
}

Test(speculation, the_result_is_where_the_winner_was) /* [P-SPEC-16] */
{
    for (uint32_t i = 0; i < 2; i++) {
        struct world w =
            speculating_in_a(WITH_EDGE(two, all_to_all, FIXED_DELAY("9", "1 s"), BLOCK("0 s")));
        char nodes[2][8];

        for (uint32_t k = 0; k < 2; k++)
            strcpy(nodes[k], node_of(&w, A, 3, k));
        tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, i + 1);
        cr_assert(eq(int, attempt(&w, B, 0, 0).state, PLIANT_TASK_DEPLOYING));
        world_lose(&w, nodes[1 - i]);
        expect_attempt(&w, A, 3, 0, i + 1, PLIANT_TASK_FINISHED);
        world_lose(&w, nodes[i]);
        world_to(&w, 30000);
        expect_attempt(&w, A, 3, 0, 3, PLIANT_TASK_DEPLOYING); /* what it had made is lost */
        world_free(&w);
    }
}

Test(speculation, the_result_that_is_released_is_the_one_of_the_winner) /* [P-SPEC-16] */
{
    struct world w = speculating(WITH_EDGE(two, all_to_all, FIXED_DELAY("9", "1 s")));

    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 2);
    for (uint32_t i = 0; i < 4; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, B, i);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 4));
    for (size_t i = 0; i < 4; i++) {
        struct pliant_task producer =
            world_action(&w, PLIANT_ACT_RELEASE_RESULT, i)->result.producer;

        cr_assert(eq(u32, producer.attempt, producer.subtask == 3 ? 2 : 1));
    }
    world_free(&w);
}

Test(speculation, what_wins_while_all_restarts_is_lost_with_its_own_node) /* [P-SPEC-16] */
{
    for (int other_first = 0; other_first < 2; other_first++) {
        struct world w = speculating_in_a(WITH_EDGE(two, all_to_all, FIXED_DELAY("9", "1 s")));
        char node[8];
        size_t n;

        strcpy(node, node_of(&w, A, 3, 1));
        w.cancels = false;
        world_fail(&w, true);
        if (other_first) /* so there is one attempt left when it finishes */
            tell(&w, PLIANT_EV_TASK_CANCELED, A, 3, 1);
        tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 2);
        world_lose(&w, node);
        world_to(&w, w.now_ms + 1000);
        if (!other_first)
            tell(&w, PLIANT_EV_TASK_CANCELED, A, 3, 1);
        n = world_count(&w, PLIANT_ACT_RELEASE_RESULT);
        cr_assert(gt(sz, n, 0)); /* those of the others */
        for (size_t i = 0; i < n; i++) {
            const struct pliant_action *act = world_action(&w, PLIANT_ACT_RELEASE_RESULT, i);

            cr_assert(ne(u32, act->result.producer.subtask, 3));
        }
        w.cancels = true;
        world_free(&w);
    }
}

Test(speculation, an_attempt_that_stands_again_leaves_its_result) /* [P-SPEC-16] */
{
    struct world w = with_a_slow_task(WITH_EDGE(two, all_to_all, FIXED_DELAY("9", "1 s")));

    w.cancels = false;
    world_drain(&w, "n1", 600000);
    world_drain(&w, "n2", 600000);
    world_drain(&w, "n3", 600000);
    world_to(&w, 12000);
    world_drain(&w, "n4", 1000);
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_CREATED);
    expect_attempt(&w, A, 3, 1, 1, PLIANT_TASK_CANCELING);
    world_fail(&w, true);
    expect_attempt(&w, A, 3, 0, 1, PLIANT_TASK_CANCELING);
    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 1);
    world_to(&w, w.now_ms + 1000);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 4));
    w.cancels = true;
    world_free(&w);
}

/* ---- with jobmanager.scheduler: AdaptiveBatch ------------------------------------------- */

#define BATCH "jobmanager.scheduler", "AdaptiveBatch"
#define RATIO(r) "slow-task-detector.execution-time.baseline-ratio", r

static void wrote(struct world *w, struct pliant_task task, uint32_t n, const uint64_t *bytes)
{
    struct pliant_output output = {.edge = 0, .n = n, .bytes = bytes};

    world_event(
        w, (struct pliant_event){.kind = PLIANT_EV_TASK_FINISHED, .finished = {task, &output, 1}});
}

Test(speculation, who_reads_more_may_take_longer) /* [P-SPEC-2] */
{
    static const struct pliant_vertex_spec one_to_four[] = {{.id = "a", .parallelism = 1},
                                                            {.id = "b", .parallelism = 4}};
    struct world w = world_new(WITH_EDGE(one_to_four, all_to_all, BATCH));

    world_node(&w, "n1", 4);
    world_node(&w, "n2", 4);
    world_start(&w);
    wrote(&w, (struct pliant_task){{A}, 0, 1}, 4, (const uint64_t[]){100, 100, 100, 1000});
    world_to(&w, 8000);
    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, B, i);
    world_to(&w, 119999);
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 0), "it reads ten times as much");
    world_to(&w, 120000);
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 1));
    cr_assert(eq(u32, n_attempts(&w, B, 3), 2));
    world_free(&w);
}

Test(speculation, what_a_loser_wrote_decides_nothing) /* [P-SPEC-16] */
{
    static const struct pliant_vertex_spec free_b[] = {{.id = "a", .parallelism = 4}, {.id = "b"}};
    uint64_t little[128] = {10}, much[128] = {0};
    struct world w = started(WITH_EDGE(free_b, all_to_all, BATCH, RATIO("0.5")));

    for (size_t i = 0; i < 128; i++)
        much[i] = 1u << 30;
    world_node(&w, "n5", 2);
    world_to(&w, 8000);
    for (uint32_t i = 0; i < 2; i++)
        wrote(&w, (struct pliant_task){{A}, i, 1}, 128, little);
    world_to(&w, 12000);
    cr_assert(eq(u32, world_counts(&w).slow_tasks, 2));
    w.cancels = false;
    wrote(&w, (struct pliant_task){{A}, 3, 2}, 128, little);
    wrote(&w, (struct pliant_task){{A}, 3, 1}, 128, much); /* before it heard of the cancel */
    wrote(&w, (struct pliant_task){{A}, 2, 1}, 128, little);
    cr_assert(eq(u32, pliant_parallelism(w.s, (pliant_vertex_id){B}), 1));
    world_free(&w);
}

Test(speculation, slots_are_wanted_for_attempts_and_in_place_of_closed_ones) /* [P-SPEC-8] */
{
    struct world w = world_new(OF(one, BATCH, "slot.idle.timeout", "1 h"));

    world_node(&w, "n1", 4);
    world_start(&w);
    world_to(&w, 8000);
    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, A, i);
    cr_assert(eq(u32, world_counts(&w).desired, 1));
    world_to(&w, 12000); /* three are free on a node that is blocked; one attempt waits */
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_CREATED);
    cr_assert(eq(u32, world_counts(&w).desired, 5));
    cr_assert_not_null(world_action(&w, PLIANT_ACT_DECLARE, 0));
    world_node(&w, "n2", 1);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_RUNNING);
    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 2);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

/* ---- what else happens meanwhile -------------------------------------------------------- */

Test(speculation, a_lost_node_takes_its_attempt_along_and_the_other_goes_on) /* [P-SPEC-10] */
{
    struct world w = speculating(OF(one, FIXED_DELAY("9", "1 s")));

    world_lose(&w, "n4");
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_RUNNING);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 1));
    cr_assert(eq(u64, world_counts(&w).restarts, 1));
    world_free(&w);
}

Test(speculation, a_lost_node_with_all_attempts_restarts_the_task_once) /* [P-SPEC-10] */
{
    struct world w = world_new(OF(one, FIXED_DELAY("9", "1 s"), BLOCK("0 s")));

    world_node(&w, "n1", 8); /* not blocked, so both are there */
    world_start(&w);
    world_to(&w, 8000);
    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, A, i);
    world_to(&w, 12000);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 2));
    world_node(&w, "n2", 8);
    world_lose(&w, "n1");
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    cr_assert(eq(u64, world_counts(&w).restarts, 1));
    world_to(&w, 13000);
    expect_attempt(&w, A, 3, 0, 3, PLIANT_TASK_RUNNING);
    world_free(&w);
}

Test(speculation, a_loser_that_does_not_confirm_takes_its_node_along) /* [S-FLG-4] */
{
    struct world w =
        speculating(OF(one, FIXED_DELAY("9", "1 s"), "task.cancellation.timeout", "20 s"));

    w.cancels = false;
    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 2);
    world_to(&w, 31999);
    cr_assert(eq(int, pliant_state(w.s), PLIANT_EXECUTING));
    world_to(&w, 32000);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_GIVE_UP_NODE), 1));
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    cr_assert(eq(u64, world_counts(&w).restarts, 0));
    world_free(&w);
}

Test(speculation, a_loser_s_node_that_comes_back_ends_the_job)
{
    struct world w = speculating(OF(one, FIXED_DELAY("9", "1 s")));

    w.cancels = false;
    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 2);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
    world_node(&w, "n4", 1); /* nobody saw it go */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    cr_assert(eq(u32, world_counts(&w).nodes, 3), "it is nobody's any more");
    world_free(&w);
}

Test(speculation, a_loser_that_fails_is_no_failure) /* [P-FO-1] */
{
    struct world w = speculating(OF(one, FIXED_DELAY("0", "1 s")));

    w.cancels = false;
    tell(&w, PLIANT_EV_TASK_FINISHED, A, 3, 2);
    fail_attempt(&w, A, 3, 1, false);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    cr_assert_null(pliant_failure_at(w.s, 0));
    world_free(&w);
}

Test(speculation, the_end_of_a_job_stops_all_attempts) /* [P-SPEC-17] */
{
    static const struct {
        enum pliant_event_kind kind;
        enum pliant_job_status status;
    } rows[] = {{PLIANT_EV_CANCEL, PLIANT_JOB_CANCELED}, {PLIANT_EV_SUSPEND, PLIANT_JOB_SUSPENDED}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w = speculating(OF(one, FIXED_DELAY("0", "1 s")));

        world_plain(&w, rows[i].kind);
        cr_expect(eq(sz, world_count(&w, PLIANT_ACT_CANCEL), 2), "row %zu", i);
        cr_expect(eq(int, pliant_job_status(w.s), rows[i].status), "row %zu", i);
        cr_expect(eq(u32, world_counts(&w).tasks_live, 0), "row %zu", i);
        cr_expect(eq(u32, world_counts(&w).slow_tasks, 0), "row %zu", i); /* [P-SPEC-15] */
        world_free(&w);
    }
    {
        struct world w =
            speculating(OF(one, FIXED_DELAY("0", "1 s"), "task.cancellation.timeout", "20 s"));

        w.cancels = false;
        world_fail(&w, true);
        cr_assert(eq(int, pliant_state(w.s), PLIANT_FAILING));
        cr_assert(eq(sz, world_count(&w, PLIANT_ACT_CANCEL), 2));
        tell(&w, PLIANT_EV_TASK_CANCELED, A, 3, 1);
        cr_assert(eq(int, pliant_state(w.s), PLIANT_FAILING), "one lives");
        world_to(&w, 32000); /* it does not confirm */
        cr_assert(eq(sz, world_count(&w, PLIANT_ACT_GIVE_UP_NODE), 1));
        cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED));
        world_free(&w);
    }
}

Test(speculation,
     an_attempt_on_a_node_that_leaves_is_stopped_if_another_one_goes_on) /* [P-SPEC-18] */
{
    for (uint32_t i = 0; i < 2; i++) {
        struct world w = speculating(OF(one, FIXED_DELAY("0", "1 s"), BLOCK("0 s")));
        uint32_t stays = 2 - i;
        char leaves[8];

        strcpy(leaves, node_of(&w, A, 3, i));
        world_drain(&w, leaves, 60000);
        cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING));
        cr_assert(eq(sz, world_count(&w, PLIANT_ACT_CANCEL), 1));
        cr_assert(eq(u32, n_attempts(&w, A, 3), 1));
        expect_attempt(&w, A, 3, 0, stays, PLIANT_TASK_RUNNING);
        cr_assert(eq(u64, world_counts(&w).drain_moves, 0), "nothing had to move");
        world_free(&w);
    }
}

Test(speculation, an_attempt_that_was_told_to_stop_does_not_finish_for_another)
{
    struct world w = speculating(OF(one, FIXED_DELAY("9", "1 s"), BLOCK("0 s")));

    w.cancels = false;
    world_drain(&w, "n4", 60000);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 2));
    fail_attempt(&w, A, 3, 2, true); /* so this is the failure of the task [P-SPEC-10] */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    tell(&w, PLIANT_EV_TASK_CANCELED, A, 3, 1);
    world_to(&w, 13000);
    expect_attempt(&w, A, 3, 0, 3, PLIANT_TASK_RUNNING);
    world_free(&w);
}

/* With no delay between, n4 goes and comes: what waits for a slot wants the one that is there. */
Test(speculation, an_attempt_that_waits_gets_the_slot_of_a_node_that_comes_back)
{
    struct world w = with_a_slow_task(
        OF(one, FIXED_DELAY("9", "1 s"), "jobmanager.scheduler", "adaptive-batch"));

    world_lose(&w, "n1");
    world_lose(&w, "n2");
    world_lose(&w, "n3");
    world_to(&w, 12000);
    expect_attempt(&w, A, 3, 1, 2, PLIANT_TASK_CREATED);
    world_node(&w, "n4", 1);
    cr_assert(eq(u32, n_attempts(&w, A, 3), 1));
    expect_attempt(&w, A, 3, 0, 2, PLIANT_TASK_RUNNING);
    world_free(&w);
}

Test(speculation, what_a_task_reads_must_be_there_for_another_attempt) /* [P-SPEC-19] */
{
    struct world w = with_a_slow_consumer();

    world_lose(&w, "n1"); /* b:3 runs, and has read what a:0 made there */
    world_lose(&w, "n2");
    world_lose(&w, "n3");
    world_to(&w, 12000);
    expect_attempt(&w, B, 3, 1, 2, PLIANT_TASK_CREATED);
    world_node(&w, "n5", 1);
    cr_assert(eq(u32, n_attempts(&w, B, 3), 1), "it would not find it");
    expect_attempt(&w, B, 3, 0, 1, PLIANT_TASK_RUNNING);
    world_to(&w, 12999);
    fail_attempt(&w, B, 3, 1, true); /* so this is the failure of the task */
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RESTARTING));
    world_free(&w);
}

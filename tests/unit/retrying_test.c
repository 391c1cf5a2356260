/* retrying_test.c - RetryingExecutionGraphCreation: a back-off, then another try */
#include <criterion/criterion.h>

#include "states/sched.h"
#include "world.h"

#define RETRY "jobmanager.adaptive-scheduler.retry-execution-graph-creation.restart-strategy."
#define FIXED_RETRY RETRY "type", "fixed-delay", RETRY "fixed-delay.attempts", "9"

static struct world retrying_world(struct world_spec spec)
{
    struct world w = world_new(spec);

    w.reserves = false;
    world_node(&w, "n1", 4);
    world_start(&w);
    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    cr_assert_eq(pliant_state(w.s), PLIANT_RETRYING_EXECUTION_GRAPH_CREATION);
    return w;
}

Test(retrying, ends_with_its_back_off) /* [S-RTY-1] */
{
    struct world w = retrying_world(
        (struct world_spec){.options = {FIXED_RETRY, RETRY "fixed-delay.delay", "7 s"}});

    cr_expect_eq(pliant_next_deadline(w.s), 7000);
    world_to(&w, 6999);
    cr_expect_eq(pliant_state(w.s), PLIANT_RETRYING_EXECUTION_GRAPH_CREATION);
    world_to(&w, 7000);
    cr_expect(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > "
                             "RetryingExecutionGraphCreation > WaitingForResources > "
                             "CreatingExecutionGraph"));
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(retrying, backs_off_longer_each_time_if_told_so) /* [S-RTY-1, S-OPT-1] */
{
    struct world w = retrying_world((struct world_spec){
        .options = {RETRY "type", "exponential-delay", RETRY "exponential-delay.initial-backoff",
                    "1 s", RETRY "exponential-delay.backoff-multiplier", "2",
                    RETRY "exponential-delay.jitter-factor", "0"}});
    int64_t want = 1000;

    for (int i = 0; i < 5; i++, want *= 2) {
        cr_expect_eq(w.changed.change.detail, want);
        cr_expect_eq(pliant_next_deadline(w.s), w.now_ms + want);
        world_to(&w, w.now_ms + want);
        cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
        world_to(&w, w.now_ms + 1); /* not the instant of its restart: that would be merged */
        world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    }
    world_free(&w);
}

Test(retrying, keeps_the_run_before) /* [S-RTY-1, S-LOC-7] */
{
    struct world w = world_new(
        (struct world_spec){.parallelism = 2,
                            .options = {FIXED_RETRY, "restart-strategy.type", "fixed-delay",
                                        "restart-strategy.fixed-delay.delay", "0 s",
                                        "execution.state-recovery.from-local", "true",
                                        "execution.checkpointing.interval", "1 h"}});

    world_start(&w);
    world_node(&w, "n1", 2);
    world_checkpoint(&w);
    w.reserves = false;
    world_node(&w, "n2", 2); /* a choice */
    world_fail_task(&w, 1, 0, true);
    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    cr_assert_eq(pliant_state(w.s), PLIANT_RETRYING_EXECUTION_GRAPH_CREATION);
    cr_expect(w.s->previous.exists);
    world_to(&w, 1000);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    for (uint32_t i = 0; i < 2; i++) {
        struct pliant_task_info info;

        cr_assert(pliant_task_info(w.s, (pliant_vertex_id){1}, i, &info));
        cr_expect_eq(pliant_slot_node(w.s, info.slot).v, 1, "subtask %u is where it was", i);
    }
    world_free(&w);
}

Test(retrying, has_counts_and_a_budget_of_its_own) /* [S-RTY-2, S-OPT-2] */
{
    struct world w = retrying_world((struct world_spec){
        .options = {FIXED_RETRY, RETRY "fixed-delay.delay", "1 s", "restart-strategy.type",
                    "fixed-delay", "restart-strategy.fixed-delay.attempts", "1",
                    "restart-strategy.fixed-delay.delay", "0 s"}});

    for (uint64_t i = 1; i <= 4; i++) {
        cr_expect_eq(world_counts(&w).creation_retries, i);
        world_to(&w, w.now_ms + 1000);
        world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    }
    cr_expect_eq(world_counts(&w).restarts, 0);
    cr_expect_eq(world_counts(&w).rescales, 0);
    w.reserves = true;
    world_to(&w, w.now_ms + 1000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_fail_task(&w, 1, 0, true);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING, "the one restart was still there");
    cr_expect_eq(world_counts(&w).restarts, 1);
    world_free(&w);
}

Test(retrying, is_off_by_default) /* [S-RTY-3, S-CEG-3] */
{
    static const char *const types[] = {NULL, "none", "off", "disable"};

    for (size_t i = 0; i < 4; i++) {
        struct world w =
            world_new((struct world_spec){.options = {types[i] ? RETRY "type" : NULL, types[i]}});

        w.reserves = false;
        world_node(&w, "n1", 4);
        world_start(&w);
        world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
        cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED, "row %zu", i);
        world_free(&w);
    }
}

Test(retrying, uses_what_came_meanwhile) /* [S-RTY-1] */
{
    struct world w = retrying_world(
        (struct world_spec){.options = {FIXED_RETRY, RETRY "fixed-delay.delay", "7 s"}});

    world_node(&w, "n2", 2);
    cr_expect_str_eq(world_emitted(&w), "");
    world_bounds(&w, 1, 6);
    cr_expect_str_eq(world_emitted(&w), "declare rescale_closed rescale_opened");
    cr_expect_eq(pliant_next_deadline(w.s), 7000, "neither moves the back-off");
    w.reserves = true;
    world_to(&w, 7000);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 6);
    world_free(&w);
}

Test(retrying, says_what_comes_next)
{
    struct world w = retrying_world(
        (struct world_spec){.options = {FIXED_RETRY, RETRY "fixed-delay.delay", "7 s"}});
    struct pliant_next next;

    pliant_next(w.s, &next);
    cr_expect_eq(next.decision, PLIANT_REASON_BACKOFF_OVER);
    cr_expect_eq(next.at_ms, 7000);
    world_free(&w);
}

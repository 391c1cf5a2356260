/* reclaim_test.c - slots that a pool shared by jobs wants back */
#include <criterion/criterion.h>

#include "world.h"

#define OPTION(name) "jobmanager.adaptive-scheduler." name

static void reclaim(struct world *w, const char *node, uint32_t slots, int64_t deadline_ms)
{
    world_event(w,
                (struct pliant_event){
                    .kind = PLIANT_EV_SLOTS_RECLAIMED,
                    .reclaimed = {.name = node,
                                  .slots = slots,
                                  .deadline_at_ms =
                                      deadline_ms <= 0 ? PLIANT_NEVER : w->now_ms + deadline_ms}});
}

static struct pliant_counts counts(const struct world *w)
{
    struct pliant_counts c;

    pliant_counts(w->s, &c);
    return c;
}

/* Running with 4 on n1 (3 slots) and n2 (3 slots); the slots beyond are free. */
static struct world running_from(uint32_t min_parallelism, const char *interval)
{
    struct world w = world_new(
        (struct world_spec){.parallelism = 4,
                            .min_parallelism = min_parallelism,
                            .options = {OPTION("submission.resource-stabilization-timeout"), "0 s",
                                        "restart-strategy.type", "fixed-delay",
                                        interval ? "execution.checkpointing.interval" : NULL,
                                        interval, "pliant.checkpoint.periodic", "false"}});

    world_node(&w, "n1", 3);
    world_node(&w, "n2", 3);
    world_start(&w);
    world_to(&w, 1000);
    cr_assert_eq(counts(&w).slots_used, 4);
    return w;
}

static struct world running(const char *interval)
{
    return running_from(4, interval);
}

Test(reclaim, takes_free_slots_at_once_and_the_job_does_not_notice)
{
    struct world w = running(NULL);

    reclaim(&w, "n2", 2, 0);
    cr_assert_eq(world_count(&w, PLIANT_ACT_RELEASE), 1);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RELEASE, 0)->release.n, 2);
    cr_expect_eq(counts(&w).slots, 4);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(reclaim, of_used_slots_moves_the_job_and_gives_them_back_when_they_are_empty)
{
    struct world w = running(NULL);

    w.cancels = false;
    reclaim(&w, "n1", 3, 60000);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING, "three elsewhere are too few for four");
    cr_expect_eq(counts(&w).slots_offered, 3);
    world_to(&w, 56000); /* 5 s before the end [S-DRN-5] */
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    cr_expect_eq(world_action(&w, PLIANT_ACT_STATE_CHANGED, 0)->flag[2], PLIANT_REASON_RECLAIM);
    cr_expect_eq(world_count(&w, PLIANT_ACT_RELEASE), 0);
    w.cancels = true;
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES, "it needs four");
    cr_expect_eq(counts(&w).slots, 3, "all are back with the pool");
    world_free(&w);
}

Test(reclaim, makes_a_job_smaller_at_once_that_may_be)
{
    struct world w = running_from(3, NULL);

    reclaim(&w, "n1", 3, 60000);
    cr_expect_eq(counts(&w).restarts, 1);
    cr_expect_eq(counts(&w).slots, 3, "all are back with the pool");
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 3);
    world_free(&w);
}

Test(reclaim, makes_a_job_smaller_when_its_checkpoint_is_done)
{
    struct world w = running_from(3, "10 s");

    reclaim(&w, "n1", 3, 60000);
    cr_expect_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 1);
    cr_expect_eq(counts(&w).restarts, 0);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                          .checkpoint.id = w.checkpoint});
    cr_expect_eq(counts(&w).restarts, 1);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 3);
    world_free(&w);
}

Test(reclaim, beside_a_drain_waits_as_that_does) /* [S-DRN-5] */
{
    struct world w = running_from(1, NULL);

    world_drain(&w, "n2", 60000);
    reclaim(&w, "n1", 1, 100000);
    cr_expect_eq(counts(&w).restarts, 0, "what runs until the end of n2 is not lost before");
    world_to(&w, 56000);
    cr_expect_eq(counts(&w).restarts, 1);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 2);
    world_free(&w);
}

Test(reclaim, waits_for_a_checkpoint_and_moves_as_soon_as_the_rest_suffices)
{
    struct world w = running("10 s");

    reclaim(&w, "n2", 2, 60000);
    reclaim(&w, "n1", 1, 60000);
    cr_expect_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 1, "as for a drain [S-DRN-4]");
    world_node(&w, "n3", 4);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING, "the checkpoint is still pending");
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                          .checkpoint.id = w.checkpoint});
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_expect_eq(counts(&w).restarts, 1);
    cr_expect_eq(counts(&w).slots, 7);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 4);
    world_free(&w);
}

Test(reclaim, of_free_and_used_slots_counts_neither_as_room_to_move_to)
{
    struct world w = running(NULL);

    reclaim(&w, "n2", 3, 60000); /* two of them are free */
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING, "three elsewhere are too few for four");
    cr_expect_eq(counts(&w).restarts, 0);
    cr_expect_eq(counts(&w).slots, 4);
    cr_expect_eq(counts(&w).slots_offered, 3);
    world_node(&w, "n3", 1);
    cr_expect_eq(counts(&w).restarts, 1);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 4);
    world_free(&w);
}

Test(reclaim, of_free_slots_is_no_news_for_a_move_that_is_pending)
{
    struct world w = running("10 s");

    reclaim(&w, "n2", 3, 60000);
    reclaim(&w, "n1", 2, 60000);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                          .checkpoint.id = w.checkpoint});
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n1", .slots = 1}});
    cr_expect_eq(counts(&w).slots_offered, 2);
    world_to(&w, w.now_ms + 1000);
    reclaim(&w, "n1", 1, 60000);
    cr_expect_eq(world_count(&w, PLIANT_ACT_RELEASE), 1);
    cr_expect_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 0, "the one after the notice will do");
    world_node(&w, "n3", 3);
    cr_expect_eq(counts(&w).restarts, 1);
    world_free(&w);
}

Test(reclaim, is_no_drain_and_no_failure_so_no_budget_pays)
{
    struct world w = world_new((struct world_spec){
        .parallelism = 4,
        .options = {OPTION("submission.resource-stabilization-timeout"), "0 s",
                    "restart-strategy.type", "none", "pliant.drain.max-restarts", "0"}});

    world_node(&w, "n1", 4);
    world_start(&w);
    reclaim(&w, "n1", 1, 1000);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_expect_eq(counts(&w).restarts, 1);
    cr_expect_eq(counts(&w).drain_moves, 0);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 3);
    world_free(&w);
}

Test(reclaim, of_more_than_there_is_takes_all_and_a_second_time_nothing)
{
    struct world w = running(NULL);

    reclaim(&w, "n1", 100, 60000);
    reclaim(&w, "n1", 100, 60000);
    reclaim(&w, "n9", 1, 60000);
    cr_expect_eq(counts(&w).slots, 6);
    cr_expect_eq(counts(&w).slots_offered, 3);
    world_lose(&w, "n1");
    cr_expect_eq(counts(&w).slots, 3, "what was to return went with its node");
    world_to(&w, 200000);
    world_free(&w);
}

Test(reclaim, of_a_node_that_drains_too_ends_with_whichever_is_first)
{
    struct world w = running(NULL);

    world_drain(&w, "n1", 100000);
    reclaim(&w, "n1", 1, 30000);
    world_to(&w, 25999);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_to(&w, 26000);
    cr_expect_eq(counts(&w).restarts, 1);
    cr_expect_eq(counts(&w).drain_moves, 1);
    world_free(&w);
}

Test(reclaim, while_the_job_waits_or_has_ended_gives_slots_back_at_once)
{
    struct world w = world_new((struct world_spec){.parallelism = 4, .min_parallelism = 4});

    world_node(&w, "n1", 3);
    world_start(&w);
    reclaim(&w, "n1", 2, 0);
    cr_expect_eq(counts(&w).slots, 1);
    world_plain(&w, PLIANT_EV_CANCEL);
    reclaim(&w, "n1", 1, 0);
    cr_expect_eq(world_count(&w, PLIANT_ACT_RELEASE), 0);
    world_free(&w);
}

Test(reclaim, of_used_slots_is_over_when_the_job_is_suspended) /* [S-FIN-2] */
{
    struct world w = running(NULL);

    w.cancels = false;
    reclaim(&w, "n1", 2, 60000);
    world_plain(&w, PLIANT_EV_SUSPEND);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_SUSPENDED);
    cr_expect_eq(world_count(&w, PLIANT_ACT_RELEASE), 0, "its tasks may live a little longer");
    cr_expect_eq(world_count(&w, PLIANT_ACT_ARCHIVED), 1);
    cr_expect_null(pliant_check(w.s));
    world_free(&w);
}

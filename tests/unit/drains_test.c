/* drains_test.c - moving the job off nodes that will go */
#include <criterion/criterion.h>
#include <string.h>

#include "world.h"

static const pliant_vertex_id V = {1};

/* Nodes n1, n2, .. with two slots each; p = 4 of at least min; checkpoints come from the test.
 * Started at 0, no cooldown. */
static struct world running(uint32_t n_nodes, const char *checkpointing, const char *max_restarts)
{
    struct world w = world_new((struct world_spec){
        .options = {"pliant.drain.max-restarts", max_restarts, "restart-strategy.type",
                    "fixed-delay", "restart-strategy.fixed-delay.attempts", "1",
                    "restart-strategy.fixed-delay.delay", "3 s", "pliant.checkpoint.periodic",
                    "false", "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling",
                    "0 s", "jobmanager.adaptive-scheduler.rescale-trigger.max-delay", "0 s",
                    "slot.idle.timeout", "1 d",
                    checkpointing ? "execution.checkpointing.interval" : NULL, checkpointing}});
    char name[8] = "n1";

    world_start(&w);
    for (uint32_t i = 0; i < n_nodes; i++, name[1]++)
        world_node(&w, name, 2);
    if (n_nodes < 2)
        world_to(&w, 10000); /* sufficient, and stable */
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    return w;
}

static struct world with_checkpoints(uint32_t n_nodes)
{
    return running(n_nodes, "10 min", "-1");
}

static struct world without_checkpoints(uint32_t n_nodes)
{
    return running(n_nodes, NULL, "-1");
}

static void expect_state(const struct world *w, enum pliant_state state)
{
    cr_assert_eq(pliant_state(w->s), state, "it is %s, not %s",
                 pliant_state_name(pliant_state(w->s)), pliant_state_name(state));
}

/* The job was told to restart in this step, because of a drain and without a back-off. */
static void expect_move(struct world *w, const char *node)
{
    cr_assert_eq(w->changed.flag[0], PLIANT_EXECUTING);
    cr_assert_eq(w->changed.flag[1], PLIANT_RESTARTING);
    cr_assert_eq(w->changed.flag[2], PLIANT_REASON_DRAIN);
    cr_assert_str_eq(pliant_node_name(w->s, w->changed.change.node), node);
}

static const char *node_of(const struct world *w, uint32_t subtask)
{
    struct pliant_task_info info;

    cr_assert(pliant_task_info(w->s, V, subtask, &info));
    return pliant_node_name(w->s, pliant_slot_node(w->s, info.slot));
}

static bool uses(const struct world *w, const char *node)
{
    for (uint32_t i = 0; i < pliant_parallelism(w->s, V); i++)
        if (strcmp(node_of(w, i), node) == 0)
            return true;
    return false;
}

/* ---- what a notice does at once --------------------------------------------------------- */

Test(drains, take_the_slots_out_of_the_pool_and_leave_the_tasks) /* [S-DRN-1] */
{
    struct world w = with_checkpoints(2);

    world_drain(&w, "n1", 60000);
    cr_assert_eq(world_counts(&w).slots, 4);
    cr_assert_eq(world_counts(&w).slots_offered, 2);
    cr_assert_eq(world_counts(&w).slots_used, 4);
    cr_assert_eq(world_counts(&w).draining_nodes, 1);
    cr_assert_eq(world_counts(&w).tasks_running, 4);
    expect_state(&w, PLIANT_EXECUTING);
    world_free(&w);
}

Test(drains, never_place_anything_on_a_draining_node) /* [S-DRN-1] */
{
    struct world w = world_new((struct world_spec){.parallelism = 4});

    world_start(&w);
    world_node(&w, "n1", 2);
    world_drain(&w, "n1", 0);
    world_node(&w, "n2", 2);
    world_node(&w, "n3", 1);
    world_to(&w, 9999);
    expect_state(&w, PLIANT_WAITING_FOR_RESOURCES); /* three offered are not the four desired */
    world_to(&w, 10000);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(pliant_parallelism(w.s, V), 3);
    cr_assert(!uses(&w, "n1"));
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n1", .slots = 5}});
    world_to(&w, 500000);
    cr_assert_eq(pliant_parallelism(w.s, V), 3);
    world_free(&w);
}

Test(drains, tell_the_tasks_on_the_node) /* [S-DRN-3] */
{
    struct world w = with_checkpoints(2);
    const struct pliant_action *act;

    world_to(&w, 1000);
    world_drain(&w, "n2", 30000);
    cr_assert_str_eq(world_emitted(&w), "notify checkpoint");
    act = world_action(&w, PLIANT_ACT_NOTIFY, 0);
    cr_assert_str_eq(pliant_node_name(w.s, act->notify.node), "n2");
    cr_assert_eq(act->notify.deadline_at_ms, 31000);
    cr_assert_eq(act->flag[0], PLIANT_DRAIN_PREEMPTION);
    world_free(&w);
}

Test(drains, do_nothing_where_the_job_has_no_task) /* [S-DRN-2] */
{
    struct world w = with_checkpoints(3);

    cr_assert(!uses(&w, "n3"));
    world_drain(&w, "n3", 10000);
    cr_assert_eq(w.n_actions, 0);
    world_lose(&w, "n3");
    cr_assert_eq(w.n_actions, 0);
    world_to(&w, 500000);
    cr_assert_eq(world_counts(&w).restarts, 0);
    world_free(&w);
}

Test(drains, are_no_change_for_the_transition_manager) /* [S-DRN-2] */
{
    struct world w = with_checkpoints(3);
    struct pliant_next before, after;

    world_to(&w, 100);
    pliant_next(w.s, &before);
    world_drain(&w, "n3", 10000);
    pliant_next(w.s, &after);
    cr_assert_str_eq(before.phase, "Idling");
    cr_assert_str_eq(after.phase, "Idling");
    world_free(&w);
}

/* ---- when the move begins --------------------------------------------------------------- */

Test(drains, move_when_a_checkpoint_is_done_and_all_fits_elsewhere) /* [S-DRN-4, S-DRN-5] */
{
    struct world w = with_checkpoints(3);
    const struct pliant_action *act;
    uint64_t asked;

    w.cancels = false;
    world_to(&w, 1000);
    world_drain(&w, "n1", 60000);
    act = world_action(&w, PLIANT_ACT_CHECKPOINT, 0);
    cr_assert_eq(act->flag[0], PLIANT_CHECKPOINT_DRAIN);
    cr_assert(!act->flag[1]);
    asked = w.checkpoint;
    world_to(&w, 5000);
    expect_state(&w, PLIANT_EXECUTING);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    expect_state(&w, PLIANT_RESTARTING);
    expect_move(&w, "n1");
    cr_assert_eq(w.changed.change.detail, (int64_t)asked);
    cr_assert_eq(w.changed.change.since_at_ms, 1000);
    w.cancels = true;
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    expect_state(&w, PLIANT_EXECUTING); /* back-off 0, target reachable: not by way of waiting */
    cr_assert(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Restarting > CreatingExecutionGraph > Executing"));
    cr_assert_eq(pliant_parallelism(w.s, V), 4);
    cr_assert(!uses(&w, "n1"));
    cr_assert_eq(world_counts(&w).drain_moves, 1);
    world_free(&w);
}

Test(drains, move_at_once_without_checkpointing_when_all_fits) /* [S-DRN-5] */
{
    struct world w = without_checkpoints(3);

    world_drain(&w, "n1", 60000);
    cr_assert_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 0);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(world_counts(&w).restarts, 1);
    cr_assert(!uses(&w, "n1"));
    world_free(&w);
}

Test(drains, take_no_checkpoint_for_theirs_that_began_before_the_notice) /* [S-DRN-4, S-DRN-5] */
{
    struct world w = with_checkpoints(3);
    uint64_t before;

    w.cancels = false;
    world_to(&w, 1000);
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    before = w.checkpoint;
    world_to(&w, 2000);
    world_drain(&w, "n1", 60000);
    cr_assert_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 0); /* one is pending */
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    expect_state(&w, PLIANT_EXECUTING); /* it does not cover the notice: now one of its own */
    cr_assert_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 1);
    cr_assert_gt(w.checkpoint, before);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

Test(drains, take_a_checkpoint_of_the_same_instant_for_theirs) /* [S-DRN-4] */
{
    struct world w = with_checkpoints(3);

    w.cancels = false;
    world_to(&w, 1000);
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    world_drain(&w, "n1", 60000);
    cr_assert_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 0);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

Test(drains, ask_again_when_their_checkpoint_fails) /* [S-DRN-4] */
{
    for (int counts = 0; counts < 2; counts++) {
        struct world w = with_checkpoints(3);
        uint64_t first;

        world_drain(&w, "n1", 60000);
        first = w.checkpoint;
        world_taken(&w, PLIANT_EV_CHECKPOINT_FAILED, counts);
        expect_state(&w, PLIANT_EXECUTING);
        world_to(&w, 1); /* with the next news, at the latest with that of a task or a slot */
        world_node(&w, "n4", 1);
        cr_assert_gt(w.checkpoint, first);
        world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
        cr_assert(!uses(&w, "n1"));
        world_free(&w);
    }
}

Test(drains, need_no_other_checkpoint_because_one_of_the_host_failed) /* [S-DRN-4] */
{
    struct world w = with_checkpoints(2);
    uint64_t theirs;

    world_drain(&w, "n1", 60000);
    theirs = w.checkpoint;
    world_to(&w, 2000);
    world_checkpoint_failed(&w, true); /* theirs is still under way */
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    world_to(&w, 20000);
    cr_assert_eq(w.checkpoint, theirs);
    expect_state(&w, PLIANT_EXECUTING); /* nowhere to go */
    world_free(&w);
}

/* Or a host where it cannot even begin would be asked without end. */
Test(drains, ask_again_a_little_later_when_it_failed_at_once) /* [S-DRN-4] */
{
    struct world w = with_checkpoints(3);
    uint64_t first;

    world_drain(&w, "n1", 60000);
    first = w.checkpoint;
    world_taken(&w, PLIANT_EV_CHECKPOINT_FAILED, false);
    world_to(&w, 999);
    cr_assert_eq(w.checkpoint, first);
    world_to(&w, 1000);
    cr_assert_gt(w.checkpoint, first);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    cr_assert(!uses(&w, "n1"));
    world_free(&w);
}

Test(drains, wait_for_a_place_to_move_to) /* [S-DRN-5, S-DRN-7] */
{
    struct world w = with_checkpoints(2);

    world_drain(&w, "n1", 60000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(world_counts(&w).restarts, 0);
    world_to(&w, 20000);
    world_node(&w, "n3", 1);
    cr_assert_eq(world_counts(&w).restarts, 0); /* three slots for four subtasks */
    world_node(&w, "n4", 1);
    cr_assert_eq(world_counts(&w).restarts, 1);
    cr_assert_eq(pliant_parallelism(w.s, V), 4);
    cr_assert(!uses(&w, "n1"));
    world_free(&w);
}

Test(drains, stay_where_the_job_could_not_come_up_again) /* [S-DRN-5, S-EXE-14] */
{
    struct world w = without_checkpoints(3);

    world_bounds(&w, 5, 8);
    world_drain(&w, "n1", 60000); /* the four subtasks would fit, five are the least */
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(world_counts(&w).restarts, 0);
    world_bounds(&w, 4, 8);
    cr_assert_eq(world_counts(&w).restarts, 1);
    cr_assert_eq(pliant_parallelism(w.s, V), 4);
    world_free(&w);
}

Test(drains, move_at_the_latest_at_the_end_less_the_lead) /* [S-DRN-3, S-DRN-5] */
{
    struct world w = without_checkpoints(2);

    w.cancels = false;
    world_to(&w, 1000);
    world_drain(&w, "n1", 60000);
    world_to(&w, 55999);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 56000); /* 61000 less 5000 */
    expect_state(&w, PLIANT_RESTARTING);
    expect_move(&w, "n1");
    cr_assert_eq(w.changed.change.detail, 0);
    w.cancels = true;
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    cr_assert_eq(pliant_parallelism(w.s, V), 2); /* with what is left */
    world_free(&w);
}

Test(drains, take_two_minutes_where_there_is_no_deadline) /* [S-DRN-3] */
{
    struct world w = without_checkpoints(2);

    world_to(&w, 1000);
    world_drain(&w, "n2", 0);
    cr_assert_eq(world_action(&w, PLIANT_ACT_NOTIFY, 0)->notify.deadline_at_ms, 121000);
    world_to(&w, 115999);
    cr_assert_eq(world_counts(&w).restarts, 0);
    world_to(&w, 116000);
    cr_assert_eq(world_counts(&w).restarts, 1);
    world_free(&w);
}

Test(drains, move_at_once_when_the_end_is_past_or_nearer_than_the_lead) /* [S-DRN-3] */
{
    static const int64_t ends[] = {0, 999, 1000, 5999};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct world w = without_checkpoints(2);

        world_to(&w, 1000);
        world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_DRAINING,
                                              .draining = {.name = "n1",
                                                           .deadline_at_ms = ends[i],
                                                           .reason = PLIANT_DRAIN_UPGRADE}});
        cr_assert_eq(world_counts(&w).restarts, 1, "end %lld", (long long)ends[i]);
        world_free(&w);
    }
}

Test(drains, ask_for_a_last_checkpoint_when_the_end_is_near) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);
    uint64_t at_notice;

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    at_notice = w.checkpoint;
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    world_to(&w, 55000);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_gt(w.checkpoint, at_notice);
    cr_assert_eq(pliant_next_deadline(w.s), 59500);
    world_to(&w, 56000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    expect_state(&w, PLIANT_RESTARTING); /* nothing is gained by waiting longer */
    cr_assert_eq(w.changed.change.detail, (int64_t)w.checkpoint);
    world_free(&w);
}

Test(drains, wait_for_the_last_checkpoint_until_just_before_the_end) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    world_to(&w, 57000);
    world_checkpoint_failed(&w, true); /* not that one */
    world_to(&w, 59499);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 59500);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

Test(drains, move_when_the_last_checkpoint_fails) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    world_to(&w, 55000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_FAILED, false);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

Test(drains, need_no_last_checkpoint_when_there_is_a_fresh_one) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);
    uint64_t asked;

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    asked = w.checkpoint;
    world_to(&w, 50000);
    world_checkpoint(&w);
    world_to(&w, 54999);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 55000); /* it is five seconds old, and no older than the lead */
    expect_state(&w, PLIANT_RESTARTING);
    cr_assert_eq(w.checkpoint, asked);
    world_free(&w);
}

Test(drains, wait_for_a_fresh_checkpoint_that_is_pending_already) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);
    uint64_t pending;

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    world_to(&w, 52000);
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    pending = w.checkpoint;
    world_to(&w, 55000);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(w.checkpoint, pending);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

Test(drains, go_without_a_last_checkpoint_that_cannot_be_taken) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);

    w.cancels = false;
    world_drain(&w, "n1", 120000);
    world_to(&w, 114999); /* the first one has hung for all that time */
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 115000);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

Test(drains, lead_by_the_duration_of_the_last_checkpoint) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);

    w.cancels = false;
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_REQUESTED});
    world_to(&w, 20000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false); /* it took 20 s */
    world_drain(&w, "n1", 60000);
    world_to(&w, 80000 - 21000 - 1);
    cr_assert_eq(world_count(&w, PLIANT_ACT_STATE_CHANGED), 0);
    cr_assert_eq(pliant_next_deadline(w.s), 80000 - 21000);
    world_free(&w);
}

/* Timers run before the events of an instant, so the limit must not be the expected end. */
Test(drains, are_in_time_with_a_last_checkpoint_as_long_as_the_one_before) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);
    uint64_t last;

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    world_to(&w, 20000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false); /* the one of the notice took 20 s */
    cr_assert_eq(pliant_next_deadline(w.s), 39000);
    world_to(&w, 39000);
    last = w.checkpoint;
    world_to(&w, 59000);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(w.checkpoint, last);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    expect_state(&w, PLIANT_RESTARTING);
    cr_assert_eq(w.changed.change.detail, (int64_t)last);
    world_free(&w);
}

Test(drains, follow_the_configured_lead) /* [S-DRN-5] */
{
    struct world w = world_running(
        (struct world_spec){.parallelism = 2, .options = {"pliant.drain.lead", "20 s"}}, 2);

    world_drain(&w, "n1", 60000);
    world_to(&w, 39999);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 40000);
    cr_assert_eq(world_counts(&w).restarts, 1);
    world_free(&w);
}

Test(drains, lead_by_all_that_is_left_after_an_endless_checkpoint) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);

    w.now_ms = PLIANT_NEVER - INT64_C(1000000000);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                          .checkpoint = {.id = 7, .own_accord = true}});
    w.cancels = false;
    world_drain(&w, "n1", 60000);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

/* ---- several ---------------------------------------------------------------------------- */

Test(drains, follow_the_earliest_end_of_several) /* [S-DRN-3] */
{
    struct world w = without_checkpoints(2);

    world_drain(&w, "n1", 100000);
    world_drain(&w, "n2", 50000);
    w.cancels = false;
    world_to(&w, 44999);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 45000);
    expect_state(&w, PLIANT_RESTARTING);
    expect_move(&w, "n2");
    world_free(&w);
}

Test(drains, are_not_put_off_by_a_later_notice) /* [S-DRN-3] */
{
    struct world w = without_checkpoints(2);
    uint64_t ignored;

    world_drain(&w, "n1", 50000);
    ignored = world_counts(&w).events_ignored;
    world_drain(&w, "n1", 100000);
    cr_assert_eq(w.n_actions, 0);
    cr_assert_eq(world_counts(&w).events_ignored, ignored + 1);
    world_drain(&w, "n1", 0); /* without a deadline: two minutes */
    cr_assert_eq(w.n_actions, 0);
    world_drain(&w, "n2", 100000);
    cr_assert_eq(pliant_next_deadline(w.s), 45000);
    world_free(&w);
}

Test(drains, are_brought_forward_by_an_earlier_end) /* [S-DRN-3] */
{
    struct world w = without_checkpoints(2);

    world_drain(&w, "n1", 100000);
    world_drain(&w, "n1", 30000);
    cr_assert_eq(world_action(&w, PLIANT_ACT_NOTIFY, 0)->notify.deadline_at_ms, 30000);
    cr_assert_eq(pliant_next_deadline(w.s), 25000);
    world_free(&w);
}

Test(drains, bring_the_last_checkpoint_forward_as_well) /* [S-DRN-3, S-DRN-5] */
{
    struct world w = with_checkpoints(2);

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    world_to(&w, 55000);
    cr_assert_eq(pliant_next_deadline(w.s), 59500);
    world_drain(&w, "n2", 100000);
    cr_assert_eq(pliant_next_deadline(w.s), 59500);
    world_drain(&w, "n2", 3000);
    cr_assert_eq(pliant_next_deadline(w.s), 57500);
    world_to(&w, 57500);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

Test(drains, need_a_checkpoint_since_the_last_notice) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(4);

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    world_to(&w, 1000);
    world_drain(&w, "n2", 60000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false); /* the one of 0 */
    expect_state(&w, PLIANT_EXECUTING);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

/* ---- nowhere to go ---------------------------------------------------------------------- */

Test(drains, restart_and_wait_when_nothing_sufficient_is_left) /* [S-DRN-6] */
{
    struct world w = without_checkpoints(1);

    world_drain(&w, "n1", 30000);
    world_to(&w, 34999);
    expect_state(&w, PLIANT_EXECUTING);
    world_to(&w, 35000);
    expect_state(&w, PLIANT_WAITING_FOR_RESOURCES);
    cr_assert(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Restarting > WaitingForResources"));
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_BACKOFF_OVER); /* without a target */
    cr_assert_eq(world_counts(&w).drain_moves, 1);
    world_node(&w, "n2", 4);
    expect_state(&w, PLIANT_EXECUTING);
    world_free(&w);
}

/* ---- meanwhile -------------------------------------------------------------------------- */

Test(drains, let_no_other_rescale_start) /* [S-DRN-7] */
{
    struct world w = with_checkpoints(1); /* two of four */

    world_to(&w, 11000);
    world_drain(&w, "n1", 500000);
    world_node(&w, "n2", 1); /* one slot that is not the draining node's: another parallelism */
    world_checkpoint(&w);
    world_to(&w, 200000); /* long stable */
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(world_counts(&w).restarts, 0);
    world_node(&w, "n3", 2); /* now two fit, and the move goes for three */
    cr_assert_eq(world_counts(&w).restarts, 1);
    cr_assert_eq(pliant_parallelism(w.s, V), 3);
    world_free(&w);
}

Test(drains, let_wishes_of_the_user_through) /* [S-DRN-7] */
{
    struct world w = with_checkpoints(2);

    world_drain(&w, "n1", 60000);
    world_bounds(&w, 1, 2); /* it fits on n2, as soon as the checkpoint is there */
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(world_counts(&w).restarts, 0);
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    world_free(&w);
}

/* ---- budgets ---------------------------------------------------------------------------- */

Test(drains, have_a_budget_of_their_own) /* [S-DRN-8]; trouble 103 */
{
    struct world w = running(3, NULL, "5"); /* and one restart after failures */
    char name[8], fresh[8] = "f0";

    for (int i = 0; i < 5; i++, fresh[1]++) {
        strcpy(name, node_of(&w, 0));
        world_drain(&w, name, 60000);
        world_node(&w, fresh, 2);
        expect_state(&w, PLIANT_EXECUTING);
        cr_assert_eq(world_counts(&w).drain_moves, (uint64_t)i + 1);
    }
    cr_assert_eq(world_counts(&w).restarts, 5);
    world_fail(&w, true); /* the strategy was neither asked nor told */
    world_to(&w, 3000);
    expect_state(&w, PLIANT_EXECUTING);
    world_fail(&w, true);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    world_free(&w);
}

Test(drains, fail_the_job_when_their_budget_is_used_up) /* [S-DRN-8] */
{
    struct world w = running(3, NULL, "0");
    const struct pliant_failure *entry;

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    expect_state(&w, PLIANT_FAILING);
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED);
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    entry = pliant_failure_at(w.s, 0);
    cr_assert_eq(entry->n, 1);
    cr_assert_eq(entry->items[0].reason, PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED);
    cr_assert_str_eq(entry->items[0].cause, "drain budget exhausted");
    cr_assert_eq(world_counts(&w).drain_moves, 0);
    world_free(&w);
}

Test(drains, are_charged_once_a_move) /* [S-DRN-8] */
{
    struct world w = running(4, NULL, "-1");

    w.reserves = false;
    world_drain(&w, "n1", 60000);
    world_drain(&w, "n2", 60000); /* it goes where the job has just left */
    cr_assert_eq(world_counts(&w).drain_moves, 1);
    world_free(&w);
}

/* ---- the node is lost all the same ------------------------------------------------------ */

Test(drains, pay_for_a_node_that_is_lost_before_the_move) /* [S-DRN-9] */
{
    struct world w = with_checkpoints(2);

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    world_drain(&w, "n2", 60000);
    world_lose(&w, "n1");
    expect_state(&w, PLIANT_RESTARTING);
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_DRAINING_NODE_LOST);
    cr_assert_eq(w.changed.change.detail, 0); /* no back-off */
    world_lose(&w, "n2");                     /* of the same drain */
    cr_assert_eq(world_counts(&w).drain_moves, 1);
    expect_state(&w, PLIANT_WAITING_FOR_RESOURCES);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 4);
    cr_assert_eq(pliant_failure_at(w.s, 0)->items[0].reason, PLIANT_REASON_DRAINING_NODE_LOST);
    w.cancels = true;
    world_node(&w, "n3", 4);
    expect_state(&w, PLIANT_EXECUTING);
    world_fail(&w, true); /* the strategy's one restart is still there */
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_free(&w);
}

Test(drains, go_by_way_of_waiting_when_a_draining_node_is_lost) /* [S-DRN-9] */
{
    struct world w = with_checkpoints(3);

    world_drain(&w, "n1", 60000);
    world_lose(&w, "n1");
    cr_assert(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Restarting > WaitingForResources > CreatingExecutionGraph > "
                             "Executing"));
    cr_assert_eq(world_counts(&w).drain_moves, 1);
    world_free(&w);
}

Test(drains, record_the_task_failures_that_follow) /* [S-DRN-9, S-FAIL-3] */
{
    struct world w = with_checkpoints(2);

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    world_lose(&w, "n1");
    for (uint32_t i = 0; i < 4; i++)
        world_fail_task(&w, 1, i, true); /* those on n2 miss their peers */
    cr_assert_eq(world_counts(&w).drain_moves, 1);
    cr_assert_eq(world_counts(&w).restarts, 1);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 4);
    world_free(&w);
}

Test(drains, fail_the_job_when_a_lost_node_cannot_be_paid) /* [S-DRN-8, S-DRN-9] */
{
    struct world w = running(2, "10 min", "0");

    world_drain(&w, "n1", 60000);
    world_lose(&w, "n1");
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    world_free(&w);
}

Test(drains, take_an_ordinary_failure_for_one) /* [S-DRN-9, S-FAIL-5] */
{
    struct world w = with_checkpoints(2);

    world_drain(&w, "n1", 60000);
    world_lose(&w, "n2"); /* that one does not drain */
    expect_state(&w, PLIANT_RESTARTING);
    cr_assert_eq(w.changed.change.detail, 3000);
    cr_assert_eq(world_counts(&w).drain_moves, 0);
    world_free(&w);
}

/* ---- withdrawn -------------------------------------------------------------------------- */

Test(drains, give_the_slots_back_when_withdrawn) /* [S-DRN-10] */
{
    struct world w = with_checkpoints(2);
    struct pliant_next next;

    world_drain(&w, "n1", 60000);
    world_withdraw(&w, "n1");
    cr_assert_eq(world_counts(&w).slots_offered, 4);
    cr_assert_eq(world_counts(&w).draining_nodes, 0);
    world_to(&w, 100000);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(world_counts(&w).restarts, 0);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_RESCALE);
    world_free(&w);
}

Test(drains, are_a_change_for_the_transition_manager_when_withdrawn) /* [S-DRN-10, S-TML-5] */
{
    struct world w = with_checkpoints(1); /* two of four */
    struct pliant_next next;

    world_node(&w, "n2", 0);
    world_drain(&w, "n2", 200000);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n2", .slots = 2}});
    world_to(&w, 100000);
    cr_assert_eq(pliant_parallelism(w.s, V), 2);
    pliant_next(w.s, &next);
    cr_assert_str_eq(next.phase, "Idling");
    world_withdraw(&w, "n2");
    cr_assert_eq(pliant_parallelism(w.s, V), 4);
    cr_assert_eq(pliant_rescale_at(w.s, 0)->trigger, PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE);
    world_free(&w);
}

Test(drains, are_withdrawn_by_the_same_life_that_comes_up) /* [S-DRN-10] */
{
    struct world w = world_new((struct world_spec){.parallelism = 2});
    struct pliant_event up = {.kind = PLIANT_EV_NODE_UP,
                              .node_up = {.name = "n1", .incarnation = 3, .slots = 2}};

    world_event(&w, up);
    world_start(&w);
    world_drain(&w, "n1", 60000);
    cr_assert_eq(world_counts(&w).draining_nodes, 1);
    world_event(&w, up);
    cr_assert_eq(world_counts(&w).draining_nodes, 0);
    cr_assert_eq(world_counts(&w).slots_offered, 2);
    expect_state(&w, PLIANT_EXECUTING);
    world_free(&w);
}

Test(drains, go_on_moving_when_withdrawn_after_the_move_began) /* [S-DRN-10] */
{
    struct world w = without_checkpoints(3);

    w.cancels = false;
    world_drain(&w, "n1", 60000);
    expect_state(&w, PLIANT_RESTARTING);
    world_withdraw(&w, "n1");
    expect_state(&w, PLIANT_RESTARTING);
    w.cancels = true;
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(world_counts(&w).restarts, 1);
    world_free(&w);
}

Test(drains, that_are_left_count_when_one_of_several_is_withdrawn) /* [S-DRN-3, S-DRN-10] */
{
    struct world w = without_checkpoints(2);
    struct pliant_next next;

    world_drain(&w, "n1", 30000);
    world_drain(&w, "n2", 90000);
    cr_assert_eq(pliant_next_deadline(w.s), 25000);
    world_withdraw(&w, "n1");
    pliant_next(w.s, &next);
    cr_assert_eq(next.at_ms, 85000);
    world_to(&w, 84999);
    cr_assert_eq(world_counts(&w).restarts, 0);
    world_to(&w, 85000);
    cr_assert_eq(world_counts(&w).restarts, 1);
    world_free(&w);
}

Test(drains, ignore_the_withdrawal_of_what_does_not_drain) /* [S-DRN-10] */
{
    struct world w = with_checkpoints(2);
    uint64_t ignored = world_counts(&w).events_ignored;

    world_withdraw(&w, "n1");
    world_withdraw(&w, "nobody");
    world_drain(&w, "nobody", 1000);
    cr_assert_eq(world_counts(&w).events_ignored, ignored + 3);
    world_free(&w);
}

/* ---- outside of Executing --------------------------------------------------------------- */

Test(drains, only_remove_the_slots_while_the_job_waits) /* [S-DRN-11] */
{
    struct world w = world_new((struct world_spec){.min_parallelism = 4});

    world_start(&w);
    world_node(&w, "n1", 2);
    world_drain(&w, "n1", 60000);
    cr_assert_eq(w.n_actions, 0);
    world_node(&w, "n2", 2);
    expect_state(&w, PLIANT_WAITING_FOR_RESOURCES);
    world_node(&w, "n3", 2);
    expect_state(&w, PLIANT_EXECUTING);
    world_free(&w);
}

Test(drains, make_a_plan_fail_that_uses_the_slots) /* [S-DRN-11, S-CEG-5] */
{
    struct world w = world_new((struct world_spec){0});

    w.reserves = false;
    world_start(&w);
    world_node(&w, "n1", 4);
    world_drain(&w, "n1", 60000);
    cr_assert_eq(w.n_actions, 0);
    expect_state(&w, PLIANT_CREATING_EXECUTION_GRAPH);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, false);
    expect_state(&w, PLIANT_WAITING_FOR_RESOURCES);
    world_free(&w);
}

Test(drains, only_remove_the_slots_while_the_job_restarts) /* [S-DRN-11] */
{
    struct world w = with_checkpoints(3);

    w.cancels = false;
    world_fail(&w, true);
    world_drain(&w, "n3", 60000);
    world_drain(&w, "n1", 60000);
    cr_assert_eq(w.n_actions, 0);
    w.cancels = true;
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    world_to(&w, 13000);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(pliant_parallelism(w.s, V), 2);
    cr_assert_eq(world_counts(&w).drain_moves, 0);
    world_free(&w);
}

Test(drains, show_when_the_job_will_move) /* [S-DRN-5] */
{
    struct world w = with_checkpoints(2);
    struct pliant_next next;

    world_drain(&w, "n1", 60000);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_DRAIN);
    cr_assert_eq(next.at_ms, 55000);
    world_taken(&w, PLIANT_EV_CHECKPOINT_COMPLETED, false);
    world_to(&w, 55000);
    pliant_next(w.s, &next);
    cr_assert_eq(next.at_ms, 59500);
    world_free(&w);
}

Test(drains, open_a_rescale_of_their_own_kind) /* [S-TML-6] */
{
    struct world w = without_checkpoints(3);

    world_drain(&w, "n1", 60000);
    cr_assert_eq(pliant_rescale_at(w.s, 0)->trigger, PLIANT_TRIGGER_DRAIN);
    cr_assert_eq(pliant_rescale_at(w.s, 0)->end, PLIANT_RESCALE_SUCCEEDED);
    cr_assert_null(pliant_failure_at(w.s, 0)); /* [S-HIST-4] */
    world_free(&w);
}

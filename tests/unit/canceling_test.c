/* canceling_test.c - the user wants the job gone, its tasks go down */
#include <criterion/criterion.h>

#include "world.h"

/* Canceling since t = 1000, and no task has confirmed. */
static struct world canceling(void)
{
    struct world w = world_running((struct world_spec){0}, 4);

    w.cancels = false;
    world_to(&w, 1000);
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert_eq(pliant_state(w.s), PLIANT_CANCELING);
    return w;
}

static void expect_canceling(const struct world *w)
{
    cr_assert_eq(pliant_state(w->s), PLIANT_CANCELING);
    cr_assert_eq(pliant_job_status(w->s), PLIANT_JOB_CANCELLING);
}

Test(canceling, cancels_all_tasks) /* [S-CAN-1, S-GEN-13] */
{
    struct world w = canceling();
    struct pliant_next next;

    cr_assert_str_eq(world_emitted(&w), "state_changed status_changed cancel");
    cr_assert_eq(world_count(&w, PLIANT_ACT_CANCEL), 4);
    expect_canceling(&w);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_ALL_CANCELED);
    cr_assert_eq(next.at_ms, 181000);
    world_free(&w);
}

Test(canceling, ends_as_canceled_when_all_tasks_are_down) /* [S-CAN-2] */
{
    struct world w = canceling();

    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 0);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 1);
    world_fail_task(&w, 1, 2, true);
    expect_canceling(&w);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 3);
    cr_assert_str_eq(world_emitted(&w), "failure state_changed status_changed release archived");
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_ALL_CANCELED);
    world_free(&w);
}

Test(canceling, ends_as_finished_when_all_tasks_had_finished) /* [S-CAN-2] */
{
    struct world w = canceling();

    world_all_tasks(&w, PLIANT_EV_TASK_FINISHED);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FINISHED);
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_ALL_FINISHED);
    world_free(&w);
}

Test(canceling, ignores_a_second_cancel) /* [S-CAN-1] */
{
    struct world w = canceling();
    uint64_t ignored = world_counts(&w).events_ignored;
    struct pliant_next next;

    world_to(&w, 2000);
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert_eq(w.n_actions, 0);
    cr_assert_eq(world_counts(&w).events_ignored, ignored + 1);
    expect_canceling(&w);
    pliant_next(w.s, &next);
    cr_assert_eq(next.at_ms, 181000);
    world_free(&w);
}

Test(canceling, records_failures_and_does_nothing_else) /* [S-CAN-1] */
{
    struct world w = canceling();

    world_fail(&w, false);
    world_fail_task(&w, 1, 0, true);
    cr_assert_eq(w.n_actions, 0);
    expect_canceling(&w);
    world_lose(&w, "n1");
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 5);
    world_free(&w);
}

Test(canceling, ends_as_suspended_on_a_suspend) /* [S-CAN-3, S-GEN-12] */
{
    struct world w = canceling();

    world_plain(&w, PLIANT_EV_SUSPEND);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_SUSPENDED);
    world_free(&w);
}

Test(canceling, keeps_its_end_when_a_suspend_comes_after_it) /* [S-CAN-3, S-FIN-1] */
{
    struct world w = canceling();

    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    world_plain(&w, PLIANT_EV_SUSPEND);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    world_free(&w);
}

Test(canceling, refuses_wishes_and_ignores_slots) /* [S-GEN-6] */
{
    struct world w = canceling();

    world_node(&w, "n2", 4);
    world_drain(&w, "n1", 1000);
    cr_assert_eq(w.n_actions, 0);
    world_plain(&w, PLIANT_EV_STOP);
    cr_assert_eq(w.actions[0].flag[0], PLIANT_REASON_NOT_EXECUTING);
    world_plain(&w, PLIANT_EV_START);
    cr_assert_eq(w.actions[0].flag[0], PLIANT_REASON_ALREADY_STARTED);
    expect_canceling(&w);
    world_free(&w);
}

/* ---- the time that tasks have ----------------------------------------------------------- */

Test(canceling, gives_up_the_nodes_of_tasks_that_do_not_confirm) /* [S-FLG-4] */
{
    struct world w = canceling();

    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 0);
    world_to(&w, 180999);
    expect_canceling(&w);
    world_to(&w, 181000);
    cr_assert_eq(world_count(&w, PLIANT_ACT_GIVE_UP_NODE), 1); /* once, for three tasks */
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 3);
    cr_assert_eq(pliant_failure_at(w.s, 0)->items[0].reason, PLIANT_REASON_NODE_LOST);
    world_free(&w);
}

/* A job that was told to restart, or to fail, at t = 1000 and is canceled 100 s later. */
static void canceled_meanwhile(const char *restart_strategy, enum pliant_state state)
{
    struct world w = world_running(
        (struct world_spec){.options = {"restart-strategy.type", restart_strategy}}, 4);

    w.cancels = false;
    world_to(&w, 1000);
    world_fail(&w, true);
    cr_assert_eq(pliant_state(w.s), state);
    world_to(&w, 101000);
    world_plain(&w, PLIANT_EV_CANCEL);
    expect_canceling(&w);
    cr_assert_eq(world_count(&w, PLIANT_ACT_CANCEL), 0);
    world_to(&w, 180999);
    expect_canceling(&w);
    world_to(&w, 181000); /* from the first cancel, not from the second */
    cr_assert_eq(world_count(&w, PLIANT_ACT_GIVE_UP_NODE), 1);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    world_free(&w);
}

Test(canceling, keeps_the_older_deadline_of_tasks_that_were_told_before) /* [S-FLG-4, S-RST-7] */
{
    canceled_meanwhile("fixed-delay", PLIANT_RESTARTING);
    canceled_meanwhile("none", PLIANT_FAILING);
}

Test(canceling, is_over_at_once_when_all_tasks_are_down_already) /* [S-RST-7] */
{
    struct world w =
        world_running((struct world_spec){.options = {"restart-strategy.type", "fixed-delay"}}, 4);

    world_fail(&w, true);
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING); /* in its back-off */
    cr_assert_eq(pliant_next_deadline(w.s), 1000);
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Restarting > Canceling > Finished"));
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 1);
    cr_assert_null(pliant_failure_at(w.s, 1)); /* one entry, not two */
    world_free(&w);
}

Test(canceling, restarting_gives_up_nodes_too) /* [S-FLG-4] */
{
    struct world w =
        world_running((struct world_spec){.options = {"restart-strategy.type", "fixed-delay",
                                                      "task.cancellation.timeout", "10 s"}},
                      4);

    w.cancels = false;
    world_fail(&w, true);
    world_to(&w, 9999);
    cr_assert_eq(world_counts(&w).nodes, 1);
    world_to(&w, 10000);
    cr_assert_eq(world_count(&w, PLIANT_ACT_GIVE_UP_NODE), 1);
    cr_assert_eq(world_counts(&w).nodes, 0);
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_to(&w, 11000); /* the back-off begins when all are down */
    cr_assert_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 5);
    world_free(&w);
}

Test(canceling, closes_an_open_rescale_as_canceled) /* [S-TML-11] */
{
    struct world w = world_running((struct world_spec){0}, 4);

    world_bounds(&w, 1, 3);
    w.cancels = false;
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert_eq(pliant_rescale_at(w.s, 0)->end, PLIANT_RESCALE_JOB_CANCELED);
    world_free(&w);
}

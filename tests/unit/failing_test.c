/* failing_test.c - the job can't go on, its tasks go down */
#include <criterion/criterion.h>
#include <string.h>

#include "world.h"

/* Failing since t = 1000, and no task has confirmed its cancel. */
static struct world failing_with(const char *timeout)
{
    struct world w =
        world_running((struct world_spec){.options = {"task.cancellation.timeout", timeout}}, 4);

    w.cancels = false;
    world_to(&w, 1000);
    world_fail(&w, true); /* no restart strategy is configured */
    cr_assert_eq(pliant_state(w.s), PLIANT_FAILING);
    return w;
}

static struct world failing(void)
{
    return failing_with("3 min");
}

static void expect_failing(const struct world *w)
{
    cr_assert_eq(pliant_state(w->s), PLIANT_FAILING);
    cr_assert_eq(pliant_job_status(w->s), PLIANT_JOB_FAILING);
}

Test(failing, cancels_all_tasks_and_shows_it) /* [S-FLG-1, S-GEN-1, S-GEN-13] */
{
    struct world w = failing();
    struct pliant_next next;

    cr_assert_str_eq(world_emitted(&w), "state_changed status_changed cancel");
    cr_assert_eq(world_count(&w, PLIANT_ACT_CANCEL), 4);
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_RESTARTS_SUPPRESSED);
    expect_failing(&w);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_RESTARTS_SUPPRESSED);
    cr_assert_eq(next.at_ms, 1000 + 180000);
    world_free(&w);
}

Test(failing, ends_as_failed_when_all_tasks_are_down) /* [S-FLG-2, S-GEN-11] */
{
    struct world w = failing();

    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_CANCELED, 1, i);
    expect_failing(&w);
    cr_assert_null(pliant_failure_at(w.s, 0)); /* not yet an entry [S-HIST-2] */
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 3);
    cr_assert_str_eq(world_emitted(&w), "failure state_changed status_changed release archived");
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_RESTARTS_SUPPRESSED);
    cr_assert_eq(world_action(&w, PLIANT_ACT_ARCHIVED, 0)->status.to, PLIANT_JOB_FAILED);
    world_free(&w);
}

Test(failing, is_over_at_once_without_a_live_task) /* [S-FLG-1] */
{
    struct world w = world_running((struct world_spec){.parallelism = 1}, 1);

    world_fail_task(&w, 1, 0, true);
    cr_assert(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "Failing > Finished"));
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    world_free(&w);
}

Test(failing, goes_to_canceling_on_a_cancel) /* [S-FLG-3] */
{
    struct world w = failing();

    world_to(&w, 2000);
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert_eq(pliant_state(w.s), PLIANT_CANCELING);
    cr_assert_eq(world_count(&w, PLIANT_ACT_CANCEL), 0); /* they were told */
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
    cr_assert_not_null(pliant_failure_at(w.s, 0)); /* what failed is kept */
    world_free(&w);
}

Test(failing, records_failures_and_does_nothing_else) /* [S-FLG-3, S-FAIL-3] */
{
    struct world w = failing();
    const struct pliant_failure *entry;

    world_fail(&w, true);
    world_fail(&w, false);
    cr_assert_eq(w.n_actions, 0);
    world_fail_task(&w, 1, 2, true);
    cr_assert_eq(w.n_actions, 0);
    expect_failing(&w);
    world_lose(&w, "n1"); /* takes the other three */
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    entry = pliant_failure_at(w.s, 0);
    cr_assert_eq(entry->n, 7);
    cr_assert_eq(entry->items[0].reason, PLIANT_REASON_GLOBAL_FAILURE);
    cr_assert_eq(entry->items[3].reason, PLIANT_REASON_TASK_FAILED);
    cr_assert_eq(entry->items[6].reason, PLIANT_REASON_NODE_LOST);
    cr_assert_null(pliant_failure_at(w.s, 1));
    world_free(&w);
}

Test(failing, ends_as_suspended_on_a_suspend) /* [S-GEN-12] */
{
    struct world w = failing();

    world_plain(&w, PLIANT_EV_SUSPEND);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_SUSPENDED);
    cr_assert_eq(world_count(&w, PLIANT_ACT_FAILURE), 0);
    world_free(&w);
}

Test(failing, ignores_slots_requirements_checkpoints_and_late_news) /* [S-GEN-6] */
{
    struct world w = failing();
    uint64_t ignored = world_counts(&w).events_ignored;

    world_node(&w, "n2", 4);
    world_drain(&w, "n1", 1000);
    world_withdraw(&w, "n1");
    world_lose(&w, "n2");
    cr_assert_eq(w.n_actions, 0);
    world_checkpoint(&w);
    world_task(&w, PLIANT_EV_TASK_RUNNING, 1, 0); /* it was told to stop */
    cr_assert_eq(w.n_actions, 0);
    cr_assert_eq(world_counts(&w).events_ignored, ignored + 2);
    world_bounds(&w, 1, 2);
    cr_assert_str_eq(world_emitted(&w), "declare rescale_opened"); /* stored, and that is all */
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    cr_assert_str_eq(world_emitted(&w), "refused");
    world_plain(&w, PLIANT_EV_STOP);
    cr_assert_str_eq(world_emitted(&w), "refused");
    expect_failing(&w);
    world_free(&w);
}

/* ---- the time that tasks have ----------------------------------------------------------- */

Test(failing, gives_up_the_nodes_of_tasks_that_do_not_confirm) /* [S-FLG-4] */
{
    struct world w = world_new((struct world_spec){.parallelism = 6});
    const struct pliant_action *act;
    pliant_node_id given_up;

    w.cancels = false;
    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_node(&w, "n3", 2);
    world_start(&w);
    world_fail(&w, true);
    for (uint32_t i = 0; i < 6; i++) { /* what is on n2 does not confirm */
        struct pliant_task_info info;

        pliant_task_info(w.s, (pliant_vertex_id){1}, i, &info);
        if (strcmp(pliant_node_name(w.s, pliant_slot_node(w.s, info.slot)), "n2") != 0)
            world_task(&w, PLIANT_EV_TASK_CANCELED, 1, i);
    }
    world_to(&w, 179999);
    expect_failing(&w);
    world_to(&w, 180000);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_assert_eq(world_count(&w, PLIANT_ACT_GIVE_UP_NODE), 1);
    act = world_action(&w, PLIANT_ACT_GIVE_UP_NODE, 0);
    given_up = act->node.node;
    cr_assert_str_eq(pliant_node_name(w.s, given_up), "n2"); /* known for this step */
    cr_assert_eq(world_counts(&w).nodes, 2);
    world_lose(&w, "n2"); /* late */
    cr_assert_str_eq(pliant_node_name(w.s, given_up), "");
    world_free(&w);
}

Test(failing, waits_for_ever_where_there_is_no_bound) /* [S-FLG-4] */
{
    struct world w = failing_with("0");

    world_to(&w, INT64_C(1000000000));
    expect_failing(&w);
    world_free(&w);
}

Test(failing, closes_an_open_rescale_with_the_cause) /* [S-TML-11, S-TML-12] */
{
    struct world w = world_running((struct world_spec){.parallelism = 4}, 4);
    const struct pliant_rescale *record;

    world_bounds(&w, 1, 3);
    w.cancels = false;
    world_fail(&w, false);
    record = pliant_rescale_at(w.s, 0);
    cr_assert_eq(record->end, PLIANT_RESCALE_JOB_FAILED);
    cr_assert_eq(record->n_spans, 1);
    cr_assert_eq(record->spans[0].state, PLIANT_EXECUTING);
    cr_assert_str_eq(record->spans[0].exception, "all of it broke");
    world_free(&w);
}

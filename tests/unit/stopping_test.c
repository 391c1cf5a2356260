/* stopping_test.c - one last savepoint, then the job is to finish: every cell of the table of
 * StopWithSavepoint */
#include <criterion/criterion.h>
#include <string.h>

#include "world.h"

/* Stopping since t = 5000, nothing is decided; tasks don't confirm cancels, so that the texts of
 * the actions last until a test has looked at them. */
static struct world stopping(const char *restart_strategy)
{
    struct world w =
        world_running((struct world_spec){.options = {"execution.checkpointing.interval", "10 s",
                                                      "restart-strategy.type", restart_strategy,
                                                      "restart-strategy.fixed-delay.attempts", "1",
                                                      "restart-strategy.fixed-delay.delay", "3 s"}},
                      4);

    w.cancels = false;
    world_to(&w, 5000);
    world_stop(&w);
    cr_assert_eq(pliant_state(w.s), PLIANT_STOP_WITH_SAVEPOINT);
    return w;
}

static void expect_state(const struct world *w, enum pliant_state state)
{
    cr_assert_eq(pliant_state(w->s), state, "it is %s, not %s",
                 pliant_state_name(pliant_state(w->s)), pliant_state_name(state));
}

static void expect_no_answer(const struct world *w)
{
    cr_assert_eq(world_count(w, PLIANT_ACT_SAVEPOINT_ENDED), 0);
}

/* One answer: a path, or none and why. */
static void expect_answer(const struct world *w, const char *path, const char *cause)
{
    const struct pliant_action *act = world_action(w, PLIANT_ACT_SAVEPOINT_ENDED, 0);

    cr_assert_eq(world_count(w, PLIANT_ACT_SAVEPOINT_ENDED), 1);
    if (path)
        cr_assert_str_eq(act->savepoint.path, path);
    else
        cr_assert_null(act->savepoint.path);
    cr_assert_str_eq(act->savepoint.cause, cause);
}

static void finish_tasks(struct world *w)
{
    world_all_tasks(w, PLIANT_EV_TASK_FINISHED);
}

/* ---- the good ends ---------------------------------------------------------------------- */

Test(stopping, is_done_when_the_savepoint_is_there_and_all_tasks_have_finished) /* [S-SWS-1] */
{
    struct world w = stopping("fixed-delay");

    world_savepoint(&w, true);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    expect_no_answer(&w); /* the savepoint alone is no success */
    finish_tasks(&w);
    expect_state(&w, PLIANT_FINISHED);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FINISHED);
    expect_answer(&w, "sp-1", "");
    world_free(&w);
}

Test(stopping, waits_for_the_savepoint_when_the_tasks_finish_first) /* [S-SWS-6] */
{
    struct world w = stopping("fixed-delay");

    finish_tasks(&w);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    expect_no_answer(&w);
    world_savepoint(&w, true);
    expect_state(&w, PLIANT_FINISHED);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FINISHED);
    expect_answer(&w, "sp-1", "");
    world_free(&w);
}

Test(stopping, gives_an_empty_path_where_the_host_names_none) /* [S-SWS-1] */
{
    struct world w = stopping("none");

    finish_tasks(&w);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SAVEPOINT_COMPLETED,
                                          .checkpoint.id = w.savepoint});
    expect_answer(&w, "", "");
    world_free(&w);
}

Test(stopping, finishes_also_when_the_savepoint_fails_after_the_tasks_have_finished) /* [S-SWS-6] */
{
    struct world w = stopping("fixed-delay");

    finish_tasks(&w);
    world_savepoint(&w, false);
    expect_state(&w, PLIANT_FINISHED); /* a disk can cause it: no bug of the program */
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FINISHED);
    expect_answer(&w, NULL, "disk full");
    world_free(&w);
}

Test(stopping, stays_with_what_finished_when_something_fails_afterwards) /* [S-SWS-4, S-SWS-6] */
{
    struct world w = stopping("none");

    finish_tasks(&w);
    world_fail(&w, false);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    world_savepoint(&w, true);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FINISHED);
    expect_answer(&w, "sp-1", "");
    cr_assert_not_null(pliant_failure_at(w.s, 0)); /* recorded */
    world_free(&w);
}

/* ---- the savepoint fails ---------------------------------------------------------------- */

Test(stopping, goes_back_to_executing_when_only_the_savepoint_fails) /* [S-SWS-2, S-GEN-8]; known
                                                                        trouble 068 */
{
    struct world w = stopping("none");

    world_savepoint(&w, false);
    expect_state(&w, PLIANT_EXECUTING);
    expect_answer(&w, NULL, "disk full");
    cr_assert_eq(world_count(&w, PLIANT_ACT_DEPLOY), 0); /* the same tasks go on: trouble 068 */
    cr_assert_eq(world_count(&w, PLIANT_ACT_CANCEL), 0);
    cr_assert_eq(world_count(&w, PLIANT_ACT_STATUS_CHANGED), 0);
    cr_assert_eq(world_counts(&w).tasks_running, 4);
    cr_assert_eq(world_counts(&w).restarts, 0);
    cr_assert(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > Executing > "
                             "StopWithSavepoint > Executing"));
    world_free(&w);
}

Test(stopping,
     resumes_periodic_checkpoints_when_the_savepoint_fails) /* [S-SWS-7]; known trouble 068 */
{
    struct world w = stopping("none");

    world_to(&w, 24999); /* periodic ones are off: the one at 10000 never came */
    cr_assert_eq(w.checkpoint, 0);
    cr_assert_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 0);
    world_savepoint(&w, false);
    world_to(&w, 34998);
    cr_assert_eq(w.checkpoint, 0);
    world_to(&w, 34999);
    cr_assert_neq(w.checkpoint, 0);
    world_free(&w);
}

Test(stopping, does_not_resume_periodic_checkpoints_when_the_savepoint_is_there) /* [S-SWS-7] */
{
    struct world w = stopping("none");

    world_savepoint(&w, true);
    world_to(&w, 600000);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    cr_assert_eq(w.checkpoint, 0);
    world_free(&w);
}

Test(stopping, begins_a_new_cooldown_when_it_goes_back) /* [S-SWS-2] */
{
    struct world w = stopping("none");
    struct pliant_next next;

    world_to(&w, 29000);
    world_savepoint(&w, false);
    pliant_next(w.s, &next);
    cr_assert_str_eq(next.phase, "Cooldown");
    cr_assert_eq(next.at_ms, 29000 + 30000);
    world_free(&w);
}

Test(stopping, judges_what_came_meanwhile_when_it_goes_back) /* [S-SWS-2, S-SWS-9, S-EXE-3] */
{
    struct world w = world_running(
        (struct world_spec){.options = {"execution.checkpointing.interval", "10 s",
                                        "jobmanager.adaptive-scheduler.rescale-trigger.max-delay",
                                        "0 s"}},
        2);

    world_stop(&w);
    world_node(&w, "n2", 2);
    cr_assert_eq(w.n_actions, 0); /* nothing moves while stopping */
    world_to(&w, 100000);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    world_savepoint(&w, false);
    world_to(&w, 129999);
    cr_assert_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 2);
    world_to(&w, 130000);
    cr_assert_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 4);
    world_free(&w);
}

Test(stopping, takes_a_savepoint_that_expires_for_failed) /* [S-SWS-2] */
{
    struct world w = stopping("none");

    world_to(&w, 5000 + 10 * 60000 - 1);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    world_to(&w, 5000 + 10 * 60000);
    expect_state(&w, PLIANT_EXECUTING);
    expect_answer(&w, NULL, "the savepoint expired");
    world_free(&w);
}

Test(stopping, keeps_the_rescale_history_when_it_goes_back) /* [S-TML-8] */
{
    struct world w = stopping("none");

    world_bounds(&w, 1, 3); /* a record is open, and stays so */
    world_savepoint(&w, false);
    cr_assert_eq(pliant_rescale_at(w.s, 0)->end, PLIANT_RESCALE_OPEN);
    cr_assert_eq(world_count(&w, PLIANT_ACT_RESCALE_CLOSED), 0);
    world_free(&w);
}

/* ---- a failure, the savepoint unknown --------------------------------------------------- */

enum failing_part { TASK, GLOBAL, NODE };

static void fail(struct world *w, enum failing_part part, bool recoverable)
{
    if (part == TASK)
        world_fail_task(w, 1, 0, recoverable);
    else if (part == GLOBAL)
        world_fail(w, recoverable);
    else
        world_lose(w, "n1");
}

Test(stopping, waits_for_the_savepoint_before_it_decides_on_a_failure) /* [S-SWS-3, S-DRN-11] */
{
    for (enum failing_part part = TASK; part <= NODE; part++) {
        struct world w = stopping("fixed-delay");

        fail(&w, part, true);
        expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
        expect_no_answer(&w);
        cr_assert_eq(world_count(&w, PLIANT_ACT_CANCEL), 0);
        world_to(&w, 60000);
        expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
        world_free(&w);
    }
}

Test(stopping, restarts_when_the_savepoint_fails_too_and_the_strategy_allows) /* [S-SWS-3] */
{
    for (enum failing_part part = TASK; part <= GLOBAL; part++) {
        struct world w = stopping("fixed-delay");

        fail(&w, part, true);
        world_savepoint(&w, false);
        expect_state(&w, PLIANT_RESTARTING);
        expect_answer(&w, NULL, "disk full");
        cr_assert_eq(world_action(&w, PLIANT_ACT_STATE_CHANGED, 0)->change.detail, 3000);
        world_free(&w);
    }
}

Test(stopping, fails_when_the_savepoint_fails_too_and_no_restart_is_configured) /* [S-SWS-3] */
{
    for (enum failing_part part = TASK; part <= GLOBAL; part++) {
        struct world w = stopping("none");

        fail(&w, part, true);
        world_savepoint(&w, false);
        expect_state(&w, PLIANT_FAILING);
        expect_answer(&w, NULL, "disk full");
        world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
        cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
        cr_assert_eq(pliant_failure_at(w.s, 0)->n, 1); /* the plain cause */
        world_free(&w);
    }
}

Test(stopping, fails_on_an_unrecoverable_failure_when_the_savepoint_fails_too) /* [S-SWS-3] */
{
    struct world w = stopping("fixed-delay");

    world_fail(&w, false);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    world_savepoint(&w, false);
    expect_state(&w, PLIANT_FAILING);
    world_free(&w);
}

Test(stopping, asks_the_strategy_once_for_many_failures) /* [S-SWS-3, S-SWS-4, S-FAIL-3] */
{
    struct world w = stopping("fixed-delay"); /* one attempt */

    world_fail_task(&w, 1, 0, true);
    world_fail_task(&w, 1, 1, false); /* only the first decides */
    world_fail(&w, true);
    world_savepoint(&w, false);
    expect_state(&w, PLIANT_RESTARTING);
    cr_assert_eq(world_count(&w, PLIANT_ACT_STATE_CHANGED), 1);
    w.cancels = true;
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 2);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 3);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 3); /* recorded, all of them */
    world_to(&w, 8000);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(world_counts(&w).restarts, 1);
    world_free(&w);
}

Test(stopping, treats_tasks_that_end_otherwise_as_a_failure) /* [S-SWS-3, S-GEN-11] */
{
    struct world w = stopping("fixed-delay");
    const struct pliant_failure *entry;

    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 0);
    for (uint32_t i = 1; i < 4; i++)
        world_task(&w, PLIANT_EV_TASK_CANCELED, 1, i);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    world_savepoint(&w, false);
    expect_state(&w, PLIANT_RESTARTING);
    entry = pliant_failure_at(w.s, 0);
    cr_assert_eq(entry->n, 1);
    cr_assert_eq(entry->items[0].reason, PLIANT_REASON_GLOBAL_FAILURE);
    cr_assert_str_eq(entry->items[0].cause,
                     "the job did not reach FINISHED during stop-with-savepoint");
    world_free(&w);
}

Test(stopping, does_not_count_the_end_of_failed_tasks_as_another_failure) /* [S-SWS-4] */
{
    struct world w = stopping("fixed-delay");

    world_lose(&w, "n1"); /* all four tasks at once */
    world_savepoint(&w, false);
    expect_state(&w, PLIANT_RESTARTING);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 4);
    world_free(&w);
}

/* ---- a failure, the savepoint is there -------------------------------------------------- */

static void expect_wrapped(struct world *w)
{
    const struct pliant_failure *entry;

    expect_state(w, PLIANT_FAILING);
    expect_answer(w, NULL, "stopping-failed, savepoint at sp-1");
    cr_assert_eq(world_action(w, PLIANT_ACT_STATE_CHANGED, 0)->flag[2],
                 PLIANT_REASON_STOPPING_FAILED);
    world_all_tasks(w, PLIANT_EV_TASK_CANCELED);
    cr_assert_eq(pliant_job_status(w->s), PLIANT_JOB_FAILED);
    entry = pliant_failure_at(w->s, 0);
    cr_assert_eq(entry->n, 2); /* what broke, and what it meant */
    cr_assert_eq(entry->items[1].reason, PLIANT_REASON_STOPPING_FAILED);
    cr_assert(!entry->items[1].recoverable);
    cr_assert_str_eq(entry->items[1].cause, "stopping-failed, savepoint at sp-1");
}

Test(stopping, fails_behind_the_savepoint_instead_of_restarting) /* [S-SWS-5] */
{
    for (enum failing_part part = TASK; part <= GLOBAL; part++) {
        struct world w = stopping("fixed-delay");

        world_savepoint(&w, true);
        expect_no_answer(&w);
        fail(&w, part, true);
        expect_wrapped(&w);
        world_free(&w);
    }
}

Test(stopping, fails_when_the_savepoint_is_there_after_the_failure) /* [S-SWS-3, S-SWS-5] */
{
    for (enum failing_part part = TASK; part <= GLOBAL; part++) {
        struct world w = stopping("fixed-delay");

        fail(&w, part, true);
        world_savepoint(&w, true);
        expect_wrapped(&w);
        world_free(&w);
    }
}

Test(stopping, fails_when_the_tasks_end_otherwise_after_the_savepoint) /* [S-SWS-5] */
{
    struct world w = stopping("fixed-delay");

    world_savepoint(&w, true);
    for (uint32_t i = 0; i < 4; i++)
        world_task(&w, PLIANT_EV_TASK_CANCELED, 1, i);
    expect_state(&w, PLIANT_FINISHED); /* nothing to cancel */
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    expect_answer(&w, NULL, "stopping-failed, savepoint at sp-1");
    world_free(&w);
}

Test(stopping, keeps_a_path_of_any_length_and_cuts_the_cause) /* [S-SWS-5] */
{
    static char path[4000];
    struct world w = stopping("none");

    memset(path, 'p', sizeof path - 1);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SAVEPOINT_COMPLETED,
                                          .checkpoint = {.id = w.savepoint, .path = path}});
    finish_tasks(&w);
    expect_answer(&w, path, "");
    world_free(&w);

    w = stopping("none");
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SAVEPOINT_COMPLETED,
                                          .checkpoint = {.id = w.savepoint, .path = path}});
    world_lose(&w, "n1");
    cr_assert_eq(strlen(pliant_failure_at(w.s, 0)->items[4].cause), PLIANT_CAUSE_MAX);
    world_free(&w);
}

/* ---- a user, a lost wish ---------------------------------------------------------------- */

Test(stopping, goes_to_canceling_without_waiting) /* [S-SWS-8] */
{
    struct world w = stopping("fixed-delay");

    world_plain(&w, PLIANT_EV_CANCEL);
    expect_state(&w, PLIANT_CANCELING);
    expect_answer(&w, NULL, "cancel-requested");
    cr_assert_eq(world_count(&w, PLIANT_ACT_CANCEL), 4);
    world_savepoint(&w, true); /* late */
    expect_no_answer(&w);
    expect_state(&w, PLIANT_CANCELING);
    world_free(&w);
}

Test(stopping, says_where_the_savepoint_is_when_it_is_left_early) /* [S-SWS-1, S-SWS-8] */
{
    struct world w = stopping("fixed-delay");

    world_savepoint(&w, true);
    world_plain(&w, PLIANT_EV_CANCEL);
    expect_state(&w, PLIANT_CANCELING);
    expect_answer(&w, NULL, "cancel-requested, savepoint at sp-1");
    world_free(&w);
}

Test(stopping, ends_as_suspended_and_says_so) /* [S-GEN-12] */
{
    for (int done = 0; done < 2; done++) {
        struct world w = stopping("fixed-delay");

        if (done)
            world_savepoint(&w, true);
        world_plain(&w, PLIANT_EV_SUSPEND);
        cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_SUSPENDED);
        expect_answer(&w, NULL,
                      done ? "suspend-requested, savepoint at sp-1" : "suspend-requested");
        world_free(&w);
    }
}

Test(stopping, tells_the_first_cause_when_it_is_left_with_a_failure) /* [S-SWS-3] */
{
    struct world w = stopping("fixed-delay");

    world_fail_task(&w, 1, 1, true);
    world_plain(&w, PLIANT_EV_CANCEL);
    expect_answer(&w, NULL, "it broke");
    world_free(&w);
}

Test(stopping, refuses_wishes_meanwhile) /* [S-SWS-10, S-GEN-6] */
{
    static const enum pliant_event_kind wishes[] = {PLIANT_EV_STOP, PLIANT_EV_SAVEPOINT_REQUESTED,
                                                    PLIANT_EV_CHECKPOINT_REQUESTED,
                                                    PLIANT_EV_START};
    struct world w = stopping("none");
    uint64_t savepoint = w.savepoint;

    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        world_event(&w, (struct pliant_event){.kind = wishes[i], .savepoint.dir = "elsewhere"});
        cr_assert_eq(w.n_actions, 1);
        cr_assert_eq(w.actions[0].kind, PLIANT_ACT_REFUSED);
        cr_assert_eq(w.actions[0].flag[0], wishes[i] == PLIANT_EV_START
                                               ? PLIANT_REASON_ALREADY_STARTED
                                               : PLIANT_REASON_NOT_EXECUTING);
        expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    }
    cr_assert_eq(w.savepoint, savepoint);
    world_free(&w);
}

/* ---- the world goes on ------------------------------------------------------------------ */

Test(stopping, ignores_slots_requirements_and_drains) /* [S-SWS-9, S-DRN-11, S-REQ-4] */
{
    struct world w = stopping("none");

    world_node(&w, "n2", 8);
    cr_assert_eq(w.n_actions, 0);
    world_drain(&w, "n1", 1000);
    cr_assert_eq(w.n_actions, 0);
    world_withdraw(&w, "n1");
    cr_assert_eq(w.n_actions, 0);
    world_lose(&w, "n2");
    cr_assert_eq(w.n_actions, 0);
    world_bounds(&w, 1, 2); /* stored and declared */
    cr_assert_eq(world_count(&w, PLIANT_ACT_DECLARE), 1);
    world_to(&w, 300000);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    world_free(&w);
}

Test(stopping, moves_off_a_draining_node_once_the_savepoint_has_failed) /* [S-DRN-11] */
{
    struct world w = stopping("none");

    world_drain(&w, "n1", 60000);
    world_savepoint(&w, false);
    expect_state(&w, PLIANT_EXECUTING);
    cr_assert_eq(world_count(&w, PLIANT_ACT_NOTIFY), 1); /* now its tasks may know */
    cr_assert_eq(world_action(&w, PLIANT_ACT_NOTIFY, 0)->notify.deadline_at_ms, 65000);
    cr_assert_neq(w.checkpoint, 0); /* asked for, as at the notice */
    world_to(&w, 64000);
    expect_state(&w, PLIANT_RESTARTING);
    world_free(&w);
}

Test(stopping, notes_checkpoints_that_end_meanwhile) /* [S-SWS-7, S-EXE-17] */
{
    struct world w = world_running(
        (struct world_spec){.options = {"execution.checkpointing.interval", "10 s"}}, 4);
    uint64_t pending;

    world_to(&w, 10000);
    pending = w.checkpoint;
    cr_assert_neq(pending, 0);
    world_stop(&w);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                          .checkpoint.id = pending});
    cr_assert_eq(world_counts(&w).checkpoint, pending); /* to restore from */
    world_checkpoint_failed(&w, true);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    cr_assert_eq(w.n_actions, 0);
    world_free(&w);
}

Test(stopping, ignores_the_news_of_another_savepoint) /* [S-GEN-4] */
{
    struct world w = stopping("none");
    uint64_t ignored = world_counts(&w).events_ignored;

    w.savepoint += 1;
    world_savepoint(&w, true);
    world_savepoint(&w, false);
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    cr_assert_eq(world_counts(&w).events_ignored, ignored + 2);
    w.savepoint -= 1;
    world_savepoint(&w, true);
    world_savepoint(&w, false); /* it is decided */
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    cr_assert_eq(world_counts(&w).events_ignored, ignored + 3);
    world_free(&w);
}

Test(stopping, lets_go_of_a_checkpoint_that_expires) /* [S-SWS-9] */
{
    struct world w = world_running(
        (struct world_spec){.options = {"execution.checkpointing.interval", "10 s",
                                        "execution.checkpointing.timeout", "1 min",
                                        "execution.checkpointing.tolerable-failed-checkpoints",
                                        "0"}},
        4);

    world_to(&w, 10000);
    world_to(&w, 20000);
    world_stop(&w);
    world_to(&w, 79999); /* the checkpoint of 10000 has expired at 70000: no failure of the job */
    expect_state(&w, PLIANT_STOP_WITH_SAVEPOINT);
    world_free(&w);
}

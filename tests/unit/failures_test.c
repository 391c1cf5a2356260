/* failures_test.c - the one failure path: record, classify, decide */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "failing_alloc.h"
#include "world.h"

static const pliant_vertex_id V = {1};

/* Six subtasks on n1 .. n3, two slots each; so many restarts, after 3 s each. */
static struct world running(const char *attempts)
{
    struct world w = world_new((struct world_spec){
        .parallelism = 6,
        .options = {"restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.attempts",
                    attempts, "restart-strategy.fixed-delay.delay", "3 s"}});

    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_node(&w, "n3", 2);
    world_start(&w);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    return w;
}

Test(failures, of_the_unrecoverable_class_fail_the_job_whatever_the_strategy) /* [S-FAIL-1] */
{
    for (int global = 0; global < 2; global++) {
        struct world w = running("100");

        if (global)
            world_fail(&w, false);
        else
            world_fail_task(&w, 1, 3, false);
        cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
        cr_assert(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > "
                                 "Executing > Failing > Finished"));
        world_free(&w);
    }
}

Test(failures, say_why_the_job_ends) /* [S-FAIL-1] */
{
    struct world w = running("100");

    w.cancels = false;
    world_fail(&w, false);
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_NOT_RECOVERABLE);
    world_free(&w);
    w = running("0");
    w.cancels = false;
    world_fail(&w, true);
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_RESTARTS_SUPPRESSED);
    world_free(&w);
}

Test(failures, restart_the_job_after_the_strategy_s_delay) /* [S-FAIL-1, S-RST-2] */
{
    for (int global = 0; global < 2; global++) {
        struct world w = running("1");

        w.cancels = false;
        if (global)
            world_fail(&w, true);
        else
            world_fail_task(&w, 1, 4, true);
        cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
        cr_assert_eq(w.changed.flag[2],
                     global ? PLIANT_REASON_GLOBAL_FAILURE : PLIANT_REASON_TASK_FAILED);
        cr_assert_eq(w.changed.change.detail, 3000);
        cr_assert_str_eq(pliant_node_name(w.s, w.changed.change.node), global ? "" : "n3");
        world_free(&w);
    }
}

Test(failures, restart_all_tasks_of_the_job) /* [S-FAIL-4] */
{
    struct world w = running("1");

    world_fail_task(&w, 1, 0, true);
    cr_assert_eq(world_count(&w, PLIANT_ACT_CANCEL), 5); /* the others */
    world_to(&w, 3000);
    cr_assert_eq(world_count(&w, PLIANT_ACT_DEPLOY), 6);
    for (uint32_t i = 0; i < 6; i++) {
        struct pliant_task_info info;

        cr_assert(pliant_task_info(w.s, V, i, &info));
        cr_assert_eq(info.attempt, 2);
    }
    world_free(&w);
}

Test(failures, that_are_only_recorded_cost_no_attempt) /* [S-FAIL-3, S-RST-6] */
{
    struct world w = running("2");

    w.cancels = false;
    world_fail_task(&w, 1, 0, true); /* decided on */
    for (uint32_t i = 1; i < 6; i++)
        world_fail_task(&w, 1, i, true);
    world_fail(&w, true);
    world_to(&w, 3000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_fail(&w, true); /* the second of two */
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    world_to(&w, 6000);
    world_fail(&w, true);
    cr_assert_eq(pliant_state(w.s), PLIANT_FAILING);
    world_free(&w);
}

Test(failures, of_a_lost_node_cost_one_attempt) /* [S-FAIL-5] */
{
    struct world w = running("2");

    w.cancels = false;
    world_lose(&w, "n1"); /* two tasks */
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_NODE_LOST);
    cr_assert_str_eq(pliant_node_name(w.s, w.changed.change.node), "n1"); /* for this step */
    w.cancels = true;
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 2);
    world_to(&w, 13000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_lose(&w, "n2");
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_to(&w, 26000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_lose(&w, "n3");
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    world_free(&w);
}

Test(failures, are_none_where_the_lost_node_had_no_task) /* [S-FAIL-5] */
{
    struct world w = running("0");

    world_node(&w, "n4", 2);
    world_lose(&w, "n4");
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_node(&w, "n5", 0);
    world_lose(&w, "n5");
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(failures, leave_alone_the_finished_tasks_of_a_lost_node) /* [S-FAIL-5] */
{
    struct world w = running("0");

    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 0);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 1);
    world_lose(&w, "n1");
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(failures, are_those_of_the_tasks_that_live_on_the_lost_node) /* [S-FAIL-5, S-PAR-10] */
{
    static const struct pliant_vertex_spec vertices[] = {{.id = "wide", .parallelism = 4},
                                                         {.id = "narrow", .parallelism = 3}};
    struct world w =
        world_new((struct world_spec){.vertices = vertices,
                                      .n_vertices = 2,
                                      .options = {"restart-strategy.type", "fixed-delay"}});
    const struct pliant_failure *entry;

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 3);
    world_start(&w);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 1); /* the slot is empty with the next one */
    world_task(&w, PLIANT_EV_TASK_FINISHED, 2, 1);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 2, 2); /* this one's is not */
    world_lose(&w, "n2");
    entry = pliant_failure_at(w.s, 0);
    cr_assert_eq(entry->n, 2);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(entry->items[i].task.vertex.v, 1);
        cr_assert_eq(entry->items[i].task.subtask, 2 + i);
    }
    world_free(&w);
}

Test(failures, close_an_open_rescale_with_the_reason_where_no_cause_is_needed) /* [S-TML-11] */
{
    struct world w = running("0");

    world_bounds(&w, 1, 5);
    world_lose(&w, "n1");
    cr_assert_eq(pliant_rescale_at(w.s, 0)->end, PLIANT_RESCALE_JOB_FAILED);
    cr_assert_str_eq(pliant_rescale_at(w.s, 0)->spans[0].exception, "node-lost");
    world_free(&w);
}

Test(failures, without_a_cause_get_one) /* [S-FAIL-8] */
{
    static const char *const causes[] = {NULL, ""};

    for (size_t i = 0; i < 2; i++)
        for (int global = 0; global < 2; global++) {
            struct world w = running("1");
            struct pliant_event ev = {
                .kind = global ? PLIANT_EV_GLOBAL_FAILURE : PLIANT_EV_TASK_FAILED,
                .failure = {.task = {{1}, 0, 1}, .recoverable = true, .cause = causes[i]}};

            world_event(&w, ev);
            cr_assert_str_eq(pliant_failure_at(w.s, 0)->items[0].cause, "missing cause");
            world_free(&w);
        }
}

Test(failures, that_the_scheduler_notes_itself_take_the_same_path) /* [S-FAIL-9] */
{
    struct world lost = running("1"), reported = running("1");

    world_lose(&lost, "n1");
    world_fail_task(&reported, 1, 0, true);
    cr_assert_eq(pliant_state(lost.s), pliant_state(reported.s));
    cr_assert_eq(pliant_next_deadline(lost.s), pliant_next_deadline(reported.s));
    cr_assert_eq(world_counts(&lost).restarts, world_counts(&reported).restarts);
    world_free(&lost);
    world_free(&reported);
}

Test(failures, of_attempts_that_are_over_change_nothing) /* [S-GEN-7, S-FAIL-9] */
{
    struct world w = running("1");
    uint64_t ignored;

    world_fail_task(&w, 1, 0, true);
    world_to(&w, 3000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    ignored = world_counts(&w).events_ignored;
    for (uint32_t attempt = 0; attempt < 4; attempt += attempt == 1 ? 2 : 1)
        world_event(&w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                              .failure.task = {{1}, 0, attempt}});
    world_event(&w,
                (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED, .failure.task = {{1}, 6, 1}});
    world_event(&w,
                (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED, .failure.task = {{2}, 0, 1}});
    cr_assert_eq(world_counts(&w).events_ignored, ignored + 5);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_assert_null(pliant_failure_at(w.s, 1));
    world_free(&w);
}

/* The step in which the job fails, an open rescale ends and the strategy is asked. */
static int fail_without_memory(const char *strategy, bool recoverable, size_t k, bool *ret_all)
{
    FAILING_ALLOC(hook, 0);
    struct world w = world_running(
        (struct world_spec){.options = {"restart-strategy.type", strategy}, .alloc = &hook.hook},
        4);
    struct pliant_event ev = {.kind = PLIANT_EV_GLOBAL_FAILURE,
                              .failure = {.recoverable = recoverable, .cause = "all of it"}};
    struct pliant_actions acts;
    int error;

    world_bounds(&w, 1, 3);
    hook.fail_at = hook.calls + k;
    error = pliant_step(w.s, w.now_ms, &ev, &acts);
    *ret_all = hook.calls < hook.fail_at;
    world_free(&w);
    cr_assert_eq(hook.live, 0);
    return error;
}

Test(failures, leak_nothing_and_say_so_without_memory)
{
    static const char *const strategies[] = {"none", "fixed-delay", "failure-rate",
                                             "exponential-delay"};

    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
        for (int recoverable = 0; recoverable < 2; recoverable++) {
            bool all = false;

            for (size_t k = 1; !all; k++) {
                int error = fail_without_memory(strategies[i], recoverable, k, &all);

                cr_assert_eq(error, all ? 0 : -ENOMEM);
            }
        }
}

Test(failures, show_the_status_of_the_state_not_of_the_graph) /* [S-GEN-13] */
{
    struct world w = running("1");

    world_fail(&w, true);
    cr_assert_eq(world_counts(&w).tasks_live, 0);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_RESTARTING); /* though all is canceled */
    world_free(&w);
}

/* group_budgets_test.c - which budget pays for the deaths of workers, and when one is exhausted */
#include <criterion/criterion.h>
#include <string.h>

#include "failover/budgets.h"
#include "world.h"

#define FAILURES "worker-group.max-failures"
#define PREEMPTIONS "worker-group.max-preemption-failures"

/* Ranks 0, 1 on n1 and 2, 3 on n2. */
static struct world running_from(int64_t min, const char *failures, const char *preemptions)
{
    struct world w =
        world_new((struct world_spec){.worker_group = true,
                                      .parallelism = 4,
                                      .min_parallelism = min,
                                      .options = {FAILURES, failures, PREEMPTIONS, preemptions,
                                                  "pliant.rescale.policy", "never"}});

    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_start(&w);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    return w;
}

static struct world running(const char *failures, const char *preemptions)
{
    return running_from(1, failures, preemptions);
}

/* A drain that does not move the job meanwhile: there is no room elsewhere. */
static void notice(struct world *w, const char *node)
{
    world_drain(w, node, 90000);
    cr_assert_eq(pliant_state(w->s), PLIANT_EXECUTING);
}

static const char *error_of(const struct world *w)
{
    return pliant_failure_at(w->s, 0)->items[0].cause;
}

Test(group_budgets, count_first_and_then_say_no) /* [W-BUD-2] */
{
    static const struct {
        int64_t limit;
        uint32_t allowed;
    } rows[] = {{0, 0}, {1, 1}, {3, 3}, {BUDGET_UNLIMITED, 1000}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct budget b = {.limit = rows[i].limit};

        for (uint32_t n = 1; n <= 1000; n++) {
            cr_assert_eq(budget_charge(&b), n <= rows[i].allowed, "%u of %lld", n,
                         (long long)rows[i].limit);
            cr_assert_eq(b.charged, n, "what is refused counts too");
        }
    }
}

Test(group_budgets, a_worker_failure_restarts_as_often_as_the_limit_says) /* [W-BUD-2] */
{
    for (uint32_t limit = 0; limit < 3; limit++) {
        const char digit[] = {(char)('0' + limit), '\0'};
        struct world w = running(digit, "-1");

        for (uint32_t i = 0; i < limit; i++) {
            world_die(&w, 1, PLIANT_DEATH_ERROR, "bug");
            cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
        }
        world_die(&w, 1, PLIANT_DEATH_ERROR, "bug");
        cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
        cr_expect_eq(world_counts(&w).failures_charged, limit + 1);
        cr_expect_eq(world_counts(&w).preemptions_charged, 0u);
        cr_expect_str_eq(error_of(&w), "WorkerGroupError: rank 1: bug");
        world_free(&w);
    }
}

Test(group_budgets,
     preemptions_and_failures_have_one_each) /* [W-BUD-3, W-BUD-1]; known trouble 103 */
{
    struct world w = running_from(4, "0", "-1");

    for (uint32_t i = 1; i <= 5; i++) {
        const char *name = i % 2 ? "n1" : "n2";

        notice(&w, name);
        world_lose(&w, name);
        world_node(&w, name, 2);
        cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
        cr_assert_eq(world_counts(&w).preemptions_charged, i);
        cr_assert_eq(world_counts(&w).failures_charged, 0u);
    }
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    world_free(&w);
}

Test(group_budgets, the_preemption_budget_ends_the_job_with_its_error) /* [W-BUD-6] */
{
    struct world w = running("-1", "1");

    notice(&w, "n1");
    world_lose(&w, "n1");
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    notice(&w, "n2");
    world_lose(&w, "n2");
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_str_eq(error_of(&w), "PreemptionError (drain_timed_out=false): ranks 0-1: "
                                   "draining-node-lost (n2)");
    world_free(&w);
}

Test(group_budgets, one_batch_with_a_preemption_death_is_a_preemption) /* [W-CLS-1, W-BUD-1] */
{
    struct world w = running("0", "-1");

    notice(&w, "n2");
    world_die(&w, 0, PLIANT_DEATH_ERROR, "connection lost"); /* held */
    world_die(&w, 1, PLIANT_DEATH_ERROR, "connection lost");
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_to(&w, 1999);
    world_lose(&w, "n2");
    cr_expect_eq(world_counts(&w).preemptions_charged, 1u);
    cr_expect_eq(world_counts(&w).failures_charged, 0u);
    cr_expect_eq(world_counts(&w).restarts, 1u);
    world_free(&w);
}

Test(group_budgets, a_failure_elsewhere_waits_for_the_window_and_no_longer) /* [W-CLS-4] */
{
    struct world w = running("0", "-1");

    notice(&w, "n2");
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    world_to(&w, 1999);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_expect_eq(world_counts(&w).failures_charged, 0u);
    world_to(&w, 2000);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(world_counts(&w).failures_charged, 1u);
    world_free(&w);
}

Test(group_budgets, without_a_drain_or_a_window_nothing_waits) /* [W-CLS-4] */
{
    struct world w =
        world_new((struct world_spec){.worker_group = true,
                                      .parallelism = 2,
                                      .min_parallelism = 2,
                                      .options = {"worker-group.collateral-window", "0 s"}});

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_start(&w);
    world_drain(&w, "n2", 90000);
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED, "the window is 0");
    world_free(&w);

    w = running("0", "-1");
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED, "no drain");
    world_free(&w);
}

Test(group_budgets, a_bug_on_the_node_that_goes_is_charged_at_once) /* [W-CLS-2] */
{
    struct world w = running("0", "-1");

    notice(&w, "n2");
    world_die(&w, 3, PLIANT_DEATH_ERROR, "the checkpoint code has a bug");
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(world_counts(&w).failures_charged, 1u);
    cr_expect_eq(w.now_ms, 0);
    world_free(&w);
}

Test(group_budgets, a_worker_that_is_killed_on_a_node_that_goes_was_preempted) /* [W-CLS-1] */
{
    static const struct {
        enum pliant_death death;
        bool preemption;
    } rows[] = {{PLIANT_DEATH_TERMINATED, true},
                {PLIANT_DEATH_CRASH, false},
                {PLIANT_DEATH_ERROR, false},
                {PLIANT_DEATH_HUNG, false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w = running("5", "5");

        notice(&w, "n2");
        world_die(&w, 2, rows[i].death, "it ended");
        cr_expect_eq(world_counts(&w).preemptions_charged, rows[i].preemption);
        cr_expect_eq(world_counts(&w).failures_charged, !rows[i].preemption);
        world_free(&w);
    }
}

Test(group_budgets, killed_elsewhere_is_a_failure)
{
    struct world w = running("5", "5");

    world_die(&w, 2, PLIANT_DEATH_TERMINATED, "killed by signal 9");
    cr_expect_eq(world_counts(&w).failures_charged, 1u);
    world_free(&w);
}

Test(group_budgets, a_loss_before_the_notice_is_a_failure) /* [W-CLS-3] */
{
    struct world w = running("5", "5");

    w.cancels = false;
    world_lose(&w, "n2");
    cr_expect_eq(world_counts(&w).failures_charged, 1u);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_DRAINING,
                                          .draining = {.name = "n2", .deadline_at_ms = 90000}});
    world_drain(&w, "n1", 90000);
    world_lose(&w, "n1");
    cr_expect_eq(world_counts(&w).failures_charged, 1u);
    cr_expect_eq(world_counts(&w).preemptions_charged, 0u, "[W-CLS-6]");
    world_free(&w);
}

Test(group_budgets, a_drain_for_other_reasons_is_no_preemption) /* [W-CLS-3] */
{
    struct world w = running("5", "5");

    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_DRAINING,
                                          .draining = {.name = "n2",
                                                       .deadline_at_ms = 90000,
                                                       .reason = PLIANT_DRAIN_UPGRADE}});
    world_lose(&w, "n2");
    cr_expect_eq(world_counts(&w).failures_charged, 1u);
    cr_expect_eq(world_counts(&w).preemptions_charged, 0u);
    world_free(&w);
}

Test(group_budgets, what_dies_after_the_decision_charges_nothing) /* [W-CLS-5, W-CLS-6] */
{
    struct world w = running("5", "5");

    w.cancels = false;
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_die(&w, 1, PLIANT_DEATH_TERMINATED, "killed by signal 15");
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 2);
    world_lose(&w, "n2");
    cr_expect_eq(world_counts(&w).failures_charged, 1u);
    cr_expect_eq(world_counts(&w).preemptions_charged, 0u);
    world_free(&w);
}

Test(group_budgets, late_news_of_the_attempt_before_changes_nothing) /* [W-STA-3] */
{
    struct world w = running("5", "5");
    struct pliant_task_info info;
    struct pliant_event late = {.kind = PLIANT_EV_TASK_FAILED};
    struct pliant_counts before;

    pliant_task_info(w.s, (pliant_vertex_id){1}, 0, &info);
    late.failure.task = (struct pliant_task){{1}, 0, info.attempt};
    late.failure.recoverable = true;
    world_die(&w, 1, PLIANT_DEATH_ERROR, "bug");
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    before = world_counts(&w);
    world_event(&w, late);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_expect_eq(world_counts(&w).failures_charged, before.failures_charged);
    world_free(&w);
}

Test(group_budgets, nobody_left_ends_the_wait)
{
    struct world w = running("0", "-1");

    notice(&w, "n2");
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 1);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 2);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 3);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(world_counts(&w).failures_charged, 1u);
    world_free(&w);
}

Test(group_budgets, a_domain_goes_as_a_whole)
{
    struct world w = world_new(
        (struct world_spec){.worker_group = true, .parallelism = 2, .min_parallelism = 2});
    static const char *const names[] = {"n1", "n2"};

    for (uint64_t i = 0; i < 2; i++)
        world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                              .node_up = {.name = names[i],
                                                          .incarnation = i + 1,
                                                          .slots = 1,
                                                          .domain = "slice"}});
    world_start(&w);
    world_drain(&w, "n2", 90000);
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug"); /* on n1, which goes with n2 */
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    world_free(&w);
}

Test(group_budgets, the_strategy_gives_the_back_off_and_no_limit)
{
    struct world w = world_new(
        (struct world_spec){.worker_group = true,
                            .parallelism = 2,
                            .min_parallelism = 2,
                            .options = {FAILURES, "-1", "restart-strategy.type", "fixed-delay",
                                        "restart-strategy.fixed-delay.attempts", "1",
                                        "restart-strategy.fixed-delay.delay", "7 s"}});

    world_node(&w, "n1", 2);
    world_start(&w);
    for (uint32_t i = 1; i <= 4; i++) {
        int64_t died_at_ms = w.now_ms;

        world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
        world_to(&w, died_at_ms + 6999);
        cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
        world_to(&w, died_at_ms + 7000);
        cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING, "%u", i);
    }
    world_free(&w);
}

Test(group_budgets, a_global_failure_charges_the_workers)
{
    struct world w = running("1", "-1");

    world_fail(&w, true);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_expect_eq(world_counts(&w).failures_charged, 1u);
    world_fail(&w, true);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_str_eq(error_of(&w), "WorkerGroupError: all of it broke");
    world_free(&w);
}

Test(group_budgets, what_cannot_be_recovered_is_not_tried_again) /* [W-STA-5] */
{
    struct world w = running("-1", "-1");

    world_fail_task(&w, 1, 0, false);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(world_counts(&w).failures_charged, 0u);
    cr_expect_eq(pliant_group_attempt(w.s), 1u);
    world_free(&w);
}

Test(group_budgets, all_restarts_together_have_a_limit) /* [W-BUD-7] */
{
    struct world w =
        world_new((struct world_spec){.worker_group = true,
                                      .parallelism = 4,
                                      .min_parallelism = 1,
                                      .options = {FAILURES, "-1", "worker-group.reset-limit", "2",
                                                  "pliant.rescale.policy", "torchrun"}});

    world_node(&w, "n1", 1);
    world_start(&w);
    world_node(&w, "n2", 1); /* a resize */
    world_to(&w, 1);
    cr_assert_eq(world_counts(&w).tasks, 2u);
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_node(&w, "n3", 1); /* and another one */
    world_to(&w, 2);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_RESET_LIMIT_REACHED);
    cr_expect_str_eq(error_of(&w), "ControllerError: reset-limit reached");
    world_free(&w);
}

Test(group_budgets, the_error_names_each_cause_once_with_its_ranks) /* [W-BUD-8] */
{
    struct world w = running("0", "-1");

    w.cancels = false;
    world_die(&w, 2, PLIANT_DEATH_ERROR, "bad loss at step 17");
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bad loss at step 9");
    world_die(&w, 3, PLIANT_DEATH_ERROR, "bad loss at step 123");
    w.cancels = true;
    world_die(&w, 1, PLIANT_DEATH_CRASH, "killed by signal 11");
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_str_eq(error_of(&w), "WorkerGroupError: rank 0, ranks 2-3: bad loss at step 17; "
                                   "rank 1: killed by signal 11");
    cr_expect_eq(pliant_failure_at(w.s, 0)->n, 5u);
    world_free(&w);
}

Test(group_budgets, a_port_that_is_taken_costs_one_launch) /* section 7.2 of the rules */
{
    struct world w = running("0", "-1");

    world_to(&w, 30000);
    world_die(&w, 0, PLIANT_DEATH_PORT_IN_USE, "address in use");
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_expect_eq(world_counts(&w).launch_failures, 1u);
    cr_expect_eq(world_counts(&w).failures_charged, 0u);
    cr_expect_eq(pliant_group_attempt(w.s), 2u);
    world_die(&w, 0, PLIANT_DEATH_PORT_IN_USE, "address in use"); /* one relaunch only */
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    world_free(&w);

    w = running("0", "-1");
    world_to(&w, 30001);
    world_die(&w, 0, PLIANT_DEATH_PORT_IN_USE, "address in use");
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED, "too late");
    world_free(&w);
}

/* Every step of these tests goes through a snapshot; this one looks at the counts. */
Test(group_budgets, are_kept_by_a_snapshot) /* [W-BUD-5, W-BUD-4] */
{
    struct world w = running("5", "5");
    struct pliant_sched *restored;
    struct pliant_counts counts;
    void *bytes;
    size_t n;

    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    notice(&w, "n2");
    world_lose(&w, "n2");
    cr_assert_eq(pliant_snapshot(w.s, &bytes, &n), 0);
    cr_assert_eq(pliant_restore(&w.cfg, w.job, bytes, n, &restored, NULL), 0);
    pliant_counts(restored, &counts);
    cr_expect_eq(counts.failures_charged, 1u);
    cr_expect_eq(counts.preemptions_charged, 1u);
    cr_expect_eq(counts.group_attempt, 3u);
    pliant_bytes_free(NULL, bytes);
    pliant_sched_destroy(&restored);
    world_free(&w);
}

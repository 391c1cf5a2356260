/* group_reports_test.c - checkpoints that all workers report, and the one that the next start from
 */
#include <criterion/criterion.h>
#include <string.h>

#include "graph/reports.h"
#include "states/sched.h"
#include "world.h"

static struct world running(uint32_t n)
{
    struct world w = world_new((struct world_spec){
        .worker_group = true,
        .parallelism = n,
        .min_parallelism = n,
        .options = {"worker-group.max-failures", "-1", "pliant.rescale.policy", "never"}});

    world_node(&w, "n1", n);
    world_start(&w);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    return w;
}

static void all_report(struct world *w, uint64_t call, const char *path)
{
    for (uint32_t rank = 0; rank < world_counts(w).tasks; rank++)
        world_report(w, rank, call, path);
}

Test(group_reports, a_checkpoint_is_registered_when_all_have_reported_it) /* [W-CKP-1] */
{
    struct world w = running(3);

    world_report(&w, 2, 1, "c1");
    world_report(&w, 0, 1, "c1");
    cr_expect_eq(w.n_actions, 0);
    world_report(&w, 1, 1, "c1");
    cr_assert_eq(world_count(&w, PLIANT_ACT_REGISTER), 1);
    cr_expect_str_eq(world_action(&w, PLIANT_ACT_REGISTER, 0)->registered.path, "c1");
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 0, "not before the manifest is written");
    cr_expect_eq(world_counts(&w).checkpoint, 0u);
    world_registered(&w, true);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 3);
    cr_expect_eq(world_action(&w, PLIANT_ACT_REPORT_TAKEN, 2)->report.call, 1u);
    cr_expect_eq(world_counts(&w).checkpoint, w.registered);
    world_free(&w);
}

Test(group_reports, ranks_without_a_checkpoint_are_waited_for_too) /* [W-CKP-1, W-CKP-5] */
{
    struct world w = running(2);

    world_report(&w, 1, 7, "c1");
    world_report(&w, 0, 3, NULL);
    cr_assert_eq(world_count(&w, PLIANT_ACT_REGISTER), 1);
    cr_expect_eq(world_action(&w, PLIANT_ACT_REGISTER, 0)->registered.call, 3u,
                 "the call of rank 0, whose metrics count");
    world_free(&w);
}

Test(group_reports, metrics_alone_register_nothing) /* [W-CKP-3] */
{
    struct world w = running(2);

    all_report(&w, 1, NULL);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REGISTER), 0);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 2);
    world_free(&w);
}

Test(group_reports, different_places_fail_the_run) /* [W-CKP-2, W-STA-5] */
{
    struct world w = running(2);

    world_report(&w, 0, 1, "c1");
    world_report(&w, 1, 1, "c2");
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_expect_eq(pliant_failure_at(w.s, 0)->items[1].reason, PLIANT_REASON_CHECKPOINT_PATHS_DIFFER);
    cr_expect_str_eq(
        pliant_failure_at(w.s, 0)->items[1].cause,
        "checkpoints of one report are in different places: rank 0 in c1, rank 1 in c2");
    cr_expect_eq(world_counts(&w).failures_charged, 0u);
    world_free(&w);
}

Test(group_reports, calls_of_a_rank_are_taken_in_their_order) /* [W-CKP-4] */
{
    struct world w = running(2);

    world_report(&w, 0, 1, "c1");
    world_report(&w, 0, 2, "c2");
    world_report(&w, 0, 1, "c1"); /* told again */
    world_report(&w, 1, 1, "c1");
    cr_assert_eq(world_count(&w, PLIANT_ACT_REGISTER), 1);
    cr_expect_str_eq(world_action(&w, PLIANT_ACT_REGISTER, 0)->registered.path, "c1");
    world_report(&w, 1, 2, "c2");
    cr_expect_eq(world_count(&w, PLIANT_ACT_REGISTER), 0, "one at a time");
    world_registered(&w, true);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 2);
    cr_assert_eq(world_count(&w, PLIANT_ACT_REGISTER), 1);
    cr_expect_str_eq(world_action(&w, PLIANT_ACT_REGISTER, 0)->registered.path, "c2");
    world_free(&w);
}

Test(group_reports, a_manifest_that_cannot_be_written_keeps_the_one_before) /* [W-CKP-10] */
{
    struct world w = running(2);
    uint64_t first;

    all_report(&w, 1, "c1");
    world_registered(&w, true);
    first = w.registered;
    all_report(&w, 2, "c2");
    world_registered(&w, false);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 2, "nobody waits for ever");
    cr_expect_eq(world_counts(&w).checkpoint, first);
    all_report(&w, 3, "c3"); /* and now the host says nothing */
    world_to(&w, 600000);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 2);
    cr_expect_eq(world_counts(&w).checkpoint, first);
    world_registered(&w, true);
    cr_expect_eq(world_counts(&w).checkpoint, first, "too late");
    world_free(&w);
}

Test(group_reports, what_is_incomplete_is_dropped_with_the_attempt) /* [W-CKP-9] */
{
    struct world w = running(2);

    world_report(&w, 0, 1, "c1");
    world_die(&w, 1, PLIANT_DEATH_ERROR, "bug");
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_report(&w, 1, 1, "c1");
    cr_expect_eq(w.n_actions, 0, "rank 0 of the attempt before does not count");
    world_report(&w, 0, 1, "c1");
    cr_expect_eq(world_count(&w, PLIANT_ACT_REGISTER), 1, "calls are counted from 1 again");
    world_free(&w);
}

Test(group_reports, a_late_report_of_the_attempt_before_is_none) /* [W-STA-3, W-CKP-9] */
{
    struct world w = running(1);
    struct pliant_event late = {.kind = PLIANT_EV_REPORT,
                                .report = {.task = {{1}, 0, 1}, .call = 1, .path = "c1"}};

    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    world_event(&w, late);
    cr_expect_eq(w.n_actions, 0);
    world_free(&w);
}

Test(group_reports, all_ranks_start_from_the_latest_registered_one) /* [W-CKP-10, W-ELA-5] */
{
    struct world w = running(3);

    for (uint64_t call = 1; call <= 3; call++) {
        all_report(&w, call, call == 2 ? NULL : "c");
        if (call != 2)
            world_registered(&w, true);
    }
    world_die(&w, 1, PLIANT_DEATH_ERROR, "bug");
    cr_assert_eq(world_count(&w, PLIANT_ACT_DEPLOY), 3);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(world_action(&w, PLIANT_ACT_DEPLOY, i)->deploy.restore, w.registered);
    world_free(&w);
}

Test(group_reports, a_registration_outlives_the_attempt) /* [W-CKP-10] */
{
    struct world w = running(2);

    all_report(&w, 1, "c1");
    w.cancels = false;
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    world_registered(&w, true);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 0, "they are told to stop");
    w.cancels = true;
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 1);
    cr_assert_eq(world_count(&w, PLIANT_ACT_DEPLOY), 2);
    cr_expect_eq(world_action(&w, PLIANT_ACT_DEPLOY, 0)->deploy.restore, w.registered);
    world_free(&w);
}

Test(group_reports, a_run_that_existed_before_is_gone_on_with) /* [W-CKP-10] */
{
    struct world w = world_new(
        (struct world_spec){.worker_group = true, .parallelism = 2, .min_parallelism = 2});

    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                          .checkpoint = {.id = 42, .own_accord = true}});
    world_node(&w, "n1", 2);
    w.runs = false;
    world_start(&w);
    cr_assert_eq(world_count(&w, PLIANT_ACT_DEPLOY), 2);
    cr_expect_eq(world_action(&w, PLIANT_ACT_DEPLOY, 1)->deploy.restore, 42u);
    world_free(&w);
}

Test(group_reports, an_early_rank_may_report_before_the_others_are_up)
{
    struct world w = world_new(
        (struct world_spec){.worker_group = true, .parallelism = 2, .min_parallelism = 2});

    w.runs = false;
    world_node(&w, "n1", 2);
    world_start(&w);
    world_task(&w, PLIANT_EV_TASK_RUNNING, 1, 0);
    world_report(&w, 0, 1, NULL);
    world_task(&w, PLIANT_EV_TASK_RUNNING, 1, 1);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_report(&w, 1, 1, NULL);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 2);
    world_free(&w);
}

Test(group_reports, graphs_do_not_report)
{
    struct world w = world_running((struct world_spec){0}, 4);

    world_report(&w, 0, 1, "c1");
    cr_expect_eq(w.n_actions, 0);
    cr_expect_eq(world_counts(&w).events_ignored, 1u);
    world_free(&w);
}

Test(group_reports, a_stop_asks_for_one_more) /* section 1.1 of the rules */
{
    struct world w = running(2);

    world_plain(&w, PLIANT_EV_STOP); /* without checkpointing, without a directory */
    cr_assert_eq(pliant_state(w.s), PLIANT_STOP_WITH_SAVEPOINT);
    cr_assert_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 1);
    all_report(&w, 1, "c1");
    world_registered(&w, true);
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 2);
    world_savepoint(&w, true);
    world_all_tasks(&w, PLIANT_EV_TASK_FINISHED);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FINISHED);
    cr_expect_eq(world_counts(&w).checkpoint, w.registered);
    world_free(&w);
}

/* ---- the policy that weighs ------------------------------------------------------------- */

static struct world weighing(uint32_t n)
{
    struct world w = world_new((struct world_spec){
        .worker_group = true,
        .parallelism = 2 * n,
        .min_parallelism = 1,
        .options = {"worker-group.max-failures", "-1", "pliant.rescale.policy", "worth"}});

    world_node(&w, "n1", n);
    world_start(&w);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    return w;
}

static int64_t restart_ms(const struct world *w)
{
    return worth_restart_ms(&w->s->policy.worth, &w->s->policy.limits);
}

/* Up at once; the first report 100 s later, the second 10 s after that: 90 s of them to load. */
Test(group_reports, tell_how_long_the_workers_took_to_work)
{
    struct world w = weighing(2);

    cr_expect_eq(restart_ms(&w), 30000, "as the option says");
    world_to(&w, 100000);
    all_report(&w, 1, NULL);
    cr_expect_eq(restart_ms(&w), 30000);
    world_to(&w, 110000);
    all_report(&w, 2, NULL);
    cr_expect_eq(restart_ms(&w), 90000);
    world_to(&w, 150000);
    all_report(&w, 3, NULL);
    cr_expect_eq(restart_ms(&w), 90000, "once a start");
    world_free(&w);
}

/* Some tell that they are there, and then nothing for long: that step was not before the first. */
Test(group_reports, that_come_before_any_work_are_the_start)
{
    static const struct {
        int64_t first_ms, second_ms, restart_ms;
    } rows[] = {{3000, 603000, 3000}, {300000, 900000, 0},  {299999, 900000, 299999},
                {3000, 3000, 3000},   {13000, 23000, 3000}, {13000, 27000, 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w = weighing(2);

        world_to(&w, rows[i].first_ms);
        all_report(&w, 1, NULL);
        world_to(&w, rows[i].second_ms);
        all_report(&w, 2, NULL);
        cr_expect_eq(restart_ms(&w), rows[i].restart_ms, "row %zu: %lld", i,
                     (long long)restart_ms(&w));
        world_free(&w);
    }
}

/* Two workers have reported a checkpoint at 1 s; two more slots come at 60 s. */
static struct world could_grow(void)
{
    struct world w = weighing(2);

    world_to(&w, 1000);
    all_report(&w, 1, "c1");
    world_registered(&w, true);
    world_to(&w, 60000);
    world_node(&w, "n2", 2);
    return w;
}

/* What came since the last one would be lost: it is worth a wait. */
Test(group_reports, are_waited_for_before_a_group_grows)
{
    struct world w = could_grow();

    world_to(&w, 80000);
    cr_expect_eq(world_counts(&w).restarts, 0);
    cr_expect_eq(w.s->state.executing.judged.judgement, PLIANT_JUDGED_REPORT);
    all_report(&w, 2, "c2");
    world_registered(&w, true);
    cr_expect_eq(world_counts(&w).restarts, 1, "now nothing is lost");
    cr_expect_eq(world_count(&w, PLIANT_ACT_REPORT_TAKEN), 0, "nor is a step done for nothing");
    world_free(&w);
}

Test(group_reports, are_not_waited_for_in_vain)
{
    struct world w = could_grow();

    world_to(&w, 60000 + 59000);
    cr_expect_eq(world_counts(&w).restarts, 0);
    world_to(&w, 60000 + 61000); /* 4 slots x 30 s were missed on 2 of them */
    cr_expect_eq(world_counts(&w).restarts, 1);
    world_free(&w);
}

/* They come every 10 minutes; slots come 2 minutes before one, with 8 minutes of work to lose. */
Test(group_reports, that_are_due_are_waited_for)
{
    struct world w = weighing(2);

    world_to(&w, 600000);
    all_report(&w, 1, "c1");
    world_registered(&w, true);
    world_to(&w, 1200000);
    all_report(&w, 2, "c2");
    world_registered(&w, true);
    world_to(&w, 1200000 + 480000);
    world_node(&w, "n2", 2);
    world_to(&w, 1800000 + 30000); /* 30 s late */
    cr_expect_eq(world_counts(&w).restarts, 0);
    cr_expect_eq(w.s->state.executing.judged.judgement, PLIANT_JUDGED_REPORT);
    all_report(&w, 3, "c3");
    world_registered(&w, true);
    cr_expect_eq(world_counts(&w).restarts, 1);
    world_free(&w);
}

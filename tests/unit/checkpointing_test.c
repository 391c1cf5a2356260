/* checkpointing_test.c - when checkpoints are taken while the job runs, and what becomes of them
 *
 * Interval 10 s unless a test says otherwise; all tasks run from time 0. The tests answer.
 */
#include <criterion/criterion.h>

#include "states/sched.h"
#include "world.h"

#define CHECKPOINTING "execution.checkpointing."
#define INTERVAL CHECKPOINTING "interval"
#define EVERY_10_S INTERVAL, "10 s"
#define ADAPTIVE "jobmanager.adaptive-scheduler."
#define ACTIVE ADAPTIVE "rescale-trigger.active-checkpoint.enabled", "true"
#define AT_ONCE ADAPTIVE "submission.resource-stabilization-timeout", "0 s"
#define COOLDOWN ADAPTIVE "executing.cooldown-after-rescaling"
#define STABLE ADAPTIVE "executing.resource-stabilization-timeout"
#define DELAY ADAPTIVE "rescale-trigger.max-delay"
#define FIXED "restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.attempts", "9"

static struct checkpointing *inside(struct world *w)
{
    cr_assert_eq(pliant_state(w->s), PLIANT_EXECUTING);
    return &w->s->state.executing.checkpointing;
}

/* One was asked for at this instant and not before. */
static void expect_taken(struct world *w, int64_t at_ms, enum pliant_checkpoint_cause cause)
{
    uint64_t before = w->checkpoint;

    world_to(w, at_ms - 1);
    cr_expect_eq(w->checkpoint, before, "before %lld", (long long)at_ms);
    world_to(w, at_ms);
    cr_assert_gt(w->checkpoint, before, "none at %lld", (long long)at_ms);
    for (size_t i = 0; world_action(w, PLIANT_ACT_CHECKPOINT, i); i++)
        cr_expect_eq(world_action(w, PLIANT_ACT_CHECKPOINT, i)->flag[0], cause);
}

static void done(struct world *w)
{
    world_taken(w, PLIANT_EV_CHECKPOINT_COMPLETED, true);
}

static void failed(struct world *w, bool counts)
{
    world_taken(w, PLIANT_EV_CHECKPOINT_FAILED, counts);
}

static void savepoint(struct world *w, bool cancel)
{
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_SAVEPOINT_REQUESTED,
                                         .savepoint = {.dir = "there", .cancel = cancel}});
}

/* ---- periodic --------------------------------------------------------------------------- */

Test(checkpointing, comes_every_interval) /* [S-CEG-7] */
{
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S}}, 4);

    for (int64_t i = 1; i <= 5; i++) {
        expect_taken(&w, i * 10000, PLIANT_CHECKPOINT_PERIODIC);
        world_to(&w, i * 10000 + 3000);
        done(&w);
        cr_expect_eq(world_counts(&w).checkpoint, w.checkpoint);
        cr_expect_eq(world_counts(&w).checkpoint_at_ms, i * 10000 + 3000);
    }
    world_free(&w);
}

Test(checkpointing, is_off_without_an_interval)
{
    struct world w = world_running((struct world_spec){0}, 4);

    world_to(&w, 3600000);
    cr_expect_eq(w.checkpoint, 0);
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    cr_expect_str_eq(world_emitted(&w), "refused");
    cr_expect_eq(w.actions[0].flag[0], PLIANT_REASON_CHECKPOINTING_OFF);
    world_free(&w);
}

Test(checkpointing, can_be_left_to_the_host)
{
    struct world w = world_running(
        (struct world_spec){.options = {EVERY_10_S, "pliant.checkpoint.periodic", "false"}}, 4);

    world_to(&w, 3600000);
    cr_expect_eq(w.checkpoint, 0);
    world_checkpoint(&w);
    cr_expect_neq(world_counts(&w).checkpoint, 0);
    world_free(&w);
}

Test(checkpointing, waits_for_one_that_is_pending)
{
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S}}, 4);
    uint64_t first;

    expect_taken(&w, 10000, PLIANT_CHECKPOINT_PERIODIC);
    first = w.checkpoint;
    world_to(&w, 34000);
    cr_expect_eq(w.checkpoint, first, "one at a time");
    done(&w);
    cr_expect_gt(w.checkpoint, first, "overdue since 20 s: taken when the first is done");
    world_free(&w);
}

Test(checkpointing, waits_until_all_tasks_run)
{
    struct world w = world_new((struct world_spec){.options = {EVERY_10_S}});

    w.runs = false;
    world_node(&w, "n1", 4);
    world_start(&w);
    world_to(&w, 25000);
    cr_expect_eq(w.checkpoint, 0);
    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_RUNNING, 1, i);
    cr_expect_eq(w.checkpoint, 0);
    world_task(&w, PLIANT_EV_TASK_RUNNING, 1, 3);
    cr_expect_neq(w.checkpoint, 0, "overdue since 10 s");
    done(&w);
    expect_taken(&w, 35000, PLIANT_CHECKPOINT_PERIODIC);
    world_free(&w);
}

Test(checkpointing, pauses_between_the_end_of_one_and_the_next)
{
    struct world w = world_running(
        (struct world_spec){.options = {EVERY_10_S, CHECKPOINTING "min-pause", "5 s"}}, 4);

    expect_taken(&w, 10000, PLIANT_CHECKPOINT_PERIODIC);
    world_to(&w, 18000);
    done(&w);
    expect_taken(&w, 23000, PLIANT_CHECKPOINT_PERIODIC); /* not at 20 s */
    world_to(&w, 24000);
    done(&w);
    expect_taken(&w, 33000, PLIANT_CHECKPOINT_PERIODIC);
    world_to(&w, 60000);
    failed(&w, false);
    expect_taken(&w, 65000,
                 PLIANT_CHECKPOINT_PERIODIC); /* overdue, and the pause after a failure */
    world_free(&w);
}

Test(checkpointing, pauses_after_one_of_the_host_s_own_accord)
{
    struct world w = world_running(
        (struct world_spec){.options = {EVERY_10_S, CHECKPOINTING "min-pause", "5 s"}}, 4);

    world_to(&w, 9000);
    world_checkpoint(&w);
    expect_taken(&w, 14000, PLIANT_CHECKPOINT_PERIODIC);
    world_free(&w);
}

Test(checkpointing, begins_anew_with_each_run)
{
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S, FIXED}}, 4);
    uint64_t first;

    expect_taken(&w, 10000, PLIANT_CHECKPOINT_PERIODIC);
    first = w.checkpoint;
    world_to(&w, 12000);
    world_fail_task(&w, 1, 0, true);
    world_to(&w, 13000);
    done(&w); /* late: of the run before */
    cr_expect_eq(world_counts(&w).checkpoint, 0);
    cr_expect_neq(world_counts(&w).events_ignored, 0);
    expect_taken(&w, 23000, PLIANT_CHECKPOINT_PERIODIC);
    cr_expect_gt(w.checkpoint, first, "ids are never given twice");
    world_free(&w);
}

/* ---- what becomes of them --------------------------------------------------------------- */

Test(checkpointing, expires_and_that_is_a_failure_that_counts) /* [S-EXE-9, S-EXE-20] */
{
    struct world w = world_running(
        (struct world_spec){.options = {EVERY_10_S, CHECKPOINTING "timeout", "4 s", AT_ONCE,
                                        COOLDOWN, "0 s", STABLE, "0 s", DELAY, "1 h",
                                        ADAPTIVE "rescale-trigger.max-checkpoint-failures", "1"}},
        2);

    world_to(&w, 10000);
    world_node(&w, "n2", 1);
    world_to(&w, 13999);
    cr_expect_eq(inside(&w)->failed_in_row, 0);
    world_to(&w, 14000);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 3, "it acted as a trigger");
    world_free(&w);
}

Test(checkpointing, an_expired_one_is_no_longer_current)
{
    struct world w = world_running(
        (struct world_spec){.options = {EVERY_10_S, CHECKPOINTING "timeout", "4 s"}}, 4);

    world_to(&w, 14000);
    cr_expect_eq(inside(&w)->failed_in_row, 1);
    done(&w);
    cr_expect_eq(world_counts(&w).checkpoint, 0);
    cr_expect_eq(world_counts(&w).events_ignored, 1);
    failed(&w, true);
    cr_expect_eq(inside(&w)->failed_in_row, 1, "and has failed once");
    world_free(&w);
}

/* f: a failure that counts, h: one that does not, c: completed. */
Test(checkpointing, too_many_failures_in_a_row_fail_the_job_as_a_whole) /* [S-EXE-20, S-FAIL-9] */
{
    static const struct {
        const char *tolerable, *story;
        bool restarts;
    } rows[] = {
        {"0", "f", true},        {"0", "h", false},     {"2", "ff", false},
        {"2", "fff", true},      {"2", "ffcff", false}, {"2", "fhfhf", true},
        {"2", "hhhhhh", false},  {"2", "ffcfff", true}, {"-1", "ffffff", false},
        {NULL, "ffffff", false}, /* Pliant: no limit unless set */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int own = 0; own < 2; own++) {
            struct world w =
                world_running((struct world_spec){.options = {FIXED, EVERY_10_S,
                                                              rows[i].tolerable ? CHECKPOINTING
                                                                  "tolerable-failed-checkpoints"
                                                                                : NULL,
                                                              rows[i].tolerable}},
                              4);

            w.cancels = false;
            for (const char *c = rows[i].story; *c; c++) {
                if (own && *c == 'c')
                    world_checkpoint(&w);
                else if (own)
                    world_checkpoint_failed(&w, *c == 'f');
                world_to(&w, w.now_ms + 10000);
                if (!own && *c == 'c')
                    done(&w);
                else if (!own)
                    failed(&w, *c == 'f');
            }
            cr_expect_eq(pliant_state(w.s) == PLIANT_RESTARTING, rows[i].restarts, "%s of %s",
                         rows[i].story, rows[i].tolerable ? rows[i].tolerable : "unset");
            if (rows[i].restarts) {
                cr_expect_eq(w.changed.flag[2], PLIANT_REASON_TOO_MANY_CHECKPOINT_FAILURES);
                cr_expect_eq(w.s->failover.strategy.count, 1);
                cr_expect_eq(world_counts(&w).rescales, 0);
            }
            world_free(&w);
        }
    }
}

Test(checkpointing, news_of_another_id_changes_nothing) /* [S-GEN-4] */
{
    static const enum pliant_event_kind kinds[] = {
        PLIANT_EV_CHECKPOINT_COMPLETED, PLIANT_EV_CHECKPOINT_FAILED, PLIANT_EV_SAVEPOINT_COMPLETED,
        PLIANT_EV_SAVEPOINT_FAILED};
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S}}, 4);

    world_to(&w, 10000);
    for (size_t k = 0; k < 4; k++)
        for (uint64_t id = 0; id < 5; id++) {
            uint64_t ignored = world_counts(&w).events_ignored;

            if (id == w.checkpoint && k < 2)
                continue;
            world_event(&w, (struct pliant_event){
                                .kind = kinds[k],
                                .checkpoint = {.id = id, .counts = true, .cause = "late"}});
            cr_expect_str_eq(world_emitted(&w), "");
            cr_expect_eq(world_counts(&w).events_ignored, ignored + 1);
        }
    cr_expect(inside(&w)->checkpoint.exists);
    cr_expect_eq(inside(&w)->failed_in_row, 0);
    world_free(&w);
}

Test(checkpointing, a_restart_begins_from_the_last_completed_one)
{
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S, FIXED}}, 4);
    uint64_t completed;

    world_to(&w, 10000);
    completed = w.checkpoint;
    done(&w);
    world_to(&w, 20000); /* this one will not be done */
    world_fail_task(&w, 1, 0, true);
    w.reserves = false;
    world_to(&w, 21000);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.restore, completed);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    cr_expect_eq(world_action(&w, PLIANT_ACT_DEPLOY, 0)->deploy.restore, completed);
    world_free(&w);
}

Test(checkpointing, knows_how_long_the_last_one_took)
{
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S}}, 4);

    world_to(&w, 12500);
    done(&w);
    cr_expect_eq(w.s->checkpoints.triggered_at_ms, 10000);
    cr_expect_eq(w.s->checkpoints.duration_ms, 2500);
    world_event(&w, (struct pliant_event){
                        .kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                        .checkpoint = {.id = 70, .own_accord = true, .triggered_at_ms = 12000}});
    cr_expect_eq(w.s->checkpoints.duration_ms, 500);
    world_event(&w, (struct pliant_event){
                        .kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                        .checkpoint = {.id = 71, .own_accord = true, .triggered_at_ms = 99999}});
    cr_expect_eq(w.s->checkpoints.duration_ms, 0, "one that began in the future began now");
    expect_taken(&w, 20000, PLIANT_CHECKPOINT_PERIODIC);
    cr_expect_gt(w.checkpoint, 71, "ids go on behind the host's");
    world_free(&w);
}

/* ---- a user's --------------------------------------------------------------------------- */

Test(checkpointing, a_user_may_ask_for_one)
{
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S}}, 4);

    world_to(&w, 3000);
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    cr_expect_str_eq(world_emitted(&w), "checkpoint");
    cr_expect_eq(w.actions[0].flag[0], PLIANT_CHECKPOINT_USER);
    cr_expect_eq(w.actions[0].flag[1], 0);
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    cr_expect_str_eq(world_emitted(&w), "refused");
    cr_expect_eq(w.actions[0].flag[0], PLIANT_REASON_CHECKPOINT_PENDING);
    done(&w);
    cr_expect_eq(world_counts(&w).checkpoint, w.checkpoint);
    world_free(&w);
}

Test(checkpointing, a_user_s_wish_needs_running_tasks)
{
    struct world w = world_new((struct world_spec){.options = {EVERY_10_S}});

    w.runs = false;
    world_node(&w, "n1", 4);
    world_start(&w);
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    cr_expect_str_eq(world_emitted(&w), "refused");
    cr_expect_eq(w.actions[0].flag[0], PLIANT_REASON_TASKS_NOT_RUNNING);
    world_free(&w);
}

Test(checkpointing, a_savepoint_goes_beside_checkpoints)
{
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S}}, 4);

    savepoint(&w, false);
    cr_expect_eq(w.actions[0].flag[0], PLIANT_CHECKPOINT_USER);
    cr_expect_eq(w.actions[0].flag[1], 1);
    expect_taken(&w, 10000, PLIANT_CHECKPOINT_PERIODIC);
    world_savepoint(&w, true);
    cr_expect_str_eq(world_emitted(&w), "savepoint_ended");
    cr_expect_str_eq(w.actions[0].savepoint.path, "sp-1");
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    savepoint(&w, false);
    world_savepoint(&w, false);
    cr_expect_null(w.actions[0].savepoint.path);
    cr_expect_str_eq(w.actions[0].savepoint.cause, "disk full");
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(checkpointing, a_savepoint_expires_too)
{
    struct world w = world_running(
        (struct world_spec){.options = {EVERY_10_S, CHECKPOINTING "timeout", "4 s"}}, 4);

    savepoint(&w, false);
    world_to(&w, 3999);
    cr_expect(inside(&w)->savepoint.exists);
    world_to(&w, 4000);
    cr_expect_str_eq(world_emitted(&w), "savepoint_ended");
    cr_expect_null(w.actions[0].savepoint.path);
    cr_expect_str_eq(w.actions[0].savepoint.cause, "the savepoint expired");
    world_free(&w);
}

Test(checkpointing, cancels_when_the_savepoint_is_there) /* [S-GEN-18] */
{
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S}}, 4);

    w.cancels = false;
    savepoint(&w, true);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING, "not before");
    world_to(&w, 60000);
    cr_expect_eq(w.checkpoint, 0, "periodic ones have stopped");
    world_savepoint(&w, true);
    cr_expect_str_eq(world_emitted(&w), "savepoint_ended state_changed status_changed cancel");
    cr_expect_eq(pliant_state(w.s), PLIANT_CANCELING);
    world_free(&w);
}

Test(checkpointing, goes_on_when_the_savepoint_before_a_cancel_failed) /* [S-GEN-18] */
{
    for (int expires = 0; expires < 2; expires++) {
        struct world w = world_running(
            (struct world_spec){.options = {EVERY_10_S, CHECKPOINTING "timeout", "60 s"}}, 4);

        savepoint(&w, true);
        world_to(&w, expires ? 60000 : 30000);
        if (!expires)
            world_savepoint(&w, false);
        cr_expect_str_eq(world_emitted(&w), "savepoint_ended");
        cr_expect_null(w.actions[0].savepoint.path);
        cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
        expect_taken(&w, w.now_ms + 10000, PLIANT_CHECKPOINT_PERIODIC);
        world_free(&w);
    }
}

Test(checkpointing, a_savepoint_of_a_run_that_is_over_cancels_nothing) /* [S-GEN-18, S-GEN-4] */
{
    struct world w = world_running((struct world_spec){.options = {EVERY_10_S, FIXED}}, 4);

    savepoint(&w, true);
    world_fail_task(&w, 1, 0, true);
    world_to(&w, 1000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_savepoint(&w, true);
    cr_expect_str_eq(world_emitted(&w), "");
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING);
    expect_taken(&w, 11000, PLIANT_CHECKPOINT_PERIODIC);
    world_free(&w);
}

Test(checkpointing, whoever_asked_for_a_savepoint_is_told_when_the_run_ends) /* [S-GEN-18] */
{
    for (int way = 0; way < 6; way++) {
        struct world w = world_running((struct world_spec){.options = {EVERY_10_S, FIXED}}, 4);

        w.cancels = false;
        savepoint(&w, way % 2);
        if (way == 0)
            world_fail_task(&w, 1, 0, true);
        else if (way == 1)
            world_fail(&w, false);
        else if (way == 2)
            world_plain(&w, PLIANT_EV_CANCEL);
        else if (way == 3)
            world_plain(&w, PLIANT_EV_SUSPEND);
        else if (way == 4)
            world_all_tasks(&w, PLIANT_EV_TASK_FINISHED);
        else
            world_lose(&w, "n1");
        cr_expect_neq(pliant_state(w.s), PLIANT_EXECUTING);
        cr_assert_eq(world_count(&w, PLIANT_ACT_SAVEPOINT_ENDED), 1, "way %d", way);
        cr_expect_null(world_action(&w, PLIANT_ACT_SAVEPOINT_ENDED, 0)->savepoint.path);
        world_free(&w);
    }
}

/* ---- active checkpoints ----------------------------------------------------------------- */

/* 2 of 4 at 0; no periodic one comes within these tests. */
static struct world active(const char *min_pause, const char *cooldown)
{
    return world_running(
        (struct world_spec){.options = {ACTIVE, INTERVAL, "1 h", CHECKPOINTING "min-pause",
                                        min_pause, AT_ONCE, COOLDOWN, cooldown, STABLE, "20 s"}},
        2);
}

Test(checkpointing, is_not_asked_for_actively_by_default) /* [S-EXE-19] */
{
    struct world w = world_running(
        (struct world_spec){.options = {INTERVAL, "1 h", AT_ONCE, COOLDOWN, "0 s", STABLE, "20 s"}},
        2);

    world_node(&w, "n2", 2);
    world_to(&w, 60000);
    cr_expect_eq(w.checkpoint, 0);
    world_free(&w);
}

Test(checkpointing, is_not_asked_for_actively_if_there_are_none_at_all) /* [S-EXE-19] */
{
    struct world w = world_running(
        (struct world_spec){.options = {ACTIVE, AT_ONCE, COOLDOWN, "0 s", STABLE, "20 s"}}, 2);

    world_node(&w, "n2", 1);
    world_to(&w, 19999);
    cr_expect_eq(w.checkpoint, 0);
    world_free(&w);
}

Test(checkpointing, is_not_asked_for_actively_until_all_tasks_run) /* [S-EXE-19] */
{
    struct world w = world_new((struct world_spec){
        .options = {ACTIVE, INTERVAL, "1 h", AT_ONCE, COOLDOWN, "0 s", STABLE, "20 s"}});

    w.runs = false;
    world_node(&w, "n1", 2);
    world_start(&w);
    world_node(&w, "n2", 1);
    cr_expect_eq(w.checkpoint, 0);
    world_all_tasks(&w, PLIANT_EV_TASK_RUNNING);
    cr_expect_eq(w.checkpoint, 0, "the wish is not kept");
    expect_taken(&w, 20000, PLIANT_CHECKPOINT_RESCALE);
    world_free(&w);
}

Test(checkpointing, is_asked_for_when_stabilizing_begins) /* [S-EXE-19] */
{
    struct world w = active("0 s", "0 s");

    world_to(&w, 1000);
    world_node(&w, "n2", 2);
    cr_expect_str_eq(world_emitted(&w), "rescale_opened checkpoint");
    cr_expect_eq(world_action(&w, PLIANT_ACT_CHECKPOINT, 0)->flag[0], PLIANT_CHECKPOINT_RESCALE);
    world_to(&w, 3000);
    done(&w);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 4,
                 "with all that is desired, one checkpoint after the change");
    world_free(&w);
}

Test(checkpointing, is_asked_for_again_when_stable) /* [S-EXE-19] */
{
    struct world w = active("0 s", "0 s");

    world_node(&w, "n2", 1);
    cr_expect_eq(world_count(&w, PLIANT_ACT_CHECKPOINT), 1);
    world_to(&w, 3000);
    done(&w);
    cr_expect_eq(pliant_state(w.s), PLIANT_EXECUTING, "only sufficient");
    expect_taken(&w, 20000, PLIANT_CHECKPOINT_RESCALE);
    world_to(&w, 22000);
    done(&w);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 3);
    world_free(&w);
}

Test(checkpointing, is_asked_for_at_each_change_while_stabilizing) /* [S-EXE-19] */
{
    struct world w = active("0 s", "0 s");
    uint64_t first;

    world_node(&w, "n2", 1);
    first = w.checkpoint;
    world_node(&w, "n3", 0); /* no slot, no change */
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n3", .slots = 0}});
    cr_expect_eq(w.checkpoint, first, "one is in flight");
    world_to(&w, 1000);
    done(&w);
    world_bounds(&w, 1, 5);
    cr_expect_gt(w.checkpoint, first);
    world_free(&w);
}

Test(checkpointing, is_not_asked_for_in_the_cooldown) /* [S-EXE-19] */
{
    struct world w = active("0 s", "15 s");

    world_node(&w, "n2", 2);
    cr_expect_eq(w.checkpoint, 0);
    expect_taken(&w, 15000, PLIANT_CHECKPOINT_RESCALE);
    world_free(&w);
}

Test(checkpointing, is_not_asked_for_if_nothing_would_change) /* [S-EXE-19] */
{
    struct world w = active("0 s", "0 s");

    world_bounds(&w, 1, 2);
    world_node(&w, "n2", 2);
    world_to(&w, 60000);
    cr_expect_eq(w.checkpoint, 0);
    world_free(&w);
}

Test(checkpointing, is_put_off_by_the_pause_once) /* [S-EXE-19] */
{
    struct world w = active("5 s", "0 s");

    world_to(&w, 1000);
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    world_to(&w, 2000);
    done(&w);
    world_to(&w, 3000);
    world_node(&w, "n2", 1);
    world_bounds(&w, 1, 5); /* another wish while one is put off already */
    expect_taken(&w, 7000, PLIANT_CHECKPOINT_RESCALE);
    world_free(&w);
}

Test(checkpointing, what_was_put_off_is_judged_again) /* [S-EXE-19] */
{
    for (int way = 0; way < 4; way++) {
        struct world w = active("5 s", "0 s");
        uint64_t first;

        world_to(&w, 1000);
        world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
        done(&w);
        first = w.checkpoint;
        world_to(&w, 2000);
        world_node(&w, "n2", 1);
        cr_assert(deadline_armed(&inside(&w)->retry));
        world_to(&w, 3000);
        if (way == 1)
            world_lose(&w, "n2"); /* nothing to gain any more */
        if (way == 2 || way == 3)
            world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
        if (way == 3)
            done(&w); /* a new pause begins */
        first = way >= 2 ? w.checkpoint : first;
        world_to(&w, 6000);
        if (way == 0)
            cr_expect_gt(w.checkpoint, first);
        else
            cr_expect_eq(w.checkpoint, first, "way %d: dropped", way);
        cr_expect_not(deadline_armed(&inside(&w)->retry));
        world_free(&w);
    }
}

Test(checkpointing, a_failed_active_one_counts_as_any_other) /* [S-EXE-9, S-EXE-19] */
{
    struct world w = active("0 s", "0 s");

    world_node(&w, "n2", 1);
    failed(&w, true);
    cr_expect_eq(w.s->state.executing.countdown, 1);
    world_free(&w);
}

/* ---- the end of data -------------------------------------------------------------------- */

Test(checkpointing, comes_once_more_at_the_end_of_data) /* [S-GEN-19] */
{
    struct world w = world_running((struct world_spec){.options = {INTERVAL, "1 h"}}, 4);

    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_END_OF_DATA, 1, i);
    cr_expect_eq(w.checkpoint, 0);
    world_task(&w, PLIANT_EV_TASK_END_OF_DATA, 1, 3);
    cr_expect_str_eq(world_emitted(&w), "checkpoint");
    cr_expect_eq(w.actions[0].flag[0], PLIANT_CHECKPOINT_END_OF_DATA);
    done(&w);
    cr_expect_str_eq(world_emitted(&w), "", "one");
    world_all_tasks(&w, PLIANT_EV_TASK_FINISHED);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_FINISHED);
    world_free(&w);
}

Test(checkpointing, a_finished_task_is_at_its_end_of_data) /* [S-GEN-19] */
{
    struct world w = world_running((struct world_spec){.options = {INTERVAL, "1 h"}}, 4);

    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, 1, i);
    world_task(&w, PLIANT_EV_TASK_END_OF_DATA, 1, 3);
    cr_expect_neq(w.checkpoint, 0);
    world_free(&w);
}

Test(checkpointing, the_one_at_the_end_waits_for_one_that_is_pending) /* [S-GEN-19] */
{
    struct world w = world_running((struct world_spec){.options = {INTERVAL, "1 h"}}, 4);
    uint64_t first;

    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    first = w.checkpoint;
    world_all_tasks(&w, PLIANT_EV_TASK_END_OF_DATA);
    cr_expect_eq(w.checkpoint, first);
    failed(&w, true);
    cr_expect_gt(w.checkpoint, first);
    world_free(&w);
}

Test(checkpointing, none_at_the_end_if_told_so_or_if_there_are_none) /* [S-GEN-19] */
{
    for (int way = 0; way < 2; way++) {
        struct world w = world_running(
            (struct world_spec){.options = {CHECKPOINTING "checkpoints-after-tasks-finish",
                                            way ? "true" : "false", way ? NULL : INTERVAL, "1 h"}},
            4);

        world_all_tasks(&w, PLIANT_EV_TASK_END_OF_DATA);
        cr_expect_eq(w.checkpoint, 0, "way %d", way);
        world_free(&w);
    }
}

Test(checkpointing, stops_when_a_task_has_finished_if_told_so)
{
    struct world w = world_running(
        (struct world_spec){
            .options = {EVERY_10_S, CHECKPOINTING "checkpoints-after-tasks-finish", "false"}},
        4);

    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 0);
    world_to(&w, 60000);
    cr_expect_eq(w.checkpoint, 0);
    world_free(&w);
}

Test(checkpointing, the_end_of_data_is_seen_in_every_graph_state) /* [S-GEN-19] */
{
    struct world w = world_running((struct world_spec){.options = {INTERVAL, "1 h", FIXED}}, 4);

    world_stop(&w);
    world_all_tasks(&w, PLIANT_EV_TASK_END_OF_DATA);
    cr_expect_eq(w.checkpoint, 0, "the savepoint is what is taken");
    world_savepoint(&w, false);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_expect_neq(w.checkpoint, 0, "it goes on, and the last one is still to come");
    world_free(&w);

    for (int way = 0; way < 3; way++) { /* on the way down none is taken */
        w = world_running((struct world_spec){.options = {INTERVAL, "1 h", FIXED}}, 4);
        w.cancels = false;
        for (uint32_t i = 0; i < 3; i++)
            world_task(&w, PLIANT_EV_TASK_END_OF_DATA, 1, i);
        if (way == 0)
            world_fail(&w, true);
        else if (way == 1)
            world_fail(&w, false);
        else
            world_plain(&w, PLIANT_EV_CANCEL);
        world_task(&w, PLIANT_EV_TASK_END_OF_DATA, 1, 3);
        cr_expect_eq(w.checkpoint, 0, "way %d", way);
        world_free(&w);
    }
}

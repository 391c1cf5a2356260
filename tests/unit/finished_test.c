/* finished_test.c - the archive; nothing moves it any more */
#include <criterion/criterion.h>
#include <string.h>

#include "world.h"

/* The job ended in each of the four ways that there are. */
static struct world ended(enum pliant_job_status how)
{
    struct world w =
        world_running((struct world_spec){.options = {"execution.checkpointing.interval", "10 s",
                                                      "restart-strategy.type", "none"}},
                      6);

    if (how == PLIANT_JOB_CANCELED)
        world_plain(&w, PLIANT_EV_CANCEL);
    else if (how == PLIANT_JOB_FAILED)
        world_fail(&w, true);
    else if (how == PLIANT_JOB_SUSPENDED)
        world_plain(&w, PLIANT_EV_SUSPEND);
    else
        world_all_tasks(&w, PLIANT_EV_TASK_FINISHED);
    cr_assert_eq(pliant_state(w.s), PLIANT_FINISHED);
    cr_assert_eq(pliant_job_status(w.s), how);
    return w;
}

static const enum pliant_job_status HOW[] = {PLIANT_JOB_CANCELED, PLIANT_JOB_FAILED,
                                             PLIANT_JOB_SUSPENDED, PLIANT_JOB_FINISHED};

Test(finished, is_told_exactly_once_with_the_final_status) /* [S-GEN-17] */
{
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++) {
        struct world w = ended(HOW[i]);
        const struct pliant_action *act = world_action(&w, PLIANT_ACT_ARCHIVED, 0);

        cr_assert_eq(world_count(&w, PLIANT_ACT_ARCHIVED), 1);
        cr_assert_eq(act->status.from, HOW[i]);
        cr_assert_eq(act->status.to, HOW[i]);
        cr_assert_eq(world_count(&w, PLIANT_ACT_STATUS_CHANGED),
                     HOW[i] == PLIANT_JOB_SUSPENDED || HOW[i] == PLIANT_JOB_FINISHED ? 1 : 2);
        world_free(&w);
    }
}

/* One of each kind, as far as a host could send it. */
static struct pliant_event event_of(const struct world *w, enum pliant_event_kind kind)
{
    static const struct pliant_bounds bounds = {"v", 1, 2};
    struct pliant_event ev = {.kind = kind};

    if (kind == PLIANT_EV_NODE_UP) {
        ev.node_up.name = "n2";
        ev.node_up.incarnation = 77;
        ev.node_up.slots = 3;
    } else if (kind == PLIANT_EV_NODE_DRAINING) {
        ev.draining.name = "n1";
        ev.draining.deadline_at_ms = PLIANT_NEVER;
    } else if (kind == PLIANT_EV_NODE_DRAIN_WITHDRAWN || kind == PLIANT_EV_NODE_LOST) {
        ev.node.name = "n1";
    } else if (kind == PLIANT_EV_SLOTS_GRANTED) {
        ev.granted.name = "n1";
        ev.granted.slots = 0;
    } else if (kind == PLIANT_EV_SLOTS_RECLAIMED) {
        ev.reclaimed.name = "n1";
        ev.reclaimed.slots = 1;
    } else if (kind == PLIANT_EV_SLOTS_RESERVED || kind == PLIANT_EV_SLOTS_REFUSED ||
               kind == PLIANT_EV_CREATION_FAILED) {
        ev.plan.plan = w->plan;
    } else if (kind == PLIANT_EV_TASK_FAILED || kind == PLIANT_EV_GLOBAL_FAILURE) {
        ev.failure.task = (struct pliant_task){{1}, 0, 1};
    } else if (kind >= PLIANT_EV_TASK_INITIALIZING && kind <= PLIANT_EV_TASK_CANCELED) {
        ev.task = (struct pliant_task){{1}, 0, 1};
    } else if (kind == PLIANT_EV_CHECKPOINT_COMPLETED || kind == PLIANT_EV_CHECKPOINT_FAILED) {
        ev.checkpoint.own_accord = true;
        ev.checkpoint.id = 5;
    } else if (kind == PLIANT_EV_REPORT) {
        ev.report.task = (struct pliant_task){{1}, 0, 1};
        ev.report.call = 1;
    } else if (kind == PLIANT_EV_REQUIREMENTS) {
        ev.requirements.v = &bounds;
        ev.requirements.n = 1;
    }
    return ev;
}

static bool is_wish(enum pliant_event_kind kind)
{
    return kind == PLIANT_EV_START || kind == PLIANT_EV_REQUIREMENTS ||
           kind == PLIANT_EV_CHECKPOINT_REQUESTED || kind == PLIANT_EV_SAVEPOINT_REQUESTED ||
           kind == PLIANT_EV_STOP;
}

Test(finished, ignores_every_event) /* [S-FIN-1, S-GEN-6] */
{
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++) {
        struct world w = ended(HOW[i]);

        for (enum pliant_event_kind kind = 0; kind < PLIANT_EVENTS; kind++) {
            world_event(&w, event_of(&w, kind));
            cr_assert_eq(pliant_state(w.s), PLIANT_FINISHED);
            cr_assert_eq(pliant_job_status(w.s), HOW[i], "after %s", pliant_event_name(kind));
            cr_assert_eq(w.n_actions, is_wish(kind), "after %s", pliant_event_name(kind));
            if (!is_wish(kind))
                continue;
            cr_assert_eq(w.actions[0].kind, PLIANT_ACT_REFUSED);
            cr_assert_eq(w.actions[0].flag[0], kind == PLIANT_EV_START
                                                   ? PLIANT_REASON_ALREADY_STARTED
                                                   : PLIANT_REASON_JOB_ENDED);
        }
        cr_assert_eq(pliant_next_deadline(w.s), PLIANT_NEVER);
        world_free(&w);
    }
}

Test(finished, holds_no_slot_that_is_granted_after_the_end) /* [S-FIN-1, S-FIN-2] */
{
    struct world w = world_running((struct world_spec){0}, 6);

    world_all_tasks(&w, PLIANT_EV_TASK_FINISHED);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n1", .slots = 2}});
    cr_assert_eq(world_counts(&w).slots, 0);
    world_free(&w);
}

Test(finished, makes_no_entry_of_the_failures_of_a_suspended_graph) /* [S-GEN-12] */
{
    struct world w =
        world_running((struct world_spec){.options = {"restart-strategy.type", "fixed-delay"}}, 4);

    w.cancels = false;
    world_fail(&w, true);
    world_plain(&w, PLIANT_EV_SUSPEND); /* tasks live */
    cr_assert_null(pliant_failure_at(w.s, 0));
    world_free(&w);
}

Test(finished, gives_all_slots_back_at_once) /* [S-FIN-2] */
{
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++) {
        struct world w = ended(HOW[i]);
        const struct pliant_action *act = world_action(&w, PLIANT_ACT_RELEASE, 0);

        if (HOW[i] == PLIANT_JOB_SUSPENDED) { /* for the scheduler that goes on */
            cr_assert_null(act);
            cr_assert_eq(world_counts(&w).slots, 6);
            world_to(&w, 1000000);
            cr_assert_eq(world_counts(&w).slots, 6);
        } else {
            cr_assert_eq(act->release.n, 6);
            cr_assert_eq(world_counts(&w).slots, 0);
        }
        world_free(&w);
    }
}

Test(finished, gives_the_slots_of_draining_nodes_back_too) /* [S-FIN-2, S-DRN-1] */
{
    struct world w = world_running((struct world_spec){.parallelism = 2}, 2);

    world_node(&w, "n2", 3);
    world_drain(&w, "n2", 100000);
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert_eq(world_action(&w, PLIANT_ACT_RELEASE, 0)->release.n, 5);
    world_free(&w);
}

Test(finished, tells_the_tasks_of_a_suspended_job_to_stop) /* [S-GEN-12] */
{
    struct world w = world_running((struct world_spec){0}, 4);

    w.cancels = false;
    world_plain(&w, PLIANT_EV_SUSPEND);
    cr_assert_eq(world_count(&w, PLIANT_ACT_CANCEL), 4);
    cr_assert_eq(world_counts(&w).tasks_live, 0); /* nobody waits for them */
    cr_assert_eq(world_counts(&w).slots_used, 0);
    world_free(&w);
}

Test(finished,
     keeps_the_entry_of_a_job_that_is_suspended_in_its_back_off) /* [S-GEN-11, S-RST-10] */
{
    struct world w =
        world_running((struct world_spec){.options = {"restart-strategy.type", "fixed-delay"}}, 4);

    world_fail(&w, true);
    cr_assert_not_null(pliant_failure_at(w.s, 0));
    world_plain(&w, PLIANT_EV_SUSPEND);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_SUSPENDED);
    cr_assert_not_null(pliant_failure_at(w.s, 0));
    cr_assert_null(pliant_failure_at(w.s, 1));
    world_free(&w);
}

Test(finished, ends_at_once_in_states_without_a_graph) /* [S-GEN-9, S-GEN-17] */
{
    static const struct {
        enum pliant_event_kind kind;
        enum pliant_job_status end;
    } rows[] = {{PLIANT_EV_CANCEL, PLIANT_JOB_CANCELED},
                {PLIANT_EV_SUSPEND, PLIANT_JOB_SUSPENDED},
                {PLIANT_EV_GLOBAL_FAILURE, PLIANT_JOB_FAILED}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int state = 0; state < 3; state++) { /* Created, waiting, creating */
            struct world w =
                world_new((struct world_spec){.options = {"restart-strategy.type", "fixed-delay"}});

            w.reserves = false;
            if (state > 0)
                world_start(&w);
            if (state > 1)
                world_node(&w, "n1", 4);
            world_event(
                &w, (struct pliant_event){.kind = rows[i].kind, .failure = {.recoverable = true}});
            cr_assert_eq(pliant_job_status(w.s), rows[i].end);
            cr_assert_eq(world_count(&w, PLIANT_ACT_ARCHIVED), 1);
            cr_assert_eq(pliant_next_deadline(w.s), PLIANT_NEVER);
            if (rows[i].kind == PLIANT_EV_GLOBAL_FAILURE) /* [S-HIST-6] */
                cr_assert_str_eq(pliant_failure_at(w.s, 0)->items[0].cause, "missing cause");
            world_free(&w);
        }
}

Test(finished, closes_the_open_rescale_with_the_real_end) /* [S-TML-11] */
{
    static const struct {
        enum pliant_event_kind kind;
        enum pliant_rescale_end end;
    } rows[] = {{PLIANT_EV_CANCEL, PLIANT_RESCALE_JOB_CANCELED},
                {PLIANT_EV_SUSPEND, PLIANT_RESCALE_JOB_SUSPENDED},
                {PLIANT_EV_GLOBAL_FAILURE, PLIANT_RESCALE_JOB_FAILED}};
    struct world w;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        w = world_new((struct world_spec){0});
        world_start(&w);
        world_plain(&w, rows[i].kind);
        cr_assert_eq(pliant_rescale_at(w.s, 0)->end, rows[i].end);
        world_free(&w);
    }
    w = world_running((struct world_spec){0}, 4);
    world_bounds(&w, 1, 3);
    world_all_tasks(&w, PLIANT_EV_TASK_FINISHED);
    cr_assert_eq(pliant_rescale_at(w.s, 0)->end, PLIANT_RESCALE_JOB_FINISHED);
    world_free(&w);
}

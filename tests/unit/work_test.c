/* work_test.c - the progress model: how fast, and what a run of events comes to */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "sim/work.h"
#include "world.h"

/* ---- speed ---------------------------------------------------------------------------------- */

Test(work, is_as_fast_as_the_job_says)
{
    static const struct job_point points[] = {{2, 3}, {4, 5}, {10, 8}};
    static const struct job_progress linear = {.kind = JOB_SPEEDUP_LINEAR},
                                     amdahl = {.kind = JOB_SPEEDUP_AMDAHL, .serial = 0.25},
                                     table = {JOB_SPEEDUP_TABLE, 0, points, 3};
    static const struct {
        const struct job_progress *speedup;
        uint32_t p;
        double speed;
    } rows[] = {
        {&linear, 0, 0},  {&linear, 7, 7},  {&amdahl, 0, 0}, {&amdahl, 1, 1}, {&amdahl, 5, 2.5},
        {&table, 0, 0},   {&table, 1, 1.5}, {&table, 2, 3},  {&table, 3, 4},  {&table, 4, 5},
        {&table, 7, 6.5}, {&table, 10, 8},  {&table, 11, 8},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_float_eq(work_speed(rows[i].speedup, rows[i].p), rows[i].speed, 1e-12, "row %zu",
                           i);
}

/* ---- an observer of a world ------------------------------------------------------------------ */

static const struct job_progress linear = {.kind = JOB_SPEEDUP_LINEAR};

struct watched {
    struct world w;
    struct work work;
};

static void see(struct watched *x, struct pliant_event ev)
{
    struct pliant_actions acts;

    cr_assert_eq(pliant_step(x->w.s, x->w.now_ms, &ev, &acts), 0);
    x->work.observer.on_step(
        &x->work.observer,
        &(struct sim_step){.at_ms = x->w.now_ms, .event = &ev, .actions = &acts, .sched = x->w.s});
    for (size_t i = 0; i < acts.n; i++) {
        if (acts.v[i].kind == PLIANT_ACT_RESERVE)
            x->w.plan = acts.v[i].reserve.plan;
        if (acts.v[i].kind == PLIANT_ACT_CHECKPOINT)
            x->w.checkpoint = acts.v[i].checkpoint.id;
    }
}

static void see_task(struct watched *x, enum pliant_event_kind kind, uint32_t subtask,
                     uint32_t attempt)
{
    see(x, (struct pliant_event){.kind = kind, .task = {{1}, subtask, attempt}});
}

static void see_checkpoint(struct watched *x, enum pliant_event_kind kind, uint64_t id)
{
    see(x, (struct pliant_event){.kind = kind, .checkpoint = {.id = id, .counts = true}});
}

static void at(struct watched *x, int64_t at_ms)
{
    x->w.now_ms = at_ms;
    see(x, (struct pliant_event){.kind = PLIANT_EV_TICK});
}

/* Two subtasks on two nodes, both running at 1000; a checkpoint takes 100 ms. */
static struct watched start(void)
{
    struct watched x = {
        .w = world_new((struct world_spec){
            .parallelism = 2,
            .options = {"execution.checkpointing.interval", "10 s", "restart-strategy.type",
                        "fixed-delay", "restart-strategy.fixed-delay.delay", "0 s", NULL}})};

    work_init(&x.work, x.w.job, &linear, 100);
    for (int i = 0; i < 2; i++)
        see(&x,
            (struct pliant_event){
                .kind = PLIANT_EV_NODE_UP,
                .node_up = {.name = i ? "b" : "a", .incarnation = 1 + (uint64_t)i, .slots = 1}});
    see(&x, (struct pliant_event){.kind = PLIANT_EV_START});
    see(&x, (struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED, .plan = {.plan = x.w.plan}});
    cr_assert_eq(pliant_state(x.w.s), PLIANT_EXECUTING);
    at(&x, 500);
    see_task(&x, PLIANT_EV_TASK_RUNNING, 0, 1);
    at(&x, 1000);
    cr_assert_float_eq(x.work.done, 0, 0, "no work before all tasks run");
    see_task(&x, PLIANT_EV_TASK_RUNNING, 1, 1);
    return x;
}

Test(work, grows_while_all_tasks_run_and_stands_still_in_a_checkpoint)
{
    struct watched x = start();

    at(&x, 10000);
    cr_expect_float_eq(x.work.done, 2 * 9000, 0);
    at(&x, 10050); /* the checkpoint began at 10000 */
    cr_expect_float_eq(x.work.done, 2 * 9000, 0);
    at(&x, 10150);
    cr_expect_float_eq(x.work.done, 2 * 9050, 0);
    cr_expect_eq(x.work.state_ms[PLIANT_EXECUTING], 10150);
    cr_expect_eq(x.work.working_ms, 9050);
    world_free(&x.w);
}

static const struct loss {
    const char *what;
    bool failed, foreign; /* how the checkpoint ends */
    int64_t lost_at_ms;
    double done, lost;
} losses[] = {
    {"before the first checkpoint ended all is lost", true, false, 10500, 0, 2 * 9400},
    {"one that did not complete covers nothing", false, true, 10500, 0, 2 * 9400},
    {"a checkpoint covers up to its trigger", false, false, 10500, 2 * 9000, 2 * 400},
    {"nothing was done since", false, false, 10100, 2 * 9000, 0},
};

Test(work, that_no_checkpoint_covers_is_thrown_away_by_a_restart)
{
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        const struct loss *l = &losses[i];
        struct watched x = start();

        at(&x, 10000);
        at(&x, 10100);
        see_checkpoint(&x, l->failed ? PLIANT_EV_CHECKPOINT_FAILED : PLIANT_EV_CHECKPOINT_COMPLETED,
                       x.w.checkpoint + l->foreign);
        at(&x, l->lost_at_ms);
        see(&x, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST,
                                      .node = {.name = "a", .incarnation = 1}});
        cr_expect_float_eq(x.work.done, l->done, 0, "%s", l->what);
        cr_expect_float_eq(x.work.lost, l->lost, 0, "%s", l->what);
        cr_expect_eq(x.work.restarts, 1u, "%s", l->what);
        cr_expect_eq(work_forced(&x.work), 1u, "%s", l->what);
        at(&x, 20000);
        cr_expect_float_eq(x.work.done, l->done, 0, "%s: and no work meanwhile", l->what);
        world_free(&x.w);
    }
}

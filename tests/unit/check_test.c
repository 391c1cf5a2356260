/* check_test.c - each invariant is seen when it is broken */
#include <criterion/criterion.h>
#include <string.h>

#include "states/sched.h"
#include "world.h"

/* With this value in that place the check says so, and is content again without. */
#define EXPECT_BROKEN(s, place, value, text)                                                       \
    do {                                                                                           \
        unsigned char was_[sizeof(place)];                                                         \
        const char *broken_;                                                                       \
        memcpy(was_, &(place), sizeof was_);                                                       \
        (place) = (value);                                                                         \
        broken_ = pliant_check(s);                                                                 \
        cr_assert_not_null(broken_, #place " = " #value);                                          \
        cr_assert_str_eq(broken_, (text), #place " = " #value);                                    \
        memcpy(&(place), was_, sizeof was_);                                                       \
        cr_assert_null(pliant_check(s));                                                           \
    } while (0)

/* Two vertices in a group and one of its own; n1 has a spare slot, n2 drains and is not used. */
static struct world running(void)
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 2, .max_parallelism = 8},
        {.id = "b", .parallelism = 2, .max_parallelism = 8},
        {.id = "c", .parallelism = 1, .max_parallelism = 8, .slot_sharing_group = "other"}};
    struct world w =
        world_running((struct world_spec){.vertices = vertices,
                                          .n_vertices = 3,
                                          .options = {"execution.checkpointing.interval", "1 h",
                                                      "restart-strategy.type", "fixed-delay"}},
                      4);

    world_node(&w, "n2", 2);
    world_drain(&w, "n2", 0);
    cr_assert_null(pliant_check(w.s));
    return w;
}

static struct pool_slot *slot(struct world *w, uint32_t row)
{
    return &w->s->pool.slots.v[row];
}

/* A row with tasks, a free one, one on the draining node. */
static uint32_t row_used(const struct world *w)
{
    return w->s->graph.vertices[0].tasks[0].slot;
}

static uint32_t row_free(const struct world *w)
{
    uint32_t row = 0;

    while (!pool_slot_free(&w->s->pool.slots.v[row]))
        row++;
    return row;
}

Test(check, sees_a_pool_that_does_not_add_up)
{
    struct world w = running();
    struct pliant_sched *s = w.s;
    struct pool *p = &s->pool;

    EXPECT_BROKEN(s, p->n_nodes, 3, "nodes are miscounted");
    EXPECT_BROKEN(s, p->n_draining, 0, "nodes are miscounted");
    EXPECT_BROKEN(s, p->n_held, 5, "slots are miscounted");
    EXPECT_BROKEN(s, p->n_offered, 5, "slots are miscounted");
    EXPECT_BROKEN(s, p->n_used, 2, "slots are miscounted");
    EXPECT_BROKEN(s, p->n_used_leaving, 1, "slots are miscounted");
    EXPECT_BROKEN(s, p->nodes.v[0]->n_slots, 3, "a node miscounts its slots");
    EXPECT_BROKEN(s, p->nodes.v[0]->n_used, 0, "a node miscounts its slots");
    EXPECT_BROKEN(s, p->nodes.v[0]->n_rows, 5, "a node miscounts its slots");
    EXPECT_BROKEN(s, p->nodes.v[0]->n_rows, 3, "a node has more slots than it counts");
    EXPECT_BROKEN(s, p->nodes.v[0]->name[1], '7', "a node is not found by its name");
    EXPECT_BROKEN(s, p->nodes.v[1]->drain_end_at_ms, PLIANT_NEVER, "a drain without an end");
    EXPECT_BROKEN(s, slot(&w, row_free(&w))->node, 1, "a slot is in the list of another node");
    EXPECT_BROKEN(s, slot(&w, row_used(&w))->held, false,
                  "a task is in a slot that was given back");
    world_free(&w);
}

Test(check, sees_a_graph_that_does_not_add_up)
{
    struct world w = running();
    struct pliant_sched *s = w.s;
    struct execution *g = &s->graph;
    struct task *task = &g->vertices[0].tasks[1];

    EXPECT_BROKEN(s, g->n_tasks, 6, "tasks are miscounted");
    EXPECT_BROKEN(s, g->n_live, 4, "tasks are miscounted");
    EXPECT_BROKEN(s, g->n_running, 4, "tasks are miscounted");
    EXPECT_BROKEN(s, g->n_finished, 1, "tasks are miscounted");
    EXPECT_BROKEN(s, g->n_end_of_data, 1, "tasks are miscounted");
    EXPECT_BROKEN(s, task->attempt, 0, "a task without an attempt");
    EXPECT_BROKEN(s, task->slot, 1000, "a task is nowhere");
    EXPECT_BROKEN(s, task->slot, row_free(&w), "a slot does not know its task");
    EXPECT_BROKEN(s, task->slot, row_used(&w), "a slot with two owners");
    EXPECT_BROKEN(s, g->exists, false,
                  "a graph where the state has none, or none where it has one");
    EXPECT_BROKEN(s, g->parallelism[2], 0, "a vertex without subtasks");
    EXPECT_BROKEN(s, s->max_parallelism[1], 1, "more subtasks than key groups");
    EXPECT_BROKEN(s, slot(&w, row_used(&w))->live, 3, "slots and tasks disagree on what lives");
    world_free(&w);
}

Test(check, sees_a_task_on_a_node_that_is_gone)
{
    struct world w = running();
    uint32_t row;

    world_lose(&w, "n2");
    for (row = 0; w.s->pool.slots.v[row].held;)
        row++;
    EXPECT_BROKEN(w.s, w.s->graph.vertices[0].tasks[1].slot, row,
                  "a live task is on a node that is gone");
    world_plain(&w, PLIANT_EV_TICK); /* its rows are there, and nobody's */
    for (row = 0; w.s->pool.slots.v[row].node != POOL_NONE;)
        row++;
    EXPECT_BROKEN(w.s, w.s->graph.vertices[0].tasks[1].slot, row,
                  "a live task is on a node that is gone");
    world_free(&w);
}

Test(check, sees_bounds_out_of_order)
{
    struct world w = running();
    struct pliant_sched *s = w.s;
    struct bounds *b = &s->bounds;

    EXPECT_BROKEN(s, b->vertices[0].min, 0, "bounds out of order");
    EXPECT_BROKEN(s, b->vertices[0].min, 3, "bounds out of order");
    EXPECT_BROKEN(s, b->vertices[0].want, 9, "bounds out of order");
    EXPECT_BROKEN(s, b->minimal, 1, "bounds are missummed");
    EXPECT_BROKEN(s, b->desired, 4, "bounds are missummed");
    EXPECT_BROKEN(s, s->declared_slots, 7, "what is declared is not what is wanted [S-WFR-1]");
    EXPECT_BROKEN(s, s->declared_minimum, 7, "what is declared is not what is wanted [S-WFR-1]");
    world_free(&w);
}

Test(check, sees_timers_that_no_phase_owns)
{
    struct world w = running();
    struct pliant_sched *s = w.s;
    struct executing *e = &s->state.executing;

    EXPECT_BROKEN(s, e->manager.evaluation.at_ms, 99999, "an evaluation outside of stabilization");
    EXPECT_BROKEN(s, e->drain.move.at_ms, 99999, "a drain's timer without a drain");
    EXPECT_BROKEN(s, e->drain.limit.at_ms, 99999, "a drain's timer without a drain");
    EXPECT_BROKEN(s, e->countdown, 0, "a countdown out of bounds");
    EXPECT_BROKEN(s, e->countdown, 3, "a countdown out of bounds");
    EXPECT_BROKEN(s, s->idle_check.at_ms, PLIANT_NEVER, "the idle check has stopped [S-IDL-1]");
    EXPECT_BROKEN(s, s->idle_check.at_ms, 0, "a timer is due and did not run");
    world_to(&w, 30000); /* the cooldown is over */
    s = w.s;
    e = &s->state.executing;
    EXPECT_BROKEN(s, e->manager.phase_end.at_ms, 99999, "a phase has a timer of another one");
    EXPECT_BROKEN(s, e->manager.phase, MANAGER_TRANSITIONING,
                  "a manager that went on, in a state that did not");
    world_free(&w);
}

Test(check, sees_a_drain_that_is_forgotten)
{
    struct world w = running();
    struct drain *d;

    world_drain(&w, "n1", 0);
    d = &w.s->state.executing.drain;
    EXPECT_BROKEN(w.s, d->pending, false, "a used node drains and nobody cares");
    EXPECT_BROKEN(w.s, d->move.at_ms, PLIANT_NEVER, "a drain that nothing ends");
    world_withdraw(&w, "n1");
    d = &w.s->state.executing.drain;
    EXPECT_BROKEN(w.s, d->pending, true, "a drain that concerns no task");
    world_free(&w);
}

Test(check, sees_a_failure_that_nobody_decided_on)
{
    struct world w = running();

    failures_add(&w.s->failures, &(struct pliant_failure_item){.at_ms = 1});
    cr_assert_str_eq(pliant_check(w.s), "a failure that nobody decided on");
    world_free(&w);
}

Test(check, sees_tasks_that_nobody_stops) /* [S-FLG-4] */
{
    static const enum pliant_event_kind kinds[] = {PLIANT_EV_GLOBAL_FAILURE, PLIANT_EV_CANCEL};

    for (int i = 0; i < 3; i++) { /* Restarting, Canceling, Failing */
        struct world w = running();
        struct winding *winding;

        w.cancels = false;
        world_event(&w, (struct pliant_event){.kind = kinds[i % 2], .failure.recoverable = i == 0});
        winding = i == 0   ? &w.s->state.restarting.winding
                  : i == 1 ? &w.s->state.canceling.winding
                           : &w.s->state.failing.winding;
        EXPECT_BROKEN(w.s, winding->give_up.at_ms, PLIANT_NEVER,
                      "a cancel without a bound [S-FLG-4]");
        EXPECT_BROKEN(w.s, winding->down.at_ms, 99999,
                      "tasks are down and it does not go on, or the opposite");
        EXPECT_BROKEN(w.s, w.s->graph.vertices[1].tasks[0].state, PLIANT_TASK_DEPLOYING,
                      "a task that nobody told to stop");
        world_free(&w);
    }
}

Test(check, sees_what_is_left_after_the_end) /* [S-FIN-2] */
{
    struct world w = running();
    struct rescale_record record = {0};

    world_plain(&w, PLIANT_EV_SUSPEND);
    EXPECT_BROKEN(w.s, w.s->timeline.open, &record, "a rescale is open after the end");
    EXPECT_BROKEN(w.s, w.s->state.finished.status, PLIANT_JOB_FAILED,
                  "slots are held after the end [S-FIN-2]");
    world_free(&w);
}

Test(check, sees_a_stop_that_waits_for_nothing)
{
    struct world w = running();

    world_stop(&w);
    EXPECT_BROKEN(w.s, w.s->state.stopping.checkpointing.savepoint.exists, false,
                  "stopping, and no savepoint is under way");
    world_free(&w);
}

Test(check, sees_a_slot_in_use_while_the_job_waits)
{
    struct world w = world_new((struct world_spec){0});
    struct pool *p;

    world_start(&w);
    world_node(&w, "n1", 2);
    p = &w.s->pool;
    pool_occupy(p, 0, 0, 0);
    cr_assert_not_null(pliant_check(w.s));
    pool_vacate(p, 0, 0);
    cr_assert_null(pliant_check(w.s));
    world_free(&w);
}

Test(check, sees_a_launch_that_is_not_one) /* [W-GRP-1, W-GRP-2] */
{
    struct world w = world_new(
        (struct world_spec){.worker_group = true, .parallelism = 2, .min_parallelism = 2});
    struct launch *launch;

    w.runs = false;
    world_node(&w, "n1", 2);
    world_start(&w);
    launch = &w.s->state.creating.launch;
    EXPECT_BROKEN(w.s, launch->timeout.at_ms, PLIANT_NEVER, "a launch without an end [W-GRP-2]");
    EXPECT_BROKEN(w.s, w.s->graph.vertices[0].tasks[1].attempt, 7,
                  "ranks of different launches are mixed");
    EXPECT_BROKEN(w.s, w.s->reports.n_ready, 1, "reports are miscounted");
    EXPECT_BROKEN(w.s, w.s->registration.id, 3, "a registration without an end");
    w.cancels = false;
    world_die(&w, 0, PLIANT_DEATH_ERROR, "no");
    launch = &w.s->state.creating.launch;
    EXPECT_BROKEN(w.s, launch->winding.give_up.at_ms, PLIANT_NEVER,
                  "a cancel without a bound [S-FLG-4]");
    world_free(&w);
}

Test(check, sees_a_failure_that_is_held_back_for_ever) /* [W-CLS-4] */
{
    struct world w = world_new(
        (struct world_spec){.worker_group = true, .parallelism = 2, .min_parallelism = 2});
    struct collateral *held;

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_start(&w);
    world_drain(&w, "n2", 90000);
    world_die(&w, 0, PLIANT_DEATH_ERROR, "bug");
    held = &w.s->state.executing.collateral;
    cr_assert(held->held);
    EXPECT_BROKEN(w.s, held->end.at_ms, PLIANT_NEVER,
                  "a failure is held back without an end, or an end holds nothing");
    EXPECT_BROKEN(w.s, held->held, false, "a failure that nobody decided on");
    world_free(&w);
}

/* a:3 runs twice: on n1, which is blocked, and on n2. */
static struct world speculating(void)
{
    struct world w = world_new((struct world_spec){
        .parallelism = 4,
        .options = {"jobmanager.scheduler", "default", "execution.batch.speculative.enabled",
                    "true", "slot.idle.timeout", "1 h"}});

    world_node(&w, "n1", 4);
    world_start(&w);
    world_node(&w, "n2", 1);
    for (uint32_t i = 0; i < 3; i++)
        world_task(&w, PLIANT_EV_TASK_FINISHED, 1, i);
    world_to(&w, 60000);
    cr_assert_eq(w.s->graph.rivals.n, 1);
    return w;
}

Test(check, sees_attempts_that_do_not_add_up)
{
    struct world w = speculating();
    struct pliant_sched *s = w.s;
    struct task *task = &s->graph.vertices[0].tasks[3];
    struct rival *rival = s->graph.rivals.v;

    EXPECT_BROKEN(s, task->rival, true, "an attempt that stands for its task is not known as such");
    EXPECT_BROKEN(s, rival->task.rival, false, "a rival that is none");
    EXPECT_BROKEN(s, rival->task.attempt, 1, "a rival that is none");
    EXPECT_BROKEN(s, rival->task.attempt, 7, "a rival that is none");
    EXPECT_BROKEN(s, task->state, PLIANT_TASK_DEPLOYING,
                  "a better attempt does not stand for its task");
    EXPECT_BROKEN(s, task->state, PLIANT_TASK_FINISHED,
                  "an attempt goes on though another one has finished");
    EXPECT_BROKEN(s, s->cfg.speculative.max_attempts, 1,
                  "more attempts of a task at a time than may be");
    EXPECT_BROKEN(s, s->graph.n_effective, 1, "tasks are miscounted");
    EXPECT_BROKEN(s, rival->give_up_at_ms, 70000, "an attempt is stopped without a bound");
    world_free(&w);
}

Test(check, sees_a_block_that_does_not_add_up)
{
    struct world w = speculating();
    struct pliant_sched *s = w.s;
    struct pool_node *node = pool_find(&s->pool, "n1");

    cr_assert_eq(s->pool.n_blocked, 1);
    EXPECT_BROKEN(s, s->pool.n_blocked, 0, "nodes are miscounted");
    EXPECT_BROKEN(s, s->pool.n_free_blocked, 2, "slots are miscounted");
    EXPECT_BROKEN(s, node->blocked_until_ms, PLIANT_NEVER,
                  "a slot does not follow its node's block");
    EXPECT_BROKEN(s, s->speculation.unblock.at_ms, PLIANT_NEVER, "a node is blocked for ever");
    EXPECT_BROKEN(s, s->speculation.check.at_ms, PLIANT_NEVER,
                  "nobody looks for slow tasks, or somebody should not");
    EXPECT_BROKEN(s, s->speculation.local, true, "an attempt failed and nobody decided");
    world_free(&w);
}

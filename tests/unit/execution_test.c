/* execution_test.c - the execution graph: the tasks of one run, their attempts, states and slots */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>

#include "failing_alloc.h"
#include "graph/execution.h"

/* Two groups: a and b share, c is alone. Slots 1 .. 5 of one node. */
struct fixture {
    struct pliant_job *job;
    struct pool pool;
    struct execution g;
};

static struct pliant_job *job(void)
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 3},
        {.id = "b", .parallelism = 2},
        {.id = "c", .parallelism = 2, .slot_sharing_group = "other"}};
    struct pliant_job *ret;

    cr_assert_eq(pliant_job_new(&(struct pliant_job_spec){.vertices = vertices, .n_vertices = 3},
                                NULL, &ret, NULL),
                 0);
    return ret;
}

static struct fixture fixture(void)
{
    struct fixture f = {.job = job()};
    struct pool_node *node;

    pool_init(&f.pool, NULL);
    cr_assert_eq(pool_join(&f.pool, 0, 1, "n1", NULL, NULL, NULL, 0, 5, &node), 0);
    cr_assert_eq(execution_init(&f.g, f.job, NULL), 0);
    return f;
}

static void done(struct fixture *f)
{
    execution_free(&f->g);
    pool_free(&f->pool);
    pliant_job_destroy(&f->job);
}

static const uint32_t PARALLELISM[] = {3, 2, 2}, GROUP_SLOTS[] = {3, 2};
static const uint32_t UNIT_SLOTS[] = {2, 1, 4, 5, 3};

static void begin(struct fixture *f)
{
    cr_assert_eq(execution_begin(&f->g, &f->pool, PARALLELISM, GROUP_SLOTS, UNIT_SLOTS), 0);
}

static struct task *task(struct fixture *f, uint32_t vertex, uint32_t subtask, uint32_t attempt)
{
    return execution_current(&f->g, (struct pliant_task){{vertex}, subtask, attempt});
}

static void move_all(struct fixture *f, enum pliant_task_state state)
{
    for (uint32_t v = 0; v < 3; v++)
        for (uint32_t i = 0; i < f->g.parallelism[v]; i++)
            execution_move(&f->g, &f->pool, &f->g.vertices[v].tasks[i], state, 9);
}

Test(execution, puts_subtask_i_of_a_group_into_its_i_th_slot) /* [S-PAR-10, S-CEG-4] */
{
    struct fixture f = fixture();

    begin(&f);
    cr_assert_eq(f.g.n_units, 5);
    cr_assert_eq(f.g.n_tasks, 7);
    cr_assert_eq(f.g.n_live, 7);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(task(&f, 1, i, 1)->slot, UNIT_SLOTS[i] - 1);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(task(&f, 2, i, 1)->slot, UNIT_SLOTS[i] - 1);
        cr_assert_eq(task(&f, 3, i, 1)->slot, UNIT_SLOTS[3 + i] - 1);
        cr_assert_eq(f.pool.slots.v[UNIT_SLOTS[i] - 1].live, 2);
    }
    cr_assert_eq(task(&f, 1, 2, 1)->state, PLIANT_TASK_SCHEDULED);
    cr_assert_eq(f.pool.n_used, 5);
    move_all(&f, PLIANT_TASK_CANCELED);
    done(&f);
}

Test(execution, knows_only_the_tasks_of_the_present_run) /* [S-GEN-7] */
{
    struct fixture f = fixture();

    cr_assert_null(task(&f, 1, 0, 0)); /* there is no graph */
    begin(&f);
    cr_assert_not_null(task(&f, 1, 0, 1));
    cr_assert_null(task(&f, 1, 0, 0));
    cr_assert_null(task(&f, 1, 0, 2));
    cr_assert_null(task(&f, 1, 3, 1));
    cr_assert_null(task(&f, 0, 0, 1));
    cr_assert_null(task(&f, 4, 0, 1));
    move_all(&f, PLIANT_TASK_FINISHED);
    execution_end(&f.g);
    cr_assert_null(task(&f, 1, 0, 1));
    cr_assert_eq(f.g.n_tasks, 0);
    cr_assert_eq(f.g.parallelism[0], 0);
    done(&f);
}

Test(execution, numbers_the_attempts_of_a_subtask_over_all_runs) /* [S-RST-1] */
{
    static const uint32_t small[] = {1, 1, 1}, small_slots[] = {1, 1};
    struct fixture f = fixture();

    begin(&f);
    move_all(&f, PLIANT_TASK_CANCELED);
    execution_end(&f.g);
    cr_assert_eq(execution_begin(&f.g, &f.pool, small, small_slots, UNIT_SLOTS), 0);
    cr_assert_not_null(task(&f, 1, 0, 2));
    cr_assert_eq(f.g.n_units, 2);
    move_all(&f, PLIANT_TASK_CANCELED);
    execution_end(&f.g);
    begin(&f);
    cr_assert_not_null(task(&f, 1, 0, 3));
    cr_assert_not_null(task(&f, 1, 2, 2)); /* it sat one run out */
    move_all(&f, PLIANT_TASK_CANCELED);
    done(&f);
}

Test(execution, counts_what_lives_runs_and_has_finished)
{
    struct fixture f = fixture();

    begin(&f);
    cr_assert(!execution_all_running(&f.g));
    move_all(&f, PLIANT_TASK_DEPLOYING);
    cr_assert_eq(f.g.n_running, 0);
    move_all(&f, PLIANT_TASK_RUNNING);
    cr_assert_eq(f.g.n_running, 7);
    cr_assert(execution_all_running(&f.g));
    execution_move(&f.g, &f.pool, task(&f, 2, 0, 1), PLIANT_TASK_FINISHED, 20);
    cr_assert_eq(f.g.n_running, 6);
    cr_assert_eq(f.g.n_finished, 1);
    cr_assert_eq(f.g.n_live, 6);
    cr_assert(execution_all_running(&f.g)); /* a finished one does not stand in the way */
    cr_assert_eq(f.pool.n_used, 5);         /* its slot is shared */
    execution_move(&f.g, &f.pool, task(&f, 1, 0, 1), PLIANT_TASK_FAILED, 30);
    cr_assert(!execution_all_running(&f.g));
    cr_assert_eq(f.pool.n_used, 4);
    cr_assert_eq(f.pool.slots.v[1].idle_since_ms, 30);
    cr_assert_eq(f.g.n_finished, 1);
    done(&f);
}

Test(execution, where_all_have_finished_nothing_runs)
{
    struct fixture f = fixture();

    begin(&f);
    move_all(&f, PLIANT_TASK_FINISHED);
    cr_assert_eq(f.g.n_finished, 7);
    cr_assert_eq(f.g.n_live, 0);
    cr_assert(!execution_all_running(&f.g));
    cr_assert_eq(f.pool.n_used, 0);
    done(&f);
}

Test(execution, moves_no_task_that_is_over, .signal = SIGABRT) /* [S-GEN-5] */
{
    struct fixture f = fixture();

    begin(&f);
    move_all(&f, PLIANT_TASK_FINISHED);
    execution_move(&f.g, &f.pool, &f.g.vertices[0].tasks[0], PLIANT_TASK_RUNNING, 9);
}

/* ---- several attempts of a task ------------------------------------------------------------- */

static struct pliant_task speculate(struct fixture *f, uint32_t v, uint32_t i)
{
    struct pliant_task id;

    cr_assert_eq(execution_speculate(&f->g, v, i, &id), 0);
    return id;
}

/* Numbers of the attempts of c:0, in their order. */
static void expect_numbers(const struct fixture *f, const uint32_t *numbers, size_t n)
{
    const struct task *a = &f->g.vertices[2].tasks[0];

    for (size_t i = 0; i < n; i++, a = execution_next(&f->g, a)) {
        cr_assert_not_null(a);
        cr_assert_eq(a->attempt, numbers[i]);
        cr_assert_eq(a->rival, i > 0);
    }
    cr_assert_null(a);
}

#define EXPECT_NUMBERS(f, ...)                                                                     \
    expect_numbers(f, (const uint32_t[]){__VA_ARGS__},                                             \
                   sizeof(const uint32_t[]){__VA_ARGS__} / sizeof(uint32_t))

Test(execution, lets_the_best_attempt_stand_for_its_task) /* [P-SPEC-13] */
{
    struct fixture f = fixture();

    begin(&f);
    move_all(&f, PLIANT_TASK_DEPLOYING);
    speculate(&f, 2, 0);
    speculate(&f, 2, 0);
    EXPECT_NUMBERS(&f, 1, 2, 3);
    cr_assert_eq(f.g.n_live, 9);
    cr_assert_eq(f.g.n_created, 2);
    cr_assert(!execution_rank(&f.g, 2, 0));

    execution_move(&f.g, &f.pool, task(&f, 3, 0, 1), PLIANT_TASK_CANCELING, 9);
    cr_assert(execution_rank(&f.g, 2, 0));
    EXPECT_NUMBERS(&f, 2, 1, 3);
    execution_move(&f.g, &f.pool, task(&f, 3, 0, 3), PLIANT_TASK_CANCELED, 9);
    cr_assert(!execution_rank(&f.g, 2, 0));
    EXPECT_NUMBERS(&f, 2, 1);
    cr_assert_null(task(&f, 3, 0, 3)); /* it is forgotten */
    execution_move(&f.g, &f.pool, task(&f, 3, 0, 1), PLIANT_TASK_CANCELED, 9);
    execution_rank(&f.g, 2, 0);
    EXPECT_NUMBERS(&f, 2);
    cr_assert(!task_has_rivals(task(&f, 3, 0, 2)));
    execution_move(&f.g, &f.pool, task(&f, 3, 0, 2), PLIANT_TASK_CANCELED, 9);
    execution_reset(&f.g, 2, 0);
    EXPECT_NUMBERS(&f, 4); /* no number is used twice */
    done(&f);
}

Test(execution, counts_a_task_once_however_many_attempts_it_has) /* [P-SPEC-15] */
{
    struct fixture f = fixture();

    begin(&f);
    move_all(&f, PLIANT_TASK_RUNNING);
    execution_move(&f.g, &f.pool, task(&f, 1, 2, 1), PLIANT_TASK_FINISHED, 9); /* its slot is 4 */
    speculate(&f, 2, 0);
    execution_seat_rival(&f.g, &f.pool, task(&f, 3, 0, 2), 3);
    cr_assert_eq(f.pool.n_used, 5);
    execution_move(&f.g, &f.pool, task(&f, 3, 0, 2), PLIANT_TASK_RUNNING, 9);
    execution_rank(&f.g, 2, 0);
    EXPECT_NUMBERS(&f, 1, 2); /* the earlier of equals */
    cr_assert_eq(f.g.n_running, 6);
    cr_assert(execution_all_running(&f.g));
    execution_end_of_data(&f.g, task(&f, 3, 0, 2));
    cr_assert_eq(f.g.n_end_of_data, 0);
    execution_move(&f.g, &f.pool, task(&f, 3, 0, 2), PLIANT_TASK_FINISHED, 9);
    execution_rank(&f.g, 2, 0);
    EXPECT_NUMBERS(&f, 2, 1);
    cr_assert_eq(f.g.n_running, 5);
    cr_assert_eq(f.g.n_finished, 2);
    cr_assert_eq(f.g.n_end_of_data, 1);
    cr_assert_eq(f.g.n_effective, 1);
    cr_assert_eq(f.g.n_live, 6);
    execution_move(&f.g, &f.pool, task(&f, 3, 0, 1), PLIANT_TASK_CANCELED, 9);
    execution_rank(&f.g, 2, 0);
    execution_reset(&f.g, 2, 0);
    cr_assert_eq(f.g.n_effective, 0);
    cr_assert_eq(f.g.n_finished, 1);
    done(&f);
}

Test(execution, leaks_nothing_whichever_allocation_fails)
{
    struct fixture f = fixture();

    for (size_t k = 1;; k++) {
        FAILING_ALLOC(hook, k);
        struct execution g;
        int error = execution_init(&g, f.job, &hook.hook);

        if (error == 0) {
            error = execution_begin(&g, &f.pool, PARALLELISM, GROUP_SLOTS, UNIT_SLOTS);
            cr_assert_eq(g.exists, error == 0);
            cr_assert_eq(f.pool.n_used, error == 0 ? 5 : 0); /* all or none */
            execution_free(&g);
        }
        cr_assert_eq(hook.live, 0);
        if (hook.calls < k) {
            cr_assert_eq(error, 0);
            break;
        }
        cr_assert_eq(error, -ENOMEM);
    }
    done(&f);
}

/* execution.c - see execution.h */
#include "graph/execution.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int execution_init(struct execution *g, const struct pliant_job *job, const struct pliant_alloc *a)
{
    *g = (struct execution){.job = job, .alloc = a};
    g->vertices = mem_zero(a, job->n_vertices, sizeof *g->vertices);
    g->parallelism = mem_zero(a, job->n_vertices, sizeof *g->parallelism);
    if (g->vertices && g->parallelism)
        return 0;
    execution_free(g);
    return -ENOMEM;
}

void execution_free(struct execution *g)
{
    if (g->vertices)
        for (uint32_t v = 0; v < g->job->n_vertices; v++) {
            mem_free(g->alloc, g->vertices[v].tasks);
            mem_free(g->alloc, g->vertices[v].times);
        }
    mem_free(g->alloc, g->vertices);
    mem_free(g->alloc, g->parallelism);
    vec_free(g->alloc, &g->rivals);
    g->vertices = NULL;
    g->parallelism = NULL;
}

static int times_reserve(struct execution *g, uint32_t v, uint32_t n)
{
    int64_t *grown = mem_resize(g->alloc, g->vertices[v].times, n, sizeof *grown);

    if (!grown)
        return -ENOMEM;
    g->vertices[v].times = grown;
    for (uint32_t i = g->vertices[v].cap; i < n; i++)
        grown[i] = PLIANT_UNSET;
    return 0;
}

static int tasks_reserve(struct execution *g, uint32_t v, uint32_t n)
{
    struct vertex_tasks *vertex = &g->vertices[v];
    struct task *grown;

    if (n <= vertex->cap)
        return 0;
    if (g->timed && times_reserve(g, v, n) < 0)
        return -ENOMEM;
    grown = mem_resize(g->alloc, vertex->tasks, n, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    memset(grown + vertex->cap, 0, (n - vertex->cap) * sizeof *grown);
    vertex->tasks = grown;
    vertex->cap = n;
    return 0;
}

/* The next attempt of a task, in place of the present one. */
static void attempt_begin(struct execution *g, uint32_t v, uint32_t i, uint32_t slot,
                          enum pliant_task_state state)
{
    struct task *task = &g->vertices[v].tasks[i];

    *task = (struct task){
        .attempt = task->last + 1, .last = task->last + 1, .slot = slot, .state = (uint8_t)state};
    if (g->timed)
        g->vertices[v].times[i] = PLIANT_UNSET;
}

static void group_begin(struct execution *g, struct pool *pool, uint32_t group,
                        const uint32_t *unit_slots)
{
    const struct pliant_job *job = g->job;

    for (uint32_t m = job->group_first[group]; m < job->group_first[group + 1]; m++) {
        uint32_t v = job->group_members[m];

        for (uint32_t i = 0; i < g->parallelism[v]; i++) {
            attempt_begin(g, v, i, unit_slots[i] - 1, PLIANT_TASK_SCHEDULED);
            pool_occupy(pool, unit_slots[i] - 1, group, i);
        }
        g->n_tasks += g->parallelism[v];
    }
}

/* The ranks of one launch have one attempt number: that of the last launch, and one more. */
static void level_attempts(struct vertex_tasks *vertex)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < vertex->cap; i++)
        if (vertex->tasks[i].last > last)
            last = vertex->tasks[i].last;
    for (uint32_t i = 0; i < vertex->cap; i++)
        vertex->tasks[i].last = last;
}

static int tables_begin(struct execution *g, const uint32_t *parallelism)
{
    assert(!g->exists);
    for (uint32_t v = 0; v < g->job->n_vertices; v++)
        if (tasks_reserve(g, v, parallelism[v]) < 0)
            return -ENOMEM;
    if (g->job->worker_group)
        level_attempts(&g->vertices[0]);
    memcpy(g->parallelism, parallelism, g->job->n_vertices * sizeof *parallelism);
    g->exists = true;
    g->n_units = g->n_tasks = g->n_created = 0;
    g->n_running = g->n_finished = g->n_end_of_data = 0;
    return 0;
}

int execution_begin(struct execution *g, struct pool *pool, const uint32_t *parallelism,
                    const uint32_t *group_slots, const uint32_t *unit_slots)
{
    if (tables_begin(g, parallelism) < 0)
        return -ENOMEM;
    for (uint32_t group = 0; group < g->job->n_groups; group++) {
        group_begin(g, pool, group, unit_slots);
        unit_slots += group_slots[group];
        g->n_units += group_slots[group];
    }
    g->n_live = g->n_tasks;
    return 0;
}

int execution_add(struct execution *g, uint32_t v, uint32_t parallelism)
{
    if (tasks_reserve(g, v, parallelism) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < parallelism; i++)
        attempt_begin(g, v, i, POOL_NONE, PLIANT_TASK_CREATED);
    g->parallelism[v] = parallelism;
    g->n_tasks += parallelism;
    g->n_live += parallelism;
    g->n_created += parallelism;
    return 0;
}

int execution_create(struct execution *g, const uint32_t *parallelism)
{
    if (tables_begin(g, parallelism) < 0)
        return -ENOMEM;
    g->n_live = 0;
    for (uint32_t v = 0; v < g->job->n_vertices; v++)
        if (execution_add(g, v, parallelism[v]) < 0)
            return -ENOMEM;
    return 0;
}

void execution_end(struct execution *g)
{
    assert(g->n_live == 0);
    g->exists = false;
    g->n_units = g->n_tasks = g->n_running = g->n_finished = g->n_end_of_data = 0;
    memset(g->parallelism, 0, g->job->n_vertices * sizeof *g->parallelism);
}

struct task *execution_current(const struct execution *g, struct pliant_task id)
{
    struct task *task;

    if (!g->exists || id.vertex.v == 0 || id.vertex.v > g->job->n_vertices ||
        id.subtask >= g->parallelism[id.vertex.v - 1])
        return NULL;
    task = &g->vertices[id.vertex.v - 1].tasks[id.subtask];
    while (task && task->attempt != id.attempt)
        task = execution_next(g, task);
    return task;
}

void execution_move(struct execution *g, struct pool *pool, struct task *task,
                    enum pliant_task_state state, int64_t now_ms)
{
    bool seated = task_seated(task);

    assert(task_live(task));
    g->n_created -= !seated;
    if (!task->rival) {
        g->n_running -= task->state == PLIANT_TASK_RUNNING;
        g->n_running += state == PLIANT_TASK_RUNNING;
        g->n_finished += state == PLIANT_TASK_FINISHED;
        g->n_effective += state == PLIANT_TASK_FINISHED && task->speculative;
    }
    task->state = (uint8_t)state;
    if (task_live(task))
        return;
    g->n_live--;
    if (seated)
        pool_vacate(pool, task->slot, now_ms);
}

void execution_end_of_data(struct execution *g, struct task *task)
{
    g->n_end_of_data += !task->end_of_data && !task->rival;
    task->end_of_data = true;
}

void execution_reset(struct execution *g, uint32_t v, uint32_t subtask)
{
    struct task *task = &g->vertices[v].tasks[subtask];

    assert(!task_live(task) && task->more == 0);
    g->n_finished -= task->state == PLIANT_TASK_FINISHED;
    g->n_effective -= task->state == PLIANT_TASK_FINISHED && task->speculative;
    g->n_end_of_data -= task->end_of_data;
    g->n_live++;
    g->n_created++;
    attempt_begin(g, v, subtask, task->slot, PLIANT_TASK_CREATED);
}

static void attempt_seat(struct execution *g, struct pool *pool, struct task *attempt, uint32_t v,
                         uint32_t subtask, uint32_t row)
{
    g->n_created--;
    attempt->state = PLIANT_TASK_SCHEDULED;
    attempt->slot = row;
    pool_occupy(pool, row, g->job->group_of[v], subtask);
}

void execution_seat(struct execution *g, struct pool *pool, uint32_t v, uint32_t subtask,
                    uint32_t row)
{
    struct task *task = &g->vertices[v].tasks[subtask];

    assert(task->state == PLIANT_TASK_CREATED);
    attempt_seat(g, pool, task, v, subtask, row);
}

void execution_seat_rival(struct execution *g, struct pool *pool, struct task *rival, uint32_t row)
{
    const struct rival *of = execution_rival(g, rival);

    assert(rival->state == PLIANT_TASK_CREATED && pool->slots.v[row].live == 0);
    attempt_seat(g, pool, rival, of->v, of->subtask, row);
}

void execution_restart(struct execution *g, struct pool *pool, uint32_t v, uint32_t subtask,
                       uint32_t row)
{
    execution_reset(g, v, subtask);
    execution_seat(g, pool, v, subtask, row);
}

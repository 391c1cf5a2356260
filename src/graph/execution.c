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
        for (uint32_t v = 0; v < g->job->n_vertices; v++)
            mem_free(g->alloc, g->vertices[v].tasks);
    mem_free(g->alloc, g->vertices);
    mem_free(g->alloc, g->parallelism);
    g->vertices = NULL;
    g->parallelism = NULL;
}

static int tasks_reserve(struct execution *g, uint32_t v, uint32_t n)
{
    struct vertex_tasks *vertex = &g->vertices[v];
    struct task *grown;

    if (n <= vertex->cap)
        return 0;
    grown = mem_resize(g->alloc, vertex->tasks, n, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    memset(grown + vertex->cap, 0, (n - vertex->cap) * sizeof *grown);
    vertex->tasks = grown;
    vertex->cap = n;
    return 0;
}

static void group_begin(struct execution *g, struct pool *pool, uint32_t group,
                        const uint32_t *unit_slots)
{
    const struct pliant_job *job = g->job;

    for (uint32_t m = job->group_first[group]; m < job->group_first[group + 1]; m++) {
        uint32_t v = job->group_members[m];

        for (uint32_t i = 0; i < g->parallelism[v]; i++) {
            struct task *task = &g->vertices[v].tasks[i];

            *task = (struct task){.attempt = task->attempt + 1,
                                  .slot = unit_slots[i] - 1,
                                  .state = PLIANT_TASK_SCHEDULED};
            pool_occupy(pool, task->slot, group, i);
        }
        g->n_tasks += g->parallelism[v];
    }
}

/* The ranks of one launch have one attempt number: that of the last launch, and one more. */
static void level_attempts(struct vertex_tasks *vertex)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < vertex->cap; i++)
        if (vertex->tasks[i].attempt > last)
            last = vertex->tasks[i].attempt;
    for (uint32_t i = 0; i < vertex->cap; i++)
        vertex->tasks[i].attempt = last;
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
    for (uint32_t i = 0; i < parallelism; i++) {
        struct task *task = &g->vertices[v].tasks[i];

        *task = (struct task){
            .attempt = task->attempt + 1, .slot = POOL_NONE, .state = PLIANT_TASK_CREATED};
    }
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
    return task->attempt == id.attempt ? task : NULL;
}

void execution_move(struct execution *g, struct pool *pool, struct task *task,
                    enum pliant_task_state state, int64_t now_ms)
{
    bool seated = task_seated(task);

    assert(task_live(task));
    g->n_created -= !seated;
    g->n_running -= task->state == PLIANT_TASK_RUNNING;
    g->n_running += state == PLIANT_TASK_RUNNING;
    g->n_finished += state == PLIANT_TASK_FINISHED;
    task->state = (uint8_t)state;
    if (task_live(task))
        return;
    g->n_live--;
    if (seated)
        pool_vacate(pool, task->slot, now_ms);
}

void execution_reset(struct execution *g, uint32_t v, uint32_t subtask)
{
    struct task *task = &g->vertices[v].tasks[subtask];

    assert(!task_live(task));
    g->n_finished -= task->state == PLIANT_TASK_FINISHED;
    g->n_end_of_data -= task->end_of_data;
    g->n_live++;
    g->n_created++;
    *task = (struct task){
        .attempt = task->attempt + 1, .slot = task->slot, .state = PLIANT_TASK_CREATED};
}

void execution_seat(struct execution *g, struct pool *pool, uint32_t v, uint32_t subtask,
                    uint32_t row)
{
    struct task *task = &g->vertices[v].tasks[subtask];

    assert(task->state == PLIANT_TASK_CREATED);
    g->n_created--;
    task->state = PLIANT_TASK_SCHEDULED;
    task->slot = row;
    pool_occupy(pool, row, g->job->group_of[v], subtask);
}

void execution_restart(struct execution *g, struct pool *pool, uint32_t v, uint32_t subtask,
                       uint32_t row)
{
    execution_reset(g, v, subtask);
    execution_seat(g, pool, v, subtask, row);
}

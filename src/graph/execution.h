/* execution.h - the execution graph: the tasks of one run, their attempts, states and slots
 *
 * There is one table of tasks per job. Rows beyond the present parallelism keep the number of
 * their last attempt, so that news of an old attempt never matches a new one.
 *
 * A task is CREATED before it has a slot, and has one from SCHEDULED on until it is over.
 *
 * Shapes  vertices[v].tasks[0 .. parallelism[v] - 1], v = vertex id - 1
 * Owner   execution_free()
 * Errors  -ENOMEM
 * Source  S-STA tables, S-PAR-10, S-RST (attempts)
 */
#ifndef PLIANT_GRAPH_EXECUTION_H
#define PLIANT_GRAPH_EXECUTION_H

#include <pliant/pliant.h>

#include "graph/job.h"
#include "graph/pool.h"

struct task {
    uint32_t attempt;
    uint32_t slot; /* row in the pool, while live; then the last one; POOL_NONE: none yet */
    uint8_t state; /* enum pliant_task_state */
    bool end_of_data;
};

struct vertex_tasks {
    struct task *tasks;
    uint32_t cap;
};

struct execution {
    const struct pliant_job *job;
    const struct pliant_alloc *alloc;
    bool exists;
    struct vertex_tasks *vertices; /* [n_vertices] */
    uint32_t *parallelism;         /* [n_vertices] */
    uint32_t n_units;              /* slots that it took */
    uint32_t n_tasks, n_live, n_created, n_running, n_finished, n_end_of_data;
};

int execution_init(struct execution *g, const struct pliant_job *job, const struct pliant_alloc *a);
void execution_free(struct execution *g);

/* A new run: every subtask gets its next attempt, SCHEDULED, in the slot of its unit [S-CEG-4].
 * unit_slots[] are slot ids (row + 1), by group, then subtask. */
int execution_begin(struct execution *g, struct pool *pool, const uint32_t *parallelism,
                    const uint32_t *group_slots, const uint32_t *unit_slots);
/* The same without slots: every subtask is CREATED. A parallelism of 0: the vertex gets its tasks
 * later. */
int execution_create(struct execution *g, const uint32_t *parallelism);
/* A vertex without tasks gets them. */
int execution_add(struct execution *g, uint32_t v, uint32_t parallelism);
/* The run is over: no graph until the next one begins. No task may be live. */
void execution_end(struct execution *g);

/* The task that this names, if it belongs to the present run and attempt; else NULL. */
struct task *execution_current(const struct execution *g, struct pliant_task id);

/* A task that is over starts anew: its next attempt, SCHEDULED, in this slot [P-REG-6]. */
void execution_restart(struct execution *g, struct pool *pool, uint32_t v, uint32_t subtask,
                       uint32_t row);

/* A task that is over becomes CREATED, as its next attempt; its last slot stays known. */
void execution_reset(struct execution *g, uint32_t v, uint32_t subtask);
/* A CREATED task gets a slot: SCHEDULED. */
void execution_seat(struct execution *g, struct pool *pool, uint32_t v, uint32_t subtask,
                    uint32_t row);

/* Put a live task into another state; a terminal one gives its slot up. */
void execution_move(struct execution *g, struct pool *pool, struct task *task,
                    enum pliant_task_state state, int64_t now_ms);

static inline bool task_live(const struct task *task)
{
    return task->state < PLIANT_TASK_FINISHED;
}

/* It lives in a slot. */
static inline bool task_seated(const struct task *task)
{
    return task_live(task) && task->state != PLIANT_TASK_CREATED;
}

/* Every task runs, or has finished, and one at least runs. */
static inline bool execution_all_running(const struct execution *g)
{
    return g->exists && g->n_running > 0 && g->n_running + g->n_finished == g->n_tasks;
}

#endif

/* execution.h - the execution graph: the tasks of one run, their attempts, states and slots
 *
 * There is one table of tasks per job. Rows beyond the present parallelism keep the number of
 * their last attempt, so that news of an old attempt never matches a new one.
 *
 * A task is CREATED before it has a slot, and has one from SCHEDULED on until it is over.
 *
 * A task may have further attempts at a time (attempts.c). The best of all stands for it in the
 * table of tasks [6.3]; the others are its rivals, in a table of their own, a list for each task in
 * the order of their numbers. A rival that is over is forgotten. Who has none pays one comparison.
 *
 * Shapes  vertices[v].tasks[0 .. parallelism[v] - 1], v = vertex id - 1
 * Owner   execution_free()
 * Errors  -ENOMEM
 * Source  S-STA tables, S-PAR-10, S-RST (attempts); section 6.3 of the rules of failover
 */
#ifndef PLIANT_GRAPH_EXECUTION_H
#define PLIANT_GRAPH_EXECUTION_H

#include <pliant/pliant.h>

#include "graph/job.h"
#include "graph/pool.h"

struct task {
    uint32_t attempt;
    uint32_t slot; /* row in the pool, while live; then the last one; POOL_NONE: none yet */
    uint32_t last; /* the number of its last attempt; of a rival 0 */
    uint32_t more; /* row of its next rival, and one; 0: none */
    uint8_t state; /* enum pliant_task_state */
    bool end_of_data;
    bool speculative; /* not the attempt that the task began with */
    bool rival;       /* another attempt stands for the task */
};

struct rival {
    struct task task;
    uint32_t v, subtask;
    int64_t time_ms;       /* as vertex_tasks.times */
    int64_t give_up_at_ms; /* while CANCELING: of its confirmation; PLIANT_NEVER */
};

struct vertex_tasks {
    struct task *tasks;
    int64_t *times; /* if `timed`, else NULL: when it was deployed, PLIANT_UNSET before; once it has
                       finished, how long that took */
    uint32_t cap;
};

struct execution {
    const struct pliant_job *job;
    const struct pliant_alloc *alloc;
    bool exists;
    bool timed;                    /* who wants to know how long tasks take says so at first */
    struct vertex_tasks *vertices; /* [n_vertices] */
    uint32_t *parallelism;         /* [n_vertices] */
    uint32_t n_units;              /* slots that it took */
    uint32_t n_live, n_created;    /* attempts */
    uint32_t n_tasks, n_running, n_finished, n_end_of_data; /* tasks */
    uint64_t n_effective; /* tasks that are finished, by an attempt that was speculative */
    struct VEC(struct rival) rivals; /* without gaps */
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

/* The attempt that this names, if it belongs to the present run and is current; else NULL. */
struct task *execution_current(const struct execution *g, struct pliant_task id);

/* A task that is over starts anew: its next attempt, SCHEDULED, in this slot [P-REG-6]. */
void execution_restart(struct execution *g, struct pool *pool, uint32_t v, uint32_t subtask,
                       uint32_t row);

/* A task that is over becomes CREATED, as its next attempt; its last slot stays known. */
void execution_reset(struct execution *g, uint32_t v, uint32_t subtask);
/* A CREATED task gets a slot: SCHEDULED. */
void execution_seat(struct execution *g, struct pool *pool, uint32_t v, uint32_t subtask,
                    uint32_t row);

/* Put a live attempt into another state; a terminal one gives its slot up. If its task has rivals
 * or it is one, execution_rank() follows. */
void execution_move(struct execution *g, struct pool *pool, struct task *task,
                    enum pliant_task_state state, int64_t now_ms);
/* It has no more input. */
void execution_end_of_data(struct execution *g, struct task *task);

/* ---- attempts.c: several of one task -------------------------------------------------------- */

/* A task gets one more attempt, CREATED: it waits for a slot. Attempts that were looked up before
 * have moved. */
int execution_speculate(struct execution *g, uint32_t v, uint32_t subtask, struct pliant_task *ret);
/* ... and the slot, which no task lives in. */
void execution_seat_rival(struct execution *g, struct pool *pool, struct task *rival, uint32_t row);
/* The best attempt stands for the task, rivals that are over are forgotten; true: it is another one
 * than before. Attempts that were looked up before have moved. */
bool execution_rank(struct execution *g, uint32_t v, uint32_t subtask);
/* Its row in the table. */
struct rival *execution_rival(const struct execution *g, const struct task *rival);
/* For who reads a snapshot: a rival with all its facts, which other counts include already. */
int execution_read_rival(struct execution *g, const struct rival *read);
/* See vertex_tasks.times; NULL: not timed. */
int64_t *execution_time(const struct execution *g, uint32_t v, uint32_t subtask,
                        const struct task *attempt);

/* The next attempt of the same task, or NULL. */
static inline struct task *execution_next(const struct execution *g, const struct task *attempt)
{
    return attempt->more == 0 ? NULL : &g->rivals.v[attempt->more - 1].task;
}

/* Does it have several attempts, or is it one of several? */
static inline bool task_has_rivals(const struct task *attempt)
{
    return attempt->more != 0 || attempt->rival;
}

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

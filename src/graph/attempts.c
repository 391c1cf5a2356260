/* attempts.c - several attempts of one task: see execution.h */
#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "graph/execution.h"

/* ---- the list of a task --------------------------------------------------------------------- */

struct rival *execution_rival(const struct execution *g, const struct task *rival)
{
    assert(rival->rival);
    return &g->rivals.v[((uintptr_t)rival - (uintptr_t)g->rivals.v) / sizeof *g->rivals.v];
}

int64_t *execution_time(const struct execution *g, uint32_t v, uint32_t subtask,
                        const struct task *attempt)
{
    if (!g->timed)
        return NULL;
    return attempt->rival ? &execution_rival(g, attempt)->time_ms : &g->vertices[v].times[subtask];
}

/* What holds the number of a row: the task, or the rival before it. */
static uint32_t *link_to(const struct execution *g, uint32_t row)
{
    const struct rival *rival = &g->rivals.v[row];
    uint32_t *link = &g->vertices[rival->v].tasks[rival->subtask].more;

    while (*link != row + 1)
        link = &g->rivals.v[*link - 1].task.more;
    return link;
}

/* Where its number puts it. */
static void insert(const struct execution *g, uint32_t row)
{
    struct rival *rival = &g->rivals.v[row];
    uint32_t *link = &g->vertices[rival->v].tasks[rival->subtask].more;

    while (*link != 0 && g->rivals.v[*link - 1].task.attempt < rival->task.attempt)
        link = &g->rivals.v[*link - 1].task.more;
    rival->task.more = *link;
    *link = row + 1;
}

static void take_out(const struct execution *g, uint32_t row)
{
    *link_to(g, row) = g->rivals.v[row].task.more;
}

/* The last one moves into the gap. */
static void forget(struct execution *g, uint32_t row)
{
    uint32_t last = (uint32_t)g->rivals.n - 1;

    take_out(g, row);
    if (row != last) {
        *link_to(g, last) = row + 1;
        g->rivals.v[row] = g->rivals.v[last];
    }
    g->rivals.n--;
}

int execution_read_rival(struct execution *g, const struct rival *read)
{
    struct rival *rival = vec_push(g->alloc, &g->rivals);

    if (!rival)
        return -ENOMEM;
    *rival = *read;
    rival->task.rival = true;
    insert(g, (uint32_t)g->rivals.n - 1);
    return 0;
}

int execution_speculate(struct execution *g, uint32_t v, uint32_t subtask, struct pliant_task *ret)
{
    struct task *task = &g->vertices[v].tasks[subtask];
    struct rival rival = {.task = {.attempt = task->last + 1,
                                   .slot = POOL_NONE,
                                   .state = PLIANT_TASK_CREATED,
                                   .speculative = true},
                          .v = v,
                          .subtask = subtask,
                          .time_ms = PLIANT_UNSET,
                          .give_up_at_ms = PLIANT_NEVER};

    if (execution_read_rival(g, &rival) < 0)
        return -ENOMEM;
    task->last++;
    g->n_live++;
    g->n_created++;
    *ret = (struct pliant_task){{v + 1}, subtask, task->last};
    return 0;
}

/* ---- who stands for the task ---------------------------------------------------------------- */

/* The less the better [6.3]. */
static uint32_t rank(const struct task *attempt)
{
    static const uint8_t ranks[] = {
        [PLIANT_TASK_FINISHED] = 0,  [PLIANT_TASK_RUNNING] = 1,   [PLIANT_TASK_INITIALIZING] = 2,
        [PLIANT_TASK_DEPLOYING] = 3, [PLIANT_TASK_SCHEDULED] = 4, [PLIANT_TASK_CREATED] = 5,
        [PLIANT_TASK_CANCELING] = 6, [PLIANT_TASK_FAILED] = 7,    [PLIANT_TASK_CANCELED] = 8,
    };

    return ranks[attempt->state];
}

/* The best rival, if it is better than the one that stands; the earlier of equals. */
static struct task *better(const struct execution *g, const struct task *task)
{
    struct task *best = NULL;

    for (struct task *r = execution_next(g, task); r; r = execution_next(g, r))
        if (rank(r) < rank(best ? best : task))
            best = r;
    return best;
}

static void discount(struct execution *g, const struct task *task)
{
    g->n_running -= task->state == PLIANT_TASK_RUNNING;
    g->n_end_of_data -= task->end_of_data;
}

static void count(struct execution *g, const struct task *task)
{
    g->n_running += task->state == PLIANT_TASK_RUNNING;
    g->n_end_of_data += task->end_of_data;
    g->n_finished += task->state == PLIANT_TASK_FINISHED;
    g->n_effective += task->state == PLIANT_TASK_FINISHED && task->speculative;
}

/* A rival changes places with the attempt that stood for the task. */
static void promote(struct execution *g, struct task *task, struct rival *rival)
{
    uint32_t row = (uint32_t)(rival - g->rivals.v), last = task->last;
    int64_t *time = execution_time(g, rival->v, rival->subtask, task);
    struct task promoted = rival->task, demoted = *task;

    discount(g, task);
    take_out(g, row);
    promoted.more = task->more;
    promoted.last = last;
    promoted.rival = false;
    demoted.last = 0;
    demoted.rival = true;
    *task = promoted;
    rival->task = demoted;
    rival->give_up_at_ms = PLIANT_NEVER;
    if (time) {
        int64_t of_rival = rival->time_ms;

        rival->time_ms = *time;
        *time = of_rival;
    }
    insert(g, row);
    count(g, task);
}

static struct task *first_over(const struct execution *g, const struct task *task)
{
    struct task *r = execution_next(g, task);

    while (r && task_live(r))
        r = execution_next(g, r);
    return r;
}

bool execution_rank(struct execution *g, uint32_t v, uint32_t subtask)
{
    struct task *task = &g->vertices[v].tasks[subtask], *other;

    if (task->more == 0)
        return false;
    other = better(g, task);
    if (other)
        promote(g, task, execution_rival(g, other));
    for (struct task *over; (over = first_over(g, task));)
        forget(g, (uint32_t)(execution_rival(g, over) - g->rivals.v));
    return other != NULL;
}

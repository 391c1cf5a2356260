/* stages.h - the tasks of each vertex over a run: how many run, how often they started
 *
 * For reports and charts of jobs whose tasks start region by region, where the parallelism says
 * little: takes one view after another. Cost O(1) an action or event of a task, O(tasks) where a
 * node is lost, a region restarts or the state changes.
 *
 * Shapes  v[n]: by vertex index; running_ms[n_columns] of the first STAGES_SHOWN vertices: tasks
 *         that run, times milliseconds, in equal columns like those of series.h
 * Owner   stages_init() allocates, stages_free() frees
 * Errors  -ENOMEM
 */
#ifndef PLIANT_SIM_STAGES_H
#define PLIANT_SIM_STAGES_H

#include "sim/view.h"
#include "util/vec.h"

#define STAGES_SHOWN 24

enum stage_phase { STAGE_WAITS, STAGE_RUNS, STAGE_FINISHED };

struct stage_task {
    enum stage_phase phase;
    uint32_t attempt; /* the last one known; 0: none */
};

struct stage {
    struct VEC(struct stage_task) tasks;       /* that have started once, by subtask */
    uint32_t running;                          /* now; of each task one attempt counts */
    uint64_t attempts, restarted, speculative; /* started; tasks again; beside another one */
    int64_t first_start_at_ms, last_end_at_ms; /* of a task; PLIANT_NEVER: none */
    uint32_t restarts_now;                     /* tasks that restart in this step */
    uint32_t speculative_now;                  /* attempts that start beside others in it */
    double *running_ms;
};

struct stages {
    uint32_t n, n_columns;
    struct stage *v;
    int64_t now_ms, width_ms;
    bool by_region; /* tasks start region by region */
};

int stages_init(struct stages *s, uint32_t n_vertices, uint32_t n_columns);
void stages_free(struct stages *s);
int stages_take(struct stages *s, const struct view *v);
void stages_end(struct stages *s, int64_t end_ms);

/* How many tasks of a vertex below STAGES_SHOWN ran on average, in n equal columns. */
void stages_row(const struct stages *s, uint32_t vertex, double *row, uint32_t n);

/* Tasks of all vertices that restart in this step; attempts that start beside others in it. */
uint32_t stages_restart_now(const struct stages *s);
uint32_t stages_speculate_now(const struct stages *s);

#endif

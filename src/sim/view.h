/* view.h - a step of a run as reports see it: plain values, read from the scheduler in one place
 *
 * A report owns a view and shows it every step. Cost O(1) a step; O(vertices) where the job came
 * to run, or is about to run with another parallelism.
 *
 * Shapes  parallelism[n_vertices], aim[n_vertices]: by vertex index (id - 1)
 * Units   milliseconds, slots, subtasks
 * Owner   view_init() allocates, view_free() frees; event, actions and sched are borrowed for the
 *         step
 * Errors  view_init(): -ENOMEM
 */
#ifndef PLIANT_SIM_VIEW_H
#define PLIANT_SIM_VIEW_H

#include "allocator/allocator.h"
#include "sim/observer.h"

struct view {
    const struct pliant_job *job;
    uint32_t n_vertices;

    /* this step */
    int64_t at_ms;
    const struct pliant_event *event;
    const struct pliant_actions *actions;
    const struct pliant_sched *sched;
    const char *(*node_name)(const struct pliant_sched *sched, pliant_node_id node);

    /* after it */
    enum pliant_state state;
    enum pliant_job_status status;
    struct pliant_counts counts;
    uint32_t *parallelism; /* of the graph that runs, or that ran last */

    struct pliant_counts before; /* the counts before this step */
    bool has_aim;                /* a rescale or a move begins in this step, ... */
    uint32_t *aim;               /* ... to this parallelism */

    struct bounds bounds; /* scratch for `aim` */
};

int view_init(struct view *v, const struct pliant_job *job);
void view_free(struct view *v);
void view_take(struct view *v, const struct sim_step *step);

/* Does a restart for this reason aim at a parallelism, or does it only go down? */
bool view_aims(enum pliant_reason reason);

/* Does the job do its work in this state? */
bool view_works(enum pliant_state state);

/* Slots that work for the job; slots that are held for nothing yet, or any more, don't. */
uint32_t view_used(const struct view *v);

/* The event of this step was not current, or not for the state. */
bool view_ignored(const struct view *v);

/* What the step did to the nodes. */
enum view_node_news {
    VIEW_NODE_NONE,
    VIEW_NODE_JOINED,
    VIEW_NODE_LOST, /* without notice */
    VIEW_NODE_DRAINS,
    VIEW_NODE_STAYS, /* its drain was withdrawn */
    VIEW_NODE_LEFT,  /* after it drained */
};
enum view_node_news view_node_news(const struct view *v);

/* The largest of n values, 0 for n == 0. */
uint32_t view_widest(const uint32_t *parallelism, uint32_t n);

#endif

/* view.c - see view.h */
#include "sim/view.h"

#include <errno.h>

#include "graph/job.h"

int view_init(struct view *v, const struct pliant_job *job)
{
    uint32_t n = pliant_job_vertices(job);

    *v = (struct view){.job = job, .n_vertices = n, .node_name = pliant_node_name};
    v->parallelism = mem_zero(NULL, n, sizeof *v->parallelism);
    v->aim = mem_zero(NULL, n, sizeof *v->aim);
    if (v->parallelism && v->aim &&
        bounds_init(&v->bounds, n, job->n_groups, job->group_of, NULL) == 0)
        return 0;
    view_free(v);
    return -ENOMEM;
}

void view_free(struct view *v)
{
    mem_free(NULL, v->parallelism);
    mem_free(NULL, v->aim);
    bounds_free(&v->bounds, NULL);
    *v = (struct view){0};
}

/* What the job would come to with these slots: the target of a rescale [S-EXE-11]. */
static bool find_aim(struct view *v, uint32_t slots)
{
    for (uint32_t i = 0; i < v->n_vertices; i++)
        pliant_vertex_bounds(v->sched, (pliant_vertex_id){i + 1}, &v->bounds.vertices[i].min,
                             &v->bounds.vertices[i].want);
    bounds_refresh(&v->bounds);
    return allocator_parallelism(&v->bounds, slots, NULL, v->aim);
}

static void look_at_graph(struct view *v)
{
    for (uint32_t i = 0; i < v->n_vertices; i++)
        v->parallelism[i] = pliant_parallelism(v->sched, (pliant_vertex_id){i + 1});
}

static void take_change(struct view *v, const struct pliant_action *a)
{
    if (a->flag[1] == PLIANT_EXECUTING)
        look_at_graph(v);
    if (view_aims((enum pliant_reason)a->flag[2]))
        v->has_aim = find_aim(v, a->change.slots);
}

void view_take(struct view *v, const struct sim_step *step)
{
    v->at_ms = step->at_ms;
    v->event = step->event;
    v->actions = step->actions;
    v->sched = step->sched;
    v->state = pliant_state(step->sched);
    v->status = pliant_job_status(step->sched);
    v->before = v->counts;
    pliant_counts(step->sched, &v->counts);
    v->has_aim = false;
    for (size_t i = 0; i < step->actions->n; i++)
        if (step->actions->v[i].kind == PLIANT_ACT_STATE_CHANGED)
            take_change(v, &step->actions->v[i]);
        else if (step->actions->v[i].kind == PLIANT_ACT_DECIDED)
            look_at_graph(v);
}

bool view_aims(enum pliant_reason reason)
{
    return reason == PLIANT_REASON_RESCALE || reason == PLIANT_REASON_DRAIN ||
           reason == PLIANT_REASON_RECLAIM;
}

bool view_works(enum pliant_state state)
{
    return state == PLIANT_EXECUTING || state == PLIANT_STOP_WITH_SAVEPOINT;
}

uint32_t view_used(const struct view *v)
{
    return view_works(v->state) ? v->counts.slots_used : 0;
}

bool view_ignored(const struct view *v)
{
    return v->counts.events_ignored != v->before.events_ignored;
}

enum view_node_news view_node_news(const struct view *v)
{
    const struct pliant_counts *was = &v->before, *is = &v->counts;

    if (is->nodes > was->nodes)
        return VIEW_NODE_JOINED;
    if (is->nodes < was->nodes)
        return is->draining_nodes < was->draining_nodes ? VIEW_NODE_LEFT : VIEW_NODE_LOST;
    if (is->draining_nodes > was->draining_nodes)
        return VIEW_NODE_DRAINS;
    return is->draining_nodes < was->draining_nodes ? VIEW_NODE_STAYS : VIEW_NODE_NONE;
}

uint32_t view_widest(const uint32_t *parallelism, uint32_t n)
{
    uint32_t widest = 0;

    for (uint32_t i = 0; i < n; i++)
        if (parallelism[i] > widest)
            widest = parallelism[i];
    return widest;
}

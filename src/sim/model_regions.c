/* model_regions.c - see model_regions.h */
#include "sim/model_regions.h"

#include <errno.h>
#include <string.h>

#include "graph/job.h"
#include "util/alloc.h"

static uint32_t flat(const struct model_regions *r, uint32_t vertex, uint32_t subtask)
{
    return r->topology.first_task[vertex] + subtask;
}

static bool *result(const struct model_regions *r, uint32_t edge, uint32_t task)
{
    return &r->made[(size_t)edge * topology_tasks(&r->topology) + task];
}

int model_regions_init(struct model_regions *r, const struct pliant_job *job)
{
    uint32_t n = job->n_vertices;
    uint32_t *parallelism = mem_zero(NULL, n, sizeof *parallelism);
    size_t tasks;
    int rc = parallelism ? 0 : -ENOMEM;

    *r = (struct model_regions){.on = true};
    for (uint32_t v = 0; parallelism && v < n; v++)
        parallelism[v] = job->vertices[v].parallelism;
    if (rc == 0)
        rc = topology_init(&r->topology, job, parallelism, false, NULL);
    mem_free(NULL, parallelism);
    if (rc == 0)
        rc = regions_init(&r->regions, &r->topology, NULL);
    if (rc < 0)
        return rc;
    tasks = topology_tasks(&r->topology);
    r->finished = mem_zero(NULL, tasks + 1, sizeof *r->finished);
    r->life = mem_zero(NULL, tasks + 1, sizeof *r->life);
    r->made = mem_zero(NULL, tasks * job->n_edges + 1, sizeof *r->made);
    r->live = mem_zero(NULL, (size_t)r->regions.n + 1, sizeof *r->live);
    r->started = mem_zero(NULL, (size_t)r->regions.n + 1, sizeof *r->started);
    r->seen = mem_zero(NULL, (size_t)r->regions.n + 1, sizeof *r->seen);
    return r->finished && r->life && r->made && r->live && r->started && r->seen ? 0 : -ENOMEM;
}

void model_regions_free(struct model_regions *r)
{
    if (!r->on)
        return;
    mem_free(NULL, r->finished);
    mem_free(NULL, r->life);
    mem_free(NULL, r->made);
    mem_free(NULL, r->live);
    mem_free(NULL, r->started);
    mem_free(NULL, r->seen);
    if (r->regions.of_task)
        regions_free(&r->regions);
    if (r->topology.job)
        topology_free(&r->topology);
    *r = (struct model_regions){0};
}

/* All that a task reads from outside its region is there. */
static bool readable(const struct model_regions *r, uint32_t vertex, uint32_t subtask)
{
    const struct topology *t = &r->topology;
    uint32_t region = r->regions.of_task[flat(r, vertex, subtask)];

    for (uint32_t e = 0; e < t->job->n_edges; e++) {
        const struct pliant_edge_spec *spec = &t->job->edges[e];
        struct range p;

        if (spec->to != vertex || spec->exchange != PLIANT_BLOCKING)
            continue;
        p = topology_producers(t, e, subtask);
        for (; p.first < p.end; p.first++) {
            uint32_t producer = flat(r, spec->from, p.first);

            if (r->regions.of_task[producer] != region &&
                !(r->finished[producer] && *result(r, e, producer)))
                return false;
        }
    }
    return true;
}

static void set_results(struct model_regions *r, uint32_t task, bool made)
{
    const struct topology *t = &r->topology;

    for (uint32_t e = 0; e < t->job->n_edges; e++)
        *result(r, e, task) = made && t->job->edges[e].from == t->vertex_of[task] &&
                              t->job->edges[e].exchange == PLIANT_BLOCKING;
}

static bool any_result(const struct model_regions *r, uint32_t task)
{
    for (uint32_t e = 0; e < r->topology.job->n_edges; e++)
        if (*result(r, e, task))
            return true;
    return false;
}

const char *model_regions_start(struct model_regions *r, const struct pliant_task *task)
{
    uint32_t id, region;

    if (!r->on)
        return NULL;
    id = flat(r, task->vertex.v - 1, task->subtask);
    region = r->regions.of_task[id];
    if (r->live[region] > r->started[region])
        return "a region starts when none of its tasks lives";
    if (!readable(r, task->vertex.v - 1, task->subtask))
        return "a task starts when all that it reads is there";
    if (any_result(r, id))
        return "what a task made is released before it starts anew";
    r->live[region]++;
    r->started[region]++;
    r->seen[region] = r->causes;
    r->finished[id] = false;
    return NULL;
}

const char *model_regions_beside(struct model_regions *r, const struct pliant_task *task)
{
    if (!r->on)
        return NULL;
    if (!readable(r, task->vertex.v - 1, task->subtask))
        return "a task starts when all that it reads is there";
    r->live[r->regions.of_task[flat(r, task->vertex.v - 1, task->subtask)]]++;
    return NULL;
}

bool model_regions_finished(const struct model_regions *r, uint32_t vertex, uint32_t subtask)
{
    return r->on && r->finished[flat(r, vertex, subtask)];
}

const char *model_regions_cancel(const struct model_regions *r, const struct pliant_task *task)
{
    uint32_t region =
        r->on ? r->regions.of_task[flat(r, task->vertex.v - 1, task->subtask)] : UINT32_MAX;

    return r->on && r->seen[region] == r->causes
               ? "a region restarts for something that happened since it started"
               : NULL;
}

const char *model_regions_release(struct model_regions *r, const struct pliant_action *act,
                                  bool (*needs)(const void *ctx, uint32_t vertex, uint32_t subtask),
                                  const void *ctx)
{
    const struct pliant_task *producer = &act->result.producer;
    const struct pliant_edge_spec *spec;
    struct range c;
    uint32_t id;

    if (!r->on)
        return NULL;
    if (act->result.edge >= r->topology.job->n_edges)
        return "a result that is there is released once";
    spec = &r->topology.job->edges[act->result.edge];
    id = flat(r, producer->vertex.v - 1, producer->subtask);
    if (spec->from != producer->vertex.v - 1 || !*result(r, act->result.edge, id))
        return "a result that is there is released once";
    *result(r, act->result.edge, id) = false;
    c = topology_consumers(&r->topology, act->result.edge, producer->subtask);
    for (; c.first < c.end; c.first++)
        if (needs(ctx, spec->to, c.first))
            return "nobody reads a result that is released";
    return NULL;
}

const char *model_regions_step_over(struct model_regions *r)
{
    bool whole = true;

    if (!r->on)
        return NULL;
    for (uint32_t region = 0; region < r->regions.n; region++) {
        uint32_t size = r->regions.first[region + 1] - r->regions.first[region];

        whole &= r->started[region] == 0 || r->started[region] == size;
        r->started[region] = 0;
    }
    return whole ? NULL : "a region starts as a whole";
}

void model_regions_over(struct model_regions *r, uint32_t vertex, uint32_t subtask, uint32_t life,
                        bool finished)
{
    uint32_t id;

    if (!r->on)
        return;
    id = flat(r, vertex, subtask);
    r->live[r->regions.of_task[id]]--;
    if (!finished || r->finished[id])
        return;
    r->finished[id] = true;
    r->life[id] = life;
    set_results(r, id, true);
}

bool model_regions_node_left(struct model_regions *r, uint32_t life)
{
    bool any = false;

    for (uint32_t id = 0; r->on && id < topology_tasks(&r->topology); id++) {
        if (r->life[id] != life || !r->finished[id])
            continue;
        any |= any_result(r, id);
        set_results(r, id, false);
    }
    return any;
}

void model_regions_cause(struct model_regions *r)
{
    r->causes++;
}

/* results.c - see results.h */
#include "graph/results.h"

#include <errno.h>

#include "util/vec.h"

static void number_partitions(struct results *r, uint32_t vertex)
{
    const struct topology *t = r->topology;

    for (uint32_t i = t->out_first[vertex]; i < t->out_first[vertex + 1]; i++) {
        if (t->job->edges[t->out_edges[i]].exchange != PLIANT_BLOCKING)
            continue;
        r->first_partition[t->out_edges[i]] = r->n_partitions;
        r->n_partitions += topology_parallelism(t, vertex);
    }
}

static bool make_room(struct results *r)
{
    return array_reserve(r->alloc, &r->holder, &r->cap_tasks, topology_tasks(r->topology),
                         sizeof *r->holder) &&
           array_reserve(r->alloc, &r->tracked, &r->cap_partitions, r->n_partitions,
                         sizeof *r->tracked);
}

int results_add(struct results *r, uint32_t vertex)
{
    number_partitions(r, vertex);
    return make_room(r) ? 0 : -ENOMEM;
}

int results_init(struct results *r, const struct topology *t, const struct pliant_alloc *a)
{
    int rc;

    *r = (struct results){.topology = t, .alloc = a};
    r->first_partition = mem_zero(a, t->job->n_edges + 1, sizeof *r->first_partition);
    rc = r->first_partition ? 0 : -ENOMEM;
    for (uint32_t v = 0; rc == 0 && v < t->job->n_vertices; v++)
        rc = results_add(r, v);
    if (rc < 0)
        results_free(r);
    return rc;
}

void results_free(struct results *r)
{
    mem_free(r->alloc, r->first_partition);
    mem_free(r->alloc, r->tracked);
    mem_free(r->alloc, r->holder);
    *r = (struct results){0};
}

static void mark(struct results *r, uint32_t task, bool tracked)
{
    const struct topology *t = r->topology;
    uint32_t vertex = t->vertex_of[task], subtask = task - t->first_task[vertex];

    for (uint32_t i = t->out_first[vertex]; i < t->out_first[vertex + 1]; i++) {
        uint32_t edge = t->out_edges[i];

        if (t->job->edges[edge].exchange == PLIANT_BLOCKING)
            r->tracked[r->first_partition[edge] + subtask] = tracked;
    }
}

void results_begin(struct results *r, uint32_t task, uint64_t holder)
{
    r->holder[task] = holder;
    mark(r, task, true);
}

void results_forget(struct results *r, uint32_t edge, uint32_t producer)
{
    r->tracked[r->first_partition[edge] + producer] = false;
}

void results_forget_task(struct results *r, uint32_t task)
{
    mark(r, task, false);
}

/* results.c - see results.h */
#include "graph/results.h"

#include <errno.h>

static void number_partitions(struct results *r)
{
    const struct topology *t = r->topology;

    r->first_partition[0] = 0;
    for (uint32_t e = 0; e < t->job->n_edges; e++) {
        const struct pliant_edge_spec *edge = &t->job->edges[e];

        r->first_partition[e + 1] =
            r->first_partition[e] +
            (edge->exchange == PLIANT_BLOCKING ? topology_parallelism(t, edge->from) : 0);
    }
}

int results_init(struct results *r, const struct topology *t, const struct pliant_alloc *a)
{
    *r = (struct results){.topology = t, .alloc = a};
    r->first_partition = mem_zero(a, t->job->n_edges + 1, sizeof *r->first_partition);
    r->holder = mem_zero(a, (size_t)topology_tasks(t) + 1, sizeof *r->holder);
    if (r->first_partition) {
        number_partitions(r);
        r->tracked = mem_zero(a, (size_t)results_partitions(r) + 1, sizeof *r->tracked);
    }
    if (r->tracked && r->holder)
        return 0;
    results_free(r);
    return -ENOMEM;
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

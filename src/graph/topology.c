/* topology.c - see topology.h */
#include "graph/topology.h"

#include <errno.h>
#include <string.h>

static uint32_t ceil_part(uint64_t part, uint64_t of, uint64_t whole)
{
    return (uint32_t)((part * whole + of - 1) / of);
}

struct range pointwise_consumers(uint32_t producers, uint32_t consumers, uint32_t producer)
{
    if (producers < consumers)
        return (struct range){ceil_part(producer, producers, consumers),
                              ceil_part((uint64_t)producer + 1, producers, consumers)};
    /* the one i with i * P / C <= producer < (i + 1) * P / C */
    uint32_t i = (uint32_t)((((uint64_t)producer + 1) * consumers - 1) / producers);

    return (struct range){i, i + 1};
}

struct range pointwise_producers(uint32_t producers, uint32_t consumers, uint32_t consumer)
{
    uint64_t p = producers, i = consumer;

    if (producers >= consumers)
        return (struct range){(uint32_t)(i * p / consumers), (uint32_t)((i + 1) * p / consumers)};
    return (struct range){(uint32_t)(i * p / consumers), (uint32_t)(i * p / consumers) + 1};
}

/* ---- the edges of each vertex ----------------------------------------------------------- */

static uint32_t end_of(const struct pliant_edge_spec *edge, bool in)
{
    return in ? edge->to : edge->from;
}

static bool sort_edges(const struct pliant_job *job, const struct pliant_alloc *a, bool in,
                       uint32_t **ret_first, uint32_t **ret_edges)
{
    uint32_t *first = mem_zero(a, (size_t)job->n_vertices + 2, sizeof *first);
    uint32_t *edges = mem_resize(a, NULL, job->n_edges + 1, sizeof *edges);

    *ret_first = first;
    *ret_edges = edges;
    if (!first || !edges)
        return false;
    /* counted one place further on, so that filling moves each start to its end */
    for (size_t e = 0; e < job->n_edges; e++)
        first[end_of(&job->edges[e], in) + 2]++;
    for (uint32_t v = 0; v < job->n_vertices; v++)
        first[v + 2] += first[v + 1];
    for (size_t e = 0; e < job->n_edges; e++)
        edges[first[end_of(&job->edges[e], in) + 1]++] = (uint32_t)e;
    return true;
}

/* ---- numbers ---------------------------------------------------------------------------- */

static uint32_t groups_of(const struct topology *t, uint32_t e)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t producers = topology_parallelism(t, edge->from),
             consumers = topology_parallelism(t, edge->to);

    if (edge->exchange != PLIANT_BLOCKING)
        return 0;
    if (topology_all_to_all(t, e))
        return 1;
    return producers < consumers ? producers : consumers;
}

static void number_all(struct topology *t, const uint32_t *parallelism, bool rewire)
{
    const struct pliant_job *job = t->job;

    t->first_task[0] = 0;
    for (uint32_t v = 0; v < job->n_vertices; v++)
        t->first_task[v + 1] = t->first_task[v] + parallelism[v];
    for (uint32_t e = 0; e < job->n_edges; e++) {
        const struct pliant_edge_spec *edge = &job->edges[e];
        bool unequal = parallelism[edge->from] != parallelism[edge->to];

        t->patterns[e] = (uint8_t)(rewire && unequal ? PLIANT_ALL_TO_ALL : edge->pattern);
    }
    t->first_group[0] = 0;
    for (uint32_t e = 0; e < job->n_edges; e++)
        t->first_group[e + 1] = t->first_group[e] + groups_of(t, e);
}

static bool number_tasks(struct topology *t)
{
    t->vertex_of = mem_resize(t->alloc, NULL, (size_t)topology_tasks(t) + 1, sizeof *t->vertex_of);
    for (uint32_t v = 0; t->vertex_of && v < t->job->n_vertices; v++)
        for (uint32_t i = t->first_task[v]; i < t->first_task[v + 1]; i++)
            t->vertex_of[i] = v;
    return t->vertex_of != NULL;
}

int topology_init(struct topology *t, const struct pliant_job *job, const uint32_t *parallelism,
                  bool rewire, const struct pliant_alloc *a)
{
    *t = (struct topology){.job = job, .alloc = a};
    t->first_task = mem_resize(a, NULL, (size_t)job->n_vertices + 1, sizeof *t->first_task);
    t->first_group = mem_resize(a, NULL, job->n_edges + 1, sizeof *t->first_group);
    t->patterns = mem_resize(a, NULL, job->n_edges + 1, sizeof *t->patterns);
    if (t->first_task && t->first_group && t->patterns)
        number_all(t, parallelism, rewire);
    if (!t->first_task || !t->first_group || !t->patterns || !number_tasks(t) ||
        !sort_edges(job, a, true, &t->in_first, &t->in_edges) ||
        !sort_edges(job, a, false, &t->out_first, &t->out_edges)) {
        topology_free(t);
        return -ENOMEM;
    }
    return 0;
}

void topology_free(struct topology *t)
{
    mem_free(t->alloc, t->first_task);
    mem_free(t->alloc, t->first_group);
    mem_free(t->alloc, t->patterns);
    mem_free(t->alloc, t->vertex_of);
    mem_free(t->alloc, t->in_first);
    mem_free(t->alloc, t->in_edges);
    mem_free(t->alloc, t->out_first);
    mem_free(t->alloc, t->out_edges);
    memset(t, 0, sizeof *t);
}

/* ---- neighbours ------------------------------------------------------------------------- */

struct range topology_consumers(const struct topology *t, uint32_t e, uint32_t producer)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t consumers = topology_parallelism(t, edge->to);

    if (topology_all_to_all(t, e))
        return (struct range){0, consumers};
    return pointwise_consumers(topology_parallelism(t, edge->from), consumers, producer);
}

struct range topology_producers(const struct topology *t, uint32_t e, uint32_t consumer)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t producers = topology_parallelism(t, edge->from);

    if (topology_all_to_all(t, e))
        return (struct range){0, producers};
    return pointwise_producers(producers, topology_parallelism(t, edge->to), consumer);
}

/* Is a group what one consumer reads, or what one producer writes? */
static bool grouped_by_consumer(const struct topology *t, const struct pliant_edge_spec *edge)
{
    return topology_parallelism(t, edge->from) >= topology_parallelism(t, edge->to);
}

uint32_t topology_group_read(const struct topology *t, uint32_t e, uint32_t consumer)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];

    if (topology_all_to_all(t, e))
        return t->first_group[e];
    return t->first_group[e] +
           (grouped_by_consumer(t, edge) ? consumer : topology_producers(t, e, consumer).first);
}

struct range topology_group_producers(const struct topology *t, uint32_t e, uint32_t group)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t number = group - t->first_group[e];

    if (topology_all_to_all(t, e) || grouped_by_consumer(t, edge))
        return topology_producers(t, e, number);
    return (struct range){number, number + 1};
}

struct range topology_group_consumers(const struct topology *t, uint32_t e, uint32_t group)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t number = group - t->first_group[e];

    if (topology_all_to_all(t, e) || !grouped_by_consumer(t, edge))
        return topology_consumers(t, e, number);
    return (struct range){number, number + 1};
}

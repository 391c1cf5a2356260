/* topology.c - see topology.h */
#include "graph/topology.h"

#include <errno.h>
#include <string.h>

#include "util/vec.h"

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

/* ---- given ranges ----------------------------------------------------------------------- */

static void wiring_free(struct wiring *w, const struct pliant_alloc *a)
{
    if (!w)
        return;
    mem_free(a, w->producers);
    mem_free(a, w->consumers);
    mem_free(a, w->group_of);
    mem_free(a, w->groups);
    mem_free(a, w);
}

static struct wiring *wiring_new(uint32_t producers, uint32_t consumers,
                                 const struct pliant_alloc *a)
{
    struct wiring *w = mem_zero(a, 1, sizeof *w);

    if (!w)
        return NULL;
    w->producers = mem_zero(a, consumers, sizeof *w->producers);
    w->consumers = mem_zero(a, producers, sizeof *w->consumers);
    w->group_of = mem_zero(a, consumers, sizeof *w->group_of);
    w->groups = mem_zero(a, consumers, sizeof *w->groups);
    if (w->producers && w->consumers && w->group_of && w->groups)
        return w;
    wiring_free(w, a);
    return NULL;
}

/* Each producer is read, and the ranges go forward. */
static bool ranges_fine(const struct range *ranges, uint32_t producers, uint32_t consumers)
{
    uint32_t end = 0;

    for (uint32_t k = 0; k < consumers; k++) {
        struct range before = k > 0 ? ranges[k - 1] : (struct range){0, 0};

        if (ranges[k].first >= ranges[k].end || ranges[k].first < before.first ||
            ranges[k].end < before.end || ranges[k].first > end)
            return false;
        end = ranges[k].end;
    }
    return end == producers;
}

static void wire_ranges(struct wiring *w, const struct range *ranges, uint32_t consumers)
{
    for (uint32_t k = 0; k < consumers; k++) {
        struct wired_group *last = &w->groups[w->n_groups > 0 ? w->n_groups - 1 : 0];

        w->producers[k] = ranges[k];
        for (uint32_t p = ranges[k].first; p < ranges[k].end; p++) {
            if (w->consumers[p].end == 0)
                w->consumers[p].first = k;
            w->consumers[p].end = k + 1;
        }
        if (w->n_groups == 0 || ranges[k].first >= last->producers.end) {
            last = &w->groups[w->n_groups++];
            *last = (struct wired_group){ranges[k], {k, k}};
        }
        last->producers.end = ranges[k].end;
        last->consumers.end = k + 1;
        w->group_of[k] = w->n_groups - 1;
    }
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
    if (t->wirings[e])
        return t->wirings[e]->n_groups;
    return producers < consumers ? producers : consumers;
}

/* Both ends are there. */
static int wire(struct topology *t, uint32_t e, const struct range *ranges)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t producers = topology_parallelism(t, edge->from),
             consumers = topology_parallelism(t, edge->to);

    if (ranges && t->patterns[e] == PLIANT_POINTWISE) {
        if (!ranges_fine(ranges, producers, consumers)) {
            t->patterns[e] = PLIANT_ALL_TO_ALL;
        } else {
            t->wirings[e] = wiring_new(producers, consumers, t->alloc);
            if (!t->wirings[e])
                return -ENOMEM;
            wire_ranges(t->wirings[e], ranges, consumers);
        }
    }
    t->first_group[e] = t->n_groups;
    t->n_groups += groups_of(t, e);
    return 0;
}

static int wire_all(struct topology *t, uint32_t vertex, const struct range *const *ranges)
{
    int rc = 0;

    for (uint32_t i = t->in_first[vertex]; rc == 0 && i < t->in_first[vertex + 1]; i++)
        if (topology_wired(t, t->in_edges[i]))
            rc = wire(t, t->in_edges[i], ranges ? ranges[i - t->in_first[vertex]] : NULL);
    for (uint32_t i = t->out_first[vertex]; rc == 0 && i < t->out_first[vertex + 1]; i++)
        if (topology_wired(t, t->out_edges[i]))
            rc = wire(t, t->out_edges[i], NULL);
    return rc;
}

static bool number_tasks(struct topology *t, uint32_t vertex, uint32_t parallelism)
{
    if (!array_reserve(t->alloc, &t->vertex_of, &t->vertex_of_cap, (size_t)t->n_tasks + parallelism,
                       sizeof *t->vertex_of))
        return false;
    t->first_task[vertex] = t->n_tasks;
    t->parallelism[vertex] = parallelism;
    t->n_tasks += parallelism;
    for (uint32_t i = t->first_task[vertex]; i < t->n_tasks; i++)
        t->vertex_of[i] = vertex;
    return true;
}

int topology_add(struct topology *t, uint32_t vertex, uint32_t parallelism,
                 const struct range *const *ranges)
{
    return number_tasks(t, vertex, parallelism) ? wire_all(t, vertex, ranges) : -ENOMEM;
}

int topology_begin(struct topology *t, const struct pliant_job *job, const struct pliant_alloc *a)
{
    *t = (struct topology){.job = job, .alloc = a};
    t->first_task = mem_zero(a, job->n_vertices, sizeof *t->first_task);
    t->parallelism = mem_zero(a, job->n_vertices, sizeof *t->parallelism);
    t->first_group = mem_zero(a, job->n_edges + 1, sizeof *t->first_group);
    t->patterns = mem_zero(a, job->n_edges + 1, sizeof *t->patterns);
    t->wirings = mem_zero(a, job->n_edges + 1, sizeof(struct wiring *));
    if (!t->first_task || !t->parallelism || !t->first_group || !t->patterns || !t->wirings ||
        !sort_edges(job, a, true, &t->in_first, &t->in_edges) ||
        !sort_edges(job, a, false, &t->out_first, &t->out_edges)) {
        topology_free(t);
        return -ENOMEM;
    }
    for (uint32_t e = 0; e < job->n_edges; e++)
        t->patterns[e] = (uint8_t)job->edges[e].pattern;
    return 0;
}

static void rewire_unequal(struct topology *t, const uint32_t *parallelism)
{
    for (uint32_t e = 0; e < t->job->n_edges; e++)
        if (parallelism[t->job->edges[e].from] != parallelism[t->job->edges[e].to])
            t->patterns[e] = PLIANT_ALL_TO_ALL;
}

int topology_init(struct topology *t, const struct pliant_job *job, const uint32_t *parallelism,
                  bool rewire, const struct pliant_alloc *a)
{
    int rc = topology_begin(t, job, a);

    if (rc < 0)
        return rc;
    if (rewire)
        rewire_unequal(t, parallelism);
    for (uint32_t v = 0; rc == 0 && v < job->n_vertices; v++)
        rc = topology_add(t, v, parallelism[v], NULL);
    if (rc < 0)
        topology_free(t);
    return rc;
}

void topology_free(struct topology *t)
{
    for (uint32_t e = 0; t->wirings && e < t->job->n_edges; e++)
        wiring_free(t->wirings[e], t->alloc);
    mem_free(t->alloc, t->wirings);
    mem_free(t->alloc, t->first_task);
    mem_free(t->alloc, t->parallelism);
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

    if (topology_all_to_all(t, e) || consumers == 0)
        return (struct range){0, consumers};
    if (t->wirings[e])
        return t->wirings[e]->consumers[producer];
    return pointwise_consumers(topology_parallelism(t, edge->from), consumers, producer);
}

struct range topology_producers(const struct topology *t, uint32_t e, uint32_t consumer)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t producers = topology_parallelism(t, edge->from);

    if (topology_all_to_all(t, e) || producers == 0)
        return (struct range){0, producers};
    if (t->wirings[e])
        return t->wirings[e]->producers[consumer];
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
    if (t->wirings[e])
        return t->first_group[e] + t->wirings[e]->group_of[consumer];
    return t->first_group[e] +
           (grouped_by_consumer(t, edge) ? consumer : topology_producers(t, e, consumer).first);
}

struct range topology_group_producers(const struct topology *t, uint32_t e, uint32_t group)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t number = group - t->first_group[e];

    if (t->wirings[e])
        return t->wirings[e]->groups[number].producers;
    if (topology_all_to_all(t, e) || grouped_by_consumer(t, edge))
        return topology_producers(t, e, number);
    return (struct range){number, number + 1};
}

struct range topology_group_consumers(const struct topology *t, uint32_t e, uint32_t group)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t number = group - t->first_group[e];

    if (t->wirings[e])
        return t->wirings[e]->groups[number].consumers;
    if (topology_all_to_all(t, e) || !grouped_by_consumer(t, edge))
        return topology_consumers(t, e, number);
    return (struct range){number, number + 1};
}

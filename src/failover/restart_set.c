/* restart_set.c - see restart_set.h */
#include "failover/restart_set.h"

#include <errno.h>
#include <string.h>

#include "util/vec.h"

struct query {
    restart_available *available;
    const void *ctx;
};

int restart_search_add(struct restart_search *s)
{
    size_t cap;

    if (s->regions->n <= s->cap)
        return 0;
    cap = vec_grown(s->cap, s->regions->n);
    if (!array_grow(s->alloc, &s->region_marks, s->cap, cap, sizeof *s->region_marks) ||
        !array_grow(s->alloc, &s->found, s->cap, cap, sizeof *s->found))
        return -ENOMEM;
    s->cap = cap;
    return 0;
}

int restart_search_init(struct restart_search *s, const struct topology *t, const struct regions *r,
                        const struct pliant_alloc *a)
{
    size_t edges = t->job->n_edges + 1;

    *s = (struct restart_search){.topology = t, .regions = r, .alloc = a};
    s->edge_in_marks = mem_zero(a, edges, sizeof *s->edge_in_marks);
    s->edge_out_marks = mem_zero(a, edges, sizeof *s->edge_out_marks);
    if (s->edge_in_marks && s->edge_out_marks && restart_search_add(s) == 0)
        return 0;
    restart_search_free(s);
    return -ENOMEM;
}

void restart_search_free(struct restart_search *s)
{
    mem_free(s->alloc, s->region_marks);
    mem_free(s->alloc, s->edge_in_marks);
    mem_free(s->alloc, s->edge_out_marks);
    mem_free(s->alloc, s->found);
    *s = (struct restart_search){0};
}

/* False: this call has been here. */
static bool mark(const struct restart_search *s, uint32_t *at)
{
    bool first = *at != s->call;

    *at = s->call;
    return first;
}

static void involve(struct restart_search *s, uint32_t task)
{
    uint32_t region = s->regions->of_task[task];

    if (mark(s, &s->region_marks[region]))
        s->found[s->n_found++] = region;
}

static bool looked_at(const struct restart_search *s, uint32_t edge, uint32_t *marks)
{
    return topology_all_to_all(s->topology, edge) && !mark(s, &marks[edge]);
}

/* Who made what this task must read again and can't? A pipelined input comes from its region. */
static void look_up(struct restart_search *s, uint32_t edge, uint32_t subtask,
                    const struct query *q)
{
    const struct topology *t = s->topology;
    const struct pliant_edge_spec *spec = &t->job->edges[edge];
    struct range producers;

    if (spec->exchange != PLIANT_BLOCKING || looked_at(s, edge, s->edge_in_marks))
        return;
    producers = topology_producers(t, edge, subtask);
    for (uint32_t p = producers.first; p < producers.end; p++) {
        uint32_t producer = t->first_task[spec->from] + p;

        if (!q->available(q->ctx, edge, producer))
            involve(s, producer);
    }
}

static void look_down(struct restart_search *s, uint32_t edge, uint32_t subtask)
{
    const struct topology *t = s->topology;
    const struct pliant_edge_spec *spec = &t->job->edges[edge];
    struct range consumers;

    if (spec->exchange != PLIANT_BLOCKING || looked_at(s, edge, s->edge_out_marks))
        return;
    consumers = topology_consumers(t, edge, subtask);
    for (uint32_t c = consumers.first; c < consumers.end; c++)
        involve(s, t->first_task[spec->to] + c);
}

static void walk(struct restart_search *s, uint32_t task, const struct query *q)
{
    const struct topology *t = s->topology;
    uint32_t vertex = t->vertex_of[task], subtask = task - t->first_task[vertex];

    for (uint32_t i = t->in_first[vertex]; i < t->in_first[vertex + 1]; i++)
        look_up(s, t->in_edges[i], subtask, q);
    for (uint32_t i = t->out_first[vertex]; i < t->out_first[vertex + 1]; i++)
        look_down(s, t->out_edges[i], subtask);
}

/* Marks of earlier calls must not look like this one's. */
static void next_call(struct restart_search *s)
{
    if (++s->call != 0)
        return;
    memset(s->region_marks, 0, s->regions->n * sizeof *s->region_marks);
    memset(s->edge_in_marks, 0, s->topology->job->n_edges * sizeof *s->edge_in_marks);
    memset(s->edge_out_marks, 0, s->topology->job->n_edges * sizeof *s->edge_out_marks);
    s->call = 1;
}

void restart_search_begin(struct restart_search *s)
{
    next_call(s);
    s->n_found = 0;
}

void restart_search_go_on(struct restart_search *s, uint32_t failed_task,
                          restart_available *available, const void *ctx)
{
    const struct regions *r = s->regions;
    struct query query = {available, ctx};
    uint32_t next = s->n_found;

    for (involve(s, failed_task); next < s->n_found; next++)
        for (uint32_t i = r->first[s->found[next]]; i < r->first[s->found[next] + 1]; i++)
            walk(s, r->members[i], &query);
}

void restart_search(struct restart_search *s, uint32_t failed_task, restart_available *available,
                    const void *ctx)
{
    restart_search_begin(s);
    restart_search_go_on(s, failed_task, available, ctx);
}

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
    return array_reserve(r->alloc, &r->held, &r->cap_tasks, topology_tasks(r->topology),
                         sizeof *r->held) &&
           array_reserve(r->alloc, &r->tracked, &r->cap_partitions, r->n_partitions,
                         sizeof *r->tracked);
}

int results_add(struct results *r, uint32_t vertex)
{
    number_partitions(r, vertex);
    return make_room(r) ? 0 : -ENOMEM;
}

int results_init(struct results *r, const struct topology *t, bool outlive,
                 const struct pliant_alloc *a)
{
    int rc;

    *r = (struct results){.topology = t, .alloc = a, .outlive = outlive};
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
    mem_free(r->alloc, r->held);
    mem_free(r->alloc, r->first_on);
    *r = (struct results){0};
}

/* ---- what a task wrote ------------------------------------------------------------------ */

/* Blocking edges, of those that leave its vertex. */
static bool writes(const struct results *r, uint32_t edge)
{
    return r->topology->job->edges[edge].exchange == PLIANT_BLOCKING;
}

static uint32_t subtask_of(const struct topology *t, uint32_t task)
{
    return task - t->first_task[t->vertex_of[task]];
}

static void mark(struct results *r, uint32_t task, bool tracked)
{
    const struct topology *t = r->topology;
    uint32_t vertex = t->vertex_of[task], subtask = subtask_of(t, task);

    for (uint32_t i = t->out_first[vertex]; i < t->out_first[vertex + 1]; i++)
        if (writes(r, t->out_edges[i]))
            r->tracked[r->first_partition[t->out_edges[i]] + subtask] = tracked;
}

static uint32_t count_of(const struct results *r, uint32_t task)
{
    const struct topology *t = r->topology;
    uint32_t vertex = t->vertex_of[task], subtask = subtask_of(t, task), n = 0;

    for (uint32_t i = t->out_first[vertex]; i < t->out_first[vertex + 1]; i++)
        n += results_tracked(r, t->out_edges[i], subtask);
    return n;
}

/* ---- what is on a node ------------------------------------------------------------------ */

static void take_off(struct results *r, uint32_t task)
{
    struct held *held = &r->held[task];

    if (held->node == 0)
        return;
    if (held->before != 0)
        r->held[held->before - 1].after = held->after;
    else
        r->first_on[held->node - 1] = held->after;
    if (held->after != 0)
        r->held[held->after - 1].before = held->before;
    *held = (struct held){0};
}

int results_put(struct results *r, uint32_t task, uint32_t node)
{
    uint32_t first;

    take_off(r, task);
    if (!array_reserve(r->alloc, &r->first_on, &r->cap_nodes, (size_t)node + 1,
                       sizeof *r->first_on))
        return -ENOMEM;
    first = r->first_on[node];
    if (first != 0)
        r->held[first - 1].before = task + 1;
    r->held[task] = (struct held){.node = node + 1, .after = first};
    r->first_on[node] = task + 1;
    return 0;
}

/* Of a node that nothing was ever put on there is no list. */
static uint32_t first_on(const struct results *r, uint32_t node)
{
    return node < r->cap_nodes ? r->first_on[node] : 0;
}

size_t results_count_on(const struct results *r, uint32_t node)
{
    size_t n = 0;

    for (uint32_t at = first_on(r, node); at != 0; at = r->held[at - 1].after)
        n += count_of(r, at - 1);
    return n;
}

void results_list_on(const struct results *r, uint32_t node, struct sort_item *items, size_t n)
{
    const struct topology *t = r->topology;
    size_t k = 0;

    for (uint32_t at = first_on(r, node); at != 0; at = r->held[at - 1].after) {
        uint32_t task = at - 1, vertex = t->vertex_of[task], subtask = subtask_of(t, task);

        for (uint32_t i = t->out_first[vertex]; i < t->out_first[vertex + 1]; i++)
            if (results_tracked(r, t->out_edges[i], subtask))
                items[k++] = (struct sort_item){t->out_edges[i], subtask, task};
    }
    sort_items(items, items + n, n);
}

bool results_listed(const struct results *r)
{
    size_t n_held = 0, n_listed = 0;

    for (uint32_t task = 0; task < topology_tasks(r->topology); task++) {
        if ((r->held[task].node != 0) != (!r->outlive && count_of(r, task) > 0))
            return false;
        n_held += r->held[task].node != 0;
    }
    for (uint32_t node = 0; node < r->cap_nodes; node++)
        for (uint32_t at = r->first_on[node]; at != 0; at = r->held[at - 1].after, n_listed++)
            if (r->held[at - 1].node != node + 1)
                return false;
    return n_held == n_listed;
}

/* ---- coming and going ------------------------------------------------------------------- */

int results_begin(struct results *r, uint32_t task, uint32_t node)
{
    mark(r, task, true);
    return !r->outlive && count_of(r, task) > 0 ? results_put(r, task, node) : 0;
}

void results_forget(struct results *r, uint32_t edge, uint32_t producer)
{
    uint32_t task = r->topology->first_task[r->topology->job->edges[edge].from] + producer;

    r->tracked[r->first_partition[edge] + producer] = false;
    if (count_of(r, task) == 0)
        take_off(r, task);
}

void results_forget_task(struct results *r, uint32_t task)
{
    mark(r, task, false);
    take_off(r, task);
}

/* inputs.c - see inputs.h */
#include "graph/inputs.h"

#include <errno.h>

#include "util/vec.h"

typedef void on_region(void *ctx, uint32_t region);

static bool blocking(const struct topology *t, uint32_t edge)
{
    return t->job->edges[edge].exchange == PLIANT_BLOCKING;
}

/* Does this consumer read something of the edge's group from outside its region? Of an all-to-all
 * edge either all tasks are in one region or no consumer is in a producer's [1.3]; a pointwise
 * group has one consumer, or one producer, or its tasks are regions of their own. */
static bool reads_outside(const struct inputs *in, uint32_t edge, uint32_t consumer)
{
    const struct topology *t = in->topology;
    const struct pliant_edge_spec *spec = &t->job->edges[edge];
    uint32_t region = in->regions->of_task[t->first_task[spec->to] + consumer];
    struct range p = topology_producers(t, edge, consumer);

    if (topology_all_to_all(t, edge))
        p.end = p.first + 1;
    for (; p.first < p.end; p.first++)
        if (in->regions->of_task[t->first_task[spec->from] + p.first] != region)
            return true;
    return false;
}

/* Is this producer one that the readers of the group wait for? */
static bool counts(const struct inputs *in, uint32_t edge, uint32_t group, uint32_t producer)
{
    const struct topology *t = in->topology;
    const struct pliant_edge_spec *spec = &t->job->edges[edge];
    struct range c = topology_group_consumers(t, edge, group);
    uint32_t region = in->regions->of_task[t->first_task[spec->from] + producer];

    if (topology_all_to_all(t, edge) || c.end - c.first > 1)
        return true; /* readers inside are left out one by one */
    return in->regions->of_task[t->first_task[spec->to] + c.first] != region;
}

struct news {
    on_region *tell;
    void *ctx;
    bool open;
};

/* The group was closed by its last producer, or opened by its first. */
static void tell_readers(struct inputs *in, uint32_t edge, uint32_t group, const struct news *news)
{
    const struct topology *t = in->topology;
    struct range c = topology_group_consumers(t, edge, group);

    for (; c.first < c.end; c.first++) {
        uint32_t task = t->first_task[t->job->edges[edge].to] + c.first;
        uint32_t region = in->regions->of_task[task];

        if (!reads_outside(in, edge, c.first))
            continue;
        if (news->open) {
            if (in->open_reads[region]++ == 0)
                news->tell(news->ctx, region);
        } else if (--in->open_reads[region] == 0) {
            news->tell(news->ctx, region);
        }
    }
}

/* The group of an edge that a producer writes to: the one that its consumers read. */
static void change_edge(struct inputs *in, uint32_t edge, uint32_t producer,
                        const struct news *news)
{
    const struct topology *t = in->topology;
    uint32_t group;

    if (!blocking(t, edge) || !topology_wired(t, edge))
        return;
    group = topology_group_read(t, edge, topology_consumers(t, edge, producer).first);
    if (!counts(in, edge, group, producer))
        return;
    if (news->open) {
        if (in->open_producers[group]++ == 0)
            tell_readers(in, edge, group, news);
    } else if (--in->open_producers[group] == 0) {
        tell_readers(in, edge, group, news);
    }
}

static void change_producer(struct inputs *in, uint32_t task, const struct news *news)
{
    const struct topology *t = in->topology;
    uint32_t vertex = t->vertex_of[task];

    for (uint32_t i = t->out_first[vertex]; i < t->out_first[vertex + 1]; i++)
        change_edge(in, t->out_edges[i], task - t->first_task[vertex], news);
}

static void tell_nobody(void *ctx, uint32_t region)
{
    (void)ctx, (void)region;
}

static bool make_room(struct inputs *in)
{
    const struct topology *t = in->topology;

    return array_reserve(in->alloc, &in->finished, &in->cap_tasks, topology_tasks(t),
                         sizeof *in->finished) &&
           array_reserve(in->alloc, &in->open_producers, &in->cap_groups, t->n_groups,
                         sizeof *in->open_producers) &&
           array_reserve(in->alloc, &in->open_reads, &in->cap_regions, in->regions->n,
                         sizeof *in->open_reads);
}

static void open_edge(struct inputs *in, uint32_t edge)
{
    const struct topology *t = in->topology;
    const struct pliant_edge_spec *spec = &t->job->edges[edge];

    for (uint32_t p = 0; p < topology_parallelism(t, spec->from); p++)
        if (!in->finished[t->first_task[spec->from] + p])
            change_edge(in, edge, p, &(struct news){tell_nobody, NULL, true});
}

int inputs_add(struct inputs *in, uint32_t vertex)
{
    const struct topology *t = in->topology;

    if (!make_room(in))
        return -ENOMEM;
    for (uint32_t i = t->in_first[vertex]; i < t->in_first[vertex + 1]; i++)
        if (blocking(t, t->in_edges[i]))
            open_edge(in, t->in_edges[i]);
    return 0;
}

int inputs_init(struct inputs *in, const struct topology *t, const struct regions *r,
                const struct pliant_alloc *a)
{
    *in = (struct inputs){.topology = t, .regions = r, .alloc = a};
    for (uint32_t v = 0; v < t->job->n_vertices; v++)
        if (inputs_add(in, v) < 0) {
            inputs_free(in);
            return -ENOMEM;
        }
    return 0;
}

void inputs_free(struct inputs *in)
{
    mem_free(in->alloc, in->finished);
    mem_free(in->alloc, in->open_producers);
    mem_free(in->alloc, in->open_reads);
    *in = (struct inputs){0};
}

void inputs_finished(struct inputs *in, uint32_t task, on_region *ready, void *ctx)
{
    if (in->finished[task])
        return;
    in->finished[task] = true;
    change_producer(in, task, &(struct news){ready, ctx, false});
}

void inputs_unfinished(struct inputs *in, uint32_t task, on_region *waits, void *ctx)
{
    if (!in->finished[task])
        return;
    in->finished[task] = false;
    change_producer(in, task, &(struct news){waits, ctx, true});
}

/* reads.c - the public functions that say what a task reads and writes for blocking edges
 *
 * By the default way each partition has a subpartition for each consumer that reads it; so consumer
 * k of c reads subpartition k modulo c [5.6]. By the batch way the vertex's plan says it [5.10].
 */
#include "states/sched.h"

/* A blocking edge of a job that has tasks. */
static bool has_partitions(const struct pliant_sched *s, size_t edge)
{
    return s->scheduling.on && edge < s->job->n_edges &&
           s->job->edges[edge].exchange == PLIANT_BLOCKING;
}

uint32_t pliant_subpartitions(const struct pliant_sched *s, size_t edge, uint32_t producer)
{
    const struct topology *t = &s->regional.topology;
    struct range c;

    if (!has_partitions(s, edge) || producer >= topology_parallelism(t, s->job->edges[edge].from))
        return 0;
    if (s->way->decides)
        return batching_subpartitions(s, (uint32_t)edge);
    c = topology_consumers(t, (uint32_t)edge, producer);
    return c.end - c.first;
}

static struct pliant_read equal_share(const struct pliant_sched *s, size_t edge, uint32_t subtask)
{
    struct range p = topology_producers(&s->regional.topology, (uint32_t)edge, subtask);
    uint32_t sub = subtask % pliant_subpartitions(s, edge, p.first);

    return (struct pliant_read){p.first, p.end - 1, sub, sub};
}

size_t pliant_reads(const struct pliant_sched *s, size_t edge, uint32_t subtask,
                    struct pliant_read *ret, size_t n)
{
    const struct batch_range *ranges;
    size_t found;

    if (!has_partitions(s, edge) ||
        subtask >= topology_parallelism(&s->regional.topology, s->job->edges[edge].to))
        return 0;
    if (!s->way->decides) {
        if (n > 0)
            *ret = equal_share(s, edge, subtask);
        return 1;
    }
    ranges = batching_reads(s, (uint32_t)edge, subtask, &found);
    for (size_t i = 0; i < n && i < found; i++)
        ret[i] = (struct pliant_read){ranges[i].p0, ranges[i].p1, ranges[i].s0, ranges[i].s1};
    return found;
}

/* reads.c - the public functions that say what a task reads and writes for blocking edges
 *
 * Each partition has a subpartition for each consumer that reads it; so consumer k of c reads
 * subpartition k modulo c [5.6].
 */
#include "states/sched.h"

/* A blocking edge of a job that has its tasks. */
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
    c = topology_consumers(t, (uint32_t)edge, producer);
    return c.end - c.first;
}

size_t pliant_reads(const struct pliant_sched *s, size_t edge, uint32_t subtask,
                    struct pliant_read *ret, size_t n)
{
    const struct topology *t = &s->regional.topology;
    struct range p;
    uint32_t sub;

    if (!has_partitions(s, edge) || subtask >= topology_parallelism(t, s->job->edges[edge].to))
        return 0;
    p = topology_producers(t, (uint32_t)edge, subtask);
    sub = subtask % pliant_subpartitions(s, edge, p.first);
    if (n > 0)
        *ret = (struct pliant_read){p.first, p.end - 1, sub, sub};
    return 1;
}

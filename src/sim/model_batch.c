/* model_batch.c - see model_batch.h */
#include "sim/model_batch.h"

#include <errno.h>

#include "graph/job.h"
#include "util/alloc.h"

int model_batch_init(struct model_batch *b, const struct pliant_job *job,
                     const struct pliant_config *cfg)
{
    *b = (struct model_batch){.on = true, .job = job, .cfg = cfg};
    b->vertices = mem_zero(NULL, job->n_vertices, sizeof *b->vertices);
    b->edges = mem_zero(NULL, job->n_edges + 1, sizeof *b->edges);
    return b->vertices && b->edges ? 0 : -ENOMEM;
}

void model_batch_free(struct model_batch *b)
{
    if (!b->on)
        return;
    for (uint32_t v = 0; b->vertices && v < b->job->n_vertices; v++)
        mem_free(NULL, b->vertices[v].tasks);
    for (size_t e = 0; b->edges && e < b->job->n_edges; e++) {
        mem_free(NULL, b->edges[e].made);
        mem_free(NULL, b->edges[e].bytes);
        mem_free(NULL, b->edges[e].first);
        vec_free(NULL, &b->edges[e].reads);
    }
    mem_free(NULL, b->vertices);
    mem_free(NULL, b->edges);
    *b = (struct model_batch){0};
}

/* ---- what the rules say of a vertex --------------------------------------------------------- */

static bool is_fixed(const struct model_batch *b, uint32_t v)
{
    return b->job->vertices[v].fixed || !b->cfg->batch.auto_parallelism;
}

static uint32_t most_of(const struct model_batch *b, uint32_t v)
{
    const struct job_vertex *vertex = &b->job->vertices[v];
    uint32_t most = vertex->has_max ? vertex->max_parallelism : (uint32_t)b->cfg->batch.max;

    return vertex->parallelism > most ? vertex->parallelism : most;
}

static bool broadcasts(const struct pliant_edge_spec *edge)
{
    return edge->partitioner == PLIANT_PARTITIONER_BROADCAST;
}

uint32_t model_batch_subpartitions(const struct model_batch *b, size_t edge)
{
    const struct pliant_edge_spec *spec = &b->job->edges[edge];
    uint32_t n = b->vertices[spec->from].n;
    uint32_t readers =
        is_fixed(b, spec->to) ? b->job->vertices[spec->to].parallelism : most_of(b, spec->to);

    if (n == 0)
        return 0;
    if (broadcasts(spec) || spec->partitioner == PLIANT_PARTITIONER_FORWARD)
        return 1;
    return spec->pattern == PLIANT_ALL_TO_ALL ? readers : (readers + n - 1) / n;
}

static bool reads_something(const struct model_batch *b, uint32_t v)
{
    for (size_t e = 0; e < b->job->n_edges; e++)
        if (b->job->edges[e].to == v)
            return true;
    return false;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* [5.4], steps 1 and 2. */
static bool within_bounds(const struct model_batch *b, uint32_t v, uint32_t n)
{
    int64_t most = most_of(b, v), min = b->job->vertices[v].min_parallelism;
    int64_t source =
        b->cfg->batch.default_source > 0 ? b->cfg->batch.default_source : b->cfg->batch.max;

    if (is_fixed(b, v))
        return n == b->job->vertices[v].parallelism;
    if (!reads_something(b, v))
        return n == smaller(source, most);
    min = smaller(min > b->cfg->batch.min ? min : b->cfg->batch.min, most);
    return n >= min && n <= smaller(b->cfg->batch.max, most);
}

/* ---- a vertex has tasks now ----------------------------------------------------------------- */

static bool all_finished(const struct model_batch *b, uint32_t v)
{
    for (uint32_t i = 0; i < b->vertices[v].n; i++)
        if (!b->vertices[v].tasks[i].finished)
            return false;
    return b->vertices[v].n > 0;
}

static bool take_reads(struct model_batch_edge *edge, const struct pliant_sched *sched, size_t e,
                       uint32_t n_consumers)
{
    edge->first = mem_zero(NULL, (size_t)n_consumers + 1, sizeof *edge->first);
    for (uint32_t i = 0; edge->first && i < n_consumers; i++) {
        size_t n = pliant_reads(sched, e, i, NULL, 0);

        if (!vec_reserve(NULL, &edge->reads, edge->reads.n + n))
            return false;
        pliant_reads(sched, e, i, edge->reads.v + edge->reads.n, n);
        edge->reads.n += n;
        edge->first[i + 1] = (uint32_t)edge->reads.n;
    }
    return edge->first;
}

/* How often each subpartition of each partition is read, times[partition][subpartition]. */
static const char *count_reads(const struct model_batch_edge *edge, uint32_t *times)
{
    for (size_t i = 0; i < edge->reads.n; i++) {
        const struct pliant_read *r = &edge->reads.v[i];

        if (r->p0 > r->p1 || r->s0 > r->s1 || r->p1 >= edge->n_partitions ||
            r->s1 >= edge->n_subpartitions)
            return "a task reads what there is";
        for (uint32_t p = r->p0; p <= r->p1; p++)
            for (uint32_t s = r->s0; s <= r->s1; s++)
                times[(size_t)p * edge->n_subpartitions + s]++;
    }
    return NULL;
}

static const char *judge_reads(const struct model_batch_edge *edge, const uint32_t *times,
                               uint32_t least, uint32_t most)
{
    for (size_t i = 0; i < (size_t)edge->n_partitions * edge->n_subpartitions; i++)
        if (times[i] < least || times[i] > most)
            return times[i] < least ? "all that was written is read"
                                    : "what was written is read once";
    return NULL;
}

static bool joins_a_split_side(const struct model_batch *b, uint32_t v)
{
    for (size_t e = 0; e < b->job->n_edges; e++)
        if (b->job->edges[e].to == v && b->job->edges[e].splittable)
            return true;
    return false;
}

static const char *take_input(struct model_batch *b, size_t e, const struct pliant_sched *sched)
{
    const struct pliant_edge_spec *spec = &b->job->edges[e];
    struct model_batch_edge *edge = &b->edges[e];
    uint32_t n = b->vertices[spec->to].n, *times;
    const char *rule;

    if (!all_finished(b, spec->from))
        return "a vertex is decided when its producers have finished";
    if (pliant_subpartitions(sched, e, 0) != edge->n_subpartitions)
        return "subpartitions follow from the bounds of who reads them";
    times = mem_zero(NULL, (size_t)edge->n_partitions * edge->n_subpartitions + 1, sizeof *times);
    if (!times || !take_reads(edge, sched, e, n))
        rule = "no memory";
    else
        rule = count_reads(edge, times);
    if (!rule)
        rule = judge_reads(edge, times, broadcasts(spec) ? n : 1,
                           broadcasts(spec) || joins_a_split_side(b, spec->to) ? n : 1);
    mem_free(NULL, times);
    return rule;
}

static const char *take_output(struct model_batch *b, size_t e)
{
    struct model_batch_edge *edge = &b->edges[e];

    edge->n_partitions = b->vertices[b->job->edges[e].from].n;
    edge->n_subpartitions = model_batch_subpartitions(b, e);
    edge->made = mem_zero(NULL, edge->n_partitions, sizeof *edge->made);
    edge->bytes = mem_zero(NULL, edge->n_partitions, sizeof *edge->bytes);
    return edge->made && edge->bytes ? NULL : "no memory";
}

/* If the vertex is new. */
static const char *take_vertex(struct model_batch *b, uint32_t v, const struct pliant_sched *sched)
{
    struct model_batch_vertex *vertex = &b->vertices[v];
    uint32_t n = pliant_parallelism(sched, (pliant_vertex_id){v + 1});
    const char *rule = NULL;

    if (n == vertex->n)
        return NULL;
    if (vertex->n > 0)
        return "a vertex is decided once";
    if (!within_bounds(b, v, n))
        return "parallelism is within its bounds";
    vertex->n = n;
    vertex->tasks = mem_zero(NULL, n, sizeof *vertex->tasks);
    if (!vertex->tasks)
        return "no memory";
    for (size_t e = 0; !rule && e < b->job->n_edges; e++)
        if (b->job->edges[e].to == v)
            rule = take_input(b, e, sched);
        else if (b->job->edges[e].from == v)
            rule = take_output(b, e);
    return rule;
}

const char *model_batch_decided(struct model_batch *b, const struct pliant_action *act,
                                const struct pliant_sched *sched)
{
    uint32_t v = act->decided.vertex.v - 1;
    uint64_t bytes = 0;
    const char *rule;

    if (!b->on || v >= b->job->n_vertices || b->vertices[v].told)
        return "a vertex is decided once";
    b->vertices[v].told = true;
    if (pliant_state(sched) == PLIANT_FINISHED)
        return NULL; /* the job has ended in this very step, nothing can be asked any more */
    rule = take_vertex(b, v, sched);
    if (rule)
        return rule;
    for (size_t e = 0; e < b->job->n_edges; e++)
        for (uint32_t p = 0; b->job->edges[e].to == v && p < b->edges[e].n_partitions; p++)
            bytes += b->edges[e].bytes[p];
    if (act->decided.bytes != bytes)
        return "a vertex is decided by what was written";
    return act->decided.parallelism == b->vertices[v].n ? NULL : "a vertex is decided once";
}

const char *model_batch_step_over(struct model_batch *b, const struct pliant_sched *sched)
{
    const char *rule = NULL;

    if (!b->on || pliant_state(sched) == PLIANT_FINISHED)
        return NULL;
    for (uint32_t v = 0; !rule && v < b->job->n_vertices; v++) {
        rule = take_vertex(b, v, sched);
        if (!rule && b->vertices[v].told != (b->vertices[v].n > 0))
            rule = "a decision is told";
    }
    return rule;
}

/* ---- tasks ---------------------------------------------------------------------------------- */

static bool reads_partition(const struct model_batch_edge *edge, uint32_t consumer, uint32_t p)
{
    for (uint32_t i = edge->first[consumer]; i < edge->first[consumer + 1]; i++)
        if (edge->reads.v[i].p0 <= p && p <= edge->reads.v[i].p1)
            return true;
    return false;
}

/* Everything, of an edge that joins everybody with everybody: a part of it may be empty. */
static bool readable(const struct model_batch *b, uint32_t v, uint32_t consumer)
{
    for (size_t e = 0; e < b->job->n_edges; e++) {
        const struct pliant_edge_spec *spec = &b->job->edges[e];
        const struct model_batch_edge *edge = &b->edges[e];

        for (uint32_t p = 0; spec->to == v && p < edge->n_partitions; p++)
            if ((spec->pattern == PLIANT_ALL_TO_ALL || reads_partition(edge, consumer, p)) &&
                !(edge->made[p] && b->vertices[spec->from].tasks[p].finished))
                return false;
    }
    return true;
}

/* Was any of them there? */
static bool set_results(struct model_batch *b, uint32_t v, uint32_t subtask, bool made)
{
    bool any = false;

    for (size_t e = 0; e < b->job->n_edges; e++) {
        if (b->job->edges[e].from != v)
            continue;
        any |= b->edges[e].made[subtask];
        b->edges[e].made[subtask] = made;
    }
    return any;
}

const char *model_batch_start(struct model_batch *b, const struct pliant_task *id,
                              const struct pliant_sched *sched)
{
    uint32_t v = id->vertex.v - 1;
    struct model_batch_task *task;
    const char *rule;

    if (!b->on)
        return NULL;
    rule = take_vertex(b, v, sched);
    if (rule)
        return rule;
    if (id->subtask >= b->vertices[v].n)
        return "a task starts once its vertex is decided";
    task = &b->vertices[v].tasks[id->subtask];
    if (task->live > 0)
        return "a task starts when none of its attempts lives";
    if (!readable(b, v, id->subtask))
        return "a task starts when all that it reads is there";
    task->live++;
    task->seen = b->causes;
    task->finished = false;
    return set_results(b, v, id->subtask, false)
               ? "what a task made is released before it starts anew"
               : NULL;
}

const char *model_batch_beside(struct model_batch *b, const struct pliant_task *id)
{
    if (!b->on)
        return NULL;
    if (!readable(b, id->vertex.v - 1, id->subtask))
        return "a task starts when all that it reads is there";
    b->vertices[id->vertex.v - 1].tasks[id->subtask].live++;
    return NULL;
}

bool model_batch_finished(const struct model_batch *b, uint32_t v, uint32_t subtask)
{
    return b->on && b->vertices[v].tasks[subtask].finished;
}

const char *model_batch_cancel(const struct model_batch *b, const struct pliant_task *id)
{
    if (!b->on || b->vertices[id->vertex.v - 1].tasks[id->subtask].seen != b->causes)
        return NULL;
    return "a task restarts for something that happened since it started";
}

const char *model_batch_release(struct model_batch *b, const struct pliant_action *act)
{
    const struct pliant_task *producer = &act->result.producer;
    struct model_batch_edge *edge;
    uint32_t to;

    if (!b->on)
        return NULL;
    if (act->result.edge >= b->job->n_edges ||
        b->job->edges[act->result.edge].from != producer->vertex.v - 1)
        return "a result that is there is released once";
    edge = &b->edges[act->result.edge];
    to = b->job->edges[act->result.edge].to;
    if (producer->subtask >= edge->n_partitions || !edge->made[producer->subtask])
        return "a result that is there is released once";
    edge->made[producer->subtask] = false;
    for (uint32_t i = 0; i < b->vertices[to].n; i++)
        if (b->vertices[to].tasks[i].live > 0 && !b->vertices[to].tasks[i].finished &&
            reads_partition(edge, i, producer->subtask))
            return "nobody reads a result that is released";
    return NULL;
}

/* ---- what they write ------------------------------------------------------------------------ */

static bool output_fits(const struct model_batch *b, uint32_t v, const struct pliant_event *ev,
                        size_t i)
{
    const struct pliant_output *o = &ev->finished.outputs[i];
    uint64_t sum = 0;

    if (o->edge >= b->job->n_edges || b->job->edges[o->edge].from != v ||
        o->n != b->edges[o->edge].n_subpartitions)
        return false;
    for (size_t k = 0; k < i; k++)
        if (ev->finished.outputs[k].edge == o->edge)
            return false;
    for (uint32_t s = 0; s < o->n; s++) {
        if (o->bytes[s] > PLIANT_BYTES_MAX)
            return false;
        sum += o->bytes[s]; /* of a few times 2^53 */
    }
    return sum <= PLIANT_BYTES_MAX;
}

/* All of them, or as if nothing had been said. */
static void take_outputs(struct model_batch *b, uint32_t v, uint32_t subtask,
                         const struct pliant_event *ev)
{
    bool fit = true;

    for (size_t e = 0; e < b->job->n_edges; e++)
        if (b->job->edges[e].from == v)
            b->edges[e].bytes[subtask] = 0;
    for (size_t i = 0; i < ev->finished.n_outputs; i++)
        fit = fit && output_fits(b, v, ev, i);
    for (size_t i = 0; fit && i < ev->finished.n_outputs; i++) {
        const struct pliant_output *o = &ev->finished.outputs[i];

        for (uint32_t s = 0; s < o->n; s++)
            b->edges[o->edge].bytes[subtask] += o->bytes[s];
    }
}

void model_batch_over(struct model_batch *b, uint32_t v, uint32_t subtask, uint32_t life,
                      const struct pliant_event *finished)
{
    struct model_batch_task *task;

    if (!b->on)
        return;
    task = &b->vertices[v].tasks[subtask];
    task->live--;
    if (!finished || task->finished)
        return;
    task->finished = true;
    task->life = life;
    set_results(b, v, subtask, true);
    take_outputs(b, v, subtask, finished);
}

bool model_batch_node_left(struct model_batch *b, uint32_t life)
{
    bool any = false;

    for (uint32_t v = 0; b->on && v < b->job->n_vertices; v++)
        for (uint32_t i = 0; i < b->vertices[v].n; i++)
            if (b->vertices[v].tasks[i].finished && b->vertices[v].tasks[i].life == life)
                any |= set_results(b, v, i, false);
    return any;
}

void model_batch_cause(struct model_batch *b)
{
    b->causes++;
}

/* ---- figures -------------------------------------------------------------------------------- */

uint32_t model_batch_tasks(const struct model_batch *b, uint32_t *ret_finished)
{
    uint32_t n = 0;

    *ret_finished = 0;
    for (uint32_t v = 0; v < b->job->n_vertices; v++) {
        n += b->vertices[v].n;
        for (uint32_t i = 0; i < b->vertices[v].n; i++)
            *ret_finished += b->vertices[v].tasks[i].finished;
    }
    return n;
}

bool model_batch_waits(const struct model_batch *b)
{
    for (uint32_t v = 0; b->on && v < b->job->n_vertices; v++) {
        if (b->vertices[v].n == 0)
            return true;
        for (uint32_t i = 0; i < b->vertices[v].n; i++)
            if (b->vertices[v].tasks[i].live == 0)
                return true;
    }
    return false;
}

/* batching.c - see batching.h */
#include "states/batching.h"

#include <errno.h>
#include <stdio.h>

#include "states/sched.h"

/* Bytes that all consumers that are not decided yet may have before them: sums over several inputs
 * stay within an int64_t. */
#define TOTAL_MAX (INT64_C(1) << 60)

/* ---- life ------------------------------------------------------------------------------- */

void batching_init(struct batching *b, const struct pliant_alloc *a)
{
    *b = (struct batching){.alloc = a};
}

static void forget_graph(struct batching *b)
{
    for (uint32_t v = 0; b->vertices && v < b->n_vertices; v++) {
        batch_plan_free(&b->vertices[v].plan, b->alloc);
        mem_free(b->alloc, b->vertices[v].input_bytes);
    }
    for (uint32_t e = 0; b->sizes && e < b->n_edges; e++)
        sizes_free(&b->sizes[e]);
    mem_free(b->alloc, b->vertices);
    mem_free(b->alloc, b->sizes);
    b->vertices = NULL;
    b->sizes = NULL;
    b->order.n = b->ready.n = 0;
    b->total = 0;
}

void batching_free(struct batching *b)
{
    forget_graph(b);
    vec_free(b->alloc, &b->order);
    vec_free(b->alloc, &b->ready);
}

void batching_end(struct pliant_sched *s)
{
    forget_graph(&s->batching);
}

void batching_begin(struct pliant_sched *s)
{
    struct batching *b = &s->batching;

    forget_graph(b);
    b->n_vertices = s->job->n_vertices;
    b->n_edges = (uint32_t)s->job->n_edges;
    b->vertices = mem_zero(s->alloc, b->n_vertices, sizeof *b->vertices);
    b->sizes = mem_zero(s->alloc, (size_t)b->n_edges + 1, sizeof *b->sizes);
    if (!b->vertices || !b->sizes) {
        sched_no_memory(s);
        return;
    }
    for (uint32_t e = 0; e < b->n_edges; e++)
        b->vertices[s->job->edges[e].to].missing++;
}

/* ---- what the job says ------------------------------------------------------------------ */

/* Is there nothing to decide? [5.2] */
static bool is_fixed(const struct pliant_sched *s, uint32_t v)
{
    return s->job->vertices[v].fixed || !s->cfg.batch.auto_parallelism;
}

uint32_t batching_max_parallelism(const struct pliant_sched *s, uint32_t v)
{
    const struct job_vertex *vertex = &s->job->vertices[v];
    uint32_t most = vertex->has_max ? vertex->max_parallelism : (uint32_t)s->cfg.batch.max;

    return vertex->parallelism > most ? vertex->parallelism : most;
}

static struct batch_limits limits_of(const struct pliant_sched *s)
{
    return (struct batch_limits){.volume = s->cfg.batch.volume,
                                 .min = s->cfg.batch.min,
                                 .max = s->cfg.batch.max,
                                 .default_source_parallelism = s->cfg.batch.default_source > 0
                                                                   ? s->cfg.batch.default_source
                                                                   : s->cfg.batch.max,
                                 .skew_factor = s->cfg.batch.skew_factor,
                                 .skew_threshold = s->cfg.batch.skew_threshold};
}

static struct batch_vertex vertex_of(const struct pliant_sched *s, uint32_t v)
{
    int64_t max = s->max_parallelism[v], min = s->job->vertices[v].min_parallelism;

    return (struct batch_vertex){.parallelism = -1,
                                 .min = min == 1    ? -1
                                        : min < max ? min
                                                    : max,
                                 .max = max};
}

static bool one_subpartition(const struct pliant_edge_spec *edge)
{
    return edge->partitioner == PLIANT_PARTITIONER_FORWARD ||
           edge->partitioner == PLIANT_PARTITIONER_BROADCAST;
}

uint32_t batching_subpartitions(const struct pliant_sched *s, uint32_t e)
{
    const struct pliant_edge_spec *edge = &s->job->edges[e];
    uint32_t max = s->max_parallelism[edge->to];
    int64_t fixed = is_fixed(s, edge->to) ? (int64_t)s->job->vertices[edge->to].parallelism : -1;

    return batch_subpartitions(edge->pattern, one_subpartition(edge),
                               topology_parallelism(&s->regional.topology, edge->from), fixed, max);
}

/* Without sizes; the defaults of the partitioner [5.3]. */
static struct batch_input input_of(const struct pliant_sched *s, uint32_t e)
{
    const struct pliant_edge_spec *edge = &s->job->edges[e];
    bool pointwise = edge->pattern == PLIANT_POINTWISE;
    bool keyed = !pointwise && edge->partitioner != PLIANT_PARTITIONER_REBALANCE;
    bool broadcast = edge->partitioner == PLIANT_PARTITIONER_BROADCAST;

    return (struct batch_input){
        .pattern = edge->pattern,
        .partitions = topology_parallelism(&s->regional.topology, edge->from),
        .subpartitions = batching_subpartitions(s, e),
        .broadcast = broadcast,
        .single = broadcast,
        .inter = keyed,
        .intra = (keyed || edge->partitioner == PLIANT_PARTITIONER_FORWARD) && !edge->splittable,
        .type = edge->input > 0 ? edge->input : INT64_C(1) << 32 | e};
}

/* ---- what producers wrote --------------------------------------------------------------- */

static bool output_fits(const struct pliant_sched *s, uint32_t v, const struct pliant_output *o)
{
    uint64_t sum = 0;

    if (o->edge >= s->job->n_edges || s->job->edges[o->edge].from != v ||
        o->n != batching_subpartitions(s, o->edge))
        return false;
    for (uint32_t i = 0; i < o->n; i++) {
        if (o->bytes[i] > PLIANT_BYTES_MAX - sum)
            return false;
        sum += o->bytes[i];
    }
    return true;
}

/* By edge that leaves the vertex, in the order of out_edges; false: one does not fit. */
static bool sort_outputs(const struct pliant_sched *s, uint32_t v, const struct pliant_event *ev,
                         const uint64_t **bytes)
{
    const struct topology *t = &s->regional.topology;
    int64_t more = 0;

    for (size_t i = 0; i < ev->finished.n_outputs; i++) {
        const struct pliant_output *o = &ev->finished.outputs[i];
        uint32_t k = t->out_first[v];

        if (!output_fits(s, v, o))
            return false;
        while (t->out_edges[k] != o->edge)
            k++;
        if (bytes[k - t->out_first[v]])
            return false; /* named twice */
        bytes[k - t->out_first[v]] = o->bytes;
        for (uint32_t sub = 0; sub < o->n; sub++)
            more += (int64_t)o->bytes[sub];
        if (more > TOTAL_MAX - s->batching.total)
            return false;
    }
    return true;
}

static void put_outputs(struct pliant_sched *s, struct pliant_task task,
                        const uint64_t *const *bytes)
{
    const struct topology *t = &s->regional.topology;
    uint32_t v = task.vertex.v - 1;

    for (uint32_t k = t->out_first[v]; k < t->out_first[v + 1]; k++) {
        struct sizes *z = &s->batching.sizes[t->out_edges[k]];
        int64_t before = z->total;

        if (z->n_partitions == 0)
            continue; /* its consumer is decided */
        if (sizes_put(z, task.subtask, bytes ? bytes[k - t->out_first[v]] : NULL) < 0)
            sched_no_memory(s);
        s->batching.total += z->total - before;
    }
}

int batching_restore_sizes(struct pliant_sched *s, struct sizes *z, uint32_t partition,
                           const uint8_t *packed, size_t n)
{
    int64_t before = z->total;
    int rc = n > UINT32_MAX ? -EINVAL : sizes_put_packed(z, partition, packed, (uint32_t)n);

    s->batching.total += z->total - before;
    return rc == 0 && s->batching.total > TOTAL_MAX ? -EINVAL : rc;
}

/* What does not fit is as if nothing had been said [5]. */
void batching_wrote(struct pliant_sched *s, const struct pliant_event *ev)
{
    struct pliant_task id = ev->finished.task;
    const struct task *task = execution_current(&s->graph, id);
    const struct topology *t = &s->regional.topology;
    const uint64_t **bytes;

    if (!s->batching.vertices || !task || !task_seated(task))
        return; /* no news at all */
    if (task->rival &&
        s->graph.vertices[id.vertex.v - 1].tasks[id.subtask].state == PLIANT_TASK_FINISHED)
        return; /* another attempt has won [6.3] */
    bytes = outbox_block(s, t->out_first[id.vertex.v] - t->out_first[id.vertex.v - 1] + 1,
                         sizeof(const uint64_t *));
    if (!bytes)
        return;
    if (sort_outputs(s, id.vertex.v - 1, ev, bytes)) {
        put_outputs(s, id, bytes);
    } else {
        put_outputs(s, id, NULL);
        s->events_ignored++;
    }
}

/* ---- which inputs are done -------------------------------------------------------------- */

static void inputs_change(struct pliant_sched *s, uint32_t producer, bool done)
{
    const struct topology *t = &s->regional.topology;

    for (uint32_t k = t->out_first[producer]; k < t->out_first[producer + 1]; k++) {
        uint32_t consumer = s->job->edges[t->out_edges[k]].to, *place;
        struct batching_vertex *vertex = &s->batching.vertices[consumer];

        vertex->missing += done ? UINT32_MAX : 1;
        if (vertex->missing > 0 || vertex->decided)
            continue;
        place = vec_push(s->alloc, &s->batching.ready);
        if (place)
            *place = consumer;
        else
            sched_no_memory(s);
    }
}

void batching_task_done(struct pliant_sched *s, uint32_t v)
{
    if (s->batching.vertices && --s->batching.vertices[v].n_open == 0)
        inputs_change(s, v, true);
}

void batching_task_undone(struct pliant_sched *s, uint32_t v)
{
    if (s->batching.vertices && s->batching.vertices[v].n_open++ == 0)
        inputs_change(s, v, false);
}

/* ---- a decision ------------------------------------------------------------------------- */

/* A vertex to be decided, and what it reads. */
struct question {
    uint32_t v, n;
    struct batch_input *inputs; /* [n], and what they point to, until the next step */
    int64_t bytes;
};

static bool ask(struct pliant_sched *s, uint32_t v, struct question *ret)
{
    const struct topology *t = &s->regional.topology;

    *ret = (struct question){.v = v, .n = t->in_first[v + 1] - t->in_first[v]};
    ret->inputs = outbox_block(s, (size_t)ret->n + 1, sizeof *ret->inputs);
    for (uint32_t k = 0; ret->inputs && k < ret->n; k++) {
        uint32_t e = t->in_edges[t->in_first[v] + k];
        const struct sizes *z = &s->batching.sizes[e];
        struct batch_input in = input_of(s, e);

        ret->bytes += z->total;
        in.sums = z->sums;
        if (batch_needs_matrix(&in)) {
            int64_t *matrix =
                mem_zero(s->alloc, (size_t)in.partitions * in.subpartitions, sizeof *matrix);

            if (matrix)
                sizes_matrix(z, matrix);
            else
                sched_no_memory(s);
            in.bytes = matrix;
        }
        ret->inputs[k] = in;
    }
    return ret->inputs && !s->no_memory;
}

static void forget_question(const struct pliant_sched *s, const struct question *q)
{
    for (uint32_t k = 0; q->inputs && k < q->n; k++)
        mem_free(s->alloc, (void *)(uintptr_t)q->inputs[k].bytes);
}

static int answer(const struct pliant_sched *s, const struct question *q, struct batch_plan *ret)
{
    struct batch_limits limits = limits_of(s);
    struct batch_vertex vertex = vertex_of(s, q->v);

    if (is_fixed(s, q->v))
        return batch_distribute(s->job->vertices[q->v].parallelism, q->inputs, q->n, s->alloc, ret);
    return batch_decide(&limits, &vertex, q->inputs, q->n, s->alloc, ret);
}

static const struct batch_range *reads_of(const struct batch_plan *plan, uint32_t input,
                                          uint32_t task, size_t *ret_n)
{
    const uint32_t *first = &plan->first[(size_t)input * (plan->parallelism + 1) + task];

    *ret_n = first[1] - first[0];
    return &plan->ranges.v[first[0]];
}

/* ---- what each task will read ----------------------------------------------------------- */

/* Sums up to each subpartition, over all partitions. */
static int64_t *running_sums(const struct pliant_sched *s, const struct batch_input *in)
{
    int64_t *sums = mem_zero(s->alloc, (size_t)in->subpartitions + 1, sizeof *sums);

    for (uint32_t i = 0; sums && i < in->subpartitions; i++)
        sums[i + 1] = sums[i] + in->sums[i];
    return sums;
}

static int64_t bytes_in(const struct batch_input *in, const int64_t *sums, struct batch_range r)
{
    int64_t bytes = 0;

    if (!in->bytes || (r.p0 == 0 && r.p1 == in->partitions - 1))
        return sums[r.s1 + 1] - sums[r.s0];
    for (uint32_t p = r.p0; p <= r.p1; p++)
        for (uint32_t i = r.s0; i <= r.s1; i++)
            bytes += in->bytes[(size_t)p * in->subpartitions + i];
    return bytes;
}

static int64_t *measure(struct pliant_sched *s, const struct question *q,
                        const struct batch_plan *plan)
{
    int64_t *bytes = mem_zero(s->alloc, plan->parallelism, sizeof *bytes);

    for (uint32_t task = 0; bytes && q->n == 0 && task < plan->parallelism; task++)
        bytes[task] = -1;
    for (uint32_t k = 0; bytes && k < q->n; k++) {
        int64_t *sums = running_sums(s, &q->inputs[k]);

        for (uint32_t task = 0; sums && task < plan->parallelism; task++) {
            size_t n;
            const struct batch_range *r = reads_of(plan, k, task, &n);

            for (size_t i = 0; i < n; i++)
                bytes[task] += bytes_in(&q->inputs[k], sums, r[i]);
        }
        if (!sums)
            sched_no_memory(s);
        mem_free(s->alloc, sums);
    }
    if (!bytes)
        sched_no_memory(s);
    return bytes;
}

/* Partitions that the tasks read, of a pointwise edge that was cut from data. Equal shares are what
 * follows from the parallelisms anyway. */
static const struct range *producers_of(struct pliant_sched *s, const struct batch_plan *plan,
                                        uint32_t input)
{
    struct range *ranges = outbox_block(s, plan->parallelism, sizeof *ranges);

    for (uint32_t task = 0; ranges && task < plan->parallelism; task++) {
        size_t n;
        const struct batch_range *r = reads_of(plan, input, task, &n);

        if (n == 0)
            continue; /* nothing: then the edge is all-to-all */
        ranges[task] = (struct range){r[0].p0, r[0].p1 + 1};
        for (size_t i = 1; i < n; i++)
            if (r[i].p1 + 1 > ranges[task].end)
                ranges[task].end = r[i].p1 + 1;
    }
    return ranges;
}

static const struct range *const *ranges_of(struct pliant_sched *s, uint32_t v,
                                            const struct batch_plan *plan)
{
    const struct topology *t = &s->regional.topology;
    uint32_t n = t->in_first[v + 1] - t->in_first[v];
    const struct range **ranges;

    if (is_fixed(s, v) || n == 0)
        return NULL;
    ranges = outbox_block(s, n, sizeof(const struct range *));
    for (uint32_t k = 0; ranges && k < n; k++)
        if (s->job->edges[t->in_edges[t->in_first[v] + k]].pattern == PLIANT_POINTWISE)
            ranges[k] = producers_of(s, plan, k);
    return ranges;
}

/* ---- a vertex gets its tasks ------------------------------------------------------------ */

static void begin_sizes(struct pliant_sched *s, uint32_t e, uint32_t partitions)
{
    if (sizes_init(&s->batching.sizes[e], partitions, batching_subpartitions(s, e), s->alloc) < 0)
        sched_no_memory(s);
}

/* The tables; the tasks themselves are another matter. The plan and the bytes are its own now. */
void batching_restore(struct pliant_sched *s, uint32_t v, struct batch_plan plan,
                      int64_t *input_bytes)
{
    const struct topology *t = &s->regional.topology;
    struct batching *b = &s->batching;
    uint32_t *place = vec_push(s->alloc, &b->order);

    b->vertices[v].decided = true;
    b->vertices[v].plan = plan;
    b->vertices[v].input_bytes = input_bytes;
    b->vertices[v].n_open = plan.parallelism;
    if (place)
        *place = v;
    else
        sched_no_memory(s);
    regional_add(s, v, plan.parallelism, ranges_of(s, v, &b->vertices[v].plan));
    if (s->no_memory)
        return;
    scheduling_add(s, v);
    for (uint32_t k = t->in_first[v]; k < t->in_first[v + 1]; k++) {
        b->total -= b->sizes[t->in_edges[k]].total;
        sizes_free(&b->sizes[t->in_edges[k]]);
    }
    for (uint32_t k = t->out_first[v]; k < t->out_first[v + 1] && !s->no_memory; k++)
        begin_sizes(s, t->out_edges[k], plan.parallelism);
}

static void carry_out(struct pliant_sched *s, const struct question *q, struct batch_plan plan)
{
    struct pliant_action *act;
    int64_t *input_bytes = measure(s, q, &plan);

    if (execution_add(&s->graph, q->v, plan.parallelism) < 0)
        sched_no_memory(s);
    if (s->no_memory) {
        mem_free(s->alloc, input_bytes);
        batch_plan_free(&plan, s->alloc);
        return;
    }
    batching_restore(s, q->v, plan, input_bytes);
    act = emit(s, PLIANT_ACT_DECIDED);
    act->decided.vertex.v = q->v + 1;
    act->decided.parallelism = plan.parallelism;
    act->decided.bytes = (uint64_t)q->bytes;
}

static int decide(struct pliant_sched *s, uint32_t v)
{
    struct batch_plan plan = {0};
    struct question q;
    int rc = ask(s, v, &q) ? answer(s, &q, &plan) : 0;

    if (rc == -ENOMEM)
        sched_no_memory(s);
    if (rc == 0 && !s->no_memory)
        carry_out(s, &q, plan);
    forget_question(s, &q);
    return rc == -EINVAL ? rc : 0;
}

void batching_decide_sources(struct pliant_sched *s)
{
    for (uint32_t k = 0; s->batching.vertices && k < s->job->n_vertices && !s->no_memory; k++)
        if (s->batching.vertices[s->job->topological[k]].missing == 0)
            decide(s, s->job->topological[k]); /* it can't fail: there is nothing to contradict */
}

/* ---- what can't be decided -------------------------------------------------------------- */

/* Edges that keep their order by partition must agree on how many there are. */
static bool forwards_differ(const struct pliant_sched *s, uint32_t v)
{
    const struct topology *t = &s->regional.topology;
    uint32_t partitions = 0;

    for (uint32_t k = t->in_first[v]; k < t->in_first[v + 1]; k++) {
        struct batch_input in = input_of(s, t->in_edges[k]);

        if (in.pattern != PLIANT_POINTWISE || !in.intra)
            continue;
        if (partitions > 0 && partitions != in.partitions)
            return true;
        partitions = in.partitions;
    }
    return false;
}

static const char *why_not(const struct pliant_sched *s, uint32_t v)
{
    struct batch_vertex vertex = vertex_of(s, v);

    if (forwards_differ(s, v))
        return "its forward edges come from vertices of different parallelism";
    if (is_fixed(s, v))
        return "an edge that ends there has fewer subpartitions than it has readers";
    if (vertex.min > s->cfg.batch.max)
        return "its min_parallelism is more than "
               "execution.batch.adaptive.auto-parallelism.max-parallelism";
    return "its inputs do not go together: no parallelism is right for all of them";
}

static struct state undecidable(struct pliant_sched *s, uint32_t v)
{
    struct failure failure = {.why = WHY(PLIANT_REASON_GLOBAL_FAILURE)};
    char cause[PLIANT_CAUSE_MAX + 1];

    snprintf(cause, sizeof cause, "the parallelism of vertex \"%s\" cannot be decided: %s",
             s->job->vertices[v].name, why_not(s, v));
    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = PLIANT_REASON_GLOBAL_FAILURE,
                                                    .cause = cause});
    return failure_decide(s, &failure);
}

struct state batching_look(struct pliant_sched *s)
{
    struct batching *b = &s->batching;

    for (size_t i = 0; i < b->ready.n && !s->no_memory; i++) {
        uint32_t v = b->ready.v[i];

        if (b->vertices[v].decided || b->vertices[v].missing > 0)
            continue; /* noted twice, or a producer runs once more */
        if (decide(s, v) < 0) {
            b->ready.n = 0;
            return undecidable(s, v);
        }
        if (!s->no_memory)
            scheduling_ask_vertex(s, v);
    }
    b->ready.n = 0;
    return STAY;
}

const struct batch_range *batching_reads(const struct pliant_sched *s, uint32_t e, uint32_t subtask,
                                         size_t *ret_n)
{
    const struct topology *t = &s->regional.topology;
    uint32_t v = s->job->edges[e].to, k = t->in_first[v];

    while (t->in_edges[k] != e)
        k++;
    return reads_of(&s->batching.vertices[v].plan, k - t->in_first[v], subtask, ret_n);
}

/* ---- invariants ------------------------------------------------------------------------- */

static const char *check_vertex(const struct pliant_sched *s, uint32_t v)
{
    const struct topology *t = &s->regional.topology;
    const struct batching_vertex *vertex = &s->batching.vertices[v];
    uint32_t open = 0, missing = 0;

    if (vertex->decided != (s->graph.parallelism[v] > 0) ||
        topology_parallelism(t, v) != s->graph.parallelism[v])
        return "a vertex has tasks and was not decided, or the opposite";
    if (vertex->decided && vertex->plan.parallelism != s->graph.parallelism[v])
        return "a vertex has another parallelism than was decided";
    for (uint32_t i = 0; i < s->graph.parallelism[v]; i++)
        open += !s->scheduling.inputs.finished[t->first_task[v] + i];
    for (uint32_t k = t->in_first[v]; k < t->in_first[v + 1]; k++) {
        uint32_t from = s->job->edges[t->in_edges[k]].from;

        missing += !s->batching.vertices[from].decided || s->batching.vertices[from].n_open > 0;
    }
    if (open != vertex->n_open || missing != vertex->missing)
        return "producers that are not done are miscounted";
    return !vertex->decided && missing == 0 ? "a vertex can be decided and is not" : NULL;
}

static const char *check_sizes(const struct pliant_sched *s, uint32_t e, int64_t *total)
{
    const struct sizes *z = &s->batching.sizes[e];
    const struct pliant_edge_spec *edge = &s->job->edges[e];
    bool kept = s->batching.vertices[edge->from].decided && !s->batching.vertices[edge->to].decided;
    int64_t sum = 0, by_partition = 0;

    if (kept != (z->n_partitions > 0))
        return "sizes are kept that nobody needs, or the opposite";
    for (uint32_t i = 0; i < z->n_subpartitions; i++)
        sum += z->sums[i];
    for (uint32_t p = 0; p < z->n_partitions; p++)
        by_partition += sizes_of(z, p);
    *total += z->total;
    return sum != z->total || by_partition != z->total ? "sizes are missummed" : NULL;
}

const char *batching_check(const struct pliant_sched *s)
{
    const char *broken = NULL;
    int64_t total = 0;

    if (!s->batching.vertices)
        return s->way->decides ? "nobody decides" : NULL;
    for (uint32_t v = 0; !broken && v < s->job->n_vertices; v++)
        broken = check_vertex(s, v);
    for (uint32_t e = 0; !broken && e < s->job->n_edges; e++)
        broken = check_sizes(s, e, &total);
    if (broken)
        return broken;
    return total != s->batching.total || s->batching.ready.n > 0 ? "sizes are missummed in all"
                                                                 : NULL;
}

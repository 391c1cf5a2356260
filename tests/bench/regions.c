/* regions.c - regions, restart sets and slow tasks of large jobs; the decision on a batch vertex */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "allocator/batch.h"
#include "failover/restart_set.h"
#include "failover/slow_tasks.h"

/* ---- chains of vertices ----------------------------------------------------------------- */

/* All edges are pointwise. */
struct shape {
    uint32_t vertices, parallelism;
    uint32_t first; /* parallelism of vertex 0; 0: that of the others */
    uint32_t chain; /* vertices of a chain, the next one is not connected with it; 0: all */
    uint32_t cut;   /* edge k of a chain is blocking where (k + 1) % cut == 0; 0: none */
};

struct chains {
    struct pliant_job *job;
    uint32_t *parallelism;
    struct topology topology;
    struct regions regions;
    struct restart_search search;
    uint32_t failed;
};

static size_t make_edges(const struct shape *shape, struct pliant_edge_spec *edges)
{
    size_t n = 0;

    for (uint32_t i = 0; i + 1 < shape->vertices; i++) {
        uint32_t k = shape->chain > 0 ? i % shape->chain : i;

        if (shape->chain == 0 || k + 1 < shape->chain)
            edges[n++] = (struct pliant_edge_spec){
                .from = i,
                .to = i + 1,
                .pattern = PLIANT_POINTWISE,
                .exchange = shape->cut > 0 && (k + 1) % shape->cut == 0 ? PLIANT_BLOCKING
                                                                        : PLIANT_PIPELINED};
    }
    return n;
}

static void make_chains(struct chains *c, const struct shape *shape)
{
    uint32_t n = shape->vertices;
    struct pliant_vertex_spec *v = bench_alloc(n, sizeof *v);
    struct pliant_edge_spec *e = bench_alloc(n, sizeof *e);
    struct pliant_job_spec spec = {.vertices = v, .n_vertices = n, .edges = e};
    char(*names)[16] = bench_alloc(n, sizeof *names);

    *c = (struct chains){.parallelism = bench_alloc(n, sizeof *c->parallelism)};
    for (uint32_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "v%u", i);
        c->parallelism[i] = i == 0 && shape->first > 0 ? shape->first : shape->parallelism;
        v[i] = (struct pliant_vertex_spec){.id = names[i],
                                           .parallelism = c->parallelism[i],
                                           .max_parallelism = PLIANT_MAX_PARALLELISM};
    }
    spec.n_edges = make_edges(shape, e);
    if (pliant_job_new(&spec, NULL, &c->job, NULL) < 0 ||
        topology_init(&c->topology, c->job, c->parallelism, false, NULL) < 0 ||
        regions_init(&c->regions, &c->topology, NULL) < 0 ||
        restart_search_init(&c->search, &c->topology, &c->regions, NULL) < 0)
        abort();
    free(names);
    free(e);
    free(v);
}

static void free_chains(struct chains *c)
{
    restart_search_free(&c->search);
    regions_free(&c->regions);
    topology_free(&c->topology);
    pliant_job_destroy(&c->job);
    free(c->parallelism);
}

/* About 10 vertices, so many that each can have its tasks. */
static struct shape shape_of(uint32_t tasks)
{
    uint32_t parallelism = tasks / 10 < 10000 ? tasks / 10 : 10000;

    return (struct shape){.vertices = tasks / parallelism, .parallelism = parallelism};
}

/* ---- regions ---------------------------------------------------------------------------- */

static void find_regions(void *ctx)
{
    struct chains *c = ctx;

    regions_free(&c->regions);
    if (regions_init(&c->regions, &c->topology, NULL) < 0)
        abort();
}

static void measure_regions(const char *name, const struct shape *shape)
{
    struct chains c;
    uint32_t tasks;

    make_chains(&c, shape);
    tasks = topology_tasks(&c.topology);
    bench_report_growth(name, tasks, tasks, bench_best_ns(find_regions, &c));
    free_chains(&c);
}

void bench_regions(void)
{
    for (uint32_t tasks = 1000; tasks <= 1000000; tasks *= 10) {
        struct shape shape = shape_of(tasks);

        measure_regions("regions", &shape);
        shape.cut = 2;
        measure_regions("regions_blocking", &shape);
    }
}

/* ---- restart sets ----------------------------------------------------------------------- */

static bool all_there(const void *ctx, uint32_t edge, uint32_t producer)
{
    (void)ctx;
    (void)edge;
    (void)producer;
    return true;
}

/* Another task each time, so that the processor's caches don't flatter; it is one of vertex 0. */
static void find_restart_set(void *ctx)
{
    struct chains *c = ctx;

    c->failed = (c->failed + 7919) % c->parallelism[0];
    restart_search(&c->search, c->failed, all_there, NULL);
}

static uint32_t tasks_found(const struct chains *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->search.n_found; i++)
        n += c->regions.first[c->search.found[i] + 1] - c->regions.first[c->search.found[i]];
    return n;
}

static void measure_restart(const char *name, const struct shape *shape)
{
    struct chains c;
    double ns;

    make_chains(&c, shape);
    ns = bench_best_ns(find_restart_set, &c);
    bench_report_growth(name, topology_tasks(&c.topology), tasks_found(&c), ns);
    free_chains(&c);
}

/* First a small answer in growing jobs; then answers that grow in a job that does not: each
 * producer has more and more consumers, and their consumers follow. */
void bench_restart_set(void)
{
    for (uint32_t tasks = 1000; tasks <= 1000000; tasks *= 10) {
        struct shape shape = shape_of(tasks);

        shape.chain = 10;
        measure_restart("restart_set", &shape);
    }
    for (uint32_t producers = 32000; producers > 0; producers /= 10)
        measure_restart(
            "restart_set_answer",
            &(struct shape){.vertices = 32, .parallelism = 32000, .first = producers, .cut = 1});
}

/* ---- slow tasks ------------------------------------------------------------------------- */

struct attempts {
    struct slow_attempt *v;
    bool *slow;
    uint32_t n;
};

static void find_slow(void *ctx)
{
    static const struct slow_limits limits = {
        .ratio = 0.75, .multiplier = 1.5, .lower_bound_ms = 60000};
    struct attempts *a = ctx;

    if (slow_tasks_find(&limits, a->n, a->v, a->n, NULL, a->slow) < 0)
        abort();
}

static uint64_t next_random(uint64_t *seed)
{
    return *seed = *seed * 6364136223846793005u + 1442695040888963407u;
}

/* Four of five have finished, each after another time and with other bytes. */
void bench_slow_tasks(void)
{
    for (uint32_t n = 1000; n <= 1000000; n *= 10) {
        struct attempts a = {bench_alloc(n, sizeof *a.v), bench_alloc(n, sizeof *a.slow), n};
        uint64_t seed = 88172645463325252u;

        for (uint32_t i = 0; i < n; i++)
            a.v[i] = (struct slow_attempt){.state = i % 5 == 0 ? PLIANT_TASK_RUNNING
                                                               : PLIANT_TASK_FINISHED,
                                           .time_ms = (int64_t)(next_random(&seed) >> 46),
                                           .bytes = (int64_t)(next_random(&seed) >> 34)};
        bench_report_growth("slow_tasks", n, n, bench_best_ns(find_slow, &a));
        free(a.v);
        free(a.slow);
    }
}

/* ---- a batch vertex that reads n x n subpartitions -------------------------------------- */

struct decision {
    struct batch_limits limits;
    struct batch_input input;
};

static void decide(void *ctx)
{
    static const struct batch_vertex vertex = {.parallelism = -1, .min = -1, .max = 2000};
    const struct decision *d = ctx;
    struct batch_plan plan;

    if (batch_decide(&d->limits, &vertex, &d->input, 1, NULL, &plan) < 0)
        abort();
    batch_plan_free(&plan, NULL);
}

/* About 130 kB in each subpartition; in one of 16, if they are skewed, 100 times that. */
static int64_t *make_bytes(uint32_t side, bool skewed)
{
    int64_t *bytes = bench_alloc((uint64_t)side * side, sizeof *bytes);
    uint64_t seed = 88172645463325252u;

    for (uint64_t c = 0; c < (uint64_t)side * side; c++)
        bytes[c] = (int64_t)(next_random(&seed) >> 46) * (skewed && c % side % 16 == 0 ? 100 : 1);
    return bytes;
}

static const struct kind {
    const char *name;
    enum pliant_pattern pattern;
    bool inter, intra, skewed;
} kinds[] = {
    {"batch_keyed", PLIANT_ALL_TO_ALL, true, true, false},
    {"batch_rebalance", PLIANT_ALL_TO_ALL, false, false, false},
    {"batch_pointwise", PLIANT_POINTWISE, false, false, false},
    {"batch_skewed", PLIANT_ALL_TO_ALL, true, false, true},
};

static void measure_decision(const struct kind *kind, uint32_t side)
{
    int64_t *bytes = make_bytes(side, kind->skewed);
    struct decision d = {.limits = {.volume = 16 << 20,
                                    .min = 1,
                                    .max = 2000,
                                    .default_source_parallelism = 1,
                                    .skew_factor = 4,
                                    .skew_threshold = 256 << 20},
                         .input = {.pattern = kind->pattern,
                                   .partitions = side,
                                   .subpartitions = side,
                                   .bytes = bytes,
                                   .inter = kind->inter,
                                   .intra = kind->intra}};

    bench_report_growth(kind->name, side, (uint64_t)side * side, bench_best_ns(decide, &d));
    free(bytes);
}

void bench_batch(void)
{
    static const uint32_t sides[] = {100, 300, 1000, 2000};

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
            measure_decision(&kinds[k], sides[i]);
}

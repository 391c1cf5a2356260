/* regions.c - regions, restart sets, releases of large graphs; the decision on a batch vertex */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "allocator/batch.h"
#include "failover/restart_set.h"

/* ---- a chain of vertices, all edges pointwise and pipelined, but one in `cut_every` -------------
 */

struct chain {
    struct pliant_job *job;
    uint32_t *parallelism;
    struct topology topology;
    struct regions regions;
    struct restart_search search;
    uint32_t failed;
};

static void make_chain(struct chain *c, uint32_t vertices, uint32_t parallelism, uint32_t cut_every)
{
    struct pliant_vertex_spec *v = bench_alloc(vertices, sizeof *v);
    struct pliant_edge_spec *e = bench_alloc(vertices, sizeof *e);
    char(*names)[16] = bench_alloc(vertices, sizeof *names);

    c->parallelism = bench_alloc(vertices, sizeof *c->parallelism);
    for (uint32_t i = 0; i < vertices; i++) {
        snprintf(names[i], sizeof names[i], "v%u", i);
        v[i] = (struct pliant_vertex_spec){
            .id = names[i], .parallelism = parallelism, .max_parallelism = PLIANT_MAX_PARALLELISM};
        c->parallelism[i] = parallelism;
        e[i] = (struct pliant_edge_spec){
            .from = i,
            .to = i + 1,
            .pattern = PLIANT_POINTWISE,
            .exchange = i % cut_every == cut_every - 1 ? PLIANT_BLOCKING : PLIANT_PIPELINED};
    }
    if (pliant_job_new(
            &(struct pliant_job_spec){
                .vertices = v, .n_vertices = vertices, .edges = e, .n_edges = vertices - 1},
            NULL, &c->job, NULL) < 0 ||
        topology_init(&c->topology, c->job, c->parallelism, false, NULL) < 0 ||
        regions_init(&c->regions, &c->topology, NULL) < 0 ||
        restart_search_init(&c->search, &c->topology, &c->regions, NULL) < 0)
        abort();
    free(names);
    free(e);
    free(v);
}

static void free_chain(struct chain *c)
{
    restart_search_free(&c->search);
    regions_free(&c->regions);
    topology_free(&c->topology);
    pliant_job_destroy(&c->job);
    free(c->parallelism);
}

static void find_regions(void *ctx)
{
    struct chain *c = ctx;

    regions_free(&c->regions);
    if (regions_init(&c->regions, &c->topology, NULL) < 0)
        abort();
}

static bool all_there(const void *ctx, uint32_t edge, uint32_t producer)
{
    (void)ctx;
    (void)edge;
    (void)producer;
    return true;
}

static void find_restart_set(void *ctx)
{
    struct chain *c = ctx;

    c->failed = (c->failed + 7919) % topology_tasks(&c->topology);
    restart_search(&c->search, c->failed, all_there, NULL);
}

void bench_regions(void)
{
    static const uint32_t vertices[] = {10, 100, 1000};
    struct chain c;

    for (size_t i = 0; i < sizeof vertices / sizeof vertices[0]; i++) {
        make_chain(&c, vertices[i], 1000, UINT32_MAX);
        bench_report("regions", vertices[i] * 1000, vertices[i], 1000,
                     bench_best_ns(find_regions, &c));
        free_chain(&c);
        make_chain(&c, vertices[i], 1000, 2);
        bench_report("regions_blocking", vertices[i] * 1000, vertices[i], 1000,
                     bench_best_ns(find_regions, &c));
        free_chain(&c);
    }
}

void bench_restart_set(void)
{
    static const uint32_t parallelism[] = {100, 1000, 10000};
    struct chain c;

    for (size_t i = 0; i < sizeof parallelism / sizeof parallelism[0]; i++) {
        make_chain(&c, 10, parallelism[i], UINT32_MAX);
        c.failed = 0;
        bench_report("restart_set", parallelism[i] * 10, 10, c.regions.n,
                     bench_best_ns(find_restart_set, &c));
        free_chain(&c);
    }
}

/* ---- a keyed vertex that reads n x n subpartitions
 * ----------------------------------------------- */

struct keyed {
    struct batch_input input;
    int64_t *bytes;
};

static void decide(void *ctx)
{
    static const struct batch_limits limits = {.volume = 16 << 20,
                                               .min = 1,
                                               .max = 2000,
                                               .default_source_parallelism = 1,
                                               .skew_factor = 4,
                                               .skew_threshold = 256 << 20};
    static const struct batch_vertex vertex = {.parallelism = -1, .min = -1, .max = 2000};
    const struct keyed *k = ctx;
    struct batch_plan plan;

    if (batch_decide(&limits, &vertex, &k->input, 1, NULL, &plan) < 0)
        abort();
    batch_plan_free(&plan, NULL);
}

void bench_batch(void)
{
    static const uint32_t sides[] = {100, 1000, 2000};

    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        uint64_t cells = (uint64_t)sides[i] * sides[i], seed = 88172645463325252u;
        struct keyed k = {.bytes = bench_alloc(cells, sizeof *k.bytes)};

        for (uint64_t c = 0; c < cells; c++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            k.bytes[c] = (int64_t)(seed >> 46);
        }
        k.input = (struct batch_input){.pattern = PLIANT_ALL_TO_ALL,
                                       .partitions = sides[i],
                                       .subpartitions = sides[i],
                                       .bytes = k.bytes,
                                       .inter = true,
                                       .intra = true};
        bench_report("batch_keyed", sides[i], sides[i], 1, bench_best_ns(decide, &k));
        k.input.inter = k.input.intra = false;
        bench_report("batch_rebalance", sides[i], sides[i], 1, bench_best_ns(decide, &k));
        free(k.bytes);
    }
}

/* inputs.h and results.h: what a region waits for, and what is there to read; section 1.4 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "graph/inputs.h"
#include "graph/results.h"

struct graph {
    struct pliant_job *job;
    struct topology topology;
    struct regions regions;
    struct inputs inputs;
    uint32_t told, last;
};

static struct graph graph_of(const uint32_t *parallelism, uint32_t n_vertices,
                             const struct pliant_edge_spec *edges, size_t n_edges)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct pliant_vertex_spec vertices[4];
    struct pliant_job_spec spec = {
        .vertices = vertices, .n_vertices = n_vertices, .edges = edges, .n_edges = n_edges};
    struct graph g = {0};

    for (uint32_t v = 0; v < n_vertices; v++)
        vertices[v] = (struct pliant_vertex_spec){.id = names[v], .parallelism = parallelism[v]};
    cr_assert(eq(int, pliant_job_new(&spec, NULL, &g.job, NULL), 0));
    cr_assert(eq(int, topology_init(&g.topology, g.job, parallelism, false, NULL), 0));
    return g;
}

/* The graph stays where it is from here on. */
static void begin(struct graph *g)
{
    cr_assert(eq(int, regions_init(&g->regions, &g->topology, NULL), 0));
    cr_assert(eq(int, inputs_init(&g->inputs, &g->topology, &g->regions, NULL), 0));
}

static void end(struct graph *g)
{
    inputs_free(&g->inputs);
    regions_free(&g->regions);
    topology_free(&g->topology);
    pliant_job_destroy(&g->job);
}

static void tell(void *ctx, uint32_t region)
{
    struct graph *g = ctx;

    g->told++;
    g->last = region;
}

static bool ready(const struct graph *g, uint32_t task)
{
    return inputs_ready(&g->inputs, g->regions.of_task[task]);
}

static bool waits(const struct graph *g, uint32_t task)
{
    return !ready(g, task);
}

static bool untracked(const struct results *r, uint32_t edge, uint32_t producer)
{
    return !results_tracked(r, edge, producer);
}

Test(inputs, an_all_to_all_edge_is_consumable_when_all_producers_have_finished)
{
    const struct pliant_edge_spec edge = {0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING};
    struct graph g = graph_of((uint32_t[]){2, 3}, 2, &edge, 1);

    begin(&g); /* [P-SCHED-2] */
    cr_assert(ready(&g, 0) && ready(&g, 1) && waits(&g, 2));
    inputs_finished(&g.inputs, 0, tell, &g);
    cr_assert(eq(u32, g.told, 0));
    inputs_finished(&g.inputs, 0, tell, &g); /* no news */
    inputs_finished(&g.inputs, 1, tell, &g);
    cr_assert(eq(u32, g.told, 3));
    cr_assert(ready(&g, 2) && ready(&g, 4));
    inputs_unfinished(&g.inputs, 1, tell, &g);
    cr_assert(eq(u32, g.told, 6));
    cr_assert(waits(&g, 2));
    inputs_unfinished(&g.inputs, 0, tell, &g);
    cr_assert(eq(u32, g.told, 6), "they wait already");
    end(&g);
}

Test(inputs, of_a_pointwise_edge_each_group_counts_for_itself)
{
    const struct pliant_edge_spec edge = {0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING};
    struct graph g = graph_of((uint32_t[]){4, 2}, 2, &edge, 1);

    begin(&g);
    inputs_finished(&g.inputs, 2, tell, &g);
    inputs_finished(&g.inputs, 3, tell, &g);
    cr_assert(ready(&g, 5) && waits(&g, 4));
    end(&g);
    g = graph_of((uint32_t[]){2, 5}, 2, &edge, 1); /* 0,1,2 / 3,4 */
    begin(&g);
    inputs_finished(&g.inputs, 1, tell, &g);
    cr_assert(waits(&g, 2) && waits(&g, 4) && ready(&g, 5) && ready(&g, 6));
    end(&g);
}

/* a:i => b:i blocking and pipelined: a region reads its own. */
Test(inputs, what_a_region_reads_from_itself_counts_for_nothing)
{
    const struct pliant_edge_spec edges[] = {{0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING},
                                             {0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED}};
    struct graph g = graph_of((uint32_t[]){2, 2}, 2, edges, 2);

    begin(&g);
    cr_assert(eq(u32, g.regions.n, 2));
    cr_assert(ready(&g, 0) && ready(&g, 3));
    inputs_finished(&g.inputs, 0, tell, &g);
    inputs_unfinished(&g.inputs, 0, tell, &g);
    cr_assert(eq(u32, g.told, 0));
    end(&g);
}

/* a(4) -> m(3) -> b(2) pipelined, and a => b blocking pointwise: b:0 reads a:0 of its own region
 * and a:1 of the other one; b:1 only its own. */
Test(inputs, a_group_that_is_made_partly_inside_waits_for_the_rest)
{
    const struct pliant_edge_spec edges[] = {{0, 2, PLIANT_POINTWISE, PLIANT_PIPELINED},
                                             {2, 1, PLIANT_POINTWISE, PLIANT_PIPELINED},
                                             {0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING}};
    struct graph g = graph_of((uint32_t[]){4, 2, 3}, 3, edges, 3);

    begin(&g);
    cr_assert(eq(u32, g.regions.n, 2));
    cr_assert(waits(&g, 0) && ready(&g, 1));
    inputs_finished(&g.inputs, 0, tell, &g); /* its own */
    cr_assert(waits(&g, 0));
    inputs_finished(&g.inputs, 1, tell, &g);
    cr_assert(ready(&g, 0));
    cr_assert(eq(u32, g.told, 1));
    cr_assert(eq(u32, g.last, g.regions.of_task[0]));
    end(&g);
}

Test(results, are_tracked_from_the_slot_until_they_are_forgotten)
{
    const struct pliant_edge_spec edges[] = {{0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING},
                                             {0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED},
                                             {0, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
    struct graph g = graph_of((uint32_t[]){2, 2, 3}, 3, edges, 3);
    struct results r;

    cr_assert(eq(int, results_init(&r, &g.topology, false, NULL), 0)); /* [P-SET-2] */
    cr_assert(eq(u32, results_partitions(&r), 4));
    cr_assert(untracked(&r, 0, 1));
    cr_assert(eq(int, results_begin(&r, 1, 7), 0));
    cr_assert(results_tracked(&r, 0, 1) && results_tracked(&r, 2, 1));
    cr_assert(untracked(&r, 1, 1), "a pipelined one never");
    cr_assert(untracked(&r, 0, 0) && untracked(&r, 2, 0));
    cr_assert(eq(u32, r.held[1].node, 7 + 1));
    results_forget(&r, 0, 1);
    cr_assert(untracked(&r, 0, 1) && results_tracked(&r, 2, 1));
    results_forget_task(&r, 1);
    cr_assert(untracked(&r, 2, 1));
    results_free(&r);
    topology_free(&g.topology);
    pliant_job_destroy(&g.job);
}

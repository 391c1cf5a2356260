/* step.c - one step of a running job, and the memory of a large one */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include <pliant/pliant.h>

struct running {
    struct pliant_job *job;
    struct pliant_sched *s;
    struct pliant_vertex_spec *vertices;
    char (*names)[16];
    char node[16];
    int64_t now_ms;
    uint64_t incarnation;
};

static struct pliant_actions step(struct running *r, struct pliant_event ev)
{
    struct pliant_actions acts;

    if (pliant_step(r->s, r->now_ms, &ev, &acts) < 0)
        abort();
    return acts;
}

static void join(struct running *r, uint32_t i, uint32_t slots)
{
    snprintf(r->node, sizeof r->node, "n%u", i);
    step(r, (struct pliant_event){
                .kind = PLIANT_EV_NODE_UP,
                .node_up = {.name = r->node, .incarnation = ++r->incarnation, .slots = slots}});
}

static void make_job(struct running *r, uint32_t vertices, uint32_t groups, uint32_t parallelism)
{
    r->vertices = bench_alloc(vertices, sizeof *r->vertices);
    r->names = bench_alloc(2 * (uint64_t)vertices, sizeof *r->names);
    for (uint32_t v = 0; v < vertices; v++) {
        snprintf(r->names[2 * v], sizeof *r->names, "v%u", v);
        snprintf(r->names[2 * v + 1], sizeof *r->names, "g%u", v % groups);
        r->vertices[v] = (struct pliant_vertex_spec){.id = r->names[2 * v],
                                                     .parallelism = parallelism,
                                                     .slot_sharing_group = r->names[2 * v + 1]};
    }
}

/* Started: every task runs. The answers are those of a host without any delay. */
static void run_job(struct running *r, uint32_t vertices)
{
    struct pliant_actions acts = step(r, (struct pliant_event){.kind = PLIANT_EV_START});
    uint32_t plan = 0;

    for (size_t i = 0; i < acts.n; i++)
        if (acts.v[i].kind == PLIANT_ACT_RESERVE)
            plan = acts.v[i].reserve.plan;
    step(r, (struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED, .plan.plan = plan});
    for (uint32_t v = 1; v <= vertices; v++)
        for (uint32_t i = 0; i < pliant_parallelism(r->s, (pliant_vertex_id){v}); i++)
            step(r, (struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING,
                                          .task = {{v}, i, .attempt = 1}});
}

static struct running make_running(const struct pliant_alloc *alloc, uint32_t slots, uint32_t nodes,
                                   uint32_t vertices, uint32_t groups, uint32_t parallelism)
{
    struct running r = {.now_ms = 1};
    struct pliant_job_spec spec;
    struct pliant_config cfg;

    make_job(&r, vertices, groups, parallelism);
    spec = (struct pliant_job_spec){.vertices = r.vertices, .n_vertices = vertices};
    pliant_config_init(&cfg);
    cfg.alloc = alloc;
    if (pliant_job_new(&spec, alloc, &r.job, NULL) < 0 ||
        pliant_sched_new(&cfg, r.job, &r.s, NULL) < 0)
        abort();
    for (uint32_t i = 0; i < nodes; i++)
        join(&r, i, slots / nodes);
    run_job(&r, vertices);
    return r;
}

static void drop(struct running *r)
{
    pliant_sched_destroy(&r->s);
    pliant_job_destroy(&r->job);
    free(r->vertices);
    free(r->names);
}

/* A node that the job does not need comes, and goes again. */
static void come_and_go(void *ctx)
{
    struct running *r = ctx;

    step(r, (struct pliant_event){
                .kind = PLIANT_EV_NODE_UP,
                .node_up = {.name = "extra", .incarnation = ++r->incarnation, .slots = 1}});
    step(r, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST, .node.name = "extra"});
}

void bench_step(void)
{
    static const uint32_t nodes[] = {100, 1000, 10000, 100000};

    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        struct running r = make_running(NULL, nodes[i], nodes[i], 10, 1, 64);

        bench_report("step", nodes[i], 10, 1, bench_best_ns(come_and_go, &r) / 2);
        drop(&r);
    }
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Running, with what a step leaves: 1,000 slots a group, every vertex of it in each. */
void bench_memory(void)
{
    struct bench_counted counted;
    struct running r;
    struct pliant_counts counts;

    bench_count_bytes(&counted);
    r = make_running(&counted.alloc, 100000, 10000, 1000, 100, 1000);
    pliant_counts(r.s, &counts);
    if (counts.tasks_running != 1000000)
        abort();
    bench_report_bytes("memory", 100000, 1000, 100, counted.bytes, counted.peak);
    drop(&r);
}

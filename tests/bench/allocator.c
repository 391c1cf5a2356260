/* allocator.c - parallelism and plans */
#include "bench.h"

#include <stdlib.h>

#include "allocator/allocator.h"
#include "graph/key_groups.h"

enum { SLOTS_A_NODE = 8, NODES_A_DOMAIN = 16 };

/* A job whose vertices take turns in the groups, and slots for it. */
struct setting {
    uint32_t *group_of, *group_slots, *parallelism, *max_parallelism, *unit_slots;
    struct free_slot *slots;
    struct bounds bounds;
    struct placement_request request;
    struct history history;
    uint32_t *first;
    struct history_entry *entries;
};

static void make_bounds(struct setting *s, uint32_t slots, uint32_t vertices, uint32_t groups)
{
    s->group_of = bench_alloc(vertices, sizeof *s->group_of);
    s->max_parallelism = bench_alloc(vertices, sizeof *s->max_parallelism);
    for (uint32_t v = 0; v < vertices; v++)
        s->group_of[v] = v % groups;
    if (bounds_init(&s->bounds, vertices, groups, s->group_of, NULL) < 0)
        abort();
    for (uint32_t v = 0; v < vertices; v++) {
        /* groups differ in what they want; together they want all slots, or one a group */
        uint32_t want = slots / groups > 1 ? slots / groups : 1;

        s->bounds.vertices[v] = (struct vertex_bounds){1, want};
        s->max_parallelism[v] =
            want > 16384 ? PLIANT_MAX_PARALLELISM : key_groups_default_max(want);
    }
    bounds_refresh(&s->bounds);
}

static void make_slots(struct setting *s, uint32_t n)
{
    s->slots = bench_alloc(n, sizeof *s->slots);
    for (uint32_t i = 0; i < n; i++)
        s->slots[i] = (struct free_slot){
            .slot = i,
            .node = i / SLOTS_A_NODE,
            .domain = i / SLOTS_A_NODE / NODES_A_DOMAIN,
        };
}

/* `spare` slots more than the job wants. */
static void make_setting(struct setting *s, uint32_t slots, uint32_t vertices, uint32_t groups,
                         uint32_t spare)
{
    *s = (struct setting){0};
    make_bounds(s, slots - spare, vertices, groups);
    make_slots(s, slots);
    s->group_slots = bench_alloc(groups, sizeof *s->group_slots);
    s->parallelism = bench_alloc(vertices, sizeof *s->parallelism);
    s->unit_slots = bench_alloc(slots, sizeof *s->unit_slots);
    s->request = (struct placement_request){
        .bounds = &s->bounds,
        .parallelism = s->parallelism,
        .group_slots = s->group_slots,
        .max_parallelism = s->max_parallelism,
        .slots = s->slots,
        .n_slots = slots,
    };
}

static void drop_setting(struct setting *s)
{
    bounds_free(&s->bounds, NULL);
    free(s->group_of);
    free(s->group_slots);
    free(s->parallelism);
    free(s->max_parallelism);
    free(s->unit_slots);
    free(s->slots);
    free(s->first);
    free(s->entries);
}

static void decide(void *ctx)
{
    struct setting *s = ctx;

    if (!allocator_parallelism(&s->bounds, s->request.n_slots, s->group_slots, s->parallelism))
        abort();
}

static void plan(void *ctx)
{
    struct setting *s = ctx;

    decide(s);
    if (allocator_place(&s->request, NULL, s->unit_slots) < 0)
        abort();
}

static void measure(struct setting *s, const char *name, void (*run)(void *ctx))
{
    bench_report(name, s->request.n_slots, s->bounds.n_vertices, s->bounds.n_groups,
                 bench_best_ns(run, s));
}

void bench_parallelism(void)
{
    for (uint32_t groups = 1; groups <= 100; groups *= 10) {
        struct setting s;

        make_setting(&s, 100 * groups, 10 * groups, groups, 0);
        s.request.n_slots = 70 * groups; /* too few for all wishes */
        measure(&s, "parallelism", decide);
        drop_setting(&s);
    }
}

static void measure_default(uint32_t slots, uint32_t vertices, uint32_t groups)
{
    struct setting s;

    make_setting(&s, slots, vertices, groups, slots / 10);
    measure(&s, "plan_default", plan);
    s.request.prefer_minimal_nodes = true;
    measure(&s, "plan_default_fewest_nodes", plan);
    s.request.prefer_minimal_nodes = false;
    s.request.spread = PLIANT_SPREAD_NODES;
    measure(&s, "plan_default_spread_nodes", plan);
    s.request.spread = PLIANT_SPREAD_DOMAINS;
    measure(&s, "plan_default_spread_domains", plan);
    drop_setting(&s);
}

void bench_plan_default(void)
{
    for (uint32_t slots = 100; slots <= 100000; slots *= 10)
        measure_default(slots, 10, 5);
    measure_default(10000, 100, 10);
    measure_default(100000, 1000, 100);
}

/* The earlier run: each subtask in the slot of its number, with some state. */
static void make_history(struct setting *s, uint32_t parallelism)
{
    uint32_t vertices = s->bounds.n_vertices;
    uint32_t *old = bench_alloc(vertices, sizeof *old);

    s->first = bench_alloc(vertices, sizeof *s->first);
    s->entries = bench_alloc((uint64_t)vertices * parallelism, sizeof *s->entries);
    for (uint32_t v = 0; v < vertices; v++) {
        old[v] = parallelism;
        s->first[v] = v * parallelism;
        for (uint32_t i = 0; i < parallelism; i++)
            s->entries[s->first[v] + i] = (struct history_entry){
                .slot = i,
                .bytes = UINT64_C(1000000) + UINT64_C(7919) * (v * 31 + i * 17) % 500000,
            };
    }
    s->history = (struct history){old, s->first, s->entries, (size_t)vertices * parallelism};
    s->request.history = &s->history;
}

/* Four slots are lost: the rest is what the job gets. */
static void measure_local(uint32_t slots)
{
    struct setting s;
    uint32_t lost = 4;

    make_setting(&s, slots, 10, 1, 0);
    make_history(&s, slots);
    for (uint32_t i = 0; i < slots - lost; i++) /* spread over the pool */
        s.slots[i].slot = i + i / (slots / lost);
    s.request.n_slots -= lost;
    measure(&s, "plan_local", plan);
    free((void *)s.history.parallelism);
    drop_setting(&s);
}

void bench_plan_local(void)
{
    for (uint32_t slots = 100; slots <= 10000; slots *= 10)
        measure_local(slots);
    measure_local(30000);
}

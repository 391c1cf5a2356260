/* Wiring, regions, restart sets, releases and results on random graphs, against slow and plain
 * versions of the same rules (sections 1 and 2 of the rules of failover). The measured answers are
 * elsewhere.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_alloc.h"
#include "failover/restart_set.h"
#include "graph/releases.h"
#include "graph/results.h"
#include "util/prng.h"

enum { MOST_VERTICES = 6, MOST_TASKS = 48, ROUNDS = 400 };

struct graph {
    struct pliant_job *job;
    uint32_t parallelism[MOST_VERTICES];
    struct topology topology;
    struct regions regions;
};

static uint32_t below(struct prng *p, uint32_t n)
{
    return (uint32_t)(prng_next(p) % n);
}

static void make_job(struct graph *g, struct prng *p)
{
    static const char *const names[MOST_VERTICES] = {"a", "b", "c", "d", "e", "f"};
    struct pliant_vertex_spec v[MOST_VERTICES] = {0};
    struct pliant_edge_spec e[MOST_VERTICES * MOST_VERTICES];
    uint32_t n = 1 + below(p, MOST_VERTICES), n_edges = 0;

    for (uint32_t i = 0; i < n; i++) {
        g->parallelism[i] = 1 + below(p, 8);
        v[i] = (struct pliant_vertex_spec){.id = names[i], .parallelism = g->parallelism[i]};
        for (uint32_t from = 0; from < i; from++)
            if (below(p, 3) == 0)
                e[n_edges++] = (struct pliant_edge_spec){
                    from, i, below(p, 2) ? PLIANT_POINTWISE : PLIANT_ALL_TO_ALL,
                    below(p, 2) ? PLIANT_BLOCKING : PLIANT_PIPELINED};
    }
    cr_assert(eq(int, 0,
                 pliant_job_new(
                     &(struct pliant_job_spec){
                         .vertices = v, .n_vertices = n, .edges = e, .n_edges = n_edges},
                     NULL, &g->job, NULL)));
}

static void make(struct graph *g, struct prng *p)
{
    make_job(g, p);
    cr_assert(eq(int, 0, topology_init(&g->topology, g->job, g->parallelism, false, NULL)));
    cr_assert(eq(int, 0, regions_init(&g->regions, &g->topology, NULL)));
}

static void drop(struct graph *g)
{
    regions_free(&g->regions);
    topology_free(&g->topology);
    pliant_job_destroy(&g->job);
}

/* Does this edge connect the two tasks? By the formula for consumers of each producer. */
static bool connected(const struct graph *g, uint32_t e, uint32_t from, uint32_t to)
{
    const struct pliant_edge_spec *edge = &g->job->edges[e];
    const struct topology *t = &g->topology;
    struct range r;

    if (t->vertex_of[from] != edge->from || t->vertex_of[to] != edge->to)
        return false;
    r = topology_consumers(t, e, from - t->first_task[edge->from]);
    to -= t->first_task[edge->to];
    return to >= r.first && to < r.end;
}

/* ---- wiring ---------------------------------------------------------------------------------- */

Test(topology, a_producers_consumers_and_a_consumers_producers_are_the_same_pairs)
{
    for (uint32_t p = 1; p <= 20; p++)
        for (uint32_t c = 1; c <= 20; c++)
            for (uint32_t i = 0; i < p; i++)
                for (uint32_t j = 0; j < c; j++) {
                    struct range down = pointwise_consumers(p, c, i);
                    struct range up = pointwise_producers(p, c, j);

                    cr_assert(eq(int, j >= down.first && j < down.end, i >= up.first && i < up.end),
                              "%u -> %u: %u, %u", p, c, i, j);
                }
}

Test(topology, of_five_producers_and_three_consumers_the_first_consumer_reads_one)
{
    struct range r = pointwise_producers(5, 3, 0);

    cr_assert(eq(u32, r.first, 0));
    cr_assert(eq(u32, r.end, 1));
    r = pointwise_producers(5, 3, 2);
    cr_assert(eq(u32, r.first, 3));
    cr_assert(eq(u32, r.end, 5));
}

Test(topology, every_producer_of_a_blocking_edge_is_in_the_groups_that_its_consumers_read)
{
    struct prng p = {0};

    p.state = 3;
    for (int round = 0; round < ROUNDS; round++) {
        struct graph g;

        make(&g, &p);
        for (uint32_t e = 0; e < g.job->n_edges; e++) {
            const struct pliant_edge_spec *edge = &g.job->edges[e];

            for (uint32_t c = 0; edge->exchange == PLIANT_BLOCKING && c < g.parallelism[edge->to];
                 c++) {
                uint32_t group = topology_group_read(&g.topology, e, c);
                struct range of = topology_group_producers(&g.topology, e, group),
                             read = topology_producers(&g.topology, e, c),
                             by = topology_group_consumers(&g.topology, e, group);

                cr_assert(eq(u32, of.first, read.first));
                cr_assert(eq(u32, of.end, read.end));
                cr_assert(c >= by.first && c < by.end);
            }
        }
        drop(&g);
    }
}

/* ---- regions --------------------------------------------------------------------------------- */

/* reach[a][b]: b is in a's component or region, or waits for it. */
static void close_over(bool reach[MOST_TASKS][MOST_TASKS], uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; reach[i][k] && j < n; j++)
                reach[i][j] |= reach[k][j];
}

static void reachable(const struct graph *g, bool reach[MOST_TASKS][MOST_TASKS])
{
    uint32_t n = topology_tasks(&g->topology);

    memset(reach, 0, sizeof(bool[MOST_TASKS][MOST_TASKS]));
    for (uint32_t i = 0; i < n; i++) {
        reach[i][i] = true;
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t e = 0; e < g->job->n_edges; e++) {
                if (!connected(g, e, i, j))
                    continue;
                reach[i][j] = true;
                reach[j][i] |= g->job->edges[e].exchange == PLIANT_PIPELINED;
            }
    }
    close_over(reach, n);
}

Test(regions, two_tasks_share_a_region_when_each_can_be_reached_from_the_other)
{
    static bool reach[MOST_TASKS][MOST_TASKS];
    struct prng p = {0};

    p.state = 1;
    for (int round = 0; round < ROUNDS; round++) {
        struct graph g;
        uint32_t n;

        make(&g, &p);
        n = topology_tasks(&g.topology);
        reachable(&g, reach);
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                cr_assert(eq(int, g.regions.of_task[i] == g.regions.of_task[j],
                             reach[i][j] && reach[j][i]));
                cr_assert(g.regions.of_task[i] <= g.regions.of_task[j] || !reach[i][j],
                          "regions are numbered in topological order");
            }
        drop(&g);
    }
}

Test(regions, without_memory_nothing_is_left_behind)
{
    struct prng p = {0};
    struct graph g;

    p.state = 7;
    make_job(&g, &p);
    for (size_t k = 1;; k++) {
        FAILING_ALLOC(f, k);
        struct topology t;
        struct regions r;
        struct releases l;
        struct restart_search s;
        int rc = topology_init(&t, g.job, g.parallelism, false, &f.hook);

        if (rc == 0) {
            rc = regions_init(&r, &t, &f.hook);
            if (rc == 0) {
                rc = releases_init(&l, &t, &r, &f.hook);
                if (rc == 0) {
                    rc = restart_search_init(&s, &t, &r, &f.hook);
                    if (rc == 0)
                        restart_search_free(&s);
                    releases_free(&l);
                }
                regions_free(&r);
            }
            topology_free(&t);
        }
        cr_assert(eq(sz, f.live, 0));
        if (rc == 0)
            break;
        cr_assert(eq(int, rc, -ENOMEM));
    }
    pliant_job_destroy(&g.job);
}

/* ---- restart sets -----------------------------------------------------------------------------
 */

struct lost {
    bool task[MOST_TASKS];
};

static bool not_lost(const void *ctx, uint32_t edge, uint32_t producer)
{
    (void)edge;
    return !((const struct lost *)ctx)->task[producer];
}

/* Until nothing changes: what an involved region reads and can't, and who reads what it makes. */
static void plainly(const struct graph *g, const struct lost *lost, uint32_t failed, bool *involved)
{
    uint32_t n = topology_tasks(&g->topology);
    bool more = true;

    memset(involved, 0, MOST_TASKS * sizeof *involved);
    involved[g->regions.of_task[failed]] = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                for (uint32_t e = 0; e < g->job->n_edges; e++) {
                    bool *up = &involved[g->regions.of_task[i]],
                         *down = &involved[g->regions.of_task[j]];

                    if (!connected(g, e, i, j))
                        continue;
                    if (*up && !*down)
                        *down = more = true;
                    if (*down && !*up && lost->task[i])
                        *up = more = true;
                }
    }
}

Test(restart_set, holds_the_regions_that_a_plain_search_finds)
{
    struct prng p = {0};

    p.state = 2;
    for (int round = 0; round < ROUNDS; round++) {
        struct graph g;
        struct restart_search s;

        make(&g, &p);
        cr_assert(eq(int, 0, restart_search_init(&s, &g.topology, &g.regions, NULL)));
        for (int again = 0; again < 5; again++) {
            uint32_t n = topology_tasks(&g.topology), failed = below(&p, n), found = 0;
            struct lost lost;
            bool involved[MOST_TASKS];

            for (uint32_t i = 0; i < MOST_TASKS; i++)
                lost.task[i] = below(&p, 4) == 0;
            restart_search(&s, failed, not_lost, &lost);
            plainly(&g, &lost, failed, involved);
            for (uint32_t r = 0; r < g.regions.n; r++)
                found += involved[r];
            cr_assert(eq(u32, found, s.n_found));
            for (uint32_t i = 0; i < s.n_found; i++)
                cr_assert(involved[s.found[i]]);
        }
        restart_search_free(&s);
        drop(&g);
    }
}

static bool is_found(const struct restart_search *s, uint32_t region)
{
    for (uint32_t i = 0; i < s->n_found; i++)
        if (s->found[i] == region)
            return true;
    return false;
}

Test(restart_set, of_several_tasks_holds_what_each_of_them_leads_to_in_their_order)
{
    struct prng p = {0};

    p.state = 5;
    for (int round = 0; round < ROUNDS; round++) {
        struct graph g;
        struct restart_search all, one;
        struct lost lost;
        uint32_t n_found = 0;

        make(&g, &p);
        cr_assert(eq(int, 0, restart_search_init(&all, &g.topology, &g.regions, NULL)));
        cr_assert(eq(int, 0, restart_search_init(&one, &g.topology, &g.regions, NULL)));
        for (uint32_t i = 0; i < MOST_TASKS; i++)
            lost.task[i] = below(&p, 4) == 0;
        restart_search_begin(&all);
        for (int again = 0; again < 5; again++) {
            uint32_t failed = below(&p, topology_tasks(&g.topology)), before = all.n_found;

            restart_search_go_on(&all, failed, not_lost, &lost);
            restart_search(&one, failed, not_lost, &lost);
            for (uint32_t i = 0; i < one.n_found; i++) {
                cr_assert(is_found(&all, one.found[i]));
                if (n_found < all.n_found && all.found[n_found] == one.found[i])
                    n_found++;
            }
            cr_assert(eq(u32, n_found, all.n_found), "from the %uth on", before);
        }
        restart_search_free(&one);
        restart_search_free(&all);
        drop(&g);
    }
}

/* ---- results ------------------------------------------------------------------------------- */

enum { NODES = 5 };

/* where[]: a task's node; NODES: none. */
static void expect_on(const struct graph *g, const struct results *r, const uint32_t *where,
                      uint32_t node)
{
    struct sort_item items[2 * MOST_TASKS * MOST_VERTICES];
    size_t n = results_count_on(r, node), k = 0;

    results_list_on(r, node, items, n);
    for (uint32_t e = 0; e < g->job->n_edges; e++)
        for (uint32_t i = 0; i < g->parallelism[g->job->edges[e].from]; i++) {
            uint32_t task = g->topology.first_task[g->job->edges[e].from] + i;

            if (where[task] != node || !results_tracked(r, e, i))
                continue;
            cr_assert(k < n && items[k].major == e && items[k].minor == i &&
                      items[k].value == task);
            k++;
        }
    cr_assert(eq(sz, n, k));
}

Test(results, are_found_by_the_node_that_they_are_on)
{
    struct prng p = {0};

    p.state = 6;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t where[MOST_TASKS];
        struct graph g;
        struct results r;

        make(&g, &p);
        cr_assert(eq(int, 0, results_init(&r, &g.topology, false, NULL)));
        for (uint32_t i = 0; i < MOST_TASKS; i++)
            where[i] = NODES;
        for (int step = 0; step < 60; step++) {
            uint32_t task = below(&p, topology_tasks(&g.topology)),
                     edge = g.job->n_edges > 0 ? below(&p, (uint32_t)g.job->n_edges) : 0;

            if (below(&p, 3) > 0) {
                where[task] = below(&p, NODES);
                cr_assert(eq(int, 0, results_begin(&r, task, where[task])));
            } else if (g.job->n_edges > 0 && below(&p, 2) > 0 &&
                       g.job->edges[edge].exchange == PLIANT_BLOCKING) {
                results_forget(&r, edge, below(&p, g.parallelism[g.job->edges[edge].from]));
            } else {
                results_forget_task(&r, task);
            }
            cr_assert(results_listed(&r));
            expect_on(&g, &r, where, below(&p, NODES + 1));
        }
        results_free(&r);
        drop(&g);
    }
}

/* ---- releases ----------------------------------------------------------------------------------
 */

struct told {
    uint32_t n;
    const struct graph *g;
    const bool *finished;
};

static bool region_finished(const struct graph *g, const bool *finished, uint32_t region)
{
    for (uint32_t i = g->regions.first[region]; i < g->regions.first[region + 1]; i++)
        if (!finished[g->regions.members[i]])
            return false;
    return true;
}

static void told(void *ctx, uint32_t edge, struct range producers)
{
    struct told *t = ctx;
    const struct graph *g = t->g;
    const struct pliant_edge_spec *spec = &g->job->edges[edge];

    t->n++;
    for (uint32_t p = producers.first; p < producers.end; p++) {
        struct range c = topology_consumers(&g->topology, edge, p);

        for (uint32_t i = c.first; i < c.end; i++)
            cr_assert(region_finished(g, t->finished,
                                      g->regions.of_task[g->topology.first_task[spec->to] + i]));
    }
}

Test(releases, a_result_is_released_once_all_its_readers_regions_have_finished)
{
    struct prng p = {0};

    p.state = 4;
    for (int round = 0; round < ROUNDS; round++) {
        struct graph g;
        struct releases l;
        bool finished[MOST_TASKS] = {false};
        struct told t = {.g = &g, .finished = finished};
        uint32_t n, groups = 0;

        make(&g, &p);
        n = topology_tasks(&g.topology);
        cr_assert(eq(int, 0, releases_init(&l, &g.topology, &g.regions, NULL)));
        for (uint32_t i = 0; i < n; i++) {
            finished[i] = true;
            releases_finished(&l, i, told, &t);
            releases_finished(&l, i, told, &t); /* said twice */
        }
        groups = g.topology.n_groups;
        cr_assert(eq(u32, t.n, groups), "in the end each group has been released once");
        for (uint32_t i = n; i-- > 0;) { /* one after the other is made anew */
            uint32_t before = t.n;

            releases_unfinished(&l, i);
            releases_finished(&l, i, told, &t);
            cr_assert(t.n >= before);
        }
        releases_free(&l);
        drop(&g);
    }
}

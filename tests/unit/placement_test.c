/* placement_test.c - which slots: pool order, fewest nodes, spread, state locality
 *
 * Each way is compared on random inputs with a plain reference that follows the rule step by
 * step, however slowly.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <string.h>

#include "allocator/allocator.h"
#include "failing_alloc.h"
#include "graph/key_groups.h"
#include "util/prng.h"

enum { MAX_SLOTS = 40, MAX_VERTICES = 6, MAX_GROUPS = 3, MAX_HISTORY = MAX_VERTICES * MAX_SLOTS };

/* A request with all that it points to. */
struct sample {
    uint32_t group_of[MAX_VERTICES], max_parallelism[MAX_VERTICES], parallelism[MAX_VERTICES];
    uint32_t group_slots[MAX_GROUPS];
    struct free_slot slots[MAX_SLOTS];
    uint32_t old_parallelism[MAX_VERTICES], first[MAX_VERTICES];
    struct history_entry entries[MAX_HISTORY];
    struct bounds bounds;
    struct history history;
    struct placement_request request;
    uint32_t n_units;
};

static uint32_t draw(struct prng *p, uint32_t from, uint32_t to)
{
    return from + (uint32_t)prng_below(p, to - from + 1);
}

static void draw_job(struct sample *s, struct prng *p)
{
    uint32_t n_vertices = draw(p, 1, MAX_VERTICES), n_groups = 0;

    for (uint32_t v = 0; v < n_vertices; v++) {
        uint32_t g = draw(p, 0, n_groups < MAX_GROUPS ? n_groups : MAX_GROUPS - 1);

        s->group_of[v] = g;
        n_groups += g == n_groups;
    }
    cr_assert(eq(int, bounds_init(&s->bounds, n_vertices, n_groups, s->group_of, NULL), 0));
    for (uint32_t v = 0; v < n_vertices; v++) {
        uint32_t want = draw(p, 1, 12);

        s->bounds.vertices[v] = (struct vertex_bounds){1, want};
        s->max_parallelism[v] = draw(p, 0, 1) ? 128 : draw(p, 12, 60);
    }
    bounds_refresh(&s->bounds);
}

/* Slots in no order of nodes, with numbers that are small, far apart, or equal in many bits. */
static void draw_slots(struct sample *s, struct prng *p)
{
    static const uint32_t strides[] = {1, 1, 3, 65536, 100000007};
    uint32_t stride = strides[draw(p, 0, 4)], nodes = draw(p, 1, 12), domains = draw(p, 1, 4);
    uint32_t n = draw(p, s->bounds.n_groups, MAX_SLOTS);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = draw(p, 0, nodes - 1);

        s->slots[i] = (struct free_slot){i * stride, node * stride, node % domains * stride};
    }
    s->request = (struct placement_request){
        .bounds = &s->bounds,
        .parallelism = s->parallelism,
        .group_slots = s->group_slots,
        .max_parallelism = s->max_parallelism,
        .slots = s->slots,
        .n_slots = n,
    };
}

/* Subtasks in the pool's slots, several of them in slots that are gone. */
static void draw_history(struct sample *s, struct prng *p)
{
    uint32_t n = 0;

    for (uint32_t v = 0; v < s->bounds.n_vertices; v++) {
        s->old_parallelism[v] = draw(p, 0, 4) ? draw(p, 1, 12) : 0;
        s->first[v] = n;
        for (uint32_t i = 0; i < s->old_parallelism[v]; i++) {
            uint32_t slot = draw(p, 0, s->request.n_slots - 1);

            s->entries[n++] = (struct history_entry){
                .slot = draw(p, 0, 5) ? s->slots[slot].slot : 999999999 + i,
                .bytes = draw(p, 0, 2) ? prng_below(p, 2000) >> draw(p, 0, 10)
                                       : prng_next(p) >> draw(p, 1, 40),
            };
        }
    }
    s->history = (struct history){s->old_parallelism, s->first, s->entries, n};
    s->request.history = &s->history;
}

static void draw_sample(struct sample *s, struct prng *p)
{
    memset(s, 0, sizeof *s);
    draw_job(s, p);
    draw_slots(s, p);
    cr_assert(
        allocator_parallelism(&s->bounds, s->request.n_slots, s->group_slots, s->parallelism));
    for (uint32_t g = 0; g < s->bounds.n_groups; g++)
        s->n_units += s->group_slots[g];
}

static void drop_sample(struct sample *s)
{
    bounds_free(&s->bounds, NULL);
}

/* Place, and compare with the positions that are wanted. */
static void expect_positions(struct sample *s, const uint32_t *want, int round)
{
    uint32_t got[MAX_SLOTS];

    cr_assert(eq(int, allocator_place(&s->request, NULL, got), 0));
    for (uint32_t unit = 0; unit < s->n_units; unit++)
        cr_assert(eq(u32, got[unit], s->slots[want[unit]].slot), "round %d, unit %u of %u", round,
                  unit, s->n_units);
}

/* ---- without history -------------------------------------------------------------------- */

Test(placement, takes_slots_in_the_order_of_the_pool) /* [S-LOC-6] [S-PAR-9] */
{
    struct prng p = {1};

    for (int round = 0; round < 200; round++) {
        static const struct history none;
        uint32_t want[MAX_SLOTS];
        struct sample s;

        draw_sample(&s, &p);
        for (uint32_t i = 0; i < MAX_SLOTS; i++)
            want[i] = i;
        expect_positions(&s, want, round);
        s.request.history = &none; /* an empty one is none */
        expect_positions(&s, want, round);
        s.request.prefer_minimal_nodes = true;
        if (s.n_units == s.request.n_slots) /* nothing to choose */
            expect_positions(&s, want, round);
        drop_sample(&s);
    }
}

static uint32_t left_on(const struct sample *s, const bool *taken, uint32_t node)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->request.n_slots; i++)
        n += !taken[i] && s->slots[i].node == node;
    return n;
}

/* Whole nodes: the one with most slots, of equals the first; its slots in order. */
static void fewest_nodes(const struct sample *s, uint32_t *want)
{
    bool taken[MAX_SLOTS] = {false};

    for (uint32_t n = 0; n < s->request.n_slots;) {
        uint32_t best = 0, best_left = 0;

        for (uint32_t i = 0; i < s->request.n_slots; i++) {
            uint32_t left = left_on(s, taken, s->slots[i].node);

            if (!taken[i] && left > best_left) {
                best = s->slots[i].node;
                best_left = left;
            }
        }
        for (uint32_t i = 0; i < s->request.n_slots; i++) {
            if (taken[i] || s->slots[i].node != best)
                continue;
            taken[i] = true;
            want[n++] = i;
        }
    }
}

Test(placement, takes_the_fullest_nodes_first_when_there_are_slots_to_spare) /* [S-LOC-6] */
{
    struct prng p = {2};
    int chosen = 0;

    for (int round = 0; round < 1000; round++) {
        uint32_t want[MAX_SLOTS];
        struct sample s;

        draw_sample(&s, &p);
        s.request.prefer_minimal_nodes = true;
        if (s.n_units < s.request.n_slots) {
            fewest_nodes(&s, want);
            expect_positions(&s, want, round);
            chosen++;
        }
        drop_sample(&s);
    }
    cr_expect(gt(int, chosen, 300));
}

/* The slots of `from` in rounds, one of each bucket that has one left: by node, or by domain. */
static void deal(const struct sample *s, bool by_domain, const uint32_t *from, uint32_t *want)
{
    bool taken[MAX_SLOTS] = {false};

    for (uint32_t n = 0; n < s->request.n_slots;) {
        uint32_t seen[MAX_SLOTS], n_seen = 0; /* buckets of this round */

        /* buckets by first appearance in `from`, whether or not they have a slot left */
        for (uint32_t i = 0; i < s->request.n_slots; i++) {
            uint32_t key = by_domain ? s->slots[from[i]].domain : s->slots[from[i]].node;
            bool new = true;

            for (uint32_t j = 0; j < n_seen; j++)
                new &= seen[j] != key;
            if (!new)
                continue;
            seen[n_seen++] = key;
            for (uint32_t j = i; j < s->request.n_slots; j++) {
                if (taken[j] ||
                    key != (by_domain ? s->slots[from[j]].domain : s->slots[from[j]].node))
                    continue;
                taken[j] = true;
                want[n++] = from[j];
                break;
            }
        }
    }
}

/* No bucket has two more than one that still had a free slot. */
static void expect_balance(const struct sample *s, bool by_domain, const uint32_t *want)
{
    uint32_t used[MAX_SLOTS] = {0}, has[MAX_SLOTS] = {0};

    for (uint32_t i = 0; i < s->request.n_slots; i++)
        for (uint32_t j = 0; j < s->request.n_slots; j++) {
            const struct free_slot *a = &s->slots[i], *b = &s->slots[j];

            has[i] += by_domain ? a->domain == b->domain : a->node == b->node;
        }
    for (uint32_t i = 0; i < s->request.n_slots; i++)
        for (uint32_t u = 0; u < s->n_units; u++) {
            const struct free_slot *a = &s->slots[i], *b = &s->slots[want[u]];

            used[i] += by_domain ? a->domain == b->domain : a->node == b->node;
        }
    for (uint32_t i = 0; i < s->request.n_slots; i++)
        for (uint32_t j = 0; j < s->request.n_slots; j++)
            cr_assert(used[i] <= used[j] + 1 || used[j] == has[j]);
}

Test(placement, spreads_evenly_over_nodes_and_over_domains)
{
    struct prng p = {3};

    for (int round = 0; round < 300; round++) {
        uint32_t pool[MAX_SLOTS], nodes[MAX_SLOTS], domains[MAX_SLOTS];
        struct sample s;

        draw_sample(&s, &p);
        for (uint32_t i = 0; i < MAX_SLOTS; i++)
            pool[i] = i;
        deal(&s, false, pool, nodes);
        s.request.spread = PLIANT_SPREAD_NODES;
        expect_positions(&s, nodes, round);
        expect_balance(&s, false, nodes);
        deal(&s, true, nodes, domains);
        s.request.spread = PLIANT_SPREAD_DOMAINS;
        s.request.prefer_minimal_nodes = true; /* spread wins */
        expect_positions(&s, domains, round);
        expect_balance(&s, true, domains);
        drop_sample(&s);
    }
}

/* ---- with history ------------------------------------------------------------------------- */

static uint32_t max_of(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t min_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* What vertex v's new subtask scores for its old subtask j, word by word. */
static uint64_t pair_score(const struct sample *s, uint32_t v, uint32_t subtask, uint32_t j)
{
    uint32_t max = s->max_parallelism[v];
    struct range to = key_groups_range(max, s->parallelism[v], subtask);
    struct range from = key_groups_range(max, s->old_parallelism[v], j);
    uint64_t bytes = s->entries[s->first[v] + j].bytes, size = from.last - from.first + 1;
    uint32_t first = max_of(to.first, from.first), last = min_of(to.last, from.last);

    if (first > last)
        return 0;
    if (bytes == 0)
        return 1;
    return (last - first + 1) * (bytes / (bytes < size ? bytes : size));
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* score[unit][position] */
static void score_all(const struct sample *s, uint64_t score[][MAX_SLOTS])
{
    uint32_t unit = 0;

    memset(score, 0, sizeof(uint64_t[MAX_SLOTS][MAX_SLOTS]));
    for (uint32_t g = 0; g < s->bounds.n_groups; g++)
        for (uint32_t i = 0; i < s->group_slots[g]; i++, unit++)
            for (uint32_t v = 0; v < s->bounds.n_vertices; v++)
                for (uint32_t j = 0; j < s->old_parallelism[v]; j++)
                    for (uint32_t at = 0; at < s->request.n_slots; at++)
                        if (s->group_of[v] == g && i < s->parallelism[v] &&
                            s->entries[s->first[v] + j].slot == s->slots[at].slot)
                            score[unit][at] = add_up(score[unit][at], pair_score(s, v, i, j));
}

/* The best pair again and again, ties by slot, then unit; the rest in order. */
static void choose_greedily(const struct sample *s, uint64_t score[][MAX_SLOTS], uint32_t *want)
{
    bool taken[MAX_SLOTS] = {false}, placed[MAX_SLOTS] = {false};

    for (;;) {
        uint64_t best = 0;
        uint32_t best_at = 0, best_unit = 0;

        for (uint32_t at = 0; at < s->request.n_slots; at++)
            for (uint32_t unit = 0; unit < s->n_units; unit++)
                if (!taken[at] && !placed[unit] && score[unit][at] > best) {
                    best = score[unit][at];
                    best_at = at;
                    best_unit = unit;
                }
        if (best == 0)
            break;
        taken[best_at] = placed[best_unit] = true;
        want[best_unit] = best_at;
    }
    for (uint32_t unit = 0, at = 0; unit < s->n_units; unit++) {
        if (placed[unit])
            continue;
        while (taken[at])
            at++;
        want[unit] = at++;
    }
}

struct scores_seen {
    const struct sample *s;
    uint64_t (*want)[MAX_SLOTS];
    uint32_t next; /* unit * MAX_SLOTS + position that comes next at the earliest */
    size_t n;
};

static void see_score(void *ctx, uint32_t unit, uint32_t slot, uint64_t score)
{
    struct scores_seen *seen = ctx;
    uint32_t at = 0;

    while (seen->s->slots[at].slot != slot)
        at++;
    cr_assert(ge(u32, unit * MAX_SLOTS + at, seen->next));
    cr_assert(eq(u64, score, seen->want[unit][at]));
    seen->next = unit * MAX_SLOTS + at + 1;
    seen->n++;
}

static void expect_scores(const struct sample *s, uint64_t score[][MAX_SLOTS])
{
    struct scores_seen seen = {.s = s, .want = score};
    size_t n = 0;

    for (uint32_t unit = 0; unit < s->n_units; unit++)
        for (uint32_t at = 0; at < s->request.n_slots; at++)
            n += score[unit][at] > 0;
    cr_assert(eq(int, allocator_scores(&s->request, NULL, see_score, &seen), 0));
    cr_assert(eq(sz, seen.n, n));
}

/* [S-LOC-1] [S-LOC-2] [S-LOC-3] [S-LOC-4] */
Test(placement, puts_units_where_most_of_their_state_is_greedily)
{
    static uint64_t score[MAX_SLOTS][MAX_SLOTS];
    struct prng p = {4};

    for (int round = 0; round < 1000; round++) {
        uint32_t want[MAX_SLOTS];
        struct sample s;

        draw_sample(&s, &p);
        draw_history(&s, &p);
        s.request.prefer_minimal_nodes = draw(&p, 0, 1); /* locality comes first */
        s.request.spread =
            s.history.n_entries > 0 && draw(&p, 0, 1) ? PLIANT_SPREAD_NODES : PLIANT_SPREAD_NONE;
        if (s.history.n_entries > 0) {
            score_all(&s, score);
            choose_greedily(&s, score, want);
            expect_positions(&s, want, round);
            expect_scores(&s, score);
        }
        drop_sample(&s);
    }
}

/* One group of one vertex, `n` slots of one node each; subtask i ran in slot old[i]. */
static void one_vertex(struct sample *s, uint32_t n_slots, uint32_t want, uint32_t n_old,
                       const uint32_t *old, const uint64_t *bytes)
{
    memset(s, 0, sizeof *s);
    cr_assert(eq(int, bounds_init(&s->bounds, 1, 1, s->group_of, NULL), 0));
    s->bounds.vertices[0] = (struct vertex_bounds){1, want};
    bounds_refresh(&s->bounds);
    s->max_parallelism[0] = 128;
    s->old_parallelism[0] = n_old;
    for (uint32_t i = 0; i < n_slots; i++)
        s->slots[i] = (struct free_slot){i, i, 0};
    for (uint32_t i = 0; i < n_old; i++)
        s->entries[i] = (struct history_entry){old[i], bytes ? bytes[i] : 0};
    s->history = (struct history){s->old_parallelism, s->first, s->entries, n_old};
    s->request = (struct placement_request){
        .bounds = &s->bounds,
        .parallelism = s->parallelism,
        .group_slots = s->group_slots,
        .max_parallelism = s->max_parallelism,
        .slots = s->slots,
        .n_slots = n_slots,
        .history = &s->history,
    };
    cr_assert(allocator_parallelism(&s->bounds, n_slots, s->group_slots, s->parallelism));
    s->n_units = s->group_slots[0];
}

Test(placement, leaves_every_subtask_where_it_was_without_state_at_the_same_parallelism)
{
    static const uint32_t old[] = {4, 2, 0, 3, 1, 5};
    struct sample s;

    one_vertex(&s, 6, 6, 6, old, NULL); /* [S-LOC-5] */
    expect_positions(&s, old, 0);
    drop_sample(&s);
}

Test(placement, prefers_the_slot_with_more_state_when_scaling_down) /* [S-LOC-3] */
{
    static const uint32_t old[] = {0, 1}, want[] = {1};
    static const uint64_t bytes[] = {1, 200};
    struct sample s;

    one_vertex(&s, 2, 1, 2, old, bytes);
    expect_positions(&s, want, 0);
    drop_sample(&s);
}

Test(placement, uses_old_slots_first_when_scaling_up_and_wastes_none) /* [S-LOC-4] */
{
    static const uint32_t old[] = {0, 1}, want[] = {0, 2, 1, 3};
    static const uint64_t bytes[] = {100, 100};
    struct sample s;

    one_vertex(&s, 4, 4, 2, old, bytes);
    expect_positions(&s, want, 0);
    drop_sample(&s);
}

Test(placement, weighs_whole_bytes_a_key_group_and_stops_at_the_largest_number) /* [S-LOC-3] */
{
    static const struct {
        uint64_t bytes[2];
        uint64_t score; /* of the one new subtask for slot 0, where both old ones were */
    } rows[] = {
        {{0, 0}, 2},
        {{500, 0}, 449}, /* 7 bytes in each of 64 key groups, and 1 */
        {{63, 64}, 128}, /* never less than 1 a key group */
        {{UINT64_C(6400000000), 0}, UINT64_C(6400000001)},
        {{UINT64_MAX, UINT64_MAX}, UINT64_MAX},
    };
    static const uint32_t old[] = {0, 0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t want[MAX_SLOTS][MAX_SLOTS] = {{rows[i].score}};
        struct sample s;

        one_vertex(&s, 1, 1, 2, old, rows[i].bytes);
        expect_scores(&s, want);
        drop_sample(&s);
    }
}

/* ---- structure, and no memory ------------------------------------------------------------- */

Test(placement, uses_no_slot_twice_and_only_offered_ones) /* [S-PAR-10] */
{
    struct prng p = {5};

    for (int round = 0; round < 300; round++) {
        uint32_t got[MAX_SLOTS], uses;
        struct sample s;

        draw_sample(&s, &p);
        if (draw(&p, 0, 1))
            draw_history(&s, &p);
        s.request.spread = (enum pliant_spread)draw(&p, 0, 2);
        s.request.prefer_minimal_nodes = draw(&p, 0, 1);
        cr_assert(eq(int, allocator_place(&s.request, NULL, got), 0));
        uses = 0;
        for (uint32_t i = 0; i < s.request.n_slots; i++) {
            uint32_t here = 0;

            for (uint32_t unit = 0; unit < s.n_units; unit++)
                here += got[unit] == s.slots[i].slot;
            cr_assert(le(u32, here, 1));
            uses += here;
        }
        cr_assert(eq(u32, uses, s.n_units));
        drop_sample(&s);
    }
}

static void ignore_score(void *ctx, uint32_t unit, uint32_t slot, uint64_t score)
{
    (void)ctx;
    (void)unit;
    (void)slot;
    (void)score;
}

/* 1,000 slots of 500 nodes that take turns, and units for 10 of them. */
Test(placement, copes_with_many_nodes_whose_slots_do_not_come_together) /* [S-LOC-6] */
{
    enum { SLOTS = 1000, NODES = 500, UNITS = 10 };
    static struct free_slot slots[SLOTS];
    uint32_t got[UNITS];
    int rc = -ENOMEM;
    struct sample s;

    one_vertex(&s, UNITS, UNITS, 0, NULL, NULL);
    for (uint32_t i = 0; i < SLOTS; i++)
        slots[i] = (struct free_slot){i, (NODES - i % NODES) << 16, i % 2};
    s.request.slots = slots;
    s.request.n_slots = SLOTS;
    s.request.prefer_minimal_nodes = true;
    for (size_t k = 1; rc < 0; k++) {
        FAILING_ALLOC(f, k);

        rc = allocator_place(&s.request, &f.hook, got);
        cr_assert(eq(sz, f.live, 0));
    }
    for (uint32_t i = 0; i < UNITS; i++)
        cr_expect(eq(u32, got[i], i / 2 + i % 2 * NODES), "two of each node, unit %u", i);
    s.request.spread = PLIANT_SPREAD_DOMAINS;
    cr_assert(eq(int, allocator_place(&s.request, NULL, got), 0));
    for (uint32_t i = 0; i < UNITS; i++)
        cr_expect(eq(u32, got[i], i), "a node each, unit %u", i);
    drop_sample(&s);
}

/* Let the k-th allocation fail, for each k that there is. */
static void exhaust(struct sample *s, bool scores)
{
    int rc = -ENOMEM;

    for (size_t k = 1; rc < 0; k++) {
        FAILING_ALLOC(f, k);
        uint32_t got[MAX_SLOTS];

        rc = scores ? allocator_scores(&s->request, &f.hook, ignore_score, NULL)
                    : allocator_place(&s->request, &f.hook, got);
        cr_assert(rc == 0 || rc == -ENOMEM);
        cr_assert(eq(sz, f.live, 0));
        cr_assert(rc == 0 || f.calls >= k);
    }
}

Test(placement, says_when_there_is_no_memory_and_leaks_none)
{
    struct prng p = {6};
    struct sample s;

    do {
        draw_sample(&s, &p);
        draw_history(&s, &p);
        if (s.n_units < s.request.n_slots && s.n_units > 20 && s.history.n_entries > 0)
            break;
        drop_sample(&s);
    } while (true);
    exhaust(&s, false);
    exhaust(&s, true);
    s.request.history = NULL;
    exhaust(&s, true);
    s.request.prefer_minimal_nodes = true;
    exhaust(&s, false);
    s.request.spread = PLIANT_SPREAD_NODES;
    exhaust(&s, false);
    s.request.spread = PLIANT_SPREAD_DOMAINS;
    exhaust(&s, false);
    drop_sample(&s);
}

/* place.c - which slots: pool order, fewest nodes, spread; see allocator.h
 *
 * Everything here is counting: slots fall into buckets (nodes or domains) that are numbered by
 * first appearance, and an order of slots comes from where the buckets' parts begin. O(slots).
 */
#include "allocator/place.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "allocator/number_map.h"

/* Slots by node or domain. */
struct buckets {
    uint32_t *of;   /* [n_slots] bucket of each slot */
    uint32_t *size; /* [n] */
    uint32_t n;
};

uint32_t place_units(const struct placement_request *request)
{
    uint64_t n = 0;

    for (uint32_t g = 0; g < request->bounds->n_groups; g++)
        n += request->group_slots[g];
    assert(n <= request->n_slots);
    return (uint32_t)n;
}

bool place_has_history(const struct placement_request *request)
{
    return request->history && request->history->n_entries > 0;
}

static void buckets_free(struct buckets *b, const struct pliant_alloc *a)
{
    mem_free(a, b->of);
    mem_free(a, b->size);
}

static uint32_t key_of(const struct free_slot *slot, enum pliant_spread by)
{
    return by == PLIANT_SPREAD_DOMAINS ? slot->domain : slot->node;
}

/* Bucket of `key`, made when it is new. */
static uint32_t bucket_of(struct buckets *b, const struct number_map *numbers, uint32_t key)
{
    struct number_cell *cell = number_map_cell(numbers, key);

    if (cell->number == NUMBER_NONE) {
        *cell = (struct number_cell){key, b->n};
        b->size[b->n++] = 0;
    }
    return cell->number;
}

static void fill_buckets(struct buckets *b, const struct number_map *numbers,
                         const struct placement_request *r, enum pliant_spread by)
{
    uint32_t last_key = 0, last = 0;

    for (uint32_t i = 0; i < r->n_slots; i++) {
        uint32_t key = key_of(&r->slots[i], by);

        if (i == 0 || key != last_key) /* slots of a node mostly come together */
            last = bucket_of(b, numbers, key);
        last_key = key;
        b->of[i] = last;
        b->size[last]++;
    }
}

static int buckets_init(struct buckets *b, const struct placement_request *r, enum pliant_spread by,
                        const struct pliant_alloc *a)
{
    struct number_map numbers;

    if (number_map_init(&numbers, r->n_slots, a) < 0)
        return -ENOMEM;
    *b = (struct buckets){
        .of = mem_resize(a, NULL, r->n_slots, sizeof *b->of),
        .size = mem_resize(a, NULL, r->n_slots, sizeof *b->size),
    };
    if (b->of && b->size)
        fill_buckets(b, &numbers, r, by);
    number_map_free(&numbers, a);
    if (b->of && b->size)
        return 0;
    buckets_free(b, a);
    return -ENOMEM;
}

/* Where each bucket begins when the largest come first, ties by first appearance: begin[n]. The
 * buckets of one size lie together, so at[size] is where the next of them begins. */
static void begin_largest_first(const struct buckets *b, uint32_t n_slots, uint32_t *at,
                                uint32_t *begin)
{
    uint32_t next = 0;

    memset(at, 0, ((size_t)n_slots + 1) * sizeof *at);
    for (uint32_t i = 0; i < b->n; i++)
        at[b->size[i]] += b->size[i];
    for (uint32_t size = n_slots + 1; size-- > 0;) {
        uint32_t slots = at[size];

        at[size] = next;
        next += slots;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        begin[i] = at[b->size[i]];
        at[b->size[i]] += b->size[i];
    }
}

/* The fullest nodes first, so that the others can go. [S-LOC-6] */
static int place_on_fewest_nodes(const struct placement_request *r, uint32_t n_units,
                                 const struct pliant_alloc *a, uint32_t *unit_slots)
{
    size_t n = r->n_slots;
    uint32_t *at = mem_resize(a, NULL, 2 * n + 1, sizeof *at), *begin;
    struct buckets nodes;

    if (!at)
        return -ENOMEM;
    if (buckets_init(&nodes, r, PLIANT_SPREAD_NODES, a) < 0) {
        mem_free(a, at);
        return -ENOMEM;
    }
    begin = at + n + 1;
    begin_largest_first(&nodes, r->n_slots, at, begin);
    for (uint32_t i = 0; i < r->n_slots; i++) {
        uint32_t unit = begin[nodes.of[i]]++;

        if (unit < n_units)
            unit_slots[unit] = r->slots[i].slot;
    }
    buckets_free(&nodes, a);
    mem_free(a, at);
    return 0;
}

/* Slots `in` (indices), bucket by bucket: out[n]. begin[bucket] is left at the bucket's end. */
static void gather(const struct buckets *b, const uint32_t *in, uint32_t n, uint32_t *begin,
                   uint32_t *out)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        begin[i] = next;
        next += b->size[i];
    }
    for (uint32_t i = 0; i < n; i++)
        out[begin[b->of[in[i]]]++] = in[i];
}

/* Where each round begins: a bucket takes part in as many rounds as it has slots. */
static void begin_rounds(const struct buckets *b, uint32_t n, uint32_t *begin)
{
    uint32_t next = 0, taking_part = b->n;

    memset(begin, 0, ((size_t)n + 1) * sizeof *begin);
    for (uint32_t i = 0; i < b->n; i++)
        begin[b->size[i]]++; /* so many drop out before that round */
    for (uint32_t round = 0; round < n; round++) {
        taking_part -= begin[round];
        begin[round] = next;
        next += taking_part;
    }
}

/* Reorder order[n] (indices of slots): in each round one slot of every bucket that has one left,
 * buckets by first appearance. `scratch` has room for 2 * n + 1. */
static void round_robin(const struct buckets *b, uint32_t n, uint32_t *order, uint32_t *scratch)
{
    uint32_t *gathered = scratch, *begin = scratch + n, at = 0;

    gather(b, order, n, begin, gathered);
    begin_rounds(b, n, begin);
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t round = 0; round < b->size[i]; round++)
            order[begin[round]++] = gathered[at++];
}

static int spread_by(const struct placement_request *r, enum pliant_spread by,
                     const struct pliant_alloc *a, uint32_t *order, uint32_t *scratch)
{
    struct buckets buckets;

    if (buckets_init(&buckets, r, by, a) < 0)
        return -ENOMEM;
    round_robin(&buckets, r->n_slots, order, scratch);
    buckets_free(&buckets, a);
    return 0;
}

/* Evenly over nodes; and over domains, and within each over its nodes. */
static int place_spread(const struct placement_request *r, uint32_t n_units,
                        const struct pliant_alloc *a, uint32_t *unit_slots)
{
    size_t n = r->n_slots;
    uint32_t *order = mem_resize(a, NULL, 3 * n + 1, sizeof *order);
    int rc;

    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->n_slots; i++)
        order[i] = i;
    rc = spread_by(r, PLIANT_SPREAD_NODES, a, order, order + n);
    if (rc == 0 && r->spread == PLIANT_SPREAD_DOMAINS)
        rc = spread_by(r, PLIANT_SPREAD_DOMAINS, a, order, order + n);
    for (uint32_t unit = 0; rc == 0 && unit < n_units; unit++)
        unit_slots[unit] = r->slots[order[unit]].slot;
    mem_free(a, order);
    return rc;
}

static int place_in_pool_order(const struct placement_request *r, uint32_t n_units,
                               uint32_t *unit_slots)
{
    for (uint32_t unit = 0; unit < n_units; unit++)
        unit_slots[unit] = r->slots[unit].slot;
    return 0;
}

int allocator_place(const struct placement_request *request, const struct pliant_alloc *a,
                    uint32_t *unit_slots)
{
    uint32_t n_units = place_units(request);

    if (n_units == 0)
        return 0;
    if (place_has_history(request))
        return place_by_locality(request, n_units, a, unit_slots);
    if (request->spread != PLIANT_SPREAD_NONE)
        return place_spread(request, n_units, a, unit_slots);
    if (request->prefer_minimal_nodes && n_units < request->n_slots)
        return place_on_fewest_nodes(request, n_units, a, unit_slots);
    return place_in_pool_order(request, n_units, unit_slots);
}

/* place.c - which slots: pool order, fewest nodes, spread; see allocator.h
 *
 * Slots fall into buckets (nodes or domains), numbered by first appearance. Every order of slots
 * here comes from counting where the buckets' parts begin: O(slots), no comparison. Slots of a
 * node mostly come together, so a bucket is a list of runs.
 */
#include "allocator/place.h"

#include <assert.h>
#include <errno.h>

#include "allocator/number_map.h"
#include "util/vec.h"

#define NO_RUN UINT32_MAX

enum { ROOM_LEAST = 64 };

/* Slots of one bucket that follow each other in a sequence: n from `first` on. */
struct run {
    uint32_t first, n;
    uint32_t next; /* the bucket's next run, or NO_RUN */
};

struct bucket {
    uint32_t size; /* slots */
    uint32_t first_run, last_run;
};

struct buckets {
    struct VEC(struct run) runs;
    struct VEC(struct bucket) all;
};

/* Slots in some order: order[n] holds indices of slots[]; NULL: as they are. */
struct sequence {
    const struct free_slot *slots;
    const uint32_t *order;
    uint32_t n;
};

uint32_t place_units(const struct placement_request *request)
{
    uint64_t n = 0;

    for (uint32_t g = 0; g < request->bounds->n_groups; g++)
        n += request->group_slots[g];
    assert(n > 0 && n <= request->n_slots); /* no bound is below 1 */
    return (uint32_t)n;
}

bool place_has_history(const struct placement_request *request)
{
    return request->history && request->history->n_entries > 0;
}

/* ---- buckets ---------------------------------------------------------------------------- */

static uint32_t index_at(const struct sequence *s, uint32_t i)
{
    return s->order ? s->order[i] : i;
}

static uint32_t key_at(const struct sequence *s, uint32_t i, enum pliant_spread by)
{
    const struct free_slot *slot = &s->slots[index_at(s, i)];

    return by == PLIANT_SPREAD_DOMAINS ? slot->domain : slot->node;
}

/* Where the run that begins at `first` ends. */
static inline uint32_t end_of_run(const struct sequence *s, uint32_t first, enum pliant_spread by)
{
    uint32_t key = key_at(s, first, by), end = first + 1;

    while (end < s->n && key_at(s, end, by) == key)
        end++;
    return end;
}

static void add_run(struct buckets *b, uint32_t bucket_number, uint32_t first, uint32_t n)
{
    struct bucket *bucket = &b->all.v[bucket_number];
    uint32_t number = (uint32_t)b->runs.n++;

    b->runs.v[number] = (struct run){first, n, NO_RUN};
    if (bucket->size == 0)
        bucket->first_run = number;
    else
        b->runs.v[bucket->last_run].next = number;
    bucket->last_run = number;
    bucket->size += n;
}

/* Room for one run and one bucket more. */
static bool make_room(struct buckets *b, const struct pliant_alloc *a)
{
    if (b->runs.n == b->runs.cap && !vec_reserve(a, &b->runs, 2 * b->runs.cap + ROOM_LEAST))
        return false;
    return b->all.n < b->all.cap || vec_reserve(a, &b->all, 2 * b->all.cap + ROOM_LEAST);
}

static int fill_buckets(struct buckets *b, struct number_map *numbers, const struct sequence *s,
                        enum pliant_spread by, const struct pliant_alloc *a)
{
    for (uint32_t i = 0, end; i < s->n; i = end) {
        uint32_t bucket = number_map_put(numbers, key_at(s, i, by), (uint32_t)b->all.n, a);

        if (bucket == NUMBER_NONE || !make_room(b, a))
            return -ENOMEM;
        if (bucket == b->all.n)
            b->all.v[b->all.n++].size = 0;
        end = by == PLIANT_SPREAD_DOMAINS ? end_of_run(s, i, PLIANT_SPREAD_DOMAINS)
                                          : end_of_run(s, i, PLIANT_SPREAD_NODES);
        add_run(b, bucket, i, end - i);
    }
    return 0;
}

static void buckets_free(struct buckets *b, const struct pliant_alloc *a)
{
    vec_free(a, &b->runs);
    vec_free(a, &b->all);
}

static int buckets_init(struct buckets *b, const struct sequence *s, enum pliant_spread by,
                        const struct pliant_alloc *a)
{
    struct number_map numbers;
    int rc = number_map_init(&numbers, 0, a);

    *b = (struct buckets){0};
    if (rc < 0)
        return rc;
    rc = fill_buckets(b, &numbers, s, by, a);
    number_map_free(&numbers, a);
    if (rc < 0)
        buckets_free(b, a);
    return rc;
}

static uint32_t largest_size(const struct buckets *b)
{
    uint32_t largest = 0;

    for (uint32_t i = 0; i < b->all.n; i++)
        if (largest < b->all.v[i].size)
            largest = b->all.v[i].size;
    return largest;
}

/* ---- orders: the first `limit` indices of slots into out[] -------------------------------- */

/* Where each size's buckets begin when the largest come first: at[largest + 1]. */
static void begin_sizes(const struct buckets *b, uint32_t largest, uint32_t *at)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < b->all.n; i++)
        at[b->all.v[i].size] += b->all.v[i].size;
    for (uint32_t size = largest + 1; size-- > 0;) {
        uint32_t slots = at[size];

        at[size] = next;
        next += slots;
    }
}

static void put_bucket(const struct buckets *b, const struct bucket *bucket,
                       const struct sequence *s, uint32_t at, uint32_t limit, uint32_t *out)
{
    for (uint32_t r = bucket->first_run; r != NO_RUN; r = b->runs.v[r].next) {
        const struct run *run = &b->runs.v[r];

        for (uint32_t i = run->first; i < run->first + run->n && at < limit; i++)
            out[at++] = index_at(s, i);
    }
}

/* Bucket after bucket, the largest first, equal ones by first appearance. */
static int order_largest_first(const struct sequence *s, enum pliant_spread by,
                               const struct pliant_alloc *a, uint32_t limit, uint32_t *out)
{
    struct buckets b;
    uint32_t largest, *at;

    if (buckets_init(&b, s, by, a) < 0)
        return -ENOMEM;
    largest = largest_size(&b);
    at = mem_zero(a, (size_t)largest + 1, sizeof *at);
    if (at) {
        begin_sizes(&b, largest, at);
        for (uint32_t i = 0; i < b.all.n; i++) {
            put_bucket(&b, &b.all.v[i], s, at[b.all.v[i].size], limit, out);
            at[b.all.v[i].size] += b.all.v[i].size;
        }
    }
    mem_free(a, at);
    buckets_free(&b, a);
    return at ? 0 : -ENOMEM;
}

/* Where each round begins: a bucket takes part in as many rounds as it has slots. */
static void begin_rounds(const struct buckets *b, uint32_t rounds, uint32_t *at)
{
    uint32_t next = 0, taking_part = (uint32_t)b->all.n;

    for (uint32_t i = 0; i < b->all.n; i++)
        at[b->all.v[i].size]++; /* so many drop out before that round */
    for (uint32_t round = 0; round < rounds; round++) {
        taking_part -= at[round];
        at[round] = next;
        next += taking_part;
    }
}

/* One slot of the bucket for each round, as long as it has any. */
static void deal_bucket(const struct buckets *b, const struct bucket *bucket,
                        const struct sequence *s, uint32_t *at, uint32_t limit, uint32_t *out)
{
    uint32_t round = 0;

    for (uint32_t r = bucket->first_run; r != NO_RUN; r = b->runs.v[r].next) {
        const struct run *run = &b->runs.v[r];

        for (uint32_t i = 0; i < run->n; i++) {
            uint32_t to = at[round++]++;

            if (to < limit)
                out[to] = index_at(s, run->first + i);
        }
    }
}

/* In each round one slot of every bucket that has one left, buckets by first appearance. */
static int order_round_robin(const struct sequence *s, enum pliant_spread by,
                             const struct pliant_alloc *a, uint32_t limit, uint32_t *out)
{
    struct buckets b;
    uint32_t rounds, *at;

    if (buckets_init(&b, s, by, a) < 0)
        return -ENOMEM;
    rounds = largest_size(&b);
    at = mem_zero(a, (size_t)rounds + 1, sizeof *at);
    if (at) {
        begin_rounds(&b, rounds, at);
        for (uint32_t i = 0; i < b.all.n; i++)
            deal_bucket(&b, &b.all.v[i], s, at, limit, out);
    }
    mem_free(a, at);
    buckets_free(&b, a);
    return at ? 0 : -ENOMEM;
}

/* ---- ways to place: each fills unit_slots[n_units] with indices of slots ------------------- */

/* Evenly over domains, and within each over its nodes. */
static int spread_domains(const struct sequence *slots, const struct pliant_alloc *a,
                          uint32_t n_units, uint32_t *unit_slots)
{
    uint32_t *order = mem_resize(a, NULL, slots->n, sizeof *order);
    struct sequence by_node = {slots->slots, order, slots->n};
    int rc;

    if (!order)
        return -ENOMEM;
    rc = order_round_robin(slots, PLIANT_SPREAD_NODES, a, slots->n, order);
    if (rc == 0)
        rc = order_round_robin(&by_node, PLIANT_SPREAD_DOMAINS, a, n_units, unit_slots);
    mem_free(a, order);
    return rc;
}

static int pool_order(uint32_t n_units, uint32_t *unit_slots)
{
    for (uint32_t unit = 0; unit < n_units; unit++)
        unit_slots[unit] = unit;
    return 0;
}

static int place_anywhere(const struct placement_request *r, uint32_t n_units,
                          const struct pliant_alloc *a, uint32_t *unit_slots)
{
    struct sequence slots = {r->slots, NULL, r->n_slots};

    switch (r->spread) {
    case PLIANT_SPREAD_NODES:
        return order_round_robin(&slots, PLIANT_SPREAD_NODES, a, n_units, unit_slots);
    case PLIANT_SPREAD_DOMAINS:
        return spread_domains(&slots, a, n_units, unit_slots);
    case PLIANT_SPREAD_NONE:
        break;
    }
    if (r->prefer_minimal_nodes && n_units < r->n_slots) /* [S-LOC-6] */
        return order_largest_first(&slots, PLIANT_SPREAD_NODES, a, n_units, unit_slots);
    return pool_order(n_units, unit_slots);
}

int allocator_place(const struct placement_request *request, const struct pliant_alloc *a,
                    uint32_t *unit_slots)
{
    uint32_t n_units = place_units(request);
    int rc = place_has_history(request) ? place_by_locality(request, n_units, a, unit_slots)
                                        : place_anywhere(request, n_units, a, unit_slots);

    for (uint32_t unit = 0; rc == 0 && unit < n_units; unit++)
        unit_slots[unit] = request->slots[unit_slots[unit]].slot;
    return rc;
}

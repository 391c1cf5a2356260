/* locality.c - put subtasks where their state is
 *
 * Scores [S-LOC-3]: the key-group ranges of a vertex's old and of its new subtasks are both
 * sorted and without gaps, so one sweep over the two meets every overlapping pair, at most
 * old + new of them. The sweeps of a group's vertices run abreast, unit by unit: what a unit
 * scores on each slot is summed in an array over slots, and only slots that were touched are
 * looked at and cleared. Then the pairs are sorted and taken greedily [S-LOC-4].
 * O(n) for n = overlaps + slots, radix sort included.
 */
#include "allocator/place.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "allocator/number_map.h"
#include "graph/key_groups.h"
#include "util/sort.h"
#include "util/vec.h"

/* One vertex's way through its key groups. */
struct sweep {
    const struct history_entry *entries; /* [old_parallelism] */
    uint32_t max_parallelism;
    uint32_t old_parallelism, parallelism;
    uint32_t first; /* key group where the next new subtask begins */
    /* the old subtask that the sweep has come to */
    uint32_t old;
    struct range old_range;
    uint32_t position; /* of its slot, NUMBER_NONE: gone */
    uint64_t weight;   /* of one key group; 0: no state, any overlap counts 1 */
};

struct locality {
    const struct placement_request *request;
    const struct pliant_alloc *a;
    struct number_map positions; /* slot -> position in request->slots */
    struct sweep *sweeps;        /* [n_vertices] by group */
    uint32_t *group_end;         /* [n_groups] where each group's sweeps end */
    uint64_t *score;             /* [n_slots] of the present unit, 0 outside touched[] */
    uint32_t *touched;           /* [n_slots] positions with a score */
    uint32_t n_touched;
};

/* Given each unit with its scores; touched[] is cleared after it. */
typedef int scored_unit(void *ctx, const struct locality *l, uint32_t unit);

/* ---- one vertex ------------------------------------------------------------------------- */

static uint64_t weight_of(uint64_t bytes, uint32_t key_groups)
{
    if (bytes <= key_groups)
        return bytes > 0;
    if (bytes <= UINT32_MAX) /* the short division is several times faster */
        return (uint32_t)bytes / key_groups;
    return bytes / key_groups;
}

static void come_to(struct sweep *s, const struct number_map *positions, uint32_t old)
{
    const struct history_entry *entry = &s->entries[old];

    s->old = old;
    s->old_range.first = old == 0 ? 0 : s->old_range.last + 1;
    s->old_range.last = key_groups_range(s->max_parallelism, s->old_parallelism, old).last;
    s->position = number_map_get(positions, entry->slot);
    s->weight = weight_of(entry->bytes, s->old_range.last - s->old_range.first + 1);
}

static void add_score(struct locality *l, uint32_t position, uint64_t score)
{
    uint64_t sum = l->score[position];

    if (sum == 0)
        l->touched[l->n_touched++] = position;
    l->score[position] = sum > UINT64_MAX - score ? UINT64_MAX : sum + score;
}

static void score_overlap(struct locality *l, const struct sweep *s, struct range range)
{
    uint32_t first = range.first > s->old_range.first ? range.first : s->old_range.first;
    uint32_t last = range.last < s->old_range.last ? range.last : s->old_range.last;

    if (first <= last && s->position != NUMBER_NONE)
        add_score(l, s->position, s->weight > 0 ? (last - first + 1) * s->weight : 1);
}

/* Score new subtask `subtask`; the one before it was scored last. */
static void score_subtask(struct locality *l, struct sweep *s, uint32_t subtask)
{
    struct range range = {
        .first = s->first,
        .last = key_groups_range(s->max_parallelism, s->parallelism, subtask).last,
    };

    score_overlap(l, s, range);
    while (s->old_range.last < range.last) {
        come_to(s, &l->positions, s->old + 1);
        score_overlap(l, s, range);
    }
    s->first = range.last + 1;
}

/* ---- all units -------------------------------------------------------------------------- */

static int finish_unit(struct locality *l, uint32_t unit, scored_unit *each, void *ctx)
{
    int rc = each(ctx, l, unit);

    for (uint32_t i = 0; i < l->n_touched; i++)
        l->score[l->touched[i]] = 0;
    l->n_touched = 0;
    return rc;
}

/* Score units 0 .. n_units-1 of one group. A sweep that is through leaves the list, so vertices
 * of little parallelism cost little. */
static int score_group(struct locality *l, struct sweep *sweeps, uint32_t n_sweeps,
                       uint32_t first_unit, uint32_t n_units, scored_unit *each, void *ctx)
{
    for (uint32_t subtask = 0; subtask < n_units; subtask++) {
        int rc;

        for (uint32_t i = 0; i < n_sweeps;) {
            if (subtask >= sweeps[i].parallelism) {
                sweeps[i] = sweeps[--n_sweeps];
                continue;
            }
            score_subtask(l, &sweeps[i++], subtask);
        }
        rc = finish_unit(l, first_unit + subtask, each, ctx);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int score_units(struct locality *l, scored_unit *each, void *ctx)
{
    uint32_t first_sweep = 0, first_unit = 0;

    for (uint32_t g = 0; g < l->request->bounds->n_groups; g++) {
        uint32_t n_units = l->request->group_slots[g];
        int rc = score_group(l, &l->sweeps[first_sweep], l->group_end[g] - first_sweep, first_unit,
                             n_units, each, ctx);

        if (rc < 0)
            return rc;
        first_sweep = l->group_end[g];
        first_unit += n_units;
    }
    return 0;
}

/* ---- begin and end ---------------------------------------------------------------------- */

static int number_slots(struct locality *l)
{
    const struct placement_request *r = l->request;

    if (number_map_init(&l->positions, r->n_slots, l->a) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->n_slots; i++)
        number_map_put(&l->positions, r->slots[i].slot, i, l->a); /* there is room */
    return 0;
}

static struct sweep sweep_of(const struct placement_request *r, uint32_t v)
{
    const struct history *h = r->history;

    return (struct sweep){
        .entries = h->entries + h->first[v],
        .max_parallelism = r->max_parallelism[v],
        .old_parallelism = h->parallelism[v],
        .parallelism = r->parallelism[v],
    };
}

/* The vertices' sweeps, group by group; a vertex without earlier subtasks has nothing to score. */
static void start_sweeps(struct locality *l)
{
    const struct placement_request *r = l->request;
    const uint32_t *group_of = r->bounds->group_of;
    uint32_t next = 0;

    for (uint32_t v = 0; v < r->bounds->n_vertices; v++)
        l->group_end[group_of[v]] += r->history->parallelism[v] > 0;
    for (uint32_t g = 0; g < r->bounds->n_groups; g++) {
        uint32_t n = l->group_end[g];

        l->group_end[g] = next;
        next += n;
    }
    for (uint32_t v = 0; v < r->bounds->n_vertices; v++) {
        struct sweep *s;

        if (r->history->parallelism[v] == 0)
            continue;
        assert(key_groups_valid(r->max_parallelism[v], r->history->parallelism[v]));
        s = &l->sweeps[l->group_end[group_of[v]]++];
        *s = sweep_of(r, v);
        come_to(s, &l->positions, 0);
    }
}

static void locality_end(struct locality *l)
{
    number_map_free(&l->positions, l->a);
    mem_free(l->a, l->sweeps);
    mem_free(l->a, l->group_end);
    mem_free(l->a, l->score);
    mem_free(l->a, l->touched);
}

static int locality_begin(struct locality *l, const struct placement_request *r,
                          const struct pliant_alloc *a)
{
    *l = (struct locality){
        .request = r,
        .a = a,
        .sweeps = mem_resize(a, NULL, r->bounds->n_vertices, sizeof *l->sweeps),
        .group_end = mem_zero(a, r->bounds->n_groups, sizeof *l->group_end),
        .score = mem_zero(a, r->n_slots, sizeof *l->score),
        .touched = mem_resize(a, NULL, r->n_slots, sizeof *l->touched),
    };
    if (!l->sweeps || !l->group_end || !l->score || !l->touched || number_slots(l) < 0) {
        locality_end(l);
        return -ENOMEM;
    }
    start_sweeps(l);
    return 0;
}

/* ---- the greedy choice ------------------------------------------------------------------ */

/* Candidates: major = ~score, minor = position of the slot, value = unit; found in order of unit,
 * so sorting puts equal scores in order of slot, then unit [S-LOC-4]. */
struct pairs VEC(struct sort_item);

static int collect(void *ctx, const struct locality *l, uint32_t unit)
{
    struct pairs *p = ctx;

    if (!vec_room(l->a, p, l->n_touched))
        return -ENOMEM;
    for (uint32_t i = 0; i < l->n_touched; i++) {
        uint32_t position = l->touched[i];

        p->v[p->n++] = (struct sort_item){~l->score[position], position, unit};
    }
    return 0;
}

static int sort_pairs(struct pairs *p, const struct pliant_alloc *a)
{
    struct sort_item *scratch;

    if (p->n == 0)
        return 0;
    scratch = mem_resize(a, NULL, p->n, sizeof *scratch);
    if (!scratch)
        return -ENOMEM;
    sort_items(p->v, scratch, p->n);
    mem_free(a, scratch);
    return 0;
}

/* Best pairs first; then the units left over onto the slots left over, both in order. */
static void choose(uint32_t n_slots, const struct pairs *p, uint32_t n_units, uint32_t *taken,
                   uint32_t *unit_slots)
{
    uint32_t next = 0;

    memset(taken, 0, n_slots * sizeof *taken);
    for (uint32_t unit = 0; unit < n_units; unit++)
        unit_slots[unit] = NUMBER_NONE;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t position = p->v[i].minor, unit = p->v[i].value;

        if (taken[position] || unit_slots[unit] != NUMBER_NONE)
            continue;
        taken[position] = 1;
        unit_slots[unit] = position;
    }
    for (uint32_t unit = 0; unit < n_units; unit++) {
        if (unit_slots[unit] != NUMBER_NONE)
            continue;
        while (taken[next])
            next++;
        unit_slots[unit] = next++;
    }
}

int place_by_locality(const struct placement_request *request, uint32_t n_units,
                      const struct pliant_alloc *a, uint32_t *unit_slots)
{
    struct locality l;
    struct pairs pairs = {0};
    int rc = locality_begin(&l, request, a);

    if (rc < 0)
        return rc;
    rc = score_units(&l, collect, &pairs);
    if (rc == 0)
        rc = sort_pairs(&pairs, a);
    if (rc == 0)
        choose(request->n_slots, &pairs, n_units, l.touched, unit_slots);
    vec_free(a, &pairs);
    locality_end(&l);
    return rc;
}

/* ---- scores, for tests ------------------------------------------------------------------ */

struct listing {
    void (*each)(void *ctx, uint32_t unit, uint32_t slot, uint64_t score);
    void *ctx;
    struct sort_item *items; /* [2 * n_slots] */
};

static int list_scores(void *ctx, const struct locality *l, uint32_t unit)
{
    struct listing *listing = ctx;
    struct sort_item *items = listing->items;

    for (uint32_t i = 0; i < l->n_touched; i++)
        items[i] = (struct sort_item){.major = l->touched[i]};
    sort_items(items, items + l->request->n_slots, l->n_touched);
    for (uint32_t i = 0; i < l->n_touched; i++) {
        size_t position = items[i].major;

        listing->each(listing->ctx, unit, l->request->slots[position].slot, l->score[position]);
    }
    return 0;
}

int allocator_scores(const struct placement_request *request, const struct pliant_alloc *a,
                     void (*each)(void *ctx, uint32_t unit, uint32_t slot, uint64_t score),
                     void *ctx)
{
    struct listing listing = {.each = each, .ctx = ctx};
    struct locality l;
    int rc;

    if (!place_has_history(request) || request->n_slots == 0)
        return 0;
    listing.items = mem_resize(a, NULL, request->n_slots, 2 * sizeof *listing.items);
    if (!listing.items)
        return -ENOMEM;
    rc = locality_begin(&l, request, a);
    if (rc == 0) {
        rc = score_units(&l, list_scores, &listing);
        locality_end(&l);
    }
    mem_free(a, listing.items);
    return rc;
}

/* bounds.c - what the job wants, and what it gets of n slots; see allocator.h */
#include "allocator/allocator.h"

#include <assert.h>
#include <errno.h>

int bounds_init(struct bounds *b, uint32_t n_vertices, uint32_t n_groups, const uint32_t *group_of,
                const struct pliant_alloc *a)
{
    *b = (struct bounds){
        .n_vertices = n_vertices,
        .n_groups = n_groups,
        .group_of = group_of,
        .vertices = mem_zero(a, n_vertices, sizeof *b->vertices),
        .groups = mem_zero(a, n_groups, sizeof *b->groups),
        .order = mem_zero(a, n_groups, sizeof *b->order),
        .scratch = mem_zero(a, n_groups, 2 * sizeof *b->scratch),
    };
    if (b->vertices && b->groups && b->order && b->scratch)
        return 0;
    bounds_free(b, a);
    return -ENOMEM;
}

void bounds_free(struct bounds *b, const struct pliant_alloc *a)
{
    mem_free(a, b->vertices);
    mem_free(a, b->groups);
    mem_free(a, b->order);
    mem_free(a, b->scratch);
    *b = (struct bounds){0};
}

static void refresh_groups(struct bounds *b) /* [S-PAR-4] */
{
    for (uint32_t g = 0; g < b->n_groups; g++)
        b->groups[g] = (struct group_bounds){0, 0};
    for (uint32_t v = 0; v < b->n_vertices; v++) {
        struct group_bounds *group = &b->groups[b->group_of[v]];

        if (group->lo < b->vertices[v].min)
            group->lo = b->vertices[v].min;
        if (group->hi < b->vertices[v].want)
            group->hi = b->vertices[v].want;
    }
}

static void refresh_order(struct bounds *b) /* [S-PAR-6] */
{
    struct sort_item *items = b->scratch;

    for (uint32_t g = 0; g < b->n_groups; g++)
        items[g] = (struct sort_item){.major = b->groups[g].hi - b->groups[g].lo, .value = g};
    sort_items(items, items + b->n_groups, b->n_groups);
    for (uint32_t i = 0; i < b->n_groups; i++)
        b->order[i] = items[i].value;
}

void bounds_refresh(struct bounds *b)
{
    refresh_groups(b);
    refresh_order(b);
    b->minimal = 0;
    b->desired = 0;
    for (uint32_t g = 0; g < b->n_groups; g++) {
        assert(b->groups[g].lo <= b->groups[g].hi);
        b->minimal += b->groups[g].lo;
        b->desired += b->groups[g].hi;
    }
}

/* Shares are equal beyond the minima, as far as a group wants more; what a narrow group leaves
 * goes to the wider ones after it. [S-PAR-6] */
static void share_slots(const struct bounds *b, uint32_t optional, uint32_t *group_slots)
{
    uint32_t groups_left = b->n_groups;

    for (uint32_t i = 0; i < b->n_groups; i++) {
        uint32_t g = b->order[i];
        uint32_t range = b->groups[g].hi - b->groups[g].lo;
        uint32_t extra = optional / groups_left--;

        if (extra > range)
            extra = range;
        group_slots[g] = b->groups[g].lo + extra;
        optional -= extra;
    }
}

/* [S-PAR-7]. Backwards, because group_slots may be the head of parallelism itself: groups are
 * numbered by first appearance, so group_of[v] <= v is read before it is overwritten. */
static void cap_vertices(const struct bounds *b, const uint32_t *group_slots, uint32_t *parallelism)
{
    for (uint32_t v = b->n_vertices; v-- > 0;) {
        uint32_t slots = group_slots[b->group_of[v]];
        uint32_t want = b->vertices[v].want;

        parallelism[v] = want < slots ? want : slots;
    }
}

bool allocator_parallelism(const struct bounds *b, uint64_t n_slots, uint32_t *group_slots,
                           uint32_t *parallelism)
{
    if (n_slots < b->minimal) /* [S-PAR-5] */
        return false;
    if (n_slots > b->desired)
        n_slots = b->desired;
    if (!group_slots)
        group_slots = parallelism;
    if (!group_slots)
        return true;
    /* at most PLIANT_MAX_VERTICES groups of PLIANT_MAX_PARALLELISM slots: 32 bits suffice */
    assert(n_slots <= UINT32_MAX);
    share_slots(b, (uint32_t)(n_slots - b->minimal), group_slots);
    if (parallelism)
        cap_vertices(b, group_slots, parallelism);
    return true;
}

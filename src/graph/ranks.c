/* ranks.c - see ranks.h */
#include "graph/ranks.h"

#include <errno.h>
#include <string.h>

#include "util/sort.h"

static const struct pool_node *node_of(const struct pool *p, uint32_t slot_id)
{
    return p->nodes.v[p->slots.v[slot_id - 1].node];
}

static bool preemptible(const struct pool_node *node)
{
    for (size_t i = 0; i < node->n_labels; i++)
        if (strcmp(node->labels[i].key, RANKS_PREEMPTIBLE) == 0)
            return strcmp(node->labels[i].value, "false") != 0;
    return false;
}

/* The sort is stable, so the last thing that counts is sorted by first: the slot, the arrival,
 * the label, the instant, the seat. */
static void sort_ranks(const struct pool *p, struct sort_item *items, struct sort_item *scratch,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct pool_node *node = node_of(p, items[i].value);

        items[i].major = node->arrival;
        items[i].minor = p->slots.v[items[i].value - 1].index;
    }
    sort_items(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct pool_node *node = node_of(p, items[i].value);

        items[i].major = node->seat > 0 ? 0 : (uint64_t)node->joined_at_ms;
        items[i].minor = node->seat > 0 ? 0 : preemptible(node);
    }
    sort_items(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct pool_node *node = node_of(p, items[i].value);

        items[i].major = node->seat > 0 ? node->seat : UINT64_MAX;
        items[i].minor = 0;
    }
    sort_items(items, scratch, n);
}

int ranks_order(const struct pool *p, uint32_t *unit_slots, uint32_t n)
{
    struct sort_item *items = mem_resize(p->alloc, NULL, 2 * (size_t)n + 1, sizeof *items);

    if (!items)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct sort_item){.value = unit_slots[i]};
    sort_ranks(p, items, items + n, n);
    for (uint32_t i = 0; i < n; i++)
        unit_slots[i] = items[i].value;
    mem_free(p->alloc, items);
    return 0;
}

void ranks_take_seats(struct pool *p, const uint32_t *unit_slots, uint32_t n)
{
    uint32_t seat = 0;

    for (size_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.v[i])
            p->nodes.v[i]->seat = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct pool_node *node = p->nodes.v[p->slots.v[unit_slots[i] - 1].node];

        if (node->seat == 0)
            node->seat = ++seat;
    }
}

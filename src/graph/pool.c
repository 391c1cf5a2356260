/* pool.c - see pool.h */
#include "graph/pool.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void pool_init(struct pool *p, const struct pliant_alloc *a)
{
    *p = (struct pool){
        .alloc = a, .unused_slot = POOL_NONE, .idle_first = POOL_NONE, .idle_last = POOL_NONE};
}

static void node_free(struct pool *p, struct pool_node *node)
{
    for (size_t i = 0; i < node->n_labels; i++) {
        mem_free(p->alloc, (void *)(uintptr_t)node->labels[i].key);
        mem_free(p->alloc, (void *)(uintptr_t)node->labels[i].value);
    }
    mem_free(p->alloc, node->labels);
    mem_free(p->alloc, node->name);
    mem_free(p->alloc, node->zone);
    mem_free(p->alloc, node->domain);
    mem_free(p->alloc, node);
}

void pool_bury_slots(struct pool_slot *slots, uint32_t *unused, const struct pool_node *node)
{
    for (uint32_t row = node->first_slot; row != POOL_NONE;) {
        uint32_t next = slots[row].next;

        slots[row] = (struct pool_slot){.node = POOL_NONE, .next = *unused};
        *unused = row;
        row = next;
    }
}

void pool_bury(struct pool *p)
{
    while (p->dead) {
        struct pool_node *node = p->dead;

        p->dead = node->next_dead;
        pool_bury_slots(p->slots.v, &p->unused_slot, node);
        p->nodes.v[node->row] = NULL;
        p->unused_nodes.v[p->unused_nodes.n++] = node->row;
        node_free(p, node);
    }
}

void pool_free(struct pool *p)
{
    const struct pliant_alloc *hash_alloc = p->alloc;

    pool_bury(p);
    HASH_CLEAR(hh, p->by_name);
    for (size_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.v[i])
            node_free(p, p->nodes.v[i]);
    vec_free(p->alloc, &p->nodes);
    vec_free(p->alloc, &p->unused_nodes);
    vec_free(p->alloc, &p->slots);
    vec_free(p->alloc, &p->returning);
}

struct pool_node *pool_find(const struct pool *p, const char *name)
{
    struct pool_node *node;

    HASH_FIND_STR(p->by_name, name, node);
    return node;
}

/* The table keeps the order in which nodes were put in. */
struct pool_node *pool_oldest(const struct pool *p)
{
    return p->by_name;
}

struct pool_node *pool_next(const struct pool_node *node)
{
    return node->hh.next;
}

struct pool_node *pool_node(const struct pool *p, uint32_t row)
{
    return row < p->nodes.n ? p->nodes.v[row] : NULL;
}

/* ---- open slots, in the order in which they became so -------------------------------------- */

/* Free from now on, unless its node leaves; open, unless it is slow. */
static void idle_begin(struct pool *p, uint32_t row, int64_t now_ms)
{
    struct pool_slot *slot = &p->slots.v[row];

    slot->idle_since_ms = now_ms;
    if (pool_slot_free(slot))
        p->n_free_blocked += slot->blocked;
    if (!pool_slot_open(slot))
        return;
    slot->idle_before = p->idle_last;
    slot->idle_after = POOL_NONE;
    if (p->idle_last == POOL_NONE)
        p->idle_first = row;
    else
        p->slots.v[p->idle_last].idle_after = row;
    p->idle_last = row;
}

/* Call it while the slot still counts as free. */
static void idle_end(struct pool *p, uint32_t row)
{
    struct pool_slot *slot = &p->slots.v[row];

    if (pool_slot_free(slot))
        p->n_free_blocked -= slot->blocked;
    if (!pool_slot_open(slot))
        return;
    if (slot->idle_before == POOL_NONE)
        p->idle_first = slot->idle_after;
    else
        p->slots.v[slot->idle_before].idle_after = slot->idle_after;
    if (slot->idle_after == POOL_NONE)
        p->idle_last = slot->idle_before;
    else
        p->slots.v[slot->idle_after].idle_before = slot->idle_before;
    slot->idle_before = slot->idle_after = POOL_NONE;
}

/* ---- joining ---------------------------------------------------------------------------- */

static bool copy_labels(struct pool *p, struct pool_node *node, const struct pliant_label *labels,
                        size_t n)
{
    if (n == 0)
        return true;
    node->labels = mem_zero(p->alloc, n, sizeof *node->labels);
    if (!node->labels)
        return false;
    node->n_labels = n;
    for (size_t i = 0; i < n; i++) {
        node->labels[i].key = mem_text(p->alloc, labels[i].key, PLIANT_NAME_MAX);
        node->labels[i].value = mem_text(p->alloc, labels[i].value, PLIANT_NAME_MAX);
        if (!node->labels[i].key || !node->labels[i].value)
            return false;
    }
    return true;
}

static bool copy_text(struct pool *p, char **ret, const char *text)
{
    *ret = text ? mem_text(p->alloc, text, PLIANT_NAME_MAX) : NULL;
    return *ret || !text;
}

/* A row for the node, and room for the row in the list of unused ones when it is gone again:
 * losing a node must not need memory. */
static bool take_row(struct pool *p, struct pool_node *node)
{
    if (p->unused_nodes.n == 0) {
        if (!vec_push(p->alloc, &p->nodes))
            return false;
        node->row = (uint32_t)(p->nodes.n - 1);
        if (!vec_reserve(p->alloc, &p->unused_nodes, p->nodes.cap)) {
            p->nodes.n--;
            return false;
        }
    } else {
        node->row = p->unused_nodes.v[--p->unused_nodes.n];
    }
    p->nodes.v[node->row] = node;
    return true;
}

static bool slots_reserve(struct pool *p, uint32_t n)
{
    size_t want = p->slots.n + n;

    if (want <= p->slots.cap)
        return true;
    return vec_reserve(p->alloc, &p->slots,
                       want < p->slots.cap * 2 ? p->slots.cap * 2
                       : want < 16             ? 16
                                               : want);
}

static uint32_t slot_row(struct pool *p)
{
    uint32_t row = p->unused_slot;

    if (row == POOL_NONE)
        return (uint32_t)p->slots.n++;
    p->unused_slot = p->slots.v[row].next;
    return row;
}

static void slot_hold(struct pool *p, struct pool_node *node, uint32_t row, int64_t now_ms)
{
    struct pool_slot *slot = &p->slots.v[row];

    slot->held = true;
    slot->leaving = node->draining;
    slot->blocked = node->blocked_until_ms != PLIANT_NEVER;
    idle_begin(p, row, now_ms);
    node->n_slots++;
    p->n_held++;
    p->n_offered += !slot->leaving;
}

static void slot_birth(struct pool *p, struct pool_node *node, int64_t now_ms)
{
    uint32_t row = slot_row(p);
    struct pool_slot *slot = &p->slots.v[row];

    *slot = (struct pool_slot){.node = node->row,
                               .next = POOL_NONE,
                               .idle_before = POOL_NONE,
                               .idle_after = POOL_NONE,
                               .index = node->n_rows++,
                               .born = ++p->births};
    if (node->last_slot == POOL_NONE)
        node->first_slot = row;
    else
        p->slots.v[node->last_slot].next = row;
    node->last_slot = row;
    slot_hold(p, node, row, now_ms);
}

int pool_grant(struct pool *p, struct pool_node *node, int64_t now_ms, uint32_t slots)
{
    if (!slots_reserve(p, slots))
        return -ENOMEM;
    for (uint32_t row = node->first_slot;
         slots > 0 && node->n_slots < node->n_rows && row != POOL_NONE; row = p->slots.v[row].next)
        if (!p->slots.v[row].held) {
            slot_hold(p, node, row, now_ms);
            slots--;
        }
    for (; slots > 0; slots--)
        slot_birth(p, node, now_ms);
    return 0;
}

static int node_index(struct pool *p, struct pool_node *node)
{
    const struct pliant_alloc *hash_alloc = p->alloc;

    HASH_ADD_KEYPTR(hh, p->by_name, node->name, strlen(node->name), node);
    return node->hh.tbl ? 0 : -ENOMEM;
}

static int by_arrival(const struct pool_node *a, const struct pool_node *b)
{
    return (a->arrival > b->arrival) - (a->arrival < b->arrival);
}

int pool_index(struct pool *p)
{
    for (size_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.v[i] && node_index(p, p->nodes.v[i]) < 0)
            return -ENOMEM;
    HASH_SORT(p->by_name, by_arrival);
    return 0;
}

static int node_enroll(struct pool *p, struct pool_node *node)
{
    if (!take_row(p, node))
        return -ENOMEM;
    if (node_index(p, node) < 0) {
        p->nodes.v[node->row] = NULL;
        p->unused_nodes.v[p->unused_nodes.n++] = node->row;
        return -ENOMEM;
    }
    return 0;
}

int pool_join(struct pool *p, int64_t now_ms, uint64_t incarnation, const char *name,
              const char *zone, const char *domain, const struct pliant_label *labels,
              size_t n_labels, uint32_t slots, struct pool_node **ret)
{
    struct pool_node *node = mem_zero(p->alloc, 1, sizeof *node);

    if (!node)
        return -ENOMEM;
    node->incarnation = incarnation;
    node->first_slot = node->last_slot = POOL_NONE;
    node->drain_end_at_ms = node->reclaim_end_at_ms = node->blocked_until_ms = PLIANT_NEVER;
    node->joined_at_ms = now_ms;
    node->arrival = ++p->births;
    if (!slots_reserve(p, slots) || !copy_text(p, &node->name, name) ||
        !copy_text(p, &node->zone, zone) || !copy_text(p, &node->domain, domain) ||
        !copy_labels(p, node, labels, n_labels) || node_enroll(p, node) < 0) {
        node_free(p, node);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < slots; i++)
        slot_birth(p, node, now_ms);
    p->n_nodes++;
    *ret = node;
    return 0;
}

/* ---- leaving ---------------------------------------------------------------------------- */

/* A slot that stays after all is offered anew: it has not been idle until now. */
static void slot_leave(struct pool *p, uint32_t row, bool leaving, int64_t now_ms)
{
    struct pool_slot *slot = &p->slots.v[row];
    uint32_t change = leaving ? 1u : UINT32_MAX;

    if (slot->leaving == leaving)
        return;
    if (leaving)
        idle_end(p, row);
    slot->leaving = leaving;
    if (slot->held)
        p->n_offered -= change;
    if (slot->live > 0)
        p->n_used_leaving += change;
    if (!leaving)
        idle_begin(p, row, now_ms);
}

void pool_drain(struct pool *p, struct pool_node *node, bool draining, int64_t now_ms)
{
    if (node->draining == draining)
        return;
    node->draining = draining;
    p->n_draining += draining ? 1u : UINT32_MAX;
    for (uint32_t row = node->first_slot; row != POOL_NONE; row = p->slots.v[row].next)
        slot_leave(p, row, draining || p->slots.v[row].reclaimed, now_ms);
}

/* ---- slow nodes ------------------------------------------------------------------------- */

/* Slots that are open again have not been idle until now. */
static void node_block(struct pool *p, struct pool_node *node, bool blocked, int64_t now_ms)
{
    p->n_blocked += blocked ? 1u : UINT32_MAX;
    for (uint32_t row = node->first_slot; row != POOL_NONE; row = p->slots.v[row].next) {
        idle_end(p, row);
        p->slots.v[row].blocked = blocked;
        idle_begin(p, row, now_ms);
    }
}

void pool_block(struct pool *p, struct pool_node *node, int64_t now_ms, int64_t until_ms)
{
    if (until_ms == PLIANT_NEVER)
        until_ms--; /* ... is what says that it is not blocked */
    if (node->blocked_until_ms == PLIANT_NEVER)
        node_block(p, node, true, now_ms);
    else if (until_ms < node->blocked_until_ms)
        return;
    node->blocked_until_ms = until_ms;
}

int64_t pool_unblock(struct pool *p, int64_t now_ms)
{
    int64_t next_ms = PLIANT_NEVER;

    for (size_t row = 0; p->n_blocked > 0 && row < p->nodes.n; row++) {
        struct pool_node *node = p->nodes.v[row];

        if (!node || node->blocked_until_ms == PLIANT_NEVER)
            continue;
        if (node->blocked_until_ms <= now_ms) {
            node_block(p, node, false, now_ms);
            node->blocked_until_ms = PLIANT_NEVER;
        } else if (node->blocked_until_ms < next_ms) {
            next_ms = node->blocked_until_ms;
        }
    }
    return next_ms;
}

/* ---- going back to others --------------------------------------------------------------- */

/* They count for nothing from now on: whether the rest suffices is asked before they are back. */
static void reclaim_free(struct pool *p, const struct pool_node *node, uint32_t *count,
                         int64_t now_ms)
{
    for (uint32_t row = node->first_slot; *count > 0 && row != POOL_NONE;
         row = p->slots.v[row].next)
        if (p->slots.v[row].held && p->slots.v[row].live == 0) {
            slot_leave(p, row, true, now_ms);
            p->returning.v[p->returning.n++] = row;
            --*count;
        }
}

static void reclaim_used(struct pool *p, struct pool_node *node, uint32_t *count, int64_t now_ms)
{
    for (uint32_t row = node->first_slot; *count > 0 && row != POOL_NONE;
         row = p->slots.v[row].next) {
        struct pool_slot *slot = &p->slots.v[row];

        if (slot->live == 0 || slot->reclaimed)
            continue;
        slot->reclaimed = true;
        slot_leave(p, row, true, now_ms);
        node->n_reclaimed++;
        p->n_reclaimed++;
        --*count;
    }
}

/* Room for all that will return: vacating a slot must not need memory. */
int pool_reclaim(struct pool *p, struct pool_node *node, uint32_t count, int64_t now_ms,
                 int64_t end_at_ms)
{
    uint32_t left = node->n_slots - node->n_reclaimed;

    if (count > left)
        count = left;
    if (count > 0 && !vec_reserve(p->alloc, &p->returning, p->returning.n + p->n_reclaimed + count))
        return -ENOMEM;
    reclaim_free(p, node, &count, now_ms);
    if (count > 0 && end_at_ms < node->reclaim_end_at_ms)
        node->reclaim_end_at_ms = end_at_ms;
    reclaim_used(p, node, &count, now_ms);
    return 0;
}

static void reclaim_end(struct pool *p, struct pool_node *node, struct pool_slot *slot)
{
    slot->reclaimed = false;
    p->n_reclaimed--;
    if (--node->n_reclaimed == 0)
        node->reclaim_end_at_ms = PLIANT_NEVER;
}

void pool_keep_returning(struct pool *p, int64_t now_ms)
{
    for (size_t i = 0; i < p->returning.n; i++) {
        uint32_t row = p->returning.v[i];
        struct pool_node *node = p->nodes.v[p->slots.v[row].node];

        if (p->slots.v[row].reclaimed)
            reclaim_end(p, node, &p->slots.v[row]);
        slot_leave(p, row, node->draining, now_ms);
    }
    p->returning.n = 0;
}

/* What was to return goes with its node. */
static void forget_returning(struct pool *p, const struct pool_node *node)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->returning.n; i++)
        if (p->slots.v[p->returning.v[i]].node != node->row)
            p->returning.v[kept++] = p->returning.v[i];
    p->returning.n = kept;
}

/* ---- gone ------------------------------------------------------------------------------- */

void pool_lose(struct pool *p, struct pool_node *node)
{
    const struct pliant_alloc *hash_alloc = p->alloc;

    assert(node->n_used == 0);
    p->n_draining -= node->draining;
    p->n_blocked -= node->blocked_until_ms != PLIANT_NEVER;
    node->blocked_until_ms = PLIANT_NEVER;
    p->n_reclaimed -= node->n_reclaimed;
    forget_returning(p, node);
    for (uint32_t row = node->first_slot; row != POOL_NONE; row = p->slots.v[row].next) {
        struct pool_slot *slot = &p->slots.v[row];

        idle_end(p, row);
        p->n_held -= slot->held;
        p->n_offered -= slot->held && !slot->leaving;
        slot->held = slot->reclaimed = false;
    }
    HASH_DELETE(hh, p->by_name, node);
    p->n_nodes--;
    node->next_dead = p->dead;
    p->dead = node;
}

void pool_release(struct pool *p, uint32_t row)
{
    struct pool_slot *slot = &p->slots.v[row];

    assert(slot->held && slot->live == 0);
    idle_end(p, row);
    slot->held = false;
    p->nodes.v[slot->node]->n_slots--;
    p->n_held--;
    p->n_offered -= !slot->leaving;
    if (slot->reclaimed)
        reclaim_end(p, p->nodes.v[slot->node], slot);
    slot->leaving = p->nodes.v[slot->node]->draining;
}

/* ---- use -------------------------------------------------------------------------------- */

void pool_occupy(struct pool *p, uint32_t row, uint32_t group, uint32_t subtask)
{
    struct pool_slot *slot = &p->slots.v[row];

    assert(slot->held && (slot->live == 0 || (slot->group == group && slot->subtask == subtask)));
    if (slot->live == 0)
        idle_end(p, row);
    if (slot->live++ > 0)
        return;
    slot->group = group;
    slot->subtask = subtask;
    p->nodes.v[slot->node]->n_used++;
    p->n_used++;
    p->n_used_leaving += slot->leaving;
}

void pool_vacate(struct pool *p, uint32_t row, int64_t now_ms)
{
    struct pool_slot *slot = &p->slots.v[row];

    assert(slot->live > 0);
    if (--slot->live > 0)
        return;
    idle_begin(p, row, now_ms);
    p->nodes.v[slot->node]->n_used--;
    p->n_used--;
    p->n_used_leaving -= slot->leaving;
    if (slot->reclaimed)
        p->returning.v[p->returning.n++] = row;
}

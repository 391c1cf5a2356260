/* cluster.c - see cluster.h */
#include "sim/cluster.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { GIVERS_MANY = 64 };

struct cluster_name {
    UT_hash_handle hh;
    uint32_t row;
    char text[];
};

void cluster_init(struct cluster *c, const struct pliant_alloc *alloc)
{
    *c = (struct cluster){.alloc = alloc};
}

void cluster_free(struct cluster *c)
{
    for (size_t i = 0; i < c->rows.n; i++)
        if (c->rows.v[i].name)
            cluster_leave(c, &c->rows.v[i]);
    vec_free(c->alloc, &c->rows);
    vec_free(c->alloc, &c->unused);
    vec_free(c->alloc, &c->givers);
}

uint32_t cluster_row(const struct cluster *c, const struct cluster_node *node)
{
    return (uint32_t)(node - c->rows.v);
}

const char *cluster_name(const struct cluster_node *node)
{
    return node->name->text;
}

struct cluster_node *cluster_find(const struct cluster *c, const char *name)
{
    struct cluster_name *found;

    HASH_FIND_STR(c->names, name, found);
    return found ? &c->rows.v[found->row] : NULL;
}

struct cluster_node *cluster_at(const struct cluster *c, uint32_t row, uint64_t incarnation)
{
    struct cluster_node *node = row < c->rows.n ? &c->rows.v[row] : NULL;

    return node && node->name && node->incarnation == incarnation ? node : NULL;
}

/* Into the hash; false: no memory. */
static bool name_add(struct cluster *c, struct cluster_name *name)
{
    name->hh.tbl = NULL;
    HASH_ADD_STR(c->names, text, name);
    return name->hh.tbl != NULL;
}

static struct cluster_node *row_take(struct cluster *c)
{
    if (c->unused.n > 0)
        return &c->rows.v[c->unused.v[--c->unused.n]];
    if (!vec_push(c->alloc, &c->rows))
        return NULL;
    /* room for every row to become unused: leaving never fails */
    if (!vec_reserve(c->alloc, &c->unused, c->rows.cap)) {
        c->rows.n--;
        return NULL;
    }
    return &c->rows.v[c->rows.n - 1];
}

struct cluster_node *cluster_join(struct cluster *c, const char *name, uint64_t incarnation,
                                  uint32_t slots)
{
    size_t length = strlen(name);
    struct cluster_name *entry;
    struct cluster_node *node;

    assert(!cluster_find(c, name));
    entry = mem_resize(c->alloc, NULL, sizeof *entry + length + 1, 1);
    if (!entry)
        return NULL;
    memcpy(entry->text, name, length + 1);
    node = row_take(c);
    if (!node) {
        mem_free(c->alloc, entry);
        return NULL;
    }
    entry->row = cluster_row(c, node);
    if (!name_add(c, entry)) {
        c->unused.v[c->unused.n++] = entry->row;
        mem_free(c->alloc, entry);
        return NULL;
    }
    *node =
        (struct cluster_node){.name = entry, .incarnation = incarnation, .slots = slots, .slow = 1};
    c->held += slots;
    return node;
}

void cluster_leave(struct cluster *c, struct cluster_node *node)
{
    if (!node->draining)
        c->held -= node->slots - node->aside;
    HASH_DEL(c->names, node->name);
    mem_free(c->alloc, node->name);
    node->name = NULL;
    node->aside = 0;
    c->givers_gone += node->waits;
    c->unused.v[c->unused.n++] = cluster_row(c, node);
}

void cluster_drain(struct cluster *c, struct cluster_node *node)
{
    if (node->draining)
        return;
    node->draining = true;
    c->held -= node->slots - node->aside;
}

/* Only those who wait and are still there. */
static void close_ranks(struct cluster *c)
{
    size_t n = 0;

    for (size_t i = c->givers_first; i < c->givers.n; i++)
        if (cluster_at(c, c->givers.v[i].row, c->givers.v[i].incarnation))
            c->givers.v[n++] = c->givers.v[i];
    c->givers.n = n;
    c->givers_first = c->givers_gone = 0;
}

/* Line up for cluster_offer(). */
static int line_up(struct cluster *c, struct cluster_node *node)
{
    if (node->waits)
        return 0;
    if (c->givers_first + c->givers_gone > GIVERS_MANY &&
        c->givers_first + c->givers_gone > c->givers.n / 2)
        close_ranks(c);
    if (!vec_push(c->alloc, &c->givers))
        return -ENOMEM;
    c->givers.v[c->givers.n - 1] = (struct cluster_giver){cluster_row(c, node), node->incarnation};
    node->waits = true;
    return 0;
}

int cluster_withdraw(struct cluster *c, struct cluster_node *node)
{
    assert(node->draining);
    node->draining = false;
    c->held += node->slots - node->aside;
    return node->aside > 0 ? line_up(c, node) : 0;
}

int cluster_put_aside(struct cluster *c, struct cluster_node *node, uint32_t slots)
{
    assert(slots <= node->slots - node->aside);
    node->aside += slots;
    if (node->draining)
        return 0;
    c->held -= slots;
    return line_up(c, node);
}

uint32_t cluster_offer(struct cluster *c, uint64_t wanted, struct cluster_node **ret)
{
    while (wanted > 0 && c->givers_first < c->givers.n) {
        const struct cluster_giver *giver = &c->givers.v[c->givers_first];
        struct cluster_node *node = cluster_at(c, giver->row, giver->incarnation);
        uint32_t n;

        if (!node) { /* it has left */
            c->givers_first++;
            c->givers_gone--;
            continue;
        }
        n = node->aside < wanted ? node->aside : (uint32_t)wanted;

        if (node->draining || n == node->aside) {
            /* it lines up again when its drain is withdrawn or it gets more back */
            c->givers_first++;
            node->waits = false;
        }
        if (node->draining || n == 0)
            continue;
        node->aside -= n;
        c->held += n;
        *ret = node;
        return n;
    }
    return 0;
}

/* pool.h - the nodes that are there, and the slots they offer to the job
 *
 * A node is one life (incarnation) of a named machine. Rows of nodes and slots that are gone are
 * used again; a slot row remembers when it was born, so that a plan or a history that names the
 * row's earlier life finds out.
 *
 *   held      the job has it (not given back for being idle)
 *   leaving   its node drains, or it was reclaimed: no new work, counts for nothing [S-DRN-1]
 *   reclaimed others shall have it; it is given back as soon as no task lives in it
 *   offered   held and not leaving: "all slots" of the rules
 *   free      offered and without a live task
 *   blocked   its node is slow: while it is free, nothing new starts in it for a time [6.2]
 *   open      free and not blocked
 *
 * Shapes  nodes[], slots[] by row; ids of the outside are row + 1
 * Owner   pool_free(). A lost node keeps its name and its rows until pool_bury(), which the next
 *         step calls, so that what an action named can still be told.
 * Errors  -ENOMEM, nothing changed
 */
#ifndef PLIANT_GRAPH_POOL_H
#define PLIANT_GRAPH_POOL_H

#include <pliant/pliant.h>

#include "util/hash.h"
#include "util/vec.h"

#define POOL_NONE UINT32_MAX

struct pool_node {
    char *name, *zone, *domain; /* zone, domain may be NULL */
    struct pliant_label *labels;
    size_t n_labels;
    uint64_t incarnation;
    uint32_t row;
    uint32_t first_slot, last_slot; /* rows; POOL_NONE: it has none */
    uint32_t n_slots;               /* held */
    uint32_t n_rows;                /* held or given back */
    uint32_t n_used;                /* with a live task */
    bool draining;
    enum pliant_drain_reason drain_reason;
    int64_t drain_notice_at_ms, drain_end_at_ms;
    uint32_t n_reclaimed;      /* used slots that are to be given back ... */
    int64_t reclaim_end_at_ms; /* ... by then; PLIANT_NEVER: none is */
    int64_t blocked_until_ms;  /* PLIANT_NEVER: it is not */
    int64_t joined_at_ms;
    uint64_t arrival; /* its serial: grows from node to node */
    uint32_t seat;    /* place among the nodes of the last launch of a worker group; 0: none */
    struct pool_node *next_dead;
    UT_hash_handle hh;
};

struct pool_slot {
    uint32_t node;           /* row; POOL_NONE: the row is unused */
    uint32_t next;           /* row of the node's next slot, or of the next unused row */
    uint32_t index;          /* within the node */
    uint32_t live;           /* live tasks in it */
    uint32_t group, subtask; /* which unit of the graph, while live > 0 */
    bool held, leaving, reclaimed, blocked;
    uint32_t idle_before, idle_after; /* rows of the list of open slots, while open */
    uint64_t born;
    int64_t idle_since_ms;
};

struct pool {
    const struct pliant_alloc *alloc;
    struct VEC(struct pool_node *) nodes; /* NULL: an unused row */
    struct VEC(uint32_t) unused_nodes;
    struct VEC(struct pool_slot) slots;
    uint32_t unused_slot;           /* first of a list, or POOL_NONE */
    uint32_t idle_first, idle_last; /* all open slots, idle for longest first */
    struct VEC(uint32_t) returning; /* reclaimed slots that no task lives in any more */
    uint32_t n_reclaimed;
    uint64_t births; /* serial of the last slot or node that came */
    struct pool_node *by_name;
    struct pool_node *dead;
    uint32_t n_nodes, n_draining, n_blocked;
    uint32_t n_held, n_offered, n_used, n_used_leaving;
    uint32_t n_free_blocked; /* slots */
};

void pool_init(struct pool *p, const struct pliant_alloc *a);
void pool_free(struct pool *p);
void pool_bury(struct pool *p);
/* The rows of a lost node's slots become unused, as pool_bury() will do: in `slots`, a table like
 * the pool's, with the list of unused rows that begins at *unused. */
void pool_bury_slots(struct pool_slot *slots, uint32_t *unused, const struct pool_node *node);
/* Nodes that were put into the table by hand become known by name. */
int pool_index(struct pool *p);

struct pool_node *pool_find(const struct pool *p, const char *name);
/* Those that are there, by arrival. */
struct pool_node *pool_oldest(const struct pool *p);
struct pool_node *pool_next(const struct pool_node *node);
struct pool_node *pool_node(const struct pool *p, uint32_t row);

/* A node that is not there yet joins, with its slots. */
int pool_join(struct pool *p, int64_t now_ms, uint64_t incarnation, const char *name,
              const char *zone, const char *domain, const struct pliant_label *labels,
              size_t n_labels, uint32_t slots, struct pool_node **ret);
/* More slots of a node: first those that were given back, then new ones. */
int pool_grant(struct pool *p, struct pool_node *node, int64_t now_ms, uint32_t slots);
/* Gone: nothing of it is held any more. None of its slots may have a live task. */
void pool_lose(struct pool *p, struct pool_node *node);
void pool_drain(struct pool *p, struct pool_node *node, bool draining, int64_t now_ms);

/* Its free slots are not open until then; a later end replaces an earlier one [6.2]. */
void pool_block(struct pool *p, struct pool_node *node, int64_t now_ms, int64_t until_ms);
/* Blocks that are over end. Returns when the next one is, or PLIANT_NEVER. */
int64_t pool_unblock(struct pool *p, int64_t now_ms);

/* Mark `count` slots of the node, free ones first; those without a live task are in `returning`
 * then, the others when their last task is over. */
int pool_reclaim(struct pool *p, struct pool_node *node, uint32_t count, int64_t now_ms,
                 int64_t end_at_ms);
/* Those in `returning` that were not given back yet stay with the job after all. */
void pool_keep_returning(struct pool *p, int64_t now_ms);

/* One task more, one task less in the slot of a row. */
void pool_occupy(struct pool *p, uint32_t row, uint32_t group, uint32_t subtask);
void pool_vacate(struct pool *p, uint32_t row, int64_t now_ms);
/* The job gives a free slot back. */
void pool_release(struct pool *p, uint32_t row);

static inline bool pool_slot_free(const struct pool_slot *slot)
{
    return slot->held && !slot->leaving && slot->live == 0;
}

static inline bool pool_slot_open(const struct pool_slot *slot)
{
    return pool_slot_free(slot) && !slot->blocked;
}

static inline uint32_t pool_n_open(const struct pool *p)
{
    return p->n_offered - (p->n_used - p->n_used_leaving) - p->n_free_blocked;
}

#endif

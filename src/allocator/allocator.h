/* allocator.h - slots -> parallelism -> placement
 *
 * Pure: reads its inputs, fills arrays of the caller, changes nothing else. A plan is a value:
 * compute it, compare it with the running one, throw it away.
 *
 * Shapes  vertices by index 0..n_vertices-1 (id - 1), groups by index in order of first
 *         appearance in the vertex list. A unit (g, i) holds subtask i of every vertex of
 *         group g with parallelism > i; units are numbered group by group, i ascending.
 * Units   slots and parallelism are counts
 * Errors  -ENOMEM; too few slots is a result (false), not an error
 * Source  S-PAR-1..10, S-LOC-1..6, sections 1 to 6 of the allocator's rules
 */
#ifndef PLIANT_ALLOCATOR_ALLOCATOR_H
#define PLIANT_ALLOCATOR_ALLOCATOR_H

#include <pliant/job.h>

#include "util/alloc.h"
#include "util/sort.h"

/* ---- bounds: what the job wants --------------------------------------------------------- */

struct vertex_bounds {
    uint32_t min, want;
};

struct group_bounds {
    uint32_t lo, hi; /* largest min, largest want of its vertices [S-PAR-4] */
};

/* Kept up to date by bounds_refresh() so that deciding parallelism needs no sort. */
struct bounds {
    uint32_t n_vertices, n_groups;
    const uint32_t *group_of;       /* [n_vertices], borrowed from the job */
    struct vertex_bounds *vertices; /* [n_vertices] */
    struct group_bounds *groups;    /* [n_groups] */
    uint32_t *order;                /* [n_groups] ascending hi - lo, ties by index [S-PAR-6] */
    uint64_t minimal, desired;      /* sums over groups [S-PAR-5] */
    struct sort_item *scratch;      /* [2 * n_groups], for the order */
};

int bounds_init(struct bounds *b, uint32_t n_vertices, uint32_t n_groups, const uint32_t *group_of,
                const struct pliant_alloc *a);
void bounds_free(struct bounds *b, const struct pliant_alloc *a);
/* After vertices[] changed: groups, order, sums. O(V + G log G). */
void bounds_refresh(struct bounds *b);

/* ---- parallelism ------------------------------------------------------------------------ */

/* Distribute n_slots: fills group_slots[n_groups] and parallelism[n_vertices] (either may be
 * NULL). false: not sufficient, nothing written. O(V + G). [S-PAR-5..7] */
bool allocator_parallelism(const struct bounds *b, uint64_t n_slots, uint32_t *group_slots,
                           uint32_t *parallelism);

/* ---- placement -------------------------------------------------------------------------- */

/* A free slot, in the order in which slots are offered. Equal `node` numbers are the same node;
 * `domain` is the failure domain (nodes without one: a number of their own). */
struct free_slot {
    uint32_t slot; /* the caller's number, comes back in the plan */
    uint32_t node, domain;
};

/* One subtask of the earlier run. */
struct history_entry {
    uint32_t slot;  /* the caller's number of the slot it ran in; gone slots never match */
    uint64_t bytes; /* keyed state in the last checkpoint, 0: unknown */
};

/* The earlier run: entries[first[v] .. first[v] + parallelism[v] - 1] are vertex v's subtasks in
 * index order. NULL, or no entries: no history. */
struct history {
    const uint32_t *parallelism; /* [n_vertices] */
    const uint32_t *first;       /* [n_vertices] */
    const struct history_entry *entries;
    size_t n_entries;
};

struct placement_request {
    const struct bounds *bounds;
    const uint32_t *parallelism;     /* [n_vertices] */
    const uint32_t *group_slots;     /* [n_groups] */
    const uint32_t *max_parallelism; /* [n_vertices] key groups */
    const struct free_slot *slots;   /* [n_slots] in pool order */
    uint32_t n_slots;
    bool prefer_minimal_nodes;
    enum pliant_spread spread;
    const struct history *history; /* NULL or empty: default placement [S-LOC-6] */
};

/* Fill unit_slots[sum of group_slots] with the callers' slot numbers. Needs n_slots >= that sum.
 * Order of choice: locality when there is history; else spread; else fewest nodes when there are
 * more slots than units; else pool order. `a` serves scratch that is freed before returning. */
int allocator_place(const struct placement_request *request, const struct pliant_alloc *a,
                    uint32_t *unit_slots);

/* Score of every (unit, slot) pair with a positive one, for tests: calls `each` in order of
 * (unit, slot position). [S-LOC-3] */
int allocator_scores(const struct placement_request *request, const struct pliant_alloc *a,
                     void (*each)(void *ctx, uint32_t unit, uint32_t slot, uint64_t score),
                     void *ctx);

#endif

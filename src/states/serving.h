/* serving.h - regions in line for slots, and who gets them
 *
 * First come, first served; who needs more slots than are free is passed by. A look costs what it
 * starts, not what waits: each one's need is known, so that he is found without a look at those
 * before him.
 *
 * A region waits as long as the slots that the job holds, once free, would do, if it is a job whose
 * tasks come to an end: one with blocking edges. Else, from the moment on that they would not do,
 * it waits for slot.request.timeout; then that is a failure like any other [P-SCHED-4].
 *
 * Shapes  by region, by unit
 * Owner   line_free()
 * Source  section 1.4 of the rules of failover
 */
#ifndef PLIANT_STATES_SERVING_H
#define PLIANT_STATES_SERVING_H

#include "util/deadline.h"
#include "util/least.h"
#include "util/vec.h"

struct asking {
    uint32_t region;  /* LINE_GONE: it has left the line */
    uint32_t units;   /* slots that it takes if none of its units lives yet */
    uint32_t need;    /* units that do not live yet */
    int64_t since_ms; /* what is held would not do, since then; PLIANT_NEVER: it would */
    uint64_t change;  /* the last change of a home that it was told of */
};

struct line {
    const struct pliant_alloc *alloc;
    bool finite; /* tasks end and leave their slots to others */
    struct VEC(struct asking) v;
    size_t first;           /* before it all have left */
    uint32_t n, n_starving; /* in line; of them, those for whom what is held would not do */
    /* By index in v: who needs fewer free slots than this can't start. That is `need`, but for
     * those looked at in vain: of them, how many others who start leave to be needed. */
    struct least needs;
    uint64_t n_changes;          /* of homes */
    struct VEC(uint32_t) chosen; /* scratch */
    uint32_t offered;            /* slots, when it was looked at last */
    struct deadline timeout;     /* not later than the first one's patience ends */
    size_t place_cap;
    uint32_t *place;                       /* [regions] index in v, of those in line */
    uint32_t *first_unit, *units, n_units; /* [groups]; [units]: claimed in which round */
    bool *lives;                           /* [units], of those that somebody in line has */
    uint32_t round;
};

struct pliant_sched;
struct pool_node;
struct state;

void line_init(struct line *l, const struct pliant_alloc *a);
void line_free(struct line *l);
/* For a graph that begins or is read; there may be units already. */
void line_begin(struct pliant_sched *s);
/* Regions were added. */
void line_add(struct pliant_sched *s);
/* Nobody waits any more. */
void line_empty(struct line *l);

void line_ask(struct pliant_sched *s, uint32_t region);
void line_leave(struct pliant_sched *s, uint32_t region);
/* Start who can start. */
void line_serve(struct pliant_sched *s);
/* The number of slots may be another one. */
void line_watch(struct pliant_sched *s);
/* A unit lives in a slot, where others of it that wait are at home now, or does not live there any
 * more. What those need has to be exact: a scheduler that is restored counts anew. */
void line_home(struct pliant_sched *s, uint32_t group, uint32_t subtask);
/* A node's slots count as homes again, or do not any more. */
void line_node(struct pliant_sched *s, const struct pool_node *node);
/* Slots did not come in time. */
struct state line_timed_out(struct pliant_sched *s);

/* For who writes a snapshot: the next one in line, from place *at on; there must be one. */
struct asking line_next(const struct line *l, size_t *at);
/* For who reads it. */
void line_restore(struct pliant_sched *s, uint32_t region, int64_t since_ms);
/* The first broken invariant, or NULL. */
const char *line_check(struct pliant_sched *s);

#endif

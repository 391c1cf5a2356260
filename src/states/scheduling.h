/* scheduling.h - the default way: fixed parallelism, region by region
 *
 * All tasks are there from the start, CREATED. A region asks for slots when everything that it
 * reads from outside is consumable; its tasks start together, when there are slots for all of them.
 * It waits in line for slot.request.timeout at most, then that is a failure like any other. A
 * region that restarts is reset, and asks again.
 *
 * Shapes  by region, by task (topology.h)
 * Owner   scheduling_end()
 * Source  sections 1.4, 2 and 3 of the rules of failover
 */
#ifndef PLIANT_STATES_SCHEDULING_H
#define PLIANT_STATES_SCHEDULING_H

#include "graph/inputs.h"
#include "graph/releases.h"
#include "graph/results.h"
#include "util/deadline.h"
#include "util/vec.h"

enum region_phase {
    REGION_IDLE,    /* waits for its inputs */
    REGION_WAITS,   /* in line for slots */
    REGION_STARTED, /* its tasks have slots, or had them */
};

/* A region in line. */
struct asking {
    uint32_t region;
    int64_t since_ms;
};

struct scheduling {
    bool on;
    const struct pliant_alloc *alloc;
    struct inputs inputs;
    struct releases releases;
    struct results results;
    uint8_t *phase; /* [regions] enum region_phase */
    struct VEC(struct asking) line;
    struct deadline timeout; /* of the first in line */
    bool news; /* since the line was looked at: somebody asked, or slots may have come free */
    uint32_t *first_unit, *units, n_units; /* [groups]; [units]: claimed in which round */
    uint32_t round;
};

struct pliant_sched;
struct state;

void scheduling_init(struct scheduling *g, const struct pliant_alloc *a);
void scheduling_end(struct pliant_sched *s); /* the graph has ended */
void scheduling_free(struct scheduling *g);
/* Executing is left: nobody waits for slots any more. */
void scheduling_leave(struct pliant_sched *s);
/* Slots did not come in time. */
struct state scheduling_timed_out(struct pliant_sched *s);
/* The first broken invariant in Executing, or NULL. */
const char *scheduling_check(const struct pliant_sched *s);
/* For who reads a snapshot: a task that had finished. */
void scheduling_had_finished(struct scheduling *g, uint32_t task);

#endif

/* scheduling.h - two ways: fixed parallelism, region by region; and that of batch jobs
 *
 * By the default way all tasks are there from the start, CREATED. A region asks for slots when
 * everything that it reads from outside is consumable; its tasks start together, when there are
 * slots for all of them (serving.h). A region that restarts is reset, and asks again.
 *
 * By the batch way (batching.h) a vertex has no tasks before its inputs are done. Then they are
 * there, CREATED, and all goes on in the same manner, but that each task is a region, and takes a
 * slot of its own.
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
#include "states/serving.h"

enum region_phase {
    REGION_IDLE,    /* waits for its inputs */
    REGION_WAITS,   /* in line for slots */
    REGION_STARTED, /* its tasks have slots, or had them */
};

struct scheduling {
    bool on;
    const struct pliant_alloc *alloc;
    struct inputs inputs;
    struct releases releases;
    struct results results;
    size_t phase_cap;
    uint8_t *phase; /* [regions] enum region_phase */
    struct line line;
};

struct pliant_sched;
struct state;

void scheduling_init(struct scheduling *g, const struct pliant_alloc *a);
void scheduling_end(struct pliant_sched *s); /* the graph has ended */
void scheduling_free(struct scheduling *g);
/* Executing is left: nobody waits for slots any more. */
void scheduling_leave(struct pliant_sched *s);
/* Another attempt stands for a task: it is where the result will be, also while the task goes down.
 * One without a slot waits in line for it. */
void scheduling_stands(struct pliant_sched *s, uint32_t vertex, uint32_t subtask);
/* Everything that the task reads is there. */
bool scheduling_can_read(struct pliant_sched *s, uint32_t vertex, uint32_t subtask);
/* A vertex has its tasks and regions now; then those of them that can start ask for slots. */
void scheduling_add(struct pliant_sched *s, uint32_t v);
void scheduling_ask_vertex(struct pliant_sched *s, uint32_t v);
/* The first broken invariant in Executing, or NULL. */
const char *scheduling_check(const struct pliant_sched *s);
/* For who reads a snapshot: a task that had finished. */
void scheduling_had_finished(struct pliant_sched *s, uint32_t task);

#endif

/* speculation.h - a task that takes suspiciously long gets another attempt elsewhere
 *
 * Within Executing, for jobs without pipelined edges. Every slow-task-detector.check-interval the
 * attempts of each vertex are compared (failover/slow_tasks.h). The node of a slow one is blocked
 * for a time, and the task gets more attempts. Those wait for slots behind all regions that wait,
 * without a limit: they are extra. The first attempt to finish is the result, the others are
 * stopped; one that fails is no failure of the task as long as another one can finish.
 *
 * A task whose last attempt waits for a slot is a task that waits like any other: its region is in
 * line (scheduling.h).
 *
 * Owner   speculation_free(); attempts are the graph's, blocks are the pool's
 * Source  sections 6.1 to 6.3 of the rules of failover
 */
#ifndef PLIANT_STATES_SPECULATION_H
#define PLIANT_STATES_SPECULATION_H

#include <pliant/pliant.h>

#include "util/deadline.h"
#include "util/vec.h"

struct speculation {
    const struct pliant_alloc *alloc;
    struct deadline check;               /* the next look for slow tasks */
    struct deadline unblock;             /* the first end of a block, or earlier */
    struct deadline give_up;             /* on attempts that lost and do not confirm, or earlier */
    struct VEC(struct pliant_task) line; /* from `served` on: attempts that wait for a slot, first
                                            come, first served; some may be gone */
    size_t served;
    uint32_t n_slow; /* tasks, at the last look */
    bool local;      /* attempts failed in this step whose tasks go on; nobody has decided yet */
};

struct pliant_sched;
struct state;
struct task;

void speculation_init(struct speculation *x, const struct pliant_alloc *a);
void speculation_free(struct speculation *x);

/* By options and job: is it on? */
bool speculation_applies(const struct pliant_sched *s);
/* Executing is entered, left. */
void speculation_enter(struct pliant_sched *s);
void speculation_leave(struct pliant_sched *s);
size_t speculation_deadlines(struct speculation *x, struct deadline *list[]);
bool speculation_owns(const struct speculation *x, const struct deadline *due);
/* STAY: now look what follows from the tasks' states. */
struct state speculation_on_due(struct pliant_sched *s, struct deadline *due);

/* Attempts that wait get what slots are open. */
void speculation_serve(struct pliant_sched *s);
/* An attempt is in another state: who stands for the task? */
void speculation_rank(struct pliant_sched *s, uint32_t vertex, uint32_t subtask);
/* One of several attempts has ended: task_over(). */
void speculation_over(struct pliant_sched *s, uint32_t vertex, uint32_t subtask,
                      struct task *attempt, enum pliant_task_state state, bool input_lost);
/* A task is over: how long did it take? */
void speculation_note_end(struct pliant_sched *s, uint32_t vertex, uint32_t subtask);
/* Attempts in slots that leave are stopped, if another one of the task can finish elsewhere. */
void speculation_moves(struct pliant_sched *s, uint32_t vertex, uint32_t subtask);

/* The first broken invariant, or NULL: in any state; in Executing. */
const char *speculation_check_task(const struct pliant_sched *s, uint32_t vertex, uint32_t subtask);
const char *speculation_check(const struct pliant_sched *s);

#endif

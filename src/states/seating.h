/* seating.h - slots for some tasks of a graph that runs
 *
 * Tasks of a slot sharing group with one subtask index are a unit: they live in one slot. A task
 * goes where its unit lives, else to the slot that it had last, else to a free one: by the rules of
 * placement if the job's parallelism follows the slots; else, unless tasks are to be spread, the
 * one that was idle for longest, so that a start does not look at all free slots.
 *
 * Shapes  tasks: `value` is the vertex's index, `minor` the subtask; all of them CREATED
 */
#ifndef PLIANT_STATES_SEATING_H
#define PLIANT_STATES_SEATING_H

#include "states/sched.h"

/* The slot in which a unit lives, POOL_NONE: in none that stays with the job. */
uint32_t seating_home(const struct pliant_sched *s, uint32_t group, uint32_t subtask);

/* Free slots that these tasks, in whatever state, would need. */
uint32_t seating_needs(struct pliant_sched *s, const struct sort_item *tasks, size_t n);

/* All of them become SCHEDULED; there must be slots enough. */
void seating_take(struct pliant_sched *s, const struct sort_item *tasks, size_t n);

/* The same where no two tasks share a slot: any free slot, the one that was idle for longest first,
 * unless tasks are to be spread. */
void seating_take_single(struct pliant_sched *s, const struct sort_item *tasks, size_t n);

/* Slots (ids) for n attempts that take one each, by the rules of spreading; there must be so many.
 * NULL: none are asked for, so each takes s->pool.idle_first; or no memory. */
const uint32_t *seating_spread(struct pliant_sched *s, size_t n);

#endif

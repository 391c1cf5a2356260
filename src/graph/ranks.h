/* ranks.h - which worker of a group gets which of the slots that were chosen
 *
 * Nodes of the launch before come first, in the same order; then new ones in the order of their
 * arrival, and of those that arrived at one instant first the ones that are not marked preemptible.
 * The ranks of a node follow each other, by slot.
 *
 * Shapes  unit_slots[n]: slot ids (row + 1); afterwards [i] is the slot of rank i
 * Errors  -ENOMEM, nothing changed
 * Source  W-GRP-5..7
 */
#ifndef PLIANT_GRAPH_RANKS_H
#define PLIANT_GRAPH_RANKS_H

#include "graph/pool.h"

#define RANKS_PREEMPTIBLE "preemptible" /* the label; "false" is as none */

int ranks_order(const struct pool *p, uint32_t *unit_slots, uint32_t n);
/* They are launched so: their nodes are the ones that come first the next time. */
void ranks_take_seats(struct pool *p, const uint32_t *unit_slots, uint32_t n);

#endif

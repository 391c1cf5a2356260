/* drains.h - moving the job off nodes that will go: a phase within Executing
 *
 * From the notice on a draining node's slots are out of the pool; its tasks go on. A checkpoint
 * is asked for at once, and the job is moved when it is done and the present parallelism fits on
 * the other slots; else as late as is safe. Slots that the pool wants back leave in the same way,
 * but a smaller parallelism that suffices fits as well.
 *
 * Units   ms
 * Source  S-DRN-1..11
 */
#ifndef PLIANT_STATES_DRAINS_H
#define PLIANT_STATES_DRAINS_H

#include "states/sched.h"

#define DRAIN_DEFAULT_MS 120000 /* a notice without a deadline [S-DRN-3] */
#define DRAIN_MARGIN_MS 1000    /* expected between the last checkpoint and the end [S-DRN-5] */
#define DRAIN_LIMIT_MS 500      /* so long before the end it is not waited for any more */
#define DRAIN_RETRY_MS 1000     /* from a checkpoint that fails to the next one, at least */

void drain_enter(struct pliant_sched *s); /* Executing was entered */
struct state drain_began(struct pliant_sched *s, struct pool_node *node);
struct state drain_over(struct pliant_sched *s); /* a node's: withdrawn, or it is gone */
struct state drain_checkpoint_done(struct pliant_sched *s);
struct state drain_checkpoint_failed(struct pliant_sched *s,
                                     const struct pending_checkpoint *failed);
bool drain_asks_again(const struct pliant_sched *s); /* when checkpointing.retry is due */
/* Does a node drain that has tasks of the job? */
bool drain_any(const struct pliant_sched *s);
/* The adaptive way to move: the job restarts. */
struct state drain_restart(struct pliant_sched *s, pliant_node_id node);
/* Move now, whatever it costs. */
struct state drain_move(struct pliant_sched *s);
struct state drain_due(struct pliant_sched *s, struct deadline *due);
/* Slots or tasks changed: can the job move now? */
struct state drain_consider(struct pliant_sched *s);

#endif

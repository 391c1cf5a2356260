/* regional.h - a failure restarts only the regions that it touches; the others never notice
 *
 * Within Executing. A failure makes a plan: its regions are cancelled, and when they are down and
 * the restart strategy's delay is over, whichever is later, their tasks start again as fresh
 * attempts, in their slots or in free ones. Of overlapping plans the later one owns a region, so no
 * task is restarted twice. When slots are missing, the whole job restarts instead, for the failure
 * that is paid already.
 *
 * Delays never become shorter, so plans fall due in the order in which they were made.
 *
 * Owner   regional_free(); topology and regions live as long as the graph
 * Source  P-REG-1..8; sections 2 and 3 of the rules of failover
 */
#ifndef PLIANT_STATES_REGIONAL_H
#define PLIANT_STATES_REGIONAL_H

#include "failover/restart_set.h"
#include "util/deadline.h"
#include "util/vec.h"

struct restart_plan {
    struct VEC(uint32_t) regions; /* some may be owned by a later plan */
    uint32_t open;                /* live tasks of those that it owns */
    bool delay_over, done;
    int64_t due_at_ms, give_up_at_ms; /* give up: of cancels that nobody confirms [S-FLG-4] */
    uint8_t reason;                   /* enum pliant_reason */
};

struct regional {
    bool on; /* the graph's regions are known, and there are several */
    const struct pliant_alloc *alloc;
    struct topology topology;
    struct regions regions;
    struct restart_search search;
    uint32_t *owner;             /* [regions] serial of the plan that restarts it; 0: none does */
    struct VEC(uint32_t) fallen; /* tasks that failed in this step, until somebody decides */
    struct VEC(struct restart_plan) plans; /* plan of serial n: plans.v[n - base] */
    uint32_t base;                         /* serial of the first one, >= 1 */
    uint32_t next_due, next_give_up;       /* the first plan that waits for it */
    uint32_t n_pending;                    /* plans that are not done */
    struct deadline due, give_up;
    uint64_t restarts; /* plans that were carried out */
};

struct pliant_sched;
struct failure;
struct state;

void regional_init(struct regional *r, const struct pliant_alloc *a);
void regional_free(struct regional *r);

/* The graph has begun, or was restored; it has ended. */
void regional_begin(struct pliant_sched *s);
void regional_end(struct pliant_sched *s);

static inline bool regional_pending(const struct regional *r)
{
    return r->n_pending > 0;
}

/* A task has just gone down, in Executing. */
void regional_task_down(struct pliant_sched *s, uint32_t vertex, uint32_t subtask);

/* What to do about a failure: a plan, or the whole job's way. */
struct state regional_failure(struct pliant_sched *s, const struct failure *failure);

/* Start what is down and due. Returns STAY, or Restarting for want of slots [P-REG-4]. */
struct state regional_look(struct pliant_sched *s);
struct state regional_on_due(struct pliant_sched *s, struct deadline *due);

/* Another way is taken: nothing pends any more [P-REG-8]. */
void regional_drop(struct pliant_sched *s);

/* The first broken invariant, or NULL. */
const char *regional_check(const struct pliant_sched *s);

#endif

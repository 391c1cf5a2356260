/* regional.h - a failure restarts only the regions that it touches; the others never notice
 *
 * Within Executing. A failure makes a plan: its regions are cancelled, and when they are down and
 * the restart strategy's delay is over, whichever is later, their tasks start again as fresh
 * attempts. Of overlapping plans the later one owns a region, so no task is restarted twice. What
 * "start again" means is a matter of the scheduler (struct way): the adaptive one has slots for all
 * of them or restarts the whole job, the default one lets each region wait for its inputs and
 * slots.
 *
 * Plans fall due in the order in which they were made.
 *
 * Owner   regional_free(); topology and regions live as long as the graph
 * Source  sections 2 and 3 of the rules of failover; P-REG-1..8
 */
#ifndef PLIANT_STATES_REGIONAL_H
#define PLIANT_STATES_REGIONAL_H

#include "failover/restart_set.h"
#include "util/deadline.h"
#include "util/vec.h"

struct claim_at {
    uint32_t plan, at; /* serial, 0: none; and where in its list */
};

/* A plan restarts a region, unless a later one takes it over. */
struct claim {
    uint32_t region;
    struct claim_at before; /* that was taken over while tasks were going down, which its plan goes
                               on waiting for; once they are down it says nothing */
};

struct restart_plan {
    struct VEC(struct claim) regions;
    uint32_t open; /* live tasks that it told to stop, also where a later plan restarts them */
    bool all;      /* every task, also those that were not started yet */
    bool delay_over, done;
    int64_t due_at_ms, give_up_at_ms; /* give up: of cancels that nobody confirms [S-FLG-4] */
    uint8_t reason;                   /* enum pliant_reason */
};

struct regional {
    bool on; /* the graph's regions are known, and failures restart them alone */
    const struct pliant_alloc *alloc;
    struct topology topology;
    struct regions regions;
    struct restart_search search;
    size_t owner_cap;
    struct claim_at *owner;      /* [regions] the claim of the plan that restarts it */
    struct VEC(uint32_t) fallen; /* tasks that failed in this step, until somebody decides */
    struct VEC(struct restart_plan) plans; /* plan of serial n: plans.v[n - base] */
    uint32_t base;                         /* serial of the first one, >= 1 */
    uint32_t next_due, next_give_up;       /* the first plan that waits for it */
    uint32_t n_pending;                    /* plans that are not done */
    uint32_t n_decided; /* failures in the present list that belong to earlier decisions [3.6] */
    struct deadline due, give_up;
    uint64_t restarts; /* plans that were carried out */
};

struct pliant_sched;
struct failure;
struct state;
struct sort_item;
struct task;

void regional_init(struct regional *r, const struct pliant_alloc *a);
void regional_free(struct regional *r);

/* The regions of the present graph; `rewire`: a pointwise edge between different parallelisms is
 * all-to-all [S-CEG-11]. */
void regional_find(struct pliant_sched *s, bool rewire);
/* None yet, of a graph whose vertices get their tasks one after the other ... */
void regional_begin(struct pliant_sched *s);
/* ... now one did, each task a region. `ranges` as of topology_add(). */
void regional_add(struct pliant_sched *s, uint32_t vertex, uint32_t parallelism,
                  const struct range *const *ranges);
/* The graph has ended. */
void regional_end(struct pliant_sched *s);

static inline bool regional_pending(const struct regional *r)
{
    return r->n_pending > 0;
}

/* The serial of the last plan. */
static inline uint32_t regional_last(const struct regional *r)
{
    return r->base + (uint32_t)r->plans.n - 1;
}

static inline uint32_t regional_flat(const struct regional *r, uint32_t vertex, uint32_t subtask)
{
    return r->topology.first_task[vertex] + subtask;
}

/* The serial of the plan that restarts a task (flat); 0: none does. */
static inline uint32_t regional_owner(const struct regional *r, uint32_t task)
{
    return r->owner[r->regions.of_task[task]].plan;
}

struct task *regional_task(struct pliant_sched *s, uint32_t task, uint32_t *ret_vertex,
                           uint32_t *ret_subtask);

/* A task has just gone down, in Executing. */
void regional_task_down(struct pliant_sched *s, uint32_t vertex, uint32_t subtask);
/* The same of one of its attempts; `falls`: the next plan restarts the task, if none does yet. */
void regional_attempt_down(struct pliant_sched *s, uint32_t vertex, uint32_t subtask, bool falls);
/* The next plan restarts this task's region, and what hangs on it. */
void regional_falls(struct pliant_sched *s, uint32_t task);

/* Restart the regions of all that fell, or every task; cancels go out at once [3.2]. */
void regional_plan(struct pliant_sched *s, const struct failure *failure, int64_t delay_ms,
                   bool all);

/* What `ctx` of way->available points to. */
struct available {
    const struct pliant_sched *sched;
    const struct failure *failure;
};

/* Carry out what is down and due. Returns STAY, or the state that follows. */
struct state regional_look(struct pliant_sched *s);
struct state regional_on_due(struct pliant_sched *s, struct deadline *due);

/* The tasks of these regions, in the order in which they start [S-EXE-1]: `value` is the vertex's
 * index, `minor` the subtask. NULL: no memory. */
struct sort_item *regional_in_order(struct pliant_sched *s, const uint32_t *regions,
                                    size_t n_regions, size_t *ret_n);
/* For who carries a plan out: the tasks of the regions that it still owns; it is done. */
struct sort_item *regional_tasks(struct pliant_sched *s, uint32_t serial, size_t *ret_n);
void regional_finish(struct pliant_sched *s, uint32_t serial);

/* Another way is taken: nothing pends any more [P-REG-8]. */
void regional_drop(struct pliant_sched *s);

/* The first broken invariant, or NULL. */
const char *regional_check(const struct pliant_sched *s);

#endif

/* model.h - what must hold of a scheduler, whatever it is told
 *
 * Keeps a picture of cluster and job from events and actions alone, and holds every step against
 * it. The scheduler is asked only for names (which node a slot is on) and, after the step, for
 * the figures that the picture must agree with.
 *
 *   slots     no slot serves two units (group, subtask) at once, nor after it was given back
 *   nodes     nothing is started on a node that drains or is gone, and only on slots reserved
 *   drains    the job is moved before their end
 *   reclaims  free slots go back at once, used ones when no task lives in them any more, each
 *             once; the job is moved before the end, and no budget pays
 *   attempts  each is started once, with a higher number than those before; it is canceled once. Of
 *             one task there are no more at a time than may be, and the first to finish stops the
 *             others; nothing new starts on a node that is blocked
 *   states    every change is a legal edge, the status is the state's, and after ARCHIVED there
 *             is silence
 *   budgets   the restart strategies and the drain budget are charged once per restart; a
 *             restart waits for its tasks and for the back-off
 *   wishes    what is declared is what the bounds add up to; each savepoint asked for is
 *             answered once
 *   groups    the workers of a group have one attempt number, and none of the attempt before lives
 *             when they start; a batch of deaths charges one budget by one, and none beyond its
 *             limit; only those who wait for it are told that a report is over
 *   regions   see model_regions.h; where parallelism follows from data, model_batch.h
 *   progress  there is always something that can move the job
 *
 * Owner   borrows job and config; model_free() frees the rest
 * Errors  model_step() answers the name of the rule that is broken, details in `detail`;
 *         "no memory" is one of them
 */
#ifndef PLIANT_SIM_MODEL_H
#define PLIANT_SIM_MODEL_H

#include <pliant/pliant.h>

#include "sim/model_batch.h"
#include "sim/model_regions.h"
#include "util/vec.h"

enum model_phase { MODEL_OVER, MODEL_STARTING, MODEL_INITIALIZING, MODEL_RUNNING, MODEL_CANCELING };

struct model_task {
    uint32_t vertex, subtask, attempt;
    enum model_phase phase; /* MODEL_OVER: the row is unused */
    uint32_t node, slot;    /* index in nodes; id of the slot */
    int64_t canceled_at_ms;
};

struct model_tasks VEC(struct model_task);
struct model_attempts VEC(uint32_t);

struct model_node {
    const char *name; /* static */
    bool up, draining;
    int64_t end_at_ms; /* while it drains */
    uint64_t incarnation;
    uint32_t life;            /* serial, of all nodes */
    uint32_t slots;           /* with those that were given back */
    uint32_t aside;           /* given back */
    uint32_t owed;            /* used slots that others shall have, by ... */
    int64_t owed_at_ms;       /* ... then */
    uint32_t returning;       /* free slots that others shall have, in this step */
    int64_t blocked_until_ms; /* for being slow, at least */
};

struct model_slot {
    uint32_t node, life;
    bool aside;
    uint32_t live, group, subtask; /* the unit it serves, while live > 0 */
    uint64_t emptied;              /* the step in which its last task ended */
    int64_t emptied_at_ms;
};

struct model_plan {
    bool pending;
    bool recoverable; /* it failed, and may be tried again */
    uint64_t step;    /* in which it was made */
    uint32_t serial;
    struct VEC(uint32_t) slots;
    uint64_t restore;
};

struct model_checkpoint {
    uint64_t id;
    bool savepoint, stop;
    int64_t triggered_at_ms;
};

/* The restart strategy, as its rules read [S-POL-1..4]. */
struct model_budget {
    struct pliant_restart_config cfg;
    int64_t count;
    int64_t planned_at_ms;     /* exponential-delay; PLIANT_NEVER: none yet */
    struct VEC(int64_t) times; /* failure-rate */
};

struct model {
    const struct pliant_job *job;
    const struct pliant_config *cfg; /* resolved */
    const char *broken;              /* the first rule that did not hold */
    char detail[256];

    enum pliant_state state;
    enum pliant_job_status status;
    bool started, archived;
    bool late; /* set by the caller: timers of several instants may have gone off in this step */
    uint64_t steps;
    uint32_t lives;                                  /* of nodes */
    uint32_t *min, *max, *min_planned, *max_planned; /* [vertices]: bounds; when it was planned */
    uint32_t *group_of, *deployed;                   /* [vertices] */
    uint32_t n_vertices, n_groups;
    uint32_t declared, declared_min;

    struct VEC(struct model_node) nodes;
    struct VEC(struct model_slot) slots; /* by id */
    struct model_tasks *tasks;           /* [vertices], in no order: those that live */
    struct model_attempts *attempts;     /* [vertices], by subtask: number of the last one */
    uint32_t n_live;
    int64_t down_at_ms; /* when the last live task ended */
    struct model_plan plan;
    struct model_regions regions;                    /* where parallelism is fixed */
    struct model_batch batch;                        /* where it follows from data */
    struct VEC(struct model_checkpoint) checkpoints; /* asked for, not answered */
    struct VEC(uint64_t) completed;                  /* ids of checkpoints */
    bool stopped;                                    /* the savepoint of a stop is done */

    struct model_budget restarts, creations;
    int64_t backoff_ms; /* of the restart or retry that goes on */
    int64_t entered_at_ms;
    bool run_begins; /* in this step */
    uint64_t drain_moves;
    bool drained_lost;  /* in this run: a node that drained and was used */
    int64_t longest_ms; /* checkpoint */
    uint32_t wishes;    /* savepoints that are asked for and not answered */
    bool record_open;

    /* worker groups */
    struct pliant_counts before; /* this step */
    uint32_t batches;            /* in this step: restarts and ends that deaths led to */
    bool reset_limit_reached;    /* by a death or a resize, who knows */
    int64_t hold_until_ms;       /* no plan before */
    uint64_t registering;        /* id of the checkpoint that is to be written down; 0: none */
    int64_t registered_at_ms;    /* when that was asked for */
};

int model_init(struct model *m, const struct pliant_job *job, const struct pliant_config *cfg);
void model_free(struct model *m);

/* A step took *ev and gave *acts; timers that were due before the event have had a step of their
 * own. NULL, or the rule that is broken. */
const char *model_step(struct model *m, int64_t now_ms, const struct pliant_event *ev,
                       const struct pliant_actions *acts, const struct pliant_sched *sched);

struct model_node *model_node(const struct model *m, const char *name); /* NULL: never seen */
/* If that attempt lives, or NULL. */
struct model_task *model_task(const struct model *m, const struct pliant_task *id);

uint32_t model_desired(const struct model *m);
bool model_all_running(const struct model *m);

#endif

/* sched.h - one scheduler: its data, its states, and what the states share
 *
 * A state is a module of its own: a constructor that returns the state as a value, and a table of
 * reactions (struct state_ops). A reaction returns the next state, or STAY; only settle() in
 * machine.c carries a transition out. Nothing of the old state survives but what the transition
 * hands over in that value.
 *
 * Owner   what needs freeing lives in the tables of struct pliant_sched, not in the state
 * Errors  no memory: sched_no_memory() notes it, the step answers -ENOMEM from then on
 * Source  docs/states.md
 */
#ifndef PLIANT_STATES_SCHED_H
#define PLIANT_STATES_SCHED_H

#include <pliant/pliant.h>

#include "allocator/allocator.h"
#include "failover/classify.h"
#include "failover/exception_history.h"
#include "graph/execution.h"
#include "graph/job.h"
#include "graph/pool.h"
#include "graph/reports.h"
#include "states/batching.h"
#include "states/checkpointing.h"
#include "states/regional.h"
#include "states/scheduling.h"
#include "states/speculation.h"
#include "states/timeline.h"
#include "transition/manager.h"
#include "transition/policy.h"
#include "util/deadline.h"
#include "util/sort.h"

/* ---- a state, as a value ---------------------------------------------------------------- */

/* Why a state is entered, for STATE_CHANGED. */
struct why {
    enum pliant_reason reason;
    pliant_node_id node;
    int64_t since_at_ms;
    int64_t detail;
};

#define WHY(code) ((struct why){.reason = (code), .since_at_ms = PLIANT_NEVER})

struct waiting {
    struct manager manager;
    struct deadline timeout, check;
    bool has_target; /* entered from a rescale: sched->target [S-WFR-13] */
    int64_t hold_ms; /* nothing is looked at before; > 0 only after a failed launch [W-GRP-4] */
};

/* Tasks are going down; shared by the states that wait for that. */
struct winding {
    int64_t delay_ms;        /* from all tasks down to `down` */
    struct deadline down;    /* armed once all are */
    struct deadline give_up; /* on tasks that do not confirm [S-FLG-4] */
    bool archived;
};

/* The workers of a group come up, all or none. */
struct launch {
    enum { LAUNCH_NONE, LAUNCH_STARTING, LAUNCH_GIVEN_UP } phase;
    struct deadline timeout; /* STARTING */
    struct winding winding;  /* GIVEN_UP, and the rest too: what follows once all are down */
    enum launch_end { LAUNCH_AGAIN, LAUNCH_FAILS, LAUNCH_CANCELED } then;
    int64_t backoff_ms; /* AGAIN */
    struct why why;
};

struct creating {
    uint32_t plan;          /* the one that RESERVE named */
    struct deadline failed; /* there is none: too few slots */
    struct launch launch;
};

struct retrying {
    int64_t backoff_ms;
    struct deadline backoff;
};

/* A drain that will move the job [S-DRN-3..7]. */
struct drain {
    bool pending;
    bool wants_checkpoint; /* asked for, but one was pending or not all tasks ran */
    bool covered;          /* a checkpoint triggered at or after the notice has completed */
    bool last_checkpoint;  /* the end is near: only one more checkpoint is waited for */
    int64_t notice_at_ms, end_at_ms;
    struct deadline move, limit;
};

/* A worker's failure that waits whether a preemption explains it [W-CLS-4]. */
struct collateral {
    bool held;
    struct deadline end;
    struct failure_class failure;
    struct why why;
};

struct executing {
    struct manager manager;
    struct deadline check; /* change and trigger, once, after the entry */
    struct deadline again; /* the policy said "not now": trigger then */
    int64_t countdown;     /* failed checkpoints left until one acts as a trigger; -1: not armed */
    uint64_t trigger_checkpoint; /* the one that is acting as a trigger now, or 0 */
    bool wants_checkpoint;       /* the policy does, but one was pending or not all tasks ran */
    int64_t running_since_ms;    /* all tasks; PLIANT_UNSET: not yet */
    int64_t first_report_at_ms;  /* of a group, by all ranks; PLIANT_UNSET: none yet */
    bool start_measured;         /* of a group: a second one came */
    struct pliant_judged judged; /* the last judgement that was told */
    uint64_t idle_slots;         /* that a rescale would use, since the last change */
    int64_t missed;              /* slot-ms of them before it */
    int64_t changed_at_ms;       /* slots or requirements; the entry before there was one */
    struct checkpointing checkpointing;
    struct drain drain;
    struct collateral collateral;
};

struct restarting {
    struct winding winding;
    bool has_target; /* a rescale: sched->target */
};

struct failing {
    struct winding winding;
};

struct canceling {
    struct winding winding;
};

struct stopping {
    struct checkpointing checkpointing;
    bool savepoint_done;
    bool answered; /* whoever asked knows how it ended */
    enum { STOPPING_GOES_ON, STOPPING_FAILED, STOPPING_FINISHED } decided;
    struct failure_class failure; /* STOPPING_FAILED: waits for the savepoint */
    struct why why;
};

struct finished {
    enum pliant_job_status status;
};

struct state {
    uint8_t id; /* enum pliant_state, or STATE_STAY */
    struct why why;
    union {
        struct waiting waiting;
        struct creating creating;
        struct retrying retrying;
        struct executing executing;
        struct restarting restarting;
        struct failing failing;
        struct canceling canceling;
        struct stopping stopping;
        struct finished finished;
    };
};

#define STATE_STAY PLIANT_STATES
#define STAY ((struct state){.id = STATE_STAY})

/* ---- the scheduler ---------------------------------------------------------------------- */

/* A placement that was computed: what RESERVE asked for. */
struct plan {
    uint32_t serial;
    uint64_t births;       /* the pool's, when it was computed: no slot of it is younger */
    uint32_t *parallelism; /* [n_vertices] */
    uint32_t *group_slots; /* [n_groups] */
    struct VEC(uint32_t) unit_slots; /* slot ids */
};

/* Where the tasks of the last run were, for locality [S-LOC-1]. */
struct previous {
    bool exists;
    uint64_t births;
    uint32_t *parallelism, *first; /* [n_vertices] */
    struct VEC(struct history_entry) entries;
};

/* What a worker group remembers from launch to launch. */
struct group {
    uint32_t attempt;       /* 0: none yet [W-STA-2] */
    bool relaunch;          /* the last launch did not come up: the next one is the same attempt */
    uint32_t failed_in_row; /* launches */
    bool port_retried;      /* the last restart was for another port */
    enum pliant_reason end; /* what ended the job, until its failures are archived; or NONE */
};

/* A checkpoint that all ranks have reported and the host writes into the manifest [W-CKP-1]. */
struct registration {
    uint64_t id; /* 0: none */
    int64_t reported_at_ms;
    struct deadline expiry;
    struct VEC(struct report_call) calls; /* that are over with it */
};

struct report_call {
    struct pliant_task task;
    uint64_t call;
};

struct way;

struct pliant_sched {
    struct pliant_config cfg; /* resolved */
    const struct way *way;    /* chosen once, by jobmanager.scheduler */
    const struct pliant_alloc *alloc;
    const struct pliant_job *job;
    uint64_t fingerprint; /* of job and options: what a snapshot belongs to; 0: not asked yet */
    bool no_memory;
    struct clock clock;
    struct prng prng;

    struct bounds bounds;
    uint32_t *max_parallelism; /* [n_vertices] */
    uint64_t declared_slots, declared_minimum;
    bool has_declared;

    struct pool pool;
    struct execution graph;
    struct regional regional;
    struct scheduling scheduling;
    struct speculation speculation;
    struct batching batching;
    struct plan plan;
    struct previous previous;
    uint32_t *target;           /* [n_vertices]: what a rescale aims at, while the state says so */
    uint32_t *scratch;          /* [n_vertices] */
    uint32_t *topological_rank; /* [n_vertices]: where it stands in job->topological */

    struct state state;
    int64_t entered_at_ms;
    int64_t deployed_at_ms; /* the tasks of this run */
    struct deadline idle_check;

    struct failover failover;
    struct restart_strategy creation_retry;
    struct rescale_policy policy;
    struct failures failures;
    struct label_rules *label_rules; /* that the failures' labels point into; NULL: none */
    struct checkpoint_facts checkpoints;
    struct group group;
    struct reports reports;
    struct registration registration;
    char *savepoint_path; /* while stopping: where it is, or NULL */
    struct timeline timeline;
    uint64_t restarts, rescales, creation_retries, events_ignored;

    /* the outbox: valid until the next step */
    struct VEC(struct pliant_action) actions;
    struct VEC(void *) blocks;
    struct pliant_action spare; /* written where there is no memory for one; read by nobody */
};

/* A failure that a state has to decide on; it is recorded already. */
struct failure {
    struct failure_class class;
    struct why why;
    bool input_lost; /* the task could not read this result: */
    uint32_t edge, producer;
};

/* Bytes that are kept of a text that goes out or waits to, as a savepoint's path. */
#define SCHED_TEXT_MAX (8 * PLIANT_CAUSE_MAX)

#define DEADLINES_MAX 24u

/* What a state does. NULL: nothing (it is counted as ignored where that is news). */
struct state_ops {
    enum pliant_job_status status;
    bool has_graph;
    uint32_t may_follow; /* BIT() of the states that this one may be entered from */
    void (*enter)(struct pliant_sched *s, enum pliant_state from);
    void (*leave)(struct pliant_sched *s, const struct state *next);
    size_t (*deadlines)(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX]);
    struct state (*on_due)(struct pliant_sched *s, struct deadline *due);

    struct state (*on_resources)(struct pliant_sched *s);                     /* slots were added */
    struct state (*on_requirements)(struct pliant_sched *s);                  /* bounds differ */
    struct state (*on_drain)(struct pliant_sched *s, struct pool_node *node); /* began or moved */
    struct state (*on_drain_over)(struct pliant_sched *s); /* withdrawn, or the node is gone */
    struct state (*on_plan)(struct pliant_sched *s, const struct pliant_event *ev);
    struct state (*on_tasks)(struct pliant_sched *s); /* some task is in another state */
    struct state (*on_failure)(struct pliant_sched *s, const struct failure *failure);
    struct state (*on_checkpoint)(struct pliant_sched *s, const struct pliant_event *ev);
    struct state (*on_registered)(struct pliant_sched *s); /* a checkpoint, by its workers */
    struct state (*on_start)(struct pliant_sched *s);
    struct state (*on_cancel)(struct pliant_sched *s);
    struct state (*on_request)(struct pliant_sched *s, const struct pliant_event *ev);
};

#define BIT(state) (1u << (state))

/* What is different with another scheduler. Where nothing is said the state is Executing. */
struct way {
    bool rescales;                                 /* parallelism follows the slots */
    bool decides;                                  /* ... the data that a vertex reads */
    bool single;                                   /* each task is a region, in a slot of its own */
    struct state (*start)(struct pliant_sched *s); /* in Created */
    void (*find)(struct pliant_sched *s);  /* the regions of a graph that begins or is read */
    void (*begin)(struct pliant_sched *s); /* the first tasks start */
    /* some task is in another state: what follows for regions? */
    struct state (*look)(struct pliant_sched *s);
    struct state (*resources)(struct pliant_sched *s); /* slots were added */
    /* a task is over, a node is about to be forgotten (true: that is a failure); in any state with
     * a graph; may be NULL */
    void (*task_down)(struct pliant_sched *s, uint32_t v, uint32_t subtask);
    bool (*node_lost)(struct pliant_sched *s, const struct pool_node *node,
                      enum pliant_reason reason);
    restart_available *available; /* for what restarts; ctx: struct available */
    void (*owned)(struct pliant_sched *s, uint32_t region); /* a plan has it now; may be NULL */
    struct state (*failed)(struct pliant_sched *s, const struct failure *failure);
    struct state (*carry_out)(struct pliant_sched *s, uint32_t plan); /* it is due */
    /* A failure is paid that concerns the whole job; in StopWithSavepoint any. */
    struct state (*restart)(struct pliant_sched *s, const struct failure *failure,
                            const struct failover_decision *decision);
    /* The job is about to fail for it; may be NULL. */
    void (*gives_up)(struct pliant_sched *s, const struct failure *failure, enum pliant_reason why);
    struct state (*move)(struct pliant_sched *s, pliant_node_id node); /* off what leaves */
    bool (*fits)(const struct pliant_sched *s); /* ... and there is room for it elsewhere */
};

extern const struct way adaptive_way, default_way, batch_way;

extern const struct state_ops created_ops, waiting_ops, creating_ops, retrying_ops, executing_ops,
    restarting_ops, failing_ops, canceling_ops, stopping_ops, finished_ops, launching_ops;

/* ---- constructors of states ------------------------------------------------------------- */

struct state waiting(struct pliant_sched *s, bool has_target, struct why why);
struct state creating(struct pliant_sched *s, struct why why);
struct state retrying(struct pliant_sched *s, int64_t backoff_ms, struct why why);
struct state executing(struct pliant_sched *s, struct why why);
struct state executing_change(struct pliant_sched *s); /* slots, requirements: worth a rescale? */
struct state executing_again(struct pliant_sched *s, const struct checkpointing *c, struct why why);
/* With `target`, s->target says what is aimed at. */
struct state restarting(struct pliant_sched *s, int64_t backoff_ms, bool target, struct why why);
struct state failing(struct pliant_sched *s, struct why why);
struct state canceling(struct pliant_sched *s, struct why why);
struct state stopping(struct pliant_sched *s, const struct checkpointing *c, const char *dir,
                      bool drain);
struct state finished(struct pliant_sched *s, enum pliant_job_status status, struct why why);

/* ---- machine.c -------------------------------------------------------------------------- */

const struct state_ops *state_ops(enum pliant_state id);
/* What the present state does. While a worker group comes up CreatingExecutionGraph has tasks, and
 * does what launching.c says. */
const struct state_ops *sched_ops(const struct pliant_sched *s);
int machine_step(struct pliant_sched *s, int64_t now_ms, const struct pliant_event *ev);
/* The state's timers and the scheduler's own. */
size_t machine_deadlines(struct pliant_sched *s, struct deadline *list[DEADLINES_MAX]);
int64_t machine_next_deadline(const struct pliant_sched *s);
/* STATUS_CHANGED, if it is another one than before. */
void tell_status(struct pliant_sched *s, enum pliant_job_status before);

/* ---- outbox.c --------------------------------------------------------------------------- */

void sched_no_memory(struct pliant_sched *s);
/* One more action of this kind, zeroed; without memory a scratch one that goes nowhere. */
struct pliant_action *emit(struct pliant_sched *s, enum pliant_action_kind kind);
void emit_refused(struct pliant_sched *s, enum pliant_reason reason, uint32_t vertex);
void emit_savepoint_ended(struct pliant_sched *s, const char *path, const char *cause);
/* n zeroed objects that live until the next step; NULL: no memory, which is noted. */
void *outbox_block(struct pliant_sched *s, size_t n, size_t size);
/* A copy that lives until the next step; "" for want of memory, NULL for NULL. */
const char *outbox_text(struct pliant_sched *s, const char *text);
void outbox_clear(struct pliant_sched *s);
void outbox_free(struct pliant_sched *s);

/* ---- resources.c: what could run, what is wanted ---------------------------------------- */

/* The parallelism that n slots allow, into s->scratch; false: not sufficient. */
bool achievable(struct pliant_sched *s, uint64_t n_slots);
bool achievable_differs(struct pliant_sched *s); /* ... with all slots, from the running one */
bool achievable_is_target(struct pliant_sched *s);
/* Aim at what all slots allow: it becomes s->target; false: not sufficient, no target. */
bool target_aim(struct pliant_sched *s);
/* Slots that would be of use, and that it needs. */
uint64_t desired_slots(const struct pliant_sched *s);
uint64_t minimal_slots(const struct pliant_sched *s);
void declare(struct pliant_sched *s);
/* Compute s->plan from the free slots; false: not sufficient. */
bool plan_compute(struct pliant_sched *s);
bool plan_holds(const struct pliant_sched *s);
bool place_units_anew(struct pliant_sched *s, const uint32_t *group_slots, uint32_t units,
                      uint32_t *slots);
void previous_capture(struct pliant_sched *s);
void previous_sizes(struct pliant_sched *s, const struct pliant_state_size *sizes, size_t n);
/* Give back what is idle for too long and not wanted [S-IDL-1]. */
void release_idle(struct pliant_sched *s);
void release_all(struct pliant_sched *s);
/* Give back what was reclaimed and is free by now. */
void return_reclaimed(struct pliant_sched *s);

/* ---- deploying.c ------------------------------------------------------------------------ */

/* Start what is scheduled, in topological order, subtasks ascending [S-EXE-1]. */
void deploy_scheduled(struct pliant_sched *s);
/* This attempt of a task. */
void deploy_attempt(struct pliant_sched *s, uint32_t v, uint32_t subtask, struct task *attempt);
/* These tasks, in this order: `value` is the vertex's index, `minor` the subtask. */
void deploy_tasks(struct pliant_sched *s, const struct sort_item *tasks, size_t n);

/* ---- launching.c: the workers of a group come up ---------------------------------------- */

/* In CreatingExecutionGraph, with a graph of scheduled tasks. */
struct state launch_begin(struct pliant_sched *s);
/* There were no workers yet: the host could not prepare them, or the job failed as a whole. */
struct state launch_refused(struct pliant_sched *s, struct why why, const char *cause);

/* ---- collateral.c: failures during a drain ---------------------------------------------- */

/* Facts on which the class of a worker's failure hangs. */
struct failure_class failure_class_of(const struct pliant_sched *s, const struct pliant_event *ev,
                                      const struct pool_node *node);
/* Executing: a failure is decided on, or held back for a while. */
struct state collateral_failed(struct pliant_sched *s, const struct failure *failure);
/* Time is up, or nobody is left: it was what it looked like. */
struct state collateral_over(struct pliant_sched *s);

/* ---- reporting.c: reports of a group's workers ------------------------------------------ */

struct state report_came(struct pliant_sched *s, const struct pliant_event *ev, bool *ret_ignored);
/* Is the event the end of the registration? Then it is noted; who waits for it is to be told. */
bool registration_ended(struct pliant_sched *s, const struct pliant_event *ev);
void reports_tell_taken(struct pliant_sched *s);
void registration_expired(struct pliant_sched *s);
/* The next set of reports, if there is one. */
struct state reports_consume(struct pliant_sched *s);
/* The attempt is over [W-CKP-9]; a registration that is under way goes on. */
void reports_over(struct pliant_sched *s);

/* ---- worth_view.c ----------------------------------------------------------------------- */

/* In Executing: from the present parallelism to what is achievable (in s->scratch then). */
struct worth_view worth_view(struct pliant_sched *s);

/* ---- failures.c: the one failure path --------------------------------------------------- */

/* A failure without a cause gets one [S-FAIL-8]. */
static inline const char *cause_or_missing(const char *cause)
{
    return cause && *cause ? cause : "missing cause";
}
/* Note a failure in the present incarnation's list. */
void failure_record(struct pliant_sched *s, const struct pliant_failure_item *item);
void failure_archive(struct pliant_sched *s);
/* Tell and ask whoever pays: STAY with the decision to restart, or Failing [S-FAIL-1]. */
struct state failure_charge(struct pliant_sched *s, const struct failure *failure,
                            struct failover_decision *ret);
/* A live attempt of a task has ended, in one way or another. `input_lost`: it failed for what it
 * reads. */
void task_over(struct pliant_sched *s, uint32_t v, uint32_t subtask, struct task *attempt,
               enum pliant_task_state state, bool input_lost);
/* All attempts of a task go down; what has no slot only if `unstarted`, and then at once. */
void task_stop(struct pliant_sched *s, uint32_t v, uint32_t subtask, bool unstarted);
/* One of them, that has a slot. */
void attempt_stop(struct pliant_sched *s, uint32_t v, uint32_t subtask, struct task *attempt);
/* The attempts of a task that do not confirm take their nodes along [S-FLG-4]; *ret is written if
 * there are any. */
void task_give_up(struct pliant_sched *s, uint32_t v, uint32_t subtask, struct failure *ret);
/* Decide: the way's restart, or Failing [S-FAIL-1]. */
struct state failure_decide(struct pliant_sched *s, const struct failure *failure);
/* While tasks go down: it is recorded, and there is nothing to decide [S-RST-6, S-FLG-3]. */
struct state failure_recorded_only(struct pliant_sched *s, const struct failure *failure);
/* In a state without a graph: the end [S-GEN-9]. */
struct state failure_without_graph(struct pliant_sched *s, const struct failure *failure);
/* A cancel: the end at once [S-GEN-9], or first all tasks have to go down. */
struct state cancel_without_graph(struct pliant_sched *s);
struct state cancel_with_graph(struct pliant_sched *s);
/* The node is gone: its tasks fail, its slots go. Writes the first failure of a live task;
 * false: there was none. */
bool node_gone(struct pliant_sched *s, struct pool_node *node, struct failure *ret);

/* ---- winding.c: tasks going down -------------------------------------------------------- */

/* Cancel what lives. `give_up_at_ms`: of a cancel that was sent before, or PLIANT_NEVER. */
void winding_begin(struct pliant_sched *s, struct winding *w, int64_t delay_ms,
                   const struct deadline *give_up);
/* All down? Then archive the failures and arm `down`. */
void winding_look(struct pliant_sched *s, struct winding *w);
void winding_give_up(struct pliant_sched *s, struct winding *w);
size_t winding_deadlines(struct winding *w, struct deadline *list[]);
const struct deadline *winding_of(const struct state *state); /* its give_up, or NULL */

/* ---- record.c: the rescale history ------------------------------------------------------ */

void record_open(struct pliant_sched *s, bool new_epoch, enum pliant_rescale_trigger trigger);
void record_restart(struct pliant_sched *s, enum pliant_rescale_trigger trigger); /* [S-TML-6] */
void record_span(struct pliant_sched *s);
void record_close(struct pliant_sched *s, enum pliant_rescale_end end);
/* What the policy says of the rescale in question, into the open record; told when it is news. */
void record_judged(struct pliant_sched *s, const struct pliant_judged *judged);

/* ... and none of them is about to restart [P-REG-5]. */
static inline bool sched_all_running(const struct pliant_sched *s)
{
    return execution_all_running(&s->graph) && !regional_pending(&s->regional);
}

/* It was told to stop, by a plan or because another attempt has won: that it fails is no news
 * [3.1]. */
static inline bool task_goes_down(const struct pliant_sched *s, const struct task *attempt)
{
    return attempt->state == PLIANT_TASK_CANCELING &&
           (attempt->rival || regional_pending(&s->regional));
}

/* Attempts failed in this step, and nobody has decided yet what follows. */
static inline bool sched_undecided(const struct pliant_sched *s)
{
    return s->regional.fallen.n > 0 || s->speculation.local;
}

static inline bool checkpointing_on(const struct pliant_sched *s)
{
    return s->cfg.checkpoint_interval_ms != PLIANT_UNSET;
}

static inline pliant_node_id node_id(const struct pool_node *node)
{
    return (pliant_node_id){node ? node->row + 1 : 0};
}

#endif

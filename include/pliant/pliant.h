/* pliant.h - elastic job scheduling as a pure step function
 *
 * The scheduler reads no clock, opens no socket, starts no thread. The embedding program
 * tells it what happened (an event, at a time) and does what it asks for (the actions).
 * Same job, config, events and times: same actions, byte for byte. One scheduler runs one
 * job; calls on one scheduler must not overlap.
 *
 *     for (;;) {
 *         wait_for_input(until pliant_next_deadline(s)); // none came: a TICK
 *         journal_append(now_ms, &ev);                   // write down ...
 *         pliant_step(s, now_ms, &ev, &acts);            // ... decide ...
 *         for (size_t i = 0; i < acts.n; i++)
 *             execute(&acts.v[i]);                       // ... act
 *     }
 *
 * Recovery: replay the journal (or restore a snapshot and replay what came after it), drop
 * the actions, then report as events how the world differs by now. Actions name their
 * attempt: doing one twice is harmless. News of an attempt, a plan, a checkpoint or a node's
 * life that is over changes nothing.
 *
 * Units   int64_t milliseconds: a duration is _ms, an instant _at_ms. The origin of the
 *         clock is the caller's; no instant is negative, and time never goes back.
 * Strings UTF-8. Going in: borrowed for the call. Coming out: valid until the next step
 *         unless stated otherwise. Texts of causes are kept up to PLIANT_CAUSE_MAX bytes.
 * Errors  0 or a negative errno value. -ENOMEM is final: every later step answers with it,
 *         and the way on is a new scheduler replayed from the journal.
 */
#ifndef PLIANT_PLIANT_H
#define PLIANT_PLIANT_H

#include <pliant/config.h>
#include <pliant/job.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLIANT_CAUSE_MAX 512u
#define PLIANT_MAX_NODES 1000000u
#define PLIANT_MAX_SLOTS 4000000u            /* of all nodes together */
#define PLIANT_BYTES_MAX (UINT64_C(1) << 53) /* what one task writes for one edge */

/* ---- names of things ------------------------------------------------------------------- */

enum pliant_state {
    PLIANT_CREATED,
    PLIANT_WAITING_FOR_RESOURCES,
    PLIANT_CREATING_EXECUTION_GRAPH,
    PLIANT_RETRYING_EXECUTION_GRAPH_CREATION,
    PLIANT_EXECUTING,
    PLIANT_RESTARTING,
    PLIANT_FAILING,
    PLIANT_CANCELING,
    PLIANT_STOP_WITH_SAVEPOINT,
    PLIANT_FINISHED,
    PLIANT_STATES, /* how many there are */
};

enum pliant_job_status {
    PLIANT_JOB_INITIALIZING,
    PLIANT_JOB_CREATED,
    PLIANT_JOB_RUNNING,
    PLIANT_JOB_RESTARTING,
    PLIANT_JOB_FAILING,
    PLIANT_JOB_FAILED,
    PLIANT_JOB_CANCELLING,
    PLIANT_JOB_CANCELED,
    PLIANT_JOB_FINISHED,
    PLIANT_JOB_SUSPENDED,
};

enum pliant_task_state {
    PLIANT_TASK_CREATED,
    PLIANT_TASK_SCHEDULED,
    PLIANT_TASK_DEPLOYING,
    PLIANT_TASK_INITIALIZING,
    PLIANT_TASK_RUNNING,
    PLIANT_TASK_CANCELING,
    PLIANT_TASK_FINISHED,
    PLIANT_TASK_CANCELED,
    PLIANT_TASK_FAILED,
};

/* Why something happened. Codes, not sentences; texts: pliant_reason_name(). */
enum pliant_reason {
    PLIANT_REASON_NONE,
    /* why a state was left */
    PLIANT_REASON_STARTED,
    PLIANT_REASON_DESIRED_RESOURCES,    /* all that was wanted is there */
    PLIANT_REASON_SUFFICIENT_RESOURCES, /* stabilization is over, it can run */
    PLIANT_REASON_RESOURCE_TIMEOUT,
    PLIANT_REASON_PLAN_READY,
    PLIANT_REASON_SLOTS_GONE, /* a slot of the plan was no longer free */
    PLIANT_REASON_RESCALE,
    PLIANT_REASON_DRAIN,
    PLIANT_REASON_RECLAIM, /* slots go back to the pool that jobs share */
    PLIANT_REASON_BACKOFF_OVER,
    PLIANT_REASON_TARGET_REACHABLE,   /* after a rescale: what was aimed at can be had */
    PLIANT_REASON_TARGET_UNREACHABLE, /* it can't: wait for resources */
    PLIANT_REASON_LAUNCHED,           /* all workers of the group are up */
    PLIANT_REASON_ALL_FINISHED,
    PLIANT_REASON_ALL_CANCELED,
    PLIANT_REASON_CANCEL_REQUESTED,
    PLIANT_REASON_SUSPEND_REQUESTED,
    PLIANT_REASON_STOP_REQUESTED,
    PLIANT_REASON_SAVEPOINT_DONE,
    PLIANT_REASON_SAVEPOINT_FAILED,
    /* what failed */
    PLIANT_REASON_TASK_FAILED,
    PLIANT_REASON_NODE_LOST,
    PLIANT_REASON_DRAINING_NODE_LOST,
    PLIANT_REASON_GLOBAL_FAILURE,
    PLIANT_REASON_CREATION_FAILED,
    PLIANT_REASON_NOT_ENOUGH_RESOURCES,
    PLIANT_REASON_TOO_MANY_CHECKPOINT_FAILURES,
    PLIANT_REASON_STOPPING_FAILED, /* the savepoint exists, the job failed while stopping */
    PLIANT_REASON_LAUNCH_FAILED,   /* not all workers of a group came up */
    PLIANT_REASON_LAUNCH_TIMEOUT,  /* ... in time */
    PLIANT_REASON_PREEMPTED,       /* a worker was killed on a node that is taken back */
    PLIANT_REASON_PORT_IN_USE,
    PLIANT_REASON_CHECKPOINT_PATHS_DIFFER,
    /* why a failure ends the job */
    PLIANT_REASON_NOT_RECOVERABLE,
    PLIANT_REASON_RESTARTS_SUPPRESSED, /* by the restart strategy */
    PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED,
    PLIANT_REASON_WORKER_BUDGET_EXHAUSTED,     /* worker-group.max-failures */
    PLIANT_REASON_PREEMPTION_BUDGET_EXHAUSTED, /* worker-group.max-preemption-failures */
    PLIANT_REASON_LAUNCH_BUDGET_EXHAUSTED,     /* worker-group.controller-failure-limit */
    PLIANT_REASON_RESET_LIMIT_REACHED,         /* worker-group.reset-limit */
    /* why a wish was refused */
    PLIANT_REASON_NOT_EXECUTING,
    PLIANT_REASON_ALREADY_STARTED,
    PLIANT_REASON_CHECKPOINTING_OFF,
    PLIANT_REASON_NO_SAVEPOINT_DIR,
    PLIANT_REASON_CHECKPOINT_PENDING,
    PLIANT_REASON_TASKS_NOT_RUNNING,
    PLIANT_REASON_REACTIVE_MODE,
    PLIANT_REASON_FIXED_PARALLELISM, /* jobmanager.scheduler: default */
    PLIANT_REASON_JOB_ENDED,
    PLIANT_REASON_UNKNOWN_VERTEX,
    PLIANT_REASON_VERTEX_MISSING, /* an update must name every vertex */
    PLIANT_REASON_BOUND_BELOW_ONE,
    PLIANT_REASON_MIN_ABOVE_MAX,
    PLIANT_REASON_ABOVE_MAX_PARALLELISM,
    PLIANT_REASON_NAMED_TWICE,
    PLIANT_REASONS, /* how many there are */
};

/* What made a checkpoint wanted. */
enum pliant_checkpoint_cause {
    PLIANT_CHECKPOINT_PERIODIC,
    PLIANT_CHECKPOINT_RESCALE,     /* an active request of the transition manager [S-EXE-19] */
    PLIANT_CHECKPOINT_DRAIN,       /* [S-DRN-4], [S-DRN-5] */
    PLIANT_CHECKPOINT_END_OF_DATA, /* [S-GEN-19] */
    PLIANT_CHECKPOINT_USER,
    PLIANT_CHECKPOINT_STOP, /* the savepoint of stop-with-savepoint */
};

enum pliant_drain_reason {
    PLIANT_DRAIN_PREEMPTION,
    PLIANT_DRAIN_SCALE_DOWN,
    PLIANT_DRAIN_UPGRADE,
    PLIANT_DRAIN_IDLE,
};

/* How a worker of a group died. What the scheduler stopped is TASK_CANCELED, exit code 0 is
 * TASK_FINISHED, and the loss of a node is told of the node. */
enum pliant_death {
    PLIANT_DEATH_ERROR,       /* it failed: another exit code, an error file */
    PLIANT_DEATH_CRASH,       /* killed by a signal, other than ... */
    PLIANT_DEATH_TERMINATED,  /* ... by SIGTERM or SIGKILL that the scheduler did not send */
    PLIANT_DEATH_HUNG,        /* its health check went unanswered for too long */
    PLIANT_DEATH_PORT_IN_USE, /* the address of the group's rendezvous was taken by others */
    PLIANT_DEATHS,            /* how many there are */
};

/* One attempt of one parallel instance. */
struct pliant_task {
    pliant_vertex_id vertex;
    uint32_t subtask; /* 0 <= subtask < parallelism */
    uint32_t attempt; /* from 1; news of another attempt is ignored */
};

/* ---- events: facts from outside, in the past tense ------------------------------------- */

enum pliant_event_kind {
    PLIANT_EV_TICK,  /* only time has passed */
    PLIANT_EV_START, /* start scheduling */

    PLIANT_EV_NODE_UP,              /* .node_up */
    PLIANT_EV_NODE_DRAINING,        /* .draining: will go, with notice */
    PLIANT_EV_NODE_DRAIN_WITHDRAWN, /* .node */
    PLIANT_EV_NODE_LOST,            /* .node: gone */
    PLIANT_EV_SLOTS_GRANTED,        /* .granted: more slots of a node that is up */
    PLIANT_EV_SLOTS_RECLAIMED,      /* .reclaimed: slots that others shall have */

    PLIANT_EV_SLOTS_RESERVED,  /* .plan: the answers to RESERVE */
    PLIANT_EV_SLOTS_REFUSED,   /* .plan */
    PLIANT_EV_CREATION_FAILED, /* .plan, with cause */

    PLIANT_EV_TASK_INITIALIZING, /* .task */
    PLIANT_EV_TASK_RUNNING,      /* .task */
    PLIANT_EV_TASK_END_OF_DATA,  /* .task: still running, has no more input */
    PLIANT_EV_TASK_FINISHED,     /* .finished; .task is its first member */
    PLIANT_EV_TASK_CANCELED,     /* .task: it has stopped as it was told to. Untold, it has failed
                                    where regions restart alone */
    PLIANT_EV_TASK_FAILED,       /* .failure */
    PLIANT_EV_GLOBAL_FAILURE,    /* .failure; its task is unset */

    PLIANT_EV_REPORT, /* .report: a worker of a group calls report() */

    PLIANT_EV_CHECKPOINT_COMPLETED, /* .checkpoint; also how a REGISTER ended */
    PLIANT_EV_CHECKPOINT_FAILED,    /* .checkpoint */
    PLIANT_EV_SAVEPOINT_COMPLETED,  /* .checkpoint */
    PLIANT_EV_SAVEPOINT_FAILED,     /* .checkpoint */

    PLIANT_EV_REQUIREMENTS,         /* .requirements: new bounds of parallelism */
    PLIANT_EV_CHECKPOINT_REQUESTED, /* a user's wishes from here on */
    PLIANT_EV_SAVEPOINT_REQUESTED,  /* .savepoint */
    PLIANT_EV_STOP,                 /* .savepoint: savepoint, then finish */
    PLIANT_EV_CANCEL,
    PLIANT_EV_SUSPEND, /* the scheduler is closed; the job may go on under another one */
    PLIANT_EVENTS,     /* how many kinds there are */
};

struct pliant_label {
    const char *key, *value;
};

struct pliant_bounds {
    const char *vertex;
    int64_t min, max; /* 1 <= min <= max <= max_parallelism; -1: default (1, the maximum) */
};

/* Keyed state of one subtask in a checkpoint, for placement by locality. */
struct pliant_state_size {
    pliant_vertex_id vertex;
    uint32_t subtask;
    uint64_t bytes;
};

/* In C++ every compiler takes types without a name in a union without a name; clang says so. */
#if defined __cplusplus && defined __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnested-anon-types"
#endif

/* What a finished task wrote for a blocking edge that leaves its vertex: bytes of each of its
 * pliant_subpartitions(). */
struct pliant_output {
    uint32_t edge; /* index, from 0 */
    uint32_t n;
    const uint64_t *bytes; /* each, and their sum, at most PLIANT_BYTES_MAX */
};

/* clang-format off */
struct pliant_event {
    enum pliant_event_kind kind;
    union {
        /* A life of a node. Of a name that is up, the same incarnation withdraws a drain (slots and
         * labels stay), a later one means that the old life was lost, and an earlier one is news that is
         * not current. */
        struct {
            const char *name;
            uint64_t incarnation;
            uint32_t slots;
            const char *zone, *domain; /* may be NULL */
            const struct pliant_label *labels;
            size_t n_labels;
        } node_up;
        struct { const char *name; uint64_t incarnation; } node; /* 0: whichever is up */
        struct {
            const char *name;
            uint64_t incarnation;
            int64_t deadline_at_ms; /* PLIANT_NEVER: none was given */
            enum pliant_drain_reason reason;
        } draining;
        struct { const char *name; uint64_t incarnation; uint32_t slots; } granted;
        /* Slots of a node that the job shall give back to a pool that jobs share: free ones go at
         * once, others after a planned move before the deadline. RELEASE names each. */
        struct {
            const char *name;
            uint64_t incarnation;
            uint32_t slots;
            int64_t deadline_at_ms; /* PLIANT_NEVER: none was given */
        } reclaimed;
        struct { uint32_t plan; bool recoverable; const char *cause; } plan;
        struct pliant_task task;
        /* Outputs matter to AdaptiveBatch alone. An edge that is not named wrote nothing; one that
         * does not fit (not of this vertex, another n, named twice, too large) is ignored, with all
         * others of the event, and counted. */
        struct { struct pliant_task task; const struct pliant_output *outputs; size_t n_outputs; } finished;
        struct {
            struct pliant_task task;
            bool recoverable;
            const char *cause;
            enum pliant_death death; /* of a worker of a group; others leave it 0 */
            /* The task could not read what this producer's last attempt wrote for a blocking edge. */
            bool input_lost;
            uint32_t edge;     /* index, from 0 */
            uint32_t producer; /* subtask of the vertex that the edge comes from */
            /* As a shell tells it, 128 and the number of the signal that killed it; 0: there is none */
            uint8_t exit_code;
        } failure;
        /* One of the calls of one worker, counted from 1 in each attempt. path: where its checkpoint
         * is, uploaded; NULL: metrics only. */
        struct { struct pliant_task task; uint64_t call; const char *path; } report;
        /* `own_accord`: the host took it unasked. Its id is the host's, 1..INT64_MAX, and
         * `triggered_at_ms` is when it began. Otherwise the id is that of the CHECKPOINT action. */
        struct {
            uint64_t id;
            bool own_accord;
            bool counts;          /* failed: against execution.checkpointing.tolerable-failed-checkpoints */
            int64_t triggered_at_ms;
            const char *path;     /* savepoint: where it is */
            const char *cause;    /* failed: why */
            const struct pliant_state_size *sizes;
            size_t n_sizes;
        } checkpoint;
        struct { const struct pliant_bounds *v; size_t n; } requirements;
        /* dir NULL: the configured one. cancel: cancel the job when it is done [S-GEN-18].
         * drain: (STOP) the sources emit their end first. */
        struct { const char *dir; bool cancel; bool drain; } savepoint;
    };
};
/* clang-format on */

/* ---- actions: what to do now, in this order -------------------------------------------- */

/* An action cannot fail towards the scheduler: what could not be done comes back as an
 * event (a task that did not start is TASK_FAILED). */
enum pliant_action_kind {
    PLIANT_ACT_DECLARE,        /* .declare: slots wanted in total, and needed, when one of them is
                                  another number than before; for autoscalers */
    PLIANT_ACT_RESERVE,        /* .reserve: build the graph, hold these slots, answer */
    PLIANT_ACT_RELEASE,        /* .release: slots that the job gives back */
    PLIANT_ACT_RELEASE_RESULT, /* .result: what this attempt wrote for a blocking edge will not be
                                  read any more, but by attempts that lost against one that has
                                  finished, until they are down. A failed or canceled attempt has no
                                  results, and the end of the job ends all of them: of those nobody
                                  is told */
    PLIANT_ACT_DECIDED,        /* .decided: by AdaptiveBatch a vertex gets its tasks; unless the job
                                  fixes it, the parallelism follows from what its inputs hold */
    PLIANT_ACT_DEPLOY,        /* .deploy: start this attempt in this slot; what it reads and writes:
                                 pliant_reads(), pliant_subpartitions(). Another attempt of the task
                                 may run already */
    PLIANT_ACT_CANCEL,        /* .task: stop it, then report TASK_CANCELED */
    PLIANT_ACT_CHECKPOINT,    /* .checkpoint: take one now, then report */
    PLIANT_ACT_REGISTER,      /* .registered: all workers have reported this checkpoint; write it
                                 into the manifest, then CHECKPOINT_COMPLETED or _FAILED with
                                 its id */
    PLIANT_ACT_REPORT_TAKEN,  /* .report: the worker's call is over */
    PLIANT_ACT_NOTIFY,        /* .notify: tell the tasks on the node that it will go */
    PLIANT_ACT_GIVE_UP_NODE,  /* .node: it does not confirm a cancel; counts as lost */
    PLIANT_ACT_BLOCK_NODE,    /* .blocked: it is slow; its free slots are not used until then. The
                                 end moves on untold while a task on it stays slow */
    PLIANT_ACT_REFUSED,       /* .refused: the wish in this event is not carried out */
    PLIANT_ACT_STATE_CHANGED, /* .change: for logs, metrics and listeners */
    PLIANT_ACT_STATUS_CHANGED,  /* .status */
    PLIANT_ACT_RESCALE_OPENED,  /* .rescale */
    PLIANT_ACT_RESCALE_CLOSED,  /* .rescale */
    PLIANT_ACT_RESCALE_JUDGED,  /* .judged: what the policy `worth` says of a rescale, when it is
                                   news */
    PLIANT_ACT_FAILURE,         /* .failure: an entry of the exception history was made */
    PLIANT_ACT_SAVEPOINT_ENDED, /* .savepoint: the answer to STOP or SAVEPOINT_REQUESTED */
    PLIANT_ACT_ARCHIVED,        /* .status: the job has ended; the last action of its life */
    PLIANT_ACTIONS,             /* how many kinds there are */
};

/* clang-format off */
struct pliant_action {
    uint8_t kind; /* enum pliant_action_kind */
    uint8_t flag[3]; /* see the members below */
    union {
        struct { uint32_t desired, min; } declare;
        /* n slots in the order of the plan's units; borrowed until the next step */
        struct { uint32_t plan; uint32_t n; const pliant_slot_id *slots; uint64_t restore; } reserve;
        struct { uint32_t n; const pliant_slot_id *slots; } release;
        struct { struct pliant_task producer; uint32_t edge; } result; /* edge: index, from 0 */
        struct { pliant_vertex_id vertex; uint32_t parallelism; uint64_t bytes; } decided;
        /* restore: the checkpoint to start from; 0: none */
        struct { struct pliant_task task; pliant_slot_id slot; uint64_t restore; } deploy;
        struct pliant_task task;
        /* flag[0]: enum pliant_checkpoint_cause; flag[1]: it is a savepoint; flag[2]: STOP's drain */
        struct { uint64_t id; const char *dir; } checkpoint;
        struct { uint64_t id; const char *path; uint64_t call; } registered; /* call: of rank 0 */
        struct { struct pliant_task task; uint64_t call; } report;
        struct { pliant_node_id node; int64_t deadline_at_ms; } notify; /* flag[0]: drain reason */
        struct { pliant_node_id node; } node;
        struct { pliant_node_id node; int64_t until_at_ms; } blocked;
        struct { pliant_vertex_id vertex; } refused;  /* flag[0]: reason; vertex may be unset */
        /* flag: from, to, reason. Unused members are 0. */
        struct {
            uint32_t slots;       /* offered to the job (not on draining nodes) */
            pliant_node_id node;  /* the node whose loss or drain caused it */
            int64_t since_at_ms;  /* the first change that led here, or PLIANT_NEVER */
            int64_t detail;       /* back-off in ms after a failure; id of the checkpoint that let a
                                   * rescale or drain go on, or 0 */
        } change;
        struct { uint8_t from, to; } status;          /* enum pliant_job_status */
        struct { const struct pliant_rescale *record; } rescale;
        /* flag[0]: enum pliant_judgement; parallelism in slots, gain and cost in slot-ms */
        struct { uint32_t from, to; int64_t gain, cost; } judged;
        struct { const struct pliant_failure *entry; } failure;
        struct { const char *path, *cause; } savepoint; /* path NULL: it failed, see cause */
    };
};
/* clang-format on */

#if defined __cplusplus && defined __clang__
#pragma clang diagnostic pop
#endif

/* Borrowed from the scheduler, valid until its next step or its end. */
struct pliant_actions {
    const struct pliant_action *v;
    size_t n;
};

/* ---- histories -------------------------------------------------------------------------- */

enum pliant_rescale_trigger {
    PLIANT_TRIGGER_INITIAL_SCHEDULE,
    PLIANT_TRIGGER_UPDATE_REQUIREMENT,
    PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE,
    PLIANT_TRIGGER_RECOVERABLE_FAILOVER,
    PLIANT_TRIGGER_DRAIN,   /* Pliant's own */
    PLIANT_TRIGGER_RECLAIM, /* Pliant's own */
};

enum pliant_rescale_end {
    PLIANT_RESCALE_OPEN,
    PLIANT_RESCALE_SUCCEEDED,
    PLIANT_RESCALE_EXCEPTION_OCCURRED,
    PLIANT_RESCALE_REQUIREMENTS_UPDATED,
    PLIANT_RESCALE_NO_CHANGE,
    PLIANT_RESCALE_JOB_FINISHED,
    PLIANT_RESCALE_JOB_FAILED,
    PLIANT_RESCALE_JOB_CANCELED,
    PLIANT_RESCALE_JOB_SUSPENDED,
};

enum pliant_rescale_terminal {
    PLIANT_TERMINAL_NONE,
    PLIANT_TERMINAL_COMPLETED,
    PLIANT_TERMINAL_FAILED,
    PLIANT_TERMINAL_IGNORED,
    PLIANT_TERMINALS,
};

/* Is a rescale worth its restart? */
enum pliant_judgement {
    PLIANT_JUDGED_NOT,        /* nobody asked, or another policy than `worth` */
    PLIANT_JUDGED_GAIN,       /* now: the gain exceeds the cost */
    PLIANT_JUDGED_CHECKPOINT, /* the same once a checkpoint has completed */
    PLIANT_JUDGED_REPORT,     /* the same once the workers have reported a checkpoint */
    PLIANT_JUDGED_SETTLES,    /* the same once no more slots arrive */
    PLIANT_JUDGED_STARTING,   /* not while the tasks start: that costs more than it brings */
    PLIANT_JUDGED_COST,       /* not now: the cost exceeds the gain */
};

struct pliant_judged {
    enum pliant_judgement judgement;
    uint32_t from, to;  /* slots */
    int64_t gain, cost; /* slot-ms */
};

struct pliant_rescale_vertex {
    uint32_t sufficient, desired; /* bounds */
    uint32_t pre, post;           /* parallelism; 0: none */
};

struct pliant_rescale_group {
    uint32_t minimal, desired; /* slots */
    uint32_t pre, post;        /* 0: none */
};

struct pliant_rescale_span {
    uint8_t state; /* enum pliant_state */
    int64_t enter_at_ms, leave_at_ms;
    const char *exception; /* or NULL */
};

/* One attempt to bring the job to new slots and parallelisms, from trigger to end
 * (section 8 of the states' rules). Ids are 128 bits, big-endian. */
struct pliant_rescale {
    uint8_t id[16], requirements_id[16];
    uint32_t attempt; /* within the requirements, from 1 */
    enum pliant_rescale_trigger trigger;
    enum pliant_rescale_end end;
    int64_t start_at_ms, end_at_ms;               /* end: 0 while open */
    const struct pliant_rescale_vertex *vertices; /* [pliant_job_vertices], by id - 1 */
    const struct pliant_rescale_group *groups;    /* [pliant_job_groups] */
    const struct pliant_rescale_span *spans;
    uint32_t n_spans;
    struct pliant_judged judged; /* the last time */
};

PLIANT_API enum pliant_rescale_terminal pliant_rescale_terminal(enum pliant_rescale_end end);

/* Durations in ms of the terminated records of one kind; of none: count 0, percentiles NAN. */
struct pliant_rescale_stats {
    uint64_t count;
    double min, max, avg, p50, p90, p95, p99, p999;
};

struct pliant_rescale_summary {
    uint64_t opened, in_progress;
    struct pliant_rescale_stats all;
    struct pliant_rescale_stats of[PLIANT_TERMINALS]; /* by enum pliant_rescale_terminal */
};

/* One failure that was seen. */
struct pliant_failure_item {
    int64_t at_ms;
    uint8_t reason; /* enum pliant_reason: TASK_FAILED, NODE_LOST, GLOBAL_FAILURE, ... */
    bool recoverable;
    struct pliant_task task; /* vertex unset: a global failure */
    const char *node;        /* "" : none [S-HIST-5] */
    const char *cause;       /* never NULL; "" where the host gave none and none is needed */
    uint8_t exit_code;       /* as TASK_FAILED gave it; 0: none */
    /* By pliant.failure-labels, in the order of its rules; a key once */
    uint32_t n_labels;
    const struct pliant_label *labels;
};

/* All failures of one incarnation: items[0] is the root, the others came after it. */
struct pliant_failure {
    const struct pliant_failure_item *items;
    uint32_t n;      /* kept items */
    uint64_t n_more; /* counted, not kept */
};

/* ---- the scheduler ---------------------------------------------------------------------- */

struct pliant_sched; /* opaque */

/* Make a scheduler in state Created; it decides nothing before its first step. Copies *cfg
 * (resolving it), borrows *job until destroy. The caller owns *ret.
 * Errors: -EINVAL (*cfg or the pair breaks a rule: *err), -ENOMEM; *ret is then untouched. */
PLIANT_API int pliant_sched_new(const struct pliant_config *cfg, const struct pliant_job *job,
                                struct pliant_sched **ret, struct pliant_error *err);

/* Free *s and set it to NULL. Fine on NULL. */
PLIANT_API void pliant_sched_destroy(struct pliant_sched **s);

/* Take *ev at now_ms and hand out the actions that follow from it. Deadlines that are due
 * come first, in the order of (due, made), then the event, then deadlines that it made due.
 * Errors: -EINVAL (malformed event, or time went back; nothing has changed), -ENOMEM
 * (final). On error acts->n is 0. */
PLIANT_API int pliant_step(struct pliant_sched *s, int64_t now_ms, const struct pliant_event *ev,
                           struct pliant_actions *acts);

/* When the next step is due at the latest; PLIANT_NEVER if only an event can move the job.
 * Coming late is safe: decisions use the time of the step. */
PLIANT_API int64_t pliant_next_deadline(const struct pliant_sched *s);

/* The whole state as bytes, versioned and checked: a scheduler restored from them gives the
 * same actions from here on. *ret_bytes comes from the scheduler's allocator; free it with
 * pliant_bytes_free(). Errors: -ENOMEM. */
PLIANT_API int pliant_snapshot(const struct pliant_sched *s, void **ret_bytes, size_t *ret_size);
PLIANT_API void pliant_bytes_free(const struct pliant_alloc *alloc, void *bytes);

/* The opposite, with the same config and job. Errors: -EINVAL (not a snapshot of this
 * version, damaged, or of another job: *err), -ENOMEM. */
PLIANT_API int pliant_restore(const struct pliant_config *cfg, const struct pliant_job *job,
                              const void *bytes, size_t size, struct pliant_sched **ret,
                              struct pliant_error *err);

/* The first broken invariant as text, or NULL. Costs time in proportion to the state. */
PLIANT_API const char *pliant_check(const struct pliant_sched *s);

/* ---- looking at it ---------------------------------------------------------------------- */

PLIANT_API enum pliant_state pliant_state(const struct pliant_sched *s);
PLIANT_API enum pliant_job_status pliant_job_status(const struct pliant_sched *s);

/* Subtasks of the current graph; 0 while there is none. */
PLIANT_API uint32_t pliant_parallelism(const struct pliant_sched *s, pliant_vertex_id vertex);
/* How an edge of the job connects the subtasks of the current graph: a pointwise edge whose ends
 * got different parallelism is all-to-all for this graph, and pointwise again in one where they are
 * equal [S-CEG-11]. Without a graph, and with the default scheduler: as the job says.
 * edge < pliant_job_edges(). */
PLIANT_API enum pliant_pattern pliant_edge_pattern(const struct pliant_sched *s, size_t edge);
/* Present bounds, also in reactive mode [S-REQ-2]. */
PLIANT_API void pliant_vertex_bounds(const struct pliant_sched *s, pliant_vertex_id vertex,
                                     uint32_t *ret_min, uint32_t *ret_max);

/* A task of the current graph; false if it has none such. */
struct pliant_task_info {
    uint32_t attempt;
    enum pliant_task_state state;
    pliant_slot_id slot; /* unset once the task is over */
};
PLIANT_API bool pliant_task_info(const struct pliant_sched *s, pliant_vertex_id vertex,
                                 uint32_t subtask, struct pliant_task_info *ret);

/* All current attempts of a task: i = 0 is the one of pliant_task_info(), the others (speculative
 * ones, or those that lost against it and are being stopped) follow in the order in which they
 * began. */
PLIANT_API bool pliant_attempt_info(const struct pliant_sched *s, pliant_vertex_id vertex,
                                    uint32_t subtask, uint32_t i, struct pliant_task_info *ret);

/* How many subpartitions each task writes for a blocking edge [5.2]. A pipelined edge has none: 0;
 * an edge whose producer has no tasks yet: 0. With the default scheduler one for each consumer that
 * reads the producer's partition: of a pointwise edge it is not the same for all of them. */
PLIANT_API uint32_t pliant_subpartitions(const struct pliant_sched *s, size_t edge,
                                         uint32_t producer);

/* What a task reads of a blocking edge that ends at its vertex: of the partitions (producer's
 * subtasks) p0..p1 the subpartitions s0..s1, all included. */
struct pliant_read {
    uint32_t p0, p1, s0, s1;
};
/* Sorted by p0, then s0; returns how many there are (0: nothing to read, or no such task), and
 * writes the first `n` of them. */
PLIANT_API size_t pliant_reads(const struct pliant_sched *s, size_t edge, uint32_t subtask,
                               struct pliant_read *ret, size_t n);

struct pliant_counts {
    uint32_t nodes, draining_nodes;
    uint32_t blocked_nodes; /* for being slow */
    uint32_t slow_tasks;    /* at the last look: numSlowExecutionVertices */
    uint32_t slots;         /* held, those on draining nodes too */
    uint32_t slots_offered; /* held and not on draining nodes */
    uint32_t slots_used;    /* with a live task or reserved */
    uint32_t desired, minimal;
    uint32_t tasks, tasks_live, tasks_running; /* live: in a slot */
    uint64_t restarts, rescales, creation_retries, drain_moves;
    /* Of some regions alone. Not among `restarts` [P-REG-7]; with the default scheduler `restarts`
     * are failures that began an attempt to restart, and these are the restarts that followed. */
    uint64_t region_restarts;
    /* tasks that a speculative attempt finished first: numEffectiveSpeculativeExecutions */
    uint64_t effective_speculations;
    /* worker groups: what their budgets were charged, all launches that failed among it */
    uint64_t failures_charged, preemptions_charged, launch_failures;
    uint64_t group_attempt;  /* as pliant_group_attempt() */
    uint64_t events_ignored; /* not current, or not for this state */
    uint64_t checkpoint;     /* id of the last completed one; 0: none */
    int64_t checkpoint_at_ms;
};
PLIANT_API void pliant_counts(const struct pliant_sched *s, struct pliant_counts *ret);

/* The attempt of a worker group: it grows with each start, restart and resize, while a launch that
 * failed is tried again under the same one [W-STA-2]. At the time of its DEPLOYs it is theirs; the
 * attempt in a struct pliant_task grows with every launch. 0: none yet, or no worker group. */
PLIANT_API uint32_t pliant_group_attempt(const struct pliant_sched *s);

/* What comes next and why, for status displays. at_ms PLIANT_NEVER: an event must come. */
struct pliant_next {
    enum pliant_reason decision;
    int64_t at_ms;
    const char *phase; /* the transition manager's, or "" */
};
PLIANT_API void pliant_next(const struct pliant_sched *s, struct pliant_next *ret);

/* A node that is slow for this job: nothing new starts there until then
 * (execution.batch.speculative.*). */
struct pliant_blocked {
    pliant_node_id node;
    int64_t until_at_ms;
};
/* Returns how many there are, and writes the first `n` of them. */
PLIANT_API size_t pliant_blocked(const struct pliant_sched *s, struct pliant_blocked *ret,
                                 size_t n);

/* Names; valid for the step in which an action gave the id, and as long as the node is up. Of an
 * id that names nothing: "", unset, 0. */
PLIANT_API const char *pliant_node_name(const struct pliant_sched *s, pliant_node_id node);
/* Which life of the node is meant: a host gives up, notifies, releases that one. 0: unknown id. */
PLIANT_API uint64_t pliant_node_incarnation(const struct pliant_sched *s, pliant_node_id node);
PLIANT_API pliant_node_id pliant_slot_node(const struct pliant_sched *s, pliant_slot_id slot);
PLIANT_API uint32_t pliant_slot_index(const struct pliant_sched *s, pliant_slot_id slot);

/* Histories, newest first; NULL behind the last. Valid until the next step. */
PLIANT_API const struct pliant_rescale *pliant_rescale_at(const struct pliant_sched *s, size_t i);
PLIANT_API const struct pliant_rescale *pliant_rescale_last(const struct pliant_sched *s,
                                                            enum pliant_rescale_terminal kind);
PLIANT_API void pliant_rescale_summary(const struct pliant_sched *s,
                                       struct pliant_rescale_summary *ret);
PLIANT_API const struct pliant_failure *pliant_failure_at(const struct pliant_sched *s, size_t i);

/* Fixed texts: "Executing", "RUNNING", "node-lost", "COMPLETED", ... */
PLIANT_API const char *pliant_state_name(enum pliant_state state);
PLIANT_API const char *pliant_job_status_name(enum pliant_job_status status);
PLIANT_API const char *pliant_task_state_name(enum pliant_task_state state);
PLIANT_API const char *pliant_reason_name(enum pliant_reason reason);
PLIANT_API const char *pliant_event_name(enum pliant_event_kind kind);
PLIANT_API const char *pliant_action_name(enum pliant_action_kind kind);
PLIANT_API const char *pliant_checkpoint_cause_name(enum pliant_checkpoint_cause cause);
PLIANT_API const char *pliant_drain_reason_name(enum pliant_drain_reason reason);
PLIANT_API const char *pliant_death_name(enum pliant_death death);
PLIANT_API const char *pliant_rescale_trigger_name(enum pliant_rescale_trigger trigger);
PLIANT_API const char *pliant_rescale_end_name(enum pliant_rescale_end end);
PLIANT_API const char *pliant_rescale_terminal_name(enum pliant_rescale_terminal terminal);
PLIANT_API const char *pliant_judgement_name(enum pliant_judgement judgement);
PLIANT_API const char *pliant_version(void);

#ifdef __cplusplus
}
#endif
#endif /* PLIANT_PLIANT_H */

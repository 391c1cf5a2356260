/* names.c - the fixed texts of states, reasons, kinds: as users see them */
#include <pliant/pliant.h>

#define NAME_OF(table, value)                                                                      \
    ((size_t)(value) < sizeof(table) / sizeof(table)[0] && (table)[(value)] ? (table)[(value)] : "")

static const char *const STATES[] = {
    [PLIANT_CREATED] = "Created",
    [PLIANT_WAITING_FOR_RESOURCES] = "WaitingForResources",
    [PLIANT_CREATING_EXECUTION_GRAPH] = "CreatingExecutionGraph",
    [PLIANT_RETRYING_EXECUTION_GRAPH_CREATION] = "RetryingExecutionGraphCreation",
    [PLIANT_EXECUTING] = "Executing",
    [PLIANT_RESTARTING] = "Restarting",
    [PLIANT_FAILING] = "Failing",
    [PLIANT_CANCELING] = "Canceling",
    [PLIANT_STOP_WITH_SAVEPOINT] = "StopWithSavepoint",
    [PLIANT_FINISHED] = "Finished",
};

static const char *const JOB_STATUSES[] = {
    [PLIANT_JOB_INITIALIZING] = "INITIALIZING", [PLIANT_JOB_CREATED] = "CREATED",
    [PLIANT_JOB_RUNNING] = "RUNNING",           [PLIANT_JOB_RESTARTING] = "RESTARTING",
    [PLIANT_JOB_FAILING] = "FAILING",           [PLIANT_JOB_FAILED] = "FAILED",
    [PLIANT_JOB_CANCELLING] = "CANCELLING",     [PLIANT_JOB_CANCELED] = "CANCELED",
    [PLIANT_JOB_FINISHED] = "FINISHED",         [PLIANT_JOB_SUSPENDED] = "SUSPENDED",
};

static const char *const TASK_STATES[] = {
    [PLIANT_TASK_CREATED] = "CREATED",     [PLIANT_TASK_SCHEDULED] = "SCHEDULED",
    [PLIANT_TASK_DEPLOYING] = "DEPLOYING", [PLIANT_TASK_INITIALIZING] = "INITIALIZING",
    [PLIANT_TASK_RUNNING] = "RUNNING",     [PLIANT_TASK_CANCELING] = "CANCELING",
    [PLIANT_TASK_FINISHED] = "FINISHED",   [PLIANT_TASK_CANCELED] = "CANCELED",
    [PLIANT_TASK_FAILED] = "FAILED",
};

static const char *const REASONS[] = {
    [PLIANT_REASON_NONE] = "none",
    [PLIANT_REASON_STARTED] = "started",
    [PLIANT_REASON_DESIRED_RESOURCES] = "desired-resources",
    [PLIANT_REASON_SUFFICIENT_RESOURCES] = "sufficient-resources",
    [PLIANT_REASON_RESOURCE_TIMEOUT] = "resource-timeout",
    [PLIANT_REASON_PLAN_READY] = "plan-ready",
    [PLIANT_REASON_SLOTS_GONE] = "slots-gone",
    [PLIANT_REASON_RESCALE] = "rescale",
    [PLIANT_REASON_DRAIN] = "drain",
    [PLIANT_REASON_RECLAIM] = "reclaim",
    [PLIANT_REASON_BACKOFF_OVER] = "backoff-over",
    [PLIANT_REASON_TARGET_REACHABLE] = "target-reachable",
    [PLIANT_REASON_TARGET_UNREACHABLE] = "target-unreachable",
    [PLIANT_REASON_LAUNCHED] = "launched",
    [PLIANT_REASON_ALL_FINISHED] = "all-finished",
    [PLIANT_REASON_ALL_CANCELED] = "all-canceled",
    [PLIANT_REASON_CANCEL_REQUESTED] = "cancel-requested",
    [PLIANT_REASON_SUSPEND_REQUESTED] = "suspend-requested",
    [PLIANT_REASON_STOP_REQUESTED] = "stop-requested",
    [PLIANT_REASON_SAVEPOINT_DONE] = "savepoint-done",
    [PLIANT_REASON_SAVEPOINT_FAILED] = "savepoint-failed",
    [PLIANT_REASON_TASK_FAILED] = "task-failed",
    [PLIANT_REASON_NODE_LOST] = "node-lost",
    [PLIANT_REASON_DRAINING_NODE_LOST] = "draining-node-lost",
    [PLIANT_REASON_GLOBAL_FAILURE] = "global-failure",
    [PLIANT_REASON_CREATION_FAILED] = "creation-failed",
    [PLIANT_REASON_NOT_ENOUGH_RESOURCES] = "not-enough-resources",
    [PLIANT_REASON_TOO_MANY_CHECKPOINT_FAILURES] = "too-many-checkpoint-failures",
    [PLIANT_REASON_STOPPING_FAILED] = "stopping-failed",
    [PLIANT_REASON_LAUNCH_FAILED] = "launch-failed",
    [PLIANT_REASON_LAUNCH_TIMEOUT] = "launch-timeout",
    [PLIANT_REASON_PREEMPTED] = "preempted",
    [PLIANT_REASON_PORT_IN_USE] = "port-in-use",
    [PLIANT_REASON_CHECKPOINT_PATHS_DIFFER] = "checkpoint-paths-differ",
    [PLIANT_REASON_NOT_RECOVERABLE] = "not-recoverable",
    [PLIANT_REASON_RESTARTS_SUPPRESSED] = "restarts-suppressed",
    [PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED] = "drain-budget-exhausted",
    [PLIANT_REASON_WORKER_BUDGET_EXHAUSTED] = "worker-budget-exhausted",
    [PLIANT_REASON_PREEMPTION_BUDGET_EXHAUSTED] = "preemption-budget-exhausted",
    [PLIANT_REASON_LAUNCH_BUDGET_EXHAUSTED] = "launch-budget-exhausted",
    [PLIANT_REASON_RESET_LIMIT_REACHED] = "reset-limit-reached",
    [PLIANT_REASON_NOT_EXECUTING] = "not-executing",
    [PLIANT_REASON_ALREADY_STARTED] = "already-started",
    [PLIANT_REASON_CHECKPOINTING_OFF] = "checkpointing-off",
    [PLIANT_REASON_NO_SAVEPOINT_DIR] = "no-savepoint-dir",
    [PLIANT_REASON_CHECKPOINT_PENDING] = "checkpoint-pending",
    [PLIANT_REASON_TASKS_NOT_RUNNING] = "tasks-not-running",
    [PLIANT_REASON_FIXED_PARALLELISM] = "fixed-parallelism",
    [PLIANT_REASON_REACTIVE_MODE] = "reactive-mode",
    [PLIANT_REASON_JOB_ENDED] = "job-ended",
    [PLIANT_REASON_UNKNOWN_VERTEX] = "unknown-vertex",
    [PLIANT_REASON_VERTEX_MISSING] = "vertex-missing",
    [PLIANT_REASON_BOUND_BELOW_ONE] = "bound-below-one",
    [PLIANT_REASON_MIN_ABOVE_MAX] = "min-above-max",
    [PLIANT_REASON_ABOVE_MAX_PARALLELISM] = "above-max-parallelism",
    [PLIANT_REASON_NAMED_TWICE] = "named-twice",
};

static const char *const EVENTS[] = {
    [PLIANT_EV_TICK] = "tick",
    [PLIANT_EV_START] = "start",
    [PLIANT_EV_NODE_UP] = "node_up",
    [PLIANT_EV_NODE_DRAINING] = "node_draining",
    [PLIANT_EV_NODE_DRAIN_WITHDRAWN] = "node_drain_withdrawn",
    [PLIANT_EV_NODE_LOST] = "node_lost",
    [PLIANT_EV_SLOTS_GRANTED] = "slots_granted",
    [PLIANT_EV_SLOTS_RECLAIMED] = "slots_reclaimed",
    [PLIANT_EV_SLOTS_RESERVED] = "slots_reserved",
    [PLIANT_EV_SLOTS_REFUSED] = "slots_refused",
    [PLIANT_EV_CREATION_FAILED] = "creation_failed",
    [PLIANT_EV_TASK_INITIALIZING] = "task_initializing",
    [PLIANT_EV_TASK_RUNNING] = "task_running",
    [PLIANT_EV_TASK_END_OF_DATA] = "task_end_of_data",
    [PLIANT_EV_TASK_FINISHED] = "task_finished",
    [PLIANT_EV_TASK_CANCELED] = "task_canceled",
    [PLIANT_EV_TASK_FAILED] = "task_failed",
    [PLIANT_EV_GLOBAL_FAILURE] = "global_failure",
    [PLIANT_EV_REPORT] = "report",
    [PLIANT_EV_CHECKPOINT_COMPLETED] = "checkpoint_completed",
    [PLIANT_EV_CHECKPOINT_FAILED] = "checkpoint_failed",
    [PLIANT_EV_SAVEPOINT_COMPLETED] = "savepoint_completed",
    [PLIANT_EV_SAVEPOINT_FAILED] = "savepoint_failed",
    [PLIANT_EV_REQUIREMENTS] = "requirements",
    [PLIANT_EV_CHECKPOINT_REQUESTED] = "checkpoint_requested",
    [PLIANT_EV_SAVEPOINT_REQUESTED] = "savepoint_requested",
    [PLIANT_EV_STOP] = "stop",
    [PLIANT_EV_CANCEL] = "cancel",
    [PLIANT_EV_SUSPEND] = "suspend",
};

static const char *const ACTIONS[] = {
    [PLIANT_ACT_DECLARE] = "declare",
    [PLIANT_ACT_RESERVE] = "reserve",
    [PLIANT_ACT_RELEASE] = "release",
    [PLIANT_ACT_RELEASE_RESULT] = "release-result",
    [PLIANT_ACT_DECIDED] = "decided",
    [PLIANT_ACT_DEPLOY] = "deploy",
    [PLIANT_ACT_CANCEL] = "cancel",
    [PLIANT_ACT_CHECKPOINT] = "checkpoint",
    [PLIANT_ACT_REGISTER] = "register",
    [PLIANT_ACT_REPORT_TAKEN] = "report_taken",
    [PLIANT_ACT_NOTIFY] = "notify",
    [PLIANT_ACT_GIVE_UP_NODE] = "give_up_node",
    [PLIANT_ACT_BLOCK_NODE] = "block_node",
    [PLIANT_ACT_REFUSED] = "refused",
    [PLIANT_ACT_STATE_CHANGED] = "state_changed",
    [PLIANT_ACT_STATUS_CHANGED] = "status_changed",
    [PLIANT_ACT_RESCALE_OPENED] = "rescale_opened",
    [PLIANT_ACT_RESCALE_CLOSED] = "rescale_closed",
    [PLIANT_ACT_RESCALE_JUDGED] = "rescale_judged",
    [PLIANT_ACT_FAILURE] = "failure",
    [PLIANT_ACT_SAVEPOINT_ENDED] = "savepoint_ended",
    [PLIANT_ACT_ARCHIVED] = "archived",
};

static const char *const CHECKPOINT_CAUSES[] = {
    [PLIANT_CHECKPOINT_PERIODIC] = "periodic", [PLIANT_CHECKPOINT_RESCALE] = "rescale",
    [PLIANT_CHECKPOINT_DRAIN] = "drain",       [PLIANT_CHECKPOINT_END_OF_DATA] = "end-of-data",
    [PLIANT_CHECKPOINT_USER] = "user",         [PLIANT_CHECKPOINT_STOP] = "stop",
};

static const char *const DRAIN_REASONS[] = {
    [PLIANT_DRAIN_PREEMPTION] = "preemption",
    [PLIANT_DRAIN_SCALE_DOWN] = "scale-down",
    [PLIANT_DRAIN_UPGRADE] = "upgrade",
    [PLIANT_DRAIN_IDLE] = "idle",
};

static const char *const DEATHS[] = {
    [PLIANT_DEATH_ERROR] = "error",
    [PLIANT_DEATH_CRASH] = "crash",
    [PLIANT_DEATH_TERMINATED] = "terminated",
    [PLIANT_DEATH_HUNG] = "hung",
    [PLIANT_DEATH_PORT_IN_USE] = "port-in-use",
};

static const char *const RESCALE_TRIGGERS[] = {
    [PLIANT_TRIGGER_INITIAL_SCHEDULE] = "INITIAL_SCHEDULE",
    [PLIANT_TRIGGER_UPDATE_REQUIREMENT] = "UPDATE_REQUIREMENT",
    [PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE] = "NEW_RESOURCE_AVAILABLE",
    [PLIANT_TRIGGER_RECOVERABLE_FAILOVER] = "RECOVERABLE_FAILOVER",
    [PLIANT_TRIGGER_DRAIN] = "DRAIN",
    [PLIANT_TRIGGER_RECLAIM] = "RECLAIM",
};

static const char *const RESCALE_ENDS[] = {
    [PLIANT_RESCALE_OPEN] = "OPEN",
    [PLIANT_RESCALE_SUCCEEDED] = "SUCCEEDED",
    [PLIANT_RESCALE_EXCEPTION_OCCURRED] = "EXCEPTION_OCCURRED",
    [PLIANT_RESCALE_REQUIREMENTS_UPDATED] = "RESOURCE_REQUIREMENTS_UPDATED",
    [PLIANT_RESCALE_NO_CHANGE] = "NO_RESOURCES_OR_PARALLELISMS_CHANGE",
    [PLIANT_RESCALE_JOB_FINISHED] = "JOB_FINISHED",
    [PLIANT_RESCALE_JOB_FAILED] = "JOB_FAILED",
    [PLIANT_RESCALE_JOB_CANCELED] = "JOB_CANCELED",
    [PLIANT_RESCALE_JOB_SUSPENDED] = "JOB_SUSPENDED",
};

static const char *const TERMINALS[] = {
    [PLIANT_TERMINAL_NONE] = "NONE",
    [PLIANT_TERMINAL_COMPLETED] = "COMPLETED",
    [PLIANT_TERMINAL_FAILED] = "FAILED",
    [PLIANT_TERMINAL_IGNORED] = "IGNORED",
};

static const char *const JUDGEMENTS[] = {
    [PLIANT_JUDGED_NOT] = "none",
    [PLIANT_JUDGED_GAIN] = "gain",
    [PLIANT_JUDGED_CHECKPOINT] = "checkpoint",
    [PLIANT_JUDGED_REPORT] = "report",
    [PLIANT_JUDGED_SETTLES] = "settles",
    [PLIANT_JUDGED_STARTING] = "starting",
    [PLIANT_JUDGED_COST] = "cost",
};

const char *pliant_state_name(enum pliant_state state)
{
    return NAME_OF(STATES, state);
}

const char *pliant_job_status_name(enum pliant_job_status status)
{
    return NAME_OF(JOB_STATUSES, status);
}

const char *pliant_task_state_name(enum pliant_task_state state)
{
    return NAME_OF(TASK_STATES, state);
}

const char *pliant_reason_name(enum pliant_reason reason)
{
    return NAME_OF(REASONS, reason);
}

const char *pliant_event_name(enum pliant_event_kind kind)
{
    return NAME_OF(EVENTS, kind);
}

const char *pliant_action_name(enum pliant_action_kind kind)
{
    return NAME_OF(ACTIONS, kind);
}

const char *pliant_checkpoint_cause_name(enum pliant_checkpoint_cause cause)
{
    return NAME_OF(CHECKPOINT_CAUSES, cause);
}

const char *pliant_drain_reason_name(enum pliant_drain_reason reason)
{
    return NAME_OF(DRAIN_REASONS, reason);
}

const char *pliant_death_name(enum pliant_death death)
{
    return NAME_OF(DEATHS, death);
}

const char *pliant_rescale_trigger_name(enum pliant_rescale_trigger trigger)
{
    return NAME_OF(RESCALE_TRIGGERS, trigger);
}

const char *pliant_rescale_end_name(enum pliant_rescale_end end)
{
    return NAME_OF(RESCALE_ENDS, end);
}

const char *pliant_rescale_terminal_name(enum pliant_rescale_terminal terminal)
{
    return NAME_OF(TERMINALS, terminal);
}

const char *pliant_judgement_name(enum pliant_judgement judgement)
{
    return NAME_OF(JUDGEMENTS, judgement);
}

const char *pliant_version(void)
{
    return PLIANT_VERSION;
}

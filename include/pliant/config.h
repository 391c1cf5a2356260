/* config.h - how a scheduler decides: one typed field per option
 *
 * Names, defaults, bounds and help of the options have one home: the table behind
 * pliant_option_at(). pliant_config_set() reads a value in the options' own syntax
 * ("30 s", "1 min", "-1 ms", "true", "2.5"), so that a Flink user's options mean
 * what they meant.
 *
 * Usage   pliant_config_init(&cfg); pliant_config_set(&cfg, key, value, &err) ...;
 *         pliant_config_resolve(&cfg, &err); then pliant_sched_new(&cfg, ...).
 * Units   `_ms` fields are int64_t milliseconds; PLIANT_UNSET means "not set by anyone",
 *         and pliant_config_resolve() puts the default of the chosen mode there.
 * Owner   plain values; copy freely. `alloc` is borrowed by every scheduler made from it.
 * Source  rules S-OPT-1..4, S-POL-6 and section 7 of the scheduler's rules (docs/options.md)
 */
#ifndef PLIANT_CONFIG_H
#define PLIANT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pliant/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLIANT_UNSET INT64_MIN         /* an `_ms` option that nobody set */
#define PLIANT_NEVER INT64_MAX         /* the instant that does not come */
#define PLIANT_FAILURE_LABELS_MAX 2000 /* bytes of pliant.failure-labels, the longest value */

/* Every allocation of a scheduler goes through here: like realloc(), and size 0 frees.
 * `resize` NULL means the C library's. Answering NULL for size > 0 is "no memory". */
struct pliant_alloc {
    void *(*resize)(void *ctx, void *ptr, size_t size);
    void *ctx;
};

enum pliant_scheduler {
    PLIANT_SCHEDULER_UNSET,
    PLIANT_SCHEDULER_DEFAULT,
    PLIANT_SCHEDULER_ADAPTIVE,
    PLIANT_SCHEDULER_ADAPTIVE_BATCH,
};

enum pliant_mode { PLIANT_MODE_NORMAL, PLIANT_MODE_REACTIVE };

enum pliant_spread { PLIANT_SPREAD_NONE, PLIANT_SPREAD_NODES, PLIANT_SPREAD_DOMAINS };

/* When a rescale is worth its restart. Those between the first two and the last stand for other
 * systems, to compare with; under all but the first, timings of Executing that nobody set are 0. */
enum pliant_rescale_policy {
    PLIANT_POLICY_PARALLELISM_CHANGE, /* always, when the transition manager says so: Flink's */
    PLIANT_POLICY_NEVER,              /* only a loss or a drain restarts the job */
    PLIANT_POLICY_IMMEDIATE,          /* at each change, after a checkpoint of its own */
    PLIANT_POLICY_RAY_ELASTIC,        /* looks once a minute, resizes without a checkpoint */
    PLIANT_POLICY_TORCHRUN,           /* at each change, without a checkpoint */
    PLIANT_POLICY_WORTH,              /* when it brings more than it costs, by the job's own past */
};

enum pliant_group_placement {
    PLIANT_PLACE_STRICT_PACK,
    PLIANT_PLACE_PACK,
    PLIANT_PLACE_SPREAD,
    PLIANT_PLACE_STRICT_SPREAD,
};

enum pliant_score_order { PLIANT_SCORE_MAX, PLIANT_SCORE_MIN };

/* What restarts after a failure: the job, or the pipelined regions that it touches. */
enum pliant_failover { PLIANT_FAILOVER_FULL, PLIANT_FAILOVER_REGION };

enum pliant_checkpoint_pace { PLIANT_CHECKPOINT_PACE_FIXED, PLIANT_CHECKPOINT_PACE_AUTO };

enum pliant_restart_kind {
    PLIANT_RESTART_UNSET, /* none without checkpointing, exponential-delay with it [S-POL-6] */
    PLIANT_RESTART_NONE,
    PLIANT_RESTART_FIXED_DELAY,
    PLIANT_RESTART_FAILURE_RATE,
    PLIANT_RESTART_EXPONENTIAL_DELAY,
};

/* A restart strategy with its parameters; only those of `kind` are looked at. */
struct pliant_restart_config {
    enum pliant_restart_kind kind;
    struct {
        int64_t attempts;
        int64_t delay_ms;
    } fixed;
    struct {
        int64_t max_failures;
        int64_t interval_ms;
        int64_t delay_ms;
    } rate;
    struct {
        int64_t initial_ms, max_ms;
        double multiplier;
        int64_t reset_ms;
        double jitter;
        int64_t attempts; /* INT32_MAX: no limit */
    } exponential;
};

struct pliant_config {
    const struct pliant_alloc *alloc; /* NULL: the C library's */
    int64_t seed;                     /* pliant.seed: jitter, rescale ids */

    enum pliant_scheduler scheduler;
    enum pliant_mode mode;

    /* waiting for resources */
    int64_t resource_wait_ms; /* < 0: no limit */
    int64_t submission_stabilization_ms;
    int64_t rescale_stabilization_ms;

    /* executing */
    int64_t cooldown_ms;
    int64_t executing_stabilization_ms;
    int64_t max_checkpoint_failures;
    int64_t max_trigger_delay_ms;
    bool active_checkpoint;
    enum pliant_rescale_policy rescale_policy;
    struct {
        int64_t restart_ms, checkpoint_ms, between_losses_ms; /* until they are measured */
        int64_t min_restart_ms;
        int64_t memory_ms;
    } worth;

    /* placement */
    bool prefer_minimal_nodes;
    enum pliant_spread spread;
    bool local_recovery;

    /* checkpoints; interval PLIANT_UNSET: checkpointing is off */
    int64_t checkpoint_interval_ms;
    enum pliant_checkpoint_pace checkpoint_pace; /* AUTO: it follows the losses seen */
    int64_t checkpoint_min_interval_ms, checkpoint_max_interval_ms; /* ... within these */
    int64_t checkpoint_min_pause_ms;
    int64_t checkpoint_timeout_ms;
    int64_t tolerable_failed_checkpoints; /* < 0: no limit */
    int64_t checkpoints_retained;
    bool checkpoints_after_finish;
    bool checkpoint_periodic; /* false: the host reports checkpoints of its own accord */
    bool has_savepoint_dir;   /* execution.checkpointing.savepoint-dir is set [S-EXE-17] */

    /* failures */
    struct pliant_restart_config restart;
    struct pliant_restart_config creation_retry;
    int64_t cancellation_timeout_ms; /* 0: no bound */
    enum pliant_failover adaptive_failover;
    enum pliant_failover failover_strategy; /* not of the adaptive scheduler, ... */
    bool release_results;                   /* ... nor this: what nobody will read any more */
    bool results_outlive_nodes;             /* ... nor this: what finished tasks wrote */
    char failure_labels[PLIANT_FAILURE_LABELS_MAX + 1]; /* rules as text; "": none */

    /* speculative execution, of jobs without pipelined edges */
    struct {
        bool enabled;
        int64_t max_attempts; /* of one task at a time, the original included; >= 1 */
        int64_t block_ms;     /* 0: slow nodes are not blocked */
    } speculative;
    struct {
        int64_t check_interval_ms;
        int64_t lower_bound_ms; /* who runs for less is not slow */
        double ratio;           /* of the tasks that must have finished, 0 <= ratio < 1 */
        double multiplier;      /* > 0 */
    } slow_tasks;

    /* drains */
    int64_t drain_lead_ms;
    int64_t drain_max_restarts; /* < 0: no limit */

    /* slots and histories */
    int64_t slot_idle_timeout_ms;
    int64_t slot_request_timeout_ms; /* not of the adaptive scheduler */
    int64_t rescale_history_size;    /* <= 0: off */
    int64_t exception_history_size;  /* >= 0 */

    /* batch jobs: how parallelism follows from the data */
    struct {
        bool auto_parallelism;
        int64_t min, max, default_source; /* default_source -1: max */
        int64_t volume;                   /* bytes of a task */
        double skew_factor;
        int64_t skew_threshold;
    } batch;

    /* What the job is, for defaults that hold where nobody set a value: a worker group; a graph all
     * of whose edges are blocking. Say so before pliant_config_resolve(); pliant_sched_new() goes
     * by its job. */
    bool worker_group, all_blocking;

    /* worker groups (worker-group.*); budgets and limits: -1 is none. The core reads the budgets,
     * collateral_window_ms, start_timeout_ms, last_call_ms, resource_wait_timeout_ms,
     * port_retry_window_ms and reset_limit; the rest is for hosts. */
    struct {
        int64_t min_workers, max_workers; /* 0: as the job says */
        int64_t max_failures, max_preemption_failures, controller_failure_limit, reset_limit;
        int64_t preemption_grace_ms, default_drain_deadline_ms, drain_poll_interval_ms;
        int64_t collateral_window_ms; /* 0: off */
        int64_t agent_drain_timeout_ms;
        bool relax_collectives, restart_after_jit_checkpoint;
        int64_t resize_monitor_interval_ms, resize_checkpoint_timeout_ms, last_call_ms;
        int64_t resource_wait_timeout_ms; /* PLIANT_UNSET: no limit */
        int64_t resource_demand_interval_ms, resource_demand_expiry_ms;
        bool whole_domains;
        enum pliant_group_placement placement;
        int64_t start_timeout_ms, prepare_timeout_ms;
        int64_t health_check_interval_ms, health_check_timeout_ms;
        int64_t collective_timeout_ms; /* PLIANT_UNSET: none */
        int64_t collective_warn_interval_ms, upload_warn_interval_ms, upload_attempts;
        bool require_new_run;
        int64_t num_to_keep; /* checkpoints; -1: all */
        enum pliant_score_order score_order;
        int64_t stop_timeout_ms, exit_barrier_timeout_ms;
        int64_t master_port; /* 0: a free one for each attempt */
        int64_t port_retry_window_ms;
        bool virtual_local_rank, horovod_env;
        int64_t discovery_interval_ms, slots_per_host;
        int64_t actor_max_restarts, actor_max_task_retries, actor_poison_threshold;
        int64_t actor_call_timeout_ms;
        int64_t placement_timeout_ms, placement_replacement_timeout_ms;
    } group;

    uint64_t named[4]; /* pliant_config_set()'s own: who was set by its present name [S-OPT-3] */
};

/* What is wrong, and where. `text` is one sentence for people without file or line;
 * whoever knows them puts them in front. */
struct pliant_error {
    char text[256];
    char field[128]; /* the option or the field of the job that is meant, or "" */
    uint32_t item;   /* index of the vertex or edge that is meant, or UINT32_MAX */
};

enum pliant_option_type {
    PLIANT_OPTION_DURATION,
    PLIANT_OPTION_INT,
    PLIANT_OPTION_SIZE, /* bytes */
    PLIANT_OPTION_DOUBLE,
    PLIANT_OPTION_BOOL,
    PLIANT_OPTION_ENUM,
    PLIANT_OPTION_STRING, /* kept by the host, but for pliant.failure-labels */
};

/* One row of the table of options. Texts are constant. */
struct pliant_option {
    const char *key;
    const char *old_keys[2]; /* read only where `key` is absent [S-OPT-3]; NULL-padded */
    enum pliant_option_type type;
    const char *default_text;          /* in the options' syntax; "" = unset */
    const char *reactive_default_text; /* NULL: the same */
    const char *accepted;              /* for errors and docs: "a duration >= 0", "true | false" */
    const char *help;
    bool no_effect; /* accepted with a warning */
};

/* Row i of the table, or NULL behind the last. Rows are grouped, not sorted. */
PLIANT_API const struct pliant_option *pliant_option_at(size_t i);

/* The row whose key or old key is `key`, or NULL. */
PLIANT_API const struct pliant_option *pliant_option_find(const char *key);

/* The known key most like `key`, for "did you mean"; NULL when none is near. */
PLIANT_API const char *pliant_option_nearest(const char *key);

/* All options unset or at their default. */
PLIANT_API void pliant_config_init(struct pliant_config *cfg);

/* Set one option from text. `key` may be an old name.
 * Errors: -ENOENT (unknown key), -EINVAL (not a value that it accepts); *cfg is then
 * unchanged and *err says what is accepted. `err` may be NULL. */
PLIANT_API int pliant_config_set(struct pliant_config *cfg, const char *key, const char *value,
                                 struct pliant_error *err);

/* Put defaults where nobody set a value, as the mode and checkpointing ask for [S-OPT-4,
 * S-STM-9, S-POL-6], and check what only several options together can break.
 * Errors: -EINVAL, *cfg unchanged. Resolving twice changes nothing. */
PLIANT_API int pliant_config_resolve(struct pliant_config *cfg, struct pliant_error *err);

/* The value of `key` in *cfg as text of the options' syntax into buf[size], cut to fit, "" if
 * unset; of a path only "(set)". Setting it again gives the same config (doubles: up to 15 digits).
 * Returns the length of the whole text, or -ENOENT: no such option, or one that a host keeps. */
PLIANT_API int pliant_config_get(const struct pliant_config *cfg, const char *key, char *buf,
                                 size_t size);

#ifdef __cplusplus
}
#endif
#endif /* PLIANT_CONFIG_H */

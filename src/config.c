/* config.c - the table of options, and a config from and to it
 *
 * A row says all there is to say about an option; the functions below know kinds of options,
 * never single ones, but for the few defaults that hang on other options (resolve_dependent).
 */
#include <pliant/config.h>
#include <pliant/job.h>

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "failover/labels.h"
#include "util/ascii.h"
#include "util/decimal.h"
#include "util/duration.h"
#include "util/nearest.h"
#include "util/size.h"

#define HOST_KEEPS SIZE_MAX /* offset of an option that has no field: its host keeps the text */
#define VALUE_SHOWN 40      /* bytes of a wrong value that an error repeats */
#define VALUE_TEXT_MAX 64   /* bytes of any value as text that the config does not keep as such */
#define NONE (-1)           /* "none" as an INT */

/* A word that stands for the value of an enum. The first of several is the one we write. */
struct word {
    const char *text;
    unsigned value;
};

struct row {
    struct pliant_option option;
    size_t offset;         /* of the field in struct pliant_config, or HOST_KEEPS */
    int64_t min, max;      /* DURATION, INT, SIZE */
    double above, at_most; /* DOUBLE: above < value <= at_most, above itself too if `from` */
    bool from;
    const struct word *words;       /* ENUM: up to a word without text */
    bool or_none;                   /* DURATION, INT: "none" is a value, PLIANT_UNSET or NONE */
    bool (*fits)(const char *text); /* STRING: of a certain form; NULL: any */
    /* STRING: the field has so many bytes and keeps the text; 0: it tells that there is one */
    size_t room;
    bool (*explain)(const char *text, char why[LABEL_WHY_MAX]); /* as fits(), and what is wrong */
};

/* ---- the words of enums -------------------------------------------------------------------- */

static const struct word scheduler_words[] = {{"adaptive", PLIANT_SCHEDULER_ADAPTIVE},
                                              {"default", PLIANT_SCHEDULER_DEFAULT},
                                              {"adaptive-batch", PLIANT_SCHEDULER_ADAPTIVE_BATCH},
                                              {"adaptivebatch", PLIANT_SCHEDULER_ADAPTIVE_BATCH},
                                              {0}};
static const struct word mode_words[] = {{"reactive", PLIANT_MODE_REACTIVE}, {0}};
static const struct word spread_words[] = {{"none", PLIANT_SPREAD_NONE},
                                           {"nodes", PLIANT_SPREAD_NODES},
                                           {"domains", PLIANT_SPREAD_DOMAINS},
                                           {0}};
static const struct word policy_words[] = {{"parallelism-change", PLIANT_POLICY_PARALLELISM_CHANGE},
                                           {"never", PLIANT_POLICY_NEVER},
                                           {"immediate", PLIANT_POLICY_IMMEDIATE},
                                           {"ray-elastic", PLIANT_POLICY_RAY_ELASTIC},
                                           {"torchrun", PLIANT_POLICY_TORCHRUN},
                                           {"worth", PLIANT_POLICY_WORTH},
                                           {0}};
static const struct word pace_words[] = {{"auto", PLIANT_CHECKPOINT_PACE_AUTO}, {0}};
static const struct word restart_words[] = {{"none", PLIANT_RESTART_NONE},
                                            {"off", PLIANT_RESTART_NONE},
                                            {"disable", PLIANT_RESTART_NONE},
                                            {"fixed-delay", PLIANT_RESTART_FIXED_DELAY},
                                            {"fixeddelay", PLIANT_RESTART_FIXED_DELAY},
                                            {"failure-rate", PLIANT_RESTART_FAILURE_RATE},
                                            {"failurerate", PLIANT_RESTART_FAILURE_RATE},
                                            {"exponential-delay", PLIANT_RESTART_EXPONENTIAL_DELAY},
                                            {"exponentialdelay", PLIANT_RESTART_EXPONENTIAL_DELAY},
                                            {0}};
static const struct word failover_words[] = {
    {"region", PLIANT_FAILOVER_REGION}, {"full", PLIANT_FAILOVER_FULL}, {0}};
static const struct word adaptive_failover_words[] = {
    {"full", PLIANT_FAILOVER_FULL}, {"region", PLIANT_FAILOVER_REGION}, {0}};
static const struct word placement_words[] = {{"STRICT_PACK", PLIANT_PLACE_STRICT_PACK},
                                              {"PACK", PLIANT_PLACE_PACK},
                                              {"SPREAD", PLIANT_PLACE_SPREAD},
                                              {"STRICT_SPREAD", PLIANT_PLACE_STRICT_SPREAD},
                                              {0}};
static const struct word skew_words[] = {{"auto", 1}, {"forced", 2}, {"none", 3}, {0}};
static const struct word broadcast_words[] = {{"auto", 1}, {"runtime_only", 2}, {"none", 3}, {0}};
static const struct word score_words[] = {
    {"max", PLIANT_SCORE_MAX}, {"min", PLIANT_SCORE_MIN}, {0}};

/* ---- the forms of texts -------------------------------------------------------------------- */

#define QUARANTINE_LEAST_MS 1000
#define QUARANTINE_MOST_MS (3600 * 1000)

/* "none", or two durations, the shorter one first. */
static bool is_quarantine_range(const char *text)
{
    char first[VALUE_TEXT_MAX];
    const char *comma = strchr(text, ',');
    int64_t lo, hi;

    if (!comma || comma - text >= VALUE_TEXT_MAX)
        return ascii_equal(text, "none");
    memcpy(first, text, (size_t)(comma - text));
    first[comma - text] = '\0';
    return duration_parse(first, &lo) == 0 && duration_parse(comma + 1, &hi) == 0 &&
           lo >= QUARANTINE_LEAST_MS && lo <= hi && hi <= QUARANTINE_MOST_MS;
}

/* The name of a signal, without SIG. */
static bool is_signal(const char *text, size_t n)
{
    static const char *const names[] = {"HUP",  "INT",   "QUIT", "TERM", "USR1", "USR2",
                                        "ALRM", "WINCH", "CONT", "URG",  "IO"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0)
            return true;
    return false;
}

static bool is_signal_or_none(const char *text)
{
    return ascii_equal(text, "none") || is_signal(text, strlen(text));
}

/* TERM is not among them: it drains the node. */
static bool is_signal_list(const char *text)
{
    if (ascii_equal(text, "none"))
        return true;
    for (;;) {
        size_t n = strcspn(text, ",");

        if (!is_signal(text, n) || (n == 4 && memcmp(text, "TERM", 4) == 0))
            return false;
        if (text[n] == '\0')
            return true;
        text += n + 1;
    }
}

static bool explain_labels(const char *text, char why[LABEL_WHY_MAX])
{
    struct label_rules rules;

    return label_rules_parse(text, &rules, why);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define KEY(text) .option.key = text
#define OLD(text) .option.old_keys = {text}
#define DEFAULT(text) .option.default_text = text
#define REACTIVE(text) .option.reactive_default_text = text
#define HELP(text) .option.help = text
#define NO_EFFECT .option.no_effect = true
#define FIELD(name) .offset = offsetof(struct pliant_config, name)
#define ROOM(name) .room = sizeof((struct pliant_config *)0)->name
#define HOST .offset = HOST_KEEPS

/* Types: bounds and their words, in one place each. */
#define TYPE(kind, words) .option.type = PLIANT_OPTION_##kind, .option.accepted = words
#define ANY_SPAN                                                                                   \
    TYPE(DURATION, "a duration; negative: no limit"), .min = -INT64_MAX, .max = INT64_MAX
#define SPAN TYPE(DURATION, "a duration >= 0"), .min = 0, .max = INT64_MAX
#define SOME_SPAN TYPE(DURATION, "a duration >= 1 ms"), .min = 1, .max = INT64_MAX
#define COUNT_FROM(n)                                                                              \
    TYPE(INT, "an integer from " #n " to 2147483647"), .min = (n), .max = INT32_MAX
#define ATTEMPTS TYPE(INT, "an integer from 1 to 1000"), .min = 1, .max = 1000
#define ANY_COUNT                                                                                  \
    TYPE(INT, "an integer from -2147483648 to 2147483647"), .min = INT32_MIN, .max = INT32_MAX
#define SEED TYPE(INT, "an integer from 0 to 9223372036854775807"), .min = 0, .max = INT64_MAX
#define MULTIPLIER TYPE(DOUBLE, "a number > 1, at most 1000000000"), .above = 1, .at_most = 1e9
#define FACTOR TYPE(DOUBLE, "a number > 0, at most 1000000000"), .above = 0, .at_most = 1e9
#define PART                                                                                       \
    TYPE(DOUBLE, "a number >= 0 and < 1"), .above = 0, .from = true, .at_most = 1 - DBL_EPSILON / 2
#define FRACTION TYPE(DOUBLE, "a number from 0 to 1"), .above = 0, .from = true, .at_most = 1
#define BOOLEAN TYPE(BOOL, "true | false")
#define TEXT TYPE(STRING, "a text that is not empty")
#define TEXT_LIKE(form, list) TYPE(STRING, list), .fits = (form)
#define BUDGET                                                                                     \
    TYPE(INT, "an integer from -1 to 2147483647; -1: no limit"), .min = -1, .max = INT32_MAX
#define COUNT_OR_NONE_FROM(n)                                                                      \
    TYPE(INT, "an integer from " #n " to 2147483647 | none"), .min = (n), .max = INT32_MAX,        \
                                                              .or_none = true
#define PORT TYPE(INT, "an integer from 0 to 65535"), .min = 0, .max = 65535
#define TASKS TYPE(INT, "an integer from 1 to 32768"), .min = 1, .max = PLIANT_MAX_PARALLELISM
#define TASKS_OR_NONE                                                                              \
    TYPE(INT, "an integer from 1 to 32768 | none"), .min = 1, .max = PLIANT_MAX_PARALLELISM,       \
                                                    .or_none = true
#define POSITIVE TYPE(DOUBLE, "a number > 0"), .above = 0, .at_most = 1e9
#define SIZE TYPE(SIZE, "a size from 1 byte to 4194304 tb"), .min = 1, .max = INT64_C(1) << 62
#define SPAN_OR_NONE                                                                               \
    TYPE(DURATION, "a duration >= 1 ms | none"), .min = 1, .max = INT64_MAX, .or_none = true
#define ONE_OF(table, list) TYPE(ENUM, list), .words = (table)
#define RESTART_KIND                                                                               \
    ONE_OF(restart_words, "none | off | disable | fixed-delay | failure-rate | exponential-delay")

#define ADAPTIVE "jobmanager.adaptive-scheduler."
#define SPECULATIVE "execution.batch.speculative."
#define SLOW "slow-task-detector."
#define RETRY ADAPTIVE "retry-execution-graph-creation."
#define GROUP "worker-group."
#define BATCH "execution.batch.adaptive.auto-parallelism."
#define OLD_BATCH "jobmanager.adaptive-batch-scheduler."
#define SKEW "table.optimizer.skewed-join-optimization."

/* clang-format off */
/* The parameters of restart strategies; two strategies read them [S-OPT-2]. */
#define RESTART_PARAMETERS(prefix, field) \
    {KEY(prefix "restart-strategy.fixed-delay.attempts"), FIELD(field.fixed.attempts), \
     COUNT_FROM(0), DEFAULT("1"), HELP("restarts before the job fails")}, \
    {KEY(prefix "restart-strategy.fixed-delay.delay"), FIELD(field.fixed.delay_ms), SPAN, \
     DEFAULT("1 s"), HELP("from a failure to the restart")}, \
    {KEY(prefix "restart-strategy.failure-rate.max-failures-per-interval"), \
     FIELD(field.rate.max_failures), COUNT_FROM(1), DEFAULT("1"), \
     HELP("one more within the interval fails the job")}, \
    {KEY(prefix "restart-strategy.failure-rate.failure-rate-interval"), \
     FIELD(field.rate.interval_ms), SOME_SPAN, DEFAULT("1 min"), \
     HELP("the span in which failures are counted")}, \
    {KEY(prefix "restart-strategy.failure-rate.delay"), FIELD(field.rate.delay_ms), SPAN, \
     DEFAULT("1 s"), HELP("from a failure to the restart")}, \
    {KEY(prefix "restart-strategy.exponential-delay.initial-backoff"), \
     FIELD(field.exponential.initial_ms), SOME_SPAN, DEFAULT("1 s"), \
     HELP("the first back-off; at most max-backoff")}, \
    {KEY(prefix "restart-strategy.exponential-delay.max-backoff"), \
     FIELD(field.exponential.max_ms), SOME_SPAN, DEFAULT("1 min"), \
     HELP("the longest back-off")}, \
    {KEY(prefix "restart-strategy.exponential-delay.backoff-multiplier"), \
     FIELD(field.exponential.multiplier), MULTIPLIER, DEFAULT("1.5"), \
     HELP("by which each back-off is longer than the one before")}, \
    {KEY(prefix "restart-strategy.exponential-delay.jitter-factor"), \
     FIELD(field.exponential.jitter), FRACTION, DEFAULT("0.1"), \
     HELP("the part of a back-off that is left to chance, up and down")}, \
    {KEY(prefix "restart-strategy.exponential-delay.reset-backoff-threshold"), \
     FIELD(field.exponential.reset_ms), SOME_SPAN, DEFAULT("1 h"), \
     HELP("so long without a failure starts from initial-backoff again")}, \
    {KEY(prefix "restart-strategy.exponential-delay.attempts-before-reset-backoff"), \
     FIELD(field.exponential.attempts), COUNT_FROM(1), DEFAULT("2147483647"), \
     HELP("restarts in a row before the job fails; 2147483647: no limit")}

static const struct row rows[] = {
    /* which scheduler */
    {KEY("jobmanager.scheduler"), FIELD(scheduler),
     ONE_OF(scheduler_words, "default | adaptive | adaptive-batch"), DEFAULT("adaptive"),
     HELP("which scheduler runs the job; adaptive-batch (AdaptiveBatch as well) is the default for "
          "jobs all of whose edges are blocking")},
    {KEY("scheduler-mode"), FIELD(mode), ONE_OF(mode_words, "reactive"), DEFAULT(""),
     HELP("reactive: use all slots that there are, up to each vertex's max_parallelism; "
          "implies the adaptive scheduler")},
    {KEY("pliant.seed"), FIELD(seed), SEED, DEFAULT("0"),
     HELP("what chance (jitter, rescale ids) starts from")},

    /* waiting for resources */
    {KEY(ADAPTIVE "submission.resource-wait-timeout"), OLD(ADAPTIVE "resource-wait-timeout"),
     FIELD(resource_wait_ms), ANY_SPAN, DEFAULT("5 min"), REACTIVE("-1 ms"),
     HELP("then the job starts with what is there, or fails; negative: it waits for ever")},
    {KEY(ADAPTIVE "submission.resource-stabilization-timeout"),
     OLD(ADAPTIVE "resource-stabilization-timeout"), FIELD(submission_stabilization_ms), SPAN,
     DEFAULT("10 s"), REACTIVE("0 s"),
     HELP("how long enough slots wait for all that are wanted")},
    {KEY(ADAPTIVE "rescale.resource-stabilization-timeout"), FIELD(rescale_stabilization_ms),
     SPAN, DEFAULT(""),
     HELP("the same after the restart of a rescale; unset: as for a submission")},

    /* executing */
    {KEY(ADAPTIVE "executing.cooldown-after-rescaling"), OLD(ADAPTIVE "scaling-interval.min"),
     FIELD(cooldown_ms), SPAN, DEFAULT("30 s"),
     HELP("no rescale before, counted from each start of the tasks")},
    {KEY(ADAPTIVE "executing.resource-stabilization-timeout"), FIELD(executing_stabilization_ms),
     SPAN, DEFAULT("1 min"),
     HELP("how long a rescale to less than all wanted slots waits for more")},
    {KEY(ADAPTIVE "rescale-trigger.max-checkpoint-failures"), FIELD(max_checkpoint_failures),
     COUNT_FROM(1), DEFAULT("2"),
     HELP("failed checkpoints in a row after which a rescale waits for none")},
    {KEY(ADAPTIVE "rescale-trigger.max-delay"), FIELD(max_trigger_delay_ms), SPAN,
     DEFAULT(""),
     HELP("how long a rescale waits for a checkpoint; unset: 0 s without checkpointing, else "
          "(max-checkpoint-failures + 1) x interval")},
    {KEY(ADAPTIVE "rescale-trigger.active-checkpoint.enabled"), FIELD(active_checkpoint), BOOLEAN,
     DEFAULT("false"), HELP("a rescale asks for a checkpoint instead of waiting for the next")},
    {KEY("pliant.rescale.policy"), FIELD(rescale_policy),
     ONE_OF(policy_words,
            "parallelism-change | never | immediate | ray-elastic | torchrun | worth"),
     DEFAULT("parallelism-change"),
     HELP("what makes a rescale worth its restart: any change of parallelism when the timings of "
          "Executing say so; as another system would; or (worth) a gain that exceeds the cost, by "
          "what the job has seen. Under all but the first, those timings are 0 where nobody set "
          "them")},
    {KEY("pliant.rescale.worth.restart"), FIELD(worth.restart_ms), SPAN, DEFAULT("30 s"),
     HELP("what a restart is taken to cost until one was measured")},
    {KEY("pliant.rescale.worth.min-restart"), FIELD(worth.min_restart_ms), SPAN, DEFAULT("0 s"),
     HELP("what a restart is taken to cost at least, whatever was measured: for tasks that are "
          "started long before they are of use")},
    {KEY("pliant.rescale.worth.checkpoint"), FIELD(worth.checkpoint_ms), SPAN, DEFAULT("3 s"),
     HELP("the same for a checkpoint")},
    {KEY("pliant.rescale.worth.between-losses"), FIELD(worth.between_losses_ms), SOME_SPAN,
     DEFAULT("40 min"),
     HELP("how long the job is taken to run from one loss of nodes to the next, right after nodes "
          "came or went; counts as much as one loss that was seen")},
    {KEY("pliant.rescale.worth.memory"), FIELD(worth.memory_ms), SOME_SPAN, DEFAULT("4 h"),
     HELP("what was seen so long ago counts half")},
    {KEY(ADAPTIVE "min-parallelism-increase"), HOST, COUNT_FROM(1), DEFAULT("1"), NO_EFFECT,
     HELP("dead in Flink since 2.0")},
    {KEY(ADAPTIVE "scaling-interval.max"), HOST, SPAN, DEFAULT(""), NO_EFFECT,
     HELP("dead in Flink since 2.0")},

    /* placement */
    {KEY(ADAPTIVE "prefer-minimal-taskmanagers"), FIELD(prefer_minimal_nodes), BOOLEAN,
     DEFAULT("true"), HELP("fill whole nodes, so that surplus nodes can go; among nodes with as many slots, "
          "those that have been there for longest")},
    {KEY("pliant.placement.spread"), FIELD(spread),
     ONE_OF(spread_words, "none | nodes | domains"), DEFAULT("none"),
     HELP("balance the tasks over nodes or over failure domains")},
    {KEY("execution.state-recovery.from-local"), OLD("state.backend.local-recovery"),
     FIELD(local_recovery), BOOLEAN, DEFAULT("false"), HELP("put subtasks where their state is")},
    {KEY("jobmanager.execution.failover-strategy"), FIELD(failover_strategy),
     ONE_OF(failover_words, "region | full"), DEFAULT("region"),
     HELP("default scheduler: what restarts after a failure, the pipelined regions that it "
          "touches or all tasks; for the adaptive scheduler see pliant.adaptive.failover")},
    {KEY("jobmanager.partition.release-during-job-execution"), FIELD(release_results), BOOLEAN,
     DEFAULT("true"),
     HELP("default scheduler: results of blocking edges are given up when nobody will read them "
          "any more; false: at the end of the job")},

    /* batch jobs */
    {KEY(BATCH "enabled"), OLD(OLD_BATCH "enabled"),
     FIELD(batch.auto_parallelism), BOOLEAN, DEFAULT("true"),
     HELP("adaptive-batch: a vertex without a parallelism gets one that follows from what it "
          "reads; false: 1")},
    {KEY(BATCH "min-parallelism"), OLD(OLD_BATCH "min-parallelism"), FIELD(batch.min), TASKS,
     DEFAULT("1"), HELP("adaptive-batch: no vertex is decided to have less")},
    {KEY(BATCH "max-parallelism"), OLD(OLD_BATCH "max-parallelism"), FIELD(batch.max), TASKS,
     DEFAULT("128"),
     HELP("adaptive-batch: no vertex is decided to have more; max_parallelism of those that do not "
          "say it")},
    {KEY(BATCH "avg-data-volume-per-task"), OLD(OLD_BATCH "avg-data-volume-per-task"),
     FIELD(batch.volume), SIZE, DEFAULT("16 mb"), HELP("adaptive-batch: what a task should read")},
    {KEY(BATCH "default-source-parallelism"), OLD(OLD_BATCH "default-source-parallelism"),
     FIELD(batch.default_source), TASKS_OR_NONE, DEFAULT("none"),
     HELP("adaptive-batch: of a vertex that reads nothing; none: max-parallelism")},
    {KEY(SKEW "skewed-factor"), FIELD(batch.skew_factor), POSITIVE, DEFAULT("4"),
     HELP("adaptive-batch: a subpartition so many times the median is skewed ...")},
    {KEY(SKEW "skewed-threshold"), FIELD(batch.skew_threshold), SIZE, DEFAULT("256 mb"),
     HELP("... if it is larger than this as well; it is split where the edge is splittable")},
    {KEY(SKEW "strategy"), HOST, ONE_OF(skew_words, "auto | forced | none"), DEFAULT("auto"),
     NO_EFFECT, HELP("the job says which edges are splittable")},
    {KEY("table.optimizer.adaptive-broadcast-join.strategy"), HOST,
     ONE_OF(broadcast_words, "auto | runtime_only | none"), DEFAULT("auto"), NO_EFFECT,
     HELP("a join is what the job says")},

    /* checkpoints */
    {KEY("execution.checkpointing.interval"), FIELD(checkpoint_interval_ms), SOME_SPAN,
     DEFAULT(""), HELP("from one periodic checkpoint to the next; set: checkpointing is on")},
    {KEY("pliant.checkpoint.interval"), FIELD(checkpoint_pace), ONE_OF(pace_words, "auto"),
     DEFAULT(""),
     HELP("auto: the interval follows the losses that the job has seen, and checkpointing is on; "
          "unset: execution.checkpointing.interval holds")},
    {KEY("pliant.checkpoint.min-interval"), FIELD(checkpoint_min_interval_ms), SOME_SPAN,
     DEFAULT("1 s"), HELP("the shortest interval that auto takes")},
    {KEY("pliant.checkpoint.max-interval"), FIELD(checkpoint_max_interval_ms), SOME_SPAN,
     DEFAULT("1 h"),
     HELP("the longest interval that auto takes, but for twice what a checkpoint costs")},
    {KEY("execution.checkpointing.min-pause"), FIELD(checkpoint_min_pause_ms), SPAN,
     DEFAULT("0 s"), HELP("from the end of a checkpoint to the next, at least")},
    {KEY("execution.checkpointing.timeout"), FIELD(checkpoint_timeout_ms), SOME_SPAN,
     DEFAULT("10 min"), HELP("a checkpoint that takes longer has failed")},
    {KEY("execution.checkpointing.tolerable-failed-checkpoints"),
     FIELD(tolerable_failed_checkpoints), COUNT_FROM(-1), DEFAULT("-1"),
     HELP("one more in a row is a failure of the job; -1: no limit")},
    {KEY("execution.checkpointing.num-retained"), OLD("state.checkpoints.num-retained"),
     FIELD(checkpoints_retained), COUNT_FROM(1), DEFAULT("1"),
     HELP("service: completed checkpoints that are kept")},
    {KEY("execution.checkpointing.dir"), OLD("state.checkpoints.dir"), HOST, TEXT, DEFAULT(""),
     HELP("service: where checkpoints are put")},
    {KEY("execution.checkpointing.savepoint-dir"), OLD("state.savepoints.dir"),
     FIELD(has_savepoint_dir), TEXT, DEFAULT(""),
     HELP("where savepoints are put if the user names no place")},
    {KEY("pliant.results.dir"), HOST, TEXT, DEFAULT(""),
     HELP("service: where results of blocking edges are put, a directory that all nodes share")},
    {KEY("pliant.results.outlive-nodes"), FIELD(results_outlive_nodes), BOOLEAN, DEFAULT("false"),
     HELP("default scheduler and adaptive-batch: what a finished task wrote stays when its node is "
          "lost, as on a file server that has it by then; false: tasks whose results are needed "
          "run again")},
    {KEY("execution.checkpointing.checkpoints-after-tasks-finish"),
     OLD("execution.checkpointing.checkpoints-after-tasks-finish.enabled"),
     FIELD(checkpoints_after_finish), BOOLEAN, DEFAULT("true"),
     HELP("one more checkpoint when all tasks are at their end")},
    {KEY("pliant.checkpoint.periodic"), FIELD(checkpoint_periodic), BOOLEAN, DEFAULT("true"),
     HELP("false: nobody asks for periodic checkpoints, they are only reported")},

    /* failures */
    {KEY("restart-strategy.type"), OLD("restart-strategy"), FIELD(restart.kind), RESTART_KIND,
     DEFAULT(""),
     HELP("unset: none without checkpointing, else exponential-delay with the defaults of all "
          "its parameters")},
    RESTART_PARAMETERS("", restart),
    {KEY(RETRY "restart-strategy.type"), OLD(RETRY "restart-strategy"),
     FIELD(creation_retry.kind), RESTART_KIND, DEFAULT("none"),
     HELP("the same for execution graphs that could not be created")},
    RESTART_PARAMETERS(RETRY, creation_retry),
    {KEY("task.cancellation.timeout"), FIELD(cancellation_timeout_ms), SPAN, DEFAULT("3 min"),
     HELP("a node whose tasks confirm no cancel for so long is given up; 0: never")},

    {KEY("pliant.adaptive.failover"), FIELD(adaptive_failover),
     ONE_OF(adaptive_failover_words, "full | region"), DEFAULT("full"),
     HELP("after a failure restart the whole job, or only the pipelined regions that it touches "
          "as long as there are slots for them; recommended: region")},
    {KEY("pliant.failure-labels"), FIELD(failure_labels), ROOM(failure_labels),
     TYPE(STRING, "rules, as cause=*out of memory* -> type=oom; exit=137 -> type=killed | none"),
     .explain = explain_labels, DEFAULT(""),
     HELP("labels that failures get; the first rule that holds for a failure gives the value of a "
          "key. They decide nothing")},

    /* speculative execution */
    {KEY(SPECULATIVE "enabled"), FIELD(speculative.enabled), BOOLEAN, DEFAULT("false"),
     HELP("batch: a task that takes suspiciously long gets another attempt elsewhere; the first to "
          "finish is the result. Not with checkpoints")},
    {KEY(SPECULATIVE "max-concurrent-executions"), FIELD(speculative.max_attempts), ATTEMPTS,
     DEFAULT("2"), HELP("attempts of one task at a time, the original included")},
    {KEY(SPECULATIVE "block-slow-node-duration"), FIELD(speculative.block_ms), SPAN,
     DEFAULT("1 min"), HELP("so long nothing new starts on the node of a slow task; 0: it does")},
    {KEY(SLOW "check-interval"), FIELD(slow_tasks.check_interval_ms), SOME_SPAN, DEFAULT("1 s"),
     HELP("from one look for slow tasks to the next")},
    {KEY(SLOW "execution-time.baseline-lower-bound"), FIELD(slow_tasks.lower_bound_ms), SPAN,
     DEFAULT("1 min"), HELP("a task that runs for less is not slow")},
    {KEY(SLOW "execution-time.baseline-ratio"), FIELD(slow_tasks.ratio), PART, DEFAULT("0.75"),
     HELP("of a vertex' tasks so many must have finished first; their median is the measure")},
    {KEY(SLOW "execution-time.baseline-multiplier"), FIELD(slow_tasks.multiplier), FACTOR,
     DEFAULT("1.5"), HELP("a task is slow that takes so many times the measure")},

    /* drains */
    {KEY("pliant.drain.lead"), FIELD(drain_lead_ms), SPAN, DEFAULT("5 s"),
     HELP("a job leaves a draining node at least so long before its end")},
    {KEY("pliant.drain.max-restarts"), FIELD(drain_max_restarts), COUNT_FROM(-1), DEFAULT("-1"),
     HELP("restarts because of drains before the job fails; -1: no limit")},

    /* worker groups: size and budgets */
    {KEY(GROUP "min-workers"), FIELD(group.min_workers), COUNT_FROM(0), DEFAULT("0"),
     HELP("with fewer workers the group waits; 0: the job's parallelism")},
    {KEY(GROUP "max-workers"), FIELD(group.max_workers), COUNT_FROM(0), DEFAULT("0"),
     HELP("more workers than that are not started; 0: the job's parallelism")},
    {KEY(GROUP "max-failures"), FIELD(group.max_failures), BUDGET, DEFAULT("0"),
     HELP("restarts because of workers that failed or nodes that were lost before the job fails; "
          "it replaces the limit of the restart strategy, whose back-off stays")},
    {KEY(GROUP "max-preemption-failures"), FIELD(group.max_preemption_failures), BUDGET,
     DEFAULT("-1"), HELP("the same because of preemptions")},
    {KEY(GROUP "controller-failure-limit"), FIELD(group.controller_failure_limit), BUDGET,
     DEFAULT("-1"), HELP("launches that fail and are tried again before the job fails")},
    {KEY(GROUP "reset-limit"), FIELD(group.reset_limit), COUNT_OR_NONE_FROM(0), DEFAULT("none"),
     HELP("restarts and resizes of any cause before the next one fails the job instead")},

    /* worker groups: drains */
    {KEY(GROUP "preemption-grace"), FIELD(group.preemption_grace_ms), SPAN, DEFAULT("0 s"),
     HELP("service: from the end that a drain sets its group to SIGKILL for what still runs")},
    {KEY(GROUP "relax-collectives-on-preemption"), FIELD(group.relax_collectives), BOOLEAN,
     DEFAULT("false"), NO_EFFECT, HELP("not yet; reports complete without preempted workers")},
    {KEY(GROUP "default-drain-deadline"), FIELD(group.default_drain_deadline_ms), SPAN,
     DEFAULT("2 min"), HELP("service: that of a drain which gives none, for the group's end")},
    {KEY(GROUP "drain-poll-interval"), FIELD(group.drain_poll_interval_ms), SOME_SPAN,
     DEFAULT("5 s"), NO_EFFECT, HELP("not yet; for sources of drains that must be polled")},
    {KEY(GROUP "collateral-window"), FIELD(group.collateral_window_ms), SPAN, DEFAULT("2 s"),
     HELP("during a drain a failure elsewhere waits so long whether a preemption explains it; "
          "0: not at all")},
    {KEY(GROUP "restart-after-jit-checkpoint"), FIELD(group.restart_after_jit_checkpoint),
     BOOLEAN, DEFAULT("false"), NO_EFFECT,
     HELP("not yet; a checkpoint after a notice restarts the group at once")},
    {KEY(GROUP "preemption-signal"), HOST, TEXT_LIKE(is_signal_or_none, "USR1, ... | none"),
     DEFAULT("none"), HELP("service: sent to each worker with a notice, once its file is there")},
    {KEY(GROUP "agent-drain-timeout"), FIELD(group.agent_drain_timeout_ms), SPAN, DEFAULT("30 s"),
     NO_EFFECT, HELP("pliant-agent --drain-timeout says how long an agent drains its node")},

    /* worker groups: sizes while running */
    {KEY(GROUP "resize-monitor-interval"), FIELD(group.resize_monitor_interval_ms), SPAN,
     DEFAULT("1 min"), NO_EFFECT, HELP("not yet; pliant.rescale.policy decides on resizes")},
    {KEY(GROUP "resize-checkpoint-timeout"), FIELD(group.resize_checkpoint_timeout_ms), SPAN,
     DEFAULT("0 s"), NO_EFFECT, HELP("not yet; pliant.rescale.policy decides on resizes")},
    {KEY(GROUP "last-call"), FIELD(group.last_call_ms), SPAN, DEFAULT("0 s"),
     HELP("how long a start below max-workers waits for more nodes; the default of the two "
          "resource-stabilization-timeouts for a worker group")},
    {KEY(GROUP "resource-wait-timeout"), FIELD(group.resource_wait_timeout_ms), SPAN_OR_NONE,
     DEFAULT(""), HELP("a group that has too few slots for so long fails; the default of "
                       "submission.resource-wait-timeout for a worker group; none: it waits")},
    {KEY(GROUP "resource-demand-interval"), FIELD(group.resource_demand_interval_ms), SOME_SPAN,
     DEFAULT("20 s"), NO_EFFECT, HELP("not yet; how often an autoscaler is told of the demand")},
    {KEY(GROUP "resource-demand-expiry"), FIELD(group.resource_demand_expiry_ms), SOME_SPAN,
     DEFAULT("3 min"), NO_EFFECT, HELP("not yet; when it lapses")},
    {KEY(GROUP "whole-domains"), FIELD(group.whole_domains), BOOLEAN, DEFAULT("false"), NO_EFFECT,
     HELP("not yet; only whole failure domains are used")},
    {KEY(GROUP "placement-strategy"), FIELD(group.placement),
     ONE_OF(placement_words, "STRICT_PACK | PACK | SPREAD | STRICT_SPREAD"), DEFAULT("PACK"),
     NO_EFFECT, HELP("not yet; how workers are spread over nodes")},

    /* worker groups: launch and health */
    {KEY(GROUP "start-timeout"), FIELD(group.start_timeout_ms), SOME_SPAN, DEFAULT("1 min"),
     HELP("a launch that is not complete so long after its slots were granted has failed")},
    {KEY(GROUP "prepare-timeout"), FIELD(group.prepare_timeout_ms), SOME_SPAN, DEFAULT("10 min"),
     HELP("service: the same for the preparation of the environment before the launch")},
    {KEY(GROUP "health-check-interval"), FIELD(group.health_check_interval_ms), SOME_SPAN,
     DEFAULT("2 s"), HELP("service: from one health check of a worker that takes part to the next")},
    {KEY(GROUP "health-check-timeout"), FIELD(group.health_check_timeout_ms), SOME_SPAN,
     DEFAULT("10 min"), HELP("service: a worker that leaves one unanswered for so long is killed")},
    {KEY(GROUP "collective-timeout"), FIELD(group.collective_timeout_ms), SPAN_OR_NONE,
     DEFAULT(""), HELP("service: a collective that waits for so long fails the job; none: it waits")},
    {KEY(GROUP "collective-warn-interval"), FIELD(group.collective_warn_interval_ms), SOME_SPAN,
     DEFAULT("1 min"), HELP("service: how often a call that waits is warned of")},
    {KEY(GROUP "stop-timeout"), FIELD(group.stop_timeout_ms), SPAN, DEFAULT("30 s"),
     HELP("service: from SIGTERM to SIGKILL")},
    {KEY(GROUP "exit-barrier-timeout"), FIELD(group.exit_barrier_timeout_ms), SPAN,
     DEFAULT("5 min"), NO_EFFECT,
     HELP("an agent is a daemon that stays when its workers are done: it waits for no others")},
    {KEY(GROUP "master-port"), FIELD(group.master_port), PORT, DEFAULT("0"),
     HELP("service: MASTER_PORT; 0: a free one for each attempt")},
    {KEY(GROUP "port-retry-window"), FIELD(group.port_retry_window_ms), SPAN, DEFAULT("30 s"),
     HELP("a worker that finds the port taken so soon after the launch costs one more launch")},
    {KEY(GROUP "virtual-local-rank"), FIELD(group.virtual_local_rank), BOOLEAN, DEFAULT("false"),
     HELP("service: each worker sees one device, and LOCAL_RANK is 0")},
    {KEY(GROUP "role-name"), HOST, TEXT, DEFAULT("default"), HELP("service: ROLE_NAME")},
    {KEY(GROUP "forward-signals"), HOST, TEXT_LIKE(is_signal_list, "INT,HUP,... | none"),
     DEFAULT("INT,HUP,QUIT"), HELP("service: signals that an agent passes on to the workers")},
    {KEY(GROUP "horovod-env"), FIELD(group.horovod_env), BOOLEAN, DEFAULT("false"),
     HELP("service: Horovod's variables as well")},
    {KEY(GROUP "quarantine-range"), HOST,
     TEXT_LIKE(is_quarantine_range, "two durations from 1 s to 1 h, \"lo, hi\" | none"),
     DEFAULT("none"), NO_EFFECT, HELP("not yet; how long nodes of failed workers are left out")},
    {KEY(GROUP "discovery-script"), HOST, TEXT, DEFAULT(""), NO_EFFECT,
     HELP("not yet; a program that prints the hosts")},
    {KEY(GROUP "discovery-interval"), FIELD(group.discovery_interval_ms), SOME_SPAN,
     DEFAULT("1 s"), NO_EFFECT, HELP("not yet; how often it is asked")},
    {KEY(GROUP "slots-per-host"), FIELD(group.slots_per_host), COUNT_FROM(1), DEFAULT("1"),
     NO_EFFECT, HELP("not yet; slots of hosts for which it prints none")},

    /* worker groups: checkpoints */
    {KEY(GROUP "storage-path"), HOST, TEXT, DEFAULT(""),
     HELP("service: where the run's directory is")},
    {KEY(GROUP "name"), HOST, TEXT, DEFAULT(""), HELP("service: the name of the run")},
    {KEY(GROUP "require-new-run"), FIELD(group.require_new_run), BOOLEAN, DEFAULT("false"),
     HELP("service: a run of that name that exists is an error")},
    {KEY(GROUP "upload-warn-interval"), FIELD(group.upload_warn_interval_ms), SOME_SPAN,
     DEFAULT("1 min"), NO_EFFECT,
     HELP("not yet; how often an upload that takes long is warned of")},
    {KEY(GROUP "upload-attempts"), FIELD(group.upload_attempts), COUNT_FROM(1), DEFAULT("3"),
     NO_EFFECT, HELP("not yet; how often an upload is tried")},
    {KEY(GROUP "checkpoint.num-to-keep"), FIELD(group.num_to_keep), COUNT_OR_NONE_FROM(1),
     DEFAULT("none"), HELP("service: checkpoints that are kept, the latest besides; none: all")},
    {KEY(GROUP "checkpoint.score-attribute"), HOST, TEXT, DEFAULT(""),
     HELP("service: the metric by which the best are kept; unset: the latest are")},
    {KEY(GROUP "checkpoint.score-order"), FIELD(group.score_order),
     ONE_OF(score_words, "max | min"), DEFAULT("max"), HELP("service: which value of it is best")},

    /* actors and placement groups */
    {KEY(GROUP "actor.max-restarts"), FIELD(group.actor_max_restarts), BUDGET, DEFAULT("0"),
     NO_EFFECT, HELP("not yet; restarts of an actor")},
    {KEY(GROUP "actor.max-task-retries"), FIELD(group.actor_max_task_retries), BUDGET,
     DEFAULT("0"), NO_EFFECT, HELP("not yet; repeated runs of a call")},
    {KEY(GROUP "actor.retry-exceptions"), HOST, TEXT, DEFAULT("false"), NO_EFFECT,
     HELP("not yet; whether a call is repeated after an exception of the user's code, or which")},
    {KEY(GROUP "actor.poison-threshold"), FIELD(group.actor_poison_threshold), COUNT_FROM(0),
     DEFAULT("3"), NO_EFFECT, HELP("not yet; crashes in a row that put a payload aside; 0: off")},
    {KEY(GROUP "actor.call-timeout"), FIELD(group.actor_call_timeout_ms), SOME_SPAN,
     DEFAULT("1 min"), NO_EFFECT, HELP("not yet; how long a call may take")},
    {KEY(GROUP "placement.timeout"), FIELD(group.placement_timeout_ms), SOME_SPAN,
     DEFAULT("30 s"), NO_EFFECT, HELP("not yet; how long a placement may take")},
    {KEY(GROUP "placement.replacement-timeout"), FIELD(group.placement_replacement_timeout_ms),
     SOME_SPAN, DEFAULT("2 min"), NO_EFFECT, HELP("not yet; the same after a loss")},

    /* slots, nodes, histories */
    {KEY("slot.idle.timeout"), FIELD(slot_idle_timeout_ms), SOME_SPAN, DEFAULT("50 s"),
     HELP("slots that are idle for longer are given back")},
    {KEY("slot.request.timeout"), FIELD(slot_request_timeout_ms), SPAN, DEFAULT("5 min"),
     HELP("default scheduler: how long a region waits for its slots before that is a failure; "
          "the adaptive one declares what it wants")},
    {KEY("slot.request.max-interval"), HOST, SPAN, DEFAULT("20 ms"), NO_EFFECT,
     HELP("slots are declared, not requested")},
    {KEY("heartbeat.interval"), HOST, SOME_SPAN, DEFAULT("5 s"),
     HELP("service: from one sign of life of a node to the next")},
    {KEY("heartbeat.timeout"), HOST, SOME_SPAN, DEFAULT("15 s"),
     HELP("service: a node that is silent for so long is lost")},
    {KEY("web.adaptive-scheduler.rescale-history.size"), FIELD(rescale_history_size), ANY_COUNT,
     DEFAULT("16"), HELP("rescales that are remembered; 0 or less: none")},
    {KEY("web.exception-history-size"), FIELD(exception_history_size), COUNT_FROM(0),
     DEFAULT("16"), HELP("failures that are remembered")},

    /* the service */
    {KEY("pliant.daemon.agents"), HOST, TEXT, DEFAULT("tcp://127.0.0.1:6180"),
     HELP("service: where agents connect; port * lets the kernel pick one")},
    {KEY("pliant.daemon.clients"), HOST, TEXT, DEFAULT("tcp://127.0.0.1:6181"),
     HELP("service: where clients connect")},
    {KEY("pliant.daemon.events"), HOST, TEXT, DEFAULT("tcp://127.0.0.1:6182"),
     HELP("service: where the event stream can be had")},
    {KEY("pliant.daemon.state-dir"), HOST, TEXT, DEFAULT(""),
     HELP("service: where pliantd keeps what outlives it; unset: $PLIANT_STATE_DIR, else "
          "/var/lib/pliant (root) or $XDG_STATE_HOME/pliant")},
    {KEY("pliant.daemon.event-queue"), HOST, COUNT_FROM(1), DEFAULT("1000"),
     HELP("service: events that wait for a slow follower; what is more is lost to it")},
    {KEY("pliant.daemon.ended-jobs"), HOST, COUNT_FROM(0), DEFAULT("1000"),
     HELP("service: jobs that have ended and can still be looked at; those that ended first go "
          "first")},
    {KEY("pliant.daemon.ended-jobs-age"), HOST, SPAN_OR_NONE, DEFAULT("none"),
     HELP("service: for how long they can be, if they are not too many before; none: no limit")},
    {KEY("pliant.security.keys"), HOST, TEXT, DEFAULT(""),
     HELP("service: the directory with the daemon's key and the public keys of its peers; unset: "
          "no keys, on ipc and loopback only")},
    {KEY("pliant.agent.orphan-timeout"), HOST, SOME_SPAN, DEFAULT("10 min"),
     HELP("service: an agent without its daemon for so long stops its tasks")},
    {KEY("pliant.agent.keep-tasks"), HOST, BOOLEAN, DEFAULT("false"),
     HELP("service: tasks outlive their agent, up to the orphan timeout, and its next start "
          "adopts them")},
    {KEY("pliant.agent.stop-timeout"), HOST, SPAN, DEFAULT("30 s"),
     HELP("service: from SIGTERM to SIGKILL, for tasks of graph jobs")},
    {KEY("pliant.journal.max-steps"), HOST, COUNT_FROM(0), DEFAULT("1000000"),
     HELP("service: steps of a job that are kept to be recorded; 0: those since the snapshot")},
    {KEY("pliant.snapshot.every-steps"), HOST, COUNT_FROM(1), DEFAULT("1000"),
     HELP("service: steps of a job from one snapshot to the next")},

    /* the simulated cluster */
    {KEY("pliant.sim.deploy-latency"), HOST, SPAN, DEFAULT("0 s"),
     HELP("simulator: from the deployment of a task to its start")},
    {KEY("pliant.sim.cancel-latency"), HOST, SPAN, DEFAULT("0 s"),
     HELP("simulator: from the cancel of a task to its end")},
    {KEY("pliant.sim.restore-latency"), HOST, SPAN, DEFAULT("0 s"),
     HELP("simulator: what a task needs to read its state, where there is some")},
    {KEY("pliant.sim.checkpoint-duration"), HOST, SPAN, DEFAULT("0 s"),
     HELP("simulator: from the trigger of a checkpoint to its completion")},
};
/* clang-format on */

#define N_ROWS (sizeof rows / sizeof *rows)

_Static_assert(N_ROWS <= 64 * sizeof((struct pliant_config *)0)->named / sizeof(uint64_t),
               "one bit a row");
_Static_assert(sizeof(enum pliant_scheduler) == sizeof(unsigned) &&
                   sizeof(enum pliant_restart_kind) == sizeof(unsigned),
               "enums are read and written as unsigned");

/* ---- looking up ------------------------------------------------------------------------------ */

static const struct row *find_row(const char *key, bool *ret_old)
{
    *ret_old = false;
    for (size_t i = 0; i < N_ROWS; i++) /* a key that came from the table: no need to read it */
        if (rows[i].option.key == key)
            return &rows[i];
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct pliant_option *o = &rows[i].option;

        *ret_old = strcmp(o->key, key) != 0;
        if (!*ret_old)
            return &rows[i];
        for (size_t k = 0; k < 2 && o->old_keys[k]; k++)
            if (strcmp(o->old_keys[k], key) == 0)
                return &rows[i];
    }
    return NULL;
}

const struct pliant_option *pliant_option_at(size_t i)
{
    return i < N_ROWS ? &rows[i].option : NULL;
}

const struct pliant_option *pliant_option_find(const char *key)
{
    bool old;
    const struct row *row = find_row(key, &old);

    return row ? &row->option : NULL;
}

const char *pliant_option_nearest(const char *key)
{
    struct nearest n;

    nearest_start(&n, key);
    for (size_t i = 0; i < N_ROWS; i++)
        nearest_offer(&n, rows[i].option.key);
    return n.best;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A value of any kind; which member counts is a matter of the row's type. */
struct value {
    int64_t integer; /* DURATION, INT, SIZE */
    double real;
    unsigned word;    /* ENUM */
    bool truth;       /* BOOL; STRING: there is one */
    const char *text; /* STRING that is kept */
};

static int64_t none_of(const struct row *row)
{
    return row->option.type == PLIANT_OPTION_DURATION ? PLIANT_UNSET : NONE;
}

static bool text_fits(const struct row *row, const char *text)
{
    char why[LABEL_WHY_MAX];

    return *text && (!row->fits || row->fits(text)) && (!row->explain || row->explain(text, why));
}

static bool within(const struct row *row, const struct value *v)
{
    switch (row->option.type) {
    case PLIANT_OPTION_DURATION:
    case PLIANT_OPTION_INT:
    case PLIANT_OPTION_SIZE:
        return (v->integer >= row->min && v->integer <= row->max) ||
               (row->or_none && v->integer == none_of(row));
    case PLIANT_OPTION_DOUBLE:
        return (v->real > row->above || (row->from && v->real >= row->above)) &&
               v->real <= row->at_most;
    case PLIANT_OPTION_ENUM:
        for (const struct word *w = row->words; w->text; w++)
            if (w->value == v->word)
                return true;
        return false;
    case PLIANT_OPTION_STRING:
        return !row->room || !*v->text || text_fits(row, v->text);
    case PLIANT_OPTION_BOOL:
        return true;
    }
    return false;
}

static bool read_word(const struct word *words, const char *text, unsigned *ret)
{
    for (; words->text; words++) {
        if (!ascii_equal(words->text, text))
            continue;
        *ret = words->value;
        return true;
    }
    return false;
}

static bool read_bool(const char *text, bool *ret)
{
    *ret = ascii_equal(text, "true");
    return *ret || ascii_equal(text, "false");
}

/* Is `text` a value that the row accepts? */
static bool read_value(const struct row *row, const char *text, struct value *ret)
{
    bool read = false;

    if (row->or_none && ascii_equal(text, "none")) {
        ret->integer = none_of(row);
        return true;
    }
    switch (row->option.type) {
    case PLIANT_OPTION_DURATION:
        read = duration_parse(text, &ret->integer) == 0;
        break;
    case PLIANT_OPTION_INT:
        read = decimal_read_int(text, &ret->integer);
        break;
    case PLIANT_OPTION_SIZE:
        read = size_parse(text, &ret->integer) == 0;
        break;
    case PLIANT_OPTION_DOUBLE:
        read = decimal_read(text, &ret->real);
        break;
    case PLIANT_OPTION_ENUM:
        return read_word(row->words, text, &ret->word);
    case PLIANT_OPTION_BOOL:
        return read_bool(text, &ret->truth);
    case PLIANT_OPTION_STRING:
        ret->text = text;
        return ret->truth = text_fits(row, text);
    }
    return read && !(row->or_none && ret->integer == none_of(row)) && within(row, ret);
}

static void load(const struct row *row, const struct pliant_config *cfg, struct value *ret)
{
    const char *field = (const char *)cfg + row->offset;

    *ret = (struct value){0};
    if (row->room) {
        ret->text = field;
        return;
    }
    switch (row->option.type) {
    case PLIANT_OPTION_DURATION:
    case PLIANT_OPTION_INT:
    case PLIANT_OPTION_SIZE:
        memcpy(&ret->integer, field, sizeof ret->integer);
        break;
    case PLIANT_OPTION_DOUBLE:
        memcpy(&ret->real, field, sizeof ret->real);
        break;
    case PLIANT_OPTION_ENUM:
        memcpy(&ret->word, field, sizeof ret->word);
        break;
    case PLIANT_OPTION_BOOL:
    case PLIANT_OPTION_STRING:
        memcpy(&ret->truth, field, sizeof ret->truth);
        break;
    }
}

static void store(const struct row *row, struct pliant_config *cfg, const struct value *v)
{
    char *field = (char *)cfg + row->offset;

    if (row->room) {
        memset(field, 0, row->room);
        memcpy(field, v->text, strlen(v->text));
        return;
    }
    switch (row->option.type) {
    case PLIANT_OPTION_DURATION:
    case PLIANT_OPTION_INT:
    case PLIANT_OPTION_SIZE:
        memcpy(field, &v->integer, sizeof v->integer);
        break;
    case PLIANT_OPTION_DOUBLE:
        memcpy(field, &v->real, sizeof v->real);
        break;
    case PLIANT_OPTION_ENUM:
        memcpy(field, &v->word, sizeof v->word);
        break;
    case PLIANT_OPTION_BOOL:
    case PLIANT_OPTION_STRING:
        memcpy(field, &v->truth, sizeof v->truth);
        break;
    }
}

/* Has nobody set it? Only durations and enums can tell, and an enum only where no word stands
 * for 0; the others hold their default from the start. */
static bool unset(const struct row *row, const struct value *v)
{
    if (row->option.type == PLIANT_OPTION_DURATION)
        return v->integer == PLIANT_UNSET;
    return row->option.type == PLIANT_OPTION_ENUM && v->word == 0 && !within(row, v);
}

static void store_default(const struct row *row, struct pliant_config *cfg)
{
    bool reactive = cfg->mode == PLIANT_MODE_REACTIVE && row->option.reactive_default_text;
    const char *text = reactive ? row->option.reactive_default_text : row->option.default_text;
    struct value v;
    bool fits = read_value(row, text, &v);

    assert(fits);
    store(row, cfg, &v);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int fail(struct pliant_error *err, int error, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int fail(struct pliant_error *err, int error, const char *field, const char *format, ...)
{
    va_list args;

    if (!err)
        return error;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    snprintf(err->field, sizeof err->field, "%s", field);
    err->item = UINT32_MAX;
    return error;
}

static int fail_unknown(struct pliant_error *err, const char *key)
{
    const char *nearest = pliant_option_nearest(key);

    if (nearest)
        return fail(err, -ENOENT, key, "%.100s: no such option; did you mean %s?", key, nearest);
    return fail(err, -ENOENT, key, "%.100s: no such option", key);
}

static int fail_value(struct pliant_error *err, const struct row *row, const char *key,
                      const char *text)
{
    const char *units = row->option.type == PLIANT_OPTION_DURATION ? " (units " DURATION_UNITS ")"
                        : row->option.type == PLIANT_OPTION_SIZE   ? " (units " SIZE_UNITS ")"
                                                                   : "";
    char why[LABEL_WHY_MAX];

    if (row->explain && *text && !row->explain(text, why))
        return fail(err, -EINVAL, key, "%s: %s", key, why);
    return fail(err, -EINVAL, key, "%s: not \"%.*s\"; accepted: %s%s", key, VALUE_SHOWN, text,
                row->option.accepted, units);
}

/* ---- a config -------------------------------------------------------------------------------- */

void pliant_config_init(struct pliant_config *cfg)
{
    memset(cfg, 0, sizeof *cfg);
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct row *row = &rows[i];
        struct value v = {.integer = PLIANT_UNSET, .text = ""};

        if (row->offset == HOST_KEEPS)
            continue;
        store(row, cfg, &v);
        if (!unset(row, &v) && *row->option.default_text)
            store_default(row, cfg);
    }
}

int pliant_config_set(struct pliant_config *cfg, const char *key, const char *value,
                      struct pliant_error *err)
{
    bool old;
    const struct row *row = find_row(key, &old);
    struct value v;
    size_t i;

    if (!row)
        return fail_unknown(err, key);
    if (!read_value(row, value, &v))
        return fail_value(err, row, key, value);
    i = (size_t)(row - rows);
    if (old && cfg->named[i / 64] >> i % 64 & 1)
        return 0; /* the present name has spoken [S-OPT-3] */
    if (!old)
        cfg->named[i / 64] |= UINT64_C(1) << i % 64;
    if (row->offset != HOST_KEEPS)
        store(row, cfg, &v);
    return 0;
}

/* Flink gives a rescale one interval more than the failures it waits for, so that the two do not
 * race [S-STM-9]. */
static int64_t default_max_delay(const struct pliant_config *cfg)
{
    int64_t n = cfg->max_checkpoint_failures + 1, interval = cfg->checkpoint_interval_ms;

    if (interval == PLIANT_UNSET)
        return 0;
    return interval > INT64_MAX / n ? INT64_MAX : n * interval;
}

/* The parameters that somebody set belong to a type that he named: without one all of them are
 * at their defaults [S-POL-6]. */
static void choose_restart(struct pliant_config *cfg)
{
    size_t first = offsetof(struct pliant_config, restart);

    cfg->restart.kind = cfg->checkpoint_interval_ms == PLIANT_UNSET
                            ? PLIANT_RESTART_NONE
                            : PLIANT_RESTART_EXPONENTIAL_DELAY;
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].offset > first && rows[i].offset < first + sizeof cfg->restart &&
            *rows[i].option.default_text)
            store_default(&rows[i], cfg);
}

/* A policy that does its own waiting is not to wait for Flink's timings on top of it. */
static void resolve_timing(struct pliant_config *cfg)
{
    if (cfg->rescale_policy == PLIANT_POLICY_PARALLELISM_CHANGE)
        return;
    if (cfg->cooldown_ms == PLIANT_UNSET)
        cfg->cooldown_ms = 0;
    if (cfg->executing_stabilization_ms == PLIANT_UNSET)
        cfg->executing_stabilization_ms = 0;
    if (cfg->max_trigger_delay_ms == PLIANT_UNSET)
        cfg->max_trigger_delay_ms = 0;
}

static const struct row *row_of(size_t offset)
{
    const struct row *row = rows;

    while (row->offset != offset)
        row++;
    return row;
}

static bool was_set(const struct pliant_config *cfg, size_t offset)
{
    size_t i = (size_t)(row_of(offset) - rows);

    return cfg->named[i / 64] >> i % 64 & 1;
}

/* What is the default for a worker group alone. It starts at once with what is there, and waits as
 * long as there is too little [W-ELA-1, W-ELA-2]. */
static void resolve_group(struct pliant_config *cfg)
{
    if (!cfg->worker_group)
        return;
    if (!was_set(cfg, offsetof(struct pliant_config, rescale_policy)))
        cfg->rescale_policy = PLIANT_POLICY_WORTH;
    if (cfg->group.last_call_ms == PLIANT_UNSET)
        store_default(row_of(offsetof(struct pliant_config, group.last_call_ms)), cfg);
    if (cfg->submission_stabilization_ms == PLIANT_UNSET)
        cfg->submission_stabilization_ms = cfg->group.last_call_ms;
    if (cfg->resource_wait_ms == PLIANT_UNSET)
        cfg->resource_wait_ms = cfg->group.resource_wait_timeout_ms == PLIANT_UNSET
                                    ? -1
                                    : cfg->group.resource_wait_timeout_ms;
}

/* An interval that is found out switches checkpointing on as well. */
static void resolve_pace(struct pliant_config *cfg)
{
    if (cfg->checkpoint_pace != PLIANT_CHECKPOINT_PACE_AUTO ||
        cfg->checkpoint_interval_ms != PLIANT_UNSET)
        return;
    cfg->checkpoint_interval_ms = cfg->checkpoint_max_interval_ms;
}

static void resolve_scheduler(struct pliant_config *cfg)
{
    if (cfg->all_blocking && cfg->scheduler == PLIANT_SCHEDULER_UNSET &&
        cfg->mode != PLIANT_MODE_REACTIVE)
        cfg->scheduler = PLIANT_SCHEDULER_ADAPTIVE_BATCH;
}

/* Defaults that are no constants. */
static void resolve_dependent(struct pliant_config *cfg)
{
    resolve_pace(cfg);
    if (cfg->rescale_stabilization_ms == PLIANT_UNSET)
        cfg->rescale_stabilization_ms = cfg->submission_stabilization_ms;
    if (cfg->max_trigger_delay_ms == PLIANT_UNSET)
        cfg->max_trigger_delay_ms = default_max_delay(cfg);
    if (cfg->restart.kind == PLIANT_RESTART_UNSET)
        choose_restart(cfg);
}

static int check_backoff(const struct pliant_restart_config *r, const char *initial_key,
                         struct pliant_error *err)
{
    if (r->kind != PLIANT_RESTART_EXPONENTIAL_DELAY ||
        r->exponential.initial_ms <= r->exponential.max_ms)
        return 0;
    return fail(err, -EINVAL, initial_key,
                "%s: %lld ms is longer than max-backoff; accepted: at most %lld ms", initial_key,
                (long long)r->exponential.initial_ms, (long long)r->exponential.max_ms);
}

/* What each option by itself allows and all together do not. */
static int check_together(const struct pliant_config *cfg, struct pliant_error *err)
{
    int r;

    if (cfg->mode == PLIANT_MODE_REACTIVE && cfg->scheduler != PLIANT_SCHEDULER_ADAPTIVE)
        return fail(err, -EINVAL, "jobmanager.scheduler",
                    "jobmanager.scheduler: the reactive scheduler-mode is one of the adaptive "
                    "scheduler; accepted with it: adaptive");
    if (cfg->checkpoint_min_interval_ms > cfg->checkpoint_max_interval_ms)
        return fail(err, -EINVAL, "pliant.checkpoint.min-interval",
                    "pliant.checkpoint.min-interval: %lld ms is longer than max-interval; "
                    "accepted: at most %lld ms",
                    (long long)cfg->checkpoint_min_interval_ms,
                    (long long)cfg->checkpoint_max_interval_ms);
    if (cfg->group.max_workers > 0 && cfg->group.min_workers > cfg->group.max_workers)
        return fail(err, -EINVAL, GROUP "min-workers",
                    GROUP "min-workers: %lld is more than max-workers; accepted: at most %lld",
                    (long long)cfg->group.min_workers, (long long)cfg->group.max_workers);
    if (cfg->batch.min > cfg->batch.max)
        return fail(err, -EINVAL, BATCH "min-parallelism",
                    BATCH "min-parallelism: %lld is more than max-parallelism; accepted: at most "
                          "%lld",
                    (long long)cfg->batch.min, (long long)cfg->batch.max);
    r = check_backoff(&cfg->restart, "restart-strategy.exponential-delay.initial-backoff", err);
    if (r == 0)
        r = check_backoff(&cfg->creation_retry,
                          RETRY "restart-strategy.exponential-delay.initial-backoff", err);
    return r;
}

/* A field may have been written without pliant_config_set(). */
static int check_bounds(const struct row *row, const struct pliant_config *cfg,
                        struct pliant_error *err)
{
    char text[PLIANT_FAILURE_LABELS_MAX + 1] = "";
    struct value v;

    load(row, cfg, &v);
    if (within(row, &v) || (unset(row, &v) && !*row->option.default_text))
        return 0;
    pliant_config_get(cfg, row->option.key, text, sizeof text);
    return fail_value(err, row, row->option.key, text);
}

int pliant_config_resolve(struct pliant_config *cfg, struct pliant_error *err)
{
    struct pliant_config c = *cfg;
    struct value v;
    int r;

    resolve_group(&c);
    resolve_scheduler(&c);
    resolve_timing(&c);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].offset == HOST_KEEPS)
            continue;
        load(&rows[i], &c, &v);
        if (unset(&rows[i], &v) && *rows[i].option.default_text)
            store_default(&rows[i], &c); /* only where nobody spoke [S-OPT-4] */
        r = check_bounds(&rows[i], &c, err);
        if (r < 0)
            return r;
    }
    resolve_dependent(&c);
    r = check_together(&c, err);
    if (r == 0)
        *cfg = c;
    return r;
}

/* The value as text, "" where nobody set it. */
static void write_value(const struct row *row, const struct value *v, char text[VALUE_TEXT_MAX])
{
    *text = '\0';
    if (unset(row, v))
        return;
    switch (row->option.type) {
    case PLIANT_OPTION_DURATION:
        duration_format(v->integer, text);
        break;
    case PLIANT_OPTION_INT:
        if (row->or_none && v->integer == NONE)
            snprintf(text, VALUE_TEXT_MAX, "none");
        else
            snprintf(text, VALUE_TEXT_MAX, "%lld", (long long)v->integer);
        break;
    case PLIANT_OPTION_SIZE:
        size_format(v->integer, text);
        break;
    case PLIANT_OPTION_DOUBLE:
        decimal_write(v->real, text);
        break;
    case PLIANT_OPTION_ENUM:
        for (const struct word *w = row->words; w->text && !*text; w++)
            if (w->value == v->word)
                snprintf(text, VALUE_TEXT_MAX, "%s", w->text);
        break;
    case PLIANT_OPTION_BOOL:
        snprintf(text, VALUE_TEXT_MAX, "%s", v->truth ? "true" : "false");
        break;
    case PLIANT_OPTION_STRING:
        snprintf(text, VALUE_TEXT_MAX, "%s", v->truth ? "(set)" : "");
        break;
    }
}

int pliant_config_get(const struct pliant_config *cfg, const char *key, char *buf, size_t size)
{
    bool old;
    const struct row *row = find_row(key, &old);
    char text[VALUE_TEXT_MAX];
    struct value v;

    if (!row || row->offset == HOST_KEEPS)
        return -ENOENT;
    load(row, cfg, &v);
    if (row->room)
        return snprintf(buf, size, "%s", v.text);
    write_value(row, &v, text);
    return snprintf(buf, size, "%s", text);
}

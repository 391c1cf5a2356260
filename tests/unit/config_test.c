/* config_test.c - the table of options and what a config is made of */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include <pliant/config.h>

#define ADAPTIVE "jobmanager.adaptive-scheduler."
#define COOLDOWN ADAPTIVE "executing.cooldown-after-rescaling"
#define WAIT ADAPTIVE "submission.resource-wait-timeout"
#define STABILIZATION ADAPTIVE "submission.resource-stabilization-timeout"
#define MAX_DELAY ADAPTIVE "rescale-trigger.max-delay"
#define MAX_FAILURES ADAPTIVE "rescale-trigger.max-checkpoint-failures"
#define RETRY ADAPTIVE "retry-execution-graph-creation.restart-strategy."
#define INTERVAL "execution.checkpointing.interval"
#define EXPONENTIAL "restart-strategy.exponential-delay."

#define N(rows) (sizeof(rows) / sizeof *(rows))

struct setting {
    const char *key, *value;
};

/* A config with these settings; the list ends with a NULL key. */
static struct pliant_config config_of(const struct setting *settings)
{
    struct pliant_config cfg;
    struct pliant_error err;

    pliant_config_init(&cfg);
    for (; settings->key; settings++)
        cr_assert(eq(int, pliant_config_set(&cfg, settings->key, settings->value, &err), 0), "%s",
                  err.text);
    return cfg;
}

static struct pliant_config resolved(const struct setting *settings)
{
    struct pliant_config cfg = config_of(settings);
    struct pliant_error err;

    cr_assert(eq(int, pliant_config_resolve(&cfg, &err), 0), "%s", err.text);
    return cfg;
}

#define RESOLVED(...) resolved((const struct setting[]){__VA_ARGS__, {NULL, NULL}})

static void expect_text(const struct pliant_config *cfg, const char *key, const char *want)
{
    char text[64] = "";

    cr_expect(eq(int, pliant_config_get(cfg, key, text, sizeof text), (int)strlen(want)), "%s",
              key);
    cr_expect(eq(str, text, (char *)want), "%s", key);
}

Test(config, holds_the_documented_defaults)
{
    static const struct setting rows[] = {
        {"jobmanager.scheduler", "adaptive"},
        {"scheduler-mode", ""},
        {WAIT, "5 min"},
        {STABILIZATION, "10 s"},
        {ADAPTIVE "rescale.resource-stabilization-timeout", "10 s"},
        {COOLDOWN, "30 s"},
        {ADAPTIVE "executing.resource-stabilization-timeout", "1 min"},
        {MAX_FAILURES, "2"},
        {MAX_DELAY, "0 s"},
        {ADAPTIVE "rescale-trigger.active-checkpoint.enabled", "false"},
        {ADAPTIVE "prefer-minimal-taskmanagers", "true"},
        {"web.adaptive-scheduler.rescale-history.size", "16"},
        {"web.exception-history-size", "16"},
        {"slot.idle.timeout", "50 s"},
        {"task.cancellation.timeout", "3 min"},
        {"execution.state-recovery.from-local", "false"},
        {INTERVAL, ""},
        {"execution.checkpointing.min-pause", "0 s"},
        {"execution.checkpointing.timeout", "10 min"},
        {"execution.checkpointing.tolerable-failed-checkpoints", "-1"},
        {"execution.checkpointing.num-retained", "1"},
        {"execution.checkpointing.savepoint-dir", ""},
        {"execution.checkpointing.checkpoints-after-tasks-finish", "true"},
        {"restart-strategy.type", "none"},
        {"restart-strategy.fixed-delay.attempts", "1"},
        {"restart-strategy.fixed-delay.delay", "1 s"},
        {"restart-strategy.failure-rate.max-failures-per-interval", "1"},
        {"restart-strategy.failure-rate.failure-rate-interval", "1 min"},
        {"restart-strategy.failure-rate.delay", "1 s"},
        {EXPONENTIAL "initial-backoff", "1 s"},
        {EXPONENTIAL "max-backoff", "1 min"},
        {EXPONENTIAL "backoff-multiplier", "1.5"},
        {EXPONENTIAL "jitter-factor", "0.1"},
        {EXPONENTIAL "reset-backoff-threshold", "1 h"},
        {EXPONENTIAL "attempts-before-reset-backoff", "2147483647"},
        {RETRY "type", "none"},
        {"pliant.seed", "0"},
        {"pliant.drain.lead", "5 s"},
        {"pliant.drain.max-restarts", "-1"},
        {"pliant.placement.spread", "none"},
        {"pliant.rescale.policy", "parallelism-change"},
        {"pliant.checkpoint.periodic", "true"},
    };
    struct pliant_config cfg = RESOLVED({"pliant.seed", "0"});

    for (size_t i = 0; i < N(rows); i++)
        expect_text(&cfg, rows[i].key, rows[i].value);
}

Test(config, each_row_is_whole_and_reads_its_own_defaults)
{
    const struct pliant_option *o;

    for (size_t i = 0; (o = pliant_option_at(i)) != NULL; i++) {
        const char *defaults[] = {o->default_text, o->reactive_default_text};
        struct pliant_config cfg;
        char text[PLIANT_FAILURE_LABELS_MAX + 1];

        cr_expect(o->key && o->accepted && o->help && o->default_text, "row %zu", i);
        cr_expect(strlen(o->key) < sizeof((struct pliant_error *)0)->field);
        cr_expect(pliant_option_find(o->key) == o);
        for (size_t k = 0; k < 2 && o->old_keys[k]; k++)
            cr_expect(pliant_option_find(o->old_keys[k]) == o, "%s", o->old_keys[k]);
        for (size_t k = 0; k < 2; k++) {
            if (!defaults[k] || !*defaults[k])
                continue;
            pliant_config_init(&cfg);
            cr_expect(eq(int, pliant_config_set(&cfg, o->key, defaults[k], NULL), 0), "%s", o->key);
            if (pliant_config_get(&cfg, o->key, text, sizeof text) >= 0)
                cr_expect(eq(str, text, (char *)defaults[k]), "%s: defaults have our spelling",
                          o->key);
        }
    }
    cr_expect(pliant_option_find("no.such") == NULL);
}

Test(config, reads_an_older_name_only_where_the_newer_is_absent) /* [S-OPT-3] */
{
    static const struct {
        const char *old, *key, *value, *other;
    } rows[] = {
        {ADAPTIVE "resource-wait-timeout", WAIT, "1 s", "2 s"},
        {ADAPTIVE "resource-stabilization-timeout", STABILIZATION, "1 s", "2 s"},
        {ADAPTIVE "scaling-interval.min", COOLDOWN, "1 s", "2 s"},
        {"restart-strategy", "restart-strategy.type", "fixed-delay", "failure-rate"},
        {"state.backend.local-recovery", "execution.state-recovery.from-local", "true", "false"},
        {"state.checkpoints.num-retained", "execution.checkpointing.num-retained", "3", "4"},
    };

    for (size_t i = 0; i < N(rows); i++) {
        struct setting alone[] = {{rows[i].old, rows[i].value}, {0}};
        struct setting newer_last[] = {
            {rows[i].old, rows[i].value}, {rows[i].key, rows[i].other}, {0}};
        struct setting newer_first[] = {
            {rows[i].key, rows[i].other}, {rows[i].old, rows[i].value}, {0}};
        struct pliant_config cfg = config_of(alone);

        expect_text(&cfg, rows[i].key, rows[i].value);
        cfg = config_of(newer_last);
        expect_text(&cfg, rows[i].key, rows[i].other);
        cfg = config_of(newer_first);
        expect_text(&cfg, rows[i].key, rows[i].other);
    }
}

Test(config, checks_an_older_name_even_where_it_is_not_read)
{
    struct pliant_config cfg;

    pliant_config_init(&cfg);
    cr_assert(eq(int, pliant_config_set(&cfg, COOLDOWN, "7 s", NULL), 0));
    cr_assert(
        eq(int, pliant_config_set(&cfg, ADAPTIVE "scaling-interval.min", "x", NULL), -EINVAL));
    expect_text(&cfg, COOLDOWN, "7 s");
}

Test(config, takes_the_reactive_defaults_only_where_nobody_spoke) /* [S-OPT-4] */
{
    struct pliant_config cfg = RESOLVED({"scheduler-mode", "REACTIVE"});

    expect_text(&cfg, "jobmanager.scheduler", "adaptive");
    expect_text(&cfg, WAIT, "-1 ms");
    expect_text(&cfg, STABILIZATION, "0 s");
    expect_text(&cfg, ADAPTIVE "rescale.resource-stabilization-timeout", "0 s");
    expect_text(&cfg, COOLDOWN, "30 s");

    /* the explicit value wins, also when it is the other mode's default and comes first */
    cfg = RESOLVED({WAIT, "5 min"}, {STABILIZATION, "10 s"}, {"scheduler-mode", "reactive"});
    expect_text(&cfg, WAIT, "5 min");
    expect_text(&cfg, STABILIZATION, "10 s");
    expect_text(&cfg, ADAPTIVE "rescale.resource-stabilization-timeout", "10 s");
}

Test(config, derives_the_trigger_delay_from_the_checkpoint_interval) /* [S-STM-9] */
{
    struct pliant_config cfg = RESOLVED({INTERVAL, "10 s"});

    expect_text(&cfg, MAX_DELAY, "30 s");
    cfg = RESOLVED({INTERVAL, "10 s"}, {MAX_FAILURES, "5"});
    expect_text(&cfg, MAX_DELAY, "1 min");
    cfg = RESOLVED({INTERVAL, "10 s"}, {MAX_DELAY, "0"});
    expect_text(&cfg, MAX_DELAY, "0 s");
    cfg = RESOLVED({INTERVAL, "9223372036854775807"});
    cr_expect(eq(i64, cfg.max_trigger_delay_ms, INT64_MAX), "saturates");
}

Test(config, picks_the_restart_strategy_by_checkpointing_where_none_is_named) /* [S-POL-6] */
{
    struct pliant_config cfg = RESOLVED({EXPONENTIAL "jitter-factor", "0"});

    expect_text(&cfg, "restart-strategy.type", "none");
    expect_text(&cfg, RETRY "type", "none"); /* [S-OPT-1] */

    /* without a type nobody's parameters are read */
    cfg = RESOLVED({INTERVAL, "10 s"}, {EXPONENTIAL "jitter-factor", "0"},
                   {EXPONENTIAL "initial-backoff", "7 s"});
    expect_text(&cfg, "restart-strategy.type", "exponential-delay");
    expect_text(&cfg, EXPONENTIAL "jitter-factor", "0.1");
    expect_text(&cfg, EXPONENTIAL "initial-backoff", "1 s");

    cfg = RESOLVED({INTERVAL, "10 s"}, {"restart-strategy.type", "exponentialdelay"},
                   {EXPONENTIAL "jitter-factor", "0"});
    expect_text(&cfg, EXPONENTIAL "jitter-factor", "0");
    expect_text(&cfg, EXPONENTIAL "max-backoff", "1 min");
}

Test(config, retries_the_creation_of_graphs_only_by_its_own_options) /* [S-OPT-1] [S-OPT-2] */
{
    struct pliant_config cfg =
        RESOLVED({"restart-strategy.type", "fixed-delay"}, {INTERVAL, "1 s"});

    cr_expect(eq(int, (int)cfg.creation_retry.kind, PLIANT_RESTART_NONE));
    cfg = RESOLVED({RETRY "type", "fixed-delay"}, {RETRY "fixed-delay.attempts", "4"});
    cr_expect(eq(int, (int)cfg.creation_retry.kind, PLIANT_RESTART_FIXED_DELAY));
    cr_expect(eq(i64, cfg.creation_retry.fixed.attempts, 4));
    cr_expect(eq(i64, cfg.restart.fixed.attempts, 1));
    cr_expect(eq(int, (int)cfg.restart.kind, PLIANT_RESTART_NONE));
}

Test(config, reads_words_in_any_case_and_all_their_spellings)
{
    static const struct {
        const char *key, *value, *want;
    } rows[] = {
        {"jobmanager.scheduler", "Adaptive", "adaptive"},
        {"jobmanager.scheduler", "Default", "default"},
        {"jobmanager.scheduler", "AdaptiveBatch", "adaptive-batch"},
        {"jobmanager.scheduler", "adaptive-batch", "adaptive-batch"},
        {"scheduler-mode", "REACTIVE", "reactive"},
        {"restart-strategy.type", "off", "none"},
        {"restart-strategy.type", "Disable", "none"},
        {"restart-strategy.type", "NONE", "none"},
        {"restart-strategy.type", "fixeddelay", "fixed-delay"},
        {"restart-strategy.type", "FailureRate", "failure-rate"},
        {"restart-strategy.type", "Exponential-Delay", "exponential-delay"},
        {"pliant.placement.spread", "Domains", "domains"},
        {"pliant.checkpoint.periodic", "FALSE", "false"},
        {EXPONENTIAL "backoff-multiplier", "8.0", "8"},
        {EXPONENTIAL "backoff-multiplier", "15e-1", "1.5"},
        {EXPONENTIAL "backoff-multiplier", "1.00000000000001", "1.00000000000001"},
        {EXPONENTIAL "backoff-multiplier", "1e9", "1000000000"},
        {EXPONENTIAL "jitter-factor", ".25", "0.25"},
        {"pliant.seed", "9223372036854775807", "9223372036854775807"},
        {"execution.checkpointing.savepoint-dir", "s3://b/p", "(set)"},
    };

    for (size_t i = 0; i < N(rows); i++) {
        struct setting one[] = {{rows[i].key, rows[i].value}, {0}};
        struct pliant_config cfg = config_of(one);

        expect_text(&cfg, rows[i].key, rows[i].want);
    }
}

Test(config, refuses_what_an_option_does_not_accept_and_says_what_it_does)
{
    static const struct {
        const char *key, *value, *text;
    } rows[] = {
        {COOLDOWN, "5 parsecs",
         COOLDOWN
         ": not \"5 parsecs\"; accepted: a duration >= 0 (units d, h, min, s, ms, us, ns)"},
        {COOLDOWN, "-1 ms", NULL},
        {MAX_DELAY, "-1 ms", NULL}, /* [S-STM-11] */
        {COOLDOWN, "99999999999999999999 d", NULL},
        {INTERVAL, "0", NULL},
        {MAX_FAILURES, "0", MAX_FAILURES ": not \"0\"; accepted: an integer from 1 to 2147483647"},
        {MAX_FAILURES, "1.0", NULL},
        {MAX_FAILURES, "2147483648", NULL},
        {MAX_FAILURES, "", NULL},
        {"pliant.seed", "-1", NULL},
        {"pliant.seed", "9223372036854775808", NULL},
        {"pliant.drain.max-restarts", "-2", NULL},
        {"scheduler-mode", "lazy", "scheduler-mode: not \"lazy\"; accepted: reactive"},
        {"restart-strategy.type", "sometimes", NULL}, /* [S-OPT-1] */
        {RETRY "type", "sometimes", NULL},
        {"pliant.checkpoint.periodic", "yes",
         "pliant.checkpoint.periodic: not \"yes\"; accepted: true | false"},
        {EXPONENTIAL "backoff-multiplier", "1", NULL},
        {EXPONENTIAL "backoff-multiplier", "nan", NULL},
        {EXPONENTIAL "backoff-multiplier", "1e999", NULL},
        {EXPONENTIAL "backoff-multiplier", "1,5", NULL},
        {EXPONENTIAL "jitter-factor", "1.1", NULL},
        {EXPONENTIAL "jitter-factor", "-0.1", NULL},
        {EXPONENTIAL "jitter-factor", "0.1.2", NULL},
        {EXPONENTIAL "jitter-factor", "1e", NULL},
        {EXPONENTIAL "jitter-factor", ".", NULL},
        {"execution.checkpointing.dir", "", NULL},
        {"heartbeat.timeout", "soon", NULL}, /* the host keeps it, and it is checked all the same */
    };
    struct pliant_config cfg, before;
    struct pliant_error err;

    pliant_config_init(&cfg);
    before = cfg;
    for (size_t i = 0; i < N(rows); i++) {
        err.text[0] = '\0';
        cr_expect(eq(int, pliant_config_set(&cfg, rows[i].key, rows[i].value, &err), -EINVAL),
                  "%s: %s", rows[i].key, rows[i].value);
        cr_expect(eq(str, err.field, (char *)rows[i].key));
        cr_expect(eq(u32, err.item, UINT32_MAX));
        cr_expect(strstr(err.text, "; accepted: ") != NULL, "%s", err.text);
        if (rows[i].text)
            cr_expect(eq(str, err.text, (char *)rows[i].text));
        cr_expect(memcmp(&cfg, &before, sizeof cfg) == 0, "unchanged");
        cr_expect(eq(int, pliant_config_set(&cfg, rows[i].key, rows[i].value, NULL), -EINVAL));
    }
}

Test(config, the_longest_error_is_not_cut)
{
    char value[100];
    struct pliant_config cfg;
    struct pliant_error err;
    const struct pliant_option *o;

    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    pliant_config_init(&cfg);
    for (size_t i = 0; (o = pliant_option_at(i)) != NULL; i++)
        if (pliant_config_set(&cfg, o->key, value, &err) < 0)
            cr_expect(strlen(err.text) < sizeof err.text - 1, "%s", err.text);
}

Test(config, names_the_nearest_option_for_an_unknown_one)
{
    static const struct setting rows[] = {
        {ADAPTIVE "executing.cooldown-after-rescalling", COOLDOWN},
        {ADAPTIVE "cooldown-after-rescaling", COOLDOWN},
        {"Restart-Strategy.Typ", "restart-strategy.type"},
        {"pliant.sead", "pliant.seed"},
        {"scheduler-moed", "scheduler-mode"},
    };
    struct pliant_config cfg;
    struct pliant_error err;

    pliant_config_init(&cfg);
    for (size_t i = 0; i < N(rows); i++) {
        cr_expect(eq(int, pliant_config_set(&cfg, rows[i].key, "1", &err), -ENOENT));
        cr_expect(strstr(err.text, rows[i].value) != NULL, "%s", err.text);
    }
    cr_expect(pliant_option_nearest("taskmanager.memory.process.size") == NULL);
    cr_expect(
        eq(int, pliant_config_set(&cfg, "taskmanager.memory.process.size", "1", &err), -ENOENT));
    cr_expect(eq(int, pliant_config_get(&cfg, "no.such", NULL, 0), -ENOENT));
    cr_expect(eq(int, pliant_config_get(&cfg, "heartbeat.timeout", NULL, 0), -ENOENT));
}

Test(config, refuses_what_only_several_options_break_and_changes_nothing)
{
    static const struct {
        struct setting settings[4];
        const char *field;
    } rows[] = {
        {{{"restart-strategy.type", "exponential-delay"}, {EXPONENTIAL "initial-backoff", "2 min"}},
         EXPONENTIAL "initial-backoff"},
        {{{RETRY "type", "exponential-delay"},
          {RETRY "exponential-delay.initial-backoff", "3 s"},
          {RETRY "exponential-delay.max-backoff", "2 s"}},
         RETRY "exponential-delay.initial-backoff"},
        {{{"scheduler-mode", "reactive"}, {"jobmanager.scheduler", "default"}},
         "jobmanager.scheduler"},
    };

    for (size_t i = 0; i < N(rows); i++) {
        struct pliant_config cfg = config_of(rows[i].settings), before = cfg;
        struct pliant_error err;

        cr_expect(eq(int, pliant_config_resolve(&cfg, &err), -EINVAL));
        cr_expect(eq(str, err.field, (char *)rows[i].field));
        cr_expect(strstr(err.text, "accepted") != NULL, "%s", err.text);
        cr_expect(memcmp(&cfg, &before, sizeof cfg) == 0);
    }
}

Test(config, looks_only_at_the_parameters_of_the_strategy_that_was_named)
{
    RESOLVED({"restart-strategy.type", "fixed-delay"}, {EXPONENTIAL "initial-backoff", "2 min"});
}

Test(config, refuses_fields_that_were_written_past_it_out_of_bounds)
{
    struct pliant_config cfg;
    struct pliant_error err;

    pliant_config_init(&cfg);
    cfg.cooldown_ms = -5;
    cr_expect(eq(int, pliant_config_resolve(&cfg, &err), -EINVAL));
    cr_expect(eq(str, err.field, COOLDOWN));
    pliant_config_init(&cfg);
    cfg.restart.exponential.jitter = NAN;
    cr_expect(eq(int, pliant_config_resolve(&cfg, &err), -EINVAL));
    pliant_config_init(&cfg);
    cfg.restart.exponential.multiplier = -INFINITY;
    cr_expect(eq(int, pliant_config_resolve(&cfg, &err), -EINVAL));
    pliant_config_init(&cfg);
    cfg.spread = (enum pliant_spread)77;
    cr_expect(eq(int, pliant_config_resolve(&cfg, &err), -EINVAL));
    cr_expect(eq(str, err.field, "pliant.placement.spread"));
    cr_expect(eq(int, pliant_config_resolve(&cfg, NULL), -EINVAL));
}

Test(config, resolves_once_and_for_all_and_is_made_again_from_its_texts)
{
    static const struct setting rows[][5] = {
        {{0}},
        {{"scheduler-mode", "reactive"}, {INTERVAL, "10 s"}},
        {{"restart-strategy.type", "failure-rate"},
         {"execution.checkpointing.savepoint-dir", "/x"}},
        {{INTERVAL, "1"}, {EXPONENTIAL "jitter-factor", "0.3"}, {RETRY "type", "fixed-delay"}},
    };

    for (size_t i = 0; i < N(rows); i++) {
        struct pliant_config cfg = resolved(rows[i]), again = cfg, copy;
        const struct pliant_option *o;
        char text[PLIANT_FAILURE_LABELS_MAX + 1];

        cr_assert(eq(int, pliant_config_resolve(&again, NULL), 0));
        cr_expect(memcmp(&cfg, &again, sizeof cfg) == 0);
        pliant_config_init(&copy);
        for (size_t k = 0; (o = pliant_option_at(k)) != NULL; k++)
            if (pliant_config_get(&cfg, o->key, text, sizeof text) > 0)
                cr_assert(eq(int, pliant_config_set(&copy, o->key, text, NULL), 0), "%s", o->key);
        cr_assert(eq(int, pliant_config_resolve(&copy, NULL), 0));
        memcpy(copy.named, cfg.named, sizeof copy.named);
        cr_expect(memcmp(&copy, &cfg, sizeof cfg) == 0, "row %zu", i);
    }
}

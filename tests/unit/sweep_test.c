/* sweep_test.c - the search for options */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "sim/sweep.h"

static const struct compare_cost cost = {10000, 60000, 1000};

/* One node more every `gap_ms`, `n` times; the tape's arrays are the caller's. */
static void growth(struct tape *tape, struct trace_event *events, struct bound_step *steps,
                   char (*names)[24], size_t n, int64_t gap_ms)
{
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        events[i] = (struct trace_event){.t_ms = (int64_t)i * gap_ms,
                                         .kind = TRACE_NODE_UP,
                                         .node = names[i],
                                         .incarnation = i + 1,
                                         .slots = 1};
        steps[i] = (struct bound_step){events[i].t_ms, i + 1};
    }
    tape->name = (char *)"growth";
    tape->events.v = events;
    tape->events.n = n;
    tape->steps.v = steps;
    tape->steps.n = n;
    tape->end_ms = (int64_t)n * gap_ms + 600000;
}

static int find_with(const char *config, size_t nodes, const char *define, struct sweep *ret,
                     struct spec_error *err)
{
    static char text[256];
    struct trace_event events[12];
    struct bound_step steps[12];
    char names[12][24];
    struct tape tape = {0};
    struct doc_file f;
    struct job_spec spec;
    struct compare_job job;
    int r;

    err->text[0] = '\0';
    snprintf(text, sizeof text, "{vertices: [{id: v, parallelism: 12}], config: {%s}}", config);
    cr_assert_eq(doc_parse("job", text, strlen(text), 1, &f, err), 0, "%s", err->text);
    cr_assert_eq(job_spec_decode(&f, f.root, &spec, err), 0, "%s", err->text);
    cr_assert_eq(compare_job_init(&job, &spec, false, 0, err), 0, "%s", err->text);
    growth(&tape, events, steps, names, nodes, 40000);
    spec.doc = f;
    r = sweep(&(struct compare){.job = &job,
                                .tapes = &tape,
                                .n_tapes = 1,
                                .costs = &cost,
                                .n_costs = 1,
                                .options_of = &spec,
                                .defines = &define,
                                .n_defines = define != NULL},
              ret, err);
    compare_job_free(&job);
    job_spec_free(&spec);
    return r;
}

static struct sweep find(const char *config, size_t nodes)
{
    struct spec_error err;
    struct sweep found;

    cr_assert_eq(find_with(config, nodes, NULL, &found, &err), 0, "%s", err.text);
    return found;
}

Test(sweep, finds_what_is_better_than_any_start)
{
    struct sweep found = find("", 12);
    struct sweep again = find("", 12);

    cr_assert_gt(found.n_starts, 1u);
    for (size_t i = 0; i < found.n_starts; i++)
        cr_expect_geq(found.best.share, found.starts[i].share, "start %zu", i);
    cr_expect_gt(found.best.share, found.starts[0].share + 0.01);
    cr_expect_float_eq(found.best.share, again.best.share, 0, "the same each time");
    cr_expect_eq(found.tried, again.tried);
}

Test(sweep, tells_what_the_job_has_by_itself)
{
    struct sweep found = find("jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling: "
                              "1 h",
                              12);

    cr_expect_eq(found.own.sum.restarts, 0u);
    cr_expect_gt(found.starts[0].sum.restarts, 0u);
}

Test(sweep, names_what_the_job_says_that_it_searched)
{
    struct sweep found = find("execution.checkpointing.interval: 3 min, "
                              "jobmanager.adaptive-scheduler.scaling-interval.min: 1 h, "
                              "pliant.checkpoint.max-interval: 2 s",
                              2);

    cr_assert_eq(found.set.n_keys, 2u);
    cr_expect_str_eq(found.set.keys[0],
                     "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling");
    cr_expect_str_eq(found.set.keys[1], "pliant.checkpoint.max-interval");
    cr_expect_eq(found.set.interval_ms, 180000);
    found = find("", 2);
    cr_expect_eq(found.set.n_keys, 0u);
    cr_expect_eq(found.set.interval_ms, PLIANT_UNSET);
}

Test(sweep, leaves_alone_what_the_command_line_fixes)
{
    static const struct {
        const char *define;
        int fixed, fixed_too;
    } rows[] = {
        {"jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling=17s", SWEEP_COOLDOWN,
         SWEEP_COOLDOWN},
        {"execution.checkpointing.interval=90s", SWEEP_INTERVAL, SWEEP_INTERVAL},
        /* limits that cross are none */
        {"pliant.checkpoint.max-interval=5s", SWEEP_MAX_INTERVAL, SWEEP_MIN_INTERVAL},
        {"pliant.checkpoint.min-interval=50min", SWEEP_MIN_INTERVAL, SWEEP_MAX_INTERVAL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct spec_error err;
        struct sweep found;

        cr_assert_eq(find_with("", 12, rows[i].define, &found, &err), 0, "%s", err.text);
        cr_expect_eq(found.best.values[rows[i].fixed], PLIANT_UNSET, "%s", rows[i].define);
        cr_expect_eq(found.best.values[rows[i].fixed_too], PLIANT_UNSET, "%s", rows[i].define);
    }
}

Test(sweep, refuses_a_policy_that_is_fixed)
{
    static const char *const defines[] = {"pliant.rescale.policy=never",
                                          "pliant.checkpoint.interval=auto",
                                          "scheduler-mode=reactive"};

    for (size_t i = 0; i < sizeof defines / sizeof *defines; i++) {
        struct spec_error err;
        struct sweep found;

        cr_expect_eq(find_with("", 2, defines[i], &found, &err), -EINVAL, "%s", defines[i]);
        cr_expect_not_null(strstr(err.text, "sweep searches it"), "%s", err.text);
    }
}

Test(sweep, leaves_the_default_where_nothing_is_gained)
{
    struct sweep found = find("", 1);

    for (int i = 0; i < SWEEP_OPTIONS; i++)
        if (i != SWEEP_INTERVAL)
            cr_expect_eq(found.best.values[i], PLIANT_UNSET, "option %d", i);
}

Test(sweep, writes_the_settings_of_a_point)
{
    struct sweep_point point = {
        .policy = &compare_policies[0],
        .values = {90000, PLIANT_UNSET, 0, PLIANT_UNSET, 1, 2000, PLIANT_UNSET}};
    static const struct compare_setting expected[] = {
        {"pliant.rescale.policy", "never"},
        {"execution.checkpointing.interval", "90 s"},
        {"jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout", "0 s"},
        {"jobmanager.adaptive-scheduler.rescale-trigger.active-checkpoint.enabled", "true"},
        {"pliant.checkpoint.min-interval", "2 s"},
    };
    struct sweep_texts texts;
    struct compare_policy policy = sweep_policy(&point, &texts);

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        cr_expect_str_eq(policy.settings[i].key, expected[i].key);
        cr_expect_str_eq(policy.settings[i].value, expected[i].value);
    }
    cr_expect_null(policy.settings[5].key);
}

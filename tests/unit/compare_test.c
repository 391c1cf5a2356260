/* compare_test.c - tapes, the job as it is compared, and policies side by side */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/compare_svg.h"

#define HEADER "{\"pliant_trace\":1,\"name\":\"test\"}\n"
#define UP(t, node, slots)                                                                         \
    "{\"t\":" #t ",\"ev\":\"node_up\",\"node\":\"" node "\",\"slots\":" #slots "}\n"
#define DOWN(t, node) "{\"t\":" #t ",\"ev\":\"node_down\",\"node\":\"" node "\"}\n"
#define DRAIN(t, node, ms)                                                                         \
    "{\"t\":" #t ",\"ev\":\"node_drain\",\"node\":\"" node "\",\"deadline_ms\":" #ms "}\n"
#define END(t) "{\"t\":" #t ",\"ev\":\"checkpoint\",\"id\":1}\n"

static struct tape tape_of(const char *text)
{
    struct trace *trace = NULL;
    struct spec_error err = {.text = ""};
    struct tape tape;

    cr_assert_eq(trace_of_text("folder/my.trace.jsonl", text, strlen(text),
                               &(struct trace_rules){.job = NULL}, &trace, &err),
                 0, "%s", err.text);
    cr_assert_eq(tape_record(trace, "folder/my.trace.jsonl", &tape, &err), 0, "%s", err.text);
    trace_close(&trace);
    return tape;
}

static struct job_spec job_of(const char *text)
{
    struct doc_file f;
    struct job_spec spec;
    struct spec_error err = {.text = ""};

    cr_assert_eq(doc_parse("job", text, strlen(text), 1, &f, &err), 0, "%s", err.text);
    cr_assert_eq(job_spec_decode(&f, f.root, &spec, &err), 0, "%s", err.text);
    spec.doc = f; /* it owns it from here on, as one that was read from a file */
    return spec;
}

/* ---- tapes ---------------------------------------------------------------------------------- */

Test(tape, knows_the_slots_over_time_and_keeps_what_is_about_the_cluster)
{
    struct tape tape = tape_of(HEADER UP(0, "a", 4) UP(0, "b", 2) DRAIN(10, "b", 90) DOWN(20, "a")
                                   UP(20, "c", 4) END(30) DOWN(100, "b") UP(150, "b", 1) END(200));
    static const struct bound_step steps[] = {{0, 6}, {100, 4}, {150, 5}};

    cr_assert_eq(tape.steps.n, 3u);
    for (size_t i = 0; i < 3; i++) {
        cr_expect_eq(tape.steps.v[i].at_ms, steps[i].at_ms, "step %zu", i);
        cr_expect_eq(tape.steps.v[i].offered, steps[i].offered, "step %zu", i);
    }
    cr_expect_eq(tape.events.n, 7u);
    cr_expect_eq(tape.left_out, 2u);
    cr_expect_eq(tape.end_ms, 200);
    cr_expect_str_eq(tape.name, "test");
    cr_expect_str_eq(tape.events.v[6].node, "b");
    tape_free(&tape);
}

Test(tape, begins_at_0_and_has_the_name_of_its_file_where_it_has_none)
{
    struct tape tape = tape_of("{\"pliant_trace\":1}\n" UP(50, "a", 4));

    cr_expect_str_eq(tape.name, "my.trace");
    cr_assert_eq(tape.steps.n, 2u);
    cr_expect_eq(tape.steps.v[0].offered, 0u);
    cr_expect_eq(tape.steps.v[1].at_ms, 50);
    tape_free(&tape);
}

/* ---- the job -------------------------------------------------------------------------------- */

static const char two_groups[] =
    "{vertices: [{id: a, parallelism: 8, min_parallelism: 2},"
    " {id: b, parallelism: 4, max_parallelism: 16, slot_sharing_group: g}]}";

Test(compare, cuts_the_job_to_so_many_slots)
{
    static const struct {
        uint32_t max_slots;
        bool reactive;
        uint32_t a, b, n_speeds;
    } rows[] = {{0, false, 8, 4, 13},
                {100, false, 8, 4, 13},
                {6, false, 4, 2, 7},
                {3, false, 2, 1, 4},
                {0, true, 128, 16, 145}};
    struct job_spec spec = job_of(two_groups);
    struct compare_job job;
    struct spec_error err;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(compare_job_init(&job, &spec, rows[i].reactive, rows[i].max_slots, &err), 0);
        cr_expect_eq(pliant_job_vertex_parallelism(job.spec.job, (pliant_vertex_id){1}), rows[i].a,
                     "row %zu", i);
        cr_expect_eq(pliant_job_vertex_parallelism(job.spec.job, (pliant_vertex_id){2}), rows[i].b,
                     "row %zu", i);
        cr_expect_eq(job.n_speeds, rows[i].n_speeds, "row %zu", i);
        compare_job_free(&job);
    }
    cr_expect_eq(compare_job_init(&job, &spec, false, 2, &err), -EINVAL);
    cr_expect_str_eq(err.text, "the job needs at least 3 slots");
    job_spec_free(&spec);
}

Test(compare, works_as_fast_as_the_smallest_vertex)
{
    static const double speeds[] = {0, 0, 0, 1, 1, 2, 2};
    struct job_spec spec = job_of(two_groups);
    struct compare_job job;
    struct spec_error err;

    cr_assert_eq(compare_job_init(&job, &spec, false, 6, &err), 0);
    for (size_t i = 0; i < 7; i++)
        cr_expect_float_eq(job.speed[i], speeds[i], 0, "%zu slots", i);
    compare_job_free(&job);
    job_spec_free(&spec);
}

/* ---- runs ----------------------------------------------------------------------------------- */

static const char simple_job[] = "{vertices: [{id: v, parallelism: 8}],"
                                 " config: {pliant.sim.restore-latency: 7 s,"
                                 " jobmanager.adaptive-scheduler.executing: {"
                                 "cooldown-after-rescaling: 1 h}}}";
static const struct compare_cost cost = {1000, 2000, 100};

/* The cell of one trace. */
struct cell {
    struct job_spec spec;
    struct compare_job job;
    struct tape tape;
    struct compare_policy policies[16]; /* those that this build has */
    struct compare c;
};

static void cell_init_job(struct cell *x, const char *job, const char *trace)
{
    struct spec_error err;

    *x = (struct cell){.spec = job_of(job), .tape = tape_of(trace)};
    cr_assert_eq(compare_job_init(&x->job, &x->spec, false, 0, &err), 0);
    x->c = (struct compare){.job = &x->job,
                            .tapes = &x->tape,
                            .n_tapes = 1,
                            .costs = &cost,
                            .n_costs = 1,
                            .policies = x->policies,
                            .options_of = &x->spec};
    for (size_t i = 0; i < compare_n_policies; i++)
        if (compare_policy_check(&compare_policies[i], &err) == 0)
            x->policies[x->c.n_policies++] = compare_policies[i];
}

static void cell_init(struct cell *x, const char *trace)
{
    cell_init_job(x, simple_job, trace);
}

static void cell_free(struct cell *x)
{
    compare_free(&x->c);
    compare_job_free(&x->job);
    tape_free(&x->tape);
    job_spec_free(&x->spec);
}

static size_t policy_named(const struct cell *x, const char *name)
{
    size_t i = 0;

    while (strcmp(x->policies[i].name, name) != 0)
        i++;
    return i;
}

static struct compare_result run(struct cell *x, const char *policy)
{
    struct spec_error err;

    cr_assert_eq(compare_run(&x->c, &err), 0, "%s", err.text);
    return x->c.results[policy_named(x, policy)];
}

/* Work and loss in slots times ms. A checkpoint comes every 2 s from the start and takes 100 ms, a
 * restart takes 1 s; so the first run is at work from 1000 on, and its checkpoints begin at 2000,
 * 4000, ... */
static const struct scene {
    const char *what, *policy, *trace;
    double bound, work, lost;
    uint64_t restarts, forced;
} scenes[] = {
    {"nothing happens", "immediate", HEADER UP(0, "a", 4) END(10000), 4 * 9000, 4 * 8600, 0, 0, 0},
    {"a loss without notice", "never",
     HEADER UP(0, "a", 4) UP(0, "b", 1) DOWN(5500, "b") END(10000), 5 * 4500 + 4 * 3500,
     5 * 2900 + 4 * 3300, 5 * 1400, 1, 1},
    {"a node that is not used", "never",
     HEADER UP(0, "a", 8) UP(0, "b", 1) DOWN(5500, "b") END(9000), 8 * 8000, 8 * 7600, 0, 0, 0},
    {"what arrives is not used", "never", HEADER UP(0, "a", 2) UP(5500, "b", 6) END(20000),
     8 * 13500 + 2 * 4500, 2 * 18100, 0, 0, 0},
    {"a planned move, with a checkpoint", "immediate",
     HEADER UP(0, "a", 2) UP(5500, "b", 6) END(20000), 8 * 13500 + 2 * 4500,
     2 * 4300 + 8 * (20000 - 6600 - 700), 0, 1, 0},
    {"the same without", "torchrun", HEADER UP(0, "a", 2) UP(5500, "b", 6) END(20000),
     8 * 13500 + 2 * 4500, 2 * 2900 + 8 * (20000 - 6500 - 700), 2 * 1400, 1, 0},
    /* the move begins 5 s before the end; the last checkpoint is no older than that */
    {"a drain", "never",
     HEADER UP(0, "a", 4) UP(0, "b", 4) DRAIN(5500, "b", 10000) DOWN(15500, "b") END(16000),
     8 * 14500, 8 * 8100 + 4 * 4300, 8 * 900, 1, 1},
};

Test(compare, comes_to_what_the_model_says)
{
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const struct scene *s = &scenes[i];
        struct cell x;
        struct compare_result got;

        cell_init(&x, s->trace);
        got = run(&x, s->policy);
        cr_expect_float_eq(x.c.bounds[0], s->bound, 0, "%s: bound %.0f", s->what, x.c.bounds[0]);
        cr_expect_float_eq(got.work, s->work, 0, "%s: work %.0f", s->what, got.work);
        cr_expect_float_eq(got.lost, s->lost, 0, "%s: lost %.0f", s->what, got.lost);
        cr_expect_eq(got.restarts, s->restarts, "%s: restarts %" PRIu64, s->what, got.restarts);
        cr_expect_eq(got.forced, s->forced, "%s: forced %" PRIu64, s->what, got.forced);
        cell_free(&x);
    }
}

static const struct compare_cost dear = {30000, 60000, 3000}, free_restart = {0, 60000, 0};

Test(compare, worth_never_restarts_where_nothing_changes)
{
    struct cell x;
    struct compare_result got;

    cell_init(&x, HEADER UP(0, "a", 4) UP(0, "b", 4) END(36000000));
    x.c.costs = &dear;
    got = run(&x, "worth");
    cr_expect_eq(got.restarts, 0u);
    cr_expect_float_eq(got.lost, 0, 0);
    cell_free(&x);
}

/* One node more each minute, for an hour; each up to `late_ms` after its minute. */
static void growth(struct cell *x, const struct compare_cost *at, int late_ms)
{
    static const char job[] = "{vertices: [{id: v, parallelism: 64}]}";
    char trace[8192] = HEADER;
    struct spec_error err;

    for (int i = 0; i < 60; i++) {
        size_t n = strlen(trace);

        snprintf(trace + n, sizeof trace - n,
                 "{\"t\":%d,\"ev\":\"node_up\",\"node\":\"n%d\",\"slots\":1}\n",
                 i * 60000 + i * 7919 % (late_ms + 1), i);
    }
    strcat(trace, END(4800000));
    cell_init(x, trace);
    compare_job_free(&x->job);
    job_spec_free(&x->spec);
    x->spec = job_of(job);
    cr_assert_eq(compare_job_init(&x->job, &x->spec, false, 0, &err), 0);
    x->c.costs = at;
}

Test(compare, worth_restarts_seldom_under_steady_growth_and_gets_as_much_done)
{
    static const int late_ms[] = {0, 10000, 20000, 40000, 59000};

    for (size_t i = 0; i < sizeof late_ms / sizeof *late_ms; i++) {
        struct cell x;
        struct compare_result worth, immediate;

        growth(&x, &dear, late_ms[i]);
        worth = run(&x, "worth");
        immediate = x.c.results[policy_named(&x, "immediate")];
        cr_expect_leq(3 * worth.restarts, immediate.restarts,
                      "up to %d ms late: %" PRIu64 " and %" PRIu64, late_ms[i], worth.restarts,
                      immediate.restarts);
        cr_expect_geq(worth.work, immediate.work, "%.0f and %.0f", worth.work, immediate.work);
        cell_free(&x);
    }
}

Test(compare, worth_follows_every_change_where_restarts_are_free)
{
    struct cell x;

    growth(&x, &free_restart, 0);
    cr_expect_eq(run(&x, "worth").restarts, 59u);
    cell_free(&x);
}

Test(compare, leaves_the_jobs_timing_aside_but_not_the_command_lines)
{
    static const char trace[] = HEADER UP(0, "a", 2) UP(40000, "b", 6) END(400000);
    const char *defines[] = {
        "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling=1 h"};
    struct cell x;

    cell_init(&x, trace);
    cr_expect_eq(run(&x, "flink").restarts, 1u, "a cooldown of 30 s, not of an hour");
    cr_expect_eq(x.c.results[policy_named(&x, "own")].restarts, 0u, "but for its own row");
    compare_free(&x.c);
    x.c.defines = defines;
    x.c.n_defines = 1;
    cr_expect_eq(run(&x, "flink").restarts, 0u);
    cell_free(&x);
}

Test(compare, takes_checkpoints_as_the_policies_do_whatever_the_job_says)
{
    static const char trace[] = HEADER UP(0, "a", 4) UP(0, "b", 1) DOWN(5500, "b") END(10000);
    static const char *const says[] = {
        "",
        "pliant.checkpoint.interval: auto, pliant.rescale.policy: worth",
        "pliant.checkpoint.max-interval: 10 ms, pliant.checkpoint.min-interval: 1 ms",
        "pliant.checkpoint.periodic: false",
    };
    struct compare_result plain[16];

    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        struct cell x;
        char job[256];

        snprintf(job, sizeof job, "{vertices: [{id: v, parallelism: 8}], config: {%s}}", says[i]);
        cell_init_job(&x, job, trace);
        run(&x, "flink");
        for (size_t p = 0; p < x.c.n_policies; p++) {
            if (i == 0)
                plain[p] = x.c.results[p];
            if (x.policies[p].own)
                continue;
            cr_expect_float_eq(x.c.results[p].work, plain[p].work, 0, "%s, {%s}",
                               x.policies[p].name, says[i]);
        }
        cell_free(&x);
    }
}

Test(compare, never_beats_the_bound)
{
    struct trace_rules rules = {.job = NULL};
    struct spec_error err;
    struct cell x;

    cell_init(&x, HEADER);
    tape_free(&x.tape);
    cr_assert_eq(
        tape_read(PLIANT_TEST_DATA "/traces/hpa-azure-llm-code.jsonl", &rules, &x.tape, &err), 0,
        "%s", err.text);
    x.c.costs = compare_costs;
    x.c.n_costs = compare_n_costs;
    cr_assert_eq(compare_run(&x.c, &err), 0);
    for (size_t i = 0; i < x.c.n_costs * x.c.n_policies; i++)
        cr_expect_leq(x.c.results[i].work, x.c.bounds[i / x.c.n_policies], "result %zu", i);
    cell_free(&x);
}

Test(compare, comes_out_the_same_on_any_number_of_threads)
{
    struct spec_error err;
    struct compare_result *first;
    struct cell x;
    size_t size;

    cell_init(&x, HEADER UP(0, "a", 2) UP(9000, "b", 1) DOWN(30000, "a") UP(30000, "c", 4)
                      DRAIN(60000, "c", 5000) DOWN(65000, "c") END(100000));
    x.c.costs = compare_costs;
    x.c.n_costs = compare_n_costs;
    x.c.threads = 1;
    cr_assert_eq(compare_run(&x.c, &err), 0);
    first = x.c.results;
    x.c.results = NULL;
    compare_free(&x.c);
    x.c.threads = 7;
    cr_assert_eq(compare_run(&x.c, &err), 0);
    size = x.c.n_costs * x.c.n_policies * sizeof *first;
    cr_expect_arr_eq(first, x.c.results, size);
    free(first);
    cell_free(&x);
}

Test(compare, refuses_options_that_are_none_before_anything_runs)
{
    const char *defines[] = {"pliant.seed=x"};
    struct spec_error err;
    struct cell x;

    cell_init(&x, HEADER UP(0, "a", 2));
    x.c.defines = defines;
    x.c.n_defines = 1;
    cr_expect_eq(compare_run(&x.c, &err), -EINVAL);
    cr_expect_not_null(strstr(err.text, "pliant.seed"));
    cell_free(&x);
}

/* ---- pieces of work ------------------------------------------------------------------------- */

static int fail_at_three(void *ctx, size_t i)
{
    ((int *)ctx)[i]++;
    return i == 3 ? -EDOM : i == 60 ? -ERANGE : 0;
}

Test(parallel, does_each_piece_once_and_tells_the_first_failure)
{
    for (unsigned threads = 0; threads < 6; threads++) {
        int seen[100] = {0};

        cr_expect_eq(parallel_run(&(struct parallel){
                         .n = 3, .piece = fail_at_three, .ctx = seen, .threads = threads}),
                     0);
        for (int i = 0; i < 3; i++)
            cr_expect_eq(seen[i], 1);
        cr_expect_eq(parallel_run(&(struct parallel){
                         .n = 100, .piece = fail_at_three, .ctx = seen, .threads = threads}),
                     -EDOM);
    }
}

/* ---- what the tables say -------------------------------------------------------------------- */

/* Two traces at two costs, made up. */
static struct compare made_up(const struct tape *tapes, const struct compare_policy *policies,
                              double *bounds, struct compare_result *results)
{
    return (struct compare){.tapes = tapes,
                            .n_tapes = 2,
                            .costs = compare_costs,
                            .n_costs = 2,
                            .policies = policies,
                            .n_policies = 3,
                            .bounds = bounds,
                            .results = results};
}

Test(compare_report, judges_a_policy_against_the_best_fixed_one)
{
    static const struct tape tapes[2] = {{.name = (char *)"x"}, {.name = (char *)"y,z"}};
    static const struct compare_policy policies[] = {
        {.name = "slow"}, {.name = "fast"}, {.name = "clever", .learns = true}};
    double bounds[] = {1000, 1000, 0, 1000};
    struct compare_result results[] = {
        {.work = 500}, {.work = 700}, {.work = 800}, /* x at the first cost */
        {.work = 900}, {.work = 800}, {.work = 860}, /* x at the second */
        {.work = 0},   {.work = 0},   {.work = 0},   /* there was nothing to be had */
        {.work = 400}, {.work = 500}, {.work = 600},
    };
    struct compare c = made_up(tapes, policies, bounds, results);
    struct compare_verdict v;

    cr_expect_float_eq(compare_mean(&c, 1, COMPARE_ALL, COMPARE_ALL), 0.75, 1e-12);
    cr_expect_float_eq(compare_mean(&c, 1, 0, COMPARE_ALL), 0.75, 1e-12);
    cr_expect_float_eq(compare_mean(&c, 1, COMPARE_ALL, 1), 0.65, 1e-12);
    cr_assert(compare_judge(&c, &v));
    cr_expect_eq(v.policy, 2u);
    cr_expect_eq(v.best, 1u);
    cr_expect_float_eq(v.regret, (1 - 0.815) / 0.25, 1e-12);
    cr_expect_float_eq(v.worst, -0.04, 1e-12);
    cr_expect_eq(v.cell, 1u);
    cr_expect_eq(v.by, 0u);
    c.n_policies = 2;
    cr_expect_not(compare_judge(&c, &v));
}

static char *shown(const struct compare *c, int (*show)(const struct compare *c, FILE *out))
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    cr_assert_eq(show(c, out), 0);
    fclose(out);
    return text;
}

Test(compare_report, writes_a_line_a_cell_for_programs)
{
    static const struct tape tape = {.name = (char *)"y,\"z"};
    static const struct compare_policy policy = {.name = "flink"};
    struct compare_result result = {.work = 1500, .lost = 250, .restarts = 3, .forced = 2};
    double bound = 2000;
    struct compare c = {.tapes = &tape,
                        .n_tapes = 1,
                        .costs = compare_costs,
                        .n_costs = 1,
                        .policies = &policy,
                        .n_policies = 1,
                        .bounds = &bound,
                        .results = &result};
    char *json = shown(&c, compare_json), *csv = shown(&c, compare_csv);

    cr_expect_str_eq(json, "{\"trace\":\"y,\\\"z\",\"restart_ms\":5000,"
                           "\"checkpoint_interval_ms\":60000,\"checkpoint_cost_ms\":500,"
                           "\"bound\":2,\"policies\":{\"flink\":{\"work\":1.5,\"ratio\":0.75,"
                           "\"restarts\":3,\"forced\":2,\"lost\":0.25}}}\n");
    cr_expect_str_eq(csv, "trace,restart_ms,checkpoint_interval_ms,checkpoint_cost_ms,bound,"
                          "policy,work,ratio,restarts,forced,lost\n"
                          "\"y,\"\"z\",5000,60000,500,2.000,flink,1.500,0.750000,3,2,0.250\n");
    free(json);
    free(csv);
}

Test(compare_report, keeps_its_columns_whatever_names_are_made_of)
{
    static char long_name[] = "\xc3\xa4 name that is much longer than a table has room for, "
                              "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac";
    const struct tape tapes[] = {{.name = (char *)"\xe2\x82\xac\xc3\xa4"}, {.name = long_name}};
    static const struct compare_policy policies[] = {
        {.name = "fast"}, {.name = "slow"}, {.name = "clever", .learns = true}};
    double bounds[] = {1000, 1000, 1000, 1000};
    struct compare_result results[12];
    struct compare c = made_up(tapes, policies, bounds, results);
    char *text, *line;

    for (size_t i = 0; i < 12; i++)
        results[i] = (struct compare_result){.work = 500};
    c.job = &(struct compare_job){.n_speeds = 2};
    text = shown(&c, compare_text);
    cr_expect_not_null(strstr(text, "up to 1 slot)"));
    cr_expect_not_null(strstr(text, "it is 0.000 ahead of fast: "));
    line = strstr(text, "\n  \xe2\x82\xac\xc3\xa4 ");
    cr_assert_not_null(line);
    cr_expect_eq(strcspn(line + 1, "."), 2u + 44 + 5 + 3, "3 bytes more than letters: %s", line);
    line = strstr(text, "\n  \xc3\xa4 name");
    cr_assert_not_null(line);
    cr_expect_not_null(strstr(line, "table h...    0.500"), "%s", line);
    results[2].work = 300;
    free(text);
    text = shown(&c, compare_text);
    cr_expect_not_null(strstr(text, "it is 0.200 behind fast: "), "%s", text);
    free(text);
}

/* ---- the picture ------------------------------------------------------------------------------
 */

Test(compare_svg, shows_every_trace_and_policy_the_same_each_time)
{
    struct spec_error err;
    struct cell x;
    char *first, *again;

    cell_init(&x, "{\"pliant_trace\":1,\"name\":\"<a&b>\"}\n" UP(0, "a", 2) UP(9000, "b", 1)
                      DOWN(30000, "a") DOWN(50000, "b") END(100000));
    cr_assert_eq(compare_run(&x.c, &err), 0);
    first = shown(&x.c, compare_svg);
    again = shown(&x.c, compare_svg);
    cr_expect_str_eq(first, again);
    cr_expect_eq(strncmp(first, "<svg ", 5), 0);
    cr_expect_str_eq(first + strlen(first) - 7, "</svg>\n");
    cr_expect_not_null(strstr(first, "&lt;a&amp;b&gt;"));
    cr_expect_null(strstr(first, "<a&b>"));
    for (size_t p = 0; p < x.c.n_policies; p++)
        cr_expect_not_null(strstr(first, x.c.policies[p].name), "%s", x.c.policies[p].name);
    free(first);
    free(again);
    cell_free(&x);
}

static void write_svg(struct cell *x, char **ret)
{
    struct spec_error err;

    cr_assert_eq(compare_run(&x->c, &err), 0);
    *ret = shown(&x->c, compare_svg);
}

Test(compare_svg, cuts_names_that_have_no_room)
{
    struct cell x;
    char *text;

    cell_init(&x, HEADER UP(0, "a", 2) END(100000));
    mem_free(NULL, x.tape.name);
    x.tape.name = mem_text(NULL, "0123456789012345678901234567890123456789+", 41);
    write_svg(&x, &text);
    cr_expect_not_null(strstr(text, ">012345678901234567890123456789012345678&#8230;<"));
    cr_expect_not_null(strstr(text, ">0123456789012345678901234567890123456789+<"),
                       "above the run");
    free(text);
    cell_free(&x);
}

/* What lies left of the axis is written there: two of them would stand on each other. */
Test(compare_svg, has_one_share_left_of_the_axis_at_most)
{
    for (int low = 1; low <= 2; low++) {
        struct cell x;
        char *text;

        cell_init(&x, HEADER UP(0, "a", 2) END(100000));
        write_svg(&x, &text);
        free(text);
        for (size_t p = 0; p < x.c.n_policies; p++)
            x.c.results[p].work = x.c.bounds[0] * (p < (size_t)low ? 0.1 + 0.11 * (double)p : 0.7);
        text = shown(&x.c, compare_svg);
        cr_expect_not_null(strstr(text, ">0.10</text>"), "%d", low);
        cr_expect_null(strstr(text, ">0.21</text>"), "%d", low);
        cr_expect_eq(strstr(text, ">0.2</text>") != NULL, low == 2, "%d", low);
        free(text);
        cell_free(&x);
    }
}

Test(compare_svg, draws_a_trace_on_which_nothing_happens)
{
    struct spec_error err;
    struct cell x;
    char *text;

    cell_init(&x, HEADER);
    cr_assert_eq(compare_run(&x.c, &err), 0);
    text = shown(&x.c, compare_svg);
    cr_expect_str_eq(text + strlen(text) - 7, "</svg>\n");
    free(text);
    cell_free(&x);
}

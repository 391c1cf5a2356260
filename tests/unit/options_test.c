/* options_test.c - who may set an option, and what all of them come to */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing_alloc.h"
#include "spec/memory.h"
#include "spec/options.h"

#define N(rows) (sizeof(rows) / sizeof *(rows))
#define COOLDOWN "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling"
#define EXPONENTIAL "restart-strategy.exponential-delay."

/* Three layers as texts; NULL: nothing there. `define` may have two assignments, with a blank. */
struct layers {
    const char *file, *job, *define, *define_more;
};

static int add_text(struct options *o, enum options_layer layer, const char *name, const char *text,
                    struct spec_error *err)
{
    struct doc_file f;
    int r;

    if (!text)
        return 0;
    r = doc_parse(name, text, strlen(text), 1, &f, err);
    if (r < 0)
        return r;
    r = options_add(o, layer, &f, f.root, err);
    doc_free(&f);
    return r;
}

static int add_layers(struct options *o, const struct layers *l, struct spec_error *err)
{
    int r = add_text(o, OPTIONS_FILE, "conf.yaml", l->file, err);

    if (r == 0)
        r = add_text(o, OPTIONS_JOB, "job.yaml", l->job, err);
    if (r == 0 && l->define)
        r = options_define(o, l->define, err);
    if (r == 0 && l->define_more)
        r = options_define(o, l->define_more, err);
    return r;
}

static struct options options_of(struct layers layers)
{
    struct options o = {0};
    struct spec_error err;

    cr_assert(eq(int, add_layers(&o, &layers, &err), 0), "%s", err.text);
    return o;
}

static struct pliant_config config_of(struct layers layers)
{
    struct options o = options_of(layers);
    struct pliant_config cfg;
    struct spec_error err;

    cr_assert(eq(int, options_resolve(&o, &cfg, &err), 0), "%s", err.text);
    options_free(&o);
    return cfg;
}

#define CONFIG(...) config_of((struct layers){__VA_ARGS__})

/* What adding or resolving is refused with. */
static void expect_refusal(struct layers layers, const char *want)
{
    struct options o = {0};
    struct pliant_config cfg;
    struct spec_error err = {""};
    int r = add_layers(&o, &layers, &err);

    if (r == 0)
        r = options_resolve(&o, &cfg, &err);
    cr_expect(eq(int, r, -EINVAL), "%s", want);
    cr_expect(eq(str, err.text, (char *)want));
    options_free(&o);
}

Test(options, the_command_line_goes_before_the_job_and_that_before_the_file)
{
    cr_expect(eq(i64, CONFIG(.file = NULL).cooldown_ms, 30000));
    cr_expect(eq(i64, CONFIG(.file = COOLDOWN ": 1 s").cooldown_ms, 1000));
    cr_expect(eq(i64, CONFIG(.file = COOLDOWN ": 1 s", .job = COOLDOWN ": 2 s").cooldown_ms, 2000));
    cr_expect(
        eq(i64,
           CONFIG(.file = COOLDOWN ": 1 s", .job = COOLDOWN ": 2 s", .define = COOLDOWN "=3 s")
               .cooldown_ms,
           3000));
    cr_expect(eq(i64, CONFIG(.define = COOLDOWN "=3 s", .define_more = COOLDOWN "=4 s").cooldown_ms,
                 4000),
              "the last -D counts");
}

Test(options, flat_names_nested_maps_yaml_and_json_are_the_same)
{
    static const char *const texts[] = {
        "pliant.drain.lead: 7 s\npliant.seed: 3\npliant.checkpoint.periodic: false\n",
        "pliant:\n  drain:\n    lead: 7 s\n  seed: 3\n  checkpoint: {periodic: false}\n",
        "pliant.drain:\n  lead: 7 s\npliant:\n  seed: \"3\"\n  checkpoint.periodic: 'FALSE'\n",
        "{\"pliant.drain.lead\": 7000, \"pliant\": {\"seed\": 3, \"checkpoint\": {\"periodic\": "
        "false}}}",
        "{\"pliant\": {\"drain.lead\": \"PT7S\", \"seed\": \"3\", \"checkpoint.periodic\": "
        "\"false\"}}",
    };

    for (size_t i = 0; i < N(texts); i++) {
        struct pliant_config cfg = CONFIG(.file = texts[i]);

        cr_expect(eq(i64, cfg.drain_lead_ms, 7000), "text %zu", i);
        cr_expect(eq(i64, cfg.seed, 3), "text %zu", i);
        cr_expect(not(cfg.checkpoint_periodic), "text %zu", i);
    }
}

Test(options, an_older_name_is_read_where_the_newer_is_absent) /* [S-OPT-3] */
{
    const char *old = "jobmanager.adaptive-scheduler.scaling-interval.min: 1 s\n";
    const char *both =
        "jobmanager.adaptive-scheduler.scaling-interval.min: 1 s\n" COOLDOWN ": 2 s\n";

    cr_expect(eq(i64, CONFIG(.file = old).cooldown_ms, 1000));
    cr_expect(eq(i64, CONFIG(.file = both).cooldown_ms, 2000));
    cr_expect(eq(i64, CONFIG(.file = COOLDOWN ": 2 s", .job = old).cooldown_ms, 1000),
              "layers come first");
    cr_expect(eq(i64, CONFIG(.file = old, .job = COOLDOWN ": 2 s").cooldown_ms, 2000));
}

Test(options, the_restart_strategy_is_taken_whole_from_where_it_is_named) /* [S-OPT-1] [S-POL-6] */
{
    const char *file = "restart-strategy:\n  type: exponential-delay\n  exponential-delay:\n"
                       "    initial-backoff: 2 s\n    jitter-factor: 0.2\n";
    const char *job = "{\"restart-strategy.type\": \"exponential-delay\", "
                      "\"restart-strategy.exponential-delay.initial-backoff\": \"3 s\"}";
    struct pliant_config cfg = CONFIG(.file = file);

    cr_expect(eq(i64, cfg.restart.exponential.initial_ms, 2000));
    cr_expect(eq(dbl, cfg.restart.exponential.jitter, 0.2));

    cfg = CONFIG(.file = file, .job = job);
    cr_expect(eq(i64, cfg.restart.exponential.initial_ms, 3000));
    cr_expect(eq(dbl, cfg.restart.exponential.jitter, 0.1), "not the file's");

    cfg = CONFIG(.file = file, .define = "restart-strategy=fixed-delay");
    cr_expect(eq(int, (int)cfg.restart.kind, PLIANT_RESTART_FIXED_DELAY), "by its older name");

    cfg = CONFIG(.file = file, .define = EXPONENTIAL "jitter-factor=0");
    cr_expect(eq(dbl, cfg.restart.exponential.jitter, 0.2), "the type is named in the file");

    cfg = CONFIG(.file = "execution.checkpointing.interval: 1 s",
                 .job = EXPONENTIAL "jitter-factor: 0");
    cr_expect(eq(dbl, cfg.restart.exponential.jitter, 0.1), "the type is named nowhere");
}

Test(options, retries_of_creation_are_a_strategy_of_their_own) /* [S-OPT-1] [S-OPT-2] */
{
    const char *retry = "jobmanager.adaptive-scheduler.retry-execution-graph-creation:\n"
                        "  restart-strategy:\n    type: fixed-delay\n"
                        "    fixed-delay: {attempts: 5, delay: 2 s}\n";
    struct pliant_config cfg = CONFIG(.file = retry, .job = "restart-strategy.type: failure-rate");

    cr_expect(eq(int, (int)cfg.creation_retry.kind, PLIANT_RESTART_FIXED_DELAY));
    cr_expect(eq(i64, cfg.creation_retry.fixed.attempts, 5));
    cr_expect(eq(int, (int)cfg.restart.kind, PLIANT_RESTART_FAILURE_RATE));
    cfg = CONFIG(.file = "restart-strategy.type: fixed-delay");
    cr_expect(eq(int, (int)cfg.creation_retry.kind, PLIANT_RESTART_NONE));
}

Test(options, retries_of_creation_are_the_job_s_before_the_cluster_s) /* [S-OPT-1] [S-OPT-2] */
{
    const char *file = "jobmanager.adaptive-scheduler.retry-execution-graph-creation:\n"
                       "  restart-strategy: {type: fixed-delay}\n";
    const char *job = "jobmanager.adaptive-scheduler.retry-execution-graph-creation:\n"
                      "  restart-strategy: {type: failure-rate}\n";
    struct pliant_config cfg = CONFIG(.file = file, .job = job);

    cr_expect(eq(int, (int)cfg.creation_retry.kind, PLIANT_RESTART_FAILURE_RATE));
    cfg = CONFIG(.file = file, .job = "restart-strategy.type: none");
    cr_expect(eq(int, (int)cfg.creation_retry.kind, PLIANT_RESTART_FIXED_DELAY));
}

Test(options, the_mode_sets_defaults_wherever_it_is_named) /* [S-OPT-4] */
{
    struct pliant_config cfg = CONFIG(.job = "scheduler-mode: reactive");

    cr_expect(eq(i64, cfg.resource_wait_ms, -1));
    cfg = CONFIG(.file = "jobmanager.adaptive-scheduler.resource-wait-timeout: 5 min",
                 .job = "scheduler-mode: reactive");
    cr_expect(eq(i64, cfg.resource_wait_ms, 300000));
}

Test(options, what_is_wrong_is_named_with_file_line_and_what_is_accepted)
{
    static const struct {
        struct layers layers;
        const char *want;
    } rows[] = {
        {{.file = "\n" COOLDOWN ": 5 parsecs"},
         "conf.yaml:2: " COOLDOWN ": not \"5 parsecs\"; accepted: a duration >= 0 (units d, h, "
         "min, s, ms, us, ns)"},
        {{.job = "pliant:\n  seed: x"},
         "job.yaml:2: pliant.seed: not \"x\"; accepted: an integer from 0 to 9223372036854775807"},
        {{.define = "pliant.seed=x"},
         "-D: pliant.seed: not \"x\"; accepted: an integer from 0 to 9223372036854775807"},
        {{.file = "pliant.seed: [1]"},
         "conf.yaml:1: pliant.seed: is a list; accepted: an integer from 0 to 9223372036854775807"},
        {{.file = "pliant.seed:"},
         "conf.yaml:1: pliant.seed: is null; accepted: an integer from 0 to 9223372036854775807"},
        {{.file = "pliant:\n  sead: 1"},
         "conf.yaml:2: pliant.sead: no such option; did you mean pliant.seed?"},
        {{.define = "scheduler-mode.x=1"},
         "-D: scheduler-mode.x: no such option; did you mean scheduler-mode?"},
        {{.file = "execution.checkpointing.intervall: 1 s"},
         "conf.yaml:1: execution.checkpointing.intervall: no such option; did you mean "
         "execution.checkpointing.interval?"},
        {{.file = "restart-strategy.what-is-this-about: 1"},
         "conf.yaml:1: restart-strategy.what-is-this-about: no such option; the table of options "
         "has the known ones"},
        {{.define = "pliant.seed"}, "-D: \"pliant.seed\"; accepted: name=value"},
        {{.define = "=1"}, "-D: \"=1\"; accepted: name=value"},
        {{.file = "pliant.seed: 1\npliant:\n  seed: 2"},
         "conf.yaml:3: pliant.seed: is set twice, first in line 1"},
        {{.file = "pliant:\n  '': {seed: 3}\n"},
         "conf.yaml:2: pliant.: has no name; accepted: the name of an option"},
        {{.file = "- a"}, "conf.yaml:1: is a list; accepted: a map of options"},
        {{.file =
              "\nrestart-strategy.type: exponential-delay\n" EXPONENTIAL "initial-backoff: 2 min"},
         "conf.yaml:3: " EXPONENTIAL "initial-backoff: 120000 ms is longer than max-backoff; "
         "accepted: at most 60000 ms"},
        {{.job = "scheduler-mode: reactive", .define = "jobmanager.scheduler=default"},
         "-D: jobmanager.scheduler: the reactive scheduler-mode is one of the adaptive scheduler; "
         "accepted with it: adaptive"},
        {{.file = "heartbeat.timeout: 5 s"},
         "conf.yaml:1: heartbeat.timeout: not longer than heartbeat.interval; accepted: a longer "
         "duration"},
        {{.file = "heartbeat.interval: 20 s"},
         "options: heartbeat.timeout: not longer than heartbeat.interval; accepted: a longer "
         "duration"},
    };

    for (size_t i = 0; i < N(rows); i++)
        expect_refusal(rows[i].layers, rows[i].want);
}

Test(options, a_name_that_is_too_long_is_refused)
{
    char text[600] = "pliant.", want[700];

    memset(text + 7, 'x', 400);
    expect_refusal((struct layers){.define = text},
                   "-D: \"pliant.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"; accepted: "
                   "name=value");
    strcpy(text + 407, ": 1");
    snprintf(want, sizeof want, "conf.yaml:1: %.128s: the name is longer than 255 bytes", text);
    expect_refusal((struct layers){.file = text}, want);
}

/* The warnings of a run, each ended by a line. */
static void note_warning(void *ctx, const char *text)
{
    strcat(strcat(ctx, text), "\n");
}

static void expect_warnings(struct layers layers, const char *want)
{
    struct options o = options_of(layers);
    char got[4096] = "";

    options_warn(&o, note_warning, got);
    cr_expect(eq(str, got, (char *)want));
    options_free(&o);
}

Test(options, other_parts_of_flink_are_ignored_in_one_line)
{
    expect_warnings((struct layers){.file = "pliant.seed: 1"}, "");
    expect_warnings(
        (struct layers){.file = "jobmanager:\n  rpc: {address: localhost, port: 6123}\n"
                                "execution.checkpointing.mode: EXACTLY_ONCE\n"
                                "execution.checkpointing.unaligned.enabled: true\n"
                                "pipeline.jars: [a, b]\nenv.java.opts.all:\n",
                        .job = "executon.checkpointing.interval: 10 s"},
        "ignored, Pliant does not read them: jobmanager.rpc.address, jobmanager.rpc.port, "
        "execution.checkpointing.mode, execution.checkpointing.unaligned.enabled, pipeline.jars, "
        "env.java.opts.all, executon.checkpointing.interval (did you mean "
        "execution.checkpointing.interval?)\n");
    expect_warnings((struct layers){.file =
                                        "a1: 1\na2: 1\na3: 1\na4: 1\na5: 1\na6: 1\na7: 1\na8: 1\n"
                                        "a9: 1\nb1: 1\nb2: 1\nb3: 1\nb4: 1\nb5: 1\n"},
                    "ignored, Pliant does not read them: a1, a2, a3, a4, a5, a6, a7, a8, a9, b1, "
                    "b2, b3 and 2 more\n");
}

Test(options, the_line_of_ignored_names_is_cut_where_it_is_full)
{
    char text[12 * 256] = "";
    struct options o;
    char got[4096] = "";

    for (int i = 0; i < 12; i++)
        sprintf(text + strlen(text), "%c%0200d: 1\n", 'a' + i, 0);
    o = options_of((struct layers){.file = text});
    options_warn(&o, note_warning, got);
    cr_expect(eq(sz, strlen(got), sizeof((struct spec_error *)0)->text));
    options_free(&o);
}

Test(options, what_has_no_effect_is_said)
{
    expect_warnings(
        (struct layers){.file = "\njobmanager.adaptive-scheduler.min-parallelism-increase: 2"},
        "conf.yaml:2: jobmanager.adaptive-scheduler.min-parallelism-increase has no "
        "effect: dead in Flink since 2.0\n");
    expect_warnings(
        (struct layers){.define = "slot.request.max-interval=1 s"},
        "-D: slot.request.max-interval has no effect: slots are declared, not requested\n");
    expect_warnings((struct layers){.file = "restart-strategy.type: exponential-delay",
                                    .define = EXPONENTIAL "jitter-factor=0"},
                    "-D: " EXPONENTIAL "jitter-factor is not read; parameters must stand with what "
                    "names restart-strategy.type\n");
    expect_warnings((struct layers){.file = EXPONENTIAL "jitter-factor: 0"},
                    "conf.yaml:1: " EXPONENTIAL "jitter-factor is not read; parameters must stand "
                    "with what names restart-strategy.type\n");
}

Test(options, the_host_asks_for_its_own)
{
    struct options o = options_of(
        (struct layers){.file = "pliant.sim.deploy-latency: 250 ms\nstate.checkpoints.dir: /c",
                        .job = "pliant.sim: {cancel-latency: 1 s}",
                        .define = "execution.checkpointing.savepoint-dir=/s"});
    struct pliant_config cfg;
    struct spec_error err;

    cr_expect(eq(i64, options_duration_ms(&o, "pliant.sim.deploy-latency"), 250));
    cr_expect(eq(i64, options_duration_ms(&o, "pliant.sim.cancel-latency"), 1000));
    cr_expect(eq(i64, options_duration_ms(&o, "pliant.sim.restore-latency"), 0));
    cr_expect(eq(i64, options_duration_ms(&o, "heartbeat.timeout"), 15000));
    cr_expect(eq(str, (char *)options_text(&o, "execution.checkpointing.dir"), "/c"));
    cr_expect(eq(str, (char *)options_text(&o, "execution.checkpointing.savepoint-dir"), "/s"));
    cr_assert(eq(int, options_resolve(&o, &cfg, &err), 0));
    cr_expect(cfg.has_savepoint_dir);
    options_free(&o);
    cr_expect(eq(str, (char *)options_text(&o, "execution.checkpointing.dir"), ""));
}

Test(options, a_copy_comes_to_the_same_and_lives_by_itself)
{
    struct options o = options_of(
        (struct layers){.file = "state.checkpoints.dir: /c\nakka.timeout: 1 s\npliant.seed: 1",
                        .define = "pliant.seed=2"});
    struct options copy = {0};
    struct pliant_config cfg;
    struct spec_error err;

    cr_assert(eq(int, options_copy(&o, &copy, &err), 0));
    options_free(&o);
    cr_expect(eq(str, (char *)options_text(&copy, "execution.checkpointing.dir"), "/c"));
    cr_expect(eq(sz, copy.ignored.n, 1));
    cr_assert(eq(int, options_resolve(&copy, &cfg, &err), 0));
    cr_expect(eq(i64, cfg.seed, 2));
    options_free(&copy);
}

Test(options, an_option_file_is_read_and_a_missing_one_named)
{
    char path[] = "/tmp/pliant-options-XXXXXX";
    struct options o = {0};
    struct pliant_config cfg;
    struct spec_error err;
    int fd = mkstemp(path);

    cr_assert(fd >= 0);
    cr_assert(eq(int, (int)write(fd, "pliant.seed: 9\n", 15), 15));
    close(fd);
    cr_assert(eq(int, options_read(&o, path, &err), 0), "%s", err.text);
    unlink(path);
    cr_assert(eq(int, options_resolve(&o, &cfg, &err), 0));
    cr_expect(eq(i64, cfg.seed, 9));
    options_free(&o);
    cr_expect(eq(int, options_read(&o, "/no/such", &err), -ENOENT));
    cr_expect(eq(str, err.text, "/no/such: No such file or directory"));
}

static char *printed(enum options_format format)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    cr_assert(out != NULL);
    cr_assert(eq(int, options_print(out, format), 0));
    fclose(out);
    return text;
}

Test(options, the_table_is_printed_whole_in_each_format)
{
    static const enum options_format formats[] = {OPTIONS_TEXT, OPTIONS_JSON, OPTIONS_CSV,
                                                  OPTIONS_MARKDOWN};
    const struct pliant_option *option;
    size_t chapters = 0;

    for (size_t i = 0; i < N(formats); i++) {
        char *text = printed(formats[i]);

        for (size_t k = 0; (option = pliant_option_at(k)) != NULL; k++) {
            cr_expect(strstr(text, option->key) != NULL, "%s", option->key);
            if (option->old_keys[0])
                cr_expect(strstr(text, option->old_keys[0]) != NULL);
        }
        if (formats[i] == OPTIONS_MARKDOWN)
            for (const char *p = text; (p = strstr(p, "\n## ")) != NULL; p++)
                chapters++;
        free(text);
    }
    cr_expect(eq(sz, chapters, 16 + 1),
              "each chapter begins with an option that is there, but one");
}

Test(options, each_line_of_json_is_json)
{
    char *text = printed(OPTIONS_JSON), *line = text, *end;
    struct doc_file f = {.name = "options"};
    struct spec_error err;

    for (uint32_t n = 1; (end = strchr(line, '\n')) != NULL; n++, line = end + 1) {
        cr_assert(eq(int, doc_line(&f, line, (size_t)(end - line), n, &err), 0), "%s", err.text);
        cr_expect(pliant_option_find(doc_get(f.root, "key")->text) != NULL);
    }
    cr_expect(eq(str, line, ""));
    doc_free(&f);
    free(text);
}

Test(options, a_full_disk_is_an_error)
{
    FILE *out = fopen("/dev/full", "w");

    cr_assert(out != NULL);
    cr_expect(eq(int, options_print(out, OPTIONS_TEXT), -ENOSPC));
    fclose(out);
    out = fopen("/dev/full", "w");
    cr_expect(eq(int, options_print(out, OPTIONS_JSON), -ENOSPC));
    fclose(out);
}

Test(options, the_kth_allocation_may_fail)
{
    const struct layers layers = {.file =
                                      "pliant.seed: 1\na: 1\nb: {c: 1}\nrestart-strategy: none\n",
                                  .job = COOLDOWN ": 1 s",
                                  .define = "pliant.seed=2",
                                  .define_more = "pliant.seed=3"};
    int r = -ENOMEM;

    for (size_t k = 1; r == -ENOMEM; k++) {
        FAILING_ALLOC(memory, k);
        struct options o = {0};
        struct pliant_config cfg;
        struct spec_error err;

        spec_memory = &memory.hook;
        r = add_layers(&o, &layers, &err);
        if (r == 0)
            r = options_resolve(&o, &cfg, &err);
        cr_expect(r == -ENOMEM ? strstr(err.text, "out of memory") != NULL : k > 10);
        options_free(&o);
        cr_assert(eq(sz, memory.live, 0));
    }
    spec_memory = NULL;
    cr_expect(eq(int, r, 0));
}

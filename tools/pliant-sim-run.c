/* pliant-sim-run.c - pliant-sim run: one job on one trace */
#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "pliant-sim.h"
#include "sim/chart_svg.h"
#include "sim/output.h"
#include "sim/progress.h"
#include "sim/recorder.h"
#include "sim/sim.h"

struct arguments {
    const char *job, *trace, *config, *svg, *record;
    uint64_t until_ms;
    bool has_until, lenient;
    enum report_format format;
};

/* What is read before anything runs. */
struct input {
    struct job_spec job;
    struct options options;
    struct pliant_config cfg;
    struct trace *trace;
    struct trace_summary summary;
};

/* Who watches, and the files that come of it. */
struct watchers {
    struct sim_observer *list[5];
    size_t n;
    struct sim_observer *report, *chart, *recorder;
    struct progress progress;
    struct output svg, recording;
    struct verdict {
        struct sim_observer observer;
        enum pliant_job_status status;
    } verdict;
};

static void warn(void *ctx, const char *text)
{
    (void)ctx;
    complain(DONE, "warning: %s", text);
}

/* ---- arguments ------------------------------------------------------------------------------ */

static bool take(int option, struct arguments *a, struct input *in, enum exit_code *ret_exit)
{
    struct spec_error err = {.text = ""};
    int r;

    *ret_exit = BAD_INPUT;
    switch (option) {
    case 'J':
        a->job = optarg;
        return true;
    case 't':
        a->trace = optarg;
        return true;
    case 'C':
        a->config = optarg;
        return true;
    case 's':
        a->svg = optarg;
        return true;
    case 'r':
        a->record = optarg;
        return true;
    case 'l':
        a->lenient = true;
        return true;
    case 'u':
        a->has_until = true;
        return take_number("until", optarg, 0, (uint64_t)DOC_INTEGER_MAX, &a->until_ms);
    case 'D':
        r = options_define(&in->options, optarg, &err);
        if (r)
            *ret_exit = input_error(r, err.text);
        return !r;
    default:
        return take_format(option, &a->format);
    }
}

/* Nothing that is read or written may be overwritten. */
static bool outputs_are_apart(const struct arguments *a)
{
    const char *const others[] = {a->job, a->trace, a->config, a->svg};

    return (!a->svg || output_is_apart("svg", a->svg, others, 3)) &&
           (!a->record || output_is_apart("record", a->record, others, 4));
}

static bool parse(int argc, char **argv, const struct command *self, struct arguments *a,
                  struct input *in, enum exit_code *ret_exit)
{
    static const struct option options[] = {{"job", required_argument, NULL, 'J'},
                                            {"trace", required_argument, NULL, 't'},
                                            {"config", required_argument, NULL, 'C'},
                                            {"svg", required_argument, NULL, 's'},
                                            {"record", required_argument, NULL, 'r'},
                                            {"until", required_argument, NULL, 'u'},
                                            {"lenient", no_argument, NULL, 'l'},
                                            FORMAT_OPTIONS,
                                            COMMON_OPTIONS};
    int option;

    while ((option = next_option(argc, argv, options, self, ret_exit)) != -1)
        if (option == '?' || !take(option, a, in, ret_exit))
            return false;
    *ret_exit = BAD_INPUT;
    if (optind < argc)
        usage(self, "run: \"%s\" is not an option", argv[optind]);
    else if (!a->job)
        usage(self, "run: --job FILE is missing");
    else if (!a->trace)
        usage(self, "run: --trace FILE is missing");
    else if (strcmp(a->job, "-") == 0 && strcmp(a->trace, "-") == 0)
        usage(self, "run: only one of --job and --trace can be standard input");
    else
        return outputs_are_apart(a);
    return false;
}

/* ---- input ---------------------------------------------------------------------------------- */

static int read_options(const struct arguments *a, struct input *in, struct spec_error *err)
{
    int r = a->config ? options_read(&in->options, a->config, err) : 0;

    if (!r)
        r = options_add_job(&in->options, &in->job.doc, in->job.config, in->job.group, err);
    in->options.all_blocking = pliant_job_is_batch(in->job.job);
    if (!r)
        r = options_resolve(&in->options, &in->cfg, err);
    if (!r)
        options_warn(&in->options, warn, NULL);
    return r ? r : sim_check_job(&in->job, &in->cfg, err);
}

static int read_trace(const struct arguments *a, struct input *in, struct spec_error *err)
{
    const struct trace_rules rules = {
        .job = in->job.job, .lenient = a->lenient, .warn = a->lenient ? warn : NULL};
    int r = trace_open(a->trace, &rules, &in->trace, err);

    if (!r)
        r = trace_scan(in->trace, &in->summary, err);
    if (!r && in->summary.has_checkpoints)
        in->cfg.checkpoint_periodic = false; /* the trace says when they complete */
    return r;
}

static int read_input(const struct arguments *a, struct input *in, struct spec_error *err)
{
    int r = job_spec_read(a->job, &in->job, err);

    if (!r)
        r = read_options(a, in, err);
    return r ? r : read_trace(a, in, err);
}

static void free_input(struct input *in)
{
    trace_close(&in->trace);
    options_free(&in->options);
    job_spec_free(&in->job);
}

/* ---- output --------------------------------------------------------------------------------- */

static int verdict_step(struct sim_observer *o, const struct sim_step *step)
{
    (void)o, (void)step;
    return 0;
}

static int verdict_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    (void)end_ms;
    ((struct verdict *)o)->status = pliant_job_status(sched);
    return 0;
}

static unsigned terminal_width(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int64_t end_of(const struct arguments *a, const struct input *in)
{
    return a->has_until ? (int64_t)a->until_ms : in->summary.last_t_ms;
}

static int add_report(struct watchers *w, const struct arguments *a, const struct input *in)
{
    const struct report_options options = {
        .format = a->format,
        .out = stdout,
        .job = in->job.job,
        .trace = trace_name(in->trace),
        .expected_end_ms = end_of(a, in),
        .width = terminal_width(),
        .ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
    };
    int r = report_new(&options, &w->report);

    if (!r)
        w->list[w->n++] = w->report;
    return r;
}

static int add_chart(struct watchers *w, const struct arguments *a, const struct input *in)
{
    struct chart_svg_options options = {.job = in->job.job, .trace = trace_name(in->trace)};
    int r = output_open(&w->svg, a->svg);

    options.out = w->svg.file;
    if (!r)
        r = chart_svg_new(&options, &w->chart);
    if (!r)
        w->list[w->n++] = w->chart;
    return r;
}

static int add_recorder(struct watchers *w, const struct arguments *a, const struct input *in)
{
    int r = output_open(&w->recording, a->record);

    if (!r)
        r = recorder_new(w->recording.file, in->job.job, &in->cfg, &w->recorder);
    if (!r)
        w->list[w->n++] = w->recorder;
    return r;
}

/* Which file could not be opened, or NULL; *ret_error says why. */
static const char *open_watchers(struct watchers *w, const struct arguments *a,
                                 const struct input *in, int *ret_error)
{
    const char *failed = NULL;

    w->verdict.observer = (struct sim_observer){verdict_step, verdict_end};
    w->list[w->n++] = &w->verdict.observer;
    progress_init(&w->progress, stderr, end_of(a, in));
    w->list[w->n++] = &w->progress.observer;
    *ret_error = add_report(w, a, in);
    if (!*ret_error && a->svg && (*ret_error = add_chart(w, a, in)))
        failed = a->svg;
    if (!*ret_error && a->record && (*ret_error = add_recorder(w, a, in)))
        failed = a->record;
    return *ret_error ? failed ? failed : "memory" : NULL;
}

static void close_watchers(struct watchers *w)
{
    report_destroy(&w->report);
    chart_svg_destroy(&w->chart);
    recorder_destroy(&w->recorder);
    output_abandon(&w->svg);
    output_abandon(&w->recording);
}

static bool no_resources(int error)
{
    return error == -ENOMEM || error == -ENOSPC || error == -EPIPE || error == -EIO ||
           error == -EDQUOT || error == -EFBIG;
}

/* All that was written goes under its final name, once standard output is out too. */
static enum exit_code commit(struct watchers *w)
{
    enum exit_code code = finish(DONE);
    int r;

    if (code != DONE)
        return code;
    if (w->svg.file && (r = output_commit(&w->svg)))
        return complain(NO_RESOURCES, "%s: %s", w->svg.path, strerror(-r));
    if (w->recording.file && (r = output_commit(&w->recording)))
        return complain(NO_RESOURCES, "%s: %s", w->recording.path, strerror(-r));
    return w->verdict.status == PLIANT_JOB_FAILED ? ANSWER_IS_NO : DONE;
}

/* What could not be written, or "memory". */
static const char *failed_output(const struct watchers *w, int error)
{
    if (error == -ENOMEM)
        return "memory";
    if (w->svg.file && ferror(w->svg.file))
        return w->svg.path;
    if (w->recording.file && ferror(w->recording.file))
        return w->recording.path;
    return "standard output";
}

/* ---- the run -------------------------------------------------------------------------------- */

static enum exit_code simulate(const struct arguments *a, const struct input *in,
                               struct watchers *w)
{
    struct spec_error err;
    int r = sim_run(&(struct sim_setup){.cfg = &in->cfg,
                                        .job = &in->job,
                                        .latency = sim_latency_of(&in->options),
                                        .trace = in->trace,
                                        .trace_savepoints = in->summary.has_savepoints,
                                        .trace_launches = in->summary.launches,
                                        .until_ms = end_of(a, in),
                                        .observers = w->list,
                                        .n_observers = w->n},
                    &err);

    progress_clear(&w->progress);
    if (!r)
        return commit(w);
    if (*err.text)
        return input_error(r, err.text);
    return complain(NO_RESOURCES, "%s: %s", failed_output(w, r), strerror(-r));
}

static enum exit_code run_with(const struct arguments *a, struct input *in)
{
    struct watchers w = {.n = 0};
    struct spec_error err = {.text = ""};
    enum exit_code code;
    const char *failed;
    int r = read_input(a, in, &err);

    if (r)
        return input_error(r, err.text);
    failed = open_watchers(&w, a, in, &r);
    if (failed)
        code = complain(no_resources(r) ? NO_RESOURCES : BAD_INPUT, "%s: %s", failed, strerror(-r));
    else
        code = simulate(a, in, &w);
    close_watchers(&w);
    return code;
}

static enum exit_code run(int argc, char **argv, const struct command *self)
{
    struct arguments a = {.format = REPORT_TEXT};
    struct input in = {.trace = NULL};
    enum exit_code code;

    if (parse(argc, argv, self, &a, &in, &code))
        code = run_with(&a, &in);
    free_input(&in);
    return code;
}

const struct command run_command = {
    .name = "run",
    .run = run,
    .summary = "runs a job on a trace: a timeline, a chart, totals",
    .usage = "--job FILE --trace FILE [OPTION]...\n"
             "Run a job on a trace of nodes that come and go, and tell what the scheduler does.\n\n"
             "  --job FILE       the job (YAML or JSON; - is standard input)\n"
             "  --trace FILE     the trace (JSON Lines; - is standard input)\n"
             "  --config FILE    options; 'pliant-sim options' lists them\n"
             "  -D NAME=VALUE    one option; goes before the job's own and the file's\n"
             "  --until MS       how far to run; default: the trace's last event\n"
             "  --lenient        leave out events that cannot be, with a warning\n"
             "  --svg FILE       draw the run\n"
             "  --record FILE    write the journal, for 'pliant-sim replay'\n"
             "  --format FORMAT  text, json (JSON Lines) or csv; --json and --csv for short\n\n"
             "Exit code 1: the job failed.\n",
};

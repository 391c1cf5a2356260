/* pliant-sim-compare.c - pliant-sim compare: policies side by side, with the clairvoyant bound */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pliant-sim.h"
#include "pliant-sim-inputs.h"
#include "sim/compare_svg.h"
#include "sim/output.h"

struct arguments {
    struct sim_inputs in;
    const char *policies, *svg;
    enum report_format format;
};

/* ---- arguments ------------------------------------------------------------------------------ */

static bool take(int option, struct arguments *a, enum exit_code *ret_exit)
{
    *ret_exit = BAD_INPUT;
    if (sim_inputs_is(option))
        return sim_inputs_take(&a->in, option, ret_exit);
    if (option == 'p' || option == 's') {
        *(option == 'p' ? &a->policies : &a->svg) = optarg;
        return true;
    }
    return take_format(option, &a->format);
}

/* The chart must not take the place of what is read. */
static bool chart_is_apart(const struct arguments *a)
{
    const char *const others[] = {a->in.job_path, a->in.config_path};

    return !a->svg || (output_is_apart("svg", a->svg, others, 2) &&
                       output_is_apart("svg", a->svg, a->in.trace_paths.v, a->in.trace_paths.n));
}

static bool parse(int argc, char **argv, const struct command *self, struct arguments *a,
                  enum exit_code *ret_exit)
{
    static const struct option options[] = {SIM_INPUT_OPTIONS,
                                            {"policies", required_argument, NULL, 'p'},
                                            {"svg", required_argument, NULL, 's'},
                                            FORMAT_OPTIONS,
                                            COMMON_OPTIONS};
    int option;

    while ((option = next_option(argc, argv, options, self, ret_exit)) != -1)
        if (option == '?' || !take(option, a, ret_exit))
            return false;
    *ret_exit = BAD_INPUT;
    if (optind < argc)
        usage(self, "compare: \"%s\" is not an option", argv[optind]);
    else
        return sim_inputs_complete(&a->in, self) && chart_is_apart(a);
    return false;
}

/* ---- which policies ------------------------------------------------------------------------- */

/* Is the policy in a list "flink,worth"? NULL lists all. */
static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);

    while (list) {
        if (strncmp(list, name, n) == 0 && (list[n] == ',' || list[n] == '\0'))
            return true;
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    return false;
}

static const struct compare_policy *policy_named(const char *name, size_t n)
{
    for (size_t i = 0; i < compare_n_policies; i++)
        if (strlen(compare_policies[i].name) == n &&
            strncmp(compare_policies[i].name, name, n) == 0)
            return &compare_policies[i];
    return NULL;
}

static enum exit_code check_list(const char *list)
{
    char all[256] = "";

    while (list && policy_named(list, strcspn(list, ","))) {
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    if (!list)
        return DONE;
    for (size_t i = 0; i < compare_n_policies; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i > 0 ? ", " : "",
                 compare_policies[i].name);
    return complain(BAD_INPUT, "--policies: there is no policy \"%.*s\"; there are %s",
                    (int)strcspn(list, ","), list, all);
}

/* Those that are listed, in the order of the table; "own" only if there is something of its own. */
static int choose(const char *list, struct compare *c, struct compare_policy *ret,
                  struct spec_error *err)
{
    struct compare_own own;
    int r = compare_find_own(c, &own, err);

    for (size_t i = 0; !r && i < compare_n_policies; i++) {
        const struct compare_policy *policy = &compare_policies[i];

        if (list ? !listed(list, policy->name) : policy->own && own.n_keys == 0)
            continue;
        if (compare_policy_check(policy, err) == 0)
            ret[c->n_policies++] = *policy;
        else
            fprintf(stderr, "pliant-sim: %s is left out: %s\n", policy->name, err->text);
    }
    c->policies = ret;
    return r;
}

/* ---- the comparison ------------------------------------------------------------------------- */

static enum exit_code show(const struct compare *c, enum report_format format)
{
    int r = format == REPORT_JSON  ? compare_json(c, stdout)
            : format == REPORT_CSV ? compare_csv(c, stdout)
                                   : compare_text(c, stdout);

    return r ? complain(NO_RESOURCES, "standard output: %s", strerror(-r)) : finish(DONE);
}

/* A place that cannot be written to is known before anything runs. */
static enum exit_code open_chart(struct output *o, const char *path)
{
    int r = output_open(o, path);

    return r ? complain(BAD_INPUT, "%s: %s", path, strerror(-r)) : DONE;
}

static enum exit_code draw(const struct compare *c, struct output *o)
{
    int r = compare_svg(c, o->file);

    if (!r)
        r = output_commit(o);
    return r ? complain(NO_RESOURCES, "%s: %s", o->path, strerror(-r)) : DONE;
}

static enum exit_code run_with(struct arguments *a)
{
    struct compare_policy *policies = calloc(compare_n_policies, sizeof *policies);
    struct compare c = {.n_policies = 0};
    struct output chart = {.path = a->svg};
    struct spec_error err;
    enum exit_code code = policies ? check_list(a->policies) : input_error(-ENOMEM, "");
    int r;

    if (code == DONE)
        code = sim_inputs_read(&a->in, &c);
    if (code == DONE && (r = choose(a->policies, &c, policies, &err)) != 0)
        code = input_error(r, err.text);
    if (code == DONE && a->svg)
        code = open_chart(&chart, a->svg);
    if (code == DONE)
        code = sim_inputs_run(&c);
    if (code == DONE && a->svg)
        code = draw(&c, &chart);
    if (code == DONE)
        code = show(&c, a->format);
    output_abandon(&chart);
    compare_free(&c);
    free(policies);
    return code;
}

static enum exit_code run(int argc, char **argv, const struct command *self)
{
    struct arguments a = {.format = REPORT_TEXT};
    enum exit_code code;

    if (parse(argc, argv, self, &a, &code))
        code = run_with(&a);
    sim_inputs_free(&a.in);
    return code;
}

const struct command compare_command = {
    .name = "compare",
    .run = run,
    .summary = "policies side by side over traces, with the most that could be done",
    .usage =
        "--job FILE --trace FILE... [OPTION]...\n"
        "How much work does each rescale policy get done, of the most that a scheduler could that\n"
        "knows the future?\n\n" SIM_INPUT_USAGE "  --policies LIST  which, as \"flink,worth\"; "
        "default: all, and what the job's own options do\n"
        "  --svg FILE       draw the shares, and a run on the first trace at the middle cost\n"
        "  --format FORMAT  text, json (a line for each trace and cost) or csv; --json, --csv\n",
};

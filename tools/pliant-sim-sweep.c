/* pliant-sim-sweep.c - pliant-sim sweep: which options suit a cluster; prints an option file */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "pliant-sim-inputs.h"
#include "sim/sweep.h"

static bool parse(int argc, char **argv, const struct command *self, struct sim_inputs *in,
                  enum exit_code *ret_exit)
{
    static const struct option options[] = {SIM_INPUT_OPTIONS, COMMON_OPTIONS};
    int option;

    while ((option = next_option(argc, argv, options, self, ret_exit)) != -1)
        if (option == '?' || !sim_inputs_take(in, option, ret_exit))
            return false;
    *ret_exit = BAD_INPUT;
    if (optind < argc)
        usage(self, "sweep: \"%s\" is not an option", argv[optind]);
    else
        return sim_inputs_complete(in, self);
    return false;
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void row(const char *name, const struct sweep_point *point)
{
    printf("#   %-24s %5.3f %9" PRIu64 " %12.0f\n", name, point->share,
           point->sum.restarts / SWEEP_RUNS, point->sum.lost / 1000 / SWEEP_RUNS);
}

static bool same(const struct sweep_point *a, const struct sweep_point *b)
{
    return a->sum.work == b->sum.work && a->sum.restarts == b->sum.restarts;
}

static void figures(const struct compare *c, const struct sweep *s)
{
    printf(
        "# %zu trace%s at %zu cost%s: work as a share of what a scheduler that knows the future\n"
        "# could do at most, restarts, work lost.\n#\n",
        c->n_tapes, c->n_tapes == 1 ? "" : "s", c->n_costs, c->n_costs == 1 ? "" : "s");
    if (!same(&s->own, &s->starts[0]))
        row("the job's options", &s->own);
    for (size_t i = 0; i < s->n_starts; i++)
        row(s->starts[i].policy->name, &s->starts[i]);
    row("these options", &s->best);
    printf("#\n# The best of %" PRIu64
           " sets of options on these very traces; how they do on others, "
           "'pliant-sim\n# compare --config' tells.\n",
           s->tried);
}

/* The job's options go before a file's, and would come on top of those that were found. */
static void replaced(const struct compare_own *set)
{
    if (set->n_keys == 0 && set->interval_ms == PLIANT_UNSET)
        return;
    printf("# They stand for all that job and --config say about it now; take out of them:\n");
    for (size_t i = 0; i < set->n_keys; i++)
        printf("#   %s\n", set->keys[i]);
    if (set->interval_ms != PLIANT_UNSET)
        printf("#   execution.checkpointing.interval\n");
}

static void settings(const struct sweep_point *point)
{
    struct sweep_texts texts;
    struct compare_policy policy = sweep_policy(point, &texts);

    for (size_t i = 0; i < COMPARE_SETTINGS && policy.settings[i].key; i++)
        printf("%s: %s\n", policy.settings[i].key, policy.settings[i].value);
}

static void show_tried(void *ctx, size_t tried)
{
    (void)ctx;
    fprintf(stderr, "\r%zu sets of options tried", tried);
}

static enum exit_code run_with(struct sim_inputs *in)
{
    struct spec_error err = {.text = ""};
    struct compare c = {.n_policies = 0};
    enum exit_code code = sim_inputs_read(in, &c);
    struct sweep found;
    int r;

    if (code != DONE)
        return code;
    if (isatty(STDERR_FILENO))
        c.progress = show_tried;
    r = sweep(&c, &found, &err);
    if (c.progress)
        fprintf(stderr, "\r%40s\r", "");
    if (r)
        return input_error(r, err.text);
    figures(&c, &found);
    replaced(&found.set);
    settings(&found.best);
    return finish(DONE);
}

static enum exit_code run(int argc, char **argv, const struct command *self)
{
    struct sim_inputs in = {.job_path = NULL};
    enum exit_code code;

    if (parse(argc, argv, self, &in, &code))
        code = run_with(&in);
    sim_inputs_free(&in);
    return code;
}

const struct command sweep_command = {
    .name = "sweep",
    .run = run,
    .summary = "searches the options that suit traces and costs; prints an option file",
    .usage =
        "--job FILE --trace FILE... [OPTION]...\n"
        "Search for the options that get most work done on your traces and at your cost of a\n"
        "restart, and print them as an option file, with what they come to.\n\n" SIM_INPUT_USAGE,
};

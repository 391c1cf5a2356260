/* pliant-sim-explore.c - pliant-sim explore: random runs against the invariants */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pliant-sim.h"
#include "sim/explore.h"
#include "sim/progress.h"

static void show(void *ctx, uint64_t runs)
{
    progress_show(ctx, (int64_t)runs);
}

static void tell_bad(const struct explore_options *options, const struct explore_result *result)
{
    printf("seed %" PRIu64 ", run %" PRIu64 ", step %" PRIu32 ": %s: %s\n"
           "shrunk from %zu events to %zu: %s\n"
           "again: pliant-sim explore --seed %" PRIu64 " --steps %" PRIu32 "\n",
           result->seed, result->runs - 1, result->step, result->rule, result->detail,
           result->events, result->events_left, result->path, result->seed, options->steps);
}

static enum exit_code explore_with(const struct explore_options *given)
{
    struct explore_options options = *given;
    struct explore_result result;
    struct progress progress;
    int r;

    progress_init(&progress, stderr, (int64_t)options.runs);
    progress.every = 1;
    options.progress = show;
    options.ctx = &progress;
    r = explore(&options, &result);
    progress_clear(&progress);
    if (r)
        return complain(NO_RESOURCES, "%s: %s", result.bad ? result.path : "memory", strerror(-r));
    if (result.bad)
        tell_bad(&options, &result);
    else
        printf("%" PRIu64 " runs, %" PRIu64 " steps, nothing found; actions %016" PRIx64 "\n",
               result.runs, result.steps, result.hash);
    return finish(result.bad ? ANSWER_IS_NO : DONE);
}

static enum exit_code run(int argc, char **argv, const struct command *self)
{
    static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                            {"runs", required_argument, NULL, 'r'},
                                            {"steps", required_argument, NULL, 'n'},
                                            {"dir", required_argument, NULL, 'd'},
                                            COMMON_OPTIONS};
    uint64_t seed = 0, runs = 1, steps = 0;
    const char *dir = ".";
    bool has_seed = false, ok = true;
    enum exit_code code;
    int option;

    while (ok && (option = next_option(argc, argv, options, self, &code)) != -1) {
        if (option == '?')
            return code;
        if (option == 's')
            ok = has_seed = take_number("seed", optarg, 0, UINT64_MAX, &seed);
        if (option == 'r')
            ok = take_number("runs", optarg, 1, INT64_MAX, &runs);
        if (option == 'n')
            ok = take_number("steps", optarg, 1, UINT32_MAX / 2, &steps);
        if (option == 'd')
            dir = optarg;
    }
    if (!ok)
        return BAD_INPUT;
    if (optind < argc)
        return usage(self, "explore: \"%s\" is not an option", argv[optind]);
    if (!has_seed || steps == 0)
        return usage(self, "explore: --%s N is missing", has_seed ? "steps" : "seed");
    if (access(dir, W_OK | X_OK) != 0) /* not after hours */
        return complain(BAD_INPUT, "--dir: %s: %s", dir, strerror(errno));
    return explore_with(&(struct explore_options){
        .seed = seed, .runs = runs, .steps = (uint32_t)steps, .dir = dir});
}

const struct command explore_command = {
    .name = "explore",
    .run = run,
    .summary = "random clusters, faults and commands against the invariants",
    .usage = "--seed N [--runs K] --steps N [--dir DIR]\n"
             "Run K times with seeds N, N+1, ...: a random job on a random cluster with random\n"
             "faults, news and commands, at most so many steps; after every step the invariants\n"
             "are checked. A run that breaks one is made small and written as a recording into\n"
             "DIR (default: the present one).\n\n"
             "Exit code 1: something was found.\n",
};

/* pliant-sim-inputs.h - what compare and sweep read alike: a job, traces, costs, options
 *
 * Owner   sim_inputs_free() frees all of it; a struct compare that was filled borrows it
 * Errors  exit codes, all is said already
 */
#ifndef PLIANT_TOOLS_PLIANT_SIM_INPUTS_H
#define PLIANT_TOOLS_PLIANT_SIM_INPUTS_H

#include "pliant-sim.h"
#include "sim/compare.h"

struct sim_inputs {
    const char *job_path, *config_path;
    struct VEC(const char *) trace_paths, defines;
    struct VEC(struct compare_cost) costs; /* none: compare_costs */
    uint64_t max_slots, threads;           /* 0: not given */

    struct job_spec spec;
    struct doc_file config;
    struct compare_job job;
    struct VEC(struct tape) tapes;
};

/* clang-format off */
#define SIM_INPUT_OPTIONS \
    {"job", required_argument, NULL, 'J'}, {"trace", required_argument, NULL, 't'}, \
    {"cost", required_argument, NULL, 'k'}, {"max-slots", required_argument, NULL, 'm'}, \
    {"config", required_argument, NULL, 'C'}, {"threads", required_argument, NULL, 'n'}
/* clang-format on */

#define SIM_INPUT_USAGE                                                                            \
    "  --job FILE       the job (YAML or JSON; - is standard input)\n"                             \
    "  --trace FILE     a trace (JSON Lines; - is standard input); repeat it for more\n"           \
    "  --cost R,C,D     ms that a restart takes, between two checkpoints, that one takes; "        \
    "repeat\n"                                                                                     \
    "                   it for more; default: four from cheap to dear\n"                           \
    "  --max-slots N    use N slots at most\n"                                                     \
    "  --config FILE    options; 'pliant-sim options' lists them\n"                                \
    "  -D NAME=VALUE    one option, for all policies\n"                                            \
    "  --threads N      how many to use; default: one for each core\n"

/* Is it one of SIM_INPUT_OPTIONS, or -D? */
bool sim_inputs_is(int option);

/* false: *ret_exit says how to end. */
bool sim_inputs_take(struct sim_inputs *in, int option, enum exit_code *ret_exit);

/* false: something is missing. */
bool sim_inputs_complete(const struct sim_inputs *in, const struct command *self);

/* Read the files and fill all of *c but the policies. */
enum exit_code sim_inputs_read(struct sim_inputs *in, struct compare *c);

/* compare_run() with a progress bar. */
enum exit_code sim_inputs_run(struct compare *c);

void sim_inputs_free(struct sim_inputs *in);

#endif

/* pliant-sim.h - what the subcommands of pliant-sim share
 *
 * A subcommand reads its options with next_option(), which answers --help and wrong options
 * itself, and returns an exit code. Errors go to standard error, one line each.
 */
#ifndef PLIANT_TOOLS_PLIANT_SIM_H
#define PLIANT_TOOLS_PLIANT_SIM_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/report.h"

enum exit_code {
    DONE = 0,
    ANSWER_IS_NO = 1,
    BAD_INPUT = 2,
    NO_RESOURCES = 4, /* memory, disk, closed pipe */
};

struct command {
    const char *name;
    enum exit_code (*run)(int argc, char **argv, const struct command *self);
    const char *summary; /* a line of the list of commands */
    const char *usage;   /* what follows the name, and what it means */
};

extern const struct command run_command, compare_command, sweep_command, check_command,
    replay_command, options_command, explore_command;

/* Every list of long options ends with these. */
/* clang-format off */
#define COMMON_OPTIONS {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}
#define FORMAT_OPTIONS \
    {"format", required_argument, NULL, 'f'}, {"json", no_argument, NULL, 'j'}, \
    {"csv", no_argument, NULL, 'c'}
/* clang-format on */

/* The next option's `val`; -1: no more. '?': *ret_exit says how to end, all is said already. */
int next_option(int argc, char **argv, const struct option *options, const struct command *self,
                enum exit_code *ret_exit);

/* -f, -j and -c. false: said already. */
bool take_format(int option, enum report_format *ret);

/* A whole number of an option, min..max. false: said already. */
bool take_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* Is what --`option` names a file to write, none of `others` (NULL and - are nothing)? false: said
 * already. */
bool output_is_apart(const char *option, const char *path, const char *const *others, size_t n);

/* "pliant-sim: text", and for usage() where to find help. Return the code. */
enum exit_code complain(enum exit_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum exit_code usage(const struct command *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* An error of reading input: `text`, or what the errno says. */
enum exit_code input_error(int error, const char *text);

/* All of standard output is written, or the error of that. */
enum exit_code finish(enum exit_code code);

#endif

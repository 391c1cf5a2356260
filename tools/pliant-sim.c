/* pliant-sim.c - the simulator's program: which subcommand, and what all have in common */
#include "pliant-sim.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/output.h"
#include "util/nearest.h"

static const struct command *const commands[] = {
    &run_command,    &compare_command, &sweep_command,   &check_command,
    &replay_command, &explore_command, &options_command,
};

#define N_COMMANDS (sizeof commands / sizeof *commands)

/* ---- errors --------------------------------------------------------------------------------- */

/* One line, and nothing in it that a terminal would obey: much of it may be quoted from a file. */
static void say(const char *format, va_list args)
{
    char text[4096];

    vsnprintf(text, sizeof text, format, args);
    fputs("pliant-sim: ", stderr);
    for (const char *c = text; *c; c++)
        fputc((unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c, stderr);
    fputc('\n', stderr);
}

enum exit_code complain(enum exit_code code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
    return code;
}

enum exit_code usage(const struct command *self, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
    fprintf(stderr, "Try 'pliant-sim %s --help'.\n", self->name);
    return BAD_INPUT;
}

enum exit_code input_error(int error, const char *text)
{
    return complain(error == -ENOMEM ? NO_RESOURCES : BAD_INPUT, "%s",
                    *text ? text : strerror(-error));
}

enum exit_code finish(enum exit_code code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    return complain(NO_RESOURCES, "standard output: %s", strerror(errno));
}

/* ---- options -------------------------------------------------------------------------------- */

static void help(const struct command *self)
{
    printf("Usage: pliant-sim %s %s", self->name, self->usage);
}

/* --NAME=VALUE of one that takes none. */
static bool takes_no_value(const char *given, const struct option *options)
{
    size_t n = strcspn(given, "=");

    for (; options->name; options++)
        if (n > 2 && given[n] == '=' && options->has_arg == no_argument &&
            strlen(options->name) == n - 2 && strncmp(options->name, given + 2, n - 2) == 0)
            return true;
    return false;
}

/* Not one of ours: which one may be meant? */
static void unknown_option(const char *given, const struct option *options,
                           const struct command *self)
{
    struct nearest nearest;
    char name[64];
    size_t n = strcspn(given, "=");

    if (strncmp(given, "--", 2) != 0) {
        usage(self, "%s: there is no option %s", self->name, given);
        return;
    }
    if (takes_no_value(given, options)) {
        usage(self, "%s: %.*s takes no value", self->name, (int)n, given);
        return;
    }
    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n - 2 : (int)sizeof name - 1,
             given + 2);
    nearest_start(&nearest, name);
    for (; options->name; options++)
        nearest_offer(&nearest, options->name);
    if (nearest.best)
        usage(self, "%s: there is no option --%s; did you mean --%s?", self->name, name,
              nearest.best);
    else
        usage(self, "%s: there is no option --%s", self->name, name);
}

int next_option(int argc, char **argv, const struct option *options, const struct command *self,
                enum exit_code *ret_exit)
{
    int at = optind ? optind : 1, option;

    opterr = 0;
    option = getopt_long(argc, argv, ":D:h", options, NULL);
    if (option == 'h') {
        help(self);
        *ret_exit = finish(DONE);
        return '?';
    }
    if (option == ':') {
        *ret_exit = usage(self, "%s: %s needs a value", self->name, argv[optind - 1]);
        return '?';
    }
    if (option == '?') {
        /* a bundle of short options does not move optind on; there is only -D */
        unknown_option(argv[optind > at ? optind - 1 : at], options, self);
        *ret_exit = BAD_INPUT;
    }
    return option;
}

bool take_format(int option, enum report_format *ret)
{
    static const char *const names[] = {
        [REPORT_TEXT] = "text", [REPORT_JSON] = "json", [REPORT_CSV] = "csv"};
    const char *name = option == 'j' ? "json" : option == 'c' ? "csv" : optarg;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum report_format)i;
            return true;
        }
    complain(BAD_INPUT, "--format: text, json or csv, not \"%s\"", name);
    return false;
}

bool take_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *ret >= min && *ret <= max)
        return true;
    complain(BAD_INPUT, "--%s: a whole number %llu..%llu, not \"%s\"", option,
             (unsigned long long)min, (unsigned long long)max, text);
    return false;
}

bool output_is_apart(const char *option, const char *path, const char *const *others, size_t n)
{
    if (*path == '\0' || strcmp(path, "-") == 0) {
        complain(BAD_INPUT,
                 "--%s: \"%s\"; accepted: the name of a file (standard output is "
                 "/dev/stdout)",
                 option, path);
        return false;
    }
    for (size_t i = 0; i < n; i++)
        if (others[i] && strcmp(others[i], "-") != 0 && output_same_file(path, others[i])) {
            complain(BAD_INPUT, "--%s: %s is another input or output as well", option, path);
            return false;
        }
    return true;
}

/* ---- the list of commands ------------------------------------------------------------------- */

static void list_commands(FILE *out)
{
    fputs("Usage: pliant-sim COMMAND [OPTION]...\n"
          "What would the scheduler have done? Runs jobs on simulated clusters.\n\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    fputs("\npliant-sim COMMAND --help tells the options of a command; --version the version.\n"
          "Exit codes: 0 done, 1 the answer is no, 2 bad usage or input, 4 no memory, full disk "
          "or closed pipe.\n",
          out);
}

static enum exit_code unknown_command(const char *name)
{
    struct nearest nearest;

    nearest_start(&nearest, name);
    for (size_t i = 0; i < N_COMMANDS; i++)
        nearest_offer(&nearest, commands[i]->name);
    if (nearest.best)
        return complain(BAD_INPUT, "there is no command \"%s\"; did you mean \"%s\"?", name,
                        nearest.best);
    return complain(BAD_INPUT, "there is no command \"%s\"; pliant-sim --help lists them", name);
}

static enum exit_code dispatch(int argc, char **argv)
{
    if (argc < 2) {
        list_commands(stderr);
        return BAD_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        list_commands(stdout);
        return finish(DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("pliant-sim %s\n", pliant_version());
        return finish(DONE);
    }
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i]->name) == 0)
            return commands[i]->run(argc - 1, argv + 1, commands[i]);
    return unknown_command(argv[1]);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of writing, like a full disk */
    output_clean_on_signals();
    setlocale(LC_CTYPE, "");
    return (int)dispatch(argc, argv);
}

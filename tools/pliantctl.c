/* pliantctl.c - talks to the service: which command, and what all have in common */
#include "pliantctl.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <pliant/pliant.h>

#include "sim/output.h"
#include "util/decimal.h"
#include "util/duration.h"
#include "util/nearest.h"

#define TIMEOUT_DEFAULT_MS 10000
#define LONG_OPTIONS_MAX 24
#define HELP_COLUMN 30

/* ---- errors ---------------------------------------------------------------------------------- */

static void say(const char *format, va_list args)
{
    char text[4096];

    vsnprintf(text, sizeof text, format, args);
    fputs("pliantctl: ", stderr);
    ctl_put(stderr, text);
    fputc('\n', stderr);
}

enum exit_code ctl_complain(enum exit_code code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
    return code;
}

enum exit_code ctl_usage(const struct ctl *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
    if (c->command)
        fprintf(stderr, "Try 'pliantctl %s --help'.\n", c->command->name);
    else
        fputs("Try 'pliantctl --help'.\n", stderr);
    return BAD_INPUT;
}

enum exit_code ctl_finish(enum exit_code code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    return ctl_complain(NO_RESOURCES, "standard output: %s", strerror(errno));
}

/* ---- values ---------------------------------------------------------------------------------- */

bool ctl_take_number(const char *option, const char *text, int64_t min, int64_t max, int64_t *ret)
{
    if (decimal_read_int(text, ret) && *ret >= min && *ret <= max)
        return true;
    ctl_complain(BAD_INPUT, "%s: a whole number %" PRId64 "..%" PRId64 ", not \"%s\"", option, min,
                 max, text);
    return false;
}

bool ctl_take_duration(const char *option, const char *text, int64_t *ret_ms)
{
    if (duration_parse(text, ret_ms) == 0 && *ret_ms >= 0 && *ret_ms <= DOC_INTEGER_MAX)
        return true;
    ctl_complain(BAD_INPUT, "%s: a duration like \"30 s\" (%s), not \"%s\"", option, DURATION_UNITS,
                 text);
    return false;
}

/* One of the words with '|' between them, as the table has them. */
static bool is_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);

    for (; *choices; choices += strcspn(choices, "|"), choices += *choices == '|')
        if (strcspn(choices, "|") == n && strncmp(choices, word, n) == 0)
            return true;
    return false;
}

static const char *choices_of(const struct ctl *c, enum ctl_option_key key)
{
    const struct ctl_option *o = c->command->options;

    while (o->key != key)
        o++;
    return o->value;
}

bool ctl_take_choice(const struct ctl *c, enum ctl_option_key key)
{
    const char *choices = choices_of(c, key);

    if (is_choice(choices, c->given[key]))
        return true;
    ctl_usage(c, "%s: %s, not \"%s\"", c->command->name, choices, c->given[key]);
    return false;
}

/* ---- help ------------------------------------------------------------------------------------ */

static void print_option(const struct ctl_option *o)
{
    char left[128];
    int n = 2;

    if (o->letter)
        n = snprintf(left, sizeof left, "  -%c, --%s%s%s", o->letter, o->name, o->value ? " " : "",
                     o->value ? o->value : "");
    else
        n = snprintf(left, sizeof left, "      --%s%s%s", o->name, o->value ? " " : "",
                     o->value ? o->value : "");
    if (n < HELP_COLUMN)
        printf("%-*s  %s\n", HELP_COLUMN, left, o->help);
    else
        printf("%s\n%*s  %s\n", left, HELP_COLUMN, "", o->help);
}

static void print_help(const struct ctl_command *command)
{
    printf("Usage: pliantctl %s%s%s", command->name, *command->arguments ? " " : "",
           command->arguments);
    for (const struct ctl_option *o = command->options; o->name; o++)
        printf(o->value ? " [--%s %s]%s" : " [--%s%s]%s", o->name, o->value ? o->value : "",
               o->key == CTL_DEFINE ? "..." : "");
    printf("\n%c%s.\n", command->summary[0] - ('a' - 'A'), command->summary + 1);
    if (command->text)
        printf("%s\n", command->text);
    if (command->options[0].name)
        fputs("\n", stdout);
    for (const struct ctl_option *o = command->options; o->name; o++)
        print_option(o);
    fputs("\nOptions of all commands:\n", stdout);
    for (const struct ctl_option *o = ctl_common_options; o->name; o++)
        print_option(o);
}

static void list_commands(FILE *out)
{
    fputs("Usage: pliantctl [OPTION]... COMMAND [ARGUMENT]...\n"
          "Talks to pliantd: jobs, nodes, and why the scheduler does what it does.\n\n",
          out);
    for (const struct ctl_command *command = ctl_commands; command->name; command++)
        fprintf(out, "  %-11s  %s\n", command->name, command->summary);
    fputs(
        "\nThe service is found by --connect, $PLIANT_CLIENTS, or endpoints.json in --state-dir,\n"
        "$PLIANT_STATE_DIR or a default state directory; else it is tcp://127.0.0.1:6181.\n"
        "pliantctl COMMAND --help tells the options of a command.\n"
        "Exit codes: 0 done, 1 the service says no (or the job failed), 2 bad usage or input,\n"
        "3 the service cannot be reached, 4 no memory, full disk or closed pipe.\n",
        out);
}

/* ---- options --------------------------------------------------------------------------------- */

/* The command's options and those of all, as getopt_long() wants them. */
struct parser {
    struct option longs[LONG_OPTIONS_MAX];
    const struct ctl_option *rows[LONG_OPTIONS_MAX];
    char letters[2 * LONG_OPTIONS_MAX + 3];
    size_t n, n_letters;
};

#define VALUE_OF(row) (256 + (int)(row))

static void add_options(struct parser *p, const struct ctl_option *o)
{
    for (; o->name; o++) {
        p->rows[p->n] = o;
        p->longs[p->n] = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                                         VALUE_OF(p->n)};
        p->n++;
        if (!o->letter)
            continue;
        p->letters[p->n_letters++] = o->letter;
        if (o->value)
            p->letters[p->n_letters++] = ':';
    }
}

static void prepare(struct parser *p, const struct ctl_command *command)
{
    *p = (struct parser){.n = 0};
    if (!command)
        p->letters[p->n_letters++] = '+'; /* up to the command's name */
    p->letters[p->n_letters++] = ':';
    add_options(p, ctl_common_options);
    if (command)
        add_options(p, command->options);
}

static const struct ctl_option *row_of(const struct parser *p, int value)
{
    if (value >= VALUE_OF(0))
        return p->rows[value - VALUE_OF(0)];
    for (size_t i = 0; i < p->n; i++)
        if (p->rows[i]->letter == value)
            return p->rows[i];
    return NULL;
}

/* Not one of ours, or a value that none takes. */
static void refuse_option(const struct ctl *c, const struct parser *p, const char *given)
{
    size_t n = strcspn(given, "=");
    struct nearest nearest;
    char name[64];

    if (strncmp(given, "--", 2) != 0 || n - 2 >= sizeof name) {
        ctl_usage(c, "there is no option %s", given);
        return;
    }
    memcpy(name, given + 2, n - 2);
    name[n - 2] = '\0';
    nearest_start(&nearest, name);
    for (size_t i = 0; i < p->n; i++) {
        nearest_offer(&nearest, p->rows[i]->name);
        if (given[n] == '=' && strcmp(p->rows[i]->name, name) == 0) {
            ctl_usage(c, "--%s takes no value", name);
            return;
        }
    }
    if (nearest.best)
        ctl_usage(c, "there is no option --%s; did you mean --%s?", name, nearest.best);
    else
        ctl_usage(c, "there is no option --%s", name);
}

/* The options at hand; argv moves on by what getopt_long() leaves in optind. */
static bool take_options(struct ctl *c, int argc, char **argv, enum exit_code *ret)
{
    struct parser p;
    int value, at;

    prepare(&p, c->command);
    opterr = 0;
    optind = 0; /* begin anew: the words before the command have been read */
    while ((at = optind ? optind : 1, value = getopt_long(argc, argv, p.letters, p.longs, NULL)) !=
           -1) {
        const struct ctl_option *row = row_of(&p, value);
        const char **define;

        *ret = BAD_INPUT;
        if (value == ':') {
            ctl_usage(c, "%s needs a value", argv[optind - 1]);
            return false;
        }
        if (!row) {
            const char *given = argv[optind > at ? optind - 1 : at];

            /* in a bundle of letters behind a word optind stays at the word */
            refuse_option(c, &p, *given == '-' ? given : (char[]){'-', (char)optopt, '\0'});
            return false;
        }
        c->given[row->key] = optarg ? optarg : "";
        if (row->key != CTL_DEFINE)
            continue;
        define = vec_push(NULL, &c->defines);
        if (!define) {
            *ret = ctl_complain(NO_RESOURCES, "no memory");
            return false;
        }
        *define = optarg;
    }
    return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The k-th placeholder of `arguments`: where it begins and how long it is; 0: no more. */
static size_t placeholder(const char *arguments, size_t k, const char **ret)
{
    for (;; k--) {
        arguments += strspn(arguments, " ");
        *ret = arguments;
        if (k == 0 || !*arguments)
            return strcspn(arguments, " ");
        arguments += strcspn(arguments, " ");
    }
}

/* As many words as the command wants. */
static bool check_words(const struct ctl *c)
{
    const char *at = "";
    size_t k = 0, n;
    bool many = false;

    for (; (n = placeholder(c->command->arguments, k, &at)) > 0; k++) {
        many = n > 3 && strncmp(at + n - 3, "...", 3) == 0;
        if (k >= c->n_words && *at != '[') {
            ctl_usage(c, "%s: %.*s is missing", c->command->name, (int)(many ? n - 3 : n), at);
            return false;
        }
    }
    if (c->n_words <= k || many)
        return true;
    ctl_usage(c, "%s: one word too many: \"%s\"", c->command->name, c->words[k]);
    return false;
}

/* ---- which command --------------------------------------------------------------------------- */

static const struct ctl_command *find_command(const char *name)
{
    struct nearest nearest;
    const struct ctl_command *command = ctl_commands;

    nearest_start(&nearest, name);
    for (; command->name; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
        nearest_offer(&nearest, command->name);
    }
    if (nearest.best)
        ctl_complain(BAD_INPUT, "there is no command \"%s\"; did you mean \"%s\"?", name,
                     nearest.best);
    else
        ctl_complain(BAD_INPUT, "there is no command \"%s\"; pliantctl --help lists them", name);
    return NULL;
}

static enum exit_code run(struct ctl *c)
{
    enum exit_code code;

    if (c->given[CTL_HELP]) {
        print_help(c->command);
        return ctl_finish(DONE);
    }
    c->timeout_ms = TIMEOUT_DEFAULT_MS;
    if (!check_words(c) || (c->given[CTL_TIMEOUT] &&
                            !ctl_take_duration("--timeout", c->given[CTL_TIMEOUT], &c->timeout_ms)))
        return BAD_INPUT;
    code = c->command->run(c);
    ctl_close(c);
    return ctl_finish(code);
}

static enum exit_code dispatch(struct ctl *c, int argc, char **argv)
{
    enum exit_code code;

    if (!take_options(c, argc, argv, &code))
        return code;
    if (c->given[CTL_VERSION]) {
        printf("pliantctl %s\n", pliant_version());
        return ctl_finish(DONE);
    }
    if (optind >= argc) {
        list_commands(c->given[CTL_HELP] ? stdout : stderr);
        return c->given[CTL_HELP] ? ctl_finish(DONE) : BAD_INPUT;
    }
    argc -= optind;
    argv += optind;
    c->command = find_command(argv[0]);
    if (!c->command)
        return BAD_INPUT;
    if (!take_options(c, argc, argv, &code))
        return code;
    c->words = argv + optind;
    c->n_words = (size_t)(argc - optind);
    return run(c);
}

int main(int argc, char **argv)
{
    struct ctl c = {.command = NULL};
    enum exit_code code;

    rpc_prepare_process();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of writing, like a full disk */
    output_clean_on_signals();
    setlocale(LC_CTYPE, "");
    code = dispatch(&c, argc, argv);
    vec_free(NULL, &c.defines);
    return (int)code;
}

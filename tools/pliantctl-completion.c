/* pliantctl-completion.c - completion scripts, from the table of commands */
#include <stdlib.h>
#include <string.h>

#include "pliantctl.h"

/* What a placeholder stands for. */
enum word_kind { WORD_ANY, WORD_FILE, WORD_DIR, WORD_JOB, WORD_NODE, WORD_CHOICE };

static enum word_kind kind_of(const char *placeholder, size_t n)
{
    static const struct {
        const char *name;
        enum word_kind kind;
    } kinds[] = {{"FILE", WORD_FILE}, {"DIR", WORD_DIR}, {"JOB", WORD_JOB}, {"NODE", WORD_NODE}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == n && strncmp(kinds[i].name, placeholder, n) == 0)
            return kinds[i].kind;
    /* choices are lower case, shapes like VERTEX=MAX|... are not */
    return *placeholder >= 'a' && *placeholder <= 'z' && memchr(placeholder, '|', n) ? WORD_CHOICE
                                                                                     : WORD_ANY;
}

/* The first placeholder of a command without its brackets. */
static const char *first_word(const struct ctl_command *command, size_t *ret_n)
{
    const char *at = command->arguments + (*command->arguments == '[');

    *ret_n = strcspn(at, " ].");
    return at;
}

/* "a|b" as "a b". */
static void print_choices(const char *choices, size_t n)
{
    for (size_t i = 0; i < n; i++)
        putchar(choices[i] == '|' ? ' ' : choices[i]);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_reply(const char *placeholder, size_t n)
{
    switch (kind_of(placeholder, n)) {
    case WORD_FILE:
        printf("COMPREPLY=($(compgen -f -- \"$cur\"))");
        break;
    case WORD_DIR:
        printf("COMPREPLY=($(compgen -d -- \"$cur\"))");
        break;
    case WORD_JOB:
    case WORD_NODE:
        printf("COMPREPLY=($(compgen -W \"$(_pliantctl_words %s)\" -- \"$cur\"))",
               kind_of(placeholder, n) == WORD_JOB ? "jobs" : "nodes");
        break;
    case WORD_CHOICE:
        printf("COMPREPLY=($(compgen -W '");
        print_choices(placeholder, n);
        printf("' -- \"$cur\"))");
        break;
    case WORD_ANY:
        printf(":");
        break;
    }
}

/* `command|--option) reply ;;` for each option with a value. */
static void bash_values(const char *command, const struct ctl_option *o)
{
    for (; o->name; o++) {
        if (!o->value)
            continue;
        printf("    %s,--%s", command, o->name);
        if (o->letter)
            printf(" | %s,-%c", command, o->letter);
        printf(")\n        ");
        bash_reply(o->value, strlen(o->value));
        printf("\n        return\n        ;;\n");
    }
}

static void option_names(const struct ctl_option *o)
{
    for (; o->name; o++)
        printf(" --%s", o->name);
}

static void bash(void)
{
    size_t n;

    fputs("# bash completion for pliantctl; made by 'pliantctl completion bash'\n"
          "_pliantctl_words()\n{\n"
          "    local i options=()\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case ${COMP_WORDS[i]} in\n"
          "        --connect | -c | --state-dir | --key | --server-key)\n"
          "            options+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i + 1]}\")\n"
          "            ;;\n"
          "        esac\n"
          "    done\n"
          "    pliantctl \"${options[@]}\" --timeout 500ms completion \"$1\" 2>/dev/null\n}\n\n"
          "_pliantctl()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command='' words=0 i word options='",
          stdout);
    option_names(ctl_common_options);
    fputs("'\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        word=${COMP_WORDS[i]}\n"
          "        case $command,$word in\n"
          "        *,-c",
          stdout);
    for (const struct ctl_option *o = ctl_common_options; o->name; o++)
        if (o->value)
            printf(" | *,--%s", o->name);
    for (const struct ctl_command *c = ctl_commands; c->name; c++)
        for (const struct ctl_option *o = c->options; o->name; o++) {
            if (o->value)
                printf(" | %s,--%s", c->name, o->name);
            if (o->value && o->letter)
                printf(" | %s,-%c", c->name, o->letter);
        }
    fputs(") ((i++)) ;;\n"
          "        *,-*) ;;\n"
          "        ,*) command=$word ;;\n"
          "        *) ((words++)) ;;\n"
          "        esac\n"
          "    done\n"
          "    COMPREPLY=()\n"
          "    case $command,$prev in\n",
          stdout);
    bash_values("*", ctl_common_options);
    for (const struct ctl_command *c = ctl_commands; c->name; c++)
        bash_values(c->name, c->options);
    fputs("    esac\n    case $command in\n    '')\n"
          "        [[ $cur == -* ]] || options='",
          stdout);
    for (const struct ctl_command *c = ctl_commands; c->name; c++)
        printf("%s%s", c == ctl_commands ? "" : " ", c->name);
    fputs("'\n        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
          "        return\n        ;;\n",
          stdout);
    for (const struct ctl_command *c = ctl_commands; c->name; c++) {
        const char *word = first_word(c, &n);

        printf("    %s)\n        options+='", c->name);
        option_names(c->options);
        printf("'\n");
        if (n > 0) {
            printf("        if [[ $cur != -* && $words == 0 ]]; then\n            ");
            bash_reply(word, n);
            printf("\n            return\n        fi\n");
        }
        printf("        ;;\n");
    }
    fputs("    esac\n"
          "    [[ $cur != -* ]] || COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
          "}\n"
          "complete -o filenames -F _pliantctl pliantctl\n",
          stdout);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* In single quotes, and ':' and brackets are signs to _arguments. */
static void zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (*text == ':' || *text == '[' || *text == ']')
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void zsh_action(const char *placeholder, size_t n)
{
    switch (kind_of(placeholder, n)) {
    case WORD_FILE:
        fputs("_files", stdout);
        break;
    case WORD_DIR:
        fputs("_directories", stdout);
        break;
    case WORD_JOB:
        fputs("_pliantctl_words jobs", stdout);
        break;
    case WORD_NODE:
        fputs("_pliantctl_words nodes", stdout);
        break;
    case WORD_CHOICE:
        putchar('(');
        print_choices(placeholder, n);
        putchar(')');
        break;
    case WORD_ANY:
        putchar(' ');
        break;
    }
}

static void zsh_option(const char *name, const struct ctl_option *o)
{
    printf("'%s%s[", o->key == CTL_DEFINE ? "*" : "", name);
    zsh_text(o->help);
    putchar(']');
    if (o->value) {
        putchar(':');
        zsh_text(o->value);
        putchar(':');
        zsh_action(o->value, strlen(o->value));
    }
    printf("' ");
}

static void zsh_options(const struct ctl_option *o)
{
    char name[64];

    for (; o->name; o++) {
        snprintf(name, sizeof name, "--%s", o->name);
        zsh_option(name, o);
        if (!o->letter)
            continue;
        snprintf(name, sizeof name, "-%c", o->letter);
        zsh_option(name, o);
    }
}

static void zsh_command(const struct ctl_command *c)
{
    size_t n;
    const char *word = first_word(c, &n);

    printf("        %s) _arguments $common ", c->name);
    zsh_options(c->options);
    if (n > 0) {
        printf("'1:");
        for (size_t i = 0; i < n; i++)
            putchar(word[i] == ':' ? '=' : word[i]);
        putchar(':');
        zsh_action(word, n);
        printf("' '*: : '");
    }
    printf(" ;;\n");
}

static void zsh(void)
{
    fputs("#compdef pliantctl\n"
          "# zsh completion for pliantctl; made by 'pliantctl completion zsh'\n"
          "_pliantctl_words() {\n"
          "    local -a found\n"
          "    found=(${(f)\"$(_call_program words pliantctl --timeout 500ms completion $1"
          " 2>/dev/null)\"})\n"
          "    compadd -a found\n}\n\n"
          "_pliantctl() {\n"
          "    local curcontext=$curcontext state line\n"
          "    local -a common commands\n"
          "    common=(",
          stdout);
    zsh_options(ctl_common_options);
    fputs(")\n    commands=(\n", stdout);
    for (const struct ctl_command *c = ctl_commands; c->name; c++) {
        printf("        '%s:", c->name);
        zsh_text(c->summary);
        printf("'\n");
    }
    fputs("    )\n"
          "    _arguments -C $common '1:command:->command' '*::argument:->argument'\n"
          "    case $state in\n"
          "    command) _describe command commands ;;\n"
          "    argument)\n        case $line[1] in\n",
          stdout);
    for (const struct ctl_command *c = ctl_commands; c->name; c++)
        zsh_command(c);
    fputs("        esac\n        ;;\n    esac\n}\n\n_pliantctl \"$@\"\n", stdout);
}

/* ---- words that the service knows ------------------------------------------------------------ */

static enum exit_code names(struct ctl *c, enum message_type type, const char *list,
                            const char *const *keys)
{
    enum exit_code code;

    ctl_request(c);
    code = ctl_call(c, type);
    if (code != DONE)
        return code;
    for (const struct doc *d = ctl_first(c->reply.root, list); d; d = d->next)
        for (const char *const *key = keys; *key; key++) {
            ctl_put(stdout, ctl_text(d, *key));
            putchar('\n');
        }
    return DONE;
}

enum exit_code ctl_completion(struct ctl *c)
{
    static const char *const job[] = {"name", "job_id", NULL}, *const node[] = {"node", NULL};
    const char *what = c->words[0];

    if (strcmp(what, "bash") == 0)
        bash();
    else if (strcmp(what, "zsh") == 0)
        zsh();
    else if (strcmp(what, "jobs") == 0)
        return names(c, MESSAGE_LIST, "jobs", job);
    else if (strcmp(what, "nodes") == 0)
        return names(c, MESSAGE_NODES, "nodes", node);
    else
        return ctl_usage(c, "completion: %s, not \"%s\"", c->command->arguments, what);
    return DONE;
}

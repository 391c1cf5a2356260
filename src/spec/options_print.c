/* options_print.c - the table of options as text, JSON Lines, CSV and Markdown */
#include <errno.h>
#include <string.h>

#include "failover/labels.h"
#include "spec/json_out.h"
#include "spec/options.h"

/* A chapter of the table begins with this option. */
static const struct {
    const char *first, *title;
} chapters[] = {
    {"jobmanager.scheduler", "Which scheduler"},
    {"jobmanager.adaptive-scheduler.submission.resource-wait-timeout", "Waiting for resources"},
    {"jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling", "Executing"},
    {"jobmanager.adaptive-scheduler.prefer-minimal-taskmanagers", "Placement"},
    {"execution.batch.adaptive.auto-parallelism.enabled", "Batch jobs"},
    {"execution.checkpointing.interval", "Checkpoints"},
    {"restart-strategy.type", "Failures"},
    {"pliant.drain.lead", "Drains"},
    {"worker-group.min-workers", "Worker groups"},
    {"worker-group.preemption-grace", "Worker groups: drains"},
    {"worker-group.resize-monitor-interval", "Worker groups: sizes"},
    {"worker-group.start-timeout", "Worker groups: launch and health"},
    {"worker-group.storage-path", "Worker groups: checkpoints"},
    {"worker-group.actor.max-restarts", "Actors and placement groups"},
    {"slot.idle.timeout", "Slots, nodes, histories"},
    {"pliant.sim.deploy-latency", "The simulated cluster"},
};

static const char *chapter_at(const struct pliant_option *o)
{
    for (size_t i = 0; i < sizeof chapters / sizeof *chapters; i++)
        if (strcmp(chapters[i].first, o->key) == 0)
            return chapters[i].title;
    return NULL;
}

static const char *type_name(enum pliant_option_type type)
{
    switch (type) {
    case PLIANT_OPTION_DURATION:
        return "duration";
    case PLIANT_OPTION_INT:
        return "integer";
    case PLIANT_OPTION_SIZE:
        return "size";
    case PLIANT_OPTION_DOUBLE:
        return "number";
    case PLIANT_OPTION_BOOL:
        return "boolean";
    case PLIANT_OPTION_ENUM:
        return "word";
    case PLIANT_OPTION_STRING:
        return "text";
    }
    return "";
}

/* The words for the default, or for that of reactive mode. */
static const char *or_unset(const char *text)
{
    return *text ? text : "unset";
}

static void print_text(FILE *out, const struct pliant_option *o)
{
    const char *title = chapter_at(o);

    if (title)
        fprintf(out, "%s%s\n\n", strcmp(title, chapters[0].title) ? "\n" : "", title);
    fprintf(out, "  %s = %s", o->key, or_unset(o->default_text));
    if (o->reactive_default_text)
        fprintf(out, " (reactive: %s)", o->reactive_default_text);
    fprintf(out, "\n      %s%s\n      accepted: %s\n", o->no_effect ? "no effect: " : "", o->help,
            o->accepted);
    for (size_t i = 0; i < 2 && o->old_keys[i]; i++)
        fprintf(out, "      older name: %s\n", o->old_keys[i]);
}

static void print_json(struct json *j, const struct pliant_option *o)
{
    json_begin(j, NULL, '{');
    json_string(j, "key", o->key);
    json_string(j, "type", type_name(o->type));
    json_string(j, "default", *o->default_text ? o->default_text : NULL);
    if (o->reactive_default_text)
        json_string(j, "reactive_default", o->reactive_default_text);
    json_string(j, "accepted", o->accepted);
    json_begin(j, "older_names", '[');
    for (size_t i = 0; i < 2 && o->old_keys[i]; i++)
        json_string(j, NULL, o->old_keys[i]);
    json_end(j, ']');
    json_bool(j, "effect", !o->no_effect);
    json_string(j, "help", o->help);
    json_end(j, '}');
    json_line(j);
}

/* No text of the table has a quote in it. */
static void print_csv(FILE *out, const struct pliant_option *o)
{
    fprintf(out, "%s,%s,\"%s\",\"%s\",\"%s\",%s,%s,\"%s\"\n", o->key, type_name(o->type),
            o->default_text, o->reactive_default_text ? o->reactive_default_text : o->default_text,
            o->accepted, o->old_keys[0] ? o->old_keys[0] : "", o->no_effect ? "false" : "true",
            o->help);
}

/* A cell of a table: a bar would end it. */
static void print_cell(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void print_markdown(FILE *out, const struct pliant_option *o)
{
    const char *title = chapter_at(o);

    if (title)
        fprintf(out, "\n## %s\n\n| option | default | accepted | meaning |\n|---|---|---|---|\n",
                title);
    fprintf(out, "| `%s` | %s", o->key, or_unset(o->default_text));
    if (o->reactive_default_text)
        fprintf(out, "; reactive: %s", o->reactive_default_text);
    fprintf(out, " | ");
    print_cell(out, o->accepted);
    fprintf(out, " | %s", o->no_effect ? "No effect: " : "");
    print_cell(out, o->help);
    for (size_t i = 0; i < 2 && o->old_keys[i]; i++)
        fprintf(out, "; older name `%s`", o->old_keys[i]);
    fprintf(out, " |\n");
}

static const char markdown_head[] =
    "# Options\n\n"
    "Made from the table in the source by `pliant-sim options --markdown`. Any option can be set "
    "by\n"
    "`-D name=value`, in the job's `config`, or in the option file (YAML or JSON; dotted names "
    "and\n"
    "nested maps are the same), in this order of precedence. A restart strategy is taken whole "
    "from\n"
    "the first of them that names its type. An older name is read where the present one is "
    "absent.\n"
    "\n"
    "Durations are a whole number and a unit (d, h, min, s, ms, us, ns; long names too; a number\n"
    "alone is milliseconds), or ISO-8601 such as `PT30S`. Words and units may have any case.\n";

static const char label_rules[] =
    "\n## Rules of pliant.failure-labels\n\n"
    "A rule is conditions, an arrow, and labels; rules are divided by `;` or stand on lines of "
    "their own:\n\n"
    "```yaml\n"
    "pliant.failure-labels: |\n"
    "  cause=*CUDA out of memory* -> type=oom, owner=user\n"
    "  exit=129-255, node=gpu-* -> type=killed, pool=gpu\n"
    "  kind=node -> type=node, owner=provider\n"
    "```\n\n"
    "| condition | holds when |\n|---|---|\n"
    "| `cause=PATTERN` | all of the cause's text, of which 512 bytes are kept, fits the pattern |\n"
    "| `node=PATTERN` | the node's name does; of a failure without a node that is the empty text "
    "|\n"
    "| `vertex=PATTERN` | the vertex's name does; the same |\n"
    "| `exit=137`, `exit=1-125` | the task ended with this exit code, or one of these. A task "
    "that a signal killed counts as in a shell: 128 and the signal's number |\n"
    "| `kind=task`, `kind=node`, `kind=global` | a task failed; its node was lost; something "
    "failed that is no task |\n\n"
    "In a pattern `*` is any text, `?` one letter, all else itself; case counts. A rule holds when "
    "all its\nconditions do. Rules are looked at in their order, and for each key the first that "
    "holds gives the\nvalue: put what is special first. A pattern or value with `,`, `;` or `->` "
    "in it stands between quotation\nmarks; there is no way to write a quotation mark in them but "
    "`?`. ";

static const char label_uses[] =
    "Failures have their labels in the exception history, concurrent failures too, and in what is "
    "told of\nthem: `pliantctl failures`, the `failure` event, the log, `pliant-sim run`. Whether "
    "the job restarts does not\ndepend on them.\n";

static void print_markdown_tail(FILE *out)
{
    fputs(label_rules, out);
    fprintf(out,
            "Keys are up to %d letters, digits and\n`_ . - /`, values up to %d bytes; there are at "
            "most %d rules with %d conditions, %d labels and %d keys in all,\nin %d bytes.\n\n",
            LABEL_KEY_MAX, LABEL_VALUE_MAX, LABEL_RULES_MAX, LABEL_CONDITIONS_MAX, LABELS_MAX,
            LABEL_KEYS_MAX, PLIANT_FAILURE_LABELS_MAX);
    fputs(label_uses, out);
}

static int print_all_json(FILE *out)
{
    const struct pliant_option *o;
    struct json j;
    int r;

    json_init(&j, out);
    for (size_t i = 0; (o = pliant_option_at(i)) != NULL; i++)
        print_json(&j, o);
    r = json_flush(&j);
    json_free(&j);
    return r;
}

int options_print(FILE *out, enum options_format format)
{
    void (*print)(FILE *, const struct pliant_option *) = print_text;
    const struct pliant_option *o;

    if (format == OPTIONS_JSON)
        return print_all_json(out);
    if (format == OPTIONS_CSV) {
        print = print_csv;
        fprintf(out, "key,type,default,reactive_default,accepted,older_name,effect,help\n");
    } else if (format == OPTIONS_MARKDOWN) {
        print = print_markdown;
        fputs(markdown_head, out);
    }
    errno = 0;
    for (size_t i = 0; (o = pliant_option_at(i)) != NULL; i++)
        print(out, o);
    if (format == OPTIONS_MARKDOWN)
        print_markdown_tail(out);
    if (fflush(out) != 0 || ferror(out))
        return -(errno ? errno : EIO);
    return 0;
}

/* options.c - see options.h; the table is printed in options_print.c */
#include "spec/options.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "spec/doc_build.h"
#include "spec/memory.h"
#include "util/duration.h"
#include "util/nearest.h"

#define KEY_MAX 255u    /* bytes of a dotted name */
#define NAMES_SHOWN 12u /* of options that are ignored */
#define TYPO_MAX 2u     /* letters that may be wrong in one of them to be taken for ours */
#define GROUP "worker-group"
#define RETRY "jobmanager.adaptive-scheduler.retry-execution-graph-creation."

/* Names below these are Pliant's to know; a typo there is an error. */
static const char *const prefixes[] = {
    "execution.batch.adaptive.auto-parallelism",
    "execution.checkpointing",
    "heartbeat",
    "jobmanager.adaptive-scheduler",
    "jobmanager.scheduler",
    "pliant",
    "restart-strategy",
    "scheduler-mode",
    "slot",
    "web.adaptive-scheduler",
    "worker-group",
};

/* Flink has these below the prefixes, and they mean nothing to Pliant. */
static const char *const foreign[] = {
    "execution.checkpointing.aligned-checkpoint-timeout",
    "execution.checkpointing.cleaner.parallel-mode",
    "execution.checkpointing.create-subdir",
    "execution.checkpointing.data-inline-threshold",
    "execution.checkpointing.externalized-checkpoint-retention",
    "execution.checkpointing.file-merging",
    "execution.checkpointing.force-unaligned",
    "execution.checkpointing.incremental",
    "execution.checkpointing.interval-during-backlog",
    "execution.checkpointing.local-backup",
    "execution.checkpointing.max-concurrent-checkpoints",
    "execution.checkpointing.mode",
    "execution.checkpointing.snapshot-compression",
    "execution.checkpointing.storage",
    "execution.checkpointing.unaligned",
    "execution.checkpointing.write-buffer-size",
    "heartbeat.rpc-failure-threshold",
};

#define N(array) (sizeof(array) / sizeof *(array))

/* `prefix` itself, or a name below it. */
static bool is_below(const char *key, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(key, prefix, n) == 0 && (key[n] == '\0' || key[n] == '.');
}

static bool is_below_one_of(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_below(key, list[i]))
            return true;
    return false;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Where a setting stands: a document and the place in it, or the command line. */
struct origin {
    enum options_layer layer;
    const struct doc_file *f;
    const struct doc *at; /* NULL: no line */
};

static int unknown(const struct origin *from, const char *key, struct spec_error *err)
{
    const char *nearest = pliant_option_nearest(key);
    const char *shown = from->at ? "" : key, *colon = from->at ? "" : ": ";

    if (nearest)
        return doc_error(from->f, from->at, err, "%s%sno such option; did you mean %s?", shown,
                         colon, nearest);
    return doc_error(from->f, from->at, err,
                     "%s%sno such option; the table of options has the known ones", shown, colon);
}

/* The sentence of a config's error says the option first, as a document's error does. */
static int bad_value(const struct origin *from, const char *key, const struct pliant_error *why,
                     struct spec_error *err)
{
    size_t n = strlen(key);
    bool repeats = from->at && strncmp(why->text, key, n) == 0 && why->text[n] == ':';

    return doc_error(from->f, from->at, err, "%s", repeats ? why->text + n + 2 : why->text);
}

static int no_memory(const struct origin *from, struct spec_error *err)
{
    return doc_no_memory(from->f, err);
}

static char *copy(const char *text)
{
    return mem_text(spec_memory, text, strlen(text));
}

static struct option_setting *find_setting(const struct options *o, enum options_layer layer,
                                           const struct pliant_option *option, bool old)
{
    for (size_t i = 0; i < o->settings.n; i++) {
        struct option_setting *s = &o->settings.v[i];

        if (s->option == option && s->layer == layer && s->old == old)
            return s;
    }
    return NULL;
}

static void free_setting(struct option_setting *s)
{
    mem_free(spec_memory, s->key);
    mem_free(spec_memory, s->text);
    mem_free(spec_memory, s->file);
}

static int add_setting(struct options *o, const struct origin *from,
                       const struct pliant_option *option, const char *key, const char *text,
                       struct spec_error *err)
{
    bool old = strcmp(option->key, key) != 0;
    struct option_setting *s = find_setting(o, from->layer, option, old);

    if (s && from->layer != OPTIONS_COMMAND_LINE)
        return doc_error(from->f, from->at, err, "is set twice, first in line %" PRIu32, s->line);
    if (!s)
        s = vec_push(spec_memory, &o->settings);
    else
        free_setting(s);
    if (!s)
        return no_memory(from, err);
    *s = (struct option_setting){
        .option = option,
        .layer = from->layer,
        .old = old,
        .key = copy(key),
        .text = copy(text),
        .file = copy(from->f->name),
        .line = from->at ? from->at->line : 0,
    };
    return s->key && s->text && s->file ? 0 : no_memory(from, err);
}

static int ignore(struct options *o, const struct origin *from, const char *key,
                  struct spec_error *err)
{
    char **name;

    name = vec_push(spec_memory, &o->ignored);
    if (!name)
        return no_memory(from, err);
    *name = copy(key);
    if (*name)
        return 0;
    o->ignored.n--;
    return no_memory(from, err);
}

/* `text` NULL: the value is no scalar. */
static int add(struct options *o, const struct origin *from, const char *key, const char *text,
               struct spec_error *err)
{
    const struct pliant_option *option = pliant_option_find(key);
    struct pliant_config scratch = {0}; /* setting one option looks at no other */
    struct pliant_error why;

    if (!option && is_below_one_of(key, prefixes, N(prefixes)) &&
        !is_below_one_of(key, foreign, N(foreign)))
        return unknown(from, key, err);
    if (!option)
        return ignore(o, from, key, err);
    if (!text)
        return doc_error(from->f, from->at, err, "is %s; accepted: %s",
                         doc_kind_name(from->at->kind), option->accepted);
    if (pliant_config_set(&scratch, key, text, &why) < 0)
        return bad_value(from, key, &why, err);
    return add_setting(o, from, option, key, text, err);
}

/* All that is below a map, whose own name is key[0..n). */
static int flatten(struct options *o, enum options_layer layer, const struct doc_file *f,
                   const struct doc *map, char key[KEY_MAX + 1], size_t n, struct spec_error *err)
{
    int r = 0;

    for (const struct doc *c = map->child; c && r == 0; c = c->next) {
        const struct origin from = {layer, f, c};
        size_t length = strlen(c->key), dot = n > 0;

        if (length == 0)
            return doc_error(f, c, err, "has no name; accepted: the name of an option");
        if (length > KEY_MAX - n - dot)
            return doc_error(f, c, err, "the name is longer than %u bytes", KEY_MAX);
        memcpy(key + n, ".", dot);
        memcpy(key + n + dot, c->key, length + 1);
        if (c->kind == DOC_MAP)
            r = flatten(o, layer, f, c, key, n + dot + length, err);
        else
            r = add(o, &from, key, doc_is_scalar(c) ? c->text : NULL, err);
    }
    return r;
}

int options_add(struct options *o, enum options_layer layer, const struct doc_file *f,
                const struct doc *map, struct spec_error *err)
{
    char key[KEY_MAX + 1];

    if (!map || map->kind == DOC_NULL)
        return 0;
    if (map->kind != DOC_MAP)
        return doc_error(f, map, err, "is %s; accepted: a map of options",
                         doc_kind_name(map->kind));
    return flatten(o, layer, f, map, key, 0, err);
}

const char *const options_group_keys[] = {"parallelism", "command", "env", "cwd", "sim", NULL};

static bool is_group_key(const char *key)
{
    for (const char *const *k = options_group_keys; *k; k++)
        if (strcmp(key, *k) == 0)
            return true;
    return doc_is_extra(key);
}

static int add_member(struct options *o, const struct doc_file *f, const struct doc *c,
                      struct spec_error *err)
{
    const struct origin from = {OPTIONS_JOB, f, c};
    char key[KEY_MAX + 1];
    size_t n = strlen(c->key);

    if (n == 0 || n + sizeof GROUP > KEY_MAX)
        return doc_error(f, c, err, "the name has %zu bytes; accepted: the name of an option", n);
    snprintf(key, sizeof key, GROUP ".%s", c->key);
    if (c->kind == DOC_MAP)
        return flatten(o, OPTIONS_JOB, f, c, key, n + sizeof GROUP, err);
    return add(o, &from, key, doc_is_scalar(c) ? c->text : NULL, err);
}

int options_add_job(struct options *o, const struct doc_file *f, const struct doc *config,
                    const struct doc *group, struct spec_error *err)
{
    int r = options_add(o, OPTIONS_JOB, f, config, err);

    o->worker_group = group != NULL;
    for (const struct doc *c = group ? group->child : NULL; c && r == 0; c = c->next)
        if (!is_group_key(c->key))
            r = add_member(o, f, c, err);
    return r;
}

int options_read(struct options *o, const char *path, struct spec_error *err)
{
    struct doc_file f;
    int r = doc_read(path, OPTIONS_FILE_MAX, &f, err);

    if (r < 0)
        return r;
    r = options_add(o, OPTIONS_FILE, &f, f.root, err);
    doc_free(&f);
    return r;
}

int options_define(struct options *o, const char *assignment, struct spec_error *err)
{
    const struct doc_file f = {.name = "-D"};
    const struct origin from = {OPTIONS_COMMAND_LINE, &f, NULL};
    const char *equals = strchr(assignment, '=');
    size_t n = equals ? (size_t)(equals - assignment) : 0;
    char key[KEY_MAX + 1];

    if (n == 0 || n > KEY_MAX)
        return doc_error(&f, NULL, err, "\"%.100s\"; accepted: name=value", assignment);
    memcpy(key, assignment, n);
    key[n] = '\0';
    return add(o, &from, key, equals + 1, err);
}

int options_copy(const struct options *from, struct options *ret, struct spec_error *err)
{
    int r = 0;

    for (size_t i = 0; i < from->settings.n && r == 0; i++) {
        const struct option_setting *s = &from->settings.v[i];
        const struct doc_file f = {.name = s->file};
        const struct doc at = {.line = s->line};
        const struct origin origin = {s->layer, &f, s->line ? &at : NULL};

        r = add_setting(ret, &origin, s->option, s->key, s->text, err);
    }
    for (size_t i = 0; i < from->ignored.n && r == 0; i++) {
        const struct doc_file f = {.name = "options"};
        const struct origin origin = {OPTIONS_FILE, &f, NULL};

        r = ignore(ret, &origin, from->ignored.v[i], err);
    }
    return r;
}

void options_forget(struct options *o, const char *key)
{
    const struct pliant_option *option = pliant_option_find(key);
    size_t kept = 0;

    for (size_t i = 0; i < o->settings.n; i++) {
        if (o->settings.v[i].option == option)
            free_setting(&o->settings.v[i]);
        else
            o->settings.v[kept++] = o->settings.v[i];
    }
    o->settings.n = kept;
}

void options_free(struct options *o)
{
    for (size_t i = 0; i < o->settings.n; i++)
        free_setting(&o->settings.v[i]);
    for (size_t i = 0; i < o->ignored.n; i++)
        mem_free(spec_memory, o->ignored.v[i]);
    vec_free(spec_memory, &o->settings);
    vec_free(spec_memory, &o->ignored);
}

/* ---- who goes first -------------------------------------------------------------------------- */

/* The type of the restart strategy that an option is a parameter of, or NULL. */
static const struct pliant_option *strategy_of(const struct pliant_option *option)
{
    static const char *const strategies[] = {"restart-strategy", RETRY "restart-strategy"};
    const struct pliant_option *type;

    for (size_t i = 0; i < N(strategies); i++) {
        if (!is_below(option->key, strategies[i]))
            continue;
        type = pliant_option_find(strategies[i]); /* the older name of its type */
        return type == option ? NULL : type;
    }
    return NULL;
}

/* In one layer the present name goes before the older ones [S-OPT-3]. */
static const struct option_setting *in_layer(const struct options *o, enum options_layer layer,
                                             const struct pliant_option *option)
{
    const struct option_setting *s = find_setting(o, layer, option, false);

    return s ? s : find_setting(o, layer, option, true);
}

static const struct option_setting *first_of_layers(const struct options *o,
                                                    const struct pliant_option *option)
{
    const struct option_setting *s = in_layer(o, OPTIONS_COMMAND_LINE, option);

    if (!s)
        s = in_layer(o, OPTIONS_JOB, option);
    return s ? s : in_layer(o, OPTIONS_FILE, option);
}

/* The setting that counts, or NULL: nobody's. Parameters of a restart strategy come from where its
 * type is named, and from nowhere when it is not [S-OPT-1, S-POL-6]. */
static const struct option_setting *winner(const struct options *o,
                                           const struct pliant_option *option)
{
    const struct pliant_option *type = strategy_of(option);
    const struct option_setting *named;

    if (!type)
        return first_of_layers(o, option);
    named = first_of_layers(o, type);
    return named ? in_layer(o, named->layer, option) : NULL;
}

/* ---- what they come to ----------------------------------------------------------------------- */

/* `key` is wrong together with others: where was it set? */
static int error_at(const struct options *o, const char *key, const char *text,
                    struct spec_error *err)
{
    const struct option_setting *s = winner(o, pliant_option_find(key));
    const struct doc_file f = {.name = s ? s->file : "options"};
    const struct doc at = {.line = s ? s->line : 0};

    return doc_error(&f, s && s->line ? &at : NULL, err, "%s", text);
}

/* The host's options among each other. */
static int check_heartbeat(const struct options *o, struct spec_error *err)
{
    if (options_duration_ms(o, "heartbeat.timeout") > options_duration_ms(o, "heartbeat.interval"))
        return 0;
    return error_at(o, "heartbeat.timeout",
                    "heartbeat.timeout: not longer than heartbeat.interval; accepted: a longer "
                    "duration",
                    err);
}

int options_resolve(const struct options *o, struct pliant_config *ret, struct spec_error *err)
{
    const struct pliant_option *option;
    struct pliant_config cfg;
    struct pliant_error why;
    int r;

    pliant_config_init(&cfg);
    cfg.worker_group = o->worker_group;
    cfg.all_blocking = o->all_blocking;
    for (size_t i = 0; (option = pliant_option_at(i)) != NULL; i++) {
        const struct option_setting *s = winner(o, option);

        if (!s)
            continue;
        r = pliant_config_set(&cfg, option->key, s->text, &why);
        assert(r == 0); /* it was checked when it was added */
    }
    r = pliant_config_resolve(&cfg, &why);
    if (r < 0)
        return error_at(o, why.field, why.text, err);
    r = check_heartbeat(o, err);
    if (r == 0)
        *ret = cfg;
    return r;
}

const char *options_text(const struct options *o, const char *key)
{
    const struct pliant_option *option = pliant_option_find(key);
    const struct option_setting *s = winner(o, option);

    return s ? s->text : option->default_text;
}

int64_t options_duration_ms(const struct options *o, const char *key)
{
    int64_t ms = 0;
    int r = duration_parse(options_text(o, key), &ms);

    assert(r == 0);
    return ms;
}

/* ---- warnings -------------------------------------------------------------------------------- */

/* A warning is worded as an error is, with its place. */
static void warn_of(const struct option_setting *s, struct spec_error *ret, const char *what,
                    const char *more)
{
    const struct doc_file f = {.name = s->file};
    const struct doc at = {.line = s->line};

    doc_error(&f, s->line ? &at : NULL, ret, "%s %s%s", s->key, what, more);
}

/* Is it a parameter of a restart strategy whose type is named elsewhere, or nowhere? */
static bool is_unread(const struct options *o, const struct option_setting *s)
{
    const struct pliant_option *type = strategy_of(s->option);
    const struct option_setting *named = type ? first_of_layers(o, type) : NULL;

    return type && (!named || named->layer != s->layer);
}

static void add_text(struct spec_error *line, size_t *n, const char *text)
{
    size_t length = strlen(text), room = sizeof line->text - 1 - *n;

    length = length < room ? length : room;
    memcpy(line->text + *n, text, length);
    *n += length;
    line->text[*n] = '\0';
}

/* A foreign name that is all but one of ours may be a typo in the prefix. */
static const char *nearly(const char *name)
{
    const struct pliant_option *option;
    struct nearest n;

    nearest_start(&n, name);
    n.distance = TYPO_MAX + 1;
    for (size_t i = 0; (option = pliant_option_at(i)) != NULL; i++)
        nearest_offer(&n, option->key);
    return n.best;
}

static void list_ignored(const struct options *o, struct spec_error *ret)
{
    size_t n = 0, shown = o->ignored.n < NAMES_SHOWN ? o->ignored.n : NAMES_SHOWN;
    char more[32];

    add_text(ret, &n, "ignored, Pliant does not read them: ");
    for (size_t i = 0; i < shown; i++) {
        const char *meant = nearly(o->ignored.v[i]);

        add_text(ret, &n, i ? ", " : "");
        add_text(ret, &n, o->ignored.v[i]);
        add_text(ret, &n, meant ? " (did you mean " : "");
        add_text(ret, &n, meant ? meant : "");
        add_text(ret, &n, meant ? "?)" : "");
    }
    snprintf(more, sizeof more, " and %zu more", o->ignored.n - shown);
    add_text(ret, &n, o->ignored.n > shown ? more : "");
}

void options_warn(const struct options *o, void (*warn)(void *ctx, const char *text), void *ctx)
{
    struct spec_error line;

    for (size_t i = 0; i < o->settings.n; i++) {
        const struct option_setting *s = &o->settings.v[i];

        if (s->option->no_effect)
            warn_of(s, &line, "has no effect: ", s->option->help);
        else if (is_unread(o, s))
            warn_of(s, &line, "is not read; parameters must stand with what names ",
                    strategy_of(s->option)->key);
        else
            continue;
        warn(ctx, line.text);
    }
    if (o->ignored.n == 0)
        return;
    list_ignored(o, &line);
    warn(ctx, line.text);
}

/* options.h - the options of a run: where each was set, what they come to, and their table
 *
 *     struct options o = {0};
 *     options_read(&o, "conf.yaml", &err);                      the option file
 *     options_add_job(&o, &job.doc, job.config, job.group, &err); the job's `config`, and the
 *                                                               options of its worker group
 *     options_define(&o, "pliant.seed=7", &err);                -D
 *     options_resolve(&o, &cfg, &err);
 *     options_warn(&o, print_warning, NULL);
 *     options_free(&o);
 *
 * An option has the value of the first of -D, the job's config, the option file, its default; in
 * one of them the present name goes before an older one [S-OPT-3]. A restart strategy is taken
 * whole from the first that names its type [S-OPT-1].
 *
 * Keys are flat and dotted, or nested maps, or both. Each value is checked when it is added, also
 * where another one goes before it. What other parts of Flink read is collected, not refused; an
 * unknown name among Pliant's own is.
 *
 * Owner   copies all that is added; options_free() frees
 * Errors  -EINVAL with file, line, option, what is accepted and the nearest name; -ENOMEM; the
 *         errno of reading
 */
#ifndef PLIANT_SPEC_OPTIONS_H
#define PLIANT_SPEC_OPTIONS_H

#include <stdio.h>

#include <pliant/config.h>

#include "spec/doc.h"
#include "util/vec.h"

#define OPTIONS_FILE_MAX (4u * 1024u * 1024u) /* bytes of an option file */

/* Who may set an option; the later goes first. */
enum options_layer { OPTIONS_FILE, OPTIONS_JOB, OPTIONS_COMMAND_LINE };

struct option_setting {
    const struct pliant_option *option;
    enum options_layer layer;
    bool old;  /* under an older name */
    char *key; /* as it was written */
    char *text;
    char *file;
    uint32_t line; /* 0: none */
};

struct options {
    struct VEC(struct option_setting) settings;
    struct VEC(char *) ignored;      /* names that other parts of Flink read */
    bool worker_group, all_blocking; /* what the job is: its defaults hold */
};

int options_read(struct options *o, const char *path, struct spec_error *err);

/* `map` NULL adds nothing. */
int options_add(struct options *o, enum options_layer layer, const struct doc_file *f,
                const struct doc *map, struct spec_error *err);

/* What a job says: its `config`, and the members of its `worker_group` that are options, whose
 * names stand there without their prefix. Either may be NULL. */
int options_add_job(struct options *o, const struct doc_file *f, const struct doc *config,
                    const struct doc *group, struct spec_error *err);
/* Members of a worker group that are no options. */
extern const char *const options_group_keys[];

/* "name=value"; a later one goes before an earlier one. */
int options_define(struct options *o, const char *assignment, struct spec_error *err);

/* All that is set in `from` as well, for a run that starts from it; `ret` is empty before. */
int options_copy(const struct options *from, struct options *ret, struct spec_error *err);

/* As if nobody had set it yet. */
void options_forget(struct options *o, const char *key);

/* What all of them come to, resolved. */
int options_resolve(const struct options *o, struct pliant_config *ret, struct spec_error *err);

/* The value of an option that the scheduler does not read but its host: as text ("" where it has
 * none), and of a duration in ms. */
const char *options_text(const struct options *o, const char *key);
int64_t options_duration_ms(const struct options *o, const char *key);

/* What is worth a warning, a sentence each: options without effect, parameters of a restart
 * strategy that nobody reads, and, in one sentence, all that is ignored. */
void options_warn(const struct options *o, void (*warn)(void *ctx, const char *text), void *ctx);

void options_free(struct options *o);

/* The table of options, for people, as JSON Lines, as CSV, and as the document docs/options.md.
 * 0, -ENOMEM or the errno of writing. */
enum options_format { OPTIONS_TEXT, OPTIONS_JSON, OPTIONS_CSV, OPTIONS_MARKDOWN };
int options_print(FILE *out, enum options_format format);

#endif

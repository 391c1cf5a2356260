/* doc.h - a decoded document: YAML or JSON, one tree, each value with its place
 *
 * The only module that knows cJSON and libyaml. Everything else asks typed questions and gets
 * either a value in bounds or an error that names file, line, field and what is accepted.
 *
 * Shapes  a map's and a list's children are linked in document order; a map has no duplicate
 *         keys and a document at most DOC_DEPTH_MAX levels
 * Owner   a tree lives in its struct doc_file until doc_free(); strings are borrowed from it
 */
#ifndef PLIANT_SPEC_DOC_H
#define PLIANT_SPEC_DOC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOC_DEPTH_MAX 32
#define DOC_INTEGER_MAX INT64_C(9007199254740992) /* 2^53: exact in a double */

enum doc_kind { DOC_NULL, DOC_BOOL, DOC_NUMBER, DOC_STRING, DOC_LIST, DOC_MAP };

struct doc {
    enum doc_kind kind;
    const char *key;  /* in a map; else NULL */
    const char *text; /* a string; a scalar as it was written */
    double number;
    bool truth;
    uint32_t line; /* from 1 */
    uint32_t n;    /* children */
    struct doc *child, *next, *parent;
};

/* A sentence for people, ready to print: "job.yaml:7: vertices[1].parallelism: ...". */
struct spec_error {
    char text[1024];
};

struct doc_file {
    const char *name; /* as the user gave it, for errors */
    struct doc *root;
    struct doc_arena *arena;
};

/* Decode a whole text (not NUL-terminated) or file. JSON when the first character that is not
 * white space is '{' or '[' and it parses as such, else YAML. 0, -EINVAL, -ENOMEM, or the errno
 * of reading. `first_line` is the line number of the text's first line. */
int doc_parse(const char *name, const char *text, size_t size, uint32_t first_line,
              struct doc_file *ret, struct spec_error *err);
int doc_read(const char *path, size_t size_max, struct doc_file *ret, struct spec_error *err);
void doc_free(struct doc_file *f);

/* For lines of a stream: JSON only, reuses the file's memory. 0, -EINVAL, -ENOMEM. */
int doc_line(struct doc_file *f, const char *text, size_t size, uint32_t line,
             struct spec_error *err);

const struct doc *doc_get(const struct doc *map, const char *key); /* or NULL */

/* Typed getters. A missing key: -ENOENT and *ret untouched; a wrong type or value: -EINVAL and
 * *err. `f` gives the name for errors. */
int doc_int(const struct doc_file *f, const struct doc *map, const char *key, int64_t min,
            int64_t max, int64_t *ret, struct spec_error *err);
int doc_string(const struct doc_file *f, const struct doc *map, const char *key, size_t max_bytes,
               const char **ret, struct spec_error *err);
int doc_bool(const struct doc_file *f, const struct doc *map, const char *key, bool *ret,
             struct spec_error *err);
/* A list or a map, as `kind` says. */
int doc_container(const struct doc_file *f, const struct doc *map, const char *key,
                  enum doc_kind kind, const struct doc **ret, struct spec_error *err);

/* The same questions to a value at hand. */
int doc_as_int(const struct doc_file *f, const struct doc *d, int64_t min, int64_t max,
               int64_t *ret, struct spec_error *err);
int doc_as_double(const struct doc_file *f, const struct doc *d, double min, double max,
                  double *ret, struct spec_error *err);
int doc_as_string(const struct doc_file *f, const struct doc *d, size_t max_bytes, const char **ret,
                  struct spec_error *err);

const char *doc_kind_name(enum doc_kind kind); /* "a number", "a list", ... */

/* What may be missing is not wrong when it is: 0 instead of a getter's -ENOENT. */
static inline int doc_optional(int r)
{
    return r == -ENOENT ? 0 : r;
}

/* A string, a number, true or false: its `text` is how it was written. */
static inline bool doc_is_scalar(const struct doc *d)
{
    return d->kind == DOC_STRING || d->kind == DOC_NUMBER || d->kind == DOC_BOOL;
}

/* "x-...": a key that everybody may add anywhere, and that nobody reads. */
bool doc_is_extra(const char *key);

/* Refuse keys that are not in the NULL-terminated list nor extra ones; the error names the nearest
 * known one. */
int doc_known_keys(const struct doc_file *f, const struct doc *map, const char *const *keys,
                   struct spec_error *err);

/* "file:line: path.to[2].value: " and the formatted rest into *err; returns -EINVAL. */
int doc_error(const struct doc_file *f, const struct doc *at, struct spec_error *err,
              const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same for want of memory; returns -ENOMEM. */
int doc_no_memory(const struct doc_file *f, struct spec_error *err);

#endif

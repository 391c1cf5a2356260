/* worker_line.c - see worker_line.h */
#include "agent/worker_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 255u
#define PATH_MAX_BYTES 4095u

/* ---- members of each operation ------------------------------------------------------------------
 */

typedef int read_members(const struct doc_file *f, struct worker_line *l, struct spec_error *err);

static int read_number(const struct doc_file *f, const char *key, struct worker_line *l,
                       struct spec_error *err)
{
    return doc_optional(doc_int(f, f->root, key, 1, DOC_INTEGER_MAX, &l->number, err));
}

/* Absent and null are the same. */
static bool is_given(const struct doc_file *f, const char *key)
{
    const struct doc *d = doc_get(f->root, key);

    return d && d->kind != DOC_NULL;
}

static int read_optional_string(const struct doc_file *f, const char *key, size_t max,
                                const char **ret, struct spec_error *err)
{
    return is_given(f, key) ? doc_string(f, f->root, key, max, ret, err) : 0;
}

static int read_bytes(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    return is_given(f, "bytes") ? doc_int(f, f->root, "bytes", 0, DOC_INTEGER_MAX, &l->bytes, err)
                                : 0;
}

static int read_hello(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    const char *library;
    int r = read_optional_string(f, "library", NAME_MAX_BYTES, &library, err);

    r = r < 0 ? r : doc_optional(doc_bool(f, f->root, "checkpoints", &l->checkpoints, err));
    return r < 0 ? r : doc_optional(doc_bool(f, f->root, "health", &l->health, err));
}

/* A directory in the run's directory: nothing that leads out of it. */
static int check_name(const struct doc_file *f, const char *name, struct spec_error *err)
{
    if (!name || (*name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0))
        return 0;
    return doc_error(f, doc_get(f->root, "checkpoint"), err,
                     "not the name of a directory in the run's directory; accepted: a name "
                     "without /");
}

static int read_report(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    int r = read_number(f, "call", l, err);

    if (r == 0 && is_given(f, "metrics"))
        r = doc_container(f, f->root, "metrics", DOC_MAP, &l->metrics, err);
    if (r == 0)
        r = read_optional_string(f, "checkpoint", NAME_MAX_BYTES, &l->checkpoint, err);
    if (r == 0)
        r = check_name(f, l->checkpoint, err);
    return r < 0 ? r : read_bytes(f, l, err);
}

static int read_enter(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    int r = read_number(f, "seq", l, err);

    l->kind = "dir";
    l->payload = doc_get(f->root, "payload");
    return r < 0 ? r : read_optional_string(f, "kind", NAME_MAX_BYTES, &l->kind, err);
}

static int read_notice(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    l->kind = "notice";
    return read_number(f, "seq", l, err);
}

static int read_part(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    const struct doc *d = doc_get(f->root, "id");
    const char *id;
    char *end;
    int r = doc_string(f, f->root, "id", 20, &id, err);

    if (r == 0) {
        errno = 0;
        l->id = strtoull(id, &end, 10);
        if (*id < '0' || *id > '9' || *end || errno)
            r = doc_error(f, d, err, "not an id; accepted: decimal digits");
    }
    r = r < 0 ? r : doc_bool(f, f->root, "ok", &l->ok, err);
    r = r < 0 ? r : read_bytes(f, l, err);
    return r < 0 ? r : read_optional_string(f, "cause", PATH_MAX_BYTES, &l->cause, err);
}

static int read_health(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    (void)f;
    (void)err;
    return l->has_n ? 0 : -ENOENT;
}

static int read_index(const struct doc_file *f, const char *key, uint32_t *ret,
                      struct spec_error *err)
{
    int64_t index = 0;
    int r = doc_int(f, f->root, key, 0, UINT32_MAX, &index, err);

    *ret = (uint32_t)index;
    return r;
}

static int read_sizes(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    int64_t sum = 0, size;
    int r = doc_container(f, f->root, "bytes", DOC_LIST, &l->sizes, err);

    for (const struct doc *d = r == 0 ? l->sizes->child : NULL; d && r == 0; d = d->next) {
        r = doc_as_int(f, d, 0, DOC_INTEGER_MAX, &size, err);
        if (r == 0 && size > DOC_INTEGER_MAX - sum)
            r = doc_error(f, d, err, "more than 2^53 bytes together");
        sum += r == 0 ? size : 0;
    }
    return r;
}

static int read_output(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    int r = read_index(f, "edge", &l->edge, err);

    return r < 0 ? r : read_sizes(f, l, err);
}

static int read_input_lost(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    int r = read_index(f, "edge", &l->edge, err);

    return r < 0 ? r : read_index(f, "subtask", &l->subtask, err);
}

static int read_nothing(const struct doc_file *f, struct worker_line *l, struct spec_error *err)
{
    (void)f;
    (void)l;
    (void)err;
    return 0;
}

/* ---- the line
 * ----------------------------------------------------------------------------------------- */

static const struct operation {
    const char *name;
    enum worker_op op;
    read_members *read;
} operations[] = {
    {"hello", WORKER_HELLO, read_hello},
    {"report", WORKER_REPORT, read_report},
    {"enter", WORKER_ENTER, read_enter},
    {"get_preemption_info", WORKER_GET_PREEMPTION_INFO, read_notice},
    {"get_checkpoint", WORKER_GET_CHECKPOINT, read_nothing},
    {"part", WORKER_PART, read_part},
    {"end_of_data", WORKER_END_OF_DATA, read_nothing},
    {"health", WORKER_HEALTH, read_health},
    {"output", WORKER_OUTPUT, read_output},
    {"input_lost", WORKER_INPUT_LOST, read_input_lost},
};

static const struct operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

/* -ENOENT of a member that must be there becomes a sentence. */
static int missing(const struct doc_file *f, struct spec_error *err)
{
    return doc_error(f, f->root, err, "a member is missing");
}

int worker_line_read(struct doc_file *f, const char *text, size_t size, struct worker_line *ret,
                     const char **ret_code, struct spec_error *err)
{
    const struct operation *o;
    const char *name;
    int r;

    *ret = (struct worker_line){0};
    *ret_code = "malformed";
    f->name = "line";
    r = doc_line(f, text, size, 1, err);
    if (r == 0 && f->root->kind != DOC_MAP)
        r = doc_error(f, f->root, err, "not an object");
    if (r < 0)
        return r;
    if (is_given(f, "n")) {
        r = doc_int(f, f->root, "n", -DOC_INTEGER_MAX, DOC_INTEGER_MAX, &ret->n, err);
        if (r < 0)
            return r;
        ret->has_n = true;
    }
    r = doc_string(f, f->root, "op", NAME_MAX_BYTES, &name, err);
    if (r < 0)
        return r == -ENOENT ? doc_error(f, f->root, err, "op is missing") : r;
    o = find_operation(name);
    if (!o) {
        *ret_code = "unknown-op";
        return doc_error(f, doc_get(f->root, "op"), err, "%s: no such operation", name);
    }
    ret->op = o->op;
    r = o->read(f, ret, err);
    return r == -ENOENT ? missing(f, err) : r;
}

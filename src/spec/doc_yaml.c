/* doc_yaml.c - YAML by libyaml's events, as much of it as a configuration needs
 *
 * No anchors, aliases and tags: with them a small text unfolds into a huge document, or means
 * what its words do not say. One document a file. Plain scalars have the types of YAML 1.2's
 * core schema (so `off` and `no` are words); quoted ones are strings.
 */
#include "spec/doc_build.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "util/ascii.h"
#include "util/decimal.h"

struct reader {
    struct doc_file *f;
    struct spec_error *err;
    yaml_parser_t parser;
    yaml_event_t event; /* the present one */
    uint32_t first_line;
};

static struct doc_place place(const struct reader *y, yaml_mark_t mark)
{
    return (struct doc_place){y->first_line + (uint32_t)mark.line, (uint32_t)mark.column + 1};
}

static int refuse(const struct reader *y, const char *what)
{
    return doc_syntax_error(y->f, place(y, y->event.start_mark), y->err, "%s", what);
}

/* libyaml has found a mistake, or no memory. */
static int parser_error(const struct reader *y)
{
    const yaml_parser_t *p = &y->parser;
    bool has_context = p->context && *p->context;

    /* out of memory libyaml sometimes gives up without saying why */
    if (p->error == YAML_MEMORY_ERROR || p->error == YAML_NO_ERROR)
        return doc_no_memory(y->f, y->err);
    return doc_syntax_error(y->f, place(y, p->problem_mark), y->err, "%s%s%s",
                            p->problem ? p->problem : "not YAML", has_context ? ", " : "",
                            has_context ? p->context : "");
}

static int advance(struct reader *y)
{
    yaml_event_delete(&y->event);
    return yaml_parser_parse(&y->parser, &y->event) ? 0 : parser_error(y);
}

/* ---- scalars --------------------------------------------------------------------------------- */

static bool is_one_of(const char *text, const char *const *words)
{
    while (*words && strcmp(*words, text) != 0)
        words++;
    return *words != NULL;
}

/* 0x1f, 0o17 */
static bool read_radix(const char *text, double *ret)
{
    unsigned radix = text[0] != '0' ? 0 : text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : 0;
    const char *digits = "0123456789abcdef", *at;
    double value = 0;

    if (radix == 0 || !text[2])
        return false;
    for (text += 2; *text; text++) {
        at = strchr(digits, ascii_lower(*text));
        if (!at || at >= digits + radix)
            return false;
        value = value * radix + (double)(at - digits);
    }
    *ret = value;
    return true;
}

static void type_plain(struct doc *d)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};

    if (is_one_of(d->text, nulls)) {
        d->kind = DOC_NULL;
    } else if (is_one_of(d->text, trues) || is_one_of(d->text, falses)) {
        d->kind = DOC_BOOL;
        d->truth = is_one_of(d->text, trues);
    } else if (decimal_read(d->text, &d->number) || read_radix(d->text, &d->number)) {
        d->kind = DOC_NUMBER;
    }
}

static int copy_scalar(const struct reader *y, const char **ret)
{
    const char *text = (const char *)y->event.data.scalar.value;
    size_t size = y->event.data.scalar.length;

    if (memchr(text, '\0', size))
        return refuse(y, "a NUL character in a string");
    *ret = doc_copy(y->f->arena, text, size);
    return *ret ? 0 : doc_no_memory(y->f, y->err);
}

static int read_scalar(const struct reader *y, struct doc *d)
{
    int r = copy_scalar(y, &d->text);

    d->kind = DOC_STRING;
    if (r == 0 && y->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        type_plain(d);
    return r;
}

/* ---- lists and maps -------------------------------------------------------------------------- */

static int check_plain_node(const struct reader *y, const yaml_char_t *anchor,
                            const yaml_char_t *tag)
{
    if (anchor)
        return refuse(y, "anchors (&name) are not read; write the value out where it is needed");
    return tag ? refuse(y, "tags (!name) are not read; accepted: the value alone") : 0;
}

/* No anchor, tag or alias. */
static int check_node(const struct reader *y)
{
    const yaml_event_t *e = &y->event;

    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return check_plain_node(y, e->data.scalar.anchor, e->data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        return check_plain_node(y, e->data.sequence_start.anchor, e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return check_plain_node(y, e->data.mapping_start.anchor, e->data.mapping_start.tag);
    case YAML_ALIAS_EVENT:
        return refuse(y, "aliases (*name) are not read; write the value out");
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        break; /* libyaml's grammar lets none of these begin a value */
    }
    return refuse(y, "not a value");
}

static int read_node(struct reader *y, struct doc *parent, const char *key, int depth,
                     struct doc **ret);

/* A key: the event is on it and then on its value. */
static int read_key(struct reader *y, const char **ret)
{
    int r = check_node(y);

    if (r == 0 && y->event.type != YAML_SCALAR_EVENT)
        return refuse(y, "a key must be a word");
    if (r == 0)
        r = copy_scalar(y, ret);
    return r < 0 ? r : advance(y);
}

static int read_children(struct reader *y, struct doc *d, int depth)
{
    yaml_event_type_t end = d->kind == DOC_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    struct doc **tail = &d->child, *child;
    const char *key = NULL;
    int r = depth < DOC_DEPTH_MAX ? advance(y) : refuse(y, "too many levels of nesting");

    while (r == 0 && y->event.type != end) {
        if (d->kind == DOC_MAP)
            r = read_key(y, &key);
        if (r == 0)
            r = read_node(y, d, key, depth + 1, &child);
        if (r < 0)
            return r;
        doc_append(d, &tail, child);
        r = advance(y);
    }
    return r == 0 && d->kind == DOC_MAP ? doc_check_keys(y->f, d, y->err) : r;
}

/* The value that begins with the present event; then the event is its last. `key` NULL: none. */
static int read_node(struct reader *y, struct doc *parent, const char *key, int depth,
                     struct doc **ret)
{
    struct doc *d = doc_alloc(y->f->arena, sizeof *d);
    int r = check_node(y);

    if (!d)
        return doc_no_memory(y->f, y->err);
    if (r < 0)
        return r;
    *d = (struct doc){.line = place(y, y->event.start_mark).line, .key = key, .parent = parent};
    *ret = d;
    if (y->event.type == YAML_SCALAR_EVENT)
        return read_scalar(y, d);
    d->kind = y->event.type == YAML_MAPPING_START_EVENT ? DOC_MAP : DOC_LIST;
    return read_children(y, d, depth);
}

/* Nothing, or only comments: an option file in which all is commented out is fine. */
static int read_nothing(struct reader *y)
{
    struct doc *d = doc_alloc(y->f->arena, sizeof *d);

    if (!d)
        return doc_no_memory(y->f, y->err);
    *d = (struct doc){.kind = DOC_NULL, .text = "", .line = place(y, y->event.start_mark).line};
    y->f->root = d;
    return 0;
}

static int read_stream(struct reader *y)
{
    int r = advance(y); /* the start of the stream */

    if (r == 0)
        r = advance(y);
    if (r == 0 && y->event.type == YAML_STREAM_END_EVENT)
        return read_nothing(y);
    if (r == 0)
        r = advance(y); /* behind the start of the document */
    if (r == 0)
        r = read_node(y, NULL, NULL, 0, &y->f->root);
    if (r == 0)
        r = advance(y); /* the end of the document */
    if (r == 0)
        r = advance(y);
    if (r == 0 && y->event.type != YAML_STREAM_END_EVENT)
        return refuse(y, "a second document; accepted: one");
    return r;
}

int doc_decode_yaml(struct doc_file *f, const char *text, size_t size, uint32_t first_line,
                    struct spec_error *err)
{
    struct reader y = {.f = f, .err = err, .first_line = first_line};
    int r;

    if (!yaml_parser_initialize(&y.parser))
        return doc_no_memory(f, err);
    yaml_parser_set_encoding(&y.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)text, size);
    r = read_stream(&y);
    yaml_event_delete(&y.event);
    yaml_parser_delete(&y.parser);
    return r;
}

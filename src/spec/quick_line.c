/* quick_line.c - see quick_line.h
 *
 * The line is copied with a NUL behind it. No part of the grammar takes a NUL, so nothing looks
 * for the end; a NUL within the line stops the decoding before its end, which is no success.
 */
#include "spec/quick_line.h"

#include <errno.h>
#include <string.h>

#include "spec/doc_build.h"
#include "spec/memory.h"
#include "util/ascii.h"

#define MAX_SIZE 4096u /* longer lines are not usual */
#define MAX_DEPTH 4
#define MAX_DIGITS 15

struct scan {
    struct quick_line *q;
    char *p;
    uint32_t n; /* nodes used */
    uint32_t line;
};

static struct doc *new_node(struct scan *s, struct doc *parent)
{
    struct doc *d;

    if (s->n == QUICK_NODES)
        return NULL;
    d = &s->q->nodes[s->n++];
    *d = (struct doc){.line = s->line, .parent = parent};
    return d;
}

static inline void skip_blanks(struct scan *s)
{
    while (*s->p == ' ' || *s->p == '\t')
        s->p++;
}

/* A string without escapes; NULL: something else. */
static const char *string(struct scan *s)
{
    char *start = ++s->p;

    while (*s->p >= ' ' && *s->p < 0x7f && *s->p != '"' && *s->p != '\\')
        s->p++;
    if (*s->p != '"')
        return NULL;
    *s->p++ = '\0';
    return start;
}

/* An integer that a double holds. Its text is ended by map(), which needs what comes next. */
static bool number(struct scan *s, struct doc *d)
{
    bool negative = *s->p == '-';
    int64_t value = 0;
    char *digits;

    d->kind = DOC_NUMBER;
    d->text = s->p;
    digits = s->p += negative;
    for (; ascii_is_digit(*s->p) && s->p - digits < MAX_DIGITS; s->p++)
        value = 10 * value + (*s->p - '0');
    if (s->p == digits || ascii_is_digit(*s->p) || *s->p == '.' || *s->p == 'e' || *s->p == 'E')
        return false;
    d->number = (double)(negative ? -value : value);
    return *digits != '0' || (s->p == digits + 1 && !negative);
}

static bool word(struct scan *s, struct doc *d, const char *text, size_t size)
{
    if (strncmp(s->p, text, size) != 0)
        return false;
    s->p += size;
    d->kind = DOC_BOOL;
    d->text = text;
    d->truth = *text == 't';
    return true;
}

static bool map(struct scan *s, struct doc *d, int depth);

static bool value(struct scan *s, struct doc *d, int depth)
{
    switch (*s->p) {
    case '"':
        d->kind = DOC_STRING;
        d->text = string(s);
        return d->text != NULL;
    case '{':
        return map(s, d, depth);
    case 't':
        return word(s, d, "true", 4);
    case 'f':
        return word(s, d, "false", 5);
    default:
        return number(s, d);
    }
}

static bool again(const struct doc *map, const char *key)
{
    for (const struct doc *c = map->child; c; c = c->next)
        if (*c->key == *key && strcmp(c->key, key) == 0)
            return true;
    return false;
}

/* "key": value, and the blanks behind it. *ret_mark: what comes then. */
static bool member(struct scan *s, struct doc *parent, struct doc ***tail, int depth,
                   char *ret_mark)
{
    const char *key = *s->p == '"' ? string(s) : NULL;
    struct doc *d = key && !again(parent, key) ? new_node(s, parent) : NULL;
    char *end;

    if (!d)
        return false;
    skip_blanks(s);
    if (*s->p != ':')
        return false;
    s->p++;
    skip_blanks(s);
    d->key = key;
    if (!value(s, d, depth))
        return false;
    doc_append(parent, tail, d);
    end = s->p;
    skip_blanks(s);
    *ret_mark = *s->p++;
    if (d->kind == DOC_NUMBER)
        *end = '\0';
    return true;
}

static bool map(struct scan *s, struct doc *d, int depth)
{
    struct doc **tail = &d->child;
    char mark = ',';

    d->kind = DOC_MAP;
    if (depth == MAX_DEPTH)
        return false;
    s->p++;
    skip_blanks(s);
    if (*s->p == '}') {
        s->p++;
        return true;
    }
    while (mark == ',') {
        skip_blanks(s);
        if (!member(s, d, &tail, depth + 1, &mark))
            return false;
    }
    return mark == '}';
}

static bool make_room(struct quick_line *q)
{
    if (q->text)
        return true;
    q->text = mem_resize(spec_memory, NULL, MAX_SIZE + 1, 1);
    return q->text != NULL;
}

int quick_line(struct quick_line *q, const char *text, size_t size, uint32_t line, struct doc **ret)
{
    struct scan s = {.q = q, .line = line};
    struct doc *root;

    if (size > MAX_SIZE || size == 0)
        return 0;
    if (!make_room(q))
        return -ENOMEM;
    memcpy(q->text, text, size);
    q->text[size] = '\0';
    s.p = q->text;
    skip_blanks(&s);
    if (*s.p != '{')
        return 0;
    root = new_node(&s, NULL);
    if (!map(&s, root, 0))
        return 0;
    skip_blanks(&s);
    if (s.p != q->text + size)
        return 0;
    *ret = root;
    return 1;
}

int quick_line_decode(struct quick_line *q, struct doc_file *f, const char *text, size_t size,
                      uint32_t line, struct spec_error *err)
{
    int r = quick_line(q, text, size, line, &f->root);

    if (r < 0)
        return doc_no_memory(f, err);
    return r == 1 ? 0 : doc_line(f, text, size, line, err);
}

void quick_line_free(struct quick_line *q)
{
    mem_free(spec_memory, q->text);
    q->text = NULL;
}

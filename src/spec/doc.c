/* doc.c - see doc.h: memory, errors and typed questions; doc_json.c and doc_yaml.c decode */
#include "spec/doc.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/doc_build.h"
#include "spec/memory.h"
#include "util/ascii.h"
#include "util/decimal.h"
#include "util/nearest.h"
#include "util/utf8.h"

#define CHUNK_MIN 8192u
#define CHUNK_MAX (1024u * 1024u)
#define NAME_SHOWN 200u /* bytes of a file's name in an error, its end */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define MARK_SIZE 3
#define FEW_KEYS 16u /* up to so many each key is compared with each */

/* ---- memory ---------------------------------------------------------------------------------- */

struct doc_chunk {
    struct doc_chunk *next;
    size_t size;
    max_align_t bytes[];
};

static struct doc_chunk *chunk_new(size_t size)
{
    struct doc_chunk *c = mem_resize(spec_memory, NULL, 1, sizeof *c + size);

    if (c)
        *c = (struct doc_chunk){.size = size};
    return c;
}

static void arena_use(struct doc_arena *a, struct doc_chunk *c)
{
    a->now = c;
    a->free = (char *)c->bytes;
    a->left = c->size;
}

/* The next chunk if it is large enough, else a new one, becomes the present one. */
void *doc_alloc_chunk(struct doc_arena *a, size_t size)
{
    size_t grown = a->now->size < CHUNK_MAX ? 2 * a->now->size : CHUNK_MAX;
    struct doc_chunk *c = a->now->next;

    a->failed = true;
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + 7) & ~(size_t)7;
    if (!c || c->size < size) {
        c = chunk_new(size > grown ? size : grown);
        if (!c)
            return NULL;
        c->next = a->now->next;
        a->now->next = c;
    }
    arena_use(a, c);
    a->failed = false;
    return doc_alloc(a, size);
}

char *doc_copy(struct doc_arena *a, const char *text, size_t size)
{
    char *copy = doc_alloc(a, size + 1);

    if (copy) {
        memcpy(copy, text, size);
        copy[size] = '\0';
    }
    return copy;
}

static struct doc_arena *arena_new(void)
{
    struct doc_arena *a = mem_zero(spec_memory, 1, sizeof *a);

    if (!a)
        return NULL;
    a->first = chunk_new(CHUNK_MIN);
    if (a->first) {
        arena_use(a, a->first);
        return a;
    }
    mem_free(spec_memory, a);
    return NULL;
}

void doc_free(struct doc_file *f)
{
    struct doc_chunk *c = f->arena ? f->arena->first : NULL;

    for (struct doc_chunk *next; c; c = next) {
        next = c->next;
        mem_free(spec_memory, c);
    }
    mem_free(spec_memory, f->arena);
    *f = (struct doc_file){0};
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* A sentence that grows, always NUL-terminated and cut where it does not fit. */
struct sentence {
    char *text;
    size_t n, size;
};

static void add(struct sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add_list(struct sentence *s, const char *format, va_list args)
{
    int n = vsnprintf(s->text + s->n, s->size - s->n, format, args);

    if (n < 0)
        return;
    s->n = (size_t)n < s->size - s->n ? s->n + (size_t)n : s->size - 1;
}

static void add(struct sentence *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_list(s, format, args);
    va_end(args);
}

/* What files contain must not move a terminal's cursor, nor end within a letter. */
static void make_printable(struct sentence *s)
{
    const unsigned char *text = (const unsigned char *)s->text;
    size_t last = s->n;

    while (last > 0 && utf8_continues(s->text[last - 1]))
        last--;
    if (last > 0 && utf8_length(s->text + last - 1, s->n - last + 1) == 0)
        s->n = last - 1;
    s->text[s->n] = '\0';
    for (size_t i = 0; i < s->n; i++)
        if (text[i] < ' ' || text[i] == 0x7f)
            s->text[i] = '?';
}

static struct sentence begin(const struct doc_file *f, struct spec_error *err)
{
    struct sentence s = {.text = err->text, .size = sizeof err->text};
    size_t n = strlen(f->name);

    *err->text = '\0';
    if (n > NAME_SHOWN)
        add(&s, "...%s", f->name + n - NAME_SHOWN);
    else
        add(&s, "%s", f->name);
    return s;
}

static void add_path(struct sentence *s, const struct doc *d)
{
    size_t index = 0;

    if (!d->parent)
        return;
    add_path(s, d->parent);
    if (d->key) {
        add(s, "%s%.128s", d->parent->parent ? "." : "", d->key);
        return;
    }
    for (const struct doc *c = d->parent->child; c && c != d; c = c->next)
        index++; /* one that is still being decoded is not in its list, and comes last */
    add(s, "[%zu]", index);
}

int doc_error(const struct doc_file *f, const struct doc *at, struct spec_error *err,
              const char *format, ...)
{
    struct sentence s = begin(f, err);
    va_list args;

    if (at)
        add(&s, ":%" PRIu32, at->line);
    add(&s, ": ");
    if (at && at->parent) {
        add_path(&s, at);
        add(&s, ": ");
    }
    va_start(args, format);
    add_list(&s, format, args);
    va_end(args);
    make_printable(&s);
    return -EINVAL;
}

int doc_syntax_error(const struct doc_file *f, struct doc_place at, struct spec_error *err,
                     const char *format, ...)
{
    struct sentence s = begin(f, err);
    va_list args;

    add(&s, ":%" PRIu32 ":%" PRIu32 ": ", at.line, at.column);
    va_start(args, format);
    add_list(&s, format, args);
    va_end(args);
    make_printable(&s);
    return -EINVAL;
}

int doc_no_memory(const struct doc_file *f, struct spec_error *err)
{
    struct sentence s = begin(f, err);

    add(&s, ": out of memory");
    return -ENOMEM;
}

/* ---- what both decoders need ----------------------------------------------------------------- */

void doc_append(struct doc *parent, struct doc ***tail, struct doc *child)
{
    **tail = child;
    *tail = &child->next;
    parent->n++;
}

static int twice(const struct doc_file *f, const struct doc *first, const struct doc *again,
                 struct spec_error *err)
{
    return doc_error(f, again, err, "this key is there twice, first in line %" PRIu32, first->line);
}

static int by_key_and_place(const void *a, const void *b)
{
    const struct doc *x = *(const struct doc *const *)a, *y = *(const struct doc *const *)b;
    int order = strcmp(x->key, y->key);

    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static int check_many_keys(const struct doc_file *f, const struct doc *map, struct spec_error *err)
{
    const struct doc **v = doc_alloc(f->arena, map->n * sizeof *v);
    size_t n = 0;

    if (!v)
        return doc_no_memory(f, err);
    for (const struct doc *c = map->child; c; c = c->next)
        v[n++] = c;
    qsort(v, n, sizeof *v, by_key_and_place);
    for (size_t i = 1; i < n; i++)
        if (strcmp(v[i - 1]->key, v[i]->key) == 0)
            return twice(f, v[i - 1], v[i], err);
    return 0;
}

int doc_check_keys(const struct doc_file *f, const struct doc *map, struct spec_error *err)
{
    if (map->n > FEW_KEYS)
        return check_many_keys(f, map, err);
    for (const struct doc *c = map->child; c; c = c->next)
        for (const struct doc *before = map->child; before != c; before = before->next)
            if (*c->key == *before->key && strcmp(c->key, before->key) == 0)
                return twice(f, before, c, err);
    return 0;
}

/* ---- characters ------------------------------------------------------------------------------ */

/* Eight characters from ' ' to 0x7f? */
static bool eight_plain(const char *s)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t x;

    memcpy(&x, s, sizeof x);
    return ((x | (x - ones * ' ')) & (ones * 0x80)) == 0;
}

/* The first byte that no text has, or `size`. */
static size_t find_bad_byte(const char *text, size_t size)
{
    size_t i = 0, n;

    while (i < size) {
        if (size - i >= 8 && eight_plain(text + i)) {
            i += 8;
            continue;
        }
        n = utf8_length(text + i, size - i);
        if (n == 0 || ((unsigned char)text[i] < ' ' && !ascii_is_blank(text[i])))
            break;
        i += n;
    }
    return i;
}

static int check_characters(const struct doc_file *f, const char *text, size_t size, uint32_t line,
                            struct spec_error *err)
{
    size_t bad = find_bad_byte(text, size), line_start = 0;
    struct doc_place at = {line, 1};
    unsigned byte;

    if (bad == size)
        return 0;
    for (size_t i = 0; i < bad; i++) {
        if (text[i] != '\n')
            continue;
        at.line++;
        line_start = i + 1;
    }
    at.column = (uint32_t)(bad - line_start) + 1;
    byte = (unsigned char)text[bad];
    return doc_syntax_error(f, at, err, "byte 0x%02x is %s", byte,
                            byte < ' ' ? "a control character" : "not UTF-8");
}

/* ---- whole texts ----------------------------------------------------------------------------- */

static bool looks_like_json(const char *text, size_t size)
{
    size_t i = 0;

    while (i < size && ascii_is_blank(text[i]))
        i++;
    return i < size && (text[i] == '{' || text[i] == '[');
}

/* YAML's flow style also begins with a bracket. A text that is neither was meant as JSON. */
static int decode(struct doc_file *f, const char *text, size_t size, uint32_t line,
                  struct spec_error *err)
{
    struct spec_error yaml_err;
    int r;

    if (!looks_like_json(text, size))
        return doc_decode_yaml(f, text, size, line, err);
    r = doc_decode_json(f, text, size, line, err);
    if (r != -EINVAL)
        return r;
    r = doc_decode_yaml(f, text, size, line, &yaml_err);
    if (r == -ENOMEM)
        *err = yaml_err;
    return r;
}

/* Some editors begin a file with a byte order mark. */
static bool has_mark(const char *text, size_t size)
{
    return size >= MARK_SIZE && memcmp(text, BYTE_ORDER_MARK, MARK_SIZE) == 0;
}

int doc_parse(const char *name, const char *text, size_t size, uint32_t first_line,
              struct doc_file *ret, struct spec_error *err)
{
    struct doc_file f = {.name = name, .arena = arena_new()};
    int r;

    if (f.arena)
        f.name = doc_copy(f.arena, name, strlen(name));
    if (!f.arena || !f.name) {
        f.name = name;
        r = doc_no_memory(&f, err);
        goto fail;
    }
    if (has_mark(text, size)) {
        text += MARK_SIZE;
        size -= MARK_SIZE;
    }
    r = check_characters(&f, text, size, first_line, err);
    if (r == 0)
        r = decode(&f, text, size, first_line, err);
    if (r < 0)
        goto fail;
    *ret = f;
    return 0;
fail:
    doc_free(&f);
    return r;
}

int doc_line(struct doc_file *f, const char *text, size_t size, uint32_t line,
             struct spec_error *err)
{
    int r;

    if (!f->arena)
        f->arena = arena_new();
    if (!f->arena)
        return doc_no_memory(f, err);
    arena_use(f->arena, f->arena->first);
    f->arena->failed = false;
    f->root = NULL;
    if (has_mark(text, size)) {
        if (line > 1)
            return doc_syntax_error(f, (struct doc_place){line, 1}, err,
                                    "a byte order mark; accepted: only at the file's beginning");
        text += MARK_SIZE;
        size -= MARK_SIZE;
    }
    r = check_characters(f, text, size, line, err);
    return r < 0 ? r : doc_decode_json(f, text, size, line, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int read_error(const char *path, int error, struct spec_error *err)
{
    struct doc_file f = {.name = path};

    doc_error(&f, NULL, err, "%s", strerror(error));
    return -error;
}

/* All of `in`, at most size_max bytes, into *text, which the caller frees. */
static int slurp(const char *path, FILE *in, size_t size_max, char **text, size_t *n,
                 struct spec_error *err)
{
    struct doc_file f = {.name = path};
    size_t cap = 0;
    char *grown;

    for (*n = 0;;) {
        if (*n == cap) {
            cap = cap ? 2 * cap : CHUNK_MIN;
            grown = mem_resize(spec_memory, *text, cap, 1);
            if (!grown)
                return doc_no_memory(&f, err);
            *text = grown;
        }
        errno = 0;
        *n += fread(*text + *n, 1, cap - *n, in);
        if (ferror(in))
            return read_error(path, errno ? errno : EIO, err);
        if (*n > size_max)
            return doc_error(&f, NULL, err, "is larger than %zu bytes, the most that is read",
                             size_max);
        if (feof(in))
            return 0;
    }
}

int doc_read(const char *path, size_t size_max, struct doc_file *ret, struct spec_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *in = is_stdin ? stdin : fopen(path, "rb");
    const char *name = is_stdin ? "<stdin>" : path;
    char *text = NULL;
    size_t size;
    int r;

    if (!in)
        return read_error(name, errno, err);
    r = slurp(name, in, size_max, &text, &size, err);
    if (r == 0)
        r = doc_parse(name, text, size, 1, ret, err);
    mem_free(spec_memory, text);
    if (!is_stdin)
        fclose(in);
    return r;
}

/* ---- typed questions ------------------------------------------------------------------------- */

const struct doc *doc_get(const struct doc *map, const char *key)
{
    const struct doc *c = map->kind == DOC_MAP ? map->child : NULL;

    while (c && strcmp(c->key, key) != 0)
        c = c->next;
    return c;
}

const char *doc_kind_name(enum doc_kind kind)
{
    static const char *const names[] = {"null",     "true or false", "a number",
                                        "a string", "a list",        "a map"};

    return names[kind];
}

static int wrong_kind(const struct doc_file *f, const struct doc *d, const char *accepted,
                      struct spec_error *err)
{
    const char *name = d->kind == DOC_NULL && !d->parent ? "empty" : doc_kind_name(d->kind);

    return doc_error(f, d, err, "is %s; accepted: %s", name, accepted);
}

/* A whole number, however it was written; exact up to 2^53. */
static bool is_integer(const struct doc *d, int64_t *ret)
{
    if (decimal_read_int(d->text, ret))
        return *ret >= -DOC_INTEGER_MAX && *ret <= DOC_INTEGER_MAX;
    if (!(fabs(d->number) < (double)DOC_INTEGER_MAX) || floor(d->number) < d->number)
        return false;
    *ret = (int64_t)d->number;
    return true;
}

int doc_int(const struct doc_file *f, const struct doc *map, const char *key, int64_t min,
            int64_t max, int64_t *ret, struct spec_error *err)
{
    const struct doc *d = doc_get(map, key);

    return d ? doc_as_int(f, d, min, max, ret, err) : -ENOENT;
}

int doc_as_int(const struct doc_file *f, const struct doc *d, int64_t min, int64_t max,
               int64_t *ret, struct spec_error *err)
{
    bool is_number = d->kind == DOC_NUMBER;
    int64_t value;

    if (is_number && is_integer(d, &value) && value >= min && value <= max) {
        *ret = value;
        return 0;
    }
    return doc_error(f, d, err, "is %.40s; accepted: an integer from %" PRId64 " to %" PRId64,
                     is_number ? d->text : doc_kind_name(d->kind), min, max);
}

int doc_as_double(const struct doc_file *f, const struct doc *d, double min, double max,
                  double *ret, struct spec_error *err)
{
    bool is_number = d->kind == DOC_NUMBER;

    if (is_number && d->number >= min && d->number <= max) {
        *ret = d->number;
        return 0;
    }
    return doc_error(f, d, err, "is %.40s; accepted: a number from %g to %g",
                     is_number ? d->text : doc_kind_name(d->kind), min, max);
}

int doc_string(const struct doc_file *f, const struct doc *map, const char *key, size_t max_bytes,
               const char **ret, struct spec_error *err)
{
    const struct doc *d = doc_get(map, key);

    return d ? doc_as_string(f, d, max_bytes, ret, err) : -ENOENT;
}

int doc_as_string(const struct doc_file *f, const struct doc *d, size_t max_bytes, const char **ret,
                  struct spec_error *err)
{
    if (d->kind != DOC_STRING)
        return wrong_kind(f, d, "a string", err);
    if (strlen(d->text) > max_bytes)
        return doc_error(f, d, err, "has %zu bytes; accepted: at most %zu", strlen(d->text),
                         max_bytes);
    *ret = d->text;
    return 0;
}

int doc_bool(const struct doc_file *f, const struct doc *map, const char *key, bool *ret,
             struct spec_error *err)
{
    const struct doc *d = doc_get(map, key);

    if (!d)
        return -ENOENT;
    if (d->kind != DOC_BOOL)
        return wrong_kind(f, d, "true or false", err);
    *ret = d->truth;
    return 0;
}

int doc_container(const struct doc_file *f, const struct doc *map, const char *key,
                  enum doc_kind kind, const struct doc **ret, struct spec_error *err)
{
    const struct doc *d = doc_get(map, key);

    if (!d)
        return -ENOENT;
    if (d->kind != kind)
        return wrong_kind(f, d, doc_kind_name(kind), err);
    *ret = d;
    return 0;
}

bool doc_is_extra(const char *key)
{
    return strncmp(key, "x-", 2) == 0;
}

static bool is_known(const char *key, const char *const *keys)
{
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys || doc_is_extra(key);
}

static int unknown_key(const struct doc_file *f, const struct doc *d, const char *const *keys,
                       struct spec_error *err)
{
    char list[512] = "";
    struct sentence s = {.text = list, .size = sizeof list};
    struct nearest n;

    nearest_start(&n, d->key);
    for (size_t i = 0; keys[i]; i++) {
        nearest_offer(&n, keys[i]);
        add(&s, "%s%s", i ? ", " : "", keys[i]);
    }
    if (n.best)
        return doc_error(f, d, err, "unknown key; did you mean %s? accepted: %s", n.best, list);
    return doc_error(f, d, err, "unknown key; accepted: %s", list);
}

int doc_known_keys(const struct doc_file *f, const struct doc *map, const char *const *keys,
                   struct spec_error *err)
{
    if (map->kind != DOC_MAP)
        return wrong_kind(f, map, doc_kind_name(DOC_MAP), err);
    for (const struct doc *c = map->child; c; c = c->next)
        if (!is_known(c->key, keys))
            return unknown_key(f, c, keys, err);
    return 0;
}

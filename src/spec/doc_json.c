/* doc_json.c - JSON by cJSON, made strict
 *
 * cJSON knows neither places nor how a number was written, and it lets pass what JSON does not
 * have (01, 1., raw line ends in strings). So the text is walked once more beside cJSON's tree,
 * which says what comes next.
 *
 * cJSON_InitHooks() is process-wide, so it is called once, with hooks that take the arena of the
 * document that this thread decodes, and the C library's heap for everybody else. An arena frees
 * all at its end; hence a block of it must not outlive the decoding in cJSON's hands, and none
 * does. (cJSON also notes the place of the last error in a global; we never read it, but two
 * threads that decode at one time both write there.)
 */
#include "spec/doc_build.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "util/ascii.h"

#define TYPE_BITS 0xff /* of cJSON.type; flags above them */
#define ONES UINT64_C(0x0101010101010101)

static _Thread_local struct doc_arena *decoding;

static void *hook_malloc(size_t size)
{
    return decoding ? doc_alloc(decoding, size) : malloc(size);
}

static void hook_free(void *block)
{
    if (!decoding)
        free(block);
}

static void install_hooks(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = hook_malloc, .free_fn = hook_free});
}

/* ---- beside the tree ------------------------------------------------------------------------- */

struct walk {
    struct doc_file *f;
    struct spec_error *err;
    const char *p, *end;
    const char *line_start;
    uint32_t line;
    bool plain; /* nowhere an escape or a control character: a quote ends a string */
};

static struct doc_place place(const struct walk *w)
{
    return (struct doc_place){w->line, (uint32_t)(w->p - w->line_start) + 1};
}

static void skip_blanks(struct walk *w)
{
    for (; w->p < w->end && ascii_is_blank(*w->p); w->p++) {
        if (*w->p != '\n')
            continue;
        w->line++;
        w->line_start = w->p + 1;
    }
}

/* Over blanks and then one bracket, comma or colon. */
static void skip_mark(struct walk *w)
{
    skip_blanks(w);
    w->p++;
}

/* Over a string, which cJSON has read: it ends. */
static int skip_string(struct walk *w)
{
    if (w->plain) {
        w->p = (const char *)memchr(w->p + 1, '"', (size_t)(w->end - w->p - 1)) + 1;
        return 0;
    }
    for (w->p++; *w->p != '"'; w->p++) {
        if ((unsigned char)*w->p < ' ')
            return doc_syntax_error(w->f, place(w), w->err, "a control character in a string");
        if (*w->p != '\\')
            continue;
        w->p++;
        if (strncmp(w->p, "u0000", 5) == 0)
            return doc_syntax_error(w->f, place(w), w->err, "a NUL character in a string");
    }
    w->p++;
    return 0;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && ascii_is_digit(*p))
        p++;
    return p;
}

/* The end of the number at p as JSON spells it, or NULL. */
static const char *number_end(const char *p, const char *end)
{
    const char *digits;

    p += *p == '-';
    digits = p;
    p = skip_digits(p, end);
    if (p == digits || (*digits == '0' && p > digits + 1))
        return NULL;
    if (p < end && *p == '.') {
        digits = ++p;
        p = skip_digits(p, end);
        if (p == digits)
            return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '-' || *p == '+');
        digits = p;
        p = skip_digits(p, end);
        if (p == digits)
            return NULL;
    }
    return p;
}

static int number(struct walk *w, const cJSON *item, struct doc *d)
{
    const char *end = number_end(w->p, w->end);

    if (!end)
        return doc_syntax_error(w->f, place(w), w->err, "this is not how JSON writes a number");
    if (!isfinite(item->valuedouble))
        return doc_syntax_error(w->f, place(w), w->err, "a number beyond all bounds");
    d->kind = DOC_NUMBER;
    d->number = item->valuedouble;
    d->text = doc_copy(w->f->arena, w->p, (size_t)(end - w->p));
    w->p = end;
    return d->text ? 0 : doc_no_memory(w->f, w->err);
}

static void word(struct walk *w, struct doc *d, enum doc_kind kind, const char *text)
{
    d->kind = kind;
    d->truth = *text == 't';
    d->text = text;
    w->p += strlen(text);
}

static int convert(struct walk *w, const cJSON *item, struct doc *parent, struct doc **ret);

static int children(struct walk *w, const cJSON *item, struct doc *d)
{
    struct doc **tail = &d->child, *child;
    int r;

    skip_mark(w); /* the bracket */
    for (const cJSON *at = item->child; at; at = at->next) {
        if (d->kind == DOC_MAP) {
            skip_blanks(w);
            r = skip_string(w);
            if (r < 0)
                return r;
            skip_mark(w); /* the colon */
        }
        r = convert(w, at, d, &child);
        if (r < 0)
            return r;
        doc_append(d, &tail, child);
        skip_mark(w); /* the comma or the bracket */
    }
    if (!item->child)
        skip_mark(w);
    return d->kind == DOC_MAP ? doc_check_keys(w->f, d, w->err) : 0;
}

/* The value at w->p, which cJSON has read as `item`. */
static int convert(struct walk *w, const cJSON *item, struct doc *parent, struct doc **ret)
{
    struct doc *d = doc_alloc(w->f->arena, sizeof *d);
    int r = 0;

    if (!d)
        return doc_no_memory(w->f, w->err);
    skip_blanks(w);
    *d = (struct doc){.line = w->line, .parent = parent};
    if (parent && parent->kind == DOC_MAP)
        d->key = item->string;
    switch (item->type & TYPE_BITS) { /* asking cJSON would be a call for each kind */
    case cJSON_String:
        d->kind = DOC_STRING;
        d->text = item->valuestring;
        r = skip_string(w);
        break;
    case cJSON_Number:
        r = number(w, item, d);
        break;
    case cJSON_Array:
    case cJSON_Object:
        d->kind = item->type & cJSON_Array ? DOC_LIST : DOC_MAP;
        r = children(w, item, d);
        break;
    case cJSON_True:
        word(w, d, DOC_BOOL, "true");
        break;
    case cJSON_False:
        word(w, d, DOC_BOOL, "false");
        break;
    default:
        word(w, d, DOC_NULL, "null");
        break;
    }
    *ret = d;
    return r;
}

/* ---- before and after ------------------------------------------------------------------------ */

/* Move to `p`, to tell its place. */
static void walk_to(struct walk *w, const char *p)
{
    while (w->p < p) {
        if (*w->p++ != '\n')
            continue;
        w->line++;
        w->line_start = w->p;
    }
}

/* In which of its eight bytes is x below `limit` or equal to `c`? Their high bits, exact for the
 * lowest of them and never set where there is none. */
static uint64_t bytes_below(uint64_t x, uint64_t limit)
{
    return (x - ONES * limit) & ~x & (ONES * 0x80);
}

static uint64_t bytes_equal(uint64_t x, char c)
{
    return bytes_below(x ^ (ONES * (unsigned char)c), 1);
}

/* Most lines of a trace are flat and without escapes. Seeing that costs little, eight bytes at a
 * time, and spares the rest of the work. Returns whether a careful look at the depth is needed. */
static bool survey(struct walk *w)
{
    const char *p = w->p;
    size_t openings = 0;
    uint64_t x;

    for (w->plain = true; w->end - p >= 8; p += 8) {
        memcpy(&x, p, sizeof x);
        if (bytes_equal(x, '\\') | bytes_below(x, ' '))
            w->plain = false;
        if (bytes_equal(x | ONES * ('{' ^ '['), '{'))
            openings += 8; /* at most */
    }
    for (; p < w->end; p++) {
        if (*p == '\\' || (unsigned char)*p < ' ')
            w->plain = false;
        openings += *p == '{' || *p == '[';
    }
    return openings > DOC_DEPTH_MAX;
}

/* How deep the text goes, and whether all that it opens is closed at its end. */
struct nesting {
    const char *too_deep; /* where the first level too many begins, or NULL */
    bool open;
};

static struct nesting nesting(const char *p, const char *end)
{
    bool in_string = false;
    int depth = 0;

    for (; p < end && depth <= DOC_DEPTH_MAX; p++) {
        switch (*p) {
        case '"':
            in_string = !in_string;
            break;
        case '\\':
            p += in_string;
            break;
        case '[':
        case '{':
            depth += !in_string;
            break;
        case ']':
        case '}':
            depth -= !in_string;
            break;
        default:
            break;
        }
    }
    return (struct nesting){depth > DOC_DEPTH_MAX ? p - 1 : NULL, depth > 0 || in_string};
}

/* Before cJSON recurses: is there no level too many? */
static int check_depth(struct walk *w)
{
    const char *too_deep = survey(w) ? nesting(w->p, w->end).too_deep : NULL;

    if (!too_deep)
        return 0;
    walk_to(w, too_deep);
    return doc_syntax_error(w->f, place(w), w->err, "more than %d levels of nesting",
                            DOC_DEPTH_MAX);
}

static int check_rest(struct walk *w)
{
    skip_blanks(w);
    if (w->p == w->end)
        return 0;
    return doc_syntax_error(w->f, place(w), w->err, "more text behind the end of the document");
}

/* cJSON gave up at `p`. */
static int give_up(struct walk *w, const char *p)
{
    bool open = nesting(w->p, w->end).open;
    int shown = 0;

    walk_to(w, p < w->end ? p : w->end);
    if (w->p == w->end)
        return doc_syntax_error(w->f, place(w), w->err, "the text ends too early");
    while (shown < 20 && w->p + shown < w->end && w->p[shown] != '\n')
        shown++;
    return doc_syntax_error(w->f, place(w), w->err, "not JSON from here: %.*s%s", shown, w->p,
                            open ? " (and the text ends too early)" : "");
}

int doc_decode_json(struct doc_file *f, const char *text, size_t size, uint32_t first_line,
                    struct spec_error *err)
{
    static once_flag once = ONCE_FLAG_INIT;
    struct walk w = {
        .f = f, .err = err, .p = text, .end = text + size, .line_start = text, .line = first_line};
    const char *end = text;
    cJSON *tree;
    int r = check_depth(&w);

    if (r < 0)
        return r;
    call_once(&once, install_hooks);
    decoding = f->arena;
    tree = cJSON_ParseWithLengthOpts(text, size, &end, false);
    decoding = NULL;
    if (!tree)
        return f->arena->failed ? doc_no_memory(f, err) : give_up(&w, end);
    r = convert(&w, tree, NULL, &f->root);
    return r < 0 ? r : check_rest(&w);
}

/* trace.c - see trace.h
 *
 * Where the next object comes from. What it says is decided in trace_decode.c, whether it fits
 * in trace_history.c.
 */
#include "spec/trace.h"

#include <errno.h>
#include <string.h>

#include "spec/lines.h"
#include "spec/memory.h"
#include "spec/quick_line.h"
#include "spec/trace_decode.h"
#include "spec/trace_history.h"

struct trace {
    struct lines lines; /* a stream: `doc` holds its present line */
    struct doc_file doc;
    struct quick_line quick;
    const struct doc_file *f; /* &doc, or the document that has the list */
    const struct doc *list;   /* NULL: a stream */
    const struct doc *next;   /* the next element of the list */

    struct trace_rules rules;
    bool warned; /* by the first pass */
    char *name;
    struct trace_decoder decoder;
    struct trace_history history;
};

/* ---- the next object ---------------------------------------------------------------------- */

static bool blank(const char *text, size_t size)
{
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    return size == 0;
}

static int next_line(struct trace *t, struct spec_error *err)
{
    char *text;
    size_t size;
    bool cut;
    int r;

    do {
        r = lines_next(&t->lines, &text, &size, &cut, err);
        if (r <= 0)
            return r;
    } while (blank(text, size));
    r = quick_line_decode(&t->quick, &t->doc, text, size, t->lines.line, err);
    if (r == -EINVAL && cut)
        return lines_error(&t->lines, err, "the file is cut in the middle of line %u",
                           t->lines.line);
    return r < 0 ? r : 1;
}

/* 1 and the next object, borrowed until the next call; 0 at the end. */
static int next_object(struct trace *t, const struct doc **ret, struct spec_error *err)
{
    int r;

    if (t->list) {
        *ret = t->next;
        if (t->next)
            t->next = t->next->next;
        return *ret != NULL;
    }
    r = next_line(t, err);
    *ret = t->doc.root;
    return r;
}

static int read_header(struct trace *t, struct spec_error *err)
{
    const struct doc *object;
    const char *name = NULL;
    int r = next_object(t, &object, err);

    if (r < 0)
        return r;
    if (r == 0 && t->list)
        return doc_error(t->f, t->list, err, "is empty; a trace begins with its header");
    if (r == 0)
        return lines_error(&t->lines, err, "the file is empty; a trace begins with its header");
    r = trace_decode_header(t->f, object, &name, err);
    if (r < 0 || t->name || !name)
        return r;
    t->name = mem_text(spec_memory, name, strlen(name));
    return t->name ? 0 : doc_no_memory(t->f, err);
}

/* ---- opening and closing ------------------------------------------------------------------ */

static struct trace *new_trace(const char *name, const struct trace_rules *rules,
                               struct spec_error *err)
{
    struct trace *t = mem_zero(spec_memory, 1, sizeof *t);

    if (!t) {
        doc_no_memory(&(struct doc_file){.name = name}, err);
        return NULL;
    }
    t->lines.fd = -1;
    t->f = &t->doc;
    t->rules = *rules;
    t->history.job = rules->job;
    return t;
}

/* With what came of getting at the input: the header, and *ret. */
static int begin(struct trace *t, int r, struct trace **ret, struct spec_error *err)
{
    if (!t->list)
        t->doc.name = t->lines.name;
    if (r == 0)
        r = read_header(t, err);
    if (r < 0)
        trace_close(&t);
    else
        *ret = t;
    return r;
}

int trace_open(const char *path, const struct trace_rules *rules, struct trace **ret,
               struct spec_error *err)
{
    struct trace *t = new_trace(path, rules, err);

    if (!t)
        return -ENOMEM;
    return begin(t, lines_open(path, TRACE_LINE_MAX, true, &t->lines, err), ret, err);
}

int trace_of_text(const char *name, const char *text, size_t size, const struct trace_rules *rules,
                  struct trace **ret, struct spec_error *err)
{
    struct trace *t = new_trace(name, rules, err);

    if (!t)
        return -ENOMEM;
    return begin(t, lines_of(name, text, size, TRACE_LINE_MAX, &t->lines, err), ret, err);
}

int trace_of_list(const struct doc_file *f, const struct doc *list, const struct trace_rules *rules,
                  struct trace **ret, struct spec_error *err)
{
    struct trace *t;

    if (list->kind != DOC_LIST)
        return doc_error(f, list, err, "accepted: a list, first the header, then the events");
    t = new_trace(f->name, rules, err);
    if (!t)
        return -ENOMEM;
    t->f = f;
    t->list = list;
    t->next = list->child;
    return begin(t, 0, ret, err);
}

void trace_close(struct trace **t)
{
    if (!*t)
        return;
    trace_history_free(&(*t)->history);
    trace_decoder_free(&(*t)->decoder);
    doc_free(&(*t)->doc);
    quick_line_free(&(*t)->quick);
    lines_close(&(*t)->lines);
    mem_free(spec_memory, (*t)->name);
    mem_free(spec_memory, *t);
    *t = NULL;
}

const char *trace_name(const struct trace *t)
{
    return t->name;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* An event that does not fit: 0 if it is to be left out. */
static int leave_out(const struct trace *t, const struct spec_error *err)
{
    if (!t->rules.lenient)
        return -EINVAL;
    if (t->rules.warn && !t->warned)
        t->rules.warn(t->rules.ctx, err->text);
    return 0;
}

int trace_next(struct trace *t, struct trace_event *ret, struct spec_error *err)
{
    const struct doc *object;
    struct trace_event ev;
    int r;

    while ((r = next_object(t, &object, err)) == 1) {
        r = trace_decode(&t->decoder, t->f, object, &ev, err);
        if (r == 0)
            r = trace_history_take(&t->history, t->f, object, &ev, err);
        if (r == 0) {
            *ret = ev;
            return 1;
        }
        if (r == HISTORY_MISFIT)
            r = leave_out(t, err);
        if (r < 0)
            return r;
    }
    t->warned = t->warned || r == 0;
    return r;
}

int trace_rewind(struct trace *t, struct spec_error *err)
{
    int r = 0;

    trace_history_free(&t->history);
    if (t->list)
        t->next = t->list->child;
    else
        r = lines_rewind(&t->lines, err);
    return r < 0 ? r : read_header(t, err);
}

int trace_scan(struct trace *t, struct trace_summary *ret, struct spec_error *err)
{
    struct trace_summary sum = {0};
    struct trace_event ev;
    uint64_t told = 0;
    int r = trace_rewind(t, err);

    if (r < 0)
        return r;
    while ((r = trace_next(t, &ev, err)) == 1) {
        sum.events++;
        sum.last_t_ms = ev.t_ms;
        sum.has_checkpoints |= ev.kind == TRACE_CHECKPOINT || ev.kind == TRACE_CHECKPOINT_FAILED;
        sum.has_savepoints |=
            ev.kind == TRACE_SAVEPOINT_COMPLETED || ev.kind == TRACE_SAVEPOINT_FAILED;
        told += ev.kind == TRACE_LAUNCHED || ev.kind == TRACE_LAUNCH_FAILED;
        if (ev.kind == TRACE_LAUNCHED)
            sum.launches = told;
    }
    sum.lines = t->lines.line;
    sum.bytes = t->lines.bytes;
    if (r == 0)
        r = trace_rewind(t, err);
    if (r == 0)
        *ret = sum;
    return r;
}

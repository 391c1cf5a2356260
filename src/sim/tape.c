/* tape.c - see tape.h */
#include "sim/tape.h"

#include <errno.h>
#include <string.h>

#include "sim/cluster.h"

/* ---- copies ------------------------------------------------------------------------------- */

/* The block is the tape's from here on; false: no memory, and it is freed. */
static bool keep(struct tape *tape, void *block)
{
    void **place = block ? vec_push(NULL, &tape->blocks) : NULL;

    if (place)
        *place = block;
    else
        mem_free(NULL, block);
    return place != NULL;
}

static bool copy_text(struct tape *tape, const char **text)
{
    char *copy;

    if (!*text)
        return true;
    copy = mem_text(NULL, *text, strlen(*text));
    if (!keep(tape, copy))
        return false;
    *text = copy;
    return true;
}

static bool copy_labels(struct tape *tape, struct trace_event *ev)
{
    struct pliant_label *labels;

    if (ev->n_labels == 0)
        return true;
    labels = mem_zero(NULL, ev->n_labels, sizeof *labels);
    if (!keep(tape, labels))
        return false;
    memcpy(labels, ev->labels, ev->n_labels * sizeof *labels);
    ev->labels = labels;
    for (size_t i = 0; i < ev->n_labels; i++)
        if (!copy_text(tape, &labels[i].key) || !copy_text(tape, &labels[i].value))
            return false;
    return true;
}

static int add_event(struct tape *tape, const struct trace_event *ev)
{
    struct trace_event *copy = vec_push(NULL, &tape->events);

    if (!copy)
        return -ENOMEM;
    *copy = *ev;
    return copy_text(tape, &copy->node) && copy_text(tape, &copy->zone) &&
                   copy_text(tape, &copy->domain) && copy_text(tape, &copy->vertex) &&
                   copy_text(tape, &copy->cause) && copy_labels(tape, copy)
               ? 0
               : -ENOMEM;
}

/* ---- slots over time ---------------------------------------------------------------------- */

static int note_slots(struct tape *tape, int64_t at_ms, uint64_t slots)
{
    struct bound_step *last = tape->steps.n > 0 ? &tape->steps.v[tape->steps.n - 1] : NULL;

    if (last && last->at_ms == at_ms) {
        last->offered = slots;
        if (tape->steps.n > 1 && last[-1].offered == slots)
            tape->steps.n--; /* what changed has changed back at the same instant */
        return 0;
    }
    if (last && last->offered == slots)
        return 0;
    last = vec_push(NULL, &tape->steps);
    if (!last)
        return -ENOMEM;
    *last = (struct bound_step){at_ms, slots};
    return 0;
}

static int count_slots(struct tape *tape, struct cluster *up, uint64_t *slots,
                       const struct trace_event *ev)
{
    struct cluster_node *node;

    if (ev->kind == TRACE_NODE_UP && !ev->withdraws) {
        if (!cluster_join(up, ev->node, ev->incarnation, ev->slots))
            return -ENOMEM;
        *slots += ev->slots;
    } else if (ev->kind == TRACE_NODE_DOWN && (node = cluster_find(up, ev->node)) != NULL) {
        *slots -= node->slots;
        cluster_leave(up, node);
    }
    return note_slots(tape, ev->t_ms, *slots);
}

/* ---- reading ------------------------------------------------------------------------------ */

static bool about_the_cluster(enum trace_kind kind)
{
    return kind == TRACE_NODE_UP || kind == TRACE_NODE_DOWN || kind == TRACE_NODE_DRAIN ||
           kind == TRACE_TASK_FAILED || kind == TRACE_GLOBAL_FAILURE;
}

static int read_events(struct tape *tape, struct trace *trace, struct cluster *up,
                       struct spec_error *err)
{
    struct trace_event ev;
    uint64_t slots = 0;
    int r = note_slots(tape, 0, 0), more;

    while (!r && (more = trace_next(trace, &ev, err)) != 0) {
        if (more < 0)
            return more;
        tape->end_ms = ev.t_ms;
        if (about_the_cluster(ev.kind)) {
            r = count_slots(tape, up, &slots, &ev);
            r = r ? r : add_event(tape, &ev);
        } else {
            tape->left_out++;
        }
    }
    return r;
}

/* "traces/a.jsonl" is a. */
static char *name_of(const struct trace *trace, const char *path)
{
    const char *given = trace_name(trace), *slash = strrchr(path, '/'), *dot;
    char *name;

    path = slash ? slash + 1 : path;
    dot = strrchr(path, '.');
    if (given && *given)
        name = mem_text(NULL, given, strlen(given));
    else
        name = mem_text(NULL, path, dot && dot > path ? (size_t)(dot - path) : strlen(path));
    for (char *c = name; c && *c; c++) /* it stands in tables */
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    return name;
}

int tape_record(struct trace *trace, const char *path, struct tape *ret, struct spec_error *err)
{
    struct tape tape = {0};
    struct cluster up;
    int r;

    cluster_init(&up, NULL);
    r = read_events(&tape, trace, &up, err);
    if (!r && !(tape.name = name_of(trace, path)))
        r = -ENOMEM;
    cluster_free(&up);
    if (!r)
        *ret = tape;
    else
        tape_free(&tape);
    return r;
}

int tape_read(const char *path, const struct trace_rules *rules, struct tape *ret,
              struct spec_error *err)
{
    struct trace *trace = NULL;
    int r;

    err->text[0] = '\0';
    r = trace_open(path, rules, &trace, err);
    if (!r)
        r = tape_record(trace, path, ret, err);
    trace_close(&trace);
    return r;
}

void tape_free(struct tape *tape)
{
    for (size_t i = 0; i < tape->blocks.n; i++)
        mem_free(NULL, tape->blocks.v[i]);
    vec_free(NULL, &tape->blocks);
    vec_free(NULL, &tape->events);
    vec_free(NULL, &tape->steps);
    mem_free(NULL, tape->name);
    *tape = (struct tape){0};
}

/* trace_decode.c - see trace_decode.h */
#include "spec/trace_decode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/nearest.h"

#define KEYS_MAX 10

/* What each kind has: "t" and "ev" first, then the keys that it needs, then those it may have. */
static const struct kind_row {
    const char *name;
    const char *keys[KEYS_MAX]; /* NULL-terminated */
    size_t n_needed;            /* the first of them */
} kinds[TRACE_KINDS] = {
    /* clang-format off */
    [TRACE_NODE_UP] =
        {"node_up", {"t", "ev", "node", "slots", "zone", "domain", "labels"}, 4},
    [TRACE_NODE_DOWN] = {"node_down", {"t", "ev", "node"}, 3},
    [TRACE_NODE_DRAIN] = {"node_drain", {"t", "ev", "node", "deadline_ms", "reason"}, 3},
    [TRACE_CHECKPOINT] = {"checkpoint", {"t", "ev", "id"}, 3},
    [TRACE_CHECKPOINT_FAILED] = {"checkpoint_failed", {"t", "ev", "id", "counts"}, 3},
    [TRACE_SAVEPOINT_COMPLETED] = {"savepoint_completed", {"t", "ev", "path"}, 2},
    [TRACE_SAVEPOINT_FAILED] = {"savepoint_failed", {"t", "ev", "cause"}, 2},
    [TRACE_TASK_RUNNING] = {"task_running", {"t", "ev", "vertex", "subtask"}, 4},
    [TRACE_TASK_FINISHED] = {"task_finished", {"t", "ev", "vertex", "subtask"}, 4},
    [TRACE_TASK_CANCELED] = {"task_canceled", {"t", "ev", "vertex", "subtask"}, 4},
    [TRACE_TASK_FAILED] =
        {"task_failed", {"t", "ev", "vertex", "subtask", "recoverable", "cause"}, 4},
    [TRACE_GLOBAL_FAILURE] = {"global_failure", {"t", "ev", "recoverable", "cause"}, 2},
    [TRACE_CREATION_FAILED] = {"creation_failed", {"t", "ev", "recoverable", "cause"}, 2},
    [TRACE_REQUIREMENTS] = {"requirements", {"t", "ev", "vertices"}, 3},
    [TRACE_CANCEL] = {"cancel", {"t", "ev"}, 2},
    [TRACE_SUSPEND] = {"suspend", {"t", "ev"}, 2},
    [TRACE_STOP_WITH_SAVEPOINT] = {"stop_with_savepoint", {"t", "ev"}, 2},
    /* clang-format on */
};

static const char *const worker_group_kinds[] = {"launched", "launch_failed", "worker_exit",
                                                 "report", NULL};

const char *trace_kind_name(enum trace_kind kind)
{
    return kinds[kind].name;
}

/* A key that may be missing. */
static int optional(int r)
{
    return r == -ENOENT ? 0 : r;
}

static int no_memory(const struct doc_file *f, struct spec_error *err)
{
    snprintf(err->text, sizeof err->text, "%s: no memory", f->name);
    return -ENOMEM;
}

/* A name of at least one byte. */
static int decode_name(const struct doc_file *f, const struct doc *map, const char *key,
                       const char **ret, struct spec_error *err)
{
    int r = doc_string(f, map, key, PLIANT_NAME_MAX, ret, err);

    if (r < 0)
        return r;
    if ((*ret)[0] == '\0')
        return doc_error(f, doc_get(map, key), err, "is empty; accepted: 1 to %u bytes",
                         PLIANT_NAME_MAX);
    return 0;
}

/* The same, where an empty one says no more than a missing one. */
static int decode_place(const struct doc_file *f, const struct doc *map, const char *key,
                        const char **ret, struct spec_error *err)
{
    int r = optional(doc_string(f, map, key, PLIANT_NAME_MAX, ret, err));

    if (r == 0 && *ret && (*ret)[0] == '\0')
        *ret = NULL;
    return r;
}

static int decode_labels(struct trace_decoder *d, const struct doc_file *f, const struct doc *map,
                         struct trace_event *ev, struct spec_error *err)
{
    const struct doc *labels = doc_get(map, "labels");

    d->labels.n = 0;
    if (!labels)
        return 0;
    if (labels->kind != DOC_MAP)
        return doc_error(f, labels, err, "accepted: a map of strings");
    for (const struct doc *at = labels->child; at; at = at->next) {
        struct pliant_label *label = vec_push(NULL, &d->labels);
        int r;

        if (!label)
            return no_memory(f, err);
        label->key = at->key;
        if (at->key[0] == '\0' || strlen(at->key) > PLIANT_NAME_MAX)
            return doc_error(f, at, err, "the label's name must have 1 to %u bytes",
                             PLIANT_NAME_MAX);
        r = doc_string(f, labels, at->key, PLIANT_NAME_MAX, &label->value, err);
        if (r < 0)
            return r;
    }
    ev->labels = d->labels.v;
    ev->n_labels = d->labels.n;
    return 0;
}

static int decode_node_up(struct trace_decoder *d, const struct doc_file *f, const struct doc *map,
                          struct trace_event *ev, struct spec_error *err)
{
    int64_t slots = 0;
    int r = decode_name(f, map, "node", &ev->node, err);

    if (r == 0)
        r = doc_int(f, map, "slots", 0, PLIANT_MAX_SLOTS, &slots, err);
    if (r == 0)
        r = decode_place(f, map, "zone", &ev->zone, err);
    if (r == 0)
        r = decode_place(f, map, "domain", &ev->domain, err);
    if (r == 0)
        r = decode_labels(d, f, map, ev, err);
    ev->slots = (uint32_t)slots;
    return r;
}

static int decode_drain(const struct doc_file *f, const struct doc *map, struct trace_event *ev,
                        struct spec_error *err)
{
    const char *reason = NULL;
    int r = decode_name(f, map, "node", &ev->node, err);

    if (r == 0)
        r = optional(doc_int(f, map, "deadline_ms", -DOC_INTEGER_MAX, DOC_INTEGER_MAX, &ev->deadline_ms, err));
    if (r == 0)
        r = optional(doc_string(f, map, "reason", PLIANT_NAME_MAX, &reason, err));
    ev->reason = PLIANT_DRAIN_PREEMPTION;
    if (r < 0 || !reason)
        return r;
    for (enum pliant_drain_reason i = PLIANT_DRAIN_PREEMPTION; i <= PLIANT_DRAIN_IDLE; i++)
        if (strcmp(reason, pliant_drain_reason_name(i)) == 0) {
            ev->reason = i;
            return 0;
        }
    return doc_error(f, doc_get(map, "reason"), err,
                     "\"%.40s\" is not a reason; accepted: preemption, scale-down, upgrade, idle",
                     reason);
}

static int decode_checkpoint(const struct doc_file *f, const struct doc *map,
                             struct trace_event *ev, struct spec_error *err)
{
    int64_t id = 0;
    int r = doc_int(f, map, "id", 1, DOC_INTEGER_MAX, &id, err);

    ev->counts = true;
    if (r == 0)
        r = optional(doc_bool(f, map, "counts", &ev->counts, err));
    ev->id = (uint64_t)id;
    return r;
}

/* With or without a task. */
static int decode_failure(const struct doc_file *f, const struct doc *map, struct trace_event *ev,
                          struct spec_error *err)
{
    int r;

    ev->recoverable = true;
    r = optional(doc_bool(f, map, "recoverable", &ev->recoverable, err));
    if (r == 0)
        r = optional(doc_string(f, map, "cause", TRACE_LINE_MAX, &ev->cause, err));
    return r;
}

static int decode_task(const struct doc_file *f, const struct doc *map, struct trace_event *ev,
                       struct spec_error *err)
{
    int64_t subtask = 0;
    int r = decode_name(f, map, "vertex", &ev->vertex, err);

    if (r == 0)
        r = doc_int(f, map, "subtask", 0, PLIANT_MAX_PARALLELISM - 1, &subtask, err);
    if (r == 0 && ev->kind == TRACE_TASK_FAILED)
        r = decode_failure(f, map, ev, err);
    ev->subtask = (uint32_t)subtask;
    return r;
}

static int decode_bounds(const struct doc_file *f, const struct doc *at,
                         struct pliant_bounds *bounds, struct spec_error *err)
{
    static const char *const keys[] = {"min", "max", NULL};
    int r;

    if (at->key[0] == '\0' || strlen(at->key) > PLIANT_NAME_MAX)
        return doc_error(f, at, err, "the vertex's name must have 1 to %u bytes",
                         PLIANT_NAME_MAX);
    if (at->kind != DOC_MAP)
        return doc_error(f, at, err, "accepted: {\"min\": N, \"max\": N}");
    *bounds = (struct pliant_bounds){.vertex = at->key, .min = -1, .max = -1};
    r = doc_known_keys(f, at, keys, err);
    if (r == 0)
        r = optional(doc_int(f, at, "min", -DOC_INTEGER_MAX, DOC_INTEGER_MAX, &bounds->min, err));
    if (r == 0)
        r = optional(doc_int(f, at, "max", -DOC_INTEGER_MAX, DOC_INTEGER_MAX, &bounds->max, err));
    return r;
}

static int decode_requirements(struct trace_decoder *d, const struct doc_file *f, const struct doc *map,
                               struct trace_event *ev, struct spec_error *err)
{
    const struct doc *vertices = doc_get(map, "vertices");

    d->bounds.n = 0;
    if (vertices->kind != DOC_MAP)
        return doc_error(f, vertices, err, "accepted: {\"VERTEX\": {\"min\": N, \"max\": N}, ...}");
    for (const struct doc *at = vertices->child; at; at = at->next) {
        struct pliant_bounds *bounds = vec_push(NULL, &d->bounds);
        int r = bounds ? decode_bounds(f, at, bounds, err) : no_memory(f, err);

        if (r < 0)
            return r;
    }
    ev->bounds = d->bounds.v;
    ev->n_bounds = d->bounds.n;
    return 0;
}

static int decode_rest(struct trace_decoder *d, const struct doc_file *f, const struct doc *map,
                       struct trace_event *ev, struct spec_error *err)
{
    switch (ev->kind) {
    case TRACE_NODE_UP:
        return decode_node_up(d, f, map, ev, err);
    case TRACE_NODE_DOWN:
        return decode_name(f, map, "node", &ev->node, err);
    case TRACE_NODE_DRAIN:
        return decode_drain(f, map, ev, err);
    case TRACE_CHECKPOINT:
    case TRACE_CHECKPOINT_FAILED:
        return decode_checkpoint(f, map, ev, err);
    case TRACE_SAVEPOINT_COMPLETED:
        return optional(doc_string(f, map, "path", TRACE_LINE_MAX, &ev->path, err));
    case TRACE_SAVEPOINT_FAILED:
        return optional(doc_string(f, map, "cause", TRACE_LINE_MAX, &ev->cause, err));
    case TRACE_TASK_RUNNING:
    case TRACE_TASK_FINISHED:
    case TRACE_TASK_CANCELED:
    case TRACE_TASK_FAILED:
        return decode_task(f, map, ev, err);
    case TRACE_GLOBAL_FAILURE:
    case TRACE_CREATION_FAILED:
        return decode_failure(f, map, ev, err);
    case TRACE_REQUIREMENTS:
        return decode_requirements(d, f, map, ev, err);
    case TRACE_CANCEL:
    case TRACE_SUSPEND:
    case TRACE_STOP_WITH_SAVEPOINT:
    case TRACE_KINDS:
        return 0;
    }
    return 0;
}

static int unknown_kind(const struct doc_file *f, const struct doc *at, const char *name,
                        struct spec_error *err)
{
    struct nearest n;

    for (const char *const *known = worker_group_kinds; *known; known++)
        if (strcmp(name, *known) == 0)
            return doc_error(f, at, err, "events of worker groups (%s) are not available yet",
                             name);
    nearest_start(&n, name);
    for (size_t i = 0; i < TRACE_KINDS; i++)
        nearest_offer(&n, kinds[i].name);
    if (n.best)
        return doc_error(f, at, err, "unknown event \"%.40s\"; did you mean \"%s\"?", name, n.best);
    return doc_error(f, at, err, "unknown event \"%.40s\"; accepted: node_up, node_down, node_drain, checkpoint, ...", name);
}

static int decode_kind(const struct doc_file *f, const struct doc *map, struct trace_event *ev,
                       struct spec_error *err)
{
    const char *name = NULL;
    int r = doc_string(f, map, "ev", PLIANT_NAME_MAX, &name, err);

    if (r == -ENOENT)
        return doc_error(f, map, err, "\"ev\" is missing: the kind of the event");
    if (r < 0)
        return r;
    for (enum trace_kind kind = TRACE_NODE_UP; kind < TRACE_KINDS; kind++)
        if (strcmp(name, kinds[kind].name) == 0) {
            ev->kind = kind;
            return 0;
        }
    return unknown_kind(f, doc_get(map, "ev"), name, err);
}

static int check_keys(const struct doc_file *f, const struct doc *map, enum trace_kind kind,
                      struct spec_error *err)
{
    const struct kind_row *row = &kinds[kind];

    for (size_t i = 0; i < row->n_needed; i++)
        if (!doc_get(map, row->keys[i]))
            return doc_error(f, map, err, "\"%s\" is missing, which %s needs", row->keys[i],
                             row->name);
    return doc_known_keys(f, map, row->keys, err);
}

int trace_decode(struct trace_decoder *d, const struct doc_file *f, const struct doc *object,
                 struct trace_event *ret, struct spec_error *err)
{
    struct trace_event ev = {.line = object->line};
    int r;

    if (object->kind != DOC_MAP)
        return doc_error(f, object, err, "accepted: an event, {\"t\": N, \"ev\": \"...\", ...}");
    r = decode_kind(f, object, &ev, err);
    if (r == 0)
        r = check_keys(f, object, ev.kind, err);
    if (r == 0)
        r = doc_int(f, object, "t", 0, DOC_INTEGER_MAX, &ev.t_ms, err);
    if (r == 0)
        r = decode_rest(d, f, object, &ev, err);
    if (r == 0)
        *ret = ev;
    return r;
}

int trace_decode_header(const struct doc_file *f, const struct doc *object, const char **ret_name,
                        struct spec_error *err)
{
    const struct doc *name;
    int64_t version;

    if (object->kind != DOC_MAP || !doc_get(object, "pliant_trace"))
        return doc_error(f, object, err,
                         "a trace begins with its header, {\"pliant_trace\": 1, \"name\": \"...\"}");
    if (doc_int(f, object, "pliant_trace", 1, 1, &version, err) < 0)
        return doc_error(f, doc_get(object, "pliant_trace"), err,
                         "unknown version of the trace format; accepted: 1");
    name = doc_get(object, "name");
    *ret_name = name && name->kind == DOC_STRING ? name->text : NULL;
    return 0;
}

void trace_decoder_free(struct trace_decoder *d)
{
    vec_free(NULL, &d->labels);
    vec_free(NULL, &d->bounds);
}

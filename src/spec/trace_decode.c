/* trace_decode.c - see trace_decode.h */
#include "spec/trace_decode.h"

#include <errno.h>
#include <string.h>

#include "spec/memory.h"
#include "util/decimal.h"
#include "util/nearest.h"

/* Every key of every kind. */
enum key {
    KEY_T,
    KEY_EV,
    KEY_NODE,
    KEY_SLOTS,
    KEY_ZONE,
    KEY_DOMAIN,
    KEY_LABELS,
    KEY_DEADLINE,
    KEY_REASON,
    KEY_ID,
    KEY_COUNTS,
    KEY_PATH,
    KEY_CAUSE,
    KEY_VERTEX,
    KEY_SUBTASK,
    KEY_RECOVERABLE,
    KEY_VERTICES,
    KEY_CODE,
    KEY_SIGNAL,
    KEY_CALL,
    KEY_DIR,
    KEY_EDGE,
    KEY_PRODUCER,
    KEYS,
};

static const char *const key_names[KEYS] = {
    "t",        "ev",   "node",   "slots", "zone",  "domain", "labels",   "deadline_ms",
    "reason",   "id",   "counts", "path",  "cause", "vertex", "subtask",  "recoverable",
    "vertices", "code", "signal", "call",  "dir",   "edge",   "producer",
};

#define KEYS_OF_KIND 9

/* What each kind has: first the keys that it needs, then those that it may have. */
static const struct kind_row {
    const char *name;
    enum key keys[KEYS_OF_KIND];
    size_t n_needed, n;
} kinds[TRACE_KINDS] = {
    /* clang-format off */
    [TRACE_NODE_UP] = {"node_up",
        {KEY_T, KEY_EV, KEY_NODE, KEY_SLOTS, KEY_ZONE, KEY_DOMAIN, KEY_LABELS}, 4, 7},
    [TRACE_NODE_DOWN] = {"node_down", {KEY_T, KEY_EV, KEY_NODE}, 3, 3},
    [TRACE_NODE_DRAIN] = {"node_drain",
        {KEY_T, KEY_EV, KEY_NODE, KEY_DEADLINE, KEY_REASON}, 3, 5},
    [TRACE_CHECKPOINT] = {"checkpoint", {KEY_T, KEY_EV, KEY_ID}, 3, 3},
    [TRACE_CHECKPOINT_FAILED] = {"checkpoint_failed", {KEY_T, KEY_EV, KEY_ID, KEY_COUNTS}, 3, 4},
    [TRACE_SAVEPOINT_COMPLETED] = {"savepoint_completed", {KEY_T, KEY_EV, KEY_PATH}, 2, 3},
    [TRACE_SAVEPOINT_FAILED] = {"savepoint_failed", {KEY_T, KEY_EV, KEY_CAUSE}, 2, 3},
    [TRACE_TASK_RUNNING] = {"task_running", {KEY_T, KEY_EV, KEY_VERTEX, KEY_SUBTASK}, 4, 4},
    [TRACE_TASK_FINISHED] = {"task_finished", {KEY_T, KEY_EV, KEY_VERTEX, KEY_SUBTASK}, 4, 4},
    [TRACE_TASK_CANCELED] = {"task_canceled", {KEY_T, KEY_EV, KEY_VERTEX, KEY_SUBTASK}, 4, 4},
    [TRACE_TASK_FAILED] = {"task_failed",
        {KEY_T, KEY_EV, KEY_VERTEX, KEY_SUBTASK, KEY_RECOVERABLE, KEY_CAUSE, KEY_CODE, KEY_EDGE,
         KEY_PRODUCER}, 4, 9},
    [TRACE_GLOBAL_FAILURE] = {"global_failure", {KEY_T, KEY_EV, KEY_RECOVERABLE, KEY_CAUSE}, 2, 4},
    [TRACE_CREATION_FAILED] = {"creation_failed",
        {KEY_T, KEY_EV, KEY_RECOVERABLE, KEY_CAUSE}, 2, 4},
    [TRACE_REQUIREMENTS] = {"requirements", {KEY_T, KEY_EV, KEY_VERTICES}, 3, 3},
    [TRACE_CANCEL] = {"cancel", {KEY_T, KEY_EV}, 2, 2},
    [TRACE_SUSPEND] = {"suspend", {KEY_T, KEY_EV}, 2, 2},
    [TRACE_STOP_WITH_SAVEPOINT] = {"stop_with_savepoint", {KEY_T, KEY_EV}, 2, 2},
    [TRACE_LAUNCHED] = {"launched", {KEY_T, KEY_EV}, 2, 2},
    [TRACE_LAUNCH_FAILED] = {"launch_failed", {KEY_T, KEY_EV, KEY_CAUSE}, 2, 3},
    [TRACE_WORKER_EXIT] = {"worker_exit",
        {KEY_T, KEY_EV, KEY_VERTEX, KEY_SUBTASK, KEY_CODE, KEY_SIGNAL, KEY_CAUSE}, 4, 7},
    [TRACE_REPORT] = {"report",
        {KEY_T, KEY_EV, KEY_VERTEX, KEY_SUBTASK, KEY_CALL, KEY_DIR}, 5, 6},
    /* clang-format on */
};

/* An object with its members by key, so that each is looked for once. */
struct object {
    struct trace_decoder *d;
    const struct doc_file *f;
    const struct doc *map;
    const struct doc *at[KEYS]; /* NULL: it has none such */
    struct spec_error *err;
};

/* An integer, or *ret as it is where there is none. */
static int decode_int(const struct object *o, enum key key, int64_t min, int64_t max, int64_t *ret)
{
    return o->at[key] ? doc_as_int(o->f, o->at[key], min, max, ret, o->err) : 0;
}

static int decode_bool(const struct object *o, enum key key, bool *ret)
{
    return o->at[key] ? doc_bool(o->f, o->map, key_names[key], ret, o->err) : 0;
}

static int decode_text(const struct object *o, enum key key, const char **ret)
{
    return o->at[key] ? doc_as_string(o->f, o->at[key], TRACE_LINE_MAX, ret, o->err) : 0;
}

static int check_name(const struct object *o, const struct doc *at, const char *name)
{
    if (name[0] && strlen(name) <= PLIANT_NAME_MAX)
        return 0;
    return doc_error(o->f, at, o->err, "a name has 1 to %u bytes", PLIANT_NAME_MAX);
}

/* A name, which must be there. */
static int decode_name(const struct object *o, enum key key, const char **ret)
{
    int r = doc_as_string(o->f, o->at[key], PLIANT_NAME_MAX, ret, o->err);

    return r < 0 ? r : check_name(o, o->at[key], *ret);
}

/* A name, where an empty one says no more than none. */
static int decode_place(const struct object *o, enum key key, const char **ret)
{
    int r = decode_text(o, key, ret);

    if (r < 0 || !*ret)
        return r;
    if ((*ret)[0])
        return check_name(o, o->at[key], *ret);
    *ret = NULL;
    return 0;
}

static int decode_label(const struct object *o, const struct doc *at)
{
    struct pliant_label *label = vec_push(spec_memory, &o->d->labels);
    double times;
    int r;

    if (!label)
        return doc_no_memory(o->f, o->err);
    label->key = at->key;
    r = check_name(o, at, at->key);
    if (r == 0)
        r = doc_as_string(o->f, at, PLIANT_NAME_MAX, &label->value, o->err);
    if (r == 0 && strcmp(label->key, TRACE_SLOW_LABEL) == 0 &&
        !(decimal_read(label->value, &times) && times > 0))
        r = doc_error(o->f, at, o->err, "is \"%.40s\"; accepted: a number > 0", label->value);
    return r;
}

static int decode_labels(const struct object *o, struct trace_event *ev)
{
    const struct doc *labels = o->at[KEY_LABELS];
    int r = 0;

    if (!labels)
        return 0;
    if (labels->kind != DOC_MAP)
        return doc_error(o->f, labels, o->err, "accepted: a map of strings");
    o->d->labels.n = 0;
    for (const struct doc *at = labels->child; at && r == 0; at = at->next)
        r = decode_label(o, at);
    ev->labels = o->d->labels.v;
    ev->n_labels = o->d->labels.n;
    return r;
}

static int decode_node_up(const struct object *o, struct trace_event *ev)
{
    int64_t slots = 0;
    int r = decode_name(o, KEY_NODE, &ev->node);

    if (r == 0)
        r = decode_int(o, KEY_SLOTS, 0, PLIANT_MAX_SLOTS, &slots);
    if (r == 0)
        r = decode_place(o, KEY_ZONE, &ev->zone);
    if (r == 0)
        r = decode_place(o, KEY_DOMAIN, &ev->domain);
    if (r == 0)
        r = decode_labels(o, ev);
    ev->slots = (uint32_t)slots;
    return r;
}

static int decode_reason(const struct object *o, enum pliant_drain_reason *ret)
{
    const char *name = NULL;
    int r = decode_text(o, KEY_REASON, &name);

    *ret = PLIANT_DRAIN_PREEMPTION;
    if (r < 0 || !name)
        return r;
    for (enum pliant_drain_reason i = PLIANT_DRAIN_PREEMPTION; i <= PLIANT_DRAIN_IDLE; i++)
        if (strcmp(name, pliant_drain_reason_name(i)) == 0) {
            *ret = i;
            return 0;
        }
    return doc_error(o->f, o->at[KEY_REASON], o->err,
                     "unknown reason \"%.40s\"; accepted: preemption, scale-down, upgrade, idle",
                     name);
}

static int decode_drain(const struct object *o, struct trace_event *ev)
{
    int r = decode_name(o, KEY_NODE, &ev->node);

    if (r == 0)
        r = decode_int(o, KEY_DEADLINE, -DOC_INTEGER_MAX, DOC_INTEGER_MAX, &ev->deadline_ms);
    return r < 0 ? r : decode_reason(o, &ev->reason);
}

static int decode_checkpoint(const struct object *o, struct trace_event *ev)
{
    int64_t id = 0;
    int r = decode_int(o, KEY_ID, 1, DOC_INTEGER_MAX, &id);

    ev->id = (uint64_t)id;
    ev->counts = true;
    return r < 0 ? r : decode_bool(o, KEY_COUNTS, &ev->counts);
}

/* With or without a task. */
static int decode_failure(const struct object *o, struct trace_event *ev)
{
    int r;

    ev->recoverable = true;
    r = decode_bool(o, KEY_RECOVERABLE, &ev->recoverable);
    return r < 0 ? r : decode_text(o, KEY_CAUSE, &ev->cause);
}

/* What the task could not read: both, or neither. */
static int decode_lost_input(const struct object *o, struct trace_event *ev)
{
    int64_t edge = 0, producer = 0;
    int r = decode_int(o, KEY_EDGE, 0, UINT32_MAX, &edge);

    if (r == 0)
        r = decode_int(o, KEY_PRODUCER, 0, PLIANT_MAX_PARALLELISM - 1, &producer);
    if (r == 0 && (o->at[KEY_EDGE] == NULL) != (o->at[KEY_PRODUCER] == NULL))
        return doc_error(o->f, o->map, o->err,
                         "accepted: \"edge\" and \"producer\" together, or neither");
    ev->input_lost = o->at[KEY_EDGE] != NULL;
    ev->edge = (uint32_t)edge;
    ev->producer = (uint32_t)producer;
    return r;
}

#define EXIT_CODE_MAX 255
#define SIGNAL_MAX 64

static int decode_task(const struct object *o, struct trace_event *ev)
{
    int64_t subtask = 0;
    int r = decode_name(o, KEY_VERTEX, &ev->vertex);

    if (r == 0)
        r = decode_int(o, KEY_SUBTASK, 0, PLIANT_MAX_PARALLELISM - 1, &subtask);
    if (r == 0 && ev->kind == TRACE_TASK_FAILED)
        r = decode_failure(o, ev);
    if (r == 0 && ev->kind == TRACE_TASK_FAILED)
        r = decode_int(o, KEY_CODE, 1, EXIT_CODE_MAX, &ev->code);
    if (r == 0 && ev->kind == TRACE_TASK_FAILED)
        r = decode_lost_input(o, ev);
    ev->subtask = (uint32_t)subtask;
    return r;
}

static int decode_exit(const struct object *o, struct trace_event *ev)
{
    int r = decode_task(o, ev);

    ev->code = ev->signal = -1;
    if (r == 0 && (o->at[KEY_CODE] == NULL) == (o->at[KEY_SIGNAL] == NULL))
        return doc_error(o->f, o->map, o->err,
                         "accepted: \"code\" or \"signal\", which worker_exit needs");
    if (r == 0)
        r = decode_int(o, KEY_CODE, 0, EXIT_CODE_MAX, &ev->code);
    if (r == 0)
        r = decode_int(o, KEY_SIGNAL, 1, SIGNAL_MAX, &ev->signal);
    return r < 0 ? r : decode_text(o, KEY_CAUSE, &ev->cause);
}

static int decode_report(const struct object *o, struct trace_event *ev)
{
    int64_t call = 0;
    int r = decode_task(o, ev);

    if (r == 0)
        r = decode_int(o, KEY_CALL, 1, DOC_INTEGER_MAX, &call);
    ev->call = (uint64_t)call;
    if (r < 0 || !o->at[KEY_DIR] || o->at[KEY_DIR]->kind == DOC_NULL)
        return r;
    return decode_name(o, KEY_DIR, &ev->path);
}

static int decode_bounds(const struct object *o, const struct doc *at)
{
    static const char *const keys[] = {"min", "max", NULL};
    struct pliant_bounds *bounds = vec_push(spec_memory, &o->d->bounds);
    int r;

    if (!bounds)
        return doc_no_memory(o->f, o->err);
    *bounds = (struct pliant_bounds){.vertex = at->key, .min = -1, .max = -1};
    r = check_name(o, at, at->key);
    if (r == 0)
        r = doc_known_keys(o->f, at, keys, o->err);
    if (r == 0)
        r = doc_int(o->f, at, "min", -DOC_INTEGER_MAX, DOC_INTEGER_MAX, &bounds->min, o->err);
    if (r == 0 || r == -ENOENT)
        r = doc_int(o->f, at, "max", -DOC_INTEGER_MAX, DOC_INTEGER_MAX, &bounds->max, o->err);
    return r == -ENOENT ? 0 : r;
}

static int decode_requirements(const struct object *o, struct trace_event *ev)
{
    const struct doc *vertices = o->at[KEY_VERTICES];
    int r = 0;

    if (vertices->kind != DOC_MAP)
        return doc_error(o->f, vertices, o->err,
                         "accepted: {\"VERTEX\": {\"min\": N, \"max\": N}, ...}");
    o->d->bounds.n = 0;
    for (const struct doc *at = vertices->child; at && r == 0; at = at->next)
        r = decode_bounds(o, at);
    ev->bounds = o->d->bounds.v;
    ev->n_bounds = o->d->bounds.n;
    return r;
}

static int decode_rest(const struct object *o, struct trace_event *ev)
{
    switch (ev->kind) {
    case TRACE_NODE_UP:
        return decode_node_up(o, ev);
    case TRACE_NODE_DOWN:
        return decode_name(o, KEY_NODE, &ev->node);
    case TRACE_NODE_DRAIN:
        return decode_drain(o, ev);
    case TRACE_CHECKPOINT:
    case TRACE_CHECKPOINT_FAILED:
        return decode_checkpoint(o, ev);
    case TRACE_SAVEPOINT_COMPLETED:
        return decode_text(o, KEY_PATH, &ev->path);
    case TRACE_SAVEPOINT_FAILED:
        return decode_text(o, KEY_CAUSE, &ev->cause);
    case TRACE_TASK_RUNNING:
    case TRACE_TASK_FINISHED:
    case TRACE_TASK_CANCELED:
    case TRACE_TASK_FAILED:
        return decode_task(o, ev);
    case TRACE_GLOBAL_FAILURE:
    case TRACE_CREATION_FAILED:
        return decode_failure(o, ev);
    case TRACE_REQUIREMENTS:
        return decode_requirements(o, ev);
    case TRACE_LAUNCH_FAILED:
        return decode_text(o, KEY_CAUSE, &ev->cause);
    case TRACE_WORKER_EXIT:
        return decode_exit(o, ev);
    case TRACE_REPORT:
        return decode_report(o, ev);
    case TRACE_LAUNCHED:
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

    nearest_start(&n, name);
    for (size_t i = 0; i < TRACE_KINDS; i++)
        nearest_offer(&n, kinds[i].name);
    if (n.best)
        return doc_error(f, at, err, "unknown event \"%.40s\"; did you mean \"%s\"?", name, n.best);
    return doc_error(
        f, at, err,
        "unknown event \"%.40s\"; accepted: node_up, node_down, node_drain, checkpoint, ...", name);
}

static int decode_kind(const struct doc_file *f, const struct doc *map, struct trace_event *ev,
                       struct spec_error *err)
{
    const char *name = NULL;
    int r = doc_string(f, map, "ev", PLIANT_NAME_MAX, &name, err);

    if (r == -ENOENT)
        return doc_error(f, map, err, "\"ev\" is missing, which every event needs");
    if (r < 0)
        return r;
    for (enum trace_kind kind = TRACE_NODE_UP; kind < TRACE_KINDS; kind++)
        if (strcmp(name, kinds[kind].name) == 0) {
            ev->kind = kind;
            return 0;
        }
    return unknown_kind(f, doc_get(map, "ev"), name, err);
}

static int unknown_key(const struct object *o, const struct kind_row *row)
{
    const char *names[KEYS_OF_KIND + 1] = {NULL};

    for (size_t i = 0; i < row->n; i++)
        names[i] = key_names[row->keys[i]];
    return doc_known_keys(o->f, o->map, names, o->err);
}

static int find_members(struct object *o, const struct kind_row *row)
{
    for (const struct doc *at = o->map->child; at; at = at->next) {
        size_t i = 0;

        while (i < row->n && strcmp(at->key, key_names[row->keys[i]]) != 0)
            i++;
        if (i < row->n)
            o->at[row->keys[i]] = at;
        else if (!doc_is_extra(at->key))
            return unknown_key(o, row);
    }
    for (size_t i = 0; i < row->n_needed; i++)
        if (!o->at[row->keys[i]])
            return doc_error(o->f, o->map, o->err, "\"%s\" is missing, which %s needs",
                             key_names[row->keys[i]], row->name);
    return 0;
}

int trace_decode(struct trace_decoder *d, const struct doc_file *f, const struct doc *object,
                 struct trace_event *ret, struct spec_error *err)
{
    struct object o = {.d = d, .f = f, .map = object, .err = err};
    struct trace_event ev = {.line = object->line};
    int r;

    if (object->kind != DOC_MAP)
        return doc_error(f, object, err, "accepted: an event, {\"t\": N, \"ev\": \"...\", ...}");
    r = decode_kind(f, object, &ev, err);
    if (r == 0)
        r = find_members(&o, &kinds[ev.kind]);
    if (r == 0)
        r = decode_int(&o, KEY_T, 0, DOC_INTEGER_MAX, &ev.t_ms);
    if (r == 0)
        r = decode_rest(&o, &ev);
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
        return doc_error(
            f, object, err,
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
    vec_free(spec_memory, &d->labels);
    vec_free(spec_memory, &d->bounds);
}

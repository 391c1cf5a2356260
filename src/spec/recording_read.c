/* recording_read.c - see recording.h: the reading half
 *
 * Only the event of a step is decoded; its actions stay text, to be compared or ignored. A step
 * may be of any length (a plan of 100,000 slots is one), so lines have no limit but memory.
 */
#include "spec/recording.h"

#include <errno.h>
#include <string.h>

#include "spec/job_spec.h"
#include "spec/lines.h"
#include "spec/memory.h"
#include "spec/quick_line.h"
#include "util/decimal.h"
#include "util/nearest.h"
#include "util/vec.h"

#define LINE_MAX_BYTES ((size_t)1 << 40)

struct recording_decoder {
    const struct pliant_job *job;
    struct doc_file doc;
    struct quick_line quick;
    struct VEC(struct pliant_label) labels;
    struct VEC(struct pliant_bounds) bounds;
    struct VEC(struct pliant_state_size) sizes;
    struct VEC(struct pliant_output) outputs;
    struct VEC(uint64_t) bytes; /* of all outputs */
};

struct recording {
    struct recording_decoder decoder;
    struct lines lines;
    struct job_spec job;
    struct pliant_config cfg;
    struct VEC(uint8_t) snapshot;
    int64_t t_ms; /* of the last step */
    bool has_step;
};

/* Decoding with an error that sticks: after the first one the getters answer 0 or NULL. */
struct reader {
    struct recording_decoder *decoder;
    const struct doc *map; /* whose members are read */
    int error;
    struct spec_error *err;
};

/* ---- members ------------------------------------------------------------------------------ */

/* A member of this kind, or NULL after an error. */
static const struct doc *member(struct reader *r, const char *key, enum doc_kind kind,
                                const char *accepted)
{
    const struct doc *at = r->error ? NULL : doc_get(r->map, key);

    if (at && at->kind == kind)
        return at;
    if (!r->error && at)
        r->error = doc_error(&r->decoder->doc, at, r->err, "accepted: %s", accepted);
    else if (!r->error)
        r->error = doc_error(&r->decoder->doc, r->map, r->err, "\"%s\" is missing", key);
    return NULL;
}

static bool has(const struct reader *r, const char *key)
{
    return !r->error && doc_get(r->map, key);
}

static const char *text(struct reader *r, const char *key)
{
    const struct doc *at = member(r, key, DOC_STRING, "a string");

    return at ? at->text : NULL;
}

static const char *text_or_null(struct reader *r, const char *key)
{
    return has(r, key) ? text(r, key) : NULL;
}

static bool truth(struct reader *r, const char *key)
{
    const struct doc *at = member(r, key, DOC_BOOL, "true or false");

    return at && at->truth;
}

/* Exact, also beyond what a double holds. */
static int64_t integer(struct reader *r, const char *key)
{
    const struct doc *at = member(r, key, DOC_NUMBER, "a whole number");
    int64_t i = 0;

    if (at && !decimal_read_int(at->text, &i))
        r->error = doc_error(&r->decoder->doc, at, r->err, "accepted: a whole number of 64 bits");
    return i;
}

static int64_t instant(struct reader *r, const char *key)
{
    return has(r, key) ? integer(r, key) : PLIANT_NEVER;
}

static uint32_t count(struct reader *r, const char *key)
{
    int64_t i = integer(r, key);

    if (!r->error && (i < 0 || i > UINT32_MAX))
        r->error = doc_error(&r->decoder->doc, doc_get(r->map, key), r->err, "accepted: 0 to %u",
                             UINT32_MAX);
    return r->error ? 0 : (uint32_t)i;
}

/* A 64-bit number in a string. */
static uint64_t id(struct reader *r, const char *key)
{
    const char *digits = text(r, key);
    uint64_t value = 0;
    bool ok = digits && *digits;

    for (const char *c = digits; ok && *c; c++) {
        uint64_t digit = (uint64_t)(*c - '0');

        ok = *c >= '0' && *c <= '9' && value <= (UINT64_MAX - digit) / 10;
        value = value * 10 + digit;
    }
    if (digits && !ok)
        r->error =
            doc_error(&r->decoder->doc, doc_get(r->map, key), r->err,
                      "accepted: a string of digits, up to %llu", (unsigned long long)UINT64_MAX);
    return ok ? value : 0;
}

static uint64_t id_or_0(struct reader *r, const char *key)
{
    return has(r, key) ? id(r, key) : 0;
}

static pliant_vertex_id vertex(struct reader *r, const char *key)
{
    const char *name = text(r, key);
    pliant_vertex_id v = {0};

    if (!name)
        return v;
    v = pliant_job_vertex_find(r->decoder->job, name);
    if (!v.v)
        r->error = doc_error(&r->decoder->doc, doc_get(r->map, key), r->err,
                             "the job has no vertex \"%s\"", name);
    return v;
}

static struct pliant_task task(struct reader *r)
{
    struct pliant_task t = {{0}, 0, 0};

    if (!has(r, "vertex"))
        return t;
    t.vertex = vertex(r, "vertex");
    t.subtask = count(r, "subtask");
    t.attempt = count(r, "attempt");
    return t;
}

static enum pliant_drain_reason drain_reason(struct reader *r)
{
    const char *name = text(r, "reason");

    for (enum pliant_drain_reason i = PLIANT_DRAIN_PREEMPTION; name && i <= PLIANT_DRAIN_IDLE; i++)
        if (strcmp(name, pliant_drain_reason_name(i)) == 0)
            return i;
    if (name)
        r->error = doc_error(&r->decoder->doc, doc_get(r->map, "reason"), r->err,
                             "unknown reason \"%.40s\" of a drain", name);
    return PLIANT_DRAIN_PREEMPTION;
}

static void known_keys(struct reader *r, const char *const *keys)
{
    if (!r->error)
        r->error = doc_known_keys(&r->decoder->doc, r->map, keys, r->err);
}

/* ---- lists -------------------------------------------------------------------------------- */

/* The reader of an element that must be a map with these keys. */
static struct reader element(struct reader *r, const struct doc *at, const char *const *keys)
{
    struct reader e = {.decoder = r->decoder, .map = at, .error = r->error, .err = r->err};

    if (!e.error && at->kind != DOC_MAP)
        e.error = doc_error(&r->decoder->doc, at, r->err, "accepted: a map");
    known_keys(&e, keys);
    return e;
}

static void labels(struct reader *r, struct pliant_event *ev)
{
    const struct doc *map = has(r, "labels") ? member(r, "labels", DOC_MAP, "a map") : NULL;

    r->decoder->labels.n = 0;
    for (const struct doc *at = map ? map->child : NULL; at && !r->error; at = at->next) {
        struct reader e = {.decoder = r->decoder, .map = map, .err = r->err};
        struct pliant_label *label = vec_push(spec_memory, &r->decoder->labels);

        if (!label) {
            r->error = doc_no_memory(&r->decoder->doc, r->err);
            return;
        }
        label->key = at->key;
        label->value = text(&e, at->key);
        r->error = e.error;
    }
    ev->node_up.labels = r->decoder->labels.v;
    ev->node_up.n_labels = r->decoder->labels.n;
}

static void sizes(struct reader *r, struct pliant_event *ev)
{
    static const char *const keys[] = {"vertex", "subtask", "bytes", NULL};
    const struct doc *list = has(r, "sizes") ? member(r, "sizes", DOC_LIST, "a list") : NULL;

    r->decoder->sizes.n = 0;
    for (const struct doc *at = list ? list->child : NULL; at && !r->error; at = at->next) {
        struct reader e = element(r, at, keys);
        struct pliant_state_size *size = vec_push(spec_memory, &r->decoder->sizes);

        if (!size) {
            r->error = doc_no_memory(&r->decoder->doc, r->err);
            return;
        }
        size->vertex = vertex(&e, "vertex");
        size->subtask = count(&e, "subtask");
        size->bytes = id(&e, "bytes");
        r->error = e.error;
    }
    ev->checkpoint.sizes = r->decoder->sizes.v;
    ev->checkpoint.n_sizes = r->decoder->sizes.n;
}

static void output_bytes(struct reader *r, struct pliant_output *output)
{
    const struct doc *list = member(r, "bytes", DOC_LIST, "a list of numbers");

    for (const struct doc *at = list ? list->child : NULL; at && !r->error; at = at->next) {
        uint64_t *place = vec_push(spec_memory, &r->decoder->bytes);
        int64_t bytes = 0;

        if (!place)
            r->error = doc_no_memory(&r->decoder->doc, r->err);
        else
            r->error =
                doc_as_int(&r->decoder->doc, at, 0, (int64_t)PLIANT_BYTES_MAX, &bytes, r->err);
        if (place)
            *place = (uint64_t)bytes;
        output->n++;
    }
}

static void outputs(struct reader *r, struct pliant_event *ev)
{
    static const char *const keys[] = {"edge", "bytes", NULL};
    const struct doc *list = has(r, "outputs") ? member(r, "outputs", DOC_LIST, "a list") : NULL;
    size_t first = 0;

    r->decoder->outputs.n = r->decoder->bytes.n = 0;
    for (const struct doc *at = list ? list->child : NULL; at && !r->error; at = at->next) {
        struct reader e = element(r, at, keys);
        struct pliant_output *output = vec_push(spec_memory, &r->decoder->outputs);

        if (!output) {
            r->error = doc_no_memory(&r->decoder->doc, r->err);
            return;
        }
        *output = (struct pliant_output){.edge = count(&e, "edge")};
        output_bytes(&e, output);
        r->error = e.error;
    }
    for (size_t i = 0; i < r->decoder->outputs.n; i++) { /* the bytes have their place by now */
        struct pliant_output *output = &r->decoder->outputs.v[i];

        output->bytes = r->decoder->bytes.v ? r->decoder->bytes.v + first : NULL;
        first += output->n;
    }
    ev->finished.outputs = r->decoder->outputs.v;
    ev->finished.n_outputs = r->decoder->outputs.n;
}

static void requirements(struct reader *r, struct pliant_event *ev)
{
    static const char *const keys[] = {"vertex", "min", "max", NULL};
    const struct doc *list = member(r, "vertices", DOC_LIST, "a list");

    r->decoder->bounds.n = 0;
    for (const struct doc *at = list ? list->child : NULL; at && !r->error; at = at->next) {
        struct reader e = element(r, at, keys);
        struct pliant_bounds *bounds = vec_push(spec_memory, &r->decoder->bounds);

        if (!bounds) {
            r->error = doc_no_memory(&r->decoder->doc, r->err);
            return;
        }
        bounds->vertex = text(&e, "vertex");
        bounds->min = integer(&e, "min");
        bounds->max = integer(&e, "max");
        r->error = e.error;
    }
    ev->requirements.v = r->decoder->bounds.v;
    ev->requirements.n = r->decoder->bounds.n;
}

/* ---- events ------------------------------------------------------------------------------- */

#define NODE_KEYS "ev", "node", "incarnation"
#define TASK_KEYS "ev", "vertex", "subtask", "attempt"
#define CHECKPOINT_KEYS                                                                            \
    "ev", "id", "own_accord", "counts", "triggered_at_ms", "path", "cause", "sizes"

static const char *const keys_of[PLIANT_EVENTS][11] = {
    [PLIANT_EV_TICK] = {"ev"},
    [PLIANT_EV_START] = {"ev"},
    [PLIANT_EV_NODE_UP] = {NODE_KEYS, "slots", "zone", "domain", "labels"},
    [PLIANT_EV_NODE_DRAINING] = {NODE_KEYS, "deadline_at_ms", "reason"},
    [PLIANT_EV_NODE_DRAIN_WITHDRAWN] = {NODE_KEYS},
    [PLIANT_EV_NODE_LOST] = {NODE_KEYS},
    [PLIANT_EV_SLOTS_GRANTED] = {NODE_KEYS, "slots"},
    [PLIANT_EV_SLOTS_RECLAIMED] = {NODE_KEYS, "slots", "deadline_at_ms"},
    [PLIANT_EV_SLOTS_RESERVED] = {"ev", "plan"},
    [PLIANT_EV_SLOTS_REFUSED] = {"ev", "plan"},
    [PLIANT_EV_CREATION_FAILED] = {"ev", "plan", "recoverable", "cause"},
    [PLIANT_EV_TASK_INITIALIZING] = {TASK_KEYS},
    [PLIANT_EV_TASK_RUNNING] = {TASK_KEYS},
    [PLIANT_EV_TASK_END_OF_DATA] = {TASK_KEYS},
    [PLIANT_EV_TASK_FINISHED] = {TASK_KEYS, "outputs"},
    [PLIANT_EV_TASK_CANCELED] = {TASK_KEYS},
    [PLIANT_EV_TASK_FAILED] = {TASK_KEYS, "recoverable", "cause", "death", "exit_code", "edge",
                               "producer"},
    [PLIANT_EV_GLOBAL_FAILURE] = {TASK_KEYS, "recoverable", "cause"},
    [PLIANT_EV_REPORT] = {TASK_KEYS, "call", "path"},
    [PLIANT_EV_CHECKPOINT_COMPLETED] = {CHECKPOINT_KEYS},
    [PLIANT_EV_CHECKPOINT_FAILED] = {CHECKPOINT_KEYS},
    [PLIANT_EV_SAVEPOINT_COMPLETED] = {CHECKPOINT_KEYS},
    [PLIANT_EV_SAVEPOINT_FAILED] = {CHECKPOINT_KEYS},
    [PLIANT_EV_REQUIREMENTS] = {"ev", "vertices"},
    [PLIANT_EV_CHECKPOINT_REQUESTED] = {"ev"},
    [PLIANT_EV_SAVEPOINT_REQUESTED] = {"ev", "dir", "cancel", "drain"},
    [PLIANT_EV_STOP] = {"ev", "dir", "cancel", "drain"},
    [PLIANT_EV_CANCEL] = {"ev"},
    [PLIANT_EV_SUSPEND] = {"ev"},
};

static void node_up(struct reader *r, struct pliant_event *ev)
{
    ev->node_up.name = text(r, "node");
    ev->node_up.incarnation = id_or_0(r, "incarnation");
    ev->node_up.slots = count(r, "slots");
    ev->node_up.zone = text_or_null(r, "zone");
    ev->node_up.domain = text_or_null(r, "domain");
    labels(r, ev);
}

static void checkpoint(struct reader *r, struct pliant_event *ev)
{
    ev->checkpoint.id = id_or_0(r, "id");
    ev->checkpoint.own_accord = truth(r, "own_accord");
    ev->checkpoint.counts = truth(r, "counts");
    ev->checkpoint.triggered_at_ms = integer(r, "triggered_at_ms");
    ev->checkpoint.path = text_or_null(r, "path");
    ev->checkpoint.cause = text_or_null(r, "cause");
    sizes(r, ev);
}

static enum pliant_death death(struct reader *r)
{
    const char *name = has(r, "death") ? text(r, "death") : NULL;

    if (!name)
        return PLIANT_DEATH_ERROR;
    for (enum pliant_death d = PLIANT_DEATH_ERROR; d < PLIANT_DEATHS; d++)
        if (strcmp(name, pliant_death_name(d)) == 0)
            return d;
    r->error = doc_error(&r->decoder->doc, doc_get(r->map, "death"), r->err,
                         "unknown death \"%.40s\"; accepted: error, crash, terminated, hung, "
                         "port-in-use",
                         name);
    return PLIANT_DEATH_ERROR;
}

static uint8_t exit_code(struct reader *r)
{
    uint32_t code = has(r, "exit_code") ? count(r, "exit_code") : 0;

    if (!r->error && code > UINT8_MAX)
        r->error = doc_error(&r->decoder->doc, doc_get(r->map, "exit_code"), r->err,
                             "accepted: 0 to %u", UINT8_MAX);
    return (uint8_t)code;
}

static void members(struct reader *r, struct pliant_event *ev)
{
    switch (ev->kind) {
    case PLIANT_EV_TICK:
    case PLIANT_EV_START:
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_CANCEL:
    case PLIANT_EV_SUSPEND:
    case PLIANT_EVENTS:
        return;
    case PLIANT_EV_NODE_UP:
        node_up(r, ev);
        return;
    case PLIANT_EV_NODE_DRAINING:
        ev->draining.name = text(r, "node");
        ev->draining.incarnation = id_or_0(r, "incarnation");
        ev->draining.deadline_at_ms = instant(r, "deadline_at_ms");
        ev->draining.reason = drain_reason(r);
        return;
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
    case PLIANT_EV_NODE_LOST:
        ev->node.name = text(r, "node");
        ev->node.incarnation = id_or_0(r, "incarnation");
        return;
    case PLIANT_EV_SLOTS_GRANTED:
        ev->granted.name = text(r, "node");
        ev->granted.incarnation = id_or_0(r, "incarnation");
        ev->granted.slots = count(r, "slots");
        return;
    case PLIANT_EV_SLOTS_RECLAIMED:
        ev->reclaimed.name = text(r, "node");
        ev->reclaimed.incarnation = id_or_0(r, "incarnation");
        ev->reclaimed.slots = count(r, "slots");
        ev->reclaimed.deadline_at_ms = instant(r, "deadline_at_ms");
        return;
    case PLIANT_EV_SLOTS_RESERVED:
    case PLIANT_EV_SLOTS_REFUSED:
        ev->plan.plan = count(r, "plan");
        return;
    case PLIANT_EV_CREATION_FAILED:
        ev->plan.plan = count(r, "plan");
        ev->plan.recoverable = truth(r, "recoverable");
        ev->plan.cause = text_or_null(r, "cause");
        return;
    case PLIANT_EV_TASK_INITIALIZING:
    case PLIANT_EV_TASK_RUNNING:
    case PLIANT_EV_TASK_END_OF_DATA:
    case PLIANT_EV_TASK_CANCELED:
        ev->task = task(r);
        return;
    case PLIANT_EV_TASK_FINISHED:
        ev->finished.task = task(r);
        outputs(r, ev);
        return;
    case PLIANT_EV_TASK_FAILED:
    case PLIANT_EV_GLOBAL_FAILURE:
        ev->failure.task = task(r);
        ev->failure.recoverable = truth(r, "recoverable");
        ev->failure.cause = text_or_null(r, "cause");
        ev->failure.death = death(r);
        ev->failure.exit_code = exit_code(r);
        ev->failure.input_lost = has(r, "edge");
        if (ev->failure.input_lost) {
            ev->failure.edge = count(r, "edge");
            ev->failure.producer = count(r, "producer");
        }
        return;
    case PLIANT_EV_REPORT:
        ev->report.task = task(r);
        ev->report.call = id(r, "call");
        ev->report.path = text_or_null(r, "path");
        return;
    case PLIANT_EV_CHECKPOINT_COMPLETED:
    case PLIANT_EV_CHECKPOINT_FAILED:
    case PLIANT_EV_SAVEPOINT_COMPLETED:
    case PLIANT_EV_SAVEPOINT_FAILED:
        checkpoint(r, ev);
        return;
    case PLIANT_EV_REQUIREMENTS:
        requirements(r, ev);
        return;
    case PLIANT_EV_SAVEPOINT_REQUESTED:
    case PLIANT_EV_STOP:
        ev->savepoint.dir = text_or_null(r, "dir");
        ev->savepoint.cancel = truth(r, "cancel");
        ev->savepoint.drain = truth(r, "drain");
        return;
    }
}

static enum pliant_event_kind kind(struct reader *r)
{
    const char *name = text(r, "ev");
    struct nearest n;

    if (!name)
        return PLIANT_EV_TICK;
    for (enum pliant_event_kind k = PLIANT_EV_TICK; k < PLIANT_EVENTS; k++)
        if (strcmp(name, pliant_event_name(k)) == 0)
            return k;
    nearest_start(&n, name);
    for (enum pliant_event_kind k = PLIANT_EV_TICK; k < PLIANT_EVENTS; k++)
        nearest_offer(&n, pliant_event_name(k));
    r->error = doc_error(&r->decoder->doc, doc_get(r->map, "ev"), r->err,
                         "unknown event \"%.40s\"%s%s%s", name, n.best ? "; did you mean \"" : "",
                         n.best ? n.best : "", n.best ? "\"?" : "");
    return PLIANT_EV_TICK;
}

static int read_event(struct recording_decoder *decoder, const struct doc *map,
                      struct pliant_event *ret, struct spec_error *err)
{
    struct reader r = {.decoder = decoder, .map = map, .err = err};
    struct pliant_event ev = {.kind = PLIANT_EV_TICK};

    ev.kind = kind(&r);
    known_keys(&r, keys_of[ev.kind]);
    members(&r, &ev);
    if (!r.error)
        *ret = ev;
    return r.error;
}

/* ---- lines -------------------------------------------------------------------------------- */

/* 1 and the next line; 0 at the end. A line without an end was cut, or is whole by chance. */
static int next_line(struct recording *rec, char **ret_text, size_t *ret_size,
                     struct spec_error *err)
{
    bool cut;
    int r = lines_next(&rec->lines, ret_text, ret_size, &cut, err);

    if (r == 1 && cut && (*ret_size == 0 || (*ret_text)[*ret_size - 1] != '}'))
        return lines_error(&rec->lines, err, "the file is cut in the middle of line %u",
                           rec->lines.line);
    return r;
}

/* Where `,"actions":[...]}` begins in a step, NULL where it has none. No string can hold these
 * bytes, because its quotes would have backslashes. */
static char *find_actions(char *text, size_t size)
{
    static const char key[] = ",\"actions\":[";
    char *at = text, *end = text + size;

    if (size < 2 || end[-1] != '}' || end[-2] != ']')
        return NULL;
    while ((at = memchr(at, ',', (size_t)(end - at)))) {
        if ((size_t)(end - at) > sizeof key && memcmp(at, key, sizeof key - 1) == 0)
            return at;
        at++;
    }
    return NULL;
}

static int read_step(struct recording *rec, struct recording_step *ret, struct spec_error *err)
{
    static const char *const keys[] = {"t", "event", NULL};
    struct reader r = {.decoder = &rec->decoder, .map = rec->decoder.doc.root, .err = err};
    const struct doc *event;

    if (rec->decoder.doc.root->kind != DOC_MAP)
        return doc_error(&rec->decoder.doc, rec->decoder.doc.root, err, "accepted: a step");
    known_keys(&r, keys);
    ret->at_ms = integer(&r, "t");
    event = member(&r, "event", DOC_MAP, "a map");
    if (!event)
        return r.error;
    if (rec->has_step && ret->at_ms < rec->t_ms)
        return doc_error(&rec->decoder.doc, doc_get(r.map, "t"), err,
                         "time goes back from %lld to %lld", (long long)rec->t_ms,
                         (long long)ret->at_ms);
    return read_event(&rec->decoder, event, &ret->event, err);
}

int recording_next(struct recording *rec, struct recording_step *ret, struct spec_error *err)
{
    struct recording_step step;
    char *line, *actions;
    size_t size;
    int r = next_line(rec, &line, &size, err);

    if (r <= 0)
        return r;
    actions = find_actions(line, size);
    if (!actions)
        return lines_error(&rec->lines, err,
                           "a step is {\"t\":N,\"event\":{...},\"actions\":[...]}, without spaces");
    *actions = '}'; /* {"t":N,"event":{...}} */
    r = quick_line_decode(&rec->decoder.quick, &rec->decoder.doc, line,
                          (size_t)(actions - line) + 1, rec->lines.line, err);
    if (r == 0)
        r = read_step(rec, &step, err);
    if (r < 0)
        return r;
    step.actions = actions + strlen(",\"actions\":");
    step.actions_size = (size_t)(line + size - 1 - step.actions);
    step.line = rec->lines.line;
    rec->t_ms = step.at_ms;
    rec->has_step = true;
    *ret = step;
    return 1;
}

/* ---- header ------------------------------------------------------------------------------- */

static void set_option(struct reader *r, struct pliant_config *cfg, const char *key,
                       const char *value)
{
    struct pliant_error why;

    if (!r->error && value && pliant_config_set(cfg, key, value, &why) < 0)
        r->error = doc_error(&r->decoder->doc, r->map, r->err, "%s", why.text);
}

static void read_options(struct reader *r, struct pliant_config *cfg)
{
    const struct doc *map = member(r, "options", DOC_MAP, "a map of strings");
    struct reader options = {.decoder = r->decoder, .map = map, .error = r->error, .err = r->err};

    for (const struct doc *at = map ? map->child : NULL; at && !options.error; at = at->next)
        set_option(&options, cfg, at->key, text(&options, at->key));
    r->error = options.error;
}

/* 0..15, or -1. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void read_snapshot(struct reader *r, struct recording *rec)
{
    const char *digits = has(r, "snapshot") ? text(r, "snapshot") : NULL;
    size_t n = digits ? strlen(digits) : 0;

    if (!digits)
        return;
    if (!vec_reserve(spec_memory, &rec->snapshot, n / 2 + 1)) {
        r->error = doc_no_memory(&r->decoder->doc, r->err);
        return;
    }
    for (size_t i = 0; i + 1 < n; i += 2) {
        int high = hex_digit(digits[i]), low = hex_digit(digits[i + 1]);

        if (high < 0 || low < 0)
            break;
        rec->snapshot.v[rec->snapshot.n++] = (uint8_t)(high << 4 | low);
    }
    if (n == 0 || 2 * rec->snapshot.n != n)
        r->error = doc_error(&r->decoder->doc, doc_get(r->map, "snapshot"), r->err,
                             "accepted: bytes as pairs of hexadecimal digits");
}

static void read_version(struct reader *r)
{
    int64_t version = integer(r, "pliant_journal");

    if (!r->error && version != 1)
        r->error = doc_error(&r->decoder->doc, doc_get(r->map, "pliant_journal"), r->err,
                             "unknown version of the recording format; accepted: 1");
}

static int decode_header(struct recording *rec, struct spec_error *err)
{
    static const char *const keys[] = {"pliant_journal", "job",      "options",
                                       "seed",           "snapshot", NULL};
    struct reader r = {.decoder = &rec->decoder, .map = rec->decoder.doc.root, .err = err};
    struct pliant_error why;
    const struct doc *job;

    if (rec->decoder.doc.root->kind != DOC_MAP || !doc_get(rec->decoder.doc.root, "pliant_journal"))
        return doc_error(&rec->decoder.doc, rec->decoder.doc.root, err,
                         "a recording begins with its header, {\"pliant_journal\":1,...}");
    read_version(&r);
    known_keys(&r, keys);
    read_options(&r, &rec->cfg);
    set_option(&r, &rec->cfg, "pliant.seed", text(&r, "seed"));
    read_snapshot(&r, rec);
    job = member(&r, "job", DOC_MAP, "a job spec");
    if (r.error)
        return r.error;
    rec->cfg.worker_group = doc_get(job, "worker_group") != NULL;
    if (pliant_config_resolve(&rec->cfg, &why) < 0)
        return doc_error(&rec->decoder.doc, doc_get(r.map, "options"), err, "%s", why.text);
    return job_spec_decode(&rec->decoder.doc, job, &rec->job, err);
}

static int read_header(struct recording *rec, struct spec_error *err)
{
    char *line;
    size_t size;
    int r = next_line(rec, &line, &size, err);

    if (r == 0)
        return lines_error(&rec->lines, err,
                           "the file is empty; a recording begins with its header");
    if (r == 1)
        r = quick_line_decode(&rec->decoder.quick, &rec->decoder.doc, line, size, rec->lines.line,
                              err);
    if (r == 0)
        r = decode_header(rec, err);
    rec->decoder.job = rec->job.job;
    return r;
}

/* ---- opening and closing ------------------------------------------------------------------ */

static struct recording *new_recording(const char *name, struct spec_error *err)
{
    struct recording *rec = mem_zero(spec_memory, 1, sizeof *rec);

    if (!rec) {
        doc_no_memory(&(struct doc_file){.name = name}, err);
        return NULL;
    }
    rec->lines.fd = -1;
    pliant_config_init(&rec->cfg);
    return rec;
}

static int begin(struct recording *rec, int r, struct recording **ret, struct spec_error *err)
{
    rec->decoder.doc.name = rec->lines.name;
    if (r == 0)
        r = read_header(rec, err);
    if (r < 0)
        recording_close(&rec);
    else
        *ret = rec;
    return r;
}

int recording_open(const char *path, struct recording **ret, struct spec_error *err)
{
    struct recording *rec = new_recording(path, err);

    if (!rec)
        return -ENOMEM;
    return begin(rec, lines_open(path, LINE_MAX_BYTES, false, &rec->lines, err), ret, err);
}

int recording_of_text(const char *name, const char *text, size_t size, struct recording **ret,
                      struct spec_error *err)
{
    struct recording *rec = new_recording(name, err);

    if (!rec)
        return -ENOMEM;
    return begin(rec, lines_of(name, text, size, LINE_MAX_BYTES, &rec->lines, err), ret, err);
}

static void free_decoder(struct recording_decoder *decoder)
{
    vec_free(spec_memory, &decoder->labels);
    vec_free(spec_memory, &decoder->bounds);
    vec_free(spec_memory, &decoder->sizes);
    vec_free(spec_memory, &decoder->outputs);
    vec_free(spec_memory, &decoder->bytes);
    doc_free(&decoder->doc);
    quick_line_free(&decoder->quick);
}

void recording_close(struct recording **r)
{
    struct recording *rec = *r;

    if (!rec)
        return;
    free_decoder(&rec->decoder);
    vec_free(spec_memory, &rec->snapshot);
    job_spec_free(&rec->job);
    lines_close(&rec->lines);
    mem_free(spec_memory, rec);
    *r = NULL;
}

const char *recording_name(const struct recording *r)
{
    return r->lines.name;
}

const struct pliant_job *recording_job(const struct recording *r)
{
    return r->job.job;
}

const struct pliant_config *recording_config(const struct recording *r)
{
    return &r->cfg;
}

const void *recording_snapshot(const struct recording *r, size_t *ret_size)
{
    *ret_size = r->snapshot.n;
    return r->snapshot.n ? r->snapshot.v : NULL;
}

/* ---- events outside of a recording --------------------------------------------------------- */

int recording_decoder_new(const char *name, const struct pliant_job *job,
                          struct recording_decoder **ret)
{
    struct recording_decoder *decoder = mem_zero(spec_memory, 1, sizeof *decoder);

    if (!decoder)
        return -ENOMEM;
    decoder->doc.name = name;
    decoder->job = job;
    *ret = decoder;
    return 0;
}

int recording_event_decode(struct recording_decoder *decoder, const char *text, size_t size,
                           uint32_t line, struct pliant_event *ret, struct spec_error *err)
{
    int r = quick_line_decode(&decoder->quick, &decoder->doc, text, size, line, err);

    if (!r && decoder->doc.root->kind != DOC_MAP)
        r = doc_error(&decoder->doc, decoder->doc.root, err, "accepted: an event");
    return r ? r : read_event(decoder, decoder->doc.root, ret, err);
}

void recording_decoder_free(struct recording_decoder **decoder)
{
    if (!*decoder)
        return;
    free_decoder(*decoder);
    mem_free(spec_memory, *decoder);
    *decoder = NULL;
}

/* exchange.c - what tasks read and write of blocking edges; see agent.h, docs/worker.md
 *
 *     ROOT/JOB/EDGE/SUBTASK.ATTEMPT/N     N: a subpartition; no file: nothing in it
 *
 * A task with such edges starts once all that it reads was seen to be there, and its end is told
 * once it is known how much it wrote. What it said itself stands in told.json, for the next agent.
 */
#include "agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/errands.h"
#include "rpc/log.h"

#define ROOT_MAX 3500u               /* bytes: with the rest it is a path */
#define EDGE_NAME_MAX 255u           /* bytes */
#define SUBPARTITIONS_MAX (1u << 20) /* of all outputs of a task */
#define SIZES_MAX 400000u /* of a task are told: with more of them a message would be too long */

/* ---- reading ------------------------------------------------------------------------------------
 */

/* A directory in a directory, and nothing that leads out of it. */
static bool is_name(const char *s)
{
    return *s && !strchr(s, '/') && strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

static int read_dir_name(const struct doc_file *f, const struct doc *map, const char **ret,
                         struct spec_error *err)
{
    int r = doc_string(f, map, "dir", EDGE_NAME_MAX, ret, err);

    if (r == 0 && !is_name(*ret))
        r = doc_error(f, doc_get(map, "dir"), err, "accepted: a name without /");
    return r;
}

static int read_output(const struct doc_file *f, const struct doc *map, struct task_output *ret,
                       struct spec_error *err)
{
    int64_t edge = 0, n = 0;
    int r = doc_int(f, map, "edge", 0, UINT32_MAX, &edge, err);

    r = r < 0 ? r : doc_int(f, map, "subpartitions", 0, SUBPARTITIONS_MAX, &n, err);
    r = r < 0 ? r : doc_string(f, map, "to", AGENT_NAME_MAX, &ret->to, err);
    r = r < 0 ? r : read_dir_name(f, map, &ret->dir, err);
    ret->edge = (uint32_t)edge;
    ret->subpartitions = (uint32_t)n;
    return r;
}

/* Only what is needed to name a place: the rest is read when it is used. */
static int check_input(const struct doc_file *f, const struct doc *map, struct spec_error *err)
{
    const struct doc *list;
    const char *text;
    int64_t edge;
    int r = doc_int(f, map, "edge", 0, UINT32_MAX, &edge, err);

    r = r < 0 ? r : doc_string(f, map, "from", AGENT_NAME_MAX, &text, err);
    r = r < 0 ? r : read_dir_name(f, map, &text, err);
    r = r < 0 ? r : doc_container(f, map, "reads", DOC_LIST, &list, err);
    return r < 0 ? r : doc_container(f, map, "attempts", DOC_LIST, &list, err);
}

bool exchange_read(struct task *t, struct spec_error *err)
{
    const struct doc_file *f = &t->doc;
    const struct doc *outputs = NULL;
    int r = doc_string(f, f->root, "results", ROOT_MAX, &t->results, err);

    if (r == -ENOENT)
        return true;
    if (r == 0 && (*t->results != '/' || !is_name(t->key.job)))
        r = doc_error(f, doc_get(f->root, "results"), err, "accepted: an absolute path");
    r = r < 0 ? r : doc_container(f, f->root, "inputs", DOC_LIST, &t->inputs, err);
    r = r < 0 ? r : doc_container(f, f->root, "outputs", DOC_LIST, &outputs, err);
    for (const struct doc *d = r == 0 ? t->inputs->child : NULL; d && r == 0; d = d->next)
        r = check_input(f, d, err);
    for (const struct doc *d = r == 0 ? outputs->child : NULL; d && r == 0; d = d->next) {
        struct task_output *out = must(vec_push(NULL, &t->outputs));

        *out = (struct task_output){0};
        r = read_output(f, d, out, err);
    }
    if (r == -ENOENT)
        doc_error(f, f->root, err, "inputs, outputs: a member is missing");
    return r == 0;
}

void exchange_free(struct task *t)
{
    for (size_t i = 0; i < t->outputs.n; i++)
        free(t->outputs.v[i].bytes);
    vec_free(NULL, &t->outputs);
}

/* ---- what a task reads --------------------------------------------------------------------------
 */

struct partition_attempt {
    uint32_t partition, attempt;
};

/* One input edge of a task. */
struct input {
    uint32_t edge;
    const char *from, *dir;
    const struct doc *reads;
    struct VEC(struct partition_attempt) attempts; /* ascending; of those that are not the first */
};

/* One element of `reads`, [P0,P1,S0,S1]. */
struct read_of {
    uint32_t p0, p1, s0, s1;
};

static uint32_t count_of(const struct doc *d)
{
    return d && d->kind == DOC_NUMBER && d->number >= 0 && d->number < UINT32_MAX
               ? (uint32_t)d->number
               : 0;
}

static struct read_of read_of(const struct doc *list)
{
    uint32_t v[4] = {0};
    const struct doc *d = list->child;

    for (size_t i = 0; i < 4 && d; i++, d = d->next)
        v[i] = count_of(d);
    if (v[1] - v[0] >= SUBPARTITIONS_MAX) /* so many producers there are not */
        v[1] = v[0];
    return (struct read_of){v[0], v[1], v[2], v[3]};
}

static void input_open(const struct doc *map, struct input *ret)
{
    *ret = (struct input){.edge = count_of(doc_get(map, "edge")),
                          .from = doc_get(map, "from")->text,
                          .dir = doc_get(map, "dir")->text,
                          .reads = doc_get(map, "reads")};
    for (const struct doc *d = doc_get(map, "attempts")->child; d; d = d->next) {
        struct partition_attempt *at = must(vec_push(NULL, &ret->attempts));

        at->partition = count_of(d->child);
        at->attempt = count_of(d->child ? d->child->next : NULL);
    }
}

static int by_partition(const void *a, const void *b)
{
    uint32_t x = ((const struct partition_attempt *)a)->partition;
    uint32_t y = ((const struct partition_attempt *)b)->partition;

    return x < y ? -1 : x > y;
}

static uint32_t attempt_of(const struct input *in, uint32_t partition)
{
    const struct partition_attempt key = {.partition = partition}, *at = NULL;

    if (in->attempts.n > 0)
        at = bsearch(&key, in->attempts.v, in->attempts.n, sizeof key, by_partition);
    return at ? at->attempt : 1;
}

static char *place_path(const struct task *t, const char *dir, uint32_t subtask, uint32_t attempt)
{
    return must_format("%s/%s/%s/%" PRIu32 ".%" PRIu32, t->results, t->key.job, dir, subtask,
                       attempt);
}

/* ---- the files that tell the task
 * -------------------------------------------------------------------------------- */

static void write_partitions(const struct task *t, const struct input *in, struct json *j)
{
    json_begin(j, "partitions", '[');
    for (const struct doc *d = in->reads->child; d; d = d->next) {
        const struct read_of r = read_of(d);

        for (uint32_t p = r.p0; p <= r.p1; p++) {
            char *path = place_path(t, in->dir, p, attempt_of(in, p));

            json_begin(j, NULL, '{');
            json_uint(j, "subtask", p);
            json_uint(j, "attempt", attempt_of(in, p));
            json_string(j, "dir", path);
            json_begin(j, "subpartitions", '[');
            json_uint(j, NULL, r.s0);
            json_uint(j, NULL, r.s1);
            json_end(j, ']');
            json_end(j, '}');
            free(path);
        }
    }
    json_end(j, ']');
}

static void write_inputs(const struct task *t, struct json *j)
{
    json_begin(j, NULL, '[');
    for (const struct doc *d = t->inputs->child; d; d = d->next) {
        struct input in;

        input_open(d, &in);
        json_begin(j, NULL, '{');
        json_uint(j, "edge", in.edge);
        json_string(j, "from", in.from);
        write_partitions(t, &in, j);
        json_end(j, '}');
        vec_free(NULL, &in.attempts);
    }
    json_end(j, ']');
}

static void write_outputs(const struct task *t, struct json *j)
{
    json_begin(j, NULL, '[');
    for (size_t i = 0; i < t->outputs.n; i++) {
        const struct task_output *out = &t->outputs.v[i];
        char *path = place_path(t, out->dir, t->key.subtask, t->key.attempt);

        json_begin(j, NULL, '{');
        json_uint(j, "edge", out->edge);
        json_string(j, "to", out->to);
        json_string(j, "dir", path);
        json_uint(j, "subpartitions", out->subpartitions);
        json_end(j, '}');
        free(path);
    }
    json_end(j, ']');
}

static int write_json_file(const struct task *t, const char *name, struct json *j)
{
    char *path = must_format("%s/%s", t->dir, name);
    int r;

    json_line(j);
    must(j->error ? NULL : j);
    r = write_file(path, j->v, j->n);
    json_reset(j);
    free(path);
    return r;
}

int exchange_write_files(const struct task *t)
{
    struct json j;
    int r;

    if (!t->results)
        return 0;
    json_init(&j, NULL);
    write_inputs(t, &j);
    r = write_json_file(t, "inputs.json", &j);
    write_outputs(t, &j);
    r = r < 0 ? r : write_json_file(t, "outputs.json", &j);
    json_free(&j);
    return r;
}

/* ---- errands
 * ----------------------------------------------------------------------------------------- */

static void prepared(struct agent *a, struct task *t, const struct errand *e)
{
    const struct place *p = e->where;
    char cause[1024];

    t->prepares = false;
    t->prepared = e->error == 0;
    if (t->state != TASK_WAITS)
        return; /* stopped meanwhile */
    if (t->prepared) {
        task_prepared(a, t);
        return;
    }
    if (e->lost) {
        t->lost = (struct lost_input){
            .there = true, .edge = p->edge, .subtask = p->subtask, .attempt = p->attempt};
        snprintf(cause, sizeof cause, "an input is lost: %.900s: %s", p->path, strerror(-e->error));
    } else {
        snprintf(cause, sizeof cause, "no directory for its output: %.900s: %s", p->path,
                 strerror(-e->error));
    }
    task_fail_to_start(a, t, cause);
}

static void measured(struct agent *a, struct task *t, struct errand *e)
{
    t->measures = false;
    if (e->error < 0)
        snprintf(t->end.cause, sizeof t->end.cause, "its output is gone: %.900s: %s",
                 e->where->path, strerror(-e->error));
    for (size_t i = 0; i < e->out.n && i < t->outputs.n; i++) {
        if (t->outputs.v[i].told)
            continue;
        free(t->outputs.v[i].bytes);
        t->outputs.v[i].bytes = e->out.v[i].bytes;
        e->out.v[i].bytes = NULL;
    }
    task_measured(a, t);
}

/* All that a job had is gone: the daemon need not ask again. */
static void removed(struct agent *a, const struct errand *e)
{
    struct json *j;

    if (e->error < 0)
        say(SAY_WARN, "msg=\"results cannot be deleted\" job=%s dir=%s error=\"%s\"", e->job,
            log_quoted(e->root).v, strerror(-e->error));
    if (e->result)
        return;
    j = session_body(a);
    json_string(j, "job", e->job);
    if (e->error < 0)
        json_string(j, "error", strerror(-e->error));
    json_end(j, '}');
    session_send(a, MESSAGE_DISCARDED, j);
}

static void errands_ready(struct agent *a, void *self, uint32_t events)
{
    struct errand *e;
    uint64_t n;

    (void)self;
    (void)events;
    if (read(a->errands_done.fd, &n, sizeof n) < 0)
        return;
    while ((e = errands_take(a->errands))) {
        struct task *t = task_by_id(a, e->task);

        if (e->kind == ERRAND_REMOVE)
            removed(a, e);
        else if (t && e->kind == ERRAND_PREPARE)
            prepared(a, t, e);
        else if (t)
            measured(a, t, e);
        errand_free(e);
    }
}

static void give(struct agent *a, struct errand *e)
{
    if (!a->errands) {
        a->errands = errands_open();
        source_open(a, &a->errands_done, errands_fd(a->errands), EPOLLIN, errands_ready, NULL);
    }
    errands_give(a->errands, e);
}

void exchange_close(struct agent *a)
{
    if (!a->errands)
        return;
    source_leave(a, &a->errands_done);
    errands_close(&a->errands);
}

/* Each partition once, however many ranges of it are read. */
static void add_inputs(const struct task *t, struct errand *e)
{
    for (const struct doc *d = t->inputs->child; d; d = d->next) {
        struct input in;
        uint32_t next = 0; /* the first one that was not seen yet */

        input_open(d, &in);
        for (const struct doc *range = in.reads->child; range; range = range->next) {
            const struct read_of r = read_of(range);

            for (uint32_t p = r.p0 > next ? r.p0 : next; p <= r.p1; p++) {
                struct place *place = must(vec_push(NULL, &e->in));
                uint32_t attempt = attempt_of(&in, p);

                *place = (struct place){.path = place_path(t, in.dir, p, attempt),
                                        .edge = in.edge,
                                        .subtask = p,
                                        .attempt = attempt};
                next = p + 1;
            }
        }
        vec_free(NULL, &in.attempts);
    }
}

static void add_outputs(const struct task *t, struct errand *e)
{
    for (size_t i = 0; i < t->outputs.n; i++) {
        const struct task_output *out = &t->outputs.v[i];
        struct place *place = must(vec_push(NULL, &e->out));

        *place = (struct place){.path = place_path(t, out->dir, t->key.subtask, t->key.attempt),
                                .edge = out->edge,
                                .n = out->subpartitions};
    }
}

bool exchange_prepare(struct agent *a, struct task *t)
{
    struct errand *e;

    if (!t->results || t->prepared)
        return false;
    if (t->prepares)
        return true;
    t->prepares = true;
    e = errand_new(ERRAND_PREPARE);
    e->task = t->id;
    add_inputs(t, e);
    add_outputs(t, e);
    give(a, e);
    return true;
}

static bool too_many_sizes(const struct task *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->outputs.n; i++)
        n += t->outputs.v[i].subpartitions;
    return n > SIZES_MAX;
}

bool exchange_measure(struct agent *a, struct task *t)
{
    struct errand *e;
    bool all_told = true;

    for (size_t i = 0; i < t->outputs.n; i++)
        all_told &= t->outputs.v[i].told;
    if (all_told || too_many_sizes(t))
        return false;
    t->measures = true;
    e = errand_new(ERRAND_MEASURE);
    e->task = t->id;
    add_outputs(t, e);
    give(a, e);
    return true;
}

static void remove_result(struct agent *a, const char *root, const char *job, char *result)
{
    struct errand *e = errand_new(ERRAND_REMOVE);

    e->root = must_copy(root);
    e->job = must_copy(job);
    e->result = result;
    give(a, e);
}

void exchange_drop(struct agent *a, const struct task *t)
{
    for (size_t i = 0; i < t->outputs.n; i++)
        remove_result(a, t->results, t->key.job,
                      must_format("%s/%" PRIu32 ".%" PRIu32, t->outputs.v[i].dir, t->key.subtask,
                                  t->key.attempt));
}

/* "EDGE/ATTEMPT" */
static bool is_result(const char *s)
{
    const char *slash = strchr(s, '/');
    char edge[EDGE_NAME_MAX + 1];

    if (!slash || (size_t)(slash - s) >= sizeof edge)
        return false;
    memcpy(edge, s, (size_t)(slash - s));
    edge[slash - s] = '\0';
    return is_name(edge) && is_name(slash + 1);
}

void exchange_discard(struct agent *a, const struct doc *body)
{
    const struct doc *list = NULL, *result;
    struct spec_error err;
    const char *job, *root, *name;

    if (doc_container(&a->in, body, "results", DOC_LIST, &list, &err) < 0)
        return;
    for (const struct doc *d = list->child; d; d = d->next) {
        result = doc_get(d, "result");
        name = NULL;
        if (doc_string(&a->in, d, "job", AGENT_JOB_ID - 1, &job, &err) < 0 || !is_name(job) ||
            doc_string(&a->in, d, "dir", ROOT_MAX, &root, &err) < 0 || *root != '/' ||
            (result && result->kind != DOC_NULL &&
             (doc_as_string(&a->in, result, 2 * EDGE_NAME_MAX, &name, &err) < 0 ||
              !is_result(name)))) {
            say(SAY_WARN, "msg=\"what is to be deleted is no result\"");
            continue;
        }
        remove_result(a, root, job, must_copy(name));
    }
}

/* ---- what a task says itself
 * --------------------------------------------------------------------------------- */

void exchange_tell(const struct task *t, struct json *j)
{
    bool sizes = !too_many_sizes(t);

    json_begin(j, "outputs", '[');
    for (size_t i = 0; i < t->outputs.n && sizes; i++) {
        const struct task_output *out = &t->outputs.v[i];

        if (!out->bytes)
            continue;
        json_begin(j, NULL, '{');
        json_uint(j, "edge", out->edge);
        json_begin(j, "bytes", '[');
        for (uint32_t s = 0; s < out->subpartitions; s++)
            json_uint(j, NULL, out->bytes[s]);
        json_end(j, ']');
        json_end(j, '}');
    }
    json_end(j, ']');
    if (!t->lost.there)
        return;
    json_begin(j, "input_lost", '{');
    json_uint(j, "edge", t->lost.edge);
    json_uint(j, "subtask", t->lost.subtask);
    json_uint(j, "attempt", t->lost.attempt);
    json_end(j, '}');
}

/* For the next agent. */
static void keep_told(const struct agent *a, const struct task *t)
{
    struct json j;
    int r;

    if (!a->opts->keep_tasks)
        return;
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    exchange_tell(t, &j);
    json_end(&j, '}');
    r = write_json_file(t, "told.json", &j);
    if (r < 0)
        say(SAY_WARN, "msg=\"cannot keep what a task told\" dir=%s error=\"%s\"",
            log_quoted(t->dir).v, strerror(-r));
    json_free(&j);
}

static uint64_t *sizes_of(const struct doc *bytes)
{
    uint64_t *v = must(calloc((size_t)bytes->n + 1, sizeof *v)), *at = v;

    for (const struct doc *d = bytes->child; d; d = d->next)
        *at++ = (uint64_t)d->number;
    return v;
}

static struct task_output *output_of(struct task *t, uint32_t edge)
{
    for (size_t i = 0; i < t->outputs.n; i++)
        if (t->outputs.v[i].edge == edge)
            return &t->outputs.v[i];
    return NULL;
}

static const char *take_output(struct task *t, uint32_t edge, const struct doc *bytes)
{
    struct task_output *out = output_of(t, edge);
    uint64_t *v;
    bool same;

    if (!out)
        return "the task writes for no such edge";
    if (bytes->n != out->subpartitions)
        return "not as many sizes as there are subpartitions";
    v = sizes_of(bytes);
    if (!out->told) {
        free(out->bytes);
        out->bytes = v;
        out->told = true;
        return NULL;
    }
    same = memcmp(v, out->bytes, bytes->n * sizeof *v) == 0;
    free(v);
    return same ? NULL : "other sizes were told before";
}

const char *exchange_take_output(const struct agent *a, struct task *t, uint32_t edge,
                                 const struct doc *bytes)
{
    const char *why_not = take_output(t, edge, bytes);

    if (!why_not)
        keep_told(a, t);
    return why_not;
}

/* The attempt of a partition that the task reads; 0: it does not. */
static uint32_t attempt_read(const struct task *t, uint32_t edge, uint32_t subtask)
{
    uint32_t attempt = 0;

    for (const struct doc *d = t->inputs ? t->inputs->child : NULL; d && !attempt; d = d->next) {
        struct input in;

        input_open(d, &in);
        for (const struct doc *range = in.reads->child; range && in.edge == edge;
             range = range->next) {
            const struct read_of r = read_of(range);

            if (subtask >= r.p0 && subtask <= r.p1)
                attempt = attempt_of(&in, subtask);
        }
        vec_free(NULL, &in.attempts);
    }
    return attempt;
}

const char *exchange_take_lost(const struct agent *a, struct task *t, uint32_t edge,
                               uint32_t subtask)
{
    uint32_t attempt = attempt_read(t, edge, subtask);

    if (!attempt)
        return "the task reads no such partition";
    if (t->lost.there)
        return NULL; /* the first one is told: its producer starts again, and this task after it */
    t->lost =
        (struct lost_input){.there = true, .edge = edge, .subtask = subtask, .attempt = attempt};
    keep_told(a, t);
    return NULL;
}

void exchange_adopt(struct task *t)
{
    char *path = must_format("%s/told.json", t->dir);
    const struct doc *list, *lost;
    struct doc_file f = {0};
    struct spec_error err;

    if (t->results && doc_read(path, 16u << 20, &f, &err) == 0) {
        list = doc_get(f.root, "outputs");
        lost = doc_get(f.root, "input_lost");
        for (const struct doc *d = list ? list->child : NULL; d; d = d->next)
            if (doc_get(d, "bytes"))
                take_output(t, count_of(doc_get(d, "edge")), doc_get(d, "bytes"));
        if (lost)
            t->lost = (struct lost_input){.there = true,
                                          .edge = count_of(doc_get(lost, "edge")),
                                          .subtask = count_of(doc_get(lost, "subtask")),
                                          .attempt = count_of(doc_get(lost, "attempt"))};
    }
    doc_free(&f);
    free(path);
}

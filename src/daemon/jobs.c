/* jobs.c - the registry of jobs, and their cores: journal, step, deadlines
 *
 * Facts wait in one queue for all jobs and are taken in their order. What a fact says is copied
 * into blocks that are given back when the queue is empty. Cores are kept in a heap by their
 * deadlines. An ended job loses all but its name here; its documents are in the store.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/daemon.h"
#include "spec/recording.h"

static const struct pliant_alloc *const hash_alloc = NULL;

#define BLOCK_BYTES 65536u
#define ID_PREFIX_MIN 4u

struct block {
    struct block *next;
    size_t n, cap;
    alignas(max_align_t) char bytes[];
};

struct fact {
    struct daemon_job *job;
    struct pliant_event ev;
};

struct fact_queue {
    struct VEC(struct fact) facts;
    size_t first; /* not yet taken */
    struct block *blocks;
    struct VEC(struct daemon_job *) heap;  /* of jobs that live, by deadline_ms */
    struct VEC(struct daemon_job *) ended; /* in this turn */
    struct json event, actions;
};

/* ---- copies of what facts say --------------------------------------------------------------- */

static void *block_take(struct fact_queue *q, size_t n)
{
    struct block *b = q->blocks;

    n = (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (!b || n > b->cap - b->n) {
        size_t cap = n > BLOCK_BYTES ? n : BLOCK_BYTES;

        b = need(malloc(sizeof *b + cap));
        *b = (struct block){.next = q->blocks, .cap = cap};
        q->blocks = b;
    }
    b->n += n;
    return b->bytes + b->n - n;
}

static void blocks_free(struct fact_queue *q)
{
    while (q->blocks) {
        struct block *b = q->blocks;

        q->blocks = b->next;
        free(b);
    }
}

static void *copied(struct fact_queue *q, const void *v, size_t n)
{
    return n > 0 ? memcpy(block_take(q, n), v, n) : NULL;
}

static const char *text(struct fact_queue *q, const char *s)
{
    return s ? copied(q, s, strlen(s) + 1) : NULL;
}

static void copy_node_up(struct fact_queue *q, struct pliant_event *ev)
{
    size_t n = ev->node_up.n_labels;
    struct pliant_label *labels = copied(q, ev->node_up.labels, n * sizeof *labels);

    ev->node_up.name = text(q, ev->node_up.name);
    ev->node_up.zone = text(q, ev->node_up.zone);
    ev->node_up.domain = text(q, ev->node_up.domain);
    for (size_t i = 0; i < n; i++)
        labels[i] =
            (struct pliant_label){.key = text(q, labels[i].key), .value = text(q, labels[i].value)};
    ev->node_up.labels = labels;
}

static void copy_requirements(struct fact_queue *q, struct pliant_event *ev)
{
    size_t n = ev->requirements.n;
    struct pliant_bounds *bounds = copied(q, ev->requirements.v, n * sizeof *bounds);

    for (size_t i = 0; i < n; i++)
        bounds[i].vertex = text(q, bounds[i].vertex);
    ev->requirements.v = bounds;
}

static void copy_checkpoint(struct fact_queue *q, struct pliant_event *ev)
{
    ev->checkpoint.path = text(q, ev->checkpoint.path);
    ev->checkpoint.cause = text(q, ev->checkpoint.cause);
    ev->checkpoint.sizes =
        copied(q, ev->checkpoint.sizes, ev->checkpoint.n_sizes * sizeof *ev->checkpoint.sizes);
}

static void copy_texts(struct fact_queue *q, struct pliant_event *ev)
{
    switch (ev->kind) {
    case PLIANT_EV_NODE_UP:
        copy_node_up(q, ev);
        return;
    case PLIANT_EV_NODE_DRAINING:
        ev->draining.name = text(q, ev->draining.name);
        return;
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
    case PLIANT_EV_NODE_LOST:
        ev->node.name = text(q, ev->node.name);
        return;
    case PLIANT_EV_SLOTS_GRANTED:
        ev->granted.name = text(q, ev->granted.name);
        return;
    case PLIANT_EV_SLOTS_RECLAIMED:
        ev->reclaimed.name = text(q, ev->reclaimed.name);
        return;
    case PLIANT_EV_SLOTS_RESERVED:
    case PLIANT_EV_SLOTS_REFUSED:
    case PLIANT_EV_CREATION_FAILED:
        ev->plan.cause = text(q, ev->plan.cause);
        return;
    case PLIANT_EV_TASK_FAILED:
    case PLIANT_EV_GLOBAL_FAILURE:
        ev->failure.cause = text(q, ev->failure.cause);
        return;
    case PLIANT_EV_REPORT:
        ev->report.path = text(q, ev->report.path);
        return;
    case PLIANT_EV_CHECKPOINT_COMPLETED:
    case PLIANT_EV_CHECKPOINT_FAILED:
    case PLIANT_EV_SAVEPOINT_COMPLETED:
    case PLIANT_EV_SAVEPOINT_FAILED:
        copy_checkpoint(q, ev);
        return;
    case PLIANT_EV_REQUIREMENTS:
        copy_requirements(q, ev);
        return;
    case PLIANT_EV_SAVEPOINT_REQUESTED:
    case PLIANT_EV_STOP:
        ev->savepoint.dir = text(q, ev->savepoint.dir);
        return;
    case PLIANT_EV_TICK:
    case PLIANT_EV_START:
    case PLIANT_EV_TASK_INITIALIZING:
    case PLIANT_EV_TASK_RUNNING:
    case PLIANT_EV_TASK_END_OF_DATA:
    case PLIANT_EV_TASK_FINISHED:
    case PLIANT_EV_TASK_CANCELED:
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_CANCEL:
    case PLIANT_EV_SUSPEND:
    case PLIANT_EVENTS:
        return;
    }
}

void job_fact(struct daemon *d, struct daemon_job *job, const struct pliant_event *ev)
{
    struct fact *fact = need(vec_push(NULL, &d->facts->facts));

    *fact = (struct fact){.job = job, .ev = *ev};
    copy_texts(d->facts, &fact->ev);
}

/* ---- the heap of deadlines ------------------------------------------------------------------ */

static void heap_set(struct fact_queue *q, size_t at, struct daemon_job *job)
{
    q->heap.v[at] = job;
    job->at = at;
}

static void heap_up(struct fact_queue *q, size_t at)
{
    struct daemon_job *job = q->heap.v[at];

    for (; at > 0 && job->deadline_ms < q->heap.v[(at - 1) / 2]->deadline_ms; at = (at - 1) / 2)
        heap_set(q, at, q->heap.v[(at - 1) / 2]);
    heap_set(q, at, job);
}

static void heap_down(struct fact_queue *q, size_t at)
{
    struct daemon_job *job = q->heap.v[at];

    for (size_t child; (child = 2 * at + 1) < q->heap.n; at = child) {
        if (child + 1 < q->heap.n &&
            q->heap.v[child + 1]->deadline_ms < q->heap.v[child]->deadline_ms)
            child++;
        if (q->heap.v[child]->deadline_ms >= job->deadline_ms)
            break;
        heap_set(q, at, q->heap.v[child]);
    }
    heap_set(q, at, job);
}

static void set_deadline(struct fact_queue *q, struct daemon_job *job, int64_t at_ms)
{
    job->deadline_ms = at_ms;
    heap_up(q, job->at);
    heap_down(q, job->at);
}

static void heap_remove(struct fact_queue *q, struct daemon_job *job)
{
    struct daemon_job *last = q->heap.v[--q->heap.n];

    if (last == job)
        return;
    heap_set(q, job->at, last);
    set_deadline(q, last, last->deadline_ms);
}

int64_t jobs_next_deadline(const struct daemon *d)
{
    if (d->facts->first < d->facts->facts.n)
        return d->clock.now_ms;
    return d->facts->heap.n > 0 ? d->facts->heap.v[0]->deadline_ms : PLIANT_NEVER;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void journal(struct daemon *d, struct daemon_job *job)
{
    const struct fact_queue *q = d->facts;
    const struct store_step step = {.n = ++job->n_steps,
                                    .at_ms = d->clock.now_ms,
                                    .event = q->event.v,
                                    .event_size = q->event.n,
                                    .actions = q->actions.v,
                                    .actions_size = q->actions.n};
    int r = store_step_put(d->store, job->id, &step);

    if (r == 0)
        return;
    log_line(3, "msg=\"a step cannot be journaled\" job=%s error=%d", job->id, r);
    need(NULL); /* what was committed holds; the next daemon goes on from there */
}

static void snapshot_if_due(struct daemon *d, struct daemon_job *job)
{
    void *bytes;
    size_t size;
    char at[24];

    if (!job->sched || job->n_steps - job->n_snapshot < (uint64_t)d->opts.snapshot_every)
        return;
    need(pliant_snapshot(job->sched, &bytes, &size) == 0 ? job : NULL);
    snprintf(at, sizeof at, "%" PRId64, d->clock.now_ms);
    store_note_put(d->store, "", "clock", at);
    if (store_snapshot_put(d->store, job->id, job->n_steps, bytes, size) == 0)
        job->n_snapshot = job->n_steps;
    pliant_bytes_free(job->config->alloc, bytes);
}

static void step(struct daemon *d, struct daemon_job *job, const struct pliant_event *ev)
{
    struct fact_queue *q = d->facts;
    struct pliant_actions acts;
    int r;

    json_reset(&q->event);
    json_reset(&q->actions);
    recording_write_event(&q->event, NULL, job->spec.job, ev); /* names, as they were before it */
    r = pliant_step(job->sched, d->clock.now_ms, ev, &acts);
    need(r != -ENOMEM ? job : NULL);
    if (r < 0) {
        log_line(3, "msg=\"an event is malformed\" job=%s event=%s", job->id,
                 pliant_event_name(ev->kind));
        return;
    }
    recording_write_actions(&q->actions, NULL, job->spec.job, job->sched, &acts);
    need(q->event.error == 0 && q->actions.error == 0 ? job : NULL);
    journal(d, job);
    d->facts_taken++;
    actions_carry_out(d, job, &acts);
    if (job->ended_unix_ms)
        return;
    set_deadline(q, job, pliant_next_deadline(job->sched));
    snapshot_if_due(d, job);
}

static void take_facts(struct daemon *d)
{
    struct fact_queue *q = d->facts;

    while (q->first < q->facts.n) {
        struct fact fact = q->facts.v[q->first++];

        if (fact.job->sched && !fact.job->ended_unix_ms)
            step(d, fact.job, &fact.ev);
    }
    q->facts.n = q->first = 0;
    blocks_free(q);
}

static void tick_those_due(struct daemon *d)
{
    struct fact_queue *q = d->facts;

    while (q->heap.n > 0 && q->heap.v[0]->deadline_ms <= d->clock.now_ms) {
        struct daemon_job *job = q->heap.v[0];

        step(d, job, &(struct pliant_event){.kind = PLIANT_EV_TICK});
        if (!job->ended_unix_ms && job->deadline_ms <= d->clock.now_ms)
            set_deadline(q, job, d->clock.now_ms + 1); /* one step a turn is enough */
    }
}

void jobs_run(struct daemon *d)
{
    while (jobs_next_deadline(d) <= d->clock.now_ms) {
        take_facts(d);
        tick_those_due(d);
    }
}

/* ---- tasks ---------------------------------------------------------------------------------- */

struct daemon_task *job_task(struct daemon_job *job, const struct pliant_task *task)
{
    struct daemon_task *found, key;

    memset(&key.key, 0, sizeof key.key);
    key.key.vertex = task->vertex.v;
    key.key.subtask = task->subtask;
    key.key.attempt = task->attempt;
    HASH_FIND(hh, job->tasks, &key.key, sizeof key.key, found);
    return found;
}

struct daemon_task *job_task_add(struct daemon_job *job, const struct pliant_task *task,
                                 struct daemon_node *node, uint32_t slot)
{
    struct daemon_task *t = job_task(job, task);

    if (t)
        return t;
    t = need(calloc(1, sizeof *t));
    t->key.vertex = task->vertex.v;
    t->key.subtask = task->subtask;
    t->key.attempt = task->attempt;
    t->job = job;
    t->node = node;
    t->slot = slot;
    HASH_ADD(hh, job->tasks, key, sizeof t->key, t);
    need(t->hh.tbl);
    t->next = node->tasks;
    if (t->next)
        t->next->prev = t;
    node->tasks = t;
    logs_note_attempt(job, task);
    return t;
}

void job_task_remove(struct daemon_task *t)
{
    if (t->prev)
        t->prev->next = t->next;
    else
        t->node->tasks = t->next;
    if (t->next)
        t->next->prev = t->prev;
    HASH_DEL(t->job->tasks, t);
    free(t);
}

static struct daemon_life *life_of(const struct daemon_job *job, const char *node)
{
    struct daemon_life *life;

    HASH_FIND_STR(job->lives, node, life);
    return life;
}

uint64_t job_incarnation(const struct daemon_job *job, const struct daemon_node *node)
{
    const struct daemon_life *life = job->lives ? life_of(job, node->name) : NULL;

    return node->incarnation + (life ? life->given_up : 0);
}

struct daemon_life *job_life(struct daemon_job *job, const char *node)
{
    struct daemon_life *life = life_of(job, node);

    if (life)
        return life;
    life = need(calloc(1, sizeof *life));
    life->node = need_text(node);
    HASH_ADD_KEYPTR(hh, job->lives, life->node, strlen(life->node), life);
    need(life->hh.tbl);
    return life;
}

void job_lives_put(struct daemon *d, const struct daemon_job *job)
{
    struct json j;
    char *text;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    for (const struct daemon_life *life = job->lives; life; life = life->hh.next) {
        json_begin(&j, life->node, '[');
        json_uint(&j, NULL, life->given_up);
        json_bool(&j, NULL, life->open);
        json_end(&j, ']');
    }
    json_end(&j, '}');
    text = need_json(&j);
    store_note_put(d->store, job->id, "lives", text);
    free(text);
}

/* ---- a job from its text -------------------------------------------------------------------- */

static void free_lives(struct daemon_job *job)
{
    struct daemon_life *life, *next;

    HASH_ITER (hh, job->lives, life, next) {
        HASH_DEL(job->lives, life);
        free(life->node);
        free(life);
    }
}

/* What a job needs as long as it lives. */
static void free_life(struct daemon_job *job)
{
    struct daemon_task *task, *next;

    HASH_ITER (hh, job->tasks, task, next)
        job_task_remove(task);
    free_lives(job);
    checkpoints_free(job);
    logs_free(job);
    pliant_sched_destroy(&job->sched);
    job_spec_free(&job->spec);
    job->spec = (struct job_spec){0};
    options_free(&job->options);
    job->options = (struct options){0};
    free(job->config);
    free(job->options_json);
    free(job->spec_text);
    free(job->file);
    job->options_json = job->spec_text = job->file = NULL;
    job->config = NULL;
}

void job_free(struct daemon_job *job)
{
    free_life(job);
    free(job->name);
    free(job);
}

static bool is_set(const struct options *o, const char *key)
{
    const struct pliant_option *option = pliant_option_find(key);

    for (size_t i = 0; i < o->settings.n; i++)
        if (o->settings.v[i].option == option)
            return true;
    return false;
}

/* Jobs that nobody gave a seed are not to have the same jitter and the same ids. */
static int choose_seed(struct options *o, struct spec_error *err)
{
    char text[48];
    uint64_t seed;

    if (is_set(o, "pliant.seed"))
        return 0;
    need(getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed ? o : NULL);
    snprintf(text, sizeof text, "pliant.seed=%" PRIu64, seed >> 1);
    return options_define(o, text, err);
}

static int add_pair(struct options *o, const struct doc_file *f, const struct doc *pair,
                    struct spec_error *err)
{
    const struct doc *key = pair->child, *value = key ? key->next : NULL;
    char text[1024];

    if (pair->kind != DOC_LIST || pair->n != 2 || key->kind != DOC_STRING ||
        value->kind != DOC_STRING)
        return doc_error(f, pair, err, "accepted: [\"name\",\"value\"]");
    if (strlen(key->text) + strlen(value->text) + 2 > sizeof text || strchr(key->text, '='))
        return doc_error(f, pair, err,
                         "accepted: a name without = and a value, not longer than "
                         "1000 bytes together");
    snprintf(text, sizeof text, "%s=%s", key->text, value->text);
    return options_define(o, text, err);
}

static int add_pairs(struct options *o, const struct doc_file *f, const struct doc *pairs,
                     struct spec_error *err)
{
    int r = 0;

    if (!pairs || pairs->kind == DOC_NULL)
        return 0;
    if (pairs->kind != DOC_LIST)
        return doc_error(f, pairs, err, "is %s; accepted: a list of [\"name\",\"value\"]",
                         doc_kind_name(pairs->kind));
    for (const struct doc *pair = pairs->child; pair && r == 0; pair = pair->next)
        r = add_pair(o, f, pair, err);
    return r;
}

/* All options that have a value, so that a later version with other defaults decides the same. */
static char *options_text_of(const struct daemon_job *job)
{
    const struct pliant_option *option;
    char value[256];
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    for (size_t i = 0; (option = pliant_option_at(i)); i++) {
        const char *s = options_text(&job->options, option->key);

        if (option->type != PLIANT_OPTION_STRING &&
            pliant_config_get(job->config, option->key, value, sizeof value) >= 0)
            s = value;
        if (*s)
            json_string(&j, option->key, s);
    }
    json_end(&j, '}');
    return need_json(&j);
}

static int check_commands(const struct daemon_job *job, const struct doc_file *f,
                          struct spec_error *err)
{
    for (uint32_t i = 0; i < pliant_job_vertices(job->spec.job); i++)
        if (!job->spec.vertices[i].command.argv)
            return job_spec_error(f, f->root,
                                  &(struct pliant_error){.text = "has no command; accepted: a list "
                                                                 "with a program and its arguments",
                                                         .field = "command",
                                                         .item = i},
                                  err);
    return 0;
}

/* Spec, options, config; the document is not needed afterwards. */
static int decode(struct daemon *d, struct daemon_job *job, const struct doc_file *text,
                  const struct doc *pairs, const struct doc_file *f, struct spec_error *err)
{
    struct pliant_error why;
    int r = job_spec_decode(text, text->root, &job->spec, err);

    if (r == 0)
        r = check_commands(job, text, err);
    if (r == 0)
        r = options_copy(&d->opts.all, &job->options, err);
    if (r == 0)
        r = options_add_job(&job->options, text, job->spec.config, job->spec.group, err);
    if (r == 0)
        r = add_pairs(&job->options, f, pairs, err);
    if (r == 0)
        r = choose_seed(&job->options, err);
    if (r == 0)
        r = options_resolve(&job->options, job->config, err);
    if (r == 0 && pliant_job_check(job->spec.job, job->config, &why) < 0)
        r = job_spec_error(text, text->root, &why, err);
    job->spec.config = job->spec.group = NULL;
    return r;
}

/* What is the same for a new job and one from the store. */
static struct daemon_job *job_new(const char *spec, size_t size, const char *file)
{
    struct daemon_job *job = need(calloc(1, sizeof *job));

    job->spec_text = need(strndup(spec, size));
    job->file = need_text(file && *file ? file : "job");
    job->config = need(calloc(1, sizeof *job->config));
    job->deadline_ms = PLIANT_NEVER;
    return job;
}

static int made(struct daemon_job *job, int r, struct daemon_job **ret)
{
    need(r != -ENOMEM ? job : NULL);
    if (r < 0) {
        job_free(job);
        return r;
    }
    job->name = need_text(pliant_job_name(job->spec.job));
    *ret = job;
    return 0;
}

int job_decode(struct daemon *d, const char *spec, size_t size, const char *file,
               const struct doc *options, const struct doc_file *f, struct daemon_job **ret,
               struct spec_error *err)
{
    struct daemon_job *job = job_new(spec, size, file);
    struct doc_file text;
    int r = doc_parse(job->file, spec, size, 1, &text, err);

    if (r == 0) {
        r = decode(d, job, &text, options, f, err);
        doc_free(&text);
    }
    if (r == 0)
        job->options_json = options_text_of(job);
    return made(job, r, ret);
}

int job_of_store(const struct store_job *row, struct daemon_job **ret, struct spec_error *err)
{
    struct daemon_job *job = job_new(row->spec, strlen(row->spec), row->file);
    struct doc_file text, options = {0};
    int r = doc_parse(job->file, row->spec, strlen(row->spec), 1, &text, err);

    if (r == 0) {
        r = job_spec_decode(&text, text.root, &job->spec, err);
        job->options.worker_group = job->spec.group != NULL;
        job->spec.config = job->spec.group = NULL;
        doc_free(&text);
    }
    if (r == 0)
        r = doc_parse("options", row->options, strlen(row->options), 1, &options, err);
    if (r == 0) {
        r = options_add(&job->options, OPTIONS_COMMAND_LINE, &options, options.root, err);
        doc_free(&options);
    }
    if (r == 0)
        r = options_resolve(&job->options, job->config, err);
    memcpy(job->id, row->id, sizeof job->id);
    job->order = row->order;
    job->submitted_unix_ms = row->submitted_unix_ms;
    job->options_json = need_text(row->options);
    return made(job, r, ret);
}

/* ---- the registry --------------------------------------------------------------------------- */

void jobs_open(struct daemon *d)
{
    d->facts = need(calloc(1, sizeof *d->facts));
    json_init(&d->facts->event, NULL);
    json_init(&d->facts->actions, NULL);
}

void jobs_close(struct daemon *d)
{
    struct daemon_job *job, *next;

    HASH_ITER (hh, d->jobs, job, next) {
        HASH_DEL(d->jobs, job);
        job_free(job);
    }
    if (!d->facts)
        return;
    blocks_free(d->facts);
    vec_free(NULL, &d->facts->facts);
    vec_free(NULL, &d->facts->heap);
    vec_free(NULL, &d->facts->ended);
    json_free(&d->facts->event);
    json_free(&d->facts->actions);
    free(d->facts);
    d->facts = NULL;
}

void job_register(struct daemon *d, struct daemon_job *job)
{
    struct daemon_job **at;

    HASH_ADD_STR(d->jobs, id, job);
    need(job->hh.tbl);
    if (job->order >= d->next_order)
        d->next_order = job->order + 1;
    if (!job->sched)
        return;
    at = need(vec_push(NULL, &d->facts->heap));
    *at = job;
    job->at = d->facts->heap.n - 1;
    set_deadline(d->facts, job, pliant_next_deadline(job->sched));
}

void job_ended(struct daemon *d, struct daemon_job *job)
{
    struct daemon_job **at = need(vec_push(NULL, &d->facts->ended));

    *at = job;
    job->ended_unix_ms = d->clock.unix_ms;
    heap_remove(d->facts, job);
}

void jobs_sweep(struct daemon *d)
{
    for (size_t i = 0; i < d->facts->ended.n; i++)
        free_life(d->facts->ended.v[i]);
    d->facts->ended.n = 0;
}

static void new_id(char ret[STORE_ID])
{
    uint8_t bytes[16];

    need(getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes ? ret : NULL);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static bool is_id(const char *s)
{
    return strlen(s) == STORE_ID - 1 && strspn(s, "0123456789abcdef") == STORE_ID - 1;
}

/* The same text under the same id is the same submission, sent again. */
static int again(struct daemon *d, struct daemon_job *job, const char *spec, size_t size,
                 struct daemon_job **ret, struct spec_error *err)
{
    struct store_job row;
    int r = store_job_get(d->store, job->id, &row);

    if (r == 0 && strlen(row.spec) == size && memcmp(row.spec, spec, size) == 0) {
        *ret = job;
        return 0;
    }
    snprintf(err->text, sizeof err->text, "job %s is there already, with another spec", job->id);
    return -EEXIST;
}

static void store_new(struct daemon *d, const struct daemon_job *job)
{
    struct store_job row = {.name = job->name,
                            .spec = job->spec_text,
                            .file = job->file,
                            .options = job->options_json,
                            .submitted_unix_ms = job->submitted_unix_ms,
                            .order = job->order};

    memcpy(row.id, job->id, sizeof row.id);
    store_job_put(d->store, &row);
}

static void tell_submitted(struct daemon *d, const struct daemon_job *job)
{
    struct json *j = events_begin(d, "job", job);

    json_string(j, "name", job->name);
    json_string(j, "change", "submitted");
    events_end(d);
    log_line(6, "msg=\"job submitted\" job=%s name=%s", job->id, log_quoted(job->name).v);
}

/* Its core, its place in the registry and in the store, its first fact. */
static int begin(struct daemon *d, struct daemon_job *job, struct spec_error *err)
{
    struct pliant_error why;
    int r = pliant_sched_new(job->config, job->spec.job, &job->sched, &why);

    need(r != -ENOMEM ? job : NULL);
    if (r < 0) {
        snprintf(err->text, sizeof err->text, "%s: %s", job->file, why.text);
        return r;
    }
    job->order = d->next_order;
    job->submitted_unix_ms = d->clock.unix_ms;
    store_new(d, job);
    job_register(d, job);
    tell_submitted(d, job);
    job_fact(d, job, &(struct pliant_event){.kind = PLIANT_EV_START});
    return 0;
}

int job_submit(struct daemon *d, const char *spec, size_t size, const char *file,
               const struct doc *options, const struct doc_file *f, const char *id,
               struct daemon_job **ret, struct spec_error *err)
{
    struct daemon_job *job = NULL;
    int r;

    if (id && !is_id(id)) {
        snprintf(err->text, sizeof err->text, "id: \"%.40s\"; accepted: 32 hexadecimal digits", id);
        return -EINVAL;
    }
    if (id)
        HASH_FIND_STR(d->jobs, id, job);
    if (job)
        return again(d, job, spec, size, ret, err);
    r = job_decode(d, spec, size, file, options, f, &job, err);
    if (r < 0)
        return r;
    if (id)
        memcpy(job->id, id, STORE_ID);
    else
        new_id(job->id);
    r = begin(d, job, err);
    if (r < 0)
        job_free(job);
    else
        *ret = job;
    return r;
}

/* ---- finding one ---------------------------------------------------------------------------- */

static bool is_prefix(const char *s)
{
    size_t n = strlen(s);

    return n >= ID_PREFIX_MIN && n < STORE_ID && strspn(s, "0123456789abcdef") == n;
}

/* NULL and *ret_many: several are meant. */
static struct daemon_job *by_prefix(struct daemon *d, const char *s, bool *ret_many)
{
    struct daemon_job *found = NULL;

    if (!is_prefix(s))
        return NULL;
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next) {
        if (strncmp(job->id, s, strlen(s)) != 0)
            continue;
        *ret_many = found != NULL;
        if (*ret_many)
            return NULL;
        found = job;
    }
    return found;
}

static struct daemon_job *by_name(struct daemon *d, const char *s, bool *ret_many)
{
    struct daemon_job *found = NULL;

    for (struct daemon_job *job = d->jobs; job; job = job->hh.next) {
        if (job->ended_unix_ms || strcmp(job->name, s) != 0)
            continue;
        *ret_many = found != NULL;
        if (*ret_many)
            return NULL;
        found = job;
    }
    return found;
}

struct daemon_job *job_find(struct daemon *d, const char *s, struct spec_error *err)
{
    struct daemon_job *found = NULL;
    bool many = false;

    HASH_FIND_STR(d->jobs, s, found);
    if (!found)
        found = by_prefix(d, s, &many);
    if (!found && !many)
        found = by_name(d, s, &many);
    if (!found && err)
        snprintf(err->text, sizeof err->text,
                 many ? "%.140s: several jobs are called so; give more of the id"
                      : "%.140s: no such job",
                 s);
    return found;
}

const char *job_final(struct daemon *d, const struct daemon_job *job)
{
    struct store_job row;

    return store_job_get(d->store, job->id, &row) == 0 ? row.final : NULL;
}

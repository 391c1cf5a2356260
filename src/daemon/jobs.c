/* jobs.c - the registry of jobs: from a text to a job that runs, and what an ended one leaves
 *
 * An ended job loses all but its name here; its documents are in the store.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/daemon.h"
#include "util/deadline.h"

static const struct pliant_alloc *const hash_alloc = NULL;

#define ID_PREFIX_MIN 4u
#define EXPIRE_A_TURN 1000 /* jobs; the rest in the next turn */

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
    group_free(job);
    logs_free(job);
    pliant_sched_destroy(&job->sched);
    job_spec_free(&job->spec);
    job->spec = (struct job_spec){0};
    options_free(&job->options);
    job->options = (struct options){0};
    free(job->ran);
    job->ran = NULL;
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
    free(job->damaged);
    free(job);
}

#define FILE_SCHEME "file://"

const char *path_of_option(const char *text)
{
    return strncmp(text, FILE_SCHEME, sizeof FILE_SCHEME - 1) == 0 ? text + sizeof FILE_SCHEME - 1
                                                                   : text;
}

const char *job_path_option(const struct daemon_job *job, const char *key)
{
    return path_of_option(options_text(&job->options, key));
}

int64_t job_stop_timeout_ms(const struct daemon_job *job)
{
    return job->group ? job->config->group.stop_timeout_ms
                      : options_duration_ms(&job->options, "pliant.agent.stop-timeout");
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
    memcpy(text, key->text, strlen(key->text));
    text[strlen(key->text)] = '=';
    strcpy(text + strlen(key->text) + 1, value->text); /* it fits, as was just seen */
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
    job->options.all_blocking = r == 0 && pliant_job_is_batch(job->spec.job);
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
        r = group_check(job, err);
    if (r == 0)
        r = results_check(job, err);
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
        job->options.all_blocking = r == 0 && pliant_job_is_batch(job->spec.job);
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

static void free_removed(struct daemon *d)
{
    for (size_t i = 0; i < d->removed.n; i++)
        job_free(d->removed.v[i]);
    d->removed.n = 0;
}

void jobs_close(struct daemon *d)
{
    struct daemon_job *job, *next;

    HASH_CLEAR(by_end, d->kept);
    HASH_ITER (hh, d->jobs, job, next) {
        HASH_DEL(d->jobs, job);
        job_free(job);
    }
    free_removed(d);
    vec_free(NULL, &d->ended);
    vec_free(NULL, &d->removed);
}

static uint32_t *parallelisms(const struct daemon_job *job)
{
    uint32_t n = pliant_job_vertices(job->spec.job), *v = need(calloc(n, sizeof *v));

    for (uint32_t i = 0; i < n; i++)
        v[i] = pliant_parallelism(job->sched, (pliant_vertex_id){i + 1});
    return v;
}

void job_register(struct daemon *d, struct daemon_job *job)
{
    HASH_ADD_STR(d->jobs, id, job);
    need(job->hh.tbl);
    if (job->order >= d->next_order)
        d->next_order = job->order + 1;
    if (!job->sched)
        return;
    job->ran = parallelisms(job);
    facts_watch(d, job);
}

void job_kept(struct daemon *d, struct daemon_job *job)
{
    HASH_ADD(by_end, d->kept, id, STORE_ID - 1, job);
    need(job->by_end.tbl);
}

void job_ended(struct daemon *d, struct daemon_job *job)
{
    struct daemon_job **at = need(vec_push(NULL, &d->ended));

    *at = job;
    job->ended_unix_ms = d->clock.unix_ms;
    job->ended_at_ms = d->clock.now_ms;
    job_kept(d, job);
    facts_unwatch(d, job);
}

/* What it has may be looked at until the end of the turn: it is freed then. */
void job_remove(struct daemon *d, struct daemon_job *job)
{
    struct daemon_job **at = need(vec_push(NULL, &d->removed));
    struct json *event = events_begin(d, "job", job);

    json_string(event, "name", job->name);
    json_string(event, "change", "removed");
    events_end(d);
    if (job->damaged) {
        results_of_damaged_job(d, job);
        slots_of_ended_job(d, job);
        agents_resync(d); /* what still runs of it nobody wants */
    }
    store_job_delete(d->store, job->id);
    if (job->ended_unix_ms)
        HASH_DELETE(by_end, d->kept, job);
    HASH_DEL(d->jobs, job);
    *at = job;
}

int64_t jobs_next_expiry(const struct daemon *d)
{
    if (!d->kept)
        return PLIANT_NEVER;
    if (HASH_CNT(by_end, d->kept) > d->opts.ended_kept)
        return d->clock.now_ms;
    return instant_after(d->kept->ended_at_ms, d->opts.ended_kept_ms);
}

void jobs_expire(struct daemon *d)
{
    for (int i = 0; i < EXPIRE_A_TURN && jobs_next_expiry(d) <= d->clock.now_ms; i++)
        job_remove(d, d->kept);
}

void jobs_sweep(struct daemon *d)
{
    for (size_t i = 0; i < d->ended.n; i++)
        free_life(d->ended.v[i]);
    d->ended.n = 0;
    free_removed(d);
}

static void new_id(char ret[STORE_ID])
{
    uint8_t bytes[16];

    need(getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes ? ret : NULL);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

bool job_is_id(const char *s)
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
    int r = group_open(d, job, err);

    if (r < 0)
        return r;
    r = pliant_sched_new(job->config, job->spec.job, &job->sched, &why);
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
    group_begin(d, job);
    job_fact(d, job, &(struct pliant_event){.kind = PLIANT_EV_START});
    return 0;
}

int job_submit(struct daemon *d, const char *spec, size_t size, const char *file,
               const struct doc *options, const struct doc_file *f, const char *id,
               struct daemon_job **ret, struct spec_error *err)
{
    struct daemon_job *job = NULL;
    int r;

    if (id && !job_is_id(id)) {
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
    job->ran[task->vertex.v - 1] = pliant_parallelism(job->sched, task->vertex);
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
    free(t->held);
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

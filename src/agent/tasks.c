/* tasks.c - the table of tasks; see agent.h */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/kin.h"
#include "util/duration.h"

#define BODY_FULL (256u * 1024u) /* bytes of TASKS after which another one begins */
#define LOOK_MS 2000             /* at the size of logs */
#define USAGE_MS 10000
#define PORT_RETRY_WINDOW_MS 30000 /* after its start a port that is taken is a reason [7.2] */
#define ERROR_FILE_MAX (1024u * 1024u)
#define NOT_EXECUTED 127      /* as shells say it */
#define BY_SIGNAL 256         /* added to the code of a stopped task that a signal ended */
#define STOP_TIMEOUT_MS 30000 /* where the deployment names none */

/* ---- names --------------------------------------------------------------------------------------
 */

bool task_key_read(struct agent *a, const struct doc *d, struct task_key *ret)
{
    struct spec_error err;
    const char *job, *vertex;
    int64_t subtask, attempt;

    if (d->kind != DOC_MAP || doc_string(&a->in, d, "job", AGENT_JOB_ID - 1, &job, &err) < 0 ||
        doc_string(&a->in, d, "vertex", AGENT_NAME_MAX, &vertex, &err) < 0 ||
        doc_int(&a->in, d, "subtask", 0, UINT32_MAX, &subtask, &err) < 0 ||
        doc_int(&a->in, d, "attempt", 0, UINT32_MAX, &attempt, &err) < 0) {
        say(SAY_WARN, "msg=\"a task without a name in a message\"");
        return false;
    }
    *ret = (struct task_key){.subtask = (uint32_t)subtask, .attempt = (uint32_t)attempt};
    snprintf(ret->job, sizeof ret->job, "%s", job);
    snprintf(ret->vertex, sizeof ret->vertex, "%s", vertex);
    return true;
}

void task_key_write(struct json *j, const struct task_key *key)
{
    json_string(j, "job", key->job);
    json_string(j, "vertex", key->vertex);
    json_uint(j, "subtask", key->subtask);
    json_uint(j, "attempt", key->attempt);
}

static bool same(const struct task_key *a, const struct task_key *b)
{
    return a->subtask == b->subtask && a->attempt == b->attempt && strcmp(a->job, b->job) == 0 &&
           strcmp(a->vertex, b->vertex) == 0;
}

struct task *task_find(const struct agent *a, const struct task_key *key)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        if (same(&a->tasks.v[i]->key, key))
            return a->tasks.v[i];
    return NULL;
}

struct task *task_by_id(const struct agent *a, uint64_t id)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        if (a->tasks.v[i]->id == id)
            return a->tasks.v[i];
    return NULL;
}

bool task_lives(const struct task *t)
{
    return t->state != TASK_ENDED;
}

size_t tasks_living(const struct agent *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->tasks.n; i++)
        n += task_lives(a->tasks.v[i]);
    return n;
}

void task_changed(struct agent *a, struct task *t)
{
    t->changed = true;
    a->changed = true;
}

/* ---- telling ------------------------------------------------------------------------------------
 */

static const char *state_name(enum task_state s)
{
    static const char *const names[] = {"starting", "starting", "running", "stopping", "ended"};

    return names[s];
}

static const char *signal_name(int signal)
{
    const char *name = sigabbrev_np(signal);

    return name ? name : "?";
}

static void write_end(const struct task *t, struct json *j)
{
    const struct task_end *end = &t->end;
    static const char *const how[] = {"exited", "killed", "not-started", "stopped"};
    bool by_signal = end->how == END_KILLED || (end->how == END_STOPPED && end->code >= BY_SIGNAL);

    json_begin(j, "end", '{');
    json_string(j, "how", how[end->how]);
    json_int(j, "code", by_signal ? 0 : end->code);
    json_string(j, "signal", by_signal ? signal_name(end->code % BY_SIGNAL) : NULL);
    json_string(j, "cause", *end->cause ? end->cause : NULL);
    json_bool(j, "oom", end->oom);
    json_int(j, "at_unix_ms", end->at_unix_ms);
    json_bool(j, "port_in_use", end->port_in_use);
    json_bool(j, "hung", end->hung);
    if (t->results)
        exchange_tell(t, j);
    json_end(j, '}');
}

static void write_task(const struct task *t, enum task_state state, struct json *j)
{
    json_begin(j, NULL, '{');
    task_key_write(j, &t->key);
    json_uint(j, "slot", t->slot);
    json_string(j, "state", state_name(state));
    json_int(j, "pid", t->pid);
    json_int(j, "started_unix_ms", t->started_unix_ms);
    if (state == TASK_ENDED)
        write_end(t, j);
    worker_write_pending(t, j);
    json_end(j, '}');
}

void tasks_write(struct agent *a, struct json *j, bool all)
{
    json_begin(j, "tasks", '[');
    for (size_t i = 0; i < a->tasks.n; i++) {
        struct task *t = a->tasks.v[i];

        if (!all && j->n > BODY_FULL)
            break;
        if (j->n > BODY_FULL && t->outputs.n > 0 && t->state == TASK_ENDED) {
            write_task(t, TASK_RUNS, j); /* its end is told in the session that begins */
            task_changed(a, t);
            continue;
        }
        if (all || t->changed)
            write_task(t, t->state, j);
        t->changed = false;
    }
    json_end(j, ']');
}

static bool any_changed(const struct agent *a)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        if (a->tasks.v[i]->changed)
            return true;
    return false;
}

/* Once a turn. Without a session nothing is lost: its HELLO says all. */
void tasks_tell(struct agent *a)
{
    if (!a->changed || a->session.state != SESSION_UP)
        return;
    while (any_changed(a)) {
        struct json *j = session_body(a);

        tasks_write(a, j, false);
        json_end(j, '}');
        session_send(a, MESSAGE_TASKS, j);
    }
    a->changed = false;
}

/* ---- a task's life
 * --------------------------------------------------------------------------------- */

static void free_task(struct agent *a, struct task *t)
{
    worker_close_door(a, t);
    pending_clear(&t->report);
    pending_clear(&t->entered);
    for (size_t i = 0; i < t->wanted.n; i++)
        free(t->wanted.v[i].dir);
    vec_free(NULL, &t->wanted);
    free(t->released);
    free(t->checkpoint);
    free(t->notice);
    exchange_free(t);
    free(t->text);
    free(t->dir);
    doc_free(&t->doc);
    free(t);
}

void tasks_free(struct agent *a)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        free_task(a, a->tasks.v[i]);
    vec_free(NULL, &a->tasks);
}

static struct task *add_task(struct agent *a, const struct task_key *key, uint64_t id)
{
    struct task **place = must(vec_push(NULL, &a->tasks));
    struct task *t = *place = must(calloc(1, sizeof *t));

    t->key = *key;
    t->id = id;
    t->door.fd = -1;
    t->stop_timeout_ms = STOP_TIMEOUT_MS;
    t->dir = must_format("%s/tasks/%llu", a->opts->work_dir, (unsigned long long)id);
    if (a->next_id <= id)
        a->next_id = id + 1;
    return t;
}

/* Vertices of a job share a slot, as long as none of their tasks there is on its way out. */
static bool may_share(const struct task *t, const struct task *other)
{
    return strcmp(other->key.job, t->key.job) == 0 &&
           strcmp(other->key.vertex, t->key.vertex) != 0 && other->state != TASK_STOPS;
}

/* Its slot holds somebody who has to end first: an older attempt, or a task of another job. */
static bool slot_is_taken(const struct agent *a, const struct task *t)
{
    for (size_t i = 0; i < a->tasks.n; i++) {
        const struct task *other = a->tasks.v[i];

        if (other->slot == t->slot && other->id < t->id && task_lives(other) &&
            !may_share(t, other))
            return true;
    }
    return false;
}

static void start_if_free(struct agent *a, struct task *t)
{
    if (t->state != TASK_WAITS || slot_is_taken(a, t) || exchange_prepare(a, t))
        return;
    t->state = TASK_STARTS;
    deploy_start(a, t);
}

static void start_waiting(struct agent *a)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        start_if_free(a, a->tasks.v[i]);
}

static void set_ended(struct agent *a, struct task *t)
{
    t->state = TASK_ENDED;
    worker_close_door(a, t);
    task_changed(a, t);
    start_waiting(a);
}

void task_prepared(struct agent *a, struct task *t)
{
    start_if_free(a, t);
}

void task_measured(struct agent *a, struct task *t)
{
    set_ended(a, t);
}

void task_fail_to_start(struct agent *a, struct task *t, const char *cause)
{
    t->end = (struct task_end){.how = END_NOT_STARTED, .at_unix_ms = unix_ms()};
    snprintf(t->end.cause, sizeof t->end.cause, "%s", cause);
    set_ended(a, t);
}

/* ---- DEPLOY
 * ---------------------------------------------------------------------------------------- */

/* With the peers that all of its job's tasks in the message share; NULL: none. */
static void keep_text(struct task *t, const struct doc *deployment, const struct doc *peers)
{
    struct json j;

    json_init(&j, NULL);
    json_doc(&j, NULL, deployment);
    if (peers && j.n > 0 && !doc_get(deployment, "peers")) {
        j.n--; /* the closing brace */
        json_doc(&j, "peers", peers);
        json_end(&j, '}');
    }
    t->text = must(j.error ? NULL : must_copy_bytes(j.v, j.n));
    t->text_size = j.n;
    json_free(&j);
}

static bool read_text(struct agent *a, struct task *t, struct spec_error *err)
{
    int r;

    t->doc.name = "DEPLOY";
    r = doc_line(&t->doc, t->text, t->text_size, 1, err);
    if (r == -ENOMEM)
        must(NULL);
    if (r < 0 || !deploy_read(t, err))
        return false;
    if (t->slot < a->opts->slots)
        return true;
    snprintf(err->text, sizeof err->text, "no such slot: %u of %lld", t->slot,
             (long long)a->opts->slots);
    return false;
}

static void deploy_one(struct agent *a, const struct doc *deployment, const struct doc *peers)
{
    struct spec_error err;
    struct task_key key;
    struct task *t;

    if (!task_key_read(a, deployment, &key))
        return;
    t = task_find(a, &key);
    if (t) { /* said twice */
        task_changed(a, t);
        return;
    }
    t = add_task(a, &key, a->next_id);
    keep_text(t, deployment, peers ? doc_get(peers, key.job) : NULL);
    if (!read_text(a, t, &err)) {
        task_fail_to_start(a, t, err.text);
        return;
    }
    if (a->leaving.ends) {
        task_fail_to_start(a, t, "the node leaves");
        return;
    }
    task_changed(a, t);
    ports_used(a, key.job);
    start_if_free(a, t);
}

static const struct doc *list_of(struct agent *a, const struct doc *body, const char *key)
{
    const struct doc *list;
    struct spec_error err;

    if (doc_container(&a->in, body, key, DOC_LIST, &list, &err) == 0)
        return list->child;
    say(SAY_WARN, "msg=\"a message without %s\"", key);
    return NULL;
}

/* Processes that the kernel has killed for want of memory since it started. */
static unsigned long long count_oom_kills(void)
{
    FILE *f = fopen("/proc/vmstat", "re");
    unsigned long long n = 0;
    char line[128];

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "oom_kill %llu", &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}

/* While there are tasks they are looked after. */
static void begin_to_look(struct agent *a)
{
    if (a->look_at_ms != PLIANT_NEVER)
        return;
    a->look_at_ms = a->now_ms + LOOK_MS;
    a->usage_at_ms = a->now_ms + USAGE_MS;
    a->oom_kills = count_oom_kills();
}

void tasks_deploy(struct agent *a, const struct doc *body)
{
    const struct doc *peers = doc_get(body, "peers");

    if (peers && peers->kind != DOC_MAP)
        peers = NULL;
    begin_to_look(a);
    for (const struct doc *d = list_of(a, body, "tasks"); d; d = d->next)
        deploy_one(a, d, peers);
}

void tasks_adopt(struct agent *a, uint64_t id, char *text, size_t size,
                 const struct keeper_message *m)
{
    struct spec_error err = {0};
    struct task_key key;
    struct task *t;
    bool good;

    a->in.name = "keeper";
    if (doc_line(&a->in, text, size, 1, &err) < 0 || !task_key_read(a, a->in.root, &key)) {
        say(SAY_WARN, "msg=\"the keeper holds what is no task\" error=\"%s\"", err.text);
        free(text);
        return;
    }
    t = add_task(a, &key, id);
    t->text = text;
    t->text_size = size;
    t->pid = m->pid;
    t->started_unix_ms = m->at_unix_ms;
    t->state = m->pid == 0 ? TASK_STARTS : m->stopped ? TASK_STOPS : TASK_RUNS;
    t->stop_was_said = m->stopped; /* by whom is not known any more */
    t->calls = m->calls;
    t->seqs = m->seqs;
    if (*m->text)
        t->checkpoint = must_copy(m->text);
    good = read_text(a, t, &err);
    exchange_adopt(t);
    if (!good || !worker_open_door(a, t))
        say(SAY_WARN, "msg=\"an adopted task has no socket\" error=\"%s\"", err.text);
    begin_to_look(a);
}

void tasks_started(struct agent *a, const struct keeper_message *m)
{
    struct task *t = task_by_id(a, m->id);

    if (!t || t->pid != 0)
        return;
    t->pid = m->pid;
    t->started_unix_ms = m->at_unix_ms;
    if (t->state == TASK_STARTS)
        t->state = TASK_RUNS;
    task_changed(a, t);
}

/* ---- how it ended
 * ---------------------------------------------------------------------------------- */

/* torchrun's error file: {"message": "text"} or {"message": {"message": "text", ...}} [W-ENV-5] */
static void read_error_file(const struct agent *a, struct task *t)
{
    char *path = logs_path(a, &t->key, "error.json");
    struct doc_file f = {0};
    const struct doc *message;
    struct spec_error err;

    if (doc_read(path, ERROR_FILE_MAX, &f, &err) == 0 && f.root && f.root->kind == DOC_MAP) {
        message = doc_get(f.root, "message");
        if (message && message->kind == DOC_MAP)
            message = doc_get(message, "message");
        if (message && message->kind == DOC_STRING)
            snprintf(t->end.cause, sizeof t->end.cause, "%s", message->text);
    }
    doc_free(&f);
    free(path);
}

/* Its cgroup knows. Without: SIGKILL that nobody of us sent, and the kernel has killed for want of
 * memory meanwhile. */
static bool was_out_of_memory(struct agent *a, const struct task *t, int32_t oom_kills)
{
    if (oom_kills >= 0)
        return oom_kills > 0;
    if (t->end.how != END_KILLED || t->end.code != SIGKILL || count_oom_kills() <= a->oom_kills)
        return false;
    a->oom_kills++; /* one of them is explained */
    return true;
}

static bool found_its_port_taken(const struct agent *a, const struct task *t)
{
    static const char *const texts[] = {"address already in use", "address in use", "eaddrinuse",
                                        NULL};

    return t->group && t->end.how == END_EXITED && t->end.code != 0 &&
           t->end.at_unix_ms - t->started_unix_ms <= PORT_RETRY_WINDOW_MS &&
           logs_end_has(a, &t->key, "stderr", texts);
}

static bool has_failed(const struct task *t)
{
    return t->end.how == END_KILLED || (t->end.how == END_EXITED && t->end.code != 0);
}

/* It was asked to stop. If it was the agent who did so, because it ends or has no daemon, the
 * daemon must not take an exit code of 0 for success [known trouble 106]. */
static void set_stopped(struct agent *a, struct task *t, bool killed)
{
    char span[DURATION_TEXT_MAX];

    if (t->stop_was_said) {
        t->end.how = END_STOPPED;
        t->end.code += killed ? BY_SIGNAL : 0;
        return;
    }
    t->end.how = END_KILLED;
    t->end.code = killed ? t->end.code : SIGTERM;
    t->end.hung = t->hung;
    if (t->hung) {
        duration_format(t->health_timeout_ms, span);
        snprintf(t->end.cause, sizeof t->end.cause, "the health check was unanswered for %s", span);
        return;
    }
    snprintf(t->end.cause, sizeof t->end.cause, "stopped by the agent: %s",
             *a->leaving.why ? a->leaving.why : "no daemon for too long");
}

void tasks_ended(struct agent *a, const struct keeper_message *m)
{
    struct task *t = task_by_id(a, m->id);
    bool killed = m->how == KEEPER_KILLED;

    if (!t || t->state == TASK_ENDED || t->measures)
        return;
    if (m->how == KEEPER_NOT_STARTED) {
        task_fail_to_start(a, t, m->text);
        t->end.code = NOT_EXECUTED;
        return;
    }
    t->end = (struct task_end){
        .how = killed ? END_KILLED : END_EXITED, .code = m->code, .at_unix_ms = m->at_unix_ms};
    if (m->stopped)
        set_stopped(a, t, killed);
    if (has_failed(t) && !m->stopped) {
        t->end.oom = was_out_of_memory(a, t, m->oom_kills);
        t->end.port_in_use = found_its_port_taken(a, t);
        read_error_file(a, t);
    }
    if (t->end.how == END_EXITED && t->end.code == 0 && exchange_measure(a, t))
        return;
    set_ended(a, t);
}

void tasks_all_killed(struct agent *a, const char *cause)
{
    for (size_t i = 0; i < a->tasks.n; i++) {
        struct task *t = a->tasks.v[i];

        if (!task_lives(t) || t->state == TASK_WAITS || t->measures)
            continue;
        t->end = (struct task_end){.how = t->stop_was_said ? END_STOPPED : END_KILLED,
                                   .code = t->stop_was_said ? SIGKILL + BY_SIGNAL : SIGKILL,
                                   .at_unix_ms = unix_ms()};
        snprintf(t->end.cause, sizeof t->end.cause, "%s", cause);
        set_ended(a, t);
    }
}

/* ---- STOP, FORGET
 * ------------------------------------------------------------------------------------- */

static void stop_task(struct agent *a, struct task *t, int64_t timeout_ms, int64_t kill_at_unix_ms)
{
    struct keeper_message m = {
        .op = KEEPER_STOP, .id = t->id, .timeout_ms = timeout_ms, .at_unix_ms = kill_at_unix_ms};

    if (!task_lives(t) || t->measures)
        return;
    if (t->state == TASK_WAITS) {
        t->end = (struct task_end){.how = END_STOPPED, .at_unix_ms = unix_ms()};
        set_ended(a, t);
        return;
    }
    keep_tell(a, &m, -1);
    if (t->state == TASK_STOPS)
        return;
    t->state = TASK_STOPS;
    task_changed(a, t);
    worker_stopping(a, t);
}

void task_kill_hung(struct agent *a, struct task *t)
{
    say(SAY_WARN,
        "msg=\"a worker does not answer its health check: killed\" job=%s subtask=%u "
        "attempt=%u",
        t->key.job, t->key.subtask, t->key.attempt);
    t->hung = true;
    stop_task(a, t, 0, 0);
}

void tasks_stop(struct agent *a, const struct doc *body)
{
    for (const struct doc *d = list_of(a, body, "tasks"); d; d = d->next) {
        int64_t kill_at_unix_ms = 0, timeout_ms;
        struct spec_error err;
        struct task_key key;
        struct task *t;

        if (!task_key_read(a, d, &key) || !(t = task_find(a, &key)))
            continue; /* not ours (any more): HELLO has said so, or will */
        timeout_ms = t->stop_timeout_ms;
        doc_int(&a->in, d, "stop_timeout_ms", 0, DOC_INTEGER_MAX, &timeout_ms, &err);
        doc_int(&a->in, d, "kill_at_unix_ms", 0, DOC_INTEGER_MAX, &kill_at_unix_ms, &err);
        t->stop_was_said |= t->state != TASK_STOPS;
        stop_task(a, t, timeout_ms, kill_at_unix_ms);
    }
}

void tasks_stop_all(struct agent *a, int64_t timeout_ms, int64_t kill_at_unix_ms)
{
    for (size_t i = 0; i < a->tasks.n; i++) {
        struct task *t = a->tasks.v[i];

        stop_task(a, t, sooner(t->stop_timeout_ms, timeout_ms), kill_at_unix_ms);
    }
}

static void forget(struct agent *a, struct task *t, bool finished)
{
    struct keeper_message m = {.op = KEEPER_FORGET, .id = t->id};

    keep_tell(a, &m, -1);
    if (!finished)
        exchange_drop(a, t);
    remove_tree(t->dir);
    for (size_t i = 0; i < a->tasks.n; i++)
        if (a->tasks.v[i] == t)
            a->tasks.v[i] = a->tasks.v[--a->tasks.n];
    free_task(a, t);
}

void tasks_forget(struct agent *a, const struct doc *body)
{
    for (const struct doc *d = list_of(a, body, "tasks"); d; d = d->next) {
        bool finished = false;
        struct spec_error err;
        struct task_key key;
        struct task *t;

        if (!task_key_read(a, d, &key) || !(t = task_find(a, &key)) || task_lives(t))
            continue;
        doc_bool(&a->in, d, "finished", &finished, &err);
        forget(a, t, finished);
        ports_release_unused(a, key.job);
    }
}

/* ---- looking after them
 * ---------------------------------------------------------------------------------- */

static void tell_usage(struct agent *a)
{
    struct json *j = session_body(a);

    json_begin(j, "tasks", '[');
    for (size_t i = 0; i < a->tasks.n; i++) {
        const struct task *t = a->tasks.v[i];
        struct kin_usage usage;

        if (!task_lives(t) || t->pid == 0 || !kin_usage((pid_t)t->pid, &usage))
            continue;
        json_begin(j, NULL, '{');
        task_key_write(j, &t->key);
        json_uint(j, "rss_bytes", usage.rss_bytes);
        json_uint(j, "cpu_ms", usage.cpu_ms);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
    session_send(a, MESSAGE_USAGE, j);
}

void tasks_look(struct agent *a)
{
    a->look_at_ms = PLIANT_NEVER;
    if (tasks_living(a) == 0)
        return;
    for (size_t i = 0; i < a->tasks.n; i++)
        if (task_lives(a->tasks.v[i]))
            logs_bound(a, a->tasks.v[i]);
    a->oom_kills = count_oom_kills();
    if (a->now_ms >= a->usage_at_ms) {
        tell_usage(a);
        a->usage_at_ms = a->now_ms + USAGE_MS;
    }
    a->look_at_ms = a->now_ms + LOOK_MS;
}

/* worker.c - the sockets of tasks; see agent.h and docs/worker.md
 *
 * A connection may come and go; what counts belongs to the task: its two counters, what waits for
 * the daemon, and what the agent has to say. So an answer goes to every connection that waits for
 * its number.
 *
 * Flow    a worker that does not read what it is told is cut off at QUEUE_MAX
 */
#include "agent/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/worker_line.h"

#define QUEUE_MAX (1024u * 1024u) /* bytes that wait for a slow reader */
#define CONNECTIONS_MAX 64u       /* of a task */
#define PIECE 16384u              /* bytes taken from one connection in a turn */
#define ROOM_FOR_NAMES 1024u      /* what REPORT and ENTER add to a line */

/* A request of this connection that waits for its answer. */
struct waiting {
    bool is_report; /* else a collective */
    bool is_notice; /* of the collectives: get_preemption_info */
    bool has_n;
    int64_t number, n;
};

/* The checks of a connection that takes part in them: one at a time. What `waited_ms` counts is
 * time in which the agent itself ran: of a turn that comes late only what it was to wait. */
struct health {
    bool on, is_asked; /* asked: the check `n` has no answer */
    int64_t n, asked_at_ms;
    int64_t waited_ms, span_ms; /* since the check was sent; until at_ms */
    int64_t at_ms;              /* the next check, or the next look at this one */
};

struct worker {
    struct source source;
    struct task *task;
    struct worker *next;
    bool said_hello, takes_checkpoints, closing;
    struct health health;
    struct VEC(char) in;
    struct VEC(char) out;
    size_t out_at;
    struct VEC(struct waiting) waiting;
};

/* ---- connections
 * ---------------------------------------------------------------------------------- */

static void close_worker(struct agent *a, struct worker *w)
{
    struct worker **at = &w->task->workers;

    if (w->closing)
        return;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    w->closing = true;
    source_close(a, &w->source);
    w->next = a->closed; /* an event of this turn may still name it */
    a->closed = w;
}

void worker_free_closed(struct agent *a)
{
    for (struct worker *w = a->closed, *next; w; w = next) {
        next = w->next;
        vec_free(NULL, &w->in);
        vec_free(NULL, &w->out);
        vec_free(NULL, &w->waiting);
        free(w);
    }
    a->closed = NULL;
}

static void flush(struct agent *a, struct worker *w)
{
    while (w->out_at < w->out.n) {
        ssize_t n = send(w->source.fd, w->out.v + w->out_at, w->out.n - w->out_at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN) {
            source_want(a, &w->source, EPOLLIN | EPOLLOUT);
            return;
        }
        if (n <= 0) {
            close_worker(a, w);
            return;
        }
        w->out_at += (size_t)n;
    }
    w->out.n = w->out_at = 0;
    source_want(a, &w->source, EPOLLIN);
}

static void send_line(struct agent *a, struct worker *w, struct json *j)
{
    if (w->closing)
        return;
    if (json_line(j) < 0)
        must(NULL);
    if (w->out.n - w->out_at + j->n > QUEUE_MAX) {
        say(SAY_WARN, "msg=\"a worker does not read: cut off\" job=%s subtask=%u attempt=%u",
            w->task->key.job, w->task->key.subtask, w->task->key.attempt);
        close_worker(a, w);
        return;
    }
    must(vec_room(NULL, &w->out, j->n) ? w : NULL);
    memcpy(w->out.v + w->out.n, j->v, j->n);
    w->out.n += j->n;
    flush(a, w);
}

/* ---- answers
 * ----------------------------------------------------------------------------------------- */

static struct json *begin_answer(struct agent *a, bool has_n, int64_t n)
{
    struct json *j = session_body(a);

    json_bool(j, "ok", true);
    if (has_n)
        json_int(j, "n", n);
    return j;
}

static void end_answer(struct agent *a, struct worker *w, struct json *j)
{
    json_end(j, '}');
    send_line(a, w, j);
}

static void refuse(struct agent *a, struct worker *w, bool has_n, int64_t n, const char *code,
                   const char *text)
{
    struct json *j = session_body(a);

    json_bool(j, "ok", false);
    if (has_n)
        json_int(j, "n", n);
    json_string(j, "code", code);
    json_string(j, "text", text);
    end_answer(a, w, j);
}

static void out_of_order(struct agent *a, struct worker *w, const struct worker_line *l,
                         int64_t used)
{
    char text[128];

    snprintf(text, sizeof text, "number %" PRId64 ", but the next one is %" PRId64, l->number,
             used + 1);
    refuse(a, w, l->has_n, l->n, "out-of-order", text);
}

static void put_json(struct json *j, const char *key, const char *text)
{
    if (text)
        json_raw(j, key, text, strlen(text));
    else
        json_null(j, key);
}

/* The directory of the newest checkpoint of the run that this task knows; the caller frees. */
static char *newest_checkpoint(const struct task *t)
{
    if (t->checkpoint && *t->root)
        return must_format("%s/%s", t->root, t->checkpoint);
    return *t->restore ? must_copy(t->restore) : NULL;
}

static void answer_report(struct agent *a, struct worker *w, bool has_n, int64_t n)
{
    struct json *j = begin_answer(a, has_n, n);
    char *dir = newest_checkpoint(w->task);

    json_string(j, "checkpoint_dir", dir);
    free(dir);
    end_answer(a, w, j);
}

static void answer_collective(struct agent *a, struct worker *w, const struct waiting *q)
{
    struct json *j = begin_answer(a, q->has_n, q->n);

    put_json(j, q->is_notice ? "info" : "payload", w->task->released);
    end_answer(a, w, j);
}

/* ---- what waits for the daemon
 * ------------------------------------------------------------------------ */

void pending_clear(struct pending *p)
{
    free(p->kind);
    free(p->body);
    free(p->name);
    *p = (struct pending){0};
}

static void write_report(const struct pending *p, struct json *j)
{
    json_int(j, "call", p->number);
    put_json(j, "metrics", p->body);
    json_string(j, "checkpoint", p->name);
    json_int(j, "bytes", p->bytes);
}

static void write_collective(const struct pending *p, struct json *j)
{
    json_int(j, "seq", p->number);
    json_string(j, "kind", p->kind);
    put_json(j, "payload", p->body);
}

void worker_write_pending(const struct task *t, struct json *j)
{
    if (t->report.number) {
        json_begin(j, "report", '{');
        write_report(&t->report, j);
        json_end(j, '}');
    }
    if (t->entered.number) {
        json_begin(j, "entered", '{');
        write_collective(&t->entered, j);
        json_end(j, '}');
    }
}

static void say_report(struct agent *a, const struct task *t)
{
    struct json *j = session_body(a);

    task_key_write(j, &t->key);
    write_report(&t->report, j);
    json_end(j, '}');
    session_send(a, MESSAGE_REPORT, j);
}

static void say_entered(struct agent *a, const struct task *t)
{
    struct json *j = session_body(a);

    task_key_write(j, &t->key);
    write_collective(&t->entered, j);
    json_end(j, '}');
    session_send(a, MESSAGE_ENTER, j);
}

static void say_end_of_data(struct agent *a, const struct task *t)
{
    struct json *j = session_body(a);

    task_key_write(j, &t->key);
    json_end(j, '}');
    session_send(a, MESSAGE_END_OF_DATA, j);
}

void worker_say_again(struct agent *a)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        if (a->tasks.v[i]->ended_data) /* reports and collectives stand in HELLO */
            say_end_of_data(a, a->tasks.v[i]);
}

static void wait_for_answer(struct worker *w, const struct worker_line *l, int64_t number)
{
    struct waiting *q = must(vec_push(NULL, &w->waiting));

    *q = (struct waiting){.is_report = l->op == WORKER_REPORT,
                          .is_notice = l->op == WORKER_GET_PREEMPTION_INFO,
                          .has_n = l->has_n,
                          .number = number,
                          .n = l->n};
}

static bool is_too_long(struct agent *a, struct worker *w, const struct worker_line *l,
                        const struct pending *p)
{
    if (strlen(p->body) + ROOM_FOR_NAMES <= message_kind(MESSAGE_REPORT)->size_max)
        return false;
    refuse(a, w, l->has_n, l->n, "malformed", "too long with the task's name");
    return true;
}

static void on_report(struct agent *a, struct worker *w, const struct worker_line *l)
{
    struct task *t = w->task;
    int64_t number = l->number ? l->number : t->calls + 1;
    struct pending p;

    if (number <= t->calls) {
        answer_report(a, w, l->has_n, l->n);
        return;
    }
    if (number > t->calls + 1) {
        out_of_order(a, w, l, t->calls);
        return;
    }
    if (t->report.number != number) { /* else sent again: the first content holds */
        p = (struct pending){.number = number,
                             .body = must(json_doc_text(l->metrics, "{}")),
                             .name = must_copy(l->checkpoint),
                             .bytes = l->bytes};
        if (is_too_long(a, w, l, &p)) {
            pending_clear(&p);
            return;
        }
        pending_clear(&t->report);
        t->report = p;
        say_report(a, t);
    }
    wait_for_answer(w, l, number);
}

static void on_collective(struct agent *a, struct worker *w, const struct worker_line *l)
{
    struct task *t = w->task;
    int64_t number = l->number ? l->number : t->seqs + 1;
    struct pending p;

    if (number == t->seqs && t->released) {
        const struct waiting again = {
            .is_notice = l->op == WORKER_GET_PREEMPTION_INFO, .has_n = l->has_n, .n = l->n};

        answer_collective(a, w, &again);
        return;
    }
    if (number <= t->seqs || number > t->seqs + 1) {
        out_of_order(a, w, l, t->seqs);
        return;
    }
    if (t->entered.number != number) {
        p = (struct pending){.number = number, .kind = must_copy(l->kind)};
        p.body = l->op == WORKER_GET_PREEMPTION_INFO ? must_copy(t->notice ? t->notice : "null")
                                                     : must(json_doc_text(l->payload, "null"));
        if (is_too_long(a, w, l, &p)) {
            pending_clear(&p);
            return;
        }
        pending_clear(&t->entered);
        t->entered = p;
        say_entered(a, t);
    }
    wait_for_answer(w, l, number);
}

/* ---- checkpoints of graph jobs
 * --------------------------------------------------------------------------- */

static void say_checkpoint(struct agent *a, struct worker *w, const struct wanted_part *p)
{
    struct json *j = session_body(a);

    json_string(j, "ev", "checkpoint");
    if (p->dir)
        json_id(j, "id", p->id);
    else
        json_null(j, "id");
    json_string(j, "dir", p->dir);
    json_bool(j, "savepoint", p->savepoint);
    end_answer(a, w, j);
}

static void say_part(struct agent *a, const struct task *t, uint64_t id, bool ok, int64_t bytes,
                     const char *cause)
{
    struct json *j = session_body(a);

    json_begin(j, "parts", '[');
    json_begin(j, NULL, '{');
    task_key_write(j, &t->key);
    json_id(j, "id", id);
    json_bool(j, "ok", ok);
    json_int(j, "bytes", bytes);
    json_string(j, "cause", cause);
    json_end(j, '}');
    json_end(j, ']');
    json_end(j, '}');
    session_send(a, MESSAGE_PARTS, j);
}

static void on_part(struct agent *a, struct worker *w, const struct worker_line *l)
{
    struct task *t = w->task;

    if (a->session.state != SESSION_UP) {
        refuse(a, w, l->has_n, l->n, "unavailable", "no daemon; try again");
        return;
    }
    for (size_t i = 0; i < t->wanted.n; i++)
        if (t->wanted.v[i].id == l->id) {
            free(t->wanted.v[i].dir);
            t->wanted.v[i] = t->wanted.v[--t->wanted.n];
        }
    say_part(a, t, l->id, l->ok, l->bytes, l->cause);
    end_answer(a, w, begin_answer(a, l->has_n, l->n));
}

/* An empty directory for the task's part: DIR/VERTEX/SUBTASK-PARALLELISM. NULL: *cause. */
static char *make_part_dir(const struct task *t, const char *dir, const char **ret_cause)
{
    char *path = must_format("%s/%s/%u-%u", dir, t->key.vertex, t->key.subtask, t->parallelism);
    int r = make_dirs(path);
    DIR *list = r == 0 ? opendir(path) : NULL;
    const struct dirent *entry;

    *ret_cause = r < 0 ? strerror(-r) : list ? NULL : strerror(errno);
    while (list && (entry = readdir(list)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            *ret_cause = "the directory for the part is not empty";
    if (list)
        closedir(list);
    if (!*ret_cause)
        return path;
    free(path);
    return NULL;
}

/* A request stays until its part comes; a newer one takes the place of an older one of its kind. */
static void want_part(struct agent *a, struct task *t, const struct wanted_part *part)
{
    for (size_t i = t->wanted.n; i-- > 0;)
        if (t->wanted.v[i].id == part->id || t->wanted.v[i].savepoint == part->savepoint) {
            free(t->wanted.v[i].dir);
            t->wanted.v[i] = t->wanted.v[--t->wanted.n];
        }
    *(struct wanted_part *)must(vec_push(NULL, &t->wanted)) = *part;
    for (struct worker *w = t->workers, *next; w; w = next) {
        next = w->next;
        if (w->takes_checkpoints)
            say_checkpoint(a, w, part);
    }
}

static void checkpoint_of_task(struct agent *a, struct task *t, uint64_t id, bool savepoint,
                               const char *dir)
{
    struct wanted_part part = {.id = id, .savepoint = savepoint};
    const char *cause;

    if (!t->group && dir) {
        part.dir = make_part_dir(t, dir, &cause);
        if (!part.dir) {
            say_part(a, t, id, false, 0, cause);
            return;
        }
    }
    want_part(a, t, &part);
}

struct asked {
    const char *job, *dir; /* dir NULL: of a worker group */
    uint64_t id;
    bool savepoint;
    const struct doc *tasks;
};

static bool read_asked(struct agent *a, const struct doc *body, struct asked *ret)
{
    const struct doc *dir = doc_get(body, "dir"), *number = doc_get(body, "id");
    struct spec_error err;
    const char *id = "0";

    if (doc_string(&a->in, body, "job", AGENT_JOB_ID - 1, &ret->job, &err) < 0 ||
        (number && number->kind != DOC_NULL && doc_as_string(&a->in, number, 20, &id, &err) < 0) ||
        doc_optional(doc_bool(&a->in, body, "savepoint", &ret->savepoint, &err)) < 0 ||
        (dir && dir->kind != DOC_NULL && doc_as_string(&a->in, dir, 4095, &ret->dir, &err) < 0) ||
        doc_container(&a->in, body, "tasks", DOC_LIST, &ret->tasks, &err) < 0) {
        say(SAY_WARN, "msg=\"a broken CHECKPOINT\" error=\"%s\"", err.text);
        return false;
    }
    ret->id = strtoull(id, NULL, 10);
    return true;
}

/* The job stands once for all of the tasks. */
static struct task *asked_task(struct agent *a, const char *job, const struct doc *d)
{
    struct task_key key;
    struct spec_error err;
    const char *vertex;
    int64_t subtask, attempt;

    if (d->kind != DOC_MAP || doc_string(&a->in, d, "vertex", AGENT_NAME_MAX, &vertex, &err) < 0 ||
        doc_int(&a->in, d, "subtask", 0, UINT32_MAX, &subtask, &err) < 0 ||
        doc_int(&a->in, d, "attempt", 0, UINT32_MAX, &attempt, &err) < 0)
        return NULL;
    key = (struct task_key){.subtask = (uint32_t)subtask, .attempt = (uint32_t)attempt};
    snprintf(key.job, sizeof key.job, "%s", job);
    snprintf(key.vertex, sizeof key.vertex, "%s", vertex);
    return task_find(a, &key);
}

void worker_checkpoint(struct agent *a, const struct doc *body)
{
    struct asked asked = {0};

    if (!read_asked(a, body, &asked))
        return;
    for (const struct doc *d = asked.tasks->child; d; d = d->next) {
        struct task *t = asked_task(a, asked.job, d);

        if (t && task_lives(t))
            checkpoint_of_task(a, t, asked.id, asked.savepoint, asked.dir);
    }
}

/* ---- the other requests
 * -------------------------------------------------------------------------------------- */

static void say_notice(struct agent *a, struct worker *w)
{
    struct json *j = session_body(a);

    json_string(j, "ev", "preemption");
    put_json(j, "info", w->task->notice);
    end_answer(a, w, j);
}

static void say_stop(struct agent *a, struct worker *w)
{
    struct json *j = session_body(a);

    json_string(j, "ev", "stop");
    end_answer(a, w, j);
}

/* ---- health [W-GRP-8]
 * -------------------------------------------------------------------------------------- */

static void look_at_health(struct agent *a, struct health *h, int64_t at_ms)
{
    h->at_ms = at_ms;
    a->health_at_ms = sooner(a->health_at_ms, at_ms);
}

static void take_part_in_health(struct agent *a, struct worker *w, bool on)
{
    const struct task *t = w->task;

    if (on == w->health.on)
        return;
    w->health = (struct health){.on = on && t->health_interval_ms > 0 && t->health_timeout_ms > 0};
    if (w->health.on)
        look_at_health(a, &w->health, instant_after(a->now_ms, t->health_interval_ms));
}

static void on_health(struct agent *a, struct worker *w, const struct worker_line *l)
{
    struct health *h = &w->health;

    if (!h->is_asked || l->n != h->n)
        return;
    h->is_asked = false;
    look_at_health(a, h, instant_after(h->asked_at_ms, w->task->health_interval_ms));
}

/* In pieces, so that a pause of the agent spoils no more than one. */
static void wait_for_health(struct agent *a, struct worker *w)
{
    const struct task *t = w->task;

    w->health.span_ms = sooner(t->health_interval_ms, t->health_timeout_ms - w->health.waited_ms);
    look_at_health(a, &w->health, instant_after(a->now_ms, w->health.span_ms));
}

static void ask_for_health(struct agent *a, struct worker *w)
{
    struct health *h = &w->health;
    struct json *j = session_body(a);

    h->n++;
    h->is_asked = true;
    h->asked_at_ms = a->now_ms;
    h->waited_ms = 0;
    wait_for_health(a, w);
    json_string(j, "ev", "health");
    json_int(j, "n", h->n);
    end_answer(a, w, j);
}

/* The answer may lie there: a turn takes in a piece of some connections only. */
static bool has_unread(const struct worker *w)
{
    char byte;

    return recv(w->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* Due. A turn that comes as late as after a pause of the agent counts for nothing. */
static void check_health(struct agent *a, struct worker *w)
{
    struct health *h = &w->health;

    if (!h->is_asked) {
        ask_for_health(a, w);
        return;
    }
    if (a->now_ms - h->at_ms <= FROZEN_MS)
        h->waited_ms += h->span_ms;
    h->span_ms = 0;
    if (h->waited_ms < w->task->health_timeout_ms)
        wait_for_health(a, w);
    else if (has_unread(w))
        look_at_health(a, h, a->now_ms);
    else
        task_kill_hung(a, w->task);
}

void worker_check_health(struct agent *a)
{
    a->health_at_ms = PLIANT_NEVER;
    for (size_t i = 0; i < a->tasks.n; i++) {
        struct task *t = a->tasks.v[i];

        for (struct worker *w = t->workers, *next; w && t->state != TASK_STOPS; w = next) {
            next = w->next;
            if (w->health.on && w->health.at_ms <= a->now_ms)
                check_health(a, w);
            else if (w->health.on)
                look_at_health(a, &w->health, w->health.at_ms);
        }
    }
}

/* The answer, and what this task has been told so far. */
static void on_hello(struct agent *a, struct worker *w, const struct worker_line *l)
{
    const struct task *t = w->task;
    struct json *j = begin_answer(a, l->has_n, l->n);

    w->said_hello = true;
    w->takes_checkpoints = l->checkpoints;
    take_part_in_health(a, w, l->health);
    task_key_write(j, &t->key);
    json_string(j, "checkpoint_dir", t->restore);
    if (t->group)
        json_string(j, "run_dir", t->root);
    json_int(j, "calls", t->calls);
    json_int(j, "seqs", t->seqs);
    end_answer(a, w, j);
    if (t->notice)
        say_notice(a, w);
    if (t->state == TASK_STOPS)
        say_stop(a, w);
    for (size_t i = 0; l->checkpoints && i < t->wanted.n; i++)
        say_checkpoint(a, w, &t->wanted.v[i]);
}

static void on_get_checkpoint(struct agent *a, struct worker *w, const struct worker_line *l)
{
    struct json *j = begin_answer(a, l->has_n, l->n);
    char *dir = newest_checkpoint(w->task);

    json_string(j, "dir", dir);
    free(dir);
    end_answer(a, w, j);
}

static void on_get_preemption_info(struct agent *a, struct worker *w, const struct worker_line *l)
{
    struct json *j;

    if (w->task->group) { /* a collective: rank 0's value is everybody's [W-PRE-20] */
        on_collective(a, w, l);
        return;
    }
    j = begin_answer(a, l->has_n, l->n);
    put_json(j, "info", w->task->notice);
    end_answer(a, w, j);
}

static void on_end_of_data(struct agent *a, struct worker *w, const struct worker_line *l)
{
    w->task->ended_data = true; /* said again in each session */
    say_end_of_data(a, w->task);
    end_answer(a, w, begin_answer(a, l->has_n, l->n));
}

static void answer_result(struct agent *a, struct worker *w, const struct worker_line *l,
                          const char *why_not)
{
    if (why_not)
        refuse(a, w, l->has_n, l->n, "refused", why_not);
    else
        end_answer(a, w, begin_answer(a, l->has_n, l->n));
}

static void obey(struct agent *a, struct worker *w, const struct worker_line *l)
{
    if (!w->said_hello && l->op != WORKER_HELLO) {
        refuse(a, w, l->has_n, l->n, "out-of-order", "hello comes first");
        return;
    }
    switch (l->op) {
    case WORKER_HELLO:
        on_hello(a, w, l);
        return;
    case WORKER_REPORT:
        on_report(a, w, l);
        return;
    case WORKER_ENTER:
        on_collective(a, w, l);
        return;
    case WORKER_GET_PREEMPTION_INFO:
        on_get_preemption_info(a, w, l);
        return;
    case WORKER_GET_CHECKPOINT:
        on_get_checkpoint(a, w, l);
        return;
    case WORKER_PART:
        on_part(a, w, l);
        return;
    case WORKER_END_OF_DATA:
        on_end_of_data(a, w, l);
        return;
    case WORKER_HEALTH:
        on_health(a, w, l);
        return;
    case WORKER_OUTPUT:
        answer_result(a, w, l, exchange_take_output(a, w->task, l->edge, l->sizes));
        return;
    case WORKER_INPUT_LOST:
        answer_result(a, w, l, exchange_take_lost(a, w->task, l->edge, l->subtask));
        return;
    }
}

static void take_line(struct agent *a, struct worker *w, const char *text, size_t size)
{
    struct doc_file f = {0};
    struct worker_line l;
    struct spec_error err;
    const char *code;
    int r = worker_line_read(&f, text, size, &l, &code, &err);

    if (r == -ENOMEM)
        must(NULL);
    if (r < 0)
        refuse(a, w, l.has_n, l.n, code, err.text);
    else
        obey(a, w, &l);
    doc_free(&f);
}

/* ---- bytes
 * ------------------------------------------------------------------------------------------------------
 */

static void line_too_long(struct agent *a, struct worker *w)
{
    refuse(a, w, false, 0, "malformed", "a line that is too long");
    if (!w->closing)
        close_worker(a, w);
}

/* Up to `scanned` there is no end of a line. */
static void take_lines(struct agent *a, struct worker *w, size_t scanned)
{
    size_t from = 0;
    char *end;

    while (!w->closing && (end = memchr(w->in.v + scanned, '\n', w->in.n - scanned))) {
        size_t at = (size_t)(end - w->in.v);

        if (at - from > WORKER_LINE_MAX) {
            line_too_long(a, w);
            return;
        }
        take_line(a, w, w->in.v + from, at - from);
        from = scanned = at + 1;
    }
    if (w->closing)
        return;
    memmove(w->in.v, w->in.v + from, w->in.n - from);
    w->in.n -= from;
    if (w->in.n > WORKER_LINE_MAX)
        line_too_long(a, w);
}

static void worker_ready(struct agent *a, void *self, uint32_t events)
{
    struct worker *w = self;
    size_t before = w->in.n;
    ssize_t n;

    if (events & EPOLLOUT)
        flush(a, w);
    if (w->closing || !(events & ~(uint32_t)EPOLLOUT))
        return;
    must(vec_room(NULL, &w->in, PIECE) ? w : NULL);
    n = recv(w->source.fd, w->in.v + before, PIECE, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        close_worker(a, w);
        return;
    }
    w->in.n += (size_t)n;
    take_lines(a, w, before);
}

/* ---- the door
 * ------------------------------------------------------------------------------------------------------
 */

static size_t count_workers(const struct task *t)
{
    size_t n = 0;

    for (const struct worker *w = t->workers; w; w = w->next)
        n++;
    return n;
}

static void door_ready(struct agent *a, void *self, uint32_t events)
{
    struct task *t = self;
    int fd = accept4(t->door.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct worker *w;

    (void)events;
    if (fd < 0)
        return;
    if (count_workers(t) >= CONNECTIONS_MAX) {
        close(fd);
        return;
    }
    w = must(calloc(1, sizeof *w));
    w->task = t;
    w->next = t->workers;
    t->workers = w;
    source_open(a, &w->source, fd, EPOLLIN, worker_ready, w);
}

bool worker_open_door(struct agent *a, struct task *t)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

    snprintf(at.sun_path, sizeof at.sun_path, "%s/s", t->dir); /* place.c bounds the length */
    unlink(at.sun_path);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 16) == 0) {
        source_open(a, &t->door, fd, EPOLLIN, door_ready, t);
        return true;
    }
    error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return false;
}

void worker_close_door(struct agent *a, struct task *t)
{
    while (t->workers)
        close_worker(a, t->workers);
    source_close(a, &t->door);
}

/* ---- what the daemon says
 * ------------------------------------------------------------------------------------------- */

/* Call for each connection that waits for this number, which then waits no more. */
static void answer_waiting(struct agent *a, struct task *t, bool is_report, int64_t number,
                           const char *error)
{
    for (struct worker *w = t->workers, *next; w; w = next) {
        next = w->next;
        for (size_t i = 0; !w->closing && i < w->waiting.n;) {
            const struct waiting q = w->waiting.v[i];

            if (q.is_report != is_report || q.number != number) {
                i++;
                continue;
            }
            w->waiting.v[i] = w->waiting.v[--w->waiting.n];
            if (error)
                refuse(a, w, q.has_n, q.n, "failed", error);
            else if (is_report)
                answer_report(a, w, q.has_n, q.n);
            else
                answer_collective(a, w, &q);
        }
    }
}

/* Whose answer it is, with its number and its error if it is one. */
static struct task *read_answer(struct agent *a, const struct doc *body, const char *number_key,
                                int64_t *ret_number, const char **ret_error)
{
    struct spec_error err;
    struct task_key key;

    *ret_error = NULL;
    if (!task_key_read(a, body, &key) ||
        doc_int(&a->in, body, number_key, 1, DOC_INTEGER_MAX, ret_number, &err) < 0)
        return NULL;
    if (doc_get(body, "error") && doc_get(body, "error")->kind == DOC_STRING)
        *ret_error = doc_get(body, "error")->text;
    return task_find(a, &key);
}

void worker_report_taken(struct agent *a, const struct doc *body)
{
    const char *error;
    int64_t call;
    struct task *t = read_answer(a, body, "call", &call, &error);

    if (!t || call != t->report.number)
        return;
    t->calls = call;
    if (t->report.name && !error) {
        free(t->checkpoint);
        t->checkpoint = t->report.name;
        t->report.name = NULL;
        t->wanted.n = 0; /* a group was asked to report one, and has; without directories */
    }
    pending_clear(&t->report);
    keep_note(a, t);
    answer_waiting(a, t, true, call, error);
}

void worker_released(struct agent *a, const struct doc *body)
{
    const char *error;
    int64_t seq;
    struct task *t = read_answer(a, body, "seq", &seq, &error);

    if (!t || seq != t->entered.number)
        return;
    t->seqs = seq;
    free(t->released);
    t->released = must(json_doc_text(doc_get(body, "payload"), "null"));
    pending_clear(&t->entered);
    keep_note(a, t);
    answer_waiting(a, t, false, seq, error);
}

/* The file for those without the library; by rename, so it is never half there. */
static void write_notice(const struct task *t)
{
    char *path = must_format("%s/preemption.json", t->dir);

    if (t->notice)
        write_file(path, t->notice, strlen(t->notice));
    else
        unlink(path);
    free(path);
}

/* Those who have asked for it look at the file then. The process alone: what it has started may not
 * know the signal, and would die of it. */
static void send_signal(struct agent *a, const struct task *t, const struct doc *name)
{
    struct keeper_message m = {.op = KEEPER_SIGNAL_ONE, .id = t->id};

    if (name && name->kind == DOC_STRING)
        m.code = signal_by_name(name->text, strlen(name->text));
    if (m.code != 0)
        keep_tell(a, &m, -1);
}

/* False: it is what the task has been told already. */
static bool take_notice(struct task *t, const struct doc *info)
{
    char *old = t->notice;
    bool same;

    t->notice = info ? must(json_doc_text(info, "null")) : NULL;
    same = old && t->notice && strcmp(old, t->notice) == 0;
    free(old);
    return !same;
}

void worker_notice(struct agent *a, const struct doc *body)
{
    const struct doc *info = doc_get(body, "info");
    struct spec_error err;
    const char *job;

    if (doc_string(&a->in, body, "job", AGENT_JOB_ID - 1, &job, &err) < 0)
        return;
    if (info && info->kind == DOC_NULL)
        info = NULL;
    for (size_t i = 0; i < a->tasks.n; i++) {
        struct task *t = a->tasks.v[i];

        if (!task_lives(t) || strcmp(t->key.job, job) != 0 || !take_notice(t, info))
            continue;
        write_notice(t);
        send_signal(a, t, doc_get(body, "signal"));
        for (struct worker *w = t->workers, *next; w; w = next) {
            next = w->next;
            if (w->said_hello)
                say_notice(a, w);
        }
    }
}

void worker_stopping(struct agent *a, struct task *t)
{
    for (struct worker *w = t->workers, *next; w; w = next) {
        next = w->next;
        if (w->said_hello)
            say_stop(a, w);
    }
}

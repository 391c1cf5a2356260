/* session.c - see worker_impl.h */
#include "worker/worker_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELLO_PATIENCE_MS = 2000,
    SETTLED_MS = 1000,
    AWAY_MS = 2000,     /* so long a daemon that cannot be asked is asked again, */
    AWAY_STEP_MS = 200, /* so often */
};

int worker_fail(struct pliant_worker *w, int r, const char *format, ...)
{
    va_list args;
    int n;

    free(w->error);
    va_start(args, format);
    n = vasprintf(&w->error, format, args);
    va_end(args);
    if (n < 0)
        w->error = NULL;
    return n < 0 ? -ENOMEM : r;
}

static int no_memory(struct pliant_worker *w)
{
    return worker_fail(w, -ENOMEM, "no memory");
}

/* ---- what the agent says by itself --------------------------------------------------------------
 */

void session_forget(struct pliant_worker *w, size_t request)
{
    struct request *gone = &w->requests[request];

    free(gone->id);
    free(gone->dir);
    w->n_requests--;
    memmove(gone, gone + 1, (w->n_requests - request) * sizeof *gone);
}

/* A request comes once more after a connection broke: its id tells. In worker groups there is one
 * at most, without an id. */
static bool is_known(const struct pliant_worker *w, const char *id)
{
    for (size_t i = 0; i < w->n_requests; i++)
        if (!id ? !w->requests[i].id : w->requests[i].id && strcmp(w->requests[i].id, id) == 0)
            return true;
    return false;
}

static int take_request(struct pliant_worker *w, struct json_span line)
{
    struct request new = {0};
    int r = json_text(json_get(line, "id"), &new.id);

    if (r == 0)
        r = json_text(json_get(line, "dir"), &new.dir);
    if (r == -ENOENT)
        r = 0;
    if (r == 0)
        r = json_truth(json_get(line, "savepoint"), &new.savepoint);
    if (r == -ENOENT)
        r = 0;
    if (r < 0 || !new.id != !new.dir || is_known(w, new.id)) {
        free(new.id);
        free(new.dir);
        return r;
    }
    if (w->n_requests == REQUESTS_MAX)
        session_forget(w, 0);
    w->requests[w->n_requests++] = new;
    return 0;
}

static int take_notice(struct pliant_worker *w, struct json_span line)
{
    struct json_span info = json_get(line, "info");
    bool same =
        w->told.json && info.n == strlen(w->told.json) && memcmp(w->told.json, info.v, info.n) == 0;

    if (same)
        return 0;
    w->news_of_notice = json_is(info, '{');
    return notice_read(info, &w->told);
}

static int take_event(struct pliant_worker *w, struct json_span line, struct json_span ev)
{
    static const char checkpoint[] = "\"checkpoint\"", preemption[] = "\"preemption\"",
                      stop[] = "\"stop\"";

    if (ev.n == sizeof checkpoint - 1 && memcmp(ev.v, checkpoint, ev.n) == 0)
        return take_request(w, line);
    if (ev.n == sizeof preemption - 1 && memcmp(ev.v, preemption, ev.n) == 0)
        return take_notice(w, line);
    if (ev.n == sizeof stop - 1 && memcmp(ev.v, stop, ev.n) == 0 && !w->stopping)
        w->stopping = w->news_of_stop = true;
    return 0;
}

static bool session_has_event(const struct pliant_worker *w)
{
    for (size_t i = 0; i < w->n_requests; i++)
        if (!w->requests[i].handed_out)
            return true;
    return w->news_of_stop || w->news_of_notice;
}

/* ---- lines --------------------------------------------------------------------------------------
 */

static int drop(struct pliant_worker *w)
{
    link_drop(&w->link);
    w->greeted = false;
    return -ENOTCONN;
}

/* 1: the answer to request n, in w->answer; 0: something else; -ENOTCONN: nonsense, and the
 * connection is dropped, since what was asked would not be answered any more. */
static int take_line(struct pliant_worker *w, const char *text, size_t size, int64_t n)
{
    struct json_span line = json_read(text, size), ev = json_get(line, "ev");
    int64_t of = n; /* a line that could not be read as a request has an answer without number */
    int r;

    if (!json_is(line, '{'))
        return drop(w);
    if (ev.v) {
        r = take_event(w, line, ev);
        link_ring(&w->link, session_has_event(w));
        return r == -ENOMEM ? no_memory(w) : r < 0 ? drop(w) : 0;
    }
    if (json_int64(json_get(line, "n"), &of) == -EINVAL || of != n || n < 0)
        return 0; /* the late answer to a request that was given up */
    free(w->answer_text);
    w->answer_text = strndup(line.v, line.n);
    if (!w->answer_text)
        return no_memory(w);
    w->answer = (struct json_span){w->answer_text, line.n};
    return 1;
}

/* 1: the answer to request n; 0: none until then, or, of a collective, none will come. */
static int await(struct pliant_worker *w, int64_t n, bool collective, int64_t until_ms)
{
    const char *text = NULL;
    size_t size = 0;
    int r = 0;

    while (r == 0 && !(collective && w->stopping)) {
        r = link_line(&w->link, until_ms, &text, &size);
        if (r == 0)
            return 0;
        if (r == 1)
            r = take_line(w, text, size, n);
    }
    if (r == -ENOTCONN)
        drop(w);
    return r == -ENOMEM ? no_memory(w) : r;
}

int session_listen(struct pliant_worker *w, int64_t until_ms)
{
    const char *text = NULL;
    size_t size = 0;
    int r = 0;

    while (r == 0 && !session_has_event(w)) {
        r = link_line(&w->link, until_ms, &text, &size);
        if (r == 0)
            return 0;
        if (r == 1)
            r = take_line(w, text, size, -1);
    }
    if (r == -ENOTCONN)
        drop(w);
    return r < 0 ? r : 1;
}

/* ---- requests -----------------------------------------------------------------------------------
 */

static void begin(struct json *j, const char *op, int64_t n)
{
    json_reset(j);
    json_begin(j, NULL, '{');
    json_string(j, "op", op);
    json_int(j, "n", n);
}

void session_request(struct pliant_worker *w, const char *op)
{
    begin(&w->out, op, ++w->n);
}

static int send_line(struct pliant_worker *w, struct json *j)
{
    int r = link_send(&w->link, j->v, j->n);

    return r == 0 ? link_send(&w->link, "\n", 1) : r;
}

/* What the answer says: 0 or an error. */
static int judge(struct pliant_worker *w)
{
    static const struct {
        const char *code;
        int r;
    } codes[] = {{"\"malformed\"", -EPROTO},
                 {"\"unknown-op\"", -EPROTO},
                 {"\"out-of-order\"", -EPROTO},
                 {"\"unavailable\"", -EAGAIN}};
    struct json_span code = json_get(w->answer, "code");
    char *text = NULL;
    bool ok = false;
    int r = -EREMOTEIO;

    json_truth(json_get(w->answer, "ok"), &ok);
    if (ok)
        return 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (code.n == strlen(codes[i].code) && memcmp(code.v, codes[i].code, code.n) == 0)
            r = codes[i].r;
    json_text(json_get(w->answer, "text"), &text);
    r = worker_fail(w, r, "%s", text ? text : "the agent refused without a reason");
    free(text);
    return r;
}

/* ---- hello
 * --------------------------------------------------------------------------------------- */

static int learn(struct pliant_worker *w)
{
    char *run_dir = NULL;

    if (!w->counted) {
        w->calls = w->seqs = 0;
        json_int64(json_get(w->answer, "calls"), &w->calls);
        json_int64(json_get(w->answer, "seqs"), &w->seqs);
        w->counted = true;
    }
    if (json_text(json_get(w->answer, "run_dir"), &run_dir) == -ENOMEM)
        return no_memory(w);
    if (run_dir) {
        free(w->run_dir);
        w->run_dir = run_dir;
    }
    return 0;
}

static int greet(struct pliant_worker *w)
{
    struct json hello;
    int r;

    json_init(&hello, NULL);
    begin(&hello, "hello", 0);
    json_string(&hello, "library", "pliant-c " PLIANT_VERSION);
    json_bool(&hello, "checkpoints", w->takes_checkpoints);
    json_end(&hello, '}');
    r = hello.error ? no_memory(w) : send_line(w, &hello);
    json_free(&hello);
    if (r < 0)
        return r;
    r = await(w, 0, false, link_now_ms() + HELLO_PATIENCE_MS);
    if (r == 0)
        return drop(w);
    if (r == 1)
        r = judge(w);
    return r < 0 ? r : learn(w);
}

int session_try(struct pliant_worker *w)
{
    int r = 0;

    if (w->link.fd >= 0 && w->greeted)
        return 0;
    if (w->link.fd >= 0)
        drop(w);
    if (link_now_ms() < w->link.try_at_ms)
        return -ENOTCONN;
    r = link_connect(&w->link);
    if (r == 0)
        r = greet(w);
    if (r < 0) {
        drop(w);
        return r;
    }
    w->greeted = true;
    link_settled(&w->link);
    return 0;
}

static int64_t patience_end(const struct pliant_worker *w)
{
    int64_t now = link_now_ms();

    return w->patience_ms < 0 || w->patience_ms > LINK_NEVER - now ? LINK_NEVER
                                                                   : now + w->patience_ms;
}

static int ensure_until(struct pliant_worker *w, int64_t until_ms)
{
    int r;

    while ((r = session_try(w)) == -ENOTCONN) {
        if (link_now_ms() >= until_ms)
            return worker_fail(w, -ETIMEDOUT, "the agent cannot be reached at %s", w->link.path);
        link_sleep(w->link.try_at_ms < until_ms ? w->link.try_at_ms : until_ms);
    }
    return r;
}

int session_ensure(struct pliant_worker *w)
{
    return ensure_until(w, patience_end(w));
}

/* The request's answer, again on every new connection. */
static int ask_once(struct pliant_worker *w, bool collective)
{
    int64_t give_up_ms = patience_end(w), since_ms;
    int r;

    for (;;) {
        r = ensure_until(w, give_up_ms);
        if (r < 0)
            return r;
        since_ms = link_now_ms();
        r = send_line(w, &w->out);
        if (r == 0)
            r = await(w, w->n, collective, LINK_NEVER);
        if (r == 0)
            return worker_fail(w, -ECANCELED, "the task is to stop");
        if (r != -ENOTCONN)
            return r < 0 ? r : judge(w);
        if (link_now_ms() - since_ms >= SETTLED_MS) /* it was reached: patience begins anew */
            give_up_ms = patience_end(w);
    }
}

int session_ask(struct pliant_worker *w, bool collective)
{
    int64_t until_ms = link_now_ms() + AWAY_MS;
    int r;

    json_end(&w->out, '}');
    if (w->out.error)
        return no_memory(w);
    if (w->out.n > LINK_LINE_MAX)
        return worker_fail(w, -EINVAL, "the request has %zu bytes, at most %zu are taken", w->out.n,
                           LINK_LINE_MAX);
    while ((r = ask_once(w, collective)) == -EAGAIN && link_now_ms() < until_ms)
        link_sleep(link_now_ms() + AWAY_STEP_MS);
    return r;
}

/* worker.c - see pliant/worker.h */
#include "worker/worker_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "worker/files.h"

#define RUN_DIR_ALONE "checkpoints" /* not under Pliant */
#define NAME_MAX_BYTES 128

/* ---- life -------------------------------------------------------------------------------------
 */

int pliant_worker_new(struct pliant_worker **ret)
{
    struct pliant_worker *w = calloc(1, sizeof *w);
    char error[ENVIRONMENT_ERROR_SIZE] = "no memory";
    int r;

    *ret = w;
    if (!w)
        return -ENOMEM;
    json_init(&w->out, NULL);
    w->patience_ms = PLIANT_WORKER_PATIENCE_MS;
    r = environment_read(&w->env, error);
    link_init(&w->link, w->env.socket_path);
    return r < 0 ? worker_fail(w, r, "%s", error) : 0;
}

void pliant_worker_close(struct pliant_worker *w)
{
    if (!w)
        return;
    link_close(&w->link);
    while (w->n_requests > 0)
        session_forget(w, 0);
    notice_free(&w->told);
    notice_free(&w->asked);
    environment_free(&w->env);
    edges_free(&w->edges);
    json_free(&w->out);
    free(w->answer_text);
    free(w->run_dir);
    free(w->checkpoint);
    free(w->new_dir);
    free(w->last_reported);
    free(w->error);
    free(w);
}

const char *pliant_worker_error(const struct pliant_worker *w)
{
    return w && w->error ? w->error : "";
}

bool pliant_worker_managed(const struct pliant_worker *w)
{
    return w->env.socket_path != NULL;
}

void pliant_worker_set_patience(struct pliant_worker *w, int64_t patience_ms)
{
    w->patience_ms = patience_ms;
}

int pliant_worker_connect(struct pliant_worker *w)
{
    return pliant_worker_managed(w) ? session_ensure(w) : 0;
}

const char *pliant_worker_version(void)
{
    return PLIANT_VERSION;
}

const struct pliant_worker_task *pliant_worker_task(const struct pliant_worker *w)
{
    return &w->env.task;
}

const struct pliant_worker_part *pliant_worker_restore_parts(const struct pliant_worker *w,
                                                             size_t *ret_n)
{
    *ret_n = w->env.n_parts;
    return w->env.n_parts > 0 ? w->env.parts : NULL;
}

static int no_memory(struct pliant_worker *w)
{
    return worker_fail(w, -ENOMEM, "no memory");
}

/* A copy takes the place of *old. */
static int keep(struct pliant_worker *w, char **old, const char *text)
{
    char *copy = text ? strdup(text) : NULL;

    if (text && !copy)
        return no_memory(w);
    free(*old);
    *old = copy;
    return 0;
}

/* ---- checkpoints of worker groups
 * ------------------------------------------------------------------ */

int pliant_worker_get_checkpoint(struct pliant_worker *w, const char **ret_dir)
{
    char *dir = NULL;
    int r;

    if (!pliant_worker_managed(w)) {
        *ret_dir = w->last_reported ? w->last_reported : w->env.checkpoint_dir;
        return 0;
    }
    session_request(w, "get_checkpoint");
    r = session_ask(w, false);
    if (r == 0 && json_text(json_get(w->answer, "dir"), &dir) == -ENOMEM)
        r = no_memory(w);
    if (r < 0)
        return r;
    free(w->checkpoint);
    *ret_dir = w->checkpoint = dir;
    return 0;
}

/* Where checkpoints are directories; NULL: nobody said. */
static const char *run_dir(const struct pliant_worker *w)
{
    if (w->env.task.run_dir)
        return w->env.task.run_dir;
    return pliant_worker_managed(w) ? w->run_dir : RUN_DIR_ALONE;
}

static bool is_name(const char *name)
{
    return *name && strlen(name) <= NAME_MAX_BYTES && !strchr(name, '/') &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* run_dir/name as a new string. */
static int path_of(struct pliant_worker *w, const char *name, char **ret)
{
    if (!run_dir(w))
        return worker_fail(w, -EINVAL, "this task has no run directory for checkpoints");
    return asprintf(ret, "%s/%s", run_dir(w), name) < 0 ? no_memory(w) : 0;
}

/* The next collective: its answer's payload. */
static int enter_dir(struct pliant_worker *w, const char *name, char **ret_name)
{
    int r = session_ensure(w); /* from here on the counters are known */

    if (r < 0)
        return r;
    session_request(w, "enter");
    json_int(&w->out, "seq", w->seqs + 1);
    json_string(&w->out, "kind", "dir");
    json_string(&w->out, "payload", name);
    r = session_ask(w, true);
    if (r < 0)
        return r;
    w->seqs++;
    r = json_text(json_get(w->answer, "payload"), ret_name);
    if (r == -ENOMEM)
        return no_memory(w);
    if (r == 0 && is_name(*ret_name))
        return 0;
    if (r == 0)
        free(*ret_name);
    return worker_fail(w, -EPROTO, "rank 0 gave no name of a directory");
}

static int make_dir(struct pliant_worker *w, const char *name)
{
    char *path;
    int r = path_of(w, name, &path);

    if (r < 0)
        return r;
    r = files_make_directory(path);
    if (r < 0)
        worker_fail(w, r, "%s: %s", path, strerror(-r));
    else
        r = keep(w, &w->new_dir, path);
    free(path);
    return r;
}

int pliant_worker_checkpoint_dir(struct pliant_worker *w, const char **ret_dir)
{
    char proposal[NAME_MAX_BYTES], *name = NULL;
    struct timespec t;
    struct tm utc;
    size_t n;
    int r;

    clock_gettime(CLOCK_REALTIME, &t);
    n = strftime(proposal, sizeof proposal, "checkpoint_%Y-%m-%d_%H-%M-%S",
                 gmtime_r(&t.tv_sec, &utc));
    snprintf(proposal + n, sizeof proposal - n, ".%06ld", t.tv_nsec / 1000);
    if (!pliant_worker_managed(w)) {
        r = make_dir(w, proposal);
    } else {
        r = enter_dir(w, proposal, &name);
        if (r == 0)
            r = make_dir(w, name);
        free(name);
    }
    if (r == 0)
        *ret_dir = w->new_dir;
    return r;
}

/* The name of `checkpoint`, a name or a path in the run's directory. */
static int name_of(struct pliant_worker *w, const char *checkpoint, const char **ret)
{
    const char *in = run_dir(w);
    size_t n = in ? strlen(in) : 0;

    *ret = checkpoint;
    if (n > 0 && strncmp(checkpoint, in, n) == 0 && checkpoint[n] == '/')
        *ret = checkpoint + n + 1;
    if (!is_name(*ret))
        return worker_fail(w, -EINVAL, "checkpoint %.200s: expected a directory in %s", checkpoint,
                           in ? in : "the run's directory");
    return 0;
}

/* Sync what the report names; remembers it where nobody else does. */
static int settle_checkpoint(struct pliant_worker *w, const char *name, uint64_t *ret_bytes)
{
    char *path;
    int r = path_of(w, name, &path);

    if (r < 0)
        return r;
    r = files_sync(path, ret_bytes);
    if (r < 0)
        worker_fail(w, r, "checkpoint %s: %s", path, strerror(-r));
    else if (!pliant_worker_managed(w))
        r = keep(w, &w->last_reported, path);
    free(path);
    return r;
}

/* In one line: a line end in JSON is a blank, never part of a string. */
static void put_metrics(struct json *j, struct json_span metrics)
{
    size_t start;

    json_raw(j, "metrics", metrics.v, metrics.n);
    if (j->error)
        return;
    start = j->n - metrics.n;
    for (size_t i = start; i < j->n; i++)
        if (j->v[i] == '\n' || j->v[i] == '\r')
            j->v[i] = ' ';
}

int pliant_worker_report(struct pliant_worker *w, const char *metrics, const char *checkpoint)
{
    const char *text = metrics ? metrics : "{}", *name = NULL;
    struct json_span map = json_read(text, strlen(text));
    uint64_t bytes = 0;
    int r = 0;

    if (!json_is(map, '{'))
        return worker_fail(w, -EINVAL, "metrics: expected a JSON object");
    if (pliant_worker_managed(w))
        r = session_ensure(w); /* from here on counters and run directory are known */
    if (r == 0 && checkpoint)
        r = name_of(w, checkpoint, &name);
    if (r == 0 && checkpoint)
        r = settle_checkpoint(w, name, &bytes);
    if (r < 0 || !pliant_worker_managed(w))
        return r;
    session_request(w, "report");
    json_int(&w->out, "call", w->calls + 1);
    json_string(&w->out, "checkpoint", name);
    json_uint(&w->out, "bytes", bytes);
    put_metrics(&w->out, map);
    r = session_ask(w, true);
    w->calls += r == 0;
    return r;
}

/* ---- notices, events
 * ------------------------------------------------------------------------------- */

int pliant_worker_get_preemption_info(struct pliant_worker *w,
                                      const struct pliant_worker_preemption **ret)
{
    int r;

    *ret = NULL;
    if (!pliant_worker_managed(w))
        return 0;
    r = session_ensure(w);
    if (r < 0)
        return r;
    session_request(w, "get_preemption_info");
    if (w->env.task.group)
        json_int(&w->out, "seq", w->seqs + 1);
    r = session_ask(w, w->env.task.group);
    if (r < 0)
        return r;
    w->seqs += w->env.task.group;
    r = notice_read(json_get(w->answer, "info"), &w->asked);
    if (r < 0)
        return r == -ENOMEM ? no_memory(w) : worker_fail(w, -EPROTO, "not a notice of preemption");
    if (w->asked.json)
        *ret = &w->asked.info;
    return 0;
}

int pliant_worker_take_checkpoints(struct pliant_worker *w)
{
    bool greeted = w->greeted;

    if (w->takes_checkpoints)
        return 0;
    w->takes_checkpoints = true;
    if (!pliant_worker_managed(w))
        return 0;
    if (!greeted)
        return session_ensure(w);
    session_request(w, "hello");
    json_string(&w->out, "library", "pliant-c " PLIANT_VERSION);
    json_bool(&w->out, "checkpoints", true);
    return session_ask(w, false);
}

/* The request is handed out once more only if its part is not told; in worker groups it is done
 * with being known. */
static bool hand_out_request(struct pliant_worker *w, struct pliant_worker_event *ret)
{
    for (size_t i = 0; i < w->n_requests; i++) {
        struct request *q = &w->requests[i];

        if (q->handed_out)
            continue;
        q->handed_out = true;
        *ret = (struct pliant_worker_event){.kind = PLIANT_WORKER_CHECKPOINT,
                                            .id = q->id,
                                            .dir = q->dir,
                                            .savepoint = q->savepoint};
        if (!q->id)
            session_forget(w, i);
        return true;
    }
    return false;
}

static bool hand_out(struct pliant_worker *w, struct pliant_worker_event *ret)
{
    if (w->news_of_stop) {
        w->news_of_stop = false;
        *ret = (struct pliant_worker_event){.kind = PLIANT_WORKER_STOP};
        return true;
    }
    if (w->news_of_notice) {
        w->news_of_notice = false;
        *ret = (struct pliant_worker_event){.kind = PLIANT_WORKER_PREEMPTION,
                                            .preemption = &w->told.info};
        return true;
    }
    return hand_out_request(w, ret);
}

/* Connected or not, wait for an event at most so long. */
static int listen_or_try(struct pliant_worker *w, int64_t until_ms)
{
    int r = session_try(w);

    if (r == 0)
        return session_listen(w, until_ms);
    if (r == -ENOTCONN)
        link_sleep(w->link.try_at_ms < until_ms ? w->link.try_at_ms : until_ms);
    return r;
}

int pliant_worker_next(struct pliant_worker *w, int timeout_ms, struct pliant_worker_event *ret)
{
    int64_t until_ms = timeout_ms < 0 ? LINK_NEVER : link_now_ms() + timeout_ms;
    int r = 0;

    if (!pliant_worker_managed(w)) {
        link_sleep(until_ms);
        return 0;
    }
    while (!hand_out(w, ret)) {
        r = listen_or_try(w, until_ms);
        if (r == 0 || (r == -ENOTCONN && link_now_ms() >= until_ms)) {
            link_ring(&w->link, false);
            return 0;
        }
        if (r < 0 && r != -ENOTCONN)
            return r;
    }
    return 1;
}

int pliant_worker_fd(struct pliant_worker *w)
{
    int fd = link_poll_fd(&w->link);

    return fd < 0 ? worker_fail(w, fd, "no descriptor to wait on: %s", strerror(-fd)) : fd;
}

bool pliant_worker_stopping(const struct pliant_worker *w)
{
    return w->stopping;
}

/* ---- subtasks of graph jobs
 * -------------------------------------------------------------------------- */

static struct request *find_request(struct pliant_worker *w, const char *id)
{
    for (size_t i = 0; i < w->n_requests; i++)
        if (w->requests[i].id && strcmp(w->requests[i].id, id) == 0)
            return &w->requests[i];
    return NULL;
}

static void part_told(struct pliant_worker *w, const char *id)
{
    struct request *q = find_request(w, id);

    if (q)
        session_forget(w, (size_t)(q - w->requests));
}

/* `id` may be the request's own text: it lives until the request is forgotten. */
static int tell_part(struct pliant_worker *w, const char *id, const uint64_t *bytes,
                     const char *cause)
{
    int r;

    session_request(w, "part");
    json_string(&w->out, "id", id);
    json_bool(&w->out, "ok", bytes != NULL);
    if (bytes)
        json_uint(&w->out, "bytes", *bytes);
    if (cause)
        json_string(&w->out, "cause", cause);
    r = session_ask(w, false);
    if (r == 0)
        part_told(w, id);
    return r;
}

int pliant_worker_part_done(struct pliant_worker *w, const char *id)
{
    const struct request *q = find_request(w, id);
    uint64_t bytes = 0;
    int r;

    if (!pliant_worker_managed(w))
        return 0;
    if (!q)
        return worker_fail(w, -EINVAL, "no checkpoint %.40s has been asked for", id);
    r = files_sync(q->dir, &bytes);
    if (r < 0)
        return worker_fail(w, r, "%s: %s", q->dir, strerror(-r));
    return tell_part(w, id, &bytes, NULL);
}

int pliant_worker_part_failed(struct pliant_worker *w, const char *id, const char *cause)
{
    if (!pliant_worker_managed(w))
        return 0;
    return tell_part(w, id, NULL, cause ? cause : "unknown");
}

int pliant_worker_end_of_data(struct pliant_worker *w)
{
    if (!pliant_worker_managed(w))
        return 0;
    session_request(w, "end_of_data");
    return session_ask(w, false);
}

/* ---- blocking edges
 * ----------------------------------------------------------------------------------- */

static int read_edges(struct pliant_worker *w)
{
    char error[EDGES_ERROR_SIZE];
    int r;

    if (w->read_edges)
        return 0;
    r = edges_read(w->env.inputs_path, w->env.outputs_path, &w->edges, error);
    if (r < 0) {
        edges_free(&w->edges);
        return worker_fail(w, r, "%s", error);
    }
    w->read_edges = true;
    return 0;
}

int pliant_worker_inputs(struct pliant_worker *w, const struct pliant_worker_input **ret,
                         size_t *ret_n)
{
    int r = read_edges(w);

    if (r < 0)
        return r;
    *ret = w->edges.inputs;
    *ret_n = w->edges.n_inputs;
    return 0;
}

int pliant_worker_outputs(struct pliant_worker *w, const struct pliant_worker_output **ret,
                          size_t *ret_n)
{
    int r = read_edges(w);

    if (r < 0)
        return r;
    *ret = w->edges.outputs;
    *ret_n = w->edges.n_outputs;
    return 0;
}

int pliant_worker_output_sizes(struct pliant_worker *w, uint32_t edge, const uint64_t *bytes,
                               size_t n)
{
    if (!pliant_worker_managed(w))
        return 0;
    session_request(w, "output");
    json_uint(&w->out, "edge", edge);
    json_begin(&w->out, "bytes", '[');
    for (size_t i = 0; i < n; i++)
        json_uint(&w->out, NULL, bytes[i]);
    json_end(&w->out, ']');
    return session_ask(w, false);
}

int pliant_worker_input_lost(struct pliant_worker *w, uint32_t edge, uint32_t subtask)
{
    if (!pliant_worker_managed(w))
        return 0;
    session_request(w, "input_lost");
    json_uint(&w->out, "edge", edge);
    json_uint(&w->out, "subtask", subtask);
    return session_ask(w, false);
}

int pliant_worker_sync(const char *path)
{
    return files_sync(path, NULL);
}

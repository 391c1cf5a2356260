/* harness.c - see harness.h */
#include "service/harness.h"
#include "spec/json_doc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ftw.h>
#include <poll.h>

#define BEAT_MS 100
#define CALL_MS WAIT_MS

int64_t harness_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void run_daemon(struct service *s, const char *log)
{
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDERR_FILENO);
    for (int fd = 0; s->no_standard && fd <= STDERR_FILENO; fd++)
        close(fd);
    execv(s->args[0], (char **)s->args);
    _exit(127);
}

static void copy_text(char *to, size_t size, const struct doc_file *f, const char *key)
{
    const char *text = "";
    struct spec_error err;

    cr_assert(eq(int, doc_string(f, f->root, key, size - 1, &text, &err), 0), "%s", key);
    snprintf(to, size, "%s", text);
}

/* Has the daemon that runs now said where it listens? */
static bool read_endpoints(struct service *s)
{
    struct doc_file f;
    struct spec_error err;
    char path[128], epoch[32];
    int64_t pid = 0;
    bool ours;

    snprintf(path, sizeof path, "%s/state/endpoints.json", s->dir);
    if (doc_read(path, 65536, &f, &err) < 0)
        return false;
    doc_int(&f, f.root, "pid", 1, INT32_MAX, &pid, &err);
    ours = pid == s->pid;
    if (ours) {
        copy_text(s->agents, sizeof s->agents, &f, "agents");
        copy_text(s->clients, sizeof s->clients, &f, "clients");
        copy_text(s->events, sizeof s->events, &f, "events");
        copy_text(epoch, sizeof epoch, &f, "epoch");
        s->epoch = strtoull(epoch, NULL, 10);
    }
    doc_free(&f);
    return ours;
}

static void show_log(const char *path)
{
    char line[1024];
    FILE *in = fopen(path, "r");

    while (in && fgets(line, sizeof line, in))
        cr_log_warn("%s", line);
    if (in)
        fclose(in);
}

void service_start(struct service *s)
{
    struct rpc_link_config cfg = {.queue = 1000};
    struct spec_error err;
    char log[128];
    int64_t until_ms = harness_now_ms() + WAIT_MS;

    snprintf(log, sizeof log, "%s/log", s->dir);
    s->pid = fork();
    if (s->pid == 0)
        run_daemon(s, log);
    while (!read_endpoints(s)) {
        if (harness_now_ms() > until_ms || waitpid(s->pid, NULL, WNOHANG) != 0) {
            show_log(log);
            cr_assert(false, "the daemon does not start");
        }
        poll(NULL, 0, 5);
    }
    cfg.endpoint = s->clients;
    rpc_link_close(&s->client);
    cr_assert(eq(int, rpc_link_open(&cfg, &s->client, &err), 0), "%s", err.text);
}

void service_open(struct service *s, ...)
{
    static const char *const usual[] = {
        PLIANT_PROGRAMS "/pliantd", "--agents",    "", "--clients", "tcp://127.0.0.1:*", "--events",
        "tcp://127.0.0.1:*",        "--state-dir", ""};
    const char *arg;
    va_list args;

    rpc_prepare_process();
    *s = (struct service){.dir = "/tmp/pliant-service-XXXXXX"};
    cr_assert(mkdtemp(s->dir) != NULL);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        s->args[s->n_args++] = usual[i];
    snprintf(s->ipc, sizeof s->ipc, "ipc://%s/agents", s->dir);
    snprintf(s->state_dir, sizeof s->state_dir, "%s/state", s->dir);
    s->args[2] = s->ipc;
    s->args[8] = s->state_dir;
    va_start(args, s);
    while ((arg = va_arg(args, const char *)) && s->n_args < ARGS_MAX - 1)
        s->args[s->n_args++] = arg;
    va_end(args);
    service_start(s);
}

int service_kill(struct service *s, int sig)
{
    kill(s->pid, sig);
    return service_wait(s);
}

int service_wait(struct service *s)
{
    int status = 0;

    waitpid(s->pid, &status, 0);
    s->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void agent_forget_all(struct fake_agent *a)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        free(a->tasks.v[i].deployment);
    vec_free(NULL, &a->tasks);
}

void service_close(struct service *s)
{
    for (size_t i = 0; i < s->n_agents; i++) {
        rpc_link_close(&s->agent[i]->link);
        agent_forget_all(s->agent[i]);
        free(s->agent[i]);
    }
    rpc_link_close(&s->client);
    doc_free(&s->reply);
    if (s->pid)
        service_kill(s, SIGKILL);
    nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- what agents say ------------------------------------------------------------------------- */

void agent_send(struct fake_agent *a, enum message_type type, const char *body)
{
    const struct message_header h = {
        .type = (uint16_t)type, .epoch = a->incarnation, .sequence = ++a->sequence};
    const struct json j = {.v = (char *)body, .n = strlen(body)};

    if (!a->silent && a->link)
        rpc_link_send(a->link, &h, &j);
}

static void write_task(struct json *j, const struct fake_task *t)
{
    json_begin(j, NULL, '{');
    json_string(j, "job", t->job);
    json_string(j, "vertex", t->vertex);
    json_uint(j, "subtask", t->subtask);
    json_uint(j, "attempt", t->attempt);
    json_int(j, "slot", t->slot);
    json_string(j, "state", t->state);
    json_int(j, "pid", 1000 + t->slot);
    if (t->end)
        json_raw(j, "end", t->end, strlen(t->end));
    json_end(j, '}');
}

static void send_json(struct fake_agent *a, enum message_type type, struct json *j)
{
    char *text = strndup(j->v, j->n);

    agent_send(a, type, text);
    free(text);
    json_free(j);
}

static void send_states(struct fake_agent *a, size_t first, size_t n)
{
    struct json j;

    if (n == 0)
        return;
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_begin(&j, "tasks", '[');
    for (size_t i = first; i < first + n; i++)
        write_task(&j, &a->tasks.v[i]);
    json_end(&j, ']');
    json_end(&j, '}');
    send_json(a, MESSAGE_TASKS, &j);
}

void agent_hello(struct fake_agent *a)
{
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_raw(&j, "protocol", "[1,1]", 5);
    json_string(&j, "node", a->name);
    json_id(&j, "incarnation", a->incarnation);
    json_uint(&j, "slots", a->slots);
    json_string(&j, "address", "127.0.0.1");
    json_id(&j, "epoch", a->epoch);
    json_bool(&j, "keep_tasks", a->keep_tasks);
    if (a->drain)
        json_raw(&j, "drain", a->drain, strlen(a->drain));
    json_begin(&j, "tasks", '[');
    for (size_t i = 0; i < a->tasks.n; i++)
        write_task(&j, &a->tasks.v[i]);
    json_end(&j, ']');
    json_end(&j, '}');
    a->sequence = 0;
    a->welcome = false;
    a->n_hello++;
    a->beat_at_ms = harness_now_ms() + BEAT_MS;
    send_json(a, MESSAGE_HELLO, &j);
}

void agent_end(struct fake_agent *a, struct fake_task *task, const char *end)
{
    task->state = "ended";
    task->end = end;
    send_states(a, (size_t)(task - a->tasks.v), 1);
}

const char *agent_variable(struct fake_agent *a, const char *vertex, uint32_t subtask,
                           const char *name)
{
    static struct doc_file f;
    const struct doc *value;
    struct spec_error err;

    for (size_t i = 0; i < a->tasks.n; i++) {
        const struct fake_task *t = &a->tasks.v[i];

        if (strcmp(t->vertex, vertex) != 0 || t->subtask != subtask ||
            strcmp(t->state, "running") != 0)
            continue;
        cr_assert(eq(int, doc_line(&f, t->deployment, strlen(t->deployment), 1, &err), 0), "%s",
                  err.text);
        value = doc_get(doc_get(f.root, "env"), name);
        return value ? value->text : "";
    }
    cr_assert(false, "%s runs no %s/%u", a->name, vertex, subtask);
    return "";
}

uint32_t agent_running(const struct fake_agent *a)
{
    uint32_t n = 0;

    for (size_t i = 0; i < a->tasks.n; i++)
        n += strcmp(a->tasks.v[i].state, "running") == 0;
    return n;
}

/* ---- what agents are told ---------------------------------------------------------------------
 */

static void name_of(const struct doc_file *f, const struct doc *map, struct fake_task *ret)
{
    const char *job = "", *vertex = "";
    int64_t subtask = 0, attempt = 0;
    struct spec_error err;

    *ret = (struct fake_task){0};
    cr_assert(eq(int, doc_string(f, map, "job", 128, &job, &err), 0));
    cr_assert(eq(int, doc_string(f, map, "vertex", 128, &vertex, &err), 0));
    cr_assert(eq(int, doc_int(f, map, "subtask", 0, UINT32_MAX, &subtask, &err), 0));
    cr_assert(eq(int, doc_int(f, map, "attempt", 0, UINT32_MAX, &attempt, &err), 0));
    snprintf(ret->job, sizeof ret->job, "%s", job);
    snprintf(ret->vertex, sizeof ret->vertex, "%s", vertex);
    ret->subtask = (uint32_t)subtask;
    ret->attempt = (uint32_t)attempt;
}

static struct fake_task *task_find(struct fake_agent *a, const struct fake_task *name)
{
    for (size_t i = 0; i < a->tasks.n; i++) {
        struct fake_task *t = &a->tasks.v[i];

        if (strcmp(t->job, name->job) == 0 && strcmp(t->vertex, name->vertex) == 0 &&
            t->subtask == name->subtask && t->attempt == name->attempt)
            return t;
    }
    return NULL;
}

static char *text_of(const struct doc *map)
{
    struct json j;
    char *text;

    json_init(&j, NULL);
    json_doc(&j, NULL, map);
    text = strndup(j.v, j.n);
    json_free(&j);
    return text;
}

static void deploy(struct fake_agent *a, const struct doc_file *f, const struct doc *map)
{
    struct fake_task name, *t;
    struct spec_error err;

    a->n_deploy++;
    name_of(f, map, &name);
    if (task_find(a, &name))
        return;
    t = vec_push(NULL, &a->tasks);
    *t = name;
    cr_assert(eq(int, doc_int(f, map, "slot", 0, a->slots - 1, &t->slot, &err), 0), "%s", err.text);
    for (size_t i = 0; i + 1 < a->tasks.n; i++)
        a->n_double += a->tasks.v[i].slot == t->slot && strcmp(a->tasks.v[i].state, "ended") != 0;
    t->state = a->slow_start ? "starting" : "running";
    t->deployment = text_of(map);
    send_states(a, a->tasks.n - 1, 1);
}

static void stop(struct fake_agent *a, const struct doc_file *f, const struct doc *map)
{
    struct fake_task name, *t;

    a->n_stop++;
    name_of(f, map, &name);
    t = task_find(a, &name);
    if (t && !a->hangs && strcmp(t->state, "ended") != 0)
        agent_end(a, t, "{\"how\":\"stopped\",\"code\":0}");
}

static void forget(struct fake_agent *a, const struct doc_file *f, const struct doc *map)
{
    struct fake_task name, *t;

    a->n_forget++;
    a->n_finished += doc_get(map, "finished") != NULL;
    name_of(f, map, &name);
    t = task_find(a, &name);
    if (!t)
        return;
    free(t->deployment);
    memmove(t, t + 1, (size_t)(&a->tasks.v[a->tasks.n] - (t + 1)) * sizeof *t);
    a->tasks.n--;
}

static void for_each(struct fake_agent *a, const struct doc_file *f,
                     void (*each)(struct fake_agent *a, const struct doc_file *f,
                                  const struct doc *map))
{
    const struct doc *tasks = doc_get(f->root, "tasks");

    for (const struct doc *t = tasks ? tasks->child : NULL; t; t = t->next)
        each(a, f, t);
}

/* Every part is said to be written. */
static void checkpoint(struct fake_agent *a, const struct doc_file *f)
{
    const char *job = doc_get(f->root, "job")->text, *id = doc_get(f->root, "id")->text;
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_begin(&j, "parts", '[');
    for (const struct doc *t = doc_get(f->root, "tasks")->child; t; t = t->next) {
        json_begin(&j, NULL, '{');
        json_string(&j, "job", job);
        json_string(&j, "vertex", doc_get(t, "vertex")->text);
        json_int(&j, "subtask", (int64_t)doc_get(t, "subtask")->number);
        json_int(&j, "attempt", (int64_t)doc_get(t, "attempt")->number);
        json_string(&j, "id", id);
        json_bool(&j, "ok", true);
        json_int(&j, "bytes", 10);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_end(&j, '}');
    send_json(a, MESSAGE_PARTS, &j);
}

static void take_error(struct fake_agent *a, const struct doc_file *f)
{
    const struct doc *code = doc_get(f->root, "code");

    a->n_error++;
    if (strcmp(code->text, "stale") == 0)
        a->n_stale++;
    else if (strcmp(code->text, "not-registered") == 0 || strcmp(code->text, "unavailable") == 0)
        agent_hello(a);
}

static void take(struct fake_agent *a, const struct rpc_message *m, const struct doc_file *f)
{
    if (m->header.epoch < a->epoch)
        return;
    a->epoch = m->header.epoch;
    if (m->header.type == MESSAGE_WELCOME) {
        a->n_welcome++;
        a->welcome = true;
    } else if (m->header.type == MESSAGE_DEPLOY)
        for_each(a, f, deploy);
    else if (m->header.type == MESSAGE_STOP)
        for_each(a, f, stop);
    else if (m->header.type == MESSAGE_FORGET)
        for_each(a, f, forget);
    else if (m->header.type == MESSAGE_CHECKPOINT && !a->other)
        checkpoint(a, f);
    else if (m->header.type == MESSAGE_NOTICE)
        a->n_notice++;
    else if (m->header.type == MESSAGE_HEARTBEAT)
        a->n_beat++;
    else if (m->header.type == MESSAGE_RESYNC) {
        a->n_resync++;
        agent_hello(a);
    } else if (m->header.type == MESSAGE_ERROR)
        take_error(a, f);
    else if (a->other)
        a->other(a, m->header.type, f);
}

static void agent_act(struct fake_agent *a)
{
    struct doc_file f = {0};
    struct spec_error err;
    struct rpc_message m;

    while (!a->silent && a->link && rpc_link_receive(a->link, &m) == 1) {
        cr_assert(eq(int, message_body(&f, &m.header, m.body, m.size, &err), 0), "%s", err.text);
        take(a, &m, &f);
    }
    doc_free(&f);
    if (a->silent || harness_now_ms() < a->beat_at_ms)
        return;
    a->beat_at_ms = harness_now_ms() + BEAT_MS;
    agent_send(a, MESSAGE_HEARTBEAT, "{}");
}

void service_pump(struct service *s)
{
    for (size_t i = 0; i < s->n_agents; i++)
        agent_act(s->agent[i]);
    poll(NULL, 0, 2);
}

void service_pass(struct service *s, int64_t ms)
{
    int64_t until_ms = harness_now_ms() + ms;

    while (harness_now_ms() < until_ms)
        service_pump(s);
}

static void agent_connect(struct fake_agent *a)
{
    const struct rpc_link_config cfg = {.endpoint = a->service->agents, .queue = 10000};
    struct spec_error err;

    cr_assert(eq(int, rpc_link_open(&cfg, &a->link, &err), 0), "%s", err.text);
}

struct fake_agent *agent_join(struct service *s, const char *name, uint32_t slots)
{
    struct fake_agent *a = calloc(1, sizeof *a);

    cr_assert(s->n_agents < AGENTS_MAX);
    s->agent[s->n_agents++] = a;
    a->service = s;
    snprintf(a->name, sizeof a->name, "%s", name);
    a->slots = slots;
    a->incarnation = 1000;
    agent_connect(a);
    agent_hello(a);
    WAIT(s, a->welcome || a->n_stale);
    return a;
}

void agent_leave(struct fake_agent *a)
{
    rpc_link_close(&a->link);
    a->silent = true;
}

void agent_reconnect(struct fake_agent *a)
{
    rpc_link_close(&a->link);
    a->silent = false;
    agent_connect(a);
    agent_hello(a);
}

/* ---- the client ------------------------------------------------------------------------------ */

int call(struct service *s, enum message_type type, const char *format, ...)
{
    char body[65536];
    struct json j = {.v = body};
    struct spec_error err;
    va_list args;
    int n, r;

    va_start(args, format);
    n = vsnprintf(body, sizeof body, format, args);
    va_end(args);
    cr_assert(n >= 0 && (size_t)n < sizeof body);
    j.n = (size_t)n;
    r = rpc_call(s->client, type, &j, CALL_MS, &s->reply, &s->refusal, &err);
    cr_assert(r == 0 || r == -EPROTO, "%s: %d %s", message_kind((uint16_t)type)->name, r, err.text);
    return r;
}

void submit(struct service *s, const char *spec, char ret_id[33])
{
    const char *id;
    struct spec_error err;
    struct json j;
    int r;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "spec", spec);
    json_string(&j, "file", "job.yaml");
    json_end(&j, '}');
    r = rpc_call(s->client, MESSAGE_SUBMIT, &j, CALL_MS, &s->reply, &s->refusal, &err);
    json_free(&j);
    cr_assert(eq(int, r, 0), "%s", r == -EPROTO ? s->refusal.text : err.text);
    cr_assert(eq(int, doc_string(&s->reply, s->reply.root, "job", 32, &id, &err), 0));
    snprintf(ret_id, 33, "%s", id);
}

static const struct doc *status(struct service *s, const char *job)
{
    cr_assert(eq(int, call(s, MESSAGE_STATUS, "{\"job\":\"%s\"}", job), 0), "%s", s->refusal.text);
    return s->reply.root;
}

const char *status_text(struct service *s, const char *job, const char *key)
{
    const struct doc *value = doc_get(status(s, job), key);

    return value && value->text ? value->text : "";
}

int64_t status_number(struct service *s, const char *job, const char *key, const char *below)
{
    const struct doc *value = doc_get(status(s, job), key);

    if (value && below)
        value = doc_get(value, below);
    return value ? (int64_t)value->number : -1;
}

int64_t parallelism(struct service *s, const char *job, const char *vertex)
{
    const struct doc *value = doc_get(doc_get(status(s, job), "vertices"), vertex);

    return (int64_t)doc_get(value, "parallelism")->number;
}

bool state_is(struct service *s, const char *job, const char *state)
{
    return strcmp(status_text(s, job, "state"), state) == 0;
}

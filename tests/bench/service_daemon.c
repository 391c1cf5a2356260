/* service_daemon.c - see service_daemon.h */
#define _GNU_SOURCE /* nftw, mkdtemp */
#include "service_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define START_MS 60000
#define CALL_MS 60000
#define QUEUE 1000

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: pliantd: %s\n", what);
    exit(1);
}

/* ---- its process ---------------------------------------------------------------------------- */

static void run(const struct bench_daemon *d)
{
    char log[96];
    int out;

    snprintf(log, sizeof log, "%s/log", d->dir);
    out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDERR_FILENO);
    execl(PLIANT_PROGRAMS "/pliantd", "pliantd", "--state-dir", d->state_dir, "--agents",
          "tcp://127.0.0.1:*", "--clients", "tcp://127.0.0.1:*", "--events", "tcp://127.0.0.1:*",
          (char *)NULL);
    _exit(127);
}

static void copy(char ret[256], const struct doc_file *f, const char *key)
{
    const char *text = "";
    struct spec_error err;

    must(doc_string(f, f->root, key, 255, &text, &err) == 0, "endpoints.json");
    snprintf(ret, 256, "%s", text);
}

/* Has the one that runs now said where it listens? */
static bool read_endpoints(struct bench_daemon *d)
{
    struct doc_file f;
    struct spec_error err;
    char path[128];
    int64_t pid = 0;

    snprintf(path, sizeof path, "%s/endpoints.json", d->state_dir);
    if (doc_read(path, 65536, &f, &err) < 0)
        return false;
    doc_int(&f, f.root, "pid", 1, INT32_MAX, &pid, &err);
    if (pid == d->pid) {
        copy(d->agents, &f, "agents");
        copy(d->clients, &f, "clients");
    }
    doc_free(&f);
    return pid == d->pid;
}

void bench_daemon_start(struct bench_daemon *d)
{
    struct rpc_link_config cfg = {.queue = QUEUE};
    struct spec_error err;
    uint64_t until_ns = bench_now_ns() + START_MS * UINT64_C(1000000);

    fflush(stdout);
    d->pid = fork();
    must(d->pid >= 0, "fork");
    if (d->pid == 0)
        run(d);
    while (!read_endpoints(d)) {
        must(bench_now_ns() < until_ns && waitpid(d->pid, NULL, WNOHANG) == 0, "does not start");
        poll(NULL, 0, 2);
    }
    cfg.endpoint = d->clients;
    must(rpc_link_open(&cfg, &d->client, &err) == 0, err.text);
    bench_count(d, "turns"); /* it answers */
}

void bench_daemon_open(struct bench_daemon *d)
{
    *d = (struct bench_daemon){.dir = "/tmp/pliant-bench-XXXXXX"};
    rpc_prepare_process();
    must(mkdtemp(d->dir) != NULL, d->dir);
    snprintf(d->state_dir, sizeof d->state_dir, "%s/state", d->dir);
    bench_daemon_start(d);
}

void bench_daemon_kill(struct bench_daemon *d)
{
    rpc_link_close(&d->client);
    kill(d->pid, SIGKILL);
    waitpid(d->pid, NULL, 0);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void bench_daemon_close(struct bench_daemon *d)
{
    bench_daemon_kill(d);
    doc_free(&d->reply);
    nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- requests ------------------------------------------------------------------------------- */

void bench_call(struct bench_daemon *d, enum message_type type, const char *body)
{
    const struct json j = {.v = (char *)body, .n = strlen(body)};
    struct rpc_refusal refusal = {.text = ""};
    struct spec_error err = {.text = ""};
    int r = rpc_call(d->client, type, &j, CALL_MS, &d->reply, &refusal, &err);

    must(r == 0, *refusal.text ? refusal.text : err.text);
}

int64_t bench_count(struct bench_daemon *d, const char *name)
{
    const struct doc *counts, *count;

    bench_call(d, MESSAGE_PING, "{}");
    counts = doc_get(d->reply.root, "counts");
    count = counts ? doc_get(counts, name) : NULL;
    must(count && count->kind == DOC_NUMBER, "PING has no such count");
    return (int64_t)count->number;
}

void bench_submit(struct bench_daemon *d, const char *spec, char ret[33])
{
    char *body;
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "spec", spec);
    json_end(&j, '}');
    body = strndup(j.v, j.n);
    must(body != NULL, "memory");
    bench_call(d, MESSAGE_SUBMIT, body);
    free(body);
    json_free(&j);
    snprintf(ret, 33, "%s", doc_get(d->reply.root, "job")->text);
}

uint32_t bench_running(struct bench_daemon *d, const char *job)
{
    const struct doc *tasks;
    char body[64];
    uint32_t n = 0;

    snprintf(body, sizeof body, "{\"job\":\"%s\"}", job);
    bench_call(d, MESSAGE_TASKS_OF, body);
    tasks = doc_get(d->reply.root, "tasks");
    for (const struct doc *t = tasks ? tasks->child : NULL; t; t = t->next)
        n += strcmp(doc_get(t, "state")->text, "RUNNING") == 0;
    return n;
}

/* ---- what it uses --------------------------------------------------------------------------- */

double bench_cpu_seconds(pid_t pid)
{
    struct timespec t = {0};
    clockid_t clock;

    must(clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0, "its clock");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double bench_memory_mib(pid_t pid, const char *what)
{
    char path[64], line[256];
    double kib = 0;
    FILE *in;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    in = fopen(path, "r");
    must(in != NULL, path);
    while (fgets(line, sizeof line, in))
        if (strncmp(line, what, strlen(what)) == 0)
            kib = atof(line + strlen(what) + 1);
    fclose(in);
    return kib / 1024;
}

/* probe.c - who says that the node will be taken away; see agent.h
 *
 *     CMD     by sh each interval. A JSON object on its standard output decides if it has
 *             "preempt" (true or false), with "deadline_unix_ms" if it is known; else the exit
 *             code: 0 no notice, 1 notice. Anything else (126, 127, a signal, too late) is a
 *             probe that does not work: logged, and no notice
 *     aws     /latest/meta-data/spot/instance-action, with a session token (IMDSv2)
 *     gcp     /computeMetadata/v1/instance/preempted
 *     azure   /metadata/scheduledevents: Preempt of this machine
 *
 * The services are asked at $PLIANT_METADATA_URL, else at their well-known address. A notice that
 * is gone again is withdrawn.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/http.h"
#include "rpc/log.h"
#include "util/ascii.h"

#define WELL_KNOWN "http://169.254.169.254"
#define OUTPUT_MAX 65536u
#define COMMAND_MAX_MS 10000 /* a command that runs longer is ended */
#define GCP_NOTICE_MS 30000  /* from the notice to the end */
#define TOKEN_LIFE "21600"   /* seconds */

struct probe {
    int64_t ask_at_ms;
    bool noticed;    /* the last word was a notice of ours */
    bool complained; /* that it does not work: once in a row */
    int64_t deadline_unix_ms;
    /* a command */
    struct source output;
    pid_t pid; /* 0: none runs */
    int64_t kill_at_ms;
    struct VEC(char) text;
    /* a service */
    struct http http;
    struct http_base base;
    char token[1024]; /* aws */
    char name[256];   /* azure: of this machine */
};

/* ---- verdicts
 * ------------------------------------------------------------------------------------------ */

static void again_later(struct agent *a)
{
    a->probe->ask_at_ms = instant_after(a->now_ms, a->opts->probe_interval_ms);
}

static void no_notice(struct agent *a)
{
    struct probe *p = a->probe;

    p->complained = false;
    if (p->noticed)
        drain_withdraw(a);
    p->noticed = false;
    p->deadline_unix_ms = 0;
    again_later(a);
}

static void notice(struct agent *a, int64_t deadline_unix_ms)
{
    struct probe *p = a->probe;

    p->complained = false;
    p->noticed = true;
    p->deadline_unix_ms = deadline_unix_ms;
    drain_begin(a, deadline_unix_ms, "the probe says that the node will be taken away");
    again_later(a);
}

static void broken(struct agent *a, const char *why)
{
    if (!a->probe->complained)
        say(SAY_WARN, "msg=\"the preemption probe does not work\" why=%s", log_quoted(why).v);
    a->probe->complained = true;
    again_later(a);
}

/* ---- a command
 * ------------------------------------------------------------------------------------------ */

/* Has the output decided? */
static bool verdict_of_output(struct agent *a)
{
    struct probe *p = a->probe;
    struct doc_file f = {.name = "probe"};
    struct spec_error err;
    int64_t deadline_unix_ms = 0;
    bool preempt, decided;

    decided = p->text.n > 0 && doc_line(&f, p->text.v, p->text.n, 1, &err) == 0 &&
              f.root->kind == DOC_MAP && doc_bool(&f, f.root, "preempt", &preempt, &err) == 0 &&
              doc_optional(doc_int(&f, f.root, "deadline_unix_ms", 0, DOC_INTEGER_MAX,
                                   &deadline_unix_ms, &err)) == 0;
    doc_free(&f);
    if (decided && preempt)
        notice(a, deadline_unix_ms);
    else if (decided)
        no_notice(a);
    return decided;
}

static void read_output(struct agent *a)
{
    struct probe *p = a->probe;
    ssize_t n = 1;

    while (p->output.fd >= 0 && n > 0) {
        must(vec_room(NULL, &p->text, 4096) ? p : NULL);
        n = read(p->output.fd, p->text.v + p->text.n, 4096);
        if (n > 0 && p->text.n + (size_t)n <= OUTPUT_MAX)
            p->text.n += (size_t)n; /* what is longer is not ours to read */
        if (n == 0)
            source_close(a, &p->output);
    }
}

static void output_ready(struct agent *a, void *self, uint32_t events)
{
    (void)self;
    (void)events;
    read_output(a);
}

void probe_ended(struct agent *a, pid_t pid, int status)
{
    struct probe *p = a->probe;

    if (!p || pid != p->pid)
        return;
    kill(-pid, SIGKILL); /* what it has left behind */
    read_output(a);
    source_close(a, &p->output);
    p->pid = 0;
    p->kill_at_ms = PLIANT_NEVER;
    if (verdict_of_output(a))
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        no_notice(a);
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
        notice(a, 0);
    else
        broken(a, WIFEXITED(status) ? "its exit code is neither 0 nor 1" : "it was killed");
}

static int spawn_shell(const char *command, int out, pid_t *ret_pid)
{
    extern char **environ;
    const char *argv[] = {"sh", "-c", command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int r;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    r = posix_spawn(ret_pid, "/bin/sh", &files, &attr, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return -r;
}

static void run_command(struct agent *a)
{
    struct probe *p = a->probe;
    int ends[2], r;

    p->text.n = 0;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        broken(a, strerror(errno));
        return;
    }
    r = spawn_shell(a->opts->probe_command, ends[1], &p->pid);
    close(ends[1]);
    if (r < 0) {
        p->pid = 0;
        close(ends[0]);
        broken(a, strerror(-r));
        return;
    }
    source_open(a, &p->output, ends[0], EPOLLIN, output_ready, NULL);
    p->kill_at_ms = a->now_ms + COMMAND_MAX_MS;
}

/* ---- aws
 * ----------------------------------------------------------------------------------------------------
 */

/* "2017-09-18T08:22:00Z" or "Mon, 19 Sep 2016 18:29:47 GMT"; 0: neither. */
static int64_t read_time(const char *text)
{
    struct tm t = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);

    if (!end)
        end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &t);
    return end ? (int64_t)timegm(&t) * 1000 : 0;
}

static void aws_action(struct agent *a, int status, const char *body)
{
    struct doc_file f = {.name = "instance-action"};
    struct spec_error err;
    const char *time = "";

    if (status == 404) {
        no_notice(a);
        return;
    }
    if (status != 200) {
        *a->probe->token = '\0'; /* it may have run out */
        broken(a, "the metadata service does not answer");
        return;
    }
    if (doc_line(&f, body, strlen(body), 1, &err) == 0 && f.root->kind == DOC_MAP)
        doc_string(&f, f.root, "time", 64, &time, &err);
    notice(a, read_time(time));
    doc_free(&f);
}

static void aws_ask(struct agent *a)
{
    struct probe *p = a->probe;
    char *header = must_format("X-aws-ec2-metadata-token: %s\r\n", p->token);

    http_begin(a, &p->http, &p->base, "GET", "/latest/meta-data/spot/instance-action", header,
               aws_action);
    free(header);
}

static void aws_token(struct agent *a, int status, const char *body)
{
    struct probe *p = a->probe;
    size_t n = strcspn(body, "\r\n");

    if (status != 200 || n == 0 || n >= sizeof p->token) {
        broken(a, "the metadata service gives no token");
        return;
    }
    memcpy(p->token, body, n);
    p->token[n] = '\0';
    aws_ask(a);
}

static void ask_aws(struct agent *a)
{
    struct probe *p = a->probe;

    if (*p->token)
        aws_ask(a);
    else
        http_begin(a, &p->http, &p->base, "PUT", "/latest/api/token",
                   "X-aws-ec2-metadata-token-ttl-seconds: " TOKEN_LIFE "\r\nContent-Length: 0\r\n",
                   aws_token);
}

/* ---- gcp
 * -----------------------------------------------------------------------------------------------------
 */

static void gcp_preempted(struct agent *a, int status, const char *body)
{
    struct probe *p = a->probe;

    if (status != 200)
        broken(a, "the metadata service does not answer");
    else if (strncmp(body, "TRUE", 4) == 0)
        notice(a, p->noticed ? p->deadline_unix_ms : unix_ms() + GCP_NOTICE_MS);
    else
        no_notice(a);
}

static void ask_gcp(struct agent *a)
{
    http_begin(a, &a->probe->http, &a->probe->base, "GET", "/computeMetadata/v1/instance/preempted",
               "Metadata-Flavor: Google\r\n", gcp_preempted);
}

/* ---- azure
 * ---------------------------------------------------------------------------------------------------
 */

static bool has_string(const struct doc *list, const char *text)
{
    for (const struct doc *d = list ? list->child : NULL; d; d = d->next)
        if (d->kind == DOC_STRING && ascii_equal(d->text, text))
            return true;
    return false;
}

/* The event that takes this machine away, or NULL. The list is that of all machines of a set. */
static const struct doc *find_preempt(const struct doc *root, const char *name)
{
    const struct doc *events = root->kind == DOC_MAP ? doc_get(root, "Events") : NULL;

    for (const struct doc *d = events ? events->child : NULL; d; d = d->next) {
        const struct doc *type = d->kind == DOC_MAP ? doc_get(d, "EventType") : NULL;

        if (type && type->kind == DOC_STRING && strcmp(type->text, "Preempt") == 0 &&
            has_string(doc_get(d, "Resources"), name))
            return d;
    }
    return NULL;
}

static void azure_events(struct agent *a, int status, const char *body)
{
    struct doc_file f = {.name = "scheduledevents"};
    struct spec_error err;
    const struct doc *event;
    const char *before = "";

    if (status != 200 || doc_line(&f, body, strlen(body), 1, &err) < 0) {
        broken(a, "the metadata service does not answer");
    } else if (!(event = find_preempt(f.root, a->probe->name))) {
        no_notice(a);
    } else {
        doc_string(&f, event, "NotBefore", 64, &before, &err);
        notice(a, read_time(before));
    }
    doc_free(&f);
}

static void azure_ask(struct agent *a)
{
    http_begin(a, &a->probe->http, &a->probe->base, "GET",
               "/metadata/scheduledevents?api-version=2020-07-01", "Metadata: true\r\n",
               azure_events);
}

static void azure_name(struct agent *a, int status, const char *body)
{
    struct probe *p = a->probe;

    if (status != 200 || !*body || strlen(body) >= sizeof p->name) {
        broken(a, "the metadata service does not say who we are");
        return;
    }
    snprintf(p->name, sizeof p->name, "%s", body);
    azure_ask(a);
}

static void ask_azure(struct agent *a)
{
    if (*a->probe->name)
        azure_ask(a);
    else
        http_begin(a, &a->probe->http, &a->probe->base, "GET",
                   "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
                   "Metadata: true\r\n", azure_name);
}

/* ---- when
 * -------------------------------------------------------------------------------------------------------
 */

static void ask(struct agent *a)
{
    a->probe->ask_at_ms = PLIANT_NEVER; /* until the answer is there */
    switch (a->opts->probe) {
    case PROBE_NONE:
        return;
    case PROBE_COMMAND:
        run_command(a);
        return;
    case PROBE_AWS:
        ask_aws(a);
        return;
    case PROBE_GCP:
        ask_gcp(a);
        return;
    case PROBE_AZURE:
        ask_azure(a);
        return;
    }
}

int probe_start(struct agent *a)
{
    const char *url = getenv("PLIANT_METADATA_URL");
    struct probe *p;

    if (a->opts->probe == PROBE_NONE)
        return 0;
    p = a->probe = must(calloc(1, sizeof *p));
    p->output.fd = p->http.source.fd = -1;
    p->kill_at_ms = p->http.give_up_at_ms = PLIANT_NEVER;
    p->ask_at_ms = a->now_ms;
    if (http_base_read(url && *url ? url : WELL_KNOWN, &p->base))
        return 0;
    say(SAY_ERROR, "msg=\"PLIANT_METADATA_URL: not http://ADDRESS[:PORT]\" value=%s",
        log_quoted(url).v);
    return -EINVAL;
}

void probe_expire(struct agent *a)
{
    struct probe *p = a->probe;

    if (!p)
        return;
    if (a->now_ms >= p->kill_at_ms && p->pid > 0) {
        kill(-p->pid, SIGKILL); /* its end will be seen */
        p->kill_at_ms = PLIANT_NEVER;
    }
    http_expire(a, &p->http);
    if (a->now_ms >= p->ask_at_ms)
        ask(a);
}

int64_t probe_next_deadline(const struct agent *a)
{
    const struct probe *p = a->probe;

    if (!p)
        return PLIANT_NEVER;
    return sooner(sooner(p->ask_at_ms, p->kill_at_ms), p->http.give_up_at_ms);
}

bool probe_owns(const struct agent *a, pid_t pid)
{
    return a->probe && a->probe->pid == pid;
}

void probe_stop(struct agent *a)
{
    struct probe *p = a->probe;

    if (!p)
        return;
    if (p->pid > 0)
        kill(-p->pid, SIGKILL);
    source_close(a, &p->output);
    http_cancel(a, &p->http);
    vec_free(NULL, &p->text);
    free(p);
    a->probe = NULL;
}

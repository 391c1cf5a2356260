/* loop.c - descriptors, deadlines, turns; see agent.h */
#include "agent/agent.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS_A_TURN 64
#define BAD_INPUT 2 /* exit codes */
#define NO_MEMORY 4

/* ---- memory -----------------------------------------------------------------------------------
 */

void *must(void *memory)
{
    if (memory)
        return memory;
    say(SAY_ERROR, "msg=\"no memory\"");
    _exit(NO_MEMORY); /* the keeper takes the tasks along */
}

char *must_copy_bytes(const char *text, size_t n)
{
    char *copy = must(malloc(n + 1));

    memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

char *must_copy(const char *text)
{
    return text ? must_copy_bytes(text, strlen(text)) : NULL;
}

char *must_format(const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    return must(text);
}

/* ---- descriptors --------------------------------------------------------------------------------
 */

static void control(struct agent *a, int op, struct source *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};

    if (epoll_ctl(a->epoll, op, s->fd, &e) != 0 && op == EPOLL_CTL_ADD)
        must(NULL);
}

void source_open(struct agent *a, struct source *s, int fd, uint32_t events,
                 void (*ready)(struct agent *a, void *self, uint32_t events), void *self)
{
    *s = (struct source){.fd = fd, .ready = ready, .self = self};
    control(a, EPOLL_CTL_ADD, s, events);
}

void source_want(struct agent *a, struct source *s, uint32_t events)
{
    control(a, EPOLL_CTL_MOD, s, events);
}

void source_leave(struct agent *a, struct source *s)
{
    if (s->fd >= 0)
        control(a, EPOLL_CTL_DEL, s, 0);
    s->fd = -1;
}

void source_close(struct agent *a, struct source *s)
{
    int fd = s->fd;

    source_leave(a, s);
    if (fd >= 0)
        close(fd);
}

/* ---- signals
 * -------------------------------------------------------------------------------------- */

void agent_reap(struct agent *a)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        probe_ended(a, pid, status); /* the keeper's end shows at its socket */
}

static void signals_ready(struct agent *a, void *self, uint32_t events)
{
    struct signalfd_siginfo news;

    (void)self;
    (void)events;
    while (read(a->signals.fd, &news, sizeof news) == (ssize_t)sizeof news)
        if (news.ssi_signo == SIGCHLD)
            agent_reap(a);
        else
            drain_signal(a, (int)news.ssi_signo);
}

static void take_signals(struct agent *a)
{
    int fd = rpc_signals_open(&a->opts->forwarded);

    if (fd < 0)
        must(NULL);
    source_open(a, &a->signals, fd, EPOLLIN, signals_ready, NULL);
}

/* ---- turns
 * ------------------------------------------------------------------------------------------ */

void agent_end(struct agent *a, int exit_code)
{
    if (a->exit_code < 0)
        a->exit_code = exit_code;
}

static int64_t next_deadline(const struct agent *a)
{
    int64_t at_ms = sooner(session_next_deadline(a), drain_next_deadline(a));

    at_ms = sooner(at_ms, probe_next_deadline(a));
    return sooner(sooner(at_ms, a->look_at_ms), a->health_at_ms);
}

static void turn(struct agent *a)
{
    struct epoll_event events[EVENTS_A_TURN];
    int64_t due_at_ms = next_deadline(a);
    int timeout_ms = a->again ? 0 : poll_timeout(due_at_ms, a->now_ms);
    int n = epoll_wait(a->epoll, events, EVENTS_A_TURN, timeout_ms);

    a->again = false;
    a->now_ms = monotonic_ms();
    if (due_at_ms != PLIANT_NEVER && a->now_ms - due_at_ms > FROZEN_MS)
        session_postpone(a, a->now_ms - due_at_ms);
    for (int i = 0; i < n; i++) {
        struct source *s = events[i].data.ptr;

        if (s->fd >= 0) /* else closed earlier in this turn */
            s->ready(a, s->self, events[i].events);
    }
    session_receive(a);
    session_expire(a);
    probe_expire(a);
    drain_expire(a);
    if (a->now_ms >= a->look_at_ms)
        tasks_look(a);
    if (a->now_ms >= a->health_at_ms)
        worker_check_health(a);
    tasks_tell(a);
    session_receive(a); /* a send may have swallowed the edge */
    worker_free_closed(a);
}

static int start(struct agent *a)
{
    struct spec_error err = {0};
    int r = place_open(a, &err);

    if (r == 0)
        r = keep_adopt(a);
    if (r > 0) {
        place_adopt_cgroup(a);
    } else if (r == 0) {
        r = place_clean(a, &err);
        r = r < 0 ? r : place_incarnation(a, &err);
        r = r < 0 ? r : place_cgroup(a, &err);
        r = r < 0 ? r : keep_start(a); /* while there is no thread */
    }
    if (r < 0) {
        say(SAY_ERROR, "msg=\"%s\"", *err.text ? err.text : strerror(-r));
        return r == -ENOMEM || r == -ENOSPC ? NO_MEMORY : BAD_INPUT;
    }
    take_signals(a);
    keep_watch(a);
    if (a->opts->key_file &&
        rpc_identity_read(a->opts->key_file, a->opts->server_key, &a->session.identity, &err) < 0) {
        say(SAY_ERROR, "msg=\"%s\"", err.text);
        return BAD_INPUT;
    }
    r = probe_start(a);
    return r == -EINVAL ? BAD_INPUT : 0;
}

static void stop(struct agent *a)
{
    probe_stop(a);
    keep_stop(a);
    exchange_close(a);
    tasks_free(a);
    worker_free_closed(a);
    ports_free(a);
    session_stop(a);
    rpc_identity_free(&a->session.identity);
    source_close(a, &a->signals);
    json_free(&a->body);
    doc_free(&a->in);
    close(a->epoll);
    if (a->lock >= 0)
        close(a->lock);
    free(a->cgroup);
}

/* Little memory, many descriptors. */
static void prepare(void)
{
    struct rlimit files;

    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, 64 * 1024);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* the keeper's heir */
}

int agent_run(const struct agent_options *opts)
{
    struct agent a = {.opts = opts,
                      .lock = -1,
                      .exit_code = -1,
                      .signals.fd = -1,
                      .keeper.fd = -1,
                      .session.source.fd = -1,
                      .errands_done.fd = -1,
                      .look_at_ms = PLIANT_NEVER,
                      .health_at_ms = PLIANT_NEVER,
                      .now_ms = monotonic_ms()};
    int code;

    prepare();
    json_init(&a.body, NULL);
    a.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (a.epoll < 0)
        return NO_MEMORY;
    code = start(&a);
    if (code == 0) {
        session_start(&a);
        while (a.exit_code < 0)
            turn(&a);
        code = a.exit_code;
    }
    stop(&a);
    return code;
}

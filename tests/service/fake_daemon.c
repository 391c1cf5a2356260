/* fake_daemon.c - see fake_daemon.h */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "service/fake_daemon.h"

#define ARGS_MAX 40

extern char **environ;

/* ---- time
 * ---------------------------------------------------------------------------------------- */

int64_t fake_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void fake_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* ---- files
 * ---------------------------------------------------------------------------------------- */

char *fake_read_file(const char *path)
{
    FILE *in = fopen(path, "r");
    char *text = calloc(1, 65536);

    cr_assert(text);
    if (in) {
        text[fread(text, 1, 65535, in)] = '\0';
        fclose(in);
    }
    return text;
}

void fake_until_file(const char *path)
{
    int64_t until_ms = fake_now_ms() + FAKE_WAIT_MS;

    while (access(path, F_OK) != 0 && fake_now_ms() < until_ms)
        fake_pause();
    cr_assert(access(path, F_OK) == 0, "%s did not appear", path);
}

static pid_t pid_in(const char *path)
{
    char *text = fake_read_file(path);
    pid_t pid = (pid_t)strtol(text, NULL, 10);

    free(text);
    cr_assert_gt(pid, 1, "%s", path);
    return pid;
}

void fake_until_ready(struct fake *f, int id)
{
    char path[160];

    snprintf(path, sizeof path, "%s/tasks/%d/work/ready", f->work, id);
    fake_until_file(path);
}

int64_t fake_daemon_of(struct fake *f, int id)
{
    char path[160];

    snprintf(path, sizeof path, "%s/tasks/%d/work/daemon", f->work, id);
    fake_until_file(path);
    return pid_in(path);
}

pid_t fake_keeper(const struct fake *f)
{
    char path[128];

    snprintf(path, sizeof path, "%s/keeper.lock", f->work);
    return pid_in(path);
}

static void run(const char *const *argv)
{
    pid_t pid;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0)
        waitpid(pid, NULL, 0);
}

/* ---- processes
 * -------------------------------------------------------------------------------------- */

bool fake_lives(int64_t pid)
{
    char path[64], *stat, state = 'Z';
    const char *at;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    stat = fake_read_file(path);
    at = strrchr(stat, ')');
    if (at)
        sscanf(at, ") %c", &state);
    free(stat);
    return state != 'Z' && state != 'X';
}

void fake_until_gone(int64_t pid)
{
    int64_t until_ms = fake_now_ms() + FAKE_WAIT_MS;

    while (fake_lives(pid) && fake_now_ms() < until_ms)
        fake_pause();
    cr_assert(!fake_lives(pid), "process %lld lives on", (long long)pid);
}

/* All that carries the mark of our work directory, and keepers that have it locked. */
static void kill_leftovers(const struct fake *f)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc && (entry = readdir(proc))) {
        char path[300], *text;
        long pid = strtol(entry->d_name, NULL, 10);

        if (pid <= 1 || pid == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        text = fake_read_file(path);
        for (size_t i = 0; i + 1 < 4096; i++)
            if (text[i] == '\0')
                text[i] = ' ';
        if (strstr(text, f->dir))
            kill((pid_t)pid, SIGKILL);
        free(text);
    }
    if (proc)
        closedir(proc);
}

void fake_agent(struct fake *f, ...)
{
    const char *argv[ARGS_MAX] = {PLIANT_PROGRAMS "/pliant-agent",
                                  "--node",
                                  f->node,
                                  "--work-dir",
                                  f->work,
                                  "--connect",
                                  f->endpoint};
    posix_spawn_file_actions_t files;
    char log[128];
    int n = 7;
    va_list args;

    va_start(args, f);
    while (n < ARGS_MAX - 1 && (argv[n] = va_arg(args, const char *)))
        n++;
    va_end(args);
    snprintf(log, sizeof log, "%s/log", f->dir);
    posix_spawn_file_actions_init(&files);
    if (!getenv("PLIANT_TEST_LOG")) /* set it to see what the agent says */
        posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    cr_assert(posix_spawn(&f->agent, argv[0], &files, NULL, (char *const *)argv, environ) == 0,
              "cannot run %s", argv[0]);
    posix_spawn_file_actions_destroy(&files);
}

void fake_signal(struct fake *f, int signal)
{
    cr_assert(kill(f->agent, signal) == 0);
}

bool fake_has_ended(struct fake *f)
{
    siginfo_t info = {0};

    waitid(P_PID, (id_t)f->agent, &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != 0;
}

int fake_wait(struct fake *f)
{
    int64_t until_ms = fake_now_ms() + FAKE_WAIT_MS;
    int status;

    while (!fake_has_ended(f) && fake_now_ms() < until_ms)
        fake_pause();
    cr_assert(fake_has_ended(f), "the agent does not end");
    waitpid(f->agent, &status, 0);
    f->agent = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- the daemon's end
 * ------------------------------------------------------------------------------- */

void fake_bind(struct fake *f)
{
    int64_t until_ms = fake_now_ms() + FAKE_WAIT_MS;
    struct spec_error err;
    int r;

    f->sent = f->heard = 0;
    f->stranger = f->epoch++ > 0;
    while ((r = rpc_server_open(RPC_AGENTS, f->endpoint, NULL, false, 1000, &f->server, &err)) ==
               -EADDRINUSE &&
           fake_now_ms() < until_ms)
        poll(NULL, 0, 10); /* libzmq's thread still closes the one before */
    cr_assert(r == 0, "%s", err.text);
}

void fake_unbind(struct fake *f)
{
    rpc_server_close(&f->server);
}

static struct fake *open_one; /* for a test that fails on its way */

static void close_at_exit(void)
{
    if (open_one)
        fake_close(open_one);
}

void fake_open(struct fake *f)
{
    *f = (struct fake){.node = "n1",
                       .heartbeat_interval_ms = 200,
                       .heartbeat_timeout_ms = FAKE_WAIT_MS,
                       .orphan_timeout_ms = 60000};
    rpc_prepare_process();
    strcpy(f->dir, "/tmp/pliant-agent-XXXXXX");
    cr_assert(mkdtemp(f->dir));
    snprintf(f->work, sizeof f->work, "%s/w", f->dir);
    snprintf(f->endpoint, sizeof f->endpoint, "ipc://%s/agents", f->dir);
    fake_bind(f);
    open_one = f;
    atexit(close_at_exit);
}

void fake_close(struct fake *f)
{
    const char *const remove[] = {"rm", "-rf", f->dir, NULL};

    open_one = NULL;
    if (f->agent > 0)
        kill(f->agent, SIGKILL);
    if (f->agent > 0)
        waitpid(f->agent, NULL, 0);
    kill_leftovers(f);
    if (f->server)
        fake_unbind(f);
    doc_free(&f->in);
    run(remove);
}

static void send_text(struct fake *f, enum message_type type, const char *text)
{
    struct message_header h = {.type = (uint16_t)type, .epoch = f->epoch, .sequence = ++f->sent};
    struct json j;

    json_init(&j, NULL);
    json_raw(&j, NULL, text, strlen(text));
    rpc_send(f->server, &f->peer, &h, &j); /* it may be gone: what is waited for will tell */
    json_free(&j);
}

void fake_send(struct fake *f, enum message_type type, const char *format, ...)
{
    char text[16384];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    send_text(f, type, text);
}

/* The next message but signs of life; NULL: none before `until_ms`. */
static const struct doc *next_message(struct fake *f, enum message_type wanted, int64_t until_ms,
                                      enum message_type *ret_type)
{
    struct rpc_message m;
    struct spec_error err;

    while (fake_now_ms() < until_ms) {
        if (rpc_receive(f->server, &m) != 1) {
            fake_pause();
            continue;
        }
        if (m.fault != MESSAGE_GOOD)
            continue;
        f->peer = m.from;
        if (m.header.type == MESSAGE_HELLO)
            f->stranger = false;
        if (f->stranger) {
            send_text(f, MESSAGE_ERROR,
                      "{\"code\":\"not-registered\",\"text\":\"say HELLO\",\"of\":3}");
            continue;
        }
        f->heard = m.header.type == MESSAGE_HELLO ? 1 : f->heard + 1;
        cr_assert(m.header.sequence == f->heard || m.header.type == MESSAGE_GOODBYE,
                  "sequence %llu, expected %llu", (unsigned long long)m.header.sequence,
                  (unsigned long long)f->heard);
        cr_assert(message_body(&f->in, &m.header, m.body, m.size, &err) == 0, "%s", err.text);
        *ret_type = (enum message_type)m.header.type;
        if (m.header.type == MESSAGE_HEARTBEAT)
            send_text(f, MESSAGE_HEARTBEAT, "{}");
        if (m.header.type != MESSAGE_HEARTBEAT || wanted == MESSAGE_HEARTBEAT)
            return f->in.root;
    }
    return NULL;
}

const struct doc *fake_next(struct fake *f, enum message_type type)
{
    int64_t until_ms = fake_now_ms() + FAKE_WAIT_MS;
    enum message_type got = MESSAGE_ERROR;
    const struct doc *d;

    while ((d = next_message(f, type, until_ms, &got)) && got != type)
        continue;
    cr_assert(d, "no %s", message_kind((uint16_t)type)->name);
    return d;
}

const struct doc *fake_hello(struct fake *f)
{
    const struct doc *d = fake_next(f, MESSAGE_HELLO);

    f->sent = 0;
    fake_send(f, MESSAGE_WELCOME,
              "{\"protocol\":1,\"heartbeat_interval_ms\":%lld,\"heartbeat_timeout_ms\":%lld,"
              "\"orphan_timeout_ms\":%lld}",
              (long long)f->heartbeat_interval_ms, (long long)f->heartbeat_timeout_ms,
              (long long)f->orphan_timeout_ms);
    return d;
}

/* ---- documents
 * ----------------------------------------------------------------------------------------- */

static const struct doc *find(const struct doc *d, const char *path)
{
    char key[64];

    while (d && *path) {
        size_t n = strcspn(path, ".");

        snprintf(key, sizeof key, "%.*s", (int)n, path);
        d = d->kind == DOC_MAP ? doc_get(d, key) : NULL;
        path += n + (path[n] == '.');
    }
    return d;
}

const char *fake_text(const struct doc *d, const char *path)
{
    const struct doc *found = find(d, path);

    return found && found->kind == DOC_STRING ? found->text : "";
}

int64_t fake_int(const struct doc *d, const char *path)
{
    const struct doc *found = find(d, path);

    return found && found->kind == DOC_NUMBER ? (int64_t)found->number : -1;
}

bool fake_bool(const struct doc *d, const char *path)
{
    const struct doc *found = find(d, path);

    return found && found->kind == DOC_BOOL && found->truth;
}

/* ---- tasks
 * ------------------------------------------------------------------------------------------------
 */

const struct doc *fake_state(struct fake *f, int subtask, int attempt, const char *state)
{
    for (;;) {
        const struct doc *list = find(fake_next(f, MESSAGE_TASKS), "tasks");

        for (const struct doc *d = list ? list->child : NULL; d; d = d->next)
            if (fake_int(d, "subtask") == subtask && fake_int(d, "attempt") == attempt &&
                strcmp(fake_text(d, "state"), state) == 0)
                return d;
    }
}

void fake_deploy(struct fake *f, int subtask, int attempt, const char *script, const char *more)
{
    struct json j;

    json_init(&j, NULL);
    json_string(&j, NULL, script);
    fake_send(f, MESSAGE_DEPLOY,
              "{\"tasks\":[{" FAKE_TASK ",\"slot\":%d,\"name\":\"job\",\"command\":[\"sh\",\"-c\","
              "%.*s],\"env\":{\"GIVEN\":\"yes\"},\"stop_timeout_ms\":30000%s}]}",
              subtask, attempt, subtask, (int)j.n, j.v, more);
    json_free(&j);
}

void fake_stop(struct fake *f, int subtask, int attempt, int timeout_ms)
{
    fake_send(f, MESSAGE_STOP, "{\"tasks\":[{" FAKE_TASK ",\"stop_timeout_ms\":%d}]}", subtask,
              attempt, timeout_ms);
}

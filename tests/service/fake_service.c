/* fake_service.c - see fake_service.h */
#define _GNU_SOURCE
#include "fake_service.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BOUND_MS 60000 /* a test that takes longer has failed */
#define TURN_MS 5
#define QUEUE 1000

extern char **environ;

int64_t fake_service_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- open and close -------------------------------------------------------------------------- */

void fake_listen(struct fake *f)
{
    struct spec_error err;

    f->epoch++;
    f->sequence = 0;
    cr_assert(rpc_server_open(RPC_CLIENTS, f->clients, NULL, false, QUEUE, &f->client_end, &err) ==
                  0,
              "%s", err.text);
    cr_assert(rpc_server_open(RPC_EVENTS, f->events, NULL, false, QUEUE, &f->event_end, &err) == 0,
              "%s", err.text);
}

void fake_deafen(struct fake *f)
{
    rpc_server_close(&f->client_end);
    rpc_server_close(&f->event_end);
}

void fake_service_open(struct fake *f, const struct fake_answer *answers)
{
    *f = (struct fake){.answers = answers, .dir = "/tmp/pliant-ctl-XXXXXX", .epoch = 6};
    f->out.fd = f->err.fd = -1;
    rpc_prepare_process();
    cr_assert(mkdtemp(f->dir) != NULL);
    snprintf(f->clients, sizeof f->clients, "ipc://%s/clients", f->dir);
    snprintf(f->events, sizeof f->events, "ipc://%s/events", f->dir);
    fake_listen(f);
    unsetenv("PLIANT_STATE_DIR");
    unsetenv("XDG_STATE_HOME");
    unsetenv("PLIANT_KEY");
    unsetenv("PLIANT_SERVER_KEY");
    unsetenv("NO_COLOR");
    setenv("HOME", f->dir, 1);
    setenv("TZ", "UTC", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("PLIANT_CLIENTS", f->clients, 1);
}

void fake_forget(struct fake *f)
{
    for (size_t i = 0; i < f->n_asked; i++)
        free(f->asked[i].body);
    f->n_asked = 0;
    f->stage = 0;
    memset(f->used, 0, sizeof f->used);
}

static void close_output(struct fake_output *o)
{
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}

void fake_service_close(struct fake *f)
{
    char command[128];

    if (f->child > 0) {
        kill(f->child, SIGKILL);
        waitpid(f->child, NULL, 0);
    }
    close_output(&f->out);
    close_output(&f->err);
    fake_forget(f);
    fake_deafen(f);
    snprintf(command, sizeof command, "rm -rf %s", f->dir);
    cr_expect(system(command) == 0);
}

const char *fake_file(struct fake *f, const char *name, const char *text)
{
    static char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    file = fopen(path, "w");
    cr_assert(file != NULL, "%s", path);
    fputs(text, file);
    cr_assert(fclose(file) == 0);
    return path;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The first answer to the type that was not used, else the last one that was. */
static const struct fake_answer *find_answer(struct fake *f, enum message_type type)
{
    size_t last = SIZE_MAX;

    for (size_t i = 0; f->answers && f->answers[i].type; i++) {
        if (f->answers[i].type != type)
            continue;
        last = i;
        if (f->used[i] == 0)
            break;
    }
    if (last == SIZE_MAX)
        return NULL;
    f->used[last]++;
    return &f->answers[last];
}

static void send_text(struct rpc_server *s, const struct rpc_id *to, const struct message_header *h,
                      const char *text)
{
    struct json j;

    json_init(&j, NULL);
    json_raw(&j, NULL, text, strlen(text));
    rpc_send(s, to, h, &j);
    json_free(&j);
}

static void send_error(struct fake *f, const struct rpc_id *to, struct message_header h,
                       const char *code, const char *text)
{
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "code", code);
    json_string(&j, "text", text);
    json_end(&j, '}');
    h.type = MESSAGE_ERROR;
    rpc_send(f->client_end, to, &h, &j);
    json_free(&j);
}

static void answer(struct fake *f, const struct rpc_message *m)
{
    const struct fake_answer *a = find_answer(f, (enum message_type)m->header.type);
    struct message_header h = {
        .type = MESSAGE_REPLY, .epoch = f->epoch, .sequence = m->header.sequence};
    struct rpc_id to = m->from;
    char ping[512];

    if (!a && m->header.type == MESSAGE_PING) {
        snprintf(ping, sizeof ping,
                 "{\"version\":\"0.1.0\",\"protocol\":[1,1],\"epoch\":\"%llu\",\"pid\":4711,"
                 "\"uptime_ms\":61000,\"state\":\"ok\",\"endpoints\":{\"agents\":\"ipc://a\","
                 "\"clients\":\"%s\",\"events\":\"%s\"}}",
                 (unsigned long long)f->epoch, f->clients, f->events);
        send_text(f->client_end, &to, &h, ping);
    } else if (!a) {
        send_error(f, &to, h, "unknown-type", "the fake service has no answer to this");
    } else if (!a->reply && a->code) {
        send_error(f, &to, h, a->code, a->text);
    } else if (a->reply) {
        send_text(f->client_end, &to, &h, a->reply);
    } /* else it stays silent */
}

static void take(struct fake *f, const struct rpc_message *m)
{
    cr_assert(m->fault == MESSAGE_GOOD, "the program sent what is no message (type %d)",
              m->header.type);
    cr_assert(f->n_asked < FAKE_ASKED_MAX);
    f->asked[f->n_asked].type = (enum message_type)m->header.type;
    f->asked[f->n_asked++].body = strndup(m->body, m->size);
    if (!f->silent)
        answer(f, m);
}

void fake_event(struct fake *f, const char *body)
{
    send_text(f->event_end, NULL,
              &(struct message_header){
                  .type = MESSAGE_EVENT, .epoch = f->epoch, .sequence = ++f->sequence},
              body);
}

size_t fake_count(const struct fake *f, enum message_type type)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n_asked; i++)
        n += f->asked[i].type == type;
    return n;
}

const char *fake_body(const struct fake *f, enum message_type type)
{
    for (size_t i = f->n_asked; i > 0; i--)
        if (f->asked[i - 1].type == type)
            return f->asked[i - 1].body;
    return "";
}

/* ---- the program ----------------------------------------------------------------------------- */

static int spawn_with(const char *path, char **argv, int out, int err, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    int r;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    r = posix_spawn(ret, path, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

void fake_take_over(struct fake *f, pid_t child, int out, int err)
{
    f->child = child;
    f->out.n = f->err.n = 0;
    f->out.text[0] = f->err.text[0] = '\0';
    f->out.fd = out;
    f->err.fd = err;
    if (out >= 0)
        fcntl(out, F_SETFL, O_NONBLOCK);
    if (err >= 0)
        fcntl(err, F_SETFL, O_NONBLOCK);
}

void fake_start(struct fake *f, const char *name, const char *const *words)
{
    char path[512], *argv[32] = {path};
    int out[2], err[2];
    pid_t child;

    if (*name == '/')
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "%s/%s", PLIANT_PROGRAMS, name);
    for (size_t i = 0; words[i] && i < 30; i++)
        argv[i + 1] = (char *)words[i];
    cr_assert(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
    cr_assert(spawn_with(path, argv, out[1], err[1], &child) == 0, "%s", path);
    close(out[1]);
    close(err[1]);
    fake_take_over(f, child, out[0], err[0]);
}

/* What it has printed; false at the end. */
static bool gather(struct fake_output *o)
{
    ssize_t n;

    if (o->fd < 0)
        return false;
    while ((n = read(o->fd, o->text + o->n, sizeof o->text - 1 - o->n)) > 0)
        o->n += (size_t)n;
    o->text[o->n] = '\0';
    if (n < 0 && errno == EAGAIN)
        return true;
    close_output(o);
    return false;
}

static bool has_ended(struct fake *f)
{
    int status;

    if (f->child <= 0 || waitpid(f->child, &status, WNOHANG) != f->child)
        return false;
    f->child = 0;
    f->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return true;
}

bool fake_serve(struct fake *f, bool (*done)(struct fake *f))
{
    int64_t end_ms = fake_service_now_ms() + BOUND_MS;
    struct rpc_message m;
    bool ended = false;

    while (fake_service_now_ms() < end_ms) {
        while (f->client_end && rpc_receive(f->client_end, &m) == 1)
            take(f, &m);
        if (f->turn)
            f->turn(f);
        ended = ended || has_ended(f);
        gather(&f->out);
        gather(&f->err);
        if (done && done(f))
            return true;
        if (ended)
            return !done;
        poll(NULL, 0, TURN_MS);
    }
    cr_assert(false, "it takes too long; so far it printed\n%s\n%s", f->out.text, f->err.text);
    return false;
}

int fake_run(struct fake *f, const char *name, const char *const *words)
{
    fake_start(f, name, words);
    fake_serve(f, NULL);
    close_output(&f->out);
    close_output(&f->err);
    return f->code;
}

/* deploy.c - a DEPLOYMENT becomes files, an environment and a start block; see agent.h */
#include "agent/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/kin.h"

#define PATH_MAX_BYTES 4095u
#define TEXT_MAX (128u * 1024u) /* of an argument or a variable: the kernel's own limit */

#define DEVICES "CUDA_VISIBLE_DEVICES"

extern char **environ;

/* ---- reading ------------------------------------------------------------------------------------
 */

static bool read_strings(const struct doc_file *f, const struct doc *list, struct spec_error *err)
{
    const char *text;

    for (const struct doc *d = list->child; d; d = d->next)
        if (doc_as_string(f, d, TEXT_MAX, &text, err) < 0)
            return false;
    return true;
}

bool deploy_read(struct task *t, struct spec_error *err)
{
    const struct doc_file *f = &t->doc;
    const struct doc *d = f->root;
    int64_t slot, parallelism = 1;

    t->name = t->cwd = t->restore = t->root = "";
    if (doc_int(f, d, "slot", 0, AGENT_SLOTS_MAX, &slot, err) < 0 ||
        doc_container(f, d, "command", DOC_LIST, &t->command, err) < 0 ||
        !read_strings(f, t->command, err) ||
        doc_optional(doc_string(f, d, "name", 4096, &t->name, err)) < 0 ||
        doc_optional(doc_container(f, d, "env", DOC_MAP, &t->env, err)) < 0 ||
        (t->env && !read_strings(f, t->env, err)) ||
        doc_optional(doc_string(f, d, "cwd", PATH_MAX_BYTES, &t->cwd, err)) < 0 ||
        doc_optional(doc_string(f, d, "restore", PATH_MAX_BYTES, &t->restore, err)) < 0 ||
        doc_optional(doc_string(f, d, "checkpoint_root", PATH_MAX_BYTES, &t->root, err)) < 0 ||
        doc_optional(
            doc_int(f, d, "stop_timeout_ms", 0, DOC_INTEGER_MAX, &t->stop_timeout_ms, err)) < 0 ||
        doc_optional(doc_int(f, d, "health_check_interval_ms", 1, DOC_INTEGER_MAX,
                             &t->health_interval_ms, err)) < 0 ||
        doc_optional(doc_int(f, d, "health_check_timeout_ms", 1, DOC_INTEGER_MAX,
                             &t->health_timeout_ms, err)) < 0 ||
        doc_optional(doc_bool(f, d, "group", &t->group, err)) < 0 ||
        doc_optional(doc_bool(f, d, "one_device", &t->one_device, err)) < 0 ||
        doc_optional(doc_int(f, d, "parallelism", 1, UINT32_MAX, &parallelism, err)) < 0 ||
        doc_optional(doc_container(f, d, "peers", DOC_LIST, &t->peers, err)) < 0 ||
        !exchange_read(t, err))
        return false;
    t->slot = (uint32_t)slot;
    t->parallelism = (uint32_t)parallelism;
    if (t->command->n > 0)
        return true;
    doc_error(f, t->command, err, "no command; accepted: a program and its arguments");
    return false;
}

/* ---- files
 * ---------------------------------------------------------------------------------------- */

int make_dirs(const char *path)
{
    char *copy = must_copy(path);
    int r = 0;

    for (char *at = copy + 1; r == 0; at++) {
        bool last = *at == '\0';

        if (*at != '/' && !last)
            continue;
        *at = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            r = -errno;
        if (last)
            break;
        *at = '/';
    }
    free(copy);
    return r;
}

int write_file(const char *path, const char *text, size_t size)
{
    char *part = must_format("%s.part", path);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), r = 0;

    if (fd < 0 || write(fd, text, size) != (ssize_t)size)
        r = errno ? -errno : -EIO;
    if (fd >= 0)
        close(fd);
    if (r == 0 && rename(part, path) != 0)
        r = -errno;
    if (r < 0)
        unlink(part);
    free(part);
    return r;
}

/* Follows no link, and does not mind what is gone. */
int remove_below(int at, const char *name, bool (*goes_on)(void *ctx), void *ctx)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && r != -ECANCELED && (entry = readdir(dir))) {
        int error = 0;

        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(fd, entry->d_name, 0) != 0)
            error = remove_below(fd, entry->d_name, goes_on, ctx);
        if (goes_on && !goes_on(ctx))
            error = -ECANCELED;
        r = error < 0 ? error : r;
    }
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    if (r == 0 && unlinkat(at, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        r = -errno;
    return r == -ENOTDIR && unlinkat(at, name, 0) == 0 ? 0 : r;
}

void remove_tree(const char *path)
{
    remove_below(AT_FDCWD, path, NULL, NULL);
}

/* ---- environment
 * ------------------------------------------------------------------------------------ */

struct VEC_environment VEC(char *);

static char **find_variable(const struct VEC_environment *env, const char *name, size_t n)
{
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
            return &env->v[i];
    return NULL;
}

/* Takes "NAME=value". */
static void put_variable(struct VEC_environment *env, char *assignment)
{
    char **old = find_variable(env, assignment, strcspn(assignment, "="));

    if (old) {
        free(*old);
        *old = assignment;
        return;
    }
    *(char **)must(vec_push(NULL, env)) = assignment;
}

/* What speaks of the agent itself is not for its tasks. */
static bool is_for_tasks(const char *assignment)
{
    static const char *const own[] = {"PLIANT_",        "NOTIFY_SOCKET=",  "WATCHDOG_", "LISTEN_",
                                      "INVOCATION_ID=", "JOURNAL_STREAM=", "MAINPID="};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(assignment, own[i], strlen(own[i])) == 0)
            return false;
    return strchr(assignment, '=') != NULL;
}

/* The deployment's value is what holds if nothing is inherited [7.1]. */
static bool is_inherited_first(const char *name)
{
    return strcmp(name, "OMP_NUM_THREADS") == 0 ||
           strcmp(name, "TORCH_NCCL_ASYNC_ERROR_HANDLING") == 0;
}

/* The slot's device alone, of those that would be visible: "2,5" in slot 1 becomes "5" [7.1]. */
static void narrow_devices(struct VEC_environment *env, uint32_t slot)
{
    char **all = find_variable(env, DEVICES, strlen(DEVICES));
    const char *at = all ? *all + sizeof DEVICES : "";

    for (uint32_t i = 0; i < slot && *at; i++) {
        at += strcspn(at, ",");
        at += *at == ',';
    }
    if (*at)
        put_variable(env, must_format(DEVICES "=%.*s", (int)strcspn(at, ","), at));
    else
        put_variable(env, must_format(DEVICES "=%u", slot));
}

/* What the agent was started with, then the deployment's, then what only the agent knows
 * [W-ENV-1]. */
static void make_environment(const struct agent *a, const struct task *t,
                             struct VEC_environment *env)
{
    char *logs = logs_dir(a, &t->key);

    for (char **v = environ; *v; v++)
        if (is_for_tasks(*v))
            put_variable(env, must_copy(*v));
    for (const struct doc *d = t->env ? t->env->child : NULL; d; d = d->next)
        if (!is_inherited_first(d->key) || !find_variable(env, d->key, strlen(d->key)))
            put_variable(env, must_format("%s=%s", d->key, d->text));
    if (t->one_device)
        narrow_devices(env, t->slot);
    put_variable(env, must_format(KIN_MARK "%s/s", t->dir));
    put_variable(env, must_format("PLIANT_LOG_DIR=%s", logs));
    put_variable(env, must_format("PLIANT_PREEMPTION_FILE=%s/preemption.json", t->dir));
    if (t->peers)
        put_variable(env, must_format("PLIANT_PEERS=%s/peers.json", t->dir));
    if (t->results) {
        put_variable(env, must_format("PLIANT_INPUTS=%s/inputs.json", t->dir));
        put_variable(env, must_format("PLIANT_OUTPUTS=%s/outputs.json", t->dir));
    }
    if (t->group) {
        char *path = logs_path(a, &t->key, "error.json");

        put_variable(env, must_format("TORCHELASTIC_ERROR_FILE=%s", path));
        free(path);
    }
    *(char **)must(vec_push(NULL, env)) = NULL;
    free(logs);
}

/* ---- the start
 * ----------------------------------------------------------------------------------------- */

/* 0 or -errno and, in `cause`, of what. */
static int make_files(struct agent *a, struct task *t, char *cause, size_t size)
{
    char *work = must_format("%s/work", t->dir), *peers = must_format("%s/peers.json", t->dir);
    struct json j;
    int r = make_dirs(work);

    if (r == 0)
        r = logs_prepare(a, &t->key);
    json_init(&j, NULL);
    json_doc(&j, NULL, t->peers);
    if (r == 0 && t->peers)
        r = j.error ? j.error : write_file(peers, j.v, j.n);
    json_free(&j);
    r = r < 0 ? r : exchange_write_files(t);
    if (r < 0)
        snprintf(cause, size, "cannot prepare %s: %s", t->dir, strerror(-r));
    else if (!worker_open_door(a, t)) {
        snprintf(cause, size, "cannot open the worker's socket in %s: %s", t->dir, strerror(errno));
        r = -EIO;
    }
    free(work);
    free(peers);
    return r;
}

static int pack(struct agent *a, const struct task *t)
{
    char *out = logs_path(a, &t->key, "stdout"), *err = logs_path(a, &t->key, "stderr");
    char *work = must_format("%s/work", t->dir), *mark = must_format(KIN_MARK "%s/s", t->dir);
    const char **argv = must(calloc((size_t)t->command->n + 1, sizeof *argv)), **arg = argv;
    struct VEC_environment env = {0};
    struct keeper_start start = {.cwd = *t->cwd ? t->cwd : work,
                                 .stdout_path = out,
                                 .stderr_path = err,
                                 .mark = mark,
                                 .argv = argv,
                                 .about = t->text,
                                 .about_size = t->text_size,
                                 .stop_timeout_ms = t->stop_timeout_ms};
    int block;

    for (const struct doc *d = t->command->child; d; d = d->next)
        *arg++ = d->text;
    make_environment(a, t, &env);
    start.envp = (const char *const *)env.v;
    block = keeper_pack(&start);
    for (size_t i = 0; i < env.n; i++)
        free(env.v[i]);
    vec_free(NULL, &env);
    free(argv);
    free(out);
    free(err);
    free(work);
    free(mark);
    return block;
}

void deploy_start(struct agent *a, struct task *t)
{
    struct keeper_message m = {.op = KEEPER_SPAWN, .id = t->id};
    char cause[512];
    int block;

    if (make_files(a, t, cause, sizeof cause) < 0) {
        task_fail_to_start(a, t, cause);
        return;
    }
    block = pack(a, t);
    if (block < 0) {
        task_fail_to_start(a, t, "no memory for its environment");
        return;
    }
    keep_tell(a, &m, block);
}

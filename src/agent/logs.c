/* logs.c - what tasks print: names, bounds, reading; see agent.h
 *
 * Each attempt has a file for each of its streams, WORK_DIR/logs/JOB/VERTEX-SUBTASK.ATTEMPT.stdout.
 * It writes into it directly, so its output costs us nothing. A file that grows beyond LOG_MAX has
 * its beginning taken out by punching a hole: the offsets of the rest stay as they are, and so does
 * the place where the task writes. Where the file system can't, the file is emptied.
 */
#include "agent/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/log.h"
#include "util/ascii.h"
#include "util/fnv.h"

#define LOG_MAX                                                                                    \
    (16 * 1024 * 1024) /* bytes of one stream of an attempt, at least the half is kept */
#define ATTEMPTS_KEPT 10u
#define JOBS_KEPT 100
#define OLD_LOOK 8u /* attempts before the kept ones that are looked for: not all ran here */
#define PLAIN_NAME_MAX 120u
#define READ_MAX (256 * 1024) /* bytes of one LOG: JSON makes six of one at most */
#define END_LOOKED_AT 8192

/* ---- names
 * ---------------------------------------------------------------------------------------- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* A vertex's name as part of a file's: one that has to be changed gets a number that makes it
 * unique. */
static void file_name(const char *vertex, char ret[PLAIN_NAME_MAX + 24])
{
    size_t n = strlen(vertex), shown = n < PLAIN_NAME_MAX ? n : PLAIN_NAME_MAX;
    bool changed = shown < n;

    for (size_t i = 0; i < shown; i++) {
        ret[i] = is_plain(vertex[i]) ? vertex[i] : '_';
        changed |= ret[i] != vertex[i];
    }
    ret[shown] = '\0';
    if (changed)
        snprintf(ret + shown, 24, "_%016llx", (unsigned long long)fnv_add(FNV_START, vertex, n));
}

char *logs_dir(const struct agent *a, const struct task_key *key)
{
    char job[PLAIN_NAME_MAX + 24];

    file_name(key->job, job);
    return must_format("%s/logs/%s", a->opts->work_dir, job);
}

char *logs_path(const struct agent *a, const struct task_key *key, const char *what)
{
    char *dir = logs_dir(a, key), *path, vertex[PLAIN_NAME_MAX + 24];

    file_name(key->vertex, vertex);
    path = must_format("%s/%s-%u.%u.%s", dir, vertex, key->subtask, key->attempt, what);
    free(dir);
    return path;
}

/* ---- bounds
 * ------------------------------------------------------------------------------------------ */

static void remove_one(const struct agent *a, const struct task_key *key)
{
    static const char *const whats[] = {"stdout", "stderr", "error.json"};

    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        char *path = logs_path(a, key, whats[i]);

        unlink(path);
        free(path);
    }
}

static void remove_old_attempts(const struct agent *a, const struct task_key *key)
{
    struct task_key old = *key;

    for (uint32_t back = ATTEMPTS_KEPT; back < ATTEMPTS_KEPT + OLD_LOOK; back++) {
        if (key->attempt < back)
            return;
        old.attempt = key->attempt - back;
        remove_one(a, &old);
    }
}

/* The folder of logs that was changed longest ago, if there are too many. */
static bool find_oldest(const char *logs, char ret[NAME_MAX + 1])
{
    DIR *dir = opendir(logs);
    const struct dirent *entry;
    struct stat st;
    int64_t oldest = INT64_MAX;
    int n = 0;

    while (dir && (entry = readdir(dir))) {
        if (*entry->d_name == '.' || fstatat(dirfd(dir), entry->d_name, &st, 0) != 0)
            continue;
        n++;
        if (st.st_mtime < oldest) {
            oldest = st.st_mtime;
            snprintf(ret, NAME_MAX + 1, "%s", entry->d_name);
        }
    }
    if (dir)
        closedir(dir);
    return n > JOBS_KEPT;
}

static void remove_old_jobs(const struct agent *a)
{
    char *logs = must_format("%s/logs", a->opts->work_dir), oldest[NAME_MAX + 1];

    if (find_oldest(logs, oldest)) {
        char *path = must_format("%s/%s", logs, oldest);

        remove_tree(path);
        free(path);
    }
    free(logs);
}

int logs_prepare(struct agent *a, const struct task_key *key)
{
    char *dir = logs_dir(a, key);
    int r = 0;

    if (access(dir, F_OK) != 0) {
        remove_old_jobs(a);
        r = make_dirs(dir);
    }
    free(dir);
    if (r < 0)
        return r;
    remove_old_attempts(a, key);
    remove_one(a, key); /* of another life of this node: names are never used twice */
    return 0;
}

static void bound_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    struct stat st;
    off_t cut;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && (int64_t)st.st_blocks * 512 > LOG_MAX) {
        cut = (st.st_size - LOG_MAX / 2) & ~(off_t)4095;
        if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, cut) != 0 &&
            ftruncate(fd, 0) != 0)
            say(SAY_WARN, "msg=\"a log cannot be cut\" path=%s error=\"%s\"", log_quoted(path).v,
                strerror(errno));
    }
    close(fd);
}

void logs_bound(const struct agent *a, const struct task *t)
{
    char *out = logs_path(a, &t->key, "stdout"), *err = logs_path(a, &t->key, "stderr");

    bound_file(out);
    bound_file(err);
    free(out);
    free(err);
}

/* ---- reading
 * -------------------------------------------------------------------------------------------- */

bool logs_end_has(const struct agent *a, const struct task_key *key, const char *what,
                  const char *const *texts)
{
    char *path = logs_path(a, key, what), end[END_LOOKED_AT + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    ssize_t n = 0;
    bool found = false;

    if (fd >= 0 && fstat(fd, &st) == 0)
        n = pread(fd, end, END_LOOKED_AT,
                  st.st_size > END_LOOKED_AT ? st.st_size - END_LOOKED_AT : 0);
    if (fd >= 0)
        close(fd);
    free(path);
    for (ssize_t i = 0; i < n; i++)
        end[i] = end[i] ? ascii_lower(end[i]) : ' ';
    end[n > 0 ? n : 0] = '\0';
    for (; *texts && !found; texts++)
        found = strstr(end, *texts) != NULL;
    return found;
}

struct question {
    int64_t request, offset, max;
    struct task_key key;
    const char *stream;
};

static bool read_question(struct agent *a, const struct doc *body, struct question *ret)
{
    const char *request = "";
    struct spec_error err;

    if (doc_string(&a->in, body, "request", 24, &request, &err) < 0 ||
        doc_string(&a->in, body, "stream", 16, &ret->stream, &err) < 0 ||
        doc_int(&a->in, body, "offset", -DOC_INTEGER_MAX, DOC_INTEGER_MAX, &ret->offset, &err) <
            0 ||
        doc_int(&a->in, body, "max", 1, DOC_INTEGER_MAX, &ret->max, &err) < 0 ||
        !task_key_read(a, body, &ret->key) ||
        (strcmp(ret->stream, "stdout") != 0 && strcmp(ret->stream, "stderr") != 0)) {
        say(SAY_WARN, "msg=\"a broken READ_LOG\"");
        return false;
    }
    ret->request = strtoll(request, NULL, 10);
    return true;
}

/* What was taken out reads as zeros: go to where there is something. */
static int64_t skip_hole(int fd, int64_t offset, int64_t size)
{
    off_t data = lseek(fd, offset, SEEK_DATA);

    if (data < 0)
        return errno == ENXIO ? size : offset;
    return data;
}

/* The bytes from `offset` on, as a string: zeros in it would end it. */
static size_t read_text(int fd, int64_t offset, size_t max, char *ret)
{
    ssize_t n = pread(fd, ret, max, offset);

    for (ssize_t i = 0; i < n; i++)
        if (ret[i] == '\0')
            ret[i] = ' ';
    ret[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static void answer(struct agent *a, const struct question *q, int fd, int64_t size)
{
    const struct task *t = task_find(a, &q->key);
    size_t max = q->max < READ_MAX ? (size_t)q->max : READ_MAX, n, limit, fits;
    int64_t offset = q->offset < 0 ? size + q->offset : q->offset;
    char *text = must(malloc(max + 1));
    struct json *j;

    offset = offset < 0 ? 0 : offset > size ? size : offset;
    offset = skip_hole(fd, offset, size);
    n = read_text(fd, offset, max, text);
    limit = message_kind(MESSAGE_LOG)->size_max - 1024;
    for (fits = n;; fits /= 2) { /* what JSON makes of it must fit too */
        text[fits] = '\0';
        j = session_body(a);
        json_id(j, "request", (uint64_t)q->request);
        json_string(j, "data", text);
        if (j->n <= limit)
            break;
    }
    json_int(j, "offset", offset);
    json_int(j, "next", offset + (int64_t)fits);
    json_int(j, "size", size);
    json_bool(j, "ended", !t || !task_lives(t));
    json_end(j, '}');
    session_send(a, MESSAGE_LOG, j);
    free(text);
}

static void refuse(struct agent *a, const struct question *q, int error)
{
    struct json *j = session_body(a);

    json_id(j, "request", (uint64_t)q->request);
    json_string(j, "error", error == ENOENT ? "there is no such log" : strerror(error));
    json_end(j, '}');
    session_send(a, MESSAGE_LOG, j);
}

void logs_read(struct agent *a, const struct doc *body)
{
    struct question q = {0};
    struct stat st;
    char *path;
    int fd;

    if (!read_question(a, body, &q))
        return;
    path = logs_path(a, &q.key, q.stream);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0)
        answer(a, &q, fd, st.st_size);
    else
        refuse(a, &q, errno);
    if (fd >= 0)
        close(fd);
    free(path);
}

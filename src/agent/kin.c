/* kin.c - see kin.h */
#include "agent/kin.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ENVIRONMENT_MAX (4u * 1024u * 1024u) /* bytes; the kernel's own limit is below */
#define LOOK_AGAIN_MS 10

/* The whole of a file of /proc, NUL-terminated; NULL: none. The caller frees. */
static char *read_proc(const char *path, size_t *ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0, cap = 4096;
    char *text = fd < 0 ? NULL : malloc(cap);
    ssize_t got = 1;

    while (text && got > 0 && n < ENVIRONMENT_MAX) {
        if (cap - n < 2048) {
            char *grown = realloc(text, cap *= 2);

            if (!grown)
                break;
            text = grown;
        }
        got = read(fd, text + n, cap - n - 1);
        n += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    if (!text || got < 0 || n == 0) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    *ret_size = n;
    return text;
}

/* Kernels without CONFIG_PROC_CHILDREN: ask each process for its parent. */
static void children_by_search(void (*visit)(void *ctx, pid_t pid), void *ctx)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc && (entry = readdir(proc))) {
        long pid = strtol(entry->d_name, NULL, 10);
        char path[64], *stat;
        const char *behind_name;
        size_t size;
        int parent = 0;

        if (pid <= 0)
            continue;
        snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        stat = read_proc(path, &size);
        behind_name = stat ? strrchr(stat, ')') : NULL;
        if (behind_name && sscanf(behind_name, ") %*c %d", &parent) == 1 && parent == getpid())
            visit(ctx, (pid_t)pid);
        free(stat);
    }
    if (proc)
        closedir(proc);
}

void kin_children(void (*visit)(void *ctx, pid_t pid), void *ctx)
{
    char path[64], *list, *at;
    size_t size;
    long pid;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    list = read_proc(path, &size);
    if (!list) {
        if (access(path, R_OK) != 0)
            children_by_search(visit, ctx);
        return;
    }
    for (at = list; (pid = strtol(at, &at, 10)) > 0;)
        visit(ctx, (pid_t)pid);
    free(list);
}

bool kin_has_mark(pid_t pid, const char *prefix)
{
    char path[64], *environment;
    size_t size, n = strlen(prefix);
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    environment = read_proc(path, &size);
    for (const char *at = environment; at && at < environment + size && !found;
         at += strlen(at) + 1)
        found = strncmp(at, prefix, n) == 0;
    free(environment);
    return found;
}

static size_t kill_marked_once(const char *prefix)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    size_t found = 0;

    while (proc && (entry = readdir(proc))) {
        long pid = strtol(entry->d_name, NULL, 10);

        if (pid <= 0 || pid == getpid() || !kin_has_mark((pid_t)pid, prefix))
            continue;
        kill((pid_t)pid, SIGKILL);
        found++;
    }
    if (proc)
        closedir(proc);
    return found;
}

size_t kin_kill_marked(const char *work_dir, int patience_ms)
{
    static const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    char prefix[4096];
    size_t first, n;

    if (snprintf(prefix, sizeof prefix, KIN_MARK "%s/", work_dir) >= (int)sizeof prefix)
        return 0;
    first = n = kill_marked_once(prefix);
    for (; n > 0 && patience_ms > 0; patience_ms -= LOOK_AGAIN_MS) {
        nanosleep(&pause, NULL);
        n = kill_marked_once(prefix);
    }
    return first;
}

bool kin_usage(pid_t pid, struct kin_usage *ret)
{
    unsigned long long user, system, child_user, child_system;
    long ticks = sysconf(_SC_CLK_TCK);
    char path[64], *stat;
    const char *behind_name;
    long long pages;
    size_t size;
    int n = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    stat = read_proc(path, &size);
    behind_name = stat ? strrchr(stat, ')') : NULL;
    if (behind_name)
        n = sscanf(behind_name,
                   ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d "
                   "%*d %*d %*u %*u %lld",
                   &user, &system, &child_user, &child_system, &pages);
    free(stat);
    if (n != 5 || ticks <= 0)
        return false;
    ret->cpu_ms = (user + system + child_user + child_system) * 1000 / (unsigned long long)ticks;
    ret->rss_bytes =
        pages > 0 ? (unsigned long long)pages * (unsigned long long)sysconf(_SC_PAGESIZE) : 0;
    return true;
}

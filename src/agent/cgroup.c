/* cgroup.c - see cgroup.h */
#include "agent/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 10
#define LINE 4096

static int not_here(struct spec_error *err, int error, const char *what)
{
    snprintf(err->text, sizeof err->text, "%s: %s", what, strerror(error));
    return -error;
}

/* ---- files of a group -------------------------------------------------------------------------
 */

static bool file_in(const char *group, const char *name, char ret[CGROUP_PATH])
{
    return (size_t)snprintf(ret, CGROUP_PATH, "%s/%s", group, name) < CGROUP_PATH;
}

/* A small file as text; false: none. */
static bool read_in(const char *group, const char *name, char *ret, size_t size)
{
    char path[CGROUP_PATH];
    ssize_t n = -1;
    int fd = file_in(group, name, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        n = read(fd, ret, size - 1);
        close(fd);
    }
    ret[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

static bool write_in(const char *group, const char *name, const char *text)
{
    char path[CGROUP_PATH];
    bool good = false;
    int fd = file_in(group, name, path) ? open(path, O_WRONLY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        good = write(fd, text, strlen(text)) > 0;
        close(fd);
    }
    return good;
}

/* The number behind a word that begins a line; -1: none. */
static int64_t number_in(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = text; at && *at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, word, n) == 0 && at[n] == ' ')
            return strtoll(at + n, NULL, 10);
    }
    return -1;
}

/* ---- where ------------------------------------------------------------------------------------
 */

/* The first line of a file that `take` wants. */
static bool find_line(const char *path, bool (*take)(const char *line, void *ctx), void *ctx)
{
    FILE *f = fopen(path, "re");
    char line[LINE];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        found = take(line, ctx);
    }
    if (f)
        fclose(f);
    return found;
}

struct mount {
    char root[CGROUP_PATH], at[CGROUP_PATH]; /* what of the tree is mounted, and where */
};

static bool take_mount(const char *line, void *ctx)
{
    struct mount *m = ctx;

    return strstr(line, " - cgroup2 ") &&
           sscanf(line, "%*d %*d %*s %511s %511s", m->root, m->at) == 2;
}

static bool take_group(const char *line, void *ctx)
{
    char *group = ctx;

    return strncmp(line, "0::/", 4) == 0 &&
           snprintf(group, CGROUP_PATH, "%s", line + 3) < CGROUP_PATH;
}

/* A group's name in the tree, below what is mounted; NULL: it is outside. */
static const char *below(const char *root, const char *group)
{
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(group, root, n) != 0 || (group[n] && group[n] != '/'))
        return NULL;
    return strncmp(group + n, "/..", 3) == 0 ? NULL : group + n;
}

int cgroup_find_parent(char ret[CGROUP_PATH], struct spec_error *err)
{
    struct mount m;
    char group[CGROUP_PATH], type[64];
    const char *name;
    size_t n;

    if (!find_line("/proc/self/mountinfo", take_mount, &m))
        return not_here(err, ENOENT, "no cgroup2 is mounted");
    if (!find_line("/proc/self/cgroup", take_group, group) || !(name = below(m.root, group)))
        return not_here(err, ENOENT, "the agent's own cgroup is out of sight");
    n = (size_t)snprintf(ret, CGROUP_PATH, "%s%s", m.at, strcmp(name, "/") == 0 ? "" : name);
    if (n >= CGROUP_PATH)
        return not_here(err, ENAMETOOLONG, group);
    if (n > sizeof CGROUP_SELF && strcmp(ret + n - sizeof CGROUP_SELF, "/" CGROUP_SELF) == 0)
        ret[n - sizeof CGROUP_SELF] = '\0';
    if (!read_in(ret, "cgroup.type", type, sizeof type)) /* only the root of the machine has none */
        return not_here(err, EPERM, "the agent is in the root cgroup, which is nobody's to divide");
    return 0;
}

/* ---- homes ------------------------------------------------------------------------------------
 */

pid_t cgroup_fork(int group)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP | CLONE_VFORK,
                              .exit_signal = SIGCHLD,
                              .cgroup = (unsigned)group};

    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

/* Does it work? Kernels before 5.14 have no cgroup.kill, some containers no clone3(). */
static int try_home(const char *home)
{
    char path[CGROUP_PATH];
    int fd, error;
    pid_t pid;

    if (!file_in(home, "cgroup.kill", path))
        return -ENAMETOOLONG;
    if (access(path, W_OK) != 0)
        return -errno;
    fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    pid = cgroup_fork(fd);
    error = errno;
    if (pid == 0)
        _exit(0);
    close(fd);
    if (pid < 0)
        return -error;
    waitpid(pid, NULL, 0);
    return 0;
}

int cgroup_make_home(const char *parent, char ret[CGROUP_PATH], struct spec_error *err)
{
    int r;

    if (!file_in(parent, CGROUP_HOME "XXXXXX", ret))
        return not_here(err, ENAMETOOLONG, parent);
    if (!mkdtemp(ret))
        return not_here(err, errno, parent);
    r = try_home(ret);
    if (r < 0) {
        rmdir(ret);
        return not_here(err, -r, parent);
    }
    /* Where it may: then an OOM kill is known exactly. The parent must have no process itself. */
    if (write_in(parent, "cgroup.subtree_control", "+memory"))
        write_in(ret, "cgroup.subtree_control", "+memory");
    return 0;
}

bool cgroup_is_home(const char *path)
{
    const char *name = strrchr(path, '/');
    struct statfs fs;

    return name && strncmp(name + 1, CGROUP_HOME, strlen(CGROUP_HOME)) == 0 &&
           statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

void cgroup_clear_home(const char *home, int patience_ms)
{
    static const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    const struct dirent *entry;
    DIR *groups;

    for (; cgroup_is_populated(home); patience_ms -= LOOK_AGAIN_MS) {
        cgroup_kill(home);
        if (patience_ms <= 0)
            break;
        nanosleep(&pause, NULL);
    }
    groups = opendir(home);
    while (groups && (entry = readdir(groups)))
        if (entry->d_type == DT_DIR && *entry->d_name != '.')
            unlinkat(dirfd(groups), entry->d_name, AT_REMOVEDIR);
    if (groups)
        closedir(groups);
}

void cgroup_remove_home(const char *home, int patience_ms)
{
    cgroup_clear_home(home, patience_ms);
    rmdir(home);
}

/* ---- groups -----------------------------------------------------------------------------------
 */

int cgroup_make(const char *path)
{
    int fd = mkdir(path, 0755) == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    return fd >= 0 ? fd : -errno;
}

void cgroup_kill(const char *path)
{
    write_in(path, "cgroup.kill", "1");
}

bool cgroup_is_populated(const char *path)
{
    char text[256];

    return read_in(path, "cgroup.events", text, sizeof text) && number_in(text, "populated") > 0;
}

void cgroup_events_path(const char *path, char ret[CGROUP_PATH])
{
    if (!file_in(path, "cgroup.events", ret))
        *ret = '\0';
}

/* The process is told the group's name by the tree's root, we know it by the mount: homes have
 * names of their own, so the last two parts say it. */
bool cgroup_holds(const char *path, pid_t pid)
{
    char file[64], group[CGROUP_PATH];
    const char *tail = strrchr(path, '/');
    size_t n, size;

    while (tail && tail > path && *--tail != '/')
        continue;
    snprintf(file, sizeof file, "/proc/%d/cgroup", (int)pid);
    if (!tail || !find_line(file, take_group, group))
        return false;
    n = strlen(group);
    size = strlen(tail);
    return n >= size && strcmp(group + n - size, tail) == 0;
}

int32_t cgroup_oom_kills(const char *path)
{
    char text[512];

    return read_in(path, "memory.events", text, sizeof text) ? (int32_t)number_in(text, "oom_kill")
                                                             : -1;
}

/* place.c - the work directory; see agent.h
 *
 *     lock           held by the agent       keeper.lock    held by its keeper, with its pid
 *     incarnation    the last one            keeper.sock    where the next agent finds a keeper
 *     cgroup         path of the last home of tasks' groups (cgroup.h)
 *     tasks/ID/      s (socket), work/, peers.json, preemption.json; inputs.json, outputs.json,
 *                    told.json (exchange.c)
 *     logs/JOB/      output of tasks (logs.c)
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "agent/kin.h"

#define WORK_DIR_MAX 75u /* bytes: a socket's address has 107, and holds "/tasks/ID/s" */
#define KEEPER_PATIENCE_MS (KEEPER_LAST_MS + KEEPER_SWEEP_MS + 1000)
#define LOOK_AGAIN_MS 20
#define KILL_PATIENCE_MS 5000

static char *path_in(const struct agent *a, const char *name)
{
    return must_format("%s/%s", a->opts->work_dir, name);
}

static int lock_at(const char *path, int *ret_fd)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *ret_fd = fd;
        return 0;
    }
    if (fd < 0)
        return -errno;
    close(fd);
    return -EWOULDBLOCK;
}

static int fail(const struct agent *a, int error, struct spec_error *err)
{
    if (error == -EWOULDBLOCK)
        snprintf(err->text, sizeof err->text,
                 "%s: in use by another pliant-agent; give each its own --work-dir",
                 a->opts->work_dir);
    else
        snprintf(err->text, sizeof err->text, "%s: %s", a->opts->work_dir, strerror(-error));
    return error;
}

int place_open(struct agent *a, struct spec_error *err)
{
    char *lock = path_in(a, "lock"), *tasks = path_in(a, "tasks"), *logs = path_in(a, "logs");
    int r = -EINVAL;

    if (strlen(a->opts->work_dir) > WORK_DIR_MAX) {
        snprintf(err->text, sizeof err->text,
                 "%s: too long for the sockets in it; accepted: %u bytes", a->opts->work_dir,
                 WORK_DIR_MAX);
    } else {
        r = make_dirs(tasks);
        r = r < 0 ? r : make_dirs(logs);
        r = r < 0 ? r : lock_at(lock, &a->lock);
        if (r < 0)
            fail(a, r, err);
    }
    free(lock);
    free(tasks);
    free(logs);
    return r;
}

static pid_t keeper_in(int fd)
{
    char text[24] = "";

    return pread(fd, text, sizeof text - 1, 0) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* A keeper whose agent was killed ends its tasks and itself; one that does not is ended. */
static void wait_for_keeper(const char *path)
{
    static const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};
    int fd = open(path, O_RDWR | O_CLOEXEC), left_ms = KEEPER_PATIENCE_MS;

    if (fd < 0)
        return;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0 && left_ms > -KILL_PATIENCE_MS) {
        if (left_ms >= 0 && left_ms < LOOK_AGAIN_MS) {
            pid_t pid = keeper_in(fd);

            say(SAY_WARN, "msg=\"the keeper of an earlier life does not end\" pid=%d", (int)pid);
            if (pid > 1)
                kill(pid, SIGKILL);
        }
        nanosleep(&pause, NULL);
        left_ms -= LOOK_AGAIN_MS;
    }
    close(fd);
}

/* The home of the last life that had one; NULL: none is left. The caller frees. */
static char *last_home(const struct agent *a)
{
    char *file = path_in(a, "cgroup"), path[CGROUP_PATH] = "";
    int fd = open(file, O_RDONLY | O_CLOEXEC);

    free(file);
    if (fd < 0)
        return NULL;
    if (read(fd, path, sizeof path - 1) > 0)
        path[strcspn(path, "\n")] = '\0';
    close(fd);
    return cgroup_is_home(path) ? must_copy(path) : NULL;
}

/* What hides from the marks, because it has cleared its environment, is found here [W-SIG-5]. */
static void clear_last_home(const struct agent *a)
{
    char *home = last_home(a);

    if (home && cgroup_is_populated(home))
        say(SAY_WARN, "msg=\"processes of an earlier life are in its cgroups: killed\"");
    if (home)
        cgroup_remove_home(home, KILL_PATIENCE_MS);
    free(home);
}

int place_clean(struct agent *a, struct spec_error *err)
{
    char *keeper = path_in(a, KEEPER_LOCK), *tasks = path_in(a, "tasks");
    size_t n;
    int r;

    wait_for_keeper(keeper);
    n = kin_kill_marked(a->opts->work_dir, KILL_PATIENCE_MS);
    if (n > 0)
        say(SAY_WARN, "msg=\"processes of an earlier life killed\" n=%zu", n);
    clear_last_home(a);
    remove_tree(tasks);
    r = make_dirs(tasks);
    free(keeper);
    free(tasks);
    return r < 0 ? fail(a, r, err) : 0;
}

/* Unix time at the start, but later than that of the life before, whatever the clock says. */
int place_incarnation(struct agent *a, struct spec_error *err)
{
    char *path = path_in(a, "incarnation"), text[24] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC), r;
    uint64_t last = 0;

    if (fd >= 0) {
        if (read(fd, text, sizeof text - 1) > 0)
            last = strtoull(text, NULL, 10);
        close(fd);
    }
    a->incarnation = (uint64_t)unix_ms();
    if (a->incarnation <= last)
        a->incarnation = last + 1;
    snprintf(text, sizeof text, "%" PRIu64 "\n", a->incarnation);
    r = write_file(path, text, strlen(text));
    free(path);
    return r < 0 ? fail(a, r, err) : 0;
}

void place_adopt_cgroup(struct agent *a)
{
    a->cgroup = last_home(a);
}

static int find_home(const char *wanted, char ret[CGROUP_PATH], struct spec_error *err)
{
    char own[CGROUP_PATH];
    int r;

    if (strcmp(wanted, CGROUP_AUTO) != 0)
        return cgroup_make_home(wanted, ret, err);
    r = cgroup_find_parent(own, err);
    return r < 0 ? r : cgroup_make_home(own, ret, err);
}

int place_cgroup(struct agent *a, struct spec_error *err)
{
    const char *wanted = a->opts->cgroup;
    char home[CGROUP_PATH + 1], *file;
    struct spec_error why = {0};
    int r;

    if (strcmp(wanted, CGROUP_OFF) == 0)
        return 0;
    r = find_home(wanted, home, &why);
    if (r < 0 && strcmp(wanted, CGROUP_AUTO) != 0) {
        snprintf(err->text, sizeof err->text, "--cgroup: %.400s", why.text);
        return r;
    }
    if (r < 0) {
        say(SAY_INFO, "msg=\"tasks have no cgroups of their own\" why=\"%.400s\"", why.text);
        return 0;
    }
    say(SAY_INFO, "msg=\"tasks have cgroups of their own\" in=%s", home);
    a->cgroup = must_copy(home);
    strcat(home, "\n");
    file = path_in(a, "cgroup");
    r = write_file(file, home, strlen(home));
    free(file);
    return r < 0 ? fail(a, r, err) : 0;
}

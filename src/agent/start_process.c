/* start_process.c - see start_block.h
 *
 * By vfork(): the child borrows our memory until it runs its program, so it costs the same however
 * large we are, and what goes wrong in it is known here without a pipe. A child that is born in a
 * cgroup has a copy of our memory (no call does both), so there one page is shared.
 */
#include "agent/start_block.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/cgroup.h"

extern char **environ;

enum step { STEP_INPUT, STEP_STDOUT, STEP_STDERR, STEP_DIRECTORY, STEP_RUN };

/* The child writes it and the parent reads it, which no compiler would expect: it is volatile. */
struct failure {
    enum step step;
    int error;
};

static bool open_as(int as, const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd == as) /* we ourselves have it closed */
        return fcntl(fd, F_SETFD, 0) == 0;
    return fd >= 0 && dup2(fd, as) == as; /* the copy has no O_CLOEXEC */
}

static void reset_signals(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int s = 1; s < NSIG; s++)
        sigaction(s, &usual, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool next_step(volatile struct failure *f, enum step step)
{
    f->step = step;
    return true;
}

/* In the child: only system calls, and no change of our memory but to `f`. */
static void become(const struct keeper_start *start, volatile struct failure *f)
{
    const int append = O_WRONLY | O_CREAT | O_APPEND;

    setsid();
    reset_signals();
    if (open_as(0, "/dev/null", O_RDONLY) && next_step(f, STEP_STDOUT) &&
        open_as(1, start->stdout_path, append) && next_step(f, STEP_STDERR) &&
        open_as(2, start->stderr_path, append) && next_step(f, STEP_DIRECTORY) &&
        chdir(start->cwd) == 0 && next_step(f, STEP_RUN))
        execvp(start->argv[0], (char *const *)(uintptr_t)start->argv);
    f->error = errno;
    _exit(127);
}

static void say_why(const struct keeper_start *start, enum step step, int error, char *why,
                    size_t size)
{
    const char *reason = strerror(error);

    switch (step) {
    case STEP_INPUT:
        snprintf(why, size, "cannot open /dev/null: %s", reason);
        return;
    case STEP_STDOUT:
        snprintf(why, size, "cannot open the log %.150s: %s", start->stdout_path, reason);
        return;
    case STEP_STDERR:
        snprintf(why, size, "cannot open the log %.150s: %s", start->stderr_path, reason);
        return;
    case STEP_DIRECTORY:
        snprintf(why, size, "cannot enter the directory %.150s: %s", start->cwd, reason);
        return;
    case STEP_RUN:
        snprintf(why, size, "cannot run %.150s: %s", start->argv[0], reason);
        return;
    }
}

/* Start it with what it shares with us. Its pid, or -1 and errno. */
static pid_t start_sharing(const struct keeper_start *start, int group, volatile struct failure *f)
{
    char **own = environ;
    pid_t pid;

    environ = (char **)(uintptr_t)start->envp; /* execvp() looks for the program in its PATH */
    if (group >= 0)
        pid = cgroup_fork(group);
    else
        pid = vfork();
    if (pid == 0)
        become(start, f);
    environ = own;
    return pid;
}

static pid_t start_in_group(const struct keeper_start *start, int group, struct failure *ret)
{
    struct failure *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;
    int error;

    if (page == MAP_FAILED)
        return -1;
    pid = start_sharing(start, group, page);
    error = errno;
    *ret = *page;
    munmap(page, sizeof *page);
    errno = error;
    return pid;
}

int start_process(const struct keeper_start *start, int group, pid_t *ret_pid, char *why,
                  size_t why_size)
{
    volatile struct failure shared = {0};
    struct failure f = {0};
    pid_t pid;

    if (group >= 0) {
        pid = start_in_group(start, group, &f);
    } else {
        pid = start_sharing(start, group, &shared);
        f = shared;
    }
    if (pid < 0) {
        snprintf(why, why_size, "cannot start a process: %s", strerror(errno));
        return -errno;
    }
    if (f.error) { /* the child is dead, and waited for with all the others */
        say_why(start, f.step, f.error, why, why_size);
        return -f.error;
    }
    *ret_pid = pid;
    return 0;
}

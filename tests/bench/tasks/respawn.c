/* respawn.c - the least that a scheduler of one machine can do: wait, kill, spawn
 *
 * respawn N M COMMAND ARG...
 *
 * Runs N of them. When one ends, the others get SIGKILL, and when all have ended, N are started
 * again. SIGUSR1: from now on M, and at once; SIGTERM: the end. What a restart costs here is the
 * floor of what it can cost anywhere.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { MOST = 1024 };

extern char **environ;
static volatile sig_atomic_t grow, stop;

static void on_signal(int number)
{
    if (number == SIGUSR1)
        grow = 1;
    else
        stop = 1;
}

static void kill_all(pid_t *pids, int n)
{
    for (int i = 0; i < n; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

/* Until one ends, or a signal comes. */
static void await_end(pid_t *pids, int n)
{
    pid_t pid = waitpid(-1, NULL, 0);

    for (int i = 0; i < n; i++)
        if (pids[i] == pid)
            pids[i] = 0;
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = on_signal};
    int n = argc > 3 ? atoi(argv[1]) : 0, m = argc > 3 ? atoi(argv[2]) : 0;
    posix_spawnattr_t session;
    pid_t pids[MOST];

    if (n < 1 || m < n || m > MOST) {
        fputs("usage: respawn N M COMMAND ARG...\n", stderr);
        return 2;
    }
    posix_spawnattr_init(&session); /* as tasks have it: sessions share processors */
    posix_spawnattr_setflags(&session, POSIX_SPAWN_SETSID);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigaction(SIGUSR1, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    while (!stop) {
        if (grow)
            n = m;
        grow = 0;
        for (int i = 0; i < n; i++)
            if (posix_spawnp(&pids[i], argv[3], NULL, &session, argv + 3, environ) != 0)
                return 1;
        if (!grow && !stop)
            await_end(pids, n);
        kill_all(pids, n);
    }
    return 0;
}

/* service_daemon.h - a real pliantd in a temporary directory, for benches
 *
 * Errors  end the program, and the daemon with it
 */
#ifndef PLIANT_TESTS_BENCH_SERVICE_DAEMON_H
#define PLIANT_TESTS_BENCH_SERVICE_DAEMON_H

#include <sys/types.h>

#include "rpc/peer.h"

struct bench_daemon {
    char dir[64], state_dir[96];
    char agents[256], clients[256];
    pid_t pid;
    struct rpc_link *client;
    struct doc_file reply; /* of the last request */
};

void bench_daemon_open(struct bench_daemon *d); /* the directory, and the first life */
void bench_daemon_start(struct bench_daemon *d);
void bench_daemon_kill(struct bench_daemon *d); /* SIGKILL */
void bench_daemon_close(struct bench_daemon *d);

/* The reply is in d->reply. */
void bench_call(struct bench_daemon *d, enum message_type type, const char *body);
/* A number of PING's "counts". */
int64_t bench_count(struct bench_daemon *d, const char *name);
/* The job's id into ret[33]. */
void bench_submit(struct bench_daemon *d, const char *spec, char ret[33]);
/* How many tasks of a job run. */
uint32_t bench_running(struct bench_daemon *d, const char *job);

/* Of the daemon's process: seconds of processor, kB of memory ("VmRSS", "VmHWM"). */
double bench_cpu_seconds(pid_t pid);
double bench_memory_mib(pid_t pid, const char *what);

#endif

/* kin.h - processes that belong together, as /proc knows them
 *
 * A task's processes are found in three ways: by their group and session, by being a child of the
 * keeper (who is a subreaper, so what lost its parent comes to it), and by the mark that their
 * environment carries: PLIANT_WORKER_SOCKET names a file below the work directory of the agent.
 *
 * Errors  a process that ends while it is looked at is none
 */
#ifndef PLIANT_AGENT_KIN_H
#define PLIANT_AGENT_KIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define KIN_MARK "PLIANT_WORKER_SOCKET="

/* Call `visit` for each child of this process, dead ones that nobody waited for too. */
void kin_children(void (*visit)(void *ctx, pid_t pid), void *ctx);

/* Does the environment of `pid` have a variable that begins with `prefix`, "NAME=value"? */
bool kin_has_mark(pid_t pid, const char *prefix);

/* SIGKILL to all whose environment says that they were started below this work directory, until
 * none is left or `patience_ms` is over. Returns how many were found at first. */
size_t kin_kill_marked(const char *work_dir, int patience_ms);

/* How long the process has used processors, and what it holds in memory; false: gone. */
struct kin_usage {
    unsigned long long cpu_ms, rss_bytes;
};
bool kin_usage(pid_t pid, struct kin_usage *ret);

#endif

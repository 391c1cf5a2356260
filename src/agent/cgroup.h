/* cgroup.h - a control group (version 2) for each task, where the agent may make some
 *
 *     PARENT/              the agent's own group, or what --cgroup names
 *         agent-itself/    where the agent is if systemd has made a place for it: tasks go beside
 * it pliant-XXXXXX/   the home of one life of an agent, and its keeper ID/          a task: all
 * that it has ever started, whatever became of session, parent and environment [W-SIG-5]
 *
 * Groups are named by their absolute paths.
 *
 * Owner   who makes a group removes it; a home is removed by its keeper, or by the next agent
 * Errors  -errno; "not here" is one of them, and `err` says in a few words why
 * Source  Linux, Documentation/admin-guide/cgroup-v2.rst
 */
#ifndef PLIANT_AGENT_CGROUP_H
#define PLIANT_AGENT_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "spec/doc.h"

#define CGROUP_PATH 512 /* bytes of a path with its NUL */
#define CGROUP_SELF "agent-itself"
#define CGROUP_HOME "pliant-" /* a home's name begins so */

/* ---- homes ----------------------------------------------------------------------------------- */

/* The group below which this process may make some by itself. */
int cgroup_find_parent(char ret[CGROUP_PATH], struct spec_error *err);

/* Make a home, and try whether a process can be started in it. */
int cgroup_make_home(const char *parent, char ret[CGROUP_PATH], struct spec_error *err);

/* Is it a home, and there? */
bool cgroup_is_home(const char *path);

/* SIGKILL to all that is in it, until none is left or `patience_ms` is over; then its groups of
 * tasks are removed. */
void cgroup_clear_home(const char *home, int patience_ms);
/* And the home itself. */
void cgroup_remove_home(const char *home, int patience_ms);

/* ---- groups ---------------------------------------------------------------------------------- */

/* A new group: a descriptor for cgroup_fork(), or -errno. */
int cgroup_make(const char *path);

/* A child, born in the group, as fork() does it; but the parent goes on when the child has called
 * exec or has ended. */
pid_t cgroup_fork(int group);

void cgroup_kill(const char *path);
bool cgroup_is_populated(const char *path);
bool cgroup_holds(const char *path, pid_t pid);
/* What inotify tells of when the group has become empty. */
void cgroup_events_path(const char *path, char ret[CGROUP_PATH]);
/* Processes of it that the kernel has killed for want of memory; -1: not known here. */
int32_t cgroup_oom_kills(const char *path);

#endif

/* keeper.h - the keeper: a small process that is the parent of all tasks
 *
 * The agent forks it first of all, so it holds little memory and no thread. It is a subreaper: what
 * a task leaves behind comes to it. It starts tasks in sessions of their own, and in cgroups where
 * there is a home for them (cgroup.h), waits for them, and stops them by its own clock, so that a
 * stop goes on whatever happens to the agent.
 *
 * When the agent is gone without a word:
 *
 *     usual        GOODBYE is said for the agent at once, by a helper process; the tasks get
 *                  SIGTERM, and SIGKILL after their stop timeout, at most KEEPER_LAST_MS
 *     keep_tasks   they run on; for the orphan timeout the keeper waits at WORK_DIR/keeper.sock
 *                  for the next agent, and tells it what there is
 *
 * Shapes  both ends send struct keeper_message over a SOCK_SEQPACKET socket; KEEPER_SPAWN and
 *         KEEPER_TASK come with a descriptor, memory that holds a start block or the deployment
 * Units   _at_unix_ms wall clock; the rest are durations in ms
 * Flow    neither end blocks: the agent queues (agent/keep.c), the keeper remembers what it has not
 *         said yet, of which there is at most one start and one end a task
 */
#ifndef PLIANT_AGENT_KEEPER_H
#define PLIANT_AGENT_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEEPER_SOCKET "keeper.sock" /* in the work directory */
#define KEEPER_LOCK "keeper.lock"
#define KEEPER_LAST_MS 2000  /* of tasks whose agent is gone: SIGTERM to SIGKILL at most */
#define KEEPER_SWEEP_MS 5000 /* how long a task's descendants may resist SIGKILL (disk waits) */
#define KEEPER_TEXT 256

enum keeper_op {
    /* from the agent */
    KEEPER_SPAWN,          /* id, and a start block */
    KEEPER_STOP,           /* id, timeout_ms, at_unix_ms: SIGKILL no later; 0: no bound */
    KEEPER_SIGNAL,         /* code: a signal for all tasks */
    KEEPER_SIGNAL_ONE,     /* id, code: for the first process of a task alone */
    KEEPER_NOTE,           /* id, calls, seqs, text: what the next agent shall know */
    KEEPER_FORGET,         /* id: its end was told to the daemon */
    KEEPER_ORPHAN_TIMEOUT, /* timeout_ms */
    KEEPER_ENDPOINT,       /* text: where GOODBYE is to be said; "": nowhere */
    KEEPER_LEAVE,          /* the agent ends by itself: no GOODBYE, nothing to keep */
    /* from the keeper */
    KEEPER_IS,      /* id: incarnation of the agent that it serves */
    KEEPER_TASK,    /* to a new agent: id, pid, at_unix_ms (of its start), stopped (is to stop),
                       calls, seqs, text, and its deployment */
    KEEPER_STARTED, /* id, pid, at_unix_ms */
    KEEPER_ENDED,   /* id, how, stopped, code, oom_kills, at_unix_ms, text: why it did not start */
    KEEPER_ALL,     /* to a new agent: that was all */
};

enum keeper_end { KEEPER_EXITED, KEEPER_KILLED, KEEPER_NOT_STARTED };

struct keeper_message {
    uint32_t op;
    uint32_t how;
    int32_t code;      /* exit code or signal */
    bool stopped;      /* a stop had been asked for before */
    int32_t oom_kills; /* in its cgroup; -1: not known */
    uint64_t id;
    int64_t pid, timeout_ms, at_unix_ms;
    int64_t calls, seqs;
    char text[KEEPER_TEXT];
};

/* How a task is started; `about` is kept for the next agent. */
struct keeper_start {
    const char *cwd, *stdout_path, *stderr_path, *mark;
    const char *const *argv, *const *envp; /* NULL-terminated */
    const char *about;
    size_t about_size;
    int64_t stop_timeout_ms;
};

/* A start block, to be sent: a descriptor, or -errno. */
int keeper_pack(const struct keeper_start *start);

struct keeper_config {
    const char *work_dir, *node;
    uint64_t incarnation;
    bool keep_tasks;
    int64_t orphan_timeout_ms;
    const char *key_file, *server_key; /* for GOODBYE; NULL: none */
    const char *cgroup;                /* home of the tasks' groups; NULL: none */
};

/* Fork a keeper. 0 and the agent's end of the socket, or -errno. Borrows nothing afterwards. */
int keeper_fork(const struct keeper_config *cfg, int *ret_fd, int64_t *ret_pid);

/* One message with or without a descriptor (-1). 0, -EAGAIN, -EPIPE or another errno. */
int keeper_send(int fd, const struct keeper_message *m, int attached);
/* 1 and the message; 0: none there; -EPIPE: the other end is gone. *ret_attached is the caller's
 * to close. */
int keeper_receive(int fd, struct keeper_message *ret, int *ret_attached);

/* All of a descriptor's memory; NULL: no memory. The caller frees; closes the descriptor. */
char *keeper_slurp(int fd, size_t *ret_size);

/* Argument that makes the program say GOODBYE and end: --goodbye ENDPOINT NODE INCARNATION [KEY
 * SERVER_KEY]. */
#define KEEPER_GOODBYE "--goodbye"

#endif

/* fake_daemon.h - the daemon's end for one real pliant-agent, and a hand on its process
 *
 *     struct fake f;
 *     fake_open(&f);
 *     fake_agent(&f, "--slots", "2", NULL);
 *     fake_welcome(&f, ...);
 *     ...
 *     fake_close(&f);        kills what is left, removes the directory
 *
 * Every wait has a wide bound, after which the test fails.
 */
#ifndef PLIANT_TESTS_FAKE_DAEMON_H
#define PLIANT_TESTS_FAKE_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include "rpc/peer.h"
#include "spec/json_doc.h"

#define FAKE_WAIT_MS 60000

struct fake {
    char dir[64], work[80], endpoint[96];
    struct rpc_server *server;
    struct rpc_id peer;
    struct doc_file in;
    uint64_t epoch, sent, heard;
    bool stranger; /* started again: nobody is registered */
    pid_t agent;   /* 0: none */
    const char *node;
    int64_t heartbeat_interval_ms, heartbeat_timeout_ms, orphan_timeout_ms;
};

void fake_open(struct fake *f);
void fake_close(struct fake *f);
void fake_bind(struct fake *f); /* after fake_unbind(): a daemon that was started again */
void fake_unbind(struct fake *f);

/* Start pliant-agent with these arguments and those that it needs here; up to NULL. */
void fake_agent(struct fake *f, ...);
void fake_signal(struct fake *f, int signal);
int fake_wait(struct fake *f); /* the agent's end: exit code, or 128 + signal */
bool fake_has_ended(struct fake *f);

/* The next message of this type; signs of life are answered, all else is dropped. */
const struct doc *fake_next(struct fake *f, enum message_type type);
const struct doc *fake_hello(struct fake *f); /* and WELCOME */
void fake_send(struct fake *f, enum message_type type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The next TASKS in which attempt N of the test's job is in this state; its TASKSTATE. */
const struct doc *fake_state(struct fake *f, int subtask, int attempt, const char *state);

/* Members by path, "end.how"; "" and -1 if there is none. */
const char *fake_text(const struct doc *d, const char *path);
int64_t fake_int(const struct doc *d, const char *path);
bool fake_bool(const struct doc *d, const char *path);

#define FAKE_JOB "0123456789abcdef0123456789abcdef"
/* A name of a task of the test's job, without braces. */
#define FAKE_TASK "\"job\":\"" FAKE_JOB "\",\"vertex\":\"v\",\"subtask\":%d,\"attempt\":%d"

/* Deploy sh -c SCRIPT in the slot of the subtask's number; `more` are further members, each with a
 * comma before it. */
void fake_deploy(struct fake *f, int subtask, int attempt, const char *script, const char *more);
void fake_stop(struct fake *f, int subtask, int attempt, int timeout_ms);

/* A task has written a file in its private directory, `id` is the agent's number of it: */
void fake_until_ready(struct fake *f, int id);  /* "ready" */
int64_t fake_daemon_of(struct fake *f, int id); /* "daemon", with the pid of a descendant */
pid_t fake_keeper(const struct fake *f);        /* the agent's keeper */

bool fake_lives(int64_t pid); /* and is no zombie */
void fake_until_gone(int64_t pid);
void fake_until_file(const char *path);
/* A file as a string; the caller frees. */
char *fake_read_file(const char *path);
int64_t fake_now_ms(void);
void fake_pause(void); /* between two looks */

#endif

/* harness.h - a real pliantd in a directory of its own, agents that are only played, a client
 *
 *     struct service s;
 *     service_open(&s, "-D", "heartbeat.timeout=2 s", NULL);
 *     struct fake_agent *a = agent_join(&s, "n1", 2);
 *     submit(&s, "job.yaml text", id);
 *     WAIT(&s, agent_running(a) == 2);
 *     service_kill(&s, SIGKILL);
 *     service_start(&s);
 *     service_close(&s);
 *
 * A played agent speaks the protocol and starts no process: what it is told to deploy runs at once,
 * what it is told to stop has ended at once. Agents act only within WAIT() and calls. The daemon
 * ends with the test's process, whatever happens to that.
 *
 * Bounds  WAIT() fails the test after WAIT_MS, which is far more than anything takes
 */
#ifndef PLIANT_TESTS_SERVICE_HARNESS_H
#define PLIANT_TESTS_SERVICE_HARNESS_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <signal.h>
#include <sys/types.h>

#include "rpc/peer.h"
#include "util/vec.h"

#define WAIT_MS 60000
#define ARGS_MAX 32
#define AGENTS_MAX 1100

struct fake_task {
    char job[33], vertex[64];
    uint32_t subtask, attempt;
    int64_t slot;
    const char *state; /* "running", "ended", ... */
    const char *end;   /* JSON of "end", once it has ended */
    char *deployment;  /* as it was told, JSON */
};

struct fake_agent {
    struct service *service;
    struct rpc_link *link;
    char name[64];
    uint64_t incarnation, sequence, epoch;
    uint32_t slots;
    bool hangs;        /* STOP has no effect */
    bool slow_start;   /* what is deployed stays "starting" */
    bool silent;       /* receives and sends nothing */
    bool keep_tasks;   /* as HELLO says */
    const char *drain; /* JSON, of HELLO; NULL: null */
    bool welcome;      /* in a session */
    int64_t beat_at_ms;
    struct VEC(struct fake_task) tasks;
    /* of messages that are not answered here; NULL: they are ignored */
    void (*other)(struct fake_agent *a, uint16_t type, const struct doc_file *f);
    uint32_t n_hello, n_welcome, n_deploy, n_stop, n_resync, n_forget, n_stale, n_notice, n_beat,
        n_error;
    uint32_t n_finished; /* of those that were forgotten, with results that stay */
    uint32_t n_double;   /* deployed where another one still lives */
};

struct service {
    char dir[64], ipc[96], state_dir[96];
    const char *args[ARGS_MAX];
    size_t n_args;
    pid_t pid;        /* 0: none runs */
    bool no_standard; /* the next one starts with descriptors 0 to 2 closed */
    uint64_t epoch;
    char agents[256], clients[256], events[256];
    struct rpc_link *client;
    struct doc_file reply;
    struct rpc_refusal refusal;
    struct fake_agent *agent[AGENTS_MAX];
    size_t n_agents;
};

/* Makes the directory and starts a daemon with these options too; the list ends with NULL. */
void service_open(struct service *s, ...) __attribute__((sentinel));
void service_start(struct service *s); /* again, after service_kill() */
/* Send it and wait for its end; the exit code, or 128 + signal. */
int service_kill(struct service *s, int sig);
int service_wait(struct service *s); /* only wait */
void service_close(struct service *s);

/* Let all agents act for a moment. */
void service_pump(struct service *s);
int64_t harness_now_ms(void);

#define WAIT(s, condition)                                                                         \
    do {                                                                                           \
        int64_t until_ms_ = harness_now_ms() + WAIT_MS;                                            \
                                                                                                   \
        while (!(condition)) {                                                                     \
            cr_assert(harness_now_ms() < until_ms_, "not in time: %s", #condition);                \
            service_pump(s);                                                                       \
        }                                                                                          \
    } while (0)

/* Let agents act for so long, where nothing is to happen. */
void service_pass(struct service *s, int64_t ms);

/* ---- agents -------------------------------------------------------------------------------- */

struct fake_agent *agent_join(struct service *s, const char *name, uint32_t slots);
void agent_hello(struct fake_agent *a);
void agent_leave(struct fake_agent *a);     /* the connection is closed, and nothing is said */
void agent_reconnect(struct fake_agent *a); /* another connection, the same life */
void agent_send(struct fake_agent *a, enum message_type type, const char *body);
/* A task ends, and the agent says so. `end` is JSON. */
void agent_end(struct fake_agent *a, struct fake_task *task, const char *end);
uint32_t agent_running(const struct fake_agent *a); /* tasks */
/* A variable of a task, "" where it has none; fails the test if that is not there. */
const char *agent_variable(struct fake_agent *a, const char *vertex, uint32_t subtask,
                           const char *name);
void agent_forget_all(struct fake_agent *a); /* its tasks, as a new life does */

/* ---- the client ------------------------------------------------------------------------------ */

/* 0 and the reply in s->reply; -EPROTO and s->refusal. */
int call(struct service *s, enum message_type type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The spec is JSON or YAML; fails the test when it is refused. */
void submit(struct service *s, const char *spec, char ret_id[33]);
/* A text member of STATUS, "" where there is none. */
const char *status_text(struct service *s, const char *job, const char *key);
/* A number in STATUS: "restarts", or below a map: "slots", "used". */
int64_t status_number(struct service *s, const char *job, const char *key, const char *below);
int64_t parallelism(struct service *s, const char *job, const char *vertex);
bool state_is(struct service *s, const char *job, const char *state);

#endif

/* agent.h - pliant-agent from within: what its modules share
 *
 * One thread, one loop over epoll. A turn takes in what has come, runs what is due, and then tells
 * the daemon in one message which tasks have changed:
 *
 *     loop.c      descriptors, deadlines, turns
 *     session.c   the link with the daemon: HELLO .. GOODBYE, signs of life, fencing
 *     tasks.c     the table of tasks: DEPLOY, STOP, FORGET, states
 *     deploy.c    a DEPLOYMENT -> files and environment -> the keeper starts it
 *     keep.c      the keeper (keeper.h) as seen from here: queue, news, its death, adoption
 *     exchange.c   what tasks read and write of blocking edges; errands.c: files of it, in a thread
 *     worker.c    the sockets of tasks (docs/worker.md); worker_line.c reads a line
 *     logs.c      output of tasks: names, bounds, reading
 *     ports.c     ports held for worker groups
 *     drain.c     notice that the node will go, and the end of the agent
 *     probe.c     the command or metadata service that says so; metadata.c speaks HTTP
 *     place.c     the work directory: lock, incarnation, what an earlier life left behind; cgroups
 *
 * Units   _ms on the monotonic clock or durations; _unix_ms wall clock
 * Errors  out of memory ends the agent (exit code 4): the keeper then takes its tasks along
 */
#ifndef PLIANT_AGENT_AGENT_H
#define PLIANT_AGENT_AGENT_H

#include <signal.h>
#include <sys/types.h>

#include "agent/keeper.h"
#include "agent/say.h"
#include "agent/times.h"
#include "rpc/peer.h"
#include "spec/json_doc.h"
#include "util/vec.h"

#define AGENT_JOB_ID 33     /* bytes of a job's id with its NUL */
#define AGENT_NAME_MAX 128u /* bytes of a name */
#define AGENT_SLOTS_MAX 100000
#define CGROUP_AUTO "auto"
#define CGROUP_OFF "off"
#define FROZEN_MS 1000 /* a turn that comes so late did not come late because of load */

/* ---- how it was started ---------------------------------------------------------------------- */

struct agent_label {
    const char *key, *value;
};

enum probe_kind { PROBE_NONE, PROBE_COMMAND, PROBE_AWS, PROBE_GCP, PROBE_AZURE };

struct agent_options {
    int64_t slots;
    struct VEC(const char *) endpoints;
    const char *node, *zone, *domain, *address, *host; /* zone, domain, address: NULL: not given */
    struct VEC(struct agent_label) labels;
    const char *work_dir; /* absolute */
    const char *key_file, *server_key;
    const char *cgroup; /* where tasks have groups of their own: CGROUP_AUTO, CGROUP_OFF, a path */
    bool keep_tasks;
    int64_t orphan_timeout_ms, drain_timeout_ms;
    enum probe_kind probe;
    const char *probe_command;
    int64_t probe_interval_ms;
    sigset_t forwarded; /* signals that are handed to the tasks [W-SIG-4] */
};

/* ---- descriptors --------------------------------------------------------------------------------
 */

struct agent;

struct source {
    int fd; /* -1: none */
    void (*ready)(struct agent *a, void *self, uint32_t events);
    void *self;
};

/* ---- tasks
 * ---------------------------------------------------------------------------------------- */

struct task_key {
    char job[AGENT_JOB_ID];
    char vertex[AGENT_NAME_MAX + 1];
    uint32_t subtask, attempt;
};

enum task_state {
    TASK_WAITS, /* its slot holds an older attempt */
    TASK_STARTS,
    TASK_RUNS,
    TASK_STOPS,
    TASK_ENDED,
};

enum end_how { END_EXITED, END_KILLED, END_NOT_STARTED, END_STOPPED };

struct task_end {
    enum end_how how;
    int code; /* exit code or signal */
    bool oom, port_in_use, hung;
    int64_t at_unix_ms;
    char cause[1024]; /* "": none */
};

/* A checkpoint that was asked for and not answered yet. */
struct wanted_part {
    uint64_t id;
    bool savepoint;
    char *dir;
};

/* What it writes for a blocking edge. */
struct task_output {
    uint32_t edge, subpartitions;
    const char *to, *dir; /* vertex; name below the job's directory */
    uint64_t *bytes;      /* of each subpartition; NULL: not known yet */
    bool told;            /* by the task itself */
};

/* What it could not read; there: some. */
struct lost_input {
    bool there;
    uint32_t edge, subtask, attempt;
};

/* A collective or a report: what waits for the daemon, as JSON to be said again. */
struct pending {
    int64_t number; /* 0: none */
    char *kind;     /* of a collective; NULL: a report */
    char *body;     /* payload, or the report's metrics */
    char *name;     /* of the reported checkpoint; NULL: none */
    int64_t bytes;
};

struct task {
    struct task_key key;
    uint64_t id; /* the keeper's number of it */
    enum task_state state;
    bool changed;       /* to be told to the daemon */
    bool stop_was_said; /* STOP came while it ran, before any stop of our own */
    bool hung;          /* and is killed for it [W-GRP-8] */
    uint32_t slot;
    int64_t pid, started_unix_ms, stop_timeout_ms;
    int64_t health_interval_ms, health_timeout_ms; /* 0: no checks */
    struct task_end end;

    struct doc_file doc; /* its DEPLOYMENT; the strings below are borrowed from it */
    const char *name, *cwd, *restore, *root;
    const struct doc *command, *env, *peers;
    bool group, one_device; /* one_device: it sees that of its slot alone */
    uint32_t parallelism;
    char *text; /* the same as text, for the keeper */
    size_t text_size;
    char *dir; /* WORK_DIR/tasks/ID: socket, files that are told by the environment */

    /* the worker's socket */
    struct source door;
    struct worker *workers; /* connections */
    int64_t calls, seqs;    /* reports consumed, collectives released */
    struct pending report, entered;
    char *released;   /* payload of the last collective, JSON; NULL: not known any more */
    char *checkpoint; /* its own newest reported one; NULL: none */
    char *notice;     /* the preemption info, JSON; NULL: none */
    struct VEC(struct wanted_part) wanted;
    bool ended_data;

    /* blocking edges */
    const char *results; /* the directory of results; NULL: it reads and writes none */
    const struct doc *inputs;
    struct VEC(struct task_output) outputs;
    struct lost_input lost;
    bool prepares, prepared, measures; /* an errand is under way for it, was done, is under way */
};

/* ---- ports held for worker groups
 * ------------------------------------------------------------------ */

struct held_port {
    char job[AGENT_JOB_ID];
    int64_t attempt;
    int fd;
    uint16_t port;
    bool used; /* a task of the job was started since */
};

/* ---- the session
 * ----------------------------------------------------------------------------------- */

enum session_state {
    SESSION_DOWN,  /* no link; the next try is at open_at_ms */
    SESSION_HELLO, /* HELLO is said, or on its way */
    SESSION_UP,
};

struct session {
    enum session_state state;
    struct rpc_identity *identity; /* NULL: no keys */
    struct rpc_link *link;
    struct source source, watch; /* what comes; that there is a new connection */
    size_t endpoint;             /* which of them is tried */
    uint64_t sent, heard;        /* sequence numbers */
    uint64_t epoch;              /* the highest one seen */
    int64_t heartbeat_interval_ms, heartbeat_timeout_ms, orphan_timeout_ms;
    int64_t backoff_ms;
    int64_t open_at_ms, beat_at_ms, lost_at_ms, orphaned_at_ms; /* PLIANT_NEVER: not armed */
    uint64_t jitter;
};

/* ---- the end
 * ----------------------------------------------------------------------------------------- */

struct leaving {
    bool draining;            /* the node will go, and the daemon is or will be told */
    bool ends;                /* and the agent with it, once no task is left */
    bool hurry;               /* stop everything now */
    int64_t deadline_unix_ms; /* of the drain; 0: none */
    int64_t stop_at_ms, end_at_ms;
    char why[256];
    unsigned interrupts;
};

struct agent {
    const struct agent_options *opts;
    uint64_t incarnation;
    int lock, epoll;
    struct source signals;
    int64_t now_ms; /* as of the last look */
    bool again;     /* something is left to be done: no waiting */
    int exit_code;  /* -1: goes on */
    struct json body;
    struct doc_file in; /* of the message at hand */

    struct session session;
    struct leaving leaving;

    struct source keeper;
    int64_t keeper_pid;
    char *cgroup; /* home of the tasks' groups (cgroup.h); NULL: none */
    struct keeper_queue *keeper_queue;
    uint64_t next_id;

    struct VEC(struct task *) tasks;
    bool changed; /* some task is */
    struct VEC(struct held_port) ports;
    struct probe *probe;
    struct errands *errands; /* NULL: none yet */
    struct source errands_done;
    struct worker *closed; /* connections to be freed when the turn ends */
    int64_t health_at_ms;  /* when a connection is to be checked or judged; PLIANT_NEVER: none */
    int64_t look_at_ms;    /* at logs and usage of tasks; PLIANT_NEVER: none runs */
    int64_t usage_at_ms;
    unsigned long long oom_kills; /* of the system, when last looked */
};

/* ---- loop.c
 * -------------------------------------------------------------------------------------------- */

/* Run until the agent ends; the exit code. */
int agent_run(const struct agent_options *opts);
void agent_end(struct agent *a, int exit_code);
void agent_reap(struct agent *a); /* children that have ended */

void source_open(struct agent *a, struct source *s, int fd, uint32_t events,
                 void (*ready)(struct agent *a, void *self, uint32_t events), void *self);
void source_want(struct agent *a, struct source *s, uint32_t events);
void source_close(struct agent *a, struct source *s); /* closes the descriptor */
void source_leave(struct agent *a, struct source *s); /* leaves it open */

/* Memory, or the end of the agent. */
void *must(void *memory);
char *must_copy(const char *text);                 /* NULL: NULL */
char *must_copy_bytes(const char *text, size_t n); /* NUL-terminated */
char *must_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- session.c
 * ------------------------------------------------------------------------------------------- */

void session_start(struct agent *a);
void session_stop(struct agent *a); /* what is queued is sent for up to a second */
void session_receive(struct agent *a);
void session_expire(struct agent *a);
int64_t session_next_deadline(const struct agent *a);
void session_postpone(struct agent *a, int64_t ms); /* the agent was frozen for so long */
/* Send in a session; without one, or if the queue is full, the message is dropped: HELLO will say
 * what matters. */
void session_send(struct agent *a, enum message_type type, const struct json *body);
/* a->body, begun as an object. */
struct json *session_body(struct agent *a);
/* Say GOODBYE for an agent that has ended, from a process of its own. The exit code. */
int session_goodbye_for(int argc, char **argv);

/* ---- tasks.c
 * -----------------------------------------------------------------------------------------------
 */

void tasks_deploy(struct agent *a, const struct doc *body);
void tasks_stop(struct agent *a, const struct doc *body);
void tasks_forget(struct agent *a, const struct doc *body);
void tasks_adopt(struct agent *a, uint64_t id, char *text, size_t size,
                 const struct keeper_message *m); /* takes `text` */
void tasks_started(struct agent *a, const struct keeper_message *m);
void tasks_ended(struct agent *a, const struct keeper_message *m);
/* The keeper is gone, and all of its tasks with it. */
void tasks_all_killed(struct agent *a, const char *cause);
void tasks_stop_all(struct agent *a, int64_t timeout_ms, int64_t kill_at_unix_ms);
void tasks_tell(struct agent *a); /* what has changed */
void tasks_write(struct agent *a, struct json *j, bool all);
void tasks_look(struct agent *a); /* sizes of logs, usage */
void task_kill_hung(struct agent *a, struct task *t);
size_t tasks_living(const struct agent *a);
void tasks_free(struct agent *a);

struct task *task_find(const struct agent *a, const struct task_key *key);
struct task *task_by_id(const struct agent *a, uint64_t id);
void task_changed(struct agent *a, struct task *t);
bool task_key_read(struct agent *a, const struct doc *d, struct task_key *ret);
void task_key_write(struct json *j, const struct task_key *key); /* four members */
bool task_lives(const struct task *t);
void task_fail_to_start(struct agent *a, struct task *t, const char *cause);
void task_prepared(struct agent *a, struct task *t); /* it starts now */
void task_measured(struct agent *a, struct task *t); /* and so has ended */

/* ---- deploy.c
 * ------------------------------------------------------------------------------------------------
 */

/* Read t->doc into t. False: *err says why. */
bool deploy_read(struct task *t, struct spec_error *err);
/* Files, socket, environment; then the keeper is asked. */
void deploy_start(struct agent *a, struct task *t);
int make_dirs(const char *path); /* 0 or -errno */
/* Replace a file by rename. 0 or -errno. */
int write_file(const char *path, const char *text, size_t size);
void remove_tree(const char *path);
/* The same of a name in a directory, while goes_on(ctx), asked after each file (NULL: to the end).
 * 0, also if there is none, or -errno; -ECANCELED. */
int remove_below(int at, const char *name, bool (*goes_on)(void *ctx), void *ctx);

/* ---- exchange.c
 * ------------------------------------------------------------------------------------------------
 */

/* The members of a DEPLOYMENT. False: *err says why. */
bool exchange_read(struct task *t, struct spec_error *err);
/* What the last agent knew of an adopted task. */
void exchange_adopt(struct task *t);
void exchange_free(struct task *t);
/* True: the task has to wait, for task_prepared() or its end. */
bool exchange_prepare(struct agent *a, struct task *t);
int exchange_write_files(const struct task *t); /* 0 or -errno */
/* True: the task has ended with task_measured(). */
bool exchange_measure(struct agent *a, struct task *t);
void exchange_tell(const struct task *t, struct json *j);  /* members of "end" */
void exchange_drop(struct agent *a, const struct task *t); /* nobody will read what it wrote */
void exchange_discard(struct agent *a, const struct doc *body);
void exchange_close(struct agent *a);
/* What a task says itself. NULL, or why not. */
const char *exchange_take_output(const struct agent *a, struct task *t, uint32_t edge,
                                 const struct doc *bytes);
const char *exchange_take_lost(const struct agent *a, struct task *t, uint32_t edge,
                               uint32_t subtask);

/* ---- keep.c
 * ------------------------------------------------------------------------------------------------------
 */

/* A new keeper, before any thread is there if it is the first. 0 or -errno. */
int keep_start(struct agent *a);
/* Take over from the keeper of an earlier life: 1 adopted, 0 there is none. */
int keep_adopt(struct agent *a);
void keep_watch(struct agent *a); /* from now on its news are taken in */
void keep_tell(struct agent *a, const struct keeper_message *m, int attached); /* takes it */
void keep_note(struct agent *a, const struct task *t);
void keep_stop(struct agent *a);

/* ---- worker.c
 * ------------------------------------------------------------------------------------------------------
 */

bool worker_open_door(struct agent *a, struct task *t);
void worker_close_door(struct agent *a, struct task *t);
void worker_checkpoint(struct agent *a, const struct doc *body);
void worker_report_taken(struct agent *a, const struct doc *body);
void worker_released(struct agent *a, const struct doc *body);
void worker_notice(struct agent *a, const struct doc *body);
void worker_stopping(struct agent *a, struct task *t);
void worker_say_again(struct agent *a); /* a session began: HELLO has said what waits */
void worker_free_closed(struct agent *a);
void worker_check_health(struct agent *a); /* once all that has come is taken in */
void worker_write_pending(const struct task *t, struct json *j); /* members of TASKSTATE */
void pending_clear(struct pending *p);

/* ---- logs.c
 * ------------------------------------------------------------------------------------------------------------
 */

/* WORK_DIR/logs/JOB/VERTEX-SUBTASK.ATTEMPT.WHAT; the caller frees. */
char *logs_path(const struct agent *a, const struct task_key *key, const char *what);
char *logs_dir(const struct agent *a, const struct task_key *key);
int logs_prepare(struct agent *a, const struct task_key *key); /* directory; old ones go */
void logs_bound(const struct agent *a, const struct task *t);
void logs_read(struct agent *a, const struct doc *body);
/* Does the end of the log have one of these, in any case? */
bool logs_end_has(const struct agent *a, const struct task_key *key, const char *what,
                  const char *const *texts);

/* ---- ports.c
 * ------------------------------------------------------------------------------------------------------------
 */

void ports_reserve(struct agent *a, const struct doc *body);
void ports_used(struct agent *a, const char *job); /* a task of the job starts */
/* Those of a job that has no task left here, but not one that waits for its first. */
void ports_release_unused(struct agent *a, const char *job);
void ports_free(struct agent *a);

/* ---- drain.c
 * ------------------------------------------------------------------------------------------------------------
 */

/* The node will go. `deadline_unix_ms` 0: unknown when. Says DRAIN when a session is there. */
void drain_begin(struct agent *a, int64_t deadline_unix_ms, const char *why);
void drain_withdraw(struct agent *a);
void drain_write(const struct agent *a, struct json *j, const char *key); /* body or null */
void drain_signal(struct agent *a, int signal);
/* Of a name without SIG, "USR1"; 0: there is none. */
int signal_by_name(const char *name, size_t n);
void drain_expire(struct agent *a);
int64_t drain_next_deadline(const struct agent *a);

/* ---- probe.c
 * -------------------------------------------------------------------------------------------------------------
 */

int probe_start(struct agent *a);
void probe_expire(struct agent *a);
int64_t probe_next_deadline(const struct agent *a);
void probe_ended(struct agent *a, pid_t pid, int status); /* a child has ended: the probe's? */
bool probe_owns(const struct agent *a, pid_t pid);
void probe_stop(struct agent *a);

/* ---- place.c
 * -------------------------------------------------------------------------------------------------------------
 */

/* Lock the work directory, make its folders. 0, or -errno and *err. */
int place_open(struct agent *a, struct spec_error *err);
/* End what an earlier life left behind, then take a new incarnation [known trouble 108]. */
int place_clean(struct agent *a, struct spec_error *err);
int place_incarnation(struct agent *a, struct spec_error *err);
/* A home for the cgroups of this life's tasks, if there may be one; or that of an adopted keeper.
 */
int place_cgroup(struct agent *a, struct spec_error *err);
void place_adopt_cgroup(struct agent *a);

#endif

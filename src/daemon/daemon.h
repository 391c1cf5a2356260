/* daemon.h - pliantd from within: what its modules share
 *
 * One thread, one reactor. A turn takes in what has come (messages, timers, signals), runs the
 * schedulers, commits once, and only then lets out what follows from it:
 *
 *     reactor.c     poll -> take in -> run -> commit -> let out
 *     agents.c      sessions with agents: HELLO .. GOODBYE, liveness, fencing, reconciling
 *     facts.c       events for the cores: journal, step, actions (actions.c), snapshot, deadlines
 *     jobs.c        the registry
 *     slots.c       which job has which slot of which node (fair_share.c says how many)
 *     checkpoints.c a checkpoint from trigger to manifest (graph jobs); checkpoints_kept.c: those
 *                   that are there
 *     results.c     results of blocking edges (graph jobs)
 *     groups.c      worker groups: reports, collectives, ports, ranks, notices
 *     deploy.c      a DEPLOY action -> a DEPLOYMENT with its environment
 *     requests.c    what clients ask for; status.c: the documents they get
 *     events.c      the event stream
 *     recover.c     from the store to where the last daemon was
 *
 * While the store fails nothing is taken in but signs of life, and nothing is let out but them and
 * errors: no core steps, so nothing can get lost; agents say again what was not taken in.
 *
 * Units   _ms on the daemon's clock (clock.h), which starts near Unix time and never goes back;
 *         _unix_ms are wall-clock instants and only cross the edges
 */
#ifndef PLIANT_DAEMON_DAEMON_H
#define PLIANT_DAEMON_DAEMON_H

#include <pliant/pliant.h>

#include "daemon/clock.h"
#include "rpc/log.h"
#include "rpc/peer.h"
#include "spec/job_spec.h"
#include "spec/options.h"
#include "store/store.h"
#include "util/hash.h"
#include "util/vec.h"

/* ---- nodes ------------------------------------------------------------------------------- */

enum node_state {
    NODE_UP,      /* in session */
    NODE_AWAITED, /* known, without a session: the daemon or the connection has just come back,
                     or the agent's keeper holds the tasks */
};

#define SLOT_UNNAMED UINT32_MAX /* the job's core has not named it yet */

struct daemon_slot {
    struct daemon_job *job; /* NULL: free */
    uint32_t index;         /* the job's own number of it [pliant_slot_index], or SLOT_UNNAMED */
};

/* A job whose core knows the node: it was told NODE_UP of this life, and must be told the rest. */
struct daemon_tenant {
    struct daemon_job *job;
    uint32_t held, reclaimed; /* slots; reclaimed: asked back, and not yet released */
};

/* Elements of a list of JSON that a message gathers in a turn. */
struct gathered {
    char *v;
    size_t n, cap;
};

struct daemon_node {
    char *name;
    uint64_t incarnation;
    enum node_state state;
    bool keep_tasks;
    uint32_t n_slots, n_used; /* used: given to a job */
    struct daemon_slot *slots;
    struct VEC(struct daemon_tenant) tenants; /* of news of the node each of them is told */
    char *address, *host, *zone, *domain;     /* NULL: not given */
    struct pliant_label *labels;
    size_t n_labels;
    int64_t pid;

    char key[RPC_KEY];  /* who alone may say that it is this node; "": no keys */
    struct rpc_id peer; /* while NODE_UP */
    int connection;
    uint64_t seq_in, seq_out;
    bool behind;            /* a message to it was dropped: RESYNC at its next sign of life */
    int64_t heard_at_ms;    /* awake time */
    int64_t lost_at_ms;     /* awake time; when it counts as lost unless it speaks */
    int64_t resynced_at_ms; /* awake time; of the last RESYNC */
    int64_t answer_at_ms;   /* awake time; a heartbeat before that is not answered */

    bool draining, drained_by_operator;
    enum pliant_drain_reason drain_reason;
    int64_t drain_end_at_ms; /* PLIANT_NEVER: none was given */

    struct daemon_task *tasks; /* on it, as far as the daemon knows */

    /* gathered in this turn, one message each when it ends (deploy.c) */
    struct gathered deploy, stop, forget, discard;
    struct gathered peers;             /* of `deploy`: JSON by job */
    const struct daemon_job *peers_of; /* who is in it, as of its step; NULL: nobody */
    uint64_t peers_step;
    bool has_gathered;
    struct daemon_node *next_gathered;
    UT_hash_handle hh, by_peer, by_key; /* by_peer: while NODE_UP; by_key: with a key */
};

/* ---- jobs -------------------------------------------------------------------------------- */

/* Of a worker that failed while others of its group still came up (group_launch.c). */
struct held_end {
    enum pliant_death death;
    uint8_t exit_code;
    char cause[PLIANT_CAUSE_MAX];
};

/* What the host knows of an attempt, beside what the core does. Keyed by job, vertex, subtask,
 * attempt; from its deployment until its end was taken in or its node is lost. */
struct daemon_task {
    struct {
        uint32_t vertex, subtask, attempt;
    } key;
    struct daemon_job *job;
    struct daemon_node *node;
    struct daemon_task *prev, *next; /* on the node */
    uint32_t slot;                   /* of the node */
    int64_t pid;                     /* 0: unknown */
    int64_t since_unix_ms;
    uint64_t rss_bytes, cpu_ms;
    bool stopping;
    bool given_up;         /* the core counts it as lost [GIVE_UP_NODE] */
    struct held_end *held; /* NULL: none; it has failed, which the core is not told yet */
    uint64_t seen;         /* the last HELLO that named it */
    UT_hash_handle hh;
};

/* A node that the job's core gave up: its incarnation for the job is so much higher. */
struct daemon_life {
    char *node;
    uint32_t given_up; /* how often */
    bool open;         /* tasks of the old life may still be there */
    UT_hash_handle hh;
};

struct daemon_job {
    char id[STORE_ID];
    char *name, *spec_text, *file;
    int64_t order, submitted_unix_ms, ended_unix_ms;
    struct job_spec spec;
    struct pliant_config *config; /* resolved */
    struct options options;
    char *options_json;
    struct pliant_sched *sched; /* NULL: ended, or damaged */
    char *
        damaged; /* why its journal can't be replayed: kept out, its tasks left alone; NULL: fine */
    int64_t deadline_ms;          /* of the core (facts.c) */
    size_t at;                    /* in the heap of deadlines */
    uint64_t n_steps, n_snapshot; /* of the journal */
    struct daemon_task *tasks;
    uint32_t *ran; /* by vertex: the parallelism that it had last; its core forgets that */
    struct daemon_life *lives;
    uint32_t declared, declared_min; /* slots [DECLARE] */
    bool scan_slots;                 /* its share may have changed [DECLARE, requirements] */
    struct checkpoints *checkpoints; /* checkpoints.c */
    struct group *group;             /* groups.c; NULL: a graph job */
    struct waiting_reply *waiting;   /* requests.c: who waits for a savepoint */
    struct last_attempts *attempts;  /* logs.c: the last of each task, by vertex and subtask */
    int64_t ended_at_ms;             /* once it has ended */
    UT_hash_handle hh, by_end;       /* by_end: once it has ended */
};

/* ---- the daemon -------------------------------------------------------------------------- */

struct daemon_options {
    struct options all;
    const char *state_dir;
    bool insecure;
    int64_t heartbeat_interval_ms, heartbeat_timeout_ms, orphan_timeout_ms;
    int64_t snapshot_every; /* steps */
    int64_t ended_kept;     /* jobs */
    int64_t ended_kept_ms;  /* each of them; PLIANT_NEVER: no limit */
};

struct daemon {
    struct daemon_options opts;
    struct daemon_clock clock;
    struct store *store;
    struct rpc_auth *auth; /* NULL: no keys */
    struct rpc_server *agents_end, *clients_end, *events_end;
    uint64_t epoch;
    int64_t started_at_ms;
    struct daemon_node *nodes;    /* by name */
    struct daemon_node *sessions; /* those that are up, by the id of their connection */
    struct daemon_node *keyed;    /* those with a key, by it */
    struct daemon_job *jobs;      /* by id, in order of submission */
    int64_t next_order;
    struct daemon_job *kept; /* those that have ended, by id, in the order of their ends */
    struct VEC(struct daemon_job *) ended, removed; /* in this turn */
    struct fact_queue *facts; /* events for cores, to be taken in order (facts.c) */
    struct outbox *out;       /* what leaves after the commit (outbox.c) */
    struct agents *agents;
    struct reactor *reactor;
    struct deploying *deploying;
    struct requests *requests;
    struct event_stream *events;
    struct results *results;
    uint64_t event_sequence; /* of the last event that was put out */
    bool share_slots;        /* slots came, went, or were given back */
    bool tidy_after_commit;  /* checkpoints_tidy() has something to delete */
    int64_t groups_at_ms;    /* groups_expire() has nothing to do before; PLIANT_NEVER: nothing */
    bool store_failed;
    bool ending, stop_jobs;
    /* since the start, for PING */
    uint64_t turns, steps;
};

/* ---- facts.c ----------------------------------------------------------------------------- */

/* Take an event into a job's core in this turn: it is journaled, stepped, and its actions are
 * carried out, after the events already queued. Copies what it needs. -ENOMEM ends the daemon. */
void job_fact(struct daemon *d, struct daemon_job *job, const struct pliant_event *ev);
/* Run until no fact is left and no core is due at `now`. */
void jobs_run(struct daemon *d);
int64_t jobs_next_deadline(const struct daemon *d);         /* PLIANT_NEVER: none */
void facts_watch(struct daemon *d, struct daemon_job *job); /* its core's deadlines, from now on */
void facts_unwatch(struct daemon *d, struct daemon_job *job);
void facts_open(struct daemon *d);
void facts_close(struct daemon *d);

/* ---- jobs.c ------------------------------------------------------------------------------ */

/* Decode without registering: spec, config and options layered (daemon's < job's < these). */
int job_decode(struct daemon *d, const char *spec, size_t size, const char *file,
               const struct doc *options, const struct doc_file *f, struct daemon_job **ret,
               struct spec_error *err);
void job_free(struct daemon_job *job); /* one that is not registered */
/* A new job from its text, stored with this turn. `id` NULL: a new one. 0, -EINVAL (*err), -EEXIST.
 */
int job_submit(struct daemon *d, const char *spec, size_t size, const char *file,
               const struct doc *options, const struct doc_file *f, const char *id,
               struct daemon_job **ret, struct spec_error *err);
/* An option that names a place in the file system, without "file://". */
const char *job_path_option(const struct daemon_job *job, const char *key);
const char *path_of_option(const char *text);              /* the same of its value */
int64_t job_stop_timeout_ms(const struct daemon_job *job); /* from SIGTERM to SIGKILL */
struct daemon_job *job_find(struct daemon *d, const char *id_prefix_or_name,
                            struct spec_error *err);
bool job_is_id(const char *s); /* all of one, whether there is such a job or not */
struct daemon_task *job_task(struct daemon_job *job, const struct pliant_task *task); /* or NULL */
struct daemon_task *job_task_add(struct daemon_job *job, const struct pliant_task *task,
                                 struct daemon_node *node, uint32_t slot);
void job_task_remove(struct daemon_task *task);
/* The documents of a job that has ended, from the store (JSON, until the next call on that); NULL:
 * none. The registry keeps only who the job was. */
const char *job_final(struct daemon *d, const struct daemon_job *job);
/* The node's incarnation as the job's core is to know it; every fact about a node has this one. */
uint64_t job_incarnation(const struct daemon_job *job, const struct daemon_node *node);
struct daemon_life *job_life(struct daemon_job *job, const char *node); /* made if missing */
void job_lives_put(struct daemon *d, const struct daemon_job *job);     /* into the store */
void job_ended(struct daemon *d, struct daemon_job *job);               /* its core is done */
/* Nothing remembers it any more, from this turn's commit on. Not one that lives; what a damaged one
 * may have outside of the registry is let go of here. */
void job_remove(struct daemon *d, struct daemon_job *job);
void jobs_expire(struct daemon *d);               /* removes ended ones: too many, too old */
int64_t jobs_next_expiry(const struct daemon *d); /* PLIANT_NEVER: none */
void jobs_sweep(struct daemon *d); /* after a commit: what ended and removed jobs had is freed */
void job_kept(struct daemon *d, struct daemon_job *job); /* it has ended, after the others kept */
/* A job as the store has it, without its core; then into the registry, with it or without. */
int job_of_store(const struct store_job *row, struct daemon_job **ret, struct spec_error *err);
void job_register(struct daemon *d, struct daemon_job *job);
void jobs_close(struct daemon *d);

/* ---- actions.c --------------------------------------------------------------------------- */

void actions_carry_out(struct daemon *d, struct daemon_job *job, const struct pliant_actions *acts);
/* The event about a task's new state. */
void tell_task(struct daemon *d, const struct daemon_job *job, const struct daemon_task *task,
               enum pliant_task_state state, const char *cause);

/* ---- agents.c ---------------------------------------------------------------------------- */

void agents_take(struct daemon *d, const struct rpc_message *m); /* a message from an agent */
void agents_gone(struct daemon *d);                              /* closed connections */
void agents_expire(struct daemon *d);
int64_t agents_next_deadline(const struct daemon *d); /* awake time */
struct daemon_node *node_find(struct daemon *d, const char *name);
void node_lose(struct daemon *d, struct daemon_node *node, const char *why);
void node_drain(struct daemon *d, struct daemon_node *node, enum pliant_drain_reason reason,
                int64_t end_at_ms, bool by_operator);
void node_undrain(struct daemon *d, struct daemon_node *node);
/* A task is over, for whatever reason: it is forgotten here. */
void node_task_over(struct daemon *d, struct daemon_task *task);
void node_await(struct daemon *d, struct daemon_node *node, int64_t usual_ms); /* to come back */
int node_of_store(struct daemon *d, const struct store_node *row, struct spec_error *err);
void agents_resync(struct daemon *d); /* all of them say HELLO */
void agents_close(struct daemon *d);

/* ---- slots.c, fair_share.c ---------------------------------------------------------------- */

/* Shares anew what is there: grants and reclaims become facts of the jobs. Cheap when nothing
 * changed. Needs a queue without facts: call it after jobs_run(), and jobs_run() again while it
 * answers true (there are new facts). */
bool slots_share(struct daemon *d);
/* A life of a node begins: node->n_slots is set, `slots` NULL. */
void slots_of_new_node(struct daemon *d, struct daemon_node *node);
/* It ends: each tenant is told NODE_LOST, nobody has its slots. Call it before it is freed. */
void slots_of_lost_node(struct daemon *d, struct daemon_node *node);
/* It drains, or does no longer: each tenant is told. node->draining and the rest are set. */
void slots_of_drained_node(struct daemon *d, struct daemon_node *node);
/* After recovery, when cores are restored and nodes have their `slots` from the store. */
void slots_recovered(struct daemon *d);
void slots_released(struct daemon *d, struct daemon_job *job, const pliant_slot_id *slots,
                    uint32_t n);
/* What a job that is submitted now would get at first: each(node, slots). Changes nothing. */
void slots_preview(struct daemon *d, uint32_t minimal, uint32_t desired,
                   void (*each)(void *ctx, const struct daemon_node *node, uint32_t slots),
                   void *ctx);
void slots_of_ended_job(struct daemon *d, struct daemon_job *job);
/* The core counts the node as lost [GIVE_UP_NODE]: the job is no tenant any more, gets nothing
 * there (daemon_life.open), and keeps its slots until `over`: its last task there has ended. */
void slots_given_up(struct daemon *d, struct daemon_job *job, struct daemon_node *node, bool over);
/* That is so, and tasks of then may still be there. */
bool node_has_open_life(const struct daemon_node *node, const struct daemon_job *job);
/* The node's slot that the job knows as (node, index); UINT32_MAX: none. When the core names a slot
 * for the first time, it becomes one of those that the job was given, and that is stored. */
uint32_t slots_find(struct daemon *d, struct daemon_node *node, struct daemon_job *job,
                    uint32_t index);

struct share_claim { /* in order of submission */
    uint32_t minimal, desired, held;
    uint32_t target; /* out */
    bool satisfied;  /* out: the target is not below the minimum */
};
/* Minimum first in the order of the claims, then max-min fair up to desired. Who can't get his
 * minimum in full gets what nobody else wants. O(n), 32 times. */
void fair_share(struct share_claim *claims, size_t n, uint32_t slots);

/* ---- deploy.c ---------------------------------------------------------------------------- */

void deploy_task(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                 pliant_slot_id slot, uint64_t restore);
void stop_task(struct daemon *d, struct daemon_job *job, struct daemon_task *task);
/* One whose job may be unknown (`job` is its id); timeout 0: SIGKILL at once. */
void stop_stray(struct daemon *d, struct daemon_node *node, const char *job, const char *vertex,
                uint32_t subtask, uint32_t attempt, int64_t timeout_ms);
/* finished: what it wrote stays. */
void forget_task(struct daemon *d, struct daemon_node *node, const char *job, const char *vertex,
                 uint32_t subtask, uint32_t attempt, bool finished);
/* `result` is EDGE/SUBTASK.ATTEMPT in ROOT/JOB; NULL: all that the job has there. */
void discard_results(struct daemon *d, struct daemon_node *node, const char *job, const char *root,
                     const char *result);
void deploy_gathered(struct daemon *d); /* what was gathered becomes messages */
void deploy_close(struct daemon *d);
void deploy_forget_node(struct daemon *d, struct daemon_node *node); /* nothing gathered for it */

/* ---- checkpoints.c, checkpoints_kept.c ---------------------------------------------------- */

void checkpoints_trigger(struct daemon *d, struct daemon_job *job, const struct pliant_action *act);
void checkpoints_part(struct daemon *d, struct daemon_job *job, const struct doc_file *f,
                      const struct doc *part);
void checkpoints_told(struct daemon *d, struct daemon_job *job, uint64_t id); /* its core, of one */
void checkpoints_task_over(struct daemon *d, struct daemon_job *job,
                           const struct pliant_task *task);
void checkpoints_lost(struct daemon *d, struct daemon_job *job); /* after recovery: none goes on */
/* The directory of a completed checkpoint; NULL: unknown. */
const char *checkpoints_path(struct daemon *d, struct daemon_job *job, uint64_t id);
/* Has this subtask a part in it, by its manifest? Cheap, as the next: asked for each task that is
 * deployed. */
bool checkpoints_has_part(struct daemon *d, struct daemon_job *job, uint64_t id,
                          pliant_vertex_id vertex, uint32_t subtask);
/* The vertex's parallelism when it was taken; 0: that is not known. */
uint32_t checkpoints_parallelism(struct daemon *d, struct daemon_job *job, uint64_t id,
                                 pliant_vertex_id vertex);
/* Workers of a group have reported one, and it is registered: what was asked for is there. */
void checkpoints_reported(struct daemon *d, struct daemon_job *job, const char *path,
                          uint64_t bytes);
void checkpoints_free(struct daemon_job *job);
void checkpoints_tidy(struct daemon *d); /* after a commit: delete what retention lets go */
/* Rows of a document, newest first. */
void checkpoints_write(struct daemon *d, struct daemon_job *job, struct json *j);

/* ---- results.c ---------------------------------------------------------------------------- */

int results_check(const struct daemon_job *job, struct spec_error *err); /* its options */
bool results_written_by(const struct daemon_job *job, pliant_vertex_id vertex);
/* Members of a DEPLOYMENT. */
void results_write_deployment(struct daemon *d, const struct daemon_job *job,
                              const struct pliant_task *task, struct json *j);
void results_release(struct daemon *d, struct daemon_job *job,
                     const struct pliant_action *act); /* a RELEASE_RESULT action */
void results_of_ended_job(struct daemon *d, struct daemon_job *job);
void results_of_damaged_job(struct daemon *d, struct daemon_job *job); /* it is removed */
void results_node_back(struct daemon *d, struct daemon_node *node);    /* its session begins */
void results_discarded(struct daemon *d, const struct doc *body);
void results_recover(struct daemon *d);
void results_close(struct daemon *d);

/* ---- groups.c and those that groups_impl.h names --------------------------------------------- */

/* Does the job say which run it is? */
int group_check(const struct daemon_job *job, struct spec_error *err);
/* Take the run's lease and read its manifest; of a graph job nothing. -EBUSY, -EUCLEAN, -EINVAL
 * with *err; the job has then no group. */
int group_open(struct daemon *d, struct daemon_job *job, struct spec_error *err);
/* The core is there, new or recovered: it is told what the run has registered without it. */
void group_begin(struct daemon *d, struct daemon_job *job);
void group_free(struct daemon_job *job);
/* The answer to SUBMIT names a run that is gone on with [W-DRV-3]. */
void group_write_resumed(struct daemon *d, const struct daemon_job *job, struct json *j);
const char *group_run_dir(const struct daemon_job *job);
char *group_restore_dir(const struct daemon_job *job); /* "": from the start; the caller frees */

/* A row of a checkpoint in the run: it will say so when the run lets that go. */
void group_note_row(struct daemon_job *job, const struct store_checkpoint *row);

/* What agents say of live tasks of the group. */
void group_report(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                  const struct doc_file *f, const struct doc *report);
void group_enter(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                 const struct doc_file *f, const struct doc *enter);
void group_port(struct daemon *d, const struct daemon_node *node, const struct doc_file *f,
                const struct doc *port);
void groups_node_back(struct daemon *d, struct daemon_node *node); /* its session begins */
void groups_node_lost(struct daemon *d, const struct daemon_node *node);

/* Actions. RESERVE: all of the slots are the job's; the answer comes later. */
void group_reserve(struct daemon *d, struct daemon_job *job, const struct pliant_action *act);
void group_register(struct daemon *d, struct daemon_job *job, const struct pliant_action *act);
void group_report_taken(struct daemon *d, struct daemon_job *job, const struct pliant_action *act);

/* A worker has failed: true if the core is told later, since its group is still coming up. */
bool group_holds_end(struct daemon *d, struct daemon_task *task, const struct pliant_event *failed);
void group_is_up(struct daemon *d, struct daemon_job *job);
bool group_cancels_held(struct daemon *d, struct daemon_task *task); /* false: it is none */

/* A node with some of its workers drains, or does no longer: all ranks are told. */
void group_notify(struct daemon *d, struct daemon_job *job);
void groups_node_undrained(struct daemon *d, const struct daemon_node *node);
/* When its workers are killed at the latest, since nodes go; PLIANT_NEVER [W-SIG-3]. */
int64_t group_kill_at_ms(const struct daemon_job *job);

void groups_expire(struct daemon *d);
int64_t groups_next_deadline(const struct daemon *d);

/* ---- requests.c, status.c, events.c --------------------------------------------------------- */

void requests_take(struct daemon *d, const struct rpc_message *m);
void requests_savepoint_ended(struct daemon *d, struct daemon_job *job, const char *path,
                              const char *cause);
void requests_refused(struct daemon *d, struct daemon_job *job,
                      const struct pliant_action *act); /* a REFUSED action */
void logs_note_attempt(struct daemon_job *job, const struct pliant_task *task);
void logs_write_attempts(const struct daemon_job *job, struct json *j); /* for status_final() */
void logs_free(struct daemon_job *job);
void requests_log(struct daemon *d, const struct doc_file *f, const struct doc *log);
void requests_expire(struct daemon *d);
int64_t requests_next_deadline(const struct daemon *d);               /* awake time */
void requests_of_ended_job(struct daemon *d, struct daemon_job *job); /* nobody waits any more */
void requests_close(struct daemon *d);

void status_of_job(struct daemon *d, struct daemon_job *job, const char *key, struct json *j);
/* All documents of a job that ends, for store_job_end() and for later requests; while it still has
 * its core, and ended_unix_ms is set. Writes the members of an object, the first of all in it. */
void status_final(struct daemon *d, struct daemon_job *job, struct json *j);

/* Begin an event; the caller adds members and calls events_end(). */
struct json *events_begin(struct daemon *d, const char *kind, const struct daemon_job *job);
void events_end(struct daemon *d);
void events_beat(struct daemon *d);                   /* if nothing was said for 5 s */
int64_t events_next_deadline(const struct daemon *d); /* awake time */
void events_close(struct daemon *d);

/* ---- outbox.c ------------------------------------------------------------------------------- */

/* Each keeps a copy until outbox_flush(), which sends in this order. */
void outbox_to_node(struct daemon *d, struct daemon_node *node, enum message_type type,
                    const struct json *body);
struct reply_to {
    struct rpc_id peer;
    uint64_t sequence;
    enum message_type of;
};
void outbox_reply(struct daemon *d, const struct reply_to *to, const struct json *body);
/* The body of an ERROR, which the caller frees. */
void error_body(struct json *j, const char *code, const char *text, enum message_type of);
void outbox_refuse(struct daemon *d, const struct reply_to *to, const char *code,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
void outbox_event(struct daemon *d, const struct json *body); /* its number: ++d->event_sequence */
void outbox_flush(struct daemon *d);
/* Sends at once what was put in since the mark. */
size_t outbox_mark(const struct daemon *d);
void outbox_flush_since(struct daemon *d, size_t mark);
/* The commit failed: who only asked, or was refused, gets his answer; who wanted a change hears
 * that it may hold later; the rest waits until the store works. */
void outbox_commit_failed(struct daemon *d);
/* The session is over: what was to go to the node goes nowhere. */
void outbox_forget_node(struct daemon *d, const struct daemon_node *node);
void outbox_open(struct daemon *d);
void outbox_close(struct daemon *d);
/* At once, whatever the store does: signs of life, errors. */
void send_now(struct daemon *d, struct daemon_node *node, enum message_type type,
              const struct json *body);

/* ---- recover.c, reactor.c -------------------------------------------------------------------- */

int daemon_recover(struct daemon *d, struct spec_error *err);
int daemon_open(struct daemon *d, struct spec_error *err);
int daemon_run(struct daemon *d); /* until a signal or SHUTDOWN; the exit code */
void daemon_close(struct daemon *d);
/* One line of log a minute about what a peer sends, and none about the many beyond that. */
bool may_complain(struct daemon *d, const struct rpc_message *m);

/* The memory that somebody asked for, or the end of the daemon (exit code 4): what was acknowledged
 * is in the store, and the next daemon goes on from there. */
void *need(void *memory);
char *need_text(const char *s);  /* a copy; NULL of NULL */
char *need_json(struct json *j); /* what was written, as a text; frees the buffer */

#endif

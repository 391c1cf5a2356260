/* groups_impl.h - what the modules about worker groups share
 *
 *     groups.c             what is kept of one; reports; what is due
 *     group_run.c          the run: manifest, lease, registrations
 *     group_launch.c       a launch: port, environment, workers that end while the others come up
 *     group_collectives.c  checkpoint_dir() and get_preemption_info() of all ranks
 *     group_notices.c      nodes that will go
 *     group_env.c          variables; barrier.c: who is in and who is missing. Both pure
 *
 * What must outlive the daemon beside the core's state stands in notes of the store, written in the
 * turn in which agents are told: an answer that got lost can be given again.
 */
#ifndef PLIANT_DAEMON_GROUPS_IMPL_H
#define PLIANT_DAEMON_GROUPS_IMPL_H

#include "daemon/barrier.h"
#include "daemon/daemon.h"
#include "daemon/group_env.h"
#include "daemon/manifest.h"

/* A checkpoint that this job has registered, by the core's number. */
struct registered {
    uint64_t id;
    bool savepoint;
    char *name; /* of its directory */
    uint64_t bytes;
    int64_t at_unix_ms;
};

struct group {
    char *run_dir; /* absolute */
    struct run_manifest run;
    struct run_keep keep;
    char *score_metric;
    int lease;
    bool resumed; /* the run was there before the job */
    struct VEC(struct registered) registered;

    /* the launch that is prepared: a port is asked for (group_launch.c) */
    uint32_t plan;               /* 0: none */
    uint32_t n_planned, offered; /* slots: of the plan, and when it was made */
    char *master;                /* name of rank 0's node */
    int64_t prepared_by_ms;
    /* what the present launch has */
    char *address;
    uint16_t port;
    struct VEC(uint16_t) used; /* ports of the last attempts, oldest first */
    struct group_seat *seats;  /* [n_seats], as of step `seats_step` */
    uint32_t n_seats, n_nodes;
    uint64_t seats_step;
    int64_t stop_at_ms; /* nodes of it will go: it is stopped then; PLIANT_NEVER */

    /* of the attempt whose workers speak; all ranks share its number */
    uint32_t attempt;       /* 0: none has spoken */
    struct barrier reports; /* of the call behind `taken` */
    int64_t taken;          /* calls of each rank that are over */
    char *taken_error;      /* the last of them came to nothing; NULL: it did not */
    char *failed;           /* why the registration at hand did, until it is told */
    uint64_t *bytes;        /* [n ranks] of the call behind `taken` */
    char *metrics;          /* rank 0's, of call `metrics_call` */
    int64_t metrics_call;
    struct collective collective;
};

struct group *group_new(const struct daemon_job *job, const char *run_dir);
uint64_t group_bytes(const struct group *g); /* that the ranks have reported, all together */
int64_t group_waited_ms(const struct daemon *d, const struct barrier *b);
/* A task of the group speaks: its attempt is the one that counts from now on. */
void group_hear(struct daemon *d, struct daemon_job *job, const struct pliant_task *task);
/* Something is due then: groups_expire() will look. */
void groups_wake(struct daemon *d, int64_t at_ms);
/* To the agent of a task, if it is in session. */
void group_send(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                enum message_type type, const struct json *body);
struct json *group_body(struct json *j, const struct daemon_job *job,
                        const struct pliant_task *task);
/* A note of the job, read and decoded: false if there is none. */
bool group_note(struct daemon *d, const struct daemon_job *job, const char *key,
                struct doc_file *f);
void group_put_note(struct daemon *d, const struct daemon_job *job, const char *key,
                    struct json *j); /* ends the object, frees the buffer */

/* What was decoded, if it is a text, else NULL. The caller frees. */
char *group_text(const struct doc *value);

/* ---- group_launch.c ---- */

void launch_recover(struct daemon *d, struct daemon_job *job);
void launch_due(struct daemon *d, struct daemon_job *job);
void launch_free(struct group *g);

/* ---- group_collectives.c ---- */

#define NOTE_COLLECTIVE "group-collective"

void collectives_recall(struct daemon_job *job, const struct doc_file *f); /* from its note */
void collectives_due(struct daemon *d, struct daemon_job *job);

#endif

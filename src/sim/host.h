/* host.h - what a cluster does about the scheduler's actions, in simulation
 *
 * The host keeps the nodes, the attempts of every subtask that live, and the answers that are on
 * their way. It tells no time and takes no step: sim.c shows it each step's actions and comes back
 * when an answer is due.
 *
 * Units   milliseconds of the virtual clock
 * Owner   borrows job, scheduler and sims; host_free() frees the rest
 * Errors  -ENOMEM
 */
#ifndef PLIANT_SIM_HOST_H
#define PLIANT_SIM_HOST_H

#include "sim/cluster.h"
#include "sim/queue.h"
#include "spec/job_spec.h"
#include "util/prng.h"

/* What things cost in the simulated cluster. */
struct sim_latency {
    int64_t deploy_ms;     /* from DEPLOY to the task's start */
    int64_t restore_ms;    /* from there to TASK_RUNNING, where a checkpoint is read */
    int64_t cancel_ms;     /* from CANCEL to TASK_CANCELED */
    int64_t checkpoint_ms; /* from a checkpoint's or savepoint's trigger to its completion */
};

/* How far the cluster is with an attempt. */
enum phase { PHASE_OVER, PHASE_STARTING, PHASE_INITIALIZING, PHASE_RUNNING, PHASE_CANCELING };

struct attempt {
    uint32_t number;
    enum phase phase;
    uint32_t row; /* of its node in the cluster, in one life of it */
    uint64_t incarnation;
    uint32_t older; /* row + 1 in `older` of one that began before it; 0: none */
};

struct attempts VEC(struct attempt);

struct host {
    const struct pliant_alloc *alloc;
    const struct pliant_job *job;
    const struct pliant_sched *sched;
    struct sim_latency latency;
    const struct job_vertex_spec *sims; /* [n_vertices], or NULL: nothing special */
    struct prng prng;                   /* draws from the ranges in `sims` */
    bool answers_stop; /* the host says how the savepoint of a stop ends; else the trace does */
    uint64_t launches_told; /* of a worker group: the trace says how the next ones end */
    struct cluster cluster;
    struct queue queue;
    struct attempts *vertices; /* [n_vertices] by id - 1, then by subtask: the last attempt */
    struct attempts older;     /* of subtasks with several at a time */
    uint32_t unused_older;     /* row + 1 of the first unused one, which names the next */
    uint32_t n_vertices;
    uint32_t declared; /* slots that the job wants; 0 after its end */
    uint64_t epoch;    /* of tasks that were started together; over when one is canceled */
    bool broken;       /* a task of the epoch failed: no checkpoint of it can be complete */
    uint64_t stop_id;  /* the savepoint that a stop waits for; 0: none */
    struct VEC(struct pliant_output) outputs; /* in the event that host_answer() made */
    struct VEC(uint64_t) bytes;               /* of all of them */
    char dir[PLIANT_CAUSE_MAX + 1];           /* of the last savepoint asked for */
    char path[PLIANT_CAUSE_MAX + 64];         /* in the event that host_answer() made */
    bool creation_fails;                      /* the next answer to RESERVE, with this cause */
    bool creation_recoverable;
    char creation_cause[PLIANT_CAUSE_MAX + 1];
};

int host_init(struct host *h, const struct pliant_job *job, const struct pliant_alloc *alloc);
void host_free(struct host *h);

/* A step took *ev and gave *acts. */
int host_on_step(struct host *h, int64_t now_ms, const struct pliant_event *ev,
                 const struct pliant_actions *acts);

/* Take the answer that is due first; false: it is about something that is over. Strings in
 * *ret are valid until the next call. */
bool host_answer(struct host *h, struct pliant_event *ret);

/* The attempt that stands for a subtask, else the last one; NULL when none lives. */
const struct attempt *host_attempt(const struct host *h, pliant_vertex_id vertex, uint32_t subtask);

#endif

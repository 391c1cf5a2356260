/* model_batch.h - what must hold of a scheduler that decides parallelism from data
 * (jobmanager.scheduler: adaptive-batch): the part of the model that knows partitions
 *
 *   decisions  a vertex gets its tasks once, when all tasks that it reads from have finished, and
 *              as many as its bounds allow; what is said of its bytes is what was written
 *   reads      together the tasks of a vertex read all that was written for each of its edges:
 *              once, or every task all of it where it is broadcast; only where a skewed key may be
 *              split they read the other side more than once
 *   starts     a task starts when all that it reads was made and is still there, and stops for
 *              something that has happened since
 *   results    one that is released is there, and nobody reads it; a task that starts anew has none
 *
 * Partitions, subpartitions and bounds are counted here again, from the rules: nothing comes from
 * src/graph but the job. The scheduler is asked for what tasks read, once, when they are there.
 *
 * Owner   model_batch_free(); borrows job and config
 * Source  sections 1.4 and 5.1 to 5.4 of the rules of failover
 */
#ifndef PLIANT_SIM_MODEL_BATCH_H
#define PLIANT_SIM_MODEL_BATCH_H

#include <pliant/pliant.h>

#include "util/vec.h"

struct model_batch_task {
    bool finished; /* an attempt has, and none has begun since */
    uint32_t life; /* of the node that it finished on */
    uint32_t live; /* attempts */
    uint64_t seen; /* of the causes, when the last one began */
};

struct model_batch_vertex {
    bool told;  /* there was a DECIDED */
    uint32_t n; /* tasks; 0: not decided yet */
    struct model_batch_task *tasks;
};

/* A partition is what one task of the producing vertex wrote. */
struct model_batch_edge {
    uint32_t n_partitions, n_subpartitions; /* 0: nobody knows yet */
    bool *made;                             /* [n_partitions] it is there */
    uint64_t *bytes;                        /* [n_partitions] as they were told */
    uint32_t *first;                        /* [consumers + 1] into reads */
    struct VEC(struct pliant_read) reads;   /* by consumer */
};

struct model_batch {
    bool on;
    const struct pliant_job *job;
    const struct pliant_config *cfg;
    struct model_batch_vertex *vertices;
    struct model_batch_edge *edges;
    uint64_t causes; /* things that may lead to a restart */
};

/* 0, or -ENOMEM. */
int model_batch_init(struct model_batch *b, const struct pliant_job *job,
                     const struct pliant_config *cfg);
void model_batch_free(struct model_batch *b);

/* Each answers NULL, or the rule that is broken. */
const char *model_batch_decided(struct model_batch *b, const struct pliant_action *act,
                                const struct pliant_sched *sched);
const char *model_batch_start(struct model_batch *b, const struct pliant_task *task,
                              const struct pliant_sched *sched);
/* One attempt more, beside those that live. */
const char *model_batch_beside(struct model_batch *b, const struct pliant_task *task);
const char *model_batch_cancel(const struct model_batch *b, const struct pliant_task *task);
const char *model_batch_release(struct model_batch *b, const struct pliant_action *act);
const char *model_batch_step_over(struct model_batch *b, const struct pliant_sched *sched);

/* Has an attempt of it finished? */
bool model_batch_finished(const struct model_batch *b, uint32_t vertex, uint32_t subtask);
/* An attempt is over. `finished`: the event that says so; NULL: it made nothing. The first one to
 * finish is the task's result. */
void model_batch_over(struct model_batch *b, uint32_t vertex, uint32_t subtask, uint32_t life,
                      const struct pliant_event *finished);
/* Answers whether it takes results along. */
bool model_batch_node_left(struct model_batch *b, uint32_t life);
/* Something has happened that may lead to a restart. */
void model_batch_cause(struct model_batch *b);

/* How many subpartitions each task writes for an edge [5.2]; 0: it has no tasks yet. */
uint32_t model_batch_subpartitions(const struct model_batch *b, size_t edge);
uint32_t model_batch_tasks(const struct model_batch *b, uint32_t *ret_finished);
/* Is there anything left to start? */
bool model_batch_waits(const struct model_batch *b);

#endif

/* model_regions.h - what must hold of a scheduler of fixed parallelism (jobmanager.scheduler:
 * default): the part of the model that knows regions and results
 *
 *   regions  one starts as a whole, when none of its tasks lives, and when all that it reads from
 *            outside was made and is still there
 *   results  one that is released is there, and nobody reads it; a task that starts anew has none
 *   causes   tasks of a region are canceled only after something has happened since it started, so
 *            overlapping plans never restart it twice
 *
 * Wiring and regions are taken from src/graph, which measured vectors check.
 *
 * Owner   model_regions_free(); borrows the job
 */
#ifndef PLIANT_SIM_MODEL_REGIONS_H
#define PLIANT_SIM_MODEL_REGIONS_H

#include <pliant/pliant.h>

#include "graph/regions.h"

struct model_regions {
    bool on;
    struct topology topology;
    struct regions regions;
    bool *finished;    /* [tasks] the last attempt */
    uint32_t *life;    /* [tasks] of the node that it finished on */
    bool *made;        /* [edges x tasks] this result is there */
    uint32_t *live;    /* [regions] */
    uint32_t *started; /* [regions] tasks, in this step */
    uint64_t causes;   /* things that may lead to a restart */
    uint64_t *seen;    /* [regions] of them when it started */
};

/* 0, or -ENOMEM. */
int model_regions_init(struct model_regions *r, const struct pliant_job *job);
void model_regions_free(struct model_regions *r);

/* Each answers NULL, or the rule that is broken. */
const char *model_regions_start(struct model_regions *r, const struct pliant_task *task);
/* One attempt more, beside those of the task that live. */
const char *model_regions_beside(struct model_regions *r, const struct pliant_task *task);
const char *model_regions_cancel(const struct model_regions *r, const struct pliant_task *task);
const char *model_regions_release(struct model_regions *r, const struct pliant_action *act,
                                  bool (*needs)(const void *ctx, uint32_t vertex, uint32_t subtask),
                                  const void *ctx);
const char *model_regions_step_over(struct model_regions *r);

bool model_regions_finished(const struct model_regions *r, uint32_t vertex, uint32_t subtask);
/* An attempt is over; the first one to finish, on a node in this life, is the task's result. */
void model_regions_over(struct model_regions *r, uint32_t vertex, uint32_t subtask, uint32_t life,
                        bool finished);
/* Answers whether it takes results along. */
bool model_regions_node_left(struct model_regions *r, uint32_t life);
/* Something has happened that may lead to a restart. */
void model_regions_cause(struct model_regions *r);

#endif

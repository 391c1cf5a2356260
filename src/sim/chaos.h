/* chaos.h - random clusters, jobs, options, faults and commands, all from one seed
 *
 * A chaos draws a world (job and options), then one event after the other, with an eye on the
 * model: most events are plausible answers to what the scheduler asked for, some are faults,
 * wishes, news that is late, wrong or doubled. Every run draws its own weights, so that some
 * runs never see what others see all the time.
 *
 * Shapes  at most CHAOS_VERTICES vertices
 * Owner   chaos_free() frees the job; an event points at static strings and, once
 *         chaos_event_link() was called, at itself
 */
#ifndef PLIANT_SIM_CHAOS_H
#define PLIANT_SIM_CHAOS_H

#include "sim/model.h"
#include "util/prng.h"

#define CHAOS_VERTICES 6
#define CHAOS_SIZES 4
#define CHAOS_SUBPARTITIONS 16
#define CHAOS_REMEMBERED 32
#define CHAOS_KINDS 26

struct chaos_event {
    int64_t at_ms;
    struct pliant_event ev;
    struct pliant_bounds bounds[CHAOS_VERTICES + 1];
    struct pliant_state_size sizes[CHAOS_SIZES];
    struct pliant_output outputs[CHAOS_VERTICES];
    uint64_t bytes[CHAOS_VERTICES][CHAOS_SUBPARTITIONS]; /* of each output */
};

struct chaos {
    struct prng prng;
    struct pliant_job *job;
    struct pliant_config cfg; /* resolved */
    int64_t origin_ms;        /* when it begins */
    uint32_t weights[CHAOS_KINDS];
    uint64_t incarnations;
    bool group;                                /* the job is a worker group */
    bool fixed;                                /* its parallelism is: the default scheduler */
    bool batch;                                /* ... follows from data: AdaptiveBatch */
    bool speculative;                          /* by region, and all edges are blocking */
    bool reports_path;                         /* its workers report checkpoints */
    uint64_t calls;                            /* that workers made */
    bool bounded;                              /* tasks finish by themselves */
    bool calm;                                 /* chaos_calm() has begun */
    struct chaos_event past[CHAOS_REMEMBERED]; /* to be told again */
    size_t n_past;
};

/* Draw job, options and weights. 0, -ENOMEM, or -EINVAL: the drawn world was refused. */
int chaos_init(struct chaos *c, uint64_t seed, struct pliant_error *err);
void chaos_free(struct chaos *c);

/* The next event, at now_ms or later. */
void chaos_draw(struct chaos *c, const struct model *m, int64_t now_ms, int64_t deadline_ms,
                struct chaos_event *ret);

/* The same without faults: nodes that drain leave, there are slots enough, everything is
 * answered. false: nothing is left to do, the job runs or has ended. */
bool chaos_calm(struct chaos *c, const struct model *m, int64_t now_ms, int64_t deadline_ms,
                struct chaos_event *ret);

/* Point the event at its own arrays, after it was copied. */
const struct pliant_event *chaos_event_link(struct chaos_event *e);

#endif

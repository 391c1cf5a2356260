/* totals.h - a run in numbers: restarts, downtime, time at each parallelism, slots, checkpoints
 *
 * Takes one view after another. Cost O(1) a step; O(vertices) where the job starts or stops
 * working.
 *
 * Shapes  restarts_by[], rescales_by[]: by the reason for leaving the state of work;
 *         at[i] is the time during which the widest vertex had the i-th parallelism, ascending;
 *         vertices[v].at[] the same of vertex v
 * Units   milliseconds; slot_ms: slots times milliseconds, at most UINT64_MAX
 * Owner   totals_init() allocates, totals_free() frees
 * Errors  -ENOMEM
 */
#ifndef PLIANT_SIM_TOTALS_H
#define PLIANT_SIM_TOTALS_H

#include "sim/view.h"
#include "util/vec.h"

/* How long something had a certain parallelism. */
struct totals_share {
    uint32_t parallelism;
    int64_t ms;
};

struct totals_shares VEC(struct totals_share);

struct totals {
    uint32_t n_vertices;

    int64_t now_ms; /* all is counted up to here */
    enum pliant_state state;
    enum pliant_job_status status;

    uint64_t restarts; /* times that Restarting was entered */
    uint64_t restarts_by[PLIANT_REASONS];
    uint64_t region_restarts; /* of some regions alone */
    uint64_t rescales;        /* times that the job came back with another parallelism */
    uint64_t rescales_by[PLIANT_REASONS];
    uint64_t rescales_up, rescales_down; /* by all subtasks together; the rest: the same sum */

    int64_t state_ms[PLIANT_STATES];
    uint64_t state_visits[PLIANT_STATES]; /* Created's first counts */
    int64_t downtime_ms; /* outside Executing, from the first Executing to the job's end */
    int64_t downtime_longest_ms;
    uint64_t slot_ms_offered, slot_ms_used; /* until the job's end */

    struct totals_shares at; /* 0: not at work, from the first Executing to the job's end */
    struct totals_shares *vertices;

    uint64_t checkpoints_completed, checkpoints_failed;
    uint64_t nodes_joined;
    uint64_t nodes_lost; /* without notice; the others drained, then left */
    uint64_t nodes_drained, drains_withdrawn, nodes_left;
    uint64_t events_ignored;

    /* how it goes on from now_ms */
    uint32_t offered, used;
    uint32_t *parallelism; /* [n_vertices] of the last time at work */
    bool began;            /* Executing was entered once */
    int64_t part_from_ms;  /* since when the shares are not counted yet */
    int64_t down_from_ms;
    enum pliant_reason left_for; /* why the last time at work ended */
};

int totals_init(struct totals *t, uint32_t n_vertices);
void totals_free(struct totals *t);

int totals_take(struct totals *t, const struct view *v);

/* The run is over. */
int totals_end(struct totals *t, int64_t end_ms);

/* From the first Executing to the job's end: what downtime is a part of. */
int64_t totals_lifetime_ms(const struct totals *t);

#endif

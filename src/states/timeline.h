/* timeline.h - the rescale history: each attempt to bring the job to new slots, from trigger to end
 *
 * At most one record is open [S-TML-1]; updates when none is open are ignored [S-TML-2]. The list
 * is a bounded FIFO; the last record of each terminal kind is kept apart and survives it
 * [S-TML-15]. Durations of all terminated records feed the statistics [S-TML-16]; percentiles come
 * from the last TIMELINE_SAMPLES of each kind.
 *
 * Shapes  vertices[] and groups[] of a record as in the job
 * Owner   timeline_free(); records are shared by the FIFO and the "last of its kind" by count
 * Errors  -ENOMEM
 * Source  section 8 of the states' rules
 */
#ifndef PLIANT_STATES_TIMELINE_H
#define PLIANT_STATES_TIMELINE_H

#include <pliant/pliant.h>

#include "allocator/allocator.h"
#include "states/codec.h"
#include "util/prng.h"
#include "util/vec.h"

#define TIMELINE_SAMPLES 1024u
#define TIMELINE_SPANS_MAX 64u /* of one record: the last ones, where it waits for ever */

struct rescale_record {
    struct pliant_rescale view; /* what the outside sees; points at the rest */
    struct VEC(struct pliant_rescale_span) spans;
    char *exception; /* moves into the next span [S-TML-12], or NULL */
    uint32_t refs;
    struct rescale_record *next_dead;
};

struct rescale_samples {
    uint64_t count;
    int64_t sum, min, max;
    int64_t *ring; /* [TIMELINE_SAMPLES], made when first needed */
};

struct timeline {
    const struct pliant_alloc *alloc;
    uint32_t n_vertices, n_groups;
    struct rescale_record **ring; /* [size] */
    uint32_t size, n, first;      /* size 0: off; first = the oldest */
    struct rescale_record *open;  /* also in the ring, or NULL */
    struct rescale_record *dead;  /* evicted, but an action of this step may show them */
    struct rescale_record *last[PLIANT_TERMINALS];
    uint8_t epoch[16]; /* requirements id */
    uint32_t attempt;  /* within the epoch */
    uint64_t opened;
    struct rescale_samples samples[PLIANT_TERMINALS]; /* [0]: all */
};

int timeline_init(struct timeline *t, uint32_t n_vertices, uint32_t n_groups, uint32_t size,
                  const struct pliant_alloc *a);
void timeline_free(struct timeline *t);
/* The step is over: free what was evicted in it. */
void timeline_bury(struct timeline *t);

/* Open a record. new_epoch: the requirements changed (or are the first ones). None may be open. */
int timeline_open(struct timeline *t, struct prng *prng, int64_t now_ms, bool new_epoch,
                  enum pliant_rescale_trigger trigger, const struct bounds *bounds);
/* The open record goes on as the attempt after a failure: spans cleared, start reset, cause
 * overwritten, same ids [S-TML-6]. */
void timeline_merge(struct timeline *t, int64_t now_ms, enum pliant_rescale_trigger trigger);
/* Desired and minimal numbers anew [S-TML-7]. */
void timeline_refresh(struct timeline *t, const struct bounds *bounds);
/* Post values: the slots that were assigned [S-TML-13]. */
void timeline_assign(struct timeline *t, const uint32_t *parallelism, const uint32_t *group_slots);
int timeline_exception(struct timeline *t, const char *text);
int timeline_span(struct timeline *t, enum pliant_state state, int64_t enter_at_ms,
                  int64_t leave_at_ms);
/* Close the open record; it becomes the last of its kind. */
int timeline_close(struct timeline *t, int64_t now_ms, enum pliant_rescale_end end);

const struct pliant_rescale *timeline_at(const struct timeline *t, size_t i);
/* All of it, in the codec's direction; reading: into a fresh one of the same size. */
void judged_codec(struct codec *c, struct pliant_judged *judged);
void timeline_codec(struct codec *c, struct timeline *t);
void timeline_summary(const struct timeline *t, struct pliant_rescale_summary *ret);

#endif

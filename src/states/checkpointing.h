/* checkpointing.h - when to take a checkpoint, and what became of it
 *
 * One per visit of Executing or StopWithSavepoint; it dies with the graph's run, and late news of
 * its checkpoints then matches nothing. At most one checkpoint and one savepoint are pending.
 * Pliant coordinates, workers write.
 *
 * Units   ms
 * Source  S-EXE-8..10, S-EXE-17..20, S-GEN-18, S-GEN-19, S-DRN-4, S-SWS-7
 */
#ifndef PLIANT_STATES_CHECKPOINTING_H
#define PLIANT_STATES_CHECKPOINTING_H

#include <pliant/pliant.h>

#include "util/deadline.h"

struct pending_checkpoint {
    bool exists;
    uint64_t id;
    int64_t triggered_at_ms;
    bool cancel_after; /* a user's cancel-with-savepoint */
    struct deadline expiry;
};

struct checkpointing {
    bool stopped;            /* periodic ones: while stopping, or before a cancel */
    bool overdue;            /* one was due while it could not be taken */
    bool end_of_data;        /* the checkpoint of [S-GEN-19] was asked for */
    uint32_t failed_in_row;  /* that count */
    int64_t ended_at_ms;     /* the last one; PLIANT_UNSET: none yet */
    struct deadline trigger; /* the next periodic one */
    struct deadline retry;   /* an active request, put off by the minimum pause */
    struct pending_checkpoint checkpoint, savepoint;
};

/* What is known of completed ones; outlives restarts. */
struct checkpoint_facts {
    uint64_t last_id; /* given or seen */
    uint64_t completed_id;
    int64_t completed_at_ms, triggered_at_ms; /* of the completed one */
    int64_t duration_ms;                      /* of the completed one */
};

/* What an event of a checkpoint or savepoint meant. */
enum checkpoint_news {
    CHECKPOINT_NOT_CURRENT,
    CHECKPOINT_DONE,
    CHECKPOINT_FAILED_COUNTS,
    CHECKPOINT_FAILED_HARMLESS, /* does not count [S-EXE-20] */
    SAVEPOINT_DONE,
    SAVEPOINT_FAILED,
};

struct pliant_sched;

/* A checkpoint is there, triggered then: the one to restore from. */
void checkpoint_note_completed(struct pliant_sched *s, uint64_t id, int64_t triggered_at_ms,
                               const struct pliant_event *ev);

struct checkpointing checkpointing_start(struct pliant_sched *s);
void checkpointing_stop(struct checkpointing *c); /* periodic ones */
void checkpointing_resume(struct pliant_sched *s, struct checkpointing *c);
/* All tasks run: an interval that is found out counts from here, others from the start. */
void checkpointing_running(struct pliant_sched *s, struct checkpointing *c);

/* Take one now, if none is pending and all tasks run; did it? */
bool checkpoint_trigger(struct pliant_sched *s, struct checkpointing *c,
                        enum pliant_checkpoint_cause cause);
void savepoint_trigger(struct pliant_sched *s, struct checkpointing *c,
                       enum pliant_checkpoint_cause cause, const char *dir, bool drain);
/* The transition manager wishes for one [S-EXE-19]. */
void checkpoint_wish(struct pliant_sched *s, struct checkpointing *c);
/* Tasks changed, or a pending one ended: take one that is overdue, and the one at the end of data.
 */
void checkpointing_look(struct pliant_sched *s, struct checkpointing *c);

/* CHECKPOINT_* and SAVEPOINT_* events; what is not about a pending one, or of the host's own
 * accord, is not current. *ret_ended: what was pending, where something was. */
enum checkpoint_news checkpointing_on_event(struct pliant_sched *s, struct checkpointing *c,
                                            const struct pliant_event *ev,
                                            struct pending_checkpoint *ret_ended);
size_t checkpointing_deadlines(struct checkpointing *c, struct deadline *list[]);
/* `due` is one of the above. An expired one is a failure that counts. */
enum checkpoint_news checkpointing_on_due(struct pliant_sched *s, struct checkpointing *c,
                                          struct deadline *due,
                                          struct pending_checkpoint *ret_ended);

#endif

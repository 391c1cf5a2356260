/* checkpoints_impl.h - what checkpoints.c and checkpoints_kept.c share */
#ifndef PLIANT_DAEMON_CHECKPOINTS_IMPL_H
#define PLIANT_DAEMON_CHECKPOINTS_IMPL_H

#include <limits.h>

#include "daemon/daemon.h"

struct part {
    struct pliant_task task;
    uint64_t bytes;
    bool written;
};

struct pending {
    uint64_t id;
    bool savepoint;
    bool then_finish; /* it is the savepoint of a stop */
    bool is_whole;    /* a checkpoint with its manifest, of which the core is being told */
    char *dir;
    int64_t triggered_at_ms, triggered_unix_ms;
    struct VEC(struct part) parts; /* by vertex and subtask */
    size_t n_missing;
    struct pending *next;
};

struct kept {
    uint64_t id;
    char *dir;
};

struct checkpoints {
    struct pending *pending;      /* at most one of each kind */
    struct VEC(struct kept) kept; /* completed, no savepoints, oldest first */
    struct VEC(char *) stale;     /* directories that came to nothing */
    struct manifest_read *restored;
    uint64_t restored_id; /* whose manifest that is */
};

struct checkpoints *checkpoints_of(struct daemon_job *job);

/* ---- checkpoints.c ---- */

/* `bytes` of all parts; `cause` NULL: none. */
void checkpoints_put_row(struct daemon *d, const struct daemon_job *job, const struct pending *p,
                         const char *status, uint64_t bytes, const char *cause);
/* It came to nothing, and the core is told; `counts`: against the job's budget of failed ones. */
void checkpoints_fail(struct daemon *d, struct daemon_job *job, struct pending *p, bool counts,
                      const char *cause);
/* The savepoint of a stop is there. */
void checkpoints_finish_tasks(struct daemon *d, struct daemon_job *job);

/* ---- checkpoints_kept.c ---- */

/* The directory of all checkpoints of the job. 0 or -ENAMETOOLONG. */
int checkpoints_root(const struct daemon *d, const struct daemon_job *job, char ret[PATH_MAX]);
/* A directory that came to nothing is to be deleted; takes the text. */
void checkpoints_note_stale(struct checkpoints *c, char *dir);
void checkpoints_forget_stale(struct checkpoints *c, const char *dir); /* it is used again */
void checkpoints_remove_stale(const struct daemon_job *job, struct checkpoints *c);

#endif

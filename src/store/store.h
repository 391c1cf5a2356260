/* store.h - what outlives pliantd: one SQLite file in the state directory
 *
 * One writer: the directory is locked while a store is open (-EBUSY: another daemon has it). The
 * file is mode 0600 and refused when others can read it. All changes between two commits are one
 * transaction, begun by the first of them; after store_commit() answers 0 they survive kill -9
 * and power loss (WAL, synchronous=FULL: one fsync).
 *
 * Journal: the steps of a job in order; a snapshot takes the place of those before it for recovery.
 * Old steps are kept for `record` up to a bound, those behind it are deleted.
 *
 * Errors  a store whose commit failed stays failed until store_retry(): what was put since the last
 *         commit is kept in memory and nothing else is taken (every put answers -EIO). A question
 *         that fails is only that. -ENOMEM. *err says it for people: full disk, read-only file,
 *         I/O error, corrupt page, newer version.
 * Owner   texts and bytes that come out are valid until the next call
 */
#ifndef PLIANT_STORE_STORE_H
#define PLIANT_STORE_STORE_H

#include "spec/doc.h"

struct store; /* opaque */

#define STORE_VERSION 1
#define STORE_ID 33 /* a job's id: 32 hex digits and NUL */

struct store_options {
    int64_t
        journal_max; /* steps of a job that are kept for `record`; 0: those since the snapshot */
    int log_pages;   /* of the write-ahead log, before it is moved into the file; 0: 1000 */
    const char *vfs; /* NULL: the system's; tests put faults there */
};

/* Open or create DIR/pliant.db (and DIR, mode 0700). -EBUSY, -EACCES, -ENOTSUP (a newer version),
 * -EUCLEAN (damaged), the errno of the file system. */
int store_open(const char *dir, const struct store_options *opts, struct store **ret,
               struct spec_error *err);
void store_close(struct store **s); /* what was not committed is lost */

/* Raise and return the epoch, committed. */
int store_next_epoch(struct store *s, uint64_t *ret, struct spec_error *err);

int store_commit(struct store *s, struct spec_error *err); /* nothing to do: 0, no fsync */
bool store_failed(const struct store *s);
int store_retry(struct store *s, struct spec_error *err); /* 0: it works again, all is committed */
uint64_t store_commits(const struct store *s);            /* that reached the disk */

/* ---- jobs ------------------------------------------------------------------------------------ */

struct store_job {
    char id[STORE_ID];
    const char *name;
    const char *spec, *file; /* as submitted */
    const char *options;     /* JSON: {"key":"value"...}, all that formed the resolved config */
    int64_t submitted_unix_ms;
    int64_t order;         /* of submission */
    int64_t ended_unix_ms; /* 0: it lives */
    const char *final;     /* ended: its last documents, JSON */
};

int store_job_put(struct store *s, const struct store_job *job);
int store_job_end(struct store *s, const char *id, int64_t ended_unix_ms, const char *final_json);
int store_job_delete(struct store *s, const char *id);
/* In order of submission; answers other than 0 end it and are returned. */
int store_jobs(struct store *s, int (*each)(void *ctx, const struct store_job *job), void *ctx,
               struct spec_error *err);
int store_job_get(struct store *s, const char *id, struct store_job *ret); /* -ENOENT */

/* ---- journal and snapshots ------------------------------------------------------------------- */

struct store_step {
    uint64_t n; /* 1, 2, 3, ... within the job */
    int64_t at_ms;
    const char *event, *actions; /* JSON, as in a recording */
    size_t event_size, actions_size;
};

int store_step_put(struct store *s, const char *job, const struct store_step *step);
/* The state after step n. */
int store_snapshot_put(struct store *s, const char *job, uint64_t n, const void *bytes,
                       size_t size);
/* The last one: *ret_n 0 and no bytes if there is none. */
int store_snapshot_get(struct store *s, const char *job, uint64_t *ret_n, const void **ret_bytes,
                       size_t *ret_size);
/* The snapshot that `record` begins with: the oldest kept. */
int store_snapshot_first(struct store *s, const char *job, uint64_t *ret_n, const void **ret_bytes,
                         size_t *ret_size);
/* Steps after `after`, in order; after 0: those that are kept. -ENOENT: the next one is no longer
 * kept. */
int store_steps(struct store *s, const char *job, uint64_t after,
                int (*each)(void *ctx, const struct store_step *step), void *ctx,
                struct spec_error *err);

/* ---- what else the daemon must know again ---------------------------------------------------- */

struct store_node {
    const char *name;
    uint64_t incarnation;
    const char *about; /* JSON, the daemon's: slots, address, labels, an operator's drain */
};
int store_node_put(struct store *s, const struct store_node *node);
int store_node_delete(struct store *s, const char *name);
int store_nodes(struct store *s, int (*each)(void *ctx, const struct store_node *node), void *ctx,
                struct spec_error *err);

/* Which job has which slot of a node. `index` is the job's own number of it. */
struct store_slot {
    const char *node;
    uint32_t slot;
    const char *job; /* NULL: nobody, delete the row */
    uint32_t index;
};
int store_slot_put(struct store *s, const struct store_slot *slot);
int store_slots(struct store *s, int (*each)(void *ctx, const struct store_slot *slot), void *ctx,
                struct spec_error *err);

struct store_checkpoint {
    const char *job;
    uint64_t id;
    bool savepoint;
    const char *status; /* "pending", "completed", "failed", "subsumed" (deleted by retention) */
    const char *path, *cause;
    uint64_t bytes;
    int64_t triggered_unix_ms, ended_unix_ms;
};
int store_checkpoint_put(struct store *s, const struct store_checkpoint *c);
int store_checkpoints(struct store *s, const char *job,
                      int (*each)(void *ctx, const struct store_checkpoint *c), void *ctx,
                      struct spec_error *err); /* newest first */

/* Small texts by key, of a job or (job "") of the daemon: rank counters, ports used, ... */
int store_note_put(struct store *s, const char *job, const char *key, const char *text);
int store_note_get(struct store *s, const char *job, const char *key,
                   const char **ret); /* -ENOENT */

#endif

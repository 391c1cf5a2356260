/* store_impl.h - what the modules of the store share
 *
 *     store.c     open, lock, commit, failure
 *     schema.c    the tables, their versions
 *     queries.c   the statements, prepared once; the list of what was put; kept answers
 *     journal.c   steps and snapshots, and which of them go
 *     jobs.c      jobs
 *     things.c    nodes, slots, checkpoints, notes
 *
 * A put is an operation at the end of a list in memory: a statement and its values. The list runs
 * in one transaction at store_commit(), or before a question, which sees what was put. When that
 * fails the transaction is rolled back and the list stays, to be run again by store_retry(). So
 * each operation gives the same when it is done twice.
 *
 * The texts of jobs' ids become small numbers (`key`) here, which rows are found by.
 */
#ifndef PLIANT_STORE_STORE_IMPL_H
#define PLIANT_STORE_STORE_IMPL_H

#include <sqlite3.h>

#include "store/store.h"
#include "util/hash.h"
#include "util/vec.h"

/* clang-format off */
#define STORE_QUERIES(X)                                                                           \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(EPOCH_GET, "SELECT value FROM meta WHERE key = 'epoch'")                                     \
    X(EPOCH_PUT, "INSERT OR REPLACE INTO meta VALUES ('epoch', ?)")                                \
    X(JOB_PUT, "INSERT INTO job VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "                 \
               "ON CONFLICT (key) DO UPDATE SET name = ?3, spec = ?4, file = ?5, options = ?6, "   \
               "submitted_unix_ms = ?7, place = ?8, ended_unix_ms = ?9, final = ?10")              \
    X(JOB_END, "UPDATE job SET ended_unix_ms = ?2, final = ?3 WHERE key = ?1")                     \
    X(JOB_DELETE, "DELETE FROM job WHERE key = ?")                                                 \
    X(JOB_KEYS, "SELECT key, id FROM job ORDER BY key")                                            \
    X(JOBS, "SELECT * FROM job ORDER BY place, key")                                               \
    X(JOB, "SELECT * FROM job WHERE key = ?")                                                      \
    X(STEP_PUT, "INSERT OR REPLACE INTO step VALUES (?, ?, ?, ?)")                                 \
    X(STEPS_DELETE, "DELETE FROM step WHERE row BETWEEN ? AND ?")                                  \
    X(STEP_FROM, "SELECT row FROM step WHERE row >= ? ORDER BY row LIMIT 1")                       \
    X(STEP_BEFORE, "SELECT row FROM step WHERE row < ? ORDER BY row DESC LIMIT 1")                 \
    X(STEPS, "SELECT * FROM step WHERE row BETWEEN ? AND ? ORDER BY row")                          \
    X(SNAPSHOT_PUT, "INSERT OR REPLACE INTO snapshot VALUES (?, ?)")                               \
    X(SNAPSHOT_DELETE, "DELETE FROM snapshot WHERE row = ?")                                       \
    X(SNAPSHOT_ROWS, "SELECT row FROM snapshot ORDER BY row")                                      \
    X(SNAPSHOT, "SELECT bytes FROM snapshot WHERE row = ?")                                        \
    X(NODE_PUT, "INSERT OR REPLACE INTO node VALUES (?, ?, ?)")                                    \
    X(NODE_DELETE, "DELETE FROM node WHERE name = ?")                                              \
    X(NODES, "SELECT * FROM node ORDER BY name")                                                   \
    X(SLOT_PUT, "INSERT OR REPLACE INTO slot VALUES (?, ?, ?, ?)")                                 \
    X(SLOT_DELETE, "DELETE FROM slot WHERE node = ? AND slot = ?")                                 \
    X(SLOTS, "SELECT slot.node, slot.slot, job.id, slot.number FROM slot JOIN job ON "             \
             "job.key = slot.job ORDER BY slot.node, slot.slot")                                   \
    X(CHECKPOINT_PUT, "INSERT INTO checkpoint (job, id, savepoint, status, path, cause, bytes, "   \
                      "triggered_unix_ms, ended_unix_ms) VALUES "                                  \
                      "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (job, id) DO UPDATE SET "  \
                      "savepoint = ?3, status = ?4, path = ?5, cause = ?6, bytes = ?7, "           \
                      "triggered_unix_ms = ?8, ended_unix_ms = ?9")                                \
    X(CHECKPOINTS_TRIM, "DELETE FROM checkpoint WHERE job = ?1 AND status IN ('failed', "          \
                        "'subsumed') AND made <= (SELECT made FROM checkpoint WHERE job = ?1 AND " \
                        "status IN ('failed', 'subsumed') ORDER BY made DESC LIMIT 1 OFFSET ?2)")  \
    X(CHECKPOINTS, "SELECT * FROM checkpoint WHERE job = ? ORDER BY made DESC")                    \
    X(NOTE_PUT, "INSERT OR REPLACE INTO note VALUES (?, ?, ?)")                                    \
    X(NOTE_DELETE, "DELETE FROM note WHERE job = ? AND key = ?")                                   \
    X(NOTES_DELETE, "DELETE FROM note WHERE job = ?")                                              \
    X(NOTE, "SELECT text FROM note WHERE job = ? AND key = ?")

enum store_query {
#define QUERY_NAME(name, sql) QUERY_##name,
    STORE_QUERIES(QUERY_NAME)
#undef QUERY_NAME
    N_QUERIES
};
/* clang-format on */

/* ---- values of statements -------------------------------------------------------------------- */

enum value_kind { VALUE_NULL, VALUE_INT, VALUE_TEXT, VALUE_BYTES };

struct value {
    enum value_kind kind;
    size_t size;
    union {
        int64_t i;
        const void *p;
    };
};

static inline struct value value_int(int64_t i)
{
    return (struct value){.kind = VALUE_INT, .i = i};
}

/* Numbers of 64 bits without a sign are kept as those with one that have the same bits. */
static inline struct value value_id(uint64_t id)
{
    return value_int((int64_t)id);
}

static inline struct value value_bytes(const void *p, size_t size)
{
    return (struct value){.kind = VALUE_BYTES, .size = size, .p = p};
}

struct value value_text_of(const char *s, size_t size);
struct value value_text(const char *s); /* NULL: null */

/* ---- the store ------------------------------------------------------------------------------- */

struct stored_job {
    char id[STORE_ID];
    int64_t key;
    uint64_t first, last;           /* steps that are kept; first > last: none */
    struct VEC(uint64_t) snapshots; /* after which steps, ascending */
    uint32_t n_checkpoints_put;
    UT_hash_handle hh;
};

/* Steps that nobody needs, to be deleted a few at a commit. */
struct trim {
    int64_t key;
    uint64_t first, last;
};

struct store {
    sqlite3 *db;
    char *path;
    int lock_fd;
    uint64_t journal_max;
    int log_pages;
    sqlite3_stmt *queries[N_QUERIES];

    struct VEC(uint64_t) list; /* what was put since the last commit */
    size_t n_done;             /* words of it that the open transaction has */
    bool open;                 /* a transaction is */
    int error;                 /* 0: works; why it failed */
    bool lost;                 /* a put found no memory: the list has a hole */
    struct spec_error why;

    struct stored_job *jobs; /* by id */
    int64_t last_key;
    struct VEC(struct trim) trims;
    uint64_t n_steps_put; /* since the last commit */
    uint64_t n_commits;
    int n_pages;           /* in the write-ahead log */
    int move_at;           /* when it has so many, it is moved into the file */
    struct VEC(char) copy; /* texts and bytes that went out */
};

/* ---- queries.c ------------------------------------------------------------------------------- */

/* Take an operation into the list. -EIO: the store has failed; -ENOMEM. */
int store_put(struct store *s, enum store_query q, const struct value *v, size_t n);
int store_lose(struct store *s); /* no memory for a part of it: no commit any more; -ENOMEM */

#define STORE_PUT(s, q, ...)                                                                       \
    store_put((s), (q), (const struct value[]){__VA_ARGS__},                                       \
              sizeof(const struct value[]){__VA_ARGS__} / sizeof(struct value))

/* Run what is in the list, in a transaction that stays open. */
int store_flush(struct store *s, struct spec_error *err);
void store_forget(struct store *s); /* the list: it is committed */

/* A question: the statement with its values, to be stepped by store_next() and ended by
 * store_end(). It sees what was put, unless the store has failed. */
int store_ask(struct store *s, enum store_query q, const struct value *v, size_t n,
              struct spec_error *err);

#define STORE_ASK(s, q, err, ...)                                                                  \
    store_ask((s), (q), (const struct value[]){__VA_ARGS__},                                       \
              sizeof(const struct value[]){__VA_ARGS__} / sizeof(struct value), (err))

/* 1: there is a row; 0: no more. */
int store_next(struct store *s, enum store_query q, struct spec_error *err);
int store_end(struct store *s, enum store_query q, int r); /* returns r */

/* Run a statement that has no values and no answer. */
int store_run(struct store *s, enum store_query q);

int64_t store_column_int(struct store *s, enum store_query q, int column);
const char *store_column_text(struct store *s, enum store_query q, int column);

/* Copies for the caller, valid until the next question. store_copy() may move what is there:
 * it answers offsets, SIZE_MAX for want of memory. */
void store_copy_begin(struct store *s);
size_t store_copy(struct store *s, const void *p, size_t size);

void store_close_queries(struct store *s);

/* ---- store.c --------------------------------------------------------------------------------- */

/* What SQLite answered, as an errno, its sentence in *err. After damage nothing works. */
int store_error(struct store *s, int sqlite_code, struct spec_error *err);
/* The same, and no put more until store_retry(); the transaction is rolled back. */
int store_fail(struct store *s, int sqlite_code, struct spec_error *err);
int store_why(const struct store *s, struct spec_error *err); /* it has failed, again */

/* ---- schema.c -------------------------------------------------------------------------------- */

/* Is it ours, of a version that can be read, and whole? Changes nothing. */
int schema_check(struct store *s, struct spec_error *err);
/* Bring it up to STORE_VERSION. */
int schema_bring_up(struct store *s, struct spec_error *err);

/* ---- jobs.c, journal.c ----------------------------------------------------------------------- */

int jobs_load(struct store *s, struct spec_error *err);
void jobs_free(struct store *s);
struct stored_job *jobs_find(struct store *s, const char *id);                   /* or NULL */
int jobs_unknown(const struct store *s, const char *id, struct spec_error *err); /* -ENOENT */

int journal_load(struct store *s, struct spec_error *err);
int journal_trim(struct store *s);                           /* put a few deletions */
int journal_delete(struct store *s, struct stored_job *job); /* all of it */

#endif

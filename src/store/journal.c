/* journal.c - see store_impl.h: steps and snapshots
 *
 * `row` = key of the job * 2^38 + number of the step: the rows of a job lie together and in order.
 *
 * What is kept of a job: its newest snapshot and the steps after it, for recovery; and for
 * `record` the oldest snapshot that is at most `journal_max` steps behind the newest (or the
 * job's start, if that is not further), with the steps since. Snapshots between them are the
 * candidates for the next oldest, SNAPSHOTS at most. Steps that nobody needs go a few at a commit,
 * so that no commit takes long; what is left when the daemon ends is found again at the start.
 */
#include "store/store_impl.h"

#include <stdio.h>
#include <string.h>

#define ROW_BITS 38
#define ROW_MAX (((int64_t)1 << ROW_BITS) - 1)
#define KEY_MAX (((int64_t)1 << (63 - ROW_BITS)) - 1)
#define SNAPSHOTS 4     /* candidates, over journal_max */
#define TRIM_STEPS 256u /* at a commit, beside two for each that comes */

static int64_t row_of(int64_t key, uint64_t n)
{
    return key << ROW_BITS | (int64_t)n;
}

static uint64_t step_of(int64_t row)
{
    return (uint64_t)(row & ROW_MAX);
}

/* ---- what goes ------------------------------------------------------------------------------- */

static int trim(struct store *s, int64_t key, uint64_t first, uint64_t last)
{
    struct trim *t = first <= last ? vec_push(NULL, &s->trims) : NULL;

    if (first > last)
        return 0;
    if (!t)
        return store_lose(s);
    *t = (struct trim){key, first, last};
    return 0;
}

int journal_trim(struct store *s)
{
    uint64_t budget = TRIM_STEPS + 2 * s->n_steps_put;

    while (s->trims.n && budget) {
        struct trim *t = &s->trims.v[s->trims.n - 1];
        uint64_t n = t->last - t->first + 1 < budget ? t->last - t->first + 1 : budget;
        int r = STORE_PUT(s, QUERY_STEPS_DELETE, value_int(row_of(t->key, t->first)),
                          value_int(row_of(t->key, t->first + n - 1)));

        if (r)
            return r;
        budget -= n;
        t->first += n;
        s->trims.n -= t->first > t->last;
    }
    return s->lost ? -ENOMEM : 0;
}

static int delete_snapshot(struct store *s, struct stored_job *job, size_t i)
{
    int r = STORE_PUT(s, QUERY_SNAPSHOT_DELETE, value_int(row_of(job->key, job->snapshots.v[i])));

    if (r)
        return r;
    job->snapshots.n--;
    memmove(&job->snapshots.v[i], &job->snapshots.v[i + 1],
            (job->snapshots.n - i) * sizeof *job->snapshots.v);
    return 0;
}

int journal_delete(struct store *s, struct stored_job *job)
{
    int r = 0;

    while (!r && job->snapshots.n)
        r = delete_snapshot(s, job, job->snapshots.n - 1);
    return r ? r : trim(s, job->key, job->first, job->last);
}

/* Steps before the oldest snapshot, unless the start is still within reach. */
static int trim_behind(struct store *s, struct stored_job *job)
{
    uint64_t newest = job->snapshots.v[job->snapshots.n - 1], first = job->first;

    if (first == 1 && newest <= s->journal_max)
        return 0;
    if (job->snapshots.v[0] < first)
        return 0;
    job->first = job->snapshots.v[0] + 1;
    return trim(s, job->key, first, job->snapshots.v[0]);
}

/* The newest snapshot has come: which of the others are needed? */
static int thin_snapshots(struct store *s, struct stored_job *job)
{
    uint64_t newest = job->snapshots.v[job->snapshots.n - 1];
    int r = 0;

    while (!r && job->snapshots.n > 1 && newest - job->snapshots.v[0] > s->journal_max)
        r = delete_snapshot(s, job, 0);
    for (size_t i = job->snapshots.n - 1; !r && i-- > 1;)
        if (job->snapshots.v[i] - job->snapshots.v[i - 1] < s->journal_max / SNAPSHOTS)
            r = delete_snapshot(s, job, i);
    return r;
}

/* ---- putting --------------------------------------------------------------------------------- */

int store_step_put(struct store *s, const char *id, const struct store_step *step)
{
    struct stored_job *job = jobs_find(s, id);
    int r;

    if (!job)
        return -ENOENT;
    if (step->n != job->last + 1 || job->last >= ROW_MAX)
        return -EINVAL;
    r = STORE_PUT(s, QUERY_STEP_PUT, value_int(row_of(job->key, step->n)), value_int(step->at_ms),
                  value_text_of(step->event, step->event_size),
                  value_text_of(step->actions, step->actions_size));
    if (!r) {
        job->last = step->n;
        s->n_steps_put++;
    }
    return r;
}

int store_snapshot_put(struct store *s, const char *id, uint64_t n, const void *bytes, size_t size)
{
    struct stored_job *job = jobs_find(s, id);
    uint64_t *at;
    int r;

    if (!job)
        return -ENOENT;
    if (n == 0 || n > job->last || (job->snapshots.n && n < job->snapshots.v[job->snapshots.n - 1]))
        return -EINVAL;
    r = STORE_PUT(s, QUERY_SNAPSHOT_PUT, value_int(row_of(job->key, n)), value_bytes(bytes, size));
    if (r || (job->snapshots.n && n == job->snapshots.v[job->snapshots.n - 1]))
        return r;
    at = vec_push(NULL, &job->snapshots);
    if (!at)
        return store_lose(s);
    *at = n;
    r = thin_snapshots(s, job);
    return r ? r : trim_behind(s, job);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int get_snapshot(struct store *s, const struct stored_job *job, uint64_t n, uint64_t *ret_n,
                        const void **ret_bytes, size_t *ret_size)
{
    struct spec_error err;
    sqlite3_stmt *q;
    int r = STORE_ASK(s, QUERY_SNAPSHOT, &err, value_int(row_of(job->key, n)));

    if (!r)
        r = store_next(s, QUERY_SNAPSHOT, &err);
    if (r == 0) /* while the store fails, it may be in the list only */
        r = s->error ? -EIO : store_error(s, SQLITE_CORRUPT, &err);
    if (r < 0)
        return store_end(s, QUERY_SNAPSHOT, r);
    q = s->queries[QUERY_SNAPSHOT];
    store_copy_begin(s);
    if (store_copy(s, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0)) == SIZE_MAX)
        return store_end(s, QUERY_SNAPSHOT, -ENOMEM);
    *ret_n = n;
    *ret_bytes = s->copy.v;
    *ret_size = s->copy.n - 1;
    return store_end(s, QUERY_SNAPSHOT, 0);
}

static int no_snapshot(uint64_t *ret_n, const void **ret_bytes, size_t *ret_size)
{
    *ret_n = 0;
    *ret_bytes = NULL;
    *ret_size = 0;
    return 0;
}

int store_snapshot_get(struct store *s, const char *id, uint64_t *ret_n, const void **ret_bytes,
                       size_t *ret_size)
{
    const struct stored_job *job = jobs_find(s, id);

    if (!job)
        return -ENOENT;
    if (job->snapshots.n == 0)
        return no_snapshot(ret_n, ret_bytes, ret_size);
    return get_snapshot(s, job, job->snapshots.v[job->snapshots.n - 1], ret_n, ret_bytes, ret_size);
}

int store_snapshot_first(struct store *s, const char *id, uint64_t *ret_n, const void **ret_bytes,
                         size_t *ret_size)
{
    const struct stored_job *job = jobs_find(s, id);

    if (!job)
        return -ENOENT;
    if (job->snapshots.n == 0 || job->first == 1)
        return no_snapshot(ret_n, ret_bytes, ret_size);
    return get_snapshot(s, job, job->snapshots.v[0], ret_n, ret_bytes, ret_size);
}

/* Some of them may still be there, on their way out. */
static int gone(const struct store *s, const struct stored_job *job, uint64_t after,
                struct spec_error *err)
{
    snprintf(err->text, sizeof err->text, "%s: of job %s, steps %llu to %llu are no longer kept",
             s->path, job->id, (unsigned long long)after + 1, (unsigned long long)job->first - 1);
    return -ENOENT;
}

int store_steps(struct store *s, const char *id, uint64_t after,
                int (*each)(void *ctx, const struct store_step *step), void *ctx,
                struct spec_error *err)
{
    const struct stored_job *job = jobs_find(s, id);
    struct store_step step;
    sqlite3_stmt *q;
    int r;

    if (!job)
        return jobs_unknown(s, id, err);
    if (after >= ROW_MAX)
        return 0;
    if (after && after + 1 < job->first)
        return gone(s, job, after, err);
    r = STORE_ASK(s, QUERY_STEPS, err, value_int(row_of(job->key, after ? after + 1 : job->first)),
                  value_int(row_of(job->key, ROW_MAX)));
    q = s->queries[QUERY_STEPS];
    while (!r && (r = store_next(s, QUERY_STEPS, err)) == 1) {
        step.n = step_of(sqlite3_column_int64(q, 0));
        step.at_ms = sqlite3_column_int64(q, 1);
        step.event = (const char *)sqlite3_column_text(q, 2);
        step.event_size = (size_t)sqlite3_column_bytes(q, 2);
        step.actions = (const char *)sqlite3_column_text(q, 3);
        step.actions_size = (size_t)sqlite3_column_bytes(q, 3);
        r = step.event && step.actions ? each(ctx, &step) : store_error(s, SQLITE_NOMEM, err);
    }
    return store_end(s, QUERY_STEPS, r);
}

/* ---- the start ------------------------------------------------------------------------------- */

/* The job with this key, or NULL. *at moves on: jobs were loaded in the order of their keys, which
 * is that of the rows. */
static struct stored_job *job_of_key(struct stored_job **at, int64_t key)
{
    while (*at && (*at)->key < key)
        *at = (*at)->hh.next;
    return *at && (*at)->key == key ? *at : NULL;
}

/* The row that a question for one answers: 1, or 0. */
static int find_row(struct store *s, enum store_query q, int64_t bound, int64_t *ret,
                    struct spec_error *err)
{
    int r = STORE_ASK(s, q, err, value_int(bound));

    if (!r)
        r = store_next(s, q, err);
    if (r == 1)
        *ret = store_column_int(s, q, 0);
    return store_end(s, q, r);
}

static int load_snapshots(struct store *s, struct spec_error *err)
{
    struct stored_job *at = s->jobs;
    int r = store_ask(s, QUERY_SNAPSHOT_ROWS, NULL, 0, err);

    while (!r && (r = store_next(s, QUERY_SNAPSHOT_ROWS, err)) == 1) {
        int64_t row = store_column_int(s, QUERY_SNAPSHOT_ROWS, 0);
        struct stored_job *job = job_of_key(&at, row >> ROW_BITS);
        uint64_t *n = job ? vec_push(NULL, &job->snapshots) : NULL;

        r = n ? 0 : store_error(s, job ? SQLITE_NOMEM : SQLITE_CORRUPT, err);
        if (n)
            *n = job->last = step_of(row);
    }
    return store_end(s, QUERY_SNAPSHOT_ROWS, r);
}

/* The steps first..last of a job, or of one that is no more. */
static int load_steps(struct store *s, struct stored_job *job, int64_t key, uint64_t first,
                      uint64_t last)
{
    if (key > s->last_key)
        s->last_key = key;
    if (!job)
        return trim(s, key, first, last);
    job->first = first;
    if (last > job->last)
        job->last = last;
    return job->snapshots.n ? trim_behind(s, job) : 0;
}

int journal_load(struct store *s, struct spec_error *err)
{
    struct stored_job *at = s->jobs;
    int64_t row = 0, last = 0;
    int r = load_snapshots(s, err);

    for (struct stored_job *job = s->jobs; !r && job; job = job->hh.next)
        if (job->snapshots.n)
            job->first = job->last + 1;
    if (r)
        return r;
    while ((r = find_row(s, QUERY_STEP_FROM, row, &row, err)) == 1) {
        int64_t key = row >> ROW_BITS;

        r = find_row(s, QUERY_STEP_BEFORE, row_of(key + 1, 0), &last, err);
        if (r == 1)
            r = load_steps(s, job_of_key(&at, key), key, step_of(row), step_of(last));
        if (r)
            return r < 0 ? r : store_error(s, SQLITE_CORRUPT, err);
        row = row_of(key + 1, 0);
    }
    return r;
}

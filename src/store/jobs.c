/* jobs.c - see store_impl.h: the jobs, and their keys */
#include "store/store_impl.h"

#include <stdio.h>
#include <string.h>

static const struct pliant_alloc *const hash_alloc = NULL;

struct stored_job *jobs_find(struct store *s, const char *id)
{
    struct stored_job *job;

    HASH_FIND_STR(s->jobs, id, job);
    return job;
}

int jobs_unknown(const struct store *s, const char *id, struct spec_error *err)
{
    snprintf(err->text, sizeof err->text, "%s: no job has the id %.64s", s->path, id);
    return -ENOENT;
}

static struct stored_job *add_job(struct store *s, const char *id, int64_t key)
{
    struct stored_job *job = mem_zero(NULL, 1, sizeof *job);

    if (!job)
        return NULL;
    memcpy(job->id, id, strlen(id) + 1);
    job->key = key;
    job->first = 1;
    HASH_ADD_STR(s->jobs, id, job);
    if (!job->hh.tbl) {
        mem_free(NULL, job);
        return NULL;
    }
    if (key > s->last_key)
        s->last_key = key;
    return job;
}

static void drop_job(struct store *s, struct stored_job *job)
{
    HASH_DEL(s->jobs, job);
    vec_free(NULL, &job->snapshots);
    mem_free(NULL, job);
}

void jobs_free(struct store *s)
{
    struct stored_job *job, *next;

    HASH_ITER (hh, s->jobs, job, next)
        drop_job(s, job);
}

int jobs_load(struct store *s, struct spec_error *err)
{
    const char *id;
    int r = store_ask(s, QUERY_JOB_KEYS, NULL, 0, err);

    while (!r && (r = store_next(s, QUERY_JOB_KEYS, err)) == 1) {
        id = store_column_text(s, QUERY_JOB_KEYS, 1);
        r = id && strlen(id) < STORE_ID && !jobs_find(s, id) &&
                    add_job(s, id, store_column_int(s, QUERY_JOB_KEYS, 0))
                ? 0
                : store_error(s, id && strlen(id) >= STORE_ID ? SQLITE_CORRUPT : SQLITE_NOMEM, err);
    }
    return store_end(s, QUERY_JOB_KEYS, r);
}

int store_job_put(struct store *s, const struct store_job *put)
{
    struct stored_job *job = jobs_find(s, put->id);

    if (s->error)
        return -EIO;
    if (!job && strlen(put->id) != STORE_ID - 1)
        return -EINVAL;
    if (!job)
        job = add_job(s, put->id, s->last_key + 1);
    if (!job)
        return -ENOMEM;
    return STORE_PUT(s, QUERY_JOB_PUT, value_int(job->key), value_text(put->id),
                     value_text(put->name), value_text(put->spec), value_text(put->file),
                     value_text(put->options), value_int(put->submitted_unix_ms),
                     value_int(put->order), value_int(put->ended_unix_ms), value_text(put->final));
}

int store_job_end(struct store *s, const char *id, int64_t ended_unix_ms, const char *final_json)
{
    const struct stored_job *job = jobs_find(s, id);

    if (!job)
        return -ENOENT;
    return STORE_PUT(s, QUERY_JOB_END, value_int(job->key), value_int(ended_unix_ms),
                     value_text(final_json));
}

/* Slots and checkpoints go with the row of the job. */
int store_job_delete(struct store *s, const char *id)
{
    struct stored_job *job = jobs_find(s, id);
    int r;

    if (!job)
        return -ENOENT;
    r = STORE_PUT(s, QUERY_JOB_DELETE, value_int(job->key));
    if (!r)
        r = STORE_PUT(s, QUERY_NOTES_DELETE, value_int(job->key));
    if (!r)
        r = journal_delete(s, job);
    if (!r)
        drop_job(s, job);
    return r;
}

/* The row that `q` stands on; its texts are SQLite's. */
static void read_row(struct store *s, enum store_query q, struct store_job *ret)
{
    const char *id = store_column_text(s, q, 1);

    *ret = (struct store_job){
        .name = store_column_text(s, q, 2),
        .spec = store_column_text(s, q, 3),
        .file = store_column_text(s, q, 4),
        .options = store_column_text(s, q, 5),
        .submitted_unix_ms = store_column_int(s, q, 6),
        .order = store_column_int(s, q, 7),
        .ended_unix_ms = store_column_int(s, q, 8),
        .final = store_column_text(s, q, 9),
    };
    if (id)
        strncpy(ret->id, id, STORE_ID - 1);
}

int store_jobs(struct store *s, int (*each)(void *ctx, const struct store_job *job), void *ctx,
               struct spec_error *err)
{
    struct store_job job;
    int r = store_ask(s, QUERY_JOBS, NULL, 0, err);

    while (!r && (r = store_next(s, QUERY_JOBS, err)) == 1) {
        read_row(s, QUERY_JOBS, &job);
        r = each(ctx, &job);
    }
    return store_end(s, QUERY_JOBS, r);
}

static int copy_texts(struct store *s, struct store_job *job)
{
    const char **texts[] = {&job->name, &job->spec, &job->file, &job->options, &job->final};
    size_t at[sizeof texts / sizeof texts[0]], n = sizeof texts / sizeof texts[0];

    store_copy_begin(s);
    for (size_t i = 0; i < n; i++) {
        at[i] = *texts[i] ? store_copy(s, *texts[i], strlen(*texts[i])) : 0;
        if (at[i] == SIZE_MAX)
            return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        if (*texts[i])
            *texts[i] = s->copy.v + at[i];
    return 0;
}

int store_job_get(struct store *s, const char *id, struct store_job *ret)
{
    const struct stored_job *job = jobs_find(s, id);
    struct store_job found;
    struct spec_error err;
    int r;

    if (!job)
        return -ENOENT;
    r = STORE_ASK(s, QUERY_JOB, &err, value_int(job->key));
    if (!r)
        r = store_next(s, QUERY_JOB, &err);
    if (r == 1) {
        read_row(s, QUERY_JOB, &found);
        r = copy_texts(s, &found);
        if (!r)
            *ret = found;
    } else if (!r)
        r = -ENOENT;
    return store_end(s, QUERY_JOB, r);
}

/* queries.c - see store_impl.h: statements, the list of what was put, copies that go out
 *
 * The list is words of 64 bits: an operation is a word (statement, number of values), then each
 * value: a word (kind, size), and an integer's word or a text's or blob's bytes.
 */
#include "store/store_impl.h"

#include <string.h>

#define LIST_KEPT_WORDS ((size_t)1 << 18) /* a larger list is freed after its commit */
#define COPY_KEPT_BYTES ((size_t)1 << 20) /* larger copies at the next question */

static const char *const sql[N_QUERIES] = {
#define QUERY_SQL(name, sql) [QUERY_##name] = sql,
    STORE_QUERIES(QUERY_SQL)
#undef QUERY_SQL
};

struct value value_text_of(const char *s, size_t size)
{
    return (struct value){.kind = s ? VALUE_TEXT : VALUE_NULL, .size = s ? size : 0, .p = s};
}

struct value value_text(const char *s)
{
    return value_text_of(s, s ? strlen(s) : 0);
}

/* ---- the list -------------------------------------------------------------------------------- */

static size_t words(size_t bytes)
{
    return bytes / sizeof(uint64_t) + (bytes % sizeof(uint64_t) != 0);
}

static size_t words_of(const struct value *v)
{
    if (v->kind == VALUE_NULL)
        return 1;
    return v->kind == VALUE_INT ? 2 : 1 + words(v->size);
}

static uint64_t *write_value(uint64_t *to, const struct value *v)
{
    to[0] = (uint64_t)v->kind | (uint64_t)v->size << 2;
    if (v->kind == VALUE_INT)
        to[1] = (uint64_t)v->i;
    else if (v->size)
        memcpy(to + 1, v->p, v->size);
    return to + words_of(v);
}

static const uint64_t *read_value(const uint64_t *at, struct value *ret)
{
    ret->kind = (enum value_kind)(at[0] & 3);
    ret->size = (size_t)(at[0] >> 2);
    if (ret->kind == VALUE_INT)
        ret->i = (int64_t)at[1];
    else
        ret->p = at + 1;
    return at + words_of(ret);
}

int store_lose(struct store *s)
{
    s->lost = true;
    return -ENOMEM;
}

int store_put(struct store *s, enum store_query q, const struct value *v, size_t n)
{
    size_t more = 1;
    uint64_t *to;

    if (s->error)
        return -EIO;
    for (size_t i = 0; i < n; i++)
        more += words_of(&v[i]);
    if (s->lost || !vec_room(NULL, &s->list, more))
        return store_lose(s);
    to = &s->list.v[s->list.n];
    *to++ = (uint64_t)q | (uint64_t)n << 8;
    for (size_t i = 0; i < n; i++)
        to = write_value(to, &v[i]);
    s->list.n += more;
    return 0;
}

void store_forget(struct store *s)
{
    s->list.n = s->n_done = 0;
    s->n_steps_put = 0;
    if (s->list.cap > LIST_KEPT_WORDS)
        vec_free(NULL, &s->list);
}

/* ---- statements ------------------------------------------------------------------------------ */

static int prepare(struct store *s, enum store_query q)
{
    if (s->queries[q])
        return SQLITE_OK;
    return sqlite3_prepare_v3(s->db, sql[q], -1, SQLITE_PREPARE_PERSISTENT, &s->queries[q], NULL);
}

static int bind(sqlite3_stmt *q, int i, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        return sqlite3_bind_null(q, i);
    case VALUE_INT:
        return sqlite3_bind_int64(q, i, v->i);
    case VALUE_TEXT:
        return sqlite3_bind_text64(q, i, v->p, v->size, SQLITE_STATIC, SQLITE_UTF8);
    case VALUE_BYTES:
        return sqlite3_bind_blob64(q, i, v->p, v->size, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

static int finish(sqlite3_stmt *q)
{
    int r = sqlite3_step(q);

    sqlite3_reset(q);
    return r == SQLITE_DONE ? SQLITE_OK : r;
}

int store_run(struct store *s, enum store_query q)
{
    int r = prepare(s, q);

    return r == SQLITE_OK ? finish(s->queries[q]) : r;
}

/* The operation at *at, which moves behind it. */
static int run_operation(struct store *s, const uint64_t **at)
{
    enum store_query q = (enum store_query)(**at & 255);
    int n = (int)(**at >> 8), r = prepare(s, q);
    struct value v;

    ++*at;
    for (int i = 1; i <= n; i++) {
        *at = read_value(*at, &v);
        if (r == SQLITE_OK)
            r = bind(s->queries[q], i, &v);
    }
    return r == SQLITE_OK ? finish(s->queries[q]) : r;
}

int store_flush(struct store *s, struct spec_error *err)
{
    const uint64_t *at, *end;
    int r = SQLITE_OK;

    if (s->n_done == s->list.n)
        return 0;
    at = s->list.v + s->n_done;
    end = s->list.v + s->list.n;
    if (!s->open) {
        r = store_run(s, QUERY_BEGIN);
        s->open = r == SQLITE_OK;
    }
    while (r == SQLITE_OK && at < end)
        r = run_operation(s, &at);
    if (r != SQLITE_OK)
        return store_fail(s, r, err);
    s->n_done = s->list.n;
    return 0;
}

/* ---- questions ------------------------------------------------------------------------------- */

int store_ask(struct store *s, enum store_query q, const struct value *v, size_t n,
              struct spec_error *err)
{
    int r = s->error ? 0 : store_flush(s, err);

    if (s->error == -EUCLEAN)
        return store_why(s, err);
    if (r) {
        s->error = 0; /* the commit will fail by itself; until then, puts go on */
        return r;
    }
    r = prepare(s, q);
    for (size_t i = 0; r == SQLITE_OK && i < n; i++)
        r = bind(s->queries[q], (int)i + 1, &v[i]);
    return r == SQLITE_OK ? 0 : store_error(s, r, err);
}

int store_next(struct store *s, enum store_query q, struct spec_error *err)
{
    int r = sqlite3_step(s->queries[q]);

    if (r == SQLITE_ROW)
        return 1;
    return r == SQLITE_DONE ? 0 : store_error(s, r, err);
}

int store_end(struct store *s, enum store_query q, int r)
{
    sqlite3_reset(s->queries[q]);
    return r;
}

int64_t store_column_int(struct store *s, enum store_query q, int column)
{
    return sqlite3_column_int64(s->queries[q], column);
}

const char *store_column_text(struct store *s, enum store_query q, int column)
{
    return (const char *)sqlite3_column_text(s->queries[q], column);
}

void store_copy_begin(struct store *s)
{
    s->copy.n = 0;
    if (s->copy.cap > COPY_KEPT_BYTES)
        vec_free(NULL, &s->copy);
}

size_t store_copy(struct store *s, const void *p, size_t size)
{
    size_t at = s->copy.n;

    if (!vec_room(NULL, &s->copy, size + 1))
        return SIZE_MAX;
    if (size)
        memcpy(s->copy.v + at, p, size);
    s->copy.v[at + size] = '\0';
    s->copy.n += size + 1;
    return at;
}

void store_close_queries(struct store *s)
{
    for (int i = 0; i < N_QUERIES; i++)
        sqlite3_finalize(s->queries[i]);
}

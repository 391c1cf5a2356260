/* schema.c - see store_impl.h: the tables and their versions
 *
 * Versions stand in user_version. An older file is brought up by the steps in `migrations`, all in
 * one transaction; a newer one is refused.
 *
 * Steps and snapshots are found by one number, `row`: the job's key and the number within the job
 * [journal.c]. `made` is the order of making.
 */
#include "store/store_impl.h"

#include <stdio.h>

#define APPLICATION_ID 0x506c6e74 /* "Plnt" */

/* Larger files are checked where their small tables are; of the journal each page is checked when
 * it is read. */
#define CHECK_WHOLE_BYTES (16 * 1024 * 1024)

/* migrations[i] brings version i to i + 1. */
static const char *const migrations[STORE_VERSION] = {
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE job (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
    " spec TEXT NOT NULL, file TEXT, options TEXT NOT NULL, submitted_unix_ms INTEGER NOT NULL,"
    " place INTEGER NOT NULL, ended_unix_ms INTEGER NOT NULL, final TEXT) STRICT;"
    "CREATE TABLE step (row INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, event TEXT NOT NULL,"
    " actions TEXT NOT NULL) STRICT;"
    "CREATE TABLE snapshot (row INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;"
    "CREATE TABLE node (name TEXT PRIMARY KEY, incarnation INTEGER NOT NULL, about TEXT NOT NULL)"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE slot (node TEXT, slot INTEGER, job INTEGER NOT NULL REFERENCES job ON DELETE"
    " CASCADE, number INTEGER NOT NULL, PRIMARY KEY (node, slot)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX slot_job ON slot (job);"
    "CREATE TABLE checkpoint (made INTEGER PRIMARY KEY, job INTEGER NOT NULL REFERENCES job ON"
    " DELETE CASCADE, id INTEGER NOT NULL, savepoint INTEGER NOT NULL, status TEXT NOT NULL,"
    " path TEXT, cause TEXT, bytes INTEGER NOT NULL, triggered_unix_ms INTEGER NOT NULL,"
    " ended_unix_ms INTEGER NOT NULL, UNIQUE (job, id)) STRICT;"
    "CREATE TABLE note (job INTEGER, key TEXT, text TEXT NOT NULL, PRIMARY KEY (job, key))"
    " STRICT, WITHOUT ROWID;",
};

static int ask_number(struct store *s, const char *sql, int64_t *ret, struct spec_error *err)
{
    sqlite3_stmt *q;
    int r = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);

    if (r == SQLITE_OK && (r = sqlite3_step(q)) == SQLITE_ROW)
        *ret = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return r == SQLITE_ROW ? 0 : store_error(s, r, err);
}

static int refuse(struct store *s, int error, const char *why, struct spec_error *err)
{
    snprintf(err->text, sizeof err->text, "%s: %s", s->path, why);
    return error;
}

static int check_whose(struct store *s, int64_t version, struct spec_error *err)
{
    int64_t id = 0, tables = 0;
    int r = ask_number(s, "PRAGMA application_id", &id, err);

    if (!r)
        r = ask_number(s, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (r)
        return r;
    if (id != APPLICATION_ID && (id || version || tables))
        return refuse(s, -EINVAL, "a database of another program", err);
    if (version > STORE_VERSION) {
        snprintf(err->text, sizeof err->text,
                 "%s: version %lld, of a newer Pliant; this one reads up to %d", s->path,
                 (long long)version, STORE_VERSION);
        return -ENOTSUP;
    }
    return 0;
}

/* One line of PRAGMA quick_check: "ok", or what is wrong. */
static int quick_check(struct store *s, const char *sql, struct spec_error *err)
{
    sqlite3_stmt *q;
    int r = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
    const char *word = NULL;

    if (r == SQLITE_OK && (r = sqlite3_step(q)) == SQLITE_ROW)
        word = (const char *)sqlite3_column_text(q, 0);
    if (word && strcmp(word, "ok") != 0) {
        store_error(s, SQLITE_CORRUPT, err);
        snprintf(err->text, sizeof err->text, "%s: damaged: %.200s", s->path, word);
        s->why = *err;
        sqlite3_finalize(q);
        return -EUCLEAN;
    }
    sqlite3_finalize(q);
    return word ? 0 : store_error(s, r == SQLITE_ROW ? SQLITE_NOMEM : r, err);
}

static int check_whole(struct store *s, struct spec_error *err)
{
    static const char *const small[] = {
        "PRAGMA quick_check('meta')",       "PRAGMA quick_check('job')",
        "PRAGMA quick_check('node')",       "PRAGMA quick_check('slot')",
        "PRAGMA quick_check('checkpoint')", "PRAGMA quick_check('note')",
    };
    int64_t pages = 0, page_bytes = 1;
    int r = ask_number(s, "PRAGMA page_count", &pages, err);

    if (!r)
        r = ask_number(s, "PRAGMA page_size", &page_bytes, err);
    if (r)
        return r;
    if (pages <= CHECK_WHOLE_BYTES / page_bytes)
        return quick_check(s, "PRAGMA quick_check(1)", err);
    for (size_t i = 0; !r && i < sizeof small / sizeof small[0]; i++)
        r = quick_check(s, small[i], err);
    return r;
}

int schema_check(struct store *s, struct spec_error *err)
{
    int64_t version = 0;
    int r = ask_number(s, "PRAGMA user_version", &version, err);

    if (!r)
        r = check_whose(s, version, err);
    if (!r && version > 0)
        r = check_whole(s, err);
    return r;
}

static int exec(struct store *s, const char *sql, struct spec_error *err)
{
    int r = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

    return r == SQLITE_OK ? 0 : store_error(s, r, err);
}

int schema_bring_up(struct store *s, struct spec_error *err)
{
    char stamp[96];
    int64_t version = 0;
    int r = ask_number(s, "PRAGMA user_version", &version, err);

    if (r || version == STORE_VERSION)
        return r;
    snprintf(stamp, sizeof stamp, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             APPLICATION_ID, STORE_VERSION);
    r = exec(s, "BEGIN IMMEDIATE", err);
    for (; !r && version < STORE_VERSION; version++)
        r = exec(s, migrations[version], err);
    return r ? r : exec(s, stamp, err);
}

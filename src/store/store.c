/* store.c - see store.h: the file and its lock, commits, what happens when one fails
 *
 * The write-ahead log is moved into the file here, behind a commit and not as a part of it: that
 * needs more than one fsync, and its failure loses nothing. It is also done at the start: a log
 * that the last daemon could not sync may be whole in memory and not on the disk, and nothing may
 * be built upon it.
 *
 * While it is open nobody else reads the file (locking_mode EXCLUSIVE): no shared memory, no locks
 * to take at each commit.
 */
#include "store/store_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/directory.h"

#define LOG_PAGES 1000 /* unless the options say otherwise */

/* ---- errors ---------------------------------------------------------------------------------- */

static int errno_of(struct store *s, int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EUCLEAN;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -EACCES;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return s->db && sqlite3_system_errno(s->db) == EROFS ? -EROFS : -EIO;
    default:
        return -EIO;
    }
}

static const char *words_of(int error)
{
    switch (error) {
    case -ENOSPC:
        return "the disk is full";
    case -EROFS:
        return "cannot be written: read-only";
    case -EUCLEAN:
        return "damaged; it is left as it is";
    case -ENOMEM:
        return "no memory";
    case -EBUSY:
        return "another program has it open";
    case -EACCES:
        return "no permission";
    default:
        return "cannot be read or written";
    }
}

int store_error(struct store *s, int code, struct spec_error *err)
{
    int error = errno_of(s, code);

    snprintf(err->text, sizeof err->text, "%s: %s (%s)", s->path, words_of(error),
             sqlite3_errstr(code));
    if (error == -EUCLEAN) {
        s->error = error;
        s->why = *err;
    }
    return error;
}

/* Often SQLite has done so itself. */
static int roll_back(struct store *s)
{
    return sqlite3_get_autocommit(s->db) ? SQLITE_OK : store_run(s, QUERY_ROLLBACK);
}

int store_fail(struct store *s, int code, struct spec_error *err)
{
    int error = store_error(s, code, err);

    s->error = error;
    s->why = *err;
    roll_back(s);
    s->open = false;
    s->n_done = 0;
    return error;
}

int store_why(const struct store *s, struct spec_error *err)
{
    *err = s->why;
    return s->error;
}

/* What the system said about a path. */
static int refuse(int error, const char *path, const char *what, struct spec_error *err)
{
    snprintf(err->text, sizeof err->text, "%s: %s%s%s", path, what ? what : "", what ? ": " : "",
             strerror(error));
    return -error;
}

/* ---- commits --------------------------------------------------------------------------------- */

static int count_pages(void *ctx, sqlite3 *db, const char *name, int n_pages)
{
    struct store *s = ctx;

    (void)db, (void)name;
    s->n_pages = n_pages;
    return SQLITE_OK;
}

/* The log into the file. What fails is tried again when the log has grown: it has it all. */
static void move_log(struct store *s)
{
    int r = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

    s->move_at = s->log_pages + (r == SQLITE_OK ? 0 : s->n_pages);
}

int store_commit(struct store *s, struct spec_error *err)
{
    int r;

    if (s->error)
        return store_why(s, err);
    if (s->list.n == 0 && !s->lost)
        return 0;
    r = journal_trim(s);
    if (r) {
        snprintf(err->text, sizeof err->text, "%s: no memory for what is to be written", s->path);
        return r;
    }
    r = store_flush(s, err);
    if (r)
        return r;
    r = store_run(s, QUERY_COMMIT);
    if (r != SQLITE_OK)
        return store_fail(s, r, err);
    s->open = false;
    s->n_commits++;
    store_forget(s);
    if (s->n_pages >= s->move_at)
        move_log(s);
    return 0;
}

bool store_failed(const struct store *s)
{
    return s->error != 0;
}

int store_retry(struct store *s, struct spec_error *err)
{
    int r;

    if (s->error == -EUCLEAN)
        return store_why(s, err);
    r = roll_back(s); /* there may have been no memory for it */
    if (r != SQLITE_OK)
        return store_fail(s, r, err);
    s->error = 0;
    return store_commit(s, err);
}

uint64_t store_commits(const struct store *s)
{
    return s->n_commits;
}

/* 0 if there was none yet. */
static int last_epoch(struct store *s, uint64_t *ret, struct spec_error *err)
{
    int r = store_ask(s, QUERY_EPOCH_GET, NULL, 0, err);

    if (r)
        return r;
    r = store_next(s, QUERY_EPOCH_GET, err);
    if (r >= 0)
        *ret = r ? (uint64_t)store_column_int(s, QUERY_EPOCH_GET, 0) : 0;
    return store_end(s, QUERY_EPOCH_GET, r < 0 ? r : 0);
}

int store_next_epoch(struct store *s, uint64_t *ret, struct spec_error *err)
{
    uint64_t epoch = 0;
    int r = s->error ? store_why(s, err) : last_epoch(s, &epoch, err);

    if (r)
        return r;
    STORE_PUT(s, QUERY_EPOCH_PUT, value_id(++epoch)); /* the commit tells what is wrong */
    r = store_commit(s, err);
    if (!r)
        *ret = epoch;
    return r;
}

/* ---- the directory and its lock -------------------------------------------------------------- */

static int make_directory(const char *dir, struct spec_error *err)
{
    struct stat st;

    if (mkdir(dir, 0700) == 0 || (errno == EEXIST && stat(dir, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    return refuse(errno == EEXIST ? ENOTDIR : errno, dir, "cannot be the state directory", err);
}

static int busy(int fd, const char *dir, struct spec_error *err)
{
    char pid[24] = "";
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    snprintf(err->text, sizeof err->text, "%s: in use by another pliantd%s%s", dir,
             *pid ? ", process " : "", pid);
    return -EBUSY;
}

/* The lock belongs to the open file, so a second store of this process is refused as well. */
static int take_lock(struct store *s, const char *dir, struct spec_error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *path, pid[24];
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());

    if (asprintf(&path, "%s/lock", dir) < 0)
        return refuse(ENOMEM, dir, NULL, err);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    free(path);
    if (s->lock_fd < 0)
        return refuse(errno, dir, "cannot be locked", err);
    if (fcntl(s->lock_fd, F_OFD_SETLK, &lock) < 0)
        return errno == EAGAIN || errno == EACCES ? busy(s->lock_fd, dir, err)
                                                  : refuse(errno, dir, "cannot be locked", err);
    if (ftruncate(s->lock_fd, 0) < 0 || pwrite(s->lock_fd, pid, (size_t)n, 0) != n)
        return refuse(errno ? errno : EIO, dir, "cannot be locked", err);
    return 0;
}

/* The file, made if it is missing, is ours alone. SQLite gives its log the same mode. */
static int make_file(struct store *s, const char *dir, struct spec_error *err)
{
    int fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), r = 0;
    struct stat st;

    if (fd < 0)
        return refuse(errno, s->path, "cannot be opened", err);
    if (fstat(fd, &st) < 0)
        r = refuse(errno, s->path, NULL, err);
    else if (st.st_mode & 077) {
        snprintf(err->text, sizeof err->text,
                 "%s: others can read or write it (mode %03o); make it 600", s->path,
                 (unsigned)st.st_mode & 0777);
        r = -EACCES;
    } else if (st.st_size == 0)
        r = directory_sync(dir);
    close(fd);
    return r;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static int set_up(struct store *s, const char *pragmas, struct spec_error *err)
{
    int r = sqlite3_exec(s->db, pragmas, NULL, NULL, NULL);

    return r == SQLITE_OK ? 0 : store_error(s, r, err);
}

static int open_database(struct store *s, const char *vfs, struct spec_error *err)
{
    static const char before[] = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA mmap_size = 0;"
                                 "PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;"
                                 "PRAGMA foreign_keys = ON; PRAGMA cache_size = -500";
    static const char after[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                                "PRAGMA wal_autocheckpoint = 0;"
                                "PRAGMA journal_size_limit = 33554432";
    int r = sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs);

    if (r != SQLITE_OK)
        return store_error(s, r, err);
    sqlite3_extended_result_codes(s->db, 1);
    r = set_up(s, before, err);
    if (!r)
        r = schema_check(s, err);
    if (!r)
        r = set_up(s, after, err);
    if (!r)
        r = schema_bring_up(s, err);
    if (r)
        return r;
    sqlite3_wal_hook(s->db, count_pages, s);
    r = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return r == SQLITE_OK ? 0 : store_error(s, r, err);
}

static int open_all(struct store *s, const char *dir, const char *vfs, struct spec_error *err)
{
    int r = make_directory(dir, err);

    if (!r)
        r = take_lock(s, dir, err);
    if (!r)
        r = make_file(s, dir, err);
    if (!r)
        r = open_database(s, vfs, err);
    if (!r)
        r = jobs_load(s, err);
    if (!r)
        r = journal_load(s, err);
    return r;
}

int store_open(const char *dir, const struct store_options *opts, struct store **ret,
               struct spec_error *err)
{
    struct store *s = mem_zero(NULL, 1, sizeof *s);
    int r;

    if (!s)
        return refuse(ENOMEM, dir, NULL, err);
    s->lock_fd = -1;
    s->log_pages = s->move_at = opts->log_pages > 0 ? opts->log_pages : LOG_PAGES;
    s->journal_max = opts->journal_max > 0 ? (uint64_t)opts->journal_max : 0;
    r = asprintf(&s->path, "%s/pliant.db", dir) < 0 ? refuse(ENOMEM, dir, NULL, err)
                                                    : open_all(s, dir, opts->vfs, err);
    if (r)
        store_close(&s);
    else
        *ret = s;
    return r;
}

void store_close(struct store **store)
{
    struct store *s = *store;

    if (!s)
        return;
    store_close_queries(s);
    if (s->error && s->db) /* what is on the disk stays as it is */
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(s->db);
    jobs_free(s);
    vec_free(NULL, &s->list);
    vec_free(NULL, &s->trims);
    vec_free(NULL, &s->copy);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    free(s->path);
    mem_free(NULL, s);
    *store = NULL;
}

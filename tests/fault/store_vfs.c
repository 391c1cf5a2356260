/* store_vfs.c - see store_vfs.h */
#include "store_vfs.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/prng.h"

#define MAX_PATHS 8
#define SECTOR 512

/* ---- what was written and not synced --------------------------------------------------------- */

enum fate {
    PENDING, /* since the last sync */
    DURABLE,
    LOST, /* its sync failed */
};

struct change {
    enum fate fate;
    bool is_truncation; /* to `at` bytes */
    int64_t at;
    int n;                /* bytes written */
    int64_t size_before;  /* of the file */
    int n_before;         /* bytes that were there */
    unsigned char *after; /* [n], then [n_before] of before */
    unsigned char *before;
};

struct path {
    char name[256]; /* "": free */
    struct change *v;
    size_t n, cap;
};

static struct path paths[MAX_PATHS];

static struct path *path_of(const char *name)
{
    for (int i = 0; i < MAX_PATHS; i++)
        if (strcmp(paths[i].name, name) == 0)
            return &paths[i];
    for (int i = 0; i < MAX_PATHS; i++)
        if (!*paths[i].name) {
            snprintf(paths[i].name, sizeof paths[i].name, "%s", name);
            return &paths[i];
        }
    abort();
}

static void forget_changes(struct path *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].after);
    p->n = 0;
}

static void forget_path(struct path *p)
{
    forget_changes(p);
    free(p->v);
    *p = (struct path){.n = 0};
}

static struct change *add_change(struct path *p)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->v = realloc(p->v, p->cap * sizeof *p->v);
        if (!p->v)
            abort();
    }
    p->v[p->n] = (struct change){.fate = PENDING};
    return &p->v[p->n++];
}

static void synced(struct path *p)
{
    bool lost = false;

    for (size_t i = 0; i < p->n; i++) {
        if (p->v[i].fate == PENDING)
            p->v[i].fate = DURABLE;
        lost |= p->v[i].fate == LOST;
    }
    if (!lost)
        forget_changes(p);
}

static void sync_failed(struct path *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].fate == PENDING)
            p->v[i].fate = LOST;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static struct {
    struct vfs_plan plan;
    uint64_t n_due; /* requests of the kind that the plan is about */
    uint64_t n_writes, n_syncs;
    bool met;
} now;

void store_vfs_plan(struct vfs_plan plan)
{
    memset(&now, 0, sizeof now);
    now.plan = plan;
}

bool store_vfs_met(void)
{
    return now.met;
}

uint64_t store_vfs_writes(void)
{
    return now.n_writes;
}

uint64_t store_vfs_syncs(void)
{
    return now.n_syncs;
}

static bool is_about(enum vfs_fault fault, enum vfs_fault request)
{
    switch (fault) {
    case VFS_NONE:
        return false;
    case VFS_FULL:
    case VFS_WRITE:
    case VFS_TORN:
    case VFS_READ_ONLY:
        return request == VFS_WRITE;
    case VFS_SYNC:
    case VFS_READ:
        return request == fault;
    case VFS_OFF:
        return request != VFS_READ;
    }
    return false;
}

/* Does this request meet the fault? */
static bool fails(enum vfs_fault request)
{
    const struct vfs_plan *plan = &now.plan;

    if (!is_about(plan->fault, request))
        return false;
    now.n_due++;
    if (now.n_due < plan->at || (plan->n && now.n_due >= plan->at + plan->n))
        return false;
    now.met = true;
    return true;
}

/* What a request that meets the fault gets; `io` where the fault is not more exact. */
static int answer(int io)
{
    if (now.plan.fault == VFS_READ_ONLY)
        return SQLITE_READONLY;
    return now.plan.fault == VFS_FULL ? SQLITE_FULL : io;
}

/* ---- files ----------------------------------------------------------------------------------- */

struct file {
    sqlite3_file base;
    struct path *path;
    sqlite3_file *real; /* behind this struct */
};

static struct file *file_of(sqlite3_file *f)
{
    return (struct file *)f;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
    return file_of(f)->real;
}

static int fault_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int fault_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    if (fails(VFS_READ))
        return SQLITE_IOERR_READ;
    return real_of(f)->pMethods->xRead(real_of(f), to, n, at);
}

/* Remember n bytes at a place before they are written or cut off; `after` NULL: cut off. */
static int remember(sqlite3_file *f, const void *after, int n, int64_t at)
{
    sqlite3_file *real = real_of(f);
    struct change *c = add_change(file_of(f)->path);
    sqlite3_int64 size;
    int r = real->pMethods->xFileSize(real, &size);

    if (r != SQLITE_OK)
        return r;
    c->is_truncation = !after;
    c->at = at;
    c->n = after ? n : 0;
    c->size_before = size;
    c->n_before = size <= at ? 0 : size - at < n || !after ? (int)(size - at) : n;
    c->after = malloc((size_t)c->n + (size_t)c->n_before + 1);
    if (!c->after)
        abort();
    c->before = c->after + c->n;
    if (after)
        memcpy(c->after, after, (size_t)n);
    return c->n_before ? real->pMethods->xRead(real, c->before, c->n_before, at) : SQLITE_OK;
}

static int write_through(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    int r = n ? remember(f, from, n, at) : SQLITE_OK;

    return r || !n ? r : real_of(f)->pMethods->xWrite(real_of(f), from, n, at);
}

static int fault_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    now.n_writes++;
    if (!fails(VFS_WRITE))
        return write_through(f, from, n, at);
    if (now.plan.fault == VFS_TORN)
        write_through(f, from, n / 2, at);
    return answer(SQLITE_IOERR_WRITE);
}

static int fault_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int r;

    now.n_writes++;
    if (fails(VFS_WRITE))
        return answer(SQLITE_IOERR_TRUNCATE);
    r = remember(f, NULL, 0, size);
    return r ? r : real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int fault_sync(sqlite3_file *f, int flags)
{
    (void)flags;
    now.n_syncs++;
    if (fails(VFS_SYNC)) {
        if (now.plan.fault == VFS_SYNC)
            sync_failed(file_of(f)->path);
        return SQLITE_IOERR_FSYNC;
    }
    synced(file_of(f)->path);
    return SQLITE_OK;
}

static int fault_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int fault_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int fault_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int fault_check_lock(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

/* Hints of a size would write past the counters. */
static int fault_control(sqlite3_file *f, int op, void *arg)
{
    if (op == SQLITE_FCNTL_SIZE_HINT || op == SQLITE_FCNTL_CHUNK_SIZE)
        return SQLITE_OK;
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int fault_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int fault_device(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

/* Version 1: no shared memory, no mapping. */
static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = fault_close,
    .xRead = fault_read,
    .xWrite = fault_write,
    .xTruncate = fault_truncate,
    .xSync = fault_sync,
    .xFileSize = fault_size,
    .xLock = fault_lock,
    .xUnlock = fault_unlock,
    .xCheckReservedLock = fault_check_lock,
    .xFileControl = fault_control,
    .xSectorSize = fault_sector,
    .xDeviceCharacteristics = fault_device,
};

/* ---- the file system ------------------------------------------------------------------------- */

static sqlite3_vfs *base;
static sqlite3_vfs vfs;

static int fault_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    struct file *file = file_of(f);
    int r;

    (void)v;
    file->base.pMethods = NULL;
    file->real = (sqlite3_file *)(file + 1);
    r = base->xOpen(base, name, file->real, flags, ret_flags);
    if (r != SQLITE_OK)
        return r;
    file->path = path_of(name ? name : "(temporary)");
    file->base.pMethods = &methods;
    return SQLITE_OK;
}

static int fault_delete(sqlite3_vfs *v, const char *name, int sync_directory)
{
    (void)v, (void)sync_directory;
    now.n_writes++;
    if (fails(VFS_WRITE))
        return answer(SQLITE_IOERR_DELETE);
    forget_path(path_of(name));
    return base->xDelete(base, name, 0);
}

void store_vfs_register(void)
{
    if (base)
        return;
    base = sqlite3_vfs_find(NULL);
    vfs = *base;
    vfs.zName = STORE_VFS;
    vfs.szOsFile = (int)sizeof(struct file) + base->szOsFile;
    vfs.xOpen = fault_open;
    vfs.xDelete = fault_delete;
    sqlite3_vfs_register(&vfs, 0);
}

/* ---- loss of power --------------------------------------------------------------------------- */

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void undo(int fd, const struct change *c)
{
    if (c->n_before)
        must(pwrite(fd, c->before, (size_t)c->n_before, c->at) == c->n_before);
    must(ftruncate(fd, c->size_before) == 0);
}

static void redo(int fd, const struct change *c, int n)
{
    if (c->is_truncation)
        must(ftruncate(fd, c->at) == 0);
    else if (n)
        must(pwrite(fd, c->after, (size_t)n, c->at) == n);
}

/* Back to what was surely there, then what is kept of the rest, in order. */
static void lose(struct path *p, struct prng *random)
{
    int fd = open(p->name, O_RDWR);

    if (fd >= 0) {
        for (size_t i = p->n; i-- > 0;)
            undo(fd, &p->v[i]);
        for (size_t i = 0; i < p->n; i++) {
            const struct change *c = &p->v[i];
            uint64_t chance = random ? prng_next(random) % 4 : 0;

            if (c->fate == DURABLE || chance > 1)
                redo(fd, c, c->n);
            else if (chance == 1 && !c->is_truncation)
                redo(fd, c, c->n / 2 / SECTOR * SECTOR);
        }
        close(fd);
    }
    forget_path(p);
}

void store_vfs_power_loss(uint64_t seed)
{
    struct prng random = {seed};

    for (int i = 0; i < MAX_PATHS; i++)
        if (*paths[i].name)
            lose(&paths[i], seed ? &random : NULL);
}

void store_vfs_forget(void)
{
    for (int i = 0; i < MAX_PATHS; i++)
        if (*paths[i].name)
            forget_path(&paths[i]);
}

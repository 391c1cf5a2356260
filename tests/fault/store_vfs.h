/* store_vfs.h - a file system for SQLite that fails when told to, and loses power
 *
 * Wraps the system's VFS under the name STORE_VFS. It counts what it is asked to do; the k-th such
 * request meets the fault. What was written and not synced is remembered, so that a loss of power
 * can take it away again: all of it, or some, or halves of it.
 *
 *     store_vfs_plan((struct vfs_plan){VFS_SYNC, .at = k});
 *     ... use the store with .vfs = STORE_VFS, close it ...
 *     store_vfs_power_loss(0);           what was not synced is gone
 *
 * A sync that failed has lost what it should have written, also when a later one succeeds: so do
 * the kernels.
 *
 * Syncs are counted, not made: a test of thousands of them takes seconds.
 */
#ifndef PLIANT_TESTS_FAULT_STORE_VFS_H
#define PLIANT_TESTS_FAULT_STORE_VFS_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_VFS "pliant-faults"

enum vfs_fault {
    VFS_NONE,
    VFS_FULL,      /* a write: SQLITE_FULL */
    VFS_WRITE,     /* a write: SQLITE_IOERR_WRITE */
    VFS_TORN,      /* a write: half of it is done, then SQLITE_IOERR_WRITE */
    VFS_SYNC,      /* a sync: SQLITE_IOERR_FSYNC, and what it should have written is lost */
    VFS_READ_ONLY, /* a write: SQLITE_READONLY */
    VFS_READ,      /* a read: SQLITE_IOERR_READ */
    VFS_OFF,       /* power is lost: a write or sync, and all that comes after it, fails */
};

struct vfs_plan {
    enum vfs_fault fault;
    uint64_t at; /* the first request of this kind that fails, from 1 */
    uint64_t n;  /* so many fail, one after the other; 0: all from then on */
};

void store_vfs_register(void);
void store_vfs_plan(struct vfs_plan plan); /* counts anew, remembers what was not synced */
bool store_vfs_met(void);                  /* has the fault happened? */
uint64_t store_vfs_writes(void);
uint64_t store_vfs_syncs(void);

/* To be called with all files closed. `seed` 0: nothing that was not synced is left; else each
 * write is kept, torn or lost by chance. */
void store_vfs_power_loss(uint64_t seed);
void store_vfs_forget(void); /* the files are gone */

#endif

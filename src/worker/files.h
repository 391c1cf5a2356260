/* files.h - files that shall still be there after a crash */
#ifndef PLIANT_WORKER_FILES_H
#define PLIANT_WORKER_FILES_H

#include <stdint.h>

/* Sync a file, or a directory with all regular files and directories in it, and the directory that
 * names it. What vanishes meanwhile (another rank renames its own) is passed over. *ret_bytes: the
 * size of all files. 0 or a negative errno. */
int files_sync(const char *path, uint64_t *ret_bytes);

/* mkdir -p. 0 or a negative errno. */
int files_make_directory(const char *path);

#endif

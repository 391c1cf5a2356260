/* directory.h - directories that are still there after a power loss
 *
 * Errors  0 or a negative errno
 */
#ifndef PLIANT_STORE_DIRECTORY_H
#define PLIANT_STORE_DIRECTORY_H

/* Make a directory and those above it that are missing. */
int directory_make(const char *path);
/* Its entries survive a power loss from now on. */
int directory_sync(const char *path);
/* Remove it with all that is in it, following no link. Nothing there: 0. */
int directory_remove(const char *path);

#endif

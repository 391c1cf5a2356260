/* directory.c - see directory.h */
#include "store/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_AT_ONCE 32

int directory_make(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof part)
        return n == 0 ? -EINVAL : -ENAMETOOLONG;
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT)
        return -errno;
    memcpy(part, path, n + 1);
    for (char *at = part + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        if (mkdir(part, 0777) < 0 && errno != EEXIST)
            return -errno;
    }
    return mkdir(part, 0777) < 0 && errno != EEXIST ? -errno : 0;
}

int directory_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

    if (fd < 0)
        return -errno;
    if (fsync(fd) < 0 && errno != EINVAL) /* some file systems have nothing to sync there */
        r = -errno;
    close(fd);
    return r;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int directory_remove(const char *path)
{
    if (nftw(path, remove_one, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
        return -errno;
    return 0;
}

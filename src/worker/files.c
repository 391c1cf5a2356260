/* files.c - see files.h */
#include "worker/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int sync_entry(int dir, const char *name, uint64_t *bytes);

static int sync_children(int fd, uint64_t *bytes)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), r = 0; /* closedir() closes its own */
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    if (!entries) {
        r = -errno;
        if (copy >= 0)
            close(copy);
        return r;
    }
    while (r == 0 && (errno = 0, entry = readdir(entries)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = sync_entry(fd, entry->d_name, bytes);
    if (r == 0)
        r = -errno;
    closedir(entries);
    return r;
}

static int sync_open(int fd, const struct stat *st, uint64_t *bytes)
{
    int r = S_ISDIR(st->st_mode) ? sync_children(fd, bytes) : 0;

    if (S_ISREG(st->st_mode))
        *bytes += (uint64_t)st->st_size;
    return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

static int sync_entry(int dir, const char *name, uint64_t *bytes)
{
    struct stat st;
    int fd, r;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;
    fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    r = sync_open(fd, &st, bytes);
    close(fd);
    return r;
}

static int sync_parent(const char *path)
{
    char *parent = strdup(path), *slash;
    int fd, r = 0;

    if (!parent)
        return -ENOMEM;
    for (slash = parent + strlen(parent); slash > parent + 1 && slash[-1] == '/';)
        *--slash = '\0';
    slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = '\0'; /* "/" stays */
    fd = open(slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        r = -errno;
    if (fd >= 0)
        close(fd);
    free(parent);
    return r;
}

int files_sync(const char *path, uint64_t *ret_bytes)
{
    uint64_t bytes = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC), r;
    struct stat st;

    if (fd < 0)
        return -errno;
    r = fstat(fd, &st) < 0 ? -errno : sync_open(fd, &st, &bytes);
    close(fd);
    if (r == 0)
        r = sync_parent(path);
    if (r == 0 && ret_bytes)
        *ret_bytes = bytes;
    return r;
}

int files_make_directory(const char *path)
{
    char *copy = strdup(path);
    int r = 0;

    if (!copy)
        return -ENOMEM;
    for (char *slash = copy + 1; r == 0 && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            r = -errno;
        *slash = '/';
    }
    if (r == 0 && mkdir(copy, 0777) < 0 && errno != EEXIST)
        r = -errno;
    free(copy);
    return r;
}

/* directory.c - the few things that manifests do with directories (see manifest.h) */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/manifest.h"

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

/* ---- replacing a manifest ------------------------------------------------------------------- */

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, bytes, n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        bytes += put;
        n -= (size_t)put;
    }
    return 0;
}

static int write_file(const char *path, const struct json *body)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), r;

    if (fd < 0)
        return -errno;
    r = write_all(fd, body->v, body->n);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

int manifest_replace(const char *dir, const struct json *body, struct spec_error *err)
{
    char path[PATH_MAX], fresh[PATH_MAX];
    int r = body->error;

    if (r == 0 && (snprintf(fresh, sizeof fresh, "%s/%s.new", dir, MANIFEST_FILE) >= PATH_MAX))
        r = -ENAMETOOLONG;
    snprintf(path, sizeof path, "%s/%s", dir, MANIFEST_FILE);
    if (r == 0)
        r = write_file(fresh, body);
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r == 0)
        r = directory_sync(dir);
    if (r < 0)
        snprintf(err->text, sizeof err->text, "%s/%s: %s", dir, MANIFEST_FILE, strerror(-r));
    return r;
}

bool manifest_exists(const char *dir)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s", dir, MANIFEST_FILE) < PATH_MAX &&
           access(path, F_OK) == 0;
}

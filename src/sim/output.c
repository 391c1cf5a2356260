/* output.c - see output.h */
#include "sim/output.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".XXXXXX"

/* Temporary files that a signal takes with it; what finds no place here is left behind then. */
static char *volatile doomed[8];

static void doom(char *temporary)
{
    for (size_t i = 0; i < sizeof doomed / sizeof *doomed; i++)
        if (!doomed[i]) {
            doomed[i] = temporary;
            return;
        }
}

static void spare(const char *temporary)
{
    for (size_t i = 0; i < sizeof doomed / sizeof *doomed; i++)
        if (doomed[i] == temporary)
            doomed[i] = NULL;
}

static void die_clean(int signal_number)
{
    for (size_t i = 0; i < sizeof doomed / sizeof *doomed; i++)
        if (doomed[i])
            unlink(doomed[i]);
    raise(signal_number); /* blocked until this returns; then as if there were no handler */
}

void output_clean_on_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = die_clean, .sa_flags = (int)SA_RESETHAND};
    struct sigaction old;

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

/* The rights of the file: those of the one that it replaces, or as of any new one. mkstemp() is for
 * secrets. */
static mode_t rights(const struct stat *old)
{
    mode_t mask;

    if (old)
        return old->st_mode & 07777;
    mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int open_temporary(struct output *o, const struct stat *old)
{
    size_t length = strlen(o->target);
    int fd;

    o->temporary = malloc(length + sizeof SUFFIX);
    if (!o->temporary)
        return -ENOMEM;
    memcpy(o->temporary, o->target, length);
    memcpy(o->temporary + length, SUFFIX, sizeof SUFFIX);
    fd = mkstemp(o->temporary);
    if (fd < 0)
        return -errno;
    if (fchmod(fd, rights(old)) != 0 || !(o->file = fdopen(fd, "w"))) {
        int error = -errno;

        close(fd);
        unlink(o->temporary);
        return error;
    }
    doom(o->temporary);
    return 0;
}

static void forget(struct output *o)
{
    spare(o->temporary);
    free(o->temporary);
    free(o->target);
    *o = (struct output){.path = o->path};
}

int output_open(struct output *o, const char *path)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    int r;

    *o = (struct output){.path = path};
    if (exists && !S_ISREG(st.st_mode)) {
        o->file = fopen(path, "w");
        return o->file ? 0 : -errno;
    }
    /* a rename asks only for the directory's rights, and would put a file in place of a link */
    if (exists && access(path, W_OK) != 0)
        return -errno;
    o->target = exists ? realpath(path, NULL) : strdup(path);
    if (!o->target)
        return -errno;
    r = open_temporary(o, exists ? &st : NULL);
    if (r)
        forget(o);
    return r;
}

int output_commit(struct output *o)
{
    int r = fflush(o->file) == 0 ? 0 : -errno;

    if (!r && o->temporary && fsync(fileno(o->file)) != 0)
        r = -errno;
    if (fclose(o->file) != 0 && !r)
        r = -errno;
    if (!r && o->temporary && rename(o->temporary, o->target) != 0)
        r = -errno;
    if (r && o->temporary)
        unlink(o->temporary);
    forget(o);
    return r;
}

void output_abandon(struct output *o)
{
    if (!o->file)
        return;
    fclose(o->file);
    if (o->temporary)
        unlink(o->temporary);
    forget(o);
}

/* The directory that holds the path, and the name in it. */
static const char *split(const char *path, struct stat *ret_dir)
{
    const char *slash = strrchr(path, '/');
    char *dir = !slash          ? strdup(".")
                : slash == path ? strdup("/")
                                : strndup(path, (size_t)(slash - path));
    bool found = dir && stat(dir, ret_dir) == 0;

    free(dir);
    return !found ? NULL : slash ? slash + 1 : path;
}

static bool is_one(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool output_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    bool a_exists = stat(a, &of_a) == 0, b_exists = stat(b, &of_b) == 0;
    const char *name_a, *name_b;

    if (a_exists != b_exists)
        return false;
    if (a_exists)
        return S_ISREG(of_a.st_mode) && is_one(&of_a, &of_b);
    name_a = split(a, &of_a);
    name_b = split(b, &of_b);
    return name_a && name_b && strcmp(name_a, name_b) == 0 && is_one(&of_a, &of_b);
}

/* output.c - see output.h */
#include "sim/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".XXXXXX"

static int open_temporary(struct output *o)
{
    size_t length = strlen(o->path);
    mode_t mask = umask(0);
    int fd;

    umask(mask);
    o->temporary = malloc(length + sizeof SUFFIX);
    if (!o->temporary)
        return -ENOMEM;
    memcpy(o->temporary, o->path, length);
    memcpy(o->temporary + length, SUFFIX, sizeof SUFFIX);
    fd = mkstemp(o->temporary);
    if (fd < 0)
        return -errno;
    /* mkstemp() is for secrets; this file has the rights of any other */
    if (fchmod(fd, 0666 & ~mask) != 0 || !(o->file = fdopen(fd, "w"))) {
        int error = -errno;

        close(fd);
        unlink(o->temporary);
        return error;
    }
    return 0;
}

int output_open(struct output *o, const char *path)
{
    struct stat st;
    int r = 0;

    *o = (struct output){.path = path};
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        o->file = fopen(path, "w");
        return o->file ? 0 : -errno;
    }
    r = open_temporary(o);
    if (r) {
        free(o->temporary);
        o->temporary = NULL;
    }
    return r;
}

int output_commit(struct output *o)
{
    int r = fflush(o->file) == 0 ? 0 : -errno;

    if (!r && o->temporary && fsync(fileno(o->file)) != 0)
        r = -errno;
    if (fclose(o->file) != 0 && !r)
        r = -errno;
    o->file = NULL;
    if (!r && o->temporary && rename(o->temporary, o->path) != 0)
        r = -errno;
    if (r && o->temporary)
        unlink(o->temporary);
    free(o->temporary);
    o->temporary = NULL;
    return r;
}

void output_abandon(struct output *o)
{
    if (!o->file)
        return;
    fclose(o->file);
    if (o->temporary)
        unlink(o->temporary);
    free(o->temporary);
    *o = (struct output){.path = o->path};
}

/* lines.c - see lines.h */
#include "spec/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spec/memory.h"

#define PIECE 65536u /* of one read */

int lines_error(const struct lines *l, struct spec_error *err, const char *format, ...)
{
    va_list args;
    int n = l->line == 0 ? snprintf(err->text, sizeof err->text, "%s: ", l->name)
                         : snprintf(err->text, sizeof err->text, "%s:%u: ", l->name, l->line);

    va_start(args, format);
    if (n > 0 && (size_t)n < sizeof err->text)
        vsnprintf(err->text + n, sizeof err->text - (size_t)n, format, args);
    va_end(args);
    return -EINVAL;
}

static int system_error(const char *name, struct spec_error *err, const char *what, int error)
{
    snprintf(err->text, sizeof err->text, "%s: %s: %s", name, what, strerror(error));
    return -error;
}

static int no_memory(const char *name, struct spec_error *err)
{
    return system_error(name, err, "cannot be read", ENOMEM);
}

/* read(), again after a signal. */
static ssize_t read_some(int fd, char *v, size_t size)
{
    ssize_t n;

    do
        n = read(fd, v, size);
    while (n < 0 && errno == EINTR);
    return n;
}

static int write_all(int fd, const char *v, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, v, size);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            v += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

/* A descriptor of a new file without a name; closed with the last of its descriptors. */
static int nameless_file(void)
{
    FILE *file = tmpfile();
    int fd = file ? dup(fileno(file)) : -1;
    int error = errno;

    if (file)
        fclose(file);
    return fd < 0 ? -error : fd;
}

static void close_input(struct lines *l)
{
    if (l->fd > STDIN_FILENO)
        close(l->fd);
    l->fd = -1;
}

/* Take the place of a pipe with a copy of all that comes out of it. */
static int spool(struct lines *l, struct spec_error *err)
{
    char piece[PIECE];
    int copy = nameless_file(), r = copy < 0 ? copy : 0;
    ssize_t n = 0;

    while (r == 0 && (n = read_some(l->fd, piece, sizeof piece)) > 0)
        r = write_all(copy, piece, (size_t)n);
    if (r == 0 && n < 0)
        r = -errno;
    if (r == 0 && lseek(copy, 0, SEEK_SET) < 0)
        r = -errno;
    close_input(l);
    if (r < 0) {
        if (copy >= 0)
            close(copy);
        return system_error(l->name, err, "cannot be copied into a temporary file", -r);
    }
    l->fd = copy;
    return 0;
}

int lines_open(const char *path, size_t longest, bool again, struct lines *ret,
               struct spec_error *err)
{
    bool standard = strcmp(path, "-") == 0;
    struct lines l = {.name = standard ? "<stdin>" : path, .longest = longest};
    int r;

    l.fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (l.fd < 0)
        return system_error(path, err, "cannot be opened", errno);
    l.start = lseek(l.fd, 0, SEEK_CUR);
    if (again && l.start < 0) {
        l.start = 0;
        r = spool(&l, err);
        if (r < 0)
            return r;
    }
    *ret = l;
    return 0;
}

int lines_of(const char *name, const char *text, size_t size, size_t longest, struct lines *ret,
             struct spec_error *err)
{
    char *copy = mem_resize(spec_memory, NULL, size + 1, 1);

    if (!copy)
        return no_memory(name, err);
    if (size > 0)
        memcpy(copy, text, size);
    *ret = (struct lines){.name = name,
                          .fd = -1,
                          .longest = longest,
                          .v = copy,
                          .end = size,
                          .cap = size + 1,
                          .at_end = true};
    return 0;
}

/* Read some more behind v[end]. */
static int fill(struct lines *l, struct spec_error *err)
{
    ssize_t n;

    if (l->begin > 0) {
        memmove(l->v, l->v + l->begin, l->end - l->begin);
        l->scanned -= l->begin;
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->cap - l->end < PIECE) {
        size_t cap = l->cap + (l->cap > PIECE ? l->cap : PIECE);
        char *v = mem_resize(spec_memory, l->v, cap, 1);

        if (!v)
            return no_memory(l->name, err);
        l->v = v;
        l->cap = cap;
    }
    n = read_some(l->fd, l->v + l->end, l->cap - l->end);
    if (n < 0)
        return system_error(l->name, err, "cannot be read", errno);
    l->end += (size_t)n;
    l->at_end = n == 0;
    return 0;
}

/* Where the next line ends, or v + end. */
static const char *find_end(struct lines *l)
{
    const char *from = l->v + l->scanned;
    const char *found = l->end > l->scanned ? memchr(from, '\n', l->end - l->scanned) : NULL;

    l->scanned = found ? (size_t)(found - l->v) : l->end;
    return l->v + l->scanned;
}

static int too_long(const struct lines *l, struct spec_error *err)
{
    return lines_error(l, err, "the line is longer than %zu bytes, the limit", l->longest);
}

int lines_next(struct lines *l, char **ret_text, size_t *ret_size, bool *ret_cut,
               struct spec_error *err)
{
    size_t size;
    bool cut;

    while (l->v == NULL || find_end(l) == l->v + l->end) {
        int r;

        if (l->at_end)
            break;
        if (l->end - l->begin > l->longest + 1) { /* a CR may be the last */
            l->line++;
            return too_long(l, err);
        }
        r = fill(l, err);
        if (r < 0)
            return r;
    }
    if (l->begin == l->end)
        return 0;
    l->line++;
    cut = l->scanned == l->end;
    size = l->scanned - l->begin;
    *ret_text = l->v + l->begin;
    l->bytes += size + !cut;
    l->begin = l->scanned = l->scanned + !cut;
    if (!cut && size > 0 && (*ret_text)[size - 1] == '\r')
        size--;
    if (size > l->longest)
        return too_long(l, err);
    *ret_size = size;
    *ret_cut = cut;
    return 1;
}

int lines_rewind(struct lines *l, struct spec_error *err)
{
    l->begin = l->scanned = 0;
    l->line = 0;
    l->bytes = 0;
    if (l->fd < 0)
        return 0;
    l->end = 0;
    l->at_end = false;
    if (lseek(l->fd, l->start, SEEK_SET) < 0)
        return system_error(l->name, err, "cannot be read again", errno);
    return 0;
}

void lines_close(struct lines *l)
{
    close_input(l);
    mem_free(spec_memory, l->v);
    *l = (struct lines){.fd = -1};
}

/* lines.h - a file as a stream of lines, each at most so long
 *
 * For traces and recordings. A line ends with LF or CRLF; the last one needs no end, and the
 * reader is told when it has none, because then the file may have been cut.
 *
 * Memory  the longest line so far, at most `longest`, and one read's worth
 * Owner   lines_close() frees; a line is borrowed, and may be written to, until the next call
 * Errors  -EINVAL with the place, -ENOMEM, or the errno of reading
 */
#ifndef PLIANT_SPEC_LINES_H
#define PLIANT_SPEC_LINES_H

#include "spec/doc.h"

struct lines {
    const char *name; /* for errors: the path, or "<stdin>" */
    int fd;           /* -1: the whole text is in `v` */
    size_t longest;
    char *v;
    size_t begin, end, cap; /* v[begin..end) is read and not yet handed out */
    size_t scanned;         /* no line end before this */
    bool at_end;            /* nothing more to read */
    int64_t start;          /* offset of the first line in the file */
    uint32_t line;          /* number of the last line handed out, from 1 */
    uint64_t bytes;         /* handed out so far, line ends included */
};

/* Open a file; "-" is standard input. With `again`, what cannot be rewound (a pipe) is first
 * copied into a temporary file without a name. Borrows `path`. */
int lines_open(const char *path, size_t longest, bool again, struct lines *ret,
               struct spec_error *err);

/* The lines of a text, which is copied. */
int lines_of(const char *name, const char *text, size_t size, size_t longest, struct lines *ret,
             struct spec_error *err);

/* 1 and the next line without its end; `*ret_cut`: it has none. 0: no more. */
int lines_next(struct lines *l, char **ret_text, size_t *ret_size, bool *ret_cut,
               struct spec_error *err);

/* Back to the first line. */
int lines_rewind(struct lines *l, struct spec_error *err);

void lines_close(struct lines *l);

/* "name:line: " of the last line and the formatted rest into *err; returns -EINVAL. */
int lines_error(const struct lines *l, struct spec_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

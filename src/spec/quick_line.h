/* quick_line.h - the usual line of JSON Lines, decoded in one pass
 *
 * Traces and recordings have millions of lines, nearly all of them small maps of plain strings,
 * integers and truths. Those are decoded here, into the same tree that doc_line() makes; whatever
 * is not that simple (escapes, lists, other letters than ASCII, fractions, errors of any kind)
 * is left to doc_line(), which also words the errors.
 *
 * Owner   the tree lives in the struct quick_line until the next call; quick_line_free() frees
 * Errors  -ENOMEM
 */
#ifndef PLIANT_SPEC_QUICK_LINE_H
#define PLIANT_SPEC_QUICK_LINE_H

#include "spec/doc.h"

#define QUICK_NODES 32u /* in a tree at most */

struct quick_line {
    struct doc nodes[QUICK_NODES];
    char *text; /* the line, whose strings were ended in place */
};

/* 1 and the tree; 0: ask doc_line(). */
int quick_line(struct quick_line *q, const char *text, size_t size, uint32_t line,
               struct doc **ret);

/* Decode with one or the other into f->root. 0, -EINVAL, -ENOMEM. */
int quick_line_decode(struct quick_line *q, struct doc_file *f, const char *text, size_t size,
                      uint32_t line, struct spec_error *err);

void quick_line_free(struct quick_line *q);

#endif

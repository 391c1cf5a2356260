/* errands.h - what touches the directory of results, done by a thread of its own
 *
 * That directory may be on a file system that is slow, and what is deleted in it may be large. The
 * loop hands errands over and gets them back, done, when errands_fd() is readable. Deleting lets
 * the other kinds go first, between any two files.
 *
 * Owner   an errand belongs to whom it was handed to; errand_free() frees what it points to as well
 * Errors  out of memory ends the agent
 */
#ifndef PLIANT_AGENT_ERRANDS_H
#define PLIANT_AGENT_ERRANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/vec.h"

enum errand_kind {
    ERRAND_PREPARE, /* are `in` there? Then make `out`, empty */
    ERRAND_MEASURE, /* sizes of the files of `out` */
    ERRAND_REMOVE,  /* ROOT/JOB, or ROOT/JOB/RESULT */
};

/* What one attempt wrote, or will write, for an edge: a directory with a file for each
 * subpartition, named by its number. */
struct place {
    char *path;
    uint32_t edge, subtask, attempt;
    uint32_t n; /* subpartitions */
    uint64_t *bytes;
};

struct errand {
    enum errand_kind kind;
    uint64_t task; /* the keeper's number of it */
    struct VEC(struct place) in;
    struct VEC(struct place) out;
    char *root, *job, *result; /* REMOVE; result NULL: all that the job has */

    int error;                 /* 0 or -errno, then: */
    const struct place *where; /* PREPARE, MEASURE */
    bool lost;                 /* ... that is one of `in` */
    struct errand *next;
};

struct errands;

struct errand *errand_new(enum errand_kind kind);
void errand_free(struct errand *e);

struct errands *errands_open(void);
int errands_fd(const struct errands *all);
void errands_give(struct errands *all, struct errand *e); /* takes it */
struct errand *errands_take(struct errands *all);         /* one that is done, or NULL */
/* What is not done is left: whoever asked for it asks again. Waits a moment for what is under way.
 */
void errands_close(struct errands **all);

#endif

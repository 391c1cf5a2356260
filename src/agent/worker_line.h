/* worker_line.h - one line of a worker's socket (docs/worker.md)
 *
 * Pure but for memory. Strings and documents are borrowed from the doc_file until its next use.
 */
#ifndef PLIANT_AGENT_WORKER_LINE_H
#define PLIANT_AGENT_WORKER_LINE_H

#include "spec/doc.h"

#define WORKER_LINE_MAX (256u * 1024u) /* bytes without the end of the line */

enum worker_op {
    WORKER_HELLO,
    WORKER_REPORT,
    WORKER_ENTER,
    WORKER_GET_PREEMPTION_INFO,
    WORKER_GET_CHECKPOINT,
    WORKER_PART,
    WORKER_END_OF_DATA,
    WORKER_HEALTH,
    WORKER_OUTPUT,
    WORKER_INPUT_LOST,
};

struct worker_line {
    enum worker_op op;
    bool has_n; /* "n" was given, and the answer repeats it */
    int64_t n;
    int64_t number;            /* "call" or "seq"; 0: absent */
    bool checkpoints, health;  /* hello */
    const struct doc *metrics; /* report; NULL: none */
    const char *checkpoint;    /* report; NULL: none */
    const char *kind;          /* enter */
    const struct doc *payload; /* enter; NULL: null */
    uint64_t id;               /* part */
    bool ok;                   /* part */
    int64_t bytes;             /* part, report */
    const char *cause;         /* part; NULL: none */
    uint32_t edge, subtask;    /* output, input_lost */
    const struct doc *sizes;   /* output: numbers from 0, their sum at most 2^53 */
};

/* 0; -EINVAL with a code of docs/worker.md and a text for people (has_n and n are set if they
 * could be read); -ENOMEM. */
int worker_line_read(struct doc_file *f, const char *text, size_t size, struct worker_line *ret,
                     const char **ret_code, struct spec_error *err);

#endif

/* trace.h - what happens to a cluster, read as a stream of events
 *
 * A trace is JSON Lines: a header {"pliant_trace":1,...}, then one event a line with "t" and
 * "ev". The reader checks each line by itself and, as it goes, against the history of the
 * cluster and against the job, so that whoever takes the events need not check again.
 *
 *     trace_open(path, &rules, &trace, &err);
 *     trace_scan(trace, &summary, &err);              the whole file is sound, or nothing is done
 *     while ((r = trace_next(trace, &ev, &err)) == 1) ...
 *     trace_close(&trace);
 *
 * Blank lines are skipped, CRLF is accepted. A node that is down is forgotten: memory follows
 * the nodes that are up at one time (at most PLIANT_MAX_NODES) and the longest line.
 *
 * Units   t_ms from the start of the trace, never decreasing; deadline_ms is a duration from t
 * Owner   an event and its strings are borrowed until the next call on the trace
 * Errors  -EINVAL with file, line, field and what is accepted; -ENOMEM; the errno of reading
 * Source  the schema of traces, version 1 (docs/simulator.md)
 */
#ifndef PLIANT_SPEC_TRACE_H
#define PLIANT_SPEC_TRACE_H

#include <pliant/pliant.h>

#include "spec/doc.h"

#define TRACE_LINE_MAX (1024u * 1024u)

/* A node with this label, a number > 0, needs so many times as long for what runs on it. */
#define TRACE_SLOW_LABEL "pliant.sim.slow"

enum trace_kind {
    TRACE_NODE_UP, /* joins, or withdraws the drain of a node that drains */
    TRACE_NODE_DOWN,
    TRACE_NODE_DRAIN,
    TRACE_CHECKPOINT,
    TRACE_CHECKPOINT_FAILED,
    TRACE_SAVEPOINT_COMPLETED,
    TRACE_SAVEPOINT_FAILED,
    TRACE_TASK_RUNNING,
    TRACE_TASK_FINISHED,
    TRACE_TASK_CANCELED,
    TRACE_TASK_FAILED,
    TRACE_GLOBAL_FAILURE,
    TRACE_CREATION_FAILED,
    TRACE_REQUIREMENTS,
    TRACE_CANCEL,
    TRACE_SUSPEND,
    TRACE_STOP_WITH_SAVEPOINT,
    TRACE_LAUNCHED, /* of a worker group, from here on */
    TRACE_LAUNCH_FAILED,
    TRACE_WORKER_EXIT,
    TRACE_REPORT,
    TRACE_KINDS,
};

/* Only the members that the kind has are set; the others are 0. */
struct trace_event {
    int64_t t_ms;
    enum trace_kind kind;
    uint32_t line; /* in the trace's file */

    /* node_up, node_down, node_drain */
    const char *node;
    uint64_t incarnation; /* of this life of the node: its number among all arrivals */
    uint32_t slots;
    bool withdraws;            /* node_up: the node is up and drains */
    const char *zone, *domain; /* NULL: not given */
    const struct pliant_label *labels;
    size_t n_labels;
    int64_t deadline_ms; /* <= 0: none was given */
    enum pliant_drain_reason reason;

    /* checkpoint, checkpoint_failed */
    uint64_t id;
    bool counts;

    /* task_... */
    const char *vertex;
    pliant_vertex_id vertex_id; /* unset where the rules name no job */
    uint32_t subtask;

    /* task_failed: it could not read what this producer wrote for an edge of the job */
    bool input_lost;
    uint32_t edge, producer;

    /* failures; savepoint_failed has a cause, savepoint_completed a path */
    bool recoverable;
    const char *cause, *path; /* NULL: not given */

    /* worker_exit: one of them is -1; task_failed: code, 0: not given; report: `path` NULL is
     * metrics only */
    int64_t code, signal;
    uint64_t call;

    /* requirements: bounds that are not given are -1, the default */
    const struct pliant_bounds *bounds;
    size_t n_bounds;
};

struct trace_rules {
    const struct pliant_job *job; /* borrowed; NULL: events name any vertex */
    bool lenient; /* what does not fit the history or the job is left out, with a warning */
    void (*warn)(void *ctx, const char *text); /* on the first pass only; may be NULL */
    void *ctx;
};

struct trace_summary {
    uint64_t events;
    int64_t last_t_ms;     /* 0 without events */
    bool has_checkpoints;  /* a checkpoint event, completed or failed */
    bool has_savepoints;   /* the same of savepoints */
    uint64_t launches;     /* `launched` and `launch_failed` up to the last `launched` */
    uint64_t lines, bytes; /* 0 for a list in a document */
};

struct trace; /* opaque */

/* Open a file, "-" is standard input, and read the header. What cannot be read twice is copied
 * into a temporary file first. `rules` is copied. */
int trace_open(const char *path, const struct trace_rules *rules, struct trace **ret,
               struct spec_error *err);

/* The same on a text in memory, which is copied. */
int trace_of_text(const char *name, const char *text, size_t size, const struct trace_rules *rules,
                  struct trace **ret, struct spec_error *err);

/* The same on a list in a document: the header, then the events. Borrows the document. */
int trace_of_list(const struct doc_file *f, const struct doc *list, const struct trace_rules *rules,
                  struct trace **ret, struct spec_error *err);

/* 1 and the next event; 0 at the end. */
int trace_next(struct trace *t, struct trace_event *ret, struct spec_error *err);

/* Back to the first event, with an empty cluster. */
int trace_rewind(struct trace *t, struct spec_error *err);

/* Read all events, from the first, and rewind: 0 says that trace_next() will not fail, as long
 * as nobody writes to the file. */
int trace_scan(struct trace *t, struct trace_summary *ret, struct spec_error *err);

/* "name" of the header, or NULL. */
const char *trace_name(const struct trace *t);

/* Free *t and set it to NULL. Fine on NULL. */
void trace_close(struct trace **t);

#endif

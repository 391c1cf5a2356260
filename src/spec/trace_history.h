/* trace_history.h - does an event fit what came before it, and the job?
 *
 * Keeps the nodes that are up, by name. A node that went down is forgotten: its next life has a
 * new incarnation, because incarnations number all arrivals of the trace.
 *
 * Owner   trace_history_free() frees; the job is borrowed
 * Errors  HISTORY_MISFIT with a text: the event is to be left out or to end the reading, and
 *         the nodes are as before; -EINVAL (beyond limits, time goes back), -ENOMEM
 */
#ifndef PLIANT_SPEC_TRACE_HISTORY_H
#define PLIANT_SPEC_TRACE_HISTORY_H

#include "spec/trace.h"

struct trace_history {
    const struct pliant_job *job; /* or NULL */
    struct history_node *nodes;
    int64_t t_ms; /* of the last event */
    uint64_t arrivals;
    uint64_t slots; /* of all nodes that are up */
};

#define HISTORY_MISFIT 1

/* Fills in the incarnation, `withdraws` and the vertex's id. `object` is what the event was
 * decoded from. */
int trace_history_take(struct trace_history *h, const struct doc_file *f, const struct doc *object,
                       struct trace_event *ev, struct spec_error *err);

void trace_history_free(struct trace_history *h);

#endif

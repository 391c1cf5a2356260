/* trace_decode.h - one object of a trace -> what it says by itself
 *
 * The same for a line of a trace and for an element of a case's list. Keys, types and ranges are
 * checked here; whether the event fits the cluster and the job is trace_history.h's question.
 *
 * Owner   the event borrows from the document and from the decoder, until the next call
 * Errors  -EINVAL with the place and what is accepted, -ENOMEM
 */
#ifndef PLIANT_SPEC_TRACE_DECODE_H
#define PLIANT_SPEC_TRACE_DECODE_H

#include "spec/trace.h"
#include "util/vec.h"

struct trace_decoder {
    struct VEC(struct pliant_label) labels;
    struct VEC(struct pliant_bounds) bounds;
};

/* All members but those that the history gives. */
int trace_decode(struct trace_decoder *d, const struct doc_file *f, const struct doc *object,
                 struct trace_event *ret, struct spec_error *err);

/* Is it a header of this version? *ret_name: its "name", or NULL. */
int trace_decode_header(const struct doc_file *f, const struct doc *object, const char **ret_name,
                        struct spec_error *err);

void trace_decoder_free(struct trace_decoder *d);

#endif

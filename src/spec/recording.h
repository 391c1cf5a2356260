/* recording.h - the journal of a run as text: what went in, what came out
 *
 * JSON Lines: a header {"pliant_journal":1,"job":{...},"options":{...},"seed":"..."} that makes
 * the same scheduler again without any other file, then one line a step:
 * {"t":0,"event":{"ev":...},"actions":[{"act":...},...]}. The text of a step has one spelling
 * only, so that a replay compares bytes. A recording that begins in the middle of a run has
 * "snapshot":"..." in its header: the bytes of pliant_snapshot() before its first step, in
 * hexadecimal digits.
 *
 *     recording_open(path, &rec, &err);
 *     pliant_sched_new(recording_config(rec), recording_job(rec), &s, ...);
 *     while ((r = recording_next(rec, &step, &err)) == 1) {
 *         pliant_step(s, step.at_ms, &step.event, &acts);
 *         recording_write_actions(&j, NULL, recording_job(rec), s, &acts);
 *         same = j.n == step.actions_size && memcmp(j.v, step.actions, j.n) == 0;
 *     }
 *
 * Names stand for ids wherever there are names; 64-bit ids are strings; what is absent (NULL,
 * PLIANT_NEVER, an id of 0 that means "none") is left out.
 *
 * Owner   a step is borrowed until the next call; the job and config belong to the recording
 * Errors  -EINVAL with file, line, field; -ENOMEM; the errno of reading. Those of writing stay
 *         in the struct json
 */
#ifndef PLIANT_SPEC_RECORDING_H
#define PLIANT_SPEC_RECORDING_H

#include <pliant/pliant.h>

#include "spec/doc.h"
#include "spec/json_out.h"

/* `cfg` is resolved; `snapshot` NULL: from the start. */
void recording_write_header(struct json *j, const struct pliant_job *job,
                            const struct pliant_config *cfg, const void *snapshot, size_t size);

/* A whole line, right after the step: names of nodes come from `sched`. */
void recording_write_step(struct json *j, const struct pliant_job *job,
                          const struct pliant_sched *sched, int64_t at_ms,
                          const struct pliant_event *ev, const struct pliant_actions *acts);

/* Its two parts, as a member `key` or an element (NULL). */
void recording_write_event(struct json *j, const char *key, const struct pliant_job *job,
                           const struct pliant_event *ev);
void recording_write_actions(struct json *j, const char *key, const struct pliant_job *job,
                             const struct pliant_sched *sched, const struct pliant_actions *acts);

struct recording_step {
    int64_t at_ms;
    struct pliant_event event;
    const char *actions; /* "[...]" as it was written; not NUL-terminated */
    size_t actions_size;
    uint32_t line;
};

struct recording; /* opaque */

/* Open a file ("-" is standard input) and read the header. */
int recording_open(const char *path, struct recording **ret, struct spec_error *err);

/* The same on a text in memory, which is copied. */
int recording_of_text(const char *name, const char *text, size_t size, struct recording **ret,
                      struct spec_error *err);

const char *recording_name(const struct recording *r); /* as in errors */
const struct pliant_job *recording_job(const struct recording *r);
const struct pliant_config *recording_config(const struct recording *r); /* resolved */

/* What it begins with; NULL: a new scheduler. */
const void *recording_snapshot(const struct recording *r, size_t *ret_size);

/* 1 and the next step; 0 at the end. Time that goes back is an error. */
int recording_next(struct recording *r, struct recording_step *ret, struct spec_error *err);

/* Free *r and set it to NULL. Fine on NULL. */
void recording_close(struct recording **r);

/* The events of steps that are kept elsewhere, as in a recording: {"ev":...}. Borrows the name, for
 * errors, and the job. An event is borrowed until the next call. */
struct recording_decoder; /* opaque */
int recording_decoder_new(const char *name, const struct pliant_job *job,
                          struct recording_decoder **ret);
int recording_event_decode(struct recording_decoder *decoder, const char *text, size_t size,
                           uint32_t line, struct pliant_event *ret, struct spec_error *err);
void recording_decoder_free(struct recording_decoder **decoder);

#endif

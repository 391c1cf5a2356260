/* record.c - RECORD: a job's journal as a recording, in pieces
 *
 * The first piece has the header. Where the beginning of the journal has been deleted, the header
 * has the oldest snapshot that is kept, and the steps behind it follow.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/requests_impl.h"
#include "spec/recording.h"

#define PIECE_BYTES (4u * 1024u * 1024u)
#define FULL 1 /* ends the walk over the steps */

struct piece {
    struct json lines;
    uint64_t last; /* step in it */
    bool full;
};

static int add_step(void *ctx, const struct store_step *step)
{
    struct piece *p = ctx;
    struct json *j = &p->lines;

    p->full = j->n > 0 && j->n + step->event_size + step->actions_size > PIECE_BYTES;
    if (p->full)
        return FULL;
    json_begin(j, NULL, '{');
    json_int(j, "t", step->at_ms);
    json_raw(j, "event", step->event, step->event_size);
    json_raw(j, "actions", step->actions, step->actions_size);
    json_end(j, '}');
    p->last = step->n;
    return json_line(j);
}

static int note_first(void *ctx, const struct store_step *step)
{
    *(uint64_t *)ctx = step->n;
    return FULL;
}

static int after_snapshot(struct daemon *d, const struct daemon_job *job, struct piece *p,
                          struct spec_error *err)
{
    const void *bytes;
    size_t size;
    int r = store_snapshot_first(d->store, job->id, &p->last, &bytes, &size);

    if (r == 0 && p->last == 0) {
        snprintf(err->text, sizeof err->text, "%s: the journal has no beginning", job->id);
        return -ENOENT;
    }
    if (r == 0)
        recording_write_header(&p->lines, job->spec.job, job->config, bytes, size);
    return r;
}

/* The header; p->last is then the step that the recording goes on behind. */
static int begin(struct daemon *d, const struct daemon_job *job, struct piece *p,
                 struct spec_error *err)
{
    uint64_t first = 1;
    int r = store_steps(d->store, job->id, 0, note_first, &first, err);

    if (r < 0)
        return r;
    if (first > 1)
        return after_snapshot(d, job, p, err);
    recording_write_header(&p->lines, job->spec.job, job->config, NULL, 0);
    return 0;
}

static int write_piece(struct daemon *d, const struct daemon_job *job, struct piece *p,
                       struct spec_error *err)
{
    int r = p->last == 0 ? begin(d, job, p, err) : 0;

    if (r == 0)
        r = store_steps(d->store, job->id, p->last, add_step, p, err);
    return r < 0 ? r : p->lines.error;
}

static void answer(struct call *c, struct piece *p)
{
    struct json *j = call_begin(c);

    json_raw(&p->lines, NULL, "", 1); /* the end of a string */
    json_string(j, "lines", p->lines.error ? "" : p->lines.v);
    if (p->full)
        json_id(j, "next", p->last);
    else
        json_null(j, "next");
    call_end(c);
}

static bool number(const char *text, uint64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && errno == 0;
}

/* A job that has ended keeps only its name in memory. */
static int from_store(struct daemon *d, const char *id, struct daemon_job **ret,
                      struct spec_error *err)
{
    struct store_job row;
    int r = store_job_get(d->store, id, &row);

    snprintf(err->text, sizeof err->text, "%s: its text is not in the store", id);
    return r < 0 ? r : job_of_store(&row, ret, err);
}

void record(struct call *c)
{
    struct daemon_job *job, *decoded = NULL;
    struct piece p = {0};
    const char *from = "0";
    struct spec_error err = {""};
    int r = 0;

    if (!call_string(c, "from", 24, &from) || !call_job(c, &job))
        return;
    if (!number(from, &p.last)) {
        refuse(c, "invalid", "from: \"%s\"; accepted: \"0\", or what \"next\" said", from);
        return;
    }
    if (!job->spec.job)
        r = from_store(c->d, job->id, &decoded, &err);
    if (r == 0)
        r = write_piece(c->d, decoded ? decoded : job, &p, &err);
    need(r != -ENOMEM ? c : NULL);
    if (r < 0)
        refuse(c, "refused", "%s", err.text);
    else
        answer(c, &p);
    json_free(&p.lines);
    if (decoded)
        job_free(decoded);
}

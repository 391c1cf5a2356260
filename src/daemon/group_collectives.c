/* group_collectives.c - what all ranks of a group call together: checkpoint_dir() and
 * get_preemption_info()
 *
 * Each is let go when all ranks are in, with rank 0's payload. Before agents are told it stands in
 * the store, so that a rank whose answer got lost can be told again by the next daemon.
 */
#include "daemon/groups_impl.h"
#include "spec/json_doc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MISSING_MAX 200 /* bytes of a list of ranks */

/* ---- answers -------------------------------------------------------------------------------- */

static void answer(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                   int64_t number, const char *payload, const char *error)
{
    struct json j;

    json_int(group_body(&j, job, task), "seq", number);
    if (payload)
        json_raw(&j, "payload", payload, strlen(payload));
    else
        json_null(&j, "payload");
    if (error)
        json_string(&j, "error", error);
    json_end(&j, '}');
    group_send(d, job, task, MESSAGE_RELEASED, &j);
    json_free(&j);
}

static void answer_as_last(struct daemon *d, struct daemon_job *job, const struct pliant_task *task)
{
    const struct collective *c = &job->group->collective;

    answer(d, job, task, c->released, c->payload, c->error);
}

static void put_released(struct daemon *d, const struct daemon_job *job)
{
    const struct collective *c = &job->group->collective;
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_uint(&j, "attempt", job->group->attempt);
    json_int(&j, "seq", c->released);
    json_raw(&j, "payload", c->payload, strlen(c->payload));
    json_string(&j, "error", c->error);
    group_put_note(d, job, NOTE_COLLECTIVE, &j);
}

void collectives_recall(struct daemon_job *job, const struct doc_file *f)
{
    struct collective *c = &job->group->collective;
    struct spec_error err;

    if (doc_int(f, f->root, "seq", 1, DOC_INTEGER_MAX, &c->released, &err) < 0)
        return;
    c->payload = need(json_doc_text(doc_get(f->root, "payload"), "null"));
    c->error = group_text(doc_get(f->root, "error"));
}

static void let_go(struct daemon *d, struct daemon_job *job, struct pliant_task task)
{
    struct collective *c = &job->group->collective;

    put_released(d, job);
    if (c->error)
        log_line(4, "msg=\"a collective fails\" job=%s error=%s", job->id, log_quoted(c->error).v);
    for (task.subtask = 0; task.subtask < c->barrier.n; task.subtask++)
        if (c->barrier.in[task.subtask])
            answer_as_last(d, job, &task);
    collective_clear(c);
}

/* ---- a rank enters -------------------------------------------------------------------------- */

static int read_entry(const struct doc_file *f, const struct doc *at, struct collective_entry *ret,
                      struct spec_error *err)
{
    const char *kind = "";
    int r = doc_int(f, at, "seq", 1, DOC_INTEGER_MAX, &ret->number, err);

    if (r == -ENOENT)
        r = doc_error(f, at, err, "seq: missing");
    if (r == 0)
        r = doc_optional(doc_string(f, at, "kind", PLIANT_NAME_MAX, &kind, err));
    if (r < 0)
        return r;
    if (strcmp(kind, "dir") != 0 && strcmp(kind, "notice") != 0)
        return doc_error(f, at, err, "kind: accepted: dir, notice");
    ret->kind = *kind == 'd' ? COLLECTIVE_DIR : COLLECTIVE_NOTICE;
    return 0;
}

static void enter(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                  const struct collective_entry *e)
{
    struct collective *c = &job->group->collective;
    char wrong[192];

    switch (collective_enter(c, e, d->clock.now_ms, job->config->group.collective_warn_interval_ms,
                             wrong, sizeof wrong)) {
    case COLLECTIVE_WAITS:
        groups_wake(d, c->barrier.warn_at_ms);
        if (job->config->group.collective_timeout_ms > 0)
            groups_wake(d, c->barrier.since_ms + job->config->group.collective_timeout_ms);
        return;
    case COLLECTIVE_LET_GO:
        let_go(d, job, *task);
        return;
    case COLLECTIVE_WAS:
        answer_as_last(d, job, task);
        return;
    case COLLECTIVE_WRONG:
        log_line(4, "msg=\"a collective fails\" job=%s error=%s", job->id, log_quoted(wrong).v);
        answer(d, job, task, e->number, NULL, wrong);
        return;
    }
}

void group_enter(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                 const struct doc_file *f, const struct doc *at)
{
    struct collective_entry e = {.rank = task->subtask};
    struct spec_error err;
    char *payload;

    if (read_entry(f, at, &e, &err) < 0) {
        log_line(4, "msg=\"a collective can't be read\" job=%s error=%s", job->id,
                 log_quoted(err.text).v);
        return;
    }
    group_hear(d, job, task);
    if (task->subtask >= job->group->collective.barrier.n)
        return;
    payload = need(json_doc_text(doc_get(at, "payload"), "null"));
    e.payload = payload;
    enter(d, job, task, &e);
    free(payload);
}

/* ---- what is due ---------------------------------------------------------------------------- */

/* A hang is usually deterministic: the job is not tried again [2.1]. */
static void hangs(struct daemon *d, struct daemon_job *job, const char *missing)
{
    const struct collective *c = &job->group->collective;
    char cause[PLIANT_CAUSE_MAX];

    snprintf(cause, sizeof cause,
             "HangError: ranks %s did not come to call %" PRId64
             " that all ranks make together within worker-group.collective-timeout",
             missing, c->released + 1);
    barrier_clear(&job->group->collective.barrier);
    job_fact(d, job,
             &(struct pliant_event){.kind = PLIANT_EV_GLOBAL_FAILURE, .failure = {.cause = cause}});
}

void collectives_due(struct daemon *d, struct daemon_job *job)
{
    struct barrier *b = &job->group->collective.barrier;
    int64_t limit_ms = job->config->group.collective_timeout_ms, now_ms = d->clock.now_ms;
    char missing[MISSING_MAX];

    if (b->n_in == 0)
        return;
    barrier_missing(b, missing, sizeof missing);
    if (limit_ms > 0 && now_ms - b->since_ms >= limit_ms) {
        hangs(d, job, missing);
        return;
    }
    if (now_ms >= b->warn_at_ms) { /* [W-CKP-12] */
        b->warn_at_ms = now_ms + job->config->group.collective_warn_interval_ms;
        log_line(4,
                 "msg=\"a collective waits for other ranks\" job=%s call=%" PRId64
                 " waited_ms=%" PRId64 " missing=%s",
                 job->id, job->group->collective.released + 1, now_ms - b->since_ms,
                 log_quoted(missing).v);
    }
    groups_wake(d, b->warn_at_ms);
    if (limit_ms > 0)
        groups_wake(d, b->since_ms + limit_ms);
}

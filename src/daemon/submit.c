/* submit.c - SUBMIT: a new job, or (dry run) what would become of it
 *
 * A dry run is a core of its own that is shown what the pool would give the job at once, and
 * answered until its tasks are to be deployed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/requests_impl.h"

#define DRY_STEPS_MAX 10000

struct submission {
    const char *spec, *file, *id;
    bool dry_run;
};

/* ---- dry run -------------------------------------------------------------------------------- */

struct dry_run {
    struct pliant_sched *sched;
    int64_t now_ms;
};

static void dry_step(struct dry_run *dry, const struct pliant_event *ev)
{
    struct pliant_actions acts;
    uint32_t plan = 0;

    need(pliant_step(dry->sched, dry->now_ms, ev, &acts) != -ENOMEM ? dry : NULL);
    for (size_t i = 0; i < acts.n; i++)
        if (acts.v[i].kind == PLIANT_ACT_RESERVE)
            plan = acts.v[i].reserve.plan;
    if (plan)
        dry_step(dry, &(struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED, .plan.plan = plan});
}

static void dry_node(void *ctx, const struct daemon_node *node, uint32_t slots)
{
    dry_step(ctx, &(struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                         .node_up = {.name = node->name,
                                                     .incarnation = node->incarnation,
                                                     .slots = slots,
                                                     .zone = node->zone,
                                                     .domain = node->domain,
                                                     .labels = node->labels,
                                                     .n_labels = node->n_labels}});
}

/* What it does with these slots in the end; where they are too few, it waits. */
static void dry_wait(struct dry_run *dry)
{
    for (uint32_t i = 0; i < DRY_STEPS_MAX; i++) {
        int64_t at_ms = pliant_next_deadline(dry->sched);
        struct pliant_next next;

        pliant_next(dry->sched, &next);
        if (pliant_state(dry->sched) != PLIANT_WAITING_FOR_RESOURCES || at_ms == PLIANT_NEVER ||
            next.decision == PLIANT_REASON_RESOURCE_TIMEOUT)
            return;
        dry->now_ms = at_ms > dry->now_ms ? at_ms : dry->now_ms;
        dry_step(dry, &(struct pliant_event){.kind = PLIANT_EV_TICK});
    }
}

static void dry_answer(struct call *c, const struct daemon_job *job, const struct dry_run *dry)
{
    struct json *j = call_begin(c);
    struct pliant_counts counts;

    pliant_counts(dry->sched, &counts);
    json_string(j, "name", job->name);
    json_begin(j, "vertices", '{');
    for (uint32_t v = 1; v <= pliant_job_vertices(job->spec.job); v++) {
        json_begin(j, pliant_job_vertex_name(job->spec.job, (pliant_vertex_id){v}), '{');
        json_uint(j, "parallelism", pliant_parallelism(dry->sched, (pliant_vertex_id){v}));
        json_end(j, '}');
    }
    json_end(j, '}');
    json_begin(j, "slots", '{');
    json_uint(j, "offered", counts.slots_offered);
    json_uint(j, "needed", counts.minimal);
    json_uint(j, "desired", counts.desired);
    json_end(j, '}');
    json_string(j, "state", pliant_state_name(pliant_state(dry->sched)));
    call_end(c);
}

static void dry_run(struct call *c, const struct daemon_job *job)
{
    struct dry_run dry = {.now_ms = c->d->clock.now_ms};
    struct pliant_counts counts;
    struct pliant_error why;
    int r = pliant_sched_new(job->config, job->spec.job, &dry.sched, &why);

    need(r != -ENOMEM ? c : NULL);
    if (r < 0) {
        refuse(c, "invalid", "%s: %s", job->file, why.text);
        return;
    }
    pliant_counts(dry.sched, &counts);
    dry_step(&dry, &(struct pliant_event){.kind = PLIANT_EV_START});
    slots_preview(c->d, counts.minimal, counts.desired, dry_node, &dry);
    dry_wait(&dry);
    dry_answer(c, job, &dry);
    pliant_sched_destroy(&dry.sched);
}

/* ---- the request ---------------------------------------------------------------------------- */

static bool read_submission(struct call *c, struct submission *s)
{
    *s = (struct submission){.file = "job"};
    return call_needs(c, "spec", "the text of a job spec") &&
           call_string(c, "spec", JOB_SPEC_FILE_MAX, &s->spec) &&
           call_string(c, "file", 4096, &s->file) && call_string(c, "id", STORE_ID - 1, &s->id) &&
           call_bool(c, "dry_run", &s->dry_run);
}

static void try_out(struct call *c, const struct submission *s)
{
    struct daemon_job *job;
    struct spec_error err;

    if (job_decode(c->d, s->spec, strlen(s->spec), s->file, doc_get(c->body, "options"), c->f, &job,
                   &err) < 0) {
        refuse(c, "invalid", "%s", err.text);
        return;
    }
    dry_run(c, job);
    job_free(job);
}

void submit(struct call *c)
{
    struct daemon_job *job;
    struct submission s;
    struct spec_error err;
    int r;

    if (!read_submission(c, &s))
        return;
    if (s.dry_run) {
        try_out(c, &s);
        return;
    }
    r = job_submit(c->d, s.spec, strlen(s.spec), s.file, doc_get(c->body, "options"), c->f, s.id,
                   &job, &err);
    if (r < 0) {
        refuse(c, r == -EEXIST ? "exists" : r == -EBUSY ? "refused" : "invalid", "%s", err.text);
        return;
    }
    json_string(call_begin(c), "job", job->id);
    json_string(&requests_of(c->d)->reply, "name", job->name);
    group_write_resumed(c->d, job, &requests_of(c->d)->reply);
    call_end(c);
}

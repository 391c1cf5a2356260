/* status.c - see status.h */
#include "daemon/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sentence.h"
#include "spec/json_doc.h"

/* ---- parts ---------------------------------------------------------------------------------- */

static void instant(struct daemon *d, struct json *j, const char *key, int64_t at_ms)
{
    if (at_ms <= 0 || at_ms == PLIANT_NEVER)
        json_null(j, key);
    else
        json_int(j, key, clock_to_unix(&d->clock, at_ms));
}

static void unix_instant(struct json *j, const char *key, int64_t unix_ms)
{
    if (unix_ms <= 0)
        json_null(j, key);
    else
        json_int(j, key, unix_ms);
}

static const char *vertex_name(const struct daemon_job *job, uint32_t v)
{
    return pliant_job_vertex_name(job->spec.job, (pliant_vertex_id){v});
}

/* Some sentence of the simulator's as a member. */
static void judgement_text(struct json *j, const struct pliant_judged *judged)
{
    struct pliant_action act = {
        .kind = PLIANT_ACT_RESCALE_JUDGED,
        .flag = {(uint8_t)judged->judgement},
        .judged = {
            .from = judged->from, .to = judged->to, .gain = judged->gain, .cost = judged->cost}};
    char text[256] = "";
    FILE *out = fmemopen(text, sizeof text, "w");

    if (out) {
        sentence_of_judgement(out, &act);
        fclose(out);
    }
    json_string(j, "text", text);
}

/* ---- the status of a job -------------------------------------------------------------------- */

/* Of one that lives. */
static const char *state_name(const struct daemon_job *job)
{
    enum pliant_state state = pliant_state(job->sched);
    struct pliant_next next;

    pliant_next(job->sched, &next);
    if (state == PLIANT_EXECUTING && next.decision == PLIANT_REASON_DRAIN)
        return "Executing(draining)";
    return pliant_state_name(state);
}

static void vertices(const struct daemon_job *job, struct json *j)
{
    json_begin(j, "vertices", '{');
    for (uint32_t v = 1; v <= pliant_job_vertices(job->spec.job); v++) {
        uint32_t min, max;

        pliant_vertex_bounds(job->sched, (pliant_vertex_id){v}, &min, &max);
        json_begin(j, vertex_name(job, v), '{');
        json_uint(j, "parallelism",
                  job->ended_unix_ms ? job->ran[v - 1]
                                     : pliant_parallelism(job->sched, (pliant_vertex_id){v}));
        json_uint(j, "desired", max);
        json_begin(j, "bounds", '[');
        json_uint(j, NULL, min);
        json_uint(j, NULL, max);
        json_end(j, ']');
        json_end(j, '}');
    }
    json_end(j, '}');
}

/* One task of the current graph, and what the host knows of it (NULL: nothing). */
struct row {
    struct pliant_task task;
    struct pliant_task_info info;
    const struct daemon_task *host;
};

static void row_begin(struct daemon_job *job, struct json *j, const struct row *row)
{
    json_begin(j, NULL, '{');
    json_string(j, "vertex", vertex_name(job, row->task.vertex.v));
    json_uint(j, "subtask", row->task.subtask);
    json_uint(j, "attempt", row->task.attempt);
    json_string(j, "node",
                row->info.slot.v
                    ? pliant_node_name(job->sched, pliant_slot_node(job->sched, row->info.slot))
                : row->host && row->host->node ? row->host->node->name
                                               : NULL);
}

static void row_pid(struct json *j, const struct row *row)
{
    if (row->host && row->host->pid > 0)
        json_int(j, "pid", row->host->pid);
    else
        json_null(j, "pid");
}

static void short_row(struct daemon_job *job, struct json *j, const struct row *row)
{
    row_begin(job, j, row);
    row_pid(j, row);
    json_string(j, "state", pliant_task_state_name(row->info.state));
    json_end(j, '}');
}

static void long_row(struct daemon_job *job, struct json *j, const struct row *row)
{
    const struct daemon_task *host = row->host;

    row_begin(job, j, row);
    if (host)
        json_uint(j, "slot", host->slot);
    else
        json_null(j, "slot");
    row_pid(j, row);
    json_string(j, "state", pliant_task_state_name(row->info.state));
    unix_instant(j, "since_unix_ms", host ? host->since_unix_ms : 0);
    json_uint(j, "rss_bytes", host ? host->rss_bytes : 0);
    json_uint(j, "cpu_ms", host ? host->cpu_ms : 0);
    json_end(j, '}');
}

static void tasks(struct daemon_job *job, struct json *j,
                  void (*put)(struct daemon_job *job, struct json *j, const struct row *row))
{
    json_begin(j, "tasks", '[');
    for (uint32_t v = 1; v <= pliant_job_vertices(job->spec.job); v++) {
        pliant_vertex_id vertex = {v};

        for (uint32_t i = 0; i < pliant_parallelism(job->sched, vertex); i++) {
            struct row row = {.task = {.vertex = vertex, .subtask = i}};

            for (uint32_t k = 0; pliant_attempt_info(job->sched, vertex, i, k, &row.info); k++) {
                row.task.attempt = row.info.attempt;
                row.host = job_task(job, &row.task);
                put(job, j, &row);
            }
        }
    }
    json_end(j, ']');
}

static void checkpoint(struct daemon *d, const struct pliant_counts *counts, struct json *j)
{
    if (counts->checkpoint == 0) {
        json_null(j, "checkpoint");
        return;
    }
    json_begin(j, "checkpoint", '{');
    json_id(j, "id", counts->checkpoint);
    json_int(j, "age_ms", d->clock.now_ms - counts->checkpoint_at_ms);
    json_end(j, '}');
}

static void why_next(const struct pliant_counts *counts, const struct pliant_next *next,
                     struct json *j)
{
    char text[160];

    snprintf(text, sizeof text, "%u slots offered, %u to %u wanted%s%s", counts->slots_offered,
             counts->minimal, counts->desired, *next->phase ? ", phase " : "", next->phase);
    json_string(j, "why", text);
}

static void what_next(struct daemon *d, const struct daemon_job *job,
                      const struct pliant_counts *counts, struct json *j)
{
    struct pliant_next next;
    int64_t in_ms;

    pliant_next(job->sched, &next);
    in_ms = next.at_ms - d->clock.now_ms;
    json_begin(j, "next", '{');
    json_string(j, "decision",
                next.decision == PLIANT_REASON_NONE ? NULL : pliant_reason_name(next.decision));
    if (next.at_ms == PLIANT_NEVER)
        json_null(j, "at_ms");
    else
        json_int(j, "at_ms", in_ms > 0 ? in_ms : 0);
    why_next(counts, &next, j);
    json_end(j, '}');
}

/* Nodes on which nothing of the job starts for a time. */
static void blocked(struct daemon *d, const struct daemon_job *job, struct json *j)
{
    size_t n = pliant_blocked(job->sched, NULL, 0);
    struct pliant_blocked *v = need(calloc(n + 1, sizeof *v));

    pliant_blocked(job->sched, v, n);
    json_begin(j, "blocked", '[');
    for (size_t i = 0; i < n; i++) {
        json_begin(j, NULL, '{');
        json_string(j, "node", pliant_node_name(job->sched, v[i].node));
        json_int(j, "until_unix_ms", clock_to_unix(&d->clock, v[i].until_at_ms));
        json_end(j, '}');
    }
    json_end(j, ']');
    free(v);
}

/* As many slots as now have been in use since the last task was deployed. */
static int64_t deployed_unix_ms(const struct daemon_job *job)
{
    int64_t last_ms = 0;

    for (const struct daemon_task *t = job->tasks; t; t = t->hh.next)
        last_ms = t->since_unix_ms > last_ms ? t->since_unix_ms : last_ms;
    return last_ms;
}

static void live_status(struct daemon *d, struct daemon_job *job, struct json *j)
{
    struct pliant_counts counts;

    pliant_counts(job->sched, &counts);
    json_string(j, "job_id", job->id);
    json_string(j, "name", job->name);
    json_string(j, "state", state_name(job));
    json_string(j, "job_status", pliant_job_status_name(pliant_job_status(job->sched)));
    json_int(j, "submitted_unix_ms", job->submitted_unix_ms);
    unix_instant(j, "ended_unix_ms", job->ended_unix_ms);
    vertices(job, j);
    tasks(job, j, short_row);
    json_begin(j, "slots", '{');
    json_uint(j, "offered", counts.slots_offered);
    json_uint(j, "used", counts.slots_used);
    unix_instant(j, "since_unix_ms", deployed_unix_ms(job));
    json_end(j, '}');
    blocked(d, job, j);
    json_uint(j, "restarts", counts.restarts);
    json_uint(j, "rescales", counts.rescales);
    checkpoint(d, &counts, j);
    what_next(d, job, &counts, j);
}

void status_members(struct daemon *d, struct daemon_job *job, struct json *j)
{
    if (job->sched)
        live_status(d, job, j);
    else
        status_kept(d, job, "status", j);
}

void status_of_job(struct daemon *d, struct daemon_job *job, const char *key, struct json *j)
{
    json_begin(j, key, '{');
    status_members(d, job, j);
    json_end(j, '}');
}

void status_checkpoints(struct daemon *d, struct daemon_job *job, struct json *j)
{
    if (job->sched)
        checkpoints_write(d, job, j);
    else
        status_kept(d, job, "checkpoints", j);
}

void status_tasks(struct daemon *d, struct daemon_job *job, struct json *j)
{
    if (job->sched)
        tasks(job, j, long_row);
    else
        status_kept(d, job, "tasks", j);
}

static const char *state_word(const struct daemon_job *job)
{
    if (job->damaged)
        return "Damaged";
    return job->sched ? state_name(job) : pliant_state_name(PLIANT_FINISHED);
}

void status_row(struct daemon *d, struct daemon_job *job, struct json *j)
{
    struct pliant_counts counts = {0};
    char word[STATUS_WORD_MAX];

    if (job->sched)
        pliant_counts(job->sched, &counts);
    json_begin(j, NULL, '{');
    json_string(j, "job_id", job->id);
    json_string(j, "name", job->name);
    json_string(j, "state", state_word(job));
    json_string(j, "job_status", status_word(d, job, word));
    json_int(j, "submitted_unix_ms", job->submitted_unix_ms);
    unix_instant(j, "ended_unix_ms", job->ended_unix_ms);
    json_uint(j, "slots_used", counts.slots_used);
    json_uint(j, "desired", counts.desired);
    if (job->damaged)
        json_string(j, "error", job->damaged);
    json_end(j, '}');
}

/* ---- rescales ------------------------------------------------------------------------------- */

static void judged(struct json *j, const struct pliant_judged *judged)
{
    if (judged->judgement == PLIANT_JUDGED_NOT) {
        json_null(j, "judged");
        return;
    }
    json_begin(j, "judged", '{');
    json_string(j, "judgement", pliant_judgement_name(judged->judgement));
    json_uint(j, "from", judged->from);
    json_uint(j, "to", judged->to);
    json_int(j, "gain_slot_ms", judged->gain);
    json_int(j, "cost_slot_ms", judged->cost);
    judgement_text(j, judged);
    json_end(j, '}');
}

static void spans(struct daemon *d, struct json *j, const struct pliant_rescale *r)
{
    json_begin(j, "spans", '[');
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const struct pliant_rescale_span *span = &r->spans[i];

        json_begin(j, NULL, '{');
        json_string(j, "state", pliant_state_name((enum pliant_state)span->state));
        instant(d, j, "enter_unix_ms", span->enter_at_ms);
        instant(d, j, "leave_unix_ms", span->leave_at_ms);
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void rescale(struct daemon *d, const struct daemon_job *job, const struct pliant_rescale *r,
                    struct json *j)
{
    json_begin(j, NULL, '{');
    json_hex(j, "id", r->id, sizeof r->id);
    json_string(j, "trigger", pliant_rescale_trigger_name(r->trigger));
    instant(d, j, "started_unix_ms", r->start_at_ms);
    instant(d, j, "ended_unix_ms", r->end_at_ms);
    json_string(j, "end", r->end == PLIANT_RESCALE_OPEN ? NULL : pliant_rescale_end_name(r->end));
    json_begin(j, "vertices", '{');
    for (uint32_t v = 1; v <= pliant_job_vertices(job->spec.job); v++) {
        json_begin(j, vertex_name(job, v), '{');
        json_uint(j, "pre", r->vertices[v - 1].pre);
        json_uint(j, "post", r->vertices[v - 1].post);
        json_uint(j, "desired", r->vertices[v - 1].desired);
        json_end(j, '}');
    }
    json_end(j, '}');
    judged(j, &r->judged);
    spans(d, j, r);
    json_end(j, '}');
}

static void stats(struct json *j, const char *key, const struct pliant_rescale_stats *s)
{
    json_begin(j, key, '{');
    json_uint(j, "count", s->count);
    json_double(j, "min_ms", s->count ? s->min : NAN);
    json_double(j, "max_ms", s->count ? s->max : NAN);
    json_double(j, "avg_ms", s->count ? s->avg : NAN);
    json_double(j, "p50_ms", s->p50);
    json_double(j, "p90_ms", s->p90);
    json_double(j, "p95_ms", s->p95);
    json_double(j, "p99_ms", s->p99);
    json_double(j, "p999_ms", s->p999);
    json_end(j, '}');
}

static void summary(const struct daemon_job *job, struct json *j)
{
    struct pliant_rescale_summary s;

    pliant_rescale_summary(job->sched, &s);
    json_begin(j, "summary", '{');
    json_uint(j, "opened", s.opened);
    json_uint(j, "in_progress", s.in_progress);
    stats(j, "all", &s.all);
    stats(j, "completed", &s.of[PLIANT_TERMINAL_COMPLETED]);
    stats(j, "failed", &s.of[PLIANT_TERMINAL_FAILED]);
    stats(j, "ignored", &s.of[PLIANT_TERMINAL_IGNORED]);
    json_end(j, '}');
}

void status_rescales(struct daemon *d, struct daemon_job *job, struct json *j)
{
    const struct pliant_rescale *r;

    if (!job->sched) {
        status_kept(d, job, "rescales", j);
        return;
    }
    json_begin(j, "rescales", '[');
    for (size_t i = 0; (r = pliant_rescale_at(job->sched, i)); i++)
        rescale(d, job, r, j);
    json_end(j, ']');
    summary(job, j);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void failure_item(struct daemon *d, const struct daemon_job *job,
                         const struct pliant_failure_item *item, struct json *j)
{
    json_begin(j, NULL, '{');
    instant(d, j, "at_unix_ms", item->at_ms);
    json_string(j, "reason", pliant_reason_name((enum pliant_reason)item->reason));
    json_bool(j, "recoverable", item->recoverable);
    if (item->task.vertex.v) {
        json_string(j, "vertex", vertex_name(job, item->task.vertex.v));
        json_uint(j, "subtask", item->task.subtask);
        json_uint(j, "attempt", item->task.attempt);
    } else {
        json_null(j, "vertex");
        json_null(j, "subtask");
        json_null(j, "attempt");
    }
    json_string(j, "node", item->node[0] ? item->node : NULL);
    json_string(j, "cause", item->cause);
    if (item->exit_code > 0)
        json_uint(j, "exit_code", item->exit_code);
    else
        json_null(j, "exit_code");
    json_labels(j, "labels", item->labels, item->n_labels);
    json_end(j, '}');
}

void status_failures(struct daemon *d, struct daemon_job *job, struct json *j)
{
    const struct pliant_failure *f;

    if (!job->sched) {
        status_kept(d, job, "failures", j);
        return;
    }
    json_begin(j, "failures", '[');
    for (size_t i = 0; (f = pliant_failure_at(job->sched, i)); i++) {
        json_begin(j, NULL, '{');
        json_begin(j, "items", '[');
        for (uint32_t k = 0; k < f->n; k++)
            failure_item(d, job, &f->items[k], j);
        json_end(j, ']');
        json_uint(j, "more", f->n_more);
        json_end(j, '}');
    }
    json_end(j, ']');
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static const char *node_word(const struct daemon_node *node)
{
    if (node->state == NODE_AWAITED)
        return "awaited";
    return node->draining ? "draining" : "up";
}

static void drain(struct daemon *d, const struct daemon_node *node, struct json *j)
{
    if (!node->draining) {
        json_null(j, "drain");
        return;
    }
    json_begin(j, "drain", '{');
    json_string(j, "reason", pliant_drain_reason_name(node->drain_reason));
    instant(d, j, "deadline_unix_ms", node->drain_end_at_ms);
    json_end(j, '}');
}

static void node_row(struct daemon *d, const struct daemon_node *node, struct json *j)
{
    int64_t silent_ms = d->clock.awake_ms - node->heard_at_ms;

    json_begin(j, NULL, '{');
    json_string(j, "node", node->name);
    json_string(j, "state", node_word(node));
    json_id(j, "incarnation", node->incarnation);
    json_uint(j, "slots", node->n_slots);
    json_uint(j, "used", node->n_used);
    json_string(j, "address", node->address);
    json_string(j, "zone", node->zone);
    json_string(j, "domain", node->domain);
    json_begin(j, "labels", '{');
    for (size_t i = 0; i < node->n_labels; i++)
        json_member(j, node->labels[i].key, node->labels[i].value);
    json_end(j, '}');
    json_int(j, "last_seen_ms", silent_ms > 0 ? silent_ms : 0);
    drain(d, node, j);
    json_end(j, '}');
}

void status_nodes(struct daemon *d, struct json *j)
{
    json_begin(j, "nodes", '[');
    for (const struct daemon_node *node = d->nodes; node; node = node->hh.next)
        node_row(d, node, j);
    json_end(j, ']');
}

/* ---- of a job that has ended ---------------------------------------------------------------- */

static void document(struct daemon *d, struct daemon_job *job, const char *name,
                     void (*put)(struct daemon *d, struct daemon_job *job, struct json *j),
                     struct json *j)
{
    json_begin(j, name, '{');
    put(d, job, j);
    json_end(j, '}');
}

/* The status comes first: status_word() reads no further. */
#define FINAL_BEGIN "{\"job_status\":\""

void status_final(struct daemon *d, struct daemon_job *job, struct json *j)
{
    json_string(j, "job_status", pliant_job_status_name(pliant_job_status(job->sched)));
    document(d, job, "status", live_status, j);
    document(d, job, "tasks", status_tasks, j);
    document(d, job, "rescales", status_rescales, j);
    document(d, job, "failures", status_failures, j);
    document(d, job, "checkpoints", checkpoints_write, j);
    logs_write_attempts(job, j);
}

const char *status_word(struct daemon *d, struct daemon_job *job, char buf[STATUS_WORD_MAX])
{
    const char *text;
    size_t n;

    if (job->sched)
        return pliant_job_status_name(pliant_job_status(job->sched));
    if (job->damaged)
        return "DAMAGED";
    text = job_final(d, job);
    if (!text || strncmp(text, FINAL_BEGIN, sizeof FINAL_BEGIN - 1) != 0)
        return "UNKNOWN";
    text += sizeof FINAL_BEGIN - 1;
    n = strcspn(text, "\"");
    n = n < STATUS_WORD_MAX ? n : STATUS_WORD_MAX - 1;
    memcpy(buf, text, n);
    buf[n] = '\0';
    return buf;
}

void status_kept(struct daemon *d, struct daemon_job *job, const char *name, struct json *j)
{
    const char *text = job_final(d, job);
    struct doc_file f = {0};
    struct spec_error err;
    const struct doc *at = NULL;

    if (text && doc_parse(job->id, text, strlen(text), 1, &f, &err) == 0)
        at = doc_get(f.root, name);
    for (const struct doc *c = at ? at->child : NULL; c; c = c->next)
        json_doc(j, c->key, c);
    doc_free(&f);
}

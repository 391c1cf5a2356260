/* report_json.c - a run as JSON Lines, one object a line, written while it goes on
 *
 * Every object begins with "t" (milliseconds of the trace) and "kind". Keys of a kind are always
 * the same and in this order; what is not known is null. More kinds and keys may come, none will
 * change its meaning. Names of states, reasons and the like are those of the public header's
 * functions. "parallelism" maps vertices to subtasks, all 0 while the job is not at work.
 *
 *   run         job, trace: the first line
 *   state       from, to, reason, parallelism, slots (offered), used, node (whose loss or drain
 *               caused it), since (the first change that led to it), checkpoint (the completed one
 *               that a rescale or a move waited for, as text), backoff_ms (after a failure)
 *   status      from, to: the job's status
 *   rescale     event "opened" or "closed", id, requirements_id, attempt, trigger, end, terminal,
 *               start, end_at, vertices: {name: {sufficient, desired, pre, post}}
 *   failure     reason, vertex, subtask, attempt, node, cause, recoverable, more (failures that
 *               came after it in the same run of the job): an entry of the exception history
 *   refused     event, reason, vertex
 *   checkpoint  id (as text), result "completed" or "failed", cause
 *   savepoint   path, cause: one of them is null
 *   drain       node, reason, deadline: the job has tasks on a node that will go
 *   decided     vertex, parallelism, bytes: a vertex of a batch job got its tasks
 *   regions     tasks, vertices {name: tasks}: some regions alone restart, with so many tasks
 *   speculation attempts, vertices {name: attempts}: so many began beside others of their task
 *   blocked     node, until: it is slow, and nothing new starts there for that long at least
 *   give_up     node: it did not confirm a cancel
 *   totals      the last line: state, status, restarts {total, REASON: n}, rescales {total, up,
 *               down, REASON: n}, downtime_ms, longest_downtime_ms, lifetime_ms (from the first
 *               Executing to the job's end, what downtime is a part of), state_ms {STATE: ms},
 *               state_visits {STATE: n}, parallelism_ms [[subtasks, ms], ...] of the widest vertex,
 *               vertex_parallelism_ms {name: [[subtasks, ms], ...]}, slot_ms_offered, slot_ms_used,
 *               checkpoints {completed, failed}, nodes {joined, lost, drained, drains_withdrawn,
 *               left}, events_ignored, region_restarts, tasks {name: {tasks, attempts, restarted,
 *               speculative, first_start, last_end}}
 *
 * Nodes that come and go are not listed: what they change for the job is.
 */
#include <string.h>

#include "sim/report_impl.h"
#include "sim/stages.h"
#include "spec/json_out.h"

#define STAGES_COLUMNS 2 /* how it went over time is not told */

struct json_report {
    struct report report;
    struct json json;
    struct stages stages;
};

static int init(struct report *r)
{
    struct json_report *json = (struct json_report *)r;

    json_init(&json->json, r->o.out);
    return stages_init(&json->stages, r->view.n_vertices, STAGES_COLUMNS);
}

static void line_begin(struct json *j, int64_t t, const char *kind)
{
    json_begin(j, NULL, '{');
    json_int(j, "t", t);
    json_string(j, "kind", kind);
}

static int line_end(struct json *j)
{
    json_end(j, '}');
    return json_line(j);
}

static const char *vertex_name(const struct report *r, pliant_vertex_id vertex)
{
    return vertex.v ? pliant_job_vertex_name(r->o.job, vertex) : NULL;
}

static const char *node_name(const struct report *r, pliant_node_id node)
{
    return node.v ? r->view.node_name(r->view.sched, node) : NULL;
}

static void instant(struct json *j, const char *key, int64_t at_ms)
{
    if (at_ms == PLIANT_NEVER)
        json_null(j, key);
    else
        json_int(j, key, at_ms);
}

static int begin(struct report *r)
{
    struct json *j = &((struct json_report *)r)->json;

    line_begin(j, 0, "run");
    json_string(j, "job", pliant_job_name(r->o.job));
    json_string(j, "trace", r->o.trace);
    return line_end(j);
}

static void parallelism(const struct report *r, struct json *j, enum pliant_state state)
{
    json_begin(j, "parallelism", '{');
    for (uint32_t i = 0; i < r->view.n_vertices; i++)
        json_uint(j, pliant_job_vertex_name(r->o.job, (pliant_vertex_id){i + 1}),
                  view_works(state) ? r->view.parallelism[i] : 0);
    json_end(j, '}');
}

static void state_changed(const struct report *r, struct json *j, const struct pliant_action *a)
{
    enum pliant_state to = (enum pliant_state)a->flag[1];
    bool aims = view_aims((enum pliant_reason)a->flag[2]);
    bool failed = to == PLIANT_RESTARTING || to == PLIANT_RETRYING_EXECUTION_GRAPH_CREATION;

    line_begin(j, r->view.at_ms, "state");
    json_string(j, "from", pliant_state_name((enum pliant_state)a->flag[0]));
    json_string(j, "to", pliant_state_name(to));
    json_string(j, "reason", pliant_reason_name((enum pliant_reason)a->flag[2]));
    parallelism(r, j, to);
    json_uint(j, "slots", a->change.slots);
    json_uint(j, "used", to == r->view.state ? view_used(&r->view) : 0);
    json_string(j, "node", node_name(r, a->change.node));
    instant(j, "since", a->change.since_at_ms);
    if (aims && a->change.detail)
        json_id(j, "checkpoint", (uint64_t)a->change.detail);
    else
        json_null(j, "checkpoint");
    if (failed && !aims)
        json_int(j, "backoff_ms", a->change.detail);
    else
        json_null(j, "backoff_ms");
    json_end(j, '}');
}

static void rescale(const struct report *r, struct json *j, const struct pliant_rescale *record,
                    bool closed)
{
    line_begin(j, r->view.at_ms, "rescale");
    json_string(j, "event", closed ? "closed" : "opened");
    json_hex(j, "id", record->id, sizeof record->id);
    json_hex(j, "requirements_id", record->requirements_id, sizeof record->requirements_id);
    json_uint(j, "attempt", record->attempt);
    json_string(j, "trigger", pliant_rescale_trigger_name(record->trigger));
    json_string(j, "end", closed ? pliant_rescale_end_name(record->end) : NULL);
    json_string(j, "terminal",
                closed ? pliant_rescale_terminal_name(pliant_rescale_terminal(record->end)) : NULL);
    json_int(j, "start", record->start_at_ms);
    instant(j, "end_at", closed ? record->end_at_ms : PLIANT_NEVER);
    json_begin(j, "vertices", '{');
    for (uint32_t i = 0; i < r->view.n_vertices; i++) {
        const struct pliant_rescale_vertex *v = &record->vertices[i];

        json_begin(j, pliant_job_vertex_name(r->o.job, (pliant_vertex_id){i + 1}), '{');
        json_uint(j, "sufficient", v->sufficient);
        json_uint(j, "desired", v->desired);
        json_uint(j, "pre", v->pre);
        json_uint(j, "post", v->post);
        json_end(j, '}');
    }
    json_end(j, '}');
    json_end(j, '}');
}

static void judged(const struct report *r, struct json *j, const struct pliant_action *a)
{
    line_begin(j, r->view.at_ms, "judged");
    json_string(j, "judgement", pliant_judgement_name(a->flag[0]));
    json_uint(j, "from", a->judged.from);
    json_uint(j, "to", a->judged.to);
    json_int(j, "gain_slot_ms", a->judged.gain);
    json_int(j, "cost_slot_ms", a->judged.cost);
    json_end(j, '}');
}

static void failure(const struct report *r, struct json *j, const struct pliant_failure *entry)
{
    const struct pliant_failure_item *root = &entry->items[0];
    bool of_task = root->task.vertex.v != 0;

    line_begin(j, r->view.at_ms, "failure");
    json_string(j, "reason", pliant_reason_name((enum pliant_reason)root->reason));
    json_string(j, "vertex", vertex_name(r, root->task.vertex));
    if (of_task) {
        json_uint(j, "subtask", root->task.subtask);
        json_uint(j, "attempt", root->task.attempt);
    } else {
        json_null(j, "subtask");
        json_null(j, "attempt");
    }
    json_string(j, "node", root->node[0] ? root->node : NULL);
    json_string(j, "cause", root->cause);
    json_bool(j, "recoverable", root->recoverable);
    json_labels(j, "labels", root->labels, root->n_labels);
    json_uint(j, "more", entry->n - 1 + entry->n_more);
    json_end(j, '}');
}

static void refused(const struct report *r, struct json *j, const struct pliant_action *a)
{
    line_begin(j, r->view.at_ms, "refused");
    json_string(j, "event", pliant_event_name(r->view.event->kind));
    json_string(j, "reason", pliant_reason_name((enum pliant_reason)a->flag[0]));
    json_string(j, "vertex", vertex_name(r, a->refused.vertex));
    json_end(j, '}');
}

static void status_changed(const struct report *r, struct json *j, const struct pliant_action *a)
{
    line_begin(j, r->view.at_ms, "status");
    json_string(j, "from", pliant_job_status_name((enum pliant_job_status)a->status.from));
    json_string(j, "to", pliant_job_status_name((enum pliant_job_status)a->status.to));
    json_end(j, '}');
}

static void drain(const struct report *r, struct json *j, const struct pliant_action *a)
{
    line_begin(j, r->view.at_ms, "drain");
    json_string(j, "node", node_name(r, a->notify.node));
    json_string(j, "reason", pliant_drain_reason_name((enum pliant_drain_reason)a->flag[0]));
    instant(j, "deadline", a->notify.deadline_at_ms);
    json_end(j, '}');
}

static void savepoint(const struct report *r, struct json *j, const struct pliant_action *a)
{
    line_begin(j, r->view.at_ms, "savepoint");
    json_string(j, "path", a->savepoint.path);
    json_string(j, "cause", a->savepoint.cause);
    json_end(j, '}');
}

/* An object without the end of its line; false: programs need not know. */
static bool action(const struct report *r, struct json *j, const struct pliant_action *a)
{
    switch ((enum pliant_action_kind)a->kind) {
    case PLIANT_ACT_STATE_CHANGED:
        state_changed(r, j, a);
        return true;
    case PLIANT_ACT_STATUS_CHANGED:
        status_changed(r, j, a);
        return true;
    case PLIANT_ACT_RESCALE_OPENED:
    case PLIANT_ACT_RESCALE_CLOSED:
        rescale(r, j, a->rescale.record, a->kind == PLIANT_ACT_RESCALE_CLOSED);
        return true;
    case PLIANT_ACT_RESCALE_JUDGED:
        judged(r, j, a);
        return true;
    case PLIANT_ACT_FAILURE:
        failure(r, j, a->failure.entry);
        return true;
    case PLIANT_ACT_REFUSED:
        refused(r, j, a);
        return true;
    case PLIANT_ACT_NOTIFY:
        drain(r, j, a);
        return true;
    case PLIANT_ACT_SAVEPOINT_ENDED:
        savepoint(r, j, a);
        return true;
    case PLIANT_ACT_DECIDED:
        line_begin(j, r->view.at_ms, "decided");
        json_string(j, "vertex", pliant_job_vertex_name(r->view.job, a->decided.vertex));
        json_uint(j, "parallelism", a->decided.parallelism);
        json_uint(j, "bytes", a->decided.bytes);
        json_end(j, '}');
        return true;
    case PLIANT_ACT_BLOCK_NODE:
        line_begin(j, r->view.at_ms, "blocked");
        json_string(j, "node", node_name(r, a->blocked.node));
        json_int(j, "until", a->blocked.until_at_ms);
        json_end(j, '}');
        return true;
    case PLIANT_ACT_GIVE_UP_NODE:
        line_begin(j, r->view.at_ms, "give_up");
        json_string(j, "node", node_name(r, a->node.node));
        json_end(j, '}');
        return true;
    case PLIANT_ACT_DECLARE:
    case PLIANT_ACT_RESERVE:
    case PLIANT_ACT_RELEASE:
    case PLIANT_ACT_RELEASE_RESULT:
    case PLIANT_ACT_DEPLOY:
    case PLIANT_ACT_CANCEL:
    case PLIANT_ACT_CHECKPOINT:
    case PLIANT_ACT_REGISTER:
    case PLIANT_ACT_REPORT_TAKEN:
    case PLIANT_ACT_ARCHIVED:
    case PLIANT_ACTIONS:
        break;
    }
    return false;
}

static int checkpoint(const struct report *r, struct json *j)
{
    const struct pliant_event *ev = r->view.event;
    bool completed = ev->kind == PLIANT_EV_CHECKPOINT_COMPLETED;

    if ((!completed && ev->kind != PLIANT_EV_CHECKPOINT_FAILED) || view_ignored(&r->view))
        return 0;
    line_begin(j, r->view.at_ms, "checkpoint");
    json_id(j, "id", ev->checkpoint.id);
    json_string(j, "result", completed ? "completed" : "failed");
    json_string(j, "cause", completed ? NULL : ev->checkpoint.cause);
    return line_end(j);
}

/* How many of each vertex, in this step. */
static int tasks_now(struct report *r, const char *kind, const char *what, bool restarts)
{
    struct json *j = &((struct json_report *)r)->json;
    const struct stages *s = &((struct json_report *)r)->stages;
    uint32_t n = restarts ? stages_restart_now(s) : stages_speculate_now(s);

    if (n == 0)
        return 0;
    line_begin(j, r->view.at_ms, kind);
    json_uint(j, what, n);
    json_begin(j, "vertices", '{');
    for (uint32_t v = 0; v < s->n; v++) {
        n = restarts ? s->v[v].restarts_now : s->v[v].speculative_now;
        if (n > 0)
            json_uint(j, pliant_job_vertex_name(r->o.job, (pliant_vertex_id){v + 1}), n);
    }
    json_end(j, '}');
    return line_end(j);
}

static int step(struct report *r)
{
    struct json *j = &((struct json_report *)r)->json;
    int rc = stages_take(&((struct json_report *)r)->stages, &r->view);

    if (rc == 0)
        rc = checkpoint(r, j);
    if (rc == 0)
        rc = tasks_now(r, "regions", "tasks", true);
    if (rc == 0)
        rc = tasks_now(r, "speculation", "attempts", false);
    for (size_t i = 0; rc == 0 && i < r->view.actions->n; i++)
        if (action(r, j, &r->view.actions->v[i]))
            rc = json_line(j);
    return rc;
}

/* ---- totals ----------------------------------------------------------------------------- */

static void by_reason(struct json *j, const uint64_t count[PLIANT_REASONS])
{
    for (int i = 0; i < PLIANT_REASONS; i++)
        if (count[i])
            json_uint(j, pliant_reason_name((enum pliant_reason)i), count[i]);
}

static void shares(struct json *j, const char *key, const struct totals_shares *shares)
{
    json_begin(j, key, '[');
    for (size_t i = 0; i < shares->n; i++) {
        json_begin(j, NULL, '[');
        json_uint(j, NULL, shares->v[i].parallelism);
        json_int(j, NULL, shares->v[i].ms);
        json_end(j, ']');
    }
    json_end(j, ']');
}

static void state_totals(struct json *j, const struct totals *t)
{
    json_begin(j, "state_ms", '{');
    for (int i = 0; i < PLIANT_STATES; i++)
        json_int(j, pliant_state_name((enum pliant_state)i), t->state_ms[i]);
    json_end(j, '}');
    json_begin(j, "state_visits", '{');
    for (int i = 0; i < PLIANT_STATES; i++)
        json_uint(j, pliant_state_name((enum pliant_state)i), t->state_visits[i]);
    json_end(j, '}');
}

static void restart_totals(struct json *j, const struct totals *t)
{
    json_begin(j, "restarts", '{');
    json_uint(j, "total", t->restarts);
    by_reason(j, t->restarts_by);
    json_end(j, '}');
    json_begin(j, "rescales", '{');
    json_uint(j, "total", t->rescales);
    json_uint(j, "up", t->rescales_up);
    json_uint(j, "down", t->rescales_down);
    by_reason(j, t->rescales_by);
    json_end(j, '}');
    json_int(j, "downtime_ms", t->downtime_ms);
    json_int(j, "longest_downtime_ms", t->downtime_longest_ms);
    json_int(j, "lifetime_ms", totals_lifetime_ms(t));
}

static void parallelism_totals(const struct report *r, struct json *j, const struct totals *t)
{
    shares(j, "parallelism_ms", &t->at);
    json_begin(j, "vertex_parallelism_ms", '{');
    for (uint32_t i = 0; i < t->n_vertices; i++)
        shares(j, pliant_job_vertex_name(r->o.job, (pliant_vertex_id){i + 1}), &t->vertices[i]);
    json_end(j, '}');
    json_uint(j, "slot_ms_offered", t->slot_ms_offered);
    json_uint(j, "slot_ms_used", t->slot_ms_used);
}

static void event_totals(struct json *j, const struct totals *t)
{
    json_begin(j, "checkpoints", '{');
    json_uint(j, "completed", t->checkpoints_completed);
    json_uint(j, "failed", t->checkpoints_failed);
    json_end(j, '}');
    json_begin(j, "nodes", '{');
    json_uint(j, "joined", t->nodes_joined);
    json_uint(j, "lost", t->nodes_lost);
    json_uint(j, "drained", t->nodes_drained);
    json_uint(j, "drains_withdrawn", t->drains_withdrawn);
    json_uint(j, "left", t->nodes_left);
    json_end(j, '}');
    json_uint(j, "events_ignored", t->events_ignored);
}

static void task_totals(const struct report *r, struct json *j, const struct stages *s)
{
    json_uint(j, "region_restarts", r->totals.region_restarts);
    json_begin(j, "tasks", '{');
    for (uint32_t v = 0; v < s->n; v++) {
        const struct stage *stage = &s->v[v];

        json_begin(j, pliant_job_vertex_name(r->o.job, (pliant_vertex_id){v + 1}), '{');
        json_uint(j, "tasks", r->view.parallelism[v]);
        json_uint(j, "attempts", stage->attempts);
        json_uint(j, "restarted", stage->restarted);
        json_uint(j, "speculative", stage->speculative);
        instant(j, "first_start", stage->first_start_at_ms);
        instant(j, "last_end", stage->last_end_at_ms);
        json_end(j, '}');
    }
    json_end(j, '}');
}

static int end(struct report *r)
{
    struct json *j = &((struct json_report *)r)->json;
    const struct totals *t = &r->totals;
    int rc;

    line_begin(j, t->now_ms, "totals");
    json_string(j, "state", pliant_state_name(t->state));
    json_string(j, "status", pliant_job_status_name(t->status));
    restart_totals(j, t);
    state_totals(j, t);
    parallelism_totals(r, j, t);
    event_totals(j, t);
    task_totals(r, j, &((struct json_report *)r)->stages);
    rc = line_end(j);
    return rc == 0 ? json_flush(j) : rc;
}

static void free_json(struct report *r)
{
    json_free(&((struct json_report *)r)->json);
    stages_free(&((struct json_report *)r)->stages);
}

const struct report_ops report_json_ops = {
    .size = sizeof(struct json_report),
    .init = init,
    .begin = begin,
    .step = step,
    .end = end,
    .free = free_json,
};

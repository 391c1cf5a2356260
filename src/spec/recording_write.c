/* recording_write.c - see recording.h: the writing half
 *
 * The order of members is the format: a replay compares bytes.
 */
#include "spec/recording.h"

#include <string.h>

#include "graph/job.h"
#include "spec/job_spec.h"

/* What texts of a step are made with. */
struct writer {
    struct json *j;
    const struct pliant_job *job;
    const struct pliant_sched *sched; /* NULL for events: they name nodes themselves */
};

/* ---- header ------------------------------------------------------------------------------- */

static void write_vertices(struct json *j, const struct pliant_job *job)
{
    json_begin(j, "vertices", '[');
    for (uint32_t i = 0; i < job->n_vertices; i++) {
        const struct job_vertex *v = &job->vertices[i];

        json_begin(j, NULL, '{');
        json_string(j, "id", v->name);
        if (v->fixed)
            json_uint(j, "parallelism", v->parallelism);
        json_uint(j, "min_parallelism", v->min_parallelism);
        if (v->has_max)
            json_uint(j, "max_parallelism", v->max_parallelism);
        json_string(j, "slot_sharing_group", job->groups[v->group]);
        if (v->no_concurrent_attempts)
            json_bool(j, "concurrent_attempts", false);
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void write_edges(struct json *j, const struct pliant_job *job)
{
    json_begin(j, "edges", '[');
    for (size_t i = 0; i < job->n_edges; i++) {
        const struct pliant_edge_spec *e = &job->edges[i];

        json_begin(j, NULL, '{');
        json_string(j, "from", job->vertices[e->from].name);
        json_string(j, "to", job->vertices[e->to].name);
        json_string(j, "pattern", e->pattern == PLIANT_POINTWISE ? "pointwise" : "all_to_all");
        json_string(j, "exchange", e->exchange == PLIANT_BLOCKING ? "blocking" : "pipelined");
        if (e->partitioner != PLIANT_PARTITIONER_DEFAULT)
            json_string(j, "partitioner", job_spec_partitioners[e->partitioner]);
        if (e->input > 0)
            json_uint(j, "input", e->input);
        if (e->splittable)
            json_bool(j, "splittable", true);
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void write_group(struct json *j, const struct pliant_job *job)
{
    json_begin(j, "worker_group", '{');
    json_uint(j, "min-workers", job->vertices[0].min_parallelism);
    json_uint(j, "max-workers", job->vertices[0].parallelism);
    json_end(j, '}');
}

/* All options that have a value, so that a later version with other defaults decides the same. */
static void write_options(struct json *j, const struct pliant_config *cfg)
{
    const struct pliant_option *option;
    char value[PLIANT_FAILURE_LABELS_MAX + 1];

    json_begin(j, "options", '{');
    for (size_t i = 0; (option = pliant_option_at(i)); i++)
        if (strcmp(option->key, "pliant.seed") != 0 &&
            pliant_config_get(cfg, option->key, value, sizeof value) > 0)
            json_string(j, option->key, value);
    json_end(j, '}');
}

void recording_write_header(struct json *j, const struct pliant_job *job,
                            const struct pliant_config *cfg, const void *snapshot, size_t size)
{
    char seed[32];

    json_begin(j, NULL, '{');
    json_int(j, "pliant_journal", 1);
    json_begin(j, "job", '{');
    json_string(j, "name", job->name);
    if (job->worker_group) {
        write_group(j, job);
    } else {
        write_vertices(j, job);
        write_edges(j, job);
    }
    json_end(j, '}');
    write_options(j, cfg);
    pliant_config_get(cfg, "pliant.seed", seed, sizeof seed);
    json_string(j, "seed", seed);
    if (snapshot)
        json_hex(j, "snapshot", snapshot, size);
    json_end(j, '}');
    json_line(j);
}

/* ---- parts of events and actions ---------------------------------------------------------- */

static void write_vertex(const struct writer *w, const char *key, pliant_vertex_id vertex)
{
    if (vertex.v)
        json_string(w->j, key, pliant_job_vertex_name(w->job, vertex));
}

static void write_task(const struct writer *w, struct pliant_task task)
{
    if (!task.vertex.v)
        return;
    write_vertex(w, "vertex", task.vertex);
    json_uint(w->j, "subtask", task.subtask);
    json_uint(w->j, "attempt", task.attempt);
}

static void write_text(struct json *j, const char *key, const char *text)
{
    if (text)
        json_string(j, key, text);
}

static void write_instant(struct json *j, const char *key, int64_t at_ms)
{
    if (at_ms != PLIANT_NEVER)
        json_int(j, key, at_ms);
}

static void write_id(struct json *j, const char *key, uint64_t id)
{
    if (id)
        json_id(j, key, id);
}

/* ---- events ------------------------------------------------------------------------------- */

static void write_life(struct json *j, const char *name, uint64_t incarnation)
{
    json_string(j, "node", name);
    write_id(j, "incarnation", incarnation);
}

static void write_node_up(struct json *j, const struct pliant_event *ev)
{
    write_life(j, ev->node_up.name, ev->node_up.incarnation);
    json_uint(j, "slots", ev->node_up.slots);
    write_text(j, "zone", ev->node_up.zone);
    write_text(j, "domain", ev->node_up.domain);
    if (ev->node_up.n_labels > 0)
        json_labels(j, "labels", ev->node_up.labels, ev->node_up.n_labels);
}

static void write_sizes(const struct writer *w, const struct pliant_event *ev)
{
    if (ev->checkpoint.n_sizes == 0)
        return;
    json_begin(w->j, "sizes", '[');
    for (size_t i = 0; i < ev->checkpoint.n_sizes; i++) {
        const struct pliant_state_size *size = &ev->checkpoint.sizes[i];

        json_begin(w->j, NULL, '{');
        write_vertex(w, "vertex", size->vertex);
        json_uint(w->j, "subtask", size->subtask);
        json_id(w->j, "bytes", size->bytes);
        json_end(w->j, '}');
    }
    json_end(w->j, ']');
}

static void write_checkpoint(const struct writer *w, const struct pliant_event *ev)
{
    write_id(w->j, "id", ev->checkpoint.id);
    json_bool(w->j, "own_accord", ev->checkpoint.own_accord);
    json_bool(w->j, "counts", ev->checkpoint.counts);
    json_int(w->j, "triggered_at_ms", ev->checkpoint.triggered_at_ms);
    write_text(w->j, "path", ev->checkpoint.path);
    write_text(w->j, "cause", ev->checkpoint.cause);
    write_sizes(w, ev);
}

static void write_requirements(struct json *j, const struct pliant_event *ev)
{
    json_begin(j, "vertices", '[');
    for (size_t i = 0; i < ev->requirements.n; i++) {
        const struct pliant_bounds *bounds = &ev->requirements.v[i];

        json_begin(j, NULL, '{');
        json_string(j, "vertex", bounds->vertex);
        json_int(j, "min", bounds->min);
        json_int(j, "max", bounds->max);
        json_end(j, '}');
    }
    json_end(j, ']');
}

/* Bytes are small enough for a number that every program reads exactly. */
static void write_outputs(struct json *j, const struct pliant_event *ev)
{
    if (ev->finished.n_outputs == 0)
        return;
    json_begin(j, "outputs", '[');
    for (size_t i = 0; i < ev->finished.n_outputs; i++) {
        const struct pliant_output *output = &ev->finished.outputs[i];

        json_begin(j, NULL, '{');
        json_uint(j, "edge", output->edge);
        json_begin(j, "bytes", '[');
        for (uint32_t s = 0; s < output->n; s++)
            json_uint(j, NULL, output->bytes[s]);
        json_end(j, ']');
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void write_event_members(const struct writer *w, const struct pliant_event *ev)
{
    struct json *j = w->j;

    switch (ev->kind) {
    case PLIANT_EV_TICK:
    case PLIANT_EV_START:
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_CANCEL:
    case PLIANT_EV_SUSPEND:
    case PLIANT_EVENTS:
        return;
    case PLIANT_EV_NODE_UP:
        write_node_up(j, ev);
        return;
    case PLIANT_EV_NODE_DRAINING:
        write_life(j, ev->draining.name, ev->draining.incarnation);
        write_instant(j, "deadline_at_ms", ev->draining.deadline_at_ms);
        json_string(j, "reason", pliant_drain_reason_name(ev->draining.reason));
        return;
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
    case PLIANT_EV_NODE_LOST:
        write_life(j, ev->node.name, ev->node.incarnation);
        return;
    case PLIANT_EV_SLOTS_GRANTED:
        write_life(j, ev->granted.name, ev->granted.incarnation);
        json_uint(j, "slots", ev->granted.slots);
        return;
    case PLIANT_EV_SLOTS_RECLAIMED:
        write_life(j, ev->reclaimed.name, ev->reclaimed.incarnation);
        json_uint(j, "slots", ev->reclaimed.slots);
        write_instant(j, "deadline_at_ms", ev->reclaimed.deadline_at_ms);
        return;
    case PLIANT_EV_SLOTS_RESERVED:
    case PLIANT_EV_SLOTS_REFUSED:
        json_uint(j, "plan", ev->plan.plan);
        return;
    case PLIANT_EV_CREATION_FAILED:
        json_uint(j, "plan", ev->plan.plan);
        json_bool(j, "recoverable", ev->plan.recoverable);
        write_text(j, "cause", ev->plan.cause);
        return;
    case PLIANT_EV_TASK_INITIALIZING:
    case PLIANT_EV_TASK_RUNNING:
    case PLIANT_EV_TASK_END_OF_DATA:
    case PLIANT_EV_TASK_CANCELED:
        write_task(w, ev->task);
        return;
    case PLIANT_EV_TASK_FINISHED:
        write_task(w, ev->finished.task);
        write_outputs(j, ev);
        return;
    case PLIANT_EV_TASK_FAILED:
    case PLIANT_EV_GLOBAL_FAILURE:
        write_task(w, ev->failure.task);
        json_bool(j, "recoverable", ev->failure.recoverable);
        write_text(j, "cause", ev->failure.cause);
        if (ev->failure.death != PLIANT_DEATH_ERROR)
            json_string(j, "death", pliant_death_name(ev->failure.death));
        if (ev->failure.exit_code > 0)
            json_uint(j, "exit_code", ev->failure.exit_code);
        if (ev->failure.input_lost) {
            json_uint(j, "edge", ev->failure.edge);
            json_uint(j, "producer", ev->failure.producer);
        }
        return;
    case PLIANT_EV_REPORT:
        write_task(w, ev->report.task);
        json_id(j, "call", ev->report.call);
        write_text(j, "path", ev->report.path);
        return;
    case PLIANT_EV_CHECKPOINT_COMPLETED:
    case PLIANT_EV_CHECKPOINT_FAILED:
    case PLIANT_EV_SAVEPOINT_COMPLETED:
    case PLIANT_EV_SAVEPOINT_FAILED:
        write_checkpoint(w, ev);
        return;
    case PLIANT_EV_REQUIREMENTS:
        write_requirements(j, ev);
        return;
    case PLIANT_EV_SAVEPOINT_REQUESTED:
    case PLIANT_EV_STOP:
        write_text(j, "dir", ev->savepoint.dir);
        json_bool(j, "cancel", ev->savepoint.cancel);
        json_bool(j, "drain", ev->savepoint.drain);
        return;
    }
}

void recording_write_event(struct json *j, const char *key, const struct pliant_job *job,
                           const struct pliant_event *ev)
{
    struct writer w = {.j = j, .job = job};

    json_begin(j, key, '{');
    json_string(j, "ev", pliant_event_name(ev->kind));
    write_event_members(&w, ev);
    json_end(j, '}');
}

/* ---- actions ------------------------------------------------------------------------------ */

static void write_slot(const struct writer *w, const char *key, pliant_slot_id slot)
{
    json_slot(w->j, key, pliant_node_name(w->sched, pliant_slot_node(w->sched, slot)),
              pliant_slot_index(w->sched, slot));
}

static void write_slots(const struct writer *w, const pliant_slot_id *slots, uint32_t n)
{
    json_begin(w->j, "slots", '[');
    for (uint32_t i = 0; i < n; i++)
        write_slot(w, NULL, slots[i]);
    json_end(w->j, ']');
}

static void write_node(const struct writer *w, pliant_node_id node)
{
    if (node.v == 0)
        return;
    json_string(w->j, "node", pliant_node_name(w->sched, node));
    write_id(w->j, "incarnation", pliant_node_incarnation(w->sched, node));
}

static void write_change(const struct writer *w, const struct pliant_action *act)
{
    struct json *j = w->j;

    json_string(j, "from", pliant_state_name(act->flag[0]));
    json_string(j, "to", pliant_state_name(act->flag[1]));
    json_string(j, "reason", pliant_reason_name(act->flag[2]));
    json_uint(j, "slots", act->change.slots);
    write_node(w, act->change.node);
    write_instant(j, "since_at_ms", act->change.since_at_ms);
    json_int(j, "detail", act->change.detail);
}

static void write_status(struct json *j, const struct pliant_action *act)
{
    json_string(j, "from", pliant_job_status_name(act->status.from));
    json_string(j, "to", pliant_job_status_name(act->status.to));
}

static void write_rescale_vertices(const struct writer *w, const struct pliant_rescale *rescale)
{
    json_begin(w->j, "vertices", '[');
    for (uint32_t i = 0; i < w->job->n_vertices; i++) {
        const struct pliant_rescale_vertex *v = &rescale->vertices[i];

        json_begin(w->j, NULL, '{');
        write_vertex(w, "vertex", (pliant_vertex_id){i + 1});
        json_uint(w->j, "sufficient", v->sufficient);
        json_uint(w->j, "desired", v->desired);
        json_uint(w->j, "pre", v->pre);
        json_uint(w->j, "post", v->post);
        json_end(w->j, '}');
    }
    json_end(w->j, ']');
}

static void write_rescale_groups(const struct writer *w, const struct pliant_rescale *rescale)
{
    json_begin(w->j, "groups", '[');
    for (uint32_t i = 0; i < w->job->n_groups; i++) {
        const struct pliant_rescale_group *g = &rescale->groups[i];

        json_begin(w->j, NULL, '{');
        json_string(w->j, "group", w->job->groups[i]);
        json_uint(w->j, "minimal", g->minimal);
        json_uint(w->j, "desired", g->desired);
        json_uint(w->j, "pre", g->pre);
        json_uint(w->j, "post", g->post);
        json_end(w->j, '}');
    }
    json_end(w->j, ']');
}

static void write_rescale_spans(struct json *j, const struct pliant_rescale *rescale)
{
    json_begin(j, "spans", '[');
    for (uint32_t i = 0; i < rescale->n_spans; i++) {
        const struct pliant_rescale_span *span = &rescale->spans[i];

        json_begin(j, NULL, '{');
        json_string(j, "state", pliant_state_name(span->state));
        json_int(j, "enter_at_ms", span->enter_at_ms);
        json_int(j, "leave_at_ms", span->leave_at_ms);
        write_text(j, "exception", span->exception);
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void write_judged(struct json *j, const struct pliant_judged *judged)
{
    json_string(j, "judgement", pliant_judgement_name(judged->judgement));
    json_uint(j, "from", judged->from);
    json_uint(j, "to", judged->to);
    json_int(j, "gain", judged->gain);
    json_int(j, "cost", judged->cost);
}

static void write_rescale(const struct writer *w, const struct pliant_rescale *rescale)
{
    json_hex(w->j, "id", rescale->id, sizeof rescale->id);
    json_hex(w->j, "requirements_id", rescale->requirements_id, sizeof rescale->requirements_id);
    json_uint(w->j, "attempt", rescale->attempt);
    json_string(w->j, "trigger", pliant_rescale_trigger_name(rescale->trigger));
    json_string(w->j, "end", pliant_rescale_end_name(rescale->end));
    json_int(w->j, "start_at_ms", rescale->start_at_ms);
    json_int(w->j, "end_at_ms", rescale->end_at_ms);
    write_rescale_vertices(w, rescale);
    write_rescale_groups(w, rescale);
    write_rescale_spans(w->j, rescale);
    if (rescale->judged.judgement != PLIANT_JUDGED_NOT) {
        json_begin(w->j, "judged", '{');
        write_judged(w->j, &rescale->judged);
        json_end(w->j, '}');
    }
}

static void write_failure(const struct writer *w, const struct pliant_failure *failure)
{
    json_begin(w->j, "items", '[');
    for (uint32_t i = 0; i < failure->n; i++) {
        const struct pliant_failure_item *item = &failure->items[i];

        json_begin(w->j, NULL, '{');
        json_int(w->j, "at_ms", item->at_ms);
        json_string(w->j, "reason", pliant_reason_name(item->reason));
        json_bool(w->j, "recoverable", item->recoverable);
        write_task(w, item->task);
        json_string(w->j, "node", item->node);
        json_string(w->j, "cause", item->cause);
        if (item->exit_code > 0)
            json_uint(w->j, "exit_code", item->exit_code);
        if (item->n_labels > 0)
            json_labels(w->j, "labels", item->labels, item->n_labels);
        json_end(w->j, '}');
    }
    json_end(w->j, ']');
    json_uint(w->j, "more", failure->n_more);
}

static void write_checkpoint_wish(struct json *j, const struct pliant_action *act)
{
    json_id(j, "id", act->checkpoint.id);
    json_string(j, "why", pliant_checkpoint_cause_name(act->flag[0]));
    json_bool(j, "savepoint", act->flag[1]);
    json_bool(j, "drain", act->flag[2]);
    write_text(j, "dir", act->checkpoint.dir);
}

static void write_action_members(const struct writer *w, const struct pliant_action *act)
{
    struct json *j = w->j;

    switch ((enum pliant_action_kind)act->kind) {
    case PLIANT_ACT_DECLARE:
        json_uint(j, "desired", act->declare.desired);
        json_uint(j, "min", act->declare.min);
        return;
    case PLIANT_ACT_RESERVE:
        json_uint(j, "plan", act->reserve.plan);
        write_slots(w, act->reserve.slots, act->reserve.n);
        write_id(j, "restore", act->reserve.restore);
        return;
    case PLIANT_ACT_RELEASE:
        write_slots(w, act->release.slots, act->release.n);
        return;
    case PLIANT_ACT_RELEASE_RESULT:
        json_uint(j, "edge", act->result.edge);
        write_task(w, act->result.producer);
        return;
    case PLIANT_ACT_DECIDED:
        write_vertex(w, "vertex", act->decided.vertex);
        json_uint(j, "parallelism", act->decided.parallelism);
        json_uint(j, "bytes", act->decided.bytes);
        return;
    case PLIANT_ACT_DEPLOY:
        write_task(w, act->deploy.task);
        write_slot(w, "slot", act->deploy.slot);
        write_id(j, "restore", act->deploy.restore);
        return;
    case PLIANT_ACT_CANCEL:
        write_task(w, act->task);
        return;
    case PLIANT_ACT_CHECKPOINT:
        write_checkpoint_wish(j, act);
        return;
    case PLIANT_ACT_REGISTER:
        json_id(j, "id", act->registered.id);
        write_text(j, "path", act->registered.path);
        json_id(j, "call", act->registered.call);
        return;
    case PLIANT_ACT_REPORT_TAKEN:
        write_task(w, act->report.task);
        json_id(j, "call", act->report.call);
        return;
    case PLIANT_ACT_NOTIFY:
        write_node(w, act->notify.node);
        write_instant(j, "deadline_at_ms", act->notify.deadline_at_ms);
        json_string(j, "reason", pliant_drain_reason_name(act->flag[0]));
        return;
    case PLIANT_ACT_GIVE_UP_NODE:
        write_node(w, act->node.node);
        return;
    case PLIANT_ACT_BLOCK_NODE:
        write_node(w, act->blocked.node);
        write_instant(j, "until_at_ms", act->blocked.until_at_ms);
        return;
    case PLIANT_ACT_REFUSED:
        json_string(j, "reason", pliant_reason_name(act->flag[0]));
        write_vertex(w, "vertex", act->refused.vertex);
        return;
    case PLIANT_ACT_STATE_CHANGED:
        write_change(w, act);
        return;
    case PLIANT_ACT_STATUS_CHANGED:
    case PLIANT_ACT_ARCHIVED:
        write_status(j, act);
        return;
    case PLIANT_ACT_RESCALE_OPENED:
    case PLIANT_ACT_RESCALE_CLOSED:
        write_rescale(w, act->rescale.record);
        return;
    case PLIANT_ACT_RESCALE_JUDGED:
        write_judged(j, &(struct pliant_judged){act->flag[0], act->judged.from, act->judged.to,
                                                act->judged.gain, act->judged.cost});
        return;
    case PLIANT_ACT_FAILURE:
        write_failure(w, act->failure.entry);
        return;
    case PLIANT_ACT_SAVEPOINT_ENDED:
        write_text(j, "path", act->savepoint.path);
        write_text(j, "cause", act->savepoint.cause);
        return;
    case PLIANT_ACTIONS:
        return;
    }
}

void recording_write_actions(struct json *j, const char *key, const struct pliant_job *job,
                             const struct pliant_sched *sched, const struct pliant_actions *acts)
{
    struct writer w = {.j = j, .job = job, .sched = sched};

    json_begin(j, key, '[');
    for (size_t i = 0; i < acts->n; i++) {
        json_begin(j, NULL, '{');
        json_string(j, "act", pliant_action_name((enum pliant_action_kind)acts->v[i].kind));
        write_action_members(&w, &acts->v[i]);
        json_end(j, '}');
    }
    json_end(j, ']');
}

void recording_write_step(struct json *j, const struct pliant_job *job,
                          const struct pliant_sched *sched, int64_t at_ms,
                          const struct pliant_event *ev, const struct pliant_actions *acts)
{
    json_begin(j, NULL, '{');
    json_int(j, "t", at_ms);
    recording_write_event(j, "event", job, ev);
    recording_write_actions(j, "actions", job, sched, acts);
    json_end(j, '}');
    json_line(j);
}

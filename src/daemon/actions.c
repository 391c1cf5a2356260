/* actions.c - what a core asks for is done: messages are gathered, slots held, events told */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

/* ---- events --------------------------------------------------------------------------------- */

void tell_task(struct daemon *d, const struct daemon_job *job, const struct daemon_task *task,
               enum pliant_task_state state, const char *cause)
{
    struct json *j = events_begin(d, "task", job);

    json_string(j, "vertex",
                pliant_job_vertex_name(job->spec.job, (pliant_vertex_id){task->key.vertex}));
    json_uint(j, "subtask", task->key.subtask);
    json_uint(j, "attempt", task->key.attempt);
    json_string(j, "node", task->node->name);
    json_string(j, "state", pliant_task_state_name(state));
    json_string(j, "cause", cause);
    events_end(d);
}

static void state_changed(struct daemon *d, const struct daemon_job *job,
                          const struct pliant_action *a)
{
    const char *from = pliant_state_name((enum pliant_state)a->flag[0]);
    const char *to = pliant_state_name((enum pliant_state)a->flag[1]);
    const char *reason = pliant_reason_name((enum pliant_reason)a->flag[2]);
    struct json *j = events_begin(d, "state", job);

    json_string(j, "from", from);
    json_string(j, "to", to);
    json_string(j, "reason", reason);
    json_uint(j, "slots", a->change.slots);
    json_begin(j, "vertices", '{');
    for (uint32_t v = 1; v <= pliant_job_vertices(job->spec.job); v++)
        json_uint(j, pliant_job_vertex_name(job->spec.job, (pliant_vertex_id){v}),
                  pliant_parallelism(job->sched, (pliant_vertex_id){v}));
    json_end(j, '}');
    events_end(d);
    log_line(6, "msg=\"state changed\" job=%s state=%s>%s reason=%s slots=%u", job->id, from, to,
             reason, (unsigned)a->change.slots);
}

static void status_changed(struct daemon *d, const struct daemon_job *job,
                           const struct pliant_action *a)
{
    struct json *j = events_begin(d, "status", job);

    json_string(j, "from", pliant_job_status_name((enum pliant_job_status)a->status.from));
    json_string(j, "to", pliant_job_status_name((enum pliant_job_status)a->status.to));
    events_end(d);
}

static void rescale_changed(struct daemon *d, const struct daemon_job *job,
                            const struct pliant_action *a)
{
    bool closed = a->kind == PLIANT_ACT_RESCALE_CLOSED;
    struct json *j = events_begin(d, "rescale", job);

    json_string(j, "change", closed ? "closed" : "opened");
    json_string(j, "trigger", pliant_rescale_trigger_name(a->rescale.record->trigger));
    if (closed)
        json_string(j, "end", pliant_rescale_end_name(a->rescale.record->end));
    events_end(d);
}

static void rescale_judged(struct daemon *d, const struct daemon_job *job,
                           const struct pliant_action *a)
{
    struct json *j = events_begin(d, "rescale", job);

    json_string(j, "change", "judged");
    json_string(j, "text", pliant_judgement_name((enum pliant_judgement)a->flag[0]));
    json_uint(j, "from", a->judged.from);
    json_uint(j, "to", a->judged.to);
    json_int(j, "gain_slot_ms", a->judged.gain);
    json_int(j, "cost_slot_ms", a->judged.cost);
    events_end(d);
}

static void decided(struct daemon *d, const struct daemon_job *job, const struct pliant_action *a)
{
    const char *vertex = pliant_job_vertex_name(job->spec.job, a->decided.vertex);
    struct json *j = events_begin(d, "decided", job);

    json_string(j, "vertex", vertex);
    json_uint(j, "parallelism", a->decided.parallelism);
    json_uint(j, "bytes", a->decided.bytes);
    events_end(d);
    log_line(6,
             "msg=\"parallelism decided\" job=%s vertex=%s parallelism=%" PRIu32 " bytes=%" PRIu64,
             job->id, vertex, a->decided.parallelism, a->decided.bytes);
}

static void node_blocked(struct daemon *d, const struct daemon_job *job,
                         const struct pliant_action *a)
{
    const char *node = pliant_node_name(job->sched, a->blocked.node);
    int64_t until_unix_ms = clock_to_unix(&d->clock, a->blocked.until_at_ms);
    struct json *j = events_begin(d, "blocked", job);

    json_string(j, "node", node);
    json_int(j, "until_unix_ms", until_unix_ms);
    events_end(d);
    log_line(4, "msg=\"node blocked: it is slow\" job=%s node=%s until_unix_ms=%" PRId64, job->id,
             log_quoted(node).v, until_unix_ms);
}

/* "key=value,key=value" for the log, cut to fit. */
static void list_labels(const struct pliant_failure_item *item, char *buf, size_t size)
{
    size_t at = 0;

    *buf = '\0';
    for (uint32_t i = 0; i < item->n_labels && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s=%s", i > 0 ? "," : "",
                               item->labels[i].key, item->labels[i].value);
}

static void failure(struct daemon *d, const struct daemon_job *job, const struct pliant_failure *f)
{
    const struct pliant_failure_item *item = &f->items[f->n - 1];
    const char *reason = pliant_reason_name((enum pliant_reason)item->reason);
    struct json *j = events_begin(d, "failure", job);
    char labels[512];

    json_string(j, "reason", reason);
    if (item->task.vertex.v) {
        json_string(j, "vertex", pliant_job_vertex_name(job->spec.job, item->task.vertex));
        json_uint(j, "subtask", item->task.subtask);
    }
    json_string(j, "node", item->node);
    json_string(j, "cause", item->cause);
    json_labels(j, "labels", item->labels, item->n_labels);
    events_end(d);
    list_labels(item, labels, sizeof labels);
    log_line(4, "msg=\"failure\" job=%s reason=%s node=%s cause=%s%s%s", job->id, reason,
             log_quoted(item->node).v, log_quoted(item->cause).v, *labels ? " labels=" : "",
             *labels ? log_quoted(labels).v : "");
}

static void savepoint_ended(struct daemon *d, struct daemon_job *job, const struct pliant_action *a)
{
    struct json *j = events_begin(d, "savepoint", job);

    json_string(j, "path", a->savepoint.path);
    json_string(j, "cause", a->savepoint.cause);
    events_end(d);
    requests_savepoint_ended(d, job, a->savepoint.path, a->savepoint.cause);
}

/* ---- slots, tasks and nodes ----------------------------------------------------------------- */

static struct daemon_node *node_of(struct daemon *d, const struct daemon_job *job,
                                   pliant_node_id id)
{
    struct daemon_node *node = node_find(d, pliant_node_name(job->sched, id));

    return node && job_incarnation(job, node) == pliant_node_incarnation(job->sched, id) ? node
                                                                                         : NULL;
}

static bool is_ours(struct daemon *d, struct daemon_job *job, pliant_slot_id slot)
{
    struct daemon_node *node = node_of(d, job, pliant_slot_node(job->sched, slot));

    return node && slots_find(d, node, job, pliant_slot_index(job->sched, slot)) != UINT32_MAX;
}

/* A graph needs nothing built: the slots are there or they are not. A group needs more. */
static void reserve(struct daemon *d, struct daemon_job *job, const struct pliant_action *a)
{
    struct pliant_event ev = {.kind = PLIANT_EV_SLOTS_RESERVED, .plan = {.plan = a->reserve.plan}};

    for (uint32_t i = 0; i < a->reserve.n && ev.kind == PLIANT_EV_SLOTS_RESERVED; i++)
        if (!is_ours(d, job, a->reserve.slots[i]))
            ev.kind = PLIANT_EV_SLOTS_REFUSED;
    if (job->group && ev.kind == PLIANT_EV_SLOTS_RESERVED)
        group_reserve(d, job, a);
    else
        job_fact(d, job, &ev);
}

static void deploy(struct daemon *d, struct daemon_job *job, const struct pliant_action *a)
{
    struct daemon_task *task;

    deploy_task(d, job, &a->deploy.task, a->deploy.slot, a->deploy.restore);
    task = job_task(job, &a->deploy.task);
    if (task)
        tell_task(d, job, task, PLIANT_TASK_DEPLOYING, NULL);
}

static void cancel(struct daemon *d, struct daemon_job *job, const struct pliant_action *a)
{
    struct daemon_task *task = job_task(job, &a->task);

    if (!task)
        return; /* it has ended: the fact is on its way */
    if (group_cancels_held(d, task))
        return;
    stop_task(d, job, task);
    tell_task(d, job, task, PLIANT_TASK_CANCELING, NULL);
}

/* The node confirms no cancel: what is there is killed, and when all of it is gone the node may be
 * the job's again, in a new life. */
static void give_up(struct daemon *d, struct daemon_job *job, pliant_node_id id)
{
    struct daemon_node *node = node_of(d, job, id);
    struct daemon_life *life;
    bool any = false;

    if (!node)
        return;
    log_line(4, "msg=\"node confirms no cancel; given up\" job=%s node=%s", job->id,
             log_quoted(node->name).v);
    for (struct daemon_task *task = node->tasks; task; task = task->next) {
        if (task->job != job)
            continue;
        task->given_up = any = true;
        stop_task(d, job, task);
    }
    life = job_life(job, node->name);
    life->given_up++;
    life->open = any;
    job_lives_put(d, job);
    slots_given_up(d, job, node, !any);
}

/* What a worker is told of a node that will go; `stop_at_ms` and the like are instants of the wall
 * clock. */
static void write_notice(struct daemon *d, const struct daemon_node *node, int64_t deadline_at_ms,
                         struct json *j)
{
    int64_t unix_ms = deadline_at_ms == PLIANT_NEVER ? 0 : clock_to_unix(&d->clock, deadline_at_ms);

    json_begin(j, "info", '{');
    if (unix_ms)
        json_int(j, "deadline_ms", unix_ms);
    else
        json_null(j, "deadline_ms");
    json_begin(j, "preempted_node_ids", '[');
    json_string(j, NULL, node->name);
    json_end(j, ']');
    json_end(j, '}');
}

static void notify(struct daemon *d, struct daemon_job *job, const struct pliant_action *a)
{
    struct daemon_node *node = node_of(d, job, a->notify.node);
    uint32_t attempt = 0;
    struct json j;

    if (!node)
        return;
    if (job->group) {
        group_notify(d, job);
        return;
    }
    for (const struct daemon_task *task = node->tasks; task; task = task->next)
        if (task->job == job && task->key.attempt > attempt)
            attempt = task->key.attempt;
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "job", job->id);
    json_uint(&j, "attempt", attempt);
    write_notice(d, node, a->notify.deadline_at_ms, &j);
    json_end(&j, '}');
    outbox_to_node(d, node, MESSAGE_NOTICE, &j);
    json_free(&j);
}

/* ---- the end of a job ----------------------------------------------------------------------- */

static void archive(struct daemon *d, struct daemon_job *job)
{
    struct daemon_task *task, *next;
    struct json j, *event;
    char *final;

    job_ended(d, job);
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    status_final(d, job, &j);
    json_end(&j, '}');
    final = need_json(&j);
    store_job_end(d->store, job->id, job->ended_unix_ms, final);
    free(final);
    HASH_ITER (hh, job->tasks, task, next)
        stop_task(d, job, task);
    slots_of_ended_job(d, job);
    requests_of_ended_job(d, job);
    results_of_ended_job(d, job);
    event = events_begin(d, "job", job);
    json_string(event, "name", job->name);
    json_string(event, "change", "ended");
    json_string(event, "status", pliant_job_status_name(pliant_job_status(job->sched)));
    events_end(d);
    log_line(6, "msg=\"job ended\" job=%s status=%s", job->id,
             pliant_job_status_name(pliant_job_status(job->sched)));
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void carry_out(struct daemon *d, struct daemon_job *job, const struct pliant_action *a)
{
    switch ((enum pliant_action_kind)a->kind) {
    case PLIANT_ACT_DECLARE:
        job->declared = a->declare.desired;
        job->declared_min = a->declare.min;
        job->scan_slots = true;
        return;
    case PLIANT_ACT_RESERVE:
        reserve(d, job, a);
        return;
    case PLIANT_ACT_RELEASE:
        slots_released(d, job, a->release.slots, a->release.n);
        return;
    case PLIANT_ACT_DEPLOY:
        deploy(d, job, a);
        return;
    case PLIANT_ACT_CANCEL:
        cancel(d, job, a);
        return;
    case PLIANT_ACT_CHECKPOINT:
        checkpoints_trigger(d, job, a);
        return;
    case PLIANT_ACT_REGISTER:
        group_register(d, job, a);
        return;
    case PLIANT_ACT_REPORT_TAKEN:
        group_report_taken(d, job, a);
        return;
    case PLIANT_ACT_RELEASE_RESULT:
        results_release(d, job, a);
        return;
    case PLIANT_ACT_DECIDED:
        decided(d, job, a);
        return;
    case PLIANT_ACT_BLOCK_NODE:
        node_blocked(d, job, a);
        return;
    case PLIANT_ACT_NOTIFY:
        notify(d, job, a);
        return;
    case PLIANT_ACT_GIVE_UP_NODE:
        give_up(d, job, a->node.node);
        return;
    case PLIANT_ACT_REFUSED:
        requests_refused(d, job, a);
        return;
    case PLIANT_ACT_STATE_CHANGED:
        state_changed(d, job, a);
        if (a->flag[1] == PLIANT_EXECUTING)
            group_is_up(d, job);
        return;
    case PLIANT_ACT_STATUS_CHANGED:
        status_changed(d, job, a);
        return;
    case PLIANT_ACT_RESCALE_OPENED:
    case PLIANT_ACT_RESCALE_CLOSED:
        rescale_changed(d, job, a);
        return;
    case PLIANT_ACT_RESCALE_JUDGED:
        rescale_judged(d, job, a);
        return;
    case PLIANT_ACT_FAILURE:
        failure(d, job, a->failure.entry);
        return;
    case PLIANT_ACT_SAVEPOINT_ENDED:
        savepoint_ended(d, job, a);
        return;
    case PLIANT_ACT_ARCHIVED:
        archive(d, job);
        return;
    case PLIANT_ACTIONS:
        return;
    }
}

void actions_carry_out(struct daemon *d, struct daemon_job *job, const struct pliant_actions *acts)
{
    for (size_t i = 0; i < acts->n; i++)
        carry_out(d, job, &acts->v[i]);
}

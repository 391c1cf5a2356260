/* pliant.c - the public functions: making, stepping, looking at a scheduler */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "allocator/requirements.h"
#include "states/sched.h"

/* ---- making ----------------------------------------------------------------------------- */

static bool tables_init(struct pliant_sched *s)
{
    const struct pliant_job *job = s->job;
    const struct pliant_alloc *a = s->alloc;

    s->max_parallelism = mem_zero(a, job->n_vertices, sizeof *s->max_parallelism);
    s->target = mem_zero(a, job->n_vertices, sizeof *s->target);
    s->scratch = mem_zero(a, job->n_vertices, sizeof *s->scratch);
    s->topological_rank = mem_zero(a, job->n_vertices, sizeof *s->topological_rank);
    s->plan.parallelism = mem_zero(a, job->n_vertices, sizeof *s->plan.parallelism);
    s->plan.group_slots = mem_zero(a, job->n_groups, sizeof *s->plan.group_slots);
    s->previous.parallelism = mem_zero(a, job->n_vertices, sizeof *s->previous.parallelism);
    s->previous.first = mem_zero(a, job->n_vertices, sizeof *s->previous.first);
    return s->max_parallelism && s->target && s->scratch && s->topological_rank &&
           s->plan.parallelism && s->plan.group_slots && s->previous.parallelism &&
           s->previous.first;
}

static uint32_t history_size(int64_t wanted)
{
    return wanted <= 0 ? 0 : wanted > UINT16_MAX ? UINT16_MAX : (uint32_t)wanted;
}

static bool modules_init(struct pliant_sched *s)
{
    const struct pliant_job *job = s->job;
    const struct pliant_alloc *a = s->alloc;

    return bounds_init(&s->bounds, job->n_vertices, job->n_groups, job->group_of, a) == 0 &&
           execution_init(&s->graph, job, a) == 0 &&
           restart_strategy_init(&s->failover.strategy, &s->cfg.restart, a) == 0 &&
           restart_strategy_init(&s->creation_retry, &s->cfg.creation_retry, a) == 0 &&
           timeline_init(&s->timeline, job->n_vertices, job->n_groups,
                         history_size(s->cfg.rescale_history_size), a) == 0 &&
           tables_init(s);
}

static bool labels_init(struct pliant_sched *s)
{
    char why[LABEL_WHY_MAX];
    bool fine;

    s->failures.job = s->job;
    if (!*s->cfg.failure_labels)
        return true;
    s->label_rules = mem_zero(s->alloc, 1, sizeof *s->label_rules);
    if (!s->label_rules)
        return false;
    fine = label_rules_parse(s->cfg.failure_labels, s->label_rules, why);
    assert(fine); /* the config was checked */
    s->failures.rules = s->label_rules;
    return true;
}

static void policy_begin(struct pliant_sched *s)
{
    s->policy.kind = s->way->rescales ? s->cfg.rescale_policy : PLIANT_POLICY_NEVER;
    s->policy.limits = (struct worth_limits){
        .restart_ms = s->cfg.worth.restart_ms,
        .min_restart_ms = s->cfg.worth.min_restart_ms,
        .checkpoint_ms = s->cfg.worth.checkpoint_ms,
        .between_losses_ms = s->cfg.worth.between_losses_ms,
        .memory_ms = s->cfg.worth.memory_ms,
        .min_interval_ms = s->cfg.checkpoint_min_interval_ms,
        .max_interval_ms = s->cfg.checkpoint_max_interval_ms,
    };
    worth_start(&s->policy.worth);
}

static void group_begin(struct pliant_sched *s)
{
    struct budgets *b = &s->failover.budgets;
    struct vertex_bounds *workers = &s->bounds.vertices[0];

    s->failover.group = true;
    b->workers.limit = s->cfg.group.max_failures;
    b->preemptions.limit = s->cfg.group.max_preemption_failures;
    b->launches.limit = s->cfg.group.controller_failure_limit;
    b->resets.limit = s->cfg.group.reset_limit;
    if (s->cfg.group.min_workers > 0)
        workers->min = (uint32_t)s->cfg.group.min_workers;
    if (s->cfg.group.max_workers > 0)
        workers->want = (uint32_t)s->cfg.group.max_workers;
    bounds_refresh(&s->bounds);
}

/* All slots that could be used at one time are wanted, and no less: fewer would only let regions
 * wait until that is a failure. */
static void fix_parallelism(struct pliant_sched *s)
{
    for (uint32_t v = 0; v < s->job->n_vertices; v++)
        s->bounds.vertices[v].min = s->bounds.vertices[v].want;
    bounds_refresh(&s->bounds);
}

/* The state of a scheduler that has seen nothing. */
static void begin(struct pliant_sched *s)
{
    s->way = s->cfg.scheduler == PLIANT_SCHEDULER_DEFAULT          ? &default_way
             : s->cfg.scheduler == PLIANT_SCHEDULER_ADAPTIVE_BATCH ? &batch_way
                                                                   : &adaptive_way;
    s->clock.now_ms = INT64_MIN;
    s->prng.state = (uint64_t)s->cfg.seed;
    s->state.id = PLIANT_CREATED;
    s->idle_check = DEADLINE_NONE;
    s->failover.drain_max_moves = s->cfg.drain_max_restarts;
    s->failover.budgets.resets.limit = BUDGET_UNLIMITED;
    s->registration.expiry = DEADLINE_NONE;
    policy_begin(s);
    if (s->way->decides)
        s->cfg.checkpoint_interval_ms = PLIANT_UNSET; /* stages end; none runs for long */
    for (uint32_t v = 0; v < s->job->n_vertices; v++) {
        s->max_parallelism[v] =
            s->way->decides ? batching_max_parallelism(s, v) : s->job->vertices[v].max_parallelism;
        s->topological_rank[s->job->topological[v]] = v;
    }
    requirements_initial(&s->bounds, s->job, s->cfg.mode == PLIANT_MODE_REACTIVE); /* [S-PAR-3] */
    if (s->job->worker_group)
        group_begin(s);
    if (!s->way->rescales)
        fix_parallelism(s);
    s->graph.timed = speculation_applies(s);
}

int pliant_sched_new(const struct pliant_config *cfg, const struct pliant_job *job,
                     struct pliant_sched **ret, struct pliant_error *err)
{
    struct pliant_config resolved = *cfg;
    struct pliant_sched *s;

    resolved.worker_group = job->worker_group;
    resolved.all_blocking = pliant_job_is_batch(job);
    if (pliant_config_resolve(&resolved, err) < 0 || pliant_job_check(job, &resolved, err) < 0)
        return -EINVAL;
    s = mem_zero(cfg->alloc, 1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->cfg = resolved;
    s->alloc = cfg->alloc;
    s->job = job;
    pool_init(&s->pool, s->alloc);
    reports_init(&s->reports, s->alloc);
    regional_init(&s->regional, s->alloc);
    scheduling_init(&s->scheduling, s->alloc);
    speculation_init(&s->speculation, s->alloc);
    batching_init(&s->batching, s->alloc);
    failures_init(&s->failures, s->alloc, history_size(s->cfg.exception_history_size));
    if (!modules_init(s) || !labels_init(s)) {
        pliant_sched_destroy(&s);
        return -ENOMEM;
    }
    begin(s);
    *ret = s;
    return 0;
}

void pliant_sched_destroy(struct pliant_sched **ps)
{
    struct pliant_sched *s = *ps;

    if (!s)
        return;
    outbox_free(s);
    pool_free(&s->pool);
    scheduling_free(&s->scheduling);
    speculation_free(&s->speculation);
    batching_free(&s->batching);
    regional_free(&s->regional);
    if (s->graph.job)
        execution_free(&s->graph);
    bounds_free(&s->bounds, s->alloc);
    restart_strategy_free(&s->failover.strategy, s->alloc);
    restart_strategy_free(&s->creation_retry, s->alloc);
    failures_free(&s->failures);
    mem_free(s->alloc, s->label_rules);
    timeline_free(&s->timeline);
    reports_free(&s->reports);
    vec_free(s->alloc, &s->registration.calls);
    mem_free(s->alloc, s->savepoint_path);
    mem_free(s->alloc, s->max_parallelism);
    mem_free(s->alloc, s->target);
    mem_free(s->alloc, s->scratch);
    mem_free(s->alloc, s->topological_rank);
    mem_free(s->alloc, s->plan.parallelism);
    mem_free(s->alloc, s->plan.group_slots);
    vec_free(s->alloc, &s->plan.unit_slots);
    mem_free(s->alloc, s->previous.parallelism);
    mem_free(s->alloc, s->previous.first);
    vec_free(s->alloc, &s->previous.entries);
    mem_free(s->alloc, s);
    *ps = NULL;
}

/* ---- malformed events ------------------------------------------------------------------- */

static bool name_fine(const char *name)
{
    return name && *name && memchr(name, '\0', PLIANT_NAME_MAX + 1);
}

static bool optional_name_fine(const char *name)
{
    return !name || memchr(name, '\0', PLIANT_NAME_MAX + 1);
}

static bool slots_fine(const struct pliant_sched *s, uint32_t slots)
{
    return slots <= PLIANT_MAX_SLOTS && s->pool.n_held + slots <= PLIANT_MAX_SLOTS;
}

static bool node_up_fine(const struct pliant_sched *s, const struct pliant_event *ev)
{
    if (!name_fine(ev->node_up.name) || !optional_name_fine(ev->node_up.zone) ||
        !optional_name_fine(ev->node_up.domain) || !slots_fine(s, ev->node_up.slots) ||
        s->pool.n_nodes >= PLIANT_MAX_NODES || (ev->node_up.n_labels > 0 && !ev->node_up.labels))
        return false;
    for (size_t i = 0; i < ev->node_up.n_labels; i++)
        if (!name_fine(ev->node_up.labels[i].key) ||
            !optional_name_fine(ev->node_up.labels[i].value) || !ev->node_up.labels[i].value)
            return false;
    return true;
}

static bool requirements_fine(const struct pliant_event *ev)
{
    if (ev->requirements.n > 0 && !ev->requirements.v)
        return false;
    for (size_t i = 0; i < ev->requirements.n; i++)
        if (!ev->requirements.v[i].vertex)
            return false;
    return true;
}

/* Ids of our own go on behind the host's, so there must be some left; and 0 is no checkpoint. */
static bool checkpoint_fine(const struct pliant_event *ev)
{
    if (ev->checkpoint.n_sizes > 0 && !ev->checkpoint.sizes)
        return false;
    return !ev->checkpoint.own_accord || (ev->checkpoint.triggered_at_ms >= 0 &&
                                          ev->checkpoint.id >= 1 && ev->checkpoint.id <= INT64_MAX);
}

static bool report_fine(const struct pliant_event *ev)
{
    const char *path = ev->report.path;

    return ev->report.call >= 1 && (!path || (*path && memchr(path, '\0', REPORTS_PATH_MAX + 1)));
}

static bool input_fine(const struct pliant_sched *s, const struct pliant_event *ev)
{
    return !ev->failure.input_lost ||
           (ev->failure.edge < s->job->n_edges && ev->failure.producer < PLIANT_MAX_PARALLELISM);
}

static bool outputs_fine(const struct pliant_event *ev)
{
    if (ev->finished.n_outputs > 0 && !ev->finished.outputs)
        return false;
    for (size_t i = 0; i < ev->finished.n_outputs; i++)
        if (ev->finished.outputs[i].n > 0 && !ev->finished.outputs[i].bytes)
            return false;
    return true;
}

static bool event_fine(const struct pliant_sched *s, const struct pliant_event *ev)
{
    switch (ev->kind) {
    case PLIANT_EV_NODE_UP:
        return node_up_fine(s, ev);
    case PLIANT_EV_NODE_DRAINING:
        return name_fine(ev->draining.name) && ev->draining.deadline_at_ms >= 0 &&
               (unsigned)ev->draining.reason <= PLIANT_DRAIN_IDLE;
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
    case PLIANT_EV_NODE_LOST:
        return name_fine(ev->node.name);
    case PLIANT_EV_SLOTS_GRANTED:
        return name_fine(ev->granted.name) && slots_fine(s, ev->granted.slots);
    case PLIANT_EV_SLOTS_RECLAIMED:
        return name_fine(ev->reclaimed.name) && ev->reclaimed.deadline_at_ms >= 0;
    case PLIANT_EV_CHECKPOINT_COMPLETED:
    case PLIANT_EV_SAVEPOINT_COMPLETED:
        return checkpoint_fine(ev);
    case PLIANT_EV_REQUIREMENTS:
        return requirements_fine(ev);
    case PLIANT_EV_REPORT:
        return report_fine(ev);
    case PLIANT_EV_TASK_FAILED:
        return (unsigned)ev->failure.death < PLIANT_DEATHS && input_fine(s, ev);
    case PLIANT_EV_TASK_FINISHED:
        return outputs_fine(ev);
    case PLIANT_EV_TICK:
    case PLIANT_EV_START:
    case PLIANT_EV_SLOTS_RESERVED:
    case PLIANT_EV_SLOTS_REFUSED:
    case PLIANT_EV_CREATION_FAILED:
    case PLIANT_EV_TASK_INITIALIZING:
    case PLIANT_EV_TASK_RUNNING:
    case PLIANT_EV_TASK_END_OF_DATA:
    case PLIANT_EV_TASK_CANCELED:
    case PLIANT_EV_GLOBAL_FAILURE:
    case PLIANT_EV_CHECKPOINT_FAILED:
    case PLIANT_EV_SAVEPOINT_FAILED:
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_SAVEPOINT_REQUESTED:
    case PLIANT_EV_STOP:
    case PLIANT_EV_CANCEL:
    case PLIANT_EV_SUSPEND:
        return true;
    case PLIANT_EVENTS:
        return false;
    }
    return false;
}

/* ---- stepping --------------------------------------------------------------------------- */

int pliant_step(struct pliant_sched *s, int64_t now_ms, const struct pliant_event *ev,
                struct pliant_actions *acts)
{
    int error;

    *acts = (struct pliant_actions){0};
    if (!s->no_memory &&
        (now_ms < s->clock.now_ms || now_ms == PLIANT_NEVER || now_ms < 0 || !event_fine(s, ev)))
        return -EINVAL;
    error = machine_step(s, now_ms, ev);
    if (error < 0)
        return error;
    *acts = (struct pliant_actions){.v = s->actions.v, .n = s->actions.n};
    return 0;
}

int64_t pliant_next_deadline(const struct pliant_sched *s)
{
    return machine_next_deadline(s);
}

/* ---- looking at it ---------------------------------------------------------------------- */

enum pliant_state pliant_state(const struct pliant_sched *s)
{
    return s->state.id;
}

enum pliant_job_status pliant_job_status(const struct pliant_sched *s)
{
    if (s->state.id == PLIANT_FINISHED)
        return s->state.finished.status;
    if (s->state.id == PLIANT_EXECUTING && regional_pending(&s->regional))
        return PLIANT_JOB_RESTARTING; /* [P-REG-2] */
    return sched_ops(s)->status;      /* its own, never the graph's [S-GEN-13] */
}

static bool vertex_fine(const struct pliant_sched *s, pliant_vertex_id vertex)
{
    return vertex.v >= 1 && vertex.v <= s->job->n_vertices;
}

uint32_t pliant_parallelism(const struct pliant_sched *s, pliant_vertex_id vertex)
{
    return vertex_fine(s, vertex) ? s->graph.parallelism[vertex.v - 1] : 0;
}

enum pliant_pattern pliant_edge_pattern(const struct pliant_sched *s, size_t edge)
{
    const struct pliant_edge_spec *e;

    assert(edge < s->job->n_edges);
    e = &s->job->edges[edge];
    return !s->way->rescales || s->graph.parallelism[e->from] == s->graph.parallelism[e->to]
               ? e->pattern
               : PLIANT_ALL_TO_ALL;
}

void pliant_vertex_bounds(const struct pliant_sched *s, pliant_vertex_id vertex, uint32_t *ret_min,
                          uint32_t *ret_max)
{
    bool fine = vertex_fine(s, vertex);

    *ret_min = fine ? s->bounds.vertices[vertex.v - 1].min : 0;
    *ret_max = fine ? s->bounds.vertices[vertex.v - 1].want : 0;
}

bool pliant_task_info(const struct pliant_sched *s, pliant_vertex_id vertex, uint32_t subtask,
                      struct pliant_task_info *ret)
{
    return pliant_attempt_info(s, vertex, subtask, 0, ret);
}

bool pliant_attempt_info(const struct pliant_sched *s, pliant_vertex_id vertex, uint32_t subtask,
                         uint32_t i, struct pliant_task_info *ret)
{
    const struct task *attempt;

    if (!vertex_fine(s, vertex) || subtask >= s->graph.parallelism[vertex.v - 1])
        return false;
    attempt = &s->graph.vertices[vertex.v - 1].tasks[subtask];
    for (; attempt && i > 0; i--)
        attempt = execution_next(&s->graph, attempt);
    if (!attempt)
        return false;
    *ret = (struct pliant_task_info){.attempt = attempt->attempt, .state = attempt->state};
    if (task_seated(attempt))
        ret->slot.v = attempt->slot + 1;
    return true;
}

void pliant_counts(const struct pliant_sched *s, struct pliant_counts *ret)
{
    *ret = (struct pliant_counts){
        .nodes = s->pool.n_nodes,
        .draining_nodes = s->pool.n_draining,
        .blocked_nodes = s->pool.n_blocked,
        .slow_tasks = s->speculation.n_slow,
        .slots = s->pool.n_held,
        .slots_offered = s->pool.n_offered,
        .slots_used = s->pool.n_used,
        .desired = (uint32_t)desired_slots(s),
        .minimal = (uint32_t)minimal_slots(s),
        .tasks = s->graph.n_tasks,
        .tasks_live = s->graph.exists ? s->graph.n_live - s->graph.n_created : 0,
        .tasks_running = s->graph.n_running,
        .restarts = s->restarts,
        .region_restarts = s->regional.restarts,
        .effective_speculations = s->graph.n_effective,
        .rescales = s->rescales,
        .creation_retries = s->creation_retries,
        .drain_moves = s->failover.drain_moves,
        .failures_charged = s->failover.budgets.workers.charged,
        .preemptions_charged = s->failover.budgets.preemptions.charged,
        .launch_failures = s->failover.budgets.launches.charged,
        .group_attempt = s->group.attempt,
        .events_ignored = s->events_ignored,
        .checkpoint = s->checkpoints.completed_id,
        .checkpoint_at_ms = s->checkpoints.completed_at_ms,
    };
}

uint32_t pliant_group_attempt(const struct pliant_sched *s)
{
    return s->group.attempt;
}

static struct pliant_next next_of_manager(const struct manager *m, enum pliant_reason decision)
{
    const struct deadline *first =
        deadline_before(&m->phase_end, &m->evaluation) ? &m->phase_end : &m->evaluation;

    return (struct pliant_next){
        .decision = decision, .at_ms = first->at_ms, .phase = manager_phase_name(m->phase)};
}

static struct pliant_next next_of_waiting(const struct waiting *w)
{
    struct pliant_next next = next_of_manager(&w->manager, PLIANT_REASON_SUFFICIENT_RESOURCES);

    if (w->timeout.at_ms < next.at_ms) {
        next.decision = PLIANT_REASON_RESOURCE_TIMEOUT;
        next.at_ms = w->timeout.at_ms;
    }
    if (w->hold_ms > 0 && w->check.at_ms < next.at_ms) {
        next.decision = PLIANT_REASON_BACKOFF_OVER;
        next.at_ms = w->check.at_ms;
    }
    return next;
}

/* Regions that restart: the delay of the first plan, or cancels that nobody has confirmed. */
static struct pliant_next next_of_regional(const struct regional *r, const struct manager *m,
                                           bool rescales)
{
    const struct deadline *first = deadline_before(&r->due, &r->give_up) ? &r->due : &r->give_up;

    return (struct pliant_next){.decision = PLIANT_REASON_BACKOFF_OVER,
                                .at_ms = first->at_ms,
                                .phase = rescales ? manager_phase_name(m->phase) : ""};
}

static struct pliant_next next_of_executing(const struct pliant_sched *s)
{
    const struct deadline *timeout = &s->scheduling.line.timeout;
    const struct executing *e = &s->state.executing;
    struct pliant_next next = next_of_manager(&e->manager, PLIANT_REASON_RESCALE);

    if (e->again.at_ms < next.at_ms) /* the policy is asked again */
        next.at_ms = e->again.at_ms;
    if (!s->way->rescales)
        next = (struct pliant_next){.decision = deadline_armed(timeout)
                                                    ? PLIANT_REASON_NOT_ENOUGH_RESOURCES
                                                    : PLIANT_REASON_NONE,
                                    .at_ms = timeout->at_ms,
                                    .phase = ""};

    if (e->drain.pending) {
        next.decision = PLIANT_REASON_DRAIN;
        next.at_ms = e->drain.last_checkpoint ? e->drain.limit.at_ms : e->drain.move.at_ms;
    }
    return next;
}

static struct pliant_next next_of_winding(const struct winding *w, enum pliant_reason decision)
{
    return (struct pliant_next){.decision = decision,
                                .at_ms =
                                    deadline_armed(&w->down) ? w->down.at_ms : w->give_up.at_ms,
                                .phase = ""};
}

static struct pliant_next next_of_creating(const struct creating *c)
{
    const struct launch *l = &c->launch;

    switch (l->phase) {
    case LAUNCH_NONE:
        break;
    case LAUNCH_STARTING:
        return (struct pliant_next){
            .decision = PLIANT_REASON_LAUNCH_TIMEOUT, .at_ms = l->timeout.at_ms, .phase = ""};
    case LAUNCH_GIVEN_UP:
        return next_of_winding(&l->winding, l->why.reason);
    }
    return (struct pliant_next){
        .decision = PLIANT_REASON_PLAN_READY, .at_ms = PLIANT_NEVER, .phase = ""};
}

void pliant_next(const struct pliant_sched *s, struct pliant_next *ret)
{
    *ret = (struct pliant_next){.at_ms = PLIANT_NEVER, .phase = ""};
    switch ((enum pliant_state)s->state.id) {
    case PLIANT_WAITING_FOR_RESOURCES:
        *ret = next_of_waiting(&s->state.waiting);
        return;
    case PLIANT_RETRYING_EXECUTION_GRAPH_CREATION:
        ret->decision = PLIANT_REASON_BACKOFF_OVER;
        ret->at_ms = s->state.retrying.backoff.at_ms;
        return;
    case PLIANT_EXECUTING:
        *ret = regional_pending(&s->regional)
                   ? next_of_regional(&s->regional, &s->state.executing.manager, s->way->rescales)
                   : next_of_executing(s);
        return;
    case PLIANT_RESTARTING:
        *ret = next_of_winding(&s->state.restarting.winding, PLIANT_REASON_BACKOFF_OVER);
        return;
    case PLIANT_FAILING:
        *ret = next_of_winding(&s->state.failing.winding, s->state.why.reason);
        return;
    case PLIANT_CANCELING:
        *ret = next_of_winding(&s->state.canceling.winding, PLIANT_REASON_ALL_CANCELED);
        return;
    case PLIANT_CREATING_EXECUTION_GRAPH:
        *ret = next_of_creating(&s->state.creating);
        return;
    case PLIANT_STOP_WITH_SAVEPOINT:
        ret->decision = PLIANT_REASON_SAVEPOINT_DONE;
        return;
    case PLIANT_CREATED:
    case PLIANT_FINISHED:
    case PLIANT_STATES:
        return;
    }
}

const char *pliant_node_name(const struct pliant_sched *s, pliant_node_id node)
{
    const struct pool_node *found = node.v > 0 ? pool_node(&s->pool, node.v - 1) : NULL;

    return found ? found->name : "";
}

uint64_t pliant_node_incarnation(const struct pliant_sched *s, pliant_node_id node)
{
    const struct pool_node *found = node.v > 0 ? pool_node(&s->pool, node.v - 1) : NULL;

    return found ? found->incarnation : 0;
}

size_t pliant_blocked(const struct pliant_sched *s, struct pliant_blocked *ret, size_t n)
{
    size_t i = 0;

    for (uint32_t row = 0; i < s->pool.n_blocked && row < s->pool.nodes.n; row++) {
        const struct pool_node *node = s->pool.nodes.v[row];

        if (!node || node->blocked_until_ms == PLIANT_NEVER)
            continue;
        if (i < n)
            ret[i] = (struct pliant_blocked){{row + 1}, node->blocked_until_ms};
        i++;
    }
    return i;
}

static const struct pool_slot *slot_of(const struct pliant_sched *s, pliant_slot_id slot)
{
    if (slot.v == 0 || slot.v > s->pool.slots.n || s->pool.slots.v[slot.v - 1].node == POOL_NONE)
        return NULL;
    return &s->pool.slots.v[slot.v - 1];
}

pliant_node_id pliant_slot_node(const struct pliant_sched *s, pliant_slot_id slot)
{
    const struct pool_slot *found = slot_of(s, slot);

    return (pliant_node_id){found ? found->node + 1 : 0};
}

uint32_t pliant_slot_index(const struct pliant_sched *s, pliant_slot_id slot)
{
    const struct pool_slot *found = slot_of(s, slot);

    return found ? found->index : 0;
}

const struct pliant_rescale *pliant_rescale_at(const struct pliant_sched *s, size_t i)
{
    return timeline_at(&s->timeline, i);
}

const struct pliant_rescale *pliant_rescale_last(const struct pliant_sched *s,
                                                 enum pliant_rescale_terminal kind)
{
    const struct rescale_record *last =
        (unsigned)kind < PLIANT_TERMINALS ? s->timeline.last[kind] : NULL;

    return last ? &last->view : NULL;
}

void pliant_rescale_summary(const struct pliant_sched *s, struct pliant_rescale_summary *ret)
{
    timeline_summary(&s->timeline, ret);
}

const struct pliant_failure *pliant_failure_at(const struct pliant_sched *s, size_t i)
{
    return failures_at(&s->failures, i);
}

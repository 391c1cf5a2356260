/* model.c - see model.h
 *
 * A step is taken in three parts: what the event says about the cluster, each action in order,
 * and what must agree when all is done. */
#include "sim/model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/job.h"
#include "util/deadline.h"

#define UNTOLD_END_MS 120000      /* of a drain or reclaim whose notice tells none [S-DRN-3] */
#define CHECKPOINT_MARGIN_MS 1000 /* [S-DRN-5] */

static void broken(struct model *m, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Note the first rule that does not hold. */
static void broken(struct model *m, const char *rule, const char *format, ...)
{
    va_list args;

    if (m->broken)
        return;
    m->broken = rule;
    va_start(args, format);
    vsnprintf(m->detail, sizeof m->detail, format, args);
    va_end(args);
}

static void no_memory(struct model *m)
{
    broken(m, "no memory", "in the model");
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static uint32_t sum_of_groups(const struct model *m, const uint32_t *bound)
{
    uint32_t sum = 0;

    for (uint32_t g = 0; g < m->n_groups; g++) {
        uint32_t widest = 0;

        for (uint32_t v = 0; v < m->n_vertices; v++)
            if (m->group_of[v] == g && bound[v] > widest)
                widest = bound[v];
        sum += widest;
    }
    return sum;
}

uint32_t model_desired(const struct model *m)
{
    return sum_of_groups(m, m->max);
}

static void number_groups(struct model *m)
{
    for (uint32_t v = 0; v < m->n_vertices; v++) {
        const char *group = pliant_job_vertex_group(m->job, (pliant_vertex_id){v + 1});
        uint32_t u = 0;

        while (u < v &&
               strcmp(pliant_job_vertex_group(m->job, (pliant_vertex_id){u + 1}), group) != 0)
            u++;
        m->group_of[v] = u < v ? m->group_of[u] : m->n_groups++;
    }
}

static int64_t bound_or(int64_t bound, int64_t standard)
{
    return bound == -1 ? standard : bound;
}

/* Does the job's description or its data set the parallelism, so that tasks are started region by
 * region? */
static bool keeps_parallelism(const struct model *m)
{
    return m->regions.on || m->batch.on;
}

/* Would this update be taken [S-REQ-1]? With `apply`, take it. */
static bool update_bounds(struct model *m, const struct pliant_bounds *v, size_t n, bool apply)
{
    uint64_t named = 0;

    for (size_t i = 0; i < n; i++) {
        pliant_vertex_id id = pliant_job_vertex_find(m->job, v[i].vertex);
        int64_t most = id.v ? pliant_job_vertex_max_parallelism(m->job, id) : 0;
        int64_t min = bound_or(v[i].min, 1), max = bound_or(v[i].max, most);

        if (!id.v || named >> (id.v - 1) & 1 || min < 1 || min > max || max > most)
            return false;
        named |= UINT64_C(1) << (id.v - 1);
        if (apply) {
            m->min[id.v - 1] = (uint32_t)min;
            m->max[id.v - 1] = (uint32_t)max;
        }
    }
    return n == m->n_vertices;
}

/* ---- budgets --------------------------------------------------------------------------------- */

static int64_t times_kept(const struct model_budget *b)
{
    return (int64_t)b->times.n;
}

static void notify_rate(struct model *m, struct model_budget *b, int64_t now_ms)
{
    int64_t *time = vec_push(NULL, &b->times);

    if (!time)
        no_memory(m);
    else
        *time = now_ms;
}

static int64_t exponential_delay(const struct model_budget *b)
{
    double delay = (double)b->cfg.exponential.initial_ms;

    for (int64_t i = 0; i < b->count && delay < (double)b->cfg.exponential.max_ms; i++)
        delay *= b->cfg.exponential.multiplier;
    return delay < (double)b->cfg.exponential.max_ms ? (int64_t)delay : b->cfg.exponential.max_ms;
}

static void notify_exponential(struct model_budget *b, int64_t now_ms)
{
    if (b->planned_at_ms != PLIANT_NEVER && now_ms <= b->planned_at_ms)
        return;
    if (b->planned_at_ms != PLIANT_NEVER &&
        now_ms - b->planned_at_ms >= b->cfg.exponential.reset_ms)
        b->count = 0;
    b->planned_at_ms = instant_after(now_ms, exponential_delay(b));
    b->count++;
}

/* Charge one failure; may the job restart? */
static bool charge(struct model *m, struct model_budget *b, int64_t now_ms)
{
    switch (b->cfg.kind) {
    case PLIANT_RESTART_UNSET:
    case PLIANT_RESTART_NONE:
        return false;
    case PLIANT_RESTART_FIXED_DELAY:
        return ++b->count <= b->cfg.fixed.attempts;
    case PLIANT_RESTART_FAILURE_RATE:
        notify_rate(m, b, now_ms);
        return times_kept(b) <= b->cfg.rate.max_failures ||
               now_ms - b->times.v[times_kept(b) - 1 - b->cfg.rate.max_failures] >
                   b->cfg.rate.interval_ms;
    case PLIANT_RESTART_EXPONENTIAL_DELAY:
        notify_exponential(b, now_ms);
        return b->count <= b->cfg.exponential.attempts;
    }
    return false;
}

/* The back-off after charge(), give or take *ret_slack. */
static int64_t backoff_of(const struct model_budget *b, int64_t now_ms, int64_t *ret_slack)
{
    *ret_slack = 0;
    if (b->cfg.kind == PLIANT_RESTART_FIXED_DELAY)
        return b->cfg.fixed.delay_ms;
    if (b->cfg.kind == PLIANT_RESTART_FAILURE_RATE)
        return b->cfg.rate.delay_ms;
    /* one for rounding; with jitter only the longest is known */
    *ret_slack = b->cfg.exponential.jitter > 0 ? b->cfg.exponential.max_ms : 1;
    return b->planned_at_ms > now_ms ? b->planned_at_ms - now_ms : 0;
}

/* ---- nodes and slots ------------------------------------------------------------------------- */

struct model_node *model_node(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->nodes.n; i++)
        if (strcmp(m->nodes.v[i].name, name) == 0)
            return &m->nodes.v[i];
    return NULL;
}

/* Slots that new work may be placed on, live ones included. */
static uint32_t offered(const struct model *m)
{
    uint32_t n = 0;

    for (size_t i = 0; i < m->nodes.n; i++)
        if (m->nodes.v[i].up && !m->nodes.v[i].draining)
            n += m->nodes.v[i].slots - m->nodes.v[i].aside - m->nodes.v[i].owed -
                 m->nodes.v[i].returning;
    return n;
}

static uint32_t used_slots(const struct model *m, const struct model_node *node)
{
    uint32_t n = 0;

    for (size_t i = 0; i < m->slots.n; i++)
        n += m->slots.v[i].live > 0 && m->slots.v[i].life == node->life;
    return n;
}

/* The node in the life that an event means, or NULL: that is not the present one. */
static struct model_node *node_meant(const struct model *m, const char *name, uint64_t incarnation)
{
    struct model_node *node = model_node(m, name);

    return node && node->up && (incarnation == 0 || node->incarnation == incarnation) ? node : NULL;
}

/* More slots: those that were given back first. */
static void node_gains(struct model *m, const struct pliant_event *ev)
{
    struct model_node *node = node_meant(m, ev->granted.name, ev->granted.incarnation);
    uint32_t again;

    if (!node)
        return;
    again = node->aside < ev->granted.slots ? node->aside : ev->granted.slots;
    node->aside -= again;
    node->slots += ev->granted.slots - again;
    for (size_t i = 0; again > 0 && i < m->slots.n; i++)
        if (m->slots.v[i].life == node->life)
            m->slots.v[i].aside = false; /* which of them is the scheduler's choice */
}

/* Others shall have some of its slots: free ones first, and none twice. */
static void node_yields(struct model *m, const struct pliant_event *ev, int64_t now_ms)
{
    struct model_node *node = node_meant(m, ev->reclaimed.name, ev->reclaimed.incarnation);
    int64_t end_at_ms = ev->reclaimed.deadline_at_ms;
    uint32_t held, n, n_free;

    if (!node)
        return;
    held = node->slots - node->aside;
    n = ev->reclaimed.slots < held - node->owed ? ev->reclaimed.slots : held - node->owed;
    n_free = held - used_slots(m, node);
    node->returning = n < n_free ? n : n_free;
    n -= node->returning;
    if (end_at_ms == PLIANT_NEVER)
        end_at_ms = instant_after(now_ms, UNTOLD_END_MS);
    if (n > 0 && (node->owed == 0 || end_at_ms < node->owed_at_ms))
        node->owed_at_ms = end_at_ms;
    node->owed += n;
}

/* `finished`: the event that says so; NULL: it ended otherwise. */
static void task_ends(struct model *m, struct model_task *task, int64_t now_ms,
                      const struct pliant_event *finished)
{
    struct model_slot *slot = &m->slots.v[task->slot];

    model_regions_over(&m->regions, task->vertex, task->subtask, slot->life, finished);
    model_batch_over(&m->batch, task->vertex, task->subtask, slot->life, finished);
    task->phase = MODEL_OVER;
    if (--slot->live == 0) {
        slot->emptied = m->steps;
        slot->emptied_at_ms = now_ms;
    }
    if (--m->n_live == 0)
        m->down_at_ms = now_ms;
}

static bool works_on(const struct model *m, const struct model_node *node)
{
    for (uint32_t v = 0; v < m->n_vertices; v++)
        for (size_t i = 0; i < m->tasks[v].n; i++)
            if (m->tasks[v].v[i].phase != MODEL_OVER && &m->nodes.v[m->tasks[v].v[i].node] == node)
                return true;
    return false;
}

/* Does some task live in that slot that nobody told to stop? */
static bool slot_works(const struct model *m, size_t slot)
{
    for (uint32_t v = 0; v < m->n_vertices; v++)
        for (size_t i = 0; i < m->tasks[v].n; i++)
            if (m->tasks[v].v[i].phase != MODEL_OVER && m->tasks[v].v[i].phase != MODEL_CANCELING &&
                m->tasks[v].v[i].slot == slot)
                return true;
    return false;
}

/* Do tasks that nobody told to stop live in more slots of the node than the job may keep? */
static bool unasked_stays(const struct model *m, const struct model_node *node)
{
    uint32_t works = 0, kept = node->draining ? 0 : node->slots - node->aside - node->owed;

    for (size_t i = 0; node->up && i < m->slots.n; i++)
        works += m->slots.v[i].life == node->life && slot_works(m, i);
    return works > kept;
}

static bool drains_used(const struct model *m, const struct model_node *node)
{
    return node->up && node->draining && works_on(m, node);
}

static void node_leaves(struct model *m, struct model_node *node, int64_t now_ms)
{
    uint32_t index = (uint32_t)(node - m->nodes.v);

    bool used = works_on(m, node);

    for (uint32_t v = 0; v < m->n_vertices; v++)
        for (size_t i = 0; i < m->tasks[v].n; i++)
            if (m->tasks[v].v[i].phase != MODEL_OVER && m->tasks[v].v[i].node == index)
                task_ends(m, &m->tasks[v].v[i], now_ms, NULL);
    if (!m->cfg->results_outlive_nodes) {
        used |= model_regions_node_left(&m->regions, node->life);
        used |= model_batch_node_left(&m->batch, node->life);
    }
    m->drained_lost |= node->up && node->draining && used;
    node->up = false;
}

static void node_joins(struct model *m, const struct pliant_event *ev, int64_t now_ms)
{
    struct model_node *node = model_node(m, ev->node_up.name);

    if (node && node->up && ev->node_up.incarnation <= node->incarnation) {
        if (ev->node_up.incarnation == node->incarnation)
            node->draining = false; /* if it drained, it does no longer */
        return;
    }
    if (node && node->up) /* it came back before anyone saw it go */
        node_leaves(m, node, now_ms);
    if (!node && !(node = vec_push(NULL, &m->nodes))) {
        no_memory(m);
        return;
    }
    *node = (struct model_node){.name = ev->node_up.name,
                                .up = true,
                                .incarnation = ev->node_up.incarnation,
                                .life = ++m->lives,
                                .slots = ev->node_up.slots};
}

/* The node that an action names: in the life that is up, or was until this step. */
static struct model_node *node_named(struct model *m, pliant_node_id id,
                                     const struct pliant_sched *sched)
{
    const char *name = pliant_node_name(sched, id);
    struct model_node *node = name ? model_node(m, name) : NULL;

    if (node && node->incarnation == pliant_node_incarnation(sched, id))
        return node;
    broken(m, "actions name nodes that are up", "%s %" PRIu64, name ? name : "?",
           pliant_node_incarnation(sched, id));
    return NULL;
}

/* The slot's row; at its first mention in a life of its node, a new one. NULL: no memory, or its
 * node is unknown. */
static struct model_slot *slot_of(struct model *m, pliant_slot_id id,
                                  const struct pliant_sched *sched)
{
    struct model_node *node = node_named(m, pliant_slot_node(sched, id), sched);
    struct model_slot *slot;

    if (!node)
        return NULL;
    while (m->slots.n <= id.v)
        if (!vec_push(NULL, &m->slots)) {
            no_memory(m);
            return NULL;
        }
    slot = &m->slots.v[id.v];
    if (slot->life == node->life)
        return slot;
    if (slot->live > 0)
        broken(m, "a slot keeps its node while tasks live in it", "slot %" PRIu32, id.v);
    *slot = (struct model_slot){
        .node = (uint32_t)(node - m->nodes.v), .life = node->life, .emptied_at_ms = -1};
    return slot;
}

/* The earliest end that was told; without one, 120 s after the notice [S-DRN-3]. */
static void node_drains(struct model_node *node, int64_t end_at_ms, int64_t now_ms)
{
    if (end_at_ms == PLIANT_NEVER)
        end_at_ms = instant_after(now_ms, UNTOLD_END_MS);
    if (!node->draining || end_at_ms < node->end_at_ms)
        node->end_at_ms = end_at_ms;
    node->draining = true;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

struct model_task *model_task(const struct model *m, const struct pliant_task *id)
{
    uint32_t v = id->vertex.v - 1;

    for (size_t i = 0; v < m->n_vertices && i < m->tasks[v].n; i++) {
        struct model_task *task = &m->tasks[v].v[i];

        if (task->phase != MODEL_OVER && task->subtask == id->subtask &&
            task->attempt == id->attempt)
            return task;
    }
    return NULL;
}

bool model_all_running(const struct model *m)
{
    for (uint32_t v = 0; v < m->n_vertices; v++)
        for (size_t i = 0; i < m->tasks[v].n; i++)
            if (m->tasks[v].v[i].phase != MODEL_OVER && m->tasks[v].v[i].phase != MODEL_RUNNING)
                return false;
    return m->n_live > 0;
}

static bool any_drains_used(const struct model *m)
{
    for (size_t i = 0; i < m->nodes.n; i++)
        if (drains_used(m, &m->nodes.v[i]))
            return true;
    return false;
}

static void task_moves(struct model *m, const struct pliant_task *id, enum model_phase phase)
{
    struct model_task *task = model_task(m, id);

    if (task && task->phase != MODEL_CANCELING && task->phase < phase)
        task->phase = phase;
}

/* ---- the event ------------------------------------------------------------------------------- */

static void take_checkpoint(struct model *m, const struct pliant_event *ev, int64_t now_ms)
{
    bool completed =
        ev->kind == PLIANT_EV_CHECKPOINT_COMPLETED || ev->kind == PLIANT_EV_SAVEPOINT_COMPLETED;
    uint64_t *id;

    if (completed) {
        if (now_ms - ev->checkpoint.triggered_at_ms > m->longest_ms)
            m->longest_ms = now_ms - ev->checkpoint.triggered_at_ms;
        id = vec_push(NULL, &m->completed);
        if (!id)
            no_memory(m);
        else
            *id = ev->checkpoint.id;
    }
    if (!ev->checkpoint.own_accord && ev->checkpoint.id == m->registering)
        m->registering = 0;
    for (size_t i = 0; !ev->checkpoint.own_accord && i < m->checkpoints.n; i++) {
        if (m->checkpoints.v[i].id != ev->checkpoint.id)
            continue;
        m->stopped |=
            completed && m->checkpoints.v[i].stop && m->state == PLIANT_STOP_WITH_SAVEPOINT;
        m->checkpoints.v[i] = m->checkpoints.v[--m->checkpoints.n];
        break;
    }
}

static void end_task(struct model *m, const struct pliant_task *id, int64_t now_ms,
                     const struct pliant_event *finished)
{
    struct model_task *task = model_task(m, id);

    if (task)
        task_ends(m, task, now_ms, finished);
}

static void take_event(struct model *m, const struct pliant_event *ev, int64_t now_ms)
{
    struct model_node *node;

    switch (ev->kind) {
    case PLIANT_EV_NODE_UP:
        node_joins(m, ev, now_ms);
        return;
    case PLIANT_EV_NODE_DRAINING:
        node = node_meant(m, ev->draining.name, ev->draining.incarnation);
        if (node)
            node_drains(node, ev->draining.deadline_at_ms, now_ms);
        return;
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
        node = node_meant(m, ev->node.name, ev->node.incarnation);
        if (node)
            node->draining = false;
        return;
    case PLIANT_EV_NODE_LOST:
        node = node_meant(m, ev->node.name, ev->node.incarnation);
        if (node)
            node_leaves(m, node, now_ms);
        return;
    case PLIANT_EV_SLOTS_GRANTED:
        node_gains(m, ev);
        return;
    case PLIANT_EV_SLOTS_RECLAIMED:
        node_yields(m, ev, now_ms);
        return;
    case PLIANT_EV_SLOTS_RESERVED:
    case PLIANT_EV_SLOTS_REFUSED:
    case PLIANT_EV_CREATION_FAILED:
        if (ev->plan.plan != m->plan.serial)
            return;
        m->plan.pending = false;
        m->plan.recoverable = ev->plan.recoverable;
        return;
    case PLIANT_EV_TASK_INITIALIZING:
        task_moves(m, &ev->task, MODEL_INITIALIZING);
        return;
    case PLIANT_EV_TASK_RUNNING:
        task_moves(m, &ev->task, MODEL_RUNNING);
        return;
    case PLIANT_EV_TASK_FINISHED:
    case PLIANT_EV_TASK_CANCELED:
        end_task(m, &ev->task, now_ms, ev->kind == PLIANT_EV_TASK_FINISHED ? ev : NULL);
        return;
    case PLIANT_EV_TASK_FAILED:
        end_task(m, &ev->failure.task, now_ms, NULL);
        return;
    case PLIANT_EV_CHECKPOINT_COMPLETED:
    case PLIANT_EV_CHECKPOINT_FAILED:
    case PLIANT_EV_SAVEPOINT_COMPLETED:
    case PLIANT_EV_SAVEPOINT_FAILED:
        take_checkpoint(m, ev, now_ms);
        return;
    case PLIANT_EV_START:
        m->started = true;
        return;
    case PLIANT_EV_REQUIREMENTS:
        if (m->cfg->mode != PLIANT_MODE_REACTIVE && !keeps_parallelism(m) &&
            update_bounds(m, ev->requirements.v, ev->requirements.n, false))
            update_bounds(m, ev->requirements.v, ev->requirements.n, true);
        return;
    case PLIANT_EV_SAVEPOINT_REQUESTED:
    case PLIANT_EV_STOP:
        m->wishes++; /* REFUSED takes it back */
        return;
    case PLIANT_EV_TICK:
    case PLIANT_EV_TASK_END_OF_DATA:
    case PLIANT_EV_GLOBAL_FAILURE:
    case PLIANT_EV_REPORT:
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_CANCEL:
    case PLIANT_EV_SUSPEND:
    case PLIANT_EVENTS:
        return;
    }
}

/* ---- state changes --------------------------------------------------------------------------- */

#define BIT(state) (1u << (state))

/* Section 0.1 of the states' rules: where each state may go. */
static const uint32_t edges[PLIANT_STATES] = {
    [PLIANT_CREATED] =
        BIT(PLIANT_WAITING_FOR_RESOURCES) | BIT(PLIANT_EXECUTING) | BIT(PLIANT_FINISHED),
    [PLIANT_WAITING_FOR_RESOURCES] = BIT(PLIANT_CREATING_EXECUTION_GRAPH) | BIT(PLIANT_FINISHED),
    [PLIANT_CREATING_EXECUTION_GRAPH] = BIT(PLIANT_EXECUTING) | BIT(PLIANT_WAITING_FOR_RESOURCES) |
                                        BIT(PLIANT_RETRYING_EXECUTION_GRAPH_CREATION) |
                                        BIT(PLIANT_FINISHED),
    [PLIANT_RETRYING_EXECUTION_GRAPH_CREATION] =
        BIT(PLIANT_WAITING_FOR_RESOURCES) | BIT(PLIANT_FINISHED),
    [PLIANT_EXECUTING] = BIT(PLIANT_RESTARTING) | BIT(PLIANT_FAILING) | BIT(PLIANT_CANCELING) |
                         BIT(PLIANT_STOP_WITH_SAVEPOINT) | BIT(PLIANT_FINISHED),
    [PLIANT_RESTARTING] = BIT(PLIANT_WAITING_FOR_RESOURCES) | BIT(PLIANT_CREATING_EXECUTION_GRAPH) |
                          BIT(PLIANT_CANCELING) | BIT(PLIANT_FINISHED),
    [PLIANT_FAILING] = BIT(PLIANT_CANCELING) | BIT(PLIANT_FINISHED),
    [PLIANT_CANCELING] = BIT(PLIANT_FINISHED),
    [PLIANT_STOP_WITH_SAVEPOINT] = BIT(PLIANT_EXECUTING) | BIT(PLIANT_RESTARTING) |
                                   BIT(PLIANT_FAILING) | BIT(PLIANT_CANCELING) |
                                   BIT(PLIANT_FINISHED),
};

/* Where fixed parallelism never leads to. */
#define ADAPTIVE_STATES                                                                            \
    (BIT(PLIANT_WAITING_FOR_RESOURCES) | BIT(PLIANT_CREATING_EXECUTION_GRAPH) |                    \
     BIT(PLIANT_RETRYING_EXECUTION_GRAPH_CREATION) | BIT(PLIANT_RESTARTING))

static const enum pliant_job_status shown[PLIANT_STATES] = {
    [PLIANT_CREATED] = PLIANT_JOB_INITIALIZING,
    [PLIANT_WAITING_FOR_RESOURCES] = PLIANT_JOB_CREATED,
    [PLIANT_CREATING_EXECUTION_GRAPH] = PLIANT_JOB_CREATED,
    [PLIANT_RETRYING_EXECUTION_GRAPH_CREATION] = PLIANT_JOB_CREATED,
    [PLIANT_EXECUTING] = PLIANT_JOB_RUNNING,
    [PLIANT_RESTARTING] = PLIANT_JOB_RESTARTING,
    [PLIANT_FAILING] = PLIANT_JOB_FAILING,
    [PLIANT_CANCELING] = PLIANT_JOB_CANCELLING,
    [PLIANT_STOP_WITH_SAVEPOINT] = PLIANT_JOB_RUNNING,
};

static void check_backoff(struct model *m, struct model_budget *b, int64_t now_ms, int64_t got_ms)
{
    int64_t slack_ms, want_ms = backoff_of(b, now_ms, &slack_ms);

    if (got_ms < want_ms - slack_ms || got_ms > want_ms + slack_ms)
        broken(m, "the back-off is the strategy's", "wanted %" PRId64 " ms, got %" PRId64, want_ms,
               got_ms);
    m->backoff_ms = got_ms;
    if (b->cfg.kind == PLIANT_RESTART_EXPONENTIAL_DELAY) /* chance and rounding are the core's */
        b->planned_at_ms = instant_after(now_ms, got_ms);
}

static bool of_group(const struct model *m)
{
    return pliant_job_is_group(m->job);
}

static bool by_region(const struct model *m)
{
    return keeps_parallelism(m) ||
           (m->cfg->adaptive_failover == PLIANT_FAILOVER_REGION && !of_group(m));
}

/* The job moves because nodes drain that it uses, not before there is room for all of it or the end
 * is near [S-DRN-5]; or because others shall have slots that it uses, not before the rest suffices
 * or the end is near. Only `worth` may start over elsewhere while the tasks still start. */
static void move_begins(struct model *m, bool drains, int64_t now_ms)
{
    int64_t lead_ms = m->longest_ms + CHECKPOINT_MARGIN_MS, end_at_ms = PLIANT_NEVER;
    uint32_t needed = (uint32_t)m->plan.slots.n, least = sum_of_groups(m, m->min);
    bool any_owed = false;

    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct model_node *node = &m->nodes.v[i];

        any_owed |= node->up && node->owed > 0;
        if (drains_used(m, node) && node->end_at_ms < end_at_ms)
            end_at_ms = node->end_at_ms;
        if (node->up && node->owed > 0 && node->owed_at_ms < end_at_ms)
            end_at_ms = node->owed_at_ms;
    }
    if (any_drains_used(m) != drains || (!drains && !any_owed))
        broken(m, "the drain budget pays for drains", "%s", drains ? "none" : "one");
    if (lead_ms < m->cfg->drain_lead_ms)
        lead_ms = m->cfg->drain_lead_ms;
    if (!drains && least < needed)
        needed = least;
    if (m->cfg->rescale_policy != PLIANT_POLICY_WORTH && !by_region(m) && needed > offered(m) &&
        now_ms < end_at_ms - lead_ms)
        broken(m, "a move waits for slots, or for the end", "%" PRIu32 " slots, not %" PRIu32,
               needed, offered(m));
}

/* What starts now is not the whole job. */
static bool region_starts(const struct model *m)
{
    return by_region(m) && !m->run_begins;
}

/* Its own budgets pay for all but moves and resizes; which one is a matter of what drains, and why.
 */
static void group_restart_begins(struct model *m, const struct pliant_action *act)
{
    m->batches++;
    m->backoff_ms = act->change.detail;
    if (act->flag[2] == PLIANT_REASON_RESTARTS_SUPPRESSED)
        broken(m, "a group's budgets replace the limit of the restart strategy", "it was asked");
}

static void restart_begins(struct model *m, const struct pliant_action *act, int64_t now_ms)
{
    int64_t most = m->cfg->drain_max_restarts;

    m->backoff_ms = 0;
    if (of_group(m) && act->flag[2] != PLIANT_REASON_RESCALE &&
        act->flag[2] != PLIANT_REASON_RECLAIM && act->flag[2] != PLIANT_REASON_DRAIN) {
        group_restart_begins(m, act);
        return;
    }
    switch ((int)act->flag[2]) {
    case PLIANT_REASON_RESCALE:
        return;
    case PLIANT_REASON_RECLAIM:
        move_begins(m, false, now_ms);
        return;
    case PLIANT_REASON_DRAIN:
    case PLIANT_REASON_DRAINING_NODE_LOST:
        if (act->flag[2] == PLIANT_REASON_DRAIN)
            move_begins(m, true, now_ms);
        else if (!m->drained_lost)
            broken(m, "the drain budget pays for drains", "for a node that was not draining");
        m->drain_moves++;
        if (most >= 0 && m->drain_moves > (uint64_t)most)
            broken(m, "the drain budget bounds moves", "move %" PRIu64 " of %" PRId64,
                   m->drain_moves, most);
        return;
    default:
        if (by_region(m))
            return; /* what regions cost shows in no action */
        if (!charge(m, &m->restarts, now_ms))
            broken(m, "the restart strategy bounds restarts", "restarts though it says no");
        check_backoff(m, &m->restarts, now_ms, act->change.detail);
    }
}

static void job_fails(struct model *m, const struct pliant_action *act, int64_t now_ms)
{
    int64_t most = m->cfg->drain_max_restarts;

    if (act->flag[2] == PLIANT_REASON_WORKER_BUDGET_EXHAUSTED ||
        act->flag[2] == PLIANT_REASON_PREEMPTION_BUDGET_EXHAUSTED ||
        act->flag[2] == PLIANT_REASON_LAUNCH_BUDGET_EXHAUSTED)
        m->batches++;
    m->reset_limit_reached |= act->flag[2] == PLIANT_REASON_RESET_LIMIT_REACHED;
    if (act->flag[2] == PLIANT_REASON_RESTARTS_SUPPRESSED && !by_region(m) &&
        charge(m, &m->restarts, now_ms))
        broken(m, "the restart strategy is asked", "fails though it says yes");
    if (act->flag[2] == PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED && !keeps_parallelism(m) &&
        (most < 0 || m->drain_moves < (uint64_t)most))
        broken(m, "the drain budget bounds moves", "used up after %" PRIu64 " of %" PRId64,
               m->drain_moves, most);
    if (act->flag[2] == PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED && !m->drained_lost &&
        !any_drains_used(m))
        broken(m, "the drain budget pays for drains", "it is asked, but none drains");
}

static void retry_begins(struct model *m, const struct pliant_action *act, int64_t now_ms)
{
    if (!charge(m, &m->creations, now_ms))
        broken(m, "the retry strategy bounds retries", "retries though it says no");
    check_backoff(m, &m->creations, now_ms, act->change.detail);
}

/* The job ends because no graph could be made. */
static void creation_fails(struct model *m, const struct pliant_action *act, int64_t now_ms)
{
    bool recoverable = act->flag[2] == PLIANT_REASON_NOT_ENOUGH_RESOURCES ||

                       (act->flag[2] == PLIANT_REASON_CREATION_FAILED && m->plan.recoverable);

    if (recoverable && charge(m, &m->creations, now_ms))
        broken(m, "the retry strategy is asked", "fails though it says yes");
}

/* A restart goes on when its tasks are down and the back-off is over [S-RST-1]; a retry when
 * its back-off is over [S-RTY-1]. */
static void wait_ends(struct model *m, int64_t now_ms)
{
    int64_t since_ms = m->entered_at_ms;

    if (m->state == PLIANT_RESTARTING) {
        if (m->n_live > 0)
            broken(m, "a restart waits for its tasks", "%" PRIu32 " live", m->n_live);
        if (m->down_at_ms > since_ms)
            since_ms = m->down_at_ms;
    }
    if (now_ms - since_ms < m->backoff_ms)
        broken(m, "a restart waits for its back-off", "%" PRId64 " of %" PRId64 " ms",
               now_ms - since_ms, m->backoff_ms);
}

static void change_state(struct model *m, const struct pliant_action *act, int64_t now_ms)
{
    enum pliant_state from = (enum pliant_state)act->flag[0], to = (enum pliant_state)act->flag[1];

    if (from != m->state || to >= PLIANT_STATES || !(edges[from] & BIT(to))) {
        broken(m, "every state change is a legal edge", "in %s: %s > %s",
               pliant_state_name(m->state), pliant_state_name(from), pliant_state_name(to));
        return;
    }
    if (keeps_parallelism(m) ? BIT(to) & ADAPTIVE_STATES
                             : from == PLIANT_CREATED && to == PLIANT_EXECUTING)
        broken(m, "a scheduler keeps to its states", "%s > %s", pliant_state_name(from),
               pliant_state_name(to));
    if ((from == PLIANT_RESTARTING && to != PLIANT_CANCELING && to != PLIANT_FINISHED) ||
        (from == PLIANT_RETRYING_EXECUTION_GRAPH_CREATION && to != PLIANT_FINISHED))
        wait_ends(m, now_ms);
    if (to == PLIANT_RESTARTING)
        restart_begins(m, act, now_ms);
    if (to == PLIANT_FAILING)
        job_fails(m, act, now_ms);
    if (to == PLIANT_RETRYING_EXECUTION_GRAPH_CREATION)
        retry_begins(m, act, now_ms);
    if (to == PLIANT_CREATING_EXECUTION_GRAPH && now_ms < m->hold_until_ms &&
        act->flag[2] != PLIANT_REASON_RESOURCE_TIMEOUT)
        broken(m, "a launch waits for its back-off", "%" PRId64 " ms too early",
               m->hold_until_ms - now_ms);
    if (of_group(m) && from == PLIANT_CREATING_EXECUTION_GRAPH)
        m->hold_until_ms =
            to == PLIANT_WAITING_FOR_RESOURCES ? instant_after(now_ms, act->change.detail) : 0;
    if (from == PLIANT_CREATING_EXECUTION_GRAPH && to != PLIANT_EXECUTING && m->n_live > 0 &&
        act->flag[2] != PLIANT_REASON_SUSPEND_REQUESTED)
        broken(m, "a launch that is given up stops all workers first", "%" PRIu32 " live",
               m->n_live);
    if (from == PLIANT_CREATING_EXECUTION_GRAPH && to == PLIANT_FINISHED)
        creation_fails(m, act, now_ms);
    if (to != PLIANT_EXECUTING && to != PLIANT_STOP_WITH_SAVEPOINT)
        m->checkpoints.n = 0; /* those that are under way die with the run */
    if (from == PLIANT_CREATING_EXECUTION_GRAPH)
        m->plan.pending = m->drained_lost = false;
    if (to != PLIANT_STOP_WITH_SAVEPOINT)
        m->stopped = false;
    m->state = to;
    m->entered_at_ms = now_ms;
    m->run_begins = from == PLIANT_CREATING_EXECUTION_GRAPH && to == PLIANT_EXECUTING;
}

static void change_status(struct model *m, const struct pliant_action *act)
{
    enum pliant_job_status from = (enum pliant_job_status)act->status.from,
                           to = (enum pliant_job_status)act->status.to;

    if (from != m->status || from == to)
        broken(m, "each change of status is told once", "in %s: %s > %s",
               pliant_job_status_name(m->status), pliant_job_status_name(from),
               pliant_job_status_name(to));
    m->status = to;
}

/* ---- the other actions ------------------------------------------------------------------- */

static void reserve(struct model *m, const struct pliant_action *act,
                    const struct pliant_sched *sched)
{
    m->plan.pending = true;
    m->plan.serial = act->reserve.plan;
    m->plan.restore = act->reserve.restore;
    m->plan.slots.n = 0;
    m->plan.step = m->steps;
    memcpy(m->min_planned, m->min, m->n_vertices * sizeof *m->min);
    memcpy(m->max_planned, m->max, m->n_vertices * sizeof *m->max);
    for (uint32_t i = 0; i < act->reserve.n; i++) {
        struct model_slot *slot = slot_of(m, act->reserve.slots[i], sched);
        uint32_t *id = vec_push(NULL, &m->plan.slots);

        if (!id) {
            no_memory(m);
            return;
        }
        *id = act->reserve.slots[i].v;
        for (uint32_t k = 0; k < i; k++)
            if (m->plan.slots.v[k] == *id)
                broken(m, "a plan names a slot once", "slot %" PRIu32, *id);
        if (!slot)
            continue;
        if (slot->live > 0 || slot->aside)
            broken(m, "a plan names free slots", "slot %" PRIu32 ": %" PRIu32 " live%s", *id,
                   slot->live, slot->aside ? ", given back" : "");
        if (!m->nodes.v[slot->node].up || m->nodes.v[slot->node].draining)
            broken(m, "a plan names slots of nodes that stay", "slot %" PRIu32 " of %s", *id,
                   m->nodes.v[slot->node].name);
    }
}

static bool in_plan(const struct model *m, uint32_t slot)
{
    for (size_t i = 0; i < m->plan.slots.n; i++)
        if (m->plan.slots.v[i] == slot)
            return true;
    return false;
}

static bool completed(const struct model *m, uint64_t id)
{
    for (size_t i = 0; i < m->completed.n; i++)
        if (m->completed.v[i] == id)
            return true;
    return id == 0;
}

/* The row of an attempt that is over, or a new one. */
static struct model_task *task_room(struct model *m, uint32_t vertex)
{
    struct model_tasks *of = &m->tasks[vertex];
    struct model_task *room;

    for (size_t i = 0; i < of->n; i++)
        if (of->v[i].phase == MODEL_OVER)
            return &of->v[i];
    room = vec_push(NULL, of);
    if (!room)
        no_memory(m);
    return room;
}

/* The number of the last attempt, 0: none yet. NULL: no memory. */
static uint32_t *last_attempt(struct model *m, const struct pliant_task *id)
{
    struct model_attempts *of = &m->attempts[id->vertex.v - 1];

    while (of->n <= id->subtask)
        if (!vec_push(NULL, of)) {
            no_memory(m);
            return NULL;
        }
    return &of->v[id->subtask];
}

static uint32_t live_attempts(const struct model *m, uint32_t vertex, uint32_t subtask)
{
    uint32_t n = 0;

    for (size_t i = 0; i < m->tasks[vertex].n; i++)
        n += m->tasks[vertex].v[i].phase != MODEL_OVER && m->tasks[vertex].v[i].subtask == subtask;
    return n;
}

/* Of jobs that read what is finished, without checkpoints; AdaptiveBatch never takes any. */
static bool speculates(const struct model *m)
{
    if (!m->cfg->speculative.enabled || !keeps_parallelism(m) ||
        (m->regions.on && m->cfg->checkpoint_interval_ms != PLIANT_UNSET))
        return false;
    for (size_t e = 0; e < m->job->n_edges; e++)
        if (m->job->edges[e].exchange == PLIANT_PIPELINED)
            return false;
    return true;
}

static bool has_finished(const struct model *m, uint32_t vertex, uint32_t subtask)
{
    return model_batch_finished(&m->batch, vertex, subtask) ||
           model_regions_finished(&m->regions, vertex, subtask);
}

/* Attempts that nobody has told to stop. */
static uint32_t working_attempts(const struct model *m, uint32_t vertex, uint32_t subtask)
{
    uint32_t n = 0;

    for (size_t i = 0; i < m->tasks[vertex].n; i++)
        n += m->tasks[vertex].v[i].subtask == subtask &&
             m->tasks[vertex].v[i].phase != MODEL_OVER &&
             m->tasks[vertex].v[i].phase != MODEL_CANCELING;
    return n;
}

/* May another attempt of the task start, and beside those that live? */
static void check_beside(struct model *m, const struct pliant_task *id)
{
    uint32_t v = id->vertex.v - 1, n = working_attempts(m, v, id->subtask);

    if (!speculates(m) || has_finished(m, v, id->subtask))
        broken(m, "an attempt starts once, after those before it",
               "vertex %" PRIu32 " subtask %" PRIu32 " attempt %" PRIu32 " beside others",
               id->vertex.v, id->subtask, id->attempt);
    if (n >= m->cfg->speculative.max_attempts ||
        (n > 0 && m->job->vertices[v].no_concurrent_attempts))
        broken(m, "no more attempts of a task at a time than may be",
               "vertex %" PRIu32 " subtask %" PRIu32 ": %" PRIu32 " and one more", id->vertex.v,
               id->subtask, n);
}

static void occupy(struct model *m, struct model_slot *slot, uint32_t id, uint32_t group,
                   uint32_t subtask, int64_t now_ms)
{
    const struct model_node *node = &m->nodes.v[slot->node];

    if (!node->up || node->draining)
        broken(m, "nothing starts on a node that drains or is gone", "slot %" PRIu32 " of %s", id,
               node->name);
    if (slot->aside || !(in_plan(m, id) || region_starts(m)))
        broken(m, "tasks start in slots that were reserved", "slot %" PRIu32, id);
    if (slot->live > 0 && (slot->group != group || slot->subtask != subtask))
        broken(m, "a slot serves one unit at a time", "slot %" PRIu32, id);
    if (slot->live == 0 && now_ms < node->blocked_until_ms)
        broken(m, "nothing new starts on a node that is blocked", "slot %" PRIu32 " of %s", id,
               node->name);
    slot->live++;
    slot->group = group;
    slot->subtask = subtask;
}

/* The workers of a group start together, when none of those before them lives. */
static void check_launch(struct model *m, const struct pliant_task *id)
{
    if (m->state != PLIANT_CREATING_EXECUTION_GRAPH)
        broken(m, "the workers of a group start in CreatingExecutionGraph", "in %s",
               pliant_state_name(m->state));
    for (size_t i = 0; i < m->tasks[0].n; i++)
        if (m->tasks[0].v[i].phase != MODEL_OVER && m->tasks[0].v[i].attempt != id->attempt)
            broken(m, "the workers of a group are of one attempt",
                   "%" PRIu32 " starts while %" PRIu32 " lives", id->attempt,
                   m->tasks[0].v[i].attempt);
}

/* What the part that knows regions says. */
static void judge(struct model *m, const char *rule, const struct pliant_task *task)
{
    if (rule)
        broken(m, rule, "vertex %" PRIu32 " subtask %" PRIu32 " attempt %" PRIu32, task->vertex.v,
               task->subtask, task->attempt);
}

static void deploy(struct model *m, const struct pliant_action *act, int64_t now_ms,
                   const struct pliant_sched *sched)
{
    const struct pliant_task *id = &act->deploy.task;
    struct model_slot *slot = slot_of(m, act->deploy.slot, sched);
    struct model_task *task = task_room(m, id->vertex.v - 1);
    uint32_t *last = last_attempt(m, id);
    bool beside;

    if (!slot)
        broken(m, "tasks start in slots that were reserved", "slot %" PRIu32 " is on no node",
               act->deploy.slot.v);
    if (!slot || !task || !last)
        return;
    if (of_group(m))
        check_launch(m, id);
    else if (m->state != PLIANT_EXECUTING)
        broken(m, "tasks start in Executing", "in %s", pliant_state_name(m->state));
    beside = live_attempts(m, id->vertex.v - 1, id->subtask) > 0;
    if (beside)
        check_beside(m, id);
    if (id->attempt <= *last)
        broken(m, "an attempt starts once, after those before it",
               "vertex %" PRIu32 " subtask %" PRIu32 " attempt %" PRIu32 " after %" PRIu32,
               id->vertex.v, id->subtask, id->attempt, *last);
    if (!completed(m, act->deploy.restore) ||
        (!of_group(m) && !region_starts(m) && act->deploy.restore != m->plan.restore))
        broken(m, "tasks start from a completed checkpoint", "%" PRIu64, act->deploy.restore);
    judge(m, beside ? model_regions_beside(&m->regions, id) : model_regions_start(&m->regions, id),
          id);
    judge(m, beside ? model_batch_beside(&m->batch, id) : model_batch_start(&m->batch, id, sched),
          id);
    occupy(m, slot, act->deploy.slot.v, m->group_of[id->vertex.v - 1], id->subtask, now_ms);
    *last = id->attempt;
    *task = (struct model_task){.vertex = id->vertex.v - 1,
                                .subtask = id->subtask,
                                .attempt = id->attempt,
                                .phase = MODEL_STARTING,
                                .node = slot->node,
                                .slot = act->deploy.slot.v};
    m->n_live++;
    m->deployed[id->vertex.v - 1] += !region_starts(m);
}

/* Attempts that lost against one that has finished do not matter any more. */
static bool needs_input(const void *ctx, uint32_t vertex, uint32_t subtask)
{
    return live_attempts(ctx, vertex, subtask) > 0 && !has_finished(ctx, vertex, subtask);
}

static void release_result(struct model *m, const struct pliant_action *act)
{
    if (!keeps_parallelism(m))
        broken(m, "only who starts region by region releases results", "see the actions");
    judge(m, model_regions_release(&m->regions, act, needs_input, m), &act->result.producer);
    judge(m, model_batch_release(&m->batch, act), &act->result.producer);
}

static void decided(struct model *m, const struct pliant_action *act,
                    const struct pliant_sched *sched)
{
    const char *rule = model_batch_decided(&m->batch, act, sched);

    if (rule)
        broken(m, rule, "vertex %" PRIu32 ": %" PRIu32 " tasks for %" PRIu64 " bytes",
               act->decided.vertex.v, act->decided.parallelism, act->decided.bytes);
}

static void cancel(struct model *m, const struct pliant_task *id, int64_t now_ms)
{
    struct model_task *task = model_task(m, id);

    if (!task || task->phase == MODEL_CANCELING) {
        broken(m, "an attempt that lives is canceled once",
               "vertex %" PRIu32 " subtask %" PRIu32 " attempt %" PRIu32, id->vertex.v, id->subtask,
               id->attempt);
        return;
    }
    if (m->state == PLIANT_EXECUTING && !has_finished(m, task->vertex, task->subtask)) {
        judge(m, model_regions_cancel(&m->regions, id), id);
        judge(m, model_batch_cancel(&m->batch, id), id);
    }
    task->phase = MODEL_CANCELING;
    task->canceled_at_ms = now_ms;
}

static void trigger(struct model *m, const struct pliant_action *act, int64_t now_ms)
{
    struct model_checkpoint *c = vec_push(NULL, &m->checkpoints);
    bool savepoint = act->flag[1];

    if (!c) {
        no_memory(m);
        return;
    }
    *c = (struct model_checkpoint){.id = act->checkpoint.id,
                                   .savepoint = savepoint,
                                   .stop = act->flag[0] == PLIANT_CHECKPOINT_STOP,
                                   .triggered_at_ms = now_ms};
    if (!savepoint && !model_all_running(m))
        broken(m, "checkpoints are taken while all tasks run", "%" PRIu64, act->checkpoint.id);
    if (m->state != PLIANT_EXECUTING && m->state != PLIANT_STOP_WITH_SAVEPOINT)
        broken(m, "checkpoints are taken while all tasks run", "in %s",
               pliant_state_name(m->state));
    if (!c->id || completed(m, c->id))
        broken(m, "a checkpoint has an id of its own", "%" PRIu64, c->id);
}

/* Why may this free slot be given back? */
static void check_release(struct model *m, struct model_node *node, const struct model_slot *slot,
                          uint32_t id, int64_t now_ms)
{
    bool planned = m->plan.pending && in_plan(m, id);

    if (m->state == PLIANT_FINISHED) {
        node->owed = node->returning = 0; /* all are */
        if (m->status == PLIANT_JOB_SUSPENDED)
            broken(m, "a suspended job keeps its slots", "slot %" PRIu32, id); /* [S-FIN-2] */
    } else if (slot->emptied == m->steps && node->owed > 0) {
        node->owed--;
    } else if (node->returning > 0) { /* a plan that names it does not hold any more */
        node->returning--;
        planned &= m->plan.step == m->steps;
    } else if (now_ms < instant_after(slot->emptied_at_ms < 0 ? 0 : slot->emptied_at_ms,
                                      m->cfg->slot_idle_timeout_ms)) {
        broken(m, "slots that are idle or others shall have are given back", "slot %" PRIu32, id);
    }
    if (planned)
        broken(m, "slots of a plan are kept", "slot %" PRIu32, id);
}

static void release(struct model *m, const struct pliant_action *act, int64_t now_ms,
                    const struct pliant_sched *sched)
{
    for (uint32_t i = 0; i < act->release.n; i++) {
        struct model_slot *slot = slot_of(m, act->release.slots[i], sched);

        if (!slot)
            return;
        if (slot->live > 0 || slot->aside)
            broken(m, "slots that are free are given back once", "slot %" PRIu32,
                   act->release.slots[i].v);
        check_release(m, &m->nodes.v[slot->node], slot, act->release.slots[i].v, now_ms);
        slot->aside = true;
        m->nodes.v[slot->node].aside++;
    }
}

/* Something has happened that may lead to a restart. */
static void cause(struct model *m)
{
    model_regions_cause(&m->regions);
    model_batch_cause(&m->batch);
}

static void give_up(struct model *m, const struct pliant_action *act, int64_t now_ms,
                    const struct pliant_sched *sched)
{
    struct model_node *node = node_named(m, act->node.node, sched);
    bool overdue = false;

    for (uint32_t v = 0; node && v < m->n_vertices; v++)
        for (size_t i = 0; i < m->tasks[v].n; i++) {
            const struct model_task *task = &m->tasks[v].v[i];

            overdue |= task->phase == MODEL_CANCELING && &m->nodes.v[task->node] == node &&
                       now_ms - task->canceled_at_ms >= m->cfg->cancellation_timeout_ms;
        }
    if (!node)
        return;
    if (!node->up || !overdue || m->cfg->cancellation_timeout_ms == 0)
        broken(m, "only nodes that do not confirm are given up", "%s", node->name);
    else
        node_leaves(m, node, now_ms);
    cause(m);
}

/* A slow one; told when it begins, and it may last longer. */
static void block(struct model *m, const struct pliant_action *act, int64_t now_ms,
                  const struct pliant_sched *sched)
{
    struct model_node *node = node_named(m, act->blocked.node, sched);

    if (!node)
        return;
    if (!speculates(m) || !node->up || !works_on(m, node) ||
        act->blocked.until_at_ms != instant_after(now_ms, m->cfg->speculative.block_ms))
        broken(m, "a node is blocked for a time, since it is slow", "%s until %" PRId64, node->name,
               act->blocked.until_at_ms);
    node->blocked_until_ms = act->blocked.until_at_ms;
}

/* Only who has tasks on a node that will go is told. */
static void notify(struct model *m, const struct pliant_action *act,
                   const struct pliant_sched *sched)
{
    const struct model_node *node = node_named(m, act->notify.node, sched);

    if (node && (!node->draining || !works_on(m, node)))
        broken(m, "tasks on nodes that drain are notified", "of %s", node->name);
}

/* Also the next one, when the host has said nothing for too long. */
static void register_checkpoint(struct model *m, const struct pliant_action *act, int64_t now_ms)
{
    bool pending = m->registering && now_ms - m->registered_at_ms < m->cfg->checkpoint_timeout_ms;

    if (!of_group(m) || pending || !act->registered.id || completed(m, act->registered.id))
        broken(m, "one checkpoint is registered at a time, under an id of its own", "%" PRIu64,
               act->registered.id);
    m->registering = act->registered.id;
    m->registered_at_ms = now_ms;
}

static void refuse(struct model *m, const struct pliant_event *ev)
{
    switch ((int)ev->kind) {
    case PLIANT_EV_STOP:
    case PLIANT_EV_SAVEPOINT_REQUESTED:
        if (m->wishes == 0)
            broken(m, "a savepoint is answered once", "refused again");
        else
            m->wishes--;
        return;
    case PLIANT_EV_REQUIREMENTS:
        if (!m->archived && m->cfg->mode != PLIANT_MODE_REACTIVE && !keeps_parallelism(m) &&
            update_bounds(m, ev->requirements.v, ev->requirements.n, false))
            broken(m, "sound requirements are taken", "refused");
        return;
    case PLIANT_EV_START:
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_CANCEL:
        return;
    default:
        broken(m, "only wishes are refused", "%s", pliant_event_name(ev->kind));
    }
}

static void take_action(struct model *m, int64_t now_ms, const struct pliant_event *ev,
                        const struct pliant_action *act, const struct pliant_sched *sched)
{
    if (m->archived && act->kind != PLIANT_ACT_REFUSED)
        broken(m, "after ARCHIVED there is silence", "%s",
               pliant_action_name((enum pliant_action_kind)act->kind));
    switch ((enum pliant_action_kind)act->kind) {
    case PLIANT_ACT_DECLARE:
        m->declared = act->declare.desired;
        return;
    case PLIANT_ACT_RESERVE:
        reserve(m, act, sched);
        return;
    case PLIANT_ACT_RELEASE:
        release(m, act, now_ms, sched);
        return;
    case PLIANT_ACT_RELEASE_RESULT:
        release_result(m, act);
        return;
    case PLIANT_ACT_DEPLOY:
        deploy(m, act, now_ms, sched);
        if (m->late)
            cause(m);
        return;
    case PLIANT_ACT_DECIDED:
        decided(m, act, sched);
        return;
    case PLIANT_ACT_BLOCK_NODE:
        block(m, act, now_ms, sched);
        return;
    case PLIANT_ACT_CANCEL:
        cancel(m, &act->task, now_ms);
        return;
    case PLIANT_ACT_CHECKPOINT:
        trigger(m, act, now_ms);
        return;
    case PLIANT_ACT_REGISTER:
        register_checkpoint(m, act, now_ms);
        return;
    case PLIANT_ACT_REPORT_TAKEN:
        if (!model_task(m, &act->report.task))
            broken(m, "who waits is told that a report is over", "rank %" PRIu32,
                   act->report.task.subtask);
        return;
    case PLIANT_ACT_GIVE_UP_NODE:
        give_up(m, act, now_ms, sched);
        return;
    case PLIANT_ACT_REFUSED:
        refuse(m, ev);
        return;
    case PLIANT_ACT_STATE_CHANGED:
        change_state(m, act, now_ms);
        return;
    case PLIANT_ACT_STATUS_CHANGED:
        change_status(m, act);
        return;
    case PLIANT_ACT_RESCALE_OPENED:
    case PLIANT_ACT_RESCALE_CLOSED:
        if (m->record_open == (act->kind == PLIANT_ACT_RESCALE_OPENED))
            broken(m, "one rescale record is open at most", "%s",
                   pliant_action_name((enum pliant_action_kind)act->kind));
        m->record_open = act->kind == PLIANT_ACT_RESCALE_OPENED;
        return;
    case PLIANT_ACT_RESCALE_JUDGED:
        if ((act->flag[0] == PLIANT_JUDGED_COST && act->judged.gain > act->judged.cost) ||
            (act->flag[0] == PLIANT_JUDGED_CHECKPOINT && act->judged.gain <= act->judged.cost))
            broken(m, "a judgement follows from its numbers", "%s",
                   pliant_judgement_name(act->flag[0]));
        return;
    case PLIANT_ACT_SAVEPOINT_ENDED:
        if (m->wishes-- == 0)
            broken(m, "a savepoint is answered once", "ended, but none was asked for");
        return;
    case PLIANT_ACT_ARCHIVED:
        m->archived = true;
        return;
    case PLIANT_ACT_FAILURE:
        if (act->failure.entry->n == 0)
            broken(m, "an entry of the exception history has failures", "none");
        return;
    case PLIANT_ACT_NOTIFY:
        notify(m, act, sched);
        return;
    case PLIANT_ACTIONS:
        return;
    }
}

/* ---- when all is done -------------------------------------------------------------------- */

/* Deployed in this step: as many subtasks as the bounds of the plan allow. */
static void check_deployed(struct model *m)
{
    bool any = false;

    for (uint32_t v = 0; v < m->n_vertices; v++)
        any |= m->deployed[v] > 0;
    for (uint32_t v = 0; any && v < m->n_vertices; v++)
        if (m->deployed[v] < m->min_planned[v] || m->deployed[v] > m->max_planned[v])
            broken(m, "parallelism is within its bounds",
                   "vertex %" PRIu32 ": %" PRIu32 ", not %" PRIu32 "..%" PRIu32, v + 1,
                   m->deployed[v], m->min_planned[v], m->max_planned[v]);
    memset(m->deployed, 0, m->n_vertices * sizeof *m->deployed);
    m->run_begins = false;
}

static void check_regions(struct model *m, const struct pliant_sched *sched)
{
    const char *rule = model_regions_step_over(&m->regions);

    if (!rule)
        rule = model_batch_step_over(&m->batch, sched);
    if (rule)
        broken(m, rule, "see the actions");
}

/* The first attempt to finish is the result, and the others are told to stop at once. */
static void check_winners(struct model *m)
{
    for (uint32_t v = 0; m->state == PLIANT_EXECUTING && v < m->n_vertices; v++)
        for (size_t i = 0; i < m->tasks[v].n; i++) {
            const struct model_task *task = &m->tasks[v].v[i];

            if (task->phase != MODEL_OVER && task->phase != MODEL_CANCELING &&
                has_finished(m, v, task->subtask))
                broken(m, "the first attempt to finish stops the others",
                       "vertex %" PRIu32 " subtask %" PRIu32 " attempt %" PRIu32, v + 1,
                       task->subtask, task->attempt);
        }
}

/* Does something wait for slots or for a drain, so that time alone may lead to a restart? */
static bool time_may_restart(const struct model *m)
{
    uint32_t to_come = 0;

    for (uint32_t region = 0; m->regions.on && region < m->regions.regions.n; region++)
        to_come += m->regions.live[region] == 0;
    for (size_t i = 0; i < m->nodes.n; i++)
        to_come += m->nodes.v[i].up && (m->nodes.v[i].draining || m->nodes.v[i].owed > 0);
    return to_come > 0 || model_batch_waits(&m->batch) || m->cfg->tolerable_failed_checkpoints >= 0;
}

/* News of tasks that go on restarts nobody. */
static bool may_restart(const struct model *m, const struct pliant_event *ev)
{
    switch ((int)ev->kind) {
    case PLIANT_EV_TASK_INITIALIZING:
    case PLIANT_EV_TASK_RUNNING:
    case PLIANT_EV_TASK_END_OF_DATA:
    case PLIANT_EV_TASK_FINISHED:
    case PLIANT_EV_TASK_CANCELED:
    case PLIANT_EV_SLOTS_GRANTED:
    case PLIANT_EV_TICK:
        return time_may_restart(m);
    default:
        return true;
    }
}

static void check_status(struct model *m)
{
    bool ended = m->status == PLIANT_JOB_FINISHED || m->status == PLIANT_JOB_FAILED ||
                 m->status == PLIANT_JOB_CANCELED || m->status == PLIANT_JOB_SUSPENDED;

    if (m->state == PLIANT_EXECUTING && by_region(m) && m->status == PLIANT_JOB_RESTARTING)
        return; /* of some of its regions [P-REG-2] */
    if (m->state == PLIANT_FINISHED ? !ended || !m->archived : m->status != shown[m->state])
        broken(m, "the status is the state's", "%s in %s", pliant_job_status_name(m->status),
               pliant_state_name(m->state));
    if (m->state == PLIANT_FINISHED && m->wishes > 0)
        broken(m, "a savepoint is answered once", "%" PRIu32 " never", m->wishes);
}

/* Of a batch job: a slot for each task that has yet to end; which of those that have finished are
 * to do it again is the scheduler's affair until they start. Where attempts come on top, and what
 * is free and blocked is made up for: no more than if all tasks had all attempts. */
static void check_declared(struct model *m)
{
    uint32_t least = model_desired(m), most = least, tasks = 0, finished;

    for (uint32_t v = 0; v < m->n_vertices; v++)
        tasks += m->max[v];
    if (m->batch.on) {
        tasks = most = model_batch_tasks(&m->batch, &finished);
        least = most - finished > 0 ? most - finished : 1;
    }
    if (speculates(m))
        most = tasks * (uint32_t)m->cfg->speculative.max_attempts + offered(m);
    if ((m->batch.on || speculates(m)) && m->state != PLIANT_EXECUTING)
        return;
    if (m->started && m->state != PLIANT_FINISHED && (m->declared < least || m->declared > most))
        broken(m, "what is declared is what the job wants",
               "%" PRIu32 ", not %" PRIu32 " to %" PRIu32, m->declared, least, most);
}

/* At the end of a drain the job has left Executing, or has no task there any more [S-DRN-5]. */
static void check_drains(struct model *m, int64_t now_ms)
{
    for (size_t i = 0; m->state == PLIANT_EXECUTING && i < m->nodes.n; i++) {
        const struct model_node *node = &m->nodes.v[i];

        if (keeps_parallelism(m) && !unasked_stays(m, node))
            continue; /* who has to leave was told to stop */
        if (drains_used(m, node) && node->end_at_ms <= now_ms)
            broken(m, "the job is moved before a drain ends", "%s: %" PRId64, node->name,
                   node->end_at_ms);
        if (node->up && node->owed > 0 && node->owed_at_ms <= now_ms)
            broken(m, "the job is moved before others need its slots", "%s: %" PRId64, node->name,
                   node->owed_at_ms);
    }
}

/* Free slots went at once, used ones when they were empty. */
static void check_reclaims(struct model *m)
{
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct model_node *node = &m->nodes.v[i];

        if (node->up && (node->returning > 0 || node->owed > used_slots(m, node)))
            broken(m, "free slots that others shall have are given back",
                   "%s: %" PRIu32 " free, %" PRIu32 " used of %" PRIu32, node->name,
                   node->returning, used_slots(m, node), node->owed);
    }
}

/* Slots may be there once slow nodes are not blocked any more; that it lasts longer is not told. */
static bool any_blocked(const struct pliant_sched *sched)
{
    struct pliant_counts counts;

    pliant_counts(sched, &counts);
    return counts.blocked_nodes > 0;
}

/* Can anything move the job? */
static void check_progress(struct model *m, const struct pliant_sched *sched)
{
    struct pliant_next next;
    bool timer, stuck = false;

    pliant_next(sched, &next); /* other than the next deadline, it knows nothing of idle slots */
    timer = next.at_ms != PLIANT_NEVER;
    switch (m->state) {
    case PLIANT_WAITING_FOR_RESOURCES:
        stuck = !timer && (offered(m) >= sum_of_groups(m, m->min) || m->cfg->resource_wait_ms >= 0);
        break;
    case PLIANT_CREATING_EXECUTION_GRAPH:
        stuck = !timer && !m->plan.pending && m->n_live == 0;
        break;
    case PLIANT_RETRYING_EXECUTION_GRAPH_CREATION:
        stuck = !timer;
        break;
    case PLIANT_RESTARTING:
    case PLIANT_FAILING:
    case PLIANT_CANCELING:
        stuck = !timer && m->n_live == 0;
        break;
    case PLIANT_EXECUTING:
        stuck = m->n_live == 0 && !(by_region(m) && (timer || any_blocked(sched)));
        break;
    case PLIANT_STOP_WITH_SAVEPOINT:
        stuck = m->n_live == 0 && m->checkpoints.n == 0;
        break;
    case PLIANT_CREATED:
    case PLIANT_FINISHED:
    case PLIANT_STATES:
        break;
    }
    if (stuck)
        broken(m, "something can always move the job", "in %s", pliant_state_name(m->state));
}

static void check_budget(struct model *m, const char *name, uint64_t before, uint64_t now,
                         int64_t limit)
{
    bool goes_on = m->state != PLIANT_FAILING && m->state != PLIANT_CREATING_EXECUTION_GRAPH &&
                   m->state != PLIANT_CANCELING && m->state != PLIANT_FINISHED;

    if (now < before || now > before + 1)
        broken(m, "a batch charges one budget by one", "%s: %" PRIu64 " after %" PRIu64, name, now,
               before);
    if (goes_on && limit >= 0 && now > (uint64_t)limit)
        broken(m, "no budget is exceeded", "%s: %" PRIu64 " of %" PRId64, name, now, limit);
}

/* A batch of deaths charges one budget; launches that fail charge theirs before they are over. */
static void check_group(struct model *m, const struct pliant_sched *sched)
{
    const struct pliant_counts *b = &m->before;
    struct pliant_counts now;
    uint64_t workers, launches;

    if (!of_group(m))
        return;
    pliant_counts(sched, &now);
    check_budget(m, "max-failures", b->failures_charged, now.failures_charged,
                 m->cfg->group.max_failures);
    check_budget(m, "max-preemption-failures", b->preemptions_charged, now.preemptions_charged,
                 m->cfg->group.max_preemption_failures);
    check_budget(m, "controller-failure-limit", b->launch_failures, now.launch_failures,
                 m->cfg->group.controller_failure_limit);
    workers = now.failures_charged - b->failures_charged + now.preemptions_charged -
              b->preemptions_charged;
    launches = now.launch_failures - b->launch_failures;
    if (!m->reset_limit_reached && (workers > m->batches || m->batches > workers + launches))
        broken(m, "a batch charges one budget by one",
               "%" PRIu32 " batches, %" PRIu64 " and %" PRIu64 " launches", m->batches, workers,
               launches);
    if (now.group_attempt < b->group_attempt || now.group_attempt > b->group_attempt + 1)
        broken(m, "attempts of a group are counted", "%" PRIu64 " after %" PRIu64,
               now.group_attempt, b->group_attempt);
    m->before = now;
}

static void check_figures(struct model *m, const struct pliant_sched *sched)
{
    struct pliant_counts counts;
    uint32_t up = 0, draining = 0;

    for (size_t i = 0; i < m->nodes.n; i++) {
        up += m->nodes.v[i].up;
        draining += m->nodes.v[i].up && m->nodes.v[i].draining;
    }
    pliant_counts(sched, &counts);
    if (counts.nodes != up || counts.draining_nodes != draining ||
        counts.slots_offered != offered(m) || counts.tasks_live != m->n_live)
        broken(m, "the figures agree",
               "nodes %" PRIu32 " %" PRIu32 ", draining %" PRIu32 " %" PRIu32 ", slots %" PRIu32
               " %" PRIu32 ", live %" PRIu32 " %" PRIu32,
               counts.nodes, up, counts.draining_nodes, draining, counts.slots_offered, offered(m),
               counts.tasks_live, m->n_live);
    if (pliant_state(sched) != m->state || pliant_job_status(sched) != m->status)
        broken(m, "the figures agree", "state %s", pliant_state_name(pliant_state(sched)));
}

static const enum pliant_task_state shown_phase[] = {
    [MODEL_STARTING] = PLIANT_TASK_DEPLOYING,
    [MODEL_INITIALIZING] = PLIANT_TASK_INITIALIZING,
    [MODEL_RUNNING] = PLIANT_TASK_RUNNING,
    [MODEL_CANCELING] = PLIANT_TASK_CANCELING,
};

static bool is_shown(const struct model_task *task, const struct pliant_sched *sched)
{
    struct pliant_task_info info;

    for (uint32_t i = 0;
         pliant_attempt_info(sched, (pliant_vertex_id){task->vertex + 1}, task->subtask, i, &info);
         i++)
        if (info.attempt == task->attempt)
            return info.state == shown_phase[task->phase] && info.slot.v == task->slot;
    return false;
}

static void check_shown(struct model *m, const struct pliant_sched *sched)
{
    for (uint32_t v = 0; v < m->n_vertices; v++)
        for (size_t i = 0; i < m->tasks[v].n; i++) {
            const struct model_task *task = &m->tasks[v].v[i];

            if (task->phase != MODEL_OVER && !is_shown(task, sched))
                broken(m, "attempts that live are shown as they are",
                       "vertex %" PRIu32 " subtask %" PRIu32 " attempt %" PRIu32, v + 1,
                       task->subtask, task->attempt);
        }
}

const char *model_step(struct model *m, int64_t now_ms, const struct pliant_event *ev,
                       const struct pliant_actions *acts, const struct pliant_sched *sched)
{
    m->steps++;
    m->batches = 0;
    if (may_restart(m, ev))
        cause(m);
    if (!m->archived)
        take_event(m, ev, now_ms);
    else if (ev->kind == PLIANT_EV_STOP || ev->kind == PLIANT_EV_SAVEPOINT_REQUESTED)
        m->wishes++;
    for (size_t i = 0; !m->broken && i < acts->n; i++)
        take_action(m, now_ms, ev, &acts->v[i], sched);
    if (m->broken)
        return m->broken;
    check_deployed(m);
    check_regions(m, sched);
    check_winners(m);
    check_status(m);
    check_declared(m);
    if (!m->archived) {
        check_drains(m, now_ms);
        check_reclaims(m);
        check_progress(m, sched);
        check_figures(m, sched);
        check_shown(m, sched);
        check_group(m, sched);
    }
    return m->broken;
}

/* ---- life -------------------------------------------------------------------------------- */

int model_init(struct model *m, const struct pliant_job *job, const struct pliant_config *cfg)
{
    uint32_t n = pliant_job_vertices(job);
    uint32_t *numbers = mem_zero(NULL, 6 * (size_t)n, sizeof *numbers);

    *m = (struct model){.job = job,
                        .cfg = cfg,
                        .n_vertices = n,
                        .min = numbers,
                        .status = PLIANT_JOB_INITIALIZING,
                        .restarts = {.cfg = cfg->restart, .planned_at_ms = PLIANT_NEVER},
                        .creations = {.cfg = cfg->creation_retry, .planned_at_ms = PLIANT_NEVER}};
    m->tasks = mem_zero(NULL, n, sizeof *m->tasks);
    m->attempts = mem_zero(NULL, n, sizeof *m->attempts);
    if (!numbers || !m->tasks || !m->attempts) {
        model_free(m);
        return -ENOMEM;
    }
    m->max = numbers + n;
    m->min_planned = numbers + 2 * n;
    m->max_planned = numbers + 3 * n;
    m->group_of = numbers + 4 * n;
    m->deployed = numbers + 5 * n;
    number_groups(m);
    if ((cfg->scheduler == PLIANT_SCHEDULER_DEFAULT && model_regions_init(&m->regions, job) < 0) ||
        (cfg->scheduler == PLIANT_SCHEDULER_ADAPTIVE_BATCH &&
         model_batch_init(&m->batch, job, cfg) < 0)) {
        model_free(m);
        return -ENOMEM;
    }
    for (uint32_t v = 0; v < n; v++) {
        const struct job_vertex *vertex = &job->vertices[v];

        m->min[v] = vertex->min_parallelism;
        m->max[v] = cfg->mode == PLIANT_MODE_REACTIVE
                        ? vertex->max_parallelism
                        : vertex->parallelism; /* [S-PAR-1, S-PAR-2] */
    }
    if (of_group(m) && cfg->group.min_workers > 0)
        m->min[0] = (uint32_t)cfg->group.min_workers;
    if (of_group(m) && cfg->group.max_workers > 0)
        m->max[0] = (uint32_t)cfg->group.max_workers;
    return 0;
}

void model_free(struct model *m)
{
    for (uint32_t v = 0; m->tasks && v < m->n_vertices; v++)
        vec_free(NULL, &m->tasks[v]);
    for (uint32_t v = 0; m->attempts && v < m->n_vertices; v++)
        vec_free(NULL, &m->attempts[v]);
    mem_free(NULL, m->tasks);
    mem_free(NULL, m->attempts);
    model_regions_free(&m->regions);
    model_batch_free(&m->batch);
    mem_free(NULL, m->min);
    vec_free(NULL, &m->nodes);
    vec_free(NULL, &m->slots);
    vec_free(NULL, &m->plan.slots);
    vec_free(NULL, &m->checkpoints);
    vec_free(NULL, &m->completed);
    vec_free(NULL, &m->restarts.times);
    vec_free(NULL, &m->creations.times);
}

/* chaos.c - see chaos.h */
#include "sim/chaos.h"

#include <errno.h>
#include <string.h>

#include "graph/job.h"
#include "util/deadline.h"

/* Every so many worlds the job is a worker group, in the next one its parallelism is fixed, and in
 * the one after that it follows from data. */
#define GROUPS 5
#define EPOCH_MS INT64_C(1800000000000) /* where a host's clock may stand */
#define ENDS 8 /* what ends the job happens once in so many times that it could */
#define N(array) (sizeof(array) / sizeof *(array))

static const char *const vertex_names[CHAOS_VERTICES] = {"v1", "v2", "v3", "v4", "v5", "v6"};
static const char *const group_names[] = {"g1", "g2", "g3", "g4"};
static const char *const node_names[] = {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};
static const char *const domains[] = {NULL, "d1", "d2"};
static const int64_t notices_ms[] = {0, 1, 2000, 30000, 120000, 600000}; /* before the end */

static uint32_t below(struct chaos *c, uint32_t n)
{
    return (uint32_t)prng_below(&c->prng, n);
}

/* Once in n times. */
static bool one_in(struct chaos *c, uint32_t n)
{
    return below(c, n) == 0;
}

#define PICK(c, array) ((array)[below((c), (uint32_t)N(array))])

/* Do tasks start region by region, finish, and leave results? */
static bool by_region(const struct chaos *c)
{
    return c->fixed || c->batch;
}

/* ---- the world ------------------------------------------------------------------------------- */

static void draw_vertices(struct chaos *c, struct pliant_vertex_spec *v, uint32_t n)
{
    uint32_t groups = 1 + below(c, 4);
    bool roomy = one_in(c, 8); /* key groups as many as by default */

    for (uint32_t i = 0; i < n; i++) {
        int64_t parallelism = 1 + below(c, c->widest);

        v[i] = (struct pliant_vertex_spec){
            .id = vertex_names[i],
            .parallelism = parallelism,
            .min_parallelism = one_in(c, 2) ? 1 : 1 + below(c, (uint32_t)parallelism),
            .max_parallelism = roomy ? 0 : parallelism + below(c, 4),
            .slot_sharing_group = group_names[below(c, groups)]};
        if (c->batch && !one_in(c, 4)) { /* to be decided */
            v[i].parallelism = 0;
            v[i].min_parallelism = one_in(c, 8) ? 1 + below(c, (uint32_t)parallelism) : 0;
            if (one_in(c, 2))
                v[i].max_parallelism = 0;
        }
        v[i].no_concurrent_attempts = c->speculative && one_in(c, 4);
    }
}

static enum pliant_partitioner draw_partitioner(struct chaos *c, enum pliant_pattern pattern)
{
    static const enum pliant_partitioner all_to_all[] = {
        PLIANT_PARTITIONER_DEFAULT,   PLIANT_PARTITIONER_HASH,      PLIANT_PARTITIONER_CUSTOM,
        PLIANT_PARTITIONER_REBALANCE, PLIANT_PARTITIONER_REBALANCE, PLIANT_PARTITIONER_BROADCAST};
    static const enum pliant_partitioner pointwise[] = {
        PLIANT_PARTITIONER_DEFAULT, PLIANT_PARTITIONER_RESCALE, PLIANT_PARTITIONER_FORWARD};

    return pattern == PLIANT_POINTWISE ? PICK(c, pointwise) : PICK(c, all_to_all);
}

/* What only matters where parallelism follows from data. A forward edge to more subtasks than it
 * has producers is refused. */
static void draw_flow(struct chaos *c, const struct pliant_vertex_spec *v,
                      struct pliant_edge_spec *e)
{
    e->exchange = PLIANT_BLOCKING;
    e->partitioner = draw_partitioner(c, e->pattern);
    if (e->partitioner == PLIANT_PARTITIONER_FORWARD && v[e->from].parallelism > 0 &&
        v[e->to].parallelism > v[e->from].parallelism)
        e->partitioner = PLIANT_PARTITIONER_RESCALE;
    e->input = one_in(c, 4) ? 1 : 0;
    e->splittable = one_in(c, 3);
}

static size_t draw_edges(struct chaos *c, const struct pliant_vertex_spec *v, uint32_t n_vertices,
                         struct pliant_edge_spec *e)
{
    size_t n = 0;

    for (uint32_t to = 1; to < n_vertices; to++)
        for (uint32_t from = 0; from < to; from++)
            if (one_in(c, c->batch ? 2 : 3)) {
                e[n] = (struct pliant_edge_spec){
                    .from = from,
                    .to = to,
                    .pattern = one_in(c, 2) ? PLIANT_POINTWISE : PLIANT_ALL_TO_ALL,
                    .exchange = c->speculative || (c->fixed && one_in(c, 2)) ? PLIANT_BLOCKING
                                                                             : PLIANT_PIPELINED};
                if (c->batch)
                    draw_flow(c, v, &e[n]);
                n++;
            }
    return n;
}

static int draw_job(struct chaos *c, struct pliant_error *err)
{
    struct pliant_vertex_spec vertices[CHAOS_VERTICES];
    struct pliant_edge_spec edges[CHAOS_VERTICES * CHAOS_VERTICES];
    struct pliant_job_spec spec = {.name = "chaos", .vertices = vertices, .edges = edges};

    spec.n_vertices = 1 + below(c, CHAOS_VERTICES);
    draw_vertices(c, vertices, (uint32_t)spec.n_vertices);
    spec.n_edges = draw_edges(c, vertices, (uint32_t)spec.n_vertices, edges);
    if (c->group) {
        spec.worker_group = true;
        spec.n_vertices = 1;
        spec.n_edges = 0;
        vertices[0].id = PLIANT_WORKER_VERTEX;
        vertices[0].max_parallelism = 0;
    }
    return pliant_job_new(&spec, NULL, &c->job, err);
}

static struct pliant_restart_config draw_strategy(struct chaos *c)
{
    static const enum pliant_restart_kind kinds[] = {PLIANT_RESTART_NONE,
                                                     PLIANT_RESTART_FIXED_DELAY,
                                                     PLIANT_RESTART_FIXED_DELAY,
                                                     PLIANT_RESTART_FAILURE_RATE,
                                                     PLIANT_RESTART_EXPONENTIAL_DELAY,
                                                     PLIANT_RESTART_EXPONENTIAL_DELAY};
    static const int64_t attempts[] = {0, 1, 3, 20, 1000}, delays_ms[] = {0, 1, 1000, 30000};
    static const int64_t limits[] = {2, 10, INT32_MAX, INT32_MAX}, initial_ms[] = {1, 500, 1000};
    struct pliant_restart_config r = {.kind = PICK(c, kinds)};

    r.fixed.attempts = PICK(c, attempts);
    r.fixed.delay_ms = PICK(c, delays_ms);
    r.rate.max_failures = 1 + below(c, one_in(c, 3) ? 6 : 60);
    r.rate.interval_ms = 1 + (int64_t)below(c, 60000);
    r.rate.delay_ms = PICK(c, delays_ms);
    r.exponential.initial_ms = PICK(c, initial_ms);
    r.exponential.max_ms = r.exponential.initial_ms * (1 + (int64_t)below(c, 60));
    r.exponential.multiplier = one_in(c, 2) ? 1.5 : 2.0;
    r.exponential.reset_ms = r.exponential.max_ms + (int64_t)below(c, 3600000);
    r.exponential.jitter = one_in(c, 2) ? 0.0 : 0.1;
    r.exponential.attempts = PICK(c, limits);
    return r;
}

static void draw_checkpointing(struct chaos *c)
{
    static const int64_t intervals_ms[] = {PLIANT_UNSET, 500, 2000, 10000, 60000};
    static const int64_t pauses_ms[] = {0, 500, 5000}, timeouts_ms[] = {1000, 10000, 600000};
    static const int64_t tolerable[] = {-1, -1, -1, 0, 2};
    struct pliant_config *cfg = &c->cfg;

    cfg->checkpoint_interval_ms = PICK(c, intervals_ms);
    cfg->checkpoint_min_pause_ms = PICK(c, pauses_ms);
    cfg->checkpoint_timeout_ms = PICK(c, timeouts_ms);
    cfg->tolerable_failed_checkpoints = PICK(c, tolerable);
    cfg->checkpoints_after_finish = one_in(c, 2);
    cfg->checkpoint_periodic = !one_in(c, 4);
    cfg->active_checkpoint = one_in(c, 2);
    cfg->max_checkpoint_failures = 1 + below(c, 3);
    cfg->has_savepoint_dir = one_in(c, 2);
}

static void draw_resources(struct chaos *c)
{
    static const int64_t waits_ms[] = {-1, -1, -1, -1, 300000, 10000};
    static const int64_t settles_ms[] = {0, 100, 1000, 10000};
    static const int64_t cooldowns_ms[] = {0, 1000, 5000, 30000};
    static const int64_t delays_ms[] = {PLIANT_UNSET, 0, 1000, 6000, 60000};
    static const enum pliant_spread spreads[] = {PLIANT_SPREAD_NONE, PLIANT_SPREAD_NODES,
                                                 PLIANT_SPREAD_DOMAINS};
    struct pliant_config *cfg = &c->cfg;

    cfg->mode = one_in(c, 4) ? PLIANT_MODE_REACTIVE : PLIANT_MODE_NORMAL;
    cfg->resource_wait_ms = one_in(c, 16) ? (int64_t)below(c, 2) * 1000 : PICK(c, waits_ms);
    cfg->submission_stabilization_ms = PICK(c, settles_ms);
    cfg->rescale_stabilization_ms = one_in(c, 2) ? PLIANT_UNSET : PICK(c, settles_ms);
    cfg->cooldown_ms = PICK(c, cooldowns_ms);
    cfg->executing_stabilization_ms = PICK(c, settles_ms);
    cfg->max_trigger_delay_ms = PICK(c, delays_ms);
    cfg->prefer_minimal_nodes = one_in(c, 2);
    cfg->spread = PICK(c, spreads);
    cfg->local_recovery = one_in(c, 2);
}

static void draw_policy(struct chaos *c)
{
    static const enum pliant_rescale_policy policies[] = {
        PLIANT_POLICY_PARALLELISM_CHANGE, PLIANT_POLICY_WORTH, PLIANT_POLICY_WORTH,
        PLIANT_POLICY_RAY_ELASTIC, PLIANT_POLICY_IMMEDIATE};
    static const int64_t spans_ms[] = {1, 1000, 30000, 600000};
    struct pliant_config *cfg = &c->cfg;

    cfg->rescale_policy = PICK(c, policies);
    cfg->worth.restart_ms = PICK(c, spans_ms);
    cfg->worth.min_restart_ms = PICK(c, spans_ms);
    cfg->worth.checkpoint_ms = PICK(c, spans_ms);
    cfg->worth.between_losses_ms = PICK(c, spans_ms);
    cfg->worth.memory_ms = PICK(c, spans_ms);
    if (one_in(c, 2))
        return;
    cfg->checkpoint_pace = PLIANT_CHECKPOINT_PACE_AUTO;
    cfg->checkpoint_min_interval_ms = PICK(c, spans_ms);
    cfg->checkpoint_max_interval_ms = cfg->checkpoint_min_interval_ms + PICK(c, spans_ms);
}

static const char label_rules[] =
    "exit=1-9, cause=*code* -> type=user; exit=128-255 -> type=killed;"
    "kind=node, node=n1* -> pool=old, type=lost; kind=node -> type=node;"
    "kind=global -> type=global; vertex=v0* -> first=yes";

static void draw_limits(struct chaos *c)
{
    static const int64_t timeouts_ms[] = {0, 1000, 30000, 180000}, leads_ms[] = {0, 1000, 5000};
    static const int64_t moves[] = {-1, -1, -1, -1, 0, 3}, idle_ms[] = {1000, 10000, 50000};
    static const int64_t sizes[] = {0, 1, 16};
    struct pliant_config *cfg = &c->cfg;

    cfg->restart = draw_strategy(c);
    cfg->creation_retry = draw_strategy(c);
    cfg->cancellation_timeout_ms = PICK(c, timeouts_ms);
    cfg->drain_lead_ms = PICK(c, leads_ms);
    if (one_in(c, 3))
        cfg->adaptive_failover = PLIANT_FAILOVER_REGION;
    cfg->drain_max_restarts = PICK(c, moves);
    cfg->slot_idle_timeout_ms = PICK(c, idle_ms);
    cfg->rescale_history_size = PICK(c, sizes);
    cfg->exception_history_size = PICK(c, sizes);
    if (one_in(c, 2))
        pliant_config_set(cfg, "pliant.failure-labels", label_rules, NULL);
}

/* The options narrow what the job says. */
static void draw_workers(struct chaos *c)
{
    const struct job_vertex *workers = &c->job->vertices[0];
    uint32_t least = workers->min_parallelism, most = workers->parallelism;

    if (one_in(c, 2))
        c->cfg.group.max_workers = most = least + below(c, most - least + 1);
    if (one_in(c, 2))
        c->cfg.group.min_workers = 1 + below(c, most);
}

static void draw_group(struct chaos *c)
{
    static const int64_t budgets[] = {-1, -1, 0, 1, 5, 50}, timeouts_ms[] = {500, 5000, 60000};
    static const int64_t windows_ms[] = {0, 1, 2000, 30000};
    struct pliant_config *cfg = &c->cfg;

    if (!c->group)
        return;
    cfg->worker_group = true;
    cfg->group.max_failures = PICK(c, budgets);
    cfg->group.max_preemption_failures = PICK(c, budgets);
    cfg->group.controller_failure_limit = PICK(c, budgets);
    cfg->group.reset_limit = one_in(c, 8) ? (int64_t)below(c, 20) : -1;
    cfg->group.start_timeout_ms = PICK(c, timeouts_ms);
    cfg->group.collateral_window_ms = PICK(c, windows_ms);
    cfg->group.port_retry_window_ms = PICK(c, windows_ms);
    draw_workers(c);
}

/* Volumes are about what tasks write, so that decisions differ. */
static void draw_batch(struct chaos *c)
{
    static const int64_t volumes[] = {1, 100, 1000, 20000, 1 << 24};
    struct pliant_config *cfg = &c->cfg;

    if (!c->batch)
        return;
    cfg->batch.auto_parallelism = !one_in(c, 16);
    cfg->batch.max = 1 + below(c, 10);
    cfg->batch.min = one_in(c, 2) ? 1 : 1 + below(c, (uint32_t)cfg->batch.max);
    cfg->batch.default_source = one_in(c, 2) ? -1 : 1 + (int64_t)below(c, 6);
    cfg->batch.volume = PICK(c, volumes);
    cfg->batch.skew_factor = one_in(c, 2) ? 4.0 : 1.0;
    cfg->batch.skew_threshold = PICK(c, volumes);
    if (one_in(c, 4))
        return;
    cfg->restart.kind = PLIANT_RESTART_FIXED_DELAY; /* or few would get beyond their sources */
    cfg->restart.fixed.attempts = 1000;
}

static void draw_region_by_region(struct chaos *c)
{
    static const int64_t timeouts_ms[] = {0, 5000, 60000, 300000};
    struct pliant_config *cfg = &c->cfg;

    if (!by_region(c))
        return;
    cfg->scheduler = c->batch ? PLIANT_SCHEDULER_ADAPTIVE_BATCH : PLIANT_SCHEDULER_DEFAULT;
    cfg->mode = PLIANT_MODE_NORMAL;
    cfg->failover_strategy = one_in(c, 6) ? PLIANT_FAILOVER_FULL : PLIANT_FAILOVER_REGION;
    cfg->release_results = !one_in(c, 4);
    cfg->results_outlive_nodes = one_in(c, 4);
    cfg->slot_request_timeout_ms = PICK(c, timeouts_ms);
}

/* Sooner than by default, or it would hardly ever come to it; but not so often that a job which
 * waits for something else takes more steps than the calm has. */
static void draw_speculation(struct chaos *c)
{
    static const int64_t blocks_ms[] = {0, 1, 5000, 60000}, checks_ms[] = {500, 1000, 5000};
    static const int64_t bounds_ms[] = {0, 0, 1000, 60000};
    static const double ratios[] = {0, 0, 0.25, 0.75}, multipliers[] = {0.01, 1.0, 1.5};
    struct pliant_config *cfg = &c->cfg;

    if (!c->speculative)
        return;
    cfg->speculative.enabled = true;
    cfg->checkpoint_pace = PLIANT_CHECKPOINT_PACE_FIXED;
    cfg->checkpoint_interval_ms = PLIANT_UNSET;
    cfg->speculative.max_attempts = 1 + below(c, 4);
    cfg->speculative.block_ms = PICK(c, blocks_ms);
    cfg->slow_tasks.check_interval_ms = PICK(c, checks_ms);
    cfg->slow_tasks.lower_bound_ms = PICK(c, bounds_ms);
    cfg->slow_tasks.ratio = PICK(c, ratios);
    cfg->slow_tasks.multiplier = PICK(c, multipliers);
}

static int draw_config(struct chaos *c, struct pliant_error *err)
{
    pliant_config_init(&c->cfg);
    c->cfg.seed = (int64_t)(prng_next(&c->prng) >> 2);
    draw_resources(c);
    draw_checkpointing(c);
    draw_limits(c);
    draw_policy(c);
    draw_group(c);
    draw_region_by_region(c);
    draw_batch(c);
    draw_speculation(c);
    return pliant_config_resolve(&c->cfg, err);
}

/* ---- events: each answers whether it can happen now -------------------------------------- */

typedef bool draw_fn(struct chaos *c, const struct model *m, struct chaos_event *e);

static bool tick(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    (void)c, (void)m;
    e->ev.kind = PLIANT_EV_TICK;
    return true;
}

static bool start(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    e->ev.kind = PLIANT_EV_START;
    return !m->started || one_in(c, 64);
}

static const struct model_node *some_node(struct chaos *c, const struct model *m)
{
    const struct model_node *node =
        m->nodes.n > 0 ? &m->nodes.v[below(c, (uint32_t)m->nodes.n)] : NULL;

    return node && node->up ? node : NULL;
}

static bool join(struct chaos *c, const char *name, uint32_t slots, struct chaos_event *e)
{
    static const struct pliant_label label = {"kind", "spot"};

    e->ev.kind = PLIANT_EV_NODE_UP;
    e->ev.node_up.name = name;
    e->ev.node_up.incarnation = ++c->incarnations;
    e->ev.node_up.slots = slots;
    e->ev.node_up.zone = PICK(c, domains);
    e->ev.node_up.domain = PICK(c, domains);
    e->ev.node_up.labels = &label;
    e->ev.node_up.n_labels = below(c, 2);
    return true;
}

/* Now and then it comes back before anybody has seen it go. */
static bool node_up(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    const char *name = PICK(c, node_names);
    const struct model_node *node = model_node(m, name);

    return (!node || !node->up || one_in(c, 16)) &&
           join(c, name, one_in(c, 32) ? 0 : 1 + below(c, c->widest), e);
}

/* Most hosts say which life of the node they mean. */
static uint64_t life_meant(struct chaos *c, const struct model_node *node)
{
    return one_in(c, 4) ? 0 : node->incarnation;
}

static bool node_lost(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    const struct model_node *node = some_node(c, m);

    if (!node)
        return false;
    e->ev.kind = PLIANT_EV_NODE_LOST;
    e->ev.node.name = node->name;
    e->ev.node.incarnation = life_meant(c, node);
    return true;
}

/* Of a node, or of slots: told or not, mostly not over yet. */
static int64_t draw_end(struct chaos *c, int64_t now_ms)
{
    if (one_in(c, 4))
        return PLIANT_NEVER;
    return one_in(c, 16) ? now_ms / 2 : instant_after(now_ms, PICK(c, notices_ms));
}

static bool node_drains(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    static const enum pliant_drain_reason reasons[] = {
        PLIANT_DRAIN_PREEMPTION, PLIANT_DRAIN_SCALE_DOWN, PLIANT_DRAIN_UPGRADE, PLIANT_DRAIN_IDLE};
    const struct model_node *node = some_node(c, m);

    if (!node)
        return false;
    e->ev.kind = PLIANT_EV_NODE_DRAINING;
    e->ev.draining.name = node->name;
    e->ev.draining.incarnation = life_meant(c, node);
    e->ev.draining.deadline_at_ms = draw_end(c, e->at_ms);
    e->ev.draining.reason = PICK(c, reasons);
    return true;
}

static bool drain_withdrawn(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    const struct model_node *node = some_node(c, m);

    if (!node || (!node->draining && !one_in(c, 8)))
        return false;
    e->ev.kind = PLIANT_EV_NODE_DRAIN_WITHDRAWN;
    e->ev.node.name = node->name;
    e->ev.node.incarnation = life_meant(c, node);
    if (node->draining && one_in(c, 2)) { /* it joins again */
        e->ev = (struct pliant_event){.kind = PLIANT_EV_NODE_UP};
        e->ev.node_up.name = node->name;
        e->ev.node_up.incarnation = node->incarnation;
        e->ev.node_up.slots = node->slots;
    }
    return true;
}

static bool slots_granted(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    const struct model_node *node = some_node(c, m);

    if (!node || (node->aside == 0 && (node->slots > 8 || !one_in(c, 16))))
        return false;
    e->ev.kind = PLIANT_EV_SLOTS_GRANTED;
    e->ev.granted.name = node->name;
    e->ev.granted.incarnation = life_meant(c, node);
    e->ev.granted.slots = one_in(c, 32) ? 0 : 1 + below(c, node->aside > 0 ? node->aside : 2);
    return true;
}

static bool slots_reclaimed(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    const struct model_node *node = some_node(c, m);

    if (!node)
        return false;
    e->ev.kind = PLIANT_EV_SLOTS_RECLAIMED;
    e->ev.reclaimed.name = node->name;
    e->ev.reclaimed.incarnation = life_meant(c, node);
    e->ev.reclaimed.slots = one_in(c, 16) ? below(c, 100) : 1 + below(c, 4);
    e->ev.reclaimed.deadline_at_ms = draw_end(c, e->at_ms);
    return true;
}

static bool plan_answered(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    uint32_t draw = below(c, 40);

    if (!m->plan.pending)
        return false;
    e->ev.kind = PLIANT_EV_SLOTS_RESERVED;
    e->ev.plan.plan = m->plan.serial;
    if (draw == 0)
        e->ev.kind = PLIANT_EV_SLOTS_REFUSED;
    if (draw == 1) {
        e->ev.kind = PLIANT_EV_CREATION_FAILED;
        e->ev.plan.recoverable = !one_in(c, 32);
        e->ev.plan.cause = "the checkpoint could not be read";
    }
    return true;
}

/* A live task, one of those that something is to come from if there are some. */
static const struct model_task *some_task(struct chaos *c, const struct model *m, bool waiting,
                                          struct pliant_task *ret)
{
    const struct model_task *found = NULL;
    uint32_t n = 0;

    for (uint32_t v = 0; v < m->n_vertices; v++)
        for (uint32_t i = 0; i < m->tasks[v].n; i++) {
            const struct model_task *task = &m->tasks[v].v[i];

            if (task->phase == MODEL_OVER || (waiting && task->phase == MODEL_RUNNING) ||
                !one_in(c, ++n))
                continue;
            found = task;
            *ret = (struct pliant_task){{v + 1}, task->subtask, task->attempt};
        }
    return found;
}

/* It could not read a result, if it reads some. */
static void draw_lost_input(struct chaos *c, struct pliant_event *ev)
{
    for (size_t i = 0; i < pliant_job_edges(c->job); i++) {
        const struct pliant_edge_spec *edge = pliant_job_edge(c->job, i);

        if (edge->to + 1 != ev->failure.task.vertex.v || one_in(c, 2))
            continue;
        ev->failure.input_lost = true;
        ev->failure.edge = (uint32_t)i;
        ev->failure.producer = below(c, c->widest);
    }
}

static bool task_failed(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    struct pliant_task task;

    if (!some_task(c, m, false, &task))
        return false;
    if (by_region(c) && one_in(c, 64)) { /* somebody else has stopped it */
        e->ev.kind = PLIANT_EV_TASK_CANCELED;
        e->ev.task = task;
        return true;
    }
    e->ev.kind = PLIANT_EV_TASK_FAILED;
    e->ev.failure.task = task;
    e->ev.failure.recoverable = !one_in(c, 256);
    e->ev.failure.cause = one_in(c, 4) ? NULL : "exit code 1";
    e->ev.failure.exit_code = (uint8_t)(one_in(c, 4) ? below(c, 256) : below(c, 2));
    if (c->group)
        e->ev.failure.death = (enum pliant_death)below(c, PLIANT_DEATHS);
    if (by_region(c) && one_in(c, 3))
        draw_lost_input(c, &e->ev);
    return true;
}

static void draw_bytes(struct chaos *c, uint64_t *bytes, uint32_t n)
{
    uint32_t most = one_in(c, 4) ? 100000 : one_in(c, 4) ? 1 : 1000;
    uint32_t skewed = one_in(c, 3) ? below(c, n) : n;

    for (uint32_t i = 0; i < n; i++)
        bytes[i] = below(c, most) * (i == skewed ? 100 : 1);
}

/* One of them is not what it should be. */
static void spoil_output(struct chaos *c, struct chaos_event *e, struct pliant_output *o)
{
    switch (below(c, 4)) {
    case 0:
        o->n = below(c, CHAOS_SUBPARTITIONS);
        break;
    case 1:
        o->edge = below(c, 40);
        break;
    case 2:
        e->bytes[o - e->outputs][below(c, o->n)] = PLIANT_BYTES_MAX + 1;
        break;
    default:
        o->edge = e->outputs[0].edge;
    }
}

/* What a task that finishes has written: of some edges it says nothing. */
static void draw_outputs(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    size_t n = 0;

    for (size_t i = 0; c->batch && i < pliant_job_edges(c->job); i++) {
        uint32_t sub = model_batch_subpartitions(&m->batch, i);

        if (pliant_job_edge(c->job, i)->from != e->ev.finished.task.vertex.v - 1 || sub == 0 ||
            one_in(c, 12))
            continue;
        e->outputs[n] = (struct pliant_output){.edge = (uint32_t)i, .n = sub};
        draw_bytes(c, e->bytes[n++], sub);
    }
    if (n > 0 && one_in(c, 16))
        spoil_output(c, e, &e->outputs[n - 1]);
    e->ev.finished.n_outputs = n;
}

static void finishes(struct chaos *c, const struct model *m, const struct pliant_task *id,
                     struct chaos_event *e)
{
    e->ev.kind = PLIANT_EV_TASK_FINISHED;
    e->ev.finished.task = *id;
    draw_outputs(c, m, e);
}

static bool task_answered(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    struct pliant_task id;
    const struct model_task *task = some_task(c, m, true, &id);

    if (!task)
        return false;
    e->ev.task = id;
    if (task->phase == MODEL_CANCELING) {
        if (one_in(c, 24))
            return task_failed(c, m, e);
        e->ev.kind = PLIANT_EV_TASK_CANCELED;
        if (one_in(c, 24))
            finishes(c, m, &id, e);
        return true;
    }
    e->ev.kind = task->phase == MODEL_STARTING && one_in(c, 2) ? PLIANT_EV_TASK_INITIALIZING
                                                               : PLIANT_EV_TASK_RUNNING;
    return true;
}

static bool task_ends(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    struct pliant_task id;
    const struct model_task *task = some_task(c, m, false, &id);

    if (!task || (!m->stopped && !c->bounded))
        return false;
    e->ev.kind = PLIANT_EV_TASK_END_OF_DATA;
    e->ev.task = id;
    if (m->stopped || one_in(c, 2))
        finishes(c, m, &id, e);
    return true;
}

static void draw_sizes(struct chaos *c, struct chaos_event *e)
{
    e->ev.checkpoint.n_sizes = below(c, CHAOS_SIZES + 1);
    for (size_t i = 0; i < e->ev.checkpoint.n_sizes; i++)
        e->sizes[i] =
            (struct pliant_state_size){.vertex = {1 + below(c, pliant_job_vertices(c->job))},
                                       .subtask = below(c, c->widest),
                                       .bytes = prng_next(&c->prng) >> (16 + below(c, 48))};
}

static bool checkpoint_answered(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    const struct model_checkpoint *pending;

    if (m->checkpoints.n == 0)
        return false;
    pending = &m->checkpoints.v[below(c, (uint32_t)m->checkpoints.n)];
    e->ev.checkpoint.id = pending->id;
    e->ev.checkpoint.triggered_at_ms = pending->triggered_at_ms;
    e->ev.checkpoint.counts = !one_in(c, 3);
    if (one_in(c, 6)) {
        e->ev.kind = pending->savepoint ? PLIANT_EV_SAVEPOINT_FAILED : PLIANT_EV_CHECKPOINT_FAILED;
        e->ev.checkpoint.cause = "the disk is full";
        return true;
    }
    e->ev.kind =
        pending->savepoint ? PLIANT_EV_SAVEPOINT_COMPLETED : PLIANT_EV_CHECKPOINT_COMPLETED;
    e->ev.checkpoint.path = pending->savepoint ? "/savepoints/1" : NULL;
    draw_sizes(c, e);
    return true;
}

static bool own_checkpoint(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    if (!model_all_running(m) && !one_in(c, 8))
        return false;
    e->ev.kind = one_in(c, 4) ? PLIANT_EV_CHECKPOINT_FAILED : PLIANT_EV_CHECKPOINT_COMPLETED;
    e->ev.checkpoint.id = (UINT64_C(1) << 40) + below(c, 1u << 30);
    e->ev.checkpoint.own_accord = true;
    e->ev.checkpoint.counts = one_in(c, 2);
    e->ev.checkpoint.triggered_at_ms = e->at_ms - (int64_t)below(c, 1000);
    if (e->ev.checkpoint.triggered_at_ms < 0)
        e->ev.checkpoint.triggered_at_ms = 0;
    if (e->ev.kind == PLIANT_EV_CHECKPOINT_COMPLETED)
        draw_sizes(c, e);
    return true;
}

static bool global_failure(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    /* without a graph it is the end of the job */
    if (m->state != PLIANT_EXECUTING && m->state != PLIANT_STOP_WITH_SAVEPOINT && !one_in(c, 32))
        return false;
    e->ev.kind = PLIANT_EV_GLOBAL_FAILURE;
    e->ev.failure.recoverable = !one_in(c, 64);
    e->ev.failure.cause = "the coordinator failed";
    return true;
}

static const char *vertex_name(const struct model *m, uint32_t index)
{
    return pliant_job_vertex_name(m->job, (pliant_vertex_id){index + 1});
}

static bool requirements(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    uint32_t n = m->n_vertices;

    e->ev.kind = PLIANT_EV_REQUIREMENTS;
    e->ev.requirements.n = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t most = pliant_job_vertex_max_parallelism(m->job, (pliant_vertex_id){i + 1});
        uint32_t max = 1 + below(c, most < 8 ? most : 8);

        e->bounds[i] = (struct pliant_bounds){vertex_name(m, i), 1 + below(c, max), max};
        if (one_in(c, 8))
            e->bounds[i].min = -1;
        if (one_in(c, 8))
            e->bounds[i].max = -1;
        if (one_in(c, 8)) /* as it is */
            e->bounds[i] = (struct pliant_bounds){vertex_name(m, i), m->min[i], m->max[i]};
    }
    if (!one_in(c, 8))
        return true;
    /* and now one that is refused */
    switch (below(c, 4)) {
    case 0:
        e->bounds[0].vertex = "nobody";
        break;
    case 1:
        e->bounds[0].max = 100000;
        break;
    case 2:
        e->ev.requirements.n = n - 1;
        break;
    default:
        e->bounds[n] = e->bounds[0];
        e->ev.requirements.n = n + 1;
    }
    return true;
}

static bool checkpoint_requested(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    (void)c, (void)m;
    e->ev.kind = PLIANT_EV_CHECKPOINT_REQUESTED;
    return true;
}

static bool savepoint_requested(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    (void)m;
    e->ev.kind = PLIANT_EV_SAVEPOINT_REQUESTED;
    e->ev.savepoint.dir = one_in(c, 4) ? NULL : "/savepoints";
    e->ev.savepoint.cancel = one_in(c, 64);
    return true;
}

static bool stop(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    (void)m;
    e->ev.kind = PLIANT_EV_STOP;
    e->ev.savepoint.dir = one_in(c, 4) ? NULL : "/savepoints";
    e->ev.savepoint.drain = one_in(c, 2);
    return one_in(c, ENDS);
}

static bool cancel(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    (void)m;
    e->ev.kind = PLIANT_EV_CANCEL;
    return one_in(c, ENDS);
}

static bool suspend(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    (void)m;
    e->ev.kind = PLIANT_EV_SUSPEND;
    return one_in(c, ENDS);
}

static bool told_again(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    int64_t at_ms = e->at_ms;
    size_t n = c->n_past < CHAOS_REMEMBERED ? c->n_past : CHAOS_REMEMBERED;
    const struct model_node *node;

    if (n == 0)
        return false;
    *e = c->past[below(c, (uint32_t)n)];
    e->at_ms = at_ms;
    if (e->ev.kind != PLIANT_EV_NODE_UP)
        return true;
    node = model_node(m, e->ev.node_up.name);
    return node && node->up; /* a life that is over does not come again: that is a host's promise */
}

/* News of an attempt, a plan or a life that never was, is over, or is still to come. */
static bool wrong_news(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    static const enum pliant_event_kind kinds[] = {
        PLIANT_EV_TASK_INITIALIZING, PLIANT_EV_TASK_RUNNING,  PLIANT_EV_TASK_END_OF_DATA,
        PLIANT_EV_TASK_FINISHED,     PLIANT_EV_TASK_CANCELED, PLIANT_EV_TASK_FAILED};
    struct pliant_task task = {{1 + below(c, m->n_vertices)}, below(c, 10), below(c, 8)};
    const struct model_node *node = some_node(c, m);

    if (model_task(m, &task))
        task.attempt++;
    if (node && one_in(c, 4)) {
        e->ev.kind = one_in(c, 2) ? PLIANT_EV_NODE_LOST : PLIANT_EV_NODE_DRAIN_WITHDRAWN;
        e->ev.node.name = node->name;
        e->ev.node.incarnation = node->incarnation + 1 + below(c, 2) * 1000;
        return true;
    }
    if (one_in(c, 4)) {
        e->ev.kind = PLIANT_EV_SLOTS_RESERVED;
        e->ev.plan.plan = m->plan.serial + 1 + below(c, 2);
        return true;
    }
    e->ev.kind = PICK(c, kinds);
    if (e->ev.kind == PLIANT_EV_TASK_FAILED) {
        e->ev.failure.task = task;
        e->ev.failure.recoverable = true;
    } else {
        e->ev.task = task;
    }
    return true;
}

/* A worker reports; now and then not where the others have their checkpoint, or a call again. */
static bool report(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    struct pliant_task task;

    if (!some_task(c, m, false, &task))
        return false;
    e->ev.kind = PLIANT_EV_REPORT;
    e->ev.report.task = task;
    e->ev.report.call = one_in(c, 16) ? 1 + below(c, 100) : ++c->calls;
    if (c->reports_path)
        e->ev.report.path = one_in(c, 2000) ? "checkpoint_2" : "checkpoint_1";
    if (one_in(c, 32))
        e->ev.report.task.attempt++;
    return true;
}

static bool registration_answered(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    if (!m->registering)
        return false;
    e->ev.kind = one_in(c, 8) ? PLIANT_EV_CHECKPOINT_FAILED : PLIANT_EV_CHECKPOINT_COMPLETED;
    e->ev.checkpoint.id = m->registering;
    e->ev.checkpoint.counts = one_in(c, 2);
    e->ev.checkpoint.triggered_at_ms = e->at_ms;
    return true;
}

/* ---- which of them --------------------------------------------------------------------------- */

/* How often, at most, against the others that are possible. */
static const struct kind {
    draw_fn *draw;
    uint32_t weight;
    bool always; /* or the job would never come far */
    bool again;  /* may be told again */
    bool group;  /* only where the job is a worker group */
} kinds[] = {
    {tick, 60, true, false, false},
    {start, 400, true, false, false},
    {plan_answered, 400, true, true, false},
    {task_answered, 1200, true, true, false},
    {checkpoint_answered, 150, true, true, false},
    {task_ends, 40, true, true, false},
    {node_up, 150, true, true, false},
    {node_lost, 40, false, true, false},
    {node_drains, 40, false, true, false},
    {drain_withdrawn, 20, false, true, false},
    {slots_granted, 60, false, true, false},
    {slots_reclaimed, 30, false, true, false},
    {task_failed, 30, false, true, false},
    {global_failure, 6, false, false, false},
    {own_checkpoint, 40, false, true, false},
    {requirements, 30, false, true, false},
    {checkpoint_requested, 10, false, false, false},
    {savepoint_requested, 10, false, false, false},
    {told_again, 30, false, false, false},
    {wrong_news, 30, false, false, false},
    {stop, 24, false, false, false},
    {cancel, 1, false, false, false},
    {suspend, 1, false, false, false},
    {report, 200, false, true, true},
    {registration_answered, 150, true, true, true},
};
_Static_assert(N(kinds) <= CHAOS_KINDS, "a weight for each");

static void draw_weights(struct chaos *c)
{
    static const uint32_t tenths[] = {0, 1, 3, 10, 10, 20};

    for (size_t i = 0; i < N(kinds); i++) {
        uint32_t scaled;

        if (kinds[i].group && !c->group)
            continue;
        scaled = kinds[i].weight * PICK(c, tenths);

        c->weights[i] = kinds[i].always && scaled == 0 ? kinds[i].weight * 10 : scaled;
        if ((c->batch || c->speculative) &&
            kinds[i].draw == task_ends) /* what comes after them is to be seen */
            c->weights[i] *= 10;
    }
    c->bounded = one_in(c, 6) || (by_region(c) && !one_in(c, 4));
    c->reports_path = c->group && one_in(c, 2);
}

static size_t draw_kind(struct chaos *c)
{
    uint32_t total = 0, draw;
    size_t i = 0;

    for (size_t k = 0; k < N(kinds); k++)
        total += c->weights[k];
    for (draw = below(c, total); draw >= c->weights[i]; i++)
        draw -= c->weights[i];
    return i;
}

/* Mostly none passes; else a little, up to the next deadline, or past it. */
static int64_t draw_instant(struct chaos *c, int64_t now_ms, int64_t deadline_ms)
{
    uint32_t draw = below(c, 20);

    if (draw < 10)
        return now_ms;
    if (draw < 14)
        return now_ms + 1 + (int64_t)below(c, 200);
    if (draw == 14)
        return now_ms + (int64_t)below(c, 60000);
    if (deadline_ms == PLIANT_NEVER || deadline_ms > now_ms + 3600000)
        return now_ms + 1000;
    if (draw == 15)
        return deadline_ms + (int64_t)below(c, 5000);
    return draw == 16 && deadline_ms > now_ms ? deadline_ms - 1 : deadline_ms;
}

void chaos_draw(struct chaos *c, const struct model *m, int64_t now_ms, int64_t deadline_ms,
                struct chaos_event *ret)
{
    int64_t at_ms = draw_instant(c, now_ms, deadline_ms);
    size_t i;

    if (at_ms >= deadline_ms && !one_in(c, 3)) { /* mostly the timers have a step of their own */
        *ret = (struct chaos_event){.at_ms = at_ms, .ev = {.kind = PLIANT_EV_TICK}};
        return;
    }
    do {
        i = draw_kind(c);
        *ret = (struct chaos_event){.at_ms = at_ms};
    } while (!kinds[i].draw(c, m, ret));
    if (kinds[i].again)
        c->past[c->n_past++ % CHAOS_REMEMBERED] = *ret;
}

/* ---- calm -------------------------------------------------------------------------------- */

static const struct model_node *draining_node(const struct model *m)
{
    for (size_t i = 0; i < m->nodes.n; i++)
        if (m->nodes.v[i].up && m->nodes.v[i].draining)
            return &m->nodes.v[i];
    return NULL;
}

/* Others shall have slots that the job uses. */
static bool others_wait(const struct model *m)
{
    for (size_t i = 0; i < m->nodes.n; i++)
        if (m->nodes.v[i].up && m->nodes.v[i].owed > 0)
            return true;
    return false;
}

static bool calm_answer(struct chaos *c, const struct model *m, struct chaos_event *e)
{
    struct pliant_task id;
    const struct model_task *task = some_task(c, m, !m->stopped && !by_region(c), &id);

    if (m->plan.pending) {
        e->ev.kind = PLIANT_EV_SLOTS_RESERVED;
        e->ev.plan.plan = m->plan.serial;
        return true;
    }
    if (task) {
        e->ev.task = id;
        e->ev.kind = PLIANT_EV_TASK_RUNNING;
        if (task->phase == MODEL_CANCELING)
            e->ev.kind = PLIANT_EV_TASK_CANCELED;
        else if (m->stopped || by_region(c))
            finishes(c, m, &id, e);
        return true;
    }
    if (m->registering) {
        e->ev.kind = PLIANT_EV_CHECKPOINT_COMPLETED;
        e->ev.checkpoint.id = m->registering;
        return true;
    }
    if (m->checkpoints.n > 0) {
        const struct model_checkpoint *pending = &m->checkpoints.v[0];

        e->ev.kind =
            pending->savepoint ? PLIANT_EV_SAVEPOINT_COMPLETED : PLIANT_EV_CHECKPOINT_COMPLETED;
        e->ev.checkpoint.id = pending->id;
        e->ev.checkpoint.triggered_at_ms = pending->triggered_at_ms;
        e->ev.checkpoint.path = pending->savepoint ? "/savepoints/last" : NULL;
        return true;
    }
    return false;
}

bool chaos_calm(struct chaos *c, const struct model *m, int64_t now_ms, int64_t deadline_ms,
                struct chaos_event *ret)
{
    const struct model_node *leaving = draining_node(m);

    *ret = (struct chaos_event){.at_ms = now_ms};
    if (m->archived || (!by_region(c) && !leaving && !others_wait(m) &&
                        m->state == PLIANT_EXECUTING && model_all_running(m)))
        return false;
    if (!m->started)
        return start(c, m, ret);
    if (leaving) {
        ret->ev.kind = PLIANT_EV_NODE_LOST;
        ret->ev.node.name = leaving->name;
        return true;
    }
    if (!c->calm) {
        c->calm = true;
        return join(c, "calm", model_desired(m) + 1, ret);
    }
    if (calm_answer(c, m, ret))
        return true;
    ret->at_ms = deadline_ms == PLIANT_NEVER ? now_ms + 1000 : deadline_ms;
    return true;
}

/* ---- life -------------------------------------------------------------------------------- */

int chaos_init(struct chaos *c, uint64_t seed, struct pliant_error *err)
{
    int r;

    *c = (struct chaos){.prng.state = seed,
                        .group = seed % GROUPS == 0,
                        .fixed = seed % GROUPS == 1,
                        .batch = seed % GROUPS == 2};
    c->speculative = by_region(c) && one_in(c, 2);
    c->origin_ms = one_in(c, 2) ? 0 : EPOCH_MS;
    c->widest = c->batch || !one_in(c, 12) ? 6 : 40; /* subpartitions have their bound */
    r = draw_job(c, err);
    if (!r)
        r = draw_config(c, err);
    if (r)
        chaos_free(c);
    else
        draw_weights(c);
    return r;
}

void chaos_free(struct chaos *c)
{
    pliant_job_destroy(&c->job);
}

const struct pliant_event *chaos_event_link(struct chaos_event *e)
{
    if (e->ev.kind == PLIANT_EV_REQUIREMENTS)
        e->ev.requirements.v = e->bounds;
    if (e->ev.kind == PLIANT_EV_CHECKPOINT_COMPLETED || e->ev.kind == PLIANT_EV_SAVEPOINT_COMPLETED)
        e->ev.checkpoint.sizes = e->sizes;
    if (e->ev.kind == PLIANT_EV_TASK_FINISHED) {
        for (size_t i = 0; i < e->ev.finished.n_outputs; i++)
            e->outputs[i].bytes = e->bytes[i];
        e->ev.finished.outputs = e->outputs;
    }
    return &e->ev;
}

/* step.c - bytes as events into a scheduler: no input may break an invariant
 *
 * The first bytes choose a job and options; then each event is a kind and a few small numbers,
 * which keeps most of them meaningful. Ids of attempts, plans and checkpoints are near those that
 * are current, so that both right and stale answers come. */
#include <stdio.h>
#include <stdlib.h>

#include <pliant/pliant.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *at;
    size_t left;
};

static uint8_t next(struct bytes *b)
{
    if (b->left == 0)
        return 0;
    b->left--;
    return *b->at++;
}

static const char *const NODES[] = {"a", "b", "c", "d", "e", "f"};
static const char *const VERTICES[] = {"v1", "v2", "v3", "nobody"};

static void set(struct pliant_config *cfg, const char *key, const char *value)
{
    if (pliant_config_set(cfg, key, value, NULL) < 0)
        abort();
}

static struct pliant_config draw_config(struct bytes *b)
{
    static const char *const STRATEGIES[] = {"none", "fixed-delay", "failure-rate",
                                             "exponential-delay"};
    static const char *const TIMES[] = {"0 ms", "1 ms", "20 ms", "3 s"};
    static const char *const SPREADS[] = {"none", "nodes", "domains"};
    struct pliant_config cfg;
    uint8_t flags = next(b), times = next(b), more = next(b);

    pliant_config_init(&cfg);
    if (flags & 128)
        set(&cfg, "jobmanager.scheduler", more & 32 ? "adaptive-batch" : "default");
    else if (flags & 1)
        set(&cfg, "scheduler-mode", "reactive");
    if (flags & 2)
        set(&cfg, "execution.checkpointing.interval", TIMES[1 + (times & 1)]);
    if (flags & 4)
        set(&cfg, "execution.state-recovery.from-local", "true");
    if (flags & 8)
        set(&cfg, "jobmanager.adaptive-scheduler.rescale-trigger.active-checkpoint.enabled",
            "true");
    if (flags & 16)
        set(&cfg,
            "jobmanager.adaptive-scheduler.retry-execution-graph-creation.restart-strategy.type",
            "fixed-delay");
    if (flags & 32)
        set(&cfg, "execution.checkpointing.tolerable-failed-checkpoints", "1");
    if (flags & 64)
        set(&cfg, "pliant.drain.max-restarts", "1");
    set(&cfg, "restart-strategy.type", STRATEGIES[more & 3]);
    set(&cfg, "pliant.placement.spread", SPREADS[(more >> 2) % 3]);
    set(&cfg, "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling",
        TIMES[times >> 6]);
    set(&cfg, "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout",
        TIMES[times >> 4 & 3]);
    set(&cfg, "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout",
        TIMES[times >> 2 & 3]);
    set(&cfg, "task.cancellation.timeout", TIMES[more >> 6]);
    return cfg;
}

/* Its edges are blocking where region by region starts. */
static struct pliant_job *draw_job(struct bytes *b, enum pliant_scheduler scheduler)
{
    bool blocking =
        scheduler == PLIANT_SCHEDULER_DEFAULT || scheduler == PLIANT_SCHEDULER_ADAPTIVE_BATCH;
    enum pliant_exchange exchange = blocking ? PLIANT_BLOCKING : PLIANT_PIPELINED;
    uint8_t shape = next(b);
    struct pliant_vertex_spec vertices[3];
    struct pliant_edge_spec edges[2] = {
        {.from = 0, .to = 1, .pattern = PLIANT_ALL_TO_ALL, .exchange = exchange},
        {.from = 1, .to = 2, .pattern = PLIANT_POINTWISE, .exchange = exchange}};
    struct pliant_job_spec spec = {
        .vertices = vertices, .n_vertices = 1u + shape % 3, .edges = edges};
    struct pliant_job *job;

    for (size_t v = 0; v < spec.n_vertices; v++) {
        uint8_t bounds = next(b);

        vertices[v] = (struct pliant_vertex_spec){.id = VERTICES[v],
                                                  .parallelism = 1 + (bounds & 7),
                                                  .min_parallelism = 1 + (bounds & 7 & bounds >> 3),
                                                  .max_parallelism = 8,
                                                  .slot_sharing_group = bounds & 64 ? "x" : "y"};
        if (scheduler == PLIANT_SCHEDULER_ADAPTIVE_BATCH && bounds & 128)
            vertices[v].parallelism = 0; /* to be decided */
    }
    spec.n_edges = spec.n_vertices - 1;
    if (spec.n_vertices == 1 && shape & 128 && !blocking) {
        spec.worker_group = true;
        vertices[0].id = PLIANT_WORKER_VERTEX;
        vertices[0].max_parallelism = 0;
    }
    if (pliant_job_new(&spec, NULL, &job, NULL) < 0)
        abort();
    return job;
}

static struct pliant_task draw_task(struct bytes *b, const struct pliant_sched *s)
{
    uint8_t which = next(b);
    struct pliant_task task = {{which % 4u}, which >> 2 & 15, 0};
    struct pliant_task_info info = {0};

    pliant_task_info(s, task.vertex, task.subtask, &info);
    task.attempt = info.attempt - (which >> 7);
    return task;
}

/* What the actions named last, so that answers can be right. */
struct seen {
    uint32_t plan;
    uint64_t checkpoint, savepoint, registered;
};

#define SUBPARTITIONS_MAX 128 /* max-parallelism's default */

/* What a task wrote for the edge that leaves its vertex, about. */
static void draw_output(struct bytes *b, const struct pliant_sched *s, struct pliant_event *ev)
{
    static uint64_t bytes[SUBPARTITIONS_MAX];
    static struct pliant_output output;
    uint8_t x = next(b);

    output = (struct pliant_output){.edge = ev->finished.task.vertex.v - 1, .bytes = bytes};
    output.n = pliant_subpartitions(s, output.edge, ev->finished.task.subtask);
    if (x & 1)
        output.n = x >> 1;
    for (uint32_t i = 0; i < output.n && i < SUBPARTITIONS_MAX; i++)
        bytes[i] = i == 3 ? (uint64_t)x << (x & 63) : x * i;
    ev->finished.outputs = &output;
    ev->finished.n_outputs = output.n <= SUBPARTITIONS_MAX;
}

static void draw_event(struct bytes *b, const struct pliant_sched *s, const struct seen *seen,
                       struct pliant_event *ev, struct pliant_bounds bounds[4])
{
    uint8_t x = next(b);

    switch (ev->kind) {
    case PLIANT_EV_NODE_UP:
        ev->node_up.name = NODES[x % 6];
        ev->node_up.incarnation = 1u + (x >> 3 & 3);
        ev->node_up.slots = x >> 5;
        ev->node_up.domain = x & 1 ? "d1" : NULL;
        return;
    case PLIANT_EV_NODE_DRAINING:
        ev->draining.name = NODES[x % 6];
        ev->draining.deadline_at_ms = x & 128 ? PLIANT_NEVER : (int64_t)(x >> 3) * 100;
        ev->draining.reason = x >> 5 & 3;
        return;
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
    case PLIANT_EV_NODE_LOST:
        ev->node.name = NODES[x % 6];
        ev->node.incarnation = x >> 6;
        return;
    case PLIANT_EV_SLOTS_GRANTED:
        ev->granted.name = NODES[x % 6];
        ev->granted.slots = x >> 6;
        return;
    case PLIANT_EV_SLOTS_RECLAIMED:
        ev->reclaimed.name = NODES[x % 6];
        ev->reclaimed.slots = x >> 6;
        ev->reclaimed.deadline_at_ms = (int64_t)(x >> 3 & 7) * 500;
        return;
    case PLIANT_EV_SLOTS_RESERVED:
    case PLIANT_EV_SLOTS_REFUSED:
    case PLIANT_EV_CREATION_FAILED:
        ev->plan.plan = seen->plan - (x >> 7);
        ev->plan.recoverable = x & 1;
        ev->plan.cause = x & 2 ? "no" : NULL;
        return;
    case PLIANT_EV_TASK_FAILED:
    case PLIANT_EV_GLOBAL_FAILURE:
        ev->failure.task = draw_task(b, s);
        ev->failure.recoverable = x & 7;
        ev->failure.cause = x & 8 ? "it broke" : NULL;
        ev->failure.death = (x >> 4) % PLIANT_DEATHS;
        ev->failure.input_lost = x & 128;
        ev->failure.edge = x & 1;
        ev->failure.producer = x >> 1 & 7;
        return;
    case PLIANT_EV_REPORT:
        ev->report.task = draw_task(b, s);
        ev->report.call = 1u + (x & 7);
        ev->report.path = x & 8 ? x & 128 ? "a" : "b" : NULL;
        return;
    case PLIANT_EV_CHECKPOINT_COMPLETED:
    case PLIANT_EV_CHECKPOINT_FAILED:
    case PLIANT_EV_SAVEPOINT_COMPLETED:
    case PLIANT_EV_SAVEPOINT_FAILED:
        ev->checkpoint.id =
            (ev->kind < PLIANT_EV_SAVEPOINT_COMPLETED ? seen->checkpoint : seen->savepoint) -
            (x >> 7);
        if (x & 8 && seen->registered > 0)
            ev->checkpoint.id = seen->registered;
        ev->checkpoint.own_accord = x & 1;
        ev->checkpoint.counts = x & 2;
        ev->checkpoint.triggered_at_ms = x;
        ev->checkpoint.path = x & 4 ? "sp" : NULL;
        return;
    case PLIANT_EV_REQUIREMENTS:
        for (size_t v = 0; v < 3; v++) {
            uint8_t y = next(b);

            bounds[v] = (struct pliant_bounds){VERTICES[y & 128 ? 3 : v], y & 7, y >> 3 & 15};
        }
        ev->requirements.v = bounds;
        ev->requirements.n = x % 4;
        return;
    case PLIANT_EV_SAVEPOINT_REQUESTED:
    case PLIANT_EV_STOP:
        ev->savepoint.dir = x & 1 ? NULL : "dir";
        ev->savepoint.cancel = x & 2;
        return;
    case PLIANT_EV_TASK_FINISHED:
        ev->task = draw_task(b, s);
        if (x & 1)
            draw_output(b, s, ev);
        return;
    case PLIANT_EV_TASK_INITIALIZING:
    case PLIANT_EV_TASK_RUNNING:
    case PLIANT_EV_TASK_END_OF_DATA:
    case PLIANT_EV_TASK_CANCELED:
        ev->task = draw_task(b, s);
        return;
    case PLIANT_EV_TICK:
    case PLIANT_EV_START:
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_CANCEL:
    case PLIANT_EV_SUSPEND:
    case PLIANT_EVENTS:
        return;
    }
}

static void look(const struct pliant_sched *s, struct seen *seen, const struct pliant_actions *acts)
{
    const char *broken = pliant_check(s);

    if (broken) {
        fprintf(stderr, "%s\n", broken);
        abort();
    }
    for (size_t i = 0; i < acts->n; i++)
        if (acts->v[i].kind == PLIANT_ACT_RESERVE)
            seen->plan = acts->v[i].reserve.plan;
        else if (acts->v[i].kind == PLIANT_ACT_REGISTER)
            seen->registered = acts->v[i].registered.id;
        else if (acts->v[i].kind == PLIANT_ACT_CHECKPOINT)
            *(acts->v[i].flag[1] ? &seen->savepoint : &seen->checkpoint) = acts->v[i].checkpoint.id;
}

/* A tenth of the events are answers to all that is open, so that a job also gets going. */
static enum pliant_event_kind draw_kind(uint8_t x)
{
    return x % (PLIANT_EVENTS + 3) < PLIANT_EVENTS ? x % (PLIANT_EVENTS + 3)
                                                   : PLIANT_EV_TASK_RUNNING;
}

static void restore(const struct pliant_config *cfg, const struct pliant_job *job,
                    struct pliant_sched **s)
{
    struct pliant_sched *restored;
    void *bytes;
    size_t n;

    if (pliant_snapshot(*s, &bytes, &n) < 0 ||
        pliant_restore(cfg, job, bytes, n, &restored, NULL) < 0)
        abort();
    pliant_bytes_free(NULL, bytes);
    pliant_sched_destroy(s);
    *s = restored;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    struct pliant_config cfg = draw_config(&b);
    struct pliant_job *job = draw_job(&b, cfg.scheduler);
    struct pliant_sched *s;
    struct seen seen = {0};
    int64_t now_ms = 0;

    if (pliant_sched_new(&cfg, job, &s, NULL) == 0) {
        while (b.left > 0) {
            uint8_t x = next(&b);
            struct pliant_bounds bounds[4];
            struct pliant_event ev = {.kind = draw_kind(x)};
            struct pliant_actions acts;

            draw_event(&b, s, &seen, &ev, bounds);
            if (x >= 192 && pliant_next_deadline(s) != PLIANT_NEVER)
                now_ms = pliant_next_deadline(s) > now_ms ? pliant_next_deadline(s) : now_ms;
            else if (x >= 128)
                now_ms += x & 7;
            if (pliant_step(s, now_ms, &ev, &acts) < 0)
                continue;
            look(s, &seen, &acts);
            if (x % 32 == 0)
                restore(&cfg, job, &s);
        }
        pliant_sched_destroy(&s);
    }
    pliant_job_destroy(&job);
    return 0;
}

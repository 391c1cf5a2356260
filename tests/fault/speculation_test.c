/* speculation_test.c - random lives of a job with several attempts of a task at a time
 *
 * Nodes come, go and drain, attempts start, finish, fail, or say nothing; the invariants hold after
 * each step, a scheduler from a snapshot goes on as the one that wrote it, and each allocation may
 * fail. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <pliant/pliant.h>

#include "failing_alloc.h"
#include "util/prng.h"

enum { NODES = 6, VERTICES = 3, SUBPARTITIONS = 128 };

struct life {
    struct pliant_config cfg;
    struct pliant_job *job;
    struct pliant_sched *s;
    struct prng prng;
    int64_t now_ms;
    uint64_t actions; /* a running sum of what came out */
    bool batch;       /* jobmanager.scheduler: AdaptiveBatch */
    bool restores;    /* each step is done by one from a snapshot as well */
    uint32_t most;    /* attempts of a task at a time */
    uint64_t won, blocked;
};

static const struct pliant_vertex_spec JOB_VERTICES[VERTICES] = {
    {.id = "a", .parallelism = 4},
    {.id = "b", .parallelism = 5},
    {.id = "c", .parallelism = 3, .slot_sharing_group = "c", .no_concurrent_attempts = true}};
static const struct pliant_edge_spec EDGES[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                                {1, 2, PLIANT_POINTWISE, PLIANT_BLOCKING}};
static const char *const NAMES[NODES] = {"n0", "n1", "n2", "n3", "n4", "n5"};

static const char *const OPTIONS[][2] = {
    {"execution.batch.speculative.enabled", "true"},
    {"execution.batch.speculative.max-concurrent-executions", "3"},
    {"execution.batch.speculative.block-slow-node-duration", "3 s"},
    {"slow-task-detector.check-interval", "500 ms"},
    {"slow-task-detector.execution-time.baseline-lower-bound", "1 s"},
    {"slow-task-detector.execution-time.baseline-ratio", "0.25"},
    {"slow-task-detector.execution-time.baseline-multiplier", "0.5"},
    {"restart-strategy.type", "failure-rate"},
    {"restart-strategy.failure-rate.max-failures-per-interval", "1000"},
    {"restart-strategy.failure-rate.delay", "300 ms"},
    {"task.cancellation.timeout", "4 s"},
    {"slot.request.timeout", "8 s"},
    {"slot.idle.timeout", "5 s"},
    {"web.exception-history-size", "3"},
    {"execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", "1 kb"},
};

static int life_begin(struct life *l, const struct pliant_alloc *alloc, uint64_t seed, bool batch)
{
    struct pliant_vertex_spec vertices[VERTICES];
    struct pliant_job_spec spec = {
        .vertices = vertices, .n_vertices = VERTICES, .edges = EDGES, .n_edges = 2};
    int error;

    *l = (struct life){.prng = {seed}, .batch = batch};
    memcpy(vertices, JOB_VERTICES, sizeof vertices);
    if (batch)
        vertices[1].parallelism = 0; /* it follows from the data */
    pliant_config_init(&l->cfg);
    l->cfg.alloc = alloc;
    for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++)
        cr_assert_eq(pliant_config_set(&l->cfg, OPTIONS[i][0], OPTIONS[i][1], NULL), 0, "%s",
                     OPTIONS[i][0]);
    cr_assert_eq(pliant_config_set(&l->cfg, "jobmanager.scheduler",
                                   batch ? "AdaptiveBatch" : "default", NULL),
                 0);
    error = pliant_job_new(&spec, alloc, &l->job, NULL);
    return error < 0 ? error : pliant_sched_new(&l->cfg, l->job, &l->s, NULL);
}

static void life_end(struct life *l)
{
    pliant_sched_destroy(&l->s);
    pliant_job_destroy(&l->job);
}

static uint64_t sum(const struct pliant_actions *acts)
{
    uint64_t all = 0;

    for (size_t i = 0; i < acts->n; i++) {
        const struct pliant_action *act = &acts->v[i];

        all = all * 31 + act->kind * 7u + act->flag[0] + act->flag[1] * 3u;
        if (act->kind == PLIANT_ACT_DEPLOY)
            all = all * 31 + act->deploy.slot.v + act->deploy.task.attempt;
        if (act->kind == PLIANT_ACT_CANCEL)
            all = all * 31 + act->task.subtask * 7u + act->task.attempt;
    }
    return all;
}

static struct pliant_sched *restored(const struct life *l)
{
    struct pliant_sched *s;
    struct pliant_error err = {.text = ""};
    void *bytes;
    size_t n;

    cr_assert_eq(pliant_snapshot(l->s, &bytes, &n), 0);
    cr_assert_eq(pliant_restore(&l->cfg, l->job, bytes, n, &s, &err), 0, "%s", err.text);
    pliant_bytes_free(l->cfg.alloc, bytes);
    return s;
}

static int step(struct life *l, struct pliant_event ev)
{
    struct pliant_sched *twin = l->restores ? restored(l) : NULL;
    struct pliant_actions acts;
    int error = pliant_step(l->s, l->now_ms, &ev, &acts);
    uint64_t all = sum(&acts);
    const char *broken;

    cr_assert(error == 0 || (error == -ENOMEM && acts.n == 0));
    if (error < 0)
        return error;
    broken = pliant_check(l->s);
    cr_assert_null(broken, "after %s at %lld: %s", pliant_event_name(ev.kind), (long long)l->now_ms,
                   broken);
    l->actions = l->actions * 31 + all;
    for (size_t i = 0; i < acts.n; i++)
        l->blocked += acts.v[i].kind == PLIANT_ACT_BLOCK_NODE;
    if (twin) {
        cr_assert_eq(pliant_step(twin, l->now_ms, &ev, &acts), 0);
        cr_assert_eq(sum(&acts), all, "a snapshot goes on differently after %s",
                     pliant_event_name(ev.kind));
        pliant_sched_destroy(&twin);
    }
    return 0;
}

static enum pliant_event_kind news_of(struct life *l, enum pliant_task_state state)
{
    uint64_t draw = prng_below(&l->prng, 20);

    if (state == PLIANT_TASK_DEPLOYING)
        return draw < 3 ? PLIANT_EV_TASK_INITIALIZING : PLIANT_EV_TASK_RUNNING;
    if (state == PLIANT_TASK_CANCELING && draw < 14)
        return draw < 12 ? PLIANT_EV_TASK_CANCELED : PLIANT_EV_TASK_FINISHED;
    if (draw == 14 || (state == PLIANT_TASK_CANCELING && draw == 15))
        return PLIANT_EV_TASK_FAILED;
    if (state == PLIANT_TASK_INITIALIZING)
        return PLIANT_EV_TASK_RUNNING;
    return state == PLIANT_TASK_RUNNING && draw < 3 ? PLIANT_EV_TASK_FINISHED : PLIANT_EV_TICK;
}

static int attempt_event(struct life *l, struct pliant_task task, enum pliant_task_state state)
{
    struct pliant_event ev = {.kind = news_of(l, state)};
    uint64_t bytes[SUBPARTITIONS] = {0};
    struct pliant_output output = {.edge = task.vertex.v - 1, .bytes = bytes};

    if (ev.kind == PLIANT_EV_TASK_FINISHED && task.vertex.v < VERTICES) {
        output.n = pliant_subpartitions(l->s, output.edge, task.subtask);
        bytes[prng_below(&l->prng, output.n)] = prng_below(&l->prng, 3000);
        ev.finished.outputs = &output;
        ev.finished.n_outputs = 1;
    }
    if (ev.kind != PLIANT_EV_TASK_FAILED) {
        ev.task = task;
        return step(l, ev);
    }
    ev.failure.task = task;
    ev.failure.recoverable = true;
    ev.failure.cause = "it broke";
    ev.failure.input_lost = task.vertex.v > 1 && prng_below(&l->prng, 4) == 0;
    if (ev.failure.input_lost)
        ev.failure.edge = task.vertex.v - 2;
    return step(l, ev);
}

/* News of some of the attempts. */
static int attempts(struct life *l)
{
    for (uint32_t v = 1; v <= VERTICES; v++)
        for (uint32_t i = 0; i < pliant_parallelism(l->s, (pliant_vertex_id){v}); i++) {
            struct pliant_task_info info;

            for (uint32_t k = 0; pliant_attempt_info(l->s, (pliant_vertex_id){v}, i, k, &info);
                 k++) {
                struct pliant_task task = {{v}, i, info.attempt};

                l->most = k + 1 > l->most ? k + 1 : l->most;
                if (prng_below(&l->prng, 3) == 0 && attempt_event(l, task, info.state) < 0)
                    return -ENOMEM;
            }
        }
    return 0;
}

static int node_event(struct life *l)
{
    const char *name = NAMES[prng_below(&l->prng, NODES)];
    int64_t end_ms = l->now_ms + 2000;

    switch (prng_below(&l->prng, 12)) {
    case 0:
        return step(l, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST, .node.name = name});
    case 1:
        return step(l, (struct pliant_event){.kind = PLIANT_EV_NODE_DRAINING,
                                             .draining = {.name = name, .deadline_at_ms = end_ms}});
    case 2:
        return step(l, (struct pliant_event){
                           .kind = PLIANT_EV_SLOTS_RECLAIMED,
                           .reclaimed = {.name = name, .slots = 1, .deadline_at_ms = end_ms}});
    case 3:
        return step(
            l, (struct pliant_event){.kind = PLIANT_EV_NODE_DRAIN_WITHDRAWN, .node.name = name});
    case 4:
        return step(l, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                             .granted = {.name = name, .slots = 1}});
    default:
        return step(
            l, (struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                     .node_up = {.name = name,
                                                 .incarnation = 1 + (uint64_t)l->now_ms / 10000,
                                                 .slots = 1 + (uint32_t)prng_below(&l->prng, 3)}});
    }
}

static int one(struct life *l)
{
    l->now_ms += (int64_t)prng_below(&l->prng, 400);
    switch (prng_below(&l->prng, 16)) {
    case 0:
    case 1:
        return node_event(l);
    case 2:
        return step(l, prng_below(&l->prng, 10) > 0
                           ? (struct pliant_event){.kind = PLIANT_EV_TICK}
                           : (struct pliant_event){
                                 .kind = PLIANT_EV_GLOBAL_FAILURE,
                                 .failure = {.recoverable = true, .cause = "all of it broke"}});
    default:
        return attempts(l);
    }
}

/* 0, or -ENOMEM from the step that had no memory. */
static int live(struct life *l, size_t steps, bool cancels)
{
    struct pliant_counts counts;

    if (step(l, (struct pliant_event){.kind = PLIANT_EV_START}) < 0)
        return -ENOMEM;
    for (; steps > 0 && pliant_state(l->s) != PLIANT_FINISHED; steps--)
        if (one(l) < 0)
            return -ENOMEM;
    pliant_counts(l->s, &counts);
    l->won = counts.effective_speculations;
    if (cancels && step(l, (struct pliant_event){.kind = PLIANT_EV_CANCEL}) < 0)
        return -ENOMEM;
    for (; cancels && pliant_state(l->s) != PLIANT_FINISHED; l->now_ms += 1000)
        if (attempts(l) < 0)
            return -ENOMEM;
    return 0;
}

Test(speculation, keeps_its_promises_in_random_lives, .timeout = 240)
{
    uint32_t most = 0;
    uint64_t won = 0, blocked = 0;

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct life l;

        cr_assert_eq(life_begin(&l, NULL, seed, seed % 4 > 1), 0);
        l.restores = seed % 3 == 0;
        cr_assert_eq(live(&l, 300, seed % 2 == 0), 0);
        most = l.most > most ? l.most : most;
        won += l.won;
        blocked += l.blocked;
        life_end(&l);
    }
    cr_expect_eq(most, 3, "%u", most); /* [P-SPEC-7] */
    cr_expect_gt(won, 20, "%llu", (unsigned long long)won);
    cr_expect_gt(blocked, 100, "%llu", (unsigned long long)blocked);
}

static void fail_each(bool batch)
{
    enum { SEED = 3, STEPS = 120 };
    size_t allocations;
    struct life l;

    {
        FAILING_ALLOC(memory, 0);

        cr_assert_eq(life_begin(&l, &memory.hook, SEED, batch), 0);
        cr_assert_eq(live(&l, STEPS, false), 0);
        cr_assert_gt(l.most, 1);
        life_end(&l);
        cr_assert_eq(memory.live, 0);
        allocations = memory.calls;
    }
    for (size_t k = 1; k <= allocations; k += 1 + k / 400) {
        FAILING_ALLOC(memory, k);
        int error = life_begin(&l, &memory.hook, SEED, batch);

        if (error == 0)
            error = live(&l, STEPS, false);
        cr_assert_eq(error, -ENOMEM, "allocation %zu", k);
        life_end(&l);
        cr_assert_eq(memory.live, 0, "allocation %zu leaks", k);
    }
}

Test(speculation, without_memory_ends_the_scheduler_and_leaks_nothing, .timeout = 240)
{
    fail_each(false);
    fail_each(true);
}

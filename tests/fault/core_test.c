/* core_test.c - no memory, at any moment of a scheduler's life
 *
 * A long scripted life runs once for each allocation it makes, and that one fails. Nothing leaks,
 * and -ENOMEM is final. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <pliant/pliant.h>

#include "failing_alloc.h"
#include "util/prng.h"

enum { STEPS = 400, NODES = 6 };

enum kind { ADAPTIVE, FIXED, BATCH }; /* of scheduler */

struct life {
    enum kind kind;
    struct pliant_config cfg;
    struct pliant_job *job;
    struct pliant_sched *s;
    struct prng prng;
    int64_t now_ms;
    uint64_t actions; /* a running sum of what came out */
    uint32_t plan;
    uint64_t checkpoint;
    uint32_t decided; /* vertices */
};

static const struct pliant_vertex_spec VERTICES[] = {
    {.id = "src", .parallelism = 3, .slot_sharing_group = "a"},
    {.id = "map", .parallelism = 5, .slot_sharing_group = "a"},
    {.id = "sink", .parallelism = 2, .min_parallelism = 2, .slot_sharing_group = "b"}};
static const struct pliant_edge_spec EDGES[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED},
                                                {1, 2, PLIANT_POINTWISE, PLIANT_PIPELINED}};
static const struct pliant_edge_spec FIXED_EDGES[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                                      {1, 2, PLIANT_POINTWISE, PLIANT_PIPELINED}};
/* a: 3 tasks; how many the others have is decided */
static const struct pliant_vertex_spec BATCH_VERTICES[] = {
    {.id = "src", .parallelism = 3}, {.id = "map", .max_parallelism = 4}, {.id = "sink"}};
static const struct pliant_edge_spec BATCH_EDGES[] = {
    {0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING},
    {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING, .splittable = true}};
static const char *const NAMES[NODES] = {"n0", "n1", "n2", "n3", "n4", "n5"};

static const char *const OPTIONS[][2] = {
    {"execution.checkpointing.interval", "3 s"},
    {"execution.state-recovery.from-local", "true"},
    {"pliant.placement.spread", "domains"},
    {"restart-strategy.type", "failure-rate"},
    {"restart-strategy.failure-rate.max-failures-per-interval", "1000"},
    {"restart-strategy.failure-rate.delay", "10 ms"},
    {"jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout", "50 ms"},
    {"jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout", "50 ms"},
    {"jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling", "10 ms"},
    {"jobmanager.adaptive-scheduler.rescale-trigger.max-delay", "20 ms"},
    {"jobmanager.adaptive-scheduler.retry-execution-graph-creation.restart-strategy.type",
     "fixed-delay"},
    {"jobmanager.adaptive-scheduler.retry-execution-graph-creation.restart-strategy.fixed-delay."
     "attempts",
     "1000"},
    {"web.adaptive-scheduler.rescale-history.size", "4"},
    {"web.exception-history-size", "3"},
    {"pliant.failure-labels", "kind=node -> type=lost; kind=task -> type=task, owner=user"},
};

static int life_begin(struct life *l, const struct pliant_alloc *alloc, enum kind kind)
{
    static const struct pliant_edge_spec *const edges[] = {EDGES, FIXED_EDGES, BATCH_EDGES};
    static const char *const schedulers[] = {"adaptive", "default", "adaptive-batch"};
    struct pliant_job_spec spec = {.vertices = kind == BATCH ? BATCH_VERTICES : VERTICES,
                                   .n_vertices = 3,
                                   .edges = edges[kind],
                                   .n_edges = 2};
    int error;

    *l = (struct life){.prng = {7}, .kind = kind};
    pliant_config_init(&l->cfg);
    l->cfg.alloc = alloc;
    for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++)
        cr_assert_eq(pliant_config_set(&l->cfg, OPTIONS[i][0], OPTIONS[i][1], NULL), 0);
    cr_assert_eq(pliant_config_set(&l->cfg, "jobmanager.scheduler", schedulers[kind], NULL), 0);
    error = pliant_job_new(&spec, alloc, &l->job, NULL);
    return error < 0 ? error : pliant_sched_new(&l->cfg, l->job, &l->s, NULL);
}

static void life_end(struct life *l)
{
    pliant_sched_destroy(&l->s);
    pliant_job_destroy(&l->job);
}

static void note(struct life *l, const struct pliant_actions *acts)
{
    for (size_t i = 0; i < acts->n; i++) {
        const struct pliant_action *act = &acts->v[i];

        l->actions = l->actions * 31 + act->kind * 7u + act->flag[0] + act->flag[1] * 3u;
        if (act->kind == PLIANT_ACT_RESERVE)
            l->plan = act->reserve.plan;
        if (act->kind == PLIANT_ACT_CHECKPOINT)
            l->checkpoint = act->checkpoint.id;
        l->decided += act->kind == PLIANT_ACT_DECIDED;
        if (act->kind == PLIANT_ACT_DEPLOY)
            l->actions = l->actions * 31 + act->deploy.slot.v;
    }
}

static int step(struct life *l, struct pliant_event ev)
{
    struct pliant_actions acts;
    int error = pliant_step(l->s, l->now_ms, &ev, &acts);

    cr_assert(error == 0 || (error == -ENOMEM && acts.n == 0));
    if (error == 0)
        cr_assert_null(pliant_check(l->s));
    note(l, &acts);
    return error;
}

/* What it wrote, in parts that differ, for the edge that leaves its vertex. */
static int finish(struct life *l, struct pliant_event ev)
{
    uint32_t edge = ev.task.vertex.v - 1, n = pliant_subpartitions(l->s, edge, ev.task.subtask);
    uint64_t bytes[128] = {0};
    struct pliant_output output = {edge, n, bytes};

    cr_assert(n <= 128);
    for (uint32_t i = 0; i < n; i++)
        bytes[i] = i % 16 == 0 ? 10000000 : 1000 * i;
    ev.kind = PLIANT_EV_TASK_FINISHED;
    ev.finished.outputs = &output;
    ev.finished.n_outputs = l->kind == BATCH && n > 0;
    return step(l, ev);
}

/* All tasks of the graph, in whatever state: those that are told to stop do, the others run. */
static int answer_tasks(struct life *l)
{
    for (uint32_t v = 1; v <= 3; v++)
        for (uint32_t i = 0; i < pliant_parallelism(l->s, (pliant_vertex_id){v}); i++) {
            struct pliant_task_info info = {0};
            struct pliant_event ev = {.kind = PLIANT_EV_TASK_RUNNING};

            pliant_task_info(l->s, (pliant_vertex_id){v}, i, &info);
            ev.task = (struct pliant_task){{v}, i, info.attempt};
            if (info.state == PLIANT_TASK_CANCELING)
                ev.kind = PLIANT_EV_TASK_CANCELED;
            if (l->kind != ADAPTIVE && info.state == PLIANT_TASK_RUNNING &&
                        prng_below(&l->prng, l->kind == BATCH ? 3 : 3) == 0
                    ? finish(l, ev) < 0
                    : step(l, ev) < 0)
                return -ENOMEM;
        }
    return 0;
}

static int node_event(struct life *l, uint64_t draw)
{
    static const struct pliant_label LABELS[] = {{"gpu", "a100"}};
    const char *name = NAMES[draw % NODES];

    switch (draw / NODES % 5) {
    case 0:
        return step(l, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST, .node.name = name});
    case 1:
        return step(l, (struct pliant_event){
                           .kind = PLIANT_EV_NODE_DRAINING,
                           .draining = {.name = name, .deadline_at_ms = l->now_ms + 8000}});
    default:
        return step(l, (struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                             .node_up = {.name = name,
                                                         .incarnation = 1 + (uint64_t)l->now_ms,
                                                         .slots = 1 + draw % 3,
                                                         .domain = draw & 1 ? "d" : NULL,
                                                         .labels = LABELS,
                                                         .n_labels = 1}});
    }
}

static int requirements(struct life *l, uint64_t draw)
{
    struct pliant_bounds bounds[] = {
        {"src", 1, 1 + (int64_t)(draw % 4)}, {"map", 1, 5}, {"sink", 1 + (int64_t)(draw & 1), 2}};

    return step(l,
                (struct pliant_event){.kind = PLIANT_EV_REQUIREMENTS, .requirements = {bounds, 3}});
}

static int one(struct life *l)
{
    uint64_t draw = prng_below(&l->prng, 1u << 20);

    l->now_ms += (int64_t)(draw % 700);
    switch (draw / 700 % 10) {
    case 0:
    case 1:
        return node_event(l, draw);
    case 2:
        return requirements(l, draw);
    case 3: /* without a graph it would be the end */
        return step(
            l, pliant_state(l->s) == PLIANT_EXECUTING && (draw & 3) == 0
                   ? (struct pliant_event){.kind = PLIANT_EV_GLOBAL_FAILURE,
                                           .failure = {.recoverable = true, .cause = "it broke"}}
                   : (struct pliant_event){.kind = PLIANT_EV_TICK});
    case 4:
        return step(l, (struct pliant_event){.kind = draw & 8 ? PLIANT_EV_SLOTS_RESERVED
                                                              : PLIANT_EV_CREATION_FAILED,
                                             .plan = {l->plan, true, "disk full"}});
    case 5:
        return step(l, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                             .checkpoint.id = l->checkpoint});
    case 6:
        return step(l, draw & 8
                           ? (struct pliant_event){.kind = PLIANT_EV_STOP, .savepoint.dir = "d"}
                           : (struct pliant_event){
                                 .kind = PLIANT_EV_SAVEPOINT_FAILED,
                                 .checkpoint = {.own_accord = true, .cause = "disk full"}});
    case 7:
        return step(l,
                    (struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED, .plan.plan = l->plan});
    default:
        return answer_tasks(l);
    }
}

/* 0, or -ENOMEM from the step that had no memory; *steps counts those that went well. */
static int live(struct life *l, size_t *steps)
{
    if (step(l, (struct pliant_event){.kind = PLIANT_EV_START}) < 0)
        return -ENOMEM;
    for (*steps = 0; *steps < STEPS; ++*steps)
        if (one(l) < 0)
            return -ENOMEM;
    return 0;
}

static uint64_t honest_actions(size_t *allocations, enum kind kind)
{
    FAILING_ALLOC(memory, 0);
    struct life l;
    size_t steps;
    uint64_t actions;

    cr_assert_eq(life_begin(&l, &memory.hook, kind), 0);
    cr_assert_eq(live(&l, &steps), 0);
    actions = l.actions;
    cr_assert_eq(l.decided, kind == BATCH ? 3 : 0);
    life_end(&l);
    cr_assert_eq(memory.live, 0);
    *allocations = memory.calls;
    return actions;
}

static void fail_each(enum kind kind)
{
    size_t allocations, tried = 0, steps;

    honest_actions(&allocations, kind);
    cr_assert_gt(allocations, 500);
    /* each of the first ones, then ever fewer: the later ones are made at the same places */
    for (size_t k = 1; k <= allocations; k += 1 + k / 400, tried++) {
        FAILING_ALLOC(memory, k);
        struct life l;
        int error = life_begin(&l, &memory.hook, kind);

        if (error == 0)
            error = live(&l, &steps);
        cr_assert_eq(error, -ENOMEM, "allocation %zu", k);
        if (l.s) {
            struct pliant_actions acts;
            void *bytes;
            size_t n;

            cr_assert_eq(pliant_step(l.s, l.now_ms, &(struct pliant_event){0}, &acts), -ENOMEM);
            cr_assert_eq(acts.n, 0);
            cr_assert_eq(pliant_snapshot(l.s, &bytes, &n), -ENOMEM);
        }
        life_end(&l);
        cr_assert_eq(memory.live, 0, "allocation %zu leaks", k);
    }
    cr_assert_gt(tried, 400);
}

Test(memory, that_fails_once_ends_the_scheduler_and_leaks_nothing, .timeout = 240)
{
    fail_each(ADAPTIVE);
}

Test(memory, that_fails_once_ends_one_of_fixed_parallelism_as_well, .timeout = 240)
{
    fail_each(FIXED);
}

Test(memory, that_fails_once_ends_one_of_batch_jobs_as_well, .timeout = 240)
{
    fail_each(BATCH);
}

Test(memory, has_no_part_in_what_is_decided)
{
    size_t allocations;

    for (enum kind kind = ADAPTIVE; kind <= BATCH; kind++) {
        uint64_t actions = honest_actions(&allocations, kind);

        cr_assert_eq(honest_actions(&allocations, kind), actions);
    }
}

/* group_test.c - no memory, at any moment of a worker group's life
 *
 * A life with launches that fail, deaths, reports and registrations runs once for each allocation
 * that it makes, and that one fails. Nothing leaks, and -ENOMEM is final. */
#include <criterion/criterion.h>
#include <errno.h>

#include <pliant/pliant.h>

#include "failing_alloc.h"
#include "util/prng.h"

enum { STEPS = 300, RANKS = 4 };

struct life {
    struct pliant_config cfg;
    struct pliant_job *job;
    struct pliant_sched *s;
    struct prng prng;
    int64_t now_ms;
    uint32_t plan;
    uint64_t registered, call;
};

static int life_begin(struct life *l, const struct pliant_alloc *alloc)
{
    static const struct pliant_vertex_spec worker = {
        .id = PLIANT_WORKER_VERTEX, .parallelism = RANKS, .min_parallelism = 2};
    static const struct pliant_job_spec spec = {
        .vertices = &worker, .n_vertices = 1, .worker_group = true};
    int error;

    *l = (struct life){.prng = {11}};
    pliant_config_init(&l->cfg);
    l->cfg.alloc = alloc;
    cr_assert_eq(pliant_config_set(&l->cfg, "worker-group.max-failures", "-1", NULL), 0);
    cr_assert_eq(pliant_config_set(&l->cfg, "worker-group.start-timeout", "5 s", NULL), 0);
    cr_assert_eq(pliant_config_set(&l->cfg, "web.exception-history-size", "2", NULL), 0);
    error = pliant_job_new(&spec, alloc, &l->job, NULL);
    return error < 0 ? error : pliant_sched_new(&l->cfg, l->job, &l->s, NULL);
}

static void life_end(struct life *l)
{
    pliant_sched_destroy(&l->s);
    pliant_job_destroy(&l->job);
}

static int step(struct life *l, struct pliant_event ev)
{
    struct pliant_actions acts;
    int error = pliant_step(l->s, l->now_ms, &ev, &acts);

    cr_assert(error == 0 || (error == -ENOMEM && acts.n == 0));
    if (error == 0)
        cr_assert_null(pliant_check(l->s));
    for (size_t i = 0; i < acts.n; i++) {
        if (acts.v[i].kind == PLIANT_ACT_RESERVE)
            l->plan = acts.v[i].reserve.plan;
        if (acts.v[i].kind == PLIANT_ACT_REGISTER)
            l->registered = acts.v[i].registered.id;
    }
    return error;
}

/* For each rank: what is asked of it, or a report. */
static int ranks_act(struct life *l, bool report)
{
    l->call++;
    for (uint32_t i = 0; i < pliant_parallelism(l->s, (pliant_vertex_id){1}); i++) {
        struct pliant_task_info info = {0};
        struct pliant_event ev = {.kind = PLIANT_EV_TASK_RUNNING};

        pliant_task_info(l->s, (pliant_vertex_id){1}, i, &info);
        ev.task = (struct pliant_task){{1}, i, info.attempt};
        if (info.state == PLIANT_TASK_CANCELING) {
            ev.kind = PLIANT_EV_TASK_CANCELED;
        } else if (report) {
            ev = (struct pliant_event){.kind = PLIANT_EV_REPORT};
            ev.report.task = (struct pliant_task){{1}, i, info.attempt};
            ev.report.call = l->call;
            ev.report.path = "a_path_that_is_long_enough_to_be_noticed";
        }
        if (step(l, ev) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int death(struct life *l, uint64_t draw)
{
    uint32_t rank = (uint32_t)(draw % RANKS);
    struct pliant_task_info info = {0};
    struct pliant_event ev = {.kind = PLIANT_EV_TASK_FAILED};

    pliant_task_info(l->s, (pliant_vertex_id){1}, rank, &info);
    ev.failure.task = (struct pliant_task){{1}, rank, info.attempt};
    ev.failure.recoverable = true;
    ev.failure.death = (enum pliant_death)(draw / RANKS % PLIANT_DEATHS);
    ev.failure.cause = "it died";
    return step(l, ev);
}

static int node_event(struct life *l, uint64_t draw)
{
    const char *name = draw & 1 ? "n1" : "n2";

    if (draw % 7 == 0)
        return step(l, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST, .node.name = name});
    if (draw % 7 == 1)
        return step(l, (struct pliant_event){
                           .kind = PLIANT_EV_NODE_DRAINING,
                           .draining = {.name = name, .deadline_at_ms = l->now_ms + 8000}});
    return step(l,
                (struct pliant_event){
                    .kind = PLIANT_EV_NODE_UP,
                    .node_up = {.name = name, .incarnation = 1 + (uint64_t)l->now_ms, .slots = 2}});
}

static int one(struct life *l)
{
    uint64_t draw = prng_below(&l->prng, 1u << 20);

    l->now_ms += (int64_t)(draw % 500);
    switch (draw / 500 % 8) {
    case 0:
        return node_event(l, draw);
    case 1:
        return death(l, draw);
    case 2:
        return step(l, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                             .checkpoint.id = l->registered});
    case 3:
        return ranks_act(l, true);
    case 4:
    case 5:
        return step(l, (struct pliant_event){.kind = draw & 16 ? PLIANT_EV_SLOTS_RESERVED
                                                               : PLIANT_EV_CREATION_FAILED,
                                             .plan = {l->plan, true, "disk full"}});
    default:
        return ranks_act(l, false);
    }
}

/* To a bitter end, so that its error is written too. */
static int live(struct life *l)
{
    int error = step(l, (struct pliant_event){.kind = PLIANT_EV_START});

    for (size_t i = 0; error == 0 && i < STEPS; i++)
        error = one(l);
    if (error == 0)
        error = step(l, (struct pliant_event){.kind = PLIANT_EV_GLOBAL_FAILURE,
                                              .failure = {.cause = "enough"}});
    for (size_t i = 0; error == 0 && i < 2; i++)
        error = ranks_act(l, false);
    return error;
}

Test(group_memory, that_fails_once_ends_the_scheduler_and_leaks_nothing, .timeout = 240)
{
    FAILING_ALLOC(honest, 0);
    struct life l;
    size_t tried = 0;

    cr_assert_eq(life_begin(&l, &honest.hook), 0);
    cr_assert_eq(live(&l), 0);
    cr_assert_eq(pliant_state(l.s), PLIANT_FINISHED);
    cr_assert_gt(pliant_group_attempt(l.s), 3u);
    life_end(&l);
    cr_assert_eq(honest.live, 0);
    cr_assert_gt(honest.calls, 300);
    for (size_t k = 1; k <= honest.calls; k += 1 + k / 400, tried++) {
        FAILING_ALLOC(memory, k);
        int error = life_begin(&l, &memory.hook);

        if (error == 0)
            error = live(&l);
        cr_assert_eq(error, -ENOMEM, "allocation %zu", k);
        life_end(&l);
        cr_assert_eq(memory.live, 0, "allocation %zu leaks", k);
    }
    cr_assert_gt(tried, 300);
}

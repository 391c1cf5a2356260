/* kills_test.c - a job of fixed parallelism survives 1,000 random kills of tasks, restarts what it
 * must and nothing else, and never restarts a task twice for one failure */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "failover/restart_set.h"
#include "graph/job.h"
#include "driver.h"
#include "util/prng.h"

#define KILLS 1000
#define TRIES 6000
#define WIDTH 8

/* Four stages: a:i -> b:i, b:i => c:i, c:i -> d:i, all d => each e. */
static const char JOB[] =
    "{\"name\":\"kills\",\"vertices\":["
    "{\"id\":\"a\",\"parallelism\":8,\"sim\":{\"duration_ms\":[100,900]}},"
    "{\"id\":\"b\",\"parallelism\":8,\"sim\":{\"duration_ms\":[100,900]}},"
    "{\"id\":\"c\",\"parallelism\":8,\"sim\":{\"duration_ms\":[100,900]}},"
    "{\"id\":\"d\",\"parallelism\":8,\"sim\":{\"duration_ms\":[100,900]}},"
    "{\"id\":\"e\",\"parallelism\":2,\"sim\":{\"duration_ms\":20000000}}],"
    "\"edges\":["
    "{\"from\":\"a\",\"to\":\"b\",\"pattern\":\"pointwise\",\"exchange\":\"pipelined\"},"
    "{\"from\":\"b\",\"to\":\"c\",\"pattern\":\"pointwise\",\"exchange\":\"blocking\"},"
    "{\"from\":\"c\",\"to\":\"d\",\"pattern\":\"pointwise\",\"exchange\":\"pipelined\"},"
    "{\"from\":\"d\",\"to\":\"e\",\"pattern\":\"all_to_all\",\"exchange\":\"blocking\"}]}";

enum { VERTICES = 5, TASKS = 4 * WIDTH + 2, EDGES = 4 };

/* Keeps its own books of what has to restart. */
struct watch {
    struct sim_observer observer;
    struct topology topology;
    struct regions regions;
    struct restart_search search;
    uint8_t state[TASKS];        /* before the step */
    uint32_t attempt[TASKS];     /* the last one started */
    bool due[TASKS];             /* has to restart */
    bool released[EDGES][TASKS]; /* by producer */
    uint32_t kills, restarts, cancels;
    enum pliant_job_status status;
};

static bool available(const void *ctx, uint32_t edge, uint32_t producer)
{
    const struct watch *w = ctx;
    uint8_t state = w->state[producer];

    return !w->released[edge][producer] &&
           ((state != PLIANT_TASK_CREATED && state < PLIANT_TASK_CANCELING) ||
            state == PLIANT_TASK_CANCELING || state == PLIANT_TASK_FINISHED);
}

struct with_error {
    const struct watch *w;
    const struct pliant_event *ev;
};

static bool available_but(const void *ctx, uint32_t edge, uint32_t producer)
{
    const struct with_error *e = ctx;
    const struct topology *t = &e->w->topology;

    if (e->ev->failure.input_lost && e->ev->failure.edge == edge &&
        t->first_task[t->job->edges[edge].from] + e->ev->failure.producer == producer)
        return false;
    return available(e->w, edge, producer);
}

static uint32_t task_of(const struct watch *w, const struct pliant_task *task)
{
    return w->topology.first_task[task->vertex.v - 1] + task->subtask;
}

static void killed(struct watch *w, const struct pliant_event *ev)
{
    uint32_t task = task_of(w, &ev->failure.task);
    struct with_error ctx = {w, ev};

    if (ev->failure.task.attempt != w->attempt[task] || w->state[task] >= PLIANT_TASK_CANCELING)
        return;
    w->kills++;
    restart_search(&w->search, task, available_but, &ctx);
    for (uint32_t k = 0; k < w->search.n_found; k++)
        for (uint32_t m = w->regions.first[w->search.found[k]];
             m < w->regions.first[w->search.found[k] + 1]; m++)
            w->due[w->regions.members[m]] |= w->state[w->regions.members[m]] != PLIANT_TASK_CREATED;
}

static void started(struct watch *w, const struct pliant_task *id)
{
    uint32_t task = task_of(w, id);

    cr_assert_eq(id->attempt, w->attempt[task] + 1, "%u:%u starts as attempt %u after %u",
                 id->vertex.v, id->subtask, id->attempt, w->attempt[task]);
    if (id->attempt > 1) {
        w->restarts++;
        cr_assert(w->due[task], "%u:%u did not have to restart", id->vertex.v, id->subtask);
    }
    w->due[task] = false;
    w->attempt[task] = id->attempt;
    for (uint32_t e = 0; e < EDGES; e++)
        w->released[e][task] = false;
}

static void remember(struct watch *w, const struct pliant_sched *sched)
{
    for (uint32_t task = 0; task < TASKS; task++) {
        struct pliant_task_info info = {0};
        uint32_t v = w->topology.vertex_of[task];

        pliant_task_info(sched, (pliant_vertex_id){v + 1}, task - w->topology.first_task[v], &info);
        w->state[task] = (uint8_t)info.state;
    }
    w->status = pliant_job_status(sched);
}

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct watch *w = (struct watch *)o;

    if (step->event->kind == PLIANT_EV_TASK_FAILED)
        killed(w, step->event);
    for (size_t i = 0; i < step->actions->n; i++) {
        const struct pliant_action *act = &step->actions->v[i];

        if (act->kind == PLIANT_ACT_DEPLOY)
            started(w, &act->deploy.task);
        if (act->kind == PLIANT_ACT_RELEASE_RESULT)
            w->released[act->result.edge][task_of(w, &act->result.producer)] = true;
        if (act->kind == PLIANT_ACT_CANCEL)
            cr_assert(w->due[task_of(w, &act->task)], "who need not restart is not stopped");
    }
    cr_assert_null(pliant_check(step->sched));
    remember(w, step->sched);
    return 0;
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    (void)end_ms;
    remember((struct watch *)o, sched);
    return 0;
}

/* Half of the time it is the last stage, which would else run on alone; then it says that it could
 * not read something. */
static struct trace_event kill(struct prng *prng, int64_t t_ms)
{
    struct trace_event ev = {.kind = TRACE_TASK_FAILED,
                             .t_ms = t_ms,
                             .vertex_id = {1 + (uint32_t)prng_below(prng, VERTICES)},
                             .recoverable = true,
                             .cause = "killed"};

    ev.subtask = (uint32_t)prng_below(prng, ev.vertex_id.v == VERTICES ? 2 : WIDTH);
    if (ev.vertex_id.v == VERTICES && prng_below(prng, 2) == 0) {
        ev.input_lost = true;
        ev.edge = 3;
        ev.producer = (uint32_t)prng_below(prng, WIDTH);
    }
    if (ev.vertex_id.v == 3 && prng_below(prng, 4) == 0) {
        ev.input_lost = true;
        ev.edge = 1;
        ev.producer = ev.subtask;
    }
    return ev;
}

static void survive(uint64_t seed, const char *delay)
{
    struct trace_event *events = calloc(TRIES + 1, sizeof *events);
    struct driver d;
    struct watch w = {.observer = {.on_step = on_step, .on_end = on_end}};
    uint32_t parallelism[VERTICES] = {WIDTH, WIDTH, WIDTH, WIDTH, 2};
    struct prng prng = {seed};
    int64_t t_ms = 0;

    driver_read(&d, JOB);
    driver_set(&d, "jobmanager.scheduler", "default");
    driver_restarts_after(&d, delay);
    cr_assert_eq(topology_init(&w.topology, d.job.job, parallelism, false, NULL), 0);
    cr_assert_eq(regions_init(&w.regions, &w.topology, NULL), 0);
    cr_assert_eq(restart_search_init(&w.search, &w.topology, &w.regions, NULL), 0);
    events[0] =
        (struct trace_event){.kind = TRACE_NODE_UP, .node = "n1", .incarnation = 1, .slots = WIDTH};
    for (size_t i = 1; i <= TRIES; i++) {
        t_ms += 50 * (1 + (int64_t)prng_below(&prng, 40)); /* no timer is due then */
        events[i] = kill(&prng, t_ms);
    }
    driver_run(&d, events, TRIES + 1, 40000000, &w.observer);
    cr_expect_geq(w.kills, KILLS);
    cr_expect_gt(w.restarts, w.kills);
    cr_expect_eq(w.status, PLIANT_JOB_FINISHED);
    for (uint32_t task = 0; task < TASKS; task++)
        cr_expect(!w.due[task], "task %u had to restart and did not", task);
    restart_search_free(&w.search);
    regions_free(&w.regions);
    topology_free(&w.topology);
    driver_free(&d);
    free(events);
}

Test(kills, of_1000_tasks_restart_only_what_they_must, .timeout = 240)
{
    survive(1, "0 s"); /* [P-SET-1..3, P-FO-3] */
    survive(2, "307 ms");
}

/* batch_test.c - a batch job of 1,000 tasks and more over a cluster that flaps ends with the right
 * answer, and breaks no invariant on the way */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdlib.h>

#include "driver.h"
#include "util/prng.h"

#define NODES 20
#define EVENTS 4000

static const char JOB[] =
    "name: big\n"
    "vertices:\n"
    "- {id: read, sim: {duration_ms: [1000, 30000], bytes: [1000000, 30000000]}}\n"
    "- {id: look, parallelism: 7, sim: {duration_ms: 500, bytes: 1000}}\n"
    "- {id: join, sim: {duration_ms: [1000, 9000], bytes: 5000000}}\n"
    "- {id: write, sim: {duration_ms: [100, 9000]}}\n"
    "edges:\n"
    "- {from: read, to: join, exchange: blocking, splittable: true}\n"
    "- {from: look, to: join, exchange: blocking, partitioner: broadcast}\n"
    "- {from: join, to: write, exchange: blocking, pattern: pointwise}\n";

struct watch {
    struct sim_observer observer;
    uint32_t tasks;
    uint64_t restarts;
    enum pliant_job_status status;
    const char *broken;
};

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct watch *w = (struct watch *)o;
    struct pliant_counts counts;

    pliant_counts(step->sched, &counts);
    if (counts.tasks > w->tasks)
        w->tasks = counts.tasks;
    w->restarts = counts.restarts;
    if (!w->broken && step->actions->n > 0 && step->at_ms % 16 == 0)
        w->broken = pliant_check(step->sched);
    return 0;
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    (void)end_ms;
    ((struct watch *)o)->status = pliant_job_status(sched);
    return 0;
}

/* Each node comes and goes, at random. */
static void flap(struct trace_event *events, uint64_t seed)
{
    static const char *const names[NODES] = {"n0",  "n1",  "n2",  "n3",  "n4",  "n5",  "n6",
                                             "n7",  "n8",  "n9",  "n10", "n11", "n12", "n13",
                                             "n14", "n15", "n16", "n17", "n18", "n19"};
    struct prng prng = {seed};
    bool up[NODES] = {false};
    int64_t t_ms = 0;

    for (uint64_t i = 0; i < EVENTS; i++) {
        uint64_t n = i < NODES ? i : prng_below(&prng, NODES);

        events[i] = (struct trace_event){.kind = up[n] ? TRACE_NODE_DOWN : TRACE_NODE_UP,
                                         .t_ms = t_ms,
                                         .node = names[n],
                                         .incarnation = i + 1,
                                         .slots = 5};
        up[n] = !up[n];
        t_ms += i < NODES ? 0 : (int64_t)prng_below(&prng, 18000);
    }
}

Test(batch, job_of_1000_tasks_on_a_cluster_that_flaps_comes_to_its_end, .timeout = 240)
{
    struct trace_event *events = calloc(EVENTS, sizeof *events);
    struct driver d;
    struct watch w = {.observer = {.on_step = on_step, .on_end = on_end}};

    driver_read(&d, JOB);
    d.cfg.batch.default_source = 400;
    d.cfg.batch.max = 500;
    d.cfg.batch.volume = 10 << 20;
    driver_restarts_after(&d, "1 s");
    d.cfg.all_blocking = true;
    flap(events, 5);
    driver_run(&d, events, EVENTS, events[EVENTS - 1].t_ms, &w.observer);
    cr_expect(w.broken == NULL, "%s", w.broken);
    cr_expect_eq(w.status, PLIANT_JOB_FINISHED, "%s", pliant_job_status_name(w.status));
    cr_expect_geq(w.tasks, 1000);
    cr_expect_gt(w.restarts, 5, "%llu", (unsigned long long)w.restarts);
    driver_free(&d);
    free(events);
}

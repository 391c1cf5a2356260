/* speculation_test.c - a batch job on a cluster with one slow node: other attempts of the tasks
 * there shorten it */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

/* 8 nodes; what runs on `slow` needs 20 times as long. */
static const char JOB[] =
    "{\"name\":\"uneven\",\"vertices\":["
    "{\"id\":\"map\",\"parallelism\":8,\"sim\":{\"duration_ms\":[9000,11000]}},"
    "{\"id\":\"reduce\",\"parallelism\":8,\"sim\":{\"duration_ms\":[9000,11000]}}],"
    "\"edges\":[{\"from\":\"map\",\"to\":\"reduce\",\"exchange\":\"blocking\"}]}";
static const char *const NODES[] = {"n1", "n2", "n3", "slow", "n5", "n6", "n7", "n8"};

enum { N = 8 };

struct watch {
    struct sim_observer observer;
    int64_t finished_at_ms; /* 0: it has not */
    uint32_t most_live;
    struct pliant_counts counts;
};

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct watch *w = (struct watch *)o;

    cr_assert_null(pliant_check(step->sched));
    pliant_counts(step->sched, &w->counts);
    if (w->counts.tasks_live > w->most_live)
        w->most_live = w->counts.tasks_live;
    if (w->finished_at_ms == 0 && pliant_job_status(step->sched) == PLIANT_JOB_FINISHED)
        w->finished_at_ms = step->at_ms;
    return 0;
}

static struct watch run(const char *scheduler, bool speculative)
{
    static const struct pliant_label label = {TRACE_SLOW_LABEL, "20"};
    struct trace_event events[N];
    struct driver d;
    struct watch w = {.observer = {.on_step = on_step, .on_end = driver_no_end}};

    driver_read(&d, JOB);
    driver_set(&d, "jobmanager.scheduler", scheduler);
    driver_set(&d, "execution.batch.speculative.enabled", speculative ? "true" : "false");
    driver_set(&d, "slow-task-detector.execution-time.baseline-lower-bound", "5 s");
    for (uint32_t i = 0; i < N; i++)
        events[i] = (struct trace_event){.kind = TRACE_NODE_UP,
                                         .node = NODES[i],
                                         .incarnation = i + 1,
                                         .slots = 1,
                                         .labels = &label,
                                         .n_labels = strcmp(NODES[i], "slow") == 0};
    driver_run(&d, events, N, 3600000, &w.observer);
    cr_assert_gt(w.finished_at_ms, 0);
    driver_free(&d);
    return w;
}

/* [P-SPEC-4, P-SPEC-5, P-SPEC-15] */
Test(speculation, shortens_a_job_on_a_cluster_with_a_slow_node)
{
    static const char *const schedulers[] = {"default", "AdaptiveBatch"};

    for (size_t i = 0; i < 2; i++) {
        struct watch without = run(schedulers[i], false), with = run(schedulers[i], true);

        cr_expect_gt(without.finished_at_ms, 360000, "two stages of 20 times 10 s: %lld",
                     (long long)without.finished_at_ms);
        /* a stage: 1.5 times the measure until the task is slow, and the other attempt. In the
         * second stage the slow node is blocked: seven nodes do the work of eight */
        cr_expect_lt(with.finished_at_ms, 60000, "%lld", (long long)with.finished_at_ms);
        cr_expect_eq(with.counts.effective_speculations, 1);
        cr_expect_eq(without.counts.effective_speculations, 0);
        cr_expect_leq(with.most_live, N);
    }
}

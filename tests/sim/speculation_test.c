/* speculation_test.c - a batch job on a cluster with one slow node: other attempts of the tasks
 * there shorten it */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "sim/sim.h"

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

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    (void)o, (void)end_ms, (void)sched;
    return 0;
}

static struct watch run(const char *scheduler, bool speculative)
{
    static const struct pliant_label label = {TRACE_SLOW_LABEL, "20"};
    struct trace_event events[N];
    struct spec_error err = {.text = ""};
    struct doc_file doc;
    struct job_spec job;
    struct pliant_config cfg;
    struct watch w = {.observer = {.on_step = on_step, .on_end = on_end}};
    struct sim_observer *observers[] = {&w.observer};

    cr_assert_eq(doc_parse("job", JOB, sizeof JOB - 1, 1, &doc, &err), 0, "%s", err.text);
    cr_assert_eq(job_spec_decode(&doc, doc.root, &job, &err), 0, "%s", err.text);
    pliant_config_init(&cfg);
    pliant_config_set(&cfg, "jobmanager.scheduler", scheduler, NULL);
    pliant_config_set(&cfg, "execution.batch.speculative.enabled", speculative ? "true" : "false",
                      NULL);
    pliant_config_set(&cfg, "slow-task-detector.execution-time.baseline-lower-bound", "5 s", NULL);
    cr_assert_eq(pliant_config_resolve(&cfg, NULL), 0);
    for (uint32_t i = 0; i < N; i++)
        events[i] = (struct trace_event){.kind = TRACE_NODE_UP,
                                         .node = NODES[i],
                                         .incarnation = i + 1,
                                         .slots = 1,
                                         .labels = &label,
                                         .n_labels = strcmp(NODES[i], "slow") == 0};
    cr_assert_eq(sim_run(&(struct sim_setup){.cfg = &cfg,
                                             .job = &job,
                                             .latency = {.deploy_ms = 5, .cancel_ms = 20},
                                             .events = events,
                                             .n_events = N,
                                             .until_ms = 3600000,
                                             .observers = observers,
                                             .n_observers = 1},
                         &err),
                 0, "%s", err.text);
    cr_assert_gt(w.finished_at_ms, 0);
    job_spec_free(&job);
    doc_free(&doc);
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

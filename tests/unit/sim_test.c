/* sim_test.c - the queue of answers, the virtual cluster, and the driver over both */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/sim.h"

/* ---- queue ---------------------------------------------------------------------------------- */

static void add(struct queue *q, int64_t now_ms, int64_t due_ms, uint32_t plan)
{
    cr_assert_eq(
        queue_add(q, now_ms,
                  &(struct answer){.due_ms = due_ms, .kind = ANSWER_RESERVED, .plan = plan}),
        0);
}

Test(queue, takes_prompt_answers_first_then_by_instant_then_as_they_came)
{
    static const uint32_t expected[] = {4, 5, 1, 3, 2, 6};
    struct queue q;

    queue_init(&q, NULL);
    add(&q, 0, 5, 1);
    add(&q, 0, 9, 2);
    add(&q, 0, 5, 3);
    add(&q, 5, 5, 4);
    add(&q, 5, 5, 5);
    add(&q, 5, 9, 6);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        cr_assert(queue_top(&q) != NULL);
        cr_expect_eq(queue_prompt(&q), i < 2);
        cr_expect_eq(queue_top(&q)->plan, expected[i], "answer %zu", i);
        cr_expect_eq(queue_take(&q).plan, expected[i], "answer %zu", i);
    }
    cr_expect_null(queue_top(&q));
    queue_free(&q);
}

Test(queue, comes_out_sorted_whatever_went_in)
{
    struct prng prng = {7};
    struct queue q;
    int64_t last_ms = 0;

    queue_init(&q, NULL);
    for (uint32_t i = 0; i < 5000; i++)
        add(&q, 0, 1 + (int64_t)prng_below(&prng, 1000), i);
    for (uint32_t i = 0; i < 5000; i++) {
        int64_t due_ms = queue_take(&q).due_ms;

        cr_assert_geq(due_ms, last_ms);
        last_ms = due_ms;
    }
    queue_free(&q);
}

static bool is_even(const struct answer *a, void *ctx)
{
    (void)ctx;
    return a->plan % 2 == 0;
}

Test(queue, is_no_larger_than_twice_what_matters)
{
    struct queue q;

    queue_init(&q, NULL);
    for (uint32_t i = 0; i < 100000; i++) {
        if (queue_wants_prune(&q))
            queue_prune(&q, is_even, NULL);
        add(&q, 0, 1 + i, 1); /* never matters */
        cr_assert_leq(q.heap.n, 256u);
    }
    for (uint32_t i = 0; i < 10; i++)
        add(&q, 0, 1000 - i, 2 * i);
    queue_prune(&q, is_even, NULL);
    cr_assert_eq(q.heap.n, 10u);
    for (uint32_t i = 10; i-- > 0;)
        cr_expect_eq(queue_take(&q).plan, 2 * i);
    queue_free(&q);
}

/* ---- cluster -------------------------------------------------------------------------------- */

Test(cluster, counts_what_the_job_holds)
{
    struct cluster_node *n1, *n2, *from = NULL;
    struct cluster c;

    cluster_init(&c, NULL);
    cluster_join(&c, "n1", 1, 4);
    n2 = cluster_join(&c, "n2", 2, 2);
    n1 = cluster_find(&c, "n1");
    cr_expect_eq(c.held, 6u);
    cr_expect_eq(cluster_put_aside(&c, n2, 2), 0);
    cr_expect_eq(cluster_put_aside(&c, n1, 3), 0);
    cr_expect_eq(c.held, 1u);
    cr_expect_eq(cluster_offer(&c, 5, &from), 2u, "first given back, first offered");
    cr_expect_eq(from, n2);
    cr_expect_eq(cluster_offer(&c, 1, &from), 1u);
    cr_expect_eq(from, n1);
    cr_expect_eq(c.held, 4u);
    cluster_drain(&c, n1);
    cr_expect_eq(c.held, 2u);
    cr_expect_eq(cluster_offer(&c, 9, &from), 0u, "nothing of a node that drains");
    cr_expect_eq(cluster_withdraw(&c, n1), 0);
    cr_expect_eq(c.held, 4u);
    cr_expect_eq(cluster_offer(&c, 9, &from), 2u);
    cluster_leave(&c, n1);
    cr_expect_eq(c.held, 2u);
    cluster_free(&c);
}

Test(cluster, tells_the_lives_of_a_row_apart)
{
    struct cluster c;
    struct cluster_node *node;
    uint32_t row;

    cluster_init(&c, NULL);
    node = cluster_join(&c, "n1", 1, 1);
    row = cluster_row(&c, node);
    cluster_leave(&c, node);
    cr_expect_null(cluster_at(&c, row, 1));
    cr_expect_null(cluster_find(&c, "n1"));
    for (uint64_t life = 2; life < 10000; life++) {
        node = cluster_join(&c, "n1", life, 1);
        cr_assert_eq(cluster_row(&c, node), row, "rows are used again");
        cr_assert_null(cluster_at(&c, row, life - 1));
        cr_assert_eq(cluster_at(&c, row, life), node);
        cluster_put_aside(&c, node, 1);
        cluster_leave(&c, node);
    }
    cr_expect_leq(c.givers.n, 200u, "who has left does not stay in line");
    cluster_free(&c);
}

Test(cluster, a_new_life_lines_up_behind_those_who_gave_before_it)
{
    struct cluster_node *n1, *n2, *from = NULL;
    struct cluster c;

    cluster_init(&c, NULL);
    cluster_join(&c, "n1", 1, 1);
    cluster_join(&c, "n2", 2, 1);
    n1 = cluster_find(&c, "n1");
    cr_expect_eq(cluster_put_aside(&c, n1, 1), 0);
    cluster_leave(&c, n1);
    cluster_join(&c, "n1", 3, 1);
    n1 = cluster_find(&c, "n1");
    n2 = cluster_find(&c, "n2");
    cr_expect_eq(cluster_put_aside(&c, n2, 1), 0);
    cr_expect_eq(cluster_put_aside(&c, n1, 1), 0);
    cr_expect_eq(cluster_offer(&c, 1, &from), 1u);
    cr_expect_eq(from, n2);
    cr_expect_eq(cluster_offer(&c, 1, &from), 1u);
    cr_expect_eq(from, n1);
    cr_expect_eq(cluster_offer(&c, 1, &from), 0u);
    cluster_free(&c);
}

/* ---- the driver -------------------------------------------------------------------------------
 */

/* Writes down each step as "t event" and, of its actions, the states entered. */
struct log {
    struct sim_observer observer;
    char text[16384];
    size_t n;
    struct pliant_counts counts;
    enum pliant_job_status status;
    int error_at; /* the step that answers with an error; 0: none */
    int steps;
};

static void append(struct log *l, const char *format, const char *text, int64_t at_ms)
{
    l->n += (size_t)snprintf(l->text + l->n, sizeof l->text - l->n, format, at_ms, text);
    cr_assert_lt(l->n, sizeof l->text);
}

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct log *l = (struct log *)o;

    append(l, "%" PRId64 " %s\n", pliant_event_name(step->event->kind), step->at_ms);
    for (size_t i = 0; i < step->actions->n; i++)
        if (step->actions->v[i].kind == PLIANT_ACT_STATE_CHANGED)
            append(l, "%" PRId64 "  > %s\n",
                   pliant_state_name((enum pliant_state)step->actions->v[i].flag[1]), step->at_ms);
    return ++l->steps == l->error_at ? -EPIPE : 0;
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    struct log *l = (struct log *)o;

    append(l, "%" PRId64 " end in %s\n", pliant_state_name(pliant_state(sched)), end_ms);
    pliant_counts(sched, &l->counts);
    l->status = pliant_job_status(sched);
    return 0;
}

struct scene {
    const char *job;     /* its vertices; NULL: one of parallelism 2 */
    const char *options; /* members of config */
    const char *trace;   /* events, a line each */
    struct sim_latency latency;
    int64_t until_ms;
    bool trace_checkpoints, trace_savepoints;
};

static void play(const struct scene *scene, struct log *log, int expected)
{
    struct spec_error err = {.text = ""};
    struct doc_file doc;
    struct job_spec job;
    struct options options = {0};
    struct pliant_config cfg;
    const struct trace_rules rules = {0};
    struct trace *trace;
    struct sim_observer *observers[] = {&log->observer};
    struct sim_setup setup = {.cfg = &cfg,
                              .job = &job,
                              .latency = scene->latency,
                              .trace_savepoints = scene->trace_savepoints,
                              .until_ms = scene->until_ms,
                              .observers = observers,
                              .n_observers = 1};
    struct trace_rules with_job = rules;
    char text[4096];

    snprintf(text, sizeof text,
             "{\"vertices\":[%s],\"config\":{\"jobmanager.scheduler\":\"adaptive\"%s%s}}",
             scene->job ? scene->job : "{\"id\":\"v\",\"parallelism\":2}",
             scene->options ? "," : "", scene->options ? scene->options : "");
    cr_assert_eq(doc_parse("job", text, strlen(text), 1, &doc, &err), 0, "%s", err.text);
    cr_assert_eq(job_spec_decode(&doc, doc.root, &job, &err), 0, "%s", err.text);
    cr_assert_eq(options_add(&options, OPTIONS_JOB, &doc, job.config, &err), 0, "%s", err.text);
    cr_assert_eq(options_resolve(&options, &cfg, &err), 0, "%s", err.text);
    cr_assert_eq(sim_check_job(&job, &cfg, &err), 0, "%s", err.text);
    cfg.checkpoint_periodic = !scene->trace_checkpoints;
    snprintf(text, sizeof text, "{\"pliant_trace\":1}\n%s", scene->trace);
    with_job.job = job.job;
    cr_assert_eq(trace_of_text("trace", text, strlen(text), &with_job, &trace, &err), 0, "%s",
                 err.text);
    setup.trace = trace;
    log->observer = (struct sim_observer){on_step, on_end};
    cr_assert_eq(sim_run(&setup, &err), expected, "%s", err.text);
    trace_close(&trace);
    options_free(&options);
    job_spec_free(&job);
    doc_free(&doc);
}

static void expect_log(const struct scene *scene, const char *expected)
{
    struct log log = {.n = 0};

    play(scene, &log, 0);
    cr_expect_str_eq(log.text, expected, "got:\n%s", log.text);
}

#define AT_ONCE                                                                                    \
    "\"jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout\":\"0 s\""
#define CHECKPOINTS "\"execution.checkpointing.interval\":\"10 s\""

Test(driver, submits_the_job_to_the_cluster_that_is_there_at_0)
{
    expect_log(&(struct scene){.trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":1}\n"
                                        "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n2\",\"slots\":1}\n"
                                        "{\"t\":0,\"ev\":\"cancel\"}\n"
                                        "{\"t\":0,\"ev\":\"node_down\",\"node\":\"n2\"}\n"},
               "0 node_up\n"
               "0 node_up\n"
               "0 start\n"
               "0  > WaitingForResources\n"
               "0  > CreatingExecutionGraph\n"
               "0 slots_reserved\n"
               "0  > Executing\n"
               "0 task_running\n"
               "0 task_running\n"
               "0 cancel\n"
               "0  > Canceling\n"
               "0 task_canceled\n"
               "0 task_canceled\n"
               "0  > Finished\n"
               "0 node_lost\n"
               "0 end in Finished\n");
}

Test(driver, answers_after_the_latencies_and_after_the_trace_of_that_instant)
{
    expect_log(&(struct scene){.latency = {.deploy_ms = 100, .cancel_ms = 50},
                               .until_ms = 1000,
                               .trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":2}\n"
                                        "{\"t\":100,\"ev\":\"cancel\"}\n"},
               "0 node_up\n"
               "0 start\n"
               "0  > WaitingForResources\n"
               "0  > CreatingExecutionGraph\n"
               "0 slots_reserved\n"
               "0  > Executing\n"
               "100 cancel\n"
               "100  > Canceling\n"
               "150 task_canceled\n"
               "150 task_canceled\n"
               "150  > Finished\n"
               "1000 end in Finished\n");
}

Test(driver, runs_deadlines_up_to_and_at_the_end)
{
    struct scene scene = {.until_ms = 10000,
                          .trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":1}\n"};

    expect_log(&scene, "0 node_up\n"
                       "0 start\n"
                       "0  > WaitingForResources\n"
                       "10000 tick\n"
                       "10000  > CreatingExecutionGraph\n"
                       "10000 slots_reserved\n"
                       "10000  > Executing\n"
                       "10000 task_running\n"
                       "10000 end in Executing\n");
    scene.until_ms = 9999;
    expect_log(&scene, "0 node_up\n"
                       "0 start\n"
                       "0  > WaitingForResources\n"
                       "9999 end in WaitingForResources\n");
}

Test(driver, a_task_on_a_node_that_is_gone_says_nothing_more)
{
    expect_log(&(struct scene){.latency = {.deploy_ms = 100, .cancel_ms = 100},
                               .until_ms = 1000,
                               .options = CHECKPOINTS,
                               .trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":1}\n"
                                        "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n2\",\"slots\":1}\n"
                                        "{\"t\":50,\"ev\":\"node_down\",\"node\":\"n2\"}\n"},
               "0 node_up\n"
               "0 node_up\n"
               "0 start\n"
               "0  > WaitingForResources\n"
               "0  > CreatingExecutionGraph\n"
               "0 slots_reserved\n"
               "0  > Executing\n"
               "50 node_lost\n"
               "50  > Restarting\n"
               "150 task_canceled\n"
               "1000 end in Restarting\n");
}

Test(driver, reads_state_only_where_there_is_some)
{
    expect_log(&(struct scene){.latency = {.deploy_ms = 10, .restore_ms = 100},
                               .until_ms = 30000,
                               .options = CHECKPOINTS "," AT_ONCE
                                                      ",\"restart-strategy.type\":\"fixed-delay\"",
                               .trace_checkpoints = true,
                               .trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":1}\n"
                                        "{\"t\":5,\"ev\":\"checkpoint\",\"id\":1}\n"
                                        "{\"t\":1000,\"ev\":\"checkpoint\",\"id\":2}\n"
                                        "{\"t\":2000,\"ev\":\"task_failed\",\"vertex\":\"v\","
                                        "\"subtask\":0,\"recoverable\":true}\n"
                                        "{\"t\":2000,\"ev\":\"task_failed\",\"vertex\":\"v\","
                                        "\"subtask\":0,\"recoverable\":true}\n"},
               "0 node_up\n"
               "0 start\n"
               "0  > WaitingForResources\n"
               "0  > CreatingExecutionGraph\n"
               "0 slots_reserved\n"
               "0  > Executing\n"
               "5 checkpoint_completed\n"
               "10 task_running\n"
               "1000 checkpoint_completed\n"
               "2000 task_failed\n"
               "2000  > Restarting\n"
               "2000 task_failed\n"
               "3000 tick\n"
               "3000  > WaitingForResources\n"
               "3000  > CreatingExecutionGraph\n"
               "3000 slots_reserved\n"
               "3000  > Executing\n"
               "3010 task_initializing\n"
               "3110 task_running\n"
               "30000 end in Executing\n");
}

Test(driver, counts_events_that_meet_nothing)
{
    struct log log = {.n = 0};

    play(&(struct scene){.until_ms = 5000,
                         .options = CHECKPOINTS "," AT_ONCE,
                         .trace_checkpoints = true,
                         .trace = "{\"t\":0,\"ev\":\"checkpoint\",\"id\":1}\n"
                                  "{\"t\":1,\"ev\":\"task_failed\",\"vertex\":\"v\",\"subtask\":0,"
                                  "\"recoverable\":true}\n"
                                  "{\"t\":2,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":1}\n"
                                  "{\"t\":3,\"ev\":\"task_finished\",\"vertex\":\"v\","
                                  "\"subtask\":1}\n"
                                  "{\"t\":4,\"ev\":\"task_canceled\",\"vertex\":\"v\","
                                  "\"subtask\":0}\n"},
         &log, 0);
    cr_expect_eq(log.counts.events_ignored, 4u);
    cr_expect_eq(log.status, PLIANT_JOB_RUNNING);
}

Test(driver, an_announced_failure_meets_the_next_creation_only)
{
    expect_log(
        &(struct scene){
            .until_ms = 1500,
            .options = AT_ONCE
            ",\"jobmanager.adaptive-scheduler.retry-execution-graph-creation.restart-strategy.type"
            "\":\"fixed-delay\"",
            .trace =
                "{\"t\":0,\"ev\":\"creation_failed\",\"recoverable\":true,\"cause\":\"disk\"}\n"
                "{\"t\":1,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":1}\n"},
        "0 start\n"
        "0  > WaitingForResources\n"
        "0 tick\n"
        "1 node_up\n"
        "1  > CreatingExecutionGraph\n"
        "1 creation_failed\n"
        "1  > RetryingExecutionGraphCreation\n"
        "1001 tick\n"
        "1001  > WaitingForResources\n"
        "1001  > CreatingExecutionGraph\n"
        "1001 slots_reserved\n"
        "1001  > Executing\n"
        "1001 task_running\n"
        "1500 end in Executing\n");
}

Test(driver, after_the_savepoint_of_a_stop_all_tasks_finish)
{
    expect_log(&(struct scene){.latency = {.checkpoint_ms = 500},
                               .until_ms = 2000,
                               .options = CHECKPOINTS,
                               .trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":2}\n"
                                        "{\"t\":1000,\"ev\":\"stop_with_savepoint\"}\n"},
               "0 node_up\n"
               "0 start\n"
               "0  > WaitingForResources\n"
               "0  > CreatingExecutionGraph\n"
               "0 slots_reserved\n"
               "0  > Executing\n"
               "0 task_running\n"
               "0 task_running\n"
               "1000 stop\n"
               "1000  > StopWithSavepoint\n"
               "1500 savepoint_completed\n"
               "1500 task_finished\n"
               "1500 task_finished\n"
               "1500  > Finished\n"
               "2000 end in Finished\n");
}

Test(driver, the_trace_may_say_how_a_savepoint_ends)
{
    expect_log(&(struct scene){.until_ms = 2000,
                               .options = CHECKPOINTS,
                               .trace_savepoints = true,
                               .trace =
                                   "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":2}\n"
                                   "{\"t\":1000,\"ev\":\"stop_with_savepoint\"}\n"
                                   "{\"t\":1700,\"ev\":\"savepoint_failed\",\"cause\":\"full\"}\n"},
               "0 node_up\n"
               "0 start\n"
               "0  > WaitingForResources\n"
               "0  > CreatingExecutionGraph\n"
               "0 slots_reserved\n"
               "0  > Executing\n"
               "0 task_running\n"
               "0 task_running\n"
               "1000 stop\n"
               "1000  > StopWithSavepoint\n"
               "1700 savepoint_failed\n"
               "1700  > Executing\n"
               "2000 end in Executing\n");
}

Test(driver, slots_that_were_given_back_are_offered_again_when_they_are_wanted)
{
    struct log log = {.n = 0};
    char *granted;

    play(&(struct scene){.until_ms = 200000,
                         .options = AT_ONCE "," CHECKPOINTS ",\"slot.idle.timeout\":\"10 s\""
                                            ",\"restart-strategy.type\":\"fixed-delay\"",
                         .trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":2}\n"
                                  "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n2\",\"slots\":2}\n"
                                  "{\"t\":50000,\"ev\":\"node_down\",\"node\":\"n1\"}\n"
                                  "{\"t\":60000,\"ev\":\"node_up\",\"node\":\"n3\",\"slots\":2}\n"},
         &log, 0);
    granted = strstr(log.text, "slots_granted");
    cr_assert_not_null(granted, "%s", log.text);
    cr_expect_null(strstr(granted + 1, "slots_granted"), "%s", log.text);
    cr_expect_eq(log.counts.tasks_running, 2u);
}

Test(driver, vertices_may_end_and_fail_by_themselves)
{
    struct log log = {.n = 0};

    play(&(struct scene){.until_ms = 20000,
                         .options = AT_ONCE ",\"restart-strategy.type\":\"fixed-delay\"",
                         .job = "{\"id\":\"v\",\"sim\":{\"duration_ms\":[500,700],"
                                "\"deploy_ms\":100}}",
                         .trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":1}\n"},
         &log, 0);
    cr_expect_eq(log.status, PLIANT_JOB_FINISHED, "%s", log.text);
    cr_expect(strstr(log.text, "\n100 task_running\n") != NULL, "%s", log.text);

    log = (struct log){.n = 0};
    play(&(struct scene){.until_ms = 20000,
                         .options = AT_ONCE ",\"restart-strategy.type\":\"fixed-delay\"",
                         .job = "{\"id\":\"v\",\"sim\":{\"fail_every_ms\":300}}",
                         .trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":1}\n"},
         &log, 0);
    cr_expect_eq(log.status, PLIANT_JOB_FAILED, "one restart, then the second failure: %s",
                 log.text);
}

Test(driver, stops_with_the_error_of_an_observer)
{
    struct log log = {.error_at = 3};

    play(&(struct scene){.until_ms = 20000,
                         .trace = "{\"t\":0,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":2}\n"},
         &log, -EPIPE);
    cr_expect_eq(log.steps, 3);
}

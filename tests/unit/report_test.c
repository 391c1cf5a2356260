/* report_test.c - timeline, JSON Lines, CSV, and the numbers behind them */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <cjson/cJSON.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_run.h"
#include "world.h"
#include "sim/report_impl.h"
#include "sim/sentence.h"
#include "sim/series.h"
#include "sim/time_text.h"

/* A report on a made-up run, and what it wrote. */
struct scene {
    struct pliant_job *job;
    struct sim_observer *observer;
    struct report *report;
    FILE *out;
    char *text;
    size_t size;
    struct fake fake;
};

static void open_scene(struct scene *s, enum report_format format)
{
    *s = (struct scene){.job = fake_job("wc")};
    s->out = open_memstream(&s->text, &s->size);
    cr_assert(eq(int,
                 report_new(&(struct report_options){.format = format,
                                                     .out = s->out,
                                                     .job = s->job,
                                                     .trace = "case",
                                                     .expected_end_ms = 50000},
                            &s->observer),
                 0));
    s->report = (struct report *)s->observer;
}

static void show(struct scene *s, const struct fake_step *step)
{
    fake_take(&s->fake, &s->report->view, step);
    cr_assert(eq(int, report_show(s->report), 0));
}

static void show_run(struct scene *s)
{
    for (size_t i = 0; i < fake_grow_and_lose_n; i++)
        show(s, &fake_grow_and_lose[i]);
}

static void end(struct scene *s, int64_t end_ms)
{
    cr_assert(eq(int, s->observer->on_end(s->observer, end_ms, NULL), 0));
}

static void close_scene(struct scene *s)
{
    report_destroy(&s->observer);
    cr_expect(s->observer == NULL);
    fclose(s->out);
    free(s->text);
    pliant_job_destroy(&s->job);
}

static bool wrote(struct scene *s, const char *text)
{
    fflush(s->out);
    return strstr(s->text, text) != NULL;
}

/* ---- text --------------------------------------------------------------------------------- */

Test(report_text, tells_each_change_with_its_time_and_reason)
{
    static const char *const lines[] = {
        "\n    0.000  Created > WaitingForResources                 started: 1 to 4 wanted\n",
        "\n   16.800  Executing > Restarting                        "
        "rescale 2 -> 4: 4 slots since 15.000, checkpoint 4 done\n",
        "\n   16.800  CreatingExecutionGraph > Executing            runs with 4, from checkpoint "
        "4\n",
        "\n   35.000  Executing > Restarting                        "
        "n1 lost (2 of 4 slots in use), back-off 1 s\n",
        "\n   46.000  WaitingForResources > CreatingExecutionGraph  "
        "2 slots since 36.000, enough to run (1 to 4 wanted)\n",
    };
    struct scene s;

    open_scene(&s, REPORT_TEXT);
    show_run(&s);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect(wrote(&s, lines[i]), "%s in\n%s", lines[i], s.text);
    close_scene(&s);
}

Test(report_text, ends_with_a_picture_and_the_totals)
{
    static const char *const parts[] = {
        "\u2588 parallelism   \u2591 slots offered",
        "  restarts                    2  1 rescale, 1 node loss\n",
        "  rescales                    2  1 up, 1 down; after 1 rescale, 1 node loss\n",
        "  downtime                 11 s  27.50 % of 40 s since the first start, longest 11 s\n",
        "  slots offered             140  slot-seconds\n",
        "  slots used                 94  slot-seconds, 67.4 %\n",
        "  events ignored              1\n",
        "  4                        18.2 s  45.5 %  ",
    };
    struct scene s;

    open_scene(&s, REPORT_TEXT);
    show_run(&s);
    end(&s, 50000);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_expect(wrote(&s, parts[i]), "%s in\n%s", parts[i], s.text);
    close_scene(&s);
}

Test(report_text, is_plain_ascii_for_a_terminal_without_utf8)
{
    struct scene s;

    open_scene(&s, REPORT_TEXT);
    s.report->o.ascii = true;
    show_run(&s);
    end(&s, 50000);
    for (size_t i = 0; i < s.size; i++)
        cr_assert(s.text[i] > 0);
    close_scene(&s);
}

Test(report_text, says_small_gains_and_costs_to_the_ms)
{
    static const struct {
        int64_t gain, cost;
        const char *text;
    } rows[] = {
        {90999, 12000, "2 -> 4 would bring 90 slot-seconds and cost 12: now"},
        {3207440, 96, "2 -> 4 would bring 3207 slot-seconds and cost 0.096: now"},
        {1, 9999, "2 -> 4 would bring 0.001 slot-seconds and cost 9.999: now"},
        {1500, 0, "2 -> 4 would bring 1.5 slot-seconds and cost 0: now"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct pliant_action act = {
            .kind = PLIANT_ACT_RESCALE_JUDGED,
            .flag = {PLIANT_JUDGED_GAIN},
            .judged = {.from = 2, .to = 4, .gain = rows[i].gain, .cost = rows[i].cost}};
        char text[128] = "";
        FILE *out = fmemopen(text, sizeof text, "w");

        sentence_of_judgement(out, &act);
        fclose(out);
        cr_expect_str_eq(text, rows[i].text);
    }
}

Test(report_text, has_a_sentence_for_every_reason_to_leave_a_state)
{
    struct scene s;

    open_scene(&s, REPORT_TEXT);
    for (int reason = PLIANT_REASON_STARTED; reason <= PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED;
         reason++) {
        struct fake_step step = {1, PLIANT_EV_TICK, .offered = 1, .aim = 1};
        char bare[80];
        size_t before;

        step.changes[0] =
            fake_change(PLIANT_EXECUTING, PLIANT_RESTARTING, (enum pliant_reason)reason);
        step.changes[0].node = 2;
        fflush(s.out);
        before = s.size;
        show(&s, &step);
        fflush(s.out);
        cr_expect(s.size > before + 60, "%s", s.text + before);
        cr_expect(strpbrk(s.text + before, "{}") == NULL, "%s", s.text + before);
        snprintf(bare, sizeof bare, "  %s\n", pliant_reason_name((enum pliant_reason)reason));
        cr_expect(strstr(s.text + before, bare) == NULL, "%s", s.text + before);
    }
    close_scene(&s);
}

Test(report_text, names_the_vertices_when_they_change_differently)
{
    struct fake_step step = {1, PLIANT_EV_TICK, .offered = 3, .aim = 3};
    struct scene s;

    step.changes[0] = fake_change(PLIANT_EXECUTING, PLIANT_RESTARTING, PLIANT_REASON_RESCALE);
    open_scene(&s, REPORT_TEXT);
    fake_take(&s.fake, &s.report->view, &step);
    s.report->view.parallelism[0] = 4;
    s.report->view.parallelism[1] = 2;
    s.report->view.aim[0] = 4;
    cr_assert(eq(int, report_show(s.report), 0));
    cr_expect(wrote(&s, "rescale map 2 -> 3: 3 slots\n"), "%s", s.text);
    close_scene(&s);
}

Test(report_text, shows_what_failed_and_why_without_control_characters)
{
    struct fake_step step = {1, PLIANT_EV_TASK_FAILED, .offered = 1};
    struct scene s;

    step.changes[0] = fake_change(PLIANT_EXECUTING, PLIANT_RESTARTING, PLIANT_REASON_TASK_FAILED);
    step.changes[0].detail = 1500;
    open_scene(&s, REPORT_TEXT);
    fake_take(&s.fake, &s.report->view, &step);
    s.fake.event.failure.task = (struct pliant_task){{2}, 3, 1};
    s.fake.event.failure.cause = "out of\x1b[31m memory\n";
    cr_assert(eq(int, report_show(s.report), 0));
    cr_expect(wrote(&s, "map/3 failed (out of [31m memory ), back-off 1.5 s\n"), "%s", s.text);
    close_scene(&s);
}

Test(report_text, gives_the_reason_for_failing_once)
{
    struct fake_step step = {1, PLIANT_EV_TASK_CANCELED, .offered = 1};
    struct scene s;

    step.changes[0] =
        fake_change(PLIANT_FAILING, PLIANT_FINISHED, PLIANT_REASON_RESTARTS_SUPPRESSED);
    open_scene(&s, REPORT_TEXT);
    show(&s, &step);
    cr_expect(wrote(&s, "  all tasks are down; the job is FINISHED\n"), "%s", s.text);
    close_scene(&s);
}

Test(report_text, cuts_long_texts_between_characters)
{
    char *text = NULL, cause[401];
    size_t size;
    FILE *out = open_memstream(&text, &size);

    cause[0] = 'x';
    for (int i = 1; i < 399; i += 2)
        memcpy(&cause[i], "\u00e9", 2);
    cause[399] = '\0';
    sentence_text(out, cause);
    fclose(out);
    cr_expect(eq(sz, size, 159 + 3));
    cr_expect(memcmp(text + 157, "\u00e9...", 5) == 0);
    free(text);
}

Test(report_text, tells_wishes_drains_and_savepoints)
{
    struct pliant_bounds bounds[] = {{"src", 1, 4}, {"map", 2, 2}};
    struct fake_step step = {1000, PLIANT_EV_STOP, .offered = 1};
    struct pliant_action *a;
    struct scene s;

    open_scene(&s, REPORT_TEXT);
    fake_take(&s.fake, &s.report->view, &step);
    a = fake_action(&s.fake, PLIANT_ACT_REFUSED);
    a->flag[0] = PLIANT_REASON_NO_SAVEPOINT_DIR;
    a = fake_action(&s.fake, PLIANT_ACT_NOTIFY);
    a->flag[0] = PLIANT_DRAIN_PREEMPTION;
    a->notify.node.v = 3;
    a->notify.deadline_at_ms = 121000;
    a = fake_action(&s.fake, PLIANT_ACT_SAVEPOINT_ENDED);
    a->savepoint.path = "/s/1";
    a = fake_action(&s.fake, PLIANT_ACT_GIVE_UP_NODE);
    a->node.node.v = 1;
    cr_assert(eq(int, report_show(s.report), 0));
    cr_expect(wrote(&s, ": no directory for savepoints is known\n"), "%s", s.text);
    cr_expect(wrote(&s, "n3 will go (preemption) by 2:01.000\n"), "%s", s.text);
    cr_expect(wrote(&s, "done: /s/1\n"), "%s", s.text);
    cr_expect(wrote(&s, "n1 does not confirm"), "%s", s.text);
    step.event = PLIANT_EV_REQUIREMENTS;
    fake_take(&s.fake, &s.report->view, &step);
    s.fake.event.requirements.v = bounds;
    s.fake.event.requirements.n = 2;
    cr_assert(eq(int, report_show(s.report), 0));
    cr_expect(wrote(&s, "src 1 to 4, map 2\n"), "%s", s.text);
    close_scene(&s);
}

Test(report_text, puts_nodes_of_one_instant_into_one_line)
{
    static const char *const names[] = {"n1", "n2", "n3", "n4", "n5"};
    struct fake_step lose = {5, PLIANT_EV_NODE_LOST, .nodes = 9, .used = 9};
    struct fake_step drain = {6, PLIANT_EV_NODE_DRAINING, .nodes = 9};
    struct pliant_action *a;
    struct scene s;

    open_scene(&s, REPORT_TEXT);
    s.report->view.counts.nodes = s.report->view.counts.slots_used = 10;
    lose.changes[0] = fake_change(PLIANT_EXECUTING, PLIANT_RESTARTING, PLIANT_REASON_NODE_LOST);
    show(&s, &lose);
    lose.changes[0].reason = PLIANT_REASON_NONE;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        lose.nodes--;
        lose.used--;
        fake_take(&s.fake, &s.report->view, &lose);
        s.fake.event.node.name = names[i];
        cr_assert(eq(int, report_show(s.report), 0));
    }
    for (uint32_t i = 1; i <= 3; i++) {
        fake_take(&s.fake, &s.report->view, &drain);
        a = fake_action(&s.fake, PLIANT_ACT_NOTIFY);
        a->notify.node.v = i;
        a->notify.deadline_at_ms = i < 3 ? 1000 : PLIANT_NEVER;
        cr_assert(eq(int, report_show(s.report), 0));
    }
    end(&s, 7);
    cr_expect(wrote(&s, "n1, n2, n3 and 2 more lost as well\n"), "%s", s.text);
    cr_expect(wrote(&s, "n1, n2 will go (preemption) by 1.000\n"), "%s", s.text);
    cr_expect(wrote(&s, "n3 will go (preemption)\n"), "%s", s.text);
    close_scene(&s);
}

Test(report_text, of_a_run_in_which_nothing_happened)
{
    struct scene s;

    open_scene(&s, REPORT_TEXT);
    end(&s, 0);
    cr_expect(wrote(&s, "  restarts                    0  \n"), "%s", s.text);
    close_scene(&s);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static cJSON *line_of(const char *text, const char *kind, int nth)
{
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        cJSON *line = cJSON_ParseWithLength(at, strcspn(at, "\n"));
        const char *is;

        cr_assert(line != NULL, "%s", at);
        is = cJSON_GetStringValue(cJSON_GetObjectItem(line, "kind"));
        cr_assert(is && cJSON_GetObjectItem(line, "t"));
        if (strcmp(is, kind) == 0 && nth-- == 0)
            return line;
        cJSON_Delete(line);
    }
    return NULL;
}

static double number(const cJSON *line, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(line, key));
}

Test(report_json, has_a_line_for_each_change_of_state)
{
    struct scene s;
    cJSON *line;

    open_scene(&s, REPORT_JSON);
    show_run(&s);
    end(&s, 50000);
    line = line_of(s.text, "state", 3);
    cr_assert(line != NULL);
    cr_expect(eq(dbl, number(line, "t"), 16800));
    cr_expect(eq(str, cJSON_GetStringValue(cJSON_GetObjectItem(line, "from")), "Executing"));
    cr_expect(eq(str, cJSON_GetStringValue(cJSON_GetObjectItem(line, "to")), "Restarting"));
    cr_expect(eq(dbl, number(line, "since"), 15000));
    cr_expect(eq(dbl, number(line, "slots"), 4));
    cr_expect(eq(str, cJSON_GetStringValue(cJSON_GetObjectItem(line, "checkpoint")), "4"));
    cr_expect(cJSON_IsNull(cJSON_GetObjectItem(line, "backoff_ms")));
    cJSON_Delete(line);
    line = line_of(s.text, "state", 5);
    cr_expect(eq(dbl, number(cJSON_GetObjectItem(line, "parallelism"), "map"), 4));
    cJSON_Delete(line);
    line = line_of(s.text, "state", 6);
    cr_expect(eq(str, cJSON_GetStringValue(cJSON_GetObjectItem(line, "node")), "n1"));
    cr_expect(eq(dbl, number(line, "backoff_ms"), 1000));
    cJSON_Delete(line);
    close_scene(&s);
}

Test(report_json, ends_with_the_totals)
{
    struct scene s;
    cJSON *line;

    open_scene(&s, REPORT_JSON);
    show_run(&s);
    end(&s, 50000);
    line = line_of(s.text, "totals", 0);
    cr_assert(line != NULL);
    cr_expect(eq(dbl, number(line, "downtime_ms"), 11000));
    cr_expect(eq(dbl, number(line, "slot_ms_used"), 94400));
    cr_expect(eq(dbl, number(cJSON_GetObjectItem(line, "restarts"), "total"), 2));
    cr_expect(eq(dbl, number(cJSON_GetObjectItem(line, "rescales"), "down"), 1));
    cr_expect(eq(dbl, number(cJSON_GetObjectItem(line, "state_ms"), "Executing"), 29000));
    cJSON_Delete(line);
    close_scene(&s);
}

Test(report_json, tells_rescales_failures_and_the_rest)
{
    static const char *const kinds[] = {"rescale", "failure", "refused",   "status",
                                        "drain",   "give_up", "checkpoint"};
    const struct pliant_rescale_vertex vertices[2] = {{1, 4, 2, 4}, {1, 4, 2, 4}};
    const struct pliant_rescale record = {
        .attempt = 1, .end = PLIANT_RESCALE_SUCCEEDED, .end_at_ms = 5, .vertices = vertices};
    const struct pliant_failure_item item = {.at_ms = 1,
                                             .reason = PLIANT_REASON_TASK_FAILED,
                                             .task = {{1}, 2, 3},
                                             .node = "",
                                             .cause = "c"};
    const struct pliant_failure entry = {&item, 1, 2};
    struct fake_step step = {7, PLIANT_EV_CHECKPOINT_FAILED, .offered = 1};
    struct scene s;
    cJSON *line;

    open_scene(&s, REPORT_JSON);
    fake_take(&s.fake, &s.report->view, &step);
    fake_action(&s.fake, PLIANT_ACT_RESCALE_CLOSED)->rescale.record = &record;
    fake_action(&s.fake, PLIANT_ACT_FAILURE)->failure.entry = &entry;
    fake_action(&s.fake, PLIANT_ACT_REFUSED)->flag[0] = PLIANT_REASON_JOB_ENDED;
    fake_action(&s.fake, PLIANT_ACT_STATUS_CHANGED);
    cr_assert(eq(int, report_show(s.report), 0));
    fake_take(&s.fake, &s.report->view, &step);
    fake_action(&s.fake, PLIANT_ACT_NOTIFY)->notify.deadline_at_ms = PLIANT_NEVER;
    fake_action(&s.fake, PLIANT_ACT_GIVE_UP_NODE)->node.node.v = 2;
    fake_action(&s.fake, PLIANT_ACT_SAVEPOINT_ENDED)->savepoint.cause = "no space";
    fake_action(&s.fake, PLIANT_ACT_DECLARE); /* no line */
    cr_assert(eq(int, report_show(s.report), 0));
    end(&s, 7);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        line = line_of(s.text, kinds[i], 0);
        cr_expect(line != NULL, "%s in\n%s", kinds[i], s.text);
        cJSON_Delete(line);
    }
    line = line_of(s.text, "failure", 0);
    cr_expect(eq(str, cJSON_GetStringValue(cJSON_GetObjectItem(line, "vertex")), "src"));
    cr_expect(eq(dbl, number(line, "more"), 2));
    cJSON_Delete(line);
    close_scene(&s);
}

/* ---- CSV ---------------------------------------------------------------------------------- */

Test(report_csv, has_a_row_for_each_change)
{
    static const char want[] = "t_ms,state,slots_offered,slots_used,src,map\n"
                               "0,Created,2,0,0,0\n"
                               "0,WaitingForResources,2,0,0,0\n"
                               "10000,CreatingExecutionGraph,2,0,0,0\n"
                               "10000,Executing,2,2,2,2\n"
                               "15000,Executing,4,2,2,2\n"
                               "16800,Restarting,4,0,0,0\n"
                               "16800,CreatingExecutionGraph,4,0,0,0\n"
                               "16800,Executing,4,4,4,4\n"
                               "35000,Restarting,2,0,0,0\n"
                               "36000,WaitingForResources,2,0,0,0\n"
                               "46000,CreatingExecutionGraph,2,0,0,0\n"
                               "46000,Executing,2,2,2,2\n";
    struct scene s;

    open_scene(&s, REPORT_CSV);
    show_run(&s);
    end(&s, 50000);
    cr_expect(eq(str, s.text, (char *)want));
    close_scene(&s);
}

Test(report_csv, shows_a_state_that_was_left_in_the_same_step)
{
    struct fake_step step = {5, PLIANT_EV_TICK, .offered = 1};
    struct scene s;

    step.changes[0] =
        fake_change(PLIANT_RESTARTING, PLIANT_WAITING_FOR_RESOURCES, PLIANT_REASON_BACKOFF_OVER);
    step.changes[1] = fake_change(PLIANT_WAITING_FOR_RESOURCES, PLIANT_CREATING_EXECUTION_GRAPH,
                                  PLIANT_REASON_DESIRED_RESOURCES);
    open_scene(&s, REPORT_CSV);
    show(&s, &step);
    cr_expect(wrote(&s, "\n5,WaitingForResources,1,0,0,0\n5,CreatingExecutionGraph,1,0,0,0\n"));
    close_scene(&s);
}

/* ---- errors ------------------------------------------------------------------------------- */

static int run_into(FILE *out, enum report_format format)
{
    struct pliant_job *job = fake_job("wc");
    struct sim_observer *o = NULL;
    struct fake fake;
    int rc = 0;

    cr_assert(out != NULL);
    cr_assert(eq(int,
                 report_new(&(struct report_options){.format = format, .out = out, .job = job}, &o),
                 0));
    for (int k = 0; rc == 0 && k < 1000; k++)
        for (size_t i = 0; rc == 0 && i < fake_grow_and_lose_n; i++) {
            fake_take(&fake, &((struct report *)o)->view, &fake_grow_and_lose[i]);
            fake.view->at_ms += 50000 * k;
            rc = report_show((struct report *)o);
        }
    if (rc == 0)
        rc = o->on_end(o, 50000000, NULL);
    report_destroy(&o);
    pliant_job_destroy(&job);
    return rc;
}

Test(report, tells_a_full_disk_and_a_closed_pipe)
{
    signal(SIGPIPE, SIG_IGN);
    for (int format = REPORT_TEXT; format <= REPORT_CSV; format++) {
        FILE *full = fopen("/dev/full", "w"), *closed;
        int ends[2];

        cr_assert(eq(int, pipe(ends), 0));
        close(ends[0]);
        closed = fdopen(ends[1], "w");
        cr_expect(eq(int, run_into(full, (enum report_format)format), -ENOSPC), "%d", format);
        cr_expect(eq(int, run_into(closed, (enum report_format)format), -EPIPE), "%d", format);
        fclose(full);
        fclose(closed);
    }
}

Test(report, destroys_nothing_when_there_is_none)
{
    struct sim_observer *none = NULL;

    report_destroy(&none);
    cr_expect(none == NULL);
}

/* ---- totals ------------------------------------------------------------------------------- */

struct counting {
    struct pliant_job *job;
    struct view view;
    struct totals totals;
    struct fake fake;
};

static void open_counting(struct counting *c)
{
    c->job = fake_job("wc");
    cr_assert(eq(int, view_init(&c->view, c->job), 0));
    cr_assert(eq(int, totals_init(&c->totals, 2), 0));
}

static void close_counting(struct counting *c)
{
    totals_free(&c->totals);
    view_free(&c->view);
    pliant_job_destroy(&c->job);
}

static void count(struct counting *c, const struct fake_step *step)
{
    fake_take(&c->fake, &c->view, step);
    cr_assert(eq(int, totals_take(&c->totals, &c->view), 0));
}

/* Into Executing with these parallelisms, by way of a restart unless it is the first time. */
static void work(struct counting *c, int64_t at_ms, uint32_t src, uint32_t map)
{
    struct fake_step step = {at_ms, PLIANT_EV_TICK, .offered = 4};

    step.changes[0] = fake_change(PLIANT_EXECUTING, PLIANT_RESTARTING, PLIANT_REASON_RESCALE);
    if (c->totals.began)
        count(c, &step);
    step.changes[0] =
        fake_change(PLIANT_CREATING_EXECUTION_GRAPH, PLIANT_EXECUTING, PLIANT_REASON_PLAN_READY);
    fake_take(&c->fake, &c->view, &step);
    c->view.parallelism[0] = src;
    c->view.parallelism[1] = map;
    cr_assert(eq(int, totals_take(&c->totals, &c->view), 0));
}

Test(totals, call_a_rescale_up_or_down_by_all_subtasks_together)
{
    struct counting c;

    open_counting(&c);
    work(&c, 0, 2, 2);
    work(&c, 1, 4, 2); /* up */
    work(&c, 2, 4, 2); /* a restart, no rescale */
    work(&c, 3, 2, 4); /* the same sum */
    work(&c, 4, 2, 3); /* down */
    cr_expect(eq(u64, c.totals.restarts, 4));
    cr_expect(eq(u64, c.totals.rescales, 3));
    cr_expect(eq(u64, c.totals.rescales_up, 1));
    cr_expect(eq(u64, c.totals.rescales_down, 1));
    cr_expect(eq(u64, c.totals.rescales_by[PLIANT_REASON_RESCALE], 3));
    close_counting(&c);
}

Test(totals, keep_the_time_at_each_parallelism_in_order)
{
    static const struct totals_share want[] = {{2, 30}, {3, 1}, {8, 10}};
    struct counting c;

    open_counting(&c);
    work(&c, 0, 2, 1);
    work(&c, 10, 8, 1);
    work(&c, 20, 2, 1);
    work(&c, 40, 1, 3);
    cr_assert(eq(int, totals_end(&c.totals, 41), 0));
    cr_assert(eq(sz, c.totals.at.n, 3));
    for (size_t i = 0; i < 3; i++) {
        cr_expect(eq(u32, c.totals.at.v[i].parallelism, want[i].parallelism));
        cr_expect(eq(i64, c.totals.at.v[i].ms, want[i].ms), "row %zu", i);
    }
    cr_expect(eq(sz, c.totals.vertices[1].n, 2));
    cr_expect(eq(i64, totals_lifetime_ms(&c.totals), 41));
    close_counting(&c);
}

Test(totals, stop_the_clock_of_downtime_when_the_job_ends)
{
    struct fake_step step = {30, PLIANT_EV_TICK, .offered = 4};
    struct counting c;

    open_counting(&c);
    work(&c, 10, 2, 2);
    step.changes[0] = fake_change(PLIANT_EXECUTING, PLIANT_FAILING, PLIANT_REASON_NOT_RECOVERABLE);
    count(&c, &step);
    step.at_ms = 37;
    step.changes[0] = fake_change(PLIANT_FAILING, PLIANT_FINISHED, PLIANT_REASON_ALL_CANCELED);
    count(&c, &step);
    cr_assert(eq(int, totals_end(&c.totals, 1000), 0));
    cr_expect(eq(i64, c.totals.downtime_ms, 7));
    cr_expect(eq(i64, totals_lifetime_ms(&c.totals), 27));
    cr_expect(eq(i64, c.totals.state_ms[PLIANT_FINISHED], 963));
    cr_expect(eq(u64, c.totals.slot_ms_offered, 4 * 27));
    close_counting(&c);
}

Test(totals, tell_lost_nodes_from_drained_ones)
{
    static const struct fake_step steps[] = {
        {0, PLIANT_EV_NODE_UP, .nodes = 1},
        {0, PLIANT_EV_NODE_UP, .nodes = 2},
        {1, PLIANT_EV_NODE_DRAINING, .nodes = 2, .draining = 1},
        {2, PLIANT_EV_NODE_DRAIN_WITHDRAWN, .nodes = 2},
        {3, PLIANT_EV_NODE_DRAINING, .nodes = 2, .draining = 1},
        {4, PLIANT_EV_NODE_LOST, .nodes = 1, .draining = 0},
        {5, PLIANT_EV_NODE_LOST, .nodes = 0, .draining = 0},
    };
    struct counting c;

    open_counting(&c);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        count(&c, &steps[i]);
    cr_expect(eq(u64, c.totals.nodes_joined, 2));
    cr_expect(eq(u64, c.totals.nodes_drained, 2));
    cr_expect(eq(u64, c.totals.drains_withdrawn, 1));
    cr_expect(eq(u64, c.totals.nodes_left, 1));
    cr_expect(eq(u64, c.totals.nodes_lost, 1));
    close_counting(&c);
}

Test(totals, do_not_overflow_in_gaps_of_ages)
{
    struct fake_step step = {0, PLIANT_EV_NODE_UP, .nodes = 1, .offered = 4000000};
    struct counting c;

    open_counting(&c);
    count(&c, &step);
    cr_assert(eq(int, totals_end(&c.totals, INT64_C(1) << 53), 0));
    cr_expect(eq(u64, c.totals.slot_ms_offered, UINT64_MAX));
    close_counting(&c);
}

/* ---- series ------------------------------------------------------------------------------- */

Test(series, keeps_extremes_and_counts_however_long_the_run)
{
    struct pliant_job *job = fake_job("wc");
    struct series_column columns[4];
    struct series s;
    struct view view;
    struct fake fake;
    uint32_t lost = 0;
    double area = 0;

    cr_assert(eq(int, view_init(&view, job), 0));
    cr_assert(eq(int, series_init(&s, 16), 0));
    for (int i = 0; i < 10000; i++) {
        struct fake_step step = {i * INT64_C(1000), PLIANT_EV_NODE_UP, .nodes = 1, .offered = 5};

        if (i == 5000)
            step.offered = 900;
        if (i % 2)
            step.nodes = 0;
        fake_take(&fake, &view, &step);
        series_take(&s, &view);
    }
    series_end(&s, 10000000);
    series_resample(&s, columns, 4);
    for (int i = 0; i < 4; i++) {
        lost += columns[i].lost;
        area += columns[i].offered.area;
    }
    cr_expect(eq(u32, lost, 5000));
    cr_expect(eq(dbl, area, 5.0 * 9999000 + 900 * 1000));
    cr_expect(eq(u32, series_highest(columns, 4), 900));
    cr_expect(eq(u32, columns[3].offered.min, 5));
    cr_expect(ge(i64, series_extent_ms(&s), 10000000));
    cr_expect(lt(i64, series_extent_ms(&s), 10000000 + s.width_ms + 1));
    series_free(&s);
    view_free(&view);
    pliant_job_destroy(&job);
}

Test(series, goes_on_as_before_where_there_are_more_columns_than_time)
{
    struct pliant_job *job = fake_job("wc");
    struct series_column columns[8];
    struct series s;
    struct view view;
    struct fake fake;

    cr_assert(eq(int, view_init(&view, job), 0));
    cr_assert(eq(int, series_init(&s, 16), 0));
    fake_take(&fake, &view, &(struct fake_step){0, PLIANT_EV_NODE_UP, .nodes = 1, .offered = 3});
    series_take(&s, &view);
    series_end(&s, 1);
    series_resample(&s, columns, 8);
    cr_expect(eq(u32, columns[7].offered.min, 3));
    cr_expect(eq(u32, columns[7].offered.max, 3));
    series_free(&s);
    view_free(&view);
    pliant_job_destroy(&job);
}

/* ---- times -------------------------------------------------------------------------------- */

Test(time_text, reads_well)
{
    /* clang-format off */
    static const struct { int64_t ms; const char *stopwatch, *span; } rows[] = {
        {0, "0.000", "0 s"}, {7, "0.007", "7 ms"}, {16800, "16.800", "16.8 s"},
        {59999, "59.999", "59.999 s"}, {76800, "1:16.800", "1 min 16 s"},
        {120000, "2:00.000", "2 min"}, {3600000, "1:00:00.000", "1 h"},
        {41100000, "11:25:00.000", "11 h 25 min"}, {187200000, "52:00:00.000", "2 d 4 h"},
    };
    /* clang-format on */
    char buf[TIME_TEXT_MAX];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect(eq(str, (char *)time_stopwatch(buf, rows[i].ms), (char *)rows[i].stopwatch));
        cr_expect(eq(str, (char *)time_span(buf, rows[i].ms), (char *)rows[i].span));
    }
}

Test(time_text, cuts_an_axis_into_round_pieces)
{
    /* clang-format off */
    static const struct { int64_t end_ms, step_ms; const char *second, *unit; } rows[] = {
        {5, 1, "0.001 s", ""}, {900, 100, "0.1 s", ""}, {50000, 5000, "5 s", ""},
        {300000, 30000, "0:30", "min:s"}, {3300000, 300000, "5 min", ""},
        {10000000, 900000, "0:15", "h:min"}, {41000000, 3600000, "1 h", ""},
        {172000000, 21600000, "6 h", ""}, {INT64_C(2600000000), 432000000, "5 d", ""},
        {INT64_C(1) << 53, INT64_C(864000000000000), "10000000 d", ""},
    };
    /* clang-format on */
    char buf[TIME_TEXT_MAX];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t step = time_tick_step(rows[i].end_ms, 12);

        cr_expect(eq(i64, step, rows[i].step_ms), "row %zu", i);
        cr_expect(
            eq(str, (char *)time_tick(buf, step, step, rows[i].end_ms), (char *)rows[i].second));
        cr_expect(eq(str, (char *)time_tick_unit(step, rows[i].end_ms), (char *)rows[i].unit));
        cr_expect(le(i64, rows[i].end_ms / step, 12));
    }
}

/* ---- the scheduler behind a view ------------------------------------------------------------ */

static void look(struct view *v, const struct world *w)
{
    const struct pliant_event tick = {.kind = PLIANT_EV_TICK};
    const struct pliant_actions actions = {w->actions, w->n_actions};
    const struct sim_step step = {
        .at_ms = w->now_ms, .event = &tick, .actions = &actions, .sched = w->s};

    view_take(v, &step);
}

Test(view, tells_what_a_rescale_aims_at)
{
    struct world w = world_running(
        (struct world_spec){
            .parallelism = 4,
            .options = {"jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling", "0 s",
                        "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout",
                        "0 s", NULL}},
        2);
    struct view v;

    cr_assert(eq(int, view_init(&v, w.job), 0));
    look(&v, &w);
    cr_expect(eq(u32, v.parallelism[0], 2));
    cr_expect(eq(u32, view_used(&v), 2));
    cr_expect(not(v.has_aim));
    w.cancels = false;
    world_node(&w, "n2", 3);
    cr_assert(eq(int, (int)pliant_state(w.s), PLIANT_RESTARTING));
    look(&v, &w);
    cr_expect(v.has_aim);
    cr_expect(eq(u32, v.aim[0], 4));
    cr_expect(eq(u32, v.parallelism[0], 2), "as it ran");
    cr_expect(eq(u32, view_used(&v), 0));
    cr_expect(eq(int, (int)view_node_news(&v), VIEW_NODE_JOINED));
    world_free(&w);
    view_free(&v);
}

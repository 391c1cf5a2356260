/* agent_exchange_test.c - a real pliant-agent, and tasks that read and write blocking edges */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/fake_daemon.h"

#define WORKER PLIANT_PROGRAMS "/pliant-worker "

static struct fake f;
static char root[160], of_job[256];

static void set_up(void)
{
    fake_open(&f);
    snprintf(root, sizeof root, "%s/results", f.dir);
    snprintf(of_job, sizeof of_job, "%s/" FAKE_JOB, root);
}

static void tear_down(void)
{
    fake_close(&f);
}

TestSuite(agent_exchange, .init = set_up, .fini = tear_down, .timeout = 120);

static void start(void)
{
    fake_agent(&f, "--slots", "4", NULL);
    fake_hello(&f);
}

/* ROOT/JOB/PATH; valid until the next call. */
static const char *at(const char *path)
{
    static char text[400];

    snprintf(text, sizeof text, "%s/%s", of_job, path);
    return text;
}

static bool is_there(const char *path)
{
    return access(at(path), F_OK) == 0;
}

static void until_gone(const char *path)
{
    int64_t until_ms = fake_now_ms() + FAKE_WAIT_MS;

    while (is_there(path) && fake_now_ms() < until_ms)
        fake_pause();
    cr_assert(!is_there(path), "%s is still there", path);
}

static void make(const char *path, const char *text)
{
    char command[1000];
    FILE *out;

    snprintf(command, sizeof command, "mkdir -p \"$(dirname %s)\"", at(path));
    cr_assert(system(command) == 0);
    out = fopen(at(path), "w");
    cr_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

#define OUTPUT "\"outputs\":[{\"edge\":3,\"to\":\"sink\",\"dir\":\"v-sink-3\",\"subpartitions\":3}]"
#define INPUT                                                                                      \
    "\"inputs\":[{\"edge\":1,\"from\":\"src\",\"dir\":\"src-v-1\",\"reads\":[[0,1,2,3],[2,2,0,0]]" \
    ",\"attempts\":[[1,4]]}]"
#define NO_INPUT "\"inputs\":[]"
#define NO_OUTPUT "\"outputs\":[]"

static void deploy(int subtask, int attempt, const char *script, const char *inputs,
                   const char *outputs)
{
    char more[8192];

    snprintf(more, sizeof more, ",\"results\":\"%s\",%s,%s", root, inputs, outputs);
    fake_deploy(&f, subtask, attempt, script, more);
}

/* What the task printed; the caller frees. */
static char *printed(int subtask, int attempt)
{
    char path[300];

    snprintf(path, sizeof path, "%s/logs/" FAKE_JOB "/v-%d.%d.stdout", f.work, subtask, attempt);
    return fake_read_file(path);
}

static void make_inputs(void)
{
    make("src-v-1/0.1/2", "a");
    make("src-v-1/1.4/3", "b");
    make("src-v-1/2.1/1", "c"); /* for somebody else */
}

/* ---- what a task is told ----------------------------------------------------------------------
 */

Test(agent_exchange, a_task_finds_what_it_reads_and_where_it_writes)
{
    char *text, wanted[2400];

    start();
    make_inputs();
    make("v-sink-3/0.1/0", "of an earlier start");
    deploy(0, 1, WORKER "inputs; " WORKER "outputs; ls $(" WORKER "outputs); cat $PLIANT_INPUTS",
           INPUT, OUTPUT);
    cr_assert_eq(fake_int(fake_state(&f, 0, 1, "ended"), "end.code"), 0);
    snprintf(wanted, sizeof wanted,
             "%s/src-v-1/0.1/2\n%s/src-v-1/1.4/3\n%s/v-sink-3/0.1\n"
             "[{\"edge\":1,\"from\":\"src\",\"partitions\":["
             "{\"subtask\":0,\"attempt\":1,\"dir\":\"%s/src-v-1/0.1\",\"subpartitions\":[2,3]},"
             "{\"subtask\":1,\"attempt\":4,\"dir\":\"%s/src-v-1/1.4\",\"subpartitions\":[2,3]},"
             "{\"subtask\":2,\"attempt\":1,\"dir\":\"%s/src-v-1/2.1\",\"subpartitions\":[0,0]}]}]"
             "\n",
             of_job, of_job, of_job, of_job, of_job, of_job);
    text = printed(0, 1);
    cr_expect_str_eq(text, wanted);
    free(text);
}

Test(agent_exchange, a_task_without_such_edges_has_no_files)
{
    start();
    fake_deploy(&f, 0, 1, "test -z \"$PLIANT_INPUTS$PLIANT_OUTPUTS\"", "");
    cr_expect_eq(fake_int(fake_state(&f, 0, 1, "ended"), "end.code"), 0);
}

Test(agent_exchange, what_is_no_edge_is_not_started)
{
    static const char *const rows[][2] = {
        {"\"inputs\":[{\"edge\":1}]", NO_OUTPUT},
        {"\"inputs\":[{\"edge\":1,\"from\":\"a\",\"dir\":\"..\",\"reads\":[],\"attempts\":[]}]",
         NO_OUTPUT},
        {NO_INPUT, "\"outputs\":7"},
        {NO_INPUT, "\"outputs\":[{\"edge\":3,\"to\":\"x\",\"dir\":\"a/b\",\"subpartitions\":3}]"},
        {NO_INPUT, "\"outputs\":[{\"edge\":3,\"to\":\"x\",\"dir\":\"a\",\"subpartitions\":-1}]"},
    };

    start();
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        deploy(0, i + 1, "exit 0", rows[i][0], rows[i][1]);
        cr_expect_str_eq(fake_text(fake_state(&f, 0, i + 1, "ended"), "end.how"), "not-started",
                         "row %d", i);
    }
}

/* ---- sizes ------------------------------------------------------------------------------------
 */

/* "edge:b0,b1,...;" of the outputs in an end. */
static const char *sizes(const struct doc *task)
{
    static char text[400];
    const struct doc *end = doc_get(task, "end"), *outputs = end ? doc_get(end, "outputs") : NULL;
    size_t n = 0;

    *text = '\0';
    for (const struct doc *o = outputs ? outputs->child : NULL; o; o = o->next) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s:", doc_get(o, "edge")->text);
        for (const struct doc *b = doc_get(o, "bytes")->child; b; b = b->next)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", b->text, b->next ? "," : ";");
    }
    return text;
}

Test(agent_exchange, tells_how_much_was_written_when_the_task_has_ended)
{
    const struct doc *d;

    start();
    deploy(0, 1,
           "cd $(" WORKER "outputs) && printf abc >0 && printf x >2 && printf y >3 && "
           "printf z >00 && mkdir 1",
           NO_INPUT, OUTPUT);
    d = fake_state(&f, 0, 1, "ended");
    cr_expect_str_eq(sizes(d), "3:3,0,1;");
    fake_unbind(&f); /* and says so again until it is forgotten */
    fake_bind(&f);
    d = fake_hello(&f);
    cr_expect_str_eq(sizes(doc_get(d, "tasks")->child), "3:3,0,1;");
    deploy(1, 1, "printf abc >$(" WORKER "outputs)/0; exit 3", NO_INPUT, OUTPUT);
    cr_expect_str_eq(sizes(fake_state(&f, 1, 1, "ended")), "", "it has no result");
}

Test(agent_exchange, a_task_whose_output_is_gone_has_failed)
{
    static const char *const rows[] = {
        "rmdir $(" WORKER "outputs)",
        "d=$(" WORKER "outputs); rmdir $d && printf x >$d",
    };

    start();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct doc *d;

        deploy((int)i, 1, rows[i], NO_INPUT, OUTPUT);
        d = fake_state(&f, (int)i, 1, "ended");
        cr_expect_eq(fake_int(d, "end.code"), 0);
        cr_expect(strstr(fake_text(d, "end.cause"), "its output is gone"), "%s",
                  fake_text(d, "end.cause"));
        cr_expect_str_eq(sizes(d), "", "it has no result");
    }
}

Test(agent_exchange, what_the_task_says_of_sizes_is_what_counts)
{
    static const struct {
        const char *said;
        int code; /* of the command */
    } rows[] = {
        {"--to nobody 1 2 3", 1},  {"--to sink 1 2", 1},      {"--to sink 1 2 3 4", 1},
        {"--to sink 1 -2 3", 2},   {"--to sink 1 two 3", 2},  {"--to sink 1 2 9007199254740992", 1},
        {"--to sink 10 20 30", 0}, {"--to sink 10 20 30", 0}, {"--to sink 10 20 31", 1},
    };
    char script[2048] = "printf abc >$(" WORKER "outputs)/0;", *text, wanted[64] = "";

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(script);

        snprintf(script + n, sizeof script - n, WORKER "output-sizes %s; echo $?;", rows[i].said);
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%d\n", rows[i].code);
    }
    start();
    deploy(0, 1, script, NO_INPUT, OUTPUT);
    cr_expect_str_eq(sizes(fake_state(&f, 0, 1, "ended")), "3:10,20,30;");
    text = printed(0, 1);
    cr_expect_str_eq(text, wanted);
    free(text);
}

/* Three tasks with 150 KB of sizes each: what of them is too much for HELLO comes behind it. */
Test(agent_exchange, more_sizes_than_a_message_holds_are_told_one_after_the_other)
{
    char outputs[1024] = "\"outputs\":[";
    bool later = false;
    const struct doc *d;

    for (int edge = 0; edge < 5; edge++)
        snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs),
                 "%s{\"edge\":%d,\"to\":\"t\",\"dir\":\"v-t-%d\",\"subpartitions\":15000}",
                 edge ? "," : "", edge, edge);
    strcat(outputs, "]");
    start();
    for (int i = 0; i < 3; i++) {
        deploy(i, 1, "exit 0", NO_INPUT, outputs);
        fake_state(&f, i, 1, "ended");
    }
    fake_unbind(&f);
    fake_bind(&f);
    d = fake_hello(&f);
    for (const struct doc *t = doc_get(d, "tasks")->child; t; t = t->next)
        later |= strcmp(fake_text(t, "state"), "running") == 0;
    cr_assert(later, "the message was long enough");
    d = fake_state(&f, 2, 1, "ended");
    cr_expect_str_eq(fake_text(d, "end.how"), "exited");
    d = doc_get(doc_get(d, "end"), "outputs");
    cr_expect_eq(d->n, 5);
    cr_expect_eq(doc_get(d->child, "bytes")->n, 15000);
}

/* ---- lost inputs -------------------------------------------------------------------------------
 */

static void expect_lost(const struct doc *d, int edge, int subtask, int attempt)
{
    cr_expect_eq(fake_int(d, "end.input_lost.edge"), edge);
    cr_expect_eq(fake_int(d, "end.input_lost.subtask"), subtask);
    cr_expect_eq(fake_int(d, "end.input_lost.attempt"), attempt);
}

Test(agent_exchange, does_not_start_a_task_whose_input_is_lost)
{
    const struct doc *d;

    start();
    make("src-v-1/0.1/0", "");
    make("src-v-1/1.3/0", "of another attempt");
    make("src-v-1/2.1/0", "");
    deploy(0, 1, "exit 0", INPUT, NO_OUTPUT);
    d = fake_state(&f, 0, 1, "ended");
    cr_expect_str_eq(fake_text(d, "end.how"), "not-started");
    cr_expect(strstr(fake_text(d, "end.cause"), "1.4"), "%s", fake_text(d, "end.cause"));
    expect_lost(d, 1, 1, 4);
}

Test(agent_exchange, a_lost_input_is_no_empty_one)
{
    char *text;

    start();
    make_inputs();
    deploy(0, 1,
           "rm -r $(dirname $(dirname $(" WORKER "inputs | head -1)))/1.4;" WORKER
           "inputs >/dev/null; echo $?;" WORKER "inputs --json; echo $?",
           INPUT, NO_OUTPUT);
    fake_state(&f, 0, 1, "ended");
    text = printed(0, 1);
    cr_expect_str_eq(text, "1\n1\n");
    free(text);
}

Test(agent_exchange, passes_on_what_a_task_finds_lost)
{
    const struct doc *d;
    char *text;

    start();
    make_inputs();
    deploy(0, 1,
           WORKER "input-lost --from src --subtask 9; echo $?;" WORKER
                  "input-lost --from dst --subtask 2; echo $?;" WORKER
                  "input-lost --from src --subtask 2; echo $?; exit 1",
           INPUT, NO_OUTPUT);
    d = fake_state(&f, 0, 1, "ended");
    cr_expect_str_eq(fake_text(d, "end.how"), "exited");
    expect_lost(d, 1, 2, 1);
    text = printed(0, 1);
    cr_expect_str_eq(text, "1\n1\n0\n");
    free(text);
}

Test(agent_exchange, what_a_task_said_outlives_the_agent)
{
    const struct doc *d;

    fake_agent(&f, "--slots", "4", "--keep-tasks", NULL);
    fake_hello(&f);
    make_inputs();
    deploy(0, 1,
           WORKER
           "output-sizes --to sink 1 2 3; touch said; while [ ! -e go ]; do sleep 0.02; done",
           NO_INPUT, OUTPUT);
    deploy(1, 1,
           WORKER "input-lost --from src --subtask 1; touch said;"
                  "while [ ! -e go ]; do sleep 0.02; done; exit 1",
           INPUT, NO_OUTPUT);
    for (int i = 0; i < 2; i++) {
        char path[200];

        snprintf(path, sizeof path, "%s/tasks/%d/work/said", f.work, i);
        fake_until_file(path);
    }
    fake_signal(&f, SIGKILL);
    fake_wait(&f);
    fake_agent(&f, "--slots", "4", "--keep-tasks", NULL);
    fake_hello(&f);
    for (int i = 0; i < 2; i++) {
        char path[200];

        snprintf(path, sizeof path, "%s/tasks/%d/work/go", f.work, i);
        fclose(fopen(path, "w"));
        d = fake_state(&f, i, 1, "ended");
        if (i == 0)
            cr_expect_str_eq(sizes(d), "3:1,2,3;");
        else
            expect_lost(d, 1, 1, 4);
    }
}

/* ---- deleting ----------------------------------------------------------------------------------
 */

Test(agent_exchange, of_a_task_that_is_forgotten_only_a_result_stays)
{
    start();
    for (int i = 0; i < 3; i++) {
        deploy(i, 1, i == 1 ? "exit 1" : "exit 0", NO_INPUT, OUTPUT);
        fake_state(&f, i, 1, "ended");
    }
    fake_send(&f, MESSAGE_FORGET, "{\"tasks\":[{" FAKE_TASK ",\"finished\":true}]}", 0, 1);
    fake_send(&f, MESSAGE_FORGET, "{\"tasks\":[{" FAKE_TASK "},{" FAKE_TASK "}]}", 1, 1, 2, 1);
    until_gone("v-sink-3/1.1");
    until_gone("v-sink-3/2.1"); /* it ended well, and the job did not want it any more */
    cr_expect(is_there("v-sink-3/0.1"));
}

static void discard(const char *job, const char *result)
{
    fake_send(&f, MESSAGE_DISCARD, "{\"results\":[{\"job\":\"%s\",\"dir\":\"%s\",\"result\":%s}]}",
              job, root, result);
}

Test(agent_exchange, deletes_what_it_is_told_to_and_says_when_all_is_gone)
{
    const struct doc *d;

    start();
    make("a-b-0/0.1/0", "x");
    make("a-b-0/0.1/deep/deeper/0", "x");
    make("a-b-0/1.1/0", "x");
    discard(FAKE_JOB, "\"a-b-0/0.1\"");
    until_gone("a-b-0/0.1");
    cr_expect(is_there("a-b-0/1.1/0"));
    for (int i = 0; i < 2; i++) { /* also if it is gone already */
        discard(FAKE_JOB, "null");
        d = fake_next(&f, MESSAGE_DISCARDED);
        cr_expect_str_eq(fake_text(d, "job"), FAKE_JOB);
        cr_expect_str_eq(fake_text(d, "error"), "");
        cr_expect(!is_there(""));
    }
}

Test(agent_exchange, deletes_nothing_outside_of_the_results)
{
    static const char *const names[] = {"\"..\"",       "\"../0.1\"",    "\"a/../0.1\"",
                                        "\"a-b-0/..\"", "\"a-b-0/\"",    "\"/0.1\"",
                                        "\"a-b-0\"",    "\"\"",          "7",
                                        "\"link/0.1\"", "\"a-b-0/link\""};
    char precious[220], dir[200];

    start();
    make("a-b-0/0.1/0", "x");
    snprintf(dir, sizeof dir, "%s/else", f.dir);
    snprintf(precious, sizeof precious, "%s/0.1", dir);
    cr_assert(mkdir(dir, 0700) == 0 && mkdir(precious, 0700) == 0);
    cr_assert(symlink(dir, at("link")) == 0);
    cr_assert(symlink(dir, at("a-b-0/link")) == 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        discard(FAKE_JOB, names[i]);
    discard("..", "null");
    discard("a/b", "null");
    discard("other", "null"); /* in the order in which they were told: the last one */
    cr_assert_str_eq(fake_text(fake_next(&f, MESSAGE_DISCARDED), "job"), "other");
    cr_expect(access(precious, F_OK) == 0);
    cr_expect(is_there("a-b-0/0.1/0"));
    cr_expect(!is_there("a-b-0/link"), "the link itself goes");
    discard(FAKE_JOB, "null");
    fake_next(&f, MESSAGE_DISCARDED);
    cr_expect(access(precious, F_OK) == 0, "links in it are not followed");
    cr_expect(!is_there(""));
}

/* trace_test.c - the trace reader: lines, events, history */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing_alloc.h"
#include "spec/memory.h"
#include "spec/quick_line.h"
#include "spec/trace.h"

#define HEADER "{\"pliant_trace\":1,\"name\":\"x\"}\n"
#define UP(t, node) "{\"t\":" #t ",\"ev\":\"node_up\",\"node\":\"" node "\",\"slots\":2}\n"
#define DOWN(t, node) "{\"t\":" #t ",\"ev\":\"node_down\",\"node\":\"" node "\"}\n"
#define DRAIN(t, node)                                                                             \
    "{\"t\":" #t ",\"ev\":\"node_drain\",\"node\":\"" node "\",\"deadline_ms\":30000,"             \
    "\"reason\":\"scale-down\"}\n"

static struct pliant_job *new_job(void)
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "src", .parallelism = 4, .max_parallelism = 8},
        {.id = "map", .parallelism = 4, .max_parallelism = 8}};
    const struct pliant_job_spec spec = {.vertices = vertices, .n_vertices = 2};
    struct pliant_job *job = NULL;

    cr_assert(eq(int, pliant_job_new(&spec, NULL, &job, NULL), 0));
    return job;
}

static struct trace *open_text(const char *text, const struct trace_rules *rules)
{
    struct spec_error err = {""};
    struct trace *t = NULL;

    cr_assert(trace_of_text("t.jsonl", text, strlen(text), rules, &t, &err) == 0, "%s", err.text);
    return t;
}

/* The first error of a text, or "" */
static const char *first_error(const char *text, size_t size, const struct trace_rules *rules)
{
    static struct spec_error err;
    struct trace_event ev;
    struct trace *t = NULL;
    int r = trace_of_text("t.jsonl", text, size, rules, &t, &err);

    while (r >= 0 && (r = trace_next(t, &ev, &err)) == 1)
        ;
    trace_close(&t);
    cr_assert(r == 0 || r == -EINVAL);
    return r == 0 ? "" : err.text;
}

/* Is this part of it? Of "" only "" is. */
static bool says(const char *text, const char *part)
{
    return *part ? strstr(text, part) != NULL : *text == '\0';
}

/* ---- what a line says --------------------------------------------------------------------- */

Test(trace, reads_each_kind_of_event_with_all_that_it_has)
{
    static const struct trace_rules rules = {0};
    struct trace *t = open_text(
        HEADER
        "{\"t\":1,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":2,\"zone\":\"z\",\"domain\":\"\","
        "\"labels\":{\"gpu\":\"a100\",\"x\":\"\"},\"x-note\":[1]}\r\n"
        "\n"
        "{\"ev\":\"node_drain\",\"t\":2,\"node\":\"n1\",\"deadline_ms\":-1,\"reason\":\"idle\"}\n"
        "{\"t\":3,\"ev\":\"node_up\",\"node\":\"n1\",\"slots\":2}\n"
        "{\"t\":4,\"ev\":\"node_down\",\"node\":\"n1\"}\n"
        "{\"t\":5,\"ev\":\"checkpoint\",\"id\":7}\n"
        "{\"t\":6,\"ev\":\"checkpoint_failed\",\"id\":8,\"counts\":false}\n"
        "{\"t\":7,\"ev\":\"savepoint_completed\",\"path\":\"/s\"}\n"
        "{\"t\":8,\"ev\":\"savepoint_failed\",\"cause\":\"c\"}\n"
        "{\"t\":9,\"ev\":\"task_running\",\"vertex\":\"src\",\"subtask\":0}\n"
        "{\"t\":10,\"ev\":\"task_finished\",\"vertex\":\"src\",\"subtask\":1}\n"
        "{\"t\":11,\"ev\":\"task_canceled\",\"vertex\":\"src\",\"subtask\":2}\n"
        "{\"t\":12,\"ev\":\"task_failed\",\"vertex\":\"map\",\"subtask\":3,\"recoverable\":false,"
        "\"cause\":\"oom\"}\n"
        "{\"t\":13,\"ev\":\"global_failure\"}\n"
        "{\"t\":14,\"ev\":\"creation_failed\",\"recoverable\":false}\n"
        "{\"t\":15,\"ev\":\"requirements\",\"vertices\":{\"src\":{\"min\":1,\"max\":3},\"map\":{}}}"
        "\n"
        "{\"t\":16,\"ev\":\"cancel\"}\n"
        "{\"t\":1099511627776,\"ev\":\"suspend\"}\n"
        "{\"t\":9007199254740992,\"ev\":\"stop_with_savepoint\"}",
        &rules);
    struct spec_error err;
    struct trace_event ev[TRACE_KINDS + 1];
    struct trace_event got;

    for (size_t i = 0; i < 18; i++) {
        cr_assert(eq(int, trace_next(t, &got, &err), 1), "%s", err.text);
        ev[i] = got;
        if (i == 0) {
            cr_assert(eq(sz, got.n_labels, 2));
            cr_assert(eq(str, (char *)got.labels[0].key, "gpu"));
            cr_assert(eq(str, (char *)got.labels[0].value, "a100"));
            cr_assert(eq(str, (char *)got.zone, "z"));
            cr_assert(eq(ptr, (void *)got.domain, NULL));
        }
        if (got.kind == TRACE_TASK_FAILED) {
            cr_assert(eq(str, (char *)got.vertex, "map"));
            cr_assert(eq(str, (char *)got.cause, "oom"));
        }
        if (got.kind == TRACE_REQUIREMENTS) {
            cr_assert(eq(sz, got.n_bounds, 2));
            cr_assert(eq(str, (char *)got.bounds[0].vertex, "src"));
            cr_assert(eq(i64, got.bounds[0].min, 1));
            cr_assert(eq(i64, got.bounds[0].max, 3));
            cr_assert(eq(i64, got.bounds[1].min, -1));
        }
        if (got.kind == TRACE_SAVEPOINT_COMPLETED)
            cr_assert(eq(str, (char *)got.path, "/s"));
    }
    cr_assert(eq(int, trace_next(t, &got, &err), 0));
    cr_expect(eq(str, (char *)trace_name(t), "x"));
    cr_expect(eq(u32, ev[0].slots, 2));
    cr_expect(eq(u32, ev[0].line, 2));
    cr_expect(eq(u32, ev[1].line, 4));
    cr_expect(eq(int, ev[1].reason, PLIANT_DRAIN_IDLE));
    cr_expect(eq(i64, ev[1].deadline_ms, -1));
    cr_expect(ev[2].withdraws);
    cr_expect(not(ev[0].withdraws));
    cr_expect(eq(u64, ev[2].incarnation, ev[0].incarnation));
    cr_expect(eq(u64, ev[4].id, 7));
    cr_expect(ev[4].counts);
    cr_expect(not(ev[5].counts));
    cr_expect(eq(u32, ev[10].subtask, 2));
    cr_expect(not(ev[11].recoverable));
    cr_expect(ev[12].recoverable);
    cr_expect(not(ev[13].recoverable));
    cr_expect(eq(i64, ev[16].t_ms, INT64_C(1) << 40));
    trace_close(&t);
}

Test(trace, names_the_place_and_what_is_accepted)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "t.jsonl: the file is empty"},
        {"\n\n", "the file is empty"},
        {"{\"t\":0,\"ev\":\"cancel\"}\n", "t.jsonl:1: a trace begins with its header"},
        {"[]\n", "t.jsonl:1: a trace begins with its header"},
        {"{\"pliant_trace\":2}\n", "t.jsonl:1: pliant_trace: unknown version"},
        {"{\"pliant_trace\":\"1\"}\n", "t.jsonl:1: pliant_trace: unknown version"},
        {HEADER "7\n", "t.jsonl:2: accepted: an event"},
        {HEADER "{\"t\":5}\n", "\"ev\" is missing"},
        {HEADER "{\"t\":5,\"ev\":7}\n", "t.jsonl:2: ev: "},
        {HEADER "{\"t\":5,\"ev\":\"node_upp\"}\n", "did you mean \"node_up\"?"},
        {HEADER "{\"t\":5,\"ev\":\"zzzzzzzzzzzzzz\"}\n", "unknown event \"zzzzzzzzzzzzzz\""},
        {HEADER "{\"t\":5,\"ev\":\"worker_exit\"}\n", "\"vertex\" is missing"},
        {HEADER "{\"t\":5,\"ev\":\"worker_exit\",\"vertex\":\"worker\",\"subtask\":0}\n",
         "accepted: \"code\" or \"signal\""},
        {HEADER "{\"t\":5,\"ev\":\"worker_exit\",\"vertex\":\"worker\",\"subtask\":0,\"code\":1,"
                "\"signal\":9}\n",
         "accepted: \"code\" or \"signal\""},
        {HEADER
         "{\"t\":5,\"ev\":\"worker_exit\",\"vertex\":\"worker\",\"subtask\":0,\"code\":256}\n",
         "accepted: an integer from 0 to 255"},
        {HEADER "{\"t\":5,\"ev\":\"report\",\"vertex\":\"worker\",\"subtask\":0,\"call\":0}\n",
         "accepted: an integer from 1 to"},
        {HEADER "{\"t\":5,\"ev\":\"launched\",\"rank\":1}\n", "unknown key"},
        {HEADER "{\"ev\":\"cancel\"}\n", "\"t\" is missing"},
        {HEADER "{\"t\":5,\"ev\":\"cancel\",\"node\":\"n\"}\n", "t.jsonl:2: "},
        {HEADER "{\"t\":5,\"ev\":\"node_down\",\"nod\":\"n\",\"node\":\"n\"}\n",
         "did you mean node?"},
        {HEADER "{\"t\":-1,\"ev\":\"cancel\"}\n", "t.jsonl:2: t: "},
        {HEADER "{\"t\":1.5,\"ev\":\"cancel\"}\n", "t.jsonl:2: t: "},
        {HEADER "{\"t\":9007199254740993,\"ev\":\"cancel\"}\n", "t.jsonl:2: t: "},
        {HEADER "{\"t\":1e300,\"ev\":\"cancel\"}\n", "t.jsonl:2: t: "},
        {HEADER "{\"t\":\"1\",\"ev\":\"cancel\"}\n", "t.jsonl:2: t: "},
        {HEADER UP(5, ""), "t.jsonl:2: node: "},
        {HEADER "{\"t\":1,\"ev\":\"node_up\",\"node\":\"n\"}\n", "\"slots\" is missing"},
        {HEADER "{\"t\":1,\"ev\":\"node_up\",\"node\":\"n\",\"slots\":-1}\n", "slots: "},
        {HEADER "{\"t\":1,\"ev\":\"node_up\",\"node\":\"n\",\"slots\":4000001}\n", "slots: "},
        {HEADER "{\"t\":1,\"ev\":\"node_up\",\"node\":\"n\",\"slots\":1,\"labels\":[]}\n",
         "t.jsonl:2: labels: accepted: a map"},
        {HEADER "{\"t\":1,\"ev\":\"node_up\",\"node\":\"n\",\"slots\":1,\"labels\":{\"a\":1}}\n",
         "t.jsonl:2: labels.a: "},
        {HEADER "{\"t\":1,\"ev\":\"node_drain\",\"node\":\"n\",\"reason\":\"bored\"}\n",
         "accepted: preemption, scale-down, upgrade, idle"},
        {HEADER "{\"t\":1,\"ev\":\"checkpoint\"}\n", "\"id\" is missing"},
        {HEADER "{\"t\":1,\"ev\":\"checkpoint\",\"id\":0}\n", "t.jsonl:2: id: "},
        {HEADER "{\"t\":1,\"ev\":\"task_failed\",\"vertex\":\"v\",\"subtask\":32768}\n",
         "subtask: "},
        {HEADER "{\"t\":1,\"ev\":\"global_failure\",\"recoverable\":1}\n", "recoverable: "},
        {HEADER "{\"t\":1,\"ev\":\"requirements\",\"vertices\":[]}\n", "vertices: accepted"},
        {HEADER "{\"t\":1,\"ev\":\"requirements\",\"vertices\":{\"a\":{\"mix\":1}}}\n",
         "t.jsonl:2: vertices.a"},
        {HEADER "{\"t\":1,\"t\":1,\"ev\":\"cancel\"}\n", "t.jsonl:2: "},
        {HEADER "{\"t\":1,\"ev\":\"cancel\"} x\n", "t.jsonl:2:23: "},
        {HEADER "{\"t\":1,\"ev\":\"cancel\",\"x-a\":\"\xff\"}\n", "not UTF-8"},
        {HEADER "{\"t\":1,\"ev\":\"can", "the file is cut in the middle of line 2"},
        {HEADER "{\"t\":1,\"ev\":\"can\n", "t.jsonl:2:"},
        {"{\"pliant_tr", "the file is cut in the middle of line 1"},
        {HEADER UP(5, "n") UP(4, "m"), "t.jsonl:3: t: time goes back from 5 to 4"},
    };
    static const struct trace_rules lenient = {.lenient = true};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = first_error(rows[i].text, strlen(rows[i].text), &lenient);

        cr_expect(says(got, rows[i].says), "row %zu: \"%s\" has no \"%s\"", i, got, rows[i].says);
    }
}

Test(trace, refuses_nul_bytes_long_lines_and_deep_nesting)
{
    static const struct trace_rules rules = {0};
    static const char nul[] = HEADER "{\"t\":1,\"ev\":\"cancel\",\"x-\0\":1}\n";
    size_t size = strlen(HEADER), longest = 10u * 1024 * 1024;
    char *text = malloc(size + longest + 1);

    cr_expect(says(first_error(nul, sizeof nul - 1, &rules), "t.jsonl:2:"));
    memcpy(text, HEADER, size);
    memset(text + size, ' ', longest);
    text[size + longest] = '\n';
    cr_expect(says(first_error(text, size + longest + 1, &rules), "t.jsonl:2: the line is longer"));
    cr_expect(says(first_error(text, size + longest, &rules), "t.jsonl:2: the line is longer"));
    cr_expect(eq(str, (char *)first_error(text, size + TRACE_LINE_MAX, &rules), ""));
    memset(text + size, '[', 100000);
    cr_expect(says(first_error(text, size + 100000, &rules), "cut in the middle of line 2"));
    text[size + 100000] = '\n';
    cr_expect(says(first_error(text, size + 100001, &rules), "levels of nesting"));
    free(text);
}

Test(trace, takes_names_of_128_bytes_and_no_more)
{
    static const struct trace_rules rules = {0};
    char text[512];

    for (int n = 128; n <= 129; n++) {
        snprintf(text, sizeof text,
                 HEADER "{\"t\":1,\"ev\":\"node_up\",\"node\":\"%0*d\",\"slots\":1}", n, 0);
        cr_expect(says(first_error(text, strlen(text), &rules), n == 128 ? "" : "at most 128"));
    }
}

/* ---- what came before --------------------------------------------------------------------- */

Test(trace, knows_which_nodes_are_up)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {HEADER DOWN(1, "a"), "t.jsonl:2: node: node \"a\" is not up"},
        {HEADER DRAIN(1, "a"), "t.jsonl:2: node: node \"a\" is not up"},
        {HEADER UP(1, "a") UP(1, "a"), "t.jsonl:3: node: node \"a\" is up already"},
        {HEADER UP(1, "a") DOWN(1, "a") DOWN(1, "a"), "t.jsonl:4: node: node \"a\" is not up"},
        {HEADER UP(1, "a") DOWN(1, "a") DRAIN(1, "a"), "t.jsonl:4: node: node \"a\" is not up"},
        {HEADER UP(1, "a")
             DRAIN(1, "a") "{\"t\":1,\"ev\":\"node_up\",\"node\":\"a\",\"slots\":3}\n",
         "t.jsonl:4: slots: node \"a\" drains with 2 slots"},
        {HEADER UP(1, "a") DRAIN(1, "a") UP(1, "a") UP(1, "a"), "t.jsonl:5: node: "},
        /* fine: */
        {HEADER UP(1, "a") DOWN(1, "a") UP(1, "a"), ""},
        {HEADER UP(1, "a") DRAIN(1, "a") DRAIN(2, "a") DOWN(3, "a"), ""},
        {HEADER UP(1, "a") DRAIN(1, "a") DOWN(1, "a") UP(1, "a"), ""},
        {HEADER UP(1, "a") DRAIN(1, "a"), ""},
        {HEADER, ""},
    };
    static const struct trace_rules strict = {0}, lenient = {.lenient = true};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = rows[i].text;
        const char *got = first_error(text, strlen(text), &strict);

        cr_expect(says(got, rows[i].says), "row %zu: \"%s\" has no \"%s\"", i, got, rows[i].says);
        cr_expect(eq(str, (char *)first_error(text, strlen(text), &lenient), ""));
    }
}

Test(trace, knows_the_job)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"{\"t\":1,\"ev\":\"task_failed\",\"vertex\":\"sink\",\"subtask\":0}",
         "t.jsonl:2: vertex: the job has no vertex \"sink\""},
        /* one beyond what runs says nothing, as one beyond what can ever run */
        {"{\"t\":1,\"ev\":\"task_failed\",\"vertex\":\"map\",\"subtask\":7}", ""},
        {"{\"t\":1,\"ev\":\"task_failed\",\"vertex\":\"map\",\"subtask\":8}", ""},
        {"{\"t\":1,\"ev\":\"requirements\",\"vertices\":{\"sink\":{\"min\":1,\"max\":1}}}",
         "t.jsonl:2: vertices.sink: the job has no vertex \"sink\""},
        {"{\"t\":1,\"ev\":\"requirements\",\"vertices\":{\"map\":{\"min\":9,\"max\":1}}}", ""},
    };
    struct pliant_job *job = new_job();
    const struct trace_rules strict = {.job = job};
    char text[512];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got;

        snprintf(text, sizeof text, HEADER "%s\n", rows[i].line);
        got = first_error(text, strlen(text), &strict);
        cr_expect(says(got, rows[i].says), "row %zu: %s", i, got);
    }
    pliant_job_destroy(&job);
}

static void count_warning(void *ctx, const char *text)
{
    cr_assert(strstr(text, "t.jsonl:") == text);
    (*(int *)ctx)++;
}

Test(trace, leaves_out_what_does_not_fit_when_lenient_and_warns_once)
{
    int warnings = 0;
    const struct trace_rules rules = {.lenient = true, .warn = count_warning, .ctx = &warnings};
    struct trace *t = open_text(HEADER UP(1, "a") UP(2, "a") DOWN(3, "b") DOWN(4, "a"), &rules);
    struct trace_summary sum;
    struct trace_event ev;
    struct spec_error err;

    cr_assert(eq(int, trace_scan(t, &sum, &err), 0));
    cr_expect(eq(u64, sum.events, 2));
    cr_expect(eq(u64, sum.lines, 5));
    cr_expect(eq(i64, sum.last_t_ms, 4));
    cr_expect(not(sum.has_checkpoints));
    cr_expect(eq(int, warnings, 2));
    cr_assert(eq(int, trace_next(t, &ev, &err), 1));
    cr_assert(eq(int, trace_next(t, &ev, &err), 1));
    cr_expect(eq(int, ev.kind, TRACE_NODE_DOWN));
    cr_assert(eq(int, trace_next(t, &ev, &err), 0));
    cr_expect(eq(int, warnings, 2));
    trace_close(&t);
}

Test(trace, gives_each_life_of_a_node_its_own_incarnation)
{
    static const struct trace_rules rules = {0};
    struct trace *t = open_text(HEADER UP(1, "a") DOWN(1, "a") UP(1, "a") DRAIN(1, "a"), &rules);
    struct trace_event ev[4];
    struct spec_error err;

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 4; i++)
            cr_assert(eq(int, trace_next(t, &ev[i], &err), 1));
        cr_expect(eq(u64, ev[0].incarnation, 1));
        cr_expect(eq(u64, ev[1].incarnation, 1));
        cr_expect(eq(u64, ev[2].incarnation, 2));
        cr_expect(eq(u64, ev[3].incarnation, 2));
        cr_assert(eq(int, trace_rewind(t, &err), 0));
    }
    trace_close(&t);
}

Test(trace, refuses_more_slots_than_a_scheduler_takes)
{
    static const struct trace_rules lenient = {.lenient = true};
    static const char text[] =
        HEADER "{\"t\":1,\"ev\":\"node_up\",\"node\":\"a\",\"slots\":3999999}\n" UP(1, "b");

    cr_expect(says(first_error(text, strlen(text), &lenient), "4000000 slots, the limit"));
}

/* ---- where it comes from ------------------------------------------------------------------ */

Test(trace, tells_a_file_that_is_not_there_from_a_folder)
{
    static const struct trace_rules rules = {0};
    struct spec_error err;
    struct trace *t = NULL;

    cr_expect(eq(int, trace_open("/nowhere/x", &rules, &t, &err), -ENOENT));
    cr_expect(says(err.text, "/nowhere/x: "));
    cr_expect(eq(int, trace_open("/", &rules, &t, &err), -EISDIR));
    cr_expect(eq(ptr, t, NULL));
    trace_close(&t);
}

Test(trace, copies_a_pipe_so_that_it_can_be_read_twice)
{
    static const struct trace_rules rules = {0};
    struct trace_summary sum;
    struct trace_event ev;
    struct spec_error err;
    struct trace *t = NULL;
    int ends[2];

    cr_assert(eq(int, pipe(ends), 0));
    cr_assert(write(ends[1], HEADER UP(1, "a"), strlen(HEADER UP(1, "a"))) > 0);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    cr_assert(eq(int, trace_open("-", &rules, &t, &err), 0));
    cr_assert(eq(int, trace_scan(t, &sum, &err), 0));
    cr_expect(eq(u64, sum.events, 1));
    cr_expect(eq(u64, sum.bytes, strlen(HEADER UP(1, "a"))));
    cr_assert(eq(int, trace_next(t, &ev, &err), 1));
    trace_close(&t);
}

Test(trace, reads_the_given_traces)
{
    static const struct {
        const char *name;
        uint64_t events;
    } rows[] = {
        {"aws-p3-named", 344},
        {"aws-p3-named-notice120", 511},
        {"aws-p2-days1-2", 278},
        {"aws-g4dn-us-east-1c-20201120", 177},
        {"hpa-azure-llm-code", 178},
        {"gcp-a100-us-east1-b-20211211-notice30", 526},
        {"outage-facebook-day000", 10760},
    };
    static const struct trace_rules rules = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trace_summary sum = {0};
        struct spec_error err = {""};
        struct trace *t = NULL;
        char path[512];

        snprintf(path, sizeof path, PLIANT_TEST_DATA "/traces/%s.jsonl", rows[i].name);
        cr_assert(trace_open(path, &rules, &t, &err) == 0, "%s", err.text);
        cr_assert(trace_scan(t, &sum, &err) == 0, "%s", err.text);
        cr_expect(eq(u64, sum.events, rows[i].events), "%s", rows[i].name);
        cr_expect(eq(u64, sum.lines, rows[i].events + 1));
        trace_close(&t);
    }
}

/* A file longer than any buffer: lines that cross the ends of reads, and memory that stays. */
Test(trace, reads_lines_across_the_ends_of_reads)
{
    static const struct trace_rules rules = {0};
    struct trace_summary sum = {0};
    struct spec_error err = {""};
    struct trace *t = NULL;
    char path[] = "/tmp/trace_test_XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");

    fputs(HEADER, file);
    for (int i = 0; i < 20000; i++)
        fprintf(file, "{\"t\":%d,\"ev\":\"node_up\",\"node\":\"n%d\",\"slots\":1}%s", i, i,
                i % 3 ? "\n" : "\r\n");
    fprintf(file, "{\"t\":20000,\"ev\":\"cancel\",\"x-pad\":\"%0*d\"}\n", 1000000, 0);
    fclose(file);
    cr_assert(trace_open(path, &rules, &t, &err) == 0, "%s", err.text);
    unlink(path);
    cr_assert(trace_scan(t, &sum, &err) == 0, "%s", err.text);
    cr_expect(eq(u64, sum.events, 20001));
    trace_close(&t);
}

Test(trace, gives_up_cleanly_at_any_allocation)
{
    static const char text[] = HEADER UP(
        1, "a") "{\"t\":1,\"ev\":\"node_up\",\"node\":\"b\",\"slots\":1,\"labels\":{\"k\":"
                "\"\\u00e4\"}}\n"
                "{\"t\":1,\"ev\":\"requirements\",\"vertices\":{\"src\":{\"min\":1}}}\n" DOWN(2,
                                                                                              "a");
    static const struct trace_rules rules = {0};
    int r = -ENOMEM;

    for (size_t k = 1; r == -ENOMEM; k++) {
        FAILING_ALLOC(f, k);
        struct trace_summary sum;
        struct spec_error err = {""};
        struct trace *t = NULL;

        spec_memory = &f.hook;
        r = trace_of_text("t.jsonl", text, sizeof text - 1, &rules, &t, &err);
        if (r == 0)
            r = trace_scan(t, &sum, &err);
        trace_close(&t);
        spec_memory = NULL;
        cr_assert(eq(sz, f.live, 0));
        cr_assert(r == 0 || (r == -ENOMEM && *err.text), "k = %zu: %d %s", k, r, err.text);
        cr_assert(lt(sz, k, 100));
    }
}

/* ---- the quick decoder -------------------------------------------------------------------- */

static void expect_same(const struct doc *a, const struct doc *b, const char *text)
{
    cr_assert(a->kind == b->kind && a->n == b->n && a->line == b->line, "%s", text);
    cr_assert(strcmp(a->key ? a->key : "", b->key ? b->key : "") == 0, "%s", text);
    if (a->kind == DOC_STRING || a->kind == DOC_NUMBER)
        cr_assert(strcmp(a->text, b->text) == 0, "%s", text);
    if (a->kind == DOC_NUMBER)
        cr_assert(eq(dbl, a->number, b->number));
    cr_assert(eq(int, a->truth, b->truth));
    for (a = a->child, b = b->child; a; a = a->next, b = b->next)
        expect_same(a, b, text);
    cr_assert(eq(ptr, (void *)b, NULL));
}

Test(quick_line, makes_the_same_tree_or_none)
{
    static const struct {
        const char *text;
        int quick;
    } rows[] = {
        {"{}", 1},
        {" { } ", 1},
        {"{\"a\":1,\"b\":-20,\"c\":\"x y\",\"d\":true,\"e\":false,\"f\":0}", 1},
        {"{ \"a\" :\t{ \"b\" : { \"c\" : 123456789012345 } } , \"d\" : \"\" }", 1},
        {"{\"a\":1", 0},
        {"{\"a\":1}}", 0},
        {"{\"a\":1,}", 0},
        {"{\"a\":01}", 0},
        {"{\"a\":-0}", 0},
        {"{\"a\":-}", 0},
        {"{\"a\":1.5}", 0},
        {"{\"a\":1e5}", 0},
        {"{\"a\":1234567890123456}", 0},
        {"{\"a\":truth}", 0},
        {"{\"a\":null}", 0},
        {"{\"a\":[1]}", 0},
        {"{\"a\":\"\\n\"}", 0},
        {"{\"a\":\"\xc3\xa4\"}", 0},
        {"{\"a\":1,\"a\":1}", 0},
        {"{\"a\" 1}", 0},
        {"{a:1}", 0},
        {"{\"a\":1 2}", 0},
        {"{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}", 0},
        {"[]", 0},
        {"", 0},
    };
    struct quick_line q = {.text = NULL};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct doc_file f = {.name = "x"};
        struct doc *root = NULL;
        struct spec_error err;
        const char *text = rows[i].text;

        cr_expect(eq(int, quick_line(&q, text, strlen(text), 7, &root), rows[i].quick), "%s", text);
        if (root) {
            cr_assert(eq(int, doc_line(&f, text, strlen(text), 7, &err), 0));
            expect_same(root, f.root, text);
        }
        doc_free(&f);
    }
    quick_line_free(&q);
}

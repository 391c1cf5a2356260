/* case_test.c - scenario files */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_alloc.h"
#include "spec/case.h"
#include "spec/memory.h"

#define JOB "\"job\":{\"vertices\":[{\"id\":\"src\"},{\"id\":\"map\"}]}"
#define TRACE                                                                                      \
    "\"trace\":[{\"pliant_trace\":1},{\"t\":0,\"ev\":\"node_up\",\"node\":\"n\",\"slots\":1}]"
#define CASE(expect)                                                                               \
    "{\"case\":\"000\"," JOB ",\"until_ms\":10,\n" TRACE ",\n\"expect\":" expect "}"

/* Is this part of it? Of "" only "" is. */
static bool says(const char *text, const char *part)
{
    return *part ? strstr(text, part) != NULL : *text == '\0';
}

static const char *error_of(const char *text)
{
    static struct spec_error err;
    struct case_file c;
    int r = case_parse("c.json", text, strlen(text), &c, &err);

    if (r == 0)
        case_free(&c);
    cr_assert(r == 0 || r == -EINVAL);
    return r == 0 ? "" : err.text;
}

Test(case_file, reads_every_given_case)
{
    glob_t found;

    cr_assert(eq(int, glob(PLIANT_TEST_DATA "/cases/*.json", 0, NULL, &found), 0));
    cr_expect(ge(sz, found.gl_pathc, 30));
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct case_file c;
        struct trace_event ev;
        struct spec_error err = {""};

        cr_assert(case_read(found.gl_pathv[i], &c, &err) == 0, "%s", err.text);
        cr_expect(c.until_ms > 0 && c.title != NULL);
        cr_expect(eq(int, trace_next(c.trace, &ev, &err), 1)); /* it begins at its first event */
        case_free(&c);
    }
    globfree(&found);
}

Test(case_file, keeps_every_check)
{
    static const char text[] =
        CASE("{\"final_state\":\"Executing\",\"job_status\":\"RUNNING\","
             "\"states_visited\":[\"Created\",\"WaitingForResources\"],\"never\":[\"Failing\"],"
             "\"parallelism_at\":[{\"t\":5,\"vertices\":{\"src\":0,\"map\":2}}],"
             "\"rescales\":[{\"t_min\":1,\"t_max\":2,\"to\":{\"map\":3}}],"
             "\"min_restarts\":1,\"max_restarts\":2,\"downtime_ms_max\":3}");
    struct spec_error err = {""};
    struct case_file c;

    cr_assert(case_parse("c.json", text, strlen(text), &c, &err) == 0, "%s", err.text);
    cr_expect(eq(str, (char *)c.label, "000"));
    cr_expect(eq(i64, c.until_ms, 10));
    cr_expect(c.expect.has_final_state && c.expect.has_job_status);
    cr_expect(c.expect.has_states_visited && c.expect.has_rescales);
    cr_expect(eq(int, c.expect.final_state, PLIANT_EXECUTING));
    cr_expect(eq(int, c.expect.job_status, PLIANT_JOB_RUNNING));
    cr_expect(eq(sz, c.expect.n_states_visited, 2));
    cr_expect(eq(int, c.expect.states_visited[1], PLIANT_WAITING_FOR_RESOURCES));
    cr_expect(c.expect.never[PLIANT_FAILING]);
    cr_expect(not(c.expect.never[PLIANT_EXECUTING]));
    cr_assert(eq(sz, c.expect.n_parallelism_at, 1));
    cr_expect(eq(i64, c.expect.parallelism_at[0].t_ms, 5));
    cr_assert(eq(sz, c.expect.parallelism_at[0].n, 2));
    cr_expect(eq(u32, c.expect.parallelism_at[0].v[1].vertex.v, 2));
    cr_expect(eq(u32, c.expect.parallelism_at[0].v[1].parallelism, 2));
    cr_assert(eq(sz, c.expect.n_rescales, 1));
    cr_expect(eq(i64, c.expect.rescales[0].t_max_ms, 2));
    cr_expect(eq(u32, c.expect.rescales[0].to[0].parallelism, 3));
    cr_expect(eq(i64, c.expect.min_restarts, 1));
    cr_expect(eq(i64, c.expect.max_restarts, 2));
    cr_expect(eq(i64, c.expect.downtime_ms_max, 3));
    case_free(&c);
}

Test(case_file, does_not_ask_what_is_not_there)
{
    static const char text[] = CASE("{\"rescales\":[]}");
    struct spec_error err = {""};
    struct case_file c;

    cr_assert(case_parse("c.json", text, strlen(text), &c, &err) == 0, "%s", err.text);
    cr_expect(not(c.expect.has_final_state));
    cr_expect(c.expect.has_rescales && c.expect.n_rescales == 0);
    cr_expect(eq(i64, c.expect.min_restarts, CASE_NOT_ASKED));
    cr_expect(eq(ptr, (void *)c.title, NULL));
    case_free(&c);
}

Test(case_file, can_be_yaml)
{
    static const char text[] = "case: yaml\n"
                               "job:\n"
                               "  vertices:\n"
                               "    - id: src\n"
                               "until_ms: 5\n"
                               "trace:\n"
                               "  - pliant_trace: 1\n"
                               "  - {t: 0, ev: node_up, node: n1, slots: 2}\n"
                               "  - {t: 0, ev: node_up, node: n1, slots: 2}\n"
                               "expect: {final_state: Executing}\n";

    cr_expect(says(error_of(text), "c.json:9: trace[2].node: node \"n1\" is up already"));
}

Test(case_file, names_the_place_and_what_is_accepted)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"[]", "c.json:1: "},
        {"", "c.json:1: is empty; accepted: a map"},
        {"{}", "\"case\" is missing"},
        {"{\"case\":1}", "c.json:1: case: "},
        {"{\"case\":\"x\"," JOB ",\"until_ms\":1," TRACE "}", "\"expect\" is missing"},
        {"{\"case\":\"x\"," JOB ",\"until_ms\":-1," TRACE ",\"expect\":{}}",
         "c.json:1: until_ms: "},
        {"{\"case\":\"x\"," JOB ",\"until_ms\":1,\"expect\":{}}", "\"trace\" is missing"},
        {"{\"case\":\"x\",\"until_ms\":1," TRACE ",\"expect\":{}}", "\"job\" is missing"},
        {"{\"case\":\"x\",\"job\":{},\"until_ms\":1," TRACE ",\"expect\":{}}", "c.json:1: job"},
        {"{\"case\":\"x\"," JOB ",\"until_ms\":1,\"trace\":{},\"expect\":{}}",
         "trace: accepted: a list"},
        {"{\"case\":\"x\"," JOB ",\"until_ms\":1,\"trace\":[],\"expect\":{}}",
         "begins with its header"},
        {"{\"case\":\"x\"," JOB
         ",\"until_ms\":1,\"trace\":[{\"pliant_trace\":1},\n7],\"expect\":{}}",
         "c.json:2: trace[1]: accepted: an event"},
        {"{\"case\":\"x\"," JOB ",\"until_ms\":1,\"trace\":[{\"pliant_trace\":1},\n"
         "{\"t\":1,\"ev\":\"task_failed\",\"vertex\":\"sink\",\"subtask\":0}],\"expect\":{}}",
         "c.json:2: trace[1].vertex: the job has no vertex \"sink\""},
        {"{\"case\":\"x\",\"cases\":1}", "c.json:1: cases: unknown key; did you mean case?"},
        {CASE("{\"parallelism_at\":[{\"t\":1},{\"t\":1,\"t\":1}]}"),
         "c.json:3: expect.parallelism_at[1].t: this key is there twice"},
        {CASE("7"), "c.json:3: expect: is a number; accepted: a map"},
        {CASE("{\"final\":\"Executing\"}"), "c.json:3: expect.final: unknown key"},
        {CASE("{\"final_state\":\"Excuting\"}"), "accepted: Executing"},
        {CASE("{\"final_state\":7}"), "expect.final_state: "},
        {CASE("{\"job_status\":\"running\"}"),
         "expect.job_status: not a job status; accepted: INIT"},
        {CASE("{\"never\":\"Failing\"}"), "expect.never: accepted: a list of states"},
        {CASE("{\"never\":[\"Failin\"]}"), "expect.never[0]: "},
        {CASE("{\"states_visited\":{}}"), "expect.states_visited: accepted: a list"},
        {CASE("{\"states_visited\":[7]}"), "expect.states_visited[0]: "},
        {CASE("{\"parallelism_at\":7}"), "expect.parallelism_at: accepted: a list"},
        {CASE("{\"parallelism_at\":[7]}"),
         "expect.parallelism_at[0]: is a number; accepted: a map"},
        {CASE("{\"parallelism_at\":[{\"t\":1}]}"), "\"vertices\" is missing"},
        {CASE("{\"parallelism_at\":[{\"vertices\":{}}]}"), "\"t\" is missing"},
        {CASE("{\"parallelism_at\":[{\"t\":1,\"vertices\":[]}]}"), "accepted: {\"VERTEX\""},
        {CASE("{\"parallelism_at\":[{\"t\":1,\"vertices\":{\"sink\":1}}]}"), "no such vertex"},
        {CASE("{\"parallelism_at\":[{\"t\":1,\"vertices\":{\"src\":-1}}]}"), "vertices.src: "},
        {CASE("{\"rescales\":[{\"t_min\":2,\"t_max\":1,\"to\":{}}]}"),
         "\"t_min\" is after \"t_max\""},
        {CASE("{\"rescales\":[{\"t_min\":2,\"t_max\":2}]}"), "\"to\" is missing"},
        {CASE("{\"rescales\":[{\"t_max\":2}]}"), "\"t_min\" is missing"},
        {CASE("{\"min_restarts\":-1}"), "expect.min_restarts: "},
        {CASE("{}"), "c.json:3: expect: checks nothing; accepted: at least one check"},
        {CASE("{\"parallelism_at\":[{\"t\":1,\"vertices\":{}}]}"), "vertices: checks nothing"},
        {CASE("{\"parallelism_at\":[{\"t\":11,\"vertices\":{\"src\":1}}]}"),
         "expect.parallelism_at[0].t: is after \"until_ms\", the end of the run; accepted: 0 to "
         "10"},
        {CASE("{\"never\":[]}"), ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect(says(error_of(rows[i].text), rows[i].says), "row %zu: \"%s\" has no \"%s\"", i,
                  error_of(rows[i].text), rows[i].says);
}

Test(case_file, tells_a_file_that_is_not_there)
{
    struct spec_error err = {""};
    struct case_file c;

    cr_expect(eq(int, case_read("/nowhere/c.json", &c, &err), -ENOENT));
    cr_expect(says(err.text, "/nowhere/c.json: "));
}

Test(case_file, gives_up_cleanly_at_any_allocation)
{
    static const char text[] = CASE("{\"states_visited\":[\"Created\"],"
                                    "\"parallelism_at\":[{\"t\":5,\"vertices\":{\"src\":0}}],"
                                    "\"rescales\":[{\"t_min\":1,\"t_max\":2,\"to\":{\"map\":3}}]}");
    int r = -ENOMEM;

    for (size_t k = 1; r == -ENOMEM; k++) {
        FAILING_ALLOC(f, k);
        struct spec_error err = {""};
        struct case_file c;

        spec_memory = &f.hook;
        r = case_parse("c.json", text, strlen(text), &c, &err);
        if (r == 0)
            case_free(&c);
        spec_memory = NULL;
        cr_assert(eq(sz, f.live, 0), "k = %zu", k);
        cr_assert(r == 0 || r == -ENOMEM, "k = %zu: %d %s", k, r, err.text);
        cr_assert(lt(sz, k, 1000));
    }
}

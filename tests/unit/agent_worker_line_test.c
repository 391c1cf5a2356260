/* agent_worker_line_test.c - lines of a worker's socket */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "agent/worker_line.h"

static struct doc_file file;
static struct spec_error err;
static struct worker_line line;
static const char *code;

static int read_line(const char *text)
{
    return worker_line_read(&file, text, strlen(text), &line, &code, &err);
}

static void clean(void)
{
    doc_free(&file);
}

TestSuite(agent_worker_line, .fini = clean);

Test(agent_worker_line, reads_every_operation)
{
    static const struct {
        const char *text;
        enum worker_op op;
    } rows[] = {
        {"{\"op\":\"hello\"}", WORKER_HELLO},
        {"{\"op\":\"report\"}", WORKER_REPORT},
        {"{\"op\":\"enter\"}", WORKER_ENTER},
        {"{\"op\":\"get_preemption_info\"}", WORKER_GET_PREEMPTION_INFO},
        {"{\"op\":\"get_checkpoint\"}", WORKER_GET_CHECKPOINT},
        {"{\"op\":\"part\",\"id\":\"1\",\"ok\":true}", WORKER_PART},
        {"{\"op\":\"end_of_data\",\"what\":\"ever\"}", WORKER_END_OF_DATA},
        {"{\"op\":\"output\",\"edge\":0,\"bytes\":[]}", WORKER_OUTPUT},
        {"{\"op\":\"input_lost\",\"edge\":0,\"subtask\":0}", WORKER_INPUT_LOST},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(read_line(rows[i].text), 0, "row %zu: %s", i, err.text);
        cr_expect_eq(line.op, rows[i].op, "row %zu", i);
        cr_expect(!line.has_n);
    }
}

Test(agent_worker_line, reads_members)
{
    cr_assert_eq(read_line("{\"op\":\"report\",\"n\":-3,\"call\":7,\"metrics\":{\"a\":1},"
                           "\"checkpoint\":\"c\",\"bytes\":9}"),
                 0);
    cr_expect(line.has_n && line.n == -3);
    cr_expect_eq(line.number, 7);
    cr_expect_eq(line.metrics->n, 1);
    cr_expect_str_eq(line.checkpoint, "c");
    cr_expect_eq(line.bytes, 9);
    cr_assert_eq(read_line("{\"op\":\"report\",\"metrics\":null,\"checkpoint\":null}"), 0);
    cr_expect(!line.metrics && !line.checkpoint && line.number == 0);
    cr_assert_eq(read_line("{\"op\":\"part\",\"id\":\"18446744073709551615\",\"ok\":false,"
                           "\"cause\":\"disk\"}"),
                 0);
    cr_expect_eq(line.id, UINT64_MAX);
    cr_expect(!line.ok);
    cr_expect_str_eq(line.cause, "disk");
    cr_assert_eq(read_line("{\"op\":\"hello\",\"health\":true}"), 0);
    cr_expect(line.health && !line.checkpoints);
    cr_assert_eq(read_line("{\"op\":\"health\",\"n\":4}"), 0);
    cr_expect(line.op == WORKER_HEALTH && line.n == 4);
    cr_assert_eq(read_line("{\"op\":\"enter\",\"seq\":2,\"payload\":[1]}"), 0);
    cr_expect_str_eq(line.kind, "dir");
    cr_expect_eq(line.payload->n, 1);
    cr_assert_eq(read_line("{\"op\":\"output\",\"edge\":7,\"bytes\":[0,9007199254740992]}"), 0);
    cr_expect(line.edge == 7 && line.sizes->n == 2);
    cr_assert_eq(read_line("{\"op\":\"input_lost\",\"edge\":7,\"subtask\":4294967295}"), 0);
    cr_expect(line.edge == 7 && line.subtask == UINT32_MAX);
}

Test(agent_worker_line, tells_what_is_wrong)
{
    static const struct {
        const char *text, *code, *part;
    } rows[] = {
        {"", "malformed", ""},
        {"7", "malformed", ""},
        {"{\"n\":1}", "malformed", "op is missing"},
        {"{\"op\":\"hello\",\"n\":\"x\"}", "malformed", "n"},
        {"{\"op\":\"hello\",\"checkpoints\":1}", "malformed", "checkpoints"},
        {"{\"op\":\"hello\",\"health\":1}", "malformed", "health"},
        {"{\"op\":\"health\"}", "malformed", "missing"},
        {"{\"op\":\"fly\"}", "unknown-op", "fly"},
        {"{\"op\":\"part\",\"ok\":true}", "malformed", "missing"},
        {"{\"op\":\"part\",\"id\":\"-1\",\"ok\":true}", "malformed", "id"},
        {"{\"op\":\"part\",\"id\":\"\",\"ok\":true}", "malformed", "id"},
        {"{\"op\":\"report\",\"checkpoint\":\"a/b\"}", "malformed", "run's directory"},
        {"{\"op\":\"report\",\"checkpoint\":\"\"}", "malformed", "run's directory"},
        {"{\"op\":\"report\",\"call\":1.5}", "malformed", "call"},
        {"{\"op\":\"enter\",\"seq\":-1}", "malformed", "seq"},
        {"{\"op\":\"output\",\"bytes\":[1]}", "malformed", "missing"},
        {"{\"op\":\"output\",\"edge\":0}", "malformed", "missing"},
        {"{\"op\":\"output\",\"edge\":-1,\"bytes\":[1]}", "malformed", "edge"},
        {"{\"op\":\"output\",\"edge\":0,\"bytes\":1}", "malformed", "bytes"},
        {"{\"op\":\"output\",\"edge\":0,\"bytes\":[1,-1]}", "malformed", "bytes[1]"},
        {"{\"op\":\"output\",\"edge\":0,\"bytes\":[\"1\"]}", "malformed", "bytes[0]"},
        {"{\"op\":\"output\",\"edge\":0,\"bytes\":[1.5]}", "malformed", "bytes[0]"},
        {"{\"op\":\"output\",\"edge\":0,\"bytes\":[9007199254740994]}", "malformed", "bytes[0]"},
        {"{\"op\":\"output\",\"edge\":0,\"bytes\":[9007199254740992,1]}", "malformed", "2^53"},
        {"{\"op\":\"input_lost\",\"edge\":0}", "malformed", "missing"},
        {"{\"op\":\"input_lost\",\"edge\":0,\"subtask\":-1}", "malformed", "subtask"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(read_line(rows[i].text), -EINVAL, "row %zu", i);
        cr_expect_str_eq(code, rows[i].code, "row %zu", i);
        cr_expect(strstr(err.text, rows[i].part), "row %zu: %s", i, err.text);
    }
}

Test(agent_worker_line, repeats_the_number_of_a_request_that_it_refuses)
{
    cr_assert_eq(read_line("{\"n\":12,\"op\":\"fly\"}"), -EINVAL);
    cr_expect(line.has_n && line.n == 12);
}

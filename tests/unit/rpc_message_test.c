/* rpc_message_test.c - header, body and table of the messages, and that docs/protocol.md agrees */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/message.h"

/* ---- the table ------------------------------------------------------------------------------- */

Test(message, finds_each_type_by_its_number)
{
    const struct message_kind *kind;
    size_t n = 0;

    for (; (kind = message_kind_at(n)); n++) {
        cr_expect(message_kind((uint16_t)kind->type) == kind, "%s", kind->name);
        cr_expect(kind->size_max >= 1024, "%s", kind->name);
    }
    cr_expect(eq(sz, n, 27 + 22 + 1));
    cr_expect(message_kind(27) == NULL);
    cr_expect(message_kind(99) == NULL);
    cr_expect(message_kind(201) == NULL);
    cr_expect(message_kind(UINT16_MAX) == NULL);
}

Test(message, knows_the_greatest_limit_of_a_range)
{
    cr_expect(eq(u32, message_size_max(MESSAGE_ERROR, MESSAGE_REPLY - 1), 16u << 20));
    cr_expect(eq(u32, message_size_max(MESSAGE_PING, MESSAGE_EVENT), 64u << 20));
    cr_expect(eq(u32, message_size_max(50, 60), 0));
}

/* A row of a Markdown table: columns without blanks around; \| is no border. */
struct row {
    char text[4096];
    char *column[8];
    size_t n;
};

static char *trim(char *s)
{
    char *end = s + strlen(s);

    while (*s == ' ')
        s++;
    while (end > s && (end[-1] == ' ' || end[-1] == '\n'))
        *--end = '\0';
    return s;
}

static void split(struct row *row)
{
    char *start = row->text + 1;

    row->n = 0;
    for (char *p = start; *p && row->n < 8; p++) {
        if (*p != '|' || p[-1] == '\\')
            continue;
        *p = '\0';
        row->column[row->n++] = trim(start);
        start = p + 1;
    }
}

static uint32_t limit_of(const char *text)
{
    char unit[8] = "";
    unsigned n = 0;

    cr_assert(eq(int, sscanf(text, "%u %7s", &n, unit), 2), "%s", text);
    cr_assert(strcmp(unit, "KiB") == 0 || strcmp(unit, "MiB") == 0, "%s", text);
    return n << (*unit == 'K' ? 10 : 20);
}

/* From the column `from` of the agents' table or `role` of the clients'. */
static enum message_role role_of(const char *text)
{
    if (strncmp(text, "agent", 5) == 0 || strcmp(text, "both") == 0)
        return ROLE_AGENT;
    if (strcmp(text, "daemon") == 0 || strcmp(text, "-") == 0)
        return ROLE_NONE;
    cr_expect(message_role_of(text) != ROLE_NONE, "%s", text);
    return message_role_of(text);
}

static void expect_kind(const struct row *row, size_t i)
{
    const struct message_kind *kind = message_kind_at(i);
    const char *name = row->column[1];

    cr_assert(kind != NULL, "%s", name);
    cr_expect(eq(int, (int)kind->type, atoi(row->column[0])), "%s", name);
    cr_expect(strcmp(kind->name, name) == 0, "%s is %s", name, kind->name);
    cr_expect(eq(u32, kind->size_max, limit_of(row->column[row->n - 1])), "%s", name);
    cr_expect(eq(int, (int)kind->role, (int)role_of(row->column[2])), "%s", name);
}

Test(message, has_the_table_that_the_documentation_shows)
{
    FILE *in = fopen("docs/protocol.md", "r");
    struct row row;
    size_t n = 0;

    cr_assert(in != NULL);
    while (fgets(row.text, sizeof row.text, in)) {
        if (row.text[0] != '|' || row.text[2] < '0' || row.text[2] > '9')
            continue;
        split(&row);
        if (row.n >= 5) /* the table of the header's fields has three columns */
            expect_kind(&row, n++);
    }
    fclose(in);
    cr_expect(message_kind_at(n) == NULL, "%zu rows", n);
}

/* ---- roles ----------------------------------------------------------------------------------- */

Test(message, lets_each_role_send_what_is_its_own)
{
    static const struct {
        enum message_type type;
        bool agent, viewer, operator;
    } rows[] = {
        {MESSAGE_HELLO, true, false, false},       {MESSAGE_HEARTBEAT, true, false, false},
        {MESSAGE_WELCOME, false, false, false},    {MESSAGE_REPLY, false, false, false},
        {MESSAGE_EVENT, false, false, false},      {MESSAGE_LIST, false, true, true},
        {MESSAGE_SUBMIT, false, false, true},      {MESSAGE_SHUTDOWN, false, false, true},
        {MESSAGE_END_OF_DATA, true, false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct message_kind *kind = message_kind((uint16_t)rows[i].type);

        cr_expect(eq(int, message_allowed(ROLE_NONE, kind), false), "%s", kind->name);
        cr_expect(eq(int, message_allowed(ROLE_AGENT, kind), rows[i].agent), "%s", kind->name);
        cr_expect(eq(int, message_allowed(ROLE_VIEWER, kind), rows[i].viewer), "%s", kind->name);
        cr_expect(eq(int, message_allowed(ROLE_OPERATOR, kind), rows[i].operator), "%s",
                  kind->name);
    }
}

Test(message, names_roles)
{
    static const enum message_role roles[] = {ROLE_AGENT, ROLE_VIEWER, ROLE_OPERATOR};

    for (size_t i = 0; i < 3; i++)
        cr_expect(eq(int, (int)message_role_of(message_role_name(roles[i])), (int)roles[i]));
    cr_expect(eq(int, (int)message_role_of("Agent"), ROLE_NONE));
    cr_expect(eq(int, (int)message_role_of(""), ROLE_NONE));
    cr_expect(eq(int, (int)message_role_of("none"), ROLE_NONE));
}

/* ---- the header ------------------------------------------------------------------------------ */

static const struct message_header hello = {
    .type = MESSAGE_HELLO, .epoch = UINT64_C(0x0102030405060708), .sequence = UINT64_MAX};

Test(message, packs_a_header_as_documented)
{
    static const uint8_t want[MESSAGE_HEADER] = {'P',  'L',  'N',  'T',  1,    0,    0,    1,
                                                 1,    2,    3,    4,    5,    6,    7,    8,
                                                 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct message_header got;
    uint8_t v[MESSAGE_HEADER];

    message_pack(v, &hello);
    cr_expect(memcmp(v, want, sizeof v) == 0);
    cr_expect(eq(int, (int)message_unpack(v, sizeof v, 2, &got), MESSAGE_GOOD));
    cr_expect(eq(u16, got.type, hello.type));
    cr_expect(eq(u64, got.epoch, hello.epoch));
    cr_expect(eq(u64, got.sequence, hello.sequence));
}

Test(message, carries_each_type)
{
    const struct message_kind *kind;

    for (size_t i = 0; (kind = message_kind_at(i)); i++) {
        struct message_header h = {.type = (uint16_t)kind->type, .sequence = i}, got;
        uint8_t v[MESSAGE_HEADER];

        message_pack(v, &h);
        cr_expect(eq(int, (int)message_unpack(v, sizeof v, kind->size_max, &got), MESSAGE_GOOD));
        cr_expect(eq(u16, got.type, h.type));
        cr_expect(
            eq(int, (int)message_unpack(v, sizeof v, kind->size_max + 1, &got), MESSAGE_TOO_LARGE));
    }
}

Test(message, tells_what_is_wrong_with_a_header)
{
    static const struct {
        size_t at;
        uint8_t byte;
        enum message_fault want;
        const char *code;
    } rows[] = {
        {0, 'p', MESSAGE_NOT_OURS, "malformed"},      {3, 0, MESSAGE_NOT_OURS, "malformed"},
        {4, 2, MESSAGE_OTHER_VERSION, "version"},     {4, 0, MESSAGE_OTHER_VERSION, "version"},
        {5, 1, MESSAGE_OTHER_VERSION, "version"},     {7, 27, MESSAGE_UNKNOWN_TYPE, "unknown-type"},
        {6, 1, MESSAGE_UNKNOWN_TYPE, "unknown-type"}, {7, 3, MESSAGE_TOO_LARGE, "too-large"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t v[MESSAGE_HEADER];
        struct message_header got;
        enum message_fault fault;

        message_pack(v, &hello);
        v[rows[i].at] = rows[i].byte;
        fault = message_unpack(v, sizeof v, 2000, &got);
        cr_expect(eq(int, (int)fault, (int)rows[i].want), "row %zu", i);
        cr_expect(strcmp(message_fault_code(fault), rows[i].code) == 0, "row %zu", i);
        if (fault != MESSAGE_NOT_OURS)
            cr_expect(eq(u64, got.sequence, hello.sequence), "row %zu", i);
    }
}

Test(message, takes_no_header_of_another_size)
{
    uint8_t v[MESSAGE_HEADER + 1] = {0};
    struct message_header got;

    message_pack(v, &hello);
    for (size_t n = 0; n <= sizeof v; n++)
        cr_expect(eq(int, (int)message_unpack(v, n, 2, &got),
                     n == MESSAGE_HEADER ? MESSAGE_GOOD : MESSAGE_NOT_OURS));
    cr_expect(eq(int, (int)message_unpack(NULL, 0, 0, &got), MESSAGE_NOT_OURS));
}

/* ---- the body -------------------------------------------------------------------------------- */

#define DEEP_31 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
#define SHALLOW_31 "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"

Test(message, takes_one_json_object_as_body)
{
    static const struct {
        const char *text;
        int want;
    } rows[] = {
        {"{}", MESSAGE_GOOD},
        {" {\"a\":[1,null,true,\"x\"]} ", MESSAGE_GOOD},
        {"{\"a\":" DEEP_31 SHALLOW_31 "}", MESSAGE_GOOD},
        {"{\"a\":[" DEEP_31 SHALLOW_31 "]}", MESSAGE_MALFORMED},
        {"", MESSAGE_MALFORMED},
        {" ", MESSAGE_MALFORMED},
        {"[]", MESSAGE_MALFORMED},
        {"null", MESSAGE_MALFORMED},
        {"1", MESSAGE_MALFORMED},
        {"{} {}", MESSAGE_MALFORMED},
        {"{}x", MESSAGE_MALFORMED},
        {"a: 1", MESSAGE_MALFORMED},
        {"{a: 1}", MESSAGE_MALFORMED},
        {"{\"a\":1,\"a\":1}", MESSAGE_MALFORMED},
        {"{\"a\":\"\xff\"}", MESSAGE_MALFORMED},
        {"{\"a\":\"\\u0000\"}", MESSAGE_MALFORMED},
        {"{\"a\":01}", MESSAGE_MALFORMED},
        {"{\"a\":1", MESSAGE_MALFORMED},
    };
    struct doc_file f = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct spec_error err = {""};
        int r = message_body(&f, &hello, rows[i].text, strlen(rows[i].text), &err);

        cr_expect(eq(int, r, rows[i].want), "%s: %s", rows[i].text, err.text);
        if (r == MESSAGE_GOOD)
            cr_expect(eq(int, (int)f.root->kind, DOC_MAP));
        else
            cr_expect(strncmp(err.text, "HELLO:1:", 8) == 0, "%s", err.text);
    }
    doc_free(&f);
}

Test(message, names_the_fields_of_a_body_by_its_type)
{
    static const char text[] = "{\"tasks\":[{\"vertex\":-1}]}";
    struct message_header h = {.type = MESSAGE_TASKS};
    struct doc_file f = {0};
    struct spec_error err;
    int64_t i;

    cr_assert(eq(int, message_body(&f, &h, text, strlen(text), &err), MESSAGE_GOOD));
    cr_expect(eq(int, doc_int(&f, f.root->child->child, "vertex", 0, 9, &i, &err), -EINVAL));
    cr_expect(strncmp(err.text, "TASKS:1: tasks[0].vertex: ", 26) == 0, "%s", err.text);
    doc_free(&f);
}

/* doc_test.c - documents of JSON and YAML, and what is refused where */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing_alloc.h"
#include "spec/doc.h"
#include "spec/memory.h"

#define N(rows) (sizeof(rows) / sizeof *(rows))

static struct doc_file parsed(const char *text)
{
    struct doc_file f = {0};
    struct spec_error err = {""};

    cr_assert(eq(int, doc_parse("f", text, strlen(text), 1, &f, &err), 0), "%s", err.text);
    return f;
}

/* What a text is refused with. */
static void expect_refusal_of(const char *text, size_t size, const char *want)
{
    struct doc_file f = {.name = "untouched"};
    struct spec_error err = {""};

    cr_expect(eq(int, doc_parse("f", text, size, 1, &f, &err), -EINVAL), "%s", text);
    cr_expect(eq(str, (char *)f.name, "untouched"));
    cr_expect(eq(str, err.text, (char *)want));
}

static void expect_refusal(const char *text, const char *want)
{
    expect_refusal_of(text, strlen(text), want);
}

Test(doc, json_and_yaml_give_the_same_tree)
{
    static const char *const texts[] = {
        "{\"a\": [1, -2.5, \"x\", true, null, {}], \"b\": {\"c\": \"\"}}",
        "a: [1, -2.5, x, true, null, {}]\nb:\n  c: ''\n",
        "a:\n- 1\n- -2.5\n- \"x\"\n- True\n- ~\n- {}\nb: {c: \"\"}\n",
        "{a: [1, -2.5, 'x', TRUE, ~, {}], b: {c: ''}} # flow style, but not JSON\n",
        "\xef\xbb\xbf{\"a\":[1,-2.5,\"\\u0078\",true,null,{}],\"b\":{\"c\":\"\"}}",
        "\xef\xbb\xbf---\na: [1, -2.5, x, true, null, {}]\nb: {c: \"\"}\n",
    };
    static const enum doc_kind kinds[] = {DOC_NUMBER, DOC_NUMBER, DOC_STRING,
                                          DOC_BOOL,   DOC_NULL,   DOC_MAP};

    for (size_t i = 0; i < N(texts); i++) {
        struct doc_file f = parsed(texts[i]);
        const struct doc *a = doc_get(f.root, "a"), *b = doc_get(f.root, "b"), *c = a->child;

        cr_expect(eq(u32, f.root->n, 2));
        cr_expect(f.root->child == a && a->next == b && !b->next && a->parent == f.root);
        cr_expect(eq(u32, a->n, N(kinds)), "text %zu", i);
        for (size_t k = 0; k < N(kinds); k++, c = c->next)
            cr_expect(eq(int, (int)c->kind, (int)kinds[k]), "text %zu, element %zu", i, k);
        cr_expect(eq(dbl, a->child->number, 1));
        cr_expect(eq(str, (char *)a->child->text, "1"));
        cr_expect(eq(dbl, a->child->next->number, -2.5));
        cr_expect(eq(str, (char *)a->child->next->next->text, "x"));
        cr_expect(a->child->next->next->next->truth);
        cr_expect(eq(str, (char *)doc_get(b, "c")->text, ""));
        cr_expect(doc_get(a, "c") == NULL, "a list has no keys");
        cr_expect(doc_get(f.root, "A") == NULL, "keys have their case");
        doc_free(&f);
    }
}

Test(doc, plain_yaml_scalars_have_the_types_of_the_core_schema)
{
    static const struct {
        const char *text;
        enum doc_kind kind;
        double number;
    } rows[] = {
        {"null", DOC_NULL, 0},      {"NULL", DOC_NULL, 0},     {"~", DOC_NULL, 0},
        {"", DOC_NULL, 0},          {"true", DOC_BOOL, 0},     {"FALSE", DOC_BOOL, 0},
        {"tRue", DOC_STRING, 0},    {"yes", DOC_STRING, 0},    {"off", DOC_STRING, 0},
        {"none", DOC_STRING, 0},    {"12", DOC_NUMBER, 12},    {"-12", DOC_NUMBER, -12},
        {"+12", DOC_NUMBER, 12},    {"012", DOC_NUMBER, 12},   {"0x1F", DOC_NUMBER, 31},
        {"0o17", DOC_NUMBER, 15},   {"0x", DOC_STRING, 0},     {"0o8", DOC_STRING, 0},
        {"1.5", DOC_NUMBER, 1.5},   {".5", DOC_NUMBER, 0.5},   {"1.", DOC_NUMBER, 1},
        {"1e3", DOC_NUMBER, 1000},  {"1e999", DOC_STRING, 0},  {".inf", DOC_STRING, 0},
        {"1_000", DOC_STRING, 0},   {"1:30", DOC_STRING, 0},   {"30 s", DOC_STRING, 0},
        {"\"12\"", DOC_STRING, 0},  {"'true'", DOC_STRING, 0}, {"2020-01-01", DOC_STRING, 0},
        {"1 # ...", DOC_NUMBER, 1},
    };

    for (size_t i = 0; i < N(rows); i++) {
        char text[64];
        struct doc_file f;

        snprintf(text, sizeof text, "k: %s\n", rows[i].text);
        f = parsed(text);
        cr_expect(eq(int, (int)f.root->child->kind, (int)rows[i].kind), "%s", rows[i].text);
        if (rows[i].kind == DOC_NUMBER)
            cr_expect(eq(dbl, f.root->child->number, rows[i].number), "%s", rows[i].text);
        doc_free(&f);
    }
}

Test(doc, each_value_knows_its_line)
{
    static const char *const texts[] = {
        "{\n \"a\": 1,\n\n \"b\": [\n  \"x\\n\\\"}\",\n  {\"c\": 2}\n ]}",
        "\na: 1\n\nb:\n- \"x\"\n- c: 2\n",
    };

    for (size_t i = 0; i < N(texts); i++) {
        struct doc_file f = parsed(texts[i]);
        const struct doc *b = doc_get(f.root, "b");

        cr_expect(eq(u32, doc_get(f.root, "a")->line, 2));
        cr_expect(eq(u32, b->child->line, 5));
        cr_expect(eq(u32, b->child->next->child->line, 6));
        doc_free(&f);
    }
}

Test(doc, escapes_become_characters_and_places_stay_right)
{
    struct doc_file f = parsed("{\"\\u00e9\\\"\": \"\\ud83d\\ude00\\\\\",\n\"z\": 0}");

    cr_expect(eq(str, (char *)f.root->child->key, "\xc3\xa9\""));
    cr_expect(eq(str, (char *)f.root->child->text, "\xf0\x9f\x98\x80\\"));
    cr_expect(eq(u32, f.root->child->next->line, 2));
    doc_free(&f);
}

Test(doc, mistakes_in_json_are_named_with_line_and_column)
{
    static const char *const rows[][2] = {
        {"{\"a\": 1", "f:1:7: not JSON from here: 1 (and the text ends too early)"},
        {"{\"a\": \"x", "f:1:8: not JSON from here: x (and the text ends too early)"},
        {"{\"a\": ]", "f:1:7: not JSON from here: ]"},
        {"{\"a\": 1}\n{\"b\": 2}", "f:2:1: more text behind the end of the document"},
        {"{\"a\":1,\n \"b\":2,\n \"a\":3}", "f:3: a: this key is there twice, first in line 1"},
        {"{\"a\":\"\\u0000\"}", "f:1:8: a NUL character in a string"},
        {"{\"a\":\"\\ud800\"}", "f:1:7: not JSON from here: \\ud800\"}"},
        {"{\"a\":1e999, \"b\":]", "f:1:17: not JSON from here: ]"},
        {"[\"\n\", 01, }", "f:2:8: not JSON from here: }"},
        {"[\"x\ty\", }", "f:1:9: not JSON from here: }"},
    };

    for (size_t i = 0; i < N(rows); i++)
        expect_refusal(rows[i][0], rows[i][1]);
}

Test(doc, mistakes_in_yaml_are_named_with_line_and_column)
{
    static const char *const rows[][2] = {
        {"a: 1\n  b: 2\n", "f:2:4: mapping values are not allowed in this context"},
        {"a: 1\nb: 2\na: 3\n", "f:3: a: this key is there twice, first in line 1"},
        {"a: &x 1\nb: 2\n",
         "f:1:4: anchors (&name) are not read; write the value out where it is needed"},
        {"a: 1\nb: *x\n", "f:2:4: aliases (*name) are not read; write the value out"},
        {"a: !!str 1\n", "f:1:4: tags (!name) are not read; accepted: the value alone"},
        {"a: !x {}\n", "f:1:4: tags (!name) are not read; accepted: the value alone"},
        {"&k a: 1\n",
         "f:1:1: anchors (&name) are not read; write the value out where it is needed"},
        {"a: 1\n---\nb: 2\n", "f:2:1: a second document; accepted: one"},
        {"? [a, b]\n: 1\n", "f:1:3: a key must be a word"},
        {"a: \"\\0\"\n", "f:1:4: a NUL character in a string"},
        {"a: \"x\n", "f:2:1: found unexpected end of stream, while scanning a quoted scalar"},
    };

    for (size_t i = 0; i < N(rows); i++)
        expect_refusal(rows[i][0], rows[i][1]);
}

Test(doc, a_billion_laughs_are_not_laughed)
{
    expect_refusal("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
                   "f:1:4: anchors (&name) are not read; write the value out where it is needed");
}

Test(doc, bytes_that_no_text_has_are_refused)
{
    static const struct {
        const char *text;
        size_t size;
        const char *want;
    } rows[] = {
        {"a: 1\nb: \0", 9, "f:2:4: byte 0x00 is a control character"},
        {"{\"a\":\"\0\"}", 9, "f:1:7: byte 0x00 is a control character"},
        {"a: \x1b[2J", 7, "f:1:4: byte 0x1b is a control character"},
        {"a: \xff", 4, "f:1:4: byte 0xff is not UTF-8"},
        {"a: \xc3", 4, "f:1:4: byte 0xc3 is not UTF-8"},
        {"a: \xc3(", 5, "f:1:4: byte 0xc3 is not UTF-8"},
        {"a: \xc0\x80", 5, "f:1:4: byte 0xc0 is not UTF-8"},
        {"a: \xe0\x80\x80", 6, "f:1:4: byte 0xe0 is not UTF-8"},
        {"a: \xed\xa0\x80", 6, "f:1:4: byte 0xed is not UTF-8"},
        {"a: \xf0\x80\x80\x80", 7, "f:1:4: byte 0xf0 is not UTF-8"},
        {"a: \xf4\x90\x80\x80", 7, "f:1:4: byte 0xf4 is not UTF-8"},
        {"a: \xf5\x80\x80\x80", 7, "f:1:4: byte 0xf5 is not UTF-8"},
        {"\xff\xfe"
         "a\0",
         4, "f:1:1: byte 0xff is not UTF-8"},
    };

    for (size_t i = 0; i < N(rows); i++)
        expect_refusal_of(rows[i].text, rows[i].size, rows[i].want);
}

/* `n` lists in each other; `close` of them end. */
static char *nested(size_t n, size_t close)
{
    char *text = malloc(n + close + 1);

    cr_assert(text != NULL);
    memset(text, '[', n);
    memset(text + n, ']', close);
    text[n + close] = '\0';
    return text;
}

Test(doc, nesting_has_a_bottom)
{
    char *text = nested(DOC_DEPTH_MAX, DOC_DEPTH_MAX);
    struct doc_file f = parsed(text);

    doc_free(&f);
    free(text);
    text = nested(DOC_DEPTH_MAX + 1, DOC_DEPTH_MAX + 1);
    expect_refusal(text, "f:1:33: more than 32 levels of nesting");
    free(text);
    text = nested(1000000, 0);
    expect_refusal(text, "f:1:33: more than 32 levels of nesting");
    free(text);
    f = parsed("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[\"]"); /* no nesting in strings */
    doc_free(&f);
}

Test(doc, many_keys_are_compared_without_a_square)
{
    size_t n = 100000, size = 0;
    char *text = malloc(n * 16 + 16);
    struct doc_file f;

    cr_assert(text != NULL);
    for (size_t i = 0; i < n; i++)
        size += (size_t)sprintf(text + size, "%c\"k%zu\":1\n", i ? ',' : '{', i);
    sprintf(text + size, "}");
    f = parsed(text);
    cr_expect(eq(u32, f.root->n, (uint32_t)n));
    doc_free(&f);
    sprintf(text + size, ",\"k7\":1}");
    expect_refusal(text, "f:100001: k7: this key is there twice, first in line 8");
    free(text);
}

/* Decoded beside cJSON's tree, which would skip it. */
Test(doc, a_byte_order_mark_begins_a_stream_and_stands_nowhere_else)
{
    struct doc_file f = {.name = "t"};
    struct spec_error err;
    const char *line = "\xef\xbb\xbf{\"t\":5,\"ev\":[true,\"x\",{}]}";

    cr_assert(eq(int, doc_line(&f, line, strlen(line), 1, &err), 0), "%s", err.text);
    cr_expect(eq(dbl, doc_get(f.root, "t")->number, 5));
    cr_assert(eq(int, doc_line(&f, line, strlen(line), 2, &err), -EINVAL));
    cr_expect(
        eq(str, err.text, "t:2:1: a byte order mark; accepted: only at the file's beginning"));
    doc_free(&f);
}

Test(doc, a_document_without_anything_is_null)
{
    static const char *const texts[] = {"", "# nothing\n", "---\n", "\xef\xbb\xbf"};
    static const char *const none = NULL;
    struct spec_error err;

    for (size_t i = 0; i < N(texts); i++) {
        struct doc_file f = parsed(texts[i]);

        cr_assert(eq(int, f.root->kind, DOC_NULL));
        cr_expect(eq(int, doc_known_keys(&f, f.root, &none, &err), -EINVAL));
        cr_expect(not(eq(ptr, strstr(err.text, "is empty; accepted: a map"), NULL)));
        doc_free(&f);
    }
}

Test(doc, lines_of_a_stream_use_the_memory_again_and_are_json_only)
{
    struct doc_file f = {.name = "t"};
    struct spec_error err;
    const char *line = "{\"t\":21529000,\"ev\":\"node_up\",\"node\":\"i0001\"}";
    struct doc *first;

    cr_assert(eq(int, doc_line(&f, line, strlen(line), 7, &err), 0));
    first = f.root;
    cr_expect(eq(u32, doc_get(f.root, "t")->line, 7));
    cr_expect(eq(dbl, doc_get(f.root, "t")->number, 21529000));
    cr_assert(eq(int, doc_line(&f, line, strlen(line), 8, &err), 0));
    cr_expect(f.root == first);
    cr_expect(eq(u32, doc_get(f.root, "t")->line, 8));

    cr_expect(eq(int, doc_line(&f, "t: 1", 4, 9, &err), -EINVAL));
    cr_expect(eq(str, err.text, "t:9:1: not JSON from here: t: 1"));
    cr_expect(f.root == NULL);
    cr_expect(eq(int, doc_line(&f, "{\"t\":1,\"t\":2}", 13, 10, &err), -EINVAL));
    cr_expect(eq(str, err.text, "t:10: t: this key is there twice, first in line 10"));
    cr_expect(eq(int, doc_line(&f, "{\"t\":01}", 8, 11, &err), -EINVAL));
    cr_expect(eq(str, err.text, "t:11:6: this is not how JSON writes a number"));
    cr_expect(eq(int, doc_line(&f, "{\"t\":1e999}", 11, 11, &err), -EINVAL));
    cr_expect(eq(str, err.text, "t:11:6: a number beyond all bounds"));
    cr_expect(eq(int, doc_line(&f, "[\"a\tb\"]", 7, 11, &err), -EINVAL));
    cr_expect(eq(str, err.text, "t:11:4: a control character in a string"));
    cr_expect(eq(int, doc_line(&f, "", 0, 12, &err), -EINVAL));
    cr_expect(eq(str, err.text, "t:12:1: the text ends too early"));
    cr_expect(eq(int, doc_line(&f, line, strlen(line) - 1, 13, &err), -EINVAL));
    doc_free(&f);
}

Test(doc, numbers_mean_the_same_in_every_locale)
{
    struct doc_file f;

    setlocale(LC_ALL, "de_DE.UTF-8"); /* where there is none, nothing is lost */
    f = parsed("{\"a\": 1.5}");
    cr_expect(eq(dbl, f.root->child->number, 1.5));
    doc_free(&f);
    f = parsed("a: 1.5\n");
    cr_expect(eq(dbl, f.root->child->number, 1.5));
    doc_free(&f);
}

Test(doc, typed_questions_answer_or_name_the_place)
{
    static const char text[] = "i: 7\nbig: 9007199254740993\nedge: 9007199254740992\nf: 7.5\n"
                               "e: 1e3\ns: word\nb: true\nn: null\nl: [1, {x: y}]\nm: {}\n";
    static const char *const ints[][2] = {
        {"i", NULL},
        {"edge", NULL},
        {"e", NULL},
        {"big", "f:2: big: is 9007199254740993; accepted: an integer from 1 to 9007199254740992"},
        {"f", "f:4: f: is 7.5; accepted: an integer from 1 to 9007199254740992"},
        {"s", "f:6: s: is a string; accepted: an integer from 1 to 9007199254740992"},
        {"n", "f:8: n: is null; accepted: an integer from 1 to 9007199254740992"},
    };
    struct doc_file f = parsed(text);
    struct spec_error err;
    const struct doc *d;
    const char *s = "before";
    int64_t i = -7;
    double x = -7;
    bool b = false;

    for (size_t k = 0; k < N(ints); k++) {
        int r = doc_int(&f, f.root, ints[k][0], 1, DOC_INTEGER_MAX, &i, &err);

        cr_expect(eq(int, r, ints[k][1] ? -EINVAL : 0), "%s", ints[k][0]);
        if (ints[k][1])
            cr_expect(eq(str, err.text, (char *)ints[k][1]));
    }
    cr_expect(eq(i64, i, 1000), "the last that was right");
    cr_expect(eq(int, doc_int(&f, f.root, "none", 0, 9, &i, &err), -ENOENT));
    cr_expect(eq(int, doc_int(&f, f.root, "i", 8, 9, &i, &err), -EINVAL));
    cr_expect(eq(str, err.text, "f:1: i: is 7; accepted: an integer from 8 to 9"));

    cr_expect(eq(int, doc_string(&f, f.root, "s", 4, &s, &err), 0));
    cr_expect(eq(str, (char *)s, "word"));
    cr_expect(eq(int, doc_string(&f, f.root, "s", 3, &s, &err), -EINVAL));
    cr_expect(eq(str, err.text, "f:6: s: has 4 bytes; accepted: at most 3"));
    cr_expect(eq(int, doc_string(&f, f.root, "i", 3, &s, &err), -EINVAL));
    cr_expect(eq(str, err.text, "f:1: i: is a number; accepted: a string"));
    cr_expect(eq(int, doc_string(&f, f.root, "none", 3, &s, &err), -ENOENT));

    cr_expect(eq(int, doc_bool(&f, f.root, "b", &b, &err), 0));
    cr_expect(b);
    cr_expect(eq(int, doc_bool(&f, f.root, "i", &b, &err), -EINVAL));
    cr_expect(eq(int, doc_bool(&f, f.root, "none", &b, &err), -ENOENT));

    cr_expect(eq(int, doc_as_double(&f, doc_get(f.root, "f"), 0, 8, &x, &err), 0));
    cr_expect(eq(dbl, x, 7.5));
    cr_expect(eq(int, doc_as_double(&f, doc_get(f.root, "f"), 0, 1, &x, &err), -EINVAL));
    cr_expect(eq(str, err.text, "f:4: f: is 7.5; accepted: a number from 0 to 1"));
    cr_expect(eq(int, doc_as_double(&f, doc_get(f.root, "s"), 0, 1, &x, &err), -EINVAL));

    cr_expect(eq(int, doc_container(&f, f.root, "l", DOC_LIST, &d, &err), 0));
    cr_expect(eq(int, doc_error(&f, d->child->next->child, &err, "no %s", "way"), -EINVAL));
    cr_expect(eq(str, err.text, "f:9: l[1].x: no way"));
    cr_expect(eq(int, doc_container(&f, f.root, "l", DOC_MAP, &d, &err), -EINVAL));
    cr_expect(eq(str, err.text, "f:9: l: is a list; accepted: a map"));
    cr_expect(eq(int, doc_container(&f, f.root, "none", DOC_MAP, &d, &err), -ENOENT));
    doc_free(&f);
}

Test(doc, unknown_keys_name_the_nearest_known_one)
{
    static const char *const keys[] = {"name", "vertices", "edges", NULL};
    static const char *const rows[][2] = {
        {"{name: a, x-note: [1], x-: 2}", NULL},
        {"vertixes: 1", "f:1: vertixes: unknown key; did you mean vertices? accepted: name, "
                        "vertices, edges"},
        {"zoology: 1", "f:1: zoology: unknown key; accepted: name, vertices, edges"},
        {"[1]", "f:1: is a list; accepted: a map"},
    };

    for (size_t i = 0; i < N(rows); i++) {
        struct doc_file f = parsed(rows[i][0]);
        struct spec_error err;

        cr_expect(eq(int, doc_known_keys(&f, f.root, keys, &err), rows[i][1] ? -EINVAL : 0));
        if (rows[i][1])
            cr_expect(eq(str, err.text, (char *)rows[i][1]));
        doc_free(&f);
    }
}

Test(doc, errors_never_move_a_terminal_and_never_end_within_a_letter)
{
    struct doc_file f = parsed("\"\\e[2J\\u00e9\": 1\n");
    char name[3000];
    struct spec_error err;

    doc_error(&f, f.root->child, &err, "x\n\x7f");
    cr_expect(eq(str, err.text, "f:1: ?[2J\xc3\xa9: x??"));
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa9", 2);
    name[sizeof name - 2] = '\0';
    for (int shift = 0; shift < 2; shift++) {
        doc_error(&f, f.root->child, &err, "%s%s", shift ? "y" : "", name);
        cr_expect(strlen(err.text) < sizeof err.text);
        cr_expect(eq(u32, err.text[strlen(err.text) - 1] & 0xff, 0xa9));
    }
    f.name = name;
    doc_error(&f, f.root->child, &err, "what matters");
    cr_expect(strstr(err.text, "what matters") != NULL);
    doc_free(&f);
}

Test(doc, files_are_read_whole_or_refused)
{
    char path[] = "/tmp/pliant-doc-XXXXXX";
    struct doc_file f = {0};
    struct spec_error err;
    char want[sizeof path + 80];
    int fd = mkstemp(path);

    cr_assert(fd >= 0);
    cr_assert(eq(int, (int)write(fd, "a: [1,\n 2]\n", 11), 11));
    close(fd);
    cr_assert(eq(int, doc_read(path, 11, &f, &err), 0), "%s", err.text);
    cr_expect(eq(u32, f.root->child->n, 2));
    doc_free(&f);
    cr_expect(eq(int, doc_read(path, 10, &f, &err), -EINVAL));
    snprintf(want, sizeof want, "%s: is larger than 10 bytes, the most that is read", path);
    cr_expect(eq(str, err.text, want));
    unlink(path);
    cr_expect(eq(int, doc_read(path, 10, &f, &err), -ENOENT));
    snprintf(want, sizeof want, "%s: No such file or directory", path);
    cr_expect(eq(str, err.text, want));
    cr_expect(eq(int, doc_read("/tmp", 10, &f, &err), -EISDIR));
    cr_expect(eq(str, err.text, "/tmp: Is a directory"));
}

/* Let the k-th allocation fail, for each k, until all succeed. */
static void expect_safe(const char *text)
{
    int r = -ENOMEM;

    for (size_t k = 1; r == -ENOMEM; k++) {
        FAILING_ALLOC(memory, k);
        struct doc_file f = {0};
        struct spec_error err;

        spec_memory = &memory.hook;
        r = doc_parse("f", text, strlen(text), 1, &f, &err);
        if (r == -ENOMEM)
            cr_expect(eq(str, err.text, "f: out of memory"));
        cr_expect(r == -ENOMEM || k > 3, "some failures were tried");
        doc_free(&f);
        cr_assert(eq(sz, memory.live, 0), "no leak");
    }
    spec_memory = NULL;
    cr_expect(eq(int, r, 0));
}

Test(doc, the_kth_allocation_may_fail)
{
    char json[40000] = "[", yaml[40000] = "";
    size_t n = 1;

    while (n < 30000)
        n += (size_t)sprintf(json + n, "{\"abcdefgh\":1,\"b\":\"xyz\"},\n");
    strcpy(json + n, "0]");
    n = 0;
    while (n < 30000)
        n += (size_t)sprintf(yaml + n, "- {abcdefgh: 1, b: xyz}\n");
    expect_safe(json);
    expect_safe(yaml);
}

Test(doc, the_kth_allocation_may_fail_in_a_stream)
{
    const char *line = "{\"t\":1}";
    int r = -ENOMEM;

    for (size_t k = 1; r == -ENOMEM; k++) {
        FAILING_ALLOC(memory, k);
        struct doc_file f = {.name = "t"};
        struct spec_error err;

        spec_memory = &memory.hook;
        r = doc_line(&f, line, strlen(line), 1, &err);
        cr_expect(r == 0 || r == -ENOMEM);
        doc_free(&f);
        cr_assert(eq(sz, memory.live, 0));
    }
    spec_memory = NULL;
}

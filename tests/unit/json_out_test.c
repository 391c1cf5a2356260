/* json_out_test.c - the JSON writer */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "spec/json_out.h"

static void expect_text(struct json *j, const char *want)
{
    cr_expect(eq(int, j->error, 0));
    cr_expect(eq(sz, j->n, strlen(want)), "%.*s", (int)j->n, j->v);
    cr_expect(j->n == strlen(want) && memcmp(j->v, want, j->n) == 0, "%.*s instead of %s",
              (int)j->n, j->v, want);
    json_free(j);
}

Test(json_out, puts_commas_and_keys_where_they_belong)
{
    static const uint8_t bytes[] = {0x00, 0x1f, 0xab};
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_int(&j, "t", -5);
    json_begin(&j, "list", '[');
    json_begin(&j, NULL, '[');
    json_end(&j, ']');
    json_begin(&j, NULL, '{');
    json_end(&j, '}');
    json_bool(&j, NULL, true);
    json_null(&j, NULL);
    json_end(&j, ']');
    json_bool(&j, "no", false);
    json_string(&j, "none", NULL);
    json_member(&j, "a \"key\"", "value");
    json_slot(&j, "slot", "n\n1", 7);
    json_hex(&j, "hex", bytes, sizeof bytes);
    json_id(&j, "id", UINT64_MAX);
    json_end(&j, '}');
    json_line(&j);
    json_int(&j, NULL, 1);
    expect_text(&j, "{\"t\":-5,\"list\":[[],{},true,null],\"no\":false,\"none\":null,"
                    "\"a \\\"key\\\"\":\"value\",\"slot\":\"n\\n1/7\",\"hex\":\"001fab\","
                    "\"id\":\"18446744073709551615\"}\n1");
}

Test(json_out, writes_numbers_exactly)
{
    static const struct {
        int64_t i;
        const char *text;
    } rows[] = {{0, "0"},
                {INT64_MIN, "-9223372036854775808"},
                {INT64_MAX, "9223372036854775807"},
                {INT64_C(9007199254740993), "9007199254740993"}};
    struct json j;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_init(&j, NULL);
        json_int(&j, NULL, rows[i].i);
        expect_text(&j, rows[i].text);
    }
    json_init(&j, NULL);
    json_uint(&j, NULL, UINT64_MAX);
    json_double(&j, NULL, 0.5);
    json_double(&j, NULL, (double)NAN);
    json_double(&j, NULL, -(double)INFINITY);
    expect_text(&j, "18446744073709551615,0.5,null,null");
}

Test(json_out, escapes_strings_and_mends_what_is_not_utf8)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", "\"\""},
        {"a\"b\\c/", "\"a\\\"b\\\\c/\""},
        {"\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\""},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
         "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"\xc3", "\"\xef\xbf\xbd\""}, /* cut */
        {"\xf0\x9f\x98", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\""},
        {"\xff x", "\"\xef\xbf\xbd x\""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json j;

        json_init(&j, NULL);
        json_string(&j, NULL, rows[i].in);
        expect_text(&j, rows[i].out);
    }
}

Test(json_out, hands_whole_pieces_to_the_file)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    struct json j;

    json_init(&j, file);
    for (int i = 0; i < 100000; i++) {
        json_begin(&j, NULL, '{');
        json_int(&j, "i", i);
        json_end(&j, '}');
        cr_assert(eq(int, json_line(&j), 0));
    }
    cr_assert(lt(sz, j.cap, 300000));
    cr_assert(eq(int, json_flush(&j), 0));
    fclose(file);
    cr_assert(eq(sz, size, 10u * 8 + 90u * 9 + 900u * 10 + 9000u * 11 + 90000u * 12));
    cr_assert(eq(int, strncmp(text, "{\"i\":0}\n{\"i\":1}\n", 16), 0));
    json_free(&j);
    free(text);
}

Test(json_out, tells_a_full_disk_once_and_for_all)
{
    FILE *file = fopen("/dev/full", "w");
    struct json j;

    cr_assert(file != NULL);
    setvbuf(file, NULL, _IONBF, 0);
    json_init(&j, file);
    json_string(&j, NULL, "x");
    cr_assert(eq(int, json_flush(&j), -ENOSPC));
    json_string(&j, "key", "x");
    cr_assert(eq(int, json_line(&j), -ENOSPC));
    cr_assert(eq(int, json_flush(&j), -ENOSPC));
    fclose(file);
    json_free(&j);
}

Test(json_out, starts_again_after_a_reset)
{
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '[');
    json_int(&j, NULL, 1);
    json_reset(&j);
    json_int(&j, NULL, 2);
    expect_text(&j, "2");
}

Test(json_out, takes_over_what_is_json_already)
{
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_int(&j, "a", 1);
    json_raw(&j, "b", "[2,{}]", 6);
    json_end(&j, '}');
    expect_text(&j, "{\"a\":1,\"b\":[2,{}]}");
}

/* duration_test.c - spans of time as people write them */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "util/duration.h"

#define DAY INT64_C(86400000)

Test(duration, reads_what_flink_reads)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"500", 500},
        {"0", 0},
        {"30 s", 30000},
        {"30s", 30000},
        {"  30   s  ", 30000},
        {"30 S", 30000},
        {"1 sec", 1000},
        {"2 secs", 2000},
        {"1 second", 1000},
        {"2 SECONDS", 2000},
        {"1 min", 60000},
        {"1 m", 60000},
        {"1 minute", 60000},
        {"3 minutes", 180000},
        {"1 h", 3600000},
        {"1 hour", 3600000},
        {"24 hours", DAY},
        {"1 d", DAY},
        {"1 day", DAY},
        {"2 days", 2 * DAY},
        {"-1 ms", -1},
        {"-1", -1},
        {"7 ms", 7},
        {"7 milli", 7},
        {"7 millis", 7},
        {"7 millisecond", 7},
        {"7 milliseconds", 7},
        {"2999 us", 2},
        {"2000 \xc2\xb5s", 2},
        {"2000 micro", 2},
        {"2000 micros", 2},
        {"2000 microseconds", 2},
        {"999999 ns", 0},
        {"1000000 nano", 1},
        {"-1500000 nanoseconds", -1},
        {"9223372036854775807 ms", INT64_MAX},
        {"-9223372036854775807", -INT64_MAX},
        {"9223372036854775 s", INT64_C(9223372036854775000)},
        {"PT30S", 30000},
        {"pt30s", 30000},
        {"P2D", 2 * DAY},
        {"P1DT2H3M4.005S", DAY + 7384005},
        {"PT0.5S", 500},
        {"PT1,25S", 1250},
        {"-PT1M", -60000},
        {"PT-1M", -60000},
        {"-PT-6H+3M", 6 * 3600000 - 180000},
        {"PT-0.5S", -500},
        {"PT0.0009999S", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ms = 4711;

        cr_expect(eq(int, duration_parse(rows[i].text, &ms), 0), "%s", rows[i].text);
        cr_expect(eq(i64, ms, rows[i].ms), "%s", rows[i].text);
    }
}

Test(duration, refuses_the_rest_and_leaves_the_result_alone)
{
    static const struct {
        const char *text;
        int error;
    } rows[] = {
        {"", -EINVAL},
        {" ", -EINVAL},
        {"s", -EINVAL},
        {"-", -EINVAL},
        {"+5 s", -EINVAL},
        {"1.5 s", -EINVAL},
        {"5 parsecs", -EINVAL},
        {"5 ss", -EINVAL},
        {"5 ds", -EINVAL},
        {"5 mins", -EINVAL},
        {"5 s 3", -EINVAL},
        {"5 s, 3 ms", -EINVAL},
        {"five", -EINVAL},
        {"- 1 ms", -EINVAL},
        {"9223372036854775808", -ERANGE},
        {"99999999999999999999999 ns", -ERANGE},
        {"106751991168 d", -ERANGE},
        {"-106751991168 d", -ERANGE},
        {"9223372036854776 s", -ERANGE},
        {"P", -EINVAL},
        {"PT", -EINVAL},
        {"P1", -EINVAL},
        {"P1DT", -EINVAL},
        {"P1H", -EINVAL},
        {"PT1D", -EINVAL},
        {"PT1S1M", -EINVAL},
        {"PT1M1M", -EINVAL},
        {"PT1.5M", -EINVAL},
        {"PT.5S", -EINVAL},
        {"PT1.0123456789S", -EINVAL},
        {"PT5S x", -EINVAL},
        {"P999999999999999D", -ERANGE},
        {"PT9223372036854775807S", -ERANGE},
        {"PT9223372036854775.9S", -ERANGE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ms = 4711;

        cr_expect(eq(int, duration_parse(rows[i].text, &ms), rows[i].error), "%s", rows[i].text);
        cr_expect(eq(i64, ms, 4711), "%s", rows[i].text);
    }
}

Test(duration, writes_the_largest_unit_that_is_exact)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "0 s"},
        {-1, "-1 ms"},
        {1, "1 ms"},
        {1500, "1500 ms"},
        {30000, "30 s"},
        {90000, "90 s"},
        {60000, "1 min"},
        {3600000, "1 h"},
        {DAY, "1 d"},
        {-2 * DAY, "-2 d"},
        {INT64_MAX, "9223372036854775807 ms"},
        {-INT64_MAX, "-9223372036854775807 ms"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[DURATION_TEXT_MAX];
        int64_t ms;

        cr_expect(eq(sz, duration_format(rows[i].ms, text), strlen(rows[i].text)));
        cr_expect(eq(str, text, (char *)rows[i].text));
        cr_expect(eq(int, duration_parse(text, &ms), 0));
        cr_expect(eq(i64, ms, rows[i].ms), "%s reads back", text);
    }
}

/* decimal_test.c - numbers from and to text */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/decimal.h"
#include "util/prng.h"

#define N(rows) (sizeof(rows) / sizeof *(rows))

Test(decimal, reads_whole_numbers_to_the_last_one)
{
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        {"0", 0},
        {"-0", 0},
        {"+7", 7},
        {"007", 7},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    static const char *const refused[] = {"",
                                          "-",
                                          "+",
                                          " 1",
                                          "1 ",
                                          "1.0",
                                          "1e3",
                                          "0x1",
                                          "--1",
                                          "x",
                                          "9223372036854775808",
                                          "-9223372036854775809",
                                          "99999999999999999999"};
    int64_t value = 4711;

    for (size_t i = 0; i < N(refused); i++)
        cr_expect(not(decimal_read_int(refused[i], &value)), "%s", refused[i]);
    cr_expect(eq(i64, value, 4711));
    for (size_t i = 0; i < N(rows); i++) {
        cr_expect(decimal_read_int(rows[i].text, &value), "%s", rows[i].text);
        cr_expect(eq(i64, value, rows[i].value), "%s", rows[i].text);
    }
}

Test(decimal, reads_fractions_and_exponents)
{
    static const char *const texts[] = {
        "0",
        "-1",
        "1.5",
        ".5",
        "1.",
        "1e3",
        "1E+3",
        "1e-3",
        "0.1",
        "0.3",
        "123456.789",
        "1e22",
        "1e-22",
        "9007199254740991",
        "0.000000000000000000001",
        "100000000000000000000",
        "0e999999999",
    };
    static const char *const refused[] = {"",    ".",   "-",   "1e",    "1e+", "e5",
                                          "1,5", "nan", "inf", "1e999", "1 ",  "1.2.3"};
    double value = 4711;

    for (size_t i = 0; i < N(refused); i++)
        cr_expect(not(decimal_read(refused[i], &value)), "%s", refused[i]);
    cr_expect(eq(dbl, value, 4711));
    for (size_t i = 0; i < N(texts); i++) {
        cr_expect(decimal_read(texts[i], &value), "%s", texts[i]);
        cr_expect(eq(dbl, value, strtod(texts[i], NULL)), "%s", texts[i]);
    }
}

Test(decimal, long_and_tiny_numbers_come_close)
{
    static const char *const texts[] = {"3.14159265358979323846264338327950288", "1e-300", "1e300",
                                        "123456789012345678901234567890", "0.30000000000000004"};

    for (size_t i = 0; i < N(texts); i++) {
        double value, exact = strtod(texts[i], NULL);

        cr_expect(decimal_read(texts[i], &value));
        cr_expect(fabs(value - exact) <= exact * 1e-14, "%s", texts[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        char text[2000];
        double value;

        memset(text, '0', sizeof text);
        memcpy(text, i ? "0." : "00", 2);
        memcpy(text + sizeof text - 2, "1", 2);
        cr_expect(decimal_read(text, &value));
        cr_expect(i ? value < 1e-300 : value > 0, "many digits are no trouble");
    }
}

Test(decimal, writes_the_shortest_text)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-2.5, "-2.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.3"},
        {1.5, "1.5"},
        {0.05, "0.05"},
        {1e9, "1000000000"},
        {123456.789, "123456.789"},
        {1e15, "100000000000000e1"},
        {1e-16, "0.0000000000000001"},
        {1e-30, "0"},
        {NAN, "nan"},
        {-INFINITY, "-inf"},
    };
    char text[DECIMAL_TEXT_MAX];

    for (size_t i = 0; i < N(rows); i++) {
        cr_expect(eq(sz, decimal_write(rows[i].value, text), strlen(rows[i].text)));
        cr_expect(eq(str, text, (char *)rows[i].text));
    }
    cr_expect(decimal_write(-DBL_MAX, text) < sizeof text);
}

Test(decimal, fifteen_digits_go_round)
{
    struct prng prng = {1};

    for (int i = 0; i < 100000; i++) {
        char text[DECIMAL_TEXT_MAX], again[DECIMAL_TEXT_MAX];
        double digits = (double)prng_below(&prng, 1000000000000000), value, same;

        value = digits / pow(10, (double)prng_below(&prng, 15));
        decimal_write(value, text);
        cr_assert(decimal_read(text, &same), "%s", text);
        cr_assert(eq(dbl, same, value), "%s", text);
        decimal_write(same, again);
        cr_assert(eq(str, again, text));
    }
}

/* duration.c - see duration.h */
#include "util/duration.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/ascii.h"

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

/* `name` stands for itself and, with `plural`, for itself and an "s". A unit is `times`
 * milliseconds, or a millisecond is `parts` units. */
static const struct unit {
    const char *name;
    bool plural;
    int64_t times, parts;
} units[] = {
    /* clang-format off */
    {"",            false, 1, 1},
    {"d",           false, DAY_MS, 1},    {"day",    true, DAY_MS, 1},
    {"h",           false, HOUR_MS, 1},   {"hour",   true, HOUR_MS, 1},
    {"min",         false, MINUTE_MS, 1}, {"m",      false, MINUTE_MS, 1},
    {"minute",      true,  MINUTE_MS, 1},
    {"s",           false, SECOND_MS, 1}, {"sec",    true, SECOND_MS, 1},
    {"second",      true,  SECOND_MS, 1},
    {"ms",          false, 1, 1},         {"milli",  true, 1, 1},
    {"millisecond", true,  1, 1},
    {"us",          false, 1, 1000},      {"micro",  true, 1, 1000},
    {"\xc2\xb5s",   false, 1, 1000},      {"microsecond", true, 1, 1000},
    {"ns",          false, 1, 1000000},   {"nano",   true, 1, 1000000},
    {"nanosecond",  true,  1, 1000000},
    /* clang-format on */
};

/* *sum += value x times, both >= 0 but for the sign of the whole; false on overflow. */
static bool add_product(int64_t *sum, int64_t value, int64_t times)
{
    if (value > INT64_MAX / times || value < -INT64_MAX / times)
        return false;
    value *= times;
    if (value > 0 ? *sum > INT64_MAX - value : *sum < -INT64_MAX - value)
        return false;
    *sum += value;
    return true;
}

/* [sign]digits at *text, which moves behind them. 0, -EINVAL (no digit), -ERANGE. */
static int read_number(const char **text, bool *negative, int64_t *ret)
{
    const char *p = *text;
    int64_t value = 0;

    *negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!ascii_is_digit(*p))
        return -EINVAL;
    for (; ascii_is_digit(*p); p++) {
        if (value > (INT64_MAX - (*p - '0')) / 10)
            return -ERANGE;
        value = value * 10 + (*p - '0');
    }
    *text = p;
    *ret = *negative ? -value : value;
    return 0;
}

/* Does text[0..n) name this unit? */
static bool unit_is(const struct unit *unit, const char *text, size_t n)
{
    size_t length = strlen(unit->name);

    if (unit->plural && n == length + 1 && ascii_lower(text[length]) == 's')
        n = length;
    if (n != length)
        return false;
    for (size_t i = 0; i < n; i++)
        if (ascii_lower(text[i]) != unit->name[i])
            return false;
    return true;
}

static int parse_plain(const char *text, size_t n, int64_t *ret_ms)
{
    const char *end = text + n;
    int64_t value, ms = 0;
    bool negative;
    int r = *text == '+' ? -EINVAL : read_number(&text, &negative, &value);

    if (r < 0)
        return r;
    while (text < end && ascii_is_blank(*text))
        text++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!unit_is(&units[i], text, (size_t)(end - text)))
            continue;
        if (!add_product(&ms, value / units[i].parts, units[i].times))
            return -ERANGE;
        *ret_ms = ms;
        return 0;
    }
    return -EINVAL;
}

/* The decimals of seconds at *text, in ms; what is smaller is cut off. */
static int read_decimals(const char **text, int64_t *ret_ms)
{
    int64_t weight = 100;
    int n = 0;

    *ret_ms = 0;
    for (; ascii_is_digit(**text); ++*text, weight /= 10, n++)
        *ret_ms += (**text - '0') * weight;
    return n <= 9 ? 0 : -EINVAL;
}

/* [+-]P[nD][T[nH][nM][n[.n]S]], each n with a sign of its own, at least one n. */
static int parse_iso(const char *text, size_t n, int64_t *ret_ms)
{
    static const struct {
        char letter;
        bool time;
        int64_t ms;
    } parts[] = {
        {'d', false, DAY_MS}, {'h', true, HOUR_MS}, {'m', true, MINUTE_MS}, {'s', true, SECOND_MS}};
    const char *end = text + n;
    bool minus = *text == '-', in_time = false, negative;
    size_t next = 0, n_parts = sizeof parts / sizeof *parts;
    int64_t ms = 0, value, decimals;
    int r = -EINVAL;

    if (*text == '-' || *text == '+')
        text++;
    if (ascii_lower(*text++) != 'p')
        return -EINVAL;
    while (text < end) {
        if (!in_time && ascii_lower(*text) == 't') {
            in_time = true;
            text++; /* a number must follow */
        }
        r = read_number(&text, &negative, &value);
        if (r < 0)
            return r;
        decimals = 0;
        if (*text == '.' || *text == ',') {
            text++;
            r = read_decimals(&text, &decimals);
            if (r < 0 || ascii_lower(*text) != 's')
                return -EINVAL;
        }
        while (next < n_parts &&
               (parts[next].letter != ascii_lower(*text) || parts[next].time != in_time))
            next++;
        if (next == n_parts)
            return -EINVAL;
        if (!add_product(&ms, value, parts[next++].ms) ||
            !add_product(&ms, negative ? -decimals : decimals, 1))
            return -ERANGE;
        text++;
    }
    if (r == 0)
        *ret_ms = minus ? -ms : ms;
    return r;
}

int duration_parse(const char *text, int64_t *ret_ms)
{
    const char *end = text + strlen(text);
    const char *first;

    while (ascii_is_blank(*text))
        text++;
    while (end > text && ascii_is_blank(end[-1]))
        end--;
    first = *text == '-' || *text == '+' ? text + 1 : text;
    if (ascii_lower(*first) == 'p')
        return parse_iso(text, (size_t)(end - text), ret_ms);
    return parse_plain(text, (size_t)(end - text), ret_ms);
}

size_t duration_format(int64_t ms, char buf[DURATION_TEXT_MAX])
{
    static const struct {
        const char *name;
        int64_t ms;
    } steps[] = {{"d", DAY_MS}, {"h", HOUR_MS}, {"min", MINUTE_MS}, {"s", SECOND_MS}, {"ms", 1}};
    size_t i = 0;

    if (ms == 0)
        return (size_t)snprintf(buf, DURATION_TEXT_MAX, "0 s");
    while (ms % steps[i].ms != 0)
        i++;
    return (size_t)snprintf(buf, DURATION_TEXT_MAX, "%lld %s", (long long)(ms / steps[i].ms),
                            steps[i].name);
}

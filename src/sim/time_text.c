/* time_text.c - see time_text.h */
#include "sim/time_text.h"

#include <inttypes.h>
#include <stdio.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

const char *time_stopwatch(char buf[TIME_TEXT_MAX], int64_t at_ms)
{
    int64_t h = at_ms / HOUR, min = at_ms / MINUTE % 60, s = at_ms / SECOND % 60;
    int64_t ms = at_ms % SECOND;

    if (h > 0)
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 ":%02" PRId64 ":%02" PRId64 ".%03" PRId64, h, min,
                 s, ms);
    else if (min > 0)
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 ":%02" PRId64 ".%03" PRId64, min, s, ms);
    else
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 ".%03" PRId64, s, ms);
    return buf;
}

/* "2 min 30 s", without a second part of 0. */
static void two_parts(char *buf, int64_t ms, int64_t unit, const char *name, int64_t part,
                      const char *part_name)
{
    int64_t rest = ms % unit / part;

    if (rest > 0)
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 " %s %" PRId64 " %s", ms / unit, name, rest,
                 part_name);
    else
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 " %s", ms / unit, name);
}

/* Thousandths of `unit`, without zeros at the end: "1.5 s". */
static void with_fraction(char *buf, int64_t thousandths, const char *unit)
{
    int n = snprintf(buf, TIME_TEXT_MAX, "%" PRId64 ".%03" PRId64, thousandths / 1000,
                     thousandths % 1000);

    while (buf[n - 1] == '0')
        n--;
    n -= buf[n - 1] == '.';
    snprintf(buf + n, TIME_TEXT_MAX - (size_t)n, " %s", unit);
}

const char *time_span(char buf[TIME_TEXT_MAX], int64_t ms)
{
    if (ms > 0 && ms < SECOND)
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 " ms", ms);
    else if (ms < MINUTE)
        with_fraction(buf, ms, "s");
    else if (ms < HOUR)
        two_parts(buf, ms, MINUTE, "min", SECOND, "s");
    else if (ms < DAY)
        two_parts(buf, ms, HOUR, "h", MINUTE, "min");
    else
        two_parts(buf, ms, DAY, "d", HOUR, "h");
    return buf;
}

int64_t time_tick_step(int64_t end_ms, uint32_t most)
{
    /* clang-format off */
    static const int64_t steps[] = {
        1, 2, 5, 10, 20, 50, 100, 200, 500,
        SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
        MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
        HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
        DAY, 2 * DAY, 5 * DAY,
    };
    /* clang-format on */
    int64_t step;

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (end_ms / steps[i] <= most)
            return steps[i];
    for (step = 10 * DAY; end_ms / step > most; step *= 10) {
        if (end_ms / (2 * step) <= most)
            return 2 * step;
        if (end_ms / (5 * step) <= most)
            return 5 * step;
    }
    return step;
}

/* The units that a label needs: one when the whole axis is short, else two as on a clock. */
static bool on_clock(int64_t step_ms, int64_t end_ms)
{
    if (step_ms < SECOND || step_ms >= HOUR)
        return false;
    return step_ms < MINUTE ? end_ms >= 2 * MINUTE : end_ms >= 2 * HOUR;
}

const char *time_tick_unit(int64_t step_ms, int64_t end_ms)
{
    if (!on_clock(step_ms, end_ms))
        return "";
    return step_ms < MINUTE ? "min:s" : "h:min";
}

const char *time_tick(char buf[TIME_TEXT_MAX], int64_t at_ms, int64_t step_ms, int64_t end_ms)
{
    int64_t small = step_ms < MINUTE ? SECOND : MINUTE;

    if (at_ms == 0)
        snprintf(buf, TIME_TEXT_MAX, "0");
    else if (on_clock(step_ms, end_ms))
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 ":%02" PRId64, at_ms / small / 60,
                 at_ms / small % 60);
    else if (step_ms >= DAY)
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 " d", at_ms / DAY);
    else if (step_ms >= HOUR)
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 " h", at_ms / HOUR);
    else if (step_ms >= MINUTE)
        snprintf(buf, TIME_TEXT_MAX, "%" PRId64 " min", at_ms / MINUTE);
    else
        with_fraction(buf, at_ms, "s");
    return buf;
}

/* decimal.c - see decimal.h */
#include "util/decimal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/ascii.h"

#define EXACT_POWERS 22    /* 10^22 is the last power of ten that a double holds exactly */
#define EXPONENT_LIMIT 400 /* far beyond what is finite, far below an overflow of int */
#define MEANINGFUL UINT64_C(1000000000000000) /* more than 15 digits a double does not hold */
#define DIGITS_KEPT 19                        /* of these every number fits into 64 bits */

static const double powers[EXACT_POWERS + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

bool decimal_read_int(const char *text, int64_t *ret)
{
    bool negative = *text == '-';
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0), value = 0;

    if (*text == '-' || *text == '+')
        text++;
    if (!ascii_is_digit(*text))
        return false;
    for (; ascii_is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (*text)
        return false;
    *ret = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* Digits seen so far: digits x 10^exponent. */
struct mantissa {
    uint64_t digits;
    int kept, seen, exponent;
};

static const char *read_digits(const char *text, struct mantissa *m, bool fraction)
{
    for (; ascii_is_digit(*text); text++) {
        m->seen++;
        if (m->kept < DIGITS_KEPT) {
            m->digits = m->digits * 10 + (uint64_t)(*text - '0');
            m->kept += m->digits > 0;
            m->exponent -= fraction;
        } else if (!fraction && m->exponent < EXPONENT_LIMIT) {
            m->exponent++;
        }
        if (m->exponent < -EXPONENT_LIMIT)
            m->exponent = -EXPONENT_LIMIT;
    }
    return text;
}

static const char *read_exponent(const char *text, int *ret)
{
    bool negative = *text == '-';
    int value = 0;

    if (*text == '-' || *text == '+')
        text++;
    if (!ascii_is_digit(*text))
        return NULL;
    for (; ascii_is_digit(*text); text++)
        if (value < EXPONENT_LIMIT)
            value = value * 10 + (*text - '0');
    *ret = negative ? -value : value;
    return text;
}

/* One rounding, hence exact, while digits < 2^53 and the exponent is within the table. */
static double scale(double value, int exponent)
{
    for (; exponent > EXACT_POWERS; exponent -= EXACT_POWERS)
        value *= powers[EXACT_POWERS];
    for (; exponent < -EXACT_POWERS; exponent += EXACT_POWERS)
        value /= powers[EXACT_POWERS];
    return exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
}

bool decimal_read(const char *text, double *ret)
{
    bool negative = *text == '-';
    struct mantissa m = {0};
    int exponent = 0;
    double value;

    if (*text == '-' || *text == '+')
        text++;
    text = read_digits(text, &m, false);
    if (*text == '.')
        text = read_digits(text + 1, &m, true);
    if (m.seen == 0)
        return false;
    if (*text == 'e' || *text == 'E') {
        text = read_exponent(text + 1, &exponent);
        if (!text)
            return false;
    }
    if (*text)
        return false;
    value = m.digits ? scale((double)m.digits, m.exponent + exponent) : 0;
    if (value > DBL_MAX)
        return false;
    *ret = negative ? -value : value;
    return true;
}

/* value as digits / 10^decimals, as short as it can be; 0 <= value < 1e15. */
static uint64_t shortest(double value, int *ret_decimals)
{
    double read_back = -1;
    uint64_t digits = 0;
    int decimals = -1;

    while (++decimals <= EXACT_POWERS) {
        digits = (uint64_t)(value * powers[decimals] + 0.5);
        read_back = (double)digits / powers[decimals];
        if ((read_back >= value && read_back <= value) || digits >= MEANINGFUL / 10)
            break; /* it is, or more digits would mean nothing in a double */
    }
    if (decimals > EXACT_POWERS)
        decimals = EXACT_POWERS;
    while (decimals > 0 && digits % 10 == 0) {
        digits /= 10;
        decimals--;
    }
    *ret_decimals = decimals;
    return digits;
}

size_t decimal_write(double value, char buf[DECIMAL_TEXT_MAX])
{
    const char *sign = value < 0 ? "-" : "";
    int exponent = 0, decimals, n;
    uint64_t digits;

    if (!isfinite(value))
        return (size_t)snprintf(buf, DECIMAL_TEXT_MAX, "%s%s", sign, isnan(value) ? "nan" : "inf");
    value = value < 0 ? -value : value;
    for (; value >= (double)MEANINGFUL; exponent++)
        value /= 10;
    digits = shortest(value, &decimals);
    n = snprintf(buf, DECIMAL_TEXT_MAX, "%s%0*llu", sign, decimals + 1, (unsigned long long)digits);
    if (decimals > 0) {
        memmove(buf + n - decimals + 1, buf + n - decimals, (size_t)decimals + 1);
        buf[n - decimals] = '.';
        n++;
    }
    if (exponent > 0)
        n += snprintf(buf + n, (size_t)(DECIMAL_TEXT_MAX - n), "e%d", exponent);
    return (size_t)n;
}

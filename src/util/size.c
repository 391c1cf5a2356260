/* size.c - see size.h */
#include "util/size.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/ascii.h"

/* The first of a kind is the one we write. */
static const struct unit {
    const char *name;
    unsigned shift; /* 2^shift bytes */
} units[] = {
    {"tb", 40},        {"t", 40},         {"tebibytes", 40}, {"gb", 30},        {"g", 30},
    {"gibibytes", 30}, {"mb", 20},        {"m", 20},         {"mebibytes", 20}, {"kb", 10},
    {"k", 10},         {"kibibytes", 10}, {"b", 0},          {"", 0},           {"bytes", 0},
};

int size_parse(const char *text, int64_t *ret_bytes)
{
    char unit[16];
    int64_t n = 0;
    size_t length = 0;

    while (ascii_is_blank(*text))
        text++;
    if (!ascii_is_digit(*text))
        return -EINVAL;
    for (; ascii_is_digit(*text); text++) {
        if (n > (INT64_MAX - (*text - '0')) / 10)
            return -ERANGE;
        n = n * 10 + (*text - '0');
    }
    while (ascii_is_blank(*text))
        text++;
    for (; *text && !ascii_is_blank(*text) && length < sizeof unit - 1; text++)
        unit[length++] = *text;
    unit[length] = '\0';
    while (ascii_is_blank(*text))
        text++;
    for (size_t i = 0; !*text && i < sizeof units / sizeof *units; i++) {
        if (!ascii_equal(units[i].name, unit))
            continue;
        if (n > INT64_MAX >> units[i].shift)
            return -ERANGE;
        *ret_bytes = n << units[i].shift;
        return 0;
    }
    return -EINVAL;
}

size_t size_format(int64_t bytes, char buf[SIZE_TEXT_MAX])
{
    size_t i = 0;

    while (bytes % (INT64_C(1) << units[i].shift) != 0)
        i += 3;
    return (size_t)snprintf(buf, SIZE_TEXT_MAX, "%lld %s", (long long)(bytes >> units[i].shift),
                            units[i].name);
}

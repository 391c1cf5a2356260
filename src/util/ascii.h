/* ascii.h - letters and digits, whatever the locale says */
#ifndef PLIANT_UTIL_ASCII_H
#define PLIANT_UTIL_ASCII_H

#include <stdbool.h>

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* A name as hosts and pods have them: visible characters, none that quotes or divides elsewhere. */
static inline bool ascii_is_plain(const char *text)
{
    const char *c = text;

    while (*c > ' ' && *c < 127 && *c != '"' && *c != '\\' && *c != '/')
        c++;
    return *text && !*c;
}

/* Equal but for case? */
static inline bool ascii_equal(const char *a, const char *b)
{
    while (*a && ascii_lower(*a) == ascii_lower(*b))
        a++, b++;
    return ascii_lower(*a) == ascii_lower(*b);
}

#endif

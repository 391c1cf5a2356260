/* utf8.h - where letters begin and end in UTF-8 */
#ifndef PLIANT_UTIL_UTF8_H
#define PLIANT_UTIL_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* A byte that goes on with a letter. */
static inline bool utf8_continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The length of the letter that s[0..n) begins with, n > 0; 0: it is none (forms that are too long,
 * surrogates and what is beyond U+10FFFF included). */
static inline size_t utf8_length(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t length = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;

    if (length > n || u[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if (!utf8_continues(s[i]))
            return 0;
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
        (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return length;
}

/* How many letters s has. */
static inline size_t utf8_letters(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += !utf8_continues(*s);
    return n;
}

/* The bytes of its first letters; all of s if it has no more. */
static inline size_t utf8_first(const char *s, size_t letters)
{
    size_t n = 0;

    for (; s[n] && (letters > 0 || utf8_continues(s[n])); n++)
        letters -= !utf8_continues(s[n]);
    return n;
}

/* Where to cut s, which has more than n bytes, to keep n at most and no part of a letter. */
static inline size_t utf8_cut(const char *s, size_t n)
{
    while (n > 0 && utf8_continues(s[n]))
        n--;
    return n;
}

#endif

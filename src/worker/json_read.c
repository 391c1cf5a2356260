/* json_read.c - see json_read.h */
#include "worker/json_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/ascii.h"
#include "util/decimal.h"
#include "util/utf8.h"

/* ---- is it JSON? ----------------------------------------------------------------------------- */

struct scan {
    const char *p, *end;
};

static bool scan_value(struct scan *s, int depth);

static char now(const struct scan *s)
{
    return s->p < s->end ? *s->p : '\0'; /* a NUL stands nowhere in JSON */
}

static void skip_blanks(struct scan *s)
{
    while (s->p < s->end && ascii_is_blank(*s->p))
        s->p++;
}

static bool take(struct scan *s, char c)
{
    if (now(s) != c)
        return false;
    s->p++;
    return true;
}

static int hex_digit(char c)
{
    c = ascii_lower(c);
    return ascii_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four digits at s->p, which moves on; -1: they are none. */
static int32_t take_hex(struct scan *s)
{
    int32_t code = 0;

    for (int i = 0; i < 4; i++, s->p++) {
        int digit = hex_digit(now(s));

        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* Behind "\u": a letter, of two halves if need be; -1: none, or NUL. */
static int32_t take_code_point(struct scan *s)
{
    int32_t high = take_hex(s), low;

    if (high <= 0 || (high >= 0xdc00 && high <= 0xdfff))
        return -1;
    if (high < 0xd800 || high > 0xdbff)
        return high;
    if (!take(s, '\\') || !take(s, 'u'))
        return -1;
    low = take_hex(s);
    if (low < 0xdc00 || low > 0xdfff)
        return -1;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static const char escapes[] = "\"\\/bfnrt", escaped[] = "\"\\/\b\f\n\r\t";

static bool scan_string(struct scan *s)
{
    if (!take(s, '"'))
        return false;
    while (s->p < s->end && *s->p != '"') {
        if (*s->p == '\\') {
            s->p++;
            if (take(s, 'u')) {
                if (take_code_point(s) < 0)
                    return false;
            } else if (s->p == s->end || !*s->p || !strchr(escapes, *s->p)) {
                return false;
            } else {
                s->p++;
            }
        } else {
            size_t length = utf8_length(s->p, (size_t)(s->end - s->p));

            if (length == 0 || (unsigned char)*s->p < ' ')
                return false;
            s->p += length;
        }
    }
    return take(s, '"');
}

static bool scan_digits(struct scan *s)
{
    const char *start = s->p;

    while (ascii_is_digit(now(s)))
        s->p++;
    return s->p > start;
}

static bool scan_number(struct scan *s)
{
    take(s, '-');
    if (!take(s, '0') && !scan_digits(s))
        return false;
    if (take(s, '.') && !scan_digits(s))
        return false;
    if (!take(s, 'e') && !take(s, 'E'))
        return true;
    if (!take(s, '-'))
        take(s, '+');
    return scan_digits(s);
}

static bool scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return false;
    s->p += n;
    return true;
}

static bool scan_key(struct scan *s)
{
    skip_blanks(s);
    if (!scan_string(s))
        return false;
    skip_blanks(s);
    return take(s, ':');
}

static bool scan_children(struct scan *s, bool map, int depth)
{
    char close = map ? '}' : ']';

    if (depth > JSON_DEPTH_MAX)
        return false;
    s->p++; /* the bracket */
    skip_blanks(s);
    if (take(s, close))
        return true;
    do {
        if ((map && !scan_key(s)) || !scan_value(s, depth))
            return false;
        skip_blanks(s);
    } while (take(s, ','));
    return take(s, close);
}

static bool scan_value(struct scan *s, int depth)
{
    skip_blanks(s);
    switch (now(s)) {
    case '{':
        return scan_children(s, true, depth + 1);
    case '[':
        return scan_children(s, false, depth + 1);
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        return scan_number(s);
    }
}

struct json_span json_read(const char *text, size_t n)
{
    struct scan s = {text, text + n};
    const char *start, *end;

    skip_blanks(&s);
    start = s.p;
    if (!scan_value(&s, 0))
        return (struct json_span){0};
    end = s.p;
    skip_blanks(&s);
    if (s.p < s.end)
        return (struct json_span){0};
    return (struct json_span){start, (size_t)(end - start)};
}

/* ---- what it says ------------------------------------------------------------------------------
 */

bool json_is(struct json_span value, char first)
{
    return value.v && *value.v == first;
}

/* The next value at s->p, known to be good. */
static struct json_span span_of_value(struct scan *s)
{
    const char *start;

    skip_blanks(s);
    start = s->p;
    scan_value(s, 0);
    return (struct json_span){start, (size_t)(s->p - start)};
}

bool json_next(struct json_span container, struct json_at *at)
{
    struct scan s;

    if (!json_is(container, '{') && !json_is(container, '['))
        return false;
    s = (struct scan){at->value.v ? at->value.v + at->value.n : container.v + 1,
                      container.v + container.n};
    skip_blanks(&s);
    if (at->value.v)
        take(&s, ',');
    skip_blanks(&s);
    if (now(&s) == '}' || now(&s) == ']')
        return false;
    if (*container.v == '{') {
        at->key = span_of_value(&s);
        skip_blanks(&s);
        take(&s, ':');
    }
    at->value = span_of_value(&s);
    return true;
}

struct json_span json_get(struct json_span map, const char *key)
{
    size_t n = strlen(key);

    if (!json_is(map, '{'))
        return (struct json_span){0};
    for (struct json_at at = {0}; json_next(map, &at);)
        if (at.key.n == n + 2 && memcmp(at.key.v + 1, key, n) == 0)
            return at.value;
    return (struct json_span){0};
}

/* -ENOENT where there is nothing. */
static int there(struct json_span value)
{
    return !value.v || *value.v == 'n' ? -ENOENT : 0;
}

int json_int64(struct json_span value, int64_t *ret)
{
    char digits[24];
    int r = there(value);

    if (r < 0)
        return r;
    if (value.n >= sizeof digits)
        return -EINVAL;
    memcpy(digits, value.v, value.n);
    digits[value.n] = '\0';
    return decimal_read_int(digits, ret) ? 0 : -EINVAL;
}

int json_truth(struct json_span value, bool *ret)
{
    int r = there(value);

    if (r < 0)
        return r;
    if (*value.v != 't' && *value.v != 'f')
        return -EINVAL;
    *ret = *value.v == 't';
    return 0;
}

/* A letter as UTF-8, at most 4 bytes. */
static size_t put_letter(char *to, int32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

int json_text(struct json_span value, char **ret)
{
    int r = there(value);
    struct scan s;
    char *text, *to;

    if (r < 0)
        return r;
    if (*value.v != '"')
        return -EINVAL;
    text = to = malloc(value.n); /* an escape is longer than its letter; two quotes less */
    if (!text)
        return -ENOMEM;
    for (s = (struct scan){value.v + 1, value.v + value.n}; *s.p != '"';) {
        if (!take(&s, '\\'))
            *to++ = *s.p++;
        else if (take(&s, 'u'))
            to += put_letter(to, take_code_point(&s));
        else
            *to++ = escaped[strchr(escapes, *s.p++) - escapes];
    }
    *to = '\0';
    *ret = text;
    return 0;
}

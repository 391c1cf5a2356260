/* json_out.c - see json_out.h
 *
 * Each call makes room once, for the worst case, and then writes without checks: a control
 * character or a bad byte becomes six bytes at most.
 */
#include "spec/json_out.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "spec/memory.h"
#include "util/decimal.h"
#include "util/utf8.h"

#define PIECE 65536u     /* a file gets at least so much at a time */
#define GROWN_BY_BYTE 6u /* "\u001f" */
#define NUMBER_SIZE 24u  /* sign, 20 digits, quotes */
#define PUNCTUATION 8u   /* comma, quotes, colon, bracket */

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

void json_init(struct json *j, FILE *file)
{
    *j = (struct json){.file = file};
}

void json_free(struct json *j)
{
    mem_free(spec_memory, j->v);
    *j = (struct json){0};
}

void json_reset(struct json *j)
{
    j->n = 0;
    j->error = 0;
    j->comma = false;
}

static bool fail(struct json *j, int error)
{
    j->error = error;
    return false;
}

static bool write_out(struct json *j)
{
    errno = EIO; /* where the C library sets none */
    if (j->n > 0 && fwrite(j->v, 1, j->n, j->file) != j->n)
        return fail(j, -errno);
    j->n = 0;
    return true;
}

static bool grow(struct json *j, size_t more)
{
    size_t cap = j->cap < PIECE ? PIECE : j->cap;
    char *v;

    while (cap - j->n < more) {
        if (cap > SIZE_MAX / 2)
            return fail(j, -ENOMEM);
        cap *= 2;
    }
    v = mem_resize(spec_memory, j->v, cap, 1);
    if (!v)
        return fail(j, -ENOMEM);
    j->v = v;
    j->cap = cap;
    return true;
}

/* Room for `more` bytes; false after an error. */
static inline bool room(struct json *j, size_t more)
{
    return !j->error && (j->cap - j->n >= more || grow(j, more));
}

static inline void put(struct json *j, char c)
{
    j->v[j->n++] = c;
}

static inline void put_bytes(struct json *j, const char *s, size_t n)
{
    memcpy(j->v + j->n, s, n);
    j->n += n;
}

/* The comma and the key, and room for `more` bytes of value behind them. */
static inline bool start(struct json *j, const char *key, size_t more)
{
    size_t n = key ? strlen(key) : 0;

    if (!room(j, n + PUNCTUATION + more))
        return false;
    if (j->comma)
        put(j, ',');
    j->comma = true;
    if (key) {
        put(j, '"');
        put_bytes(j, key, n);
        put(j, '"');
        put(j, ':');
    }
    return true;
}

void json_begin(struct json *j, const char *key, char bracket)
{
    if (!start(j, key, 0))
        return;
    put(j, bracket);
    j->comma = false;
}

void json_end(struct json *j, char bracket)
{
    if (!room(j, 1))
        return;
    put(j, bracket);
    j->comma = true;
}

static void put_uint(struct json *j, uint64_t u)
{
    char digits[NUMBER_SIZE];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + u % 10);
    while (u /= 10);
    put_bytes(j, digits + at, sizeof digits - at);
}

void json_uint(struct json *j, const char *key, uint64_t u)
{
    if (start(j, key, NUMBER_SIZE))
        put_uint(j, u);
}

void json_int(struct json *j, const char *key, int64_t i)
{
    if (!start(j, key, NUMBER_SIZE))
        return;
    if (i < 0)
        put(j, '-');
    put_uint(j, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
}

void json_id(struct json *j, const char *key, uint64_t id)
{
    if (!start(j, key, NUMBER_SIZE))
        return;
    put(j, '"');
    put_uint(j, id);
    put(j, '"');
}

void json_double(struct json *j, const char *key, double x)
{
    char text[DECIMAL_TEXT_MAX];

    if (!isfinite(x))
        json_null(j, key);
    else if (start(j, key, sizeof text))
        put_bytes(j, text, decimal_write(x, text));
}

void json_bool(struct json *j, const char *key, bool b)
{
    if (start(j, key, sizeof "false"))
        put_bytes(j, b ? "true" : "false", b ? 4 : 5);
}

void json_null(struct json *j, const char *key)
{
    if (start(j, key, sizeof "null"))
        put_bytes(j, "null", 4);
}

static inline bool plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_escape(struct json *j, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* byte, its letter */

    put(j, '\\');
    for (size_t i = 0; names[i]; i += 2)
        if ((unsigned char)names[i] == c) {
            put(j, names[i + 1]);
            return;
        }
    put_bytes(j, "u00", 3);
    put(j, hex[c >> 4]);
    put(j, hex[c & 15]);
}

/* The inside of a string; the caller has made room. */
static void put_text(struct json *j, const char *s, size_t n)
{
    const char *end = s + n;

    while (s < end) {
        const char *from = s;
        size_t bytes;

        while (s < end && plain((unsigned char)*s))
            s++;
        put_bytes(j, from, (size_t)(s - from));
        if (s == end)
            break;
        if ((unsigned char)*s <= 0x7f) {
            put_escape(j, (unsigned char)*s++);
            continue;
        }
        bytes = utf8_length(s, (size_t)(end - s));
        put_bytes(j, bytes ? s : replacement, bytes ? bytes : 3);
        s += bytes ? bytes : 1;
    }
}

static void put_quoted(struct json *j, const char *s)
{
    size_t n = strlen(s);

    if (n > SIZE_MAX / GROWN_BY_BYTE - PUNCTUATION) {
        fail(j, -ENOMEM);
        return;
    }
    if (!room(j, n * GROWN_BY_BYTE + PUNCTUATION))
        return;
    put(j, '"');
    put_text(j, s, n);
    put(j, '"');
}

void json_string(struct json *j, const char *key, const char *s)
{
    if (!s)
        json_null(j, key);
    else if (start(j, key, 0))
        put_quoted(j, s);
}

void json_member(struct json *j, const char *any_key, const char *s)
{
    if (!start(j, NULL, 0))
        return;
    put_quoted(j, any_key);
    j->comma = false;
    if (!room(j, 1))
        return;
    put(j, ':');
    json_string(j, NULL, s);
}

void json_labels(struct json *j, const char *key, const struct pliant_label *labels, size_t n)
{
    json_begin(j, key, '{');
    for (size_t i = 0; i < n; i++)
        json_member(j, labels[i].key, labels[i].value);
    json_end(j, '}');
}

void json_slot(struct json *j, const char *key, const char *node, uint32_t index)
{
    if (!start(j, key, 0))
        return;
    put_quoted(j, node);
    if (!room(j, NUMBER_SIZE))
        return;
    j->n--; /* the closing quote again behind the index */
    put(j, '/');
    put_uint(j, index);
    put(j, '"');
}

void json_hex(struct json *j, const char *key, const uint8_t *bytes, size_t n)
{
    static const char hex[] = "0123456789abcdef";

    if (!start(j, key, 2 * n))
        return;
    put(j, '"');
    for (size_t i = 0; i < n; i++) {
        put(j, hex[bytes[i] >> 4]);
        put(j, hex[bytes[i] & 15]);
    }
    put(j, '"');
}

void json_raw(struct json *j, const char *key, const char *text, size_t n)
{
    if (start(j, key, n))
        put_bytes(j, text, n);
}

int json_line(struct json *j)
{
    if (room(j, 1))
        put(j, '\n');
    j->comma = false;
    if (j->file && !j->error && j->n >= PIECE / 2)
        write_out(j);
    return j->error;
}

int json_flush(struct json *j)
{
    if (!j->file || j->error)
        return j->error;
    if (write_out(j) && fflush(j->file) != 0)
        fail(j, errno ? -errno : -EIO);
    return j->error;
}

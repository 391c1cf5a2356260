/* json_out.h - JSON as it is written: compact, in the order of the calls
 *
 *     json_begin(&j, NULL, '{');
 *     json_int(&j, "t", 16800);
 *     json_begin(&j, "slots", '[');
 *     json_string(&j, NULL, "n1/0");           in a list: no key
 *     json_end(&j, ']');
 *     json_end(&j, '}');
 *     json_line(&j);                           the end of a line of JSON Lines
 *
 * Into memory, or into a file in large pieces. Integers are exact; doubles have up to
 * 15 digits, and are null where they are no finite number. Strings come out as valid UTF-8:
 * bytes that are none become U+FFFD.
 *
 * Owner   json_free() frees the buffer, never the file
 * Errors  sticky in `error`: after the first (-ENOMEM, or the errno of writing) calls do
 *         nothing; json_line() and json_flush() return it
 */
#ifndef PLIANT_SPEC_JSON_OUT_H
#define PLIANT_SPEC_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <pliant/pliant.h>

struct json {
    char *v; /* what was written and not flushed; not NUL-terminated */
    size_t n, cap;
    FILE *file; /* NULL: all stays in `v` */
    int error;
    bool comma; /* the next value needs one before it */
};

void json_init(struct json *j, FILE *file);
void json_free(struct json *j);

/* Forget what is in memory and any error; keep the buffer. */
void json_reset(struct json *j);

/* `bracket` is '{' or '[', and '}' or ']' at the end. Keys are plain ASCII; NULL in a list. */
void json_begin(struct json *j, const char *key, char bracket);
void json_end(struct json *j, char bracket);

void json_string(struct json *j, const char *key, const char *s); /* NULL: null */
void json_int(struct json *j, const char *key, int64_t i);
void json_uint(struct json *j, const char *key, uint64_t u);
void json_id(struct json *j, const char *key, uint64_t id); /* 64 bits, as a string */
void json_double(struct json *j, const char *key, double x);
void json_bool(struct json *j, const char *key, bool b);
void json_null(struct json *j, const char *key);

/* A member whose key may hold any bytes. */
void json_member(struct json *j, const char *any_key, const char *s);

/* A map; the keys may hold any bytes. */
void json_labels(struct json *j, const char *key, const struct pliant_label *labels, size_t n);

/* "node/index": a slot. */
void json_slot(struct json *j, const char *key, const char *node, uint32_t index);

/* Bytes as hexadecimal digits in a string. */
void json_hex(struct json *j, const char *key, const uint8_t *bytes, size_t n);

/* A value that is JSON already. */
void json_raw(struct json *j, const char *key, const char *text, size_t n);

/* End a line; hands full buffers to the file. */
int json_line(struct json *j);

/* Hand all to the file and flush it. In memory: only tells the error. */
int json_flush(struct json *j);

#endif

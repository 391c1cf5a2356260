/* json_read.h - JSON looked at in place: what a line of the agent says
 *
 *     struct json_span line = json_read(text, n);         the whole text is one value, or v is NULL
 *     json_int(json_get(line, "n"), &n);
 *     for (struct json_at at = {0}; json_next(map, &at);) use at.key, at.value
 *
 * No tree, no memory but for decoded strings: the text is checked once, and spans of it are handed
 * out. All but json_read() take spans that come from it.
 *
 * Shapes  strict JSON in UTF-8, at most JSON_DEPTH_MAX levels, no NUL in strings. A key that is
 *         spelled with escapes is not found by json_get(); of equal keys the first is
 * Owner   spans are borrowed from the text; a decoded string is freed by the caller
 * Errors  -ENOENT: the span is missing or null; -EINVAL: another kind of value; -ENOMEM
 */
#ifndef PLIANT_WORKER_JSON_READ_H
#define PLIANT_WORKER_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 32

struct json_span {
    const char *v; /* NULL: missing */
    size_t n;
};

struct json_at { /* a place in a list or a map */
    struct json_span key, value;
};

struct json_span json_read(const char *text, size_t n);
bool json_is(struct json_span value, char first); /* '{', '[', '"', 't', 'f', 'n' */
struct json_span json_get(struct json_span map, const char *key);
bool json_next(struct json_span container, struct json_at *at);

int json_int64(struct json_span value, int64_t *ret);
int json_truth(struct json_span value, bool *ret);
int json_text(struct json_span value, char **ret);

#endif

/* worker_answer.c - any bytes as what an agent says to the worker's library */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/json_read.h"
#include "worker/notice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All that a span holds can be reached, and stays inside it. */
static void walk(struct json_span value)
{
    int64_t n;
    bool t;
    char *text = NULL;

    json_int64(value, &n);
    json_truth(value, &t);
    if (json_text(value, &text) == 0)
        assert(strlen(text) < value.n);
    free(text);
    for (struct json_at at = {0}; json_next(value, &at);) {
        assert(at.value.n > 0 && at.value.v > value.v &&
               at.value.v + at.value.n < value.v + value.n);
        if (*value.v == '{')
            walk(at.key);
        walk(at.value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_span line = json_read((const char *)data, size);
    struct notice notice = {0};

    if (!line.v)
        return 0;
    walk(line);
    if (notice_read(json_get(line, "info"), &notice) == 0 && notice.json)
        assert(json_read(notice.json, strlen(notice.json)).v);
    notice_free(&notice);
    return 0;
}

/* codec.c - see codec.h */
#include "states/codec.h"

#include <errno.h>
#include <string.h>

#include "util/fnv.h"

#define NO_TEXT UINT32_MAX

void codec_expect(struct codec *c, bool condition)
{
    if (c->reading && c->error == 0 && !condition)
        c->error = -EINVAL;
}

void codec_no_memory(struct codec *c)
{
    if (c->error == 0)
        c->error = -ENOMEM;
}

static void write_bytes(struct codec *c, const void *bytes, size_t n)
{
    if (n == 0)
        return;
    if (!vec_room(c->alloc, &c->out, n)) {
        codec_no_memory(c);
        return;
    }
    memcpy(c->out.v + c->out.n, bytes, n);
    c->out.n += n;
}

void codec_raw(struct codec *c, void *scalar, size_t size)
{
    if (c->error < 0)
        return;
    if (!c->reading) {
        write_bytes(c, scalar, size);
        return;
    }
    codec_expect(c, c->size - c->at >= size);
    if (c->error < 0)
        return;
    memcpy(scalar, c->in + c->at, size);
    c->at += size;
}

void codec_byte(struct codec *c, uint8_t *byte, uint8_t end)
{
    CODEC(c, *byte);
    codec_expect(c, *byte < end);
    if (c->error < 0 && c->reading)
        *byte = 0;
}

void codec_bool(struct codec *c, bool *truth)
{
    uint8_t byte = *truth;

    codec_byte(c, &byte, 2);
    *truth = byte == 1;
}

void codec_count(struct codec *c, size_t *count, size_t size_each)
{
    uint64_t n = *count;

    CODEC(c, n);
    codec_expect(c, n <= (c->size - c->at) / size_each);
    if (c->reading)
        *count = c->error < 0 ? 0 : (size_t)n;
}

void codec_text(struct codec *c, char **text, size_t max)
{
    uint32_t n = !c->reading && *text ? (uint32_t)strlen(*text) : NO_TEXT;

    CODEC(c, n);
    if (!c->reading) {
        if (n != NO_TEXT)
            codec_raw(c, *text, n);
        return;
    }
    *text = NULL;
    if (c->error < 0 || n == NO_TEXT)
        return;
    codec_expect(c, n <= max && n <= c->size - c->at);
    if (c->error < 0)
        return;
    *text = mem_resize(c->alloc, NULL, (size_t)n + 1, 1);
    if (!*text) {
        codec_no_memory(c);
        return;
    }
    codec_raw(c, *text, n);
    (*text)[n] = '\0';
}

void codec_array(struct codec *c, uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CODEC(c, v[i]);
}

void codec_deadline(struct codec *c, struct deadline *d)
{
    CODEC(c, d->at_ms);
    CODEC(c, d->made);
}

uint64_t codec_sum(const uint8_t *bytes, size_t n)
{
    return fnv_add(FNV_START, bytes, n);
}

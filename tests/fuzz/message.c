/* message.c - any bytes as a message: a header of 24 bytes and a body */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A header that is good says all that its bytes say. */
static void check_header(const uint8_t *bytes, const struct message_header *h)
{
    uint8_t again[MESSAGE_HEADER];

    message_pack(again, h);
    assert(memcmp(again, bytes, sizeof again) == 0);
}

/* Ask a body what a handler would. */
static void ask(const struct doc_file *f, const struct doc *d)
{
    struct spec_error err = {""};
    const struct doc *list;
    const char *text;
    int64_t i;
    bool b;

    if (doc_int(f, d, "attempt", 1, UINT32_MAX, &i, &err) == -EINVAL)
        assert(*err.text);
    if (doc_string(f, d, "job", 128, &text, &err) == 0)
        assert(strlen(text) <= 128);
    doc_bool(f, d, "ok", &b, &err);
    if (doc_container(f, d, "tasks", DOC_LIST, &list, &err) == 0)
        for (const struct doc *c = list->child; c; c = c->next)
            ask(f, c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct doc_file f; /* as a program does: one for all messages */
    size_t n = size < MESSAGE_HEADER ? size : MESSAGE_HEADER;
    struct message_header h;
    enum message_fault fault = message_unpack(data, n, size - n, &h);
    struct spec_error err = {""};
    int r;

    assert(*message_fault_code(fault));
    if (fault == MESSAGE_GOOD)
        check_header(data, &h);
    r = message_body(&f, &h, data + n, size - n, &err);
    if (r == MESSAGE_GOOD)
        ask(&f, f.root);
    else
        assert(r == MESSAGE_MALFORMED && *err.text);
    return 0;
}

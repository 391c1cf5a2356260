/* outbox.c - what leaves after the commit, in the order in which it was put in */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

#define KEEP_BYTES (1u << 20) /* of a buffer that was larger in a busy turn */

enum outbox_kind {
    OUT_NODE,
    OUT_CLIENT,
    OUT_EVENT,
    OUT_FORGOTTEN, /* its node is gone */
};

struct outbox_entry {
    enum outbox_kind kind;
    enum message_type type;
    enum message_type of; /* the request that is answered */
    uint64_t sequence;    /* of replies and events; a node's is counted when it leaves */
    struct daemon_node *node;
    size_t peer, body, size; /* offsets into the bytes; a client's id has its size in front */
};

struct outbox {
    struct VEC(struct outbox_entry) entries;
    struct VEC(char) bytes;
};

void outbox_open(struct daemon *d)
{
    d->out = need(calloc(1, sizeof *d->out));
}

void outbox_close(struct daemon *d)
{
    if (!d->out)
        return;
    vec_free(NULL, &d->out->entries);
    vec_free(NULL, &d->out->bytes);
    free(d->out);
    d->out = NULL;
}

static size_t keep(struct outbox *out, const void *bytes, size_t n)
{
    size_t at = out->bytes.n;

    if (n == 0)
        return at;
    need(vec_room(NULL, &out->bytes, n) ? out : NULL);
    memcpy(out->bytes.v + at, bytes, n);
    out->bytes.n += n;
    return at;
}

static struct outbox_entry *put(struct daemon *d, enum outbox_kind kind, enum message_type type,
                                const struct json *body)
{
    struct outbox_entry *e = need(vec_push(NULL, &d->out->entries));

    need(body->error ? NULL : e);
    e->kind = kind;
    e->type = type;
    e->size = body->n;
    e->body = keep(d->out, body->v, body->n);
    return e;
}

void outbox_to_node(struct daemon *d, struct daemon_node *node, enum message_type type,
                    const struct json *body)
{
    if (node->state == NODE_UP)
        put(d, OUT_NODE, type, body)->node = node;
}

static void put_reply(struct daemon *d, const struct reply_to *to, enum message_type type,
                      const struct json *body)
{
    struct outbox_entry *e = put(d, OUT_CLIENT, type, body);

    e->of = to->of;
    e->sequence = to->sequence;
    e->peer = keep(d->out, &to->peer.size, 1);
    keep(d->out, to->peer.bytes, to->peer.size);
}

void outbox_reply(struct daemon *d, const struct reply_to *to, const struct json *body)
{
    put_reply(d, to, MESSAGE_REPLY, body);
}

void error_body(struct json *j, const char *code, const char *text, enum message_type of)
{
    json_init(j, NULL);
    json_begin(j, NULL, '{');
    json_string(j, "code", code);
    json_string(j, "text", text);
    json_int(j, "of", of);
    if (strcmp(code, message_fault_code(MESSAGE_OTHER_VERSION)) == 0) {
        json_begin(j, "accepted", '[');
        json_int(j, NULL, MESSAGE_VERSION);
        json_int(j, NULL, MESSAGE_VERSION);
        json_end(j, ']');
    }
    json_end(j, '}');
}

void outbox_refuse(struct daemon *d, const struct reply_to *to, const char *code,
                   const char *format, ...)
{
    char text[1024];
    struct json j;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_body(&j, code, text, to->of);
    put_reply(d, to, MESSAGE_ERROR, &j);
    json_free(&j);
}

void outbox_event(struct daemon *d, const struct json *body)
{
    put(d, OUT_EVENT, MESSAGE_EVENT, body)->sequence = ++d->event_sequence;
}

void outbox_forget_node(struct daemon *d, const struct daemon_node *node)
{
    for (size_t i = 0; i < d->out->entries.n; i++)
        if (d->out->entries.v[i].node == node)
            d->out->entries.v[i] = (struct outbox_entry){.kind = OUT_FORGOTTEN};
}

/* ---- sending -------------------------------------------------------------------------------- */

static void send_to_node(struct daemon *d, struct daemon_node *node, enum message_type type,
                         const struct json *body)
{
    const struct message_header h = {
        .type = (uint16_t)type, .epoch = d->epoch, .sequence = node->seq_out + 1};

    if (rpc_send(d->agents_end, &node->peer, &h, body) == 0) {
        node->seq_out++;
        return;
    }
    if (!node->behind)
        log_line(4, "msg=\"an agent does not read; messages are dropped\" node=%s",
                 log_quoted(node->name).v);
    node->behind = true; /* the next session has the full picture */
}

static void send_to_client(struct daemon *d, const struct outbox_entry *e, const struct json *body)
{
    const struct message_header h = {
        .type = (uint16_t)e->type, .epoch = d->epoch, .sequence = e->sequence};
    const char *peer = d->out->bytes.v + e->peer;
    struct rpc_id id = {.size = (uint8_t)peer[0]};

    memcpy(id.bytes, peer + 1, id.size);
    rpc_send(d->clients_end, &id, &h, body); /* who does not listen asks again */
}

static void send_entry(struct daemon *d, const struct outbox_entry *e)
{
    const struct json body = {.v = d->out->bytes.v + e->body, .n = e->size};
    const struct message_header h = {
        .type = (uint16_t)e->type, .epoch = d->epoch, .sequence = e->sequence};

    switch (e->kind) {
    case OUT_NODE:
        send_to_node(d, e->node, e->type, &body);
        return;
    case OUT_CLIENT:
        send_to_client(d, e, &body);
        return;
    case OUT_EVENT:
        rpc_send(d->events_end, NULL, &h, &body);
        return;
    case OUT_FORGOTTEN:
        return;
    }
}

size_t outbox_mark(const struct daemon *d)
{
    return d->out->entries.n;
}

void outbox_flush_since(struct daemon *d, size_t mark)
{
    for (size_t i = mark; i < d->out->entries.n; i++)
        send_entry(d, &d->out->entries.v[i]);
    d->out->entries.n = mark;
}

/* Does the answer hold whether or not the commit succeeds? */
static bool holds_anyway(const struct outbox_entry *e)
{
    const struct message_kind *kind = message_kind((uint16_t)e->of);

    return e->type == MESSAGE_ERROR || (kind && kind->role == ROLE_VIEWER);
}

static void answer_unsure(struct daemon *d, struct outbox_entry e)
{
    struct json j;

    error_body(&j, "unavailable",
               "the store cannot be written; whether this holds shows when it can be again", e.of);
    e.type = MESSAGE_ERROR;
    send_to_client(d, &e, &j);
    json_free(&j);
}

void outbox_commit_failed(struct daemon *d)
{
    for (size_t i = 0; i < d->out->entries.n; i++) {
        struct outbox_entry *e = &d->out->entries.v[i];

        if (e->kind != OUT_CLIENT)
            continue;
        if (holds_anyway(e))
            send_entry(d, e);
        else
            answer_unsure(d, *e);
        *e = (struct outbox_entry){.kind = OUT_FORGOTTEN};
    }
}

void outbox_flush(struct daemon *d)
{
    outbox_flush_since(d, 0);
    d->out->bytes.n = 0;
    if (d->out->bytes.cap > KEEP_BYTES)
        vec_free(NULL, &d->out->bytes);
}

void send_now(struct daemon *d, struct daemon_node *node, enum message_type type,
              const struct json *body)
{
    if (node->state == NODE_UP)
        send_to_node(d, node, type, body);
}

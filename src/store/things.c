/* things.c - see store_impl.h: nodes, slots, checkpoints, notes */
#include "store/store_impl.h"

#include <string.h>

#define CHECKPOINTS_KEPT 1000   /* of a job's failed and deleted ones */
#define CHECKPOINTS_TRIMMED 64u /* at the first and every so many, those behind go */

/* ---- nodes ----------------------------------------------------------------------------------- */

int store_node_put(struct store *s, const struct store_node *node)
{
    return STORE_PUT(s, QUERY_NODE_PUT, value_text(node->name), value_id(node->incarnation),
                     value_text(node->about));
}

int store_node_delete(struct store *s, const char *name)
{
    return STORE_PUT(s, QUERY_NODE_DELETE, value_text(name));
}

int store_nodes(struct store *s, int (*each)(void *ctx, const struct store_node *node), void *ctx,
                struct spec_error *err)
{
    struct store_node node;
    int r = store_ask(s, QUERY_NODES, NULL, 0, err);

    while (!r && (r = store_next(s, QUERY_NODES, err)) == 1) {
        node.name = store_column_text(s, QUERY_NODES, 0);
        node.incarnation = (uint64_t)store_column_int(s, QUERY_NODES, 1);
        node.about = store_column_text(s, QUERY_NODES, 2);
        r = node.name && node.about ? each(ctx, &node) : store_error(s, SQLITE_NOMEM, err);
    }
    return store_end(s, QUERY_NODES, r);
}

/* ---- slots ----------------------------------------------------------------------------------- */

int store_slot_put(struct store *s, const struct store_slot *slot)
{
    const struct stored_job *job = slot->job ? jobs_find(s, slot->job) : NULL;

    if (!slot->job)
        return STORE_PUT(s, QUERY_SLOT_DELETE, value_text(slot->node), value_int(slot->slot));
    if (!job)
        return -ENOENT;
    return STORE_PUT(s, QUERY_SLOT_PUT, value_text(slot->node), value_int(slot->slot),
                     value_int(job->key), value_int(slot->index));
}

int store_slots(struct store *s, int (*each)(void *ctx, const struct store_slot *slot), void *ctx,
                struct spec_error *err)
{
    struct store_slot slot;
    int r = store_ask(s, QUERY_SLOTS, NULL, 0, err);

    while (!r && (r = store_next(s, QUERY_SLOTS, err)) == 1) {
        slot.node = store_column_text(s, QUERY_SLOTS, 0);
        slot.slot = (uint32_t)store_column_int(s, QUERY_SLOTS, 1);
        slot.job = store_column_text(s, QUERY_SLOTS, 2);
        slot.index = (uint32_t)store_column_int(s, QUERY_SLOTS, 3);
        r = slot.node && slot.job ? each(ctx, &slot) : store_error(s, SQLITE_NOMEM, err);
    }
    return store_end(s, QUERY_SLOTS, r);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

int store_checkpoint_put(struct store *s, const struct store_checkpoint *c)
{
    struct stored_job *job = jobs_find(s, c->job);
    int r;

    if (!job)
        return -ENOENT;
    r = STORE_PUT(s, QUERY_CHECKPOINT_PUT, value_int(job->key), value_id(c->id),
                  value_int(c->savepoint), value_text(c->status), value_text(c->path),
                  value_text(c->cause), value_id(c->bytes), value_int(c->triggered_unix_ms),
                  value_int(c->ended_unix_ms));
    if (r || job->n_checkpoints_put++ % CHECKPOINTS_TRIMMED)
        return r;
    return STORE_PUT(s, QUERY_CHECKPOINTS_TRIM, value_int(job->key), value_int(CHECKPOINTS_KEPT));
}

int store_checkpoints(struct store *s, const char *id,
                      int (*each)(void *ctx, const struct store_checkpoint *c), void *ctx,
                      struct spec_error *err)
{
    const enum store_query q = QUERY_CHECKPOINTS;
    const struct stored_job *job = jobs_find(s, id);
    int r;

    if (!job)
        return jobs_unknown(s, id, err);
    r = STORE_ASK(s, q, err, value_int(job->key));
    while (!r && (r = store_next(s, q, err)) == 1) {
        struct store_checkpoint c = {
            .job = job->id,
            .id = (uint64_t)store_column_int(s, q, 2),
            .savepoint = store_column_int(s, q, 3) != 0,
            .status = store_column_text(s, q, 4),
            .path = store_column_text(s, q, 5),
            .cause = store_column_text(s, q, 6),
            .bytes = (uint64_t)store_column_int(s, q, 7),
            .triggered_unix_ms = store_column_int(s, q, 8),
            .ended_unix_ms = store_column_int(s, q, 9),
        };

        r = c.status ? each(ctx, &c) : store_error(s, SQLITE_NOMEM, err);
    }
    return store_end(s, q, r);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* The daemon's own have the key 0. */
static int note_key(struct store *s, const char *id, int64_t *ret)
{
    const struct stored_job *job = *id ? jobs_find(s, id) : NULL;

    if (*id && !job)
        return -ENOENT;
    *ret = job ? job->key : 0;
    return 0;
}

int store_note_put(struct store *s, const char *id, const char *key, const char *text)
{
    int64_t job;
    int r = note_key(s, id, &job);

    if (r)
        return r;
    if (!text)
        return STORE_PUT(s, QUERY_NOTE_DELETE, value_int(job), value_text(key));
    return STORE_PUT(s, QUERY_NOTE_PUT, value_int(job), value_text(key), value_text(text));
}

int store_note_get(struct store *s, const char *id, const char *key, const char **ret)
{
    struct spec_error err;
    const char *text;
    int64_t job;
    int r = note_key(s, id, &job);

    if (r)
        return r;
    r = STORE_ASK(s, QUERY_NOTE, &err, value_int(job), value_text(key));
    if (!r)
        r = store_next(s, QUERY_NOTE, &err);
    if (r == 1) {
        text = store_column_text(s, QUERY_NOTE, 0);
        store_copy_begin(s);
        r = text && store_copy(s, text, strlen(text)) != SIZE_MAX ? 0 : -ENOMEM;
        if (!r)
            *ret = s->copy.v;
    } else if (!r)
        r = -ENOENT;
    return store_end(s, QUERY_NOTE, r);
}

/* outbox.c - the actions of a step, and the texts they show */
#include <string.h>

#include "states/sched.h"

/* A list that a large step left behind is not kept for the small ones. */
#define KEPT_ACTIONS 4096u

void sched_no_memory(struct pliant_sched *s)
{
    s->no_memory = true;
}

struct pliant_action *emit(struct pliant_sched *s, enum pliant_action_kind kind)
{
    struct pliant_action *act = vec_push(s->alloc, &s->actions);

    if (!act) {
        sched_no_memory(s);
        act = &s->spare;
    }
    act->kind = (uint8_t)kind;
    return act;
}

void emit_refused(struct pliant_sched *s, enum pliant_reason reason, uint32_t vertex)
{
    struct pliant_action *act = emit(s, PLIANT_ACT_REFUSED);

    act->flag[0] = (uint8_t)reason;
    act->refused.vertex.v = vertex;
}

void emit_savepoint_ended(struct pliant_sched *s, const char *path, const char *cause)
{
    struct pliant_action *act = emit(s, PLIANT_ACT_SAVEPOINT_ENDED);

    act->savepoint.path = outbox_text(s, path);
    act->savepoint.cause = outbox_text(s, path ? "" : cause && *cause ? cause : "unknown cause");
}

/* Owned by the outbox from here on. */
static void *keep(struct pliant_sched *s, void *block)
{
    void **place = block ? vec_push(s->alloc, &s->blocks) : NULL;

    if (place) {
        *place = block;
        return block;
    }
    mem_free(s->alloc, block);
    sched_no_memory(s);
    return NULL;
}

void *outbox_block(struct pliant_sched *s, size_t n, size_t size)
{
    return keep(s, mem_zero(s->alloc, n, size));
}

const char *outbox_text(struct pliant_sched *s, const char *text)
{
    const char *copy;

    if (!text)
        return NULL;
    copy = keep(s, mem_text(s->alloc, text, SCHED_TEXT_MAX));
    return copy ? copy : "";
}

void outbox_clear(struct pliant_sched *s)
{
    for (size_t i = 0; i < s->blocks.n; i++)
        mem_free(s->alloc, s->blocks.v[i]);
    s->blocks.n = 0;
    s->actions.n = 0;
    if (s->actions.cap > KEPT_ACTIONS)
        vec_free(s->alloc, &s->actions);
}

void outbox_free(struct pliant_sched *s)
{
    outbox_clear(s);
    vec_free(s->alloc, &s->blocks);
    vec_free(s->alloc, &s->actions);
}

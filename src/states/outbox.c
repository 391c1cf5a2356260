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

const char *outbox_text(struct pliant_sched *s, const char *text)
{
    char **place;

    if (!text)
        return NULL;
    place = vec_push(s->alloc, &s->texts);
    if (place)
        *place = mem_text(s->alloc, text, 8 * PLIANT_CAUSE_MAX);
    if (place && *place)
        return *place;
    sched_no_memory(s);
    return "";
}

void outbox_clear(struct pliant_sched *s)
{
    for (size_t i = 0; i < s->texts.n; i++)
        mem_free(s->alloc, s->texts.v[i]);
    s->texts.n = 0;
    s->actions.n = 0;
    s->released.n = 0;
    if (s->actions.cap > KEPT_ACTIONS)
        vec_free(s->alloc, &s->actions);
    if (s->released.cap > KEPT_ACTIONS)
        vec_free(s->alloc, &s->released);
}

void outbox_free(struct pliant_sched *s)
{
    outbox_clear(s);
    vec_free(s->alloc, &s->texts);
    vec_free(s->alloc, &s->actions);
    vec_free(s->alloc, &s->released);
}

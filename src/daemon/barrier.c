/* barrier.c - see barrier.h */
#include "daemon/barrier.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

void barrier_clear(struct barrier *b)
{
    if (b->n > 0)
        memset(b->in, 0, b->n * sizeof *b->in);
    b->n_in = 0;
    b->since_ms = b->warn_at_ms = PLIANT_NEVER;
}

void barrier_resize(struct barrier *b, uint32_t n)
{
    free(b->in);
    b->in = need(calloc((size_t)n + 1, sizeof *b->in));
    b->n = n;
    barrier_clear(b);
}

void barrier_free(struct barrier *b)
{
    free(b->in);
    *b = (struct barrier){0};
}

bool barrier_enter(struct barrier *b, uint32_t rank, int64_t now_ms, int64_t warn_after_ms)
{
    if (b->in[rank])
        return false;
    b->in[rank] = true;
    if (b->n_in++ == 0) {
        b->since_ms = now_ms;
        b->warn_at_ms = now_ms + warn_after_ms;
    }
    return true;
}

bool barrier_complete(const struct barrier *b)
{
    return b->n > 0 && b->n_in == b->n;
}

uint32_t barrier_first(const struct barrier *b)
{
    uint32_t rank = 0;

    while (rank < b->n && !b->in[rank])
        rank++;
    return rank;
}

const char *barrier_missing(const struct barrier *b, char *text, size_t size)
{
    size_t at = 0;

    *text = '\0';
    for (uint32_t rank = 0, last; rank < b->n && at < size; rank = last + 1) {
        last = rank;
        if (b->in[rank])
            continue;
        while (last + 1 < b->n && !b->in[last + 1])
            last++;
        at += (size_t)snprintf(text + at, size - at, "%s%" PRIu32, at > 0 ? ", " : "", rank);
        if (last > rank && at < size)
            at += (size_t)snprintf(text + at, size - at, "-%" PRIu32, last);
    }
    return text;
}

/* ---- collectives ---------------------------------------------------------------------------- */

void collective_clear(struct collective *c)
{
    free(c->offered);
    c->offered = NULL;
    barrier_clear(&c->barrier);
}

static void let_go(struct collective *c, int64_t number, char *payload, char *error)
{
    free(c->payload);
    free(c->error);
    c->released = number;
    c->payload = payload;
    c->error = error;
}

void collective_begin(struct collective *c, uint32_t n)
{
    let_go(c, 0, NULL, NULL);
    free(c->offered);
    c->offered = NULL;
    barrier_resize(&c->barrier, n);
}

void collective_free(struct collective *c)
{
    let_go(c, 0, NULL, NULL);
    free(c->offered);
    barrier_free(&c->barrier);
    *c = (struct collective){0};
}

static const char *kind_name(enum collective_kind kind)
{
    return kind == COLLECTIVE_DIR ? "checkpoint_dir" : "get_preemption_info";
}

/* What one rank calls the others do not: whoever waits would wait for ever [W-RLX-7]. */
static void fall_apart(struct collective *c, const struct collective_entry *e)
{
    char text[192];

    snprintf(text, sizeof text,
             "call %" PRId64 ": rank %" PRIu32 " calls %s, rank %" PRIu32
             " calls %s; all ranks must make the same calls in the same order",
             e->number, barrier_first(&c->barrier), kind_name(c->kind), e->rank,
             kind_name(e->kind));
    barrier_enter(&c->barrier, e->rank, 0, 0);
    let_go(c, e->number, need_text("null"), need_text(text));
}

enum collective_verdict collective_enter(struct collective *c, const struct collective_entry *e,
                                         int64_t now_ms, int64_t warn_after_ms, char *wrong,
                                         size_t wrong_size)
{
    if (e->number == c->released && c->released > 0)
        return COLLECTIVE_WAS;
    if (e->number != c->released + 1) {
        snprintf(wrong, wrong_size,
                 "rank %" PRIu32 " is at call %" PRId64 " of those that all ranks make together, "
                 "the others at %" PRId64,
                 e->rank, e->number, c->released + 1);
        return COLLECTIVE_WRONG;
    }
    if (c->barrier.n_in > 0 && e->kind != c->kind) {
        fall_apart(c, e);
        return COLLECTIVE_LET_GO;
    }
    c->kind = e->kind;
    barrier_enter(&c->barrier, e->rank, now_ms, warn_after_ms);
    if (e->rank == 0 && !c->offered)
        c->offered = need_text(e->payload);
    if (!barrier_complete(&c->barrier))
        return COLLECTIVE_WAITS;
    let_go(c, e->number, c->offered, NULL);
    c->offered = NULL;
    return COLLECTIVE_LET_GO;
}

/* queue.h - what the simulated cluster will answer, and when
 *
 * A binary heap by (due, serial), and before it a line of prompt answers: those that are asked
 * for and due at one instant come before everything else of that instant, the trace's events too,
 * so that a latency of 0 is no visible wait.
 *
 * Answers of tasks and nodes that are over stay until they are due or queue_prune() takes them
 * out; queue_wants_prune() says when that pays, so that a queue holds at most about twice what
 * still matters.
 *
 * Units   milliseconds of the virtual clock
 * Owner   answers are plain values; queue_free() frees the queue
 * Errors  -ENOMEM, the queue is unchanged
 */
#ifndef PLIANT_SIM_QUEUE_H
#define PLIANT_SIM_QUEUE_H

#include <pliant/pliant.h>

#include "util/vec.h"

enum answer_kind {
    ANSWER_RESERVED,     /* .plan */
    ANSWER_INITIALIZING, /* .task, here and below */
    ANSWER_RUNNING,
    ANSWER_FINISHED,
    ANSWER_FAILED,
    ANSWER_CANCELED,
    ANSWER_CHECKPOINT, /* .checkpoint */
    ANSWER_SAVEPOINT,
    ANSWER_REGISTERED,
    ANSWER_GRANTED, /* .grant */
};

/* clang-format off */
struct answer {
    int64_t due_ms;
    uint64_t serial;
    enum answer_kind kind;
    union {
        uint32_t plan;
        struct pliant_task task;
        struct { uint64_t id, epoch; int64_t triggered_at_ms; } checkpoint;
        struct { uint64_t incarnation; uint32_t node, slots; } grant; /* node: its row */
    };
};
/* clang-format on */

struct queue {
    const struct pliant_alloc *alloc;
    struct answers VEC(struct answer) heap;
    struct answers prompt; /* from prompt_first on, in order */
    size_t prompt_first;
    uint64_t serial;
    size_t prune_at;
};

void queue_init(struct queue *q, const struct pliant_alloc *alloc);
void queue_free(struct queue *q);

/* Add *a, of which due_ms, kind and the member of the kind are set, at now_ms. */
int queue_add(struct queue *q, int64_t now_ms, const struct answer *a);

const struct answer *queue_top(const struct queue *q); /* NULL: empty */
struct answer queue_take(struct queue *q);             /* the top; not empty */

/* Is the top a prompt one? */
static inline bool queue_prompt(const struct queue *q)
{
    return q->prompt_first < q->prompt.n;
}

static inline bool queue_wants_prune(const struct queue *q)
{
    return q->heap.n >= q->prune_at;
}

/* Drop what `matters` says no to. */
void queue_prune(struct queue *q, bool (*matters)(const struct answer *a, void *ctx), void *ctx);

#endif

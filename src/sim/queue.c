/* queue.c - see queue.h */
#include "sim/queue.h"

#include <assert.h>
#include <errno.h>

#define PRUNE_MIN 256

void queue_init(struct queue *q, const struct pliant_alloc *alloc)
{
    *q = (struct queue){.alloc = alloc, .prune_at = PRUNE_MIN};
}

void queue_free(struct queue *q)
{
    vec_free(q->alloc, &q->heap);
    vec_free(q->alloc, &q->prompt);
}

static bool before(const struct answer *a, const struct answer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->serial < b->serial;
}

/* Put *a into the hole at i or above it. */
static void sift_up(struct answer *v, size_t i, struct answer a)
{
    while (i > 0 && before(&a, &v[(i - 1) / 2])) {
        v[i] = v[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    v[i] = a;
}

/* Put *a into the hole at i or below it. */
static void sift_down(struct answer *v, size_t n, size_t i, struct answer a)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(&v[child + 1], &v[child]))
            child++;
        if (!before(&v[child], &a))
            break;
        v[i] = v[child];
    }
    v[i] = a;
}

static int add_prompt(struct queue *q, const struct answer *a)
{
    struct answer *last;

    if (q->prompt_first == q->prompt.n)
        q->prompt_first = q->prompt.n = 0;
    last = vec_push(q->alloc, &q->prompt);
    if (!last)
        return -ENOMEM;
    *last = *a;
    return 0;
}

int queue_add(struct queue *q, int64_t now_ms, const struct answer *a)
{
    struct answer added = *a;

    assert(a->due_ms >= now_ms);
    if (a->due_ms == now_ms)
        return add_prompt(q, a);
    added.serial = ++q->serial;
    if (!vec_push(q->alloc, &q->heap))
        return -ENOMEM;
    sift_up(q->heap.v, q->heap.n - 1, added);
    return 0;
}

const struct answer *queue_top(const struct queue *q)
{
    if (queue_prompt(q))
        return &q->prompt.v[q->prompt_first];
    return q->heap.n > 0 ? &q->heap.v[0] : NULL;
}

struct answer queue_take(struct queue *q)
{
    struct answer top;

    if (queue_prompt(q))
        return q->prompt.v[q->prompt_first++];
    assert(q->heap.n > 0);
    top = q->heap.v[0];
    q->heap.n--;
    if (q->heap.n > 0)
        sift_down(q->heap.v, q->heap.n, 0, q->heap.v[q->heap.n]);
    return top;
}

void queue_prune(struct queue *q, bool (*matters)(const struct answer *a, void *ctx), void *ctx)
{
    struct answers *heap = &q->heap;
    size_t kept = 0;

    for (size_t i = 0; i < heap->n; i++)
        if (matters(&heap->v[i], ctx))
            heap->v[kept++] = heap->v[i];
    heap->n = kept;
    for (size_t i = kept / 2; i-- > 0;)
        sift_down(heap->v, kept, i, heap->v[i]);
    q->prune_at = kept < PRUNE_MIN / 2 ? PRUNE_MIN : 2 * kept;
}

/* slow_tasks.c - see slow_tasks.h */
#include "failover/slow_tasks.h"

#include <errno.h>
#include <float.h>

#include "util/alloc.h"

/* Of an attempt, or of the baseline. */
struct effort {
    int64_t time_ms, bytes;
};

static double weight(const struct effort *e)
{
    return (double)e->time_ms / (e->bytes > 0 ? (double)e->bytes : DBL_TRUE_MIN);
}

/* Times alone are compared where bytes say nothing. */
static int compare(const struct effort *a, const struct effort *b)
{
    bool plain = a->bytes == SLOW_BYTES_UNKNOWN || b->bytes == SLOW_BYTES_UNKNOWN;
    double x = plain ? (double)a->time_ms : weight(a), y = plain ? (double)b->time_ms : weight(b);

    return (x > y) - (x < y);
}

/* ---- lightest first, in place --------------------------------------------------------------- */

static void sift_down(struct effort *heap, size_t n, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        struct effort swap = heap[at];

        if (child + 1 < n && compare(&heap[child + 1], &heap[child]) > 0)
            child++;
        if (compare(&heap[child], &swap) <= 0)
            return;
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

static void sort_efforts(struct effort *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(v, n, i);
    for (size_t left = n; left > 1; left--) {
        struct effort heaviest = v[0];

        v[0] = v[left - 1];
        v[left - 1] = heaviest;
        sift_down(v, left - 1, 0);
    }
}

/* ---- the baseline --------------------------------------------------------------------------- */

static size_t finished(const struct slow_attempt *attempts, size_t n, struct effort *ret)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        if (attempts[i].state == PLIANT_TASK_FINISHED)
            ret[found++] = (struct effort){attempts[i].time_ms, attempts[i].bytes};
    return found;
}

static int64_t times(int64_t time_ms, double multiplier)
{
    double product = (double)time_ms * multiplier;

    return product >= (double)INT64_MAX ? INT64_MAX : (int64_t)product;
}

static struct effort baseline(const struct slow_limits *l, uint32_t n_tasks, struct effort *done,
                              size_t n_done)
{
    size_t count = (size_t)((double)n_tasks * l->ratio + 0.5);
    struct effort base = {0, SLOW_BYTES_UNKNOWN};

    if (count == 0 || n_done == 0)
        return base;
    sort_efforts(done, n_done);
    base = done[(count < n_done ? count : n_done) / 2];
    base.time_ms = times(base.time_ms, l->multiplier);
    return base;
}

static bool still_works(enum pliant_task_state state)
{
    return state > PLIANT_TASK_CREATED && state < PLIANT_TASK_CANCELING;
}

bool slow_tasks_comparable(const struct slow_limits *l, uint32_t n_tasks, uint32_t n_finished)
{
    return n_finished < n_tasks && (double)n_finished / (double)n_tasks >= l->ratio;
}

int slow_tasks_find(const struct slow_limits *l, uint32_t n_tasks,
                    const struct slow_attempt *attempts, size_t n, const struct pliant_alloc *a,
                    bool *slow)
{
    struct effort *done = mem_resize(a, NULL, n + 1, sizeof *done), base;
    size_t n_done;
    bool comparable;

    if (!done)
        return -ENOMEM;
    n_done = finished(attempts, n, done);
    comparable = slow_tasks_comparable(l, n_tasks, (uint32_t)n_done);
    base = baseline(l, n_tasks, done, n_done);
    for (size_t i = 0; i < n; i++) {
        struct effort own = {attempts[i].time_ms, attempts[i].bytes};

        slow[i] = comparable && still_works(attempts[i].state) &&
                  own.time_ms >= l->lower_bound_ms && compare(&own, &base) >= 0;
    }
    mem_free(a, done);
    return 0;
}

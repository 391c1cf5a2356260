/* group_error.c - see group_error.h */
#include "failover/group_error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct text {
    char *buf;
    size_t size, n;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->buf + t->n, t->size - t->n, format, args);
    va_end(args);
    t->n = n < 0 || (size_t)n >= t->size - t->n ? t->size - 1 : t->n + (size_t)n;
}

static const char *message(const struct pliant_failure_item *item)
{
    return *item->cause ? item->cause : pliant_reason_name(item->reason);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *s)
{
    while (is_digit(*s))
        s++;
    return s;
}

static bool like(const char *a, const char *b)
{
    for (;;) {
        a = skip_digits(a);
        b = skip_digits(b);
        if (*a != *b || *a == '\0')
            return *a == *b;
        a++;
        b++;
    }
}

static bool is_like(const struct pliant_failure_item *a, const struct pliant_failure_item *b)
{
    return (a->task.vertex.v > 0) == (b->task.vertex.v > 0) && like(message(a), message(b));
}

/* Was one like it named before? */
static bool told(const struct failure_entry *failed, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_like(&failed->items.v[k], &failed->items.v[i]))
            return true;
    return false;
}

static bool has_rank(const struct failure_entry *failed, size_t like_item, uint32_t rank)
{
    for (size_t i = 0; i < failed->items.n; i++)
        if (is_like(&failed->items.v[like_item], &failed->items.v[i]) &&
            failed->items.v[i].task.subtask == rank)
            return true;
    return false;
}

static void put_range(struct text *t, const char *before, uint32_t first, uint32_t last)
{
    if (first == last)
        put(t, "%srank %" PRIu32, before, first);
    else
        put(t, "%sranks %" PRIu32 "-%" PRIu32, before, first, last);
}

/* All ranks with a cause like this one: "rank 0, ranks 2-3: ". */
static void put_ranks(struct text *t, const struct failure_entry *failed, size_t item)
{
    const char *before = "";

    for (uint64_t next = 0; next <= UINT32_MAX;) {
        uint32_t first = UINT32_MAX, last;

        for (size_t i = 0; i < failed->items.n; i++) {
            uint32_t rank = failed->items.v[i].task.subtask;

            if (is_like(&failed->items.v[item], &failed->items.v[i]) && rank >= next &&
                rank < first)
                first = rank;
        }
        if (first == UINT32_MAX)
            break;
        for (last = first; has_rank(failed, item, last + 1);)
            last++;
        put_range(t, before, first, last);
        before = ", ";
        next = (uint64_t)last + 1;
    }
    put(t, ": ");
}

static const char *kind_of(enum pliant_reason end)
{
    if (end == PLIANT_REASON_PREEMPTION_BUDGET_EXHAUSTED)
        return "PreemptionError (drain_timed_out=false)";
    if (end == PLIANT_REASON_LAUNCH_BUDGET_EXHAUSTED)
        return "ControllerError";
    return end == PLIANT_REASON_RESET_LIMIT_REACHED ? "ControllerError: reset-limit reached"
                                                    : "WorkerGroupError";
}

void group_error_text(const struct failure_entry *failed, enum pliant_reason end, char *buf,
                      size_t size)
{
    struct text t = {buf, size, 0};
    const char *before = ": ";

    put(&t, "%s", kind_of(end));
    for (size_t i = 0; i < failed->items.n; i++) {
        const struct pliant_failure_item *item = &failed->items.v[i];

        if (told(failed, i))
            continue;
        put(&t, "%s", before);
        before = "; ";
        if (item->task.vertex.v)
            put_ranks(&t, failed, i);
        put(&t, "%s", message(item));
        if (!*item->cause && *item->node)
            put(&t, " (%s)", item->node);
    }
    if (failed->n_more > 0)
        put(&t, "; and %" PRIu64 " more", failed->n_more);
}

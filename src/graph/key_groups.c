/* key_groups.c - see key_groups.h */
#include "graph/key_groups.h"

#include <assert.h>
#include <errno.h>

#include <pliant/job.h>

enum { DEFAULT_MAX_LEAST = 128 };

bool key_groups_valid(uint64_t max_parallelism, uint64_t parallelism)
{
    return parallelism >= 1 && parallelism <= max_parallelism &&
           max_parallelism <= PLIANT_MAX_PARALLELISM;
}

uint32_t key_groups_default_max(uint32_t parallelism) /* [S-PAR-8] */
{
    uint32_t max = DEFAULT_MAX_LEAST;

    while (max < PLIANT_MAX_PARALLELISM && max < parallelism + parallelism / 2)
        max *= 2;
    return max;
}

/* No product here reaches 2^31: both factors are at most 2^15. */
struct range key_groups_range(uint32_t max_parallelism, uint32_t parallelism,
                              uint32_t subtask) /* [S-LOC-2] */
{
    return (struct range){
        .first = (subtask * max_parallelism + parallelism - 1) / parallelism,
        .last = ((subtask + 1) * max_parallelism - 1) / parallelism,
    };
}

uint32_t key_groups_owner(uint32_t max_parallelism, uint32_t parallelism, uint32_t key_group)
{
    return key_group * parallelism / max_parallelism;
}

static uint32_t rotate_left(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

/* Murmur3 of the four bytes of a key's hash, so that plain numbers spread over the groups. */
uint32_t key_groups_of_hash(int32_t hash, uint32_t max_parallelism)
{
    uint32_t h = (uint32_t)hash;

    h = rotate_left(h * 0xcc9e2d51u, 15);
    h = rotate_left(h * 0x1b873593u, 13);
    h = h * 5 + 0xe6546b64u;
    h ^= 4;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    h ^= h >> 16;
    if (h == 0x80000000u) /* has no absolute value in 32 bits */
        h = 0;
    else if (h > 0x80000000u)
        h = -h;
    return h % max_parallelism;
}

int pliant_key_group_range(uint32_t max_parallelism, uint32_t parallelism, uint32_t subtask,
                           uint32_t *first, uint32_t *last)
{
    struct range range;

    if (!key_groups_valid(max_parallelism, parallelism) || subtask >= parallelism)
        return -EINVAL;
    range = key_groups_range(max_parallelism, parallelism, subtask);
    *first = range.first;
    *last = range.last;
    return 0;
}

struct old_tasks keyed_state_tasks(uint32_t max_parallelism, uint32_t old_parallelism,
                                   uint32_t new_parallelism, uint32_t task)
{
    struct range range = key_groups_range(max_parallelism, new_parallelism, task);
    uint32_t first = key_groups_owner(max_parallelism, old_parallelism, range.first);
    uint32_t last = key_groups_owner(max_parallelism, old_parallelism, range.last);

    return (struct old_tasks){.first = first, .step = 1, .count = last - first + 1};
}

struct state_part keyed_state_part(uint32_t max_parallelism, uint32_t old_parallelism,
                                   uint32_t new_parallelism, uint32_t task, uint32_t old_task)
{
    struct range to = key_groups_range(max_parallelism, new_parallelism, task);
    struct range from = key_groups_range(max_parallelism, old_parallelism, old_task);

    return (struct state_part){
        .task = old_task,
        .first = to.first > from.first ? to.first : from.first,
        .last = to.last < from.last ? to.last : from.last,
    };
}

static uint64_t sum_of(const uint64_t *items, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += items[i];
    return sum;
}

/* How many items new task `task` reads. The same parallelism leaves everything where it is; else
 * the items are dealt in runs as equal as can be, the longer ones first. */
static uint64_t share_of(const uint64_t *items, uint32_t old_parallelism, uint32_t new_parallelism,
                         uint64_t total, uint32_t task)
{
    if (old_parallelism == new_parallelism)
        return items[task];
    return total / new_parallelism + (task < total % new_parallelism);
}

void list_state_split(const uint64_t *items, uint32_t old_parallelism, uint32_t new_parallelism,
                      void (*each)(void *ctx, uint32_t task, const struct state_part *part),
                      void *ctx)
{
    uint64_t total = sum_of(items, old_parallelism);
    struct state_part part = {0};
    uint64_t taken = 0; /* of part.task's items */

    for (uint32_t task = 0; task < new_parallelism; task++) {
        uint64_t want = share_of(items, old_parallelism, new_parallelism, total, task);

        while (want > 0) {
            uint64_t n = items[part.task] - taken;

            if (n > want)
                n = want;
            if (n > 0) {
                part.first = taken;
                part.last = taken + n - 1;
                each(ctx, task, &part);
            }
            want -= n;
            taken += n;
            if (taken == items[part.task]) {
                part.task++;
                taken = 0;
            }
        }
    }
}

uint32_t broadcast_state_task(uint32_t old_parallelism, uint32_t task)
{
    return task % old_parallelism;
}

static struct old_tasks every_nth(uint32_t first, uint32_t step, uint32_t n)
{
    return (struct old_tasks){
        .first = first,
        .step = step,
        .count = first < n ? (n - first + step - 1) / step : 0,
    };
}

struct old_tasks inflight_tasks(enum inflight_mapper mapper, uint32_t old_parallelism,
                                uint32_t new_parallelism, uint32_t task)
{
    switch (mapper) {
    case INFLIGHT_ARBITRARY:
    case INFLIGHT_ROUND_ROBIN:
        return every_nth(task, new_parallelism, old_parallelism);
    case INFLIGHT_FIRST:
        return every_nth(0, 1, task == 0 ? old_parallelism : 0);
    case INFLIGHT_FULL:
        return every_nth(0, 1, old_parallelism);
    case INFLIGHT_RANGE:
        return keyed_state_tasks(PLIANT_MAX_PARALLELISM, old_parallelism, new_parallelism, task);
    }
    assert(false);
    return every_nth(0, 1, 0);
}

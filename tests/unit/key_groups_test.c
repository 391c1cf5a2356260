/* key_groups_test.c - ranges, owners, and old state in new runs */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <pliant/job.h>

#include "graph/key_groups.h"
#include "util/prng.h"

enum { MANY = 64 };

Test(key_groups, derives_the_maximum_from_parallelism) /* [S-PAR-8] */
{
    static const uint32_t rows[][2] = {
        {1, 128},   {85, 128},   {86, 256},      {170, 256},     {171, 256},
        {172, 512}, {683, 1024}, {21845, 32768}, {21846, 32768}, {32768, 32768},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect(eq(u32, key_groups_default_max(rows[i][0]), rows[i][1]), "row %zu", i);
}

Test(key_groups, cuts_all_groups_into_ranges_without_gap_or_overlap) /* [S-LOC-2] */
{
    static const uint32_t maxima[] = {1, 2, 7, 128, 1000, 32767, 32768};

    for (size_t i = 0; i < sizeof maxima / sizeof maxima[0]; i++) {
        uint32_t max = maxima[i];

        for (uint32_t p = 1; p <= max; p = p * 3 / 2 + 1) {
            uint32_t next = 0;

            for (uint32_t task = 0; task < p; task++) {
                struct range r = key_groups_range(max, p, task);

                cr_assert(r.first == next && r.last >= r.first);
                cr_assert(eq(u32, key_groups_owner(max, p, r.first), task));
                cr_assert(eq(u32, key_groups_owner(max, p, r.last), task));
                next = r.last + 1;
            }
            cr_expect(eq(u32, next, max));
        }
    }
}

Test(key_groups, answers_the_public_question_only_for_valid_numbers) /* [S-LOC-2] */
{
    uint32_t first = 77, last = 77;

    cr_expect(eq(int, pliant_key_group_range(128, 3, 1, &first, &last), 0));
    cr_expect(first == 43 && last == 85);
    cr_expect(eq(int, pliant_key_group_range(32768, 32768, 32767, &first, &last), 0));
    cr_expect(first == 32767 && last == 32767);
    cr_expect(eq(int, pliant_key_group_range(128, 3, 3, &first, &last), -EINVAL));
    cr_expect(eq(int, pliant_key_group_range(128, 0, 0, &first, &last), -EINVAL));
    cr_expect(eq(int, pliant_key_group_range(128, 129, 0, &first, &last), -EINVAL));
    cr_expect(eq(int, pliant_key_group_range(32769, 1, 0, &first, &last), -EINVAL));
    cr_expect(first == 32767 && last == 32767);
}

Test(key_groups, spreads_hashes_over_all_groups)
{
    static const int32_t hashes[] = {-1, 0, 1, INT32_MAX};
    static const uint32_t groups[] = {80, 94, 86, 62};
    bool seen[16] = {false};

    for (int32_t hash = 0; hash < 200; hash++)
        seen[key_groups_of_hash(hash, 16)] = true;
    for (size_t g = 0; g < 16; g++)
        cr_expect(seen[g], "group %zu", g);
    for (size_t i = 0; i < 4; i++) /* measured, at 128 groups */
        cr_expect(eq(u32, key_groups_of_hash(hashes[i], 128), groups[i]), "row %zu", i);
}

Test(key_groups, gives_every_key_group_of_old_state_to_its_new_owner_once)
{
    struct prng p = {1};

    for (int i = 0; i < 500; i++) {
        uint32_t max = 1 + (uint32_t)prng_below(&p, 300);
        uint32_t old_p = 1 + (uint32_t)prng_below(&p, max);
        uint32_t new_p = 1 + (uint32_t)prng_below(&p, max);
        uint64_t next = 0;

        for (uint32_t task = 0; task < new_p; task++) {
            struct old_tasks old = keyed_state_tasks(max, old_p, new_p, task);

            cr_assert(old.count >= 1 && old.step == 1);
            for (uint32_t j = 0; j < old.count; j++) {
                struct state_part part = keyed_state_part(max, old_p, new_p, task, old.first + j);

                cr_assert(eq(u64, part.first, next));
                cr_assert(ge(u64, part.last, part.first));
                cr_assert(eq(u32, part.task, key_groups_owner(max, old_p, (uint32_t)next)));
                cr_assert(eq(u32, task, key_groups_owner(max, new_p, (uint32_t)part.last)));
                next = part.last + 1;
            }
        }
        cr_expect(eq(u64, next, max));
    }
}

/* Counts what each new task reads, and whether parts follow each other. */
struct reading {
    uint64_t count[MANY];
    uint32_t task; /* of the part before */
    uint32_t old_task;
    uint64_t next; /* item of old_task */
};

static void read_part(void *ctx, uint32_t task, const struct state_part *part)
{
    struct reading *r = ctx;

    cr_assert(task >= r->task && part->task >= r->old_task);
    if (part->task != r->old_task)
        r->next = 0;
    cr_assert(eq(u64, part->first, r->next));
    cr_assert(ge(u64, part->last, part->first));
    r->task = task;
    r->old_task = part->task;
    r->next = part->last + 1;
    r->count[task] += part->last - part->first + 1;
}

Test(key_groups, deals_list_items_in_equal_runs_and_moves_none_without_need)
{
    struct prng p = {2};

    for (int i = 0; i < 2000; i++) {
        uint32_t old_p = 1 + (uint32_t)prng_below(&p, MANY);
        uint32_t new_p = 1 + (uint32_t)prng_below(&p, MANY);
        uint64_t items[MANY], total = 0, got = 0;
        struct reading r = {.next = 0};

        for (uint32_t task = 0; task < old_p; task++) {
            items[task] = prng_below(&p, 2) ? prng_below(&p, 9) : 0;
            total += items[task];
        }
        list_state_split(items, old_p, new_p, read_part, &r);
        for (uint32_t task = 0; task < new_p; task++) {
            uint64_t want = old_p == new_p ? items[task] : total / new_p + (task < total % new_p);

            cr_assert(eq(u64, r.count[task], want));
            got += r.count[task];
        }
        cr_assert(eq(u64, got, total));
    }
}

Test(key_groups, gives_broadcast_state_and_data_in_flight_to_the_tasks_of_the_rules)
{
    static const struct {
        enum inflight_mapper mapper;
        uint32_t old_p, new_p, task;
        struct old_tasks want;
    } rows[] = {
        {INFLIGHT_ROUND_ROBIN, 12, 9, 0, {0, 9, 2}}, {INFLIGHT_ROUND_ROBIN, 12, 9, 8, {8, 9, 1}},
        {INFLIGHT_ROUND_ROBIN, 3, 9, 3, {3, 9, 0}},  {INFLIGHT_ARBITRARY, 7, 3, 0, {0, 3, 3}},
        {INFLIGHT_FIRST, 5, 3, 0, {0, 1, 5}},        {INFLIGHT_FIRST, 5, 3, 1, {0, 1, 0}},
        {INFLIGHT_FULL, 5, 3, 2, {0, 1, 5}},         {INFLIGHT_RANGE, 11, 8, 2, {2, 1, 3}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct old_tasks got =
            inflight_tasks(rows[i].mapper, rows[i].old_p, rows[i].new_p, rows[i].task);

        cr_expect(eq(u32, got.count, rows[i].want.count), "row %zu", i);
        cr_expect(got.count == 0 || got.first == rows[i].want.first, "row %zu", i);
        cr_expect(got.count <= 1 || got.step == rows[i].want.step, "row %zu", i);
    }
    cr_expect(broadcast_state_task(3, 2) == 2 && broadcast_state_task(3, 7) == 1);
}

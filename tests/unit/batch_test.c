/* The parallelism of batch vertices (section 5 of the rules of failover), beside the measured
 * answers: bounds, big numbers, sums in place of matrices, no memory. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdlib.h>

#include "allocator/batch.h"
#include "allocator/batch_cut.h"
#include "failing_alloc.h"
#include "failover/slow_tasks.h"
#include "util/prng.h"

static const struct batch_limits limits = {.volume = 100,
                                           .min = 1,
                                           .max = 128,
                                           .default_source_parallelism = 128,
                                           .skew_factor = 4,
                                           .skew_threshold = 1000};
static const struct batch_vertex any = {.parallelism = -1, .min = -1, .max = 128};

static struct batch_input keyed(uint32_t partitions, uint32_t subpartitions, const int64_t *bytes)
{
    return (struct batch_input){.pattern = PLIANT_ALL_TO_ALL,
                                .partitions = partitions,
                                .subpartitions = subpartitions,
                                .bytes = bytes,
                                .inter = true,
                                .intra = true};
}

Test(batch,
     a_source_gets_its_own_parallelism_or_the_default_within_its_maximum) /* known trouble 082 */
{
    static const struct {
        struct batch_vertex vertex;
        uint32_t expect;
    } rows[] = {{{7, -1, 128}, 7}, {{-1, -1, 128}, 128}, {{-1, -1, 5}, 5}};
    struct batch_plan plan;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert(eq(int, 0, batch_decide(&limits, &rows[i].vertex, NULL, 0, NULL, &plan)));
        cr_assert(eq(u32, plan.parallelism, rows[i].expect));
        batch_plan_free(&plan, NULL);
    }
}

Test(batch, what_no_scheduler_could_run_is_refused)
{
    int64_t bytes[] = {1, 2, 3, 4};
    struct batch_input in = keyed(2, 2, bytes), none = keyed(2, 2, NULL);
    struct batch_limits bad = limits;
    struct batch_plan plan;

    bad.min = 0;
    cr_assert(eq(int, -EINVAL, batch_decide(&bad, &any, &in, 1, NULL, &plan)));
    bad = limits;
    bad.volume = 0;
    cr_assert(eq(int, -EINVAL, batch_decide(&bad, &any, &in, 1, NULL, &plan)));
    cr_assert(eq(int, -EINVAL,
                 batch_decide(&limits, &(struct batch_vertex){3, -1, 128}, &in, 1, NULL, &plan)),
              "what reads has no parallelism of its own");
    cr_assert(eq(int, -EINVAL, batch_decide(&limits, &any, &none, 1, NULL, &plan)),
              "sizes are missing");
    in.partitions = 0;
    cr_assert(eq(int, -EINVAL, batch_decide(&limits, &any, &in, 1, NULL, &plan)));
}

Test(batch, sizes_near_the_end_of_the_numbers_do_no_harm)
{
    int64_t bytes[] = {INT64_MAX / 8, INT64_MAX / 8, INT64_MAX / 8, INT64_MAX / 8};
    struct batch_limits one = limits;
    struct batch_input in = keyed(2, 2, bytes);
    struct batch_plan plan;

    one.volume = 1;
    cr_assert(eq(int, 0, batch_decide(&one, &any, &in, 1, NULL, &plan)));
    cr_assert(eq(u32, plan.parallelism, 2));
    batch_plan_free(&plan, NULL);
}

Test(batch, for_keyed_inputs_sums_do_as_well_as_the_matrix)
{
    struct prng p = {0};

    p.state = 5;
    for (int round = 0; round < 200; round++) {
        int64_t bytes[8 * 8], sums[8] = {0};
        uint32_t partitions = 1 + (uint32_t)(prng_next(&p) % 8),
                 subpartitions = 1 + (uint32_t)(prng_next(&p) % 8);
        struct batch_input matrix = keyed(partitions, subpartitions, bytes), summed = matrix;
        struct batch_plan a, b;

        for (uint32_t i = 0; i < partitions * subpartitions; i++) {
            bytes[i] = (int64_t)(prng_next(&p) % 300);
            sums[i % subpartitions] += bytes[i];
        }
        summed.bytes = NULL;
        summed.sums = sums;
        cr_assert(not(batch_needs_matrix(&summed)));
        cr_assert(eq(int, 0, batch_decide(&limits, &any, &matrix, 1, NULL, &a)));
        cr_assert(eq(int, 0, batch_decide(&limits, &any, &summed, 1, NULL, &b)));
        cr_assert(eq(u32, a.parallelism, b.parallelism));
        cr_assert(eq(sz, a.ranges.n, b.ranges.n));
        batch_plan_free(&a, NULL);
        batch_plan_free(&b, NULL);
    }
}

/* Random inputs of every kind. */
static struct batch_input random_input(struct prng *p, int64_t *bytes)
{
    struct batch_input in = {.pattern = prng_next(p) % 2 ? PLIANT_POINTWISE : PLIANT_ALL_TO_ALL,
                             .partitions = 1 + (uint32_t)(prng_next(p) % 6),
                             .subpartitions = 1 + (uint32_t)(prng_next(p) % 6),
                             .bytes = bytes,
                             .intra = prng_next(p) % 2,
                             .type = (int64_t)(prng_next(p) % 2)};

    in.inter = in.pattern == PLIANT_ALL_TO_ALL && prng_next(p) % 2;
    in.broadcast = in.pattern == PLIANT_ALL_TO_ALL && prng_next(p) % 5 == 0;
    for (uint32_t i = 0; i < 36; i++)
        bytes[i] = (int64_t)(prng_next(p) % 2000);
    return in;
}

/* Every cell of an input that is not broadcast is read by one task; where correlated inputs were
 * split by at least one. */
static void check_reads(const struct batch_plan *plan, const struct batch_input *in, size_t input)
{
    uint32_t seen[36] = {0};
    const uint32_t *first = plan->first + input * (plan->parallelism + 1);

    for (uint32_t i = first[0]; i < first[plan->parallelism]; i++) {
        const struct batch_range *r = &plan->ranges.v[i];

        cr_assert(r->p0 <= r->p1 && r->p1 < in->partitions);
        cr_assert(r->s0 <= r->s1 && r->s1 < in->subpartitions);
        for (uint32_t p = r->p0; p <= r->p1; p++)
            for (uint32_t s = r->s0; s <= r->s1; s++)
                seen[p * in->subpartitions + s]++;
    }
    for (uint32_t c = 0; c < in->partitions * in->subpartitions; c++)
        cr_assert(in->broadcast || in->inter ? seen[c] >= 1 : seen[c] == 1,
                  "cell %u is read %u times", c, seen[c]);
}

Test(batch, nothing_is_left_unread_and_nothing_read_twice)
{
    struct prng p = {0};
    int decided = 0;

    p.state = 6;
    for (int round = 0; round < 5000; round++) {
        int64_t bytes[3][36];
        struct batch_input in[3];
        size_t n = 1 + prng_next(&p) % 3;
        struct batch_plan plan;

        for (size_t i = 0; i < n; i++)
            in[i] = random_input(&p, bytes[i]);
        if (batch_decide(&limits, &any, in, n, NULL, &plan) < 0)
            continue;
        decided++;
        for (size_t i = 0; i < n; i++)
            check_reads(&plan, &in[i], i);
        batch_plan_free(&plan, NULL);
    }
    cr_assert(decided > 2000, "%d", decided);
}

Test(batch, without_memory_nothing_is_left_behind)
{
    struct prng p = {0};

    p.state = 8;
    for (int round = 0; round < 20; round++) {
        int64_t bytes[2][36];
        struct batch_input in[2] = {random_input(&p, bytes[0]), random_input(&p, bytes[1])};

        for (size_t k = 1;; k++) {
            FAILING_ALLOC(f, k);
            struct batch_plan plan;
            int rc = batch_decide(&limits, &any, in, 2, &f.hook, &plan);

            if (rc == 0)
                batch_plan_free(&plan, &f.hook);
            cr_assert(eq(sz, f.live, 0));
            if (rc != -ENOMEM)
                break;
        }
    }
}

Test(batch, a_fixed_parallelism_reads_by_count)
{
    int64_t bytes[8] = {0};
    struct batch_input in = {.pattern = PLIANT_POINTWISE, .partitions = 2, .subpartitions = 4};
    struct batch_plan plan;

    in.bytes = bytes;
    cr_assert(eq(int, 0, batch_distribute(4, &in, 1, NULL, &plan)));
    cr_assert(eq(u32, plan.parallelism, 4));
    cr_assert(eq(u32, plan.ranges.v[3].p0, 1));
    cr_assert(eq(u32, plan.ranges.v[3].s0, 2));
    cr_assert(eq(u32, plan.ranges.v[3].s1, 3));
    batch_plan_free(&plan, NULL);
    in.pattern = PLIANT_ALL_TO_ALL;
    cr_assert(eq(int, -EINVAL, batch_distribute(5, &in, 1, NULL, &plan)),
              "five tasks cannot share four subpartitions");
}

Test(batch, running_sums_are_cut_where_a_list_of_slices_is)
{
    struct prng p = {0};

    p.state = 9;
    for (int round = 0; round < 2000; round++) {
        struct slice_lists l = {.n_lists = 1, .n = 1 + (uint32_t)(prng_next(&p) % 40)};
        int64_t sums[41] = {0}, volume = 1 + (int64_t)(prng_next(&p) % 300);
        int64_t min = 1 + (int64_t)(prng_next(&p) % 10), max = min + (int64_t)(prng_next(&p) % 9);
        uint32_t a[42], b[42], n;

        if (!vec_reserve(NULL, &l.slices, l.n) || !vec_reserve(NULL, &l.at, l.n))
            abort();
        for (uint32_t k = 0; k < l.n; k++) {
            int64_t bytes = prng_next(&p) % 3 ? (int64_t)(prng_next(&p) % 100) : 0;

            l.slices.v[k] = (struct slice){.bytes = bytes};
            l.at.v[k] = k;
            sums[k + 1] = sums[k] + bytes;
        }
        n = batch_cut(&l, min, max, volume, a);
        cr_assert(eq(u32, n, batch_cut_sums(sums, l.n, min, max, volume, b)));
        for (uint32_t k = 0; n > 0 && k <= n; k++)
            cr_assert(eq(u32, a[k], b[k]));
        slice_lists_free(&l, NULL);
    }
}

Test(batch, producers_write_as_many_subpartitions_as_consumers_may_need)
{
    cr_assert(eq(u32, batch_subpartitions(PLIANT_ALL_TO_ALL, false, 4, -1, 128), 128));
    cr_assert(eq(u32, batch_subpartitions(PLIANT_ALL_TO_ALL, false, 4, 10, 128), 10));
    cr_assert(eq(u32, batch_subpartitions(PLIANT_POINTWISE, false, 3, 10, 128), 4));
    cr_assert(eq(u32, batch_subpartitions(PLIANT_ALL_TO_ALL, true, 4, -1, 128), 1));
}

/* ---- slow tasks ------------------------------------------------------------------------- */

Test(slow_tasks, nobody_is_slow_before_enough_have_finished_or_when_all_have)
{
    static const struct slow_limits l = {.ratio = 0.5, .multiplier = 1.5};
    struct slow_attempt tasks[4] = {{PLIANT_TASK_RUNNING, 1000, 1},
                                    {PLIANT_TASK_RUNNING, 1000, 1},
                                    {PLIANT_TASK_RUNNING, 1000, 1},
                                    {PLIANT_TASK_FINISHED, 10, 1}};
    bool slow[4];

    cr_assert(eq(int, 0, slow_tasks_find(&l, 4, tasks, 4, NULL, slow)));
    cr_assert(not(slow[0]));
    tasks[2] = (struct slow_attempt){PLIANT_TASK_FINISHED, 12, 1};
    cr_assert(eq(int, 0, slow_tasks_find(&l, 4, tasks, 4, NULL, slow)));
    cr_assert(slow[0] && slow[1] && !slow[2] && !slow[3]);
    tasks[0].state = PLIANT_TASK_CANCELING;
    cr_assert(eq(int, 0, slow_tasks_find(&l, 4, tasks, 4, NULL, slow)));
    cr_assert(slow[1] && !slow[0]);
}

/* In floating point 100 * 0.07 is more than 7; 7 of 100 are 0.07 [6.1]. */
Test(slow_tasks, enough_is_a_part_not_a_product)
{
    static const struct slow_limits l = {.ratio = 0.07, .multiplier = 1.5};

    cr_assert(slow_tasks_comparable(&l, 100, 7));
    cr_assert(not(slow_tasks_comparable(&l, 100, 6)));
    cr_assert(not(slow_tasks_comparable(&l, 100, 100)));
}

Test(slow_tasks, a_baseline_of_more_than_all_time_is_never_reached)
{
    static const struct slow_limits l = {.ratio = 0.5, .multiplier = 1e9};
    const struct slow_attempt tasks[2] = {{PLIANT_TASK_FINISHED, INT64_MAX / 1000, 1},
                                          {PLIANT_TASK_RUNNING, INT64_MAX - 1024, 1}};
    bool slow[2];

    cr_assert(eq(int, 0, slow_tasks_find(&l, 2, tasks, 2, NULL, slow)));
    cr_assert(not(slow[1]));
}

Test(slow_tasks, who_reads_more_may_take_longer)
{
    static const struct slow_limits l = {.ratio = 0.5, .multiplier = 1.5, .lower_bound_ms = 100};
    const struct slow_attempt tasks[3] = {{PLIANT_TASK_FINISHED, 100, 100},
                                          {PLIANT_TASK_FINISHED, 100, 100},
                                          {PLIANT_TASK_RUNNING, 1000, 1000}};
    bool slow[3];

    cr_assert(eq(int, 0, slow_tasks_find(&l, 3, tasks, 3, NULL, slow)));
    cr_assert(not(slow[2]));
}

Test(slow_tasks, without_memory_it_says_so)
{
    static const struct slow_limits l = {.ratio = 0.5, .multiplier = 1.5};
    const struct slow_attempt task = {PLIANT_TASK_RUNNING, 1, 1};
    bool slow;
    FAILING_ALLOC(f, 1);

    cr_assert(eq(int, -ENOMEM, slow_tasks_find(&l, 1, &task, 1, &f.hook, &slow)));
}

/* Who of a worker group is in, who is missing, and what comes out of it [W-CKP-12, W-RLX-7] */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

#include <pliant/config.h>

#include "daemon/barrier.h"

#define WARN_MS 60000

static struct collective of_ranks(uint32_t n)
{
    struct collective c = {0};

    collective_begin(&c, n);
    return c;
}

static enum collective_verdict enter(struct collective *c, uint32_t rank, int64_t number,
                                     enum collective_kind kind, const char *payload)
{
    const struct collective_entry e = {
        .rank = rank, .number = number, .kind = kind, .payload = payload};
    char wrong[192];

    return collective_enter(c, &e, 1000 * rank, WARN_MS, wrong, sizeof wrong);
}

Test(barrier, names_the_missing_ranks_as_ranges)
{
    static const struct {
        const char *in; /* a digit a rank */
        const char *missing;
    } rows[] = {
        {"0", "1-7"},    {"01234567", ""}, {"1357", "0, 2, 4, 6"},
        {"0127", "3-6"}, {"", "0-7"},      {"34", "0-2, 5-7"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct barrier b = {0};
        char text[64];

        barrier_resize(&b, 8);
        for (const char *c = rows[i].in; *c; c++)
            barrier_enter(&b, (uint32_t)(*c - '0'), 0, WARN_MS);
        cr_expect(eq(str, (char *)barrier_missing(&b, text, sizeof text), (char *)rows[i].missing));
        cr_expect(eq(int, barrier_complete(&b), !*rows[i].missing));
        barrier_free(&b);
    }
}

Test(barrier, cuts_a_long_list_to_fit)
{
    struct barrier b = {0};
    char text[8];

    barrier_resize(&b, 1000);
    for (uint32_t rank = 0; rank < 1000; rank += 2)
        barrier_enter(&b, rank, 0, WARN_MS);
    barrier_missing(&b, text, sizeof text);
    cr_assert(eq(str, text, (char *)"1, 3, 5"));
    barrier_free(&b);
}

Test(barrier, counts_a_rank_once_and_from_when_the_first_came)
{
    struct barrier b = {0};

    barrier_resize(&b, 2);
    cr_assert(eq(i64, b.warn_at_ms, PLIANT_NEVER));
    cr_assert(barrier_enter(&b, 1, 5, WARN_MS));
    cr_assert(not(barrier_enter(&b, 1, 9, WARN_MS)));
    cr_assert(not(barrier_complete(&b)));
    cr_assert(barrier_enter(&b, 0, 70, WARN_MS));
    cr_assert(barrier_complete(&b));
    cr_assert(eq(i64, b.since_ms, 5));
    cr_assert(eq(i64, b.warn_at_ms, 5 + WARN_MS));
    barrier_clear(&b);
    cr_assert(eq(i64, b.since_ms, PLIANT_NEVER));
    barrier_free(&b);
}

Test(collective, all_ranks_get_what_rank_0_offers) /* [W-PRE-20] */
{
    struct collective c = of_ranks(3);

    cr_assert(eq(int, enter(&c, 2, 1, COLLECTIVE_DIR, "\"two\""), COLLECTIVE_WAITS));
    cr_assert(eq(int, enter(&c, 0, 1, COLLECTIVE_DIR, "\"zero\""), COLLECTIVE_WAITS));
    cr_assert(eq(int, enter(&c, 2, 1, COLLECTIVE_DIR, "\"again\""), COLLECTIVE_WAITS));
    cr_assert(eq(int, enter(&c, 1, 1, COLLECTIVE_DIR, "\"one\""), COLLECTIVE_LET_GO));
    cr_assert(eq(str, c.payload, (char *)"\"zero\""));
    cr_assert(eq(ptr, c.error, NULL));
    cr_assert(eq(i64, c.released, 1));
    collective_free(&c);
}

Test(collective, one_whose_answer_was_lost_gets_it_again)
{
    struct collective c = of_ranks(2);

    enter(&c, 0, 1, COLLECTIVE_NOTICE, "null");
    cr_assert(eq(int, enter(&c, 1, 1, COLLECTIVE_NOTICE, "null"), COLLECTIVE_LET_GO));
    collective_clear(&c);
    cr_assert(eq(int, enter(&c, 0, 2, COLLECTIVE_DIR, "\"d\""), COLLECTIVE_WAITS));
    cr_assert(eq(int, enter(&c, 1, 1, COLLECTIVE_NOTICE, "null"), COLLECTIVE_WAS));
    cr_assert(eq(str, c.payload, (char *)"null"));
    cr_assert(eq(int, enter(&c, 1, 2, COLLECTIVE_DIR, "\"e\""), COLLECTIVE_LET_GO));
    cr_assert(eq(str, c.payload, (char *)"\"d\""));
    collective_free(&c);
}

Test(collective, another_number_is_an_error_that_names_both) /* [W-RLX-7] */
{
    const struct collective_entry e = {.rank = 1, .number = 7, .kind = COLLECTIVE_DIR};
    struct collective c = of_ranks(2);
    char wrong[192];

    cr_assert(eq(int, collective_enter(&c, &e, 0, WARN_MS, wrong, sizeof wrong), COLLECTIVE_WRONG));
    cr_assert(eq(str, wrong,
                 (char *)"rank 1 is at call 7 of those that all ranks make together, the others "
                         "at 1"));
    cr_assert(eq(u32, c.barrier.n_in, 0));
    collective_free(&c);
}

Test(collective, different_calls_are_an_error_and_no_hang) /* [W-RLX-7] */
{
    struct collective c = of_ranks(3);

    enter(&c, 2, 1, COLLECTIVE_NOTICE, "null");
    cr_assert(eq(int, enter(&c, 1, 1, COLLECTIVE_DIR, "\"d\""), COLLECTIVE_LET_GO));
    cr_assert(eq(str, c.error,
                 (char *)"call 1: rank 2 calls get_preemption_info, rank 1 calls checkpoint_dir; "
                         "all ranks must make the same calls in the same order"));
    cr_assert(c.barrier.in[1] && c.barrier.in[2] && !c.barrier.in[0]);
    collective_clear(&c);
    cr_assert(
        eq(int, enter(&c, 0, 1, COLLECTIVE_DIR, "\"d\""), COLLECTIVE_WAS)); /* it is told too */
    collective_free(&c);
}

Test(collective, a_new_attempt_begins_with_number_1)
{
    struct collective c = of_ranks(2);

    enter(&c, 0, 1, COLLECTIVE_DIR, "\"d\"");
    collective_begin(&c, 1);
    cr_assert(eq(int, enter(&c, 0, 1, COLLECTIVE_DIR, "\"e\""), COLLECTIVE_LET_GO));
    cr_assert(eq(str, c.payload, (char *)"\"e\""));
    collective_free(&c);
}

/* Numbers in a row, compared with a plain search along the row. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "util/least.h"

Test(least, is_nothing_where_there_is_no_number)
{
    struct least l = {0};

    cr_assert(eq(u32, least_lowest(&l), LEAST_NOTHING));
    cr_assert(least_room(NULL, &l, 1));
    cr_assert(eq(u32, least_lowest(&l), LEAST_NOTHING));
    least_put(&l, 0, 7);
    cr_assert(eq(u32, least_lowest(&l), 7));
    least_free(NULL, &l);
}

Test(least, keeps_its_numbers_when_there_is_more_room)
{
    struct least l = {0};

    cr_assert(least_room(NULL, &l, 3));
    least_put(&l, 2, 5);
    cr_assert(least_room(NULL, &l, 1000));
    least_put(&l, 999, 4);
    cr_assert(eq(u32, least_get(&l, 2), 5));
    cr_assert(eq(u32, least_lowest(&l), 4));
    cr_assert(eq(sz, least_first(&l, 5), 2));
    cr_assert(eq(sz, least_first(&l, 4), 999));
    least_free(NULL, &l);
}

Test(least, finds_the_first_that_is_not_above_a_limit)
{
    enum { N = 100, ROUNDS = 20000 };
    uint32_t row[N];
    struct least l = {0};
    uint64_t seed = 88172645463325252u;

    cr_assert(least_room(NULL, &l, N));
    for (size_t i = 0; i < N; i++)
        row[i] = LEAST_NOTHING;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t limit, first = 0;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        row[seed >> 40 & 63] = seed >> 60 == 0 ? LEAST_NOTHING : (uint32_t)(seed >> 52 & 15);
        least_put(&l, seed >> 40 & 63, row[seed >> 40 & 63]);
        limit = (uint32_t)(seed >> 33 & 15);
        while (first < N && row[first] > limit)
            first++;
        cr_assert(eq(int, least_lowest(&l) <= limit, first < N));
        if (first < N)
            cr_assert(eq(sz, least_first(&l, limit), first));
    }
    least_free(NULL, &l);
}

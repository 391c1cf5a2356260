/* nearest_test.c - the known name most like a wrong one */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "util/nearest.h"

#define N(rows) (sizeof(rows) / sizeof *(rows))

static const char *nearest_of(const char *name)
{
    static const char *const known[] = {"parallelism", "min_parallelism", "max_parallelism", "id",
                                        "command"};
    struct nearest n;

    nearest_start(&n, name);
    for (size_t i = 0; i < N(known); i++)
        nearest_offer(&n, known[i]);
    return n.best;
}

Test(nearest, counts_letters_left_out_added_changed_and_swapped)
{
    static const char *const rows[][2] = {
        {"paralelism", "parallelism"},
        {"parallelisms", "parallelism"},
        {"porallelism", "parallelism"},
        {"parallelims", "parallelism"},
        {"MIN_PARALLELISM", "min_parallelism"},
        {"min-parallelism", "min_parallelism"},
        {"cmd", NULL},
        {"comand", "command"},
        {"xx", NULL},
        {"di", "id"},
        {"", NULL},
        {"zebra", NULL},
    };

    for (size_t i = 0; i < N(rows); i++) {
        const char *got = nearest_of(rows[i][0]);

        cr_expect(eq(str, (char *)(got ? got : "-"), (char *)(rows[i][1] ? rows[i][1] : "-")), "%s",
                  rows[i][0]);
    }
}

Test(nearest, the_first_of_equals_wins)
{
    struct nearest n;

    nearest_start(&n, "abcd");
    nearest_offer(&n, "abce");
    nearest_offer(&n, "abcf");
    cr_expect(eq(str, (char *)n.best, "abce"));
    nearest_offer(&n, "abcd");
    cr_expect(eq(str, (char *)n.best, "abcd"));
}

Test(nearest, very_long_names_are_like_nothing)
{
    char name[1000];
    struct nearest n;

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    nearest_start(&n, name);
    nearest_offer(&n, name);
    cr_expect(n.best == NULL);
}

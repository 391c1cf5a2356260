/* sort_test.c - sorting by two numbers */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "util/prng.h"
#include "util/sort.h"

enum { MOST = 3000 };

static void expect_sorted(const struct sort_item *items, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const struct sort_item *a = &items[i - 1], *b = &items[i];

        if (a->major != b->major)
            cr_assert(lt(u64, a->major, b->major));
        else if (a->minor != b->minor)
            cr_assert(lt(u32, a->minor, b->minor));
        else
            cr_assert(lt(u32, a->value, b->value)); /* equal ones keep their order */
    }
}

/* Numbers of every width, so that any of the digits may be the only one that differs. */
Test(sort, orders_by_major_then_minor_and_is_stable)
{
    static struct sort_item items[MOST], scratch[MOST];
    static const size_t sizes[] = {0, 1, 2, 31, 32, 33, 500, MOST};
    struct prng p = {1};

    for (unsigned width = 0; width <= 64; width += 4) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            uint64_t values = 0;

            for (uint32_t i = 0; i < sizes[s]; i++) {
                uint64_t major = width ? prng_next(&p) >> (64 - width) : 5;

                if (prng_below(&p, 3) == 0 && i > 0)
                    major = items[i - 1].major;
                items[i] = (struct sort_item){
                    .major = width % 8 ? major : major << (64 - width) % 64,
                    .minor = (uint32_t)prng_next(&p) >> width / 2 % 32,
                    .value = i,
                };
            }
            sort_items(items, scratch, sizes[s]);
            expect_sorted(items, sizes[s]);
            for (size_t i = 0; i < sizes[s]; i++)
                values += items[i].value;
            cr_expect(eq(u64, values, sizes[s] * (sizes[s] - (sizes[s] > 0)) / 2));
        }
    }
}

/* util_test.c - alloc, vec, deadline, prng, utf8, fnv, size */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <string.h>

#include "failing_alloc.h"
#include "util/alloc.h"
#include "util/deadline.h"
#include "util/fnv.h"
#include "util/prng.h"
#include "util/size.h"
#include "util/utf8.h"
#include "util/vec.h"

/* ---- alloc ------------------------------------------------------------------------------ */

Test(alloc, goes_through_the_hook_and_frees_there)
{
    FAILING_ALLOC(f, 0);
    char *block = mem_resize(&f.hook, NULL, 4, 2);

    block = mem_resize(&f.hook, block, 8, 2);
    cr_assert(eq(sz, f.calls, 2));
    cr_assert(eq(sz, f.live, 1));
    mem_free(&f.hook, block);
    mem_free(&f.hook, NULL);
    cr_assert(eq(sz, f.live, 0));
}

Test(alloc, is_the_c_librarys_without_a_hook)
{
    static const struct pliant_alloc no_hook;

    mem_free(NULL, mem_resize(NULL, NULL, 4, 2));
    mem_free(&no_hook, mem_zero(&no_hook, 4, 2));
}

Test(alloc, keeps_the_block_when_there_is_no_memory)
{
    FAILING_ALLOC(f, 2);
    char *block = mem_resize(&f.hook, NULL, 1, 8);

    strcpy(block, "kept");
    cr_assert(eq(ptr, mem_resize(&f.hook, block, 2, 8), NULL));
    cr_assert(eq(str, block, "kept"));
    mem_free(&f.hook, block);
}

Test(alloc, refuses_sizes_that_overflow)
{
    FAILING_ALLOC(f, 0);

    cr_assert(eq(ptr, mem_resize(&f.hook, NULL, SIZE_MAX / 2, 3), NULL));
    cr_assert(eq(ptr, mem_zero(&f.hook, SIZE_MAX / 2, 3), NULL));
    cr_assert(eq(sz, f.calls, 0));
}

Test(alloc, zeroes_when_asked)
{
    FAILING_ALLOC(f, 2);
    unsigned char *block = mem_zero(&f.hook, 100, 3);

    for (size_t i = 0; i < 300; i++)
        cr_expect(eq(u8, block[i], 0));
    cr_assert(eq(ptr, mem_zero(&f.hook, 1, 1), NULL));
    mem_free(&f.hook, block);
}

Test(alloc, cuts_texts_between_characters)
{
    static const struct {
        const char *text;
        size_t max;
        const char *want;
    } rows[] = {
        {"", 0, ""},
        {"", 5, ""},
        {"abc", 0, ""},
        {"abc", 2, "ab"},
        {"abc", 3, "abc"},
        {"abc", 4, "abc"},
        {"a\xc3\xa4", 2, "a"}, /* ä takes two bytes */
        {"a\xc3\xa4", 3, "a\xc3\xa4"},
        {"\xe2\x82\xac"
         "b",
         1, ""}, /* € takes three */
        {"\xe2\x82\xac"
         "b",
         2, ""},
        {"\xe2\x82\xac"
         "b",
         3, "\xe2\x82\xac"},
        {"\xf0\x9f\x98\x80", 3, ""}, /* four */
        {"\x80\x80\x80", 2, ""},     /* not UTF-8: nothing is kept */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *copy = mem_text(NULL, rows[i].text, rows[i].max);

        cr_expect(eq(str, copy, (char *)rows[i].want), "row %zu", i);
        mem_free(NULL, copy);
    }
}

Test(alloc, copies_no_text_without_memory)
{
    FAILING_ALLOC(f, 1);

    cr_assert(eq(ptr, mem_text(&f.hook, "abc", 3), NULL));
}

/* ---- vec -------------------------------------------------------------------------------- */

struct numbers VEC(uint32_t);

static bool reserve(struct failing_alloc *f, struct numbers *numbers, size_t want)
{
    return vec_reserve(&f->hook, numbers, want);
}

static bool room(struct failing_alloc *f, struct numbers *numbers, size_t more)
{
    return vec_room(&f->hook, numbers, more);
}

Test(vec, pushes_zeroed_elements_and_keeps_the_earlier_ones)
{
    FAILING_ALLOC(f, 0);
    struct numbers numbers = {0};

    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t *last = vec_push(&f.hook, &numbers);

        cr_expect(eq(u32, *last, 0));
        *last = i;
    }
    cr_assert(eq(sz, numbers.n, 1000));
    for (uint32_t i = 0; i < 1000; i++)
        cr_expect(eq(u32, numbers.v[i], i));
    cr_assert(lt(sz, f.calls, 20), "a thousand pushes take few allocations");
    vec_free(&f.hook, &numbers);
    cr_assert(eq(sz, f.live, 0));
    cr_assert(eq(sz, numbers.n, 0));
    cr_assert(eq(sz, numbers.cap, 0));
}

Test(vec, reserves_exactly_and_only_when_it_must)
{
    FAILING_ALLOC(f, 0);
    struct numbers numbers = {0};

    cr_assert(reserve(&f, &numbers, 0));
    cr_assert(eq(sz, f.calls, 0));
    cr_assert(reserve(&f, &numbers, 5));
    cr_assert(eq(sz, numbers.cap, 5));
    cr_assert(reserve(&f, &numbers, 3));
    cr_assert(eq(sz, f.calls, 1));
    vec_free(&f.hook, &numbers);
}

Test(vec, makes_room_for_several_at_little_cost)
{
    FAILING_ALLOC(f, 0);
    struct numbers numbers = {0};

    for (size_t i = 0; i < 1000; i++) {
        cr_assert(room(&f, &numbers, 3));
        cr_assert(le(sz, numbers.n + 3, numbers.cap));
        numbers.n += 3;
    }
    cr_assert(lt(sz, f.calls, 20));
    cr_assert(room(&f, &numbers, 100000));
    cr_assert(eq(sz, numbers.cap, 103000), "no more than is wanted, where that is much");
    vec_free(&f.hook, &numbers);
}

Test(vec, arrays_that_are_no_vec_grow_in_the_same_way)
{
    FAILING_ALLOC(f, 0);
    uint32_t *numbers = NULL;
    size_t cap = 0;

    cr_assert(array_reserve(&f.hook, &numbers, &cap, 0, sizeof *numbers));
    cr_assert(eq(ptr, numbers, NULL));
    for (uint32_t i = 0; i < 1000; i++) {
        cr_assert(array_reserve(&f.hook, &numbers, &cap, i + 1, sizeof *numbers));
        cr_assert(eq(u32, numbers[i], 0));
        numbers[i] = i + 1;
    }
    cr_assert(lt(sz, f.calls, 20));
    f.fail_at = f.calls + 1;
    cr_assert(not(array_reserve(&f.hook, &numbers, &cap, 100000, sizeof *numbers)));
    cr_assert(lt(sz, cap, 2000));
    cr_assert(eq(u32, numbers[999], 1000));
    mem_free(&f.hook, numbers);
}

Test(vec, keeps_what_it_has_when_it_cannot_grow)
{
    FAILING_ALLOC(f, 2);
    struct numbers numbers = {0};

    for (uint32_t i = 0; i < 8; i++)
        *(uint32_t *)vec_push(&f.hook, &numbers) = i;
    cr_assert(eq(ptr, vec_push(&f.hook, &numbers), NULL));
    f.fail_at = 3;
    cr_assert(not(reserve(&f, &numbers, 100)));
    cr_assert(eq(sz, numbers.n, 8));
    cr_assert(eq(sz, numbers.cap, 8));
    cr_assert(eq(u32, numbers.v[7], 7));
    vec_free(&f.hook, &numbers);
    cr_assert(eq(sz, f.live, 0));
}

/* ---- deadline --------------------------------------------------------------------------- */

Test(deadline, instants_end_at_never)
{
    static const struct {
        int64_t start, duration, want;
    } rows[] = {
        {0, 0, 0},
        {5, 7, 12},
        {-5, 7, 2},
        {INT64_MIN, INT64_MAX, -1},
        {0, PLIANT_NEVER, PLIANT_NEVER},
        {1, PLIANT_NEVER, PLIANT_NEVER},
        {PLIANT_NEVER, 0, PLIANT_NEVER},
        {PLIANT_NEVER, PLIANT_NEVER, PLIANT_NEVER},
        {PLIANT_NEVER - 3, 2, PLIANT_NEVER - 1},
        {PLIANT_NEVER - 3, 4, PLIANT_NEVER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect(eq(i64, instant_after(rows[i].start, rows[i].duration), rows[i].want), "row %zu",
                  i);
}

Test(deadline, that_is_past_is_due_now) /* [S-STM-1] */
{
    struct clock clock = {.now_ms = 100};
    struct deadline d = DEADLINE_NONE;

    cr_assert(not(deadline_armed(&d)));
    deadline_arm(&d, &clock, 40);
    cr_assert(eq(i64, d.at_ms, 100));
    deadline_arm(&d, &clock, 101);
    cr_assert(eq(i64, d.at_ms, 101));
    cr_assert(deadline_armed(&d));
    deadline_clear(&d);
    cr_assert(not(deadline_armed(&d)));
}

Test(deadline, comes_in_the_order_of_due_then_made)
{
    struct clock clock = {0};
    struct deadline early, first, second, none = DEADLINE_NONE;

    deadline_arm(&first, &clock, 20);
    deadline_arm(&second, &clock, 20);
    deadline_arm(&early, &clock, 10);
    cr_assert(deadline_before(&early, &first));
    cr_assert(deadline_before(&first, &second));
    cr_assert(not(deadline_before(&second, &first)));
    cr_assert(not(deadline_before(&first, &first)));
    cr_assert(deadline_before(&second, &none));
    cr_assert(not(deadline_before(&none, &second)));
}

/* ---- prng ------------------------------------------------------------------------------- */

Test(prng, is_splitmix64)
{
    static const uint64_t want[] = {/* the first three numbers published for seed 1234567 */
                                    UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                    UINT64_C(9817491932198370423)};
    struct prng p = {1234567};

    for (size_t i = 0; i < 3; i++)
        cr_expect(eq(u64, prng_next(&p), want[i]), "number %zu", i);
}

Test(prng, repeats_itself_from_the_same_state)
{
    struct prng a = {42}, b;

    prng_next(&a);
    b = a;
    cr_assert(eq(u64, prng_next(&a), prng_next(&b)));
}

Test(prng, draws_below_the_bound_and_evenly)
{
    enum { SIDES = 6, DRAWS = 60000 };
    struct prng p = {7};
    int seen[SIDES] = {0};

    for (int i = 0; i < DRAWS; i++)
        seen[prng_below(&p, SIDES)]++;
    for (int i = 0; i < SIDES; i++) {
        cr_expect(gt(int, seen[i], DRAWS / SIDES - 500), "side %d", i);
        cr_expect(lt(int, seen[i], DRAWS / SIDES + 500), "side %d", i);
    }
}

Test(prng, draws_within_bounds_of_any_width)
{
    static const uint64_t bounds[] = {
        1, 2, 3, UINT64_C(1) << 32, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX};
    struct prng p = {1};

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        for (int k = 0; k < 1000; k++)
            cr_expect(lt(u64, prng_below(&p, bounds[i]), bounds[i]), "bound %zu", i);
}

/* ---- utf8, fnv -------------------------------------------------------------------------- */

Test(utf8, knows_letters_from_what_is_none)
{
    /* clang-format off */
    static const struct {
        const char *text;
        size_t length;
    } rows[] = {
        {"a", 1}, {"\xc3\xa4z", 2}, {"\xe2\x82\xac", 3}, {"\xf0\x9f\x8e\x89", 4},
        {"\xed\x9f\xbf", 3}, {"\xf4\x8f\xbf\xbf", 4},
        {"\x80", 0}, {"\xc0\xaf", 0}, {"\xe0\x9f\xbf", 0}, {"\xf0\x8f\xbf\xbf", 0}, /* too long */
        {"\xed\xa0\x80", 0}, {"\xf4\x90\x80\x80", 0}, {"\xff", 0}, /* surrogates, beyond */
        {"\xc3", 0}, {"\xe2\x82", 0}, {"\xf0\x9f\x8e", 0}, {"\xc3z", 0}, /* cut */
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect(eq(sz, utf8_length(rows[i].text, strlen(rows[i].text)), rows[i].length),
                  "row %zu", i);
}

Test(utf8, is_cut_between_letters)
{
    const char *text = "a\xc3\xa4\xe2\x82\xac.";
    static const size_t cut_at[] = {0, 1, 1, 3, 3, 3, 6};

    for (size_t n = 0; n < sizeof cut_at / sizeof cut_at[0]; n++)
        cr_expect(eq(sz, utf8_cut(text, n), cut_at[n]), "at most %zu", n);
}

Test(utf8, counts_letters_and_finds_the_first_ones)
{
    const char *text = "a\xc3\xa4\xe2\x82\xac.";
    static const size_t first[] = {0, 1, 3, 6, 7, 7};

    cr_expect(eq(sz, utf8_letters(text), 4));
    cr_expect(eq(sz, utf8_letters(""), 0));
    for (size_t n = 0; n < sizeof first / sizeof first[0]; n++)
        cr_expect(eq(sz, utf8_first(text, n), first[n]), "%zu letters", n);
}

Test(fnv, adds_up_to_known_sums)
{
    cr_expect(eq(u64, fnv_add(FNV_START, "", 0), UINT64_C(0xcbf29ce484222325)));
    cr_expect(eq(u64, fnv_add(FNV_START, "a", 1), UINT64_C(0xaf63dc4c8601ec8c)));
    cr_expect(
        eq(u64, fnv_add(fnv_add(FNV_START, "foo", 3), "bar", 3), UINT64_C(0x85944171f73967e8)));
}

/* ---- sizes ------------------------------------------------------------------------------ */

Test(size, sizes_are_read_and_written_as_people_write_them) /* [5.1] */
{
    static const struct {
        const char *text;
        int rc;
        int64_t bytes;
        const char *written;
    } rows[] = {
        {"16 mb", 0, 16 << 20, "16 mb"},
        {"1G", 0, 1 << 30, "1 gb"},
        {" 3 kibibytes ", 0, 3072, "3 kb"},
        {"4096", 0, 4096, "4 kb"},
        {"7b", 0, 7, "7 b"},
        {"0", 0, 0, "0 tb"},
        {"8388607 tb", 0, INT64_C(8388607) << 40, "8388607 tb"},
        {"8388608 tb", -ERANGE, 0, NULL},
        {"9223372036854775808", -ERANGE, 0, NULL},
        {"", -EINVAL, 0, NULL},
        {"mb", -EINVAL, 0, NULL},
        {"-1 mb", -EINVAL, 0, NULL},
        {"1.5 mb", -EINVAL, 0, NULL},
        {"1 mbs", -EINVAL, 0, NULL},
        {"1 mb x", -EINVAL, 0, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[SIZE_TEXT_MAX];
        int64_t bytes = -1;

        cr_expect_eq(size_parse(rows[i].text, &bytes), rows[i].rc, "row %zu", i);
        if (rows[i].rc < 0)
            continue;
        cr_expect_eq(bytes, rows[i].bytes, "row %zu", i);
        cr_expect_eq(size_format(bytes, text), strlen(rows[i].written));
        cr_expect_str_eq(text, rows[i].written);
    }
}

/* daemon_clock_test.c - the daemon's three times */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "daemon/clock.h"

#define START 1000000

static struct daemon_clock started(void)
{
    return (struct daemon_clock){.offset_ms = START - 500,
                                 .boot_ms = 500,
                                 .now_ms = START,
                                 .awake_ms = START,
                                 .unix_ms = START,
                                 .stretch_ms = 1000};
}

Test(daemon_clock, short_stretches_count_in_full)
{
    struct daemon_clock c = started();

    for (int i = 1; i <= 20; i++)
        clock_take(&c, 500 + i * 250, START + i * 250);
    cr_expect(eq(i64, c.now_ms, START + 5000));
    cr_expect(eq(i64, c.awake_ms, START + 5000));
    cr_expect(eq(i64, c.unix_ms, START + 5000));
}

Test(daemon_clock, a_suspend_moves_the_cores_and_frightens_nobody)
{
    struct daemon_clock c = started();

    clock_take(&c, 500 + 3600000, START + 3600000);
    cr_expect(eq(i64, c.now_ms, START + 3600000));
    cr_expect(eq(i64, c.awake_ms, START + 1000));
}

Test(daemon_clock, a_stretch_counts_less_than_the_patience_with_peers)
{
    static const struct {
        int64_t patience_ms, stretch_ms;
    } rows[] = {{15000, 1000}, {3000, 1000}, {1000, 333}, {1, 20}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct daemon_clock c;

        clock_start(&c, 0, rows[i].patience_ms);
        cr_expect(eq(i64, c.stretch_ms, rows[i].stretch_ms), "row %zu", i);
    }
}

Test(daemon_clock, goes_on_where_the_daemon_before_it_stood)
{
    struct daemon_clock before, c;
    char note[CLOCK_NOTE];

    clock_start(&before, 0, 15000);
    before.offset_ms -= 7200000; /* the wall clock was set two hours ahead since */
    clock_note(&before, note);
    clock_start(&c, 0, 15000);
    clock_go_on(&c, note);
    cr_expect(eq(i64, c.now_ms, c.boot_ms + before.offset_ms));
    cr_expect(lt(i64, c.now_ms, c.unix_ms - 7100000));
    clock_start(&c, 0, 15000);
    clock_go_on(&c, "another-boot 17"); /* its boot time was another one */
    clock_go_on(&c, "");
    clock_go_on(&c, "nonsense");
    cr_expect(eq(i64, c.now_ms, c.unix_ms));
}

Test(daemon_clock, a_wall_clock_that_is_set_moves_only_the_edges)
{
    struct daemon_clock c = started();

    clock_take(&c, 600, START - 7200000); /* two hours back */
    cr_expect(eq(i64, c.now_ms, START + 100));
    cr_expect(eq(i64, c.awake_ms, START + 100));
    cr_expect(eq(i64, clock_of_unix(&c, START - 7200000 + 30), START + 130));
    cr_expect(eq(i64, clock_to_unix(&c, START + 130), START - 7200000 + 30));
    clock_take(&c, 700, START + 7200000);
    cr_expect(eq(i64, c.now_ms, START + 200));
}

Test(daemon_clock, time_never_goes_back)
{
    struct daemon_clock c = started();

    clock_take(&c, 400, START);
    cr_expect(eq(i64, c.now_ms, START));
    cr_expect(eq(i64, c.awake_ms, START));
    clock_take(&c, 510, START);
    cr_expect(eq(i64, c.now_ms, START + 10));
}

Test(daemon_clock, goes_on_from_what_a_journal_has_seen)
{
    struct daemon_clock c = started();

    clock_not_before(&c, START + 9000);
    cr_expect(eq(i64, c.now_ms, START + 9000));
    clock_not_before(&c, START);
    clock_take(&c, 600, START + 100);
    cr_expect(eq(i64, c.now_ms, START + 9100));
    clock_start(&c, INT64_C(1) << 60, 15000);
    cr_expect(eq(i64, c.now_ms, INT64_C(1) << 60));
    clock_look(&c);
    cr_expect(c.now_ms >= INT64_C(1) << 60);
}

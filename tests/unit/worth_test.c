/* worth_test.c - the policy that learns: its numbers, recomputed */
#include <criterion/criterion.h>
#include <string.h>

#include "transition/policy.h"

#define MIN_MS 60000

static const struct worth_limits limits = {.restart_ms = 30000,
                                           .checkpoint_ms = 3000,
                                           .between_losses_ms = 40 * MIN_MS,
                                           .memory_ms = 240 * MIN_MS,
                                           .min_interval_ms = 1000,
                                           .max_interval_ms = 60 * MIN_MS};

static struct worth fresh(void)
{
    struct worth w;

    worth_start(&w);
    return w;
}

static struct worth_view view_of(uint64_t p, uint64_t q, int64_t unsafe_ms)
{
    return (struct worth_view){.p = p,
                               .q = q,
                               .running = true,
                               .unsafe_ms = unsafe_ms,
                               .since_arrival_ms = MIN_MS,
                               .missed = (int64_t)(q - p) * MIN_MS,
                               .can_checkpoint = true};
}

/* A run from `from_ms`, when nodes change, on that starts for `starting_ms`, works, and ends. */
static void live(struct worth *w, int64_t from_ms, int64_t starting_ms, int64_t worked_ms,
                 enum worth_end how)
{
    worth_changed(w, &limits, from_ms);
    worth_enter(w, &limits, from_ms, 1);
    worth_running(w, &limits, from_ms + starting_ms);
    worth_restarted(w, starting_ms);
    worth_ended(w, &limits, from_ms + starting_ms + worked_ms, worked_ms, how);
    worth_leave(w, &limits, from_ms + starting_ms + worked_ms);
}

/* Right after a change. */
static int64_t interval_of(const struct worth *w)
{
    int64_t now_ms = w->changed_at_ms == PLIANT_UNSET ? 0 : w->changed_at_ms;

    return worth_next_checkpoint(w, &limits, now_ms) - now_ms;
}

/* ---- gain and cost -------------------------------------------------------------------------- */

/* With nothing seen: (q - p) x 3/8 of 40 min, against q x (30 s + what a checkpoint costs, or what
 * there is to lose where that is less). */
Test(worth, weighs_gain_against_cost)
{
    static const struct {
        uint64_t p, q;
        int64_t unsafe_ms, gain, cost;
        enum pliant_judgement want;
    } rows[] = {
        {4, 8, 60000, 4 * 900000, 8 * 33000, PLIANT_JUDGED_CHECKPOINT},
        {4, 8, 2000, 4 * 900000, 8 * 32000, PLIANT_JUDGED_GAIN},
        {4, 8, 0, 4 * 900000, 8 * 30000, PLIANT_JUDGED_GAIN},
        {63, 64, 60000, 900000, 64 * 33000, PLIANT_JUDGED_COST},
        {63, 64, 0, 900000, 64 * 30000, PLIANT_JUDGED_COST},
        {28, 29, 0, 900000, 29 * 30000, PLIANT_JUDGED_GAIN},
    };
    struct worth w = fresh();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct worth_view v = view_of(rows[i].p, rows[i].q, rows[i].unsafe_ms);
        struct worth_judgement j = worth_judge(&w, &limits, &v, 0);

        cr_expect_eq(j.gain, rows[i].gain, "row %zu: gain %lld", i, (long long)j.gain);
        cr_expect_eq(j.cost, rows[i].cost, "row %zu: cost %lld", i, (long long)j.cost);
        cr_expect_eq(j.reason, rows[i].want, "row %zu: %s", i, pliant_judgement_name(j.reason));
        cr_expect_eq(j.again_in_ms > 0, rows[i].want == PLIANT_JUDGED_COST, "row %zu", i);
    }
}

/* Two stops, each after 10 minutes of Executing that began with a change: 2 x ln(22 / 12) of risk
 * and 1.5 x 40 / 12 of the prior, for 2 + 1.5 stops, right after another change. */
Test(worth, measures_what_it_weighs)
{
    struct worth w = fresh();
    struct worth_view v = view_of(4, 8, MIN_MS);
    struct worth_judgement j;
    double until_stop = 12 * MIN_MS * (2 * 0.606136 + 1.5 * 40 / 12) / 3.5;

    live(&w, 0, MIN_MS, 9 * MIN_MS, WORTH_LOST);
    worth_checkpointed(&w, 10000);
    live(&w, 10 * MIN_MS, MIN_MS, 9 * MIN_MS, WORTH_MOVED);
    worth_changed(&w, &limits, 20 * MIN_MS);
    j = worth_judge(&w, &limits, &v, 20 * MIN_MS);
    cr_expect_eq(j.cost, 8 * (60000 + 10000));
    /* what is 10 minutes old counts 2^-(10 min / 4 h) */
    cr_expect_float_eq((double)j.gain, 4 * 0.375 * until_stop, 0.02 * (double)j.gain);
    cr_expect_eq(worth_restart_ms(&w, &limits), 60000);
    worth_stopped(&w, 10000);
    cr_expect_eq(worth_left_ms(&w, &limits, 20000), 30000);
    worth_restarted(&w, 30000);
    cr_expect_eq(worth_restart_ms(&w, &limits), 50000, "half of it is the newest: 10 s and 30 s");
}

/* (calm + 12 min) / 12 min times as much. */
Test(worth, counts_a_gain_further_ahead_the_longer_nothing_has_changed)
{
    struct worth w = fresh();
    struct worth_view v = view_of(63, 64, 0);

    worth_changed(&w, &limits, MIN_MS);
    cr_expect_eq(worth_judge(&w, &limits, &v, MIN_MS).gain, 900000);
    cr_expect_eq(worth_judge(&w, &limits, &v, MIN_MS).reason, PLIANT_JUDGED_COST);
    cr_expect_eq(worth_judge(&w, &limits, &v, 13 * MIN_MS).gain, 1800000);
    cr_expect_eq(worth_judge(&w, &limits, &v, 25 * MIN_MS).gain, 2700000);
    cr_expect_eq(worth_judge(&w, &limits, &v, 25 * MIN_MS).reason, PLIANT_JUDGED_GAIN);
}

Test(worth, follows_every_change_where_a_restart_is_free)
{
    struct worth_limits free = limits;
    struct worth w = fresh();
    struct worth_view v = view_of(1, 2, 0);

    free.restart_ms = free.checkpoint_ms = 0;
    v.since_arrival_ms = 0;
    for (v.p = 1; v.p < 1000; v.p++, v.q++)
        cr_assert_eq(worth_judge(&w, &free, &v, 0).reason, PLIANT_JUDGED_GAIN);
}

/* Until a tenth of 8 x 30 s was missed on 4 slots, but never longer than the 30 s of a restart. */
Test(worth, waits_for_a_burst_to_settle_but_not_longer_than_a_restart)
{
    struct worth w = fresh();
    struct worth_view v = view_of(4, 8, 0), few = view_of(20, 21, 0);
    struct worth_judgement j;

    v.since_arrival_ms = v.missed = 0;
    j = worth_judge(&w, &limits, &v, 0);
    cr_expect_eq(j.reason, PLIANT_JUDGED_SETTLES);
    cr_expect_eq(j.again_in_ms, 8 * 3000 / 4);
    v.missed = 4 * j.again_in_ms;
    v.since_arrival_ms = j.again_in_ms;
    cr_expect_eq(worth_judge(&w, &limits, &v, 0).reason, PLIANT_JUDGED_GAIN);
    few.missed = few.since_arrival_ms = 10000;
    j = worth_judge(&w, &limits, &few, 0);
    cr_expect_eq(j.reason, PLIANT_JUDGED_SETTLES);
    cr_expect_eq(j.again_in_ms, 20000, "21 x 3 s would be longer than a restart");
}

/* 4 slots would lose 60 s; a restart of 8 costs 8 x 30 s. It is waited for until either was missed.
 */
Test(worth, waits_for_the_next_report_of_workers_that_cannot_be_asked_for_a_checkpoint)
{
    static const struct {
        int64_t unsafe_ms, missed, cost, again_ms;
        enum pliant_judgement want;
    } rows[] = {
        {20000, 24000, 8 * 30000 + 4 * 20000, (4 * 20000 - 24000) / 4, PLIANT_JUDGED_REPORT},
        {20000, 80000, 8 * 30000 + 4 * 20000, 0, PLIANT_JUDGED_GAIN},
        {90000, 100000, 8 * 30000 + 4 * 90000, (8 * 30000 - 100000) / 4, PLIANT_JUDGED_REPORT},
        {90000, 240000, 8 * 30000 + 4 * 90000, 0, PLIANT_JUDGED_GAIN},
        {0, 24000, 8 * 30000, 0, PLIANT_JUDGED_GAIN}, /* one has just come, or none ever does */
        {900000, 24000, 8 * 30000 + 4 * 900000, 60000, PLIANT_JUDGED_COST},
    };
    struct worth w = fresh();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct worth_view v = view_of(4, 8, rows[i].unsafe_ms);
        struct worth_judgement j;

        v.can_checkpoint = false;
        v.report_in_ms = PLIANT_UNSET;
        v.missed = rows[i].missed;
        j = worth_judge(&w, &limits, &v, 0);
        cr_expect_eq(j.reason, rows[i].want, "row %zu: %s", i, pliant_judgement_name(j.reason));
        cr_expect_eq(j.cost, rows[i].cost, "row %zu", i);
        cr_expect_eq(j.again_in_ms, rows[i].again_ms, "row %zu", i);
    }
}

/* 4 slots would lose 60 or 90 s, and 8 x 30 s were missed; reports come every 100 s. */
Test(worth, waits_longer_for_a_report_that_is_due)
{
    static const struct {
        int64_t unsafe_ms, missed, report_in_ms, again_ms;
    } rows[] = {
        {90000, 240000, 10000, 30000}, /* then as much was missed as would be lost */
        {90000, 240000, 29999, 30000}, {90000, 240000, 30000, 0},     /* too late */
        {90000, 100000, 30000, 55000}, {90000, 100000, 70000, 35000}, /* as if nothing were known */
        {90000, 240000, -20000, 5000},                                /* a quarter late */
        {90000, 240000, -25000, 0},    {60000, 240000, 0, 0},
    };
    struct worth w = fresh();

    worth_reported(&w, 80000);
    worth_reported(&w, 120000);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct worth_view v = view_of(4, 8, rows[i].unsafe_ms);
        struct worth_judgement j;

        v.can_checkpoint = false;
        v.report_in_ms = rows[i].report_in_ms;
        v.missed = rows[i].missed;
        j = worth_judge(&w, &limits, &v, 0);
        cr_expect_eq(j.reason, rows[i].again_ms > 0 ? PLIANT_JUDGED_REPORT : PLIANT_JUDGED_GAIN,
                     "row %zu", i);
        cr_expect_eq(j.again_in_ms, rows[i].again_ms, "row %zu: %lld", i, (long long)j.again_in_ms);
    }
}

Test(worth, takes_a_restart_to_cost_what_it_was_told_at_least)
{
    struct worth_limits least = limits;
    struct worth w = fresh();

    least.min_restart_ms = 45000;
    cr_expect_eq(worth_restart_ms(&w, &least), 45000);
    worth_restarted(&w, 20);
    cr_expect_eq(worth_restart_ms(&w, &limits), 20);
    cr_expect_eq(worth_restart_ms(&w, &least), 45000);
    worth_restarted(&w, 200000);
    cr_expect_eq(worth_restart_ms(&w, &least), 100010);
}

Test(worth, starts_over_only_with_so_many_more_that_it_pays)
{
    static const struct {
        uint64_t q;
        int64_t left_ms;
        enum pliant_judgement want;
    } rows[] = {{8, 1000, PLIANT_JUDGED_GAIN},
                {64, 1000, PLIANT_JUDGED_GAIN},
                {5, 1000, PLIANT_JUDGED_GAIN}};
    struct worth w = fresh();
    struct worth_view v = view_of(4, 8, 0);

    v.running = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        v.q = rows[i].q;
        v.left_ms = rows[i].left_ms;
        cr_expect_eq(worth_judge(&w, &limits, &v, 0).reason, rows[i].want, "row %zu", i);
    }
    /* 64 x (900 - 30) s < 63 x (900 - 1) s */
    v.p = 63;
    v.q = 64;
    cr_expect_eq(worth_judge(&w, &limits, &v, 0).reason, PLIANT_JUDGED_STARTING);
}

/* ---- checkpoints ---------------------------------------------------------------------------- */

/* sqrt(2 x 3 s x 40 min x (calm + 20 min) / 20 min): what is calm for an hour is four times as
 * safe. */
Test(worth, takes_checkpoints_more_rarely_the_longer_nothing_has_changed)
{
    static const struct {
        int64_t calm_ms, want_ms;
    } rows[] = {{0, 120000}, {20 * MIN_MS, 169705}, {60 * MIN_MS, 240000}, {480 * MIN_MS, 600000}};
    struct worth w = fresh();

    worth_changed(&w, &limits, MIN_MS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t now = MIN_MS + rows[i].calm_ms;

        cr_expect_eq(worth_next_checkpoint(&w, &limits, now) - now, rows[i].want_ms,
                     "row %zu: %lld", i,
                     (long long)(worth_next_checkpoint(&w, &limits, now) - now));
    }
}

/* A loss after 40 minutes of work that began with a change: ln(60 / 20) of risk, and 40 / 20 of the
 * prior for one more; 20 min x 3.0986 / 2 between losses, right after this one. */
Test(worth, takes_checkpoints_as_often_as_losses_ask_for)
{
    struct worth w = fresh();
    int64_t before = interval_of(&w);

    live(&w, 0, 0, 40 * MIN_MS, WORTH_LOST);
    worth_changed(&w, &limits, 40 * MIN_MS);
    cr_expect_float_eq(w.losses.risk, 1.0986, 0.0001);
    cr_expect_float_eq((double)interval_of(&w), 105617, 2);
    w = fresh();
    for (int i = 0; i < 20; i++)
        live(&w, i * 5 * MIN_MS, 30000, 5 * MIN_MS - 30000 - i * 1013, WORTH_LOST);
    cr_expect(interval_of(&w) < before, "%lld", (long long)interval_of(&w));
    w = fresh();
    for (int i = 0; i < 20; i++)
        live(&w, i * 60 * MIN_MS, 30000, 59 * MIN_MS, WORTH_MOVED);
    cr_expect(interval_of(&w) > before, "%lld", (long long)interval_of(&w));
}

/* After n moves and no loss, the half loss of the prior is 0.5 of n + 0.5: 40 min x (n + 0.5) / 0.5
 * between losses. */
Test(worth, expects_few_losses_without_notice_where_nodes_go_with_notice)
{
    struct worth w = fresh();
    int64_t before = interval_of(&w), after;

    w.moves = 4;
    cr_expect_float_eq((double)interval_of(&w), 3 * (double)before, 2);
    w.losses.seen = 4;
    after = interval_of(&w);
    w.moves = 0;
    cr_expect_lt(interval_of(&w), after);
    cr_expect_float_eq((double)after, (double)interval_of(&w), 0.06 * (double)after,
                       "what was seen outweighs it");
}

/* As likely as there are slots: four times the job, half the interval. */
Test(worth, expects_losses_by_the_slots_that_the_job_takes)
{
    struct worth w = fresh();
    double small;

    worth_changed(&w, &limits, 0);
    worth_enter(&w, &limits, 0, 4);
    worth_running(&w, &limits, 0);
    worth_leave(&w, &limits, 40 * MIN_MS);
    cr_expect_float_eq(w.losses.risk, 4 * 1.0986, 0.001, "of each of them");

    w.losses = (struct worth_rate){.seen = 20, .risk = 20 * 16};
    w.units = 4;
    small = (double)interval_of(&w);
    w.units = 16;
    cr_expect_float_eq((double)interval_of(&w), small / 2, 0.06 * small);
}

Test(worth, stays_within_the_limits_of_the_interval)
{
    struct worth_limits narrow = limits;
    struct worth w = fresh();

    narrow.min_interval_ms = 10 * MIN_MS;
    cr_expect_geq(worth_next_checkpoint(&w, &narrow, 0), 10 * MIN_MS);
    narrow.min_interval_ms = 1000;
    narrow.max_interval_ms = 20000;
    cr_expect_leq(worth_next_checkpoint(&w, &narrow, 0), 20000);
    narrow.max_interval_ms = 1000;
    cr_expect_eq(worth_next_checkpoint(&w, &narrow, 0), 6000, "twice what one costs");
}

Test(worth, takes_no_checkpoint_where_one_would_take_for_ever)
{
    struct worth_limits slow = limits;
    struct worth w = fresh();
    struct worth_view v = view_of(4, 8, PLIANT_NEVER);

    slow.checkpoint_ms = INT64_MAX;
    cr_expect_eq(worth_next_checkpoint(&w, &slow, 1000), PLIANT_NEVER);
    slow.checkpoint_ms = INT64_MAX / 2 - 1000;
    w.grid = WORTH_GRIDS;
    w.lost_at_ms = 0;
    cr_expect_eq(worth_next_checkpoint(&w, &slow, 1000), 1000 + 2 * slow.checkpoint_ms);
    cr_expect_eq(worth_judge(&w, &slow, &v, 0).reason, PLIANT_JUDGED_COST);
}

Test(worth, expects_losses_on_the_minute_where_they_were)
{
    struct worth w = fresh();
    int64_t now = 100 * MIN_MS + 7000, at;

    for (int i = 0; i < 10; i++)
        live(&w, 10 * i * MIN_MS + 12345, 30000, 9 * MIN_MS + 17655, WORTH_LOST);
    at = worth_next_checkpoint(&w, &limits, now);
    cr_expect_eq((at + 3000) % MIN_MS, MIN_MS - 500 - 93, "done just before the minute");
    cr_expect_gt(at, now);
}

#define LOSSES 25

/* Losses every so many minutes, on each of which all that worked since the last one is lost. */
static struct worth lost_every(int64_t period_ms)
{
    struct worth w = fresh();

    for (int i = 0; i < LOSSES; i++)
        live(&w, i * period_ms + 12345, 30000, period_ms - 30000, WORTH_LOST);
    return w;
}

Test(worth, keeps_to_the_grid_of_losses_that_costs_least)
{
    static const struct {
        int64_t period_ms, checkpoint_ms, want_ms;
    } rows[] = {
        {10 * MIN_MS, 3000, 10 * MIN_MS}, /* one each time: nothing is lost */
        {20 * MIN_MS, 3000, 20 * MIN_MS},
        {20 * MIN_MS, 12000, 20 * MIN_MS},
        {7 * MIN_MS, 3000, MIN_MS}, /* seven minutes are no grid that is known, one minute is */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct worth w = lost_every(rows[i].period_ms);
        int64_t now = LOSSES * rows[i].period_ms + 12345 + 30000, at, end;

        worth_checkpointed(&w, rows[i].checkpoint_ms);
        at = worth_next_checkpoint(&w, &limits, now);
        end = at + rows[i].checkpoint_ms + rows[i].checkpoint_ms / 32 + 500;
        cr_expect_eq((end - 12345) % rows[i].want_ms, 0, "row %zu: at %lld", i, (long long)at);
        cr_expect_gt(at, now, "row %zu", i);
    }
}

Test(worth, keeps_to_no_grid_where_there_is_none_or_the_interval_must_be_shorter)
{
    struct worth_limits narrow = limits;
    struct worth w = fresh();
    int64_t now = 1000 * MIN_MS;

    for (int i = 0; i < 20; i++)
        live(&w, i * 7919 * 97, 30000, 7919 * 97 - 30000, WORTH_LOST);
    cr_expect_eq(w.grid, 0);
    narrow.max_interval_ms = 30000;
    w = lost_every(10 * MIN_MS);
    cr_expect_leq(worth_next_checkpoint(&w, &narrow, now), now + 30000);
    for (int i = 0; i < 10; i++)
        worth_ended(&w, &narrow, now + i * 10 * MIN_MS, MIN_MS, WORTH_LOST);
    cr_expect_eq(w.grid, 0, "the shortest is a minute");
}

Test(worth, counts_the_stops_of_one_instant_once)
{
    static const enum worth_end ends[] = {WORTH_LOST, WORTH_MOVED};

    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
        struct worth w = fresh(), v = fresh();

        live(&w, 0, 1000, 60 * MIN_MS, ends[e]);
        live(&v, 0, 1000, 60 * MIN_MS, ends[e]);
        for (int i = 0; i < 5; i++) {
            worth_enter(&v, &limits, 1000 + 60 * MIN_MS, 1);
            worth_ended(&v, &limits, 1000 + 60 * MIN_MS, 0, ends[e]);
            worth_leave(&v, &limits, 1000 + 60 * MIN_MS);
        }
        cr_expect_float_eq(w.stops.seen, v.stops.seen, 0, "row %zu", e);
        cr_expect_float_eq(w.losses.seen, v.losses.seen, 0, "row %zu", e);
        cr_expect_float_eq(w.moves, v.moves, 0, "row %zu", e);
    }
}

/* ---- drains --------------------------------------------------------------------------------- */

Test(worth, leaves_out_the_checkpoint_at_a_notice_where_nodes_keep_to_their_end)
{
    struct worth w = fresh();

    cr_expect(worth_checkpoint_at_notice(&w, &limits, MIN_MS, MIN_MS));
    for (int i = 0; i < 20; i++)
        worth_drained(&w, false);
    cr_expect_not(worth_checkpoint_at_notice(&w, &limits, MIN_MS, MIN_MS));
    for (int i = 0; i < 5; i++)
        worth_drained(&w, true);
    cr_expect(worth_checkpoint_at_notice(&w, &limits, MIN_MS, MIN_MS));
}

Test(worth, starts_elsewhere_at_once_where_the_start_would_be_in_vain)
{
    cr_expect(worth_moving_early(8, 6, 60000, 25000), "it would never work");
    cr_expect(worth_moving_early(8, 6, 60000, 100000), "6 x 100 s > 8 x 40 s");
    cr_expect_not(worth_moving_early(8, 6, 10000, 100000), "6 x 100 s < 8 x 90 s");
}

/* ---- as a policy ---------------------------------------------------------------------------- */

Test(worth, answers_as_it_judges)
{
    struct rescale_policy policy = {.kind = PLIANT_POLICY_WORTH, .limits = limits};
    struct rescale_offer offer = {.now_ms = 1000, .can_checkpoint = true};
    struct rescale_answer a;

    worth_start(&policy.worth);
    offer.view = view_of(4, 8, MIN_MS);
    cr_expect_eq(rescale_policy_ask(&policy, &offer).verdict, RESCALE_AFTER_CHECKPOINT);
    offer.view.unsafe_ms = 0;
    cr_expect_eq(rescale_policy_ask(&policy, &offer).verdict, RESCALE_NOW);
    offer.view = view_of(63, 64, 0);
    a = rescale_policy_ask(&policy, &offer);
    cr_expect_eq(a.verdict, RESCALE_NOT_YET);
    cr_expect_eq(a.again_at_ms, offer.now_ms + a.why.again_in_ms);
    cr_expect_eq(a.why.reason, PLIANT_JUDGED_COST);
    offer.view = view_of(8, 4, 0);
    a = rescale_policy_ask(&policy, &offer);
    cr_expect_eq(a.why.reason, PLIANT_JUDGED_NOT, "fewer are what somebody asked for");
    cr_expect_eq(a.verdict, RESCALE_AFTER_CHECKPOINT);
}

/* timeline_test.c - the rescale history: each attempt to bring the job to new slots */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "states/timeline.h"
#include "world.h"

/* ---- records by themselves -------------------------------------------------------------- */

/* Two vertices in a group each, 1..4 and 2..8. */
struct fixture {
    struct timeline t;
    struct bounds bounds;
    struct prng prng;
};

static const uint32_t GROUP_OF[] = {0, 1};

static struct fixture fixture(uint32_t size)
{
    struct fixture f = {.prng = {7}};

    cr_assert_eq(timeline_init(&f.t, 2, 2, size, NULL), 0);
    cr_assert_eq(bounds_init(&f.bounds, 2, 2, GROUP_OF, NULL), 0);
    f.bounds.vertices[0] = (struct vertex_bounds){1, 4};
    f.bounds.vertices[1] = (struct vertex_bounds){2, 8};
    bounds_refresh(&f.bounds);
    return f;
}

static void done(struct fixture *f)
{
    timeline_free(&f->t);
    bounds_free(&f->bounds, NULL);
}

static const struct pliant_rescale *open_record(struct fixture *f, int64_t now_ms, bool new_epoch)
{
    cr_assert_eq(timeline_open(&f->t, &f->prng, now_ms, new_epoch,
                               PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE, &f->bounds),
                 0);
    return timeline_at(&f->t, 0);
}

/* One whole record, and the step is over. */
static void record(struct fixture *f, int64_t from_ms, int64_t to_ms, enum pliant_rescale_end end)
{
    open_record(f, from_ms, false);
    cr_assert_eq(timeline_close(&f->t, to_ms, end), 0);
    timeline_bury(&f->t);
}

static bool same_id(const uint8_t a[16], const uint8_t b[16])
{
    return memcmp(a, b, 16) == 0;
}

Test(timeline,
     gives_each_record_an_id_and_a_number_within_its_requirements) /* [S-TML-4, S-TML-5] */
{
    struct fixture f = fixture(8);
    const struct pliant_rescale *r[4];

    for (int i = 0; i < 4; i++) {
        r[i] = open_record(&f, i, i == 0 || i == 3);
        timeline_close(&f.t, i, PLIANT_RESCALE_SUCCEEDED);
    }
    cr_assert_eq(r[0]->attempt, 1);
    cr_assert_eq(r[1]->attempt, 2);
    cr_assert_eq(r[2]->attempt, 3);
    cr_assert_eq(r[3]->attempt, 1);
    cr_assert(same_id(r[0]->requirements_id, r[2]->requirements_id));
    cr_assert(!same_id(r[2]->requirements_id, r[3]->requirements_id));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            cr_assert(!same_id(r[i]->id, r[j]->id));
    done(&f);
}

Test(timeline, draws_the_same_ids_from_the_same_seed) /* [S-TML-18] */
{
    struct fixture a = fixture(4), b = fixture(4);

    cr_assert(same_id(open_record(&a, 0, true)->id, open_record(&b, 9, true)->id));
    done(&a);
    done(&b);
}

Test(timeline, opens_no_record_while_one_is_open, .signal = SIGABRT) /* [S-TML-1] */
{
    struct fixture f = fixture(4);

    open_record(&f, 0, true);
    open_record(&f, 1, true);
}

Test(timeline, ignores_updates_when_none_is_open) /* [S-TML-2, S-TML-14] */
{
    struct fixture f = fixture(4);
    const uint32_t counts[] = {3, 3};
    struct pliant_rescale before;

    for (int opened = 0; opened < 2; opened++) {
        if (opened)
            record(&f, 5, 6, PLIANT_RESCALE_SUCCEEDED);
        if (opened)
            before = *timeline_at(&f.t, 0);
        timeline_merge(&f.t, 7, PLIANT_TRIGGER_DRAIN);
        timeline_refresh(&f.t, &f.bounds);
        timeline_assign(&f.t, counts, counts);
        cr_assert_eq(timeline_exception(&f.t, "late"), 0);
        cr_assert_eq(timeline_span(&f.t, PLIANT_EXECUTING, 1, 2), 0);
        cr_assert_eq(timeline_close(&f.t, 9, PLIANT_RESCALE_JOB_FAILED), 0);
    }
    cr_assert_eq(memcmp(&before, timeline_at(&f.t, 0), sizeof before), 0);
    cr_assert_eq(timeline_at(&f.t, 0)->vertices[0].post, 0);
    cr_assert_null(timeline_at(&f.t, 1));
    done(&f);
}

Test(timeline, shows_what_is_wanted_and_what_was) /* [S-TML-7, S-TML-13] */
{
    struct fixture f = fixture(4);
    const uint32_t first[] = {2, 3}, second[] = {4, 5};
    const struct pliant_rescale *r = open_record(&f, 0, true);

    cr_assert_eq(r->vertices[0].sufficient, 1);
    cr_assert_eq(r->vertices[0].desired, 4);
    cr_assert_eq(r->vertices[1].sufficient, 2);
    cr_assert_eq(r->vertices[1].desired, 8);
    cr_assert_eq(r->groups[1].minimal, 2);
    cr_assert_eq(r->groups[1].desired, 8);
    cr_assert_eq(r->vertices[0].pre, 0); /* the first has none */
    cr_assert_eq(r->vertices[0].post, 0);
    timeline_assign(&f.t, first, second);
    cr_assert_eq(r->vertices[1].post, 3);
    cr_assert_eq(r->groups[1].post, 5);
    timeline_close(&f.t, 1, PLIANT_RESCALE_SUCCEEDED);

    r = open_record(&f, 2, false); /* this one comes to nothing ... */
    cr_assert_eq(r->vertices[0].pre, 2);
    cr_assert_eq(r->groups[0].pre, 4);
    timeline_assign(&f.t, second, second);
    timeline_close(&f.t, 3, PLIANT_RESCALE_NO_CHANGE);
    r = open_record(&f, 4, false); /* ... and does not count */
    cr_assert_eq(r->vertices[1].pre, 3);
    f.bounds.vertices[1].want = 9;
    bounds_refresh(&f.bounds);
    timeline_refresh(&f.t, &f.bounds);
    cr_assert_eq(r->vertices[1].desired, 9);
    cr_assert_eq(r->groups[1].desired, 9);
    cr_assert_eq(r->start_at_ms, 4);
    done(&f);
}

Test(timeline, goes_on_as_the_attempt_after_a_failure) /* [S-TML-6] */
{
    struct fixture f = fixture(4);
    const struct pliant_rescale *r = open_record(&f, 100, true);
    struct pliant_rescale before = *r;

    timeline_span(&f.t, PLIANT_EXECUTING, 0, 100);
    timeline_merge(&f.t, 200, PLIANT_TRIGGER_RECOVERABLE_FAILOVER);
    cr_assert(same_id(r->id, before.id));
    cr_assert(same_id(r->requirements_id, before.requirements_id));
    cr_assert_eq(r->attempt, before.attempt);
    cr_assert_eq(r->n_spans, 0);
    cr_assert_eq(r->start_at_ms, 200);
    cr_assert_eq(r->trigger, PLIANT_TRIGGER_RECOVERABLE_FAILOVER);
    timeline_span(&f.t, PLIANT_RESTARTING, 200, 300);
    cr_assert_eq(r->n_spans, 1);
    done(&f);
}

Test(timeline, puts_an_exception_into_the_next_span) /* [S-TML-12] */
{
    struct fixture f = fixture(4);
    const struct pliant_rescale *r = open_record(&f, 0, true);

    timeline_span(&f.t, PLIANT_CREATED, 0, 1);
    timeline_exception(&f.t, "lost");
    timeline_exception(&f.t, "no disk");
    timeline_span(&f.t, PLIANT_CREATING_EXECUTION_GRAPH, 1, 5);
    timeline_span(&f.t, PLIANT_WAITING_FOR_RESOURCES, 5, 9);
    cr_assert_eq(r->n_spans, 3);
    cr_assert_null(r->spans[0].exception);
    cr_assert_str_eq(r->spans[1].exception, "no disk");
    cr_assert_eq(r->spans[1].state, PLIANT_CREATING_EXECUTION_GRAPH);
    cr_assert_eq(r->spans[1].enter_at_ms, 1);
    cr_assert_eq(r->spans[1].leave_at_ms, 5);
    cr_assert_null(r->spans[2].exception);
    timeline_exception(&f.t, "never shown");
    done(&f);
}

Test(timeline, keeps_the_last_spans_of_an_endless_record) /* [S-TML-12] */
{
    struct fixture f = fixture(1);
    const struct pliant_rescale *r = open_record(&f, 0, true);

    for (int64_t i = 0; i < 1000; i++) {
        timeline_exception(&f.t, "again");
        timeline_span(&f.t, PLIANT_RESTARTING, i, i + 1);
    }
    cr_assert_eq(r->n_spans, TIMELINE_SPANS_MAX);
    cr_assert_eq(r->spans[0].enter_at_ms, 1000 - TIMELINE_SPANS_MAX);
    cr_assert_eq(r->spans[TIMELINE_SPANS_MAX - 1].leave_at_ms, 1000);
    done(&f);
}

Test(timeline, ends_in_one_of_three_kinds) /* [S-TML-11] */
{
    static const enum pliant_rescale_terminal kinds[] = {
        [PLIANT_RESCALE_OPEN] = PLIANT_TERMINAL_NONE,
        [PLIANT_RESCALE_SUCCEEDED] = PLIANT_TERMINAL_COMPLETED,
        [PLIANT_RESCALE_EXCEPTION_OCCURRED] = PLIANT_TERMINAL_FAILED,
        [PLIANT_RESCALE_REQUIREMENTS_UPDATED] = PLIANT_TERMINAL_IGNORED,
        [PLIANT_RESCALE_NO_CHANGE] = PLIANT_TERMINAL_IGNORED,
        [PLIANT_RESCALE_JOB_FINISHED] = PLIANT_TERMINAL_IGNORED,
        [PLIANT_RESCALE_JOB_FAILED] = PLIANT_TERMINAL_IGNORED,
        [PLIANT_RESCALE_JOB_CANCELED] = PLIANT_TERMINAL_IGNORED,
        [PLIANT_RESCALE_JOB_SUSPENDED] = PLIANT_TERMINAL_IGNORED,
    };
    size_t n = sizeof kinds / sizeof *kinds;

    for (size_t end = 0; end < n; end++)
        cr_assert_eq(pliant_rescale_terminal((enum pliant_rescale_end)end), kinds[end]);
    cr_assert_eq(pliant_rescale_terminal((enum pliant_rescale_end)n), PLIANT_TERMINAL_NONE);
}

Test(timeline, is_bounded_and_keeps_the_last_of_each_kind) /* [S-TML-15] */
{
    struct fixture f = fixture(3);

    record(&f, 0, 1, PLIANT_RESCALE_SUCCEEDED);
    record(&f, 10, 11, PLIANT_RESCALE_EXCEPTION_OCCURRED);
    for (int64_t i = 2; i < 9; i++)
        record(&f, 10 * i, 10 * i + 1, PLIANT_RESCALE_NO_CHANGE);
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(timeline_at(&f.t, i)->start_at_ms, 80 - 10 * (int64_t)i); /* newest first */
    cr_assert_null(timeline_at(&f.t, 3));
    cr_assert_eq(f.t.last[PLIANT_TERMINAL_COMPLETED]->view.start_at_ms, 0); /* not evicted */
    cr_assert_eq(f.t.last[PLIANT_TERMINAL_FAILED]->view.start_at_ms, 10);
    cr_assert_eq(f.t.last[PLIANT_TERMINAL_IGNORED]->view.start_at_ms, 80);
    done(&f);
}

Test(timeline, shows_an_evicted_record_until_the_step_is_over) /* [S-TML-15] */
{
    struct fixture f = fixture(1);
    const struct pliant_rescale *first = open_record(&f, 1, true);

    timeline_close(&f.t, 2, PLIANT_RESCALE_NO_CHANGE); /* an action shows it */
    open_record(&f, 3, false);
    timeline_close(&f.t, 4, PLIANT_RESCALE_NO_CHANGE);
    cr_assert_eq(first->start_at_ms, 1);
    cr_assert_eq(first->vertices[0].desired, 4);
    timeline_bury(&f.t);
    cr_assert_eq(timeline_at(&f.t, 0)->start_at_ms, 3);
    done(&f);
}

Test(timeline, of_size_zero_records_nothing) /* [S-TML-15] */
{
    struct fixture f = fixture(0);
    struct pliant_rescale_summary summary;

    cr_assert_eq(timeline_open(&f.t, &f.prng, 0, true, PLIANT_TRIGGER_DRAIN, &f.bounds), 0);
    cr_assert_null(f.t.open);
    cr_assert_null(timeline_at(&f.t, 0));
    timeline_span(&f.t, PLIANT_CREATED, 0, 1);
    timeline_close(&f.t, 1, PLIANT_RESCALE_SUCCEEDED);
    timeline_summary(&f.t, &summary);
    cr_assert_eq(summary.opened, 0);
    done(&f);
}

/* ---- statistics ------------------------------------------------------------------------- */

static void expect_stats(const struct pliant_rescale_stats *s, uint64_t count, double min,
                         double max, double avg, double p50)
{
    cr_assert_eq(s->count, count);
    cr_assert_float_eq(s->min, min, 1e-9);
    cr_assert_float_eq(s->max, max, 1e-9);
    cr_assert_float_eq(s->avg, avg, 1e-9);
    cr_assert_float_eq(s->p50, p50, 1e-9);
}

static void expect_no_stats(const struct pliant_rescale_stats *s)
{
    cr_assert_eq(s->count, 0);
    cr_assert_eq(s->min, 0);
    cr_assert_eq(s->max, 0);
    cr_assert_eq(s->avg, 0);
    cr_assert(isnan(s->p50) && isnan(s->p90) && isnan(s->p95) && isnan(s->p99) && isnan(s->p999));
}

Test(timeline, counts_and_measures_what_has_ended) /* [S-TML-16] */
{
    struct fixture f = fixture(2);
    struct pliant_rescale_summary s;

    record(&f, 0, 10, PLIANT_RESCALE_SUCCEEDED);
    record(&f, 100, 130, PLIANT_RESCALE_SUCCEEDED);
    record(&f, 200, 205, PLIANT_RESCALE_NO_CHANGE);
    record(&f, 300, 400, PLIANT_RESCALE_EXCEPTION_OCCURRED);
    open_record(&f, 500, false);
    timeline_summary(&f.t, &s);
    cr_assert_eq(s.opened, 5);
    cr_assert_eq(s.in_progress, 1);
    expect_stats(&s.all, 4, 5, 100, 36.25, 20);
    expect_stats(&s.of[PLIANT_TERMINAL_COMPLETED], 2, 10, 30, 20, 20);
    expect_stats(&s.of[PLIANT_TERMINAL_IGNORED], 1, 5, 5, 5, 5);
    expect_stats(&s.of[PLIANT_TERMINAL_FAILED], 1, 100, 100, 100, 100);
    expect_no_stats(&s.of[PLIANT_TERMINAL_NONE]);
    timeline_close(&f.t, 600, PLIANT_RESCALE_JOB_CANCELED);
    timeline_summary(&f.t, &s);
    cr_assert_eq(s.in_progress, 0);
    cr_assert_eq(s.of[PLIANT_TERMINAL_IGNORED].count, 2);
    done(&f);
}

Test(timeline, has_statistics_of_nothing) /* [S-TML-17] */
{
    struct fixture f = fixture(2);
    struct pliant_rescale_summary s;

    timeline_summary(&f.t, &s);
    cr_assert_eq(s.opened, 0);
    cr_assert_eq(s.in_progress, 0);
    expect_no_stats(&s.all);
    for (int kind = 0; kind < PLIANT_TERMINALS; kind++)
        expect_no_stats(&s.of[kind]);
    done(&f);
}

Test(timeline, orders_durations_for_the_percentiles) /* [S-TML-16] */
{
    struct fixture f = fixture(2);
    struct pliant_rescale_summary s;

    for (int64_t i = 0; i <= 1000; i++) /* 0 .. 1000, each once, in no order */
        record(&f, 10000 * i, 10000 * i + i * 387 % 1001, PLIANT_RESCALE_SUCCEEDED);
    timeline_summary(&f.t, &s);
    cr_assert_eq(s.all.count, 1001);
    cr_assert_float_eq(s.all.avg, 500, 1e-9);
    cr_assert_float_eq(s.all.p50, 500, 1e-9);
    cr_assert_float_eq(s.all.p90, 900, 1e-9);
    cr_assert_float_eq(s.all.p95, 950, 1e-9);
    cr_assert_float_eq(s.all.p99, 990, 1e-9);
    cr_assert_float_eq(s.all.p999, 999, 1e-9);
    done(&f);
}

Test(timeline, takes_the_percentiles_from_the_last_ones_and_the_rest_from_all) /* [S-TML-16] */
{
    struct fixture f = fixture(2);
    struct pliant_rescale_summary s;

    record(&f, 0, 5000, PLIANT_RESCALE_SUCCEEDED);
    for (int64_t i = 1; i <= TIMELINE_SAMPLES; i++)
        record(&f, 10000 * i, 10000 * i + 1, PLIANT_RESCALE_SUCCEEDED);
    timeline_summary(&f.t, &s);
    cr_assert_eq(s.all.count, TIMELINE_SAMPLES + 1);
    cr_assert_float_eq(s.all.max, 5000, 1e-9);
    cr_assert_float_eq(s.all.p999, 1, 1e-9);
    done(&f);
}

/* ---- want of memory --------------------------------------------------------------------- */

static int live_a_life(struct timeline *t, const struct bounds *bounds)
{
    struct prng prng = {1};

    for (int64_t i = 0; i < 4; i++)
        if (timeline_open(t, &prng, i, i == 0, PLIANT_TRIGGER_DRAIN, bounds) < 0 ||
            timeline_exception(t, "why") < 0 || timeline_span(t, PLIANT_CREATED, i, i) < 0 ||
            timeline_exception(t, "why not") < 0 ||
            timeline_close(t, i, i % 2 ? PLIANT_RESCALE_NO_CHANGE : PLIANT_RESCALE_SUCCEEDED) < 0)
            return -ENOMEM;
    return 0;
}

Test(timeline, leaks_nothing_whichever_allocation_fails)
{
    struct fixture f = fixture(2);

    for (size_t k = 1;; k++) {
        FAILING_ALLOC(hook, k);
        struct timeline t;
        int error = timeline_init(&t, 2, 2, 2, &hook.hook);

        if (error == 0) {
            error = live_a_life(&t, &f.bounds);
            timeline_free(&t);
        }
        cr_assert_eq(hook.live, 0, "at allocation %zu", k);
        if (hook.calls < k) {
            cr_assert_eq(error, 0);
            break;
        }
        cr_assert_eq(error, -ENOMEM);
    }
    done(&f);
}

/* ---- as the scheduler writes it --------------------------------------------------------- */

#define EXECUTING_COOLDOWN "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling"

static struct world running(uint32_t slots)
{
    return world_running(
        (struct world_spec){.options = {EXECUTING_COOLDOWN, "0 s", "restart-strategy.type",
                                        "fixed-delay", "restart-strategy.fixed-delay.attempts",
                                        "9"}},
        slots);
}

static void expect_record(const struct world *w, size_t i, enum pliant_rescale_trigger trigger,
                          enum pliant_rescale_end end)
{
    const struct pliant_rescale *r = pliant_rescale_at(w->s, i);

    cr_assert_not_null(r, "there is no record %zu", i);
    cr_assert_eq(r->trigger, trigger, "record %zu: %s", i, pliant_rescale_trigger_name(r->trigger));
    cr_assert_eq(r->end, end, "record %zu: %s", i, pliant_rescale_end_name(r->end));
}

static void expect_spans(const struct pliant_rescale *r, const char *states)
{
    char text[512] = "";

    for (uint32_t i = 0; i < r->n_spans; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 pliant_state_name(r->spans[i].state));
    cr_assert_str_eq(text, states);
}

Test(timeline, begins_with_the_first_schedule) /* [S-TML-3, S-CRE-4, S-TML-8] */
{
    struct world w = world_new((struct world_spec){0});
    const struct pliant_rescale *r;

    cr_assert_null(pliant_rescale_at(w.s, 0));
    world_to(&w, 100);
    w.reserves = false;
    world_start(&w);
    cr_assert_eq(world_count(&w, PLIANT_ACT_RESCALE_OPENED), 1);
    expect_record(&w, 0, PLIANT_TRIGGER_INITIAL_SCHEDULE, PLIANT_RESCALE_OPEN); /* in progress */
    world_to(&w, 250);
    world_node(&w, "n1", 4);
    world_to(&w, 300);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    r = pliant_rescale_at(w.s, 0);
    expect_record(&w, 0, PLIANT_TRIGGER_INITIAL_SCHEDULE, PLIANT_RESCALE_SUCCEEDED);
    expect_spans(r, "Created WaitingForResources CreatingExecutionGraph Executing");
    cr_assert_eq(r->start_at_ms, 100);
    cr_assert_eq(r->end_at_ms, 300);
    cr_assert_eq(r->spans[1].enter_at_ms, 100);
    cr_assert_eq(r->spans[1].leave_at_ms, 250);
    cr_assert_eq(r->spans[2].leave_at_ms, 300);
    cr_assert_eq(r->spans[3].enter_at_ms, 300);
    cr_assert_eq(r->spans[3].leave_at_ms, 300);
    cr_assert_eq(r->attempt, 1);
    cr_assert_eq(r->vertices[0].pre, 0);
    cr_assert_eq(r->vertices[0].post, 4);
    cr_assert_eq(r->groups[0].post, 4);
    world_free(&w);
}

Test(timeline, begins_a_new_epoch_with_new_requirements) /* [S-TML-4] */
{
    struct world w = running(4);
    uint8_t epoch[16];

    memcpy(epoch, pliant_rescale_at(w.s, 0)->requirements_id, 16);
    world_to(&w, 1000);
    world_bounds(&w, 1, 4); /* as they were: no update */
    cr_assert_null(pliant_rescale_at(w.s, 1));
    w.cancels = false;
    world_bounds(&w, 1, 2);
    expect_record(&w, 0, PLIANT_TRIGGER_UPDATE_REQUIREMENT, PLIANT_RESCALE_OPEN);
    cr_assert_eq(pliant_rescale_at(w.s, 0)->attempt, 1);
    cr_assert(!same_id(pliant_rescale_at(w.s, 0)->requirements_id, epoch));
    world_bounds(&w, 1, 3); /* closes the open one */
    expect_record(&w, 1, PLIANT_TRIGGER_UPDATE_REQUIREMENT, PLIANT_RESCALE_REQUIREMENTS_UPDATED);
    expect_record(&w, 0, PLIANT_TRIGGER_UPDATE_REQUIREMENT, PLIANT_RESCALE_OPEN);
    world_free(&w);
}

Test(timeline, ends_what_was_open_when_requirements_change_while_waiting) /* [S-TML-4] */
{
    struct world w = world_new((struct world_spec){0});

    world_start(&w);
    world_to(&w, 10);
    world_bounds(&w, 1, 2);
    expect_record(&w, 1, PLIANT_TRIGGER_INITIAL_SCHEDULE, PLIANT_RESCALE_REQUIREMENTS_UPDATED);
    expect_spans(pliant_rescale_at(w.s, 1), "Created WaitingForResources"); /* left "now" */
    expect_record(&w, 0, PLIANT_TRIGGER_UPDATE_REQUIREMENT, PLIANT_RESCALE_OPEN);
    world_free(&w);
}

Test(timeline, follows_new_resources_in_the_same_epoch) /* [S-TML-5, S-STM-10, S-TML-13] */
{
    struct world w = running(2);
    const struct pliant_rescale *r;

    w.cancels = false;
    world_to(&w, 20000);
    world_node(&w, "n2", 1); /* enough for three of four: it stabilizes */
    expect_record(&w, 0, PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE, PLIANT_RESCALE_OPEN);
    world_to(&w, 21000);
    world_node(&w, "n3", 1); /* the same record */
    expect_record(&w, 0, PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE, PLIANT_RESCALE_OPEN);
    cr_assert_null(pliant_rescale_at(w.s, 2));
    w.cancels = true;
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    r = pliant_rescale_at(w.s, 0);
    expect_record(&w, 0, PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE, PLIANT_RESCALE_SUCCEEDED);
    expect_spans(r, "Executing Restarting CreatingExecutionGraph Executing");
    cr_assert_eq(r->attempt, 2);
    cr_assert(same_id(r->requirements_id, pliant_rescale_at(w.s, 1)->requirements_id));
    cr_assert_eq(r->start_at_ms, 20000);
    cr_assert_eq(r->vertices[0].pre, 2);
    cr_assert_eq(r->vertices[0].post, 4);
    cr_assert_eq(r->groups[0].pre, 2);
    cr_assert_eq(r->groups[0].post, 4);
    world_free(&w);
}

Test(timeline, opens_nothing_for_resources_that_change_nothing) /* [S-TML-5] */
{
    struct world w = running(4);

    world_node(&w, "n2", 8);
    cr_assert_null(pliant_rescale_at(w.s, 1));
    cr_assert_eq(world_count(&w, PLIANT_ACT_RESCALE_OPENED), 0);
    world_free(&w);
}

Test(timeline, follows_a_failure_in_the_same_epoch) /* [S-TML-6] */
{
    struct world w = running(4);

    world_to(&w, 5000);
    world_fail(&w, true);
    expect_record(&w, 0, PLIANT_TRIGGER_RECOVERABLE_FAILOVER, PLIANT_RESCALE_OPEN);
    cr_assert_eq(pliant_rescale_at(w.s, 0)->start_at_ms, 5000);
    world_to(&w, 6000);
    expect_record(&w, 0, PLIANT_TRIGGER_RECOVERABLE_FAILOVER, PLIANT_RESCALE_SUCCEEDED);
    expect_spans(pliant_rescale_at(w.s, 0),
                 "Executing Restarting WaitingForResources CreatingExecutionGraph Executing");
    cr_assert_eq(pliant_rescale_at(w.s, 0)->attempt, 2);
    world_free(&w);
}

Test(timeline, merges_a_failure_into_the_open_record) /* [S-TML-6] */
{
    struct world w = running(2);
    uint8_t id[16];

    w.cancels = false;
    world_to(&w, 20000);
    world_node(&w, "n2", 1);
    memcpy(id, pliant_rescale_at(w.s, 0)->id, 16);
    world_to(&w, 21000);
    world_fail(&w, true);
    expect_record(&w, 0, PLIANT_TRIGGER_RECOVERABLE_FAILOVER, PLIANT_RESCALE_OPEN);
    cr_assert(same_id(pliant_rescale_at(w.s, 0)->id, id));
    cr_assert_eq(pliant_rescale_at(w.s, 0)->start_at_ms, 21000);
    cr_assert_null(pliant_rescale_at(w.s, 2));
    world_free(&w);
}

Test(timeline, only_refreshes_the_numbers_when_a_rescale_restarts) /* [S-TML-7] */
{
    struct world w = running(4);
    const struct pliant_rescale *r;

    w.cancels = false;
    world_to(&w, 1000);
    world_bounds(&w, 2, 3); /* at once: desired, and no cooldown */
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    r = pliant_rescale_at(w.s, 0);
    expect_record(&w, 0, PLIANT_TRIGGER_UPDATE_REQUIREMENT, PLIANT_RESCALE_OPEN);
    cr_assert_eq(r->start_at_ms, 1000);
    cr_assert_eq(r->attempt, 1);
    cr_assert_eq(r->vertices[0].sufficient, 2);
    cr_assert_eq(r->vertices[0].desired, 3);
    cr_assert_eq(r->groups[0].minimal, 2);
    cr_assert_eq(r->groups[0].desired, 3);
    expect_spans(r, "Executing");
    world_free(&w);
}

Test(timeline, closes_a_record_of_a_change_that_brings_nothing) /* [S-TML-9] */
{
    struct world w = running(2);

    world_to(&w, 20000);
    world_bounds(&w, 3, 4); /* more than there is: it runs on */
    expect_record(&w, 0, PLIANT_TRIGGER_UPDATE_REQUIREMENT, PLIANT_RESCALE_NO_CHANGE);
    cr_assert_eq(world_count(&w, PLIANT_ACT_RESCALE_CLOSED), 1);
    world_bounds(&w, 1, 4); /* no other parallelism */
    expect_record(&w, 0, PLIANT_TRIGGER_UPDATE_REQUIREMENT, PLIANT_RESCALE_NO_CHANGE);
    expect_spans(pliant_rescale_at(w.s, 0), "Executing");
    world_free(&w);
}

Test(timeline, closes_the_record_when_the_manager_falls_back_to_idling) /* [S-TML-9] */
{
    struct world w = running(2);

    world_to(&w, 20000);
    world_node(&w, "n2", 1);
    expect_record(&w, 0, PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE, PLIANT_RESCALE_OPEN);
    world_lose(&w, "n2");
    world_to(&w, 80000); /* stable, and it is no longer sufficient */
    expect_record(&w, 0, PLIANT_TRIGGER_NEW_RESOURCE_AVAILABLE, PLIANT_RESCALE_NO_CHANGE);
    cr_assert_eq(pliant_rescale_at(w.s, 0)->end_at_ms, 80000);
    world_free(&w);
}

Test(timeline, closes_a_record_of_the_cooldown_at_its_end) /* [S-TML-9] */
{
    struct world w = world_running((struct world_spec){0}, 2);

    world_to(&w, 11000);
    world_bounds(&w, 3, 4);
    expect_record(&w, 0, PLIANT_TRIGGER_UPDATE_REQUIREMENT, PLIANT_RESCALE_OPEN);
    world_to(&w, 40000);
    expect_record(&w, 0, PLIANT_TRIGGER_UPDATE_REQUIREMENT, PLIANT_RESCALE_NO_CHANGE);
    world_free(&w);
}

Test(timeline, closes_a_failed_creation_with_its_exception) /* [S-TML-10] */
{
    struct world w = world_new((struct world_spec){0});
    const struct pliant_rescale *r;

    w.reserves = false;
    world_start(&w);
    world_node(&w, "n1", 4);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_CREATION_FAILED,
                                          .plan = {.plan = w.plan, .cause = "no disk"}});
    r = pliant_rescale_at(w.s, 0);
    expect_record(&w, 0, PLIANT_TRIGGER_INITIAL_SCHEDULE, PLIANT_RESCALE_EXCEPTION_OCCURRED);
    expect_spans(r, "Created WaitingForResources CreatingExecutionGraph");
    cr_assert_null(r->spans[1].exception);
    cr_assert_str_eq(r->spans[2].exception, "no disk");
    world_free(&w);
}

Test(timeline, closes_a_creation_without_enough_slots_as_failed) /* [S-TML-10] */
{
    struct world w = world_new((struct world_spec){0});

    world_start(&w);
    world_to(&w, 300000);
    expect_record(&w, 0, PLIANT_TRIGGER_INITIAL_SCHEDULE, PLIANT_RESCALE_EXCEPTION_OCCURRED);
    world_free(&w);
}

Test(timeline, follows_a_creation_that_is_tried_again) /* [S-TML-10, S-TML-6] */
{
    struct world w = world_new((struct world_spec){
        .options = {"jobmanager.adaptive-scheduler.retry-execution-graph-creation."
                    "restart-strategy.type",
                    "fixed-delay"}});

    w.reserves = false;
    world_start(&w);
    world_node(&w, "n1", 4);
    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    cr_assert_eq(pliant_state(w.s), PLIANT_RETRYING_EXECUTION_GRAPH_CREATION);
    expect_record(&w, 1, PLIANT_TRIGGER_INITIAL_SCHEDULE, PLIANT_RESCALE_EXCEPTION_OCCURRED);
    expect_record(&w, 0, PLIANT_TRIGGER_RECOVERABLE_FAILOVER, PLIANT_RESCALE_OPEN);
    world_to(&w, 1000);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    expect_record(&w, 0, PLIANT_TRIGGER_RECOVERABLE_FAILOVER, PLIANT_RESCALE_SUCCEEDED);
    world_free(&w);
}

Test(timeline, stays_empty_when_it_is_off) /* [S-TML-15] */
{
    static const char *const sizes[] = {"0", "-3"};

    for (int i = 0; i < 2; i++) {
        struct world w = world_running(
            (struct world_spec){.options = {"web.adaptive-scheduler.rescale-history.size", sizes[i],
                                            EXECUTING_COOLDOWN, "0 s", "restart-strategy.type",
                                            "fixed-delay"}},
            2);
        struct pliant_rescale_summary summary;

        world_node(&w, "n2", 2);
        world_bounds(&w, 1, 3);
        world_fail(&w, true);
        world_plain(&w, PLIANT_EV_CANCEL);
        cr_assert_null(pliant_rescale_at(w.s, 0));
        pliant_rescale_summary(w.s, &summary);
        cr_assert_eq(summary.opened, 0);
        world_free(&w);
    }
}

Test(timeline, tells_the_host_of_each_begin_and_end) /* [S-TML-19] */
{
    struct world w = running(4);
    const struct pliant_action *opened, *closed;

    w.cancels = false;
    world_bounds(&w, 1, 3);
    world_bounds(&w, 1, 2);
    closed = world_action(&w, PLIANT_ACT_RESCALE_CLOSED, 0);
    opened = world_action(&w, PLIANT_ACT_RESCALE_OPENED, 0);
    cr_assert_eq(closed->rescale.record, pliant_rescale_at(w.s, 1));
    cr_assert_eq(opened->rescale.record, pliant_rescale_at(w.s, 0));
    world_free(&w);
}

/* Everything that the views show can be had from the public functions. */
Test(timeline, has_all_that_the_views_show) /* [S-TML-18, S-TML-19] */
{
    struct world w = running(2);
    struct pliant_rescale_summary summary;
    const struct pliant_rescale *r;

    world_to(&w, 11000);
    world_bounds(&w, 3, 4); /* ignored */
    world_to(&w, 12000);
    world_node(&w, "n2", 2); /* completed */
    world_to(&w, 13000);
    w.cancels = false;
    world_fail(&w, true); /* in progress */

    /* overview */
    pliant_rescale_summary(w.s, &summary);
    cr_assert_eq(summary.opened, 4);
    cr_assert_eq(summary.in_progress, 1);
    cr_assert_eq(summary.all.count, 3);
    cr_assert_eq(summary.of[PLIANT_TERMINAL_COMPLETED].count, 2);
    cr_assert_eq(summary.of[PLIANT_TERMINAL_IGNORED].count, 1);
    cr_assert_eq(summary.of[PLIANT_TERMINAL_FAILED].count, 0);
    cr_assert_eq(pliant_rescale_last(w.s, PLIANT_TERMINAL_COMPLETED), pliant_rescale_at(w.s, 1));
    cr_assert_eq(pliant_rescale_last(w.s, PLIANT_TERMINAL_IGNORED), pliant_rescale_at(w.s, 2));
    cr_assert_null(pliant_rescale_last(w.s, PLIANT_TERMINAL_FAILED));
    cr_assert_null(pliant_rescale_last(w.s, PLIANT_TERMINAL_NONE));
    cr_assert_null(pliant_rescale_last(w.s, PLIANT_TERMINALS));

    /* history, newest first, and details */
    for (size_t i = 0; i < 4; i++) {
        r = pliant_rescale_at(w.s, i);
        cr_assert_not_null(r);
        cr_assert_not_null(r->vertices);
        cr_assert_not_null(r->groups);
        cr_assert(r->end == PLIANT_RESCALE_OPEN ? r->end_at_ms == 0
                                                : r->end_at_ms >= r->start_at_ms);
        cr_assert(i == 0 || r->start_at_ms <= pliant_rescale_at(w.s, i - 1)->start_at_ms);
    }
    cr_assert_null(pliant_rescale_at(w.s, 4));
    cr_assert_null(pliant_rescale_at(w.s, SIZE_MAX));
    world_free(&w);
}

Test(timeline, names_the_configuration_of_its_view) /* [S-TML-19] */
{
    static const char *const keys[] = {
        "scheduler-mode",
        "jobmanager.adaptive-scheduler.submission.resource-wait-timeout",
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout",
        "slot.idle.timeout",
        EXECUTING_COOLDOWN,
        "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout",
        "jobmanager.adaptive-scheduler.rescale-trigger.max-checkpoint-failures",
        "jobmanager.adaptive-scheduler.rescale-trigger.max-delay",
        "web.adaptive-scheduler.rescale-history.size",
    };
    struct pliant_config cfg;
    char text[64];

    pliant_config_init(&cfg);
    cr_assert_eq(pliant_config_resolve(&cfg, NULL), 0);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        cr_assert_geq(pliant_config_get(&cfg, keys[i], text, sizeof text), 0, "%s", keys[i]);
}

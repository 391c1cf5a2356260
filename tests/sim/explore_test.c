/* explore_test.c - random runs hold the invariants, repeat, and shrink when they do not */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/explore.h"
#include "sim/replay.h"

static void expect_nothing(const struct explore_result *result)
{
    cr_assert(!result->bad, "seed %llu, step %u: %s: %s; see %s", (unsigned long long)result->seed,
              result->step, result->rule, result->detail, result->path);
}

Test(explore, finds_nothing)
{
    struct explore_result result;

    cr_assert_eq(explore(&(struct explore_options){.seed = 1, .runs = 40, .steps = 400}, &result),
                 0);
    expect_nothing(&result);
    cr_expect_eq(result.runs, 40u);
    cr_expect_gt(result.steps, 4000u);
}

Test(explore, the_same_seed_gives_the_same_actions)
{
    const struct explore_options options = {.seed = 1234, .runs = 10, .steps = 300};
    struct explore_result first, again, other;

    cr_assert_eq(explore(&options, &first), 0);
    cr_assert_eq(explore(&options, &again), 0);
    cr_assert_eq(explore(&(struct explore_options){.seed = 4321, .runs = 10, .steps = 300}, &other),
                 0);
    cr_expect_eq(first.hash, again.hash);
    cr_expect_eq(first.steps, again.steps);
    cr_expect_neq(first.hash, other.hash);
}

static const char *never_restarts(void *ctx, const struct pliant_sched *sched)
{
    (void)ctx;
    return pliant_state(sched) == PLIANT_RESTARTING ? "it never restarts" : NULL;
}

Test(explore, makes_a_bad_run_small_and_records_it)
{
    char dir[] = "/tmp/pliant-explore-XXXXXX";
    struct explore_result result;
    struct recording *rec;
    struct replay_result replayed;
    struct spec_error err;

    cr_assert_not_null(mkdtemp(dir));
    cr_assert_eq(explore(
                     &(struct explore_options){
                         .seed = 1, .runs = 100, .steps = 1000, .dir = dir, .rule = never_restarts},
                     &result),
                 0);
    cr_assert(result.bad);
    cr_expect_str_eq(result.rule, "it never restarts");
    cr_expect_leq(result.events_left, 8u, "%zu events left of %zu", result.events_left,
                  result.events);

    cr_assert_eq(recording_open(result.path, &rec, &err), 0, "%s", err.text);
    cr_assert_eq(replay(rec, &replayed, &err), 0, "%s", err.text);
    cr_expect(replayed.same, "recorded %s\nreplayed %s", replayed.recorded, replayed.replayed);
    cr_expect_geq(replayed.steps, 2u);
    replay_free(&replayed);
    recording_close(&rec);
    unlink(result.path);
    rmdir(dir);
}

static const char *always(void *ctx, const struct pliant_sched *sched)
{
    (void)ctx, (void)sched;
    return "nothing is right";
}

Test(explore, tells_when_the_recording_cannot_be_written)
{
    struct explore_result result;
    int r = explore(
        &(struct explore_options){
            .seed = 1, .runs = 1, .steps = 10, .dir = "/nowhere/at/all", .rule = always},
        &result);

    cr_expect_lt(r, 0);
    cr_expect(result.bad);
    cr_expect_eq(result.step, 0u);
}

/* bound_test.c - the clairvoyant bound, against all that could be tried */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <inttypes.h>
#include <math.h>

#include "sim/bound.h"
#include "util/prng.h"

#define STEPS 7
#define SLOTS 4

/* speed[p] = p for p slots */
static const double linear[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

static double find(const struct bound_step *steps, size_t n, int64_t end_ms, int64_t restart_ms,
                   uint32_t max_slots, struct bound_runs *runs)
{
    double work = -1;
    int r = bound_find(&(struct bound_problem){.steps = steps,
                                               .n_steps = n,
                                               .end_ms = end_ms,
                                               .restart_ms = restart_ms,
                                               .speed = linear,
                                               .n_speeds = max_slots + 1},
                       &work, runs);

    cr_assert_eq(r, 0);
    return work;
}

Test(bound, follows_simple_traces)
{
    static const struct {
        const char *what;
        struct bound_step steps[4];
        size_t n;
        int64_t end_ms, restart_ms;
        double work;
    } rows[] = {
        {"nothing ever comes", {{0, 0}}, 1, 1000, 10, 0},
        {"no step at all", {{0, 0}}, 0, 1000, 10, 0},
        {"the first start costs too", {{0, 4}}, 1, 1000, 10, 4 * 990},
        {"it starts when the slots come", {{0, 0}, {100, 2}}, 2, 1000, 10, 2 * 890},
        {"no time to start", {{0, 0}, {995, 2}}, 2, 1000, 10, 0},
        {"an upscale that pays", {{0, 2}, {500, 4}}, 2, 1000, 10, 2 * 490 + 4 * 490},
        {"one that does not", {{0, 4}, {500, 5}}, 2, 1000, 200, 4 * 800},
        {"a loss that it has to follow", {{0, 4}, {500, 3}}, 2, 1000, 10, 4 * 490 + 3 * 490},
        {"fewer from the start", {{0, 4}, {500, 3}}, 2, 1000, 400, 3 * 600},
        {"a restart that goes on over a change", {{0, 0}, {90, 4}, {95, 5}}, 3, 1000, 10, 5 * 895},
        {"no more than the job can use", {{0, 100}}, 1, 1000, 0, 8 * 1000},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_float_eq(
            find(rows[i].steps, rows[i].n, rows[i].end_ms, rows[i].restart_ms, 8, NULL),
            rows[i].work, 0, "%s", rows[i].what);
}

/* ---- all that could be tried ---------------------------------------------------------------- */

struct instance {
    struct bound_step steps[STEPS];
    size_t n;
    int64_t end_ms, restart_ms;
    double speed[SLOTS + 1];
};

/* As the rules are worded: at each change keep, restart with any number, or run nothing. */
static double try_all(const struct instance *in, size_t i, uint32_t p, int64_t ready_ms)
{
    int64_t from_ms, to_ms;
    double best = 0;

    if (i == in->n)
        return 0;
    from_ms = in->steps[i].at_ms;
    to_ms = i + 1 < in->n ? in->steps[i + 1].at_ms : in->end_ms;
    for (int choice = -1; choice <= SLOTS; choice++) {
        bool keep = choice < 0;
        uint32_t slots = keep ? p : (uint32_t)choice;
        int64_t ready = keep ? ready_ms : from_ms + in->restart_ms, at = ready;
        double work;

        if (slots > in->steps[i].offered)
            continue;
        at = at > from_ms ? at : from_ms;
        work = at < to_ms ? in->speed[slots] * (double)(to_ms - at) : 0;
        work += try_all(in, i + 1, slots, ready);
        best = work > best ? work : best;
    }
    return best;
}

static struct instance draw(struct prng *prng)
{
    struct instance in = {.n = 1 + prng_below(prng, STEPS - 1)};
    int64_t at_ms = 0;

    for (size_t i = 0; i < in.n; i++) {
        in.steps[i] = (struct bound_step){at_ms, prng_below(prng, SLOTS + 3)};
        at_ms += 1 + (int64_t)prng_below(prng, 40);
    }
    in.end_ms = at_ms;
    in.restart_ms = (int64_t)prng_below(prng, 50);
    for (uint32_t p = 1; p <= SLOTS; p++) /* neither linear nor ascending */
        in.speed[p] = (double)prng_below(prng, 6);
    return in;
}

/* The runs must be possible, and do what is said. */
static double replay(const struct instance *in, const struct bound_runs *runs)
{
    double work = 0;
    int64_t free_ms = 0;

    for (size_t k = 0; k < runs->n; k++) {
        const struct bound_run *run = &runs->v[k];
        int64_t ready_ms = run->from_ms + in->restart_ms;

        cr_assert_leq(free_ms, run->from_ms);
        cr_assert_lt(run->from_ms, run->to_ms);
        for (size_t i = 0; i < in->n; i++) {
            int64_t until_ms = i + 1 < in->n ? in->steps[i + 1].at_ms : in->end_ms;

            if (in->steps[i].at_ms < run->to_ms && until_ms > run->from_ms)
                cr_assert_geq(in->steps[i].offered, run->slots);
        }
        if (ready_ms < run->to_ms)
            work += in->speed[run->slots] * (double)(run->to_ms - ready_ms);
        free_ms = run->to_ms;
    }
    return work;
}

Test(bound, is_the_best_of_all_that_could_be_tried)
{
    struct prng prng = {42};

    for (int k = 0; k < 400; k++) {
        struct instance in = draw(&prng);
        struct bound_runs runs = {0};
        double work;

        cr_assert_eq(bound_find(&(struct bound_problem){.steps = in.steps,
                                                        .n_steps = in.n,
                                                        .end_ms = in.end_ms,
                                                        .restart_ms = in.restart_ms,
                                                        .speed = in.speed,
                                                        .n_speeds = SLOTS + 1},
                                &work, &runs),
                     0);
        cr_assert_float_eq(work, try_all(&in, 0, 0, 0), 0, "instance %d", k);
        cr_assert_float_eq(replay(&in, &runs), work, 0, "instance %d", k);
        bound_runs_free(&runs);
    }
}

Test(bound, takes_ten_thousand_changes_and_a_thousand_slots)
{
    enum { CHANGES = 10000, MANY = 1000 };
    static struct bound_step steps[CHANGES];
    static double speed[MANY + 1];
    struct prng prng = {1};
    struct bound_runs runs = {0};
    double work;

    for (size_t i = 0; i < CHANGES; i++)
        steps[i] = (struct bound_step){(int64_t)i * 60000, prng_below(&prng, MANY + 1)};
    for (size_t p = 0; p <= MANY; p++)
        speed[p] = (double)p;
    cr_assert_eq(bound_find(&(struct bound_problem){.steps = steps,
                                                    .n_steps = CHANGES,
                                                    .end_ms = CHANGES * INT64_C(60000),
                                                    .restart_ms = 30000,
                                                    .speed = speed,
                                                    .n_speeds = MANY + 1},
                            &work, &runs),
                 0);
    cr_expect_gt(work, 0);
    cr_expect_gt(runs.n, 1000u);
    bound_runs_free(&runs);
}

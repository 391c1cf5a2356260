/* bound.c - see bound.h
 *
 * A scheduler's whole life is a row of runs that don't overlap: run (i, j, p) starts at change i
 * with p slots, ends at change j (or at the end, which is the last change here), needs p slots to
 * be offered from i to j, and does speed(p) x max(0, t_j - t_i - R). A restart that is not over
 * when the next change comes is simply a run that goes on: what remains of R is carried along by
 * t_i. So with best(j), the most that can be done until change j,
 *
 *     best(j) = max( best(j - 1),  max over i < j and p of
 *                    best(i) + speed(p) x (t_j - t_i - R)   where p was offered from i to j )
 *
 * The max(0, ...) may go: a run that would count below 0 is beaten by doing nothing, since best
 * never falls. Then t_j leaves the inner maximum: for every p only
 *
 *     head(p) = max over i of  best(i) - speed(p) x (t_i + R)    where p was offered since i
 *
 * is to be kept, one number, updated at each change, and back at minus infinity when fewer than p
 * are offered:  best(j) = max( best(j - 1), max over p of  head(p) + speed(p) x t_j ).
 *
 * With times in whole ms and whole speeds all sums are exact below 2^53.
 */
#include "sim/bound.h"

#include <errno.h>
#include <math.h>

#define NOTHING SIZE_MAX

/* The best way to have come to a change. */
struct arrival {
    double best;
    size_t from; /* the change at which the run began that ends here; NOTHING: none ends here */
    uint32_t slots;
};

/* The best run with p slots that goes on. */
struct head {
    double value;
    size_t from;
};

static uint32_t usable(const struct bound_problem *p, uint64_t offered)
{
    return offered < p->n_speeds ? (uint32_t)offered : p->n_speeds - 1;
}

static int64_t instant(const struct bound_problem *p, size_t i)
{
    return i < p->n_steps ? p->steps[i].at_ms : p->end_ms;
}

/* Come to change j > 0; heads[0..offered] go on. */
static struct arrival arrive(const struct bound_problem *p, const struct head *heads,
                             uint32_t offered, size_t j, double before)
{
    struct arrival a = {.best = before, .from = NOTHING};
    double t = (double)instant(p, j);

    for (uint32_t c = 1; c <= offered; c++) {
        double work = heads[c].value + p->speed[c] * t;

        if (work > a.best)
            a = (struct arrival){.best = work, .from = heads[c].from, .slots = c};
    }
    return a;
}

/* From change i on `now` slots are offered, where it was `was`. */
static void go_on(const struct bound_problem *p, struct head *heads, uint32_t was, uint32_t now,
                  size_t i, double best)
{
    double ready = (double)p->steps[i].at_ms + (double)p->restart_ms;

    for (uint32_t c = now + 1; c <= was; c++)
        heads[c].value = -INFINITY;
    for (uint32_t c = 1; c <= now; c++) {
        double value = best - p->speed[c] * ready;

        if (p->speed[c] > 0 && value > heads[c].value)
            heads[c] = (struct head){.value = value, .from = i};
    }
}

static void solve(const struct bound_problem *p, struct head *heads, struct arrival *arrivals)
{
    uint32_t offered = 0;

    for (uint32_t c = 0; c < p->n_speeds; c++)
        heads[c].value = -INFINITY;
    arrivals[0] = (struct arrival){.from = NOTHING};
    for (size_t i = 0; i < p->n_steps; i++) {
        uint32_t now = usable(p, p->steps[i].offered);

        go_on(p, heads, offered, now, i, arrivals[i].best);
        offered = now;
        arrivals[i + 1] = arrive(p, heads, offered, i + 1, arrivals[i].best);
    }
}

/* From the end back to the beginning, then turned round. */
static int trace_back(const struct bound_problem *p, const struct arrival *arrivals,
                      struct bound_runs *runs)
{
    for (size_t j = p->n_steps; j > 0;) {
        const struct arrival *a = &arrivals[j];
        struct bound_run *run;

        if (a->from == NOTHING) {
            j--;
            continue;
        }
        run = vec_push(NULL, runs);
        if (!run)
            return -ENOMEM;
        *run = (struct bound_run){instant(p, a->from), instant(p, j), a->slots};
        j = a->from;
    }
    for (size_t i = 0; i < runs->n / 2; i++) {
        struct bound_run run = runs->v[i];

        runs->v[i] = runs->v[runs->n - 1 - i];
        runs->v[runs->n - 1 - i] = run;
    }
    return 0;
}

int bound_find(const struct bound_problem *problem, double *ret_work, struct bound_runs *ret_runs)
{
    struct head *heads = mem_zero(NULL, problem->n_speeds, sizeof *heads);
    struct arrival *arrivals = mem_zero(NULL, problem->n_steps + 1, sizeof *arrivals);
    struct bound_runs runs = {0};
    int r = heads && arrivals ? 0 : -ENOMEM;

    if (!r) {
        solve(problem, heads, arrivals);
        r = ret_runs ? trace_back(problem, arrivals, &runs) : 0;
    }
    if (!r) {
        *ret_work = arrivals[problem->n_steps].best;
        if (ret_runs)
            *ret_runs = runs;
    } else {
        bound_runs_free(&runs);
    }
    mem_free(NULL, heads);
    mem_free(NULL, arrivals);
    return r;
}

void bound_runs_free(struct bound_runs *runs)
{
    vec_free(NULL, runs);
}

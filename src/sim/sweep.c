/* sweep.c - see sweep.h */
#include "sim/sweep.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/duration.h"

#define N(array) (sizeof(array) / sizeof *(array))
#define S INT64_C(1000)
#define MIN (60 * S)
#define GRID 8
#define PASSES 5
#define GAIN 1e-4 /* of the bound: less is no reason for another value */
#define ADAPTIVE "jobmanager.adaptive-scheduler."

/* clang-format off */
static const struct searched {
    const char *key;
    bool truth; /* true or false; else a duration */
    int64_t grid[GRID];
    size_t n;
} searched[SWEEP_OPTIONS] = {
    [SWEEP_INTERVAL] = {"execution.checkpointing.interval", false,
                        {10 * S, 20 * S, 30 * S, MIN, 2 * MIN, 5 * MIN, 10 * MIN, 30 * MIN}, 8},
    [SWEEP_COOLDOWN] = {ADAPTIVE "executing.cooldown-after-rescaling", false,
                        {0, 10 * S, 30 * S, MIN, 2 * MIN, 5 * MIN, 10 * MIN}, 7},
    [SWEEP_STABILIZATION] = {ADAPTIVE "executing.resource-stabilization-timeout", false,
                             {0, 10 * S, 30 * S, MIN, 2 * MIN, 5 * MIN}, 6},
    [SWEEP_MAX_DELAY] = {ADAPTIVE "rescale-trigger.max-delay", false,
                         {0, 10 * S, MIN, 5 * MIN, 30 * MIN}, 5},
    [SWEEP_ACTIVE_CHECKPOINT] = {ADAPTIVE "rescale-trigger.active-checkpoint.enabled", true,
                                 {0, 1}, 2},
    [SWEEP_MIN_INTERVAL] = {"pliant.checkpoint.min-interval", false, {10 * S, 30 * S, MIN}, 3},
    [SWEEP_MAX_INTERVAL] = {"pliant.checkpoint.max-interval", false,
                            {30 * S, MIN, 2 * MIN, 5 * MIN, 10 * MIN}, 5},
};

/* Where the search begins, and what is searched from there. */
static const struct start {
    const char *policy;
    unsigned options; /* bits */
} starts[SWEEP_STARTS] = {
    {"flink", 1u << SWEEP_INTERVAL | 1u << SWEEP_COOLDOWN | 1u << SWEEP_STABILIZATION |
                  1u << SWEEP_MAX_DELAY | 1u << SWEEP_ACTIVE_CHECKPOINT},
    {"immediate", 1u << SWEEP_INTERVAL},
    {"worth", 1u << SWEEP_COOLDOWN | 1u << SWEEP_MIN_INTERVAL | 1u << SWEEP_MAX_INTERVAL},
};
/* clang-format on */

/* Percent of a checkpoint interval. Many traces know whole minutes only; an interval that happens
 * to fit them would win, so each set of options is measured with intervals around its own. */
static const int around[SWEEP_RUNS] = {80, 90, 100, 110, 120};
static const enum sweep_option intervals[] = {SWEEP_INTERVAL, SWEEP_MIN_INTERVAL,
                                              SWEEP_MAX_INTERVAL};

struct search {
    const struct compare *base;
    struct compare_cost *costs; /* [base->n_costs], scratch */
    struct spec_error *err;
    size_t tried;
    unsigned fixed, options;    /* bits: by -D; that are searched */
    struct sweep_point present; /* the best so far, from this start */
};

static int64_t part_of(int64_t ms, int percent)
{
    int64_t part = ms / 100 * percent + ms % 100 * percent / 100;

    return part > 0 ? part : 1;
}

/* ---- points ------------------------------------------------------------------------------- */

struct compare_policy sweep_policy(const struct sweep_point *point, struct sweep_texts *buf)
{
    struct compare_policy policy = *point->policy;
    size_t n = 0;

    while (policy.settings[n].key)
        n++;
    for (int i = 0; i < SWEEP_OPTIONS; i++) {
        int64_t value = point->values[i];

        if (value == PLIANT_UNSET)
            continue;
        if (searched[i].truth)
            snprintf(buf->v[i], sizeof buf->v[i], "%s", value ? "true" : "false");
        else
            duration_format(value, buf->v[i]);
        policy.settings[n++] = (struct compare_setting){searched[i].key, buf->v[i]};
    }
    return policy;
}

static struct sweep_point start_at(const struct compare_policy *policy)
{
    struct sweep_point point = {.policy = policy};

    for (int i = 0; i < SWEEP_OPTIONS; i++)
        point.values[i] = PLIANT_UNSET;
    return point;
}

/* The k-th policy of a batch came to this; the batch is one of N(around). */
static void rate(const struct compare *c, size_t k, struct sweep_point *point)
{
    size_t n_cells = c->n_tapes * c->n_costs;

    for (size_t cell = 0; cell < n_cells; cell++) {
        const struct compare_result *r = &c->results[cell * c->n_policies + k];

        point->share += compare_ratio(r->work, c->bounds[cell]) / (double)(n_cells * N(around));
        point->sum.work += r->work;
        point->sum.lost += r->lost;
        point->sum.restarts += r->restarts;
        point->sum.forced += r->forced;
    }
}

/* All points, with checkpoint intervals of so many percent. */
static int try_around(struct search *s, struct sweep_point *points, size_t n, int percent)
{
    struct compare_policy policies[GRID];
    struct sweep_texts texts[GRID];
    struct compare c = *s->base;
    int r;

    for (size_t i = 0; i < c.n_costs; i++) {
        s->costs[i] = s->base->costs[i];
        s->costs[i].interval_ms = part_of(s->costs[i].interval_ms, percent);
    }
    for (size_t i = 0; i < n; i++) {
        struct sweep_point point = points[i];

        for (size_t k = 0; k < N(intervals); k++)
            if (point.values[intervals[k]] != PLIANT_UNSET)
                point.values[intervals[k]] = part_of(point.values[intervals[k]], percent);
        policies[i] = sweep_policy(&point, &texts[i]);
    }
    c.costs = s->costs;
    c.progress = NULL;
    c.policies = policies;
    c.n_policies = n;
    r = compare_run(&c, s->err);
    for (size_t i = 0; !r && i < n; i++)
        rate(&c, i, &points[i]);
    compare_free(&c);
    return r;
}

static int try_points(struct search *s, struct sweep_point *points, size_t n)
{
    int r = 0;

    for (size_t i = 0; i < n; i++) {
        points[i].share = 0;
        points[i].sum = (struct compare_result){0};
    }
    for (size_t k = 0; !r && k < N(around); k++)
        r = try_around(s, points, n, around[k]);
    s->tried += n;
    if (s->base->progress)
        s->base->progress(s->base->progress_ctx, s->tried);
    return r;
}

/* ---- the search --------------------------------------------------------------------------- */

/* Is the shortest interval no longer than the longest, which is 1 h by default? */
static bool in_order(const struct sweep_point *point)
{
    int64_t min = point->values[SWEEP_MIN_INTERVAL], max = point->values[SWEEP_MAX_INTERVAL];

    return min == PLIANT_UNSET || min <= (max == PLIANT_UNSET ? 30 * MIN : max);
}

/* Move one option to the best of some values, if that gains something. */
static int improve(struct search *s, int option, const int64_t *values, size_t n, bool *ret_moved)
{
    struct sweep_point points[GRID];
    size_t n_points = 0;
    int r;

    for (size_t i = 0; i < n; i++) {
        points[n_points] = s->present;
        points[n_points].values[option] = values[i];
        n_points += in_order(&points[n_points]);
    }
    r = n_points > 0 ? try_points(s, points, n_points) : 0;
    for (size_t i = 0; !r && i < n_points; i++) {
        if (points[i].share <= s->present.share + GAIN)
            continue;
        s->present = points[i];
        *ret_moved = true;
    }
    return r;
}

/* Values around one: in whole seconds, a second apart at least. */
static size_t near(int64_t value, int64_t *ret)
{
    static const int percent[] = {50, 70, 85, 120, 140, 200};
    size_t n = 0;

    for (size_t i = 0; i < N(percent); i++) {
        int64_t v = part_of(value, percent[i]) / S * S;

        if (v >= S && v != value && (n == 0 || ret[n - 1] != v))
            ret[n++] = v;
    }
    return n;
}

/* One pass over all options; `fine`: near the present values, else over the grid. */
static int pass(struct search *s, bool fine, bool *ret_moved)
{
    int r = 0;

    for (int i = 0; !r && i < SWEEP_OPTIONS; i++) {
        int64_t values[GRID];
        size_t n = searched[i].n;

        if (!(s->options >> i & 1) ||
            (fine && (searched[i].truth || s->present.values[i] == PLIANT_UNSET)))
            continue;
        memcpy(values, searched[i].grid, sizeof values);
        if (fine)
            n = near(s->present.values[i], values);
        if (n > 0)
            r = improve(s, i, values, n, ret_moved);
    }
    return r;
}

static int search(struct search *s)
{
    int r = 0;

    for (int fine = 0; !r && fine < 2; fine++) {
        bool moved = true;

        for (int i = 0; !r && moved && i < PASSES; i++) {
            moved = false;
            r = pass(s, fine, &moved);
        }
    }
    return r;
}

static const struct compare_policy *policy_named(const char *name)
{
    struct spec_error err;

    for (size_t i = 0; i < compare_n_policies; i++)
        if (strcmp(compare_policies[i].name, name) == 0)
            return compare_policy_check(&compare_policies[i], &err) == 0 ? &compare_policies[i]
                                                                         : NULL;
    return NULL;
}

/* What a start says, -D must not. */
static int refuse_defined(struct search *s)
{
    static const char *const keys[] = {"pliant.rescale.policy", "pliant.checkpoint.interval",
                                       "scheduler-mode"};
    bool defined = false;
    size_t i;
    int r = 0;

    for (i = 0; !r && !defined && i < N(keys); i++)
        r = compare_defines(s->base, keys[i], &defined, s->err);
    if (!r && defined) {
        snprintf(s->err->text, sizeof s->err->text,
                 "-D: %s: sweep searches it; 'pliant-sim compare' tells what one choice comes to",
                 keys[i - 1]);
        r = -EINVAL;
    }
    return r;
}

static int find_fixed(struct search *s)
{
    unsigned limits = 1u << SWEEP_MIN_INTERVAL | 1u << SWEEP_MAX_INTERVAL;
    int r = 0;

    for (int i = 0; !r && i < SWEEP_OPTIONS; i++) {
        bool defined;

        r = compare_defines(s->base, searched[i].key, &defined, s->err);
        s->fixed |= !r && defined ? 1u << i : 0;
    }
    if (s->fixed & limits)
        s->fixed |= limits; /* so that they stay in order */
    return r;
}

static int search_all(struct search *s, struct sweep *found)
{
    int r = compare_find_own(s->base, &found->set, s->err);

    if (!r) {
        found->own.values[SWEEP_INTERVAL] = found->set.interval_ms;
        r = try_points(s, &found->own, 1);
    }
    for (size_t i = 0; !r && i < N(starts); i++) {
        const struct compare_policy *policy = policy_named(starts[i].policy);
        struct sweep_point *start = &found->starts[found->n_starts];

        if (!policy)
            continue;
        *start = start_at(policy);
        r = try_points(s, start, 1);
        s->options = starts[i].options & ~s->fixed;
        s->present = *start;
        r = r ? r : search(s);
        if (!r && (found->n_starts++ == 0 || s->present.share > found->best.share))
            found->best = s->present;
    }
    found->tried = s->tried;
    return r;
}

int sweep(const struct compare *base, struct sweep *ret, struct spec_error *err)
{
    struct search s = {.base = base, .err = err};
    struct sweep found = {.own = start_at(policy_named("own"))};
    int r;

    s.costs = mem_zero(NULL, base->n_costs, sizeof *s.costs);
    r = s.costs ? refuse_defined(&s) : -ENOMEM;
    r = r ? r : find_fixed(&s);
    r = r ? r : search_all(&s, &found);
    mem_free(NULL, s.costs);
    if (!r)
        *ret = found;
    return r;
}

/* backoff.c - vectors backoff: scripts for the restart strategies
 *
 * Rows of `expect` are exact. Rows of `expect_bounds` (with jitter) are run with many seeds:
 * no back-off may leave its bounds, and all of them together must come near to both ends.
 */
#include "vectors.h"

#include <inttypes.h>
#include <string.h>

#include "failover/restart_strategy.h"

enum { SEEDS = 4000, MAX_ROWS = 64 };

/* What came out of one seed at one row. */
struct row {
    int new_attempt; /* -1: only asked */
    bool can_restart;
    int64_t backoff_ms;
};

struct script {
    struct pliant_restart_config cfg;
    const cJSON *events;
    const cJSON *rows;
    bool bounds; /* rows are [new, can, lowest, highest], else [new, can, back-off] */
    struct {
        int64_t lowest_ms, highest_ms;
    } seen[MAX_ROWS]; /* over all seeds */
    char *why;
    size_t size;
};

static enum pliant_restart_kind read_kind(const char *name)
{
    if (strcmp(name, "fixed-delay") == 0)
        return PLIANT_RESTART_FIXED_DELAY;
    if (strcmp(name, "failure-rate") == 0)
        return PLIANT_RESTART_FAILURE_RATE;
    return strcmp(name, "exponential-delay") == 0 ? PLIANT_RESTART_EXPONENTIAL_DELAY
                                                  : PLIANT_RESTART_NONE;
}

static struct pliant_restart_config read_config(enum pliant_restart_kind kind, const cJSON *c)
{
    struct pliant_restart_config cfg = {.kind = kind};

    switch (kind) {
    case PLIANT_RESTART_UNSET:
    case PLIANT_RESTART_NONE:
        break;
    case PLIANT_RESTART_FIXED_DELAY:
        cfg.fixed.attempts = vectors_int(c, "attempts");
        cfg.fixed.delay_ms = vectors_int(c, "delay_ms");
        break;
    case PLIANT_RESTART_FAILURE_RATE:
        cfg.rate.max_failures = vectors_int(c, "max_failures_per_interval");
        cfg.rate.interval_ms = vectors_int(c, "failure_rate_interval_ms");
        cfg.rate.delay_ms = vectors_int(c, "delay_ms");
        break;
    case PLIANT_RESTART_EXPONENTIAL_DELAY:
        cfg.exponential.initial_ms = vectors_int(c, "initial_backoff_ms");
        cfg.exponential.max_ms = vectors_int(c, "max_backoff_ms");
        cfg.exponential.multiplier = vectors_double(c, "backoff_multiplier");
        cfg.exponential.reset_ms = vectors_int(c, "reset_backoff_threshold_ms");
        cfg.exponential.jitter = vectors_double(c, "jitter_factor");
        cfg.exponential.attempts = vectors_int(c, "attempts_before_reset_backoff");
        break;
    }
    return cfg;
}

static int64_t number(const cJSON *row, int i)
{
    return vectors_integer(cJSON_GetArrayItem(row, i)->valuedouble);
}

static int truth(const cJSON *row, int i)
{
    const cJSON *item = cJSON_GetArrayItem(row, i);

    return cJSON_IsNull(item) ? -1 : cJSON_IsTrue(item);
}

static bool row_holds(const struct script *s, const cJSON *want, const struct row *got)
{
    int64_t low = number(want, 2), high = s->bounds ? number(want, 3) : low;

    return got->new_attempt == truth(want, 0) && got->can_restart == truth(want, 1) &&
           got->backoff_ms >= low && got->backoff_ms <= high;
}

static void see(struct script *s, size_t i, int64_t backoff_ms)
{
    if (backoff_ms < s->seen[i].lowest_ms)
        s->seen[i].lowest_ms = backoff_ms;
    if (backoff_ms > s->seen[i].highest_ms)
        s->seen[i].highest_ms = backoff_ms;
}

/* Near is a quarter of the width: where the jitter reaches far above the maximum, only one draw in
 * a thousand comes that near to the lowest. */
static int check_spread(const struct script *s)
{
    const cJSON *row = s->rows->child;

    for (size_t i = 0; row; row = row->next, i++) {
        int64_t low = number(row, 2), high = number(row, 3), near = (high - low) / 4;

        if (s->seen[i].lowest_ms > low + near || s->seen[i].highest_ms < high - near)
            return vectors_say(s->why, s->size, "row %zu: only %" PRId64 "..%" PRId64 " came", i,
                               s->seen[i].lowest_ms, s->seen[i].highest_ms);
    }
    return 0;
}

/* 0, or 1 with the difference. */
static int run_event(const struct script *s, struct restart_strategy *r, struct prng *prng,
                     const cJSON *event, struct row *got)
{
    int64_t t = vectors_int(event, "t");
    bool new_attempt;

    got->new_attempt = -1;
    if (strcmp(vectors_text(event, "do"), "fail") == 0) {
        if (restart_strategy_notify(r, NULL, prng, t, &new_attempt) < 0)
            return vectors_say(s->why, s->size, "no memory");
        got->new_attempt = new_attempt;
    }
    got->can_restart = restart_strategy_can_restart(r, t);
    got->backoff_ms = restart_strategy_backoff_ms(r, t);
    return 0;
}

static int run_seed(struct script *s, uint64_t seed)
{
    struct prng prng = {seed};
    struct restart_strategy r;
    const cJSON *event, *want = s->rows->child;
    size_t i = 0;
    int failed = 0;

    if (restart_strategy_init(&r, &s->cfg, NULL) < 0)
        return vectors_say(s->why, s->size, "no memory");
    cJSON_ArrayForEach(event, s->events)
    {
        struct row got = {0};

        failed = run_event(s, &r, &prng, event, &got);
        if (!failed && !(want && row_holds(s, want, &got)))
            failed = vectors_say(
                s->why, s->size, "seed %" PRIu64 ", t %" PRId64 ": new %d, can %d, %" PRId64 " ms",
                seed, vectors_int(event, "t"), got.new_attempt, got.can_restart, got.backoff_ms);
        if (failed)
            break;
        if (s->bounds)
            see(s, i++, got.backoff_ms);
        want = want->next;
    }
    restart_strategy_free(&r, NULL);
    return failed;
}

int run_backoff(const cJSON *line, char *why, size_t size)
{
    const cJSON *bounds = vectors_find(line, "expect_bounds");
    struct script s = {
        .cfg =
            read_config(read_kind(vectors_text(line, "strategy")), vectors_member(line, "config")),
        .events = vectors_member(line, "events"),
        .rows = bounds ? bounds : vectors_member(line, "expect"),
        .bounds = bounds != NULL,
        .why = why,
        .size = size,
    };

    if (bounds && cJSON_GetArraySize(bounds) > MAX_ROWS)
        return vectors_say(why, size, "more than %d rows", MAX_ROWS);
    for (size_t i = 0; i < MAX_ROWS; i++)
        s.seen[i].lowest_ms = INT64_MAX;
    for (uint64_t seed = 1; seed <= (bounds ? SEEDS : 1); seed++)
        if (run_seed(&s, seed))
            return 1;
    return bounds ? check_spread(&s) : 0;
}

/* restart_strategy.c - see restart_strategy.h */
#include "failover/restart_strategy.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "util/deadline.h"

/* Where no number of the options comes near, and adding the jitter stays within 64 bits: the
 * reference adds it to a saturated number, which wraps and drops the back-off to its start. */
#define BACKOFF_CAP_MS 0x1p62

static void count_up(struct restart_strategy *r)
{
    if (r->count < INT64_MAX)
        r->count++;
}

/* ---- failure-rate ----------------------------------------------------------------------- */

/* One failure more than is allowed is kept, so that a full window asks how old its first is. */
static bool window_full(const struct restart_strategy *r)
{
    return r->window_n > r->cfg.rate.max_failures;
}

/* Memory follows the failures seen, not the option. Before the ring is full it begins at 0. */
static int window_grow(struct restart_strategy *r, const struct pliant_alloc *a)
{
    int64_t cap = r->window_cap < 8 ? 8 : r->window_cap + r->window_cap / 2;
    int64_t *grown;

    if (cap > r->cfg.rate.max_failures)
        cap = r->cfg.rate.max_failures + 1;
    grown = mem_resize(a, r->window, (size_t)cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    r->window = grown;
    r->window_cap = cap;
    return 0;
}

static int window_add(struct restart_strategy *r, const struct pliant_alloc *a, int64_t now_ms)
{
    if (window_full(r)) { /* refused failures take their place too */
        r->window[r->window_first] = now_ms;
        r->window_first = (r->window_first + 1) % r->window_n;
        return 0;
    }
    if (r->window_n == r->window_cap && window_grow(r, a) < 0)
        return -ENOMEM;
    r->window[r->window_n++] = now_ms;
    return 0;
}

/* Exactly one interval apart is too near [S-POL-3]. */
static bool window_allows(const struct restart_strategy *r, int64_t now_ms)
{
    return !window_full(r) ||
           now_ms > instant_after(r->window[r->window_first], r->cfg.rate.interval_ms);
}

/* ---- exponential-delay ------------------------------------------------------------------ */

/* Afresh from the number of attempts: multiplying step by step, cut each time, would drift. */
static int64_t power_ms(const struct restart_strategy *r)
{
    double b = (double)r->cfg.exponential.initial_ms *
               pow(r->cfg.exponential.multiplier, (double)r->count);

    return b < BACKOFF_CAP_MS ? (int64_t)b : (int64_t)BACKOFF_CAP_MS;
}

static int64_t draw_delay_ms(const struct restart_strategy *r, struct prng *prng)
{
    uint64_t min = (uint64_t)r->cfg.exponential.initial_ms;
    uint64_t max = (uint64_t)r->cfg.exponential.max_ms;
    uint64_t b = (uint64_t)power_ms(r);
    uint64_t reach = (uint64_t)((double)b * r->cfg.exponential.jitter);

    if (reach > 0) /* an even draw of b - reach .. b + reach [S-POL-5] */
        b = b - reach + prng_below(prng, 2 * reach + 1);
    if (b > max)
        b = max;
    return (int64_t)(b > min ? b : min);
}

/* [S-POL-4] */
static bool count_attempt(struct restart_strategy *r, struct prng *prng, int64_t now_ms)
{
    if (r->count > 0 && now_ms <= r->next_at_ms)
        return false;
    if (r->count > 0 && now_ms >= instant_after(r->next_at_ms, r->cfg.exponential.reset_ms))
        r->count = 0;
    r->next_at_ms = instant_after(now_ms, draw_delay_ms(r, prng));
    count_up(r);
    return true;
}

static int64_t until_ms(int64_t at_ms, int64_t now_ms)
{
    uint64_t gap = (uint64_t)at_ms - (uint64_t)now_ms;

    if (at_ms <= now_ms)
        return 0;
    return gap > INT64_MAX ? INT64_MAX : (int64_t)gap;
}

/* ---- all ---------------------------------------------------------------------------------- */

int restart_strategy_init(struct restart_strategy *r, const struct pliant_restart_config *cfg,
                          const struct pliant_alloc *a)
{
    assert(cfg->kind != PLIANT_RESTART_UNSET); /* resolved by the options [S-POL-6] */
    *r = (struct restart_strategy){.cfg = *cfg, .next_at_ms = PLIANT_NEVER};
    return cfg->kind == PLIANT_RESTART_FAILURE_RATE ? window_grow(r, a) : 0;
}

int restart_strategy_reserve(struct restart_strategy *r, const struct pliant_alloc *a, int64_t n)
{
    int64_t *grown;

    if (n <= r->window_cap)
        return 0;
    grown = mem_resize(a, r->window, (size_t)n, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    r->window = grown;
    r->window_cap = n;
    return 0;
}

void restart_strategy_free(struct restart_strategy *r, const struct pliant_alloc *a)
{
    mem_free(a, r->window);
    *r = (struct restart_strategy){.cfg.kind = PLIANT_RESTART_NONE, .next_at_ms = PLIANT_NEVER};
}

int restart_strategy_notify(struct restart_strategy *r, const struct pliant_alloc *a,
                            struct prng *prng, int64_t now_ms, bool *ret_new_attempt)
{
    int rc = 0;
    bool new_attempt = true;

    switch (r->cfg.kind) {
    case PLIANT_RESTART_UNSET:
    case PLIANT_RESTART_NONE:
        break;
    case PLIANT_RESTART_FIXED_DELAY:
        count_up(r);
        break;
    case PLIANT_RESTART_FAILURE_RATE:
        rc = window_add(r, a, now_ms);
        break;
    case PLIANT_RESTART_EXPONENTIAL_DELAY:
        new_attempt = count_attempt(r, prng, now_ms);
        break;
    }
    if (rc == 0)
        *ret_new_attempt = new_attempt;
    return rc;
}

bool restart_strategy_can_restart(const struct restart_strategy *r, int64_t now_ms)
{
    switch (r->cfg.kind) {
    case PLIANT_RESTART_UNSET:
    case PLIANT_RESTART_NONE: /* [S-POL-1] */
        return false;
    case PLIANT_RESTART_FIXED_DELAY: /* [S-POL-2] */
        return r->count <= r->cfg.fixed.attempts;
    case PLIANT_RESTART_FAILURE_RATE:
        return window_allows(r, now_ms);
    case PLIANT_RESTART_EXPONENTIAL_DELAY:
        return r->count <= r->cfg.exponential.attempts ||
               r->cfg.exponential.attempts >= INT32_MAX; /* no limit */
    }
    return false;
}

int64_t restart_strategy_backoff_ms(const struct restart_strategy *r, int64_t now_ms)
{
    switch (r->cfg.kind) {
    case PLIANT_RESTART_UNSET:
    case PLIANT_RESTART_NONE:
        return 0;
    case PLIANT_RESTART_FIXED_DELAY:
        return r->cfg.fixed.delay_ms;
    case PLIANT_RESTART_FAILURE_RATE:
        return r->cfg.rate.delay_ms;
    case PLIANT_RESTART_EXPONENTIAL_DELAY:
        assert(r->count > 0); /* what is left of it, so a failure must have been seen */
        return until_ms(r->next_at_ms, now_ms);
    }
    return 0;
}

void restart_strategy_text(const struct restart_strategy *r, char text[RESTART_STRATEGY_TEXT])
{
    const struct pliant_restart_config *cfg = &r->cfg;

    switch (cfg->kind) {
    case PLIANT_RESTART_UNSET:
    case PLIANT_RESTART_NONE:
        snprintf(text, RESTART_STRATEGY_TEXT, "restart strategy none");
        return;
    case PLIANT_RESTART_FIXED_DELAY:
        snprintf(text, RESTART_STRATEGY_TEXT, "fixed-delay (attempts %lld, delay %lld ms)",
                 (long long)cfg->fixed.attempts, (long long)cfg->fixed.delay_ms);
        return;
    case PLIANT_RESTART_FAILURE_RATE:
        snprintf(text, RESTART_STRATEGY_TEXT,
                 "failure-rate (%lld failures per %lld ms, delay %lld ms)",
                 (long long)cfg->rate.max_failures, (long long)cfg->rate.interval_ms,
                 (long long)cfg->rate.delay_ms);
        return;
    case PLIANT_RESTART_EXPONENTIAL_DELAY:
        snprintf(text, RESTART_STRATEGY_TEXT, "exponential-delay (attempts %lld of %lld)",
                 (long long)r->count, (long long)cfg->exponential.attempts);
        return;
    }
}

/* worth.c - see worth.h */
#include "transition/worth.h"

#include <assert.h>
#include <string.h>

#include "util/deadline.h"

#define LN2 0.6931471805599453

#define HORIZON_SHARE (2.0 / 3) /* of the mean time between two stops a gain is counted ahead */
#define SETTLE_SHARE 0.05       /* of a restart, after the last arrival */
#define PRIOR_EPISODES 1.0      /* what the priors weigh, in episodes seen */
#define CALM_MS 1200000.0       /* after so long without a change losses are half as likely */
#define MEASURED_SHARE 0.5      /* of the newest measure in an average */
#define NEWEST_SHARE 0.2        /* of the newest in averages of shares */
#define EARLY_FIRST 0.5         /* taken to go early, until nodes under notice went */
#define EPISODE_MS 1000         /* losses within it are one */
#define REGULAR_SHARE 0.25      /* of the mean gap: arrivals no further off than this are regular */
#define AGAIN_MS 60000          /* a cost that exceeds the gain is looked at again */
#define GRID_NEAR_MS 500
#define GRID_KNOWN 0.3 /* less of the losses on a grid may be chance */

/* ---- numbers ---------------------------------------------------------------------------- */

/* 2^-x, near enough; 1 at 0. */
static double halved(double x)
{
    double y = x * LN2;

    return 1 / (1 + y * (1 + y * (0.5 + y / 6)));
}

/* The natural logarithm of b / a, near enough, for 0 < a <= b. */
static double log_of_ratio(double a, double b)
{
    double twos = 0, z, zz;

    for (; b > 2 * a; a *= 2)
        twos++;
    z = (b - a) / (b + a);
    zz = z * z;
    return twos * LN2 + 2 * z * (1 + zz * (1.0 / 3 + zz * (1.0 / 5 + zz / 7)));
}

static double square_root(double x)
{
    double root = x > 1 ? x : 1, next = (root + x / root) / 2;

    if (x <= 0)
        return 0;
    for (; next < root; next = (root + x / root) / 2)
        root = next;
    return root;
}

static int64_t whole(double x)
{
    return x >= (double)(INT64_MAX / 2) ? INT64_MAX / 2 : (int64_t)x;
}

static int64_t average(int64_t before_ms, int64_t took_ms)
{
    if (before_ms == PLIANT_UNSET)
        return took_ms;
    return whole((double)before_ms + MEASURED_SHARE * (double)(took_ms - before_ms));
}

/* ---- what was seen ---------------------------------------------------------------------- */

void worth_start(struct worth *w)
{
    memset(w, 0, sizeof *w);
    w->counted_to_ms = w->forgot_to_ms = w->lost_at_ms = w->arrived_at_ms = PLIANT_UNSET;
    w->changed_at_ms = PLIANT_UNSET;
    w->restart_ms = w->checkpoint_ms = PLIANT_UNSET;
    w->early = EARLY_FIRST;
}

static void forget(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    double keep = w->forgot_to_ms == PLIANT_UNSET
                      ? 1
                      : halved((double)(now_ms - w->forgot_to_ms) / (double)l->memory_ms);

    w->forgot_to_ms = now_ms;
    w->losses *= keep;
    w->stops *= keep;
    w->exposed_ms *= keep;
    w->risk *= keep;
}

static double calm_ms(const struct worth *w, int64_t at_ms)
{
    return w->changed_at_ms == PLIANT_UNSET ? 0 : (double)(at_ms - w->changed_at_ms);
}

static void count(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    forget(w, l, now_ms);
    if (w->counted_to_ms == PLIANT_UNSET)
        return;
    w->exposed_ms += (double)(now_ms - w->counted_to_ms);
    if (w->working)
        w->risk +=
            log_of_ratio(calm_ms(w, w->counted_to_ms) + CALM_MS, calm_ms(w, now_ms) + CALM_MS);
    w->counted_to_ms = now_ms;
}

void worth_changed(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    count(w, l, now_ms);
    w->changed_at_ms = now_ms;
}

void worth_enter(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    count(w, l, now_ms);
    w->counted_to_ms = now_ms;
}

void worth_leave(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    count(w, l, now_ms);
    w->counted_to_ms = PLIANT_UNSET;
    w->working = false;
}

void worth_stopped(struct worth *w, int64_t took_ms)
{
    w->stopping_ms = took_ms;
}

void worth_restarted(struct worth *w, const struct worth_limits *l, int64_t now_ms, int64_t took_ms)
{
    count(w, l, now_ms);
    w->working = true;
    w->restart_ms = average(w->restart_ms, w->stopping_ms + took_ms);
    w->stopping_ms = 0;
}

void worth_checkpointed(struct worth *w, int64_t took_ms)
{
    w->checkpoint_ms = average(w->checkpoint_ms, took_ms);
}

static void note_gap(struct worth *w, double gap_ms)
{
    double off = gap_ms > w->gap_ms ? gap_ms - w->gap_ms : w->gap_ms - gap_ms;

    if (w->gaps == 0)
        w->gap_ms = gap_ms;
    else if (w->gaps == 1)
        w->gap_off_ms = off;
    if (w->gaps > 0) {
        w->gap_ms += NEWEST_SHARE * (gap_ms - w->gap_ms);
        w->gap_off_ms += NEWEST_SHARE * (off - w->gap_off_ms);
    }
    w->gaps += w->gaps < WORTH_GAPS_FEW;
}

void worth_arrived(struct worth *w, int64_t now_ms)
{
    if (w->arrived_at_ms != PLIANT_UNSET && now_ms - w->arrived_at_ms < EPISODE_MS)
        return;
    if (w->arrived_at_ms != PLIANT_UNSET)
        note_gap(w, (double)(now_ms - w->arrived_at_ms));
    w->arrived_at_ms = now_ms;
}

void worth_drained(struct worth *w, bool early)
{
    w->early += NEWEST_SHARE * (early - w->early);
}

/* ---- what is known ---------------------------------------------------------------------- */

int64_t worth_restart_ms(const struct worth *w, const struct worth_limits *l)
{
    return w->restart_ms == PLIANT_UNSET ? l->restart_ms : w->restart_ms;
}

int64_t worth_checkpoint_ms(const struct worth *w, const struct worth_limits *l)
{
    return w->checkpoint_ms == PLIANT_UNSET ? l->checkpoint_ms : w->checkpoint_ms;
}

int64_t worth_left_ms(const struct worth *w, const struct worth_limits *l, int64_t started_ms)
{
    int64_t left_ms = worth_restart_ms(w, l) - w->stopping_ms - started_ms;

    return left_ms > 0 ? left_ms : 0;
}

/* Mean time between episodes, with what the prior weighs. */
static double between(const struct worth_limits *l, double time_ms, double seen)
{
    return (time_ms + PRIOR_EPISODES * (double)l->between_losses_ms) / (seen + PRIOR_EPISODES);
}

/* Between losses, after `calm_ms` without a change. */
static double between_losses(const struct worth *w, const struct worth_limits *l, double calm_ms)
{
    double prior = (double)l->between_losses_ms / CALM_MS;

    return (calm_ms + CALM_MS) * (w->risk + PRIOR_EPISODES * prior) / (w->losses + PRIOR_EPISODES);
}

/* ---- the grid of losses ----------------------------------------------------------------- */

/* Who looks at machines every so often sees losses then: the next one is likely there as well. */
static const int64_t grids_ms[WORTH_GRIDS] = {60000, 120000, 300000, 600000, 1200000};

static void note_grids(struct worth *w, int64_t since_loss_ms)
{
    for (uint32_t g = 0; g < WORTH_GRIDS; g++) {
        int64_t off = since_loss_ms % grids_ms[g];
        bool on = off <= GRID_NEAR_MS || off >= grids_ms[g] - GRID_NEAR_MS;

        w->on_grid[g] += NEWEST_SHARE * (on - w->on_grid[g]);
    }
}

/* The nearest number of whole periods, not 0. */
static double whole_periods(double ms, double period_ms)
{
    double n = (double)whole(ms / period_ms + 0.5);

    return (n < 1 ? 1 : n) * period_ms;
}

/* Of each ms, what checkpoints cost and losses take; of those on the grid a period less. */
static double wasted(double interval_ms, double cost_ms, double mean_ms, double on_grid_ms)
{
    return cost_ms / interval_ms + (interval_ms - on_grid_ms) / (2 * mean_ms);
}

static uint32_t find_grid(const struct worth *w, const struct worth_limits *l)
{
    double cost = (double)worth_checkpoint_ms(w, l), mean = between_losses(w, l, 0);
    double interval = square_root(2 * cost * mean), least;
    uint32_t best = 0;

    if (interval <= 0)
        return 0;
    least = wasted(interval, cost, mean, 0);
    for (uint32_t g = 0; g < WORTH_GRIDS; g++) {
        double period = (double)grids_ms[g];
        double waste = wasted(whole_periods(interval, period), cost, mean, w->on_grid[g] * period);

        if (w->on_grid[g] > GRID_KNOWN && grids_ms[g] <= l->max_interval_ms && waste < least) {
            least = waste;
            best = g + 1;
        }
    }
    return best;
}

static void note_loss(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    if (w->lost_at_ms != PLIANT_UNSET)
        note_grids(w, now_ms - w->lost_at_ms);
    w->lost_at_ms = w->changed_at_ms = now_ms;
    w->grid = find_grid(w, l);
}

/* So that it has just completed when the next loss is likely. */
static int64_t before_grid(const struct worth *w, const struct worth_limits *l, int64_t now_ms,
                           int64_t at_ms)
{
    int64_t period = grids_ms[w->grid - 1];
    int64_t cost = worth_checkpoint_ms(w, l), ahead = cost + cost / 8 + GRID_NEAR_MS;
    int64_t off = (at_ms + ahead - w->lost_at_ms) % period;
    int64_t kept = at_ms - off + (off > period / 2 ? period : 0);
    int64_t least = now_ms + (cost > l->min_interval_ms ? cost : l->min_interval_ms);

    if (kept <= least)
        kept += ((least - kept) / period + 1) * period;
    return kept - now_ms <= l->max_interval_ms ? kept : at_ms;
}

void worth_ended(struct worth *w, const struct worth_limits *l, int64_t now_ms, int64_t worked_ms,
                 enum worth_end how)
{
    bool same_episode =
        how == WORTH_LOST && w->lost_at_ms != PLIANT_UNSET && now_ms - w->lost_at_ms < EPISODE_MS;

    count(w, l, now_ms);
    if (same_episode)
        return;
    if (how == WORTH_LOST)
        note_loss(w, l, now_ms);
    w->losses += how == WORTH_LOST && worked_ms > 0;
    w->stops += how != WORTH_RESCALED;
}

/* ---- what follows ----------------------------------------------------------------------- */

int64_t worth_next_checkpoint(const struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    double cost = (double)worth_checkpoint_ms(w, l);
    double mean = between_losses(w, l, calm_ms(w, now_ms));
    int64_t interval_ms = whole(square_root(2 * cost * mean));
    int64_t least_ms = 2 * worth_checkpoint_ms(w, l), at_ms;

    if (interval_ms > l->max_interval_ms)
        interval_ms = l->max_interval_ms;
    if (interval_ms < l->min_interval_ms)
        interval_ms = l->min_interval_ms;
    if (interval_ms < least_ms)
        interval_ms = least_ms;
    at_ms = instant_after(now_ms, interval_ms);
    return w->grid > 0 && at_ms < PLIANT_NEVER - grids_ms[WORTH_GRIDS - 1]
               ? before_grid(w, l, now_ms, at_ms)
               : at_ms;
}

/* While the tasks start, a restart with more of them costs what was spent on this one. */
static bool worth_starting_over(const struct worth_view *v, double horizon, double restart)
{
    return (double)v->q * (horizon - restart) > (double)v->p * (horizon - (double)v->left_ms);
}

static int64_t until_settled(const struct worth_view *v, double restart)
{
    return whole(SETTLE_SHARE * restart) - v->since_arrival_ms;
}

/* Where slots arrive regularly, the next ones are waited for until as much was missed as a restart
 * costs: that many restarts cost least. In ms from now; 0: not worth it. */
static int64_t until_next(const struct worth *w, const struct worth_view *v, double cost)
{
    double overdue = w->gap_ms + 2 * w->gap_off_ms + EPISODE_MS - (double)v->since_arrival_ms;
    double paid = (cost - (double)v->missed) / (double)(v->q - v->p);
    bool regular = w->gaps == WORTH_GAPS_FEW && w->gap_off_ms <= REGULAR_SHARE * w->gap_ms;

    if (!regular || overdue < 1 || paid < w->gap_ms - (double)v->since_arrival_ms || paid < 1)
        return 0;
    return whole(paid < overdue ? paid : overdue);
}

struct worth_judgement worth_judge(const struct worth *w, const struct worth_limits *l,
                                   const struct worth_view *v)
{
    double restart = (double)worth_restart_ms(w, l), checkpoint = (double)worth_checkpoint_ms(w, l);
    double horizon = HORIZON_SHARE * between(l, w->exposed_ms, w->stops);
    double unsafe = (double)v->unsafe_ms;
    double gain = (double)(v->q - v->p) * horizon;
    double cost = (double)v->q * (restart + (unsafe < checkpoint ? unsafe : checkpoint));
    struct worth_judgement j = {.gain = whole(gain), .cost = whole(cost)};
    int64_t settles = until_settled(v, restart), next = until_next(w, v, cost);

    if (v->running && next > settles)
        settles = next;

    assert(v->q > v->p);
    if (!v->running && !worth_starting_over(v, horizon, restart)) {
        j.reason = PLIANT_JUDGED_STARTING;
        j.again_in_ms = v->left_ms > 0 ? v->left_ms : 1000;
    } else if (v->running && gain <= cost) {
        j.reason = PLIANT_JUDGED_COST;
        j.again_in_ms = AGAIN_MS;
    } else if (settles > 0) {
        j.reason = PLIANT_JUDGED_SETTLES;
        j.again_in_ms = settles;
    } else if (v->running && v->can_checkpoint && v->unsafe_ms >= (int64_t)checkpoint &&
               v->unsafe_ms > 0) {
        j.reason = PLIANT_JUDGED_CHECKPOINT;
    } else {
        j.reason = PLIANT_JUDGED_GAIN;
    }
    return j;
}

bool worth_checkpoint_at_notice(const struct worth *w, const struct worth_limits *l,
                                int64_t unsafe_ms, int64_t until_move_ms)
{
    return w->early * ((double)unsafe_ms + (double)until_move_ms / 2) >
           (double)worth_checkpoint_ms(w, l);
}

bool worth_moving_early(uint64_t p, uint64_t q, int64_t left_ms, int64_t until_move_ms)
{
    int64_t worked_ms = until_move_ms > left_ms ? until_move_ms - left_ms : 0;

    return (double)q * (double)until_move_ms > (double)p * (double)worked_ms;
}

/* worth.c - see worth.h */
#include "transition/worth.h"

#include <assert.h>
#include <string.h>

#include "util/deadline.h"

#define LN2 0.6931471805599453

#define HORIZON_SHARE 0.375  /* of the mean time to the next stop a gain is counted ahead */
#define STOPS_CALM_MS 720000 /* after so long without a change stops are half as likely */
#define LOSSES_CALM_MS 1200000
#define PRIOR_LOSSES 1.0 /* what the prior weighs, in episodes seen */
#define PRIOR_STOPS 1.5
#define PRIOR_UNNOTICED 0.5 /* as many losses are taken for seen when their share is asked */
#define MISSED_SHARE 0.1    /* of what a restart costs is missed while arrivals settle */
#define STARTING_SHARE 0.02 /* of a restart, after the last arrival, where tasks still start */
#define MEASURED_SHARE 0.5  /* of the newest measure in an average */
#define NEWEST_SHARE 0.2    /* of the newest in averages of shares */
#define EARLY_FIRST 0.5     /* taken to go early, until nodes under notice went */
#define EPISODE_MS 1000     /* stops within it are one, and so are arrivals */
#define AGAIN_MS 60000      /* a cost that exceeds the gain is looked at again */
#define LATE_SHARE 0.25     /* of the time from one report to the next it may be late */
#define GRID_NEAR_MS 500
#define GRID_KNOWN 0.15 /* less of the losses on a grid may be chance */

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
    w->changed_at_ms = w->stopped_at_ms = PLIANT_UNSET;
    w->units = 1;
    w->restart_ms = w->checkpoint_ms = w->reports_ms = PLIANT_UNSET;
    w->early = EARLY_FIRST;
}

static void forget(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    double keep = w->forgot_to_ms == PLIANT_UNSET
                      ? 1
                      : halved((double)(now_ms - w->forgot_to_ms) / (double)l->memory_ms);

    w->forgot_to_ms = now_ms;
    w->losses.seen *= keep;
    w->losses.risk *= keep;
    w->stops.seen *= keep;
    w->stops.risk *= keep;
    w->moves *= keep;
}

static double calm_ms(const struct worth *w, int64_t at_ms)
{
    return w->changed_at_ms == PLIANT_UNSET ? 0 : (double)(at_ms - w->changed_at_ms);
}

/* The sum of 1 ms / (calm + scale) since what was counted last. */
static double risk(const struct worth *w, int64_t now_ms, double scale_ms)
{
    return log_of_ratio(calm_ms(w, w->counted_to_ms) + scale_ms, calm_ms(w, now_ms) + scale_ms);
}

static void count(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    forget(w, l, now_ms);
    if (w->counted_to_ms == PLIANT_UNSET)
        return;
    w->stops.risk += risk(w, now_ms, STOPS_CALM_MS);
    if (w->working)
        w->losses.risk += w->units * risk(w, now_ms, LOSSES_CALM_MS);
    w->counted_to_ms = now_ms;
}

void worth_changed(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    count(w, l, now_ms);
    w->changed_at_ms = now_ms;
}

void worth_enter(struct worth *w, const struct worth_limits *l, int64_t now_ms, uint64_t units)
{
    count(w, l, now_ms);
    w->counted_to_ms = now_ms;
    w->units = units > 0 ? (double)units : 1;
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

void worth_running(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    count(w, l, now_ms);
    w->working = true;
}

void worth_restarted(struct worth *w, int64_t took_ms)
{
    w->restart_ms = average(w->restart_ms, w->stopping_ms + took_ms);
    w->stopping_ms = 0;
}

void worth_checkpointed(struct worth *w, int64_t took_ms)
{
    w->checkpoint_ms = average(w->checkpoint_ms, took_ms);
}

void worth_reported(struct worth *w, int64_t gap_ms)
{
    w->reports_ms = average(w->reports_ms, gap_ms);
}

static bool same_episode(int64_t first_ms, int64_t now_ms)
{
    return first_ms != PLIANT_UNSET && now_ms - first_ms < EPISODE_MS;
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
    if (same_episode(w->arrived_at_ms, now_ms))
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
    int64_t known_ms = w->restart_ms == PLIANT_UNSET ? l->restart_ms : w->restart_ms;

    return known_ms > l->min_restart_ms ? known_ms : l->min_restart_ms;
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

/* Until the next one; the prior says one in `between_losses_ms` right after a change. */
static double mean_ms(struct worth_rate rate, const struct worth_limits *l, double since_ms,
                      double scale_ms, double weight, double weight_seen)
{
    double prior = weight * (double)l->between_losses_ms / scale_ms;

    return (since_ms + scale_ms) * (rate.risk + prior) / (rate.seen + weight_seen);
}

static double until_stop(const struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    return mean_ms(w->stops, l, calm_ms(w, now_ms), STOPS_CALM_MS, PRIOR_STOPS, PRIOR_STOPS);
}

/* Where nodes go with notice, a loss without one is not expected before one was seen. */
static double until_loss(const struct worth *w, const struct worth_limits *l, double since_ms)
{
    struct worth_rate of_all = {w->losses.seen, w->losses.risk / w->units};
    double seen = w->losses.seen + PRIOR_UNNOTICED, unnoticed = seen / (seen + w->moves);

    return mean_ms(of_all, l, since_ms, LOSSES_CALM_MS, PRIOR_LOSSES, PRIOR_LOSSES * unnoticed);
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
    double cost = (double)worth_checkpoint_ms(w, l), mean = until_loss(w, l, 0);
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
    int64_t cost = worth_checkpoint_ms(w, l), ahead = cost + cost / 32 + GRID_NEAR_MS;
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
    count(w, l, now_ms);
    if (how == WORTH_RESCALED || same_episode(w->stopped_at_ms, now_ms))
        return;
    w->stopped_at_ms = now_ms;
    w->stops.seen++;
    w->moves += how == WORTH_MOVED;
    w->losses.seen += how == WORTH_LOST && worked_ms > 0;
    if (how == WORTH_LOST)
        note_loss(w, l, now_ms);
}

/* ---- what follows ----------------------------------------------------------------------- */

int64_t worth_next_checkpoint(const struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    int64_t cost_ms = worth_checkpoint_ms(w, l);
    double mean = until_loss(w, l, calm_ms(w, now_ms));
    int64_t interval_ms = whole(square_root(2 * (double)cost_ms * mean));
    int64_t least_at_ms = instant_after(instant_after(now_ms, cost_ms), cost_ms), at_ms;

    if (interval_ms > l->max_interval_ms)
        interval_ms = l->max_interval_ms;
    if (interval_ms < l->min_interval_ms)
        interval_ms = l->min_interval_ms;
    at_ms = instant_after(now_ms, interval_ms);
    if (at_ms < least_at_ms)
        at_ms = least_at_ms;
    /* beyond it sums with what a checkpoint costs might not fit, and no grid matters */
    return w->grid > 0 && at_ms < PLIANT_NEVER / 2 ? before_grid(w, l, now_ms, at_ms) : at_ms;
}

/* While the tasks start, a restart with more of them costs what was spent on this one. */
static bool worth_starting_over(const struct worth_view *v, double horizon, double restart)
{
    return (double)v->q * (horizon - restart) > (double)v->p * (horizon - (double)v->left_ms);
}

/* Until so many slot-ms were missed on the slots that a rescale would use; in ms from now. */
static double until_missed(const struct worth_view *v, double slot_ms)
{
    assert(v->q > v->p);
    return (slot_ms - (double)v->missed) / (double)(v->q - v->p);
}

/* Arrivals come in bursts: more are waited for until a small part of what a restart costs was
 * missed, no longer than a restart takes; where tasks still start little is lost by another one. */
static int64_t until_settled(const struct worth_view *v, double restart, double cost)
{
    double since = (double)v->since_arrival_ms, left = restart - since;
    double paid = until_missed(v, MISSED_SHARE * cost);

    if (!v->running)
        return whole(STARTING_SHARE * restart - since);
    return whole(paid < left ? paid : left);
}

/* Where slots arrive at a rate, the next ones are waited for until as much was missed as a restart
 * costs: that many restarts cost least. In ms from now; 0: not worth it. */
static int64_t until_next(const struct worth *w, const struct worth_view *v, double cost)
{
    double overdue = w->gap_ms + 2 * w->gap_off_ms + EPISODE_MS - (double)v->since_arrival_ms;
    double paid = until_missed(v, cost);
    bool at_a_rate = w->gaps == WORTH_GAPS_FEW && w->gap_off_ms <= w->gap_ms;

    if (!at_a_rate || overdue < 1 || paid < w->gap_ms - (double)v->since_arrival_ms || paid < 1)
        return 0;
    return whole(paid < overdue ? paid : overdue);
}

/* What the restart does to work since the last checkpoint: one more is taken, or it is gone. */
static double cost_of_work(const struct worth_view *v, double checkpoint)
{
    double unsafe = (double)v->unsafe_ms;

    if (!v->can_checkpoint)
        return (double)v->p * unsafe;
    return (double)v->q * (unsafe < checkpoint ? unsafe : checkpoint);
}

/* Workers report when they like. The next report is waited for until as much was missed as would
 * be lost without it; where it is not known to come by then, no longer than until as much was
 * missed as a restart costs: it may never come. */
static int64_t until_report(const struct worth *w, const struct worth_view *v, double restart)
{
    double paid = until_missed(v, (double)v->p * (double)v->unsafe_ms);
    double most = until_missed(v, (double)v->q * restart);
    double late = LATE_SHARE * (double)w->reports_ms, in = (double)v->report_in_ms;

    if (!v->running || v->can_checkpoint)
        return 0;
    if (v->report_in_ms != PLIANT_UNSET && in < paid && in + late > most)
        most = in + late;
    return whole(paid < most ? paid : most);
}

struct worth_judgement worth_judge(const struct worth *w, const struct worth_limits *l,
                                   const struct worth_view *v, int64_t now_ms)
{
    double restart = (double)worth_restart_ms(w, l), checkpoint = (double)worth_checkpoint_ms(w, l);
    double horizon = HORIZON_SHARE * until_stop(w, l, now_ms);
    double gain = (double)(v->q - v->p) * horizon;
    double cost = (double)v->q * restart + cost_of_work(v, checkpoint);
    struct worth_judgement j = {.gain = whole(gain), .cost = whole(cost)};
    int64_t settles = until_settled(v, restart, cost), next = until_next(w, v, cost);
    int64_t report = until_report(w, v, restart);

    if (v->running && next > settles)
        settles = next;
    if (!v->running && !worth_starting_over(v, horizon, restart)) {
        j.reason = PLIANT_JUDGED_STARTING;
        j.again_in_ms = v->left_ms > 0 ? v->left_ms : 1000;
    } else if (v->running && gain <= cost) {
        j.reason = PLIANT_JUDGED_COST;
        j.again_in_ms = AGAIN_MS;
    } else if (settles > 0) {
        j.reason = PLIANT_JUDGED_SETTLES;
        j.again_in_ms = settles;
    } else if (report > 0) {
        j.reason = PLIANT_JUDGED_REPORT;
        j.again_in_ms = report;
    } else if (v->running && v->can_checkpoint && v->unsafe_ms >= worth_checkpoint_ms(w, l) &&
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

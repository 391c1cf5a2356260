/* worth.c - see worth.h */
#include "transition/worth.h"

#include <assert.h>
#include <string.h>
#ifdef TUNE
#include <stdlib.h>
static double tune(const char *n, double d) { const char *t = getenv(n); return t ? atof(t) : d; }
#define T(name, value) tune(#name, value)
#else
#define T(name, value) (value)
#endif

#define LN2 0.6931471805599453

/* Of the mean time between two stops: how far ahead a gain is counted. */
#define HORIZON_SHARE T(HF, 0.5)
#define PRIOR_STOPS T(PW, 1.2)  /* what the priors weigh, in episodes seen */
#define PRIOR_LOSSES T(WU, 0.93)
#define PRIOR_SHADOW T(WS, 4.0) /* ... and losses at random, against the shadows */
#define SETTLE_SHARE T(SETTLE, 0.1) /* of a restart */
#define AVERAGE_SHARE 0.5     /* of the newest measure in an average */
#define EARLY_FIRST 0.5       /* taken to go early, until nodes under notice went */
#define EARLY_SHARE 0.2       /* of the newest in that average */
#define EPISODE_MS 1000       /* losses within it are one */
#define AGAIN_MS 60000        /* a cost that exceeds the gain is looked at again */
#define CANDIDATE_FIRST_MS 1000.0
#define CANDIDATE_STEP T(STEP, 1.14) /* the last of them is about an hour */

/* ---- numbers ---------------------------------------------------------------------------- */

/* 2^-x, near enough; 1 at 0. */
static double halved(double x)
{
    double y = x * LN2;

    return 1 / (1 + y * (1 + y * (0.5 + y / 6)));
}

static int64_t whole(double x)
{
    return x >= (double)(INT64_MAX / 2) ? INT64_MAX / 2 : (int64_t)x;
}

static int64_t average(int64_t before_ms, int64_t took_ms)
{
    if (before_ms == PLIANT_UNSET)
        return took_ms;
    return whole((double)before_ms + AVERAGE_SHARE * (double)(took_ms - before_ms));
}

/* ---- what was seen ---------------------------------------------------------------------- */

void worth_start(struct worth *w)
{
    memset(w, 0, sizeof *w);
    w->counted_to_ms = w->forgot_to_ms = w->lost_at_ms = PLIANT_UNSET;
    w->restart_ms = w->checkpoint_ms = PLIANT_UNSET;
    w->early = EARLY_FIRST;
}

static void forget(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    double keep = w->forgot_to_ms == PLIANT_UNSET
                      ? 1
                      : halved((double)(now_ms - w->forgot_to_ms) / (1000 * T(MEM, (double)l->memory_ms / 1000)));

    w->forgot_to_ms = now_ms;
    w->losses *= keep;
    w->stops *= keep;
    w->exposed_ms *= keep;
    for (uint32_t i = 0; i < WORTH_CANDIDATES; i++)
        w->wasted_ms[i] *= keep;
}

static void count(struct worth *w, const struct worth_limits *l, int64_t now_ms)
{
    forget(w, l, now_ms);
    if (w->counted_to_ms == PLIANT_UNSET)
        return;
    w->exposed_ms += (double)(now_ms - w->counted_to_ms);
    w->counted_to_ms = now_ms;
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
}

void worth_stopped(struct worth *w, int64_t took_ms)
{
    w->stopping_ms = took_ms;
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

void worth_drained(struct worth *w, bool early)
{
    w->early += EARLY_SHARE * (early - w->early);
}

/* ---- the shadows ------------------------------------------------------------------------ */

/* What a run of `worked_ms` that takes a checkpoint each `interval` spends on them, and loses. */
static double wasted(double interval_ms, double cost_ms, double worked_ms, bool lost)
{
    int64_t begun = whole(worked_ms / interval_ms);
    int64_t done = worked_ms < interval_ms + cost_ms ? 0 : whole((worked_ms - cost_ms) / interval_ms);

    if (!lost)
        return (double)begun * cost_ms;
    if (done == 0)
        return worked_ms;
    return worked_ms - (double)done * interval_ms + (double)(done - 1) * cost_ms;
}

static void run_shadows(struct worth *w, const struct worth_limits *l, int64_t worked_ms, bool lost)
{
    double interval = CANDIDATE_FIRST_MS, cost = (double)worth_checkpoint_ms(w, l);

    for (uint32_t i = 0; i < WORTH_CANDIDATES; i++, interval *= CANDIDATE_STEP)
        w->wasted_ms[i] += wasted(interval, cost, (double)worked_ms, lost);
}

void worth_ended(struct worth *w, const struct worth_limits *l, int64_t now_ms, int64_t worked_ms,
                 enum worth_end how)
{
    bool same_episode = how == WORTH_LOST && w->lost_at_ms != PLIANT_UNSET &&
                        now_ms - w->lost_at_ms < EPISODE_MS;

    count(w, l, now_ms);
    run_shadows(w, l, worked_ms, how == WORTH_LOST);
    if (how == WORTH_LOST)
        w->lost_at_ms = now_ms;
    if (same_episode)
        return;
    w->losses += how == WORTH_LOST;
    w->stops += how != WORTH_RESCALED;
}

/* ---- what follows ----------------------------------------------------------------------- */

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
static double between(const struct worth *w, const struct worth_limits *l, double seen, double prior)
{
    return (w->exposed_ms + prior * T(MTBF, (double)l->between_losses_ms / 1000) * 1000) / (seen + prior);
}

int64_t worth_checkpoint_interval(const struct worth *w, const struct worth_limits *l)
{
    double cost = (double)worth_checkpoint_ms(w, l);
    double mean = between(w, l, w->losses, PRIOR_LOSSES);
    double interval = CANDIDATE_FIRST_MS, best = 0, least = 0;

    for (uint32_t i = 0; i < WORTH_CANDIDATES; i++, interval *= CANDIDATE_STEP) {
        double at_random = cost / interval + interval / (2 * mean * T(F2, 1.6));
        double waste = w->wasted_ms[i] + PRIOR_SHADOW * mean * at_random;

        if (interval < 2 * cost || interval < (double)l->min_interval_ms ||
            interval > (double)l->max_interval_ms)
            continue;
        if (best > 0 && waste >= least)
            continue;
        best = interval;
        least = waste;
    }
    if (best > 0)
        return whole(best);
    return l->min_interval_ms > 2 * (int64_t)cost ? l->min_interval_ms : 2 * (int64_t)cost;
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

struct worth_judgement worth_judge(const struct worth *w, const struct worth_limits *l,
                                   const struct worth_view *v)
{
    double restart = (double)worth_restart_ms(w, l), checkpoint = (double)worth_checkpoint_ms(w, l);
    double horizon = HORIZON_SHARE * between(w, l, w->stops, PRIOR_STOPS);
    double unsafe = (double)v->unsafe_ms;
    double gain = (double)(v->q - v->p) * horizon;
    double cost = (double)v->q * (restart + (unsafe < checkpoint ? unsafe : checkpoint));
    struct worth_judgement j = {
        .gain = whole(gain), .cost = whole(cost), .horizon_ms = whole(horizon)};
    int64_t settles = until_settled(v, restart);

    assert(v->q > v->p);
    if (!v->running && !worth_starting_over(v, horizon, restart)) {
        j.reason = WORTH_STARTING;
        j.again_in_ms = v->left_ms > 0 ? v->left_ms : 1000;
    } else if (v->running && gain <= cost) {
        j.reason = WORTH_COST;
        j.again_in_ms = AGAIN_MS;
    } else if (settles > 0) {
        j.reason = WORTH_SETTLES;
        j.again_in_ms = settles;
    } else if (v->running && v->can_checkpoint && v->unsafe_ms >= (int64_t)checkpoint &&
               v->unsafe_ms > 0) {
        j.reason = WORTH_CHECKPOINT;
    } else {
        j.reason = WORTH_GAIN;
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

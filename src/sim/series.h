/* series.h - how a run went over time, in a bounded number of equal columns
 *
 * Columns start 1 ms wide; whenever the run outgrows them, neighbours are merged, so that between
 * half of the columns and all of them are in use. A column keeps extremes and sums, nothing that
 * happened gets lost.
 *
 * Shapes  v[n_columns], column i covers width_ms * i up to width_ms * (i + 1)
 * Units   milliseconds; an area is a value times milliseconds, exact up to 2^63
 * Owner   series_init() allocates, series_free() frees
 * Errors  series_init(): -ENOMEM
 */
#ifndef PLIANT_SIM_SERIES_H
#define PLIANT_SIM_SERIES_H

#include "sim/view.h"

struct series_value {
    uint32_t first, min, max, last;
    double area;
};

struct series_column {
    bool seen;                       /* else all below is 0 */
    struct series_value offered;     /* slots */
    struct series_value parallelism; /* of the widest vertex, 0: not at work */
    int64_t state_ms[PLIANT_STATES];
    uint32_t lost, drained, checkpoints, restarts, region_restarts;
};

struct series {
    uint32_t n_columns;
    int64_t width_ms;
    struct series_column *v;

    int64_t now_ms; /* how it goes on from here */
    enum pliant_state state;
    uint32_t offered, parallelism;
};

int series_init(struct series *s, uint32_t n_columns);
void series_free(struct series *s);
void series_take(struct series *s, const struct view *v);
void series_end(struct series *s, int64_t end_ms);

/* What all columns in use cover: the run, rounded up to whole columns. */
int64_t series_extent_ms(const struct series *s);

/* 0..series_extent_ms() in n columns, n at most half of s->n_columns. A column that no time falls
 * on is as the end of the one before it. */
void series_resample(const struct series *s, struct series_column *out, uint32_t n);

/* How much of the run falls on a column. */
double series_column_ms(const struct series_column *c);

/* The largest value in n columns, at least 1. */
uint32_t series_highest(const struct series_column *v, uint32_t n);

#endif

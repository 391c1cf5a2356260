/* series.c - see series.h */
#include "sim/series.h"

#include <errno.h>
#include <string.h>

int series_init(struct series *s, uint32_t n_columns)
{
    *s = (struct series){.n_columns = n_columns, .width_ms = 1};
    s->v = mem_zero(NULL, n_columns, sizeof *s->v);
    return s->v ? 0 : -ENOMEM;
}

void series_free(struct series *s)
{
    mem_free(NULL, s->v);
    *s = (struct series){0};
}

static void merge_value(struct series_value *into, const struct series_value *next)
{
    into->min = next->min < into->min ? next->min : into->min;
    into->max = next->max > into->max ? next->max : into->max;
    into->last = next->last;
    into->area += next->area;
}

static void merge(struct series_column *into, const struct series_column *next)
{
    if (!next->seen)
        return;
    if (!into->seen) {
        *into = *next;
        return;
    }
    merge_value(&into->offered, &next->offered);
    merge_value(&into->parallelism, &next->parallelism);
    for (int i = 0; i < PLIANT_STATES; i++)
        into->state_ms[i] += next->state_ms[i];
    into->lost += next->lost;
    into->drained += next->drained;
    into->checkpoints += next->checkpoints;
    into->restarts += next->restarts;
    into->region_restarts += next->region_restarts;
}

/* Twice as wide, half as many. */
static void widen(struct series *s)
{
    for (uint32_t i = 0; i < s->n_columns / 2; i++) {
        struct series_column pair = s->v[2 * i];

        merge(&pair, &s->v[2 * i + 1]);
        s->v[i] = pair;
    }
    memset(&s->v[s->n_columns / 2], 0, (s->n_columns - s->n_columns / 2) * sizeof *s->v);
    s->width_ms *= 2;
}

static void touch_value(struct series_value *v, bool seen, uint32_t value, int64_t ms)
{
    struct series_value now = {value, value, value, value, (double)value * (double)ms};

    if (seen)
        merge_value(v, &now);
    else
        *v = now;
}

/* The column of `at_ms` as things are now, and for `ms` more. */
static struct series_column *touch(struct series *s, int64_t at_ms, int64_t ms)
{
    struct series_column *c = &s->v[at_ms / s->width_ms];

    touch_value(&c->offered, c->seen, s->offered, ms);
    touch_value(&c->parallelism, c->seen, s->parallelism, ms);
    c->state_ms[s->state] += ms;
    c->seen = true;
    return c;
}

/* Time goes on to at_ms with all as it is. */
static void pass(struct series *s, int64_t at_ms)
{
    while (at_ms / s->width_ms >= s->n_columns)
        widen(s);
    while (s->now_ms < at_ms) {
        int64_t column_end = (s->now_ms / s->width_ms + 1) * s->width_ms;
        int64_t until = column_end < at_ms ? column_end : at_ms;

        touch(s, s->now_ms, until - s->now_ms);
        s->now_ms = until;
    }
}

static void change_state(struct series *s, const struct view *v, enum pliant_state to)
{
    s->state = to;
    s->parallelism = view_works(to) ? view_widest(v->parallelism, v->n_vertices) : 0;
    touch(s, s->now_ms, 0)->restarts += to == PLIANT_RESTARTING;
}

void series_take(struct series *s, const struct view *v)
{
    enum view_node_news news = view_node_news(v);
    struct series_column *c;

    pass(s, v->at_ms);
    for (size_t i = 0; i < v->actions->n; i++)
        if (v->actions->v[i].kind == PLIANT_ACT_STATE_CHANGED)
            change_state(s, v, (enum pliant_state)v->actions->v[i].flag[1]);
        else if (v->actions->v[i].kind == PLIANT_ACT_DECIDED)
            s->parallelism = view_widest(v->parallelism, v->n_vertices);
    s->offered = v->counts.slots_offered;
    c = touch(s, s->now_ms, 0);
    c->lost += news == VIEW_NODE_LOST;
    c->region_restarts += (uint32_t)(v->counts.region_restarts - v->before.region_restarts);
    c->drained += news == VIEW_NODE_DRAINS;
    c->checkpoints += v->event->kind == PLIANT_EV_CHECKPOINT_COMPLETED && !view_ignored(v);
}

void series_end(struct series *s, int64_t end_ms)
{
    pass(s, end_ms);
}

int64_t series_extent_ms(const struct series *s)
{
    return (s->now_ms / s->width_ms + 1) * s->width_ms;
}

/* As it was at the end of `before`, with nothing new. */
static struct series_column still(const struct series_column *before)
{
    struct series_column c = *before;

    c.offered = (struct series_value){.first = c.offered.last,
                                      .min = c.offered.last,
                                      .max = c.offered.last,
                                      .last = c.offered.last};
    c.parallelism = (struct series_value){.first = c.parallelism.last,
                                          .min = c.parallelism.last,
                                          .max = c.parallelism.last,
                                          .last = c.parallelism.last};
    c.lost = c.drained = c.checkpoints = c.restarts = c.region_restarts = 0;
    return c;
}

void series_resample(const struct series *s, struct series_column *out, uint32_t n)
{
    int64_t last = s->now_ms / s->width_ms; /* below n_columns: no product overflows */

    memset(out, 0, n * sizeof *out);
    for (int64_t i = 0; i <= last; i++)
        merge(&out[i * n / (last + 1)], &s->v[i]);
    for (uint32_t i = 1; i < n; i++)
        if (!out[i].seen)
            out[i] = still(&out[i - 1]);
}

double series_column_ms(const struct series_column *c)
{
    double ms = 0;

    for (int i = 0; i < PLIANT_STATES; i++)
        ms += (double)c->state_ms[i];
    return ms;
}

uint32_t series_highest(const struct series_column *v, uint32_t n)
{
    uint32_t most = 1;

    for (uint32_t i = 0; i < n; i++) {
        most = v[i].offered.max > most ? v[i].offered.max : most;
        most = v[i].parallelism.max > most ? v[i].parallelism.max : most;
    }
    return most;
}

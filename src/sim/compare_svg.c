/* compare_svg.c - see compare_svg.h; colours are those of Okabe and Ito */
#include "sim/compare_svg.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sim/svg.h"
#include "sim/time_text.h"

#define WIDTH 1200
#define LEFT 300 /* of the shares; names stand before it */
#define RIGHT 1176
#define RUN_LEFT 72
#define COLUMNS (RIGHT - RUN_LEFT)
#define TOP 92
#define ROW 24
#define RUN_HEIGHT 220
#define LOW 0.5
/* So many letters have room: of the job in the title, of a trace in its row, above its run. */
#define JOB_LETTERS 36
#define ROW_LETTERS 40
#define RUN_LETTERS 50

static const char *const colours[] = {"#999999", "#cc79a7", "#e69f00", "#56b4e9", "#d55e00",
                                      "#f0e442", "#009e73", "#0072b2", "#000000"};
#define N_COLOURS (sizeof colours / sizeof *colours)
#define COLOUR_LEARNS "#08306b"
#define COLOUR_OFFERED "#8fa9c4"
#define FILL_OFFERED "#dde6ef"
#define COLOUR_BOUND "#d55e00"

/* A number over time, as the columns of pixels show it. */
struct curve {
    struct curve_column {
        bool seen;
        uint32_t min, max, last;
    } v[COLUMNS];
    int64_t extent_ms, now_ms;
    uint32_t value; /* from now_ms on */
};

struct drawing {
    const struct compare *c;
    FILE *out;
    size_t policy; /* of the run */
    size_t cost;   /* of the run */
    double low;    /* where the axis of shares begins */
    struct curve offered, used, bound;
    uint32_t y_max;
    int run_top; /* of the picture's lower half */
};

/* ---- curves ------------------------------------------------------------------------------- */

static int column_of(const struct curve *c, int64_t at_ms)
{
    int column = (int)((double)at_ms / (double)c->extent_ms * COLUMNS);

    return column < COLUMNS ? column : COLUMNS - 1;
}

static void touch(struct curve *c, int column)
{
    struct curve_column *v = &c->v[column];

    if (!v->seen)
        *v = (struct curve_column){true, c->value, c->value, c->value};
    v->min = c->value < v->min ? c->value : v->min;
    v->max = c->value > v->max ? c->value : v->max;
    v->last = c->value;
}

/* It is as it was until at_ms, and `value` from there on. */
static void curve_go(struct curve *c, int64_t at_ms, uint32_t value)
{
    for (int i = column_of(c, c->now_ms); i <= column_of(c, at_ms); i++)
        touch(c, i);
    c->now_ms = at_ms;
    c->value = value;
    touch(c, column_of(c, at_ms));
}

static void fill_offered(struct drawing *d)
{
    const struct tape *tape = &d->c->tapes[0];

    for (size_t i = 0; i < tape->steps.n; i++)
        curve_go(&d->offered, tape->steps.v[i].at_ms, (uint32_t)tape->steps.v[i].offered);
    curve_go(&d->offered, d->offered.extent_ms, d->offered.value);
}

static void fill_bound(struct drawing *d, const struct bound_runs *runs)
{
    int64_t restart_ms = d->c->costs[d->cost].restart_ms;

    for (size_t i = 0; i < runs->n; i++) {
        const struct bound_run *run = &runs->v[i];

        if (run->to_ms - run->from_ms <= restart_ms)
            continue;
        curve_go(&d->bound, run->from_ms, 0);
        curve_go(&d->bound, run->from_ms + restart_ms, run->slots);
        curve_go(&d->bound, run->to_ms, 0);
    }
    curve_go(&d->bound, d->bound.extent_ms, 0);
}

/* ---- the run ------------------------------------------------------------------------------ */

struct watcher {
    struct sim_observer observer;
    struct work work;
    struct curve *used;
};

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct watcher *w = (struct watcher *)o;
    struct pliant_counts counts;
    uint32_t used;

    w->work.observer.on_step(&w->work.observer, step);
    pliant_counts(step->sched, &counts);
    used = w->work.running ? counts.slots_used : 0;
    if (used != w->used->value)
        curve_go(w->used, step->at_ms, used);
    return 0;
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    struct curve *used = ((struct watcher *)o)->used;

    (void)sched;
    curve_go(used, end_ms, used->value);
    return 0;
}

static int fill_curves(struct drawing *d)
{
    const struct compare_job *job = d->c->job;
    struct watcher w = {.observer = {on_step, on_end}, .used = &d->used};
    struct bound_runs runs = {0};
    struct spec_error err;
    double work;
    int r;

    d->offered.extent_ms = d->c->tapes[0].end_ms > 0 ? d->c->tapes[0].end_ms : 1;
    d->used.extent_ms = d->bound.extent_ms = d->offered.extent_ms;
    work_init(&w.work, job->spec.job, &job->spec.progress, d->c->costs[d->cost].checkpoint_ms);
    r = compare_watch(d->c, 0, d->cost, d->policy, &w.observer, &err);
    if (!r)
        r = compare_bound(d->c, 0, d->cost, &work, &runs);
    if (r)
        return r;
    fill_offered(d);
    fill_bound(d, &runs);
    bound_runs_free(&runs);
    return 0;
}

/* ---- shares ------------------------------------------------------------------------------- */

static bool learns(const struct drawing *d, size_t policy)
{
    return d->c->policies[policy].learns;
}

static const char *colour_of(const struct drawing *d, size_t policy)
{
    return learns(d, policy) ? COLOUR_LEARNS : colours[policy % N_COLOURS];
}

static int x_of(const struct drawing *d, double share)
{
    return LEFT + (int)((share - d->low) / (1 - d->low) * (RIGHT - LEFT) + 0.5);
}

static void title(const struct drawing *d)
{
    const struct compare *c = d->c;

    fputs("<text x=\"24\" y=\"30\" font-size=\"18\" font-weight=\"bold\" fill=\"#111\">", d->out);
    fputs("Work done, of what is possible <tspan font-weight=\"normal\">with ", d->out);
    svg_short_text(d->out, pliant_job_name(c->job->spec.job), JOB_LETTERS);
    fprintf(d->out,
            "</tspan></text>\n<text x=\"%d\" y=\"30\" text-anchor=\"end\">mean of %zu cost%s, up "
            "to %" PRIu32 " slot%s; 1 is a scheduler that knows the future</text>\n",
            RIGHT, c->n_costs, c->n_costs == 1 ? "" : "s", c->job->n_speeds - 1,
            c->job->n_speeds == 2 ? "" : "s");
}

/* What lies left of the axis: an arrow, and how far. */
static void outlier(const struct drawing *d, size_t policy, double share, int y)
{
    fprintf(d->out,
            "<path d=\"M%d %dl-9 5 9 5z\" fill=\"%s\"/>"
            "<text x=\"%d\" y=\"%d\" font-size=\"10\">%.2f</text>\n",
            LEFT + 9, y - 5, colour_of(d, policy), LEFT + 12, y + 4, share);
}

static void dot(const struct drawing *d, size_t policy, int x, int y)
{
    fprintf(d->out, "<circle cx=\"%d\" cy=\"%d\" r=\"%d\" fill=\"%s\"%s/>\n", x, y,
            learns(d, policy) ? 7 : 5, colour_of(d, policy),
            learns(d, policy) ? "" : " stroke=\"#555\" stroke-width=\".6\"");
}

static void legend(const struct drawing *d)
{
    int x = LEFT;

    for (size_t p = 0; p < d->c->n_policies; p++) {
        const char *name = d->c->policies[p].name;

        dot(d, p, x, 58);
        fprintf(d->out, "<text x=\"%d\" y=\"62\">", x + 12);
        svg_text(d->out, name);
        fputs("</text>\n", d->out);
        x += 34 + (int)strlen(name) * 7;
    }
}

static void share(const struct drawing *d, size_t policy, size_t tape, int y)
{
    double share = compare_mean(d->c, policy, tape, COMPARE_ALL);

    if (share < d->low)
        outlier(d, policy, share, y);
    else
        dot(d, policy, x_of(d, share), y);
}

/* Tape COMPARE_ALL is the mean of all. Who learns comes last, on top. */
static void shares_row(const struct drawing *d, size_t tape, int y)
{
    bool all = tape == COMPARE_ALL;

    fprintf(d->out,
            "<path d=\"M%d %d.5H%d\" stroke=\"#000\" stroke-opacity=\".12\"/>"
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\"%s>",
            LEFT, y, RIGHT, LEFT - 12, y + 4, all ? " font-weight=\"bold\"" : "");
    svg_short_text(d->out, all ? "all" : d->c->tapes[tape].name, ROW_LETTERS);
    fputs("</text>\n", d->out);
    for (int second = 0; second < 2; second++)
        for (size_t p = 0; p < d->c->n_policies; p++)
            if (learns(d, p) == second)
                share(d, p, tape, y);
}

static void shares_axis(const struct drawing *d, int bottom)
{
    for (int tenth = (int)(d->low * 10 + 0.5); tenth <= 10; tenth++) {
        int x = x_of(d, tenth / 10.0);

        fprintf(d->out,
                "<path d=\"M%d.5 %dV%d\" stroke=\"#000\" stroke-opacity=\".18\"/>"
                "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d.%d</text>\n",
                x, TOP - 12, bottom, x, bottom + 16, tenth / 10, tenth % 10);
    }
}

/* The two lowest shares of a trace. */
static void find_lowest(const struct compare *c, size_t tape, double ret[2])
{
    ret[0] = ret[1] = 1;
    for (size_t p = 0; p < c->n_policies; p++) {
        double share = compare_mean(c, p, tape, COMPARE_ALL);

        if (share < ret[0]) {
            ret[1] = ret[0];
            ret[0] = share;
        } else if (share < ret[1]) {
            ret[1] = share;
        }
    }
}

/* The axis begins at the last tenth below all of them; or where half of the work is lost, if that
 * leaves out one of a row at most. */
static double lowest(const struct compare *c)
{
    double low = 1, all_but_one = LOW;

    for (size_t tape = 0; tape < c->n_tapes; tape++) {
        double least[2];

        find_lowest(c, tape, least);
        low = least[0] < low ? least[0] : low;
        all_but_one = least[1] < all_but_one ? least[1] : all_but_one;
    }
    low = low < all_but_one ? all_but_one : low;
    low = (int)(low * 10) / 10.0;
    return low > 0.9 ? 0.9 : low;
}

static void shares(const struct drawing *d)
{
    int bottom = TOP + (int)d->c->n_tapes * ROW + 12;

    title(d);
    legend(d);
    shares_axis(d, bottom);
    shares_row(d, COMPARE_ALL, TOP);
    for (size_t i = 0; i < d->c->n_tapes; i++)
        shares_row(d, i, TOP + (int)(i + 1) * ROW);
}

/* ---- the lower half ----------------------------------------------------------------------- */

static int y_of(const struct drawing *d, uint32_t value)
{
    return d->run_top + RUN_HEIGHT - (int)((uint64_t)RUN_HEIGHT * value / d->y_max);
}

/* Parts of a step line. Every restart is a jump down and up again: drawn alike they would hide the
 * levels. */
enum part { PART_BOTH, PART_LEVELS, PART_JUMPS };

/* To the extremes of a column, and to its last value. */
static void put_jump(const struct drawing *d, const struct curve_column *v)
{
    if (v->max > v->last)
        fprintf(d->out, "V%d", y_of(d, v->max));
    if (v->min < v->last)
        fprintf(d->out, "V%d", y_of(d, v->min));
    fprintf(d->out, "V%d", y_of(d, v->last));
}

static void steps(const struct drawing *d, const struct curve *curve, enum part part)
{
    int y = y_of(d, 0);

    fprintf(d->out, "M%d %d", RUN_LEFT, y);
    for (int i = 0; i < COLUMNS; i++) {
        const struct curve_column *v = &curve->v[i];

        if (y_of(d, v->min) == y && y_of(d, v->max) == y)
            continue;
        if (part != PART_JUMPS)
            fprintf(d->out, "H%d", RUN_LEFT + i);
        if (part != PART_BOTH)
            fprintf(d->out, "M%d %d", RUN_LEFT + i, part == PART_JUMPS ? y : y_of(d, v->last));
        if (part != PART_LEVELS)
            put_jump(d, v);
        y = y_of(d, v->last);
    }
    if (part != PART_JUMPS)
        fprintf(d->out, "H%d", RIGHT);
}

static void line(const struct drawing *d, const struct curve *curve, enum part part,
                 const char *style)
{
    fprintf(d->out, "<path fill=\"none\" %s d=\"", style);
    steps(d, curve, part);
    fputs("\"/>\n", d->out);
}

static uint32_t highest(const struct curve *curve)
{
    uint32_t most = 1;

    for (int i = 0; i < COLUMNS; i++)
        most = curve->v[i].max > most ? curve->v[i].max : most;
    return most;
}

static void run_axis(const struct drawing *d)
{
    uint32_t step = svg_round_step(d->y_max);

    for (uint32_t v = 0; v <= d->y_max; v += step)
        fprintf(d->out,
                "<path d=\"M%d %d.5H%d\" stroke=\"#000\" stroke-opacity=\".12\"/>"
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%" PRIu32 "</text>\n",
                RUN_LEFT, y_of(d, v), RIGHT, RUN_LEFT - 8, y_of(d, v) + 4, v);
    svg_time_axis(d->out, &(struct svg_time_axis){.left = RUN_LEFT,
                                                  .right = RIGHT,
                                                  .top = d->run_top,
                                                  .bottom = d->run_top + RUN_HEIGHT,
                                                  .base = d->run_top + RUN_HEIGHT,
                                                  .extent_ms = d->offered.extent_ms});
}

static void run_title(const struct drawing *d)
{
    const struct compare_cost *cost = &d->c->costs[d->cost];
    char restart[TIME_TEXT_MAX], interval[TIME_TEXT_MAX], checkpoint[TIME_TEXT_MAX];
    int y = d->run_top - 16;

    fprintf(d->out, "<text x=\"24\" y=\"%d\" font-weight=\"bold\">", y);
    svg_short_text(d->out, d->c->tapes[0].name, RUN_LETTERS);
    fprintf(d->out,
            "<tspan font-weight=\"normal\">, a restart takes %s, a checkpoint %s, every %s</tspan>"
            "</text>\n",
            time_span(restart, cost->restart_ms), time_span(checkpoint, cost->checkpoint_ms),
            time_span(interval, cost->interval_ms));
    fprintf(d->out,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\"><tspan fill=\"%s\">&#9632;</tspan> slots "
            "offered  <tspan fill=\"%s\">&#9632;</tspan> at work under ",
            RIGHT, y, COLOUR_OFFERED, COLOUR_LEARNS);
    svg_text(d->out, d->c->policies[d->policy].name);
    fprintf(d->out, "  <tspan fill=\"%s\">&#9632;</tspan> the bound's choice</text>\n",
            COLOUR_BOUND);
}

static void run(struct drawing *d)
{
    d->y_max = highest(&d->offered);
    run_title(d);
    fprintf(d->out, "<path fill=\"%s\" stroke=\"%s\" d=\"", FILL_OFFERED, COLOUR_OFFERED);
    steps(d, &d->offered, PART_BOTH);
    fprintf(d->out, "V%d\"/>\n", y_of(d, 0));
    run_axis(d);
    line(d, &d->bound, PART_LEVELS,
         "stroke=\"" COLOUR_BOUND "\" stroke-width=\"5\" stroke-opacity=\".55\"");
    line(d, &d->used, PART_JUMPS,
         "stroke=\"" COLOUR_LEARNS "\" stroke-width=\".7\" stroke-opacity=\".45\"");
    line(d, &d->used, PART_LEVELS, "stroke=\"" COLOUR_LEARNS "\" stroke-width=\"2\"");
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* The policy whose run is shown. */
static size_t shown_policy(const struct compare *c)
{
    size_t best = 0;

    for (size_t p = 0; p < c->n_policies; p++) {
        if (c->policies[p].learns)
            return p;
        if (compare_mean(c, p, COMPARE_ALL, COMPARE_ALL) >
            compare_mean(c, best, COMPARE_ALL, COMPARE_ALL))
            best = p;
    }
    return best;
}

static void draw(struct drawing *d)
{
    int height;

    d->run_top = TOP + (int)d->c->n_tapes * ROW + 12 + 84;
    height = d->run_top + RUN_HEIGHT + 56;
    fprintf(d->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\" font-family=\"Helvetica, Arial, sans-serif\" "
            "font-size=\"12\" fill=\"#333\">\n<title>rescale policies side by side</title>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height, WIDTH, height);
    shares(d);
    run(d);
    fputs("</svg>\n", d->out);
}

int compare_svg(const struct compare *c, FILE *out)
{
    struct drawing *d = mem_zero(NULL, 1, sizeof *d);
    int r;

    if (!d)
        return -ENOMEM;
    d->c = c;
    d->out = out;
    d->policy = shown_policy(c);
    d->cost = c->n_costs / 2;
    d->low = lowest(c);
    r = fill_curves(d);
    if (!r)
        draw(d);
    mem_free(NULL, d);
    if (!r && (fflush(out) != 0 || ferror(out)))
        r = errno ? -errno : -EIO;
    return r;
}

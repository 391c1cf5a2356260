/* chart_svg.c - see chart_svg.h
 *
 * From top to bottom: title and summary; legend; slots offered (area) and parallelism (line), with
 * the states that are not Executing as tinted bands behind; lanes of marks (losses, drains,
 * checkpoints); the states as a strip; the axis. One column of pixels is one column of the series,
 * so shares of a column are heights in the strip: a restart of 10 s in a column of 40 s fills a
 * quarter of it. Colours are those of Okabe and Ito.
 */
#include "sim/chart_svg.h"

#include <errno.h>
#include <inttypes.h>

#include "sim/series.h"
#include "sim/stages.h"
#include "sim/svg.h"
#include "sim/time_text.h"
#include "sim/totals.h"

#define WIDTH 1200
#define TITLE_LETTERS 36 /* of the job, and of the trace */
#define HEIGHT 420
#define LEFT 128
#define RIGHT 1176 /* of the plot */
#define COLUMNS (RIGHT - LEFT)
#define TOP 76
#define AXIS 372 /* where the strip ends and the axis begins */
#define STRIP 26 /* height */
#define LANE 18
#define LANES_MAX 5
#define MARKS_MAX 200       /* checkpoints: more are no marks any more */
#define JUMPS_MAX 200       /* restarts: the jumps of more are only a shade */
#define SERIES_COLUMNS 4096 /* at least twice COLUMNS */
#define GLIMPSE 3           /* height of a state that took hardly any time */

struct drawing {
    const struct chart_svg_options *o;
    const struct totals *totals;
    const struct series *series;
    const struct stages *stages; /* NULL: no rows of vertices */
    struct series_column columns[COLUMNS];
    int bottom; /* of the plot */
    uint32_t y_max;
};

/* clang-format off */
static const struct {
    const char *colour, *tint;
} looks[PLIANT_STATES] = {
    [PLIANT_CREATED] = {"#d9d9d9", "#f2f2f2"},
    [PLIANT_WAITING_FOR_RESOURCES] = {"#e69f00", "#fbecc8"},
    [PLIANT_CREATING_EXECUTION_GRAPH] = {"#56b4e9", "#ddf0fb"},
    [PLIANT_RETRYING_EXECUTION_GRAPH_CREATION] = {"#0072b2", "#cce3f0"},
    [PLIANT_EXECUTING] = {"#bfe3d6", NULL},
    [PLIANT_RESTARTING] = {"#d55e00", "#f7dcc9"},
    [PLIANT_FAILING] = {"#000000", "#cccccc"},
    [PLIANT_CANCELING] = {"#7f7f7f", "#e0e0e0"},
    [PLIANT_STOP_WITH_SAVEPOINT] = {"#cc79a7", "#f4e1eb"},
    [PLIANT_FINISHED] = {"#595959", "#e6e6e6"},
};
/* clang-format on */

#define COLOUR_OFFERED "#8fa9c4"
#define FILL_OFFERED "#dde6ef"
#define COLOUR_PARALLELISM "#08306b"
#define COLOUR_RESTART "#d55e00"
#define COLOUR_REGION "#0072b2"
#define COLOUR_LOST "#000"
#define COLOUR_DRAINED "#a3507f"
#define COLOUR_CHECKPOINT "#7f7f7f"

static void head(const struct drawing *d, FILE *out)
{
    const struct totals *t = d->totals;
    char span[TIME_TEXT_MAX], down[TIME_TEXT_MAX];

    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\" font-family=\"Helvetica, Arial, sans-serif\" "
            "font-size=\"12\" fill=\"#333\">\n<title>",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    svg_text(out, pliant_job_name(d->o->job));
    fprintf(out,
            ": slots, parallelism and states over time</title>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
            "<text x=\"24\" y=\"30\" font-size=\"18\" font-weight=\"bold\" fill=\"#111\">",
            WIDTH, HEIGHT);
    svg_short_text(out, pliant_job_name(d->o->job), TITLE_LETTERS);
    if (d->o->trace) {
        fputs(" <tspan font-weight=\"normal\">on ", out);
        svg_short_text(out, d->o->trace, TITLE_LETTERS);
        fputs("</tspan>", out);
    }
    fprintf(out,
            "</text>\n<text x=\"%d\" y=\"30\" text-anchor=\"end\">%s, %" PRIu64
            " restart%s, %" PRIu64 " rescale%s, downtime %s</text>\n",
            RIGHT, time_span(span, t->now_ms), t->restarts, t->restarts == 1 ? "" : "s",
            t->rescales, t->rescales == 1 ? "" : "s", time_span(down, t->downtime_ms));
}

/* ---- legend ------------------------------------------------------------------------------- */

/* The strip shows time: what took none is not there, and restarts have their own lane. */
static bool shown(const struct totals *t, int state)
{
    return t->state_ms[state] > 0;
}

/* A label and the room that it takes, about: fonts differ. */
static int legend_label(FILE *out, int x, const char *label)
{
    size_t n = 0;

    fprintf(out, "<text x=\"%d\" y=\"58\">%s</text>\n", x, label);
    while (label[n])
        n++;
    return x + (int)n * 13 / 2 + 20;
}

static void legend(const struct drawing *d, FILE *out)
{
    int x = LEFT;

    fprintf(out, "<path d=\"M%d 54h22\" stroke=\"%s\" stroke-width=\"2.5\"/>\n", x,
            COLOUR_PARALLELISM);
    x = legend_label(out, x + 28, "parallelism (widest vertex)");
    fprintf(out, "<rect x=\"%d\" y=\"48\" width=\"22\" height=\"11\" fill=\"%s\" stroke=\"%s\"/>\n",
            x, FILL_OFFERED, COLOUR_OFFERED);
    x = legend_label(out, x + 28, "slots offered");
    for (int i = 0; i < PLIANT_STATES; i++) {
        if (!shown(d->totals, i))
            continue;
        fprintf(out, "<rect x=\"%d\" y=\"48\" width=\"12\" height=\"11\" fill=\"%s\"/>\n", x,
                looks[i].colour);
        x = legend_label(out, x + 17, pliant_state_name((enum pliant_state)i));
    }
}

/* ---- plot --------------------------------------------------------------------------------- */

/* The state that took most of a column. */
static enum pliant_state main_state(const struct series_column *c)
{
    int best = PLIANT_CREATED;

    for (int i = 0; i < PLIANT_STATES; i++)
        if (c->state_ms[i] > c->state_ms[best])
            best = i;
    return (enum pliant_state)best;
}

static void bands(const struct drawing *d, FILE *out)
{
    int from = 0;

    for (int i = 1; i <= COLUMNS; i++) {
        enum pliant_state state = main_state(&d->columns[from]);

        if (i < COLUMNS && main_state(&d->columns[i]) == state)
            continue;
        if (looks[state].tint)
            fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n",
                    LEFT + from, TOP, i - from, d->bottom - TOP, looks[state].tint);
        from = i;
    }
}

/* A y coordinate in tenths of a pixel; written without the locale's decimal point. */
static int64_t y_of(const struct drawing *d, uint32_t value)
{
    return 10 * (int64_t)d->bottom - 10 * (int64_t)(d->bottom - TOP) * value / d->y_max;
}

static void put_y(FILE *out, char command, int64_t y)
{
    fprintf(out, "%c%" PRId64 ".%" PRId64, command, y / 10, y % 10);
}

/* From y to the extremes that lie beyond both ends, then to the end. */
static void put_jump(const struct drawing *d, FILE *out, int64_t y, const struct series_value *v)
{
    int64_t high = y_of(d, v->max), low = y_of(d, v->min), last = y_of(d, v->last);

    if (high < y && high < last)
        put_y(out, 'V', high);
    if (low > y && low > last)
        put_y(out, 'V', low);
    put_y(out, 'V', last);
}

/* Parts of a step line. A restart is a jump down and up again: many of them would hide the levels
 * if all were drawn alike. */
enum part { PART_BOTH, PART_LEVELS, PART_JUMPS };

static void steps(const struct drawing *d, FILE *out, bool offered, enum part part)
{
    int64_t y = 10 * (int64_t)d->bottom;

    fprintf(out, "M%d %d", LEFT, d->bottom);
    for (int i = 0; i < COLUMNS; i++) {
        const struct series_column *column = &d->columns[i];
        const struct series_value *v = offered ? &column->offered : &column->parallelism;

        if (y_of(d, v->min) == y && y_of(d, v->max) == y)
            continue;
        if (part != PART_JUMPS)
            fprintf(out, "H%d", LEFT + i);
        if (part != PART_BOTH) {
            fprintf(out, "M%d", LEFT + i);
            put_y(out, ' ', part == PART_JUMPS ? y : y_of(d, v->last));
        }
        if (part != PART_LEVELS)
            put_jump(d, out, y, v);
        y = y_of(d, v->last);
    }
    if (part != PART_JUMPS)
        fprintf(out, "H%d", RIGHT);
}

static void y_axis(const struct drawing *d, FILE *out)
{
    uint32_t step = svg_round_step(d->y_max);

    for (uint32_t v = 0; v <= d->y_max; v += step) {
        int y = (int)(y_of(d, v) / 10);

        fprintf(out,
                "<path d=\"M%d %d.5H%d\" stroke=\"#000\" stroke-opacity=\".12\"/>"
                "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%" PRIu32 "</text>\n",
                LEFT, y, RIGHT, LEFT - 8, y + 4, v);
    }
    fprintf(out,
            "<text transform=\"translate(48 %d) rotate(-90)\" text-anchor=\"middle\" "
            "fill=\"#666\">slots, subtasks</text>\n",
            (TOP + d->bottom) / 2);
}

static void line(const struct drawing *d, FILE *out, enum part part, const char *style)
{
    fprintf(out, "<path fill=\"none\" stroke=\"%s\" %s d=\"", COLOUR_PARALLELISM, style);
    steps(d, out, false, part);
    fputs("\"/>\n", out);
}

static void plot(const struct drawing *d, FILE *out)
{
    bands(d, out);
    fprintf(out, "<path fill=\"%s\" fill-opacity=\".7\" stroke=\"%s\" d=\"", FILL_OFFERED,
            COLOUR_OFFERED);
    steps(d, out, true, PART_BOTH);
    fprintf(out, "V%d\"/>\n", d->bottom);
    y_axis(d, out);
    line(d, out, PART_JUMPS,
         d->totals->restarts > JUMPS_MAX ? "stroke-width=\".6\" stroke-opacity=\".4\""
                                         : "stroke-width=\".8\"");
    line(d, out, PART_LEVELS, "stroke-width=\"2.5\"");
}

/* ---- lanes of marks ----------------------------------------------------------------------- */

struct lane {
    const char *label, *colour;
    uint64_t total;
    uint32_t (*marks)(const struct series_column *c);
};

static uint32_t restarts(const struct series_column *c)
{
    return c->restarts;
}

static uint32_t region_restarts(const struct series_column *c)
{
    return c->region_restarts;
}

static uint32_t lost(const struct series_column *c)
{
    return c->lost;
}

static uint32_t drained(const struct series_column *c)
{
    return c->drained;
}

static uint32_t checkpoints(const struct series_column *c)
{
    return c->checkpoints;
}

/* Those in which there is something to see. */
static int lanes_of(const struct totals *t, struct lane lanes[LANES_MAX])
{
    int n = 0;

    if (t->restarts)
        lanes[n++] = (struct lane){"restarts", COLOUR_RESTART, t->restarts, restarts};
    if (t->region_restarts)
        lanes[n++] = (struct lane){"regions", COLOUR_REGION, t->region_restarts, region_restarts};
    if (t->nodes_lost)
        lanes[n++] = (struct lane){"nodes lost", COLOUR_LOST, t->nodes_lost, lost};
    if (t->nodes_drained)
        lanes[n++] = (struct lane){"drained", COLOUR_DRAINED, t->nodes_drained, drained};
    if (t->checkpoints_completed && t->checkpoints_completed <= MARKS_MAX)
        lanes[n++] =
            (struct lane){"checkpoints", COLOUR_CHECKPOINT, t->checkpoints_completed, checkpoints};
    return n;
}

static void draw_lane(const struct drawing *d, FILE *out, const struct lane *lane, int y)
{
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s %" PRIu64 "</text>\n", LEFT - 8,
            y + 12, lane->label, lane->total);
    fprintf(out, "<path stroke=\"%s\" stroke-width=\"%s\" d=\"", lane->colour,
            lane->marks == checkpoints ? "1" : "2");
    for (int i = 0; i < COLUMNS; i++)
        if (lane->marks(&d->columns[i]))
            fprintf(out, "M%d %dv%d", LEFT + i, y + 3, LANE - 7);
    fputs("\"/>\n", out);
}

/* ---- rows of vertices --------------------------------------------------------------------- */

#define ROWS_MAX 6
#define ROW_NAME_MAX 14

static int rows_of(const struct drawing *d)
{
    if (!d->stages || !d->stages->by_region)
        return 0;
    return d->stages->n < ROWS_MAX ? (int)d->stages->n : ROWS_MAX;
}

/* The share of a vertex's tasks that run, as height. */
static void draw_row(const struct drawing *d, FILE *out, uint32_t v, int y)
{
    const char *name = pliant_job_vertex_name(d->o->job, (pliant_vertex_id){v + 1});
    char shown[ROW_NAME_MAX + 1];
    double row[COLUMNS];
    size_t tasks = d->stages->v[v].tasks.n;
    int height = LANE - 4, last = 0;

    snprintf(shown, sizeof shown, "%s", name);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 8, y + 12);
    svg_text(out, shown);
    fprintf(out, " %zu</text>\n<path fill=\"%s\" d=\"M%d %d", tasks, COLOUR_PARALLELISM, LEFT,
            y + LANE - 2);
    stages_row(d->stages, v, row, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        int now = tasks > 0 ? (int)(row[i] / (double)tasks * height + 0.5) : 0;

        if (now == 0 && row[i] > 0)
            now = 1;
        if (now != last)
            fprintf(out, "H%dV%d", LEFT + i, y + LANE - 2 - now);
        last = now;
    }
    fprintf(out, "H%dV%dz\"/>\n", RIGHT, y + LANE - 2);
}

/* ---- states ------------------------------------------------------------------------------- */

/* Height of a state in a column of the strip, from 0 to STRIP. */
static int height_of(const struct series_column *c, int state)
{
    int height;

    if (c->state_ms[state] == 0)
        return 0;
    height = (int)((double)c->state_ms[state] / series_column_ms(c) * STRIP + 0.5);
    return height > GLIMPSE ? height : GLIMPSE;
}

/* From where to where the state fills the column, from the top: the state of most of the time
 * is the ground, the others hang from the top. */
static void extent(const struct series_column *c, int state, int *ret_from, int *ret_to)
{
    enum pliant_state ground = main_state(c);
    int from = 0, height;

    for (int i = 0; i < state; i++)
        from += i == (int)ground ? 0 : height_of(c, i);
    height = state == (int)ground ? STRIP : height_of(c, state);
    *ret_from = state == (int)ground ? 0 : from < STRIP ? from : STRIP;
    *ret_to = *ret_from + height < STRIP ? *ret_from + height : STRIP;
}

/* All that one state fills, as ground or hanging, in one path. */
static void strip_of(const struct drawing *d, FILE *out, int state, bool ground)
{
    int start = 0, from, to, last_from = 0, last_to = 0;
    bool any = false;

    for (int i = 0; i <= COLUMNS; i++) {
        from = to = 0;
        if (i < COLUMNS && ((int)main_state(&d->columns[i]) == state) == ground)
            extent(&d->columns[i], state, &from, &to);
        if (from == last_from && to == last_to)
            continue;
        if (last_from != last_to) {
            if (!any)
                fprintf(out, "<path fill=\"%s\" d=\"", looks[state].colour);
            any = true;
            fprintf(out, "M%d %dH%dv%dH%dz", LEFT + start, AXIS - STRIP + last_from, LEFT + i,
                    last_to - last_from, LEFT + start);
        }
        start = i;
        last_from = from;
        last_to = to;
    }
    if (any)
        fputs("\"/>\n", out);
}

static void strip(const struct drawing *d, FILE *out)
{
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">state</text>\n", LEFT - 8,
            AXIS - STRIP / 2 + 4);
    for (int ground = 1; ground >= 0; ground--)
        for (int i = 0; i < PLIANT_STATES; i++)
            if (shown(d->totals, i))
                strip_of(d, out, i, ground);
}

static void draw(struct drawing *d, FILE *out)
{
    struct lane lanes[LANES_MAX];
    int n = lanes_of(d->totals, lanes), n_rows = rows_of(d);

    series_resample(d->series, d->columns, COLUMNS);
    d->bottom = AXIS - STRIP - 10 - (n + n_rows) * LANE;
    d->y_max = series_highest(d->columns, COLUMNS);
    head(d, out);
    legend(d, out);
    plot(d, out);
    for (int i = 0; i < n; i++)
        draw_lane(d, out, &lanes[i], d->bottom + 6 + i * LANE);
    for (int i = 0; i < n_rows; i++)
        draw_row(d, out, (uint32_t)i, d->bottom + 6 + (n + i) * LANE);
    strip(d, out);
    svg_time_axis(out, &(struct svg_time_axis){.left = LEFT,
                                               .right = RIGHT,
                                               .top = TOP,
                                               .bottom = d->bottom,
                                               .base = AXIS,
                                               .extent_ms = series_extent_ms(d->series)});
    fputs("</svg>\n", out);
}

int chart_svg_draw(const struct chart_svg_options *options, const struct totals *totals,
                   const struct series *series, const struct stages *stages)
{
    struct drawing *d = mem_zero(NULL, 1, sizeof *d);

    if (!d)
        return -ENOMEM;
    d->o = options;
    d->totals = totals;
    d->series = series;
    d->stages = stages;
    draw(d, options->out);
    mem_free(NULL, d);
    if (fflush(options->out) != 0 || ferror(options->out))
        return errno ? -errno : -EIO;
    return 0;
}

/* ---- the observer --------------------------------------------------------------------------- */

struct chart {
    struct sim_observer observer; /* first: the simulator knows a chart by its address */
    struct chart_svg_options o;
    struct view view;
    struct totals totals;
    struct series series;
    struct stages stages;
};

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct chart *c = (struct chart *)o;
    int rc;

    view_take(&c->view, step);
    series_take(&c->series, &c->view);
    rc = stages_take(&c->stages, &c->view);
    return rc == 0 ? totals_take(&c->totals, &c->view) : rc;
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    struct chart *c = (struct chart *)o;
    int rc = totals_end(&c->totals, end_ms);

    (void)sched; /* the last step told all */
    series_end(&c->series, end_ms);
    stages_end(&c->stages, end_ms);
    return rc == 0 ? chart_svg_draw(&c->o, &c->totals, &c->series, &c->stages) : rc;
}

int chart_svg_new(const struct chart_svg_options *options, struct sim_observer **ret)
{
    struct chart *c = mem_zero(NULL, 1, sizeof *c);
    struct sim_observer *o = (struct sim_observer *)c;

    if (!c)
        return -ENOMEM;
    c->observer = (struct sim_observer){.on_step = on_step, .on_end = on_end};
    c->o = *options;
    if (view_init(&c->view, options->job) < 0 ||
        totals_init(&c->totals, pliant_job_vertices(options->job)) < 0 ||
        series_init(&c->series, SERIES_COLUMNS) < 0 ||
        stages_init(&c->stages, pliant_job_vertices(options->job), SERIES_COLUMNS) < 0) {
        chart_svg_destroy(&o);
        return -ENOMEM;
    }
    *ret = o;
    return 0;
}

void chart_svg_destroy(struct sim_observer **o)
{
    struct chart *c = (struct chart *)*o;

    if (!c)
        return;
    stages_free(&c->stages);
    series_free(&c->series);
    totals_free(&c->totals);
    view_free(&c->view);
    mem_free(NULL, c);
    *o = NULL;
}

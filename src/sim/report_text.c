/* report_text.c - a run for people: a timeline, a picture of it, and totals
 *
 * A line for each change of state, and for what else a person wants to know of: wishes, drains
 * that concern the job, checkpoints that failed. Then, when the run is over, parallelism over time
 * as blocks, and the totals. In a terminal without UTF-8 blocks become '#' and '.'.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sim/report_impl.h"
#include "sim/sentence.h"
#include "sim/series.h"
#include "sim/stages.h"
#include "sim/time_text.h"

#define SERIES_COLUMNS 1024
#define WIDTH_DEFAULT 80
#define WIDTH_MIN 40
#define WIDTH_MAX 240
#define PICTURE_ROWS 8
#define PICTURE_MARGIN 8 /* columns for the numbers of slots and their line */
#define STATES_WIDTH 44  /* "WaitingForResources > CreatingExecutionGraph" */
#define GROUP_NAMES 3
#define RERUN_MS 60000 /* restarts of regions within that time share a line */
#define WHAT_DRAIN "  drain"
#define WHAT_LOST "  lost"
#define SHARE_ROWS_MAX 16
#define SHARE_BAR_MAX 30
#define VERTEX_ROWS_MAX 24

/* Nodes of one instant that share a line. */
struct group {
    const char *what; /* "drain", "lost"; NULL: there is none */
    int64_t at_ms, deadline_at_ms;
    uint8_t reason; /* enum pliant_drain_reason */
    uint32_t n;
    char names[GROUP_NAMES * (PLIANT_NAME_MAX + 2)]; /* the first ones, with commas */
};

/* Restarts of regions that share a line. */
struct rerun {
    uint32_t n; /* restarts; 0: there is none */
    int64_t at_ms;
    uint64_t tasks, failures;
    char first[2 * PLIANT_NAME_MAX + 32]; /* what failed first */
};

struct text_report {
    struct report report;
    struct series series;
    struct stages stages;
    struct group group; /* not shown yet: more nodes may follow */
    struct rerun rerun; /* not shown yet: more restarts may follow */
    int time_width;
    unsigned width; /* of the picture, in columns */
    struct series_column columns[WIDTH_MAX];
};

static int init(struct report *r)
{
    struct text_report *text = (struct text_report *)r;
    int rc = series_init(&text->series, SERIES_COLUMNS);

    return rc == 0 ? stages_init(&text->stages, r->view.n_vertices, SERIES_COLUMNS) : rc;
}

static void free_text(struct report *r)
{
    series_free(&((struct text_report *)r)->series);
    stages_free(&((struct text_report *)r)->stages);
}

/* ---- timeline --------------------------------------------------------------------------- */

static int begin(struct report *r)
{
    struct text_report *text = (struct text_report *)r;
    unsigned width = r->o.width ? r->o.width : WIDTH_DEFAULT;
    char time[TIME_TEXT_MAX] = "10:00:00.000";

    if (r->o.expected_end_ms != PLIANT_NEVER)
        time_stopwatch(time, r->o.expected_end_ms);
    text->time_width = strlen(time) > 9 ? (int)strlen(time) : 9;
    text->width = width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
    fprintf(r->o.out, "Job %s, %" PRIu32 " %s", pliant_job_name(r->o.job), r->view.n_vertices,
            r->view.n_vertices == 1 ? "vertex" : "vertices");
    if (r->o.trace) {
        fputs(", on the trace ", r->o.out);
        sentence_text(r->o.out, r->o.trace);
    }
    fputs("\n\n", r->o.out);
    return report_written(r);
}

static FILE *line_at(const struct text_report *t, int64_t at_ms, const char *what)
{
    char time[TIME_TEXT_MAX];

    fprintf(t->report.o.out, "%*s  %-*s  ", t->time_width, time_stopwatch(time, at_ms),
            STATES_WIDTH, what);
    return t->report.o.out;
}

static void show_group(struct text_report *t)
{
    struct group *g = &t->group;
    char time[TIME_TEXT_MAX];
    FILE *out;

    if (!g->what)
        return;
    out = line_at(t, g->at_ms, g->what);
    sentence_text(out, g->names);
    if (g->n > GROUP_NAMES)
        fprintf(out, " and %" PRIu32 " more", g->n - GROUP_NAMES);
    if (strcmp(g->what, WHAT_LOST) == 0)
        fputs(" lost as well", out);
    else
        fprintf(out, " will go (%s)",
                pliant_drain_reason_name((enum pliant_drain_reason)g->reason));
    if (g->deadline_at_ms != PLIANT_NEVER)
        fprintf(out, " by %s", time_stopwatch(time, g->deadline_at_ms));
    fputc('\n', out);
    g->what = NULL;
}

static void show_rerun(struct text_report *t)
{
    struct rerun *n = &t->rerun;
    FILE *out;

    if (n->n == 0)
        return;
    out = line_at(t, n->at_ms, "  regions");
    fprintf(out, "%" PRIu64 " task%s again", n->tasks, n->tasks == 1 ? "" : "s");
    if (n->n > 1)
        fprintf(out, " in %" PRIu32 " restarts", n->n);
    if (n->failures > 0) {
        fputs(": ", out);
        sentence_text(out, n->first);
    }
    if (n->failures > 1)
        fprintf(out, ", %" PRIu64 " more failures", n->failures - 1);
    fputc('\n', out);
    *n = (struct rerun){0};
}

/* A node with what it has in common with others; they stand in one line. */
static void group(struct text_report *t, const struct group *common, const char *name)
{
    struct group *g = &t->group;
    size_t n;

    if (!g->what || strcmp(g->what, common->what) != 0 || g->at_ms != common->at_ms ||
        g->deadline_at_ms != common->deadline_at_ms || g->reason != common->reason) {
        show_group(t);
        *g = *common;
    }
    if (g->n++ >= GROUP_NAMES)
        return;
    n = strlen(g->names);
    snprintf(g->names + n, sizeof g->names - n, "%s%s", n ? ", " : "", name);
}

/* The time and what it is about; the rest of the line is the caller's. */
static FILE *line(struct report *r, const char *what)
{
    struct text_report *t = (struct text_report *)r;

    show_group(t);
    show_rerun(t);
    return line_at(t, r->view.at_ms, what);
}

static void show_change(struct report *r, const struct pliant_action *a)
{
    char states[96];

    snprintf(states, sizeof states, "%s > %s", pliant_state_name((enum pliant_state)a->flag[0]),
             pliant_state_name((enum pliant_state)a->flag[1]));
    sentence_of_change(line(r, states), &r->view, a);
    fputc('\n', r->o.out);
}

static void show_drain(struct report *r, const struct pliant_action *a)
{
    const struct group common = {.what = WHAT_DRAIN,
                                 .at_ms = r->view.at_ms,
                                 .deadline_at_ms = a->notify.deadline_at_ms,
                                 .reason = a->flag[0]};

    group((struct text_report *)r, &common, r->view.node_name(r->view.sched, a->notify.node));
}

/* A node that is lost while the job goes down already. */
static void show_loss(struct report *r)
{
    const struct group common = {
        .what = WHAT_LOST, .at_ms = r->view.at_ms, .deadline_at_ms = PLIANT_NEVER};

    group((struct text_report *)r, &common, r->view.event->node.name);
}

static void show_judgement(struct report *r, const struct pliant_action *a)
{
    sentence_of_judgement(line(r, "  judged"), a);
    fputc('\n', r->o.out);
}

static void show_savepoint(struct report *r, const struct pliant_action *a)
{
    FILE *out = line(r, "  savepoint");

    if (a->savepoint.path)
        fputs("done: ", out);
    else
        fputs("failed: ", out);
    sentence_text(out, a->savepoint.path ? a->savepoint.path : a->savepoint.cause);
    fputc('\n', out);
}

/* Of the root; what failed is told already. */
static void show_labels(struct report *r, const struct pliant_failure_item *root)
{
    if (root->n_labels == 0)
        return;
    line(r, "  labels");
    for (uint32_t i = 0; i < root->n_labels; i++) {
        fprintf(r->o.out, "%s%s=", i > 0 ? ", " : "", root->labels[i].key);
        sentence_text(r->o.out, root->labels[i].value);
    }
    fputc('\n', r->o.out);
}

static void show_action(struct report *r, const struct pliant_action *a)
{
    if (a->kind == PLIANT_ACT_STATE_CHANGED) {
        show_change(r, a);
    } else if (a->kind == PLIANT_ACT_NOTIFY) {
        show_drain(r, a);
    } else if (a->kind == PLIANT_ACT_SAVEPOINT_ENDED) {
        show_savepoint(r, a);
    } else if (a->kind == PLIANT_ACT_RESCALE_JUDGED) {
        show_judgement(r, a);
    } else if (a->kind == PLIANT_ACT_FAILURE) {
        show_labels(r, &a->failure.entry->items[0]);
    } else if (a->kind == PLIANT_ACT_REFUSED) {
        sentence_of_refusal(line(r, "  refused"), &r->view, a);
        fputc('\n', r->o.out);
    } else if (a->kind == PLIANT_ACT_DECIDED) {
        fprintf(line(r, "  stage"), "%s: %" PRIu32 " tasks for %" PRIu64 " bytes\n",
                pliant_job_vertex_name(r->view.job, a->decided.vertex), a->decided.parallelism,
                a->decided.bytes);
    } else if (a->kind == PLIANT_ACT_BLOCK_NODE) {
        char time[TIME_TEXT_MAX];

        sentence_text(line(r, "  blocked"), r->view.node_name(r->view.sched, a->blocked.node));
        fprintf(r->o.out, " is slow: nothing new there until %s or later\n",
                time_stopwatch(time, a->blocked.until_at_ms));
    } else if (a->kind == PLIANT_ACT_GIVE_UP_NODE) {
        sentence_text(line(r, "  given up"), r->view.node_name(r->view.sched, a->node.node));
        fputs(" does not confirm that its tasks are down\n", r->o.out);
    }
}

static bool has_action(const struct view *v, enum pliant_action_kind kind)
{
    for (size_t i = 0; i < v->actions->n; i++)
        if (v->actions->v[i].kind == kind)
            return true;
    return false;
}

static void show_requirements(struct report *r)
{
    const struct pliant_event *ev = r->view.event;
    FILE *out = line(r, "  requirements");

    for (size_t i = 0; i < ev->requirements.n && i < VERTEX_ROWS_MAX; i++) {
        const struct pliant_bounds *b = &ev->requirements.v[i];

        fprintf(out, "%s%s ", i ? ", " : "", b->vertex);
        if (b->min == b->max)
            fprintf(out, "%" PRId64, b->min);
        else
            fprintf(out, "%" PRId64 " to %" PRId64, b->min < 0 ? 1 : b->min, b->max);
    }
    fputs(ev->requirements.n > VERTEX_ROWS_MAX ? ", ...\n" : "\n", out);
}

static void show_event(struct report *r)
{
    const struct pliant_event *ev = r->view.event;

    if (view_ignored(&r->view) || has_action(&r->view, PLIANT_ACT_REFUSED))
        return;
    if (view_node_news(&r->view) == VIEW_NODE_LOST && r->view.state == PLIANT_RESTARTING &&
        r->view.counts.slots_used < r->view.before.slots_used &&
        !has_action(&r->view, PLIANT_ACT_STATE_CHANGED)) {
        show_loss(r);
    } else if (ev->kind == PLIANT_EV_REQUIREMENTS) {
        show_requirements(r);
    } else if (ev->kind == PLIANT_EV_CHECKPOINT_FAILED) {
        fprintf(line(r, "  checkpoint"), "%" PRIu64 " failed", ev->checkpoint.id);
        if (ev->checkpoint.cause && *ev->checkpoint.cause) {
            fputs(": ", r->o.out);
            sentence_text(r->o.out, ev->checkpoint.cause);
        }
        fputc('\n', r->o.out);
    }
}

/* What fails without that the state changes: regions will restart for it. */
static void note_failure(struct text_report *t)
{
    const struct view *v = &t->report.view;
    const struct pliant_event *ev = v->event;
    struct rerun *n = &t->rerun;

    if (view_ignored(v) || v->state != PLIANT_EXECUTING ||
        (ev->kind != PLIANT_EV_TASK_FAILED && ev->kind != PLIANT_EV_NODE_LOST))
        return;
    if (n->failures++ > 0)
        return;
    if (ev->kind == PLIANT_EV_NODE_LOST)
        snprintf(n->first, sizeof n->first, "%s lost", ev->node.name);
    else
        snprintf(n->first, sizeof n->first, "%s/%" PRIu32 " failed",
                 pliant_job_vertex_name(v->job, ev->failure.task.vertex), ev->failure.task.subtask);
}

static void note_restarts(struct text_report *t)
{
    const struct view *v = &t->report.view;
    struct rerun *n = &t->rerun;
    uint32_t tasks = stages_restart_now(&t->stages);

    if (tasks > 0) {
        n->at_ms = n->n++ == 0 ? v->at_ms : n->at_ms;
        n->tasks += tasks;
    }
    if (n->n > 0 && v->at_ms - n->at_ms > RERUN_MS)
        show_rerun(t);
}

static void show_speculation(struct report *r)
{
    const struct text_report *t = (struct text_report *)r;
    const char *comma = "";
    FILE *out;

    if (stages_speculate_now(&t->stages) == 0)
        return;
    out = line(r, "  speculation");
    for (uint32_t v = 0; v < t->stages.n; v++) {
        uint32_t n = t->stages.v[v].speculative_now;

        if (n == 0)
            continue;
        fprintf(out, "%s%" PRIu32 " attempt%s more of %s", comma, n, n == 1 ? "" : "s",
                pliant_job_vertex_name(r->o.job, (pliant_vertex_id){v + 1}));
        comma = ", ";
    }
    fputc('\n', out);
}

static int step(struct report *r)
{
    struct text_report *t = (struct text_report *)r;
    int rc = stages_take(&t->stages, &r->view);

    if (rc < 0)
        return rc;
    series_take(&t->series, &r->view);
    if (t->group.what && t->group.at_ms != r->view.at_ms)
        show_group(t);
    note_failure(t);
    note_restarts(t);
    show_speculation(r);
    show_event(r);
    for (size_t i = 0; i < r->view.actions->n; i++)
        show_action(r, &r->view.actions->v[i]);
    return report_written(r);
}

/* ---- picture ---------------------------------------------------------------------------- */

/* A cell of the row that shows values from `low` on, `per_row` a row. */
static const char *cell(const struct text_report *t, const struct series_column *c, double low,
                        double per_row)
{
    static const char *const eighths[] = {"",       "\u2581", "\u2582", "\u2583", "\u2584",
                                          "\u2585", "\u2586", "\u2587", "\u2588"};
    double ms = series_column_ms(c) > 0 ? series_column_ms(c) : 1;
    double filled = (c->parallelism.area / ms - low) / per_row;
    double offered = (c->offered.area / ms - low) / per_row;
    int eighth = filled >= 1 ? 8 : filled <= 0 ? 0 : (int)(filled * 8 + 0.5);

    if (t->report.o.ascii)
        return filled >= 0.5 ? "#" : offered >= 0.5 ? "." : " ";
    if (eighth == 0)
        return offered >= 0.5 ? "\u2591" : " ";
    return eighths[eighth];
}

static void picture_axis(const struct text_report *t, int64_t extent_ms, unsigned n)
{
    FILE *out = t->report.o.out;
    int64_t step = time_tick_step(extent_ms, n / 9);
    char label[TIME_TEXT_MAX];
    unsigned at = 0, column;

    fprintf(out, "%*s", PICTURE_MARGIN, "");
    for (int64_t ms = 0; ms < extent_ms; ms += step) {
        column = (unsigned)((double)ms / (double)extent_ms * n);
        time_tick(label, ms, step, extent_ms);
        if (column < at || column + strlen(label) > n)
            continue;
        fprintf(out, "%*s%s", (int)(column - at), "", label);
        at = column + (unsigned)strlen(label);
    }
    fprintf(out, " %s\n", time_tick_unit(step, extent_ms));
}

static void picture(struct text_report *t)
{
    FILE *out = t->report.o.out;
    unsigned n = t->width - PICTURE_MARGIN - 1;
    int64_t extent_ms = series_extent_ms(&t->series);
    uint32_t most, rows;
    double per_row;

    series_resample(&t->series, t->columns, n);
    most = series_highest(t->columns, n);
    rows = most < PICTURE_ROWS ? most : PICTURE_ROWS;
    per_row = (double)most / rows;
    fprintf(out, "\n%*s %s parallelism   %s slots offered\n", PICTURE_MARGIN - 1, "",
            t->report.o.ascii ? "#" : "\u2588", t->report.o.ascii ? "." : "\u2591");
    for (uint32_t row = rows; row-- > 0;) {
        if (row == rows - 1)
            fprintf(out, "%*" PRIu32 " |", PICTURE_MARGIN - 2, most);
        else
            fprintf(out, "%*s |", PICTURE_MARGIN - 2, "");
        for (unsigned i = 0; i < n; i++)
            fputs(cell(t, &t->columns[i], row * per_row, per_row), out);
        fputc('\n', out);
    }
    fprintf(out, "%*d +", PICTURE_MARGIN - 2, 0);
    for (unsigned i = 0; i < n; i++)
        fputc('-', out);
    fputc('\n', out);
    picture_axis(t, extent_ms, n);
}

/* ---- tasks of each vertex ----------------------------------------------------------------- */

/* A row over the same time as the picture: the share of the vertex's tasks that run. */
static void stage_row(const struct text_report *t, uint32_t v, unsigned n)
{
    static const char *const eighths[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                          "\u2585", "\u2586", "\u2587", "\u2588"};
    FILE *out = t->report.o.out;
    uint32_t tasks = t->report.view.parallelism[v];
    double row[WIDTH_MAX];

    stages_row(&t->stages, v, row, n);
    fprintf(out, "%*" PRIu32 " |", PICTURE_MARGIN - 2, tasks);
    for (unsigned i = 0; i < n; i++) {
        double share = tasks > 0 ? row[i] / tasks : 0;
        int eighth = share <= 0 ? 0 : share >= 1 ? 8 : 1 + (int)(share * 7);

        fputs(t->report.o.ascii ? (share >= 0.5 ? "#"
                                   : share > 0  ? "."
                                                : " ")
                                : eighths[eighth],
              out);
    }
    fprintf(out, "\n%*s |", PICTURE_MARGIN - 2, "");
    sentence_text(out, pliant_job_vertex_name(t->report.o.job, (pliant_vertex_id){v + 1}));
    fputc('\n', out);
}

static void stage_rows(const struct text_report *t)
{
    if (!t->stages.by_region)
        return;
    fprintf(t->report.o.out, "\n%*s tasks of each vertex that run\n", PICTURE_MARGIN - 1, "");
    for (uint32_t v = 0; v < t->stages.n && v < STAGES_SHOWN; v++)
        stage_row(t, v, t->width - PICTURE_MARGIN - 1);
}

static void stage_totals(const struct text_report *t)
{
    FILE *out = t->report.o.out;
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];

    if (!t->stages.by_region)
        return;
    fprintf(out, "\n  %-24s %7s %9s %9s %12s %12s %12s\n", "vertex", "tasks", "attempts",
            "restarted", "speculative", "first start", "last end");
    for (uint32_t v = 0; v < t->stages.n && v < VERTEX_ROWS_MAX; v++) {
        const struct stage *stage = &t->stages.v[v];

        fprintf(out, "  %-24s %7" PRIu32 " %9" PRIu64 " %9" PRIu64 " %12" PRIu64 " %12s %12s\n",
                pliant_job_vertex_name(t->report.o.job, (pliant_vertex_id){v + 1}),
                t->report.view.parallelism[v], stage->attempts, stage->restarted,
                stage->speculative,
                stage->first_start_at_ms == PLIANT_NEVER
                    ? "-"
                    : time_stopwatch(from, stage->first_start_at_ms),
                stage->last_end_at_ms == PLIANT_NEVER ? "-"
                                                      : time_stopwatch(to, stage->last_end_at_ms));
    }
}

/* ---- totals ----------------------------------------------------------------------------- */

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* "12 for rescale, 3 for node loss" */
static void by_cause(FILE *out, const uint64_t count[PLIANT_REASONS])
{
    const char *comma = "";

    for (int i = 0; i < PLIANT_REASONS; i++)
        if (count[i]) {
            fprintf(out, "%s%" PRIu64 " %s", comma, count[i],
                    sentence_of_cause((enum pliant_reason)i));
            comma = ", ";
        }
}

static void restart_totals(FILE *out, const struct totals *t)
{
    fprintf(out, "  %-16s %12" PRIu64 "  ", "restarts", t->restarts);
    by_cause(out, t->restarts_by);
    fprintf(out, "\n  %-16s %12" PRIu64 "  ", "rescales", t->rescales);
    if (t->rescales) {
        fprintf(out, "%" PRIu64 " up, %" PRIu64 " down; after ", t->rescales_up, t->rescales_down);
        by_cause(out, t->rescales_by);
    }
    fputc('\n', out);
}

static void downtime_totals(FILE *out, const struct totals *t)
{
    char down[TIME_TEXT_MAX], life[TIME_TEXT_MAX], longest[TIME_TEXT_MAX];
    int64_t life_ms = totals_lifetime_ms(t);

    fprintf(out, "  %-16s %12s  %.2f %% of %s since the first start, longest %s\n", "downtime",
            time_span(down, t->downtime_ms), percent((double)t->downtime_ms, (double)life_ms),
            time_span(life, life_ms), time_span(longest, t->downtime_longest_ms));
}

static void usage_totals(FILE *out, const struct totals *t)
{
    double offered = (double)t->slot_ms_offered, used = (double)t->slot_ms_used;

    fprintf(out, "  %-16s %12.0f  slot-seconds\n", "slots offered", offered / 1000);
    fprintf(out, "  %-16s %12.0f  slot-seconds, %.1f %%\n", "slots used", used / 1000,
            percent(used, offered));
    fprintf(out, "  %-16s %12" PRIu64 "  completed, %" PRIu64 " failed\n", "checkpoints",
            t->checkpoints_completed, t->checkpoints_failed);
    fprintf(out, "  %-16s %12" PRIu64 "  joined, %" PRIu64 " lost", "nodes", t->nodes_joined,
            t->nodes_lost);
    if (t->nodes_drained)
        fprintf(out, ", %" PRIu64 " drained (%" PRIu64 " left, %" PRIu64 " withdrawn)",
                t->nodes_drained, t->nodes_left, t->drains_withdrawn);
    fprintf(out, "\n  %-16s %12" PRIu64 "\n", "events ignored", t->events_ignored);
}

static void state_totals(FILE *out, const struct totals *t)
{
    char span[TIME_TEXT_MAX];

    fprintf(out, "\n  %-32s %14s %7s %8s\n", "state", "time", "share", "entered");
    for (int i = 0; i < PLIANT_STATES; i++)
        if (t->state_visits[i])
            fprintf(out, "  %-32s %14s %5.1f %% %8" PRIu64 "\n",
                    pliant_state_name((enum pliant_state)i), time_span(span, t->state_ms[i]),
                    percent((double)t->state_ms[i], (double)t->now_ms), t->state_visits[i]);
}

static void share_row(const struct report *r, uint32_t low, uint32_t high, int64_t ms, double share)
{
    FILE *out = r->o.out;
    char span[TIME_TEXT_MAX], range[32];

    if (low == high)
        snprintf(range, sizeof range, "%" PRIu32, low);
    else
        snprintf(range, sizeof range, "%" PRIu32 " to %" PRIu32, low, high);
    fprintf(out, "  %-16s %14s %5.1f %%  ", range, time_span(span, ms), 100 * share);
    for (int i = 0; i < (int)(share * SHARE_BAR_MAX + 0.5); i++)
        fputs(r->o.ascii ? "#" : "\u2588", out);
    fputc('\n', out);
}

/* Time at each parallelism; neighbours share a row where there are too many, 0 never does. */
static void share_totals(const struct report *r)
{
    const struct totals_shares *at = &r->totals.at;
    size_t per_row = (at->n + SHARE_ROWS_MAX - 1) / SHARE_ROWS_MAX, last;
    int64_t life_ms = totals_lifetime_ms(&r->totals), ms;

    if (at->n == 0)
        return;
    fprintf(r->o.out, "\n  %-16s %14s %7s\n", "parallelism", "time", "share");
    for (size_t i = 0; i < at->n; i = last + 1) {
        last = i + per_row < at->n ? i + per_row - 1 : at->n - 1;
        if (at->v[i].parallelism == 0)
            last = i;
        ms = 0;
        for (size_t k = i; k <= last; k++)
            ms += at->v[k].ms;
        share_row(r, at->v[i].parallelism, at->v[last].parallelism, ms,
                  (double)ms / (double)life_ms);
    }
}

static double mean(const struct totals_shares *at)
{
    double sum = 0, ms = 0;

    for (size_t i = 0; i < at->n; i++) {
        sum += (double)at->v[i].parallelism * (double)at->v[i].ms;
        ms += (double)at->v[i].ms;
    }
    return ms > 0 ? sum / ms : 0;
}

/* Each vertex, unless one speaks for all. */
static void vertex_totals(const struct report *r)
{
    const struct totals *t = &r->totals;
    bool differ = false;

    for (uint32_t i = 0; i < t->n_vertices; i++)
        differ |= mean(&t->vertices[i]) != mean(&t->at);
    if (!differ)
        return;
    fprintf(r->o.out, "\n  %-32s %9s %9s\n", "vertex", "mean", "highest");
    for (uint32_t i = 0; i < t->n_vertices && i < VERTEX_ROWS_MAX; i++) {
        const struct totals_shares *at = &t->vertices[i];

        fprintf(r->o.out, "  %-32s %9.2f %9" PRIu32 "\n",
                pliant_job_vertex_name(r->o.job, (pliant_vertex_id){i + 1}), mean(at),
                at->n ? at->v[at->n - 1].parallelism : 0);
    }
    if (t->n_vertices > VERTEX_ROWS_MAX)
        fprintf(r->o.out, "  and %" PRIu32 " more\n", t->n_vertices - VERTEX_ROWS_MAX);
}

static int end(struct report *r)
{
    struct text_report *text = (struct text_report *)r;
    const struct totals *t = &r->totals;
    char span[TIME_TEXT_MAX];

    show_group(text);
    show_rerun(text);
    series_end(&text->series, t->now_ms);
    stages_end(&text->stages, t->now_ms);
    picture(text);
    stage_rows(text);
    fprintf(r->o.out, "\nAfter %s the job is %s, the scheduler in %s\n\n",
            time_span(span, t->now_ms), pliant_job_status_name(t->status),
            pliant_state_name(t->state));
    restart_totals(r->o.out, t);
    if (t->region_restarts > 0)
        fprintf(r->o.out, "  %-16s %12" PRIu64 "  of some regions alone\n", "region restarts",
                t->region_restarts);
    downtime_totals(r->o.out, t);
    usage_totals(r->o.out, t);
    state_totals(r->o.out, t);
    if (text->stages.by_region) {
        stage_totals(text);
    } else {
        share_totals(r);
        vertex_totals(r);
    }
    return fflush(r->o.out) == 0 ? report_written(r) : -errno;
}

const struct report_ops report_text_ops = {
    .size = sizeof(struct text_report),
    .init = init,
    .begin = begin,
    .step = step,
    .end = end,
    .free = free_text,
};

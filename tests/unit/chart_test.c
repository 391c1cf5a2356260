/* chart_test.c - the SVG chart of a run */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_run.h"
#include "sim/chart_svg.h"
#include "sim/series.h"
#include "sim/totals.h"

struct drawn {
    struct pliant_job *job;
    struct view view;
    struct totals totals;
    struct series series;
    struct fake fake;
};

static void open_drawn(struct drawn *d, const char *job)
{
    d->job = fake_job(job);
    cr_assert(eq(int, view_init(&d->view, d->job), 0));
    cr_assert(eq(int, totals_init(&d->totals, 2), 0));
    cr_assert(eq(int, series_init(&d->series, 4096), 0));
}

static void take(struct drawn *d, const struct fake_step *step)
{
    fake_take(&d->fake, &d->view, step);
    series_take(&d->series, &d->view);
    cr_assert(eq(int, totals_take(&d->totals, &d->view), 0));
}

static void end(struct drawn *d, int64_t end_ms)
{
    series_end(&d->series, end_ms);
    cr_assert(eq(int, totals_end(&d->totals, end_ms), 0));
}

static void close_drawn(struct drawn *d)
{
    series_free(&d->series);
    totals_free(&d->totals);
    view_free(&d->view);
    pliant_job_destroy(&d->job);
}

/* Past an attribute that begins at `at`: a name, '=', a value in quotes; NULL: it is none. */
static const char *attribute(const char *at)
{
    at += strcspn(at, "=\"<> ");
    if (strncmp(at, "=\"", 2) != 0)
        return NULL;
    at += 2;
    at += strcspn(at, "\"<");
    return *at == '"' ? at + 1 : NULL;
}

/* Are all tags closed, and all attributes quoted? */
static bool well_formed(const char *text)
{
    int depth = 0;

    for (const char *at = strchr(text, '<'); at; at = strchr(at, '<')) {
        bool closes = at[1] == '/';

        at += 1 + closes;
        at += strcspn(at, " />");
        while (at && *at == ' ')
            at = attribute(at + 1);
        if (!at || depth < 0)
            return false;
        depth += closes ? -1 : *at == '/' ? 0 : 1;
        at += *at == '/';
        if (*at != '>')
            return false;
    }
    return depth == 0;
}

/* The chart as text; the caller frees it. */
static char *draw(const struct drawn *d, const char *trace)
{
    struct chart_svg_options o = {.job = d->job, .trace = trace};
    char *text = NULL;
    size_t size;

    o.out = open_memstream(&text, &size);
    cr_assert(eq(int, chart_svg_draw(&o, &d->totals, &d->series, NULL), 0));
    fclose(o.out);
    cr_expect(well_formed(text), "%s", text);
    return text;
}

static void grow_and_lose(struct drawn *d)
{
    for (size_t i = 0; i < fake_grow_and_lose_n; i++)
        take(d, &fake_grow_and_lose[i]);
    end(d, 50000);
}

Test(chart, has_title_axes_legend_and_marks)
{
    static const char *const parts[] = {
        "50 s, 2 restarts, 2 rescales, downtime 11 s<",
        ">45 s</text>",
        ">nodes lost 1<",
        ">checkpoints 3<",
        ">Restarting</text>",
        ">Executing</text>",
        "179.0V282.0V76.0M",
    };
    struct drawn d;
    char *text;

    open_drawn(&d, "wc");
    grow_and_lose(&d);
    text = draw(&d, "case");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_expect(strstr(text, parts[i]) != NULL, "%s in\n%s", parts[i], text);
    cr_expect(strstr(text, "drained") == NULL);
    cr_expect(strncmp(text, "<svg ", 5) == 0);
    cr_expect(eq(str, text + strlen(text) - 7, (char *)"</svg>\n"));
    free(text);
    close_drawn(&d);
}

Test(chart, is_the_same_bytes_for_the_same_run)
{
    struct drawn d;
    char *once, *again;

    open_drawn(&d, "wc");
    grow_and_lose(&d);
    once = draw(&d, NULL);
    again = draw(&d, NULL);
    cr_expect(eq(str, once, again));
    free(once);
    free(again);
    close_drawn(&d);
}

Test(chart, escapes_names)
{
    struct drawn d;
    char *text;

    open_drawn(&d, "wc");
    end(&d, 1000);
    text = draw(&d, "<script>&\"c\x01\n");
    cr_expect(strstr(text, "&lt;script&gt;&amp;\"c  <") != NULL);
    cr_expect(strstr(text, "<script>") == NULL);
    cr_expect(strchr(text, '\x01') == NULL);
    free(text);
    close_drawn(&d);
}

Test(chart, stays_small_for_a_million_events)
{
    struct drawn d;
    char *text;

    open_drawn(&d, "wc");
    for (int i = 0; i < 1000000; i++) {
        struct fake_step step = {i * INT64_C(1000), PLIANT_EV_NODE_UP, .nodes = (uint32_t)(i % 2),
                                 .offered = (uint32_t)(i * INT64_C(7919) % 10007)};

        if (i % 1000 == 0)
            step.changes[0] =
                fake_change(PLIANT_EXECUTING, PLIANT_RESTARTING, PLIANT_REASON_NODE_LOST);
        if (i % 1000 == 10) {
            step.changes[0] = fake_change(PLIANT_CREATING_EXECUTION_GRAPH, PLIANT_EXECUTING,
                                          PLIANT_REASON_PLAN_READY);
            step.parallelism = step.offered;
        }
        take(&d, &step);
    }
    end(&d, 1000000000);
    text = draw(&d, "million");
    cr_expect(lt(sz, strlen(text), 200000));
    cr_expect(strstr(text, ">11 d</text>") != NULL, "days on the axis");
    free(text);
    close_drawn(&d);
}

Test(chart, tells_a_full_disk)
{
    struct chart_svg_options o = {.out = fopen("/dev/full", "w")};
    struct drawn d;

    cr_assert(o.out != NULL);
    open_drawn(&d, "wc");
    grow_and_lose(&d);
    o.job = d.job;
    cr_expect(eq(int, chart_svg_draw(&o, &d.totals, &d.series, NULL), -ENOSPC));
    fclose(o.out);
    close_drawn(&d);
}

Test(chart, destroys_nothing_when_there_is_none)
{
    struct sim_observer *none = NULL;

    chart_svg_destroy(&none);
    cr_expect(none == NULL);
}

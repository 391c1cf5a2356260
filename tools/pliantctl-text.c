/* pliantctl-text.c - what people read: tables, times, colours */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pliantctl.h"
#include "sim/time_text.h"
#include "util/utf8.h"

#define CELL_MAX 4096
#define COLUMNS_MAX 16
#define GAP 2 /* columns between two columns */

/* ---- text of others -------------------------------------------------------------------------- */

void ctl_put(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, out);
}

/* It runs, and how many subtasks a vertex gets will follow from what its inputs hold. */
bool ctl_is_undecided(const struct doc *job, const struct doc *vertex)
{
    return ctl_int(vertex, "parallelism") == 0 && strcmp(ctl_text(job, "state"), "Executing") == 0;
}

/* ---- times and sizes ------------------------------------------------------------------------- */

int64_t ctl_unix_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const char *ctl_clock(char buf[CTL_TIME_TEXT], int64_t unix_ms)
{
    time_t at = (time_t)(unix_ms / 1000), now = (time_t)(ctl_unix_ms() / 1000);
    struct tm then, today;

    if (unix_ms <= 0 || !localtime_r(&at, &then) || !localtime_r(&now, &today)) {
        snprintf(buf, CTL_TIME_TEXT, "-");
        return buf;
    }
    if (then.tm_year == today.tm_year && then.tm_yday == today.tm_yday)
        strftime(buf, CTL_TIME_TEXT, "%H:%M:%S", &then);
    else
        strftime(buf, CTL_TIME_TEXT, "%Y-%m-%d %H:%M:%S", &then);
    return buf;
}

const char *ctl_span(char buf[CTL_TIME_TEXT], int64_t ms)
{
    /* two digits say enough */
    if (ms >= 0)
        return time_span(buf, ms - ms % (ms >= 10000 ? 1000 : ms >= 1000 ? 100 : 1));
    snprintf(buf, CTL_TIME_TEXT, "-");
    return buf;
}

const char *ctl_bytes(char buf[CTL_TIME_TEXT], int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)bytes;
    size_t i = 0;

    for (; x >= 1024 && i + 1 < sizeof units / sizeof *units; i++)
        x /= 1024;
    snprintf(buf, CTL_TIME_TEXT, i == 0 || x >= 100 ? "%.0f %s" : "%.1f %s", x, units[i]);
    return buf;
}

/* ---- colours --------------------------------------------------------------------------------- */

bool ctl_colourful(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

const char *ctl_colour(enum ctl_colour colour, bool on)
{
    static const char *const sequences[] = {
        [CTL_PLAIN] = "\033[0m",  [CTL_BOLD] = "\033[1m",    [CTL_DIM] = "\033[2m",
        [CTL_GREEN] = "\033[32m", [CTL_YELLOW] = "\033[33m", [CTL_RED] = "\033[31m"};

    return on ? sequences[colour] : "";
}

/* clang-format off */
static const struct { const char *state; enum ctl_colour colour; } state_colours[] = {
    {"RUNNING", CTL_GREEN}, {"Executing", CTL_GREEN}, {"up", CTL_GREEN}, {"completed", CTL_GREEN},
    {"ok", CTL_GREEN},
    {"RESTARTING", CTL_YELLOW}, {"Restarting", CTL_YELLOW}, {"CANCELLING", CTL_YELLOW},
    {"WaitingForResources", CTL_YELLOW}, {"CreatingExecutionGraph", CTL_YELLOW},
    {"StopWithSavepoint", CTL_YELLOW}, {"Executing(draining)", CTL_YELLOW},
    {"RetryingExecutionGraphCreation", CTL_YELLOW}, {"Canceling", CTL_YELLOW},
    {"draining", CTL_YELLOW}, {"awaited", CTL_YELLOW}, {"pending", CTL_YELLOW},
    {"INITIALIZING", CTL_YELLOW}, {"CREATED", CTL_YELLOW}, {"DEPLOYING", CTL_YELLOW},
    {"FAILING", CTL_RED}, {"Failing", CTL_RED}, {"FAILED", CTL_RED}, {"failed", CTL_RED},
    {"gone", CTL_RED}, {"store-failed", CTL_RED}, {"Damaged", CTL_RED}, {"DAMAGED", CTL_RED},
};
/* clang-format on */

enum ctl_colour ctl_colour_of(const char *state)
{
    for (size_t i = 0; i < sizeof state_colours / sizeof *state_colours; i++)
        if (strcmp(state_colours[i].state, state) == 0)
            return state_colours[i].colour;
    return CTL_PLAIN;
}

bool ctl_status_is_final(const char *job_status)
{
    static const char *const final[] = {"FINISHED", "CANCELED", "FAILED", "SUSPENDED"};

    for (size_t i = 0; i < sizeof final / sizeof *final; i++)
        if (strcmp(final[i], job_status) == 0)
            return true;
    return false;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void ctl_table_start(struct ctl_table *t, const char *const *heads, size_t n)
{
    *t = (struct ctl_table){.heads = heads, .n_columns = n};
}

void ctl_cell(struct ctl_table *t, const char *format, ...)
{
    char text[CELL_MAX], **cell;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cell = vec_push(NULL, &t->cells);
    if (cell)
        *cell = mem_text(NULL, *text ? text : "-", sizeof text);
    t->failed |= !cell || !*cell;
}

static bool is_number(const char *head)
{
    return *head == '>';
}

static void measure(const struct ctl_table *t, size_t widths[COLUMNS_MAX])
{
    for (size_t i = 0; i < t->n_columns; i++)
        widths[i] = utf8_letters(t->heads[i]) - is_number(t->heads[i]);
    for (size_t i = 0; i < t->cells.n; i++) {
        size_t w = utf8_letters(t->cells.v[i]), *max = &widths[i % t->n_columns];

        *max = w > *max ? w : *max;
    }
}

static void put_cell(FILE *out, const struct ctl_table *t, size_t column, const char *text,
                     size_t width, enum ctl_colour colour, bool on)
{
    size_t pad = width - utf8_letters(text);
    bool last = column + 1 == t->n_columns, right = is_number(t->heads[column]);

    if (right)
        fprintf(out, "%*s", (int)pad, "");
    on = on && colour != CTL_PLAIN;
    fputs(ctl_colour(colour, on), out);
    ctl_put(out, text);
    fputs(ctl_colour(CTL_PLAIN, on), out);
    if (last)
        fputc('\n', out);
    else
        fprintf(out, "%*s", (int)(right ? GAP : pad + GAP), "");
}

static void print_table(const struct ctl_table *t, FILE *out)
{
    bool colours = ctl_colourful();
    size_t widths[COLUMNS_MAX];

    measure(t, widths);
    for (size_t i = 0; i < t->n_columns; i++)
        put_cell(out, t, i, t->heads[i] + is_number(t->heads[i]), widths[i], CTL_BOLD, colours);
    for (size_t i = 0; i < t->cells.n; i++)
        put_cell(out, t, i % t->n_columns, t->cells.v[i], widths[i % t->n_columns],
                 ctl_colour_of(t->cells.v[i]), colours);
}

enum exit_code ctl_table_end(struct ctl_table *t, FILE *out)
{
    bool failed = t->failed;

    if (!failed)
        print_table(t, out);
    for (size_t i = 0; i < t->cells.n; i++)
        mem_free(NULL, t->cells.v[i]);
    vec_free(NULL, &t->cells);
    return failed ? ctl_complain(NO_RESOURCES, "no memory") : DONE;
}

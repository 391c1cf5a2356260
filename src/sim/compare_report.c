/* compare_report.c - see compare_report.h */
#include "sim/compare_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sim/time_text.h"
#include "spec/json_out.h"
#include "util/utf8.h"

#define NAMES_MIN 26 /* of the column of names */
#define NAME_MAX 44

static double seconds(double work_ms)
{
    return work_ms / 1000;
}

static const struct compare_result *result(const struct compare *c, size_t cell, size_t policy)
{
    return &c->results[cell * c->n_policies + policy];
}

static double ratio(const struct compare *c, size_t cell, size_t policy)
{
    return compare_ratio(result(c, cell, policy)->work, c->bounds[cell]);
}

static size_t n_cells(const struct compare *c)
{
    return c->n_tapes * c->n_costs;
}

/* ---- sums --------------------------------------------------------------------------------- */

double compare_mean(const struct compare *c, size_t policy, size_t tape, size_t cost)
{
    double sum = 0;
    size_t n = 0;

    for (size_t cell = 0; cell < n_cells(c); cell++) {
        if ((tape != COMPARE_ALL && cell / c->n_costs != tape) ||
            (cost != COMPARE_ALL && cell % c->n_costs != cost))
            continue;
        sum += ratio(c, cell, policy);
        n++;
    }
    return sum / (double)n;
}

/* The best of the fixed policies in a cell, or of all cells; n_policies: there is none. */
static size_t best_fixed(const struct compare *c, size_t cell)
{
    size_t best = c->n_policies;
    double best_ratio = -1;

    for (size_t p = 0; p < c->n_policies; p++) {
        double r =
            cell == COMPARE_ALL ? compare_mean(c, p, COMPARE_ALL, COMPARE_ALL) : ratio(c, cell, p);

        if (c->policies[p].learns || r <= best_ratio)
            continue;
        best = p;
        best_ratio = r;
    }
    return best;
}

static void find_worst(const struct compare *c, struct compare_verdict *v)
{
    for (size_t cell = 0; cell < n_cells(c); cell++) {
        size_t best = best_fixed(c, cell);
        double ahead = ratio(c, cell, v->policy) - ratio(c, cell, best);

        if (cell > 0 && ahead >= v->worst)
            continue;
        v->worst = ahead;
        v->cell = cell;
        v->by = best;
    }
}

bool compare_judge(const struct compare *c, struct compare_verdict *ret)
{
    struct compare_verdict v = {.policy = 0};
    double best_regret;

    while (v.policy < c->n_policies && !c->policies[v.policy].learns)
        v.policy++;
    v.best = best_fixed(c, COMPARE_ALL);
    if (v.policy == c->n_policies || v.best == c->n_policies)
        return false;
    best_regret = 1 - compare_mean(c, v.best, COMPARE_ALL, COMPARE_ALL);
    v.regret = best_regret > 0
                   ? (1 - compare_mean(c, v.policy, COMPARE_ALL, COMPARE_ALL)) / best_regret
                   : 1;
    find_worst(c, &v);
    *ret = v;
    return true;
}

/* ---- text --------------------------------------------------------------------------------- */

/* "5 s, 1 min, 500 ms" */
static const char *cost_text(const struct compare_cost *cost, char *buf, size_t size)
{
    char restart[TIME_TEXT_MAX], interval[TIME_TEXT_MAX], checkpoint[TIME_TEXT_MAX];

    snprintf(buf, size, "%s, %s, %s", time_span(restart, cost->restart_ms),
             time_span(interval, cost->interval_ms), time_span(checkpoint, cost->checkpoint_ms));
    return buf;
}

static int column(const struct compare *c, size_t policy)
{
    int n = (int)strlen(c->policies[policy].name);

    return n < 7 ? 9 : n + 2;
}

static int names_width(const struct compare *c)
{
    size_t most = NAMES_MIN;

    for (size_t i = 0; i < c->n_tapes; i++)
        if (utf8_letters(c->tapes[i].name) > most)
            most = utf8_letters(c->tapes[i].name);
    return (int)(most < NAME_MAX ? most : NAME_MAX);
}

/* printf() pads and cuts by the byte. */
static void put_name(const struct compare *c, FILE *out, const char *name)
{
    size_t width = (size_t)names_width(c), letters = utf8_letters(name);
    bool whole = letters <= width;
    size_t n = whole ? strlen(name) : utf8_first(name, width - 3);

    fprintf(out, "  %.*s%s%*s", (int)n, name, whole ? "" : "...",
            whole ? (int)(width - letters) : 0, "");
}

static void heading(const struct compare *c, FILE *out, const char *title)
{
    fprintf(out, "\n  %-*s", names_width(c), title);
    for (size_t p = 0; p < c->n_policies; p++)
        fprintf(out, "%*s", column(c, p), c->policies[p].name);
    fputc('\n', out);
}

static void shares(const struct compare *c, FILE *out, const char *name, size_t tape, size_t cost)
{
    put_name(c, out, name);
    for (size_t p = 0; p < c->n_policies; p++)
        fprintf(out, "%*.3f", column(c, p), compare_mean(c, p, tape, cost));
    fputc('\n', out);
}

static double worst_of(const struct compare *c, size_t policy)
{
    double least = ratio(c, 0, policy);

    for (size_t cell = 1; cell < n_cells(c); cell++)
        least = ratio(c, cell, policy) < least ? ratio(c, cell, policy) : least;
    return least;
}

static void overall(const struct compare *c, FILE *out)
{
    heading(c, out, "all");
    shares(c, out, "mean", COMPARE_ALL, COMPARE_ALL);
    fprintf(out, "  %-*s", names_width(c), "worst");
    for (size_t p = 0; p < c->n_policies; p++)
        fprintf(out, "%*.3f", column(c, p), worst_of(c, p));
    fputc('\n', out);
}

static void counts(const struct compare *c, FILE *out)
{
    uint64_t n[2];
    double lost, bound;

    for (int row = 0; row < 3; row++) {
        fprintf(out, "  %-*s", names_width(c),
                row == 0   ? "restarts"
                : row == 1 ? "of them forced"
                           : "work lost, share of bound");
        for (size_t p = 0; p < c->n_policies; p++) {
            n[0] = n[1] = 0;
            lost = bound = 0;
            for (size_t cell = 0; cell < n_cells(c); cell++) {
                n[0] += result(c, cell, p)->restarts;
                n[1] += result(c, cell, p)->forced;
                lost += result(c, cell, p)->lost;
                bound += c->bounds[cell];
            }
            if (row < 2)
                fprintf(out, "%*" PRIu64, column(c, p), n[row]);
            else
                fprintf(out, "%*.3f", column(c, p), bound > 0 ? lost / bound : 0);
        }
        fputc('\n', out);
    }
}

static void verdict(const struct compare *c, FILE *out)
{
    struct compare_verdict v;
    char cost[4 * TIME_TEXT_MAX];
    const char *name;

    if (!compare_judge(c, &v))
        return;
    name = c->policies[v.policy].name;
    fprintf(out,
            "\n%s leaves %.3f of the bound undone, %s, the best of the fixed, %.3f: %.2f of it.\n",
            name, 1 - compare_mean(c, v.policy, COMPARE_ALL, COMPARE_ALL), c->policies[v.best].name,
            1 - compare_mean(c, v.best, COMPARE_ALL, COMPARE_ALL), v.regret);
    fprintf(out, "Where it does worst against the best fixed one it is %.3f %s %s: %s, %s.\n",
            v.worst < 0 ? -v.worst : v.worst, v.worst < 0 ? "behind" : "ahead of",
            c->policies[v.by].name, c->tapes[v.cell / c->n_costs].name,
            cost_text(&c->costs[v.cell % c->n_costs], cost, sizeof cost));
}

static int written(FILE *out)
{
    if (fflush(out) == 0 && !ferror(out))
        return 0;
    return errno ? -errno : -EIO;
}

int compare_text(const struct compare *c, FILE *out)
{
    char name[4 * TIME_TEXT_MAX];

    fprintf(out,
            "Work done, as a share of what a scheduler that knows the future could do at most\n"
            "(%zu trace%s at %zu cost%s, up to %" PRIu32 " slot%s)\n",
            c->n_tapes, c->n_tapes == 1 ? "" : "s", c->n_costs, c->n_costs == 1 ? "" : "s",
            c->job->n_speeds - 1, c->job->n_speeds == 2 ? "" : "s");
    overall(c, out);
    counts(c, out);
    heading(c, out, "by trace");
    for (size_t i = 0; i < c->n_tapes; i++)
        shares(c, out, c->tapes[i].name, i, COMPARE_ALL);
    heading(c, out, "by restart, interval, cost");
    for (size_t i = 0; i < c->n_costs; i++)
        shares(c, out, cost_text(&c->costs[i], name, sizeof name), COMPARE_ALL, i);
    verdict(c, out);
    return written(out);
}

/* ---- for programs ------------------------------------------------------------------------- */

static void json_cell(const struct compare *c, struct json *j, size_t cell)
{
    const struct compare_cost *cost = &c->costs[cell % c->n_costs];

    json_begin(j, NULL, '{');
    json_string(j, "trace", c->tapes[cell / c->n_costs].name);
    json_int(j, "restart_ms", cost->restart_ms);
    json_int(j, "checkpoint_interval_ms", cost->interval_ms);
    json_int(j, "checkpoint_cost_ms", cost->checkpoint_ms);
    json_double(j, "bound", seconds(c->bounds[cell]));
    json_begin(j, "policies", '{');
    for (size_t p = 0; p < c->n_policies; p++) {
        const struct compare_result *r = result(c, cell, p);

        json_begin(j, c->policies[p].name, '{');
        json_double(j, "work", seconds(r->work));
        json_double(j, "ratio", ratio(c, cell, p));
        json_uint(j, "restarts", r->restarts);
        json_uint(j, "forced", r->forced);
        json_double(j, "lost", seconds(r->lost));
        json_end(j, '}');
    }
    json_end(j, '}');
    json_end(j, '}');
}

int compare_json(const struct compare *c, FILE *out)
{
    struct json j;
    int r = 0;

    json_init(&j, out);
    for (size_t cell = 0; !r && cell < n_cells(c); cell++) {
        json_cell(c, &j, cell);
        r = json_line(&j);
    }
    if (!r)
        r = json_flush(&j);
    json_free(&j);
    return r;
}

/* A name with what CSV gives a meaning in it stands in quotes. */
static void csv_name(FILE *out, const char *name)
{
    if (!strpbrk(name, ",\"\r\n")) {
        fputs(name, out);
        return;
    }
    fputc('"', out);
    for (; *name; name++)
        fputs(*name == '"' ? "\"\"" : (char[]){*name, '\0'}, out);
    fputc('"', out);
}

int compare_csv(const struct compare *c, FILE *out)
{
    fputs("trace,restart_ms,checkpoint_interval_ms,checkpoint_cost_ms,bound,policy,work,ratio,"
          "restarts,forced,lost\n",
          out);
    for (size_t i = 0; i < n_cells(c) * c->n_policies; i++) {
        size_t cell = i / c->n_policies, p = i % c->n_policies;
        const struct compare_cost *cost = &c->costs[cell % c->n_costs];
        const struct compare_result *r = result(c, cell, p);

        csv_name(out, c->tapes[cell / c->n_costs].name);
        fprintf(out, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.3f,%s,%.3f,%.6f", cost->restart_ms,
                cost->interval_ms, cost->checkpoint_ms, seconds(c->bounds[cell]),
                c->policies[p].name, seconds(r->work), ratio(c, cell, p));
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%.3f\n", r->restarts, r->forced, seconds(r->lost));
    }
    return written(out);
}

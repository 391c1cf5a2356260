/* report_csv.c - one row a change: t_ms,state,slots_offered,slots_used,VERTEX...
 *
 * A row holds from its time on until the next row's. Vertices are columns in declaration order with
 * their parallelism, 0 while the job is not at work; their names need no quotes. A state that was
 * left at the instant in which it was entered has its row too.
 */
#include <inttypes.h>
#include <errno.h>

#include "sim/report_impl.h"

struct csv {
    struct report report;
    struct csv_row {
        enum pliant_state state;
        uint32_t offered, used;
    } last;
    bool any; /* rows were written */
};

static int init(struct report *r)
{
    (void)r;
    return 0;
}

static int begin(struct report *r)
{
    fputs("t_ms,state,slots_offered,slots_used", r->o.out);
    for (uint32_t i = 0; i < r->view.n_vertices; i++)
        fprintf(r->o.out, ",%s", pliant_job_vertex_name(r->o.job, (pliant_vertex_id){i + 1}));
    fputc('\n', r->o.out);
    return report_written(r);
}

static void row(struct csv *c, struct csv_row now)
{
    const struct view *v = &c->report.view;
    FILE *out = c->report.o.out;

    if (c->any && now.state == c->last.state && now.offered == c->last.offered &&
        now.used == c->last.used)
        return;
    c->last = now;
    c->any = true;
    fprintf(out, "%" PRId64 ",%s,%" PRIu32 ",%" PRIu32, v->at_ms, pliant_state_name(now.state),
            now.offered, now.used);
    for (uint32_t i = 0; i < v->n_vertices; i++)
        fprintf(out, ",%" PRIu32, view_works(now.state) ? v->parallelism[i] : 0);
    fputc('\n', out);
}

static int step(struct report *r)
{
    struct csv *c = (struct csv *)r;
    const struct view *v = &r->view;
    enum pliant_state to;

    for (size_t i = 0; i < v->actions->n; i++) {
        if (v->actions->v[i].kind != PLIANT_ACT_STATE_CHANGED)
            continue;
        to = (enum pliant_state)v->actions->v[i].flag[1];
        if (to != v->state)
            row(c, (struct csv_row){to, v->counts.slots_offered, 0});
    }
    row(c, (struct csv_row){v->state, v->counts.slots_offered, view_used(v)});
    return report_written(r);
}

static int end(struct report *r)
{
    return fflush(r->o.out) == 0 ? 0 : -errno;
}

static void no_more(struct report *r)
{
    (void)r;
}

const struct report_ops report_csv_ops = {
    .size = sizeof(struct csv),
    .init = init,
    .begin = begin,
    .step = step,
    .end = end,
    .free = no_more,
};

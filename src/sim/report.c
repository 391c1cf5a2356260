/* report.c - see report.h */
#include "sim/report.h"

#include <errno.h>

#include "sim/report_impl.h"

int report_written(const struct report *r)
{
    if (!ferror(r->o.out))
        return 0;
    return errno ? -errno : -EIO;
}

int report_show(struct report *r)
{
    int rc = 0;

    if (!r->begun)
        rc = r->ops->begin(r);
    r->begun = true;
    if (rc == 0)
        rc = totals_take(&r->totals, &r->view);
    return rc == 0 ? r->ops->step(r) : rc;
}

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct report *r = (struct report *)o;

    view_take(&r->view, step);
    return report_show(r);
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    struct report *r = (struct report *)o;
    int rc = r->begun ? 0 : r->ops->begin(r);

    (void)sched; /* the last step told all */
    r->begun = true;
    if (rc == 0)
        rc = totals_end(&r->totals, end_ms);
    return rc == 0 ? r->ops->end(r) : rc;
}

static const struct report_ops *ops_of(enum report_format format)
{
    switch (format) {
    case REPORT_JSON:
        return &report_json_ops;
    case REPORT_CSV:
        return &report_csv_ops;
    case REPORT_TEXT:
        break;
    }
    return &report_text_ops;
}

int report_new(const struct report_options *options, struct sim_observer **ret)
{
    const struct report_ops *ops = ops_of(options->format);
    struct report *r = mem_zero(NULL, 1, ops->size);
    struct sim_observer *o = (struct sim_observer *)r;

    if (!r)
        return -ENOMEM;
    r->observer = (struct sim_observer){.on_step = on_step, .on_end = on_end};
    r->ops = ops;
    r->o = *options;
    if (view_init(&r->view, options->job) < 0 ||
        totals_init(&r->totals, pliant_job_vertices(options->job)) < 0 || ops->init(r) < 0) {
        report_destroy(&o);
        return -ENOMEM;
    }
    *ret = o;
    return 0;
}

void report_destroy(struct sim_observer **o)
{
    struct report *r = (struct report *)*o;

    if (!r)
        return;
    r->ops->free(r);
    totals_free(&r->totals);
    view_free(&r->view);
    mem_free(NULL, r);
    *o = NULL;
}

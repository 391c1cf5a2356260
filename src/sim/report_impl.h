/* report_impl.h - what the three formats have in common; for report*.c only
 *
 * A format is a row of functions over a struct that begins with struct report. The view and the
 * totals are up to date when a function is called.
 *
 * Errors  -errno of the write, -ENOMEM
 */
#ifndef PLIANT_SIM_REPORT_IMPL_H
#define PLIANT_SIM_REPORT_IMPL_H

#include "sim/report.h"
#include "sim/totals.h"

struct report {
    struct sim_observer observer; /* first: the simulator knows a report by its address */
    const struct report_ops *ops;
    struct report_options o;
    struct view view;
    struct totals totals;
    bool begun;
};

struct report_ops {
    size_t size; /* of the struct that begins with struct report */
    int (*init)(struct report *r);
    int (*begin)(struct report *r); /* at the first step, before it is shown */
    int (*step)(struct report *r);
    int (*end)(struct report *r);
    void (*free)(struct report *r);
};

extern const struct report_ops report_text_ops, report_json_ops, report_csv_ops;

/* One step, as r->view has it. */
int report_show(struct report *r);

/* 0, or why something written to the report's stream before got lost. */
int report_written(const struct report *r);

#endif

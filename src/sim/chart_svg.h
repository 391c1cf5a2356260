/* chart_svg.h - a run as one picture: slots offered, parallelism, states, losses, over time
 *
 * An observer that draws when the run is over. Memory and file size do not grow with the run: what
 * falls on the same column of pixels is merged, keeping its extremes. Same run: same bytes.
 *
 * Shapes  1200 x 420 pixels, text as text, no scripts, no external references
 * Owner   options are copied; `out`, `job` and the texts are borrowed until chart_svg_destroy().
 *         The chart writes to `out` only in on_end() and flushes it; the caller opened it (under a
 *         temporary name, to leave no half-written picture) and closes it.
 * Errors  on_end() and chart_svg_draw() answer -errno of the write that failed; -ENOMEM
 */
#ifndef PLIANT_SIM_CHART_SVG_H
#define PLIANT_SIM_CHART_SVG_H

#include <stdio.h>

#include "sim/observer.h"

struct chart_svg_options {
    FILE *out;
    const struct pliant_job *job;
    const char *trace; /* its name in UTF-8, or NULL */
};

struct totals;
struct series;
struct stages;

/* The picture itself, from a run that is over. With `stages`, that may be NULL: a row for each
 * vertex of a job whose tasks start region by region. */
int chart_svg_draw(const struct chart_svg_options *options, const struct totals *totals,
                   const struct series *series, const struct stages *stages);

int chart_svg_new(const struct chart_svg_options *options, struct sim_observer **ret);

/* Free *o and set it to NULL. Fine on NULL. */
void chart_svg_destroy(struct sim_observer **o);

#endif

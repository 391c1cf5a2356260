/* compare_svg.h - a comparison as a picture
 *
 * Above, what each policy got done on each trace, as a share of the bound (means over the costs).
 * Below, one run: the first trace at the middle one of the costs, with the slots offered, the slots
 * at work under one policy (the one that learns, or else the best), and those of the bound's
 * choice.
 *
 * Shapes  1200 pixels wide; size and memory don't grow with the runs
 * Errors  -errno of the write that failed, -ENOMEM
 */
#ifndef PLIANT_SIM_COMPARE_SVG_H
#define PLIANT_SIM_COMPARE_SVG_H

#include "sim/compare_report.h"

int compare_svg(const struct compare *c, FILE *out);

#endif

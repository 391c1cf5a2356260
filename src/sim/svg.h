/* svg.h - what the pictures have in common
 *
 * Shapes  pixels; coordinates are whole
 * Errors  none: what can't be written shows on the stream
 */
#ifndef PLIANT_SIM_SVG_H
#define PLIANT_SIM_SVG_H

#include <stdint.h>
#include <stdio.h>

/* Text with what XML gives a meaning escaped, and without control characters. */
void svg_text(FILE *out, const char *s);

/* The same where there is room for so many letters, 2 at least: of a longer text what fits, and
 * dots. */
void svg_short_text(FILE *out, const char *s, size_t letters);

/* 1, 2 or 5 times a power of ten, so that there are at most 5 steps up to `most`. */
uint32_t svg_round_step(uint32_t most);

/* Time from 0 to extent_ms: lines from top to bottom, ticks and labels below `base`. */
struct svg_time_axis {
    int left, right, top, bottom, base;
    int64_t extent_ms;
};
void svg_time_axis(FILE *out, const struct svg_time_axis *axis);

#endif

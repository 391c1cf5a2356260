/* time_text.h - times as people read them, and where the ticks of a time axis go
 *
 *     stopwatch   16.800   1:16.800   3:01:16.800       an instant, to the millisecond
 *     span        250 ms   1.5 s   2 min 30 s   3 h 5 min   2 d 4 h
 *     tick        10 s   1:30   15 min   2:30   6 h   3 d
 *
 * Units   milliseconds >= 0
 * Owner   all write into the caller's buffer, cut and terminated like snprintf()
 */
#ifndef PLIANT_SIM_TIME_TEXT_H
#define PLIANT_SIM_TIME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIME_TEXT_MAX 40

const char *time_stopwatch(char buf[TIME_TEXT_MAX], int64_t at_ms);
const char *time_span(char buf[TIME_TEXT_MAX], int64_t ms);

/* A round step that cuts 0..end_ms into at most `most` pieces, most > 0. */
int64_t time_tick_step(int64_t end_ms, uint32_t most);
const char *time_tick(char buf[TIME_TEXT_MAX], int64_t at_ms, int64_t step_ms, int64_t end_ms);

/* What the ticks count, where they don't say it themselves: "min:s", "h:min", or "". */
const char *time_tick_unit(int64_t step_ms, int64_t end_ms);

#endif

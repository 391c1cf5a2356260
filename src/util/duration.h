/* duration.h - spans of time as people write them: "30 s", "1 min", "-1 ms", "500", "PT30S"
 *
 * Flink's syntax: a whole number and a unit in any case, blanks between them or not; a number
 * alone is milliseconds; or ISO-8601. Parts below a millisecond are cut off.
 *
 * Pure: no locale, no memory.
 * Units   milliseconds
 */
#ifndef PLIANT_UTIL_DURATION_H
#define PLIANT_UTIL_DURATION_H

#include <stddef.h>
#include <stdint.h>

#define DURATION_TEXT_MAX 32                      /* bytes that duration_format() needs at most */
#define DURATION_UNITS "d, h, min, s, ms, us, ns" /* for errors; long names are read too */

/* 0; -EINVAL: not a duration; -ERANGE: more milliseconds than an int64_t holds. */
int duration_parse(const char *text, int64_t *ret_ms);

/* In the largest unit that is exact: 90000 is "90 s", 60000 "1 min". Returns the length. */
size_t duration_format(int64_t ms, char buf[DURATION_TEXT_MAX]);

#endif

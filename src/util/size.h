/* size.h - sizes as people write them: "16 mb", "1g", "4096"
 *
 * Flink's syntax: a whole number and a unit in any case, blanks between them or not; a number alone
 * is bytes. Units are powers of 1024.
 *
 * Pure: no locale, no memory.
 */
#ifndef PLIANT_UTIL_SIZE_H
#define PLIANT_UTIL_SIZE_H

#include <stddef.h>
#include <stdint.h>

#define SIZE_TEXT_MAX 32                   /* bytes that size_format() needs at most */
#define SIZE_UNITS "bytes, kb, mb, gb, tb" /* for errors; b, k, m, g, t and long names too */

/* 0; -EINVAL: not a size; -ERANGE: more bytes than an int64_t holds. */
int size_parse(const char *text, int64_t *ret_bytes);

/* In the largest unit that is exact: 16777216 is "16 mb". Returns the length. */
size_t size_format(int64_t bytes, char buf[SIZE_TEXT_MAX]);

#endif

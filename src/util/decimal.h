/* decimal.h - numbers from and to text, the same in every locale
 *
 * Pure: reads a text, writes a number, or the opposite.
 * Exact   integers always; doubles of up to 15 significant digits and an exponent within
 *         +-22 read to the nearest double and write back as they were
 */
#ifndef PLIANT_UTIL_DECIMAL_H
#define PLIANT_UTIL_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECIMAL_TEXT_MAX 48 /* bytes that decimal_write() needs at most */

/* [+-]digits, all of the text. False: something else, or beyond int64_t. */
bool decimal_read_int(const char *text, int64_t *ret);

/* [+-]digits[.digits][e[+-]digits], all of the text; a point needs a digit on one side only.
 * False: something else, or not finite. */
bool decimal_read(const char *text, double *ret);

/* The shortest text that reads back as the number, to 15 digits and 22 decimals; what is not finite
 * is "nan", "inf" or "-inf". Returns the length. */
size_t decimal_write(double value, char buf[DECIMAL_TEXT_MAX]);

#endif

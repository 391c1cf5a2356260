/* vectors.h - the measured vectors: one kind a file, one case a line
 *
 * `vectors KIND FILE` reads FILE line by line and gives each line to the kind's function.
 *
 * Errors  a function returns 0 when the line's `expect` holds; else it puts the first
 *         difference as one line of text into why[size] (vectors_say() does both).
 * Owner   `line` is borrowed for the call.
 */
#ifndef PLIANT_TESTS_VECTORS_H
#define PLIANT_TESTS_VECTORS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int run_allocator(const cJSON *line, char *why, size_t size);
int run_transition_manager(const cJSON *line, char *why, size_t size);
int run_backoff(const cJSON *line, char *why, size_t size);
int run_key_groups(const cJSON *line, char *why, size_t size);
int run_regions(const cJSON *line, char *why, size_t size);
int run_partition_release(const cJSON *line, char *why, size_t size);
int run_batch_parallelism(const cJSON *line, char *why, size_t size);
int run_slow_tasks(const cJSON *line, char *why, size_t size);

/* Format into why[size] and return 1, so that a difference is `return vectors_say(...)`. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int vectors_say(char *why, size_t size, const char *format, ...);

/* Member `key` of an object. The line is at fault when it is missing or of another type:
 * then the program stops with exit code 2. */
int64_t vectors_int(const cJSON *object, const char *key);
double vectors_double(const cJSON *object, const char *key);
bool vectors_bool(const cJSON *object, const char *key);
const char *vectors_text(const cJSON *object, const char *key);
const cJSON *vectors_member(const cJSON *object, const char *key);

int64_t vectors_integer(double number); /* of a JSON number */

/* The same, but `otherwise` when the member is missing or null. */
int64_t vectors_int_or(const cJSON *object, const char *key, int64_t otherwise);
bool vectors_bool_or(const cJSON *object, const char *key, bool otherwise);
const char *vectors_text_or(const cJSON *object, const char *key, const char *otherwise);
/* A member that may be missing or null: then NULL. */
const cJSON *vectors_find(const cJSON *object, const char *key);

#endif

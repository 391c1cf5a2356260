/* main.c - vectors KIND FILE: which lines of the measured vectors do we meet?
 *
 * Prints a line for each that fails, then 'N passed, N failed'.
 * Exit codes: 0 all passed, 1 some failed, 2 bad usage or input.
 */
#include "vectors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kind {
    const char *name;
    int (*run)(const cJSON *line, char *why, size_t size);
} kinds[] = {
    {"allocator", run_allocator},
    {"transition_manager", run_transition_manager},
    {"backoff", run_backoff},
    {"key_groups", run_key_groups},
    {"regions", run_regions},
    {"partition_release", run_partition_release},
    {"batch_parallelism", run_batch_parallelism},
    {"slow_tasks", run_slow_tasks},
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static const char *reading; /* the file and line that helpers complain about */
static size_t reading_line;

int vectors_say(char *why, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return 1;
}

static _Noreturn void bad_input(const char *what, const char *key)
{
    fprintf(stderr, "vectors: %s:%zu: %s%s\n", reading, reading_line, what, key);
    exit(2);
}

const cJSON *vectors_find(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsNull(item) ? NULL : item;
}

const cJSON *vectors_member(const cJSON *object, const char *key)
{
    const cJSON *item = vectors_find(object, key);

    if (!item)
        bad_input("missing: ", key);
    return item;
}

double vectors_double(const cJSON *object, const char *key)
{
    const cJSON *item = vectors_member(object, key);

    if (!cJSON_IsNumber(item))
        bad_input("not a number: ", key);
    return item->valuedouble;
}

/* The limits of 64 bits stand for what is beyond them, and for what JSON rounds up to it. */
int64_t vectors_integer(double number)
{
    if (number >= 0x1p63)
        return INT64_MAX;
    return number <= -0x1p63 ? INT64_MIN : (int64_t)number;
}

int64_t vectors_int(const cJSON *object, const char *key)
{
    return vectors_integer(vectors_double(object, key));
}

bool vectors_bool(const cJSON *object, const char *key)
{
    const cJSON *item = vectors_member(object, key);

    if (!cJSON_IsBool(item))
        bad_input("not true or false: ", key);
    return cJSON_IsTrue(item);
}

const char *vectors_text(const cJSON *object, const char *key)
{
    const cJSON *item = vectors_member(object, key);

    if (!cJSON_IsString(item))
        bad_input("not a text: ", key);
    return item->valuestring;
}

int64_t vectors_int_or(const cJSON *object, const char *key, int64_t otherwise)
{
    return vectors_find(object, key) ? vectors_int(object, key) : otherwise;
}

bool vectors_bool_or(const cJSON *object, const char *key, bool otherwise)
{
    return vectors_find(object, key) ? vectors_bool(object, key) : otherwise;
}

const char *vectors_text_or(const cJSON *object, const char *key, const char *otherwise)
{
    return vectors_find(object, key) ? vectors_text(object, key) : otherwise;
}

/* Does the line hold? */
static bool run_line(const struct kind *kind, const char *text)
{
    char why[1024] = "";
    cJSON *line = cJSON_Parse(text);
    int failed;

    if (!line)
        bad_input("not JSON", "");
    failed = kind->run(line, why, sizeof why);
    if (failed)
        printf("%s: %s\n", vectors_text_or(line, "id", "?"), why);
    cJSON_Delete(line);
    return !failed;
}

static int run_file(const struct kind *kind, FILE *file)
{
    size_t size = 0, passed = 0, failed = 0;
    char *text = NULL;

    while (getline(&text, &size, file) >= 0) {
        reading_line++;
        if (text[strspn(text, " \t\r\n")] == '\0')
            continue;
        if (run_line(kind, text))
            passed++;
        else
            failed++;
    }
    free(text);
    if (ferror(file))
        bad_input("cannot be read: ", strerror(errno));
    printf("%zu passed, %zu failed\n", passed, failed);
    return failed > 0;
}

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static int usage(void)
{
    fputs("usage: vectors KIND FILE\nKIND is one of", stderr);
    for (size_t i = 0; i < N_KINDS; i++)
        fprintf(stderr, " %s", kinds[i].name);
    fputs("\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const struct kind *kind = argc == 3 ? find_kind(argv[1]) : NULL;
    FILE *file;
    int code;

    if (!kind)
        return usage();
    reading = argv[2];
    file = fopen(reading, "r");
    if (!file) {
        fprintf(stderr, "vectors: %s: %s\n", reading, strerror(errno));
        return 2;
    }
    code = run_file(kind, file);
    fclose(file);
    return code;
}

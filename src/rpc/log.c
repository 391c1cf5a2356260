/* log.c - see log.h */
#include "rpc/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

static const char *level_name(int level)
{
    static const char *const names[] = {"error", "error", "error", "error",
                                        "warn",  "info",  "info",  "debug"};

    return names[level < 0 ? 0 : level > 7 ? 7 : level];
}

/* systemd's journal takes the level from a prefix; JOURNAL_STREAM says which file it listens to. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;

    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

static int begin(char *line, size_t size, int level)
{
    if (is_journal())
        return snprintf(line, size, "<%d>level=%s ", level, level_name(level));
    return snprintf(line, size, "level=%s ", level_name(level));
}

static char without_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
}

void log_line_va(int level, const char *format, va_list args)
{
    char line[LINE_MAX_BYTES];
    int n = begin(line, sizeof line - 1, level);
    size_t size;

    n += vsnprintf(line + n, sizeof line - 1 - (size_t)n, format, args);
    size = (size_t)n < sizeof line - 2 ? (size_t)n : sizeof line - 2;
    for (size_t i = 0; i < size; i++)
        line[i] = without_control(line[i]);
    line[size++] = '\n';
    if (write(STDERR_FILENO, line, size) < 0)
        return; /* nobody reads: that is no reason to stop */
}

void log_line(int level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_line_va(level, format, args);
    va_end(args);
}

struct log_text log_quoted(const char *text)
{
    struct log_text quoted;
    size_t n = 0;

    quoted.v[n++] = '"';
    for (const char *c = text ? text : ""; *c && n < sizeof quoted.v - 3; c++) {
        if (*c == '"' || *c == '\\')
            quoted.v[n++] = '\\';
        quoted.v[n++] = without_control(*c);
    }
    quoted.v[n++] = '"';
    quoted.v[n] = '\0';
    return quoted;
}

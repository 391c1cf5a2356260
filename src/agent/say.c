/* say.c - see say.h */
#include "agent/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void say(enum say_level level, const char *format, ...)
{
    static const char *const names[] = {"error", "warn", "info"};
    char line[2048];
    int n = snprintf(line, sizeof line, "level=%s ", names[level]);
    size_t size;
    va_list args;

    va_start(args, format);
    vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    size = strlen(line);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = ' ';
    line[size++] = '\n';
    if (write(STDERR_FILENO, line, size) < 0)
        return; /* nobody reads it: nothing to be done */
}

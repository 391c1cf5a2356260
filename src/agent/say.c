/* say.c - see say.h */
#include "agent/say.h"

#include "rpc/log.h"

void say(enum say_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_line_va((int)level, format, args);
    va_end(args);
}

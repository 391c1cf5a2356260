/* log.h - the log of the daemon and of the agent: logfmt to standard error, one line a call
 *
 * Under systemd the journal gets the level in front. Control characters become blanks; a line that
 * is too long is cut.
 */
#ifndef PLIANT_RPC_LOG_H
#define PLIANT_RPC_LOG_H

#include <stdarg.h>

/* The text is what follows `level=... `. Levels are syslog's: 3 error, 4 warning, 6 info, 7 debug.
 */
void log_line(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_line_va(int level, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* A text of others as a value: log_line(4, "msg=refused cause=%s", log_quoted(cause).v). */
struct log_text {
    char v[512];
};
struct log_text log_quoted(const char *text);

#endif

/* say.h - the agent's log: logfmt to standard error, one line a call */
#ifndef PLIANT_AGENT_SAY_H
#define PLIANT_AGENT_SAY_H

enum say_level { SAY_ERROR, SAY_WARN, SAY_INFO };

/* The text is what follows `level=... `; control characters in it become blanks. */
void say(enum say_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

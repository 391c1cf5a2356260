/* say.h - the agent's log, a line a call; see rpc/log.h */
#ifndef PLIANT_AGENT_SAY_H
#define PLIANT_AGENT_SAY_H

enum say_level { SAY_ERROR = 3, SAY_WARN = 4, SAY_INFO = 6 };

/* The text is what follows `level=... `. */
void say(enum say_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

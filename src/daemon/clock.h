/* clock.h - the daemon's three times
 *
 *     now     drives the cores: Unix time at the first look, then CLOCK_BOOTTIME, so it goes on
 *             during a suspend and does not follow NTP or who sets the clock; also over restarts of
 *             the daemon, until the machine boots; never below what a journal has seen
 *     awake   liveness: like now, but a stretch in which the reactor did not run (suspend, SIGSTOP,
 *             a debugger) counts as stretch_ms at most: agents could not be heard in it
 *     unix    the wall clock, for instants that cross the edges
 */
#ifndef PLIANT_DAEMON_CLOCK_H
#define PLIANT_DAEMON_CLOCK_H

#include <stdint.h>

#define CLOCK_NOTE 80

struct daemon_clock {
    int64_t offset_ms, boot_ms;        /* now = boot time + offset */
    int64_t now_ms, awake_ms, unix_ms; /* as of the last look */
    int64_t stretch_ms;                /* the reactor looks at the clock more often than this */
};

/* `patience_ms`: for how long a peer may be silent; a stretch counts as a third of it at most. */
void clock_start(struct daemon_clock *c, int64_t not_before_ms, int64_t patience_ms);
void clock_look(struct daemon_clock *c);
/* The same with given readings of CLOCK_BOOTTIME and CLOCK_REALTIME. */
void clock_take(struct daemon_clock *c, int64_t boot_ms, int64_t unix_ms);
void clock_not_before(struct daemon_clock *c, int64_t at_ms);

/* Where an earlier daemon stood, from the text that clock_note() wrote for it, if the machine has
 * not booted since: what has passed in between is what has passed, whatever became of the wall
 * clock. Ignores other texts. */
void clock_go_on(struct daemon_clock *c, const char *note);
void clock_note(const struct daemon_clock *c, char ret[CLOCK_NOTE]);

/* A wall-clock instant on the clock of the cores, as of the last look, and back. */
int64_t clock_of_unix(const struct daemon_clock *c, int64_t unix_ms);
int64_t clock_to_unix(const struct daemon_clock *c, int64_t at_ms);

#endif

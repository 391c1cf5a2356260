/* clock.c - see clock.h */
#include "daemon/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define STRETCH_MS 1000
#define STRETCH_MIN_MS 20 /* no busy loop */

static int64_t stretch(int64_t patience_ms)
{
    int64_t third_ms = patience_ms / 3;

    if (third_ms < STRETCH_MIN_MS)
        return STRETCH_MIN_MS;
    return third_ms < STRETCH_MS ? third_ms : STRETCH_MS;
}

static int64_t read_ms(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void clock_start(struct daemon_clock *c, int64_t not_before_ms, int64_t patience_ms)
{
    int64_t boot_ms = read_ms(CLOCK_BOOTTIME), unix_ms = read_ms(CLOCK_REALTIME);
    int64_t now_ms = unix_ms > not_before_ms ? unix_ms : not_before_ms;

    *c = (struct daemon_clock){.offset_ms = now_ms - boot_ms,
                               .boot_ms = boot_ms,
                               .now_ms = now_ms,
                               .awake_ms = now_ms,
                               .unix_ms = unix_ms,
                               .stretch_ms = stretch(patience_ms)};
}

void clock_take(struct daemon_clock *c, int64_t boot_ms, int64_t unix_ms)
{
    int64_t passed_ms = boot_ms > c->boot_ms ? boot_ms - c->boot_ms : 0;

    c->boot_ms += passed_ms;
    c->now_ms = c->boot_ms + c->offset_ms;
    c->awake_ms += passed_ms < c->stretch_ms ? passed_ms : c->stretch_ms;
    c->unix_ms = unix_ms;
}

void clock_look(struct daemon_clock *c)
{
    clock_take(c, read_ms(CLOCK_BOOTTIME), read_ms(CLOCK_REALTIME));
}

void clock_not_before(struct daemon_clock *c, int64_t at_ms)
{
    if (c->now_ms >= at_ms)
        return;
    c->offset_ms += at_ms - c->now_ms;
    c->now_ms = at_ms;
}

/* "" if nobody can tell. */
static void read_boot_id(char ret[CLOCK_NOTE / 2])
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!f || fscanf(f, "%39s", ret) != 1)
        *ret = '\0';
    if (f)
        fclose(f);
}

void clock_go_on(struct daemon_clock *c, const char *note)
{
    char now[CLOCK_NOTE / 2], then[CLOCK_NOTE / 2];
    int64_t offset_ms;

    read_boot_id(now);
    if (sscanf(note, "%39s %" SCNd64, then, &offset_ms) != 2 || strcmp(now, then) != 0)
        return;
    c->offset_ms = offset_ms;
    c->now_ms = c->boot_ms + offset_ms;
}

void clock_note(const struct daemon_clock *c, char ret[CLOCK_NOTE])
{
    char boot[CLOCK_NOTE / 2];

    read_boot_id(boot);
    snprintf(ret, CLOCK_NOTE, "%s %" PRId64, boot, c->offset_ms);
}

int64_t clock_of_unix(const struct daemon_clock *c, int64_t unix_ms)
{
    return c->now_ms + (unix_ms - c->unix_ms);
}

int64_t clock_to_unix(const struct daemon_clock *c, int64_t at_ms)
{
    return c->unix_ms + (at_ms - c->now_ms);
}

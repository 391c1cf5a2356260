/* progress.h - how far a long run is, as one line that is drawn over itself
 *
 * Nothing is drawn in the first second, nor where `out` is no terminal.
 *
 * Owner   a plain value; `out` is borrowed
 */
#ifndef PLIANT_SIM_PROGRESS_H
#define PLIANT_SIM_PROGRESS_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "sim/observer.h"

struct progress {
    struct sim_observer observer; /* shows how much of the run's time has passed */
    FILE *out;                    /* NULL: shows nothing */
    int64_t end;                  /* what is to be reached */
    uint32_t calls, every;        /* calls between two looks at the clock */
    struct timespec began, drawn;
};

void progress_init(struct progress *p, FILE *out, int64_t end);
void progress_show(struct progress *p, int64_t done); /* cheap, call it often */
void progress_clear(struct progress *p);

#endif

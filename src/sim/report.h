/* report.h - what a run did, as text for people, JSON Lines or CSV for programs
 *
 * Each report is an observer: it writes while the run goes on and its totals when the run is over.
 * It buffers through stdio and flushes at the end; whoever opened `out` closes it.
 *
 * Owner   options are copied; `out`, `job` and the texts are borrowed until report_destroy()
 * Errors  the observer's calls answer -errno of the write that failed (-ENOSPC, -EPIPE with
 *         SIGPIPE ignored, ...), or -ENOMEM
 */
#ifndef PLIANT_SIM_REPORT_H
#define PLIANT_SIM_REPORT_H

#include <stdio.h>

#include "sim/observer.h"

enum report_format { REPORT_TEXT, REPORT_JSON, REPORT_CSV };

struct report_options {
    enum report_format format;
    FILE *out;
    const struct pliant_job *job;
    const char *trace;       /* its name in UTF-8, or NULL */
    int64_t expected_end_ms; /* PLIANT_NEVER: not known. Text: how wide times can get */
    unsigned width;          /* text: columns of the terminal; 0: 80 */
    bool ascii;              /* text: the terminal does not show UTF-8 */
};

/* A report that answers the simulator's calls; free it with report_destroy(). Errors: -ENOMEM. */
int report_new(const struct report_options *options, struct sim_observer **ret);

/* Free *o and set it to NULL. Fine on NULL. */
void report_destroy(struct sim_observer **o);

#endif

/* results.h - results of blocking edges, as far as the daemon has to do with them
 *
 * Owner   a report is freed by its reader
 */
#ifndef PLIANT_DAEMON_RESULTS_H
#define PLIANT_DAEMON_RESULTS_H

#include "daemon/daemon.h"

/* How much a task wrote, by edge. Starts with {0}. */
struct result_report {
    struct VEC(struct pliant_output) outputs;
};

/* From the "end" of a TASKSTATE. NULL, or what is wrong with it: then nothing of it is taken. The
 * attempt is the one that the core believes in. */
const char *results_read_sizes(const struct daemon_job *job, const struct pliant_task *task,
                               const struct doc *end, struct result_report *ret);
void results_report_free(struct result_report *r);
/* The same for what the task could not read; `failed` is told. */
const char *results_read_lost(const struct daemon_job *job, const struct pliant_task *task,
                              const struct doc *end, struct pliant_event *failed);

#endif

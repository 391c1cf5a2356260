/* group_error.h - the error that a worker group ends with, in one line
 *
 *     WorkerGroupError: rank 0, ranks 2-3: out of memory; rank 1: node-lost (n2)
 *
 * Causes that differ in nothing but digits are named once, with their ranks [W-BUD-8].
 */
#ifndef PLIANT_FAILOVER_GROUP_ERROR_H
#define PLIANT_FAILOVER_GROUP_ERROR_H

#include "failover/exception_history.h"

/* Into buf[size], cut to fit. `end` is what ended the job. */
void group_error_text(const struct failure_entry *failed, enum pliant_reason end, char *buf,
                      size_t size);

#endif

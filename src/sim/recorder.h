/* recorder.h - an observer that writes the recording of a run
 *
 * Owner   `job` and `out` are borrowed until recorder_destroy(); whoever opened `out` closes it
 * Errors  -errno of writing, -ENOMEM
 */
#ifndef PLIANT_SIM_RECORDER_H
#define PLIANT_SIM_RECORDER_H

#include <stdio.h>

#include "sim/observer.h"

/* Writes the header at once; `cfg` is resolved. */
int recorder_new(FILE *out, const struct pliant_job *job, const struct pliant_config *cfg,
                 struct sim_observer **ret);

/* Free *o and set it to NULL. Fine on NULL. */
void recorder_destroy(struct sim_observer **o);

#endif

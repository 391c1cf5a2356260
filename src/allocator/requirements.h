/* requirements.h - the bounds a job begins with, and updates of them
 *
 * Errors  -EINVAL: the update breaks a rule; every broken one was reported, nothing has changed
 *         -ENOMEM: nothing was reported or changed
 * Source  S-PAR-1..3, S-REQ-1, S-REQ-3, section 1 of the allocator's rules
 */
#ifndef PLIANT_ALLOCATOR_REQUIREMENTS_H
#define PLIANT_ALLOCATOR_REQUIREMENTS_H

#include <pliant/pliant.h>

#include "allocator/allocator.h"

#define REQUIREMENTS_NO_VERTEX UINT32_MAX

/* Set b's vertices as the job was described; in reactive mode each wants its maximum, whatever
 * its parallelism [S-PAR-1, S-PAR-2]. *b comes from bounds_init(). */
void requirements_initial(struct bounds *b, const struct pliant_job *job, bool reactive);

/* One broken rule: index of the vertex, REQUIREMENTS_NO_VERTEX for one that is not the job's. */
typedef void requirements_refused(void *ctx, uint32_t vertex, enum pliant_reason reason);

/* Apply the update whole or not at all [S-REQ-1]: it must name every vertex once, and maximum
 * parallelism stays [S-REQ-3]. 1: the bounds changed, 0: they are what they were, or an error.
 * `refused` is called in the order of the update, then for missing vertices by index. */
int requirements_apply(struct bounds *b, const struct pliant_job *job,
                       const struct pliant_bounds *update, size_t n, const struct pliant_alloc *a,
                       requirements_refused *refused, void *ctx);

#endif

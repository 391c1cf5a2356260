/* created.c - Created: the job is known, nothing has been asked for
 *
 * Left for
 *   WaitingForResources  when scheduling starts           [S-CRE-3]
 *   Executing            the same, with jobmanager.scheduler: default
 *   Finished             on a cancel or a global failure  [S-GEN-9]
 */
#include "states/sched.h"

static struct state on_start(struct pliant_sched *s)
{
    deadline_arm(&s->idle_check, &s->clock, s->clock.now_ms); /* at the start, then every timeout */
    return s->way->start(s);
}

const struct state_ops created_ops = {
    .status = PLIANT_JOB_INITIALIZING,
    .on_start = on_start,
    .on_cancel = cancel_without_graph,
    .on_failure = failure_without_graph,
};

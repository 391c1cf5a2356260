/* notice.h - PreemptionInfo as it comes in a line
 *
 * Owner   notice_free() frees what `info` points to
 * Errors  -EINVAL: not what docs/worker.md says; -ENOMEM. *ret is then untouched
 */
#ifndef PLIANT_WORKER_NOTICE_H
#define PLIANT_WORKER_NOTICE_H

#include <pliant/worker.h>

#include "worker/json_read.h"

struct notice {
    struct pliant_worker_preemption info; /* json NULL: none */
    char *json;
    uint32_t *ranks;
    char **nodes;
};

/* Of a value that is an object, or null or missing: none. */
int notice_read(struct json_span value, struct notice *ret);
void notice_free(struct notice *n);

#endif

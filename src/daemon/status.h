/* status.h - the documents that clients get about jobs and nodes (docs/protocol.md)
 *
 * Each writes its members into an object that is begun already. A job that lives is asked, of one
 * that has ended the documents were kept: status_kept().
 *
 * Units   instants are wall-clock milliseconds; "_ms" else is a duration from now
 */
#ifndef PLIANT_DAEMON_STATUS_H
#define PLIANT_DAEMON_STATUS_H

#include "daemon/daemon.h"

void status_members(struct daemon *d, struct daemon_job *job, struct json *j); /* of STATUS */
void status_checkpoints(struct daemon *d, struct daemon_job *job, struct json *j);
void status_tasks(struct daemon *d, struct daemon_job *job, struct json *j);
void status_rescales(struct daemon *d, struct daemon_job *job, struct json *j);
void status_failures(struct daemon *d, struct daemon_job *job, struct json *j);
void status_nodes(struct daemon *d, struct json *j);
/* A row of LIST. */
void status_row(struct daemon *d, struct daemon_job *job, struct json *j);

/* The members of a document of a job that has ended, by its name in status_final(): "status",
 * "tasks", "rescales", "failures", "checkpoints". */
void status_kept(struct daemon *d, struct daemon_job *job, const char *name, struct json *j);

/* The job's status as a word, also of one that has ended; `buf` is room for it. */
#define STATUS_WORD_MAX 32
const char *status_word(struct daemon *d, struct daemon_job *job, char buf[STATUS_WORD_MAX]);

#endif

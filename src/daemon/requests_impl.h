/* requests_impl.h - what the files that answer requests share
 *
 * requests.c dispatches and answers most; submit.c SUBMIT; logs.c LOGS; record.c RECORD.
 */
#ifndef PLIANT_DAEMON_REQUESTS_IMPL_H
#define PLIANT_DAEMON_REQUESTS_IMPL_H

#include "daemon/daemon.h"

/* A LOGS that an agent has been asked for. */
struct log_request {
    uint64_t id;
    struct reply_to to;
    int64_t end_at_ms; /* awake time */
    uint32_t asked;    /* agents that may still answer */
};

struct requests {
    struct doc_file body;
    struct json reply;
    struct VEC(struct log_request) logs;
    uint64_t last_log;
    /* the wish that is being stepped: a refusal of its job is meant for it */
    struct daemon_job *stepping;
    bool refused;
    char refusal[512];
};

/* One request. A handler answers it by call_end() or refuse(), or keeps `to` for later. */
struct call {
    struct daemon *d;
    struct reply_to to;
    const struct doc_file *f;
    const struct doc *body;
};

struct requests *requests_of(struct daemon *d);

struct json *call_begin(struct call *c); /* the reply; members follow */
void call_end(struct call *c);
void refuse(struct call *c, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The job that "job" names; false: it has been refused. */
bool call_job(struct call *c, struct daemon_job **ret);

/* Members that may be absent or null. False: "invalid" has been answered. */
bool call_string(struct call *c, const char *key, size_t max, const char **ret);
bool call_int(struct call *c, const char *key, int64_t min, int64_t max, int64_t *ret);
bool call_bool(struct call *c, const char *key, bool *ret);
/* Of one that must be there: true, or "invalid" has been answered. */
bool call_needs(struct call *c, const char *key, const char *what);

void submit(struct call *c);
void logs(struct call *c);
void record(struct call *c);

#endif

/* worker_impl.h - what the modules of the worker's library share
 *
 *     session.c   a connection that says hello, asks, and takes in what the agent says by itself
 *     worker.c    the public functions
 */
#ifndef PLIANT_WORKER_WORKER_IMPL_H
#define PLIANT_WORKER_WORKER_IMPL_H

#include <pliant/worker.h>

#include "spec/json_out.h"
#include "worker/edges.h"
#include "worker/environment.h"
#include "worker/json_read.h"
#include "worker/link.h"
#include "worker/notice.h"

#define REQUESTS_MAX 16 /* for checkpoints at one time; the oldest is dropped for one more */

/* A request for a checkpoint, from its coming to its part. */
struct request {
    char *id, *dir; /* NULL in worker groups */
    bool savepoint, handed_out;
};

struct pliant_worker {
    struct environment env;
    struct edges edges;
    bool read_edges;
    char *error;
    int64_t patience_ms;

    struct link link;
    bool greeted; /* hello was answered on this connection */
    bool takes_checkpoints;
    char *run_dir; /* as hello told it */

    /* The counters of docs/worker.md: known with the first hello, then counted here. */
    bool counted;
    int64_t calls, seqs;
    int64_t n; /* of requests, to tell answers apart */

    struct json out;   /* the request that is under way, without its LF */
    char *answer_text; /* its answer */
    struct json_span answer;

    /* what was said and not handed out */
    struct request requests[REQUESTS_MAX];
    size_t n_requests;
    struct notice told; /* by an event */
    bool news_of_notice, stopping, news_of_stop;

    /* what was handed out */
    struct notice asked; /* by pliant_worker_get_preemption_info() */
    char *checkpoint, *new_dir;
    char *last_reported; /* not under Pliant: stands for what the daemon knows */
};

/* "..." into w->error; returns r, or -ENOMEM. */
int worker_fail(struct pliant_worker *w, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Connected and greeted, for as long as patience lasts. */
int session_ensure(struct pliant_worker *w);
/* The same, one try at most. -ENOTCONN: not now. */
int session_try(struct pliant_worker *w);

/* Begin a request; the caller adds members and calls session_ask(). */
void session_request(struct pliant_worker *w, const char *op);
/* Send it and wait for w->answer, again on every new connection. `collective`: the end of the task
 * ends the wait. */
int session_ask(struct pliant_worker *w, bool collective);

/* Take in lines until an event is there or the time is over. 1, 0, -ENOTCONN. */
int session_listen(struct pliant_worker *w, int64_t until_ms);
void session_forget(struct pliant_worker *w, size_t request);

#endif

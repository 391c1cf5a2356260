/* peer.h - sockets that carry messages: the daemon's ends and those of who connects
 *
 * The only module that knows libzmq and czmq. Nothing here blocks, but where a timeout is named.
 *
 *     server  struct rpc_server   ROUTER (agents, clients) or PUB (events), bound
 *     client  struct rpc_link     DEALER or SUB, connected, reconnecting by itself
 *
 * Flow    queues are bounded (high-water marks). A peer that does not read makes rpc_send() answer
 *         -EAGAIN: the message is dropped and counted; repairing is the session's business.
 * Owner   a received message is borrowed until the next receive on the same socket
 * Errors  negative errno
 */
#ifndef PLIANT_RPC_PEER_H
#define PLIANT_RPC_PEER_H

#include <signal.h>

#include "rpc/keys.h"
#include "rpc/message.h"

struct rpc_id { /* a ROUTER's name for a connection */
    uint8_t bytes[255];
    uint8_t size;
};

struct rpc_message {
    struct rpc_id from; /* servers only */
    int connection;     /* servers: names it in rpc_server_gone(); -1: it has gone already */
    enum message_role role;
    char key[RPC_KEY]; /* public key of the sender, "" without CURVE */
    enum message_fault fault;
    struct message_header header;
    const char *body; /* not NUL-terminated */
    size_t size;
};

struct rpc_counts {
    uint64_t received, sent, dropped_full, dropped_gone;
    uint64_t faults; /* broken messages, and connections that spoke something else */
    uint64_t denied; /* connections whose key was refused */
};

/* ---- the daemon's ends ------------------------------------------------------------------- */

enum rpc_server_kind { RPC_AGENTS, RPC_CLIENTS, RPC_EVENTS };

struct rpc_server; /* opaque */

/* Bind. `auth` NULL: no keys; then other endpoints than ipc:// and loopback are -EACCES unless
 * `insecure`, and whoever connects is an operator on the clients' socket, an agent on the agents'.
 * *err says what is wrong for people. Raises the limit of descriptors to what is allowed. */
int rpc_server_open(enum rpc_server_kind kind, const char *endpoint, struct rpc_auth *auth,
                    bool insecure, int queue, struct rpc_server **ret, struct spec_error *err);
void rpc_server_close(struct rpc_server **s);
const char *rpc_server_endpoint(const struct rpc_server *s); /* as bound: with the port */
void *rpc_server_socket(const struct rpc_server *s);         /* for zmq_poll() */
void *rpc_server_monitor(const struct rpc_server *s);        /* readable: call rpc_server_gone() */

/* 1: *ret; 0: nothing there (always for events). Denied and broken messages come out too (see role,
 * fault): the caller answers. */
int rpc_receive(struct rpc_server *s, struct rpc_message *ret);

/* -EAGAIN: the peer's queue is full; -EHOSTUNREACH: it is gone; -EMSGSIZE: the body is longer than
 * its type may be; the error of `body`. `to` NULL: an event, to all. */
int rpc_send(struct rpc_server *s, const struct rpc_id *to, const struct message_header *h,
             const struct json *body);

/* 1 and the next connection that was closed; 0: no more. Ask each server, the events' too, until 0
 * in every turn after receiving, whether or not the monitor was readable: receiving looks at it as
 * well. A number is not used again, and no message of a connection comes after the last word that
 * it has gone (a message that was under way may come between two such words). */
int rpc_server_gone(struct rpc_server *s, int *ret_connection);

void rpc_server_counts(const struct rpc_server *s, struct rpc_counts *ret);

/* ---- who connects ------------------------------------------------------------------------ */

struct rpc_link; /* opaque */

struct rpc_link_config {
    const char *endpoint;                /* copied */
    const struct rpc_identity *identity; /* borrowed for the call; NULL: no keys */
    bool events;                         /* SUB, else DEALER */
    bool watched;                        /* for rpc_link_renewed() */
    int queue;
};

/* Waits for nothing: whether somebody is there shows when messages come. A link that the other end
 * refused for its key does not try again: open a new one. */
int rpc_link_open(const struct rpc_link_config *cfg, struct rpc_link **ret, struct spec_error *err);
void rpc_link_close(struct rpc_link **l); /* what is queued is sent for up to a second */
void *rpc_link_socket(const struct rpc_link *l);
/* Edge-triggered, as ZMQ_FD is: receive until 0 when it is readable and after each send. */
int rpc_link_fd(const struct rpc_link *l);

/* Of a watched link: is there a new connection since the last call, after one that broke? What was
 * under way on that is lost. Ask in each turn; the descriptor, edge-triggered, says that one is
 * due. */
bool rpc_link_renewed(struct rpc_link *l);
int rpc_link_watch_fd(const struct rpc_link *l);

int rpc_link_receive(struct rpc_link *l, struct rpc_message *ret); /* 1, 0 */
/* -EAGAIN: the queue is full; it is kept while the link is broken. -EMSGSIZE, the error of `body`.
 */
int rpc_link_send(struct rpc_link *l, const struct message_header *h, const struct json *body);

/* A request and its reply; what else comes is skipped. 0: *ret_reply is the body of REPLY; -EPROTO:
 * the service answered with ERROR (its code and text are in *ret_error); -ETIMEDOUT: no answer
 * within timeout_ms; -EBADMSG: an answer that is none. *ret_reply is reused from call to call:
 * start with {0}, end with doc_free(). */
struct rpc_refusal {
    char code[32];
    char text[1024];
};
int rpc_call(struct rpc_link *l, enum message_type type, const struct json *body, int timeout_ms,
             struct doc_file *ret_reply, struct rpc_refusal *ret_error, struct spec_error *err);

/* First of all in main(): keeps czmq from taking signals, ignores SIGPIPE, opens descriptors 0 to 2
 * on /dev/null where they are closed. */
void rpc_prepare_process(void);

/* From here on a signal is a message: a signalfd of all that would end or stop the process, but for
 * faults and the terminal's stops, which keep their meaning unless they are in `also` (or NULL).
 * Threads that are made later inherit the mask. -errno. */
int rpc_signals_open(const sigset_t *also);

#endif

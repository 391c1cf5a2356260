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

#include "rpc/keys.h"
#include "rpc/message.h"

struct rpc_id { /* a ROUTER's name for a connection */
    uint8_t bytes[255];
    uint8_t size;
};

struct rpc_message {
    struct rpc_id from; /* servers only */
    int connection;     /* servers: names the connection in rpc_server_gone(); -1: unknown */
    enum message_role role;
    char key[41]; /* public key of the sender, "" without CURVE */
    enum message_fault fault;
    struct message_header header;
    const char *body; /* not NUL-terminated */
    size_t size;
};

struct rpc_counts {
    uint64_t received, sent, dropped_full, dropped_gone, faults, denied;
};

/* ---- the daemon's ends ------------------------------------------------------------------- */

enum rpc_server_kind { RPC_AGENTS, RPC_CLIENTS, RPC_EVENTS };

struct rpc_server; /* opaque */

/* Bind. `auth` NULL: no keys; then other endpoints than ipc:// and loopback are -EACCES unless
 * `insecure`. *err says what is wrong for people. */
int rpc_server_open(enum rpc_server_kind kind, const char *endpoint, struct rpc_auth *auth,
                    bool insecure, int queue, struct rpc_server **ret, struct spec_error *err);
void rpc_server_close(struct rpc_server **s);
const char *rpc_server_endpoint(const struct rpc_server *s); /* as bound: with the port */
void *rpc_server_socket(const struct rpc_server *s);         /* for zmq_poll() */
void *rpc_server_monitor(const struct rpc_server *s);        /* readable: call rpc_server_gone() */

/* 1: *ret; 0: nothing there. Denied and broken messages come out too (see role, fault): the
 * caller answers. */
int rpc_receive(struct rpc_server *s, struct rpc_message *ret);

/* -EAGAIN: the peer's queue is full; -EHOSTUNREACH: it is gone. `to` NULL: an event, to all. */
int rpc_send(struct rpc_server *s, const struct rpc_id *to, const struct message_header *h,
             const struct json *body);

/* 1 and the next connection that was closed, by the number in its messages; 0: no more. Numbers are
 * reused by the system: make sure with rpc_alive(). */
int rpc_server_gone(struct rpc_server *s, int *ret_connection);

/* Is there a connection behind this id? Sends nothing. */
bool rpc_alive(struct rpc_server *s, const struct rpc_id *id);

void rpc_server_counts(const struct rpc_server *s, struct rpc_counts *ret);

/* ---- who connects ------------------------------------------------------------------------ */

struct rpc_link; /* opaque */

struct rpc_link_config {
    const char *endpoint;
    const struct rpc_identity *identity; /* NULL: no keys */
    bool events;                         /* SUB, else DEALER */
    int queue;
};

int rpc_link_open(const struct rpc_link_config *cfg, struct rpc_link **ret, struct spec_error *err);
void rpc_link_close(struct rpc_link **l); /* what is queued is sent for up to a second */
void *rpc_link_socket(const struct rpc_link *l);
int rpc_link_fd(const struct rpc_link *l); /* edge-triggered, as ZMQ_FD is: receive until 0 */

int rpc_link_receive(struct rpc_link *l, struct rpc_message *ret); /* 1, 0 */
int rpc_link_send(struct rpc_link *l, const struct message_header *h, const struct json *body);

/* A request and its reply. 0: *ret_reply is the body of REPLY; -EPROTO: the service answered with
 * ERROR (its code and text are in *ret_error); -ETIMEDOUT: no answer within timeout_ms. */
struct rpc_refusal {
    char code[32];
    char text[1024];
};
int rpc_call(struct rpc_link *l, enum message_type type, const struct json *body, int timeout_ms,
             struct doc_file *ret_reply, struct rpc_refusal *ret_error, struct spec_error *err);

/* First of all in main(): keeps czmq from taking signals, opens descriptors 0 to 2 on /dev/null
 * where they are closed. */
void rpc_prepare_process(void);

#endif

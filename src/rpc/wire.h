/* wire.h - what both ends do with libzmq: sockets, messages of two frames, monitors
 *
 * For src/rpc only. Sockets are czmq's; messages go through raw zmq_msg_t, which spares czmq's
 * two allocations a frame.
 */
#ifndef PLIANT_RPC_WIRE_H
#define PLIANT_RPC_WIRE_H

#include <czmq.h>

#include "rpc/peer.h"

/* The frames of the message that is borrowed out, and a ROUTER's id before them. */
struct wire_message {
    zmq_msg_t id, header, body;
};

void wire_message_init(struct wire_message *m);

/* 1: a message is in *m and in the fault, header, body and size of *ret, however broken it is; all
 * its frames have been taken. 0: nothing there. */
int wire_receive(void *socket, bool with_id, struct wire_message *m, struct rpc_message *ret);

/* Send all frames or none. 0, -EAGAIN, -EHOSTUNREACH, -EMSGSIZE, -ENOMEM, or the errno of libzmq.
 */
int wire_send(void *socket, const struct rpc_id *to, const struct message_header *h,
              const struct json *body);

/* A socket with what all of ours share; size_max: of a frame. NULL: errno says why. */
zsock_t *wire_socket(int type, int queue, int64_t size_max);

/* "tcp://HOST:PORT" or "ipc://PATH", or -EINVAL with *err. */
int wire_check_endpoint(const char *endpoint, struct spec_error *err);

/* Watch a socket: the end from which wire_event() reads; NULL: errno says why. */
zsock_t *wire_monitor(zsock_t *socket, int events);

/* The end of a socket, its monitor and its messages; what is not there is passed over. */
void wire_close(zsock_t **socket, zsock_t **monitor, struct wire_message *m);

/* 1: the next event and its value (most often a descriptor); 0: none. */
int wire_event(zsock_t *monitor, uint16_t *ret_event, uint32_t *ret_value);

#endif

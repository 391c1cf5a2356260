/* wire.c - see wire.h */
#include "rpc/wire.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "util/decimal.h"

#define BACKLOG 1024       /* connections that the system keeps for us while we are busy */
#define HANDSHAKE_MS 10000 /* who says nothing sensible for so long is cut off */
#define LINGER_MS 1000     /* after a close, for what is queued */
#define RECONNECT_MS 100   /* the first try; doubles up to: */
#define RECONNECT_MAX_MS 5000
#define CONNECT_MS 5000 /* a host that does not answer: try again */
#define KEEPALIVE_S 60  /* TCP asks a peer that is silent, so that dead connections end */
#define KEEPALIVE_PROBES 4
#define KEEPALIVE_INTERVAL_S 15
#define OVERHEAD                                                                                   \
    1024 /* bytes that encryption and handshakes add to a frame, with room to spare                \
          */

/* ---- receiving ------------------------------------------------------------------------------- */

void wire_message_init(struct wire_message *m)
{
    zmq_msg_init(&m->id);
    zmq_msg_init(&m->header);
    zmq_msg_init(&m->body);
}

/* A frame into *frame, whose former content goes. */
static bool take(void *socket, zmq_msg_t *frame)
{
    while (zmq_msg_recv(frame, socket, ZMQ_DONTWAIT) < 0)
        if (errno != EINTR)
            return false;
    return true;
}

/* The frames behind one that is not the last. */
static void drop_rest(void *socket)
{
    zmq_msg_t frame;
    bool more = true;

    zmq_msg_init(&frame);
    while (more)
        more = take(socket, &frame) && zmq_msg_more(&frame);
    zmq_msg_close(&frame);
}

int wire_receive(void *socket, bool with_id, struct wire_message *m, struct rpc_message *ret)
{
    zmq_msg_t *const frames[] = {&m->id, &m->header, &m->body};
    size_t i = with_id ? 0 : 1;
    bool whole;

    if (!take(socket, frames[i]))
        return 0;
    while (i < 2 && zmq_msg_more(frames[i]) && take(socket, frames[i + 1]))
        i++;
    whole = i == 2 && !zmq_msg_more(&m->body);
    if (zmq_msg_more(frames[i]))
        drop_rest(socket);
    for (i++; i <= 2; i++) { /* nothing of the message before this one */
        zmq_msg_close(frames[i]);
        zmq_msg_init(frames[i]);
    }
    ret->body = zmq_msg_data(&m->body);
    ret->size = zmq_msg_size(&m->body);
    ret->fault =
        message_unpack(zmq_msg_data(&m->header), zmq_msg_size(&m->header), ret->size, &ret->header);
    if (!whole && (ret->fault == MESSAGE_GOOD || ret->fault == MESSAGE_TOO_LARGE))
        ret->fault = MESSAGE_MALFORMED;
    return 1;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Send a frame, which is empty then. */
static int give(void *socket, zmq_msg_t *frame, int flags)
{
    while (zmq_msg_send(frame, socket, flags | ZMQ_DONTWAIT) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

static int frame_of(zmq_msg_t *ret, const void *bytes, size_t n)
{
    if (zmq_msg_init_size(ret, n) < 0)
        return -ENOMEM;
    memcpy(zmq_msg_data(ret), bytes, n);
    return 0;
}

/* Both frames have been made before the first is sent, and libzmq refuses only a message's first
 * frame (or takes back what it had of it): no peer sees half a message. */
int wire_send(void *socket, const struct rpc_id *to, const struct message_header *h,
              const struct json *body)
{
    const struct message_kind *kind = message_kind(h->type);
    uint8_t packed[MESSAGE_HEADER];
    zmq_msg_t id, header, text;
    int r;

    if (body->error)
        return body->error;
    if (!kind || body->n > kind->size_max)
        return -EMSGSIZE;
    message_pack(packed, h);
    zmq_msg_init(&id);
    zmq_msg_init(&header);
    zmq_msg_init(&text);
    r = frame_of(&header, packed, sizeof packed);
    if (r == 0)
        r = frame_of(&text, body->v, body->n);
    if (r == 0 && to)
        r = frame_of(&id, to->bytes, to->size);
    if (r == 0 && to)
        r = give(socket, &id, ZMQ_SNDMORE);
    if (r == 0)
        r = give(socket, &header, ZMQ_SNDMORE);
    if (r == 0)
        r = give(socket, &text, 0);
    zmq_msg_close(&id);
    zmq_msg_close(&header);
    zmq_msg_close(&text);
    return r;
}

/* ---- sockets --------------------------------------------------------------------------------- */

zsock_t *wire_socket(int type, int queue, int64_t size_max)
{
    zsock_t *s = zsock_new(type);

    if (!s)
        return NULL;
    zsock_set_sndhwm(s, queue);
    zsock_set_rcvhwm(s, queue);
    zsock_set_linger(s, LINGER_MS);
    zsock_set_backlog(s, BACKLOG);
    zsock_set_handshake_ivl(s, HANDSHAKE_MS);
    zsock_set_tcp_keepalive(s, 1);
    zsock_set_tcp_keepalive_idle(s, KEEPALIVE_S);
    zsock_set_tcp_keepalive_cnt(s, KEEPALIVE_PROBES);
    zsock_set_tcp_keepalive_intvl(s, KEEPALIVE_INTERVAL_S);
    zsock_set_reconnect_ivl(s, RECONNECT_MS);
    zsock_set_reconnect_ivl_max(s, RECONNECT_MAX_MS);
    zsock_set_connect_timeout(s, CONNECT_MS);
    size_max += OVERHEAD;
    zmq_setsockopt(zsock_resolve(s), ZMQ_MAXMSGSIZE, &size_max, sizeof size_max);
    return s;
}

/* libzmq takes 99999 for 34463. */
static bool is_port(const char *text)
{
    int64_t port;

    return strcmp(text, "*") == 0 || (decimal_read_int(text, &port) && port > 0 && port <= 65535);
}

int wire_check_endpoint(const char *endpoint, struct spec_error *err)
{
    const char *colon = strrchr(endpoint, ':');
    bool tcp = strncmp(endpoint, "tcp://", 6) == 0 && colon > endpoint + 6 && is_port(colon + 1);
    bool ipc = strncmp(endpoint, "ipc://", 6) == 0 && endpoint[6];

    if (tcp || ipc)
        return 0;
    snprintf(err->text, sizeof err->text,
             "endpoint \"%.200s\"; accepted: tcp://HOST:PORT, ipc://PATH", endpoint);
    return -EINVAL;
}

/* ---- monitors -------------------------------------------------------------------------------- */

/* libzmq's own thread writes into the monitor and would wait if that were full: no mark here. A
 * name must not come again: libzmq forgets it some time after the close. */
zsock_t *wire_monitor(zsock_t *socket, int events)
{
    static atomic_uint monitors;
    zsock_t *monitor = zsock_new(ZMQ_PAIR);
    char name[64];
    int error;

    if (!monitor)
        return NULL;
    snprintf(name, sizeof name, "inproc://monitor-%u", atomic_fetch_add(&monitors, 1));
    zsock_set_rcvhwm(monitor, 0);
    if (zmq_socket_monitor(zsock_resolve(socket), name, events) < 0 ||
        zsock_connect(monitor, "%s", name) < 0) {
        error = errno;
        zsock_destroy(&monitor);
        errno = error;
    }
    return monitor;
}

void wire_close(zsock_t **socket, zsock_t **monitor, struct wire_message *m)
{
    zmq_msg_close(&m->id);
    zmq_msg_close(&m->header);
    zmq_msg_close(&m->body);
    if (*monitor)
        zmq_socket_monitor(zsock_resolve(*socket), NULL, 0);
    zsock_destroy(monitor);
    zsock_destroy(socket);
}

int wire_event(zsock_t *monitor, uint16_t *ret_event, uint32_t *ret_value)
{
    void *socket = zsock_resolve(monitor);
    const uint8_t *v;
    zmq_msg_t frame;
    int r = 0;

    zmq_msg_init(&frame);
    if (take(socket, &frame)) {
        v = zmq_msg_data(&frame);
        memcpy(ret_event, v, sizeof *ret_event);
        memcpy(ret_value, v + sizeof *ret_event, sizeof *ret_value);
        drop_rest(socket); /* the address */
        r = 1;
    }
    zmq_msg_close(&frame);
    return r;
}

/* message.h - the messages between pliantd, agents and clients: header frame, types, limits
 *
 * A message is a header of MESSAGE_HEADER bytes and a body, one JSON object (docs/protocol.md).
 * This module neither sends nor receives: it packs, unpacks, and knows the table of types.
 *
 * Source  docs/protocol.md, which lists the same types in the same order
 */
#ifndef PLIANT_RPC_MESSAGE_H
#define PLIANT_RPC_MESSAGE_H

#include "spec/doc.h"
#include "spec/json_out.h"

#define MESSAGE_VERSION 1
#define MESSAGE_HEADER 24u /* bytes */

enum message_type {
    MESSAGE_ERROR = 0,
    MESSAGE_HELLO = 1,
    MESSAGE_WELCOME,
    MESSAGE_HEARTBEAT,
    MESSAGE_TASKS,
    MESSAGE_FORGET,
    MESSAGE_DEPLOY,
    MESSAGE_STOP,
    MESSAGE_DRAIN,
    MESSAGE_DRAIN_WITHDRAWN,
    MESSAGE_GOODBYE,
    MESSAGE_RESYNC,
    MESSAGE_CHECKPOINT,
    MESSAGE_PARTS,
    MESSAGE_REPORT,
    MESSAGE_REPORT_TAKEN,
    MESSAGE_ENTER,
    MESSAGE_RELEASED,
    MESSAGE_NOTICE,
    MESSAGE_RESERVE_PORT,
    MESSAGE_PORT,
    MESSAGE_USAGE,
    MESSAGE_READ_LOG,
    MESSAGE_LOG,
    MESSAGE_END_OF_DATA,
    MESSAGE_DISCARD,
    MESSAGE_DISCARDED,
    MESSAGE_REPLY = 100,
    MESSAGE_PING,
    MESSAGE_SUBMIT,
    MESSAGE_LIST,
    MESSAGE_STATUS,
    MESSAGE_SCALE,
    MESSAGE_CANCEL,
    MESSAGE_STOP_JOB,
    MESSAGE_SAVEPOINT,
    MESSAGE_TAKE_CHECKPOINT,
    MESSAGE_DRAIN_NODE,
    MESSAGE_UNDRAIN_NODE,
    MESSAGE_NODES,
    MESSAGE_TASKS_OF,
    MESSAGE_RESCALES,
    MESSAGE_FAILURES,
    MESSAGE_CHECKPOINTS,
    MESSAGE_LOGS,
    MESSAGE_RECORD,
    MESSAGE_SHUTDOWN,
    MESSAGE_SNAPSHOT,
    MESSAGE_REMOVE,
    MESSAGE_EVENT = 200,
};

enum message_role { ROLE_NONE, ROLE_AGENT, ROLE_VIEWER, ROLE_OPERATOR };

/* One row of the table. */
struct message_kind {
    enum message_type type;
    const char *name;       /* "HELLO" */
    enum message_role role; /* who may send it to the daemon; ROLE_NONE: it is the daemon's own */
    uint32_t size_max;      /* of the body, bytes */
};

/* The row of a type, or NULL. */
const struct message_kind *message_kind(uint16_t type);
/* Row i, or NULL behind the last. */
const struct message_kind *message_kind_at(size_t i);
/* The greatest limit of the types from first to last. */
uint32_t message_size_max(enum message_type first, enum message_type last);

/* May a peer with this role send this type to the daemon? An operator may what a viewer may; what
 * is an agent's is for agents alone. */
bool message_allowed(enum message_role role, const struct message_kind *kind);
enum message_role message_role_of(const char *name); /* ROLE_NONE: no role's name */
const char *message_role_name(enum message_role role);

struct message_header {
    uint16_t type;
    uint64_t epoch, sequence;
};

enum message_fault {
    MESSAGE_GOOD,
    MESSAGE_NOT_OURS,      /* size or magic of the header: no answer */
    MESSAGE_OTHER_VERSION, /* type, epoch, sequence were read all the same */
    MESSAGE_UNKNOWN_TYPE,
    MESSAGE_TOO_LARGE,
    MESSAGE_MALFORMED, /* not two frames, or the body is not one JSON object */
};

void message_pack(uint8_t ret[MESSAGE_HEADER], const struct message_header *h);

/* Check the two frames but for what the body says. */
enum message_fault message_unpack(const void *header, size_t header_size, size_t body_size,
                                  struct message_header *ret);

/* The body as a map; errors name it by the type. MESSAGE_GOOD or MESSAGE_MALFORMED with *err;
 * -ENOMEM. The document is reused from call to call: start with {0}, end with doc_free(). */
int message_body(struct doc_file *f, const struct message_header *h, const void *body, size_t size,
                 struct spec_error *err);

/* Code and text of an ERROR: "version", "unknown-type", "too-large", "malformed". */
const char *message_fault_code(enum message_fault fault);

#endif

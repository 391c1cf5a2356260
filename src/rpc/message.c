/* message.c - see message.h */
#include "rpc/message.h"

#include <string.h>

#define KIB 1024u
#define MIB (1024u * KIB)

/* Where the fields of a header are. */
enum { AT_MAGIC = 0, AT_VERSION = 4, AT_ZERO = 5, AT_TYPE = 6, AT_EPOCH = 8, AT_SEQUENCE = 16 };

static const char magic[4] = {'P', 'L', 'N', 'T'};

/* clang-format off */
#define KIND(name, role, size) [MESSAGE_##name] = {MESSAGE_##name, #name, ROLE_##role, size}
static const struct message_kind kinds[] = {
    KIND(ERROR,            AGENT,     8 * KIB),

    KIND(HELLO,            AGENT,    16 * MIB),
    KIND(WELCOME,          NONE,      4 * KIB),
    KIND(HEARTBEAT,        AGENT,     1 * KIB),
    KIND(TASKS,            AGENT,    16 * MIB),
    KIND(FORGET,           NONE,     16 * MIB),
    KIND(DEPLOY,           NONE,     16 * MIB),
    KIND(STOP,             NONE,     16 * MIB),
    KIND(DRAIN,            AGENT,     4 * KIB),
    KIND(DRAIN_WITHDRAWN,  AGENT,     1 * KIB),
    KIND(GOODBYE,          AGENT,     4 * KIB),
    KIND(RESYNC,           NONE,      1 * KIB),
    KIND(CHECKPOINT,       NONE,      4 * MIB),
    KIND(PARTS,            AGENT,     4 * MIB),
    KIND(REPORT,           AGENT,   256 * KIB),
    KIND(REPORT_TAKEN,     NONE,      4 * KIB),
    KIND(ENTER,            AGENT,   256 * KIB),
    KIND(RELEASED,         NONE,    256 * KIB),
    KIND(NOTICE,           NONE,     64 * KIB),
    KIND(RESERVE_PORT,     NONE,      4 * KIB),
    KIND(PORT,             AGENT,     4 * KIB),
    KIND(USAGE,            AGENT,     4 * MIB),
    KIND(READ_LOG,         NONE,      4 * KIB),
    KIND(LOG,              AGENT,     1 * MIB),
    KIND(END_OF_DATA,      AGENT,     4 * KIB),
    KIND(DISCARD,          NONE,     16 * MIB),
    KIND(DISCARDED,        AGENT,     4 * KIB),

    KIND(REPLY,            NONE,     64 * MIB),
    KIND(PING,             VIEWER,    1 * KIB),
    KIND(SUBMIT,           OPERATOR, 64 * MIB),
    KIND(LIST,             VIEWER,    1 * KIB),
    KIND(STATUS,           VIEWER,    1 * KIB),
    KIND(SCALE,            OPERATOR,  1 * MIB),
    KIND(CANCEL,           OPERATOR,  1 * KIB),
    KIND(STOP_JOB,         OPERATOR,  8 * KIB),
    KIND(SAVEPOINT,        OPERATOR,  8 * KIB),
    KIND(TAKE_CHECKPOINT,  OPERATOR,  1 * KIB),
    KIND(DRAIN_NODE,       OPERATOR,  4 * KIB),
    KIND(UNDRAIN_NODE,     OPERATOR,  1 * KIB),
    KIND(NODES,            VIEWER,    1 * KIB),
    KIND(TASKS_OF,         VIEWER,    1 * KIB),
    KIND(RESCALES,         VIEWER,    1 * KIB),
    KIND(FAILURES,         VIEWER,    1 * KIB),
    KIND(CHECKPOINTS,      VIEWER,    1 * KIB),
    KIND(LOGS,             VIEWER,    4 * KIB),
    KIND(RECORD,           VIEWER,    1 * KIB),
    KIND(SHUTDOWN,         OPERATOR,  1 * KIB),
    KIND(SNAPSHOT,         VIEWER,    1 * KIB),
    KIND(REMOVE,           OPERATOR,  1 * KIB),

    KIND(EVENT,            NONE,      1 * MIB),
};
/* clang-format on */

#define N_KINDS (sizeof kinds / sizeof *kinds)

const struct message_kind *message_kind(uint16_t type)
{
    return type < N_KINDS && kinds[type].name ? &kinds[type] : NULL;
}

const struct message_kind *message_kind_at(size_t i)
{
    for (size_t type = 0; type < N_KINDS; type++)
        if (kinds[type].name && i-- == 0)
            return &kinds[type];
    return NULL;
}

uint32_t message_size_max(enum message_type first, enum message_type last)
{
    uint32_t max = 0;

    for (size_t type = first; type <= last && type < N_KINDS; type++)
        if (kinds[type].size_max > max)
            max = kinds[type].size_max;
    return max;
}

/* ---- roles ----------------------------------------------------------------------------------- */

static const char *const roles[] = {
    [ROLE_NONE] = "none",
    [ROLE_AGENT] = "agent",
    [ROLE_VIEWER] = "viewer",
    [ROLE_OPERATOR] = "operator",
};

bool message_allowed(enum message_role role, const struct message_kind *kind)
{
    if (kind->role == ROLE_VIEWER && role == ROLE_OPERATOR)
        return true;
    return kind->role != ROLE_NONE && kind->role == role;
}

enum message_role message_role_of(const char *name)
{
    if (strcmp(name, roles[ROLE_AGENT]) == 0)
        return ROLE_AGENT;
    if (strcmp(name, roles[ROLE_VIEWER]) == 0)
        return ROLE_VIEWER;
    return strcmp(name, roles[ROLE_OPERATOR]) == 0 ? ROLE_OPERATOR : ROLE_NONE;
}

const char *message_role_name(enum message_role role)
{
    return roles[role];
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void put(uint8_t *at, uint64_t x, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(x >> 8 * (bytes - 1 - i));
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
    uint64_t x = 0;

    for (unsigned i = 0; i < bytes; i++)
        x = x << 8 | at[i];
    return x;
}

void message_pack(uint8_t ret[MESSAGE_HEADER], const struct message_header *h)
{
    memcpy(ret + AT_MAGIC, magic, sizeof magic);
    ret[AT_VERSION] = MESSAGE_VERSION;
    ret[AT_ZERO] = 0;
    put(ret + AT_TYPE, h->type, 2);
    put(ret + AT_EPOCH, h->epoch, 8);
    put(ret + AT_SEQUENCE, h->sequence, 8);
}

enum message_fault message_unpack(const void *header, size_t header_size, size_t body_size,
                                  struct message_header *ret)
{
    const uint8_t *v = header;
    const struct message_kind *kind;

    *ret = (struct message_header){0};
    if (header_size != MESSAGE_HEADER || memcmp(v + AT_MAGIC, magic, sizeof magic) != 0)
        return MESSAGE_NOT_OURS;
    ret->type = (uint16_t)get(v + AT_TYPE, 2);
    ret->epoch = get(v + AT_EPOCH, 8);
    ret->sequence = get(v + AT_SEQUENCE, 8);
    if (v[AT_VERSION] != MESSAGE_VERSION || v[AT_ZERO] != 0)
        return MESSAGE_OTHER_VERSION;
    kind = message_kind(ret->type);
    if (!kind)
        return MESSAGE_UNKNOWN_TYPE;
    return body_size > kind->size_max ? MESSAGE_TOO_LARGE : MESSAGE_GOOD;
}

int message_body(struct doc_file *f, const struct message_header *h, const void *body, size_t size,
                 struct spec_error *err)
{
    const struct message_kind *kind = message_kind(h->type);
    int r;

    f->name = kind ? kind->name : "message";
    r = doc_line(f, body, size, 1, err);
    if (r == 0 && f->root->kind != DOC_MAP)
        r = doc_error(f, f->root, err, "is %s; accepted: a map", doc_kind_name(f->root->kind));
    if (r == -ENOMEM)
        return r;
    return r < 0 ? MESSAGE_MALFORMED : MESSAGE_GOOD;
}

const char *message_fault_code(enum message_fault fault)
{
    switch (fault) {
    case MESSAGE_OTHER_VERSION:
        return "version";
    case MESSAGE_UNKNOWN_TYPE:
        return "unknown-type";
    case MESSAGE_TOO_LARGE:
        return "too-large";
    case MESSAGE_GOOD:
    case MESSAGE_NOT_OURS:
    case MESSAGE_MALFORMED:
        break;
    }
    return "malformed";
}

/* keys_impl.h - keys as the sockets and the ZAP handler use them; for src/rpc only
 *
 * Keys are text: 40 characters of Z85.
 */
#ifndef PLIANT_RPC_KEYS_IMPL_H
#define PLIANT_RPC_KEYS_IMPL_H

#include <czmq.h>

#include <pliant/job.h>

#include "rpc/keys.h"
#include "rpc/peer.h"
#include "util/vec.h"

#define RPC_NODE (PLIANT_NAME_MAX + 1) /* bytes of a node's name with its NUL */

struct key_pair {
    char public_key[RPC_KEY], secret_key[RPC_KEY];
};

struct rpc_identity {
    struct key_pair own;
    char server_key[RPC_KEY];
};

struct allowed_key {
    char key[RPC_KEY];
    enum message_role role;
    char node[RPC_NODE]; /* "": none is named */
    char file[NAME_MAX + 1];
};
struct key_list VEC(struct allowed_key); /* by key, each once */

/* A file with a secret key; its public one must belong to it. */
int key_pair_read(const char *path, struct key_pair *ret, struct spec_error *err);

/* The list of KEYS/allowed. */
int key_list_read(const char *keys_dir, struct key_list *ret, struct spec_error *err);
enum message_role key_list_role(const struct key_list *l, const char *key);
enum rpc_claim key_list_claim(const struct key_list *l, const char *key, const char *node);

/* "PATH: text" into *err; returns r. */
int key_error(struct spec_error *err, int r, const char *path, const char *text);

/* Make a socket a CURVE server of this kind, or a client. */
void rpc_auth_apply(const struct rpc_auth *a, enum rpc_server_kind kind, zsock_t *socket);
void rpc_identity_apply(const struct rpc_identity *id, zsock_t *socket);

#endif

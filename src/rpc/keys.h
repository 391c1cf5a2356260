/* keys.h - CURVE: identities of peers, the daemon's list of who may do what
 *
 *     KEYS/server.key_secret            the daemon's pair
 *     KEYS/allowed/NAME.key             public keys with `role = "agent" | "operator" | "viewer"`;
 *                                       an agent's may say `node = "NAME"`
 *
 * Certificates are czmq's ZPL files. Files with secrets must be ours and mode 0600 or less, and the
 * list must be ours or root's and for nobody else to write (-EACCES with a text that says so). The
 * list is read when the daemon starts and again at SIGHUP; who is no longer in it loses the role at
 * once, also on connections that stand.
 *
 * Who may connect is asked by libzmq at each handshake (ZAP, 0MQ RFC 27) and answered by a thread
 * of our own, since the event stream is not for all in the list. There is one rpc_auth in a process
 * (-EBUSY).
 *
 * Errors  negative errno; *err says it for people
 */
#ifndef PLIANT_RPC_KEYS_H
#define PLIANT_RPC_KEYS_H

#include "rpc/message.h"

#define RPC_KEY 41 /* a key as text: 40 characters and NUL */

struct rpc_identity; /* own pair and the server's public key */
/* key_file: NAME.key_secret, or NAME.key beside it; server_key: 40 characters or a file */
int rpc_identity_read(const char *key_file, const char *server_key, struct rpc_identity **ret,
                      struct spec_error *err);
void rpc_identity_free(struct rpc_identity **id);

struct rpc_auth; /* the daemon's pair, the list, and the ZAP handler's thread */
int rpc_auth_open(const char *keys_dir, struct rpc_auth **ret, struct spec_error *err);
int rpc_auth_reload(struct rpc_auth *a, struct spec_error *err);
void rpc_auth_close(struct rpc_auth **a); /* after the servers that use it */
const char *rpc_auth_public_key(const struct rpc_auth *a);
enum message_role rpc_auth_role(struct rpc_auth *a, const char *public_key);

/* May an agent with this key say that it is this node? */
enum rpc_claim {
    RPC_CLAIM_OWN,     /* its certificate names the node */
    RPC_CLAIM_FREE,    /* it names none, and no other agent's names this one */
    RPC_CLAIM_FOREIGN, /* it, or another's, says otherwise */
};
enum rpc_claim rpc_auth_claim(struct rpc_auth *a, const char *public_key, const char *node);

/* 1 and the next refusal to be logged, 0: none. Each peer is named once a minute at most. */
struct rpc_denial {
    char key[RPC_KEY], address[64];
    const char *socket; /* "agents", "clients", "events" */
    uint32_t tries;     /* since the last word about this peer */
};
int rpc_auth_denied(struct rpc_auth *a, struct rpc_denial *ret);

/* keygen: a new pair. `out_dir`/NAME.key and NAME.key_secret (0600), never over what is there
 * (-EEXIST); role ROLE_NONE: a server's pair; node NULL: none is named. With a keys directory the
 * public one goes into `allowed/` too. */
int rpc_keygen(const char *keys_dir, const char *name, enum message_role role, const char *node,
               const char *out_dir, struct spec_error *err);

#endif

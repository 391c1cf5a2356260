/* keys.h - CURVE: identities of peers, the daemon's list of who may do what
 *
 * Certificates are czmq's ZPL files. Files with secrets must be ours and mode 0600 (-EACCES with a
 * text that says so).
 *
 *     KEYS/server.key_secret            the daemon's pair
 *     KEYS/allowed/NAME.key             public keys with `role = "agent" | "operator" | "viewer"`
 *
 * The list is read when the daemon starts and again at SIGHUP.
 */
#ifndef PLIANT_RPC_KEYS_H
#define PLIANT_RPC_KEYS_H

#include "rpc/message.h"

struct rpc_identity; /* own pair and the server's public key */
int rpc_identity_read(const char *key_file, const char *server_key, struct rpc_identity **ret,
                      struct spec_error *err); /* server_key: 40 characters or a file */
void rpc_identity_free(struct rpc_identity **id);

struct rpc_auth; /* the daemon's pair, the list, and the ZAP handler's thread */
int rpc_auth_open(const char *keys_dir, struct rpc_auth **ret, struct spec_error *err);
int rpc_auth_reload(struct rpc_auth *a, struct spec_error *err);
void rpc_auth_close(struct rpc_auth **a);
const char *rpc_auth_public_key(const struct rpc_auth *a);
enum message_role rpc_auth_role(const struct rpc_auth *a, const char *public_key);

/* keygen: a new pair. `dir`/NAME.key and NAME.key_secret (0600), never over what is there
 * (-EEXIST); role ROLE_NONE: a server's pair. With a keys directory the public one goes into
 * `allowed/` too. */
int rpc_keygen(const char *keys_dir, const char *name, enum message_role role, const char *out_dir,
               struct spec_error *err);

#endif

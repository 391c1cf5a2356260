/* keys.c - certificates in files: pairs, the list of who is allowed, keygen; see keys.h */
#include "rpc/keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/keys_impl.h"
#include "util/ascii.h"

#define FILE_MAX 65536 /* bytes of a certificate */
#define NAME_BYTES 100 /* of a peer, so that file names stay short */
#define PUBLIC_SUFFIX ".key"
#define SECRET_SUFFIX ".key_secret"

int key_error(struct spec_error *err, int r, const char *path, const char *text)
{
    snprintf(err->text, sizeof err->text, "%.500s: %s", path, text);
    return r;
}

static int errno_error(struct spec_error *err, const char *path)
{
    int error = errno;

    return key_error(err, -error, path, strerror(error));
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Is it ours, or at least the system's, and can nobody else change it, or read a secret? */
static int check_owner(const char *path, const struct stat *st, bool secret, struct spec_error *err)
{
    bool of_system = !secret && st->st_uid == 0;

    if (st->st_uid != geteuid() && !of_system)
        return key_error(err, -EACCES, path, "belongs to another user");
    if (secret && (st->st_mode & (S_IRWXG | S_IRWXO)))
        return key_error(err, -EACCES, path, "others can read it; accepted: mode 0600");
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return key_error(err, -EACCES, path, "others can write to it; accepted: mode 0755 or less");
    return 0;
}

/* The text of a small file: into `ret`, NUL-terminated. */
static int read_text(const char *path, bool secret, char ret[FILE_MAX], struct spec_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n;
    int r = 0;

    if (fd < 0)
        return errno_error(err, path);
    if (fstat(fd, &st) < 0)
        r = errno_error(err, path);
    else if (!S_ISREG(st.st_mode))
        r = key_error(err, -EINVAL, path, "is no file");
    else
        r = check_owner(path, &st, secret, err);
    if (r == 0) {
        n = read(fd, ret, FILE_MAX - 1);
        if (n < 0)
            r = errno_error(err, path);
        else if (n == FILE_MAX - 1)
            r = key_error(err, -EINVAL, path, "is too large for a certificate");
        else
            ret[n] = '\0';
    }
    close(fd);
    return r;
}

static bool is_key(const char *text)
{
    uint8_t bytes[32];

    return strlen(text) == RPC_KEY - 1 && zmq_z85_decode(bytes, text);
}

/* ---- ZPL ------------------------------------------------------------------------------------- */

static const char *skip_spaces(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* Does the line from `p` say `name = value`? Where the value begins, or NULL. */
static const char *value_at(const char *p, const char *name)
{
    size_t n = strlen(name);

    if (strncmp(p, name, n) != 0)
        return NULL;
    p = skip_spaces(p + n);
    return *p == '=' ? skip_spaces(p + 1) : NULL;
}

/* The value of a name in a section, in quotes or not; "": there is none. czmq's own reader prints
 * what it does not understand. */
static void get_value(const char *text, const char *section, const char *name, char *ret,
                      size_t size)
{
    size_t n_section = strlen(section), n;
    const char *value = NULL, *ends;
    bool inside = false;

    for (const char *line = text; *line && !value; line += line[0] == '\n') {
        const char *p = skip_spaces(line);

        if (p == line && *p != '#' && *p != '\n')
            inside = strncmp(p, section, n_section) == 0 && strchr(" \t\r\n", p[n_section]);
        else if (inside)
            value = value_at(p, name);
        line += strcspn(line, "\n");
    }
    value = value ? value : "";
    ends = *value == '"' ? "\"\n" : *value == '\'' ? "'\n" : " \t\r\n";
    value += *value == *ends;
    n = strcspn(value, ends);
    snprintf(ret, size, "%.*s", n < size ? (int)n : 0, value);
}

static int take_key(const char *text, const char *name, const char *path, char ret[RPC_KEY],
                    struct spec_error *err)
{
    char missing[96];

    get_value(text, "curve", name, ret, RPC_KEY);
    if (is_key(ret))
        return 0;
    snprintf(missing, sizeof missing, "no certificate: curve/%s must be a key of 40 characters",
             name);
    return key_error(err, -EINVAL, path, missing);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

int key_pair_read(const char *path, struct key_pair *ret, struct spec_error *err)
{
    char text[FILE_MAX], expected[RPC_KEY];
    int r = read_text(path, true, text, err);

    if (r == 0)
        r = take_key(text, "secret-key", path, ret->secret_key, err);
    if (r == 0)
        r = take_key(text, "public-key", path, ret->public_key, err);
    if (r == 0 &&
        (zmq_curve_public(expected, ret->secret_key) < 0 || strcmp(expected, ret->public_key) != 0))
        r = key_error(err, -EINVAL, path, "the public key does not belong to the secret one");
    return r;
}

static int read_public(const char *path, char ret[RPC_KEY], struct spec_error *err)
{
    char text[FILE_MAX];
    int r = read_text(path, false, text, err);

    return r < 0 ? r : take_key(text, "public-key", path, ret, err);
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

int rpc_identity_read(const char *key_file, const char *server_key, struct rpc_identity **ret,
                      struct spec_error *err)
{
    struct rpc_identity id;
    char path[PATH_MAX];
    int r;

    snprintf(path, sizeof path, "%s%s", key_file,
             ends_in(key_file, PUBLIC_SUFFIX) ? "_secret" : "");
    r = key_pair_read(path, &id.own, err);
    if (r < 0)
        return r;
    if (is_key(server_key))
        memcpy(id.server_key, server_key, RPC_KEY);
    else
        r = read_public(server_key, id.server_key, err);
    if (r < 0)
        return r;
    *ret = mem_resize(NULL, NULL, 1, sizeof **ret);
    if (!*ret)
        return key_error(err, -ENOMEM, key_file, "out of memory");
    **ret = id;
    return 0;
}

void rpc_identity_free(struct rpc_identity **id)
{
    mem_free(NULL, *id);
    *id = NULL;
}

void rpc_identity_apply(const struct rpc_identity *id, zsock_t *socket)
{
    zsock_set_curve_serverkey(socket, id->server_key);
    zsock_set_curve_publickey(socket, id->own.public_key);
    zsock_set_curve_secretkey(socket, id->own.secret_key);
}

/* ---- the list -------------------------------------------------------------------------------- */

static int read_allowed(const char *dir, const char *file, struct allowed_key *ret,
                        struct spec_error *err)
{
    char path[PATH_MAX], text[FILE_MAX], role[32];
    int r;

    snprintf(path, sizeof path, "%s/%s", dir, file);
    snprintf(ret->file, sizeof ret->file, "%s", file);
    r = read_text(path, false, text, err);
    if (r == 0)
        r = take_key(text, "public-key", path, ret->key, err);
    if (r < 0)
        return r;
    get_value(text, "metadata", "role", role, sizeof role);
    ret->role = message_role_of(role);
    if (ret->role == ROLE_NONE)
        return key_error(err, -EINVAL, path, "metadata/role; accepted: agent, operator, viewer");
    get_value(text, "metadata", "node", ret->node, sizeof ret->node);
    if (*ret->node && ret->role != ROLE_AGENT)
        return key_error(err, -EINVAL, path, "metadata/node; accepted: only in an agent's");
    return 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct allowed_key *)a)->key, ((const struct allowed_key *)b)->key);
}

static int sort_list(const char *dir, struct key_list *l, struct spec_error *err)
{
    if (l->n > 0)
        qsort(l->v, l->n, sizeof *l->v, by_key);
    for (size_t i = 1; i < l->n; i++) {
        if (strcmp(l->v[i - 1].key, l->v[i].key) != 0)
            continue;
        snprintf(err->text, sizeof err->text, "%.400s: %.200s and %.200s have the same key", dir,
                 l->v[i - 1].file, l->v[i].file);
        return -EINVAL;
    }
    return 0;
}

static int read_entries(const char *path, DIR *dir, struct key_list *l, struct spec_error *err)
{
    struct allowed_key *key;
    int r = 0;

    for (struct dirent *e = readdir(dir); e && r == 0; e = readdir(dir)) {
        if (*e->d_name == '.' || !ends_in(e->d_name, PUBLIC_SUFFIX))
            continue;
        key = vec_push(NULL, l);
        r = key ? read_allowed(path, e->d_name, key, err)
                : key_error(err, -ENOMEM, path, "out of memory");
    }
    return r < 0 ? r : sort_list(path, l, err);
}

int key_list_read(const char *keys_dir, struct key_list *ret, struct spec_error *err)
{
    struct key_list l = {0};
    char path[PATH_MAX];
    struct stat st;
    DIR *dir;
    int r;

    snprintf(path, sizeof path, "%s/allowed", keys_dir);
    dir = opendir(path);
    if (!dir)
        return errno_error(err, path);
    if (fstat(dirfd(dir), &st) < 0)
        r = errno_error(err, path);
    else
        r = check_owner(path, &st, false, err);
    if (r == 0)
        r = read_entries(path, dir, &l, err);
    closedir(dir);
    if (r < 0)
        vec_free(NULL, &l);
    else
        *ret = l;
    return r;
}

static const struct allowed_key *find_key(const struct key_list *l, const char *key)
{
    struct allowed_key wanted;

    if (l->n == 0 || strlen(key) != RPC_KEY - 1)
        return NULL;
    memcpy(wanted.key, key, RPC_KEY);
    return bsearch(&wanted, l->v, l->n, sizeof *l->v, by_key);
}

enum message_role key_list_role(const struct key_list *l, const char *key)
{
    const struct allowed_key *found = find_key(l, key);

    return found ? found->role : ROLE_NONE;
}

enum rpc_claim key_list_claim(const struct key_list *l, const char *key, const char *node)
{
    const struct allowed_key *found = find_key(l, key);

    if (!found)
        return RPC_CLAIM_FOREIGN;
    if (*found->node)
        return strcmp(found->node, node) == 0 ? RPC_CLAIM_OWN : RPC_CLAIM_FOREIGN;
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i].node, node) == 0)
            return RPC_CLAIM_FOREIGN;
    return RPC_CLAIM_FREE;
}

/* ---- keygen ---------------------------------------------------------------------------------- */

/* Save through `save` as a new file. The file is there before the key is, with the right mode. */
static int save_new(zcert_t *cert, int (*save)(zcert_t *cert, const char *path), const char *path,
                    mode_t mode, struct spec_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int r = 0;

    if (fd < 0)
        return errno_error(err, path);
    if (save(cert, path) != 0 || chmod(path, mode) < 0 || fsync(fd) < 0) {
        r = errno_error(err, path);
        unlink(path);
    }
    close(fd);
    return r;
}

static int make_dir(const char *path, struct spec_error *err)
{
    return mkdir(path, 0700) < 0 && errno != EEXIST ? errno_error(err, path) : 0;
}

static int save_allowed(zcert_t *cert, const char *keys_dir, const char *name,
                        struct spec_error *err)
{
    char dir[PATH_MAX], path[PATH_MAX + NAME_MAX];
    int r;

    snprintf(dir, sizeof dir, "%s/allowed", keys_dir);
    r = make_dir(keys_dir, err);
    if (r == 0)
        r = make_dir(dir, err);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "%s/%s" PUBLIC_SUFFIX, dir, name);
    return save_new(cert, zcert_save_public, path, 0644, err);
}

static int save_pair(zcert_t *cert, const char *out_dir, const char *name, struct spec_error *err)
{
    char public_path[PATH_MAX], secret_path[PATH_MAX];
    int r = make_dir(out_dir, err);

    if (r < 0)
        return r;
    snprintf(public_path, sizeof public_path, "%s/%s" PUBLIC_SUFFIX, out_dir, name);
    snprintf(secret_path, sizeof secret_path, "%s/%s" SECRET_SUFFIX, out_dir, name);
    r = save_new(cert, zcert_save_secret, secret_path, 0600, err);
    if (r < 0)
        return r;
    r = save_new(cert, zcert_save_public, public_path, 0644, err);
    if (r < 0)
        unlink(secret_path);
    return r;
}

static void remove_pair(const char *out_dir, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s" PUBLIC_SUFFIX, out_dir, name);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s" SECRET_SUFFIX, out_dir, name);
    unlink(path);
}

static int check_name(const char *name, struct spec_error *err)
{
    if (*name && *name != '.' && !strchr(name, '/') && strlen(name) <= NAME_BYTES)
        return 0;
    return key_error(err, -EINVAL, name,
                     "is no name for a key; accepted: 1 to 100 bytes without '/', no '.' first");
}

static int check_node(const char *node, struct spec_error *err)
{
    if (!node || (*node && strlen(node) <= PLIANT_NAME_MAX && ascii_is_plain(node)))
        return 0;
    return key_error(err, -EINVAL, node,
                     "is no name of a node; accepted: visible ASCII characters but \" \\ /");
}

int rpc_keygen(const char *keys_dir, const char *name, enum message_role role, const char *node,
               const char *out_dir, struct spec_error *err)
{
    zcert_t *cert;
    int r = check_name(name, err);

    if (r == 0)
        r = check_node(node, err);
    if (r < 0)
        return r;
    cert = zcert_new();
    if (!cert)
        return key_error(err, -ENOMEM, name, "out of memory");
    zcert_set_meta(cert, "name", "%s", name);
    if (role != ROLE_NONE)
        zcert_set_meta(cert, "role", "%s", message_role_name(role));
    if (node)
        zcert_set_meta(cert, "node", "%s", node);
    r = save_pair(cert, out_dir, name, err);
    if (r == 0 && keys_dir && role != ROLE_NONE) {
        r = save_allowed(cert, keys_dir, name, err);
        if (r < 0)
            remove_pair(out_dir, name);
    }
    zcert_destroy(&cert);
    return r;
}

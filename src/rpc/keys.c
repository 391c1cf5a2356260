/* keys.c - certificates in files: pairs, the list of who is allowed, keygen; see keys.h */
#include "rpc/keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/keys_impl.h"

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

/* Ours, and without these bits for others? */
static int check_owner(const char *path, const struct stat *st, mode_t forbidden,
                       struct spec_error *err)
{
    if (st->st_uid != geteuid())
        return key_error(err, -EACCES, path, "belongs to another user");
    if ((st->st_mode & forbidden) == 0)
        return 0;
    return key_error(err, -EACCES, path,
                     forbidden & S_IROTH ? "others can read it; accepted: mode 0600"
                                         : "others can write to it; accepted: mode 0755 or less");
}

/* The text of a small file: into `ret`, NUL-terminated. */
static int read_text(const char *path, bool secret, char ret[FILE_MAX], struct spec_error *err)
{
    mode_t forbidden = secret ? S_IRWXG | S_IRWXO : S_IWGRP | S_IWOTH;
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
        r = check_owner(path, &st, forbidden, err);
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

static int take_key(zconfig_t *root, const char *member, const char *path, char ret[RPC_KEY],
                    struct spec_error *err)
{
    const char *text = zconfig_get(root, member, "");
    char missing[96];

    if (is_key(text)) {
        memcpy(ret, text, RPC_KEY);
        return 0;
    }
    snprintf(missing, sizeof missing, "no certificate: curve/%s must be a key of 40 characters",
             strrchr(member, '/') + 1);
    return key_error(err, -EINVAL, path, missing);
}

/* A certificate as a tree, which the caller destroys. */
static int read_certificate(const char *path, bool secret, zconfig_t **ret, struct spec_error *err)
{
    char text[FILE_MAX];
    int r = read_text(path, secret, text, err);

    if (r < 0)
        return r;
    *ret = zconfig_str_load(text);
    return *ret ? 0 : key_error(err, -EINVAL, path, "no certificate: this is not ZPL");
}

/* ---- pairs ----------------------------------------------------------------------------------- */

int key_pair_read(const char *path, struct key_pair *ret, struct spec_error *err)
{
    char expected[RPC_KEY];
    zconfig_t *root;
    int r = read_certificate(path, true, &root, err);

    if (r < 0)
        return r;
    r = take_key(root, "/curve/secret-key", path, ret->secret_key, err);
    if (r == 0)
        r = take_key(root, "/curve/public-key", path, ret->public_key, err);
    if (r == 0 &&
        (zmq_curve_public(expected, ret->secret_key) < 0 || strcmp(expected, ret->public_key) != 0))
        r = key_error(err, -EINVAL, path, "the public key does not belong to the secret one");
    zconfig_destroy(&root);
    return r;
}

static int read_public(const char *path, char ret[RPC_KEY], struct spec_error *err)
{
    zconfig_t *root;
    int r = read_certificate(path, false, &root, err);

    if (r < 0)
        return r;
    r = take_key(root, "/curve/public-key", path, ret, err);
    zconfig_destroy(&root);
    return r;
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
    char path[PATH_MAX];
    zconfig_t *root;
    int r;

    snprintf(path, sizeof path, "%s/%s", dir, file);
    r = read_certificate(path, false, &root, err);
    if (r < 0)
        return r;
    r = take_key(root, "/curve/public-key", path, ret->key, err);
    ret->role = message_role_of(zconfig_get(root, "/metadata/role", ""));
    if (r == 0 && ret->role == ROLE_NONE)
        r = key_error(err, -EINVAL, path, "metadata/role; accepted: agent, operator, viewer");
    snprintf(ret->file, sizeof ret->file, "%s", file);
    zconfig_destroy(&root);
    return r;
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
        r = check_owner(path, &st, S_IWGRP | S_IWOTH, err);
    if (r == 0)
        r = read_entries(path, dir, &l, err);
    closedir(dir);
    if (r < 0)
        vec_free(NULL, &l);
    else
        *ret = l;
    return r;
}

enum message_role key_list_role(const struct key_list *l, const char *key)
{
    struct allowed_key wanted;
    const struct allowed_key *found;

    if (l->n == 0 || strlen(key) != RPC_KEY - 1)
        return ROLE_NONE;
    memcpy(wanted.key, key, RPC_KEY);
    found = bsearch(&wanted, l->v, l->n, sizeof *l->v, by_key);
    return found ? found->role : ROLE_NONE;
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

int rpc_keygen(const char *keys_dir, const char *name, enum message_role role, const char *out_dir,
               struct spec_error *err)
{
    zcert_t *cert;
    int r = check_name(name, err);

    if (r < 0)
        return r;
    cert = zcert_new();
    if (!cert)
        return key_error(err, -ENOMEM, name, "out of memory");
    zcert_set_meta(cert, "name", "%s", name);
    if (role != ROLE_NONE)
        zcert_set_meta(cert, "role", "%s", message_role_name(role));
    r = save_pair(cert, out_dir, name, err);
    if (r == 0 && keys_dir && role != ROLE_NONE) {
        r = save_allowed(cert, keys_dir, name, err);
        if (r < 0)
            remove_pair(out_dir, name);
    }
    zcert_destroy(&cert);
    return r;
}

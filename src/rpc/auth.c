/* auth.c - who may connect: the daemon's keys and the ZAP handler; see keys.h */
#include "rpc/keys.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "rpc/keys_impl.h"

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"
#define DENIED_KEPT 64u       /* refused peers that are remembered, so as not to repeat ourselves */
#define DENIED_AGAIN_MS 60000 /* and for how long */

struct denied {
    struct rpc_denial d; /* no socket: a free place */
    int64_t tell_at_ms;  /* not before */
};

struct rpc_auth {
    char *keys_dir;
    struct key_pair pair;
    zactor_t *zap;
    pthread_mutex_t lock; /* of what follows: the handler's thread reads it */
    struct key_list list;
    struct denied denied[DENIED_KEPT];
};

static const char *const domains[] = {
    [RPC_AGENTS] = "agents", [RPC_CLIENTS] = "clients", [RPC_EVENTS] = "events"};

/* ---- the list -------------------------------------------------------------------------------- */

enum message_role rpc_auth_role(struct rpc_auth *a, const char *public_key)
{
    enum message_role role;

    pthread_mutex_lock(&a->lock);
    role = key_list_role(&a->list, public_key);
    pthread_mutex_unlock(&a->lock);
    return role;
}

enum rpc_claim rpc_auth_claim(struct rpc_auth *a, const char *public_key, const char *node)
{
    enum rpc_claim claim;

    pthread_mutex_lock(&a->lock);
    claim = key_list_claim(&a->list, public_key, node);
    pthread_mutex_unlock(&a->lock);
    return claim;
}

int rpc_auth_reload(struct rpc_auth *a, struct spec_error *err)
{
    struct key_list list, old;
    int r = key_list_read(a->keys_dir, &list, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&a->lock);
    old = a->list;
    a->list = list;
    pthread_mutex_unlock(&a->lock);
    vec_free(NULL, &old);
    return 0;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static bool same_peer(const struct denied *x, const struct rpc_denial *d)
{
    return x->d.socket == d->socket && strcmp(x->d.address, d->address) == 0;
}

/* Where a refusal is noted, or NULL: all places are taken by those of the last minute. */
static struct denied *place_for(struct rpc_auth *a, const struct rpc_denial *d, int64_t now_ms)
{
    struct denied *free_place = NULL;

    for (struct denied *x = a->denied; x < a->denied + DENIED_KEPT; x++) {
        if (same_peer(x, d))
            return x;
        if (!x->d.socket || (x->d.tries == 0 && x->tell_at_ms <= now_ms))
            free_place = x;
    }
    if (free_place)
        *free_place = (struct denied){.d = *d};
    return free_place;
}

/* A peer is an address: keys are cheap to make. */
static void note_denied(struct rpc_auth *a, const struct rpc_denial *d)
{
    struct denied *x;

    pthread_mutex_lock(&a->lock);
    x = place_for(a, d, zclock_mono());
    if (x) {
        memcpy(x->d.key, d->key, sizeof x->d.key);
        x->d.tries++;
    }
    pthread_mutex_unlock(&a->lock);
}

int rpc_auth_denied(struct rpc_auth *a, struct rpc_denial *ret)
{
    int64_t now_ms = zclock_mono();
    int r = 0;

    pthread_mutex_lock(&a->lock);
    for (struct denied *x = a->denied; x < a->denied + DENIED_KEPT && r == 0; x++) {
        if (x->d.tries == 0 || x->tell_at_ms > now_ms)
            continue;
        *ret = x->d;
        x->d.tries = 0;
        x->tell_at_ms = now_ms + DENIED_AGAIN_MS;
        r = 1;
    }
    pthread_mutex_unlock(&a->lock);
    return r;
}

/* ---- the handler's thread -------------------------------------------------------------------- */

struct zap_request {
    char *version, *sequence, *domain, *address, *mechanism;
    char key[RPC_KEY];
};

static void request_free(struct zap_request *q)
{
    free(q->version);
    free(q->sequence);
    free(q->domain);
    free(q->address);
    free(q->mechanism);
}

/* The six frames before the key, and the key; false: the request is not CURVE's. */
static bool request_read(zmsg_t *msg, struct zap_request *ret)
{
    zframe_t *key;
    char *identity;
    bool good;

    ret->version = zmsg_popstr(msg);
    ret->sequence = zmsg_popstr(msg);
    ret->domain = zmsg_popstr(msg);
    ret->address = zmsg_popstr(msg);
    identity = zmsg_popstr(msg);
    ret->mechanism = zmsg_popstr(msg);
    key = zmsg_pop(msg);
    good = ret->mechanism && strcmp(ret->mechanism, "CURVE") == 0 && key && zframe_size(key) == 32;
    if (good)
        zmq_z85_encode(ret->key, zframe_data(key), 32);
    zframe_destroy(&key);
    free(identity);
    return good;
}

/* An agent's key opens no event stream. */
static bool may_connect(enum message_role role, const char *domain)
{
    if (strcmp(domain, domains[RPC_EVENTS]) == 0 && role == ROLE_AGENT)
        return false;
    return role != ROLE_NONE;
}

static const char *domain_named(const char *name)
{
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (strcmp(domains[i], name) == 0)
            return domains[i];
    return NULL;
}

static bool decide(struct rpc_auth *a, const struct zap_request *q)
{
    struct rpc_denial d = {.socket = domain_named(q->domain)};

    if (d.socket && may_connect(rpc_auth_role(a, q->key), d.socket))
        return true;
    memcpy(d.key, q->key, sizeof d.key);
    snprintf(d.address, sizeof d.address, "%s", q->address);
    if (d.socket)
        note_denied(a, &d);
    return false;
}

static void answer(struct rpc_auth *a, zsock_t *zap)
{
    struct zap_request q = {0};
    zmsg_t *msg = zmsg_recv(zap);
    bool good;

    if (!msg)
        return;
    good = request_read(msg, &q) && decide(a, &q);
    zstr_sendx(zap, q.version ? q.version : "1.0", q.sequence ? q.sequence : "",
               good ? "200" : "400", good ? "OK" : "denied", good ? q.key : "", "", NULL);
    request_free(&q);
    zmsg_destroy(&msg);
}

struct zap_start {
    struct rpc_auth *auth;
    zsock_t *zap;
};

static void run_zap(zsock_t *pipe, void *ctx)
{
    const struct zap_start *start = ctx;
    struct rpc_auth *a = start->auth;
    zsock_t *zap = start->zap;
    zmq_pollitem_t items[] = {{.socket = zsock_resolve(zap), .events = ZMQ_POLLIN},
                              {.socket = zsock_resolve(pipe), .events = ZMQ_POLLIN}};
    sigset_t all;

    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    zsock_signal(pipe, 0); /* `start` is not read from here on */
    while (zmq_poll(items, 2, -1) >= 0 || errno == EINTR) {
        if (items[1].revents) /* its only message is the end */
            break;
        if (items[0].revents)
            answer(a, zap);
    }
    zmq_unbind(zsock_resolve(zap), ZAP_ENDPOINT); /* a close alone gives it up only later */
    zsock_destroy(&zap);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int start_zap(struct rpc_auth *a, struct spec_error *err)
{
    struct zap_start start = {.auth = a, .zap = zsock_new(ZMQ_REP)};

    if (!start.zap || zmq_bind(zsock_resolve(start.zap), ZAP_ENDPOINT) < 0) {
        zsock_destroy(&start.zap);
        return key_error(err, -EBUSY, a->keys_dir, "another list of keys is open in this process");
    }
    a->zap = zactor_new(run_zap, &start);
    if (a->zap)
        return 0;
    zsock_destroy(&start.zap);
    return key_error(err, -ENOMEM, a->keys_dir, "out of memory");
}

int rpc_auth_open(const char *keys_dir, struct rpc_auth **ret, struct spec_error *err)
{
    struct rpc_auth *a = mem_zero(NULL, 1, sizeof *a);
    char path[PATH_MAX];
    int r;

    if (!a)
        return key_error(err, -ENOMEM, keys_dir, "out of memory");
    pthread_mutex_init(&a->lock, NULL);
    a->keys_dir = strdup(keys_dir);
    snprintf(path, sizeof path, "%s/server.key_secret", keys_dir);
    r = a->keys_dir ? key_pair_read(path, &a->pair, err)
                    : key_error(err, -ENOMEM, keys_dir, "out of memory");
    if (r == 0)
        r = key_list_read(keys_dir, &a->list, err);
    if (r == 0)
        r = start_zap(a, err);
    if (r < 0)
        rpc_auth_close(&a);
    else
        *ret = a;
    return r;
}

void rpc_auth_close(struct rpc_auth **a)
{
    struct rpc_auth *old = *a;

    if (!old)
        return;
    *a = NULL;
    zactor_destroy(&old->zap);
    pthread_mutex_destroy(&old->lock);
    vec_free(NULL, &old->list);
    free(old->keys_dir);
    mem_free(NULL, old);
}

const char *rpc_auth_public_key(const struct rpc_auth *a)
{
    return a->pair.public_key;
}

void rpc_auth_apply(const struct rpc_auth *a, enum rpc_server_kind kind, zsock_t *socket)
{
    zsock_set_zap_domain(socket, domains[kind]);
    zsock_set_curve_server(socket, 1);
    zsock_set_curve_publickey(socket, a->pair.public_key);
    zsock_set_curve_secretkey(socket, a->pair.secret_key);
}

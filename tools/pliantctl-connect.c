/* pliantctl-connect.c - where the service is, and asking it
 *
 * ZeroMQ connects in the background and as often as it takes, so a service that is not there shows
 * only by its silence: every wait has a bound, and the error says where it was tried.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pliantctl.h"

#define ENDPOINT_DEFAULT "tcp://127.0.0.1:6181"
#define ENDPOINTS_FILE "endpoints.json"
#define ENDPOINTS_MAX (64u * 1024u)        /* bytes of that file */
#define SEQUENCE_FIRST (UINT64_C(1) << 32) /* of ctl_ask(): apart from those of rpc_call() */
#define PING_EACH_MS 2000                  /* while an answer takes long */

/* ---- where ----------------------------------------------------------------------------------- */

static void copy(char *buf, size_t size, const char *text)
{
    snprintf(buf, size, "%s", text);
}

/* DIR/endpoints.json: 0, -ENOENT without a word, or a complaint's errno. */
static int read_endpoints(struct ctl_target *t, const char *dir, struct spec_error *err)
{
    struct doc_file f;
    const char *clients = NULL;
    int r;

    snprintf(t->file, sizeof t->file, "%s/" ENDPOINTS_FILE, dir);
    if (access(t->file, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return -ENOENT;
    r = doc_read(t->file, ENDPOINTS_MAX, &f, err);
    if (r)
        return r;
    r = doc_string(&f, f.root, "clients", sizeof t->endpoint - 1, &clients, err);
    if (r == -ENOENT)
        r = doc_error(&f, f.root, err, "has no \"clients\"");
    if (!r) {
        copy(t->endpoint, sizeof t->endpoint, clients);
        copy(t->server_key, sizeof t->server_key, ctl_text(f.root, "server_key"));
        t->pid = ctl_int(f.root, "pid");
        t->found = CTL_BY_STATE_DIR;
    }
    doc_free(&f);
    return r;
}

/* The k-th place where a daemon keeps its state unless told otherwise; NULL: none. */
static const char *default_dir(size_t k, char *buf, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (k == 0) {
        if (state && *state)
            snprintf(buf, size, "%s/pliant", state);
        else if (home && *home)
            snprintf(buf, size, "%s/.local/state/pliant", home);
        else
            *buf = '\0';
        return buf;
    }
    return k == 1 ? "/var/lib/pliant" : NULL;
}

static void locate_by_default(struct ctl_target *t)
{
    char buf[3072];
    const char *dir;
    struct spec_error err = {.text = ""};
    size_t own = geteuid() == 0; /* root's daemon is the system's */

    for (size_t k = 0; k < 2 && (dir = default_dir(k ^ own, buf, sizeof buf)); k++)
        if (*dir && read_endpoints(t, dir, &err) == 0)
            return;
    t->file[0] = '\0';
    t->found = CTL_BY_DEFAULT;
    copy(t->endpoint, sizeof t->endpoint, ENDPOINT_DEFAULT);
}

static enum exit_code locate_by_dir(struct ctl_target *t, const char *dir, struct spec_error *err)
{
    int r = read_endpoints(t, dir, err);

    if (r == -ENOENT) {
        snprintf(err->text, sizeof err->text,
                 "%.900s is not there: is this pliantd's state directory, and is pliantd running?",
                 t->file);
        return NO_CONNECTION;
    }
    return !r ? DONE : r == -ENOMEM ? NO_RESOURCES : BAD_INPUT;
}

/* Where is the service? *err says what keeps this from being told. */
static enum exit_code locate(const struct ctl *c, struct ctl_target *t, struct spec_error *err)
{
    const char *clients = getenv("PLIANT_CLIENTS"), *dir = getenv("PLIANT_STATE_DIR");

    *t = (struct ctl_target){.found = CTL_BY_OPTION};
    if (c->given[CTL_CONNECT]) {
        copy(t->endpoint, sizeof t->endpoint, c->given[CTL_CONNECT]);
        return DONE;
    }
    if (c->given[CTL_STATE_DIR])
        return locate_by_dir(t, c->given[CTL_STATE_DIR], err);
    if (clients && *clients) {
        t->found = CTL_BY_ENVIRONMENT;
        copy(t->endpoint, sizeof t->endpoint, clients);
        return DONE;
    }
    if (dir && *dir)
        return locate_by_dir(t, dir, err);
    locate_by_default(t);
    return DONE;
}

const char *ctl_tried(const struct ctl *c, char *buf, size_t size)
{
    const struct ctl_target *t = &c->target;

    switch (t->found) {
    case CTL_BY_OPTION:
        snprintf(buf, size, "%s (--connect)", t->endpoint);
        break;
    case CTL_BY_ENVIRONMENT:
        snprintf(buf, size, "%s ($PLIANT_CLIENTS)", t->endpoint);
        break;
    case CTL_BY_STATE_DIR:
        snprintf(buf, size, "%s (from %s%s)", t->endpoint, t->file,
                 t->pid > 0 && kill((pid_t)t->pid, 0) != 0 && errno == ESRCH
                     ? ", whose process is gone"
                     : "");
        break;
    case CTL_BY_DEFAULT:
        snprintf(buf, size,
                 "%s (the default: there is neither --connect, --state-dir nor an "
                 "endpoints.json)",
                 t->endpoint);
        break;
    }
    return buf;
}

/* ---- the connection -------------------------------------------------------------------------- */

static const char *given_or_env(const struct ctl *c, enum ctl_option_key key, const char *variable)
{
    const char *value = c->given[key] ? c->given[key] : getenv(variable);

    return value && *value ? value : NULL;
}

static enum exit_code read_identity(struct ctl *c)
{
    const char *key = given_or_env(c, CTL_KEY, "PLIANT_KEY");
    const char *server = given_or_env(c, CTL_SERVER_KEY, "PLIANT_SERVER_KEY");
    struct spec_error err = {.text = ""};
    int r;

    if (!server && c->target.server_key[0])
        server = c->target.server_key;
    if (!key && !server)
        return DONE;
    if (!key)
        return ctl_complain(BAD_INPUT, "the service uses keys: name yours with --key FILE");
    if (!server)
        return ctl_complain(BAD_INPUT, "--key needs the service's public key: --server-key");
    r = rpc_identity_read(key, server, &c->identity, &err);
    if (!r)
        return DONE;
    return ctl_complain(r == -ENOMEM ? NO_RESOURCES : BAD_INPUT, "%s",
                        *err.text ? err.text : strerror(-r));
}

static int open_link(struct ctl *c, struct spec_error *err)
{
    const struct rpc_link_config config = {
        .endpoint = c->target.endpoint, .identity = c->identity, .queue = CTL_QUEUE};

    return rpc_link_open(&config, &c->link, err);
}

/* Locate, read the keys, connect. Nothing has been sent yet: an absent service shows later. */
static enum exit_code ctl_open(struct ctl *c)
{
    struct spec_error err = {.text = ""};
    enum exit_code code;
    int r;

    if (c->link)
        return DONE;
    code = locate(c, &c->target, &err);
    if (code != DONE)
        return ctl_complain(code, "%s", err.text);
    if (!c->identity)
        code = read_identity(c);
    if (code != DONE)
        return code;
    r = open_link(c, &err);
    if (!r)
        return DONE;
    return ctl_complain(r == -ENOMEM ? NO_RESOURCES : BAD_INPUT, "%s: %s", c->target.endpoint,
                        *err.text ? err.text : strerror(-r));
}

bool ctl_reopen(struct ctl *c)
{
    struct spec_error err = {.text = ""};
    struct ctl_target target;

    if (c->link)
        rpc_link_close(&c->link);
    if (locate(c, &target, &err) == DONE)
        c->target = target;
    return open_link(c, &err) == 0;
}

void ctl_close(struct ctl *c)
{
    if (c->link)
        rpc_link_close(&c->link);
    if (c->identity)
        rpc_identity_free(&c->identity);
    json_free(&c->request);
    doc_free(&c->reply);
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct json *ctl_request(struct ctl *c)
{
    json_reset(&c->request);
    json_begin(&c->request, NULL, '{');
    return &c->request;
}

struct json *ctl_request_of(struct ctl *c, const char *key)
{
    struct json *j = ctl_request(c);

    json_string(j, key, c->words[0]);
    return j;
}

enum exit_code ctl_refused(const struct ctl *c, const struct rpc_refusal *refusal)
{
    if (strcmp(refusal->code, "invalid") == 0)
        return ctl_complain(BAD_INPUT, "%s", refusal->text);
    if (strcmp(refusal->code, "denied") == 0)
        return ctl_complain(ANSWER_IS_NO, "denied: %s",
                            *refusal->text ? refusal->text : "the key's role does not allow this");
    if (*refusal->text)
        return ctl_complain(ANSWER_IS_NO, "%s", refusal->text);
    return ctl_complain(ANSWER_IS_NO, "%s: %s", c->command->name, refusal->code);
}

static enum exit_code no_answer(const struct ctl *c)
{
    char tried[5120], span[CTL_TIME_TEXT];

    return ctl_complain(NO_CONNECTION, "no answer within %s from %s; is pliantd running there%s?",
                        ctl_span(span, c->timeout_ms), ctl_tried(c, tried, sizeof tried),
                        c->identity ? ", and does it let this key in" : "");
}

static int bound(int64_t ms)
{
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

int ctl_try(struct ctl *c, enum message_type type, int timeout_ms, struct rpc_refusal *ret)
{
    struct spec_error err = {.text = ""};
    int r;

    json_end(&c->request, '}');
    if (c->request.error)
        return c->request.error;
    *ret = (struct rpc_refusal){.code = ""};
    doc_free(&c->reply);
    r = rpc_call(c->link, type, &c->request, timeout_ms, &c->reply, ret, &err);
    if (r && !*ret->text)
        copy(ret->text, sizeof ret->text, err.text);
    return r;
}

/* What became of a request, for people. */
static enum exit_code outcome(const struct ctl *c, int r, const struct rpc_refusal *refusal)
{
    switch (r) {
    case 0:
        return DONE;
    case -EPROTO:
        return ctl_refused(c, refusal);
    case -ETIMEDOUT:
    case -EAGAIN:
        return no_answer(c);
    case -ENOMEM:
        return ctl_complain(NO_RESOURCES, "no memory");
    default:
        return ctl_complain(NO_CONNECTION, "%s: %s", c->target.endpoint,
                            *refusal->text ? refusal->text : strerror(-r));
    }
}

enum exit_code ctl_call(struct ctl *c, enum message_type type)
{
    struct rpc_refusal refusal;
    enum exit_code code = ctl_open(c);

    if (code != DONE)
        return code;
    return outcome(c, ctl_try(c, type, bound(c->timeout_ms), &refusal), &refusal);
}

int ctl_ask(struct ctl *c, enum message_type type, uint64_t *ret_sequence)
{
    const struct message_header h = {.type = (uint16_t)type,
                                     .sequence = SEQUENCE_FIRST + c->sequence++};

    json_end(&c->request, '}');
    if (c->request.error)
        return c->request.error;
    *ret_sequence = h.sequence;
    return rpc_link_send(c->link, &h, &c->request);
}

/* ---- what takes long
 * ----------------------------------------------------------------------------- */

static int64_t monotonic_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One long request: when the service was last heard, and which life of it took the request. */
struct long_call {
    uint64_t sequence, epoch;
    int64_t heard_at_ms, pinged_at_ms;
    struct rpc_refusal refusal;
};

/* A message that came meanwhile. 1: it is the answer; 0: it is not; -errno. */
static int take_answer(struct ctl *c, struct long_call *call, const struct rpc_message *m)
{
    struct spec_error err = {.text = ""};
    int r;

    call->heard_at_ms = monotonic_ms();
    if (m->fault != MESSAGE_GOOD)
        return 0;
    if (call->epoch == 0)
        call->epoch = m->header.epoch;
    if (m->header.epoch != call->epoch)
        return -ESTALE;
    if (m->header.sequence != call->sequence)
        return 0;
    r = message_body(&c->reply, &m->header, m->body, m->size, &err);
    if (r)
        return r < 0 ? r : -EBADMSG;
    if (m->header.type != MESSAGE_ERROR)
        return 1;
    copy(call->refusal.code, sizeof call->refusal.code, ctl_text(c->reply.root, "code"));
    copy(call->refusal.text, sizeof call->refusal.text, ctl_text(c->reply.root, "text"));
    return -EPROTO;
}

static int await(struct ctl *c, struct long_call *call, int64_t give_up_at_ms)
{
    /* silence is judged by the pings, however long the answer may take */
    int64_t patience_ms = c->given[CTL_TIMEOUT] ? INT64_MAX : c->timeout_ms;
    struct pollfd ready = {.fd = rpc_link_fd(c->link), .events = POLLIN};
    struct rpc_message m;
    uint64_t ignored;

    for (;;) {
        int r, got;
        int64_t now;

        while ((got = rpc_link_receive(c->link, &m)) == 1)
            if ((r = take_answer(c, call, &m)) != 0)
                return r;
        if (got < 0)
            return got;
        now = monotonic_ms();
        if (now >= give_up_at_ms || now - call->heard_at_ms > patience_ms)
            return -ETIMEDOUT;
        if (now - call->pinged_at_ms >= PING_EACH_MS) {
            call->pinged_at_ms = now;
            ctl_request(c);
            ctl_ask(c, MESSAGE_PING, &ignored); /* what cannot be sent is not answered either */
        }
        poll(&ready, 1, 100);
    }
}

/* Which life of the service is about to get the request: it may end before it says a word. */
static int learn_epoch(struct ctl *c, struct long_call *call)
{
    struct json request = c->request;
    int r;

    json_init(&c->request, NULL);
    ctl_request(c);
    r = ctl_try(c, MESSAGE_PING, bound(c->timeout_ms), &call->refusal);
    if (r == 0)
        call->epoch = strtoull(ctl_text(c->reply.root, "epoch"), NULL, 10);
    json_free(&c->request);
    c->request = request;
    return r;
}

enum exit_code ctl_call_long(struct ctl *c, enum message_type type)
{
    struct long_call call = {.heard_at_ms = monotonic_ms()};
    enum exit_code code = ctl_open(c);
    int r;

    if (code != DONE)
        return code;
    r = learn_epoch(c, &call);
    call.pinged_at_ms = monotonic_ms();
    if (!r)
        r = ctl_ask(c, type, &call.sequence);
    if (!r)
        r = await(c, &call, c->given[CTL_TIMEOUT] ? call.heard_at_ms + c->timeout_ms : CTL_FOREVER);
    if (r == -ESTALE)
        return ctl_complain(NO_CONNECTION,
                            "pliantd was restarted before it answered; whether the savepoint was "
                            "taken shows 'pliantctl checkpoints %s'",
                            c->words[0]);
    return outcome(c, r == 1 ? 0 : r, &call.refusal);
}

/* ---- the event stream
 * -------------------------------------------------------------------------------- */

/* A daemon that listens everywhere tells no address of its own: then it is where clients found it.
 */
const char *ctl_events_endpoint(const struct ctl *c, const struct doc *ping, char *buf, size_t size)
{
    static const char *const everywhere[] = {"tcp://0.0.0.0:", "tcp://*:", "tcp://[::]:"};
    const struct doc *all = doc_get(ping, "endpoints");
    const char *events = all ? ctl_text(all, "events") : "", *port = strrchr(events, ':');
    const char *host_end = strrchr(c->target.endpoint, ':');

    copy(buf, size, events);
    for (size_t i = 0; i < sizeof everywhere / sizeof *everywhere; i++)
        if (strncmp(events, everywhere[i], strlen(everywhere[i])) == 0 && host_end && port)
            snprintf(buf, size, "%.*s%s", (int)(host_end - c->target.endpoint), c->target.endpoint,
                     port);
    return buf;
}

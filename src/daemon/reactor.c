/* reactor.c - a turn: poll, take in, run the cores, commit, let out */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/daemon.h"
#include "util/ascii.h"
#include "util/fnv.h"

#define AGENTS_A_TURN 2000 /* messages; the rest waits for the next turn */
#define CLIENTS_A_TURN 200
#define NAP_MS 5            /* after a turn of nothing but signs of life: more of them gather */
#define RETRY_MS 1000       /* of a store that fails */
#define QUEUE 1000          /* messages that wait for an agent or a client */
#define STOP_EXTRA_MS 30000 /* beyond the stop timeout, for jobs to end at a shutdown */
#define COMPLAIN_MS 60000   /* a line of log about one peer */
#define COMPLAINTS_MAX 256u /* peers that are told apart in that time */

struct complaint {
    uint64_t peer; /* sum of its key or id */
};

struct reactor {
    int signals;
    zmq_pollitem_t items[6];
    bool more;            /* messages are left from the last turn */
    bool agents_drained;  /* all that agents have said was taken in */
    int n_taken, n_beats; /* messages of this turn, and how many of them are signs of life */
    int64_t retry_at_ms;  /* awake time; of a store that fails */
    int64_t stop_by_ms;   /* awake time; jobs that are to end must have ended */
    bool stopping;
    int64_t watchdog_ms, watchdog_at_ms; /* 0: nobody watches */
    int64_t complaints_until_ms;
    struct VEC(struct complaint) complaints;
};

/* ---- the service manager -------------------------------------------------------------------- */

/* A datagram to systemd, if it started us; what it does not get it does not need. */
static void notify_manager(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    int fd;

    if (n == 0 || n >= sizeof to.sun_path)
        return;
    memcpy(to.sun_path, path, n);
    if (*path == '@')
        to.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    close(fd);
}

static int64_t watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    if (!usec || (pid && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    return strtoll(usec, NULL, 10) / 2000;
}

static void pat_watchdog(struct daemon *d)
{
    struct reactor *r = d->reactor;

    if (r->watchdog_ms <= 0 || d->clock.awake_ms < r->watchdog_at_ms)
        return;
    notify_manager("WATCHDOG=1");
    r->watchdog_at_ms = d->clock.awake_ms + r->watchdog_ms;
}

/* ---- signals -------------------------------------------------------------------------------- */

static void end(struct daemon *d, const char *why)
{
    if (!d->ending)
        log_line(6, "msg=ending reason=%s", why);
    d->ending = true;
}

static void reload_keys(struct daemon *d)
{
    struct spec_error err;

    if (!d->auth)
        return;
    if (rpc_auth_reload(d->auth, &err) < 0)
        log_line(3, "msg=\"the keys cannot be read again; the old ones hold\" error=%s",
                 log_quoted(err.text).v);
    else
        log_line(6, "msg=\"keys read again\"");
}

static void take_signals(struct daemon *d)
{
    struct signalfd_siginfo info;

    while (read(d->reactor->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            end(d, info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
        else if (info.ssi_signo == SIGHUP)
            reload_keys(d);
    }
}

/* ---- messages that nobody may send ---------------------------------------------------------- */

bool may_complain(struct daemon *d, const struct rpc_message *m)
{
    struct reactor *r = d->reactor;
    const void *who = *m->key ? (const void *)m->key : m->from.bytes;
    uint64_t peer = fnv_add(FNV_START, who, *m->key ? strlen(m->key) : m->from.size);
    struct complaint *c;

    if (d->clock.awake_ms >= r->complaints_until_ms) {
        r->complaints.n = 0;
        r->complaints_until_ms = d->clock.awake_ms + COMPLAIN_MS;
    }
    for (size_t i = 0; i < r->complaints.n; i++)
        if (r->complaints.v[i].peer == peer)
            return false;
    if (r->complaints.n >= COMPLAINTS_MAX)
        return false;
    c = need(vec_push(NULL, &r->complaints));
    c->peer = peer;
    return true;
}

static void answer_error(struct daemon *d, struct rpc_server *end, const struct rpc_message *m,
                         const char *code, const char *text)
{
    const struct message_header h = {
        .type = MESSAGE_ERROR, .epoch = d->epoch, .sequence = m->header.sequence};
    struct json j;

    error_body(&j, code, text, (enum message_type)m->header.type);
    rpc_send(end, &m->from, &h, &j);
    json_free(&j);
}

/* Broken, or not allowed: the sender is told, if it can be. */
static bool refused(struct daemon *d, struct rpc_server *end, const struct rpc_message *m)
{
    const char *code = message_fault_code(m->fault);

    if (m->fault == MESSAGE_GOOD && message_allowed(m->role, message_kind(m->header.type)))
        return false;
    if (m->fault == MESSAGE_GOOD)
        code = "denied";
    if (may_complain(d, m))
        log_line(4, "msg=\"message refused\" code=%s type=%u role=%s key=%s",
                 m->fault == MESSAGE_NOT_OURS ? "not-ours" : code, (unsigned)m->header.type,
                 message_role_name(m->role), log_quoted(m->key).v);
    if (m->fault != MESSAGE_NOT_OURS && m->header.type != MESSAGE_ERROR) /* no error about errors */
        answer_error(d, end, m, code,
                     m->fault == MESSAGE_GOOD ? "the role of this key does not allow it"
                                              : "not a message of this protocol");
    return true;
}

static void log_denied(struct daemon *d)
{
    struct rpc_denial denial;

    while (d->auth && rpc_auth_denied(d->auth, &denial) == 1)
        log_line(4, "msg=\"peer denied\" socket=%s address=%s key=%s tries=%u", denial.socket,
                 denial.address, denial.key, (unsigned)denial.tries);
}

/* ---- taking in ------------------------------------------------------------------------------ */

static void take_agents(struct daemon *d)
{
    struct rpc_message m;
    int n = 0;

    while (n < AGENTS_A_TURN && rpc_receive(d->agents_end, &m) == 1) {
        n++;
        d->reactor->n_beats += m.header.type == MESSAGE_HEARTBEAT;
        if (!refused(d, d->agents_end, &m))
            agents_take(d, &m);
    }
    d->reactor->n_taken += n;
    d->reactor->agents_drained = n < AGENTS_A_TURN;
    d->reactor->more |= n == AGENTS_A_TURN;
}

/* While the store fails, who only looks gets an answer at once; nothing else is begun. */
static void take_request(struct daemon *d, const struct rpc_message *m)
{
    size_t mark = outbox_mark(d);

    if (!d->store_failed)
        requests_take(d, m);
    else if (message_kind(m->header.type)->role != ROLE_VIEWER)
        answer_error(d, d->clients_end, m, "unavailable",
                     "the store cannot be written; nothing was changed, try again");
    else {
        requests_take(d, m);
        outbox_flush_since(d, mark);
    }
}

static void take_clients(struct daemon *d)
{
    struct rpc_message m;
    int n = 0;

    while (n < CLIENTS_A_TURN && rpc_receive(d->clients_end, &m) == 1) {
        n++;
        if (!refused(d, d->clients_end, &m))
            take_request(d, &m);
    }
    d->reactor->n_taken += n;
    d->reactor->more |= n == CLIENTS_A_TURN;
}

static void take_in(struct daemon *d)
{
    int connection;

    d->reactor->more = false;
    d->reactor->n_taken = d->reactor->n_beats = 0;
    take_signals(d);
    take_agents(d);
    take_clients(d);
    agents_gone(d);
    while (rpc_server_gone(d->clients_end, &connection) == 1)
        ; /* a client that has gone asks for nothing */
    while (rpc_server_gone(d->events_end, &connection) == 1)
        ;
    log_denied(d);
}

/* ---- the store ------------------------------------------------------------------------------ */

static void tell_daemon(struct daemon *d, const char *change)
{
    size_t mark = outbox_mark(d);

    json_string(events_begin(d, "daemon", NULL), "change", change);
    events_end(d);
    outbox_flush_since(d, mark);
}

static void let_out(struct daemon *d)
{
    outbox_flush(d);
    jobs_sweep(d);
    checkpoints_tidy(d);
}

static void commit(struct daemon *d)
{
    struct spec_error err;
    int r = store_commit(d->store, &err);

    need(r != -ENOMEM ? d : NULL);
    if (r == 0) {
        let_out(d);
        return;
    }
    d->store_failed = true;
    d->reactor->retry_at_ms = d->clock.awake_ms + RETRY_MS;
    log_line(3, "msg=\"the store fails; tasks go on, nothing new is taken in\" error=%s",
             log_quoted(err.text).v);
    outbox_commit_failed(d);
    tell_daemon(d, "store-failed");
}

static void retry(struct daemon *d)
{
    struct spec_error err;

    if (d->clock.awake_ms < d->reactor->retry_at_ms)
        return;
    d->reactor->retry_at_ms = d->clock.awake_ms + RETRY_MS;
    if (store_retry(d->store, &err) < 0)
        return;
    d->store_failed = false;
    log_line(6, "msg=\"the store works again\"");
    let_out(d);
    tell_daemon(d, "store-ok");
    agents_resync(d); /* what they said meanwhile was not taken in */
}

/* ---- the end -------------------------------------------------------------------------------- */

static bool jobs_left(const struct daemon *d)
{
    for (const struct daemon_job *job = d->jobs; job; job = job->hh.next)
        if (job->sched && !job->ended_unix_ms)
            return true;
    return false;
}

static void cancel_jobs(struct daemon *d)
{
    struct reactor *r = d->reactor;

    if (!d->ending || !d->stop_jobs || r->stopping)
        return;
    r->stopping = true;
    r->stop_by_ms = d->clock.awake_ms + STOP_EXTRA_MS +
                    options_duration_ms(&d->opts.all, "pliant.agent.stop-timeout");
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next)
        if (job->sched && !job->ended_unix_ms)
            job_fact(d, job, &(struct pliant_event){.kind = PLIANT_EV_CANCEL});
}

static bool is_over(struct daemon *d)
{
    if (!d->ending)
        return false;
    return !d->stop_jobs || !jobs_left(d) || d->clock.awake_ms >= d->reactor->stop_by_ms;
}

/* ---- a turn --------------------------------------------------------------------------------- */

static void run(struct daemon *d)
{
    cancel_jobs(d);
    if (d->reactor->agents_drained)
        agents_expire(d);
    requests_expire(d);
    groups_expire(d);
    do
        jobs_run(d);
    while (slots_share(d));
    jobs_expire(d);
    events_beat(d);
    deploy_gathered(d);
    commit(d);
}

static int64_t sooner(int64_t wait_ms, int64_t at_ms, int64_t now_ms)
{
    int64_t left_ms = at_ms > now_ms ? at_ms - now_ms : 0;

    return left_ms < wait_ms ? left_ms : wait_ms;
}

/* Never longer than half of what the clock takes for a sleep of the machine. */
static long poll_ms(const struct daemon *d)
{
    const struct reactor *r = d->reactor;
    int64_t wait_ms = r->more ? 0 : d->clock.stretch_ms / 2, awake_ms = d->clock.awake_ms;

    if (r->watchdog_ms > 0)
        wait_ms = sooner(wait_ms, r->watchdog_at_ms, awake_ms);
    if (d->store_failed)
        return (long)sooner(wait_ms, r->retry_at_ms, awake_ms);
    wait_ms = sooner(wait_ms, jobs_next_deadline(d), d->clock.now_ms);
    wait_ms = sooner(wait_ms, jobs_next_expiry(d), d->clock.now_ms);
    wait_ms = sooner(wait_ms, groups_next_deadline(d), d->clock.now_ms);
    wait_ms = sooner(wait_ms, agents_next_deadline(d), awake_ms);
    wait_ms = sooner(wait_ms, requests_next_deadline(d), awake_ms);
    return (long)sooner(wait_ms, events_next_deadline(d), awake_ms);
}

/* Many agents beat one by one, and a turn costs far more than a beat. */
static void nap(const struct reactor *r)
{
    if (r->n_taken > 0 && r->n_taken == r->n_beats && !r->more)
        poll(NULL, 0, NAP_MS);
}

static void turn(struct daemon *d)
{
    nap(d->reactor);
    zmq_poll(d->reactor->items, sizeof d->reactor->items / sizeof *d->reactor->items, poll_ms(d));
    clock_look(&d->clock);
    d->turns++;
    take_in(d);
    if (d->store_failed)
        retry(d);
    else
        run(d);
    pat_watchdog(d);
}

int daemon_run(struct daemon *d)
{
    notify_manager("READY=1");
    do
        turn(d);
    while (!is_over(d));
    notify_manager("STOPPING=1");
    if (d->reactor->stopping && jobs_left(d))
        log_line(4, "msg=\"jobs have not ended in time; they are left to their agents\"");
    tell_daemon(d, "ending");
    return 0;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static int open_end(struct daemon *d, enum rpc_server_kind kind, const char *key, int queue,
                    struct rpc_server **ret, struct spec_error *err)
{
    const char *endpoint = options_text(&d->opts.all, key);
    int r = rpc_server_open(kind, endpoint, d->auth, d->opts.insecure, queue, ret, err);

    if (r == 0 && d->opts.insecure && !d->auth)
        log_line(4, "msg=\"--insecure-bind: no keys, whoever reaches it may do all\" endpoint=%s",
                 rpc_server_endpoint(*ret));
    return r;
}

static int open_ends(struct daemon *d, struct spec_error *err)
{
    const char *keys = options_text(&d->opts.all, "pliant.security.keys");
    int queue = atoi(options_text(&d->opts.all, "pliant.daemon.event-queue"));
    int r = *keys ? rpc_auth_open(keys, &d->auth, err) : 0;

    if (r == 0)
        r = open_end(d, RPC_AGENTS, "pliant.daemon.agents", QUEUE, &d->agents_end, err);
    if (r == 0)
        r = open_end(d, RPC_CLIENTS, "pliant.daemon.clients", QUEUE, &d->clients_end, err);
    if (r == 0)
        r = open_end(d, RPC_EVENTS, "pliant.daemon.events", queue, &d->events_end, err);
    return r;
}

static void open_reactor(struct daemon *d)
{
    struct reactor *r = need(calloc(1, sizeof *r));

    d->reactor = r;
    r->signals = rpc_signals_open(NULL);
    need(r->signals < 0 ? NULL : r);
    r->watchdog_ms = watchdog_ms();
    r->items[0] = (zmq_pollitem_t){.fd = r->signals, .events = ZMQ_POLLIN};
}

static void watch_ends(struct daemon *d)
{
    zmq_pollitem_t *items = d->reactor->items;

    items[1].socket = rpc_server_socket(d->agents_end);
    items[2].socket = rpc_server_socket(d->clients_end);
    items[3].socket = rpc_server_monitor(d->agents_end);
    items[4].socket = rpc_server_monitor(d->clients_end);
    items[5].socket = rpc_server_monitor(d->events_end);
    for (size_t i = 1; i < 6; i++)
        items[i].events = ZMQ_POLLIN;
}

static char *endpoints_path(const struct daemon *d, const char *suffix)
{
    char *path;

    return need(asprintf(&path, "%s/endpoints.json%s", d->opts.state_dir, suffix) < 0 ? NULL
                                                                                      : path);
}

static void write_endpoints(const struct daemon *d, struct json *j)
{
    json_begin(j, NULL, '{');
    json_string(j, "agents", rpc_server_endpoint(d->agents_end));
    json_string(j, "clients", rpc_server_endpoint(d->clients_end));
    json_string(j, "events", rpc_server_endpoint(d->events_end));
    json_int(j, "pid", getpid());
    json_id(j, "epoch", d->epoch);
    if (d->auth)
        json_string(j, "server_key", rpc_auth_public_key(d->auth));
    json_end(j, '}');
    json_line(j);
}

/* By rename: who reads it sees all of it. */
static int put_endpoints(const struct daemon *d, struct spec_error *err)
{
    char *path = endpoints_path(d, ""), *temporary = endpoints_path(d, ".new");
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), r = 0;
    struct json j;

    json_init(&j, NULL);
    write_endpoints(d, &j);
    if (fd < 0 || write(fd, j.v, j.n) != (ssize_t)j.n || rename(temporary, path) < 0) {
        r = errno ? -errno : -EIO;
        snprintf(err->text, sizeof err->text, "%s: %s", path, strerror(-r));
    }
    if (fd >= 0)
        close(fd);
    json_free(&j);
    free(path);
    free(temporary);
    return r;
}

static void read_options(struct daemon_options *o)
{
    const char *age = options_text(&o->all, "pliant.daemon.ended-jobs-age");

    o->heartbeat_interval_ms = options_duration_ms(&o->all, "heartbeat.interval");
    o->heartbeat_timeout_ms = options_duration_ms(&o->all, "heartbeat.timeout");
    o->orphan_timeout_ms = options_duration_ms(&o->all, "pliant.agent.orphan-timeout");
    o->ended_kept = atoll(options_text(&o->all, "pliant.daemon.ended-jobs"));
    o->ended_kept_ms = ascii_equal(age, "none")
                           ? PLIANT_NEVER
                           : options_duration_ms(&o->all, "pliant.daemon.ended-jobs-age");
    o->snapshot_every = atoll(options_text(&o->all, "pliant.snapshot.every-steps"));
}

int daemon_open(struct daemon *d, struct spec_error *err)
{
    struct store_options store = {
        .journal_max = atoll(options_text(&d->opts.all, "pliant.journal.max-steps"))};
    int r;

    read_options(&d->opts);
    open_reactor(d);
    clock_start(&d->clock, 0, d->opts.heartbeat_timeout_ms);
    d->groups_at_ms = PLIANT_NEVER;
    outbox_open(d);
    facts_open(d);
    r = store_open(d->opts.state_dir, &store, &d->store, err);
    if (r == 0)
        r = open_ends(d, err);
    if (r == 0)
        r = daemon_recover(d, err);
    if (r == 0)
        r = put_endpoints(d, err);
    if (r < 0)
        return r;
    d->started_at_ms = d->clock.now_ms;
    watch_ends(d);
    log_line(6, "msg=ready agents=%s clients=%s events=%s", rpc_server_endpoint(d->agents_end),
             rpc_server_endpoint(d->clients_end), rpc_server_endpoint(d->events_end));
    return 0;
}

void daemon_close(struct daemon *d)
{
    char *path = d->agents_end ? endpoints_path(d, "") : NULL;

    if (path)
        unlink(path);
    free(path);
    requests_close(d);
    jobs_close(d);
    facts_close(d);
    agents_close(d);
    results_close(d);
    deploy_close(d);
    events_close(d);
    outbox_close(d);
    rpc_server_close(&d->agents_end);
    rpc_server_close(&d->clients_end);
    rpc_server_close(&d->events_end);
    if (d->auth)
        rpc_auth_close(&d->auth);
    store_close(&d->store);
    if (!d->reactor)
        return;
    close(d->reactor->signals);
    vec_free(NULL, &d->reactor->complaints);
    free(d->reactor);
    d->reactor = NULL;
}

/* pliantctl-watch.c - pliantctl watch: what happens as it happens
 *
 * Everything is asked for without waiting, so that silence is only silence: the service may go and
 * come back, under another address too. The stream is checked by its numbers, and what is missing
 * is told. After a lost connection, or where another life of the service speaks, a new SNAPSHOT
 * says where it goes on from.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pliantctl-watch.h"

#define PING_EACH_MS 1000
#define SILENCE_MS 3500     /* then there is no connection */
#define REOPEN_EACH_MS 3000 /* while there is none */
#define SUBSCRIBE_MS 200    /* a subscription needs a moment before it holds */
#define ANSWER_MS 5000      /* then the question is asked again */
#define REFRESH_MIN_MS 250  /* between two pictures */
#define REFRESH_MAX_MS 1000
#define TURN_MS 200

int64_t watch_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the picture ----------------------------------------------------------------------------- */

/* SNAPSHOT's reply lists jobs, STATUS's is one. */
const struct doc *watch_first_job(const struct watch *w)
{
    const struct doc *root = w->picture.root;

    if (!root)
        return NULL;
    return *w->job_id ? root : ctl_first(root, "jobs");
}

/* "": unknown. */
static const char *watch_job_name(const struct watch *w, const char *job_id)
{
    if (*w->job_id)
        return strcmp(job_id, w->job_id) == 0 ? w->job_name : "";
    for (const struct doc *job = watch_first_job(w); job; job = job->next)
        if (strcmp(ctl_text(job, "job_id"), job_id) == 0)
            return ctl_text(job, "name");
    return "";
}

/* What is in use when the job is seen first has been since its last deployment. */
static void remember_before(struct watch_history *h, const struct doc *slots, int64_t now_s)
{
    uint32_t used = slots ? (uint32_t)ctl_int(slots, "used") : 0;
    int64_t since_ms = slots ? ctl_int(slots, "since_unix_ms") : 0;
    int64_t ago_s = since_ms > 0 ? (ctl_unix_ms() - since_ms) / 1000 : 0;

    if (ago_s >= WATCH_SECONDS)
        ago_s = WATCH_SECONDS - 1;
    if (ago_s > now_s)
        ago_s = now_s;
    h->first_s = ago_s > 0 ? now_s - ago_s : now_s;
    for (h->last_s = h->first_s - 1; h->last_s < now_s - 1;)
        h->used[++h->last_s % WATCH_SECONDS] = used;
}

static struct watch_history *history_of(struct watch *w, const char *job_id,
                                        const struct doc *slots, int64_t now_s)
{
    struct watch_history *h;

    for (size_t i = 0; i < w->histories.n; i++)
        if (strcmp(w->histories.v[i].job_id, job_id) == 0)
            return &w->histories.v[i];
    h = vec_push(NULL, &w->histories);
    if (!h)
        return NULL;
    snprintf(h->job_id, sizeof h->job_id, "%s", job_id);
    remember_before(h, slots, now_s);
    return h;
}

/* What was so at the last look was so until now. */
static void remember(struct watch_history *h, uint32_t used, int64_t now_s)
{
    uint32_t before = h->last_s < h->first_s ? used : h->used[h->last_s % WATCH_SECONDS];

    if (now_s - h->last_s > WATCH_SECONDS)
        h->last_s = now_s - WATCH_SECONDS;
    while (++h->last_s < now_s)
        h->used[h->last_s % WATCH_SECONDS] = before;
    h->last_s = now_s;
    h->used[now_s % WATCH_SECONDS] = used;
}

/* What is shown of jobs that are no more need not be kept. */
static void forget_ended(struct watch *w, int64_t now_s)
{
    for (size_t i = 0; i < w->histories.n;)
        if (w->histories.v[i].last_s < now_s)
            w->histories.v[i] = w->histories.v[--w->histories.n];
        else
            i++;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void keep_line(struct watch *w, char *line)
{
    char **place = &w->lines[w->n_lines++ % WATCH_LINES];

    free(*place);
    *place = line;
}

/* A line for people: now on standard output, or kept for the screen. */
static FILE *line_begin(char **ret, size_t *ret_size, int64_t unix_ms)
{
    FILE *f = open_memstream(ret, ret_size);
    char time[CTL_TIME_TEXT];

    if (f)
        fprintf(f, "%s  ", ctl_clock(time, unix_ms));
    return f;
}

static void line_end(struct watch *w, FILE *f, char **line)
{
    fclose(f);
    if (w->screen) {
        keep_line(w, *line);
        return;
    }
    printf("%s\n", *line);
    free(*line);
}

static void say_line(struct watch *w, const char *text)
{
    char *line = NULL;
    size_t size;
    FILE *f;

    if (w->json)
        return;
    f = line_begin(&line, &size, ctl_unix_ms());
    if (!f)
        return;
    ctl_put(f, text);
    line_end(w, f, &line);
}

static void say_event(struct watch *w, const struct doc *event)
{
    const char *name = watch_job_name(w, ctl_text(event, "job"));
    char *line = NULL;
    size_t size;
    FILE *f;

    if (!*name)
        name = ctl_text(event, "name");
    f = line_begin(&line, &size, ctl_int(event, "t_unix_ms"));
    if (!f)
        return;
    ctl_event_line(f, event, *name ? name : ctl_text(event, "job"));
    line_end(w, f, &line);
}

/* What the events to come go on from; from here on they are complete. */
static void say_jobs(struct watch *w)
{
    char text[512];

    for (const struct doc *job = watch_first_job(w); job; job = *w->job_id ? NULL : job->next) {
        snprintf(text, sizeof text, "%s  is %s, %s", ctl_text(job, "name"), ctl_text(job, "state"),
                 ctl_text(job, "job_status"));
        say_line(w, text);
    }
}

static void take_picture(struct watch *w)
{
    int64_t now_ms = watch_now_ms(), now_s = now_ms / 1000;

    bool first = w->picture_at_ms == 0;

    doc_free(&w->picture);
    w->picture = w->c->reply;
    w->c->reply = (struct doc_file){0};
    w->picture_at_ms = now_ms;
    if (!w->screen) {
        if (first)
            say_jobs(w);
        return;
    }
    for (const struct doc *job = watch_first_job(w); job; job = *w->job_id ? NULL : job->next) {
        const struct doc *slots = doc_get(job, "slots");
        struct watch_history *h = history_of(w, ctl_text(job, "job_id"), slots, now_s);

        if (h)
            remember(h, slots ? (uint32_t)ctl_int(slots, "used") : 0, now_s);
    }
    forget_ended(w, now_s);
}

/* ---- the stream ------------------------------------------------------------------------------ */

/* {"t_unix_ms":T,"kind":"gap","missed":N}: programs must know what they do not know. `missed` is
 * null where nobody can tell: a restart. */
static void say_gap(struct watch *w, uint64_t missed)
{
    struct json j;
    char text[80];

    if (!w->json) {
        snprintf(text, sizeof text, "%" PRIu64 " events were missed", missed);
        if (missed > 0)
            say_line(w, text);
        return;
    }
    json_init(&j, stdout);
    json_begin(&j, NULL, '{');
    json_int(&j, "t_unix_ms", ctl_unix_ms());
    json_string(&j, "kind", "gap");
    if (missed > 0)
        json_uint(&j, "missed", missed);
    else
        json_null(&j, "missed");
    json_end(&j, '}');
    json_line(&j);
    json_flush(&j);
    json_free(&j);
}

/* What happens from here on is missed: how much that was the next snapshot tells. */
static void lose_sync(struct watch *w, const char *why)
{
    if (w->synced && *why && !w->json)
        say_line(w, why);
    w->gap = w->gap || w->synced;
    w->synced = false;
    w->refresh = true;
    w->last = UINT64_MAX;        /* another life of the service counts anew */
    w->snapshot = w->status = 0; /* what a former life was asked it does not answer */
}

static void end_gap(struct watch *w, uint64_t epoch, uint64_t sequence)
{
    if (w->gap && (epoch != w->epoch || sequence > w->seen))
        say_gap(w, epoch == w->epoch ? sequence - w->seen : 0);
    w->gap = false;
}

/* Is this event the next one? Events that the snapshot holds already are no news. */
static bool in_order(struct watch *w, const struct message_header *h)
{
    if (!w->synced || h->epoch < w->epoch)
        return false;
    if (h->epoch > w->epoch) {
        lose_sync(w, "pliantd was restarted");
        return false;
    }
    if (h->sequence <= w->seen)
        return false;
    if (h->sequence != w->seen + 1) {
        say_gap(w, h->sequence - w->seen - 1);
        w->refresh = true; /* the picture tells what came of them */
    }
    w->seen = h->sequence;
    return true;
}

static bool concerns(const struct watch *w, const struct doc *event)
{
    const char *job = ctl_text(event, "job");

    return !*w->job_id || !*job || strcmp(job, w->job_id) == 0;
}

static void take_event(struct watch *w, const struct rpc_message *m, struct doc_file *f)
{
    struct spec_error err;
    const char *kind;

    if (m->fault != MESSAGE_GOOD || m->header.type != MESSAGE_EVENT || !in_order(w, &m->header) ||
        message_body(f, &m->header, m->body, m->size, &err) != 0 || !concerns(w, f->root))
        return;
    kind = ctl_text(f->root, "kind");
    if (w->json)
        printf("%.*s\n", (int)m->size, m->body);
    if (strcmp(kind, "beat") == 0)
        return;
    w->refresh = true;
    if (!w->json)
        say_event(w, f->root);
    if (!w->screen && *w->job_id && strcmp(kind, "job") == 0 &&
        strcmp(ctl_text(f->root, "change"), "ended") == 0)
        w->over = true;
}

static void take_events(struct watch *w)
{
    struct rpc_message m;
    struct doc_file f = {0};

    while (w->events && !w->over && rpc_link_receive(w->events, &m) == 1)
        take_event(w, &m, &f);
    doc_free(&f);
    w->over = w->over || (w->ended && w->synced && w->seen >= w->last);
}

/* ---- the service ----------------------------------------------------------------------------- */

static void subscribe(struct watch *w, const char *endpoint)
{
    const struct rpc_link_config config = {
        .endpoint = endpoint, .identity = w->c->identity, .events = true, .queue = CTL_QUEUE};
    struct spec_error err;

    if (w->events && strcmp(endpoint, w->events_endpoint) == 0)
        return;
    if (w->events)
        rpc_link_close(&w->events);
    if (rpc_link_open(&config, &w->events, &err) != 0)
        return; /* the next PING tries again */
    snprintf(w->events_endpoint, sizeof w->events_endpoint, "%s", endpoint);
    w->subscribed_at_ms = watch_now_ms();
}

static void take_ping(struct watch *w, uint64_t epoch)
{
    char endpoint[512];

    subscribe(w, ctl_events_endpoint(w->c, w->c->reply.root, endpoint, sizeof endpoint));
    if (w->synced && epoch != w->epoch)
        lose_sync(w, "pliantd was restarted");
}

static void take_snapshot(struct watch *w, uint64_t epoch)
{
    const char *sequence = ctl_text(w->c->reply.root, "sequence");

    if (!w->synced) {
        end_gap(w, epoch, strtoull(sequence, NULL, 10));
        w->epoch = epoch;
        w->seen = strtoull(sequence, NULL, 10);
        w->synced = true;
    }
    if (w->ended && w->last == UINT64_MAX)
        w->last = strtoull(sequence, NULL, 10);
    if (!*w->job_id)
        take_picture(w);
    else
        w->refresh = true;
}

static void take_status(struct watch *w)
{
    const char *status = ctl_text(w->c->reply.root, "job_status");

    take_picture(w);
    if (w->screen || !ctl_status_is_final(status))
        return;
    w->ended = w->refresh = true; /* a SNAPSHOT tells which event is the last one */
}

static void heard(struct watch *w)
{
    w->heard_at_ms = watch_now_ms();
    if (!w->connected && w->lost_at_ms)
        say_line(w, "connected again");
    w->connected = true;
}

static void take_reply(struct watch *w, const struct rpc_message *m)
{
    struct spec_error err;

    if (m->fault != MESSAGE_GOOD)
        return;
    heard(w);
    if (message_body(&w->c->reply, &m->header, m->body, m->size, &err) != 0)
        return;
    if (m->header.sequence == w->ping && m->header.type == MESSAGE_REPLY)
        take_ping(w, m->header.epoch);
    else if (m->header.sequence == w->snapshot && m->header.type == MESSAGE_REPLY)
        take_snapshot(w, m->header.epoch);
    else if (m->header.sequence == w->status && m->header.type == MESSAGE_REPLY)
        take_status(w);
    w->ping = m->header.sequence == w->ping ? 0 : w->ping;
    w->snapshot = m->header.sequence == w->snapshot ? 0 : w->snapshot;
    w->status = m->header.sequence == w->status ? 0 : w->status;
}

static void take_replies(struct watch *w)
{
    struct rpc_message m;

    while (w->c->link && rpc_link_receive(w->c->link, &m) == 1)
        take_reply(w, &m);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void ask(struct watch *w, enum message_type type, uint64_t *sequence)
{
    struct json *j = ctl_request(w->c);

    if (type == MESSAGE_STATUS)
        json_string(j, "job", w->job_id);
    if (ctl_ask(w->c, type, sequence) != 0)
        *sequence = 0;
}

static void ask_for_picture(struct watch *w, int64_t now)
{
    int64_t since = now - w->asked_at_ms;
    bool asked = w->snapshot || w->status, due;

    if (asked && since < ANSWER_MS)
        return;
    due = w->refresh ? since >= REFRESH_MIN_MS : w->screen && since >= REFRESH_MAX_MS;
    if (!w->events || now - w->subscribed_at_ms < SUBSCRIBE_MS || (w->synced && !due))
        return;
    w->asked_at_ms = now;
    w->refresh = false;
    if (!w->synced || !*w->job_id || w->ended)
        ask(w, MESSAGE_SNAPSHOT, &w->snapshot);
    else
        ask(w, MESSAGE_STATUS, &w->status);
}

static void be_disconnected(struct watch *w, int64_t now)
{
    char tried[5120], text[5200];

    if (w->connected) {
        w->connected = false;
        w->lost_at_ms = now;
        snprintf(text, sizeof text, "no connection to %s, trying",
                 ctl_tried(w->c, tried, sizeof tried));
        say_line(w, text);
        lose_sync(w, ""); /* said already */
    }
    if (now - w->opened_at_ms < REOPEN_EACH_MS)
        return;
    w->opened_at_ms = now;
    w->ping = w->snapshot = w->status = 0;
    ctl_reopen(w->c);
}

static void ask_what_is_due(struct watch *w)
{
    int64_t now = watch_now_ms();

    if (now - w->heard_at_ms > SILENCE_MS)
        be_disconnected(w, now);
    if (!w->c->link)
        return;
    if (now - w->pinged_at_ms >= PING_EACH_MS) {
        w->pinged_at_ms = now;
        ask(w, MESSAGE_PING, &w->ping);
    }
    ask_for_picture(w, now);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Until something comes. A reader of our pipe that has gone shows as an error of the descriptor. */
static bool await(struct watch *w)
{
    struct pollfd fds[] = {
        {.fd = STDOUT_FILENO},
        {.fd = w->c->link ? rpc_link_fd(w->c->link) : -1, .events = POLLIN},
        {.fd = w->events ? rpc_link_fd(w->events) : -1, .events = POLLIN},
        {.fd = w->screen ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = w->screen ? screen_signals() : -1, .events = POLLIN},
    };

    poll(fds, sizeof fds / sizeof *fds, TURN_MS);
    return !(fds[0].revents & (POLLERR | POLLHUP | POLLNVAL));
}

static enum exit_code turns(struct watch *w)
{
    while (!w->over) {
        ask_what_is_due(w);
        take_replies(w); /* also before waiting: the descriptors tell only what is new */
        take_events(w);
        if (w->screen) {
            screen_draw(w);
            if (screen_take())
                return DONE;
        } else if (fflush(stdout) != 0) {
            return ctl_finish(DONE);
        }
        if (!w->over && !await(w))
            return ctl_complain(NO_RESOURCES, "standard output: closed");
    }
    return DONE;
}

/* Is there a service, and such a job? From then on only the user ends the view. */
static enum exit_code begin(struct watch *w)
{
    struct ctl *c = w->c;
    enum exit_code code;

    if (c->n_words == 0) {
        ctl_request(c);
        return ctl_call(c, MESSAGE_PING);
    }
    code = ctl_settle_job(c);
    if (code != DONE)
        return code;
    snprintf(w->job_id, sizeof w->job_id, "%s", c->job_id);
    snprintf(w->job_name, sizeof w->job_name, "%s", ctl_text(c->reply.root, "name"));
    if (!ctl_status_is_final(ctl_text(c->reply.root, "job_status")))
        return DONE;
    w->over = true;
    if (w->json)
        return DONE;
    ctl_put(stdout, w->job_name);
    printf(" has ended: %s\n", ctl_text(c->reply.root, "job_status"));
    return DONE;
}

static void free_watch(struct watch *w)
{
    if (w->events)
        rpc_link_close(&w->events);
    for (size_t i = 0; i < WATCH_LINES; i++)
        free(w->lines[i]);
    vec_free(NULL, &w->histories);
    doc_free(&w->picture);
}

enum exit_code ctl_watch(struct ctl *c)
{
    struct watch w = {.c = c, .json = c->given[CTL_JSON], .connected = true, .last = UINT64_MAX};
    enum exit_code code;

    w.screen = !w.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    code = begin(&w);
    w.heard_at_ms = w.opened_at_ms = watch_now_ms();
    if (code == DONE && !w.over) {
        if (w.screen)
            screen_open();
        code = turns(&w);
        if (w.screen)
            screen_close();
    }
    free_watch(&w);
    return code;
}

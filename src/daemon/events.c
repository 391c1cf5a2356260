/* events.c - the event stream: one event at a time is written, and a beat where nothing happens */
#include <stdlib.h>

#include "daemon/daemon.h"

#define BEAT_MS 5000

struct event_stream {
    struct json body;
    int64_t last_at_ms; /* awake time */
};

static struct event_stream *stream(struct daemon *d)
{
    if (!d->events) {
        d->events = need(calloc(1, sizeof *d->events));
        d->events->last_at_ms = d->clock.awake_ms;
    }
    return d->events;
}

void events_close(struct daemon *d)
{
    if (!d->events)
        return;
    json_free(&d->events->body);
    free(d->events);
    d->events = NULL;
}

struct json *events_begin(struct daemon *d, const char *kind, const struct daemon_job *job)
{
    struct json *j = &stream(d)->body;

    json_reset(j);
    json_begin(j, NULL, '{');
    json_int(j, "t_unix_ms", d->clock.unix_ms);
    json_string(j, "kind", kind);
    if (job)
        json_string(j, "job", job->id);
    return j;
}

void events_end(struct daemon *d)
{
    struct event_stream *e = stream(d);

    json_end(&e->body, '}');
    e->last_at_ms = d->clock.awake_ms;
    outbox_event(d, &e->body);
}

int64_t events_next_deadline(const struct daemon *d)
{
    return d->events ? d->events->last_at_ms + BEAT_MS : d->clock.awake_ms + BEAT_MS;
}

void events_beat(struct daemon *d)
{
    if (d->clock.awake_ms < stream(d)->last_at_ms + BEAT_MS)
        return;
    events_begin(d, "beat", NULL);
    events_end(d);
}

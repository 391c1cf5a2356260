/* recorder.c - see recorder.h */
#include "sim/recorder.h"

#include <errno.h>
#include <stdlib.h>

#include "spec/recording.h"

struct recorder {
    struct sim_observer observer;
    const struct pliant_job *job;
    struct json json;
};

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct recorder *r = (struct recorder *)o;

    recording_write_step(&r->json, r->job, step->sched, step->at_ms, step->event, step->actions);
    return r->json.error;
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    struct recorder *r = (struct recorder *)o;

    (void)end_ms, (void)sched;
    return json_flush(&r->json);
}

int recorder_new(FILE *out, const struct pliant_job *job, const struct pliant_config *cfg,
                 struct sim_observer **ret)
{
    struct recorder *r = malloc(sizeof *r);

    if (!r)
        return -ENOMEM;
    *r = (struct recorder){.observer = {on_step, on_end}, .job = job};
    json_init(&r->json, out);
    recording_write_header(&r->json, job, cfg, NULL, 0);
    *ret = &r->observer;
    return r->json.error;
}

void recorder_destroy(struct sim_observer **o)
{
    struct recorder *r = (struct recorder *)*o;

    if (!r)
        return;
    json_free(&r->json);
    free(r);
    *o = NULL;
}

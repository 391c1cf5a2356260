/* replay.c - see replay.h */
#include "sim/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

static char *text_of(const char *v, size_t n)
{
    char *text = malloc(n + 1);

    if (!text)
        return NULL;
    memcpy(text, v, n);
    text[n] = '\0';
    return text;
}

static int differ(const struct recording_step *step, const struct json *actions,
                  struct replay_result *ret)
{
    ret->same = false;
    ret->line = step->line;
    ret->at_ms = step->at_ms;
    ret->recorded = text_of(step->actions, step->actions_size);
    ret->replayed = text_of(actions->v, actions->n);
    return ret->recorded && ret->replayed ? 0 : -ENOMEM;
}

/* One step again: 0, or what went wrong; ret->same turns false at a difference. */
static int again(struct recording *rec, struct pliant_sched *sched,
                 const struct recording_step *step, struct json *actions, struct replay_result *ret,
                 struct spec_error *err)
{
    struct pliant_actions acts;
    int r = pliant_step(sched, step->at_ms, &step->event, &acts);

    if (r == -EINVAL)
        snprintf(err->text, sizeof err->text, "%s:%u: the scheduler takes no such event",
                 recording_name(rec), step->line);
    if (r)
        return r;
    json_reset(actions);
    recording_write_actions(actions, NULL, recording_job(rec), sched, &acts);
    if (actions->error)
        return actions->error;
    if (actions->n != step->actions_size ||
        memcmp(actions->v, step->actions, step->actions_size) != 0)
        return differ(step, actions, ret);
    ret->steps++;
    return 0;
}

/* A scheduler as it was before the first step. */
static int begin(struct recording *rec, struct pliant_sched **ret, struct spec_error *err)
{
    struct pliant_error why;
    size_t size;
    const void *snapshot = recording_snapshot(rec, &size);
    int r;

    if (snapshot)
        r = pliant_restore(recording_config(rec), recording_job(rec), snapshot, size, ret, &why);
    else
        r = pliant_sched_new(recording_config(rec), recording_job(rec), ret, &why);
    if (r == -EINVAL)
        snprintf(err->text, sizeof err->text, "%s:1: %s", recording_name(rec), why.text);
    return r;
}

int replay(struct recording *rec, struct replay_result *ret, struct spec_error *err)
{
    struct pliant_sched *sched;
    struct recording_step step;
    struct json actions;
    int r = begin(rec, &sched, err);

    *ret = (struct replay_result){.same = true};
    if (r)
        return r;
    json_init(&actions, NULL);
    while (!r && ret->same && (r = recording_next(rec, &step, err)) == 1)
        r = again(rec, sched, &step, &actions, ret, err);
    json_free(&actions);
    pliant_sched_destroy(&sched);
    return r;
}

void replay_free(struct replay_result *result)
{
    free(result->recorded);
    free(result->replayed);
}

/* explore.c - see explore.h */
#include "sim/explore.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "sim/chaos.h"
#include "spec/recording.h"
#include "util/fnv.h"

#define SNAPSHOT_EVERY 8
#define CALM_STEPS 20000u

/* ---- a trial: one scheduler, its model, its twin ----------------------------------------- */

struct trial {
    const struct explore_options *options;
    const struct chaos *chaos;         /* the world */
    struct pliant_sched *sched, *twin; /* twin: restored from a snapshot, or NULL */
    struct pliant_sched *scout;        /* had the timers that are due before the event, or NULL */
    struct pliant_actions early;       /* the scout's */
    struct model model;
    int64_t now_ms;
    uint32_t steps;
    uint32_t snapshot_every;
    uint64_t hash;
    struct json text, twin_text;
    const char *rule; /* that is broken, or NULL */
    char detail[256];
};

static int trial_init(struct trial *t, const struct explore_options *options,
                      const struct chaos *chaos, uint32_t snapshot_every)
{
    int r;

    *t = (struct trial){.options = options,
                        .chaos = chaos,
                        .now_ms = chaos->origin_ms,
                        .snapshot_every = snapshot_every,
                        .hash = FNV_START};
    json_init(&t->text, NULL);
    json_init(&t->twin_text, NULL);
    r = model_init(&t->model, chaos->job, &chaos->cfg);
    return r ? r : pliant_sched_new(&chaos->cfg, chaos->job, &t->sched, NULL);
}

static void trial_free(struct trial *t)
{
    pliant_sched_destroy(&t->sched);
    pliant_sched_destroy(&t->twin);
    pliant_sched_destroy(&t->scout);
    model_free(&t->model);
    json_free(&t->text);
    json_free(&t->twin_text);
}

static bool breaks(struct trial *t, const char *rule, const char *detail)
{
    t->rule = rule;
    snprintf(t->detail, sizeof t->detail, "%s", detail);
    return false;
}

/* The actions as text, which a replay would compare. */
static bool render(struct trial *t, struct json *j, const struct pliant_sched *sched,
                   const struct pliant_actions *acts)
{
    json_reset(j);
    recording_write_actions(j, NULL, t->chaos->job, sched, acts);
    return !j->error || breaks(t, "no memory", "for the text of actions");
}

static bool same_text(const struct json *a, const struct json *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->v, b->v, a->n) == 0);
}

static bool twin_agrees(struct trial *t, const struct pliant_event *ev)
{
    struct pliant_actions acts;

    if (!t->twin)
        return true;
    if (pliant_step(t->twin, t->now_ms, ev, &acts) != 0)
        return breaks(t, "a restored scheduler does the same", "its step fails");
    if (!render(t, &t->twin_text, t->twin, &acts))
        return false;
    if (!same_text(&t->twin_text, &t->text))
        return breaks(t, "a restored scheduler does the same", "other actions");
    return pliant_next_deadline(t->twin) == pliant_next_deadline(t->sched) ||
           breaks(t, "a restored scheduler does the same", "another deadline");
}

/* Does a scheduler have the state that these bytes are a snapshot of? */
static bool same_state(struct trial *t, const struct pliant_sched *sched, const void *bytes,
                       size_t size)
{
    void *own;
    size_t own_size;
    bool same;

    if (pliant_snapshot(sched, &own, &own_size) != 0)
        return breaks(t, "a snapshot can be made", "of a restored scheduler");
    same = own_size == size && memcmp(own, bytes, size) == 0;
    pliant_bytes_free(t->chaos->cfg.alloc, own);
    return same || breaks(t, "a restored scheduler does the same", "another snapshot");
}

/* From a snapshot of this moment. */
static bool restore(struct trial *t, struct pliant_sched **ret)
{
    struct pliant_error err = {.text = ""};
    void *bytes;
    size_t size;
    bool fine;

    pliant_sched_destroy(ret);
    if (pliant_snapshot(t->sched, &bytes, &size) != 0)
        return breaks(t, "a snapshot can be made", "");
    if (pliant_restore(&t->chaos->cfg, t->chaos->job, bytes, size, ret, &err) != 0)
        fine = breaks(t, "a snapshot can be restored", err.text);
    else
        fine = same_state(t, *ret, bytes, size);
    pliant_bytes_free(t->chaos->cfg.alloc, bytes);
    return fine;
}

/* A new twin now and then. The restored one goes on as the scheduler and is restored in its turn;
 * when the events are taken once more, without all that, the actions have to be the same. */
static bool twin_born(struct trial *t)
{
    struct pliant_sched *restored;

    if (t->steps % t->snapshot_every != 0)
        return true;
    if (!restore(t, &t->twin))
        return false;
    restored = t->twin;
    t->twin = t->sched;
    t->sched = restored;
    return true;
}

/* ---- one step ---------------------------------------------------------------------------- */

static bool model_agrees(struct trial *t, const struct pliant_event *ev,
                         const struct pliant_actions *acts, const struct pliant_sched *sched)
{
    const char *broken = model_step(&t->model, t->now_ms, ev, acts, sched);

    return !broken || breaks(t, broken, t->model.detail);
}

/* Timers that are due before the event do what they do in a step of their own: a scheduler that
 * is restored from this moment takes it, and tells how many of the actions are theirs. */
static bool timers_first(struct trial *t, const struct pliant_event *ev)
{
    static const struct pliant_event tick = {.kind = PLIANT_EV_TICK};

    if (ev->kind == PLIANT_EV_TICK || pliant_next_deadline(t->sched) > t->now_ms)
        return true;
    if (!restore(t, &t->scout))
        return false;
    if (pliant_step(t->scout, t->now_ms, &tick, &t->early) != 0)
        return breaks(t, "sound events are taken", pliant_event_name(tick.kind));
    return model_agrees(t, &tick, &t->early, t->scout);
}

/* What is declared at the end of a step is about the event as well. */
static void forget_last_word(struct trial *t)
{
    if (t->early.n > 0 && t->early.v[t->early.n - 1].kind == PLIANT_ACT_DECLARE)
        t->early.n--;
}

/* Does the step begin with what the scout did? A record is shown as it is after the step, so one
 * that was opened may have been closed since. */
static bool begins_like_scout(struct trial *t, const struct pliant_actions *acts)
{
    forget_last_word(t);
    if (acts->n < t->early.n)
        return breaks(t, "timers come before the event", "fewer actions");
    for (size_t i = 0; i < t->early.n; i++) {
        struct pliant_actions one = {&acts->v[i], 1}, early = {&t->early.v[i], 1};

        if (early.v->kind == PLIANT_ACT_RESCALE_OPENED && one.v->kind == early.v->kind)
            continue;
        if (!render(t, &t->text, t->sched, &one) || !render(t, &t->twin_text, t->scout, &early))
            return false;
        if (!same_text(&t->text, &t->twin_text))
            return breaks(t, "timers come before the event", "other actions");
    }
    return true;
}

/* The model takes what timers did, if any were due, and then what the event did. */
static bool event_next(struct trial *t, const struct pliant_event *ev,
                       const struct pliant_actions *acts)
{
    struct pliant_actions rest = *acts;

    if (t->scout) {
        if (!begins_like_scout(t, acts))
            return false;
        rest.v = t->early.n ? rest.v + t->early.n : rest.v;
        rest.n -= t->early.n;
        pliant_sched_destroy(&t->scout);
    }
    return model_agrees(t, ev, &rest, t->sched);
}

/* Neither a malformed event nor a time that is past changes anything; the twin is not told. */
static bool refuses_nonsense(struct trial *t)
{
    static const struct pliant_event nonsense[] = {{.kind = PLIANT_EVENTS},
                                                   {.kind = PLIANT_EV_NODE_UP},
                                                   {.kind = PLIANT_EV_REPORT},
                                                   {.kind = PLIANT_EV_TICK}};
    size_t which = t->steps % (sizeof nonsense / sizeof *nonsense);
    bool late = nonsense[which].kind == PLIANT_EV_TICK;
    struct pliant_actions acts;

    if (late && t->steps == 0)
        return true;
    return pliant_step(t->sched, t->now_ms - late, &nonsense[which], &acts) == -EINVAL ||
           breaks(t, "nonsense is refused", pliant_event_name(nonsense[which].kind));
}

/* One step; false: a rule is broken, here or earlier. */
static bool trial_step(struct trial *t, struct chaos_event *e)
{
    const struct pliant_event *ev = chaos_event_link(e);
    struct pliant_actions acts;
    const char *broken;

    if (!refuses_nonsense(t))
        return false;
    t->now_ms = e->at_ms;
    t->model.late = pliant_next_deadline(t->sched) < t->now_ms;
    if (!timers_first(t, ev))
        return false;
    if (pliant_step(t->sched, t->now_ms, ev, &acts) != 0)
        return breaks(t, "sound events are taken", pliant_event_name(ev->kind));
    if (!event_next(t, ev, &acts) || !render(t, &t->text, t->sched, &acts))
        return false;
    t->hash = fnv_add(t->hash, t->text.v, t->text.n);
    broken = pliant_check(t->sched);
    if (broken)
        return breaks(t, broken, "the scheduler's own check");
    broken = t->options->rule ? t->options->rule(t->options->ctx, t->sched) : NULL;
    if (broken)
        return breaks(t, broken, "");
    if (pliant_next_deadline(t->sched) <= t->now_ms)
        return breaks(t, "deadlines lie ahead after a step", "one is due");
    if (!twin_agrees(t, ev) || !twin_born(t))
        return false;
    t->steps++;
    return true;
}

/* Faults stop: does the job get going? Takes a copy of the chaos, so that it can be done again. */
static bool trial_calm(struct trial *t)
{
    struct chaos chaos = *t->chaos;
    struct chaos_event e;

    for (uint32_t i = 0; i < CALM_STEPS; i++) {
        if (!chaos_calm(&chaos, &t->model, t->now_ms, pliant_next_deadline(t->sched), &e))
            return true;
        if (!trial_step(t, &e))
            return false;
    }
    return breaks(t, "the job gets going once faults stop",
                  pliant_state_name(pliant_state(t->sched)));
}

/* ---- an assertion is a broken rule too --------------------------------------------------- */

static sigjmp_buf death;

static void on_abort(int number)
{
    (void)number;
    siglongjmp(death, 1);
}

/* Run f(t, ctx), and come back from abort(). What the scheduler held is lost then. */
static bool survive(struct trial *t, bool (*f)(struct trial *t, void *ctx), void *ctx)
{
    struct sigaction now = {.sa_handler = on_abort, .sa_flags = SA_NODEFER}, before;
    bool ok;

    sigaction(SIGABRT, &now, &before);
    ok = sigsetjmp(death, 1) ? breaks(t, "assertions hold", "see above") : f(t, ctx);
    sigaction(SIGABRT, &before, NULL);
    return ok;
}

/* ---- a run of drawn events --------------------------------------------------------------- */

struct run {
    struct chaos *chaos;
    uint32_t steps;
    struct VEC(struct chaos_event) events;
};

static bool draw_and_step(struct trial *t, void *ctx)
{
    struct run *run = ctx;

    /* a job that has ended is asked a little more, to see that it stays silent */
    for (uint32_t i = 0, ended = 0; i < run->steps && ended < 20; i++) {
        struct chaos_event *e = vec_push(NULL, &run->events);

        if (!e)
            return breaks(t, "no memory", "for events");
        chaos_draw(run->chaos, &t->model, t->now_ms, pliant_next_deadline(t->sched), e);
        if (!trial_step(t, e))
            return false;
        ended += t->model.archived;
    }
    return trial_calm(t);
}

/* The same events without drawing, then calm. */
struct list {
    const struct chaos_event *v;
    size_t n;
    const bool *without; /* leave these out; NULL: none */
};

static bool feed(struct trial *t, void *ctx)
{
    const struct list *list = ctx;

    for (size_t i = 0; i < list->n; i++) {
        struct chaos_event e = list->v[i];

        if (!(list->without && list->without[i]) && !trial_step(t, &e))
            return false;
    }
    return trial_calm(t);
}

/* ---- shrinking --------------------------------------------------------------------------- */

struct shrink {
    const struct explore_options *options;
    struct chaos *chaos;
    struct list list;
    bool *without;
    const char *rule;
};

/* Does the same rule break without those events? */
static bool still_breaks(struct shrink *s)
{
    struct trial t;
    bool same;

    if (trial_init(&t, s->options, s->chaos, 1) != 0)
        return false;
    same = !survive(&t, feed, &s->list) && t.rule && strcmp(t.rule, s->rule) == 0;
    trial_free(&t);
    return same;
}

static bool leave_out(struct shrink *s, size_t from, size_t n)
{
    bool *before = mem_resize(NULL, NULL, n, sizeof *before);
    bool any = false;

    if (!before)
        return false;
    memcpy(before, s->without + from, n * sizeof *before);
    for (size_t i = 0; i < n; i++) {
        any |= !before[i];
        s->without[from + i] = true;
    }
    if (any && !still_breaks(s)) {
        memcpy(s->without + from, before, n * sizeof *before);
        any = false;
    }
    mem_free(NULL, before);
    return any;
}

/* Halves, quarters, ... and single events, until no single one can be left out. */
static void shrink(struct shrink *s)
{
    size_t n = s->list.n, chunk = n;
    bool any = true;

    while (chunk > 1 || any) {
        any = false;
        chunk = chunk > 1 ? (chunk + 1) / 2 : 1;
        for (size_t from = 0; from < n; from += chunk)
            any |= leave_out(s, from, from + chunk < n ? chunk : n - from);
    }
}

/* ---- the recording of a bad run ---------------------------------------------------------- */

struct writer {
    struct shrink *shrink;
    struct json *out;
};

/* What the small run does, step by step, until it breaks; calm steps belong to it. */
static bool write_steps(struct trial *t, void *ctx)
{
    struct writer *w = ctx;
    const struct list *list = &w->shrink->list;
    struct chaos chaos = *t->chaos;
    struct chaos_event e;
    struct pliant_actions acts;

    for (size_t i = 0; i < list->n + CALM_STEPS; i++) {
        int64_t deadline_ms = pliant_next_deadline(t->sched);
        if (i < list->n && list->without[i])
            continue;
        if (i < list->n)
            e = list->v[i];
        else if (!chaos_calm(&chaos, &t->model, t->now_ms, deadline_ms, &e))
            return true;
        chaos_event_link(&e);
        t->now_ms = e.at_ms;
        timers_first(t, &e.ev);
        if (pliant_step(t->sched, e.at_ms, &e.ev, &acts) != 0)
            return false;
        recording_write_step(w->out, t->chaos->job, t->sched, e.at_ms, &e.ev, &acts);
        if (t->rule || !event_next(t, &e.ev, &acts) ||
            (t->options->rule && t->options->rule(t->options->ctx, t->sched)))
            return false;
    }
    return false;
}

static int write_recording(struct shrink *s, const char *path)
{
    FILE *file = fopen(path, "w");
    struct json out;
    struct trial t;
    int r;

    if (!file)
        return -errno;
    json_init(&out, file);
    recording_write_header(&out, s->chaos->job, &s->chaos->cfg, NULL, 0);
    r = trial_init(&t, s->options, s->chaos, 1);
    if (!r)
        survive(&t, write_steps, &(struct writer){s, &out});
    trial_free(&t);
    if (!r)
        r = json_flush(&out);
    json_free(&out);
    if (fclose(file) != 0 && !r)
        r = -errno;
    return r;
}

/* ---- one run ----------------------------------------------------------------------------- */

static int on_bad(struct run *run, const struct trial *t, const struct explore_options *options,
                  struct explore_result *ret)
{
    struct shrink s = {.options = options,
                       .chaos = run->chaos,
                       .list = {.v = run->events.v, .n = run->events.n},
                       .rule = t->rule};

    int r;

    ret->bad = true;
    ret->step = t->steps;
    ret->rule = t->rule;
    memcpy(ret->detail, t->detail, sizeof ret->detail);
    ret->events = ret->events_left = run->events.n;
    s.without = mem_zero(NULL, run->events.n + 1, sizeof *s.without);
    if (!s.without)
        return -ENOMEM;
    s.list.without = s.without;
    if (still_breaks(&s))
        shrink(&s);
    for (size_t i = 0; i < s.list.n; i++)
        ret->events_left -= s.without[i];
    snprintf(ret->path, sizeof ret->path, "%s/explore-%" PRIu64 ".jsonl",
             options->dir ? options->dir : ".", ret->seed);
    r = write_recording(&s, ret->path);
    mem_free(NULL, s.without);
    return r;
}

/* The events once more: is every action the same? */
static bool comes_out_again(struct run *run, struct trial *t)
{
    struct list list = {.v = run->events.v, .n = run->events.n};
    struct trial again;
    bool same;

    if (trial_init(&again, t->options, run->chaos, UINT32_MAX) != 0)
        return breaks(t, "no memory", "for a second run");
    same = survive(&again, feed, &list) && again.hash == t->hash;
    trial_free(&again);
    return same || breaks(t, "the same events give the same actions", "in a second run");
}

static int explore_run(const struct explore_options *options, struct explore_result *ret)
{
    struct chaos chaos;
    struct run run = {.chaos = &chaos, .steps = options->steps};
    struct trial t;
    int r = chaos_init(&chaos, ret->seed, NULL);

    assert(r != -EINVAL); /* every world is sound */
    if (r)
        return r;
    r = trial_init(&t, options, &chaos, SNAPSHOT_EVERY);
    assert(r != -EINVAL);
    if (!r && (!survive(&t, draw_and_step, &run) || !comes_out_again(&run, &t)))
        r = on_bad(&run, &t, options, ret);
    ret->steps += t.steps;
    ret->hash = ret->hash * 31 + t.hash;
    trial_free(&t);
    vec_free(NULL, &run.events);
    chaos_free(&chaos);
    return r;
}

int explore(const struct explore_options *options, struct explore_result *ret)
{
    int r = 0;

    *ret = (struct explore_result){.runs = 0};
    while (!r && !ret->bad && ret->runs < options->runs) {
        ret->seed = options->seed + ret->runs;
        r = explore_run(options, ret);
        ret->runs++;
        if (options->progress)
            options->progress(options->ctx, ret->runs);
    }
    return r;
}

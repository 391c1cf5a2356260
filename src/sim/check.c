/* check.c - see check.h */
#include "sim/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/sim.h"
#include "util/vec.h"

/* ---- what a run did -------------------------------------------------------------------------- */

struct visit {
    enum pliant_state state;
    int64_t at_ms;
    bool grown;         /* it is no other state: a vertex of a batch job got its tasks */
    size_t parallelism; /* of Executing: where it begins in `parallelism`, by vertex */
};

struct watch {
    struct sim_observer observer;
    uint32_t n_vertices;
    struct visits VEC(struct visit) visits;
    size_t n_states; /* of them, that are no growth */
    struct numbers VEC(uint32_t) parallelism;
    enum pliant_job_status status;
};

static int note_parallelism(struct watch *w, const struct pliant_sched *sched)
{
    for (uint32_t v = 1; v <= w->n_vertices; v++) {
        uint32_t *p = vec_push(NULL, &w->parallelism);

        if (!p)
            return -ENOMEM;
        *p = pliant_parallelism(sched, (pliant_vertex_id){v});
    }
    return 0;
}

static int note_visit(struct watch *w, enum pliant_state state, bool grown, int64_t at_ms,
                      const struct pliant_sched *sched)
{
    struct visit *visit = vec_push(NULL, &w->visits);

    if (!visit)
        return -ENOMEM;
    *visit = (struct visit){
        .state = state, .grown = grown, .at_ms = at_ms, .parallelism = w->parallelism.n};
    w->n_states += !grown;
    return state == PLIANT_EXECUTING ? note_parallelism(w, sched) : 0;
}

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    struct watch *w = (struct watch *)o;
    int r = w->visits.n == 0 ? note_visit(w, PLIANT_CREATED, false, 0, step->sched) : 0;

    for (size_t i = 0; !r && i < step->actions->n; i++) {
        const struct pliant_action *act = &step->actions->v[i];

        if (act->kind == PLIANT_ACT_STATE_CHANGED)
            r = note_visit(w, (enum pliant_state)act->flag[1], false, step->at_ms, step->sched);
        if (act->kind == PLIANT_ACT_DECIDED)
            r = note_visit(w, PLIANT_EXECUTING, true, step->at_ms, step->sched);
    }
    return r;
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    struct watch *w = (struct watch *)o;

    (void)end_ms;
    w->status = pliant_job_status(sched);
    return 0;
}

static void watch_free(struct watch *w)
{
    vec_free(NULL, &w->visits);
    vec_free(NULL, &w->parallelism);
}

static const struct visit *last_visit(const struct watch *w)
{
    return &w->visits.v[w->visits.n - 1];
}

/* The parallelism of a vertex in an Executing. */
static uint32_t parallelism_in(const struct watch *w, const struct visit *visit,
                               pliant_vertex_id vertex)
{
    return w->parallelism.v[visit->parallelism + vertex.v - 1];
}

/* ---- the checks: true, or what is wrong ------------------------------------------------------ */

static bool wrong(struct check_verdict *ret, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool wrong(struct check_verdict *ret, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret->why, sizeof ret->why, format, args);
    va_end(args);
    return false;
}

static bool final_state(const struct case_file *c, const struct watch *w, struct check_verdict *ret)
{
    const struct visit *last = last_visit(w);

    if (!c->expect.has_final_state || last->state == c->expect.final_state)
        return true;
    return wrong(ret, "final_state: wanted %s, got %s since %" PRId64,
                 pliant_state_name(c->expect.final_state), pliant_state_name(last->state),
                 last->at_ms);
}

static bool job_status(const struct case_file *c, const struct watch *w, struct check_verdict *ret)
{
    if (!c->expect.has_job_status || w->status == c->expect.job_status)
        return true;
    return wrong(ret, "job_status: wanted %s, got %s since %" PRId64,
                 pliant_job_status_name(c->expect.job_status), pliant_job_status_name(w->status),
                 last_visit(w)->at_ms);
}

static bool states_visited(const struct case_file *c, const struct watch *w,
                           struct check_verdict *ret)
{
    const struct case_expect *e = &c->expect;
    const struct visit *visit = w->visits.v;

    for (size_t i = 0; e->has_states_visited; i++, visit++) {
        bool wanted = i < e->n_states_visited, got = i < w->n_states;

        if (!wanted && !got)
            return true;
        while (got && visit->grown)
            visit++;
        if (wanted && !got)
            return wrong(ret, "states_visited[%zu]: wanted %s, got no more until %" PRId64, i,
                         pliant_state_name(e->states_visited[i]), c->until_ms);
        if (!wanted || visit->state != e->states_visited[i])
            return wrong(ret, "states_visited[%zu]: wanted %s, got %s at %" PRId64, i,
                         wanted ? pliant_state_name(e->states_visited[i]) : "no more",
                         pliant_state_name(visit->state), visit->at_ms);
    }
    return true;
}

static bool never(const struct case_file *c, const struct watch *w, struct check_verdict *ret)
{
    for (size_t i = 0; i < w->visits.n; i++)
        if (c->expect.never[w->visits.v[i].state])
            return wrong(ret, "never: got %s at %" PRId64, pliant_state_name(w->visits.v[i].state),
                         w->visits.v[i].at_ms);
    return true;
}

/* The Executing that the job runs from at t_ms, or NULL: it does not run. */
static const struct visit *running_at(const struct watch *w, int64_t t_ms)
{
    const struct visit *running = NULL;

    for (size_t i = 0; i < w->visits.n && w->visits.v[i].at_ms <= t_ms; i++) {
        if (w->visits.v[i].state == PLIANT_EXECUTING)
            running = &w->visits.v[i];
        else if (w->visits.v[i].state != PLIANT_STOP_WITH_SAVEPOINT)
            running = NULL;
    }
    return running;
}

static bool moment(const struct case_file *c, const struct watch *w, const struct case_moment *m,
                   struct check_verdict *ret)
{
    const struct visit *running = running_at(w, m->t_ms);

    for (size_t i = 0; i < m->n; i++) {
        const struct case_parallelism *want = &m->v[i];
        uint32_t got = running ? parallelism_in(w, running, want->vertex) : 0;

        if (got != want->parallelism)
            return wrong(ret, "parallelism_at: wanted %s %" PRIu32 ", got %" PRIu32 " at %" PRId64,
                         pliant_job_vertex_name(c->job.job, want->vertex), want->parallelism, got,
                         m->t_ms);
    }
    return true;
}

static bool parallelism_at(const struct case_file *c, const struct watch *w,
                           struct check_verdict *ret)
{
    for (size_t i = 0; i < c->expect.n_parallelism_at; i++)
        if (!moment(c, w, &c->expect.parallelism_at[i], ret))
            return false;
    return true;
}

/* Does this Executing run otherwise than the one before? */
static bool rescales_from(const struct watch *w, const struct visit *before,
                          const struct visit *visit)
{
    return before &&
           memcmp(&w->parallelism.v[before->parallelism], &w->parallelism.v[visit->parallelism],
                  w->n_vertices * sizeof *w->parallelism.v) != 0;
}

/* "src 4 map 4" */
static const char *parallelism_text(const struct case_file *c, const struct watch *w,
                                    const struct visit *visit, char *buf, size_t size)
{
    size_t n = 0;

    buf[0] = '\0';
    for (uint32_t v = 1; v <= w->n_vertices && n < size; v++)
        n += (size_t)snprintf(buf + n, size - n, "%s%s %" PRIu32, v > 1 ? " " : "",
                              pliant_job_vertex_name(c->job.job, (pliant_vertex_id){v}),
                              parallelism_in(w, visit, (pliant_vertex_id){v}));
    return buf;
}

/* Rescale i, of those that are wanted, is the entry that `visit` made. */
static bool rescale(const struct case_file *c, const struct watch *w, size_t i,
                    const struct visit *visit, struct check_verdict *ret)
{
    const struct case_rescale *want = c->expect.rescales + i;
    char got[256];

    if (visit->at_ms < want->t_min_ms || visit->at_ms > want->t_max_ms)
        return wrong(ret, "rescales[%zu]: wanted at %" PRId64 "..%" PRId64 ", got %s at %" PRId64,
                     i, want->t_min_ms, want->t_max_ms,
                     parallelism_text(c, w, visit, got, sizeof got), visit->at_ms);
    for (size_t k = 0; k < want->n; k++)
        if (parallelism_in(w, visit, want->to[k].vertex) != want->to[k].parallelism)
            return wrong(ret, "rescales[%zu]: wanted %s %" PRIu32 ", got %s at %" PRId64, i,
                         pliant_job_vertex_name(c->job.job, want->to[k].vertex),
                         want->to[k].parallelism, parallelism_text(c, w, visit, got, sizeof got),
                         visit->at_ms);
    return true;
}

static bool rescales(const struct case_file *c, const struct watch *w, struct check_verdict *ret)
{
    const struct visit *before = NULL;
    char got[256];
    size_t n = 0;

    if (!c->expect.has_rescales)
        return true;
    for (size_t i = 0; i < w->visits.n; i++) {
        const struct visit *visit = &w->visits.v[i];

        if (visit->state != PLIANT_EXECUTING || visit->grown)
            continue;
        if (rescales_from(w, before, visit)) {
            if (n == c->expect.n_rescales)
                return wrong(ret, "rescales: wanted %zu, got one more, %s at %" PRId64, n,
                             parallelism_text(c, w, visit, got, sizeof got), visit->at_ms);
            if (!rescale(c, w, n++, visit, ret))
                return false;
        }
        before = visit;
    }
    if (n < c->expect.n_rescales)
        return wrong(ret, "rescales[%zu]: wanted one at %" PRId64 "..%" PRId64 ", got none", n,
                     c->expect.rescales[n].t_min_ms, c->expect.rescales[n].t_max_ms);
    return true;
}

static bool restarts(const struct case_file *c, const struct watch *w, struct check_verdict *ret)
{
    int64_t n = 0, last_ms = 0;

    for (size_t i = 0; i < w->visits.n; i++) {
        if (w->visits.v[i].state != PLIANT_RESTARTING)
            continue;
        n++;
        last_ms = w->visits.v[i].at_ms;
    }
    if (c->expect.min_restarts != CASE_NOT_ASKED && n < c->expect.min_restarts)
        return wrong(ret, "min_restarts: wanted %" PRId64 ", got %" PRId64 ", the last at %" PRId64,
                     c->expect.min_restarts, n, last_ms);
    if (c->expect.max_restarts != CASE_NOT_ASKED && n > c->expect.max_restarts)
        return wrong(ret, "max_restarts: wanted %" PRId64 ", got %" PRId64 ", the last at %" PRId64,
                     c->expect.max_restarts, n, last_ms);
    return true;
}

/* Time outside Executing, from the first Executing on, until the end or Finished. */
static int64_t downtime_ms(const struct case_file *c, const struct watch *w)
{
    int64_t down_ms = 0;
    bool executed = false;

    for (size_t i = 0; i < w->visits.n; i++) {
        const struct visit *visit = &w->visits.v[i];
        int64_t left_ms = i + 1 < w->visits.n ? visit[1].at_ms : c->until_ms;

        executed |= visit->state == PLIANT_EXECUTING;
        if (executed && visit->state != PLIANT_EXECUTING && visit->state != PLIANT_FINISHED)
            down_ms += left_ms - visit->at_ms;
    }
    return down_ms;
}

static bool downtime(const struct case_file *c, const struct watch *w, struct check_verdict *ret)
{
    int64_t got_ms = downtime_ms(c, w);

    if (c->expect.downtime_ms_max == CASE_NOT_ASKED || got_ms <= c->expect.downtime_ms_max)
        return true;
    return wrong(ret, "downtime_ms_max: wanted %" PRId64 ", got %" PRId64 " until %" PRId64,
                 c->expect.downtime_ms_max, got_ms, c->until_ms);
}

static bool (*const checks[])(const struct case_file *c, const struct watch *w,
                              struct check_verdict *ret) = {
    states_visited, never, rescales, parallelism_at, restarts, downtime, final_state, job_status,
};

static void judge(const struct case_file *c, const struct watch *w, struct check_verdict *ret)
{
    *ret = (struct check_verdict){.pass = true};
    for (size_t i = 0; ret->pass && i < sizeof checks / sizeof *checks; i++)
        ret->pass = checks[i](c, w, ret);
}

/* ---- a case ------------------------------------------------------------------------------ */

/* The options that the case's job sets. */
static int resolve(const struct case_file *c, struct options *options, struct pliant_config *cfg,
                   struct spec_error *err)
{
    int r = options_add_job(options, &c->doc, c->job.config, c->job.group, err);

    options->all_blocking = pliant_job_is_batch(c->job.job);
    if (!r)
        r = options_resolve(options, cfg, err);
    return r ? r : sim_check_job(&c->job, cfg, err);
}

int check_case(const struct case_file *c, struct check_verdict *ret, struct spec_error *err)
{
    struct watch watch = {.observer = {on_step, on_end},
                          .n_vertices = pliant_job_vertices(c->job.job)};
    struct sim_observer *observers[] = {&watch.observer};
    struct options options = {0};
    struct pliant_config cfg;
    struct trace_summary summary;
    int r = resolve(c, &options, &cfg, err);

    if (!r)
        r = trace_scan(c->trace, &summary, err);
    if (!r) {
        cfg.checkpoint_periodic = false; /* they complete only where the trace says so */
        r = sim_run(&(struct sim_setup){.cfg = &cfg,
                                        .job = &c->job,
                                        .latency = sim_latency_of(&options),
                                        .trace = c->trace,
                                        .trace_savepoints = summary.has_savepoints,
                                        .trace_launches = summary.launches,
                                        .until_ms = c->until_ms,
                                        .observers = observers,
                                        .n_observers = 1},
                    err);
    }
    if (!r)
        judge(c, &watch, ret);
    watch_free(&watch);
    options_free(&options);
    return r;
}

/* sim.c - see sim.h */
#include "sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "util/deadline.h"

struct sim {
    const struct sim_setup *setup;
    struct spec_error *err;
    struct pliant_sched *sched;
    struct host host;
    int64_t now_ms;
    bool started;
    bool has_next; /* `next` is the trace's next event; else the trace is over */
    struct trace_event next;
    size_t fetched; /* of the setup's events */
    char cause[64]; /* in the event that is delivered */
};

static int fetch(struct sim *s)
{
    const struct sim_setup *setup = s->setup;
    int r = 1;

    if (setup->trace)
        r = trace_next(setup->trace, &s->next, s->err);
    else if (s->fetched < setup->n_events)
        s->next = setup->events[s->fetched++];
    else
        r = 0;
    s->has_next = r == 1;
    return r < 0 ? r : 0;
}

/* ---- one step -------------------------------------------------------------------------------- */

static int step(struct sim *s, const struct pliant_event *ev, uint32_t line)
{
    struct pliant_actions acts;
    struct sim_step seen = {
        .at_ms = s->now_ms, .event = ev, .actions = &acts, .sched = s->sched, .trace_line = line};
    int r = pliant_step(s->sched, s->now_ms, ev, &acts);

    if (r == -EINVAL)
        snprintf(s->err->text, sizeof s->err->text, "line %u of the trace: %s is beyond limits",
                 line, pliant_event_name(ev->kind));
    for (size_t i = 0; !r && i < s->setup->n_observers; i++)
        r = s->setup->observers[i]->on_step(s->setup->observers[i], &seen);
    if (!r)
        r = host_on_step(&s->host, s->now_ms, ev, &acts);
    assert(r || pliant_next_deadline(s->sched) > s->now_ms);
    return r;
}

static int deliver_answer(struct sim *s)
{
    struct pliant_event ev;

    return host_answer(&s->host, &ev) ? step(s, &ev, 0) : 0;
}

/* ---- events of the trace --------------------------------------------------------------------- */

static struct pliant_event node_event(const struct trace_event *t)
{
    struct pliant_event ev = {.kind = PLIANT_EV_NODE_LOST};

    if (t->kind == TRACE_NODE_UP && !t->withdraws) {
        ev.kind = PLIANT_EV_NODE_UP;
        ev.node_up.name = t->node;
        ev.node_up.incarnation = t->incarnation;
        ev.node_up.slots = t->slots;
        ev.node_up.zone = t->zone;
        ev.node_up.domain = t->domain;
        ev.node_up.labels = t->labels;
        ev.node_up.n_labels = t->n_labels;
        return ev;
    }
    if (t->kind == TRACE_NODE_UP)
        ev.kind = PLIANT_EV_NODE_DRAIN_WITHDRAWN;
    ev.node.name = t->node;
    ev.node.incarnation = t->incarnation;
    return ev;
}

static struct pliant_event drain_event(const struct trace_event *t)
{
    struct pliant_event ev = {.kind = PLIANT_EV_NODE_DRAINING};

    ev.draining.name = t->node;
    ev.draining.incarnation = t->incarnation;
    ev.draining.deadline_at_ms =
        t->deadline_ms <= 0 ? PLIANT_NEVER : instant_after(t->t_ms, t->deadline_ms);
    ev.draining.reason = t->reason;
    return ev;
}

/* All tasks of the job run, or have run to their end. */
static bool all_running(const struct sim *s)
{
    enum pliant_state state = pliant_state(s->sched);
    struct pliant_counts counts;

    if (state != PLIANT_EXECUTING && state != PLIANT_STOP_WITH_SAVEPOINT)
        return false;
    pliant_counts(s->sched, &counts);
    return counts.tasks_running > 0 && counts.tasks_running == counts.tasks_live;
}

static struct pliant_event checkpoint_event(const struct sim *s, const struct trace_event *t)
{
    struct pliant_event ev = {.kind = t->kind == TRACE_CHECKPOINT ? PLIANT_EV_CHECKPOINT_COMPLETED
                                                                  : PLIANT_EV_CHECKPOINT_FAILED};
    int64_t duration_ms = s->setup->latency.checkpoint_ms;

    if (!all_running(s)) /* nobody can have taken one: news of nothing, which the core counts */
        return ev;
    ev.checkpoint.id = t->id;
    ev.checkpoint.own_accord = true;
    ev.checkpoint.counts = t->counts;
    ev.checkpoint.triggered_at_ms = t->t_ms > duration_ms ? t->t_ms - duration_ms : 0;
    return ev;
}

static struct pliant_event savepoint_event(const struct sim *s, const struct trace_event *t)
{
    struct pliant_event ev = {.kind = t->kind == TRACE_SAVEPOINT_COMPLETED
                                          ? PLIANT_EV_SAVEPOINT_COMPLETED
                                          : PLIANT_EV_SAVEPOINT_FAILED};

    ev.checkpoint.id = s->host.stop_id;
    ev.checkpoint.counts = true;
    ev.checkpoint.cause = t->cause ? t->cause : "the savepoint failed";
    if (ev.kind == PLIANT_EV_SAVEPOINT_COMPLETED)
        ev.checkpoint.path = t->path ? t->path : "savepoint";
    return ev;
}

/* The attempt that a task event means. One that does not run at this moment has number 0, which
 * no attempt has: the core counts the event as ignored. */
static struct pliant_task task_of(const struct sim *s, const struct trace_event *t)
{
    struct pliant_task task = {t->vertex_id, t->subtask, 0};
    const struct attempt *a = host_attempt(&s->host, t->vertex_id, t->subtask);
    bool canceling = t->kind == TRACE_TASK_CANCELED;

    if (a && (a->phase == PHASE_CANCELING) == canceling)
        task.attempt = a->number;
    return task;
}

static struct pliant_event task_event(const struct sim *s, const struct trace_event *t)
{
    struct pliant_event ev = {.kind = PLIANT_EV_TASK_RUNNING, .task = task_of(s, t)};

    if (t->kind == TRACE_TASK_FINISHED)
        ev.kind = PLIANT_EV_TASK_FINISHED;
    if (t->kind == TRACE_TASK_CANCELED)
        ev.kind = PLIANT_EV_TASK_CANCELED;
    return ev;
}

static struct pliant_event failure_event(const struct sim *s, const struct trace_event *t)
{
    struct pliant_event ev = {.kind = PLIANT_EV_GLOBAL_FAILURE};

    if (t->kind == TRACE_TASK_FAILED) {
        ev.kind = PLIANT_EV_TASK_FAILED;
        ev.failure.task = task_of(s, t);
        ev.failure.exit_code = (uint8_t)t->code;
        ev.failure.input_lost = t->input_lost;
        ev.failure.edge = t->edge;
        ev.failure.producer = t->producer;
    }
    ev.failure.recoverable = t->recoverable;
    ev.failure.cause = t->cause;
    return ev;
}

static struct pliant_event stop_event(const struct sim *s)
{
    struct pliant_event ev = {.kind = PLIANT_EV_STOP};

    if (!s->setup->cfg->has_savepoint_dir) /* in simulation there is always a place for it */
        ev.savepoint.dir = "savepoints";
    return ev;
}

static struct pliant_event requirements_event(const struct trace_event *t)
{
    struct pliant_event ev = {.kind = PLIANT_EV_REQUIREMENTS};

    ev.requirements.v = t->bounds;
    ev.requirements.n = t->n_bounds;
    return ev;
}

static void fail_next_creation(struct sim *s, const struct trace_event *t)
{
    struct host *h = &s->host;

    h->creation_fails = true;
    h->creation_recoverable = t->recoverable;
    snprintf(h->creation_cause, sizeof h->creation_cause, "%s",
             t->cause ? t->cause : "the execution graph could not be created");
}

/* ---- worker groups --------------------------------------------------------------------------- */

#define SIGTERM_NUMBER 15
#define SIGKILL_NUMBER 9
#define EXIT_BY_SIGNAL                                                                             \
    128 /* a shell's exit code for a child that a signal killed, less its number */

static enum pliant_death death_of(const struct trace_event *t)
{
    int64_t number = t->signal > 0 ? t->signal : t->code - EXIT_BY_SIGNAL;

    if (number == SIGTERM_NUMBER || number == SIGKILL_NUMBER)
        return PLIANT_DEATH_TERMINATED;
    return t->signal > 0 ? PLIANT_DEATH_CRASH : PLIANT_DEATH_ERROR;
}

static struct pliant_event exit_event(struct sim *s, const struct trace_event *t)
{
    struct pliant_event ev = {.kind = PLIANT_EV_TASK_FINISHED, .task = task_of(s, t)};

    if (t->code == 0)
        return ev;
    ev = (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED};
    ev.failure.task = task_of(s, t);
    ev.failure.recoverable = true;
    ev.failure.death = death_of(t);
    ev.failure.exit_code = (uint8_t)(t->signal > 0 ? EXIT_BY_SIGNAL + t->signal : t->code);
    snprintf(s->cause, sizeof s->cause, t->signal > 0 ? "killed by signal %lld" : "exit code %lld",
             (long long)(t->signal > 0 ? t->signal : t->code));
    ev.failure.cause = t->cause ? t->cause : s->cause;
    return ev;
}

static struct pliant_event report_event(const struct sim *s, const struct trace_event *t)
{
    struct pliant_event ev = {.kind = PLIANT_EV_REPORT};

    ev.report.task = task_of(s, t);
    ev.report.call = t->call;
    ev.report.path = t->path;
    return ev;
}

/* A worker of the launch that goes on, from this rank on. */
static const struct attempt *launching(const struct sim *s, uint32_t *rank)
{
    const pliant_vertex_id worker = {1};

    for (; pliant_state(s->sched) == PLIANT_CREATING_EXECUTION_GRAPH &&
           *rank < pliant_parallelism(s->sched, worker);
         ++*rank) {
        const struct attempt *a = host_attempt(&s->host, worker, *rank);

        if (a && a->phase != PHASE_CANCELING && a->phase != PHASE_RUNNING)
            return a;
    }
    return NULL;
}

static void told_of_launch(struct sim *s)
{
    s->host.launches_told -= s->host.launches_told > 0;
}

/* All workers of the launch that goes on are up: a step for each but the last. */
static int launched(struct sim *s, const struct trace_event *t, struct pliant_event *ev)
{
    const struct attempt *a;
    bool any = false;
    int r = 0;

    told_of_launch(s);
    for (uint32_t rank = 0; !r && (a = launching(s, &rank)) != NULL; rank++) {
        if (any)
            r = step(s, ev, t->line);
        any = true;
        *ev = (struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING, .task = {{1}, rank, a->number}};
    }
    return r;
}

/* The launch that goes on fails, or the next one. */
static void launch_failed(struct sim *s, const struct trace_event *t, struct pliant_event *ev)
{
    uint32_t rank = 0;
    const struct attempt *a = launching(s, &rank);
    const char *cause = t->cause ? t->cause : "the launch failed";

    told_of_launch(s);
    if (a) {
        *ev = (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED};
        ev->failure.task = (struct pliant_task){{1}, rank, a->number};
        ev->failure.recoverable = true;
        ev->failure.cause = cause;
        return;
    }
    s->host.creation_fails = s->host.creation_recoverable = true;
    snprintf(s->host.creation_cause, sizeof s->host.creation_cause, "%s", cause);
}

static int deliver_trace_event(struct sim *s)
{
    const struct trace_event *t = &s->next;
    struct pliant_event ev = {.kind = PLIANT_EV_TICK};
    int r = 0;

    switch (t->kind) {
    case TRACE_NODE_UP:
    case TRACE_NODE_DOWN:
        ev = node_event(t);
        break;
    case TRACE_NODE_DRAIN:
        ev = drain_event(t);
        break;
    case TRACE_CHECKPOINT:
    case TRACE_CHECKPOINT_FAILED:
        ev = checkpoint_event(s, t);
        break;
    case TRACE_SAVEPOINT_COMPLETED:
    case TRACE_SAVEPOINT_FAILED:
        ev = savepoint_event(s, t);
        break;
    case TRACE_TASK_RUNNING:
    case TRACE_TASK_FINISHED:
    case TRACE_TASK_CANCELED:
        ev = task_event(s, t);
        break;
    case TRACE_TASK_FAILED:
    case TRACE_GLOBAL_FAILURE:
        ev = failure_event(s, t);
        break;
    case TRACE_CREATION_FAILED:
        fail_next_creation(s, t); /* and time has passed */
        break;
    case TRACE_REQUIREMENTS:
        ev = requirements_event(t);
        break;
    case TRACE_CANCEL:
        ev.kind = PLIANT_EV_CANCEL;
        break;
    case TRACE_SUSPEND:
        ev.kind = PLIANT_EV_SUSPEND;
        break;
    case TRACE_STOP_WITH_SAVEPOINT:
        ev = stop_event(s);
        break;
    case TRACE_LAUNCHED:
        r = launched(s, t, &ev);
        break;
    case TRACE_LAUNCH_FAILED:
        launch_failed(s, t, &ev);
        break;
    case TRACE_WORKER_EXIT:
        ev = exit_event(s, t);
        break;
    case TRACE_REPORT:
        ev = report_event(s, t);
        break;
    case TRACE_KINDS:
        break;
    }
    if (!r)
        r = step(s, &ev, t->line);
    return r ? r : fetch(s);
}

/* ---- from instant to instant ----------------------------------------------------------------- */

static bool at_submission(const struct trace_event *t)
{
    return t->t_ms == 0 && (t->kind == TRACE_NODE_UP || t->kind == TRACE_NODE_DOWN ||
                            t->kind == TRACE_NODE_DRAIN || t->kind == TRACE_REQUIREMENTS);
}

static int64_t next_instant(const struct sim *s)
{
    const struct answer *top = queue_top(&s->host.queue);
    int64_t at_ms = pliant_next_deadline(s->sched);

    if (top && top->due_ms < at_ms)
        at_ms = top->due_ms;
    if (s->has_next && s->next.t_ms < at_ms)
        at_ms = s->next.t_ms;
    return at_ms;
}

static int advance(struct sim *s)
{
    const struct answer *top = queue_top(&s->host.queue);
    bool answered = top && top->due_ms == s->now_ms;

    if (!s->started && !(s->has_next && at_submission(&s->next))) {
        s->started = true;
        return step(s, &(struct pliant_event){.kind = PLIANT_EV_START}, 0);
    }
    if (queue_prompt(&s->host.queue))
        return deliver_answer(s);
    if (s->has_next && s->next.t_ms == s->now_ms)
        return deliver_trace_event(s);
    if (answered)
        return deliver_answer(s);
    return step(s, &(struct pliant_event){.kind = PLIANT_EV_TICK}, 0);
}

static int run(struct sim *s)
{
    const struct sim_setup *setup = s->setup;
    int r = fetch(s);

    while (!r) {
        int64_t at_ms = s->started ? next_instant(s) : 0;

        if (at_ms > setup->until_ms || at_ms == PLIANT_NEVER)
            break;
        s->now_ms = at_ms;
        r = advance(s);
    }
    for (size_t i = 0; !r && i < setup->n_observers; i++)
        r = setup->observers[i]->on_end(setup->observers[i], setup->until_ms, s->sched);
    return r;
}

struct sim_latency sim_latency_of(const struct options *options)
{
    return (struct sim_latency){
        .deploy_ms = options_duration_ms(options, "pliant.sim.deploy-latency"),
        .restore_ms = options_duration_ms(options, "pliant.sim.restore-latency"),
        .cancel_ms = options_duration_ms(options, "pliant.sim.cancel-latency"),
        .checkpoint_ms = options_duration_ms(options, "pliant.sim.checkpoint-duration"),
    };
}

int sim_check_job(const struct job_spec *job, const struct pliant_config *cfg,
                  struct spec_error *err)
{
    struct pliant_error why;

    if (pliant_job_check(job->job, cfg, &why) == 0)
        return 0;
    if (job->doc.root && !pliant_option_find(why.field)) /* an option may come from anywhere */
        return job_spec_error(&job->doc, job->doc.root, &why, err);
    snprintf(err->text, sizeof err->text, "%s", why.text);
    return -EINVAL;
}

int sim_run(const struct sim_setup *setup, struct spec_error *err)
{
    struct sim s = {.setup = setup, .err = err};
    int r;

    err->text[0] = '\0';
    r = pliant_sched_new(setup->cfg, setup->job->job, &s.sched, NULL);
    assert(r != -EINVAL); /* sim_check_job() */
    if (!r)
        r = host_init(&s.host, setup->job->job, setup->cfg->alloc);
    if (!r) {
        s.host.sched = s.sched;
        s.host.sims = setup->job->vertices;
        s.host.prng.state = (uint64_t)setup->cfg->seed;
        s.host.latency = setup->latency;
        s.host.answers_stop = !setup->trace_savepoints;
        s.host.launches_told = setup->trace_launches;
        r = run(&s);
        host_free(&s.host);
    }
    pliant_sched_destroy(&s.sched);
    return r;
}

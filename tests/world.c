/* world.c - see world.h */
#include "world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const struct pliant_vertex_spec *vertices_of(const struct world_spec *spec,
                                                    struct pliant_vertex_spec *one)
{
    if (spec->vertices)
        return spec->vertices;
    *one = (struct pliant_vertex_spec){.id = spec->worker_group ? PLIANT_WORKER_VERTEX : "v",
                                       .parallelism = spec->parallelism ? spec->parallelism : 4,
                                       .min_parallelism = spec->min_parallelism,
                                       .max_parallelism = spec->max_parallelism};
    return one;
}

struct world world_new(struct world_spec spec)
{
    struct world w = {.reserves = true, .runs = true, .cancels = true};
    struct pliant_vertex_spec one;
    struct pliant_job_spec job = {.vertices = vertices_of(&spec, &one),
                                  .n_vertices = spec.vertices ? spec.n_vertices : 1,
                                  .edges = spec.edges,
                                  .n_edges = spec.n_edges,
                                  .worker_group = spec.worker_group};
    struct pliant_error err = {0};

    pliant_config_init(&w.cfg);
    w.cfg.alloc = spec.alloc;
    for (size_t i = 0; spec.options[i]; i += 2)
        cr_assert_eq(pliant_config_set(&w.cfg, spec.options[i], spec.options[i + 1], &err), 0,
                     "%s: %s", spec.options[i], err.text);
    cr_assert_eq(pliant_job_new(&job, spec.alloc, &w.job, &err), 0, "%s", err.text);
    cr_assert_eq(pliant_sched_new(&w.cfg, w.job, &w.s, &err), 0, "%s", err.text);
    w.states[w.n_states++] = PLIANT_CREATED;
    return w;
}

void world_free(struct world *w)
{
    pliant_sched_destroy(&w->s);
    pliant_job_destroy(&w->job);
}

/* ---- stepping --------------------------------------------------------------------------- */

static void note(struct world *w, const struct pliant_action *act)
{
    cr_assert_lt(w->n_actions, WORLD_ACTIONS);
    w->actions[w->n_actions++] = *act;
    if (act->kind == PLIANT_ACT_STATE_CHANGED) {
        cr_assert_lt(w->n_states, WORLD_STATES);
        cr_assert_eq(act->flag[0], w->states[w->n_states - 1]);
        w->states[w->n_states++] = act->flag[1];
        w->changed = *act;
    } else if (act->kind == PLIANT_ACT_RESERVE) {
        w->plan = act->reserve.plan;
    } else if (act->kind == PLIANT_ACT_REGISTER) {
        w->registered = act->registered.id;
    } else if (act->kind == PLIANT_ACT_CHECKPOINT) {
        *(act->flag[1] ? &w->savepoint : &w->checkpoint) = act->checkpoint.id;
    }
}

/* What goes on is what came out of a snapshot, and that one gives the same snapshot. */
static void restore(struct world *w)
{
    struct pliant_sched *restored;
    struct pliant_error err = {0};
    void *bytes, *again;
    size_t n, n_again;

    if (w->cfg.alloc)
        return;
    cr_assert_eq(pliant_snapshot(w->s, &bytes, &n), 0);
    cr_assert_eq(pliant_restore(&w->cfg, w->job, bytes, n, &restored, &err), 0, "%s", err.text);
    cr_assert_eq(pliant_snapshot(restored, &again, &n_again), 0);
    cr_assert(n == n_again && memcmp(bytes, again, n) == 0, "a snapshot of a snapshot differs");
    pliant_bytes_free(NULL, bytes);
    pliant_bytes_free(NULL, again);
    pliant_sched_destroy(&w->s);
    w->s = restored;
}

static void step(struct world *w, const struct pliant_event *ev)
{
    struct pliant_actions acts;
    const char *broken;

    restore(w);
    cr_assert_eq(pliant_step(w->s, w->now_ms, ev, &acts), 0);
    for (size_t i = 0; i < acts.n; i++)
        note(w, &acts.v[i]);
    broken = pliant_check(w->s);
    cr_assert_null(broken, "after %s at %lld: %s", pliant_event_name(ev->kind),
                   (long long)w->now_ms, broken);
}

static void answer(struct world *w, struct pliant_action act)
{
    switch (act.kind) { /* a number: what is not answered need not be named */
    case PLIANT_ACT_RESERVE:
        if (w->reserves)
            step(w, &(struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED,
                                           .plan.plan = act.reserve.plan});
        return;
    case PLIANT_ACT_DEPLOY:
        if (w->runs)
            step(w,
                 &(struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING, .task = act.deploy.task});
        return;
    case PLIANT_ACT_CANCEL:
        if (w->cancels)
            step(w, &(struct pliant_event){.kind = PLIANT_EV_TASK_CANCELED, .task = act.task});
        return;
    case PLIANT_ACT_CHECKPOINT:
        if (w->checkpoints)
            step(w, &(struct pliant_event){.kind = act.flag[1] ? PLIANT_EV_SAVEPOINT_COMPLETED
                                                               : PLIANT_EV_CHECKPOINT_COMPLETED,
                                           .checkpoint = {.id = act.checkpoint.id, .path = "sp"}});
        return;
    default:
        return;
    }
}

/* The texts and lists that actions borrow are gone after the next step: tests look at them with the
 * answers switched off. */
void world_event(struct world *w, struct pliant_event ev)
{
    w->n_actions = 0;
    step(w, &ev);
    for (size_t i = 0; i < w->n_actions; i++)
        answer(w, w->actions[i]);
}

void world_to(struct world *w, int64_t at_ms)
{
    while (pliant_next_deadline(w->s) < at_ms) {
        w->now_ms = pliant_next_deadline(w->s);
        world_plain(w, PLIANT_EV_TICK);
    }
    w->now_ms = at_ms;
    world_plain(w, PLIANT_EV_TICK);
}

struct world world_running(struct world_spec spec, uint32_t slots)
{
    struct world w = world_new(spec);

    world_node(&w, "n1", slots);
    world_start(&w);
    while (pliant_state(w.s) != PLIANT_EXECUTING) {
        cr_assert_lt(pliant_next_deadline(w.s), PLIANT_NEVER);
        world_to(&w, pliant_next_deadline(w.s));
    }
    return w;
}

/* ---- events ----------------------------------------------------------------------------- */

void world_plain(struct world *w, enum pliant_event_kind kind)
{
    world_event(w, (struct pliant_event){.kind = kind});
}

void world_start(struct world *w)
{
    world_plain(w, PLIANT_EV_START);
}

void world_node(struct world *w, const char *name, uint32_t slots)
{
    static uint64_t incarnation;

    world_event(w, (struct pliant_event){
                       .kind = PLIANT_EV_NODE_UP,
                       .node_up = {.name = name, .incarnation = ++incarnation, .slots = slots}});
}

void world_lose(struct world *w, const char *name)
{
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST, .node.name = name});
}

void world_drain(struct world *w, const char *name, int64_t deadline_ms)
{
    world_event(w, (struct pliant_event){
                       .kind = PLIANT_EV_NODE_DRAINING,
                       .draining = {.name = name,
                                    .deadline_at_ms =
                                        deadline_ms <= 0 ? PLIANT_NEVER : w->now_ms + deadline_ms,
                                    .reason = PLIANT_DRAIN_PREEMPTION}});
}

void world_withdraw(struct world *w, const char *name)
{
    world_event(w,
                (struct pliant_event){.kind = PLIANT_EV_NODE_DRAIN_WITHDRAWN, .node.name = name});
}

void world_bounds(struct world *w, int64_t min, int64_t max)
{
    struct pliant_bounds bounds[64];
    uint32_t n = pliant_job_vertices(w->job);

    cr_assert_leq(n, 64);
    for (uint32_t v = 0; v < n; v++)
        bounds[v] = (struct pliant_bounds){
            pliant_job_vertex_name(w->job, (pliant_vertex_id){v + 1}), min, max};
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_REQUIREMENTS,
                                         .requirements = {.v = bounds, .n = n}});
}

static struct pliant_task current(const struct world *w, uint32_t vertex, uint32_t subtask)
{
    struct pliant_task_info info = {0};

    pliant_task_info(w->s, (pliant_vertex_id){vertex}, subtask, &info);
    return (struct pliant_task){{vertex}, subtask, info.attempt};
}

void world_task(struct world *w, enum pliant_event_kind kind, uint32_t vertex, uint32_t subtask)
{
    world_event(w, (struct pliant_event){.kind = kind, .task = current(w, vertex, subtask)});
}

void world_all_tasks(struct world *w, enum pliant_event_kind kind)
{
    for (uint32_t v = 1; v <= pliant_job_vertices(w->job); v++) {
        uint32_t n = pliant_parallelism(w->s, (pliant_vertex_id){v});

        for (uint32_t i = 0; i < n; i++)
            world_task(w, kind, v, i);
    }
}

void world_fail_task(struct world *w, uint32_t vertex, uint32_t subtask, bool recoverable)
{
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                         .failure = {.task = current(w, vertex, subtask),
                                                     .recoverable = recoverable,
                                                     .cause = "it broke"}});
}

void world_die(struct world *w, uint32_t rank, enum pliant_death death, const char *cause)
{
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                         .failure = {.task = current(w, 1, rank),
                                                     .recoverable = true,
                                                     .death = death,
                                                     .cause = cause}});
}

void world_report(struct world *w, uint32_t rank, uint64_t call, const char *path)
{
    world_event(w, (struct pliant_event){
                       .kind = PLIANT_EV_REPORT,
                       .report = {.task = current(w, 1, rank), .call = call, .path = path}});
}

void world_registered(struct world *w, bool ok)
{
    world_event(w, (struct pliant_event){
                       .kind = ok ? PLIANT_EV_CHECKPOINT_COMPLETED : PLIANT_EV_CHECKPOINT_FAILED,
                       .checkpoint = {.id = w->registered, .cause = "disk full"}});
}

void world_fail(struct world *w, bool recoverable)
{
    world_event(w, (struct pliant_event){
                       .kind = PLIANT_EV_GLOBAL_FAILURE,
                       .failure = {.recoverable = recoverable, .cause = "all of it broke"}});
}

void world_checkpoint(struct world *w)
{
    static uint64_t id = 1000;

    world_event(w,
                (struct pliant_event){
                    .kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                    .checkpoint = {.id = ++id, .own_accord = true, .triggered_at_ms = w->now_ms}});
}

void world_checkpoint_failed(struct world *w, bool counts)
{
    world_event(w, (struct pliant_event){
                       .kind = PLIANT_EV_CHECKPOINT_FAILED,
                       .checkpoint = {.own_accord = true, .counts = counts, .cause = "too slow"}});
}

void world_plan(struct world *w, enum pliant_event_kind kind, bool recoverable)
{
    world_event(w, (struct pliant_event){.kind = kind,
                                         .plan = {.plan = w->plan,
                                                  .recoverable = recoverable,
                                                  .cause = "no such checkpoint"}});
}

void world_taken(struct world *w, enum pliant_event_kind kind, bool counts)
{
    world_event(w, (struct pliant_event){
                       .kind = kind,
                       .checkpoint = {.id = w->checkpoint, .counts = counts, .cause = "too slow"}});
}

void world_stop(struct world *w)
{
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_STOP, .savepoint.dir = "savepoints"});
}

void world_savepoint(struct world *w, bool ok)
{
    world_event(w, (struct pliant_event){
                       .kind = ok ? PLIANT_EV_SAVEPOINT_COMPLETED : PLIANT_EV_SAVEPOINT_FAILED,
                       .checkpoint = {.id = w->savepoint, .path = "sp-1", .cause = "disk full"}});
}

/* ---- looking ---------------------------------------------------------------------------- */

const struct pliant_action *world_action(const struct world *w, enum pliant_action_kind kind,
                                         size_t n)
{
    for (size_t i = 0; i < w->n_actions; i++)
        if (w->actions[i].kind == kind && n-- == 0)
            return &w->actions[i];
    return NULL;
}

size_t world_count(const struct world *w, enum pliant_action_kind kind)
{
    size_t n = 0;

    while (world_action(w, kind, n))
        n++;
    return n;
}

const char *world_emitted(struct world *w)
{
    size_t len = 0;

    w->emitted[0] = '\0';
    for (size_t i = 0; i < w->n_actions; i++) {
        if (i > 0 && w->actions[i].kind == w->actions[i - 1].kind)
            continue;
        len += (size_t)snprintf(w->emitted + len, sizeof w->emitted - len, "%s%s", i ? " " : "",
                                pliant_action_name((enum pliant_action_kind)w->actions[i].kind));
        cr_assert_lt(len, sizeof w->emitted);
    }
    return w->emitted;
}

struct pliant_counts world_counts(const struct world *w)
{
    struct pliant_counts counts;

    pliant_counts(w->s, &counts);
    return counts;
}

bool world_went(const struct world *w, const char *states)
{
    char text[WORLD_STATES * 40] = "";

    for (size_t i = 0; i < w->n_states; i++) {
        strcat(text, i ? " > " : "");
        strcat(text, pliant_state_name(w->states[i]));
    }
    if (strcmp(text, states) != 0)
        fprintf(stderr, "it went %s\n", text);
    return strcmp(text, states) == 0;
}

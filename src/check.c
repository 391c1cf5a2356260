/* check.c - the invariants of a scheduler, as predicates
 *
 * Every counter is counted again, every slot's owner looked up, every timer's state asked for.
 * For tests and the simulator: time in proportion to the state. */
#include <string.h>

#include "states/sched.h"

#define BREAKS(condition, text)                                                                    \
    do {                                                                                           \
        if (condition)                                                                             \
            return (text);                                                                         \
    } while (0)

/* ---- the pool --------------------------------------------------------------------------- */

struct pool_counts {
    uint32_t held, offered, used, used_leaving, reclaimed, free_blocked;
};

static const char *check_node(const struct pool *p, const struct pool_node *node,
                              struct pool_counts *all)
{
    uint32_t held = 0, used = 0, rows = 0, reclaimed = 0;

    BREAKS(pool_find(p, node->name) != node, "a node is not found by its name");
    BREAKS(node->draining && node->drain_end_at_ms == PLIANT_NEVER, "a drain without an end");
    for (uint32_t row = node->first_slot; row != POOL_NONE; row = p->slots.v[row].next) {
        const struct pool_slot *slot = &p->slots.v[row];

        BREAKS(slot->node != node->row, "a slot is in the list of another node");
        BREAKS(slot->leaving != (node->draining || slot->reclaimed),
               "a slot does not follow its node's drain");
        BREAKS(slot->blocked != (node->blocked_until_ms != PLIANT_NEVER),
               "a slot does not follow its node's block");
        BREAKS(slot->reclaimed && slot->live == 0, "a slot that is free was not given back");
        reclaimed += slot->reclaimed;
        BREAKS(slot->live > 0 && !slot->held, "a task is in a slot that was given back");
        BREAKS(++rows > node->n_rows, "a node has more slots than it counts");
        held += slot->held;
        used += slot->live > 0;
        all->offered += slot->held && !slot->leaving;
        all->used_leaving += slot->live > 0 && slot->leaving;
        all->free_blocked += pool_slot_free(slot) && slot->blocked;
    }
    all->held += held;
    all->used += used;
    all->reclaimed += reclaimed;
    BREAKS(reclaimed != node->n_reclaimed ||
               (reclaimed > 0) != (node->reclaim_end_at_ms != PLIANT_NEVER),
           "a node miscounts what others shall have");
    BREAKS(rows != node->n_rows || held != node->n_slots || used != node->n_used,
           "a node miscounts its slots");
    return NULL;
}

static const char *check_pool(const struct pool *p)
{
    struct pool_counts all = {0};
    uint32_t nodes = 0, draining = 0, blocked = 0;

    for (const struct pool_node *dead = p->dead; dead; dead = dead->next_dead)
        nodes--;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const struct pool_node *node = p->nodes.v[i];
        bool dead = false;

        if (!node)
            continue;
        nodes++;
        for (const struct pool_node *d = p->dead; d && !dead; d = d->next_dead)
            dead = d == node;
        if (!dead) {
            const char *broken = check_node(p, node, &all);

            BREAKS(broken, broken);
            draining += node->draining;
            blocked += node->blocked_until_ms != PLIANT_NEVER;
        }
    }
    BREAKS(nodes != p->n_nodes || draining != p->n_draining || blocked != p->n_blocked,
           "nodes are miscounted");
    BREAKS(all.held != p->n_held || all.offered != p->n_offered || all.used != p->n_used ||
               all.used_leaving != p->n_used_leaving || all.reclaimed != p->n_reclaimed ||
               all.free_blocked != p->n_free_blocked,
           "slots are miscounted");
    return NULL;
}

/* ---- the graph -------------------------------------------------------------------------- */

struct graph_counts {
    uint32_t tasks, live, created, running, finished, end_of_data, rivals;
    uint64_t effective;
};

static const char *check_attempt(const struct pliant_sched *s, uint32_t v, uint32_t i,
                                 const struct task *attempt, struct graph_counts *all)
{
    const struct pool_slot *slot;

    BREAKS(attempt->attempt == 0, "a task without an attempt");
    if (!task_live(attempt))
        return NULL;
    all->live++;
    if (!task_seated(attempt)) {
        all->created++;
        return NULL;
    }
    BREAKS(attempt->slot >= s->pool.slots.n, "a task is nowhere");
    slot = &s->pool.slots.v[attempt->slot];
    BREAKS(slot->node == POOL_NONE || !slot->held, "a live task is on a node that is gone");
    BREAKS(slot->live == 0, "a slot does not know its task");
    BREAKS(slot->group != s->job->group_of[v] || slot->subtask != i, "a slot with two owners");
    return NULL;
}

static const char *check_task(const struct pliant_sched *s, uint32_t v, uint32_t i,
                              struct graph_counts *all)
{
    const struct task *task = &s->graph.vertices[v].tasks[i];

    all->tasks++;
    all->running += task->state == PLIANT_TASK_RUNNING;
    all->finished += task->state == PLIANT_TASK_FINISHED;
    all->effective += task->state == PLIANT_TASK_FINISHED && task->speculative;
    all->end_of_data += task->end_of_data;
    for (const struct task *a = task; a; a = execution_next(&s->graph, a)) {
        const char *broken = check_attempt(s, v, i, a, all);

        BREAKS(broken, broken);
        all->rivals += a->rival;
    }
    return speculation_check_task(s, v, i);
}

/* The live tasks of the unit that a slot holds are exactly the ones it counts. */
static const char *check_slot(const struct pliant_sched *s, uint32_t row)
{
    const struct pool_slot *slot = &s->pool.slots.v[row];
    const struct pliant_job *job = s->job;
    uint32_t live = 0;

    if (slot->live == 0)
        return NULL;
    BREAKS(slot->group >= job->n_groups, "a slot of a group that does not exist");
    for (uint32_t m = job->group_first[slot->group]; m < job->group_first[slot->group + 1]; m++) {
        uint32_t v = job->group_members[m];
        const struct task *a = slot->subtask < s->graph.parallelism[v]
                                   ? &s->graph.vertices[v].tasks[slot->subtask]
                                   : NULL;

        for (; a; a = execution_next(&s->graph, a))
            live += task_seated(a) && a->slot == row;
    }
    BREAKS(live != slot->live, "slots and tasks disagree on what lives");
    return NULL;
}

static const char *check_graph(const struct pliant_sched *s)
{
    const struct execution *g = &s->graph;
    struct graph_counts all = {0};

    BREAKS(g->exists != sched_ops(s)->has_graph,
           "a graph where the state has none, or none where it has one");
    for (uint32_t v = 0; v < s->job->n_vertices; v++) {
        BREAKS(g->parallelism[v] > s->max_parallelism[v], "more subtasks than key groups");
        BREAKS(g->exists && g->parallelism[v] == 0 && !s->way->decides,
               "a vertex without subtasks");
        for (uint32_t i = 0; i < g->parallelism[v]; i++) {
            const char *broken = check_task(s, v, i, &all);

            BREAKS(broken, broken);
        }
    }
    BREAKS(all.tasks != g->n_tasks || (g->exists && all.live != g->n_live) ||
               all.created != g->n_created || all.running != g->n_running ||
               all.finished != g->n_finished || all.end_of_data != g->n_end_of_data ||
               all.rivals != g->rivals.n || (g->exists && all.effective != g->n_effective),
           "tasks are miscounted");
    for (uint32_t row = 0; row < s->pool.slots.n; row++) {
        const char *broken = check_slot(s, row);

        BREAKS(broken, broken);
    }
    return NULL;
}

/* ---- wishes and states ------------------------------------------------------------------ */

static const char *check_bounds(const struct pliant_sched *s)
{
    uint64_t minimal = 0, desired = 0;

    for (uint32_t v = 0; v < s->bounds.n_vertices; v++) {
        const struct vertex_bounds *b = &s->bounds.vertices[v];

        BREAKS(b->min < 1 || b->min > b->want || b->want > s->max_parallelism[v],
               "bounds out of order");
    }
    for (uint32_t g = 0; g < s->bounds.n_groups; g++) {
        minimal += s->bounds.groups[g].lo;
        desired += s->bounds.groups[g].hi;
    }
    BREAKS(minimal != s->bounds.minimal || desired != s->bounds.desired, "bounds are missummed");
    BREAKS(
        s->has_declared &&
            (s->declared_slots != desired_slots(s) || s->declared_minimum != minimal_slots(s)) &&
            (s->way->rescales ? s->state.id != PLIANT_FINISHED : s->state.id == PLIANT_EXECUTING),
        "what is declared is not what is wanted [S-WFR-1]");
    return NULL;
}

static const char *check_manager(const struct manager *m)
{
    bool timed = m->phase == MANAGER_COOLDOWN || m->phase == MANAGER_STABILIZING;

    BREAKS(!timed && deadline_armed(&m->phase_end), "a phase has a timer of another one");
    BREAKS(m->phase != MANAGER_STABILIZING && m->phase != MANAGER_STABILIZED &&
               deadline_armed(&m->evaluation),
           "an evaluation outside of stabilization");
    BREAKS(m->phase == MANAGER_TRANSITIONING, "a manager that went on, in a state that did not");
    return NULL;
}

static const char *check_executing(const struct pliant_sched *s)
{
    const struct executing *e = &s->state.executing;
    const struct drain *d = &e->drain;

    BREAKS(d->pending && s->pool.n_used_leaving == 0, "a drain that concerns no task");
    BREAKS(!d->pending && s->pool.n_used_leaving > 0, "a used node drains and nobody cares");
    BREAKS(d->pending && !deadline_armed(&d->move) && !deadline_armed(&d->limit) &&
               s->way->rescales,
           "a drain that nothing ends");
    BREAKS(!d->pending && (deadline_armed(&d->move) || deadline_armed(&d->limit)),
           "a drain's timer without a drain");
    BREAKS(e->countdown == 0 || e->countdown > s->cfg.max_checkpoint_failures,
           "a countdown out of bounds");
    BREAKS(s->graph.n_live == 0 && !regional_pending(&s->regional),
           "nothing lives and the job goes on");
    BREAKS(regional_check(s), regional_check(s));
    BREAKS(scheduling_check(s), scheduling_check(s));
    BREAKS(speculation_check(s), speculation_check(s));
    BREAKS(s->failures.present.items.n > 0 && !e->collateral.held &&
               !regional_pending(&s->regional),
           "a failure that nobody decided on");
    BREAKS(e->collateral.held != deadline_armed(&e->collateral.end),
           "a failure is held back without an end, or an end holds nothing");
    BREAKS(e->collateral.held && !s->job->worker_group, "a failure is held back in a graph");
    return check_manager(&e->manager);
}

static const char *check_winding(const struct pliant_sched *s, const struct winding *w)
{
    BREAKS((s->graph.n_live == 0) != deadline_armed(&w->down),
           "tasks are down and it does not go on, or the opposite");
    BREAKS(s->graph.n_live > 0 && s->cfg.cancellation_timeout_ms > 0 &&
               !deadline_armed(&w->give_up),
           "a cancel without a bound [S-FLG-4]");
    for (uint32_t v = 0; v < s->job->n_vertices; v++)
        for (uint32_t i = 0; i < s->graph.parallelism[v]; i++) {
            for (const struct task *a = &s->graph.vertices[v].tasks[i]; a;
                 a = execution_next(&s->graph, a))
                BREAKS(task_live(a) && a->state != PLIANT_TASK_CANCELING,
                       "a task that nobody told to stop");
        }
    return NULL;
}

static const char *check_launch(const struct pliant_sched *s)
{
    const struct launch *l = &s->state.creating.launch;

    BREAKS(l->phase != LAUNCH_NONE && !s->job->worker_group, "a graph is launched as a group");
    BREAKS((l->phase == LAUNCH_STARTING) != deadline_armed(&l->timeout),
           "a launch without an end [W-GRP-2]");
    BREAKS(l->phase == LAUNCH_STARTING && s->graph.n_live == 0, "a launch of nothing");
    BREAKS(l->phase == LAUNCH_STARTING && s->failures.present.items.n > 0,
           "a launch goes on after a failure [W-GRP-1]");
    return l->phase == LAUNCH_GIVEN_UP ? check_winding(s, &l->winding) : NULL;
}

/* The ranks of a group are of one launch, and what they reported is theirs. */
static const char *check_group(const struct pliant_sched *s)
{
    const struct vertex_tasks *ranks = &s->graph.vertices[0];
    uint32_t ready = 0;

    BREAKS((s->registration.id != 0) != deadline_armed(&s->registration.expiry),
           "a registration without an end");
    for (size_t i = 0; i < s->reports.ranks.n; i++)
        ready += s->reports.ranks.v[i].waiting.n > 0;
    BREAKS(ready != s->reports.n_ready, "reports are miscounted");
    if (!s->job->worker_group) {
        BREAKS(s->reports.ranks.n > 0 || s->group.attempt > 0, "a graph that reports as a group");
        return NULL;
    }
    for (uint32_t i = 1; i < s->graph.parallelism[0]; i++)
        BREAKS(ranks->tasks[i].attempt != ranks->tasks[0].attempt,
               "ranks of different launches are mixed");
    BREAKS(s->graph.n_tasks > 0 && s->reports.n_ready == s->graph.n_tasks &&
               s->registration.id == 0,
           "all ranks have reported and nobody looks");
    return NULL;
}

static const char *check_state(const struct pliant_sched *s)
{
    switch ((enum pliant_state)s->state.id) {
    case PLIANT_EXECUTING:
        return check_executing(s);
    case PLIANT_WAITING_FOR_RESOURCES:
        BREAKS(s->pool.n_used > 0, "a slot is in use while the job waits");
        return check_manager(&s->state.waiting.manager);
    case PLIANT_RESTARTING:
        return check_winding(s, &s->state.restarting.winding);
    case PLIANT_FAILING:
        return check_winding(s, &s->state.failing.winding);
    case PLIANT_CANCELING:
        return check_winding(s, &s->state.canceling.winding);
    case PLIANT_FINISHED:
        BREAKS(s->timeline.open, "a rescale is open after the end");
        BREAKS(s->pool.n_used > 0, "a task lives after the end");
        BREAKS(s->state.finished.status != PLIANT_JOB_SUSPENDED && s->pool.n_held > 0,
               "slots are held after the end [S-FIN-2]");
        return NULL;
    case PLIANT_STOP_WITH_SAVEPOINT:
        BREAKS(!s->state.stopping.savepoint_done &&
                   !s->state.stopping.checkpointing.savepoint.exists,
               "stopping, and no savepoint is under way");
        return NULL;
    case PLIANT_CREATING_EXECUTION_GRAPH:
        return check_launch(s);
    case PLIANT_CREATED:
    case PLIANT_RETRYING_EXECUTION_GRAPH_CREATION:
    case PLIANT_STATES:
        return NULL;
    }
    return "a state that does not exist";
}

static const char *check_labels(const struct failures *f, const struct failure_entry *entry)
{
    for (size_t i = 0; i < entry->items.n; i++) {
        const struct pliant_failure_item *item = &entry->items.v[i];
        struct pliant_label want[LABEL_KEYS_MAX];

        BREAKS(failures_labels_of(f, item, want) != item->n_labels ||
                   (item->n_labels > 0 &&
                    memcmp(want, item->labels, item->n_labels * sizeof *want) != 0),
               "a failure has other labels than the rules say [P-FO-5]");
    }
    return NULL;
}

static const char *check_failures(const struct pliant_sched *s)
{
    const struct failures *f = &s->failures;
    const char *broken = check_labels(f, &f->present);

    for (uint32_t i = 0; f->rules && !broken && i < f->n; i++)
        broken = check_labels(f, f->ring[(f->first + i) % f->size]);
    return broken;
}

/* Nothing that is due may be left behind by a step. */
static const char *check_time(const struct pliant_sched *s)
{
    BREAKS(machine_next_deadline(s) <= s->clock.now_ms, "a timer is due and did not run");
    BREAKS(s->state.id != PLIANT_CREATED && s->state.id != PLIANT_FINISHED &&
               !deadline_armed(&s->idle_check),
           "the idle check has stopped [S-IDL-1]");
    return NULL;
}

const char *pliant_check(const struct pliant_sched *s)
{
    static const char *(*const CHECKS[])(const struct pliant_sched *) = {
        check_graph, check_group, check_bounds, check_state, check_failures, check_time};
    const char *broken = check_pool(&s->pool);

    for (size_t i = 0; !broken && i < sizeof CHECKS / sizeof CHECKS[0]; i++)
        broken = CHECKS[i](s);
    return broken;
}

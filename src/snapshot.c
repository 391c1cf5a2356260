/* snapshot.c - the whole state of a scheduler as bytes, and back
 *
 * A snapshot bounds the journal: a scheduler restored from it gives the same actions as the one
 * that wrote it. What a step leaves only until the next one (actions, texts, the names of nodes
 * that went) is not part of it.
 *
 * Reading trusts nothing: sums, counts and enums are checked on the way, rows and lists after it,
 * and pliant_check() has the last word. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "states/codec.h"
#include "states/regional_codec.h"
#include "states/sched.h"

#define MAGIC UINT64_C(0x544e41494c503031) /* also tells the order of bytes */
#define VERSION 13u

/* Bounds of counts that no honest snapshot exceeds. */
#define EACH 1u

/* ---- small values ----------------------------------------------------------------------- */

static void why_codec(struct codec *c, struct why *w)
{
    CODEC_ENUM(c, w->reason, PLIANT_REASONS);
    CODEC(c, w->node.v);
    CODEC(c, w->since_at_ms);
    CODEC(c, w->detail);
}

static void manager_codec(struct codec *c, struct manager *m)
{
    CODEC_ENUM(c, m->phase, MANAGER_TRANSITIONING + 1);
    CODEC(c, m->timing.cooldown_ms);
    CODEC(c, m->timing.stabilization_ms);
    CODEC(c, m->timing.max_trigger_delay_ms);
    CODEC(c, m->first_change_at_ms);
    codec_bool(c, &m->wants_checkpoint);
    codec_deadline(c, &m->phase_end);
    codec_deadline(c, &m->evaluation);
}

static void pending_codec(struct codec *c, struct pending_checkpoint *p)
{
    codec_bool(c, &p->exists);
    CODEC(c, p->id);
    CODEC(c, p->triggered_at_ms);
    codec_bool(c, &p->cancel_after);
    codec_deadline(c, &p->expiry);
}

static void checkpointing_codec(struct codec *c, struct checkpointing *k)
{
    codec_bool(c, &k->stopped);
    codec_bool(c, &k->overdue);
    codec_bool(c, &k->end_of_data);
    CODEC(c, k->failed_in_row);
    CODEC(c, k->ended_at_ms);
    codec_deadline(c, &k->trigger);
    codec_deadline(c, &k->retry);
    pending_codec(c, &k->checkpoint);
    pending_codec(c, &k->savepoint);
}

static void winding_codec(struct codec *c, struct winding *w)
{
    CODEC(c, w->delay_ms);
    codec_deadline(c, &w->down);
    codec_deadline(c, &w->give_up);
    codec_bool(c, &w->archived);
}

static void drain_codec(struct codec *c, struct drain *d)
{
    codec_bool(c, &d->pending);
    codec_bool(c, &d->wants_checkpoint);
    codec_bool(c, &d->covered);
    codec_bool(c, &d->last_checkpoint);
    CODEC(c, d->notice_at_ms);
    CODEC(c, d->end_at_ms);
    codec_deadline(c, &d->move);
    codec_deadline(c, &d->limit);
}

/* ---- the state -------------------------------------------------------------------------- */

static void waiting_codec(struct codec *c, struct waiting *w)
{
    manager_codec(c, &w->manager);
    codec_deadline(c, &w->timeout);
    codec_deadline(c, &w->check);
    codec_bool(c, &w->has_target);
    CODEC(c, w->hold_ms);
    codec_expect(c, w->hold_ms >= 0);
}

static void class_codec(struct codec *c, struct failure_class *class)
{
    codec_bool(c, &class->recoverable);
    codec_bool(c, &class->drain);
    codec_bool(c, &class->moved);
    codec_bool(c, &class->preempted);
    codec_bool(c, &class->doomed);
    codec_bool(c, &class->launch);
}

static void collateral_codec(struct codec *c, struct collateral *k)
{
    codec_bool(c, &k->held);
    codec_deadline(c, &k->end);
    class_codec(c, &k->failure);
    why_codec(c, &k->why);
}

static void creating_codec(struct codec *c, struct creating *k)
{
    CODEC(c, k->plan);
    codec_deadline(c, &k->failed);
    CODEC_ENUM(c, k->launch.phase, LAUNCH_GIVEN_UP + 1);
    codec_deadline(c, &k->launch.timeout);
    winding_codec(c, &k->launch.winding);
    CODEC_ENUM(c, k->launch.then, LAUNCH_CANCELED + 1);
    CODEC(c, k->launch.backoff_ms);
    codec_expect(c, k->launch.backoff_ms >= 0);
    why_codec(c, &k->launch.why);
}

static void executing_codec(struct codec *c, struct executing *e)
{
    manager_codec(c, &e->manager);
    codec_deadline(c, &e->check);
    codec_deadline(c, &e->again);
    CODEC(c, e->countdown);
    CODEC(c, e->trigger_checkpoint);
    codec_bool(c, &e->wants_checkpoint);
    CODEC(c, e->running_since_ms);
    CODEC(c, e->first_report_at_ms);
    codec_bool(c, &e->start_measured);
    CODEC(c, e->changed_at_ms);
    CODEC(c, e->idle_slots);
    CODEC(c, e->missed);
    judged_codec(c, &e->judged);
    checkpointing_codec(c, &e->checkpointing);
    drain_codec(c, &e->drain);
    collateral_codec(c, &e->collateral);
}

static void stopping_codec(struct codec *c, struct stopping *st)
{
    checkpointing_codec(c, &st->checkpointing);
    codec_bool(c, &st->savepoint_done);
    codec_bool(c, &st->answered);
    CODEC_ENUM(c, st->decided, STOPPING_FINISHED + 1);
    class_codec(c, &st->failure);
    why_codec(c, &st->why);
}

static void state_codec(struct codec *c, struct state *state)
{
    codec_byte(c, &state->id, PLIANT_STATES);
    why_codec(c, &state->why);
    switch ((enum pliant_state)state->id) {
    case PLIANT_WAITING_FOR_RESOURCES:
        waiting_codec(c, &state->waiting);
        return;
    case PLIANT_CREATING_EXECUTION_GRAPH:
        creating_codec(c, &state->creating);
        return;
    case PLIANT_RETRYING_EXECUTION_GRAPH_CREATION:
        CODEC(c, state->retrying.backoff_ms);
        codec_deadline(c, &state->retrying.backoff);
        return;
    case PLIANT_EXECUTING:
        executing_codec(c, &state->executing);
        return;
    case PLIANT_RESTARTING:
        winding_codec(c, &state->restarting.winding);
        codec_bool(c, &state->restarting.has_target);
        return;
    case PLIANT_FAILING:
        winding_codec(c, &state->failing.winding);
        return;
    case PLIANT_CANCELING:
        winding_codec(c, &state->canceling.winding);
        return;
    case PLIANT_STOP_WITH_SAVEPOINT:
        stopping_codec(c, &state->stopping);
        return;
    case PLIANT_FINISHED:
        CODEC_ENUM(c, state->finished.status, PLIANT_JOB_SUSPENDED + 1);
        return;
    case PLIANT_CREATED:
    case PLIANT_STATES:
        return;
    }
}

/* ---- the pool --------------------------------------------------------------------------- */

static void labels_codec(struct codec *c, struct pool_node *node)
{
    codec_count(c, &node->n_labels, 2 * sizeof(uint32_t));
    if (c->reading && node->n_labels > 0) {
        node->labels = mem_zero(c->alloc, node->n_labels, sizeof *node->labels);
        if (!node->labels) {
            node->n_labels = 0;
            codec_no_memory(c);
        }
    }
    for (size_t i = 0; i < node->n_labels; i++) {
        char *key = (char *)(uintptr_t)node->labels[i].key;
        char *value = (char *)(uintptr_t)node->labels[i].value;

        codec_text(c, &key, PLIANT_NAME_MAX);
        codec_text(c, &value, PLIANT_NAME_MAX);
        codec_expect(c, key && value);
        node->labels[i] = (struct pliant_label){key, value};
    }
}

static void node_codec(struct codec *c, struct pool_node *node)
{
    codec_text(c, &node->name, PLIANT_NAME_MAX);
    codec_expect(c, node->name != NULL);
    codec_text(c, &node->zone, PLIANT_NAME_MAX);
    codec_text(c, &node->domain, PLIANT_NAME_MAX);
    labels_codec(c, node);
    CODEC(c, node->incarnation);
    CODEC(c, node->first_slot);
    CODEC(c, node->last_slot);
    CODEC(c, node->n_slots);
    CODEC(c, node->n_rows);
    CODEC(c, node->n_used);
    codec_bool(c, &node->draining);
    CODEC_ENUM(c, node->drain_reason, PLIANT_DRAIN_IDLE + 1);
    CODEC(c, node->drain_notice_at_ms);
    CODEC(c, node->drain_end_at_ms);
    CODEC(c, node->n_reclaimed);
    CODEC(c, node->reclaim_end_at_ms);
    CODEC(c, node->blocked_until_ms);
    CODEC(c, node->joined_at_ms);
    CODEC(c, node->arrival);
    CODEC(c, node->seat);
}

static bool is_dead(const struct pool *p, const struct pool_node *node)
{
    for (const struct pool_node *dead = p->dead; dead; dead = dead->next_dead)
        if (dead == node)
            return true;
    return false;
}

static void nodes_codec(struct codec *c, struct pool *p)
{
    size_t n = p->nodes.n;

    codec_count(c, &n, EACH);
    if (c->reading && n > 0 &&
        (!vec_reserve(c->alloc, &p->nodes, n) || !vec_reserve(c->alloc, &p->unused_nodes, n)))
        codec_no_memory(c);
    for (size_t row = 0; codec_fine(c) && row < n; row++) {
        struct pool_node *node = c->reading ? NULL : p->nodes.v[row];
        bool lives = node && !is_dead(p, node);

        codec_bool(c, &lives);
        if (c->reading) {
            if (lives && !(node = mem_zero(c->alloc, 1, sizeof *node)))
                codec_no_memory(c);
            p->nodes.v[p->nodes.n++] = node;
        }
        if (!lives || !node)
            continue;
        node->row = (uint32_t)row;
        node_codec(c, node);
    }
}

/* The rows of nodes that just went are free from the next step on. */
static void unused_nodes_codec(struct codec *c, struct pool *p)
{
    size_t n = p->unused_nodes.n;
    const struct pool_node *dead = p->dead;

    for (; dead; dead = dead->next_dead)
        n++;
    dead = p->dead;
    codec_count(c, &n, sizeof(uint32_t));
    codec_expect(c, n <= p->nodes.n);
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        uint32_t row = c->reading ? 0 : i < p->unused_nodes.n ? p->unused_nodes.v[i] : dead->row;

        if (!c->reading && i >= p->unused_nodes.n)
            dead = dead->next_dead;
        CODEC(c, row);
        codec_expect(c, row < p->nodes.n && !p->nodes.v[row]);
        if (c->reading && codec_fine(c))
            p->unused_nodes.v[p->unused_nodes.n++] = row;
    }
}

static void slot_codec(struct codec *c, struct pool_slot *slot)
{
    CODEC(c, slot->node);
    CODEC(c, slot->next);
    CODEC(c, slot->index);
    CODEC(c, slot->live);
    CODEC(c, slot->group);
    CODEC(c, slot->subtask);
    codec_bool(c, &slot->held);
    codec_bool(c, &slot->leaving);
    codec_bool(c, &slot->reclaimed);
    codec_bool(c, &slot->blocked);
    CODEC(c, slot->idle_before);
    CODEC(c, slot->idle_after);
    CODEC(c, slot->born);
    CODEC(c, slot->idle_since_ms);
}

/* The table as it will be from the next step on, when the nodes that just went are buried. */
static struct pool_slot *slots_to_write(struct codec *c, const struct pool *p, uint32_t *unused)
{
    struct pool_slot *slots;

    if (!p->dead)
        return p->slots.v;
    slots = mem_resize(c->alloc, NULL, p->slots.n + 1, sizeof *slots);
    if (!slots) {
        codec_no_memory(c);
        return p->slots.v;
    }
    if (p->slots.n > 0)
        memcpy(slots, p->slots.v, p->slots.n * sizeof *slots);
    for (const struct pool_node *dead = p->dead; dead; dead = dead->next_dead)
        pool_bury_slots(slots, unused, dead);
    return slots;
}

static void slots_codec(struct codec *c, struct pool *p)
{
    size_t n = p->slots.n;
    uint32_t unused = p->unused_slot;
    struct pool_slot *slots;

    codec_count(c, &n, 8 * sizeof(uint32_t));
    if (c->reading && n > 0 && !vec_reserve(c->alloc, &p->slots, n))
        codec_no_memory(c);
    if (c->reading && codec_fine(c)) {
        p->slots.n = n;
        if (n > 0)
            memset(p->slots.v, 0, n * sizeof *p->slots.v);
    }
    slots = c->reading ? p->slots.v : slots_to_write(c, p, &unused);
    for (size_t row = 0; codec_fine(c) && row < n; row++)
        slot_codec(c, &slots[row]);
    if (slots != p->slots.v)
        mem_free(c->alloc, slots);
    CODEC(c, unused);
    p->unused_slot = c->reading ? unused : p->unused_slot;
    CODEC(c, p->idle_first);
    CODEC(c, p->idle_last);
}

/* A list of rows that stays within the table and ends. */
static bool list_fine(const struct pool *p, uint32_t first, uint32_t owner, size_t expected)
{
    size_t n = 0;

    for (uint32_t row = first; row != POOL_NONE; row = p->slots.v[row].next)
        if (row >= p->slots.n || p->slots.v[row].node != owner || ++n > expected)
            return false;
    return n == expected;
}

/* The list of open slots holds each of them once, in both directions, oldest first. */
static bool idle_fine(const struct pool *p)
{
    uint32_t before = POOL_NONE;
    size_t n = 0, open = 0;

    for (size_t row = 0; row < p->slots.n; row++)
        open += pool_slot_open(&p->slots.v[row]);
    for (uint32_t row = p->idle_first; row != POOL_NONE; row = p->slots.v[row].idle_after) {
        if (row >= p->slots.n || ++n > open || !pool_slot_open(&p->slots.v[row]) ||
            p->slots.v[row].idle_before != before ||
            (before != POOL_NONE &&
             p->slots.v[before].idle_since_ms > p->slots.v[row].idle_since_ms))
            return false;
        before = row;
    }
    return n == open && p->idle_last == before;
}

static void pool_expect(struct codec *c, const struct pool *p)
{
    size_t unused = 0, rows = 0;

    for (size_t row = 0; row < p->slots.n; row++)
        unused += p->slots.v[row].node == POOL_NONE;
    codec_expect(c, list_fine(p, p->unused_slot, POOL_NONE, unused));
    for (size_t i = 0; codec_fine(c) && i < p->nodes.n; i++) {
        const struct pool_node *node = p->nodes.v[i];

        if (!node)
            continue;
        rows += node->n_rows;
        codec_expect(c, list_fine(p, node->first_slot, node->row, node->n_rows));
        codec_expect(c, (node->last_slot == POOL_NONE) == (node->n_rows == 0) &&
                            (node->n_rows == 0 || (node->last_slot < p->slots.n &&
                                                   p->slots.v[node->last_slot].next == POOL_NONE &&
                                                   p->slots.v[node->last_slot].node == node->row)));
    }
    codec_expect(c, idle_fine(p));
    codec_expect(c, rows + unused == p->slots.n);
    codec_expect(c, !codec_fine(c) || p->unused_nodes.n + p->n_nodes == p->nodes.n);
}

static void pool_codec(struct codec *c, struct pool *p)
{
    nodes_codec(c, p);
    unused_nodes_codec(c, p);
    slots_codec(c, p);
    CODEC(c, p->births);
    CODEC(c, p->n_nodes);
    CODEC(c, p->n_draining);
    CODEC(c, p->n_held);
    CODEC(c, p->n_offered);
    CODEC(c, p->n_used);
    CODEC(c, p->n_used_leaving);
    CODEC(c, p->n_reclaimed);
    CODEC(c, p->n_blocked);
    CODEC(c, p->n_free_blocked);
    if (!c->reading || !codec_fine(c))
        return;
    pool_expect(c, p);
    codec_expect(c, p->n_reclaimed <= p->slots.n);
    if (codec_fine(c) &&
        (pool_index(p) < 0 ||
         (p->n_reclaimed > 0 && !vec_reserve(p->alloc, &p->returning, p->n_reclaimed))))
        codec_no_memory(c);
}

/* ---- the graph, the plan, the run before ------------------------------------------------ */

static void time_codec(struct codec *c, int64_t *time_ms)
{
    CODEC(c, *time_ms);
    codec_expect(c, *time_ms >= 0 || *time_ms == PLIANT_UNSET);
}

static void task_codec(struct codec *c, struct task *task)
{
    CODEC(c, task->attempt);
    CODEC(c, task->slot);
    codec_byte(c, &task->state, PLIANT_TASK_FAILED + 1);
    codec_bool(c, &task->end_of_data);
    codec_bool(c, &task->speculative);
}

static void tasks_codec(struct codec *c, struct vertex_tasks *vertex, bool timed)
{
    size_t n = vertex->cap;

    codec_count(c, &n, sizeof(uint32_t));
    codec_expect(c, n <= PLIANT_MAX_PARALLELISM);
    if (c->reading && codec_fine(c) && n > 0) {
        vertex->tasks = mem_zero(c->alloc, n, sizeof *vertex->tasks);
        vertex->times = timed ? mem_zero(c->alloc, n, sizeof *vertex->times) : NULL;
        vertex->cap = vertex->tasks ? (uint32_t)n : 0;
        if (!vertex->tasks || (timed && !vertex->times))
            codec_no_memory(c);
    }
    for (size_t i = 0; codec_fine(c) && i < vertex->cap; i++) {
        task_codec(c, &vertex->tasks[i]);
        CODEC(c, vertex->tasks[i].last);
        if (timed)
            time_codec(c, &vertex->times[i]);
    }
}

/* They are written in the order of their rows, which are the same again when they are read. */
static void rivals_codec(struct codec *c, struct execution *g)
{
    size_t n = g->rivals.n;

    codec_count(c, &n, 4 * sizeof(uint32_t));
    codec_expect(c, n == 0 || g->timed);
    for (size_t row = 0; codec_fine(c) && row < n; row++) {
        struct rival rival = c->reading ? (struct rival){0} : g->rivals.v[row];

        task_codec(c, &rival.task);
        CODEC(c, rival.v);
        CODEC(c, rival.subtask);
        time_codec(c, &rival.time_ms);
        CODEC(c, rival.give_up_at_ms);
        codec_expect(c, g->exists && rival.v < g->job->n_vertices &&
                            rival.subtask < g->parallelism[rival.v]);
        if (c->reading && codec_fine(c) && execution_read_rival(g, &rival) < 0)
            codec_no_memory(c);
    }
}

static void graph_codec(struct codec *c, struct execution *g)
{
    codec_bool(c, &g->exists);
    codec_array(c, g->parallelism, g->job->n_vertices);
    for (uint32_t v = 0; codec_fine(c) && v < g->job->n_vertices; v++) {
        tasks_codec(c, &g->vertices[v], g->timed);
        codec_expect(c, g->parallelism[v] <= g->vertices[v].cap);
    }
    CODEC(c, g->n_units);
    CODEC(c, g->n_tasks);
    CODEC(c, g->n_live);
    CODEC(c, g->n_created);
    CODEC(c, g->n_running);
    CODEC(c, g->n_finished);
    CODEC(c, g->n_end_of_data);
    CODEC(c, g->n_effective);
    rivals_codec(c, g);
}

static void plan_codec(struct codec *c, struct pliant_sched *s)
{
    struct plan *plan = &s->plan;
    size_t n = plan->unit_slots.n;

    CODEC(c, plan->serial);
    CODEC(c, plan->births);
    codec_array(c, plan->parallelism, s->job->n_vertices);
    codec_array(c, plan->group_slots, s->job->n_groups);
    codec_count(c, &n, sizeof(uint32_t));
    if (c->reading && n > 0 && !vec_reserve(c->alloc, &plan->unit_slots, n))
        codec_no_memory(c);
    if (!codec_fine(c))
        return;
    plan->unit_slots.n = n;
    for (size_t i = 0; i < n; i++) {
        CODEC(c, plan->unit_slots.v[i]);
        codec_expect(c, plan->unit_slots.v[i] >= 1 && plan->unit_slots.v[i] <= s->pool.slots.n);
    }
}

/* What a plan promises to the graph that it becomes. */
static void plan_expect(struct codec *c, const struct pliant_sched *s)
{
    uint64_t units = 0;

    if (s->state.id != PLIANT_CREATING_EXECUTION_GRAPH || s->plan.unit_slots.n == 0)
        return;
    for (uint32_t g = 0; g < s->job->n_groups; g++)
        units += s->plan.group_slots[g];
    codec_expect(c, units == s->plan.unit_slots.n);
    for (uint32_t v = 0; v < s->job->n_vertices; v++)
        codec_expect(c, s->plan.parallelism[v] >= 1 &&
                            s->plan.parallelism[v] <= s->max_parallelism[v] &&
                            s->plan.parallelism[v] <= s->plan.group_slots[s->job->group_of[v]]);
}

static void previous_codec(struct codec *c, struct pliant_sched *s)
{
    struct previous *p = &s->previous;
    size_t n = p->entries.n, expected = 0;

    codec_bool(c, &p->exists);
    CODEC(c, p->births);
    codec_array(c, p->parallelism, s->job->n_vertices);
    codec_array(c, p->first, s->job->n_vertices);
    codec_count(c, &n, sizeof(uint32_t) + sizeof(uint64_t));
    if (c->reading && n > 0 && !vec_reserve(c->alloc, &p->entries, n))
        codec_no_memory(c);
    if (!codec_fine(c))
        return;
    p->entries.n = n;
    for (size_t i = 0; i < n; i++) {
        CODEC(c, p->entries.v[i].slot);
        CODEC(c, p->entries.v[i].bytes);
        codec_expect(c, p->entries.v[i].slot <= s->pool.slots.n);
    }
    for (uint32_t v = 0; p->exists && v < s->job->n_vertices; v++) {
        codec_expect(c, p->first[v] == expected && p->parallelism[v] <= s->max_parallelism[v]);
        expected += p->parallelism[v];
    }
    codec_expect(c, !p->exists || expected == n);
}

/* ---- budgets and histories -------------------------------------------------------------- */

static void strategy_codec(struct codec *c, struct restart_strategy *r)
{
    size_t n = (size_t)r->window_n;

    CODEC(c, r->count);
    CODEC(c, r->next_at_ms);
    codec_count(c, &n, sizeof(int64_t));
    if (c->reading && codec_fine(c) && restart_strategy_reserve(r, c->alloc, (int64_t)n) < 0)
        codec_no_memory(c);
    codec_expect(c, n == 0 || (r->cfg.kind == PLIANT_RESTART_FAILURE_RATE &&
                               (int64_t)n - 1 <= r->cfg.rate.max_failures));
    for (size_t i = 0; codec_fine(c) && i < n; i++)
        CODEC(c, r->window[(r->window_first + (int64_t)i) % (int64_t)n]); /* oldest first */
    if (c->reading && codec_fine(c))
        r->window_n = (int64_t)n;
}

/* Labels follow from the rest. */
static void failure_item_codec(struct codec *c, const struct pliant_sched *s,
                               struct pliant_failure_item *item)
{
    char *node = (char *)(uintptr_t)item->node, *cause = (char *)(uintptr_t)item->cause;

    CODEC(c, item->at_ms);
    codec_byte(c, &item->reason, PLIANT_REASONS);
    codec_bool(c, &item->recoverable);
    CODEC(c, item->exit_code);
    CODEC(c, item->task.vertex.v);
    CODEC(c, item->task.subtask);
    CODEC(c, item->task.attempt);
    codec_text(c, &node, PLIANT_NAME_MAX);
    codec_text(c, &cause, PLIANT_CAUSE_MAX);
    codec_expect(c, node && cause && item->task.vertex.v <= s->job->n_vertices);
    item->node = node;
    item->cause = cause;
    if (c->reading && codec_fine(c) && failures_label(&s->failures, item) < 0)
        codec_no_memory(c);
}

static void failure_entry_codec(struct codec *c, const struct pliant_sched *s,
                                struct failure_entry *entry)
{
    size_t n = entry->items.n;

    codec_count(c, &n, sizeof(int64_t));
    codec_expect(c, n <= FAILURES_KEPT);
    if (c->reading && codec_fine(c) && n > 0 && !vec_reserve(c->alloc, &entry->items, n))
        codec_no_memory(c);
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        if (c->reading)
            entry->items.v[entry->items.n++] = (struct pliant_failure_item){0};
        failure_item_codec(c, s, &entry->items.v[i]);
    }
    CODEC(c, entry->n_more);
}

static void failures_codec(struct codec *c, struct pliant_sched *s)
{
    struct failures *f = &s->failures;
    uint32_t n = f->n;

    failure_entry_codec(c, s, &f->present);
    CODEC(c, n);
    codec_expect(c, n <= f->size);
    for (uint32_t i = 0; codec_fine(c) && i < n; i++) {
        struct failure_entry *entry =
            c->reading ? failures_append(f) : f->ring[(f->first + i) % f->size];

        if (!entry) {
            codec_no_memory(c);
            return;
        }
        failure_entry_codec(c, s, entry);
        failures_show(entry);
    }
}

/* ---- everything ------------------------------------------------------------------------- */

static void bounds_codec(struct codec *c, struct pliant_sched *s)
{
    for (uint32_t v = 0; v < s->job->n_vertices; v++) {
        struct vertex_bounds *b = &s->bounds.vertices[v];

        CODEC(c, b->min);
        CODEC(c, b->want);
        codec_expect(c, b->min >= 1 && b->min <= b->want && b->want <= s->max_parallelism[v]);
    }
    CODEC(c, s->declared_slots);
    CODEC(c, s->declared_minimum);
    codec_bool(c, &s->has_declared);
    if (c->reading && codec_fine(c))
        bounds_refresh(&s->bounds);
}

static void facts_codec(struct codec *c, struct pliant_sched *s)
{
    CODEC(c, s->checkpoints.last_id);
    CODEC(c, s->checkpoints.completed_id);
    CODEC(c, s->checkpoints.completed_at_ms);
    CODEC(c, s->checkpoints.triggered_at_ms);
    CODEC(c, s->checkpoints.duration_ms);
    codec_text(c, &s->savepoint_path, SCHED_TEXT_MAX);
    CODEC(c, s->restarts);
    CODEC(c, s->rescales);
    CODEC(c, s->creation_retries);
    CODEC(c, s->events_ignored);
    CODEC(c, s->failover.drain_moves);
}

static void budget_codec(struct codec *c, struct budget *b)
{
    CODEC(c, b->charged);
}

static void group_codec(struct codec *c, struct pliant_sched *s)
{
    budget_codec(c, &s->failover.budgets.workers);
    budget_codec(c, &s->failover.budgets.preemptions);
    budget_codec(c, &s->failover.budgets.launches);
    budget_codec(c, &s->failover.budgets.resets);
    CODEC(c, s->group.attempt);
    codec_bool(c, &s->group.relaunch);
    CODEC(c, s->group.failed_in_row);
    codec_bool(c, &s->group.port_retried);
    CODEC_ENUM(c, s->group.end, PLIANT_REASONS);
    CODEC(c, s->deployed_at_ms);
}

static void rank_reports_codec(struct codec *c, struct rank_reports *rank)
{
    size_t n = rank->waiting.n;

    CODEC(c, rank->last_call);
    codec_count(c, &n, 2 * sizeof(uint64_t));
    if (c->reading && codec_fine(c) && n > 0 && !vec_reserve(c->alloc, &rank->waiting, n))
        codec_no_memory(c);
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        struct report *report = &rank->waiting.v[i];

        if (c->reading) {
            *report = (struct report){0};
            rank->waiting.n++;
        }
        CODEC(c, report->call);
        CODEC(c, report->at_ms);
        codec_text(c, &report->path, REPORTS_PATH_MAX);
    }
}

static void reports_codec(struct codec *c, struct reports *r)
{
    size_t n = r->ranks.n;
    uint32_t ready = 0;

    codec_count(c, &n, sizeof(uint64_t));
    codec_expect(c, n <= PLIANT_MAX_PARALLELISM);
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        if (c->reading && !vec_push(c->alloc, &r->ranks)) {
            codec_no_memory(c);
            return;
        }
        rank_reports_codec(c, &r->ranks.v[i]);
        ready += r->ranks.v[i].waiting.n > 0;
    }
    CODEC(c, r->n_ready);
    codec_expect(c, r->n_ready == ready);
}

static void registration_codec(struct codec *c, struct registration *r)
{
    size_t n = r->calls.n;

    CODEC(c, r->id);
    CODEC(c, r->reported_at_ms);
    codec_deadline(c, &r->expiry);
    codec_count(c, &n, sizeof(uint64_t));
    if (c->reading && codec_fine(c) && n > 0 && !vec_reserve(c->alloc, &r->calls, n))
        codec_no_memory(c);
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        if (c->reading)
            r->calls.v[r->calls.n++] = (struct report_call){0};
        CODEC(c, r->calls.v[i].task.vertex.v);
        CODEC(c, r->calls.v[i].task.subtask);
        CODEC(c, r->calls.v[i].task.attempt);
        CODEC(c, r->calls.v[i].call);
    }
}

/* A sum that has only grown and decayed. */
static void sum_codec(struct codec *c, double *sum)
{
    CODEC(c, *sum);
    codec_expect(c, *sum >= 0 && *sum <= (double)INT64_MAX);
}

/* Unset, or over. */
static void past_codec(struct codec *c, int64_t *at_ms, int64_t now_ms)
{
    CODEC(c, *at_ms);
    codec_expect(c, *at_ms == PLIANT_UNSET || *at_ms <= now_ms);
}

static void rate_codec(struct codec *c, struct worth_rate *rate)
{
    sum_codec(c, &rate->seen);
    sum_codec(c, &rate->risk);
}

static void worth_codec(struct codec *c, struct worth *w, int64_t now_ms)
{
    rate_codec(c, &w->losses);
    rate_codec(c, &w->stops);
    sum_codec(c, &w->moves);
    sum_codec(c, &w->units);
    codec_expect(c, w->units >= 1);
    codec_bool(c, &w->working);
    for (uint32_t g = 0; g < WORTH_GRIDS; g++) {
        sum_codec(c, &w->on_grid[g]);
        codec_expect(c, w->on_grid[g] <= 1);
    }
    CODEC(c, w->grid);
    codec_expect(c, w->grid <= WORTH_GRIDS);
    sum_codec(c, &w->early);
    codec_expect(c, w->early <= 1);
    sum_codec(c, &w->gap_ms);
    sum_codec(c, &w->gap_off_ms);
    CODEC(c, w->gaps);
    codec_expect(c, w->gaps <= WORTH_GAPS_FEW);
    past_codec(c, &w->changed_at_ms, now_ms);
    past_codec(c, &w->arrived_at_ms, now_ms);
    past_codec(c, &w->counted_to_ms, now_ms);
    codec_expect(c, w->counted_to_ms == PLIANT_UNSET || w->counted_to_ms >= w->changed_at_ms);
    past_codec(c, &w->forgot_to_ms, now_ms);
    past_codec(c, &w->stopped_at_ms, now_ms);
    past_codec(c, &w->lost_at_ms, now_ms);
    CODEC(c, w->restart_ms);
    CODEC(c, w->checkpoint_ms);
    CODEC(c, w->reports_ms);
    codec_expect(c, w->reports_ms == PLIANT_UNSET || w->reports_ms >= 0);
    CODEC(c, w->stopping_ms);
}

static void sched_codec(struct codec *c, struct pliant_sched *s)
{
    CODEC(c, s->clock.now_ms);
    CODEC(c, s->clock.made);
    CODEC(c, s->prng.state);
    bounds_codec(c, s);
    pool_codec(c, &s->pool);
    graph_codec(c, &s->graph);
    regional_codec(c, s);
    plan_codec(c, s);
    previous_codec(c, s);
    codec_array(c, s->target, s->job->n_vertices);
    state_codec(c, &s->state);
    CODEC(c, s->entered_at_ms);
    codec_deadline(c, &s->idle_check);
    strategy_codec(c, &s->failover.strategy);
    strategy_codec(c, &s->creation_retry);
    facts_codec(c, s);
    group_codec(c, s);
    reports_codec(c, &s->reports);
    registration_codec(c, &s->registration);
    worth_codec(c, &s->policy.worth, s->clock.now_ms);
    failures_codec(c, s);
    timeline_codec(c, &s->timeline);
    plan_expect(c, s);
}

/* The same job, the same options: else the same events would lead elsewhere. */
static uint64_t compute_fingerprint(const struct pliant_sched *s)
{
    uint64_t sum = s->job->fingerprint;
    char value[PLIANT_FAILURE_LABELS_MAX + 1];

    for (size_t i = 0; pliant_option_at(i); i++)
        if (pliant_config_get(&s->cfg, pliant_option_at(i)->key, value, sizeof value) >= 0)
            sum = sum * 31 + codec_sum((const uint8_t *)value, strlen(value));
    return sum | 1; /* never 0 */
}

static uint64_t fingerprint(struct pliant_sched *s)
{
    if (s->fingerprint == 0)
        s->fingerprint = compute_fingerprint(s);
    return s->fingerprint;
}

static void header_codec(struct codec *c, struct pliant_sched *s)
{
    uint64_t magic = MAGIC, print = fingerprint(s);
    uint32_t version = VERSION;

    CODEC(c, magic);
    codec_expect(c, magic == MAGIC);
    CODEC(c, version);
    codec_expect(c, version == VERSION);
    CODEC(c, print);
    codec_expect(c, print == fingerprint(s));
}

int pliant_snapshot(const struct pliant_sched *const_s, void **ret_bytes, size_t *ret_size)
{
    struct pliant_sched *s =
        (struct pliant_sched *)(uintptr_t)const_s; /* writing changes nothing */
    struct codec c = {.alloc = s->alloc};
    uint64_t sum;

    if (s->no_memory)
        return -ENOMEM;
    header_codec(&c, s);
    sched_codec(&c, s);
    sum = codec_sum(c.out.v, c.out.n);
    CODEC(&c, sum);
    if (c.error < 0) {
        vec_free(s->alloc, &c.out);
        return c.error;
    }
    *ret_bytes = c.out.v;
    *ret_size = c.out.n;
    return 0;
}

void pliant_bytes_free(const struct pliant_alloc *alloc, void *bytes)
{
    mem_free(alloc, bytes);
}

static int refuse(struct pliant_error *err, const char *text)
{
    if (err) {
        *err = (struct pliant_error){.item = UINT32_MAX};
        snprintf(err->text, sizeof err->text, "%s", text);
    }
    return -EINVAL;
}

static bool sum_fine(const uint8_t *bytes, size_t size)
{
    uint64_t sum;

    if (size < sizeof sum)
        return false;
    memcpy(&sum, bytes + size - sizeof sum, sizeof sum);
    return sum == codec_sum(bytes, size - sizeof sum);
}

int pliant_restore(const struct pliant_config *cfg, const struct pliant_job *job, const void *bytes,
                   size_t size, struct pliant_sched **ret, struct pliant_error *err)
{
    struct codec c = {.alloc = cfg->alloc, .reading = true, .in = bytes, .size = size};
    struct pliant_sched *s;
    int error;

    if (!sum_fine(bytes, size))
        return refuse(err, "not a snapshot, or a damaged one");
    c.size -= sizeof(uint64_t);
    error = pliant_sched_new(cfg, job, &s, err);
    if (error < 0)
        return error;
    header_codec(&c, s);
    if (c.error == -EINVAL) {
        pliant_sched_destroy(&s);
        return refuse(err, "a snapshot of another version, job or set of options");
    }
    sched_codec(&c, s);
    codec_expect(&c, c.at == c.size);
    if (codec_fine(&c) && pliant_check(s))
        c.error = -EINVAL;
    if (codec_fine(&c)) {
        *ret = s;
        return 0;
    }
    pliant_sched_destroy(&s);
    return c.error == -EINVAL ? refuse(err, "a damaged snapshot") : c.error;
}

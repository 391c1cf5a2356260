/* resources.c - what could run with the slots that are there, and what is wanted
 *
 * "All slots" are those offered: held, and not on a draining node [S-DRN-1]. */
#include <string.h>

#include "graph/ranks.h"
#include "states/sched.h"

/* ---- parallelism ------------------------------------------------------------------------ */

bool achievable(struct pliant_sched *s, uint64_t n_slots)
{
    return allocator_parallelism(&s->bounds, n_slots, NULL, s->scratch);
}

static bool same(const struct pliant_sched *s, const uint32_t *parallelism)
{
    return memcmp(s->scratch, parallelism, s->job->n_vertices * sizeof *parallelism) == 0;
}

bool achievable_differs(struct pliant_sched *s)
{
    return achievable(s, s->pool.n_offered) && !same(s, s->graph.parallelism);
}

bool target_aim(struct pliant_sched *s)
{
    if (!achievable(s, s->pool.n_offered))
        return false;
    memcpy(s->target, s->scratch, s->job->n_vertices * sizeof *s->target);
    return true;
}

/* With free slots: one that is still used by the old run does not count [S-RST-5]. */
bool achievable_is_target(struct pliant_sched *s)
{
    return achievable(s, pool_n_open(&s->pool)) && same(s, s->target);
}

/* By the batch way: of all tasks that have yet to end each takes one. One is enough. Never 0, so
 * that nobody takes it for a job that has ended. Other attempts of tasks take one each as well, and
 * those that are closed are held in vain. */
uint64_t desired_slots(const struct pliant_sched *s)
{
    uint64_t extra = (uint64_t)s->graph.rivals.n + s->pool.n_free_blocked;
    uint64_t open;

    if (!s->way->single)
        return s->bounds.desired + extra;
    open = (uint64_t)(s->graph.n_tasks - s->graph.n_finished) + extra;
    return open > 0 ? open : 1;
}

uint64_t minimal_slots(const struct pliant_sched *s)
{
    return s->way->single ? 1 : s->bounds.minimal;
}

void declare(struct pliant_sched *s)
{
    struct pliant_action *act;
    uint64_t desired = desired_slots(s), minimal = minimal_slots(s);

    if (s->has_declared && s->declared_slots == desired && s->declared_minimum == minimal)
        return;
    s->has_declared = true;
    s->declared_slots = desired;
    s->declared_minimum = minimal;
    act = emit(s, PLIANT_ACT_DECLARE);
    act->declare.desired = (uint32_t)desired;
    act->declare.min = (uint32_t)minimal;
}

/* ---- the plan --------------------------------------------------------------------------- */

/* Nodes of one failure domain count as one; those without are each their own. */
struct domain {
    const char *name;
    uint32_t number;
    UT_hash_handle hh;
};

static uint32_t *domain_numbers(struct pliant_sched *s)
{
    size_t n_nodes = s->pool.nodes.n, n = 0;
    uint32_t *numbers = mem_resize(s->alloc, NULL, n_nodes + 1, sizeof *numbers);
    struct domain *domains = mem_resize(s->alloc, NULL, n_nodes + 1, sizeof *domains);
    struct domain *by_name = NULL, *found;
    const struct pliant_alloc *hash_alloc = s->alloc;
    bool failed = !numbers || !domains;

    for (uint32_t row = 0; !failed && row < n_nodes; row++) {
        const struct pool_node *node = s->pool.nodes.v[row];

        numbers[row] = row;
        if (!node || !node->domain || !*node->domain)
            continue;
        HASH_FIND_STR(by_name, node->domain, found);
        if (!found) {
            found = &domains[n++];
            *found = (struct domain){.name = node->domain, .number = row};
            HASH_ADD_KEYPTR(hh, by_name, found->name, strlen(found->name), found);
            failed = !found->hh.tbl;
        }
        numbers[row] = found->number;
    }
    HASH_CLEAR(hh, by_name);
    mem_free(s->alloc, domains);
    if (!failed)
        return numbers;
    mem_free(s->alloc, numbers);
    sched_no_memory(s);
    return NULL;
}

/* Free slots in pool order: those of the oldest nodes first, which are the last that an autoscaler
 * takes back, and have lived through most. */
static struct free_slot *free_slots(struct pliant_sched *s, uint32_t n)
{
    struct free_slot *list = mem_resize(s->alloc, NULL, (size_t)n + 1, sizeof *list);
    uint32_t *domains = s->cfg.spread == PLIANT_SPREAD_DOMAINS ? domain_numbers(s) : NULL;
    const struct pool_node *node = list ? pool_oldest(&s->pool) : NULL;
    uint32_t found = 0;

    if (!list)
        sched_no_memory(s);
    for (; node; node = pool_next(node))
        for (uint32_t row = node->first_slot; row != POOL_NONE; row = s->pool.slots.v[row].next)
            if (pool_slot_open(&s->pool.slots.v[row]))
                list[found++] =
                    (struct free_slot){.slot = row + 1,
                                       .node = node->row,
                                       .domain = domains ? domains[node->row] : node->row};
    mem_free(s->alloc, domains);
    return list;
}

/* The earlier run, if it may guide the placement: local recovery is on and there is something
 * to recover from. A slot that is gone matches nothing, also if its row lives again. */
static const struct history *locality(struct pliant_sched *s, struct history *history)
{
    struct previous *p = &s->previous;

    if (!s->cfg.local_recovery || !p->exists || !checkpointing_on(s) ||
        s->checkpoints.completed_id == 0)
        return NULL;
    for (size_t i = 0; i < p->entries.n; i++) {
        uint32_t id = p->entries.v[i].slot;

        if (id != 0 && s->pool.slots.v[id - 1].born > p->births)
            p->entries.v[i].slot = 0;
    }
    *history = (struct history){.parallelism = p->parallelism,
                                .first = p->first,
                                .entries = p->entries.v,
                                .n_entries = p->entries.n};
    return history;
}

static uint32_t sum(const uint32_t *v, uint32_t n)
{
    uint32_t total = 0;

    for (uint32_t i = 0; i < n; i++)
        total += v[i];
    return total;
}

static bool place(struct pliant_sched *s, uint32_t n_free)
{
    struct plan *plan = &s->plan;
    struct history history;
    struct placement_request request = {
        .bounds = &s->bounds,
        .parallelism = plan->parallelism,
        .group_slots = plan->group_slots,
        .max_parallelism = s->max_parallelism,
        .n_slots = n_free,
        .prefer_minimal_nodes = s->cfg.prefer_minimal_nodes,
        .spread = s->cfg.spread,
        .history = locality(s, &history),
    };
    struct free_slot *slots = free_slots(s, n_free);
    int error;

    if (!slots)
        return false;
    request.slots = slots;
    error = allocator_place(&request, s->alloc, plan->unit_slots.v);
    if (error == 0 && s->job->worker_group)
        error = ranks_order(&s->pool, plan->unit_slots.v, (uint32_t)plan->unit_slots.n);
    mem_free(s->alloc, slots);
    if (error < 0)
        sched_no_memory(s);
    return error == 0;
}

bool plan_compute(struct pliant_sched *s)
{
    struct plan *plan = &s->plan;
    uint32_t n_free = pool_n_open(&s->pool);

    plan->serial++;
    plan->births = s->pool.births;
    plan->unit_slots.n = 0;
    if (!allocator_parallelism(&s->bounds, n_free, plan->group_slots, plan->parallelism))
        return false;
    if (!vec_reserve(s->alloc, &plan->unit_slots, sum(plan->group_slots, s->job->n_groups))) {
        sched_no_memory(s);
        return false;
    }
    plan->unit_slots.n = sum(plan->group_slots, s->job->n_groups);
    return place(s, n_free);
}

/* Some units, group_slots[g] of each group, into free slots: slots[] are ids, by group. */
bool place_units_anew(struct pliant_sched *s, const uint32_t *group_slots, uint32_t units,
                      uint32_t *slots)
{
    uint32_t n_free = pool_n_open(&s->pool);
    struct placement_request request = {.bounds = &s->bounds,
                                        .parallelism = s->graph.parallelism,
                                        .group_slots = group_slots,
                                        .max_parallelism = s->max_parallelism,
                                        .n_slots = n_free,
                                        .prefer_minimal_nodes = s->cfg.prefer_minimal_nodes,
                                        .spread = s->cfg.spread};
    struct free_slot *list;
    int error;

    if (units == 0)
        return true;
    list = free_slots(s, n_free);
    if (!list)
        return false;
    request.slots = list;
    error = allocator_place(&request, s->alloc, slots);
    mem_free(s->alloc, list);
    if (error < 0)
        sched_no_memory(s);
    return error == 0;
}

/* All or nothing: every slot is still there, still the same, and free [S-CEG-4]. */
bool plan_holds(const struct pliant_sched *s)
{
    for (size_t i = 0; i < s->plan.unit_slots.n; i++) {
        const struct pool_slot *slot = &s->pool.slots.v[s->plan.unit_slots.v[i] - 1];

        if (!pool_slot_open(slot) || slot->born > s->plan.births)
            return false;
    }
    return true;
}

/* ---- the run before --------------------------------------------------------------------- */

/* Remember where the tasks are, for the next plan [S-LOC-1]; it survives WaitingForResources and
 * plans that fail [S-LOC-7]. */
void previous_capture(struct pliant_sched *s)
{
    struct previous *p = &s->previous;

    if (!s->cfg.local_recovery)
        return;
    p->entries.n = 0;
    if (!vec_reserve(s->alloc, &p->entries, s->graph.n_tasks)) {
        sched_no_memory(s);
        return;
    }
    for (uint32_t v = 0; v < s->job->n_vertices; v++) {
        p->parallelism[v] = s->graph.parallelism[v];
        p->first[v] = (uint32_t)p->entries.n;
        for (uint32_t i = 0; i < p->parallelism[v]; i++)
            p->entries.v[p->entries.n++] =
                (struct history_entry){.slot = s->graph.vertices[v].tasks[i].slot + 1};
    }
    p->births = s->pool.births;
    p->exists = true;
}

/* Keyed state of each subtask in the latest checkpoint; what it does not name is unknown. */
void previous_sizes(struct pliant_sched *s, const struct pliant_state_size *sizes, size_t n)
{
    struct previous *p = &s->previous;

    if (!p->exists)
        return;
    for (size_t i = 0; i < p->entries.n; i++)
        p->entries.v[i].bytes = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t v = sizes[i].vertex.v - 1;

        if (v < s->job->n_vertices && sizes[i].subtask < p->parallelism[v])
            p->entries.v[p->first[v] + sizes[i].subtask].bytes = sizes[i].bytes;
    }
}

/* ---- giving back ------------------------------------------------------------------------ */

/* Slots that one RELEASE names. */
struct release {
    pliant_slot_id *slots;
    uint32_t n, max;
};

static struct release release_begin(struct pliant_sched *s, uint64_t max)
{
    struct release r = {.slots = max > 0 ? outbox_block(s, (size_t)max, sizeof *r.slots) : NULL};

    r.max = r.slots ? (uint32_t)max : 0;
    return r;
}

static void give_back(struct pliant_sched *s, struct release *r, uint32_t row)
{
    if (r->n == r->max)
        return;
    r->slots[r->n++].v = row + 1;
    pool_release(&s->pool, row);
}

static void release_end(struct pliant_sched *s, const struct release *r)
{
    struct pliant_action *act;

    if (r->n == 0)
        return;
    act = emit(s, PLIANT_ACT_RELEASE);
    act->release.n = r->n;
    act->release.slots = r->slots;
}

static bool idle_too_long(const struct pliant_sched *s, uint32_t row)
{
    return row != POOL_NONE && instant_after(s->pool.slots.v[row].idle_since_ms,
                                             s->cfg.slot_idle_timeout_ms) <= s->clock.now_ms;
}

/* Of the slots that are idle for too long, those of nodes without any task, or all. */
static void give_back_idle(struct pliant_sched *s, struct release *r, bool whole_nodes)
{
    struct pool *pool = &s->pool;

    for (uint32_t row = pool->idle_first; r->n < r->max && idle_too_long(s, row);) {
        const struct pool_slot *slot = &pool->slots.v[row];
        uint32_t after = slot->idle_after;

        if (!whole_nodes || pool->nodes.v[slot->node]->n_used == 0)
            give_back(s, r, row);
        row = after;
    }
}

/* Slots beyond what is wanted, idle for the whole timeout. Those of nodes that the job does not
 * use at all go first: only a whole node is of use to whoever provides it. */
void release_idle(struct pliant_sched *s)
{
    uint64_t offered = s->pool.n_offered, desired = desired_slots(s);
    struct release r;

    if (offered <= desired || !idle_too_long(s, s->pool.idle_first))
        return;
    r = release_begin(s, offered - desired);
    give_back_idle(s, &r, true);
    give_back_idle(s, &r, false);
    release_end(s, &r);
}

void release_all(struct pliant_sched *s)
{
    struct release r = release_begin(s, s->pool.n_held);

    for (uint32_t row = 0; r.n < r.max && row < s->pool.slots.n; row++)
        if (s->pool.slots.v[row].held)
            give_back(s, &r, row);
    release_end(s, &r);
}

void return_reclaimed(struct pliant_sched *s)
{
    struct release r = release_begin(s, s->pool.returning.n);

    for (size_t i = 0; i < r.max; i++)
        give_back(s, &r, s->pool.returning.v[i]);
    s->pool.returning.n = 0;
    release_end(s, &r);
}

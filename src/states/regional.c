/* regional.c - see regional.h */
#include "states/regional.h"

#include <assert.h>

#include "states/sched.h"
#include "util/sort.h"

/* ---- the regions of the present graph
 * ------------------------------------------------------------ */

void regional_init(struct regional *r, const struct pliant_alloc *a)
{
    *r = (struct regional){.alloc = a,
                           .base = 1,
                           .next_due = 1,
                           .next_give_up = 1,
                           .due = DEADLINE_NONE,
                           .give_up = DEADLINE_NONE};
}

static void forget_plans(struct regional *r)
{
    for (size_t i = 0; i < r->plans.n; i++)
        vec_free(r->alloc, &r->plans.v[i].regions);
    r->base += (uint32_t)r->plans.n;
    r->plans.n = 0;
    r->next_due = r->next_give_up = r->base;
    r->n_pending = 0;
    r->fallen.n = 0;
    deadline_clear(&r->due);
    deadline_clear(&r->give_up);
}

static void forget_graph(struct regional *r)
{
    if (r->topology.job) {
        restart_search_free(&r->search);
        regions_free(&r->regions);
        topology_free(&r->topology);
    }
    mem_free(r->alloc, r->owner);
    r->owner = NULL;
    r->on = false;
}

void regional_free(struct regional *r)
{
    forget_plans(r);
    forget_graph(r);
    vec_free(r->alloc, &r->plans);
    vec_free(r->alloc, &r->fallen);
}

/* A pointwise edge between different parallelisms is all-to-all [S-CEG-11]. */
static int find_regions(struct pliant_sched *s)
{
    struct regional *r = &s->regional;

    if (topology_init(&r->topology, s->job, s->graph.parallelism, true, s->alloc) < 0)
        return -1;
    if (regions_init(&r->regions, &r->topology, s->alloc) < 0)
        return -1;
    if (restart_search_init(&r->search, &r->topology, &r->regions, s->alloc) < 0)
        return -1;
    r->owner = mem_zero(s->alloc, (size_t)r->regions.n + 1, sizeof *r->owner);
    return r->owner ? 0 : -1;
}

void regional_begin(struct pliant_sched *s)
{
    struct regional *r = &s->regional;

    if (s->cfg.adaptive_failover != PLIANT_FAILOVER_REGION || s->job->worker_group)
        return;
    forget_graph(r);
    if (find_regions(s) < 0)
        sched_no_memory(s);
    else
        r->on = r->regions.n > 1; /* [P-REG-1] */
}

void regional_end(struct pliant_sched *s)
{
    forget_plans(&s->regional);
    forget_graph(&s->regional);
}

void regional_drop(struct pliant_sched *s)
{
    struct regional *r = &s->regional;

    for (size_t i = 0; i < r->plans.n; i++)
        for (size_t k = 0; k < r->plans.v[i].regions.n; k++)
            r->owner[r->plans.v[i].regions.v[k]] = 0;
    forget_plans(r);
}

static uint32_t flat(const struct regional *r, uint32_t v, uint32_t i)
{
    return r->topology.first_task[v] + i;
}

static struct task *task_at(struct pliant_sched *s, uint32_t task, uint32_t *v, uint32_t *i)
{
    const struct topology *t = &s->regional.topology;

    *v = t->vertex_of[task];
    *i = task - t->first_task[*v];
    return &s->graph.vertices[*v].tasks[*i];
}

static struct restart_plan *plan_of(struct regional *r, uint32_t serial)
{
    return &r->plans.v[serial - r->base];
}

static uint32_t end_serial(const struct regional *r)
{
    return r->base + (uint32_t)r->plans.n;
}

/* ---- timers
 * ----------------------------------------------------------------------------------------- */

static void arm_due(struct pliant_sched *s)
{
    struct regional *r = &s->regional;

    if (r->next_due < end_serial(r))
        deadline_arm(&r->due, &s->clock, plan_of(r, r->next_due)->due_at_ms);
    else
        deadline_clear(&r->due);
}

static bool waits_for_cancels(const struct restart_plan *plan)
{
    return !plan->done && plan->open > 0 && plan->give_up_at_ms != PLIANT_NEVER;
}

static void arm_give_up(struct pliant_sched *s)
{
    struct regional *r = &s->regional;

    while (r->next_give_up < end_serial(r) && !waits_for_cancels(plan_of(r, r->next_give_up)))
        r->next_give_up++;
    if (r->next_give_up < end_serial(r))
        deadline_arm(&r->give_up, &s->clock, plan_of(r, r->next_give_up)->give_up_at_ms);
    else
        deadline_clear(&r->give_up);
}

/* ---- a plan is made
 * ----------------------------------------------------------------------------------- */

void regional_task_down(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    struct regional *r = &s->regional;
    uint32_t task, serial;

    if (!r->on || s->state.id != PLIANT_EXECUTING)
        return;
    task = flat(r, v, i);
    serial = r->owner[r->regions.of_task[task]];
    if (serial != 0)
        plan_of(r, serial)->open--;
    else if (s->graph.vertices[v].tasks[i].state == PLIANT_TASK_FAILED) {
        uint32_t *place = vec_push(s->alloc, &r->fallen);

        if (place)
            *place = task;
        else
            sched_no_memory(s);
    }
}

static uint32_t live_in(struct pliant_sched *s, uint32_t region)
{
    const struct regions *regions = &s->regional.regions;
    uint32_t n = 0, v, i;

    for (uint32_t k = regions->first[region]; k < regions->first[region + 1]; k++)
        n += task_live(task_at(s, regions->members[k], &v, &i));
    return n;
}

/* The later plan owns it [3.3]. */
static void own(struct pliant_sched *s, struct restart_plan *plan, uint32_t serial, uint32_t region)
{
    struct regional *r = &s->regional;
    uint32_t live = live_in(s, region), *place = vec_push(s->alloc, &plan->regions);

    if (!place) {
        sched_no_memory(s);
        return;
    }
    *place = region;
    if (r->owner[region] != 0)
        plan_of(r, r->owner[region])->open -= live;
    r->owner[region] = serial;
    plan->open += live;
}

static bool nothing_is_lost(const void *ctx, uint32_t edge, uint32_t producer)
{
    (void)ctx, (void)edge, (void)producer;
    return true; /* pipelined results are never read again, and there are no others */
}

/* The regions of all tasks that fell, each once. */
static void own_touched(struct pliant_sched *s, struct restart_plan *plan, uint32_t serial)
{
    struct regional *r = &s->regional;

    for (size_t f = 0; f < r->fallen.n; f++) {
        restart_search(&r->search, r->fallen.v[f], nothing_is_lost, NULL);
        for (uint32_t k = 0; k < r->search.n_found; k++)
            if (r->owner[r->search.found[k]] != serial)
                own(s, plan, serial, r->search.found[k]);
    }
    r->fallen.n = 0;
}

static void cancel_regions(struct pliant_sched *s, const struct restart_plan *plan)
{
    const struct regions *regions = &s->regional.regions;

    for (size_t k = 0; k < plan->regions.n; k++)
        for (uint32_t m = regions->first[plan->regions.v[k]];
             m < regions->first[plan->regions.v[k] + 1]; m++) {
            uint32_t v, i;
            struct task *task = task_at(s, regions->members[m], &v, &i);

            if (!task_live(task) || task->state == PLIANT_TASK_CANCELING)
                continue;
            execution_move(&s->graph, &s->pool, task, PLIANT_TASK_CANCELING, s->clock.now_ms);
            emit(s, PLIANT_ACT_CANCEL)->task = (struct pliant_task){{v + 1}, i, task->attempt};
        }
}

static void make_plan(struct pliant_sched *s, const struct failure *failure, int64_t delay_ms)
{
    struct regional *r = &s->regional;
    uint32_t serial = end_serial(r);
    struct restart_plan plan = {.due_at_ms = instant_after(s->clock.now_ms, delay_ms),
                                .give_up_at_ms = PLIANT_NEVER,
                                .reason = (uint8_t)failure->why.reason};

    if (s->cfg.cancellation_timeout_ms > 0)
        plan.give_up_at_ms = instant_after(s->clock.now_ms, s->cfg.cancellation_timeout_ms);
    if (!vec_push(s->alloc, &r->plans)) {
        sched_no_memory(s);
        return;
    }
    assert(serial == r->next_due || plan_of(r, serial - 1)->due_at_ms <= plan.due_at_ms);
    own_touched(s, &plan, serial);
    *plan_of(r, serial) = plan;
    r->n_pending++;
    cancel_regions(s, &plan);
    arm_due(s);
    arm_give_up(s);
}

/* ---- whose way?
 * ---------------------------------------------------------------------------------------- */

static bool of_tasks(enum pliant_reason reason)
{
    return reason == PLIANT_REASON_TASK_FAILED || reason == PLIANT_REASON_NODE_LOST;
}

/* Are there regions that need not restart? [P-REG-1] */
static bool spares_some(struct pliant_sched *s)
{
    struct regional *r = &s->regional;
    uint32_t touched = 0;

    for (size_t f = 0; f < r->fallen.n; f++) {
        uint32_t region = r->regions.of_task[r->fallen.v[f]];

        /* a region's mark of the last search would do as well, but it is the search's own */
        if (r->owner[region] == 0) {
            r->owner[region] = UINT32_MAX;
            touched++;
        }
    }
    for (size_t f = 0; f < r->fallen.n; f++) {
        uint32_t region = r->regions.of_task[r->fallen.v[f]];

        if (r->owner[region] == UINT32_MAX)
            r->owner[region] = 0;
    }
    return touched < r->regions.n;
}

static bool takes(struct pliant_sched *s, const struct failure *failure)
{
    return s->regional.on && of_tasks(failure->why.reason) && !failure->class.drain &&
           !s->state.executing.drain.pending && spares_some(s);
}

static struct state whole_job(struct pliant_sched *s, const struct failure *failure)
{
    s->regional.fallen.n = 0;
    return failure_decide(s, failure);
}

struct state regional_failure(struct pliant_sched *s, const struct failure *failure)
{
    enum pliant_job_status before = pliant_job_status(s);
    int64_t delay_ms = 0;
    struct state next;

    if (s->regional.on && of_tasks(failure->why.reason) && s->regional.fallen.n == 0)
        return STAY; /* only what was going down already */
    if (!takes(s, failure))
        return whole_job(s, failure);
    next = failure_charge(s, failure, &delay_ms);
    if (next.id != STATE_STAY || s->no_memory)
        return next;
    checkpointing_abort(s, &s->state.executing.checkpointing, failure->why.reason); /* [P-REG-5] */
    make_plan(s, failure, delay_ms);
    tell_status(s, before); /* [P-REG-2] */
    return regional_look(s);
}

/* ---- a plan is carried out
 * ------------------------------------------------------------------------------- */

/* Some task of the unit lives on: then its slot is the unit's. */
static uint32_t living_slot(const struct pliant_sched *s, uint32_t group, uint32_t subtask)
{
    const struct pliant_job *job = s->job;

    for (uint32_t m = job->group_first[group]; m < job->group_first[group + 1]; m++) {
        uint32_t v = job->group_members[m];

        if (subtask < s->graph.parallelism[v] && task_live(&s->graph.vertices[v].tasks[subtask]))
            return s->graph.vertices[v].tasks[subtask].slot;
    }
    return POOL_NONE;
}

/* Tasks of the plan's own regions, in the order in which they start [S-EXE-1]. */
static struct sort_item *tasks_to_start(struct pliant_sched *s, uint32_t serial, size_t *ret_n)
{
    const struct regional *r = &s->regional;
    const struct restart_plan *plan = plan_of(&s->regional, serial);
    size_t most = 0, n = 0;
    struct sort_item *items;

    for (size_t k = 0; k < plan->regions.n; k++)
        most += r->regions.first[plan->regions.v[k] + 1] - r->regions.first[plan->regions.v[k]];
    items = outbox_block(s, 2 * most + 1, sizeof *items);
    for (size_t k = 0; items && k < plan->regions.n; k++) {
        uint32_t region = plan->regions.v[k];

        for (uint32_t m = r->regions.first[region];
             r->owner[region] == serial && m < r->regions.first[region + 1]; m++) {
            uint32_t task = r->regions.members[m], v = r->topology.vertex_of[task];

            items[n++] =
                (struct sort_item){s->topological_rank[v], task - r->topology.first_task[v], v};
        }
    }
    if (items)
        sort_items(items, items + n, n);
    *ret_n = n;
    return items;
}

/* Units of these tasks without a slot, in group_slots[]; how many in all. A unit is a slot's worth
 * of tasks: those of a group with one subtask index. */
static uint32_t count_homeless(struct pliant_sched *s, const struct sort_item *tasks, size_t n,
                               uint32_t *group_slots)
{
    struct sort_item *units = outbox_block(s, 2 * n + 1, sizeof *units);
    uint32_t found = 0;

    for (size_t k = 0; units && k < n; k++)
        units[k] = (struct sort_item){s->job->group_of[tasks[k].value], tasks[k].minor, 0};
    if (units)
        sort_items(units, units + n, n);
    for (size_t k = 0; units && k < n; k++) {
        bool again =
            k > 0 && units[k].major == units[k - 1].major && units[k].minor == units[k - 1].minor;

        if (again || living_slot(s, (uint32_t)units[k].major, units[k].minor) != POOL_NONE)
            continue;
        group_slots[units[k].major]++;
        found++;
    }
    return found;
}

/* In the slot of the unit's other tasks, or its own if that is free. */
static bool restart_at_home(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    uint32_t row = living_slot(s, s->job->group_of[v], i);

    if (row == POOL_NONE && pool_slot_free(&s->pool.slots.v[s->graph.vertices[v].tasks[i].slot]))
        row = s->graph.vertices[v].tasks[i].slot;
    if (row == POOL_NONE)
        return false;
    execution_restart(&s->graph, &s->pool, v, i, row);
    return true;
}

/* Free slots, next[group] on, for those that have none; tasks of a unit share one. */
static void restart_elsewhere(struct pliant_sched *s, const struct sort_item *tasks, size_t n,
                              const uint32_t *slots, uint32_t *next)
{
    for (size_t k = 0; k < n; k++) {
        uint32_t v = tasks[k].value, group = s->job->group_of[v];
        uint32_t row = living_slot(s, group, tasks[k].minor);

        if (task_live(&s->graph.vertices[v].tasks[tasks[k].minor]))
            continue; /* at home */
        execution_restart(&s->graph, &s->pool, v, tasks[k].minor,
                          row != POOL_NONE ? row : slots[next[group]++] - 1);
    }
}

static bool find_slots(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    uint32_t *group_slots = outbox_block(s, 2 * (size_t)s->job->n_groups, sizeof *group_slots);
    uint32_t units = group_slots ? count_homeless(s, tasks, n, group_slots) : 0;
    uint32_t *slots = outbox_block(s, (size_t)units + 1, sizeof *slots);
    uint32_t *next = group_slots ? group_slots + s->job->n_groups : NULL;

    if (!group_slots || !slots || !place_units_anew(s, group_slots, units, slots))
        return false;
    for (uint32_t g = 1; g < s->job->n_groups; g++)
        next[g] = next[g - 1] + group_slots[g - 1];
    restart_elsewhere(s, tasks, n, slots, next);
    return true;
}

/* Each task gets a slot, its own where that is there; false: there are too few [P-REG-4]. */
static bool seat(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    uint32_t *unused = outbox_block(s, s->job->n_groups, sizeof *unused);
    size_t homeless = 0;

    if (!unused || count_homeless(s, tasks, n, unused) > pool_n_free(&s->pool))
        return false;
    for (size_t k = 0; k < n; k++)
        homeless += !restart_at_home(s, tasks[k].value, tasks[k].minor);
    return homeless == 0 || find_slots(s, tasks, n);
}

/* Forget plans that are done, from the oldest on. */
static void tidy(struct regional *r)
{
    size_t gone = 0;

    while (gone < r->plans.n && r->plans.v[gone].done)
        gone++;
    if (gone == 0 || (gone < r->plans.n && gone < r->plans.n / 2))
        return; /* later: moving the rest each time would cost too much */
    r->plans.n -= gone;
    r->base += (uint32_t)gone;
    for (size_t i = 0; i < r->plans.n; i++)
        r->plans.v[i] = r->plans.v[i + gone];
    if (r->next_give_up < r->base)
        r->next_give_up = r->base;
}

static void finish_plan(struct pliant_sched *s, uint32_t serial)
{
    struct regional *r = &s->regional;
    struct restart_plan *plan = plan_of(r, serial);
    enum pliant_job_status before = pliant_job_status(s);

    for (size_t k = 0; k < plan->regions.n; k++)
        if (r->owner[plan->regions.v[k]] == serial)
            r->owner[plan->regions.v[k]] = 0;
    vec_free(r->alloc, &plan->regions);
    plan->done = true;
    r->n_pending--;
    tidy(r);
    arm_give_up(s);
    if (regional_pending(r))
        return;
    failure_archive(s);
    tell_status(s, before);
    deadline_arm(&s->state.executing.again, &s->clock, s->clock.now_ms); /* [P-REG-5] */
}

static struct state for_want_of_slots(struct pliant_sched *s, const struct restart_plan *plan)
{
    struct why why = WHY(plan->reason); /* the node may be forgotten by now */

    record_restart(s, PLIANT_TRIGGER_RECOVERABLE_FAILOVER);
    return restarting(s, 0, false, why);
}

static struct state carry_out(struct pliant_sched *s, uint32_t serial)
{
    size_t n;
    struct sort_item *tasks = tasks_to_start(s, serial, &n);

    if (!tasks)
        return STAY;
    if (!seat(s, tasks, n))
        return s->no_memory ? STAY : for_want_of_slots(s, plan_of(&s->regional, serial));
    deploy_tasks(s, tasks, n);
    s->regional.restarts += n > 0;
    finish_plan(s, serial);
    return STAY;
}

struct state regional_look(struct pliant_sched *s)
{
    struct regional *r = &s->regional;
    struct state next = STAY;

    for (uint32_t serial = r->base; next.id == STATE_STAY && serial < r->next_due; serial++) {
        const struct restart_plan *plan;

        if (serial < r->base) /* plans before it have just been forgotten */
            serial = r->base;
        if (serial >= r->next_due)
            break;
        plan = plan_of(r, serial);
        if (!plan->done && plan->open == 0)
            next = carry_out(s, serial);
    }
    return next;
}

/* A node that does not confirm counts as lost; what else was on it fails [S-FLG-4]. */
static struct state give_up(struct pliant_sched *s, uint32_t serial)
{
    const struct regional *r = &s->regional;
    const struct restart_plan *plan = plan_of(&s->regional, serial);
    struct failure failure;

    for (size_t k = 0; k < plan->regions.n; k++)
        for (uint32_t m = r->regions.first[plan->regions.v[k]];
             m < r->regions.first[plan->regions.v[k] + 1]; m++) {
            uint32_t v, i;
            struct task *task = task_at(s, r->regions.members[m], &v, &i);
            struct pool_node *node;

            if (task->state != PLIANT_TASK_CANCELING)
                continue;
            node = pool_node(&s->pool, s->pool.slots.v[task->slot].node);
            emit(s, PLIANT_ACT_GIVE_UP_NODE)->node.node = node_id(node);
            node_gone(s, node, &failure);
        }
    return r->fallen.n > 0 ? regional_failure(s, &failure) : regional_look(s);
}

struct state regional_on_due(struct pliant_sched *s, struct deadline *due)
{
    struct regional *r = &s->regional;
    uint32_t serial = r->next_give_up;

    if (due == &r->due) {
        plan_of(r, r->next_due++)->delay_over = true;
        arm_due(s);
        return regional_look(s);
    }
    r->next_give_up++;
    arm_give_up(s);
    return give_up(s, serial);
}

/* ---- invariants
 * ------------------------------------------------------------------------------------------- */

const char *regional_check(const struct pliant_sched *const_s)
{
    struct pliant_sched *s = (struct pliant_sched *)(uintptr_t)const_s;
    struct regional *r = &s->regional;
    uint32_t pending = 0;

    if (!r->on)
        return r->n_pending > 0 ? "a region restarts where there are none" : NULL;
    for (uint32_t serial = r->base; serial < end_serial(r); serial++) {
        const struct restart_plan *plan = plan_of(r, serial);
        uint32_t open = 0;

        pending += !plan->done;
        for (size_t k = 0; k < plan->regions.n; k++)
            if (r->owner[plan->regions.v[k]] == serial)
                open += live_in(s, plan->regions.v[k]);
        if (open != plan->open)
            return "a plan miscounts the tasks that it waits for";
        if (plan->delay_over != (serial < r->next_due))
            return "plans fall due out of order";
        if (!plan->done && plan->delay_over && open == 0)
            return "a plan is due, its tasks are down, and nothing happens";
    }
    if (pending != r->n_pending)
        return "pending plans are miscounted";
    for (uint32_t region = 0; region < r->regions.n; region++)
        for (uint32_t m = r->regions.first[region]; m < r->regions.first[region + 1]; m++) {
            uint32_t v, i;
            const struct task *task = task_at(s, r->regions.members[m], &v, &i);

            if (r->owner[region] != 0 && task_live(task) && task->state != PLIANT_TASK_CANCELING)
                return "a region restarts with a task that nobody told to stop";
            if (r->owner[region] == 0 && task->state != PLIANT_TASK_FINISHED && !task_live(task))
                return "a task is down and its region does not restart";
        }
    return NULL;
}

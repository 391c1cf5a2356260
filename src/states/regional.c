/* regional.c - see regional.h */
#include "states/regional.h"

#include <assert.h>

#include "states/sched.h"
#include "util/sort.h"

/* ---- the regions of the present graph ----------------------------------------------- */

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
    r->n_pending = r->n_decided = 0;
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
    r->owner_cap = 0;
    r->on = false;
}

void regional_free(struct regional *r)
{
    forget_plans(r);
    forget_graph(r);
    vec_free(r->alloc, &r->plans);
    vec_free(r->alloc, &r->fallen);
}

static int find_regions(struct pliant_sched *s, bool rewire)
{
    struct regional *r = &s->regional;

    if (topology_init(&r->topology, s->job, s->graph.parallelism, rewire, s->alloc) < 0)
        return -1;
    if (regions_init(&r->regions, &r->topology, s->alloc) < 0)
        return -1;
    if (restart_search_init(&r->search, &r->topology, &r->regions, s->alloc) < 0)
        return -1;
    r->owner = mem_zero(s->alloc, (size_t)r->regions.n + 1, sizeof *r->owner);
    return r->owner ? 0 : -1;
}

void regional_find(struct pliant_sched *s, bool rewire)
{
    forget_graph(&s->regional);
    if (find_regions(s, rewire) < 0)
        sched_no_memory(s);
    else
        s->regional.on = true;
}

void regional_begin(struct pliant_sched *s)
{
    struct regional *r = &s->regional;

    forget_graph(r);
    if (topology_begin(&r->topology, s->job, s->alloc) < 0 ||
        regions_begin(&r->regions, s->alloc) < 0 ||
        restart_search_init(&r->search, &r->topology, &r->regions, s->alloc) < 0)
        sched_no_memory(s);
    else
        r->on = true;
}

void regional_add(struct pliant_sched *s, uint32_t vertex, uint32_t parallelism,
                  const struct range *const *ranges)
{
    struct regional *r = &s->regional;

    if (topology_add(&r->topology, vertex, parallelism, ranges) < 0 ||
        regions_add_single(&r->regions, parallelism) < 0 || restart_search_add(&r->search) < 0 ||
        !array_reserve(r->alloc, &r->owner, &r->owner_cap, r->regions.n, sizeof *r->owner))
        sched_no_memory(s);
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
            r->owner[r->plans.v[i].regions.v[k].region] = (struct claim_at){0};
    forget_plans(r);
}

struct task *regional_task(struct pliant_sched *s, uint32_t task, uint32_t *v, uint32_t *i)
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

static const struct claim *claim_of(struct regional *r, struct claim_at at)
{
    return &plan_of(r, at.plan)->regions.v[at.at];
}

static uint32_t end_serial(const struct regional *r)
{
    return r->base + (uint32_t)r->plans.n;
}

/* ---- timers ------------------------------------------------------------------------- */

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

/* ---- a plan is made ----------------------------------------------------------------- */

void regional_falls(struct pliant_sched *s, uint32_t task)
{
    uint32_t *place = vec_push(s->alloc, &s->regional.fallen);

    if (place)
        *place = task;
    else
        sched_no_memory(s);
}

void regional_task_down(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    regional_attempt_down(s, v, i, s->graph.vertices[v].tasks[i].state == PLIANT_TASK_FAILED);
}

/* The plan that restarts the region has waited for it, and all that did so before. */
static void one_less(struct regional *r, uint32_t region)
{
    for (struct claim_at at = r->owner[region]; at.plan != 0; at = claim_of(r, at)->before)
        plan_of(r, at.plan)->open--;
}

void regional_attempt_down(struct pliant_sched *s, uint32_t v, uint32_t i, bool falls)
{
    struct regional *r = &s->regional;
    uint32_t task;

    if (!r->on || s->state.id != PLIANT_EXECUTING)
        return;
    task = regional_flat(r, v, i);
    if (regional_owner(r, task) != 0)
        one_less(r, r->regions.of_task[task]);
    else if (falls)
        regional_falls(s, task);
}

/* Those that have to go down first. */
static uint32_t live_in(struct pliant_sched *s, uint32_t region)
{
    const struct regions *regions = &s->regional.regions;
    uint32_t n = 0, v, i;

    for (uint32_t k = regions->first[region]; k < regions->first[region + 1]; k++)
        for (const struct task *a = regional_task(s, regions->members[k], &v, &i); a;
             a = execution_next(&s->graph, a))
            n += task_seated(a);
    return n;
}

/* The later plan owns it [3.3]. The earlier one waits for its tasks no less [3.2]: they may read
 * what it is about to discard. */
static void own(struct pliant_sched *s, struct restart_plan *plan, uint32_t serial, uint32_t region)
{
    struct regional *r = &s->regional;
    uint32_t live = live_in(s, region);
    struct claim *claim = vec_push(s->alloc, &plan->regions);

    if (!claim) {
        sched_no_memory(s);
        return;
    }
    *claim = (struct claim){.region = region};
    if (live > 0)
        claim->before = r->owner[region];
    r->owner[region] = (struct claim_at){serial, (uint32_t)plan->regions.n - 1};
    plan->open += live;
    if (s->way->owned)
        s->way->owned(s, region);
}

/* None of its tasks has a slot, or had one. */
static bool untouched(struct pliant_sched *s, uint32_t region)
{
    const struct regions *regions = &s->regional.regions;
    uint32_t v, i;

    for (uint32_t k = regions->first[region]; k < regions->first[region + 1]; k++)
        if (regional_task(s, regions->members[k], &v, &i)->state != PLIANT_TASK_CREATED)
            return false;
    return true;
}

/* Regions without a task that was started are walked through only [2]. */
static void own_found(struct pliant_sched *s, struct restart_plan *plan, uint32_t serial)
{
    struct regional *r = &s->regional;

    for (uint32_t k = 0; k < r->search.n_found; k++)
        if (!untouched(s, r->search.found[k]))
            own(s, plan, serial, r->search.found[k]);
}

/* The regions of all tasks that fell, each once. */
static void own_touched(struct pliant_sched *s, struct restart_plan *plan, uint32_t serial,
                        const struct failure *failure)
{
    struct regional *r = &s->regional;
    struct available available = {s, failure};

    restart_search_begin(&r->search);
    for (size_t f = 0; f < r->fallen.n; f++)
        restart_search_go_on(&r->search, r->fallen.v[f], s->way->available, &available);
    own_found(s, plan, serial);
}

static void own_all(struct pliant_sched *s, struct restart_plan *plan, uint32_t serial)
{
    for (uint32_t region = 0; region < s->regional.regions.n; region++)
        own(s, plan, serial, region);
}

static void cancel_regions(struct pliant_sched *s, const struct restart_plan *plan)
{
    const struct regions *regions = &s->regional.regions;

    for (size_t k = 0; k < plan->regions.n; k++) {
        uint32_t region = plan->regions.v[k].region;

        for (uint32_t m = regions->first[region]; m < regions->first[region + 1]; m++) {
            uint32_t v, i;

            regional_task(s, regions->members[m], &v, &i);
            task_stop(s, v, i, plan->all); /* [3.2] */
        }
    }
}

/* Plans fall due in the order in which they were made. */
static int64_t not_before_others(const struct regional *r, int64_t due_at_ms)
{
    const struct restart_plan *last = r->plans.n > 0 ? &r->plans.v[r->plans.n - 1] : NULL;

    return last && last->due_at_ms > due_at_ms ? last->due_at_ms : due_at_ms;
}

void regional_plan(struct pliant_sched *s, const struct failure *failure, int64_t delay_ms,
                   bool all)
{
    struct regional *r = &s->regional;
    uint32_t serial = end_serial(r);
    struct restart_plan plan = {.all = all,
                                .due_at_ms =
                                    not_before_others(r, instant_after(s->clock.now_ms, delay_ms)),
                                .give_up_at_ms = PLIANT_NEVER,
                                .reason = (uint8_t)failure->why.reason};

    if (s->cfg.cancellation_timeout_ms > 0)
        plan.give_up_at_ms = instant_after(s->clock.now_ms, s->cfg.cancellation_timeout_ms);
    if (!vec_push(s->alloc, &r->plans)) {
        sched_no_memory(s);
        return;
    }
    *plan_of(r, serial) = plan;
    if (all)
        own_all(s, plan_of(r, serial), serial);
    else
        own_touched(s, plan_of(r, serial), serial, failure);
    r->fallen.n = 0;
    r->n_pending++;
    cancel_regions(s, plan_of(r, serial));
    arm_due(s);
    arm_give_up(s);
}

/* ---- a plan is carried out ---------------------------------------------------------- */

struct sort_item *regional_in_order(struct pliant_sched *s, const uint32_t *regions,
                                    size_t n_regions, size_t *ret_n)
{
    const struct regions *r = &s->regional.regions;
    const struct topology *t = &s->regional.topology;
    size_t most = 0, n = 0;
    struct sort_item *items;

    for (size_t k = 0; k < n_regions; k++)
        most += r->first[regions[k] + 1] - r->first[regions[k]];
    items = outbox_block(s, 2 * most + 1, sizeof *items);
    for (size_t k = 0; items && k < n_regions; k++)
        for (uint32_t m = r->first[regions[k]]; m < r->first[regions[k] + 1]; m++) {
            uint32_t task = r->members[m], v = t->vertex_of[task];

            items[n++] = (struct sort_item){s->topological_rank[v], task - t->first_task[v], v};
        }
    if (items)
        sort_items(items, items + most, n);
    *ret_n = n;
    return items;
}

struct sort_item *regional_tasks(struct pliant_sched *s, uint32_t serial, size_t *ret_n)
{
    struct regional *r = &s->regional;
    const struct restart_plan *plan = plan_of(r, serial);
    uint32_t *regions = outbox_block(s, plan->regions.n + 1, sizeof *regions);
    size_t n = 0;

    for (size_t k = 0; regions && k < plan->regions.n; k++)
        if (r->owner[plan->regions.v[k].region].plan == serial)
            regions[n++] = plan->regions.v[k].region;
    return regions ? regional_in_order(s, regions, n, ret_n) : NULL;
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

void regional_finish(struct pliant_sched *s, uint32_t serial)
{
    struct regional *r = &s->regional;
    struct restart_plan *plan = plan_of(r, serial);
    enum pliant_job_status before = pliant_job_status(s);

    for (size_t k = 0; k < plan->regions.n; k++)
        if (r->owner[plan->regions.v[k].region].plan == serial)
            r->owner[plan->regions.v[k].region] = (struct claim_at){0};
    vec_free(r->alloc, &plan->regions);
    plan->done = true;
    r->n_pending--;
    tidy(r);
    arm_give_up(s);
    if (regional_pending(r))
        return;
    failure_archive(s);
    r->n_decided = 0;
    tell_status(s, before);
    if (s->way->rescales)
        deadline_arm(&s->state.executing.again, &s->clock, s->clock.now_ms); /* [P-REG-5] */
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
            next = s->way->carry_out(s, serial);
    }
    return next;
}

/* Does the plan wait for tasks of this region, its k-th? Not if another one has started them
 * since. */
static bool waits_for(struct pliant_sched *s, uint32_t serial, size_t k)
{
    struct regional *r = &s->regional;
    uint32_t region = plan_of(r, serial)->regions.v[k].region;
    struct claim_at at = r->owner[region];

    if (live_in(s, region) == 0)
        return false;
    while (at.plan > serial)
        at = claim_of(r, at)->before;
    return at.plan == serial;
}

/* A node that does not confirm counts as lost; what else was on it fails [S-FLG-4]. */
static struct state give_up(struct pliant_sched *s, uint32_t serial)
{
    const struct regional *r = &s->regional;
    const struct restart_plan *plan = plan_of(&s->regional, serial);
    struct failure failure;

    for (size_t k = 0; k < plan->regions.n; k++) {
        uint32_t region = plan->regions.v[k].region;

        if (!waits_for(s, serial, k))
            continue;
        for (uint32_t m = r->regions.first[region]; m < r->regions.first[region + 1]; m++) {
            uint32_t v, i;

            regional_task(s, r->regions.members[m], &v, &i);
            task_give_up(s, v, i, &failure);
        }
    }
    return sched_undecided(s) ? s->way->failed(s, &failure) : s->way->look(s);
}

struct state regional_on_due(struct pliant_sched *s, struct deadline *due)
{
    struct regional *r = &s->regional;
    uint32_t serial = r->next_give_up;

    if (due == &r->due) {
        plan_of(r, r->next_due++)->delay_over = true;
        arm_due(s);
        return s->way->look(s);
    }
    r->next_give_up++;
    arm_give_up(s);
    return give_up(s, serial);
}

/* ---- invariants --------------------------------------------------------------------- */

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
            open += waits_for(s, serial, k) ? live_in(s, plan->regions.v[k].region) : 0;
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
            const struct task *task = regional_task(s, r->regions.members[m], &v, &i);

            for (const struct task *a = task; a; a = execution_next(&s->graph, a))
                if (r->owner[region].plan != 0 && task_seated(a) &&
                    a->state != PLIANT_TASK_CANCELING)
                    return "a region restarts with a task that nobody told to stop";
            if (r->owner[region].plan == 0 && task->state != PLIANT_TASK_FINISHED &&
                !task_live(task))
                return "a task is down and its region does not restart";
        }
    return NULL;
}

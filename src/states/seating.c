/* seating.c - see seating.h */
#include "states/seating.h"

#include "util/sort.h"

/* Where some task of it lives. On a node that will go nothing starts any more. */
uint32_t seating_home(const struct pliant_sched *s, uint32_t group, uint32_t subtask)
{
    const struct pliant_job *job = s->job;

    for (uint32_t m = job->group_first[group]; m < job->group_first[group + 1]; m++) {
        uint32_t v = job->group_members[m];

        const struct task *task =
            subtask < s->graph.parallelism[v] ? &s->graph.vertices[v].tasks[subtask] : NULL;

        if (task && task_seated(task) && !s->pool.slots.v[task->slot].leaving)
            return task->slot;
    }
    return POOL_NONE;
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

        if (again || seating_home(s, (uint32_t)units[k].major, units[k].minor) != POOL_NONE)
            continue;
        group_slots[units[k].major]++;
        found++;
    }
    return found;
}

/* In the slot of the unit's other tasks, or its own if that is free. */
static bool seat_at_home(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    uint32_t row = seating_home(s, s->job->group_of[v], i);
    uint32_t last = s->graph.vertices[v].tasks[i].slot;

    if (row == POOL_NONE && last < s->pool.slots.n && pool_slot_open(&s->pool.slots.v[last]))
        row = last;
    if (row == POOL_NONE)
        return false;
    execution_seat(&s->graph, &s->pool, v, i, row);
    return true;
}

/* Free slots, next[group] on, for those that have none; tasks of a unit share one. */
static void seat_elsewhere(struct pliant_sched *s, const struct sort_item *tasks, size_t n,
                           const uint32_t *slots, uint32_t *next)
{
    for (size_t k = 0; k < n; k++) {
        uint32_t v = tasks[k].value, group = s->job->group_of[v];
        uint32_t row = seating_home(s, group, tasks[k].minor);

        if (task_seated(&s->graph.vertices[v].tasks[tasks[k].minor]))
            continue; /* at home */
        execution_seat(&s->graph, &s->pool, v, tasks[k].minor,
                       row != POOL_NONE ? row : slots[next[group]++] - 1);
    }
}

static void find_slots(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    uint32_t *group_slots = outbox_block(s, 2 * (size_t)s->job->n_groups, sizeof *group_slots);
    uint32_t units = group_slots ? count_homeless(s, tasks, n, group_slots) : 0;
    uint32_t *slots = outbox_block(s, (size_t)units + 1, sizeof *slots);
    uint32_t *next = group_slots ? group_slots + s->job->n_groups : NULL;

    if (!group_slots || !slots || s->no_memory || !place_units_anew(s, group_slots, units, slots))
        return; /* no memory */
    for (uint32_t g = 1; g < s->job->n_groups; g++)
        next[g] = next[g - 1] + group_slots[g - 1];
    seat_elsewhere(s, tasks, n, slots, next);
}

uint32_t seating_needs(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    uint32_t *unused = outbox_block(s, s->job->n_groups, sizeof *unused);

    return unused ? count_homeless(s, tasks, n, unused) : 0;
}

/* Where regions start one by one no start looks at all free slots. */
static void seat_in_line(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        uint32_t v = tasks[k].value, i = tasks[k].minor;
        uint32_t row = seating_home(s, s->job->group_of[v], i);

        if (!task_seated(&s->graph.vertices[v].tasks[i]))
            execution_seat(&s->graph, &s->pool, v, i, row != POOL_NONE ? row : s->pool.idle_first);
    }
}

void seating_take(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    size_t homeless = 0;

    for (size_t k = 0; k < n; k++)
        homeless += !seat_at_home(s, tasks[k].value, tasks[k].minor);
    if (homeless == 0)
        return;
    if (s->way->rescales || s->cfg.spread != PLIANT_SPREAD_NONE)
        find_slots(s, tasks, n);
    else
        seat_in_line(s, tasks, n);
}

const uint32_t *seating_spread(struct pliant_sched *s, size_t n)
{
    uint32_t *group_slots, *slots;

    if (s->cfg.spread == PLIANT_SPREAD_NONE)
        return NULL;
    group_slots = outbox_block(s, s->job->n_groups, sizeof *group_slots);
    slots = outbox_block(s, n, sizeof *slots);
    if (!group_slots || !slots)
        return NULL;
    group_slots[0] = (uint32_t)n; /* which group it is does not matter */
    return place_units_anew(s, group_slots, (uint32_t)n, slots) ? slots : NULL;
}

void seating_take_single(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    const uint32_t *slots = seating_spread(s, n);

    for (size_t k = 0; !s->no_memory && k < n; k++)
        execution_seat(&s->graph, &s->pool, tasks[k].value, tasks[k].minor,
                       slots ? slots[k] - 1 : s->pool.idle_first);
}

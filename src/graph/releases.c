/* releases.c - see releases.h */
#include "graph/releases.h"

#include <errno.h>

#include "util/vec.h"

struct step {
    void (*release)(void *ctx, uint32_t edge, struct range producers);
    void *ctx;
};

/* Add to, or take from, the readers of all that the task reads. */
static void count_reader(struct releases *l, uint32_t task, bool open, const struct step *step)
{
    const struct topology *t = l->topology;
    uint32_t vertex = t->vertex_of[task], subtask = task - t->first_task[vertex];

    for (uint32_t i = t->in_first[vertex]; i < t->in_first[vertex + 1]; i++) {
        uint32_t edge = t->in_edges[i], group;

        if (t->job->edges[edge].exchange != PLIANT_BLOCKING)
            continue;
        group = topology_group_read(t, edge, subtask);
        if (open)
            l->open_readers[group]++;
        else if (--l->open_readers[group] == 0)
            step->release(step->ctx, edge, topology_group_producers(t, edge, group));
    }
}

static void count_region(struct releases *l, uint32_t region, bool open, const struct step *step)
{
    const struct regions *r = l->regions;

    for (uint32_t i = r->first[region]; i < r->first[region + 1]; i++)
        count_reader(l, r->members[i], open, step);
}

static bool make_room(struct releases *l)
{
    const struct topology *t = l->topology;

    return array_reserve(l->alloc, &l->finished, &l->cap_tasks, topology_tasks(t),
                         sizeof *l->finished) &&
           array_reserve(l->alloc, &l->open_readers, &l->cap_groups, t->n_groups,
                         sizeof *l->open_readers) &&
           array_reserve(l->alloc, &l->open_tasks, &l->cap_regions, l->regions->n,
                         sizeof *l->open_tasks);
}

int releases_add(struct releases *l)
{
    if (!make_room(l))
        return -ENOMEM;
    for (; l->n_regions < l->regions->n; l->n_regions++) {
        l->open_tasks[l->n_regions] =
            l->regions->first[l->n_regions + 1] - l->regions->first[l->n_regions];
        count_region(l, l->n_regions, true, NULL);
    }
    return 0;
}

int releases_init(struct releases *l, const struct topology *t, const struct regions *r,
                  const struct pliant_alloc *a)
{
    *l = (struct releases){.topology = t, .regions = r, .alloc = a};
    if (releases_add(l) == 0)
        return 0;
    releases_free(l);
    return -ENOMEM;
}

void releases_free(struct releases *l)
{
    mem_free(l->alloc, l->finished);
    mem_free(l->alloc, l->open_tasks);
    mem_free(l->alloc, l->open_readers);
    *l = (struct releases){0};
}

void releases_finished(struct releases *l, uint32_t task,
                       void (*release)(void *ctx, uint32_t edge, struct range producers), void *ctx)
{
    uint32_t region = l->regions->of_task[task];

    if (l->finished[task])
        return;
    l->finished[task] = true;
    if (--l->open_tasks[region] == 0)
        count_region(l, region, false, &(struct step){release, ctx});
}

void releases_unfinished(struct releases *l, uint32_t task)
{
    uint32_t region = l->regions->of_task[task];

    if (!l->finished[task])
        return;
    l->finished[task] = false;
    if (l->open_tasks[region]++ == 0)
        count_region(l, region, true, NULL);
}

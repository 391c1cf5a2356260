/* releases.c - see releases.h */
#include "graph/releases.h"

#include <errno.h>

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

int releases_init(struct releases *l, const struct topology *t, const struct regions *r,
                  const struct pliant_alloc *a)
{
    *l = (struct releases){.topology = t, .regions = r, .alloc = a};
    l->finished = mem_zero(a, (size_t)topology_tasks(t) + 1, sizeof *l->finished);
    l->open_tasks = mem_zero(a, (size_t)r->n + 1, sizeof *l->open_tasks);
    l->open_readers =
        mem_zero(a, (size_t)t->first_group[t->job->n_edges] + 1, sizeof *l->open_readers);
    if (!l->finished || !l->open_tasks || !l->open_readers) {
        releases_free(l);
        return -ENOMEM;
    }
    for (uint32_t region = 0; region < r->n; region++) {
        l->open_tasks[region] = r->first[region + 1] - r->first[region];
        count_region(l, region, true, NULL);
    }
    return 0;
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

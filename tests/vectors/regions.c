/* regions.c - measured wiring, regions, and tasks that restart with a failed one */
#include "topology.h"

#include <stdlib.h>
#include <string.h>

/* ---- wiring and regions -----------------------------------------------------------------------
 */

static cJSON *wiring(const struct vector_job *v)
{
    cJSON *all = cJSON_CreateArray();

    for (uint32_t e = 0; e < v->job->n_edges; e++) {
        cJSON *edge = cJSON_CreateArray();

        for (uint32_t p = 0; p < topology_parallelism(&v->topology, v->job->edges[e].from); p++) {
            struct range r = topology_consumers(&v->topology, e, p);
            cJSON *consumers = cJSON_CreateArray();

            for (uint32_t c = r.first; c < r.end; c++)
                cJSON_AddItemToArray(consumers, cJSON_CreateNumber(c));
            cJSON_AddItemToArray(edge, consumers);
        }
        cJSON_AddItemToArray(all, edge);
    }
    return all;
}

static cJSON *region_tasks(const struct vector_job *v, uint32_t region)
{
    uint32_t first = v->regions.first[region], n = v->regions.first[region + 1] - first;
    uint32_t *tasks = malloc((n + 1) * sizeof *tasks);

    if (!tasks)
        abort();
    memcpy(tasks, v->regions.members + first, n * sizeof *tasks);
    return vector_task_list(v, tasks, n);
}

/* Regions as the file orders them: by their first task. */
static cJSON *regions(const struct vector_job *v)
{
    uint32_t n_tasks = topology_tasks(&v->topology), *tasks = malloc(n_tasks * sizeof *tasks);
    bool *listed = calloc(v->regions.n, sizeof *listed);
    cJSON *all = cJSON_CreateArray(), *ordered, *name;

    if (!tasks || !listed)
        abort();
    for (uint32_t i = 0; i < n_tasks; i++)
        tasks[i] = i;
    ordered = vector_task_list(v, tasks, n_tasks);
    cJSON_ArrayForEach(name, ordered)
    {
        uint32_t region = v->regions.of_task[vector_task(v, name->valuestring)];

        if (!listed[region])
            cJSON_AddItemToArray(all, region_tasks(v, region));
        listed[region] = true;
    }
    cJSON_Delete(ordered);
    free(listed);
    return all;
}

/* What the numbers of regions promise: what one reads comes from a lower one. */
static bool in_order(const struct vector_job *v)
{
    for (uint32_t e = 0; e < v->job->n_edges; e++) {
        const struct pliant_edge_spec *edge = &v->job->edges[e];

        for (uint32_t p = 0; p < topology_parallelism(&v->topology, edge->from); p++) {
            struct range r = topology_consumers(&v->topology, e, p);
            uint32_t from = v->regions.of_task[v->topology.first_task[edge->from] + p];

            for (uint32_t c = r.first; c < r.end; c++)
                if (from > v->regions.of_task[v->topology.first_task[edge->to] + c])
                    return false;
        }
    }
    return true;
}

static int check_regions(const struct vector_job *v, const cJSON *expect, char *why, size_t size)
{
    if (!in_order(v))
        return vectors_say(why, size, "regions are not numbered in topological order");
    return vector_compare(vectors_member(expect, "regions"), regions(v), "regions", why, size) ||
           vector_compare(vectors_member(expect, "wiring"), wiring(v), "wiring", why, size);
}

/* ---- failover -----------------------------------------------------------------------------------
 */

struct situation {
    const struct vector_job *v;
    bool *created, *lost;
    int64_t error_edge;
    uint32_t error_producer;
};

static bool available(const void *ctx, uint32_t edge, uint32_t producer)
{
    const struct situation *s = ctx;

    return !s->created[producer] && !s->lost[producer] &&
           !(edge == s->error_edge && producer == s->error_producer);
}

static bool *tasks_named(const struct vector_job *v, const cJSON *names)
{
    bool *marks = calloc(topology_tasks(&v->topology) + 1, sizeof *marks);
    const cJSON *name;

    if (!marks)
        abort();
    cJSON_ArrayForEach(name, names) marks[vector_task(v, name->valuestring)] = true;
    return marks;
}

static cJSON *restarted(const struct situation *s, const struct restart_search *search)
{
    const struct regions *r = &s->v->regions;
    uint32_t *tasks = malloc((topology_tasks(&s->v->topology) + 1) * sizeof *tasks);
    size_t n = 0;

    if (!tasks)
        abort();
    for (uint32_t k = 0; k < search->n_found; k++)
        for (uint32_t i = r->first[search->found[k]]; i < r->first[search->found[k] + 1]; i++)
            if (!s->created[r->members[i]])
                tasks[n++] = r->members[i];
    return vector_task_list(s->v, tasks, n);
}

static cJSON *everything(const struct vector_job *v)
{
    uint32_t n = topology_tasks(&v->topology), *tasks = malloc((n + 1) * sizeof *tasks);

    if (!tasks)
        abort();
    for (uint32_t i = 0; i < n; i++)
        tasks[i] = i;
    return vector_task_list(v, tasks, n);
}

static int check_failover(const struct vector_job *v, const cJSON *line, char *why, size_t size)
{
    const cJSON *failure = vectors_member(line, "failure"),
                *error = vectors_find(failure, "partition_error");
    struct situation s = {.v = v,
                          .created = tasks_named(v, vectors_find(failure, "created")),
                          .lost = tasks_named(v, vectors_find(failure, "partition_lost")),
                          .error_edge = -1};
    struct restart_search search;
    cJSON *answer;

    if (error) {
        s.error_edge = vectors_int(error, "edge");
        s.error_producer = v->topology.first_task[v->job->edges[s.error_edge].from] +
                           (uint32_t)vectors_int(error, "producer_subtask");
    }
    if (restart_search_init(&search, &v->topology, &v->regions, NULL) < 0)
        abort();
    restart_search(&search, vector_task(v, vectors_text(failure, "failed")), available, &s);
    answer = strcmp(vectors_text(line, "strategy"), "full") == 0 ? everything(v)
                                                                 : restarted(&s, &search);
    restart_search_free(&search);
    free(s.created);
    free(s.lost);
    return vector_compare(vectors_member(vectors_member(line, "expect"), "restart"), answer,
                          "restart", why, size);
}

int run_regions(const cJSON *line, char *why, size_t size)
{
    struct vector_job v;
    int differs;

    if (!vector_job_make(line, &v, why, size))
        return 1;
    differs = strcmp(vectors_text(line, "kind"), "failover") == 0
                  ? check_failover(&v, line, why, size)
                  : check_regions(&v, vectors_member(line, "expect"), why, size);
    vector_job_free(&v);
    return differs;
}

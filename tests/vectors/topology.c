/* topology.c - see topology.h */
#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum pliant_pattern pattern_of(const cJSON *edge)
{
    return strcmp(vectors_text(edge, "pattern"), "pointwise") == 0 ? PLIANT_POINTWISE
                                                                   : PLIANT_ALL_TO_ALL;
}

static enum pliant_exchange exchange_of(const cJSON *edge)
{
    return strcmp(vectors_text(edge, "exchange"), "blocking") == 0 ? PLIANT_BLOCKING
                                                                   : PLIANT_PIPELINED;
}

static uint32_t index_of(const cJSON *vertices, const char *id)
{
    uint32_t i = 0;
    const cJSON *vertex;

    cJSON_ArrayForEach(vertex, vertices)
    {
        if (strcmp(vectors_text(vertex, "id"), id) == 0)
            return i;
        i++;
    }
    return UINT32_MAX;
}

static struct pliant_job *make_job(const cJSON *spec, char *why, size_t size)
{
    const cJSON *vertices = vectors_member(spec, "vertices"), *edges = vectors_find(spec, "edges");
    size_t n_vertices = (size_t)cJSON_GetArraySize(vertices),
           n_edges = (size_t)cJSON_GetArraySize(edges), n = 0;
    struct pliant_vertex_spec *v = calloc(n_vertices + 1, sizeof *v);
    struct pliant_edge_spec *e = calloc(n_edges + 1, sizeof *e);
    struct pliant_job *job = NULL;
    struct pliant_error error;
    const cJSON *item;

    if (!v || !e)
        abort();
    cJSON_ArrayForEach(item, vertices) v[n++] =
        (struct pliant_vertex_spec){.id = vectors_text(item, "id"),
                                    .parallelism = vectors_int(item, "parallelism"),
                                    .max_parallelism = vectors_int_or(item, "max_parallelism", 0)};
    n = 0;
    cJSON_ArrayForEach(item, edges) e[n++] =
        (struct pliant_edge_spec){.from = index_of(vertices, vectors_text(item, "from")),
                                  .to = index_of(vertices, vectors_text(item, "to")),
                                  .pattern = pattern_of(item),
                                  .exchange = exchange_of(item)};
    if (pliant_job_new(
            &(struct pliant_job_spec){
                .vertices = v, .n_vertices = n_vertices, .edges = e, .n_edges = n_edges},
            NULL, &job, &error) < 0)
        vectors_say(why, size, "the job is refused: %s", error.text);
    free(v);
    free(e);
    return job;
}

bool vector_job_make(const cJSON *line, struct vector_job *ret, char *why, size_t size)
{
    uint32_t *parallelism;

    ret->job = make_job(vectors_member(line, "job"), why, size);
    if (!ret->job)
        return false;
    parallelism = calloc(ret->job->n_vertices, sizeof *parallelism);
    if (!parallelism)
        abort();
    for (uint32_t v = 0; v < ret->job->n_vertices; v++)
        parallelism[v] = ret->job->vertices[v].parallelism;
    if (topology_init(&ret->topology, ret->job, parallelism, false, NULL) < 0 ||
        regions_init(&ret->regions, &ret->topology, NULL) < 0)
        abort();
    free(parallelism);
    return true;
}

void vector_job_free(struct vector_job *v)
{
    regions_free(&v->regions);
    topology_free(&v->topology);
    pliant_job_destroy(&v->job);
}

uint32_t vector_task(const struct vector_job *v, const char *name)
{
    const char *colon = strrchr(name, ':');
    char vertex[PLIANT_NAME_MAX + 1];

    snprintf(vertex, sizeof vertex, "%.*s", (int)(colon - name), name);
    return v->topology.first_task[pliant_job_vertex_find(v->job, vertex).v - 1] +
           (uint32_t)atoi(colon + 1);
}

static void name_task(const struct vector_job *v, uint32_t task, char *ret, size_t size)
{
    uint32_t vertex = v->topology.vertex_of[task];

    snprintf(ret, size, "%s:%u", v->job->vertices[vertex].name,
             task - v->topology.first_task[vertex]);
}

cJSON *vector_task_name(const struct vector_job *v, uint32_t task)
{
    char name[PLIANT_NAME_MAX + 16];

    name_task(v, task, name, sizeof name);
    return cJSON_CreateString(name);
}

static const struct vector_job *sorting;

static int by_name(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t vx = sorting->topology.vertex_of[x], vy = sorting->topology.vertex_of[y];

    if (vx != vy)
        return strcmp(sorting->job->vertices[vx].name, sorting->job->vertices[vy].name);
    return (x > y) - (x < y);
}

cJSON *vector_task_list(const struct vector_job *v, uint32_t *tasks, size_t n)
{
    cJSON *list = cJSON_CreateArray();

    sorting = v;
    qsort(tasks, n, sizeof *tasks, by_name);
    for (size_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, vector_task_name(v, tasks[i]));
    free(tasks);
    return list;
}

int vector_compare(const cJSON *expect, cJSON *answer, const char *what, char *why, size_t size)
{
    int differs = !cJSON_Compare(expect, answer, true);

    if (differs) {
        char *got = cJSON_PrintUnformatted(answer);

        vectors_say(why, size, "%s: got %s", what, got ? got : "?");
        cJSON_free(got);
    }
    cJSON_Delete(answer);
    return differs;
}

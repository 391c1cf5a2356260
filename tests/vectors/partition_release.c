/* partition_release.c - measured: which results nobody will read any more after each event */
#include "topology.h"

#include <stdlib.h>
#include <string.h>

#include "graph/releases.h"

struct pair {
    uint32_t edge, producer;
};

struct released {
    struct pair *v;
    size_t n;
};

static void add(void *ctx, uint32_t edge, struct range producers)
{
    struct released *r = ctx;

    for (uint32_t p = producers.first; p < producers.end; p++) {
        r->v = realloc(r->v, (r->n + 1) * sizeof *r->v);
        if (!r->v)
            abort();
        r->v[r->n++] = (struct pair){edge, p};
    }
}

static int by_edge(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->edge != y->edge)
        return x->edge < y->edge ? -1 : 1;
    return (x->producer > y->producer) - (x->producer < y->producer);
}

static cJSON *listed(struct released *r)
{
    cJSON *list = cJSON_CreateArray();

    if (r->n > 0)
        qsort(r->v, r->n, sizeof *r->v, by_edge);
    for (size_t i = 0; i < r->n; i++)
        cJSON_AddItemToArray(
            list, cJSON_CreateIntArray((int[]){(int)r->v[i].edge, (int)r->v[i].producer}, 2));
    free(r->v);
    return list;
}

static cJSON *after(struct releases *l, const struct vector_job *v, const cJSON *event)
{
    const char *what = cJSON_GetArrayItem(event, 0)->valuestring;
    uint32_t task = vector_task(v, cJSON_GetArrayItem(event, 1)->valuestring);
    struct released r = {0};

    if (strcmp(what, "finished") == 0)
        releases_finished(l, task, add, &r);
    else
        releases_unfinished(l, task);
    return listed(&r);
}

int run_partition_release(const cJSON *line, char *why, size_t size)
{
    struct vector_job v;
    struct releases l;
    cJSON *answer = cJSON_CreateArray();
    const cJSON *event;
    int differs;

    if (!vector_job_make(line, &v, why, size)) {
        cJSON_Delete(answer);
        return 1;
    }
    if (releases_init(&l, &v.topology, &v.regions, NULL) < 0)
        abort();
    cJSON_ArrayForEach(event, vectors_member(line, "events"))
        cJSON_AddItemToArray(answer, after(&l, &v, event));
    differs = vector_compare(vectors_member(vectors_member(line, "expect"), "released"), answer,
                             "released", why, size);
    releases_free(&l);
    vector_job_free(&v);
    return differs;
}

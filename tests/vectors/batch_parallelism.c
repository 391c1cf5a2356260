/* batch_parallelism.c - measured parallelism of batch vertices, and what each task reads */
#include "topology.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/batch.h"

static struct batch_limits limits_of(const cJSON *config)
{
    int64_t max = vectors_int(config, "max_parallelism");

    return (struct batch_limits){
        .volume = vectors_int(config, "avg_data_volume_per_task"),
        .min = vectors_int(config, "min_parallelism"),
        .max = max,
        .default_source_parallelism = vectors_int_or(config, "default_source_parallelism", max),
        .skew_factor =
            vectors_find(config, "skewed_factor") ? vectors_double(config, "skewed_factor") : 4.0,
        .skew_threshold = vectors_int_or(config, "skewed_threshold", 268435456)};
}

static int64_t *matrix(const cJSON *rows, uint32_t *ret_p, uint32_t *ret_s)
{
    const cJSON *row, *cell;
    int64_t *bytes;
    size_t n = 0;

    *ret_p = (uint32_t)cJSON_GetArraySize(rows);
    *ret_s = (uint32_t)cJSON_GetArraySize(cJSON_GetArrayItem(rows, 0));
    bytes = calloc((size_t)*ret_p * *ret_s + 1, sizeof *bytes);
    if (!bytes)
        abort();
    cJSON_ArrayForEach(row, rows)
    {
        cJSON_ArrayForEach(cell, row) bytes[n++] = (int64_t)cell->valuedouble;
    }
    return bytes;
}

static struct batch_input input_of(const cJSON *item)
{
    struct batch_input in = {.pattern = strcmp(vectors_text(item, "pattern"), "pointwise") == 0
                                            ? PLIANT_POINTWISE
                                            : PLIANT_ALL_TO_ALL,
                             .broadcast = vectors_bool(item, "broadcast"),
                             .single = vectors_bool(item, "single_subpartition_has_all"),
                             .inter = vectors_bool(item, "inter_inputs_keys_correlated"),
                             .intra = vectors_bool(item, "intra_input_key_correlated"),
                             .type = vectors_int(item, "type_number")};

    in.bytes = matrix(vectors_member(item, "bytes"), &in.partitions, &in.subpartitions);
    return in;
}

static cJSON *reads_of(const struct batch_plan *plan, size_t input)
{
    const uint32_t *first = plan->first + input * (plan->parallelism + 1);
    cJSON *tasks = cJSON_CreateArray();

    for (uint32_t k = 0; k < plan->parallelism; k++) {
        cJSON *list = cJSON_CreateArray();

        for (uint32_t i = first[k]; i < first[k + 1]; i++) {
            const struct batch_range *r = &plan->ranges.v[i];

            cJSON_AddItemToArray(
                list,
                cJSON_CreateIntArray((int[]){(int)r->p0, (int)r->p1, (int)r->s0, (int)r->s1}, 4));
        }
        cJSON_AddItemToArray(tasks, list);
    }
    return tasks;
}

static cJSON *answer_of(const cJSON *list, int rc, const struct batch_plan *plan)
{
    cJSON *answer = cJSON_CreateObject(), *inputs;
    const cJSON *item;
    size_t i = 0;

    if (rc < 0) {
        cJSON_AddStringToObject(answer, "error", "invalid_input");
        return answer;
    }
    cJSON_AddNumberToObject(answer, "parallelism", plan->parallelism);
    inputs = cJSON_AddObjectToObject(answer, "inputs");
    cJSON_ArrayForEach(item, list)
        cJSON_AddItemToObject(inputs, vectors_text(item, "id"), reads_of(plan, i++));
    return answer;
}

int run_batch_parallelism(const cJSON *line, char *why, size_t size)
{
    const cJSON *vertex = vectors_member(line, "vertex"), *list = vectors_member(line, "inputs"),
                *item;
    struct batch_limits limits = limits_of(vectors_member(line, "config"));
    struct batch_vertex v = {vectors_int(vertex, "parallelism"),
                             vectors_int(vertex, "min_parallelism"),
                             vectors_int(vertex, "max_parallelism")};
    size_t n = 0;
    struct batch_input *inputs = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *inputs);
    struct batch_plan plan = {0};
    cJSON *answer;
    int rc;

    if (!inputs)
        abort();
    cJSON_ArrayForEach(item, list) inputs[n++] = input_of(item);
    rc = batch_decide(&limits, &v, inputs, n, NULL, &plan);
    answer = answer_of(list, rc, &plan);
    batch_plan_free(&plan, NULL);
    for (size_t i = 0; i < n; i++)
        free((void *)inputs[i].bytes);
    free(inputs);
    return vector_compare(vectors_member(line, "expect"), answer, "answer", why, size);
}

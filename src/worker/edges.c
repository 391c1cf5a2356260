/* edges.c - see edges.h */
#include "worker/edges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/json_read.h"

/* ---- files --------------------------------------------------------------------------------------
 */

/* The whole file; the caller frees. */
static int slurp(const char *path, char **ret, size_t *ret_n)
{
    FILE *in = fopen(path, "re"), *out;
    char piece[8192];
    size_t n;
    int r = 0;

    if (!in)
        return -errno;
    *ret = NULL;
    out = open_memstream(ret, ret_n);
    while (out && (n = fread(piece, 1, sizeof piece, in)) > 0)
        fwrite(piece, 1, n, out);
    if (ferror(in))
        r = -EIO;
    fclose(in);
    if (!out || fclose(out) != 0)
        r = -ENOMEM;
    if (r < 0)
        free(*ret);
    return r;
}

static size_t count(struct json_span list)
{
    struct json_at at = {0};
    size_t n = 0;

    while (json_next(list, &at))
        n++;
    return n;
}

static int index_of(struct json_span value, uint32_t *ret)
{
    int64_t n;
    int r = json_int64(value, &n);

    if (r < 0 || n < 0 || n > UINT32_MAX)
        return -EINVAL;
    *ret = (uint32_t)n;
    return 0;
}

static int text_of(struct json_span value, const char **ret)
{
    char *text = NULL;
    int r = json_text(value, &text);

    *ret = text;
    return r == -ENOENT ? -EINVAL : r;
}

/* ---- inputs
 * ---------------------------------------------------------------------------------------- */

static int read_partition(struct json_span map, struct pliant_worker_partition *ret)
{
    struct json_span pair = json_get(map, "subpartitions");
    struct json_at at = {0};
    int r = index_of(json_get(map, "subtask"), &ret->subtask);

    r = r < 0 ? r : index_of(json_get(map, "attempt"), &ret->attempt);
    if (r == 0)
        r = count(pair) == 2 && json_next(pair, &at) ? index_of(at.value, &ret->first) : -EINVAL;
    if (r == 0)
        r = json_next(pair, &at) ? index_of(at.value, &ret->last) : -EINVAL;
    if (r == 0 && ret->first > ret->last)
        r = -EINVAL;
    return r < 0 ? r : text_of(json_get(map, "dir"), &ret->dir);
}

static int read_input(struct json_span map, struct pliant_worker_input *ret)
{
    struct json_span list = json_get(map, "partitions");
    struct pliant_worker_partition *v;
    struct json_at at = {0};
    int r = index_of(json_get(map, "edge"), &ret->edge);

    r = r < 0 ? r : text_of(json_get(map, "from"), &ret->from);
    if (r == 0 && !json_is(list, '['))
        r = -EINVAL;
    if (r < 0)
        return r;
    v = calloc(count(list) + 1, sizeof *v);
    if (!v)
        return -ENOMEM;
    ret->partitions = v;
    while (r == 0 && json_next(list, &at))
        r = read_partition(at.value, &v[ret->n_partitions++]);
    return r;
}

static int read_inputs(struct json_span list, struct edges *e)
{
    struct json_at at = {0};
    int r = 0;

    e->inputs = calloc(count(list) + 1, sizeof *e->inputs);
    if (!e->inputs)
        return -ENOMEM;
    while (r == 0 && json_next(list, &at))
        r = read_input(at.value, &e->inputs[e->n_inputs++]);
    return r;
}

/* ---- outputs
 * --------------------------------------------------------------------------------------- */

static int read_output(struct json_span map, struct pliant_worker_output *ret)
{
    int r = index_of(json_get(map, "edge"), &ret->edge);

    r = r < 0 ? r : index_of(json_get(map, "subpartitions"), &ret->subpartitions);
    r = r < 0 ? r : text_of(json_get(map, "to"), &ret->to);
    return r < 0 ? r : text_of(json_get(map, "dir"), &ret->dir);
}

static int read_outputs(struct json_span list, struct edges *e)
{
    struct json_at at = {0};
    int r = 0;

    e->outputs = calloc(count(list) + 1, sizeof *e->outputs);
    if (!e->outputs)
        return -ENOMEM;
    while (r == 0 && json_next(list, &at))
        r = read_output(at.value, &e->outputs[e->n_outputs++]);
    return r;
}

/* ---- both
 * ------------------------------------------------------------------------------------------ */

static int read_list(const char *path, int (*read)(struct json_span list, struct edges *e),
                     struct edges *e, char *error)
{
    struct json_span list;
    char *text;
    size_t n;
    int r;

    if (!path)
        return 0;
    r = slurp(path, &text, &n);
    if (r < 0) {
        snprintf(error, EDGES_ERROR_SIZE, "%.180s: %s", path, strerror(-r));
        return r;
    }
    list = json_read(text, n);
    r = json_is(list, '[') ? read(list, e) : -EINVAL;
    if (r < 0)
        snprintf(error, EDGES_ERROR_SIZE, "%.180s: %s", path,
                 r == -ENOMEM ? "no memory" : "not what docs/worker.md says");
    free(text);
    return r;
}

int edges_read(const char *inputs_path, const char *outputs_path, struct edges *ret,
               char error[EDGES_ERROR_SIZE])
{
    int r;

    *ret = (struct edges){0};
    r = read_list(inputs_path, read_inputs, ret, error);
    return r < 0 ? r : read_list(outputs_path, read_outputs, ret, error);
}

static void free_input(struct pliant_worker_input *in)
{
    for (size_t i = 0; i < in->n_partitions; i++)
        free((char *)in->partitions[i].dir);
    free((void *)in->partitions);
    free((char *)in->from);
}

void edges_free(struct edges *e)
{
    for (size_t i = 0; i < e->n_inputs; i++)
        free_input(&e->inputs[i]);
    for (size_t i = 0; i < e->n_outputs; i++) {
        free((char *)e->outputs[i].to);
        free((char *)e->outputs[i].dir);
    }
    free(e->inputs);
    free(e->outputs);
    *e = (struct edges){0};
}

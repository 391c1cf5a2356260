/* job_spec.c - see job_spec.h */
#include "spec/job_spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "spec/doc_build.h"
#include "spec/options.h"
#include "spec/memory.h"
#include "util/decimal.h"
#include "util/hash.h"
#include "util/nearest.h"

#define hash_alloc spec_memory

#define TEXT_MAX 65536u /* bytes of an argument, a variable, a path */

const char *const job_spec_partitioners[] = {
    [PLIANT_PARTITIONER_DEFAULT] = "",
    [PLIANT_PARTITIONER_HASH] = "hash",
    [PLIANT_PARTITIONER_CUSTOM] = "custom",
    [PLIANT_PARTITIONER_REBALANCE] = "rebalance",
    [PLIANT_PARTITIONER_BROADCAST] = "broadcast",
    [PLIANT_PARTITIONER_FORWARD] = "forward",
    [PLIANT_PARTITIONER_RESCALE] = "rescale",
    NULL,
};

/* ---- memory ---------------------------------------------------------------------------------- */

struct job_block {
    struct job_block *next;
    alignas(max_align_t) char bytes[];
};

/* A vertex's place in the job, by name. */
struct name {
    const char *id;
    uint32_t index;
    UT_hash_handle hh;
};

struct decoder {
    const struct doc_file *f;
    struct spec_error *err;
    struct job_spec *spec;

    struct pliant_job_spec job; /* what it is made of; these arrays are temporary */
    struct pliant_vertex_spec *vertices;
    struct pliant_edge_spec *edges;
    struct name *names; /* [n_vertices] */
    struct name *by_name;
};

/* Zeroed, and freed with the spec. n may be 0. */
static void *own(struct decoder *d, size_t n, size_t size)
{
    struct job_block *b = NULL;

    if (n < (SIZE_MAX - sizeof *b) / size)
        b = mem_resize(spec_memory, NULL, 1, sizeof *b + n * size);
    if (!b) {
        doc_no_memory(d->f, d->err);
        return NULL;
    }
    memset(b->bytes, 0, n * size);
    b->next = d->spec->blocks;
    d->spec->blocks = b;
    return b->bytes;
}

static const char *own_text(struct decoder *d, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = own(d, n, 1);

    return copy ? memcpy(copy, text, n) : NULL;
}

void job_spec_free(struct job_spec *spec)
{
    struct job_block *b = spec->blocks;

    for (struct job_block *next; b; b = next) {
        next = b->next;
        mem_free(spec_memory, b);
    }
    pliant_job_destroy(&spec->job);
    doc_free(&spec->doc);
    *spec = (struct job_spec){0};
}

/* ---- small questions ------------------------------------------------------------------------- */

static int needed(const struct decoder *d, const struct doc *map, const char *key,
                  const char *accepted, int r)
{
    if (r != -ENOENT)
        return r;
    return doc_error(d->f, map, d->err, "\"%s\" is missing; accepted: %s", key, accepted);
}

static int parallelism(const struct decoder *d, const struct doc *map, const char *key,
                       int64_t *ret)
{
    return doc_optional(doc_int(d->f, map, key, 1, PLIANT_MAX_PARALLELISM, ret, d->err));
}

/* One of the words, which end with a NULL; the index is the enum's. "" is none. */
static int word(const struct decoder *d, const struct doc *map, const char *key,
                const char *const *words, unsigned *ret)
{
    char accepted[128] = "";
    const char *text;
    int r = doc_string(d->f, map, key, PLIANT_NAME_MAX, &text, d->err);

    if (r < 0)
        return doc_optional(r);
    for (unsigned i = 0; words[i]; i++) {
        size_t n = strlen(accepted);

        if (*words[i] && strcmp(words[i], text) == 0) {
            *ret = i;
            return 0;
        }
        snprintf(accepted + n, sizeof accepted - n, "%s%s", n > 0 ? " | " : "", words[i]);
    }
    return doc_error(d->f, doc_get(map, key), d->err, "is \"%.40s\"; accepted: %s", text, accepted);
}

static int truth(const struct decoder *d, const struct doc *map, const char *key, bool *ret)
{
    const struct doc *at = doc_get(map, key);

    if (!at)
        return 0;
    if (at->kind != DOC_BOOL)
        return doc_error(d->f, at, d->err, "is %s; accepted: true | false",
                         doc_kind_name(at->kind));
    *ret = at->truth;
    return 0;
}

/* N, or [min, max]. */
static int range(const struct decoder *d, const struct doc *map, const char *key,
                 struct job_range *ret)
{
    const struct doc *at = doc_get(map, key);
    int r;

    if (!at)
        return 0;
    if (at->kind != DOC_LIST) {
        r = doc_as_int(d->f, at, 0, DOC_INTEGER_MAX, &ret->min, d->err);
        ret->max = ret->min;
        return r;
    }
    if (at->n != 2)
        return doc_error(d->f, at, d->err, "has %u elements; accepted: a number, or [min, max]",
                         at->n);
    r = doc_as_int(d->f, at->child, 0, DOC_INTEGER_MAX, &ret->min, d->err);
    if (r == 0)
        r = doc_as_int(d->f, at->child->next, ret->min, DOC_INTEGER_MAX, &ret->max, d->err);
    return r;
}

/* ---- a vertex -------------------------------------------------------------------------------- */

static int decode_sim(const struct decoder *d, const struct doc *vertex, struct job_vertex_sim *ret)
{
    static const char *const keys[] = {"duration_ms", "bytes", "deploy_ms", "fail_every_ms", NULL};
    const struct job_range unset = {JOB_SIM_UNSET, JOB_SIM_UNSET};
    const struct doc *sim = doc_get(vertex, "sim");
    int r;

    *ret = (struct job_vertex_sim){unset, unset, JOB_SIM_UNSET, JOB_SIM_UNSET};
    if (!sim)
        return 0;
    r = doc_known_keys(d->f, sim, keys, d->err);
    if (r == 0)
        r = range(d, sim, "duration_ms", &ret->duration_ms);
    if (r == 0)
        r = range(d, sim, "bytes", &ret->bytes);
    if (r == 0)
        r = doc_optional(
            doc_int(d->f, sim, "deploy_ms", 0, DOC_INTEGER_MAX, &ret->deploy_ms, d->err));
    if (r == 0)
        r = doc_optional(
            doc_int(d->f, sim, "fail_every_ms", 1, DOC_INTEGER_MAX, &ret->fail_every_ms, d->err));
    return r;
}

static int decode_argv(struct decoder *d, const struct doc *vertex, struct job_command *ret)
{
    const struct doc *list;
    const char **argv;
    int r = doc_container(d->f, vertex, "command", DOC_LIST, &list, d->err);

    if (r < 0)
        return doc_optional(r);
    if (list->n == 0 || list->child->kind != DOC_STRING || !*list->child->text)
        return doc_error(d->f, list, d->err,
                         "names no program; accepted: a list of strings, the program first");
    argv = own(d, list->n + 1, sizeof *argv);
    if (!argv)
        return -ENOMEM;
    ret->argv = argv;
    for (const struct doc *c = list->child; c; c = c->next) {
        const char *text;

        r = doc_as_string(d->f, c, TEXT_MAX, &text, d->err);
        if (r < 0)
            return r;
        argv[ret->argc] = own_text(d, text);
        if (!argv[ret->argc++])
            return -ENOMEM;
    }
    return 0;
}

static int decode_variable(struct decoder *d, const struct doc *at, struct job_variable *ret)
{
    if (!*at->key || strchr(at->key, '='))
        return doc_error(d->f, at, d->err, "is no name; accepted: letters without \"=\"");
    if (!doc_is_scalar(at) || strlen(at->text) > TEXT_MAX)
        return doc_error(d->f, at, d->err, "is %s; accepted: a text of at most %u bytes",
                         doc_kind_name(at->kind), TEXT_MAX);
    ret->name = own_text(d, at->key);
    ret->value = ret->name ? own_text(d, at->text) : NULL;
    return ret->value ? 0 : -ENOMEM;
}

static int decode_env(struct decoder *d, const struct doc *vertex, struct job_command *ret)
{
    const struct doc *map;
    struct job_variable *env;
    int r = doc_container(d->f, vertex, "env", DOC_MAP, &map, d->err);

    if (r < 0)
        return doc_optional(r);
    env = own(d, map->n, sizeof *env);
    if (!env)
        return -ENOMEM;
    ret->env = env;
    for (const struct doc *c = map->child; c && r == 0; c = c->next)
        r = decode_variable(d, c, &env[ret->n_env++]);
    return r;
}

static int decode_cwd(struct decoder *d, const struct doc *vertex, struct job_command *ret)
{
    const char *text;
    int r = doc_string(d->f, vertex, "cwd", TEXT_MAX, &text, d->err);

    if (r < 0)
        return doc_optional(r);
    ret->cwd = own_text(d, text);
    return ret->cwd ? 0 : -ENOMEM;
}

static int decode_vertex(struct decoder *d, const struct doc *map, struct pliant_vertex_spec *v,
                         struct job_vertex_spec *ret)
{
    static const char *const keys[] = {"id",
                                       "parallelism",
                                       "min_parallelism",
                                       "max_parallelism",
                                       "slot_sharing_group",
                                       "concurrent_attempts",
                                       "command",
                                       "env",
                                       "cwd",
                                       "sim",
                                       NULL};
    bool concurrent = true;
    int r = doc_known_keys(d->f, map, keys, d->err);

    if (r == 0)
        r = needed(d, map, "id", "a name, once in the job",
                   doc_string(d->f, map, "id", PLIANT_NAME_MAX, &v->id, d->err));
    if (r == 0)
        r = parallelism(d, map, "parallelism", &v->parallelism);
    if (r == 0)
        r = parallelism(d, map, "min_parallelism", &v->min_parallelism);
    if (r == 0)
        r = parallelism(d, map, "max_parallelism", &v->max_parallelism);
    if (r == 0)
        r = doc_optional(doc_string(d->f, map, "slot_sharing_group", PLIANT_NAME_MAX,
                                    &v->slot_sharing_group, d->err));
    if (r == 0)
        r = truth(d, map, "concurrent_attempts", &concurrent);
    v->no_concurrent_attempts = !concurrent;
    if (r == 0)
        r = decode_sim(d, map, &ret->sim);
    if (r == 0)
        r = decode_argv(d, map, &ret->command);
    if (r == 0)
        r = decode_env(d, map, &ret->command);
    return r < 0 ? r : decode_cwd(d, map, &ret->command);
}

/* The first of a name stays in the hash; the job refuses the others. */
static int note_name(struct decoder *d, uint32_t index)
{
    struct name *name = &d->names[index], *known = NULL;

    name->id = d->vertices[index].id;
    name->index = index;
    HASH_FIND_STR(d->by_name, name->id, known);
    if (known)
        return 0;
    HASH_ADD_KEYPTR(hh, d->by_name, name->id, strlen(name->id), name);
    return name->hh.tbl ? 0 : doc_no_memory(d->f, d->err);
}

static int decode_vertices(struct decoder *d, const struct doc *map)
{
    struct job_vertex_spec *specs;
    const struct doc *list;
    uint32_t i = 0;
    int r = needed(d, map, "vertices", "a list of vertices",
                   doc_container(d->f, map, "vertices", DOC_LIST, &list, d->err));

    if (r < 0)
        return r;
    if (list->n < 1 || list->n > PLIANT_MAX_VERTICES)
        return doc_error(d->f, list, d->err, "has %u vertices; accepted: 1 to %u", list->n,
                         PLIANT_MAX_VERTICES);
    specs = own(d, list->n, sizeof *specs);
    d->vertices = mem_zero(spec_memory, list->n, sizeof *d->vertices);
    d->names = mem_zero(spec_memory, list->n, sizeof *d->names);
    if (!specs || !d->vertices || !d->names)
        return doc_no_memory(d->f, d->err);
    d->spec->vertices = specs;
    for (const struct doc *c = list->child; c && r == 0; c = c->next, i++) {
        r = decode_vertex(d, c, &d->vertices[i], &specs[i]);
        if (r == 0)
            r = note_name(d, i);
    }
    d->job.vertices = d->vertices;
    d->job.n_vertices = list->n;
    return r;
}

/* ---- a worker group -------------------------------------------------------------------------- */

/* An option that shapes the job: in the group, or in `config`, flat or nested. */
static const struct doc *group_option(const struct decoder *d, const char *key,
                                      const char *full_key)
{
    const struct doc *config = d->spec->config, *at = doc_get(d->spec->group, key);

    if (!at && config)
        at = doc_get(config, full_key);
    if (!at && config && doc_get(config, "worker-group"))
        at = doc_get(doc_get(config, "worker-group"), key);
    return at;
}

/* A number, or one in a text, as values of options may be. */
static int workers(const struct decoder *d, const struct doc *at, int64_t *ret)
{
    if (!at)
        return 0;
    if (doc_is_scalar(at) && decimal_read_int(at->text, ret) && *ret >= 1 &&
        *ret <= PLIANT_MAX_PARALLELISM)
        return 0;
    return doc_error(d->f, at, d->err, "accepted: an integer from 1 to %u", PLIANT_MAX_PARALLELISM);
}

/* Both default to the parallelism. */
static int decode_workers(const struct decoder *d, const struct doc *map,
                          struct pliant_vertex_spec *v)
{
    const struct doc *least = group_option(d, "min-workers", "worker-group.min-workers");
    const struct doc *most = group_option(d, "max-workers", "worker-group.max-workers");
    int64_t n = 1, min, max;
    int r = parallelism(d, map, "parallelism", &n);

    min = max = n;
    if (r == 0)
        r = workers(d, least, &min);
    if (r == 0)
        r = workers(d, most, &max);
    if (r == 0 && min > max)
        return doc_error(d->f,
                         least  ? least
                         : most ? most
                                : map,
                         d->err,
                         "min-workers is %lld, max-workers %lld; accepted: not more than that",
                         (long long)min, (long long)max);
    v->min_parallelism = min;
    v->parallelism = v->max_parallelism = max;
    return r;
}

/* All that is no option is read here; the options are looked at, so that a wrong one is found
 * whoever reads the job. */
static int check_group_options(const struct decoder *d, const struct doc *map)
{
    struct options scratch = {0};
    int r = options_add_job(&scratch, d->f, NULL, map, d->err);

    options_free(&scratch);
    return r;
}

static int decode_group(struct decoder *d, const struct doc *job, const struct doc *map)
{
    struct job_vertex_spec *spec;
    int r;

    if (doc_get(job, "vertices") || doc_get(job, "edges"))
        return doc_error(d->f, map, d->err,
                         "accepted: vertices and edges, or a worker group, not both");
    if (map->kind != DOC_MAP)
        return doc_error(d->f, map, d->err, "is %s; accepted: a map", doc_kind_name(map->kind));
    d->spec->group = map;
    spec = own(d, 1, sizeof *spec);
    d->vertices = mem_zero(spec_memory, 1, sizeof *d->vertices);
    if (!spec || !d->vertices)
        return doc_no_memory(d->f, d->err);
    d->spec->vertices = spec;
    d->vertices->id = PLIANT_WORKER_VERTEX;
    d->job.vertices = d->vertices;
    d->job.n_vertices = 1;
    d->job.worker_group = true;
    r = check_group_options(d, map);
    if (r == 0)
        r = decode_workers(d, map, d->vertices);
    if (r == 0)
        r = decode_sim(d, map, &spec->sim);
    if (r == 0)
        r = decode_argv(d, map, &spec->command);
    if (r == 0)
        r = decode_env(d, map, &spec->command);
    return r < 0 ? r : decode_cwd(d, map, &spec->command);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static int unknown_vertex(const struct decoder *d, const struct doc *at)
{
    struct nearest n;

    nearest_start(&n, at->text);
    for (size_t i = 0; i < d->job.n_vertices; i++)
        nearest_offer(&n, d->vertices[i].id);
    if (n.best)
        return doc_error(d->f, at, d->err, "no vertex has the id \"%s\"; did you mean \"%s\"?",
                         at->text, n.best);
    return doc_error(d->f, at, d->err, "no vertex has the id \"%s\"; accepted: the id of a vertex",
                     at->text);
}

static int edge_end(const struct decoder *d, const struct doc *edge, const char *key, uint32_t *ret)
{
    struct name *name = NULL;
    const char *id;
    int r = needed(d, edge, key, "the id of a vertex",
                   doc_string(d->f, edge, key, PLIANT_NAME_MAX, &id, d->err));

    if (r < 0)
        return r;
    HASH_FIND_STR(d->by_name, id, name);
    if (!name)
        return unknown_vertex(d, doc_get(edge, key));
    *ret = name->index;
    return 0;
}

static int decode_edge(const struct decoder *d, const struct doc *map, struct pliant_edge_spec *ret)
{
    static const char *const keys[] = {"from",        "to",    "pattern",    "exchange",
                                       "partitioner", "input", "splittable", NULL};
    static const char *const patterns[] = {"all_to_all", "pointwise", NULL};
    static const char *const exchanges[] = {"pipelined", "blocking", NULL};
    unsigned pattern = PLIANT_ALL_TO_ALL, exchange = PLIANT_PIPELINED,
             partitioner = PLIANT_PARTITIONER_DEFAULT;
    int64_t input = 0;
    int r = doc_known_keys(d->f, map, keys, d->err);

    if (r == 0)
        r = edge_end(d, map, "from", &ret->from);
    if (r == 0)
        r = edge_end(d, map, "to", &ret->to);
    if (r == 0)
        r = word(d, map, "pattern", patterns, &pattern);
    if (r == 0)
        r = word(d, map, "exchange", exchanges, &exchange);
    if (r == 0)
        r = word(d, map, "partitioner", job_spec_partitioners, &partitioner);
    if (r == 0)
        r = doc_optional(doc_int(d->f, map, "input", 1, UINT32_MAX, &input, d->err));
    if (r == 0)
        r = truth(d, map, "splittable", &ret->splittable);
    ret->partitioner = (enum pliant_partitioner)partitioner;
    ret->input = (uint32_t)input;
    ret->pattern = (enum pliant_pattern)pattern;
    ret->exchange = (enum pliant_exchange)exchange;
    return r;
}

static int decode_edges(struct decoder *d, const struct doc *map)
{
    const struct doc *list;
    size_t i = 0;
    int r = doc_container(d->f, map, "edges", DOC_LIST, &list, d->err);

    if (r < 0 || list->n == 0)
        return doc_optional(r);
    d->edges = mem_zero(spec_memory, list->n, sizeof *d->edges);
    if (!d->edges)
        return doc_no_memory(d->f, d->err);
    for (const struct doc *c = list->child; c && r == 0; c = c->next)
        r = decode_edge(d, c, &d->edges[i++]);
    d->job.edges = d->edges;
    d->job.n_edges = list->n;
    return r;
}

/* ---- progress -------------------------------------------------------------------------------- */

static int decode_point(const struct decoder *d, const struct doc *at, uint32_t after,
                        struct job_point *ret)
{
    int64_t p;
    int r;

    if (at->kind != DOC_LIST || at->n != 2)
        return doc_error(d->f, at, d->err, "accepted: [parallelism, speedup]");
    r = doc_as_int(d->f, at->child, (int64_t)after + 1, PLIANT_MAX_PARALLELISM, &p, d->err);
    if (r == 0)
        r = doc_as_double(d->f, at->child->next, 1e-9, 1e9, &ret->speedup, d->err);
    if (r == 0)
        ret->parallelism = (uint32_t)p;
    return r;
}

static int decode_points(struct decoder *d, const struct doc *list)
{
    struct job_progress *progress = &d->spec->progress;
    struct job_point *points;
    uint32_t after = 0;
    int r = 0;

    if (list->n == 0)
        return doc_error(d->f, list, d->err, "is empty; accepted: [[parallelism, speedup], ...]");
    points = own(d, list->n, sizeof *points);
    if (!points)
        return -ENOMEM;
    progress->kind = JOB_SPEEDUP_TABLE;
    progress->points = points;
    for (const struct doc *c = list->child; c && r == 0; c = c->next) {
        struct job_point *point = &points[progress->n_points++];

        r = decode_point(d, c, after, point);
        after = point->parallelism;
    }
    return r;
}

static int decode_speedup(struct decoder *d, const struct doc *at)
{
    if (at->kind == DOC_LIST)
        return decode_points(d, at);
    if (at->kind == DOC_STRING && strcmp(at->text, "linear") == 0)
        return 0;
    if (at->kind != DOC_STRING || strcmp(at->text, "amdahl") != 0)
        return doc_error(d->f, at, d->err,
                         "accepted: linear | amdahl | [[parallelism, speedup], ...]");
    d->spec->progress.kind = JOB_SPEEDUP_AMDAHL;
    return 0;
}

static int decode_progress(struct decoder *d, const struct doc *job)
{
    static const char *const keys[] = {"speedup", "serial", NULL};
    struct job_progress *progress = &d->spec->progress;
    const struct doc *map = doc_get(job, "progress"), *speedup, *serial;
    int r;

    if (!map)
        return 0;
    r = doc_known_keys(d->f, map, keys, d->err);
    if (r < 0)
        return r;
    speedup = doc_get(map, "speedup");
    serial = doc_get(map, "serial");
    r = speedup ? decode_speedup(d, speedup) : 0;
    if (r < 0)
        return r;
    if (progress->kind != JOB_SPEEDUP_AMDAHL)
        return serial
                   ? doc_error(d->f, serial, d->err, "accepted only with \"speedup\": \"amdahl\"")
                   : 0;
    if (!serial)
        return needed(d, map, "serial", "a number from 0 to 1", -ENOENT);
    return doc_as_double(d->f, serial, 0, 1, &progress->serial, d->err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static const struct doc *element(const struct doc *map, const char *key, uint32_t i)
{
    const struct doc *list = doc_get(map, key);
    const struct doc *c = list ? list->child : NULL;

    while (c && i-- > 0)
        c = c->next;
    return c;
}

/* The core's text may begin with the item; here the place in the file names it. */
static const char *text_behind_item(const struct pliant_error *why, const char *list)
{
    char item[32];
    size_t n = (size_t)snprintf(item, sizeof item, "%s[%" PRIu32 "]", list, why->item);

    return strncmp(why->text, item, n) == 0 ? why->text + n + strspn(why->text + n, ": ")
                                            : why->text;
}

int job_spec_error(const struct doc_file *f, const struct doc *map, const struct pliant_error *why,
                   struct spec_error *err)
{
    static const char *const of_edges[] = {"from", "to", "pattern", "exchange", "partitioner"};
    const struct doc *at = map, *field;
    const char *list = "vertices";

    for (size_t i = 0; i < sizeof of_edges / sizeof *of_edges; i++)
        if (strcmp(why->field, of_edges[i]) == 0)
            list = "edges";
    if (why->item != UINT32_MAX)
        at = doc_get(map, "worker_group") ? doc_get(map, "worker_group")
                                          : element(map, list, why->item);
    field = at ? doc_get(at, why->field) : NULL;
    return doc_error(f, field ? field : at, err, "%s", text_behind_item(why, list));
}

static int make_job(struct decoder *d, const struct doc *map)
{
    struct pliant_error why;
    int r = pliant_job_new(&d->job, spec_memory, &d->spec->job, &why);

    if (r == -EINVAL)
        return job_spec_error(d->f, map, &why, d->err);
    return r == -ENOMEM ? doc_no_memory(d->f, d->err) : r;
}

static int decode_job(struct decoder *d, const struct doc *map)
{
    static const char *const keys[] = {"name",         "vertices", "edges", "config",
                                       "worker_group", "progress", NULL};
    const struct doc *group, *config;
    int r = doc_known_keys(d->f, map, keys, d->err);

    if (r < 0)
        return r;
    group = doc_get(map, "worker_group");
    config = doc_get(map, "config");
    if (config && config->kind != DOC_MAP && config->kind != DOC_NULL)
        return doc_error(d->f, config, d->err, "is %s; accepted: a map of options",
                         doc_kind_name(config->kind));
    d->spec->config = config && config->kind == DOC_MAP ? config : NULL;
    r = doc_optional(doc_string(d->f, map, "name", PLIANT_NAME_MAX, &d->job.name, d->err));
    if (r == 0)
        r = group ? decode_group(d, map, group) : decode_vertices(d, map);
    if (r == 0)
        r = decode_edges(d, map);
    if (r == 0)
        r = decode_progress(d, map);
    return r < 0 ? r : make_job(d, map);
}

int job_spec_decode(const struct doc_file *f, const struct doc *map, struct job_spec *ret,
                    struct spec_error *err)
{
    struct job_spec spec = {0};
    struct decoder d = {.f = f, .err = err, .spec = &spec};
    int r = decode_job(&d, map);

    HASH_CLEAR(hh, d.by_name);
    mem_free(spec_memory, d.names);
    mem_free(spec_memory, d.vertices);
    mem_free(spec_memory, d.edges);
    if (r < 0)
        job_spec_free(&spec);
    else
        *ret = spec;
    return r;
}

int job_spec_read(const char *path, struct job_spec *ret, struct spec_error *err)
{
    struct doc_file f;
    int r = doc_read(path, JOB_SPEC_FILE_MAX, &f, err);

    if (r < 0)
        return r;
    r = job_spec_decode(&f, f.root, ret, err);
    if (r < 0)
        doc_free(&f);
    else
        ret->doc = f;
    return r;
}

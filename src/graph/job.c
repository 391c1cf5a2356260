/* job.c - check a description of a job and copy it; see job.h and pliant/job.h */
#include "graph/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/key_groups.h"
#include "util/fnv.h"
#include "util/hash.h"

#define DEFAULT_NAME "job"
#define DEFAULT_GROUP "default"
#define ACCEPTED_NAMES "1 to 128 letters, digits, '.', '_', '-'"
#define NO_ITEM UINT32_MAX

/* A name and what it stands for: a vertex or a group. In arrays, head of the hash first. */
struct job_name {
    const char *key;
    uint32_t index;
    UT_hash_handle hh;
};

/* ---- errors ----------------------------------------------------------------------------- */

static int refuse(struct pliant_error *err, size_t item, const char *field, const char *format, ...)
{
    va_list args;

    if (!err)
        return -EINVAL;
    *err = (struct pliant_error){.item = (uint32_t)item};
    snprintf(err->field, sizeof err->field, "%s", field);
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return -EINVAL;
}

/* ---- a vertex's description -------------------------------------------------------------- */

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

static bool name_valid(const char *name)
{
    size_t n = 0;

    if (!name)
        return false;
    while (n <= PLIANT_NAME_MAX && name_char(name[n]))
        n++;
    return n >= 1 && n <= PLIANT_NAME_MAX && name[n] == '\0';
}

static int check_bound(const struct pliant_vertex_spec *v, size_t i, const char *field,
                       int64_t value, int64_t max, const char *max_is, struct pliant_error *err)
{
    if (value >= 1 && value <= max)
        return 0;
    return refuse(err, i, field,
                  "vertex \"%s\": %s is %" PRId64 "; accepted are 1 to %" PRId64 "%s", v->id, field,
                  value, max, max_is);
}

static uint32_t parallelism_of(const struct pliant_vertex_spec *v)
{
    return v->parallelism != 0 ? (uint32_t)v->parallelism : 1;
}

static uint32_t max_parallelism_of(const struct pliant_vertex_spec *v)
{
    if (v->max_parallelism != 0)
        return (uint32_t)v->max_parallelism;
    return key_groups_default_max(parallelism_of(v));
}

/* What holds in every mode; see pliant_job_check() for the rest. */
static int check_vertex(const struct pliant_vertex_spec *v, size_t i, struct pliant_error *err)
{
    int64_t max = PLIANT_MAX_PARALLELISM;

    if (!name_valid(v->id))
        return refuse(err, i, "id", "vertices[%zu]: id is not a name; accepted are " ACCEPTED_NAMES,
                      i);
    if (v->slot_sharing_group && !name_valid(v->slot_sharing_group))
        return refuse(
            err, i, "slot_sharing_group",
            "vertex \"%s\": slot_sharing_group is not a name; accepted are " ACCEPTED_NAMES, v->id);
    if (v->parallelism != 0 && check_bound(v, i, "parallelism", v->parallelism, max, "", err) < 0)
        return -EINVAL;
    if (v->max_parallelism != 0 &&
        check_bound(v, i, "max_parallelism", v->max_parallelism, max, "", err) < 0)
        return -EINVAL;
    max = max_parallelism_of(v);
    if (check_bound(v, i, "parallelism", parallelism_of(v), max, ", its max_parallelism", err) < 0)
        return -EINVAL;
    if (v->min_parallelism == 0)
        return 0;
    return check_bound(v, i, "min_parallelism", v->min_parallelism, max, ", its max_parallelism",
                       err);
}

/* ---- the job's own fields ---------------------------------------------------------------- */

static int check_job(const struct pliant_job_spec *spec, struct pliant_error *err)
{
    if (spec->name && !name_valid(spec->name))
        return refuse(err, NO_ITEM, "name",
                      "the job's name is not a name; accepted are " ACCEPTED_NAMES);
    if (spec->n_vertices < 1 || spec->n_vertices > PLIANT_MAX_VERTICES)
        return refuse(err, NO_ITEM, "vertices", "the job has %zu vertices; accepted are 1 to %u",
                      spec->n_vertices, PLIANT_MAX_VERTICES);
    if (spec->n_edges >= UINT32_MAX)
        return refuse(err, NO_ITEM, "edges", "the job has %zu edges; accepted are less than 2^32",
                      spec->n_edges);
    return 0;
}

static int check_edge_end(size_t i, const char *field, uint32_t vertex, size_t n_vertices,
                          struct pliant_error *err)
{
    if (vertex < n_vertices)
        return 0;
    return refuse(err, i, field,
                  "edges[%zu]: %s is vertex %" PRIu32
                  ", which does not exist; accepted are 0 to %zu",
                  i, field, vertex, n_vertices - 1);
}

/* Some send a record to a neighbour, the others to anybody. */
static int check_partitioner(const struct pliant_edge_spec *edge, size_t i,
                             struct pliant_error *err)
{
    bool pointwise = edge->partitioner == PLIANT_PARTITIONER_FORWARD ||
                     edge->partitioner == PLIANT_PARTITIONER_RESCALE;

    if (edge->partitioner == PLIANT_PARTITIONER_DEFAULT ||
        ((unsigned)edge->partitioner <= PLIANT_PARTITIONER_RESCALE &&
         pointwise == (edge->pattern == PLIANT_POINTWISE)))
        return 0;
    return refuse(err, i, "partitioner",
                  "edges[%zu]: partitioner does not go with the edge's pattern; accepted are"
                  " forward, rescale (pointwise) and hash, custom, rebalance, broadcast"
                  " (all_to_all)",
                  i);
}

static int check_edge(const struct pliant_job_spec *spec, size_t i, struct pliant_error *err)
{
    const struct pliant_edge_spec *edge = &spec->edges[i];

    if (check_edge_end(i, "from", edge->from, spec->n_vertices, err) < 0 ||
        check_edge_end(i, "to", edge->to, spec->n_vertices, err) < 0)
        return -EINVAL;
    if (edge->pattern != PLIANT_ALL_TO_ALL && edge->pattern != PLIANT_POINTWISE)
        return refuse(err, i, "pattern",
                      "edges[%zu]: pattern is unknown; accepted are all_to_all, pointwise", i);
    if (edge->exchange != PLIANT_PIPELINED && edge->exchange != PLIANT_BLOCKING)
        return refuse(err, i, "exchange",
                      "edges[%zu]: exchange is unknown; accepted are pipelined, blocking", i);
    return check_partitioner(edge, i, err);
}

/* Ranks have no key groups: what may run at most is what is wanted at most. */
static int check_worker_group(const struct pliant_job_spec *spec, struct pliant_error *err)
{
    const struct pliant_vertex_spec *v = spec->vertices;

    if (!spec->worker_group)
        return 0;
    if (spec->n_vertices != 1 || spec->n_edges > 0)
        return refuse(err, NO_ITEM, "worker_group",
                      "a worker group has %zu vertices and %zu edges; accepted are 1 and 0",
                      spec->n_vertices, spec->n_edges);
    if (strcmp(v->id, PLIANT_WORKER_VERTEX) != 0)
        return refuse(err, 0, "id", "the vertex of a worker group is \"%s\"; accepted is \"%s\"",
                      v->id, PLIANT_WORKER_VERTEX);
    if (v->max_parallelism != 0 && v->max_parallelism != v->parallelism)
        return refuse(err, 0, "max_parallelism",
                      "vertex \"%s\": max_parallelism is %" PRId64 "; accepted in a worker group is"
                      " its parallelism, %" PRId64,
                      v->id, v->max_parallelism, v->parallelism);
    return 0;
}

static int check_spec(const struct pliant_job_spec *spec, struct pliant_error *err)
{
    if (check_job(spec, err) < 0)
        return -EINVAL;
    for (size_t i = 0; i < spec->n_vertices; i++)
        if (check_vertex(&spec->vertices[i], i, err) < 0)
            return -EINVAL;
    for (size_t i = 0; i < spec->n_edges; i++)
        if (check_edge(spec, i, err) < 0)
            return -EINVAL;
    return check_worker_group(spec, err);
}

/* ---- names ------------------------------------------------------------------------------ */

static struct job_name *find_name(struct job_name *head, const char *key)
{
    struct job_name *found;

    HASH_FIND_STR(head, key, found);
    return found;
}

/* Add *name, which is not there yet, with its key. */
static int add_name(struct job_name **head, struct job_name *name,
                    const struct pliant_alloc *hash_alloc)
{
    HASH_ADD_KEYPTR(hh, *head, name->key, strlen(name->key), name);
    return name->hh.tbl ? 0 : -ENOMEM;
}

static void clear_names(struct job_name **head, const struct pliant_alloc *hash_alloc)
{
    HASH_CLEAR(hh, *head);
}

/* ---- copying ---------------------------------------------------------------------------- */

static const char *group_name(const struct pliant_vertex_spec *v)
{
    return v->slot_sharing_group ? v->slot_sharing_group : DEFAULT_GROUP;
}

static size_t strings_size(const struct pliant_job_spec *spec, const char *name)
{
    size_t n = strlen(name) + 1;

    for (size_t i = 0; i < spec->n_vertices; i++) /* as if each had a group of its own */
        n += strlen(spec->vertices[i].id) + 1 + strlen(group_name(&spec->vertices[i])) + 1;
    return n;
}

static const char *put_string(char **at, const char *s)
{
    size_t size = strlen(s) + 1;
    char *copy = memcpy(*at, s, size);

    *at += size;
    return copy;
}

static int allocate(struct pliant_job *job, const struct pliant_job_spec *spec, size_t strings)
{
    const struct pliant_alloc *a = job->alloc;
    size_t n = spec->n_vertices;

    job->n_vertices = (uint32_t)n;
    job->vertices = mem_zero(a, n, sizeof *job->vertices);
    job->names = NULL;
    job->groups = mem_zero(a, n, sizeof *job->groups);
    job->group_of = mem_zero(a, n, sizeof *job->group_of);
    job->topological = mem_zero(a, n, sizeof *job->topological);
    job->group_first = mem_zero(a, n + 1, sizeof *job->group_first);
    job->group_members = mem_zero(a, n, sizeof *job->group_members);
    job->strings = mem_resize(a, NULL, strings, 1);
    job->name_entries = mem_zero(a, n, sizeof *job->name_entries);
    if (!job->vertices || !job->groups || !job->group_of || !job->topological ||
        !job->group_first || !job->group_members || !job->strings || !job->name_entries)
        return -ENOMEM;
    if (spec->n_edges == 0)
        return 0;
    job->edges = mem_resize(a, NULL, spec->n_edges, sizeof *job->edges);
    if (!job->edges)
        return -ENOMEM;
    memcpy(job->edges, spec->edges, spec->n_edges * sizeof *job->edges);
    job->n_edges = spec->n_edges;
    return 0;
}

static int copy_vertex(struct pliant_job *job, const struct pliant_vertex_spec *spec, uint32_t v,
                       char **strings, struct pliant_error *err)
{
    struct job_name *name = &job->name_entries[v];

    if (find_name(job->names, spec->id))
        return refuse(err, v, "id",
                      "vertices[%" PRIu32 "]: the id \"%s\" is taken by vertices[%" PRIu32
                      "]; ids are unique",
                      v, spec->id, find_name(job->names, spec->id)->index);
    *name = (struct job_name){.key = put_string(strings, spec->id), .index = v};
    job->vertices[v] = (struct job_vertex){
        .name = name->key,
        .parallelism = parallelism_of(spec),
        .min_parallelism = spec->min_parallelism ? (uint32_t)spec->min_parallelism : 1,
        .max_parallelism = max_parallelism_of(spec),
        .fixed = spec->parallelism != 0,
        .has_max = spec->max_parallelism != 0,
        .no_concurrent_attempts = spec->no_concurrent_attempts,
    };
    return add_name(&job->names, name, job->alloc);
}

/* Number groups by first appearance. */
static int copy_group(struct pliant_job *job, const struct pliant_vertex_spec *spec, uint32_t v,
                      struct job_name **by_name, struct job_name *entries, char **strings)
{
    struct job_name *group = find_name(*by_name, group_name(spec));
    int rc = 0;

    if (!group) {
        group = &entries[job->n_groups];
        *group = (struct job_name){put_string(strings, group_name(spec)), job->n_groups, .hh = {0}};
        job->groups[job->n_groups++] = group->key;
        rc = add_name(by_name, group, job->alloc);
    }
    job->vertices[v].group = group->index;
    job->group_of[v] = group->index;
    return rc;
}

static int copy_vertices(struct pliant_job *job, const struct pliant_job_spec *spec, char *strings,
                         struct pliant_error *err)
{
    struct job_name *entries = mem_resize(job->alloc, NULL, spec->n_vertices, sizeof *entries);
    struct job_name *groups = NULL;
    int rc = entries ? 0 : -ENOMEM;

    for (uint32_t v = 0; rc == 0 && v < job->n_vertices; v++) {
        rc = copy_vertex(job, &spec->vertices[v], v, &strings, err);
        if (rc == 0)
            rc = copy_group(job, &spec->vertices[v], v, &groups, entries, &strings);
    }
    clear_names(&groups, job->alloc);
    mem_free(job->alloc, entries);
    return rc;
}

static void list_group_members(struct pliant_job *job)
{
    uint32_t next = 0;

    for (uint32_t v = 0; v < job->n_vertices; v++)
        job->group_first[job->group_of[v]]++;
    for (uint32_t g = 0; g < job->n_groups; g++) {
        uint32_t n = job->group_first[g];

        job->group_first[g] = next;
        next += n;
    }
    for (uint32_t v = 0; v < job->n_vertices; v++)
        job->group_members[job->group_first[job->group_of[v]]++] = v;
    /* each now says where its group ends, and that is where the next one begins */
    memmove(job->group_first + 1, job->group_first, job->n_groups * sizeof *job->group_first);
    job->group_first[0] = 0;
}

/* ---- order ------------------------------------------------------------------------------ */

/* Vertices that nothing unfinished points to, the lowest index first: a binary heap. */
struct ready {
    uint32_t *v;
    uint32_t n;
};

static void ready_push(struct ready *r, uint32_t vertex)
{
    uint32_t at = r->n++;

    for (; at > 0 && r->v[(at - 1) / 2] > vertex; at = (at - 1) / 2)
        r->v[at] = r->v[(at - 1) / 2];
    r->v[at] = vertex;
}

static uint32_t ready_pop(struct ready *r)
{
    uint32_t lowest = r->v[0], last = r->v[--r->n], at = 0;

    for (uint32_t child = 1; child < r->n; child = 2 * at + 1) {
        if (child + 1 < r->n && r->v[child + 1] < r->v[child])
            child++;
        if (last <= r->v[child])
            break;
        r->v[at] = r->v[child];
        at = child;
    }
    r->v[at] = last;
    return lowest;
}

/* Scratch for the order: edges by the vertex they leave, and what is still to come. */
struct order {
    size_t *end;     /* [n_vertices] into to[]: where the vertex's edges end */
    uint32_t *to;    /* [n_edges] */
    size_t *missing; /* [n_vertices] edges that point to it and come from later vertices */
    struct ready ready;
};

static void list_edges(const struct pliant_job *job, struct order *o)
{
    size_t next = 0;

    for (size_t i = 0; i < job->n_edges; i++) {
        o->end[job->edges[i].from]++;
        o->missing[job->edges[i].to]++;
    }
    for (uint32_t v = 0; v < job->n_vertices; v++) {
        size_t n = o->end[v];

        o->end[v] = next;
        next += n;
    }
    for (size_t i = 0; i < job->n_edges; i++)
        o->to[o->end[job->edges[i].from]++] = job->edges[i].to;
}

/* Fill topological[]; how many vertices came into it? All, unless there is a cycle. [S-EXE-1] */
static uint32_t sort_vertices(struct pliant_job *job, struct order *o)
{
    uint32_t done = 0;

    for (uint32_t v = 0; v < job->n_vertices; v++)
        if (o->missing[v] == 0)
            ready_push(&o->ready, v);
    while (o->ready.n > 0) {
        uint32_t v = ready_pop(&o->ready);

        job->topological[done++] = v;
        for (size_t i = v > 0 ? o->end[v - 1] : 0; i < o->end[v]; i++)
            if (--o->missing[o->to[i]] == 0)
                ready_push(&o->ready, o->to[i]);
    }
    return done;
}

/* An edge on a cycle: of the vertices that never got ready each has one before it, so going back
 * far enough ends in a circle. */
static uint32_t find_cycle(const struct pliant_job *job, const struct order *o)
{
    uint32_t *edge_to = o->ready.v; /* no longer in use */
    uint32_t v = 0;

    for (uint32_t i = 0; i < job->n_edges; i++)
        if (o->missing[job->edges[i].from] > 0 && o->missing[job->edges[i].to] > 0)
            edge_to[job->edges[i].to] = i;
    while (o->missing[v] == 0)
        v++;
    for (uint32_t i = 0; i < job->n_vertices; i++)
        v = job->edges[edge_to[v]].from;
    return edge_to[v];
}

static int refuse_cycle(const struct pliant_job *job, uint32_t edge, struct pliant_error *err)
{
    return refuse(err, edge, "to",
                  "edges[%" PRIu32 "] closes a cycle through vertex \"%s\"; accepted are graphs"
                  " without cycles",
                  edge, job->vertices[job->edges[edge].to].name);
}

static int order_vertices(struct pliant_job *job, struct pliant_error *err)
{
    const struct pliant_alloc *a = job->alloc;
    struct order o = {
        .end = mem_zero(a, job->n_vertices, sizeof *o.end),
        .to = mem_resize(a, NULL, job->n_edges + 1, sizeof *o.to),
        .missing = mem_zero(a, job->n_vertices, sizeof *o.missing),
        .ready.v = mem_resize(a, NULL, job->n_vertices, sizeof *o.ready.v),
    };
    int rc = o.end && o.to && o.missing && o.ready.v ? 0 : -ENOMEM;

    if (rc == 0) {
        list_edges(job, &o);
        if (sort_vertices(job, &o) < job->n_vertices)
            rc = refuse_cycle(job, find_cycle(job, &o), err);
    }
    mem_free(a, o.end);
    mem_free(a, o.to);
    mem_free(a, o.missing);
    mem_free(a, o.ready.v);
    return rc;
}

/* ---- fingerprint -------------------------------------------------------------------------- */

static void hash_number(uint64_t *hash, uint64_t x)
{
    *hash = fnv_add(*hash, &x, sizeof x);
}

static void hash_string(uint64_t *hash, const char *s)
{
    *hash = fnv_add(*hash, s, strlen(s) + 1); /* with its end: "ab", "c" is not "a", "bc" */
}

static uint64_t fingerprint_of(const struct pliant_job *job)
{
    uint64_t hash = FNV_START;

    hash_string(&hash, job->name);
    hash_number(&hash, job->n_vertices);
    for (uint32_t v = 0; v < job->n_vertices; v++) {
        hash_string(&hash, job->vertices[v].name);
        hash_string(&hash, job->groups[job->vertices[v].group]);
        hash_number(&hash, job->vertices[v].parallelism);
        hash_number(&hash, job->vertices[v].min_parallelism);
        hash_number(&hash, job->vertices[v].max_parallelism);
        hash_number(&hash, job->vertices[v].fixed);
        hash_number(&hash, job->vertices[v].has_max);
        hash_number(&hash, job->vertices[v].no_concurrent_attempts);
    }
    for (size_t i = 0; i < job->n_edges; i++) {
        hash_number(&hash, job->edges[i].from);
        hash_number(&hash, job->edges[i].to);
        hash_number(&hash, job->edges[i].pattern);
        hash_number(&hash, job->edges[i].exchange);
        hash_number(&hash, job->edges[i].partitioner);
        hash_number(&hash, job->edges[i].input);
        hash_number(&hash, job->edges[i].splittable);
    }
    if (job->worker_group)
        hash_string(&hash, "worker group");
    return hash;
}

/* ---- the public functions ----------------------------------------------------------------- */

static int build(struct pliant_job *job, const struct pliant_job_spec *spec,
                 struct pliant_error *err)
{
    const char *name = spec->name ? spec->name : DEFAULT_NAME;
    char *strings;
    int rc = allocate(job, spec, strings_size(spec, name));

    if (rc < 0)
        return rc;
    strings = job->strings;
    job->name = put_string(&strings, name);
    rc = copy_vertices(job, spec, strings, err);
    if (rc < 0)
        return rc;
    job->worker_group = spec->worker_group;
    if (job->worker_group)
        job->vertices[0].max_parallelism = job->vertices[0].parallelism;
    list_group_members(job);
    rc = order_vertices(job, err);
    if (rc < 0)
        return rc;
    job->fingerprint = fingerprint_of(job);
    return 0;
}

int pliant_job_new(const struct pliant_job_spec *spec, const struct pliant_alloc *alloc,
                   struct pliant_job **ret, struct pliant_error *err)
{
    struct pliant_job *job;
    int rc = check_spec(spec, err);

    if (rc < 0)
        return rc;
    job = mem_zero(alloc, 1, sizeof *job);
    if (!job)
        return -ENOMEM;
    job->alloc = alloc;
    rc = build(job, spec, err);
    if (rc < 0)
        pliant_job_destroy(&job);
    else
        *ret = job;
    return rc;
}

void pliant_job_destroy(struct pliant_job **job)
{
    struct pliant_job *j = *job;
    const struct pliant_alloc *a;

    if (!j)
        return;
    a = j->alloc;
    clear_names(&j->names, a);
    mem_free(a, j->name_entries);
    mem_free(a, j->vertices);
    mem_free(a, j->groups);
    mem_free(a, j->group_of);
    mem_free(a, j->topological);
    mem_free(a, j->group_first);
    mem_free(a, j->group_members);
    mem_free(a, j->edges);
    mem_free(a, j->strings);
    mem_free(a, j);
    *job = NULL;
}

/* Streaming jobs only [S-GEN-14]; a job of both kinds of edges has one scheduler. */
static int check_exchanges(const struct pliant_job *job, struct pliant_error *err)
{
    bool mixed = false;

    for (size_t i = 0; i < job->n_edges; i++)
        mixed |= job->edges[i].exchange != job->edges[0].exchange;
    for (size_t i = 0; i < job->n_edges; i++)
        if (job->edges[i].exchange != PLIANT_PIPELINED)
            return refuse(err, i, "exchange",
                          mixed ? "edges[%zu]: exchange is blocking, and others are pipelined;"
                                  " accepted with jobmanager.scheduler: default"
                                : "edges[%zu]: exchange is blocking, but jobmanager.scheduler:"
                                  " adaptive runs streaming jobs; accepted is pipelined",
                          i);
    return 0;
}

/* Each producer writes for one reader. */
static int check_forward(const struct pliant_job *job, size_t i, struct pliant_error *err)
{
    const struct pliant_edge_spec *e = &job->edges[i];
    const struct job_vertex *from = &job->vertices[e->from], *to = &job->vertices[e->to];

    if (e->partitioner != PLIANT_PARTITIONER_FORWARD || !from->fixed || !to->fixed ||
        to->parallelism <= from->parallelism)
        return 0;
    return refuse(err, i, "partitioner",
                  "edges[%zu]: partitioner is forward, from %" PRIu32 " subtasks to %" PRIu32
                  "; accepted are as many or fewer, or rescale",
                  i, from->parallelism, to->parallelism);
}

/* Batch jobs only, whose stages follow each other. */
static int check_batch(const struct pliant_job *job, struct pliant_error *err)
{
    if (job->worker_group)
        return refuse(err, NO_ITEM, "jobmanager.scheduler",
                      "jobmanager.scheduler: adaptive-batch runs no worker groups; accepted is "
                      "adaptive");
    for (size_t i = 0; i < job->n_edges; i++)
        if (job->edges[i].exchange != PLIANT_BLOCKING)
            return refuse(err, i, "exchange",
                          "edges[%zu]: exchange is pipelined, and jobmanager.scheduler:"
                          " adaptive-batch runs blocking ones alone; accepted with"
                          " jobmanager.scheduler: default",
                          i);
    for (size_t i = 0; i < job->n_edges; i++)
        if (check_forward(job, i, err) < 0)
            return -EINVAL;
    return 0;
}

/* Parallelism is fixed, and a group's size follows the slots. */
static int check_default(const struct pliant_job *job, struct pliant_error *err)
{
    if (!job->worker_group)
        return 0;
    return refuse(err, NO_ITEM, "jobmanager.scheduler",
                  "jobmanager.scheduler: default runs no worker groups; accepted is adaptive");
}

/* Options may narrow what the job says. */
static int check_workers(const struct pliant_job *job, const struct pliant_config *cfg,
                         struct pliant_error *err)
{
    int64_t most = job->vertices[0].parallelism, max = cfg->group.max_workers;
    int64_t min = cfg->group.min_workers > 0 ? cfg->group.min_workers
                                             : (int64_t)job->vertices[0].min_parallelism;

    if (max > most)
        return refuse(err, NO_ITEM, "worker-group.max-workers",
                      "worker-group.max-workers: %" PRId64 "; accepted are 1 to %" PRId64
                      ", the most that the job says",
                      max, most);
    max = max > 0 ? max : most;
    if (min > max)
        return refuse(err, NO_ITEM, "worker-group.min-workers",
                      "worker-group.min-workers: %" PRId64 "; accepted are 1 to %" PRId64, min,
                      max);
    return 0;
}

static int check_kind(const struct pliant_job *job, enum pliant_scheduler scheduler,
                      struct pliant_error *err)
{
    switch (scheduler) {
    case PLIANT_SCHEDULER_UNSET:
    case PLIANT_SCHEDULER_ADAPTIVE:
        return check_exchanges(job, err);
    case PLIANT_SCHEDULER_DEFAULT:
        return check_default(job, err);
    case PLIANT_SCHEDULER_ADAPTIVE_BATCH:
        return check_batch(job, err);
    }
    return refuse(err, NO_ITEM, "jobmanager.scheduler",
                  "jobmanager.scheduler: unknown value; accepted are adaptive, default and "
                  "adaptive-batch");
}

int pliant_job_check(const struct pliant_job *job, const struct pliant_config *cfg,
                     struct pliant_error *err)
{
    bool batch = cfg->scheduler == PLIANT_SCHEDULER_ADAPTIVE_BATCH;

    if (check_kind(job, cfg->scheduler, err) < 0)
        return -EINVAL;
    for (uint32_t v = 0; v < job->n_vertices && cfg->mode != PLIANT_MODE_REACTIVE; v++)
        if (job->vertices[v].min_parallelism > job->vertices[v].parallelism &&
            (job->vertices[v].fixed || !batch))
            return refuse(err, v, "min_parallelism",
                          "vertex \"%s\": min_parallelism is %" PRIu32
                          "; accepted are 1 to %" PRIu32 ", its parallelism",
                          job->vertices[v].name, job->vertices[v].min_parallelism,
                          job->vertices[v].parallelism);
    return job->worker_group ? check_workers(job, cfg, err) : 0;
}

const char *pliant_job_name(const struct pliant_job *job)
{
    return job->name;
}

bool pliant_job_is_group(const struct pliant_job *job)
{
    return job->worker_group;
}

bool pliant_job_is_batch(const struct pliant_job *job)
{
    for (size_t i = 0; i < job->n_edges; i++)
        if (job->edges[i].exchange != PLIANT_BLOCKING)
            return false;
    return job->n_edges > 0;
}

uint32_t pliant_job_vertices(const struct pliant_job *job)
{
    return job->n_vertices;
}

uint32_t pliant_job_groups(const struct pliant_job *job)
{
    return job->n_groups;
}

/* NULL for an id that is not the job's. */
static const struct job_vertex *vertex_of(const struct pliant_job *job, pliant_vertex_id vertex)
{
    return vertex.v >= 1 && vertex.v <= job->n_vertices ? &job->vertices[vertex.v - 1] : NULL;
}

const char *pliant_job_vertex_name(const struct pliant_job *job, pliant_vertex_id vertex)
{
    const struct job_vertex *v = vertex_of(job, vertex);

    return v ? v->name : NULL;
}

pliant_vertex_id pliant_job_vertex_find(const struct pliant_job *job, const char *name)
{
    const struct job_name *found = name ? find_name(job->names, name) : NULL;

    return (pliant_vertex_id){found ? found->index + 1 : 0};
}

uint32_t pliant_job_vertex_parallelism(const struct pliant_job *job, pliant_vertex_id vertex)
{
    const struct job_vertex *v = vertex_of(job, vertex);

    return v ? v->parallelism : 0;
}

uint32_t pliant_job_vertex_max_parallelism(const struct pliant_job *job, pliant_vertex_id vertex)
{
    const struct job_vertex *v = vertex_of(job, vertex);

    return v ? v->max_parallelism : 0;
}

const char *pliant_job_vertex_group(const struct pliant_job *job, pliant_vertex_id vertex)
{
    const struct job_vertex *v = vertex_of(job, vertex);

    return v ? job->groups[v->group] : NULL;
}

size_t pliant_job_edges(const struct pliant_job *job)
{
    return job->n_edges;
}

const struct pliant_edge_spec *pliant_job_edge(const struct pliant_job *job, size_t i)
{
    return i < job->n_edges ? &job->edges[i] : NULL;
}

/* case.c - see case.h */
#include "spec/case.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "spec/memory.h"
#include "util/nearest.h"

#define FILE_MAX (64u * 1024 * 1024)
#define LABEL_MAX 128
#define TEXT_MAX 65536

/* A key that must be there. */
static int needed(const struct case_file *c, const struct doc *map, const char *key, int r,
                  struct spec_error *err)
{
    return r == -ENOENT ? doc_error(&c->doc, map, err, "\"%s\" is missing", key) : r;
}

static int need_instant(const struct case_file *c, const struct doc *map, const char *key,
                        int64_t *ret, struct spec_error *err)
{
    return needed(c, map, key, doc_int(&c->doc, map, key, 0, DOC_INTEGER_MAX, ret, err), err);
}

/* n zeroed objects; n may be 0. */
static void *array(size_t n, size_t size)
{
    return mem_zero(spec_memory, n > 0 ? n : 1, size);
}

static int need_list(const struct case_file *c, const struct doc *at, const char *of,
                     struct spec_error *err)
{
    return at->kind == DOC_LIST ? 0 : doc_error(&c->doc, at, err, "accepted: a list of %s", of);
}

/* ---- names -------------------------------------------------------------------------------- */

static int decode_state(const struct case_file *c, const struct doc *at, enum pliant_state *ret,
                        struct spec_error *err)
{
    const char *name = at->kind == DOC_STRING ? at->text : "";
    struct nearest n;

    nearest_start(&n, name);
    for (enum pliant_state i = PLIANT_CREATED; i < PLIANT_STATES; i++) {
        if (strcmp(name, pliant_state_name(i)) == 0) {
            *ret = i;
            return 0;
        }
        nearest_offer(&n, pliant_state_name(i));
    }
    return doc_error(&c->doc, at, err, "not a state of the scheduler; accepted: %s",
                     n.best ? n.best : "Created, WaitingForResources, Executing, ...");
}

static int decode_status(const struct case_file *c, const struct doc *at,
                         enum pliant_job_status *ret, struct spec_error *err)
{
    const char *name = at->kind == DOC_STRING ? at->text : "";

    for (enum pliant_job_status i = PLIANT_JOB_INITIALIZING; i <= PLIANT_JOB_SUSPENDED; i++)
        if (strcmp(name, pliant_job_status_name(i)) == 0) {
            *ret = i;
            return 0;
        }
    return doc_error(&c->doc, at, err,
                     "not a job status; accepted: INITIALIZING, CREATED, RUNNING, RESTARTING, "
                     "FAILING, FAILED, CANCELLING, CANCELED, FINISHED, SUSPENDED");
}

/* ---- checks ------------------------------------------------------------------------------- */

/* {"vertex": parallelism, ...}: *ret_n is what *ret holds, also on error. */
static int decode_parallelism(const struct case_file *c, const struct doc *map, const char *key,
                              struct case_parallelism **ret, size_t *ret_n, struct spec_error *err)
{
    const struct doc *vertices = doc_get(map, key);

    if (!vertices)
        return doc_error(&c->doc, map, err, "\"%s\" is missing", key);
    if (vertices->kind != DOC_MAP)
        return doc_error(&c->doc, vertices, err, "accepted: {\"VERTEX\": parallelism, ...}");
    if (vertices->n == 0)
        return doc_error(&c->doc, vertices, err, "checks nothing; accepted: at least one vertex");
    *ret = array(vertices->n, sizeof **ret);
    if (!*ret)
        return doc_no_memory(&c->doc, err);
    for (const struct doc *at = vertices->child; at; at = at->next) {
        struct case_parallelism *p = &(*ret)[*ret_n];
        int64_t count = 0;
        int r = doc_int(&c->doc, vertices, at->key, 0, PLIANT_MAX_PARALLELISM, &count, err);

        if (r < 0)
            return r;
        p->vertex = pliant_job_vertex_find(c->job.job, at->key);
        p->parallelism = (uint32_t)count;
        if (!p->vertex.v)
            return doc_error(&c->doc, at, err, "the job has no such vertex");
        (*ret_n)++;
    }
    return 0;
}

static int decode_moment(const struct case_file *c, const struct doc *at, struct case_moment *ret,
                         struct spec_error *err)
{
    static const char *const keys[] = {"t", "vertices", NULL};
    int r = doc_known_keys(&c->doc, at, keys, err);

    if (r == 0)
        r = need_instant(c, at, "t", &ret->t_ms, err);
    if (r == 0 && ret->t_ms > c->until_ms)
        return doc_error(&c->doc, doc_get(at, "t"), err,
                         "is after \"until_ms\", the end of the run; accepted: 0 to %" PRId64,
                         c->until_ms);
    if (r == 0)
        r = decode_parallelism(c, at, "vertices", &ret->v, &ret->n, err);
    return r;
}

static int decode_rescale(const struct case_file *c, const struct doc *at, struct case_rescale *ret,
                          struct spec_error *err)
{
    static const char *const keys[] = {"t_min", "t_max", "to", NULL};
    int r = doc_known_keys(&c->doc, at, keys, err);

    if (r == 0)
        r = need_instant(c, at, "t_min", &ret->t_min_ms, err);
    if (r == 0)
        r = need_instant(c, at, "t_max", &ret->t_max_ms, err);
    if (r == 0 && ret->t_min_ms > ret->t_max_ms)
        return doc_error(&c->doc, at, err, "\"t_min\" is after \"t_max\"");
    if (r == 0)
        r = decode_parallelism(c, at, "to", &ret->to, &ret->n, err);
    return r;
}

static int decode_states_visited(struct case_file *c, const struct doc *at, struct spec_error *err)
{
    struct case_expect *e = &c->expect;
    int r = need_list(c, at, "states", err);

    e->has_states_visited = true;
    e->states_visited = array(at->n, sizeof *e->states_visited);
    if (!e->states_visited)
        return doc_no_memory(&c->doc, err);
    for (at = at->child; at && r == 0; at = at->next)
        r = decode_state(c, at, &e->states_visited[e->n_states_visited++], err);
    return r;
}

static int decode_never(struct case_file *c, const struct doc *at, struct spec_error *err)
{
    enum pliant_state state = PLIANT_CREATED;
    int r = need_list(c, at, "states", err);

    for (at = at->child; at && r == 0; at = at->next) {
        r = decode_state(c, at, &state, err);
        if (r == 0)
            c->expect.never[state] = true;
    }
    return r;
}

static int decode_moments(struct case_file *c, const struct doc *at, struct spec_error *err)
{
    struct case_expect *e = &c->expect;
    int r = need_list(c, at, "{\"t\": N, \"vertices\": {...}}", err);

    e->parallelism_at = array(at->n, sizeof *e->parallelism_at);
    if (!e->parallelism_at)
        return doc_no_memory(&c->doc, err);
    for (at = at->child; at && r == 0; at = at->next)
        r = decode_moment(c, at, &e->parallelism_at[e->n_parallelism_at++], err);
    return r;
}

static int decode_rescales(struct case_file *c, const struct doc *at, struct spec_error *err)
{
    struct case_expect *e = &c->expect;
    int r = need_list(c, at, "{\"t_min\": N, \"t_max\": N, \"to\": {...}}", err);

    e->has_rescales = true;
    e->rescales = array(at->n, sizeof *e->rescales);
    if (!e->rescales)
        return doc_no_memory(&c->doc, err);
    for (at = at->child; at && r == 0; at = at->next)
        r = decode_rescale(c, at, &e->rescales[e->n_rescales++], err);
    return r;
}

static int decode_bound(const struct case_file *c, const struct doc *map, const char *key,
                        int64_t *ret, struct spec_error *err)
{
    *ret = CASE_NOT_ASKED;
    return doc_optional(doc_int(&c->doc, map, key, 0, DOC_INTEGER_MAX, ret, err));
}

static int decode_expect(struct case_file *c, const struct doc *map, struct spec_error *err)
{
    static const char *const keys[] = {
        "final_state", "job_status",   "states_visited", "never",           "parallelism_at",
        "rescales",    "min_restarts", "max_restarts",   "downtime_ms_max", NULL};
    struct case_expect *e = &c->expect;
    const struct doc *at;
    int r = doc_known_keys(&c->doc, map, keys, err);

    if (r == 0 && map->n == 0)
        return doc_error(&c->doc, map, err, "checks nothing; accepted: at least one check");
    if (r == 0 && (at = doc_get(map, "final_state"))) {
        e->has_final_state = true;
        r = decode_state(c, at, &e->final_state, err);
    }
    if (r == 0 && (at = doc_get(map, "job_status"))) {
        e->has_job_status = true;
        r = decode_status(c, at, &e->job_status, err);
    }
    if (r == 0 && (at = doc_get(map, "states_visited")))
        r = decode_states_visited(c, at, err);
    if (r == 0 && (at = doc_get(map, "never")))
        r = decode_never(c, at, err);
    if (r == 0 && (at = doc_get(map, "parallelism_at")))
        r = decode_moments(c, at, err);
    if (r == 0 && (at = doc_get(map, "rescales")))
        r = decode_rescales(c, at, err);
    if (r == 0)
        r = decode_bound(c, map, "min_restarts", &e->min_restarts, err);
    if (r == 0)
        r = decode_bound(c, map, "max_restarts", &e->max_restarts, err);
    if (r == 0)
        r = decode_bound(c, map, "downtime_ms_max", &e->downtime_ms_max, err);
    return r;
}

/* ---- the file ----------------------------------------------------------------------------- */

static int decode_texts(struct case_file *c, const struct doc *root, struct spec_error *err)
{
    int r =
        needed(c, root, "case", doc_string(&c->doc, root, "case", LABEL_MAX, &c->label, err), err);

    if (r == 0)
        r = doc_optional(doc_string(&c->doc, root, "title", TEXT_MAX, &c->title, err));
    if (r == 0)
        r = doc_optional(doc_string(&c->doc, root, "note", TEXT_MAX, &c->note, err));
    return r;
}

static int decode_job(struct case_file *c, const struct doc *root, struct spec_error *err)
{
    const struct doc *job = doc_get(root, "job");

    if (!job)
        return doc_error(&c->doc, root, err, "\"job\" is missing");
    return job_spec_decode(&c->doc, job, &c->job, err);
}

static int decode_trace(struct case_file *c, const struct doc *root, struct spec_error *err)
{
    const struct trace_rules rules = {.job = c->job.job};
    const struct doc *list = doc_get(root, "trace");
    struct trace_summary summary;
    int r;

    if (!list)
        return doc_error(&c->doc, root, err, "\"trace\" is missing");
    r = trace_of_list(&c->doc, list, &rules, &c->trace, err);
    return r < 0 ? r : trace_scan(c->trace, &summary, err);
}

static int decode(struct case_file *c, struct spec_error *err)
{
    static const char *const keys[] = {"case",     "title", "note",   "job",
                                       "until_ms", "trace", "expect", NULL};
    const struct doc *root = c->doc.root, *expect;
    int r = doc_known_keys(&c->doc, root, keys, err);

    if (r == 0)
        r = decode_texts(c, root, err);
    if (r == 0)
        r = decode_job(c, root, err);
    if (r == 0)
        r = need_instant(c, root, "until_ms", &c->until_ms, err);
    if (r == 0)
        r = decode_trace(c, root, err);
    if (r < 0)
        return r;
    expect = doc_get(root, "expect");
    if (!expect)
        return doc_error(&c->doc, root, err, "\"expect\" is missing");
    return decode_expect(c, expect, err);
}

/* With what came of reading the document. */
static int finish(struct case_file *c, int r, struct spec_error *err)
{
    if (r == 0)
        r = decode(c, err);
    if (r < 0)
        case_free(c);
    return r;
}

int case_read(const char *path, struct case_file *ret, struct spec_error *err)
{
    *ret = (struct case_file){0};
    return finish(ret, doc_read(path, FILE_MAX, &ret->doc, err), err);
}

int case_parse(const char *name, const char *text, size_t size, struct case_file *ret,
               struct spec_error *err)
{
    *ret = (struct case_file){0};
    return finish(ret, doc_parse(name, text, size, 1, &ret->doc, err), err);
}

void case_free(struct case_file *c)
{
    struct case_expect *e = &c->expect;

    for (size_t i = 0; i < e->n_parallelism_at; i++)
        mem_free(spec_memory, e->parallelism_at[i].v);
    for (size_t i = 0; i < e->n_rescales; i++)
        mem_free(spec_memory, e->rescales[i].to);
    mem_free(spec_memory, e->parallelism_at);
    mem_free(spec_memory, e->rescales);
    mem_free(spec_memory, e->states_visited);
    trace_close(&c->trace);
    job_spec_free(&c->job);
    doc_free(&c->doc);
    *c = (struct case_file){0};
}

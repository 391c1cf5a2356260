/* requirements.c - see requirements.h */
#include "allocator/requirements.h"

#include <errno.h>

#include "graph/job.h"

enum { DEFAULT_BOUND = -1 };

/* An update under examination: what it makes of each vertex; min 0: it has not named it. */
struct review {
    const struct pliant_job *job;
    struct vertex_bounds *wanted; /* [n_vertices] */
    requirements_refused *refused;
    void *ctx;
    bool broken;
};

void requirements_initial(struct bounds *b, const struct pliant_job *job, bool reactive)
{
    for (uint32_t v = 0; v < job->n_vertices; v++) {
        const struct job_vertex *vertex = &job->vertices[v];

        uint32_t want = reactive ? vertex->max_parallelism : vertex->parallelism;

        /* more only where neither counts: in a batch job that has yet to decide */
        b->vertices[v].min = vertex->min_parallelism < want ? vertex->min_parallelism : want;
        b->vertices[v].want = want;
    }
    bounds_refresh(b);
}

static void refuse(struct review *r, uint32_t vertex, enum pliant_reason reason)
{
    r->broken = true;
    r->refused(r->ctx, vertex, reason);
}

static void review_bounds(struct review *r, uint32_t v, int64_t min, int64_t max)
{
    int64_t limit = r->job->vertices[v].max_parallelism;

    if (min == DEFAULT_BOUND)
        min = 1;
    if (max == DEFAULT_BOUND)
        max = limit;
    r->wanted[v].min = 1; /* named, whatever comes */
    if (min < 1 || max < 1) {
        refuse(r, v, PLIANT_REASON_BOUND_BELOW_ONE);
        return;
    }
    if (min > max)
        refuse(r, v, PLIANT_REASON_MIN_ABOVE_MAX);
    if (max > limit) /* [S-REQ-3] */
        refuse(r, v, PLIANT_REASON_ABOVE_MAX_PARALLELISM);
    if (min <= max && max <= limit)
        r->wanted[v] = (struct vertex_bounds){(uint32_t)min, (uint32_t)max};
}

static void review_item(struct review *r, const struct pliant_bounds *item)
{
    uint32_t id = pliant_job_vertex_find(r->job, item->vertex).v;

    if (id == 0)
        refuse(r, REQUIREMENTS_NO_VERTEX, PLIANT_REASON_UNKNOWN_VERTEX);
    else if (r->wanted[id - 1].min != 0)
        refuse(r, id - 1, PLIANT_REASON_NAMED_TWICE);
    else
        review_bounds(r, id - 1, item->min, item->max);
}

static void review_missing(struct review *r)
{
    for (uint32_t v = 0; v < r->job->n_vertices; v++)
        if (r->wanted[v].min == 0)
            refuse(r, v, PLIANT_REASON_VERTEX_MISSING);
}

/* Take over the new bounds: did any change? */
static bool take_over(struct bounds *b, const struct vertex_bounds *wanted)
{
    bool changed = false;

    for (uint32_t v = 0; v < b->n_vertices; v++) {
        changed |= b->vertices[v].min != wanted[v].min || b->vertices[v].want != wanted[v].want;
        b->vertices[v] = wanted[v];
    }
    if (changed)
        bounds_refresh(b);
    return changed;
}

int requirements_apply(struct bounds *b, const struct pliant_job *job,
                       const struct pliant_bounds *update, size_t n, const struct pliant_alloc *a,
                       requirements_refused *refused, void *ctx)
{
    struct review review = {.job = job, .refused = refused, .ctx = ctx};
    int rc;

    review.wanted = mem_zero(a, job->n_vertices, sizeof *review.wanted);
    if (!review.wanted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        review_item(&review, &update[i]);
    review_missing(&review);
    rc = review.broken ? -EINVAL : take_over(b, review.wanted);
    mem_free(a, review.wanted);
    return rc;
}

/* reports.c - see reports.h */
#include "graph/reports.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void reports_init(struct reports *r, const struct pliant_alloc *a)
{
    *r = (struct reports){.alloc = a};
}

void reports_drop(struct reports *r)
{
    for (size_t i = 0; i < r->ranks.n; i++) {
        struct rank_reports *rank = &r->ranks.v[i];

        for (size_t k = 0; k < rank->waiting.n; k++)
            mem_free(r->alloc, rank->waiting.v[k].path);
        vec_free(r->alloc, &rank->waiting);
        rank->last_call = 0;
    }
    r->n_ready = 0;
}

void reports_free(struct reports *r)
{
    reports_drop(r);
    vec_free(r->alloc, &r->ranks);
}

int reports_add(struct reports *r, uint32_t rank, uint64_t call, const char *path, int64_t at_ms)
{
    struct report report = {.call = call, .at_ms = at_ms}, *place;
    struct rank_reports *of;

    while (r->ranks.n <= rank)
        if (!vec_push(r->alloc, &r->ranks))
            return -ENOMEM;
    of = &r->ranks.v[rank];
    if (call <= of->last_call)
        return 0;
    report.path = path ? mem_text(r->alloc, path, REPORTS_PATH_MAX) : NULL;
    place = report.path || !path ? vec_push(r->alloc, &of->waiting) : NULL;
    if (!place) {
        mem_free(r->alloc, report.path);
        return -ENOMEM;
    }
    *place = report;
    of->last_call = call;
    r->n_ready += of->waiting.n == 1;
    return 1;
}

const struct report *reports_first(const struct reports *r, uint32_t rank)
{
    return rank < r->ranks.n && r->ranks.v[rank].waiting.n > 0 ? r->ranks.v[rank].waiting.v : NULL;
}

void reports_take(struct reports *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct rank_reports *rank = &r->ranks.v[i];

        assert(rank->waiting.n > 0);
        mem_free(r->alloc, rank->waiting.v[0].path);
        rank->waiting.n--;
        memmove(rank->waiting.v, rank->waiting.v + 1, rank->waiting.n * sizeof *rank->waiting.v);
        r->n_ready -= rank->waiting.n == 0;
    }
}

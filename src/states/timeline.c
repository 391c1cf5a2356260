/* timeline.c - see timeline.h */
#include "states/timeline.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "util/sort.h"

int timeline_init(struct timeline *t, uint32_t n_vertices, uint32_t n_groups, uint32_t size,
                  const struct pliant_alloc *a)
{
    *t =
        (struct timeline){.alloc = a, .n_vertices = n_vertices, .n_groups = n_groups, .size = size};
    if (size == 0)
        return 0;
    t->ring = mem_zero(a, size, sizeof *t->ring);
    return t->ring ? 0 : -ENOMEM;
}

/* ---- records ---------------------------------------------------------------------------- */

static void spans_clear(const struct pliant_alloc *a, struct rescale_record *r)
{
    for (size_t i = 0; i < r->spans.n; i++)
        mem_free(a, (void *)(uintptr_t)r->spans.v[i].exception);
    r->spans.n = 0;
    r->view.n_spans = 0;
}

static void record_free(const struct pliant_alloc *a, struct rescale_record *r)
{
    spans_clear(a, r);
    vec_free(a, &r->spans);
    mem_free(a, r->exception);
    mem_free(a, (void *)(uintptr_t)r->view.vertices);
    mem_free(a, (void *)(uintptr_t)r->view.groups);
    mem_free(a, r);
}

static void record_drop(struct timeline *t, struct rescale_record *r)
{
    if (!r || --r->refs > 0)
        return;
    r->next_dead = t->dead;
    t->dead = r;
}

void timeline_bury(struct timeline *t)
{
    while (t->dead) {
        struct rescale_record *r = t->dead;

        t->dead = r->next_dead;
        record_free(t->alloc, r);
    }
}

/* The record's own arrays, which its view shows as read-only. */
static struct pliant_rescale_vertex *vertices_of(struct rescale_record *r)
{
    return (struct pliant_rescale_vertex *)(uintptr_t)r->view.vertices;
}

static struct pliant_rescale_group *groups_of(struct rescale_record *r)
{
    return (struct pliant_rescale_group *)(uintptr_t)r->view.groups;
}

static struct rescale_record *record_new(struct timeline *t)
{
    struct rescale_record *r = mem_zero(t->alloc, 1, sizeof *r);

    if (!r)
        return NULL;
    r->refs = 1;
    r->view.vertices = mem_zero(t->alloc, t->n_vertices, sizeof *r->view.vertices);
    r->view.groups = mem_zero(t->alloc, t->n_groups, sizeof *r->view.groups);
    if (r->view.vertices && r->view.groups)
        return r;
    record_free(t->alloc, r);
    return NULL;
}

void timeline_free(struct timeline *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        record_drop(t, t->ring[(t->first + i) % t->size]);
    for (size_t i = 0; i < PLIANT_TERMINALS; i++) {
        record_drop(t, t->last[i]);
        mem_free(t->alloc, t->samples[i].ring);
    }
    timeline_bury(t);
    mem_free(t->alloc, t->ring);
    *t = (struct timeline){0};
}

/* ---- opening ---------------------------------------------------------------------------- */

static void id_draw(struct prng *prng, uint8_t id[16])
{
    for (size_t half = 0; half < 2; half++) {
        uint64_t x = prng_next(prng);

        for (size_t i = 0; i < 8; i++)
            id[half * 8 + i] = (uint8_t)(x >> (56 - 8 * i));
    }
}

/* Pre values are the post values of the last record that completed [S-TML-13]. */
static void pre_values(struct timeline *t, struct rescale_record *r)
{
    struct rescale_record *done = t->last[PLIANT_TERMINAL_COMPLETED];

    if (!done)
        return;
    for (uint32_t v = 0; v < t->n_vertices; v++)
        vertices_of(r)[v].pre = done->view.vertices[v].post;
    for (uint32_t g = 0; g < t->n_groups; g++)
        groups_of(r)[g].pre = done->view.groups[g].post;
}

static void ring_add(struct timeline *t, struct rescale_record *r)
{
    if (t->n == t->size) {
        record_drop(t, t->ring[t->first]);
        t->first = (t->first + 1) % t->size;
        t->n--;
    }
    t->ring[(t->first + t->n++) % t->size] = r;
}

int timeline_open(struct timeline *t, struct prng *prng, int64_t now_ms, bool new_epoch,
                  enum pliant_rescale_trigger trigger, const struct bounds *bounds)
{
    struct rescale_record *r;

    assert(!t->open);
    if (t->size == 0)
        return 0;
    r = record_new(t);
    if (!r)
        return -ENOMEM;
    if (new_epoch) {
        id_draw(prng, t->epoch);
        t->attempt = 0;
    }
    id_draw(prng, r->view.id);
    memcpy(r->view.requirements_id, t->epoch, sizeof t->epoch);
    r->view.attempt = ++t->attempt;
    r->view.trigger = trigger;
    r->view.start_at_ms = now_ms;
    pre_values(t, r);
    ring_add(t, r);
    t->open = r;
    t->opened++;
    timeline_refresh(t, bounds);
    return 0;
}

/* ---- while it is open ------------------------------------------------------------------- */

void timeline_merge(struct timeline *t, int64_t now_ms, enum pliant_rescale_trigger trigger)
{
    if (!t->open)
        return;
    spans_clear(t->alloc, t->open);
    t->open->view.start_at_ms = now_ms;
    t->open->view.trigger = trigger;
}

void timeline_refresh(struct timeline *t, const struct bounds *bounds)
{
    if (!t->open)
        return;
    for (uint32_t v = 0; v < t->n_vertices; v++) {
        vertices_of(t->open)[v].sufficient = bounds->vertices[v].min;
        vertices_of(t->open)[v].desired = bounds->vertices[v].want;
    }
    for (uint32_t g = 0; g < t->n_groups; g++) {
        groups_of(t->open)[g].minimal = bounds->groups[g].lo;
        groups_of(t->open)[g].desired = bounds->groups[g].hi;
    }
}

void timeline_assign(struct timeline *t, const uint32_t *parallelism, const uint32_t *group_slots)
{
    if (!t->open)
        return;
    for (uint32_t v = 0; v < t->n_vertices; v++)
        vertices_of(t->open)[v].post = parallelism[v];
    for (uint32_t g = 0; g < t->n_groups; g++)
        groups_of(t->open)[g].post = group_slots[g];
}

int timeline_exception(struct timeline *t, const char *text)
{
    char *copy;

    if (!t->open)
        return 0;
    copy = mem_text(t->alloc, text, PLIANT_CAUSE_MAX);
    if (!copy)
        return -ENOMEM;
    mem_free(t->alloc, t->open->exception);
    t->open->exception = copy;
    return 0;
}

int timeline_span(struct timeline *t, enum pliant_state state, int64_t enter_at_ms,
                  int64_t leave_at_ms)
{
    struct rescale_record *r = t->open;
    struct pliant_rescale_span *span;

    if (!r)
        return 0;
    if (r->spans.n == TIMELINE_SPANS_MAX) {
        mem_free(t->alloc, (void *)(uintptr_t)r->spans.v[0].exception);
        memmove(r->spans.v, r->spans.v + 1, --r->spans.n * sizeof *r->spans.v);
    }
    span = vec_push(t->alloc, &r->spans);
    if (!span)
        return -ENOMEM;
    *span = (struct pliant_rescale_span){.state = (uint8_t)state,
                                         .enter_at_ms = enter_at_ms,
                                         .leave_at_ms = leave_at_ms,
                                         .exception = r->exception};
    r->exception = NULL;
    r->view.spans = r->spans.v;
    r->view.n_spans = (uint32_t)r->spans.n;
    return 0;
}

/* ---- closing ---------------------------------------------------------------------------- */

static int sample_add(struct timeline *t, struct rescale_samples *s, int64_t duration_ms)
{
    if (!s->ring) {
        s->ring = mem_zero(t->alloc, TIMELINE_SAMPLES, sizeof *s->ring);
        if (!s->ring)
            return -ENOMEM;
    }
    if (s->count == 0 || duration_ms < s->min)
        s->min = duration_ms;
    if (s->count == 0 || duration_ms > s->max)
        s->max = duration_ms;
    s->sum += duration_ms;
    s->ring[s->count++ % TIMELINE_SAMPLES] = duration_ms;
    return 0;
}

int timeline_close(struct timeline *t, int64_t now_ms, enum pliant_rescale_end end)
{
    struct rescale_record *r = t->open;
    enum pliant_rescale_terminal kind = pliant_rescale_terminal(end);

    if (!r)
        return 0;
    r->view.end = end;
    r->view.end_at_ms = now_ms;
    t->open = NULL;
    record_drop(t, t->last[kind]);
    t->last[kind] = r;
    r->refs++;
    if (sample_add(t, &t->samples[PLIANT_TERMINAL_NONE], now_ms - r->view.start_at_ms) < 0)
        return -ENOMEM;
    return sample_add(t, &t->samples[kind], now_ms - r->view.start_at_ms);
}

/* ---- snapshots -------------------------------------------------------------------------- */

static void span_codec(struct codec *c, struct pliant_rescale_span *span)
{
    char *exception = (char *)(uintptr_t)span->exception;

    codec_byte(c, &span->state, PLIANT_STATES);
    CODEC(c, span->enter_at_ms);
    CODEC(c, span->leave_at_ms);
    codec_text(c, &exception, PLIANT_CAUSE_MAX);
    span->exception = exception;
}

static void spans_codec(struct codec *c, struct rescale_record *r)
{
    size_t n = r->spans.n;

    codec_count(c, &n, sizeof(int64_t));
    codec_expect(c, n <= TIMELINE_SPANS_MAX);
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        if (c->reading && !vec_push(c->alloc, &r->spans))
            codec_no_memory(c);
        else
            span_codec(c, &r->spans.v[i]);
    }
    r->view.spans = r->spans.v;
    r->view.n_spans = (uint32_t)r->spans.n;
}

void judged_codec(struct codec *c, struct pliant_judged *judged)
{
    CODEC_ENUM(c, judged->judgement, PLIANT_JUDGED_COST + 1);
    CODEC(c, judged->from);
    CODEC(c, judged->to);
    CODEC(c, judged->gain);
    CODEC(c, judged->cost);
}

static void record_codec(struct codec *c, const struct timeline *t, struct rescale_record *r)
{
    for (size_t i = 0; i < sizeof r->view.id; i++) {
        CODEC(c, r->view.id[i]);
        CODEC(c, r->view.requirements_id[i]);
    }
    CODEC(c, r->view.attempt);
    CODEC_ENUM(c, r->view.trigger, PLIANT_TRIGGER_RECLAIM + 1);
    CODEC_ENUM(c, r->view.end, PLIANT_RESCALE_JOB_SUSPENDED + 1);
    CODEC(c, r->view.start_at_ms);
    CODEC(c, r->view.end_at_ms);
    for (uint32_t v = 0; v < t->n_vertices; v++) {
        CODEC(c, vertices_of(r)[v].sufficient);
        CODEC(c, vertices_of(r)[v].desired);
        CODEC(c, vertices_of(r)[v].pre);
        CODEC(c, vertices_of(r)[v].post);
    }
    for (uint32_t g = 0; g < t->n_groups; g++) {
        CODEC(c, groups_of(r)[g].minimal);
        CODEC(c, groups_of(r)[g].desired);
        CODEC(c, groups_of(r)[g].pre);
        CODEC(c, groups_of(r)[g].post);
    }
    judged_codec(c, &r->view.judged);
    spans_codec(c, r);
    codec_text(c, &r->exception, PLIANT_CAUSE_MAX);
}

/* A record of the ring; reading: a new one in the next place. */
static void ring_codec(struct codec *c, struct timeline *t)
{
    uint32_t n = t->n;

    CODEC(c, n);
    codec_expect(c, n <= t->size);
    for (uint32_t i = 0; codec_fine(c) && i < n; i++) {
        struct rescale_record *r = c->reading ? record_new(t) : t->ring[(t->first + i) % t->size];

        if (!r) {
            codec_no_memory(c);
            return;
        }
        if (c->reading)
            ring_add(t, r);
        record_codec(c, t, r);
    }
}

static uint32_t ring_find(const struct timeline *t, const struct rescale_record *r)
{
    for (uint32_t i = 0; r && i < t->n; i++)
        if (t->ring[(t->first + i) % t->size] == r)
            return i;
    return UINT32_MAX;
}

/* The last of a kind is in the ring, or only here. */
static void last_codec(struct codec *c, struct timeline *t, struct rescale_record **last)
{
    bool exists = *last != NULL;
    uint32_t at = ring_find(t, *last);

    codec_bool(c, &exists);
    CODEC(c, at);
    if (!exists || !codec_fine(c))
        return;
    if (at != UINT32_MAX) {
        codec_expect(c, at < t->n);
        if (c->reading && codec_fine(c)) {
            *last = t->ring[(t->first + at) % t->size];
            (*last)->refs++;
        }
        return;
    }
    if (c->reading && !(*last = record_new(t)))
        codec_no_memory(c);
    else
        record_codec(c, t, *last);
}

static void samples_codec(struct codec *c, const struct timeline *t, struct rescale_samples *s)
{
    CODEC(c, s->count);
    CODEC(c, s->sum);
    CODEC(c, s->min);
    CODEC(c, s->max);
    if (c->reading && codec_fine(c) && s->count > 0 &&
        !(s->ring = mem_zero(t->alloc, TIMELINE_SAMPLES, sizeof *s->ring)))
        codec_no_memory(c);
    for (size_t i = 0; codec_fine(c) && i < TIMELINE_SAMPLES && i < s->count; i++)
        CODEC(c, s->ring[i]);
}

void timeline_codec(struct codec *c, struct timeline *t)
{
    uint32_t open = ring_find(t, t->open);

    ring_codec(c, t);
    CODEC(c, open);
    codec_expect(c, open == UINT32_MAX || open + 1 == t->n); /* the youngest */
    if (c->reading && codec_fine(c) && open != UINT32_MAX)
        t->open = t->ring[(t->first + open) % t->size];
    for (size_t i = 0; codec_fine(c) && i < PLIANT_TERMINALS; i++) {
        last_codec(c, t, &t->last[i]);
        samples_codec(c, t, &t->samples[i]);
    }
    for (size_t i = 0; i < sizeof t->epoch; i++)
        CODEC(c, t->epoch[i]);
    CODEC(c, t->attempt);
    CODEC(c, t->opened);
}

/* ---- looking at it ---------------------------------------------------------------------- */

enum pliant_rescale_terminal pliant_rescale_terminal(enum pliant_rescale_end end)
{
    switch (end) {
    case PLIANT_RESCALE_OPEN:
        return PLIANT_TERMINAL_NONE;
    case PLIANT_RESCALE_SUCCEEDED:
        return PLIANT_TERMINAL_COMPLETED;
    case PLIANT_RESCALE_EXCEPTION_OCCURRED:
        return PLIANT_TERMINAL_FAILED;
    case PLIANT_RESCALE_REQUIREMENTS_UPDATED:
    case PLIANT_RESCALE_NO_CHANGE:
    case PLIANT_RESCALE_JOB_FINISHED:
    case PLIANT_RESCALE_JOB_FAILED:
    case PLIANT_RESCALE_JOB_CANCELED:
    case PLIANT_RESCALE_JOB_SUSPENDED:
        return PLIANT_TERMINAL_IGNORED;
    }
    return PLIANT_TERMINAL_NONE;
}

const struct pliant_rescale *timeline_at(const struct timeline *t, size_t i)
{
    return i < t->n ? &t->ring[(t->first + t->n - 1 - i) % t->size]->view : NULL;
}

/* Between the two nearest ranks, in proportion. */
static double percentile(const struct sort_item *sorted, size_t n, double share)
{
    double rank = share * (double)(n - 1), low = floor(rank);
    size_t i = (size_t)low;

    if (i + 1 == n)
        return (double)sorted[i].major;
    return (double)sorted[i].major + (rank - low) * (double)(sorted[i + 1].major - sorted[i].major);
}

static struct pliant_rescale_stats stats_of(const struct rescale_samples *s)
{
    struct sort_item sorted[TIMELINE_SAMPLES], scratch[TIMELINE_SAMPLES];
    size_t n = s->count < TIMELINE_SAMPLES ? (size_t)s->count : TIMELINE_SAMPLES;

    if (n == 0)
        return (struct pliant_rescale_stats){
            .p50 = NAN, .p90 = NAN, .p95 = NAN, .p99 = NAN, .p999 = NAN};
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct sort_item){.major = (uint64_t)s->ring[i]};
    sort_items(sorted, scratch, n);
    return (struct pliant_rescale_stats){
        .count = s->count,
        .min = (double)s->min,
        .max = (double)s->max,
        .avg = (double)s->sum / (double)s->count,
        .p50 = percentile(sorted, n, 0.5),
        .p90 = percentile(sorted, n, 0.9),
        .p95 = percentile(sorted, n, 0.95),
        .p99 = percentile(sorted, n, 0.99),
        .p999 = percentile(sorted, n, 0.999),
    };
}

void timeline_summary(const struct timeline *t, struct pliant_rescale_summary *ret)
{
    *ret = (struct pliant_rescale_summary){.opened = t->opened, .in_progress = t->open != NULL};
    ret->all = stats_of(&t->samples[PLIANT_TERMINAL_NONE]);
    for (size_t i = 0; i < PLIANT_TERMINALS; i++)
        ret->of[i] = stats_of(&t->samples[i]);
    ret->of[PLIANT_TERMINAL_NONE] = stats_of(&(struct rescale_samples){0});
}

/* regional_codec.c - see regional_codec.h */
#include "states/regional_codec.h"

#include <errno.h>

#include "states/sched.h"

/* ---- restarts of regions ---------------------------------------------------------------- */

/* The claim that it took over names the same region, in the list of a plan before it. A plan that
 * is done waits for nobody. */
static void claim_codec(struct codec *c, const struct regional *r, uint32_t plan,
                        struct claim *claim)
{
    struct claim_at before = claim->before;
    const struct restart_plan *of;

    if (!c->reading && (before.plan < r->base || r->plans.v[before.plan - r->base].done))
        before = (struct claim_at){0};
    CODEC(c, claim->region);
    CODEC(c, before.plan);
    CODEC(c, before.at);
    if (c->reading)
        claim->before = before;
    codec_expect(c, claim->region < r->regions.n &&
                        (before.plan == 0 || (before.plan >= r->base && before.plan < plan)));
    if (!c->reading || !codec_fine(c) || before.plan == 0)
        return;
    of = &r->plans.v[before.plan - r->base];
    codec_expect(c, before.at < of->regions.n && of->regions.v[before.at].region == claim->region);
}

/* Regions are found again; only who restarts is written. */
static void restart_plan_codec(struct codec *c, const struct regional *r, uint32_t serial,
                               struct restart_plan *plan)
{
    size_t n = plan->regions.n;

    codec_count(c, &n, sizeof(struct claim));
    if (c->reading && codec_fine(c) && n > 0 && !vec_reserve(c->alloc, &plan->regions, n))
        codec_no_memory(c);
    plan->regions.n = codec_fine(c) ? n : 0;
    for (size_t i = 0; codec_fine(c) && i < n; i++)
        claim_codec(c, r, serial, &plan->regions.v[i]);
    CODEC(c, plan->open);
    codec_bool(c, &plan->all);
    codec_bool(c, &plan->delay_over);
    codec_bool(c, &plan->done);
    CODEC(c, plan->due_at_ms);
    CODEC(c, plan->give_up_at_ms);
    codec_byte(c, &plan->reason, PLIANT_REASONS);
}

static void owner_codec(struct codec *c, const struct regional *r, uint32_t region)
{
    struct claim_at *owner = &r->owner[region];
    const struct restart_plan *of;

    CODEC(c, owner->plan);
    CODEC(c, owner->at);
    if (owner->plan == 0)
        return;
    codec_expect(c, owner->plan >= r->base && owner->plan - r->base < r->plans.n);
    if (!codec_fine(c))
        return;
    of = &r->plans.v[owner->plan - r->base];
    codec_expect(c, owner->at < of->regions.n && of->regions.v[owner->at].region == region);
}

static void plans_codec(struct codec *c, struct regional *r)
{
    size_t n = r->plans.n;

    codec_count(c, &n, sizeof(uint32_t));
    if (c->reading && codec_fine(c) && n > 0 && !vec_reserve(c->alloc, &r->plans, n))
        codec_no_memory(c);
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        if (c->reading)
            r->plans.v[r->plans.n++] = (struct restart_plan){0};
        restart_plan_codec(c, r, r->base + (uint32_t)i, &r->plans.v[i]);
    }
    for (uint32_t i = 0; codec_fine(c) && i < r->regions.n; i++)
        owner_codec(c, r, i);
}

/* ---- what has finished, results, who waits for slots ------------------------------------ */

/* What follows from who has finished is found again. */
static void finished_codec(struct codec *c, struct pliant_sched *s)
{
    struct scheduling *g = &s->scheduling;

    for (uint32_t task = 0; codec_fine(c) && task < topology_tasks(&s->regional.topology); task++) {
        bool finished = g->inputs.finished[task];

        codec_bool(c, &finished);
        if (c->reading && codec_fine(c) && finished)
            scheduling_had_finished(s, task);
    }
}

/* On which node each is; the lists of the nodes follow from that. */
static void results_codec(struct codec *c, struct pliant_sched *s)
{
    struct results *r = &s->scheduling.results;

    for (uint32_t i = 0; codec_fine(c) && i < results_partitions(r); i++)
        codec_bool(c, &r->tracked[i]);
    for (uint32_t task = 0; codec_fine(c) && task < topology_tasks(&s->regional.topology); task++) {
        uint32_t node = r->held[task].node;

        CODEC(c, node);
        if (!c->reading || node == 0)
            continue;
        codec_expect(c, !r->outlive && pool_node(&s->pool, node - 1) != NULL);
        if (codec_fine(c) && results_put(r, task, node - 1) < 0)
            codec_no_memory(c);
    }
}

/* In the order of the line; what else it knows follows from that. */
static void line_codec(struct codec *c, struct pliant_sched *s)
{
    struct line *l = &s->scheduling.line;
    size_t n = l->n, at = l->first;

    codec_count(c, &n, sizeof(uint32_t) + sizeof(int64_t));
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        struct asking asking = {0};

        if (!c->reading)
            asking = line_next(l, &at);
        CODEC(c, asking.region);
        CODEC(c, asking.since_ms);
        codec_expect(c, asking.region < s->regional.regions.n);
        if (c->reading && codec_fine(c))
            line_restore(s, asking.region, asking.since_ms);
    }
    codec_deadline(c, &l->timeout);
}

static void scheduling_codec(struct codec *c, struct pliant_sched *s)
{
    finished_codec(c, s);
    results_codec(c, s);
    for (uint32_t i = 0; codec_fine(c) && i < s->regional.regions.n; i++)
        codec_byte(c, &s->scheduling.phase[i], REGION_STARTED + 1);
    if (codec_fine(c))
        line_codec(c, s);
    s->batching.ready.n = 0; /* it was decided in its step */
    if (s->no_memory)
        codec_no_memory(c);
}

/* ---- a batch job's vertices ------------------------------------------------------------- */

static void ranges_codec(struct codec *c, struct batch_plan *plan)
{
    size_t n = plan->ranges.n;

    codec_count(c, &n, 4 * sizeof(uint32_t));
    if (c->reading && codec_fine(c) && !vec_reserve(c->alloc, &plan->ranges, n + 1))
        codec_no_memory(c);
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        struct batch_range *r = &plan->ranges.v[i];

        CODEC(c, r->p0);
        CODEC(c, r->p1);
        CODEC(c, r->s0);
        CODEC(c, r->s1);
    }
    if (codec_fine(c))
        plan->ranges.n = n;
}

static void range_expect(struct codec *c, const struct pliant_sched *s, uint32_t e,
                         const struct batch_range *r)
{
    codec_expect(c,
                 r->p0 <= r->p1 &&
                     r->p1 < topology_parallelism(&s->regional.topology, s->job->edges[e].from) &&
                     r->s0 <= r->s1 && r->s1 < s->batching.sizes[e].n_subpartitions);
}

/* Where the ranges of each input and task begin. */
static void first_codec(struct codec *c, const struct pliant_sched *s, uint32_t v,
                        struct batch_plan *plan)
{
    const struct topology *t = &s->regional.topology;
    size_t row = (size_t)plan->parallelism + 1, n_inputs = t->in_first[v + 1] - t->in_first[v],
           n = n_inputs * row + 1, counted = n;

    codec_count(c, &counted, sizeof(uint32_t));
    codec_expect(c, counted == n);
    if (c->reading && codec_fine(c)) {
        plan->first = mem_zero(c->alloc, n, sizeof *plan->first);
        if (!plan->first)
            codec_no_memory(c);
    }
    if (codec_fine(c))
        codec_array(c, plan->first, n);
    for (size_t i = 0; c->reading && codec_fine(c) && i < n; i++)
        codec_expect(c, plan->first[i] >= (i > 0 ? plan->first[i - 1] : 0) &&
                            plan->first[i] <= plan->ranges.n);
    for (size_t k = 0; c->reading && codec_fine(c) && k < n_inputs; k++)
        for (uint32_t i = plan->first[k * row]; i < plan->first[(k + 1) * row]; i++)
            range_expect(c, s, t->in_edges[t->in_first[v] + k], &plan->ranges.v[i]);
}

/* All that it reads has tasks already. */
static void decided_expect(struct codec *c, const struct pliant_sched *s, uint32_t v)
{
    const struct topology *t = &s->regional.topology;

    codec_expect(c, v < s->job->n_vertices && !s->batching.vertices[v].decided &&
                        s->graph.parallelism[v] >= 1);
    for (uint32_t k = codec_fine(c) ? t->in_first[v] : 0; codec_fine(c) && k < t->in_first[v + 1];
         k++)
        codec_expect(c, s->batching.vertices[s->job->edges[t->in_edges[k]].from].decided);
}

static void decided_codec(struct codec *c, struct pliant_sched *s, uint32_t v)
{
    struct batch_plan plan = {.parallelism = s->graph.parallelism[v]};
    int64_t *input_bytes = NULL;

    if (c->reading) {
        input_bytes = mem_zero(c->alloc, plan.parallelism, sizeof *input_bytes);
        if (!input_bytes)
            codec_no_memory(c);
    } else {
        plan = s->batching.vertices[v].plan;
        input_bytes = s->batching.vertices[v].input_bytes;
    }
    for (uint32_t i = 0; codec_fine(c) && i < plan.parallelism; i++)
        CODEC(c, input_bytes[i]);
    if (s->regional.topology.in_first[v] < s->regional.topology.in_first[v + 1]) {
        ranges_codec(c, &plan);
        first_codec(c, s, v, &plan);
    }
    if (!c->reading)
        return;
    if (codec_fine(c)) {
        batching_restore(s, v, plan, input_bytes);
        return;
    }
    batch_plan_free(&plan, c->alloc);
    mem_free(c->alloc, input_bytes);
}

static void sizes_codec(struct codec *c, struct pliant_sched *s, struct sizes *z)
{
    for (uint32_t p = 0; codec_fine(c) && p < z->n_partitions; p++) {
        size_t n = z->rows[p].n;

        codec_count(c, &n, 1);
        if (!c->reading && n > 0) {
            codec_raw(c, z->rows[p].packed, n);
        } else if (codec_fine(c) && n > 0) {
            int rc = batching_restore_sizes(s, z, p, c->in + c->at, n);

            c->at += n;
            if (rc == -ENOMEM)
                codec_no_memory(c);
            codec_expect(c, rc == 0);
        }
    }
}

static void batching_codec(struct codec *c, struct pliant_sched *s)
{
    size_t n = s->batching.order.n;

    codec_count(c, &n, sizeof(uint32_t));
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        uint32_t v = c->reading ? 0 : s->batching.order.v[i];

        CODEC(c, v);
        if (c->reading)
            decided_expect(c, s, v);
        if (codec_fine(c))
            decided_codec(c, s, v);
        if (s->no_memory)
            codec_no_memory(c);
    }
    for (uint32_t e = 0; codec_fine(c) && e < s->job->n_edges; e++)
        sizes_codec(c, s, &s->batching.sizes[e]);
}

/* ---- attempts beside others, and all of it --------------------------------------------- */

static void speculation_codec(struct codec *c, struct pliant_sched *s)
{
    struct speculation *x = &s->speculation;
    size_t n = x->line.n - x->served;

    codec_deadline(c, &x->check);
    codec_deadline(c, &x->unblock);
    codec_deadline(c, &x->give_up);
    CODEC(c, x->n_slow);
    codec_count(c, &n, 3 * sizeof(uint32_t));
    if (c->reading && codec_fine(c) && n > 0 && !vec_reserve(c->alloc, &x->line, n))
        codec_no_memory(c);
    for (size_t i = 0; codec_fine(c) && i < n; i++) {
        struct pliant_task *waits = &x->line.v[x->served + i];

        x->line.n += c->reading;
        CODEC(c, waits->vertex.v);
        CODEC(c, waits->subtask);
        CODEC(c, waits->attempt);
    }
}

static void regions_codec(struct codec *c, struct pliant_sched *s)
{
    struct regional *r = &s->regional;
    bool on = r->on;

    CODEC(c, r->restarts);
    CODEC(c, r->base);
    CODEC(c, r->next_due);
    CODEC(c, r->next_give_up);
    CODEC(c, r->n_pending);
    CODEC(c, r->n_decided);
    codec_deadline(c, &r->due);
    codec_deadline(c, &r->give_up);
    codec_bool(c, &on);
    if (c->reading && codec_fine(c) && on) {
        codec_expect(c, s->graph.exists);
        if (codec_fine(c))
            s->way->find(s);
        if (s->no_memory)
            codec_no_memory(c);
        codec_expect(c, r->on);
    }
    if (codec_fine(c) && on && s->way->decides)
        batching_codec(c, s);
    if (codec_fine(c) && on)
        plans_codec(c, r);
    if (codec_fine(c) && on && !s->way->rescales)
        scheduling_codec(c, s);
    codec_expect(c, r->base >= 1 && r->next_due >= r->base && r->next_due - r->base <= r->plans.n &&
                        r->next_give_up >= r->base && r->next_give_up - r->base <= r->plans.n);
}

void regional_codec(struct codec *c, struct pliant_sched *s)
{
    regions_codec(c, s);
    speculation_codec(c, s);
}

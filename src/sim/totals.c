/* totals.c - see totals.h */
#include "sim/totals.h"

#include <errno.h>
#include <string.h>

int totals_init(struct totals *t, uint32_t n_vertices)
{
    *t = (struct totals){.n_vertices = n_vertices};
    t->state_visits[PLIANT_CREATED] = 1;
    t->parallelism = mem_zero(NULL, n_vertices, sizeof *t->parallelism);
    t->vertices = mem_zero(NULL, n_vertices, sizeof *t->vertices);
    if (t->parallelism && t->vertices)
        return 0;
    totals_free(t);
    return -ENOMEM;
}

void totals_free(struct totals *t)
{
    for (uint32_t i = 0; t->vertices && i < t->n_vertices; i++)
        vec_free(NULL, &t->vertices[i]);
    mem_free(NULL, t->vertices);
    mem_free(NULL, t->parallelism);
    vec_free(NULL, &t->at);
    *t = (struct totals){0};
}

/* *sum += slots * ms, at most UINT64_MAX: a trace may have gaps of many years. */
static void add_slot_ms(uint64_t *sum, uint32_t slots, int64_t ms)
{
    uint64_t more;

    if (slots > 0 && (uint64_t)ms > UINT64_MAX / slots) {
        *sum = UINT64_MAX;
        return;
    }
    more = (uint64_t)ms * slots;
    *sum = *sum > UINT64_MAX - more ? UINT64_MAX : *sum + more;
}

static int add_share(struct totals_shares *shares, uint32_t parallelism, int64_t ms)
{
    size_t i = shares->n;

    while (i > 0 && shares->v[i - 1].parallelism >= parallelism)
        i--;
    if (i == shares->n || shares->v[i].parallelism != parallelism) {
        if (!vec_push(NULL, shares))
            return -ENOMEM;
        memmove(&shares->v[i + 1], &shares->v[i], (shares->n - 1 - i) * sizeof *shares->v);
        shares->v[i] = (struct totals_share){.parallelism = parallelism};
    }
    shares->v[i].ms += ms;
    return 0;
}

/* Time goes on to at_ms with all as it is. */
static void pass(struct totals *t, int64_t at_ms)
{
    int64_t ms = at_ms - t->now_ms;

    t->state_ms[t->state] += ms;
    if (t->state != PLIANT_FINISHED) {
        add_slot_ms(&t->slot_ms_offered, t->offered, ms);
        add_slot_ms(&t->slot_ms_used, t->used, ms);
    }
    t->now_ms = at_ms;
}

/* Count the shares up to now: the present time at work, or the present pause, ends here. */
static int close_part(struct totals *t)
{
    bool works = view_works(t->state);
    int64_t ms = t->now_ms - t->part_from_ms;
    int rc = 0;

    t->part_from_ms = t->now_ms;
    if (!t->began || t->state == PLIANT_FINISHED || ms == 0)
        return 0;
    rc = add_share(&t->at, works ? view_widest(t->parallelism, t->n_vertices) : 0, ms);
    for (uint32_t i = 0; rc == 0 && i < t->n_vertices; i++)
        rc = add_share(&t->vertices[i], works ? t->parallelism[i] : 0, ms);
    return rc;
}

static void close_downtime(struct totals *t)
{
    int64_t ms = t->now_ms - t->down_from_ms;

    if (!t->began || t->state == PLIANT_EXECUTING || t->state == PLIANT_FINISHED)
        return;
    t->downtime_ms += ms;
    if (ms > t->downtime_longest_ms)
        t->downtime_longest_ms = ms;
    t->down_from_ms = t->now_ms;
}

/* The job comes to work with the parallelism of the view. */
static void compare_parallelism(struct totals *t, const struct view *v)
{
    uint64_t was = 0, is = 0;
    bool differs = false;

    for (uint32_t i = 0; i < t->n_vertices; i++) {
        was += t->parallelism[i];
        is += v->parallelism[i];
        differs |= t->parallelism[i] != v->parallelism[i];
        t->parallelism[i] = v->parallelism[i];
    }
    if (!t->began || !differs)
        return;
    t->rescales++;
    t->rescales_by[t->left_for]++;
    t->rescales_up += is > was;
    t->rescales_down += is < was;
}

static int change_state(struct totals *t, const struct view *v, const struct pliant_action *a)
{
    enum pliant_state from = t->state, to = (enum pliant_state)a->flag[1];
    enum pliant_reason reason = (enum pliant_reason)a->flag[2];
    int rc = 0;

    if (view_works(from) != view_works(to) || to == PLIANT_FINISHED)
        rc = close_part(t);
    if (to == PLIANT_EXECUTING || to == PLIANT_FINISHED)
        close_downtime(t);
    if (from == PLIANT_EXECUTING)
        t->down_from_ms = t->now_ms;
    t->state = to;
    t->state_visits[to]++;
    if (to == PLIANT_RESTARTING) {
        t->restarts++;
        t->restarts_by[reason]++;
        t->left_for = reason;
    }
    if (to == PLIANT_EXECUTING) {
        compare_parallelism(t, v);
        t->began = true;
    }
    return rc;
}

/* A vertex of a batch job got its tasks: no rescale. */
static int grow(struct totals *t, const struct view *v)
{
    int rc = close_part(t);

    for (uint32_t i = 0; i < t->n_vertices; i++)
        t->parallelism[i] = v->parallelism[i];
    return rc;
}

static void count_event(struct totals *t, const struct view *v)
{
    enum view_node_news news = view_node_news(v);

    t->nodes_joined += news == VIEW_NODE_JOINED;
    t->nodes_lost += news == VIEW_NODE_LOST;
    t->nodes_drained += news == VIEW_NODE_DRAINS;
    t->drains_withdrawn += news == VIEW_NODE_STAYS;
    t->nodes_left += news == VIEW_NODE_LEFT;
    t->events_ignored = v->counts.events_ignored;
    t->region_restarts = v->counts.region_restarts;
    if (view_ignored(v))
        return;
    t->checkpoints_completed += v->event->kind == PLIANT_EV_CHECKPOINT_COMPLETED;
    t->checkpoints_failed += v->event->kind == PLIANT_EV_CHECKPOINT_FAILED;
}

int totals_take(struct totals *t, const struct view *v)
{
    int rc = 0;

    pass(t, v->at_ms);
    for (size_t i = 0; rc == 0 && i < v->actions->n; i++)
        if (v->actions->v[i].kind == PLIANT_ACT_STATE_CHANGED)
            rc = change_state(t, v, &v->actions->v[i]);
        else if (v->actions->v[i].kind == PLIANT_ACT_DECIDED)
            rc = grow(t, v);
    count_event(t, v);
    t->status = v->status;
    t->offered = v->counts.slots; /* also of nodes that drain: they are used until the move */
    t->used = view_used(v);
    return rc;
}

int totals_end(struct totals *t, int64_t end_ms)
{
    pass(t, end_ms);
    close_downtime(t);
    return close_part(t);
}

int64_t totals_lifetime_ms(const struct totals *t)
{
    int64_t ms = 0;

    for (size_t i = 0; i < t->at.n; i++)
        ms += t->at.v[i].ms;
    return ms;
}

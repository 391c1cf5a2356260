/* slots.c - which job has which slot of which node
 *
 * The daemon's slots are the real ones: one owner at most, and every change of owner is stored in
 * the turn in which the job's core learns of it. A core numbers the slots that it was given of a
 * node by itself; a number is bound to a real slot when the core first names it.
 *
 * Sharing looks at all jobs when something changed. Free slots go to jobs below their share; only
 * for an unmet minimum are slots asked back, from jobs above their share, and no more than are not
 * on their way back already.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

#define RECLAIM_MS 30000 /* a job has so long to move off slots that others shall have */

static bool is_live(const struct daemon_job *job)
{
    return job->sched && !job->ended_unix_ms;
}

/* ---- tenants ------------------------------------------------------------------------------ */

static struct daemon_tenant *tenant_of(const struct daemon_node *node, const struct daemon_job *job)
{
    for (size_t i = 0; i < node->tenants.n; i++)
        if (node->tenants.v[i].job == job)
            return &node->tenants.v[i];
    return NULL;
}

static struct daemon_tenant *tenant_made(struct daemon_node *node, struct daemon_job *job)
{
    struct daemon_tenant *tenant = tenant_of(node, job);

    if (tenant)
        return tenant;
    tenant = need(vec_push(NULL, &node->tenants));
    tenant->job = job;
    return tenant;
}

static void tenant_remove(struct daemon_node *node, struct daemon_tenant *tenant)
{
    *tenant = node->tenants.v[--node->tenants.n];
}

static bool grantable(const struct daemon_node *node)
{
    return node->state == NODE_UP && !node->draining && node->n_used < node->n_slots;
}

bool node_has_open_life(const struct daemon_node *node, const struct daemon_job *job)
{
    const struct daemon_life *life = NULL;

    if (job->lives)
        HASH_FIND_STR(job->lives, node->name, life);
    return life && life->open;
}

/* ---- one slot ----------------------------------------------------------------------------- */

static void store_owner(struct daemon *d, const struct daemon_node *node, uint32_t i)
{
    const struct daemon_slot *slot = &node->slots[i];

    store_slot_put(d->store, &(struct store_slot){.node = node->name,
                                                  .slot = i,
                                                  .job = slot->job ? slot->job->id : NULL,
                                                  .index = slot->index});
}

static void give(struct daemon *d, struct daemon_node *node, uint32_t i,
                 struct daemon_tenant *tenant)
{
    assert(!node->slots[i].job);
    node->slots[i] = (struct daemon_slot){.job = tenant->job, .index = SLOT_UNNAMED};
    node->n_used++;
    tenant->held++;
    store_owner(d, node, i);
}

/* `tenant` NULL: the job gave the node up. */
static void take(struct daemon *d, struct daemon_node *node, uint32_t i,
                 struct daemon_tenant *tenant)
{
    assert(node->slots[i].job && node->n_used > 0);
    assert(!tenant || (tenant->job == node->slots[i].job && tenant->held > 0));
    node->slots[i] = (struct daemon_slot){.index = SLOT_UNNAMED};
    node->n_used--;
    if (tenant)
        tenant->held--;
    store_owner(d, node, i);
    d->share_slots = true;
}

/* One with this number; else, where the core has not named all that it was given, one of those.
 * Most nodes are used by one job, whose numbers are then the slots' own. */
static uint32_t look_up(const struct daemon_node *node, const struct daemon_job *job,
                        uint32_t index)
{
    uint32_t unnamed = UINT32_MAX;

    if (index < node->n_slots && node->slots[index].job == job) {
        if (node->slots[index].index == index)
            return index;
        if (node->slots[index].index == SLOT_UNNAMED)
            unnamed = index;
    }
    for (uint32_t i = 0; i < node->n_slots; i++) {
        if (node->slots[i].job != job)
            continue;
        if (node->slots[i].index == index)
            return i;
        if (unnamed == UINT32_MAX && node->slots[i].index == SLOT_UNNAMED)
            unnamed = i;
    }
    return unnamed;
}

uint32_t slots_find(struct daemon *d, struct daemon_node *node, struct daemon_job *job,
                    uint32_t index)
{
    uint32_t i = look_up(node, job, index);

    if (i != UINT32_MAX && node->slots[i].index != index) {
        node->slots[i].index = index;
        store_owner(d, node, i);
    }
    return i;
}

/* ---- nodes and jobs come and go ------------------------------------------------------------- */

void slots_of_new_node(struct daemon *d, struct daemon_node *node)
{
    if (node->n_slots > 0)
        node->slots = need(calloc(node->n_slots, sizeof *node->slots));
    for (uint32_t i = 0; i < node->n_slots; i++)
        node->slots[i].index = SLOT_UNNAMED;
    node->n_used = 0;
    node->tenants.n = 0;
    d->share_slots = true;
}

static void tell_lost(struct daemon *d, struct daemon_job *job, const char *name,
                      uint64_t incarnation)
{
    job_fact(d, job,
             &(struct pliant_event){.kind = PLIANT_EV_NODE_LOST,
                                    .node = {.name = name, .incarnation = incarnation}});
}

void slots_of_lost_node(struct daemon *d, struct daemon_node *node)
{
    for (size_t i = 0; i < node->tenants.n; i++) {
        struct daemon_job *job = node->tenants.v[i].job;

        if (is_live(job))
            tell_lost(d, job, node->name, job_incarnation(job, node));
    }
    for (uint32_t i = 0; i < node->n_slots; i++)
        if (node->slots[i].job)
            take(d, node, i, tenant_of(node, node->slots[i].job));
    vec_free(NULL, &node->tenants);
    free(node->slots);
    node->slots = NULL;
    node->n_slots = 0;
    d->share_slots = true;
}

static void tell_drained(struct daemon *d, struct daemon_job *job, const struct daemon_node *node)
{
    uint64_t incarnation = job_incarnation(job, node);
    struct pliant_event ev = {.kind = PLIANT_EV_NODE_DRAIN_WITHDRAWN,
                              .node = {.name = node->name, .incarnation = incarnation}};

    if (node->draining)
        ev = (struct pliant_event){.kind = PLIANT_EV_NODE_DRAINING,
                                   .draining = {.name = node->name,
                                                .incarnation = incarnation,
                                                .deadline_at_ms = node->drain_end_at_ms,
                                                .reason = node->drain_reason}};
    job_fact(d, job, &ev);
}

void slots_of_drained_node(struct daemon *d, struct daemon_node *node)
{
    for (size_t i = 0; i < node->tenants.n; i++)
        if (is_live(node->tenants.v[i].job))
            tell_drained(d, node->tenants.v[i].job, node);
    d->share_slots = true;
}

void slots_released(struct daemon *d, struct daemon_job *job, const pliant_slot_id *slots,
                    uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        pliant_node_id id = pliant_slot_node(job->sched, slots[i]);
        struct daemon_node *node = node_find(d, pliant_node_name(job->sched, id));
        struct daemon_tenant *tenant;
        uint32_t slot;

        if (!node || job_incarnation(job, node) != pliant_node_incarnation(job->sched, id))
            continue; /* it is lost, and the core does not know yet */
        tenant = tenant_of(node, job);
        slot = look_up(node, job, pliant_slot_index(job->sched, slots[i]));
        if (slot == UINT32_MAX || !tenant)
            continue;
        take(d, node, slot, tenant);
        tenant->reclaimed -= tenant->reclaimed > 0;
    }
}

static void take_all(struct daemon *d, struct daemon_node *node, const struct daemon_job *job)
{
    struct daemon_tenant *tenant = tenant_of(node, job);

    for (uint32_t i = 0; i < node->n_slots && (!tenant || tenant->held > 0); i++)
        if (node->slots[i].job == job)
            take(d, node, i, tenant);
    if (tenant)
        tenant_remove(node, tenant);
}

void slots_of_ended_job(struct daemon *d, struct daemon_job *job)
{
    for (struct daemon_node *node = d->nodes; node; node = node->hh.next)
        if (tenant_of(node, job) || node_has_open_life(node, job))
            take_all(d, node, job);
    d->share_slots = true;
}

void slots_given_up(struct daemon *d, struct daemon_job *job, struct daemon_node *node, bool over)
{
    struct daemon_tenant *tenant = tenant_of(node, job);

    if (over)
        take_all(d, node, job);
    else if (tenant)
        tenant_remove(node, tenant);
    d->share_slots = true;
}

/* ---- after a restart of the daemon ---------------------------------------------------------- */

static void count_owners(struct daemon_node *node)
{
    node->n_used = 0;
    node->tenants.n = 0;
    for (uint32_t i = 0; i < node->n_slots; i++)
        if (node->slots[i].job) {
            node->n_used++;
            if (!node_has_open_life(node, node->slots[i].job))
                tenant_made(node, node->slots[i].job)->held++;
        }
}

/* Which nodes the core knows, also those that it has no slot of any more. */
static void find_lives(struct daemon *d, struct daemon_job *job)
{
    struct pliant_counts counts;

    pliant_counts(job->sched, &counts);
    for (uint32_t id = 1, seen = 0; seen < counts.nodes && id <= PLIANT_MAX_NODES; id++) {
        const char *name = pliant_node_name(job->sched, (pliant_node_id){id});
        uint64_t incarnation = pliant_node_incarnation(job->sched, (pliant_node_id){id});
        struct daemon_node *node;

        if (!*name)
            continue;
        seen++;
        node = node_find(d, name);
        if (node && job_incarnation(job, node) == incarnation)
            tenant_made(node, job);
        else
            tell_lost(d, job, name, incarnation);
    }
}

void slots_recovered(struct daemon *d)
{
    for (struct daemon_node *node = d->nodes; node; node = node->hh.next)
        count_owners(node);
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next)
        if (is_live(job))
            find_lives(d, job);
    d->share_slots = true;
}

/* ---- sharing -------------------------------------------------------------------------------- */

/* One pass over all jobs that live. */
struct sharing {
    struct daemon *d;
    struct daemon_job **jobs; /* [n], in order of submission */
    struct share_claim *ideal, *next;
    size_t n;
    uint32_t free;      /* slots that can be granted now */
    uint32_t returning; /* asked back, and not yet released */
    bool facts;         /* some were made */
};

static bool changed(struct daemon *d)
{
    bool any = d->share_slots;

    d->share_slots = false;
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next) {
        any = any || (is_live(job) && job->scan_slots);
        job->scan_slots = false;
    }
    return any;
}

/* One that ends keeps what it has until it gives it back. */
static bool wants_slots(const struct daemon_job *job)
{
    switch (pliant_job_status(job->sched)) {
    case PLIANT_JOB_INITIALIZING:
    case PLIANT_JOB_CREATED:
    case PLIANT_JOB_RUNNING:
    case PLIANT_JOB_RESTARTING:
        return job->declared > 0;
    case PLIANT_JOB_FAILING:
    case PLIANT_JOB_FAILED:
    case PLIANT_JOB_CANCELLING:
    case PLIANT_JOB_CANCELED:
    case PLIANT_JOB_FINISHED:
    case PLIANT_JOB_SUSPENDED:
        return false;
    }
    return false;
}

static struct share_claim claim_of(const struct daemon_job *job, struct pliant_counts *counts)
{
    pliant_counts(job->sched, counts);
    if (!wants_slots(job))
        return (struct share_claim){.minimal = counts->slots_offered,
                                    .desired = counts->slots_offered,
                                    .held = counts->slots_offered};
    return (struct share_claim){
        .minimal = counts->minimal, .desired = counts->desired, .held = counts->slots_offered};
}

static void look_at_nodes(struct sharing *s)
{
    uint32_t on_draining = 0;

    for (const struct daemon_node *node = s->d->nodes; node; node = node->hh.next) {
        if (grantable(node))
            s->free += node->n_slots - node->n_used;
        for (size_t i = 0; node->draining && i < node->tenants.n; i++)
            on_draining += node->tenants.v[i].held;
    }
    s->returning -= s->returning < on_draining ? s->returning : on_draining;
}

static void sharing_begin(struct sharing *s, struct daemon *d)
{
    size_t n = HASH_COUNT(d->jobs);

    *s = (struct sharing){.d = d};
    s->jobs = need(malloc((n + 1) * sizeof(struct daemon_job *)));
    s->ideal = need(malloc((n + 1) * sizeof *s->ideal));
    s->next = need(malloc((n + 1) * sizeof *s->next));
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next) {
        struct pliant_counts counts;

        if (!is_live(job))
            continue;
        s->jobs[s->n] = job;
        s->ideal[s->n++] = claim_of(job, &counts);
        s->returning += counts.slots - counts.slots_offered;
    }
    look_at_nodes(s);
}

static void sharing_end(struct sharing *s)
{
    free(s->jobs);
    free(s->ideal);
    free(s->next);
}

/* Who may have what, if all slots could be handed out anew. */
static void share_all(struct sharing *s)
{
    uint64_t slots = (uint64_t)s->free + s->returning;

    for (size_t i = 0; i < s->n; i++)
        slots += s->ideal[i].held;
    fair_share(s->ideal, s->n, slots < UINT32_MAX ? (uint32_t)slots : UINT32_MAX);
}

static uint32_t below_minimum(const struct share_claim *c)
{
    return c->satisfied && c->held < c->minimal ? c->minimal - c->held : 0;
}

/* Who gets which part of the free slots, when nobody loses any: minimums first. Returns how many
 * slots minimums still lack. */
static uint32_t share_free(struct sharing *s)
{
    uint32_t left = s->free, lacking = 0;
    uint64_t slots = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct share_claim *c = &s->ideal[i];
        uint32_t lacks = below_minimum(c), now = lacks < left ? lacks : left;

        left -= now;
        lacking += lacks - now;
        s->next[i] = (struct share_claim){.minimal = c->held + now, .held = c->held};
        s->next[i].desired = c->target > s->next[i].minimal ? c->target : s->next[i].minimal;
        slots += s->next[i].minimal;
    }
    slots += left;
    fair_share(s->next, s->n, slots < UINT32_MAX ? (uint32_t)slots : UINT32_MAX);
    return lacking;
}

/* ---- granting ------------------------------------------------------------------------------- */

struct offer {
    struct daemon_node *node;
    uint32_t held, free;
};

/* Nodes where the job is already, then those with most room; names, so that it is the same in every
 * run. */
static int by_preference(const void *a, const void *b)
{
    const struct offer *x = a, *y = b;

    if (x->held != y->held)
        return x->held > y->held ? -1 : 1;
    if (x->free != y->free)
        return x->free > y->free ? -1 : 1;
    return strcmp(x->node->name, y->node->name);
}

static void tell_granted(struct daemon *d, const struct daemon_node *node, struct daemon_job *job,
                         bool known, uint32_t n)
{
    uint64_t incarnation = job_incarnation(job, node);
    struct pliant_event ev = {
        .kind = PLIANT_EV_SLOTS_GRANTED,
        .granted = {.name = node->name, .incarnation = incarnation, .slots = n}};

    if (!known)
        ev = (struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                   .node_up = {.name = node->name,
                                               .incarnation = incarnation,
                                               .slots = n,
                                               .zone = node->zone,
                                               .domain = node->domain,
                                               .labels = node->labels,
                                               .n_labels = node->n_labels}};
    job_fact(d, job, &ev);
}

static void grant_of_node(struct daemon *d, struct daemon_node *node, struct daemon_job *job,
                          uint32_t n)
{
    bool known = tenant_of(node, job) != NULL;
    struct daemon_tenant *tenant = tenant_made(node, job);
    uint32_t left = n;

    for (uint32_t i = 0; left > 0; i++) {
        assert(i < node->n_slots);
        if (node->slots[i].job)
            continue;
        give(d, node, i, tenant);
        left--;
    }
    tell_granted(d, node, job, known, n);
}

static struct offer *offers_for(struct daemon *d, const struct daemon_job *job, size_t *ret_n)
{
    struct offer *offers = need(malloc((HASH_COUNT(d->nodes) + 1) * sizeof *offers));
    size_t n = 0;

    for (struct daemon_node *node = d->nodes; node; node = node->hh.next) {
        const struct daemon_tenant *tenant;

        if (!grantable(node) || node_has_open_life(node, job))
            continue;
        tenant = tenant_of(node, job);
        offers[n++] = (struct offer){
            .node = node, .held = tenant ? tenant->held : 0, .free = node->n_slots - node->n_used};
    }
    qsort(offers, n, sizeof *offers, by_preference);
    *ret_n = n;
    return offers;
}

static void grant(struct sharing *s, struct daemon_job *job, uint32_t n)
{
    size_t n_offers;
    struct offer *offers = offers_for(s->d, job, &n_offers);

    for (size_t i = 0; i < n_offers && n > 0; i++) {
        uint32_t part = n < offers[i].free ? n : offers[i].free;

        grant_of_node(s->d, offers[i].node, job, part);
        n -= part;
        s->facts = true;
    }
    free(offers);
}

void slots_preview(struct daemon *d, uint32_t minimal, uint32_t desired,
                   void (*each)(void *ctx, const struct daemon_node *node, uint32_t slots),
                   void *ctx)
{
    const struct daemon_job nobody = {0};
    struct offer *offers;
    struct sharing s;
    uint32_t left;
    size_t n;

    sharing_begin(&s, d);
    s.ideal[s.n++] = (struct share_claim){.minimal = minimal, .desired = desired};
    share_all(&s);
    share_free(&s);
    left = s.next[s.n - 1].target;
    if (left < minimal && s.ideal[s.n - 1].satisfied)
        left = minimal; /* what lacks is asked back */
    sharing_end(&s);
    offers = offers_for(d, &nobody, &n);
    for (size_t i = 0; i < n && left > 0; i++) {
        uint32_t part = i + 1 == n || left < offers[i].free ? left : offers[i].free;

        each(ctx, offers[i].node, part);
        left -= part;
    }
    free(offers);
}

/* ---- asking back ---------------------------------------------------------------------------- */

static uint32_t held_on_draining(const struct daemon *d, const struct daemon_job *job)
{
    uint32_t sum = 0;

    for (const struct daemon_node *node = d->nodes; node; node = node->hh.next) {
        const struct daemon_tenant *tenant = node->draining ? tenant_of(node, job) : NULL;

        sum += tenant ? tenant->held : 0;
    }
    return sum;
}

/* The core knows of which nodes slots were asked back, and tells only how many there are. What the
 * daemon remembers is made to fit; after its restart, they are taken for those of the first nodes.
 */
static void fit_reclaimed(struct daemon *d, const struct daemon_job *job)
{
    uint32_t draining = held_on_draining(d, job), left;
    struct pliant_counts counts;

    pliant_counts(job->sched, &counts);
    left = counts.slots - counts.slots_offered;
    left -= left < draining ? left : draining;
    for (int pass = 0; pass < 2; pass++)
        for (struct daemon_node *node = d->nodes; node; node = node->hh.next) {
            struct daemon_tenant *tenant = node->draining ? NULL : tenant_of(node, job);
            uint32_t most;

            if (!tenant)
                continue;
            most = pass == 0 ? tenant->reclaimed : tenant->held;
            if (pass == 0)
                tenant->reclaimed = 0;
            most -= tenant->reclaimed;
            most = most < left ? most : left;
            tenant->reclaimed += most;
            left -= most;
        }
}

/* Of a job's nodes the one on which it has fewest slots: whole nodes become free. */
static struct daemon_node *least_used(const struct daemon *d, const struct daemon_job *job)
{
    struct daemon_node *least = NULL;
    uint32_t fewest = UINT32_MAX;

    for (struct daemon_node *node = d->nodes; node; node = node->hh.next) {
        const struct daemon_tenant *tenant =
            node->state == NODE_UP && !node->draining ? tenant_of(node, job) : NULL;
        uint32_t slots = tenant ? tenant->held - tenant->reclaimed : 0;

        if (slots == 0 || slots >= fewest)
            continue;
        least = node;
        fewest = slots;
    }
    return least;
}

static uint32_t reclaim(struct sharing *s, struct daemon_job *job, uint32_t n)
{
    uint32_t asked = 0;

    fit_reclaimed(s->d, job);
    while (asked < n) {
        struct daemon_node *node = least_used(s->d, job);
        struct daemon_tenant *tenant;
        uint32_t part;

        if (!node)
            break;
        tenant = tenant_of(node, job);
        part = tenant->held - tenant->reclaimed;
        part = part < n - asked ? part : n - asked;
        tenant->reclaimed += part;
        asked += part;
        s->facts = true;
        job_fact(s->d, job,
                 &(struct pliant_event){
                     .kind = PLIANT_EV_SLOTS_RECLAIMED,
                     .reclaimed = {.name = node->name,
                                   .incarnation = job_incarnation(job, node),
                                   .slots = part,
                                   .deadline_at_ms = s->d->clock.now_ms + RECLAIM_MS}});
    }
    return asked;
}

static uint32_t above_share(const struct share_claim *c)
{
    return c->held > c->target ? c->held - c->target : 0;
}

/* From the job that is furthest above its share, the latest of equals: as few jobs as possible have
 * to move. A claim that was asked counts as if it had given back. */
static void reclaim_for_minimums(struct sharing *s, uint32_t lacking)
{
    while (lacking > 0) {
        size_t most = 0;
        uint32_t above = 0;

        for (size_t i = 0; i < s->n; i++)
            if (above_share(&s->ideal[i]) >= above) {
                above = above_share(&s->ideal[i]);
                most = i;
            }
        if (above == 0)
            return;
        lacking -= reclaim(s, s->jobs[most], above < lacking ? above : lacking);
        s->ideal[most].held = s->ideal[most].target;
    }
}

bool slots_share(struct daemon *d)
{
    struct sharing s;
    uint32_t lacking;

    if (!changed(d))
        return false;
    sharing_begin(&s, d);
    share_all(&s);
    lacking = share_free(&s);
    for (size_t i = 0; i < s.n; i++)
        if (s.next[i].target > s.next[i].held)
            grant(&s, s.jobs[i], s.next[i].target - s.next[i].held);
    if (lacking > s.returning)
        reclaim_for_minimums(&s, lacking - s.returning);
    sharing_end(&s);
    return s.facts;
}

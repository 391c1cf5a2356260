/* slots_test.c - many jobs and nodes that come and go: who has which slot
 *
 * Real cores, and a host that answers at once: what the daemon's other modules would do with their
 * actions is done here.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "util/prng.h"

#define MAX_FACTS 100000
#define MAX_JOBS 40
#define MAX_NODES 24

static const struct pliant_alloc *const hash_alloc = NULL;

/* ---- what else the daemon has --------------------------------------------------------------- */

struct fact {
    struct daemon_job *job;
    struct pliant_event ev;
    char name[16];
};

static struct fact facts[MAX_FACTS];
static size_t n_facts, first_fact;
static uint64_t reclaims, grants, stored;

void job_fact(struct daemon *d, struct daemon_job *job, const struct pliant_event *ev)
{
    struct fact *f = &facts[n_facts++];

    (void)d;
    cr_assert(n_facts < MAX_FACTS);
    *f = (struct fact){.job = job, .ev = *ev};
    reclaims += ev->kind == PLIANT_EV_SLOTS_RECLAIMED;
    grants += ev->kind == PLIANT_EV_SLOTS_GRANTED || ev->kind == PLIANT_EV_NODE_UP;
    switch ((int)ev->kind) {
    case PLIANT_EV_NODE_UP:
    case PLIANT_EV_SLOTS_GRANTED:
    case PLIANT_EV_SLOTS_RECLAIMED:
    case PLIANT_EV_NODE_LOST:
    case PLIANT_EV_NODE_DRAINING:
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
        snprintf(f->name, sizeof f->name, "%s", ev->node.name);
    }
}

struct daemon_node *node_find(struct daemon *d, const char *name)
{
    struct daemon_node *node;

    HASH_FIND_STR(d->nodes, name, node);
    return node;
}

uint64_t job_incarnation(const struct daemon_job *job, const struct daemon_node *node)
{
    (void)job;
    return node->incarnation;
}

int store_slot_put(struct store *s, const struct store_slot *slot)
{
    (void)s;
    (void)slot;
    stored++;
    return 0;
}

/* ---- a host that answers at once ------------------------------------------------------------ */

struct cluster {
    struct daemon d;
    uint64_t incarnations, jobs_made;
};

static void deployed(struct cluster *c, struct daemon_job *job, const struct pliant_action *a)
{
    pliant_node_id id = pliant_slot_node(job->sched, a->deploy.slot);
    struct daemon_node *node = node_find(&c->d, pliant_node_name(job->sched, id));

    cr_assert(node != NULL);
    cr_assert(slots_find(&c->d, node, job, pliant_slot_index(job->sched, a->deploy.slot)) !=
              UINT32_MAX);
    job_fact(&c->d, job,
             &(struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING, .task = a->deploy.task});
}

static void carry_out(struct cluster *c, struct daemon_job *job, const struct pliant_actions *acts)
{
    for (size_t i = 0; i < acts->n; i++) {
        const struct pliant_action *a = &acts->v[i];

        if (a->kind == PLIANT_ACT_DECLARE) {
            job->declared = a->declare.desired;
            job->scan_slots = true;
        } else if (a->kind == PLIANT_ACT_RELEASE) {
            slots_released(&c->d, job, a->release.slots, a->release.n);
        } else if (a->kind == PLIANT_ACT_RESERVE) {
            job_fact(&c->d, job,
                     &(struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED,
                                            .plan.plan = a->reserve.plan});
        } else if (a->kind == PLIANT_ACT_DEPLOY) {
            deployed(c, job, a);
        } else if (a->kind == PLIANT_ACT_CANCEL) {
            job_fact(&c->d, job,
                     &(struct pliant_event){.kind = PLIANT_EV_TASK_CANCELED, .task = a->task});
        } else if (a->kind == PLIANT_ACT_ARCHIVED) {
            slots_of_ended_job(&c->d, job);
            job->ended_unix_ms = 1;
        }
    }
}

static void step(struct cluster *c, struct daemon_job *job, const struct pliant_event *ev)
{
    struct pliant_actions acts;

    if (job->ended_unix_ms)
        return;
    cr_assert(eq(int, pliant_step(job->sched, c->d.clock.now_ms, ev, &acts), 0));
    carry_out(c, job, &acts);
    cr_assert_null(pliant_check(job->sched));
}

static void run(struct cluster *c)
{
    while (first_fact < n_facts) {
        struct fact *f = &facts[first_fact++];

        if (f->name[0])
            f->ev.node.name = f->name;
        step(c, f->job, &f->ev);
    }
    first_fact = n_facts = 0;
}

/* As the reactor does it. */
static void turn(struct cluster *c)
{
    run(c);
    while (slots_share(&c->d))
        run(c);
}

/* Time goes on until nothing is due for a while. */
static void settle(struct cluster *c, int64_t for_ms)
{
    int64_t end_ms = c->d.clock.now_ms + for_ms;

    turn(c);
    while (c->d.clock.now_ms < end_ms) {
        c->d.clock.now_ms += 1000;
        for (struct daemon_job *job = c->d.jobs; job; job = job->hh.next)
            if (!job->ended_unix_ms && pliant_next_deadline(job->sched) <= c->d.clock.now_ms)
                step(c, job, &(struct pliant_event){.kind = PLIANT_EV_TICK});
        turn(c);
    }
}

static struct daemon_job *job_up(struct cluster *c, int64_t min, int64_t want)
{
    struct daemon_job *job = calloc(1, sizeof *job);
    const struct pliant_vertex_spec v = {
        .id = "v", .parallelism = want, .min_parallelism = min, .max_parallelism = 128};

    snprintf(job->id, sizeof job->id, "%032x", (unsigned)++c->jobs_made);
    job->config = calloc(1, sizeof *job->config);
    pliant_config_init(job->config);
    pliant_config_set(job->config, "jobmanager.adaptive-scheduler.resource-wait-timeout", "-1 ms",
                      NULL);
    pliant_config_set(job->config, "jobmanager.adaptive-scheduler.scaling-interval.min", "0 s",
                      NULL);
    pliant_config_set(job->config, "restart-strategy.type", "fixed-delay", NULL);
    pliant_config_set(job->config, "restart-strategy.fixed-delay.attempts", "2147483647", NULL);
    cr_assert(eq(int, pliant_config_resolve(job->config, NULL), 0));
    cr_assert(eq(int,
                 pliant_job_new(&(struct pliant_job_spec){.vertices = &v, .n_vertices = 1}, NULL,
                                &job->spec.job, NULL),
                 0));
    cr_assert(eq(int, pliant_sched_new(job->config, job->spec.job, &job->sched, NULL), 0));
    HASH_ADD_STR(c->d.jobs, id, job);
    job_fact(&c->d, job, &(struct pliant_event){.kind = PLIANT_EV_START});
    return job;
}

static struct daemon_node *node_up(struct cluster *c, const char *name, uint32_t slots)
{
    struct daemon_node *node = calloc(1, sizeof *node);

    node->name = strdup(name);
    node->incarnation = ++c->incarnations;
    node->n_slots = slots;
    node->drain_end_at_ms = PLIANT_NEVER;
    HASH_ADD_KEYPTR(hh, c->d.nodes, node->name, strlen(node->name), node);
    slots_of_new_node(&c->d, node);
    return node;
}

static void node_gone(struct cluster *c, struct daemon_node *node)
{
    slots_of_lost_node(&c->d, node);
    run(c); /* facts borrow its name */
    HASH_DEL(c->d.nodes, node);
    free(node->name);
    free(node);
}

static void node_drains(struct cluster *c, struct daemon_node *node, bool draining)
{
    node->draining = draining;
    node->drain_end_at_ms = draining ? c->d.clock.now_ms + 60000 : PLIANT_NEVER;
    slots_of_drained_node(&c->d, node);
}

static void job_gone(struct cluster *c, struct daemon_job *job)
{
    HASH_DEL(c->d.jobs, job);
    pliant_sched_destroy(&job->sched);
    pliant_job_destroy(&job->spec.job);
    free(job->config);
    free(job);
}

static void cluster_end(struct cluster *c)
{
    while (c->d.nodes)
        node_gone(c, c->d.nodes);
    while (c->d.jobs)
        job_gone(c, c->d.jobs);
}

static uint32_t held(const struct daemon_job *job)
{
    struct pliant_counts counts;

    pliant_counts(job->sched, &counts);
    return counts.slots;
}

/* ---- what must always hold ------------------------------------------------------------------ */

/* The daemon's table and the cores agree about every slot. */
static void expect_agreement(struct cluster *c)
{
    for (struct daemon_job *job = c->d.jobs; job; job = job->hh.next) {
        struct pliant_counts counts;
        uint32_t slots = 0, leaving = 0;

        if (job->ended_unix_ms)
            continue;
        pliant_counts(job->sched, &counts);
        for (struct daemon_node *node = c->d.nodes; node; node = node->hh.next)
            for (size_t i = 0; i < node->tenants.n; i++)
                if (node->tenants.v[i].job == job) {
                    slots += node->tenants.v[i].held;
                    leaving += node->draining ? node->tenants.v[i].held : 0;
                }
        cr_assert(eq(u32, counts.slots, slots));
        cr_assert(counts.slots - counts.slots_offered >= leaving);
    }
    for (struct daemon_node *node = c->d.nodes; node; node = node->hh.next) {
        uint32_t owned = 0, by_tenants = 0;

        for (uint32_t i = 0; i < node->n_slots; i++)
            owned += node->slots[i].job != NULL;
        for (size_t i = 0; i < node->tenants.n; i++)
            by_tenants += node->tenants.v[i].held;
        cr_assert(eq(u32, owned, node->n_used));
        cr_assert(eq(u32, owned, by_tenants));
    }
}

/* Minimums that fit are met, in order, and no slot is free while somebody wants it. */
static void expect_shared_out(struct cluster *c)
{
    uint32_t capacity = 0, free_slots = 0, hungry = 0;

    for (struct daemon_node *node = c->d.nodes; node; node = node->hh.next)
        if (!node->draining) {
            capacity += node->n_slots;
            free_slots += node->n_slots - node->n_used;
        }
    for (struct daemon_job *job = c->d.jobs; job; job = job->hh.next) {
        struct pliant_counts counts;

        if (job->ended_unix_ms)
            continue;
        pliant_counts(job->sched, &counts);
        hungry += counts.slots_offered < counts.desired;
        if (counts.minimal > capacity)
            continue;
        capacity -= counts.minimal;
        cr_assert(counts.slots_offered >= counts.minimal);
    }
    cr_assert(hungry == 0 || free_slots == 0);
}

static void count_slots(void *ctx, const struct daemon_node *node, uint32_t slots)
{
    (void)node;
    *(uint32_t *)ctx += slots;
}

/* ---- sentences ------------------------------------------------------------------------------ */

Test(slots, a_job_alone_gets_all_it_may_have)
{
    struct cluster c = {0};
    struct daemon_job *job = job_up(&c, 1, 6);

    node_up(&c, "n1", 4);
    turn(&c);
    cr_expect(eq(u32, held(job), 4));
    node_up(&c, "n2", 4);
    turn(&c);
    cr_expect(eq(u32, held(job), 6));
    expect_agreement(&c);
    cluster_end(&c);
}

Test(slots, whole_nodes_come_first)
{
    struct cluster c = {0};
    struct daemon_node *small, *large;

    job_up(&c, 1, 4);
    small = node_up(&c, "n1", 2);
    large = node_up(&c, "n2", 4);
    turn(&c);
    cr_expect(eq(u32, small->n_used, 0));
    cr_expect(eq(u32, large->n_used, 4));
    cluster_end(&c);
}

Test(slots, an_unmet_minimum_gets_slots_back_from_a_job_above_its_share)
{
    struct cluster c = {0};
    struct daemon_job *first = job_up(&c, 1, 8), *second;

    node_up(&c, "n1", 4);
    node_up(&c, "n2", 4);
    settle(&c, 90000);
    cr_assert(eq(u32, held(first), 8));
    reclaims = 0;
    second = job_up(&c, 3, 8);
    turn(&c);
    cr_expect(eq(u64, reclaims, 1)); /* once, while it is pending */
    c.d.share_slots = true;
    turn(&c);
    cr_expect(eq(u64, reclaims, 1));
    settle(&c, 90000);
    cr_expect(eq(u32, held(first), 5));
    cr_expect(eq(u32, held(second), 3));
    expect_agreement(&c);
    cluster_end(&c);
}

Test(slots, fairness_alone_takes_nothing_from_a_running_job)
{
    struct cluster c = {0};
    struct daemon_job *first = job_up(&c, 1, 8), *second;

    node_up(&c, "n1", 6);
    settle(&c, 90000);
    node_up(&c, "n2", 1);
    second = job_up(&c, 1, 8);
    reclaims = 0;
    settle(&c, 90000);
    cr_expect(eq(u64, reclaims, 0));
    cr_expect(eq(u32, held(first) + held(second), 7));
    cr_expect(held(second) >= 1);
    cluster_end(&c);
}

Test(slots, a_draining_node_keeps_its_jobs_and_gets_no_new_ones)
{
    struct cluster c = {0};
    struct daemon_job *job = job_up(&c, 1, 2);
    struct daemon_node *node = node_up(&c, "n1", 4);

    settle(&c, 30000);
    cr_assert(eq(u32, held(job), 2));
    node_drains(&c, node, true);
    job_up(&c, 1, 2);
    turn(&c);
    cr_expect(eq(u32, node->n_used, 2));
    node_drains(&c, node, false);
    turn(&c);
    cr_expect(eq(u32, node->n_used, 4));
    expect_agreement(&c);
    cluster_end(&c);
}

Test(slots, idle_slots_go_to_others_and_not_back) /* known trouble 078 */
{
    struct cluster c = {0};
    struct daemon_job *job = job_up(&c, 1, 4);
    struct daemon_node *node = node_up(&c, "n1", 4);

    settle(&c, 30000);
    cr_assert(eq(u32, held(job), 4));
    job_fact(
        &c.d, job,
        &(struct pliant_event){.kind = PLIANT_EV_REQUIREMENTS,
                               .requirements = {.v = &(struct pliant_bounds){"v", 1, 2}, .n = 1}});
    settle(&c, 200000);
    cr_expect(eq(u32, held(job), 2));
    cr_expect(eq(u32, node->n_used, 2));
    settle(&c, 200000);
    cr_expect(eq(u32, held(job), 2));
    expect_agreement(&c);
    cluster_end(&c);
}

/* The core counts the node as lost, but its tasks may still be there. */
Test(slots, of_a_node_that_a_job_gave_up_stay_taken_until_its_last_task_has_ended)
{
    struct cluster c = {0};
    struct daemon_job *job = job_up(&c, 1, 2);
    struct daemon_node *node = node_up(&c, "n1", 3);
    struct daemon_life life = {.node = (char *)"n1", .given_up = 1, .open = true};

    settle(&c, 30000);
    cr_assert(eq(u32, held(job), 2));
    HASH_ADD_KEYPTR(hh, job->lives, life.node, strlen(life.node), &life);
    slots_given_up(&c.d, job, node, false);
    job_fact(&c.d, job,
             &(struct pliant_event){.kind = PLIANT_EV_NODE_LOST,
                                    .node = {.name = "n1", .incarnation = node->incarnation}});
    turn(&c);
    cr_expect(eq(u32, held(job), 0)); /* the free slot is of no use to it */
    cr_expect(eq(u32, node->n_used, 2));
    life.open = false;
    slots_given_up(&c.d, job, node, true);
    cr_expect(eq(u32, node->n_used, 0));
    HASH_DEL(job->lives, &life);
    cluster_end(&c);
}

Test(slots, a_preview_changes_nothing)
{
    struct cluster c = {0};
    struct daemon_job *first = job_up(&c, 1, 6);
    uint32_t given = 0;

    node_up(&c, "n1", 6);
    turn(&c);
    node_up(&c, "n2", 4);
    slots_preview(&c.d, 1, 8, count_slots, &given);
    cr_expect(eq(u32, given, 4)); /* five would be fair, and so many are free */
    given = 0;
    slots_preview(&c.d, 20, 20, count_slots, &given);
    cr_expect(eq(u32, given, 4)); /* never enough: what nobody else wants */
    cr_expect(eq(u32, held(first), 6));
    cluster_end(&c);
}

/* ---- chance --------------------------------------------------------------------------------- */

static struct daemon_node *any_node(struct cluster *c, struct prng *p)
{
    struct daemon_node *node = c->d.nodes;

    for (uint64_t n = prng_below(p, HASH_COUNT(c->d.nodes)); n > 0; n--)
        node = node->hh.next;
    return node;
}

static struct daemon_job *any_job(struct cluster *c, struct prng *p)
{
    struct daemon_job *job = c->d.jobs;

    for (uint64_t n = prng_below(p, HASH_COUNT(c->d.jobs)); n > 0; n--)
        job = job->hh.next;
    return job;
}

static void something_happens(struct cluster *c, struct prng *p)
{
    char name[16];

    switch (prng_below(p, 8)) {
    case 0:
    case 1:
        snprintf(name, sizeof name, "n%u", (unsigned)prng_below(p, MAX_NODES));
        if (!node_find(&c->d, name))
            node_up(c, name, 1 + (uint32_t)prng_below(p, 8));
        return;
    case 2:
        if (c->d.nodes)
            node_gone(c, any_node(c, p));
        return;
    case 3:
        if (c->d.nodes)
            node_drains(c, any_node(c, p), prng_below(p, 2));
        return;
    case 4:
    case 5:
        if (HASH_COUNT(c->d.jobs) < MAX_JOBS)
            job_up(c, 1 + (int64_t)prng_below(p, 5), 5 + (int64_t)prng_below(p, 20));
        return;
    case 6:
        if (c->d.jobs && prng_below(p, 2)) {
            struct daemon_job *job = any_job(c, p);

            if (job->ended_unix_ms)
                job_gone(c, job);
            else
                job_fact(&c->d, job, &(struct pliant_event){.kind = PLIANT_EV_CANCEL});
        }
        return;
    case 7:
        if (c->d.jobs) {
            int64_t min = 1 + (int64_t)prng_below(p, 5);
            struct daemon_job *job = any_job(c, p);
            const struct pliant_bounds bounds = {"v", min, min + (int64_t)prng_below(p, 12)};

            job_fact(&c->d, job,
                     &(struct pliant_event){.kind = PLIANT_EV_REQUIREMENTS,
                                            .requirements = {.v = &bounds, .n = 1}});
            job->scan_slots = true;
            run(c);
        }
        return;
    }
}

Test(slots, daemon_and_cores_agree_whatever_happens)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct prng p = {seed};
        struct cluster c = {0};

        for (int i = 0; i < 120; i++) {
            something_happens(&c, &p);
            if (prng_below(&p, 3) == 0)
                turn(&c);
            else
                settle(&c, (int64_t)prng_below(&p, 20) * 1000);
            expect_agreement(&c);
        }
        settle(&c, 400000);
        expect_agreement(&c);
        expect_shared_out(&c);
        cluster_end(&c);
    }
}

/* What the store has: owners and numbers of slots; the rest is in the cores. */
static void forget_and_recover(struct cluster *c)
{
    for (struct daemon_node *node = c->d.nodes; node; node = node->hh.next) {
        node->tenants.n = 0;
        node->n_used = 0;
    }
    slots_recovered(&c->d);
}

Test(slots, a_new_daemon_finds_everything_again)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct prng p = {seed * 31};
        struct cluster c = {0};

        for (int i = 0; i < 60; i++) {
            something_happens(&c, &p);
            settle(&c, (int64_t)prng_below(&p, 20) * 1000);
            if (prng_below(&p, 3) == 0)
                forget_and_recover(&c);
            turn(&c);
            expect_agreement(&c);
        }
        cluster_end(&c);
    }
}

Test(slots, sharing_among_many_is_cheap)
{
    struct cluster c = {0};
    char name[16];

    for (int i = 0; i < 500; i++)
        job_up(&c, 1, 20);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "n%u", i);
        node_up(&c, name, 16);
    }
    turn(&c);
    for (int i = 0; i < 100; i++) {
        c.d.share_slots = true;
        turn(&c);
    }
    expect_agreement(&c);
    for (struct daemon_job *job = c.d.jobs; job; job = job->hh.next)
        cr_expect(held(job) == 3 || held(job) == 4);
    cluster_end(&c);
}

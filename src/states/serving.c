/* serving.c - see serving.h */
#include "states/serving.h"

#include <stdio.h>

#include "states/seating.h"

#define LINE_GONE UINT32_MAX
#define CLAIMED UINT32_MAX /* a unit's round while it is not decided */

/* ---- life ------------------------------------------------------------------------------- */

void line_init(struct line *l, const struct pliant_alloc *a)
{
    *l = (struct line){.alloc = a, .timeout = DEADLINE_NONE};
}

void line_empty(struct line *l)
{
    for (size_t i = l->first; i < l->v.n; i++)
        least_put(&l->needs, i, LEAST_NOTHING);
    l->v.n = l->first = l->n = l->n_starving = 0;
    deadline_clear(&l->timeout);
}

void line_free(struct line *l)
{
    const struct pliant_alloc *a = l->alloc;

    vec_free(a, &l->v);
    least_free(a, &l->needs);
    vec_free(a, &l->chosen);
    mem_free(a, l->place);
    mem_free(a, l->first_unit);
    mem_free(a, l->units);
    mem_free(a, l->lives);
    line_init(l, a);
}

static bool number_units(struct pliant_sched *s)
{
    struct line *l = &s->scheduling.line;

    l->first_unit = mem_zero(s->alloc, s->job->n_groups, sizeof *l->first_unit);
    for (uint32_t k = 0; l->first_unit && k < s->job->n_groups; k++) {
        l->first_unit[k] = l->n_units;
        l->n_units += s->bounds.groups[k].hi;
    }
    l->units = mem_zero(s->alloc, (size_t)l->n_units + 1, sizeof *l->units);
    l->lives = mem_zero(s->alloc, (size_t)l->n_units + 1, sizeof *l->lives);
    return l->first_unit && l->units && l->lives;
}

void line_begin(struct pliant_sched *s)
{
    struct line *l = &s->scheduling.line;

    line_free(l);
    l->offered = s->pool.n_offered;
    for (size_t e = 0; e < s->job->n_edges; e++)
        l->finite |= s->job->edges[e].exchange == PLIANT_BLOCKING;
    l->finite |= s->way->single;
    if (!s->way->single && !number_units(s))
        sched_no_memory(s);
    line_add(s);
}

void line_add(struct pliant_sched *s)
{
    struct line *l = &s->scheduling.line;

    if (!array_reserve(s->alloc, &l->place, &l->place_cap, s->regional.regions.n, sizeof *l->place))
        sched_no_memory(s);
}

/* ---- how many slots does a region need? ------------------------------------------------- */

static uint32_t unit_of(const struct pliant_sched *s, uint32_t task)
{
    const struct topology *t = &s->regional.topology;
    uint32_t v = t->vertex_of[task];

    return s->scheduling.line.first_unit[s->job->group_of[v]] + task - t->first_task[v];
}

static bool homeless(const struct pliant_sched *s, uint32_t task)
{
    const struct topology *t = &s->regional.topology;
    uint32_t v = t->vertex_of[task];

    return seating_home(s, s->job->group_of[v], task - t->first_task[v]) == POOL_NONE;
}

static void next_round(struct line *l)
{
    if (++l->round != CLAIMED)
        return;
    for (uint32_t i = 0; i < l->n_units; i++)
        l->units[i] = 0;
    l->round = 1;
}

/* Its units, and which of them live. */
static void count_units(struct pliant_sched *s, struct asking *asking)
{
    const struct regions *r = &s->regional.regions;
    struct line *l = &s->scheduling.line;

    asking->units = asking->need = s->way->single;
    if (s->way->single)
        return;
    next_round(l);
    for (uint32_t k = r->first[asking->region]; k < r->first[asking->region + 1]; k++) {
        uint32_t unit = unit_of(s, r->members[k]);

        if (l->units[unit] == l->round)
            continue;
        l->units[unit] = l->round;
        l->lives[unit] = !homeless(s, r->members[k]);
        asking->units++;
        asking->need += !l->lives[unit];
    }
}

/* Its homeless units that nobody has claimed in this round. */
static uint32_t claim_units(struct pliant_sched *s, uint32_t region)
{
    const struct regions *r = &s->regional.regions;
    struct line *l = &s->scheduling.line;
    uint32_t n = 0;

    for (uint32_t k = r->first[region]; k < r->first[region + 1]; k++) {
        uint32_t unit = unit_of(s, r->members[k]);

        if (l->units[unit] == l->round || l->units[unit] == CLAIMED || l->lives[unit])
            continue;
        l->units[unit] = CLAIMED;
        n++;
    }
    return n;
}

static void settle_claim(struct pliant_sched *s, uint32_t region, bool granted)
{
    const struct regions *r = &s->regional.regions;
    struct line *l = &s->scheduling.line;

    for (uint32_t k = r->first[region]; k < r->first[region + 1]; k++) {
        uint32_t *unit = &l->units[unit_of(s, r->members[k])];

        if (*unit == CLAIMED)
            *unit = granted ? l->round : 0;
    }
}

/* Free slots that a region needs beside those claimed in this round; they are claimed for it if
 * there are so many. */
static bool claim(struct pliant_sched *s, uint32_t region, uint32_t *n_free, uint32_t *ret_need)
{
    uint32_t need = s->way->single ? 1 : claim_units(s, region);
    bool granted = need <= *n_free;

    if (!s->way->single)
        settle_claim(s, region, granted);
    if (granted)
        *n_free -= need;
    *ret_need = need;
    return granted;
}

/* ---- coming and going ------------------------------------------------------------------- */

static bool would_do(const struct pliant_sched *s, uint32_t units)
{
    return s->scheduling.line.finite && units <= s->pool.n_offered;
}

/* At least 1 ms: with no delay either, a job without slots would restart for ever in one step. */
static int64_t patience_ends(const struct pliant_sched *s, int64_t since_ms)
{
    int64_t timeout_ms = s->cfg.slot_request_timeout_ms;

    return instant_after(since_ms, timeout_ms > 0 ? timeout_ms : 1);
}

static void arm(struct pliant_sched *s, int64_t since_ms)
{
    struct line *l = &s->scheduling.line;
    int64_t at_ms = patience_ends(s, since_ms);

    if (at_ms != PLIANT_NEVER)
        deadline_arm(&l->timeout, &s->clock, at_ms);
    else
        deadline_clear(&l->timeout);
}

static void starves(struct pliant_sched *s, struct asking *asking)
{
    struct line *l = &s->scheduling.line;

    asking->since_ms = s->clock.now_ms;
    l->n_starving++;
    if (!deadline_armed(&l->timeout))
        arm(s, asking->since_ms);
}

static void starves_no_more(struct pliant_sched *s, struct asking *asking)
{
    struct line *l = &s->scheduling.line;

    if (asking->since_ms == PLIANT_NEVER)
        return;
    asking->since_ms = PLIANT_NEVER;
    if (--l->n_starving == 0)
        deadline_clear(&l->timeout);
}

static struct asking *join(struct pliant_sched *s, uint32_t region)
{
    struct line *l = &s->scheduling.line;
    struct asking *asking =
        least_room(s->alloc, &l->needs, l->v.n + 1) ? vec_push(s->alloc, &l->v) : NULL;

    if (!asking) {
        sched_no_memory(s);
        return NULL;
    }
    *asking = (struct asking){.region = region, .since_ms = PLIANT_NEVER};
    count_units(s, asking);
    l->place[region] = (uint32_t)(l->v.n - 1);
    l->n++;
    s->scheduling.phase[region] = REGION_WAITS;
    least_put(&l->needs, l->v.n - 1, asking->need);
    return asking;
}

void line_ask(struct pliant_sched *s, uint32_t region)
{
    struct asking *asking;

    line_watch(s); /* within a step the number of slots may change and change back */
    asking = join(s, region);

    if (asking && !would_do(s, asking->units))
        starves(s, asking);
}

void line_restore(struct pliant_sched *s, uint32_t region, int64_t since_ms)
{
    struct asking *asking = join(s, region);

    if (!asking)
        return;
    asking->since_ms = since_ms;
    s->scheduling.line.n_starving += since_ms != PLIANT_NEVER;
}

struct asking line_next(const struct line *l, size_t *at)
{
    while (l->v.v[*at].region == LINE_GONE)
        ++*at;
    return l->v.v[(*at)++];
}

/* Moving up costs nothing on average: at least as many have left as move. */
static void tidy(struct line *l)
{
    size_t kept = 0;

    if (l->n >= l->v.n - l->n)
        return;
    for (size_t i = l->first; i < l->v.n; i++) {
        uint32_t need = least_get(&l->needs, i);

        if (l->v.v[i].region == LINE_GONE)
            continue;
        l->place[l->v.v[i].region] = (uint32_t)kept;
        least_put(&l->needs, i, LEAST_NOTHING);
        least_put(&l->needs, kept, need);
        l->v.v[kept++] = l->v.v[i];
    }
    l->v.n = kept;
    l->first = 0;
}

static void take_out(struct pliant_sched *s, uint32_t region, enum region_phase phase)
{
    struct line *l = &s->scheduling.line;
    struct asking *asking = &l->v.v[l->place[region]];

    starves_no_more(s, asking);
    asking->region = LINE_GONE;
    s->scheduling.phase[region] = (uint8_t)phase;
    l->n--;
    least_put(&l->needs, l->place[region], LEAST_NOTHING);
    while (l->first < l->v.n && l->v.v[l->first].region == LINE_GONE)
        l->first++;
}

void line_leave(struct pliant_sched *s, uint32_t region)
{
    if (s->scheduling.phase[region] != REGION_WAITS)
        return;
    take_out(s, region, REGION_IDLE);
    tidy(&s->scheduling.line);
}

/* ---- who starts ------------------------------------------------------------------------- */

static void choose(struct pliant_sched *s, uint32_t region)
{
    uint32_t *place = vec_push(s->alloc, &s->scheduling.line.chosen);

    if (place)
        *place = region;
    else
        sched_no_memory(s);
    take_out(s, region, REGION_STARTED);
}

/* Each look starts somebody, or finds that he needs more than was known. */
static void choose_in_line(struct pliant_sched *s, uint32_t n_free)
{
    struct line *l = &s->scheduling.line;

    while (l->n > 0 && least_lowest(&l->needs) <= n_free) {
        size_t at = least_first(&l->needs, n_free);
        uint32_t need;

        if (claim(s, l->v.v[at].region, &n_free, &need))
            choose(s, l->v.v[at].region);
        else
            least_put(&l->needs, at, need);
    }
}

/* Those who fit into the free slots; they leave the line. */
static struct sort_item *who_fits(struct pliant_sched *s, size_t *ret_n)
{
    struct line *l = &s->scheduling.line;

    next_round(l);
    l->chosen.n = 0;
    choose_in_line(s, pool_n_open(&s->pool));
    tidy(l);
    return regional_in_order(s, l->chosen.v, l->chosen.n, ret_n);
}

/* Who waits with this task in his region; NULL: nobody. */
static struct asking *who_waits(struct pliant_sched *s, uint32_t v, uint32_t subtask)
{
    struct line *l = &s->scheduling.line;
    uint32_t region;

    if (subtask >= s->graph.parallelism[v])
        return NULL;
    region = s->regional.regions.of_task[regional_flat(&s->regional, v, subtask)];
    return s->scheduling.phase[region] == REGION_WAITS ? &l->v.v[l->place[region]] : NULL;
}

/* Each region that waits with a task of the unit needs a slot more or less. */
static void tell_change(struct pliant_sched *s, uint32_t group, uint32_t subtask, bool lives)
{
    const struct pliant_job *job = s->job;
    struct line *l = &s->scheduling.line;

    l->n_changes++;
    for (uint32_t m = job->group_first[group]; m < job->group_first[group + 1]; m++) {
        struct asking *asking = who_waits(s, job->group_members[m], subtask);

        if (!asking)
            continue;
        if (asking->change != l->n_changes)
            asking->need = lives ? asking->need - 1 : asking->need + 1;
        asking->change = l->n_changes;
        least_put(&l->needs, l->place[asking->region], asking->need);
    }
}

void line_home(struct pliant_sched *s, uint32_t group, uint32_t subtask)
{
    struct line *l = &s->scheduling.line;
    bool lives, *known;

    if (s->way->single || !s->scheduling.on || l->n == 0)
        return;
    lives = seating_home(s, group, subtask) != POOL_NONE;
    known = &l->lives[l->first_unit[group] + subtask];
    if (lives != *known)
        tell_change(s, group, subtask, lives);
    *known = lives;
}

static void start_tasks(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    if (s->way->single)
        seating_take_single(s, tasks, n);
    else
        seating_take(s, tasks, n);
    if (s->no_memory)
        return;
    for (size_t k = 0; k < n; k++) {
        const struct task *task = &s->graph.vertices[tasks[k].value].tasks[tasks[k].minor];

        if (results_begin(&s->scheduling.results,
                          regional_flat(&s->regional, tasks[k].value, tasks[k].minor),
                          s->pool.slots.v[task->slot].node) < 0)
            sched_no_memory(s);
        line_home(s, s->job->group_of[tasks[k].value], tasks[k].minor);
    }
    deploy_tasks(s, tasks, n);
}

/* One that starts may give another one a home, in the slot of their unit. */
void line_serve(struct pliant_sched *s)
{
    struct line *l = &s->scheduling.line;

    while (!s->no_memory && l->n > 0 && pool_n_open(&s->pool) >= least_lowest(&l->needs)) {
        size_t n;
        const struct sort_item *tasks = who_fits(s, &n);

        if (n > 0)
            start_tasks(s, tasks, n);
    }
}

void line_node(struct pliant_sched *s, const struct pool_node *node)
{
    for (uint32_t row = node->first_slot; row != POOL_NONE; row = s->pool.slots.v[row].next)
        if (s->pool.slots.v[row].live > 0)
            line_home(s, s->pool.slots.v[row].group, s->pool.slots.v[row].subtask);
}

/* ---- patience --------------------------------------------------------------------------- */

void line_watch(struct pliant_sched *s)
{
    struct line *l = &s->scheduling.line;
    bool fewer = s->pool.n_offered < l->offered;

    if (!s->scheduling.on || s->state.id != PLIANT_EXECUTING || s->pool.n_offered == l->offered)
        return;
    l->offered = s->pool.n_offered;
    if (!l->finite || (!fewer && l->n_starving == 0))
        return;
    for (size_t i = l->first; i < l->v.n; i++) {
        struct asking *asking = &l->v.v[i];

        if (asking->region == LINE_GONE)
            continue;
        if (would_do(s, asking->units))
            starves_no_more(s, asking);
        else if (asking->since_ms == PLIANT_NEVER)
            starves(s, asking);
    }
}

/* Its first task fails. */
static void give_up(struct pliant_sched *s, uint32_t region, const char *cause)
{
    const struct regions *r = &s->regional.regions;
    uint32_t v, i;
    struct task *task = regional_task(s, r->members[r->first[region]], &v, &i);

    take_out(s, region, REGION_STARTED);
    failure_record(s, &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                    .reason = PLIANT_REASON_NOT_ENOUGH_RESOURCES,
                                                    .recoverable = true,
                                                    .task = {{v + 1}, i, task->attempt},
                                                    .cause = cause});
    task_over(s, v, i, task, PLIANT_TASK_FAILED, false);
}

struct state line_timed_out(struct pliant_sched *s)
{
    struct line *l = &s->scheduling.line;
    struct failure failure = {.class = {.recoverable = true},
                              .why = WHY(PLIANT_REASON_NOT_ENOUGH_RESOURCES)};
    int64_t first_ms = PLIANT_NEVER;
    bool any = false;
    char cause[96];

    snprintf(cause, sizeof cause, "not enough resources: slots were not there within %lld ms",
             (long long)s->cfg.slot_request_timeout_ms);
    for (size_t i = l->first; i < l->v.n; i++) {
        struct asking asking = l->v.v[i];

        if (asking.region == LINE_GONE || asking.since_ms == PLIANT_NEVER)
            continue;
        if (patience_ends(s, asking.since_ms) <= s->clock.now_ms) {
            give_up(s, asking.region, cause);
            any = true;
        } else if (asking.since_ms < first_ms) {
            first_ms = asking.since_ms;
        }
    }
    tidy(l);
    arm(s, first_ms);
    return any ? failure_decide(s, &failure) : STAY;
}

/* ---- invariants ------------------------------------------------------------------------- */

static const char *check_entries(struct pliant_sched *s)
{
    const struct line *l = &s->scheduling.line;
    uint32_t n = 0, n_starving = 0;

    for (size_t i = 0; i < l->v.n; i++) {
        const struct asking *asking = &l->v.v[i];

        if (asking->region == LINE_GONE)
            continue;
        if (i < l->first || asking->region >= s->regional.regions.n ||
            s->scheduling.phase[asking->region] != REGION_WAITS || l->place[asking->region] != i)
            return "the line is out of order";
        if ((asking->since_ms == PLIANT_NEVER) != would_do(s, asking->units))
            return "a region starves, or does not, by mistake";
        n++;
        n_starving += asking->since_ms != PLIANT_NEVER;
    }
    if (n != l->n || n_starving != l->n_starving)
        return "who waits for slots is miscounted";
    return NULL;
}

const char *line_check(struct pliant_sched *s)
{
    struct line *l = &s->scheduling.line;
    const char *broken = check_entries(s);

    if (broken)
        return broken;
    for (size_t i = l->first; i < l->v.n; i++) {
        struct asking counted = {.region = l->v.v[i].region};

        if (counted.region == LINE_GONE)
            continue;
        count_units(s, &counted);
        if (counted.need <= pool_n_open(&s->pool))
            return "a region waits for slots that are there";
        if (counted.need != l->v.v[i].need || counted.need != least_get(&l->needs, i))
            return "what a region waits for is miscounted";
    }
    if (l->n_starving > 0 && s->cfg.slot_request_timeout_ms < INT64_MAX / 2 &&
        !deadline_armed(&l->timeout))
        return "a region waits for slots without an end";
    return l->n_starving == 0 && deadline_armed(&l->timeout) ? "nobody starves, with a timer"
                                                             : NULL;
}

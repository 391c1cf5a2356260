/* scheduling.c - see scheduling.h */
#include "states/scheduling.h"

#include <stdio.h>

#include "states/drains.h"
#include "states/seating.h"

/* ---- life ------------------------------------------------------------------------------- */

void scheduling_init(struct scheduling *g, const struct pliant_alloc *a)
{
    *g = (struct scheduling){.alloc = a, .timeout = DEADLINE_NONE};
}

static void forget_graph(struct scheduling *g)
{
    if (g->inputs.topology)
        inputs_free(&g->inputs);
    if (g->releases.topology)
        releases_free(&g->releases);
    if (g->results.topology)
        results_free(&g->results);
    mem_free(g->alloc, g->phase);
    mem_free(g->alloc, g->first_unit);
    mem_free(g->alloc, g->units);
    g->phase = NULL;
    g->first_unit = g->units = NULL;
    g->on = false;
    g->line.n = 0;
    deadline_clear(&g->timeout);
}

void scheduling_free(struct scheduling *g)
{
    forget_graph(g);
    vec_free(g->alloc, &g->line);
}

void scheduling_end(struct pliant_sched *s)
{
    forget_graph(&s->scheduling);
}

void scheduling_leave(struct pliant_sched *s)
{
    s->scheduling.line.n = 0;
    deadline_clear(&s->scheduling.timeout);
}

static bool number_units(struct pliant_sched *s)
{
    struct scheduling *g = &s->scheduling;

    g->n_units = 0;
    g->first_unit = mem_zero(s->alloc, s->job->n_groups, sizeof *g->first_unit);
    for (uint32_t k = 0; g->first_unit && k < s->job->n_groups; k++) {
        g->first_unit[k] = g->n_units;
        g->n_units += s->bounds.groups[k].hi;
    }
    g->units = g->first_unit ? mem_zero(s->alloc, (size_t)g->n_units + 1, sizeof *g->units) : NULL;
    return g->units != NULL;
}

/* Without rewiring: parallelism is what the job says, and so is every edge. */
static void find(struct pliant_sched *s)
{
    struct scheduling *g = &s->scheduling;
    struct regional *r = &s->regional;

    regional_find(s, false);
    if (s->no_memory)
        return;
    forget_graph(g);
    if (inputs_init(&g->inputs, &r->topology, &r->regions, s->alloc) < 0 ||
        releases_init(&g->releases, &r->topology, &r->regions, s->alloc) < 0 ||
        results_init(&g->results, &r->topology, s->alloc) < 0 || !number_units(s) ||
        !(g->phase = mem_zero(s->alloc, (size_t)r->regions.n + 1, sizeof *g->phase)))
        sched_no_memory(s);
    else
        g->on = true;
}

/* ---- the line --------------------------------------------------------------------------- */

/* At least 1 ms: with no delay either, a job without slots would restart for ever within one step.
 */
static int64_t patience_ends(const struct pliant_sched *s, const struct asking *asking)
{
    int64_t timeout_ms = s->cfg.slot_request_timeout_ms;

    return instant_after(asking->since_ms, timeout_ms > 0 ? timeout_ms : 1);
}

static void arm_timeout(struct pliant_sched *s)
{
    struct scheduling *g = &s->scheduling;
    int64_t at_ms = g->line.n > 0 ? patience_ends(s, &g->line.v[0]) : PLIANT_NEVER;

    if (at_ms == PLIANT_NEVER)
        deadline_clear(&g->timeout);
    else if (at_ms != g->timeout.at_ms)
        deadline_arm(&g->timeout, &s->clock, at_ms);
}

static void ask(struct pliant_sched *s, uint32_t region)
{
    struct scheduling *g = &s->scheduling;
    struct asking *place;

    if (s->state.id != PLIANT_EXECUTING || s->regional.owner[region] != 0 ||
        g->phase[region] != REGION_IDLE || !inputs_ready(&g->inputs, region))
        return;
    place = vec_push(s->alloc, &g->line);
    if (!place) {
        sched_no_memory(s);
        return;
    }
    *place = (struct asking){region, s->clock.now_ms};
    g->phase[region] = REGION_WAITS;
    g->news = true;
}

static void leave_line(struct pliant_sched *s, uint32_t region)
{
    struct scheduling *g = &s->scheduling;
    size_t kept = 0;

    if (g->phase[region] != REGION_WAITS)
        return;
    for (size_t i = 0; i < g->line.n; i++)
        if (g->line.v[i].region != region)
            g->line.v[kept++] = g->line.v[i];
    g->line.n = kept;
    g->phase[region] = REGION_IDLE;
    arm_timeout(s);
}

static void ready(void *ctx, uint32_t region)
{
    ask(ctx, region);
}

/* What it would read is about to be made anew. */
static void waits(void *ctx, uint32_t region)
{
    leave_line(ctx, region);
}

/* ---- slots for those in line ------------------------------------------------------------ */

static uint32_t *claim_of(struct pliant_sched *s, uint32_t task)
{
    const struct topology *t = &s->regional.topology;
    uint32_t v = t->vertex_of[task];

    return &s->scheduling
                .units[s->scheduling.first_unit[s->job->group_of[v]] + task - t->first_task[v]];
}

static bool homeless(struct pliant_sched *s, uint32_t task)
{
    const struct topology *t = &s->regional.topology;
    uint32_t v = t->vertex_of[task];

    return seating_home(s, s->job->group_of[v], task - t->first_task[v]) == POOL_NONE;
}

/* Free slots that a region needs beside those claimed in this round; they are claimed for it if
 * there are so many. */
static bool claim(struct pliant_sched *s, uint32_t region, uint32_t *n_free)
{
    const struct regions *r = &s->regional.regions;
    uint32_t need = 0, last = r->first[region + 1];

    for (uint32_t k = r->first[region]; k < last; k++) {
        uint32_t *unit = claim_of(s, r->members[k]);

        if (*unit == s->scheduling.round || *unit == UINT32_MAX || !homeless(s, r->members[k]))
            continue;
        *unit = UINT32_MAX; /* until it is decided */
        need++;
    }
    for (uint32_t k = r->first[region]; k < last; k++) {
        uint32_t *unit = claim_of(s, r->members[k]);

        if (*unit == UINT32_MAX)
            *unit = need <= *n_free ? s->scheduling.round : 0;
    }
    if (need > *n_free)
        return false;
    *n_free -= need;
    return true;
}

static void next_round(struct scheduling *g)
{
    if (++g->round != UINT32_MAX)
        return;
    for (uint32_t i = 0; i < g->n_units; i++)
        g->units[i] = 0;
    g->round = 1;
}

static size_t add_tasks(struct pliant_sched *s, uint32_t region, struct sort_item *items, size_t n)
{
    const struct regions *r = &s->regional.regions;
    const struct topology *t = &s->regional.topology;

    for (uint32_t k = r->first[region]; k < r->first[region + 1]; k++) {
        uint32_t v = t->vertex_of[r->members[k]];

        items[n++] =
            (struct sort_item){s->topological_rank[v], r->members[k] - t->first_task[v], v};
    }
    return n;
}

/* Those in line that fit into the free slots, first come, first served; who needs too many is
 * passed by. They leave the line. */
static struct sort_item *who_fits(struct pliant_sched *s, size_t *ret_n)
{
    struct scheduling *g = &s->scheduling;
    const struct regions *r = &s->regional.regions;
    uint32_t n_free = pool_n_free(&s->pool);
    size_t kept = 0, most = 0, n = 0;
    struct sort_item *items;

    for (size_t i = 0; i < g->line.n; i++)
        most += r->first[g->line.v[i].region + 1] - r->first[g->line.v[i].region];
    *ret_n = 0;
    items = outbox_block(s, 2 * most + 1, sizeof *items);
    if (!items)
        return NULL;
    next_round(g);
    for (size_t i = 0; i < g->line.n; i++) {
        struct asking asking = g->line.v[i];

        if (!claim(s, asking.region, &n_free)) {
            g->line.v[kept++] = asking;
            continue;
        }
        g->phase[asking.region] = REGION_STARTED;
        n = add_tasks(s, asking.region, items, n);
    }
    g->line.n = kept;
    sort_items(items, items + most, n);
    *ret_n = n;
    return items;
}

static void start_tasks(struct pliant_sched *s, const struct sort_item *tasks, size_t n)
{
    seating_take(s, tasks, n);
    if (s->no_memory)
        return;
    for (size_t k = 0; k < n; k++) {
        const struct task *task = &s->graph.vertices[tasks[k].value].tasks[tasks[k].minor];
        uint32_t node = s->pool.slots.v[task->slot].node;

        results_begin(&s->scheduling.results,
                      regional_flat(&s->regional, tasks[k].value, tasks[k].minor),
                      pool_node(&s->pool, node)->arrival);
    }
    deploy_tasks(s, tasks, n);
}

/* One that starts may give another one a home, in the slot of their unit. */
static void serve(struct pliant_sched *s)
{
    struct scheduling *g = &s->scheduling;

    while (g->news && g->line.n > 0 && !s->no_memory) {
        size_t n;
        const struct sort_item *tasks = who_fits(s, &n);

        g->news = n > 0;
        if (n > 0)
            start_tasks(s, tasks, n);
    }
    g->news = false;
    arm_timeout(s);
}

struct state scheduling_timed_out(struct pliant_sched *s)
{
    struct scheduling *g = &s->scheduling;
    struct failure failure = {.class = {.recoverable = true},
                              .why = WHY(PLIANT_REASON_NOT_ENOUGH_RESOURCES)};
    size_t gone = 0;
    char cause[96];

    snprintf(cause, sizeof cause, "not enough resources: slots were not there within %lld ms",
             (long long)s->cfg.slot_request_timeout_ms);
    for (; gone < g->line.n && patience_ends(s, &g->line.v[gone]) <= s->clock.now_ms; gone++) {
        uint32_t region = g->line.v[gone].region, v, i;
        struct task *task = regional_task(
            s, s->regional.regions.members[s->regional.regions.first[region]], &v, &i);

        g->phase[region] = REGION_STARTED;
        failure_record(s,
                       &(struct pliant_failure_item){.at_ms = s->clock.now_ms,
                                                     .reason = PLIANT_REASON_NOT_ENOUGH_RESOURCES,
                                                     .recoverable = true,
                                                     .task = {{v + 1}, i, task->attempt},
                                                     .cause = cause});
        task_over(s, v, i, PLIANT_TASK_FAILED);
    }
    g->line.n -= gone;
    for (size_t i = 0; i < g->line.n; i++)
        g->line.v[i] = g->line.v[i + gone];
    arm_timeout(s);
    return failure_decide(s, &failure);
}

/* ---- start ------------------------------------------------------------------------------ */

static struct state start(struct pliant_sched *s)
{
    for (uint32_t v = 0; v < s->job->n_vertices; v++)
        s->scratch[v] = s->job->vertices[v].parallelism;
    declare(s);
    if (execution_create(&s->graph, s->scratch) < 0) {
        sched_no_memory(s);
        return STAY;
    }
    return executing(s, WHY(PLIANT_REASON_STARTED));
}

static void begin(struct pliant_sched *s)
{
    find(s);
    s->deployed_at_ms = s->clock.now_ms;
    for (uint32_t task = 0; s->scheduling.on && task < s->graph.n_tasks; task++)
        ask(s, s->regional.regions.of_task[task]);
    serve(s);
}

static struct state look(struct pliant_sched *s)
{
    struct state next = regional_pending(&s->regional) ? regional_look(s) : STAY;

    if (next.id == STATE_STAY)
        next = drain_consider(s); /* who has to leave a node goes first */
    if (next.id == STATE_STAY)
        serve(s);
    return next;
}

static struct state resources(struct pliant_sched *s)
{
    s->scheduling.news = true;
    return look(s);
}

/* ---- results ---------------------------------------------------------------------------- */

static void tell_release(struct pliant_sched *s, uint32_t edge, uint32_t producer)
{
    uint32_t v = s->job->edges[edge].from;
    struct pliant_action *act = emit(s, PLIANT_ACT_RELEASE_RESULT);

    act->result.edge = edge;
    act->result.producer =
        (struct pliant_task){{v + 1}, producer, s->graph.vertices[v].tasks[producer].attempt};
    results_forget(&s->scheduling.results, edge, producer);
}

/* Nobody will read them any more [1.4]. */
static void release(void *ctx, uint32_t edge, struct range producers)
{
    struct pliant_sched *s = ctx;

    for (; s->cfg.release_results && producers.first < producers.end; producers.first++)
        if (results_tracked(&s->scheduling.results, edge, producers.first))
            tell_release(s, edge, producers.first);
}

/* A finished task is about to be reset. */
static void discard(struct pliant_sched *s, uint32_t task)
{
    const struct topology *t = &s->regional.topology;
    uint32_t v = t->vertex_of[task];

    for (uint32_t i = t->out_first[v]; i < t->out_first[v + 1]; i++)
        if (results_tracked(&s->scheduling.results, t->out_edges[i], task - t->first_task[v]))
            tell_release(s, t->out_edges[i], task - t->first_task[v]);
}

static void task_down(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    uint32_t task = regional_flat(&s->regional, v, i);

    s->scheduling.news = true;
    regional_task_down(s, v, i);
    if (s->graph.vertices[v].tasks[i].state != PLIANT_TASK_FINISHED) {
        results_forget_task(&s->scheduling.results, task);
    } else if (s->regional.owner[s->regional.regions.of_task[task]] == 0) {
        inputs_finished(&s->scheduling.inputs, task, ready, s);
        releases_finished(&s->scheduling.releases, task, release, s);
    }
}

/* A plan will reset it: what its finished tasks made does not count any more, and what they read
 * has to stay until they have read it again. */
static void owned(struct pliant_sched *s, uint32_t region)
{
    const struct regions *r = &s->regional.regions;

    leave_line(s, region);
    s->scheduling.phase[region] = REGION_STARTED;
    for (uint32_t k = r->first[region]; k < r->first[region + 1]; k++) {
        inputs_unfinished(&s->scheduling.inputs, r->members[k], waits, s);
        releases_unfinished(&s->scheduling.releases, r->members[k]);
    }
}

/* Section 2; the partition that a consumer could not read is lost for this search. */
static bool available(const void *ctx, uint32_t edge, uint32_t producer)
{
    const struct available *a = ctx;
    uint32_t subtask =
        producer - a->sched->regional.topology.first_task[a->sched->job->edges[edge].from];

    if (a->failure->input_lost && a->failure->edge == edge && a->failure->producer == subtask)
        return false;
    return results_tracked(&a->sched->scheduling.results, edge, subtask);
}

/* ---- results that are lost with their node ---------------------------------------------- */

/* Will this task read its inputs once more? Those that run have them open. */
static bool has_yet_to_read(struct pliant_sched *s, uint32_t vertex, uint32_t subtask)
{
    enum pliant_task_state state = s->graph.vertices[vertex].tasks[subtask].state;
    uint32_t region = s->regional.regions.of_task[regional_flat(&s->regional, vertex, subtask)];

    return s->regional.owner[region] != 0 || state == PLIANT_TASK_CREATED ||
           (state >= PLIANT_TASK_CANCELING && state != PLIANT_TASK_FINISHED);
}

static bool any_has_yet_to_read(struct pliant_sched *s, uint32_t edge, struct range consumers)
{
    for (; consumers.first < consumers.end; consumers.first++)
        if (has_yet_to_read(s, s->job->edges[edge].to, consumers.first))
            return true;
    return false;
}

static void result_lost(struct pliant_sched *s, const struct pool_node *node,
                        enum pliant_reason reason, uint32_t task)
{
    uint32_t v, i;
    const struct task *producer = regional_task(s, task, &v, &i);

    failure_record(s, &(struct pliant_failure_item){
                          .at_ms = s->clock.now_ms,
                          .reason = (uint8_t)reason,
                          .recoverable = true,
                          .task = {{v + 1}, i, producer->attempt},
                          .node = node->name,
                          .cause = "the result of the finished task was lost with its node"});
    regional_falls(s, task);
}

/* What is on the node, of one edge; a producer whose result somebody waits for starts again. */
static bool lose_results_of(struct pliant_sched *s, const struct pool_node *node,
                            enum pliant_reason reason, uint32_t edge)
{
    const struct topology *t = &s->regional.topology;
    const struct pliant_edge_spec *spec = &s->job->edges[edge];
    struct scheduling *g = &s->scheduling;
    bool to_all = topology_all_to_all(t, edge), any = false;
    bool waited_for = to_all && any_has_yet_to_read(s, edge, topology_consumers(t, edge, 0));

    for (uint32_t p = 0; p < topology_parallelism(t, spec->from); p++) {
        uint32_t task = t->first_task[spec->from] + p;

        if (!results_tracked(&g->results, edge, p) || g->results.holder[task] != node->arrival)
            continue;
        results_forget(&g->results, edge, p);
        if (s->state.id != PLIANT_EXECUTING ||
            s->regional.owner[s->regional.regions.of_task[task]] != 0)
            continue;
        if (to_all ? waited_for : any_has_yet_to_read(s, edge, topology_consumers(t, edge, p))) {
            result_lost(s, node, reason, task);
            any = true;
        }
    }
    return any;
}

static bool node_lost(struct pliant_sched *s, const struct pool_node *node,
                      enum pliant_reason reason)
{
    bool any = false;

    for (uint32_t edge = 0; s->scheduling.on && edge < s->job->n_edges; edge++)
        if (s->job->edges[edge].exchange == PLIANT_BLOCKING)
            any |= lose_results_of(s, node, reason, edge);
    return any;
}

/* ---- failures --------------------------------------------------------------------------- */

static bool concerns_all(const struct pliant_sched *s, const struct failure *failure)
{
    if (failure->class.moved)
        return false;
    return s->cfg.failover_strategy == PLIANT_FAILOVER_FULL || s->regional.fallen.n == 0 ||
           failure->why.reason == PLIANT_REASON_GLOBAL_FAILURE ||
           failure->why.reason == PLIANT_REASON_TOO_MANY_CHECKPOINT_FAILURES;
}

/* A new attempt begins an entry of its own; what came before it is told [3.6]. */
static void begin_entry(struct pliant_sched *s)
{
    const struct pliant_failure *entry;

    if (failures_split(&s->failures, s->regional.n_decided, &entry) < 0)
        sched_no_memory(s);
    else if (entry)
        emit(s, PLIANT_ACT_FAILURE)->failure.entry = entry;
}

/* Nobody decided on them while the job was stopping. */
static void find_fallen(struct pliant_sched *s)
{
    for (uint32_t task = 0; task < topology_tasks(&s->regional.topology); task++) {
        uint32_t v, i;

        if (regional_task(s, task, &v, &i)->state > PLIANT_TASK_FINISHED)
            regional_falls(s, task);
    }
}

static struct state restart(struct pliant_sched *s, const struct failure *failure,
                            const struct failover_decision *decision)
{
    bool stopping = s->state.id == PLIANT_STOP_WITH_SAVEPOINT;
    enum pliant_job_status before = pliant_job_status(s);

    if (stopping)
        find_fallen(s);
    if (decision->new_attempt) {
        s->restarts++;
        begin_entry(s);
    }
    s->regional.n_decided = (uint32_t)s->failures.present.items.n;
    if (stopping) {
        checkpointing_abort(s, &s->state.stopping.checkpointing, failure->why.reason);
        regional_plan(s, failure, decision->backoff_ms, concerns_all(s, failure));
        return executing_again(s, &s->state.stopping.checkpointing, failure->why);
    }
    checkpointing_abort(s, &s->state.executing.checkpointing, failure->why.reason);
    regional_plan(s, failure, decision->backoff_ms, concerns_all(s, failure));
    tell_status(s, before);
    return look(s);
}

/* Of tasks that were going down already there is nothing to decide [3.1]. */
static struct state failed(struct pliant_sched *s, const struct failure *failure)
{
    bool of_tasks = failure->why.reason == PLIANT_REASON_TASK_FAILED ||
                    failure->why.reason == PLIANT_REASON_NODE_LOST ||
                    failure->why.reason == PLIANT_REASON_DRAINING_NODE_LOST;

    return of_tasks && s->regional.fallen.n == 0 ? look(s) : failure_decide(s, failure);
}

static struct state carry_out(struct pliant_sched *s, uint32_t plan)
{
    size_t n;
    struct sort_item *tasks = regional_tasks(s, plan, &n);

    if (!tasks)
        return STAY;
    for (size_t k = 0; k < n; k++) {
        const struct task *task = &s->graph.vertices[tasks[k].value].tasks[tasks[k].minor];
        uint32_t id = regional_flat(&s->regional, tasks[k].value, (uint32_t)tasks[k].minor);

        s->scheduling.phase[s->regional.regions.of_task[id]] = REGION_IDLE;
        tasks[k].value = id;
        if (task->state == PLIANT_TASK_CREATED)
            continue;
        if (task->state == PLIANT_TASK_FINISHED)
            discard(s, id);
        execution_reset(&s->graph, s->regional.topology.vertex_of[id], (uint32_t)tasks[k].minor);
    }
    s->regional.restarts += n > 0;
    regional_finish(s, plan);
    for (size_t k = 0; k < n; k++)
        ask(s, s->regional.regions.of_task[tasks[k].value]);
    return STAY; /* whoever looks serves them next */
}

/* ---- the end ---------------------------------------------------------------------------- */

/* A root of its own, with the failures of attempts that are current [3.1, 3.6]. */
static void gives_up(struct pliant_sched *s, const struct failure *failure, enum pliant_reason why)
{
    const struct pliant_failure *entry;
    char cause[PLIANT_CAUSE_MAX + 1], strategy[RESTART_STRATEGY_TEXT];
    const char *original;

    (void)failure;
    if (why == PLIANT_REASON_DRAIN_BUDGET_EXHAUSTED)
        return; /* it has said so */
    begin_entry(s);
    if (failures_empty(&s->failures))
        return;
    original = s->failures.present.items.v[0].cause;
    restart_strategy_text(&s->failover.strategy, strategy);
    if (why == PLIANT_REASON_NOT_RECOVERABLE)
        snprintf(cause, sizeof cause, "The failure is not recoverable: %.400s", original);
    else
        snprintf(cause, sizeof cause, "Recovery is suppressed by %s: %.300s", strategy, original);
    if (failures_split(&s->failures, (uint32_t)s->failures.present.items.n, &entry) < 0) {
        sched_no_memory(s);
        return;
    }
    if (entry)
        emit(s, PLIANT_ACT_FAILURE)->failure.entry = entry;
    failure_record(s, &(struct pliant_failure_item){
                          .at_ms = s->clock.now_ms, .reason = (uint8_t)why, .cause = cause});
    for (uint32_t i = 0; entry && i < entry->n; i++) {
        const struct task *task = execution_current(&s->graph, entry->items[i].task);

        if (task && task->state == PLIANT_TASK_FAILED)
            failure_record(s, &entry->items[i]);
    }
}

/* ---- moves ------------------------------------------------------------------------------ */

/* Regions with tasks in slots that leave start again elsewhere, once. */
static void find_leaving(struct pliant_sched *s)
{
    for (uint32_t task = 0; task < topology_tasks(&s->regional.topology); task++) {
        uint32_t v, i;
        const struct task *of = regional_task(s, task, &v, &i);

        if (task_seated(of) && of->state != PLIANT_TASK_CANCELING &&
            s->pool.slots.v[of->slot].leaving)
            regional_falls(s, task);
    }
}

/* What others of a shared pool shall have is left without a budget. */
static struct state move(struct pliant_sched *s, pliant_node_id node)
{
    struct failure moved = {.class = {.recoverable = true, .drain = true, .moved = true},
                            .why = {.reason = PLIANT_REASON_DRAIN,
                                    .node = node,
                                    .since_at_ms = s->state.executing.drain.notice_at_ms}};

    find_leaving(s);
    if (s->regional.fallen.n == 0)
        return STAY; /* they go down already */
    if (drain_any(s))
        return failure_decide(s, &moved);
    moved.why.reason = PLIANT_REASON_RECLAIM;
    return restart(s, &moved, &(struct failover_decision){.action = FAILOVER_RESTART});
}

static bool fits(const struct pliant_sched *s)
{
    return s->pool.n_used_leaving <= pool_n_free(&s->pool);
}

const struct way default_way = {
    .start = start,
    .find = find,
    .begin = begin,
    .look = look,
    .resources = resources,
    .task_down = task_down,
    .node_lost = node_lost,
    .available = available,
    .owned = owned,
    .failed = failed,
    .carry_out = carry_out,
    .restart = restart,
    .gives_up = gives_up,
    .move = move,
    .fits = fits,
};

/* ---- snapshots, invariants -------------------------------------------------------------- */

static void nobody(void *ctx, uint32_t region)
{
    (void)ctx, (void)region;
}

static void nothing(void *ctx, uint32_t edge, struct range producers)
{
    (void)ctx, (void)edge, (void)producers;
}

void scheduling_had_finished(struct scheduling *g, uint32_t task)
{
    inputs_finished(&g->inputs, task, nobody, NULL);
    releases_finished(&g->releases, task, nothing, NULL);
}

static const char *check_task(struct pliant_sched *s, uint32_t task)
{
    const struct scheduling *g = &s->scheduling;
    uint32_t region = s->regional.regions.of_task[task], v, i;
    const struct task *of = regional_task(s, task, &v, &i);
    bool finished = of->state == PLIANT_TASK_FINISHED, is_owned = s->regional.owner[region] != 0;

    if (g->inputs.finished[task] != (finished && !is_owned) ||
        g->releases.finished[task] != g->inputs.finished[task])
        return "what a task has made is not noted";
    if (!is_owned && (g->phase[region] == REGION_STARTED) != (task_seated(of) || finished))
        return "a region starts in part";
    for (uint32_t e = s->regional.topology.out_first[v]; e < s->regional.topology.out_first[v + 1];
         e++)
        if (results_tracked(&g->results, s->regional.topology.out_edges[e], i) &&
            !task_seated(of) && !finished)
            return "a result is tracked that nobody makes";
    return NULL;
}

/* Its inputs are made by tasks that are finished, and are there. */
static const char *check_input(struct pliant_sched *s, uint32_t edge, uint32_t consumer)
{
    const struct topology *t = &s->regional.topology;
    const struct pliant_edge_spec *spec = &s->job->edges[edge];
    struct range p = topology_producers(t, edge, consumer);

    if (spec->exchange != PLIANT_BLOCKING ||
        s->graph.vertices[spec->to].tasks[consumer].state != PLIANT_TASK_CREATED)
        return NULL;
    for (; p.first < p.end; p.first++)
        if (s->scheduling.inputs.finished[t->first_task[spec->from] + p.first] &&
            !results_tracked(&s->scheduling.results, edge, p.first))
            return "a result is lost and nobody makes it anew";
    return NULL;
}

static const char *check_inputs(struct pliant_sched *s)
{
    for (uint32_t e = 0; e < s->job->n_edges; e++)
        for (uint32_t c = 0; c < s->graph.parallelism[s->job->edges[e].to]; c++) {
            const char *broken = check_input(s, e, c);

            if (broken)
                return broken;
        }
    return NULL;
}

static const char *check_line(struct pliant_sched *s)
{
    struct scheduling *g = &s->scheduling;
    size_t waiting = 0;

    for (uint32_t region = 0; region < s->regional.regions.n; region++) {
        waiting += g->phase[region] == REGION_WAITS;
        if (g->phase[region] == REGION_WAITS &&
            (s->regional.owner[region] != 0 || !inputs_ready(&g->inputs, region)))
            return "a region waits for slots that it could not use";
        if (g->phase[region] == REGION_IDLE && s->regional.owner[region] == 0 &&
            inputs_ready(&g->inputs, region))
            return "a region could start and does not ask for slots";
    }
    if (waiting != g->line.n)
        return "who waits for slots is miscounted";
    for (size_t i = 0; i < g->line.n; i++)
        if (g->line.v[i].region >= s->regional.regions.n ||
            g->phase[g->line.v[i].region] != REGION_WAITS ||
            (i > 0 && g->line.v[i].since_ms < g->line.v[i - 1].since_ms))
            return "the line is out of order";
    next_round(g);
    for (size_t i = 0; i < g->line.n; i++) {
        uint32_t n_free = pool_n_free(&s->pool);

        if (claim(s, g->line.v[i].region, &n_free))
            return "a region waits for slots that are there";
    }
    if (g->line.n > 0 && s->cfg.slot_request_timeout_ms < INT64_MAX / 2 &&
        !deadline_armed(&g->timeout))
        return "a region waits for slots without an end";
    return g->line.n == 0 && deadline_armed(&g->timeout) ? "nobody waits, with a timer" : NULL;
}

const char *scheduling_check(const struct pliant_sched *const_s)
{
    struct pliant_sched *s = (struct pliant_sched *)(uintptr_t)const_s;
    const char *broken;

    if (s->way->rescales)
        return NULL;
    if (!s->scheduling.on || !s->regional.on)
        return "regions are scheduled that nobody knows";
    for (uint32_t task = 0; task < topology_tasks(&s->regional.topology); task++) {
        broken = check_task(s, task);
        if (broken)
            return broken;
    }
    broken = check_line(s);
    return broken ? broken : check_inputs(s);
}

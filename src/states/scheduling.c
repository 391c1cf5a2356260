/* scheduling.c - see scheduling.h */
#include "states/scheduling.h"

#include <stdio.h>

#include "states/batching.h"
#include "states/drains.h"

/* ---- life ------------------------------------------------------------------------------- */

void scheduling_init(struct scheduling *g, const struct pliant_alloc *a)
{
    *g = (struct scheduling){.alloc = a};
    line_init(&g->line, a);
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
    g->phase = NULL;
    g->phase_cap = 0;
    g->on = false;
    line_empty(&g->line);
}

void scheduling_free(struct scheduling *g)
{
    forget_graph(g);
    line_free(&g->line);
}

void scheduling_end(struct pliant_sched *s)
{
    forget_graph(&s->scheduling);
    batching_end(s);
}

void scheduling_leave(struct pliant_sched *s)
{
    line_empty(&s->scheduling.line);
}

static bool phase_room(struct pliant_sched *s)
{
    struct scheduling *g = &s->scheduling;

    return array_reserve(s->alloc, &g->phase, &g->phase_cap, s->regional.regions.n,
                         sizeof *g->phase);
}

/* Without rewiring: parallelism is what the job says, or will follow from its data, and so is every
 * edge. */
static void find(struct pliant_sched *s)
{
    struct scheduling *g = &s->scheduling;
    struct regional *r = &s->regional;

    forget_graph(g);
    if (s->way->decides)
        regional_begin(s);
    else
        regional_find(s, false);
    if (s->no_memory)
        return;
    if (inputs_init(&g->inputs, &r->topology, &r->regions, s->alloc) < 0 ||
        releases_init(&g->releases, &r->topology, &r->regions, s->alloc) < 0 ||
        results_init(&g->results, &r->topology, s->cfg.results_outlive_nodes, s->alloc) < 0 ||
        !phase_room(s))
        sched_no_memory(s);
    else
        g->on = true;
    if (g->on)
        line_begin(s);
    if (g->on && s->way->decides)
        batching_begin(s);
}

void scheduling_add(struct pliant_sched *s, uint32_t v)
{
    struct scheduling *g = &s->scheduling;

    if (inputs_add(&g->inputs, v) < 0 || releases_add(&g->releases) < 0 ||
        results_add(&g->results, v) < 0 || !phase_room(s))
        sched_no_memory(s);
    line_add(s);
}

/* ---- asking for slots -------------------------------------------------------------------- */

static void ask(struct pliant_sched *s, uint32_t region)
{
    struct scheduling *g = &s->scheduling;

    if (s->state.id == PLIANT_EXECUTING && s->regional.owner[region].plan == 0 &&
        g->phase[region] == REGION_IDLE && inputs_ready(&g->inputs, region))
        line_ask(s, region);
}

static void ready(void *ctx, uint32_t region)
{
    ask(ctx, region);
}

/* What it would read is about to be made anew. */
static void waits(void *ctx, uint32_t region)
{
    line_leave(ctx, region);
}

void scheduling_ask_vertex(struct pliant_sched *s, uint32_t v)
{
    for (uint32_t i = 0; !s->no_memory && i < s->graph.parallelism[v]; i++)
        ask(s, s->regional.regions.of_task[regional_flat(&s->regional, v, i)]);
}

/* First who has no attempt at all. */
static void serve(struct pliant_sched *s)
{
    line_serve(s);
    speculation_serve(s);
}

/* ---- start ------------------------------------------------------------------------------ */

static struct state start(struct pliant_sched *s)
{
    for (uint32_t v = 0; v < s->job->n_vertices; v++)
        s->scratch[v] = s->way->decides ? 0 : s->job->vertices[v].parallelism;
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
    batching_decide_sources(s);
    for (uint32_t v = 0; s->scheduling.on && v < s->job->n_vertices; v++)
        scheduling_ask_vertex(s, v);
    declare(s);
    serve(s);
}

static struct state look(struct pliant_sched *s)
{
    struct state next = regional_pending(&s->regional) ? regional_look(s) : STAY;

    if (next.id == STATE_STAY)
        next = batching_look(s);
    if (next.id == STATE_STAY)
        next = drain_consider(s); /* who has to leave a node goes first */
    if (next.id == STATE_STAY) {
        declare(s);
        serve(s);
    }
    return next;
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
    struct scheduling *g = &s->scheduling;
    uint32_t task = regional_flat(&s->regional, v, i);

    regional_task_down(s, v, i);
    line_home(s, s->job->group_of[v], i);
    if (s->graph.vertices[v].tasks[i].state != PLIANT_TASK_FINISHED) {
        results_forget_task(&g->results, task);
    } else if (regional_owner(&s->regional, task) == 0) {
        if (!g->inputs.finished[task])
            batching_task_done(s, v);
        inputs_finished(&g->inputs, task, ready, s);
        releases_finished(&g->releases, task, release, s);
    }
}

void scheduling_stands(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    struct scheduling *g = &s->scheduling;
    const struct task *stands = &s->graph.vertices[v].tasks[i];
    uint32_t task = regional_flat(&s->regional, v, i), region = s->regional.regions.of_task[task];
    bool starts = stands->state != PLIANT_TASK_CREATED;

    if (!starts)
        results_forget_task(&g->results, task);
    else if (results_begin(&g->results, task, s->pool.slots.v[stands->slot].node) < 0)
        sched_no_memory(s);
    if (s->state.id != PLIANT_EXECUTING || s->regional.owner[region].plan != 0)
        return;
    line_leave(s, region);
    g->phase[region] = starts ? REGION_STARTED : REGION_IDLE;
    ask(s, region);
}

bool scheduling_can_read(struct pliant_sched *s, uint32_t v, uint32_t i)
{
    const struct topology *t = &s->regional.topology;

    for (uint32_t k = t->in_first[v]; k < t->in_first[v + 1]; k++) {
        struct range p = topology_producers(t, t->in_edges[k], i);

        for (; p.first < p.end; p.first++)
            if (!results_tracked(&s->scheduling.results, t->in_edges[k], p.first))
                return false;
    }
    return true;
}

/* A plan will reset it: what its finished tasks made does not count any more, and what they read
 * has to stay until they have read it again. */
static void owned(struct pliant_sched *s, uint32_t region)
{
    struct scheduling *g = &s->scheduling;
    const struct regions *r = &s->regional.regions;

    line_leave(s, region);
    g->phase[region] = REGION_STARTED;
    for (uint32_t k = r->first[region]; k < r->first[region + 1]; k++) {
        uint32_t task = r->members[k];

        if (g->inputs.finished[task])
            batching_task_undone(s, s->regional.topology.vertex_of[task]);
        inputs_unfinished(&g->inputs, task, waits, s);
        releases_unfinished(&g->releases, task);
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

    return regional_owner(&s->regional, regional_flat(&s->regional, vertex, subtask)) != 0 ||
           state == PLIANT_TASK_CREATED ||
           (state >= PLIANT_TASK_CANCELING && state != PLIANT_TASK_FINISHED);
}

static bool any_has_yet_to_read(struct pliant_sched *s, uint32_t edge, struct range consumers)
{
    if (!topology_wired(&s->regional.topology, edge))
        return true; /* they come yet */
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

/* The results of one edge; a producer whose result somebody waits for starts again. */
static bool lose_of_edge(struct pliant_sched *s, const struct pool_node *node,
                         enum pliant_reason reason, const struct sort_item *lost, size_t n)
{
    const struct topology *t = &s->regional.topology;
    uint32_t edge = (uint32_t)lost->major;
    bool to_all = topology_all_to_all(t, edge), any = false;
    bool waited_for = to_all && any_has_yet_to_read(s, edge, topology_consumers(t, edge, 0));

    for (size_t k = 0; k < n; k++) {
        uint32_t producer = lost[k].minor, task = lost[k].value;

        results_forget(&s->scheduling.results, edge, producer);
        if (s->state.id != PLIANT_EXECUTING || regional_owner(&s->regional, task) != 0)
            continue;
        if (to_all ? waited_for
                   : any_has_yet_to_read(s, edge, topology_consumers(t, edge, producer))) {
            result_lost(s, node, reason, task);
            any = true;
        }
    }
    return any;
}

static bool node_lost(struct pliant_sched *s, const struct pool_node *node,
                      enum pliant_reason reason)
{
    const struct results *r = &s->scheduling.results;
    size_t n = s->scheduling.on ? results_count_on(r, node->row) : 0, end;
    struct sort_item *lost = n > 0 ? outbox_block(s, 2 * n, sizeof *lost) : NULL;
    bool any = false;

    if (!lost)
        return false;
    results_list_on(r, node->row, lost, n);
    for (size_t first = 0; first < n; first = end) {
        for (end = first + 1; end < n && lost[end].major == lost[first].major;)
            end++;
        any |= lose_of_edge(s, node, reason, lost + first, end - first);
    }
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

static void begin_attempt(struct pliant_sched *s)
{
    s->restarts++;
    begin_entry(s);
}

/* Was it told before, of an attempt that is current yet? Of a region that `owner` restarts, or 0:
 * any. */
static bool carries(const struct pliant_sched *s, const struct pliant_failure_item *item,
                    uint32_t owner)
{
    const struct task *task = execution_current(&s->graph, item->task);
    uint32_t v = item->task.vertex.v - 1, i = item->task.subtask;

    return task && task->state == PLIANT_TASK_FAILED &&
           (owner == 0 || regional_owner(&s->regional, regional_flat(&s->regional, v, i)) == owner);
}

/* Failures of other entries that are concurrent to the present one as well [3.6]. */
static void repeat_failures(struct pliant_sched *s, uint32_t owner)
{
    const struct pliant_failure *entry;

    for (size_t e = 0; (entry = failures_at(&s->failures, e)); e++)
        for (uint32_t i = 0; i < entry->n; i++)
            if (carries(s, &entry->items[i], owner) &&
                !failures_has(&s->failures, &entry->items[i]))
                failure_record(s, &entry->items[i]);
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

/* What is in the present list belongs to decisions from now on. */
static void decided(struct pliant_sched *s)
{
    s->regional.n_decided = (uint32_t)s->failures.present.items.n;
}

static struct state restart(struct pliant_sched *s, const struct failure *failure,
                            const struct failover_decision *decision)
{
    bool stopping = s->state.id == PLIANT_STOP_WITH_SAVEPOINT;
    bool others_wait = regional_pending(&s->regional);
    enum pliant_job_status before = pliant_job_status(s);
    struct checkpointing *c =
        stopping ? &s->state.stopping.checkpointing : &s->state.executing.checkpointing;

    if (stopping)
        find_fallen(s);
    if (decision->new_attempt)
        begin_attempt(s);
    checkpointing_abort(s, c, failure->why.reason);
    regional_plan(s, failure, decision->backoff_ms, concerns_all(s, failure));
    if (decision->new_attempt && others_wait)
        repeat_failures(s, regional_last(&s->regional));
    decided(s);
    if (stopping)
        return executing_again(s, c, failure->why);
    tell_status(s, before);
    return look(s);
}

/* Attempts failed whose tasks go on: it is a failure like any other, but nothing restarts
 * [6.3]. */
static struct state failed_locally(struct pliant_sched *s, const struct failure *failure)
{
    struct failover_decision decision = {0};
    struct state next = failure_charge(s, failure, &decision);

    if (next.id != STATE_STAY || s->no_memory)
        return next;
    if (decision.new_attempt)
        begin_attempt(s);
    decided(s);
    if (!regional_pending(&s->regional)) {
        failure_archive(s);
        s->regional.n_decided = 0;
    }
    return look(s);
}

/* Of tasks that were going down already there is nothing to decide [3.1]. */
static struct state failed(struct pliant_sched *s, const struct failure *failure)
{
    bool local = s->speculation.local;
    bool of_tasks = failure->why.reason == PLIANT_REASON_TASK_FAILED ||
                    failure->why.reason == PLIANT_REASON_NODE_LOST ||
                    failure->why.reason == PLIANT_REASON_DRAINING_NODE_LOST;

    s->speculation.local = false;
    if (!of_tasks || s->regional.fallen.n > 0)
        return failure_decide(s, failure);
    return local ? failed_locally(s, failure) : look(s);
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
    repeat_failures(s, 0);
}

/* ---- moves ------------------------------------------------------------------------------ */

/* Regions with tasks in slots that leave start again elsewhere, once. */
static void find_leaving(struct pliant_sched *s)
{
    for (uint32_t task = 0; task < topology_tasks(&s->regional.topology); task++) {
        uint32_t v, i;
        const struct task *of = regional_task(s, task, &v, &i);

        speculation_moves(s, v, i);
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
    if (s->regional.fallen.n == 0) { /* they go down already, or another attempt goes on */
        serve(s);
        return STAY;
    }
    if (drain_any(s))
        return failure_decide(s, &moved);
    moved.why.reason = PLIANT_REASON_RECLAIM;
    return restart(s, &moved, &(struct failover_decision){.action = FAILOVER_RESTART});
}

static bool fits(const struct pliant_sched *s)
{
    return s->pool.n_used_leaving <= pool_n_open(&s->pool);
}

#define SCHEDULING_WAY                                                                             \
    .start = start, .find = find, .begin = begin, .look = look, .resources = look,                 \
    .task_down = task_down, .node_lost = node_lost, .available = available, .owned = owned,        \
    .failed = failed, .carry_out = carry_out, .restart = restart, .gives_up = gives_up,            \
    .move = move, .fits = fits

const struct way default_way = {SCHEDULING_WAY};
const struct way batch_way = {SCHEDULING_WAY, .decides = true, .single = true};

/* ---- snapshots, invariants -------------------------------------------------------------- */

static void nobody(void *ctx, uint32_t region)
{
    (void)ctx, (void)region;
}

static void nothing(void *ctx, uint32_t edge, struct range producers)
{
    (void)ctx, (void)edge, (void)producers;
}

void scheduling_had_finished(struct pliant_sched *s, uint32_t task)
{
    struct scheduling *g = &s->scheduling;

    batching_task_done(s, s->regional.topology.vertex_of[task]);
    inputs_finished(&g->inputs, task, nobody, NULL);
    releases_finished(&g->releases, task, nothing, NULL);
}

static const char *check_task(struct pliant_sched *s, uint32_t task)
{
    const struct scheduling *g = &s->scheduling;
    uint32_t region = s->regional.regions.of_task[task], v, i;
    const struct task *of = regional_task(s, task, &v, &i);
    bool finished = of->state == PLIANT_TASK_FINISHED,
         is_owned = s->regional.owner[region].plan != 0;

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

static const char *check_regions(const struct pliant_sched *s)
{
    const struct scheduling *g = &s->scheduling;
    uint32_t waiting = 0;

    for (uint32_t region = 0; region < s->regional.regions.n; region++) {
        bool free_to_go = s->regional.owner[region].plan == 0 && inputs_ready(&g->inputs, region);

        waiting += g->phase[region] == REGION_WAITS;
        if (g->phase[region] == REGION_WAITS && !free_to_go)
            return "a region waits for slots that it could not use";
        if (g->phase[region] == REGION_IDLE && free_to_go)
            return "a region could start and does not ask for slots";
    }
    return waiting != g->line.n ? "who waits for slots is not in line" : NULL;
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
    if (!results_listed(&s->scheduling.results))
        return "a result is looked for on another node than its own";
    broken = check_regions(s);
    if (!broken)
        broken = line_check(s);
    if (!broken)
        broken = batching_check(s);
    return broken ? broken : check_inputs(s);
}

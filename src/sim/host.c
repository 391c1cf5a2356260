/* host.c - see host.h */
#include "sim/host.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "spec/trace.h"
#include "util/deadline.h"
#include "util/decimal.h"

int host_init(struct host *h, const struct pliant_job *job, const struct pliant_alloc *alloc)
{
    *h = (struct host){.alloc = alloc, .job = job, .n_vertices = pliant_job_vertices(job)};
    cluster_init(&h->cluster, alloc);
    queue_init(&h->queue, alloc);
    h->vertices = mem_zero(alloc, h->n_vertices, sizeof *h->vertices);
    return h->vertices ? 0 : -ENOMEM;
}

void host_free(struct host *h)
{
    for (uint32_t v = 0; h->vertices && v < h->n_vertices; v++)
        vec_free(h->alloc, &h->vertices[v]);
    mem_free(h->alloc, h->vertices);
    vec_free(h->alloc, &h->older);
    vec_free(h->alloc, &h->outputs);
    vec_free(h->alloc, &h->bytes);
    queue_free(&h->queue);
    cluster_free(&h->cluster);
}

/* ---- attempts -------------------------------------------------------------------------------- */

/* The node under an attempt, or NULL: the attempt is over, or its node has left. */
static struct cluster_node *node_under(const struct host *h, const struct attempt *a)
{
    return a->phase == PHASE_OVER ? NULL : cluster_at(&h->cluster, a->row, a->incarnation);
}

static struct attempt *last_attempt(const struct host *h, pliant_vertex_id vertex, uint32_t subtask)
{
    const struct attempts *of = &h->vertices[vertex.v - 1];

    assert(vertex.v >= 1 && vertex.v <= h->n_vertices);
    return subtask < of->n ? &of->v[subtask] : NULL;
}

static struct attempt *older(const struct host *h, const struct attempt *a)
{
    return a->older == 0 ? NULL : &h->older.v[a->older - 1];
}

/* The attempt that is meant, if it lives; else NULL. */
static struct attempt *attempt_find(const struct host *h, const struct pliant_task *task)
{
    struct attempt *a = last_attempt(h, task->vertex, task->subtask);

    while (a && !(a->number == task->attempt && node_under(h, a)))
        a = older(h, a);
    return a;
}

const struct attempt *host_attempt(const struct host *h, pliant_vertex_id vertex, uint32_t subtask)
{
    struct pliant_task_info info = {.attempt = 0};
    struct attempt *a;

    pliant_task_info(h->sched, vertex, subtask, &info);
    a = attempt_find(h, &(struct pliant_task){vertex, subtask, info.attempt});
    if (a)
        return a;
    a = last_attempt(h, vertex, subtask);
    while (a && !node_under(h, a))
        a = older(h, a);
    return a;
}

static void attempt_end(struct host *h, const struct pliant_task *task)
{
    struct attempt *a = attempt_find(h, task);

    if (!a)
        return;
    node_under(h, a)->tasks--;
    a->phase = PHASE_OVER;
}

/* ---- answers that are on their way ----------------------------------------------------------- */

static bool matters(const struct answer *a, void *ctx)
{
    const struct host *h = ctx;
    const struct attempt *attempt;

    switch (a->kind) {
    case ANSWER_INITIALIZING:
        attempt = attempt_find(h, &a->task);
        return attempt && attempt->phase == PHASE_STARTING;
    case ANSWER_RUNNING:
        attempt = attempt_find(h, &a->task);
        return attempt && attempt->phase != PHASE_RUNNING && attempt->phase != PHASE_CANCELING;
    case ANSWER_FINISHED:
    case ANSWER_FAILED:
        attempt = attempt_find(h, &a->task);
        return attempt && attempt->phase != PHASE_CANCELING;
    case ANSWER_CANCELED:
        return attempt_find(h, &a->task) != NULL;
    case ANSWER_CHECKPOINT:
    case ANSWER_SAVEPOINT:
        return a->checkpoint.epoch == h->epoch;
    case ANSWER_GRANTED:
        return cluster_at(&h->cluster, a->grant.node, a->grant.incarnation) != NULL;
    case ANSWER_RESERVED:
    case ANSWER_REGISTERED:
        return true;
    }
    return true;
}

static int answer_after(struct host *h, int64_t now_ms, int64_t latency_ms, struct answer a)
{
    if (queue_wants_prune(&h->queue))
        queue_prune(&h->queue, matters, h);
    a.due_ms = instant_after(now_ms, latency_ms);
    return queue_add(&h->queue, now_ms, &a);
}

static void plan_event(struct host *h, uint32_t plan, struct pliant_event *ev)
{
    ev->kind = PLIANT_EV_SLOTS_RESERVED;
    ev->plan.plan = plan;
    if (!h->creation_fails)
        return;
    h->creation_fails = false;
    ev->kind = PLIANT_EV_CREATION_FAILED;
    ev->plan.recoverable = h->creation_recoverable;
    ev->plan.cause = h->creation_cause;
}

static void checkpoint_event(struct host *h, const struct answer *a, struct pliant_event *ev)
{
    bool savepoint = a->kind == ANSWER_SAVEPOINT;

    ev->checkpoint.id = a->checkpoint.id;
    ev->checkpoint.triggered_at_ms = a->checkpoint.triggered_at_ms;
    if (h->broken) {
        ev->kind = savepoint ? PLIANT_EV_SAVEPOINT_FAILED : PLIANT_EV_CHECKPOINT_FAILED;
        ev->checkpoint.counts = true;
        ev->checkpoint.cause = "a task failed meanwhile";
        return;
    }
    ev->kind = savepoint ? PLIANT_EV_SAVEPOINT_COMPLETED : PLIANT_EV_CHECKPOINT_COMPLETED;
    if (!savepoint)
        return;
    snprintf(h->path, sizeof h->path, "%s/savepoint-%llu", h->dir,
             (unsigned long long)a->checkpoint.id);
    ev->checkpoint.path = h->path;
}

/* ---- what tasks write ------------------------------------------------------------------------ */

static int64_t draw(struct host *h, const struct job_range *range)
{
    return range->min +
           (int64_t)prng_below(&h->prng, (uint64_t)range->max - (uint64_t)range->min + 1);
}

static bool writes(const struct host *h, pliant_vertex_id vertex)
{
    return h->sims && h->sims[vertex.v - 1].sim.bytes.min != JOB_SIM_UNSET;
}

/* Room for the event that tells it. */
static int reserve_outputs(struct host *h, const struct pliant_task *task)
{
    size_t n_outputs = 0, n_bytes = 0;

    for (size_t e = 0; writes(h, task->vertex) && e < pliant_job_edges(h->job); e++) {
        if (pliant_job_edge(h->job, e)->from != task->vertex.v - 1)
            continue;
        n_outputs++;
        n_bytes += pliant_subpartitions(h->sched, e, task->subtask);
    }
    return vec_reserve(h->alloc, &h->outputs, n_outputs) &&
                   vec_reserve(h->alloc, &h->bytes, n_bytes)
               ? 0
               : -ENOMEM;
}

/* Evenly over the subpartitions, the rest to the first ones. */
static void write_output(struct host *h, size_t edge, uint32_t n)
{
    const struct job_range *range = &h->sims[pliant_job_edge(h->job, edge)->from].sim.bytes;
    uint64_t bytes = (uint64_t)draw(h, range), *first = h->bytes.v + h->bytes.n;

    for (uint32_t i = 0; i < n; i++)
        h->bytes.v[h->bytes.n++] = bytes / n + (i < bytes % n);
    h->outputs.v[h->outputs.n++] =
        (struct pliant_output){.edge = (uint32_t)edge, .n = n, .bytes = first};
}

static void finished_event(struct host *h, const struct pliant_task *task, struct pliant_event *ev)
{
    h->outputs.n = h->bytes.n = 0;
    for (size_t e = 0; writes(h, task->vertex) && e < pliant_job_edges(h->job); e++) {
        uint32_t n = pliant_job_edge(h->job, e)->from == task->vertex.v - 1
                         ? pliant_subpartitions(h->sched, e, task->subtask)
                         : 0;

        if (n > 0)
            write_output(h, e, n);
    }
    ev->kind = PLIANT_EV_TASK_FINISHED;
    ev->finished.task = *task;
    ev->finished.outputs = h->outputs.v;
    ev->finished.n_outputs = h->outputs.n;
}

static void grant_event(const struct host *h, const struct answer *a, struct pliant_event *ev)
{
    const struct cluster_node *node = cluster_at(&h->cluster, a->grant.node, a->grant.incarnation);

    ev->kind = PLIANT_EV_SLOTS_GRANTED;
    ev->granted.name = cluster_name(node);
    ev->granted.incarnation = node->incarnation;
    ev->granted.slots = a->grant.slots;
}

bool host_answer(struct host *h, struct pliant_event *ret)
{
    static const enum pliant_event_kind task_kinds[] = {
        [ANSWER_INITIALIZING] = PLIANT_EV_TASK_INITIALIZING,
        [ANSWER_RUNNING] = PLIANT_EV_TASK_RUNNING,
        [ANSWER_CANCELED] = PLIANT_EV_TASK_CANCELED,
    };
    const struct answer a = queue_take(&h->queue);

    if (!matters(&a, h))
        return false;
    *ret = (struct pliant_event){.kind = PLIANT_EV_TICK};
    switch (a.kind) {
    case ANSWER_RESERVED:
        plan_event(h, a.plan, ret);
        break;
    case ANSWER_INITIALIZING:
    case ANSWER_RUNNING:
    case ANSWER_CANCELED:
        ret->kind = task_kinds[a.kind];
        ret->task = a.task;
        break;
    case ANSWER_FINISHED:
        finished_event(h, &a.task, ret);
        break;
    case ANSWER_FAILED:
        ret->kind = PLIANT_EV_TASK_FAILED;
        ret->failure.task = a.task;
        ret->failure.recoverable = true;
        ret->failure.cause = "simulated failure";
        break;
    case ANSWER_CHECKPOINT:
    case ANSWER_SAVEPOINT:
        checkpoint_event(h, &a, ret);
        break;
    case ANSWER_REGISTERED:
        ret->kind = PLIANT_EV_CHECKPOINT_COMPLETED;
        ret->checkpoint.id = a.checkpoint.id;
        ret->checkpoint.triggered_at_ms = a.checkpoint.triggered_at_ms;
        break;
    case ANSWER_GRANTED:
        grant_event(h, &a, ret);
        break;
    }
    return true;
}

/* ---- what events say about the cluster ------------------------------------------------------- */

static void initializes(struct host *h, const struct pliant_task *task)
{
    struct attempt *a = attempt_find(h, task);

    if (a && a->phase == PHASE_STARTING)
        a->phase = PHASE_INITIALIZING;
}

static int64_t stretched(int64_t duration_ms, double times)
{
    double ms = (double)duration_ms * times;

    return ms < (double)PLIANT_NEVER ? (int64_t)ms : PLIANT_NEVER;
}

/* It runs: from here on its vertex says when it ends or fails. */
static int runs(struct host *h, int64_t now_ms, const struct pliant_task *task)
{
    struct attempt *a = attempt_find(h, task);
    const struct job_vertex_sim *sim = h->sims ? &h->sims[task->vertex.v - 1].sim : NULL;
    int r = 0;

    if (!a || (a->phase != PHASE_STARTING && a->phase != PHASE_INITIALIZING))
        return 0;
    a->phase = PHASE_RUNNING;
    if (sim && sim->duration_ms.min != JOB_SIM_UNSET)
        r = reserve_outputs(h, task);
    if (!r && sim && sim->duration_ms.min != JOB_SIM_UNSET)
        r = answer_after(h, now_ms, stretched(draw(h, &sim->duration_ms), node_under(h, a)->slow),
                         (struct answer){.kind = ANSWER_FINISHED, .task = *task});
    if (!r && sim && sim->fail_every_ms != JOB_SIM_UNSET)
        r = answer_after(h, now_ms, sim->fail_every_ms,
                         (struct answer){.kind = ANSWER_FAILED, .task = *task});
    return r;
}

/* The savepoint of a stop is there: the tasks have emitted all they had, and end. */
static int finish_all(struct host *h, int64_t now_ms)
{
    for (uint32_t v = 0; v < h->n_vertices; v++) {
        for (uint32_t i = 0; i < h->vertices[v].n; i++) {
            struct answer a = {.kind = ANSWER_FINISHED,
                               .task = {{v + 1}, i, h->vertices[v].v[i].number}};
            int r = matters(&a, h) ? answer_after(h, now_ms, 0, a) : 0;

            if (r)
                return r;
        }
    }
    return 0;
}

/* Is it the answer that a stop waits for? There is one; whatever comes without a stop says nothing
 * to the tasks. */
static bool stop_answered(struct host *h, const struct pliant_event *ev)
{
    if (h->stop_id == 0 || ev->checkpoint.id != h->stop_id)
        return false;
    h->stop_id = 0;
    return true;
}

/* The node's label TRACE_SLOW_LABEL, if it has one that says something. */
static double slow_of(const struct pliant_event *ev)
{
    double times;

    for (size_t i = 0; i < ev->node_up.n_labels; i++)
        if (strcmp(ev->node_up.labels[i].key, TRACE_SLOW_LABEL) == 0 &&
            decimal_read(ev->node_up.labels[i].value, &times) && times > 0)
            return times;
    return 1;
}

static int node_up(struct host *h, const struct pliant_event *ev)
{
    struct cluster_node *node;

    if (cluster_find(&h->cluster, ev->node_up.name))
        return 0;
    node = cluster_join(&h->cluster, ev->node_up.name, ev->node_up.incarnation, ev->node_up.slots);
    if (!node)
        return -ENOMEM;
    node->slow = slow_of(ev);
    return 0;
}

/* The node of a life that is meant, or NULL: it has left, or was given up. */
static struct cluster_node *node_of(const struct host *h, const char *name, uint64_t incarnation)
{
    struct cluster_node *node = cluster_find(&h->cluster, name);

    return node && node->incarnation == incarnation ? node : NULL;
}

static void node_leaves(struct host *h, struct cluster_node *node)
{
    if (!node)
        return;
    h->broken |= node->tasks > 0;
    cluster_leave(&h->cluster, node);
}

static int on_event(struct host *h, int64_t now_ms, const struct pliant_event *ev)
{
    struct cluster_node *node;

    switch (ev->kind) {
    case PLIANT_EV_NODE_UP:
        return node_up(h, ev);
    case PLIANT_EV_NODE_DRAINING:
        node = node_of(h, ev->draining.name, ev->draining.incarnation);
        if (node)
            cluster_drain(&h->cluster, node);
        return 0;
    case PLIANT_EV_NODE_DRAIN_WITHDRAWN:
        node = node_of(h, ev->node.name, ev->node.incarnation);
        return node ? cluster_withdraw(&h->cluster, node) : 0;
    case PLIANT_EV_NODE_LOST:
        node_leaves(h, node_of(h, ev->node.name, ev->node.incarnation));
        return 0;
    case PLIANT_EV_TASK_INITIALIZING:
        initializes(h, &ev->task);
        return 0;
    case PLIANT_EV_TASK_RUNNING:
        return runs(h, now_ms, &ev->task);
    case PLIANT_EV_TASK_FINISHED:
    case PLIANT_EV_TASK_CANCELED:
        attempt_end(h, &ev->task);
        return 0;
    case PLIANT_EV_TASK_FAILED:
        h->broken |= attempt_find(h, &ev->failure.task) != NULL;
        attempt_end(h, &ev->failure.task);
        return 0;
    case PLIANT_EV_SAVEPOINT_COMPLETED:
        return stop_answered(h, ev) ? finish_all(h, now_ms) : 0;
    case PLIANT_EV_SAVEPOINT_FAILED:
        stop_answered(h, ev);
        return 0;
    case PLIANT_EV_TICK:
    case PLIANT_EV_START:
    case PLIANT_EV_SLOTS_GRANTED:
    case PLIANT_EV_SLOTS_RECLAIMED:
    case PLIANT_EV_SLOTS_RESERVED:
    case PLIANT_EV_SLOTS_REFUSED:
    case PLIANT_EV_CREATION_FAILED:
    case PLIANT_EV_TASK_END_OF_DATA:
    case PLIANT_EV_GLOBAL_FAILURE:
    case PLIANT_EV_REPORT:
    case PLIANT_EV_CHECKPOINT_COMPLETED:
    case PLIANT_EV_CHECKPOINT_FAILED:
    case PLIANT_EV_REQUIREMENTS:
    case PLIANT_EV_CHECKPOINT_REQUESTED:
    case PLIANT_EV_SAVEPOINT_REQUESTED:
    case PLIANT_EV_STOP:
    case PLIANT_EV_CANCEL:
    case PLIANT_EV_SUSPEND:
    case PLIANT_EVENTS:
        return 0;
    }
    return 0;
}

/* ---- what the cluster does about actions ----------------------------------------------------- */

static struct cluster_node *node_named(const struct host *h, pliant_node_id id)
{
    const char *name = pliant_node_name(h->sched, id);

    return name ? cluster_find(&h->cluster, name) : NULL;
}

/* Older attempts that are over are forgotten. */
static void forget_older(struct host *h, struct attempt *last)
{
    for (uint32_t *link = &last->older; *link != 0;) {
        uint32_t row = *link;
        struct attempt *a = &h->older.v[row - 1];

        if (node_under(h, a)) {
            link = &a->older;
            continue;
        }
        *link = a->older;
        a->older = h->unused_older;
        h->unused_older = row;
    }
}

/* The last attempt lives on beside one that begins. */
static bool make_older(struct host *h, struct attempt *last)
{
    uint32_t row = h->unused_older;

    if (row != 0)
        h->unused_older = h->older.v[row - 1].older;
    else if (vec_push(h->alloc, &h->older))
        row = (uint32_t)h->older.n;
    else
        return false;
    h->older.v[row - 1] = *last;
    last->older = row;
    return true;
}

/* Where the next attempt goes; `older` is set. */
static struct attempt *attempt_room(struct host *h, const struct pliant_task *task)
{
    struct attempts *of = &h->vertices[task->vertex.v - 1];
    struct attempt *last;

    while (of->n <= task->subtask)
        if (!vec_push(h->alloc, of))
            return NULL;
    last = &of->v[task->subtask];
    forget_older(h, last);
    return !node_under(h, last) || make_older(h, last) ? last : NULL;
}

static int64_t deploy_ms(const struct host *h, pliant_vertex_id vertex)
{
    int64_t own_ms = h->sims ? h->sims[vertex.v - 1].sim.deploy_ms : JOB_SIM_UNSET;

    return own_ms == JOB_SIM_UNSET ? h->latency.deploy_ms : own_ms;
}

static int deploy(struct host *h, int64_t now_ms, const struct pliant_action *act)
{
    const struct pliant_task *task = &act->deploy.task;
    struct cluster_node *node = node_named(h, pliant_slot_node(h->sched, act->deploy.slot));
    struct attempt *a = attempt_room(h, task);
    int64_t started_ms = deploy_ms(h, task->vertex), running_ms = started_ms;
    int r = 0;

    if (!a)
        return -ENOMEM;
    if (!node) /* it left in this very step: the scheduler knows, or will hear of it */
        return 0;
    if (h->broken) { /* the scheduler has given up what was under way, and takes none before all run
                      */
        h->broken = false;
        h->epoch++;
    }
    node->tasks++;
    *a = (struct attempt){.number = task->attempt,
                          .phase = PHASE_STARTING,
                          .row = cluster_row(&h->cluster, node),
                          .incarnation = node->incarnation,
                          .older = a->older};
    if (h->launches_told > 0)
        return 0;
    if (act->deploy.restore)
        running_ms = instant_after(started_ms, h->latency.restore_ms);
    if (running_ms > started_ms) /* else it has nothing to initialize */
        r = answer_after(h, now_ms, started_ms,
                         (struct answer){.kind = ANSWER_INITIALIZING, .task = *task});
    return r ? r
             : answer_after(h, now_ms, running_ms,
                            (struct answer){.kind = ANSWER_RUNNING, .task = *task});
}

static int cancel(struct host *h, int64_t now_ms, const struct pliant_task *task)
{
    struct attempt *a = attempt_find(h, task);

    if (!a || a->phase == PHASE_CANCELING)
        return 0;
    a->phase = PHASE_CANCELING;
    h->epoch++; /* a checkpoint that is under way cannot become complete */
    return answer_after(h, now_ms, h->latency.cancel_ms,
                        (struct answer){.kind = ANSWER_CANCELED, .task = *task});
}

static int checkpoint(struct host *h, int64_t now_ms, const struct pliant_action *act)
{
    bool stop = act->flag[0] == PLIANT_CHECKPOINT_STOP, savepoint = act->flag[1];
    struct answer a = {
        .kind = savepoint ? ANSWER_SAVEPOINT : ANSWER_CHECKPOINT,
        .checkpoint = {.id = act->checkpoint.id, .epoch = h->epoch, .triggered_at_ms = now_ms}};

    if (savepoint)
        snprintf(h->dir, sizeof h->dir, "%s", act->checkpoint.dir ? act->checkpoint.dir : ".");
    if (stop)
        h->stop_id = act->checkpoint.id;
    return stop && !h->answers_stop ? 0 : answer_after(h, now_ms, h->latency.checkpoint_ms, a);
}

static int reserve(struct host *h, int64_t now_ms, uint32_t plan)
{
    h->epoch++;
    h->broken = false;
    return answer_after(h, now_ms, 0, (struct answer){.kind = ANSWER_RESERVED, .plan = plan});
}

static int release(struct host *h, const pliant_slot_id *slots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct cluster_node *node = node_named(h, pliant_slot_node(h->sched, slots[i]));
        int r = node ? cluster_put_aside(&h->cluster, node, 1) : 0;

        if (r)
            return r;
    }
    return 0;
}

static int on_action(struct host *h, int64_t now_ms, const struct pliant_action *act)
{
    switch ((enum pliant_action_kind)act->kind) {
    case PLIANT_ACT_DECLARE:
        h->declared = act->declare.desired;
        return 0;
    case PLIANT_ACT_RESERVE:
        return reserve(h, now_ms, act->reserve.plan);
    case PLIANT_ACT_RELEASE:
        return release(h, act->release.slots, act->release.n);
    case PLIANT_ACT_DEPLOY:
        return deploy(h, now_ms, act);
    case PLIANT_ACT_CANCEL:
        return cancel(h, now_ms, &act->task);
    case PLIANT_ACT_CHECKPOINT:
        return checkpoint(h, now_ms, act);
    case PLIANT_ACT_REGISTER:
        return answer_after(
            h, now_ms, 0,
            (struct answer){.kind = ANSWER_REGISTERED,
                            .checkpoint = {.id = act->registered.id, .triggered_at_ms = now_ms}});
    case PLIANT_ACT_GIVE_UP_NODE:
        node_leaves(h, node_named(h, act->node.node));
        return 0;
    case PLIANT_ACT_ARCHIVED:
        h->declared = 0;
        return 0;
    case PLIANT_ACT_NOTIFY: /* simulated tasks do nothing about it */
    case PLIANT_ACT_RELEASE_RESULT:
    case PLIANT_ACT_DECIDED:
    case PLIANT_ACT_BLOCK_NODE:
    case PLIANT_ACT_REPORT_TAKEN:
    case PLIANT_ACT_REFUSED:
    case PLIANT_ACT_STATE_CHANGED:
    case PLIANT_ACT_STATUS_CHANGED:
    case PLIANT_ACT_RESCALE_OPENED:
    case PLIANT_ACT_RESCALE_CLOSED:
    case PLIANT_ACT_RESCALE_JUDGED:
    case PLIANT_ACT_FAILURE:
    case PLIANT_ACT_SAVEPOINT_ENDED:
    case PLIANT_ACTIONS:
        return 0;
    }
    return 0;
}

/* The job wants more slots than it holds: those that it gave back are its own again. */
static int offer_again(struct host *h, int64_t now_ms)
{
    struct cluster *c = &h->cluster;
    struct cluster_node *node;
    uint32_t n;
    int r = 0;

    while (!r && h->declared > c->held && (n = cluster_offer(c, h->declared - c->held, &node)) > 0)
        r = answer_after(h, now_ms, 0,
                         (struct answer){.kind = ANSWER_GRANTED,
                                         .grant = {.node = cluster_row(c, node),
                                                   .incarnation = node->incarnation,
                                                   .slots = n}});
    return r;
}

int host_on_step(struct host *h, int64_t now_ms, const struct pliant_event *ev,
                 const struct pliant_actions *acts)
{
    int r = on_event(h, now_ms, ev);

    for (size_t i = 0; !r && i < acts->n; i++)
        r = on_action(h, now_ms, &acts->v[i]);
    return r ? r : offer_again(h, now_ms);
}

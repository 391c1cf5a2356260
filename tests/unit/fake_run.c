/* fake_run.c - see fake_run.h */
#include "fake_run.h"

#include <string.h>

/* clang-format off */
#define CREATED PLIANT_CREATED
#define WAITING PLIANT_WAITING_FOR_RESOURCES
#define CREATING PLIANT_CREATING_EXECUTION_GRAPH
#define EXECUTING PLIANT_EXECUTING
#define RESTARTING PLIANT_RESTARTING

const struct fake_step fake_grow_and_lose[] = {
    {0, PLIANT_EV_NODE_UP, .nodes = 1, .offered = 2},
    {0, PLIANT_EV_START, .nodes = 1, .offered = 2,
     .changes = {{CREATED, WAITING, .reason = PLIANT_REASON_STARTED}}},
    {10000, PLIANT_EV_TICK, .nodes = 1, .offered = 2,
     .changes = {{WAITING, CREATING, .reason = PLIANT_REASON_SUFFICIENT_RESOURCES, .since = 1}}},
    {10000, PLIANT_EV_SLOTS_RESERVED, .nodes = 1, .offered = 2, .used = 2, .parallelism = 2,
     .changes = {{CREATING, EXECUTING, .reason = PLIANT_REASON_PLAN_READY}}},
    {12800, PLIANT_EV_CHECKPOINT_COMPLETED, 2, .nodes = 1, .offered = 2, .used = 2},
    {15000, PLIANT_EV_NODE_UP, .nodes = 2, .offered = 4, .used = 2},
    {16800, PLIANT_EV_CHECKPOINT_COMPLETED, 4, .nodes = 2, .offered = 4, .used = 2, .aim = 4,
     .changes = {{EXECUTING, RESTARTING, .reason = PLIANT_REASON_RESCALE,
                  .since = 15000, .detail = 4}}},
    {16800, PLIANT_EV_TASK_CANCELED, .nodes = 2, .offered = 4,
     .changes = {{RESTARTING, CREATING, .reason = PLIANT_REASON_TARGET_REACHABLE}}},
    {16800, PLIANT_EV_SLOTS_RESERVED, .nodes = 2, .offered = 4, .used = 4, .parallelism = 4,
     .changes = {{CREATING, EXECUTING, .reason = PLIANT_REASON_PLAN_READY}}},
    {18800, PLIANT_EV_CHECKPOINT_COMPLETED, 5, .nodes = 2, .offered = 4, .used = 4},
    {35000, PLIANT_EV_NODE_LOST, .nodes = 1, .offered = 2, .used = 2,
     .changes = {{EXECUTING, RESTARTING, .reason = PLIANT_REASON_NODE_LOST,
                  .detail = 1000, .node = 1}}},
    {36000, PLIANT_EV_TICK, .nodes = 1, .offered = 2,
     .changes = {{RESTARTING, WAITING, .reason = PLIANT_REASON_BACKOFF_OVER}}},
    {36800, PLIANT_EV_CHECKPOINT_COMPLETED, 14, .nodes = 1, .offered = 2, .ignored = true},
    {46000, PLIANT_EV_TICK, .nodes = 1, .offered = 2,
     .changes = {{WAITING, CREATING, .reason = PLIANT_REASON_SUFFICIENT_RESOURCES,
                  .since = 36000}}},
    {46000, PLIANT_EV_SLOTS_RESERVED, .nodes = 1, .offered = 2, .used = 2, .parallelism = 2,
     .changes = {{CREATING, EXECUTING, .reason = PLIANT_REASON_PLAN_READY}}},
};
/* clang-format on */

const size_t fake_grow_and_lose_n = sizeof fake_grow_and_lose / sizeof *fake_grow_and_lose;

struct pliant_job *fake_job(const char *name)
{
    const struct pliant_vertex_spec vertices[] = {
        {.id = "src", .parallelism = 4, .max_parallelism = 128},
        {.id = "map", .parallelism = 4, .max_parallelism = 128}};
    const struct pliant_job_spec spec = {.name = name, .vertices = vertices, .n_vertices = 2};
    struct pliant_job *job = NULL;

    return pliant_job_new(&spec, NULL, &job, NULL) == 0 ? job : NULL;
}

static const char *node_name(const struct pliant_sched *sched, pliant_node_id node)
{
    static const char *const names[] = {"", "n1", "n2", "n3"};

    (void)sched;
    return names[node.v];
}

struct pliant_action *fake_action(struct fake *f, enum pliant_action_kind kind)
{
    struct pliant_action *a = &f->actions[f->list.n++];

    memset(a, 0, sizeof *a);
    a->kind = (uint8_t)kind;
    return a;
}

static void take_change(struct fake *f, const struct fake_change *c, uint32_t offered)
{
    struct pliant_action *a = fake_action(f, PLIANT_ACT_STATE_CHANGED);

    a->flag[0] = (uint8_t)c->from;
    a->flag[1] = (uint8_t)c->to;
    a->flag[2] = (uint8_t)c->reason;
    a->change.slots = offered;
    a->change.node.v = c->node;
    a->change.since_at_ms = c->since ? c->since : PLIANT_NEVER;
    a->change.detail = c->detail;
    f->view->state = c->to;
}

static enum pliant_job_status status_of(enum pliant_state state)
{
    static const enum pliant_job_status shown[PLIANT_STATES] = {
        [PLIANT_WAITING_FOR_RESOURCES] = PLIANT_JOB_CREATED,
        [PLIANT_CREATING_EXECUTION_GRAPH] = PLIANT_JOB_CREATED,
        [PLIANT_RETRYING_EXECUTION_GRAPH_CREATION] = PLIANT_JOB_CREATED,
        [PLIANT_EXECUTING] = PLIANT_JOB_RUNNING,
        [PLIANT_RESTARTING] = PLIANT_JOB_RESTARTING,
        [PLIANT_FAILING] = PLIANT_JOB_FAILING,
        [PLIANT_CANCELING] = PLIANT_JOB_CANCELLING,
        [PLIANT_STOP_WITH_SAVEPOINT] = PLIANT_JOB_RUNNING,
        [PLIANT_FINISHED] = PLIANT_JOB_FINISHED,
    };
    return shown[state];
}

void fake_take(struct fake *f, struct view *view, const struct fake_step *step)
{
    *f = (struct fake){.view = view, .event = {.kind = step->event}, .list = {.v = f->actions}};
    f->event.checkpoint.id = step->event == PLIANT_EV_CHECKPOINT_COMPLETED ? step->id : 0;
    view->at_ms = step->at_ms;
    view->event = &f->event;
    view->actions = &f->list;
    view->node_name = node_name;
    view->before = view->counts;
    view->counts.nodes = step->nodes;
    view->counts.draining_nodes = step->draining;
    view->counts.slots = view->counts.slots_offered = step->offered;
    view->counts.slots_used = step->used;
    view->counts.minimal = 1;
    view->counts.desired = 4;
    view->counts.events_ignored += step->ignored;
    if (step->event == PLIANT_EV_CHECKPOINT_COMPLETED && !step->ignored)
        view->counts.checkpoint = step->id;
    for (uint32_t i = 0; i < view->n_vertices; i++) {
        view->parallelism[i] = step->parallelism ? step->parallelism : view->parallelism[i];
        view->aim[i] = step->aim;
    }
    view->has_aim = step->aim > 0;
    for (int i = 0; i < FAKE_CHANGES && step->changes[i].reason; i++)
        take_change(f, &step->changes[i], step->offered);
    view->status = status_of(view->state);
}

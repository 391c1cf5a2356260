/* group_launch.c - a launch of a worker group: torn checkpoints out of the way, a port for its
 * rendezvous, variables for its ranks
 *
 * The answer to RESERVE waits for the port, since the launch's own timeout runs from it [W-GRP-3].
 * Which plan waits stands in a note: after a restart of the daemon it is refused, and the core
 * makes another one.
 *
 * A worker that fails while others still come up has begun to work, so its failure is one of the
 * workers and none of the launch: it is told to the core once all are up, or the launch is given
 * up. So a command that fails at once uses up worker-group.max-failures.
 */
#include "daemon/groups_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NOTE_LAUNCH "group-launch"
#define PORTS_AVOIDED 16u /* attempts back [7.2] */

/* ---- what outlives the daemon --------------------------------------------------------------- */

static void put_launch(struct daemon *d, const struct daemon_job *job)
{
    const struct group *g = job->group;
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_uint(&j, "plan", g->plan);
    json_string(&j, "address", g->address);
    json_uint(&j, "port", g->port);
    json_begin(&j, "used", '[');
    for (size_t i = 0; i < g->used.n; i++)
        json_uint(&j, NULL, g->used.v[i]);
    json_end(&j, ']');
    group_put_note(d, job, NOTE_LAUNCH, &j);
}

static void note_used(struct group *g, uint16_t port)
{
    uint16_t *at = need(vec_push(NULL, &g->used));

    *at = port;
    if (g->used.n <= PORTS_AVOIDED)
        return;
    g->used.n = PORTS_AVOIDED;
    memmove(g->used.v, g->used.v + 1, PORTS_AVOIDED * sizeof *g->used.v);
}

static void refuse_plan(struct daemon *d, struct daemon_job *job, uint32_t plan)
{
    job_fact(d, job,
             &(struct pliant_event){.kind = PLIANT_EV_SLOTS_REFUSED, .plan = {.plan = plan}});
}

void launch_recover(struct daemon *d, struct daemon_job *job)
{
    struct group *g = job->group;
    const struct doc *used = NULL;
    int64_t plan = 0, port = 0;
    struct spec_error err;
    struct doc_file f;

    if (group_note(d, job, NOTE_LAUNCH, &f)) {
        doc_int(&f, f.root, "plan", 0, UINT32_MAX, &plan, &err);
        doc_int(&f, f.root, "port", 0, UINT16_MAX, &port, &err);
        g->port = (uint16_t)port;
        g->address = group_text(doc_get(f.root, "address"));
        doc_container(&f, f.root, "used", DOC_LIST, &used, &err);
        for (const struct doc *p = used ? used->child : NULL; p; p = p->next)
            note_used(g, (uint16_t)p->number);
    }
    doc_free(&f);
    if (plan)
        refuse_plan(d, job, (uint32_t)plan);
}

void launch_free(struct group *g)
{
    free(g->master);
    free(g->address);
    free(g->seats);
    vec_free(NULL, &g->used);
}

/* ---- preparing ------------------------------------------------------------------------------ */

static void prepared(struct daemon *d, struct daemon_job *job)
{
    struct group *g = job->group;

    g->plan = 0;
    g->prepared_by_ms = PLIANT_NEVER;
    free(g->master);
    g->master = NULL;
    put_launch(d, job);
}

/* Nodes that come together are told one by one: a plan that has not begun yet is made again, so
 * that they cost no restart [W-ELA-10]. */
static bool is_outgrown(const struct daemon_job *job)
{
    const struct group *g = job->group;
    struct pliant_counts counts;

    pliant_counts(job->sched, &counts);
    return counts.slots_offered > g->offered && g->n_planned < counts.desired;
}

static void ready(struct daemon *d, struct daemon_job *job, uint16_t port)
{
    struct group *g = job->group;

    if (is_outgrown(job)) {
        refuse_plan(d, job, g->plan);
        prepared(d, job);
        return;
    }
    g->port = port;
    note_used(g, port);
    job_fact(d, job,
             &(struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED, .plan = {.plan = g->plan}});
    prepared(d, job);
}

static void fail(struct daemon *d, struct daemon_job *job, const char *cause)
{
    log_line(4, "msg=\"a launch can't be prepared\" job=%s cause=%s", job->id, log_quoted(cause).v);
    job_fact(d, job,
             &(struct pliant_event){
                 .kind = PLIANT_EV_CREATION_FAILED,
                 .plan = {.plan = job->group->plan, .recoverable = true, .cause = cause}});
    prepared(d, job);
}

static void ask_for_port(struct daemon *d, const struct daemon_job *job, struct daemon_node *node)
{
    const struct group *g = job->group;
    struct json j;

    if (node->state != NODE_UP)
        return; /* when it comes back */
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "job", job->id);
    json_uint(&j, "attempt", g->plan);
    json_begin(&j, "avoid", '[');
    for (size_t i = 0; i < g->used.n; i++)
        json_uint(&j, NULL, g->used.v[i]);
    json_end(&j, ']');
    json_end(&j, '}');
    outbox_to_node(d, node, MESSAGE_RESERVE_PORT, &j);
    json_free(&j);
}

static struct daemon_node *node_of_slot(struct daemon *d, const struct daemon_job *job,
                                        pliant_slot_id slot)
{
    return node_find(d, pliant_node_name(job->sched, pliant_slot_node(job->sched, slot)));
}

/* Slots are in the order of the ranks. */
static void choose_address(struct daemon *d, struct daemon_job *job,
                           const struct pliant_action *act)
{
    struct group_host *hosts = need(calloc((size_t)act->reserve.n + 1, sizeof *hosts));
    const struct daemon_node *last = NULL;
    size_t n = 0;

    for (uint32_t i = 0; i < act->reserve.n; i++) {
        const struct daemon_node *node = node_of_slot(d, job, act->reserve.slots[i]);

        if (!node || node == last)
            continue;
        last = node;
        hosts[n++] = (struct group_host){.address = node->address, .host = node->host};
    }
    free(job->group->address);
    job->group->address = need_text(n > 0 ? group_master_address(hosts, n) : "127.0.0.1");
    free(hosts);
}

/* [W-CKP-11] */
static bool move_torn(const struct daemon_job *job, struct spec_error *err)
{
    int moved = run_move_torn(job->group->run_dir, &job->group->run, err);

    if (moved > 0)
        log_line(6, "msg=\"checkpoints that were not registered are moved aside\" job=%s n=%d",
                 job->id, moved);
    return moved >= 0;
}

void group_reserve(struct daemon *d, struct daemon_job *job, const struct pliant_action *act)
{
    struct daemon_node *master = node_of_slot(d, job, act->reserve.slots[0]);
    struct group *g = job->group;
    struct pliant_counts counts;
    struct spec_error err;

    pliant_counts(job->sched, &counts);
    g->plan = act->reserve.plan;
    g->n_planned = act->reserve.n;
    g->offered = counts.slots_offered;
    g->stop_at_ms = PLIANT_NEVER;
    choose_address(d, job, act);
    if (!move_torn(job, &err)) {
        fail(d, job, err.text);
        return;
    }
    if (job->config->group.master_port > 0) {
        ready(d, job, (uint16_t)job->config->group.master_port);
        return;
    }
    free(g->master);
    g->master = need_text(master->name);
    g->prepared_by_ms = d->clock.now_ms + job->config->group.prepare_timeout_ms;
    groups_wake(d, g->prepared_by_ms);
    put_launch(d, job);
    ask_for_port(d, job, master);
}

void group_port(struct daemon *d, const struct daemon_node *node, const struct doc_file *f,
                const struct doc *body)
{
    int64_t plan = 0, port = 0;
    struct daemon_job *job;
    struct spec_error err;
    const char *id = "", *error = NULL;
    char cause[256];

    if (doc_string(f, body, "job", PLIANT_NAME_MAX, &id, &err) < 0 ||
        doc_int(f, body, "attempt", 1, UINT32_MAX, &plan, &err) < 0)
        return;
    HASH_FIND_STR(d->jobs, id, job);
    if (!job || !job->group || job->ended_unix_ms || job->group->plan != plan ||
        !job->group->master || strcmp(job->group->master, node->name) != 0)
        return; /* late */
    if (doc_int(f, body, "port", 1, UINT16_MAX, &port, &err) == 0) {
        ready(d, job, (uint16_t)port);
        return;
    }
    doc_string(f, body, "error", 1024, &error, &err);
    snprintf(cause, sizeof cause, "%s has no port: %s", node->name, error ? error : "unknown why");
    fail(d, job, cause);
}

void groups_node_back(struct daemon *d, struct daemon_node *node)
{
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next)
        if (job->group && job->group->master && strcmp(job->group->master, node->name) == 0)
            ask_for_port(d, job, node);
}

void groups_node_lost(struct daemon *d, const struct daemon_node *node)
{
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next) {
        if (!job->group || !job->group->master || strcmp(job->group->master, node->name) != 0)
            continue;
        refuse_plan(d, job, job->group->plan);
        prepared(d, job);
    }
}

void launch_due(struct daemon *d, struct daemon_job *job)
{
    char cause[256];

    if (job->group->prepared_by_ms > d->clock.now_ms) {
        groups_wake(d, job->group->prepared_by_ms);
        return;
    }
    snprintf(cause, sizeof cause, "no port from %s within worker-group.prepare-timeout",
             job->group->master);
    fail(d, job, cause);
}

/* ---- the environment ------------------------------------------------------------------------ */

/* The same for all ranks that are deployed in a step, so it is made once. */
static void take_seats(struct daemon_job *job, pliant_vertex_id vertex)
{
    struct group *g = job->group;
    uint32_t n = pliant_parallelism(job->sched, vertex), *nodes;

    if (g->n_seats == n && g->seats_step == job->n_steps)
        return;
    nodes = need(calloc((size_t)n + 1, sizeof *nodes));
    free(g->seats);
    g->seats = need(calloc((size_t)n + 1, sizeof *g->seats));
    for (uint32_t rank = 0; rank < n; rank++) {
        struct pliant_task_info info;

        if (pliant_task_info(job->sched, vertex, rank, &info))
            nodes[rank] = pliant_slot_node(job->sched, info.slot).v;
    }
    g->n_seats = n;
    g->seats_step = job->n_steps;
    g->n_nodes = group_seats(nodes, n, g->seats);
    free(nodes);
}

size_t group_environment(struct daemon_job *job, const struct pliant_task *task,
                         const struct daemon_node *node,
                         struct group_variable ret[GROUP_VARIABLES_MAX])
{
    const char *role = options_text(&job->options, "worker-group.role-name");
    struct group *g = job->group;
    struct pliant_counts counts;

    take_seats(job, task->vertex);
    pliant_counts(job->sched, &counts);
    return group_variables(
        &(struct group_env){.rank = task->subtask,
                            .world_size = g->n_seats,
                            .n_nodes = g->n_nodes,
                            .seat = g->seats[task->subtask],
                            .job = job->id,
                            .role = *role ? role : "default",
                            .host = node->host,
                            .master_address = g->address ? g->address : "127.0.0.1",
                            .master_port = g->port,
                            .restarts = counts.failures_charged + counts.preemptions_charged,
                            .max_restarts = job->config->group.max_failures,
                            .virtual_local_rank = job->config->group.virtual_local_rank,
                            .horovod = job->config->group.horovod_env},
        ret);
}

/* ---- workers that fail while others come up -------------------------------------------------- */

/* Is it one, and not given up? */
static bool comes_up(const struct daemon_job *job, const struct daemon_task *task)
{
    struct pliant_task_info info;

    return job->group && pliant_state(job->sched) == PLIANT_CREATING_EXECUTION_GRAPH &&
           pliant_task_info(job->sched, (pliant_vertex_id){task->key.vertex}, task->key.subtask,
                            &info) &&
           info.attempt == task->key.attempt && info.state != PLIANT_TASK_CANCELING;
}

bool group_holds_end(struct daemon *d, struct daemon_task *task, const struct pliant_event *ev)
{
    struct pliant_event up = {.kind = PLIANT_EV_TASK_RUNNING, .task = ev->failure.task};

    if (!comes_up(task->job, task))
        return false;
    if (task->held)
        return true; /* said again */
    task->held = need(calloc(1, sizeof *task->held));
    task->held->death = ev->failure.death;
    task->held->exit_code = ev->failure.exit_code;
    snprintf(task->held->cause, sizeof task->held->cause, "%s", ev->failure.cause);
    job_fact(d, task->job, &up); /* it was up, however short */
    return true;
}

static void let_go(struct daemon *d, struct daemon_task *task, bool canceled)
{
    struct daemon_job *job = task->job;
    const char *vertex =
        pliant_job_vertex_name(job->spec.job, (pliant_vertex_id){task->key.vertex});
    struct pliant_task name = {
        .vertex = {task->key.vertex}, .subtask = task->key.subtask, .attempt = task->key.attempt};
    struct pliant_event ev = {.kind = PLIANT_EV_TASK_CANCELED, .task = name};

    if (!canceled)
        ev = (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                   .failure = {.task = name,
                                               .recoverable = true,
                                               .cause = task->held->cause,
                                               .death = task->held->death,
                                               .exit_code = task->held->exit_code}};
    job_fact(d, job, &ev);
    tell_task(d, job, task, canceled ? PLIANT_TASK_CANCELED : PLIANT_TASK_FAILED,
              canceled ? NULL : task->held->cause);
    forget_task(d, task->node, job->id, vertex, task->key.subtask, task->key.attempt, false);
    node_task_over(d, task);
}

void group_is_up(struct daemon *d, struct daemon_job *job)
{
    struct daemon_task *task, *next;

    HASH_ITER (hh, job->tasks, task, next)
        if (task->held)
            let_go(d, task, false);
}

bool group_cancels_held(struct daemon *d, struct daemon_task *task)
{
    if (!task->held)
        return false;
    let_go(d, task, true);
    return true;
}

/* deploy.c - what agents are told to start, to stop and to forget, a message of each kind a turn
 *
 * DEPLOY goes before STOP: what is started and stopped in one turn ends up stopped, and an agent
 * starts nothing in a slot before what lives there has ended.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/group_env.h"

#define MESSAGE_ENOUGH (4u << 20) /* bytes of a list; what comes then begins another message */
#define PEERS_MAX 1024u           /* tasks of a job that are told of each other */
#define OWN_PREFIX "PLIANT_"      /* variables that a job does not set */

struct deploying {
    struct daemon_node *first; /* of those that something was gathered for */
    struct json element, message;
    const struct daemon_job *peers_of; /* whose tasks are in `peers`, as of its step */
    uint64_t peers_step;
    struct json peers;
};

static struct deploying *deploying(struct daemon *d)
{
    if (!d->deploying)
        d->deploying = need(calloc(1, sizeof *d->deploying));
    return d->deploying;
}

void deploy_close(struct daemon *d)
{
    if (!d->deploying)
        return;
    json_free(&d->deploying->element);
    json_free(&d->deploying->message);
    json_free(&d->deploying->peers);
    free(d->deploying);
    d->deploying = NULL;
}

/* ---- gathering ------------------------------------------------------------------------------ */

static void send_list(struct daemon *d, struct daemon_node *node, enum message_type type,
                      const char *key, struct gathered *list)
{
    struct json *j = &d->deploying->message;

    if (list->n == 0)
        return;
    json_reset(j);
    json_begin(j, NULL, '{');
    if (type == MESSAGE_DEPLOY && node->peers.n > 0)
        json_raw(j, "peers", node->peers.v, node->peers.n);
    json_begin(j, key, '[');
    json_raw(j, NULL, list->v, list->n);
    json_end(j, ']');
    json_end(j, '}');
    outbox_to_node(d, node, type, j);
    vec_free(NULL, list);
}

static void send_gathered(struct daemon *d, struct daemon_node *node)
{
    send_list(d, node, MESSAGE_DEPLOY, "tasks", &node->deploy);
    send_list(d, node, MESSAGE_STOP, "tasks", &node->stop);
    send_list(d, node, MESSAGE_FORGET, "tasks", &node->forget);
    send_list(d, node, MESSAGE_DISCARD, "results", &node->discard);
    vec_free(NULL, &node->peers);
    node->peers_of = NULL;
}

/* The element that was just written. */
static void gather(struct daemon *d, struct daemon_node *node, struct gathered *list)
{
    struct deploying *g = d->deploying;
    const struct json *e = &g->element;

    need(e->error == 0 && vec_room(NULL, list, e->n + 1) ? list : NULL);
    if (list->n > 0)
        list->v[list->n++] = ',';
    memcpy(list->v + list->n, e->v, e->n);
    list->n += e->n;
    if (!node->has_gathered) {
        node->has_gathered = true;
        node->next_gathered = g->first;
        g->first = node;
    }
    if (list->n > MESSAGE_ENOUGH)
        send_gathered(d, node);
}

void deploy_gathered(struct daemon *d)
{
    struct deploying *g = deploying(d);

    g->peers_of = NULL; /* jobs end with their turn */
    while (g->first) {
        struct daemon_node *node = g->first;

        g->first = node->next_gathered;
        node->has_gathered = false;
        send_gathered(d, node);
    }
}

void deploy_forget_node(struct daemon *d, struct daemon_node *node)
{
    struct daemon_node **at = &deploying(d)->first;

    vec_free(NULL, &node->deploy);
    vec_free(NULL, &node->stop);
    vec_free(NULL, &node->forget);
    vec_free(NULL, &node->discard);
    vec_free(NULL, &node->peers);
    node->peers_of = NULL;
    if (!node->has_gathered)
        return;
    while (*at != node)
        at = &(*at)->next_gathered;
    *at = node->next_gathered;
    node->has_gathered = false;
}

static struct json *element(struct daemon *d, const char *job, const char *vertex, uint32_t subtask,
                            uint32_t attempt)
{
    struct json *j = &deploying(d)->element;

    json_reset(j);
    json_begin(j, NULL, '{');
    json_string(j, "job", job);
    json_string(j, "vertex", vertex);
    json_uint(j, "subtask", subtask);
    json_uint(j, "attempt", attempt);
    return j;
}

/* ---- stopping ------------------------------------------------------------------------------- */

static void gather_stop(struct daemon *d, struct daemon_node *node, struct json *j,
                        int64_t timeout_ms, int64_t kill_at_ms)
{
    if (node->draining && node->drain_end_at_ms < kill_at_ms)
        kill_at_ms = node->drain_end_at_ms;
    json_int(j, "stop_timeout_ms", timeout_ms);
    if (kill_at_ms != PLIANT_NEVER)
        json_int(j, "kill_at_unix_ms", clock_to_unix(&d->clock, kill_at_ms));
    json_end(j, '}');
    gather(d, node, &node->stop);
}

void stop_stray(struct daemon *d, struct daemon_node *node, const char *job, const char *vertex,
                uint32_t subtask, uint32_t attempt, int64_t timeout_ms)
{
    if (node->state == NODE_UP) /* else its next HELLO tells what is to be stopped */
        gather_stop(d, node, element(d, job, vertex, subtask, attempt), timeout_ms, PLIANT_NEVER);
}

void stop_task(struct daemon *d, struct daemon_job *job, struct daemon_task *task)
{
    const char *vertex =
        pliant_job_vertex_name(job->spec.job, (pliant_vertex_id){task->key.vertex});

    task->stopping = true;
    if (task->node->state == NODE_UP)
        gather_stop(d, task->node,
                    element(d, job->id, vertex, task->key.subtask, task->key.attempt),
                    task->given_up ? 0 : job_stop_timeout_ms(job), group_kill_at_ms(job));
}

void forget_task(struct daemon *d, struct daemon_node *node, const char *job, const char *vertex,
                 uint32_t subtask, uint32_t attempt, bool finished)
{
    struct json *j;

    if (node->state != NODE_UP)
        return;
    j = element(d, job, vertex, subtask, attempt);
    if (finished)
        json_bool(j, "finished", true);
    json_end(j, '}');
    gather(d, node, &node->forget);
}

void discard_results(struct daemon *d, struct daemon_node *node, const char *job, const char *root,
                     const char *result)
{
    struct json *j = &deploying(d)->element;

    if (node->state != NODE_UP)
        return;
    json_reset(j);
    json_begin(j, NULL, '{');
    json_string(j, "job", job);
    json_string(j, "dir", root);
    json_string(j, "result", result);
    json_end(j, '}');
    gather(d, node, &node->discard);
}

/* ---- what a task is started with ------------------------------------------------------------ */

/* Subtasks of then whose key groups overlap with this one's: first..end - 1 of n. */
struct old_parts {
    uint32_t first, end, n;
};

/* One task that is to be started, and what its variables are made from. */
struct deployment {
    struct daemon_job *job;
    struct daemon_node *node;
    struct pliant_task task;
    const char *vertex;
    uint32_t slot;
    uint32_t parallelism, max_parallelism;
    uint32_t first, last; /* key groups */
    uint64_t restore;
    struct old_parts old;
    const char *checkpoint; /* its directory; "" : none */
};

static void text_variable(struct json *j, const char *name, const char *value)
{
    json_string(j, name, value ? value : "");
}

static void count_variable(struct json *j, const char *name, uint32_t value)
{
    char text[16];

    snprintf(text, sizeof text, "%" PRIu32, value);
    json_string(j, name, text);
}

static bool job_sets(const struct job_command *command, const char *name)
{
    for (size_t i = 0; i < command->n_env; i++)
        if (strcmp(command->env[i].name, name) == 0)
            return true;
    return false;
}

/* The job's own, and those of its worker group, which go before them [7.1]. */
static void job_variables(struct json *j, const struct job_command *command,
                          const struct group_variable *group, size_t n)
{
    for (size_t i = 0; i < command->n_env; i++) {
        const char *name = command->env[i].name;
        bool ours = strncmp(name, OWN_PREFIX, sizeof OWN_PREFIX - 1) == 0;

        for (size_t k = 0; k < n && !ours; k++)
            ours = strcmp(group[k].name, name) == 0 && !group_variable_is_default(name);
        if (!ours)
            json_member(j, name, command->env[i].value);
    }
    for (size_t k = 0; k < n; k++)
        if (!group_variable_is_default(group[k].name) || !job_sets(command, group[k].name))
            json_string(j, group[k].name, group[k].value);
}

static bool overlaps(const struct deployment *t, uint32_t parallelism, uint32_t subtask)
{
    uint32_t first, last;

    return pliant_key_group_range(t->max_parallelism, parallelism, subtask, &first, &last) == 0 &&
           first <= t->last && last >= t->first;
}

static struct old_parts old_parts(struct daemon *d, const struct deployment *t)
{
    struct old_parts old = {0};

    if (*t->checkpoint)
        old.n = checkpoints_parallelism(d, t->job, t->restore, t->task.vertex);
    old.first = old.end = (uint32_t)((uint64_t)t->first * old.n / t->max_parallelism);
    while (old.end < old.n && overlaps(t, old.n, old.end))
        old.end++;
    return old;
}

/* Had all of them finished before the checkpoint? Then there is nothing left to do for this one,
 * unless it has to write its result again. */
static bool had_finished(struct daemon *d, const struct deployment *t)
{
    if (results_written_by(t->job, t->task.vertex))
        return false;
    for (uint32_t i = t->old.first; i < t->old.end; i++)
        if (checkpoints_has_part(d, t->job, t->restore, t->task.vertex, i))
            return false;
    return t->old.end > t->old.first;
}

/* The parts that this subtask must read: a vertex's parts are in the order of their key groups. */
static void restore_variable(struct daemon *d, const struct deployment *t, struct json *j)
{
    const char *colon = "";
    char *paths = NULL;
    size_t size = 0;
    FILE *out = need(open_memstream(&paths, &size));

    for (uint32_t i = t->old.first; i < t->old.end; i++) {
        if (!checkpoints_has_part(d, t->job, t->restore, t->task.vertex, i))
            continue; /* it had finished */
        fprintf(out, "%s%s/%s/%" PRIu32 "-%" PRIu32, colon, t->checkpoint, t->vertex, i, t->old.n);
        colon = ":";
    }
    need(fclose(out) == 0 ? paths : NULL);
    json_string(j, "PLIANT_RESTORE", paths);
    free(paths);
}

/* Which part of which vertex. */
static void graph_variables(struct daemon *d, const struct deployment *t, struct json *j)
{
    char groups[32];

    text_variable(j, "PLIANT_VERTEX", t->vertex);
    count_variable(j, "PLIANT_SUBTASK", t->task.subtask);
    count_variable(j, "PLIANT_PARALLELISM", t->parallelism);
    count_variable(j, "PLIANT_MAX_PARALLELISM", t->max_parallelism);
    snprintf(groups, sizeof groups, "%" PRIu32 "-%" PRIu32, t->first, t->last);
    text_variable(j, "PLIANT_KEY_GROUPS", groups);
    restore_variable(d, t, j);
}

static void variables(struct daemon *d, const struct deployment *t, struct json *j)
{
    const struct job_command *command = &t->job->spec.vertices[t->task.vertex.v - 1].command;
    struct group_variable group[GROUP_VARIABLES_MAX];
    size_t n = t->job->group ? group_environment(t->job, &t->task, t->node, group) : 0;

    json_begin(j, "env", '{');
    job_variables(j, command, group, n);
    text_variable(j, "PLIANT_JOB_ID", t->job->id);
    text_variable(j, "PLIANT_JOB_NAME", t->job->name);
    text_variable(j, "PLIANT_NODE_ID", t->node->name);
    count_variable(j, "PLIANT_SLOT", t->slot);
    count_variable(j, "PLIANT_ATTEMPT",
                   t->job->group ? pliant_group_attempt(t->job->sched) : t->task.attempt);
    text_variable(j, "PLIANT_CHECKPOINT_DIR", t->checkpoint);
    if (t->job->group)
        text_variable(j, "PLIANT_RUN_DIR", group_run_dir(t->job));
    else
        graph_variables(d, t, j);
    json_end(j, '}');
}

/* ---- who else there is ---------------------------------------------------------------------- */

static void write_peer(struct daemon *d, struct daemon_job *job, pliant_vertex_id vertex,
                       uint32_t subtask, struct json *j)
{
    struct pliant_task_info info;
    const char *name = "";
    struct daemon_node *node;

    if (pliant_task_info(job->sched, vertex, subtask, &info))
        name = pliant_node_name(job->sched, pliant_slot_node(job->sched, info.slot));
    node = *name ? node_find(d, name) : NULL;
    json_begin(j, NULL, '{');
    json_string(j, "vertex", pliant_job_vertex_name(job->spec.job, vertex));
    json_uint(j, "subtask", subtask);
    json_string(j, "node", name);
    json_string(j, "address", node && node->address ? node->address : "");
    json_end(j, '}');
}

/* The same for all tasks that are deployed in a step, so it is made once. */
static const struct json *peers(struct daemon *d, struct daemon_job *job)
{
    struct deploying *g = d->deploying;

    if (g->peers_of == job && g->peers_step == job->n_steps)
        return &g->peers;
    g->peers_of = job;
    g->peers_step = job->n_steps;
    json_reset(&g->peers);
    json_begin(&g->peers, NULL, '[');
    for (uint32_t v = 1; v <= pliant_job_vertices(job->spec.job); v++)
        for (uint32_t i = 0; i < pliant_parallelism(job->sched, (pliant_vertex_id){v}); i++)
            write_peer(d, job, (pliant_vertex_id){v}, i, &g->peers);
    json_end(&g->peers, ']');
    need(g->peers.error ? NULL : g);
    return &g->peers;
}

/* Once a message, whatever the number of tasks in it. */
static void gather_peers(struct daemon *d, struct daemon_node *node, struct daemon_job *job)
{
    struct pliant_counts counts;
    const struct json *all;
    struct json j;

    if (job->group || (node->peers_of == job && node->peers_step == job->n_steps))
        return;
    pliant_counts(job->sched, &counts);
    if (counts.tasks > PEERS_MAX)
        return;
    if (node->peers_of)
        send_gathered(d, node);
    all = peers(d, job);
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_raw(&j, job->id, all->v, all->n);
    json_end(&j, '}');
    need(j.error == 0 && vec_room(NULL, &node->peers, j.n) ? node : NULL);
    memcpy(node->peers.v, j.v, j.n);
    node->peers.n = j.n;
    json_free(&j);
    node->peers_of = job;
    node->peers_step = job->n_steps;
}

/* ---- deploying ------------------------------------------------------------------------------ */

static void write_command(const struct job_command *command, struct json *j)
{
    json_begin(j, "command", '[');
    for (size_t i = 0; i < command->argc; i++)
        json_string(j, NULL, command->argv[i]);
    json_end(j, ']');
    json_string(j, "cwd", command->cwd ? command->cwd : "");
}

static void write_deployment(struct daemon *d, const struct deployment *t)
{
    struct daemon_job *job = t->job;
    struct json *j = element(d, job->id, t->vertex, t->task.subtask, t->task.attempt);

    json_uint(j, "slot", t->slot);
    json_string(j, "name", job->name);
    write_command(&job->spec.vertices[t->task.vertex.v - 1].command, j);
    variables(d, t, j);
    json_string(j, "restore", t->checkpoint);
    json_int(j, "stop_timeout_ms", job_stop_timeout_ms(job));
    json_bool(j, "group", job->group != NULL);
    if (job->config->group.virtual_local_rank && job->group)
        json_bool(j, "one_device", true);
    if (job->group) {
        json_int(j, "health_check_interval_ms", job->config->group.health_check_interval_ms);
        json_int(j, "health_check_timeout_ms", job->config->group.health_check_timeout_ms);
    }
    json_uint(j, "parallelism", t->parallelism);
    json_string(j, "checkpoint_root", job->group ? group_run_dir(job) : "");
    results_write_deployment(d, job, &t->task, j);
    json_end(j, '}');
}

static void start(struct daemon *d, const struct deployment *t)
{
    if (t->node->state != NODE_UP)
        return; /* its HELLO will not name the task: then it is deployed */
    if (t->node->stop.n > 0)
        send_gathered(d, t->node); /* what is to make room is told first */
    gather_peers(d, t->node, t->job);
    write_deployment(d, t);
    gather(d, t->node, &t->node->deploy);
}

static bool find_place(struct daemon *d, struct daemon_job *job, pliant_slot_id slot,
                       struct deployment *t)
{
    pliant_node_id id = pliant_slot_node(job->sched, slot);

    t->node = node_find(d, pliant_node_name(job->sched, id));
    if (!t->node || job_incarnation(job, t->node) != pliant_node_incarnation(job->sched, id))
        return false;
    t->slot = slots_find(d, t->node, job, pliant_slot_index(job->sched, slot));
    return t->slot != UINT32_MAX;
}

void deploy_task(struct daemon *d, struct daemon_job *job, const struct pliant_task *task,
                 pliant_slot_id slot, uint64_t restore)
{
    struct deployment t = {.job = job,
                           .task = *task,
                           .vertex = pliant_job_vertex_name(job->spec.job, task->vertex),
                           .parallelism = pliant_parallelism(job->sched, task->vertex),
                           .max_parallelism =
                               pliant_job_vertex_max_parallelism(job->spec.job, task->vertex),
                           .restore = restore};
    char *of_run = job->group ? group_restore_dir(job) : NULL; /* [W-CKP-10] */
    const char *dir = of_run ? of_run : restore ? checkpoints_path(d, job, restore) : NULL;

    t.checkpoint = dir ? dir : "";
    if (find_place(d, job, slot, &t)) { /* else it is lost, and the job will hear of it */
        pliant_key_group_range(t.max_parallelism, t.parallelism, task->subtask, &t.first, &t.last);
        if (!job->group)
            t.old = old_parts(d, &t);
        if (had_finished(d, &t)) {
            job_fact(
                d, job,
                &(struct pliant_event){.kind = PLIANT_EV_TASK_FINISHED, .finished.task = *task});
        } else {
            job_task_add(job, task, t.node, t.slot)->since_unix_ms = d->clock.unix_ms;
            start(d, &t);
        }
    }
    free(of_run);
}

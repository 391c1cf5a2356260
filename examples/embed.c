/* embed.c - a toy cluster manager: libpliant schedules one job, threads are its tasks
 *
 * Nodes exist in name only; a task "on" one is a thread of this process. The main thread owns the
 * scheduler and carries out its actions, the tasks report through an inbox. A script lets a node
 * join, another one vanish, and stops the job with a savepoint. It ends by itself after about
 * three seconds, with exit code 0 if the job went through the states that it should.
 *
 *     cc -std=c17 embed.c $(pkg-config --cflags --libs pliant) -pthread
 */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <pliant/pliant.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const options[][2] = {
    {"jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout", "200 ms"},
    {"jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling", "100 ms"},
    {"execution.checkpointing.interval", "250 ms"},
    {"restart-strategy.type", "fixed-delay"},
    {"restart-strategy.fixed-delay.delay", "200 ms"},
};
static const struct pliant_vertex_spec vertices[] = {{.id = "read", .parallelism = 4},
                                                     {.id = "count", .parallelism = 4}};
static const struct pliant_edge_spec edges[] = {{.from = 0, .to = 1}};

/* What happens from outside: each once this many tasks have been running for PAUSE_MS. */
#define PAUSE_MS 400
static const struct {
    uint32_t tasks;
    struct pliant_event event;
} script[] = {
    {0, {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = "n1", .incarnation = 1, .slots = 2}}},
    {4, {.kind = PLIANT_EV_NODE_UP, .node_up = {.name = "n2", .incarnation = 1, .slots = 2}}},
    {8, {.kind = PLIANT_EV_NODE_LOST, .node = {.name = "n1", .incarnation = 1}}},
    {4, {.kind = PLIANT_EV_STOP, .savepoint = {.dir = "/savepoints"}}},
};

/* clang-format off */
static const enum pliant_state expected[] = {
    PLIANT_WAITING_FOR_RESOURCES, PLIANT_CREATING_EXECUTION_GRAPH, PLIANT_EXECUTING, /* on n1 */
    PLIANT_RESTARTING, PLIANT_CREATING_EXECUTION_GRAPH, PLIANT_EXECUTING, /* n2 came: on both */
    PLIANT_RESTARTING, PLIANT_WAITING_FOR_RESOURCES, /* n1 went, a failure: a pause, a new look */
    PLIANT_CREATING_EXECUTION_GRAPH, PLIANT_EXECUTING, /* on n2 */
    PLIANT_STOP_WITH_SAVEPOINT, PLIANT_FINISHED};
/* clang-format on */

enum order { WORK, STOP, FINISH };

struct worker { /* one attempt of one subtask */
    struct pliant_task task;
    char node[PLIANT_NAME_MAX + 1];
    enum order order;
    pthread_t thread;
};

/* One lock for all that follows; who waits for `changed` lets it go. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static struct pliant_event inbox[64];
static size_t inbox_first, inbox_n;
static struct worker workers[64];
static size_t n_workers, n_played, n_seen;
static enum pliant_state seen[COUNT(expected) + 1];
static struct pliant_counts counts;
static int64_t zero_ms, quiet_since_ms; /* since then as many tasks have been running as now */

/* ---- time ------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 - zero_ms;
}

static void wait_until(int64_t at_ms)
{
    int64_t ms = at_ms + zero_ms;
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    pthread_cond_timedwait(&changed, &lock, &t);
}

#define SAY(...) (printf("%6.3f  ", (double)now_ms() / 1000), printf(__VA_ARGS__))

/* ---- tasks ------------------------------------------------------------------------------ */

static void post(struct pliant_event event)
{
    assert(inbox_n < COUNT(inbox));
    inbox[(inbox_first + inbox_n++) % COUNT(inbox)] = event;
    pthread_cond_broadcast(&changed);
}

static void *run_task(void *arg)
{
    struct worker *w = arg;
    enum pliant_event_kind end;

    pthread_mutex_lock(&lock);
    post((struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING, .task = w->task});
    while (w->order == WORK)
        wait_until(now_ms() + 20); /* a real task works here */
    end = w->order == FINISH ? PLIANT_EV_TASK_FINISHED : PLIANT_EV_TASK_CANCELED;
    post((struct pliant_event){.kind = end, .task = w->task});
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void start_task(struct pliant_task task, const char *node)
{
    struct worker *w = &workers[n_workers];

    assert(n_workers < COUNT(workers));
    *w = (struct worker){.task = task};
    snprintf(w->node, sizeof w->node, "%s", node);
    SAY("    start %u.%u, attempt %u, on %s\n", task.vertex.v, task.subtask, task.attempt, node);
    if (pthread_create(&w->thread, NULL, run_task, w) == 0)
        n_workers++;
    else
        post((struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                   .failure = {task, true, "no thread for it"}});
}

/* To one task, to all on a node, or to all. */
static void give_order(enum order order, const struct pliant_task *task, const char *node)
{
    for (size_t i = 0; i < n_workers; i++) {
        struct worker *w = &workers[i];

        if (w->order == WORK && (!node || strcmp(w->node, node) == 0) &&
            (!task || memcmp(&w->task, task, sizeof *task) == 0))
            w->order = order;
    }
    pthread_cond_broadcast(&changed);
}

/* ---- actions ---------------------------------------------------------------------------- */

/* Tasks without state have nothing to write down: it is done at once. */
static void take_checkpoint(const struct pliant_action *act)
{
    bool savepoint = act->flag[1];

    SAY("    %s %u\n", savepoint ? "savepoint" : "checkpoint", (unsigned)act->checkpoint.id);
    post((struct pliant_event){
        .kind = savepoint ? PLIANT_EV_SAVEPOINT_COMPLETED : PLIANT_EV_CHECKPOINT_COMPLETED,
        .checkpoint = {.id = act->checkpoint.id, .path = savepoint ? "/savepoints/1" : NULL}});
    if (act->flag[0] == PLIANT_CHECKPOINT_STOP)
        give_order(FINISH, NULL, NULL);
}

static void execute(const struct pliant_sched *s, const struct pliant_action *act)
{
    switch (act->kind) {
    case PLIANT_ACT_RESERVE: /* nobody else wants our slots */
        post((struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED,
                                   .plan.plan = act->reserve.plan});
        return;
    case PLIANT_ACT_DEPLOY:
        start_task(act->deploy.task, pliant_node_name(s, pliant_slot_node(s, act->deploy.slot)));
        return;
    case PLIANT_ACT_CANCEL:
        give_order(STOP, &act->task, NULL);
        return;
    case PLIANT_ACT_CHECKPOINT:
        take_checkpoint(act);
        return;
    case PLIANT_ACT_GIVE_UP_NODE:
        give_order(STOP, NULL, pliant_node_name(s, act->node.node));
        return;
    case PLIANT_ACT_STATE_CHANGED:
        SAY("%s > %s: %s\n", pliant_state_name(act->flag[0]), pliant_state_name(act->flag[1]),
            pliant_reason_name(act->flag[2]));
        if (n_seen < COUNT(seen))
            seen[n_seen++] = act->flag[1];
        return;
    case PLIANT_ACT_SAVEPOINT_ENDED:
        SAY("    saved to %s\n", act->savepoint.path ? act->savepoint.path : "nowhere");
        return;
    case PLIANT_ACT_REFUSED:
        SAY("    refused: %s\n", pliant_reason_name(act->flag[0]));
        return;
    default: /* DECLARE is for an autoscaler, RELEASE for other jobs, the rest for logs */
        return;
    }
}

/* ---- the loop --------------------------------------------------------------------------- */

/* What a task reports, what the script plays, or only that time has passed. */
static struct pliant_event next_event(const struct pliant_sched *s)
{
    for (;;) {
        bool plays = n_played < COUNT(script) && counts.tasks_running == script[n_played].tasks;
        int64_t now = now_ms(), play_at = plays ? quiet_since_ms + PAUSE_MS : PLIANT_NEVER;
        int64_t due = pliant_next_deadline(s);

        if (inbox_n > 0) {
            inbox_n--;
            return inbox[inbox_first++ % COUNT(inbox)];
        }
        if (play_at <= now)
            return script[n_played++].event;
        if (due <= now)
            return (struct pliant_event){.kind = PLIANT_EV_TICK};
        due = due < play_at ? due : play_at;
        wait_until(due < now + 1000 ? due : now + 1000);
    }
}

/* One event in, its actions out. */
static int step(struct pliant_sched *s, const struct pliant_event *event)
{
    struct pliant_actions acts;
    uint32_t running = counts.tasks_running;
    int error;

    if (event->kind == PLIANT_EV_NODE_UP || event->kind == PLIANT_EV_NODE_LOST)
        SAY("%s %s\n", pliant_event_name(event->kind), event->node.name);
    if (event->kind == PLIANT_EV_NODE_LOST) /* what its tasks still say is about the past */
        give_order(STOP, NULL, event->node.name);
    error = pliant_step(s, now_ms(), event, &acts); /* a journal would be written before */
    for (size_t i = 0; i < acts.n; i++)
        execute(s, &acts.v[i]);
    pliant_counts(s, &counts);
    if (counts.tasks_running != running)
        quiet_since_ms = now_ms();
    return error;
}

static int run(struct pliant_sched *s)
{
    struct pliant_event event = {.kind = PLIANT_EV_START};
    int error = step(s, &event);

    while (error == 0 && pliant_state(s) != PLIANT_FINISHED && now_ms() < 60000) {
        event = next_event(s);
        error = step(s, &event);
    }
    return error;
}

/* Errors of any call: *err says what is wrong. */
static int make(struct pliant_job **job, struct pliant_sched **s, struct pliant_error *err)
{
    struct pliant_job_spec spec = {"embedded", vertices, COUNT(vertices), edges, COUNT(edges)};
    struct pliant_config cfg;
    int error = 0;

    pliant_config_init(&cfg);
    for (size_t i = 0; error == 0 && i < COUNT(options); i++)
        error = pliant_config_set(&cfg, options[i][0], options[i][1], err);
    if (error == 0)
        error = pliant_job_new(&spec, NULL, job, err);
    return error == 0 ? pliant_sched_new(&cfg, *job, s, err) : error;
}

int main(void)
{
    struct pliant_job *job = NULL;
    struct pliant_sched *s = NULL;
    struct pliant_error err = {.text = "no memory"};
    pthread_condattr_t monotonic;
    bool good;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &monotonic);
    zero_ms = now_ms();
    pthread_mutex_lock(&lock);
    if (make(&job, &s, &err) < 0)
        fprintf(stderr, "embed: %s\n", err.text);
    else if (run(s) < 0)
        fprintf(stderr, "embed: the scheduler has no memory\n");
    give_order(STOP, NULL, NULL);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < n_workers; i++)
        pthread_join(workers[i].thread, NULL);
    good = n_seen == COUNT(expected) && memcmp(seen, expected, sizeof expected) == 0;
    printf("%s\n", good ? "the job went the way that it should" : "the job went astray");
    pliant_sched_destroy(&s);
    pliant_job_destroy(&job);
    return good ? 0 : 1;
}

/* embed.c - a toy cluster manager: libpliant schedules one job, threads are its tasks
 *
 * The main thread owns the scheduler, tells it what happens and does what it asks for. A task is a
 * thread that runs until it is told to stop and reports through a pipe; nodes exist in name only.
 * A script lets them join and vanish. Ends with 0 if the job went through the expected states.
 *
 *     cc -std=c17 embed.c $(pkg-config --cflags --libs pliant) -pthread
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pliant/pliant.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct pliant_vertex_spec vertex = {.id = "count", .parallelism = 4};
static const struct pliant_job_spec spec = {
    .name = "embedded", .vertices = &vertex, .n_vertices = 1};
static const char *const options[][2] = {
    {"jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout", "100 ms"},
    {"jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling", "100 ms"},
    {"execution.checkpointing.interval", "150 ms"},
};

#define PAUSE_MS 200
static const struct { /* what happens from outside, when so many tasks have run for a while */
    uint32_t tasks;
    const char *what;
    struct pliant_event event;
} script[] = {
    {0, "submitted", {.kind = PLIANT_EV_START}},
    {0, "n1 joins", {PLIANT_EV_NODE_UP, .node_up = {"n1", .incarnation = 1, .slots = 2}}},
    {2, "n2 joins", {PLIANT_EV_NODE_UP, .node_up = {"n2", .incarnation = 1, .slots = 2}}},
    {4, "n1 is gone", {PLIANT_EV_NODE_LOST, .node = {"n1", .incarnation = 1}}},
    {2, "enough", {.kind = PLIANT_EV_CANCEL}},
};
static const char expected[] =
    " WaitingForResources CreatingExecutionGraph Executing"            /* on n1 */
    " Restarting CreatingExecutionGraph Executing"                     /* on both */
    " Restarting WaitingForResources CreatingExecutionGraph Executing" /* on n2 */
    " Canceling Finished";
static char seen[sizeof expected + PLIANT_NAME_MAX];

static struct worker { /* one attempt of one subtask */
    struct pliant_task task;
    char node[PLIANT_NAME_MAX + 1];
    pthread_t thread;
    atomic_bool stop;
} workers[64];
static size_t n_workers, n_played;
static int queue[2];                /* a pipe of events: all write, the main thread reads */
static int64_t zero_ms, changed_ms; /* when the program began, when the state last changed */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 - zero_ms;
}

#define SAY(...) (printf("%6.3f  ", (double)now_ms() / 1000), printf(__VA_ARGS__))

static void post(struct pliant_event event)
{
    if (write(queue[1], &event, sizeof event) != sizeof event)
        abort(); /* so small a piece is written whole */
}

static void *run_task(void *arg)
{
    struct worker *w = arg;

    post((struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING, .task = w->task});
    while (!w->stop)
        poll(NULL, 0, 10); /* a real task works here */
    post((struct pliant_event){.kind = PLIANT_EV_TASK_CANCELED, .task = w->task});
    return NULL;
}

static void start_task(struct pliant_task task, const char *node)
{
    struct worker *w = &workers[n_workers];

    SAY("    start subtask %u, attempt %u, on %s\n", task.subtask, task.attempt, node);
    w->task = task;
    snprintf(w->node, sizeof w->node, "%s", node);
    if (n_workers < COUNT(workers) - 1 && pthread_create(&w->thread, NULL, run_task, w) == 0)
        n_workers++;
    else
        post((struct pliant_event){
            PLIANT_EV_TASK_FAILED,
            .failure = {.task = task, .recoverable = true, .cause = "no thread"}});
}

/* One task, or all on a node, or all. */
static void stop_tasks(const struct pliant_task *task, const char *node)
{
    for (struct worker *w = workers; w < workers + n_workers; w++)
        if ((!task || memcmp(&w->task, task, sizeof *task) == 0) &&
            (!node || strcmp(w->node, node) == 0))
            w->stop = true;
}

static void execute(const struct pliant_sched *s, const struct pliant_action *act)
{
    switch (act->kind) {
    case PLIANT_ACT_RESERVE: /* nobody else wants our slots */
        post((struct pliant_event){PLIANT_EV_SLOTS_RESERVED, .plan.plan = act->reserve.plan});
        return;
    case PLIANT_ACT_DEPLOY:
        start_task(act->deploy.task, pliant_node_name(s, pliant_slot_node(s, act->deploy.slot)));
        return;
    case PLIANT_ACT_CANCEL:
        stop_tasks(&act->task, NULL);
        return;
    case PLIANT_ACT_CHECKPOINT: /* our tasks have nothing to write down: done at once */
        post((struct pliant_event){PLIANT_EV_CHECKPOINT_COMPLETED,
                                   .checkpoint.id = act->checkpoint.id});
        return;
    case PLIANT_ACT_STATE_CHANGED:
        SAY("%s > %s: %s\n", pliant_state_name(act->flag[0]), pliant_state_name(act->flag[1]),
            pliant_reason_name(act->flag[2]));
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), " %s",
                 pliant_state_name(act->flag[1]));
        changed_ms = now_ms();
        return;
    default: /* DECLARE is for an autoscaler, RELEASE for other jobs, the rest for logs */
        return;
    }
}

/* What the script plays, what a task reports, or only that time has passed. */
static struct pliant_event next_event(const struct pliant_sched *s)
{
    int64_t now = now_ms(), until = pliant_next_deadline(s), play_at = PLIANT_NEVER;
    struct pollfd reports = {.fd = queue[0], .events = POLLIN};
    struct pliant_event event = {.kind = PLIANT_EV_TICK}; /* one too early does nothing */
    struct pliant_counts counts;

    pliant_counts(s, &counts);
    if (n_played < COUNT(script) && counts.tasks_running == script[n_played].tasks)
        play_at = changed_ms + PAUSE_MS;
    if (play_at <= now) {
        SAY("%s\n", script[n_played].what);
        return script[n_played++].event;
    }
    until = play_at < until ? play_at : until;
    until = until < now + 1000 ? until : now + 1000;
    if (poll(&reports, 1, until > now ? (int)(until - now) : 0) == 1 &&
        read(queue[0], &event, sizeof event) != sizeof event)
        abort();
    return event;
}

static int step(struct pliant_sched *s, struct pliant_event event)
{
    struct pliant_actions acts;
    int error;

    if (event.kind == PLIANT_EV_NODE_LOST)
        stop_tasks(NULL, event.node.name);           /* they are gone, too */
    error = pliant_step(s, now_ms(), &event, &acts); /* a journal would be written before */
    for (size_t i = 0; i < acts.n; i++)
        execute(s, &acts.v[i]);
    return error;
}

int main(void)
{
    struct pliant_config cfg;
    struct pliant_job *job = NULL;
    struct pliant_sched *s = NULL;
    struct pliant_error err = {.text = "no memory"};
    int error = pipe(queue);

    zero_ms = now_ms();
    pliant_config_init(&cfg);
    for (size_t i = 0; error == 0 && i < COUNT(options); i++)
        error = pliant_config_set(&cfg, options[i][0], options[i][1], &err);
    if (error == 0)
        error = pliant_job_new(&spec, NULL, &job, &err);
    if (error == 0)
        error = pliant_sched_new(&cfg, job, &s, &err);
    while (error == 0 && pliant_state(s) != PLIANT_FINISHED && now_ms() < 60000)
        error = step(s, next_event(s));
    if (error < 0)
        fprintf(stderr, "embed: %s\n", err.text);

    stop_tasks(NULL, NULL);
    for (size_t i = 0; i < n_workers; i++)
        pthread_join(workers[i].thread, NULL);
    pliant_sched_destroy(&s);
    pliant_job_destroy(&job);
    printf("the job went %s\n", strcmp(seen, expected) == 0 ? "the way that it should" : "astray");
    return strcmp(seen, expected) == 0 ? 0 : 1;
}

/* runs.c - whole runs of jobs of many tasks over few slots, by the default scheduler and
 * AdaptiveBatch; how much memory they take; a node that is lost in the middle
 *
 * The host has no delay: a task that is deployed runs, and ends in the next step. So at each moment
 * nearly all tasks wait for their inputs or for slots; what a task costs must not grow with them.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include <pliant/pliant.h>

enum { STAGES = 10, SLOTS_OF_NODE = 10, ROUNDS = 3, FAILS_OF = 100, LOSSES = 5 };

struct kind {
    const char *name;
    enum pliant_scheduler scheduler;
    enum pliant_pattern pattern;
    bool pipelined; /* every other edge is; AdaptiveBatch has none such */
    bool decides;   /* parallelism follows from the data */
    bool fails;     /* one of 100 tasks, at its first attempt */
    bool passes_by; /* regions that need two slots are first in line, single tasks pass them by */
    bool one_waits; /* all but the first stage are one region */
};

static const struct kind kinds[] = {
    {.name = "run_default", .scheduler = PLIANT_SCHEDULER_DEFAULT, .pattern = PLIANT_POINTWISE},
    {.name = "run_default_pairs",
     .scheduler = PLIANT_SCHEDULER_DEFAULT,
     .pattern = PLIANT_POINTWISE,
     .pipelined = true},
    {.name = "run_default_all_to_all", .scheduler = PLIANT_SCHEDULER_DEFAULT},
    {.name = "run_default_failures",
     .scheduler = PLIANT_SCHEDULER_DEFAULT,
     .pattern = PLIANT_POINTWISE,
     .fails = true},
    {.name = "run_default_passing_by",
     .scheduler = PLIANT_SCHEDULER_DEFAULT,
     .pattern = PLIANT_POINTWISE,
     .passes_by = true},
    {.name = "run_batch",
     .scheduler = PLIANT_SCHEDULER_ADAPTIVE_BATCH,
     .pattern = PLIANT_POINTWISE},
    {.name = "run_batch_decided",
     .scheduler = PLIANT_SCHEDULER_ADAPTIVE_BATCH,
     .pattern = PLIANT_POINTWISE,
     .decides = true},
    {.name = "run_batch_failures",
     .scheduler = PLIANT_SCHEDULER_ADAPTIVE_BATCH,
     .pattern = PLIANT_POINTWISE,
     .fails = true},
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

struct run {
    const struct kind *kind;
    struct pliant_job *job;
    struct pliant_sched *s;
    int64_t now_ms;
    uint32_t width; /* tasks of a stage */
    uint64_t bytes; /* what each of them writes: what the next one's task shall read */
    /* Deployed and not over yet, in a ring */
    struct pliant_task *queue;
    uint64_t first, end, mask;
    uint64_t n_finished;
};

/* ---- a job ------------------------------------------------------------------------------ */

static struct pliant_edge_spec edge_of(const struct kind *kind, uint32_t from)
{
    bool pipelined =
        (kind->pipelined && from % 2 == 0) || (kind->passes_by && from == 0) || kind->one_waits;

    return (struct pliant_edge_spec){.from = from,
                                     .to = from + 1,
                                     .pattern = kind->pattern,
                                     .exchange = pipelined ? PLIANT_PIPELINED : PLIANT_BLOCKING};
}

static void make_job(struct run *r, const struct pliant_alloc *alloc)
{
    static const char *const names[STAGES] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    struct pliant_vertex_spec v[STAGES];
    struct pliant_edge_spec e[STAGES - 1];
    const struct kind *kind = r->kind;
    size_t n_edges = 0;

    for (uint32_t i = 0; i < STAGES; i++)
        v[i] = (struct pliant_vertex_spec){.id = names[i],
                                           .parallelism = i > 0 && kind->decides ? 0 : r->width,
                                           .max_parallelism = i > 0 && kind->decides ? r->width : 0,
                                           .slot_sharing_group = kind->passes_by ? names[i] : NULL};
    for (uint32_t i = 0; i + 1 < STAGES; i++)
        if (kind->passes_by ? i == 0 || i + 2 == STAGES : i > 0 || !kind->one_waits)
            e[n_edges++] = edge_of(kind, i);
    if (pliant_job_new(
            &(struct pliant_job_spec){
                .vertices = v, .n_vertices = STAGES, .edges = e, .n_edges = n_edges},
            alloc, &r->job, NULL) < 0)
        abort();
}

static void make_run(struct run *r, const struct kind *kind, uint32_t tasks,
                     const struct pliant_alloc *alloc)
{
    struct pliant_config cfg;

    *r = (struct run){.kind = kind, .now_ms = 1, .width = tasks / STAGES, .mask = 1};
    while (r->mask < tasks)
        r->mask = 2 * r->mask + 1;
    r->queue = bench_alloc(r->mask + 1, sizeof *r->queue);
    make_job(r, alloc);
    pliant_config_init(&cfg);
    cfg.alloc = alloc;
    cfg.scheduler = kind->scheduler;
    cfg.restart.kind = PLIANT_RESTART_FIXED_DELAY;
    cfg.restart.fixed.attempts = tasks;
    cfg.restart.fixed.delay_ms = 0;
    cfg.batch.max = r->width;
    r->bytes = (uint64_t)cfg.batch.volume;
    if (pliant_sched_new(&cfg, r->job, &r->s, NULL) < 0)
        abort();
}

static void free_run(struct run *r)
{
    pliant_sched_destroy(&r->s);
    pliant_job_destroy(&r->job);
    free(r->queue);
}

/* ---- a host ----------------------------------------------------------------------------- */

static void step(struct run *r, struct pliant_event ev)
{
    struct pliant_actions acts;

    if (pliant_step(r->s, r->now_ms, &ev, &acts) < 0)
        abort();
    for (size_t i = 0; i < acts.n; i++)
        if (acts.v[i].kind == PLIANT_ACT_DEPLOY)
            r->queue[r->end++ & r->mask] = acts.v[i].deploy.task;
}

struct name {
    char text[16];
};

static struct name node_name(uint32_t i)
{
    struct name name;

    snprintf(name.text, sizeof name.text, "n%u", i);
    return name;
}

static void join_one(struct run *r, uint32_t i, uint64_t incarnation)
{
    struct name name = node_name(i);

    step(r,
         (struct pliant_event){
             .kind = PLIANT_EV_NODE_UP,
             .node_up = {.name = name.text, .incarnation = incarnation, .slots = SLOTS_OF_NODE}});
}

static void join(struct run *r, uint32_t slots)
{
    for (uint32_t i = 0; i < slots / SLOTS_OF_NODE; i++)
        join_one(r, i, 1);
}

static void lose(struct run *r, uint32_t i)
{
    struct name name = node_name(i);

    step(r, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST, .node = {.name = name.text}});
}

static void finish(struct run *r, struct pliant_task task)
{
    struct pliant_output output = {.edge = task.vertex.v - 1, .n = 1, .bytes = &r->bytes};
    struct pliant_event ev = {.kind = PLIANT_EV_TASK_FINISHED, .finished.task = task};

    if (r->kind->scheduler == PLIANT_SCHEDULER_ADAPTIVE_BATCH && task.vertex.v < STAGES) {
        ev.finished.outputs = &output;
        ev.finished.n_outputs = 1;
    }
    step(r, ev);
    r->n_finished++;
}

static void take_one(struct run *r)
{
    struct pliant_task task = r->queue[r->first++ & r->mask];

    r->now_ms++;
    step(r, (struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING, .task = task});
    if (r->kind->fails && task.attempt == 1 && task.subtask % FAILS_OF == FAILS_OF / 2)
        step(r, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                      .failure = {.task = task, .recoverable = true}});
    else
        finish(r, task);
}

static void take_all(struct run *r, uint64_t until)
{
    while (r->n_finished < until && r->first < r->end)
        take_one(r);
}

static void start(struct run *r, uint32_t slots)
{
    join(r, slots);
    step(r, (struct pliant_event){.kind = PLIANT_EV_START});
}

/* ---- figures ---------------------------------------------------------------------------- */

static double run_once(const struct kind *kind, uint32_t tasks, uint32_t slots)
{
    struct run r;
    uint64_t began;
    double ns;

    make_run(&r, kind, tasks, NULL);
    began = bench_cpu_ns();
    start(&r, slots);
    take_all(&r, UINT64_MAX);
    ns = (double)(bench_cpu_ns() - began);
    if (pliant_state(r.s) != PLIANT_FINISHED || r.n_finished < tasks) {
        fprintf(stderr, "bench: %s with %u slots: %u tasks, %llu finished\n", kind->name, slots,
                tasks, (unsigned long long)r.n_finished);
        abort();
    }
    free_run(&r);
    return ns;
}

static void measure(const struct kind *kind, uint32_t tasks, uint32_t slots)
{
    double best = run_once(kind, tasks, slots);

    for (int i = 1; i < ROUNDS; i++) {
        double ns = run_once(kind, tasks, slots);

        best = ns < best ? ns : best;
    }
    bench_report_growth(kind->name, slots, tasks, best);
}

void bench_runs(void)
{
    for (size_t k = 0; k < N_KINDS; k++)
        for (uint32_t slots = 10; slots <= 1000; slots *= 100)
            for (uint32_t tasks = 1000; tasks <= 100000; tasks *= 10)
                measure(&kinds[k], tasks, slots);
}

/* Half of the tasks are over. */
void bench_runs_memory(void)
{
    enum { TASKS = 100000, SLOTS = 1000 };

    for (size_t k = 0; k < N_KINDS; k++) {
        struct bench_counted counted;
        struct run r;
        uint64_t bytes;

        bench_count_bytes(&counted);
        make_run(&r, &kinds[k], TASKS, &counted.alloc);
        start(&r, SLOTS);
        take_all(&r, TASKS / 2);
        bytes = counted.bytes;
        take_all(&r, UINT64_MAX);
        bench_report_bytes(kinds[k].name, SLOTS, STAGES, 1, bytes, counted.peak);
        free_run(&r);
    }
}

/* Each task of the first stage has finished in a slot of its own, where one of the second runs now.
 * With a node go 10 results and 10 tasks. */
static double lose_nodes(const struct kind *kind, uint32_t tasks)
{
    struct run r;
    uint64_t began;
    double ns;

    make_run(&r, kind, tasks, NULL);
    start(&r, r.width);
    take_all(&r, r.width);
    r.now_ms++;
    began = bench_cpu_ns();
    for (uint32_t i = 0; i < LOSSES; i++)
        lose(&r, i * (r.width / SLOTS_OF_NODE) / LOSSES);
    ns = (double)(bench_cpu_ns() - began) / LOSSES;
    free_run(&r);
    return ns;
}

/* A region of nine tenths of the job waits for twice the slots that are there, while single tasks
 * come and go in the slots of its units. 10 units have no slot any more when a node goes, and 10
 * others get one when it comes back. */
static double come_and_go(const struct kind *kind, uint32_t tasks)
{
    struct run r;
    uint64_t began;
    double ns;

    make_run(&r, kind, tasks, NULL);
    start(&r, r.width / 2);
    began = bench_cpu_ns();
    for (uint32_t i = 0; i < LOSSES; i++) {
        r.now_ms++;
        lose(&r, i);
        join_one(&r, i, 2);
    }
    ns = (double)(bench_cpu_ns() - began) / LOSSES;
    free_run(&r);
    return ns;
}

static void measure_nodes(const struct kind *kind, double (*run)(const struct kind *, uint32_t),
                          uint32_t tasks, uint64_t n)
{
    double best = run(kind, tasks);

    for (int i = 1; i < ROUNDS; i++) {
        double ns = run(kind, tasks);

        best = ns < best ? ns : best;
    }
    bench_report_growth(kind->name, tasks, n, best);
}

void bench_node_loss(void)
{
    static const struct kind in_default = {.name = "node_loss_default",
                                           .scheduler = PLIANT_SCHEDULER_DEFAULT,
                                           .pattern = PLIANT_POINTWISE},
                             in_batch = {.name = "node_loss_batch",
                                         .scheduler = PLIANT_SCHEDULER_ADAPTIVE_BATCH,
                                         .pattern = PLIANT_POINTWISE},
                             to_all = {.name = "node_loss_all_to_all",
                                       .scheduler = PLIANT_SCHEDULER_DEFAULT};

    for (uint32_t tasks = 1000; tasks <= 100000; tasks *= 10) {
        measure_nodes(&in_default, lose_nodes, tasks, 2 * SLOTS_OF_NODE);
        measure_nodes(&in_batch, lose_nodes, tasks, 2 * SLOTS_OF_NODE);
        measure_nodes(&to_all, lose_nodes, tasks,
                      tasks / STAGES); /* all of the second stage restart */
    }
}

void bench_line(void)
{
    static const struct kind waits = {
        .name = "line", .scheduler = PLIANT_SCHEDULER_DEFAULT, .one_waits = true};

    for (uint32_t tasks = 1000; tasks <= 100000; tasks *= 10)
        measure_nodes(&waits, come_and_go, tasks, 2 * SLOTS_OF_NODE);
}

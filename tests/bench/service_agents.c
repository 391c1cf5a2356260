/* service_agents.c - a real pliantd and a crowd of played agents, beside a bare ROUTER loop
 *
 *     {"bench":"service_beats","agents":1000,"messages":...,"seconds":...,"floor_seconds":...,
 *      "ratio":...,"cpu_seconds":...,"floor_cpu_seconds":...,"cpu_ratio":...,"calibration_ns":...}
 *     {"bench":"service_many","agents":10000,"seconds":...,"cpu_share":...}
 *     {"bench":"service_states","updates":30000,"per_second":...,"commits":...,"turns":...,...}
 *     {"bench":"service_deploy","agents":1000,"tasks":10000,"seconds":...,"rss_mib":...,...}
 *     {"bench":"service_adopt","agents":100,"tasks":1000,"seconds":...,"start_seconds":...}
 *
 * The floor is a process that receives the same frames from the same crowd and drops them, in the
 * same run. ratio: our rate over that of the floor; cpu_ratio: the same by processor time of the
 * receiving process, which shows on a busy machine. Of several runs the best counts.
 */
#include "bench.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "crowd.h"
#include "service_daemon.h"

enum { RUNS = 3, BEATS_A_WRITE = 10, PUMP_MS = 2, GIVE_UP_S = 120 };

struct spent { /* seconds, of the clock and of the receiver's processor */
    double wall, cpu;
};

/* What a crowd says: `messages` in all, from say(). */
struct load {
    void (*say)(struct crowd *c, const struct load *l);
    uint64_t messages;
};

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: service: %s\n", what);
    exit(1);
}

static double now_s(void)
{
    return (double)bench_now_ns() / 1e9;
}

static struct spent least(struct spent a, struct spent b)
{
    return (struct spent){.wall = a.wall < b.wall ? a.wall : b.wall,
                          .cpu = a.cpu < b.cpu ? a.cpu : b.cpu};
}

/* ---- the floor ------------------------------------------------------------------------------ */

struct floor {
    pid_t pid;
    int from[2];
    char endpoint[256];
};

static void take_bare(void *socket, uint64_t n)
{
    zmq_msg_t frame;

    zmq_msg_init(&frame);
    while (n > 0) {
        must(zmq_msg_recv(&frame, socket, 0) >= 0, "receiving");
        n -= !zmq_msg_more(&frame);
    }
    zmq_msg_close(&frame);
}

/* In a process of its own: a HELLO of each agent, then so many messages. */
static void run_floor(const struct floor *f, uint64_t agents, uint64_t messages)
{
    void *context = zmq_ctx_new(), *socket;
    int queue = 1000, backlog = 4096;
    char endpoint[256] = "";
    size_t n = sizeof endpoint;

    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 100);
    socket = zmq_socket(context, ZMQ_ROUTER);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &queue, sizeof queue);
    zmq_setsockopt(socket, ZMQ_BACKLOG, &backlog, sizeof backlog);
    must(zmq_bind(socket, "tcp://127.0.0.1:*") == 0, "bind");
    must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &n) == 0, "endpoint");
    must(write(f->from[1], endpoint, sizeof endpoint) == sizeof endpoint, "pipe");
    take_bare(socket, agents);
    must(write(f->from[1], "h", 1) == 1, "pipe");
    take_bare(socket, messages);
    must(write(f->from[1], "e", 1) == 1, "pipe");
    pause();
}

static void open_floor(struct floor *f, uint64_t agents, uint64_t messages)
{
    must(pipe(f->from) == 0, "pipe");
    fflush(stdout);
    f->pid = fork();
    must(f->pid >= 0, "fork");
    if (f->pid == 0)
        run_floor(f, agents, messages);
    must(read(f->from[0], f->endpoint, sizeof f->endpoint) == sizeof f->endpoint, "pipe");
}

static void close_floor(struct floor *f)
{
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    close(f->from[0]);
    close(f->from[1]);
}

/* Let the crowd act until the floor has said so. */
static void await_floor(const struct floor *f, struct crowd *c)
{
    struct pollfd ready = {.fd = f->from[0], .events = POLLIN};
    char byte;

    do
        crowd_pump(c, 1);
    while (poll(&ready, 1, 0) == 0);
    must(read(f->from[0], &byte, 1) == 1, "pipe");
}

static struct spent floor_of(struct crowd *c, const struct load *l)
{
    struct floor f;
    struct spent start, end;

    open_floor(&f, c->n, l->messages);
    crowd_connect(c, f.endpoint);
    await_floor(&f, c);
    start = (struct spent){.wall = now_s(), .cpu = bench_cpu_seconds(f.pid)};
    l->say(c, l);
    await_floor(&f, c);
    end = (struct spent){.wall = now_s(), .cpu = bench_cpu_seconds(f.pid)};
    close_floor(&f);
    return (struct spent){.wall = end.wall - start.wall, .cpu = end.cpu - start.cpu};
}

/* ---- ours ----------------------------------------------------------------------------------- */

static void await_welcome(struct crowd *c)
{
    double until = now_s() + GIVE_UP_S;

    while (c->n_welcome < c->n) {
        must(now_s() < until, "not all agents were welcomed");
        crowd_pump(c, PUMP_MS);
    }
}

static void await_count(struct bench_daemon *d, struct crowd *c, const char *name, int64_t n)
{
    double until = now_s() + GIVE_UP_S;

    while (bench_count(d, name) < n) {
        must(now_s() < until, name);
        crowd_pump(c, PUMP_MS);
    }
}

/* Until the daemon has taken all of it in: `count` has grown by the messages. */
static struct spent ours_of(struct bench_daemon *d, struct crowd *c, const struct load *l,
                            const char *count)
{
    int64_t before = bench_count(d, count);
    struct spent start = {.wall = now_s(), .cpu = bench_cpu_seconds(d->pid)}, end;

    l->say(c, l);
    await_count(d, c, count, before + (int64_t)l->messages);
    end = (struct spent){.wall = now_s(), .cpu = bench_cpu_seconds(d->pid)};
    return (struct spent){.wall = end.wall - start.wall, .cpu = end.cpu - start.cpu};
}

static void print_ratios(struct spent ours, struct spent bare)
{
    printf("\"seconds\":%.4f,\"floor_seconds\":%.4f,\"ratio\":%.3f,\"cpu_seconds\":%.4f,"
           "\"floor_cpu_seconds\":%.4f,\"cpu_ratio\":%.3f,\"calibration_ns\":%.0f}\n",
           ours.wall, bare.wall, bare.wall / ours.wall, ours.cpu, bare.cpu, bare.cpu / ours.cpu,
           bench_calibration_ns());
    fflush(stdout);
}

/* ---- heartbeats ----------------------------------------------------------------------------- */

static void say_beats(struct crowd *c, const struct load *l)
{
    for (uint64_t k = 0; k < l->messages / c->n; k += BEATS_A_WRITE) {
        for (uint32_t i = 0; i < c->n; i++) {
            for (int b = 0; b < BEATS_A_WRITE; b++)
                crowd_say(c, i, MESSAGE_HEARTBEAT, "{}", 2);
            crowd_flush(c, i);
        }
        crowd_pump(c, 0);
    }
}

void bench_service_beats(void)
{
    const struct load l = {.say = say_beats, .messages = 200000};
    struct spent ours = {1e9, 1e9}, bare = {1e9, 1e9};
    struct bench_daemon d;
    struct crowd c;

    bench_daemon_open(&d);
    crowd_open(&c, 1000, 1);
    for (int i = 0; i < RUNS; i++) {
        bare = least(bare, floor_of(&c, &l));
        crowd_connect(&c, d.agents);
        await_welcome(&c);
        ours = least(ours, ours_of(&d, &c, &l, "received"));
    }
    printf("{\"bench\":\"service_beats\",\"agents\":%u,\"messages\":%llu,", c.n,
           (unsigned long long)l.messages);
    print_ratios(ours, bare);
    crowd_close(&c);
    bench_daemon_close(&d);
}

/* ---- 10,000 agents, a beat each 5 s --------------------------------------------------------- */

enum { MANY = 10000, MANY_S = 10, BEAT_EVERY_S = 5 };

/* As many a millisecond as it takes for each agent to beat once in BEAT_EVERY_S. */
static void beat_evenly(struct crowd *c, const struct load *l)
{
    double start = now_s();
    uint64_t said = 0;

    while (said < l->messages) {
        uint64_t due = (uint64_t)((now_s() - start) / BEAT_EVERY_S * c->n);

        for (; said < due && said < l->messages; said++) {
            crowd_say(c, (uint32_t)(said % c->n), MESSAGE_HEARTBEAT, "{}", 2);
            crowd_flush(c, (uint32_t)(said % c->n));
        }
        crowd_pump(c, 1);
    }
}

void bench_service_many(void)
{
    const struct load l = {.say = beat_evenly, .messages = MANY * MANY_S / BEAT_EVERY_S};
    struct spent ours, bare;
    struct bench_daemon d;
    struct crowd c;

    bench_daemon_open(&d);
    crowd_open(&c, MANY, 1);
    bare = floor_of(&c, &l);
    crowd_connect(&c, d.agents);
    await_welcome(&c);
    ours = ours_of(&d, &c, &l, "received");
    printf("{\"bench\":\"service_many\",\"agents\":%d,\"beat_every_s\":%d,\"cpu_share\":%.4f,"
           "\"rss_mib\":%.1f,",
           MANY, BEAT_EVERY_S, ours.cpu / ours.wall, bench_memory_mib(d.pid, "VmRSS"));
    print_ratios(ours, bare);
    crowd_close(&c);
    bench_daemon_close(&d);
}

/* ---- tasks ---------------------------------------------------------------------------------- */

/* One that starts when it has all slots. */
static void submit(struct bench_daemon *d, uint32_t tasks, char ret[33])
{
    char spec[1024];

    snprintf(spec, sizeof spec,
             "name: bench\n"
             "vertices:\n"
             "  - {id: work, parallelism: %u, max_parallelism: 32768, command: [\"/bin/true\"]}\n"
             "config:\n"
             "  jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout: 10 min\n"
             "  restart-strategy.type: none\n",
             tasks);
    bench_submit(d, spec, ret);
}

static void await_running(struct bench_daemon *d, struct crowd *c, const char *job, uint32_t tasks)
{
    double until = now_s() + GIVE_UP_S;

    while (c->n_tasks < tasks) {
        must(now_s() < until, "not all tasks were deployed");
        crowd_pump(c, PUMP_MS);
    }
    while (!c->hold && bench_running(d, job) < tasks) {
        must(now_s() < until, "not all tasks run");
        crowd_pump(c, PUMP_MS);
    }
}

static void say_running(struct crowd *c, const struct load *l)
{
    (void)l;
    crowd_tell(c, "running", NULL);
}

static void say_initializing(struct crowd *c, const struct load *l)
{
    (void)l;
    crowd_tell(c, "initializing", NULL);
}

static void say_finished(struct crowd *c, const struct load *l)
{
    (void)l;
    crowd_tell(c, "ended", "{\"how\":\"exited\",\"code\":0}");
}

enum { AGENTS = 1000, SLOTS = 10, TASKS = AGENTS * SLOTS, KINDS = 3 };

static void (*const says[KINDS])(struct crowd *c, const struct load *l) = {
    say_initializing, say_running, say_finished};

static struct spent states_floor(void)
{
    struct spent sum = {0};
    struct crowd c;
    char name[128];

    crowd_open(&c, AGENTS, SLOTS);
    for (uint32_t i = 0; i < TASKS; i++) {
        snprintf(name, sizeof name,
                 "\"job\":\"00000000000000000000000000000001\",\"vertex\":\"work\",\"subtask\":%u,"
                 "\"attempt\":1",
                 i);
        crowd_give(&c, i / SLOTS, name, i % SLOTS);
    }
    for (int k = 0; k < KINDS; k++) {
        struct spent part = floor_of(&c, &(struct load){.say = says[k], .messages = TASKS});

        sum = (struct spent){.wall = sum.wall + part.wall, .cpu = sum.cpu + part.cpu};
    }
    crowd_close(&c);
    return sum;
}

static struct spent states_ours(struct bench_daemon *d, int64_t *ret_commits, int64_t *ret_turns)
{
    struct spent sum = {0};
    struct crowd c;
    char job[33];

    submit(d, TASKS, job);
    crowd_open(&c, AGENTS, SLOTS);
    c.hold = true;
    crowd_connect(&c, d->agents);
    await_running(d, &c, job, TASKS);
    *ret_commits = bench_count(d, "commits");
    *ret_turns = bench_count(d, "turns");
    for (int k = 0; k < KINDS; k++) {
        struct spent part =
            ours_of(d, &c, &(struct load){.say = says[k], .messages = TASKS}, "steps");

        sum = (struct spent){.wall = sum.wall + part.wall, .cpu = sum.cpu + part.cpu};
    }
    *ret_commits = bench_count(d, "commits") - *ret_commits;
    *ret_turns = bench_count(d, "turns") - *ret_turns;
    crowd_close(&c);
    return sum;
}

/* An update is a message, a step, an event, and a row of the journal. */
void bench_service_states(void)
{
    struct spent ours = {1e9, 1e9}, bare = {1e9, 1e9};
    int64_t commits = 0, turns = 0;
    struct bench_daemon d;

    for (int i = 0; i < RUNS; i++) {
        bare = least(bare, states_floor());
        bench_daemon_open(&d);
        ours = least(ours, states_ours(&d, &commits, &turns));
        bench_daemon_close(&d);
    }
    printf("{\"bench\":\"service_states\",\"updates\":%d,\"per_second\":%.0f,\"commits\":%lld,"
           "\"turns\":%lld,",
           TASKS * KINDS, TASKS * KINDS / ours.wall, (long long)commits, (long long)turns);
    print_ratios(ours, bare);
}

void bench_service_deploy(void)
{
    double best = 1e9, cpu = 1e9, rss = 0, peak = 0;
    struct bench_daemon d;
    struct crowd c;
    char job[33];

    for (int i = 0; i < RUNS; i++) {
        double start, start_cpu;

        bench_daemon_open(&d);
        submit(&d, TASKS, job);
        crowd_open(&c, AGENTS, SLOTS);
        start = now_s();
        start_cpu = bench_cpu_seconds(d.pid);
        crowd_connect(&c, d.agents);
        await_running(&d, &c, job, TASKS);
        start = now_s() - start;
        start_cpu = bench_cpu_seconds(d.pid) - start_cpu;
        best = start < best ? start : best;
        cpu = start_cpu < cpu ? start_cpu : cpu;
        rss = bench_memory_mib(d.pid, "VmRSS");
        peak = bench_memory_mib(d.pid, "VmHWM");
        crowd_close(&c);
        bench_daemon_close(&d);
    }
    printf("{\"bench\":\"service_deploy\",\"agents\":%d,\"tasks\":%d,\"seconds\":%.3f,"
           "\"cpu_seconds\":%.3f,\"rss_mib\":%.1f,\"peak_mib\":%.1f,\"calibration_ns\":%.0f}\n",
           AGENTS, TASKS, best, cpu, rss, peak, bench_calibration_ns());
    fflush(stdout);
}

/* ---- a restart of the daemon ----------------------------------------------------------------- */

void bench_service_adopt(void)
{
    enum { FEW_AGENTS = 100, FEW_TASKS = FEW_AGENTS * SLOTS };
    double best = 1e9, start_best = 1e9, peak;
    struct bench_daemon d;
    struct crowd c;
    char job[33];

    bench_daemon_open(&d);
    submit(&d, FEW_TASKS, job);
    crowd_open(&c, FEW_AGENTS, SLOTS);
    crowd_connect(&c, d.agents);
    await_running(&d, &c, job, FEW_TASKS);
    peak = bench_memory_mib(d.pid, "VmHWM");
    for (int i = 0; i < RUNS; i++) {
        double start = now_s();

        bench_daemon_kill(&d);
        bench_daemon_start(&d);
        start_best = now_s() - start < start_best ? now_s() - start : start_best;
        start = now_s();
        crowd_connect(&c, d.agents);
        await_welcome(&c); /* said after what HELLO brought was taken in and committed */
        best = now_s() - start < best ? now_s() - start : best;
        must(bench_running(&d, job) == FEW_TASKS, "not all tasks were adopted");
    }
    printf("{\"bench\":\"service_adopt\",\"agents\":%d,\"tasks\":%d,\"seconds\":%.4f,"
           "\"start_seconds\":%.4f,\"peak_mib_before\":%.1f,\"calibration_ns\":%.0f}\n",
           FEW_AGENTS, FEW_TASKS, best, start_best, peak, bench_calibration_ns());
    fflush(stdout);
    crowd_close(&c);
    bench_daemon_close(&d);
}

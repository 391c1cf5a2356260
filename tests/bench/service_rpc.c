/* service_rpc.c - heartbeats of 1,000 agents: ours beside a bare loop that receives and drops
 *
 *     {"bench":"rpc_stream","agents":1000,"messages":200000,"seconds":...,"floor_seconds":...,
 *      "ratio":...,"cpu_seconds":...,"floor_cpu_seconds":...,"cpu_ratio":...}
 *     {"bench":"rpc_queued",...}
 *
 * Ours takes a message, checks its role, decodes its body, and looks at the monitor in between; the
 * floor takes the same frames from a ROUTER of the same kind. Streamed: while the agents, a process
 * of their own, send as fast as they can. Queued: all has arrived before the clock starts, so that
 * only the receiver's own work counts. ratio: our rate over that of the floor; cpu_ratio: the same
 * by processor time of the receiving process, with libzmq's thread, which shows on a busy machine.
 */
#include "bench.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "rpc/peer.h"

enum { AGENTS = 1000, BEATS = 200, QUEUE = 1000, RUNS = 5, SETTLE_MS = 500 };

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: rpc: %s\n", what);
    exit(1);
}

/* ---- the agents, in a process of their own --------------------------------------------------- */

struct agents {
    int to[2], from[2]; /* pipes: the endpoint, "go"; "sent" */
    pid_t pid;
};

static void beat(struct rpc_link *l, uint64_t sequence, const struct json *body)
{
    struct message_header h = {.type = MESSAGE_HEARTBEAT, .sequence = sequence};

    while (rpc_link_send(l, &h, body) == -EAGAIN)
        poll(NULL, 0, 1);
}

static void run_agents(const struct agents *a)
{
    static struct rpc_link *links[AGENTS];
    char endpoint[256];
    struct rpc_link_config cfg = {.endpoint = endpoint, .queue = QUEUE};
    struct rlimit files;
    struct spec_error err;
    struct json body;

    rpc_prepare_process();
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    json_init(&body, NULL);
    json_begin(&body, NULL, '{');
    json_end(&body, '}');
    must(read(a->to[0], endpoint, sizeof endpoint) == sizeof endpoint, "no endpoint");
    for (size_t i = 0; i < AGENTS; i++) {
        must(rpc_link_open(&cfg, &links[i], &err) == 0, "a link");
        beat(links[i], 1, &body);
    }
    must(read(a->to[0], endpoint, 1) == 1, "no start");
    for (uint64_t k = 0; k < BEATS; k++)
        for (size_t i = 0; i < AGENTS; i++)
            beat(links[i], k + 2, &body);
    must(write(a->from[1], "s", 1) == 1, "no end");
    pause();
}

static void start_agents(struct agents *a)
{
    must(pipe(a->to) == 0 && pipe(a->from) == 0, "pipe");
    a->pid = fork();
    must(a->pid >= 0, "fork");
    if (a->pid == 0)
        run_agents(a);
}

static void connect_agents(const struct agents *a, const char *endpoint)
{
    char text[256] = "";

    snprintf(text, sizeof text, "%s", endpoint);
    must(write(a->to[1], text, sizeof text) == sizeof text, "pipe");
}

/* Let them send; when `queued`, wait until all that they send is here. */
static void let_go(const struct agents *a, bool queued)
{
    char byte;

    must(write(a->to[1], "g", 1) == 1, "pipe");
    if (queued) {
        must(read(a->from[0], &byte, 1) == 1, "pipe");
        poll(NULL, 0, SETTLE_MS);
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

struct spent { /* seconds, of the clock and of the processor */
    double wall, cpu;
};

static struct spent spent(void)
{
    struct timespec cpu;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (struct spent){.wall = (double)bench_now_ns() / 1e9,
                          .cpu = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9};
}

static struct spent since(struct spent start)
{
    struct spent now = spent();

    return (struct spent){.wall = now.wall - start.wall, .cpu = now.cpu - start.cpu};
}

static struct spent least(struct spent a, struct spent b)
{
    return (struct spent){.wall = a.wall < b.wall ? a.wall : b.wall,
                          .cpu = a.cpu < b.cpu ? a.cpu : b.cpu};
}

/* ---- the receivers --------------------------------------------------------------------------- */

static void take_bare(void *socket, size_t n)
{
    zmq_msg_t frame;

    zmq_msg_init(&frame);
    while (n > 0) {
        must(zmq_msg_recv(&frame, socket, 0) >= 0, "receiving");
        n -= !zmq_msg_more(&frame);
    }
    zmq_msg_close(&frame);
}

static struct spent run_bare(const struct agents *a, bool queued)
{
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_ROUTER);
    int queue = QUEUE, backlog = AGENTS;
    char endpoint[256];
    size_t n = sizeof endpoint;
    struct spent start;

    zmq_setsockopt(socket, ZMQ_RCVHWM, &queue, sizeof queue);
    zmq_setsockopt(socket, ZMQ_BACKLOG, &backlog, sizeof backlog);
    must(zmq_bind(socket, "tcp://127.0.0.1:*") == 0, "bind");
    must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &n) == 0, "endpoint");
    connect_agents(a, endpoint);
    take_bare(socket, AGENTS);
    let_go(a, queued);
    start = spent();
    take_bare(socket, (size_t)AGENTS * BEATS);
    return since(start);
}

static void take_ours(struct rpc_server *s, struct doc_file *f, size_t n)
{
    zmq_pollitem_t items[] = {{.socket = rpc_server_socket(s), .events = ZMQ_POLLIN},
                              {.socket = rpc_server_monitor(s), .events = ZMQ_POLLIN}};
    struct rpc_message m;
    struct spec_error err;
    int connection;

    while (n > 0) {
        zmq_poll(items, 2, -1);
        for (int turn = 0; turn < QUEUE && n > 0 && rpc_receive(s, &m); turn++, n--)
            must(m.fault == MESSAGE_GOOD && m.connection > 0 &&
                     message_allowed(m.role, message_kind(m.header.type)) &&
                     message_body(f, &m.header, m.body, m.size, &err) == MESSAGE_GOOD,
                 "a message");
        while (rpc_server_gone(s, &connection))
            ;
    }
}

static struct spent run_ours(const struct agents *a, bool queued)
{
    struct doc_file f = {0};
    struct rpc_server *s;
    struct spec_error err;
    struct spent start;

    rpc_prepare_process();
    must(rpc_server_open(RPC_AGENTS, "tcp://127.0.0.1:*", NULL, false, QUEUE, &s, &err) == 0,
         err.text);
    connect_agents(a, rpc_server_endpoint(s));
    take_ours(s, &f, AGENTS);
    let_go(a, queued);
    start = spent();
    take_ours(s, &f, (size_t)AGENTS * BEATS);
    return since(start);
}

/* ---- figures --------------------------------------------------------------------------------- */

/* In a process of its own: libzmq does not survive a fork. */
static struct spent measure(struct spent (*run)(const struct agents *a, bool queued), bool queued)
{
    struct spent result;
    struct agents a;
    int ends[2];
    pid_t pid;

    must(pipe(ends) == 0, "pipe");
    pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        start_agents(&a);
        result = run(&a, queued);
        kill(a.pid, SIGKILL);
        waitpid(a.pid, NULL, 0);
        must(write(ends[1], &result, sizeof result) == sizeof result, "pipe");
        _exit(0);
    }
    close(ends[1]);
    must(read(ends[0], &result, sizeof result) == sizeof result, "a run ended early");
    close(ends[0]);
    waitpid(pid, NULL, 0);
    return result;
}

static void report(const char *name, bool queued)
{
    struct spent ours = {1e9, 1e9}, bare = {1e9, 1e9};

    for (int i = 0; i < RUNS; i++) {
        bare = least(bare, measure(run_bare, queued));
        ours = least(ours, measure(run_ours, queued));
    }
    printf("{\"bench\":\"%s\",\"agents\":%d,\"messages\":%d,\"seconds\":%.4f,"
           "\"floor_seconds\":%.4f,\"ratio\":%.3f,\"cpu_seconds\":%.4f,"
           "\"floor_cpu_seconds\":%.4f,\"cpu_ratio\":%.3f}\n",
           name, AGENTS, AGENTS * BEATS, ours.wall, bare.wall, bare.wall / ours.wall, ours.cpu,
           bare.cpu, bare.cpu / ours.cpu);
    fflush(stdout);
}

void bench_rpc(void)
{
    report("rpc_stream", false);
    report("rpc_queued", true);
}

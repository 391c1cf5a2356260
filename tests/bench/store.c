/* store.c - the store: commits beside a bare append + fdatasync, and a restart from its journal
 *
 *     {"bench":"store_commit","rows":100,"commits":...,"seconds":...,"floor_seconds":...,"ratio":...}
 *     {"bench":"store_journal","steps":1000000,"seconds":...}    journaled, 100 a commit
 *     {"bench":"store_open","steps":1000000,"seconds":...}       checked and opened again
 *     {"bench":"store_read","steps":1000000,"seconds":...}       read back
 *     {"bench":"store_replay","steps":1000000,"seconds":...}     read, decoded and stepped
 *
 * ratio: rate of commits over the rate of the floor, which appends as many bytes. The journal is
 * that of a job of 1,000 tasks that fails over and over: every event changes something.
 */
#include "bench.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pliant/pliant.h>

#include "spec/recording.h"
#include "store/store.h"

enum { TASKS = 1000, STEPS = 1000000, COMMIT_EVERY = 100, ROW_BYTES = 200 };

static const char job_id[] = "00000000000000000000000000000001";

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: store: %s\n", what);
    exit(1);
}

static double seconds_since(uint64_t start_ns)
{
    return (double)(bench_now_ns() - start_ns) / 1e9;
}

/* ---- a directory and a store in it ----------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    return remove(path);
}

static void make_directory(char *dir, size_t size)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, size, "%s/pliant-bench-XXXXXX", tmp ? tmp : "/tmp");
    must(mkdtemp(dir) != NULL, dir);
}

static struct store *open_store(const char *dir)
{
    struct store *s = NULL;
    struct spec_error err;
    int r = store_open(dir, &(struct store_options){.journal_max = 2 * STEPS}, &s, &err);

    must(r == 0, err.text);
    return s;
}

static struct store *new_store(const char *dir)
{
    struct store *s = open_store(dir);
    struct store_job job = {.name = "bench", .spec = "{}", .options = "{}"};

    memcpy(job.id, job_id, sizeof job_id);
    must(store_job_put(s, &job) == 0, "no job");
    return s;
}

static void commit(struct store *s)
{
    struct spec_error err;

    must(store_commit(s, &err) == 0, err.text);
}

/* ---- commits --------------------------------------------------------------------------------- */

static double time_commits(const char *dir, uint64_t rows, uint64_t commits)
{
    struct store *s = new_store(dir);
    struct store_step step = {.event_size = ROW_BYTES - 2, .actions = "[]", .actions_size = 2};
    char event[ROW_BYTES];
    double seconds;
    uint64_t start;

    memset(event, 'x', sizeof event);
    step.event = event;
    commit(s);
    start = bench_now_ns();
    for (uint64_t i = 0; i < commits; i++) {
        for (uint64_t k = 0; k < rows; k++) {
            step.n++;
            must(store_step_put(s, job_id, &step) == 0, "no step");
        }
        commit(s);
    }
    seconds = seconds_since(start);
    store_close(&s);
    return seconds;
}

static double time_floor(const char *dir, uint64_t rows, uint64_t commits)
{
    static char bytes[COMMIT_EVERY * ROW_BYTES];
    char path[256];
    uint64_t start;
    int fd;

    snprintf(path, sizeof path, "%s/floor", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    must(fd >= 0, path);
    start = bench_now_ns();
    for (uint64_t i = 0; i < commits; i++)
        must(write(fd, bytes, rows * ROW_BYTES) > 0 && fdatasync(fd) == 0, path);
    close(fd);
    return seconds_since(start);
}

/* The two in turns, the best of each: other load shows little. */
static void compare_commits(uint64_t rows, uint64_t commits)
{
    double best = 1e9, floor = 1e9;

    for (int i = 0; i < 5; i++) {
        char dir[200];
        double seconds;

        make_directory(dir, sizeof dir);
        seconds = time_floor(dir, rows, commits);
        floor = seconds < floor ? seconds : floor;
        seconds = time_commits(dir, rows, commits);
        best = seconds < best ? seconds : best;
        nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
    printf("{\"bench\":\"store_commit\",\"rows\":%llu,\"commits\":%llu,\"seconds\":%.3f,"
           "\"floor_seconds\":%.3f,\"ratio\":%.2f}\n",
           (unsigned long long)rows, (unsigned long long)commits, best, floor, floor / best);
    fflush(stdout);
}

/* ---- a journal ------------------------------------------------------------------------------- */

/* A job, its scheduler, and a host that answers at once. */
struct run {
    struct pliant_job *job;
    struct pliant_config cfg;
    struct pliant_sched *sched;
    struct store *store; /* NULL: not journaled */
    struct json event, actions;
    uint64_t n;
    int64_t now_ms;
    uint32_t plan, attempt;
};

static void new_sched(struct run *r)
{
    struct pliant_error err;

    must(pliant_sched_new(&r->cfg, r->job, &r->sched, &err) == 0, err.text);
}

static void open_run(struct run *r)
{
    struct pliant_vertex_spec vertex = {.id = "map", .parallelism = TASKS};
    struct pliant_error err;

    *r = (struct run){.now_ms = 1};
    pliant_config_init(&r->cfg);
    must(pliant_job_new(&(struct pliant_job_spec){.vertices = &vertex, .n_vertices = 1}, NULL,
                        &r->job, &err) == 0,
         err.text);
    must(
        !pliant_config_set(&r->cfg, "restart-strategy.type", "fixed-delay", &err) &&
            !pliant_config_set(&r->cfg, "restart-strategy.fixed-delay.attempts", "1000000", &err) &&
            !pliant_config_set(&r->cfg, "restart-strategy.fixed-delay.delay", "0 ms", &err) &&
            !pliant_config_resolve(&r->cfg, &err),
        err.text);
    json_init(&r->event, NULL);
    json_init(&r->actions, NULL);
    new_sched(r);
}

static void close_run(struct run *r)
{
    pliant_sched_destroy(&r->sched);
    pliant_job_destroy(&r->job);
    json_free(&r->event);
    json_free(&r->actions);
}

static void journal(struct run *r, const struct pliant_event *ev, const struct pliant_actions *acts)
{
    json_reset(&r->event);
    json_reset(&r->actions);
    recording_write_event(&r->event, NULL, r->job, ev);
    recording_write_actions(&r->actions, NULL, r->job, r->sched, acts);
    must(store_step_put(r->store, job_id,
                        &(struct store_step){.n = r->n,
                                             .at_ms = r->now_ms,
                                             .event = r->event.v,
                                             .event_size = r->event.n,
                                             .actions = r->actions.v,
                                             .actions_size = r->actions.n}) == 0,
         "no step");
    if (r->n % COMMIT_EVERY == 0)
        commit(r->store);
}

static void step(struct run *r, struct pliant_event ev)
{
    struct pliant_actions acts;

    if (r->n == STEPS)
        return;
    must(pliant_step(r->sched, r->now_ms, &ev, &acts) == 0, "no step of the core");
    r->n++;
    for (size_t i = 0; i < acts.n; i++) {
        if (acts.v[i].kind == PLIANT_ACT_RESERVE)
            r->plan = acts.v[i].reserve.plan;
        if (acts.v[i].kind == PLIANT_ACT_DEPLOY)
            r->attempt = acts.v[i].deploy.task.attempt;
    }
    journal(r, &ev, &acts);
}

static void step_all(struct run *r, enum pliant_event_kind kind, uint32_t first)
{
    for (uint32_t i = first; i < TASKS; i++)
        step(r, (struct pliant_event){.kind = kind, .task = {{1}, i, r->attempt}});
}

static void make_journal(struct run *r)
{
    step(r, (struct pliant_event){.kind = PLIANT_EV_START});
    step(r, (struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                  .node_up = {.name = "n", .incarnation = 1, .slots = TASKS}});
    while (r->n < STEPS) {
        step(r, (struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED, .plan.plan = r->plan});
        step_all(r, PLIANT_EV_TASK_INITIALIZING, 0);
        step_all(r, PLIANT_EV_TASK_RUNNING, 0);
        step(r, (struct pliant_event){
                    .kind = PLIANT_EV_TASK_FAILED,
                    .failure = {.task = {{1}, 0, r->attempt}, .recoverable = true, .cause = "x"}});
        step_all(r, PLIANT_EV_TASK_CANCELED, 1);
        r->now_ms++;
        step(r, (struct pliant_event){.kind = PLIANT_EV_TICK});
    }
}

/* ---- a restart ------------------------------------------------------------------------------- */

static int count(void *ctx, const struct store_step *s)
{
    uint64_t *n = ctx;

    return s->n == ++*n ? 0 : -EINVAL;
}

struct replay {
    struct run run;
    struct recording_decoder *decoder;
};

static int again(void *ctx, const struct store_step *s)
{
    struct replay *r = ctx;
    struct pliant_event ev;
    struct pliant_actions acts;
    struct spec_error err;

    if (recording_event_decode(r->decoder, s->event, s->event_size, (uint32_t)s->n, &ev, &err) < 0)
        return -EINVAL;
    r->run.n++;
    return pliant_step(r->run.sched, s->at_ms, &ev, &acts);
}

static void report(const char *what, uint64_t start_ns)
{
    printf("{\"bench\":\"%s\",\"steps\":%d,\"seconds\":%.3f}\n", what, STEPS,
           seconds_since(start_ns));
    fflush(stdout);
}

static void time_restart(const char *dir)
{
    uint64_t n = 0, start = bench_now_ns();
    struct store *s = open_store(dir);
    struct replay r;
    struct spec_error err;

    report("store_open", start);
    start = bench_now_ns();
    must(store_steps(s, job_id, 0, count, &n, &err) == 0 && n == STEPS, "not read back");
    report("store_read", start);
    open_run(&r.run);
    must(recording_decoder_new("journal", r.run.job, &r.decoder) == 0, "no memory");
    start = bench_now_ns();
    must(store_steps(s, job_id, 0, again, &r, &err) == 0 && r.run.n == STEPS, "not replayed");
    report("store_replay", start);
    recording_decoder_free(&r.decoder);
    close_run(&r.run);
    store_close(&s);
}

void bench_store(void)
{
    char dir[200];
    struct run r;
    uint64_t start;

    compare_commits(1, 1000);
    compare_commits(COMMIT_EVERY, 500);
    make_directory(dir, sizeof dir);
    open_run(&r);
    r.store = new_store(dir);
    start = bench_now_ns();
    make_journal(&r);
    commit(r.store);
    report("store_journal", start);
    store_close(&r.store);
    close_run(&r);
    time_restart(dir);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

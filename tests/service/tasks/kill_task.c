/* kill_task.c - what kill_test.py runs as tasks: it counts, and writes down what it did
 *
 *     kill_task DIR [UNTIL]
 *
 * Each key group has a counter, which goes on by one each STEP_MS and ends with the task at UNTIL.
 * Lines go to DIR/JOB, each in one write, so that the lines of all tasks of a job stand in the
 * order in which things happened:
 *
 *     start t=UNIX_MS pid=N vertex=V subtask=N parallelism=N attempt=N from=DIR counts=GROUP:N,...
 *     part ... id=N counts=...            before its part of a checkpoint is told
 *
 * A rank of a worker group has one counter, and all of them take a checkpoint each GROUP_STEPS:
 *
 *     start, part                         from, id: the checkpoint's directory in the run's
 *     reported ... id=DIR counts=...      its report was answered: it is registered
 *
 * Vertices whose names begin so are of other kinds:
 *
 *     deaf    takes no notice of SIGTERM
 *     family  has a descendant in a session of its own that nobody waits for, named DESCENDANT
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pliant/worker.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define STEP_MS 50
#define GROUP_STEPS 6
#define DESCENDANT "kill_task-kin" /* name of such a process */
#define FILE_NAME "counts"
#define LINE_MAX_BYTES 4096
#define GROUPS_MAX 64

struct counts {
    uint32_t first, last;
    unsigned long of[GROUPS_MAX];
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "kill_task: %s: %s\n", what, why);
    exit(1);
}

static int64_t clock_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- counters in files -------------------------------------------------------------------- */

static void in_dir(char path[LINE_MAX_BYTES], const char *dir, const char *name)
{
    if (snprintf(path, LINE_MAX_BYTES, "%s/%s", dir, name) >= LINE_MAX_BYTES)
        die(dir, "too long");
}

/* Those of [first, last]. */
static void read_counts(struct counts *c, const char *dir, const char *name, uint32_t first,
                        uint32_t last)
{
    char path[LINE_MAX_BYTES];
    unsigned long group, n;
    FILE *in;

    in_dir(path, dir, name);
    in = fopen(path, "r");
    if (!in)
        die(path, strerror(errno));
    while (fscanf(in, "%lu %lu\n", &group, &n) == 2)
        if (group >= first && group <= last)
            c->of[group] = n;
    fclose(in);
}

static void write_counts(const struct counts *c, const char *dir, const char *name)
{
    char path[LINE_MAX_BYTES];
    FILE *out;

    in_dir(path, dir, name);
    out = fopen(path, "w");
    if (!out)
        return; /* given up meanwhile; what comes next will say so */
    for (uint32_t i = c->first; i <= c->last; i++)
        fprintf(out, "%" PRIu32 " %lu\n", i, c->of[i]);
    fclose(out);
}

/* ---- the diary ---------------------------------------------------------------------------- */

struct line {
    char v[LINE_MAX_BYTES];
    size_t n;
};

static void add(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *l, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    l->n += (size_t)vsnprintf(l->v + l->n, sizeof l->v - l->n, format, args);
    va_end(args);
    if (l->n >= sizeof l->v)
        die("a line", "too long");
}

static void note(int diary, const struct pliant_worker_task *me, const struct counts *c,
                 const char *what, const char *key, const char *value)
{
    struct line l = {.n = 0};

    add(&l, "%s t=%" PRId64 " pid=%d vertex=%s subtask=%" PRIu32 " parallelism=%" PRIu32, what,
        clock_ms(CLOCK_REALTIME), (int)getpid(), me->vertex ? me->vertex : "worker", me->subtask,
        me->parallelism);
    add(&l, " attempt=%" PRIu32 " %s=%s counts=", me->attempt, key, value);
    for (uint32_t i = c->first; i <= c->last; i++)
        add(&l, "%s%" PRIu32 ":%lu", i > c->first ? "," : "", i, c->of[i]);
    add(&l, "\n");
    if (write(diary, l.v, l.n) != (ssize_t)l.n)
        die("the diary", strerror(errno));
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int open_diary(const char *dir, const char *job)
{
    char path[LINE_MAX_BYTES];
    int fd;

    in_dir(path, dir, job);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        die(path, strerror(errno));
    return fd;
}

/* ---- what both kinds do -----------------------------------------------------------------------
 */

/* A process that has lost its parent, its group and its session, but not its environment. */
static void leave_a_descendant(void)
{
    if (fork() != 0)
        return;
    prctl(PR_SET_NAME, DESCENDANT);
    setsid();
    if (fork() != 0)
        _exit(0);
    for (;;)
        pause();
}

static void behave(const char *vertex)
{
    if (strncmp(vertex, "deaf", 4) == 0)
        signal(SIGTERM, SIG_IGN);
    if (strncmp(vertex, "family", 6) == 0) {
        signal(SIGCHLD, SIG_IGN);
        leave_a_descendant();
    }
}

static void count(struct counts *c)
{
    for (uint32_t i = c->first; i <= c->last; i++)
        c->of[i]++;
}

static void take_requests(struct pliant_worker *w, int diary, const struct counts *c)
{
    struct pliant_worker_event ev;
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + STEP_MS, left_ms;

    while ((left_ms = until_ms - clock_ms(CLOCK_MONOTONIC)) > 0)
        if (pliant_worker_next(w, (int)left_ms, &ev) == 1 && ev.kind == PLIANT_WORKER_CHECKPOINT) {
            write_counts(c, ev.dir, FILE_NAME);
            note(diary, pliant_worker_task(w), c, "part", "id", ev.id);
            pliant_worker_part_done(w, ev.id);
        }
}

/* ---- a subtask of a graph job ---------------------------------------------------------------- */

static void run_subtask(struct pliant_worker *w, int diary, unsigned long until)
{
    const struct pliant_worker_task *me = pliant_worker_task(w);
    const char *from = getenv("PLIANT_CHECKPOINT_DIR");
    const struct pliant_worker_part *parts;
    struct counts c = {.first = me->first_key_group, .last = me->last_key_group};
    size_t n;

    if (c.last >= GROUPS_MAX)
        die("key groups", "too many");
    parts = pliant_worker_restore_parts(w, &n);
    for (size_t i = 0; i < n; i++)
        read_counts(&c, parts[i].dir, FILE_NAME, parts[i].first_key_group, parts[i].last_key_group);
    note(diary, me, &c, "start", "from", from ? from : "");
    if (pliant_worker_take_checkpoints(w) < 0)
        die("the agent", pliant_worker_error(w));
    while (until == 0 || c.of[c.first] < until) {
        take_requests(w, diary, &c);
        count(&c);
    }
    pliant_worker_end_of_data(w);
}

/* ---- a rank of a worker group ------------------------------------------------------------------
 */

static void take_group_checkpoint(struct pliant_worker *w, int diary, const struct counts *c)
{
    const struct pliant_worker_task *me = pliant_worker_task(w);
    char name[LINE_MAX_BYTES], rank[32];
    const char *dir;

    if (pliant_worker_checkpoint_dir(w, &dir) < 0)
        die("checkpoint_dir", pliant_worker_error(w));
    snprintf(name, sizeof name, "%s", dir);
    snprintf(rank, sizeof rank, "rank-%" PRIu32, me->subtask);
    write_counts(c, name, rank);
    note(diary, me, c, "part", "id", last_part(name));
    if (pliant_worker_report(w, "{}", name) < 0)
        die("report", pliant_worker_error(w));
    note(diary, me, c, "reported", "id", last_part(name));
}

static void run_rank(struct pliant_worker *w, int diary, unsigned long until)
{
    const struct timespec pause = {.tv_nsec = STEP_MS * 1000000L};
    struct counts c = {0};
    const char *from;

    if (pliant_worker_get_checkpoint(w, &from) < 0)
        die("get_checkpoint", pliant_worker_error(w));
    if (from)
        read_counts(&c, from, "rank-0", 0, 0);
    note(diary, pliant_worker_task(w), &c, "start", "from", from ? last_part(from) : "");
    while (until == 0 || c.of[0] < until) {
        nanosleep(&pause, NULL);
        count(&c);
        if (c.of[0] % GROUP_STEPS == 0)
            take_group_checkpoint(w, diary, &c);
    }
}

int main(int argc, char **argv)
{
    unsigned long until = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    const struct pliant_worker_task *me;
    struct pliant_worker *w;
    int diary;

    if (argc < 2 || pliant_worker_new(&w) < 0)
        die("usage", "kill_task DIR [UNTIL], as a task");
    me = pliant_worker_task(w);
    if (me->vertex)
        behave(me->vertex);
    diary = open_diary(argv[1], me->job_id);
    if (me->group)
        run_rank(w, diary, until);
    else
        run_subtask(w, diary, until);
    pliant_worker_close(w);
    return 0;
}

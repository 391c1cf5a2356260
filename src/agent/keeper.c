/* keeper.c - see keeper.h */
#include "agent/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "agent/kin.h"
#include "agent/say.h"
#include "agent/start_block.h"
#include "agent/times.h"
#include "util/deadline.h"
#include "util/vec.h"

enum life {
    LIFE_RUNS,
    LIFE_LINGERS, /* asked to stop, its first process has ended, others of its group clean up */
    LIFE_SWEPT,   /* what is left of it gets SIGKILL */
    LIFE_OVER,
};

struct held {
    enum life life;
    bool stop_asked, told_start, told_end;
    pid_t pid; /* 0: it never started */
    int64_t stop_timeout_ms;
    int64_t at_ms;             /* SIGKILL, or the end of the sweep; NEVER */
    struct keeper_message end; /* id, note; from LIFE_OVER on also how it ended */
    int64_t started_unix_ms;
    char *mark;
    char *group; /* its cgroup; NULL: none */
    char *about;
    size_t about_size;
};

struct keeper {
    const struct keeper_config *cfg;
    int agent, listening, signals, lock;
    int emptied; /* inotify, of groups of tasks that are swept */
    bool leaving, orphan;
    bool groups_failed; /* and it was said */
    int64_t orphan_timeout_ms;
    int64_t give_up_at_ms; /* no new agent came; NEVER */
    int64_t now_ms;        /* monotonic */
    pid_t helper;          /* says GOODBYE; 0: none */
    char endpoint[KEEPER_TEXT];
    struct VEC(struct held) tasks;
    bool sweeping_found; /* kin_children() found something that has to go */
};

/* ---- tasks ------------------------------------------------------------------------------------
 */

static struct held *find(struct keeper *k, uint64_t id)
{
    for (size_t i = 0; i < k->tasks.n; i++)
        if (k->tasks.v[i].end.id == id)
            return &k->tasks.v[i];
    return NULL;
}

static bool has_processes(const struct held *t)
{
    return t->life != LIFE_OVER;
}

static size_t count_living(const struct keeper *k)
{
    size_t n = 0;

    for (size_t i = 0; i < k->tasks.n; i++)
        n += has_processes(&k->tasks.v[i]);
    return n;
}

static void remove_group(struct held *t)
{
    if (!t->group || (rmdir(t->group) != 0 && errno == EBUSY))
        return; /* a child that did not start is still on its way out: once more when forgotten */
    free(t->group);
    t->group = NULL;
}

static void forget(struct keeper *k, uint64_t id)
{
    struct held *t = find(k, id);

    if (!t || has_processes(t))
        return;
    remove_group(t);
    free(t->mark);
    free(t->group);
    free(t->about);
    *t = k->tasks.v[--k->tasks.n];
}

/* What has to be remembered of a start block when its process runs. */
static bool remember(struct held *t, const struct keeper_start *start)
{
    t->mark = strdup(start->mark);
    t->about = malloc(start->about_size + 1);
    if (!t->mark || !t->about)
        return false;
    memcpy(t->about, start->about, start->about_size);
    t->about_size = start->about_size;
    return true;
}

/* A descriptor of the task's own cgroup; -1: it does without. */
static int make_group(struct keeper *k, struct held *t)
{
    int fd = -ENOMEM;

    if (!k->cfg->cgroup)
        return -1;
    if (asprintf(&t->group, "%s/%" PRIu64, k->cfg->cgroup, t->end.id) < 0)
        t->group = NULL;
    else
        fd = cgroup_make(t->group);
    if (fd >= 0)
        return fd;
    remove_group(t);
    if (!k->groups_failed)
        say(SAY_WARN, "msg=\"a task has no cgroup of its own\" error=\"%s\"", strerror(-fd));
    k->groups_failed = true;
    return -1;
}

static int start_it(struct keeper *k, struct held *t, const struct keeper_start *start, char *why,
                    size_t why_size)
{
    int group = make_group(k, t);
    int r = start_process(start, group, &t->pid, why, why_size);

    if (group >= 0)
        close(group);
    return r;
}

static void not_started(struct held *t, const char *why)
{
    remove_group(t);
    t->life = LIFE_OVER;
    t->end.how = KEEPER_NOT_STARTED;
    t->end.at_unix_ms = unix_ms();
    snprintf(t->end.text, sizeof t->end.text, "%s", why);
}

static void spawn(struct keeper *k, uint64_t id, int block)
{
    struct held *t = find(k, id) ? NULL : vec_push(NULL, &k->tasks);
    struct start_block b = {0};
    char why[KEEPER_TEXT] = "no memory";

    if (!t) {
        close(block);
        return;
    }
    *t = (struct held){.end = {.id = id, .oom_kills = -1}, .at_ms = PLIANT_NEVER};
    if (!start_block_read(&b, block) || !remember(t, &b.start) ||
        start_it(k, t, &b.start, why, sizeof why) < 0)
        not_started(t, why);
    t->stop_timeout_ms = b.start.stop_timeout_ms;
    t->started_unix_ms = unix_ms();
    start_block_free(&b);
}

/* ---- ends -------------------------------------------------------------------------------------
 */

static bool lives_in(const struct held *t, pid_t pid)
{
    return (t->life == LIFE_RUNS || t->life == LIFE_LINGERS) &&
           (pid == t->pid || getpgid(pid) == t->pid || getsid(pid) == t->pid ||
            (t->group && cgroup_holds(t->group, pid)) || kin_has_mark(pid, t->mark));
}

/* A child: the first process of a task, something that a living task has left behind, or what has
 * to go because no living task can own it. */
static void sweep_child(void *ctx, pid_t pid)
{
    struct keeper *k = ctx;

    if (pid == k->helper)
        return;
    for (size_t i = 0; i < k->tasks.n; i++)
        if (lives_in(&k->tasks.v[i], pid))
            return;
    k->sweeping_found = true;
    kill(pid, SIGKILL);
}

static bool is_swept(const struct keeper *k, const struct held *t)
{
    return !k->sweeping_found && !(t->group && cgroup_is_populated(t->group));
}

/* Nothing of a task that has ended may go on [W-SIG-5]. What is killed gives its own children to
 * us, and its end is a reason to look again; so is that its cgroup has become empty. */
static void sweep(struct keeper *k)
{
    size_t n = 0;

    for (size_t i = 0; i < k->tasks.n; i++)
        n += k->tasks.v[i].life == LIFE_SWEPT;
    if (n == 0)
        return;
    k->sweeping_found = false;
    kin_children(sweep_child, k);
    for (size_t i = 0; i < k->tasks.n; i++) {
        struct held *t = &k->tasks.v[i];

        if (t->life == LIFE_SWEPT && (is_swept(k, t) || k->now_ms >= t->at_ms)) {
            remove_group(t);
            t->life = LIFE_OVER;
            t->at_ms = PLIANT_NEVER;
        }
    }
}

/* SIGKILL to all that is known of it. */
static void kill_all_of(const struct held *t)
{
    kill(-t->pid, SIGKILL);
    if (t->group)
        cgroup_kill(t->group);
}

static void begin_sweep(struct keeper *k, struct held *t)
{
    char events[CGROUP_PATH];

    if (t->group) {
        cgroup_events_path(t->group, events);
        inotify_add_watch(k->emptied, events, IN_MODIFY);
    }
    kill_all_of(t);
    t->life = LIFE_SWEPT;
    t->at_ms = k->now_ms + KEEPER_SWEEP_MS;
}

/* Its first process has ended. */
static void ended(struct keeper *k, struct held *t, int status)
{
    t->end.how = WIFSIGNALED(status) ? KEEPER_KILLED : KEEPER_EXITED;
    t->end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    t->end.stopped = t->stop_asked;
    t->end.oom_kills = t->group ? cgroup_oom_kills(t->group) : -1;
    t->end.at_unix_ms = unix_ms();
    if (t->stop_asked && kill(-t->pid, 0) == 0)
        t->life = LIFE_LINGERS;
    else
        begin_sweep(k, t);
}

static void reap(struct keeper *k)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == k->helper)
            k->helper = 0;
        for (size_t i = 0; i < k->tasks.n; i++)
            if (k->tasks.v[i].pid == pid && k->tasks.v[i].life == LIFE_RUNS)
                ended(k, &k->tasks.v[i], status);
    }
    for (size_t i = 0; i < k->tasks.n; i++)
        if (k->tasks.v[i].life == LIFE_LINGERS && kill(-k->tasks.v[i].pid, 0) != 0)
            begin_sweep(k, &k->tasks.v[i]);
    sweep(k);
}

/* SIGTERM now, SIGKILL after the timeout; asked again it can only come earlier [W-SIG-1, 2]. */
static void stop(struct keeper *k, struct held *t, int64_t timeout_ms)
{
    int64_t kill_at_ms = instant_after(k->now_ms, timeout_ms > 0 ? timeout_ms : 0);

    if (t->life != LIFE_RUNS && t->life != LIFE_LINGERS)
        return;
    if (!t->stop_asked)
        kill(-t->pid, SIGTERM);
    t->stop_asked = true;
    if (kill_at_ms < t->at_ms)
        t->at_ms = kill_at_ms;
}

static void stop_all(struct keeper *k, int64_t at_most_ms)
{
    for (size_t i = 0; i < k->tasks.n; i++) {
        struct held *t = &k->tasks.v[i];

        stop(k, t, t->stop_timeout_ms < at_most_ms ? t->stop_timeout_ms : at_most_ms);
    }
}

static void run_deadlines(struct keeper *k)
{
    for (size_t i = 0; i < k->tasks.n; i++) {
        struct held *t = &k->tasks.v[i];

        if (k->now_ms < t->at_ms)
            continue;
        if (t->life == LIFE_RUNS) { /* ended() will see the rest */
            kill_all_of(t);
            t->at_ms = PLIANT_NEVER;
        } else if (t->life == LIFE_LINGERS) {
            begin_sweep(k, t);
        }
    }
    sweep(k);
}

/* ---- the agent ----------------------------------------------------------------------------------
 */

/* From SIGTERM to SIGKILL, as a STOP says it [W-SIG-3]. */
static int64_t timeout_of(const struct keeper_message *m)
{
    int64_t left_ms = m->at_unix_ms - unix_ms();

    return m->at_unix_ms > 0 ? sooner(left_ms, m->timeout_ms) : m->timeout_ms;
}

static void signal_all(struct keeper *k, int signal)
{
    for (size_t i = 0; i < k->tasks.n; i++)
        if (k->tasks.v[i].life == LIFE_RUNS)
            kill(-k->tasks.v[i].pid, signal);
}

static void note(struct held *t, const struct keeper_message *m)
{
    t->end.calls = m->calls;
    t->end.seqs = m->seqs;
    if (has_processes(t)) /* else the text is that of its end */
        memcpy(t->end.text, m->text, sizeof m->text);
}

static void obey(struct keeper *k, const struct keeper_message *m, int attached)
{
    struct held *t = find(k, m->id);

    switch ((enum keeper_op)m->op) {
    case KEEPER_SPAWN:
        if (attached >= 0)
            spawn(k, m->id, attached);
        return;
    case KEEPER_STOP:
        if (t)
            stop(k, t, timeout_of(m));
        break;
    case KEEPER_SIGNAL:
        signal_all(k, m->code);
        break;
    case KEEPER_SIGNAL_ONE:
        if (t && t->life == LIFE_RUNS)
            kill(t->pid, m->code);
        break;
    case KEEPER_NOTE:
        if (t)
            note(t, m);
        break;
    case KEEPER_FORGET:
        forget(k, m->id);
        break;
    case KEEPER_ORPHAN_TIMEOUT:
        k->orphan_timeout_ms = m->timeout_ms;
        break;
    case KEEPER_ENDPOINT:
        memcpy(k->endpoint, m->text, sizeof k->endpoint);
        break;
    case KEEPER_LEAVE:
        k->leaving = true;
        break;
    case KEEPER_IS:
    case KEEPER_TASK:
    case KEEPER_STARTED:
    case KEEPER_ENDED:
    case KEEPER_ALL:
        break;
    }
    if (attached >= 0)
        close(attached);
}

static bool tell(struct keeper *k, enum keeper_op op, const struct held *t)
{
    struct keeper_message m = t->end;

    m.op = op;
    m.pid = t->pid;
    if (op == KEEPER_STARTED)
        m.at_unix_ms = t->started_unix_ms;
    return keeper_send(k->agent, &m, -1) == 0;
}

/* What the agent does not know yet. False: its queue is full, and the rest comes later. */
static bool tell_news(struct keeper *k)
{
    for (size_t i = 0; k->agent >= 0 && i < k->tasks.n; i++) {
        struct held *t = &k->tasks.v[i];

        if (!t->told_start && t->pid > 0 && !(t->told_start = tell(k, KEEPER_STARTED, t)))
            return false;
        if (!t->told_end && t->life == LIFE_OVER && !(t->told_end = tell(k, KEEPER_ENDED, t)))
            return false;
    }
    return true;
}

/* A helper, because only the program proper speaks with the daemon. */
static void say_goodbye(struct keeper *k)
{
    char incarnation[24];
    const char *argv[] = {"pliant-agent", KEEPER_GOODBYE,   k->endpoint,        k->cfg->node,
                          incarnation,    k->cfg->key_file, k->cfg->server_key, NULL};
    extern char **environ;

    if (!*k->endpoint)
        return;
    snprintf(incarnation, sizeof incarnation, "%" PRIu64, k->cfg->incarnation);
    if (posix_spawn(&k->helper, "/proc/self/exe", NULL, NULL, (char *const *)(uintptr_t)argv,
                    environ) != 0)
        k->helper = 0;
}

static void agent_gone(struct keeper *k)
{
    close(k->agent);
    k->agent = -1;
    if (k->leaving) {
        stop_all(k, 0);
        return;
    }
    k->orphan = k->cfg->keep_tasks && k->tasks.n > 0;
    say(SAY_WARN, "msg=\"the agent is gone\" tasks=%zu kept=%s", count_living(k),
        k->orphan ? "yes" : "no");
    if (k->orphan) {
        k->give_up_at_ms = instant_after(k->now_ms, k->orphan_timeout_ms);
        return;
    }
    say_goodbye(k);
    stop_all(k, KEEPER_LAST_MS);
}

static void give_up(struct keeper *k)
{
    k->give_up_at_ms = PLIANT_NEVER;
    k->orphan = false;
    if (k->listening >= 0)
        close(k->listening);
    k->listening = -1;
    say(SAY_WARN, "msg=\"no agent came back for the tasks\"");
    say_goodbye(k);
    stop_all(k, KEEPER_LAST_MS);
}

/* ---- a new agent
 * ---------------------------------------------------------------------------------- */

static void hand_over(struct keeper *k, int fd)
{
    struct keeper_message m = {.op = KEEPER_IS, .id = k->cfg->incarnation};
    int flags = fcntl(fd, F_GETFL);
    bool good = keeper_send(fd, &m, -1) == 0 && flags >= 0;

    for (size_t i = 0; good && i < k->tasks.n; i++) {
        struct held *t = &k->tasks.v[i];
        int about = keeper_pack_text(t->about, t->about_size);
        struct pollfd ready = {.fd = fd, .events = POLLOUT};

        m = t->end;
        m.op = KEEPER_TASK;
        m.pid = t->pid;
        m.at_unix_ms = t->started_unix_ms;
        m.stopped = t->stop_asked;
        do
            good = about >= 0 && keeper_send(fd, &m, about) == 0;
        while (!good && errno == EAGAIN && poll(&ready, 1, 1000) == 1);
        if (about >= 0)
            close(about);
        t->told_start = t->told_end = false;
    }
    m = (struct keeper_message){.op = KEEPER_ALL};
    if (!good || keeper_send(fd, &m, -1) < 0) {
        close(fd);
        return;
    }
    k->agent = fd;
    k->orphan = false;
    k->give_up_at_ms = PLIANT_NEVER;
}

static void answer_the_door(struct keeper *k)
{
    int fd = accept4(k->listening, NULL, NULL, SOCK_CLOEXEC);

    if (fd >= 0 && k->agent < 0)
        hand_over(k, fd);
    else if (fd >= 0)
        close(fd);
}

static int listen_at(const char *work_dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd;

    if ((size_t)snprintf(at.sun_path, sizeof at.sun_path, "%s/" KEEPER_SOCKET, work_dir) >=
        sizeof at.sun_path)
        return -1;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(at.sun_path);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 4) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* ---- the loop
 * -------------------------------------------------------------------------------------- */

static int64_t next_deadline(const struct keeper *k)
{
    int64_t at_ms = k->give_up_at_ms;

    for (size_t i = 0; i < k->tasks.n; i++)
        at_ms = sooner(at_ms, k->tasks.v[i].at_ms);
    return at_ms;
}

static void take_messages(struct keeper *k)
{
    struct keeper_message m;
    int attached, r;

    while (k->agent >= 0 && (r = keeper_receive(k->agent, &m, &attached)) != 0) {
        k->now_ms = monotonic_ms(); /* what came before may have taken its time */
        if (r < 0)
            agent_gone(k);
        else
            obey(k, &m, attached);
    }
}

static bool is_done(const struct keeper *k)
{
    return k->agent < 0 && !k->orphan && k->helper == 0 && count_living(k) == 0;
}

static void drain(int fd)
{
    char news[4096]; /* of a signalfd or inotify: that there are any is all they say */

    while (read(fd, news, sizeof news) > 0)
        continue;
}

static void run(struct keeper *k)
{

    while (!is_done(k)) {
        bool all_told = tell_news(k);
        struct pollfd p[] = {
            {.fd = k->signals, .events = POLLIN},
            {.fd = k->agent, .events = (short)(all_told ? POLLIN : POLLIN | POLLOUT)},
            {.fd = k->agent < 0 ? k->listening : -1, .events = POLLIN},
            {.fd = k->emptied, .events = POLLIN},
        };

        poll(p, sizeof p / sizeof *p, poll_timeout(next_deadline(k), k->now_ms));
        k->now_ms = monotonic_ms();
        drain(k->signals);
        if (p[3].revents)
            drain(k->emptied);
        reap(k);
        if (p[1].revents)
            take_messages(k);
        if (p[2].revents)
            answer_the_door(k);
        run_deadlines(k);
        if (k->now_ms >= k->give_up_at_ms)
            give_up(k);
    }
}

/* All descriptors but 0 to 2 and the agent's are somebody else's. */
static int close_all_but(int keep)
{
    int fd = keep == 3 ? 3 : dup3(keep, 3, O_CLOEXEC);

    close_range(4, ~0U, 0);
    return fd;
}

static int take_lock(const char *work_dir)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof path, "%s/" KEEPER_LOCK, work_dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, 0) == 0)
        dprintf(fd, "%d\n", (int)getpid());
    return fd;
}

static _Noreturn void be_keeper(const struct keeper_config *cfg, int agent, sigset_t *all)
{
    struct keeper k = {.cfg = cfg,
                       .orphan_timeout_ms = cfg->orphan_timeout_ms,
                       .give_up_at_ms = PLIANT_NEVER,
                       .listening = -1,
                       .emptied = -1,
                       .now_ms = monotonic_ms()};

    k.agent = close_all_but(agent);
    prctl(PR_SET_NAME, "pliant-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setsid(); /* a terminal's signals are the agent's */
    sigprocmask(SIG_BLOCK, all, NULL);
    sigemptyset(all);
    sigaddset(all, SIGCHLD);
    k.signals = signalfd(-1, all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (cfg->cgroup)
        k.emptied = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    k.lock = take_lock(cfg->work_dir);
    if (cfg->keep_tasks)
        k.listening = listen_at(cfg->work_dir);
    run(&k);
    if (cfg->cgroup)
        cgroup_remove_home(cfg->cgroup, 0);
    _exit(0);
}

int keeper_fork(const struct keeper_config *cfg, int *ret_fd, int64_t *ret_pid)
{
    int ends[2];
    sigset_t all;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -errno;
    sigfillset(&all);
    pid = fork();
    if (pid == 0)
        be_keeper(cfg, ends[1], &all);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -errno;
    }
    *ret_fd = ends[0];
    *ret_pid = pid;
    return 0;
}

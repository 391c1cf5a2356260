/* keep.c - the keeper as seen from the agent; see agent.h and keeper.h */
#include "agent/agent.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "agent/kin.h"

#define ADOPT_MS 5000 /* a keeper answers within so long */
#define GONE_MS 5000  /* after SIGKILL */

/* What could not be sent at once. */
struct keeper_queue {
    struct VEC(struct queued {
        struct keeper_message m;
        int attached;
    }) v;
    size_t first;
};

static void keeper_gone(struct agent *a);

/* ---- sending
 * -------------------------------------------------------------------------------------- */

static bool send_one(struct agent *a, const struct keeper_message *m, int attached)
{
    if (a->keeper.fd < 0 || keeper_send(a->keeper.fd, m, attached) == -EAGAIN)
        return false;
    if (attached >= 0) /* sent, or the keeper is gone: its end of the socket will tell */
        close(attached);
    return true;
}

static void flush(struct agent *a)
{
    struct keeper_queue *q = a->keeper_queue;

    while (q->first < q->v.n && send_one(a, &q->v.v[q->first].m, q->v.v[q->first].attached))
        q->first++;
    if (q->first < q->v.n)
        return;
    q->first = q->v.n = 0;
    source_want(a, &a->keeper, EPOLLIN);
}

void keep_tell(struct agent *a, const struct keeper_message *m, int attached)
{
    struct keeper_queue *q = a->keeper_queue;
    struct queued *last;

    if (q->v.n == 0 && send_one(a, m, attached))
        return;
    last = must(vec_push(NULL, &q->v));
    last->m = *m;
    last->attached = attached;
    if (a->keeper.fd >= 0)
        source_want(a, &a->keeper, EPOLLIN | EPOLLOUT);
}

void keep_note(struct agent *a, const struct task *t)
{
    struct keeper_message m = {.op = KEEPER_NOTE, .id = t->id, .calls = t->calls, .seqs = t->seqs};

    if (!a->opts->keep_tasks)
        return;
    snprintf(m.text, sizeof m.text, "%s", t->checkpoint ? t->checkpoint : "");
    keep_tell(a, &m, -1);
}

static void drop_queue(struct agent *a)
{
    struct keeper_queue *q = a->keeper_queue;

    for (size_t i = q->first; i < q->v.n; i++)
        if (q->v.v[i].attached >= 0)
            close(q->v.v[i].attached);
    q->first = q->v.n = 0;
}

/* ---- news
 * ------------------------------------------------------------------------------------------ */

static void take_news(struct agent *a)
{
    struct keeper_message m;
    int attached, r;

    while ((r = keeper_receive(a->keeper.fd, &m, &attached)) == 1) {
        if (attached >= 0)
            close(attached);
        if (m.op == KEEPER_STARTED)
            tasks_started(a, &m);
        else if (m.op == KEEPER_ENDED)
            tasks_ended(a, &m);
    }
    if (r < 0)
        keeper_gone(a);
}

static void keeper_ready(struct agent *a, void *self, uint32_t events)
{
    (void)self;
    if (events & EPOLLOUT)
        flush(a);
    if (events & ~(uint32_t)EPOLLOUT)
        take_news(a);
}

void keep_watch(struct agent *a)
{
    source_open(a, &a->keeper, a->keeper.fd, EPOLLIN, keeper_ready, NULL);
    if (a->keeper_queue->v.n > 0)
        source_want(a, &a->keeper, EPOLLIN | EPOLLOUT);
}

/* ---- beginning and end
 * -------------------------------------------------------------------------------- */

static void make_queue(struct agent *a)
{
    if (!a->keeper_queue)
        a->keeper_queue = must(calloc(1, sizeof *a->keeper_queue));
}

int keep_start(struct agent *a)
{
    const struct agent_options *o = a->opts;
    struct keeper_config cfg = {.work_dir = o->work_dir,
                                .node = o->node,
                                .incarnation = a->incarnation,
                                .keep_tasks = o->keep_tasks,
                                .orphan_timeout_ms = o->orphan_timeout_ms,
                                .key_file = o->key_file,
                                .server_key = o->server_key,
                                .cgroup = a->cgroup};

    make_queue(a);
    return keeper_fork(&cfg, &a->keeper.fd, &a->keeper_pid);
}

/* What lost its parent with the keeper has come to us. */
static void kill_heir(void *ctx, pid_t pid)
{
    size_t *n = ctx;

    kill(pid, SIGKILL);
    (*n)++;
}

struct heirs {
    struct agent *a;
    size_t n;
};

static void kill_unless_probe(void *ctx, pid_t pid)
{
    struct heirs *h = ctx;

    if (!probe_owns(h->a, pid))
        kill_heir(&h->n, pid);
}

static void kill_heirs(struct agent *a)
{
    static const struct timespec pause = {.tv_nsec = 5 * 1000000L};
    int64_t patience_until_ms = monotonic_ms() + GONE_MS;
    struct heirs h = {.a = a};

    for (;;) {
        h.n = 0;
        kin_children(kill_unless_probe, &h);
        if (h.n == 0 || monotonic_ms() >= patience_until_ms)
            return;
        nanosleep(&pause, NULL);
        agent_reap(a);
    }
}

/* Somebody killed the keeper: its tasks go with it, and a new one takes its place. */
static void keeper_gone(struct agent *a)
{
    int r;

    say(SAY_WARN, "msg=\"the keeper has died, and its tasks with it\" tasks=%zu", tasks_living(a));
    source_close(a, &a->keeper);
    drop_queue(a);
    kill((pid_t)a->keeper_pid, SIGKILL);
    for (size_t i = 0; i < a->tasks.n; i++)
        if (task_lives(a->tasks.v[i]) && a->tasks.v[i]->pid > 0)
            kill(-(pid_t)a->tasks.v[i]->pid, SIGKILL);
    kill_heirs(a);
    kin_kill_marked(a->opts->work_dir, GONE_MS);
    if (a->cgroup)
        cgroup_clear_home(a->cgroup, GONE_MS);
    r = keep_start(a);
    if (r < 0) {
        say(SAY_ERROR, "msg=\"cannot start a keeper\" error=\"%s\"", strerror(-r));
        agent_end(a, 4);
    } else {
        keep_watch(a);
    }
    tasks_all_killed(a, "the process that held it was killed");
}

void keep_stop(struct agent *a)
{
    struct keeper_message m = {.op = KEEPER_LEAVE};

    if (!a->keeper_queue)
        return;
    keep_tell(a, &m, -1);
    if (a->keeper_queue->v.n > 0)
        flush(a);
    source_close(a, &a->keeper);
    drop_queue(a);
    vec_free(NULL, &a->keeper_queue->v);
    free(a->keeper_queue);
    a->keeper_queue = NULL;
}

/* ---- the keeper of an earlier life
 * ----------------------------------------------------------------------- */

static int connect_to(const char *work_dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if ((size_t)snprintf(at.sun_path, sizeof at.sun_path, "%s/" KEEPER_SOCKET, work_dir) <
            sizeof at.sun_path &&
        fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool next_message(int fd, struct keeper_message *ret, int *ret_attached)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ADOPT_MS) == 1 && keeper_receive(fd, ret, ret_attached) == 1;
}

static void adopt_task(struct agent *a, const struct keeper_message *m, int attached)
{
    size_t size;
    char *text;

    if (attached < 0)
        return;
    text = must(keeper_slurp(attached, &size));
    tasks_adopt(a, m->id, text, size, m);
}

int keep_adopt(struct agent *a)
{
    struct keeper_message m;
    int fd = connect_to(a->opts->work_dir), attached;
    socklen_t size = sizeof(struct ucred);
    struct ucred peer;

    if (fd < 0)
        return 0;
    make_queue(a);
    while (next_message(fd, &m, &attached)) {
        if (m.op == KEEPER_IS)
            a->incarnation = m.id;
        else if (m.op == KEEPER_TASK)
            adopt_task(a, &m, attached);
        if (m.op != KEEPER_ALL)
            continue;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
            a->keeper_pid = peer.pid;
        a->keeper.fd = fd;
        say(SAY_INFO, "msg=\"tasks of an earlier life adopted\" tasks=%zu", a->tasks.n);
        return 1;
    }
    close(fd);
    tasks_free(a);
    return 0;
}

/* errands.c - see errands.h */
#include "agent/errands.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"

#define PATIENCE_S 2 /* of a close, with an errand that is under way */

struct queue {
    struct errand *first, *last;
};

struct errands {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    bool ends;
    struct queue soon, later, done;
    int fd;
};

/* ---- errands ------------------------------------------------------------------------------------
 */

struct errand *errand_new(enum errand_kind kind)
{
    struct errand *e = must(calloc(1, sizeof *e));

    e->kind = kind;
    return e;
}

static void free_places(const struct place *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].path);
        free(v[i].bytes);
    }
}

void errand_free(struct errand *e)
{
    free_places(e->in.v, e->in.n);
    free_places(e->out.v, e->out.n);
    vec_free(NULL, &e->in);
    vec_free(NULL, &e->out);
    free(e->root);
    free(e->job);
    free(e->result);
    free(e);
}

static void put(struct queue *q, struct errand *e)
{
    e->next = NULL;
    if (q->last)
        q->last->next = e;
    else
        q->first = e;
    q->last = e;
}

static struct errand *get(struct queue *q)
{
    struct errand *e = q->first;

    if (e)
        q->first = e->next;
    if (!q->first)
        q->last = NULL;
    return e;
}

static void free_queue(struct queue *q)
{
    struct errand *e;

    while ((e = get(q)))
        errand_free(e);
}

/* ---- each kind
 * ---------------------------------------------------------------------------------- */

static int look(const struct place *p)
{
    struct stat s;

    if (stat(p->path, &s) != 0)
        return -errno;
    return S_ISDIR(s.st_mode) ? 0 : -ENOTDIR;
}

/* What an earlier start of the same attempt has left is none of this one's. */
static int make_empty(const char *path)
{
    char *parent = must_copy_bytes(path, (size_t)(strrchr(path, '/') - path));
    int r = make_dirs(parent);

    free(parent);
    if (r < 0 || mkdir(path, 0700) == 0)
        return r;
    if (errno != EEXIST)
        return -errno;
    remove_tree(path);
    return mkdir(path, 0700) == 0 ? 0 : -errno;
}

static void prepare(struct errand *e)
{
    for (size_t i = 0; i < e->in.n && e->error == 0; i++) {
        e->where = &e->in.v[i];
        e->error = look(e->where);
        e->lost = e->error < 0;
    }
    for (size_t i = 0; i < e->out.n && e->error == 0; i++) {
        e->where = &e->out.v[i];
        e->error = make_empty(e->where->path);
    }
}

/* Of "0", "17", ...: which one, or n. */
static uint32_t subpartition_of(const char *name, uint32_t n)
{
    uint32_t i = 0;

    if (*name == '\0' || (*name == '0' && name[1]))
        return n;
    for (; *name; name++) {
        if (*name < '0' || *name > '9' || i >= n)
            return n;
        i = 10 * i + (uint32_t)(*name - '0');
    }
    return i < n ? i : n;
}

/* Files that are not there are empty ones, but not without their directory. */
static int measure_place(struct place *p)
{
    DIR *dir = opendir(p->path);
    const struct dirent *entry;
    struct stat s;

    if (!dir)
        return -errno;
    p->bytes = must(calloc((size_t)p->n + 1, sizeof *p->bytes));
    while ((entry = readdir(dir))) {
        uint32_t i = subpartition_of(entry->d_name, p->n);

        if (i < p->n && fstatat(dirfd(dir), entry->d_name, &s, 0) == 0 && S_ISREG(s.st_mode))
            p->bytes[i] = (uint64_t)s.st_size;
    }
    closedir(dir);
    return 0;
}

static void measure(struct errand *e)
{
    for (size_t i = 0; i < e->out.n && e->error == 0; i++) {
        e->where = &e->out.v[i];
        e->error = measure_place(&e->out.v[i]);
    }
}

static void run(struct errand *e, struct errands *all);

static struct errand *next_one(struct errands *all, bool soon_only)
{
    struct errand *e;

    pthread_mutex_lock(&all->lock);
    e = all->ends ? NULL : get(&all->soon);
    if (!e && !soon_only && !all->ends)
        e = get(&all->later);
    pthread_mutex_unlock(&all->lock);
    return e;
}

/* Between two files that are deleted. */
static bool goes_on(void *ctx)
{
    struct errands *all = ctx;
    struct errand *e;
    bool ends;

    while ((e = next_one(all, true)))
        run(e, all);
    pthread_mutex_lock(&all->lock);
    ends = all->ends;
    pthread_mutex_unlock(&all->lock);
    return !ends;
}

static int open_dir(int at, const char *name, int flags)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
}

/* ROOT/JOB or ROOT/JOB/EDGE/ATTEMPT; below the root no link is followed. */
static int remove_result(const struct errand *e, struct errands *all)
{
    char *path = e->result ? must_format("%s/%s", e->job, e->result) : must_copy(e->job);
    int at = open_dir(AT_FDCWD, e->root, 0), r;
    char *name = path, *slash;

    while (at >= 0 && (slash = strchr(name, '/'))) {
        int above = at;

        *slash = '\0';
        at = open_dir(above, name, O_NOFOLLOW);
        r = errno;
        close(above);
        errno = r;
        name = slash + 1;
    }
    r = at < 0 ? -errno : remove_below(at, name, goes_on, all);
    if (at >= 0)
        close(at);
    free(path);
    return r == -ENOENT ? 0 : r;
}

static void run(struct errand *e, struct errands *all)
{
    uint64_t one = 1;

    switch (e->kind) {
    case ERRAND_PREPARE:
        prepare(e);
        break;
    case ERRAND_MEASURE:
        measure(e);
        break;
    case ERRAND_REMOVE:
        e->error = remove_result(e, all);
        break;
    }
    pthread_mutex_lock(&all->lock);
    put(&all->done, e);
    pthread_mutex_unlock(&all->lock);
    if (write(all->fd, &one, sizeof one) < 0)
        return; /* it is readable already */
}

/* ---- the thread
 * --------------------------------------------------------------------------------- */

static void *run_all(void *ctx)
{
    struct errands *all = ctx;
    bool ends = false;

    while (!ends) {
        struct errand *e = next_one(all, false);

        if (e) {
            run(e, all);
            continue;
        }
        pthread_mutex_lock(&all->lock);
        while (!all->ends && !all->soon.first && !all->later.first)
            pthread_cond_wait(&all->more, &all->lock);
        ends = all->ends;
        pthread_mutex_unlock(&all->lock);
    }
    return NULL;
}

struct errands *errands_open(void)
{
    struct errands *all = must(calloc(1, sizeof *all));

    all->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->more, NULL);
    if (all->fd < 0 || pthread_create(&all->thread, NULL, run_all, all) != 0)
        must(NULL);
    return all;
}

int errands_fd(const struct errands *all)
{
    return all->fd;
}

void errands_give(struct errands *all, struct errand *e)
{
    pthread_mutex_lock(&all->lock);
    put(e->kind == ERRAND_REMOVE ? &all->later : &all->soon, e);
    pthread_cond_signal(&all->more);
    pthread_mutex_unlock(&all->lock);
}

struct errand *errands_take(struct errands *all)
{
    struct errand *e;

    pthread_mutex_lock(&all->lock);
    e = get(&all->done);
    pthread_mutex_unlock(&all->lock);
    return e;
}

void errands_close(struct errands **at)
{
    struct errands *all = *at;
    struct timespec until;

    if (!all)
        return;
    *at = NULL;
    pthread_mutex_lock(&all->lock);
    all->ends = true;
    pthread_cond_signal(&all->more);
    pthread_mutex_unlock(&all->lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    if (pthread_clockjoin_np(all->thread, NULL, CLOCK_MONOTONIC, &until) != 0)
        return; /* the file system does not answer: it ends with the process */
    free_queue(&all->soon);
    free_queue(&all->later);
    free_queue(&all->done);
    close(all->fd);
    pthread_cond_destroy(&all->more);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

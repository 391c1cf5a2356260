/* parallel.c - see parallel.h */
#include "sim/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

struct run {
    const struct parallel *p;
    atomic_size_t next, done;
    pthread_mutex_t lock; /* of what is below */
    size_t failed;        /* the lowest piece that failed; n: none */
    int error;
};

static void note_failure(struct run *run, size_t i, int error)
{
    pthread_mutex_lock(&run->lock);
    if (i < run->failed) {
        run->failed = i;
        run->error = error;
    }
    pthread_mutex_unlock(&run->lock);
    atomic_store(&run->next, run->p->n); /* the others finish what they have begun */
}

static void work(struct run *run, bool caller)
{
    const struct parallel *p = run->p;
    size_t i;

    while ((i = atomic_fetch_add(&run->next, 1)) < p->n) {
        int error = p->piece(p->ctx, i);
        size_t done = atomic_fetch_add(&run->done, 1) + 1;

        if (error)
            note_failure(run, i, error);
        if (caller && p->progress)
            p->progress(p->progress_ctx, done);
    }
}

static void *work_in_thread(void *run)
{
    work(run, false);
    return NULL;
}

static unsigned threads_of(const struct parallel *p)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = p->threads > 0 ? p->threads : cores > 0 ? (unsigned)cores : 1;

    n = n < PARALLEL_MAX ? n : PARALLEL_MAX;
    return n < p->n ? n : (unsigned)p->n;
}

int parallel_run(const struct parallel *p)
{
    struct run run = {.p = p, .lock = PTHREAD_MUTEX_INITIALIZER, .failed = p->n};
    pthread_t threads[PARALLEL_MAX];
    unsigned wanted = threads_of(p), n = 0;

    while (n + 1 < wanted && pthread_create(&threads[n], NULL, work_in_thread, &run) == 0)
        n++; /* one that could not be had is not needed either */
    work(&run, true);
    while (n > 0)
        pthread_join(threads[--n], NULL);
    pthread_mutex_destroy(&run.lock);
    return run.error;
}

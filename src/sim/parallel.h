/* parallel.h - many independent pieces of work on all cores
 *
 * Pieces are taken in ascending order by whichever thread is free; what they write must not
 * overlap. The calling thread works too, and shows how far all of them are.
 *
 * Owner   everything is borrowed for the call
 * Errors  the error of the lowest piece that failed; after one, no more are begun
 */
#ifndef PLIANT_SIM_PARALLEL_H
#define PLIANT_SIM_PARALLEL_H

#include <stddef.h>

#define PARALLEL_MAX 256 /* threads */

struct parallel {
    size_t n; /* pieces */
    int (*piece)(void *ctx, size_t i);
    void *ctx;
    unsigned threads; /* 0: one for each core */
    /* Called in the calling thread, now and then; may be NULL. */
    void (*progress)(void *progress_ctx, size_t done);
    void *progress_ctx;
};

int parallel_run(const struct parallel *p);

#endif

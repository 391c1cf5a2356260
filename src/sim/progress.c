/* progress.c - see progress.h */
#include "sim/progress.h"

#include <unistd.h>

#define WIDTH 40

static int64_t since_ms(const struct timespec *then)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(now.tv_sec - then->tv_sec) * 1000 + (now.tv_nsec - then->tv_nsec) / 1000000;
}

static void draw(struct progress *p, int64_t done)
{
    double share = p->end > 0 ? (double)done / (double)p->end : 1.0;
    int filled = share >= 1 ? WIDTH : (int)(share * WIDTH);
    char bar[WIDTH + 1];

    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[WIDTH] = '\0';
    fprintf(p->out, "\r[%s] %3d %%", bar, (int)(share * 100));
    fflush(p->out);
    clock_gettime(CLOCK_MONOTONIC, &p->drawn);
}

void progress_show(struct progress *p, int64_t done)
{
    if (!p->out || ++p->calls % p->every != 0)
        return;
    if (p->drawn.tv_sec ? since_ms(&p->drawn) >= 100 : since_ms(&p->began) >= 1000)
        draw(p, done);
}

void progress_clear(struct progress *p)
{
    if (p->out && p->drawn.tv_sec)
        fprintf(p->out, "\r%*s\r", WIDTH + 10, "");
    p->drawn = (struct timespec){0};
}

static int on_step(struct sim_observer *o, const struct sim_step *step)
{
    progress_show((struct progress *)o, step->at_ms);
    return 0;
}

static int on_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    (void)end_ms, (void)sched;
    progress_clear((struct progress *)o);
    return 0;
}

void progress_init(struct progress *p, FILE *out, int64_t end)
{
    *p = (struct progress){.observer = {on_step, on_end},
                           .out = isatty(fileno(out)) ? out : NULL,
                           .end = end,
                           .every = 1024};
    clock_gettime(CLOCK_MONOTONIC, &p->began);
}

/* main.c - bench [NAME...]: how fast are we? Without names: all of it. */
#include "bench.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALIBRATION_STEPS = 1000000, BUDGET_NS = 300000000, BATCH_NS = 100000, REPETITIONS = 5 };

static double calibration_ns;

uint64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

double bench_calibration_ns(void)
{
    return calibration_ns;
}

uint64_t bench_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

void *bench_alloc(uint64_t n, uint64_t size)
{
    void *ptr = calloc(n, size);

    if (!ptr) {
        fputs("bench: no memory\n", stderr);
        exit(4);
    }
    return ptr;
}

static void *counted_resize(void *ctx, void *ptr, size_t size)
{
    struct bench_counted *c = ctx;
    size_t before = ptr ? malloc_usable_size(ptr) : 0;

    if (size == 0) {
        c->bytes -= before;
        free(ptr);
        return NULL;
    }
    ptr = realloc(ptr, size);
    if (!ptr)
        abort();
    c->bytes += malloc_usable_size(ptr) - before;
    c->peak = c->bytes > c->peak ? c->bytes : c->peak;
    return ptr;
}

void bench_count_bytes(struct bench_counted *ret)
{
    *ret = (struct bench_counted){.alloc = {.resize = counted_resize, .ctx = ret}};
}

static uint64_t time_batch(void (*run)(void *ctx), void *ctx, uint64_t calls)
{
    uint64_t start = bench_cpu_ns();

    for (uint64_t i = 0; i < calls; i++)
        run(ctx);
    return bench_cpu_ns() - start;
}

double bench_best_ns(void (*run)(void *ctx), void *ctx)
{
    uint64_t calls = 1, start = bench_cpu_ns();
    double best;

    while (time_batch(run, ctx, calls) < BATCH_NS)
        calls *= 2;
    best = (double)time_batch(run, ctx, calls);
    for (int i = 0; i < REPETITIONS || bench_cpu_ns() - start < BUDGET_NS; i++) {
        double ns = (double)time_batch(run, ctx, calls);

        if (ns < best)
            best = ns;
    }
    return best / (double)calls;
}

void bench_report(const char *bench, uint32_t slots, uint32_t vertices, uint32_t groups, double ns)
{
    printf("{\"bench\":\"%s\",\"slots\":%u,\"vertices\":%u,\"groups\":%u,\"ns\":%.1f,"
           "\"calibration_ns\":%.0f}\n",
           bench, slots, vertices, groups, ns, calibration_ns);
    fflush(stdout);
}

void bench_report_bytes(const char *bench, uint32_t slots, uint32_t vertices, uint32_t groups,
                        uint64_t bytes, uint64_t peak_bytes)
{
    printf("{\"bench\":\"%s\",\"slots\":%u,\"vertices\":%u,\"groups\":%u,\"bytes\":%llu,"
           "\"peak_bytes\":%llu,\"calibration_ns\":%.0f}\n",
           bench, slots, vertices, groups, (unsigned long long)bytes,
           (unsigned long long)peak_bytes, calibration_ns);
    fflush(stdout);
}

void bench_report_growth(const char *bench, uint64_t size, uint64_t n, double ns)
{
    printf("{\"bench\":\"%s\",\"size\":%llu,\"n\":%llu,\"ns\":%.1f,\"calibration_ns\":%.0f}\n",
           bench, (unsigned long long)size, (unsigned long long)n, ns, calibration_ns);
    fflush(stdout);
}

static void calibrate(void *ctx)
{
    uint64_t *x = ctx;

    for (int i = 0; i < CALIBRATION_STEPS; i++) {
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
    }
}

static const struct bench {
    const char *name;
    void (*run)(void);
} benches[] = {
#define BENCH_ROW(name) {#name, bench_##name},
    BENCHES(BENCH_ROW)
#undef BENCH_ROW
};

enum { N_BENCHES = sizeof benches / sizeof benches[0] };

static int usage(const char *wrong)
{
    fprintf(stderr, "bench: no bench is named \"%s\"; there are", wrong);
    for (size_t i = 0; i < N_BENCHES; i++)
        fprintf(stderr, " %s", benches[i].name);
    fputs("\n", stderr);
    return 2;
}

static const struct bench *find_bench(const char *name)
{
    for (size_t i = 0; i < N_BENCHES; i++)
        if (strcmp(benches[i].name, name) == 0)
            return &benches[i];
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t x = 88172645463325252u;

    for (int i = 1; i < argc; i++)
        if (!find_bench(argv[i]))
            return usage(argv[i]);
    calibration_ns = bench_best_ns(calibrate, &x);
    for (size_t i = 0; argc < 2 && i < N_BENCHES; i++)
        benches[i].run();
    for (int i = 1; i < argc; i++)
        find_bench(argv[i])->run();
    return x == 0; /* so that the calibration cannot be left out */
}

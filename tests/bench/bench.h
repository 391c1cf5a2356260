/* bench.h - figures of speed: one JSON line each
 *
 *     {"bench":"plan_default","slots":10000,"vertices":100,"groups":10,"ns":...,"calibration_ns":...}
 *
 * A bench is a function that measures and reports any number of figures; BENCHES lists them all.
 * Each figure is the best of many repetitions, so that other load on the machine shows little.
 * calibration_ns: 1,000,000 dependent steps of xorshift64 on this machine, to compare machines.
 */
#ifndef PLIANT_TESTS_BENCH_H
#define PLIANT_TESTS_BENCH_H

#include <stdint.h>

#include <pliant/config.h>

#define BENCHES(X)                                                                                 \
    X(parallelism)                                                                                 \
    X(plan_default)                                                                                \
    X(plan_local)                                                                                  \
    X(regions)                                                                                     \
    X(restart_set)                                                                                 \
    X(slow_tasks)                                                                                  \
    X(batch)                                                                                       \
    X(step)                                                                                        \
    X(runs)                                                                                        \
    X(runs_memory)                                                                                 \
    X(node_loss)                                                                                   \
    X(line)                                                                                        \
    X(memory)                                                                                      \
    X(store)                                                                                       \
    X(rpc)                                                                                         \
    X(service_beats)                                                                               \
    X(service_many)                                                                                \
    X(service_states)                                                                              \
    X(service_deploy)                                                                              \
    X(service_adopt)

#define BENCH_DECLARE(name) void bench_##name(void);
BENCHES(BENCH_DECLARE)
#undef BENCH_DECLARE

/* The best processor time of one call of run(ctx) in ns; short calls are timed many at once. */
double bench_best_ns(void (*run)(void *ctx), void *ctx);

/* Nanoseconds of a clock that only goes forward, for benches that time by themselves. */
uint64_t bench_now_ns(void);

/* Nanoseconds that the processor has worked for this process. */
uint64_t bench_cpu_ns(void);

double bench_calibration_ns(void);

void bench_report(const char *bench, uint32_t slots, uint32_t vertices, uint32_t groups, double ns);

/* How a cost grows: of n elements, in a setting of some size.
 * {"bench":"restart_set","size":1000000,"n":10,"ns":...,"calibration_ns":...} */
void bench_report_growth(const char *bench, uint64_t size, uint64_t n, double ns);

/* Memory instead of time: {"bench":"memory",...,"bytes":...,"peak_bytes":...}. */
void bench_report_bytes(const char *bench, uint32_t slots, uint32_t vertices, uint32_t groups,
                        uint64_t bytes, uint64_t peak_bytes);

/* An allocator that counts what is in use; it must stay where it is. */
struct bench_counted {
    struct pliant_alloc alloc;
    uint64_t bytes, peak;
};
void bench_count_bytes(struct bench_counted *ret);

/* Never returns NULL: without memory there are no figures. Zeroed; free() it. */
void *bench_alloc(uint64_t n, uint64_t size);

#endif

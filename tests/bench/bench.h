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

#define BENCHES(X)                                                                                 \
    X(parallelism)                                                                                 \
    X(plan_default)                                                                                \
    X(plan_local)                                                                                  \
    X(regions)                                                                                     \
    X(restart_set)                                                                                 \
    X(batch)                                                                                       \
    X(step)                                                                                        \
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

/* The best time of one call of run(ctx) in ns; short calls are timed many at once. */
double bench_best_ns(void (*run)(void *ctx), void *ctx);

/* Nanoseconds of a clock that only goes forward, for benches that time by themselves. */
uint64_t bench_now_ns(void);

double bench_calibration_ns(void);

void bench_report(const char *bench, uint32_t slots, uint32_t vertices, uint32_t groups, double ns);

/* Memory instead of time: {"bench":"memory",...,"bytes":...,"peak_bytes":...}. */
void bench_report_bytes(const char *bench, uint32_t slots, uint32_t vertices, uint32_t groups,
                        uint64_t bytes, uint64_t peak_bytes);

/* Never returns NULL: without memory there are no figures. Zeroed; free() it. */
void *bench_alloc(uint64_t n, uint64_t size);

#endif

/* driver.c - see driver.h */
#include "driver.h"

#include <string.h>

#include <criterion/criterion.h>

void driver_read(struct driver *d, const char *job)
{
    struct spec_error err = {.text = ""};

    cr_assert_eq(doc_parse("job", job, strlen(job), 1, &d->doc, &err), 0, "%s", err.text);
    cr_assert_eq(job_spec_decode(&d->doc, d->doc.root, &d->job, &err), 0, "%s", err.text);
    pliant_config_init(&d->cfg);
}

void driver_set(struct driver *d, const char *option, const char *value)
{
    cr_assert_eq(pliant_config_set(&d->cfg, option, value, NULL), 0, "%s: %s", option, value);
}

void driver_restarts_after(struct driver *d, const char *delay)
{
    driver_set(d, "restart-strategy.type", "fixed-delay");
    driver_set(d, "restart-strategy.fixed-delay.attempts", "1000000");
    driver_set(d, "restart-strategy.fixed-delay.delay", delay);
}

void driver_run(struct driver *d, const struct trace_event *events, size_t n_events,
                int64_t until_ms, struct sim_observer *observer)
{
    struct spec_error err = {.text = ""};

    cr_assert_eq(pliant_config_resolve(&d->cfg, NULL), 0);
    cr_assert_eq(sim_run(&(struct sim_setup){.cfg = &d->cfg,
                                             .job = &d->job,
                                             .latency = {.deploy_ms = 5, .cancel_ms = 20},
                                             .events = events,
                                             .n_events = n_events,
                                             .until_ms = until_ms,
                                             .observers = &observer,
                                             .n_observers = 1},
                         &err),
                 0, "%s", err.text);
}

void driver_free(struct driver *d)
{
    job_spec_free(&d->job);
    doc_free(&d->doc);
}

int driver_no_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    (void)o, (void)end_ms, (void)sched;
    return 0;
}

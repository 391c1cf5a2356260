/* pliantd_test.c - a real pliantd with agents that are only played */
#include "service/harness.h"

#include <string.h>

#define BRISK                                                                                      \
    "-D", "heartbeat.interval=200 ms", "-D", "heartbeat.timeout=3 s", "-D",                        \
        "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling=0 s", "-D",              \
        "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout=0 s", "-D",        \
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout=0 s"

/* One vertex that wants 4; restarts at once. */
static const char spec[] = "name: count\n"
                           "vertices:\n"
                           "  - {id: work, parallelism: 4, command: [\"/bin/true\"]}\n"
                           "config:\n"
                           "  restart-strategy.type: fixed-delay\n"
                           "  restart-strategy.fixed-delay.attempts: 100\n"
                           "  restart-strategy.fixed-delay.delay: 0 s\n";

static struct service s;

static void close_service(void)
{
    service_close(&s);
}

TestSuite(daemon, .fini = close_service, .timeout = 240);

static bool runs_with(const char *job, int64_t p)
{
    return state_is(&s, job, "Executing") && parallelism(&s, job, "work") == p;
}

Test(daemon, a_job_runs_grows_and_shrinks_with_its_agents)
{
    struct fake_agent *a, *b;
    char job[33];

    service_open(&s, BRISK, NULL);
    submit(&s, spec, job);
    a = agent_join(&s, "n1", 2);
    WAIT(&s, runs_with(job, 2) && agent_running(a) == 2);
    b = agent_join(&s, "n2", 2);
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
    agent_leave(b);
    WAIT(&s, runs_with(job, 2) && agent_running(a) == 2);
    cr_expect(eq(i64, status_number(&s, job, "slots", "used"), 2));
}

/* load_test.c - a long life in short: many jobs come, are rescaled, and end; nothing piles up */
#include "service/harness.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 500, AT_ONCE = 10, WARM = 50, BEFORE = 2, AFTER = 3, RSS_PERCENT = 5 };

static const char spec[] =
    "name: load\n"
    "vertices:\n"
    "  - {id: work, parallelism: 2, min_parallelism: 1, max_parallelism: 64, "
    "command: [\"/bin/true\"]}\n"
    "config:\n"
    "  jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout: 0 s\n"
    "  jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling: 0 s\n"
    "  jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout: 0 s\n";

/* AddressSanitizer keeps what was freed. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEPS_FREED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEPS_FREED true
#endif
#endif
#ifndef KEEPS_FREED
#define KEEPS_FREED false
#endif

static struct service s;
static struct fake_agent *agents[2];
static char jobs[AT_ONCE][33];

static void close_service(void)
{
    service_close(&s);
}

TestSuite(load, .fini = close_service, .timeout = 280);

/* ---- what the daemon holds ------------------------------------------------------------------ */

static long rss_kib(void)
{
    char path[64], line[256];
    long kib = 0;
    FILE *in;

    snprintf(path, sizeof path, "/proc/%d/status", (int)s.pid);
    in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = atol(line + 6);
    if (in)
        fclose(in);
    return kib;
}

static int descriptors(void)
{
    char path[64];
    int n = 0;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)s.pid);
    dir = opendir(path);
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* ---- a few jobs, from their submission to their end -------------------------------------------
 */

static bool all_run(uint32_t each)
{
    if (agent_running(agents[0]) + agent_running(agents[1]) != AT_ONCE * each)
        return false;
    for (int i = 0; i < AT_ONCE; i++)
        if (!state_is(&s, jobs[i], "Executing") || parallelism(&s, jobs[i], "work") != each)
            return false;
    return true;
}

static bool all_ended(void)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (!state_is(&s, jobs[i], "Finished"))
            return false;
    return agents[0]->tasks.n + agents[1]->tasks.n == 0;
}

static void finish_tasks(const char *job)
{
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < agents[k]->tasks.n; i++)
            if (strcmp(agents[k]->tasks.v[i].job, job) == 0)
                agent_end(agents[k], &agents[k]->tasks.v[i], "{\"how\":\"exited\",\"code\":0}");
}

static void live_and_end(void)
{
    for (int i = 0; i < AT_ONCE; i++)
        submit(&s, spec, jobs[i]);
    WAIT(&s, all_run(BEFORE));
    for (int i = 0; i < AT_ONCE; i++)
        cr_assert(eq(int,
                     call(&s, MESSAGE_SCALE,
                          "{\"job\":\"%s\",\"vertices\":{\"work\":{\"min\":1,\"max\":%d}}}",
                          jobs[i], AFTER),
                     0));
    WAIT(&s, all_run(AFTER));
    for (int i = 0; i < AT_ONCE; i++)
        if (i % 2 == 0)
            cr_assert(eq(int, call(&s, MESSAGE_CANCEL, "{\"job\":\"%s\"}", jobs[i]), 0));
        else
            finish_tasks(jobs[i]);
    WAIT(&s, all_ended());
}

Test(load, after_500_jobs_it_holds_what_it_held_after_50)
{
    long warm_kib = 0;
    int warm_descriptors = 0;

    service_open(&s, "-D", "pliant.daemon.ended-jobs=20", NULL);
    for (int k = 0; k < 2; k++)
        agents[k] = agent_join(&s, k ? "n2" : "n1", AT_ONCE * AFTER / 2);
    for (int done = AT_ONCE; done <= JOBS; done += AT_ONCE) {
        live_and_end();
        if (done == WARM) {
            warm_kib = rss_kib();
            warm_descriptors = descriptors();
        }
    }
    cr_log_info("%ld kB after %d jobs, %ld kB after %d", warm_kib, WARM, rss_kib(), JOBS);
    cr_expect(KEEPS_FREED || rss_kib() * 100 <= warm_kib * (100 + RSS_PERCENT),
              "%ld kB, then %ld kB", warm_kib, rss_kib());
    cr_expect(le(int, descriptors(), warm_descriptors));
}

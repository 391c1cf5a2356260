/* pliant_agent_test.c - a real pliant-agent with real processes, and the daemon's end of its link */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/fake_daemon.h"

static struct fake f;

static void set_up(void)
{
    fake_open(&f);
}

static void tear_down(void)
{
    fake_close(&f);
}

TestSuite(agent, .init = set_up, .fini = tear_down, .timeout = 120);

static void start(void)
{
    fake_agent(&f, "--slots", "4", NULL);
    fake_hello(&f);
}

Test(agent, says_hello_with_all_that_it_is)
{
    const struct doc *d;

    fake_agent(&f, "--slots", "3", "--zone", "z1", "--label", "gpu=no", "--address", "10.0.0.1",
               NULL);
    d = fake_hello(&f);
    cr_assert_str_eq(fake_text(d, "node"), "n1");
    cr_assert_eq(fake_int(d, "slots"), 3);
    cr_assert_str_eq(fake_text(d, "zone"), "z1");
    cr_assert_str_eq(fake_text(d, "labels.gpu"), "no");
    cr_assert_str_eq(fake_text(d, "address"), "10.0.0.1");
    cr_assert_eq(fake_int(d, "pid"), f.agent);
    cr_assert_gt(strtoull(fake_text(d, "incarnation"), NULL, 10), 1000000000000ULL);
}

Test(agent, runs_a_task_and_tells_how_it_ended)
{
    const struct doc *d;

    start();
    fake_deploy(&f, 0, 1, "exit 7", "");
    d = fake_state(&f, 0, 1, "ended");
    cr_assert_str_eq(fake_text(d, "end.how"), "exited");
    cr_assert_eq(fake_int(d, "end.code"), 7);
    fake_deploy(&f, 0, 2, "exec sleep 1000", "");
    d = fake_state(&f, 0, 2, "running");
    cr_assert(fake_lives(fake_int(d, "pid")));
    kill((pid_t)fake_int(d, "pid"), SIGKILL);
    d = fake_state(&f, 0, 2, "ended");
    cr_assert_str_eq(fake_text(d, "end.how"), "killed");
    cr_assert_str_eq(fake_text(d, "end.signal"), "KILL");
    cr_assert(!fake_bool(d, "end.oom"));
}

Test(agent, stops_a_task)
{
    const struct doc *d;
    int64_t pid;

    start();
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_stop(&f, 0, 1, 30000);
    d = fake_state(&f, 0, 1, "ended");
    cr_assert_str_eq(fake_text(d, "end.how"), "stopped");
    cr_assert_str_eq(fake_text(d, "end.signal"), "TERM");
    cr_assert(!fake_lives(pid));
}

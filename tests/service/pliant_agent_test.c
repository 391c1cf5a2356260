/* pliant_agent_test.c - a real pliant-agent with real processes, and the daemon's end of its link
 */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "service/fake_daemon.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_SANITIZER 1
#elif defined(__has_feature)
#define WITH_SANITIZER __has_feature(address_sanitizer)
#else
#define WITH_SANITIZER 0
#endif

static struct fake f;

static void set_up(void)
{
    fake_open(&f);
}

static void tear_down(void)
{
    fake_close(&f);
}

TestSuite(agent_socket, .init = set_up, .fini = tear_down, .timeout = 240);
TestSuite(agent, .init = set_up, .fini = tear_down, .timeout = 240);

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

/* ---- starting
 * ------------------------------------------------------------------------------------ */

Test(agent, tells_why_a_task_cannot_start)
{
    static const struct {
        const char *command, *more, *cause;
    } rows[] = {
        {"[\"no-such-program\",\"x\"]", "", "cannot run no-such-program: No such file"},
        {"[\"/etc/passwd\"]", "", "cannot run /etc/passwd: Permission denied"},
        {"[\"true\"]", ",\"cwd\":\"/no/such/dir\"", "cannot enter the directory /no/such/dir: No"},
        {"[]", "", "no command"},
        {"[\"true\",7]", "", "DEPLOY:1: command[1]"},
    };

    start();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct doc *d;

        fake_send(&f, MESSAGE_DEPLOY, "{\"tasks\":[{" FAKE_TASK ",\"slot\":0,\"command\":%s%s}]}",
                  0, (int)i, rows[i].command, rows[i].more);
        d = fake_state(&f, 0, (int)i, "ended");
        cr_expect_str_eq(fake_text(d, "end.how"), "not-started", "row %zu", i);
        cr_expect(strstr(fake_text(d, "end.cause"), rows[i].cause), "row %zu: %s", i,
                  fake_text(d, "end.cause"));
    }
    fake_send(&f, MESSAGE_DEPLOY, "{\"tasks\":[{" FAKE_TASK ",\"slot\":4,\"command\":[\"true\"]}]}",
              0, 9);
    cr_expect_str_eq(fake_text(fake_state(&f, 0, 9, "ended"), "end.how"), "not-started");
}

Test(agent, starts_a_task_once_however_often_it_is_told)
{
    int64_t pid;

    start();
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    cr_assert_eq(fake_int(fake_state(&f, 0, 1, "running"), "pid"), pid);
}

Test(agent, does_not_start_in_a_slot_before_the_older_attempt_has_ended)
{
    int64_t old;

    start();
    fake_deploy(&f, 0, 1,
                "trap 'sleep 0.3; exit 0' TERM; touch ready; while :; do sleep 0.05; done", "");
    old = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_deploy(&f, 0, 2, "exec sleep 1000", "");
    fake_state(&f, 0, 2, "starting");
    fake_stop(&f, 0, 1, 30000);
    fake_state(&f, 0, 2, "running");
    cr_assert(!fake_lives(old));
}

Test(agent, starts_tasks_of_several_vertices_of_a_job_in_one_slot)
{
    int64_t pid;

    start();
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_send(&f, MESSAGE_DEPLOY,
              "{\"tasks\":[{\"job\":\"" FAKE_JOB "\",\"vertex\":\"w\",\"subtask\":7,\"attempt\":1,"
              "\"slot\":0,\"command\":[\"sleep\",\"1000\"]}]}");
    fake_state(&f, 7, 1, "running");
    cr_assert(fake_lives(pid));
}

static char *environment_of(const struct doc *running, const char *name)
{
    char path[64], *text, *value = NULL;
    FILE *in;
    size_t n;

    snprintf(path, sizeof path, "/proc/%lld/environ", (long long)fake_int(running, "pid"));
    in = fopen(path, "r");
    cr_assert(in);
    text = calloc(1, 65536);
    n = fread(text, 1, 65535, in);
    fclose(in);
    for (char *at = text; at < text + n && !value; at += strlen(at) + 1)
        if (strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == '=')
            value = strdup(at + strlen(name) + 1);
    free(text);
    return value ? value : strdup("(unset)");
}

Test(agent, gives_a_task_its_environment) /* [W-ENV-1] */
{
    const struct doc *d;
    char *value, *text;

    setenv("PLIANT_OF_THE_AGENT", "1", 1);
    setenv("INHERITED", "from the agent", 1);
    setenv("GIVEN", "no", 1);
    setenv("OMP_NUM_THREADS", "3", 1);
    start();
    fake_send(&f, MESSAGE_DEPLOY,
              "{\"tasks\":[{" FAKE_TASK
              ",\"slot\":0,\"command\":[\"sleep\",\"1000\"],\"group\":true,"
              "\"env\":{\"GIVEN\":\"yes\",\"OMP_NUM_THREADS\":\"1\",\"PLIANT_ATTEMPT\":\"4\"}}],"
              "\"peers\":{\"" FAKE_JOB "\":[{\"vertex\":\"v\",\"subtask\":0}]}}",
              0, 4);
    d = fake_state(&f, 0, 4, "running");
    cr_expect_str_eq(value = environment_of(d, "GIVEN"), "yes");
    free(value);
    cr_expect_str_eq(value = environment_of(d, "INHERITED"), "from the agent");
    free(value);
    cr_expect_str_eq(value = environment_of(d, "OMP_NUM_THREADS"), "3", "inherited goes first");
    free(value);
    cr_expect_str_eq(value = environment_of(d, "PLIANT_OF_THE_AGENT"), "(unset)");
    free(value);
    cr_expect_str_eq(value = environment_of(d, "PLIANT_ATTEMPT"), "4");
    free(value);
    value = environment_of(d, "TORCHELASTIC_ERROR_FILE");
    cr_expect(strstr(value, "v-0.4.error.json"), "%s", value);
    free(value);
    value = environment_of(d, "PLIANT_PEERS");
    cr_expect_str_eq(text = fake_read_file(value), "[{\"vertex\":\"v\",\"subtask\":0}]");
    free(text);
    free(value);
    value = environment_of(d, "PLIANT_PREEMPTION_FILE");
    cr_expect(*value == '/' && access(value, F_OK) != 0);
    free(value);
}

/* ---- ends
 * ------------------------------------------------------------------------------------------ */

Test(agent, takes_the_cause_from_the_error_file) /* [W-ENV-5] */
{
    static const char *const texts[] = {"{\"message\":{\"message\":\"it broke\",\"extraInfo\":{}}}",
                                        "{\"message\":\"it broke\"}"};

    start();
    for (int i = 0; i < 2; i++) {
        char script[256];

        snprintf(script, sizeof script, "echo '%s' > $TORCHELASTIC_ERROR_FILE; exit 1", texts[i]);
        fake_deploy(&f, 0, i, script, ",\"group\":true");
        cr_expect_str_eq(fake_text(fake_state(&f, 0, i, "ended"), "end.cause"), "it broke");
    }
}

Test(agent, knows_a_port_that_was_taken)
{
    static const char script[] = "echo 'OSError: [Errno 98] Address already in use' >&2; exit 1";

    start();
    fake_deploy(&f, 0, 1, script, ",\"group\":true");
    cr_expect(fake_bool(fake_state(&f, 0, 1, "ended"), "end.port_in_use"));
    fake_deploy(&f, 0, 2, script, ""); /* no worker group: no port of ours */
    cr_expect(!fake_bool(fake_state(&f, 0, 2, "ended"), "end.port_in_use"));
    fake_deploy(&f, 0, 3, "exit 1", ",\"group\":true");
    cr_expect(!fake_bool(fake_state(&f, 0, 3, "ended"), "end.port_in_use"));
}

Test(agent, keeps_an_ended_task_until_it_is_forgotten)
{
    const struct doc *d;

    start();
    fake_deploy(&f, 0, 1, "exit 0", "");
    fake_state(&f, 0, 1, "ended");
    fake_send(&f, MESSAGE_RESYNC, "{}");
    d = fake_hello(&f);
    cr_assert_str_eq(fake_text(doc_get(d, "tasks")->child, "end.how"), "exited");
    fake_send(&f, MESSAGE_FORGET, "{\"tasks\":[{" FAKE_TASK "}]}", 0, 1);
    fake_send(&f, MESSAGE_RESYNC, "{}");
    cr_assert_eq(doc_get(fake_hello(&f), "tasks")->n, 0);
}

/* ---- stopping
 * ---------------------------------------------------------------------------------------- */

/* Its traps are set once it has written `ready` in its private directory. */
#define DEAF "trap '' TERM; touch ready; while :; do sleep 0.05; done"

Test(agent, kills_what_is_deaf_to_the_stop_after_its_own_timeout) /* [W-SIG-1, W-SIG-2] */
{
    int64_t since_ms;

    start();
    fake_deploy(&f, 0, 1, DEAF, "");
    fake_deploy(&f, 1, 1, DEAF, "");
    fake_deploy(&f, 2, 1, "exec sleep 1000", "");
    fake_until_ready(&f, 0);
    fake_until_ready(&f, 1);
    since_ms = fake_now_ms();
    fake_send(&f, MESSAGE_STOP,
              "{\"tasks\":[{" FAKE_TASK ",\"stop_timeout_ms\":600000},{" FAKE_TASK
              ",\"stop_timeout_ms\":300},{" FAKE_TASK ",\"stop_timeout_ms\":600000}]}",
              0, 1, 1, 1, 2, 1);
    cr_expect_str_eq(fake_text(fake_state(&f, 2, 1, "ended"), "end.signal"), "TERM");
    cr_expect_str_eq(fake_text(fake_state(&f, 1, 1, "ended"), "end.signal"), "KILL");
    cr_expect_geq(fake_now_ms() - since_ms, 300, "%lld ms", (long long)(fake_now_ms() - since_ms));
    fake_stop(&f, 0, 1, 0); /* sooner */
    cr_expect_str_eq(fake_text(fake_state(&f, 0, 1, "ended"), "end.how"), "stopped");
}

Test(agent, kills_at_the_latest_when_the_deadline_says_so) /* [W-SIG-3] */
{
    struct timespec t;

    start();
    fake_deploy(&f, 0, 1, DEAF, "");
    fake_until_ready(&f, 0);
    clock_gettime(CLOCK_REALTIME, &t);
    fake_send(&f, MESSAGE_STOP,
              "{\"tasks\":[{" FAKE_TASK ",\"stop_timeout_ms\":600000,\"kill_at_unix_ms\":%lld}]}",
              0, 1, (long long)t.tv_sec * 1000 + 400);
    cr_expect_str_eq(fake_text(fake_state(&f, 0, 1, "ended"), "end.signal"), "KILL");
}

/* A descendant that left its session, its group and its parent. */
#define DAEMON                                                                                     \
    "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' &) ; "                                      \
    "while [ ! -s daemon ]; do sleep 0.01; done; "

Test(agent, leaves_no_descendant_behind) /* [W-SIG-5] */
{
    start();
    fake_deploy(&f, 0, 1, DAEMON "touch ready; exec sleep 1000", "");
    fake_deploy(&f, 1, 1, DAEMON "touch ready; exec sleep 1000", "");
    fake_until_ready(&f, 0);
    fake_until_ready(&f, 1);
    fake_stop(&f, 0, 1, 30000);
    fake_state(&f, 0, 1, "ended");
    cr_expect(!fake_lives(fake_daemon_of(&f, 0)), "told as ended only when all of it is gone");
    cr_expect(fake_lives(fake_daemon_of(&f, 1)), "that of another task lives on");
    fake_deploy(&f, 2, 1, DAEMON "exit 0", "");
    fake_state(&f, 2, 1, "ended");
    cr_expect(!fake_lives(fake_daemon_of(&f, 2)));
}

Test(agent, lets_the_rest_of_the_group_clean_up_when_the_first_process_has_ended)
{
    char path[160];

    start();
    fake_deploy(&f, 0, 1,
                "sh -c 'trap \"sleep 0.3; touch ../../../cleaned; exit\" TERM; touch ready; "
                "while :; do sleep 0.05; done' & wait",
                "");
    fake_until_ready(&f, 0);
    fake_stop(&f, 0, 1, 30000);
    fake_state(&f, 0, 1, "ended");
    snprintf(path, sizeof path, "%s/cleaned", f.work);
    cr_expect(access(path, F_OK) == 0);
}

/* ---- the death of agent and keeper
 * --------------------------------------------------------------------- */

Test(agent, takes_its_tasks_along_when_it_is_killed_and_says_so_at_once)
{
    int64_t pid;
    char incarnation[32];
    const struct doc *d;

    fake_agent(&f, NULL);
    snprintf(incarnation, sizeof incarnation, "%s", fake_text(fake_hello(&f), "incarnation"));
    fake_deploy(&f, 0, 1, DEAF, "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_until_ready(&f, 0);
    fake_signal(&f, SIGKILL);
    d = fake_next(&f, MESSAGE_GOODBYE);
    cr_expect_str_eq(fake_text(d, "node"), "n1");
    cr_expect_str_eq(fake_text(d, "incarnation"), incarnation);
    fake_until_gone(pid);
    fake_until_gone(fake_keeper(&f));
}

Test(agent, reports_tasks_whose_keeper_was_killed_and_goes_on)
{
    const struct doc *d;
    int64_t daemon;

    start();
    fake_deploy(&f, 0, 1, DAEMON "touch ready; exec sleep 1000", "");
    fake_state(&f, 0, 1, "running");
    fake_until_ready(&f, 0);
    daemon = fake_daemon_of(&f, 0);
    kill(fake_keeper(&f), SIGKILL);
    d = fake_state(&f, 0, 1, "ended");
    cr_expect_str_eq(fake_text(d, "end.how"), "killed");
    cr_expect(!fake_lives(fake_int(d, "pid")));
    cr_expect(!fake_lives(daemon));
    fake_deploy(&f, 0, 2, "exit 3", "");
    cr_expect_eq(fake_int(fake_state(&f, 0, 2, "ended"), "end.code"), 3);
}

Test(agent, ends_what_an_earlier_life_left_behind_before_it_offers_slots) /* known trouble 108 */
{
    int64_t pid;
    uint64_t first;

    fake_agent(&f, NULL);
    first = strtoull(fake_text(fake_hello(&f), "incarnation"), NULL, 10);
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    kill(f.agent, SIGSTOP);
    kill(fake_keeper(&f), SIGKILL);
    fake_signal(&f, SIGKILL);
    fake_wait(&f);
    cr_assert(fake_lives(pid));
    fake_agent(&f, NULL);
    cr_expect_gt(strtoull(fake_text(fake_hello(&f), "incarnation"), NULL, 10), first);
    cr_expect(!fake_lives(pid));
}

Test(agent, waits_for_the_end_of_an_earlier_life_when_it_is_started_at_once) /* known trouble 114 */
{
    int64_t pid;

    start();
    fake_deploy(&f, 0, 1, DEAF, "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_until_ready(&f, 0);
    fake_signal(&f, SIGKILL);
    fake_wait(&f);
    start();
    cr_expect(!fake_lives(pid));
}

Test(agent, refuses_a_work_directory_that_is_in_use)
{
    pid_t first;

    start();
    first = f.agent;
    fake_agent(&f, NULL);
    cr_expect_eq(fake_wait(&f), 2);
    f.agent = first;
}

Test(agent, keeps_tasks_for_its_next_life)
{
    const struct doc *d;
    char incarnation[32];
    int64_t pid;

    fake_agent(&f, "--keep-tasks", "--slots", "4", NULL);
    d = fake_hello(&f);
    cr_expect(fake_bool(d, "keep_tasks"));
    snprintf(incarnation, sizeof incarnation, "%s", fake_text(d, "incarnation"));
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_deploy(&f, 1, 1, "while [ ! -e go ]; do sleep 0.01; done; exit 5", "");
    fake_state(&f, 1, 1, "running");
    fake_signal(&f, SIGKILL);
    fake_wait(&f);
    {
        char path[160];
        FILE *go;

        snprintf(path, sizeof path, "%s/tasks/1/work/go", f.work);
        go = fopen(path, "w");
        cr_assert(go);
        fclose(go);
    }
    fake_agent(&f, "--keep-tasks", "--slots", "4", NULL);
    d = fake_hello(&f);
    cr_expect_str_eq(fake_text(d, "incarnation"), incarnation, "the same life goes on");
    cr_expect_eq(doc_get(d, "tasks")->n, 2);
    for (d = doc_get(d, "tasks")->child; d; d = d->next) /* what it did meanwhile, now or soon */
        if (fake_int(d, "subtask") == 1 && strcmp(fake_text(d, "state"), "ended") == 0)
            break;
    cr_expect_eq(fake_int(d ? d : fake_state(&f, 1, 1, "ended"), "end.code"), 5);
    cr_expect(fake_lives(pid));
    fake_stop(&f, 0, 1, 1000);
    fake_state(&f, 0, 1, "ended");
    cr_expect(!fake_lives(pid));
}

Test(agent, gives_kept_tasks_up_after_the_orphan_timeout)
{
    int64_t pid;

    f.orphan_timeout_ms = 300;
    fake_agent(&f, "--keep-tasks", NULL);
    fake_hello(&f);
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_signal(&f, SIGKILL);
    fake_next(&f, MESSAGE_GOODBYE);
    fake_until_gone(pid);
}

/* ---- the end of an agent
 * ---------------------------------------------------------------------------------- */

Test(agent, drains_its_node_on_sigterm_and_ends_with_its_last_task) /* [W-PRE-21] */
{
    struct timespec t;
    int64_t deadline;
    const struct doc *d;

    start();
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    fake_state(&f, 0, 1, "running");
    fake_signal(&f, SIGTERM);
    d = fake_next(&f, MESSAGE_DRAIN);
    clock_gettime(CLOCK_REALTIME, &t);
    deadline = fake_int(d, "deadline_unix_ms") - (int64_t)t.tv_sec * 1000;
    cr_expect(deadline > 5000 && deadline <= 31000, "%lld", (long long)deadline);
    cr_expect_str_eq(fake_text(d, "reason"), "preemption");
    fake_deploy(&f, 1, 1, "exit 0", "");
    cr_expect_str_eq(fake_text(fake_state(&f, 1, 1, "ended"), "end.how"), "not-started");
    cr_expect(!fake_has_ended(&f));
    fake_stop(&f, 0, 1, 30000); /* as the scheduler moves it */
    fake_state(&f, 0, 1, "ended");
    fake_next(&f, MESSAGE_GOODBYE);
    cr_expect_eq(fake_wait(&f), 0);
    fake_until_gone(fake_keeper(&f));
}

Test(agent, ends_at_the_deadline_of_its_drain_whatever_tasks_do) /* known trouble 105 */
{
    const struct doc *d;
    int64_t pid, since_ms;

    fake_agent(&f, "--drain-timeout", "600 ms", NULL);
    fake_hello(&f);
    fake_deploy(&f, 0, 1, DEAF, "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_until_ready(&f, 0);
    since_ms = fake_now_ms();
    fake_signal(&f, SIGTERM);
    d = fake_state(&f, 0, 1, "ended");
    cr_expect_str_eq(fake_text(d, "end.how"), "killed", "the daemon did not ask for it");
    cr_expect_geq(fake_now_ms() - since_ms, 500);
    cr_expect_eq(fake_wait(&f), 0);
    cr_expect(!fake_lives(pid));
}

Test(agent, does_not_tell_success_of_what_it_has_stopped_itself) /* known trouble 106 */
{
    const struct doc *d;

    fake_agent(&f, "--drain-timeout", "6 s", NULL); /* the last third is for stopping */
    fake_hello(&f);
    fake_deploy(&f, 0, 1, "trap 'exit 0' TERM; touch ready; while :; do sleep 0.02; done", "");
    fake_until_ready(&f, 0);
    fake_signal(&f, SIGTERM);
    d = fake_state(&f, 0, 1, "ended");
    cr_expect_str_eq(fake_text(d, "end.how"), "killed");
    cr_expect_str_eq(fake_text(d, "end.signal"), "TERM");
    cr_expect(*fake_text(d, "end.cause"));
    cr_expect_eq(fake_wait(&f), 0);
}

Test(agent, ends_at_once_when_asked_twice)
{
    static const int signals[] = {SIGTERM, SIGINT};

    for (size_t i = 0; i < 2; i++) {
        int64_t pid;

        start();
        fake_deploy(&f, 0, 1, "trap '' INT;" DEAF, "");
        pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
        fake_until_ready(&f, 0);
        fake_signal(&f, signals[i]);
        while (!fake_has_ended(&f)) {
            kill(f.agent, signals[i]); /* two that come at once count as one */
            fake_pause();
        }
        cr_expect_eq(fake_wait(&f), 0);
        fake_until_gone(pid);
    }
}

Test(agent, hands_signals_to_its_tasks) /* [W-SIG-4] */
{
    static const struct {
        int signal;
        const char *name;
    } rows[] = {{SIGHUP, "HUP"}, {SIGQUIT, "QUIT"}, {SIGUSR1, "USR1"}, {SIGINT, "INT"}};
    char path[160];

    fake_agent(&f, "--forward-signals", "USR1", NULL);
    fake_hello(&f);
    fake_deploy(&f, 0, 1,
                "for s in HUP QUIT USR1 USR2 INT; do trap \"touch $s\" $s; done; touch ready; "
                "while :; do sleep 0.02; done",
                "");
    fake_until_ready(&f, 0);
    fake_signal(&f, SIGUSR2); /* not listed */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_signal(&f, rows[i].signal);
        snprintf(path, sizeof path, "%s/tasks/0/work/%s", f.work, rows[i].name);
        fake_until_file(path);
    }
    snprintf(path, sizeof path, "%s/tasks/0/work/USR2", f.work);
    cr_expect(access(path, F_OK) != 0);
    cr_expect(!fake_has_ended(&f));
}

/* ---- the session
 * --------------------------------------------------------------------------------------------- */

Test(agent, says_hello_again_to_a_daemon_that_was_started_again) /* known trouble 117 */
{
    const struct doc *d;
    int64_t pid;

    start();
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    fake_unbind(&f);
    fake_bind(&f);
    d = fake_hello(&f); /* long before the heartbeat timeout */
    cr_expect_eq(fake_int(doc_get(d, "tasks")->child, "pid"), pid);
    cr_expect(fake_lives(pid));
}

/* From here on the daemon must be heard so often. What comes before takes its time. */
static void greet_with_timeout(int64_t heartbeat_timeout_ms)
{
    f.heartbeat_timeout_ms = heartbeat_timeout_ms;
    fake_send(&f, MESSAGE_RESYNC, "{}");
    fake_hello(&f);
}

Test(agent, connects_anew_when_the_daemon_is_silent)
{
    const struct doc *d;
    int64_t pid;

    start();
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    greet_with_timeout(500);
    fake_unbind(&f);
    fake_bind(&f);
    d = fake_hello(&f);
    cr_expect_eq(fake_int(doc_get(d, "tasks")->child, "pid"), pid);
    cr_expect_str_eq(fake_text(d, "epoch"), "1");
}

Test(agent, starts_a_new_session_when_messages_got_lost)
{
    start();
    f.sent++;
    fake_deploy(&f, 0, 1, "exit 0", "");
    cr_expect_eq(doc_get(fake_hello(&f), "tasks")->n, 0);
}

Test(agent, does_not_listen_to_an_older_daemon)
{
    start();
    f.epoch = 0;
    fake_deploy(&f, 0, 1, "exit 0", "");
    f.epoch = 1;
    f.sent--;
    fake_deploy(&f, 0, 2, "exit 0", "");
    fake_state(&f, 0, 2, "ended");
    fake_send(&f, MESSAGE_RESYNC, "{}");
    cr_expect_eq(doc_get(fake_hello(&f), "tasks")->n, 1);
}

Test(agent, ends_when_a_newer_one_is_there)
{
    start();
    fake_send(&f, MESSAGE_ERROR, "{\"code\":\"stale\",\"text\":\"newer\",\"of\":1}");
    cr_expect_eq(fake_wait(&f), 1);
}

Test(agent, stops_its_tasks_when_no_daemon_comes_back)
{
    int64_t pid;

    f.orphan_timeout_ms = 400;
    start();
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    greet_with_timeout(400);
    fake_unbind(&f);
    fake_until_gone(pid);
    cr_expect(!fake_has_ended(&f));
}

Test(agent, is_not_confused_by_a_rest)
{
    int64_t pid;

    start();
    fake_deploy(&f, 0, 1, "exec sleep 1000", "");
    pid = fake_int(fake_state(&f, 0, 1, "running"), "pid");
    greet_with_timeout(4000);
    fake_signal(&f, SIGSTOP);
    for (int64_t until_ms = fake_now_ms() + 5500; fake_now_ms() < until_ms;)
        fake_pause();
    fake_signal(&f, SIGCONT);
    fake_deploy(&f, 1, 1, "exit 0", "");
    fake_state(&f, 1, 1, "ended"); /* in the same session: no HELLO came before */
    cr_expect(fake_lives(pid));
}

Test(agent, tries_its_endpoints_in_turn)
{
    char nobody[96];

    snprintf(nobody, sizeof nobody, "ipc://%s/nobody", f.dir);
    {
        char known[96];

        snprintf(known, sizeof known, "%s", f.endpoint);
        strcpy(f.endpoint, nobody);
        fake_agent(&f, "--connect", known, NULL);
    }
    fake_hello(&f);
}

/* ---- logs, ports, usage
 * --------------------------------------------------------------------------------------- */

Test(agent, reads_logs)
{
    const struct doc *d;

    start();
    fake_deploy(&f, 0, 1, "printf 0123456789; echo oops >&2; exec sleep 1000", "");
    fake_state(&f, 0, 1, "running");
    {
        char path[200];
        int64_t size = 0;

        snprintf(path, sizeof path, "%s/logs/" FAKE_JOB "/v-0.1.stderr", f.work);
        while (size == 0) {
            char *text = fake_read_file(path);

            size = (int64_t)strlen(text);
            free(text);
            fake_pause();
        }
    }
    fake_send(&f, MESSAGE_READ_LOG,
              "{\"request\":\"7\"," FAKE_TASK ",\"stream\":\"stdout\",\"offset\":2,\"max\":5}", 0,
              1);
    d = fake_next(&f, MESSAGE_LOG);
    cr_expect_str_eq(fake_text(d, "request"), "7");
    cr_expect_str_eq(fake_text(d, "data"), "23456");
    cr_expect_eq(fake_int(d, "next"), 7);
    cr_expect_eq(fake_int(d, "size"), 10);
    cr_expect(!fake_bool(d, "ended"));
    fake_send(&f, MESSAGE_READ_LOG,
              "{\"request\":\"8\"," FAKE_TASK ",\"stream\":\"stderr\",\"offset\":-3,\"max\":500}",
              0, 1);
    cr_expect_str_eq(fake_text(fake_next(&f, MESSAGE_LOG), "data"), "ps\n");
    fake_send(&f, MESSAGE_READ_LOG,
              "{\"request\":\"9\"," FAKE_TASK ",\"stream\":\"stdout\",\"offset\":0,\"max\":500}", 3,
              1);
    cr_expect_str_eq(fake_text(fake_next(&f, MESSAGE_LOG), "error"), "there is no such log");
}

Test(agent, bounds_the_log_of_a_task_that_prints_on)
{
    const struct doc *d;
    int64_t offset = 0;

    start();
    fake_deploy(&f, 0, 1, "yes 0123456789 | head -c 20000000; echo; echo end; exec sleep 1000", "");
    fake_state(&f, 0, 1, "running");
    while (offset == 0) {
        fake_send(&f, MESSAGE_READ_LOG,
                  "{\"request\":\"1\"," FAKE_TASK ",\"stream\":\"stdout\",\"offset\":0,\"max\":11}",
                  0, 1);
        offset = fake_int(fake_next(&f, MESSAGE_LOG), "offset");
        fake_pause();
    }
    cr_expect_geq(offset, 1000000); /* the beginning is gone, offsets stay */
    fake_send(&f, MESSAGE_READ_LOG,
              "{\"request\":\"1\"," FAKE_TASK ",\"stream\":\"stdout\",\"offset\":-5,\"max\":11}", 0,
              1);
    d = fake_next(&f, MESSAGE_LOG);
    cr_expect(fake_int(d, "size") > 16000000 || strcmp(fake_text(d, "data"), "end\n") == 0);
}

static int bind_port(int64_t port, bool reuse)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int s = socket(AF_INET, SOCK_STREAM, 0), yes = 1, r;

    if (reuse)
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    r = bind(s, (const struct sockaddr *)&at, sizeof at) == 0 && listen(s, 1) == 0 ? 0 : -1;
    close(s);
    return r;
}

Test(agent, holds_a_port_for_a_worker_group) /* [W-ENV-3] */
{
    int64_t first, second;
    const struct doc *d;

    start();
    fake_send(&f, MESSAGE_RESERVE_PORT, "{\"job\":\"" FAKE_JOB "\",\"attempt\":1,\"avoid\":[]}");
    d = fake_next(&f, MESSAGE_PORT);
    first = fake_int(d, "port");
    cr_expect_eq(bind_port(first, true), 0, "one that knows may listen");
    cr_expect_eq(bind_port(first, false), -1, "a stranger may not");
    fake_send(&f, MESSAGE_RESERVE_PORT, "{\"job\":\"" FAKE_JOB "\",\"attempt\":1,\"avoid\":[]}");
    cr_expect_eq(fake_int(fake_next(&f, MESSAGE_PORT), "port"), first, "asked twice");
    fake_send(&f, MESSAGE_RESERVE_PORT, "{\"job\":\"" FAKE_JOB "\",\"attempt\":2,\"avoid\":[%lld]}",
              (long long)first);
    second = fake_int(fake_next(&f, MESSAGE_PORT), "port");
    cr_expect(second > 0 && second != first);
}

/* ---- the worker's socket
 * ----------------------------------------------------------------------------------------- */

struct client {
    int fd;
    FILE *in;
    struct doc_file line;
};

static struct client connect_to_task(int id)
{
    struct client c = {.line.name = "answer"};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = FAKE_WAIT_MS / 1000};

    snprintf(at.sun_path, sizeof at.sun_path, "%s/tasks/%d/s", f.work, id);
    c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(connect(c.fd, (const struct sockaddr *)&at, sizeof at) == 0);
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    c.in = fdopen(c.fd, "r");
    return c;
}

static void disconnect(struct client *c)
{
    fclose(c->in);
    doc_free(&c->line);
}

static void tell(struct client *c, const char *text)
{
    cr_assert(send(c->fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
    cr_assert(send(c->fd, "\n", 1, MSG_NOSIGNAL) == 1);
}

static const struct doc *hear(struct client *c)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t n = getline(&text, &size, c->in);
    struct spec_error err;

    cr_assert_gt(n, 0, "no line came");
    cr_assert(doc_line(&c->line, text, (size_t)n, 1, &err) == 0, "%s", err.text);
    free(text);
    return c->line.root;
}

static const struct doc *ask(struct client *c, const char *text)
{
    tell(c, text);
    return hear(c);
}

static int64_t deploy_group(const char *more) /* its pid */
{
    char members[512];

    start();
    snprintf(members, sizeof members, ",\"group\":true,\"checkpoint_root\":\"/run/dir\"%s", more);
    fake_deploy(&f, 0, 1, "exec sleep 1000", members);
    return fake_int(fake_state(&f, 0, 1, "running"), "pid");
}

Test(agent_socket, answers_a_report_when_it_has_been_consumed)
{
    struct client c, again;
    const struct doc *d;

    deploy_group(",\"restore\":\"/run/dir/old\"");
    c = connect_to_task(0);
    d = ask(&c, "{\"op\":\"hello\",\"n\":5,\"library\":\"test 1\"}");
    cr_expect_eq(fake_int(d, "n"), 5);
    cr_expect_str_eq(fake_text(d, "vertex"), "v");
    cr_expect_str_eq(fake_text(d, "checkpoint_dir"), "/run/dir/old");
    cr_expect_str_eq(fake_text(d, "run_dir"), "/run/dir");
    cr_expect_eq(fake_int(d, "calls"), 0);
    cr_expect_str_eq(fake_text(ask(&c, "{\"op\":\"get_checkpoint\"}"), "dir"), "/run/dir/old");
    tell(&c, "{\"op\":\"report\",\"n\":6,\"call\":1,\"metrics\":{\"loss\":0.125},\"checkpoint\":"
             "\"c1\"}");
    d = fake_next(&f, MESSAGE_REPORT);
    cr_expect_eq(fake_int(d, "call"), 1);
    cr_expect_str_eq(fake_text(d, "checkpoint"), "c1");
    cr_expect_str_eq(doc_get(doc_get(d, "metrics"), "loss")->text, "0.125");
    again = connect_to_task(0); /* sent again on another connection */
    ask(&again, "{\"op\":\"hello\"}");
    tell(&again, "{\"op\":\"report\",\"n\":9,\"call\":1,\"checkpoint\":\"other\"}");
    fake_send(&f, MESSAGE_RESYNC, "{}"); /* it is not lost with a session */
    d = fake_hello(&f);
    cr_expect_str_eq(fake_text(doc_get(d, "tasks")->child, "report.checkpoint"), "c1");
    fake_send(&f, MESSAGE_REPORT_TAKEN, "{" FAKE_TASK ",\"call\":1}", 0, 1);
    d = hear(&c);
    cr_expect_eq(fake_int(d, "n"), 6);
    cr_expect_str_eq(fake_text(d, "checkpoint_dir"), "/run/dir/c1");
    cr_expect_eq(fake_int(hear(&again), "n"), 9);
    cr_expect(fake_bool(ask(&c, "{\"op\":\"report\",\"call\":1}"), "ok"), "answered before");
    cr_expect_str_eq(fake_text(ask(&c, "{\"op\":\"report\",\"call\":3}"), "code"), "out-of-order");
    tell(&c, "{\"op\":\"report\"}");
    cr_expect_eq(fake_int(fake_next(&f, MESSAGE_REPORT), "call"), 2, "absent: the next one");
    fake_send(&f, MESSAGE_REPORT_TAKEN, "{" FAKE_TASK ",\"call\":2,\"error\":\"ranks disagree\"}",
              0, 1);
    d = hear(&c);
    cr_expect_str_eq(fake_text(d, "code"), "failed");
    cr_expect_str_eq(fake_text(d, "text"), "ranks disagree");
    disconnect(&c);
    disconnect(&again);
}

Test(agent_socket, lets_ranks_meet) /* [W-PRE-20] */
{
    struct client c;
    const struct doc *d;

    deploy_group("");
    c = connect_to_task(0);
    ask(&c, "{\"op\":\"hello\"}");
    tell(&c, "{\"op\":\"enter\",\"n\":1,\"seq\":1,\"kind\":\"dir\",\"payload\":{\"a\":[1,\"x\"]}}");
    d = fake_next(&f, MESSAGE_ENTER);
    cr_expect_str_eq(fake_text(d, "kind"), "dir");
    cr_expect_eq(doc_get(doc_get(d, "payload"), "a")->n, 2);
    fake_send(&f, MESSAGE_RELEASED, "{" FAKE_TASK ",\"seq\":1,\"payload\":\"of rank 0\"}", 0, 1);
    cr_expect_str_eq(fake_text(hear(&c), "payload"), "of rank 0");
    cr_expect_str_eq(fake_text(ask(&c, "{\"op\":\"enter\",\"seq\":1}"), "payload"), "of rank 0");
    fake_send(&f, MESSAGE_NOTICE,
              "{\"job\":\"" FAKE_JOB "\",\"attempt\":1,\"info\":{\"deadline_ms\":77}}");
    cr_expect_eq(fake_int(hear(&c), "info.deadline_ms"), 77);
    {
        char path[160], *text;

        snprintf(path, sizeof path, "%s/tasks/0/preemption.json", f.work);
        cr_expect_str_eq(text = fake_read_file(path), "{\"deadline_ms\":77}");
        free(text);
    }
    tell(&c, "{\"op\":\"get_preemption_info\",\"seq\":2}");
    d = fake_next(&f, MESSAGE_ENTER);
    cr_expect_str_eq(fake_text(d, "kind"), "notice");
    cr_expect_eq(fake_int(d, "payload.deadline_ms"), 77);
    fake_send(&f, MESSAGE_RELEASED, "{" FAKE_TASK ",\"seq\":2,\"payload\":null}", 0, 1);
    cr_expect_eq(doc_get(hear(&c), "info")->kind, DOC_NULL, "rank 0 knows of none");
    cr_expect_str_eq(fake_text(ask(&c, "{\"op\":\"enter\",\"seq\":1}"), "code"), "out-of-order");
    disconnect(&c);
}

Test(agent_socket, hands_checkpoints_of_graph_jobs_on)
{
    struct client c;
    const struct doc *d;
    char dir[160];

    start();
    fake_deploy(&f, 0, 1, "exec sleep 1000", ",\"parallelism\":2");
    fake_state(&f, 0, 1, "running");
    fake_send(&f, MESSAGE_CHECKPOINT,
              "{\"job\":\"" FAKE_JOB "\",\"id\":\"18446744073709551615\",\"savepoint\":true,"
              "\"dir\":\"%s/cp\",\"tasks\":[{\"vertex\":\"v\",\"subtask\":0,\"attempt\":1}]}",
              f.dir);
    c = connect_to_task(0);
    ask(&c, "{\"op\":\"hello\",\"checkpoints\":true}");
    d = hear(&c); /* asked before it came: not lost */
    cr_expect_str_eq(fake_text(d, "ev"), "checkpoint");
    cr_expect_str_eq(fake_text(d, "id"), "18446744073709551615");
    cr_expect(fake_bool(d, "savepoint"));
    snprintf(dir, sizeof dir, "%s/cp/v/0-2", f.dir);
    cr_expect_str_eq(fake_text(d, "dir"), dir);
    cr_expect(access(dir, W_OK) == 0);
    d = ask(&c, "{\"op\":\"part\",\"id\":\"18446744073709551615\",\"ok\":true,\"bytes\":12}");
    cr_expect(fake_bool(d, "ok"));
    d = doc_get(fake_next(&f, MESSAGE_PARTS), "parts")->child;
    cr_expect_str_eq(fake_text(d, "id"), "18446744073709551615");
    cr_expect_eq(fake_int(d, "bytes"), 12);
    cr_expect(fake_bool(ask(&c, "{\"op\":\"end_of_data\"}"), "ok"));
    fake_next(&f, MESSAGE_END_OF_DATA);
    fake_stop(&f, 0, 1, 30000);
    cr_expect_str_eq(fake_text(hear(&c), "ev"), "stop");
    disconnect(&c);
}

Test(agent_socket, refuses_what_is_no_request)
{
    static const struct {
        const char *line, *code;
    } rows[] = {
        {"", "malformed"},
        {"[]", "malformed"},
        {"{\"op\":\"hello\"", "malformed"},
        {"{\"op\":7}", "malformed"},
        {"{}", "malformed"},
        {"{\"op\":\"dance\",\"n\":1}", "unknown-op"},
        {"{\"op\":\"report\",\"checkpoint\":\"../x\"}", "malformed"},
        {"{\"op\":\"report\",\"checkpoint\":\"..\"}", "malformed"},
        {"{\"op\":\"report\",\"call\":0}", "malformed"},
        {"{\"op\":\"report\",\"metrics\":[]}", "malformed"},
        {"{\"op\":\"part\",\"id\":7,\"ok\":true}", "malformed"},
        {"{\"op\":\"part\",\"id\":\"7\"}", "malformed"},
        {"{\"op\":\"part\",\"id\":\"99999999999999999999\",\"ok\":true}", "malformed"},
    };
    struct client c;
    char *line = calloc(1, 300000);

    deploy_group("");
    c = connect_to_task(0);
    cr_expect_str_eq(fake_text(ask(&c, "{\"op\":\"report\"}"), "code"), "out-of-order");
    ask(&c, "{\"op\":\"hello\"}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_str_eq(fake_text(ask(&c, rows[i].line), "code"), rows[i].code, "row %zu", i);
    memset(line, 'x', 299999);
    send(c.fd, line, 299999, MSG_NOSIGNAL);
    cr_expect_str_eq(fake_text(hear(&c), "code"), "malformed");
    cr_expect_eq(fgetc(c.in), EOF, "and closed");
    free(line);
    disconnect(&c);
}

Test(agent_socket, cuts_off_a_worker_that_does_not_read)
{
    static const char requests[] = "{\"op\":\"get_checkpoint\"}\n{\"op\":\"fly\"}\n";
    struct client c;
    char byte;

    deploy_group("");
    c = connect_to_task(0);
    ask(&c, "{\"op\":\"hello\"}");
    for (int i = 0; i < 100000; i++) /* each gets an answer */
        if (send(c.fd, requests, strlen(requests), MSG_NOSIGNAL) < 0)
            break;
    while (recv(c.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && recv(c.fd, &byte, 1, 0) == 1)
        continue;
    cr_expect_eq(send(c.fd, "x", 1, MSG_NOSIGNAL), -1, "the connection is gone");
    fake_deploy(&f, 1, 1, "exit 0", ""); /* and nobody else has noticed */
    fake_state(&f, 1, 1, "ended");
    disconnect(&c);
}

/* The next check, not answered yet. */
static int64_t hear_check(struct client *c)
{
    const struct doc *d = hear(c);

    cr_assert_str_eq(fake_text(d, "ev"), "health");
    return fake_int(d, "n");
}

static void answer_check(struct client *c, int64_t n)
{
    char text[64];

    snprintf(text, sizeof text, "{\"op\":\"health\",\"n\":%lld}", (long long)n);
    tell(c, text);
}

Test(agent_socket, kills_a_worker_that_leaves_its_health_check_unanswered) /* [W-GRP-8] */
{
    struct client c, other;
    const struct doc *d;
    int64_t pid, began_ms, silent_ms, n = 0;

    pid = deploy_group(",\"health_check_interval_ms\":100,\"health_check_timeout_ms\":4000");
    other = connect_to_task(0);
    ask(&other, "{\"op\":\"hello\"}"); /* takes no part, and is asked nothing */
    c = connect_to_task(0);
    ask(&c, "{\"op\":\"hello\",\"health\":true}");
    began_ms = fake_now_ms();
    do {
        cr_assert_eq(hear_check(&c), ++n);
        answer_check(&c, n);
    } while (fake_now_ms() - began_ms < 5000);
    cr_expect(fake_lives(pid));
    hear_check(&c);
    silent_ms = fake_now_ms();
    answer_check(&c, n); /* of another check: no answer */
    d = fake_state(&f, 0, 1, "ended");
    cr_expect_geq(fake_now_ms() - silent_ms, 3900);
    cr_expect_str_eq(fake_text(d, "end.how"), "killed");
    cr_expect(fake_bool(d, "end.hung"));
    cr_expect_str_eq(fake_text(d, "end.cause"), "the health check was unanswered for 4 s");
    cr_expect(!fake_lives(pid));
    cr_expect_str_eq(fake_text(hear(&other), "ev"), "stop", "the first that it hears");
    disconnect(&c);
    disconnect(&other);
}

Test(agent_socket, does_not_count_its_own_pause_as_a_workers_silence) /* [W-GRP-8] */
{
    struct client c;
    int64_t since_ms;

    deploy_group(",\"health_check_interval_ms\":4000,\"health_check_timeout_ms\":4000");
    c = connect_to_task(0);
    ask(&c, "{\"op\":\"hello\",\"health\":true}");
    cr_assert_eq(hear_check(&c), 1);
    fake_signal(&f, SIGSTOP);
    for (since_ms = fake_now_ms(); fake_now_ms() - since_ms < 8000;) /* far beyond the timeout */
        fake_pause();
    fake_signal(&f, SIGCONT);
    for (since_ms = fake_now_ms(); fake_now_ms() - since_ms < 200;)
        fake_pause();
    answer_check(&c, 1);
    cr_expect_eq(hear_check(&c), 2, "it lives");
    disconnect(&c);
}

Test(agent, lives_with_closed_descriptors) /* known trouble 130 */
{
    char command[600];

    snprintf(command, sizeof command,
             "exec " PLIANT_PROGRAMS "/pliant-agent --node n1 --work-dir %s --connect %s "
             "<&- >&- 2>&-",
             f.work, f.endpoint);
    f.agent = fork();
    if (f.agent == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    fake_hello(&f);
    fake_deploy(&f, 0, 1, "echo out; echo err >&2; exit 0", "");
    cr_expect_eq(fake_int(fake_state(&f, 0, 1, "ended"), "end.code"), 0);
}

Test(agent, takes_no_notice_of_a_burst_of_signals) /* known troubles 122, 128 */
{
    const int signals[] = {SIGUSR1, SIGUSR2, SIGCHLD, SIGWINCH,  SIGPIPE,
                           SIGALRM, SIGXFSZ, SIGPWR,  SIGVTALRM, SIGRTMIN};

    start();
    for (size_t i = 0; i < 1000; i++)
        fake_signal(&f, signals[i % (sizeof signals / sizeof *signals)]);
    fake_deploy(&f, 0, 1, "exit 0", "");
    fake_state(&f, 0, 1, "ended");
}

/* ---- what it costs ------------------------------------------------------------------------------
 */

static long number_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtol(at + strlen(word), NULL, 10) : -1;
}

/* Ticks of processor time that the agent has had. */
static unsigned long agent_ticks(void)
{
    unsigned long user = 0, system = 0;
    char path[64], *text;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)f.agent);
    text = fake_read_file(path);
    sscanf(strrchr(text, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
           &system);
    free(text);
    return user + system;
}

Test(agent, costs_little_when_idle)
{
    unsigned long ticks;
    char path[64], *text;
    long rss_kib;

    start();
    fake_next(&f, MESSAGE_HEARTBEAT); /* it has started */
    ticks = agent_ticks();
    for (int i = 0; i < 10; i++)
        fake_next(&f, MESSAGE_HEARTBEAT);
    ticks = agent_ticks() - ticks;
    snprintf(path, sizeof path, "/proc/%d/status", (int)f.agent);
    text = fake_read_file(path);
    rss_kib = number_behind(text, "VmRSS:");
    free(text);
    cr_log_info("idle agent: %ld KiB, %lu ticks", rss_kib, ticks);
    if (!WITH_SANITIZER)
        cr_expect_leq(rss_kib, 8192);
    cr_expect_leq(ticks * 1000 / (unsigned long)sysconf(_SC_CLK_TCK), 40);
}

/* pliantd_test.c - a real pliantd with agents that are only played */
#define _GNU_SOURCE /* prlimit() */
#include "service/harness.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define TIMEOUT_MS 6000 /* as below; agents act in time even if the machine stumbles */
#define BRISK                                                                                      \
    "-D", "heartbeat.interval=200 ms", "-D", "heartbeat.timeout=6 s", "-D",                        \
        "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling=0 s", "-D",              \
        "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout=0 s", "-D",        \
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout=300 ms"

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

/* The newest attempt of the tasks that an agent runs. */
static uint32_t attempt_on(const struct fake_agent *a)
{
    uint32_t newest = 0;

    for (size_t i = 0; i < a->tasks.n; i++)
        if (strcmp(a->tasks.v[i].state, "running") == 0 && a->tasks.v[i].attempt > newest)
            newest = a->tasks.v[i].attempt;
    return newest;
}

static struct fake_task *running_task(struct fake_agent *a)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        if (strcmp(a->tasks.v[i].state, "running") == 0)
            return &a->tasks.v[i];
    return NULL;
}

/* A job that runs with 4 on n1 and n2. */
static void start_four(char job[33], struct fake_agent **ret_a, struct fake_agent **ret_b)
{
    service_open(&s, BRISK, NULL);
    *ret_a = agent_join(&s, "n1", 2);
    *ret_b = agent_join(&s, "n2", 2);
    submit(&s, spec, job);
    WAIT(&s, runs_with(job, 4) && agent_running(*ret_a) == 2 && agent_running(*ret_b) == 2);
}

Test(daemon, after_a_crash_it_adopts_what_runs)
{
    struct fake_agent *a, *b;
    char job[33];
    uint32_t attempt, deployed;
    uint64_t epoch;

    start_four(job, &a, &b);
    attempt = attempt_on(a);
    deployed = a->n_deploy + b->n_deploy;
    for (int i = 0; i < 3; i++) {
        epoch = s.epoch;
        cr_expect(eq(int, service_kill(&s, SIGKILL), 128 + SIGKILL));
        service_start(&s);
        cr_expect(s.epoch > epoch);
        a->welcome = b->welcome = false;
        WAIT(&s, a->welcome && b->welcome);
        service_pass(&s, 300);
        cr_expect(runs_with(job, 4));
    }
    cr_expect(eq(u32, a->n_deploy + b->n_deploy, deployed));
    cr_expect(eq(u32, a->n_stop + b->n_stop, 0));
    cr_expect(eq(u32, attempt_on(a), attempt));
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 0));
    agent_leave(b); /* and it goes on from there as if nothing had been */
    WAIT(&s, runs_with(job, 2) && agent_running(a) == 2);
}

Test(daemon, what_ended_while_it_was_down_is_taken_in_at_the_hello)
{
    struct fake_agent *a, *b;
    char job[33];

    start_four(job, &a, &b);
    service_kill(&s, SIGKILL);
    agent_end(a, running_task(a), "{\"how\":\"exited\",\"code\":3}");
    service_start(&s);
    WAIT(&s, attempt_on(a) == 2 && attempt_on(b) == 2 && runs_with(job, 4));
    cr_assert(eq(int, call(&s, MESSAGE_FAILURES, "{\"job\":\"%s\"}", job), 0));
    cr_expect(
        strstr(doc_get(doc_get(doc_get(s.reply.root, "failures")->child, "items")->child, "cause")
                   ->text,
               "exit code 3") != NULL);
}

Test(daemon, a_task_that_nobody_deployed_or_that_is_of_an_old_attempt_is_stopped)
{
    static const struct fake_task stray = {.job = "0123456789abcdef0123456789abcdef",
                                           .vertex = "work",
                                           .attempt = 1,
                                           .state = "running"};
    struct fake_agent *a, *b;
    struct fake_task *old;
    char job[33];

    start_four(job, &a, &b);
    *(struct fake_task *)vec_push(NULL, &a->tasks) = stray;
    old = vec_push(NULL, &a->tasks);
    *old = *running_task(a);
    old->deployment = NULL;
    old->attempt = 77;
    agent_hello(a);
    WAIT(&s, a->n_stop == 2 && a->n_forget == 2);
    cr_expect(eq(u32, agent_running(a), 2));
    cr_expect(runs_with(job, 4));
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 0));
}

Test(daemon, a_task_that_the_agent_lost_has_failed_and_one_never_started_is_deployed_again)
{
    struct fake_agent *a;
    char job[33];

    service_open(&s, BRISK, NULL);
    a = agent_join(&s, "n1", 4);
    a->slow_start = true;
    submit(&s, spec, job);
    WAIT(&s, a->tasks.n == 4);
    agent_forget_all(a); /* the messages never came */
    a->slow_start = false;
    agent_hello(a);
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 4);
    cr_expect(eq(u32, attempt_on(a), 1));
    free(a->tasks.v[--a->tasks.n].deployment);
    agent_hello(a);
    WAIT(&s, attempt_on(a) == 2 && agent_running(a) == 4 && runs_with(job, 4));
}

Test(daemon,
     an_older_incarnation_is_refused_and_a_newer_one_is_another_node) /* known trouble 114 */
{
    struct fake_agent *a, *b, *old;
    char job[33];

    start_four(job, &a, &b);
    old = agent_join(&s, "n3", 1); /* takes the place of an n1 from before */
    snprintf(old->name, sizeof old->name, "n1");
    old->incarnation = a->incarnation - 1;
    agent_hello(old);
    WAIT(&s, old->n_stale == 1);
    cr_expect(runs_with(job, 4));
    agent_leave(a);
    agent_forget_all(a);
    a->incarnation++;
    agent_reconnect(a);
    WAIT(&s, attempt_on(a) == 2 && attempt_on(b) == 2 && runs_with(job, 4));
}

Test(daemon, a_gap_in_the_sequence_asks_for_the_whole_picture)
{
    struct fake_agent *a, *b;
    char job[33];

    start_four(job, &a, &b);
    a->sequence += 3;
    running_task(a)->state = "running";
    WAIT(&s, a->n_resync == 1 && a->n_hello >= 2 && a->welcome);
    service_pass(&s, 300);
    cr_expect(runs_with(job, 4));
    cr_expect(eq(u32, a->n_resync, 1));
    cr_expect(eq(u32, a->n_stop, 0));
}

Test(daemon, a_hiccup_of_the_network_is_no_loss_and_an_end_is)
{
    struct fake_agent *a, *b;
    int64_t left_ms;
    char job[33];

    start_four(job, &a, &b);
    for (int i = 0; i < 3; i++) {
        agent_leave(a);
        service_pass(&s, 300);
        agent_reconnect(a);
        WAIT(&s, a->welcome);
    }
    cr_expect(runs_with(job, 4));
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 0));
    left_ms = harness_now_ms();
    agent_leave(a);
    WAIT(&s, !runs_with(job, 4));
    cr_expect(harness_now_ms() - left_ms >= 1500);
}

Test(daemon, a_goodbye_is_the_end_at_once)
{
    struct fake_agent *a, *b;
    char job[33];

    start_four(job, &a, &b);
    agent_send(a, MESSAGE_GOODBYE, "{\"node\":\"n1\",\"incarnation\":\"1000\",\"why\":\"ended\"}");
    a->silent = true;
    WAIT(&s, runs_with(job, 2) && agent_running(b) == 2);
}

Test(daemon, a_silent_agent_is_lost_after_the_heartbeat_timeout)
{
    struct fake_agent *a, *b;
    char job[33];
    int64_t from_ms;

    start_four(job, &a, &b);
    from_ms = harness_now_ms();
    a->silent = true; /* its connection stays */
    WAIT(&s, runs_with(job, 2) && agent_running(b) == 2);
    cr_expect(harness_now_ms() - from_ms >= TIMEOUT_MS - 500);
    a->silent = false; /* it was only slow: what it runs is of an old attempt */
    WAIT(&s, a->n_stop > 0 && runs_with(job, 4) && agent_running(a) == 2);
    cr_expect(attempt_on(a) >= 2); /* the older node has those of the smaller job */
}

/* All that the job waits for is there as soon as the second one says HELLO, with old tasks. */
Test(daemon, what_a_node_still_runs_when_it_returns_is_stopped_before_anything_starts_there)
{
    struct fake_agent *a, *b;
    char job[33];

    service_open(&s, BRISK, "-D",
                 "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout=1 h",
                 NULL);
    a = agent_join(&s, "n1", 2);
    b = agent_join(&s, "n2", 2);
    submit(&s, spec, job);
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
    a->silent = b->silent = true;
    WAIT(&s, state_is(&s, job, "WaitingForResources"));
    a->silent = false;
    WAIT(&s, a->n_stop == 2 && agent_running(a) == 0);
    b->silent = false;
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
    cr_expect(eq(u32, b->n_stop, 2));
    cr_expect(eq(u32, a->n_double + b->n_double, 0));
}

Test(daemon, when_it_stood_still_no_agent_was_silent)
{
    struct fake_agent *a, *b;
    char job[33];

    start_four(job, &a, &b);
    kill(s.pid, SIGSTOP);
    service_pass(&s, TIMEOUT_MS + 3000);
    kill(s.pid, SIGCONT);
    service_pass(&s, 500);
    cr_expect(runs_with(job, 4));
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 0));
    cr_expect(eq(u32, a->n_stop + b->n_stop, 0));
}

Test(daemon, sigterm_hands_over_and_other_signals_do_nothing) /* known troubles 122, 125 */
{
    static const int harmless[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD, SIGALRM, SIGPIPE, SIGHUP};
    struct fake_agent *a, *b;
    char job[33];
    uint32_t deployed;

    start_four(job, &a, &b);
    deployed = a->n_deploy + b->n_deploy;
    for (int i = 0; i < 1000; i++)
        kill(s.pid, harmless[i % 7]);
    cr_expect(runs_with(job, 4));
    cr_expect(eq(int, service_kill(&s, SIGTERM), 0));
    service_start(&s);
    cr_expect(eq(int, service_kill(&s, SIGINT), 0));
    service_start(&s);
    a->welcome = b->welcome = false;
    WAIT(&s, a->welcome && b->welcome);
    cr_expect(runs_with(job, 4));
    cr_expect(eq(u32, a->n_deploy + b->n_deploy, deployed));
    cr_expect(eq(u32, a->n_stop + b->n_stop, 0));
}

Test(daemon, a_node_that_confirms_no_cancel_is_given_up_and_comes_back_when_it_is_clean)
{
    struct fake_agent *a, *b;
    char job[33];

    service_open(&s, BRISK, "-D", "task.cancellation.timeout=1 s", NULL);
    a = agent_join(&s, "n1", 2);
    b = agent_join(&s, "n2", 2);
    submit(&s, spec, job);
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
    a->hangs = true;
    agent_end(b, running_task(b), "{\"how\":\"killed\",\"signal\":\"SEGV\"}");
    WAIT(&s, runs_with(job, 2) && agent_running(b) == 2);
    cr_expect(eq(u32, agent_running(a), 2)); /* its slots are nobody else's meanwhile */
    a->hangs = false;
    while (running_task(a))
        agent_end(a, running_task(a), "{\"how\":\"stopped\",\"code\":137}");
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
}

Test(daemon, what_ends_well_while_it_is_canceled_was_canceled)
{
    struct fake_agent *a;
    char job[33];

    service_open(&s, BRISK, NULL);
    a = agent_join(&s, "n1", 4);
    submit(&s, spec, job);
    WAIT(&s, runs_with(job, 4));
    a->hangs = true;
    cr_assert(eq(int, call(&s, MESSAGE_CANCEL, "{\"job\":\"%s\"}", job), 0));
    WAIT(&s, a->n_stop == 4);
    while (running_task(a))
        agent_end(a, running_task(a), "{\"how\":\"exited\",\"code\":0}");
    WAIT(&s, strcmp(status_text(&s, job, "job_status"), "CANCELED") == 0);
}

Test(daemon, four_tasks_that_end_together_finish_the_job) /* known trouble 100 */
{
    struct fake_agent *a, *b;
    char job[33];

    start_four(job, &a, &b);
    while (running_task(a))
        agent_end(a, running_task(a), "{\"how\":\"exited\",\"code\":0}");
    while (running_task(b))
        agent_end(b, running_task(b), "{\"how\":\"exited\",\"code\":0}");
    WAIT(&s, strcmp(status_text(&s, job, "job_status"), "FINISHED") == 0);
    service_kill(&s, SIGKILL);
    service_start(&s);
    cr_expect(eq(str, (char *)status_text(&s, job, "job_status"), "FINISHED"));
}

Test(daemon, tasks_that_are_kept_are_waited_for)
{
    struct fake_agent *a, *b;
    char job[33];

    start_four(job, &a, &b);
    a->keep_tasks = true;
    agent_hello(a);
    WAIT(&s, a->welcome);
    agent_leave(a);
    service_pass(&s, TIMEOUT_MS + 1000); /* longer than all other time limits */
    cr_expect(runs_with(job, 4));
    agent_reconnect(a);
    WAIT(&s, a->welcome);
    cr_expect(runs_with(job, 4));
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 0));
    cr_expect(eq(u32, a->n_stop, 0));
}

static const char *answer(const char *key)
{
    const struct doc *value = doc_get(s.reply.root, key);

    return value && value->text ? value->text : "";
}

/* The daemon can write no byte beyond what its files have; or all it likes. */
static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

    cr_assert(eq(int, prlimit(s.pid, RLIMIT_FSIZE, &limit, NULL), 0));
}

Test(daemon, while_the_store_fails_tasks_go_on_and_nothing_is_begun)
{
    struct fake_agent *a, *b;
    uint32_t beats;
    char job[33];

    start_four(job, &a, &b);
    limit_files(1);
    agent_end(a, running_task(a), "{\"how\":\"exited\",\"code\":1}");
    WAIT(&s, call(&s, MESSAGE_PING, "{}") == 0 && strcmp(answer("state"), "store-failed") == 0);
    beats = b->n_beat;
    cr_expect(ne(int, call(&s, MESSAGE_CANCEL, "{\"job\":\"%s\"}", job), 0));
    cr_expect(eq(str, s.refusal.code, "unavailable"));
    service_pass(&s, TIMEOUT_MS + 1000);
    cr_expect(gt(u32, b->n_beat, beats));
    cr_expect(eq(u32, a->n_stop + b->n_stop, 0));
    limit_files(RLIM_INFINITY);
    WAIT(&s, call(&s, MESSAGE_PING, "{}") == 0 && strcmp(answer("state"), "ok") == 0);
    WAIT(&s, runs_with(job, 4) && attempt_on(a) == 2 && attempt_on(b) == 2);
    service_kill(&s, SIGKILL);
    service_start(&s);
    a->welcome = b->welcome = false;
    WAIT(&s, a->welcome && b->welcome);
    cr_expect(runs_with(job, 4));
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 1));
}

Test(daemon, a_shutdown_with_the_jobs_ends_them_first)
{
    struct fake_agent *a, *b;
    char job[33];

    start_four(job, &a, &b);
    cr_expect(eq(int, call(&s, MESSAGE_SHUTDOWN, "{\"stop_jobs\":true}"), 0));
    WAIT(&s, a->n_stop == 2 && b->n_stop == 2 && agent_running(a) + agent_running(b) == 0);
    cr_expect(eq(int, service_wait(&s), 0));
    service_start(&s);
    cr_expect(eq(str, (char *)status_text(&s, job, "job_status"), "CANCELED"));
}

/* A step of the newest job cannot be read any more. */
static void damage_a_step(void)
{
    char path[160];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/pliant.db", s.state_dir);
    cr_assert(eq(int, sqlite3_open(path, &db), SQLITE_OK));
    cr_assert(eq(int,
                 sqlite3_exec(db,
                              "UPDATE step SET event = '{\"ev\":\"nonsense\"}' WHERE row = "
                              "(SELECT max(row) FROM step)",
                              NULL, NULL, NULL),
                 SQLITE_OK));
    sqlite3_close(db);
}

static void expect_damaged(const char *job)
{
    const struct doc *row = doc_get(s.reply.root, "jobs")->child;

    while (row && strcmp(doc_get(row, "job_id")->text, job) != 0)
        row = row->next;
    cr_assert(row != NULL, "it is in the list");
    cr_expect(eq(str, (char *)doc_get(row, "job_status")->text, "DAMAGED"));
    cr_expect(eq(str, (char *)doc_get(row, "state")->text, "Damaged"));
    cr_expect(strstr(doc_get(row, "error")->text, "nonsense") != NULL, "%s",
              doc_get(row, "error")->text);
}

Test(daemon, a_damaged_job_is_kept_out_and_its_tasks_left_alone)
{
    struct fake_agent *a, *b, *c;
    char job[33], other[33];

    start_four(job, &a, &b);
    c = agent_join(&s, "n3", 4);
    submit(&s, spec, other);
    WAIT(&s, runs_with(other, 4));
    service_kill(&s, SIGTERM);
    damage_a_step();
    service_start(&s);
    a->welcome = b->welcome = c->welcome = false;
    WAIT(&s, a->welcome && b->welcome && c->welcome);
    service_pass(&s, 300);
    cr_expect(runs_with(job, 4));
    cr_expect(eq(u32, a->n_stop + b->n_stop + c->n_stop, 0));
    cr_expect(eq(u32, agent_running(c), 4));
    cr_expect(eq(int, call(&s, MESSAGE_STATUS, "{\"job\":\"%s\"}", other), -EPROTO));
    cr_expect(strstr(s.refusal.text, "damaged") && strstr(s.refusal.text, "nonsense"), "%s",
              s.refusal.text);
    cr_expect(eq(int, call(&s, MESSAGE_LIST, "{\"ended\":true}"), 0));
    expect_damaged(other);
    cr_expect(eq(int, call(&s, MESSAGE_SNAPSHOT, "{}"), 0));
}

/* Rows of any job, in any table. */
static int64_t rows_of_all_jobs(void)
{
    char path[160];
    sqlite3 *db;
    sqlite3_stmt *q;
    int64_t n;

    snprintf(path, sizeof path, "%s/pliant.db", s.state_dir);
    cr_assert(eq(int, sqlite3_open(path, &db), SQLITE_OK));
    cr_assert(eq(int,
                 sqlite3_prepare_v2(db,
                                    "SELECT (SELECT count(*) FROM job) +"
                                    " (SELECT count(*) FROM step) +"
                                    " (SELECT count(*) FROM snapshot) +"
                                    " (SELECT count(*) FROM slot) +"
                                    " (SELECT count(*) FROM note WHERE job > 0) +"
                                    " (SELECT count(*) FROM checkpoint)",
                                    -1, &q, NULL),
                 SQLITE_OK));
    cr_assert(eq(int, sqlite3_step(q), SQLITE_ROW));
    n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

static bool is_in_list(const char *job)
{
    const struct doc *row;

    cr_assert(eq(int, call(&s, MESSAGE_LIST, "{\"ended\":true}"), 0));
    for (row = doc_get(s.reply.root, "jobs")->child; row; row = row->next)
        if (strcmp(doc_get(row, "job_id")->text, job) == 0)
            return true;
    return false;
}

static bool removed(const char *job, bool force)
{
    cr_assert(
        eq(int,
           call(&s, MESSAGE_REMOVE, "{\"job\":\"%s\",\"force\":%s}", job, force ? "true" : "false"),
           0),
        "%s", s.refusal.text);
    cr_expect(eq(str, (char *)doc_get(s.reply.root, "job")->text, (char *)job));
    return doc_get(s.reply.root, "removed")->truth;
}

Test(daemon, removes_a_damaged_job_if_it_is_told_so_twice)
{
    struct fake_agent *a, *b;
    char job[33], next[33];

    start_four(job, &a, &b);
    service_kill(&s, SIGKILL);
    damage_a_step();
    service_start(&s);
    a->welcome = b->welcome = false;
    WAIT(&s, a->welcome && b->welcome);
    submit(&s, spec, next); /* the slots are held by tasks that run */
    service_pass(&s, 100);
    cr_expect(eq(i64, status_number(&s, next, "slots", "used"), 0));
    cr_expect(eq(int, call(&s, MESSAGE_REMOVE, "{\"job\":\"%s\"}", job), -EPROTO));
    cr_expect(strstr(s.refusal.text, "--force") && strstr(s.refusal.text, "nonsense"), "%s",
              s.refusal.text);
    cr_expect(is_in_list(job) && agent_running(a) + agent_running(b) == 4);
    cr_expect(removed(job, true));
    cr_expect(is_in_list(job) == false);
    WAIT(&s, a->n_stop + b->n_stop == 4 && runs_with(next, 4)); /* a real agent waits for the end */
    service_kill(&s, SIGKILL);
    service_start(&s);
    cr_expect(is_in_list(job) == false && !removed(job, true));
}

Test(daemon, removes_a_job_whose_options_it_cannot_read)
{
    char job[33], path[160];
    sqlite3 *db;

    service_open(&s, BRISK, NULL);
    submit(&s, spec, job);
    service_kill(&s, SIGKILL);
    snprintf(path, sizeof path, "%s/pliant.db", s.state_dir);
    cr_assert(eq(int, sqlite3_open(path, &db), SQLITE_OK));
    cr_assert(eq(int, sqlite3_exec(db, "UPDATE job SET options = '{\"x.y\":', spec = '['", 0, 0, 0),
                 SQLITE_OK));
    sqlite3_close(db);
    service_start(&s);
    cr_expect(is_in_list(job));
    cr_expect(removed(job, true) && !removed(job, true));
    service_kill(&s, SIGTERM);
    cr_expect(eq(i64, rows_of_all_jobs(), 0));
}

/* Whenever it dies between request and reply: all of it is there, or nothing is. */
Test(daemon, removes_all_of_a_job_or_nothing)
{
    struct fake_agent *a, *b;
    char job[33], body[80];
    bool there = true;

    start_four(job, &a, &b);
    service_kill(&s, SIGKILL);
    damage_a_step();
    service_start(&s);
    for (int round = 0; there && round < 40; round++) {
        snprintf(body, sizeof body, "{\"job\":\"%s\",\"force\":true}", job);
        rpc_link_send(s.client, &(struct message_header){.type = MESSAGE_REMOVE, .sequence = 1},
                      &(struct json){.v = body, .n = strlen(body)});
        usleep((useconds_t)round * 100);
        service_kill(&s, SIGKILL);
        service_start(&s);
        there = is_in_list(job);
        if (there) {
            cr_assert(eq(int, call(&s, MESSAGE_LIST, "{\"ended\":true}"), 0));
            expect_damaged(job);
        }
    }
    if (there)
        cr_expect(removed(job, true));
    a->welcome = b->welcome = false;
    WAIT(&s, a->welcome && b->welcome && agent_running(a) + agent_running(b) == 0);
    service_kill(&s, SIGTERM);
    cr_expect(eq(i64, rows_of_all_jobs(), 0));
}

Test(daemon, removes_what_has_ended_and_nothing_that_lives)
{
    struct fake_agent *a, *b;
    char job[33];

    start_four(job, &a, &b);
    cr_expect(eq(int, call(&s, MESSAGE_REMOVE, "{\"job\":\"%s\",\"force\":true}", job), -EPROTO));
    cr_expect(strstr(s.refusal.text, "has not ended") != NULL, "%s", s.refusal.text);
    cr_expect(runs_with(job, 4));
    cr_assert(eq(int, call(&s, MESSAGE_CANCEL, "{\"job\":\"%s\"}", job), 0));
    WAIT(&s, strcmp(status_text(&s, job, "job_status"), "CANCELED") == 0);
    cr_expect(removed(job, false) && !removed(job, false));
    cr_expect(eq(int, call(&s, MESSAGE_STATUS, "{\"job\":\"%s\"}", job), -EPROTO));
    cr_expect(eq(int, call(&s, MESSAGE_REMOVE, "{\"job\":\"nobody\"}"), -EPROTO));
    cr_expect(eq(str, s.refusal.code, "not-found"));
    service_kill(&s, SIGTERM);
    cr_expect(eq(i64, rows_of_all_jobs(), 0));
}

Test(daemon, starts_without_standard_descriptors) /* known trouble 130 */
{
    struct fake_agent *a;
    char job[33];

    service_open(&s, BRISK, NULL);
    service_kill(&s, SIGTERM);
    s.no_standard = true;
    service_start(&s);
    a = agent_join(&s, "n1", 4);
    submit(&s, spec, job);
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 4);
    cr_expect(eq(int, service_kill(&s, SIGTERM), 0));
}

Test(daemon, a_second_one_in_the_same_state_directory_is_refused)
{
    char command[512];

    service_open(&s, BRISK, NULL);
    snprintf(command, sizeof command,
             PLIANT_PROGRAMS "/pliantd --state-dir %s --agents 'tcp://127.0.0.1:*' --clients "
                             "'tcp://127.0.0.1:*' --events 'tcp://127.0.0.1:*' 2>%s/second",
             s.state_dir, s.dir);
    cr_expect(eq(int, WEXITSTATUS(system(command)), 2));
    cr_expect(eq(int, call(&s, MESSAGE_PING, "{}"), 0));
}

Test(daemon, a_second_one_does_not_take_the_endpoints_away)
{
    char command[1024];

    service_open(&s, BRISK, NULL);
    snprintf(command, sizeof command,
             "timeout 60 " PLIANT_PROGRAMS
             "/pliantd --state-dir %s/other --agents %s --clients %s --events %s 2>%s/second",
             s.dir, s.agents, s.clients, s.events, s.dir);
    cr_expect(eq(int, WEXITSTATUS(system(command)), 2));
    cr_expect(eq(int, call(&s, MESSAGE_PING, "{}"), 0));
}

Test(daemon, a_job_leaves_a_node_that_drains_and_may_return)
{
    struct fake_agent *a, *b;
    char job[33];

    service_open(&s, BRISK, "-D", "execution.checkpointing.interval=10 min", NULL);
    a = agent_join(&s, "n1", 4);
    b = agent_join(&s, "n2", 4);
    submit(&s, spec, job);
    WAIT(&s, runs_with(job, 4) && agent_running(a) + agent_running(b) == 4);
    if (agent_running(b) == 4) { /* whole nodes go first */
        struct fake_agent *swap = a;

        a = b;
        b = swap;
    }
    cr_assert(eq(u32, agent_running(a), 4));
    agent_send(a, MESSAGE_DRAIN, "{\"reason\":\"preemption\",\"deadline_unix_ms\":null}");
    WAIT(&s, runs_with(job, 4) && agent_running(b) == 4 && agent_running(a) == 0);
    cr_expect(strcmp(agent_variable(b, "work", 0, "PLIANT_CHECKPOINT_DIR"), "") != 0);
    cr_expect(strstr(agent_variable(b, "work", 2, "PLIANT_RESTORE"), "/chk-1/work/2-4") != NULL);
    agent_send(a, MESSAGE_DRAIN_WITHDRAWN, "{}");
    agent_leave(b);
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 4);
}

Test(daemon, a_task_gets_its_environment)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"PLIANT_JOB_NAME", "count"},      {"PLIANT_NODE_ID", "n1"},
        {"PLIANT_ATTEMPT", "1"},           {"PLIANT_VERTEX", "work"},
        {"PLIANT_SUBTASK", "1"},           {"PLIANT_PARALLELISM", "4"},
        {"PLIANT_KEY_GROUPS", "32-63"},    {"PLIANT_RESTORE", ""},
        {"PLIANT_CHECKPOINT_DIR", ""},     {"COLOUR", "blue"},
        {"PLIANT_MAX_PARALLELISM", "128"},
    };
    struct fake_agent *a;
    char job[33];

    service_open(&s, BRISK, NULL);
    a = agent_join(&s, "n1", 4);
    submit(&s,
           "name: count\n"
           "vertices:\n"
           "  - id: work\n"
           "    parallelism: 4\n"
           "    command: [\"/bin/true\"]\n"
           "    env: {COLOUR: blue, PLIANT_SUBTASK: \"7\"}\n",
           job);
    WAIT(&s, agent_running(a) == 4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect(
            eq(str, (char *)agent_variable(a, "work", 1, rows[i].name), (char *)rows[i].value),
            "%s", rows[i].name);
    cr_expect(eq(str, (char *)agent_variable(a, "work", 1, "PLIANT_JOB_ID"), job));
}

Test(daemon, what_a_given_up_node_still_runs_keeps_its_slots_over_a_restart)
{
    struct fake_agent *a, *b;
    char job[33];

    service_open(&s, BRISK, "-D", "task.cancellation.timeout=1 s", NULL);
    a = agent_join(&s, "n1", 2);
    b = agent_join(&s, "n2", 2);
    submit(&s, spec, job);
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
    a->hangs = true;
    agent_end(b, running_task(b), "{\"how\":\"killed\",\"signal\":\"SEGV\"}");
    WAIT(&s, runs_with(job, 2) && agent_running(b) == 2);
    service_kill(&s, SIGKILL);
    service_start(&s);
    a->welcome = b->welcome = false;
    WAIT(&s, a->welcome && b->welcome);
    service_pass(&s, 1000);
    cr_expect(runs_with(job, 2));
    cr_expect(eq(u32, agent_running(a), 2));
    a->hangs = false;
    while (running_task(a))
        agent_end(a, running_task(a), "{\"how\":\"stopped\",\"code\":137}");
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
}

Test(daemon, a_stop_that_got_lost_is_said_again)
{
    struct fake_agent *a;
    char job[33];

    service_open(&s, BRISK, NULL);
    a = agent_join(&s, "n1", 4);
    submit(&s, spec, job);
    WAIT(&s, runs_with(job, 4));
    a->hangs = true;
    cr_assert(eq(int, call(&s, MESSAGE_CANCEL, "{\"job\":\"%s\"}", job), 0));
    WAIT(&s, a->n_stop == 4);
    a->hangs = false;
    agent_hello(a); /* it says that all run */
    WAIT(&s, a->n_stop == 8);
    WAIT(&s, strcmp(status_text(&s, job, "job_status"), "CANCELED") == 0);
}

Test(daemon, nonsense_of_every_type_does_no_harm)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "[]",
        "nonsense",
        "{\"tasks\":7}",
        "{\"tasks\":[7]}",
        "{\"tasks\":[{}]}",
        "{\"tasks\":[{\"job\":\"x\",\"vertex\":\"y\",\"subtask\":-1,\"attempt\":1}]}",
        "{\"tasks\":[{\"job\":\"x\",\"vertex\":\"y\",\"subtask\":1,\"attempt\":1,\"state\":\"?\"}]"
        "}",
        "{\"tasks\":[{\"job\":\"x\",\"vertex\":\"y\",\"subtask\":1,\"attempt\":1,\"state\":"
        "\"ended\"}]}",
        "{\"node\":\"\",\"incarnation\":\"1\",\"slots\":1}",
        "{\"node\":\"n9\",\"incarnation\":\"-1\",\"slots\":1}",
        "{\"node\":\"n9\",\"incarnation\":\"99999999999999999999\",\"slots\":1}",
        "{\"node\":\"n9\",\"incarnation\":\"1\",\"slots\":-1}",
        "{\"node\":\"n9\",\"incarnation\":\"1\",\"slots\":1,\"labels\":{\"a\":1}}",
        "{\"node\":\"n9\",\"incarnation\":\"1\",\"slots\":1,\"drain\":[]}",
        "{\"deadline_unix_ms\":\"soon\",\"reason\":\"whim\"}",
        "{\"parts\":[{\"job\":\"x\",\"vertex\":\"y\",\"subtask\":1,\"attempt\":1}]}",
        "{\"job\":null,\"vertex\":{},\"subtask\":[],\"attempt\":true}",
        "{\"request\":\"1\",\"data\":7}",
    };
    struct fake_agent *a, *b, *odd;
    char job[33];

    start_four(job, &a, &b);
    odd = agent_join(&s, "odd", 1);
    for (int type = 0; type < 210; type++)
        for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
            agent_send(odd, (enum message_type)type, bodies[i]);
    service_pass(&s, 500);
    WAIT(&s, call(&s, MESSAGE_PING, "{}") == 0);
    cr_expect(runs_with(job, 4));
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 0));
}

Test(daemon, snapshots_carry_a_job_over_restarts)
{
    struct fake_agent *a, *b;
    uint32_t deployed;
    char job[33];

    service_open(&s, BRISK, "-D", "pliant.snapshot.every-steps=3", "-D",
                 "pliant.journal.max-steps=0", NULL);
    a = agent_join(&s, "n1", 2);
    b = agent_join(&s, "n2", 2);
    submit(&s, spec, job);
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
    for (uint32_t i = 1; i <= 5; i++) {
        deployed = a->n_deploy + b->n_deploy;
        service_kill(&s, SIGKILL);
        service_start(&s);
        a->welcome = b->welcome = false;
        WAIT(&s, a->welcome && b->welcome);
        cr_expect(runs_with(job, 4));
        cr_expect(eq(u32, a->n_deploy + b->n_deploy, deployed));
        agent_end(a, running_task(a), "{\"how\":\"exited\",\"code\":1}");
        WAIT(&s, attempt_on(a) == i + 1 && attempt_on(b) == i + 1 && runs_with(job, 4));
    }
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 5));
}

Test(daemon, what_fails_together_is_one_restart)
{
    struct fake_agent *a, *b;
    char job[33], body[2048];
    int n = 0;

    start_four(job, &a, &b);
    n += snprintf(body, sizeof body, "{\"tasks\":[");
    for (int i = 0; i < 2; i++)
        n += snprintf(body + n, sizeof body - (size_t)n,
                      "%s{\"job\":\"%s\",\"vertex\":\"work\",\"subtask\":%u,\"attempt\":1,"
                      "\"state\":\"ended\",\"end\":{\"how\":\"exited\",\"code\":9}}",
                      i ? "," : "", job, a->tasks.v[i].subtask);
    snprintf(body + n, sizeof body - (size_t)n, "]}");
    agent_forget_all(a);
    agent_send(a, MESSAGE_TASKS, body);
    WAIT(&s, attempt_on(a) == 2 && attempt_on(b) == 2 && runs_with(job, 4));
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 1));
    cr_expect(eq(u32, a->n_deploy, 4));
}

Test(daemon, of_ended_jobs_the_newest_are_kept)
{
    char jobs[4][33];

    service_open(&s, BRISK, "-D", "pliant.daemon.ended-jobs=2", NULL);
    for (int i = 0; i < 4; i++) {
        submit(&s, spec, jobs[i]);
        cr_assert(eq(int, call(&s, MESSAGE_CANCEL, "{\"job\":\"%s\"}", jobs[i]), 0));
        WAIT(&s, strcmp(status_text(&s, jobs[i], "job_status"), "CANCELED") == 0);
    }
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 4; i++)
            cr_expect(eq(int, call(&s, MESSAGE_STATUS, "{\"job\":\"%s\"}", jobs[i]) == 0, i >= 2),
                      "job %d", i);
        service_kill(&s, again ? SIGKILL : SIGTERM);
        service_start(&s);
    }
}

Test(daemon, an_ended_job_is_kept_as_long_as_the_options_say)
{
    char job[33], young[33];

    service_open(&s, BRISK, NULL);
    submit(&s, spec, job);
    cr_assert(eq(int, call(&s, MESSAGE_CANCEL, "{\"job\":\"%s\"}", job), 0));
    WAIT(&s, strcmp(status_text(&s, job, "job_status"), "CANCELED") == 0);
    service_kill(&s, SIGKILL);
    service_pass(&s, 300);
    s.args[s.n_args++] = "-D";
    s.args[s.n_args++] = "pliant.daemon.ended-jobs-age=300 ms";
    service_start(&s); /* it is too old already */
    WAIT(&s, !is_in_list(job));
    submit(&s, spec, young);
    cr_assert(eq(int, call(&s, MESSAGE_CANCEL, "{\"job\":\"%s\"}", young), 0));
    WAIT(&s, !is_in_list(young)); /* by its age alone, while nothing happens */
    service_kill(&s, SIGTERM);
    cr_expect(eq(i64, rows_of_all_jobs(), 0));
}

Test(daemon, an_agent_that_does_not_come_back_after_a_restart_is_lost)
{
    struct fake_agent *a, *b;
    char job[33];

    start_four(job, &a, &b);
    service_kill(&s, SIGKILL);
    agent_leave(b);
    service_start(&s);
    WAIT(&s, runs_with(job, 2) && agent_running(a) == 2);
}

/* Something that makes the job restart, or nothing. */
static void disturb(struct fake_agent *a, int what)
{
    struct fake_task *t = running_task(a);

    if (what == 0 && t)
        agent_end(a, t, "{\"how\":\"exited\",\"code\":1}");
    else if (what == 1) {
        agent_leave(a);
        agent_forget_all(a);
        a->incarnation++;
        agent_reconnect(a);
    } else if (what == 2)
        agent_hello(a);
}

Test(daemon, whenever_it_is_killed_the_job_gets_going_again)
{
    struct fake_agent *a, *b;
    char job[33];

    srand(getenv("PLIANT_SEED") ? (unsigned)atoi(getenv("PLIANT_SEED")) : 7);
    start_four(job, &a, &b);
    for (int round = 0; round < 25; round++) {
        disturb(rand() % 2 ? a : b, rand() % 4);
        service_pass(&s, rand() % 40);
        service_kill(&s, SIGKILL);
        if (rand() % 2)
            disturb(rand() % 2 ? a : b, rand() % 2);
        service_start(&s);
        if (rand() % 3)
            WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
    }
    WAIT(&s, runs_with(job, 4) && agent_running(a) == 2 && agent_running(b) == 2);
    cr_expect(eq(u32, a->n_double + b->n_double, 0));
    cr_expect(eq(i64, status_number(&s, job, "slots", "used"), 4));
}

static int64_t counted(const char *key)
{
    cr_assert(eq(int, call(&s, MESSAGE_PING, "{}"), 0));
    return (int64_t)doc_get(doc_get(s.reply.root, "counts"), key)->number;
}

Test(daemon,
     what_is_dropped_for_an_agent_that_does_not_read_is_counted_and_made_good) /* known trouble 112
                                                                                */
{
    struct fake_agent *a, *b;
    uint32_t resyncs;
    char job[33];

    start_four(job, &a, &b);
    for (int i = 0; counted("dropped") == 0; i++) {
        cr_assert(i < 2000, "nothing is dropped");
        for (int k = 0; k < 500; k++) /* each is answered by an ERROR */
            agent_send(a, MESSAGE_USAGE, "{\"tasks\":{}}");
        agent_send(b, MESSAGE_HEARTBEAT, "{}"); /* it acts in no other way here */
    }
    resyncs = a->n_resync;
    WAIT(&s, a->n_resync > resyncs && a->welcome);
    cr_expect(runs_with(job, 4));
    cr_expect(eq(i64, status_number(&s, job, "restarts", NULL), 0));
}

Test(daemon, an_agent_that_beats_too_fast_is_answered_now_and_then)
{
    struct fake_agent *a;

    service_open(&s, "-D", "heartbeat.interval=2 s", NULL);
    a = agent_join(&s, "n1", 1);
    for (int k = 0; k < 100; k++)
        agent_send(a, MESSAGE_HEARTBEAT, "{}");
    WAIT(&s, a->n_beat >= 2); /* one at once, one after a quarter of the interval */
    cr_expect(lt(u32, a->n_beat, 50));
}

Test(daemon, an_agent_of_another_version_is_told_which_is_known)
{
    struct fake_agent *a;

    service_open(&s, BRISK, NULL);
    a = agent_join(&s, "n1", 1);
    agent_send(a, MESSAGE_HELLO,
               "{\"protocol\":[2,3],\"node\":\"n1\",\"incarnation\":\"1001\",\"slots\":1}");
    WAIT(&s, a->n_error == 1);
    cr_assert(eq(int, call(&s, MESSAGE_NODES, "{}"), 0));
    cr_expect(eq(u32, doc_get(s.reply.root, "nodes")->n, 1));
    cr_expect(eq(str, (char *)doc_get(doc_get(s.reply.root, "nodes")->child, "incarnation")->text,
                 "1000"));
}

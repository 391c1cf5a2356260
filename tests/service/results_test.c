/* results_test.c - results of blocking edges, as a real pliantd and played agents speak of them */
#include "service/harness.h"

#include <stdlib.h>
#include <sqlite3.h>
#include <string.h>

#define BRISK "-D", "heartbeat.interval=200 ms", "-D", "heartbeat.timeout=3 s"

/* a writes, b reads all of it, c what b wrote. */
static const char spec[] = "name: words\n"
                           "vertices:\n"
                           "  - {id: a, parallelism: 2, command: [\"/bin/true\"]}\n"
                           "  - {id: b, parallelism: 3, command: [\"/bin/true\"]}\n"
                           "  - {id: c, parallelism: 1, command: [\"/bin/true\"]}\n"
                           "edges:\n"
                           "  - {from: a, to: b, pattern: all_to_all, exchange: blocking}\n"
                           "  - {from: b, to: c, pattern: all_to_all, exchange: blocking}\n"
                           "config:\n"
                           "  jobmanager.scheduler: default\n"
                           "  restart-strategy.type: fixed-delay\n"
                           "  restart-strategy.fixed-delay.attempts: 100\n"
                           "  restart-strategy.fixed-delay.delay: 0 s\n";

#define DONE "{\"how\":\"exited\",\"code\":0}"

static struct service s;
static struct fake_agent *agent;
static char job[33];

/* What the agent was told to delete: "dir|result" of each, in their order. */
static char discards[4096];

static void take_discard(struct fake_agent *a, uint16_t type, const struct doc_file *f)
{
    const struct doc *results = doc_get(f->root, "results");

    (void)a;
    for (const struct doc *d = type == MESSAGE_DISCARD ? results->child : NULL; d; d = d->next) {
        const struct doc *result = doc_get(d, "result");
        size_t n = strlen(discards);

        if (strcmp(doc_get(d, "job")->text, job) != 0)
            continue; /* of the one before */
        snprintf(discards + n, sizeof discards - n, "%s|%s\n", doc_get(d, "dir")->text,
                 result->kind == DOC_STRING ? result->text : "all");
    }
}

static void close_service(void)
{
    service_close(&s);
}

TestSuite(results, .fini = close_service, .timeout = 240);

static struct fake_task *task_of(const char *vertex, uint32_t subtask)
{
    for (size_t i = 0; i < agent->tasks.n; i++)
        if (strcmp(agent->tasks.v[i].vertex, vertex) == 0 && agent->tasks.v[i].subtask == subtask &&
            strcmp(agent->tasks.v[i].state, "running") == 0)
            return &agent->tasks.v[i];
    return NULL;
}

static void end(const char *vertex, uint32_t subtask, const char *how)
{
    WAIT(&s, task_of(vertex, subtask));
    agent_end(agent, task_of(vertex, subtask), how);
}

static void begin(void)
{
    service_open(&s, BRISK, NULL);
    agent = agent_join(&s, "n1", 3);
    agent->other = take_discard;
    submit(&s, spec, job);
    WAIT(&s, agent_running(agent) == 2);
}

/* ... and a has finished. */
static void begin_with_b(void)
{
    begin();
    end("a", 0, DONE);
    end("a", 1, DONE);
    WAIT(&s, agent_running(agent) == 3);
}

static bool was_told(const char *vertex, uint32_t subtask, const char *part)
{
    const struct fake_task *t = task_of(vertex, subtask);

    return t && strstr(t->deployment, part);
}

Test(results, a_task_is_told_what_it_reads_and_writes) /* [5.6] */
{
    char root[160];

    begin();
    snprintf(root, sizeof root, "\"results\":\"%s/results\"", s.state_dir);
    cr_expect(was_told("a", 0, root), "%s", task_of("a", 0)->deployment);
    cr_expect(was_told("a", 0, "\"inputs\":[]"));
    cr_expect(was_told(
        "a", 1, "\"outputs\":[{\"edge\":0,\"to\":\"b\",\"dir\":\"a-b-0\",\"subpartitions\":3}]"));
    end("a", 0, DONE);
    end("a", 1, DONE);
    WAIT(&s, agent_running(agent) == 3);
    cr_expect(was_told("b", 2,
                       "\"inputs\":[{\"edge\":0,\"from\":\"a\",\"dir\":\"a-b-0\",\"reads\":[[0,1,2,"
                       "2]],\"attempts\":[]}]"),
              "%s", task_of("b", 2)->deployment);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The journal of the job; valid until the next call. */
static const char *journal(void)
{
    cr_assert(eq(int, call(&s, MESSAGE_RECORD, "{\"job\":\"%s\",\"from\":\"0\"}", job), 0));
    return doc_get(s.reply.root, "lines")->text;
}

static bool has_finished(const char *vertex, uint32_t subtask)
{
    const struct doc *tasks;

    cr_assert(eq(int, call(&s, MESSAGE_STATUS, "{\"job\":\"%s\"}", job), 0));
    tasks = doc_get(s.reply.root, "tasks");
    for (const struct doc *t = tasks->child; t; t = t->next)
        if (strcmp(doc_get(t, "vertex")->text, vertex) == 0 &&
            doc_get(t, "subtask")->number == subtask)
            return strcmp(doc_get(t, "state")->text, "FINISHED") == 0;
    return false;
}

Test(results, sizes_go_into_the_journal)
{
    begin();
    end("a", 0,
        "{\"how\":\"exited\",\"code\":0,\"outputs\":[{\"edge\":0,\"bytes\":[1,20,"
        "9007199254740971]}]}");
    WAIT(&s, has_finished("a", 0));
    cr_expect(strstr(journal(), "\"bytes\":[1,20,9007199254740971]") != NULL, "%s", journal());
}

Test(results, sizes_that_cannot_be_are_ignored_and_the_end_is_not)
{
    static const char *const rows[] = {
        "[{\"edge\":0,\"bytes\":[1,-1,1]}]",
        "[{\"edge\":0,\"bytes\":[1,1.5,1]}]",
        "[{\"edge\":0,\"bytes\":[1,\"1\",1]}]",
        "[{\"edge\":0,\"bytes\":[1,9007199254740994,1]}]",
        "[{\"edge\":0,\"bytes\":[1,1e300,1]}]",
        "[{\"edge\":0,\"bytes\":[1,9007199254740992,1]}]",
        "[{\"edge\":0,\"bytes\":[1,1]}]",
        "[{\"edge\":0,\"bytes\":[1,1,1,1]}]",
        "[{\"edge\":0,\"bytes\":7}]",
        "[{\"edge\":0}]",
        "[{\"edge\":1,\"bytes\":[1,1,1]}]",
        "[{\"edge\":2,\"bytes\":[1,1,1]}]",
        "[{\"edge\":-1,\"bytes\":[1,1,1]}]",
        "[{\"edge\":\"0\",\"bytes\":[1,1,1]}]",
        "[{\"bytes\":[1,1,1]}]",
        "[7]",
        "[{\"edge\":0,\"bytes\":[1,1,1]},{\"edge\":0,\"bytes\":[1,1,1]}]",
        "7",
    };
    char text[256];

    begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "{\"how\":\"exited\",\"code\":0,\"outputs\":%s}", rows[i]);
        end("a", 0, text);
        WAIT(&s, has_finished("a", 0));
        cr_expect(strstr(journal(), "\"bytes\":[") == NULL, "row %zu: %s", i, rows[i]);
        cr_assert(eq(int, call(&s, MESSAGE_CANCEL, "{\"job\":\"%s\"}", job), 0));
        WAIT(&s, strcmp(status_text(&s, job, "job_status"), "CANCELED") == 0);
        submit(&s, spec, job);
        WAIT(&s, agent_running(agent) == 2);
    }
}

/* ---- lost inputs ------------------------------------------------------------------------------
 */

#define LOST(members) "{\"how\":\"exited\",\"code\":1,\"input_lost\":{" members "}}"

Test(results, a_lost_input_is_written_again) /* [2] */
{
    begin_with_b();
    end("b", 1, LOST("\"edge\":0,\"subtask\":1,\"attempt\":1"));
    end("a", 1, DONE);
    WAIT(&s, agent_running(agent) == 3 && was_told("b", 0, "\"attempts\":[[1,2]]"));
    cr_expect(eq(u32, task_of("b", 1)->attempt, 2));
    cr_expect(eq(u32, task_of("b", 0)->attempt, 2), "it reads of a/1 as well");
    /* What is said late of an attempt that is over does not write it once more. */
    end("b", 2, LOST("\"edge\":0,\"subtask\":1,\"attempt\":1"));
    WAIT(&s, task_of("b", 2) && task_of("b", 2)->attempt == 3);
    cr_expect(task_of("a", 1) == NULL);
}

Test(results, a_lost_input_that_cannot_be_is_a_failure_like_others)
{
    static const char *const rows[] = {
        LOST("\"edge\":1,\"subtask\":0,\"attempt\":1"), /* it writes that one */
        LOST("\"edge\":2,\"subtask\":0,\"attempt\":1"),
        LOST("\"edge\":-1,\"subtask\":0,\"attempt\":1"),
        LOST("\"edge\":0,\"subtask\":2,\"attempt\":1"),
        LOST("\"edge\":0,\"subtask\":-1,\"attempt\":1"),
        LOST("\"edge\":0,\"subtask\":\"0\",\"attempt\":1"),
        LOST("\"edge\":0,\"subtask\":0"),
        LOST(""),
        "{\"how\":\"exited\",\"code\":1,\"input_lost\":7}",
    };
    uint32_t attempt = 1;

    begin_with_b();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        end("b", 1, rows[i]);
        WAIT(&s, task_of("b", 1) && task_of("b", 1)->attempt > attempt);
        attempt = task_of("b", 1)->attempt;
        cr_expect(task_of("a", 0) == NULL && task_of("a", 1) == NULL, "row %zu", i);
        cr_expect(eq(u32, task_of("b", 0)->attempt, 1), "row %zu", i);
    }
}

/* ---- deleting ---------------------------------------------------------------------------------
 */

Test(results, what_a_finished_task_wrote_stays_and_the_rest_does_not)
{
    begin();
    end("a", 0, DONE);
    WAIT(&s, agent->n_forget == 1);
    cr_expect(eq(u32, agent->n_finished, 1));
    end("a", 1, "{\"how\":\"exited\",\"code\":1}");
    WAIT(&s, agent->n_forget == 2);
    cr_expect(eq(u32, agent->n_finished, 1));
}

Test(results, an_end_that_is_reported_again_does_not_delete_the_result)
{
    struct fake_task done;

    begin();
    done = *task_of("a", 0);
    done.deployment = NULL;
    end("a", 0, DONE);
    WAIT(&s, agent->n_forget == 1);
    service_kill(&s, SIGKILL);
    service_start(&s);
    done.state = "ended"; /* as if FORGET had been lost */
    done.end = DONE;
    *(struct fake_task *)vec_push(NULL, &agent->tasks) = done;
    agent->welcome = false;
    WAIT(&s, agent->welcome && agent->n_forget == 2);
    cr_expect(eq(u32, agent->n_finished, 2));
}

static void expect_discards(const char *first, const char *second)
{
    char wanted[512];

    snprintf(wanted, sizeof wanted, "%s/results|%s\n", s.state_dir, first);
    if (second)
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s/results|%s\n",
                 s.state_dir, second);
    cr_expect(eq(str, discards, wanted));
    *discards = '\0';
}

Test(results, go_when_nobody_reads_them_any_more_and_all_at_the_end) /* [1.4] */
{
    begin_with_b();
    for (uint32_t i = 0; i < 3; i++)
        end("b", i, DONE);
    WAIT(&s, task_of("c", 0) && strchr(discards, '\n') != strrchr(discards, '\n'));
    expect_discards("a-b-0/0.1", "a-b-0/1.1");
    end("c", 0, DONE);
    WAIT(&s, strstr(discards, "|all"));
    cr_expect(eq(str, (char *)status_text(&s, job, "job_status"), "FINISHED"));
    *discards = '\0';
    /* Until somebody says that it is done whoever comes is asked, also by the next daemon. */
    agent_reconnect(agent);
    WAIT(&s, agent->welcome && *discards);
    expect_discards("all", NULL);
    service_kill(&s, SIGKILL);
    service_start(&s);
    agent->welcome = false;
    WAIT(&s, agent->welcome && *discards);
    expect_discards("all", NULL);
    {
        char body[64];

        snprintf(body, sizeof body, "{\"job\":\"%s\"}", job);
        agent_send(agent, MESSAGE_DISCARDED, body);
        agent_send(agent, MESSAGE_DISCARDED, body); /* said twice */
        agent_send(agent, MESSAGE_DISCARDED, "{\"job\":\"unknown\"}");
        agent_send(agent, MESSAGE_DISCARDED, "{\"job\":7}");
    }
    agent_reconnect(agent);
    WAIT(&s, agent->welcome);
    service_pass(&s, 300);
    cr_expect(eq(str, discards, ""));
}

Test(results, a_job_that_has_ended_shows_with_how_many_tasks_it_ran)
{
    begin_with_b();
    service_kill(&s, SIGKILL); /* a has finished: of that only its core knows */
    service_start(&s);
    agent->welcome = false;
    WAIT(&s, agent->welcome);
    for (uint32_t i = 0; i < 3; i++)
        end("b", i, DONE);
    WAIT(&s, task_of("c", 0));
    end("c", 0, DONE);
    for (int again = 0; again < 2; again++) {
        WAIT(&s, state_is(&s, job, "Finished"));
        cr_expect(eq(i64, parallelism(&s, job, "a"), 2));
        cr_expect(eq(i64, parallelism(&s, job, "b"), 3));
        cr_expect(eq(i64, parallelism(&s, job, "c"), 1));
        service_kill(&s, SIGKILL);
        service_start(&s);
    }
}

Test(results, of_a_damaged_job_go_with_it)
{
    char path[160];
    sqlite3 *db;

    service_open(&s, BRISK, "-D", "pliant.results.dir=file:///shared/results", NULL);
    agent = agent_join(&s, "n1", 3);
    agent->other = take_discard;
    submit(&s, spec, job);
    WAIT(&s, agent_running(agent) == 2);
    service_kill(&s, SIGKILL);
    snprintf(path, sizeof path, "%s/pliant.db", s.state_dir);
    cr_assert(eq(int, sqlite3_open(path, &db), SQLITE_OK));
    cr_assert(eq(int, sqlite3_exec(db, "UPDATE job SET spec = '['", NULL, NULL, NULL), SQLITE_OK));
    sqlite3_close(db);
    service_start(&s);
    agent->welcome = false;
    WAIT(&s, agent->welcome);
    cr_assert(eq(int, call(&s, MESSAGE_REMOVE, "{\"job\":\"%s\",\"force\":true}", job), 0));
    WAIT(&s, *discards && agent_running(agent) == 0);
    cr_expect(strstr(discards, "/shared/results|all\n") == discards, "%s", discards);
}

/* ---- options ----------------------------------------------------------------------------------
 */

Test(results, are_put_where_the_job_says)
{
    service_open(&s, BRISK, "-D", "pliant.results.dir=/shared/results", NULL);
    agent = agent_join(&s, "n1", 3);
    submit(&s, spec, job);
    WAIT(&s, agent_running(agent) == 2);
    cr_expect(was_told("a", 0, "\"results\":\"/shared/results\""));
    cr_expect(eq(int,
                 call(&s, MESSAGE_SUBMIT,
                      "{\"spec\":\"{\\\"vertices\\\":[{\\\"id\\\":\\\"a\\\",\\\"command\\\":["
                      "\\\"x\\\"]}]}\",\"options\":[[\"pliant.results.dir\",\"here\"]]}"),
                 -EPROTO));
    cr_expect(strstr(s.refusal.text, "absolute path") != NULL, "%s", s.refusal.text);
}

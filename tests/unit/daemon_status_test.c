/* daemon_status_test.c - documents about a job, while it lives and after its end */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/status.h"

/* ---- what else the daemon has --------------------------------------------------------------- */

static char *final;

const char *job_final(struct daemon *d, const struct daemon_job *job)
{
    (void)d;
    (void)job;
    return final;
}

struct daemon_task *job_task(struct daemon_job *job, const struct pliant_task *task)
{
    static struct daemon_task known = {.slot = 7,
                                       .pid = 4711,
                                       .since_unix_ms = 1700000000123,
                                       .rss_bytes = UINT64_C(1) << 33,
                                       .cpu_ms = 1500};

    (void)job;
    return task->subtask == 0 ? &known : NULL;
}

void checkpoints_write(struct daemon *d, struct daemon_job *job, struct json *j)
{
    (void)d;
    (void)job;
    json_begin(j, "checkpoints", '[');
    json_end(j, ']');
}

int64_t clock_to_unix(const struct daemon_clock *c, int64_t at_ms)
{
    return at_ms - c->now_ms + c->unix_ms;
}

void logs_write_attempts(const struct daemon_job *job, struct json *j)
{
    (void)job;
    json_null(j, "attempts");
}

/* ---- a job ---------------------------------------------------------------------------------- */

static struct daemon d;
static struct daemon_job job;
static struct doc_file f;
static struct pliant_config config;

static void step(const struct pliant_event *ev)
{
    struct pliant_actions acts;
    struct pliant_event answers[16];
    uint32_t plan = 0, n = 0;

    cr_assert(eq(int, pliant_step(job.sched, d.clock.now_ms, ev, &acts), 0));
    for (size_t i = 0; i < acts.n; i++)
        if (acts.v[i].kind == PLIANT_ACT_RESERVE)
            plan = acts.v[i].reserve.plan;
        else if (acts.v[i].kind == PLIANT_ACT_DEPLOY)
            answers[n++] = (struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING,
                                                 .task = acts.v[i].deploy.task};
        else if (acts.v[i].kind == PLIANT_ACT_CANCEL)
            answers[n++] =
                (struct pliant_event){.kind = PLIANT_EV_TASK_CANCELED, .task = acts.v[i].task};
    if (plan)
        step(&(struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED, .plan.plan = plan});
    for (uint32_t i = 0; i < n; i++)
        step(&answers[i]);
}

static void node_event(enum pliant_event_kind kind, const char *name, uint32_t slots)
{
    struct pliant_event ev = {.kind = kind};

    if (kind == PLIANT_EV_NODE_UP) {
        ev.node_up.name = name;
        ev.node_up.incarnation = 1;
        ev.node_up.slots = slots;
    } else {
        ev.draining.name = name;
        ev.draining.incarnation = 1;
        ev.draining.deadline_at_ms = d.clock.now_ms + 60000;
    }
    step(&ev);
}

static void make_job(void)
{
    static const struct pliant_vertex_spec v = {
        .id = "work", .parallelism = 4, .min_parallelism = 2, .max_parallelism = 128};

    d = (struct daemon){.clock = {.now_ms = 5000, .awake_ms = 5000, .unix_ms = 1700000005000}};
    job = (struct daemon_job){.name = "count", .submitted_unix_ms = 1700000000000};
    memset(job.id, 'a', STORE_ID - 1);
    pliant_config_init(&config);
    pliant_config_set(&config, "jobmanager.adaptive-scheduler.resource-stabilization-timeout",
                      "10 s", NULL);
    cr_assert(eq(int, pliant_config_resolve(&config, NULL), 0));
    cr_assert(eq(int,
                 pliant_job_new(&(struct pliant_job_spec){.vertices = &v, .n_vertices = 1}, NULL,
                                &job.spec.job, NULL),
                 0));
    job.config = &config;
    cr_assert(eq(int, pliant_sched_new(&config, job.spec.job, &job.sched, NULL), 0));
    step(&(struct pliant_event){.kind = PLIANT_EV_START});
}

static void free_job(void)
{
    pliant_sched_destroy(&job.sched);
    pliant_job_destroy(&job.spec.job);
    doc_free(&f);
    free(final);
    final = NULL;
}

TestSuite(daemon_status, .init = make_job, .fini = free_job);

/* A document as who gets it reads it. */
static const struct doc *read_back(struct json *j)
{
    struct spec_error err;

    cr_assert(eq(int, j->error, 0));
    f.name = "reply";
    cr_assert(eq(int, doc_line(&f, j->v, j->n, 1, &err), 0), "%s", err.text);
    json_free(j);
    return f.root;
}

static const struct doc *document(void (*put)(struct daemon *d, struct daemon_job *job,
                                              struct json *j))
{
    struct json j;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    put(&d, &job, &j);
    json_end(&j, '}');
    return read_back(&j);
}

/* "a.b.0": members and elements. */
static const struct doc *find(const struct doc *at, const char *path)
{
    char name[64];

    while (at && *path) {
        size_t n = strcspn(path, ".");

        snprintf(name, sizeof name, "%.*s", (int)n, path);
        if (at->kind == DOC_LIST) {
            at = at->child;
            for (int i = atoi(name); at && i > 0; i--)
                at = at->next;
        } else {
            at = doc_get(at, name);
        }
        path += n + (path[n] == '.');
    }
    return at;
}

static const char *text_at(const struct doc *at, const char *path)
{
    const struct doc *found = find(at, path);

    return !found ? "missing" : found->kind == DOC_NULL ? "null" : found->text ? found->text : "";
}

#define EXPECT(root, path, wanted)                                                                 \
    cr_expect(eq(str, (char *)text_at((root), (path)), (char *)(wanted)), "%s", (path))

static void run_on_three(void)
{
    node_event(PLIANT_EV_NODE_UP, "n1", 3);
    d.clock.now_ms += 10000;
    d.clock.unix_ms += 10000;
    step(&(struct pliant_event){.kind = PLIANT_EV_TICK});
}

Test(daemon_status, tells_what_is_and_what_is_wanted_apart) /* known trouble 076 */
{
    const struct doc *root;

    run_on_three();
    root = document(status_members);
    EXPECT(root, "name", "count");
    EXPECT(root, "state", "Executing");
    EXPECT(root, "job_status", "RUNNING");
    EXPECT(root, "vertices.work.parallelism", "3");
    EXPECT(root, "vertices.work.desired", "4");
    EXPECT(root, "vertices.work.bounds.0", "2");
    EXPECT(root, "vertices.work.bounds.1", "4");
    EXPECT(root, "slots.offered", "3");
    EXPECT(root, "slots.used", "3");
    EXPECT(root, "restarts", "0");
    EXPECT(root, "checkpoint", "null");
    EXPECT(root, "tasks.0.node", "n1");
    EXPECT(root, "tasks.0.pid", "4711");
    EXPECT(root, "tasks.0.state", "RUNNING");
    EXPECT(root, "tasks.1.pid", "null");
    EXPECT(root, "submitted_unix_ms", "1700000000000");
}

Test(daemon_status, tells_what_comes_next_and_when)
{
    const struct doc *root;

    root = document(status_members);
    EXPECT(root, "state", "WaitingForResources");
    EXPECT(root, "next.decision", "resource-timeout");
    EXPECT(root, "next.at_ms", "300000");
    EXPECT(root, "next.why", "0 slots offered, 2 to 4 wanted, phase Idling");
    node_event(PLIANT_EV_NODE_UP, "n1", 2);
    root = document(status_members);
    EXPECT(root, "next.decision", "sufficient-resources");
    EXPECT(root, "next.at_ms", "10000");
}

Test(daemon_status, a_job_that_moves_off_a_node_is_draining)
{
    const struct doc *root;

    run_on_three();
    node_event(PLIANT_EV_NODE_DRAINING, "n1", 0);
    root = document(status_members);
    EXPECT(root, "state", "Executing(draining)");
    EXPECT(root, "next.decision", "drain");
}

Test(daemon_status, tasks_have_what_the_host_knows)
{
    const struct doc *root;

    run_on_three();
    root = document(status_tasks);
    EXPECT(root, "tasks.0.slot", "7");
    EXPECT(root, "tasks.0.since_unix_ms", "1700000000123");
    EXPECT(root, "tasks.0.rss_bytes", "8589934592");
    EXPECT(root, "tasks.1.slot", "null");
    EXPECT(root, "tasks.1.since_unix_ms", "null");
}

static void fail_a_task(void)
{
    step(&(struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                .failure = {.task = {.vertex = {1}, .subtask = 1, .attempt = 1},
                                            .recoverable = true,
                                            .cause = "exit code 3"}});
}

Test(daemon_status, histories_are_in_wall_clock_time)
{
    const struct doc *root;

    run_on_three();
    fail_a_task();
    root = document(status_failures);
    EXPECT(root, "failures.0.items.0.reason", "task-failed");
    EXPECT(root, "failures.0.items.0.at_unix_ms", "1700000015000");
    EXPECT(root, "failures.0.items.0.vertex", "work");
    EXPECT(root, "failures.0.items.0.node", "n1");
    EXPECT(root, "failures.0.items.0.cause", "exit code 3");
    root = document(status_rescales);
    EXPECT(root, "rescales.0.trigger", "INITIAL_SCHEDULE");
    EXPECT(root, "rescales.0.started_unix_ms", "1700000005000");
    EXPECT(root, "rescales.0.vertices.work.post", "3");
    EXPECT(root, "rescales.0.judged", "null");
    EXPECT(root, "rescales.0.spans.0.state", "Created");
    EXPECT(root, "summary.all.count", "1");
}

/* What is kept of a job that has ended is what there was. */
Test(daemon_status, the_documents_of_an_ended_job_stay_the_same)
{
    static void (*const documents[])(struct daemon * d, struct daemon_job * job,
                                     struct json * j) = {
        status_members, status_tasks, status_rescales, status_failures, status_checkpoints};
    char word[STATUS_WORD_MAX], *before[5];
    struct pliant_sched *sched;
    uint32_t ran[] = {3}; /* the core has forgotten it */
    struct json j;

    run_on_three();
    fail_a_task();
    step(&(struct pliant_event){.kind = PLIANT_EV_CANCEL});
    job.ran = ran;
    job.ended_unix_ms = 1700000020000;
    for (size_t i = 0; i < 6; i++) {
        json_init(&j, NULL);
        json_begin(&j, NULL, '{');
        if (i < 5)
            documents[i](&d, &job, &j);
        else
            status_final(&d, &job, &j);
        json_end(&j, '}');
        if (i < 5)
            before[i] = strndup(j.v, j.n);
        else
            final = strndup(j.v, j.n);
        json_free(&j);
    }
    sched = job.sched;
    job.sched = NULL;
    EXPECT(document(status_members), "vertices.work.parallelism", "3");
    for (size_t i = 0; i < 5; i++) {
        json_init(&j, NULL);
        json_begin(&j, NULL, '{');
        documents[i](&d, &job, &j);
        json_end(&j, '}');
        cr_expect(eq(sz, j.n, strlen(before[i])));
        cr_expect(strncmp(j.v, before[i], j.n) == 0, "%.*s\n%s", (int)j.n, j.v, before[i]);
        json_free(&j);
        free(before[i]);
    }
    cr_expect(eq(str, (char *)status_word(&d, &job, word),
                 (char *)pliant_job_status_name(pliant_job_status(sched))));
    job.sched = sched;
}

Test(daemon_status, a_job_without_documents_is_no_harm)
{
    char word[STATUS_WORD_MAX];
    struct pliant_sched *sched = job.sched;

    job.sched = NULL;
    cr_expect(eq(str, (char *)status_word(&d, &job, word), "UNKNOWN"));
    cr_expect(eq(u32, document(status_members)->n, 0));
    final = strdup("{\"job_status\":\"A_STATUS_OF_A_LATER_VERSION_THAT_IS_LONG\"}");
    cr_expect(eq(sz, strlen(status_word(&d, &job, word)), STATUS_WORD_MAX - 1));
    cr_expect(eq(u32, document(status_failures)->n, 0));
    job.sched = sched;
}

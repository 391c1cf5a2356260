/* worker_test.c - the worker's library against an agent that follows a script */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <pliant/worker.h>

#include "worker/json_read.h"

/* ---- the agent ----------------------------------------------------------------------------------
 */

#define HELLO "\"op\":\"hello\",\"n\":0"
#define GREETING "{\"n\":0,\"ok\":true,\"calls\":0,\"seqs\":0}\n"
#define HANG_UP "" /* instead of an answer */

struct step {
    const char *expect, *answer; /* a part of the line that comes; what it is answered with */
};

static struct {
    char dir[64], path[108];
    int listener;
    const struct step *script;
    char wrong[1024]; /* the first line that was not as expected */
    pthread_t thread;
} agent;

static void follow_script(int *connection, FILE **lines, const struct step *step)
{
    static char line[300000];

    while (!*lines || !fgets(line, sizeof line, *lines)) {
        if (*lines)
            fclose(*lines);
        *connection = accept(agent.listener, NULL, NULL);
        *lines = fdopen(*connection, "r");
    }
    if (!strstr(line, step->expect) && !*agent.wrong)
        snprintf(agent.wrong, sizeof agent.wrong, "%.400s instead of %.400s", line, step->expect);
    if (*step->answer) {
        if (write(*connection, step->answer, strlen(step->answer)) < 0)
            snprintf(agent.wrong, sizeof agent.wrong, "write: %s", strerror(errno));
    } else {
        fclose(*lines);
        *lines = NULL;
    }
}

static void *agent_main(void *script)
{
    int connection = -1;
    FILE *lines = NULL;

    for (const struct step *step = script; step->expect; step++)
        follow_script(&connection, &lines, step);
    if (lines && read(connection, (char[1]){0}, 1) != 0) /* the worker closes */
        snprintf(agent.wrong, sizeof agent.wrong, "more than the script has");
    if (lines)
        fclose(lines);
    return NULL;
}

static void setup(void)
{
    strcpy(agent.dir, "/tmp/pliant-worker-XXXXXX");
    cr_assert(mkdtemp(agent.dir) != NULL);
    snprintf(agent.path, sizeof agent.path, "%s/socket", agent.dir);
    setenv("PLIANT_WORKER_SOCKET", agent.path, 1);
    setenv("PLIANT_RUN_DIR", agent.dir, 1);
    cr_assert(chdir(agent.dir) == 0);
}

static void teardown(void)
{
    char command[100];

    snprintf(command, sizeof command, "rm -rf %s", agent.dir);
    cr_assert(system(command) == 0);
}

TestSuite(worker, .init = setup, .fini = teardown, .timeout = 60);

static void agent_start(const struct step *script)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    strcpy(at.sun_path, agent.path);
    agent.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert(bind(agent.listener, (struct sockaddr *)&at, sizeof at) == 0);
    cr_assert(listen(agent.listener, 8) == 0);
    cr_assert(pthread_create(&agent.thread, NULL, agent_main, (void *)script) == 0);
}

/* The whole script was followed. */
static void agent_end(struct pliant_worker *w)
{
    pliant_worker_close(w);
    pthread_join(agent.thread, NULL);
    close(agent.listener);
    cr_assert(not(agent.wrong[0]), "%s", agent.wrong);
}

static struct pliant_worker *open_worker(void)
{
    struct pliant_worker *w;

    cr_assert(eq(int, pliant_worker_new(&w), 0), "%s", pliant_worker_error(w));
    return w;
}

static void as_rank(const char *rank, const char *size)
{
    setenv("RANK", rank, 1);
    setenv("WORLD_SIZE", size, 1);
}

static void as_subtask(const char *subtask, const char *parallelism)
{
    setenv("PLIANT_VERTEX", "count", 1);
    setenv("PLIANT_SUBTASK", subtask, 1);
    setenv("PLIANT_PARALLELISM", parallelism, 1);
    setenv("PLIANT_MAX_PARALLELISM", "128", 1);
}

/* ---- environment
 * --------------------------------------------------------------------------------- */

Test(worker, outside_pliant_does_all_of_it_without_waiting)
{
    const struct pliant_worker_preemption *info;
    struct pliant_worker_event ev;
    struct pliant_worker *w;
    struct pollfd p = {.events = POLLIN};
    const char *dir, *latest;
    struct stat st;

    unsetenv("PLIANT_WORKER_SOCKET");
    unsetenv("PLIANT_RUN_DIR");
    w = open_worker();
    cr_expect(not(pliant_worker_managed(w)));
    cr_expect(eq(int, pliant_worker_get_checkpoint(w, &latest), 0));
    cr_expect(latest == NULL);
    cr_assert(eq(int, pliant_worker_checkpoint_dir(w, &dir), 0));
    cr_assert(stat(dir, &st) == 0 && S_ISDIR(st.st_mode));
    cr_expect(eq(int, pliant_worker_report(w, "{\"loss\":1}", dir), 0));
    cr_expect(eq(int, pliant_worker_get_checkpoint(w, &latest), 0));
    cr_expect(eq(str, (char *)latest, (char *)dir));
    cr_expect(eq(int, pliant_worker_get_preemption_info(w, &info), 0));
    cr_expect(info == NULL);
    cr_expect(eq(int, pliant_worker_take_checkpoints(w), 0));
    cr_expect(eq(int, pliant_worker_next(w, 1, &ev), 0));
    cr_expect(eq(int, pliant_worker_part_done(w, "1"), 0));
    cr_expect(eq(int, pliant_worker_end_of_data(w), 0));
    p.fd = pliant_worker_fd(w);
    cr_expect(p.fd >= 0 && poll(&p, 1, 0) == 0);
    pliant_worker_close(w);
}

Test(worker, knows_its_place)
{
    const struct pliant_worker_task *t;
    struct pliant_worker *w;

    as_rank("2", "3");
    setenv("PLIANT_ATTEMPT", "7", 1);
    w = open_worker();
    t = pliant_worker_task(w);
    cr_expect(t->group && t->subtask == 2 && t->parallelism == 3 && t->attempt == 7);
    cr_expect(eq(str, (char *)t->run_dir, agent.dir));
    pliant_worker_close(w);

    as_subtask("1", "4");
    setenv("PLIANT_KEY_GROUPS", "32-63", 1);
    w = open_worker();
    t = pliant_worker_task(w);
    cr_expect(not(t->group)); /* RANK is a stranger's */
    cr_expect(t->subtask == 1 && t->parallelism == 4 && t->max_parallelism == 128);
    cr_expect(t->first_key_group == 32 && t->last_key_group == 63);
    pliant_worker_close(w);

    setenv("PLIANT_JOB_ID", "12ab", 1);
    setenv("TORCHELASTIC_RUN_ID", "12ab", 1);
    w = open_worker();
    cr_expect(pliant_worker_task(w)->group);
    pliant_worker_close(w);
}

Test(worker, reads_of_old_parts_what_is_its_own)
{
    const struct pliant_worker_part *parts;
    struct pliant_worker *w;
    size_t n;

    as_subtask("1", "4"); /* 32-63; of 3 subtasks the first had 0-42 */
    setenv("PLIANT_RESTORE", "/c/chk-1/count/0-3:/c/chk-1/count/1-3:/c/chk-1/count/2-3", 1);
    w = open_worker();
    parts = pliant_worker_restore_parts(w, &n);
    cr_assert(eq(sz, n, 2));
    cr_expect(eq(str, (char *)parts[0].dir, "/c/chk-1/count/0-3"));
    cr_expect(parts[0].subtask == 0 && parts[0].parallelism == 3);
    cr_expect(parts[0].first_key_group == 32 && parts[0].last_key_group == 42);
    cr_expect(parts[1].subtask == 1 && parts[1].first_key_group == 43 &&
              parts[1].last_key_group == 63);
    pliant_worker_close(w);
}

Test(worker, names_the_variable_that_is_wrong)
{
    static const struct {
        const char *name, *value;
    } rows[] = {{"PLIANT_SUBTASK", "4"},        {"PLIANT_PARALLELISM", "many"},
                {"PLIANT_ATTEMPT", "0"},        {"PLIANT_KEY_GROUPS", "12"},
                {"PLIANT_KEY_GROUPS", "9-3"},   {"PLIANT_RESTORE", "/c/chk-1/count"},
                {"PLIANT_RESTORE", "/c/3-3"},   {"PLIANT_MAX_PARALLELISM", "3"},
                {"PLIANT_RESTORE", "/c/0-900"}, {"PLIANT_SLOT", "-1"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pliant_worker *w;

        as_subtask("1", "4");
        setenv(rows[i].name, rows[i].value, 1);
        cr_expect(eq(int, pliant_worker_new(&w), -EINVAL), "row %zu", i);
        cr_expect(strstr(pliant_worker_error(w), rows[i].name) != NULL, "row %zu: %s", i,
                  pliant_worker_error(w));
        pliant_worker_close(w);
        unsetenv(rows[i].name);
    }
}

/* ---- worker groups
 * --------------------------------------------------------------------------------- */

Test(worker, takes_the_directory_of_rank_0_and_reports_it) /* [W-CKP-1] */
{
    static const struct step script[] = {
        {HELLO, GREETING},
        {"\"op\":\"enter\",\"n\":1,\"seq\":1,\"kind\":\"dir\",\"payload\":\"checkpoint_",
         "{\"n\":1,\"ok\":true,\"payload\":\"of-rank-0\"}\n"},
        {"\"op\":\"report\",\"n\":2,\"call\":1,\"checkpoint\":\"of-rank-0\",\"bytes\":0,"
         "\"metrics\":{ "
         "\"loss\":0.5}}",
         "{\"n\":2,\"ok\":true}\n"},
        {"\"op\":\"report\",\"n\":3,\"call\":2,\"checkpoint\":null,\"bytes\":0,\"metrics\":{}}",
         "{\"n\":3,\"ok\":true}\n"},
        {"\"op\":\"get_checkpoint\",\"n\":4", "{\"n\":4,\"ok\":true,\"dir\":\"/r/\\u00e4\"}\n"},
        {0}};
    struct pliant_worker *w;
    const char *dir;
    char want[200];

    as_rank("1", "2");
    agent_start(script);
    w = open_worker();
    cr_assert(eq(int, pliant_worker_checkpoint_dir(w, &dir), 0), "%s", pliant_worker_error(w));
    snprintf(want, sizeof want, "%s/of-rank-0", agent.dir);
    cr_expect(eq(str, (char *)dir, want));
    cr_expect(eq(int, pliant_worker_report(w, "{\n\"loss\":0.5}", dir), 0), "%s",
              pliant_worker_error(w));
    cr_expect(eq(int, pliant_worker_report(w, NULL, NULL), 0));
    cr_expect(eq(int, pliant_worker_get_checkpoint(w, &dir), 0));
    cr_expect(eq(str, (char *)dir, "/r/ä"));
    agent_end(w);
}

Test(worker, goes_on_counting_where_the_task_was)
{
    static const struct step script[] = {{HELLO, "{\"n\":0,\"ok\":true,\"calls\":6,\"seqs\":3}\n"},
                                         {"\"call\":7", "{\"n\":1,\"ok\":true}\n"},
                                         {"\"op\":\"get_preemption_info\",\"n\":2,\"seq\":4",
                                          "{\"n\":2,\"ok\":true,\"info\":null}\n"},
                                         {0}};
    const struct pliant_worker_preemption *info;
    struct pliant_worker *w;

    as_rank("0", "2");
    agent_start(script);
    w = open_worker();
    cr_expect(eq(int, pliant_worker_report(w, NULL, NULL), 0));
    cr_expect(eq(int, pliant_worker_get_preemption_info(w, &info), 0));
    cr_expect(info == NULL);
    agent_end(w);
}

Test(worker, says_again_what_is_unanswered_when_the_connection_breaks)
{
    static const struct step script[] = {
        {HELLO, HANG_UP},
        {HELLO, GREETING},
        {"\"op\":\"report\",\"n\":1,\"call\":1", HANG_UP},
        {HELLO, "no JSON\n"},
        {HELLO, "{\"n\":0,\"ok\":true,\"calls\":0}\n"},
        {"\"op\":\"report\",\"n\":1,\"call\":1", "{\"n\":1,\"ok\":true}\n"},
        {"\"call\":2", "{\"n\":2,\"ok\":true}\n"},
        {0}};
    struct pliant_worker *w;

    as_rank("0", "1");
    agent_start(script);
    w = open_worker();
    cr_expect(eq(int, pliant_worker_report(w, NULL, NULL), 0), "%s", pliant_worker_error(w));
    cr_expect(eq(int, pliant_worker_report(w, NULL, NULL), 0), "%s", pliant_worker_error(w));
    agent_end(w);
}

Test(worker, gives_up_when_patience_ends)
{
    struct pliant_worker *w = open_worker(); /* nobody listens */

    pliant_worker_set_patience(w, 20);
    cr_expect(eq(int, pliant_worker_end_of_data(w), -ETIMEDOUT));
    cr_expect(strstr(pliant_worker_error(w), agent.path) != NULL);
    pliant_worker_close(w);
}

Test(worker, tells_what_the_agent_refused)
{
    static const struct step script[] = {
        {HELLO, GREETING},
        {"\"call\":1",
         "{\"n\":1,\"ok\":false,\"code\":\"out-of-order\",\"text\":\"rank 1 is at 2\"}\n"},
        {"end_of_data", "{\"n\":2,\"ok\":false,\"code\":\"unavailable\",\"text\":\"no daemon\"}\n"},
        {"end_of_data", "{\"n\":2,\"ok\":true}\n"}, /* asked again */
        {"end_of_data", "{\"ok\":false,\"code\":\"failed\"}\n"},
        {0}};
    struct pliant_worker *w;

    as_rank("0", "2");
    agent_start(script);
    w = open_worker();
    cr_expect(eq(int, pliant_worker_report(w, NULL, NULL), -EPROTO));
    cr_expect(eq(str, (char *)pliant_worker_error(w), "rank 1 is at 2"));
    cr_expect(eq(int, pliant_worker_end_of_data(w), 0));
    cr_expect(eq(int, pliant_worker_end_of_data(w), -EREMOTEIO));
    agent_end(w);
}

Test(worker, refuses_reports_that_make_no_sense)
{
    static const struct step script[] = {{HELLO, GREETING}, {0}};
    static const struct {
        const char *metrics, *checkpoint;
        int r;
    } rows[] = {{"[1]", NULL, -EINVAL},       {"{", NULL, -EINVAL},      {"{}", "a/b", -EINVAL},
                {"{}", "..", -EINVAL},        {"{}", "absent", -ENOENT}, {"{}", "", -EINVAL},
                {"{\"a\":01}", NULL, -EINVAL}};
    char *long_one = malloc(300000);
    struct pliant_worker *w;

    agent_start(script);
    w = open_worker();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect(eq(int, pliant_worker_report(w, rows[i].metrics, rows[i].checkpoint), rows[i].r),
                  "row %zu: %s", i, pliant_worker_error(w));
    memset(long_one, ' ', 299999);
    memcpy(long_one, "{\"a\":[1", 7);
    memcpy(long_one + 299997, "]}", 3);
    cr_expect(eq(int, pliant_worker_report(w, long_one, NULL), -EINVAL));
    free(long_one);
    agent_end(w);
}

Test(worker, stops_waiting_for_ranks_that_will_not_come)
{
    static const struct step script[] = {
        {HELLO, GREETING}, {"\"call\":1", "{\"ev\":\"stop\"}\n"}, {0}};
    struct pliant_worker_event ev;
    struct pliant_worker *w;

    as_rank("0", "2");
    agent_start(script);
    w = open_worker();
    cr_expect(eq(int, pliant_worker_report(w, NULL, NULL), -ECANCELED));
    cr_expect(pliant_worker_stopping(w));
    cr_expect(eq(int, pliant_worker_next(w, 0, &ev), 1));
    cr_expect(eq(int, ev.kind, PLIANT_WORKER_STOP));
    cr_expect(eq(int, pliant_worker_next(w, 0, &ev), 0));
    agent_end(w);
}

Test(worker, gives_all_ranks_one_notice) /* [W-PRE-20] */
{
#define INFO                                                                                       \
    "{\"deadline_ms\":null,\"stop_at_ms\":1700000000000,\"preempted_ranks\":[1,3],"                \
    "\"preempted_node_ids\":[\"n\\\"2\"],\"preempted_node_to_ranks\":{\"n\\\"2\":[1,3]}}"
    static const struct step script[] = {
        {HELLO, "{\"ev\":\"preemption\",\"info\":" INFO "}\n" GREETING},
        {"get_preemption_info", "{\"n\":1,\"ok\":true,\"info\":" INFO "}\n"},
        {"get_preemption_info", "{\"n\":2,\"ok\":true,\"info\":{\"preempted_ranks\":[-1]}}\n"},
        {0}};
    const struct pliant_worker_preemption *info;
    struct pliant_worker_event ev;
    struct pliant_worker *w;

    as_rank("0", "4");
    agent_start(script);
    w = open_worker();
    cr_assert(eq(int, pliant_worker_get_preemption_info(w, &info), 0), "%s",
              pliant_worker_error(w));
    cr_assert(info != NULL);
    cr_expect(eq(str, (char *)info->json, INFO));
    cr_expect(eq(i64, info->deadline_unix_ms, PLIANT_WORKER_NO_DEADLINE));
    cr_expect(eq(i64, info->stop_at_unix_ms, 1700000000000));
    cr_assert(eq(sz, info->n_ranks, 2));
    cr_expect(info->ranks[0] == 1 && info->ranks[1] == 3);
    cr_assert(eq(sz, info->n_nodes, 1));
    cr_expect(eq(str, (char *)info->nodes[0], "n\"2"));
    cr_expect(eq(int, pliant_worker_next(w, 0, &ev), 1));
    cr_expect(eq(int, ev.kind, PLIANT_WORKER_PREEMPTION));
    cr_expect(eq(sz, ev.preemption->n_ranks, 2));
    cr_expect(eq(int, pliant_worker_get_preemption_info(w, &info), -EPROTO));
    agent_end(w);
}

/* ---- graph jobs
 * -------------------------------------------------------------------------------------- */

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[300];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

Test(worker, writes_the_parts_that_are_asked_for)
{
    static char asked[400], asked_again[800];
    static struct step script[] = {
        {"\"op\":\"hello\",\"n\":0,\"library\":\"pliant-c 0.1.0\",\"checkpoints\":true", asked},
        {"\"op\":\"end_of_data\",\"n\":1", HANG_UP},
        {"\"checkpoints\":true", asked_again}, /* known: not handed out again */
        {"\"op\":\"end_of_data\",\"n\":1", "{\"n\":1,\"ok\":true}\n"},
        {"\"op\":\"part\",\"n\":2,\"id\":\"17\",\"ok\":true,\"bytes\":5}",
         "{\"n\":2,\"ok\":true}\n"},
        {"\"op\":\"part\",\"n\":3,\"id\":\"18\",\"ok\":false,\"cause\":\"disk\"}",
         "{\"n\":3,\"ok\":true}\n"},
        {0}};
    struct pliant_worker_event ev;
    struct pliant_worker *w;

    snprintf(asked, sizeof asked,
             GREETING "{\"ev\":\"new-kind\"}\n{\"ev\":\"checkpoint\",\"id\":\"17\",\"dir\":\"%s\","
                      "\"savepoint\":false}\n",
             agent.dir);
    snprintf(asked_again, sizeof asked_again,
             "%s{\"ev\":\"checkpoint\",\"id\":\"18\",\"dir\":\"%s\",\"savepoint\":true}\n", asked,
             agent.dir);
    as_subtask("0", "1");
    agent_start(script);
    w = open_worker();
    cr_assert(eq(int, pliant_worker_take_checkpoints(w), 0), "%s", pliant_worker_error(w));
    cr_assert(eq(int, pliant_worker_next(w, -1, &ev), 1));
    cr_expect(eq(int, ev.kind, PLIANT_WORKER_CHECKPOINT));
    cr_expect(eq(str, (char *)ev.id, "17"));
    cr_expect(eq(str, (char *)ev.dir, agent.dir));
    write_file(ev.dir, "state", "12345");
    cr_expect(eq(int, pliant_worker_end_of_data(w), 0));
    cr_expect(eq(int, pliant_worker_part_done(w, "17"), 0), "%s", pliant_worker_error(w));
    cr_assert(eq(int, pliant_worker_next(w, -1, &ev), 1));
    cr_expect(eq(str, (char *)ev.id, "18"));
    cr_expect(ev.savepoint);
    cr_expect(eq(int, pliant_worker_part_failed(w, ev.id, "disk"), 0));
    cr_expect(eq(int, pliant_worker_next(w, 0, &ev), 0));
    cr_expect(eq(int, pliant_worker_part_done(w, "18"), -EINVAL));
    agent_end(w);
}

static void write_text(const char *name, const char *text)
{
    FILE *out = fopen(name, "w");

    cr_assert(out != NULL && fputs(text, out) >= 0 && fclose(out) == 0);
}

Test(worker, knows_what_it_reads_and_writes)
{
    const struct pliant_worker_output *out;
    const struct pliant_worker_input *in;
    struct pliant_worker *w = open_worker();
    size_t n;

    cr_assert(eq(int, pliant_worker_inputs(w, &in, &n), 0));
    cr_expect(eq(sz, n, 0));
    pliant_worker_close(w);
    write_text("in", "[{\"edge\":4,\"from\":\"src\",\"partitions\":[{\"subtask\":1,\"attempt\":2,"
                     "\"dir\":\"/r/1.2\",\"subpartitions\":[3,5]}]},"
                     "{\"edge\":5,\"from\":\"b\",\"partitions\":[]}]\n");
    write_text("out", "[{\"edge\":6,\"to\":\"dst\",\"dir\":\"/r/0.1\",\"subpartitions\":8}]\n");
    setenv("PLIANT_INPUTS", "in", 1);
    setenv("PLIANT_OUTPUTS", "out", 1);
    w = open_worker();
    cr_assert(eq(int, pliant_worker_inputs(w, &in, &n), 0), "%s", pliant_worker_error(w));
    cr_assert(eq(sz, n, 2));
    cr_expect(eq(u32, in[0].edge, 4));
    cr_expect(eq(str, (char *)in[0].from, "src"));
    cr_assert(eq(sz, in[0].n_partitions, 1));
    cr_expect(eq(str, (char *)in[0].partitions[0].dir, "/r/1.2"));
    cr_expect(eq(u32, in[0].partitions[0].subtask, 1));
    cr_expect(eq(u32, in[0].partitions[0].attempt, 2));
    cr_expect(eq(u32, in[0].partitions[0].first, 3));
    cr_expect(eq(u32, in[0].partitions[0].last, 5));
    cr_expect(eq(sz, in[1].n_partitions, 0));
    cr_assert(eq(int, pliant_worker_outputs(w, &out, &n), 0));
    cr_assert(eq(sz, n, 1));
    cr_expect(eq(u32, out[0].edge, 6));
    cr_expect(eq(str, (char *)out[0].to, "dst"));
    cr_expect(eq(str, (char *)out[0].dir, "/r/0.1"));
    cr_expect(eq(u32, out[0].subpartitions, 8));
    pliant_worker_close(w);
}

Test(worker, does_not_take_another_file_for_its_inputs)
{
    static const char *const rows[] = {
        "",
        "{}",
        "[7]",
        "[{\"edge\":0}]",
        "[{\"edge\":0,\"from\":\"a\",\"partitions\":7}]",
        "[{\"edge\":0,\"from\":\"a\",\"partitions\":[{}]}]",
        "[{\"edge\":0,\"from\":\"a\",\"partitions\":[{\"subtask\":0,\"attempt\":1,\"dir\":\"d\","
        "\"subpartitions\":[1]}]}]",
        "[{\"edge\":0,\"from\":\"a\",\"partitions\":[{\"subtask\":0,\"attempt\":1,\"dir\":\"d\","
        "\"subpartitions\":[2,1]}]}]",
    };
    const struct pliant_worker_input *in;
    struct pliant_worker *w;
    size_t n;

    setenv("PLIANT_INPUTS", "in", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_text("in", rows[i]);
        w = open_worker();
        cr_expect(eq(int, pliant_worker_inputs(w, &in, &n), -EINVAL), "row %zu", i);
        cr_expect(strstr(pliant_worker_error(w), "in: ") != NULL);
        pliant_worker_close(w);
    }
    unlink("in");
    w = open_worker();
    cr_expect(eq(int, pliant_worker_inputs(w, &in, &n), -ENOENT));
    pliant_worker_close(w);
}

Test(worker, tells_sizes_and_lost_inputs)
{
    static const struct step script[] = {
        {HELLO, GREETING},
        {"\"op\":\"output\",\"n\":1,\"edge\":6,\"bytes\":[1,9007199254740992]",
         "{\"n\":1,\"ok\":true}\n"},
        {"\"op\":\"output\"",
         "{\"n\":2,\"ok\":false,\"code\":\"refused\",\"text\":\"told before\"}\n"},
        {"\"op\":\"input_lost\",\"n\":3,\"edge\":4,\"subtask\":9", "{\"n\":3,\"ok\":true}\n"},
        {0},
    };
    struct pliant_worker *w = open_worker();

    agent_start(script);
    cr_expect(eq(int, pliant_worker_output_sizes(w, 6, (uint64_t[]){1, UINT64_C(1) << 53}, 2), 0));
    cr_expect(eq(int, pliant_worker_output_sizes(w, 6, NULL, 0), -EREMOTEIO));
    cr_expect(eq(str, (char *)pliant_worker_error(w), "told before"));
    cr_expect(eq(int, pliant_worker_input_lost(w, 4, 9), 0));
    agent_end(w);
}

Test(worker, has_one_descriptor_to_wait_on)
{
    static const struct step script[] = {
        {HELLO, GREETING},
        {"end_of_data",
         "{\"ev\":\"checkpoint\",\"id\":null,\"dir\":null}\n{\"n\":1,\"ok\":true}\n"},
        {"end_of_data", HANG_UP},
        {HELLO, GREETING "{\"ev\":\"stop\"}\n"},
        {"end_of_data", "{\"n\":2,\"ok\":true}\n"},
        {0}};
    struct pliant_worker *w = open_worker();
    struct pollfd p = {.fd = pliant_worker_fd(w), .events = POLLIN};
    struct pliant_worker_event ev;

    cr_expect(eq(int, poll(&p, 1, 30000), 1)); /* time to connect */
    agent_start(script);
    cr_expect(eq(int, pliant_worker_end_of_data(w), 0));
    cr_expect(eq(int, poll(&p, 1, 30000), 1)); /* came with the answer */
    cr_expect(eq(int, pliant_worker_next(w, 0, &ev), 1));
    cr_expect(ev.kind == PLIANT_WORKER_CHECKPOINT && !ev.id && !ev.dir);
    cr_expect(eq(int, pliant_worker_next(w, 0, &ev), 0));
    cr_expect(eq(int, poll(&p, 1, 0), 0));
    cr_expect(eq(int, pliant_worker_end_of_data(w), 0));
    cr_expect(eq(int, pliant_worker_fd(w), p.fd));
    cr_expect(eq(int, poll(&p, 1, 30000), 1));
    cr_expect(eq(int, pliant_worker_next(w, 0, &ev), 1));
    cr_expect(eq(int, ev.kind, PLIANT_WORKER_STOP));
    agent_end(w);
}

/* ---- JSON in place
 * -------------------------------------------------------------------------------------- */

Test(worker_json, is_strict)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"{}", true},
        {" [1, -0.5e+3 ,\"x\",null , true,false ] ", true},
        {"{\"a\":{\"b\":[]}}", true},
        {"", false},
        {"{", false},
        {"[1,]", false},
        {"{\"a\"}", false},
        {"{a:1}", false},
        {"01", false},
        {"1.", false},
        {"-", false},
        {"+1", false},
        {".5", false},
        {"1e", false},
        {"nul", false},
        {"[] []", false},
        {"\"\n\"", false},
        {"\"\\x\"", false},
        {"\"\\u12\"", false},
        {"\"\\ud800\"", false},
        {"\"\\ud83d\\ude00\"", true},
        {"\"\\u0000\"", false},
        {"\"\xff\"", false},
        {"\"\xc0\x80\"", false},
        {"\"\\\"", false},
    };
    char deep[2 * JSON_DEPTH_MAX + 3];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect(rows[i].good == (json_read(rows[i].text, strlen(rows[i].text)).v != NULL),
                  "row %zu: %s", i, rows[i].text);
    memset(deep, '[', JSON_DEPTH_MAX);
    memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    cr_expect(json_read(deep, 2 * JSON_DEPTH_MAX).v != NULL);
    memset(deep, '[', JSON_DEPTH_MAX + 1);
    memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    cr_expect(json_read(deep, 2 * JSON_DEPTH_MAX + 2).v == NULL);
}

Test(worker_json, finds_members_and_decodes_texts)
{
    static const char text[] =
        "{\"a\":{\"n\":1},\"n\" : -25 ,\"s\":\"\\u00e4\\ud83d\\ude00\\n\\\"/\","
        "\"big\":123456789012345678901234567890,\"t\":true,\"no\":null}";
    struct json_span map = json_read(text, sizeof text - 1);
    char *s = NULL;
    int64_t n = 0;
    bool t = false;

    cr_expect(eq(int, json_int64(json_get(map, "n"), &n), 0));
    cr_expect(eq(i64, n, -25));
    cr_expect(eq(int, json_text(json_get(map, "s"), &s), 0));
    cr_expect(eq(str, s, "ä😀\n\"/"));
    free(s);
    cr_expect(json_truth(json_get(map, "t"), &t) == 0 && t);
    cr_expect(eq(int, json_int64(json_get(map, "big"), &n), -EINVAL));
    cr_expect(eq(int, json_int64(json_get(map, "s"), &n), -EINVAL));
    cr_expect(eq(int, json_text(json_get(map, "n"), &s), -EINVAL));
    cr_expect(eq(int, json_text(json_get(map, "no"), &s), -ENOENT));
    cr_expect(eq(int, json_truth(json_get(map, "absent"), &t), -ENOENT));
    cr_expect(json_get(json_get(map, "n"), "x").v == NULL);
}

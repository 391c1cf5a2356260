/* ctl_test.c - pliantctl as its users see it, against a service that answers from a list */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_service.h"

#define JOB "0123456789abcdef0123456789abcdef"
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ROWS(table) (sizeof(table) / sizeof *(table))
#define MAX_WORDS 10

static struct fake f;

static void close_fake(void)
{
    fake_service_close(&f);
}

TestSuite(ctl, .fini = close_fake, .timeout = 200);

static int ctl(const char *const *words)
{
    return fake_run(&f, "pliantctl", words);
}

#define expect_in(text, part) cr_expect(strstr(text, part) != NULL, "\"%s\" in:\n%s", part, text)

/* ---- requests and replies -------------------------------------------------------------------- */

#define STATUS_OF(state, status)                                                                   \
    "{\"job_id\":\"" JOB "\",\"name\":\"wc\",\"state\":\"" state "\",\"job_status\":\"" status     \
    "\",\"submitted_unix_ms\":1700000000000,\"vertices\":{\"src\":{\"parallelism\":2,"             \
    "\"desired\":4,\"bounds\":[1,4]},\"ma\\\"p\":{\"parallelism\":2,\"desired\":4,"                \
    "\"bounds\":[2,8]}},\"tasks\":[{\"vertex\":\"src\",\"subtask\":0,\"attempt\":3,"               \
    "\"node\":\"n1\",\"pid\":77,\"state\":\"RUNNING\"}],\"slots\":{\"offered\":6,\"used\":4,"      \
    "\"since_unix_ms\":1700000000000},"                                                            \
    "\"blocked\":[{\"node\":\"n7\",\"until_unix_ms\":1700000000000},"                              \
    "{\"node\":\"n8\",\"until_unix_ms\":1700000001000}],"                                          \
    "\"restarts\":2,\"rescales\":1,\"checkpoint\":{\"id\":\"5\",\"age_ms\":12000},"                \
    "\"next\":{\"decision\":\"rescale\",\"at_ms\":65000,\"why\":\"cooldown\"}}"
#define STATUS STATUS_OF("Executing", "RUNNING")
#define NODE                                                                                       \
    "{\"node\":\"n1\",\"state\":\"draining\",\"incarnation\":\"7\",\"slots\":4,\"used\":2,"        \
    "\"address\":\"10.0.0.1\",\"zone\":\"a\",\"domain\":\"rack1\",\"labels\":{\"gpu\":\"yes\"},"   \
    "\"last_seen_ms\":1200,\"drain\":{\"reason\":\"upgrade\",\"deadline_unix_ms\":null}}"

/* clang-format off */
static const struct {
    const char *words[MAX_WORDS];
    enum message_type type;
    const char *body, *reply; /* what is asked, and the answer: with --json that is the output */
    const char *text[7];      /* what is in the output without it */
} calls[] = {
    {{"list"}, MESSAGE_LIST, "{\"ended\":false}",
     "{\"jobs\":[{\"job_id\":\"" JOB "\",\"name\":\"wc\",\"state\":\"Executing\",\"job_status\":\"RUNNING\",\"submitted_unix_ms\":1700000000000,\"ended_unix_ms\":null,\"slots_used\":4,\"desired\":8}]}",
     {"id  ", JOB "  wc    RUNNING  Executing      4       8  2023-11-14 22:13:20  -\n"}},
    {{"list", "--all"}, MESSAGE_LIST, "{\"ended\":true}", "{\"jobs\":[]}", {"no jobs\n"}},
    {{"list"}, MESSAGE_LIST, "{\"ended\":false}", "{\"jobs\":[]}", {"no jobs (list --all shows ended ones)\n"}},
    {{"status", "wc"}, MESSAGE_STATUS, "{\"job\":\"wc\"}", STATUS,
     {"Job wc (" JOB ")\n", "Executing, RUNNING", "4 used, 6 offered", "blocked      n7 until 2023-11-14 22:13:20, n8 until 2023-11-14 22:13:21\n", "5, 12 s ago", "rescale in 1 min 5 s: cooldown", "ma\"p              2       4    2..8\n"}},
    {{"status", "0123"}, MESSAGE_STATUS, "{\"job\":\"0123\"}", STATUS, {"src/0        3  n1         77  RUNNING\n"}},
    {{"scale", "wc", "src=8", "a=b=2:3"}, MESSAGE_SCALE,
     "{\"job\":\"wc\",\"vertices\":{\"src\":{\"min\":1,\"max\":8},\"a=b\":{\"min\":2,\"max\":3}}}", "{}", {"wc: the new bounds hold\n"}},
    {{"scale", "wc", "a\"\\=1"}, MESSAGE_SCALE,
     "{\"job\":\"wc\",\"vertices\":{\"a\\\"\\\\\":{\"min\":1,\"max\":1}}}", "{}", {"hold"}},
    {{"cancel", "wc"}, MESSAGE_CANCEL, "{\"job\":\"wc\"}", "{\"job_status\":\"CANCELLING\"}", {"CANCELLING\n"}},
    {{"stop", "wc", "--drain", "--dir", "/sp"}, MESSAGE_STOP_JOB, "{\"job\":\"wc\",\"dir\":\"/sp\",\"drain\":true}", "{\"savepoint\":\"/sp/1\"}", {"/sp/1\n"}},
    {{"stop", "wc"}, MESSAGE_STOP_JOB, "{\"job\":\"wc\",\"drain\":false}", "{\"savepoint\":\"/d/1\"}", {"/d/1\n"}},
    {{"savepoint", "wc", "--cancel"}, MESSAGE_SAVEPOINT, "{\"job\":\"wc\",\"cancel\":true}", "{\"savepoint\":\"/sp/2\"}", {"/sp/2\n"}},
    {{"checkpoint", "wc"}, MESSAGE_TAKE_CHECKPOINT, "{\"job\":\"wc\"}", "{}", {"asked for"}},
    {{"remove", JOB}, MESSAGE_REMOVE, "{\"job\":\"" JOB "\",\"force\":false}", "{\"job\":\"" JOB "\",\"removed\":true}", {JOB ": removed\n"}},
    {{"remove", JOB, "--force"}, MESSAGE_REMOVE, "{\"job\":\"" JOB "\",\"force\":true}", "{\"job\":\"" JOB "\",\"removed\":false}", {JOB ": there is no such job\n"}},
    {{"drain", "n1"}, MESSAGE_DRAIN_NODE, "{\"node\":\"n1\",\"reason\":\"upgrade\"}", "{}", {"n1 drains\n"}},
    {{"drain", "n1", "--deadline", "2 min", "--reason", "preemption"}, MESSAGE_DRAIN_NODE,
     "{\"node\":\"n1\",\"deadline_ms\":120000,\"reason\":\"preemption\"}", "{}", {"n1 drains\n"}},
    {{"undrain", "n1"}, MESSAGE_UNDRAIN_NODE, "{\"node\":\"n1\"}", "{}", {"n1 is in use again\n"}},
    {{"nodes"}, MESSAGE_NODES, "{}", "{\"nodes\":[" NODE "]}",
     {"n1    draining      4     2  10.0.0.1  1.2 s ago  drains (upgrade), zone a, domain rack1, gpu=yes\n"}},
    {{"nodes"}, MESSAGE_NODES, "{}", "{\"nodes\":[]}", {"no nodes\n"}},
    {{"tasks", "wc"}, MESSAGE_TASKS_OF, "{\"job\":\"wc\"}",
     "{\"tasks\":[{\"vertex\":\"src\",\"subtask\":0,\"attempt\":3,\"node\":\"n1\",\"slot\":2,\"pid\":77,\"state\":\"RUNNING\",\"since_unix_ms\":1700000000000,\"rss_bytes\":3145728,\"cpu_ms\":1500}]}",
     {"src/0        3  n1       2       77  RUNNING  2023-11-14 22:13:20  3.0 MiB  1.5 s\n"}},
    {{"rescales", "wc"}, MESSAGE_RESCALES, "{\"job\":\"wc\"}",
     "{\"rescales\":[{\"id\":\"ab\",\"trigger\":\"NEW_RESOURCE_AVAILABLE\",\"started_unix_ms\":1700000000000,\"ended_unix_ms\":1700000001500,\"end\":\"SUCCEEDED\",\"vertices\":{\"src\":{\"pre\":2,\"post\":4,\"desired\":8}},\"judged\":{\"judgement\":\"gain\",\"from\":2,\"to\":4,\"gain_slot_ms\":90000,\"cost_slot_ms\":12000,\"text\":\"\"},\"spans\":[{\"state\":\"Restarting\",\"enter_unix_ms\":1700000000000,\"leave_unix_ms\":1700000001000}]}],\"summary\":{}}",
     {"2023-11-14 22:13:20  slots came: src 2 > 4 (wants 8)\n", "    done after 1.5 s: Restarting 1 s\n", "    2 > 4 slots would bring 90 slot-seconds and cost 12: worth it now\n"}},
    {{"rescales", "wc"}, MESSAGE_RESCALES, "{\"job\":\"wc\"}",
     "{\"rescales\":[{\"trigger\":\"DRAIN\",\"started_unix_ms\":1700000000000,\"ended_unix_ms\":null,\"end\":\"NO_RESOURCES_OR_PARALLELISMS_CHANGE\",\"vertices\":{\"src\":{\"pre\":2,\"post\":null,\"desired\":2}},\"judged\":{\"text\":\"all is well\"},\"spans\":[]}],\"summary\":{}}",
     {"a node is to go: src 2\n", "would have changed nothing\n", "    all is well\n"}},
    {{"failures", "wc"}, MESSAGE_FAILURES, "{\"job\":\"wc\"}",
     "{\"failures\":[{\"items\":[{\"at_unix_ms\":1700000000000,\"reason\":\"task-failed\",\"recoverable\":true,\"vertex\":\"src\",\"subtask\":1,\"attempt\":2,\"node\":\"n1\",\"cause\":\"exit\\ncode 3\",\"exit_code\":3,\"labels\":{\"type\":\"us\\ner\",\"owner\":\"me\"}},{\"at_unix_ms\":1700000000100,\"reason\":\"node-lost\",\"recoverable\":false,\"node\":\"n2\",\"exit_code\":null,\"labels\":{}}],\"more\":7}]}",
     {"22:13:20  task-failed src/1 (attempt 2) on n1: exit code 3 [type=us er, owner=me]\n", "    2023-11-14 22:13:20  node-lost on n2 [not recoverable]\n", "    and 7 more\n"}},
    {{"checkpoints", "wc"}, MESSAGE_CHECKPOINTS, "{\"job\":\"wc\"}",
     "{\"checkpoints\":[{\"id\":\"5\",\"kind\":\"checkpoint\",\"status\":\"completed\",\"path\":\"/c/5\",\"bytes\":2048,\"triggered_unix_ms\":1700000000000,\"ended_unix_ms\":1700000000250,\"cause\":null},{\"id\":\"6\",\"kind\":\"savepoint\",\"status\":\"pending\",\"triggered_unix_ms\":1700000000000}]}",
     {" 5  checkpoint  completed  2023-11-14 22:13:20  250 ms  2.0 KiB  /c/5\n", " 6  savepoint   pending    2023-11-14 22:13:20       -        -  -\n"}},
    {{"shutdown"}, MESSAGE_SHUTDOWN, "{\"stop_jobs\":false}", "{}", {"pliantd ends\n"}},
    {{"shutdown", "--stop-jobs"}, MESSAGE_SHUTDOWN, "{\"stop_jobs\":true}", "{}", {"pliantd ends\n"}},
    {{"completion", "jobs"}, MESSAGE_LIST, "{}", "{\"jobs\":[{\"job_id\":\"ab\",\"name\":\"wc\"}]}", {"wc\nab\n"}},
    {{"completion", "nodes"}, MESSAGE_NODES, "{}", "{\"nodes\":[{\"node\":\"n1\"}]}", {"n1\n"}},
};
/* clang-format on */

static size_t add_words(const char **to, const char *const *from)
{
    size_t n = 0;

    for (; from[n]; n++)
        to[n] = from[n];
    return n;
}

Test(ctl, asks_what_the_protocol_says_and_tells_the_answer)
{
    fake_service_open(&f, NULL);
    for (size_t i = 0; i < ROWS(calls); i++) {
        const struct fake_answer answers[] = {{calls[i].type, .reply = calls[i].reply}, {0}};

        f.answers = answers;
        cr_expect(ctl(calls[i].words) == 0, "row %zu: %s", i, f.err.text);
        cr_expect(eq(str, (char *)fake_body(&f, calls[i].type), (char *)calls[i].body));
        for (size_t k = 0; k < ROWS(calls[i].text) && calls[i].text[k]; k++)
            expect_in(f.out.text, calls[i].text[k]);
        cr_expect(eq(str, f.err.text, ""), "row %zu", i);
        fake_forget(&f);
    }
}

Test(ctl, prints_with_json_the_reply_as_it_came)
{
    const char *words[MAX_WORDS + 2];
    char want[4096];

    fake_service_open(&f, NULL);
    for (size_t i = 0; i < ROWS(calls); i++) {
        const struct fake_answer answers[] = {{calls[i].type, .reply = calls[i].reply}, {0}};
        size_t n = add_words(words, calls[i].words);

        if (strcmp(words[0], "completion") == 0)
            continue;
        f.answers = answers;
        words[n] = "--json";
        words[n + 1] = NULL;
        cr_expect(ctl(words) == 0, "row %zu: %s", i, f.err.text);
        snprintf(want, sizeof want, "%s\n", calls[i].reply);
        cr_expect(eq(str, f.out.text, want), "row %zu", i);
        fake_forget(&f);
    }
}

Test(ctl, tells_whether_the_service_is_well)
{
    static const struct fake_answer ill[] = {
        {MESSAGE_PING, .reply = "{\"version\":\"1\",\"state\":\"store-failed\",\"epoch\":\"2\"}"},
        {0}};

    fake_service_open(&f, NULL);
    cr_expect(ctl(WORDS("ping")) == 0);
    expect_in(f.out.text, "pliantd 0.1.0 at ");
    expect_in(f.out.text, "ok, process 4711, epoch 7, up for 1 min 1 s\n");
    f.answers = ill;
    cr_expect(ctl(WORDS("ping")) == 1);
    expect_in(f.out.text, "store-failed");
}

/* ---- what the service refuses
 * --------------------------------------------------------------------- */

Test(ctl, ends_with_1_for_a_no_and_with_2_for_bad_input)
{
    static const struct {
        const char *code, *text, *said;
        int exit_code;
    } rows[] = {
        {"not-found", "no job \"wc\"", "pliantctl: no job \"wc\"\n", 1},
        {"refused", "the job has ended", "pliantctl: the job has ended\n", 1},
        {"unavailable", "disk full", "pliantctl: disk full\n", 1},
        {"denied", "a viewer's key", "pliantctl: denied: a viewer's key\n", 1},
        {"denied", "", "pliantctl: denied: the key's role does not allow this\n", 1},
        {"version", "", "pliantctl: status: version\n", 1},
        {"invalid", "job.yaml:3: vertices[0]: two\nlines\033",
         "pliantctl: job.yaml:3: vertices[0]: two lines \n", 2},
    };

    fake_service_open(&f, NULL);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const struct fake_answer answers[] = {
            {MESSAGE_STATUS, .code = rows[i].code, .text = rows[i].text}, {0}};

        f.answers = answers;
        cr_expect(eq(int, ctl(WORDS("status", "wc")), rows[i].exit_code), "row %zu", i);
        cr_expect(eq(str, f.err.text, (char *)rows[i].said), "row %zu", i);
        cr_expect(eq(str, f.out.text, ""), "row %zu", i);
        fake_forget(&f);
    }
}

/* ---- usage ----------------------------------------------------------------------------------- */

Test(ctl, names_what_is_wrong_with_the_command_line)
{
    static const struct {
        const char *words[MAX_WORDS], *said;
    } rows[] = {
        {{"stauts"}, "there is no command \"stauts\"; did you mean \"status\"?"},
        {{"xyzzy"}, "pliantctl --help lists them"},
        {{"status"}, "status: JOB is missing"},
        {{"status", "a", "b"}, "status: one word too many: \"b\""},
        {{"scale", "a"}, "scale: VERTEX=MAX"},
        {{"scale", "a", "v"}, "scale: VERTEX=MAX or VERTEX=MIN:MAX, not \"v\""},
        {{"scale", "a", "=2"}, "not \"=2\""},
        {{"scale", "a", "v=0"}, "v=0: a whole number 1..4294967295, not \"0\""},
        {{"scale", "a", "v=3:2"}, "a whole number 3..4294967295, not \"2\""},
        {{"scale", "a", "v=1:2:3"}, "not \"2:3\""},
        {{"list", "--jsn"}, "there is no option --jsn; did you mean --json?"},
        {{"list", "--json=1"}, "--json takes no value"},
        {{"list", "-z"}, "there is no option -z"},
        {{"logs", "wc", "-x/0"}, "there is no option -x"},
        {{"--conect", "x", "list"}, "did you mean --connect?"},
        {{"drain", "n", "--deadline"}, "--deadline needs a value"},
        {{"drain", "n", "--deadline", "soon"}, "--deadline: a duration like \"30 s\""},
        {{"drain", "n", "--reason", "x"}, "preemption|scale-down|upgrade|idle, not \"x\""},
        {{"logs", "a", "v"}, "VERTEX/SUBTASK, not \"v\""},
        {{"logs", "a", "v/x"}, "subtask: a whole number"},
        {{"logs", "a", "v/0", "--tail", "-1"}, "--tail: a whole number"},
        {{"keygen", "x"}, "keygen: --role is missing"},
        {{"keygen", "x", "--role", "viewer", "--node", "n"}, "--node goes with --role agent"},
        {{"keygen", "x", "--role", "agent", "--node", "a/b"}, "no name of a node; accepted"},
        {{"keygen", "x", "--role", "king"}, "agent|operator|viewer|server, not \"king\""},
        {{"completion", "fish"}, "bash|zsh|jobs|nodes, not \"fish\""},
        {{"submit", "/nowhere/job.yaml"}, "/nowhere/job.yaml: No such file"},
        {{"submit", "/dev/null"}, "/dev/null: is empty"},
        {{"submit", "/dev/null", "-D", "x"}, "-D: NAME=VALUE, not \"x\""},
        {{"list", "--timeout", "-1"}, "--timeout: a duration"},
        {{"list", "--connect", "http://x"}, "http://x"},
        {{"list", "--key", "/nowhere"}, "--key needs the service's public key"},
        {{"list", "--server-key", "x"}, "name yours with --key FILE"},
    };

    fake_service_open(&f, NULL);
    for (size_t i = 0; i < ROWS(rows); i++) {
        cr_expect(eq(int, ctl(rows[i].words), 2), "row %zu: %s", i, f.err.text);
        expect_in(f.err.text, rows[i].said);
        cr_expect(eq(str, f.out.text, ""), "row %zu", i);
    }
    cr_expect(eq(sz, f.n_asked, 0));
}

Test(ctl, helps)
{
    fake_service_open(&f, NULL);
    cr_expect(ctl(WORDS("--help")) == 0);
    expect_in(f.out.text, "  rescales     why a job was rescaled, or was not\n");
    cr_expect(ctl(WORDS("stop", "--help")) == 0);
    expect_in(f.out.text, "Usage: pliantctl stop JOB [--dir DIR] [--drain]\n");
    expect_in(f.out.text, "--connect ENDPOINT");
    cr_expect(ctl(WORDS("--version")) == 0);
    expect_in(f.out.text, "pliantctl 0.");
    cr_expect(fake_run(&f, "pliantctl", (const char *const[]){NULL}) == 2);
    expect_in(f.err.text, "Usage: pliantctl");
}

/* ---- manual, completion ---------------------------------------------------------------------- */

/* A file of the source tree, without the backslashes of manual pages. */
static const char *read_file(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    size_t n = 0;

    cr_assert(file != NULL, "%s", path);
    for (int c; (c = fgetc(file)) != EOF && n < sizeof text - 1;)
        if (c != '\\')
            text[n++] = (char)c;
    fclose(file);
    text[n] = '\0';
    return text;
}

/* Each --option in the text is in the manual. */
static void expect_options_in(const char *manual, const char *text)
{
    char option[64];

    while ((text = strstr(text, "--"))) {
        size_t n = strspn(text, "-abcdefghijklmnopqrstuvwxyz");

        snprintf(option, sizeof option, "%.*s", (int)n, text);
        expect_in(manual, option);
        text += n;
    }
}

Test(ctl, has_each_command_and_option_in_its_manual)
{
    const char *manual = read_file("man/pliantctl.1");
    char list[8192], name[32], item[64];
    size_t n = 0;

    fake_service_open(&f, NULL);
    cr_assert(ctl(WORDS("--help")) == 0);
    snprintf(list, sizeof list, "%.8000s", f.out.text);
    for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "  ", 2) != 0 || sscanf(line, " %31[a-z]", name) != 1)
            continue;
        n++;
        snprintf(item, sizeof item, ".BI %s \"", name);
        if (!strstr(manual, item))
            snprintf(item, sizeof item, ".B %s\n", name);
        expect_in(manual, item);
        cr_assert(ctl(WORDS(name, "--help")) == 0);
        expect_options_in(manual, f.out.text);
    }
    cr_expect(eq(sz, n, 23));
}

Test(ctl, finds_the_options_of_each_program_in_its_manual)
{
    static const struct {
        const char *program, *words[3], *manual;
    } rows[] = {
        {"pliantd", {"--help"}, "man/pliantd.8"},
        {"pliant-agent", {"--help"}, "man/pliant-agent.8"},
        {"pliant-worker", {"--help"}, "man/pliant-worker.1"},
        {"pliant-sim", {"run", "--help"}, "man/pliant-sim.1"},
        {"pliant-sim", {"compare", "--help"}, "man/pliant-sim.1"},
        {"pliant-sim", {"sweep", "--help"}, "man/pliant-sim.1"},
        {"pliant-sim", {"explore", "--help"}, "man/pliant-sim.1"},
        {"pliant-sim", {"options", "--help"}, "man/pliant-sim.1"},
    };

    fake_service_open(&f, NULL);
    for (size_t i = 0; i < ROWS(rows); i++) {
        cr_expect(fake_run(&f, rows[i].program, rows[i].words) == 0, "%s", rows[i].program);
        expect_options_in(read_file(rows[i].manual), f.out.text);
    }
}

Test(ctl, completes_with_the_scripts_that_are_installed)
{
    fake_service_open(&f, NULL);
    cr_assert(ctl(WORDS("completion", "bash")) == 0);
    cr_expect(eq(str, f.out.text, (char *)read_file("completions/pliantctl.bash")),
              "build/pliantctl completion bash >completions/pliantctl.bash");
    cr_assert(ctl(WORDS("completion", "zsh")) == 0);
    cr_expect(strlen(f.out.text) > 1000);
    expect_in(f.out.text, "#compdef pliantctl\n");
}

Test(ctl, completes_in_bash)
{
    static const struct {
        const char *line, *want; /* words, the last one is completed */
    } rows[] = {
        {"pliantctl st", "status stop"},
        {"pliantctl --json sta", "status"},
        {"pliantctl --connect x sub", "submit"},
        {"pliantctl stop --dr", "--drain"},
        {"pliantctl drain n1 --reason up", "upgrade"},
        {"pliantctl drain n1 -r i", "idle"},
        {"pliantctl status w", "wc"},
        {"pliantctl logs w", "wc"},
        {"pliantctl drain n", "n1"},
        {"pliantctl keygen x --role s", "server"},
        {"pliantctl completion z", "zsh"},
        {"pliantctl status wc w", ""},
        {"pliantctl --js", "--json"},
    };
    static const struct fake_answer answers[] = {
        {MESSAGE_LIST, .reply = "{\"jobs\":[{\"job_id\":\"ab\",\"name\":\"wc\"}]}"},
        {MESSAGE_NODES, .reply = "{\"nodes\":[{\"node\":\"n1\"}]}"},
        {0}};
    char script[1024], want[128];

    fake_service_open(&f, answers);
    for (size_t i = 0; i < ROWS(rows); i++) {
        snprintf(script, sizeof script,
                 ". completions/pliantctl.bash; PATH=%s:$PATH; COMP_WORDS=(%s); "
                 "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _pliantctl; echo ${COMPREPLY[@]}",
                 PLIANT_PROGRAMS, rows[i].line);
        cr_expect(fake_run(&f, "/bin/bash", WORDS("-c", script)) == 0, "%s", f.err.text);
        snprintf(want, sizeof want, "%s\n", rows[i].want);
        cr_expect(eq(str, f.out.text, want), "%s", rows[i].line);
    }
}

/* ---- where the service is -------------------------------------------------------------------- */

Test(ctl, finds_the_service_where_it_is_told_or_expects_it)
{
    char endpoints[512], home[256];

    fake_service_open(&f, NULL);
    unsetenv("PLIANT_CLIENTS");
    snprintf(endpoints, sizeof endpoints, "{\"agents\":\"x\",\"clients\":\"%s\",\"pid\":%d}",
             f.clients, getpid());
    fake_file(&f, "endpoints.json", endpoints);

    cr_expect(ctl(WORDS("ping", "--state-dir", f.dir)) == 0, "%s", f.err.text);
    cr_expect(ctl(WORDS("--connect", f.clients, "ping")) == 0, "%s", f.err.text);
    setenv("PLIANT_STATE_DIR", f.dir, 1);
    cr_expect(ctl(WORDS("ping")) == 0, "%s", f.err.text);
    setenv("PLIANT_STATE_DIR", "/nowhere", 1);
    setenv("PLIANT_CLIENTS", f.clients, 1);
    cr_expect(ctl(WORDS("ping")) == 0, "%s", f.err.text);
    unsetenv("PLIANT_STATE_DIR");
    unsetenv("PLIANT_CLIENTS");
    setenv("XDG_STATE_HOME", f.dir, 1);
    snprintf(home, sizeof home, "%s/pliant", f.dir);
    cr_assert(mkdir(home, 0700) == 0);
    fake_file(&f, "pliant/endpoints.json", endpoints);
    if (access("/var/lib/pliant/endpoints.json", F_OK) != 0)
        cr_expect(ctl(WORDS("ping")) == 0, "%s", f.err.text);
}

Test(ctl, says_where_it_tried_when_nobody_answers)
{
    char endpoints[512];

    fake_service_open(&f, NULL);
    f.silent = true;
    cr_expect(ctl(WORDS("list", "--timeout", "200ms")) == 3);
    expect_in(f.err.text, "no answer within 200 ms from ipc://");
    expect_in(f.err.text, "($PLIANT_CLIENTS)");
    cr_expect(ctl(WORDS("list", "--timeout", "200ms", "--connect", f.clients)) == 3);
    expect_in(f.err.text, "(--connect)");
    cr_expect(ctl(WORDS("list", "--state-dir", "/nowhere")) == 3);
    expect_in(f.err.text, "/nowhere/endpoints.json is not there");
    snprintf(endpoints, sizeof endpoints, "{\"clients\":\"%s\",\"pid\":2147483647}", f.clients);
    fake_file(&f, "endpoints.json", endpoints);
    cr_expect(ctl(WORDS("list", "--timeout", "200ms", "--state-dir", f.dir)) == 3);
    expect_in(f.err.text, "endpoints.json, whose process is gone)");
    fake_file(&f, "endpoints.json", "{\"pid\":1}");
    cr_expect(ctl(WORDS("list", "--state-dir", f.dir)) == 2);
    expect_in(f.err.text, "has no \"clients\"");
}

Test(ctl, shows_a_closed_pipe_as_4)
{
    static const struct fake_answer answers[] = {{MESSAGE_STATUS, .reply = STATUS}, {0}};

    fake_service_open(&f, answers);
    fake_start(&f, "pliantctl", WORDS("status", "wc"));
    close(f.out.fd);
    f.out.fd = -1;
    fake_serve(&f, NULL);
    cr_expect(eq(int, f.code, 4));
    expect_in(f.err.text, "standard output: Broken pipe");
}

/* ---- submit ---------------------------------------------------------------------------------- */

#define SUBMITTED "{\"job\":\"" JOB "\",\"name\":\"wc\"}"

Test(ctl, submits_the_text_of_a_file)
{
    static const struct fake_answer answers[] = {{MESSAGE_SUBMIT, .reply = SUBMITTED}, {0}};
    char want[1024], path[256];

    fake_service_open(&f, answers);
    snprintf(path, sizeof path, "%s", fake_file(&f, "job.yaml", "name: \"wc\"\nvertices: []\n"));
    cr_expect(ctl(WORDS("submit", path, "-D", "a.b=1", "--define=c=d=e", "--id", JOB)) == 0);
    cr_expect(eq(str, f.out.text, JOB "\n"));
    snprintf(want, sizeof want,
             "{\"options\":[[\"a.b\",\"1\"],[\"c\",\"d=e\"]],\"spec\":\"name: "
             "\\\"wc\\\"\\nvertices: []\\n\",\"file\":\"%s\",\"dry_run\":false,\"id\":\"" JOB "\"}",
             path);
    cr_expect(eq(str, (char *)fake_body(&f, MESSAGE_SUBMIT), want));
    cr_expect(ctl(WORDS("submit", path, "--json")) == 0);
    cr_expect(eq(str, f.out.text, SUBMITTED "\n"));
}

Test(ctl, shows_the_plan_that_a_job_would_get)
{
    static const struct fake_answer answers[] = {
        {MESSAGE_SUBMIT,
         .reply = "{\"name\":\"wc\",\"vertices\":{\"src\":{\"parallelism\":3}},\"slots\":{"
                  "\"offered\":3,\"needed\":1,\"desired\":4},\"state\":\"Executing\"}"},
        {0}};

    fake_service_open(&f, answers);
    cr_expect(ctl(WORDS("submit", "--dry-run", fake_file(&f, "job.yaml", "name: wc\n"))) == 0);
    expect_in(fake_body(&f, MESSAGE_SUBMIT), "\"dry_run\":true");
    expect_in(f.out.text,
              "wc is fine; it would be Executing: 3 slots offered, 1 needed, 4 wanted\n");
    expect_in(f.out.text, "src               3\n");
}

Test(ctl, waits_for_the_end_of_a_job)
{
    static const struct {
        const char *last, *said;
        int code;
    } rows[] = {
        {STATUS_OF("Finished", "FINISHED"), JOB "\nFINISHED\n", 0},
        {STATUS_OF("Finished", "CANCELED"), JOB "\nCANCELED\n", 0},
        {STATUS_OF("Finished", "FAILED"), JOB "\nFAILED\n", 1},
    };

    fake_service_open(&f, NULL);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const struct fake_answer answers[] = {{MESSAGE_SUBMIT, .reply = SUBMITTED},
                                              {MESSAGE_STATUS, .reply = STATUS},
                                              {MESSAGE_STATUS, .reply = STATUS},
                                              {MESSAGE_STATUS, .reply = rows[i].last},
                                              {0}};

        f.answers = answers;
        cr_expect(eq(int, ctl(WORDS("submit", "--wait", fake_file(&f, "j", "name: wc\n"))),
                     rows[i].code));
        cr_expect(eq(str, f.out.text, (char *)rows[i].said));
        cr_expect(eq(sz, fake_count(&f, MESSAGE_STATUS), 3));
        fake_forget(&f);
    }
}

/* Deaf after the second question about the status, until that is noticed. */
static void restart_once(struct fake *fake)
{
    if (fake->stage == 0 && fake_count(fake, MESSAGE_STATUS) == 2) {
        fake_deafen(fake);
        fake->stage = 1;
    } else if (fake->stage == 1 && strstr(fake->err.text, "no connection to ")) {
        fake_listen(fake);
        fake->stage = 2;
    }
}

Test(ctl, waits_on_while_the_service_is_started_anew)
{
    static const struct fake_answer answers[] = {
        {MESSAGE_CANCEL, .reply = "{\"job_status\":\"CANCELLING\"}"},
        {MESSAGE_STATUS, .reply = STATUS},
        {MESSAGE_STATUS, .reply = STATUS},
        {MESSAGE_STATUS, .reply = STATUS_OF("Finished", "CANCELED")},
        {0}};

    fake_service_open(&f, answers);
    f.turn = restart_once;
    cr_expect(ctl(WORDS("cancel", "wc", "--wait", "--timeout", "3s")) == 0, "%s", f.err.text);
    expect_in(f.err.text, "no connection to ");
    cr_expect(eq(str, f.out.text, "CANCELED\n"));
    /* by then the name may be another job's */
    cr_expect(eq(str, (char *)fake_body(&f, MESSAGE_CANCEL), "{\"job\":\"" JOB "\"}"));
}

/* ---- what takes long ------------------------------------------------------------------------- */

static const struct fake_answer slow_savepoint[] = {
    {MESSAGE_STOP_JOB, .reply = NULL}, /* no answer yet */
    {0},
};

static bool three_pings(struct fake *fake)
{
    return fake_count(fake, MESSAGE_PING) >= 3;
}

Test(ctl, waits_for_a_savepoint_as_long_as_the_service_lives)
{
    fake_service_open(&f, slow_savepoint);
    fake_start(&f, "pliantctl", WORDS("stop", "wc"));
    cr_assert(fake_serve(&f, three_pings), "%s", f.err.text);
    f.epoch++; /* another life of the service knows nothing of the request */
    fake_serve(&f, NULL);
    cr_expect(eq(int, f.code, 3));
    expect_in(f.err.text, "pliantd was restarted before it answered");
    cr_expect(ctl(WORDS("stop", "wc", "--timeout", "300ms")) == 3);
    expect_in(f.err.text, "no answer within 300 ms");
}

/* ---- logs ------------------------------------------------------------------------------------ */

#define PIECE(data, offset, next, size, ended)                                                     \
    "{\"data\":\"" data "\",\"offset\":" #offset ",\"next\":" #next ",\"size\":" #size             \
    ",\"ended\":" #ended "}"
#define TASKS(attempt) "{\"tasks\":[{\"vertex\":\"a/b\",\"subtask\":1,\"attempt\":" #attempt "}]}"

Test(ctl, prints_a_log_in_pieces)
{
    static const struct fake_answer answers[] = {
        {MESSAGE_LOGS, .reply = PIECE("one\\n", 0, 4, 8, false)},
        {MESSAGE_LOGS, .reply = PIECE("two\\n", 4, 8, 8, false)},
        {0}};

    fake_service_open(&f, answers);
    cr_expect(ctl(WORDS("logs", "wc", "a/b/1", "--stderr", "--attempt", "2")) == 0);
    cr_expect(eq(str, f.out.text, "one\ntwo\n"));
    cr_expect(eq(str, (char *)fake_body(&f, MESSAGE_LOGS),
                 "{\"job\":\"wc\",\"vertex\":\"a/b\",\"subtask\":1,\"attempt\":2,"
                 "\"stream\":\"stderr\",\"offset\":4,\"max\":262144}"));
}

Test(ctl, begins_a_log_with_its_last_lines)
{
    static const struct {
        const char *tail, *from;
    } rows[] = {{"1", "\"offset\":14"},
                {"2", "\"offset\":8"},
                {"9", "\"offset\":0"},
                {"0", "\"offset\":20"}};
    static const struct fake_answer answers[] = {
        {MESSAGE_LOGS, .reply = PIECE("two\\n123\\nthree\\nfour\\n", 0, 20, 20, false)},
        {MESSAGE_LOGS, .reply = PIECE("", 20, 20, 20, false)},
        {0}};

    /* 0 "two" 4 "123" 8 "three" 14 "four" 19 */
    fake_service_open(&f, answers);
    for (size_t i = 0; i < ROWS(rows); i++) {
        ctl(WORDS("logs", "wc", "v/0", "--tail", rows[i].tail));
        if (i < 3)
            expect_in(fake_body(&f, MESSAGE_LOGS), rows[i].from);
        fake_forget(&f);
    }
}

Test(ctl, follows_a_log_into_the_next_attempt_until_the_job_ends)
{
    static const struct fake_answer answers[] = {
        {MESSAGE_STATUS, .reply = STATUS},
        {MESSAGE_TASKS_OF, .reply = TASKS(1)},
        {MESSAGE_LOGS, .reply = PIECE("one\\n", 0, 4, 4, false)},
        {MESSAGE_LOGS, .reply = PIECE("", 4, 4, 4, false)},
        {MESSAGE_LOGS, .reply = PIECE("two\\n", 4, 8, 8, true)},
        {MESSAGE_LOGS, .reply = PIECE("", 8, 8, 8, true)},
        {MESSAGE_STATUS, .reply = STATUS},
        {MESSAGE_TASKS_OF, .reply = TASKS(1)},
        {MESSAGE_LOGS, .reply = PIECE("", 8, 8, 8, true)},
        {MESSAGE_STATUS, .reply = STATUS},
        {MESSAGE_TASKS_OF, .reply = TASKS(2)},
        {MESSAGE_LOGS, .reply = PIECE("three\\n", 0, 6, 6, true)},
        {MESSAGE_LOGS, .reply = PIECE("", 6, 6, 6, true)},
        {MESSAGE_STATUS, .reply = STATUS_OF("Finished", "FINISHED")},
        {0}};

    fake_service_open(&f, answers);
    cr_expect(ctl(WORDS("logs", "-f", "wc", "a/b/1")) == 0, "%s", f.err.text);
    cr_expect(eq(str, f.out.text, "one\ntwo\nthree\n"));
    cr_expect(eq(str, f.err.text, "pliantctl: a/b/1, attempt 2\n"));
}

/* ---- record ---------------------------------------------------------------------------------- */

static void expect_file(const char *path, const char *want)
{
    char text[256] = "";
    FILE *file = fopen(path, "r");

    cr_assert(file != NULL, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    cr_expect(eq(str, text, (char *)want));
}

Test(ctl, records_the_journal_whole_or_not_at_all)
{
    static const struct fake_answer good[] = {
        {MESSAGE_RECORD, .reply = "{\"lines\":\"{1}\\n\",\"next\":\"17\"}"},
        {MESSAGE_RECORD, .reply = "{\"lines\":\"{2}\\n\",\"next\":null}"},
        {0}};
    static const struct fake_answer bad[] = {
        {MESSAGE_RECORD, .reply = "{\"lines\":\"{1}\\n\",\"next\":\"17\"}"},
        {MESSAGE_RECORD, .code = "not-found", .text = "gone"},
        {0}};
    char path[128];

    fake_service_open(&f, good);
    snprintf(path, sizeof path, "%s/journal", f.dir);
    cr_expect(ctl(WORDS("record", "wc")) == 0);
    cr_expect(eq(str, f.out.text, "{1}\n{2}\n"));
    cr_expect(eq(str, (char *)fake_body(&f, MESSAGE_RECORD), "{\"job\":\"wc\",\"from\":\"17\"}"));
    fake_forget(&f);
    cr_expect(ctl(WORDS("record", "wc", "-o", path)) == 0);
    expect_file(path, "{1}\n{2}\n");
    fake_forget(&f);
    f.answers = bad;
    cr_expect(ctl(WORDS("record", "wc", "-o", path)) == 1);
    expect_file(path, "{1}\n{2}\n");
    fake_forget(&f);
    f.answers = good;
    cr_expect(ctl(WORDS("record", "wc", "-o", "/dev/full")) == 4);
    expect_in(f.err.text, "/dev/full: No space left");
}

/* ---- keys ------------------------------------------------------------------------------------ */

Test(ctl, makes_keys_that_nobody_else_may_read)
{
    char path[256], keys[128], out[128];
    struct stat st;

    fake_service_open(&f, NULL);
    snprintf(keys, sizeof keys, "%s/keys", f.dir);
    snprintf(out, sizeof out, "%s/mine", f.dir);
    cr_assert(mkdir(keys, 0700) == 0 && mkdir(out, 0700) == 0);
    cr_expect(ctl(WORDS("keygen", "server", "--role", "server", "--keys", keys)) == 0, "%s",
              f.err.text);
    cr_expect(ctl(WORDS("keygen", "bob", "--role", "viewer", "--keys", keys, "-o", out)) == 0, "%s",
              f.err.text);
    snprintf(path, sizeof path, "%s/server.key_secret", keys);
    cr_assert(stat(path, &st) == 0);
    cr_expect(eq(int, (int)(st.st_mode & 0777), 0600));
    snprintf(path, sizeof path, "%s/allowed/bob.key", keys);
    cr_expect(access(path, F_OK) == 0, "%s", path);
    snprintf(path, sizeof path, "%s/allowed/server.key", keys);
    cr_expect(access(path, F_OK) != 0, "the server's own key is let in");
    cr_expect(ctl(WORDS("keygen", "bob", "--role", "viewer", "-o", out)) == 2, "written over");
}

/* ---- watch ----------------------------------------------------------------------------------- */

#define SNAPSHOT(sequence)                                                                         \
    "{\"sequence\":\"" #sequence "\",\"jobs\":[" STATUS "],\"nodes\":[" NODE "]}"
#define EVENT(kind, members) "{\"t_unix_ms\":1700000000000,\"kind\":\"" kind "\"" members "}"
#define OF_JOB ",\"job\":\"" JOB "\""
#define STATE_EVENT                                                                                \
    EVENT("state", OF_JOB ",\"from\":\"Executing\",\"to\":\"Restarting\",\"reason\":\"rescale\","  \
                          "\"slots\":6,\"vertices\":{\"src\":2}")
#define ENDED EVENT("job", OF_JOB ",\"name\":\"wc\",\"change\":\"ended\"")

static const struct fake_answer watched[] = {
    {MESSAGE_STATUS, .reply = STATUS}, {MESSAGE_SNAPSHOT, .reply = SNAPSHOT(0)}, {0}};

/* Events once the picture has been asked for: some, a gap, and the end. */
static void tell_events(struct fake *fake)
{
    if (fake->stage == 0 && fake_count(fake, MESSAGE_SNAPSHOT) > 0 &&
        fake_count(fake, MESSAGE_STATUS) > 1) {
        fake->stage = 1;
        fake_event(fake, EVENT("beat", ""));
        fake_event(fake, STATE_EVENT);
        fake_event(fake, EVENT("node", ",\"node\":\"n2\",\"change\":\"up\",\"slots\":2"));
        fake_event(fake, EVENT("status", ",\"job\":\"ff\",\"from\":\"A\",\"to\":\"B\""));
        fake->sequence += 5;
        fake_event(fake, EVENT("task", OF_JOB ",\"vertex\":\"src\",\"subtask\":0,\"attempt\":3,"
                                              "\"node\":\"n1\",\"state\":\"FAILED\",\"cause\":"
                                              "\"exit code 3\""));
    } else if (fake->stage == 1 && fake_count(fake, MESSAGE_STATUS) > 2) {
        fake->stage = 2;
        fake->sequence = 100; /* beyond what the snapshot says: seen as missed, not lost */
        fake_event(fake, ENDED);
    }
}

Test(ctl, watches_a_job_line_by_line_until_it_ends)
{
    fake_service_open(&f, watched);
    f.turn = tell_events;
    cr_expect(ctl(WORDS("watch", "wc")) == 0, "%s", f.err.text);
    expect_in(f.out.text, "  wc  is Executing, RUNNING\n");
    expect_in(f.out.text, "2023-11-14 22:13:20  wc  Executing > Restarting: rescale, 6 slots; "
                          "runs src 2\n");
    expect_in(f.out.text, "  node n2 up, 2 slots\n");
    expect_in(f.out.text, "  5 events were missed\n");
    expect_in(f.out.text, "  wc  task src/0 attempt 3 on n1: FAILED (exit code 3)\n");
    expect_in(f.out.text, "  wc  ended\n");
    cr_expect(strstr(f.out.text, "A > B") == NULL, "another job's event");
}

Test(ctl, watches_with_json_as_json_lines)
{
    fake_service_open(&f, watched);
    f.turn = tell_events;
    cr_expect(ctl(WORDS("watch", "wc", "--json")) == 0, "%s", f.err.text);
    expect_in(f.out.text, STATE_EVENT "\n");
    expect_in(f.out.text, EVENT("beat", "") "\n");
    expect_in(f.out.text, ENDED "\n");
    expect_in(f.out.text, "\"kind\":\"gap\",\"missed\":5}\n");
}

/* The job's end is known by its STATUS first; its last events come a second later. */
static void tell_the_end_late(struct fake *fake)
{
    static int64_t since_ms;
    int64_t passed_ms = fake_service_now_ms() - since_ms;

    if (fake->stage == 0 && fake_count(fake, MESSAGE_STATUS) > 1) {
        fake->stage = 1;
    } else if (fake->stage == 1 && passed_ms > 1200) { /* the stream comes for sure */
        fake->stage = 2;
        fake_event(fake, STATE_EVENT); /* a reason to ask for the STATUS */
    } else if (fake->stage == 2 && fake_count(fake, MESSAGE_STATUS) > 2) {
        fake->stage = 3;
    } else if (fake->stage == 3 && passed_ms > 1000) {
        fake->stage = 4;
        fake_event(fake, EVENT("task", OF_JOB ",\"vertex\":\"src\",\"state\":\"CANCELED\""));
        fake_event(fake, ENDED);
    } else {
        return;
    }
    since_ms = fake_service_now_ms();
}

Test(ctl, watches_until_the_last_event_even_if_the_end_is_known_before)
{
    static const struct fake_answer answers[] = {
        {MESSAGE_STATUS, .reply = STATUS},
        {MESSAGE_STATUS, .reply = STATUS},
        {MESSAGE_STATUS, .reply = STATUS_OF("Finished", "CANCELED")},
        {MESSAGE_SNAPSHOT, .reply = SNAPSHOT(0)},
        {MESSAGE_SNAPSHOT, .reply = SNAPSHOT(3)},
        {0}};

    fake_service_open(&f, answers);
    f.turn = tell_the_end_late;
    cr_expect(ctl(WORDS("watch", "wc", "--json")) == 0, "%s", f.err.text);
    expect_in(f.out.text, ENDED "\n");
}

/* Its events were before the watch began to listen. */
Test(ctl, ends_a_watch_whose_job_ended_as_it_began)
{
    static const struct fake_answer answers[] = {
        {MESSAGE_STATUS, .reply = STATUS},
        {MESSAGE_STATUS, .reply = STATUS_OF("Finished", "CANCELED")},
        {MESSAGE_SNAPSHOT, .reply = SNAPSHOT(7)},
        {0}};

    fake_service_open(&f, answers);
    cr_expect(ctl(WORDS("watch", "wc")) == 0, "%s", f.err.text);
    expect_in(f.out.text, "  wc  is Finished, CANCELED\n");
}

Test(ctl, has_nothing_to_watch_when_the_job_has_ended)
{
    static const struct fake_answer answers[] = {
        {MESSAGE_STATUS, .reply = STATUS_OF("Finished", "FAILED")}, {0}};

    fake_service_open(&f, answers);
    cr_expect(ctl(WORDS("watch", "wc")) == 0);
    cr_expect(eq(str, f.out.text, "wc has ended: FAILED\n"));
}

Test(ctl, ends_when_nobody_reads_what_it_watches)
{
    fake_service_open(&f, watched);
    fake_start(&f, "pliantctl", WORDS("watch"));
    close(f.out.fd);
    f.out.fd = -1;
    fake_serve(&f, NULL);
    cr_expect(eq(int, f.code, 4), "%s", f.err.text);
}

/* ---- the live view --------------------------------------------------------------------------- */

static void start_in_terminal(const char *const *words)
{
    struct winsize size = {.ws_row = 30, .ws_col = 120};
    const char *argv[MAX_WORDS] = {PLIANT_PROGRAMS "/pliantctl"};
    int master;
    pid_t child;

    add_words(argv + 1, words);
    child = forkpty(&master, NULL, NULL, &size);
    cr_assert(child >= 0);
    if (child == 0) {
        setenv("TERM", "xterm", 1);
        execv(argv[0], (char **)argv);
        _exit(127);
    }
    fake_take_over(&f, child, master, -1);
}

static const char *awaited;

static bool is_shown(struct fake *fake)
{
    return strstr(fake->out.text, awaited) != NULL;
}

/* Serve until it is on the screen, then look only at what comes later. */
static void await_on_screen(const char *text)
{
    awaited = text;
    cr_assert(fake_serve(&f, is_shown), "\"%s\" never came; there is\n%s", text, f.out.text);
    f.out.n = 0;
    f.out.text[0] = '\0';
}

Test(ctl, shows_a_live_view_and_gives_the_terminal_back)
{
    static const char key = 'q';

    fake_service_open(&f, watched);
    start_in_terminal(WORDS("watch"));
    await_on_screen("\033[?1049h");
    await_on_screen("1 others; 2 of 4 slots in use");
    await_on_screen("\033[1mwc\033[0m (01234567)  \033[32mExecuting\033[0m");
    await_on_screen("src \033[1m2\033[0m of 4 (1..4)");
    await_on_screen("next    rescale in 1 min ");
    await_on_screen("██████████"); /* as it has been for long */
    fake_event(&f, STATE_EVENT);
    await_on_screen("wc  Executing > Restarting: rescale");
    cr_expect(kill(f.child, SIGWINCH) == 0);
    fake_deafen(&f);
    await_on_screen("no connection, trying");
    fake_listen(&f);
    await_on_screen("connected again");
    cr_assert(eq(int, (int)write(f.out.fd, &key, 1), 1));
    fake_serve(&f, NULL);
    cr_expect(eq(int, f.code, 0));
    expect_in(f.out.text, "\033[?25h\033[?1049l");
}

Test(ctl, gives_the_terminal_back_when_it_is_interrupted)
{
    fake_service_open(&f, watched);
    start_in_terminal(WORDS("watch", "wc"));
    await_on_screen("src \033[1m2\033[0m of 4 (1..4)");
    cr_expect(kill(f.child, SIGINT) == 0);
    fake_serve(&f, NULL);
    cr_expect(eq(int, f.code, 0));
    expect_in(f.out.text, "\033[?1049l");
}

Test(ctl, uses_no_colours_where_they_are_not_wanted)
{
    fake_service_open(&f, watched);
    setenv("NO_COLOR", "1", 1);
    start_in_terminal(WORDS("status", "wc"));
    fake_serve(&f, NULL);
    cr_expect(strstr(f.out.text, "\033[") == NULL, "%s", f.out.text);
    unsetenv("NO_COLOR");
    start_in_terminal(WORDS("status", "wc"));
    fake_serve(&f, NULL);
    expect_in(f.out.text, "\033[32mExecuting\033[0m");
}

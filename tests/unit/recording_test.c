/* recording_test.c - the journal of a run as text */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_alloc.h"
#include "spec/memory.h"
#include "spec/recording.h"

#define TASK                                                                                       \
    {                                                                                              \
        {2}, 3, 4                                                                                  \
    }

static const struct pliant_label labels[] = {{"gpu", "a100"}, {"\xc3\xa4\"", ""}};
static const struct pliant_state_size sizes[] = {{{1}, 0, UINT64_MAX}, {{2}, 7, 0}};
static const uint64_t bytes[] = {PLIANT_BYTES_MAX, 0, 7};
static const struct pliant_output outputs[] = {{0, 2, bytes}, {4, 0, NULL}, {1, 1, bytes + 2}};
static const struct pliant_bounds bounds[] = {{"src", 1, 3}, {"nobody", -1, INT64_MIN}};

/* Each kind, with everything that it can have and with nothing. */
static const struct pliant_event events[] = {
    {.kind = PLIANT_EV_TICK},
    {.kind = PLIANT_EV_START},
    {.kind = PLIANT_EV_NODE_UP, .node_up = {"n1", UINT64_MAX, 4, "z", "d", labels, 2}},
    {.kind = PLIANT_EV_NODE_UP, .node_up = {"n2", 0, 0, NULL, NULL, NULL, 0}},
    {.kind = PLIANT_EV_NODE_DRAINING, .draining = {"n1", 1, INT64_MAX - 1, PLIANT_DRAIN_IDLE}},
    {.kind = PLIANT_EV_NODE_DRAINING, .draining = {"n1", 0, PLIANT_NEVER, PLIANT_DRAIN_UPGRADE}},
    {.kind = PLIANT_EV_NODE_DRAIN_WITHDRAWN, .node = {"n1", 1}},
    {.kind = PLIANT_EV_NODE_LOST, .node = {"n\n1", 0}},
    {.kind = PLIANT_EV_SLOTS_GRANTED, .granted = {"n1", 1, UINT32_MAX}},
    {.kind = PLIANT_EV_SLOTS_RECLAIMED, .reclaimed = {"n1", 1, 2, 60000}},
    {.kind = PLIANT_EV_SLOTS_RECLAIMED, .reclaimed = {"n1", 0, 0, PLIANT_NEVER}},
    {.kind = PLIANT_EV_SLOTS_RESERVED, .plan = {7, false, NULL}},
    {.kind = PLIANT_EV_SLOTS_REFUSED, .plan = {UINT32_MAX, false, NULL}},
    {.kind = PLIANT_EV_CREATION_FAILED, .plan = {7, true, "no \"class\""}},
    {.kind = PLIANT_EV_CREATION_FAILED, .plan = {7, false, NULL}},
    {.kind = PLIANT_EV_TASK_INITIALIZING, .task = TASK},
    {.kind = PLIANT_EV_TASK_RUNNING, .task = TASK},
    {.kind = PLIANT_EV_TASK_END_OF_DATA, .task = TASK},
    {.kind = PLIANT_EV_TASK_FINISHED, .task = TASK},
    {.kind = PLIANT_EV_TASK_FINISHED, .finished = {TASK, outputs, 3}},
    {.kind = PLIANT_EV_TASK_CANCELED, .task = {{1}, 0, 0}},
    {.kind = PLIANT_EV_TASK_FAILED,
     .failure = {.task = TASK, .recoverable = true, .cause = "\",\"actions\":[]}"}},
    {.kind = PLIANT_EV_TASK_FAILED,
     .failure =
         {.task = TASK, .recoverable = true, .cause = "oom", .death = PLIANT_DEATH_TERMINATED}},
    {.kind = PLIANT_EV_TASK_FAILED,
     .failure =
         {.task = TASK, .recoverable = true, .cause = "oom", .death = PLIANT_DEATH_PORT_IN_USE}},
    {.kind = PLIANT_EV_TASK_FAILED,
     .failure = {TASK, true, "gone", PLIANT_DEATH_ERROR, true, 0, 17}},
    {.kind = PLIANT_EV_TASK_FAILED, .failure = {.task = TASK, .cause = "", .exit_code = 255}},
    {.kind = PLIANT_EV_GLOBAL_FAILURE, .failure = {.recoverable = false}},
    {.kind = PLIANT_EV_GLOBAL_FAILURE, .failure = {.recoverable = true, .cause = ""}},
    {.kind = PLIANT_EV_REPORT, .report = {TASK, UINT64_MAX, "/c/1"}},
    {.kind = PLIANT_EV_REPORT, .report = {TASK, 1, NULL}},
    {.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
     .checkpoint = {UINT64_MAX, true, true, INT64_MIN, NULL, NULL, sizes, 2}},
    {.kind = PLIANT_EV_CHECKPOINT_FAILED, .checkpoint = {0, false, true, 5, NULL, "late", NULL, 0}},
    {.kind = PLIANT_EV_SAVEPOINT_COMPLETED,
     .checkpoint = {1, false, false, 0, "/s/p", NULL, NULL, 0}},
    {.kind = PLIANT_EV_SAVEPOINT_FAILED, .checkpoint = {1, false, true, 0, NULL, "", NULL, 0}},
    {.kind = PLIANT_EV_REQUIREMENTS, .requirements = {bounds, 2}},
    {.kind = PLIANT_EV_REQUIREMENTS, .requirements = {NULL, 0}},
    {.kind = PLIANT_EV_CHECKPOINT_REQUESTED},
    {.kind = PLIANT_EV_SAVEPOINT_REQUESTED, .savepoint = {"/dir", true, false}},
    {.kind = PLIANT_EV_STOP, .savepoint = {NULL, false, true}},
    {.kind = PLIANT_EV_CANCEL},
    {.kind = PLIANT_EV_SUSPEND},
};

#define N_EVENTS (sizeof events / sizeof *events)

/* A job, a config and a scheduler with nodes n1 and n2 of two slots each. */
struct setup {
    struct pliant_job *job;   /* with an edge that no adaptive scheduler runs */
    struct pliant_job *plain; /* the same without edges */
    struct pliant_config cfg;
    struct pliant_sched *s;
    pliant_slot_id slots[2]; /* n1/0, n2/1 */
    pliant_node_id node;     /* n2 */
};

#define RULE "cause=*\xc3\xa4\"\\*, exit=1-255 -> type=bad;\n"

static struct setup set_up(void)
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "src", .parallelism = 4, .max_parallelism = 8},
        {.id = "map", .slot_sharing_group = "g", .no_concurrent_attempts = true}};
    static const struct pliant_edge_spec edges[] = {{0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING},
                                                    {.from = 0,
                                                     .to = 1,
                                                     .partitioner = PLIANT_PARTITIONER_BROADCAST,
                                                     .input = 3,
                                                     .splittable = true},
                                                    {0, 1, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED}};
    const struct pliant_job_spec spec = {"wc.1", vertices, 2, edges, 3, false};
    const struct pliant_job_spec plain = {"wc.1", vertices, 2, NULL, 0, false};
    struct setup x = {.job = NULL};
    struct pliant_actions acts;
    char rules[PLIANT_FAILURE_LABELS_MAX / 2]; /* long, with what must be escaped */

    pliant_config_init(&x.cfg);
    x.cfg.seed = INT64_MAX;
    pliant_config_set(&x.cfg, "execution.checkpointing.interval", "2 s", NULL);
    pliant_config_set(&x.cfg, "jobmanager.scheduler", "adaptive", NULL);
    for (size_t i = 0; i + sizeof RULE <= sizeof rules; i += sizeof RULE - 1)
        memcpy(rules + i, RULE, sizeof RULE);
    cr_assert(eq(int, pliant_config_set(&x.cfg, "pliant.failure-labels", rules, NULL), 0));
    cr_assert(eq(int, pliant_config_resolve(&x.cfg, NULL), 0));
    cr_assert(eq(int, pliant_job_new(&spec, NULL, &x.job, NULL), 0));
    cr_assert(eq(int, pliant_job_new(&plain, NULL, &x.plain, NULL), 0));
    cr_assert(eq(int, pliant_sched_new(&x.cfg, x.plain, &x.s, NULL), 0));
    for (int i = 1; i <= 2; i++) {
        const struct pliant_event up = {
            .kind = PLIANT_EV_NODE_UP,
            .node_up = {.name = i == 1 ? "n1" : "n2", .incarnation = 1, .slots = 2}};

        cr_assert(eq(int, pliant_step(x.s, 0, &up, &acts), 0));
    }
    for (uint32_t i = 1; i < 100; i++) { /* ids are the scheduler's own: look for them */
        pliant_node_id node = pliant_slot_node(x.s, (pliant_slot_id){i});
        const char *name = node.v ? pliant_node_name(x.s, node) : "";

        if (strcmp(name, "n1") == 0 && pliant_slot_index(x.s, (pliant_slot_id){i}) == 0)
            x.slots[0].v = i;
        if (strcmp(name, "n2") == 0 && pliant_slot_index(x.s, (pliant_slot_id){i}) == 1) {
            x.slots[1].v = i;
            x.node = node;
        }
    }
    cr_assert(x.slots[0].v != 0 && x.slots[1].v != 0);
    return x;
}

static void tear_down(struct setup *x)
{
    pliant_sched_destroy(&x->s);
    pliant_job_destroy(&x->plain);
    pliant_job_destroy(&x->job);
}

static void write_all(struct json *j, const struct setup *x)
{
    const struct pliant_actions none = {.n = 0};

    recording_write_header(j, x->job, &x->cfg, "\x00\xff\x7a", 3);
    for (size_t i = 0; i < N_EVENTS; i++)
        recording_write_step(j, x->job, x->s, (int64_t)i, &events[i], &none);
}

Test(recording, writes_reads_and_writes_every_event_the_same)
{
    struct setup x = set_up();
    struct json first, second;
    struct recording *rec = NULL;
    struct recording_step step;
    struct spec_error err = {""};
    bool seen[PLIANT_EVENTS] = {false};
    size_t n = 0, size;

    json_init(&first, NULL);
    json_init(&second, NULL);
    write_all(&first, &x);
    cr_assert(eq(int, first.error, 0));
    cr_assert(recording_of_text("r", first.v, first.n, &rec, &err) == 0, "%s", err.text);
    cr_assert(recording_snapshot(rec, &size) && size == 3);
    recording_write_header(&second, recording_job(rec), recording_config(rec),
                           recording_snapshot(rec, &size), 3);
    while (recording_next(rec, &step, &err) == 1) {
        const struct pliant_actions none = {.n = 0};

        cr_assert(step.actions_size == 2 && memcmp(step.actions, "[]", 2) == 0);
        cr_assert(eq(u32, step.line, (uint32_t)n + 2));
        seen[step.event.kind] = true;
        recording_write_step(&second, recording_job(rec), x.s, step.at_ms, &step.event, &none);
        n++;
    }
    cr_expect(eq(sz, n, N_EVENTS), "%s", err.text);
    cr_expect(first.n == second.n && memcmp(first.v, second.v, first.n) == 0, "%.*s\nis not\n%.*s",
              (int)first.n, first.v, (int)second.n, second.v);
    for (enum pliant_event_kind k = PLIANT_EV_TICK; k < PLIANT_EVENTS; k++)
        cr_expect(seen[k], "%s is not tried", pliant_event_name(k));
    recording_close(&rec);
    json_free(&first);
    json_free(&second);
    tear_down(&x);
}

Test(recording, keeps_the_job_and_the_options)
{
    struct setup x = set_up();
    struct json j;
    struct recording *rec = NULL;
    struct spec_error err = {""};
    char ours[PLIANT_FAILURE_LABELS_MAX + 1], theirs[PLIANT_FAILURE_LABELS_MAX + 1];
    size_t size;

    json_init(&j, NULL);
    recording_write_header(&j, x.job, &x.cfg, NULL, 0);
    cr_assert(recording_of_text("r", j.v, j.n, &rec, &err) == 0, "%s", err.text);
    cr_expect(eq(str, (char *)pliant_job_name(recording_job(rec)), "wc.1"));
    cr_expect(eq(u32, pliant_job_vertices(recording_job(rec)), 2));
    cr_expect(eq(i64, recording_config(rec)->seed, INT64_MAX));
    cr_expect(recording_snapshot(rec, &size) == NULL && size == 0);
    for (size_t i = 0; pliant_option_at(i); i++) {
        const char *key = pliant_option_at(i)->key;

        if (pliant_config_get(&x.cfg, key, ours, sizeof ours) < 0)
            continue;
        pliant_config_get(recording_config(rec), key, theirs, sizeof theirs);
        cr_expect(eq(str, ours, theirs), "%s", key);
    }
    recording_close(&rec);
    json_free(&j);
    tear_down(&x);
}

/* ---- actions ------------------------------------------------------------------------------ */

static const struct pliant_rescale_vertex rescale_vertices[] = {{1, 4, 0, 2}, {2, 4, 2, 4}};
static const struct pliant_rescale_group rescale_groups[] = {{1, 4, 0, 2}, {2, 4, 2, 4}};
static const struct pliant_rescale_span rescale_spans[] = {
    {PLIANT_WAITING_FOR_RESOURCES, 0, 5, NULL}, {PLIANT_FAILING, 5, 6, "boom"}};
static const struct pliant_rescale rescale = {.id = {0xab, 1},
                                              .requirements_id = {0xff},
                                              .attempt = 2,
                                              .trigger = PLIANT_TRIGGER_DRAIN,
                                              .end = PLIANT_RESCALE_SUCCEEDED,
                                              .start_at_ms = 5,
                                              .end_at_ms = 6,
                                              .vertices = rescale_vertices,
                                              .groups = rescale_groups,
                                              .spans = rescale_spans,
                                              .n_spans = 2};
static const struct pliant_failure_item failure_items[] = {
    {.at_ms = 9,
     .reason = PLIANT_REASON_TASK_FAILED,
     .recoverable = true,
     .exit_code = 137,
     .task = TASK,
     .node = "n1",
     .cause = "oom",
     .n_labels = 2,
     .labels = (const struct pliant_label[]){{"type", "oom"}, {"owner", "user"}}},
    {.at_ms = 10, .reason = PLIANT_REASON_GLOBAL_FAILURE, .node = "", .cause = ""}};
static const struct pliant_failure failure = {failure_items, 2, 3};

Test(recording, writes_every_action)
{
    struct setup x = set_up();
    const pliant_slot_id *slots = x.slots;
    const struct {
        struct pliant_action act;
        const char *text;
    } rows[] = {
        {{.kind = PLIANT_ACT_DECLARE, .declare = {4, 2}}, "\"desired\":4,\"min\":2"},
        {{.kind = PLIANT_ACT_RESERVE, .reserve = {7, 2, slots, 9}},
         "\"plan\":7,\"slots\":[\"n1/0\",\"n2/1\"],\"restore\":\"9\""},
        {{.kind = PLIANT_ACT_RELEASE, .release = {1, slots}}, "\"slots\":[\"n1/0\"]"},
        {{.kind = PLIANT_ACT_RELEASE_RESULT, .result = {TASK, 2}},
         "\"edge\":2,\"vertex\":\"map\",\"subtask\":3,\"attempt\":4"},
        {{.kind = PLIANT_ACT_DECIDED, .decided = {{2}, 3, 4294967296}},
         "\"vertex\":\"map\",\"parallelism\":3,\"bytes\":4294967296"},
        {{.kind = PLIANT_ACT_BLOCK_NODE, .blocked = {x.node, 60000}},
         "\"node\":\"n2\",\"incarnation\":\"1\",\"until_at_ms\":60000"},
        {{.kind = PLIANT_ACT_DEPLOY, .deploy = {TASK, slots[1], 0}},
         "\"vertex\":\"map\",\"subtask\":3,\"attempt\":4,\"slot\":\"n2/1\""},
        {{.kind = PLIANT_ACT_CANCEL, .task = TASK},
         "\"vertex\":\"map\",\"subtask\":3,\"attempt\":4"},
        {{.kind = PLIANT_ACT_CHECKPOINT,
          .flag = {PLIANT_CHECKPOINT_STOP, 1, 1},
          .checkpoint = {UINT64_MAX, "/d"}},
         "\"id\":\"18446744073709551615\",\"why\":\"stop\",\"savepoint\":true,\"drain\":true,"
         "\"dir\":\"/d\""},
        {{.kind = PLIANT_ACT_REGISTER, .registered = {7, "/c/1", 3}},
         "\"id\":\"7\",\"path\":\"/c/1\",\"call\":\"3\""},
        {{.kind = PLIANT_ACT_REPORT_TAKEN, .report = {TASK, 3}},
         "\"vertex\":\"map\",\"subtask\":3,\"attempt\":4,\"call\":\"3\""},
        {{.kind = PLIANT_ACT_NOTIFY, .flag = {PLIANT_DRAIN_UPGRADE}, .notify = {x.node, 30000}},
         "\"node\":\"n2\",\"incarnation\":\"1\",\"deadline_at_ms\":30000,\"reason\":\"upgrade\""},
        {{.kind = PLIANT_ACT_NOTIFY, .notify = {x.node, PLIANT_NEVER}},
         "\"node\":\"n2\",\"incarnation\":\"1\",\"reason\":\"preemption\""},
        {{.kind = PLIANT_ACT_GIVE_UP_NODE, .node = {x.node}},
         "\"node\":\"n2\",\"incarnation\":\"1\""},
        {{.kind = PLIANT_ACT_REFUSED, .flag = {PLIANT_REASON_NOT_EXECUTING}, .refused = {{1}}},
         "\"reason\":\"not-executing\",\"vertex\":\"src\""},
        {{.kind = PLIANT_ACT_STATE_CHANGED,
          .flag = {PLIANT_EXECUTING, PLIANT_RESTARTING, PLIANT_REASON_NODE_LOST},
          .change = {4, x.node, 15000, 1000}},
         "\"from\":\"Executing\",\"to\":\"Restarting\",\"reason\":\"node-lost\",\"slots\":4,"
         "\"node\":\"n2\",\"incarnation\":\"1\",\"since_at_ms\":15000,\"detail\":1000"},
        {{.kind = PLIANT_ACT_STATE_CHANGED, .change = {0, {0}, PLIANT_NEVER, 0}},
         "\"from\":\"Created\",\"to\":\"Created\",\"reason\":\"none\",\"slots\":0,\"detail\":0"},
        {{.kind = PLIANT_ACT_STATUS_CHANGED, .status = {PLIANT_JOB_CREATED, PLIANT_JOB_RUNNING}},
         "\"from\":\"CREATED\",\"to\":\"RUNNING\""},
        {{.kind = PLIANT_ACT_RESCALE_OPENED, .rescale = {&rescale}},
         "\"id\":\"ab010000000000000000000000000000\","
         "\"requirements_id\":\"ff000000000000000000000000000000\",\"attempt\":2,"
         "\"trigger\":\"DRAIN\",\"end\":\"SUCCEEDED\",\"start_at_ms\":5,\"end_at_ms\":6,"
         "\"vertices\":[{\"vertex\":\"src\",\"sufficient\":1,\"desired\":4,\"pre\":0,\"post\":2},"
         "{\"vertex\":\"map\",\"sufficient\":2,\"desired\":4,\"pre\":2,\"post\":4}],"
         "\"groups\":[{\"group\":\"default\",\"minimal\":1,\"desired\":4,\"pre\":0,\"post\":2},"
         "{\"group\":\"g\",\"minimal\":2,\"desired\":4,\"pre\":2,\"post\":4}],"
         "\"spans\":[{\"state\":\"WaitingForResources\",\"enter_at_ms\":0,\"leave_at_ms\":5},"
         "{\"state\":\"Failing\",\"enter_at_ms\":5,\"leave_at_ms\":6,\"exception\":\"boom\"}]"},
        {{.kind = PLIANT_ACT_RESCALE_CLOSED, .rescale = {&rescale}}, "\"id\":\"ab01"},
        {{.kind = PLIANT_ACT_RESCALE_JUDGED,
          .flag = {PLIANT_JUDGED_COST},
          .judged = {4, 5, 600000, 900000}},
         "\"judgement\":\"cost\",\"from\":4,\"to\":5,\"gain\":600000,\"cost\":900000"},
        {{.kind = PLIANT_ACT_FAILURE, .failure = {&failure}},
         "\"items\":[{\"at_ms\":9,\"reason\":\"task-failed\",\"recoverable\":true,"
         "\"vertex\":\"map\",\"subtask\":3,\"attempt\":4,\"node\":\"n1\",\"cause\":\"oom\","
         "\"exit_code\":137,\"labels\":{\"type\":\"oom\",\"owner\":\"user\"}},"
         "{\"at_ms\":10,\"reason\":\"global-failure\",\"recoverable\":false,\"node\":\"\","
         "\"cause\":\"\"}],\"more\":3"},
        {{.kind = PLIANT_ACT_SAVEPOINT_ENDED, .savepoint = {"/s", NULL}}, "\"path\":\"/s\""},
        {{.kind = PLIANT_ACT_SAVEPOINT_ENDED, .savepoint = {NULL, "full"}}, "\"cause\":\"full\""},
        {{.kind = PLIANT_ACT_ARCHIVED, .status = {PLIANT_JOB_RUNNING, PLIANT_JOB_FINISHED}},
         "\"from\":\"RUNNING\",\"to\":\"FINISHED\""},
    };
    bool seen[PLIANT_ACTIONS] = {false};
    char want[2048];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct pliant_actions acts = {&rows[i].act, 1};
        struct json j;

        json_init(&j, NULL);
        recording_write_actions(&j, NULL, x.job, x.s, &acts);
        cr_assert(eq(int, json_flush(&j), 0));
        snprintf(want, sizeof want, "[{\"act\":\"%s\",%s",
                 pliant_action_name((enum pliant_action_kind)rows[i].act.kind), rows[i].text);
        cr_expect(j.n >= strlen(want) && memcmp(j.v, want, strlen(want)) == 0, "%.*s\nis not\n%s",
                  (int)j.n, j.v, want);
        seen[rows[i].act.kind] = true;
        json_free(&j);
    }
    for (enum pliant_action_kind k = PLIANT_ACT_DECLARE; k < PLIANT_ACTIONS; k++)
        cr_expect(seen[k], "%s is not tried", pliant_action_name(k));
    tear_down(&x);
}

/* ---- what is not a recording ---------------------------------------------------------------- */

#define HEADER                                                                                     \
    "{\"pliant_journal\":1,\"job\":{\"vertices\":[{\"id\":\"src\"}]},\"options\":{},\"seed\":"     \
    "\"1\"}\n"
#define STEP(event) "{\"t\":0,\"event\":" event ",\"actions\":[]}\n"

/* The first error of a text, or "". */
static const char *first_error(const char *text, size_t size)
{
    static struct spec_error err;
    struct recording_step step;
    struct recording *rec = NULL;
    int r = recording_of_text("r", text, size, &rec, &err);

    while (r >= 0 && (r = recording_next(rec, &step, &err)) == 1)
        ;
    recording_close(&rec);
    cr_assert(r == 0 || r == -EINVAL);
    return r == 0 ? "" : err.text;
}

/* Is this part of it? Of "" only "" is. */
static bool says(const char *text, const char *part)
{
    return *part ? strstr(text, part) != NULL : *text == '\0';
}

Test(recording, names_the_place_and_what_is_accepted)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "the file is empty"},
        {"{}\n", "r:1: a recording begins with its header"},
        {"{\"pliant_journal\":2,\"job\":{},\"options\":{},\"seed\":\"1\"}\n",
         "r:1: pliant_journal: unknown version"},
        {"{\"pliant_journal\":1,\"job\":{},\"options\":{\"nonsense\":\"1\"},\"seed\":\"1\"}\n",
         "nonsense"},
        {"{\"pliant_journal\":1,\"job\":{},\"options\":{\"pliant.seed\":1},\"seed\":\"1\"}\n",
         "r:1: options.pliant.seed: accepted: a string"},
        {"{\"pliant_journal\":1,\"job\":{},\"options\":{},\"seed\":\"x\"}\n", "seed"},
        {"{\"pliant_journal\":1,\"job\":{},\"options\":{}}\n", "\"seed\" is missing"},
        {"{\"pliant_journal\":1,\"options\":{},\"seed\":\"1\"}\n", "\"job\" is missing"},
        {"{\"pliant_journal\":1,\"job\":{},\"options\":{},\"seed\":\"1\",\"snapshot\":7}\n",
         "r:1: snapshot: accepted: a string"},
        {"{\"pliant_journal\":1,\"job\":{},\"options\":{},\"seed\":\"1\",\"snapshot\":\"\"}\n",
         "r:1: snapshot: accepted: bytes as pairs of hexadecimal digits"},
        {"{\"pliant_journal\":1,\"job\":{},\"options\":{},\"seed\":\"1\",\"snapshot\":\"abc\"}\n",
         "pairs of hexadecimal digits"},
        {"{\"pliant_journal\":1,\"job\":{},\"options\":{},\"seed\":\"1\",\"snapshot\":\"0g\"}\n",
         "pairs of hexadecimal digits"},
        {"{\"pliant_journal\":1,\"jo", "cut in the middle of line 1"},
        {HEADER "{\"t\":0,\"event\":{\"ev\":\"ti", "cut in the middle of line 2"},
        {HEADER "{\"t\":0,\"event\":{\"ev\":\"tick\"}}\n", "r:2: a step is "},
        {HEADER "{\"t\":0,\"event\":{\"ev\":\"tick\"}, \"actions\":[]}\n", "without spaces"},
        {HEADER "{\"event\":{\"ev\":\"tick\"},\"actions\":[]}\n", "\"t\" is missing"},
        {HEADER "{\"t\":\"0\",\"event\":{\"ev\":\"tick\"},\"actions\":[]}\n", "r:2: t: accepted"},
        {HEADER "{\"t\":9223372036854775808,\"event\":{\"ev\":\"tick\"},\"actions\":[]}\n",
         "r:2: t: accepted: a whole number of 64 bits"},
        {HEADER "{\"t\":0,\"actions\":[]}\n", "\"event\" is missing"},
        {HEADER "{\"t\":0,\"event\":[],\"actions\":[]}\n", "r:2: event: accepted: a map"},
        {HEADER "{\"t\":0,\"event\":{\"ev\":\"tick\"},\"x\":1,\"actions\":[]}\n",
         "r:2: x: unknown"},
        {HEADER "{\"t\":0,\"event\":{\"ev\":\"tick\"},\"actions\":[]}\n"
                "{\"t\":-1,\"event\":{\"ev\":\"tick\"},\"actions\":[]}\n",
         "r:3: t: time goes back from 0 to -1"},
        {HEADER STEP("{}"), "\"ev\" is missing"},
        {HEADER STEP("{\"ev\":\"tock\"}"), "did you mean \"tick\"?"},
        {HEADER STEP("{\"ev\":\"tick\",\"node\":\"n\"}"), "r:2: event.node: unknown key"},
        {HEADER STEP("{\"ev\":\"node_lost\"}"), "\"node\" is missing"},
        {HEADER STEP("{\"ev\":\"node_lost\",\"node\":\"n\",\"incarnation\":1}"),
         "accepted: a string"},
        {HEADER STEP("{\"ev\":\"node_lost\",\"node\":\"n\",\"incarnation\":\"-1\"}"), "digits"},
        {HEADER STEP("{\"ev\":\"node_lost\",\"node\":\"n\",\"incarnation\":\"\"}"), "digits"},
        {HEADER STEP(
             "{\"ev\":\"node_lost\",\"node\":\"n\",\"incarnation\":\"18446744073709551616\"}"),
         "digits"},
        {HEADER STEP("{\"ev\":\"node_up\",\"node\":\"n\",\"slots\":-1}"),
         "slots: accepted: 0 to 4294967295"},
        {HEADER STEP("{\"ev\":\"node_up\",\"node\":\"n\",\"slots\":1.5}"), "whole number"},
        {HEADER STEP("{\"ev\":\"node_up\",\"node\":\"n\",\"slots\":1,\"labels\":{\"a\":1}}"),
         "r:2: event.labels.a: accepted: a string"},
        {HEADER STEP("{\"ev\":\"node_draining\",\"node\":\"n\",\"reason\":\"bored\"}"),
         "unknown reason"},
        {HEADER STEP("{\"ev\":\"task_running\",\"vertex\":\"sink\",\"subtask\":0,\"attempt\":1}"),
         "the job has no vertex \"sink\""},
        {HEADER STEP("{\"ev\":\"global_failure\",\"recoverable\":1}"), "true or false"},
        {HEADER STEP("{\"ev\":\"requirements\",\"vertices\":[1]}"),
         "r:2: event.vertices[0]: accepted: a map"},
        {HEADER STEP("{\"ev\":\"requirements\",\"vertices\":[{\"vertex\":\"v\",\"min\":1}]}"),
         "\"max\" is missing"},
        {HEADER STEP("{\"ev\":\"checkpoint_completed\",\"own_accord\":true,\"counts\":true,"
                     "\"triggered_at_ms\":0,\"sizes\":[{\"vertex\":\"src\",\"subtask\":0}]}"),
         "\"bytes\" is missing"},
        {HEADER STEP("{\"ev\":\"tick\"}"), ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = first_error(rows[i].text, strlen(rows[i].text));

        cr_expect(says(got, rows[i].says), "row %zu: \"%s\" has no \"%s\"", i, got, rows[i].says);
    }
}

Test(recording, is_whole_or_an_error_wherever_it_is_cut)
{
    struct setup x = set_up();
    struct json j;

    json_init(&j, NULL);
    write_all(&j, &x);
    for (size_t size = 0; size < j.n; size++) {
        bool whole = size > 0 && (j.v[size - 1] == '\n' || j.v[size] == '\n');

        cr_assert(eq(int, *first_error(j.v, size) == '\0', whole), "%zu bytes", size);
    }
    json_free(&j);
    tear_down(&x);
}

Test(recording, gives_up_cleanly_at_any_allocation)
{
    struct setup x = set_up();
    struct json j;
    int r = -ENOMEM;

    json_init(&j, NULL);
    write_all(&j, &x);
    for (size_t k = 1; r == -ENOMEM; k++) {
        FAILING_ALLOC(f, k);
        struct recording_step step;
        struct spec_error err = {""};
        struct recording *rec = NULL;

        spec_memory = &f.hook;
        r = recording_of_text("r", j.v, j.n, &rec, &err);
        while (r >= 0 && (r = recording_next(rec, &step, &err)) == 1)
            ;
        recording_close(&rec);
        spec_memory = NULL;
        cr_assert(eq(sz, f.live, 0));
        cr_assert(r == 0 || r == -ENOMEM, "k = %zu: %d %s", k, r, err.text);
        cr_assert(lt(sz, k, 1000));
    }
    json_free(&j);
    tear_down(&x);
}

/* ---- events outside of a recording ---------------------------------------------------------- */

Test(recording, decodes_events_by_themselves)
{
    struct setup x = set_up();
    struct recording_decoder *decoder = NULL;
    struct pliant_event event;
    struct spec_error err = {""};
    struct json first, second;

    json_init(&first, NULL);
    json_init(&second, NULL);
    cr_assert(eq(int, recording_decoder_new("journal", x.job, &decoder), 0));
    for (size_t i = 0; i < N_EVENTS; i++) {
        json_reset(&first);
        json_reset(&second);
        recording_write_event(&first, NULL, x.job, &events[i]);
        cr_assert(eq(int, recording_event_decode(decoder, first.v, first.n, 7, &event, &err), 0),
                  "%s", err.text);
        recording_write_event(&second, NULL, x.job, &event);
        cr_expect(first.n == second.n && memcmp(first.v, second.v, first.n) == 0, "event %zu", i);
    }
    recording_decoder_free(&decoder);
    cr_expect(decoder == NULL);
    json_free(&first);
    json_free(&second);
    tear_down(&x);
}

Test(recording, names_the_line_of_an_event_that_is_none)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "journal:7"},
        {"[]", "journal:7: accepted: an event"},
        {"1", "journal:7: accepted: an event"},
        {"{\"ev\":\"tick\"", "journal:7"},
        {"{\"ev\":\"tock\"}", "journal:7: ev: unknown event \"tock\"; did you mean \"tick\"?"},
        {"{\"ev\":\"task_running\",\"vertex\":\"nobody\",\"subtask\":0,\"attempt\":1}",
         "journal:7: vertex: the job has no vertex \"nobody\""},
        {"{\"ev\":\"tick\",\"t\":1}", "journal:7: t: unknown key"},
    };
    struct setup x = set_up();
    struct recording_decoder *decoder = NULL;
    struct pliant_event event;
    struct spec_error err;

    cr_assert(eq(int, recording_decoder_new("journal", x.job, &decoder), 0));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect(
            eq(int,
               recording_event_decode(decoder, rows[i].text, strlen(rows[i].text), 7, &event, &err),
               -EINVAL));
        cr_expect(says(err.text, rows[i].says), "row %zu: \"%s\"", i, err.text);
    }
    recording_decoder_free(&decoder);
    tear_down(&x);
}

Test(recording, tells_that_there_is_no_memory_to_write_with)
{
    struct setup x = set_up();
    FAILING_ALLOC(f, 1);
    struct json j;

    json_init(&j, NULL);
    spec_memory = &f.hook;
    recording_write_header(&j, x.job, &x.cfg, NULL, 0);
    cr_expect(eq(int, json_flush(&j), -ENOMEM));
    json_free(&j);
    spec_memory = NULL;
    tear_down(&x);
}

/* labels_test.c - labels of failures: patterns, the grammar of the rules, and the histories
 *
 * That they are the same after a snapshot is shown by world.h, which restores one before each step,
 * and by pliant_check(), which finds them anew. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "failover/exception_history.h"
#include "world.h"

#define N(rows) (sizeof(rows) / sizeof *(rows))
#define KEY "pliant.failure-labels"

/* ---- patterns -------------------------------------------------------------------------------- */

Test(labels, a_pattern_describes_all_of_a_text)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"a", "a", true},
        {"a", "A", false},
        {"a", "ab", false},
        {"b", "ab", false},
        {"*", "", true},
        {"*", "anything; at all", true},
        {"**", "", true},
        {"a*", "a", true},
        {"a*", "ba", false},
        {"*a", "ba", true},
        {"*a", "bab", false},
        {"*a", "baba", true},
        {"*ab*", "aab", true},
        {"*ab*", "aa", false},
        {"a*b*c", "a-b-b-c-c", true},
        {"a*b*c", "a-c-b", false},
        {"*abab*abc", "ababababc", true},
        {"*ababc", "abababc", true},
        {"?", "", false},
        {"?", "a", true},
        {"?", "ab", false},
        {"?", "\xc3\xa4", true}, /* a letter, not a byte */
        {"??", "\xc3\xa4", false},
        {"*??", "\xc3\xa4", false},
        {"*\xe2\x82\xac?", "1 \xe2\x82\xac!", true},
        {"gpu-?", "gpu-7", true},
        {"gpu-?", "gpu-17", false},
        {"*[Errno 28]*", "OSError: [Errno 28] No space left on device", true},
        {"*[Errno 28]*", "E", false},
        {"a\\*", "a\\b", true},
        {"*CUDA out of memory*", "RuntimeError: CUDA out of memory. Tried to allocate", true},
    };

    for (size_t i = 0; i < N(rows); i++)
        cr_expect(eq(int, label_pattern_matches(rows[i].pattern, rows[i].text), rows[i].matches),
                  "\"%s\", \"%s\"", rows[i].pattern, rows[i].text);
}

Test(labels, a_pattern_of_many_stars_takes_no_longer_than_its_length_times_the_texts)
{
    static char pattern[801], text[20001];

    for (size_t i = 0; i + 1 < sizeof pattern; i += 2)
        memcpy(pattern + i, "*a", 2);
    memset(text, 'a', sizeof text - 1);
    cr_expect(label_pattern_matches(pattern, text));
    pattern[sizeof pattern - 2] = 'b'; /* would be tried 10^900 times by recursion */
    cr_expect(not(label_pattern_matches(pattern, text)));
}

/* ---- the grammar ----------------------------------------------------------------------------- */

static const struct label_facts OOM = {
    LABEL_KIND_TASK, 137, "RuntimeError: CUDA out of memory, 2 GiB; -> give up", "gpu-7", "train"};
static const struct label_facts LOST = {LABEL_KIND_NODE, 0, "", "cpu-1", "train"};
static const struct label_facts GLOBAL = {LABEL_KIND_GLOBAL, 0, "it said \"no\"", "", ""};

/* "key=value key=value", or what is wrong. */
static const char *labels_by(const char *text, const struct label_facts *facts)
{
    static char found[1024];
    static struct label_rules rules;
    struct pliant_label labels[LABEL_KEYS_MAX];
    size_t at = 0;
    uint32_t n;

    memset(&rules, 0xff, sizeof rules);
    if (!label_rules_parse(text, &rules, found))
        return found;
    *found = '\0';
    n = label_rules_apply(&rules, facts, labels);
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(found + at, sizeof found - at, "%s%s=%s", i ? " " : "",
                               labels[i].key, labels[i].value);
    return found;
}

Test(labels, come_from_the_rules_that_hold) /* [P-FO-5] */
{
    static const struct {
        const char *text;
        const char *oom, *lost, *global;
    } rows[] = {
        {"none", "", "", ""},
        {"NONE", "", "", ""},
        {"cause=*CUDA out of memory* -> type=oom,owner=user; exit=137 -> type=killed; "
         "node=gpu-* -> pool=gpu; kind=global -> type=global",
         "type=oom owner=user pool=gpu", "", "type=global"},
        {"exit=137->type=killed;cause=*memory*->type=oom,owner=user", "type=killed owner=user", "",
         ""},
        {"exit=1-136 -> a=b", "", "", ""},
        {"exit=1-137 -> a=b", "a=b", "", ""},
        {"exit=138-255 -> a=b", "", "", ""},
        {"exit=137-137 -> a=b", "a=b", "", ""},
        {"kind=task -> a=b", "a=b", "", ""},
        {"kind=node -> a=b", "", "a=b", ""},
        {"kind=node, node=cpu-* -> a=b", "", "a=b", ""},
        {"kind=node, node=gpu-* -> a=b", "", "", ""},
        {"vertex=tr*n -> a=b", "a=b", "a=b", ""},
        {"vertex=* -> a=b", "a=b", "a=b", "a=b"},
        {"vertex=\"\" -> a=b", "", "", "a=b"},
        {"cause=*CUDA*, cause=*memory* -> a=b", "a=b", "", ""},
        {"cause=\"*memory, 2 GiB; -> give up\" -> a=b", "a=b", "", ""},
        {"cause = \"*memory*\" , exit = 137 -> a = \"b, c; -> d\" , e = f g ", "a=b, c; -> d e=f g",
         "", ""},
        {"cause=it said \"no\" -> a=b", "", "", "a=b"},
        {"\n\tcause=*memory* -> a=b\r\n\n  exit=137 -> c=d;\n;", "a=b c=d", "", ""},
        {"node=gpu-* -> k8s.io/pool_1-a=g=h", "k8s.io/pool_1-a=g=h", "", ""},
        {"kind=task -> a=1; kind=task -> b=2, a=3", "a=1 b=2", "", ""},
    };

    for (size_t i = 0; i < N(rows); i++) {
        cr_expect(eq(str, (char *)labels_by(rows[i].text, &OOM), (char *)rows[i].oom), "%s",
                  rows[i].text);
        cr_expect(eq(str, (char *)labels_by(rows[i].text, &LOST), (char *)rows[i].lost), "%s",
                  rows[i].text);
        cr_expect(eq(str, (char *)labels_by(rows[i].text, &GLOBAL), (char *)rows[i].global), "%s",
                  rows[i].text);
    }
}

Test(labels, a_rule_that_is_none_is_told_with_its_place)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", "at the end: no rule; accepted: rules, or none"},
        {" ;\n; ", "at byte 1, \" ;\n; \": no rule"},
        {"oom", "at byte 1, \"oom\": accepted: cause=, exit=, kind=, node= or vertex="},
        {"caus=x -> a=b", "at byte 1, \"caus=x -> a=b\": accepted: cause="},
        {"causes=x -> a=b", "at byte 1"},
        {"cause x -> a=b", "at byte 1"},
        {"Cause=x -> a=b", "at byte 1"},
        {"-> a=b", "at byte 1, \"-> a=b\": accepted: cause="},
        {"exit=1 -> a=b; extra=2 -> c=d", "at byte 16, \"extra=2 -> c=d\": accepted: cause="},
        {"exit=1", "at the end: accepted: , and one more condition, or -> and labels"},
        {"exit=1; exit=2 -> a=b", "at byte 7, \"; exit=2 -> a=b\": accepted: , and one more"},
        {"exit=1, -> a=b", "at byte 9, \"-> a=b\": accepted: cause="},
        {"cause= -> a=b", "at byte 8, \"-> a=b\": accepted: a text after ="},
        {"cause=\"x -> a=b", "at byte 7, \"\"x -> a=b\": the quotation mark has no second one"},
        {"cause=\"x\"y -> a=b", "at byte 10, \"y -> a=b\": accepted after a text in quotation"},
        {"exit=0 -> a=b",
         "at byte 1, \"exit=0 -> a=b\": accepted: exit=, and a code from 1 to 255"},
        {"exit=256 -> a=b", "at byte 1"},
        {"exit=99999999999999999999 -> a=b", "at byte 1"},
        {"exit=3-2 -> a=b", "at byte 1"},
        {"exit=1-2-3 -> a=b", "at byte 1"},
        {"exit=-1 -> a=b", "at byte 1"},
        {"exit=1- -> a=b", "at byte 1"},
        {"exit=1x -> a=b", "at byte 1"},
        {"kind=TASK_MANAGER -> a=b",
         "at byte 1, \"kind=TASK_MANAGER -> a=b\": accepted: kind=task"},
        {"exit=1 ->", "at the end: accepted: key=value"},
        {"exit=1 -> a", "at byte 11, \"a\": accepted: key=value"},
        {"exit=1 -> =b", "at byte 11, \"=b\": accepted: key=value"},
        {"exit=1 -> a b=c", "at byte 11"},
        {"exit=1 -> a=", "at the end: accepted: a text after ="},
        {"exit=1 -> a=\"\"", "at byte 11, \"a=\"\"\": accepted: a value of 1 to 128 bytes"},
        {"exit=1 -> a=b, a=c", "at byte 16, \"a=c\": the rule gives this key already"},
        {"exit=1 -> a=b exit=2 -> c=d", "at byte 22, \"-> c=d\": accepted after a label"},
        {"exit=1 -> a=b,", "at the end: accepted: key=value"},
        {"exit=7 -> owner=\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4, x",
         "at byte 35, \"x\""},
    };

    for (size_t i = 0; i < N(rows); i++) {
        static struct label_rules rules;
        char why[LABEL_WHY_MAX] = "";

        cr_expect(not(label_rules_parse(rows[i].text, &rules, why)), "%s", rows[i].text);
        cr_expect(strstr(why, rows[i].want) == why, "%s: %s", rows[i].text, why);
    }
}

/* `n` times the same, and what is at the place of # is the number. */
static const char *many(const char *form, unsigned n)
{
    static char text[4 * PLIANT_FAILURE_LABELS_MAX];
    size_t at = 0;

    *text = '\0';
    for (unsigned i = 0; i < n; i++)
        for (const char *c = form; *c; c++)
            at += (size_t)(*c == '#' ? snprintf(text + at, sizeof text - at, "%u", i)
                                     : snprintf(text + at, sizeof text - at, "%c", *c));
    return text;
}

Test(labels, are_bounded) /* [P-FO-5] */
{
    static const struct {
        const char *form;
        unsigned n;
        const char *want; /* of one more */
    } rows[] = {
        {"exit=1->a=b;", LABEL_RULES_MAX, "more than 32 rules"},
        {"exit=1,exit=2,exit=3,exit=4->a=b;", LABEL_CONDITIONS_MAX / 4, "more than 64 conditions"},
        {"exit=1->a=1,b=2,c=3,d=4;", LABELS_MAX / 4, "more than 64 labels"},
        {"exit=1->k#=v;", LABEL_KEYS_MAX, "more than 16 keys"},
    };
    static struct label_rules rules;
    static char longest[PLIANT_FAILURE_LABELS_MAX + 2], value[LABEL_VALUE_MAX + 16];
    char why[LABEL_WHY_MAX];

    for (size_t i = 0; i < N(rows); i++) {
        cr_expect(label_rules_parse(many(rows[i].form, rows[i].n), &rules, why), "%s: %s",
                  rows[i].form, why);
        cr_expect(not(label_rules_parse(many(rows[i].form, rows[i].n + 1), &rules, why)));
        cr_expect(strstr(why, rows[i].want) != NULL, "%s", why);
    }
    snprintf(longest, sizeof longest, "exit=1 -> a=b; cause=%01950d", 0);
    memset(longest + strlen(longest), '*', sizeof longest - 1 - strlen(longest));
    memcpy(longest + sizeof longest - 8, " -> c=d", 8);
    cr_expect(eq(sz, strlen(longest), PLIANT_FAILURE_LABELS_MAX + 1));
    cr_expect(not(label_rules_parse(longest, &rules, why)));
    cr_expect(strstr(why, "more than 2000 bytes") != NULL, "%s", why);
    memmove(longest, longest + 1, sizeof longest - 1);
    *longest = ' ';
    cr_expect(not(label_rules_parse(longest, &rules, why))); /* xit=1 */
    memcpy(longest, "exit=1->", 8);
    cr_expect(label_rules_parse(longest, &rules, why), "%s", why);
    snprintf(value, sizeof value, "exit=1 -> a=%0128d", 0);
    cr_expect(label_rules_parse(value, &rules, why), "%s", why);
    snprintf(value, sizeof value, "exit=1 -> a=%0129d", 0);
    cr_expect(not(label_rules_parse(value, &rules, why)));
    snprintf(value, sizeof value, "exit=1 -> %064d=a", 0);
    cr_expect(label_rules_parse(value, &rules, why), "%s", why);
    snprintf(value, sizeof value, "exit=1 -> %065d=a", 0);
    cr_expect(not(label_rules_parse(value, &rules, why)));
}

/* ---- the option ------------------------------------------------------------------------------ */

Test(labels, the_option_keeps_its_text_and_refuses_what_is_no_rule)
{
    static const char text[] = "exit=1 -> type=user\nkind=node -> type=lost";
    struct pliant_config cfg;
    struct pliant_error err;
    char buf[sizeof text];

    pliant_config_init(&cfg);
    cr_expect(eq(int, pliant_config_get(&cfg, KEY, buf, sizeof buf), 0));
    cr_assert(eq(int, pliant_config_set(&cfg, KEY, text, &err), 0));
    cr_assert(eq(int, pliant_config_resolve(&cfg, &err), 0));
    cr_expect(eq(int, pliant_config_get(&cfg, KEY, buf, sizeof buf), (int)strlen(text)));
    cr_expect(eq(str, buf, (char *)text));
    cr_expect(eq(int, pliant_config_set(&cfg, KEY, "exit=x -> a=b", &err), -EINVAL));
    cr_expect(eq(str, err.text,
                 KEY ": at byte 1, \"exit=x -> a=b\": accepted: exit=, and a code "
                     "from 1 to 255, or two as 129-255"));
    cr_expect(eq(str, err.field, KEY));
    cr_expect(eq(int, pliant_config_set(&cfg, KEY, "", &err), -EINVAL));
    cr_expect(strstr(err.text, "accepted: rules, as") != NULL, "%s", err.text);
    cr_expect(eq(str, cfg.failure_labels, (char *)text), "as it was");
    cr_expect(eq(int, pliant_config_set(&cfg, KEY, "none", &err), 0));
    cr_expect(eq(int, pliant_config_resolve(&cfg, &err), 0));
    strcpy(cfg.failure_labels, "past it");
    cr_expect(eq(int, pliant_config_resolve(&cfg, &err), -EINVAL));
    cr_expect(eq(str, err.field, KEY));
}

/* ---- the history ----------------------------------------------------------------------------- */

#define RULES                                                                                      \
    "cause=*out of memory* -> type=oom, owner=user; exit=137 -> type=killed; kind=node -> "        \
    "type=lost, owner=provider; kind=global, cause=*broke -> type=global; node=n1 -> pool=old;"    \
    "vertex=b -> stage=second"

#define FIXED_DELAY                                                                                \
    "restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.attempts", "100",        \
        "restart-strategy.fixed-delay.delay", "1 s"

static const struct pliant_vertex_spec chain[] = {{.id = "a", .parallelism = 2},
                                                  {.id = "b", .parallelism = 2}};
static const struct pliant_edge_spec pointwise = {0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED};

static struct world_spec spec_of(const char *rules)
{
    return (struct world_spec){.vertices = chain,
                               .n_vertices = 2,
                               .edges = &pointwise,
                               .n_edges = 1,
                               .options = {FIXED_DELAY, KEY, rules}};
}

static void fail_with(struct world *w, uint32_t vertex, uint32_t subtask, const char *cause,
                      uint8_t exit_code)
{
    struct pliant_task_info info;

    cr_assert(pliant_task_info(w->s, (pliant_vertex_id){vertex}, subtask, &info));
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                         .failure = {.task = {{vertex}, subtask, info.attempt},
                                                     .recoverable = true,
                                                     .cause = cause,
                                                     .exit_code = exit_code}});
}

static void expect_labels(const struct pliant_failure_item *item, const char *want)
{
    char found[256] = "";
    size_t at = 0;

    for (uint32_t i = 0; i < item->n_labels; i++)
        at += (size_t)snprintf(found + at, sizeof found - at, "%s%s=%s", i ? " " : "",
                               item->labels[i].key, item->labels[i].value);
    cr_expect(eq(str, found, (char *)want));
}

Test(labels, know_a_node_that_was_lost_while_it_drained) /* [P-FO-5] */
{
    struct world w = world_running(spec_of("kind=task -> type=task; kind=node -> type=node"), 2);

    world_drain(&w, "n1", 600000);
    world_lose(&w, "n1");
    world_to(&w, w.now_ms + 1000);
    cr_assert(
        eq(int, pliant_failure_at(w.s, 0)->items[0].reason, PLIANT_REASON_DRAINING_NODE_LOST));
    expect_labels(&pliant_failure_at(w.s, 0)->items[0], "type=node");
    world_free(&w);
}

Test(labels, are_in_the_history_of_what_failed_and_of_what_failed_with_it) /* [P-FO-5] */
{
    struct world w = world_running(spec_of(RULES), 1);
    const struct pliant_failure *entry;

    world_node(&w, "n2", 1);
    world_to(&w, w.now_ms + 600000);
    cr_assert(eq(u32, world_counts(&w).tasks_running, 4));
    w.cancels = false;
    fail_with(&w, 1, 0, "CUDA out of memory", 137);
    fail_with(&w, 2, 0, "it broke", 137);
    world_fail(&w, true);
    world_lose(&w, "n2");
    entry = world_action(&w, PLIANT_ACT_FAILURE, 0)->failure.entry;
    cr_assert(eq(ptr, (void *)entry, (void *)pliant_failure_at(w.s, 0)));
    cr_assert(eq(u32, entry->n, 5));
    cr_expect(eq(u32, entry->items[0].exit_code, 137));
    cr_expect(eq(u32, entry->items[2].exit_code, 0));
    expect_labels(&entry->items[0], "type=oom owner=user pool=old");
    expect_labels(&entry->items[1], "type=killed pool=old stage=second");
    expect_labels(&entry->items[2], "type=global");
    expect_labels(&entry->items[3], "type=lost owner=provider");
    expect_labels(&entry->items[4], "type=lost owner=provider stage=second");
    world_to(&w, w.now_ms + 10000); /* the world restores a snapshot before each step */
    expect_labels(&pliant_failure_at(w.s, 0)->items[1], "type=killed pool=old stage=second");
    world_free(&w);
}

Test(labels, are_on_what_ends_a_job_and_on_the_failures_behind_it) /* [P-FO-5, P-FO-6] */
{
    struct world_spec spec = spec_of(RULES);
    const struct pliant_failure *last;
    struct world w;

    spec.options[3] = "0"; /* restarts */
    spec.options[8] = "jobmanager.scheduler";
    spec.options[9] = "default";
    w = world_running(spec, 2);
    fail_with(&w, 2, 1, "CUDA out of memory", 0);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED));
    last = pliant_failure_at(w.s, 0);
    cr_assert(eq(u32, last->n, 2));
    expect_labels(&last->items[0], "type=oom owner=user");
    expect_labels(&last->items[1], "type=oom owner=user pool=old stage=second");
    world_free(&w);
}

Test(labels, look_at_the_cause_as_it_is_kept) /* [P-FO-5] */
{
    static char cause[2 * PLIANT_CAUSE_MAX];
    struct world w = world_running(spec_of("cause=*x -> end=x; cause=*y -> end=y"), 2);

    memset(cause, 'x', sizeof cause - 1);
    cause[sizeof cause - 2] = 'y';
    fail_with(&w, 1, 0, cause, 0);
    expect_labels(&pliant_failure_at(w.s, 0)->items[0], "end=x");
    world_free(&w);
}

/* Kinds of all actions and states on the way, but for FAILURE's labels. */
static uint64_t trail(const char *rules)
{
    struct world w = world_running(spec_of(rules), 2);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < 8; i++) {
        fail_with(&w, 1 + i % 2, i / 2 % 2, i % 3 ? "out of memory" : "it broke",
                  (uint8_t)(i * 30));
        for (size_t k = 0; k < w.n_actions; k++)
            sum = sum * 31 + w.actions[k].kind;
        world_to(&w, w.now_ms + 5000);
    }
    for (size_t k = 0; k < w.n_states; k++)
        sum = sum * 31 + w.states[k];
    world_free(&w);
    return sum;
}

Test(labels, decide_nothing) /* [P-FO-5] */
{
    cr_expect(eq(u64, trail("none"), trail(RULES)));
}

Test(labels, belong_to_a_snapshot_by_the_whole_of_their_rules)
{
    static const char first[] =
        "cause=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa*"
        " -> type=a";
    static const char second[] =
        "cause=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa*"
        " -> type=b";
    struct world a = world_running(spec_of(first), 2), b = world_new(spec_of(second));
    struct pliant_sched *s = NULL;
    struct pliant_error err;
    void *bytes;
    size_t n;

    cr_assert(eq(int, pliant_snapshot(a.s, &bytes, &n), 0));
    cr_expect(eq(int, pliant_restore(&b.cfg, a.job, bytes, n, &s, &err), -EINVAL));
    cr_expect(eq(int, pliant_restore(&a.cfg, a.job, bytes, n, &s, &err), 0));
    pliant_sched_destroy(&s);
    pliant_bytes_free(NULL, bytes);
    world_free(&a);
    world_free(&b);
}

/* ---- no memory ------------------------------------------------------------------------------- */

Test(labels, leave_nothing_behind_whichever_allocation_fails)
{
    static struct label_rules rules;
    char why[LABEL_WHY_MAX];
    bool done = false;

    cr_assert(label_rules_parse("kind=global -> a=b, c=d", &rules, why));
    for (size_t k = 1; !done; k++) {
        FAILING_ALLOC(hook, k);
        struct failures f;
        const struct pliant_failure *entry;
        int error;

        failures_init(&f, &hook.hook, 2);
        f.rules = &rules;
        error = failures_add(&f, &(struct pliant_failure_item){.at_ms = 1, .cause = "c"});
        cr_expect(eq(int, failures_empty(&f), error < 0));
        if (error == 0)
            error = failures_add_first(
                &f, &(struct pliant_failure_item){
                        .at_ms = 2, .labels = f.present.items.v[0].labels, .n_labels = 2});
        if (error == 0)
            error = failures_archive(&f, &entry);
        done = error == 0;
        if (done)
            expect_labels(&entry->items[1], "a=b c=d");
        failures_free(&f);
        cr_expect(eq(sz, hook.live, 0), "at allocation %zu", k);
    }
}

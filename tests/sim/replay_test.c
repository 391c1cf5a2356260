/* replay_test.c - what a run wrote down comes out the same again, whole or cut */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/recorder.h"
#include "sim/replay.h"
#include "sim/sim.h"
#include "spec/case.h"

/* Takes a snapshot after so many steps. */
struct snapper {
    struct sim_observer observer;
    size_t after, steps;
    void *bytes;
    size_t size;
};

static int snap(struct sim_observer *o, const struct sim_step *step)
{
    struct snapper *s = (struct snapper *)o;

    return ++s->steps == s->after ? pliant_snapshot(step->sched, &s->bytes, &s->size) : 0;
}

static int snap_end(struct sim_observer *o, int64_t end_ms, const struct pliant_sched *sched)
{
    (void)o, (void)end_ms, (void)sched;
    return 0;
}

static char *nth_line(char *text, size_t n)
{
    while (n-- > 0)
        text = strchr(text, '\n') + 1;
    return text;
}

/* Another header, and the steps after the snapshot. Frees `text`. */
static char *begin_with_snapshot(char *text, const struct case_file *c,
                                 const struct pliant_config *cfg, struct snapper *s,
                                 size_t *ret_size)
{
    size_t n;
    struct json header;
    char *rest, *both;

    json_init(&header, NULL);
    recording_write_header(&header, c->job.job, cfg, s->bytes, s->size);
    rest = nth_line(text, 1 + s->after);
    n = strlen(rest);
    both = malloc(header.n + n + 1);
    memcpy(both, header.v, header.n);
    memcpy(both + header.n, rest, n + 1);
    *ret_size = header.n + n;
    json_free(&header);
    pliant_bytes_free(NULL, s->bytes);
    free(text);
    return both;
}

/* The recording of a case's run, without the steps before a snapshot, if there is one. The caller
 * frees it. */
static char *record_from(const char *path, struct snapper *snapper, size_t *ret_size)
{
    struct spec_error err = {.text = ""};
    struct case_file c;
    struct options options = {0};
    struct pliant_config cfg;
    struct sim_observer *observers[2];
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_size);

    cr_assert_eq(case_read(path, &c, &err), 0, "%s", err.text);
    cr_assert_eq(options_add(&options, OPTIONS_JOB, &c.doc, c.job.config, &err), 0);
    cr_assert_eq(options_resolve(&options, &cfg, &err), 0);
    cfg.checkpoint_periodic = false;
    cr_assert_eq(recorder_new(out, c.job.job, &cfg, &observers[0]), 0);
    if (snapper)
        observers[1] = &snapper->observer;
    cr_assert_eq(sim_run(&(struct sim_setup){.cfg = &cfg,
                                             .job = &c.job,
                                             .trace = c.trace,
                                             .until_ms = c.until_ms,
                                             .observers = observers,
                                             .n_observers = snapper ? 2 : 1},
                         &err),
                 0);
    recorder_destroy(&observers[0]);
    fclose(out);
    if (snapper)
        text = begin_with_snapshot(text, &c, &cfg, snapper, ret_size);
    options_free(&options);
    case_free(&c);
    return text;
}

static char *record(const char *path, size_t *ret_size)
{
    return record_from(path, NULL, ret_size);
}

static int replay_text(const char *text, size_t size, struct replay_result *ret,
                       struct spec_error *err)
{
    struct recording *rec = NULL;
    int r = recording_of_text("run.jsonl", text, size, &rec, err);

    *ret = (struct replay_result){.steps = 0};
    if (!r)
        r = replay(rec, ret, err);
    recording_close(&rec);
    return r;
}

static size_t lines_in(const char *text, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < size; i++)
        n += text[i] == '\n';
    return n;
}

static const char *const cases[] = {
    PLIANT_TEST_DATA "/cases/000-seed-8-2.json",
    PLIANT_TEST_DATA "/cases/012-same-sum-rescale.json",
    PLIANT_TEST_DATA "/cases/043-drain-one-restart.json",
    PLIANT_TEST_DATA "/cases/051-no-rescale-while-stopping.json",
    PLIANT_TEST_DATA "/cases/061-unrecoverable.json",
};

#define N_CASES (sizeof cases / sizeof *cases)

Test(replay, every_prefix_of_a_recording_comes_out_the_same)
{
    for (size_t i = 0; i < N_CASES; i++) {
        struct replay_result result;
        struct spec_error err;
        size_t size, n = 0;
        char *text = record(cases[i], &size);

        for (const char *line = text; line < text + size; n++) {
            const char *end = memchr(line, '\n', (size_t)(text + size - line));

            cr_assert_not_null(end);
            line = end + 1;
            cr_assert_eq(replay_text(text, (size_t)(line - text), &result, &err), 0, "%s: %s",
                         cases[i], err.text);
            cr_expect(result.same, "%s:%u\n%s\n%s", cases[i], result.line, result.recorded,
                      result.replayed);
            cr_expect_eq(result.steps, n, "%s", cases[i]);
            replay_free(&result);
        }
        free(text);
    }
}

Test(replay, two_runs_write_the_same_bytes)
{
    for (size_t i = 0; i < N_CASES; i++) {
        size_t size, size_again;
        char *text = record(cases[i], &size), *again = record(cases[i], &size_again);

        cr_assert_eq(size, size_again);
        cr_expect_eq(memcmp(text, again, size), 0, "%s", cases[i]);
        free(text);
        free(again);
    }
}

Test(replay, shows_the_first_difference_with_its_line)
{
    struct replay_result result;
    struct spec_error err;
    size_t size, line;
    char *text = record(cases[0], &size), *place;

    place = strstr(text, "\"attempt\":2");
    cr_assert_not_null(place);
    place[strlen("\"attempt\":")] = '3';
    line = 1 + lines_in(text, (size_t)(place - text));
    cr_assert_eq(replay_text(text, size, &result, &err), 0, "%s", err.text);
    cr_expect_not(result.same);
    cr_expect_eq(result.line, line);
    cr_expect_eq(result.steps, line - 2);
    cr_assert_not_null(result.recorded);
    cr_expect_not_null(strstr(result.recorded, "\"attempt\":3"));
    cr_expect_null(strstr(result.replayed, "\"attempt\":3"));
    replay_free(&result);
    free(text);
}

Test(replay, refuses_what_is_damaged_and_says_where)
{
    struct replay_result result;
    struct spec_error err;
    size_t size;
    char *text = record(cases[0], &size);

    cr_expect_eq(replay_text(text, size - 5, &result, &err), -EINVAL, "cut within a line");
    cr_expect_not_null(strstr(err.text, "run.jsonl:"), "%s", err.text);
    cr_expect_eq(replay_text("{}\n", 3, &result, &err), -EINVAL);
    cr_expect_eq(replay_text("", 0, &result, &err), -EINVAL);
    free(text);
}

Test(replay, begins_in_the_middle_with_a_snapshot)
{
    static const size_t after[] = {1, 2, 7, 20, 33};

    for (size_t i = 0; i < N_CASES * 5; i++) {
        struct snapper snapper = {.observer = {snap, snap_end}, .after = after[i % 5]};
        const char *path = cases[i / 5];
        struct replay_result result;
        struct spec_error err;
        size_t size, steps;
        char *whole = record(path, &size), *text;

        steps = lines_in(whole, size) - 1;
        free(whole);
        if (steps < snapper.after)
            continue;
        text = record_from(path, &snapper, &size);
        cr_assert_eq(replay_text(text, size, &result, &err), 0, "%s: %s", path, err.text);
        cr_expect(result.same, "%s:%u\n%s\n%s", path, result.line, result.recorded,
                  result.replayed);
        cr_expect_eq(result.steps, steps - snapper.after, "%s", path);
        replay_free(&result);
        free(text);
    }
}

Test(replay, refuses_a_snapshot_that_is_damaged)
{
    struct snapper snapper = {.observer = {snap, snap_end}, .after = 9};
    struct replay_result result;
    struct spec_error err;
    size_t size;
    char *text = record_from(cases[0], &snapper, &size);
    char *digits = strstr(text, "\"snapshot\":\"") + strlen("\"snapshot\":\"");

    digits[100] = digits[100] == '0' ? '1' : '0';
    cr_expect_eq(replay_text(text, size, &result, &err), -EINVAL);
    cr_expect_not_null(strstr(err.text, "run.jsonl:1: "), "%s", err.text);
    digits[100] = 'x';
    cr_expect_eq(replay_text(text, size, &result, &err), -EINVAL);
    cr_expect_not_null(strstr(err.text, "run.jsonl:1: snapshot: accepted: "), "%s", err.text);
    free(text);
}

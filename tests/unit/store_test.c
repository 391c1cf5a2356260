/* store_test.c - what comes out of the store is what went in, and what it refuses [store.h] */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define JOB_A "0123456789abcdef0123456789abcdef"
#define JOB_B "fedcba9876543210fedcba9876543210"

/* ---- a store in a directory of its own ------------------------------------------------------- */

static char dir[64];
static struct store *store;
static struct store_options options;
static struct spec_error err;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    return remove(path);
}

static void begin(void)
{
    strcpy(dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/pliant-store-XXXXXX" /* cheap syncs */
                                              : "/tmp/pliant-store-XXXXXX");
    cr_assert(mkdtemp(dir) != NULL);
    options = (struct store_options){.journal_max = 100};
    store = NULL;
}

static void end(void)
{
    store_close(&store);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int try_open(void)
{
    err.text[0] = '\0';
    return store_open(dir, &options, &store, &err);
}

static void open_store(void)
{
    cr_assert(eq(int, try_open(), 0), "%s", err.text);
}

static void commit(void)
{
    cr_assert(eq(int, store_commit(store, &err), 0), "%s", err.text);
}

static void open_again(void)
{
    store_close(&store);
    cr_assert(store == NULL);
    open_store();
}

static void put_job(const char *id, const char *name, int64_t order)
{
    struct store_job job = {.name = name,
                            .spec = "{\"name\":\"x\"}",
                            .options = "{}",
                            .submitted_unix_ms = 1700000000000,
                            .order = order};

    strcpy(job.id, id);
    cr_assert(eq(int, store_job_put(store, &job), 0));
}

static int put_step(const char *job, uint64_t n)
{
    char event[64], actions[64];
    int event_size = snprintf(event, sizeof event, "{\"ev\":\"tick\",\"n\":%" PRIu64 "}", n);
    int actions_size = snprintf(actions, sizeof actions, "[%" PRIu64 "]", n);

    return store_step_put(store, job,
                          &(struct store_step){.n = n,
                                               .at_ms = (int64_t)n * 10,
                                               .event = event,
                                               .actions = actions,
                                               .event_size = (size_t)event_size,
                                               .actions_size = (size_t)actions_size});
}

static void put_steps(const char *job, uint64_t first, uint64_t last)
{
    for (uint64_t n = first; n <= last; n++)
        cr_assert(eq(int, put_step(job, n), 0), "step %" PRIu64, n);
}

/* ---- looking at it from outside -------------------------------------------------------------- */

static void sql(const char *text)
{
    sqlite3 *db;

    cr_assert(eq(int, sqlite3_open(path_of("pliant.db"), &db), SQLITE_OK));
    cr_assert(eq(int, sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK), "%s",
              sqlite3_errmsg(db));
    sqlite3_close(db);
}

static int64_t number(const char *text)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    int64_t n;

    cr_assert(eq(int, sqlite3_open(path_of("pliant.db"), &db), SQLITE_OK));
    cr_assert(eq(int, sqlite3_prepare_v2(db, text, -1, &q, NULL), SQLITE_OK));
    cr_assert(eq(int, sqlite3_step(q), SQLITE_ROW));
    n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

TestSuite(store, .init = begin, .fini = end);

static char seen[4096];

static int see_job(void *ctx, const struct store_job *job)
{
    size_t n = strlen(seen);

    (void)ctx;
    snprintf(seen + n, sizeof seen - n, "%.4s %s %s %s %s %" PRId64 " %" PRId64 " %" PRId64 " %s\n",
             job->id, job->name, job->spec, job->file ? job->file : "-", job->options,
             job->submitted_unix_ms, job->order, job->ended_unix_ms, job->final ? job->final : "-");
    return 0;
}

static const char *jobs(void)
{
    seen[0] = '\0';
    cr_assert(eq(int, store_jobs(store, see_job, NULL, &err), 0), "%s", err.text);
    return seen;
}

Test(store, gives_jobs_back_in_order_of_submission)
{
    struct store_job job = {.id = JOB_B,
                            .name = "b",
                            .spec = "spec: \"\xc3\xa9\"\n",
                            .file = "b.yaml",
                            .options = "{\"a\":\"b\"}",
                            .submitted_unix_ms = 5,
                            .order = 1};

    open_store();
    put_job(JOB_A, "a", 2);
    cr_assert(eq(int, store_job_put(store, &job), 0));
    commit();
    open_again();
    cr_assert(eq(str, (char *)jobs(),
                 "fedc b spec: \"\xc3\xa9\"\n b.yaml {\"a\":\"b\"} 5 1 0 -\n"
                 "0123 a {\"name\":\"x\"} - {} 1700000000000 2 0 -\n"));
}

Test(store, sees_what_was_put_before_it_is_committed)
{
    struct store_job job;

    open_store();
    put_job(JOB_A, "a", 1);
    cr_assert(eq(int, store_job_get(store, JOB_A, &job), 0));
    cr_assert(eq(str, (char *)job.name, "a"));
    cr_assert(job.file == NULL && job.final == NULL);
    cr_assert(eq(int, store_job_get(store, JOB_B, &job), -ENOENT));
    store_close(&store);
    open_store();
    cr_assert(eq(int, store_job_get(store, JOB_A, &job), -ENOENT), "never committed");
}

Test(store, changes_ends_and_deletes_jobs)
{
    struct store_job job;
    const char *text;

    open_store();
    put_job(JOB_A, "a", 1);
    commit();
    put_job(JOB_A, "renamed", 7);
    cr_assert(eq(int, store_job_end(store, JOB_A, 99, "{\"job_status\":\"FINISHED\"}"), 0));
    commit();
    open_again();
    cr_assert(eq(int, store_job_get(store, JOB_A, &job), 0));
    cr_assert(eq(str, (char *)job.name, "renamed"));
    cr_assert(eq(str, (char *)job.final, "{\"job_status\":\"FINISHED\"}"));
    cr_assert(eq(i64, job.ended_unix_ms, 99));
    cr_assert(eq(i64, job.order, 7));

    cr_assert(eq(int, store_note_put(store, JOB_A, "k", "v"), 0));
    cr_assert(eq(int, store_job_delete(store, JOB_A), 0));
    cr_assert(eq(int, store_job_end(store, JOB_A, 1, "{}"), -ENOENT));
    cr_assert(eq(int, store_note_get(store, JOB_A, "k", &text), -ENOENT));
    commit();
    open_again();
    cr_assert(eq(str, (char *)jobs(), ""));
    put_job(JOB_A, "again", 1);
    cr_assert(eq(int, store_note_get(store, JOB_A, "k", &text), -ENOENT), "of its former life");
}

static int stop_at_once(void *ctx, const struct store_job *job)
{
    (void)job;
    ++*(int *)ctx;
    return -ECANCELED;
}

Test(store, ends_a_walk_when_told_to)
{
    int n = 0;

    open_store();
    put_job(JOB_A, "a", 1);
    put_job(JOB_B, "b", 2);
    cr_assert(eq(int, store_jobs(store, stop_at_once, &n, &err), -ECANCELED));
    cr_assert(eq(int, n, 1));
}

/* ---- epoch, commits -------------------------------------------------------------------------- */

Test(store, raises_the_epoch_at_each_start)
{
    uint64_t epoch;

    for (uint64_t i = 1; i <= 3; i++) {
        open_store();
        cr_assert(eq(int, store_next_epoch(store, &epoch, &err), 0));
        cr_assert(eq(u64, epoch, i));
        store_close(&store);
    }
}

Test(store, commits_nothing_when_nothing_was_put)
{
    open_store();
    commit();
    cr_assert(eq(u64, store_commits(store), 0));
    put_job(JOB_A, "a", 1);
    put_steps(JOB_A, 1, 10);
    commit();
    commit();
    cr_assert(eq(u64, store_commits(store), 1));
}

/* ---- journal --------------------------------------------------------------------------------- */

struct range {
    uint64_t first, last;
};

static int see_step(void *ctx, const struct store_step *step)
{
    struct range *range = ctx;
    char event[64], actions[64];

    cr_assert(range->last == 0 || step->n == range->last + 1);
    snprintf(event, sizeof event, "{\"ev\":\"tick\",\"n\":%" PRIu64 "}", step->n);
    snprintf(actions, sizeof actions, "[%" PRIu64 "]", step->n);
    cr_assert(eq(i64, step->at_ms, (int64_t)step->n * 10));
    cr_assert(eq(sz, step->event_size, strlen(event)));
    cr_assert(eq(sz, step->actions_size, strlen(actions)));
    cr_assert(eq(str, (char *)step->event, event));
    cr_assert(eq(str, (char *)step->actions, actions));
    if (!range->first)
        range->first = step->n;
    range->last = step->n;
    return 0;
}

static struct range steps(const char *job, uint64_t after)
{
    struct range range = {0};

    cr_assert(eq(int, store_steps(store, job, after, see_step, &range, &err), 0), "%s", err.text);
    return range;
}

static void expect_steps(const char *job, uint64_t after, uint64_t first, uint64_t last)
{
    struct range range = steps(job, after);

    cr_assert(range.first == first && range.last == last,
              "after %" PRIu64 ": %" PRIu64 "..%" PRIu64 ", wanted %" PRIu64 "..%" PRIu64, after,
              range.first, range.last, first, last);
}

Test(store, keeps_the_steps_of_jobs_apart)
{
    open_store();
    put_job(JOB_A, "a", 1);
    put_job(JOB_B, "b", 2);
    for (uint64_t n = 1; n <= 20; n++) {
        put_steps(JOB_A, n, n);
        if (n <= 15)
            put_steps(JOB_B, n, n);
        commit();
    }
    open_again();
    expect_steps(JOB_A, 0, 1, 20);
    expect_steps(JOB_B, 0, 1, 15);
    expect_steps(JOB_A, 12, 13, 20);
    expect_steps(JOB_A, 20, 0, 0);
    expect_steps(JOB_A, UINT64_MAX, 0, 0);
    put_steps(JOB_B, 16, 16);
    expect_steps(JOB_B, 14, 15, 16);
}

Test(store, takes_no_step_twice_and_leaves_none_out)
{
    open_store();
    cr_assert(eq(int, put_step(JOB_A, 1), -ENOENT));
    put_job(JOB_A, "a", 1);
    cr_assert(eq(int, put_step(JOB_A, 2), -EINVAL));
    cr_assert(eq(int, put_step(JOB_A, 0), -EINVAL));
    put_steps(JOB_A, 1, 2);
    cr_assert(eq(int, put_step(JOB_A, 2), -EINVAL));
    commit();
    open_again();
    cr_assert(eq(int, put_step(JOB_A, 2), -EINVAL));
    cr_assert(eq(int, put_step(JOB_A, 4), -EINVAL));
    put_steps(JOB_A, 3, 3);
}

static uint64_t snapshot(const char *job, const char *want)
{
    const void *bytes;
    uint64_t n;
    size_t size;

    cr_assert(eq(int, store_snapshot_get(store, job, &n, &bytes, &size), 0));
    cr_assert(eq(sz, size, strlen(want)));
    cr_assert(size == 0 || memcmp(bytes, want, size) == 0);
    return n;
}

static uint64_t first_snapshot(const char *job)
{
    const void *bytes;
    uint64_t n;
    size_t size;

    cr_assert(eq(int, store_snapshot_first(store, job, &n, &bytes, &size), 0));
    return n;
}

static void put_snapshot(const char *job, uint64_t n)
{
    char bytes[32];

    snprintf(bytes, sizeof bytes, "after %" PRIu64, n);
    cr_assert(eq(int, store_snapshot_put(store, job, n, bytes, strlen(bytes)), 0));
}

Test(store, gives_the_last_snapshot_and_the_steps_after_it)
{
    open_store();
    put_job(JOB_A, "a", 1);
    cr_assert(eq(u64, snapshot(JOB_A, ""), 0));
    put_steps(JOB_A, 1, 50);
    put_snapshot(JOB_A, 30);
    put_snapshot(JOB_A, 50);
    put_steps(JOB_A, 51, 60);
    commit();
    open_again();
    cr_assert(eq(u64, snapshot(JOB_A, "after 50"), 50));
    expect_steps(JOB_A, 50, 51, 60);
    cr_assert(eq(u64, first_snapshot(JOB_A), 0), "the start is within reach");
    expect_steps(JOB_A, 0, 1, 60);
    cr_assert(eq(int, store_snapshot_put(store, JOB_A, 61, "", 0), -EINVAL), "no such step yet");
    cr_assert(eq(int, store_snapshot_put(store, JOB_A, 40, "", 0), -EINVAL), "time goes back");
    cr_assert(eq(int, store_snapshot_put(store, JOB_A, 50, "other", 5), 0));
    cr_assert(eq(u64, snapshot(JOB_A, "other"), 50));
}

Test(store, keeps_no_more_of_the_journal_than_it_may)
{
    static const int64_t bounds[] = {0, 1, 99, 100, 250};

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        uint64_t max = (uint64_t)bounds[i], first;
        int64_t kept;

        options.journal_max = bounds[i];
        open_store();
        put_job(JOB_A, "a", 1);
        for (uint64_t n = 1; n <= 2000; n++) {
            put_steps(JOB_A, n, n);
            if (n % 10 == 0)
                put_snapshot(JOB_A, n);
            commit();
            if (n % 500 == 0)
                open_again();
        }
        first = first_snapshot(JOB_A);
        cr_assert(first <= 2000 && 2000 - first <= max, "%" PRIu64 " at a bound of %" PRIu64, first,
                  max);
        cr_assert(2000 - first >= max / 2, "%" PRIu64 " at a bound of %" PRIu64, first, max);
        cr_assert(eq(u64, snapshot(JOB_A, "after 2000"), 2000));
        expect_steps(JOB_A, first, first == 2000 ? 0 : first + 1, first == 2000 ? 0 : 2000);
        expect_steps(JOB_A, 0, first == 2000 ? 0 : first + 1, first == 2000 ? 0 : 2000);
        put_steps(JOB_A, 2001, 2001);
        commit();
        store_close(&store);
        kept = number("SELECT count(*) FROM step");
        cr_assert(kept <= bounds[i] + 1, "%" PRId64 " at a bound of %" PRId64, kept, bounds[i]);
        cr_assert(le(i64, number("SELECT count(*) FROM snapshot"), 6));
        sql("DELETE FROM step; DELETE FROM snapshot; DELETE FROM job");
    }
}

Test(store, does_not_give_a_journal_with_a_hole)
{
    struct range range = {0};

    open_store();
    put_job(JOB_A, "a", 1);
    put_steps(JOB_A, 1, 3000);
    commit();
    for (int again = 0; again < 2; again++) {
        if (again)
            open_again(); /* most of what goes is still there */
        else
            put_snapshot(JOB_A, 3000);
        cr_assert(eq(int, store_steps(store, JOB_A, 5, see_step, &range, &err), -ENOENT));
        cr_assert(strstr(err.text, "6 to 3000") != NULL, "%s", err.text);
        expect_steps(JOB_A, 0, 0, 0);
        expect_steps(JOB_A, 3000, 0, 0);
        commit();
    }
    cr_assert(eq(int, store_steps(store, JOB_B, 0, see_step, &range, &err), -ENOENT));
    cr_assert(strstr(err.text, JOB_B) != NULL, "%s", err.text);
}

Test(store, deletes_a_long_journal_bit_by_bit_also_over_a_restart)
{
    int64_t left, before = 5000;

    open_store();
    put_job(JOB_A, "a", 1);
    put_job(JOB_B, "b", 1);
    put_steps(JOB_A, 1, 5000);
    commit();
    cr_assert(eq(int, store_job_delete(store, JOB_A), 0));
    for (uint64_t n = 1; n <= 40; n++) {
        put_steps(JOB_B, n, n);
        commit();
        if (n % 4)
            continue;
        store_close(&store);
        left = number("SELECT count(*) FROM step") - (int64_t)n;
        cr_assert(left == 0 || left < before, "nothing went");
        cr_assert(left >= before - 4 * 300, "%" PRId64 " at once", before - left);
        before = left;
        open_store();
        put_job(JOB_A, "a", 1);
        expect_steps(JOB_A, 0, 0, 0);
        cr_assert(eq(int, store_job_delete(store, JOB_A), 0));
    }
    cr_assert(eq(i64, before, 0));
    expect_steps(JOB_B, 0, 1, 40);
}

Test(store, takes_texts_and_bytes_of_any_size)
{
    static const size_t sizes[] = {0, 1, 7, 8, 4096, 70000, 5000000};
    const void *got;
    uint64_t n;
    size_t size;

    open_store();
    put_job(JOB_A, "a", 1);
    for (uint64_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *bytes = malloc(sizes[i] + 1);

        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (unsigned char)(k * 7);
        put_steps(JOB_A, i + 1, i + 1);
        cr_assert(eq(int, store_snapshot_put(store, JOB_A, i + 1, bytes, sizes[i]), 0));
        commit();
        cr_assert(eq(int, store_snapshot_get(store, JOB_A, &n, &got, &size), 0));
        cr_assert(n == i + 1 && size == sizes[i] && memcmp(got, bytes, size) == 0);
        free(bytes);
    }
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int see_node(void *ctx, const struct store_node *node)
{
    size_t n = strlen(seen);

    (void)ctx;
    snprintf(seen + n, sizeof seen - n, "%s %" PRIu64 " %s\n", node->name, node->incarnation,
             node->about);
    return 0;
}

static int see_slot(void *ctx, const struct store_slot *slot)
{
    size_t n = strlen(seen);

    (void)ctx;
    snprintf(seen + n, sizeof seen - n, "%s/%u %.4s %u\n", slot->node, slot->slot, slot->job,
             slot->index);
    return 0;
}

Test(store, keeps_nodes_and_their_slots)
{
    open_store();
    put_job(JOB_A, "a", 1);
    put_job(JOB_B, "b", 2);
    cr_assert(eq(int, store_node_put(store, &(struct store_node){"n2", UINT64_MAX, "{}"}), 0));
    cr_assert(eq(int, store_node_put(store, &(struct store_node){"n1", 1, "{\"slots\":2}"}), 0));
    cr_assert(eq(int, store_node_put(store, &(struct store_node){"n1", 2, "{\"slots\":4}"}), 0));
    cr_assert(eq(int, store_slot_put(store, &(struct store_slot){"n1", 1, JOB_A, 7}), 0));
    cr_assert(eq(int, store_slot_put(store, &(struct store_slot){"n1", 0, JOB_A, 8}), 0));
    cr_assert(eq(int, store_slot_put(store, &(struct store_slot){"n1", 1, JOB_B, 9}), 0));
    cr_assert(eq(int, store_slot_put(store, &(struct store_slot){"n2", 0, JOB_A, 1}), 0));
    cr_assert(eq(int, store_slot_put(store, &(struct store_slot){"n2", 0, NULL, 0}), 0));
    cr_assert(eq(int, store_slot_put(store, &(struct store_slot){"n2", 1, "no such", 0}), -ENOENT));
    commit();
    open_again();
    seen[0] = '\0';
    cr_assert(eq(int, store_nodes(store, see_node, NULL, &err), 0));
    cr_assert(eq(int, store_slots(store, see_slot, NULL, &err), 0));
    cr_assert(eq(str, seen,
                 "n1 2 {\"slots\":4}\nn2 18446744073709551615 {}\n"
                 "n1/0 0123 8\nn1/1 fedc 9\n"));
    cr_assert(eq(int, store_node_delete(store, "n1"), 0));
    cr_assert(eq(int, store_job_delete(store, JOB_A), 0));
    seen[0] = '\0';
    cr_assert(eq(int, store_nodes(store, see_node, NULL, &err), 0));
    cr_assert(eq(int, store_slots(store, see_slot, NULL, &err), 0));
    cr_assert(eq(str, seen, "n2 18446744073709551615 {}\nn1/1 fedc 9\n"));
}

static int see_checkpoint(void *ctx, const struct store_checkpoint *c)
{
    size_t n = strlen(seen);

    ++*(int *)ctx;
    if (n < sizeof seen - 200)
        snprintf(seen + n, sizeof seen - n, "%" PRIu64 " %d %s %s %s %" PRIu64 "\n", c->id,
                 c->savepoint, c->status, c->path ? c->path : "-", c->cause ? c->cause : "-",
                 c->bytes);
    return 0;
}

static int checkpoints(void)
{
    int n = 0;

    seen[0] = '\0';
    cr_assert(eq(int, store_checkpoints(store, JOB_A, see_checkpoint, &n, &err), 0));
    return n;
}

Test(store, keeps_checkpoints_newest_first)
{
    open_store();
    put_job(JOB_A, "a", 1);
    store_checkpoint_put(
        store, &(struct store_checkpoint){.job = JOB_A, .id = UINT64_MAX, .status = "pending"});
    store_checkpoint_put(store, &(struct store_checkpoint){.job = JOB_A,
                                                           .id = 1,
                                                           .savepoint = true,
                                                           .status = "completed",
                                                           .path = "/s",
                                                           .bytes = 77});
    store_checkpoint_put(
        store, &(struct store_checkpoint){
                   .job = JOB_A, .id = UINT64_MAX, .status = "failed", .cause = "task lost"});
    commit();
    open_again();
    cr_assert(eq(int, checkpoints(), 2));
    cr_assert(eq(str, seen,
                 "1 1 completed /s - 77\n"
                 "18446744073709551615 0 failed - task lost 0\n"));
}

Test(store, forgets_old_checkpoints_that_are_no_more)
{
    struct store_checkpoint c = {.job = JOB_A, .status = "completed", .path = "/c"};

    open_store();
    put_job(JOB_A, "a", 1);
    for (c.id = 1; c.id <= 3; c.id++)
        store_checkpoint_put(store, &c);
    c.status = "subsumed";
    for (; c.id <= 5000; c.id++)
        store_checkpoint_put(store, &c);
    commit();
    cr_assert(le(int, checkpoints(), 1003 + 64));
    cr_assert(ge(int, checkpoints(), 1003));
    open_again();
    seen[0] = '\0';
    cr_assert(ge(int, checkpoints(), 1003));
}

Test(store, keeps_notes_of_jobs_and_of_the_daemon)
{
    const char *text;

    open_store();
    put_job(JOB_A, "a", 1);
    cr_assert(eq(int, store_note_put(store, JOB_A, "k", "of the job"), 0));
    cr_assert(eq(int, store_note_put(store, "", "k", "of the daemon"), 0));
    cr_assert(eq(int, store_note_put(store, JOB_B, "k", "of nobody"), -ENOENT));
    commit();
    open_again();
    cr_assert(eq(int, store_note_get(store, JOB_A, "k", &text), 0));
    cr_assert(eq(str, (char *)text, "of the job"));
    cr_assert(eq(int, store_note_get(store, "", "k", &text), 0));
    cr_assert(eq(str, (char *)text, "of the daemon"));
    cr_assert(eq(int, store_note_get(store, JOB_A, "other", &text), -ENOENT));
    cr_assert(eq(int, store_note_put(store, "", "k", NULL), 0));
    cr_assert(eq(int, store_note_get(store, "", "k", &text), -ENOENT));
}

/* ---- what is refused ------------------------------------------------------------------------- */

Test(store, is_for_one_at_a_time_and_names_who_has_it)
{
    struct store *second = NULL;
    char pid[32];

    open_store();
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    cr_assert(eq(int, store_open(dir, &options, &second, &err), -EBUSY));
    cr_assert(second == NULL);
    cr_assert(strstr(err.text, pid) != NULL, "%s", err.text);
    cr_assert(strstr(err.text, dir) != NULL, "%s", err.text);
    store_close(&store);
    open_store();
}

Test(store, is_free_again_when_its_daemon_was_killed)
{
    int ready[2], status;
    char byte;
    pid_t pid;

    cr_assert(eq(int, pipe(ready), 0));
    pid = fork();
    if (pid == 0) {
        open_store();
        put_job(JOB_A, "a", 1);
        commit();
        put_job(JOB_B, "b", 2);
        store_next_epoch(store, &(uint64_t){0}, &err);
        put_steps(JOB_A, 1, 3);
        _exit(write(ready[1], "x", 1) == 1 ? (pause(), 0) : 1);
    }
    cr_assert(eq(int, (int)read(ready[0], &byte, 1), 1));
    cr_assert(eq(int, try_open(), -EBUSY));
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    open_store();
    jobs();
    cr_assert(strstr(seen, "0123 a") && strstr(seen, "fedc b"));
    expect_steps(JOB_A, 0, 0, 0);
}

Test(store, makes_its_directory_and_files_for_its_owner_alone)
{
    static const char *const files[] = {"pliant.db", "pliant.db-wal", "lock"};
    struct stat st;
    mode_t mask = umask(0);

    strcat(dir, "/state");
    open_store();
    put_job(JOB_A, "a", 1);
    commit();
    umask(mask);
    cr_assert(eq(int, stat(dir, &st), 0));
    cr_assert(eq(uint, st.st_mode & 0777, 0700));
    for (size_t i = 0; i < 3; i++) {
        cr_assert(eq(int, stat(path_of(files[i]), &st), 0), "%s", files[i]);
        cr_assert(eq(uint, st.st_mode & 0777, 0600), "%s", files[i]);
    }
    store_close(&store);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    *strrchr(dir, '/') = '\0';
}

Test(store, refuses_a_file_that_others_can_read)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0666};

    open_store();
    store_close(&store);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        cr_assert(eq(int, chmod(path_of("pliant.db"), modes[i]), 0));
        cr_assert(eq(int, try_open(), -EACCES));
        cr_assert(strstr(err.text, "make it 600") != NULL, "%s", err.text);
    }
    chmod(path_of("pliant.db"), 0600);
    open_store();
}

Test(store, refuses_a_newer_version_and_leaves_it_as_it_is)
{
    open_store();
    store_close(&store);
    sql("PRAGMA user_version = 2; CREATE TABLE later (x)");
    cr_assert(eq(int, try_open(), -ENOTSUP));
    cr_assert(strstr(err.text, "version 2") != NULL, "%s", err.text);
    cr_assert(eq(i64, number("PRAGMA user_version"), 2));
    cr_assert(eq(i64, number("SELECT count(*) FROM sqlite_schema WHERE name = 'later'"), 1));
}

Test(store, refuses_the_database_of_another_program)
{
    sql("CREATE TABLE bookmarks (url)");
    chmod(path_of("pliant.db"), 0600);
    cr_assert(eq(int, try_open(), -EINVAL));
    cr_assert(strstr(err.text, "another program") != NULL, "%s", err.text);
}

Test(store, says_what_is_wrong_with_a_directory)
{
    FILE *f;

    strcat(dir, "/a/b");
    cr_assert(eq(int, try_open(), -ENOENT));
    cr_assert(strstr(err.text, dir) != NULL, "%s", err.text);
    *strrchr(dir, '/') = '\0';
    f = fopen(dir, "w");
    fclose(f);
    cr_assert(eq(int, try_open(), -ENOTDIR));
    *strrchr(dir, '/') = '\0';
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void fill(void)
{
    open_store();
    put_job(JOB_A, "a", 1);
    put_steps(JOB_A, 1, 3000);
    commit();
    store_close(&store);
}

static void overwrite(long at, size_t n)
{
    FILE *f = fopen(path_of("pliant.db"), "r+");

    cr_assert(f != NULL);
    fseek(f, at, SEEK_SET);
    for (size_t i = 0; i < n; i++)
        fputc((int)(i * 37 + 11) & 0xff, f);
    fclose(f);
}

static char *contents(size_t *ret_size)
{
    FILE *f = fopen(path_of("pliant.db"), "r");
    char *text = malloc(16 << 20);

    *ret_size = fread(text, 1, 16 << 20, f);
    fclose(f);
    return text;
}

Test(store, says_that_a_file_is_damaged_and_leaves_it_as_it_is)
{
    static const struct {
        const char *what;
        long at, size; /* size 0: cut there */
    } damages[] = {
        {"garbage in the middle", 81920, 40960},
        {"a garbage header", 0, 100},
        {"garbage in the schema", 100, 2000},
        {"cut in the middle", 122880, 0},
        {"cut in a page", 10000, 0},
        {"one page of garbage", 45056, 4096},
    };

    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        size_t size, size_after;
        char *before, *after;
        int r;

        fill();
        if (damages[i].size)
            overwrite(damages[i].at, (size_t)damages[i].size);
        else
            cr_assert(eq(int, truncate(path_of("pliant.db"), damages[i].at), 0));
        before = contents(&size);
        r = try_open();
        after = contents(&size_after);
        cr_assert(r == -EUCLEAN, "%s: %d %s", damages[i].what, r, err.text);
        cr_assert(strstr(err.text, "damaged") != NULL, "%s: %s", damages[i].what, err.text);
        cr_assert(size == size_after && memcmp(before, after, size) == 0, "%s", damages[i].what);
        free(before);
        free(after);
        remove(path_of("pliant.db"));
        remove(path_of("pliant.db-wal"));
    }
}

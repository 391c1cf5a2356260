/* store_fault_test.c - the disk fails or the power goes at every moment: what was acknowledged is
 * there
 *
 * A run of random changes, from a seed, is made once without a fault; what the store holds after
 * each commit is written down as text. Then it is made again with the k-th write, sync or read
 * failing, for k = 1, 2, ... until no fault is met any more. What a store opened afterwards holds
 * must be what one of the commits left: the last acknowledged one, or the one after it, whose
 * answer nobody has got.
 */
#include "store/store.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "store_vfs.h"
#include "util/prng.h"

enum { JOBS = 4, COMMITS = 16, REOPEN_AT = 9, LOG_PAGES = 20, JOURNAL_MAX = 12 };

static char dir[64];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    return remove(path);
}

static void clean(void)
{
    store_vfs_forget();
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void begin(void)
{
    strcpy(dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/pliant-fault-XXXXXX"
                                              : "/tmp/pliant-fault-XXXXXX");
    cr_assert(mkdtemp(dir) != NULL);
    clean(); /* the store makes it */
    store_vfs_register();
}

TestSuite(store_fault, .init = begin, .fini = clean, .timeout = 240);

static int open_with(const char *vfs, struct store **ret, struct spec_error *err)
{
    return store_open(
        dir,
        &(struct store_options){.journal_max = JOURNAL_MAX, .log_pages = LOG_PAGES, .vfs = vfs},
        ret, err);
}

/* ---- what a store holds, as text ------------------------------------------------------------- */

struct text {
    char *v;
    size_t n, cap;
    struct store *store;
    bool broken; /* a read failed */
};

static void add(struct text *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (t->n + (size_t)n + 1 > t->cap) {
        t->cap = 2 * (t->n + (size_t)n + 1);
        t->v = realloc(t->v, t->cap);
    }
    va_start(args, format);
    vsnprintf(t->v + t->n, (size_t)n + 1, format, args);
    va_end(args);
    t->n += (size_t)n;
}

/* Enough of a text to tell it from another. */
static uint32_t sum(const char *s, size_t n)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)s[i]) * 16777619u;
    return h;
}

static int add_step(void *ctx, const struct store_step *step)
{
    add(ctx, " %" PRIu64 ":%" PRId64 ":%x:%x", step->n, step->at_ms,
        sum(step->event, step->event_size), sum(step->actions, step->actions_size));
    return 0;
}

static int add_checkpoint(void *ctx, const struct store_checkpoint *c)
{
    add(ctx, " %" PRIu64 "=%s", c->id, c->status);
    return 0;
}

static char ids[JOBS][STORE_ID];
static size_t n_ids;

static int add_job(void *ctx, const struct store_job *job)
{
    add(ctx, "%s %s %x %" PRId64 " %s\n", job->id, job->name, sum(job->spec, strlen(job->spec)),
        job->ended_unix_ms, job->final ? job->final : "-");
    strcpy(ids[n_ids++], job->id);
    return 0;
}

static int add_slot(void *ctx, const struct store_slot *slot)
{
    add(ctx, "%s/%u %s %u\n", slot->node, slot->slot, slot->job, slot->index);
    return 0;
}

static int add_node(void *ctx, const struct store_node *node)
{
    add(ctx, "%s %" PRIu64 " %s\n", node->name, node->incarnation, node->about);
    return 0;
}

static void add_journal(struct text *t, const char *id)
{
    struct spec_error err;
    const void *bytes;
    const char *note;
    uint64_t first, n;
    size_t size;
    int r = store_snapshot_first(t->store, id, &first, &bytes, &size);

    add(t, "%s from %" PRIu64 " (%x)", id, first, sum(bytes, size));
    r |= store_snapshot_get(t->store, id, &n, &bytes, &size);
    add(t, " snapshot %" PRIu64 " (%x), steps", n, sum(bytes, size));
    r |= store_steps(t->store, id, first, add_step, t, &err);
    add(t, ", checkpoints");
    r |= store_checkpoints(t->store, id, add_checkpoint, t, &err);
    add(t, ", note %s\n", store_note_get(t->store, id, "k", &note) == 0 ? note : "-");
    t->broken |= r != 0;
}

/* The caller frees it. */
static char *contents(struct store *s)
{
    struct text t = {.store = s};
    struct spec_error err;
    const char *note;

    n_ids = 0;
    add(&t, "%s\n", store_note_get(s, "", "k", &note) == 0 ? note : "-");
    t.broken = store_jobs(s, add_job, &t, &err) != 0;
    for (size_t i = 0; i < n_ids; i++)
        add_journal(&t, ids[i]);
    t.broken |= store_nodes(s, add_node, &t, &err) != 0;
    t.broken |= store_slots(s, add_slot, &t, &err) != 0;
    if (t.broken)
        add(&t, "BROKEN\n");
    return t.v;
}

/* ---- random changes -------------------------------------------------------------------------- */

/* What the changes know of what they did. They are the same whatever the store answers. */
struct changes {
    struct prng random;
    bool lives[JOBS];
    uint64_t steps[JOBS], snapshot[JOBS], next_checkpoint;
};

static const char *id_of(uint64_t job)
{
    static char id[STORE_ID];

    snprintf(id, sizeof id, "%032" PRIx64, job + 1);
    return id;
}

/* Up to a few pages of letters. */
static const char *letters(struct changes *c, size_t *ret_size)
{
    static char text[9000];
    size_t n = prng_below(&c->random, 8) ? prng_below(&c->random, 300)
                                         : prng_below(&c->random, sizeof text - 1);

    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + (n + i) % 26);
    text[n] = '\0';
    if (ret_size)
        *ret_size = n;
    return text;
}

static void put_job(struct changes *c, struct store *s, uint64_t job)
{
    struct store_job put = {.name = "job", .options = "{}", .order = (int64_t)job};

    strcpy(put.id, id_of(job));
    put.spec = letters(c, NULL);
    c->steps[job] = c->lives[job] ? c->steps[job] : 0;
    c->snapshot[job] = c->lives[job] ? c->snapshot[job] : 0;
    c->lives[job] = true;
    store_job_put(s, &put);
}

static void put_steps(struct changes *c, struct store *s, uint64_t job)
{
    for (uint64_t n = 1 + prng_below(&c->random, 6); n > 0; n--) {
        struct store_step step = {.n = ++c->steps[job], .at_ms = (int64_t)c->steps[job] * 5};
        char event[40];

        step.event = event;
        step.event_size =
            (size_t)snprintf(event, sizeof event, "{\"ev\":\"tick\",\"n\":%" PRIu64 "}", step.n);
        step.actions = letters(c, &step.actions_size);
        store_step_put(s, id_of(job), &step);
    }
}

static void put_snapshot(struct changes *c, struct store *s, uint64_t job)
{
    size_t size;
    const char *bytes = letters(c, &size);

    if (c->steps[job] == c->snapshot[job])
        return;
    c->snapshot[job] = c->steps[job];
    store_snapshot_put(s, id_of(job), c->steps[job], bytes, size);
}

static void put_checkpoint(struct changes *c, struct store *s, uint64_t job)
{
    static const char *const words[] = {"pending", "completed", "failed", "subsumed"};
    struct store_checkpoint put = {.job = id_of(job), .status = words[prng_below(&c->random, 4)]};

    put.id = prng_below(&c->random, 2) ? ++c->next_checkpoint : c->next_checkpoint;
    put.path = put.id % 2 ? letters(c, NULL) : NULL;
    store_checkpoint_put(s, &put);
}

static void put_node(struct changes *c, struct store *s)
{
    char name[8];

    snprintf(name, sizeof name, "n%" PRIu64, prng_below(&c->random, 3));
    if (prng_below(&c->random, 4) == 0)
        store_node_delete(s, name);
    else
        store_node_put(s, &(struct store_node){name, c->random.state, letters(c, NULL)});
}

static void change(struct changes *c, struct store *s)
{
    uint64_t job = prng_below(&c->random, JOBS), kind = prng_below(&c->random, 12);
    char note[24];

    if (!c->lives[job]) {
        put_job(c, s, job);
        return;
    }
    snprintf(note, sizeof note, "%" PRIu64, c->random.state);
    switch (kind) {
    case 0:
        put_job(c, s, job);
        return;
    case 1:
        store_job_end(s, id_of(job), (int64_t)(c->random.state >> 2), "{\"final\":1}");
        return;
    case 2:
        c->lives[job] = false;
        store_job_delete(s, id_of(job));
        return;
    case 3:
    case 4:
        put_snapshot(c, s, job);
        return;
    case 5:
        put_checkpoint(c, s, job);
        return;
    case 6:
        put_node(c, s);
        return;
    case 7:
        store_slot_put(s, &(struct store_slot){"n1", (uint32_t)prng_below(&c->random, 4),
                                               prng_below(&c->random, 3) ? id_of(job) : NULL, 3});
        return;
    case 8:
        store_note_put(s, job ? id_of(job) : "", "k", note);
        return;
    default:
        put_steps(c, s, job);
        return;
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

struct run {
    uint64_t seed;
    bool retry;       /* a commit that failed is tried again until it succeeds */
    char **reference; /* to be written, [COMMITS + 1]; or NULL */
    int acknowledged; /* commits that answered 0 */
    int error;        /* what ended it */
    bool stays_open;  /* the caller closes */
    struct store *store;
};

/* 0, or the answer that ends the run. Changes before the fault come once. */
static int commit(struct run *run)
{
    struct spec_error err;
    int r = store_commit(run->store, &err);

    for (int i = 0; r && run->retry && i < 100; i++) {
        cr_assert(store_failed(run->store));
        cr_assert(eq(int, store_note_put(run->store, "", "k", "x"), -EIO));
        r = store_retry(run->store, &err);
    }
    run->acknowledged += r == 0;
    if (!r && run->reference)
        run->reference[run->acknowledged] = contents(run->store);
    return r;
}

static int open_again(struct run *run)
{
    struct spec_error err;
    int r = -EIO;

    store_close(&run->store);
    for (int i = 0; r && i < (run->retry ? 100 : 1); i++)
        r = open_with(STORE_VFS, &run->store, &err);
    return r;
}

static void make(struct run *run)
{
    struct changes c = {.random = {run->seed}};

    run->error = open_again(run);
    if (!run->error && run->reference)
        run->reference[0] = contents(run->store);
    for (int i = 0; !run->error && i < COMMITS; i++) {
        if (i == REOPEN_AT)
            run->error = open_again(run);
        if (run->error)
            break;
        store_note_put(run->store, "", "turn", "x"); /* so that no commit is empty */
        for (uint64_t n = 1 + prng_below(&c.random, 8); n > 0; n--)
            change(&c, run->store);
        run->error = commit(run);
    }
    if (!run->stays_open)
        store_close(&run->store);
}

static char *reference[COMMITS + 1];

static void make_reference(uint64_t seed)
{
    struct run run = {.seed = seed, .reference = reference};

    store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
    make(&run);
    cr_assert(eq(int, run.acknowledged, COMMITS));
    clean();
}

static void free_reference(void)
{
    for (int i = 0; i <= COMMITS; i++)
        free(reference[i]);
}

/* What is found without faults: all of `n` commits, or of one more. */
static void expect_prefix(int n, const char *what, uint64_t k)
{
    struct store *s = NULL;
    struct spec_error err = {""};
    char *got;
    int r;

    store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
    r = open_with(STORE_VFS, &s, &err);
    cr_assert(r == 0, "%s at %" PRIu64 ": %s", what, k, err.text);
    got = contents(s);
    store_close(&s);
    cr_assert(strcmp(got, reference[n]) == 0 || (n < COMMITS && strcmp(got, reference[n + 1]) == 0),
              "%s at %" PRIu64 ", %d acknowledged: found\n%s\nwanted\n%s", what, k, n, got,
              reference[n]);
    free(got);
}

static const struct {
    enum vfs_fault fault;
    const char *name;
} faults[] = {
    {VFS_FULL, "full disk"},      {VFS_WRITE, "write error"}, {VFS_TORN, "torn write"},
    {VFS_READ_ONLY, "read-only"}, {VFS_SYNC, "sync error"},   {VFS_READ, "read error"},
    {VFS_OFF, "power loss"},
};

#define N_FAULTS (sizeof faults / sizeof faults[0])

/* Make the run with the fault at k; false: it was not met. */
static bool make_with(struct run *run, struct vfs_plan plan)
{
    store_vfs_plan(plan);
    make(run);
    return store_vfs_met();
}

Test(store_fault, what_was_acknowledged_is_there_after_any_fault_and_a_restart)
{
    make_reference(1);
    for (size_t f = 0; f < N_FAULTS; f++)
        for (uint64_t k = 1;; k++) {
            struct run run = {.seed = 1};
            bool met = make_with(&run, (struct vfs_plan){faults[f].fault, k, 0});

            expect_prefix(run.acknowledged, faults[f].name, k);
            clean();
            if (!met)
                break;
            cr_assert(lt(u64, k, 100000));
        }
    free_reference();
}

Test(store_fault, what_was_acknowledged_is_there_when_the_power_goes)
{
    for (uint64_t loss = 0; loss < 3; loss++) {
        make_reference(2 + loss);
        for (uint64_t k = 1;; k++) {
            struct run run = {.seed = 2 + loss};
            bool met = make_with(&run, (struct vfs_plan){VFS_OFF, k, 0});

            store_vfs_power_loss(loss ? k * 3 + loss : 0);
            expect_prefix(run.acknowledged, "power loss", k);
            clean();
            if (!met)
                break;
        }
        free_reference();
    }
}

Test(store_fault, a_fault_that_passes_loses_nothing)
{
    make_reference(5);
    for (size_t f = 0; f < N_FAULTS - 1; f++)
        for (uint64_t k = 1;; k++) {
            struct run run = {.seed = 5, .retry = true};
            bool met = make_with(&run, (struct vfs_plan){faults[f].fault, k, 1 + k % 3});

            cr_assert(eq(int, run.acknowledged, COMMITS), "%s at %" PRIu64, faults[f].name, k);
            expect_prefix(COMMITS, faults[f].name, k);
            clean();
            if (!met)
                break;
        }
    free_reference();
}

/* A sync that failed has lost its writes for good; nothing may be built upon them. */
Test(store_fault, a_sync_that_failed_is_not_trusted_when_the_power_goes_later)
{
    make_reference(6);
    for (uint64_t k = 1;; k++) {
        struct run run = {.seed = 6, .retry = true, .stays_open = true};
        bool met = make_with(&run, (struct vfs_plan){VFS_SYNC, k, 1});

        cr_assert(eq(int, run.acknowledged, COMMITS));
        store_vfs_plan((struct vfs_plan){VFS_OFF, 1, 0});
        store_close(&run.store);
        store_vfs_power_loss(0);
        expect_prefix(COMMITS, "sync error", k);
        clean();
        if (!met)
            break;
    }
    free_reference();
}

/* The same over a restart: the log that the dead daemon left is whole in memory, not on the disk.
 */
Test(store_fault, a_log_that_was_not_synced_is_not_built_upon_after_a_restart)
{
    make_reference(7);
    for (uint64_t k = 1;; k++) {
        struct run run = {.seed = 7};
        bool met = make_with(&run, (struct vfs_plan){VFS_SYNC, k, 0});
        struct store *s = NULL;
        struct spec_error err;
        char *before, *after;

        store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
        cr_assert(eq(int, open_with(STORE_VFS, &s, &err), 0), "%s", err.text);
        store_note_put(s, "", "k", "after the restart");
        cr_assert(eq(int, store_commit(s, &err), 0));
        before = contents(s);
        store_vfs_plan((struct vfs_plan){VFS_OFF, 1, 0});
        store_close(&s);
        store_vfs_power_loss(0);
        cr_assert(eq(int, open_with(NULL, &s, &err), 0), "%s", err.text);
        after = contents(s);
        store_close(&s);
        cr_assert(eq(str, before, after), "sync error at %" PRIu64, k);
        free(before);
        free(after);
        clean();
        if (!met)
            break;
    }
    free_reference();
}

/* ---- one fault at a time, looked at closely -------------------------------------------------- */

static struct store *open_one(void)
{
    struct store *s = NULL;
    struct spec_error err;
    struct store_job job = {.name = "a", .spec = "{}", .options = "{}"};

    store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
    cr_assert(eq(
        int,
        store_open(dir, &(struct store_options){.journal_max = 1000, .vfs = STORE_VFS}, &s, &err),
        0));
    strcpy(job.id, id_of(0));
    store_job_put(s, &job);
    cr_assert(eq(int, store_commit(s, &err), 0));
    return s;
}

static int put_one(struct store *s, uint64_t n)
{
    return store_step_put(s, id_of(0),
                          &(struct store_step){.n = n,
                                               .event = "{\"ev\":\"tick\"}",
                                               .event_size = 13,
                                               .actions = "[]",
                                               .actions_size = 2});
}

Test(store_fault, a_commit_is_one_sync)
{
    struct store *s = open_one();
    struct spec_error err;
    uint64_t n = 0;

    for (int i = 0; i < 200; i++) {
        store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
        for (int k = 0; k < 1 + i % 7; k++)
            put_one(s, ++n);
        cr_assert(eq(int, store_commit(s, &err), 0));
        cr_assert(eq(u64, store_vfs_syncs(), 1), "commit %d", i);
        cr_assert(eq(int, store_commit(s, &err), 0));
        cr_assert(eq(u64, store_vfs_syncs(), 1), "nothing to do");
    }
    store_close(&s);
}

/* Moving the log costs a few more, seldom. */
Test(store_fault, thousands_of_commits_are_hardly_more_syncs)
{
    struct store *s = open_one();
    struct spec_error err;

    store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
    for (uint64_t n = 1; n <= 10000; n++) {
        put_one(s, n);
        cr_assert(eq(int, store_commit(s, &err), 0));
    }
    cr_assert(le(u64, store_vfs_syncs(), 10100), "%" PRIu64, store_vfs_syncs());
    store_close(&s);
}

Test(store_fault, says_what_is_wrong_and_takes_nothing_until_it_works_again)
{
    static const struct {
        enum vfs_fault fault;
        int error;
        const char *says;
    } rows[] = {
        {VFS_FULL, -ENOSPC, "the disk is full"},
        {VFS_READ_ONLY, -EROFS, "read-only"},
        {VFS_WRITE, -EIO, "cannot be read or written"},
        {VFS_SYNC, -EIO, "cannot be read or written"},
    };
    struct store *s = open_one();
    struct spec_error err;
    uint64_t n = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t commits = store_commits(s);

        cr_assert(eq(int, put_one(s, ++n), 0));
        store_vfs_plan((struct vfs_plan){rows[i].fault, 1, 0});
        cr_assert(eq(int, store_commit(s, &err), rows[i].error), "row %zu: %s", i, err.text);
        cr_assert(strstr(err.text, rows[i].says) != NULL, "%s", err.text);
        cr_assert(strstr(err.text, "pliant.db") != NULL, "%s", err.text);
        cr_assert(store_failed(s));
        cr_assert(eq(int, put_one(s, n + 1), -EIO));
        cr_assert(eq(int, store_commit(s, &err), rows[i].error));
        cr_assert(eq(int, store_retry(s, &err), rows[i].error));
        cr_assert(strstr(err.text, rows[i].says) != NULL, "%s", err.text);
        cr_assert(store_failed(s));
        cr_assert(eq(u64, store_commits(s), commits));
        store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
        cr_assert(eq(int, store_retry(s, &err), 0));
        cr_assert_not(store_failed(s));
        cr_assert(eq(u64, store_commits(s), commits + 1));
    }
    cr_assert(eq(int, put_one(s, n + 1), 0));
    store_close(&s);
}

/* The list has what the file lacks; nobody may take that for damage, nor forget the journal of a
 * job whose deletion was refused. */
Test(store_fault, answers_from_the_file_while_it_fails)
{
    struct store *s = open_one();
    struct spec_error err;
    struct text text = {.store = s};
    const void *bytes;
    uint64_t n;
    size_t size;

    put_one(s, 1);
    cr_assert(eq(int, store_commit(s, &err), 0));
    put_one(s, 2);
    cr_assert(eq(int, store_snapshot_put(s, id_of(0), 2, "x", 1), 0));
    store_vfs_plan((struct vfs_plan){VFS_FULL, 1, 0});
    cr_assert(eq(int, store_commit(s, &err), -ENOSPC));
    cr_assert(eq(int, store_snapshot_get(s, id_of(0), &n, &bytes, &size), -EIO));
    cr_assert(eq(int, store_steps(s, id_of(0), 0, add_step, &text, &err), 0));
    cr_assert(strncmp(text.v, " 1:", 3) == 0 && !strstr(text.v, " 2:"), "%s", text.v);
    cr_assert(eq(int, store_job_delete(s, id_of(0)), -EIO));
    cr_assert(eq(int, store_job_put(s, &(struct store_job){.name = "b"}), -EIO));
    cr_assert(eq(int, store_next_epoch(s, &n, &err), -ENOSPC));
    store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
    cr_assert(eq(int, store_retry(s, &err), 0), "%s", err.text);
    cr_assert(eq(int, put_one(s, 3), 0));
    cr_assert(eq(int, store_commit(s, &err), 0));
    cr_assert(eq(int, store_snapshot_get(s, id_of(0), &n, &bytes, &size), 0));
    cr_assert(eq(u64, n, 2));
    text.n = 0;
    cr_assert(eq(int, store_steps(s, id_of(0), 0, add_step, &text, &err), 0));
    cr_assert(strstr(text.v, " 1:") && strstr(text.v, " 2:") && strstr(text.v, " 3:"), "%s",
              text.v);
    free(text.v);
    store_close(&s);
}

Test(store_fault, says_so_when_it_cannot_be_opened_for_writing)
{
    struct store *s = open_one();
    struct spec_error err;

    store_close(&s);
    store_vfs_plan((struct vfs_plan){VFS_READ_ONLY, 1, 0});
    cr_assert(eq(int, open_with(STORE_VFS, &s, &err), -EROFS));
    cr_assert(strstr(err.text, "read-only") != NULL, "%s", err.text);
    clean();
    store_vfs_plan((struct vfs_plan){VFS_READ_ONLY, 1, 0});
    cr_assert(eq(int, open_with(STORE_VFS, &s, &err), -EROFS));
    cr_assert(strstr(err.text, "read-only") != NULL, "%s", err.text);
    store_vfs_plan((struct vfs_plan){VFS_FULL, 1, 0});
    cr_assert(eq(int, open_with(STORE_VFS, &s, &err), -ENOSPC));
    cr_assert(strstr(err.text, "the disk is full") != NULL, "%s", err.text);
}

/* Where the file cannot be moved on, the log grows, and nothing else. */
Test(store_fault, a_log_that_cannot_be_moved_does_not_stop_commits)
{
    struct store *s = NULL;
    struct spec_error err;
    struct store_job job = {.name = "a", .spec = "{}", .options = "{}"};
    uint64_t n = 0;

    cr_assert(eq(int, open_with(STORE_VFS, &s, &err), 0));
    strcpy(job.id, id_of(0));
    store_job_put(s, &job);
    cr_assert(eq(int, store_commit(s, &err), 0));
    for (int i = 0; i < 300; i++) {
        put_one(s, ++n);
        store_vfs_plan((struct vfs_plan){VFS_SYNC, 2, 0}); /* the first is the commit's */
        cr_assert(eq(int, store_commit(s, &err), 0), "%s", err.text);
        cr_assert(store_vfs_syncs() <= 2);
    }
    store_vfs_plan((struct vfs_plan){VFS_OFF, 1, 0});
    store_close(&s);
    store_vfs_power_loss(0);
    store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
    cr_assert(eq(int, open_with(STORE_VFS, &s, &err), 0));
    cr_assert(eq(int, put_one(s, n + 1), 0));
    store_close(&s);
}

Test(store_fault, without_memory_for_sqlite_nothing_is_lost)
{
    struct store *s = open_one();
    struct spec_error err;
    static char text[3000000];

    memset(text, 'x', sizeof text);
    cr_assert(eq(int,
                 store_step_put(s, id_of(0),
                                &(struct store_step){.n = 1,
                                                     .event = "{}",
                                                     .event_size = 2,
                                                     .actions = text,
                                                     .actions_size = sizeof text}),
                 0));
    sqlite3_hard_heap_limit64(sqlite3_memory_used() + 1000);
    cr_assert(eq(int, store_commit(s, &err), -ENOMEM), "%s", err.text);
    cr_assert(store_failed(s));
    sqlite3_hard_heap_limit64(INT64_C(1) << 40);
    cr_assert(eq(int, store_retry(s, &err), 0), "%s", err.text);
    cr_assert(eq(int, put_one(s, 2), 0));
    cr_assert(eq(int, store_commit(s, &err), 0));
    store_close(&s);
}

/* Damage that appears while it is open: said, never written to again. */
Test(store_fault, a_page_that_turns_into_garbage_ends_it)
{
    struct store *s = open_one();
    struct spec_error err;
    uint64_t writes;
    char path[128];
    struct text text = {.store = s};
    FILE *f;

    for (uint64_t n = 1; n <= 150000; n++)
        cr_assert(eq(int, put_one(s, n), 0));
    cr_assert(eq(int, store_commit(s, &err), 0));
    store_close(&s);
    s = NULL;
    cr_assert(eq(int, open_with(STORE_VFS, &s, &err), 0));
    snprintf(path, sizeof path, "%s/pliant.db", dir);
    f = fopen(path, "r+");
    for (long at = 20 * 4096; at < 60 * 4096; at++)
        if (fseek(f, at, SEEK_SET) == 0)
            fputc((int)(at * 7) & 0xff, f);
    fclose(f);
    store_vfs_plan((struct vfs_plan){VFS_NONE, 0, 0});
    put_one(s, 150001);
    cr_assert(eq(int, store_steps(s, id_of(0), 0, add_step, &text, &err), -EUCLEAN));
    cr_assert(strstr(err.text, "damaged") != NULL, "%s", err.text);
    writes = store_vfs_writes();
    cr_assert(store_failed(s));
    cr_assert(eq(int, put_one(s, 150002), -EIO));
    cr_assert(eq(int, store_commit(s, &err), -EUCLEAN));
    cr_assert(eq(int, store_retry(s, &err), -EUCLEAN));
    cr_assert(eq(int, store_steps(s, id_of(0), 0, add_step, &text, &err), -EUCLEAN));
    store_close(&s);
    cr_assert(eq(u64, store_vfs_writes(), writes));
    free(text.v);
}

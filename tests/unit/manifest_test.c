/* manifest_test.c - directories that are checkpoints and runs, also after a crash at any point */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/manifest.h"
#include "store/directory.h"

static char dir[64];

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/pliant-manifest-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
}

static void remove_dir(void)
{
    directory_remove(dir);
}

TestSuite(manifest, .init = make_dir, .fini = remove_dir);
TestSuite(run, .init = make_dir, .fini = remove_dir);

static const char *at(const char *name)
{
    static char path[2 * PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    FILE *out = fopen(at(name), "w");

    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

static bool there(const char *name)
{
    return access(at(name), F_OK) == 0;
}

/* ---- checkpoints of graph jobs -------------------------------------------------------------- */

static void replace(const struct manifest *m)
{
    struct spec_error err = {""};
    struct json j;

    json_init(&j, NULL);
    manifest_write(&j, m);
    cr_assert(eq(int, manifest_replace(dir, &j, &err), 0), "%s", err.text);
    json_free(&j);
}

static const struct manifest_vertex vertices[] = {{"src", 2}, {"map", 1}};
static const struct manifest_part parts[] = {{0, 0, 10}, {0, 1, 11}, {1, 0, UINT64_C(1) << 40}};
static const struct manifest example = {.id = UINT64_C(9007199254740995),
                                        .savepoint = true,
                                        .job = "0123456789abcdef0123456789abcdef",
                                        .vertices = vertices,
                                        .n_vertices = 2,
                                        .parts = parts,
                                        .n_parts = 3};

Test(manifest, comes_out_as_it_went_in)
{
    struct manifest_read *r = NULL;
    struct spec_error err;
    const struct manifest *m;

    cr_expect(not(manifest_exists(dir)));
    replace(&example);
    cr_expect(manifest_exists(dir));
    cr_assert(eq(int, manifest_open(dir, &r, &err), 0));
    m = manifest_of(r);
    cr_expect(eq(u64, m->id, example.id));
    cr_expect(m->savepoint);
    cr_expect(eq(str, (char *)m->job, (char *)example.job));
    cr_assert(eq(sz, m->n_parts, 3));
    for (size_t i = 0; i < 3; i++) {
        cr_expect(eq(u32, m->parts[i].vertex, parts[i].vertex));
        cr_expect(eq(u32, m->parts[i].subtask, parts[i].subtask));
        cr_expect(eq(u64, m->parts[i].bytes, parts[i].bytes));
    }
    cr_expect(eq(u32, manifest_parallelism(m, "src"), 2));
    cr_expect(eq(u32, manifest_parallelism(m, "map"), 1));
    cr_expect(eq(u32, manifest_parallelism(m, "sink"), 0));
    cr_expect(manifest_has_part(m, "src", 1));
    cr_expect(manifest_has_part(m, "map", 0));
    cr_expect(not(manifest_has_part(m, "map", 1)));
    cr_expect(not(manifest_has_part(m, "sink", 0)));
    manifest_close(&r);
    cr_expect_null(r);
}

Test(manifest, none_is_not_the_same_as_an_unreadable_one) /* [W-DRV-4] */
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"version\":2}",
        "{\"version\":1}",
        "{\"version\":1,\"id\":\"x\",\"job\":\"j\",\"vertices\":[],\"parts\":[]}",
        "{\"version\":1,\"id\":\"1\",\"vertices\":[],\"parts\":[]}",
        "{\"version\":1,\"id\":\"1\",\"job\":\"j\",\"vertices\":[{}],\"parts\":[]}",
        "{\"version\":1,\"id\":\"1\",\"job\":\"j\",\"vertices\":[],\"parts\":[{\"vertex\":\"v\"}]}",
        "{\"version\":1,\"id\":\"1\",\"job\":\"j\",\"vertices\":[{\"vertex\":\"v\",\"parallelism\":"
        "1}],\"parts\":[{\"vertex\":\"v\",\"subtask\":1}]}",
        "{\"version\":1,\"id\":\"1\",\"job\":\"j\",\"vertices\":[{\"vertex\":\"v\",\"parallelism\":"
        "0}],\"parts\":[{\"vertex\":\"v\",\"subtask\":0}]}",
    };
    struct manifest_read *r = NULL;
    struct spec_error err;

    cr_expect(eq(int, manifest_open(dir, &r, &err), -ENOENT));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text(MANIFEST_FILE, bad[i]);
        cr_expect(eq(int, manifest_open(dir, &r, &err), -EUCLEAN), "%s", bad[i]);
        cr_expect(strstr(err.text, MANIFEST_FILE) != NULL, "%s", err.text);
        cr_expect_null(r);
    }
}

Test(manifest, a_crash_while_writing_leaves_the_old_one) /* [W-CKP-8] */
{
    struct manifest_read *r = NULL;
    struct spec_error err;

    replace(&example);
    write_text(MANIFEST_FILE ".new", "{\"version\":1,\"id\":\"99\",\"jo");
    cr_assert(eq(int, manifest_open(dir, &r, &err), 0));
    cr_expect(eq(u64, manifest_of(r)->id, example.id));
    manifest_close(&r);
    replace(&example); /* what was left does not disturb the next one */
    cr_expect(not(there(MANIFEST_FILE ".new")));
}

/* A process that is killed at some moment while it replaces a manifest again and again. */
Test(manifest, is_whole_at_whatever_moment_the_writer_is_killed) /* [W-CKP-8] */
{
    replace(&example);
    for (int round = 0; round < 30; round++) {
        struct manifest_read *r = NULL;
        struct spec_error err;
        pid_t pid = fork();

        if (pid == 0) {
            struct manifest m = example;

            for (m.id = 1;; m.id++)
                replace(&m);
        }
        nanosleep(&(struct timespec){.tv_nsec = 200000 * round}, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        cr_assert(eq(int, manifest_open(dir, &r, &err), 0), "%s", err.text);
        cr_expect(eq(sz, manifest_of(r)->n_parts, 3));
        manifest_close(&r);
    }
}

Test(manifest, says_why_it_could_not_be_written)
{
    struct spec_error err = {""};
    struct json j;

    json_init(&j, NULL);
    manifest_write(&j, &example);
    cr_expect(eq(int, manifest_replace(at("nowhere"), &j, &err), -ENOENT));
    cr_expect(strstr(err.text, "nowhere") != NULL);
    json_free(&j);
}

Test(manifest, directories_are_removed_with_all_that_is_in_them_but_not_what_links_name)
{
    cr_assert(eq(int, directory_make(at("a/b/c")), 0));
    cr_assert(eq(int, directory_make(at("a/b/c")), 0));
    cr_assert(eq(int, directory_make(at("other")), 0));
    write_text("other/file", "x");
    write_text("a/b/file", "x");
    cr_assert(eq(int, symlink("../../other", at("a/b/link")), 0));
    cr_expect(eq(int, directory_remove(at("a")), 0));
    cr_expect(not(there("a")));
    cr_expect(there("other/file"));
    cr_expect(eq(int, directory_remove(at("a")), 0));
}

/* ---- runs of worker groups ------------------------------------------------------------------ */

static const struct run_keep all_of_them = {0};

static void registered(struct run_manifest *m, const struct run_keep *keep, const char *name,
                       const char *metrics)
{
    struct spec_error err = {""};

    cr_assert(eq(int, directory_make(at(name)), 0));
    cr_assert(eq(int, run_register(dir, m, keep, name, metrics, &err), 0), "%s", err.text);
}

/* What the disk says now: names of directories, the latest last. */
static const char *names(void)
{
    static char text[512];
    struct run_manifest m;
    struct spec_error err;
    int r = run_read(dir, &m, &err);

    text[0] = '\0';
    if (r < 0)
        return "unreadable";
    for (size_t i = 0; i < m.results.n; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, m.results.v[i].dir);
    }
    run_free(&m);
    return text;
}

Test(run, a_new_one_has_no_manifest)
{
    struct run_manifest m;
    struct spec_error err;

    cr_expect(eq(int, run_read(dir, &m, &err), -ENOENT));
    cr_expect(eq(int, run_read(at("nowhere"), &m, &err), -ENOENT));
}

Test(run, goes_on_from_its_latest_checkpoint) /* [W-DRV-1] */
{
    struct run_manifest m = {.created_unix_ms = 1700000000000}, again;
    struct spec_error err;

    registered(&m, &all_of_them, "c1", "{\"loss\":0.5,\"note\":\"\\u00e9\"}");
    registered(&m, &all_of_them, "c2", "{}");
    cr_expect(eq(str, run_latest(&m)->dir, "c2"));
    cr_assert(eq(int, run_read(dir, &again, &err), 0));
    cr_expect(eq(str, run_latest(&again)->dir, "c2"));
    cr_expect(eq(i64, again.created_unix_ms, 1700000000000));
    cr_expect(strstr(again.results.v[0].metrics, "0.5") != NULL);
    run_free(&again);
    run_free(&m);
}

Test(run, keeps_the_best_and_always_the_latest) /* [W-CKP-6, W-CKP-7] */
{
    static const struct {
        const char *why;
        struct run_keep keep;
        const char *metrics[5]; /* of c1, c2, ... */
        const char *left;
    } rows[] = {
        {"all", {0}, {"{}", "{}", "{}"}, "c1 c2 c3"},
        {"the last two", {.num_to_keep = 2}, {"{}", "{}", "{}", "{}"}, "c3 c4"},
        {"the best two are the last",
         {.num_to_keep = 2, .score_metric = "acc"},
         {"{\"acc\":1}", "{\"acc\":2}", "{\"acc\":3}"},
         "c2 c3"},
        {"the latest stays though it is the worst: one more than asked for",
         {.num_to_keep = 2, .score_metric = "acc"},
         {"{\"acc\":3}", "{\"acc\":2}", "{\"acc\":1}"},
         "c1 c2 c3"},
        {"... until it is no longer the latest",
         {.num_to_keep = 2, .score_metric = "acc"},
         {"{\"acc\":3}", "{\"acc\":2}", "{\"acc\":1}", "{\"acc\":4}"},
         "c1 c4"},
        {"the smallest is the best",
         {.num_to_keep = 1, .score_metric = "loss", .score_min = true},
         {"{\"loss\":3}", "{\"loss\":1}", "{\"loss\":2}"},
         "c2 c3"},
        {"without the metric is worst",
         {.num_to_keep = 1, .score_metric = "acc"},
         {"{\"acc\":-5}", "{}", "{\"acc\":\"much\"}"},
         "c1 c3"},
        {"of equals the newer",
         {.num_to_keep = 1, .score_metric = "acc"},
         {"{\"acc\":1}", "{\"acc\":1}", "{}"},
         "c2 c3"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run_manifest m = {.results = {0}};
        char name[8], left[64] = "";

        remove_dir();
        make_dir();
        for (int k = 0; k < 5 && rows[i].metrics[k]; k++) {
            snprintf(name, sizeof name, "c%d", k + 1);
            registered(&m, &rows[i].keep, name, rows[i].metrics[k]);
        }
        cr_expect(eq(str, (char *)names(), (char *)rows[i].left), "%s", rows[i].why);
        for (int k = 0; k < 5 && rows[i].metrics[k]; k++) {
            snprintf(name, sizeof name, "c%d", k + 1);
            if (there(name))
                strcat(strcat(left, *left ? " " : ""), name);
        }
        cr_expect(eq(str, left, (char *)rows[i].left), "%s", rows[i].why);
        run_free(&m);
    }
}

Test(run, is_as_before_when_the_manifest_cannot_be_written) /* [W-CKP-7] */
{
    struct run_keep keep = {.num_to_keep = 1};
    struct run_manifest m = {.results = {0}};
    struct spec_error err;

    registered(&m, &keep, "c1", "{}");
    directory_make(at("c2"));
    directory_make(at(MANIFEST_FILE ".new")); /* in the way */
    cr_expect(lt(int, run_register(dir, &m, &keep, "c2", "{}", &err), 0));
    cr_expect(eq(sz, m.results.n, 1));
    cr_expect(eq(str, run_latest(&m)->dir, "c1"));
    cr_expect(there("c1"));
    cr_expect(eq(str, (char *)names(), "c1"));
    rmdir(at(MANIFEST_FILE ".new"));
    cr_expect(eq(int, run_register(dir, &m, &keep, "c2", "{}", &err), 0));
    cr_expect(not(there("c1")));
    run_free(&m);
}

Test(run, refuses_names_that_would_not_move_with_the_tree)
{
    static const char *const bad[] = {"",     ".",       "..",    "../c1", "a/b",
                                      "/tmp", "missing", "_torn", ".git",  "_manifest.json"};
    struct run_manifest m = {.results = {0}};
    struct spec_error err;

    registered(&m, &all_of_them, "c1", "{}");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(eq(int, run_register(dir, &m, &all_of_them, bad[i], "{}", &err), -EINVAL), "%s",
                  bad[i]);
    cr_expect(eq(int, run_register(dir, &m, &all_of_them, "c1", "{}", &err), -EEXIST));
    directory_make(at("c2"));
    cr_expect(eq(int, run_register(dir, &m, &all_of_them, "c2", "[]", &err), -EINVAL));
    cr_expect(eq(int, run_register(dir, &m, &all_of_them, "c2", "{", &err), -EINVAL));
    cr_expect(eq(str, (char *)names(), "c1"));
    run_free(&m);
}

Test(run, a_manifest_that_cannot_be_used_is_an_error_and_stays_as_it_is) /* [W-DRV-2, W-DRV-4] */
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "_manifest.json"},
        {"{\"version\":1", "_manifest.json"},
        {"{\"version\":7,\"checkpoint_results\":[]}", "version"},
        {"{\"checkpoint_results\":[]}", "version"},
        {"{\"version\":1}", "checkpoint_results"},
        {"{\"version\":1,\"checkpoint_results\":[{\"dir\":\"c9\"}],\"latest\":\"c9\"}", "c9"},
        {"{\"version\":1,\"checkpoint_results\":[{\"dir\":\"../x\"}],\"latest\":\"../x\"}", "../x"},
        {"{\"version\":1,\"checkpoint_results\":[{\"dir\":\"c1\"}],\"latest\":\"c2\"}", "c2"},
        {"{\"version\":1,\"checkpoint_results\":[{\"dir\":\"c1\"}]}", "latest"},
        {"{\"version\":1,\"checkpoint_results\":[{\"dir\":\"c1\"},{\"dir\":\"c1\"}],\"latest\":"
         "\"c1\"}",
         "twice"},
        {"{\"version\":1,\"checkpoint_results\":[{\"dir\":\"c1\",\"metrics\":3}],\"latest\":"
         "\"c1\"}",
         "metrics"},
        {"{\"version\":1,\"checkpoint_results\":[7]}", "checkpoint_results"},
    };
    struct run_manifest m;
    struct spec_error err;

    directory_make(at("c1"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text(MANIFEST_FILE, bad[i].text);
        cr_expect(eq(int, run_read(dir, &m, &err), -EUCLEAN), "%s", bad[i].text);
        cr_expect(strstr(err.text, bad[i].says) != NULL, "%s", err.text);
    }
}

Test(run, directories_without_an_entry_are_moved_aside) /* [W-CKP-11] */
{
    struct run_manifest m = {.results = {0}};
    struct spec_error err;

    registered(&m, &all_of_them, "c1", "{}");
    for (int round = 0; round < 2; round++) { /* the same name is torn twice */
        directory_make(at("c2"));
        write_text("c2/part", "of another attempt");
        cr_expect(eq(int, run_move_torn(dir, &m, &err), 1));
        cr_expect(not(there("c2")));
    }
    cr_expect(there("_torn/c2-0/part"));
    cr_expect(there("_torn/c2-1/part"));
    cr_expect(there("c1"));
    cr_expect(there(MANIFEST_FILE));
    cr_expect(eq(int, run_move_torn(dir, &m, &err), 0));
    cr_expect(eq(int, run_move_torn(at("nowhere"), &m, &err), 0));
    run_free(&m);
}

/* Between the manifest and the deletion of what it no longer names. */
Test(run, what_a_crash_left_without_an_entry_is_never_restored)
{
    struct run_keep keep = {.num_to_keep = 1};
    struct run_manifest m = {.results = {0}};
    struct spec_error err;

    registered(&m, &keep, "c1", "{}");
    registered(&m, &keep, "c2", "{}");
    directory_make(at("c1")); /* as if the daemon had died before deleting it */
    cr_expect(eq(str, (char *)names(), "c2"));
    cr_expect(eq(int, run_move_torn(dir, &m, &err), 1));
    run_free(&m);
}

Test(run, has_one_owner) /* [W-DRV-5] */
{
    struct spec_error err = {""};
    int first = -1, second = -1;
    pid_t pid;

    cr_assert(eq(int, run_lease_take(at("r"), "job one", &first, &err), 0));
    cr_expect(eq(int, run_lease_take(at("r"), "job two", &second, &err), -EBUSY));
    cr_expect(strstr(err.text, "job one") != NULL, "%s", err.text);
    run_lease_let_go(&first);
    cr_expect(eq(int, first, -1));
    pid = fork();
    if (pid == 0) {
        run_lease_take(at("r"), "one that dies", &second, &err);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    cr_expect(eq(int, run_lease_take(at("r"), "job two", &second, &err), 0));
    run_lease_let_go(&second);
}

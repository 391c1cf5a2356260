/* run.c - the run of a worker group: manifest, torn directories, lease (see manifest.h) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/manifest.h"
#include "spec/json_doc.h"
#include "store/directory.h"

#define LEASE_FILE "_lease"
#define TORN_DIR "_torn"
#define OWNER_MAX 256
#define TRIES_MAX 10000 /* names in _torn/ */

bool run_name_fine(const char *dir)
{
    size_t n = strlen(dir);

    return n > 0 && n <= NAME_MAX && dir[0] != '.' && dir[0] != '_' && !strchr(dir, '/');
}

static bool path_of(char ret[PATH_MAX], const char *dir, const char *name)
{
    return snprintf(ret, PATH_MAX, "%s/%s", dir, name) < PATH_MAX;
}

static bool is_directory(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int no_memory(struct spec_error *err)
{
    snprintf(err->text, sizeof err->text, "out of memory");
    return -ENOMEM;
}

/* ---- the manifest --------------------------------------------------------------------------- */

static void free_one(struct run_checkpoint *c)
{
    free(c->dir);
    free(c->metrics);
}

void run_free(struct run_manifest *m)
{
    for (size_t i = 0; i < m->results.n; i++)
        free_one(&m->results.v[i]);
    vec_free(NULL, &m->results);
}

const struct run_checkpoint *run_latest(const struct run_manifest *m)
{
    return m->results.n > 0 ? &m->results.v[m->results.n - 1] : NULL;
}

void run_write(struct json *j, const struct run_manifest *m)
{
    const struct run_checkpoint *latest = run_latest(m);

    json_begin(j, NULL, '{');
    json_int(j, "version", MANIFEST_VERSION);
    json_int(j, "created_unix_ms", m->created_unix_ms);
    json_begin(j, "checkpoint_results", '[');
    for (size_t i = 0; i < m->results.n; i++) {
        json_begin(j, NULL, '{');
        json_string(j, "dir", m->results.v[i].dir);
        json_raw(j, "metrics", m->results.v[i].metrics, strlen(m->results.v[i].metrics));
        json_end(j, '}');
    }
    json_end(j, ']');
    json_string(j, "latest", latest ? latest->dir : NULL);
    json_end(j, '}');
    json_line(j);
}

static int add_result(struct run_manifest *m, const char *dir, char *metrics)
{
    struct run_checkpoint *c = metrics ? vec_push(NULL, &m->results) : NULL;

    if (!c) {
        free(metrics);
        return -ENOMEM;
    }
    *c = (struct run_checkpoint){.dir = strdup(dir), .metrics = metrics};
    return c->dir ? 0 : -ENOMEM;
}

static bool is_named(const struct run_manifest *m, const char *dir)
{
    for (size_t i = 0; i < m->results.n; i++)
        if (strcmp(m->results.v[i].dir, dir) == 0)
            return true;
    return false;
}

static int read_result(const struct doc_file *f, const struct doc *at, const char *run_dir,
                       struct run_manifest *m, struct spec_error *err)
{
    const struct doc *metrics = NULL;
    char path[PATH_MAX];
    const char *dir;
    int r;

    if (at->kind != DOC_MAP)
        return doc_error(f, at, err, "is %s; accepted: {\"dir\",\"metrics\"}",
                         doc_kind_name(at->kind));
    r = doc_string(f, at, "dir", NAME_MAX, &dir, err);
    if (r == -ENOENT)
        return doc_error(f, at, err, "dir: missing; needed: the name of a directory");
    if (r == 0)
        r = doc_optional(doc_container(f, at, "metrics", DOC_MAP, &metrics, err));
    if (r < 0)
        return r;
    if (!run_name_fine(dir))
        return doc_error(f, doc_get(at, "dir"), err,
                         "\"%s\"; accepted: the name of a directory beside the manifest", dir);
    if (is_named(m, dir))
        return doc_error(f, doc_get(at, "dir"), err, "\"%s\" is there twice", dir);
    if (!path_of(path, run_dir, dir) || !is_directory(path)) /* [W-DRV-2] */
        return doc_error(f, doc_get(at, "dir"), err,
                         "%s/%s is missing: the directory of the run is damaged", run_dir, dir);
    r = add_result(m, dir, json_doc_text(metrics, "{}"));
    return r < 0 ? no_memory(err) : 0;
}

/* The latest stands last, whatever its score. */
static int put_latest_last(const struct doc_file *f, struct run_manifest *m, struct spec_error *err)
{
    const char *latest = NULL;
    const struct doc *at = doc_get(f->root, "latest");
    struct run_checkpoint last;
    size_t i = 0;
    int r = at && at->kind == DOC_NULL
                ? 0
                : doc_optional(doc_string(f, f->root, "latest", NAME_MAX, &latest, err));

    if (r < 0 || (!latest && m->results.n == 0))
        return r;
    if (!latest)
        return doc_error(f, f->root, err, "latest: missing; needed: one of the directories");
    while (i < m->results.n && strcmp(m->results.v[i].dir, latest) != 0)
        i++;
    if (i == m->results.n)
        return doc_error(f, at, err, "\"%s\" is not among checkpoint_results", latest);
    last = m->results.v[i];
    memmove(&m->results.v[i], &m->results.v[i + 1], (m->results.n - i - 1) * sizeof last);
    m->results.v[m->results.n - 1] = last;
    return 0;
}

static int read_all(const struct doc_file *f, const char *run_dir, struct run_manifest *m,
                    struct spec_error *err)
{
    const struct doc *list;
    int64_t version;
    int r;

    if (f->root->kind != DOC_MAP)
        return doc_error(f, f->root, err, "is %s; accepted: a manifest",
                         doc_kind_name(f->root->kind));
    r = doc_int(f, f->root, "version", 1, MANIFEST_VERSION, &version, err);
    if (r == -ENOENT)
        return doc_error(f, f->root, err, "version: missing; needed: %d", MANIFEST_VERSION);
    if (r == 0)
        r = doc_optional(
            doc_int(f, f->root, "created_unix_ms", 0, DOC_INTEGER_MAX, &m->created_unix_ms, err));
    if (r == 0)
        r = doc_container(f, f->root, "checkpoint_results", DOC_LIST, &list, err);
    if (r == -ENOENT)
        return doc_error(f, f->root, err, "checkpoint_results: missing; needed: a list");
    if (r < 0)
        return r;
    for (const struct doc *c = list->child; c && r == 0; c = c->next)
        r = read_result(f, c, run_dir, m, err);
    return r == 0 ? put_latest_last(f, m, err) : r;
}

int run_read(const char *run_dir, struct run_manifest *ret, struct spec_error *err)
{
    struct run_manifest m = {.results = {0}};
    struct doc_file f = {0};
    char path[PATH_MAX];
    int r;

    if (!path_of(path, run_dir, MANIFEST_FILE)) {
        snprintf(err->text, sizeof err->text, "%.200s...: too long for a path", run_dir);
        return -ENAMETOOLONG;
    }
    r = doc_read(path, MANIFEST_BYTES_MAX, &f, err);
    if (r == 0)
        r = read_all(&f, run_dir, &m, err);
    doc_free(&f);
    if (r < 0) {
        run_free(&m);
        return r == -EINVAL ? -EUCLEAN : r; /* [W-DRV-4] */
    }
    *ret = m;
    return 0;
}

/* ---- which are kept ------------------------------------------------------------------------- */

/* The metric as a number that is larger for a better checkpoint; false: it has none. */
static bool score_of(const struct run_checkpoint *c, const struct run_keep *keep, double *ret)
{
    struct doc_file f = {0};
    struct spec_error err;
    const struct doc *at;
    bool found = false;

    if (doc_parse("metrics", c->metrics, strlen(c->metrics), 1, &f, &err) == 0) {
        at = doc_get(f.root, keep->score_metric);
        found = at && at->kind == DOC_NUMBER;
        if (found)
            *ret = keep->score_min ? -at->number : at->number;
    }
    doc_free(&f);
    return found;
}

struct ranked {
    size_t at;
    bool has_score;
    double score;
};

/* Best first; one without the metric sorts worst; of equals the newer is better. */
static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->has_score != y->has_score)
        return x->has_score ? -1 : 1;
    if (x->has_score && x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->at > y->at ? -1 : x->at < y->at;
}

/* Marks those that stay. The latest always does, so there may be one more [W-CKP-6]. */
static int choose(const struct run_checkpoint *v, size_t n, const struct run_keep *keep,
                  bool *stays)
{
    struct ranked *rank = calloc(n, sizeof *rank);

    if (!rank)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        rank[i].at = i;
        if (keep->score_metric)
            rank[i].has_score = score_of(&v[i], keep, &rank[i].score);
    }
    qsort(rank, n, sizeof *rank, by_rank);
    for (size_t i = 0; i < n; i++)
        stays[rank[i].at] = keep->num_to_keep == 0 || i < keep->num_to_keep;
    stays[n - 1] = true;
    free(rank);
    return 0;
}

static int replace(const char *run_dir, const struct run_manifest *m, struct spec_error *err)
{
    struct json j;
    int r;

    json_init(&j, NULL);
    run_write(&j, m);
    r = manifest_replace(run_dir, &j, err);
    json_free(&j);
    return r;
}

/* What can't be deleted has no entry any more, and is moved aside by the next attempt. */
static void delete_checkpoint(const char *run_dir, struct run_checkpoint *c)
{
    char path[PATH_MAX];

    if (path_of(path, run_dir, c->dir))
        directory_remove(path);
    free_one(c);
}

static int check_new(const char *run_dir, const struct run_manifest *m, const char *dir,
                     const char *metrics, struct spec_error *err)
{
    struct doc_file f = {.name = "metrics"};
    char path[PATH_MAX];
    int r;

    if (!run_name_fine(dir) || !path_of(path, run_dir, dir) || !is_directory(path)) {
        snprintf(err->text, sizeof err->text,
                 "checkpoint \"%.200s\"; accepted: the name of a directory in %.400s", dir,
                 run_dir);
        return -EINVAL;
    }
    if (is_named(m, dir)) {
        snprintf(err->text, sizeof err->text, "checkpoint \"%.200s\" is registered already", dir);
        return -EEXIST;
    }
    r = doc_line(&f, metrics, strlen(metrics), 1, err);
    if (r == 0 && f.root->kind != DOC_MAP) {
        snprintf(err->text, sizeof err->text, "metrics: accepted: a map");
        r = -EINVAL;
    }
    doc_free(&f);
    return r;
}

/* `all` are those of *m and, last, the new one. The manifest goes first [W-CKP-7]. */
static int keep_some(const char *run_dir, struct run_manifest *m, const struct run_keep *keep,
                     struct run_checkpoint *all, struct spec_error *err)
{
    struct run_manifest next = {.created_unix_ms = m->created_unix_ms};
    size_t n = m->results.n + 1;
    bool *stays = calloc(n, sizeof *stays);
    int r = -ENOMEM;

    if (stays && vec_reserve(NULL, &next.results, n))
        r = choose(all, n, keep, stays);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (stays[i])
            next.results.v[next.results.n++] = all[i];
    r = r == 0 ? replace(run_dir, &next, err) : no_memory(err);
    if (r == 0) {
        for (size_t i = 0; i < n; i++)
            if (!stays[i])
                delete_checkpoint(run_dir, &all[i]);
        vec_free(NULL, &m->results);
        *m = next;
    } else {
        vec_free(NULL, &next.results);
    }
    free(stays);
    return r;
}

int run_register(const char *run_dir, struct run_manifest *m, const struct run_keep *keep,
                 const char *dir, const char *metrics, struct spec_error *err)
{
    struct run_checkpoint fresh, *all;
    int r = check_new(run_dir, m, dir, metrics, err);

    if (r < 0)
        return r;
    fresh = (struct run_checkpoint){.dir = strdup(dir), .metrics = strdup(metrics)};
    all = calloc(m->results.n + 1, sizeof *all);
    if (all && fresh.dir && fresh.metrics) {
        if (m->results.n > 0)
            memcpy(all, m->results.v, m->results.n * sizeof *all);
        all[m->results.n] = fresh;
        r = keep_some(run_dir, m, keep, all, err);
    } else {
        r = no_memory(err);
    }
    if (r < 0)
        free_one(&fresh);
    free(all);
    return r;
}

/* ---- torn directories ----------------------------------------------------------------------- */

static int move_aside(const char *run_dir, const char *name, struct spec_error *err)
{
    char from[PATH_MAX], torn[PATH_MAX], to[PATH_MAX + NAME_MAX];
    int r = 0;

    if (!path_of(from, run_dir, name) || !path_of(torn, run_dir, TORN_DIR))
        return -ENAMETOOLONG;
    r = directory_make(torn);
    for (int i = 0; r == 0 && i < TRIES_MAX; i++) { /* a name may have been torn before */
        snprintf(to, sizeof to, "%s/%.200s-%d", torn, name, i);
        if (access(to, F_OK) == 0)
            continue;
        if (rename(from, to) == 0)
            return 0;
        r = -errno;
    }
    if (r == 0)
        r = -EEXIST;
    snprintf(err->text, sizeof err->text, "%.400s cannot be moved aside: %s", from, strerror(-r));
    return r;
}

int run_move_torn(const char *run_dir, const struct run_manifest *m, struct spec_error *err)
{
    DIR *dir = opendir(run_dir);
    struct dirent *entry;
    char path[PATH_MAX];
    int moved = 0, r = 0;

    if (!dir && errno == ENOENT)
        return 0;
    if (!dir) {
        r = -errno;
        snprintf(err->text, sizeof err->text, "%.400s: %s", run_dir, strerror(-r));
        return r;
    }
    while (r == 0 && (entry = readdir(dir))) {
        if (!run_name_fine(entry->d_name) || is_named(m, entry->d_name) ||
            !path_of(path, run_dir, entry->d_name) || !is_directory(path))
            continue;
        r = move_aside(run_dir, entry->d_name, err);
        moved += r == 0;
    }
    closedir(dir);
    if (r == 0 && moved > 0)
        r = directory_sync(run_dir);
    return r < 0 ? r : moved;
}

/* ---- the lease ------------------------------------------------------------------------------ */

static void name_holder(int fd, const char *path, struct spec_error *err)
{
    char owner[OWNER_MAX] = "";
    ssize_t n = pread(fd, owner, sizeof owner - 1, 0);

    owner[n > 0 ? n : 0] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
    snprintf(err->text, sizeof err->text, "%.400s: the run belongs to another scheduler%s%s", path,
             *owner ? ": " : "", owner);
}

/* The lock is the kernel's: it ends with the process, however that ends. The text is for people. */
static int hold(int fd, const char *owner, const char *path, struct spec_error *err)
{
    int r;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        r = errno == EWOULDBLOCK ? -EBUSY : -errno;
        if (r == -EBUSY)
            name_holder(fd, path, err);
        else
            snprintf(err->text, sizeof err->text, "%.400s: %s", path, strerror(-r));
        return r;
    }
    if (ftruncate(fd, 0) < 0 || pwrite(fd, owner, strlen(owner), 0) < 0) {
        r = -errno;
        snprintf(err->text, sizeof err->text, "%.400s: %s", path, strerror(-r));
        return r;
    }
    return 0;
}

int run_lease_take(const char *run_dir, const char *owner, int *ret_fd, struct spec_error *err)
{
    char path[PATH_MAX];
    int fd, r = directory_make(run_dir);

    if (r == 0 && !path_of(path, run_dir, LEASE_FILE))
        r = -ENAMETOOLONG;
    if (r < 0) {
        snprintf(err->text, sizeof err->text, "%.400s: %s", run_dir, strerror(-r));
        return r;
    }
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        r = -errno;
        snprintf(err->text, sizeof err->text, "%.400s: %s", path, strerror(-r));
        return r;
    }
    r = hold(fd, owner, path, err);
    if (r < 0)
        close(fd);
    else
        *ret_fd = fd;
    return r;
}

void run_lease_let_go(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

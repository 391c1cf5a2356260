/* manifest.c - manifests as files, and that of a graph job's checkpoint (see manifest.h) */
#include "daemon/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pliant/job.h>

#include "store/directory.h"

struct manifest_read {
    struct doc_file doc;
    struct manifest m;
    struct manifest_vertex *vertices;
    struct manifest_part *parts;
};

/* ---- files ---------------------------------------------------------------------------------- */

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, bytes, n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        bytes += put;
        n -= (size_t)put;
    }
    return 0;
}

static int write_file(const char *path, const struct json *body)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), r;

    if (fd < 0)
        return -errno;
    r = write_all(fd, body->v, body->n);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

int manifest_replace(const char *dir, const struct json *body, struct spec_error *err)
{
    char path[PATH_MAX], fresh[PATH_MAX];
    int r = body->error;

    if (r == 0 && (snprintf(fresh, sizeof fresh, "%s/%s.new", dir, MANIFEST_FILE) >= PATH_MAX))
        r = -ENAMETOOLONG;
    snprintf(path, sizeof path, "%s/%s", dir, MANIFEST_FILE);
    if (r == 0)
        r = write_file(fresh, body);
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r == 0)
        r = directory_sync(dir);
    if (r < 0)
        snprintf(err->text, sizeof err->text, "%s/%s: %s", dir, MANIFEST_FILE, strerror(-r));
    return r;
}

bool manifest_exists(const char *dir)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s", dir, MANIFEST_FILE) < PATH_MAX &&
           access(path, F_OK) == 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

void manifest_write(struct json *j, const struct manifest *m)
{
    json_begin(j, NULL, '{');
    json_int(j, "version", MANIFEST_VERSION);
    json_string(j, "job", m->job);
    json_id(j, "id", m->id);
    json_bool(j, "savepoint", m->savepoint);
    json_begin(j, "vertices", '[');
    for (size_t i = 0; i < m->n_vertices; i++) {
        json_begin(j, NULL, '{');
        json_string(j, "vertex", m->vertices[i].name);
        json_uint(j, "parallelism", m->vertices[i].parallelism);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_begin(j, "parts", '[');
    for (size_t i = 0; i < m->n_parts; i++) {
        json_begin(j, NULL, '{');
        json_string(j, "vertex", m->vertices[m->parts[i].vertex].name);
        json_uint(j, "subtask", m->parts[i].subtask);
        json_uint(j, "bytes", m->parts[i].bytes);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
    json_line(j);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int check_version(const struct doc_file *f, struct spec_error *err)
{
    int64_t version;
    int r;

    if (f->root->kind != DOC_MAP)
        return doc_error(f, f->root, err, "is %s; accepted: a manifest",
                         doc_kind_name(f->root->kind));
    r = doc_int(f, f->root, "version", 1, MANIFEST_VERSION, &version, err);
    return r == -ENOENT
               ? doc_error(f, f->root, err, "version: missing; needed: %d", MANIFEST_VERSION)
               : r;
}

static int must(const struct doc_file *f, const struct doc *map, const char *key, int r,
                struct spec_error *err)
{
    return r == -ENOENT ? doc_error(f, map, err, "%s: missing", key) : r;
}

static int read_id(struct manifest_read *r, struct spec_error *err)
{
    const struct doc_file *f = &r->doc;
    const char *text;
    char *end;
    int e = must(f, f->root, "id", doc_string(f, f->root, "id", 20, &text, err), err);

    if (e < 0)
        return e;
    errno = 0;
    r->m.id = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return doc_error(f, doc_get(f->root, "id"), err, "\"%s\"; accepted: a number", text);
    e = must(f, f->root, "job", doc_string(f, f->root, "job", PLIANT_NAME_MAX, &r->m.job, err),
             err);
    if (e == 0)
        e = doc_optional(doc_bool(f, f->root, "savepoint", &r->m.savepoint, err));
    return e;
}

static int read_vertex(const struct doc_file *f, const struct doc *at, struct manifest_vertex *ret,
                       struct spec_error *err)
{
    int64_t parallelism;
    int e;

    if (at->kind != DOC_MAP)
        return doc_error(f, at, err, "is %s; accepted: a map", doc_kind_name(at->kind));
    e = must(f, at, "vertex", doc_string(f, at, "vertex", PLIANT_NAME_MAX, &ret->name, err), err);
    if (e == 0)
        e = must(f, at, "parallelism",
                 doc_int(f, at, "parallelism", 0, PLIANT_MAX_PARALLELISM, &parallelism, err), err);
    if (e == 0)
        ret->parallelism = (uint32_t)parallelism;
    return e;
}

static int vertex_index(const struct manifest_read *r, const char *name, uint32_t near,
                        uint32_t *ret)
{
    size_t n = r->m.n_vertices;

    for (size_t i = 0; i < n; i++) { /* parts come in the order of the vertices */
        uint32_t k = (uint32_t)((near + i) % n);

        if (strcmp(r->vertices[k].name, name) == 0) {
            *ret = k;
            return 0;
        }
    }
    return -ENOENT;
}

static int read_part(struct manifest_read *r, const struct doc *at, uint32_t near,
                     struct manifest_part *ret, struct spec_error *err)
{
    const struct doc_file *f = &r->doc;
    const char *name;
    int64_t subtask, bytes = 0;
    int e;

    if (at->kind != DOC_MAP)
        return doc_error(f, at, err, "is %s; accepted: a map", doc_kind_name(at->kind));
    e = must(f, at, "vertex", doc_string(f, at, "vertex", PLIANT_NAME_MAX, &name, err), err);
    if (e < 0)
        return e;
    if (vertex_index(r, name, near, &ret->vertex) < 0)
        return doc_error(f, at, err, "vertex \"%s\" is not among the vertices", name);
    e = must(f, at, "subtask",
             doc_int(f, at, "subtask", 0, (int64_t)r->vertices[ret->vertex].parallelism - 1,
                     &subtask, err),
             err);
    if (e == 0)
        e = doc_optional(doc_int(f, at, "bytes", 0, DOC_INTEGER_MAX, &bytes, err));
    if (e < 0)
        return e;
    ret->subtask = (uint32_t)subtask;
    ret->bytes = (uint64_t)bytes;
    return 0;
}

static int read_vertices(struct manifest_read *r, struct spec_error *err)
{
    const struct doc_file *f = &r->doc;
    const struct doc *list;
    int e = must(f, f->root, "vertices",
                 doc_container(f, f->root, "vertices", DOC_LIST, &list, err), err);

    if (e < 0)
        return e;
    r->vertices = calloc((size_t)list->n + 1, sizeof *r->vertices);
    if (!r->vertices)
        return doc_no_memory(f, err);
    r->m.vertices = r->vertices;
    for (const struct doc *c = list->child; c && e == 0; c = c->next)
        e = read_vertex(f, c, &r->vertices[r->m.n_vertices++], err);
    return e;
}

static int read_parts(struct manifest_read *r, struct spec_error *err)
{
    const struct doc_file *f = &r->doc;
    const struct doc *list;
    uint32_t near = 0;
    int e =
        must(f, f->root, "parts", doc_container(f, f->root, "parts", DOC_LIST, &list, err), err);

    if (e < 0)
        return e;
    r->parts = calloc((size_t)list->n + 1, sizeof *r->parts);
    if (!r->parts)
        return doc_no_memory(f, err);
    r->m.parts = r->parts;
    for (const struct doc *c = list->child; c && e == 0; c = c->next) {
        struct manifest_part *part = &r->parts[r->m.n_parts++];

        if (r->m.n_vertices == 0)
            return doc_error(f, c, err, "a part without vertices");
        e = read_part(r, c, near, part, err);
        near = part->vertex;
    }
    return e;
}

static int read_all(struct manifest_read *r, struct spec_error *err)
{
    int e = check_version(&r->doc, err);

    if (e == 0)
        e = read_id(r, err);
    if (e == 0)
        e = read_vertices(r, err);
    return e == 0 ? read_parts(r, err) : e;
}

int manifest_open(const char *dir, struct manifest_read **ret, struct spec_error *err)
{
    struct manifest_read *r = calloc(1, sizeof *r);
    char path[PATH_MAX];
    int e;

    if (!r)
        return -ENOMEM;
    if (snprintf(path, sizeof path, "%s/%s", dir, MANIFEST_FILE) >= PATH_MAX)
        e = -ENAMETOOLONG;
    else
        e = doc_read(path, MANIFEST_BYTES_MAX, &r->doc, err);
    if (e == 0)
        e = read_all(r, err);
    if (e < 0) {
        manifest_close(&r);
        return e == -EINVAL ? -EUCLEAN : e;
    }
    *ret = r;
    return 0;
}

const struct manifest *manifest_of(const struct manifest_read *r)
{
    return &r->m;
}

uint32_t manifest_parallelism(const struct manifest *m, const char *vertex)
{
    for (size_t i = 0; i < m->n_vertices; i++)
        if (strcmp(m->vertices[i].name, vertex) == 0)
            return m->vertices[i].parallelism;
    return 0;
}

bool manifest_has_part(const struct manifest *m, const char *vertex, uint32_t subtask)
{
    size_t low = 0, high = m->n_parts, v = 0;

    while (v < m->n_vertices && strcmp(m->vertices[v].name, vertex) != 0)
        v++;
    while (low < high) { /* they are in the order of vertices and subtasks */
        size_t mid = low + (high - low) / 2;
        const struct manifest_part *part = &m->parts[mid];

        if (part->vertex < v || (part->vertex == v && part->subtask < subtask))
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->n_parts && m->parts[low].vertex == v && m->parts[low].subtask == subtask;
}

void manifest_close(struct manifest_read **r)
{
    if (!*r)
        return;
    doc_free(&(*r)->doc);
    free((*r)->vertices);
    free((*r)->parts);
    free(*r);
    *r = NULL;
}

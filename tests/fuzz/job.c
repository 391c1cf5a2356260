/* job.c - any text as a job spec, and each of its lines as a line of a stream */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "spec/job_spec.h"
#include "spec/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A decoded tree is sound: counts, parents, kinds, texts. */
static void check_tree(const struct doc *d, int depth)
{
    uint32_t n = 0;

    assert(depth <= DOC_DEPTH_MAX && d->line > 0);
    assert(d->text || d->kind == DOC_LIST || d->kind == DOC_MAP);
    for (const struct doc *c = d->child; c; c = c->next, n++) {
        assert(c->parent == d && (c->key != NULL) == (d->kind == DOC_MAP));
        check_tree(c, depth + 1);
    }
    assert(n == d->n);
}

static void run_lines(const char *text, size_t size)
{
    struct doc_file f = {.name = "fuzz"};
    struct spec_error err;

    for (uint32_t line = 1; size > 0; line++) {
        const char *end = memchr(text, '\n', size);
        size_t n = end ? (size_t)(end - text) : size;

        if (doc_line(&f, text, n, line, &err) == 0)
            check_tree(f.root, 0);
        n += end != NULL;
        text += n;
        size -= n;
    }
    doc_free(&f);
}

static void run_job(const struct doc_file *f)
{
    struct options o = {0};
    struct job_spec spec;
    struct spec_error err = {""};

    check_tree(f->root, 0);
    if (job_spec_decode(f, f->root, &spec, &err) < 0) {
        assert(*err.text);
        return;
    }
    assert(pliant_job_vertices(spec.job) >= 1);
    options_add_job(&o, f, spec.config, spec.group, &err);
    options_free(&o);
    job_spec_free(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct doc_file f;
    struct spec_error err = {""};

    run_lines(text, size);
    if (doc_parse("fuzz", text, size, 1, &f, &err) < 0) {
        assert(*err.text);
        return 0;
    }
    run_job(&f);
    doc_free(&f);
    return 0;
}

/* trace.c - any bytes as a trace, strict and lenient, with and without a job
 *
 * Also: the quick decoder agrees with the general one on every line that it takes.
 */
#include <pliant/job.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spec/quick_line.h"
#include "spec/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static struct pliant_job *job(void)
{
    static const struct pliant_vertex_spec vertices[] = {{.id = "src", .parallelism = 4},
                                                         {.id = "map", .parallelism = 4}};
    static const struct pliant_job_spec spec = {.vertices = vertices, .n_vertices = 2};
    static struct pliant_job *made;

    if (!made)
        require(pliant_job_new(&spec, NULL, &made, NULL) == 0);
    return made;
}

/* The scan decides; what it lets pass reads without an error. */
static void read_trace(const char *text, size_t size, const struct trace_rules *rules)
{
    struct trace_summary sum = {0};
    struct trace_event ev = {0};
    struct spec_error err = {""};
    struct trace *t = NULL;
    uint64_t n = 0;
    int r = trace_of_text("fuzz", text, size, rules, &t, &err);

    if (r == 0)
        r = trace_scan(t, &sum, &err);
    require(r == 0 || (r < 0 && *err.text));
    while (r == 0 && trace_next(t, &ev, &err) == 1)
        n++;
    require(r < 0 || (n == sum.events && (n == 0 || ev.t_ms == sum.last_t_ms)));
    trace_close(&t);
}

static void require_same(const struct doc *a, const struct doc *b)
{
    require(a->kind == b->kind && a->n == b->n && a->line == b->line && a->truth == b->truth);
    require(!a->key == !b->key && (!a->key || strcmp(a->key, b->key) == 0));
    if (a->kind == DOC_STRING || a->kind == DOC_NUMBER)
        require(strcmp(a->text, b->text) == 0);
    for (a = a->child, b = b->child; a; a = a->next, b = b->next)
        require_same(a, b);
    require(!b);
}

static void compare(const char *line, size_t size)
{
    struct quick_line q = {.text = NULL};
    struct doc_file f = {.name = "fuzz"};
    struct doc *root = NULL;
    struct spec_error err;

    if (quick_line(&q, line, size, 1, &root) == 1) {
        require(doc_line(&f, line, size, 1, &err) == 0);
        require_same(root, f.root);
    }
    doc_free(&f);
    quick_line_free(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = text + size;

    read_trace(text, size, &(struct trace_rules){.job = job()});
    read_trace(text, size, &(struct trace_rules){.lenient = true});
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));

        compare(text, (size_t)((stop ? stop : end) - text));
        text = stop ? stop + 1 : end;
    }
    return 0;
}

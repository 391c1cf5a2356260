/* results.c - results of blocking edges: where they are, what agents say of them, when they go
 *
 *     ROOT/JOB/FROM-TO-EDGE/SUBTASK.ATTEMPT/N     ROOT: pliant.results.dir, else STATE/results
 *
 * Only agents touch the files. What a job that has ended leaves is deleted by one of them, which
 * says so; until then the store remembers it, and whoever begins a session is asked.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/agents_impl.h"
#include "daemon/results.h"

#define ROOT_OPTION "pliant.results.dir"
#define ROOT_MAX 3500  /* bytes: what is below it is a path as well */
#define SHOWN_NAME 100 /* bytes of a vertex's name in an edge's */
#define NOTE "results" /* of the daemon: {JOB: ROOT} of jobs that have ended */

/* What one job left. */
struct leavings {
    char job[STORE_ID];
    char *root;
};

struct results {
    char default_root[PATH_MAX];
    struct VEC(struct leavings) left;
    char last_node[PLIANT_NAME_MAX + 1]; /* whom was asked last */
};

static struct results *of(struct daemon *d)
{
    if (!d->results)
        d->results = need(calloc(1, sizeof *d->results));
    return d->results;
}

void results_close(struct daemon *d)
{
    if (!d->results)
        return;
    for (size_t i = 0; i < d->results->left.n; i++)
        free(d->results->left.v[i].root);
    vec_free(NULL, &d->results->left);
    free(d->results);
    d->results = NULL;
}

/* ---- where --------------------------------------------------------------------------------------
 */

int results_check(const struct daemon_job *job, struct spec_error *err)
{
    const char *root = job_path_option(job, ROOT_OPTION);

    if (!*root || (*root == '/' && strlen(root) <= ROOT_MAX))
        return 0;
    snprintf(err->text, sizeof err->text,
             "%s: " ROOT_OPTION ": \"%.200s\"; accepted: an absolute path of at most %d bytes",
             job->file, root, ROOT_MAX);
    return -EINVAL;
}

static const char *default_root(struct daemon *d)
{
    char *own = of(d)->default_root, *state;

    if (!*own) {
        state = realpath(d->opts.state_dir, NULL);
        snprintf(own, PATH_MAX, "%s/results", state ? state : d->opts.state_dir);
        free(state);
    }
    return own;
}

static const char *root_of(struct daemon *d, const struct daemon_job *job)
{
    const char *root = job_path_option(job, ROOT_OPTION);

    return *root ? root : default_root(d);
}

static const char *vertex_name(const struct daemon_job *job, uint32_t index)
{
    return pliant_job_vertex_name(job->spec.job, (pliant_vertex_id){index + 1});
}

#define EDGE_NAME (2 * SHOWN_NAME + 24)

static void edge_name(const struct daemon_job *job, size_t edge, char ret[EDGE_NAME])
{
    const struct pliant_edge_spec *e = pliant_job_edge(job->spec.job, edge);

    snprintf(ret, EDGE_NAME, "%.*s-%.*s-%zu", SHOWN_NAME, vertex_name(job, e->from), SHOWN_NAME,
             vertex_name(job, e->to), edge);
}

/* Edge `i` of the job if it is a blocking one, else NULL. */
static const struct pliant_edge_spec *blocking(const struct daemon_job *job, size_t i)
{
    const struct pliant_edge_spec *e = pliant_job_edge(job->spec.job, i);

    return e && e->exchange == PLIANT_BLOCKING ? e : NULL;
}

static bool has_any(const struct daemon_job *job)
{
    for (size_t i = 0; i < pliant_job_edges(job->spec.job); i++)
        if (blocking(job, i))
            return true;
    return false;
}

bool results_written_by(const struct daemon_job *job, pliant_vertex_id vertex)
{
    const struct pliant_edge_spec *e;

    for (size_t i = 0; i < pliant_job_edges(job->spec.job); i++)
        if ((e = blocking(job, i)) && e->from + 1 == vertex.v)
            return true;
    return false;
}

/* ---- what a task is told ------------------------------------------------------------------------
 */

/* What a task reads of an edge; the caller frees. */
static struct pliant_read *reads_of(const struct daemon_job *job, size_t edge, uint32_t subtask,
                                    size_t *ret_n)
{
    size_t n = pliant_reads(job->sched, edge, subtask, NULL, 0);
    struct pliant_read *v = need(calloc(n + 1, sizeof *v));

    pliant_reads(job->sched, edge, subtask, v, n);
    *ret_n = n;
    return v;
}

static void write_reads(const struct pliant_read *v, size_t n, struct json *j)
{
    json_begin(j, "reads", '[');
    for (size_t i = 0; i < n; i++) {
        json_begin(j, NULL, '[');
        json_uint(j, NULL, v[i].p0);
        json_uint(j, NULL, v[i].p1);
        json_uint(j, NULL, v[i].s0);
        json_uint(j, NULL, v[i].s1);
        json_end(j, ']');
    }
    json_end(j, ']');
}

/* Of the partitions that are read, those whose result is not of the first attempt. */
static void write_attempts(const struct daemon_job *job, uint32_t from, const struct pliant_read *v,
                           size_t n, struct json *j)
{
    uint32_t next = 0; /* the first one that was not looked at */
    struct pliant_task_info info;

    json_begin(j, "attempts", '[');
    for (size_t i = 0; i < n; i++)
        for (uint32_t p = v[i].p0 > next ? v[i].p0 : next; p <= v[i].p1; next = ++p) {
            if (!pliant_task_info(job->sched, (pliant_vertex_id){from + 1}, p, &info) ||
                info.attempt == 1)
                continue;
            json_begin(j, NULL, '[');
            json_uint(j, NULL, p);
            json_uint(j, NULL, info.attempt);
            json_end(j, ']');
        }
    json_end(j, ']');
}

static void write_input(const struct daemon_job *job, size_t edge, uint32_t subtask, struct json *j)
{
    uint32_t from = pliant_job_edge(job->spec.job, edge)->from;
    char name[EDGE_NAME];
    size_t n;
    struct pliant_read *v = reads_of(job, edge, subtask, &n);

    edge_name(job, edge, name);
    json_begin(j, NULL, '{');
    json_uint(j, "edge", edge);
    json_string(j, "from", vertex_name(job, from));
    json_string(j, "dir", name);
    write_reads(v, n, j);
    write_attempts(job, from, v, n, j);
    json_end(j, '}');
    free(v);
}

static void write_output(const struct daemon_job *job, size_t edge, uint32_t subtask,
                         struct json *j)
{
    char name[EDGE_NAME];

    edge_name(job, edge, name);
    json_begin(j, NULL, '{');
    json_uint(j, "edge", edge);
    json_string(j, "to", vertex_name(job, pliant_job_edge(job->spec.job, edge)->to));
    json_string(j, "dir", name);
    json_uint(j, "subpartitions", pliant_subpartitions(job->sched, edge, subtask));
    json_end(j, '}');
}

void results_write_deployment(struct daemon *d, const struct daemon_job *job,
                              const struct pliant_task *task, struct json *j)
{
    const struct pliant_edge_spec *e;
    size_t n = pliant_job_edges(job->spec.job);
    bool any = false;

    for (size_t i = 0; i < n; i++)
        any |= (e = blocking(job, i)) &&
               (e->from + 1 == task->vertex.v || e->to + 1 == task->vertex.v);
    if (!any)
        return;
    json_string(j, "results", root_of(d, job));
    json_begin(j, "inputs", '[');
    for (size_t i = 0; i < n; i++)
        if ((e = blocking(job, i)) && e->to + 1 == task->vertex.v)
            write_input(job, i, task->subtask, j);
    json_end(j, ']');
    json_begin(j, "outputs", '[');
    for (size_t i = 0; i < n; i++)
        if ((e = blocking(job, i)) && e->from + 1 == task->vertex.v)
            write_output(job, i, task->subtask, j);
    json_end(j, ']');
}

/* ---- what an agent says of a task that has ended
 * -------------------------------------------------- */

static const char *read_sizes(const struct doc *list, uint64_t *v)
{
    uint64_t sum = 0;

    for (const struct doc *d = list->child; d; d = d->next, v++) {
        if (d->kind != DOC_NUMBER || d->number < 0 || d->number > (double)PLIANT_BYTES_MAX ||
            d->number != (double)(uint64_t)d->number)
            return "a size that is no number of bytes up to 2^53";
        *v = (uint64_t)d->number;
        sum += *v;
        if (sum > PLIANT_BYTES_MAX)
            return "sizes of more than 2^53 bytes together";
    }
    return NULL;
}

static bool is_index(const struct doc *d)
{
    return d && d->kind == DOC_NUMBER && d->number >= 0 && d->number <= UINT32_MAX &&
           d->number == (double)(uint32_t)d->number;
}

static const char *read_output(const struct daemon_job *job, const struct pliant_task *task,
                               const struct doc *map, struct result_report *r)
{
    const struct doc *edge = doc_get(map, "edge"), *list = doc_get(map, "bytes");
    const struct pliant_edge_spec *e = is_index(edge) ? blocking(job, (size_t)edge->number) : NULL;
    struct pliant_output *out;
    uint64_t *bytes;

    if (!e || e->from + 1 != task->vertex.v)
        return "sizes for an edge that the task does not write";
    for (size_t i = 0; i < r->outputs.n; i++)
        if (r->outputs.v[i].edge == (uint32_t)edge->number)
            return "sizes for the same edge twice";
    if (!list || list->kind != DOC_LIST ||
        list->n != pliant_subpartitions(job->sched, (uint32_t)edge->number, task->subtask))
        return "another number of sizes than there are subpartitions";
    bytes = need(calloc((size_t)list->n + 1, sizeof *bytes));
    out = need(vec_push(NULL, &r->outputs));
    *out = (struct pliant_output){.edge = (uint32_t)edge->number, .n = list->n, .bytes = bytes};
    return read_sizes(list, bytes);
}

const char *results_read_sizes(const struct daemon_job *job, const struct pliant_task *task,
                               const struct doc *end, struct result_report *ret)
{
    const struct doc *list = doc_get(end, "outputs");
    const char *wrong = NULL;

    for (const struct doc *d = list ? list->child : NULL; d && !wrong; d = d->next)
        wrong = read_output(job, task, d, ret);
    if (wrong)
        results_report_free(ret);
    return wrong;
}

const char *results_read_lost(const struct daemon_job *job, const struct pliant_task *task,
                              const struct doc *end, struct pliant_event *failed)
{
    const struct doc *lost = doc_get(end, "input_lost");
    const struct doc *edge = lost ? doc_get(lost, "edge") : NULL;
    const struct doc *subtask = lost ? doc_get(lost, "subtask") : NULL;
    const struct doc *attempt = lost ? doc_get(lost, "attempt") : NULL;
    const struct pliant_edge_spec *e = is_index(edge) ? blocking(job, (size_t)edge->number) : NULL;
    struct pliant_task_info info;

    if (!lost)
        return NULL;
    if (!e || e->to + 1 != task->vertex.v || !is_index(subtask) || !is_index(attempt) ||
        !pliant_task_info(job->sched, (pliant_vertex_id){e->from + 1}, (uint32_t)subtask->number,
                          &info))
        return "a lost input that the task does not read";
    if (info.attempt != (uint32_t)attempt->number)
        return NULL; /* it is being written again already */
    failed->failure.input_lost = true;
    failed->failure.edge = (uint32_t)edge->number;
    failed->failure.producer = (uint32_t)subtask->number;
    return NULL;
}

void results_report_free(struct result_report *r)
{
    for (size_t i = 0; i < r->outputs.n; i++)
        free((uint64_t *)r->outputs.v[i].bytes);
    vec_free(NULL, &r->outputs);
}

/* ---- deleting
 * ------------------------------------------------------------------------------------- */

/* One after the other of those in session; NULL: there is none. */
static struct daemon_node *next_node(struct daemon *d)
{
    struct daemon_node *last = node_find(d, of(d)->last_node), *node = d->sessions;

    if (last && last->state == NODE_UP && last->by_peer.next)
        node = last->by_peer.next;
    if (node)
        snprintf(of(d)->last_node, sizeof of(d)->last_node, "%s", node->name);
    return node;
}

void results_release(struct daemon *d, struct daemon_job *job, const struct pliant_action *a)
{
    char result[EDGE_NAME + 32], name[EDGE_NAME];
    struct daemon_node *node = next_node(d);

    if (!node)
        return; /* it goes with all the others */
    edge_name(job, a->result.edge, name);
    snprintf(result, sizeof result, "%s/%" PRIu32 ".%" PRIu32, name, a->result.producer.subtask,
             a->result.producer.attempt);
    discard_results(d, node, job->id, root_of(d, job), result);
}

static void store_left(struct daemon *d)
{
    const struct results *r = of(d);
    struct json j;
    char *text;

    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    for (size_t i = 0; i < r->left.n; i++)
        json_string(&j, r->left.v[i].job, r->left.v[i].root);
    json_end(&j, '}');
    text = need_json(&j);
    store_note_put(d->store, "", NOTE, text);
    free(text);
}

static struct leavings *add_left(struct daemon *d, const char *job, const char *root)
{
    struct leavings *left = need(vec_push(NULL, &of(d)->left));

    *left = (struct leavings){.root = need_text(root)};
    snprintf(left->job, sizeof left->job, "%s", job);
    return left;
}

/* All that the job has there goes. */
static void leave(struct daemon *d, const struct daemon_job *job, const char *root)
{
    struct daemon_node *node = next_node(d);

    add_left(d, job->id, root);
    store_left(d);
    if (node)
        discard_results(d, node, job->id, root, NULL);
}

void results_of_ended_job(struct daemon *d, struct daemon_job *job)
{
    if (has_any(job))
        leave(d, job, root_of(d, job));
}

/* One without a spec may have some, where its options say; none if these are damaged as well. */
void results_of_damaged_job(struct daemon *d, struct daemon_job *job)
{
    struct doc_file f = {0};
    struct spec_error err;
    const struct doc *root;

    if (job->spec.job) {
        results_of_ended_job(d, job);
        return;
    }
    if (doc_parse("options", job->options_json, strlen(job->options_json), 1, &f, &err) == 0) {
        root = doc_get(f.root, ROOT_OPTION);
        leave(d, job,
              root && root->kind == DOC_STRING ? path_of_option(root->text) : default_root(d));
    }
    doc_free(&f);
}

void results_node_back(struct daemon *d, struct daemon_node *node)
{
    const struct results *r = of(d);

    for (size_t i = 0; i < r->left.n; i++)
        discard_results(d, node, r->left.v[i].job, r->left.v[i].root, NULL);
}

void results_discarded(struct daemon *d, const struct doc *body)
{
    const struct doc *job = doc_get(body, "job"), *error = doc_get(body, "error");
    struct results *r = of(d);

    for (size_t i = 0; i < r->left.n && job && job->kind == DOC_STRING; i++) {
        if (strcmp(r->left.v[i].job, job->text) != 0)
            continue;
        if (error && error->kind == DOC_STRING)
            log_line(4,
                     "msg=\"results can't be deleted; nobody tries again\" job=%s dir=%s error=%s",
                     r->left.v[i].job, log_quoted(r->left.v[i].root).v, log_quoted(error->text).v);
        free(r->left.v[i].root);
        r->left.v[i] = r->left.v[--r->left.n];
        store_left(d);
        return;
    }
}

void results_recover(struct daemon *d)
{
    struct doc_file f = {0};
    struct spec_error err;
    const char *text;

    if (store_note_get(d->store, "", NOTE, &text) < 0)
        return;
    if (doc_parse(NOTE, text, strlen(text), 1, &f, &err) == 0)
        for (const struct doc *c = f.root->child; c; c = c->next)
            if (c->kind == DOC_STRING)
                add_left(d, c->key, c->text);
    doc_free(&f);
}

/* trace_history.c - see trace_history.h */
#include "spec/trace_history.h"

#include <errno.h>
#include <string.h>

#include "spec/memory.h"
#include "util/hash.h"

#define hash_alloc spec_memory

/* A node that is up. */
struct history_node {
    UT_hash_handle hh;
    uint64_t incarnation;
    uint32_t slots;
    bool draining;
    char name[];
};

/* What doc_error() answers, as "does not fit". */
static int misfit(int doc_error_answer)
{
    (void)doc_error_answer;
    return HISTORY_MISFIT;
}

static struct history_node *find(const struct trace_history *h, const char *name)
{
    struct history_node *node;

    HASH_FIND_STR(h->nodes, name, node);
    return node;
}

static struct history_node *new_node(struct trace_history *h, const struct trace_event *ev)
{
    size_t size = strlen(ev->node) + 1;
    struct history_node *node = mem_resize(spec_memory, NULL, sizeof *node + size, 1);

    if (!node)
        return NULL;
    memcpy(node->name, ev->node, size);
    HASH_ADD_STR(h->nodes, name, node);
    if (!node->hh.tbl) {
        mem_free(spec_memory, node);
        return NULL;
    }
    return node;
}

static int arrive(struct trace_history *h, const struct doc_file *f, const struct doc *object,
                  struct trace_event *ev, struct spec_error *err)
{
    struct history_node *node;

    if (HASH_COUNT(h->nodes) >= PLIANT_MAX_NODES)
        return doc_error(f, doc_get(object, "node"), err, "more than %u nodes are up, the limit",
                         PLIANT_MAX_NODES);
    if (h->slots + ev->slots > PLIANT_MAX_SLOTS)
        return doc_error(f, doc_get(object, "slots"), err,
                         "the nodes that are up have more than %u slots, the limit",
                         PLIANT_MAX_SLOTS);
    node = new_node(h, ev);
    if (!node)
        return doc_no_memory(f, err);
    node->incarnation = ev->incarnation = ++h->arrivals;
    node->slots = ev->slots;
    node->draining = false;
    h->slots += node->slots;
    return 0;
}

static int node_up(struct trace_history *h, const struct doc_file *f, const struct doc *object,
                   struct trace_event *ev, struct spec_error *err)
{
    struct history_node *node = find(h, ev->node);

    if (!node)
        return arrive(h, f, object, ev, err);
    if (!node->draining)
        return misfit(
            doc_error(f, doc_get(object, "node"), err, "node \"%s\" is up already", ev->node));
    if (node->slots != ev->slots)
        return misfit(doc_error(f, doc_get(object, "slots"), err,
                                "node \"%s\" drains with %u slots: a node_up that withdraws "
                                "the drain has the same",
                                ev->node, node->slots));
    node->draining = false;
    ev->withdraws = true;
    ev->incarnation = node->incarnation;
    return 0;
}

static int node_leaves(struct trace_history *h, const struct doc_file *f, const struct doc *object,
                       struct trace_event *ev, struct spec_error *err)
{
    struct history_node *node = find(h, ev->node);

    if (!node)
        return misfit(
            doc_error(f, doc_get(object, "node"), err, "node \"%s\" is not up", ev->node));
    ev->incarnation = node->incarnation;
    if (ev->kind == TRACE_NODE_DRAIN) {
        node->draining = true;
        return 0;
    }
    h->slots -= node->slots;
    HASH_DEL(h->nodes, node);
    mem_free(spec_memory, node);
    return 0;
}

static int task(const struct trace_history *h, const struct doc_file *f, const struct doc *object,
                struct trace_event *ev, struct spec_error *err)
{
    if (!h->job)
        return 0;
    ev->vertex_id = pliant_job_vertex_find(h->job, ev->vertex);
    if (!ev->vertex_id.v)
        return misfit(doc_error(f, doc_get(object, "vertex"), err, "the job has no vertex \"%s\"",
                                ev->vertex));
    if (ev->input_lost && ev->edge >= pliant_job_edges(h->job))
        return misfit(doc_error(f, doc_get(object, "edge"), err,
                                "the job has %zu edges; accepted: the index of one, from 0",
                                pliant_job_edges(h->job)));
    return 0;
}

/* What only the workers of a group do. */
static int of_group(const struct trace_history *h, const struct doc_file *f,
                    const struct doc *object, struct spec_error *err)
{
    if (!h->job || pliant_job_is_group(h->job))
        return 0;
    return misfit(
        doc_error(f, doc_get(object, "ev"), err, "accepted only where the job is a worker group"));
}

static int worker(const struct trace_history *h, const struct doc_file *f, const struct doc *object,
                  struct trace_event *ev, struct spec_error *err)
{
    int r = of_group(h, f, object, err);

    return r ? r : task(h, f, object, ev, err);
}

static int requirements(const struct trace_history *h, const struct doc_file *f,
                        const struct doc *object, const struct trace_event *ev,
                        struct spec_error *err)
{
    if (!h->job)
        return 0;
    for (size_t i = 0; i < ev->n_bounds; i++) {
        const char *vertex = ev->bounds[i].vertex;

        if (!pliant_job_vertex_find(h->job, vertex).v)
            return misfit(doc_error(f, doc_get(doc_get(object, "vertices"), vertex), err,
                                    "the job has no vertex \"%s\"", vertex));
    }
    return 0;
}

static int fit(struct trace_history *h, const struct doc_file *f, const struct doc *object,
               struct trace_event *ev, struct spec_error *err)
{
    switch (ev->kind) {
    case TRACE_NODE_UP:
        return node_up(h, f, object, ev, err);
    case TRACE_NODE_DOWN:
    case TRACE_NODE_DRAIN:
        return node_leaves(h, f, object, ev, err);
    case TRACE_TASK_RUNNING:
    case TRACE_TASK_FINISHED:
    case TRACE_TASK_CANCELED:
    case TRACE_TASK_FAILED:
        return task(h, f, object, ev, err);
    case TRACE_LAUNCHED:
    case TRACE_LAUNCH_FAILED:
        return of_group(h, f, object, err);
    case TRACE_WORKER_EXIT:
    case TRACE_REPORT:
        return worker(h, f, object, ev, err);
    case TRACE_REQUIREMENTS:
        return requirements(h, f, object, ev, err);
    case TRACE_CHECKPOINT:
    case TRACE_CHECKPOINT_FAILED:
    case TRACE_SAVEPOINT_COMPLETED:
    case TRACE_SAVEPOINT_FAILED:
    case TRACE_GLOBAL_FAILURE:
    case TRACE_CREATION_FAILED:
    case TRACE_CANCEL:
    case TRACE_SUSPEND:
    case TRACE_STOP_WITH_SAVEPOINT:
    case TRACE_KINDS:
        return 0;
    }
    return 0;
}

int trace_history_take(struct trace_history *h, const struct doc_file *f, const struct doc *object,
                       struct trace_event *ev, struct spec_error *err)
{
    if (ev->t_ms < h->t_ms)
        return doc_error(f, doc_get(object, "t"), err, "time goes back from %lld to %lld",
                         (long long)h->t_ms, (long long)ev->t_ms);
    h->t_ms = ev->t_ms;
    return fit(h, f, object, ev, err);
}

void trace_history_free(struct trace_history *h)
{
    struct history_node *node, *next;

    HASH_ITER (hh, h->nodes, node, next) {
        HASH_DEL(h->nodes, node);
        mem_free(spec_memory, node);
    }
    *h = (struct trace_history){.job = h->job};
}

/* group_notices.c - nodes of a worker group will go: every rank is told the same [W-PRE-3]; who
 * does not link our library finds it in a file, and may have asked for a signal
 *
 * The notice names the nodes that drain and, for each, all ranks of its failure domain. When the
 * group stops at the latest never moves later [W-PRE-8].
 */
#include "daemon/groups_impl.h"

#include <stdlib.h>
#include <string.h>

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

struct ranks {
    struct VEC(uint32_t) v;
};

static bool shares_domain(const struct daemon_node *a, const struct daemon_node *b)
{
    return a == b || (a->domain && b->domain && strcmp(a->domain, b->domain) == 0);
}

static void add_ranks(const struct daemon_job *job, const struct daemon_node *node,
                      struct ranks *ranks)
{
    for (const struct daemon_task *t = job->tasks; t; t = t->hh.next)
        if (shares_domain(t->node, node))
            *(uint32_t *)need(vec_push(NULL, &ranks->v)) = t->key.subtask;
}

/* In order, each once [W-PRE-4]. */
static void write_ranks(struct json *j, const char *node, struct ranks *ranks)
{
    if (ranks->v.n > 0)
        qsort(ranks->v.v, ranks->v.n, sizeof *ranks->v.v, by_number);
    json_begin(j, node, '[');
    for (size_t i = 0; i < ranks->v.n; i++)
        if (i == 0 || ranks->v.v[i] != ranks->v.v[i - 1])
            json_uint(j, NULL, ranks->v.v[i]);
    json_end(j, ']');
}

static bool has_task(const struct daemon_job *job, const struct daemon_node *node)
{
    for (const struct daemon_task *t = job->tasks; t; t = t->hh.next)
        if (t->node == node)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct daemon_node *const *)a)->name, (*(struct daemon_node *const *)b)->name);
}

struct leaving {
    struct VEC(struct daemon_node *) nodes; /* by name */
    int64_t deadline_at_ms;                 /* the earliest that was given [W-PRE-6] */
};

static void find_leaving(struct daemon *d, const struct daemon_job *job, struct leaving *ret)
{
    *ret = (struct leaving){.deadline_at_ms = PLIANT_NEVER};
    for (struct daemon_node *node = d->nodes; node; node = node->hh.next) {
        if (!node->draining || !has_task(job, node))
            continue;
        *(struct daemon_node **)need(vec_push(NULL, &ret->nodes)) = node;
        if (node->drain_end_at_ms < ret->deadline_at_ms)
            ret->deadline_at_ms = node->drain_end_at_ms;
    }
    if (ret->nodes.n > 0)
        qsort(ret->nodes.v, ret->nodes.n, sizeof(struct daemon_node *), by_name);
}

static void note_stop(struct daemon *d, struct daemon_job *job, const struct leaving *l)
{
    struct group *g = job->group;
    int64_t default_ms = job->config->group.default_drain_deadline_ms;

    if (l->nodes.n == 0)
        g->stop_at_ms = PLIANT_NEVER; /* all of them stay */
    for (size_t i = 0; i < l->nodes.n; i++) {
        int64_t end_ms = l->nodes.v[i]->drain_end_at_ms;

        if (end_ms == PLIANT_NEVER)
            end_ms = d->clock.now_ms + default_ms; /* [W-PRE-7] */
        if (end_ms < g->stop_at_ms)
            g->stop_at_ms = end_ms;
    }
}

static void write_info(struct daemon *d, struct daemon_job *job, const struct leaving *l,
                       struct json *j)
{
    struct ranks ranks = {0}, all = {0};

    json_begin(j, "info", '{');
    if (l->deadline_at_ms == PLIANT_NEVER)
        json_null(j, "deadline_ms");
    else
        json_int(j, "deadline_ms", clock_to_unix(&d->clock, l->deadline_at_ms));
    json_int(j, "stop_at_ms", clock_to_unix(&d->clock, job->group->stop_at_ms));
    json_begin(j, "preempted_node_to_ranks", '{');
    for (size_t i = 0; i < l->nodes.n; i++) {
        ranks.v.n = 0;
        add_ranks(job, l->nodes.v[i], &ranks);
        add_ranks(job, l->nodes.v[i], &all);
        write_ranks(j, l->nodes.v[i]->name, &ranks);
    }
    json_end(j, '}');
    json_begin(j, "preempted_node_ids", '[');
    for (size_t i = 0; i < l->nodes.n; i++)
        json_string(j, NULL, l->nodes.v[i]->name);
    json_end(j, ']');
    write_ranks(j, "preempted_ranks", &all);
    json_end(j, '}');
    vec_free(NULL, &ranks.v);
    vec_free(NULL, &all.v);
}

static void write_signal(const struct daemon_job *job, struct json *j)
{
    const char *name = options_text(&job->options, "worker-group.preemption-signal");

    if (strcmp(name, "none") != 0)
        json_string(j, "signal", name);
}

void group_notify(struct daemon *d, struct daemon_job *job)
{
    struct leaving l;
    struct json j;

    find_leaving(d, job, &l);
    note_stop(d, job, &l);
    json_init(&j, NULL);
    json_begin(&j, NULL, '{');
    json_string(&j, "job", job->id);
    json_uint(&j, "attempt", job->tasks ? job->tasks->key.attempt : 0);
    if (l.nodes.n > 0) {
        write_info(d, job, &l, &j);
        write_signal(job, &j);
    } else {
        json_null(&j, "info"); /* [W-PRE-18] */
    }
    json_end(&j, '}');
    for (struct daemon_node *node = d->nodes; node; node = node->hh.next)
        if (node->state == NODE_UP && has_task(job, node))
            outbox_to_node(d, node, MESSAGE_NOTICE, &j);
    json_free(&j);
    vec_free(NULL, &l.nodes);
}

void groups_node_undrained(struct daemon *d, const struct daemon_node *node)
{
    for (struct daemon_job *job = d->jobs; job; job = job->hh.next)
        if (job->group && job->sched && !job->ended_unix_ms && has_task(job, node))
            group_notify(d, job);
}

int64_t group_kill_at_ms(const struct daemon_job *job)
{
    int64_t stop_ms = job->group ? job->group->stop_at_ms : PLIANT_NEVER;

    return stop_ms == PLIANT_NEVER ? PLIANT_NEVER
                                   : stop_ms + job->config->group.preemption_grace_ms;
}

/* regions.c - see regions.h
 *
 * Components by union-find, then Tarjan's search over them with a stack of its own: chains of
 * tens of thousands of components occur. An all-to-all edge that cuts would be an arc for each
 * pair of tasks; it becomes a hub, a node that all producers point to and that points to all
 * consumers: the same circles, and as many arcs as tasks. */
#include "graph/regions.h"

#include <errno.h>
#include <string.h>

#include "util/vec.h"

#define NONE UINT32_MAX

/* ---- components -------------------------------------------------------------------------- */

static uint32_t find(uint32_t *parent, uint32_t task)
{
    while (parent[task] != task) {
        parent[task] = parent[parent[task]];
        task = parent[task];
    }
    return task;
}

/* The lower one becomes the root, so that a component is named by its first task. */
static void join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = find(parent, a);
    b = find(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static void join_edge(const struct topology *t, uint32_t e, uint32_t *parent)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t from = t->first_task[edge->from], to = t->first_task[edge->to];
    uint32_t consumers = topology_parallelism(t, edge->to),
             producers = topology_parallelism(t, edge->from);

    if (topology_all_to_all(t, e)) {
        for (uint32_t p = 0; p < producers; p++)
            join(parent, from + p, to);
        for (uint32_t c = 1; c < consumers; c++)
            join(parent, to, to + c);
        return;
    }
    for (uint32_t c = 0; c < consumers; c++) {
        struct range r = topology_producers(t, e, c);

        for (uint32_t p = r.first; p < r.end; p++)
            join(parent, from + p, to + c);
    }
}

/* component[task], numbered by their first tasks. */
static uint32_t find_components(const struct topology *t, uint32_t *component)
{
    uint32_t n = 0, tasks = topology_tasks(t);

    for (uint32_t i = 0; i < tasks; i++)
        component[i] = i;
    for (uint32_t e = 0; e < t->job->n_edges; e++)
        if (t->job->edges[e].exchange == PLIANT_PIPELINED)
            join_edge(t, e, component);
    for (uint32_t i = 0; i < tasks; i++)
        component[i] = find(component, i);
    /* a root comes before the others of its component */
    for (uint32_t i = 0; i < tasks; i++)
        component[i] = component[i] == i ? n++ : component[component[i]];
    return n;
}

/* ---- arcs: which component waits for which ------------------------------------------------ */

struct arc {
    uint32_t from, to;
};

struct arcs {
    struct VEC(struct arc) all;
    uint32_t n_nodes; /* components, then hubs */
    uint32_t *first;  /* [n_nodes + 1] into to[] */
    uint32_t *to;
};

static bool add_arc(struct arcs *arcs, const struct pliant_alloc *a, uint32_t from, uint32_t to)
{
    struct arc *arc;

    if (from == to)
        return true;
    arc = vec_push(a, &arcs->all);
    if (arc)
        *arc = (struct arc){from, to};
    return arc != NULL;
}

static bool add_hub(struct arcs *arcs, const struct pliant_alloc *a, const struct topology *t,
                    const struct pliant_edge_spec *edge, const uint32_t *component)
{
    uint32_t hub = arcs->n_nodes++;

    for (uint32_t i = 0; i < topology_parallelism(t, edge->from); i++)
        if (!add_arc(arcs, a, component[t->first_task[edge->from] + i], hub))
            return false;
    for (uint32_t i = 0; i < topology_parallelism(t, edge->to); i++)
        if (!add_arc(arcs, a, hub, component[t->first_task[edge->to] + i]))
            return false;
    return true;
}

static bool add_pointwise(struct arcs *arcs, const struct pliant_alloc *a, const struct topology *t,
                          uint32_t e, const uint32_t *component)
{
    const struct pliant_edge_spec *edge = &t->job->edges[e];
    uint32_t from = t->first_task[edge->from], to = t->first_task[edge->to];

    for (uint32_t c = 0; c < topology_parallelism(t, edge->to); c++) {
        struct range r = topology_producers(t, e, c);

        for (uint32_t p = r.first; p < r.end; p++)
            if (!add_arc(arcs, a, component[from + p], component[to + c]))
                return false;
    }
    return true;
}

static bool sort_arcs(struct arcs *arcs, const struct pliant_alloc *a)
{
    arcs->first = mem_zero(a, (size_t)arcs->n_nodes + 2, sizeof *arcs->first);
    arcs->to = mem_resize(a, NULL, arcs->all.n + 1, sizeof *arcs->to);
    if (!arcs->first || !arcs->to)
        return false;
    for (size_t i = 0; i < arcs->all.n; i++)
        arcs->first[arcs->all.v[i].from + 2]++;
    for (uint32_t n = 0; n < arcs->n_nodes; n++)
        arcs->first[n + 2] += arcs->first[n + 1];
    for (size_t i = 0; i < arcs->all.n; i++)
        arcs->to[arcs->first[arcs->all.v[i].from + 1]++] = arcs->all.v[i].to;
    return true;
}

static bool find_arcs(struct arcs *arcs, const struct pliant_alloc *a, const struct topology *t,
                      const uint32_t *component, uint32_t n_components)
{
    *arcs = (struct arcs){.n_nodes = n_components};
    for (uint32_t e = 0; e < t->job->n_edges; e++) {
        const struct pliant_edge_spec *edge = &t->job->edges[e];

        if (edge->exchange == PLIANT_PIPELINED)
            continue;
        if (!(topology_all_to_all(t, e) ? add_hub(arcs, a, t, edge, component)
                                        : add_pointwise(arcs, a, t, e, component)))
            return false;
    }
    return sort_arcs(arcs, a);
}

static void arcs_free(struct arcs *arcs, const struct pliant_alloc *a)
{
    vec_free(a, &arcs->all);
    mem_free(a, arcs->first);
    mem_free(a, arcs->to);
}

/* ---- circles ------------------------------------------------------------------------------ */

/* Tarjan's numbers of a node; `next` is the arc to look at when the search comes back to it. */
struct visit {
    uint32_t index, low, next;
    uint32_t set; /* strongly connected set, by order of completion; NONE: on the stack */
};

struct search {
    const struct arcs *arcs;
    struct visit *visits;   /* [n_nodes] */
    uint32_t *path, *stack; /* [n_nodes] */
    uint32_t n_path, n_stack, n_seen, n_sets;
};

static void enter(struct search *s, uint32_t node)
{
    s->visits[node] = (struct visit){
        .index = s->n_seen, .low = s->n_seen, .next = s->arcs->first[node], .set = NONE};
    s->n_seen++;
    s->path[s->n_path++] = node;
    s->stack[s->n_stack++] = node;
}

static void leave(struct search *s, uint32_t node)
{
    struct visit *v = &s->visits[node];

    s->n_path--;
    if (v->low == v->index) {
        uint32_t member;

        do {
            member = s->stack[--s->n_stack];
            s->visits[member].set = s->n_sets;
        } while (member != node);
        s->n_sets++;
    }
    if (s->n_path > 0) {
        struct visit *back = &s->visits[s->path[s->n_path - 1]];

        back->low = back->low < v->low ? back->low : v->low;
    }
}

static void search_from(struct search *s, uint32_t root)
{
    enter(s, root);
    while (s->n_path > 0) {
        uint32_t node = s->path[s->n_path - 1];
        struct visit *v = &s->visits[node];
        struct visit *other;

        if (v->next == s->arcs->first[node + 1]) {
            leave(s, node);
            continue;
        }
        other = &s->visits[s->arcs->to[v->next++]];
        if (other->index == NONE)
            enter(s, (uint32_t)(other - s->visits));
        else if (other->set == NONE && other->index < v->low)
            v->low = other->index;
    }
}

static bool search_all(struct search *s, const struct arcs *arcs, const struct pliant_alloc *a)
{
    size_t n = (size_t)arcs->n_nodes + 1;

    *s = (struct search){.arcs = arcs,
                         .visits = mem_resize(a, NULL, n, sizeof *s->visits),
                         .path = mem_resize(a, NULL, n, sizeof *s->path),
                         .stack = mem_resize(a, NULL, n, sizeof *s->stack)};
    if (!s->visits || !s->path || !s->stack)
        return false;
    for (uint32_t node = 0; node < arcs->n_nodes; node++)
        s->visits[node].index = NONE;
    for (uint32_t node = 0; node < arcs->n_nodes; node++)
        if (s->visits[node].index == NONE)
            search_from(s, node);
    return true;
}

static void search_free(struct search *s, const struct pliant_alloc *a)
{
    mem_free(a, s->visits);
    mem_free(a, s->path);
    mem_free(a, s->stack);
}

/* ---- regions ------------------------------------------------------------------------------ */

/* Sets complete in reverse topological order. Those of hubs alone are no regions. */
static uint32_t number_sets(const struct search *s, uint32_t n_components, uint32_t *number)
{
    uint32_t n = 0;

    memset(number, 0, s->n_sets * sizeof *number);
    for (uint32_t c = 0; c < n_components; c++)
        number[s->visits[c].set] = 1;
    for (uint32_t set = s->n_sets; set-- > 0;)
        number[set] = number[set] ? n++ : NONE;
    return n;
}

static bool list_members(struct regions *r, uint32_t tasks)
{
    r->first = mem_zero(r->alloc, (size_t)r->n + 2, sizeof *r->first);
    r->members = mem_resize(r->alloc, NULL, (size_t)tasks + 1, sizeof *r->members);
    if (!r->first || !r->members)
        return false;
    for (uint32_t i = 0; i < tasks; i++)
        r->first[r->of_task[i] + 2]++;
    for (uint32_t n = 0; n < r->n; n++)
        r->first[n + 2] += r->first[n + 1];
    for (uint32_t i = 0; i < tasks; i++)
        r->members[r->first[r->of_task[i] + 1]++] = i;
    return true;
}

static bool from_components(struct regions *r, const struct topology *t, uint32_t *component,
                            uint32_t n_components)
{
    struct arcs arcs;
    struct search search = {0};
    uint32_t *number = NULL;
    bool done = find_arcs(&arcs, r->alloc, t, component, n_components) &&
                search_all(&search, &arcs, r->alloc);

    if (done)
        number = mem_resize(r->alloc, NULL, (size_t)search.n_sets + 1, sizeof *number);
    done = number != NULL;
    if (done) {
        r->n = number_sets(&search, n_components, number);
        for (uint32_t i = 0; i < topology_tasks(t); i++)
            component[i] = number[search.visits[component[i]].set];
    }
    mem_free(r->alloc, number);
    search_free(&search, r->alloc);
    arcs_free(&arcs, r->alloc);
    return done;
}

int regions_init(struct regions *r, const struct topology *t, const struct pliant_alloc *a)
{
    uint32_t tasks = topology_tasks(t), n_components;

    *r = (struct regions){.alloc = a, .n_tasks = tasks};
    r->of_task = mem_resize(a, NULL, (size_t)tasks + 1, sizeof *r->of_task);
    if (!r->of_task)
        return -ENOMEM;
    n_components = find_components(t, r->of_task);
    if (!from_components(r, t, r->of_task, n_components) || !list_members(r, tasks)) {
        regions_free(r);
        return -ENOMEM;
    }
    return 0;
}

int regions_begin(struct regions *r, const struct pliant_alloc *a)
{
    *r = (struct regions){.alloc = a};
    r->first = mem_zero(a, 1, sizeof *r->first);
    return r->first ? 0 : -ENOMEM;
}

static bool make_room(struct regions *r, size_t tasks)
{
    size_t cap;

    if (tasks <= r->cap)
        return true;
    cap = vec_grown(r->cap, tasks);
    if (!array_grow(r->alloc, &r->of_task, r->cap, cap, sizeof *r->of_task) ||
        !array_grow(r->alloc, &r->members, r->cap, cap, sizeof *r->members) ||
        !array_grow(r->alloc, &r->first, r->cap + 1, cap + 1, sizeof *r->first))
        return false;
    r->cap = cap;
    return true;
}

int regions_add_single(struct regions *r, uint32_t n)
{
    if (!make_room(r, (size_t)r->n_tasks + n))
        return -ENOMEM;
    for (; n > 0; n--) {
        uint32_t task = r->n_tasks++;

        r->of_task[task] = r->n;
        r->members[task] = task;
        r->first[++r->n] = task + 1;
    }
    return 0;
}

void regions_free(struct regions *r)
{
    mem_free(r->alloc, r->of_task);
    mem_free(r->alloc, r->first);
    mem_free(r->alloc, r->members);
    *r = (struct regions){0};
}

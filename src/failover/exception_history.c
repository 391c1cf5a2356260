/* exception_history.c - see exception_history.h */
#include "failover/exception_history.h"

#include <errno.h>
#include <string.h>

void failures_init(struct failures *f, const struct pliant_alloc *a, uint32_t size)
{
    *f = (struct failures){.alloc = a, .size = size};
}

static void item_free(const struct pliant_alloc *a, struct pliant_failure_item *item)
{
    mem_free(a, (void *)(uintptr_t)item->node);
    mem_free(a, (void *)(uintptr_t)item->cause);
    mem_free(a, (void *)(uintptr_t)item->labels);
}

static void entry_clear(const struct pliant_alloc *a, struct failure_entry *entry)
{
    for (size_t i = 0; i < entry->items.n; i++)
        item_free(a, &entry->items.v[i]);
    vec_free(a, &entry->items);
    entry->n_more = 0;
}

static void entry_free(const struct pliant_alloc *a, struct failure_entry *entry)
{
    entry_clear(a, entry);
    mem_free(a, entry);
}

void failures_bury(struct failures *f)
{
    while (f->dead) {
        struct failure_entry *entry = f->dead;

        f->dead = entry->next_dead;
        entry_free(f->alloc, entry);
    }
}

void failures_free(struct failures *f)
{
    failures_bury(f);
    entry_clear(f->alloc, &f->present);
    for (uint32_t i = 0; i < f->n; i++)
        entry_free(f->alloc, f->ring[(f->first + i) % f->size]);
    mem_free(f->alloc, f->ring);
    f->ring = NULL;
    f->n = 0;
}

static struct label_facts facts_of(const struct failures *f, const struct pliant_failure_item *item)
{
    bool of_task = item->task.vertex.v != 0;
    bool lost =
        item->reason == PLIANT_REASON_NODE_LOST || item->reason == PLIANT_REASON_DRAINING_NODE_LOST;

    return (struct label_facts){
        .kind = lost      ? LABEL_KIND_NODE
                : of_task ? LABEL_KIND_TASK
                          : LABEL_KIND_GLOBAL,
        .exit_code = item->exit_code,
        .cause = item->cause,
        .node = item->node,
        .vertex = of_task ? pliant_job_vertex_name(f->job, item->task.vertex) : ""};
}

uint32_t failures_labels_of(const struct failures *f, const struct pliant_failure_item *item,
                            struct pliant_label ret[LABEL_KEYS_MAX])
{
    struct label_facts facts;

    if (!f->rules)
        return 0;
    facts = facts_of(f, item);
    return label_rules_apply(f->rules, &facts, ret);
}

int failures_label(const struct failures *f, struct pliant_failure_item *item)
{
    struct pliant_label found[LABEL_KEYS_MAX], *labels;
    uint32_t n = failures_labels_of(f, item, found);

    if (n == 0)
        return 0;
    labels = mem_resize(f->alloc, NULL, n, sizeof *labels);
    if (!labels)
        return -ENOMEM;
    memcpy(labels, found, n * sizeof *labels);
    item->labels = labels;
    item->n_labels = n;
    return 0;
}

int failures_add(struct failures *f, const struct pliant_failure_item *item)
{
    struct pliant_failure_item copy = *item, *place;

    if (f->present.items.n == FAILURES_KEPT) {
        f->present.n_more++;
        return 0;
    }
    copy.node = mem_text(f->alloc, item->node ? item->node : "", PLIANT_NAME_MAX);
    copy.cause = mem_text(f->alloc, item->cause ? item->cause : "", PLIANT_CAUSE_MAX);
    copy.labels = NULL;
    copy.n_labels = 0;
    place = copy.node && copy.cause && failures_label(f, &copy) == 0
                ? vec_push(f->alloc, &f->present.items)
                : NULL;
    if (!place) {
        item_free(f->alloc, &copy);
        return -ENOMEM;
    }
    *place = copy;
    return 0;
}

int failures_add_first(struct failures *f, const struct pliant_failure_item *item)
{
    struct pliant_failure_item first;
    int rc;

    if (f->present.items.n == FAILURES_KEPT) { /* the last makes room */
        item_free(f->alloc, &f->present.items.v[--f->present.items.n]);
        f->present.n_more++;
    }
    rc = failures_add(f, item);
    if (rc < 0)
        return rc;
    first = f->present.items.v[f->present.items.n - 1];
    memmove(f->present.items.v + 1, f->present.items.v,
            (f->present.items.n - 1) * sizeof *f->present.items.v);
    f->present.items.v[0] = first;
    return 0;
}

bool failures_has(const struct failures *f, const struct pliant_failure_item *item)
{
    for (size_t i = 0; i < f->present.items.n; i++) {
        struct pliant_task task = f->present.items.v[i].task;

        if (task.vertex.v == item->task.vertex.v && task.subtask == item->task.subtask &&
            task.attempt == item->task.attempt)
            return true;
    }
    return false;
}

void failures_show(struct failure_entry *entry)
{
    entry->view = (struct pliant_failure){
        .items = entry->items.v, .n = (uint32_t)entry->items.n, .n_more = entry->n_more};
}

static void evict_oldest(struct failures *f)
{
    struct failure_entry *entry = f->ring[f->first];

    entry->next_dead = f->dead;
    f->dead = entry;
    f->first = (f->first + 1) % f->size;
    f->n--;
}

struct failure_entry *failures_append(struct failures *f)
{
    struct failure_entry *entry;

    if (!f->ring)
        f->ring = mem_zero(f->alloc, f->size, sizeof *f->ring);
    if (!f->ring)
        return NULL;
    entry = mem_zero(f->alloc, 1, sizeof *entry);
    if (!entry)
        return NULL;
    if (f->n == f->size)
        evict_oldest(f);
    f->ring[(f->first + f->n++) % f->size] = entry;
    return entry;
}

int failures_archive(struct failures *f, const struct pliant_failure **ret)
{
    struct failure_entry *entry;

    *ret = NULL;
    if (failures_empty(f))
        return 0;
    if (f->size == 0) {
        entry_clear(f->alloc, &f->present);
        return 0;
    }
    entry = failures_append(f);
    if (!entry)
        return -ENOMEM;
    *entry = f->present;
    failures_show(entry);
    f->present = (struct failure_entry){0};
    *ret = &entry->view;
    return 0;
}

int failures_split(struct failures *f, uint32_t n, const struct pliant_failure **ret)
{
    struct failure_entry rest = {0};
    int rc;

    *ret = NULL;
    if (n == 0)
        return 0;
    if (n < f->present.items.n) {
        size_t n_rest = f->present.items.n - n;

        if (!vec_reserve(f->alloc, &rest.items, n_rest))
            return -ENOMEM;
        memcpy(rest.items.v, f->present.items.v + n, n_rest * sizeof *rest.items.v);
        rest.items.n = n_rest;
        f->present.items.n = n;
    }
    rc = failures_archive(f, ret);
    if (rc < 0)
        entry_clear(f->alloc, &rest);
    else
        f->present = rest;
    return rc;
}

const struct pliant_failure *failures_at(const struct failures *f, size_t i)
{
    return i < f->n ? &f->ring[(f->first + f->n - 1 - i) % f->size]->view : NULL;
}

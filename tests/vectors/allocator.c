/* allocator.c - measured bounds, parallelism and placement, every field
 *
 * The whole answer is built as JSON in the form of `expect` and compared member by member.
 */
#include "vectors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pliant/pliant.h>

#include "allocator/requirements.h"
#include "graph/job.h"

enum { NAME_MAX_SIZE = 320 };

/* One line at work. Slot numbers are positions in `slots`. */
struct work {
    const cJSON *line, *slots;
    struct pliant_job *job;
    struct bounds bounds;
    bool has_bounds;
    uint32_t n_slots, n_units;
    struct free_slot *free_slots;
    uint32_t *group_slots, *parallelism, *max_parallelism;
    uint32_t *unit_slots;
    struct history history;
    uint32_t *old_parallelism, *old_first;
    struct history_entry *entries;
    cJSON *answer, *scores;
    uint64_t *unit_scores; /* [n_units] of the chosen slot */
};

static void *must(void *ptr)
{
    if (!ptr) {
        fputs("vectors: no memory\n", stderr);
        exit(2);
    }
    return ptr;
}

static void *array(size_t n, size_t size)
{
    return must(calloc(n + 1, size));
}

static bool option(const struct work *w, const char *key)
{
    return vectors_bool_or(vectors_member(w->line, "options"), key, false);
}

static bool reactive(const struct work *w)
{
    const cJSON *config = vectors_find(vectors_member(w->line, "job"), "config");

    return config && strcmp(vectors_text_or(config, "scheduler-mode", ""), "reactive") == 0;
}

static const char *vertex_name(const struct work *w, uint32_t v)
{
    return w->job->vertices[v].name;
}

/* ---- the job ---------------------------------------------------------------------------- */

/* 0 in a job file is wrong, in the core's spec it means that it is not given. */
static int64_t vertex_number(const cJSON *v, const char *key)
{
    int64_t given = vectors_int_or(v, key, 0);

    return given == 0 && vectors_find(v, key) ? -1 : given;
}

static struct pliant_vertex_spec vertex_spec(const cJSON *v)
{
    return (struct pliant_vertex_spec){
        .id = vectors_text(v, "id"),
        .parallelism = vertex_number(v, "parallelism"),
        .min_parallelism = vertex_number(v, "min_parallelism"),
        .max_parallelism = vertex_number(v, "max_parallelism"),
        .slot_sharing_group = vectors_text_or(v, "slot_sharing_group", NULL),
    };
}

static uint32_t index_of(const struct pliant_vertex_spec *vertices, size_t n, const char *id)
{
    uint32_t i = 0;

    while (i < n && strcmp(vertices[i].id, id) != 0)
        i++;
    return i;
}

static struct pliant_edge_spec edge_spec(const cJSON *e, const struct pliant_vertex_spec *v,
                                         size_t n)
{
    return (struct pliant_edge_spec){
        .from = index_of(v, n, vectors_text(e, "from")),
        .to = index_of(v, n, vectors_text(e, "to")),
        .pattern =
            strcmp(vectors_text(e, "pattern"), "pointwise") ? PLIANT_ALL_TO_ALL : PLIANT_POINTWISE,
        .exchange =
            strcmp(vectors_text(e, "exchange"), "blocking") ? PLIANT_PIPELINED : PLIANT_BLOCKING,
    };
}

static int make_job(struct work *w, struct pliant_error *err)
{
    const cJSON *job = vectors_member(w->line, "job"), *item;
    const cJSON *vertices = vectors_member(job, "vertices"), *edges = vectors_member(job, "edges");
    struct pliant_vertex_spec *v =
        array((size_t)cJSON_GetArraySize(vertices), sizeof(struct pliant_vertex_spec));
    struct pliant_edge_spec *e =
        array((size_t)cJSON_GetArraySize(edges), sizeof(struct pliant_edge_spec));
    struct pliant_job_spec spec = {.name = vectors_text(job, "name"), .vertices = v, .edges = e};
    struct pliant_config cfg = {
        .scheduler = PLIANT_SCHEDULER_ADAPTIVE,
        .mode = reactive(w) ? PLIANT_MODE_REACTIVE : PLIANT_MODE_NORMAL,
    };
    int rc;

    cJSON_ArrayForEach(item, vertices) v[spec.n_vertices++] = vertex_spec(item);
    cJSON_ArrayForEach(item, edges) e[spec.n_edges++] = edge_spec(item, v, spec.n_vertices);
    rc = pliant_job_new(&spec, NULL, &w->job, err);
    if (rc == 0)
        rc = pliant_job_check(w->job, &cfg, err);
    free(v);
    free(e);
    return rc;
}

static void count_error(void *ctx, uint32_t vertex, enum pliant_reason reason)
{
    int *errors = ctx;

    (void)vertex;
    (void)reason;
    ++*errors;
}

static void update_requirements(struct work *w, const cJSON *requirements)
{
    struct pliant_bounds *update =
        array((size_t)cJSON_GetArraySize(requirements), sizeof(struct pliant_bounds));
    const cJSON *item;
    size_t n = 0;
    int errors = 0, rc;

    cJSON_ArrayForEach(item, requirements) update[n++] =
        (struct pliant_bounds){item->string, vectors_int(item, "min"), vectors_int(item, "max")};
    rc = requirements_apply(&w->bounds, w->job, update, n, NULL, count_error, &errors);
    free(update);
    cJSON_AddNumberToObject(w->answer, "requirements_errors", errors);
    cJSON_AddBoolToObject(w->answer, "requirements_changed", rc > 0);
}

static void answer_bounds(struct work *w)
{
    const cJSON *requirements = vectors_find(w->line, "requirements");
    cJSON *bounds;

    if (bounds_init(&w->bounds, w->job->n_vertices, w->job->n_groups, w->job->group_of, NULL) < 0)
        must(NULL);
    w->has_bounds = true;
    requirements_initial(&w->bounds, w->job, reactive(w));
    if (requirements)
        update_requirements(w, requirements);
    bounds = cJSON_AddObjectToObject(w->answer, "bounds");
    for (uint32_t v = 0; v < w->job->n_vertices; v++) {
        cJSON *row = cJSON_AddObjectToObject(bounds, vertex_name(w, v));

        cJSON_AddNumberToObject(row, "min", w->bounds.vertices[v].min);
        cJSON_AddNumberToObject(row, "parallelism", w->bounds.vertices[v].want);
        cJSON_AddNumberToObject(row, "max", w->job->vertices[v].max_parallelism);
    }
    cJSON_AddNumberToObject(w->answer, "min_slots", (double)w->bounds.minimal);
    cJSON_AddNumberToObject(w->answer, "desired_slots", (double)w->bounds.desired);
    cJSON_AddBoolToObject(w->answer, "has_desired", w->n_slots >= w->bounds.desired);
}

/* ---- parallelism ------------------------------------------------------------------------ */

static bool answer_parallelism(struct work *w)
{
    cJSON *object;

    w->group_slots = array(w->job->n_groups, sizeof *w->group_slots);
    w->parallelism = array(w->job->n_vertices, sizeof *w->parallelism);
    if (!allocator_parallelism(&w->bounds, w->n_slots, w->group_slots, w->parallelism)) {
        cJSON_AddNullToObject(w->answer, "parallelism");
        cJSON_AddNullToObject(w->answer, "groups");
        cJSON_AddNullToObject(w->answer, "assignment");
        return false;
    }
    object = cJSON_AddObjectToObject(w->answer, "parallelism");
    for (uint32_t v = 0; v < w->job->n_vertices; v++)
        cJSON_AddNumberToObject(object, vertex_name(w, v), w->parallelism[v]);
    object = cJSON_AddObjectToObject(w->answer, "groups");
    for (uint32_t g = 0; g < w->job->n_groups; g++) {
        cJSON_AddNumberToObject(object, w->job->groups[g], w->group_slots[g]);
        w->n_units += w->group_slots[g];
    }
    return true;
}

/* ---- placement -------------------------------------------------------------------------- */

static const char *slot_id(const struct work *w, uint32_t slot)
{
    return vectors_text(cJSON_GetArrayItem(w->slots, (int)slot), "id");
}

static uint32_t slot_number(const struct work *w, const char *id)
{
    const cJSON *slot;
    uint32_t n = 0;

    cJSON_ArrayForEach(slot, w->slots)
    {
        if (strcmp(vectors_text(slot, "id"), id) == 0)
            break;
        n++;
    }
    return n; /* a slot that is gone gets a number that no slot has */
}

/* The node's number: that of its first slot. */
static uint32_t node_number(const struct work *w, const char *node)
{
    const cJSON *slot;
    uint32_t n = 0;

    cJSON_ArrayForEach(slot, w->slots)
    {
        if (strcmp(vectors_text(slot, "node"), node) == 0)
            break;
        n++;
    }
    return n;
}

static void read_slots(struct work *w)
{
    const cJSON *slot;

    w->slots = vectors_member(w->line, "slots");
    w->free_slots = array((size_t)cJSON_GetArraySize(w->slots), sizeof *w->free_slots);
    cJSON_ArrayForEach(slot, w->slots)
    {
        uint32_t node = node_number(w, vectors_text(slot, "node"));

        w->free_slots[w->n_slots] = (struct free_slot){w->n_slots, node, node};
        w->n_slots++;
    }
}

static void read_history(struct work *w, const cJSON *previous)
{
    const cJSON *subtask, *parallelism = vectors_member(previous, "parallelism");
    const cJSON *subtasks = vectors_member(previous, "subtasks");
    uint32_t n = 0;

    w->old_parallelism = array(w->job->n_vertices, sizeof *w->old_parallelism);
    w->old_first = array(w->job->n_vertices, sizeof *w->old_first);
    for (uint32_t v = 0; v < w->job->n_vertices; v++) {
        w->old_parallelism[v] = (uint32_t)vectors_int(parallelism, vertex_name(w, v));
        w->old_first[v] = n;
        n += w->old_parallelism[v];
    }
    w->entries = array(n, sizeof *w->entries);
    for (uint32_t i = 0; i < n; i++) /* a subtask that is not listed is in no slot */
        w->entries[i].slot = w->n_slots;
    cJSON_ArrayForEach(subtask, vectors_member(previous, "subtasks"))
    {
        uint32_t v = pliant_job_vertex_find(w->job, vectors_text(subtask, "vertex")).v - 1;

        w->entries[w->old_first[v] + (uint32_t)vectors_int(subtask, "subtask")] =
            (struct history_entry){
                .slot = slot_number(w, vectors_text(subtask, "slot")),
                .bytes = (uint64_t)vectors_int_or(subtask, "state_bytes", 0),
            };
    }
    w->history = (struct history){w->old_parallelism, w->old_first, w->entries,
                                  (size_t)cJSON_GetArraySize(subtasks)};
}

static uint32_t group_of_unit(const struct work *w, uint32_t unit, uint32_t *ret_index)
{
    uint32_t g = 0;

    while (unit >= w->group_slots[g])
        unit -= w->group_slots[g++];
    *ret_index = unit;
    return g;
}

static void add_score(void *ctx, uint32_t unit, uint32_t slot, uint64_t score)
{
    struct work *w = ctx;
    char key[NAME_MAX_SIZE];
    uint32_t index, g = group_of_unit(w, unit, &index);

    if (w->unit_slots[unit] == slot)
        w->unit_scores[unit] = score;
    snprintf(key, sizeof key, "%s#%u|%s", w->job->groups[g], index, slot_id(w, slot));
    cJSON_AddNumberToObject(w->scores, key, (double)score);
}

static void answer_scores(struct work *w, const struct placement_request *request)
{
    uint64_t sum = 0;

    w->unit_scores = array(w->n_units, sizeof *w->unit_scores);
    w->scores = must(cJSON_CreateObject());
    if (allocator_scores(request, NULL, add_score, w) < 0)
        must(NULL);
    cJSON_AddItemToObject(w->answer, "scores", w->scores);
    for (uint32_t unit = 0; unit < w->n_units; unit++)
        sum += w->unit_scores[unit];
    cJSON_AddNumberToObject(w->answer, "local_score", (double)sum);
}

static void answer_assignment(struct work *w)
{
    cJSON *assignment = cJSON_AddObjectToObject(w->answer, "assignment");

    for (uint32_t unit = 0; unit < w->n_units; unit++) {
        uint32_t index, g = group_of_unit(w, unit, &index);
        cJSON *subtasks = cJSON_AddArrayToObject(assignment, slot_id(w, w->unit_slots[unit]));

        for (uint32_t v = 0; v < w->job->n_vertices; v++) { /* [S-PAR-10] */
            char text[NAME_MAX_SIZE];

            if (w->job->group_of[v] != g || w->parallelism[v] <= index)
                continue;
            snprintf(text, sizeof text, "%s:%u", vertex_name(w, v), index);
            cJSON_AddItemToArray(subtasks, cJSON_CreateString(text));
        }
    }
    cJSON_AddNumberToObject(w->answer, "slots_used", cJSON_GetArraySize(assignment));
}

/* Used slots of each used node, most first. */
static void answer_node_usage(struct work *w)
{
    uint32_t *used = array(w->n_slots, sizeof *used);
    cJSON *usage = cJSON_AddArrayToObject(w->answer, "node_usage");

    for (uint32_t unit = 0; unit < w->n_units; unit++)
        used[w->free_slots[w->unit_slots[unit]].node]++;
    for (uint32_t n = w->n_slots; n > 0; n--)
        for (uint32_t node = 0; node < w->n_slots; node++)
            if (used[node] == n)
                cJSON_AddItemToArray(usage, cJSON_CreateNumber(n));
    free(used);
}

static void answer_placement(struct work *w)
{
    const cJSON *previous = vectors_find(w->line, "previous");
    struct placement_request request = {
        .bounds = &w->bounds,
        .parallelism = w->parallelism,
        .group_slots = w->group_slots,
        .slots = w->free_slots,
        .n_slots = w->n_slots,
        .prefer_minimal_nodes = option(w, "prefer_minimal_nodes"),
    };

    w->max_parallelism = array(w->job->n_vertices, sizeof *w->max_parallelism);
    for (uint32_t v = 0; v < w->job->n_vertices; v++)
        w->max_parallelism[v] = w->job->vertices[v].max_parallelism;
    request.max_parallelism = w->max_parallelism;
    if (previous && option(w, "local_recovery")) {
        read_history(w, previous);
        request.history = &w->history;
    }
    w->unit_slots = array(w->n_units, sizeof *w->unit_slots);
    if (allocator_place(&request, NULL, w->unit_slots) < 0)
        must(NULL);
    answer_assignment(w);
    answer_node_usage(w);
    if (request.history && request.history->n_entries > 0)
        answer_scores(w, &request);
}

/* ---- comparing -------------------------------------------------------------------------- */

/* Members that say what else Flink may answer; we take one of its answers, so they add nothing to
 * the exact comparison. assignment_sure names slots whose content `assignment` has. */
static bool is_comment(const char *key)
{
    static const char *const keys[] = {"determined", "ties", "assignment_sure", "local_score_sure"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static int compare(const struct work *w, const cJSON *expect, char *why, size_t size)
{
    const cJSON *want;

    cJSON_ArrayForEach(want, expect)
    {
        const cJSON *got = cJSON_GetObjectItemCaseSensitive(w->answer, want->string);
        char *text;

        if (is_comment(want->string) || cJSON_Compare(got, want, true))
            continue;
        text = cJSON_PrintUnformatted(got);
        vectors_say(why, size, "%s is %s", want->string, text ? text : "missing");
        cJSON_free(text);
        return 1;
    }
    return 0;
}

static int run(struct work *w, char *why, size_t size)
{
    const cJSON *expect = vectors_member(w->line, "expect");
    struct pliant_error err;
    int rc = make_job(w, &err);

    if (rc == -ENOMEM)
        must(NULL);
    if (vectors_find(expect, "rejected"))
        return rc < 0 ? 0 : vectors_say(why, size, "the job is not refused");
    if (rc < 0)
        return vectors_say(why, size, "the job is refused: %s", err.text);
    w->answer = must(cJSON_CreateObject());
    read_slots(w);
    answer_bounds(w);
    if (answer_parallelism(w))
        answer_placement(w);
    return compare(w, expect, why, size);
}

int run_allocator(const cJSON *line, char *why, size_t size)
{
    struct work w = {.line = line};
    int rc = run(&w, why, size);

    if (w.has_bounds)
        bounds_free(&w.bounds, NULL);
    pliant_job_destroy(&w.job);
    free(w.free_slots);
    free(w.group_slots);
    free(w.parallelism);
    free(w.max_parallelism);
    free(w.unit_slots);
    free(w.old_parallelism);
    free(w.old_first);
    free(w.entries);
    free(w.unit_scores);
    cJSON_Delete(w.answer);
    return rc;
}

/* key_groups.c - measured ranges, owners, and what new subtasks read of old state */
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

#include <pliant/job.h>

#include "graph/key_groups.h"

/* What the rules answer, as the JSON of the expected member. */

static cJSON *numbers(const double *v, size_t n)
{
    return cJSON_CreateDoubleArray(v, (int)n);
}

static uint64_t natural(const cJSON *line, const char *key)
{
    int64_t n = vectors_int(line, key);

    return n < 0 ? 0 : (uint64_t)n;
}

/* An integer of the line for key_groups_valid() and what follows; 0, which is none, if too large.
 */
static uint32_t valid(const cJSON *line, const char *key)
{
    uint64_t n = natural(line, key);

    return n <= UINT32_MAX ? (uint32_t)n : 0;
}

static void add_pair(cJSON *list, uint64_t a, uint64_t b)
{
    cJSON_AddItemToArray(list, numbers((double[]){(double)a, (double)b}, 2));
}

static void add_part(cJSON *list, const struct state_part *part)
{
    double triple[] = {part->task, (double)part->first, (double)part->last};

    cJSON_AddItemToArray(list, numbers(triple, 3));
}

static cJSON *add_list(cJSON *object, const char *key)
{
    return cJSON_AddArrayToObject(object, key);
}

static cJSON *empty_lists(cJSON *object, const char *key, uint32_t n)
{
    cJSON *lists = add_list(object, key);

    for (uint32_t i = 0; i < n; i++)
        cJSON_AddItemToArray(lists, cJSON_CreateArray());
    return lists;
}

static bool answer_ranges(const cJSON *line, cJSON *answer)
{
    uint64_t max = natural(line, "max_parallelism"), p = natural(line, "parallelism");
    cJSON *ranges;

    if (!key_groups_valid(max, p))
        return false;
    ranges = add_list(answer, "ranges");
    for (uint32_t i = 0; i < p; i++) {
        uint32_t first, last;

        if (pliant_key_group_range((uint32_t)max, (uint32_t)p, i, &first, &last) < 0)
            return false;
        add_pair(ranges, first, last);
    }
    return true;
}

static bool answer_default_max(const cJSON *line, cJSON *answer)
{
    uint64_t p = natural(line, "parallelism");

    if (!key_groups_valid(PLIANT_MAX_PARALLELISM, p))
        return false;
    cJSON_AddNumberToObject(answer, "max_parallelism", key_groups_default_max((uint32_t)p));
    return true;
}

static bool answer_key_hash(const cJSON *line, cJSON *answer)
{
    uint32_t max = valid(line, "max_parallelism"), p = valid(line, "parallelism");
    cJSON *groups, *subtasks;
    const cJSON *hash;

    if (!key_groups_valid(max, p))
        return false;
    groups = add_list(answer, "key_groups");
    subtasks = add_list(answer, "subtasks");
    cJSON_ArrayForEach(hash, vectors_member(line, "hashes"))
    {
        uint32_t group = key_groups_of_hash((int32_t)hash->valuedouble, max);

        cJSON_AddItemToArray(groups, cJSON_CreateNumber(group));
        cJSON_AddItemToArray(subtasks, cJSON_CreateNumber(key_groups_owner(max, p, group)));
    }
    return true;
}

static bool answer_keyed(const cJSON *line, cJSON *answer)
{
    uint32_t max = valid(line, "max_parallelism"), old_p = valid(line, "old_parallelism"),
             new_p = valid(line, "new_parallelism");
    cJSON *reads;

    if (!key_groups_valid(max, old_p) || !key_groups_valid(max, new_p))
        return false;
    reads = add_list(answer, "reads");
    for (uint32_t task = 0; task < new_p; task++) {
        struct old_tasks old = keyed_state_tasks(max, old_p, new_p, task);
        cJSON *parts = cJSON_CreateArray();

        for (uint32_t i = 0; i < old.count; i++) {
            struct state_part part =
                keyed_state_part(max, old_p, new_p, task, old.first + i * old.step);

            add_part(parts, &part);
        }
        cJSON_AddItemToArray(reads, parts);
    }
    return true;
}

static void add_split_part(void *ctx, uint32_t task, const struct state_part *part)
{
    cJSON *reads = ctx;

    add_part(cJSON_GetArrayItem(reads, (int)task), part);
}

/* All items of one old task; without any it is not listed. */
static void add_whole(cJSON *parts, const uint64_t *items, uint32_t old_task)
{
    if (items[old_task] > 0)
        add_part(parts, &(struct state_part){old_task, 0, items[old_task] - 1});
}

static void answer_list_state(const char *mode, const uint64_t *items, uint32_t old_p,
                              uint32_t new_p, cJSON *reads)
{
    if (strcmp(mode, "split_distribute") == 0) {
        list_state_split(items, old_p, new_p, add_split_part, reads);
        return;
    }
    for (uint32_t task = 0; task < new_p; task++) {
        cJSON *parts = cJSON_GetArrayItem(reads, (int)task);

        if (strcmp(mode, "broadcast") == 0)
            add_whole(parts, items, broadcast_state_task(old_p, task));
        else
            for (uint32_t old = 0; old < old_p; old++)
                add_whole(parts, items, old);
    }
}

static bool answer_operator(const cJSON *line, cJSON *answer)
{
    const cJSON *list = vectors_member(line, "items"), *item;
    uint32_t old_p = (uint32_t)cJSON_GetArraySize(list), new_p = valid(line, "new_parallelism");
    uint64_t *items = calloc(old_p + 1, sizeof *items), n = 0;

    if (!items || !key_groups_valid(PLIANT_MAX_PARALLELISM, new_p)) {
        free(items);
        return false;
    }
    cJSON_ArrayForEach(item, list) items[n++] = (uint64_t)item->valuedouble;
    answer_list_state(vectors_text(line, "mode"), items, old_p, new_p,
                      empty_lists(answer, "reads", new_p));
    free(items);
    return true;
}

static const char *const mappers[] = {
    [INFLIGHT_ARBITRARY] = "arbitrary",
    [INFLIGHT_FIRST] = "first",
    [INFLIGHT_FULL] = "full",
    [INFLIGHT_RANGE] = "range",
    [INFLIGHT_ROUND_ROBIN] = "round_robin",
};

static bool answer_inflight(const cJSON *line, cJSON *answer)
{
    const char *name = vectors_text(line, "mapper");
    uint32_t old_p = valid(line, "old_parallelism"), new_p = valid(line, "new_parallelism");
    cJSON *reads = empty_lists(answer, "reads", new_p);
    size_t mapper = 0;

    while (mapper < sizeof mappers / sizeof mappers[0] && strcmp(mappers[mapper], name) != 0)
        mapper++;
    if (mapper == sizeof mappers / sizeof mappers[0])
        return false;
    for (uint32_t task = 0; task < new_p; task++) {
        struct old_tasks old = inflight_tasks((enum inflight_mapper)mapper, old_p, new_p, task);

        for (uint32_t i = 0; i < old.count; i++)
            cJSON_AddItemToArray(cJSON_GetArrayItem(reads, (int)task),
                                 cJSON_CreateNumber(old.first + i * old.step));
    }
    return true;
}

/* Each fills the answer's members; false: it is refused. */
static const struct question {
    const char *kind;
    bool (*answer)(const cJSON *line, cJSON *answer);
} questions[] = {
    {"ranges", answer_ranges},
    {"default_max", answer_default_max},
    {"key_hash", answer_key_hash},
    {"rescale_keyed", answer_keyed},
    {"rescale_operator", answer_operator},
    {"inflight", answer_inflight},
};

static int compare(const cJSON *expect, const cJSON *answer, char *why, size_t size)
{
    char *got;

    if (cJSON_Compare(expect, answer, true))
        return 0;
    got = cJSON_PrintUnformatted(answer);
    vectors_say(why, size, "got %s", got ? got : "?");
    cJSON_free(got);
    return 1;
}

int run_key_groups(const cJSON *line, char *why, size_t size)
{
    const char *kind = vectors_text(line, "kind");

    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        cJSON *answer;
        int rc;

        if (strcmp(questions[i].kind, kind) != 0)
            continue;
        answer = cJSON_CreateObject();
        if (!questions[i].answer(line, answer)) {
            cJSON_Delete(answer);
            answer = cJSON_CreateObject();
            cJSON_AddStringToObject(answer, "error", "invalid_input");
        }
        rc = compare(vectors_member(line, "expect"), answer, why, size);
        cJSON_Delete(answer);
        return rc;
    }
    return vectors_say(why, size, "unknown kind \"%s\"", kind);
}

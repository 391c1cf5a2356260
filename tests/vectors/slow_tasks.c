/* slow_tasks.c - measured: which tasks of a vertex are slow */
#include "topology.h"

#include <stdlib.h>
#include <string.h>

#include "failover/slow_tasks.h"

static enum pliant_task_state state_named(const char *name)
{
    static const struct {
        const char *name;
        enum pliant_task_state state;
    } states[] = {
        {"created", PLIANT_TASK_CREATED},     {"scheduled", PLIANT_TASK_SCHEDULED},
        {"deploying", PLIANT_TASK_DEPLOYING}, {"initializing", PLIANT_TASK_INITIALIZING},
        {"running", PLIANT_TASK_RUNNING},     {"canceling", PLIANT_TASK_CANCELING},
        {"finished", PLIANT_TASK_FINISHED},   {"canceled", PLIANT_TASK_CANCELED},
        {"failed", PLIANT_TASK_FAILED},
    };

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strcmp(states[i].name, name) == 0)
            return states[i].state;
    abort();
}

int run_slow_tasks(const cJSON *line, char *why, size_t size)
{
    const cJSON *config = vectors_member(line, "config"), *tasks = vectors_member(line, "tasks"),
                *task;
    size_t n = (size_t)cJSON_GetArraySize(tasks), k = 0;
    struct slow_attempt *attempts = calloc(n + 1, sizeof *attempts);
    bool *slow = calloc(n + 1, sizeof *slow);
    struct slow_limits limits = {.ratio = vectors_double(config, "baseline_ratio"),
                                 .multiplier = vectors_double(config, "baseline_multiplier"),
                                 .lower_bound_ms = vectors_int(config, "baseline_lower_bound_ms")};
    cJSON *answer = cJSON_CreateArray();

    if (!attempts || !slow)
        abort();
    cJSON_ArrayForEach(task, tasks) attempts[k++] = (struct slow_attempt){
        state_named(vectors_text(task, "state")), vectors_int_or(task, "time_ms", 0),
        vectors_int_or(task, "bytes", SLOW_BYTES_UNKNOWN)};
    if (slow_tasks_find(&limits, (uint32_t)n, attempts, n, NULL, slow) < 0)
        abort();
    for (size_t i = 0; i < n; i++)
        if (slow[i])
            cJSON_AddItemToArray(answer, cJSON_CreateNumber((double)i));
    free(attempts);
    free(slow);
    return vector_compare(vectors_member(vectors_member(line, "expect"), "slow"), answer, "slow",
                          why, size);
}

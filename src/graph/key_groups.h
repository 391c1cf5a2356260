/* key_groups.h - who owns which key group, and what a new subtask reads after a rescale
 *
 * Pure arithmetic; all ranges are inclusive. Old and new subtasks are numbered from 0. What a
 * new subtask reads of the old ones is again a value: old tasks in arithmetic progression.
 *
 * Units   1 <= parallelism <= max_parallelism <= PLIANT_MAX_PARALLELISM; functions without an
 *         error code take numbers for which key_groups_valid() holds
 * Source  S-LOC-2, S-PAR-8, section 7 of the failover rules
 */
#ifndef PLIANT_GRAPH_KEY_GROUPS_H
#define PLIANT_GRAPH_KEY_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
    uint32_t first, last;
};

/* A part of an old subtask's state: key groups or list items first..last of `task`. */
struct state_part {
    uint32_t task;
    uint64_t first, last;
};

/* The old tasks first, first + step, ...: `count` of them. */
struct old_tasks {
    uint32_t first, step, count;
};

/* How items in flight on a channel find their new subtask. */
enum inflight_mapper {
    INFLIGHT_ARBITRARY, /* anyone may have it: round robin */
    INFLIGHT_FIRST,     /* the first subtask reads all of it */
    INFLIGHT_FULL,      /* everyone reads all of it, and filters */
    INFLIGHT_RANGE,     /* like keyed state */
    INFLIGHT_ROUND_ROBIN,
};

/* ---- key groups ------------------------------------------------------------------------- */

uint32_t key_groups_default_max(uint32_t parallelism); /* [S-PAR-8] */
bool key_groups_valid(uint64_t max_parallelism, uint64_t parallelism);
struct range key_groups_range(uint32_t max_parallelism, uint32_t parallelism, uint32_t subtask);
uint32_t key_groups_owner(uint32_t max_parallelism, uint32_t parallelism, uint32_t key_group);
uint32_t key_groups_of_hash(int32_t hash, uint32_t max_parallelism);

/* ---- old state in a new run --------------------------------------------------------------- */

/* Keyed state: the old tasks that new task `task` reads, and what it reads of one of them. */
struct old_tasks keyed_state_tasks(uint32_t max_parallelism, uint32_t old_parallelism,
                                   uint32_t new_parallelism, uint32_t task);
struct state_part keyed_state_part(uint32_t max_parallelism, uint32_t old_parallelism,
                                   uint32_t new_parallelism, uint32_t task, uint32_t old_task);

/* List state of one name that is split: old task t has items[t] items. Calls `each` for every
 * part, ascending by new task, then by old task; parts without an item are left out.
 * O(old + new). */
void list_state_split(const uint64_t *items, uint32_t old_parallelism, uint32_t new_parallelism,
                      void (*each)(void *ctx, uint32_t task, const struct state_part *part),
                      void *ctx);

/* Union list state needs no function: every new task reads all items of all old tasks.
 * Broadcast state: every old task has a full copy; new task `task` reads this one's. */
uint32_t broadcast_state_task(uint32_t old_parallelism, uint32_t task);

/* Data in flight: the old tasks whose channels new task `task` reads. */
struct old_tasks inflight_tasks(enum inflight_mapper mapper, uint32_t old_parallelism,
                                uint32_t new_parallelism, uint32_t task);

#endif

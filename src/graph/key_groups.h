/* key_groups.h - who owns which key group, and what a new subtask reads after a rescale
 *
 * Pure arithmetic; all ranges are inclusive.
 * Units   1 <= parallelism <= max_parallelism <= PLIANT_MAX_PARALLELISM
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

uint32_t key_groups_default_max(uint32_t parallelism);
bool key_groups_valid(uint64_t max_parallelism, uint64_t parallelism);
struct range key_groups_range(uint32_t max_parallelism, uint32_t parallelism, uint32_t subtask);
uint32_t key_groups_owner(uint32_t max_parallelism, uint32_t parallelism, uint32_t key_group);
uint32_t key_groups_of_hash(int32_t hash, uint32_t max_parallelism);

#endif

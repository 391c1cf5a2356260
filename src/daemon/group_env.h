/* group_env.h - the variables of a worker group's processes (torchrun's, and Horovod's), and where
 * their rendezvous is
 *
 * Pure: values in, names with values out.
 *
 * Shapes  nodes[n]: for each rank a number of its node; the ranks of a node follow each other
 * Source  section 7 of the rules of worker groups; W-ENV-1..4
 */
#ifndef PLIANT_DAEMON_GROUP_ENV_H
#define PLIANT_DAEMON_GROUP_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a rank sits. */
struct group_seat {
    uint32_t local_rank, local_size; /* on its node */
    uint32_t node_rank;              /* of the node, in order */
};

/* Returns the number of nodes. */
uint32_t group_seats(const uint32_t *nodes, uint32_t n, struct group_seat *ret);

/* A node with workers, in order; rank 0's is the first. */
struct group_host {
    const char *address; /* that it advertises; NULL: none */
    const char *host;    /* name of its machine; NULL: unknown */
};

/* Where rank 0 is reached. Loopback only if all of them are on one machine [7.1]; when nothing
 * better is known than a loopback name, that. */
const char *group_master_address(const struct group_host *hosts, size_t n);

struct group_env {
    uint32_t rank, world_size, n_nodes;
    struct group_seat seat;
    const char *job, *role, *host;
    const char *master_address;
    uint16_t master_port;
    uint64_t restarts;    /* charged so far, by failures and preemptions */
    int64_t max_restarts; /* -1: no limit */
    bool virtual_local_rank, horovod;
};

struct group_variable {
    const char *name;
    char value[256];
};

#define GROUP_VARIABLES_MAX 32

size_t group_variables(const struct group_env *env, struct group_variable ret[GROUP_VARIABLES_MAX]);

struct daemon_job;
struct daemon_node;
struct pliant_task;

/* Of a task that is deployed to a node (group_launch.c). Returns how many. */
size_t group_environment(struct daemon_job *job, const struct pliant_task *task,
                         const struct daemon_node *node,
                         struct group_variable ret[GROUP_VARIABLES_MAX]);

/* Names that the job may set itself: ours hold where it does not. */
bool group_variable_is_default(const char *name);

#endif

/* cluster.h - the simulated cluster: which nodes are up and which of their slots the job holds
 *
 * Every slot of a node that is up is offered to the job. What the job gives back is kept aside
 * and offered again, first given back first, once the job wants more than it holds.
 *
 * Shapes  rows[] of nodes that are up; a row is reused after its node has left, and the
 *         incarnation, unique over all lives of all nodes, tells whose row it is
 * Units   slots are counts
 * Owner   names are copied; a struct cluster_node * is valid until the next cluster_join()
 * Errors  NULL or -ENOMEM
 */
#ifndef PLIANT_SIM_CLUSTER_H
#define PLIANT_SIM_CLUSTER_H

#include <pliant/pliant.h>

#include "util/vec.h"

struct cluster_name;

struct cluster_node {
    struct cluster_name *name; /* NULL: the row is free */
    uint64_t incarnation;
    uint32_t slots, aside; /* in all; given back by the job */
    uint32_t tasks;        /* that live on it: whoever starts and ends them counts */
    double slow;           /* what runs on it takes so many times as long */
    bool draining;
    bool waits; /* stands in `givers` */
};

/* One life of a node that the job gave slots back of. */
struct cluster_giver {
    uint32_t row;
    uint64_t incarnation;
};

struct cluster {
    const struct pliant_alloc *alloc;
    struct cluster_nodes VEC(struct cluster_node) rows;
    struct cluster_ids VEC(uint32_t) unused;
    struct cluster_givers VEC(struct cluster_giver) givers; /* a queue from givers_first on */
    size_t givers_first, givers_gone; /* gone: of the queue, those that have left */
    struct cluster_name *names;       /* hash: name -> row */
    uint64_t held; /* slots that the job may place work on: not aside, not draining */
};

void cluster_init(struct cluster *c, const struct pliant_alloc *alloc);
void cluster_free(struct cluster *c);

/* A new life of a node that is not up. */
struct cluster_node *cluster_join(struct cluster *c, const char *name, uint64_t incarnation,
                                  uint32_t slots);

struct cluster_node *cluster_find(const struct cluster *c, const char *name); /* NULL: not up */
uint32_t cluster_row(const struct cluster *c, const struct cluster_node *node);
const char *cluster_name(const struct cluster_node *node);

/* The node of a row in one life of it, or NULL. */
struct cluster_node *cluster_at(const struct cluster *c, uint32_t row, uint64_t incarnation);

void cluster_drain(struct cluster *c, struct cluster_node *node);
int cluster_withdraw(struct cluster *c, struct cluster_node *node);
void cluster_leave(struct cluster *c, struct cluster_node *node);

/* The job gives back `slots` of the node. */
int cluster_put_aside(struct cluster *c, struct cluster_node *node, uint32_t slots);

/* Take up to `wanted` slots that are aside on one node and give them to the job; how many, and
 * whose. 0: there are none. */
uint32_t cluster_offer(struct cluster *c, uint64_t wanted, struct cluster_node **ret);

#endif

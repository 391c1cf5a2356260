/* graph_world.h - worlds (world.h) whose graph has regions: what their tests say of tasks
 *
 * A test that includes it defines nothing of the same name. Vertices are numbered from 1.
 */
#ifndef PLIANT_TESTS_GRAPH_WORLD_H
#define PLIANT_TESTS_GRAPH_WORLD_H

#include "world.h"

#define FIXED_DELAY(attempts, delay)                                                               \
    "restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.attempts", attempts,     \
        "restart-strategy.fixed-delay.delay", delay
#define CHECKPOINTS "execution.checkpointing.interval", "10 s"
#define LONG_IDLE "slot.idle.timeout", "1 h"

enum { A = 1, B, C, D };

/* A world_spec: arrays of vertices and edges, options. */
#define GRAPH(v, e, ...)                                                                           \
    ((struct world_spec){.vertices = (v),                                                          \
                         .n_vertices = sizeof(v) / sizeof *(v),                                    \
                         .edges = (e),                                                             \
                         .n_edges = sizeof(e) / sizeof *(e),                                       \
                         .options = {__VA_ARGS__}})

struct pliant_task_info info_of(const struct world *w, uint32_t vertex, uint32_t subtask);
enum pliant_task_state state_of(const struct world *w, uint32_t vertex, uint32_t subtask);
uint32_t attempt_of(const struct world *w, uint32_t vertex, uint32_t subtask);
uint32_t parallelism_of(const struct world *w, uint32_t vertex);
/* All tasks of the vertex are in it. */
void expect_states(const struct world *w, uint32_t vertex, enum pliant_task_state state);

void finish(struct world *w, uint32_t vertex, uint32_t subtask);
void finish_vertex(struct world *w, uint32_t vertex);

#endif

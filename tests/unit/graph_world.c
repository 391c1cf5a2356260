/* graph_world.c - see graph_world.h */
#include "graph_world.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

struct pliant_task_info info_of(const struct world *w, uint32_t vertex, uint32_t subtask)
{
    struct pliant_task_info info = {0};

    cr_assert(pliant_task_info(w->s, (pliant_vertex_id){vertex}, subtask, &info));
    return info;
}

enum pliant_task_state state_of(const struct world *w, uint32_t vertex, uint32_t subtask)
{
    return info_of(w, vertex, subtask).state;
}

uint32_t attempt_of(const struct world *w, uint32_t vertex, uint32_t subtask)
{
    return info_of(w, vertex, subtask).attempt;
}

uint32_t parallelism_of(const struct world *w, uint32_t vertex)
{
    return pliant_parallelism(w->s, (pliant_vertex_id){vertex});
}

void expect_states(const struct world *w, uint32_t vertex, enum pliant_task_state state)
{
    for (uint32_t i = 0; i < parallelism_of(w, vertex); i++)
        cr_assert(eq(int, state_of(w, vertex, i), state), "%u:%u is %s", vertex, i,
                  pliant_task_state_name(state_of(w, vertex, i)));
}

void finish(struct world *w, uint32_t vertex, uint32_t subtask)
{
    world_task(w, PLIANT_EV_TASK_FINISHED, vertex, subtask);
}

void finish_vertex(struct world *w, uint32_t vertex)
{
    for (uint32_t i = 0; i < parallelism_of(w, vertex); i++)
        finish(w, vertex, i);
}

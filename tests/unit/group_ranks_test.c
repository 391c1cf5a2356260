/* group_ranks_test.c - which worker is on which node */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "world.h"

static void node(struct world *w, const char *name, uint32_t slots, const char *preemptible)
{
    static uint64_t incarnation;
    const struct pliant_label label = {"preemptible", preemptible};

    world_event(w, (struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                         .node_up = {.name = name,
                                                     .incarnation = ++incarnation,
                                                     .slots = slots,
                                                     .labels = preemptible ? &label : NULL,
                                                     .n_labels = preemptible ? 1 : 0}});
}

static struct world world_of(uint32_t min, uint32_t max)
{
    struct world w = world_new((struct world_spec){
        .worker_group = true,
        .parallelism = max,
        .min_parallelism = min,
        .options = {"worker-group.max-failures", "-1", "pliant.rescale.policy", "torchrun"}});

    return w;
}

/* "a/0 a/1 b/0": the slots of the ranks. */
static const char *ranks(const struct world *w)
{
    static char text[256];
    size_t n = 0;

    for (uint32_t rank = 0; rank < world_counts(w).tasks; rank++) {
        struct pliant_task_info info;

        cr_assert(pliant_task_info(w->s, (pliant_vertex_id){1}, rank, &info));
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s/%u", rank ? " " : "",
                              pliant_node_name(w->s, pliant_slot_node(w->s, info.slot)),
                              pliant_slot_index(w->s, info.slot));
    }
    return text;
}

Test(group_ranks, go_by_node_and_then_by_slot) /* [W-GRP-5] */
{
    struct world w = world_of(6, 6);

    node(&w, "a", 2, NULL);
    w.now_ms = 1;
    node(&w, "b", 1, NULL);
    w.now_ms = 2;
    node(&w, "c", 3, NULL);
    world_start(&w);
    cr_expect_str_eq(ranks(&w), "a/0 a/1 b/0 c/0 c/1 c/2");
    world_free(&w);
}

Test(group_ranks, earlier_nodes_keep_their_places_before_new_ones) /* [W-GRP-6] */
{
    struct world w = world_of(1, 8);

    node(&w, "a", 1, NULL);
    w.now_ms = 1;
    node(&w, "b", 1, NULL);
    w.now_ms = 2;
    node(&w, "c", 1, NULL);
    world_start(&w);
    cr_assert_str_eq(ranks(&w), "a/0 b/0 c/0");
    world_to(&w, 3);
    world_lose(&w, "a");
    cr_assert_str_eq(ranks(&w), "b/0 c/0");
    node(&w, "a", 1, NULL); /* the row of the one before, but it came last */
    world_to(&w, 4);
    cr_expect_str_eq(ranks(&w), "b/0 c/0 a/0");
    node(&w, "d", 1, NULL);
    world_to(&w, 5);
    cr_expect_str_eq(ranks(&w), "b/0 c/0 a/0 d/0");
    world_free(&w);
}

Test(group_ranks, a_node_that_stays_has_rank_0_among_equals) /* [W-GRP-7] */
{
    struct world w = world_of(4, 4);

    node(&w, "a", 1, "true");
    node(&w, "b", 1, "");
    node(&w, "c", 1, "false");
    node(&w, "d", 1, NULL);
    world_start(&w);
    cr_expect_str_eq(ranks(&w), "c/0 d/0 a/0 b/0");
    world_free(&w);
}

Test(group_ranks, arrival_goes_before_the_label) /* [W-GRP-6, W-GRP-7] */
{
    struct world w = world_of(2, 2);

    node(&w, "a", 1, "true");
    w.now_ms = 1;
    node(&w, "b", 1, NULL);
    world_start(&w);
    cr_expect_str_eq(ranks(&w), "a/0 b/0");
    world_free(&w);
}

/* locality_test.c - where the tasks of the next run go, as the scheduler asks for it */
#include <criterion/criterion.h>
#include <string.h>

#include "world.h"

static const pliant_vertex_id V = {1};

#define COOLDOWN "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling"
#define RETRY "jobmanager.adaptive-scheduler.retry-execution-graph-creation.restart-strategy."

static struct world job(int64_t parallelism, const char *local_recovery)
{
    return world_new((struct world_spec){
        .parallelism = parallelism,
        .max_parallelism = 128,
        .options = {"execution.state-recovery.from-local",
                    local_recovery,
                    "execution.checkpointing.interval",
                    "10 min",
                    "pliant.checkpoint.periodic",
                    "false",
                    "restart-strategy.type",
                    "fixed-delay",
                    "restart-strategy.fixed-delay.attempts",
                    "100",
                    "restart-strategy.fixed-delay.delay",
                    "1 s",
                    COOLDOWN,
                    "0 s",
                    RETRY "type",
                    "fixed-delay",
                    RETRY "fixed-delay.delay",
                    "1 s",
                    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout",
                    "0 s",
                    "jobmanager.adaptive-scheduler.rescale-trigger.max-delay",
                    "0 s",
                    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout",
                    "0 s"}});
}

static const char *node_of(const struct world *w, uint32_t subtask)
{
    struct pliant_task_info info;

    cr_assert(pliant_task_info(w->s, V, subtask, &info));
    return pliant_node_name(w->s, pliant_slot_node(w->s, info.slot));
}

/* On which nodes the subtasks are, in order, joined by ' '. */
static void expect_nodes(const struct world *w, const char *nodes)
{
    char text[256] = "";

    for (uint32_t i = 0; i < pliant_parallelism(w->s, V); i++) {
        strcat(text, i ? " " : "");
        strcat(text, node_of(w, i));
    }
    cr_assert_str_eq(text, nodes);
}

static void checkpoint(struct world *w, const struct pliant_state_size *sizes, size_t n)
{
    world_event(w, (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                         .checkpoint = {.id = 1,
                                                        .own_accord = true,
                                                        .triggered_at_ms = w->now_ms,
                                                        .sizes = sizes,
                                                        .n_sizes = n}});
}

/* Two subtasks on n1 and n2, and a larger node that the default placement would prefer. */
static struct world on_small_nodes(const char *local_recovery, bool with_checkpoint)
{
    struct world w = job(2, local_recovery);

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_start(&w);
    expect_nodes(&w, "n1 n2");
    world_node(&w, "big", 4);
    if (with_checkpoint)
        checkpoint(&w, NULL, 0);
    return w;
}

static void restart(struct world *w)
{
    world_fail(w, true);
    world_to(w, w->now_ms + 1000);
    cr_assert_eq(pliant_state(w->s), PLIANT_EXECUTING);
}

Test(locality, keeps_every_subtask_in_its_slot) /* [S-LOC-5, S-LOC-1] */
{
    struct world w = on_small_nodes("true", true);

    restart(&w);
    expect_nodes(&w, "n1 n2");
    restart(&w);
    expect_nodes(&w, "n1 n2");
    world_free(&w);
}

Test(locality, is_off_without_local_recovery_or_without_a_checkpoint) /* [S-LOC-6] */
{
    for (int i = 0; i < 2; i++) {
        struct world w = on_small_nodes(i ? "true" : "false", i == 0);

        restart(&w);
        expect_nodes(&w, "big big"); /* fewest nodes: both small ones can go */
        world_free(&w);
    }
}

Test(locality, is_off_without_checkpointing) /* [S-LOC-6] */
{
    struct world w =
        world_running((struct world_spec){.parallelism = 2,
                                          .options = {"execution.state-recovery.from-local", "true",
                                                      "restart-strategy.type", "fixed-delay"}},
                      2);

    world_node(&w, "big", 4);
    checkpoint(&w, NULL, 0);
    restart(&w);
    expect_nodes(&w, "big big");
    world_free(&w);
}

Test(locality, follows_the_state_when_the_job_shrinks) /* [S-LOC-1, S-LOC-3] */
{
    static const struct pliant_state_size sizes[] = {
        {{1}, 0, 10}, {{1}, 1, 1000000}, {{1}, 2, 10}, {{1}, 3, 1000000}};
    struct world w = job(4, "true");

    for (char name[] = "n1"; name[1] <= '4'; name[1]++)
        world_node(&w, name, 1);
    world_start(&w);
    expect_nodes(&w, "n1 n2 n3 n4");
    checkpoint(&w, sizes, 4);
    world_bounds(&w, 1, 2);
    expect_nodes(&w, "n2 n4");
    world_free(&w);
}

Test(locality, takes_the_sizes_of_the_last_checkpoint) /* [S-LOC-1] */
{
    static const struct pliant_state_size early[] = {{{1}, 0, 1000000}, {{1}, 2, 1000000}},
                                          late[] = {
                                              {{1}, 1, 1000000},
                                              {{1}, 3, 1000000},
                                              {{1}, 9, 1000000}, /* there is no such subtask */
                                              {{0}, 0, 1000000},
                                              {{7}, 0, 1000000}};
    struct world w = job(4, "true");

    for (char name[] = "n1"; name[1] <= '4'; name[1]++)
        world_node(&w, name, 1);
    world_start(&w);
    checkpoint(&w, early, 2);
    checkpoint(&w, late, 5); /* what it does not name is unknown, not what it was */
    world_bounds(&w, 1, 2);
    expect_nodes(&w, "n2 n4");
    world_free(&w);
}

Test(locality, uses_the_old_slots_when_the_job_grows) /* [S-LOC-1] */
{
    static const struct pliant_state_size sizes[] = {{{1}, 0, 1000}, {{1}, 1, 1000}};
    struct world w = job(2, "true");

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_start(&w);
    checkpoint(&w, sizes, 2);
    world_node(&w, "big", 4);
    world_bounds(&w, 1, 4);
    cr_assert_eq(pliant_parallelism(w.s, V), 4);
    cr_assert(strcmp(node_of(&w, 0), "n1") == 0 || strcmp(node_of(&w, 1), "n1") == 0);
    cr_assert(strcmp(node_of(&w, 2), "n2") == 0 || strcmp(node_of(&w, 3), "n2") == 0);
    world_free(&w);
}

Test(locality, outlives_waiting) /* [S-LOC-7] */
{
    struct world w = on_small_nodes("true", true);

    world_fail(&w, true);
    world_drain(&w, "n1", 0);
    world_drain(&w, "n2", 0);
    world_drain(&w, "big", 0);
    world_to(&w, 20000);
    cr_assert_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    world_withdraw(&w, "n2");
    world_to(&w, 20000);
    w.reserves = true;
    expect_nodes(&w, "n2"); /* with one of two */
    world_free(&w);
}

Test(locality, outlives_plans_that_come_to_nothing) /* [S-LOC-7, S-CEG-5, S-RTY-1] */
{
    struct world w = on_small_nodes("true", true);

    w.reserves = false;
    world_fail(&w, true);
    world_to(&w, 1000);
    cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_plan(&w, PLIANT_EV_SLOTS_REFUSED, true); /* by way of waiting, and again */
    cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    cr_assert_eq(pliant_state(w.s), PLIANT_RETRYING_EXECUTION_GRAPH_CREATION);
    w.reserves = true;
    world_to(&w, 2000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    expect_nodes(&w, "n1 n2");
    world_free(&w);
}

Test(locality, does_not_take_a_row_s_next_life_for_the_slot_that_was) /* [S-LOC-1] */
{
    struct world w = job(2, "true");

    world_node(&w, "old", 1);
    world_drain(&w, "old", 500000); /* so the tasks go to the second and third row */
    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_start(&w);
    expect_nodes(&w, "n1 n2");
    checkpoint(&w, NULL, 0);
    world_lose(&w, "n1");
    world_lose(&w, "n2");
    world_withdraw(&w, "old");
    world_node(&w, "n3", 1); /* in the rows of n1 and n2 */
    world_node(&w, "n4", 1);
    world_to(&w, 1000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_assert_str_eq(node_of(&w, 0), "old");
    world_free(&w);
}

Test(locality, takes_slots_in_the_order_of_the_pool_without_data) /* [S-LOC-6] */
{
    struct world w = job(3, "false");

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 2);
    world_start(&w);
    expect_nodes(&w, "n1 n2 n2");
    world_free(&w);
}

/* An autoscaler takes the newest back first. Whatever the rows, also those of a restored pool. */
Test(locality, takes_the_slots_of_the_nodes_that_came_first) /* [S-LOC-6] */
{
    struct world w = job(2, "false");

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_node(&w, "n3", 1);
    world_start(&w);
    expect_nodes(&w, "n1 n2");
    world_lose(&w, "n1");
    world_node(&w, "n4", 1); /* in the row of n1 */
    world_to(&w, 1000);
    expect_nodes(&w, "n2 n3");
    world_lose(&w, "n2");
    world_node(&w, "n5", 1);
    world_to(&w, 2000);
    expect_nodes(&w, "n3 n4");
    world_free(&w);
}

Test(locality, uses_whole_nodes_first_when_there_are_more_slots_than_needed) /* [S-LOC-6] */
{
    struct world w = job(4, "false");

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 3);
    world_node(&w, "n3", 2);
    world_start(&w);
    cr_assert_eq(pliant_parallelism(w.s, V), 4);
    expect_nodes(&w, "n2 n2 n2 n3"); /* n1 can go */
    world_free(&w);
}

Test(locality, leaves_the_order_of_the_pool_when_it_is_told_to) /* [S-LOC-6] */
{
    struct world w = world_new((struct world_spec){
        .parallelism = 4,
        .options = {"jobmanager.adaptive-scheduler.prefer-minimal-taskmanagers", "false"}});

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 3);
    world_node(&w, "n3", 2);
    world_start(&w);
    expect_nodes(&w, "n1 n2 n2 n2");
    world_free(&w);
}

/* ---- spread ----------------------------------------------------------------------------- */

static void domain_node(struct world *w, const char *name, const char *domain)
{
    world_event(w, (struct pliant_event){
                       .kind = PLIANT_EV_NODE_UP,
                       .node_up = {.name = name, .incarnation = 1, .slots = 4, .domain = domain}});
}

/* How many subtasks are on nodes whose name begins like this? */
static uint32_t count_on(const struct world *w, char initial)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < pliant_parallelism(w->s, V); i++)
        n += node_of(w, i)[0] == initial;
    return n;
}

Test(locality, spreads_over_nodes_if_asked_to) /* [S-LOC-6]; trouble 079 */
{
    struct world w = world_new(
        (struct world_spec){.parallelism = 6, .options = {"pliant.placement.spread", "nodes"}});

    domain_node(&w, "a1", NULL);
    domain_node(&w, "b1", NULL);
    domain_node(&w, "c1", "");
    world_start(&w);
    cr_assert_eq(count_on(&w, 'a'), 2);
    cr_assert_eq(count_on(&w, 'b'), 2);
    cr_assert_eq(count_on(&w, 'c'), 2);
    world_free(&w);
}

Test(locality, spreads_over_failure_domains_if_asked_to) /* [S-LOC-6] */
{
    struct world w = world_new(
        (struct world_spec){.parallelism = 6, .options = {"pliant.placement.spread", "domains"}});

    domain_node(&w, "a1", "rack-a");
    domain_node(&w, "a2", "rack-a");
    domain_node(&w, "a3", "rack-a");
    domain_node(&w, "b1", "rack-b");
    domain_node(&w, "c1", NULL); /* a domain of its own */
    world_start(&w);
    cr_assert_eq(count_on(&w, 'a'), 2);
    cr_assert_eq(count_on(&w, 'b'), 2);
    cr_assert_eq(count_on(&w, 'c'), 2);
    world_free(&w);
}

/* ---- groups ----------------------------------------------------------------------------- */

Test(locality, declares_the_sum_over_the_groups_of_what_their_widest_vertex_wants) /* [S-PAR-4] */
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 5},
        {.id = "b", .parallelism = 3, .min_parallelism = 2},
        {.id = "c", .parallelism = 2, .slot_sharing_group = "other"}};
    struct world w = world_new((struct world_spec){.vertices = vertices, .n_vertices = 3});
    const struct pliant_action *act;

    world_start(&w);
    act = world_action(&w, PLIANT_ACT_DECLARE, 0);
    cr_assert_eq(act->declare.desired, 7);
    cr_assert_eq(act->declare.min, 3);
    world_free(&w);
}

Test(locality, reserves_a_slot_a_unit_and_deploys_into_it) /* [S-CEG-4, S-PAR-10] */
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 3},
        {.id = "b", .parallelism = 2},
        {.id = "c", .parallelism = 2, .slot_sharing_group = "other"}};
    struct world w = world_new((struct world_spec){.vertices = vertices, .n_vertices = 3});
    pliant_slot_id units[5];
    const struct pliant_action *act;

    w.reserves = false;
    world_start(&w);
    world_node(&w, "n1", 5);
    act = world_action(&w, PLIANT_ACT_RESERVE, 0);
    cr_assert_eq(act->reserve.n, 5);
    memcpy(units, act->reserve.slots, sizeof units);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    for (uint32_t v = 1; v <= 3; v++)
        for (uint32_t i = 0; i < pliant_parallelism(w.s, (pliant_vertex_id){v}); i++) {
            struct pliant_task_info info;

            cr_assert(pliant_task_info(w.s, (pliant_vertex_id){v}, i, &info));
            cr_assert_eq(info.slot.v, units[v == 3 ? 3 + i : i].v);
        }
    cr_assert_eq(world_counts(&w).slots_used, 5);
    world_lose(&w, "n1"); /* a shared slot that goes takes all its tasks along */
    cr_assert_eq(world_counts(&w).slots_used, 0);
    world_free(&w);
}

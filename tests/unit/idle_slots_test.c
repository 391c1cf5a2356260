/* idle_slots_test.c - slots that are not wanted go back, after a while */
#include <criterion/criterion.h>
#include <string.h>

#include "world.h"

#define COOLDOWN "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling"

static struct world running(uint32_t slots)
{
    return world_running(
        (struct world_spec){.parallelism = 4,
                            .options = {COOLDOWN, "0 s", "restart-strategy.type", "fixed-delay"}},
        slots);
}

static uint32_t released(const struct world *w)
{
    const struct pliant_action *act = world_action(w, PLIANT_ACT_RELEASE, 0);

    return act ? act->release.n : 0;
}

Test(idle_slots, go_back_at_the_first_check_after_the_timeout) /* [S-IDL-1]; trouble 078 */
{
    struct world w = running(4);

    world_to(&w, 30000);
    world_node(&w, "n2", 3);
    world_to(&w, 50000); /* the first check: idle for 20 s only */
    cr_assert_eq(released(&w), 0);
    world_to(&w, 99999);
    cr_assert_eq(world_counts(&w).slots, 7);
    world_to(&w, 100000);
    cr_assert_eq(released(&w), 3);
    cr_assert_eq(world_counts(&w).slots, 4);
    cr_assert_eq(world_counts(&w).nodes, 2); /* the node is still there */
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(idle_slots, follow_the_option) /* [S-IDL-1] */
{
    struct world w = world_running(
        (struct world_spec){.parallelism = 4, .options = {"slot.idle.timeout", "7 s"}}, 4);

    world_node(&w, "n2", 3);
    world_to(&w, 6999);
    cr_assert_eq(world_counts(&w).slots, 7);
    world_to(&w, 7000); /* idle for exactly the timeout */
    cr_assert_eq(released(&w), 3);
    world_free(&w);
}

Test(idle_slots, go_back_after_a_scale_down) /* [S-IDL-1, S-EXE-15] */
{
    struct world w = running(4);

    world_to(&w, 60000);
    world_bounds(&w, 1, 2);
    cr_assert_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 2);
    world_to(&w, 100000);
    cr_assert_eq(world_counts(&w).slots, 4); /* idle since 60000 */
    world_to(&w, 150000);
    cr_assert_eq(released(&w), 2);
    cr_assert_eq(world_counts(&w).slots_used, 2);
    world_to(&w, 500000);
    cr_assert_eq(world_counts(&w).slots, 2);
    world_free(&w);
}

Test(idle_slots, that_are_wanted_stay) /* [S-IDL-1] */
{
    struct world w = world_new((struct world_spec){.parallelism = 4, .min_parallelism = 4});

    world_start(&w);
    world_node(&w, "n1", 3);
    world_to(&w, 299999);
    cr_assert_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    cr_assert_eq(world_counts(&w).slots, 3);
    world_free(&w);
}

Test(idle_slots, beyond_what_is_wanted_go_while_the_job_waits) /* [S-IDL-1] */
{
    struct world w = world_new((struct world_spec){
        .parallelism = 4,
        .options = {"jobmanager.adaptive-scheduler.retry-execution-graph-creation."
                    "restart-strategy.type",
                    "fixed-delay",
                    "jobmanager.adaptive-scheduler.retry-execution-graph-creation."
                    "restart-strategy.fixed-delay.delay",
                    "10 min"}});

    w.reserves = false;
    world_start(&w);
    world_node(&w, "n1", 9);
    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    cr_assert_eq(pliant_state(w.s), PLIANT_RETRYING_EXECUTION_GRAPH_CREATION);
    world_to(&w, 50000);
    cr_assert_eq(released(&w), 5);
    world_free(&w);
}

Test(idle_slots, of_nodes_that_the_job_does_not_use_go_first) /* [S-IDL-1] */
{
    struct world w = running(6);
    const struct pliant_action *act;

    world_node(&w, "n2", 1); /* younger */
    world_to(&w, 50000);
    act = world_action(&w, PLIANT_ACT_RELEASE, 0);
    cr_assert_eq(act->release.n, 3);
    cr_assert_str_eq(pliant_node_name(w.s, pliant_slot_node(w.s, act->release.slots[0])), "n2");
    cr_assert_str_eq(pliant_node_name(w.s, pliant_slot_node(w.s, act->release.slots[2])), "n1");
    world_free(&w);
}

Test(idle_slots, go_back_in_every_state_with_a_graph) /* [S-IDL-1] */
{
    static const enum pliant_state states[] = {PLIANT_RESTARTING, PLIANT_FAILING, PLIANT_CANCELING,
                                               PLIANT_STOP_WITH_SAVEPOINT};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct world w = world_running(
            (struct world_spec){
                .parallelism = 4,
                .options = {"execution.checkpointing.interval", "1 h", "restart-strategy.type",
                            states[i] == PLIANT_RESTARTING ? "fixed-delay" : "none"}},
            4);

        w.cancels = false;
        if (states[i] == PLIANT_CANCELING)
            world_plain(&w, PLIANT_EV_CANCEL);
        else if (states[i] == PLIANT_STOP_WITH_SAVEPOINT)
            world_stop(&w);
        else
            world_fail(&w, true);
        cr_assert_eq(pliant_state(w.s), states[i]);
        world_node(&w, "n2", 2);
        world_to(&w, 50000);
        cr_assert_eq(released(&w), 2, "%s", pliant_state_name(states[i]));
        cr_assert_eq(pliant_state(w.s), states[i]);
        world_free(&w);
    }
}

Test(idle_slots, stay_while_a_plan_is_out) /* [S-CEG-4] */
{
    struct world w = world_new((struct world_spec){.parallelism = 4});

    w.reserves = false;
    world_start(&w);
    world_node(&w, "n1", 6);
    world_to(&w, 60000); /* the plan took four of them, and they must be free when it is ready */
    cr_assert_eq(world_counts(&w).slots, 6);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_to(&w, 100000);
    cr_assert_eq(released(&w), 2);
    world_free(&w);
}

Test(idle_slots, of_draining_nodes_are_no_surplus) /* [S-IDL-1, S-DRN-1] */
{
    struct world w = running(4);

    world_node(&w, "n2", 3);
    world_drain(&w, "n2", 500000);
    world_to(&w, 150000);
    cr_assert_eq(world_counts(&w).slots, 7); /* the node goes as a whole, soon */
    world_free(&w);
}

Test(idle_slots, that_went_back_may_be_granted_again) /* [S-IDL-1] */
{
    struct world w = running(4);
    struct pliant_event more = {.kind = PLIANT_EV_SLOTS_GRANTED,
                                .granted = {.name = "n2", .slots = 2}};

    world_node(&w, "n2", 2);
    world_to(&w, 50000);
    cr_assert_eq(world_counts(&w).slots, 4);
    world_event(&w, more);
    cr_assert_eq(world_counts(&w).slots, 6);
    world_bounds(&w, 1, 6);
    cr_assert_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 6);
    world_free(&w);
}

Test(idle_slots, are_not_looked_for_after_the_end) /* [S-IDL-1, S-FIN-2] */
{
    struct world w = running(4);

    world_plain(&w, PLIANT_EV_SUSPEND);
    cr_assert_eq(pliant_next_deadline(w.s), PLIANT_NEVER);
    world_free(&w);
}

/* What an action named can be told for the whole step, also when it is gone at the end of it. */
Test(idle_slots, keep_their_names_when_their_node_is_lost_in_the_same_step)
{
    struct world w = running(4);
    const struct pliant_action *act;

    world_to(&w, 30000);
    world_node(&w, "n2", 3);
    world_to(&w, 99999);
    w.now_ms = 100000; /* the check is due, and the loss is the event */
    world_lose(&w, "n2");
    act = world_action(&w, PLIANT_ACT_RELEASE, 0);
    cr_assert_not_null(act);
    for (uint32_t i = 0; i < act->release.n; i++) {
        pliant_node_id node = pliant_slot_node(w.s, act->release.slots[i]);

        cr_expect_str_eq(pliant_node_name(w.s, node), "n2");
        cr_expect_eq(pliant_slot_index(w.s, act->release.slots[i]), i);
    }
    world_free(&w);
}

/* created_test.c - Created: what a scheduler is before it starts, and the start */
#include <criterion/criterion.h>

#include "world.h"

Test(created, is_where_a_scheduler_begins) /* [S-CRE-1] */
{
    struct world w = world_new((struct world_spec){0});

    cr_expect_eq(pliant_state(w.s), PLIANT_CREATED);
    cr_expect_eq(pliant_job_status(w.s), PLIANT_JOB_INITIALIZING);
    cr_expect_eq(pliant_next_deadline(w.s), PLIANT_NEVER, "nothing runs before the start");
    cr_expect_eq(world_counts(&w).tasks, 0);
    cr_expect_eq(pliant_parallelism(w.s, (pliant_vertex_id){1}), 0);
    cr_expect_null(pliant_rescale_at(w.s, 0));
    world_free(&w);
}

Test(created, start_opens_a_record_declares_and_waits) /* [S-CRE-3, S-CRE-4] */
{
    struct world w = world_new((struct world_spec){.options = {"slot.idle.timeout", "7 s"}});
    const struct pliant_rescale *record;

    world_start(&w);
    cr_expect_str_eq(world_emitted(&w), "rescale_opened declare state_changed status_changed");
    cr_expect_eq(w.changed.flag[2], PLIANT_REASON_STARTED);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    cr_expect_eq(pliant_next_deadline(w.s), 7000, "the idle check was started first");
    record = pliant_rescale_at(w.s, 0);
    cr_expect_eq(record->trigger, PLIANT_TRIGGER_INITIAL_SCHEDULE);
    cr_expect_eq(record->attempt, 1, "of a new epoch of requirements");
    cr_expect_eq(record->end, PLIANT_RESCALE_OPEN);
    world_free(&w);
}

Test(created, start_has_no_run_before_it) /* [S-CRE-3] */
{
    struct world w = world_new((struct world_spec){0});

    w.reserves = false;
    world_node(&w, "n1", 4);
    world_start(&w);
    cr_expect_eq(world_action(&w, PLIANT_ACT_RESERVE, 0)->reserve.restore, 0);
    cr_expect_eq(world_counts(&w).restarts, 0);
    world_free(&w);
}

Test(created, a_second_start_is_refused) /* [S-CRE-2] */
{
    struct world w = world_new((struct world_spec){0});

    world_start(&w);
    world_start(&w);
    cr_expect_str_eq(world_emitted(&w), "refused");
    cr_expect_eq(w.actions[0].flag[0], PLIANT_REASON_ALREADY_STARTED);
    cr_expect_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    world_free(&w);
}

Test(created,
     the_bounds_of_the_job_count_for_the_first_declaration) /* [S-PAR-1, S-PAR-2, S-PAR-3] */
{
    static const struct {
        const char *mode;
        int64_t parallelism, min, max;
        uint32_t desired, minimal;
    } rows[] = {
        {"none", 6, 0, 0, 6, 1},       {"none", 6, 2, 0, 6, 2},
        {"none", 6, 2, 20, 6, 2},      {"reactive", 6, 0, 0, 128, 1},
        {"reactive", 6, 3, 20, 20, 3}, {"reactive", 200, 0, 0, 512, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool reactive = rows[i].mode[0] == 'r';
        struct world w = world_new(
            (struct world_spec){.parallelism = rows[i].parallelism,
                                .min_parallelism = rows[i].min,
                                .max_parallelism = rows[i].max,
                                .options = {reactive ? "scheduler-mode" : NULL, rows[i].mode}});
        const struct pliant_action *declared;
        uint32_t min, max;

        world_start(&w);
        declared = world_action(&w, PLIANT_ACT_DECLARE, 0);
        cr_assert_not_null(declared);
        cr_expect_eq(declared->declare.desired, rows[i].desired, "row %zu", i);
        cr_expect_eq(declared->declare.min, rows[i].minimal, "row %zu", i);
        pliant_vertex_bounds(w.s, (pliant_vertex_id){1}, &min, &max); /* [S-REQ-2] */
        cr_expect(min == rows[i].minimal && max == rows[i].desired, "row %zu", i);
        world_free(&w);
    }
}

Test(created,
     requirements_are_stored_and_declared_before_the_start) /* [S-PAR-3, S-REQ-2, S-REQ-4] */
{
    struct world w = world_new((struct world_spec){0});
    uint32_t min, max;

    world_bounds(&w, 2, 3);
    cr_expect_str_eq(world_emitted(&w), "declare",
                     "and no record: its epoch begins with the start");
    cr_expect_eq(w.actions[0].declare.desired, 3);
    cr_expect_eq(w.actions[0].declare.min, 2);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATED);
    pliant_vertex_bounds(w.s, (pliant_vertex_id){1}, &min, &max);
    cr_expect(min == 2 && max == 3);
    world_start(&w);
    cr_expect_str_eq(world_emitted(&w), "rescale_opened state_changed status_changed",
                     "what was declared is not declared again [S-WFR-1]");
    world_free(&w);
}

Test(created, nodes_may_come_and_go_before_the_start)
{
    struct world w = world_new((struct world_spec){0});

    w.reserves = false;
    world_node(&w, "n1", 2);
    cr_expect_str_eq(world_emitted(&w), "");
    world_node(&w, "n2", 4);
    world_lose(&w, "n1");
    cr_expect_str_eq(world_emitted(&w), "");
    cr_expect_eq(world_counts(&w).slots, 4);
    world_start(&w);
    cr_expect_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH, "the slots are known");
    world_free(&w);
}

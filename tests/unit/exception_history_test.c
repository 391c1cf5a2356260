/* exception_history_test.c - what failed: the present incarnation's failures, and past entries */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "failover/exception_history.h"
#include "world.h"

/* ---- the list and the ring -------------------------------------------------------------- */

static struct pliant_failure_item item(int64_t at_ms, const char *node, const char *cause)
{
    return (struct pliant_failure_item){.at_ms = at_ms,
                                        .reason = PLIANT_REASON_TASK_FAILED,
                                        .recoverable = true,
                                        .task = {{1}, 2, 3},
                                        .node = node,
                                        .cause = cause};
}

static int add(struct failures *f, int64_t at_ms)
{
    struct pliant_failure_item i = item(at_ms, "n1", "it broke");

    return failures_add(f, &i);
}

static const struct pliant_failure *archive(struct failures *f)
{
    const struct pliant_failure *entry;

    cr_assert_eq(failures_archive(f, &entry), 0);
    return entry;
}

Test(exception_history, keeps_copies_in_order_the_first_is_the_root) /* [S-HIST-1] */
{
    struct failures f;
    char node[] = "n1", cause[] = "first";
    struct pliant_failure_item first = item(10, node, cause), second = item(20, NULL, NULL);
    const struct pliant_failure *entry;

    failures_init(&f, NULL, 16);
    cr_assert(failures_empty(&f));
    failures_add(&f, &first);
    failures_add(&f, &second);
    cr_assert(!failures_empty(&f));
    memset(node, 'x', 2);
    memset(cause, 'x', 5);
    entry = archive(&f);
    cr_assert(failures_empty(&f));
    cr_assert_eq(entry, failures_at(&f, 0));
    cr_assert_eq(entry->n, 2);
    cr_assert_eq(entry->n_more, 0);
    cr_assert_eq(entry->items[0].at_ms, 10);
    cr_assert_str_eq(entry->items[0].node, "n1");
    cr_assert_str_eq(entry->items[0].cause, "first");
    cr_assert_eq(entry->items[0].task.attempt, 3);
    cr_assert_str_eq(entry->items[1].node, "");
    cr_assert_str_eq(entry->items[1].cause, "");
    failures_free(&f);
}

Test(exception_history, makes_no_entry_of_nothing) /* [S-HIST-1] */
{
    struct failures f;

    failures_init(&f, NULL, 16);
    cr_assert_null(archive(&f));
    cr_assert_null(failures_at(&f, 0));
    add(&f, 1);
    cr_assert_not_null(archive(&f));
    cr_assert_null(archive(&f));
    cr_assert_null(failures_at(&f, 1));
    failures_free(&f);
}

Test(exception_history, counts_what_it_does_not_keep) /* [S-HIST-1] */
{
    struct failures f;
    const struct pliant_failure *entry;

    failures_init(&f, NULL, 16);
    for (int64_t i = 0; i < 10000; i++)
        add(&f, i);
    entry = archive(&f);
    cr_assert_eq(entry->n, FAILURES_KEPT);
    cr_assert_eq(entry->n_more, 10000 - FAILURES_KEPT);
    cr_assert_eq(entry->items[0].at_ms, 0);
    cr_assert_eq(entry->items[FAILURES_KEPT - 1].at_ms, FAILURES_KEPT - 1);
    add(&f, 5);
    cr_assert_eq(archive(&f)->n_more, 0);
    failures_free(&f);
}

Test(exception_history, lets_the_oldest_entry_go) /* [S-HIST-3] */
{
    for (uint32_t size = 1; size <= 17; size += 8) {
        struct failures f;

        failures_init(&f, NULL, size);
        for (int64_t i = 1; i <= 40; i++) {
            add(&f, i);
            cr_assert_eq(archive(&f)->items[0].at_ms, i);
        }
        for (uint32_t i = 0; i < size; i++)
            cr_assert_eq(failures_at(&f, i)->items[0].at_ms, 40 - i);
        cr_assert_null(failures_at(&f, size));
        failures_free(&f);
    }
}

Test(exception_history, shows_an_evicted_entry_until_the_step_is_over) /* [S-HIST-3] */
{
    struct failures f;
    const struct pliant_failure *first;

    failures_init(&f, NULL, 1);
    add(&f, 1);
    first = archive(&f); /* an action shows it */
    add(&f, 2);
    cr_assert_eq(archive(&f)->items[0].at_ms, 2);
    cr_assert_eq(first->items[0].at_ms, 1);
    cr_assert_str_eq(first->items[0].cause, "it broke");
    cr_assert_eq(failures_at(&f, 0)->items[0].at_ms, 2);
    failures_bury(&f);
    failures_free(&f);
}

Test(exception_history, of_size_zero_keeps_nothing) /* [S-HIST-3] */
{
    struct failures f;

    failures_init(&f, NULL, 0);
    add(&f, 1);
    cr_assert_null(archive(&f));
    cr_assert(failures_empty(&f));
    cr_assert_null(failures_at(&f, 0));
    failures_free(&f);
}

Test(exception_history, cuts_long_texts) /* [S-HIST-5] */
{
    static char cause[2 * PLIANT_CAUSE_MAX], node[2 * PLIANT_NAME_MAX];
    struct failures f;
    struct pliant_failure_item i;
    const struct pliant_failure *entry;

    memset(cause, 'c', sizeof cause - 1);
    memset(node, 'n', sizeof node - 1);
    i = item(1, node, cause);
    failures_init(&f, NULL, 1);
    failures_add(&f, &i);
    entry = archive(&f);
    cr_assert_eq(strlen(entry->items[0].cause), PLIANT_CAUSE_MAX);
    cr_assert_eq(strlen(entry->items[0].node), PLIANT_NAME_MAX);
    failures_free(&f);
}

/* Three entries of two failures each, into a ring of two. */
static int live_a_life(struct failures *f)
{
    const struct pliant_failure *entry;

    for (int64_t i = 0; i < 3; i++)
        if (add(f, i) < 0 || add(f, i) < 0 || failures_archive(f, &entry) < 0)
            return -ENOMEM;
    return add(f, 9);
}

Test(exception_history, leaks_nothing_whichever_allocation_fails)
{
    for (size_t k = 1;; k++) {
        FAILING_ALLOC(hook, k);
        struct failures f;
        int error;

        failures_init(&f, &hook.hook, 2);
        error = live_a_life(&f);
        failures_free(&f);
        cr_assert_eq(hook.live, 0, "at allocation %zu", k);
        if (hook.calls < k) {
            cr_assert_eq(error, 0);
            break;
        }
        cr_assert_eq(error, -ENOMEM);
    }
}

Test(exception_history, is_unchanged_by_a_failure_for_want_of_memory)
{
    for (size_t k = 2; k <= 3; k++) { /* node, cause, list */
        FAILING_ALLOC(hook, k);
        struct failures f;

        failures_init(&f, &hook.hook, 2);
        cr_assert_eq(add(&f, 1), -ENOMEM);
        cr_assert(failures_empty(&f));
        cr_assert_eq(add(&f, 2), 0);
        cr_assert_eq(archive(&f)->items[0].at_ms, 2);
        failures_free(&f);
        cr_assert_eq(hook.live, 0);
    }
}

/* ---- as the scheduler writes it --------------------------------------------------------- */

static struct world restarting_world(void)
{
    return world_running(
        (struct world_spec){.options = {"restart-strategy.type", "fixed-delay",
                                        "restart-strategy.fixed-delay.attempts", "100000",
                                        "restart-strategy.fixed-delay.delay", "1 s"}},
        4);
}

Test(exception_history, makes_one_entry_an_incarnation_when_all_tasks_are_down)
/* [S-HIST-1, S-HIST-2, S-GEN-11] */
{
    struct world w = restarting_world();
    const struct pliant_failure *entry;

    w.cancels = false;
    world_to(&w, 700);
    world_fail_task(&w, 1, 2, true);
    world_to(&w, 800);
    world_fail(&w, true);
    world_fail_task(&w, 1, 0, true);
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 1);
    cr_assert_null(pliant_failure_at(w.s, 0)); /* one task lives */
    world_task(&w, PLIANT_EV_TASK_CANCELED, 1, 3);
    cr_assert_eq(world_count(&w, PLIANT_ACT_FAILURE), 1);
    entry = pliant_failure_at(w.s, 0);
    cr_assert_eq(world_action(&w, PLIANT_ACT_FAILURE, 0)->failure.entry, entry);
    cr_assert_eq(entry->n, 3);
    cr_assert_eq(entry->items[0].at_ms, 700);
    cr_assert_eq(entry->items[0].reason, PLIANT_REASON_TASK_FAILED);
    cr_assert_eq(entry->items[1].reason, PLIANT_REASON_GLOBAL_FAILURE);
    cr_assert_eq(entry->items[2].at_ms, 800);
    cr_assert_null(pliant_failure_at(w.s, 1));
    world_to(&w, 1800); /* the entry survives the restart */
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_assert_not_null(pliant_failure_at(w.s, 0));
    world_free(&w);
}

Test(exception_history, knows_a_task_by_its_place_and_a_global_failure_by_none) /* [S-HIST-5] */
{
    struct world w = restarting_world();
    const struct pliant_failure_item *i;

    w.cancels = false;
    world_fail_task(&w, 1, 2, false);
    world_fail(&w, true);
    world_lose(&w, "n1");
    i = pliant_failure_at(w.s, 0)->items;
    cr_assert_eq(i[0].task.vertex.v, 1);
    cr_assert_eq(i[0].task.subtask, 2);
    cr_assert_eq(i[0].task.attempt, 1);
    cr_assert_str_eq(i[0].node, "n1");
    cr_assert_str_eq(i[0].cause, "it broke");
    cr_assert(!i[0].recoverable);
    cr_assert_eq(i[1].task.vertex.v, 0);
    cr_assert_str_eq(i[1].node, "");
    cr_assert_str_eq(i[1].cause, "all of it broke");
    cr_assert(i[1].recoverable);
    cr_assert_eq(i[2].reason, PLIANT_REASON_NODE_LOST);
    cr_assert_eq(i[2].task.vertex.v, 1);
    cr_assert_str_eq(i[2].node, "n1");
    cr_assert_str_eq(i[2].cause, ""); /* the reason says it all */
    world_free(&w);
}

Test(exception_history, has_nothing_of_a_rescale) /* [S-HIST-4] */
{
    struct world w =
        world_running((struct world_spec){.options = {"jobmanager.adaptive-scheduler.executing."
                                                      "cooldown-after-rescaling",
                                                      "0 s"}},
                      2);

    world_node(&w, "n2", 2);
    cr_assert_eq(world_counts(&w).rescales, 1);
    cr_assert_eq(world_count(&w, PLIANT_ACT_FAILURE), 0);
    cr_assert_null(pliant_failure_at(w.s, 0));
    world_free(&w);
}

Test(exception_history, has_the_failures_of_states_without_a_graph) /* [S-HIST-6] */
{
    struct world w = world_new((struct world_spec){0});

    w.reserves = false;
    world_start(&w);
    world_node(&w, "n1", 4);
    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_assert_eq(pliant_failure_at(w.s, 0)->items[0].reason, PLIANT_REASON_CREATION_FAILED);
    world_free(&w);

    w = world_new((struct world_spec){.options = {"jobmanager.adaptive-scheduler.submission."
                                                  "resource-wait-timeout",
                                                  "1 s"}});
    world_start(&w);
    world_to(&w, 1000);
    cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_FAILED);
    cr_assert_eq(pliant_failure_at(w.s, 0)->items[0].reason, PLIANT_REASON_NOT_ENOUGH_RESOURCES);
    world_free(&w);
}

Test(exception_history, stays_bounded_after_ten_thousand_failures) /* [S-HIST-3]; trouble 074 */
{
    FAILING_ALLOC(hook, 0);
    struct world w = world_running(
        (struct world_spec){.options = {"restart-strategy.type", "fixed-delay",
                                        "restart-strategy.fixed-delay.attempts", "100000",
                                        "restart-strategy.fixed-delay.delay", "0 s"},
                            .alloc = &hook.hook},
        4);
    size_t live = 0;

    for (uint32_t i = 0; i < 10000; i++) {
        w.n_states = 1;
        w.states[0] = (uint8_t)pliant_state(w.s);
        w.now_ms++;
        world_fail_task(&w, 1, i % 4, true);
        cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
        if (i == 1000)
            live = hook.live;
        cr_assert(i <= 1000 || hook.live <= live + 4, "after %u failures: %zu blocks", i,
                  hook.live);
    }
    for (size_t i = 0; i < 16; i++)
        cr_assert_eq(pliant_failure_at(w.s, i)->items[0].at_ms, 10000 - (int64_t)i);
    cr_assert_null(pliant_failure_at(w.s, 16));
    world_free(&w);
    cr_assert_eq(hook.live, 0);
}

Test(exception_history, stays_bounded_in_one_incarnation) /* [S-HIST-1]; trouble 074 */
{
    struct world w = restarting_world();

    w.cancels = false;
    for (int i = 0; i < 10000; i++) {
        w.now_ms++;
        world_fail(&w, true);
    }
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 64);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n_more, 10000 - 64);
    world_free(&w);
}

Test(exception_history, follows_its_option) /* [S-HIST-3] */
{
    static const char *const sizes[] = {"0", "1", "3"};

    for (size_t i = 0; i < 3; i++) {
        struct world w = world_running(
            (struct world_spec){.options = {"restart-strategy.type", "fixed-delay",
                                            "restart-strategy.fixed-delay.attempts", "100",
                                            "restart-strategy.fixed-delay.delay", "0 s",
                                            "web.exception-history-size", sizes[i]}},
            4);
        size_t kept = 0;

        for (int k = 0; k < 5; k++) {
            world_fail(&w, true);
            cr_assert_eq(world_count(&w, PLIANT_ACT_FAILURE), i > 0);
        }
        while (pliant_failure_at(w.s, kept))
            kept++;
        cr_assert_eq(kept, (size_t)(sizes[i][0] - '0'));
        world_free(&w);
    }
}

/* pliant_test.c - the public functions at their edges */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "world.h"

static const pliant_vertex_id V = {1};

static struct pliant_event up(const char *name, uint64_t incarnation, uint32_t slots)
{
    return (struct pliant_event){
        .kind = PLIANT_EV_NODE_UP,
        .node_up = {.name = name, .incarnation = incarnation, .slots = slots}};
}

/* ---- malformed events ------------------------------------------------------------------- */

static char long_name[PLIANT_NAME_MAX + 2];

/* The step is refused, and the whole state is what it was. */
static void expect_refused(struct world *w, int64_t now_ms, const struct pliant_event *ev,
                           const char *what)
{
    struct pliant_actions acts = {.n = 7};
    void *before, *after;
    size_t n_before, n_after;

    cr_assert_eq(pliant_snapshot(w->s, &before, &n_before), 0);
    cr_assert_eq(pliant_step(w->s, now_ms, ev, &acts), -EINVAL, "%s", what);
    cr_assert_eq(acts.n, 0, "%s", what);
    cr_assert_eq(pliant_snapshot(w->s, &after, &n_after), 0);
    cr_assert(n_before == n_after && memcmp(before, after, n_before) == 0, "%s", what);
    pliant_bytes_free(NULL, before);
    pliant_bytes_free(NULL, after);
}

Test(pliant, refuses_malformed_events_and_changes_nothing)
{
    static const struct pliant_label no_key[] = {{"", "x"}}, null_key[] = {{NULL, "x"}},
                                     no_value[] = {{"k", NULL}}, long_key[] = {{long_name, "x"}},
                                     long_value[] = {{"k", long_name}};
    static const struct pliant_bounds no_vertex[] = {{"v", 1, 2}, {NULL, 1, 2}};
    static const struct pliant_output no_bytes[] = {{0, 0, NULL}, {1, 1, NULL}};
#define NODE(...)                                                                                  \
    {                                                                                              \
        .kind = PLIANT_EV_NODE_UP, .node_up = {.incarnation = 9, __VA_ARGS__ }                     \
    }
#define LABELS(l) NODE(.name = "n", .labels = (l), .n_labels = 1)
    const struct {
        const char *what;
        struct pliant_event ev;
    } rows[] = {
        {"the end of kinds", {.kind = PLIANT_EVENTS}},
        {"a kind beyond", {.kind = (enum pliant_event_kind)1000}},
        {"no name", NODE(.slots = 1)},
        {"an empty name", NODE(.name = "", .slots = 1)},
        {"a long name", NODE(.name = long_name, .slots = 1)},
        {"too many slots", NODE(.name = "n", .slots = PLIANT_MAX_SLOTS + 1)},
        {"too many slots together", NODE(.name = "n", .slots = PLIANT_MAX_SLOTS - 3)},
        {"more slots than a number holds", NODE(.name = "n", .slots = UINT32_MAX)},
        {"a long zone", NODE(.name = "n", .zone = long_name)},
        {"a long domain", NODE(.name = "n", .domain = long_name)},
        {"no labels where some are", NODE(.name = "n", .n_labels = 1)},
        {"a label without a key", LABELS(null_key)},
        {"a label with an empty key", LABELS(no_key)},
        {"a label without a value", LABELS(no_value)},
        {"a long key", LABELS(long_key)},
        {"a long value", LABELS(long_value)},
        {"a drain of nobody", {.kind = PLIANT_EV_NODE_DRAINING}},
        {"a drain before all time",
         {.kind = PLIANT_EV_NODE_DRAINING, .draining = {.name = "n1", .deadline_at_ms = -1}}},
        {"a drain that ends with the first number",
         {.kind = PLIANT_EV_NODE_DRAINING,
          .draining = {.name = "n1", .deadline_at_ms = INT64_MIN}}},
        {"a drain for no reason",
         {.kind = PLIANT_EV_NODE_DRAINING,
          .draining = {.name = "n1", .reason = (enum pliant_drain_reason)4}}},
        {"a withdrawal of nobody", {.kind = PLIANT_EV_NODE_DRAIN_WITHDRAWN}},
        {"the loss of an empty name", {.kind = PLIANT_EV_NODE_LOST, .node.name = ""}},
        {"a grant to nobody", {.kind = PLIANT_EV_SLOTS_GRANTED, .granted.slots = 1}},
        {"too large a grant",
         {.kind = PLIANT_EV_SLOTS_GRANTED,
          .granted = {.name = "n1", .slots = PLIANT_MAX_SLOTS - 3}}},
        {"slots reclaimed of nobody", {.kind = PLIANT_EV_SLOTS_RECLAIMED, .reclaimed.slots = 1}},
        {"slots reclaimed before all time",
         {.kind = PLIANT_EV_SLOTS_RECLAIMED,
          .reclaimed = {.name = "n1", .slots = 1, .deadline_at_ms = INT64_MIN}}},
        {"no sizes where some are",
         {.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
          .checkpoint = {.id = 1, .own_accord = true, .n_sizes = 1}}},
        {"no sizes of a savepoint",
         {.kind = PLIANT_EV_SAVEPOINT_COMPLETED, .checkpoint.n_sizes = 1}},
        {"a checkpoint from before all time",
         {.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
          .checkpoint = {.id = 1, .own_accord = true, .triggered_at_ms = INT64_MIN}}},
        {"a checkpoint that is none",
         {.kind = PLIANT_EV_CHECKPOINT_COMPLETED, .checkpoint = {.own_accord = true}}},
        {"a checkpoint that leaves no ids for others",
         {.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
          .checkpoint = {.id = UINT64_MAX, .own_accord = true}}},
        {"no requirements where some are", {.kind = PLIANT_EV_REQUIREMENTS, .requirements.n = 1}},
        {"requirements of no vertex",
         {.kind = PLIANT_EV_REQUIREMENTS, .requirements = {.v = no_vertex, .n = 2}}},
        {"no outputs where some are", {.kind = PLIANT_EV_TASK_FINISHED, .finished.n_outputs = 1}},
        {"no bytes where some are",
         {.kind = PLIANT_EV_TASK_FINISHED, .finished = {.outputs = no_bytes, .n_outputs = 2}}},
        {"an input of no edge",
         {.kind = PLIANT_EV_TASK_FAILED, .failure = {.input_lost = true, .edge = 7}}},
    };
    struct world w = world_running((struct world_spec){0}, 4);

    memset(long_name, 'x', sizeof long_name - 1);
    world_to(&w, 1000);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_refused(&w, 1000, &rows[i].ev, rows[i].what);
    world_free(&w);
}

Test(pliant, takes_names_up_to_their_limit)
{
    struct world w = world_running((struct world_spec){0}, 4);
    char name[PLIANT_NAME_MAX + 1];
    struct pliant_label labels[] = {{name, name}, {"k", ""}};
    struct pliant_event ev = up(name, 1, 2);

    memset(name, 'x', PLIANT_NAME_MAX);
    name[PLIANT_NAME_MAX] = '\0';
    ev.node_up.zone = ev.node_up.domain = name;
    ev.node_up.labels = labels;
    ev.node_up.n_labels = 2;
    world_event(&w, ev);
    cr_assert_eq(world_counts(&w).slots, 6);
    world_lose(&w, name);
    cr_assert_eq(world_counts(&w).slots, 4);
    world_free(&w);
}

Test(pliant, refuses_time_that_goes_back)
{
    static const int64_t times[] = {INT64_MIN, -1, 0, 999, PLIANT_NEVER};
    struct world w = world_running((struct world_spec){0}, 4);

    world_to(&w, 1000);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        expect_refused(&w, times[i], &(struct pliant_event){.kind = PLIANT_EV_TICK}, "time");
    world_to(&w, 1000); /* the same instant is fine */
    world_free(&w);
}

Test(pliant, refuses_negative_time_from_the_first_step_on)
{
    struct world w = world_new((struct world_spec){0});

    expect_refused(&w, -1, &(struct pliant_event){.kind = PLIANT_EV_START}, "time");
    world_to(&w, 0);
    world_start(&w);
    cr_assert_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
    world_free(&w);
}

/* ---- the end of time -------------------------------------------------------------------- */

/* What follows one event at such an instant; pliant_check() wants timers that there is no time for.
 */
static size_t step(struct world *w, int64_t now_ms, struct pliant_event ev)
{
    struct pliant_actions acts;

    cr_assert_eq(pliant_step(w->s, now_ms, &ev, &acts), 0);
    for (size_t i = 0; i < acts.n; i++)
        if (acts.v[i].kind == PLIANT_ACT_RESERVE)
            w->plan = acts.v[i].reserve.plan;
    return acts.n;
}

Test(pliant, goes_on_at_the_end_of_time) /* deadlines saturate */
{
    static const int64_t ends[] = {PLIANT_NEVER - 1, PLIANT_NEVER - 1000, PLIANT_NEVER - 60000};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct world w = world_new((struct world_spec){
            .options = {"execution.checkpointing.interval", "10 s", "restart-strategy.type",
                        "exponential-delay", "restart-strategy.exponential-delay.initial-backoff",
                        "30 d", "restart-strategy.exponential-delay.max-backoff", "60 d"}});
        int64_t now = ends[i];

        step(&w, now, (struct pliant_event){.kind = PLIANT_EV_START});
        step(&w, now, up("n1", 1, 2));
        cr_assert_eq(pliant_state(w.s), PLIANT_WAITING_FOR_RESOURCES);
        cr_assert_gt(pliant_next_deadline(w.s), now);
        step(&w, now, up("n2", 1, 2));
        step(&w, now, (struct pliant_event){.kind = PLIANT_EV_SLOTS_RESERVED, .plan.plan = w.plan});
        cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
        for (uint32_t t = 0; t < 4; t++)
            step(&w, now,
                 (struct pliant_event){.kind = PLIANT_EV_TASK_RUNNING, .task = {{1}, t, 1}});
        step(&w, now,
             (struct pliant_event){.kind = PLIANT_EV_CHECKPOINT_COMPLETED,
                                   .checkpoint = {.id = 5, .own_accord = true}}); /* since 0 */
        step(&w, now,
             (struct pliant_event){.kind = PLIANT_EV_NODE_DRAINING,
                                   .draining = {.name = "n1", .deadline_at_ms = PLIANT_NEVER}});
        step(&w, now,
             (struct pliant_event){.kind = PLIANT_EV_NODE_DRAINING,
                                   .draining = {.name = "n2", .deadline_at_ms = 0}});
        step(&w, now, (struct pliant_event){.kind = PLIANT_EV_GLOBAL_FAILURE});
        step(&w, PLIANT_NEVER - 1, (struct pliant_event){.kind = PLIANT_EV_CANCEL});
        for (uint32_t t = 0; t < 4; t++)
            step(&w, PLIANT_NEVER - 1,
                 (struct pliant_event){.kind = PLIANT_EV_TASK_CANCELED, .task = {{1}, t, 1}});
        cr_assert_eq(pliant_job_status(w.s), PLIANT_JOB_CANCELED);
        cr_assert_eq(pliant_next_deadline(w.s), PLIANT_NEVER);
        world_free(&w);
    }
}

Test(pliant, comes_late_without_harm)
{
    struct world w = world_new((struct world_spec){.parallelism = 4});
    struct pliant_actions acts;

    world_start(&w);
    world_node(&w, "n1", 2);
    w.now_ms = 1000000; /* stabilization, timeout, idle check: all overdue; the first one counts */
    cr_assert_eq(pliant_step(w.s, w.now_ms, &(struct pliant_event){.kind = PLIANT_EV_TICK}, &acts),
                 0);
    cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    cr_assert_null(pliant_check(w.s));
    cr_assert_gt(pliant_next_deadline(w.s), w.now_ms);
    world_free(&w);
}

/* ---- accessors -------------------------------------------------------------------------- */

Test(pliant, answers_for_ids_that_are_unset_or_unknown)
{
    static const uint32_t ids[] = {0, 2, 77, UINT32_MAX};
    struct world w = world_running((struct world_spec){0}, 4);

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct pliant_task_info info;
        uint32_t min = 5, max = 5;

        cr_assert_eq(pliant_parallelism(w.s, (pliant_vertex_id){ids[i]}), 0);
        pliant_vertex_bounds(w.s, (pliant_vertex_id){ids[i]}, &min, &max);
        cr_assert(min == 0 && max == 0);
        cr_assert(!pliant_task_info(w.s, (pliant_vertex_id){ids[i]}, 0, &info));
        cr_assert_str_eq(pliant_node_name(w.s, (pliant_node_id){ids[i]}), "");
        if (ids[i] != 2) {
            cr_assert_eq(pliant_slot_node(w.s, (pliant_slot_id){ids[i]}).v, 0);
            cr_assert_eq(pliant_slot_index(w.s, (pliant_slot_id){ids[i]}), 0);
        }
    }
    cr_assert_null(pliant_rescale_at(w.s, 1));
    cr_assert_null(pliant_rescale_last(w.s, (enum pliant_rescale_terminal)77));
    cr_assert_null(pliant_failure_at(w.s, 0));
    world_free(&w);
}

Test(pliant, shows_the_tasks_of_the_graph_and_nothing_without_one)
{
    struct world w = world_new((struct world_spec){0});
    struct pliant_task_info info;

    cr_assert(!pliant_task_info(w.s, V, 0, &info));
    cr_assert_eq(pliant_parallelism(w.s, V), 0);
    world_start(&w);
    w.runs = false;
    world_node(&w, "n1", 4);
    cr_assert_eq(pliant_parallelism(w.s, V), 4);
    cr_assert(!pliant_task_info(w.s, V, 4, &info));
    cr_assert(pliant_task_info(w.s, V, 3, &info));
    cr_assert_eq(info.state, PLIANT_TASK_DEPLOYING);
    cr_assert_eq(info.attempt, 1);
    cr_assert_eq(pliant_slot_index(w.s, info.slot), 3);
    cr_assert_str_eq(pliant_node_name(w.s, pliant_slot_node(w.s, info.slot)), "n1");
    world_task(&w, PLIANT_EV_TASK_INITIALIZING, 1, 3);
    cr_assert(pliant_task_info(w.s, V, 3, &info));
    cr_assert_eq(info.state, PLIANT_TASK_INITIALIZING);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 3);
    cr_assert(pliant_task_info(w.s, V, 3, &info));
    cr_assert_eq(info.state, PLIANT_TASK_FINISHED);
    cr_assert_eq(info.slot.v, 0); /* over */
    world_plain(&w, PLIANT_EV_SUSPEND);
    cr_assert(!pliant_task_info(w.s, V, 0, &info));
    world_free(&w);
}

Test(pliant, counts)
{
    struct world w =
        world_running((struct world_spec){.parallelism = 4,
                                          .min_parallelism = 2,
                                          .options = {"execution.checkpointing.interval", "10 s"}},
                      4);
    struct pliant_counts c;

    world_node(&w, "n2", 3);
    world_drain(&w, "n2", 0);
    world_to(&w, 500);
    world_checkpoint(&w);
    world_task(&w, PLIANT_EV_TASK_FINISHED, 1, 0);
    c = world_counts(&w);
    cr_assert_eq(c.nodes, 2);
    cr_assert_eq(c.draining_nodes, 1);
    cr_assert_eq(c.slots, 7);
    cr_assert_eq(c.slots_offered, 4);
    cr_assert_eq(c.slots_used, 3);
    cr_assert_eq(c.desired, 4);
    cr_assert_eq(c.minimal, 2);
    cr_assert_eq(c.tasks, 4);
    cr_assert_eq(c.tasks_live, 3);
    cr_assert_eq(c.tasks_running, 3);
    cr_assert_neq(c.checkpoint, 0);
    cr_assert_eq(c.checkpoint_at_ms, 500);
    world_free(&w);
}

Test(pliant, says_what_comes_next)
{
    struct world w = world_new((struct world_spec){
        .options = {"jobmanager.adaptive-scheduler.retry-execution-graph-creation."
                    "restart-strategy.type",
                    "fixed-delay", "execution.checkpointing.interval", "10 s",
                    "restart-strategy.type", "fixed-delay"}});
    struct pliant_next next;

    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_NONE);
    cr_assert_eq(next.at_ms, PLIANT_NEVER);
    cr_assert_str_eq(next.phase, "");
    w.reserves = false;
    world_start(&w);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_RESOURCE_TIMEOUT);
    cr_assert_eq(next.at_ms, 300000);
    world_node(&w, "n1", 3);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_SUFFICIENT_RESOURCES);
    cr_assert_eq(next.at_ms, 10000);
    cr_assert_str_eq(next.phase, "Stabilizing");
    world_node(&w, "n2", 1);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_PLAN_READY);
    cr_assert_eq(next.at_ms, PLIANT_NEVER);
    world_plan(&w, PLIANT_EV_CREATION_FAILED, true);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_BACKOFF_OVER);
    cr_assert_eq(next.at_ms, 1000);
    world_to(&w, 1000);
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_RESCALE);
    cr_assert_eq(next.at_ms, 31000); /* the cooldown */
    cr_assert_str_eq(next.phase, "Cooldown");
    world_stop(&w);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_SAVEPOINT_DONE);
    world_savepoint(&w, false);
    w.cancels = false;
    world_fail(&w, true);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_BACKOFF_OVER);
    cr_assert_eq(next.at_ms, 181000); /* that of the tasks */
    world_all_tasks(&w, PLIANT_EV_TASK_CANCELED);
    pliant_next(w.s, &next);
    cr_assert_eq(next.at_ms, 2000); /* that of the back-off */
    world_plain(&w, PLIANT_EV_SUSPEND);
    pliant_next(w.s, &next);
    cr_assert_eq(next.decision, PLIANT_REASON_NONE);
    world_free(&w);
}

/* ---- lives of a node -------------------------------------------------------------------- */

Test(pliant, ignores_an_older_or_the_same_life_of_a_node_that_is_up)
{
    struct world w = world_new((struct world_spec){0});
    uint64_t ignored;

    world_start(&w);
    world_event(&w, up("n1", 5, 2));
    ignored = world_counts(&w).events_ignored;
    world_event(&w, up("n1", 4, 9));
    world_event(&w, up("n1", 5, 9));
    cr_assert_eq(world_counts(&w).events_ignored, ignored + 2);
    cr_assert_eq(world_counts(&w).slots, 2);
    world_free(&w);
}

Test(pliant, takes_a_newer_life_for_a_loss_and_a_node_that_joins) /* [S-FAIL-5] */
{
    struct world w =
        world_new((struct world_spec){.options = {"restart-strategy.type", "fixed-delay"}});

    world_event(&w, up("n1", 5, 4));
    world_start(&w);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_event(&w, up("n1", 6, 5));
    cr_assert_eq(pliant_state(w.s), PLIANT_RESTARTING);
    cr_assert_eq(w.changed.flag[2], PLIANT_REASON_NODE_LOST);
    cr_assert_eq(world_counts(&w).nodes, 1);
    cr_assert_eq(world_counts(&w).slots, 5);
    cr_assert_eq(pliant_failure_at(w.s, 0)->n, 4);
    world_to(&w, 1000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

Test(pliant, ignores_news_of_a_life_that_is_not_up)
{
    static const uint64_t others[] = {4, 6, UINT64_MAX};
    struct world w = world_new((struct world_spec){0});
    uint64_t ignored;

    world_event(&w, up("n1", 5, 4));
    world_start(&w);
    ignored = world_counts(&w).events_ignored;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        world_event(&w,
                    (struct pliant_event){.kind = PLIANT_EV_NODE_LOST, .node = {"n1", others[i]}});
        world_event(&w,
                    (struct pliant_event){.kind = PLIANT_EV_NODE_DRAINING,
                                          .draining = {.name = "n1", .incarnation = others[i]}});
        world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_DRAIN_WITHDRAWN,
                                              .node = {"n1", others[i]}});
        world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                              .granted = {"n1", others[i], 1}});
        cr_assert_eq(w.n_actions, 0);
    }
    cr_assert_eq(world_counts(&w).events_ignored, ignored + 12);
    cr_assert_eq(world_counts(&w).slots_offered, 4);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_LOST, .node = {"n1", 5}});
    cr_assert_eq(world_counts(&w).nodes, 0);
    world_free(&w);
}

Test(pliant, lets_any_life_return_after_a_loss)
{
    static const uint64_t lives[] = {9, 3, 3, 0, UINT64_MAX};
    struct world w = world_new((struct world_spec){0});

    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        world_event(&w, up("n1", lives[i], 2));
        cr_assert_eq(world_counts(&w).nodes, 1);
        world_lose(&w, "n1");
        cr_assert_eq(world_counts(&w).nodes, 0);
        world_lose(&w, "n1"); /* twice */
    }
    cr_assert_eq(world_counts(&w).events_ignored, 5);
    world_free(&w);
}

/* ---- slots ------------------------------------------------------------------------------ */

Test(pliant, names_slots_by_node_and_index)
{
    struct world w = world_new((struct world_spec){.parallelism = 5, .min_parallelism = 5});
    struct pliant_task_info info;
    uint32_t seen[2] = {0, 0};

    world_start(&w);
    world_node(&w, "n1", 2);
    world_node(&w, "n2", 1);
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n1", .slots = 2}});
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    for (uint32_t i = 0; i < 5; i++) {
        pliant_task_info(w.s, V, i, &info);
        if (strcmp(pliant_node_name(w.s, pliant_slot_node(w.s, info.slot)), "n1") == 0)
            seen[0] |= 1u << pliant_slot_index(w.s, info.slot);
        else
            seen[1] |= 1u << pliant_slot_index(w.s, info.slot);
    }
    cr_assert_eq(seen[0], 0xf);
    cr_assert_eq(seen[1], 0x1);
    world_free(&w);
}

Test(pliant, takes_a_grant_of_nothing_for_nothing)
{
    struct world w = world_running((struct world_spec){0}, 4);

    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_SLOTS_GRANTED,
                                          .granted = {.name = "n1", .slots = 0}});
    cr_assert_eq(w.n_actions, 0);
    cr_assert_eq(world_counts(&w).slots, 4);
    world_free(&w);
}

Test(pliant, does_not_take_a_row_s_next_life_for_the_slot_of_a_plan) /* [S-CEG-4, S-CEG-5] */
{
    struct world w = world_new((struct world_spec){0});

    w.reserves = false;
    world_start(&w);
    world_node(&w, "n1", 4);
    cr_assert_eq(pliant_state(w.s), PLIANT_CREATING_EXECUTION_GRAPH);
    world_lose(&w, "n1");
    world_node(&w, "n2", 4); /* in the same rows */
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true);
    cr_assert(world_went(&w, "Created > WaitingForResources > CreatingExecutionGraph > "
                             "WaitingForResources > CreatingExecutionGraph"));
    w.reserves = true;
    world_plan(&w, PLIANT_EV_SLOTS_RESERVED, true); /* the new plan */
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    world_free(&w);
}

/* ---- memory ----------------------------------------------------------------------------- */

Test(pliant, uses_memory_for_what_lives_not_for_what_ever_lived)
{
    FAILING_ALLOC(hook, 0);
    struct world w = world_running((struct world_spec){.alloc = &hook.hook}, 4);
    size_t live = 0;
    pliant_node_id highest = {0};

    for (uint32_t i = 0; i < 10000; i++) {
        char name[16];
        struct pliant_task_info info;

        w.now_ms++;
        snprintf(name, sizeof name, "x%u", i);
        world_node(&w, name, 3);
        world_lose(&w, name);
        if (i == 10)
            live = hook.live;
        cr_assert(i <= 10 || hook.live <= live, "after %u nodes: %zu blocks", i, hook.live);
        pliant_task_info(w.s, V, 0, &info);
        if (pliant_slot_node(w.s, info.slot).v > highest.v)
            highest = pliant_slot_node(w.s, info.slot);
    }
    world_node(&w, "last", 2);
    cr_assert_eq(highest.v, 1);
    cr_assert_str_eq(pliant_node_name(w.s, (pliant_node_id){2}), "last"); /* rows are used again */
    world_free(&w);
    cr_assert_eq(hook.live, 0);
}

Test(pliant, without_memory_stays_without)
{
    FAILING_ALLOC(hook, 0);
    struct world w = world_running((struct world_spec){.alloc = &hook.hook}, 4);
    struct pliant_event ev = up("n2", 1, 2), tick = {.kind = PLIANT_EV_TICK};
    struct pliant_actions acts = {.n = 3};

    hook.fail_at = hook.calls + 1;
    cr_assert_eq(pliant_step(w.s, 10, &ev, &acts), -ENOMEM);
    cr_assert_eq(acts.n, 0);
    hook.fail_at = 0;
    cr_assert_eq(pliant_step(w.s, 10, &tick, &acts), -ENOMEM);
    cr_assert_eq(pliant_step(w.s, 0, &tick, &acts), -ENOMEM); /* whatever comes */
    world_free(&w);
    cr_assert_eq(hook.live, 0);
}

/* ---- making and ending ------------------------------------------------------------------ */

Test(pliant, makes_no_scheduler_of_what_breaks_a_rule)
{
    static const struct pliant_vertex_spec vertices[] = {{.id = "a", .parallelism = 2},
                                                         {.id = "b", .parallelism = 2}};
    static const struct pliant_edge_spec blocking[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
    struct pliant_job *job;
    struct pliant_config cfg;
    struct pliant_sched *s = NULL;
    struct pliant_error err = {0};

    cr_assert_eq(pliant_job_new(
                     &(struct pliant_job_spec){
                         .vertices = vertices, .n_vertices = 2, .edges = blocking, .n_edges = 1},
                     NULL, &job, NULL),
                 0);
    pliant_config_init(&cfg);
    cfg.scheduler = PLIANT_SCHEDULER_ADAPTIVE;
    cr_assert_eq(pliant_sched_new(&cfg, job, &s, &err), -EINVAL); /* [S-GEN-14] */
    cr_assert_null(s);
    cr_assert_neq(err.text[0], '\0');
    cfg.restart.exponential.initial_ms = 1000;
    cfg.restart.exponential.max_ms = 10;
    cfg.restart.kind = PLIANT_RESTART_EXPONENTIAL_DELAY;
    cr_assert_eq(pliant_sched_new(&cfg, job, &s, &err), -EINVAL);
    pliant_sched_destroy(&s); /* fine on NULL */
    pliant_job_destroy(&job);
}

Test(pliant, makes_a_scheduler_or_leaks_nothing)
{
    for (size_t k = 1;; k++) {
        FAILING_ALLOC(hook, k);
        struct pliant_job *job;
        struct pliant_config cfg;
        struct pliant_sched *s = NULL;
        int error;

        cr_assert_eq(pliant_job_new(
                         &(struct pliant_job_spec){
                             .vertices = &(struct pliant_vertex_spec){.id = "v", .parallelism = 2},
                             .n_vertices = 1},
                         NULL, &job, NULL),
                     0);
        pliant_config_init(&cfg);
        cfg.alloc = &hook.hook;
        cfg.restart.kind = PLIANT_RESTART_FAILURE_RATE;
        cfg.creation_retry.kind = PLIANT_RESTART_FAILURE_RATE;
        error = pliant_sched_new(&cfg, job, &s, NULL);
        cr_assert(error == (hook.calls < k ? 0 : -ENOMEM));
        cr_assert_eq(s != NULL, error == 0);
        pliant_sched_destroy(&s);
        cr_assert_null(s);
        cr_assert_eq(hook.live, 0);
        pliant_job_destroy(&job);
        if (error == 0)
            break;
    }
}

Test(pliant, copies_the_config_and_bounds_the_histories)
{
    struct world w = world_new(
        (struct world_spec){.options = {"web.adaptive-scheduler.rescale-history.size", "2147483647",
                                        "web.exception-history-size", "2147483647"}});

    memset(&w.cfg, 0, sizeof w.cfg);
    pliant_config_init(&w.cfg);
    w.cfg.alloc = &(struct pliant_alloc){0}; /* no snapshots: it is another config */
    world_start(&w);
    cr_assert_not_null(pliant_rescale_at(w.s, 0));
    world_free(&w);
}

Test(pliant, runs_at_what_it_has_when_more_is_asked_for_than_there_is) /* [S-EXE-14]; trouble 087 */
{
    struct world w = world_running((struct world_spec){.max_parallelism = 1000}, 4);

    world_bounds(&w, 1, 1000);
    cr_assert_eq(world_action(&w, PLIANT_ACT_DECLARE, 0)->declare.desired, 1000);
    world_bounds(&w, 900, 1000);
    world_to(&w, 300000);
    cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
    cr_assert_eq(pliant_parallelism(w.s, V), 4);
    cr_assert_eq(world_counts(&w).restarts, 0);
    cr_assert_eq(world_counts(&w).tasks_running, 4);
    world_free(&w);
}

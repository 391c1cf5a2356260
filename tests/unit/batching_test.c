/* batching_test.c - jobmanager.scheduler: adaptive-batch. Sections 5 and 1.4, 2, 3 of the rules of
 * failover, as the scheduler lives by them; the decisions themselves are tested on vectors */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph_world.h"

#define BATCH "execution.batch.adaptive.auto-parallelism."
#define VOLUME(size) BATCH "avg-data-volume-per-task", size
#define MAX(n) BATCH "max-parallelism", n
#define SOURCES(n) BATCH "default-source-parallelism", n

static const struct pliant_vertex_spec two[] = {{.id = "a"}, {.id = "b"}};
static const struct pliant_vertex_spec three_tasks[] = {{.id = "a", .parallelism = 3}};
static const struct pliant_vertex_spec three[] = {{.id = "a"}, {.id = "b"}, {.id = "c"}};
static const struct pliant_edge_spec keyed[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
static const struct pliant_edge_spec pointwise[] = {{0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING}};
/* a => b => c */
static const struct pliant_edge_spec stages[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                                 {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
/* a, b => c */
static const struct pliant_edge_spec join[] = {{0, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                               {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};

#define WORLD(v, e, ...) world_new(GRAPH(v, e, LONG_IDLE, __VA_ARGS__))

/* It wrote `bytes` for the edge, in equal parts (the rest to the first ones). */
static void wrote(struct world *w, uint32_t vertex, uint32_t subtask, uint32_t edge, uint64_t bytes)
{
    uint32_t n = pliant_subpartitions(w->s, edge, subtask);
    uint64_t *each = calloc(n + 1, sizeof *each);
    struct pliant_output output = {edge, n, each};

    for (uint32_t i = 0; i < n; i++)
        each[i] = bytes / n + (i < bytes % n);
    world_event(w,
                (struct pliant_event){
                    .kind = PLIANT_EV_TASK_FINISHED,
                    .finished = {{{vertex}, subtask, attempt_of(w, vertex, subtask)}, &output, 1}});
    free(each);
}

static void expect_reads(const struct world *w, size_t edge, uint32_t subtask, size_t n,
                         const struct pliant_read *want)
{
    struct pliant_read got[8] = {{0, 0, 0, 0}};

    cr_assert(eq(sz, pliant_reads(w->s, edge, subtask, got, 8), n), "edge %zu, task %u", edge,
              subtask);
    cr_assert(memcmp(got, want, n * sizeof *want) == 0, "edge %zu, task %u: [%u, %u, %u, %u]", edge,
              subtask, got->p0, got->p1, got->s0, got->s1);
}

#define READS(w, edge, subtask, ...)                                                               \
    expect_reads((w), (edge), (subtask),                                                           \
                 sizeof((struct pliant_read[]){__VA_ARGS__}) / sizeof(struct pliant_read),         \
                 (struct pliant_read[]){__VA_ARGS__})

/* ---- who runs what ------------------------------------------------------------------------ */

Test(batching, is_chosen_for_jobs_all_of_whose_edges_are_blocking) /* [P-BATCH-1] */
{
    static const struct pliant_edge_spec mixed[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
                                                    {1, 2, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED}};
    static const struct pliant_edge_spec streaming[] = {
        {0, 1, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED}};
    static const struct {
        const struct pliant_edge_spec *edges;
        size_t n;
        const char *scheduler, *mode, *says; /* says: refused, with this in the text */
    } rows[] = {
        {stages, 2, NULL, NULL, NULL},
        {stages, 2, "AdaptiveBatch", NULL, NULL},
        {stages, 2, "adaptive-batch", NULL, NULL},
        {stages, 0, "adaptive-batch", NULL, NULL},
        {stages, 2, "adaptive", NULL, "pipelined"},
        {streaming, 1, "adaptive-batch", NULL, "jobmanager.scheduler: default"},
        {mixed, 2, "adaptive-batch", NULL, "jobmanager.scheduler: default"},
        {mixed, 2, NULL, NULL, "jobmanager.scheduler: default"},
        {stages, 2, "adaptive-batch", "reactive", "accepted with it: adaptive"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pliant_job_spec spec = {
            .vertices = three, .n_vertices = 3, .edges = rows[i].edges, .n_edges = rows[i].n};
        struct pliant_job *job = NULL;
        struct pliant_sched *s = NULL;
        struct pliant_config cfg;
        struct pliant_error err = {.text = ""};

        pliant_config_init(&cfg);
        if (rows[i].scheduler)
            cr_assert(eq(
                int, pliant_config_set(&cfg, "jobmanager.scheduler", rows[i].scheduler, NULL), 0));
        if (rows[i].mode)
            pliant_config_set(&cfg, "scheduler-mode", rows[i].mode, NULL);
        cr_assert(eq(int, pliant_job_new(&spec, NULL, &job, NULL), 0));
        cr_assert(eq(int, pliant_sched_new(&cfg, job, &s, &err), rows[i].says ? -EINVAL : 0),
                  "row %zu: %s", i, err.text);
        if (rows[i].says)
            cr_expect(strstr(err.text, rows[i].says) != NULL, "row %zu: %s", i, err.text);
        pliant_sched_destroy(&s);
        pliant_job_destroy(&job);
    }
}

/* ---- when a vertex gets its tasks ---------------------------------------------------------- */

Test(batching, a_vertex_gets_its_tasks_when_all_producers_have_finished) /* [5.2] [P-BATCH-2] */
{
    struct world w = WORLD(three, join, SOURCES("2"), VOLUME("10 b"));

    world_node(&w, "n1", 9);
    world_start(&w);
    cr_assert(world_went(&w, "Created > Executing"));
    cr_assert(eq(u32, parallelism_of(&w, A), 2)); /* sources at start */
    cr_assert(eq(u32, parallelism_of(&w, B), 2));
    cr_assert(eq(u32, parallelism_of(&w, C), 0));
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_DECIDED), 2));
    cr_assert(eq(u32, pliant_subpartitions(w.s, 0, 1), 128)); /* the consumer's maximum */
    cr_assert(eq(sz, pliant_reads(w.s, 0, 0, NULL, 0), 0));
    wrote(&w, A, 0, 0, 10);
    wrote(&w, A, 1, 0, 11);
    wrote(&w, B, 0, 1, 7);
    cr_assert(eq(u32, parallelism_of(&w, C), 0));
    wrote(&w, B, 1, 1, 8);
    cr_assert(eq(u32, parallelism_of(&w, C), 5)); /* 36 bytes, in the same step */
    cr_assert(eq(u32, world_action(&w, PLIANT_ACT_DECIDED, 0)->decided.vertex.v, C));
    cr_assert(eq(u32, world_action(&w, PLIANT_ACT_DECIDED, 0)->decided.parallelism, 5));
    cr_assert(eq(u64, world_action(&w, PLIANT_ACT_DECIDED, 0)->decided.bytes, 36));
    expect_states(&w, C, PLIANT_TASK_RUNNING);
    finish_vertex(&w, C);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    cr_assert(world_went(&w, "Created > Executing > Finished"));
    world_free(&w);
}

Test(batching, what_is_read_follows_from_the_sizes) /* [5.8, 5.10] */
{
    static const struct pliant_vertex_spec few[] = {{.id = "a"}, {.id = "b", .max_parallelism = 4}};
    struct world w = WORLD(few, keyed, SOURCES("1"), VOLUME("100 b"));
    const uint64_t bytes[] = {60, 30, 80, 20};
    const struct pliant_output output = {0, 4, bytes};

    world_node(&w, "n1", 9);
    world_start(&w);
    cr_assert(eq(u32, pliant_subpartitions(w.s, 0, 0), 4));
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_TASK_FINISHED,
                                          .finished = {{{A}, 0, 1}, &output, 1}});
    cr_assert(eq(u32, parallelism_of(&w, B), 2));
    READS(&w, 0, 0, {0, 0, 0, 1});
    READS(&w, 0, 1, {0, 0, 2, 3});
    cr_assert(eq(sz, pliant_reads(w.s, 0, 2, NULL, 0), 0));
    world_free(&w);
}

Test(batching, a_fixed_parallelism_gets_equal_shares) /* [5.2, 5.6] */
{
    static const struct pliant_vertex_spec fixed[] = {{.id = "a", .parallelism = 2},
                                                      {.id = "b", .parallelism = 3},
                                                      {.id = "c", .parallelism = 3}};
    static const struct pliant_edge_spec edges[] = {{0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING},
                                                    {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
    struct world w = WORLD(fixed, edges, VOLUME("1 b"));

    world_node(&w, "n1", 9);
    world_start(&w);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_DECIDED), 1)); /* told all the same */
    cr_assert(eq(u32, pliant_subpartitions(w.s, 0, 0), 2));
    wrote(&w, A, 0, 0, 1000);
    wrote(&w, A, 1, 0, 1);
    cr_assert(eq(u32, parallelism_of(&w, B), 3));
    READS(&w, 0, 0, {0, 0, 0, 0});
    READS(&w, 0, 1, {0, 0, 1, 1});
    READS(&w, 0, 2, {1, 1, 0, 1});
    cr_assert(eq(u32, pliant_subpartitions(w.s, 1, 0), 3));
    finish_vertex(&w, B);
    for (uint32_t k = 0; k < 3; k++)
        READS(&w, 1, k, {0, 2, k, k});
    finish_vertex(&w, C);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

Test(batching, without_auto_parallelism_it_is_what_the_job_says_or_one) /* [5.1] */
{
    static const struct pliant_vertex_spec some[] = {{.id = "a", .parallelism = 3}, {.id = "b"}};
    struct world w = WORLD(some, keyed, BATCH "enabled", "false");

    world_node(&w, "n1", 9);
    world_start(&w);
    finish_vertex(&w, A);
    cr_assert(eq(u32, parallelism_of(&w, B), 1));
    READS(&w, 0, 0, {0, 2, 0, 0});
    world_free(&w);
}

Test(batching, a_pointwise_edge_is_cut_where_the_data_is) /* [5.7] */
{
    struct world w =
        WORLD(two, pointwise, SOURCES("4"), VOLUME("100 b"), BATCH "max-parallelism", "4");
    static const uint64_t sizes[] = {90, 10, 60, 140};

    world_node(&w, "n1", 9);
    world_start(&w);
    cr_assert(eq(u32, pliant_subpartitions(w.s, 0, 0), 1));
    for (uint32_t i = 0; i < 4; i++)
        wrote(&w, A, i, 0, sizes[i]);
    cr_assert(eq(u32, parallelism_of(&w, B), 3));
    READS(&w, 0, 0, {0, 1, 0, 0});
    READS(&w, 0, 1, {2, 2, 0, 0});
    READS(&w, 0, 2, {3, 3, 0, 0});
    finish(&w, B, 0);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 2)); /* [1.4] */
    finish_vertex(&w, B);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

Test(batching, a_broadcast_edge_has_one_subpartition_that_everybody_reads) /* [5.2, 5.8] */
{
    static const struct pliant_edge_spec edges[] = {
        {0, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING},
        {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING, .partitioner = PLIANT_PARTITIONER_BROADCAST}};
    struct world w = WORLD(three, edges, SOURCES("1"), VOLUME("100 b"));

    world_node(&w, "n1", 9);
    world_start(&w);
    cr_assert(eq(u32, pliant_subpartitions(w.s, 1, 0), 1));
    wrote(&w, B, 0, 1, 1000000);
    wrote(&w, A, 0, 0, 256);
    cr_assert(eq(u32, parallelism_of(&w, C), 3)); /* its bytes do not count */
    for (uint32_t k = 0; k < 3; k++)
        READS(&w, 1, k, {0, 0, 0, 0});
    world_free(&w);
}

Test(batching, a_skewed_key_is_split_where_the_job_allows_it) /* [5.8] */
{
    static const struct pliant_vertex_spec few[] = {
        {.id = "a"}, {.id = "b"}, {.id = "c", .max_parallelism = 3}};
    static const struct pliant_edge_spec edges[] = {
        {0, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING, .splittable = true},
        {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
    struct world w = WORLD(few, edges, SOURCES("2"), VOLUME("100 b"),
                           "table.optimizer.skewed-join-optimization.skewed-threshold", "10 b",
                           "table.optimizer.skewed-join-optimization.skewed-factor", "2");
    const uint64_t skewed[] = {10, 500, 10}, even[] = {10, 10, 10};

    world_node(&w, "n1", 9);
    world_start(&w);
    for (uint32_t i = 0; i < 2; i++) {
        world_event(&w, (struct pliant_event){
                            .kind = PLIANT_EV_TASK_FINISHED,
                            .finished = {{{A}, i, 1}, &(struct pliant_output){0, 3, skewed}, 1}});
        world_event(&w, (struct pliant_event){
                            .kind = PLIANT_EV_TASK_FINISHED,
                            .finished = {{{B}, i, 1}, &(struct pliant_output){1, 3, even}, 1}});
    }
    cr_assert(eq(u32, parallelism_of(&w, C), 2));
    READS(&w, 0, 0, {0, 1, 0, 0}, {0, 0, 1, 1});
    READS(&w, 0, 1, {0, 1, 2, 2}, {1, 1, 1, 1});
    READS(&w, 1, 0, {0, 1, 0, 1}); /* the other side is read twice */
    READS(&w, 1, 1, {0, 1, 1, 2});
    finish_vertex(&w, C);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

Test(batching, a_union_is_one_input) /* [5.8]: of one side, so that the same keys meet */
{
    static const struct pliant_edge_spec edges[] = {
        {0, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING, .input = 1},
        {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING, .input = 1}};
    struct world w = WORLD(three, edges, SOURCES("1"), VOLUME("100 b"));

    world_node(&w, "n1", 9);
    world_start(&w);
    wrote(&w, A, 0, 0, 128);
    wrote(&w, B, 0, 1, 128);
    cr_assert(eq(u32, parallelism_of(&w, C), 3));
    READS(&w, 0, 0, {0, 0, 0, 49});
    READS(&w, 1, 0, {0, 0, 0, 49});
    world_free(&w);
}

/* Each input alone is below the limit; what lies under one key in both is not [5.8]. */
Test(batching, a_key_is_skewed_by_what_all_of_a_union_hold)
{
    static const struct pliant_vertex_spec few[] = {
        {.id = "a"}, {.id = "b"}, {.id = "c", .max_parallelism = 3}};
    static const struct pliant_edge_spec edges[] = {
        {0, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING, .input = 1, .splittable = true},
        {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING, .input = 1, .splittable = true}};
    struct world w = WORLD(few, edges, SOURCES("2"), VOLUME("80 b"),
                           "table.optimizer.skewed-join-optimization.skewed-threshold", "100 b",
                           "table.optimizer.skewed-join-optimization.skewed-factor", "1");
    const uint64_t skewed[] = {40, 1, 0};

    world_node(&w, "n1", 9);
    world_start(&w);
    for (uint32_t v = A; v <= B; v++)
        for (uint32_t i = 0; i < 2; i++)
            world_event(
                &w, (struct pliant_event){
                        .kind = PLIANT_EV_TASK_FINISHED,
                        .finished = {{{v}, i, 1}, &(struct pliant_output){v - 1, 3, skewed}, 1}});
    cr_assert(eq(u32, parallelism_of(&w, C), 3));
    READS(&w, 0, 0, {0, 0, 0, 0}); /* 80 of both, of 160 */
    READS(&w, 1, 0, {0, 0, 0, 0});
    READS(&w, 0, 1, {1, 1, 0, 0});
    world_free(&w);
}

/* Without keys a task reads whole results, not a part of each [5.9]. */
Test(batching, what_is_rebalanced_is_cut_anywhere)
{
    static const struct pliant_edge_spec rebalanced[] = {
        {0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING, PLIANT_PARTITIONER_REBALANCE}};
    struct world w = WORLD(two, rebalanced, SOURCES("2"), VOLUME("100 b"));

    world_node(&w, "n1", 9);
    world_start(&w);
    wrote(&w, A, 0, 0, 100);
    wrote(&w, A, 1, 0, 100);
    cr_assert(eq(u32, parallelism_of(&w, B), 2));
    READS(&w, 0, 0, {0, 0, 0, 127});
    READS(&w, 0, 1, {1, 1, 0, 127});
    world_free(&w);
}

Test(batching, bounds_of_a_vertex_hold) /* [5.4] */
{
    static const struct pliant_vertex_spec bounded[] = {
        {.id = "a"}, {.id = "b", .min_parallelism = 3, .max_parallelism = 6}};
    static const struct {
        uint64_t bytes;
        uint32_t parallelism;
    } rows[] = {{150, 3}, {300, 3}, {100000, 6}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w = WORLD(bounded, keyed, SOURCES("1"), VOLUME("100 b"));

        world_node(&w, "n1", 9);
        world_start(&w);
        wrote(&w, A, 0, 0, rows[i].bytes);
        cr_assert(eq(u32, parallelism_of(&w, B), rows[i].parallelism), "row %zu", i);
        world_free(&w);
    }
}

/* The vertex has fewer key groups than it asks for: its minimum cannot hold [5.4]. */
Test(batching, the_largest_parallelism_goes_before_the_least)
{
    static const struct pliant_vertex_spec wants_six[] = {{.id = "a"},
                                                          {.id = "b", .min_parallelism = 6}};
    struct world w = WORLD(wants_six, keyed, SOURCES("1"), VOLUME("100 b"), MAX("4"));

    world_node(&w, "n1", 9);
    world_start(&w);
    wrote(&w, A, 0, 0, 1);
    cr_assert(eq(u32, parallelism_of(&w, B), 4));
    world_free(&w);
}

Test(batching, a_fixed_parallelism_may_be_more_than_what_is_decided_at_most) /* [5.2] */
{
    static const struct pliant_vertex_spec six[] = {{.id = "a"}, {.id = "b", .parallelism = 6}};
    struct world w = WORLD(six, keyed, SOURCES("1"), MAX("4"));

    world_node(&w, "n1", 9);
    world_start(&w);
    cr_assert(eq(u32, pliant_subpartitions(w.s, 0, 0), 6));
    wrote(&w, A, 0, 0, 1);
    cr_assert(eq(u32, parallelism_of(&w, B), 6));
    READS(&w, 0, 5, {0, 0, 5, 5});
    world_free(&w);
}

/* ---- what is reported ---------------------------------------------------------------------- */

Test(batching, outputs_that_do_not_fit_count_for_nothing) /* [P-BATCH-3] */
{
    static const uint64_t many[129] = {1000};
    static const uint64_t large[128] = {PLIANT_BYTES_MAX, 1};
    static const struct pliant_output rows[][2] = {
        {{1, 128, many}},                 /* no such edge of a */
        {{7, 128, many}},                 /* no such edge */
        {{0, 127, many}},                 /* another n */
        {{0, 129, many}},                 /* the same */
        {{0, 0, NULL}},                   /* the same */
        {{0, 128, many}, {0, 128, many}}, /* twice */
        {{0, 128, large}},                /* too large in all */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w = WORLD(three, stages, SOURCES("1"), VOLUME("100 b"));

        world_node(&w, "n1", 9);
        world_start(&w);
        world_event(
            &w, (struct pliant_event){.kind = PLIANT_EV_TASK_FINISHED,
                                      .finished = {{{A}, 0, 1}, rows[i], 1u + (rows[i][1].n > 0)}});
        cr_assert(eq(u32, parallelism_of(&w, B), 1), "row %zu", i);
        cr_assert(eq(u64, world_counts(&w).events_ignored, 1), "row %zu", i);
        cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_FINISHED));
        world_free(&w);
    }
}

/* Sums of all that waits to be read stay within 64 bits, whoever reports what [P-BATCH-3]. */
Test(batching, more_than_can_be_summed_counts_for_nothing)
{
    static const uint64_t most[1] = {PLIANT_BYTES_MAX};
    static const struct pliant_vertex_spec many[] = {{.id = "a", .parallelism = 129}, {.id = "b"}};
    static const struct pliant_edge_spec broadcast[] = {
        {0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING, PLIANT_PARTITIONER_BROADCAST}};
    struct world w = WORLD(many, broadcast, VOLUME("100 b"));

    world_node(&w, "n1", 129);
    world_start(&w);
    for (uint32_t i = 0; i < 129; i++) {
        cr_assert(eq(u64, world_counts(&w).events_ignored, 0));
        world_event(&w, (struct pliant_event){
                            .kind = PLIANT_EV_TASK_FINISHED,
                            .finished = {{{A}, i, 1}, &(struct pliant_output){0, 1, most}, 1}});
    }
    cr_assert(eq(u64, world_counts(&w).events_ignored, 1));
    cr_assert(eq(u32, parallelism_of(&w, B), 1));
    world_free(&w);
}

Test(batching, news_of_another_attempt_changes_nothing)
{
    static const uint64_t bytes[128] = {5000};
    struct world w = WORLD(two, keyed, SOURCES("2"), VOLUME("100 b"));

    world_node(&w, "n1", 9);
    world_start(&w);
    wrote(&w, A, 0, 0, 10);
    for (uint32_t attempt = 1; attempt <= 2; attempt++) /* has finished; not begun */
        world_event(
            &w, (struct pliant_event){
                    .kind = PLIANT_EV_TASK_FINISHED,
                    .finished = {{{A}, 0, attempt}, &(struct pliant_output){0, 128, bytes}, 1}});
    cr_assert(eq(u64, world_counts(&w).events_ignored, 2));
    wrote(&w, A, 1, 0, 10);
    cr_assert(eq(u32, parallelism_of(&w, B), 1));
    world_free(&w);
}

/* ---- slots ---------------------------------------------------------------------------------- */

Test(batching, each_task_takes_a_slot_of_its_own_as_it_comes_free) /* [P-BATCH-4] */
{
    struct world w = WORLD(three, join, SOURCES("3"));

    world_node(&w, "n1", 2);
    world_start(&w);
    cr_assert(eq(u32, world_counts(&w).slots_used, 2));
    cr_assert(eq(u32, world_counts(&w).desired, 6));
    cr_assert(eq(u32, world_counts(&w).minimal, 1));
    cr_assert(eq(int, state_of(&w, A, 1), PLIANT_TASK_RUNNING));
    cr_assert(eq(int, state_of(&w, A, 2), PLIANT_TASK_CREATED));
    world_to(&w, 3600000);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_RUNNING), "the others only wait");
    finish(&w, A, 0);
    cr_assert(eq(int, state_of(&w, A, 2), PLIANT_TASK_RUNNING));
    cr_assert(eq(u32, world_action(&w, PLIANT_ACT_DECLARE, 0)->declare.desired, 5));
    cr_assert(eq(u32, world_action(&w, PLIANT_ACT_DECLARE, 0)->declare.min, 1));
    world_free(&w);
}

Test(batching, only_a_job_without_any_slot_runs_out_of_patience) /* [P-SCHED-4] */
{
    struct world w = WORLD(two, keyed, SOURCES("3"), FIXED_DELAY("9", "1 s"));

    world_start(&w);
    world_to(&w, 200000);
    world_node(&w, "n1", 1);
    world_to(&w, 1000000);
    cr_assert(eq(u64, world_counts(&w).restarts, 0));
    world_lose(&w, "n1");
    cr_assert(eq(u64, world_counts(&w).restarts, 1)); /* of the task that lived there */
    world_to(&w, 1299999);
    world_node(&w, "n2", 1);
    world_to(&w, 1400000);
    world_lose(&w, "n2");
    world_to(&w, 1699999);
    cr_assert(eq(u64, world_counts(&w).restarts, 2));
    world_to(&w, 1700000);
    cr_assert(eq(u64, world_counts(&w).restarts, 3));
    world_free(&w);

    w = world_new((struct world_spec){
        .vertices = three_tasks,
        .n_vertices = 1,
        .options = {"jobmanager.scheduler", "adaptive-batch", FIXED_DELAY("9", "1 s")}});
    world_node(&w, "n1", 1);
    world_start(&w);
    world_to(&w, 1000000); /* without an edge as well: the first will end */
    cr_assert(eq(u64, world_counts(&w).restarts, 0));
    finish_vertex(&w, A);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

/* The tasks ask while the node is gone, in the step in which it comes: it is no long wait. */
Test(batching, who_asks_while_a_node_goes_and_comes_is_patient) /* [P-SCHED-4] */
{
    struct world w = world_new((struct world_spec){
        .vertices = three_tasks,
        .n_vertices = 1,
        .options = {"jobmanager.scheduler", "adaptive-batch", FIXED_DELAY("9", "0 s")}});

    world_node(&w, "n1", 1);
    world_start(&w);
    w.cancels = false;
    world_fail(&w, true); /* what waits for a:0 goes on when its node is lost */
    world_node(&w, "n1", 1);
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    world_to(&w, 1000000);
    cr_assert(eq(u64, world_counts(&w).restarts, 1));
    world_free(&w);
}

/* ---- failures -------------------------------------------------------------------------------- */

Test(batching, a_producer_that_runs_once_more_replaces_what_it_wrote) /* [P-BATCH-5] */
{
    struct world w = WORLD(two, keyed, SOURCES("2"), VOLUME("100 b"), FIXED_DELAY("9", "1 s"));

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_start(&w);
    wrote(&w, A, 0, 0, 5000);
    world_lose(&w, "n1"); /* with its result: b has yet to read it */
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_FINISHED)); /* until the delay is over */
    wrote(&w, A, 1, 0, 100);
    cr_assert(eq(u32, parallelism_of(&w, B), 0), "not while one of them is made anew");
    world_to(&w, 1000);
    cr_assert(eq(int, state_of(&w, A, 0), PLIANT_TASK_RUNNING));
    wrote(&w, A, 0, 0, 100);
    cr_assert(eq(u32, parallelism_of(&w, B), 2)); /* 200, not 5200 */
    world_free(&w);

    w = WORLD(two, keyed, SOURCES("2"), VOLUME("100 b"), FIXED_DELAY("9", "1 s"));
    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_start(&w);
    wrote(&w, A, 0, 0, 5000);
    world_lose(&w, "n1");
    wrote(&w, A, 1, 0, 100);
    world_to(&w, 1000);
    world_event(&w,
                (struct pliant_event){.kind = PLIANT_EV_TASK_FINISHED,
                                      .finished = {{{A}, 0, 2}, &(struct pliant_output){9}, 1}});
    cr_assert(eq(u64, world_counts(&w).events_ignored, 1));
    cr_assert(eq(u32, parallelism_of(&w, B), 1), "what it says does not fit: it wrote nothing");
    world_free(&w);
}

Test(batching, what_outlives_its_node_counts_where_a_vertex_is_decided)
{
    struct world w = WORLD(two, keyed, SOURCES("2"), VOLUME("150 b"), FIXED_DELAY("9", "1 s"),
                           "pliant.results.outlive-nodes", "true");

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_start(&w);
    wrote(&w, A, 0, 0, 200);
    world_lose(&w, "n1");
    wrote(&w, A, 1, 0, 100);
    cr_assert(eq(u32, parallelism_of(&w, B), 2));
    expect_states(&w, A, PLIANT_TASK_FINISHED);
    cr_assert(eq(int, state_of(&w, B, 0), PLIANT_TASK_RUNNING));
    cr_assert(eq(u64, world_counts(&w).restarts, 0));
    world_free(&w);
}

Test(batching, decisions_stand) /* [P-BATCH-6] */
{
    struct world w = WORLD(three, stages, SOURCES("2"), VOLUME("100 b"), FIXED_DELAY("9", "1 s"));

    world_node(&w, "n1", 9);
    world_start(&w);
    wrote(&w, A, 0, 0, 128);
    wrote(&w, A, 1, 0, 128);
    cr_assert(eq(u32, parallelism_of(&w, B), 3));
    world_fail(&w, true); /* global: all start again */
    world_to(&w, 1000);
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    cr_assert(eq(u32, parallelism_of(&w, B), 3));
    expect_states(&w, B, PLIANT_TASK_CREATED);
    wrote(&w, A, 0, 0, 100000);
    cr_assert(eq(int, state_of(&w, B, 0), PLIANT_TASK_CREATED));
    wrote(&w, A, 1, 0, 0);
    cr_assert(eq(u32, parallelism_of(&w, B), 3));
    expect_states(&w, B, PLIANT_TASK_RUNNING);
    READS(&w, 0, 0, {0, 1, 0, 49});
    finish_vertex(&w, B);
    finish_vertex(&w, C);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    world_free(&w);
}

/* b:0 reads of a:0, b:2 of a:1, b:1 of both [5.7, 5.10]. */
Test(batching, who_reads_the_end_of_one_result_and_the_start_of_the_next_waits_for_both)
{
    struct world w = WORLD(two, pointwise, SOURCES("2"), VOLUME("110 b"), FIXED_DELAY("9", "1 s"));

    world_node(&w, "n1", 1);
    world_node(&w, "n2", 1);
    world_start(&w);
    world_node(&w, "n3", 3);
    wrote(&w, A, 0, 0, 150);
    wrote(&w, A, 1, 0, 150);
    cr_assert(eq(u32, parallelism_of(&w, B), 3));
    READS(&w, 0, 1, {0, 0, 44, 63}, {1, 1, 0, 23});
    finish(&w, B, 0);
    finish(&w, B, 2);
    world_fail_task(&w, B, 1, true);
    world_lose(&w, "n2"); /* with what a:1 wrote [P-SET-6] */
    world_to(&w, 1000);
    cr_assert(eq(u32, attempt_of(&w, A, 0), 1));
    cr_assert(eq(u32, attempt_of(&w, A, 1), 2));
    world_free(&w);
}

Test(batching, a_failure_restarts_one_task_and_its_readers) /* [2] */
{
    struct world w = WORLD(three, stages, SOURCES("2"), VOLUME("100 b"), FIXED_DELAY("9", "1 s"));

    world_node(&w, "n1", 9);
    world_start(&w);
    finish_vertex(&w, A);
    cr_assert(eq(u32, parallelism_of(&w, B), 1));
    world_fail_task(&w, B, 0, true);
    world_to(&w, 1000);
    cr_assert(eq(u32, attempt_of(&w, B, 0), 2));
    cr_assert(eq(u32, attempt_of(&w, A, 0), 1)); /* its result is there */
    finish_vertex(&w, B);
    finish_vertex(&w, C);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED));
    cr_assert(eq(u64, world_counts(&w).region_restarts, 1));
    world_free(&w);
}

Test(batching, results_are_released_when_all_readers_have_finished) /* [1.4] */
{
    struct world w = WORLD(three, stages, SOURCES("2"), VOLUME("100 b"));

    world_node(&w, "n1", 9);
    world_start(&w);
    wrote(&w, A, 0, 0, 128);
    wrote(&w, A, 1, 0, 128);
    finish(&w, B, 0);
    finish(&w, B, 1);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 0));
    finish(&w, B, 2);
    cr_assert(eq(sz, world_count(&w, PLIANT_ACT_RELEASE_RESULT), 2));
    world_free(&w);
}

Test(batching, what_cannot_be_decided_fails_the_job_and_says_why) /* [5.7] [P-BATCH-7] */
{
    static const struct pliant_vertex_spec uneven[] = {
        {.id = "a", .parallelism = 2}, {.id = "b", .parallelism = 3}, {.id = "c"}};
    static const struct pliant_edge_spec forward[] = {
        {0, 2, PLIANT_POINTWISE, PLIANT_BLOCKING, .partitioner = PLIANT_PARTITIONER_FORWARD},
        {1, 2, PLIANT_POINTWISE, PLIANT_BLOCKING, .partitioner = PLIANT_PARTITIONER_FORWARD}};
    struct world w = WORLD(uneven, forward, FIXED_DELAY("9", "1 s"));
    const struct pliant_failure *failure;

    world_node(&w, "n1", 9);
    world_start(&w);
    finish_vertex(&w, A);
    finish_vertex(&w, B);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FAILED));
    failure = pliant_failure_at(w.s, 0);
    cr_assert(failure && strstr(failure->items[0].cause, "vertex \"c\"") &&
                  strstr(failure->items[0].cause, "different parallelism"),
              "%s", failure ? failure->items[0].cause : "");
    world_free(&w);
}

/* ---- wishes ---------------------------------------------------------------------------------- */

Test(batching, takes_no_checkpoints_and_no_new_bounds) /* [P-BATCH-8] */
{
    struct world w = WORLD(two, keyed, SOURCES("1"), "execution.checkpointing.interval", "1 s");

    world_node(&w, "n1", 9);
    world_start(&w);
    world_to(&w, 10000);
    cr_assert(eq(u64, w.checkpoint, 0));
    world_plain(&w, PLIANT_EV_CHECKPOINT_REQUESTED);
    cr_assert(
        eq(int, world_action(&w, PLIANT_ACT_REFUSED, 0)->flag[0], PLIANT_REASON_CHECKPOINTING_OFF));
    world_stop(&w);
    cr_assert(
        eq(int, world_action(&w, PLIANT_ACT_REFUSED, 0)->flag[0], PLIANT_REASON_CHECKPOINTING_OFF));
    world_bounds(&w, 1, 2);
    cr_assert(
        eq(int, world_action(&w, PLIANT_ACT_REFUSED, 0)->flag[0], PLIANT_REASON_FIXED_PARALLELISM));
    world_plain(&w, PLIANT_EV_CANCEL);
    cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_CANCELED));
    world_free(&w);
}

Test(batching, a_drain_moves_the_tasks_it_touches)
{
    struct world w = WORLD(two, keyed, SOURCES("2"), FIXED_DELAY("9", "1 s"));

    world_node(&w, "n1", 2);
    world_node(&w, "n2", 2);
    world_start(&w);
    world_drain(&w, "n1", 60000);
    world_to(&w, 61000);
    expect_states(&w, A, PLIANT_TASK_RUNNING);
    cr_assert(eq(u64, world_counts(&w).drain_moves, 1));
    cr_assert(eq(u32, attempt_of(&w, A, 0), 2));
    world_free(&w);
}

/* ---- anything may happen --------------------------------------------------------------------- */

static uint32_t chance(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}

/* A task that is in that state, from a random one on; false: there is none. */
static bool find_task(const struct world *w, uint64_t *prng, enum pliant_task_state state,
                      struct pliant_task *ret)
{
    uint32_t n = pliant_job_vertices(w->job), from = chance(prng, n);

    for (uint32_t k = 0; k < n; k++) {
        uint32_t v = (from + k) % n + 1, p = parallelism_of(w, v),
                 first = p > 0 ? chance(prng, p) : 0;

        for (uint32_t i = 0; i < p; i++) {
            struct pliant_task_info info = info_of(w, v, (first + i) % p);

            *ret = (struct pliant_task){{v}, (first + i) % p, info.attempt};
            if (info.state == state)
                return true;
        }
    }
    return false;
}

static void finish_somehow(struct world *w, uint64_t *prng, struct pliant_task task)
{
    static uint64_t bytes[4][200];
    struct pliant_output outputs[4];
    size_t n = 0;

    for (uint32_t e = 0; e < pliant_job_edges(w->job); e++) {
        if (pliant_job_edge(w->job, e)->from != task.vertex.v - 1 || chance(prng, 8) == 0)
            continue;
        outputs[n] =
            (struct pliant_output){e, pliant_subpartitions(w->s, e, task.subtask), bytes[n]};
        for (uint32_t i = 0; i < outputs[n].n; i++)
            bytes[n][i] = chance(prng, 10) == 0 ? chance(prng, 100000) : chance(prng, 100);
        n++;
    }
    world_event(
        w, (struct pliant_event){.kind = PLIANT_EV_TASK_FINISHED, .finished = {task, outputs, n}});
}

static void something_happens(struct world *w, uint64_t *prng)
{
    char name[] = {'n', (char)('0' + chance(prng, 5)), '\0'};
    struct pliant_task task;

    switch (chance(prng, 16)) {
    case 0:
        world_node(w, name, 1 + chance(prng, 3));
        return;
    case 1:
        world_lose(w, name);
        return;
    case 2:
        world_drain(w, name, chance(prng, 2) ? 5000 : 0);
        return;
    case 3:
        if (find_task(w, prng, PLIANT_TASK_RUNNING, &task))
            world_fail_task(w, task.vertex.v, task.subtask, true);
        return;
    case 4:
        if (find_task(w, prng, PLIANT_TASK_RUNNING, &task)) /* its input is gone */
            world_event(w, (struct pliant_event){.kind = PLIANT_EV_TASK_FAILED,
                                                 .failure = {.task = task,
                                                             .recoverable = true,
                                                             .input_lost = true,
                                                             .edge = chance(prng, 4),
                                                             .producer = chance(prng, 3)}});
        return;
    case 5:
        if (chance(prng, 20) == 0)
            world_fail(w, true);
        return;
    case 6:
        w->cancels = !w->cancels;
        if (w->cancels)
            for (int i = 0; i < 4 && find_task(w, prng, PLIANT_TASK_CANCELING, &task); i++)
                world_event(w,
                            (struct pliant_event){.kind = PLIANT_EV_TASK_CANCELED, .task = task});
        return;
    case 7:
    case 8:
        world_to(w, w->now_ms + chance(prng, 3000));
        return;
    default:
        if (find_task(w, prng, PLIANT_TASK_RUNNING, &task))
            finish_somehow(w, prng, task);
    }
}

/* What is read of an edge: each subpartition of each partition, by one task at least. */
static void expect_all_read(const struct world *w, uint32_t e)
{
    static uint8_t seen[64][200];
    uint32_t from = pliant_job_edge(w->job, e)->from + 1, to = pliant_job_edge(w->job, e)->to + 1;
    struct pliant_read reads[300];

    memset(seen, 0, sizeof seen);
    for (uint32_t k = 0; k < parallelism_of(w, to); k++) {
        size_t n = pliant_reads(w->s, e, k, reads, 300);

        cr_assert(n <= 300);
        for (size_t i = 0; i < n; i++)
            for (uint32_t p = reads[i].p0; p <= reads[i].p1; p++)
                for (uint32_t sub = reads[i].s0; sub <= reads[i].s1; sub++)
                    seen[p][sub] = 1;
    }
    for (uint32_t p = 0; p < parallelism_of(w, from) && parallelism_of(w, to) > 0; p++)
        for (uint32_t sub = 0; sub < pliant_subpartitions(w->s, e, p); sub++)
            cr_assert(seen[p][sub], "edge %u: %u/%u is read by nobody", e, p, sub);
}

Test(batching, ends_whatever_happens_and_reads_all, .timeout = 600)
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a"}, {.id = "b", .parallelism = 3}, {.id = "c"}, {.id = "d", .max_parallelism = 7}};
    static const enum pliant_partitioner all_to_all[] = {
        PLIANT_PARTITIONER_DEFAULT, PLIANT_PARTITIONER_HASH, PLIANT_PARTITIONER_REBALANCE,
        PLIANT_PARTITIONER_BROADCAST};

    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t prng = seed * 7919;
        struct pliant_edge_spec edges[] = {{0, 2}, {1, 2}, {0, 3}, {2, 3}};
        struct world w;

        for (uint32_t e = 0; e < 4; e++) {
            edges[e].exchange = PLIANT_BLOCKING;
            edges[e].pattern = chance(&prng, 3) ? PLIANT_ALL_TO_ALL : PLIANT_POINTWISE;
            if (edges[e].pattern == PLIANT_ALL_TO_ALL)
                edges[e].partitioner = all_to_all[chance(&prng, 4)];
            edges[e].splittable = chance(&prng, 3) == 0;
        }
        w = WORLD(vertices, edges, SOURCES("3"), VOLUME("1 kb"), FIXED_DELAY("100000", "1 s"),
                  BATCH "max-parallelism", "20",
                  "table.optimizer.skewed-join-optimization.skewed-threshold", "1 kb");
        world_start(&w);
        for (int i = 0; i < 400 && pliant_state(w.s) != PLIANT_FINISHED; i++)
            something_happens(&w, &prng);
        w.cancels = true;
        world_node(&w, "last", 4);
        for (int i = 0; i < 3000 && pliant_state(w.s) != PLIANT_FINISHED; i++) {
            struct pliant_task task;

            if (find_task(&w, &prng, PLIANT_TASK_CANCELING, &task))
                world_event(&w,
                            (struct pliant_event){.kind = PLIANT_EV_TASK_CANCELED, .task = task});
            else if (find_task(&w, &prng, PLIANT_TASK_RUNNING, &task))
                finish_somehow(&w, &prng, task);
            else
                world_to(&w, w.now_ms + 10000);
            for (uint32_t e = 0; e < 4; e++)
                expect_all_read(&w, e);
        }
        cr_assert(eq(int, pliant_job_status(w.s), PLIANT_JOB_FINISHED), "seed %llu",
                  (unsigned long long)seed);
        world_free(&w);
    }
}

/* snapshot_test.c - the state as bytes: what is refused, and that nothing breaks on the way
 *
 * That a restored scheduler goes on as the original would is shown by every test that uses a world
 * (world.h restores one before each step). */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "failing_alloc.h"
#include "states/codec.h"
#include "states/sched.h"
#include "util/prng.h"
#include "world.h"

static const struct pliant_vertex_spec TWO[] = {
    {.id = "src", .parallelism = 4, .slot_sharing_group = "a"},
    {.id = "map", .parallelism = 3, .min_parallelism = 2, .slot_sharing_group = "b"}};

/* A scheduler with something in every table: labels, a drain, histories, failures, two runs. */
static struct world busy_world(void)
{
    static const struct pliant_label LABELS[] = {{"gpu", "a100"}, {"rack", "r1"}};
    struct world w = world_new((struct world_spec){
        .vertices = TWO,
        .n_vertices = 2,
        .options = {"execution.checkpointing.interval", "10 s", "restart-strategy.type",
                    "failure-rate", "restart-strategy.failure-rate.max-failures-per-interval", "3",
                    "execution.state-recovery.from-local", "true", "pliant.failure-labels",
                    "vertex=* -> a=b; kind=node -> c=d",
                    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout",
                    "0 s", "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling",
                    "0 s"}});

    w.checkpoints = true;
    world_event(&w, (struct pliant_event){.kind = PLIANT_EV_NODE_UP,
                                          .node_up = {.name = "n1",
                                                      .incarnation = 7,
                                                      .slots = 4,
                                                      .zone = "z",
                                                      .domain = "d",
                                                      .labels = LABELS,
                                                      .n_labels = 2}});
    world_start(&w);
    world_to(&w, 25000);
    world_fail_task(&w, 1, 0, true);
    world_to(&w, 40000);
    world_node(&w, "n2", 3);
    world_node(&w, "n3", 3);
    world_lose(&w, "n3");
    world_to(&w, 55000);
    w.checkpoints = false;
    world_drain(&w, "n1", 60000);
    return w;
}

/* Of a batch job: sizes, plans, a producer that runs once more, tasks in line. */
static struct world batch_world(void)
{
    static const struct pliant_vertex_spec vertices[] = {
        {.id = "a", .parallelism = 3}, {.id = "b"}, {.id = "c"}};
    static const struct pliant_edge_spec edges[] = {{0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING},
                                                    {1, 2, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
    struct world w = world_new(
        (struct world_spec){.vertices = vertices,
                            .n_vertices = 3,
                            .edges = edges,
                            .n_edges = 2,
                            .options = {"execution.batch.adaptive.auto-parallelism.max-parallelism",
                                        "6", "restart-strategy.type", "fixed-delay",
                                        "restart-strategy.fixed-delay.attempts", "9"}});
    uint64_t bytes[] = {30000000, 1, 20000000, 0, 7, 300};
    struct pliant_output output = {0, 2, bytes};

    world_node(&w, "n1", 2);
    world_start(&w);
    for (uint32_t i = 0; i < 3; i++)
        world_event(&w, (struct pliant_event){.kind = PLIANT_EV_TASK_FINISHED,
                                              .finished = {{{1}, i, 1}, &output, 1}});
    output.edge = 1;
    output.n = pliant_subpartitions(w.s, 1, 0);
    for (uint32_t i = 0; i < 2; i++)
        world_event(&w, (struct pliant_event){.kind = PLIANT_EV_TASK_FINISHED,
                                              .finished = {{{2}, i, 1}, &output, 1}});
    world_fail_task(&w, 2, 2, true);
    cr_assert_gt(pliant_parallelism(w.s, (pliant_vertex_id){2}), 4);
    return w;
}

/* Under the policy that learns, which has seen losses five minutes apart and drains. */
static struct world learned_world(void)
{
    struct world w = world_new((struct world_spec){
        .vertices = TWO,
        .n_vertices = 2,
        .options = {"pliant.rescale.policy", "worth", "pliant.checkpoint.interval", "auto",
                    "restart-strategy.type", "fixed-delay", "restart-strategy.fixed-delay.attempts",
                    "100", "restart-strategy.fixed-delay.delay", "0 s"}});

    world_node(&w, "n1", 8);
    world_start(&w);
    for (int i = 1; i <= 6; i++) {
        world_node(&w, "n2", 1);
        world_to(&w, i * 300000 - 20000);
        world_drain(&w, "n2", 20000);
        world_to(&w, i * 300000);
        world_lose(&w, "n2");
        world_lose(&w, "n1");
        world_node(&w, "n1", 8);
    }
    return w;
}

static int restore(const struct world *w, const void *bytes, size_t n)
{
    struct pliant_sched *s = NULL;
    struct pliant_error err = {0};
    int error = pliant_restore(&w->cfg, w->job, bytes, n, &s, &err);

    cr_assert(error == 0 || error == -EINVAL);
    cr_assert_eq(error == 0, s != NULL);
    if (error < 0)
        cr_assert_neq(err.text[0], '\0');
    else
        cr_assert_null(pliant_check(s));
    pliant_sched_destroy(&s);
    return error;
}

static void fix_sum(uint8_t *bytes, size_t n)
{
    uint64_t sum = codec_sum(bytes, n - sizeof sum);

    memcpy(bytes + n - sizeof sum, &sum, sizeof sum);
}

static void expect_refusals(struct world w)
{
    uint8_t *bytes;
    size_t n;

    cr_assert_eq(pliant_snapshot(w.s, (void **)&bytes, &n), 0);
    cr_assert_eq(restore(&w, bytes, n), 0);
    for (size_t i = 0; i < n; i += 7) {
        bytes[i] ^= 0x20;
        cr_expect_eq(restore(&w, bytes, n), -EINVAL, "byte %zu", i);
        bytes[i] ^= 0x20;
        cr_expect_eq(restore(&w, bytes, i), -EINVAL, "cut at %zu", i);
    }
    pliant_bytes_free(NULL, bytes);
    world_free(&w);
}

Test(snapshot, is_refused_when_a_byte_is_wrong_or_missing)
{
    expect_refusals(busy_world());
    expect_refusals(batch_world());
    expect_refusals(learned_world());
}

Test(snapshot, keeps_all_that_the_policy_has_learned)
{
    struct world w = learned_world();
    const struct worth *learned = &w.s->policy.worth;
    struct pliant_sched *s = NULL;
    struct pliant_error err;
    uint8_t *bytes, *again;
    size_t n, n_again;

    cr_assert_gt(learned->grid, 0);
    cr_assert_gt(learned->losses.seen, 1);
    cr_assert_gt(learned->losses.risk, 0);
    cr_assert_eq(pliant_snapshot(w.s, (void **)&bytes, &n), 0);
    cr_assert_eq(pliant_restore(&w.cfg, w.job, bytes, n, &s, &err), 0);
    cr_expect_eq(worth_next_checkpoint(learned, &w.s->policy.limits, w.s->clock.now_ms),
                 worth_next_checkpoint(&s->policy.worth, &s->policy.limits, s->clock.now_ms));
    cr_assert_eq(pliant_snapshot(s, (void **)&again, &n_again), 0);
    cr_assert_eq(n, n_again);
    cr_expect_eq(memcmp(bytes, again, n), 0);
    pliant_bytes_free(NULL, bytes);
    pliant_bytes_free(NULL, again);
    pliant_sched_destroy(&s);
    world_free(&w);
}

static void forge(struct world w)
{
    struct prng prng = {42};
    uint8_t *bytes, *forged;
    size_t n, refused = 0;

    cr_assert_eq(pliant_snapshot(w.s, (void **)&bytes, &n), 0);
    forged = malloc(n);
    for (int i = 0; i < 20000; i++) {
        size_t changes = 1 + prng_below(&prng, 3), length = n;

        memcpy(forged, bytes, n);
        for (size_t k = 0; k < changes; k++)
            forged[prng_below(&prng, n - 8)] = (uint8_t)prng_next(&prng);
        if (prng_below(&prng, 8) == 0)
            length = 8 + prng_below(&prng, n - 8);
        fix_sum(forged, length);
        refused += restore(&w, forged, length) < 0;
    }
    cr_expect_gt(refused, 5000);
    free(forged);
    pliant_bytes_free(NULL, bytes);
    world_free(&w);
}

Test(snapshot, that_was_forged_is_refused_or_in_order_but_never_breaks_anything)
{
    forge(busy_world());
    forge(batch_world());
    forge(learned_world());
}

Test(snapshot, belongs_to_one_job_and_one_set_of_options)
{
    struct world w = busy_world();
    struct world other_options = world_new((struct world_spec){.vertices = TWO, .n_vertices = 2});
    struct world other_job = world_new((struct world_spec){.parallelism = 4});
    uint8_t *bytes;
    size_t n;

    cr_assert_eq(pliant_snapshot(w.s, (void **)&bytes, &n), 0);
    cr_expect_eq(restore(&other_options, bytes, n), -EINVAL);
    other_job.cfg = w.cfg;
    cr_expect_eq(restore(&other_job, bytes, n), -EINVAL);
    pliant_bytes_free(NULL, bytes);
    world_free(&w);
    world_free(&other_options);
    world_free(&other_job);
}

static void starve(struct world w)
{
    struct pliant_config cfg = w.cfg;
    void *bytes;
    size_t n;
    bool done = false;

    cr_assert_eq(pliant_snapshot(w.s, &bytes, &n), 0);
    for (size_t k = 1; !done; k++) {
        FAILING_ALLOC(memory, k);
        struct pliant_sched *s = NULL;
        struct pliant_error err;
        int error;

        cfg.alloc = &memory.hook;
        error = pliant_restore(&cfg, w.job, bytes, n, &s, &err);
        cr_assert(error == 0 || error == -ENOMEM);
        done = error == 0;
        pliant_sched_destroy(&s);
        cr_assert_eq(memory.live, 0, "allocation %zu", k);
    }
    pliant_bytes_free(NULL, bytes);
    world_free(&w);
}

Test(snapshot, without_memory_answers_so_and_loses_none)
{
    starve(busy_world());
    starve(batch_world());
}

/* job_test.c - descriptions of jobs: what is accepted, and what comes of it */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "graph/job.h"
#include "util/prng.h"

#define LONGEST                                                                                    \
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._0123456789abcdefghijklmnopqr" \
    "stuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-"

enum { NO_ITEM = -1, MANY = 40 };

static const struct pliant_vertex_spec plain[] = {
    {"a", 4, 0, 0, NULL}, {"b", 2, 1, 16, "g"}, {"c", 1, 0, 0, NULL}, {"d", 3, 3, 3, "g"}};

static bool mentions(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static struct pliant_job *make(const struct pliant_job_spec *spec)
{
    struct pliant_error err = {.text = ""};
    struct pliant_job *job = NULL;

    cr_assert(eq(int, pliant_job_new(spec, NULL, &job, &err), 0), "%s", err.text);
    return job;
}

static void expect_refusal(const struct pliant_job_spec *spec, const char *field, int item,
                           const char *names, size_t row)
{
    struct pliant_job *job = NULL;
    struct pliant_error err;

    cr_expect(eq(int, pliant_job_new(spec, NULL, &job, &err), -EINVAL), "row %zu", row);
    cr_expect(eq(ptr, job, NULL));
    cr_expect(eq(str, err.field, (char *)field), "row %zu", row);
    cr_expect(eq(u32, err.item, item == NO_ITEM ? UINT32_MAX : (uint32_t)item), "row %zu", row);
    cr_expect(mentions(err.text, names), "row %zu: \"%s\" lacks \"%s\"", row, err.text, names);
    cr_expect(mentions(err.text, "accepted") || mentions(err.text, "unique"), "row %zu: %s", row,
              err.text);
    cr_expect(eq(int, pliant_job_new(spec, NULL, &job, NULL), -EINVAL));
}

Test(job, is_kept_as_described_with_defaults_filled_in) /* [S-PAR-8] [S-GEN-14] */
{
    const struct pliant_edge_spec edges[] = {{0, 1, PLIANT_POINTWISE, PLIANT_PIPELINED},
                                             {0, 1, PLIANT_ALL_TO_ALL, PLIANT_BLOCKING}};
    struct pliant_job *job = make(&(struct pliant_job_spec){"wc", plain, 4, edges, 2, false});
    const uint32_t members[] = {0, 2, 1, 3}, first[] = {0, 2, 4};

    cr_expect(eq(str, (char *)pliant_job_name(job), "wc"));
    cr_expect(pliant_job_vertices(job) == 4 && pliant_job_groups(job) == 2);
    for (uint32_t v = 0; v < 4; v++) {
        pliant_vertex_id id = {v + 1};

        cr_expect(eq(str, (char *)pliant_job_vertex_name(job, id), (char *)plain[v].id));
        cr_expect(eq(u32, pliant_job_vertex_find(job, plain[v].id).v, id.v));
        cr_expect(eq(u32, pliant_job_vertex_parallelism(job, id), (uint32_t)plain[v].parallelism));
        cr_expect(eq(str, (char *)pliant_job_vertex_group(job, id), v % 2 ? "g" : "default"));
        cr_expect(eq(u32, job->group_of[v], v % 2));
    }
    cr_expect(eq(u32, pliant_job_vertex_max_parallelism(job, (pliant_vertex_id){1}), 128));
    cr_expect(eq(u32, pliant_job_vertex_max_parallelism(job, (pliant_vertex_id){2}), 16));
    cr_expect(job->vertices[0].min_parallelism == 1 && job->vertices[3].min_parallelism == 3);
    cr_expect(eq(int, memcmp(job->group_members, members, sizeof members), 0));
    cr_expect(eq(int, memcmp(job->group_first, first, sizeof first), 0));
    cr_expect(eq(sz, job->n_edges, 2));
    pliant_job_destroy(&job);
    cr_expect(eq(ptr, job, NULL));
    pliant_job_destroy(&job);
}

Test(job, answers_nothing_for_what_it_does_not_have)
{
    struct pliant_job *job = make(&(struct pliant_job_spec){.vertices = plain, .n_vertices = 2});

    cr_expect(eq(str, (char *)pliant_job_name(job), "job"));
    for (uint32_t id = 0; id <= 3; id += 3) {
        cr_expect(eq(ptr, (void *)pliant_job_vertex_name(job, (pliant_vertex_id){id}), NULL));
        cr_expect(eq(ptr, (void *)pliant_job_vertex_group(job, (pliant_vertex_id){id}), NULL));
        cr_expect(eq(u32, pliant_job_vertex_parallelism(job, (pliant_vertex_id){id}), 0));
        cr_expect(eq(u32, pliant_job_vertex_max_parallelism(job, (pliant_vertex_id){id}), 0));
    }
    cr_expect(eq(u32, pliant_job_vertex_find(job, "c").v, 0));
    cr_expect(eq(u32, pliant_job_vertex_find(job, NULL).v, 0));
    pliant_job_destroy(&job);
}

Test(job, refuses_a_bad_vertex_and_names_vertex_field_and_what_is_accepted) /* [S-GEN-14] */
{
    static const struct {
        struct pliant_vertex_spec bad; /* vertex 1, after "a" */
        const char *field, *names;
    } rows[] = {
        {{NULL, 1, 0, 0, NULL}, "id", "vertices[1]"},
        {{"", 1, 0, 0, NULL}, "id", "vertices[1]"},
        {{"x y", 1, 0, 0, NULL}, "id", "letters"},
        {{"x\xc3\xa4", 1, 0, 0, NULL}, "id", "letters"},
        {{LONGEST "x", 1, 0, 0, NULL}, "id", "1 to 128"},
        {{"a", 1, 0, 0, NULL}, "id", "vertices[0]"},
        {{"x", 1, 0, 0, ""}, "slot_sharing_group", "\"x\""},
        {{"x", 1, 0, 0, "a/b"}, "slot_sharing_group", "letters"},
        {{"x", -1, 0, 0, NULL}, "parallelism", "parallelism is -1; accepted are 1 to 32768"},
        {{"x", 32769, 0, 0, NULL}, "parallelism", "32768"},
        {{"x", INT64_C(1) << 31, 0, 0, NULL}, "parallelism", "2147483648"},
        {{"x", INT64_MAX, 0, 0, NULL}, "parallelism", "32768"},
        {{"x", 1, 0, 40000, NULL}, "max_parallelism", "40000"},
        {{"x", 1, 0, -1, NULL}, "max_parallelism", "-1"},
        {{"x", 5, 0, 4, NULL}, "parallelism", "1 to 4"},
        {{"x", 4, 5, 4, NULL}, "min_parallelism", "1 to 4"},
        {{"x", 4, -1, 4, NULL}, "min_parallelism", "-1"},
        {{"x", 4, 129, 0, NULL}, "min_parallelism", "1 to 128"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pliant_vertex_spec vertices[] = {plain[0], rows[i].bad};

        expect_refusal(&(struct pliant_job_spec){NULL, vertices, 2, NULL, 0, false}, rows[i].field,
                       1, rows[i].names, i);
    }
}

Test(job, refuses_bad_edges_and_bad_fields_of_its_own)
{
    const struct pliant_edge_spec to_nowhere[] = {{0, 1, 0, 0}, {1, 2, 0, 0}};
    const struct pliant_edge_spec from_nowhere[] = {{7, 1, 0, 0}};
    const struct pliant_edge_spec odd_pattern[] = {{0, 1, (enum pliant_pattern)9, 0}};
    const struct pliant_edge_spec odd_exchange[] = {{0, 1, 0, (enum pliant_exchange)9}};

    expect_refusal(&(struct pliant_job_spec){NULL, plain, 2, to_nowhere, 2, false}, "to", 1,
                   "vertex 2", 0);
    expect_refusal(&(struct pliant_job_spec){NULL, plain, 2, from_nowhere, 1, false}, "from", 0,
                   "vertex 7", 1);
    expect_refusal(&(struct pliant_job_spec){NULL, plain, 2, odd_pattern, 1, false}, "pattern", 0,
                   "pointwise", 2);
    expect_refusal(&(struct pliant_job_spec){NULL, plain, 2, odd_exchange, 1, false}, "exchange", 0,
                   "pipelined", 3);
    for (enum pliant_partitioner p = PLIANT_PARTITIONER_DEFAULT; p < PLIANT_PARTITIONER_RESCALE + 2;
         p++) {
        bool pointwise = p == PLIANT_PARTITIONER_FORWARD || p == PLIANT_PARTITIONER_RESCALE;
        struct pliant_edge_spec edge = {.from = 0,
                                        .to = 1,
                                        .pattern = pointwise ? PLIANT_POINTWISE : PLIANT_ALL_TO_ALL,
                                        .partitioner = p};
        const struct pliant_job_spec spec = {
            .vertices = plain, .n_vertices = 2, .edges = &edge, .n_edges = 1};

        if (p <= PLIANT_PARTITIONER_RESCALE) {
            struct pliant_job *job = make(&spec);

            pliant_job_destroy(&job);
        }
        edge.pattern = pointwise ? PLIANT_ALL_TO_ALL : PLIANT_POINTWISE;
        if (p != PLIANT_PARTITIONER_DEFAULT)
            expect_refusal(&spec, "partitioner", 0, "forward, rescale (pointwise)", p);
    }
    expect_refusal(&(struct pliant_job_spec){"a b", plain, 2, NULL, 0, false}, "name", NO_ITEM,
                   "name", 4);
    expect_refusal(&(struct pliant_job_spec){NULL, NULL, 0, NULL, 0, false}, "vertices", NO_ITEM,
                   "1 to 100000", 5);
    expect_refusal(&(struct pliant_job_spec){NULL, plain, 100001, NULL, 0, false}, "vertices",
                   NO_ITEM, "100001", 6);
    expect_refusal(&(struct pliant_job_spec){NULL, plain, 1, to_nowhere, UINT32_MAX, false},
                   "edges", NO_ITEM, "edges", 7);
}

Test(job, takes_names_of_every_accepted_letter_up_to_the_longest)
{
    const struct pliant_vertex_spec vertices[] = {{LONGEST, 1, 0, 0, LONGEST}};
    struct pliant_job *job = make(&(struct pliant_job_spec){LONGEST, vertices, 1, NULL, 0, false});

    cr_expect(eq(sz, strlen(LONGEST), PLIANT_NAME_MAX));
    cr_expect(eq(str, (char *)pliant_job_vertex_group(job, (pliant_vertex_id){1}), LONGEST));
    pliant_job_destroy(&job);
}

/* ---- order ------------------------------------------------------------------------------ */

/* Vertices v0 .. v39 of parallelism 1. */
static const struct pliant_vertex_spec *many(void)
{
    static struct pliant_vertex_spec vertices[MANY];
    static char names[MANY][8];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "v%u", i);
        vertices[i] = (struct pliant_vertex_spec){names[i], 1, 0, 0, NULL};
    }
    return vertices;
}

/* What the rule says, step by step: always the lowest index that nothing left points to. */
static void expect_order(const struct pliant_job *job)
{
    bool done[MANY] = {false};

    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t lowest = UINT32_MAX;

        for (uint32_t v = MANY; v-- > 0;) {
            bool ready = !done[v];

            for (size_t e = 0; e < job->n_edges; e++)
                ready &= job->edges[e].to != v || done[job->edges[e].from];
            if (ready)
                lowest = v;
        }
        cr_assert(eq(u32, job->topological[i], lowest), "place %u", i);
        done[lowest] = true;
    }
}

Test(job, orders_vertices_along_the_edges_ties_by_index) /* [S-EXE-1] */
{
    struct prng p = {1};

    for (int i = 0; i < 50; i++) {
        struct pliant_edge_spec edges[2 * MANY];
        uint32_t rank[MANY]; /* a hidden order, so that edges don't follow the indices */
        struct pliant_job *job;
        size_t n = prng_below(&p, 2 * MANY);

        for (uint32_t v = 0; v < MANY; v++) {
            uint32_t at = (uint32_t)prng_below(&p, v + 1);

            rank[v] = rank[at];
            rank[at] = v;
        }
        for (size_t e = 0; e < n; e++) {
            uint32_t a = (uint32_t)prng_below(&p, MANY - 1);
            uint32_t b = a + 1 + (uint32_t)prng_below(&p, MANY - 1 - a);

            edges[e] = (struct pliant_edge_spec){.from = rank[a], .to = rank[b]};
        }
        job = make(&(struct pliant_job_spec){NULL, many(), MANY, edges, n, false});
        expect_order(job);
        pliant_job_destroy(&job);
    }
}

/* Vertices 3 > 8 > 5 > 3 are the cycle; others hang before and behind it. */
Test(job, refuses_a_cycle_and_names_a_vertex_on_it)
{
    const struct pliant_edge_spec edges[] = {{.from = 0, .to = 3}, {.from = 3, .to = 8},
                                             {.from = 8, .to = 5}, {.from = 5, .to = 3},
                                             {.from = 5, .to = 1}, {.from = 1, .to = 2}};
    const struct pliant_edge_spec loop[] = {{.from = 4, .to = 4}};
    struct pliant_error err;
    struct pliant_job *job = NULL;

    cr_expect(eq(int,
                 pliant_job_new(&(struct pliant_job_spec){NULL, many(), MANY, edges, 6, false},
                                NULL, &job, &err),
                 -EINVAL));
    cr_expect(err.item >= 1 && err.item <= 3);
    cr_expect(mentions(err.text, "\"v3\"") || mentions(err.text, "\"v8\"") ||
                  mentions(err.text, "\"v5\""),
              "%s", err.text);
    expect_refusal(&(struct pliant_job_spec){NULL, many(), MANY, loop, 1, false}, "to", 0, "\"v4\"",
                   0);
}

/* ---- fingerprint ------------------------------------------------------------------------ */

static uint64_t fingerprint(const struct pliant_job_spec *spec)
{
    struct pliant_job *job = make(spec);
    uint64_t fingerprint = job->fingerprint;

    pliant_job_destroy(&job);
    return fingerprint;
}

Test(job, has_a_fingerprint_of_all_that_it_is)
{
    const struct pliant_edge_spec edge[] = {{0, 1, PLIANT_ALL_TO_ALL, PLIANT_PIPELINED}};
    const struct pliant_edge_spec others[][1] = {{{1, 0, 0, 0}}, {{0, 1, 1, 0}}, {{0, 1, 0, 1}}};
    const struct pliant_vertex_spec changed[][2] = {
        {{"aa", 4, 0, 0, NULL}, plain[1]}, {{"a", 5, 0, 0, NULL}, plain[1]},
        {{"a", 4, 2, 0, NULL}, plain[1]},  {{"a", 4, 0, 129, NULL}, plain[1]},
        {{"a", 4, 0, 0, "g"}, plain[1]},   {plain[1], plain[0]},
    };
    struct pliant_job_spec spec = {"wc", plain, 2, edge, 1, false}, other;
    uint64_t all[16];
    size_t n = 0;

    all[n++] = fingerprint(&spec);
    cr_expect(eq(u64, fingerprint(&spec), all[0]));
    other = spec;
    other.name = "cw";
    all[n++] = fingerprint(&other);
    other = spec;
    other.n_vertices = 3;
    all[n++] = fingerprint(&other);
    other = spec;
    other.n_edges = 0;
    all[n++] = fingerprint(&other);
    for (size_t i = 0; i < 3; i++) {
        other = spec;
        other.edges = others[i];
        all[n++] = fingerprint(&other);
    }
    for (size_t i = 0; i < 6; i++) {
        other = spec;
        other.vertices = changed[i];
        all[n++] = fingerprint(&other);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            cr_expect(ne(u64, all[i], all[j]), "%zu and %zu", i, j);
}

/* ---- fit for a scheduler -------------------------------------------------------------------- */

static int check(const struct pliant_job *job, enum pliant_scheduler scheduler,
                 enum pliant_mode mode, struct pliant_error *err)
{
    struct pliant_config cfg = {.scheduler = scheduler, .mode = mode};

    return pliant_job_check(job, &cfg, err);
}

Test(job, with_a_blocking_edge_is_not_for_the_adaptive_scheduler) /* [S-GEN-14] */
{
    const struct pliant_edge_spec edges[] = {{0, 1, 0, PLIANT_PIPELINED},
                                             {1, 2, 0, PLIANT_BLOCKING}};
    struct pliant_job *job = make(&(struct pliant_job_spec){NULL, plain, 3, edges, 2, false});
    struct pliant_error err;

    cr_expect(eq(int, check(job, PLIANT_SCHEDULER_ADAPTIVE, PLIANT_MODE_NORMAL, &err), -EINVAL));
    cr_expect(err.item == 1 && strcmp(err.field, "exchange") == 0);
    cr_expect(mentions(err.text, "jobmanager.scheduler"), "%s", err.text);
    pliant_job_destroy(&job);
}

Test(job, names_the_schedulers_that_are_there)
{
    struct pliant_job *job = make(&(struct pliant_job_spec){NULL, plain, 3, NULL, 0, false});
    static const struct {
        enum pliant_scheduler scheduler;
        int rc;
    } rows[] = {
        {PLIANT_SCHEDULER_UNSET, 0},          {PLIANT_SCHEDULER_ADAPTIVE, 0},
        {PLIANT_SCHEDULER_DEFAULT, 0},        {PLIANT_SCHEDULER_ADAPTIVE_BATCH, 0},
        {(enum pliant_scheduler)99, -EINVAL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pliant_error err;

        cr_expect(eq(int, check(job, rows[i].scheduler, PLIANT_MODE_NORMAL, &err), rows[i].rc));
        if (rows[i].rc == 0)
            continue;
        cr_expect(eq(str, err.field, "jobmanager.scheduler"), "row %zu", i);
        cr_expect(mentions(err.text, "accepted are adaptive, default and"), "row %zu: %s", i,
                  err.text);
    }
    pliant_job_destroy(&job);
}

Test(job, forwards_to_as_many_subtasks_or_fewer)
{
    static const struct {
        uint32_t from, to;
        enum pliant_partitioner partitioner;
        int rc;
    } rows[] = {
        {2, 2, PLIANT_PARTITIONER_FORWARD, 0},       {2, 1, PLIANT_PARTITIONER_FORWARD, 0},
        {2, 3, PLIANT_PARTITIONER_FORWARD, -EINVAL}, {2, 3, PLIANT_PARTITIONER_RESCALE, 0},
        {0, 3, PLIANT_PARTITIONER_FORWARD, 0},       {2, 0, PLIANT_PARTITIONER_FORWARD, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pliant_vertex_spec vertices[] = {{.id = "a", .parallelism = rows[i].from},
                                                      {.id = "b", .parallelism = rows[i].to}};
        const struct pliant_edge_spec edge = {
            0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING, rows[i].partitioner, 0, false};
        struct pliant_job *job =
            make(&(struct pliant_job_spec){NULL, vertices, 2, &edge, 1, false});
        struct pliant_error err;

        cr_expect(eq(int, check(job, PLIANT_SCHEDULER_ADAPTIVE_BATCH, PLIANT_MODE_NORMAL, &err),
                     rows[i].rc),
                  "row %zu", i);
        if (rows[i].rc < 0)
            cr_expect(mentions(err.text, "from 2 subtasks to 3"), "%s", err.text);
        pliant_job_destroy(&job);
    }
}

Test(job,
     may_want_more_than_its_parallelism_at_least_only_in_reactive_mode) /* [S-PAR-1, S-PAR-2] */
{
    const struct pliant_vertex_spec vertices[] = {plain[0], {"x", 2, 3, 4, NULL}};
    struct pliant_job *job = make(&(struct pliant_job_spec){NULL, vertices, 2, NULL, 0, false});
    struct pliant_error err;

    cr_expect(eq(int, check(job, PLIANT_SCHEDULER_ADAPTIVE, PLIANT_MODE_REACTIVE, NULL), 0));
    cr_expect(eq(int, check(job, PLIANT_SCHEDULER_ADAPTIVE, PLIANT_MODE_NORMAL, &err), -EINVAL));
    cr_expect(err.item == 1 && strcmp(err.field, "min_parallelism") == 0);
    cr_expect(mentions(err.text, "1 to 2"), "%s", err.text);
    pliant_job_destroy(&job);
}

/* ---- no memory ---------------------------------------------------------------------------- */

Test(job, says_when_there_is_no_memory_and_leaks_none)
{
    const struct pliant_edge_spec edges[] = {{0, 1, 0, 0}};
    struct pliant_vertex_spec vertices[MANY];
    char groups[MANY][8];
    int rc = -ENOMEM;
    size_t k = 0;

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(groups[i], sizeof groups[i], "g%u", i);
        vertices[i] = many()[i];
        vertices[i].slot_sharing_group = groups[i];
    }
    while (rc < 0) {
        FAILING_ALLOC(f, ++k);
        struct pliant_job *job = NULL;

        rc = pliant_job_new(&(struct pliant_job_spec){NULL, vertices, MANY, edges, 1, false},
                            &f.hook, &job, NULL);
        cr_expect(rc == 0 || rc == -ENOMEM);
        pliant_job_destroy(&job);
        cr_expect(eq(sz, f.live, 0), "call %zu", k);
    }
    cr_expect(gt(sz, k, 15));
}

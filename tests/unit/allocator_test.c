/* allocator_test.c - bounds, requirement updates, and how slots become parallelism */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <string.h>

#include <pliant/pliant.h>

#include "allocator/requirements.h"
#include "failing_alloc.h"
#include "graph/job.h"
#include "util/prng.h"

enum { MAX_GROUPS = 8, MAX_VERTICES = 24 };

/* ---- random bounds, and a reference that deals slots one by one ---------------------------- */

struct sample {
    uint32_t group_of[MAX_VERTICES];
    struct bounds bounds;
};

static uint32_t draw(struct prng *p, uint32_t from, uint32_t to)
{
    return from + (uint32_t)prng_below(p, to - from + 1);
}

/* Vertices in groups that are numbered by first appearance. */
static void sample_bounds(struct sample *s, struct prng *p)
{
    uint32_t n_vertices = draw(p, 1, MAX_VERTICES), n_groups = 0;

    for (uint32_t v = 0; v < n_vertices; v++) {
        uint32_t g = draw(p, 0, n_groups < MAX_GROUPS ? n_groups : MAX_GROUPS - 1);

        s->group_of[v] = g;
        n_groups += g == n_groups;
    }
    cr_assert(eq(int, bounds_init(&s->bounds, n_vertices, n_groups, s->group_of, NULL), 0));
    for (uint32_t v = 0; v < n_vertices; v++) {
        uint32_t min = draw(p, 1, 6);

        s->bounds.vertices[v] = (struct vertex_bounds){min, min + draw(p, 0, 9)};
    }
    bounds_refresh(&s->bounds);
}

static uint32_t range_of(const struct bounds *b, uint32_t g)
{
    return b->groups[g].hi - b->groups[g].lo;
}

/* Who gets the next slot: the group with the least beyond its minimum that wants more; of equals
 * the one with the widest range, of those the last. */
static uint32_t needy_group(const struct bounds *b, const uint32_t *extra)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t g = 0; g < b->n_groups; g++) {
        if (extra[g] == range_of(b, g))
            continue;
        if (best == UINT32_MAX || extra[g] < extra[best] ||
            (extra[g] == extra[best] && range_of(b, g) >= range_of(b, best)))
            best = g;
    }
    return best;
}

static void deal_one_by_one(const struct bounds *b, uint64_t n_slots, uint32_t *group_slots)
{
    uint32_t extra[MAX_GROUPS] = {0};

    for (uint64_t left = n_slots - b->minimal; left > 0; left--) {
        uint32_t g = needy_group(b, extra);

        if (g == UINT32_MAX)
            break;
        extra[g]++;
    }
    for (uint32_t g = 0; g < b->n_groups; g++)
        group_slots[g] = b->groups[g].lo + extra[g];
}

static void expect_distribution(const struct bounds *b, uint64_t n_slots, const uint32_t *before)
{
    uint32_t want[MAX_GROUPS], got[MAX_GROUPS], p[MAX_VERTICES], same[MAX_VERTICES];
    uint64_t sum = 0;

    cr_assert(allocator_parallelism(b, n_slots, got, p));
    deal_one_by_one(b, n_slots, want);
    for (uint32_t g = 0; g < b->n_groups; g++) {
        cr_expect(eq(u32, got[g], want[g]), "group %u of %u slots", g, (unsigned)n_slots);
        cr_expect(ge(u32, got[g], before[g]), "one more slot takes none away");
        sum += got[g];
    }
    cr_expect(eq(u64, sum, n_slots < b->desired ? n_slots : b->desired));
    for (uint32_t v = 0; v < b->n_vertices; v++) { /* [S-PAR-7] */
        uint32_t slots = got[b->group_of[v]], wish = b->vertices[v].want;

        cr_expect(eq(u32, p[v], wish < slots ? wish : slots));
        cr_expect(ge(u32, p[v], b->vertices[v].min));
    }
    cr_assert(allocator_parallelism(b, n_slots, NULL, same));
    cr_expect(eq(int, memcmp(p, same, b->n_vertices * sizeof *p), 0));
}

/* [S-PAR-4] [S-PAR-5] [S-PAR-6] [S-PAR-7] */
Test(allocator, shares_slots_as_if_they_were_dealt_one_by_one)
{
    struct prng p = {1};

    for (int i = 0; i < 300; i++) {
        uint32_t before[MAX_GROUPS] = {0};
        struct sample s;

        sample_bounds(&s, &p);
        cr_expect(not(allocator_parallelism(&s.bounds, s.bounds.minimal - 1, NULL, NULL)));
        for (uint64_t n = s.bounds.minimal; n <= s.bounds.desired + 2; n++) {
            expect_distribution(&s.bounds, n, before);
            cr_assert(allocator_parallelism(&s.bounds, n, before, NULL));
        }
        bounds_free(&s.bounds, NULL);
    }
}

Test(allocator, writes_nothing_when_slots_are_insufficient) /* [S-PAR-5] */
{
    const uint32_t group_of[] = {0, 1};
    uint32_t slots[2] = {77, 77}, p[2] = {77, 77};
    struct bounds b;

    cr_assert(eq(int, bounds_init(&b, 2, 2, group_of, NULL), 0));
    b.vertices[0] = (struct vertex_bounds){3, 5};
    b.vertices[1] = (struct vertex_bounds){2, 2};
    bounds_refresh(&b);
    cr_expect(eq(u64, b.minimal, 5));
    cr_expect(eq(u64, b.desired, 7));
    cr_expect(not(allocator_parallelism(&b, 4, slots, p)));
    cr_expect(not(allocator_parallelism(&b, 0, slots, p)));
    for (int i = 0; i < 2; i++)
        cr_expect(slots[i] == 77 && p[i] == 77);
    cr_expect(allocator_parallelism(&b, 5, NULL, NULL));
    bounds_free(&b, NULL);
}

/* Two groups, one vertex each; shares are equal beyond the minimum, remainders go to the wider
 * range, or to the later group. */
Test(allocator, walks_groups_from_the_narrowest_range) /* [S-PAR-6] */
{
    static const struct {
        struct vertex_bounds a, b;
        uint64_t slots;
        uint32_t want_a, want_b;
    } rows[] = {
        {{1, 8}, {10, 10}, 13, 3, 10}, /* a fixed group takes exactly what it must have */
        {{4, 10}, {4, 10}, 9, 4, 5},   /* a tie: the earlier group gets less */
        {{4, 10}, {2, 8}, 9, 5, 4},    /* the range alone decides a tie */
        {{1, 10}, {1, 4}, 5, 3, 2},    /* the wider one gets the odd slot, though it is first */
        {{1, 10}, {1, 2}, 12, 10, 2},  /* what the narrow one cannot use goes on */
        {{1, 1}, {1, 32768}, 40000, 1, 32768},
        {{32768, 32768}, {1, 1}, 32769, 32768, 1},
    };
    const uint32_t group_of[] = {0, 1};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t slots[2];
        struct bounds b;

        cr_assert(eq(int, bounds_init(&b, 2, 2, group_of, NULL), 0));
        b.vertices[0] = rows[i].a;
        b.vertices[1] = rows[i].b;
        bounds_refresh(&b);
        cr_assert(allocator_parallelism(&b, rows[i].slots, slots, NULL));
        cr_expect(eq(u32, slots[0], rows[i].want_a), "row %zu", i);
        cr_expect(eq(u32, slots[1], rows[i].want_b), "row %zu", i);
        bounds_free(&b, NULL);
    }
}

Test(allocator, orders_many_groups_of_equal_range_by_number) /* [S-PAR-6] */
{
    enum { GROUPS = 100 };
    uint32_t group_of[GROUPS];
    struct bounds b;

    for (uint32_t g = 0; g < GROUPS; g++)
        group_of[g] = g;
    cr_assert(eq(int, bounds_init(&b, GROUPS, GROUPS, group_of, NULL), 0));
    for (uint32_t g = 0; g < GROUPS; g++)
        b.vertices[g] = (struct vertex_bounds){1 + g % 7, 1 + g % 7 + g % 3};
    bounds_refresh(&b);
    for (uint32_t i = 1; i < GROUPS; i++) {
        uint32_t g = b.order[i - 1], h = b.order[i];

        cr_expect(g % 3 < h % 3 || (g % 3 == h % 3 && g < h));
    }
    bounds_free(&b, NULL);
}

/* ---- the job's bounds --------------------------------------------------------------------- */

static struct pliant_job *make_job(void)
{
    static const struct pliant_vertex_spec vertices[] = {
        {"src", 4, 2, 0, NULL},
        {"map", 86, 0, 0, "wide"},
        {"sink", 3, 0, 6, NULL},
    };
    static const struct pliant_job_spec spec = {.vertices = vertices, .n_vertices = 3};
    struct pliant_job *job = NULL;

    cr_assert(eq(int, pliant_job_new(&spec, NULL, &job, NULL), 0));
    return job;
}

static void bounds_of(const struct pliant_job *job, bool reactive, struct bounds *b)
{
    cr_assert(eq(int, bounds_init(b, job->n_vertices, job->n_groups, job->group_of, NULL), 0));
    requirements_initial(b, job, reactive);
}

static void expect_bounds(const struct bounds *b, uint32_t v, uint32_t min, uint32_t want)
{
    cr_expect(eq(u32, b->vertices[v].min, min), "vertex %u", v);
    cr_expect(eq(u32, b->vertices[v].want, want), "vertex %u", v);
}

Test(allocator, begins_with_the_bounds_of_the_description) /* [S-PAR-1] [S-PAR-3] [S-PAR-4] */
{
    struct pliant_job *job = make_job();
    struct bounds b;

    bounds_of(job, false, &b);
    expect_bounds(&b, 0, 2, 4);
    expect_bounds(&b, 1, 1, 86);
    expect_bounds(&b, 2, 1, 3);
    cr_expect(b.groups[0].lo == 2 && b.groups[0].hi == 4);
    cr_expect(b.minimal == 3 && b.desired == 90);
    bounds_free(&b, NULL);
    pliant_job_destroy(&job);
}

Test(allocator, wants_the_maximum_in_reactive_mode) /* [S-PAR-2] */
{
    struct pliant_job *job = make_job();
    struct bounds b;

    bounds_of(job, true, &b);
    expect_bounds(&b, 0, 2, 128);
    expect_bounds(&b, 1, 1, 256);
    expect_bounds(&b, 2, 1, 6);
    cr_expect(eq(u64, b.desired, 384));
    bounds_free(&b, NULL);
    pliant_job_destroy(&job);
}

/* ---- requirement updates ------------------------------------------------------------------ */

struct refusals {
    size_t n;
    uint32_t vertex[16];
    enum pliant_reason reason[16];
};

static void note_refusal(void *ctx, uint32_t vertex, enum pliant_reason reason)
{
    struct refusals *r = ctx;

    r->vertex[r->n] = vertex;
    r->reason[r->n++] = reason;
}

enum { NO_ONE = -1 };

/* Updates of make_job(): src (max 128), map (256), sink (6). */
Test(allocator, refuses_an_update_whole_and_says_all_that_is_wrong) /* [S-REQ-1] [S-REQ-3] */
{
    static const struct {
        struct pliant_bounds update[4];
        size_t n;
        struct {
            int vertex;
            enum pliant_reason reason;
        } errors[4];
    } rows[] = {
        {{{"src", 1, 1}, {"map", 1, 1}}, 2, {{2, PLIANT_REASON_VERTEX_MISSING}}},
        {{{NULL, 0, 0}},
         0,
         {{0, PLIANT_REASON_VERTEX_MISSING},
          {1, PLIANT_REASON_VERTEX_MISSING},
          {2, PLIANT_REASON_VERTEX_MISSING}}},
        {{{"src", 1, 1}, {"map", 1, 1}, {"sink", 1, 1}, {"zz", 0, 0}},
         4,
         {{NO_ONE, PLIANT_REASON_UNKNOWN_VERTEX}}},
        {{{NULL, 1, 1}, {"src", 1, 1}, {"map", 1, 1}, {"sink", 1, 1}},
         4,
         {{NO_ONE, PLIANT_REASON_UNKNOWN_VERTEX}}},
        {{{"src", 0, 200}, {"map", 1, 0}, {"sink", -2, 7}},
         3,
         {{0, PLIANT_REASON_BOUND_BELOW_ONE},
          {1, PLIANT_REASON_BOUND_BELOW_ONE},
          {2, PLIANT_REASON_BOUND_BELOW_ONE}}},
        {{{"src", 5, 4}, {"map", 1, 257}, {"sink", 1, 6}},
         3,
         {{0, PLIANT_REASON_MIN_ABOVE_MAX}, {1, PLIANT_REASON_ABOVE_MAX_PARALLELISM}}},
        {{{"sink", 9, 8}, {"map", 1, 1}, {"src", 1, 1}},
         3,
         {{2, PLIANT_REASON_MIN_ABOVE_MAX}, {2, PLIANT_REASON_ABOVE_MAX_PARALLELISM}}},
        {{{"src", 1, 1}, {"map", 1, 1}, {"src", 0, 0}, {"sink", 1, 1}},
         4,
         {{0, PLIANT_REASON_NAMED_TWICE}}},
        {{{"src", 129, -1}, {"map", -1, -1}, {"sink", 1, 1}}, /* more than the default allows */
         3,
         {{0, PLIANT_REASON_MIN_ABOVE_MAX}}},
        {{{"src", 1, INT64_MAX}, {"map", INT64_MAX, 1}, {"sink", INT64_MIN, 1}},
         3,
         {{0, PLIANT_REASON_ABOVE_MAX_PARALLELISM},
          {1, PLIANT_REASON_MIN_ABOVE_MAX},
          {2, PLIANT_REASON_BOUND_BELOW_ONE}}},
    };
    struct pliant_job *job = make_job();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct refusals got = {0};
        struct bounds b;
        size_t n = 0;

        bounds_of(job, false, &b);
        cr_expect(
            eq(int,
               requirements_apply(&b, job, rows[i].update, rows[i].n, NULL, note_refusal, &got),
               -EINVAL),
            "row %zu", i);
        for (; n < 4 && rows[i].errors[n].reason != PLIANT_REASON_NONE; n++) {
            uint32_t vertex = rows[i].errors[n].vertex == NO_ONE
                                  ? REQUIREMENTS_NO_VERTEX
                                  : (uint32_t)rows[i].errors[n].vertex;

            cr_expect(eq(u32, got.vertex[n], vertex), "row %zu, error %zu", i, n);
            cr_expect(eq(int, got.reason[n], rows[i].errors[n].reason), "row %zu, error %zu", i, n);
        }
        cr_expect(eq(sz, got.n, n), "row %zu", i);
        expect_bounds(&b, 0, 2, 4);
        expect_bounds(&b, 1, 1, 86);
        expect_bounds(&b, 2, 1, 3);
        bounds_free(&b, NULL);
    }
    pliant_job_destroy(&job);
}

Test(allocator, takes_a_valid_update_and_tells_whether_it_changes_anything) /* [S-REQ-1] */
{
    const struct pliant_bounds same[] = {{"sink", 1, 3}, {"src", 2, 4}, {"map", 1, 86}};
    const struct pliant_bounds defaults[] = {{"src", -1, -1}, {"map", -1, 100}, {"sink", 6, -1}};
    struct pliant_job *job = make_job();
    struct refusals got = {0};
    struct bounds b;

    bounds_of(job, false, &b);
    cr_expect(eq(int, requirements_apply(&b, job, same, 3, NULL, note_refusal, &got), 0));
    cr_expect(eq(int, requirements_apply(&b, job, defaults, 3, NULL, note_refusal, &got), 1));
    expect_bounds(&b, 0, 1, 128);
    expect_bounds(&b, 1, 1, 100);
    expect_bounds(&b, 2, 6, 6);
    cr_expect(b.minimal == 7 && b.desired == 228);
    cr_expect(eq(int, requirements_apply(&b, job, defaults, 3, NULL, note_refusal, &got), 0));
    cr_expect(eq(sz, got.n, 0));
    bounds_free(&b, NULL);
    pliant_job_destroy(&job);
}

/* ---- no memory ---------------------------------------------------------------------------- */

Test(allocator, says_when_there_is_no_memory_and_leaks_none)
{
    const struct pliant_bounds update[] = {{"src", 1, 1}, {"map", 1, 1}, {"sink", 1, 1}};
    struct pliant_job *job = make_job();
    int rc = -ENOMEM;

    for (size_t k = 1; rc < 0; k++) {
        FAILING_ALLOC(f, k);
        struct refusals got = {0};
        struct bounds b;

        rc = bounds_init(&b, job->n_vertices, job->n_groups, job->group_of, &f.hook);
        if (rc == 0) {
            requirements_initial(&b, job, false);
            rc = requirements_apply(&b, job, update, 3, &f.hook, note_refusal, &got);
            if (rc < 0)
                expect_bounds(&b, 0, 2, 4);
            bounds_free(&b, &f.hook);
        }
        cr_expect(rc == 1 || rc == -ENOMEM);
        cr_expect(f.live == 0 && got.n == 0);
    }
    pliant_job_destroy(&job);
}

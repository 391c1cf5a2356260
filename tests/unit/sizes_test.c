/* sizes_test.c - what producers wrote, packed; and edges whose ranges were cut from data */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <string.h>

#include "failing_alloc.h"
#include "graph/sizes.h"
#include "graph/topology.h"

Test(sizes, are_summed_and_kept_by_partition) /* [5.12] */
{
    static const uint64_t first[] = {0, 127, 128, PLIANT_BYTES_MAX - 300, 1};
    static const uint64_t second[] = {5, 0, 16384, 1, 0};
    int64_t matrix[10] = {0};
    struct sizes z;

    cr_assert(eq(int, sizes_init(&z, 2, 5, NULL), 0));
    cr_assert(eq(int, sizes_put(&z, 0, first), 0));
    cr_assert(eq(int, sizes_put(&z, 1, second), 0));
    for (int i = 0; i < 5; i++)
        cr_assert(eq(i64, z.sums[i], (int64_t)(first[i] + second[i])));
    cr_assert(eq(i64, z.total, (int64_t)PLIANT_BYTES_MAX - 300 + 256 + 16390));
    cr_assert(eq(i64, sizes_of(&z, 1), 16390));
    sizes_matrix(&z, matrix);
    for (int i = 0; i < 5; i++)
        cr_assert(matrix[i] == (int64_t)first[i] && matrix[5 + i] == (int64_t)second[i]);
    cr_assert(eq(int, sizes_put(&z, 0, second), 0)); /* once more, and less */
    cr_assert(eq(i64, z.total, 2 * 16390));
    cr_assert(eq(int, sizes_put(&z, 1, NULL), 0));
    cr_assert(eq(i64, z.total, 16390));
    cr_assert(z.rows[1].packed == NULL && z.rows[0].n < 5 * sizeof(uint64_t));
    sizes_free(&z);
}

Test(sizes, packed_rows_that_are_none_are_refused)
{
    static const struct {
        uint8_t bytes[12];
        uint32_t n;
        int rc;
    } rows[] = {
        {{1, 2}, 2, 0},
        {{1, 0x80, 1}, 3, 0},
        {{1}, 1, -EINVAL},
        {{1, 2, 3}, 3, -EINVAL},
        {{1, 0x80}, 2, -EINVAL},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0}, 10, -EINVAL}, /* too long */
        {{0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 16, 0}, 9, -EINVAL},       /* too large */
        {{0}, 0, -EINVAL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sizes z;

        cr_assert(eq(int, sizes_init(&z, 1, 2, NULL), 0));
        cr_assert(eq(int, sizes_put_packed(&z, 0, rows[i].bytes, rows[i].n), rows[i].rc), "row %zu",
                  i);
        sizes_free(&z);
    }
}

/* ---- ranges --------------------------------------------------------------------------------- */

static struct pliant_job *two_vertices(void)
{
    static const struct pliant_vertex_spec vertices[] = {{.id = "a"}, {.id = "b"}};
    static const struct pliant_edge_spec edge = {0, 1, PLIANT_POINTWISE, PLIANT_BLOCKING};
    struct pliant_job *job = NULL;

    cr_assert(eq(int,
                 pliant_job_new(
                     &(struct pliant_job_spec){
                         .vertices = vertices, .n_vertices = 2, .edges = &edge, .n_edges = 1},
                     NULL, &job, NULL),
                 0));
    return job;
}

static void expect_range(struct range got, uint32_t first, uint32_t end)
{
    cr_assert(got.first == first && got.end == end, "%u..%u is not %u..%u", got.first, got.end,
              first, end);
}

Test(topology, of_a_vertex_at_a_time_with_given_ranges)
{
    static const struct range ranges[] = {{0, 2}, {1, 2}, {2, 3}, {3, 5}, {4, 5}};
    static const struct range *const of_edges[] = {ranges};
    struct pliant_job *job = two_vertices();
    struct topology t;

    cr_assert(eq(int, topology_begin(&t, job, NULL), 0));
    cr_assert(eq(int, topology_add(&t, 0, 5, NULL), 0));
    cr_assert_not(topology_wired(&t, 0));
    expect_range(topology_consumers(&t, 0, 3), 0, 0);
    cr_assert(eq(int, topology_add(&t, 1, 5, of_edges), 0));
    cr_assert(topology_wired(&t, 0) && !topology_all_to_all(&t, 0));
    for (uint32_t k = 0; k < 5; k++)
        expect_range(topology_producers(&t, 0, k), ranges[k].first, ranges[k].end);
    expect_range(topology_consumers(&t, 0, 0), 0, 1);
    expect_range(topology_consumers(&t, 0, 1), 0, 2);
    expect_range(topology_consumers(&t, 0, 4), 3, 5);
    cr_assert(eq(u32, t.n_groups, 3)); /* of those that overlap */
    for (uint32_t k = 0; k < 5; k++)
        cr_assert(eq(u32, topology_group_read(&t, 0, k), k < 2 ? 0 : k - (k == 4) - 1));
    expect_range(topology_group_producers(&t, 0, 2), 3, 5);
    expect_range(topology_group_consumers(&t, 0, 2), 3, 5);
    expect_range(topology_group_consumers(&t, 0, 1), 2, 3);
    topology_free(&t);
    pliant_job_destroy(&job);
}

Test(topology, ranges_that_are_none_make_an_edge_all_to_all)
{
    static const struct range rows[][2] = {
        {{0, 2}, {0, 0}}, /* reads nothing */
        {{0, 1}, {2, 3}}, /* one is left out */
        {{0, 2}, {1, 2}}, /* the last one is */
        {{1, 3}, {0, 3}}, /* they go back */
        {{0, 3}, {1, 2}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct range *of_edges[] = {rows[i]};
        struct pliant_job *job = two_vertices();
        struct topology t;

        cr_assert(eq(int, topology_begin(&t, job, NULL), 0));
        cr_assert(eq(int, topology_add(&t, 0, 3, NULL), 0));
        cr_assert(eq(int, topology_add(&t, 1, 2, of_edges), 0));
        cr_assert(topology_all_to_all(&t, 0), "row %zu", i);
        expect_range(topology_producers(&t, 0, 1), 0, 3);
        topology_free(&t);
        pliant_job_destroy(&job);
    }
}

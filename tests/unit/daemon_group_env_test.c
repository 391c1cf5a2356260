/* The variables of a worker group's processes, and where rank 0 is reached [W-ENV-1, W-ENV-2] */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "daemon/group_env.h"

Test(group_env, seats_follow_the_nodes)
{
    static const uint32_t nodes[] = {7, 7, 3, 9, 9, 9};
    static const struct group_seat want[] = {{0, 2, 0}, {1, 2, 0}, {0, 1, 1},
                                             {0, 3, 2}, {1, 3, 2}, {2, 3, 2}};
    struct group_seat seats[6];

    cr_assert(eq(u32, group_seats(nodes, 6, seats), 3));
    for (size_t rank = 0; rank < 6; rank++) {
        cr_expect(eq(u32, seats[rank].local_rank, want[rank].local_rank));
        cr_expect(eq(u32, seats[rank].local_size, want[rank].local_size));
        cr_expect(eq(u32, seats[rank].node_rank, want[rank].node_rank));
    }
}

Test(group_env, the_master_is_no_loopback_unless_all_are_on_one_machine)
{
    static const struct {
        struct group_host hosts[2];
        size_t n;
        const char *want;
    } rows[] = {
        {{{"10.0.0.1", "a"}, {"10.0.0.2", "b"}}, 2, "10.0.0.1"},
        {{{"127.0.0.1", "a"}, {"127.0.0.1", "a"}}, 2, "127.0.0.1"},
        {{{"127.0.0.1", "a"}, {"127.0.0.1", "b"}}, 2, "a"},
        {{{"localhost", "a"}, {"10.0.0.2", "b"}}, 2, "a"},
        {{{NULL, "a"}, {NULL, "b"}}, 2, "a"},
        {{{NULL, "a"}, {NULL, "a"}}, 2, "127.0.0.1"},
        {{{NULL, "a"}}, 1, "127.0.0.1"},
        {{{"10.0.0.1", "a"}}, 1, "10.0.0.1"},
        {{{"localhost", "a"}}, 1, "localhost"},
        {{{"::1", NULL}, {"::1", NULL}}, 2, "127.0.0.1"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect(
            eq(str, (char *)group_master_address(rows[i].hosts, rows[i].n), (char *)rows[i].want),
            "row %zu", i);
}

static const char *value_of(const struct group_variable *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i].name, name) == 0)
            return v[i].value;
    return "(none)";
}

static const struct group_env env = {.rank = 3,
                                     .world_size = 4,
                                     .n_nodes = 2,
                                     .seat = {1, 2, 1},
                                     .job = "abc",
                                     .role = "default",
                                     .host = "h",
                                     .master_address = "10.0.0.1",
                                     .master_port = 4242,
                                     .restarts = 5,
                                     .max_restarts = -1};

Test(group_env, has_the_variables_of_torchrun)
{
    static const char *const want[][2] = {
        {"RANK", "3"},
        {"WORLD_SIZE", "4"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"GROUP_RANK", "1"},
        {"GROUP_WORLD_SIZE", "2"},
        {"ROLE_NAME", "default"},
        {"ROLE_RANK", "3"},
        {"ROLE_WORLD_SIZE", "4"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "4242"},
        {"TORCHELASTIC_RUN_ID", "abc"},
        {"TORCHELASTIC_RESTART_COUNT", "5"},
        {"TORCHELASTIC_MAX_RESTARTS", "2147483647"},
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
        {"TORCHELASTIC_USE_AGENT_STORE", "False"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
        {"OMP_NUM_THREADS", "1"},
        {"HOROVOD_RANK", "(none)"},
    };
    struct group_variable v[GROUP_VARIABLES_MAX];
    size_t n = group_variables(&env, v);

    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        cr_expect(eq(str, (char *)value_of(v, n, want[i][0]), (char *)want[i][1]), "%s",
                  want[i][0]);
}

Test(group_env, leaves_threads_alone_where_a_worker_has_its_node_for_itself)
{
    struct group_env alone = env;
    struct group_variable v[GROUP_VARIABLES_MAX];

    alone.seat.local_size = 1;
    cr_assert(eq(str, (char *)value_of(v, group_variables(&alone, v), "OMP_NUM_THREADS"),
                 (char *)"(none)"));
}

Test(group_env, a_virtual_local_rank_is_0_and_horovod_has_its_own)
{
    struct group_env both = env;
    struct group_variable v[GROUP_VARIABLES_MAX];
    size_t n;

    both.virtual_local_rank = both.horovod = true;
    n = group_variables(&both, v);
    cr_assert(eq(str, (char *)value_of(v, n, "LOCAL_RANK"), (char *)"0"));
    cr_assert(eq(str, (char *)value_of(v, n, "HOROVOD_LOCAL_RANK"), (char *)"1"));
    cr_assert(eq(str, (char *)value_of(v, n, "HOROVOD_CROSS_SIZE"), (char *)"2"));
    cr_assert(eq(str, (char *)value_of(v, n, "HOROVOD_HOSTNAME"), (char *)"h"));
}

/* group_env.c - see group_env.h */
#include "daemon/group_env.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint32_t group_seats(const uint32_t *nodes, uint32_t n, struct group_seat *ret)
{
    uint32_t n_nodes = 0;

    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && nodes[end] == nodes[first];)
            end++;
        for (uint32_t rank = first; rank < end; rank++)
            ret[rank] = (struct group_seat){
                .local_rank = rank - first, .local_size = end - first, .node_rank = n_nodes};
        n_nodes++;
    }
    return n_nodes;
}

/* ---- the master ----------------------------------------------------------------------------- */

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 ||
           strncmp(address, "localhost", 9) == 0 || strcmp(address, "0.0.0.0") == 0;
}

static bool one_machine(const struct group_host *hosts, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!hosts[0].host || !hosts[i].host || strcmp(hosts[i].host, hosts[0].host) != 0)
            return false;
    return true;
}

const char *group_master_address(const struct group_host *hosts, size_t n)
{
    const char *given = hosts[0].address, *host = hosts[0].host;

    if (given && (!is_loopback(given) || one_machine(hosts, n)))
        return given;
    if (one_machine(hosts, n) || !host)
        return "127.0.0.1";
    return host;
}

/* ---- variables ------------------------------------------------------------------------------ */

struct list {
    struct group_variable *v;
    size_t n;
};

static void put(struct list *l, const char *name, const char *value)
{
    assert(l->n < GROUP_VARIABLES_MAX);
    l->v[l->n].name = name;
    snprintf(l->v[l->n].value, sizeof l->v->value, "%s", value);
    l->n++;
}

static void put_number(struct list *l, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    put(l, name, text);
}

static void put_ranks(struct list *l, const struct group_env *env)
{
    put_number(l, "RANK", env->rank);
    put_number(l, "WORLD_SIZE", env->world_size);
    put_number(l, "LOCAL_RANK", env->virtual_local_rank ? 0 : env->seat.local_rank);
    put_number(l, "LOCAL_WORLD_SIZE", env->seat.local_size);
    put_number(l, "GROUP_RANK", env->seat.node_rank);
    put_number(l, "GROUP_WORLD_SIZE", env->n_nodes);
    put(l, "ROLE_NAME", env->role);
    put_number(l, "ROLE_RANK", env->rank);
    put_number(l, "ROLE_WORLD_SIZE", env->world_size);
}

static void put_elastic(struct list *l, const struct group_env *env)
{
    put(l, "TORCHELASTIC_RUN_ID", env->job);
    put_number(l, "TORCHELASTIC_RESTART_COUNT", env->restarts);
    put_number(l, "TORCHELASTIC_MAX_RESTARTS",
               env->max_restarts < 0 ? INT32_MAX : (uint64_t)env->max_restarts);
    put(l, "TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
    put(l, "TORCHELASTIC_USE_AGENT_STORE", "False");
}

static void put_horovod(struct list *l, const struct group_env *env)
{
    put_number(l, "HOROVOD_RANK", env->rank);
    put_number(l, "HOROVOD_SIZE", env->world_size);
    put_number(l, "HOROVOD_LOCAL_RANK", env->seat.local_rank);
    put_number(l, "HOROVOD_LOCAL_SIZE", env->seat.local_size);
    put_number(l, "HOROVOD_CROSS_RANK", env->seat.node_rank);
    put_number(l, "HOROVOD_CROSS_SIZE", env->n_nodes);
    put(l, "HOROVOD_HOSTNAME", env->host ? env->host : "");
    put_number(l, "HOROVOD_ELASTIC", 1);
}

size_t group_variables(const struct group_env *env, struct group_variable ret[GROUP_VARIABLES_MAX])
{
    struct list l = {.v = ret};

    put_ranks(&l, env);
    put(&l, "MASTER_ADDR", env->master_address);
    put_number(&l, "MASTER_PORT", env->master_port);
    put_elastic(&l, env);
    put_number(&l, "TORCH_NCCL_ASYNC_ERROR_HANDLING", 1);
    if (env->seat.local_size > 1)
        put_number(&l, "OMP_NUM_THREADS", 1);
    if (env->horovod)
        put_horovod(&l, env);
    return l.n;
}

bool group_variable_is_default(const char *name)
{
    return strcmp(name, "OMP_NUM_THREADS") == 0 ||
           strcmp(name, "TORCH_NCCL_ASYNC_ERROR_HANDLING") == 0;
}

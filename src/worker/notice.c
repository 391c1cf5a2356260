/* notice.c - see notice.h */
#include "worker/notice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t length(struct json_span list)
{
    size_t n = 0;

    for (struct json_at at = {0}; json_next(list, &at);)
        n++;
    return n;
}

/* Missing: no deadline. */
static int read_instant(struct json_span map, const char *key, int64_t *ret)
{
    int r = json_int64(json_get(map, key), ret);

    if (r == -ENOENT)
        *ret = PLIANT_WORKER_NO_DEADLINE;
    return r == -ENOENT ? 0 : r;
}

static int read_ranks(struct json_span list, struct notice *n)
{
    n->ranks = calloc(length(list) + 1, sizeof *n->ranks);
    if (!n->ranks)
        return -ENOMEM;
    for (struct json_at at = {0}; json_next(list, &at);) {
        int64_t rank;

        if (json_int64(at.value, &rank) < 0 || rank < 0 || rank > UINT32_MAX)
            return -EINVAL;
        n->ranks[n->info.n_ranks++] = (uint32_t)rank;
    }
    n->info.ranks = n->ranks;
    return 0;
}

static int read_nodes(struct json_span list, struct notice *n)
{
    n->nodes = calloc(length(list) + 1, sizeof *n->nodes);
    if (!n->nodes)
        return -ENOMEM;
    for (struct json_at at = {0}; json_next(list, &at);) {
        int r = json_text(at.value, &n->nodes[n->info.n_nodes]);

        if (r < 0)
            return r == -ENOMEM ? r : -EINVAL;
        n->info.n_nodes++;
    }
    n->info.nodes = (const char *const *)n->nodes;
    return 0;
}

static int read_all(struct json_span value, struct notice *n)
{
    int r = read_instant(value, "deadline_ms", &n->info.deadline_unix_ms);

    if (r == 0)
        r = read_instant(value, "stop_at_ms", &n->info.stop_at_unix_ms);
    if (r == 0)
        r = read_ranks(json_get(value, "preempted_ranks"), n);
    if (r == 0)
        r = read_nodes(json_get(value, "preempted_node_ids"), n);
    if (r < 0)
        return r;
    n->json = strndup(value.v, value.n);
    n->info.json = n->json;
    return n->json ? 0 : -ENOMEM;
}

int notice_read(struct json_span value, struct notice *ret)
{
    struct notice n = {0};
    int r = 0;

    if (json_is(value, '{'))
        r = read_all(value, &n);
    else if (value.v && !json_is(value, 'n'))
        r = -EINVAL;
    if (r < 0) {
        notice_free(&n);
        return r;
    }
    notice_free(ret);
    *ret = n;
    return 0;
}

void notice_free(struct notice *n)
{
    for (size_t i = 0; i < n->info.n_nodes; i++)
        free(n->nodes[i]);
    free(n->nodes);
    free(n->ranks);
    free(n->json);
    *n = (struct notice){0};
}

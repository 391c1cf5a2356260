/* environment.c - see environment.h */
#include "worker/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "graph/key_groups.h"
#include "util/decimal.h"

/* NULL also for a variable that is empty. */
static const char *text(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static int wrong(char *error, const char *name, const char *accepted)
{
    const char *value = text(name);

    snprintf(error, ENVIRONMENT_ERROR_SIZE, "%s=%.80s in the environment: expected %s", name,
             value ? value : "", accepted);
    return -EINVAL;
}

/* A variable that is absent leaves *ret as it is. */
static int count(const char *name, uint32_t min, uint32_t max, uint32_t *ret, char *error)
{
    const char *value = text(name);
    char accepted[64];
    int64_t n;

    if (!value)
        return 0;
    if (decimal_read_int(value, &n) && n >= min && n <= max) {
        *ret = (uint32_t)n;
        return 0;
    }
    snprintf(accepted, sizeof accepted, "a whole number from %u to %u", min, max);
    return wrong(error, name, accepted);
}

/* "A-B" and nothing behind it? */
static bool two_numbers(const char *value, uint32_t *a, uint32_t *b)
{
    char first[16];
    size_t n = strcspn(value, "-");
    int64_t x, y;

    if (n >= sizeof first || !value[n])
        return false;
    memcpy(first, value, n);
    first[n] = '\0';
    if (!decimal_read_int(first, &x) || !decimal_read_int(value + n + 1, &y) || x < 0 || y < 0 ||
        x > UINT32_MAX || y > UINT32_MAX)
        return false;
    *a = (uint32_t)x;
    *b = (uint32_t)y;
    return true;
}

static int key_groups(struct pliant_worker_task *t, char *error)
{
    const char *value = text("PLIANT_KEY_GROUPS");
    struct range own;

    if (!key_groups_valid(t->max_parallelism, t->parallelism))
        return wrong(error, "PLIANT_MAX_PARALLELISM", "at least PLIANT_PARALLELISM");
    own = key_groups_range(t->max_parallelism, t->parallelism, t->subtask);
    t->first_key_group = own.first;
    t->last_key_group = own.last;
    if (!value)
        return 0;
    if (!two_numbers(value, &t->first_key_group, &t->last_key_group) ||
        t->first_key_group > t->last_key_group || t->last_key_group >= t->max_parallelism)
        return wrong(error, "PLIANT_KEY_GROUPS", "FIRST-LAST below PLIANT_MAX_PARALLELISM");
    return 0;
}

/* Of .../VERTEX/SUBTASK-PARALLELISM the key groups that are ours now. */
static int read_part(const struct environment *e, const char *dir, struct pliant_worker_part *ret,
                     char *error)
{
    const struct pliant_worker_task *t = &e->task;
    const char *slash = strrchr(dir, '/');
    struct pliant_worker_part p = {.dir = dir};
    struct range old;

    if (!two_numbers(slash ? slash + 1 : dir, &p.subtask, &p.parallelism) ||
        !key_groups_valid(t->max_parallelism, p.parallelism) || p.subtask >= p.parallelism)
        return wrong(error, "PLIANT_RESTORE", "paths .../SUBTASK-PARALLELISM, joined by ':'");
    old = key_groups_range(t->max_parallelism, p.parallelism, p.subtask);
    p.first_key_group = old.first > t->first_key_group ? old.first : t->first_key_group;
    p.last_key_group = old.last < t->last_key_group ? old.last : t->last_key_group;
    *ret = p;
    return 0;
}

static int restore_parts(struct environment *e, char *error)
{
    const char *value = text("PLIANT_RESTORE");
    size_t n = 1;
    int r;

    if (!value)
        return 0;
    for (const char *c = value; *c; c++)
        n += *c == ':';
    e->parts = calloc(n, sizeof *e->parts);
    e->part_paths = strdup(value);
    if (!e->parts || !e->part_paths)
        return -ENOMEM;
    for (char *rest = e->part_paths, *dir; (dir = strsep(&rest, ":"));) {
        struct pliant_worker_part *part = &e->parts[e->n_parts];

        r = read_part(e, dir, part, error);
        if (r < 0)
            return r;
        e->n_parts += part->first_key_group <= part->last_key_group; /* else it is of no use */
    }
    return 0;
}

/* Somebody above may have left a RANK, and a worker group may have the variables of a graph job
 * too. */
static bool is_group(void)
{
    const char *run = text("TORCHELASTIC_RUN_ID"), *job = text("PLIANT_JOB_ID");

    return text("RANK") && text("WORLD_SIZE") &&
           (!text("PLIANT_PARALLELISM") || (run && job && strcmp(run, job) == 0));
}

/* Rank and size; of a graph job subtask and parallelism. */
static int read_place(struct pliant_worker_task *t, char *error)
{
    const char *size = t->group ? "WORLD_SIZE" : "PLIANT_PARALLELISM";
    const char *index = t->group ? "RANK" : "PLIANT_SUBTASK";
    int r = count(size, 1, UINT32_MAX, &t->parallelism, error);

    if (r == 0)
        r = count(index, 0, t->parallelism - 1, &t->subtask, error);
    return r;
}

int environment_read(struct environment *ret, char error[ENVIRONMENT_ERROR_SIZE])
{
    struct environment *e = ret;
    struct pliant_worker_task *t = &e->task;
    int r;

    *e = (struct environment){
        .socket_path = text("PLIANT_WORKER_SOCKET"),
        .checkpoint_dir = text("PLIANT_CHECKPOINT_DIR"),
        .inputs_path = text("PLIANT_INPUTS"),
        .outputs_path = text("PLIANT_OUTPUTS"),
        .task = {.job_id = text("PLIANT_JOB_ID"),
                 .job_name = text("PLIANT_JOB_NAME"),
                 .node_id = text("PLIANT_NODE_ID"),
                 .vertex = text("PLIANT_VERTEX"),
                 .log_dir = text("PLIANT_LOG_DIR"),
                 .preemption_file = text("PLIANT_PREEMPTION_FILE"),
                 .run_dir = text("PLIANT_RUN_DIR"),
                 .group = is_group(),
                 .parallelism = 1,
                 .attempt = 1},
    };
    if (e->socket_path && strlen(e->socket_path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return wrong(error, "PLIANT_WORKER_SOCKET", "a path that a socket can have");
    r = read_place(t, error);
    if (r == 0)
        r = count("PLIANT_ATTEMPT", 1, UINT32_MAX, &t->attempt, error);
    if (r == 0)
        r = count("PLIANT_SLOT", 0, UINT32_MAX, &t->slot, error);
    if (r < 0 || t->group)
        return r;
    t->max_parallelism = key_groups_default_max(t->parallelism);
    r = count("PLIANT_MAX_PARALLELISM", 1, UINT32_MAX, &t->max_parallelism, error);
    if (r == 0)
        r = key_groups(t, error);
    return r < 0 ? r : restore_parts(e, error);
}

void environment_free(struct environment *e)
{
    free(e->parts);
    free(e->part_paths);
}

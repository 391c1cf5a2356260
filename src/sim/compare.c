/* compare.c - see compare.h */
#include "sim/compare.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocator/requirements.h"
#include "graph/job.h"
#include "sim/sim.h"

#define N(array) (sizeof(array) / sizeof *(array))
#define ADAPTIVE "jobmanager.adaptive-scheduler."
#define COOLDOWN ADAPTIVE "executing.cooldown-after-rescaling"
#define STABILIZATION ADAPTIVE "executing.resource-stabilization-timeout"
#define POLICY "pliant.rescale.policy"
#define INTERVAL "execution.checkpointing.interval"
#define ADAPTIVE_INTERVAL "pliant.checkpoint.interval"

/* ---- who is compared ---------------------------------------------------------------------- */

/* clang-format off */
const struct compare_policy compare_policies[] = {
    {.name = "never", .settings = {{POLICY, "never"}}},
    {.name = "torchrun", .settings = {{POLICY, "torchrun"}}},
    {.name = "ray-elastic", .settings = {{POLICY, "ray-elastic"}}},
    {.name = "immediate", .settings = {{POLICY, "immediate"}}},
    {.name = "flink", .settings = {{POLICY, "parallelism-change"}}},
    {.name = "flink-reactive",
     .settings = {{POLICY, "parallelism-change"}, {"scheduler-mode", "reactive"}}},
    {.name = "flink-stab0", .settings = {{POLICY, "parallelism-change"}, {STABILIZATION, "0 s"}}},
    {.name = "worth",
     .settings = {{POLICY, "worth"}, {ADAPTIVE_INTERVAL, "auto"}},
     .learns = true},
    {.name = "own", .own = true},
};

/* Cheap and dear restarts, small and large state. */
const struct compare_cost compare_costs[] = {
    {5000, 60000, 500}, {30000, 60000, 3000}, {30000, 300000, 3000}, {120000, 300000, 12000},
};

/* When to rescale, and by which checkpoints: what the job says about it is left aside. */
static const char *const compared[] = {
    POLICY, "scheduler-mode", COOLDOWN, STABILIZATION,
    ADAPTIVE "rescale-trigger.max-delay",
    ADAPTIVE "rescale-trigger.max-checkpoint-failures",
    ADAPTIVE "rescale-trigger.active-checkpoint.enabled",
    ADAPTIVE "rescale.resource-stabilization-timeout",
    ADAPTIVE_INTERVAL,
    "pliant.checkpoint.min-interval",
    "pliant.checkpoint.max-interval",
};

/* The same for all, so that only the decisions differ. */
static const struct compare_setting common[] = {
    {ADAPTIVE "submission.resource-wait-timeout", "-1 ms"},
    {ADAPTIVE "submission.resource-stabilization-timeout", "0 s"},
    {"restart-strategy.type", "fixed-delay"},
    {"restart-strategy.fixed-delay.delay", "0 s"},
    {"restart-strategy.fixed-delay.attempts", "2147483647"},
    {"pliant.checkpoint.periodic", "true"},
    {"execution.checkpointing.min-pause", "0 s"},
    {"execution.checkpointing.timeout", "1000 d"},
    {"execution.checkpointing.tolerable-failed-checkpoints", "-1"},
    {"pliant.sim.restore-latency", "0 s"},
    {"pliant.sim.cancel-latency", "0 s"},
};
/* clang-format on */

const size_t compare_n_policies = N(compare_policies);
const size_t compare_n_costs = N(compare_costs);

static int define(struct options *o, const char *key, const char *value, struct spec_error *err)
{
    char text[256];

    snprintf(text, sizeof text, "%s=%s", key, value);
    return options_define(o, text, err);
}

static int define_ms(struct options *o, const char *key, int64_t ms, struct spec_error *err)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64 " ms", ms);
    return define(o, key, text, err);
}

static int define_all(struct options *o, const struct compare_setting *v, size_t n,
                      struct spec_error *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < n && v[i].key; i++)
        r = define(o, v[i].key, v[i].value, err);
    return r;
}

int compare_policy_check(const struct compare_policy *policy, struct spec_error *err)
{
    struct options o = {0};
    int r = define_all(&o, policy->settings, COMPARE_SETTINGS, err);

    options_free(&o);
    return r;
}

/* ---- the job ------------------------------------------------------------------------------ */

/* The vertices of `job` with these bounds, for good. */
static int cut_job(const struct pliant_job *job, const struct bounds *bounds,
                   const uint32_t *parallelism, struct pliant_job **ret, struct pliant_error *why)
{
    struct pliant_vertex_spec *vertices = mem_zero(NULL, job->n_vertices, sizeof *vertices);
    int r = vertices ? 0 : -ENOMEM;

    for (uint32_t v = 0; !r && v < job->n_vertices; v++)
        vertices[v] =
            (struct pliant_vertex_spec){.id = job->vertices[v].name,
                                        .parallelism = parallelism[v],
                                        .min_parallelism = bounds->vertices[v].min,
                                        .max_parallelism = parallelism[v],
                                        .slot_sharing_group = job->groups[job->group_of[v]]};
    if (!r)
        r = pliant_job_new(&(struct pliant_job_spec){.name = job->name,
                                                     .vertices = vertices,
                                                     .n_vertices = job->n_vertices,
                                                     .edges = job->edges,
                                                     .n_edges = job->n_edges},
                           NULL, ret, why);
    mem_free(NULL, vertices);
    return r;
}

static uint32_t smallest(const uint32_t *v, uint32_t n)
{
    uint32_t least = v[0];

    for (uint32_t i = 1; i < n; i++)
        least = v[i] < least ? v[i] : least;
    return least;
}

static void fill_speeds(const struct bounds *bounds, const struct job_progress *progress,
                        uint32_t *parallelism, double *speed, uint32_t n)
{
    for (uint32_t slots = 0; slots < n; slots++)
        if (allocator_parallelism(bounds, slots, NULL, parallelism))
            speed[slots] = work_speed(progress, smallest(parallelism, bounds->n_vertices));
}

static int init_job(struct compare_job *ret, const struct job_spec *spec, struct bounds *bounds,
                    uint32_t *parallelism, uint32_t max_slots, struct spec_error *err)
{
    uint64_t slots = max_slots > 0 && max_slots < bounds->desired ? max_slots : bounds->desired;
    struct pliant_error why = {.text = ""};
    double *speed;
    int r;

    if (!allocator_parallelism(bounds, slots, NULL, parallelism)) {
        snprintf(err->text, sizeof err->text, "the job needs at least %" PRIu64 " slots",
                 bounds->minimal);
        return -EINVAL;
    }
    r = cut_job(spec->job, bounds, parallelism, &ret->spec.job, &why);
    if (r) {
        snprintf(err->text, sizeof err->text, "%s", why.text);
        return r;
    }
    ret->spec.progress = spec->progress;
    ret->n_speeds = (uint32_t)slots + 1;
    ret->speed = speed = mem_zero(NULL, ret->n_speeds, sizeof *speed);
    if (!speed)
        return -ENOMEM;
    for (uint32_t v = 0; v < bounds->n_vertices; v++)
        bounds->vertices[v].want = parallelism[v];
    bounds_refresh(bounds);
    fill_speeds(bounds, &spec->progress, parallelism, speed, ret->n_speeds);
    return 0;
}

int compare_job_init(struct compare_job *ret, const struct job_spec *spec, bool reactive,
                     uint32_t max_slots, struct spec_error *err)
{
    const struct pliant_job *job = spec->job;
    uint32_t *parallelism = mem_zero(NULL, job->n_vertices, sizeof *parallelism);
    struct bounds bounds = {0};
    struct compare_job made = {.n_speeds = 0};
    int r = parallelism ? bounds_init(&bounds, job->n_vertices, job->n_groups, job->group_of, NULL)
                        : -ENOMEM;

    err->text[0] = '\0';
    if (!r) {
        requirements_initial(&bounds, job, reactive);
        r = init_job(&made, spec, &bounds, parallelism, max_slots, err);
    }
    bounds_free(&bounds, NULL);
    mem_free(NULL, parallelism);
    if (!r)
        *ret = made;
    else
        compare_job_free(&made);
    return r;
}

void compare_job_free(struct compare_job *job)
{
    pliant_job_destroy(&job->spec.job);
    mem_free(NULL, (void *)job->speed);
    *job = (struct compare_job){0};
}

/* ---- options ------------------------------------------------------------------------------ */

/* What a policy's runs at one cost need to know. */
struct prepared {
    struct pliant_config cfg;
    struct sim_latency latency;
};

/* What the file and the job say. */
static int gather_own(const struct compare *c, struct options *o, struct spec_error *err)
{
    int r = c->config ? options_add(o, OPTIONS_FILE, c->config, c->config->root, err) : 0;

    if (!r && c->options_of)
        r = options_add_job(o, &c->options_of->doc, c->options_of->config, c->options_of->group,
                            err);
    return r;
}

int compare_find_own(const struct compare *c, struct compare_own *ret, struct spec_error *err)
{
    struct options o = {0};
    struct compare_own own = {.interval_ms = PLIANT_UNSET};
    int r = gather_own(c, &o, err);

    static_assert(N(compared) <= COMPARE_OWN_MAX, "they need not be counted");
    if (!r && *options_text(&o, INTERVAL))
        own.interval_ms = options_duration_ms(&o, INTERVAL);
    for (size_t i = 0; i < N(compared); i++) {
        size_t n = o.settings.n;

        options_forget(&o, compared[i]);
        if (o.settings.n < n)
            own.keys[own.n_keys++] = compared[i];
    }
    options_free(&o);
    if (!r)
        *ret = own;
    return r;
}

int compare_defines(const struct compare *c, const char *key, bool *ret, struct spec_error *err)
{
    struct options o = {0};
    int r = 0;
    size_t n;

    for (size_t i = 0; !r && i < c->n_defines; i++)
        r = options_define(&o, c->defines[i], err);
    n = o.settings.n;
    options_forget(&o, key);
    *ret = o.settings.n < n;
    options_free(&o);
    return r;
}

static int define_cost(struct options *o, const struct compare_cost *cost, bool own,
                       struct spec_error *err)
{
    bool keeps_interval = own && *options_text(o, INTERVAL);
    int r = define_ms(o, "pliant.sim.deploy-latency", cost->restart_ms, err);

    if (!r)
        r = define_ms(o, "pliant.sim.checkpoint-duration", cost->checkpoint_ms, err);
    return r || keeps_interval ? r : define_ms(o, INTERVAL, cost->interval_ms, err);
}

/* The first that says something: -D, the policy, the cost, what is common, the job, the file. */
static int gather(const struct compare *c, const struct compare_cost *cost,
                  const struct compare_policy *policy, struct options *o, struct spec_error *err)
{
    int r = gather_own(c, o, err);

    for (size_t i = 0; i < N(compared) && !policy->own; i++)
        options_forget(o, compared[i]);
    if (!r)
        r = define_all(o, common, N(common), err);
    if (!r)
        r = define_cost(o, cost, policy->own, err);
    if (!r)
        r = define_all(o, policy->settings, COMPARE_SETTINGS, err);
    for (size_t i = 0; !r && i < c->n_defines; i++)
        r = options_define(o, c->defines[i], err);
    return r;
}

static int prepare(const struct compare *c, const struct compare_cost *cost,
                   const struct compare_policy *policy, struct prepared *ret,
                   struct spec_error *err)
{
    struct options o = {0};
    int r = gather(c, cost, policy, &o, err);

    if (!r)
        r = options_resolve(&o, &ret->cfg, err);
    if (!r)
        r = sim_check_job(&c->job->spec, &ret->cfg, err);
    ret->latency = sim_latency_of(&o);
    options_free(&o);
    return r;
}

/* ---- runs --------------------------------------------------------------------------------- */

static int simulate(const struct compare *c, const struct tape *tape, const struct prepared *with,
                    struct sim_observer *const *observers, size_t n, struct spec_error *err)
{
    return sim_run(&(struct sim_setup){.cfg = &with->cfg,
                                       .job = &c->job->spec,
                                       .latency = with->latency,
                                       .events = tape->events.v,
                                       .n_events = tape->events.n,
                                       .until_ms = tape->end_ms,
                                       .observers = observers,
                                       .n_observers = n},
                   err);
}

static int measure(const struct compare *c, const struct tape *tape, const struct prepared *with,
                   struct compare_result *ret, struct spec_error *err)
{
    struct work work;
    struct sim_observer *observers[] = {&work.observer};
    int r;

    work_init(&work, c->job->spec.job, &c->job->spec.progress, with->latency.checkpoint_ms);
    r = simulate(c, tape, with, observers, 1, err);
    *ret = (struct compare_result){.work = work.done,
                                   .lost = work.lost,
                                   .restarts = work.restarts,
                                   .forced = work_forced(&work)};
    return r;
}

int compare_watch(const struct compare *c, size_t tape, size_t cost, size_t policy,
                  struct sim_observer *watcher, struct spec_error *err)
{
    struct prepared with;
    int r = prepare(c, &c->costs[cost], &c->policies[policy], &with, err);

    return r ? r : simulate(c, &c->tapes[tape], &with, &watcher, 1, err);
}

int compare_bound(const struct compare *c, size_t tape, size_t cost, double *ret_work,
                  struct bound_runs *ret_runs)
{
    return bound_find(&(struct bound_problem){.steps = c->tapes[tape].steps.v,
                                              .n_steps = c->tapes[tape].steps.n,
                                              .end_ms = c->tapes[tape].end_ms,
                                              .restart_ms = c->costs[cost].restart_ms,
                                              .speed = c->job->speed,
                                              .n_speeds = c->job->n_speeds},
                      ret_work, ret_runs);
}

/* ---- all of them -------------------------------------------------------------------------- */

struct all {
    struct compare *c;
    struct prepared *with;    /* [n_costs * n_policies] */
    struct spec_error *texts; /* [n_pieces], of the pieces that failed */
};

/* Piece 0 of a cell is its bound, the others are its policies. */
static int piece(void *ctx, size_t i)
{
    struct all *all = ctx;
    struct compare *c = all->c;
    size_t cell = i / (c->n_policies + 1), k = i % (c->n_policies + 1);
    size_t tape = cell / c->n_costs, cost = cell % c->n_costs;

    if (k == 0)
        return compare_bound(c, tape, cost, &c->bounds[cell], NULL);
    return measure(c, &c->tapes[tape], &all->with[cost * c->n_policies + k - 1],
                   &c->results[cell * c->n_policies + k - 1], &all->texts[i]);
}

size_t compare_pieces(const struct compare *c)
{
    return c->n_tapes * c->n_costs * (c->n_policies + 1);
}

static int prepare_all(struct all *all, struct spec_error *err)
{
    const struct compare *c = all->c;
    int r = 0;

    for (size_t i = 0; !r && i < c->n_costs * c->n_policies; i++)
        r = prepare(c, &c->costs[i / c->n_policies], &c->policies[i % c->n_policies], &all->with[i],
                    err);
    return r;
}

static int run_all(struct all *all, struct spec_error *err)
{
    struct compare *c = all->c;
    int r = prepare_all(all, err);

    if (r)
        return r;
    r = parallel_run(&(struct parallel){.n = compare_pieces(c),
                                        .piece = piece,
                                        .ctx = all,
                                        .threads = c->threads,
                                        .progress = c->progress,
                                        .progress_ctx = c->progress_ctx});
    for (size_t i = 0; r && i < compare_pieces(c) && !*err->text; i++)
        if (*all->texts[i].text)
            snprintf(err->text, sizeof err->text, "%s: %.900s",
                     c->tapes[i / (c->n_policies + 1) / c->n_costs].name, all->texts[i].text);
    return r;
}

int compare_run(struct compare *c, struct spec_error *err)
{
    size_t cells = c->n_tapes * c->n_costs;
    struct all all = {.c = c,
                      .with = mem_zero(NULL, c->n_costs * c->n_policies, sizeof *all.with),
                      .texts = mem_zero(NULL, compare_pieces(c), sizeof *all.texts)};
    int r;

    err->text[0] = '\0';
    c->bounds = mem_zero(NULL, cells, sizeof *c->bounds);
    c->results = mem_zero(NULL, cells * c->n_policies, sizeof *c->results);
    r = all.with && all.texts && c->bounds && c->results ? run_all(&all, err) : -ENOMEM;
    mem_free(NULL, all.with);
    mem_free(NULL, all.texts);
    if (r)
        compare_free(c);
    return r;
}

void compare_free(struct compare *c)
{
    mem_free(NULL, c->bounds);
    mem_free(NULL, c->results);
    c->bounds = NULL;
    c->results = NULL;
}

double compare_ratio(double work, double bound)
{
    return bound > 0 ? work / bound : 1;
}

/* compare.h - policies side by side: what each gets done on each trace, at each cost
 *
 *     compare_job_init(&job, &spec, reactive, 64, &err);
 *     c = (struct compare){.job = &job, .tapes = ..., .costs = ..., .policies = ...};
 *     compare_run(&c, &err);
 *     ... c.bounds, c.results ...
 *     compare_free(&c); compare_job_free(&job);
 *
 * All drive the same core on the same simulated cluster; a policy is nothing but options. What the
 * job's own options say about when to rescale and when to take checkpoints is left aside, since
 * that is what is compared; it is a policy of its own.
 *
 * Shapes  a cell is a tape at a cost: index tape * n_costs + cost
 *         bounds[n_cells]; results[n_cells * n_policies], cell by cell
 * Units   ms; work is speed times ms
 * Owner   compare_free() frees what compare_run() made; the rest is borrowed
 * Errors  -EINVAL with *err (the job, the options, a tape), -ENOMEM
 */
#ifndef PLIANT_SIM_COMPARE_H
#define PLIANT_SIM_COMPARE_H

#include "sim/parallel.h"
#include "sim/tape.h"
#include "sim/work.h"
#include "spec/options.h"

/* ---- who is compared ---------------------------------------------------------------------- */

struct compare_setting {
    const char *key, *value;
};

#define COMPARE_SETTINGS 8

struct compare_policy {
    const char *name;
    struct compare_setting settings[COMPARE_SETTINGS]; /* up to one without key */
    bool learns; /* adapts to what it sees; else it is fixed */
    bool own;    /* what the job says about when to rescale and to take checkpoints counts */
};

/* The last of them, "own", is what the job and the option file say. */
extern const struct compare_policy compare_policies[];
extern const size_t compare_n_policies;

/* 0, or -EINVAL with *err: an option or a value that this build does not know. */
int compare_policy_check(const struct compare_policy *policy, struct spec_error *err);

/* ---- at what cost ------------------------------------------------------------------------- */

struct compare_cost {
    int64_t restart_ms;    /* from leaving Executing to all tasks running again */
    int64_t interval_ms;   /* from one periodic checkpoint to the next, >= 1 */
    int64_t checkpoint_ms; /* that a checkpoint takes, without work */
};

extern const struct compare_cost compare_costs[];
extern const size_t compare_n_costs;

/* ---- the job ------------------------------------------------------------------------------ */

/* The job as it is compared: the vertices' bounds, cut to a number of slots. */
struct compare_job {
    struct job_spec spec; /* only `job` and `progress`, which is borrowed */
    const double *speed;  /* [n_speeds] by slots */
    uint32_t n_speeds;    /* the most slots that are used, and 1 */
};

/* max_slots 0: no limit but the vertices'. */
int compare_job_init(struct compare_job *ret, const struct job_spec *spec, bool reactive,
                     uint32_t max_slots, struct spec_error *err);
void compare_job_free(struct compare_job *job);

/* ---- the comparison ----------------------------------------------------------------------- */

struct compare_result {
    double work, lost;
    uint64_t restarts, forced;
};

struct compare {
    const struct compare_job *job;
    const struct tape *tapes;
    size_t n_tapes;
    const struct compare_cost *costs;
    size_t n_costs;
    const struct compare_policy *policies;
    size_t n_policies;

    /* Where options come from: a file, the job's config, -D. NULL: none. */
    const struct doc_file *config;
    const struct job_spec *options_of;
    const char *const *defines;
    size_t n_defines;

    unsigned threads; /* as in struct parallel */
    void (*progress)(void *ctx, size_t done);
    void *progress_ctx;

    double *bounds;
    struct compare_result *results;
};

#define COMPARE_OWN_MAX 16

/* What file and job say of what the policies do else. */
struct compare_own {
    const char *keys[COMPARE_OWN_MAX]; /* about when to rescale, and the interval of auto */
    size_t n_keys;
    int64_t interval_ms; /* of checkpoints; PLIANT_UNSET: nothing */
};
int compare_find_own(const struct compare *c, struct compare_own *ret, struct spec_error *err);

/* How many pieces compare_run() has. */
size_t compare_pieces(const struct compare *c);

int compare_run(struct compare *c, struct spec_error *err);
void compare_free(struct compare *c);

/* Does -D say something about an option? */
int compare_defines(const struct compare *c, const char *key, bool *ret, struct spec_error *err);

/* One of the runs again, watched. */
int compare_watch(const struct compare *c, size_t tape, size_t cost, size_t policy,
                  struct sim_observer *watcher, struct spec_error *err);

/* What the bound does there. */
int compare_bound(const struct compare *c, size_t tape, size_t cost, double *ret_work,
                  struct bound_runs *ret_runs);

/* Work as a share of the bound; 1 where there was nothing to be had. */
double compare_ratio(double work, double bound);

#endif

/* pliant-sim-inputs.c - see pliant-sim-inputs.h */
#include "pliant-sim-inputs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/progress.h"

/* ---- arguments ------------------------------------------------------------------------------ */

bool sim_inputs_is(int option)
{
    return option != 0 && strchr("JtkmCnD", option);
}

static bool no_memory(void)
{
    complain(NO_RESOURCES, "no memory");
    return false;
}

/* A number up to the next comma or the end; NULL: it is none. */
static const char *read_ms(const char *text, int64_t min, int64_t *ret)
{
    char *end;

    if (*text < '0' || *text > '9')
        return NULL;
    *ret = strtoll(text, &end, 10); /* what is too large becomes so large that it is refused */
    return *ret >= min && *ret <= DOC_INTEGER_MAX ? end : NULL;
}

static bool take_cost(struct sim_inputs *in, enum exit_code *ret_exit)
{
    struct compare_cost cost, *place;
    const char *at = read_ms(optarg, 0, &cost.restart_ms);

    at = at && *at == ',' ? read_ms(at + 1, 1, &cost.interval_ms) : NULL;
    at = at && *at == ',' ? read_ms(at + 1, 0, &cost.checkpoint_ms) : NULL;
    if (!at || *at) {
        *ret_exit = complain(BAD_INPUT,
                             "--cost: three whole numbers of ms, the second at least 1, as "
                             "\"30000,60000,3000\", not \"%s\"",
                             optarg);
        return false;
    }
    place = vec_push(NULL, &in->costs);
    *ret_exit = NO_RESOURCES;
    if (!place)
        return no_memory();
    *place = cost;
    return true;
}

/* What is wrong with it is wrong now, not with the first run. */
static bool check_define(const char *text, enum exit_code *ret_exit)
{
    struct options o = {0};
    struct spec_error err;
    int r = options_define(&o, text, &err);

    options_free(&o);
    if (r)
        *ret_exit = input_error(r, err.text);
    return !r;
}

bool sim_inputs_take(struct sim_inputs *in, int option, enum exit_code *ret_exit)
{
    const char **place = NULL;

    *ret_exit = BAD_INPUT;
    switch (option) {
    case 'J':
        in->job_path = optarg;
        return true;
    case 'C':
        in->config_path = optarg;
        return true;
    case 'm':
        return take_number("max-slots", optarg, 1, PLIANT_MAX_SLOTS, &in->max_slots);
    case 'n':
        return take_number("threads", optarg, 1, PARALLEL_MAX, &in->threads);
    case 'k':
        return take_cost(in, ret_exit);
    case 't':
        place = vec_push(NULL, &in->trace_paths);
        break;
    default:
        if (!check_define(optarg, ret_exit))
            return false;
        place = vec_push(NULL, &in->defines);
        break;
    }
    *ret_exit = NO_RESOURCES;
    if (!place)
        return no_memory();
    *place = optarg;
    return true;
}

bool sim_inputs_complete(const struct sim_inputs *in, const struct command *self)
{
    if (!in->job_path)
        usage(self, "%s: --job FILE is missing", self->name);
    else if (in->trace_paths.n == 0)
        usage(self, "%s: --trace FILE is missing", self->name);
    else
        return true;
    return false;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Does the user run it in reactive mode? Then its vertices want their maximum. And only the
 * adaptive scheduler rescales. */
static int find_mode(const struct sim_inputs *in, bool *ret_reactive, struct spec_error *err)
{
    struct options o = {0};
    struct pliant_config cfg;
    int r = in->config_path ? options_add(&o, OPTIONS_FILE, &in->config, in->config.root, err) : 0;

    if (!r)
        r = options_add_job(&o, &in->spec.doc, in->spec.config, in->spec.group, err);
    for (size_t i = 0; !r && i < in->defines.n; i++)
        r = options_define(&o, in->defines.v[i], err);
    o.all_blocking = pliant_job_is_batch(in->spec.job);
    if (!r)
        r = options_resolve(&o, &cfg, err);
    options_free(&o);
    if (!r && cfg.scheduler != PLIANT_SCHEDULER_ADAPTIVE) {
        snprintf(err->text, sizeof err->text,
                 "%s: the job never rescales: its jobmanager.scheduler is %s; accepted: adaptive",
                 in->job_path,
                 cfg.scheduler == PLIANT_SCHEDULER_DEFAULT ? "default" : "adaptive-batch");
        return -EINVAL;
    }
    if (!r)
        *ret_reactive = cfg.mode == PLIANT_MODE_REACTIVE;
    return r;
}

static int read_job(struct sim_inputs *in, struct spec_error *err)
{
    bool reactive;
    int r = job_spec_read(in->job_path, &in->spec, err);

    if (!r && in->config_path)
        r = doc_read(in->config_path, OPTIONS_FILE_MAX, &in->config, err);
    if (!r)
        r = find_mode(in, &reactive, err);
    return r ? r : compare_job_init(&in->job, &in->spec, reactive, (uint32_t)in->max_slots, err);
}

static int read_traces(struct sim_inputs *in, struct spec_error *err)
{
    const struct trace_rules rules = {.job = in->spec.job};
    int r = 0;

    for (size_t i = 0; !r && i < in->trace_paths.n; i++) {
        struct tape *tape = vec_push(NULL, &in->tapes);

        if (!tape)
            return -ENOMEM;
        r = tape_read(in->trace_paths.v[i], &rules, tape, err);
        if (!r && tape->left_out > 0)
            fprintf(stderr,
                    "pliant-sim: %s: %" PRIu64 " events that are not about nodes or failures are "
                    "left out\n",
                    in->trace_paths.v[i], tape->left_out);
    }
    return r;
}

enum exit_code sim_inputs_read(struct sim_inputs *in, struct compare *c)
{
    struct spec_error err = {.text = ""};
    int r = read_job(in, &err);

    if (!r)
        r = read_traces(in, &err);
    if (r)
        return input_error(r, err.text);
    c->job = &in->job;
    c->tapes = in->tapes.v;
    c->n_tapes = in->tapes.n;
    c->costs = in->costs.n > 0 ? in->costs.v : compare_costs;
    c->n_costs = in->costs.n > 0 ? in->costs.n : compare_n_costs;
    c->config = in->config_path ? &in->config : NULL;
    c->options_of = &in->spec;
    c->defines = in->defines.v;
    c->n_defines = in->defines.n;
    c->threads = (unsigned)in->threads;
    return DONE;
}

void sim_inputs_free(struct sim_inputs *in)
{
    for (size_t i = 0; i < in->tapes.n; i++)
        tape_free(&in->tapes.v[i]);
    vec_free(NULL, &in->tapes);
    vec_free(NULL, &in->costs);
    vec_free(NULL, &in->trace_paths);
    vec_free(NULL, &in->defines);
    compare_job_free(&in->job);
    doc_free(&in->config);
    job_spec_free(&in->spec);
}

/* ---- running -------------------------------------------------------------------------------- */

static void show_progress(void *bar, size_t done)
{
    progress_show(bar, (int64_t)done);
}

enum exit_code sim_inputs_run(struct compare *c)
{
    struct spec_error err = {.text = ""};
    struct progress bar;
    int r;

    progress_init(&bar, stderr, (int64_t)compare_pieces(c));
    bar.every = 1; /* a piece takes long enough */
    c->progress = show_progress;
    c->progress_ctx = &bar;
    r = compare_run(c, &err);
    c->progress = NULL;
    c->progress_ctx = NULL;
    progress_clear(&bar);
    return r ? input_error(r, err.text) : DONE;
}

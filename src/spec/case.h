/* case.h - a scenario: a job, a trace, and what must come out
 *
 * A case file is one document (JSON or YAML); its `job` is a job spec, its `trace` a list with
 * the header and the events of a trace.
 *
 * Units   all checks look at 0..until_ms; instants are ms of the trace
 * Owner   everything in a case lives until case_free(); a struct case_file must not move, because
 *         its trace knows its document
 * Errors  -EINVAL with file, line, field and what is accepted; -ENOMEM; the errno of reading
 * Source  the schema of cases (tests/data/cases/README.md)
 */
#ifndef PLIANT_SPEC_CASE_H
#define PLIANT_SPEC_CASE_H

#include "spec/job_spec.h"
#include "spec/trace.h"

#define CASE_NOT_ASKED (-1) /* a bound that the case does not set */

/* The vertices that a check names, with what they must have. */
struct case_parallelism {
    pliant_vertex_id vertex;
    uint32_t parallelism; /* 0: the job does not run */
};

/* At t_ms these vertices run with this parallelism. */
struct case_moment {
    int64_t t_ms;
    struct case_parallelism *v;
    size_t n;
};

/* Executing is entered at t_min_ms..t_max_ms with another parallelism than the time before. */
struct case_rescale {
    int64_t t_min_ms, t_max_ms;
    struct case_parallelism *to;
    size_t n;
};

struct case_expect {
    bool has_final_state, has_job_status, has_states_visited, has_rescales;
    enum pliant_state final_state;
    enum pliant_job_status job_status;
    enum pliant_state *states_visited; /* all, in order, from Created */
    size_t n_states_visited;
    bool never[PLIANT_STATES]; /* must not be entered */
    struct case_moment *parallelism_at;
    size_t n_parallelism_at;
    struct case_rescale *rescales; /* all of them, in order */
    size_t n_rescales;
    int64_t min_restarts, max_restarts, downtime_ms_max; /* or CASE_NOT_ASKED */
};

struct case_file {
    const char *label, *title, *note; /* title, note: NULL where there is none */
    struct job_spec job;
    int64_t until_ms;
    struct trace *trace; /* checked to its end, and at its first event */
    struct case_expect expect;
    struct doc_file doc;
};

/* Read and check a whole case. On error *ret is empty. */
int case_read(const char *path, struct case_file *ret, struct spec_error *err);
int case_parse(const char *name, const char *text, size_t size, struct case_file *ret,
               struct spec_error *err);
void case_free(struct case_file *c);

#endif

/* job_spec.h - a job as its file describes it
 *
 * The core gets `job`; the rest is kept as plain values for those who read it: the options for
 * options_add_job(), speed-up and sizes for the simulator, commands for the service.
 *
 * Shapes  vertices[pliant_job_vertices(job)] by id - 1
 * Owner   job_spec_free() frees all of it. `doc` and `config` are of the document: a spec that
 *         was read from a file owns it; one that was decoded from a part of another document
 *         borrows that, for `config` and `group` only
 * Errors  -EINVAL with file, line, field and what is accepted; -ENOMEM; the errno of reading
 * Source  the schema of job specs, version 1 (docs/simulator.md)
 */
#ifndef PLIANT_SPEC_JOB_SPEC_H
#define PLIANT_SPEC_JOB_SPEC_H

#include <pliant/job.h>

#include "spec/doc.h"

#define JOB_SPEC_FILE_MAX (64u * 1024u * 1024u) /* bytes */
#define JOB_SIM_UNSET (-1)

/* Words of the edges' `partitioner`, by enum pliant_partitioner; the first stands for none. Ends
 * with a NULL. */
extern const char *const job_spec_partitioners[];

/* How fast the job is with p subtasks, against one; p is the smallest parallelism of a vertex. */
enum job_speedup {
    JOB_SPEEDUP_LINEAR,
    JOB_SPEEDUP_AMDAHL, /* p / (1 + serial (p - 1)) */
    JOB_SPEEDUP_TABLE,  /* straight between the points, flat after the last */
};

struct job_point {
    uint32_t parallelism; /* strictly ascending */
    double speedup;       /* > 0 */
};

struct job_progress {
    enum job_speedup kind;
    double serial; /* 0..1 */
    const struct job_point *points;
    size_t n_points;
};

/* Ranges are drawn from the seed. What is not given is JOB_SIM_UNSET. */
struct job_range {
    int64_t min, max;
};

struct job_vertex_sim {
    struct job_range duration_ms, bytes;
    int64_t deploy_ms, fail_every_ms;
};

struct job_variable {
    const char *name, *value;
};

/* A process; argv is NULL where the vertex has no command, else it ends with a NULL. */
struct job_command {
    const char *const *argv;
    size_t argc;
    const struct job_variable *env;
    size_t n_env;
    const char *cwd; /* NULL: not given */
};

struct job_vertex_spec {
    struct job_vertex_sim sim;
    struct job_command command;
};

struct job_spec {
    struct pliant_job *job;
    const struct job_vertex_spec *vertices;
    struct job_progress progress;
    const struct doc *config; /* a map, or NULL */
    const struct doc *group;  /* worker_group, a map: of options, and what is read here; or NULL */
    struct doc_file doc;      /* empty where another document is borrowed */
    struct job_block *blocks; /* internal: what the arrays and strings live in */
};

/* Read a whole file; "-" is standard input. On error *ret is untouched. */
int job_spec_read(const char *path, struct job_spec *ret, struct spec_error *err);

/* The same from a map in a document. */
int job_spec_decode(const struct doc_file *f, const struct doc *map, struct job_spec *ret,
                    struct spec_error *err);

/* What the core says about a job (pliant_job_check, pliant_sched_new), at its place in the map
 * that the job came from. Returns -EINVAL. */
int job_spec_error(const struct doc_file *f, const struct doc *map, const struct pliant_error *why,
                   struct spec_error *err);

void job_spec_free(struct job_spec *spec);

#endif

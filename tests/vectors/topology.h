/* topology.h - a line's `job` with fixed parallelisms, and its tasks by name ("vertex:index") */
#ifndef PLIANT_TESTS_VECTORS_TOPOLOGY_H
#define PLIANT_TESTS_VECTORS_TOPOLOGY_H

#include "vectors.h"

#include "failover/restart_set.h"

struct vector_job {
    struct pliant_job *job;
    struct topology topology;
    struct regions regions;
};

/* False: the job was refused, see why. */
bool vector_job_make(const cJSON *line, struct vector_job *ret, char *why, size_t size);
void vector_job_free(struct vector_job *v);

uint32_t vector_task(const struct vector_job *v, const char *name);
/* The task's name as JSON. */
cJSON *vector_task_name(const struct vector_job *v, uint32_t task);

/* A list of tasks in the order of the files: by vertex name, then by index. Frees `tasks`. */
cJSON *vector_task_list(const struct vector_job *v, uint32_t *tasks, size_t n);

int vector_compare(const cJSON *expect, cJSON *answer, const char *what, char *why, size_t size);

#endif

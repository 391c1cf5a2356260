/* environment.h - what a task is told when it is started
 *
 * Owner   texts are borrowed from the environment, but for `parts`, which environment_free()
 *         frees together with what it points to
 * Errors  -EINVAL with a text that names the variable, -ENOMEM
 * Source  docs/worker.md
 */
#ifndef PLIANT_WORKER_ENVIRONMENT_H
#define PLIANT_WORKER_ENVIRONMENT_H

#include <pliant/worker.h>

#define ENVIRONMENT_ERROR_SIZE 256

struct environment {
    struct pliant_worker_task task;
    const char *socket_path;    /* NULL: not under Pliant */
    const char *checkpoint_dir; /* NULL: none */
    const char *inputs_path, *outputs_path;
    struct pliant_worker_part *parts;
    size_t n_parts;
    char *part_paths;
};

int environment_read(struct environment *ret, char error[ENVIRONMENT_ERROR_SIZE]);
void environment_free(struct environment *e);

#endif

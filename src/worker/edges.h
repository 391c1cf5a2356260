/* edges.h - what a subtask reads and writes of blocking edges, as its agent wrote it down
 *
 * Owner   edges_free() frees all that the arrays point to
 * Errors  -EINVAL with a text that names the file, -ENOMEM, and the errno of reading
 * Source  docs/worker.md
 */
#ifndef PLIANT_WORKER_EDGES_H
#define PLIANT_WORKER_EDGES_H

#include <pliant/worker.h>

#define EDGES_ERROR_SIZE 256

struct edges {
    struct pliant_worker_input *inputs;
    struct pliant_worker_output *outputs;
    size_t n_inputs, n_outputs;
};

/* NULL for a path: none. *ret is set in any case. */
int edges_read(const char *inputs_path, const char *outputs_path, struct edges *ret,
               char error[EDGES_ERROR_SIZE]);
void edges_free(struct edges *e);

#endif

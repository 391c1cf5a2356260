/* output.h - a file that appears under its name whole, or not at all
 *
 *     output_open(&o, path);
 *     fprintf(o.file, ...);
 *     output_commit(&o);     or output_abandon(&o): fine after a commit too
 *
 * What is written goes to a temporary file in the same directory, which is synced and renamed at
 * the end. Something that is not a regular file, as a pipe or a device, is written to directly.
 *
 * Owner   `path` is borrowed
 * Errors  -errno; after a failed commit nothing new stands under the name
 */
#ifndef PLIANT_SIM_OUTPUT_H
#define PLIANT_SIM_OUTPUT_H

#include <stdio.h>

struct output {
    FILE *file; /* NULL: not open */
    const char *path;
    char *temporary; /* NULL: `path` is written to directly */
};

int output_open(struct output *o, const char *path);
int output_commit(struct output *o);
void output_abandon(struct output *o);

#endif

/* output.h - a file that appears under its name whole, or not at all
 *
 *     output_open(&o, path);
 *     fprintf(o.file, ...);
 *     output_commit(&o);     or output_abandon(&o): fine after a commit too
 *
 * What is written goes to a temporary file in the same directory, which is synced and renamed at
 * the end. Something that is not a regular file, as a pipe or a device, is written to directly. A
 * file that is there already keeps its rights, must be writable, and is found through links.
 *
 * Owner   `path` is borrowed
 * Errors  -errno; after a failed commit nothing new stands under the name
 */
#ifndef PLIANT_SIM_OUTPUT_H
#define PLIANT_SIM_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file; /* NULL: not open */
    const char *path;
    char *target;    /* the file that `path` names, links followed; NULL: written to directly */
    char *temporary; /* the same */
};

int output_open(struct output *o, const char *path);
int output_commit(struct output *o);
void output_abandon(struct output *o);

/* From now on SIGHUP, SIGINT and SIGTERM take the temporary files with them. */
void output_clean_on_signals(void);

/* Do both name one regular file, there or yet to come? */
bool output_same_file(const char *a, const char *b);

#endif

/* manifest.h - what makes a directory a checkpoint, and directories a run
 *
 *     CHECKPOINT/_manifest.json   of a graph job's checkpoint: which subtasks wrote a part
 *     RUN/_manifest.json          of a worker group's run: its registered checkpoints, the latest
 *     RUN/_lease                  held by the scheduler that owns the run's identity
 *     RUN/_torn/                  directories without an entry, moved aside
 *
 * A manifest is replaced by write, fsync, rename, fsync of the directory: a crash leaves the old
 * one or the new one [W-CKP-8]. Names in it are those of directories beside it, so that a tree can
 * be moved.
 *
 * Pure functions over a directory: nothing here knows jobs or the store.
 *
 * Errors  0 or a negative errno value with *err for people: -ENOENT no manifest, -EUCLEAN it is
 *         there and can't be used (never treated as none, and never overwritten [W-DRV-4])
 * Source  section 4 of the rules of worker groups
 */
#ifndef PLIANT_DAEMON_MANIFEST_H
#define PLIANT_DAEMON_MANIFEST_H

#include "spec/doc.h"
#include "spec/json_out.h"
#include "util/vec.h"

#define MANIFEST_FILE "_manifest.json"
#define MANIFEST_VERSION 1
#define MANIFEST_BYTES_MAX (64u * 1024u * 1024u)

/* ---- files ---------------------------------------------------------------------------------- */

/* Put `body` in the place of the manifest in `dir`. */
int manifest_replace(const char *dir, const struct json *body, struct spec_error *err);
bool manifest_exists(const char *dir);

/* ---- a checkpoint of a graph job ------------------------------------------------------------ */

struct manifest_part {
    uint32_t vertex; /* index into `vertices` */
    uint32_t subtask;
    uint64_t bytes;
};

struct manifest_vertex {
    const char *name;
    uint32_t parallelism;
};

struct manifest {
    uint64_t id;
    bool savepoint;
    const char *job;
    const struct manifest_vertex *vertices;
    size_t n_vertices;
    const struct manifest_part *parts;
    size_t n_parts;
};

void manifest_write(struct json *j, const struct manifest *m);

struct manifest_read; /* opaque */
int manifest_open(const char *dir, struct manifest_read **ret, struct spec_error *err);
const struct manifest *manifest_of(const struct manifest_read *r);
/* Subtasks of a vertex that wrote a part; 0: none. */
uint32_t manifest_parallelism(const struct manifest *m, const char *vertex);
/* Did this subtask write one? If not, it had finished before the checkpoint. */
bool manifest_has_part(const struct manifest *m, const char *vertex, uint32_t subtask);
void manifest_close(struct manifest_read **r);

/* ---- a run of a worker group ---------------------------------------------------------------- */

struct run_checkpoint {
    char *dir;     /* name below the run's directory */
    char *metrics; /* rank 0's [W-CKP-5], a JSON object */
};

/* Which checkpoints are kept: the best by a metric, or the last ones; always the latest. */
struct run_keep {
    uint32_t num_to_keep;     /* 0: all */
    const char *score_metric; /* NULL: by age */
    bool score_min;           /* the smallest is the best */
};

struct run_manifest {
    struct VEC(struct run_checkpoint) results; /* oldest first */
    int64_t created_unix_ms;
};

/* -ENOENT: a new run. -EUCLEAN: unreadable [W-DRV-4], or it names a directory that is not there
 * [W-DRV-2]. */
int run_read(const char *run_dir, struct run_manifest *ret, struct spec_error *err);
void run_write(struct json *j, const struct run_manifest *m);
void run_free(struct run_manifest *m);
/* The one that an attempt starts from [W-CKP-10], or NULL. */
const struct run_checkpoint *run_latest(const struct run_manifest *m);

/* Register a checkpoint as the latest, and replace the manifest; what `keep` lets go is deleted
 * after that [W-CKP-6, W-CKP-7]. On error the run is as before. */
int run_register(const char *run_dir, struct run_manifest *m, const struct run_keep *keep,
                 const char *dir, const char *metrics, struct spec_error *err);

/* Directories of the run without an entry go to _torn/, so that a name that is used again never
 * mixes two attempts [W-CKP-11]. Returns how many, or an error. */
int run_move_torn(const char *run_dir, const struct run_manifest *m, struct spec_error *err);

/* Own the run's identity until the lease is let go or the process ends [W-DRV-5]. -EBUSY: somebody
 * else does; *err names him. `owner`: who we are, for that. */
int run_lease_take(const char *run_dir, const char *owner, int *ret_fd, struct spec_error *err);
void run_lease_let_go(int *fd);

/* Is it a name that may stand in a manifest: of a directory right below, none of ours? */
bool run_name_fine(const char *dir);

#endif

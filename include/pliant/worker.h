/* worker.h - a task's side of Pliant: checkpoints, reports, notices of preemption
 *
 * For programs that pliant-agent starts. A program that needs none of this needs no library: exit
 * code 0 is success, SIGTERM asks it to stop. One that is started by hand, without
 * PLIANT_WORKER_SOCKET, may use all of it: nothing waits, nobody is told, and checkpoints go below
 * ./checkpoints.
 *
 *     pliant_worker_new(&w);
 *     pliant_worker_get_checkpoint(w, &dir);          where to go on from; NULL: from the start
 *     while (work is left) {
 *         step();
 *         if (it is time for a checkpoint) {
 *             pliant_worker_checkpoint_dir(w, &dir);  the same one for all ranks
 *             write_files(dir);
 *             pliant_worker_report(w, "{\"loss\":0.5}", dir);
 *         }
 *     }
 *     pliant_worker_close(w);
 *
 * A subtask of a graph job is asked for its part instead:
 *
 *     pliant_worker_take_checkpoints(w);
 *     read what pliant_worker_restore_parts(w, &n) lists;
 *     while (work is left) {
 *         step();
 *         while (pliant_worker_next(w, 0, &ev) == 1)
 *             if (ev.kind == PLIANT_WORKER_CHECKPOINT) {
 *                 write_files(ev.dir);
 *                 pliant_worker_part_done(w, ev.id);
 *             }
 *     }
 *
 * Alone   needs the C library only: no thread, no signal handler, no global, no JSON library and no
 *         ZeroMQ comes into the program. The agent's lines are read by a small reader of its own,
 *         since the one that the daemon uses sets hooks of cJSON that a program may use too.
 *         Where it links parts of Pliant, their names are hidden.
 * Threads one at a time for one handle; a program may have several handles. After fork() only one
 *         of the two may use a handle.
 * Waiting a collective waits for the other ranks for as long as they take. The connection is made
 * at the first need, and made again when it breaks, with all that is unanswered sent once more; for
 * as long as the agent cannot be reached, pliant_worker_set_patience() at most. Once SIGTERM has
 * been announced (PLIANT_WORKER_STOP) collectives end with -ECANCELED: nobody will answer them.
 * Strings UTF-8. Going in: borrowed for the call. Coming out: see each function
 * Errors  0 or a negative errno; pliant_worker_error() tells in words:
 *         -EINVAL          an argument or a variable of the environment
 *         -EPROTO          a rank did a collective more or less than the others, or the agent
 *                          does not know the request
 *         -EREMOTEIO       refused by the agent or the daemon
 *         -EAGAIN          the daemon cannot be asked now
 *         -ECANCELED       the task is to stop
 *         -ETIMEDOUT       the agent could not be reached for the patience
 *         -ENOMEM, and the errno of writing files
 * Source  docs/worker.md
 */
#ifndef PLIANT_WORKER_H
#define PLIANT_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pliant/export.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pliant_worker;

/* Reads the environment, connects to nothing. *ret is set even when a variable is wrong (-EINVAL),
 * so that pliant_worker_error() can tell; close it in any case. -ENOMEM: *ret is NULL. */
PLIANT_API int pliant_worker_new(struct pliant_worker **ret);
PLIANT_API void pliant_worker_close(struct pliant_worker *w); /* NULL: nothing */

/* What went wrong in the last call that failed, in words; "" if none has. */
PLIANT_API const char *pliant_worker_error(const struct pliant_worker *w);

/* Started by pliant-agent? */
PLIANT_API bool pliant_worker_managed(const struct pliant_worker *w);

#define PLIANT_WORKER_PATIENCE_MS (10 * 60 * 1000) /* so long an agent may be away */

/* For how long to try to reach the agent; -1: for ever. Default: PLIANT_WORKER_PATIENCE_MS. */
PLIANT_API void pliant_worker_set_patience(struct pliant_worker *w, int64_t patience_ms);

/* Connect now, not at the first need. */
PLIANT_API int pliant_worker_connect(struct pliant_worker *w);

PLIANT_API const char *pliant_worker_version(void);

/* ---- who am I -------------------------------------------------------------------------- */

/* From the environment. Ranks and subtasks differ from attempt to attempt. Texts that are not given
 * are NULL. Not under Pliant: rank and size as RANK and WORLD_SIZE say, else the only one. */
struct pliant_worker_task {
    const char *job_id, *job_name, *node_id, *vertex;
    const char *log_dir, *preemption_file;
    const char *run_dir; /* worker groups: where checkpoints are directories */
    bool group;          /* of a worker group: subtask is the rank, parallelism the world size */
    uint32_t subtask, parallelism, attempt, slot;
    uint32_t max_parallelism;                 /* graph jobs: key groups are 0 to this - 1 */
    uint32_t first_key_group, last_key_group; /* those of this subtask */
};

/* Valid until the handle is closed. */
PLIANT_API const struct pliant_worker_task *pliant_worker_task(const struct pliant_worker *w);

/* ---- checkpoints that ranks take by themselves (worker groups) --------------------------- */

/* The checkpoint to start from; later this rank's own newest one; NULL: none. Valid until the next
 * call of this function or of pliant_worker_report(). */
PLIANT_API int pliant_worker_get_checkpoint(struct pliant_worker *w, const char **ret_dir);

/* Collective: a new directory for a checkpoint, made, whose name is rank 0's. Each rank writes
 * files with names of its own into it. Valid until the next call of this function. */
PLIANT_API int pliant_worker_checkpoint_dir(struct pliant_worker *w, const char **ret_dir);

/* Collective: all ranks report equally often. `metrics` is a JSON object or NULL. `checkpoint` is
 * the directory, as pliant_worker_checkpoint_dir() gave it, or its name in the run's directory, or
 * NULL; what is in it is synced to disk first. Returns when the report has been taken in: the
 * checkpoint is then registered. */
PLIANT_API int pliant_worker_report(struct pliant_worker *w, const char *metrics,
                                    const char *checkpoint);

/* ---- notice of preemption --------------------------------------------------------------- */

#define PLIANT_WORKER_NO_DEADLINE INT64_MAX

struct pliant_worker_preemption {
    int64_t deadline_unix_ms; /* the earliest that a node gave, or PLIANT_WORKER_NO_DEADLINE */
    int64_t stop_at_unix_ms;  /* when the group is stopped at the latest, or the same */
    const uint32_t *ranks;    /* that will go, ascending */
    size_t n_ranks;
    const char *const *nodes; /* that will go */
    size_t n_nodes;
    const char *json; /* the same and more, as docs/worker.md describes it */
};

/* NULL: none is known. In worker groups a collective, which gives all ranks the same answer: all
 * must ask equally often. Valid until the next call of this function. */
PLIANT_API int pliant_worker_get_preemption_info(struct pliant_worker *w,
                                                 const struct pliant_worker_preemption **ret);

/* ---- what the agent says by itself -------------------------------------------------------- */

enum pliant_worker_event_kind {
    PLIANT_WORKER_CHECKPOINT = 1, /* take one now: see below */
    PLIANT_WORKER_PREEMPTION,     /* .preemption; other ranks may not know it yet */
    PLIANT_WORKER_STOP,           /* SIGTERM has been sent */
};

struct pliant_worker_event {
    enum pliant_worker_event_kind kind;
    /* CHECKPOINT: graph jobs write this subtask's state into `dir`, which is empty, and then say
     * pliant_worker_part_done(); both are valid until then. In worker groups they are NULL: report
     * one soon. */
    const char *id, *dir;
    bool savepoint;
    const struct pliant_worker_preemption *preemption; /* valid until the next one of these */
};

/* Take requests for checkpoints through this handle. Before it they wait. */
PLIANT_API int pliant_worker_take_checkpoints(struct pliant_worker *w);

/* 1 and the next event; 0: none came in time. timeout_ms 0: only look; -1: without end. */
PLIANT_API int pliant_worker_next(struct pliant_worker *w, int timeout_ms,
                                  struct pliant_worker_event *ret);

/* For a program with a loop of its own: readable when pliant_worker_next(w, 0, ...) is to be
 * called, until that returns 0. The same number for the life of the handle, also when the
 * connection breaks. Not under Pliant it never becomes readable. Negative errno: no descriptor
 * could be had. */
PLIANT_API int pliant_worker_fd(struct pliant_worker *w);

/* Has PLIANT_WORKER_STOP been seen by any call? For loops that take no events. */
PLIANT_API bool pliant_worker_stopping(const struct pliant_worker *w);

/* ---- subtasks of graph jobs ----------------------------------------------------------------- */

/* The part of checkpoint `id` is written. Syncs what is in its directory, and tells how much it is.
 */
PLIANT_API int pliant_worker_part_done(struct pliant_worker *w, const char *id);
PLIANT_API int pliant_worker_part_failed(struct pliant_worker *w, const char *id,
                                         const char *cause);

/* A part of the checkpoint to start from that has key groups of this subtask. */
struct pliant_worker_part {
    const char *dir;
    uint32_t subtask, parallelism;            /* whose it was, and of how many */
    uint32_t first_key_group, last_key_group; /* what of it belongs to this subtask now */
};

/* n parts, valid until the handle is closed; NULL: start from nothing. */
PLIANT_API const struct pliant_worker_part *
pliant_worker_restore_parts(const struct pliant_worker *w, size_t *ret_n);

/* This source has read all that there is. */
PLIANT_API int pliant_worker_end_of_data(struct pliant_worker *w);

/* ---- blocking edges (graph jobs) --------------------------------------------------------- */

/* What one subtask wrote for an edge, as far as this one is to read it: subpartitions first..last.
 * Subpartition N is the file DIR/N; if there is none, nothing is in it. */
struct pliant_worker_partition {
    const char *dir;
    uint32_t subtask, attempt; /* who wrote it */
    uint32_t first, last;
};

struct pliant_worker_input {
    uint32_t edge;    /* index in the job, from 0 */
    const char *from; /* the vertex it comes from */
    const struct pliant_worker_partition *partitions;
    size_t n_partitions;
};

/* Where this subtask writes subpartitions 0..subpartitions - 1, a file each, named by its number:
 * `dir` exists and is empty. What is in it when the subtask ends with exit code 0 is its result. */
struct pliant_worker_output {
    uint32_t edge;
    const char *to, *dir;
    uint32_t subpartitions;
};

/* n of them, valid until the handle is closed; n 0: the subtask has none. -EINVAL, or the errno of
 * reading PLIANT_INPUTS and PLIANT_OUTPUTS. */
PLIANT_API int pliant_worker_inputs(struct pliant_worker *w, const struct pliant_worker_input **ret,
                                    size_t *ret_n);
PLIANT_API int pliant_worker_outputs(struct pliant_worker *w,
                                     const struct pliant_worker_output **ret, size_t *ret_n);

/* How much it has written for an edge, if that does not show in the sizes of the files: bytes of
 * each subpartition. Once for an edge. */
PLIANT_API int pliant_worker_output_sizes(struct pliant_worker *w, uint32_t edge,
                                          const uint64_t *bytes, size_t n);

/* What `subtask` wrote for the edge cannot be read. Then exit with another code than 0: it is
 * written again, and this subtask started again after that. */
PLIANT_API int pliant_worker_input_lost(struct pliant_worker *w, uint32_t edge, uint32_t subtask);

/* ---- files ------------------------------------------------------------------------------------
 */

/* Sync a file, or a directory with all in it. 0 or a negative errno. */
PLIANT_API int pliant_worker_sync(const char *path);

#ifdef __cplusplus
}
#endif

#endif /* PLIANT_WORKER_H */

/* world.h - a small world around one scheduler, for tests of its states
 *
 * A world owns a job and a scheduler, steps it at a time of its own, remembers every action of the
 * last step and every state that was entered, and checks the invariants after each step. Before
 * each step the scheduler is replaced by one that was restored from its snapshot (but for
 * schedulers with an allocator of the test's), so that every test of a state is one of the snapshot
 * too. It plays the host where it is told to: reserve, run, cancel (each can be switched off to
 * look at what is between).
 *
 *     struct world w = world_new((struct world_spec){.parallelism = 4});
 *     world_node(&w, "n1", 2);           an event at the present time
 *     world_start(&w);
 *     world_to(&w, 10000);               ticks at every deadline up to and at 10000
 *     cr_assert_eq(pliant_state(w.s), PLIANT_EXECUTING);
 *     world_free(&w);
 */
#ifndef PLIANT_TESTS_WORLD_H
#define PLIANT_TESTS_WORLD_H

#include <pliant/pliant.h>

#define WORLD_ACTIONS 4096
#define WORLD_STATES 256

/* One vertex by default; options as "key", "value" pairs, NULL-terminated. */
struct world_spec {
    const struct pliant_vertex_spec *vertices; /* NULL: one vertex "v" with the parallelism below */
    size_t n_vertices;
    const struct pliant_edge_spec *edges;
    size_t n_edges;
    int64_t parallelism, min_parallelism, max_parallelism; /* 0: 4, default, default */
    bool worker_group;                                     /* "worker" instead of "v" */
    const char *options[64];
    const struct pliant_alloc *alloc;
};

struct world {
    struct pliant_config cfg;
    struct pliant_job *job;
    struct pliant_sched *s;
    int64_t now_ms;
    bool reserves, runs, cancels, checkpoints; /* answered at once; all but checkpoints are true */
    struct pliant_action actions[WORLD_ACTIONS]; /* of the last event and all answers to it */
    size_t n_actions;
    uint8_t states[WORLD_STATES]; /* entered, in order, from Created */
    size_t n_states;
    uint32_t plan;                  /* of the last RESERVE */
    uint64_t checkpoint, savepoint; /* ids of the last CHECKPOINT actions */
    uint64_t registered;            /* of the last REGISTER */
    struct pliant_action changed;   /* the last STATE_CHANGED */
    char emitted[512];              /* text of world_emitted() */
};

struct world world_new(struct world_spec spec);
/* Started with one node "n1" of that many slots, and on until it is Executing. */
struct world world_running(struct world_spec spec, uint32_t slots);
void world_free(struct world *w);

/* One event at the present time, and the answers that follow. */
void world_event(struct world *w, struct pliant_event ev);
/* Time goes on to at_ms: a tick at each deadline on the way, and at at_ms itself. */
void world_to(struct world *w, int64_t at_ms);

void world_start(struct world *w);
void world_node(struct world *w, const char *name,
                uint32_t slots); /* a new incarnation each time */
void world_lose(struct world *w, const char *name);
void world_drain(struct world *w, const char *name, int64_t deadline_ms); /* <= 0: none */
void world_withdraw(struct world *w, const char *name);
void world_bounds(struct world *w, int64_t min, int64_t max); /* of every vertex */
void world_task(struct world *w, enum pliant_event_kind kind, uint32_t vertex, uint32_t subtask);
void world_all_tasks(struct world *w, enum pliant_event_kind kind); /* of the present graph */
void world_fail_task(struct world *w, uint32_t vertex, uint32_t subtask, bool recoverable);
/* A worker of a group dies. */
void world_die(struct world *w, uint32_t rank, enum pliant_death death, const char *cause);
/* It reports; path may be NULL. */
void world_report(struct world *w, uint32_t rank, uint64_t call, const char *path);
void world_registered(struct world *w, bool ok);    /* the answer to the last REGISTER */
void world_fail(struct world *w, bool recoverable); /* a global failure */
void world_checkpoint(struct world *w);             /* completed, of the host's own accord */
void world_checkpoint_failed(struct world *w, bool counts);
void world_plain(struct world *w,
                 enum pliant_event_kind kind); /* CANCEL, SUSPEND, TICK, START, ... */
/* The answer to the last RESERVE; `recoverable` is for CREATION_FAILED. */
void world_plan(struct world *w, enum pliant_event_kind kind, bool recoverable);
/* The answer to the last CHECKPOINT. */
void world_taken(struct world *w, enum pliant_event_kind kind, bool counts);
void world_stop(struct world *w);               /* with a directory */
void world_savepoint(struct world *w, bool ok); /* the answer to the last savepoint action */

/* The n-th (from 0) action of this kind among the last ones, or NULL. */
const struct pliant_action *world_action(const struct world *w, enum pliant_action_kind kind,
                                         size_t n);
size_t world_count(const struct world *w, enum pliant_action_kind kind);
/* Names of the last actions, joined by ' '; a name once for several in a row. */
const char *world_emitted(struct world *w);
struct pliant_counts world_counts(const struct world *w);
/* Was this the sequence of states from Created on? Names joined by " > ". */
bool world_went(const struct world *w, const char *states);

#endif

/* agents_impl.h - what the modules about agents share
 *
 *     agents.c    sessions: messages in, WELCOME, RESYNC, HEARTBEAT out
 *     nodes.c     the nodes behind them
 *     reported.c  the tasks that they report
 */
#ifndef PLIANT_DAEMON_AGENTS_IMPL_H
#define PLIANT_DAEMON_AGENTS_IMPL_H

#include "daemon/daemon.h"

#define GONE_MS 2000 /* from a connection's end to the node's, without another HELLO */

struct agents {
    struct doc_file body;
    int64_t next_loss_ms; /* awake time; no node is lost before */
    uint64_t hellos;      /* so many were taken in */
};

struct agents *agents_of(struct daemon *d);

/* ---- nodes.c ------------------------------------------------------------------------------ */

struct node_drain {
    bool there;
    enum pliant_drain_reason reason;
    int64_t end_at_ms; /* PLIANT_NEVER: none was given */
    bool by_operator;
};

struct daemon_node *node_new(const char *name, uint64_t incarnation);
void node_free(struct daemon_node *node);
void node_add(struct daemon *d, struct daemon_node *node);
struct daemon_node *node_of_key(const struct daemon *d, const char *key); /* NULL: none */
/* From here on this key alone may say that it is this node, and says so of no other. */
void node_take_key(struct daemon *d, struct daemon_node *node, const char *key);
void node_heard(struct daemon *d, struct daemon_node *node);
void node_store(struct daemon *d, const struct daemon_node *node);
/* The event about it, and the line of log. */
void node_tell(struct daemon *d, const struct daemon_node *node, const char *change,
               const char *cause);
/* What a HELLO, or the store, says of it. */
int node_read(const struct doc_file *f, const struct doc *map, struct daemon_node *node,
              struct spec_error *err);
/* `map` may be absent or null: none. */
int node_read_drain(const struct daemon *d, const struct doc_file *f, const struct doc *map,
                    struct node_drain *ret, struct spec_error *err);
/* Lives of the node that jobs gave up end with their last task. */
void node_close_lives(struct daemon *d, struct daemon_node *node);

/* ---- reported.c --------------------------------------------------------------------------- */

/* A task as a message names it. */
struct named {
    const char *id, *vertex;
    uint32_t subtask, attempt;
    struct daemon_job *job;  /* NULL: unknown */
    struct pliant_task task; /* unset where the job or the vertex is unknown */
    struct daemon_task *known;
};

int named_read(struct daemon *d, const struct doc_file *f, const struct doc *map, struct named *ret,
               struct spec_error *err);
/* What the core believes of it; false: it knows no such attempt. */
bool named_believed(const struct named *n, struct pliant_task_info *ret);

/* The list "tasks" of a TASKS or HELLO. */
int reported_take(struct daemon *d, struct daemon_node *node, const struct doc_file *f, bool hello,
                  struct spec_error *err);
/* After a HELLO: what it did not name, and the cores believe to be there. */
void reported_missing(struct daemon *d, struct daemon_node *node);

#endif

/* crowd.h - many agents, played by one thread over plain sockets
 *
 *     struct crowd c;
 *     crowd_open(&c, 1000, 10);            1,000 agents with 10 slots each
 *     crowd_connect(&c, endpoint);         says HELLO for each, with the tasks that it has
 *     while (c.n_welcome < c.n)
 *         crowd_pump(&c, 100);
 *     crowd_close(&c);
 *
 * An agent is a descriptor that speaks ZMTP 3.0 (0MQ RFC 23) as a DEALER, so that a crowd costs
 * little beside what it is to measure. What is deployed runs at once, unless `hold` says that it
 * does not answer; what is to be stopped has ended at once. No process is started.
 *
 * Errors  end the program: without a crowd there are no figures
 */
#ifndef PLIANT_TESTS_BENCH_CROWD_H
#define PLIANT_TESTS_BENCH_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#include "rpc/message.h"
#include "util/vec.h"

struct crowd_bytes VEC(char);

struct crowd_task {
    char *name; /* the four members that name it, JSON */
    uint32_t slot;
};

struct crowd_agent {
    int fd; /* -1: not connected */
    uint64_t sequence;
    bool greeted, waits; /* waits: for room to write */
    struct crowd_bytes in, out;
    struct VEC(struct crowd_task) tasks;
};

struct crowd {
    uint32_t n, slots;
    struct crowd_agent *v; /* [n] */
    bool hold;
    int epoll;
    uint32_t n_welcome, n_tasks, n_connected; /* n_welcome: since crowd_connect() */
    uint64_t n_beats, n_errors;               /* HEARTBEATs and ERRORs that came */
};

void crowd_open(struct crowd *c, uint32_t n, uint32_t slots);
void crowd_connect(struct crowd *c, const char *endpoint);
void crowd_pump(struct crowd *c, int timeout_ms);
/* Behind what agent `i` has to send already. */
void crowd_say(struct crowd *c, uint32_t i, enum message_type type, const char *body, size_t n);
void crowd_flush(struct crowd *c, uint32_t i); /* as far as there is room; the rest follows */
/* Each task's state is told, in a message of its own; `end`: JSON, or NULL. */
void crowd_tell(struct crowd *c, const char *state, const char *end);
/* A task that it has, without being told. */
void crowd_give(struct crowd *c, uint32_t i, const char *name, uint32_t slot);
void crowd_close(struct crowd *c);

#endif

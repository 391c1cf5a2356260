/* fake_service.h - a service that answers from a list, and a program that talks to it
 *
 * One thread: fake_run() starts the program, serves it, gathers what it prints, and returns when
 * it has ended. What was asked is kept, for the test to look at.
 *
 * Owner   fake_service_close() ends programs that still run and removes the directory
 */
#ifndef PLIANT_TESTS_FAKE_SERVICE_H
#define PLIANT_TESTS_FAKE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rpc/peer.h"

#define FAKE_TEXT_MAX 262144
#define FAKE_ASKED_MAX 512

/* An answer to a type: the next one not used yet; the last is used again and again. */
struct fake_answer {
    enum message_type type; /* 0 ends a list */
    const char *reply;      /* a JSON object; NULL: an ERROR with these */
    const char *code, *text;
    int64_t delay_ms;
};

struct fake_asked {
    enum message_type type;
    char *body;
};

struct fake_output {
    char text[FAKE_TEXT_MAX];
    size_t n;
    int fd;
};

struct fake {
    char dir[64], clients[128], events[128];
    struct rpc_server *client_end, *event_end;
    uint64_t epoch, sequence; /* of events: the last one sent */
    const struct fake_answer *answers;
    size_t used[FAKE_ASKED_MAX]; /* by the place in `answers`: how often */
    struct fake_asked asked[FAKE_ASKED_MAX];
    size_t n_asked;
    bool silent; /* answers nothing */

    pid_t child;
    struct fake_output out, err;
    int code; /* exit code; -SIGNAL */
    /* called after each turn with the test's own data, to send events and the like */
    void (*turn)(struct fake *f);
    int stage;
};

void fake_service_open(struct fake *f, const struct fake_answer *answers);
void fake_service_close(struct fake *f);
void fake_listen(struct fake *f); /* bind again after fake_deafen() */
void fake_deafen(struct fake *f);
void fake_forget(struct fake *f); /* what was asked and used */

/* The program `name` (one of ours, or a path) with the words, NULL at the end; its exit code. */
int fake_run(struct fake *f, const char *name, const char *const *words);
/* The same in steps: start, serve until `done` says so or it has ended (bounded), and end. */
void fake_start(struct fake *f, const char *name, const char *const *words);
bool fake_serve(struct fake *f, bool (*done)(struct fake *f));
void fake_take_over(struct fake *f, pid_t child, int out, int err);

void fake_event(struct fake *f, const char *body);
/* How often a type was asked for, and the last body. */
size_t fake_count(const struct fake *f, enum message_type type);
const char *fake_body(const struct fake *f, enum message_type type);

int64_t fake_service_now_ms(void);
/* Write a file in the service's directory; its path, until the next call. */
const char *fake_file(struct fake *f, const char *name, const char *text);

#endif

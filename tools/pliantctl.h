/* pliantctl.h - what the subcommands of pliantctl share
 *
 * A command is a row: its words, its options, what it does. The row is parsed from, printed as
 * help and turned into shell completion, so the three cannot differ. A command finds what was given
 * in struct ctl, asks the service with ctl_call(), and returns an exit code; by then all is said.
 *
 * Words   a placeholder is a type: FILE, DIR, JOB, NODE, or choices with '|' between them. In
 *         `arguments` "[X]" may be missing and "X..." may be repeated
 * Output  --json: the reply as the service gave it, one line. Text is for people. Errors go to
 *         standard error, one line each
 */
#ifndef PLIANT_TOOLS_PLIANTCTL_H
#define PLIANT_TOOLS_PLIANTCTL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "rpc/peer.h"
#include "spec/doc.h"
#include "spec/json_out.h"
#include "util/vec.h"

enum exit_code {
    DONE = 0,
    ANSWER_IS_NO = 1,
    BAD_INPUT = 2,
    NO_CONNECTION = 3,
    NO_RESOURCES = 4, /* memory, disk, closed pipe */
};

/* ---- the table ------------------------------------------------------------------------------- */

enum ctl_option_key {
    /* of all commands */
    CTL_CONNECT,
    CTL_STATE_DIR,
    CTL_KEY,
    CTL_SERVER_KEY,
    CTL_TIMEOUT,
    CTL_JSON,
    CTL_HELP,
    CTL_VERSION,
    CTL_COMMON_OPTIONS,
    /* of some */
    CTL_DEFINE = CTL_COMMON_OPTIONS,
    CTL_DRY_RUN,
    CTL_ID,
    CTL_WAIT,
    CTL_ALL,
    CTL_DIR,
    CTL_DRAIN,
    CTL_CANCEL,
    CTL_DEADLINE,
    CTL_REASON,
    CTL_ATTEMPT,
    CTL_STDERR,
    CTL_FOLLOW,
    CTL_TAIL,
    CTL_OUTPUT,
    CTL_ROLE,
    CTL_KEYS,
    CTL_NODE,
    CTL_STOP_JOBS,
    CTL_FORCE,
    CTL_OPTIONS,
};

struct ctl_option {
    const char *name;  /* NULL ends a list */
    char letter;       /* 0: none */
    const char *value; /* placeholder; NULL: it takes none */
    const char *help;
    enum ctl_option_key key;
};

struct ctl;

struct ctl_command {
    const char *name;
    const char *arguments;
    const char *summary; /* a line of the list of commands */
    const char *text;    /* what --help adds to that; NULL: nothing */
    enum exit_code (*run)(struct ctl *c);
    struct ctl_option options[6];
};

extern const struct ctl_option ctl_common_options[];
extern const struct ctl_command ctl_commands[]; /* the last has no name */

/* ---- one call of the program ----------------------------------------------------------------- */

enum ctl_found { /* how the service was found */
                 CTL_BY_OPTION,
                 CTL_BY_ENVIRONMENT,
                 CTL_BY_STATE_DIR,
                 CTL_BY_DEFAULT,
};

struct ctl_target {
    char endpoint[512];
    char server_key[64]; /* "" : not known from endpoints.json */
    char file[4096];     /* the endpoints.json that was read, or "" */
    int64_t pid;         /* of that file; 0: unknown */
    enum ctl_found found;
};

struct ctl {
    const struct ctl_command *command;
    const char *given[CTL_OPTIONS];   /* its value, "" of one without, NULL: not given */
    struct VEC(const char *) defines; /* every -D */
    char **words;
    size_t n_words;
    int64_t timeout_ms;

    char job_id[40]; /* ctl_settle_job() */

    struct ctl_target target;
    struct rpc_identity *identity; /* NULL: no keys */
    struct rpc_link *link;         /* NULL: not opened yet */
    uint64_t sequence;             /* how often ctl_ask() has asked */
    struct json request;
    struct doc_file reply;
};

/* "pliantctl: text"; ctl_usage() adds where to find help. Return the code, or BAD_INPUT. */
enum exit_code ctl_complain(enum exit_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum exit_code ctl_usage(const struct ctl *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* All of standard output is written, or the error of that. */
enum exit_code ctl_finish(enum exit_code code);

/* Whole numbers and durations on the command line; false: said already. */
bool ctl_take_number(const char *option, const char *text, int64_t min, int64_t max, int64_t *ret);
bool ctl_take_duration(const char *option, const char *text, int64_t *ret_ms);

/* Is the option's value one of the choices in its placeholder? */
bool ctl_take_choice(const struct ctl *c, enum ctl_option_key key);

/* ---- pliantctl-connect.c --------------------------------------------------------------------- */

#define CTL_QUEUE 1000 /* messages, each way */
#define CTL_FOREVER INT64_MAX

/* After silence: a new connection, to where the service is by now. Says nothing; false: there is
 * no link now, and the next call tries again. */
bool ctl_reopen(struct ctl *c);
void ctl_close(struct ctl *c);

/* "tcp://... (named in /x/endpoints.json)": where it was tried. Into buf, which is returned. */
const char *ctl_tried(const struct ctl *c, char *buf, size_t size);

/* A request begins with {; add members, then ctl_call() ends it. */
struct json *ctl_request(struct ctl *c);
/* The same with its first member: "job", or "node", from word 0. */
struct json *ctl_request_of(struct ctl *c, const char *key);

/* Ask and wait. DONE: the answer is in c->reply, until the next call. */
enum exit_code ctl_call(struct ctl *c, enum message_type type);
/* The same where an answer may take long, as long as the service is alive; without --timeout
 * there is no bound. */
enum exit_code ctl_call_long(struct ctl *c, enum message_type type);
/* The same without a word about what went wrong, for those who try again. */
int ctl_try(struct ctl *c, enum message_type type, int timeout_ms, struct rpc_refusal *ret);
/* What the service refused, for people: the exit code that goes with it. */
enum exit_code ctl_refused(const struct ctl *c, const struct rpc_refusal *refusal);

/* Send, and let the caller look for the answer with this sequence. -errno of sending. */
int ctl_ask(struct ctl *c, enum message_type type, uint64_t *ret_sequence);

/* Where events come from, told by a PING's reply. */
const char *ctl_events_endpoint(const struct ctl *c, const struct doc *ping, char *buf,
                                size_t size);

/* ---- pliantctl-json.c ------------------------------------------------------------------------ */

/* c->reply as one line on standard output. */
enum exit_code ctl_print_reply(struct ctl *c);

/* Tolerant questions: of what is missing, null or of another kind: "", 0, false, NULL. */
const char *ctl_text(const struct doc *map, const char *key);
int64_t ctl_int(const struct doc *map, const char *key);
bool ctl_is_undecided(const struct doc *job, const struct doc *vertex);
bool ctl_truth(const struct doc *map, const char *key);
bool ctl_has(const struct doc *map, const char *key);                /* there, and not null */
const struct doc *ctl_first(const struct doc *map, const char *key); /* first child, or NULL */

/* ---- pliantctl-text.c ------------------------------------------------------------------------ */

enum ctl_colour { CTL_PLAIN, CTL_BOLD, CTL_DIM, CTL_GREEN, CTL_YELLOW, CTL_RED };

/* Colours on standard output: a terminal, and NO_COLOR is not set. */
bool ctl_colourful(void);
const char *ctl_colour(enum ctl_colour colour, bool on); /* the escape sequence, or "" */
enum ctl_colour ctl_colour_of(const char *state);        /* of a state or status of anything */
bool ctl_status_is_final(const char *job_status);

#define CTL_TIME_TEXT 40
/* "17:04:05", with the date where it is another day; "-" for 0. */
const char *ctl_clock(char buf[CTL_TIME_TEXT], int64_t unix_ms);
/* "1.5 s"; "-" below 0. */
const char *ctl_span(char buf[CTL_TIME_TEXT], int64_t ms);
const char *ctl_bytes(char buf[CTL_TIME_TEXT], int64_t bytes); /* "1.5 MiB" */
int64_t ctl_unix_ms(void);

/* Text of others without control characters. */
void ctl_put(FILE *out, const char *text);

/* A table: columns as wide as their widest cell. A head that begins with '>' is for numbers. */
struct ctl_table {
    const char *const *heads;
    size_t n_columns;
    struct VEC(char *) cells;
    bool failed; /* no memory */
};

void ctl_table_start(struct ctl_table *t, const char *const *heads, size_t n);
void ctl_cell(struct ctl_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints and frees. Cells that name a state are coloured. */
enum exit_code ctl_table_end(struct ctl_table *t, FILE *out);

/* ---- pliantctl-wait.c ------------------------------------------------------------------------ */

/* A name means the job that has it now: from here on word 0 is that job's id. */
enum exit_code ctl_settle_job(struct ctl *c);
/* Until the job has ended, also over restarts of the service. DONE or ANSWER_IS_NO by how. */
enum exit_code ctl_wait_end(struct ctl *c, const char *job);

/* ---- pliantctl-events.c ---------------------------------------------------------------------- */

/* An event in words, without its time, as a line's text without its end. */
void ctl_event_line(FILE *out, const struct doc *event, const char *job_name);

/* Why a rescale happened or not, in words. */
const char *ctl_trigger_words(const char *trigger);
void ctl_judgement_words(FILE *out, const struct doc *judged);
const char *ctl_end_words(const char *end);

/* What comes next, elapsed_ms after the service said it. */
void ctl_next_words(FILE *out, const struct doc *next, int64_t elapsed_ms);

/* ---- the commands ---------------------------------------------------------------------------- */

enum exit_code ctl_submit(struct ctl *c), ctl_list(struct ctl *c), ctl_status(struct ctl *c),
    ctl_watch(struct ctl *c), ctl_scale(struct ctl *c), ctl_cancel(struct ctl *c),
    ctl_stop(struct ctl *c), ctl_remove(struct ctl *c), ctl_savepoint(struct ctl *c),
    ctl_checkpoint(struct ctl *c), ctl_drain(struct ctl *c), ctl_undrain(struct ctl *c),
    ctl_nodes(struct ctl *c), ctl_tasks(struct ctl *c), ctl_rescales(struct ctl *c),
    ctl_failures(struct ctl *c), ctl_checkpoints(struct ctl *c), ctl_logs(struct ctl *c),
    ctl_record(struct ctl *c), ctl_keygen(struct ctl *c), ctl_shutdown(struct ctl *c),
    ctl_ping(struct ctl *c), ctl_completion(struct ctl *c);

#endif
